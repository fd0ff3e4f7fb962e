"""The client over TLS: a certificate that is trusted, one that is not, and handshakes that fail."""

import os
import shutil
import ssl
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import trio

from odek.config.settings import LlmSettings
from odek.errors import ModelError, ModelRejectedError, ModelUnavailableError
from odek.llm.client import open_client
from odek.llm.endpoint import Endpoint
from tests.support.endpoints import QUESTION
from tests.support.model_server import open_model_server, text_answer
from tests.support.waiting import HANG_SECONDS, open_stopwatch

ASK = """
import sys
import trio
from odek.llm.client import open_client
from odek.llm.endpoint import Endpoint
from odek.llm.model import ModelRequest
from odek.messages import UserMessage

async def main():
    async with open_client(Endpoint(base_url=sys.argv[1], model="m")) as model:
        response = await model.complete(ModelRequest((UserMessage("hi"),)), lambda event: None)
        print(response.message.content)

trio.run(main)
"""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a certificate for 127.0.0.1 that vouches for itself; the key is in the same file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the openssl command to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    key, pem = folder / "key.pem", folder / "cert.pem"
    made = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    named = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([openssl, *made, *named, "-keyout", key, "-out", pem], check=True, capture_output=True)
    pem.write_text(pem.read_text() + key.read_text())
    return pem


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    """Return the server's side of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def failure_at(base_url: str, **settings: float) -> ModelError:
    """Ask once at ``base_url`` and return the error."""
    limits = LlmSettings(max_retries=0, **settings)  # type: ignore[arg-type]
    async with open_client(Endpoint(base_url=base_url, model="m", settings=limits)) as model:
        with pytest.raises(ModelError) as caught, trio.fail_after(HANG_SECONDS):
            await model.complete(QUESTION, lambda _: None)
    return caught.value


async def test_a_trusted_certificate(certificate: Path, tls: ssl.SSLContext) -> None:
    """With the certificate among the trusted ones the answer comes through TLS."""
    async with open_model_server([text_answer("secure")], tls=tls) as server:
        done = await trio.run_process(
            [sys.executable, "-c", ASK, server.base_url],
            env={**os.environ, "SSL_CERT_FILE": str(certificate)},
            capture_stdout=True,
        )
    assert done.stdout == b"secure\n"


async def test_certificates_that_cannot_be_read() -> None:
    """A wrong SSL_CERT_FILE is a fault of the set-up, told in one line."""
    done = await trio.run_process(
        [sys.executable, "-c", ASK, "https://127.0.0.1:9/v1"],
        env={**os.environ, "SSL_CERT_FILE": "/nonexistent.pem"},
        capture_stderr=True,
        check=False,
    )
    last_line = done.stderr.decode().splitlines()[-1]
    assert last_line.startswith("odek.errors.ConfigError: the trusted certificates cannot be read: ")


async def test_a_certificate_that_nobody_vouches_for(tls: ssl.SSLContext) -> None:
    """Refused at once, with the reason, before anything was sent."""
    async with open_model_server([text_answer("never")], tls=tls) as server:
        error = await failure_at(server.base_url)
        assert server.requests == []
    assert isinstance(error, ModelRejectedError)
    assert f"no secure connection to 127.0.0.1:{server.port}: certificate not accepted" in str(error)


async def test_tls_to_a_server_that_has_none() -> None:
    """An https address of a plain server is told and not tried again."""

    async def answer_plainly(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, answer_plainly, 0, host="127.0.0.1"))
        error = await failure_at(f"https://127.0.0.1:{listener.socket.getsockname()[1]}/v1")
        nursery.cancel_scope.cancel()
    assert isinstance(error, ModelRejectedError)
    assert "no secure connection" in str(error)


async def test_a_handshake_that_stalls_has_the_limit_of_connecting() -> None:
    """A server that accepts and says nothing is given up after the time to connect, TLS included."""

    async def say_nothing(stream: trio.SocketStream) -> None:
        async with stream:
            while await stream.receive_some():
                pass

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, say_nothing, 0, host="127.0.0.1"))
        port = listener.socket.getsockname()[1]
        async with open_stopwatch() as watch:
            error = await failure_at(f"https://127.0.0.1:{port}/v1", connect_timeout_seconds=0.3)
            assert watch.seconds < 2
        nursery.cancel_scope.cancel()
    assert isinstance(error, ModelUnavailableError)
    assert str(error) == f"cannot reach 127.0.0.1:{port}: no connection within 0.3 s"


async def test_a_handshake_that_is_cut() -> None:
    """A server that hangs up inside the handshake may be well later: the error is a passing one."""

    async def hang_up(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, hang_up, 0, host="127.0.0.1"))
        error = await failure_at(f"https://127.0.0.1:{listener.socket.getsockname()[1]}/v1")
        nursery.cancel_scope.cancel()
    assert isinstance(error, ModelUnavailableError)
