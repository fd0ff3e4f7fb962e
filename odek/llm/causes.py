"""The root of an exception of the HTTP library, which wraps what the system or TLS said."""

import os
import ssl
from collections.abc import Iterator

__all__ = ["causes", "root_cause"]


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield ``error`` and what caused it, down to the root."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        else:
            cause = cause.__cause__ or cause.__context__


def root_cause(error: BaseException) -> str:
    """Return the root cause in words."""
    reason = ""
    for cause in causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"certificate not accepted, {cause.verify_message}"
        if isinstance(cause, OSError) and cause.errno:
            # Negative numbers are those of name resolution, which the system has no text for.
            reason = os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
    return reason or str(error) or type(error).__name__
