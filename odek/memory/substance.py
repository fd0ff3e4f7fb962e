"""What a fact claims beyond its likeness to another: numbers, names, negations, order. Pure.

Two texts may share nearly all words and say opposite things. Here is decided what
likeness must never bridge; in doubt the answer is that texts differ.
"""

import re
import unicodedata
from functools import lru_cache

import msgspec

__all__ = ["Claims", "claims", "differs_in_substance", "is_part_of"]


class Claims(msgspec.Struct, frozen=True):
    """What a text claims.

    ``content`` has its telling words in order, each once. ``exact`` are numbers, versions,
    dates, paths, addresses, identifiers and quotations; ``markers`` the words that turn or
    limit a statement, by kind.
    """

    content: tuple[str, ...]
    exact: frozenset[str]
    markers: frozenset[str]


def differs_in_substance(left: str, right: str) -> bool:
    """Tell whether the texts may be two facts, or a fact and its change, however alike they are.

    False only if one has every telling word of the other, in the same order, and neither
    has a number, name, negation, time or limit that the other lacks.
    """
    one, other = claims(left), claims(right)
    if one.exact != other.exact or one.markers != other.markers:
        return True
    return not (is_part_of(one, other) or is_part_of(other, one))


def is_part_of(part: Claims, whole: Claims) -> bool:
    """Tell whether the telling words of ``part`` are all in ``whole``, in their order."""
    rest = iter(whole.content)
    return bool(part.content) and all(word in rest for word in part.content)


# A quotation; or a run without blanks, of which `_is_exact` tells whether it stands for one thing only.
_QUOTED = re.compile(r"\"([^\"\n]{1,200})\"|`([^`\n]{1,200})`|\u201c([^\u201d\n]{1,200})\u201d")
_SINGLE_QUOTED = re.compile(r"(?<!\w)'([^'\n]{1,200})'(?!\w)")
_RUN = re.compile(r"\S+")
_EDGE = " \t.,;:!?()[]{}<>\"'`\u201c\u201d\u2018\u2019\u2026\u3001\u3002\uff0c\uff01\uff1f"
_NUMBERED_BY_LETTER = re.compile(r"\w-\w$|^\w-\w")
_INNER_MARK = re.compile(r"\w[_/\\@:=#+&$%~^.]\w|^[~./$@#%-]+\w|\w[+#/%*]+$")

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\W_])+")
_UNSPACED_NOT = re.compile("[不没沒無无非未]|别(?=[用的])|ない|ません|なく|ไม่|않|없|아니")
_CONTRACTED_NOT = re.compile(r"n['\u2019]t\b|\bcannot\b|(?<!\w)n['\u2019](?=\w)", re.IGNORECASE)

_MARKERS = {
    "not": """no not never none neither nor without nothing nobody nowhere hardly rarely seldom avoid avoids
        nicht kein keine keinen keiner nie niemals ohne ne pas jamais aucun sans nunca ningún jamás não sem
        не нет никогда без non mai senza niet nooit geen zonder""",
    "ended": """until till formerly previously former longer anymore stopped quit ceased switched moved
        migrated deprecated obsolete abandoned dropped instead""",
    "limit": """only except unless but exclusively solely excluding exclude excludes nur außer seulement
        sauf solo""",
    "past": "was were had",
    "future": "will planned soon eventually",
    "maybe": "may might could sometimes occasionally maybe perhaps",
    "if": "if unless when whenever",
}
_KIND_OF = {word: kind for kind, listed in _MARKERS.items() for word in listed.split()}

# Times and amounts in words are as exact as digits.
_EXACT_WORDS = frozenset(
    re.findall(
        r"\w+",
        """zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty
        hundred thousand million dozen half double once twice second third fourth fifth
        monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays
        saturdays sundays january february march april june july august september october november december
        today tomorrow yesterday daily weekly monthly yearly hourly nightly""",
    )
)

# Words without which a sentence claims the same; all others tell something.
_GLUE = frozenset(
    re.findall(
        r"\w+",
        """a an the this that these those is are be being been am s to of and also should must has have do
        does it its there which who user users i my very really please all always every each go goes get
        gets code der die das den dem ein eine ist sind und le la les un une est sont et el los las es son y
        il lo di de e het een 的 了""",
    )
)


@lru_cache(maxsize=1024)  # the entries of two small files, looked at with every addition
def claims(text: str) -> Claims:
    """Return what ``text`` claims."""
    plain = unicodedata.normalize("NFKC", text)
    exact = {match.strip().casefold() for found in _QUOTED.findall(plain) for match in found if match}
    exact |= {found.strip().casefold() for found in _SINGLE_QUOTED.findall(plain)}
    exact |= {run.strip(_EDGE).casefold() for run in _RUN.findall(plain) if _is_exact(run.strip(_EDGE))}
    folded = [word.casefold() for word in _WORD.findall(plain)]
    exact |= {word for word in folded if word in _EXACT_WORDS or any(map(str.isdigit, word))}
    markers = {_KIND_OF[word] for word in folded if word in _KIND_OF}
    if _CONTRACTED_NOT.search(plain) or _UNSPACED_NOT.search(plain):
        markers.add("not")
    telling = [_singular(word) for word in folded if word not in _GLUE and word not in _KIND_OF]
    return Claims(tuple(dict.fromkeys(telling)), frozenset(exact), frozenset(markers))


def _is_exact(run: str) -> bool:
    """Tell whether a run of characters names one thing exactly, as a path or an identifier does."""
    tail = run[1:]
    has_inner_capital = tail != tail.lower() and tail != tail.upper()
    marks = (_INNER_MARK.search(run), _NUMBERED_BY_LETTER.search(run))
    return any(map(str.isdigit, run)) or has_inner_capital or any(marks)


def _singular(word: str) -> str:
    """Take off what number and person add in English; not the past, which is another claim."""
    if len(word) > 5 and word.endswith("ing"):
        word = word[:-3]
        word = word[:-1] if word[-1] == word[-2] and word[-1] not in "lsz" else word
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word
