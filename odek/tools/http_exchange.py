"""One HTTP request to an address that was looked at before. Loaded with the first request."""

import socket
import ssl
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx2
import msgspec
import trio

from odek import __version__
from odek.errors import ToolError
from odek.llm.causes import root_cause
from odek.text import clip_line
from odek.tools.addresses import Address, parse_address, refusal

__all__ = ["Hop", "ask", "parse_url", "resolve"]

MAX_ADDRESSES = 4
"""Of one name, tried in turn while nobody answers."""

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 20.0
"""A server that is silent for longer has hung; no measurement behind either."""


_GZIP_MARK = b"\x1f\x8b"


class Hop(msgspec.Struct, frozen=True):
    """One response. ``redirect`` is where to ask instead, "" if nowhere.

    ``body`` is decompressed; ``cut`` says that it is not all that there is. ``size`` is
    what the server says of the whole, "" if nothing.
    """

    url: str
    address: str
    status: int
    reason: str
    content_type: str
    size: str
    redirect: str
    body: bytes
    cut: bool


class _UnreachableError(ToolError):
    """No connection came about; another address of the same host may do better."""


def parse_url(url: str) -> httpx2.URL:
    """Return ``url`` in its parts, international names in their ASCII form.

    Raises:
        ToolError: it is no address of a host.
    """
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise ToolError(f"http_get: {clip_line(url, 200)} is not a valid URL: {error}") from None
    if not parsed.host or parsed.userinfo:
        raise ToolError(f"http_get: {clip_line(url, 200)} does not simply name a host")
    return parsed


async def resolve(url: httpx2.URL) -> list[Address]:
    """Return the addresses of the host of ``url``, every one of them permitted.

    Raises:
        ToolError: the name is not known, or one of its addresses is refused.
    """
    host = url.raw_host.decode("ascii")
    try:
        found = await trio.socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no valid name"
        raise ToolError(f"http_get: the host {url.host} is not known: {reason}") from None
    addresses = list(dict.fromkeys(parse_address(str(entry[4][0])) for entry in found))
    for address in addresses:
        if why := refusal(address):
            raise ToolError(f"http_get: {url.host} is {address}, which is refused: {why}")
    return addresses[:MAX_ADDRESSES]


async def ask(url: httpx2.URL, addresses: Sequence[Address], tls: ssl.SSLContext, limit_bytes: int) -> Hop:
    """Get ``url`` from the first of ``addresses`` that can be reached.

    Raises:
        ToolError: no address could be reached, or the exchange broke.
    """
    failure = ToolError(f"http_get: {url.host} has no address")
    for address in addresses:
        try:
            with _translated(url.host, address):
                return await _Exchange(url, address, limit_bytes).run(tls)
        except _UnreachableError as error:
            failure = error
    raise failure


class _Inflater:
    """Decompresses a body piece by piece: gzip, of several members too, or deflate."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(zlib.MAX_WBITS | 32)
        self._past_end = b""

    @property
    def ended(self) -> bool:
        """Whether what came so far is whole."""
        return self._stream.eof

    def feed(self, piece: bytes, room: int) -> bytes:
        """Return what ``piece`` holds, at most ``room`` bytes.

        Raises:
            zlib.error: it is no such data.
        """
        taken = bytearray()
        piece = self._past_end + piece
        while len(taken) < room:
            if self._stream.eof:
                if len(piece) < len(_GZIP_MARK) or not piece.startswith(_GZIP_MARK):
                    self._past_end = piece[: len(_GZIP_MARK)]  # else padding, which means nothing
                    break
                self._stream = zlib.decompressobj(zlib.MAX_WBITS | 32)
            taken += self._stream.decompress(piece, room - len(taken))
            piece = self._stream.unused_data
            if not self._stream.eof:
                break
        return bytes(taken)


class _Exchange:
    """One request and its response."""

    def __init__(self, url: httpx2.URL, address: Address, limit_bytes: int) -> None:
        self._url = url
        self._address = address
        self._limit_bytes = limit_bytes
        self._body = bytearray()
        self._cut = False
        self._corrupt = False
        # Cancelling it is how a body is left early: leaving the iteration would strand the
        # library's generators.
        self._scope = trio.CancelScope()
        self._connecting: trio.abc.AsyncResource | None = None

    async def run(self, tls: ssl.SSLContext) -> Hop:
        """Send the request and take the response."""
        heads: list[httpx2.Response] = []
        with self._scope:
            try:
                timeout = httpx2.Timeout(IDLE_SECONDS, connect=CONNECT_SECONDS)
                async with (
                    httpx2.AsyncClient(verify=tls, trust_env=False, timeout=timeout) as client,
                    client.stream(
                        "GET", self._pinned(), headers=self._headers(), extensions=self._extensions()
                    ) as response,
                ):
                    heads.append(response)
                    await self._take(response)
            finally:
                if self._connecting is not None:  # the library forgets it when cancelled inside TLS
                    await self._connecting.aclose()
        if self._corrupt:
            raise ToolError(
                f"http_get: {self._url.host} ({self._address}) sent a body that does not decompress"
            )
        return self._hop(heads[0])

    def _pinned(self) -> httpx2.URL:
        return self._url.copy_with(host=str(self._address), fragment=None)

    def _headers(self) -> dict[str, str]:
        return {
            "Host": self._url.netloc.decode("ascii"),
            "Accept": "text/html, text/*, application/json, */*;q=0.5",
            "Accept-Encoding": "gzip",
            "User-Agent": f"odek/{__version__}",
        }

    def _extensions(self) -> dict[str, Any]:
        extensions: dict[str, Any] = {"trace": self._trace}
        name = self._url.raw_host.decode("ascii")
        if name != str(self._address):
            extensions["sni_hostname"] = name  # the certificate must be that of the name
        return extensions

    async def _trace(self, event: str, details: dict[str, Any]) -> None:
        """Hold the connection while TLS is made."""
        if event == "connection.connect_tcp.complete":
            self._connecting = details["return_value"]
        elif event.endswith(".send_request_headers.started"):
            self._connecting = None

    async def _take(self, response: httpx2.Response) -> None:
        if response.has_redirect_location:
            self._scope.cancel()
            return
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
            raise ToolError(f"http_get: {self._url.host} answers compressed by {encoding!r}, unasked")
        inflater = _Inflater() if encoding not in {"", "identity"} else None
        async for piece in response.aiter_raw():
            self._take_piece(piece, inflater)  # must not raise: that would strand the generators, too
        if inflater is not None and self._body and not inflater.ended:
            self._cut = True

    def _take_piece(self, piece: bytes, inflater: _Inflater | None) -> None:
        """Add a piece of the body, never much more than is wanted, however small its compressed form."""
        room = self._limit_bytes + 1 - len(self._body)
        if room > 0 and not self._corrupt:
            try:
                self._body += piece[:room] if inflater is None else inflater.feed(piece, room)
            except zlib.error:
                self._corrupt = True
        self._cut = len(self._body) > self._limit_bytes
        if self._cut or self._corrupt:
            self._scope.cancel()

    def _hop(self, response: httpx2.Response) -> Hop:
        location = response.headers.get("location", "") if response.has_redirect_location else ""
        return Hop(
            url=str(self._url),
            address=str(self._address),
            status=response.status_code,
            reason=response.reason_phrase,
            content_type=response.headers.get("content-type", ""),
            size=response.headers.get("content-length", ""),
            redirect=str(self._url.join(location)) if location else "",
            body=bytes(self._body[: self._limit_bytes]),
            cut=self._cut,
        )


@contextmanager
def _translated(host: str, address: Address) -> Iterator[None]:
    """Turn the errors of httpx2 into sentences."""
    try:
        yield
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        late = isinstance(error, httpx2.ConnectTimeout)
        reason = f"no connection within {CONNECT_SECONDS:g} s" if late else root_cause(error)
        raise _UnreachableError(f"http_get: cannot connect to {host} ({address}): {reason}") from None
    except httpx2.TimeoutException:
        raise ToolError(f"http_get: {host} ({address}) was silent for {IDLE_SECONDS:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ToolError(
            f"http_get: the exchange with {host} ({address}) broke: {root_cause(error)}"
        ) from None
