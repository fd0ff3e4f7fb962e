"""Parameter expansion: ``${x}`` with its operators, as far as the value is known."""

import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

from odek.trust.paths import UNRESOLVED
from odek.trust.shell.marks import SPACE
from odek.trust.shell.scope import Scope
from odek.trust.shell.values import UNKNOWN, Value

__all__ = ["Parameter", "apply", "parse_parameter"]

_NAME = re.compile(r"\$\{?(!?)([A-Za-z_]\w*|\d+|[@*#?$!-])")
_INDEX = re.compile(r"\[([^\]]*)\]")
_DEFAULT = re.compile(r":?([-=+?])")
# A pattern or replacement that stands for itself: no quotes, no expansions.
_SIMPLE = re.compile(r"[\w./*?+=:,@ -]*$")
_SLICE = re.compile(r":\s*(\d+|\s-\d+)(?::\s*(\d+))?$")
_ELEMENTS_LIMIT = 64
# A pattern may be tried at each character, all of it each time; no measurement behind this.
_TRIMMED_CHARACTERS_LIMIT = 512


class Parameter(msgspec.Struct, frozen=True):
    """A parsed expansion: the variable, what it may be, and what is done to it.

    ``operator`` is one of ``- = + ?`` for defaults, else the rest of the text, "" for none.
    """

    name: str
    value: Value
    operator: str = ""


def parse_parameter(text: str, scope: Scope) -> Parameter | None:
    """Parse the source of an expansion, None when it is no such thing."""
    match = _NAME.match(text)
    if match is None:
        return None
    name, rest = match[2], text[match.end() :].removesuffix("}" if text.startswith("${") else "")
    if name == "#" and rest:
        return Parameter(name, Value.of("0"))  # a length
    value = scope.value(name)
    if match[1]:
        pointed = [scope.value(target) for target in value.texts if target.isidentifier()]
        value = pointed[0] if len(pointed) == len(value.texts) == 1 else UNKNOWN
    if index := _INDEX.match(rest):
        rest = rest[index.end() :]
        value = _element(value, index[1])
    elif name not in {"@", "*"}:
        value = _element(value, "0")
    if rest.startswith(("#", "%", "/", "^", ",", "@")) or _SLICE.match(rest):
        return Parameter(name, value, rest)
    default = _DEFAULT.match(rest)
    return Parameter(name, value, default[1] if default else rest)


def _element(value: Value, index: str) -> Value:
    """Return one element of an array: the whole for ``@``, the first, or any."""
    if index in {"@", "*"} or not any(SPACE in text for text in value.texts):
        return value
    elements = [element for text in value.texts for element in text.split(SPACE)]
    texts = tuple(dict.fromkeys(elements)) if len(elements) <= _ELEMENTS_LIMIT else (UNRESOLVED,)
    return Value(texts, value.foreign or UNRESOLVED in texts, value.hidden)


def apply(parameter: Parameter, *, is_set: bool) -> Value:
    """Return the value with the operator carried out; what cannot be is foreign if ``is_set``."""
    value, operator = parameter.value, parameter.operator
    if operator in {"", "?"}:
        return value
    change = _change(operator)
    if change is None:
        return Value((UNRESOLVED,), value.foreign or is_set, value.hidden)
    return value.map(lambda text: SPACE.join(map(change, text.split(SPACE))))


def _change(operator: str) -> Callable[[str], str] | None:
    """Return what an operator does to a text, None when that cannot be said."""
    if (match := re.match(r"(##?|%%?)(.*)", operator, re.DOTALL)) and _SIMPLE.match(match[2]):
        return _trimming(match[1], match[2])
    if slice_ := _SLICE.match(operator):
        start = int(slice_[1])
        end = start + int(slice_[2]) if slice_[2] else None
        return lambda text: text[start:end] if UNRESOLVED not in text else UNRESOLVED
    match operator:
        case "^^":
            return str.upper
        case ",,":
            return str.lower
        case "^":
            return lambda text: text[:1].upper() + text[1:]
        case ",":
            return lambda text: text[:1].lower() + text[1:]
    replaced = re.match(r"/(/?)([^/]+)(?:/(.*))?$", operator, re.DOTALL)
    if replaced and _SIMPLE.match(replaced[2]) and not re.search(r"[*?]", replaced[2]):
        return _replacing(replaced[2], replaced[3] or "", everywhere=bool(replaced[1]))
    return None


def _replacing(old: str, new: str, *, everywhere: bool) -> Callable[[str], str] | None:
    if not _SIMPLE.match(new):
        return None
    return lambda text: text.replace(old, new) if everywhere else text.replace(old, new, 1)


def _trimming(operator: str, pattern: str) -> Callable[[str], str]:
    """Return what removes the shortest or longest part that matches, at the start or the end."""
    at_end, longest = operator[0] == "%", len(operator) == 2
    # The end is the start of what is read backwards; no pattern here has brackets.
    match = _prefix(pattern[::-1] if at_end else pattern, longest=longest).match

    def trim(text: str) -> str:
        if len(text) > _TRIMMED_CHARACTERS_LIMIT:
            return UNRESOLVED
        if not (found := match(text[::-1] if at_end else text)):
            return text
        return text[: len(text) - found.end()] if at_end else text[found.end() :]

    return trim


@lru_cache(maxsize=64)
def _prefix(pattern: str, *, longest: bool) -> re.Pattern[str]:
    """Return what matches the shortest or longest start of a text that ``pattern`` does, in linear time.

    What stands between two stars is best taken as early as it can be, and never looked for
    again; only what is behind the last star decides how long the match is.
    """
    first, *rest = (re.escape(part).replace(r"\?", ".") for part in pattern.split("*"))
    between = "".join(f"(?>.*?{part})" for part in rest[:-1])
    last = "".join(f"{'.*' if longest else '.*?'}{part}" for part in rest[-1:])
    return re.compile(first + between + last, re.DOTALL)
