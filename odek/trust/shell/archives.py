"""Checks of programs that pack and unpack, and of those that apply patches.

What is unpacked may bring along files that are obeyed later, such as ``.git/hooks`` or
``.envrc``. An archive of the workspace is as trustworthy as the workspace; one from outside,
unpacked into the workspace, is not.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from odek.trust import paths
from odek.trust.paths import UNRESOLVED
from odek.trust.risk import Part, Risk
from odek.trust.shell.call import Call
from odek.trust.shell.outputs import Names, Text, Unknown
from odek.trust.shell.words import Word

__all__ = ["archive", "cpio", "merges", "patch", "patched", "tar", "zip_archive"]

_REMOTE: Final = re.compile(r"(\w[\w.-]*@)?[\w.-]+:(?!//)|\w+://")
_HERE: Final = Word(".")
_PATCH_TARGET: Final = re.compile(
    r"^(?:\+\+\+ |--- |Index: |rename to |copy to |diff --git \S+ )(?:[ab]/)?([^\t\n]+)", re.MULTILINE
)
_MOST_DIRECTORIES: Final = 24  # above a file that a patch names; nobody's are so deep
_PACKS: Final = frozenset("acurR")
_SHOWS: Final = frozenset("ltip")


def _unpacks(call: Call, sources: Sequence[Word], target: Word) -> Iterator[Part]:
    """Judge unpacking ``sources``, or else the input, below ``target``."""
    if sources:
        from_outside = any(map(call.context.is_outside, sources))
    else:
        stdin = call.context.stdin[-1] if call.context.stdin else None
        from_outside = isinstance(stdin, Unknown) and not stdin.inside
    workspace = str(call.context.where.workspace)
    place = next((at for at in call.context.places(target) if paths.is_inside(at, workspace)), None)
    if from_outside and place is not None:
        reason = "unpacks into the workspace what comes from outside: it may hold files that are obeyed later"
        yield call.part(Risk.SYSTEM_WRITE, reason, place)


def _reads_listed(call: Call) -> Iterator[Part]:
    """Judge reading the files whose names stand in the input."""
    match call.context.stdin[-1] if call.context.stdin else Unknown():
        case Text(text):
            names = [Word(line, raw=line) for line in re.split(r"[\n\0]+", text) if line]
        case Names(words):
            names = list(words)
        case _:
            names = [Word(UNRESOLVED, raw="…", foreign=True)]
    for word in names:
        yield from call.reads(word, recursive=True)


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
    listed = call.value("-T", "--files-from")
    if old_style:
        for letter in mode:
            if letter in "fTCX" and operands:
                taken, operands = operands[0], operands[1:]
                archive = taken if letter == "f" else archive
                listed = taken if letter == "T" else listed
    if archive is not None and _REMOTE.match(archive.text) and not call.has("--force-local"):
        yield call.part(Risk.NETWORK_EGRESS, "the archive is on another machine")
    elif archive is not None:
        yield from call.writes(archive) if creates else call.reads(archive)
    if creates:
        yield from _packs(call, operands)
        if listed is not None:
            yield from (
                _reads_listed(call)
                if listed.text == "-"
                else call.reads(Word(UNRESOLVED, raw=listed.raw, foreign=True))
            )
    if extracts and not call.has("-O", "--to-stdout"):
        yield from _extracts(call, letters, archive)
    elif creates:
        yield call.part(Risk.LOCAL_WRITE, "writes an archive")
    elif not letters and not long:
        yield call.part(Risk.UNKNOWN, "the mode of tar is not given")


def _packs(call: Call, operands: Sequence[Word]) -> Iterator[Part]:
    """Judge what is put into an archive; ``-C`` moves the start of every name."""
    base = call.value("-C", "--directory")
    for word in operands:
        moved = base is not None and not word.text.startswith("/")
        name = base.with_text(f"{base.text}/{word.text}") if base is not None and moved else word
        yield from call.reads(name, recursive=True)


def _extracts(call: Call, letters: str, archive: Word | None) -> Iterator[Part]:
    yield call.part(Risk.LOCAL_WRITE, "extracts files")
    if call.has("-P", "--absolute-names") or "P" in letters:
        yield call.part(Risk.SYSTEM_WRITE, "extracts to absolute paths")
    directory = call.value("-C", "--directory")
    if directory is None:
        yield from call.writes(_HERE)
    named = [archive] if archive is not None and archive.text != "-" else []
    yield from _unpacks(call, named, directory or _HERE)


def archive(call: Call) -> Iterator[Part]:
    """Archivers whose first word is a mode, or that extract into the directory they run in."""
    mode = call.operands[0].text if call.operands else ""
    has_mode = len(mode) == 1 and call.name not in {"unzip", "unrar", "unar"}
    files = call.operands[1:] if has_mode else call.operands
    if has_mode and mode in _SHOWS:
        yield call.part(Risk.SAFE, "shows what an archive holds")
        return
    target = call.value("-d", "-o", "-D") or _HERE
    yield call.part(Risk.LOCAL_WRITE, "packs or unpacks files")
    yield from call.writes(target)
    if has_mode and mode in _PACKS:
        for word in files[1:]:
            yield from call.reads(word, recursive=True)
    elif files:
        yield from _unpacks(call, files[:1], target)


def cpio(call: Call) -> Iterator[Part]:
    """Judge ``cpio`` and ``pax``: they pack names from their input, or unpack it."""
    if call.has("-o", "--create", "-p", "--pass-through", "-w"):
        yield from _reads_listed(call)
        for word in call.operands:
            yield from call.writes(word)
    if call.has("-i", "--extract", "-r", "-p", "--pass-through"):
        source = call.value("-F", "-I", "--file", "-f")
        yield from call.writes(_HERE)
        yield from _unpacks(call, [source] if source is not None else [], call.value("-D") or _HERE)


def zip_archive(call: Call) -> Iterator[Part]:
    """Judge ``zip``: what it packs, and the command that tests the archive."""
    for at, word in enumerate(call.words[:-1]):
        if re.fullmatch(r"-\w*TT", word.text):
            yield from call.runs(call.words[at + 1])
    if any(word.text == "-@" for word in call.words):
        yield from _reads_listed(call)
    for word in call.operands[1:]:
        yield from call.reads(word, recursive=True)
    for word in call.operands[:1]:
        yield from call.writes(word)


def merges(call: Call, sources: Sequence[Word], target: Word) -> Iterator[Part]:
    """Judge copying what a directory holds, whatever that is, into ``target``."""
    whole = [
        word
        for word in sources
        if word.glob or word.text.endswith(("/", "/.")) or call.has("-T", "--no-target-directory")
    ]
    if whole:
        yield from _unpacks(call, whole, target)


def patch(call: Call) -> Iterator[Part]:
    """Judge ``patch``: the file that it is told to change, and those that the patch names."""
    yield from patched(call, call.operands[1:] or [call.value("-i", "--input")])
    for word in call.operands[:1]:
        yield from call.writes(word)


def patched(call: Call, sources: Sequence[Word | None]) -> Iterator[Part]:
    """Judge what patches change: those in the workspace are like it, others may change anything."""
    named = [word for word in sources if word is not None and word.text != "-"]
    yield from _unpacks(call, named, _HERE)
    if named:
        return
    for text in call.context.texts:
        for name in dict.fromkeys(_PATCH_TARGET.findall(text)):
            pieces = name.strip().split("/")
            if len(pieces) > _MOST_DIRECTORIES:
                yield call.part(Risk.SYSTEM_WRITE, f"patches a file below {len(pieces) - 1} directories")
                continue
            # How many leading directories do not count depends on more than the command.
            for start in range(len(pieces)) if name.strip() != "/dev/null" else ():
                yield from call.writes(Word("/".join(pieces[start:]) or ".", raw=name))
