"""Checks of programs that read, write, find and remove files.

Each takes one ``Call`` and yields parts of its verdict; ``checks.py`` says when.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from odek.trust.paths import UNRESOLVED
from odek.trust.risk import Part, Risk
from odek.trust.shell.call import Call
from odek.trust.shell.words import Word


def rm(call: Call) -> Iterator[Part]:
    """Judge ``rm`` by what its operands resolve to."""
    recursive = call.has("-r", "-R", "--recursive") or call.name in {"trash", "trash-put"}
    if call.has("--no-preserve-root"):
        yield call.part(Risk.DESTRUCTIVE, "is told not to spare the root directory")
    # An option that is not known may be the recursive one.
    recursive = recursive or any(
        word.text.startswith(UNRESOLVED) and not word.glob for word in call.operands[:-1]
    )
    for word in call.operands:
        if word.hidden:
            yield call.part(
                Risk.DESTRUCTIVE if recursive else Risk.SYSTEM_WRITE, "removes what an encoding hides"
            )
            continue
        follow = word.text.endswith("/")
        yield call.part(*call.context.judge_delete(word, recursive=recursive, follow=follow))


def dd(call: Call) -> Iterator[Part]:
    """Judge ``dd`` by its ``if=`` and ``of=``."""
    source = ""
    for word in call.operands:
        key, _, value = word.text.partition("=")
        if key == "if":
            source = value
            yield from call.reads(word.with_text(value))
    for word in call.operands:
        key, _, value = word.text.partition("=")
        if key != "of":
            continue
        for part in call.writes(word.with_text(value)):
            erases = part.risk is Risk.DESTRUCTIVE and source in {"/dev/zero", "/dev/urandom", "/dev/random"}
            yield call.part(Risk.BLOCKED, "erases a disk") if erases else part
    yield call.part(Risk.SAFE, "copies from its input to its output")


def copy(call: Call) -> Iterator[Part]:
    """Judge the mode that ``install`` gives a file."""
    if call.name == "install" and (mode := call.value("-m", "--mode")) and _sets_privilege(mode.text):
        yield call.part(Risk.SYSTEM_WRITE, f"sets the mode {mode.text}")


def move(call: Call) -> Iterator[Part]:
    """Judge the sources of ``mv``, which are gone afterwards."""
    targeted = call.value("-t", "--target-directory") is not None
    for word in call.operands if targeted else call.operands[:-1]:
        yield from call.writes(word, content=False)


def link(call: Call) -> Iterator[Part]:
    """A link to somewhere else makes later reads and writes through it land there."""
    operands = call.operands
    symbolic = call.has("-s", "--symbolic")
    directory = call.value("-t", "--target-directory")
    for word in operands[:-1] if len(operands) > 1 and directory is None else operands:
        source = word
        if symbolic and not word.text.startswith("/") and (directory or len(operands) > 1):
            # The text of a symbolic link is relative to where the link lies.
            base = call.context.places(directory or operands[-1])[0].text
            base = base if Path(base).is_dir() else base.rpartition("/")[0]
            source = word.with_text(f"{base}/{word.text}")
        yield from (part for part in call.writes(source, whole=True) if part.risk > Risk.LOCAL_WRITE)
        yield from (part for part in call.reads(source, recursive=True) if part.risk > Risk.SAFE)


def _sets_privilege(mode: str) -> bool:
    digits = mode.lstrip("=+-")
    if digits.isdigit():
        return len(digits) > 3 and any(digit in "2467" for digit in digits[:-3])
    return bool(re.search(r"[+=][a-zA-Z]*s", mode)) or UNRESOLVED in mode


def chmod(call: Call) -> Iterator[Part]:
    """Judge mode and files of ``chmod``."""
    operands = call.operands if call.value("--reference") is not None else call.operands[1:]
    mode = "" if call.value("--reference") is not None or not call.operands else call.operands[0].text
    if _sets_privilege(mode):
        yield call.part(
            Risk.SYSTEM_WRITE, f"sets the mode {mode}, which lends rights to whoever runs the file"
        )
    for word in operands:
        yield from call.writes(word)


def compress(call: Call) -> Iterator[Part]:
    """Judge compressors without files: they work on their input and output."""
    if not call.operands:
        yield call.part(Risk.SAFE, "works on its input and output")


def formatter(call: Call) -> Iterator[Part]:
    """Judge tools that either report or rewrite."""
    first = call.operands[0].text if call.operands else ""
    shows = call.has(
        "--check", "--check-only", "--diff", "-d", "-l", "--list-different", "--dry-run", "--test"
    )
    changes = first == "format" or call.has(
        "--fix", "--fix-only", "--add-noqa", "-w", "-i", "--write", "--in-place"
    )
    if call.name == "ruff" and first in {"check", "rule", "config", "linter", "version"} and not changes:
        shows = True
    if shows and not (call.has("--fix") or call.has("-w", "-i")):
        yield call.part(Risk.SAFE, "only reports")
        return
    yield call.part(Risk.LOCAL_WRITE, "rewrites files")
    for word in call.operands or [Word(".")]:
        yield from call.writes(word)


def mktemp(call: Call) -> Iterator[Part]:
    """Judge ``mktemp``, which makes its own name."""
    if call.name == "mktemp":
        yield call.part(Risk.LOCAL_WRITE, "makes a temporary file")


def tree_search(call: Call) -> Iterator[Part]:
    """A search that always goes through whole trees."""
    given = call.has("-e", "-f", "--regexp", "--file", "--files")
    for word in call.operands if given else call.operands[1:]:
        yield from call.reads(word, recursive=True)
    if not call.operands[1:]:
        yield from call.reads(Word("."), recursive=True)


def grep(call: Call) -> Iterator[Part]:
    """Judge ``grep -r`` without a start, which reads the current directory."""
    if call.recursive and len(call.operands) < 2:
        yield from call.reads(Word("."), recursive=True)


def inplace(call: Call) -> Iterator[Part]:
    """Judge edits in place."""
    if call.has("-i", "--inplace", "--in-place"):
        for word in call.operands[1:]:
            yield from call.writes(word)
