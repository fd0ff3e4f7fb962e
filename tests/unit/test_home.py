"""Where odek keeps its files."""

from pathlib import Path

import pytest

from odek.errors import ConfigError
from odek.home import home_directory, home_name


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"HOME": "/home/a"}, "/home/a/.odek"),
        ({"HOME": "/home/a", "ODEK_HOME": "/data/odek"}, "/data/odek"),
        ({"HOME": "/home/a", "ODEK_HOME": ""}, "/home/a/.odek"),
    ],
)
def test_the_home_is_below_the_persons_or_where_they_say(environ: dict[str, str], expected: str) -> None:
    """``ODEK_HOME`` moves it; empty counts as not set."""
    assert home_directory(environ) == Path(expected)
    assert home_name(environ) == expected


def test_a_relative_home_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later change of the working directory does not move it."""
    monkeypatch.chdir(tmp_path)
    assert home_directory({"ODEK_HOME": "here"}) == tmp_path / "here"


def test_a_tilde_means_the_persons_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shell would have it."""
    monkeypatch.setenv("HOME", "/home/b")
    assert home_directory({"ODEK_HOME": "~/x"}) == Path("/home/b/x")


def test_no_home_at_all_is_said() -> None:
    """A user who is nobody is told which variable to set."""
    with pytest.raises(ConfigError, match="set HOME or ODEK_HOME"):
        home_directory({"ODEK_HOME": "~no-such-user-here/x"})
