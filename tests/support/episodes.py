"""Episodes for tests of the memory's files: stored, listed, and planted as another program would."""

import json
from pathlib import Path

from odek.memory.episodes import EpisodeStore, Provenance

__all__ = ["APPROVED", "TRUSTED", "UNTRUSTED", "ids", "plant", "put"]

TRUSTED = Provenance()
UNTRUSTED = Provenance(untrusted=True, sources=("network",))
APPROVED = Provenance(untrusted=True, sources=("network",), user_approved=True)


def ids(store: EpisodeStore) -> list[str]:
    """Return the ids of all episodes, newest first."""
    return [episode.session_id for episode in store.read_index()]


def put(store: EpisodeStore, session_id: str, text: str = "", provenance: Provenance = TRUSTED) -> None:
    """Store an episode."""
    store.write(session_id, text or f"The person fixed {session_id}.", turns=3, provenance=provenance)


def plant(directory: Path, index: object, **texts: str) -> None:
    """Put files there as another program would."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    data = index if isinstance(index, bytes) else json.dumps(index).encode()
    (directory / "index.json").write_bytes(data)
    for name, text in texts.items():
        (directory / f"{name}.md").write_text(text)
