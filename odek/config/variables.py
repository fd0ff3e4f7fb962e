"""``ODEK_*`` variables: which key one sets, and its text as a value of that key."""

from collections.abc import Iterable
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin

from odek.config.checking import nearest
from odek.config.keys import Key, bare, table, variables
from odek.config.settings import UNUSED
from odek.patterns import late_pattern

__all__ = ["DEBUG_VARIABLE", "HOME_VARIABLE", "complaint", "in_order", "is_unused", "parsed"]

HOME_VARIABLE = "ODEK_HOME"
"""Moves the directory of the files; it is not a key, for the files are found by it."""

DEBUG_VARIABLE = "ODEK_DEBUG"
"""Shows where a fault of odek's own arose; it is not a key, for it matters before any file is read."""

_TRUE, _FALSE = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})
# Bounded, so that no text becomes an infinite or endless number.
_INTEGER = late_pattern(r"[+-]?\d{1,18}")
_NUMBER = late_pattern(r"[+-]?(\d{1,18}(\.\d{0,18})?|\.\d{1,18})([eE][+-]?\d{1,2})?")


def in_order(names: Iterable[str]) -> list[str]:
    """Return ``names`` so that the special name of a key comes after its general one, and wins."""
    return sorted(names, key=lambda name: (name in _special_names(), name))


def parsed(key: Key, text: str) -> Any:
    """Return ``text`` as a value of the key's type, or as it is if it does not read as one."""
    base = bare(key.annotation)
    if NoneType in get_args(base):
        if text.lower() in {"null", "none"}:
            return None
        base = bare(next(arg for arg in get_args(base) if arg is not NoneType))
    if get_origin(base) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    if base is bool and text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    if base is int and _INTEGER.fullmatch(text):
        return int(text)
    if base is float and _NUMBER.fullmatch(text):
        return float(text)
    return text


def is_unused(name: str) -> bool:
    """Say whether a variable sets a key that is accepted but not used."""
    path = name.removeprefix("ODEK_").lower()
    unused = (key.replace(".", "_") for key in UNUSED)
    return any(path == key or path.startswith(f"{key}_") for key in unused)


def complaint(name: str) -> str:
    """Return what to say of an ``ODEK_*`` variable that sets no key."""
    guess = nearest(name, [*variables(), HOME_VARIABLE])
    return f"{name} is not known; " + (f"did you mean {guess}?" if guess else "it is ignored")


@cache
def _special_names() -> frozenset[str]:
    return frozenset(key.facets.env for key in table().values() if key.facets.env)
