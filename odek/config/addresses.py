"""Addresses of servers as people write them, and what is asked at them."""

from typing import Final
from urllib.parse import urlsplit, urlunsplit

__all__ = ["COMPLETIONS", "EMBEDDINGS", "endpoint_url", "is_address"]

COMPLETIONS: Final = "/chat/completions"
EMBEDDINGS: Final = "/embeddings"


def is_address(text: str) -> bool:
    """Tell whether ``text`` is an http or https URL of a host, with a port that there can be or none."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return usable and text.isprintable() and " " not in text


def endpoint_url(base_url: str, path: str) -> str:
    """Return the address of ``path``, one of the above, below a root. Its query stays.

    A root may end with such a path: it is copied along from examples of requests.
    """
    parts = urlsplit(base_url)
    root = parts.path.rstrip("/")
    for known in (COMPLETIONS, EMBEDDINGS):
        root = root.removesuffix(known)
    return urlunsplit(parts._replace(path=root + path, fragment=""))
