"""Text with characters that act: private-use stand-ins for what the shell would obey in a word.

While a word is put together, pattern characters, braces, tildes and white space that act
because they are not quoted are carried as private-use characters. A second kind of braces
lists what a variable may be when that depends on which branch ran. A command that holds
such characters itself is refused before it is read.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from odek.trust.paths import UNRESOLVED

__all__ = [
    "ACTIVE_CHARACTERS",
    "ACTIVE_TILDE",
    "SPACE",
    "activated",
    "alternatives",
    "any_of",
    "fields",
    "has_pattern",
    "is_uncertain",
    "plain_text",
    "split_active",
    "tilde_activated",
    "with_active_pattern",
]

_STAR, _QUERY, _BRACKET, _OPEN, _COMMA, _CLOSE, ACTIVE_TILDE, SPACE = map(chr, range(0xE000, 0xE008))
_EITHER, _OR, _END = map(chr, range(0xE008, 0xE00B))
ACTIVE_CHARACTERS = re.compile("[\ue000-\ue00a]")
_ACTIVATE = str.maketrans("*?[{,}~", _STAR + _QUERY + _BRACKET + _OPEN + _COMMA + _CLOSE + ACTIVE_TILDE)
_PATTERN = str.maketrans("*?[", _STAR + _QUERY + _BRACKET)
_SPLIT = str.maketrans("*?[ \t\n", _STAR + _QUERY + _BRACKET + SPACE * 3)
_PLAIN = str.maketrans(_STAR + _QUERY + _BRACKET + _OPEN + _COMMA + _CLOSE + ACTIVE_TILDE + SPACE, "*?[{,}~ ")
_ACTS_AS_PATTERN = re.compile(f"[{_STAR}{_QUERY}{_BRACKET}]")
_RANGE = re.compile(r"(-?\d{1,9}|[A-Za-z])\.\.(-?\d{1,9}|[A-Za-z])(?:\.\.-?\d{1,9})?$")
# More alternatives than a person writes; beyond them the word counts as unresolved.
_ALTERNATIVES_LIMIT = 64


def activated(text: str) -> str:
    """Return unquoted source as marked text."""
    return text.translate(_ACTIVATE)


def tilde_activated(text: str) -> str:
    """Return the source of an assigned value as marked text: nothing but a tilde acts in it."""
    return text.replace("~", ACTIVE_TILDE)


def split_active(text: str) -> str:
    """Return the value of an unquoted expansion as marked text: it is split, and its patterns act."""
    return text.translate(_SPLIT)


def with_active_pattern(text: str) -> str:
    """Return plain text whose pattern characters act, as those of a name that a pattern matched."""
    return text.translate(_PATTERN)


def plain_text(marked: str) -> str:
    """Return marked text as the plain characters that it stands for."""
    return marked.translate(_PLAIN)


def has_pattern(marked: str) -> bool:
    """Whether characters in ``marked`` act as a file name pattern."""
    return _ACTS_AS_PATTERN.search(marked) is not None


def is_uncertain(marked: str) -> bool:
    """Whether it depends on which branch ran what ``marked`` is."""
    return _EITHER in marked


def any_of(texts: Sequence[str]) -> str:
    """Return marked text that stands for any one of ``texts``."""
    return texts[0] if len(texts) == 1 else _EITHER + _OR.join(texts) + _END


def fields(marked: str) -> Iterator[str]:
    """Yield the words that marked text falls into, braces and alternatives expanded."""
    for item in alternatives(_expanded(marked, _OPEN, _COMMA, _CLOSE) if _OPEN in marked else [marked]):
        if SPACE not in item:
            yield item
        else:
            yield from (field for field in item.split(SPACE) if field)


def alternatives(items: Sequence[str]) -> list[str]:
    """Return what each of ``items`` may be; too many are one that is not known."""
    found: list[str] = []
    for item in items:
        found += _expanded(item, _EITHER, _OR, _END) if _EITHER in item else [item]
    return found if len(found) <= _ALTERNATIVES_LIMIT else [UNRESOLVED]


def _expanded(marked: str, opening: str, separator: str, closing: str) -> list[str]:
    """Expand groups of one kind, the leftmost first."""
    done: list[str] = []
    todo = [marked]
    while todo:
        if len(todo) + len(done) > _ALTERNATIVES_LIMIT:
            return [UNRESOLVED]
        item = todo.pop()
        group = _first_group(item, opening, separator, closing)
        if group is None:
            done.append(item)
        else:
            start, end, choices = group
            todo.extend(item[:start] + choice + item[end:] for choice in reversed(choices))
    return done


def _first_group(
    marked: str, opening: str, separator: str, closing: str
) -> tuple[int, int, list[str]] | None:
    """Return start, end and choices of the leftmost group that is one."""
    open_groups: list[tuple[int, list[int]]] = []  # where each begins, and its separators
    found: tuple[int, int, list[str]] | None = None
    for index in (match.start() for match in re.finditer(f"[{opening}{separator}{closing}]", marked)):
        char = marked[index]
        if char == opening:
            open_groups.append((index, []))
        elif not open_groups:
            continue
        elif char == separator:
            open_groups[-1][1].append(index)
        else:
            start, separators = open_groups.pop()
            cuts = [start, *separators, index]
            choices = [marked[left + 1 : right] for left, right in pairwise(cuts)]
            chosen = choices if len(choices) > 1 or opening == _EITHER else _range(choices[0])
            if chosen and (found is None or start < found[0]):
                found = start, index + 1, chosen
            if found is not None and (not open_groups or found[0] < open_groups[0][0]):
                return found
    return found


def _range(body: str) -> list[str]:
    match = _RANGE.match(body)
    if match is None:
        return []
    low, high = match[1], match[2]
    if low.lstrip("-").isdigit() and high.lstrip("-").isdigit():
        first, last = sorted((int(low), int(high)))
        # The ends stand for a long run of numbers: no path turns dangerous in its middle.
        values = list(range(first, last + 1)) if last - first < _ALTERNATIVES_LIMIT // 2 else [first, last]
        return [str(value) for value in values]
    if low.isalpha() and high.isalpha():
        first, last = sorted((ord(low), ord(high)))
        return [chr(code) for code in range(first, last + 1)]
    return []
