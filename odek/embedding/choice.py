"""Which embedder a configuration asks for."""

from pathlib import Path
from typing import assert_never

from odek.config.embedding_settings import EmbeddingSettings
from odek.embedding.embedder import Embedder

__all__ = ["CACHE_DIRECTORY", "check_embedder", "choose_embedder"]

CACHE_DIRECTORY = "embedding_cache"
"""Below the memory's directory; everything in it can be fetched again."""


def choose_embedder(settings: EmbeddingSettings, name: str, home: Path) -> tuple[Embedder, str]:
    """Return the embedder, and a line about what was asked for and is not so, or "".

    ``name`` is that of the section that has the ``settings``. Nothing is connected or loaded here.

    Raises:
        ConfigError: ``static`` is wanted, and its package is not installed.
    """
    notice = ""
    match settings.provider:
        case "http":
            missing = [key for key in ("base_url", "model") if not getattr(settings, key)]
            if not missing:
                from odek.embedding.http import HttpEmbedder  # brings the HTTP library with its first request

                return HttpEmbedder(settings, home / "memory" / CACHE_DIRECTORY), ""
            notice = f"{name}.provider is http, but {' and '.join(missing)} not set; texts are compared by rp"
        case "static":
            from odek.embedding.static import StaticEmbedder

            return StaticEmbedder(f"{name}.provider"), ""
        case "rp":
            pass
        case unreachable:
            assert_never(unreachable)
    from odek.embedding.local import ProjectionEmbedder

    return ProjectionEmbedder(), notice


def check_embedder(settings: EmbeddingSettings, name: str) -> None:
    """Find out early what ``choose_embedder`` would find wrong with the settings.

    Raises:
        ConfigError: as that.
    """
    if settings.provider == "static":
        from odek.embedding.static import StaticEmbedder

        StaticEmbedder(f"{name}.provider")
