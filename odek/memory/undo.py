"""Taking a change back, as long as what it made is still there unchanged."""

from typing import Literal

from odek.errors import MemoryRefusedError
from odek.memory.episodes import EpisodeStore
from odek.memory.fact_file import FactFile
from odek.memory.facts import TARGETS, Fact, FactStore, Target
from odek.memory.journal import WHOLE_FILE, Journal, Origin, Record, digest

__all__ = ["last_undoable", "undo"]


def undo(
    journal: Journal,
    facts: FactStore,
    episodes: EpisodeStore,
    record_id: str = "",
    *,
    origin: Origin | None = None,
) -> Record:
    """Undo the newest change that is not undone yet, or the named one; return its record.

    Undoing is a change like others: it is recorded, and can be undone by naming its record.

    Raises:
        MemoryRefusedError: there is no such record, or what was there before is not known.
        TargetChangedError: the entry changed since.
        StoreError: a file cannot be read or written.
    """
    records = journal.read().records
    record = _named(records, record_id) if record_id else last_undoable(records)
    if record is None:
        raise MemoryRefusedError("memory: no change is on record that could be undone")
    for target in TARGETS:
        if record.target == target:
            _undo_fact(facts, target, record, origin)
            return record
    episodes.put_back(record, origin=origin)
    return record


def last_undoable(records: tuple[Record, ...]) -> Record | None:
    """Return the newest change that neither is undone nor undoes another."""
    undone = {record.undoes for record in records if record.undoes}
    return next((r for r in reversed(records) if not r.undoes and r.id not in undone), None)


def _named(records: tuple[Record, ...], record_id: str) -> Record:
    found = [record for record in records if record.id.startswith(record_id)]
    if len(found) != 1:
        what = f"{len(found)} changes begin" if found else "no change on record begins"
        raise MemoryRefusedError(f"memory: {what} with {record_id!r}; see `odek memory log`")
    if any(record.undoes == found[0].id for record in records):
        raise MemoryRefusedError(f"memory: {found[0].id} is undone already")
    return found[0]


def _undo_fact(facts: FactStore, target: Target, record: Record, origin: Origin | None) -> None:
    for text, expected in ((record.before, record.hash_before), (record.after, record.hash_after)):
        if expected and digest(text) != expected:
            raise MemoryRefusedError(
                f"memory: {record.id} held a credential, which is not kept; edit by hand"
            )
    if record.action in WHOLE_FILE:
        before, after = (FactFile.parse(text.encode()).texts for text in (record.before, record.after))
        seen = facts.read(target)
        if tuple(fact.text for fact in seen.entries) != after:
            raise MemoryRefusedError(
                f"memory: {target}.md changed since {record.id}; undo the later changes first"
            )
        action: Literal["consolidate", "edit"] = "edit" if record.action == "edit" else "consolidate"
        facts.replace_all(target, seen.content_hash, before, action=action, origin=origin, undoes=record.id)
    elif not record.before:
        facts.remove(Fact(target, 0, record.after), origin=origin, undoes=record.id)
    elif not record.after:
        facts.add(target, record.before, origin=origin, undoes=record.id)
    else:
        facts.replace(Fact(target, 0, record.after), record.before, origin=origin, undoes=record.id)
