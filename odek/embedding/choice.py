"""Which embedder a configuration asks for."""

from collections.abc import Mapping
from pathlib import Path
from typing import assert_never

from odek.config.memory_settings import EmbeddingSettings
from odek.config.settings import Config
from odek.embedding.embedder import Embedder

__all__ = ["CACHE_DIRECTORY", "check_embedder", "choose_embedder"]

CACHE_DIRECTORY = "embedding_cache"
"""Below the memory's directory; everything in it can be fetched again."""


def choose_embedder(config: Config, origins: Mapping[str, object], home: Path) -> tuple[Embedder, str]:
    """Return the embedder of the memory, and a line about what was asked for and is not so, or "".

    ``memory.embedding`` counts as soon as one of its keys is among ``origins``, the keys that
    were set; else the top-level ``embedding``. Nothing is connected or loaded here.

    Raises:
        ConfigError: ``static`` is wanted, and its package is not installed.
    """
    settings, name = _settings(config, origins)
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


def check_embedder(config: Config, origins: Mapping[str, object]) -> None:
    """Find out early what ``choose_embedder`` would find wrong with the settings.

    Raises:
        ConfigError: as that.
    """
    settings, name = _settings(config, origins)
    if settings.provider == "static":
        from odek.embedding.static import StaticEmbedder

        StaticEmbedder(f"{name}.provider")


def _settings(config: Config, origins: Mapping[str, object]) -> tuple[EmbeddingSettings, str]:
    """Return the settings that count, and where they stand."""
    if any(key.startswith("memory.embedding.") for key in origins):
        return config.memory.embedding, "memory.embedding"
    return config.embedding, "embedding"
