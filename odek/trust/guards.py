"""Paths that are guarded wherever they lie: those that hold credentials, and those that are obeyed.

A component may be a pattern: ``*``, ``?`` and ``[`` match as in a shell, ``UNRESOLVED``
stands for a part that is not known and matches anything.
"""

import os
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Final

from odek.patterns import late_pattern

__all__ = ["UNRESOLVED", "is_credential_name", "is_obeyed", "may_reach_credential"]

UNRESOLVED: Final = "\x00"
"""A part of a word that only the running shell knows; NUL occurs in no real word."""

_PATTERN: Final = late_pattern(r"[*?\[\x00]")
# No file name is longer; to make sense of a longer pattern takes the square of its length.
_PATTERN_CHARACTERS_LIMIT = 255
# Nobody means a path of more components; each that is a pattern is held against all entries
# (measured: 100 of them take 0.03 s).
_PARTS_LIMIT = 100
_CREDENTIAL_NAME: Final = late_pattern(
    r"(id_(rsa|dsa|ecdsa|ed25519)(_sk)?|ssh_host_\w+_key|secrets\.env|.*\.(kdbx|keychain-db|p12|pfx|jks))$",
    re.IGNORECASE,
)
# A pattern that says no more than the kind of a file: it matches what is there, and is not meant for a name.
_ONLY_A_KIND: Final = late_pattern(r"\*+(\.\w+)?$")


def is_credential_name(name: str) -> bool:
    """Whether a file of this name is a credential in any directory."""
    return _CREDENTIAL_NAME.match(name) is not None


def may_reach_credential(parts: Sequence[str], *, below_home: bool, recursive: bool) -> bool:
    """Whether ``parts`` may name a guarded path, something below it, or (recursive) above it.

    ``parts`` are the components below the home directory, or else below the root.
    """
    home, root = _credentials()
    table = home if below_home else root
    if not parts:
        return recursive and bool(table)
    for entry in _candidates(parts[0], table):
        if len(parts) < len(entry) and not recursive:
            continue
        if all(may_match(part, name) for part, name in zip(parts, entry, strict=False)):
            return True
    return False


def is_obeyed(parts: Sequence[str], directory: str, *, whole: bool = False) -> bool:
    """Whether ``parts``, components below ``directory``, may name a file that is obeyed later.

    ``whole`` says that all below it is put there too, whatever that is.
    """
    if len(parts) > _PARTS_LIMIT:
        return True
    for start, first in enumerate(parts):
        found = parts[start:]
        for entry in _candidates(first, _obeyed()):
            inside = whole and len(found) < len(entry)
            if len(found) < len(entry) and not inside:
                continue
            matches = all(may_match(part, name) for part, name in zip(found, entry, strict=False))
            if matches and _is_meant(found, entry, parts[:start], directory, inside=inside):
                return True
    return False


def _is_meant(
    found: Sequence[str], entry: Sequence[str], above: Sequence[str], directory: str, *, inside: bool
) -> bool:
    """Whether a pattern that would match an obeyed file is written for it, or meets one that is there."""
    if not any(_ONLY_A_KIND.match(part) for part in found[: len(entry)]):
        return True
    if inside or any(name.startswith(".") for name in entry):
        return False  # which such a pattern does not match
    return os.path.lexists("/".join((directory, *above, *entry)))


def may_match(part: str, name: str) -> bool:
    """Whether a component, perhaps a pattern, may be ``name``; case does not count."""
    if name in {part, "*"}:
        return True
    if not _PATTERN.search(part):
        return part.casefold() == name.casefold()
    if len(part) > _PATTERN_CHARACTERS_LIMIT:
        return True
    return fnmatchcase(name.casefold(), part.casefold().replace(UNRESOLVED, "*"))


_Table = dict[str, list[tuple[str, ...]]]


def _candidates(first: str, table: _Table) -> Iterable[tuple[str, ...]]:
    """Return the entries of a table that may begin with ``first``."""
    if _PATTERN.search(first):
        return [entry for entries in table.values() for entry in entries]
    return table.get(first.casefold(), ())


def _table(entries: Iterable[str]) -> _Table:
    """Return entries by their first component, which is never a pattern."""
    table: _Table = {}
    for entry in entries:
        parts = tuple(entry.split("/"))
        table.setdefault(parts[0].casefold(), []).append(parts)
    return table


def _lines(name: str) -> list[str]:
    source = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [line for line in source.splitlines() if line and not line.startswith("#")]


@lru_cache(maxsize=1)
def _credentials() -> tuple[_Table, _Table]:
    """Return the guarded paths, those below the home directory first."""
    lines = _lines("guarded_paths.txt")
    home = _table(line[2:] for line in lines if line.startswith("~/"))
    return home, _table(line[1:] for line in lines if line.startswith("/"))


@lru_cache(maxsize=1)
def _obeyed() -> _Table:
    return _table(_lines("obeyed_paths.txt"))
