"""Words brought to a common form: the language of a text, and the stem of a word in it. Pure.

Snowball knows endings; it does not know that ``went`` belongs to ``go``. The irregular
verbs and nouns of English are listed here, because questions ask in one form
("when did she buy") what notes tell in another ("she bought").
"""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from odek.index.words import IRREGULAR, STOP_WORDS, STOPPED_BY_SCRIPT

if TYPE_CHECKING:
    from Stemmer import Stemmer

__all__ = ["DEFAULT_LANGUAGE", "SCRIPTS", "is_stop_word", "language_of", "stem", "without_accents"]

DEFAULT_LANGUAGE = "english"

# First and last letter of a script that one stemmer serves, whatever the language of the text.
SCRIPTS = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u052f", "russian"),
    ("\u0530", "\u058f", "armenian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)

# So many words of a language must be seen before it is believed; one may stand in a name or a quotation.
_EVIDENCE_WORDS = 2
_LOOKED_AT_WORDS = 200


def language_of(folded: Sequence[str], evidence_words: int = _EVIDENCE_WORDS) -> str:
    """Return the language of a text in Latin letters, given its words in lower case.

    English unless another language's small words are clearly more frequent, and there are as many as
    ``evidence_words``.
    """
    counts: dict[str, int] = {}
    for word in folded[:_LOOKED_AT_WORDS]:
        for language in _LANGUAGES.get(word, ()):
            counts[language] = counts.get(language, 0) + 1
    if not counts:
        return DEFAULT_LANGUAGE
    best = max(counts, key=counts.__getitem__)
    if counts[best] < evidence_words or counts[best] <= counts.get(DEFAULT_LANGUAGE, 0):
        return DEFAULT_LANGUAGE
    return best


@lru_cache(maxsize=32_768)  # some megabytes; the words of a store repeat
def stem(word: str, language: str = DEFAULT_LANGUAGE) -> str:
    """Return the stem of ``word``, which is in lower case, without accents on Latin letters.

    The script decides before ``language`` does: a Russian word in an English text is stemmed as Russian.
    """
    first = word[0]
    if not first.isascii():
        for start, end, of_script in SCRIPTS:
            if start <= first <= end:
                return str(_stemmer(of_script).stemWord(word))
    elif language == DEFAULT_LANGUAGE:
        word = IRREGULAR.get(word, word)
    return without_accents(_stemmer(language).stemWord(word))


def without_accents(word: str) -> str:
    """Return ``word`` with its Latin letters bare: café as cafe. Other scripts keep their marks."""
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", "".join(char for char in parts if not "\u0300" <= char <= "\u036f"))


def is_stop_word(word: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Tell whether ``word`` carries little in ``language``, in English, or in the language of its script."""
    if not word.isascii() and word in STOPPED_BY_SCRIPT:
        return True
    return word in STOP_WORDS[DEFAULT_LANGUAGE] or word in STOP_WORDS.get(language, ())


@lru_cache(maxsize=32)
def _stemmer(language: str) -> "Stemmer":
    from Stemmer import Stemmer

    return Stemmer(language, 0)  # its own cache is not needed behind ours


def _by_word() -> dict[str, tuple[str, ...]]:
    languages: dict[str, tuple[str, ...]] = {}
    for language, words in STOP_WORDS.items():
        for word in words:
            languages[word] = (*languages.get(word, ()), language)
    return languages


_LANGUAGES = _by_word()
