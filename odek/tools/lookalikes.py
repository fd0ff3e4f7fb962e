"""Characters that a model does not tell apart: blanks, quotes and dashes of print and of a keyboard. Pure."""

__all__ = ["folded", "with_own_characters"]

_FOLDED = str.maketrans(
    {
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", " "),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    }
)

COMPARED_PAIRS = 1_000_000
"""Of characters between which differences are looked for: some 0.1 s. No measurement behind it."""


def folded(text: str) -> str:
    """Return ``text``, character by character, as a keyboard would have it."""
    return text if text.isascii() else text.translate(_FOLDED)


def with_own_characters(found: str, old: str, new: str) -> str:
    """Return ``new`` with the characters of ``found`` wherever it does not differ from ``old``.

    ``found`` is what a file has for ``old``: as long, and equal once both are folded. What the
    edit does not mean to change thereby stays as the file has it.
    """
    begin = _common(old, new)
    end = _common(old[begin:][::-1], new[begin:][::-1])
    stop_old, stop_new = len(old) - end, len(new) - end
    middle = _middle(found[begin:stop_old], old[begin:stop_old], new[begin:stop_new])
    return found[:begin] + middle + found[stop_old:]


def _common(one: str, other: str) -> int:
    """Return how many characters at the beginning are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (mine, theirs) in pairs if mine != theirs), min(len(one), len(other)))


def _middle(found: str, old: str, new: str) -> str:
    if not old or not new or len(old) * len(new) > COMPARED_PAIRS:
        return new
    from difflib import SequenceMatcher  # only here: most edits differ in one place

    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return "".join(
        found[from_old:to_old] if kind == "equal" else new[from_new:to_new]
        for kind, from_old, to_old, from_new, to_new in matcher.get_opcodes()
    )
