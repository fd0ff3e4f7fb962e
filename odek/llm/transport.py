"""One streamed request over HTTP, and what the errors of httpx2 mean for it."""

import math
import os
import ssl
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import httpx2
import trio

from odek import __version__
from odek.errors import ConfigError
from odek.llm.answer import AnswerDecoder
from odek.llm.bursts import take_in_bursts
from odek.llm.causes import causes, root_cause
from odek.llm.endpoint import Endpoint
from odek.llm.faults import Fault, fault_in_stream, fault_of_page, fault_of_status, without_secret
from odek.llm.model import ModelEvent
from odek.llm.sse import EventTooLongError
from odek.text import clip_line, visible

__all__ = ["Transport", "open_transport", "rehearse_http", "trusting_context"]

RESPONSE_LIMIT_BYTES = 64 * 1024 * 1024
"""Longest response, decompressed. The longest answers are some 400,000 tokens, and a token
takes about 150 bytes of stream. Bounds what a broken or hostile server can make us hold."""

# Of the body of an error: the message is in the first kilobyte, and comes with the status or not at all.
_ERROR_BODY_BYTES = 64 * 1024
_ERROR_BODY_SECONDS = 5.0
_MAX_REDIRECTS = 3  # within one origin; more is a loop
# After the last word the usage may follow; and after [DONE] the end of the body, which lets
# the connection be used again. No measurement behind either.
_AFTER_FINISH_SECONDS = 5.0
_AFTER_DONE_SECONDS = 0.2
_CLOSE_SECONDS = 2.0


@asynccontextmanager
async def open_transport(endpoint: Endpoint) -> AsyncGenerator["Transport"]:
    """Yield a transport to ``endpoint``; its connections are closed with the block."""
    transport = Transport(endpoint)
    try:
        yield transport
    finally:
        with trio.move_on_after(_CLOSE_SECONDS, shield=True):
            await transport.aclose()


class Transport:
    """Sends requests and feeds the responses to decoders."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._http: httpx2.AsyncClient | None = None
        self._opening = trio.Lock()

    async def send(
        self, body: bytes, answer: AnswerDecoder, on_event: Callable[[ModelEvent], None]
    ) -> Fault | None:
        """Send ``body``, feed ``answer``; return why there is no whole answer, or None.

        ``on_event`` is called from within the stream and must neither block nor raise.
        """
        http = await self._client()
        url = _parsed(self._endpoint.url)
        for _ in range(_MAX_REDIRECTS + 1):
            response = _Response(self._endpoint, answer, on_event)
            await response.receive(http, url, body)
            if response.fault is not None:
                return response.fault
            if response.redirect is None:
                for event in answer.close():
                    on_event(event)
                return self._verdict(answer, response)
            target = _joined(url, response.redirect)
            if target is None or (target.scheme, target.netloc) != (url.scheme, url.netloc):
                return _rejected(
                    f"{self._endpoint.shown_url} redirects to {clip_line(visible(response.redirect), 200)};"
                    " set the base URL to that address if you trust it"
                )
            url = target
        return _rejected(f"{self._endpoint.host} redirects in a circle; check the base URL")

    async def aclose(self) -> None:
        """Close all connections."""
        if self._http is not None:
            await self._http.aclose()

    def _verdict(self, answer: AnswerDecoder, response: "_Response") -> Fault | None:
        """Return what is wrong with a body that came without a fault of the connection, or None."""
        host = self._endpoint.host
        if answer.finished:
            return None
        if answer.error is not None:
            return fault_in_stream(without_secret(answer.error, self._endpoint.api_key), host=host)
        if answer.page is not None:
            return fault_of_page(
                without_secret(answer.page, self._endpoint.api_key), url=self._endpoint.shown_url
            )
        if response.broken is not None:
            return response.broken
        return Fault(f"{host} ended the connection {'inside' if answer.started else 'without'} an answer")

    async def _client(self) -> httpx2.AsyncClient:
        async with self._opening:
            if self._http is None:
                self._http = await self._open_client()
        return self._http

    async def _open_client(self) -> httpx2.AsyncClient:
        endpoint = self._endpoint
        headers = {
            "Accept": "text/event-stream, application/json",
            "Accept-Encoding": "identity",  # a compressor would hold pieces back
            "Content-Type": "application/json",
            "User-Agent": f"odek/{__version__}",
        }
        if endpoint.api_key:
            headers["Authorization"] = f"Bearer {endpoint.api_key}"
        if endpoint.is_tls:
            try:
                context = await trio.to_thread.run_sync(trusting_context, abandon_on_cancel=True)
            except OSError as error:  # also what is wrong inside the file
                raise ConfigError(
                    f"the trusted certificates cannot be read: {error}; see SSL_CERT_FILE"
                ) from error
        else:
            context = _trusting_nobody()
        try:
            return httpx2.AsyncClient(
                verify=context,
                trust_env=not endpoint.is_loopback,
                headers=headers,
                timeout=httpx2.Timeout(endpoint.idle_timeout_seconds, connect=None, pool=None),
                limits=httpx2.Limits(max_connections=None),
            )
        except (ImportError, ValueError, httpx2.InvalidURL) as error:
            raise ConfigError(f"the proxy named in the environment cannot be used: {error}") from error


def rehearse_http() -> None:
    """Load and do what every request needs, short of sending it."""
    # With a client the library loads most of itself. A proxy that the environment names may be unusable, and
    # not be needed either.
    client = httpx2.AsyncClient(verify=_trusting_nobody(), trust_env=False)
    client.build_request("POST", "http://localhost", content=b"")


def trusting_context() -> ssl.SSLContext:
    """Return the one context that trusts what the environment says, or else what the system does.

    Reading the certificates takes a while, once.
    """
    return _context(os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))


@cache
def _trusting_nobody() -> ssl.SSLContext:
    """Return the context of a client that has no use for one: it reads no certificates."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@cache
def _context(_file: str, _directory: str) -> ssl.SSLContext:
    return httpx2.create_ssl_context()


def _parsed(url: str) -> httpx2.URL:
    try:
        return httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise ConfigError(f"base_url {url!r} is no address of an endpoint: {error}") from error


def _joined(url: httpx2.URL, location: str) -> httpx2.URL | None:
    """Return where ``location`` leads from ``url``, with the credentials of ``url``, or None."""
    try:
        target = url.join(location)
    except httpx2.InvalidURL:
        return None
    return target.copy_with(userinfo=url.userinfo) if target.netloc == url.netloc else target


class _Response:
    """Receives one response.

    Afterwards at most one of these is set: ``redirect``, where to ask instead; ``fault``,
    why there is no answer whatever has arrived; ``broken``, how the connection ended
    early, which does no harm to an answer that was whole by then.
    """

    def __init__(
        self, endpoint: Endpoint, answer: AnswerDecoder, on_event: Callable[[ModelEvent], None]
    ) -> None:
        self.redirect: str | None = None
        self.fault: Fault | None = None
        self.broken: Fault | None = None
        self._endpoint = endpoint
        self._answer = answer
        self._on_event = on_event
        self._received_bytes = 0
        # Cancelling it is how the stream is left early: leaving the iteration would strand
        # the generators below. Its deadline is that of connecting, then of the farewell.
        self._scope = trio.CancelScope()
        self._sent = False
        self._connecting: trio.abc.AsyncResource | None = None
        self._refusal: httpx2.Response | None = None
        self._refusal_body = bytearray()

    async def receive(self, http: httpx2.AsyncClient, url: httpx2.URL, body: bytes) -> None:
        """Send the request and take the whole response."""
        limit = self._endpoint.settings.connect_timeout_seconds
        try:
            with self._scope:
                self._scope.deadline = trio.current_time() + limit
                try:
                    await self._exchange(http, url, body)
                finally:
                    if self._connecting is not None:  # the library forgets it when cancelled inside TLS
                        await self._connecting.aclose()
        except httpx2.RequestError as error:
            # Just closed, as by a server that died: the verdict has words for that.
            self.broken = None if _was_closed(error) else _fault_of_error(error, self._endpoint)
        if self._refusal is not None:  # whatever became of its body
            self.fault = self._refused(self._refusal)
        elif self._scope.cancelled_caught and not self._sent:
            self.broken = Fault(f"cannot reach {self._endpoint.host}: no connection within {limit:g} s")

    async def _exchange(self, http: httpx2.AsyncClient, url: httpx2.URL, body: bytes) -> None:
        async with http.stream("POST", url, content=body, extensions={"trace": self._trace}) as response:
            await self._take(response)

    async def _trace(self, event: str, details: dict[str, Any]) -> None:
        """Follow the connection from its first byte to the request itself, behind TLS and any proxy."""
        if event == "connection.connect_tcp.complete":
            self._connecting = details["return_value"]
        elif event.endswith(".send_request_headers.started") and details["request"].method == b"POST":
            self._sent = True
            self._connecting = None
            self._scope.deadline = math.inf

    async def _take(self, response: httpx2.Response) -> None:
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if response.has_redirect_location:
            self.redirect = response.headers["location"]
        elif encoding not in ("identity", "gzip", "deflate", ""):
            self.fault = _rejected(f"{self._endpoint.host} answers compressed by {encoding!r}, unasked")
        elif response.is_success:
            await take_in_bursts(response.aiter_bytes(), self._take_burst)
        else:
            self._refusal = response
            self._scope.deadline = trio.current_time() + _ERROR_BODY_SECONDS
            async for piece in response.aiter_bytes():
                self._refusal_body += piece[:_ERROR_BODY_BYTES]
                if len(self._refusal_body) >= _ERROR_BODY_BYTES:
                    self._scope.cancel()

    def _take_burst(self, burst: bytes) -> None:
        self._received_bytes += len(burst)
        if self._received_bytes > RESPONSE_LIMIT_BYTES:
            self.fault = _rejected(f"{self._endpoint.host} sent more than {RESPONSE_LIMIT_BYTES:,} bytes")
        try:
            for event in self._answer.feed(burst):
                self._on_event(event)
        except EventTooLongError as error:
            self.fault = _rejected(f"{self._endpoint.host} sent {error}")
        if self.fault is not None or self._answer.error is not None:
            self._scope.cancel()
        elif self._answer.finished or self._answer.done:
            grace = _AFTER_DONE_SECONDS if self._answer.done else _AFTER_FINISH_SECONDS
            self._scope.deadline = min(self._scope.deadline, trio.current_time() + grace)

    def _refused(self, response: httpx2.Response) -> Fault:
        return fault_of_status(
            response.status_code,
            response.headers,
            without_secret(bytes(self._refusal_body), self._endpoint.api_key),
            host=self._endpoint.host,
            now=time.time(),
        )


def _rejected(message: str) -> Fault:
    return Fault(message, "rejected", retriable=False)


def _fault_of_error(error: httpx2.RequestError, endpoint: Endpoint) -> Fault:
    """Return the fault that an error of httpx2 means."""
    host, reason = endpoint.host, root_cause(error)
    match error:
        case httpx2.TimeoutException():
            return Fault(f"{host} was silent for {endpoint.idle_timeout_seconds:g} s")
        case httpx2.ConnectError() if _is_refused_handshake(error):
            return _rejected(
                f"no secure connection to {host}: {reason}; check the base URL and the certificates"
            )
        case httpx2.ConnectError():
            return Fault(f"cannot reach {host}: {reason}; is the base URL right, and the server running?")
        case httpx2.ProxyError():
            return Fault(f"the proxy on the way to {host} refused: {reason}", retriable="407" not in reason)
        case httpx2.DecodingError() | httpx2.ProtocolError():
            return Fault(f"{host} broke the rules of HTTP: {reason}")
        case _:
            return Fault(f"the connection to {host} broke: {reason}")


def _was_closed(error: httpx2.RequestError) -> bool:
    """Whether the server only closed the connection too early; h11 tells it in words alone."""
    return isinstance(error, httpx2.RemoteProtocolError) and "without sending" in str(error)


def _is_refused_handshake(error: BaseException) -> bool:
    """Whether TLS itself failed, and not the connection below it."""
    closed = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
    return any(isinstance(cause, ssl.SSLError) and not isinstance(cause, closed) for cause in causes(error))
