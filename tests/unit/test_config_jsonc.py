"""JSON with comments."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.config.jsonc import parse_object
from odek.errors import ConfigError

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_comments_and_trailing_commas_are_white_space() -> None:
    """Both kinds of comment and a comma before a closing bracket change nothing."""
    text = '{ // one\n "a": [1, 2, /* two,\n three */ ], "b": {"c": 1,},\n}// end'

    assert parse_object(text, "f") == {"a": [1, 2], "b": {"c": 1}}


def test_what_looks_like_a_comment_inside_a_text_stays() -> None:
    """URLs, escaped quotes and comma-bracket pairs inside texts survive byte for byte."""
    text = r'{"url": "http://x/*y*/", "quote": "\" // ,]", "end": "\\", /* c */ }'

    assert parse_object(text, "f") == {"url": "http://x/*y*/", "quote": '" // ,]', "end": "\\"}


@settings(max_examples=60)
@given(st.dictionaries(st.text(), JSON_VALUES, max_size=4), st.sampled_from([None, 1]))
def test_plain_json_means_what_it_meant(value: dict[str, Any], indent: int | None) -> None:
    """A document without comments is read as any JSON parser reads it."""
    assert parse_object(json.dumps(value, indent=indent, ensure_ascii=False), "f") == value


@settings(max_examples=100)
@given(st.text(alphabet='{}[]",:/* \\\n1a', max_size=40))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    """No text makes the parser fail in a way of its own."""
    try:
        parse_object(text, "config.json")
    except ConfigError as error:
        assert str(error).startswith("config.json: ")
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', "f: line 3, column 3: expecting ',' delimiter"),
        ('{ // c\n /* d\n */ "a": }', "f: line 3, column 10: expecting value"),
        ('{"a": 1}\n/* no end', "f: line 2: the comment that begins here has no end"),
        ("", "f: the file is empty; expected a JSON object, at least {}"),
        ("// only this", "f: the file is empty; expected a JSON object, at least {}"),
        ("[1]", "f: expected a JSON object, such as {}"),
        ('{"a": {"b": 1, "b": 2}}', 'f: "b" is given twice in one object; remove one of them'),
        ('{"a": NaN}', "f: NaN is not a JSON number"),
        ('{"a": -Infinity}', "f: -Infinity is not a JSON number"),
        ('{"a": ' + "[" * 100_000, "f: nested too deeply to be a configuration"),
    ],
)
def test_a_fault_is_one_line_with_its_place(text: str, expected: str) -> None:
    """What is wrong is said with the line and column of the file as it is."""
    with pytest.raises(ConfigError) as caught:
        parse_object(text, "f")

    assert str(caught.value) == expected


def test_a_number_too_long_to_read_is_refused() -> None:
    """Thousands of digits are an error in words."""
    with pytest.raises(ConfigError, match=r"^f: "):
        parse_object('{"a": ' + "9" * 10_000 + "}", "f")
