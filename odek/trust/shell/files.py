"""Checks of programs that read, write, find and remove files.

Each takes one ``Call`` and yields parts of its verdict; ``checks.py`` says when.
"""

import re
from collections.abc import Iterator

from odek.trust import paths
from odek.trust.paths import UNRESOLVED
from odek.trust.risk import Part, Risk
from odek.trust.shell.call import Call
from odek.trust.shell.words import Word

_REMOTE = re.compile(r"(\w[\w.-]*@)?[\w.-]+:(?!//)|\w+://")


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
        place = paths.place(word.text, call.context.scope.cwd, follow=word.text.endswith("/"))
        risk, reason = paths.judge_delete(place, call.context.where, recursive=recursive)
        yield call.part(risk, reason)


def dd(call: Call) -> Iterator[Part]:
    """Judge ``dd`` by its ``if=`` and ``of=``."""
    source = ""
    for word in call.operands:
        key, _, value = word.text.partition("=")
        if key == "if":
            source = value
            yield from call.reads(Word(value, word.glob, word.raw, word.hidden))
    for word in call.operands:
        key, _, value = word.text.partition("=")
        if key != "of":
            continue
        for part in call.writes(Word(value, word.glob, word.raw)):
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
        yield from call.writes(word)


def link(call: Call) -> Iterator[Part]:
    """A link to somewhere else makes later writes through it land there."""
    operands = call.operands
    for word in operands[:-1] if len(operands) > 1 else operands:
        yield from (part for part in call.writes(word) if part.risk > Risk.LOCAL_WRITE)


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


def tar(call: Call) -> Iterator[Part]:
    """Judge ``tar`` by its mode, in its three spellings."""
    mode = call.words[0].text if call.words else ""
    letters = mode if not mode.startswith("--") else ""
    long = " ".join(word.text for word in call.words if word.text.startswith("--"))
    extracts = "x" in letters or any(call.has(name) for name in ("-x", "--extract", "--get"))
    creates = any(letter in letters for letter in "cruA") or "--create" in long or call.has("-c", "-r", "-u")
    archive = call.value("-f", "--file")
    old_style = bool(mode) and not mode.startswith("-")
    operands = call.operands[1:] if old_style else call.operands
    if old_style and "f" in mode and operands:
        archive, operands = operands[0], operands[1:]
    if archive is not None and _REMOTE.match(archive.text) and not call.has("--force-local"):
        yield call.part(Risk.NETWORK_EGRESS, "the archive is on another machine")
    elif archive is not None:
        yield from call.writes(archive) if creates else call.reads(archive)
    if creates:
        for word in operands:
            yield from call.reads(word, recursive=True)
    if extracts and not call.has("-O", "--to-stdout"):
        yield call.part(Risk.LOCAL_WRITE, "extracts files")
        if call.has("-P", "--absolute-names") or "P" in letters:
            yield call.part(Risk.SYSTEM_WRITE, "extracts to absolute paths")
        if call.value("-C", "--directory") is None:
            yield from call.writes(Word("."))
    elif creates:
        yield call.part(Risk.LOCAL_WRITE, "writes an archive")
    elif not letters and not long:
        yield call.part(Risk.UNKNOWN, "the mode of tar is not given")


def archive(call: Call) -> Iterator[Part]:
    """Archivers whose first word is a mode, or that extract into the directory they run in."""
    yield from call.writes(Word("."))


def compress(call: Call) -> Iterator[Part]:
    """Judge compressors without files: they work on their input and output."""
    if not call.operands:
        yield call.part(Risk.SAFE, "works on its input and output")


def formatter(call: Call) -> Iterator[Part]:
    """Judge tools that either report or rewrite."""
    first = call.operands[0].text if call.operands else ""
    shows = call.has("--check", "--diff", "-d", "-l", "--list-different", "--dry-run", "--test")
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


_REMOVERS = frozenset({"rm", "unlink", "shred"})
_READERS = frozenset(
    {"awk", "base32", "base64", "cat", "cut", "egrep", "fgrep", "grep", "head", "hexdump", "less", "more"}
    | {"nl", "od", "rg", "sed", "sort", "strings", "tac", "tail", "xxd"}
)


def find(call: Call) -> Iterator[Part]:
    """Judge the actions of ``find`` on what it may find."""
    words = call.words
    starts: list[Word] = []
    for word in words:
        if word.text.startswith(("-", "(", "!", ",")) and word.text not in {"-", "-H", "-L", "-P"}:
            break
        if not word.text.startswith("-"):
            starts.append(word)
    starts = starts or [Word(".")]
    found = _found_names(words, starts)
    at = len(starts)
    while at < len(words):
        flag = words[at].text
        at += 1
        if flag in {"-exec", "-execdir", "-ok", "-okdir"}:
            end = next((i for i in range(at, len(words)) if words[i].text in {";", "+"}), len(words))
            yield from _find_exec(call, words[at:end], found)
            if at < end and words[at].text.rpartition("/")[2] in _REMOVERS:
                yield from _find_removes(call, found)
            elif at < end and words[at].text.rpartition("/")[2] in _READERS:
                yield from _find_reads(call, found)
            at = end + 1
        elif flag == "-delete":
            yield from _find_removes(call, found)
        elif flag in {"-fprint", "-fprint0", "-fls", "-fprintf"} and at < len(words):
            yield call.part(Risk.LOCAL_WRITE, "writes a list of files")
            yield from call.writes(words[at])
            at += 1
        elif flag == "-files0-from" and at < len(words):
            yield from call.reads(words[at])
        elif UNRESOLVED in flag and flag.startswith(UNRESOLVED) and at > len(starts) + 1:
            yield call.part(Risk.UNKNOWN, "an expression of find is not known before it runs")


def _find_removes(call: Call, found: list[Word]) -> Iterator[Part]:
    """Judge removing all that is found: file by file it is the whole tree, the repository's own files too."""
    for word in found:
        place = paths.place(word.text, call.context.scope.cwd, follow=False)
        yield call.part(*paths.judge_delete(place, call.context.where, recursive=True))


def _find_reads(call: Call, found: list[Word]) -> Iterator[Part]:
    """Judge reading all that is found beyond the workspace: credentials lie there like any file."""
    for word in found:
        place = paths.place(word.text, call.context.scope.cwd)
        if paths.reads_outside(place, call.context.where):
            yield call.part(Risk.SYSTEM_WRITE, "reads whatever lies there, credentials too")


def _found_names(words: list[Word], starts: list[Word]) -> list[Word]:
    """Return what ``{}`` may stand for: the start itself, or below it what a test lets through."""
    tests = {
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-regex",
        "-mtime",
        "-newer",
        "-size",
        "-empty",
        "-mmin",
    }
    given = [word.text for word in words if word.text in tests]
    if not given:
        return starts
    names = [words[at + 1] for at, word in enumerate(words[:-1]) if word.text in {"-name", "-iname"}]
    if len(given) == 1 and names:
        return [
            Word(f"{start.text}/{name.text}", glob=True, raw=start.raw, hidden=start.hidden)
            for start in starts
            for name in names
        ]
    return [Word(f"{start.text}/found", start.glob, start.raw, start.hidden) for start in starts]


def _find_exec(call: Call, inner: list[Word], found: list[Word]) -> Iterator[Part]:
    for place in found:
        filled = [
            Word(word.text.replace("{}", place.text), word.glob or place.glob, word.raw, place.hidden)
            if "{}" in word.text
            else word
            for word in inner
        ]
        yield from call.context.command(filled)


def fd(call: Call) -> Iterator[Part]:
    """``fd -x COMMAND``: the command runs on each hit, which may be anything."""
    for at, word in enumerate(call.words):
        if word.text in {"-x", "-X", "--exec", "--exec-batch"}:
            inner = [Word(w.text.replace("{}", UNRESOLVED), w.glob, w.raw) for w in call.words[at + 1 :]]
            yield from call.context.command([*inner, Word(UNRESOLVED, raw="…")])
            return


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


def zip_archive(call: Call) -> Iterator[Part]:
    """Judge ``zip``: what it packs, and the command that tests the archive."""
    for at, word in enumerate(call.words[:-1]):
        if word.text == "-TT":
            yield from call.runs(call.words[at + 1])
    for word in call.operands[1:]:
        yield from call.reads(word, recursive=True)
    for word in call.operands[:1]:
        yield from call.writes(word)


def inplace(call: Call) -> Iterator[Part]:
    """Judge edits in place."""
    if call.has("-i", "--inplace", "--in-place"):
        for word in call.operands[1:]:
            yield from call.writes(word)
