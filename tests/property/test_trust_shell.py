"""No spelling lowers the class of a command, and no text breaks the classifier."""

import time
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.trust.paths import Where
from odek.trust.risk import Risk
from odek.trust.shell import classify
from odek.trust.shell.parameters import Parameter, apply
from odek.trust.shell.values import Value
from tests.support.shell_cases import AT_LEAST

PROJECT = Path("/home/u/work/project")
HERE = Where(PROJECT, PROJECT, Path("/home/u"), Path("/home/u/.odek"))

# Ways to write one character that the shell undoes.
SPELLINGS = (
    lambda char: char,
    lambda char: "\\" + char,
    lambda char: f"'{char}'",
    lambda char: f'"{char}"',
    lambda char: f"''{char}",
    lambda char: f"$'\\x{ord(char):02x}'",
    lambda char: f"$'\\{ord(char):03o}'",
    lambda char: f"{char}\\\n",
)
GAPS = (" ", "  ", "\t", "${IFS}", " \\\n ")
# What may stand before a simple command, and what may stand around any.
WRAPPERS = (
    "sudo {}",
    "env A=b {}",
    "nice -n 5 {}",
    "timeout 9 {}",
    "command {}",
    "A=b {}",
    "nohup setsid {}",
    "! {}",
)
FRAMES = (
    "true; {}",
    "true && {}",
    "ls | {}",
    "( {} )",
    "{{ {}; }}",
    "if true; then {}; fi",
    "echo $( {} )",
    'echo "a $( {} ) b"',
    "cat <( {} )",
    "{} > out.txt",
    "{} & wait",
    "f() {{ {}; }}",
    "while true; do {}; done",
    "for x in a b; do {}; done",
    "case x in x) {};; esac",
    "cd src; {}",
    "# note\n{}",
    "cat <<X\n$( {} )\nX",
)
TARGETS = (
    ("rm", "-rf", "/"),
    ("rm", "-r", "/etc"),
    ("shred", "-u", "/etc/passwd"),
    ("tee", "/dev/sda"),
    ("git", "reset", "--hard"),
    ("reboot",),
)


@st.composite
def disguised(draw: st.DrawFn) -> str:
    """Draw a destructive command in a random spelling, inside random frames."""
    words = draw(st.sampled_from(TARGETS))
    spelled = ["".join(draw(st.sampled_from(SPELLINGS))(char) for char in word) for word in words]
    command = draw(st.sampled_from(GAPS)).join(spelled)
    wrappers = draw(st.lists(st.sampled_from(WRAPPERS), max_size=2))
    for frame in [*wrappers, *draw(st.lists(st.sampled_from(FRAMES), max_size=3))]:
        command = frame.format(command)
    return command


@given(disguised())
@settings(max_examples=100, deadline=None)
def test_no_spelling_lowers_a_destructive_command(command: str) -> None:
    """Quoted, escaped, wrapped and nested, a destructive command stays what it is."""
    assert classify(command, HERE).risk is Risk.DESTRUCTIVE


@given(
    st.sampled_from(
        [command for command in AT_LEAST["destructive"] if "\n" not in command and "#" not in command]
    )
)
@settings(max_examples=60, deadline=None)
def test_harmless_company_does_not_lower_a_class(command: str) -> None:
    """What stands before or behind a command does not take from its class."""
    alone = classify(command, HERE).risk

    assert classify(f"ls; {command}", HERE).risk >= alone
    assert classify(f"{command}\nls", HERE).risk >= alone


@given(st.text(max_size=200) | st.text(alphabet="rm -/{}()$`'\"\\<>|&;#*?[]=~\n!@:x", max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_text_gets_a_verdict(text: str) -> None:
    """The classifier raises for no input, and its class is that of its worst part."""
    verdict = classify(text, HERE)

    assert verdict.risk == max((part.risk for part in verdict.parts), default=Risk.SAFE)


@settings(max_examples=300)
@given(
    operator=st.sampled_from(["#", "##", "%", "%%"]),
    pattern=st.text("ab*?.", max_size=6),
    text=st.text("ab.\n", max_size=9),
)
def test_removing_a_pattern_is_what_trying_every_part_says(operator: str, pattern: str, text: str) -> None:
    """The shortest or longest start or end that matches is gone, and without one nothing is."""
    cuts = range(len(text) + 1)
    heads = [text[cut:] for cut in cuts if fnmatchcase(text[:cut], pattern)]
    tails = [text[:cut] for cut in cuts if fnmatchcase(text[cut:], pattern)]
    left = sorted(heads if operator[0] == "#" else tails, key=len) or [text]

    value = apply(Parameter("x", Value.of(text), operator + pattern), is_set=True)

    assert value == Value.of(left[0] if len(operator) == 2 else left[-1])


@pytest.mark.parametrize(
    "piece",
    [
        "(",
        "a",
        "a ",
        "a;",
        "'",
        '"',
        "`",
        "$(",
        "${",
        "{a,",
        "{a,b}",
        "<",
        "a|",
        "a&&",
        "[[",
        "((",
        "<<E ",
        "$x",
        "\\\n",
        "if ",
        "{ ",
    ],
)
def test_hostile_text_takes_little_time(piece: str) -> None:
    """20 KB of one construct are judged in seconds at the very worst, whatever the machine is doing."""
    text = piece * (20 * 1024 // len(piece))
    started = time.process_time()

    classify(text, HERE)

    assert time.process_time() - started < 5
