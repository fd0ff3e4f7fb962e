"""What data decides in a command is followed to where it is read, run, removed or evaluated."""

from itertools import pairwise
from pathlib import Path

import pytest

from odek.trust.paths import Where
from odek.trust.risk import Risk
from odek.trust.shell import classify
from tests.support import (
    shell_data_cases,
    shell_everyday_cases,
    shell_field_cases,
    shell_program_cases,
    shell_script_cases,
)

PROJECT = Path("/home/u/work/project")
HERE = Where(PROJECT, PROJECT, Path("/home/u"), Path("/home/u/.odek"))
Cases = dict[str, tuple[str, ...]]


def pairs(*cases: Cases) -> list[tuple[str, str]]:
    """Return each command behind its class."""
    return [(label, command) for one in cases for label, commands in one.items() for command in commands]


@pytest.mark.parametrize(
    ("label", "command"),
    pairs(shell_data_cases.AT_LEAST, shell_field_cases.AT_LEAST, shell_program_cases.AT_LEAST),
)
def test_a_way_through_data_does_not_lower_a_class(label: str, command: str) -> None:
    """Names from lists, loops, functions and outputs are judged as the files that they may be."""
    verdict = classify(command, HERE)

    assert verdict.risk >= Risk[label.upper()], verdict


@pytest.mark.parametrize(
    ("label", "command"),
    pairs(shell_everyday_cases.AT_MOST, shell_field_cases.AT_MOST, shell_script_cases.AT_MOST),
)
def test_everyday_scripts_run_as_before(label: str, command: str) -> None:
    """Counting, looping over sources and the usual tools are rated no higher than what they do."""
    verdict = classify(command, HERE)

    assert verdict.risk <= Risk[label.upper()], verdict


def test_what_a_loop_reads_is_known_where_it_can_be() -> None:
    """A loop over names that a listing of the workspace prints touches the workspace alone."""
    inside = classify('find src -name "*.py" | while read -r f; do cat "$f"; done', HERE)
    unknown = classify('while read -r f; do cat "$f"; done < list.txt', HERE)

    assert inside.risk is Risk.SAFE
    assert not any(part.reads_outside for part in inside.parts)
    assert unknown.risk is Risk.SYSTEM_WRITE
    assert any(part.reads_outside for part in unknown.parts)


def test_a_branch_that_may_not_have_run_is_taken_into_account() -> None:
    """Behind a branch a variable and the directory may be what they were before, or what it made them."""
    assert classify("d=build; if x; then d=dist; fi; rm -rf $d", HERE).risk is Risk.UNKNOWN
    assert classify("d=build; if true; then d=dist; fi; rm -rf $d", HERE).risk is Risk.LOCAL_WRITE
    assert classify("d=build; if true; then d=/; fi; rm -rf $d", HERE).risk is Risk.DESTRUCTIVE
    assert classify("d=/; if true; then d=dist; fi; rm -rf $d", HERE).risk is Risk.DESTRUCTIVE
    assert classify("cd build && ls; rm -rf *", HERE).risk is Risk.DESTRUCTIVE
    assert classify("cd build || exit 1; rm -rf *", HERE).risk is Risk.LOCAL_WRITE
    assert classify("cd ~/.ssh || exit; cat config", HERE).risk is Risk.SYSTEM_WRITE


def test_too_many_steps_end_in_a_verdict() -> None:
    """Loops in loops, and functions that call each other, are given up, not followed for ever."""
    loops = "for a in 1 2 3 4 5 6 7 8; do " * 12 + "rm -rf /" + "; done" * 12
    calls = "".join(f"f{n}() {{ f{n + 1}; f{n + 1}; f{n + 1}; }}; " for n in range(40)) + "f0"

    assert classify(loops, HERE).risk is Risk.DESTRUCTIVE
    assert classify(calls, HERE).risk is Risk.UNKNOWN


@pytest.mark.parametrize(
    ("begin", "doubling"),
    [
        ("a=x", "a=$a$a"),
        ("a=x", 'a="$(echo $a$a)"'),
        ("a=x", "a=${b:-$a$a}"),
        ("a=x", 'read a <<<"$a$a"'),
        ("a=(x y)", 'a=("${a[@]}" "${a[@]}")'),
        ("set -- x", 'set -- "$@" "$@"'),
        ("f() { a=$1$1; }; a=x", "f $a"),
    ],
)
def test_a_value_that_doubles_is_given_up_before_it_fills_the_memory(begin: str, doubling: str) -> None:
    """Thirty of these are a gigabyte, for the shell as for who judges it: a command as short is refused."""
    assert classify(f"{begin}; {f'{doubling}; ' * 100}ls", HERE).risk is Risk.UNKNOWN
    assert classify(f"{begin}; {f'{doubling}; ' * 4}ls", HERE).risk < Risk.UNKNOWN


@pytest.mark.parametrize("operator", ["%%*y*z", "##*y*z", "%y*y", "#*y", "//y/z", "^^", ":1:400"])
def test_long_values_that_are_changed_again_and_again_are_given_up(operator: str) -> None:
    """A pattern that is tried on fifty long elements, a thousand times, is more than can be judged."""
    elements = " ".join("yz" * 250 + str(number) for number in range(50))
    change = f'b="${{a[@]{operator}}}"; '

    assert classify(f"a=({elements}); {change * 1000}ls", HERE).risk is Risk.UNKNOWN
    assert classify(f"a=({elements}); {change * 4}ls", HERE).risk < Risk.UNKNOWN


def test_a_long_value_is_judged_where_it_is_used() -> None:
    """Twenty kilobytes in a variable are no reason to give up."""
    names = " ".join(f"build/{number:04}" for number in range(2000))

    assert classify(f'a=\'{names}\'; echo "$a" "$a" "$a"; rm -rf /etc', HERE).risk is Risk.DESTRUCTIVE
    assert classify(f'a=\'{names}\'; echo "$a" "$a" "$a"', HERE).risk is Risk.SAFE


@pytest.mark.parametrize(
    ("command", "risk"),
    [
        (f"test -v '{'[' * 100_000}'", Risk.SAFE),
        (f"test -v '{'[' * 100_000}$(id)'", Risk.CODE_EXECUTION),
        (f"psql -c '{'copy ' * 20_000}'", Risk.NETWORK_EGRESS),
        (f"sqlite3 a.db 'copy a; {'copy ' * 20_000}a from b'", Risk.CODE_EXECUTION),
        (f"sqlite3 a.db '{chr(10) * 100_000} .shell id'", Risk.CODE_EXECUTION),
    ],
    ids=["open", "open-code", "copies", "copies-code", "lines-code"],
)
def test_what_is_repeated_is_read_once(command: str, risk: Risk) -> None:
    """A word or statement of a hundred thousand characters costs no more than its length."""
    assert classify(command, HERE).risk is risk


def test_numbers_made_of_many_others_are_followed_once_each() -> None:
    """A sum of ten sums of ten sums, and so on: by every way there would be a hundred million of them."""
    levels = [[f"v{level}_{number}" for number in range(10)] for level in range(9)]
    sums = [
        f"{name}={'+'.join(below)}" for above, below in reversed(list(pairwise(levels[:8]))) for name in above
    ]
    numbers = [f"{name}=1" for name in levels[7]]

    assert classify("; ".join([*numbers, *sums, "echo $((v0_0))"]), HERE).risk is Risk.SAFE
    planted = [f"{name}='a[$(id)]'" for name in levels[7]]
    assert classify("; ".join([*planted, *sums, "echo $((v0_0))"]), HERE).risk is Risk.CODE_EXECUTION


def test_a_pattern_for_a_file_that_is_obeyed_counts_where_it_meets_one(tmp_path: Path) -> None:
    """``*.md`` is everyday until there is an ``AGENTS.md`` that it would change."""
    where = Where(tmp_path, tmp_path, Path("/home/u"), Path("/home/u/.odek"))

    assert classify("sed -i s/a/b/ *.md", where).risk is Risk.LOCAL_WRITE
    assert classify("sed -i s/a/b/ AG*.md", where).risk is Risk.SYSTEM_WRITE
    (tmp_path / "AGENTS.md").touch()
    assert classify("sed -i s/a/b/ *.md", where).risk is Risk.SYSTEM_WRITE
