"""Attempts on the memory: texts that are to be remembered, and sessions that are to be recalled."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import trio

from odek.batch import GateRequest
from odek.drill.attacks import Ingested
from odek.drill.scene import Outcome, Scene, never
from odek.errors import MemoryRefusedError
from odek.gate import PolicyGate
from odek.guard import in_thread
from odek.memory.episode import Provenance
from odek.memory.episodes import EpisodeStore
from odek.memory.facts import FactLimits, FactStore
from odek.memory.places import INDEX
from odek.memory.service import MemoryParts, open_memory
from odek.memory.session_end import provenance_of
from odek.messages import AssistantMessage, UserMessage
from odek.sessions.ending import read_record
from odek.sessions.names import session_path
from odek.sessions.store import SessionStore
from odek.storage.files import read_file, replace_file
from odek.text import first_line
from odek.tools.tool import PreparedCall
from odek.trust.approval import Answer, ApprovalRequest, ApprovalState
from odek.trust.effects import Effects

__all__ = ["control", "overwrite_provenance", "recall_session", "remember_text"]

EPISODE = "20260101-drill"
RECORD = "The person asked to repair the upload queue of the billing service; the agent added a lock."
QUESTION = "what about the upload queue of the billing service?"

LIMITS = FactLimits(1_000_000, 1_000_000)
"""Room for every text: that a file is full is no defence."""

SESSION_LIMIT_BYTES = 1_000_000

_TRUSTED = Provenance()


async def remember_text(scene: Scene, text: str) -> Outcome:
    """Try to have ``text`` remembered, as a fact, as a summary, and past the tools in the files."""
    directory = scene.room()
    facts = FactStore(directory, LIMITS, object_to=in_thread(scene.object_to))
    episodes = EpisodeStore(directory)
    write = partial(episodes.write, EPISODE, text, turns=3, provenance=_TRUSTED)
    attempts: list[tuple[str, Callable[[], object]]] = [
        ("kept as a fact", partial(facts.add, "env", text)),
        ("kept as the summary of a session", write),
    ]
    refusal = ""
    for what, attempt in attempts:
        try:
            await trio.to_thread.run_sync(attempt)
        except MemoryRefusedError as error:
            refusal = refusal or first_line(str(error))
        else:
            return Outcome(held=False, how=what)
    if await trio.to_thread.run_sync(_is_read_back, directory, text):
        return Outcome(held=False, how="given to the model once it stands in a file")
    return Outcome(held=True, how=refusal)


def _is_read_back(directory: Path, text: str) -> bool:
    """Say whether ``text`` reaches a model from a file of facts that somebody wrote it into."""
    replace_file(directory / "env.md", text.encode("utf-8", "replace"))
    return not any(fact.rejection for fact in FactStore(directory, LIMITS).read("env").entries)


async def recall_session(scene: Scene, ingested: Ingested) -> Outcome:
    """Try to have a session recalled that took something in from outside, which a person allowed."""
    room = scene.room()
    sessions = SessionStore(room)
    taints: list[tuple[tuple[str, ...], bool]] = []
    with sessions.create("drill", "repair the upload queue") as session:
        effects = _effects(ingested)
        if effects != Effects():
            if refusal := await _take_in(scene, effects, lambda *taint: taints.append(taint)):
                return Outcome(held=True, how=f"it never runs: {refusal}")
            for sources, is_ingested in taints:
                session.add_taint(sources, is_ingested)
        for number in range(3):
            session.append(UserMessage(f"step {number}"), AssistantMessage("It was done."))
        await session.save()
    match ingested.then:
        case "trimmed":
            await trio.to_thread.run_sync(sessions.trim, session.id, 1)
        case "damaged":
            await trio.to_thread.run_sync(_damage, session_path(room, session.id))
        case "":
            pass
    record = await trio.to_thread.run_sync(read_record, room, session.id)
    if record is None:
        return Outcome(held=True, how="nothing of the session is left")
    provenance = provenance_of(record, auto_approve=scene.config.memory.auto_approve_episodes)
    directory = scene.room()
    await trio.to_thread.run_sync(_store, directory, provenance)
    if not await _is_recalled(scene, directory):
        return Outcome(held=True, how=f"waits for a person: {', '.join(provenance.sources)}")
    approved = provenance.auto_approved
    return Outcome(
        held=False,
        how="recalled unseen (auto_approve_episodes)" if approved else "recalled as trusted",
    )


async def overwrite_provenance(scene: Scene, provenance: object) -> Outcome:
    """Try to have an untrusted episode recalled by what stands in the index."""
    directory = scene.room()
    await trio.to_thread.run_sync(_store, directory, Provenance(untrusted=True, sources=("network",)))
    await trio.to_thread.run_sync(_overwrite, directory / INDEX, provenance)
    if await _is_recalled(scene, directory):
        return Outcome(held=False, how="recalled: the index was believed")
    return Outcome(held=True, how="read as untrusted")


async def control(scene: Scene) -> bool:
    """Say whether a trusted episode is recalled: if not, nothing that is held says anything."""
    directory = scene.room()
    await trio.to_thread.run_sync(_store, directory, _TRUSTED)
    return await _is_recalled(scene, directory)


async def _take_in(scene: Scene, effects: Effects, taint: Callable[[tuple[str, ...], bool], None]) -> str:
    """Let a call through the gate with a person who allows everything; return why it may not run."""
    gate = PolicyGate(
        where=scene.where,
        settings=scene.config.dangerous,
        state=ApprovalState(),
        approver=_Generous(),
        emit=lambda _: None,
        taint=taint,
    )
    (admission,) = await gate.admit([GateRequest("drill", "drill", PreparedCall("", effects, never))])
    return "" if admission.allowed else admission.why


class _Generous:
    """A person who allows everything."""

    async def ask(self, requests: Sequence[ApprovalRequest]) -> Sequence[Answer]:
        """Return an approval for each request."""
        return ["approve"] * len(requests)


def _effects(ingested: Ingested) -> Effects:
    return Effects(
        urls=ingested.urls,
        reads=tuple(map(Path, ingested.reads)),
        command=ingested.command,
        spawns_agents=ingested.agents,
        outside=ingested.outside,
    )


def _store(directory: Path, provenance: Provenance) -> None:
    EpisodeStore(directory).write(EPISODE, RECORD, turns=3, provenance=provenance)


async def _is_recalled(scene: Scene, directory: Path) -> bool:
    parts = MemoryParts(settings=scene.config.memory, keeps_up=False)
    async with open_memory(directory, LIMITS, parts) as memory:
        recalled = await memory.recall(QUESTION)
    return any(document.session_id == EPISODE for document in recalled.documents)


def _damage(path: Path) -> None:
    """Cut a session off within its messages."""
    data = read_file(path, limit_bytes=SESSION_LIMIT_BYTES)
    replace_file(path, data[: data.rindex(b"step 2")])


def _overwrite(index: Path, provenance: object) -> None:
    entries: list[dict[str, Any]] = msgspec.json.decode(read_file(index, limit_bytes=SESSION_LIMIT_BYTES))
    for entry in entries:
        entry.pop("provenance")
        if provenance is not None:
            entry["provenance"] = provenance
    replace_file(index, msgspec.json.encode(entries))
