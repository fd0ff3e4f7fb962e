"""Addresses of servers as people write them, and what is asked at them."""

from typing import Final
from urllib.parse import urlsplit, urlunsplit

__all__ = ["endpoint_url", "is_address"]

# Copied along with the root from examples of requests.
_PATHS: Final = ("/chat/completions", "/embeddings")


def is_address(text: str) -> bool:
    """Tell whether ``text`` is an http or https URL of a host, with a port that there can be or none."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return usable and text.isprintable() and " " not in text


def endpoint_url(base_url: str, path: str) -> str:
    """Return the address of ``path``, such as "/embeddings", below a root.

    A root that ends with the path of a request is that of the request. Its query stays.
    """
    parts = urlsplit(base_url)
    root = parts.path.rstrip("/")
    for known in _PATHS:
        root = root.removesuffix(known)
    return urlunsplit(parts._replace(path=root + path, fragment=""))
