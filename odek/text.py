"""Text cut, cleaned and made visible; the only truncation in the house."""

import re
import unicodedata

__all__ = [
    "clip_bytes",
    "clip_line",
    "clip_middle",
    "first_line",
    "joins",
    "last_state",
    "plain",
    "readable",
    "visible",
    "without_surrogates",
]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_JOINERS = frozenset("\u200c\u200d")

_ESCAPE = re.compile(
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]?"  # CSI: colour, cursor
    r"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC: title, link, clipboard
    r"|[ -/]*[0-~]?"  # character sets and the like
    r")"
)


def first_line(text: str) -> str:
    """Return the first line of ``text`` that holds more than white space, stripped, or ""."""
    for line in text.splitlines():
        if stripped := line.strip():
            return stripped
    return ""


def clip_line(text: str, width: int) -> str:
    """Return ``text`` on one line of at most ``width`` characters, an ellipsis marking the cut."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: max(width - 1, 0)].rstrip() + "…"


def clip_bytes(text: str, limit_bytes: int) -> str:
    """Return the longest prefix of ``text`` that takes at most ``limit_bytes`` in UTF-8."""
    encoded = text.encode("utf-8", "surrogatepass")
    if len(encoded) <= limit_bytes:
        return text
    return encoded[:limit_bytes].decode("utf-8", "ignore")


def clip_middle(text: str, limit_bytes: int) -> str:
    """Keep head and tail of a text beyond ``limit_bytes``, and say how much was left out."""
    encoded = text.encode("utf-8", "surrogatepass")
    if len(encoded) <= limit_bytes:
        return text
    half = limit_bytes // 2
    head = encoded[:half].decode("utf-8", "ignore")
    tail = encoded[-half:].decode("utf-8", "ignore")
    return f"{head}\n[… {len(encoded) - 2 * half:,} bytes left out …]\n{tail}"


def without_surrogates(text: str) -> str:
    """Replace lone surrogates, which no encoder takes, by the replacement character."""
    return text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text


def plain(text: str) -> str:
    """Return ``text`` as a terminal would leave it, as far as text without control characters can say it."""
    if not _CONTROL.search(text):
        return text
    text = _ESCAPE.sub("", text)
    if "\r" in text:
        text = "\n".join(map(last_state, text.split("\n")))
    return _CONTROL.sub("", text)


def last_state(line: str) -> str:
    """Return what carriage returns leave of a line; those at its very end overwrite nothing."""
    body = line.rstrip("\r")
    return body[body.rfind("\r") + 1 :]


def visible(text: str, *, keep_newlines: bool = True) -> str:
    r"""Return ``text`` with every control, format and bidi character written out as ``\x1b``.

    A terminal shows the result as it is: no escape sequence, no hidden or reordering
    character survives. Tabs become four spaces. Joiners between emoji and in scripts
    that need them are written out as well: where something is decided, honesty is worth
    more than beauty.
    """
    return _written_out(text, keep_newlines=keep_newlines, keep_joiners=False)


def readable(text: str, *, keep_newlines: bool = True) -> str:
    """Return ``text`` as `visible` does, but with the joiners that emoji and many scripts are written with.

    For what was said or is remembered, which is read and not decided on.
    """
    return _written_out(text, keep_newlines=keep_newlines, keep_joiners=True)


def joins(char: str, before: str) -> bool:
    """Tell whether ``char`` is a joiner that belongs to ``before``: behind ASCII it has no use."""
    return char in _JOINERS and before > "\x7f"


def _written_out(text: str, *, keep_newlines: bool, keep_joiners: bool) -> str:
    if text.isascii() and text.isprintable():
        return text
    out: list[str] = []
    before = ""
    for char in text:
        if (char == "\n" and keep_newlines) or (keep_joiners and joins(char, before)):
            out.append(char)
        elif char == "\t":
            out.append("    ")
        elif unicodedata.category(char) in {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}:
            code = ord(char)
            out.append(f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}")
        else:
            out.append(char)
        before = char
    return "".join(out)
