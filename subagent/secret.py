"""A secret for a child: through a pipe, so that no argument, environment or file ever holds it."""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from subagent.errors import ChildStartError

__all__ = ["open_secret", "read_secret", "with_secret"]

SECRET_VARIABLE = "SUBAGENT_SECRET_FD"  # noqa: S105 - the name of a number, not a secret
"""Tells the child on which descriptor its secret waits."""

MAX_SECRET_BYTES = 4096
"""What the smallest pipe takes without a reader."""


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
        os.write(writable, secret)
        os.close(writable)
        yield (readable,)
    finally:
        os.close(readable)


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
