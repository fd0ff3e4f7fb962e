"""What builtins set: ``read``, ``mapfile``, ``set --``, ``printf -v`` and the like."""

from collections.abc import Sequence
from typing import Final, assert_never

from odek.trust.paths import UNRESOLVED
from odek.trust.shell.marks import SPACE
from odek.trust.shell.outputs import Names, Number, Output, Text, Unknown, as_value
from odek.trust.shell.scope import Scope
from odek.trust.shell.values import FOREIGN, Value
from odek.trust.shell.words import Word

__all__ = ["run", "without_wrappers"]

_READ_VALUES: Final = frozenset("dinNptu")
_MAPFILE_VALUES: Final = frozenset("cCdnOsu")


def without_wrappers(words: Sequence[Word]) -> Sequence[Word]:
    """Return the words behind ``command``, ``builtin`` and their options."""
    while words and words[0].text in {"command", "builtin"}:
        words = words[1:]
        while words and words[0].text.startswith("-"):
            words = words[1:]
    return words


def run(words: Sequence[Word], stdin: Output | None, scope: Scope) -> list[Value]:
    """Carry out what a builtin sets; return values that it evaluates as arithmetic."""
    if not words:
        return []
    arguments = words[1:]
    match words[0].text:
        case "read":
            return _read(_names(arguments, _READ_VALUES) or [Word("REPLY")], stdin, scope)
        case "readarray" | "mapfile":
            return _read((_names(arguments, _MAPFILE_VALUES) or [Word("MAPFILE")])[-1:], stdin, scope)
        case "printf" if arguments[:1] and arguments[0].text.startswith("-v"):
            attached = arguments[0].text[2:]
            target = arguments[0].with_text(attached) if attached else (arguments[1:2] or [Word("")])[0]
            rest = arguments[1 if attached else 2 :]
            known = rest[0].text if len(rest) == 1 and rest[0].known and "%" not in rest[0].text else None
            hidden = any(word.hidden for word in rest)
            value = Value((UNRESOLVED,), foreign=True, hidden=hidden) if known is None else Value.of(known)
            return _set([target], value, scope)
        case "getopts":
            return _set(arguments[1:2], Value.of("a"), scope)
        case "set" | "shift":
            _set_positional(words, scope)
            return []
        case "let":
            return [Value((word.text,), word.foreign, word.hidden) for word in arguments]
        case "unset" | "test" | "[" if any("[" in w.text or w.foreign for w in _evaluated(words)):
            return [Value((word.text,), word.foreign, word.hidden) for word in _evaluated(words)]
    return []


def _evaluated(words: Sequence[Word]) -> list[Word]:
    """Return the variables that ``unset`` or ``test -v`` name: their subscripts are arithmetic."""
    if words[0].text == "unset":
        return [word for word in words[1:] if not word.text.startswith("-")]
    return [words[at + 1] for at, word in enumerate(words[:-1]) if word.text == "-v"]


def _names(arguments: Sequence[Word], takes_value: frozenset[str]) -> list[Word]:
    """Return the variables among the words of ``read``."""
    found: list[Word] = []
    skip = False
    for word in arguments:
        if skip:
            skip = False
        elif word.text.startswith("-") and len(word.text) > 1 and not found:
            letter = next((at for at, char in enumerate(word.text) if char in takes_value), None)
            array = word.text.find("a", 1)
            if array > 0 and (letter is None or array < letter):
                continue
            skip = letter == len(word.text) - 1
        else:
            found.append(word)
    return found


def _read(targets: Sequence[Word], stdin: Output | None, scope: Scope) -> list[Value]:
    match stdin:
        case None:
            value = FOREIGN
        case Text(text):
            lines = text.strip("\n").split("\n")
            words = [word for line in lines for word in line.split()]
            one = len(targets) == 1
            value = Value(
                tuple(dict.fromkeys(lines if one else words))[:32] or ("",), foreign=len(words) > 32
            )
        case Names() | Number() | Unknown():
            value = as_value(stdin)
        case unreachable:
            assert_never(unreachable)
    return _set(targets, value, scope)


def _set(targets: Sequence[Word], value: Value, scope: Scope) -> list[Value]:
    """Set variables; return what is evaluated: subscripts, and what an integer is given."""
    evaluated: list[Value] = []
    for word in targets:
        name, bracket, _ = word.text.partition("[")
        if word.foreign or word.hidden or bracket:
            evaluated.append(Value((word.text,), word.foreign, word.hidden))
        if name in scope.integers:
            evaluated.append(value)
        scope.assign(name, value)
    return evaluated


def _set_positional(words: Sequence[Word], scope: Scope) -> None:
    if words[0].text == "shift":
        rest = scope.value("@").texts[0].split(SPACE)[1:]
        old = scope.value("@")
        if scope.is_set("@"):
            scope.assign_positional([Value((text,), old.foreign, old.hidden) for text in rest])
        return
    texts = [word.text for word in words[1:]]
    at = (
        texts.index("--") + 1
        if "--" in texts
        else next((at for at, text in enumerate(texts) if not text.startswith(("-", "+"))), len(texts))
    )
    if "--" in texts or at < len(texts):
        scope.assign_positional(
            [Value((word.marked(),), word.foreign, word.hidden) for word in words[1 + at :]]
        )
