"""What ``http_get`` returns, how it stays bounded, and where it does not go."""

import gzip
import re
import shutil
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import trio

from odek.errors import ToolError
from odek.tools.http_get import BODY_BYTES, HttpGetTool
from odek.tools.http_page import OUTPUT_BYTES
from odek.tools.tool import ToolOutput
from tests.support.endpoints import refusing_port
from tests.support.tool_calls import call, prepare
from tests.support.waiting import HANG_SECONDS

Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]


def response(
    body: bytes | str, content_type: str = "text/plain", status: str = "200 OK", **headers: str
) -> bytes:
    """Return the bytes of a response."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"content-type: {content_type}", f"content-length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


def moved(to: str) -> bytes:
    """Return a redirect."""
    return response("elsewhere", status="302 Found", location=to)


async def listen(nursery: trio.Nursery, handler: Callable[[trio.SocketStream], Awaitable[None]]) -> int:
    """Serve on a loopback port in ``nursery``; return the port."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, handler, listeners)
    return int(listeners[0].socket.getsockname()[1])


class Site:
    """A loopback server that answers each path with prepared bytes, and keeps what it was sent."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.port = 0
        self.endless = b""
        self.closed = trio.Event()

    @property
    def root(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, stream: Stream) -> None:
        """Answer one request; after its page an endless path goes on until the peer has gone."""
        request = b""
        try:
            while b"\r\n\r\n" not in request:
                request += await stream.receive_some(65536)
            self.requests.append(request.decode("latin-1"))
            await stream.send_all(self.pages[request.split(b" ")[1].decode()])
            while self.endless:
                await stream.send_all(self.endless)
        except trio.BrokenResourceError:
            self.closed.set()
        finally:
            await trio.aclose_forcefully(stream)


@pytest.fixture
async def site(nursery: trio.Nursery) -> AsyncIterator[Site]:
    """A site that is up."""
    site = Site()
    site.port = await listen(nursery, site.serve)
    yield site
    nursery.cancel_scope.cancel()


async def fetch(url: str, tool: HttpGetTool | None = None) -> ToolOutput:
    """Fetch within a time that only a hanging request would need."""
    with trio.fail_after(HANG_SECONDS):
        return await call(tool or HttpGetTool(), url=url)


async def test_text_comes_as_it_is_with_its_source(site: Site) -> None:
    """Plain text and JSON are unchanged below a line that names status, type, address."""
    site.pages["/a?q=1"] = response('{"a": "größe"}', "application/json")

    output = await fetch(f"{site.root}/a?q=1#part")

    head, _, body = output.content.partition("\n")
    assert head == f"[200 OK, application/json, from {site.root}/a?q=1#part at 127.0.0.1]"
    assert body == '{"a": "größe"}'
    assert not output.is_error
    assert site.requests[0].startswith(f"GET /a?q=1 HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n")


async def test_effect_is_the_url(site: Site) -> None:
    """The call declares the address it goes to, and asks nobody before it runs."""
    prepared = await prepare(HttpGetTool(), url=f" {site.root}/x ")

    assert prepared.effects.urls == (f"{site.root}/x",)
    assert prepared.summary == f"{site.root}/x"
    assert site.requests == []


async def test_name_is_pinned_to_the_address_that_was_judged(site: Site) -> None:
    """A name is resolved once; the server still sees the name, the model sees the address."""
    site.pages["/"] = response("hello")

    output = await fetch(f"http://localhost:{site.port}/")

    assert f"from http://localhost:{site.port}/ at 127.0.0.1]" in output.content
    assert f"\r\nHost: localhost:{site.port}\r\n" in site.requests[0]


async def test_redirects_are_followed_and_counted(site: Site) -> None:
    """Redirects on one host are followed, relative ones included, up to a limit."""
    site.pages["/a"] = moved("b?x")
    site.pages["/b?x"] = moved(f"{site.root}/c")
    site.pages["/c"] = response("here")
    site.pages["/loop"] = moved("/loop")

    output = await fetch(f"{site.root}/a")

    assert output.content == f"[200 OK, text/plain, from {site.root}/c at 127.0.0.1, after 2 redirects]\nhere"
    with pytest.raises(ToolError, match="redirects more than 5 times"):
        await fetch(f"{site.root}/loop")
    assert len(site.requests) == 3 + 6


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("http://localhost:{port}/b", "redirects to http://localhost:.*, which is private"),
        ("http://169.254.169.254/latest", "169.254.169.254 is refused: it is a metadata service"),
        ("file:///etc/passwd", "does not start with http"),
        ("http://user:pw@127.0.0.1:{port}/", "user name or password"),
        ("http://2852039166/", "is 169.254.169.254, which is refused"),
    ],
)
async def test_redirects_obey_the_same_rules(site: Site, target: str, message: str) -> None:
    """A redirect gets nowhere that the person could not have meant."""
    site.pages["/a"] = moved(target.format(port=site.port))

    with pytest.raises(ToolError, match=message):
        await fetch(f"{site.root}/a")
    assert len(site.requests) == 1


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://example.com/", "does not start with http"),
        ("example.com", "does not start with http"),
        ("http://", "names no host"),
        ("http://a b/", "a space, backslash or control character"),
        ("http://good.com\\@evil.com/", "a space, backslash or control character"),
        ("http://good.com@evil.com/", "user name or password"),
        ("http://x:99999/", "not a URL: Port out of range"),
        ("http://x/" + "y" * 2000, "more than 2000 characters"),
        ("http://169.254.169.254/", "refused: it is a metadata service"),
        ("http://[::ffff:169.254.169.254]/", "refused: it is a metadata service"),
        ("http://[fe80::1]/", "refused: it is link-local"),
        ("http://0.0.0.0/", "refused: it is not an address of any one machine"),
        ("http://224.0.0.1/", "refused: it is a multicast address"),
    ],
)
async def test_unfit_addresses_are_refused_unasked(url: str, message: str) -> None:
    """What is no plain web address, or one that is always refused, fails before any approval."""
    with pytest.raises(ToolError, match=message) as error:
        await prepare(HttpGetTool(), url=url)

    assert len(str(error.value)) < 400


@pytest.mark.parametrize("host", ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518"])
async def test_numbers_that_are_addresses_are_refused(host: str) -> None:
    """Other spellings of a refused address are known by what they resolve to."""
    with pytest.raises(ToolError, match=r"169\.254\.169\.254, which is refused|Invalid IPv4 address"):
        await fetch(f"http://{host}/")


async def test_unknown_host_is_a_sentence() -> None:
    """A name that does not resolve is said to be unknown."""
    with pytest.raises(ToolError, match=r"^http_get: the host no-such-host\.invalid is not known"):
        await fetch("http://no-such-host.invalid/")


async def test_refused_connection_is_a_sentence(site: Site) -> None:
    """Nobody there is one line with name, address and reason."""
    refused = r"cannot connect to 127\.0\.0\.1 \(127\.0\.0\.1\): Connection refused"
    with refusing_port() as port, pytest.raises(ToolError, match=refused):
        await fetch(f"http://127.0.0.1:{port}/")


async def test_error_status_is_an_error_with_its_page(site: Site) -> None:
    """A page that comes with 404 is shown in its beginning and marked as a failure."""
    site.pages["/a"] = response("<h1>Gone</h1>" + "<p>word</p>" * 5000, "text/html", "404 Not Found")

    output = await fetch(f"{site.root}/a")

    assert output.is_error
    assert output.content.startswith(
        f"[404 Not Found, text/html, from {site.root}/a at 127.0.0.1]\n# Gone\n\nword\n"
    )
    assert len(output.content) < 4300


async def test_binary_is_refused_with_type_and_size(site: Site) -> None:
    """Pictures and nameless bytes are described, not returned."""
    site.pages["/a"] = response(b"\x89PNG\r\n\x1a\n" + bytes(100), "image/png")
    site.pages["/b"] = response(b"PK\x03\x04\0\0", "text/plain")

    picture = await fetch(f"{site.root}/a")
    archive = await fetch(f"{site.root}/b")

    assert picture.is_error
    assert picture.content.endswith("\n[not text: PNG image, 108 bytes]")
    assert archive.content.endswith("\n[not text: zip archive or office document, 6 bytes]")


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("größe".encode("latin-1"), "text/plain; Charset=ISO-8859-1"),
        ("größe".encode("latin-1"), "text/plain"),
        ("größe".encode(), 'text/plain; charset="utf-8"'),
        ("größe".encode("utf-16"), "text/plain"),
        ("größe".encode("utf-16-le"), "text/plain; charset=utf-16-le"),
        ("größe".encode(), "text/plain; charset=rot13"),
        ("größe".encode(), "text/plain; charset=windows-9999"),
        ("<meta charset='windows-1252'>größe".encode("cp1252"), "text/html"),
    ],
)
async def test_encodings(site: Site, body: bytes, content_type: str) -> None:
    """The encoding is that of the header, the mark or the page, and a nonsensical one is no obstacle."""
    site.pages["/"] = response(body, content_type)

    assert (await fetch(site.root)).content.endswith("\ngröße")


@pytest.mark.parametrize(
    ("said", "used", "text"),
    [
        ("gb2312", "gbk", "镕 繁體"),
        ("GBK", "gb18030", "\u20ac 𠀀"),
        ("iso-8859-1", "cp1252", "it\u2019s \u2013 “so”"),
        ("us-ascii", "cp1252", "“so”"),
        ("shift_jis", "cp932", "①髙"),
        ("euc-kr", "cp949", "뷁"),
        ("big5", "big5hkscs", "啫"),
    ],
)
async def test_a_page_may_use_more_than_the_encoding_that_it_names(
    site: Site, said: str, used: str, text: str
) -> None:
    """Browsers read each of these as the wider one, so that nobody notices when they are wrong."""
    site.pages["/header"] = response(text.encode(used), f"text/plain; charset={said}")
    site.pages["/page"] = response(f"<meta charset={said}><p>{text}</p>".encode(used), "text/html")

    for path in site.pages:
        assert (await fetch(f"{site.root}{path}")).content.endswith(f"\n{text}")


async def test_a_page_that_refreshes_itself_says_where_to(site: Site) -> None:
    """What a browser would follow is told with its whole address."""
    site.pages["/"] = response('<meta http-equiv="Refresh" content="0; URL=\'/new?a=1\'">', "text/html")

    assert (await fetch(site.root)).content.endswith(
        f"\n[this page sends its readers on to {site.root}/new?a=1]"
    )


async def test_html_without_a_type_is_read_as_html(site: Site) -> None:
    """A body that begins like a page is one."""
    site.pages["/"] = b"HTTP/1.1 200 OK\r\ncontent-length: 30\r\n\r\n<html><body><p>text</p></html>"

    assert (await fetch(site.root)).content.endswith("]\ntext")


async def test_endless_body_is_cut_and_its_connection_closed(site: Site) -> None:
    """One megabyte of a body without end is taken, and the server is told at once."""
    site.pages["/"] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"
    site.endless = b"line of text\n" * 5000

    output = await fetch(site.root)
    with trio.fail_after(HANG_SECONDS):
        await site.closed.wait()

    assert len(output.content) < OUTPUT_BYTES + 300
    assert output.content.endswith(f"[cut: {OUTPUT_BYTES:,} of {BODY_BYTES:,} characters]")


async def test_decompression_bomb_is_bounded(site: Site) -> None:
    """A body that grows a thousandfold when decompressed is cut like any other."""
    site.pages["/"] = response(gzip.compress(b"x" * 200_000_000), content_encoding="gzip")
    site.pages["/ok"] = response(gzip.compress(b"small"), content_encoding="gzip")
    site.pages["/br"] = response(b"small", content_encoding="br")
    site.pages["/bad"] = response(b"small", content_encoding="gzip")

    assert f"of {BODY_BYTES:,} characters]" in (await fetch(site.root)).content
    assert (await fetch(f"{site.root}/ok")).content.endswith("\nsmall")
    with pytest.raises(ToolError, match="answers compressed by 'br', unasked"):
        await fetch(f"{site.root}/br")
    with pytest.raises(ToolError, match="sent a body that does not decompress"):
        await fetch(f"{site.root}/bad")


async def test_compressed_bodies_are_read_to_their_end(site: Site) -> None:
    """All members of a gzip file count, padding behind it does not, and one that breaks off is marked."""
    whole = gzip.compress(b"one ") + gzip.compress(b"two")
    site.pages["/members"] = response(whole, content_encoding="gzip")
    site.pages["/padded"] = response(whole + bytes(20), content_encoding="gzip")
    site.pages["/half"] = response(gzip.compress(b"text " * 100)[:-9], content_encoding="gzip")

    assert (await fetch(f"{site.root}/members")).content.endswith("\none two")
    assert (await fetch(f"{site.root}/padded")).content.endswith("\none two")
    assert re.search(
        r"\ntext .*\[cut: only \d+ bytes of the body are here\]$",
        (await fetch(f"{site.root}/half")).content,
        re.DOTALL,
    )


async def test_cancelled_request_closes_its_connection(nursery: trio.Nursery) -> None:
    """A call that is cancelled while a server keeps silent leaves that server at once."""
    asked, left = trio.Event(), trio.Event()

    async def keep_silent(stream: trio.SocketStream) -> None:
        async for _ in stream:
            asked.set()
        left.set()

    port = await listen(nursery, keep_silent)
    with trio.fail_after(HANG_SECONDS):
        async with trio.open_nursery() as calling:
            calling.start_soon(fetch, f"http://127.0.0.1:{port}/")
            await asked.wait()
            calling.cancel_scope.cancel()
        await left.wait()
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "garbage", [b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"]
)
async def test_broken_exchange_is_a_sentence(site: Site, garbage: bytes) -> None:
    """A server that hangs up, speaks another protocol or ends too early is named with its fault."""
    site.pages["/"] = garbage

    with pytest.raises(
        ToolError, match=r"^http_get: the exchange with 127\.0\.0\.1 \(127\.0\.0\.1\) broke: "
    ):
        await fetch(site.root)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
async def test_certificate_is_checked_against_the_name(nursery: trio.Nursery, tmp_path: Path) -> None:
    """Though the connection goes to an address, TLS is for the name; an untrusted certificate is refused."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    names = "-subj /CN=localhost -addext subjectAltName=DNS:localhost"
    files = ["-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "cert")]
    await trio.run_process([*command.split(), *names.split(), *files], capture_stderr=True)
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    site = Site()
    site.pages["/"] = response("secret")

    async def handle(stream: trio.SocketStream) -> None:
        with trio.move_on_after(HANG_SECONDS):
            try:
                await site.serve(trio.SSLStream(stream, server_side, server_side=True))
            except trio.BrokenResourceError:
                return

    port = await listen(nursery, handle)
    trusting = ssl.create_default_context(cafile=str(tmp_path / "cert"))

    output = await fetch(f"https://localhost:{port}/", HttpGetTool(trusting))

    assert output.content.endswith("\nsecret")
    with pytest.raises(ToolError, match="certificate not accepted, IP address mismatch"):
        await fetch(f"https://127.0.0.1:{port}/", HttpGetTool(trusting))
    with pytest.raises(ToolError, match=r"certificate not accepted, self.signed"):
        await fetch(f"https://localhost:{port}/")
    nursery.cancel_scope.cancel()
