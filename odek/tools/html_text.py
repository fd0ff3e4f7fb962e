"""A page of HTML as text that a model can read. Pure, and linear in the page.

The standard library's parser takes quadratic time on malformed pages (12 s for 40 kB of
``<a `` were measured), and pages come from strangers.
"""

import html
import re
from collections.abc import Iterator
from typing import Literal
from urllib.parse import urljoin, urlsplit

import msgspec

__all__ = ["declared_charset", "readable"]

URL_CHARACTERS = 300
"""A longer target of a link is tracking, not an address; no measurement behind this."""

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]*)")
_STOP = re.compile("[\"'>]")
_SPACE = re.compile(r"\s+")
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)

_DROPPED = frozenset({"script", "style", "template", "svg", "iframe", "object"})
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_BLOCKS = frozenset(  # forty strings in quotes would be no easier to read
    "address article aside blockquote body dd details dialog div dl dt fieldset figcaption figure footer form"  # noqa: SIM905
    " head header hr html legend main nav ol p section summary table tbody tfoot thead title tr ul".split()
)


class _Token(msgspec.Struct, frozen=True):
    """Text, or the name of a tag that opens or closes, with its attributes as they stand."""

    kind: Literal["text", "open", "close"]
    value: str
    attributes: str = ""


def readable(page: str, url: str) -> str:
    """Return the text of ``page``: headings with #, lists with -, code fenced, links as text (address).

    ``url`` is where the page is from; addresses are completed by it.
    """
    writer = _Writer(url)
    for token in _tokens(page):
        match token.kind:
            case "text":
                writer.text(html.unescape(token.value))
            case "open":
                writer.open(token.value, token.attributes)
            case "close":
                writer.close(token.value)
    return writer.finish()


def declared_charset(page: bytes) -> str:
    """Return the encoding that the page names for itself, "" if none."""
    match = _CHARSET.search(page[:4096])
    return match[1].decode("ascii", "replace") if match else ""


def _tokens(page: str) -> Iterator[_Token]:
    position = 0
    lowered = page.lower() if len(page.lower()) == len(page) else page
    while (start := page.find("<", position)) >= 0:
        if start > position:
            yield _Token("text", page[position:start])
        if page.startswith("<!--", start):
            end = page.find("-->", start + 4)
            position = end + 3 if end >= 0 else len(page)
        elif page.startswith(("<!", "<?"), start):
            end = page.find(">", start)
            position = end + 1 if end >= 0 else len(page)
        elif (tag := _TAG.match(page, start)) is None:
            yield _Token("text", "<")
            position = start + 1
        else:
            end = _end_of_tag(page, tag.end())
            if end < 0:  # no tag ends from here on
                yield _Token("text", page[start:])
                return
            name = tag[2].lower()
            yield _Token("close" if tag[1] else "open", name, page[tag.end() : end])
            position = end + 1
            if name in _DROPPED and not tag[1] and page[end - 1] != "/":
                position = lowered.find(f"</{name}", position)
                if position < 0:
                    return
    yield _Token("text", page[position:])


def _end_of_tag(page: str, position: int) -> int:
    """Return where the tag's ``>`` is, those in quotes not counted; -1 if there is none."""
    while (stop := _STOP.search(page, position)) is not None:
        if stop[0] == ">":
            return stop.start()
        closing = page.find(stop[0], stop.end())
        if closing < 0:
            return page.find(">", stop.end())
        position = closing + 1
    return -1


def _attribute(attributes: str, name: str) -> str:
    pattern = rf"""(?:^|[\s"'/]){name}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))"""
    match = re.search(pattern, attributes[:4000], re.IGNORECASE)
    return html.unescape(next(filter(None, match.groups()), "")).strip() if match else ""


class _Writer:
    """Gathers lines of text while tags open and close."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lines: list[str] = []
        self._pieces: list[str] = []  # of the line being written
        self._fenced = False
        self._links: list[str] = []  # targets of the open links

    def text(self, text: str) -> None:
        """Add text; white space counts in code only."""
        if self._fenced:
            first, *others = text.split("\n")
            self._pieces.append(first)
            for line in others:
                self._break()
                self._pieces.append(line)
            return
        flat = _SPACE.sub(" ", text)
        if not self._pieces or self._pieces[-1].endswith(" "):
            flat = flat.lstrip()
        if flat:
            self._pieces.append(flat)

    def open(self, name: str, attributes: str) -> None:
        """Begin an element."""
        if name in _HEADINGS:
            self._paragraph()
            self._pieces = [f"{_HEADINGS[name]} "]
        elif name == "li":
            self._end_line()
            self._pieces = ["- "]
        elif name == "br":
            self._break()
        elif name == "pre" and not self._fenced:
            self._paragraph()
            self._lines.append("```")
            self._fenced = True
        elif name in {"td", "th"} and self._pieces:
            self._pieces.append(" | ")
        elif name == "a":
            self._links.append(self._target(_attribute(attributes, "href")))
        elif name == "img" and (alternative := _attribute(attributes, "alt")):
            self.text(f"[image: {alternative}]")
        elif name == "meta" and _attribute(attributes, "http-equiv").lower() == "refresh":
            _, _, target = _attribute(attributes, "content").partition("=")
            if address := self._target(target.strip("\"' ")):
                self._paragraph()
                self._pieces = [f"[this page sends its readers on to {address}]"]
                self._paragraph()
        elif name in _BLOCKS:
            self._paragraph()

    def close(self, name: str) -> None:
        """End an element."""
        if name == "pre" and self._fenced:
            self._end_line()
            self._lines += ["```", ""]
            self._fenced = False
        elif name == "a" and self._links:
            if target := self._links.pop():
                self._pieces.append(f" ({target})")
        elif name in _HEADINGS or name in _BLOCKS:
            self._paragraph()
        elif name == "li":
            self._end_line()

    def finish(self) -> str:
        """Return everything, blank lines never doubled outside of code."""
        self._end_line()
        if self._fenced:
            self._lines.append("```")
        lines: list[str] = []
        fenced = False
        for line in self._lines:
            fenced ^= line == "```"
            if line.strip() or fenced or (lines and lines[-1]):
                lines.append(line.rstrip())
        return "\n".join(lines).strip()

    def _break(self) -> None:
        """Write the line, whatever is in it."""
        self._lines.append("".join(self._pieces))
        self._pieces = []

    def _end_line(self) -> None:
        """Write the line if there is something in it."""
        if "".join(self._pieces).strip(" #-|"):
            self._break()
        self._pieces = []

    def _paragraph(self) -> None:
        if not self._fenced:
            self._end_line()
            self._lines.append("")

    def _target(self, href: str) -> str:
        """Return the address of a link, "" when it is of no use to a reader."""
        if not href or href.startswith("#") or len(href) > URL_CHARACTERS:
            return ""
        try:
            target = urljoin(self._url, href)
            return target if urlsplit(target).scheme in {"http", "https", "mailto"} else ""
        except ValueError:
            return ""
