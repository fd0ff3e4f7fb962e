"""An Extended Memory over real files and a real index."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import trio

from odek.config.extended_settings import ExtendedSettings
from odek.embedding.embedder import Embedder
from odek.embedding.local import ProjectionEmbedder
from odek.events import Event
from odek.memory.extended.atom_index import open_atom_index
from odek.memory.extended.service import ExtendedMemory, ExtendedParts
from odek.memory.index_vectors import is_of_words

__all__ = ["NOW", "open_extended"]

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@asynccontextmanager
async def open_extended(
    memory: Path,
    *,
    project: str = "/work/alpha",
    emit: Callable[[Event], None] = lambda _: None,
    mask: Callable[[str], str] = str,
    now: Callable[[], datetime] = lambda: NOW,
    embedder: Embedder | None = None,
    is_built: bool = True,
    **settings: object,
) -> AsyncGenerator[ExtendedMemory]:
    """Yield an Extended Memory; leaving waits for its background work. ``is_built`` makes a missing index."""
    embedder = embedder or ProjectionEmbedder()
    space = "" if is_of_words(embedder) else embedder.fingerprint
    index = open_atom_index(memory, space)
    if is_built and index.needs_rebuild:
        index.rebuild()
    parts = ExtendedParts(
        memory=memory,
        settings=ExtendedSettings(enabled=True, **settings),  # type: ignore[arg-type]
        index=index,
        reader=open_atom_index(memory, space),
        embedder=embedder,
        project=project,
        emit=emit,
        mask=mask,
        now=now,
    )
    async with trio.open_nursery() as jobs:
        yield ExtendedMemory(parts, jobs)
