"""One request with a body, answered by a body: for endpoints that do not stream."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec
import trio

from odek.errors import ModelUnavailableError
from odek.llm.endpoint import is_loopback

__all__ = ["Reply", "post"]


class Reply(msgspec.Struct, frozen=True):
    """What came back. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status says so."""
        return 200 <= self.status < 300


async def post(
    url: str, body: bytes, *, limit_bytes: int, headers: Mapping[str, str] | None = None, socket: str = ""
) -> Reply:
    """Send JSON and return the whole answer, whatever its status. The caller bounds the time.

    Args:
        url: Where to; no redirect is followed, for texts and keys go where the settings say.
        body: The JSON.
        limit_bytes: Longest answer.
        headers: Beside those that every request has.
        socket: A Unix socket to connect to; the host of ``url`` is then a name alone.

    Raises:
        ModelUnavailableError: there is no answer, or it is too long; says why.
    """
    import ssl

    import httpx2

    from odek.llm.causes import root_cause
    from odek.llm.transport import trusting_context

    name = urlsplit(url).hostname or ""
    host = socket or name or url
    try:
        if url.startswith("https:"):
            context = await trio.to_thread.run_sync(trusting_context, abandon_on_cancel=True)
        else:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody, and costs no time
        sent = {"Content-Type": "application/json", "Accept-Encoding": "identity", **(headers or {})}
        transport = httpx2.AsyncHTTPTransport(verify=context, uds=socket) if socket else None
        received = bytearray()
        too_long = trio.CancelScope()  # leaving the iteration early would strand its generators
        # A client for each request: half a millisecond, and nothing to close later.
        async with httpx2.AsyncClient(
            verify=context,
            headers=sent,
            timeout=None,
            transport=transport,
            trust_env=not (socket or is_loopback(name)),
        ) as http:
            with too_long:
                async with http.stream("POST", url, content=body) as response:
                    async for piece in response.aiter_bytes():
                        received += piece
                        if len(received) > limit_bytes:
                            too_long.cancel()
    except (httpx2.RequestError, httpx2.InvalidURL, OSError, ValueError, ImportError) as error:
        raise ModelUnavailableError(f"{host}: {root_cause(error)}") from error
    if too_long.cancelled_caught:
        raise ModelUnavailableError(f"{host} sent more than {limit_bytes:,} bytes")
    return Reply(response.status_code, dict(response.headers), bytes(received))
