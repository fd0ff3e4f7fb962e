"""Checks of programs that run a command on each of many names: find, xargs, parallel, fd.

Each takes one ``Call`` and yields parts of its verdict; ``checks.py`` says when.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, assert_never

import msgspec

from odek.trust import paths
from odek.trust.paths import UNRESOLVED
from odek.trust.risk import Part, Risk
from odek.trust.shell.call import Call, shell_text
from odek.trust.shell.listings import found_by_find, start_words
from odek.trust.shell.outputs import Names, Number, Output, Text, Unknown
from odek.trust.shell.words import Word

__all__ = ["fd", "find", "parallel", "xargs"]

_REMOVERS: Final = frozenset({"rm", "unlink", "shred"})
_READERS: Final = frozenset(
    {"awk", "base32", "base64", "cat", "cut", "egrep", "fgrep", "grep", "head", "hexdump", "less", "more"}
    | {"nl", "od", "rg", "sed", "sort", "strings", "tac", "tail", "xxd"}
)
# The command is judged for so many names of those that are known, and for all others as unknown.
_NAMES_LIMIT = 16
_ANYTHING: Final = Word(UNRESOLVED, raw="…", foreign=True)


def xargs(call: Call) -> Iterator[Part]:
    """Judge the command that is given words from its input: what is known of them, else the worst."""
    inner = list(call.rest)
    if not inner:
        return
    listed = call.value("-a", "--arg-file") is not None
    stdin = call.context.stdin[-1] if call.context.stdin and not listed else Unknown()
    by_line = call.value("-I", "-i", "--replace", "-d", "--delimiter") is not None
    marker = call.value("-I", "--replace")
    names = _names(stdin, by_line=by_line)
    for name in names:
        # With a marker the words stand where it is, and nowhere else.
        filled = _filled(inner, marker.text if marker else "{}", name)
        yield from call.context.command(filled if marker is None else filled[: len(inner)])
    if isinstance(stdin, Names) and inner[0].text.rpartition("/")[2] in _REMOVERS:
        yield from _removes(call, names)


def _names(stdin: Output, *, by_line: bool) -> list[Word]:
    """Return the words that a repeater makes of its input."""
    match stdin:
        case Text(text):
            words = text.split("\n") if by_line else re.split(r"[\s\0]+", text)
            found = [Word(word.strip("'\""), raw=word) for word in words if word]
        case Names(words):
            found = list(words)
        case Number():
            found = [Word("0", raw="…")]
        case Unknown(foreign=foreign, hidden=hidden):
            found = [msgspec.structs.replace(_ANYTHING, foreign=foreign, hidden=hidden)]
        case unreachable:
            assert_never(unreachable)
    return found if len(found) <= _NAMES_LIMIT else [*found[:_NAMES_LIMIT], _ANYTHING]


def _filled(inner: Sequence[Word], marker: str, name: Word) -> list[Word]:
    """Return a command with ``name`` in the place of ``marker``, or behind it."""
    if not any(marker in word.text for word in inner):
        return [*inner, name]
    return [
        Word(
            word.text.replace(marker, name.text),
            word.glob or name.glob,
            word.raw,
            name.hidden,
            name.foreign,
            name.maybe,
        )
        if marker in word.text
        else word
        for word in inner
    ]


def parallel(call: Call) -> Iterator[Part]:
    """Judge the command of GNU parallel: its arguments stand behind ``:::``, in files, or in its input."""
    words = list(call.rest)
    cut = next((at for at, word in enumerate(words) if word.text.startswith(":::")), len(words))
    inner, names = words[:cut], [word for word in words[cut:] if not word.text.startswith(":::")]
    if cut == len(words) or any(word.text.startswith("::::") for word in words[cut:]):
        stdin = call.context.stdin[-1] if call.context.stdin else Unknown()
        names = _names(Unknown() if cut < len(words) else stdin, by_line=True)
    if not inner:
        yield call.part(Risk.CODE_EXECUTION, "runs the lines that it reads")
        for name in names:
            yield from call.context.shell(shell_text(name))
        return
    for name in names[:_NAMES_LIMIT]:
        # The words are joined and given to a shell.
        filled = _filled(inner, "{}", name)
        if len(inner) == 1 and " " in inner[0].text:
            yield from call.context.shell(shell_text(*filled))
        else:
            yield from call.context.command(filled)


def fd(call: Call) -> Iterator[Part]:
    """``fd -x COMMAND``: the command runs on each hit, which may be anything."""
    for at, word in enumerate(call.words):
        if word.text in {"-x", "-X", "--exec", "--exec-batch"}:
            inner = [w.with_text(w.text.replace("{}", UNRESOLVED)) for w in call.words[at + 1 :]]
            yield from call.context.command([*inner, _ANYTHING])
            return


def find(call: Call) -> Iterator[Part]:
    """Judge the actions of ``find`` on what it may find."""
    words = call.words
    starts = start_words(words)
    found = found_by_find(words)
    at = len(starts)
    while at < len(words):
        flag = words[at].text
        at += 1
        if flag in {"-exec", "-execdir", "-ok", "-okdir"}:
            end = next((i for i in range(at, len(words)) if words[i].text in {";", "+"}), len(words))
            for name in found:
                yield from call.context.command(_filled_braces(words[at:end], name))
            if at < end and words[at].text.rpartition("/")[2] in _REMOVERS:
                yield from _removes(call, found)
            elif at < end and words[at].text.rpartition("/")[2] in _READERS:
                yield from _reads_outside(call, found)
            at = end + 1
        elif flag == "-delete":
            yield from _removes(call, found)
        elif flag in {"-fprint", "-fprint0", "-fls", "-fprintf"} and at < len(words):
            yield call.part(Risk.LOCAL_WRITE, "writes a list of files")
            yield from call.writes(words[at])
            at += 1
        elif flag == "-files0-from" and at < len(words):
            yield from call.reads(words[at])
        elif UNRESOLVED in flag and flag.startswith(UNRESOLVED) and at > len(starts) + 1:
            yield call.part(Risk.UNKNOWN, "an expression of find is not known before it runs")


def _filled_braces(inner: Sequence[Word], name: Word) -> list[Word]:
    return _filled(inner, "{}", name) if any("{}" in word.text for word in inner) else list(inner)


def _removes(call: Call, names: Sequence[Word]) -> Iterator[Part]:
    """Judge removing all that is found: file by file it is the whole tree, the repository's own files too."""
    for word in names:
        yield call.part(*call.context.judge_delete(word, recursive=True))


def _reads_outside(call: Call, names: Sequence[Word]) -> Iterator[Part]:
    """Judge reading all that is found beyond the workspace: credentials lie there like any file."""
    for word in names:
        for place in call.context.places(word):
            if paths.reads_outside(place, call.context.where):
                yield call.part(Risk.SYSTEM_WRITE, "reads whatever lies there, credentials too", place)
