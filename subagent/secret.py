"""A secret for a child: through a pipe, so that no argument, environment or file ever holds it."""

import fcntl
import os
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress

from subagent.errors import ChildStartError

__all__ = ["open_secret", "read_secret", "with_secret"]

SECRET_VARIABLE = "SUBAGENT_SECRET_FD"  # noqa: S105 - the name of a number, not a secret
"""Tells the child on which descriptor its secret waits."""

MAX_SECRET_BYTES = 1024 * 1024
"""What Linux lets anybody make a pipe take, as it is configured by default."""

SURE_BYTES = 4096
"""What the smallest pipe takes without a reader; Linux gives such ones to users who have very many."""


@contextmanager
def open_secret(secret: bytes) -> Generator[tuple[int, ...]]:
    """Yield the descriptors to pass on: one to read the secret from, or none if there is none.

    Raises:
        ChildStartError: it is too long for a pipe that nobody reads yet, or there is no pipe.
    """
    if not secret:
        yield ()
        return
    if len(secret) > MAX_SECRET_BYTES:
        raise ChildStartError(f"a secret of {len(secret)} bytes is longer than {MAX_SECRET_BYTES}")
    try:
        readable, writable = os.pipe()
    except OSError as error:
        raise ChildStartError(f"cannot open a pipe for a child: {error.strerror}") from error
    try:
        try:
            _fill(writable, secret)
        finally:
            os.close(writable)
        yield (readable,)
    finally:
        os.close(readable)


def _fill(writable: int, secret: bytes) -> None:
    """Write all of ``secret`` into a pipe that nobody reads, without ever waiting.

    Raises:
        ChildStartError: the pipe does not take it.
    """
    if len(secret) > SURE_BYTES and sys.platform == "linux":
        with suppress(OSError):  # then it takes what it takes
            fcntl.fcntl(writable, fcntl.F_SETPIPE_SZ, len(secret))
    os.set_blocking(writable, False)
    rest = memoryview(secret)
    try:
        while rest:
            rest = rest[os.write(writable, rest) :]
    except BlockingIOError:
        raise ChildStartError(
            f"a pipe takes no secret of {len(secret)} bytes here, {len(secret) - len(rest)} at most"
        ) from None


def with_secret(env: Mapping[str, str], descriptors: Sequence[int]) -> dict[str, str]:
    """Return ``env`` with the number of the secret's descriptor, if there is one."""
    return {**env, SECRET_VARIABLE: str(descriptors[0])} if descriptors else dict(env)


def read_secret() -> bytes:
    """Return the secret that this process was given at birth, once; empty if there is none."""
    number = os.environ.pop(SECRET_VARIABLE, "")
    if not number.isdecimal():
        return b""
    with open(int(number), "rb") as file:
        return file.read(MAX_SECRET_BYTES)
