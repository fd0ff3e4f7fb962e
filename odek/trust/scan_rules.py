"""What a text may not say if it is to be remembered: the rules in ``rules/``.

The head of ``demands.txt`` explains their notation. Most rules are tried only where one of their
first words stands, so that a text costs a look at its words, and little more.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from pathlib import Path

import msgspec

__all__ = ["SENTENCE", "Occasion", "RuleBook", "ScanRule", "rule_book"]


class ScanRule(msgspec.Struct, frozen=True):
    """A rule with its name and reason.

    The pattern is matched where one of ``starts`` stands, ``^`` being the beginning of any
    sentence; or, if one of ``hints`` occurs, it is searched for. One of ``needs`` and one of
    ``also``, if there are any, must occur besides. All are in lower case.
    A match of a rule that is not ``quoted`` passes where it is quoted in a text about attacks.
    ``encoded`` rules are for text that somebody went to the length of encoding.
    """

    name: str
    reason: str
    starts: tuple[str, ...]
    hints: tuple[str, ...]
    needs: tuple[str, ...]
    also: tuple[str, ...]
    source: str
    cased: bool = False
    quoted: bool = False
    encoded: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled when it is first tried: most never are."""
        return _compiled(self.source, self.cased)

    def matches(self, text: str, places: Sequence[int]) -> Iterator[re.Match[str]]:
        """Yield the matches in ``text``; ``places`` is where its starts stand, as a rule book found out."""
        if self.hints:
            yield from self.pattern.finditer(text)
            return
        match = self.pattern.match
        for at in places:
            if found := match(text, at):
                yield found


@lru_cache(maxsize=1024)  # far more than there are rules
def _compiled(source: str, cased: bool) -> re.Pattern[str]:  # noqa: FBT001 - of this module alone
    return re.compile(source, re.DOTALL | (re.NOFLAG if cased else re.IGNORECASE))


_FILES = ("demands.txt", "languages.txt", "frames.txt", "commands.txt")

Occasion = tuple[ScanRule, list[int]]
"""A rule to be tried, and where its starts stand."""

# Of a word, so much is looked up in a table.
_PREFIX = 3
_WORD = re.compile(r"[a-z0-9]+")
SENTENCE = "^"
_SENTENCE = re.compile(r"\A|[.!?;\n]\s+")


class RuleBook:
    """The rules, and which of them a text gives occasion for.

    All pieces of all rules are looked for at once, by the words of the text; only those that
    may be there are then searched for in it.
    """

    def __init__(self, rules: tuple[ScanRule, ...]) -> None:
        self.rules = rules
        # Which rules a piece is for.
        self._occurring: dict[str, list[int]] = defaultdict(list)
        self._needed: dict[str, list[int]] = defaultdict(list)
        self._also: dict[str, list[int]] = defaultdict(list)
        for number, rule in enumerate(rules):
            for piece in rule.starts + rule.hints:
                self._occurring[piece].append(number)
            for piece in rule.needs:
                self._needed[piece].append(number)
            for piece in rule.also:
                self._also[piece].append(number)
        # Which pieces a word of a text, or its beginning, gives rise to.
        self._by_word: dict[str, list[str]] = defaultdict(list)
        self._by_prefix: dict[str, list[str]] = defaultdict(list)
        self._inside: list[str] = []
        self._foreign: list[str] = []
        for piece in self._occurring | self._needed | self._also:
            word = _WORD.match(piece)
            if not piece.isascii():
                self._foreign.append(piece)
            elif word is None:
                self._inside += [piece] if piece != SENTENCE else []
            elif word[0] != piece or len(piece) < _PREFIX:
                self._by_word[word[0]].append(piece)
            else:
                self._by_prefix[piece[:_PREFIX]].append(piece)

    def occasions(self, lowered: str, words: AbstractSet[str]) -> Iterator[Occasion]:
        """Yield the rules that a text in lower case, of those words in ASCII, gives occasion for."""
        pieces = [SENTENCE, *(piece for piece in self._inside if piece in lowered)]
        for word in words & self._by_word.keys():
            pieces += [piece for piece in self._by_word[word] if piece == word or piece in lowered]
        by_prefix = self._by_prefix
        for word in words:
            if (prefix := word[:_PREFIX]) in by_prefix:
                pieces += [piece for piece in by_prefix[prefix] if word.startswith(piece)]
        yield from self._met(set(pieces), lowered)

    def foreign_occasions(self, lowered: str) -> Iterator[Occasion]:
        """Yield the rules that what is not ASCII gives occasion for."""
        yield from self._met({piece for piece in self._foreign if piece in lowered}, lowered)

    def _met(self, pieces: set[str], lowered: str) -> Iterator[Occasion]:
        needed = {number for piece in pieces & self._needed.keys() for number in self._needed[piece]}
        also = {number for piece in pieces & self._also.keys() for number in self._also[piece]}
        occurring: dict[int, list[str]] = defaultdict(list)
        for piece in pieces & self._occurring.keys():
            for number in self._occurring[piece]:
                rule = self.rules[number]
                if (number in needed or not rule.needs) and (number in also or not rule.also):
                    occurring[number].append(piece)
        places = _Places(lowered)
        for number in sorted(occurring):
            rule = self.rules[number]
            found = {at for piece in occurring[number] for at in places.of(piece)} if rule.starts else ()
            yield rule, sorted(found)


class _Places:
    """Where pieces stand in a text in lower case: at the beginning of a word if they begin with a letter."""

    def __init__(self, lowered: str) -> None:
        self._lowered = lowered
        self._of_words: dict[str, list[int]] = {}
        self._found: dict[str, list[int]] = {}

    def of(self, piece: str) -> list[int]:
        """Return the places of ``piece``."""
        if piece not in self._found:
            self._found[piece] = list(self._found_anew(piece))
        return self._found[piece]

    def _found_anew(self, piece: str) -> Iterator[int]:
        if piece == SENTENCE:
            return (match.end() for match in _SENTENCE.finditer(self._lowered))
        return self._in_words(piece) if _WORD.match(piece) else self._anywhere(piece)

    def _in_words(self, piece: str) -> Iterator[int]:
        if not self._of_words:
            for match in _WORD.finditer(self._lowered):
                self._of_words.setdefault(match[0][:_PREFIX], []).append(match.start())
        word = _WORD.match(piece)
        for at in self._of_words.get(word[0][:_PREFIX], ()) if word else ():
            if self._lowered.startswith(piece, at):
                yield at

    def _anywhere(self, piece: str) -> Iterator[int]:
        at = self._lowered.find(piece)
        while at >= 0:
            yield at
            at = self._lowered.find(piece, at + 1)


@lru_cache(maxsize=1)
def rule_book() -> RuleBook:
    """Read the rules, once."""
    pieces: dict[str, str] = {}
    rules: list[ScanRule] = []
    for name in _FILES:
        source = (Path(__file__).with_name("rules") / name).read_text(encoding="utf-8")
        for block in re.split(r"\n(?=\S)", re.sub(r"(?m)^#.*\n|^\n", "", source.replace("\n        ", ""))):
            head, *lines = block.splitlines()
            body = [line.strip() for line in lines]
            if head.endswith(" ="):
                pieces[head[:-2]] = _filled("".join(body), pieces)
            else:
                rules.append(_rule(head, body, pieces))
    return RuleBook(tuple(rules))


def _filled(text: str, pieces: dict[str, str]) -> str:
    return re.sub(r"\{([A-Z]+)\}", lambda match: pieces[match[1]], text)


def _rule(head: str, lines: list[str], pieces: dict[str, str]) -> ScanRule:
    name, _, reason = head.partition(": ")
    words: dict[str, list[str]] = {"starts": [], "hints": [], "needs": [], "also": []}
    flags: set[str] = set()
    alternatives: list[str] = []
    for line in lines:
        first, _, rest = line.partition(" ")
        if first in words:
            words[first] += [word.replace("␠", " ") for word in rest.split()]
        elif line.startswith("!"):
            flags = set(line.replace("!", "").split())
        else:
            alternatives.append(line)
    pattern = _filled("|".join(alternatives), pieces)
    # A space is any white space, except inside a character class and where it is counted.
    pattern = re.sub(r"(?<!\[) (?![\]*+?{])", r"\\s+", pattern)
    return ScanRule(
        name,
        reason,
        tuple(words["starts"]),
        tuple(words["hints"]),
        tuple(words["needs"]),
        tuple(words["also"]),
        pattern,
        "cased" in flags,
        "quoted" in flags,
        "encoded" in flags,
    )
