"""What the memory's stories through the real command share: a model that remembers, and planted episodes."""

from typing import Any

import msgspec

from tests.support.cli import Odek
from tests.support.model_server import Answer, RecordedRequest, by_request, text_answer

__all__ = ["ABOUT", "RECORD", "contexts", "is_extraction", "model", "plant", "turns"]

RECORD = (
    "The person asked to fix the race in the upload queue of the billing service. The agent found that two "
    "workers claimed the same invoice and added a lock around the claim; nineteen tests pass."
)
ABOUT = "does the upload queue of billing still claim an invoice twice?"


def is_extraction(request: RecordedRequest) -> bool:
    """Tell a question of the memory from a turn."""
    return "transcript of a finished session" in request.json["messages"][0]["content"]


def contexts(request: RecordedRequest) -> list[str]:
    """Return what the memory added to the conversation of a request."""
    return [m["content"] for m in request.json["messages"] if str(m.get("content")).startswith("── ")]


def turns(requests: list[RecordedRequest]) -> list[RecordedRequest]:
    """Return the requests of turns alone."""
    return [request for request in requests if not is_extraction(request)]


def model(extraction: str = RECORD) -> Answer:
    """Answer a turn with a word, and a question for a record with ``extraction``."""
    return by_request(lambda request: text_answer(extraction if is_extraction(request) else "Done."))


def plant(odek: Odek, session_id: str, text: str, **provenance: Any) -> None:
    """Put an episode on disk as the predecessor's format has it."""
    directory = odek.home / "memory"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    index = directory / "index.json"
    entries = msgspec.json.decode(index.read_bytes()) if index.exists() else []
    entries.append(
        {
            "session_id": session_id,
            "turns": 4,
            "created_at": "2026-03-04T05:06:07Z",
            "summary": text[:120],
            "provenance": provenance,
        }
    )
    index.write_bytes(msgspec.json.encode(entries))
    index.chmod(0o600)
    (directory / f"{session_id}.md").write_text(text)
    (directory / f"{session_id}.md").chmod(0o600)
