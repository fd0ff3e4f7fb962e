"""Values as files, variables and flags give them, checked against the keys.

A fault of one value is reported with all others of its source; it never drops or
changes another value.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin

import msgspec

from odek.config.addresses import is_address
from odek.config.keys import Key, bare, describe_type, sections, table
from odek.config.section import Section
from odek.config.settings import UNUSED
from odek.errors import ConfigError
from odek.text import clip_line, visible

__all__ = ["Checker", "Expand", "Invalid", "nearest"]

_SHOWN_PROBLEMS = 5  # more than fit the eye at once; mending these shows the rest
_OTHER_NAMES = {"limits": "budget", "max_concurrency": "subagent.max_concurrency"}

Expand = Callable[[str], str]
"""Substitutes variables in a text; raises ValueError with a sentence when it cannot."""


class Invalid:
    """Stands for a value that was reported and must not be used."""


_INVALID = Invalid()


class Checker:
    """Checks the values of one source and collects what is wrong with them."""

    def __init__(self, expand: Expand = str) -> None:
        self._expand = expand
        self._problems: list[str] = []

    def finish(self) -> None:
        """Raise one ConfigError for all problems, one a line; do nothing if there are none."""
        if not self._problems:
            return
        shown = self._problems[:_SHOWN_PROBLEMS]
        if more := len(self._problems) - len(shown):
            shown.append(f"… and {more} more")
        raise ConfigError("\n".join(shown))

    def report(self, label: str, problem: str) -> None:
        """Note that the value named by ``label`` is wrong."""
        self._problems.append(f"{label}: {problem}")

    def flatten(self, source: str, mapping: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Return the raw values of known keys by path, and the keys that this version does not use."""
        values: dict[str, Any] = {}
        unused: list[str] = []
        self._flatten(source, "", mapping, values, unused)
        return values, unused

    def _flatten(
        self, source: str, prefix: str, mapping: Mapping[str, Any], values: dict[str, Any], unused: list[str]
    ) -> None:
        for name, value in mapping.items():
            path = prefix + name
            if path in table():
                values[path] = value
            elif path in sections():
                if isinstance(value, dict):
                    self._flatten(source, f"{path}.", value, values, unused)
                else:
                    self.report(f"{source}: {path}", f"expected an object, got {_shown(value)}")
            elif path in UNUSED:
                unused.append(path)
            elif path != "$schema":  # which editors write to know the keys
                self.report(f"{source}: {visible(path, keep_newlines=False)}", f"unknown key{_hint(path)}")

    def check(self, label: str, key: Key, raw: Any, *, hidden: bool = False) -> Any:
        """Return ``raw`` as a value of ``key``, or an Invalid after noting what is wrong.

        A ``hidden`` value is not shown in the note, nor is that of a secret key.
        """
        secret = hidden or key.facets.secret
        value = self._value(label, key.annotation, raw, secret=secret)
        if key.facets.is_address and isinstance(value, str):
            value = value.strip()
            if value and not is_address(value):
                return self._refuse(label, key.annotation, raw, secret=secret)
        return value

    def _value(self, label: str, annotation: Any, raw: Any, *, secret: bool) -> Any:
        base = bare(annotation)
        origin = get_origin(base)
        if origin is tuple and isinstance(raw, list | tuple):
            element = get_args(base)[0]
            return self._whole(
                tuple(self._value(f"{label}[{n}]", element, v, secret=secret) for n, v in enumerate(raw))
            )
        if origin is dict and isinstance(raw, dict):
            return self._dict(label, base, raw)
        if isinstance(raw, dict) and isinstance(base, type) and issubclass(base, Section):
            return self._struct(label, base, raw)
        return self._leaf(label, annotation, raw, secret=secret)

    def _dict(self, label: str, base: Any, raw: Mapping[str, Any]) -> Any:
        key_type, value_type = get_args(base)
        found: dict[str, Any] = {}
        for name, value in raw.items():
            where = f"{label}.{visible(name, keep_newlines=False)}"
            if not _fits(key_type, name):
                self.report(where, f"unknown; expected {describe_type(key_type)}")
            found[name] = self._value(where, value_type, value, secret=False)
        return self._whole(found)

    def _struct(self, label: str, struct: type[Section], raw: Mapping[str, Any]) -> Any:
        fields = {field.name: field for field in msgspec.structs.fields(struct)}
        found: dict[str, Any] = {}
        for name, value in raw.items():
            where = f"{label}.{visible(name, keep_newlines=False)}"
            if name in fields:
                found[name] = self._value(where, fields[name].type, value, secret=False)
            else:
                self.report(where, f"unknown key; expected {', '.join(fields)}")
                found[name] = _INVALID
        for name in (name for name, field in fields.items() if field.required and name not in raw):
            self.report(f"{label}.{name}", f"missing; expected {describe_type(fields[name].type)}")
            found[name] = _INVALID
        whole = self._whole(found)
        return whole if isinstance(whole, Invalid) else struct(**whole)

    def _leaf(self, label: str, annotation: Any, raw: Any, *, secret: bool) -> Any:
        value = raw
        if isinstance(raw, str):
            try:
                value = self._expand(raw)
                value.encode()
            except UnicodeEncodeError:
                self.report(label, "the text holds half of a surrogate pair")
                return _INVALID
            except ValueError as error:
                self.report(label, str(error))
                return _INVALID
        if isinstance(value, str) and "\0" in value:
            self.report(label, "the text holds a NUL character")
            return _INVALID
        try:
            return msgspec.convert(value, annotation)
        except msgspec.ValidationError:
            return self._refuse(label, annotation, raw, secret=secret)

    def _refuse(self, label: str, annotation: Any, raw: Any, *, secret: bool) -> Invalid:
        # The raw text is shown, not what it became: that may be a secret.
        got = "something else (not shown)" if secret else _shown(raw)
        self.report(label, f"expected {describe_type(annotation)}, got {got}")
        return _INVALID

    @staticmethod
    def _whole(value: Any) -> Any:
        parts = value.values() if isinstance(value, dict) else value
        return _INVALID if any(isinstance(part, Invalid) for part in parts) else value


def nearest(name: str, known: list[str]) -> str:
    """Return the one of ``known`` that ``name`` was probably meant to be, or ""."""
    import difflib  # only for a message

    plain = _plain(name)
    by_plain = {_plain(candidate): candidate for candidate in known}
    swapped = (candidate for candidate in by_plain if sorted(candidate) == sorted(plain))
    if likely := plain if plain in by_plain else next(swapped, None):
        return by_plain[likely]
    found = difflib.get_close_matches(plain, by_plain, n=1, cutoff=0.7)
    return by_plain[found[0]] if found else ""


def _hint(path: str) -> str:
    known = [*table(), *sections()]
    owner, _, name = path.rpartition(".")
    siblings = {key.rpartition(".")[2]: key for key in known if key.rpartition(".")[0] == owner}
    elsewhere = [key for key in known if key.rpartition(".")[2] == name]
    guess = (
        _OTHER_NAMES.get(path)
        or siblings.get(nearest(name, list(siblings)))
        or (elsewhere[0] if len(elsewhere) == 1 else "")
        or nearest(path, known)
    )
    return f"; did you mean {guess}?" if guess else "; `odek config show` lists every key"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.lower())


def _fits(annotation: Any, value: Any) -> bool:
    try:
        msgspec.convert(value, annotation)
    except msgspec.ValidationError:
        return False
    return True


def _shown(value: Any) -> str:
    if isinstance(value, dict | list | tuple):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return '"' + clip_line(visible(value, keep_newlines=False), 40) + '"'
    if isinstance(value, bool) or value is None:
        return "null" if value is None else str(value).lower()
    return clip_line(str(value), 40) if isinstance(value, float) or abs(value) < 10**40 else "a huge number"
