"""The `memory` tool where Extended Memory is on: it also reaches atoms, and inferences about the person."""

from typing import TYPE_CHECKING, Annotated, Literal, assert_never

import msgspec
import trio
from msgspec import Meta

from odek.errors import ToolError
from odek.memory.extended.atom import Atom, AtomType, is_atom_id
from odek.memory.extended.service import ExtendedMemory
from odek.memory.extended.user_model import Pending, UserModelFile
from odek.memory.extended.write import Draft
from odek.memory.facts import Target, check_field
from odek.memory.service import Memory
from odek.text import clip_line
from odek.tools.memory import MemoryArguments, MemoryTool, translated
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput
from odek.trust.effects import Effects

if TYPE_CHECKING:
    from collections.abc import Callable

    from odek.memory.journal import Origin

__all__ = ["ExtendedMemoryArguments", "ExtendedMemoryTool"]

LISTED = 20
"""Atoms and inferences shown at once. No measurement behind it."""


class ExtendedMemoryArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do, and with which fact, atom or inference."""

    action: Annotated[
        Literal[
            "add",
            "replace",
            "remove",
            "stats",
            "consolidate",
            "read",
            "search",
            "view",
            "add_atom",
            "search_atoms",
            "forget_atom",
            "list_quarantine",
            "pin_atom",
            "confirm_pending_review",
            "reject_pending_review",
            "list_pending_review",
        ],
        Meta(
            description="read: every fact. search: facts and episodes about query. stats: sizes and fill. "
            "consolidate: merge entries. view: the episodes, or the one of query. add_atom: keep content as "
            "a small statement. search_atoms: atoms about query. forget_atom, pin_atom: the atom with id. "
            "list_quarantine: atoms that wait for the person. list_pending_review: inferences that wait for "
            "the person; confirm_ and reject_pending_review decide on the one with this id, which the person "
            "is asked about."
        ),
    ]
    target: Annotated[
        Target | None, Meta(description="user or env: as the description of the memory says.")
    ] = None
    content: Annotated[
        str, Meta(description="For add, replace and add_atom: self-contained, at most 2048 bytes.")
    ] = ""
    old_text: Annotated[
        str, Meta(description="For replace and remove: a part of the entry that no other entry contains.")
    ] = ""
    query: Annotated[
        str,
        Meta(description="For search and search_atoms: what to look for. For view: an episode's session."),
    ] = ""
    type: Annotated[AtomType, Meta(description="For add_atom: what kind of statement it is.")] = "fact"
    id: Annotated[str, Meta(description="Of an atom or an inference.")] = ""


class ExtendedMemoryTool(Tool[ExtendedMemoryArguments]):
    """Keeps facts and atoms across sessions."""

    name = MemoryTool.name
    description = MemoryTool.description
    arguments_type = ExtendedMemoryArguments

    def __init__(
        self,
        memory: Memory,
        origin: "Callable[[str, str], Origin]",
        atoms: ExtendedMemory,
        user: UserModelFile,
    ) -> None:
        self._facts = MemoryTool(memory, origin)
        self._origin_of = origin
        self._atoms = atoms
        self._user = user

    async def prepare(self, arguments: ExtendedMemoryArguments) -> PreparedCall:
        """Check the fields, and show what a change is about."""
        return await translated(lambda: self._prepare(arguments))

    async def _prepare(self, arguments: ExtendedMemoryArguments) -> PreparedCall:
        match arguments.action:
            case "add_atom":
                return self._prepare_add_atom(arguments)
            case "search_atoms":
                return self._prepare_search_atoms(arguments)
            case "forget_atom" | "pin_atom":
                return await self._prepare_atom_change(arguments)
            case "list_quarantine":
                return PreparedCall("list quarantine", Effects(), self._list_quarantine)
            case "list_pending_review":
                return PreparedCall("list pending review", Effects(), self._list_pending)
            case "confirm_pending_review" | "reject_pending_review":
                return await self._prepare_decision(arguments)
            case "add" | "replace" | "remove" | "stats" | "consolidate" | "read" | "search" | "view":
                same = MemoryArguments(
                    arguments.action,
                    arguments.target,
                    arguments.content,
                    arguments.old_text,
                    arguments.query,
                )
                return await self._facts.prepare(same)
            case _:
                assert_never(arguments.action)

    def _prepare_add_atom(self, arguments: ExtendedMemoryArguments) -> PreparedCall:
        check_field("content", arguments.content)
        content = " ".join(arguments.content.split())
        if not content:
            raise ToolError("memory: add_atom needs content: the statement")

        async def run(scope: CallScope) -> ToolOutput:
            origin = self._origin_of(scope.call_id, scope.approved_by)
            # Only what a person has seen and allowed is the person's own word.
            approved = scope.approved_by == "person" and not origin.tainted
            draft = Draft(content, arguments.type, 1.0, "user_approved" if approved else "agent_generated")
            written = await translated(
                lambda: self._atoms.add([draft], session=origin.session, turn=origin.turn)
            )
            (made,) = written
            if made.outcome == "quarantined":
                return ToolOutput(f"Quarantined for human review ({made.atom.reason}); it is not recalled.")
            done = "Added" if made.outcome == "added" else "Already known; refreshed"
            return ToolOutput(f"{done}: {_line(made.atom)}", changed=("memory atoms",))

        diff = f"--- memory/atoms\n+++ memory/atoms\n@@ -0,0 +1,1 @@\n+({arguments.type}) {content}\n"
        return PreparedCall(f"add atom: {content}", Effects(writes_memory=True), run, diff)

    def _prepare_search_atoms(self, arguments: ExtendedMemoryArguments) -> PreparedCall:
        check_field("query", arguments.query)
        query = arguments.query.strip()
        if not query:
            raise ToolError("memory: search_atoms needs query: what to look for")

        async def run(_: CallScope) -> ToolOutput:
            found = await translated(lambda: self._atoms.search(query))
            lines = [_line(each.atom) for each in found[:LISTED]]
            return ToolOutput("\n".join(lines) or f"No atom is about {clip_line(query, 100)!r}.")

        return PreparedCall(f"search atoms: {query}", Effects(), run)

    async def _prepare_atom_change(self, arguments: ExtendedMemoryArguments) -> PreparedCall:
        atom = await self._named(arguments.id)
        forgets = arguments.action == "forget_atom"

        async def run(_: CallScope) -> ToolOutput:
            if forgets:
                gone = await translated(lambda: self._atoms.forget(atom.id, purge=False))
                return ToolOutput(f"Forgotten: {_line(gone.atom)}", changed=("memory atoms",))
            kept = await translated(lambda: self._atoms.pin(atom.id))
            return ToolOutput(f"Pinned: {_line(kept)}", changed=("memory atoms",))

        summary = f"{'forget' if forgets else 'pin'} atom: {atom.text}"
        preview = f"{'Forget' if forgets else 'Never evict'} this atom:\n{_line(atom)}"
        return PreparedCall(summary, Effects(writes_memory=True), run, preview)

    async def _prepare_decision(self, arguments: ExtendedMemoryArguments) -> PreparedCall:
        pending = await self._waiting(arguments.id)
        confirms = arguments.action == "confirm_pending_review"

        async def run(scope: CallScope) -> ToolOutput:
            if scope.approved_by != "person":
                raise ToolError(
                    "memory: a person alone decides on inferences: `odek memory extended pending`"
                )
            decide = self._user.confirm if confirms else self._user.reject
            done = await translated(lambda: trio.to_thread.run_sync(decide, pending.id))
            word = "Confirmed" if confirms else "Rejected"
            return ToolOutput(f"{word}: {_pending_line(done)}", changed=("memory user model",))

        verb = "confirm" if confirms else "reject"
        preview = f"{verb.capitalize()} what was inferred about you:\n{_pending_line(pending)}"
        effects = Effects(writes_memory=True, needs_person=True)
        return PreparedCall(f"{verb}: {_pending_line(pending)}", effects, run, preview)

    async def _list_quarantine(self, _: CallScope) -> ToolOutput:
        waiting = await translated(self._atoms.quarantined)
        # Their texts may be what the scan refused: the model is told of them, never their words.
        lines = [
            f"{atom.id}: {atom.type} of {atom.created_at[:10]}, {atom.reason}" for atom in waiting[:LISTED]
        ]
        if len(waiting) > LISTED:
            lines.append(f"({len(waiting) - LISTED} more)")
        lines.append("The person decides on them by `odek memory extended triage`.")
        return ToolOutput("\n".join(lines) if waiting else "Nothing waits in quarantine.")

    async def _list_pending(self, _: CallScope) -> ToolOutput:
        user = await translated(lambda: trio.to_thread.run_sync(self._user.read))
        lines = [_pending_line(pending) for pending in user.pending_review[:LISTED]]
        return ToolOutput("\n".join(lines) or "No inference waits.")

    async def _named(self, atom_id: str) -> Atom:
        if not is_atom_id(atom_id):
            raise ToolError("memory: id must be an atom's, 32 hexadecimal digits; search_atoms shows them")
        atom = await trio.to_thread.run_sync(self._atoms.store.read, atom_id)
        if atom is None:
            raise ToolError(f"memory: there is no atom {atom_id}")
        return atom

    async def _waiting(self, pending_id: str) -> Pending:
        user = await trio.to_thread.run_sync(self._user.read)
        found = [each for each in user.pending_review if each.id == pending_id]
        if not found:
            raise ToolError(f"memory: no inference waits under {clip_line(pending_id, 40)!r}")
        return found[0]


def _line(atom: Atom) -> str:
    return f"{atom.id}: ({atom.type}, {atom.created_at[:10]}) {atom.text}"


def _pending_line(pending: Pending) -> str:
    because = f", because: {pending.evidence}" if pending.evidence else ""
    return f"{pending.id}: {pending.field} = {pending.value}{because}"
