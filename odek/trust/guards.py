"""Paths that are guarded wherever they lie: those that hold credentials, and those that are obeyed.

A component may be a pattern: ``*``, ``?`` and ``[`` match as in a shell, ``UNRESOLVED``
stands for a part that is not known and matches anything.
"""

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Final

from odek.patterns import late_pattern

__all__ = ["UNRESOLVED", "is_credential_name", "is_obeyed", "may_reach_credential"]

UNRESOLVED: Final = "\x00"
"""A part of a word that only the running shell knows; NUL occurs in no real word."""

_PATTERN: Final = late_pattern(r"[*?\[\x00]")
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
    for entry in home if below_home else root:
        if len(parts) < len(entry) and not recursive:
            continue
        if all(may_match(part, name) for part, name in zip(parts, entry, strict=False)):
            return True
    return False


def is_obeyed(parts: Sequence[str], directory: str, *, whole: bool = False) -> bool:
    """Whether ``parts``, components below ``directory``, may name a file that is obeyed later.

    ``whole`` says that all below it is put there too, whatever that is.
    """
    if whole and parts and any(_ends_inside(parts, entry) for entry in _obeyed()):
        return True
    for entry in _obeyed():
        for start in range(len(parts) - len(entry) + 1):
            found = parts[start : start + len(entry)]
            if all(map(may_match, found, entry)) and _is_meant(found, entry, parts[:start], directory):
                return True
    return False


def _ends_inside(parts: Sequence[str], entry: Sequence[str]) -> bool:
    """Whether ``parts`` ends with a directory that an entry lies in."""
    return any(
        all(map(may_match, parts[-length:], entry[:length]))
        and not any(_ONLY_A_KIND.match(part) for part in parts[-length:])
        for length in range(1, min(len(parts), len(entry) - 1) + 1)
    )


def _is_meant(found: Sequence[str], entry: Sequence[str], above: Sequence[str], directory: str) -> bool:
    """Whether a pattern that would match an obeyed file is written for it, or meets one that is there."""
    if not any(_ONLY_A_KIND.match(part) for part in found):
        return True
    return os.path.lexists(Path(directory, *above, *entry))


def may_match(part: str, name: str) -> bool:
    """Whether a component, perhaps a pattern, may be ``name``; case does not count."""
    if name in {part, "*"}:
        return True
    if not _PATTERN.search(part):
        return part.casefold() == name.casefold()
    return fnmatchcase(name.casefold(), part.casefold().replace(UNRESOLVED, "*"))


def _lines(name: str) -> list[str]:
    source = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [line for line in source.splitlines() if line and not line.startswith("#")]


@lru_cache(maxsize=1)
def _credentials() -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return the components of guarded paths, those below the home directory first."""
    lines = _lines("guarded_paths.txt")
    home = [tuple(line[2:].split("/")) for line in lines if line.startswith("~/")]
    return home, [tuple(line[1:].split("/")) for line in lines if line.startswith("/")]


@lru_cache(maxsize=1)
def _obeyed() -> list[tuple[str, ...]]:
    return [tuple(line.split("/")) for line in _lines("obeyed_paths.txt")]
