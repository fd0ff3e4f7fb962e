"""The gate of the memory: what a text may not hold if it is to be remembered.

The text is judged as it reads: look-alike letters, marks, spacing, markup and encodings are
seen through first. An honest text passes: emoji joined with zero-width joiners, scripts that
need joiners, an attack quoted in a note on security, code about tokens.
"""

import base64
import codecs
import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from urllib.parse import unquote

import msgspec

from odek.trust.disguise import fold_mapped, is_invisible, latin
from odek.trust.scan_rules import scan_rules
from odek.trust.secrets import contains_secret, find_secrets

__all__ = ["Rejection", "scan"]


class Rejection(msgspec.Struct, frozen=True):
    """Why a text is not remembered: the rule, where in the text, and the reason in words."""

    rule: str
    position: int
    reason: str

    def __str__(self) -> str:
        return f"{self.reason} (rule {self.rule}, at character {self.position + 1})"


class _View(msgspec.Struct, frozen=True):
    """One reading of the text. ``positions`` maps its characters back, those beyond its end to ``base``.

    ``hidden`` text had to be decoded. ``turned`` text is the whole text decoded on mere suspicion:
    only the rules for encoded text are tried on it.
    """

    text: str
    positions: list[int] | None = None
    base: int = 0
    hidden: bool = False
    turned: bool = False

    def position(self, at: int) -> int:
        if self.positions is None:
            return self.base + at
        return self.positions[at] if at < len(self.positions) else self.base


def scan(text: str) -> Rejection | None:
    """Return the first rule that ``text`` breaks, None when it may be remembered."""
    return _characters(text) or _mixed_scripts(text) or _sentences(text) or _credentials(text)


def _credentials(text: str) -> Rejection | None:
    if not contains_secret(text):
        return None
    spans = find_secrets(text)
    position, kind = (spans[0].start, spans[0].kind) if spans else (0, "disguised credential")
    return Rejection("credential", position, f"holds a credential: {kind}")


# -- characters ---

# The three flags made of tag characters that Unicode recommends: England, Scotland, Wales.
_FLAG = re.compile(
    "\U0001f3f4(?:"
    + "|".join("".join(chr(0xE0000 + ord(char)) for char in flag) for flag in ("gbeng", "gbsct", "gbwls"))
    + ")\U000e007f"
)
_JOINER_SCRIPTS = re.compile(
    "[\u0600-\u06ff\u0700-\u074f\u0750-\u077f\u08a0-\u08ff\u0900-\u0dff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1800-\u18af\ufb50-\ufdff\ufe70-\ufefc]"
)
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")


def _characters(text: str) -> Rejection | None:
    """Reject characters that show nothing, except where a script or an emoji needs them."""
    if text.isascii() and text.isprintable():
        return None
    flags = (
        {at for match in _FLAG.finditer(text) for at in range(*match.span())}
        if "\U000e007f" in text
        else set()
    )
    for at, char in enumerate(text):
        if (
            char in "\n\t"
            or (" " <= char < "\x7f")
            or at in flags
            or not (is_invisible(char) or char == "\r")
        ):
            continue
        if char == "\r" and text[at + 1 : at + 2] == "\n":
            continue
        if not _is_needed(text, at):
            name = unicodedata.name(char, f"U+{ord(char):04X}").lower()
            return Rejection("invisible-character", at, f"holds a character that nobody sees: {name}")
    return None


def _is_needed(text: str, at: int) -> bool:
    char, before, after = text[at], text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    match char:
        case "\ufeff":
            return at == 0
        case "\u200d":
            return (_is_emoji(before) and _is_emoji(after)) or bool(_JOINER_SCRIPTS.match(before))
        case "\u200c":
            return bool(before and after and _JOINER_SCRIPTS.match(before) and _JOINER_SCRIPTS.match(after))
        case "\ufe0e" | "\ufe0f":
            return bool(before) and (_is_symbol(before) or before in "0123456789#*")
        case "\u200e" | "\u200f" | "\u061c":
            return bool(_RIGHT_TO_LEFT.search(text[max(at - 3, 0) : at + 4]))
        case "\u180b" | "\u180c" | "\u180d" | "\u180e":
            return "\u1800" <= before <= "\u18af"
        case _ if 0xE0100 <= ord(char) <= 0xE01EF:
            # One variation of an ideograph; a run of selectors carries bytes.
            return bool(before) and unicodedata.name(before, "").startswith("CJK")
    return False


def _is_symbol(char: str) -> bool:
    return bool(char) and unicodedata.category(char) in {"So", "Sk", "Sm", "Po", "Pd"}


def _is_emoji(char: str) -> bool:
    return bool(char) and (unicodedata.category(char) in {"So", "Sk", "Sm"} or char == "\ufe0f")


# -- scripts ---

_WORD = re.compile(r"[^\W\d_]{3,200}")
_ALIEN = re.compile("[\u0370-\u03ff\u0400-\u052f\u0530-\u058f\u13a0-\u13ff\u1d00-\u1d7f]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")


def _mixed_scripts(text: str) -> Rejection | None:
    """Reject a word whose letters only look as if they were of one script."""
    if not _ALIEN.search(text):
        return None
    for match in _WORD.finditer(text):
        word = match[0]
        if not (_ALIEN.search(word) and _LATIN.search(word)):
            continue
        kinds = ["l" if _LATIN.match(char) else "a" if latin(char) != char else "n" for char in word]
        if "a" not in kinds or "n" in kinds:
            continue  # no look-alike, or letters that look foreign to anybody: a unit, an inflected name
        switches = sum(left != right for left, right in pairwise(kinds))
        if switches > 1 or kinds[0] == "a" or len(word) - kinds.index("a") <= 1:
            return Rejection(
                "mixed-scripts", match.start(), f"mixes alphabets that look alike inside one word: {word!r}"
            )
    return None


# -- sentences ---


def _sentences(text: str) -> Rejection | None:
    tried: set[str] = set()
    for view in _views(text):
        if view.text in tried:
            continue
        tried.add(view.text)
        lowered = view.text.lower()
        for rule in scan_rules():
            if rule.encoded > view.hidden or rule.encoded < view.turned:
                continue
            if not any(map(lowered.__contains__, rule.hints)):
                continue
            for match in rule.pattern.finditer(view.text):
                if rule.quoted or view.hidden or not _is_quoted(view.text, match):
                    return Rejection(rule.name, view.position(match.start()), rule.reason)
    return None


_ABOUT_ATTACKS = re.compile(
    r"\b(attacks?|injections?|payloads?|detect(s|or|ion)?|filters?|regex|tests?|fixtures?|examples?|phrases?|strings?|patterns?"
    r"|jailbreaks?|reject(s|ed)?|block(s|ed|list)?|quot(e|es|ed|ation)|classif\w+|corpus|sample|literal|matches|catch(es)?)\b",
    re.IGNORECASE,
)
_QUOTES = {
    "'": "'",
    '"': '"',
    "`": "`",
    "\u201c": "\u201d",
    "\u2018": "\u2019",
    "\u00ab": "\u00bb",
    "\u201e": "\u201c",
}


def _is_quoted(text: str, match: re.Match[str]) -> bool:
    """Whether a match is a quotation inside a text about attacks, rather than a demand."""
    left, right = text[max(0, match.start() - 80) : match.start()], text[match.end() : match.end() + 80]
    opened = [(left.rfind(mark), mark) for mark in _QUOTES if mark in left]
    if not opened:
        return False
    at, mark = max(opened)
    apostrophe = mark == "'" and at > 0 and left[at - 1].isalnum()
    return not apostrophe and _QUOTES[mark] in right and bool(_ABOUT_ATTACKS.search(left[:at] + right))


_SPACED = re.compile(r"(?:\b\w[ \t]){6,400}\w\b|(?:\b\w[ \t]{1,3}){8,400}\w\b")
_EMPHASIS = re.compile(r"(?<=\w)[*_`~]{1,3}(?=\w)|(?<=\w)\*{2,3}|\*{2,3}(?=\w)")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,4096}={0,2}")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2}[ :,]?){6,2048}")
_BRAILLE = re.compile("[\u2801-\u28ff][\u2800-\u28ff ]{4,}")
_BRAILLE_LETTERS = dict(
    zip(
        "\u2801\u2803\u2809\u2819\u2811\u280b\u281b\u2813\u280a\u281a\u2805\u2807\u280d\u281d\u2815\u280f\u281f\u2817\u280e\u281e\u2825\u2827\u283a\u282d\u283d\u2835",
        "abcdefghijklmnopqrstuvwxyz",
        strict=True,
    )
)
_LEET = str.maketrans("013457$@", "oieastsa")


def _views(text: str) -> Iterator[_View]:
    """Yield the text as it reads, and each disguise seen through."""
    if text.isascii():
        yield _View(text)
    else:
        plain, positions = fold_mapped(text, scripts=False)
        yield _View(plain, positions)
        yield _View(*fold_mapped(text))
    folded = text if text.isascii() else fold_mapped(text)[0]
    if _EMPHASIS.search(folded):
        yield _View(_EMPHASIS.sub("", folded), [0])
    if _SPACED.search(folded):
        yield _View(_SPACED.sub(lambda match: _closed_up(match[0]), folded), [0])
    if _PERCENT.search(text):
        yield _View(unquote(text), [0], hidden=True)
    if re.search(r"[a-z][013457$@][a-z]", folded, re.IGNORECASE):
        yield _View(folded.translate(_LEET), [0])
    yield _View(folded[::-1], [0], hidden=True, turned=True)
    yield _View(codecs.encode(folded, "rot13"), [0], hidden=True, turned=True)
    yield from _decoded(text)


def _closed_up(spaced: str) -> str:
    return (
        re.sub(r"(\w)[ \t](?=\w(?:[ \t]|$))", r"\1", spaced)
        if "  " not in spaced
        else re.sub(r"(?<=\w) (?=\w)", "", spaced)
    )


def _decoded(text: str) -> Iterator[_View]:
    for match in _BASE64.finditer(text):
        blob = match[0].rstrip("=").replace("-", "+").replace("_", "/")
        blob = blob[: len(blob) - (len(blob) % 4 == 1)]
        decoded = base64.b64decode(blob + "=" * (-len(blob) % 4))
        if _is_text(decoded):
            yield _View(decoded.decode(), [match.start()], match.start(), hidden=True)
    for match in _HEX.finditer(text):
        decoded = bytes.fromhex(re.sub("[ :,]", "", match[0]))
        if _is_text(decoded):
            yield _View(decoded.decode(), [match.start()], match.start(), hidden=True)
    for match in _BRAILLE.finditer(text):
        letters = "".join(_BRAILLE_LETTERS.get(char, " ") for char in match[0])
        yield _View(letters, [match.start()], match.start(), hidden=True)


def _is_text(data: bytes) -> bool:
    return data.isascii() and all(32 <= byte < 127 or byte in b"\n\r\t" for byte in data)
