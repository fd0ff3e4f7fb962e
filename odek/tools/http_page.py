"""A response as the model reads it: where it is from, then its text. Loaded with the first request."""

import codecs
import re

from odek.text import clip_bytes, without_surrogates
from odek.tools.html_text import declared_charset, readable
from odek.tools.http_exchange import Hop
from odek.tools.textfile import binary_kind, decode_lines, sniff, utf8
from odek.tools.tool import ToolOutput

__all__ = ["describe_page"]

OUTPUT_BYTES = 100_000
"""Of the text for the model, about 25,000 tokens."""

ERROR_OUTPUT_BYTES = 4000
"""Of the page that comes with an error status: its first sentences say what is wrong."""

_CHARSET = re.compile(  # other codecs of Python are no encodings of text, or slow ones
    r"(us-)?ascii|utf-?(8|16|32)(-?[bl]e)?|iso-?8859-\d+|latin-?\d+|(windows|cp)-?\d+|koi8-\w"
    r"|big5\w*|gb\w+|(shift[_-])?jis|euc[_-]\w+|iso-2022-\w+|macintosh",
    re.IGNORECASE,
)
_WIDER = {  # as browsers read them: pages say the narrower name and use the wider encoding
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
_MEDIA = ("image/", "audio/", "video/", "font/")
_MARKUP = frozenset({"text/html", "application/xhtml+xml"})


def describe_page(hop: Hop, redirects: int) -> ToolOutput:
    """Return what the model reads of ``hop``, the answer after so many redirects."""
    media_type = hop.content_type.partition(";")[0].strip().lower()
    moved = {0: "", 1: ", after a redirect"}.get(redirects, f", after {redirects} redirects")
    status = f"{hop.status} {hop.reason}".strip()
    head = f"{status}, {media_type or 'no type given'}, from {hop.url} at {hop.address}{moved}"
    text = _text(hop, media_type)
    failed = hop.status >= 400
    if text is None:
        size = f"{hop.size} bytes" if hop.size.isdecimal() else f"{len(hop.body):,} bytes or more"
        kind = binary_kind(hop.body) or media_type
        return ToolOutput(without_surrogates(f"[{head}]\n[not text: {kind}, {size}]"), is_error=True)
    shown = clip_bytes(text, ERROR_OUTPUT_BYTES if failed else OUTPUT_BYTES)
    notes = ""
    if len(shown) < len(text):
        notes = f"\n[cut: {len(shown):,} of {len(text):,} characters]"
    elif hop.cut:
        notes = f"\n[cut: only {len(hop.body):,} bytes of the body are here]"
    return ToolOutput(without_surrogates(f"[{head}]\n{shown or '[empty]'}{notes}"), is_error=failed)


def _text(hop: Hop, media_type: str) -> str | None:
    """Return the body as text, None when it is none."""
    charset = _known(hop.content_type.lower().partition("charset=")[2].partition(";")[0])
    if media_type.startswith(_MEDIA) and media_type != "image/svg+xml":
        return None
    text = _decoded(hop.body, charset)
    if text is None:
        return None
    markup = media_type in _MARKUP or (
        not media_type and text.lstrip()[:15].lower().startswith(("<!doctype html", "<html"))
    )
    named = _known(declared_charset(hop.body)) if markup and not charset else ""
    if named and not named.startswith("utf"):  # which would have been recognised
        text = hop.body.decode(named, "replace")
    return readable(text, hop.url) if markup else text


def _decoded(body: bytes, charset: str) -> str | None:
    if charset:
        wide = charset.startswith(("utf-16", "utf-32"))  # whose text is full of NULs
        return None if binary_kind(body) and not wide else body.decode(charset, "replace")
    if (codec := sniff(body)) is None:
        return None
    (text,), _ = decode_lines([b"".join(utf8([body], codec))])
    return text


def _known(charset: str) -> str:
    """Return ``charset`` if it is an encoding of text that Python knows, else ""."""
    name = charset.strip("\"' ").lower()
    try:
        known = codecs.lookup(name).name if _CHARSET.fullmatch(name) else ""
    except LookupError:
        return ""
    return _WIDER.get(known, known)
