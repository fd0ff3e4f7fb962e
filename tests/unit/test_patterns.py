"""Patterns that are compiled by their first use."""

import re
from importlib import import_module
from pkgutil import walk_packages

import pytest

import odek
from odek.patterns import compile_patterns, late_pattern


def test_a_late_pattern_does_what_a_compiled_one_does() -> None:
    """Its methods and attributes are those of the pattern, flags included."""
    late, compiled = (
        late_pattern("(?P<letter>a+)", re.IGNORECASE),
        re.compile("(?P<letter>a+)", re.IGNORECASE),
    )
    text = "xAaxb"

    assert [found[0] for found in late.finditer(text)] == [found[0] for found in compiled.finditer(text)]
    assert late.sub("-", text) == compiled.sub("-", text) == "x-xb"
    assert late.groupindex == compiled.groupindex
    assert late_pattern(rb"\d").findall(b"a1b2") == [b"1", b"2"]


def test_every_pattern_of_the_program_can_be_compiled() -> None:
    """None waits for its first use to be found wrong."""
    for module in walk_packages(odek.__path__, "odek."):
        if not module.name.endswith("__main__"):
            import_module(module.name)

    compile_patterns()


def test_an_error_in_a_late_pattern_is_one_of_its_first_use() -> None:
    """Whoever compiles all of them ahead meets it then."""
    wrong = late_pattern("(")

    with pytest.raises(re.error, match="missing"):
        wrong.search("x")
    with pytest.raises(re.error, match="missing"):
        compile_patterns()
