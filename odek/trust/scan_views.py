"""The readings of a text: as it looks, and with each disguise and encoding seen through."""

import base64
import binascii
import codecs
import re
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from odek.trust.disguise import fold, position_of

__all__ = ["View", "views"]

Kind = Literal["read", "foreign", "decoded", "suspected"]


class View(msgspec.Struct, frozen=True):
    """One reading of a text, also in lower case, and its words in ASCII; ``locate`` maps a place back.

    ``read`` is what somebody reads, letters turned into the Latin ones that they look like;
    ``foreign`` the same without that. ``decoded`` text had been encoded. ``suspected`` is the
    whole text decoded on mere suspicion: only the rules for encoded text are tried on it.
    """

    text: str
    lowered: str
    words: frozenset[str]
    kind: Kind
    locate: Callable[[int], int]


# How deep encodings are undone: one inside another is as far as anybody went.
_DEPTH = 2

_SPACES = {code: " " for code in range(128) if not chr(code).isalnum()}


def views(text: str, *, depth: int = _DEPTH) -> Iterator[View]:
    """Yield the readings of ``text``, the plainest first."""
    latin = fold(text)
    plain = _view(latin, "read", lambda at: position_of(at, text))
    yield plain
    if not text.isascii():
        other = fold(text, scripts=False)
        yield View(
            other, other.lower(), frozenset(), "foreign", lambda at: position_of(at, text, scripts=False)
        )
    yield from (_view(other, "read", _constant(0)) for other in _seen_through(latin, plain.words))
    yield from (_view(other, "suspected", _constant(0)) for other in _turned(latin, plain.lowered))
    if depth:
        for at, decoded in _decoded(text, plain.words):
            for view in views(decoded, depth=depth - 1):
                kind: Kind = "decoded" if view.kind == "read" else view.kind
                yield msgspec.structs.replace(view, kind=kind, locate=_constant(at))


def _view(text: str, kind: Kind, locate: Callable[[int], int]) -> View:
    lowered = text.lower()
    # Everything here runs over the text in C: what is not ASCII becomes a sign, and signs become spaces.
    words = lowered.encode("ascii", "replace").decode("ascii").translate(_SPACES).split()
    return View(text, lowered, frozenset(words), kind, locate)


def _constant(at: int) -> Callable[[int], int]:
    return lambda _: at


# -- disguises ---

# A pattern that begins with a set of characters is searched for quickly; what must stand before them
# is looked at behind.
_EMPHASIS = re.compile(r"[*`~](?<=\w[*`~])[*`~]{0,2}(?=\w)")
_LETTERS_OF_A_WORD = 3
_LONE_LETTERS = re.compile(r"(?<!\w)\w([ \t]{1,3}|[.\-_*·•|/+~])\w\1\w\1\w\1")
_SPACED = re.compile(r"(?<!\w)(?:\w[ \t]){6,400}\w(?!\w)|(?<!\w)(?:\w[ \t]{1,3}){8,400}\w(?!\w)")
_JOINED = re.compile(r"(?<![^\W_])(?:[^\W_][.\-_*·•|/+~]){2,200}[^\W_](?![^\W_])")
_LEET = re.compile(
    r"[0134578$@!|](?:(?<=[a-z][0134578$@!|])[a-z]|(?<=[!14])(?<!\w[!14])[a-z]{2})", re.IGNORECASE
)
_LEET_LETTERS = (str.maketrans("0134578$@!|", "oieastbsaii"), str.maketrans("0134578$@!|", "oleastbsail"))
# Letters turned upside down; a text of them is read from its end.
_TURNED_LETTERS = str.maketrans("ɐɔǝɟƃᵷɥᴉɾʞʅɯɹʇʌʍʎ", "acefgghijklmrtvwy")
_TURNED = re.compile("[ɐɔǝɟƃᵷɥᴉɾʞʅɯɹʇʌʍʎ].{0,6}[ɐɔǝɟƃᵷɥᴉɾʞʅɯɹʇʌʍʎ].{0,6}[ɐɔǝɟƃᵷɥᴉɾʞʅɯɹʇʌʍʎ]")


def _seen_through(text: str, words: frozenset[str]) -> Iterator[str]:
    if any(mark in text for mark in "*`~") and _EMPHASIS.search(text):
        yield _EMPHASIS.sub("", text)
    if sum(len(word) == 1 for word in words) >= _LETTERS_OF_A_WORD and _LONE_LETTERS.search(text):
        closed = _JOINED.sub(lambda match: re.sub(r"[\W_]", "", match[0]), text)
        yield _SPACED.sub(lambda match: _closed_up(match[0]), closed)
    mixed = any(not (word.isalpha() or word.isdigit()) for word in words)
    if (mixed or any(sign in text for sign in "$@!|")) and _LEET.search(text):
        yield from (text.translate(letters) for letters in _LEET_LETTERS)


def _closed_up(spaced: str) -> str:
    if "  " not in spaced:
        return re.sub(r"(\w)[ \t](?=\w(?:[ \t]|$))", r"\1", spaced)
    return re.sub(r"(?<=\w) (?=\w)", "", spaced)


# What begins a demand, written backwards and in rot13: only with one of these is the text turned.
_DEMANDS = ("ignor", "disregard", "forget", "bypass", "overrid", "obey")
_BACKWARDS = tuple(word[::-1] for word in _DEMANDS)
_ROTATED = tuple(codecs.encode(word, "rot13") for word in _DEMANDS)


def _turned(text: str, lowered: str) -> Iterator[str]:
    if any(map(lowered.__contains__, _BACKWARDS)):
        yield text[::-1]
    if any(map(lowered.__contains__, _ROTATED)):
        yield codecs.encode(text, "rot13")


# -- encodings ---

_ESCAPE = re.compile(
    r"\\x([0-9a-fA-F]{2})|\\u\{?([0-9a-fA-F]{4,6})\}?|&#x([0-9a-fA-F]{1,6});?|%([0-9A-Fa-f]{2})|=([0-9A-F]{2})(?!\d)"
    r"|&#(\d{1,7});?|\\([0-3][0-7]{2})|\\([nrt])|&(?:amp;)*(lt|gt|quot|nbsp|amp);"
)
_NAMED = {"n": "\n", "r": "\n", "t": "\t", "lt": "<", "gt": ">", "quot": '"', "nbsp": " ", "amp": "&"}
_BLOB_CHARACTERS = 16
_BASE64 = re.compile(rf"[A-Za-z0-9+/_-]{{{_BLOB_CHARACTERS},4096}}={{0,2}}")
_BASE32 = re.compile(rf"[A-Z2-7](?<!\w[A-Z2-7])[A-Z2-7]{{{_BLOB_CHARACTERS - 1},4095}}={{0,6}}")
# Letters and spaces are 20 to 7e.
_HEX = re.compile(r"[2-7][0-9A-Fa-f][ :,]{0,2}(?:(?:0x)?[2-70][0-9A-Fa-f][ :,]{0,2}){5,2048}")
_BITS = re.compile(r"[01][01]{7}[ ,]?(?:[01]{8}[ ,]?){5,512}")
_DECIMALS = re.compile(r"[0-9][0-9]{1,2}[ ,;]{1,2}(?:[0-9]{2,3}[ ,;]{1,2}){5,512}[0-9]{2,3}")
_MORSE_TEXT = re.compile(r"(?:[.-]{1,5}(?: ?/ ?| {1,3})){5,512}[.-]{1,5}")
_BRAILLE = re.compile("[\u2801-\u28ff][\u2800-\u28ff ]{4,}")
_BRAILLE_LETTERS = dict(
    zip(
        "\u2801\u2803\u2809\u2819\u2811\u280b\u281b\u2813\u280a\u281a\u2805\u2807\u280d\u281d\u2815\u280f\u281f\u2817\u280e\u281e\u2825\u2827\u283a\u282d\u283d\u2835",
        "abcdefghijklmnopqrstuvwxyz",
        strict=True,
    )
)
_MORSE = (
    "a.- b-... c-.-. d-.. e. f..-. g--. h.... i.. j.--- k-.- l.-.. m-- n-. o--- p.--. q--.- r.-. s... t-"
    " u..- v...- w.-- x-..- y-.-- z--.."
)
_MORSE_LETTERS = {code[1:]: code[0] for code in _MORSE.split()}


def _decoded(text: str, words: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield where something encoded begins, and what it says."""
    if any(map(text.__contains__, ("\\", "%", "&", "="))) and (first := _ESCAPE.search(text)):
        yield first.start(), _ESCAPE.sub(_unescaped, text)
    if max(map(len, text.split()), default=0) >= _BLOB_CHARACTERS:
        for match in _BASE64.finditer(text):
            yield from _as_text(match.start(), _base64(match[0]))
        for match in _BASE32.finditer(text):
            yield from _as_text(match.start(), _base32(match[0]))
    if any(word[0].isdigit() for word in words):
        for match in _HEX.finditer(text):
            yield from _as_text(match.start(), bytes.fromhex(re.sub("0x|[ :,]", "", match[0])))
        for match in _BITS.finditer(text):
            digits = re.sub("[ ,]", "", match[0])
            yield from _as_text(match.start(), int(digits, 2).to_bytes(len(digits) // 8))
        for match in _DECIMALS.finditer(text):
            codes = [int(code) for code in re.findall(r"\d+", match[0])]
            yield from _as_text(match.start(), bytes(code if code < 256 else 0 for code in codes))
    if ".-" in text or "-." in text:
        for match in _MORSE_TEXT.finditer(text):
            spelled = re.split(r" ?/ ?| {3}", match[0])
            yield match.start(), " ".join("".join(map(_morse, word.split())) for word in spelled)
    if not text.isascii():
        for match in _BRAILLE.finditer(text):
            yield match.start(), "".join(_BRAILLE_LETTERS.get(char, " ") for char in match[0])
        if turned := _TURNED.search(text):
            yield turned.start(), text.translate(_TURNED_LETTERS)[::-1]


def _unescaped(match: re.Match[str]) -> str:
    *hexadecimal, decimal, octal, short, named = match.groups()
    if code := next(filter(None, hexadecimal), ""):
        number = int(code, 16)
    elif decimal:
        number = int(decimal)
    elif octal:
        number = int(octal, 8)
    else:
        return _NAMED[short or named]
    return chr(number) if 9 <= number < 0xD800 else match[0]


def _base64(blob: str) -> bytes:
    standard = blob.rstrip("=").replace("-", "+").replace("_", "/")
    standard = standard[: len(standard) - (len(standard) % 4 == 1)]
    return base64.b64decode(standard + "=" * (-len(standard) % 4))


def _base32(blob: str) -> bytes:
    digits = blob.rstrip("=")
    digits = digits[: len(digits) - (len(digits) % 8 in {1, 3, 6})]
    try:
        return base64.b32decode(digits + "=" * (-len(digits) % 8))
    except binascii.Error:
        return b""


def _morse(letter: str) -> str:
    return _MORSE_LETTERS.get(letter, " ")


def _as_text(at: int, data: bytes) -> Iterator[tuple[int, str]]:
    if data and data.isascii() and all(32 <= byte < 127 or byte in b"\n\r\t" for byte in data):
        yield at, data.decode()
