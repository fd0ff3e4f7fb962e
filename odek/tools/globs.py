"""Glob patterns over relative paths, as git reads them. Pure, and never slow whatever the pattern."""

import re
from collections.abc import Sequence

from odek.errors import ToolError
from odek.patterns import late_pattern

__all__ = ["Glob", "PathPattern"]

ALTERNATIVES = 100
"""Patterns that braces may expand to; no measurement behind this."""

_BRACES = late_pattern(r"\{([^{},]*,[^{}]*)\}")
# What a bracket holds, in the order in which git reads it: a range may begin or end with any character.
_HIGH = r"(?:\\.|[^\]\\])"
_BRACKET_FIRST = rf"\](?:-{_HIGH})?"  # in the first place it closes nothing
_NAMED = r"[^\]]{0,64}"  # git's longest name has six letters; without a bound many "[:" cost the square
_MEMBERS = rf"\[:{_NAMED}:\]|(?:\\.|[^\]\\])-{_HIGH}|\\.|[^\]\\]"
_TOKEN = late_pattern(
    r"(?P<star>\*+)|(?P<any>\?)|\\(?P<escaped>.)"
    r"|\[(?P<negated>[!^]?)(?P<set>(?>" + _BRACKET_FIRST + r")?+(?>" + _MEMBERS + r")*+)\]"
    r"|(?P<plain>[^\\\[])",
    re.DOTALL,
)
_MEMBER = late_pattern(
    rf"\[:(?P<named>{_NAMED}):\]|" r"(?P<low>\\.|[^\\])-(?P<high>\\.|[^\]\\])|(?P<one>\\.|[^\\])", re.DOTALL
)
_NAMED_SETS = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
_NOTHING = late_pattern(r"(?!)")
_ANY_NAME = late_pattern("")


class PathPattern:
    r"""One pattern of names joined by slashes, matched against a whole path.

    ``*`` and ``?`` stay within a name, ``**`` stands for any number of directories,
    ``[a-z]``, ``[!a]`` and ``[[:alpha:]]`` for one character, ``\*`` for a star. A
    malformed pattern matches nothing.
    """

    def __init__(self, pattern: str) -> None:
        parts = [None if part == "**" else _compile(part) for part in _split(pattern)]
        if parts[-1] is None:
            parts.append(_ANY_NAME)  # what is below a directory is not the directory itself
        self._parts = parts

    def matches(self, names: Sequence[str]) -> bool:
        """Tell whether the path of these names matches.

        Greedy: only the newest ``**`` ever has to take one more name.
        """
        parts = self._parts
        name = part = 0
        retry_name, retry_part = 0, -1
        while name < len(names):
            if part < len(parts) and parts[part] is None:
                retry_name, retry_part = name, part
                part += 1
            elif part < len(parts) and (wanted := parts[part]) and wanted.match(names[name]):
                name, part = name + 1, part + 1
            elif retry_part >= 0:
                retry_name += 1
                name, part = retry_name, retry_part + 1
            else:
                return False
        return part == len(parts)


class Glob:
    """A pattern that a person or model writes: a path pattern with ``{a,b}``.

    A pattern without a slash matches names at any depth.

    Raises:
        ToolError: it is empty, leaves the directory, or has too many alternatives.
    """

    def __init__(self, pattern: str) -> None:
        relative = pattern.removeprefix("./").rstrip("/")
        if not relative or relative.startswith(("/", "~")) or ".." in relative.split("/"):
            raise ToolError(f"the pattern {pattern!r} must be relative to path, such as src/**/*.py")
        self._alternatives = [
            PathPattern(part if "/" in part else f"**/{part}") for part in _expand(relative)
        ]

    def matches(self, relative: str) -> bool:
        """Tell whether a path, relative and with slashes, matches as a whole."""
        names = relative.split("/")
        return any(pattern.matches(names) for pattern in self._alternatives)


def _expand(pattern: str) -> list[str]:
    """Return the patterns that ``{a,b}`` stand for, innermost braces first."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        head = waiting.pop()
        if (braces := _BRACES.search(head)) is None:
            done.append(head)
        else:
            waiting += [head[: braces.start()] + part + head[braces.end() :] for part in braces[1].split(",")]
        if len(done) + len(waiting) > ALTERNATIVES:
            raise ToolError(f"the pattern {pattern!r} has more than {ALTERNATIVES} alternatives")
    return done


def _split(pattern: str) -> list[str]:
    """Return the parts between slashes outside of brackets; the last one has what is malformed."""
    parts, start, position = [], 0, 0
    while token := _TOKEN.match(pattern, position):
        position = token.end()
        if (token["plain"] or token["escaped"]) == "/":
            parts.append(pattern[start : token.start()])
            start = position
    return [*parts, pattern[start:]]


def _compile(part: str) -> re.Pattern[str]:
    """Translate the pattern of one name."""
    atoms: list[str] = []  # "" is a star
    position = 0
    while position < len(part):
        token = _TOKEN.match(part, position)
        if token is None:
            return _NOTHING
        atoms.append(_atom(token))
        position = token.end()
    head, *others = _between_stars(atoms)
    # What follows a star is best taken where it first occurs: atomic groups never look back.
    middle = "".join(f"(?>.*?{run})" for run in others[:-1])
    end = f".*{others[-1]}" if others else ""
    try:
        return re.compile(f"(?s:{head}{middle}{end})\\Z")
    except re.error:  # such as the range z-a
        return _NOTHING


def _between_stars(atoms: Sequence[str]) -> list[str]:
    """Return what is before, between and after the stars; one piece more than there are stars."""
    pieces = [""]
    for atom in atoms:
        if atom:
            pieces[-1] += atom
        else:
            pieces.append("")
    return pieces


def _atom(token: re.Match[str]) -> str:
    if token["star"]:
        return ""
    if token["any"]:
        return "."
    if token["set"] is not None:
        return _set(token["set"], negated=bool(token["negated"]))
    return re.escape(token["escaped"] or token["plain"])


def _set(members: str, *, negated: bool) -> str:
    """Translate what a bracket holds."""
    out: list[str] = []
    for member in _MEMBER.finditer(members):
        if member["named"] is not None:
            if member["named"] not in _NAMED_SETS:
                return "(?!)"
            out.append(_NAMED_SETS[member["named"]])
        elif member["one"]:
            out.append(re.escape(member["one"][-1]))
        else:
            low, high = member["low"][-1], member["high"][-1]
            out.append(re.escape(low))  # git takes it alone too, where the range runs backwards
            if low < high:
                out.append(f"-{re.escape(high)}")
    return f"[{'^' if negated else ''}{''.join(out)}]"
