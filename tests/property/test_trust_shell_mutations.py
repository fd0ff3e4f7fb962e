"""However a command is written, its class does not drop; however an honest one is, it does not rise."""

from pathlib import Path

import pytest
from hypothesis import given, settings

from odek.trust.paths import Where
from odek.trust.risk import Risk
from odek.trust.shell import classify
from tests.support import (
    shell_cases,
    shell_data_cases,
    shell_everyday_cases,
    shell_program_cases,
    shell_script_cases,
)
from tests.support.shell_mutations import disguised, is_simple, rewritten

PROJECT = Path("/home/u/work/project")
HERE = Where(PROJECT, PROJECT, Path("/home/u"), Path("/home/u/.odek"))

DANGEROUS = [
    command
    for cases in (shell_cases.AT_LEAST, shell_data_cases.AT_LEAST, shell_program_cases.AT_LEAST)
    for label, commands in cases.items()
    for command in commands
    # What `$@` is depends on where it stands.
    if Risk[label.upper()] > Risk.LOCAL_WRITE and "\x00" not in command and command != '"$@"'
]
SIMPLE = [command for command in DANGEROUS if is_simple(command)]
HONEST = [
    command
    for cases in (shell_cases.AT_MOST, shell_everyday_cases.AT_MOST, shell_script_cases.AT_MOST)
    for label, commands in cases.items()
    for command in commands
    if Risk[label.upper()] <= Risk.LOCAL_WRITE
]


def holds(command: str, text: str) -> None:
    """Check that ``text`` is rated at least as high as ``command``."""
    assert classify(text, HERE).risk >= classify(command, HERE).risk, text


def stays(command: str, text: str) -> None:
    """Check that ``text`` still runs unasked."""
    assert classify(text, HERE).risk <= Risk.LOCAL_WRITE, (command, text)


@given(disguised(SIMPLE))
@settings(max_examples=80, deadline=None)
def test_no_disguise_of_plain_words_lowers_a_class(case: tuple[str, str]) -> None:
    """Spelled, split into variables, printed, given to functions, wrapped and nested."""
    holds(*case)


@given(disguised(DANGEROUS))
@settings(max_examples=80, deadline=None)
def test_no_frame_lowers_a_class(case: tuple[str, str]) -> None:
    """Inside branches, loops, functions, other shells and encodings."""
    holds(*case)


@given(rewritten(HONEST))
@settings(max_examples=80, deadline=None)
def test_another_hand_does_not_raise_an_honest_command(case: tuple[str, str]) -> None:
    """Quotes, spaces, comments and groups are a matter of taste."""
    stays(*case)


@pytest.mark.slow
@given(disguised(SIMPLE) | disguised(DANGEROUS))
@settings(max_examples=20_000, deadline=None)
def test_many_disguises_lower_no_class(case: tuple[str, str]) -> None:
    """The long form of the tests above."""
    holds(*case)


@pytest.mark.slow
@given(rewritten(HONEST))
@settings(max_examples=10_000, deadline=None)
def test_many_hands_raise_no_honest_command(case: tuple[str, str]) -> None:
    """The long form of the test above."""
    stays(*case)
