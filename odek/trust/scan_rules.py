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


_FILES = ("demands.txt", "claims.txt", "languages.txt", "frames.txt", "commands.txt")

Occasion = tuple[ScanRule, list[int]]
"""A rule to be tried, and where its starts stand."""

# Of a word, so much is looked up in a table.
_PREFIX = 3
_WORD = re.compile(r"[a-z0-9]+")
_WORD_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
SENTENCE = "^"
_SENTENCE_END = re.compile(r"[.!?;\n]\s+")


class RuleBook:
    """The rules, and which of them a text gives occasion for.

    All pieces of all rules are looked for at once, by the words of the text; only those that
    may be there are then searched for in it.
    """

    def __init__(self, rules: tuple[ScanRule, ...]) -> None:
        self.rules = rules
        # For each piece the rules that it occurs in, is needed by, and is needed by besides: sets of
        # numbers, as bits, for there are hundreds of each and every text asks.
        self._bits: dict[str, tuple[int, int, int]] = defaultdict(lambda: (0, 0, 0))
        self._needs_nothing = self._needs_nothing_else = 0
        for number, rule in enumerate(rules):
            bit = 1 << number
            for place, pieces in enumerate((rule.starts + rule.hints, rule.needs, rule.also)):
                for piece in pieces:
                    bits = list(self._bits[piece])
                    bits[place] |= bit
                    self._bits[piece] = (bits[0], bits[1], bits[2])
            self._needs_nothing |= 0 if rule.needs else bit
            self._needs_nothing_else |= 0 if rule.also else bit
        # Which pieces a word of a text, or its beginning, gives rise to.
        self._by_word: dict[str, list[str]] = defaultdict(list)
        self._by_prefix: dict[str, list[str]] = defaultdict(list)
        self._inside: list[str] = []
        self._foreign: list[str] = []
        for piece in self._bits:
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
        pieces = {SENTENCE, *(piece for piece in self._inside if piece in lowered)}
        for word in words & self._by_word.keys():
            pieces.update(piece for piece in self._by_word[word] if piece == word or piece in lowered)
        by_prefix = self._by_prefix
        for word in words:
            if (prefix := word[:_PREFIX]) in by_prefix:
                for piece in by_prefix[prefix]:
                    if word.startswith(piece):
                        pieces.add(piece)
        yield from self._met(pieces, lowered)

    def foreign_occasions(self, lowered: str) -> Iterator[Occasion]:
        """Yield the rules that what is not ASCII gives occasion for."""
        yield from self._met({piece for piece in self._foreign if piece in lowered}, lowered)

    def _met(self, pieces: set[str], lowered: str) -> Iterator[Occasion]:
        needed, also = self._needs_nothing, self._needs_nothing_else
        for piece in pieces:
            _, is_needed, is_needed_besides = self._bits[piece]
            needed |= is_needed
            also |= is_needed_besides
        met = needed & also
        occurring: dict[int, list[str]] = defaultdict(list)
        for piece in pieces:
            bits = self._bits[piece][0] & met
            while bits:
                occurring[bits.bit_length() - 1].append(piece)
                bits &= ~(1 << bits.bit_length() - 1)
        places = _Places(lowered)
        for number in sorted(occurring):
            rule = self.rules[number]
            found = {at for piece in occurring[number] for at in places.of(piece)} if rule.starts else ()
            yield rule, sorted(found)


class _Places:
    """Where pieces stand in a text in lower case: at the beginning of a word if they begin with a letter."""

    def __init__(self, lowered: str) -> None:
        self._lowered = lowered
        self._found: dict[str, list[int]] = {}

    def of(self, piece: str) -> list[int]:
        """Return the places of ``piece``."""
        if piece not in self._found:
            self._found[piece] = list(self._found_anew(piece))
        return self._found[piece]

    def _found_anew(self, piece: str) -> Iterator[int]:
        if piece == SENTENCE:
            yield 0
            yield from (match.end() for match in _SENTENCE_END.finditer(self._lowered))
            return
        lowered, is_word = self._lowered, piece[0] in _WORD_CHARS
        at = lowered.find(piece)
        while at >= 0:
            if not (is_word and at and lowered[at - 1] in _WORD_CHARS):
                yield at
            at = lowered.find(piece, at + 1)


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
