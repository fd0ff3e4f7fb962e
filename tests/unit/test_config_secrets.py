"""``secrets.env``."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.config.secrets_env import parse_secrets
from odek.errors import ConfigError


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("A=b", {"A": "b"}),
        ("export A=b", {"A": "b"}),
        ("  A = b  ", {"A": "b"}),
        ("A=b\r", {"A": "b"}),
        ("A=", {"A": ""}),
        ("A= # nothing", {"A": ""}),
        ("A=b # why", {"A": "b"}),
        ("A=b#c", {"A": "b#c"}),
        ("A=#c", {"A": "#c"}),
        ("A=b=c==", {"A": "b=c=="}),
        ("A='b # c'  # d", {"A": "b # c"}),
        ('A="b # c" # d', {"A": "b # c"}),
        (r'A="say \"hi\"\n\\ \x"', {"A": 'say "hi"\n\\ \\x'}),
        (r"A='\n'", {"A": r"\n"}),
        ("A=pa$$w${B}rd$", {"A": "pa$$w${B}rd$"}),
        ("A=b\u2028c", {"A": "b\u2028c"}),
        ("# A=b\n\n  # c\nB=d", {"B": "d"}),
        ("A=b\nA=c", {"A": "c"}),
        ("", {}),
    ],
)
def test_lines_are_read_as_a_shell_would(line: str, expected: dict[str, str]) -> None:
    """Comments, quotes and export are understood; a value is otherwise taken as it is."""
    assert parse_secrets(line, "f") == expected


@pytest.mark.parametrize("bad", ["sk-123", "=x", "1A=x", "A B=x", 'A="x', "A='x'y", 'A="x" y', "A=x\0y"])
def test_a_bad_line_is_named_and_never_shown(bad: str) -> None:
    """An error holds the number of the line and nothing of what it says."""
    with pytest.raises(ConfigError) as caught:
        parse_secrets(f"B=c\n{bad}\n", "secrets.env")

    assert str(caught.value).startswith("secrets.env: line 2: ")
    assert "123" not in str(caught.value)


@settings(max_examples=60)
@given(st.text(st.characters(exclude_characters="\n\r\0\"'#\\", exclude_categories=["Cs", "Z", "Cc"])))
def test_an_unquoted_value_without_blanks_comes_back_as_written(value: str) -> None:
    """Whatever characters a secret has, among them ``$`` and ``=``, are kept."""
    assert parse_secrets(f"NAME={value}", "f") == {"NAME": value}
