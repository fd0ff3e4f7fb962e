"""The ``http_get`` tool: one page of the web as text."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
import trio
from msgspec import Meta

from odek.errors import ToolError
from odek.patterns import late_pattern
from odek.text import clip_line, without_surrogates
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput
from odek.trust.effects import Effects

if TYPE_CHECKING:
    import ssl

__all__ = ["HttpGetArguments", "HttpGetTool"]

BODY_BYTES = 1_000_000
"""Taken of a body, decompressed; a page of text is rarely a tenth of that."""

MAX_REDIRECTS = 5
TOTAL_SECONDS = 60.0
"""For everything, redirects included; no measurement behind either."""

_URL_CHARACTERS = 2000
_NOT_IN_URL = late_pattern("[\x00-\x20\x7f-\xa0\\\\\u2028\u2029\ud800-\udfff]")


class HttpGetArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to fetch."""

    url: Annotated[str, Meta(description="Address, starting with http:// or https://.")]


class HttpGetTool(Tool[HttpGetArguments]):
    """Fetches pages. ``tls`` holds the certificates to trust; None means those of the system.

    Connections are made directly, not through a proxy, to an address that was looked at
    before: a name cannot lead to one place when it is judged and to another when it is used.
    """

    name: ClassVar[str] = "http_get"
    description: ClassVar[str] = (
        "Fetch a URL and return its text: HTML as readable text with headings and links, JSON and other "
        "text as it is. At most 1 MB is taken. The first line says status, type and where it came from."
    )
    arguments_type = HttpGetArguments
    timeout_seconds = TOTAL_SECONDS + 5

    def __init__(self, tls: "ssl.SSLContext | None" = None) -> None:
        self._tls = tls

    async def prepare(self, arguments: HttpGetArguments) -> PreparedCall:
        """Check the address; see the base class."""
        await trio.lowlevel.checkpoint()
        url = arguments.url.strip()
        _check_url(url)

        async def run(_scope: CallScope) -> ToolOutput:
            with trio.move_on_after(TOTAL_SECONDS):
                return await self._get(url)
            raise ToolError(f"http_get: {clip_line(url, 200)} took longer than {TOTAL_SECONDS:g} s")

        return PreparedCall(url, Effects(urls=(url,)), run)

    async def _get(self, asked: str) -> ToolOutput:
        from odek.tools.addresses import is_public
        from odek.tools.http_exchange import ask, parse_url, resolve
        from odek.tools.http_page import describe_page

        url, asked_host, began_public = asked, "", False
        for redirects in range(MAX_REDIRECTS + 1):
            parsed = parse_url(url)
            addresses = await resolve(parsed)
            public = all(map(is_public, addresses))
            if not redirects:
                asked_host, began_public = parsed.host, public
            if not public and (parsed.host != asked_host or began_public):
                raise ToolError(
                    f"http_get: {asked_host} redirects to {clip_line(url, 200)}, which is private; "
                    "fetch that address itself if it is meant"
                )
            hop = await ask(parsed, addresses, await self._context(parsed.scheme), BODY_BYTES)
            if not hop.redirect:
                return await trio.to_thread.run_sync(partial(describe_page, hop, redirects))
            url = hop.redirect
            _check_url(url)
        raise ToolError(f"http_get: {clip_line(asked, 200)} redirects more than {MAX_REDIRECTS} times")

    async def _context(self, scheme: str) -> "ssl.SSLContext":
        import ssl

        import httpx2

        if scheme == "http":
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody, and costs no time
        if self._tls is None:  # reading the certificates takes a while
            self._tls = await trio.to_thread.run_sync(httpx2.create_ssl_context, abandon_on_cancel=True)
        return self._tls


def _check_url(url: str) -> None:
    """Refuse what is no plain web address, and addresses that are refused as they are written.

    Raises:
        ToolError: says which rule.
    """
    from urllib.parse import urlsplit

    from odek.tools.addresses import parse_address, refusal

    shown = clip_line(without_surrogates(url), 200)
    if len(url) > _URL_CHARACTERS or _NOT_IN_URL.search(url):
        raise ToolError(
            f"http_get: {shown} is not a URL: more than {_URL_CHARACTERS} characters, "
            "or a space, backslash or control character in it"
        )
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise ToolError(f"http_get: {shown} is not a URL: {error}") from None
    if parts.scheme not in {"http", "https"}:
        raise ToolError(f"http_get: {shown} does not start with http:// or https://")
    if not host:
        raise ToolError(f"http_get: {shown} names no host")
    if "@" in parts.netloc:
        raise ToolError("http_get: the URL holds a user name or password, which is not sent; leave it out")
    try:
        why = refusal(parse_address(host))
    except ValueError:
        return  # a name: it is judged by what it resolves to
    if why:
        raise ToolError(f"http_get: {host} is refused: {why}")
