"""Which embedder a configuration asks for."""

from collections.abc import Mapping
from pathlib import Path

from odek.config.settings import Config
from odek.embedding.embedder import Embedder

__all__ = ["CACHE_DIRECTORY", "choose_embedder"]

CACHE_DIRECTORY = "embedding_cache"
"""Below the memory's directory; everything in it can be fetched again."""


def choose_embedder(config: Config, origins: Mapping[str, object], home: Path) -> tuple[Embedder, str]:
    """Return the embedder of the memory, and a line about what was asked for and is not so, or "".

    ``memory.embedding`` counts as soon as one of its keys is among ``origins``, the keys that
    were set; else the top-level ``embedding``. Nothing is connected or read here.
    """
    of_memory = any(key.startswith("memory.embedding.") for key in origins)
    settings = config.memory.embedding if of_memory else config.embedding
    name = "memory.embedding" if of_memory else "embedding"
    if settings.provider == "http":
        missing = [key for key in ("base_url", "model") if not getattr(settings, key)]
        if not missing:
            from odek.embedding.http import HttpEmbedder  # brings the HTTP library with its first request

            return HttpEmbedder(settings, home / "memory" / CACHE_DIRECTORY), ""
        notice = f"{name}.provider is http, but {' and '.join(missing)} not set; texts are compared by rp"
    else:
        notice = ""
    from odek.embedding.local import ProjectionEmbedder

    return ProjectionEmbedder(), notice
