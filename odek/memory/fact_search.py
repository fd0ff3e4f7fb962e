"""Which facts a query is about: those that share words with it. Pure."""

import re
import unicodedata
from collections.abc import Iterable

from odek.memory.facts import Fact

__all__ = ["search_facts"]

_MAX_HITS = 10

# Scripts that write words without blanks between them: kana, Han, Hangul, Thai and their extensions.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
)
_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}]+")


def search_facts(facts: Iterable[Fact], query: str) -> list[Fact]:
    """Return the facts that have a word of ``query``, most different words first, at most ten.

    Case and width do not matter. Where a script has no blanks, pairs of characters
    stand for words. Of facts with equally many words the newer comes first.
    """
    wanted = _words(query)
    scored = [(len(wanted & _words(fact.text)), fact) for fact in facts]
    hits = sorted(scored, key=lambda hit: (hit[0], hit[1].index), reverse=True)
    return [fact for score, fact in hits if score][:_MAX_HITS]


def _words(text: str) -> set[str]:
    words: set[str] = set()
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).casefold()):
        if len(run) > 1 and re.match(rf"[{_UNSPACED}]", run):
            words.update(run[start : start + 2] for start in range(len(run) - 1))
        else:
            words.add(run)
    return words
