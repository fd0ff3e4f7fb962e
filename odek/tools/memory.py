"""The `memory` tool: what the agent keeps for later sessions."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, assert_never

import msgspec
from msgspec import Meta

from odek.errors import MemoryRefusedError, StoreError, ToolError
from odek.memory.context_text import fill_warning
from odek.memory.facts import FIELD_LIMIT_BYTES, Change, Fact, Facts, Target, check_field
from odek.memory.service import Memory
from odek.text import clip_bytes, clip_line
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput
from odek.trust.effects import Effects

if TYPE_CHECKING:
    from odek.memory.journal import Origin
    from odek.memory.ranker import Candidate

__all__ = ["MemoryArguments", "MemoryTool", "translated"]

_T = TypeVar("_T")

# Enough of an entry from before the bound on fields to recognise it by.
_EXCERPT_BYTES = 512

# Episodes listed at once; no measurement behind it.
_VIEWED = 30


class MemoryArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do, and with which fact."""

    action: Annotated[
        Literal["add", "replace", "remove", "stats", "consolidate", "read", "search", "view"],
        Meta(
            description="read: every fact. search: facts and episodes about query. stats: sizes and fill. "
            "consolidate: merge entries. view: the episodes, or the one of query."
        ),
    ]
    target: Annotated[
        Target | None,
        Meta(
            description="user: the person, preferences, style. env: system, tools, conventions, "
            "architecture. Needed for add and consolidate; narrows replace, remove and stats."
        ),
    ] = None
    content: Annotated[
        str, Meta(description="For add and replace: the fact, self-contained, at most 2048 bytes.")
    ] = ""
    old_text: Annotated[
        str, Meta(description="For replace and remove: a part of the entry that no other entry contains.")
    ] = ""
    query: Annotated[
        str, Meta(description="For search: what to look for. For view: the id of an episode's session.")
    ] = ""


class MemoryTool(Tool[MemoryArguments]):
    """Keeps facts across sessions."""

    name = "memory"
    description = (
        "Persistent memory across sessions: facts in two small files, user and env, and episodes, the "
        "summaries of earlier sessions. Facts are shown at the start of each session; a change shows there "
        "from the next one on. Store what stays true and is not in the repository: preferences, corrections, "
        "conventions, decisions. Never store secrets. You maintain the files: when one is at its cap, remove "
        "or replace the entries of least value. Records that can be recovered from git or its host (release "
        "notes, merged changes) go first; pointers to local work that is tracked nowhere else (plans, "
        "findings under review) go last."
    )
    arguments_type = MemoryArguments

    def __init__(self, memory: Memory, origin: "Callable[[str, str], Origin] | None" = None) -> None:
        self._memory = memory
        self._origin = origin or _unknown_origin

    async def prepare(self, arguments: MemoryArguments) -> PreparedCall:
        """Check the fields, and select and pin the entry that a change is about."""
        return await translated(lambda: self._prepare(arguments))

    async def _prepare(self, arguments: MemoryArguments) -> PreparedCall:
        match arguments.action:
            case "add":
                return await self._prepare_add(arguments)
            case "replace":
                return await self._prepare_replace(arguments)
            case "remove":
                return await self._prepare_remove(arguments)
            case "consolidate":
                return await self._prepare_consolidate(arguments)
            case "view":
                return self._prepare_view(arguments)
            case "read":
                return PreparedCall("read", Effects(), self._read)
            case "search":
                return self._prepare_search(arguments)
            case "stats":
                return self._prepare_stats(arguments)
            case _:
                assert_never(arguments.action)

    async def _prepare_add(self, arguments: MemoryArguments) -> PreparedCall:
        target = arguments.target
        if target is None:
            raise ToolError("memory: add needs target: user or env")
        content = await self._memory.check_content(arguments.content)

        async def run(scope: CallScope) -> ToolOutput:
            made = await translated(
                lambda: self._memory.add(target, content, self._origin(scope.call_id, scope.approved_by))
            )
            done = "Merged into an entry of" if made.kind == "merged" else "Added to"
            return _report(done, made.change, diff)

        diff = _diff(target, "", content)
        summary = f"add to {target}: {content}"
        return PreparedCall(summary, Effects(writes_memory=True), run, diff)

    async def _prepare_replace(self, arguments: MemoryArguments) -> PreparedCall:
        content = await self._memory.check_content(arguments.content)
        fact = await self._memory.select(arguments.old_text, arguments.target)

        async def change(scope: CallScope) -> Change:
            return await self._memory.replace(fact, content, self._origin(scope.call_id, scope.approved_by))

        preview = _diff(fact.target, _whole(fact), content)
        return _mutation(f"replace in {fact.target}: {content}", preview, "Replaced an entry of", change)

    async def _prepare_remove(self, arguments: MemoryArguments) -> PreparedCall:
        fact = await self._memory.select(arguments.old_text, arguments.target)

        async def change(scope: CallScope) -> Change:
            return await self._memory.remove(fact, self._origin(scope.call_id, scope.approved_by))

        preview = _diff(fact.target, _whole(fact), "")
        return _mutation(f"remove from {fact.target}: {fact.text}", preview, "Removed from", change)

    async def _prepare_consolidate(self, arguments: MemoryArguments) -> PreparedCall:
        target = arguments.target
        if target is None:
            raise ToolError("memory: consolidate needs target: user or env")
        files = await self._memory.read()
        preview = "\n".join(
            f"Let the model merge related entries of {facts.target}.md:\n{facts.listing()}"
            for facts in files
            if facts.target == target
        )

        async def run(scope: CallScope) -> ToolOutput:
            origin = self._origin(scope.call_id, scope.approved_by)
            done = await translated(lambda: self._memory.consolidate(target, origin=origin))
            if not done.applied:
                return ToolOutput(f"{target}.md is unchanged: {done.reason}")
            said = f"Consolidated {target}.md: {len(done.before)} entries are now {len(done.after)}."
            return ToolOutput(said, changed=(f"memory {target}.md",))

        return PreparedCall(f"consolidate {target}", Effects(writes_memory=True), run, preview)

    def _prepare_search(self, arguments: MemoryArguments) -> PreparedCall:
        check_field("query", arguments.query)
        query = arguments.query.strip()
        if not query:
            raise ToolError("memory: search needs query: what to look for")

        async def run(_: CallScope) -> ToolOutput:
            found = await translated(lambda: self._memory.search(query))
            lines = [
                f"{hit.id.removesuffix('.md')}: {hit.text}" for hit in found.candidates if hit.kind == "fact"
            ]
            lines += [_found_episode(hit, query) for hit in found.candidates if hit.kind == "episode"]
            if not lines:
                lines = [f"Nothing is remembered about {clip_line(query, 100)!r}."]
            note = [f"({found.note})"] if found.note else []
            return ToolOutput("\n".join([*lines, *note]))

        return PreparedCall(f"search {query}", Effects(), run)

    def _prepare_view(self, arguments: MemoryArguments) -> PreparedCall:
        session_id = arguments.query.strip()

        async def view(_: CallScope) -> ToolOutput:
            found = await translated(lambda: self._memory.episode(session_id))
            if not found.episode.provenance.is_recallable:
                raise ToolError(f"memory: episode {session_id} is untrusted and waits for a person's review")
            if found.rejection:
                raise ToolError(f"memory: episode {session_id} is withheld: {found.rejection}")
            return ToolOutput(f"[session {session_id}, {found.episode.created_at[:10]}]\n{found.text}")

        async def view_all(_: CallScope) -> ToolOutput:
            episodes, waiting = await translated(self._memory.episodes)
            lines = [
                f"{episode.session_id}  {episode.created_at[:10]}  {episode.turns} turns  {episode.summary}"
                for episode in episodes[:_VIEWED]
            ]
            if len(episodes) > _VIEWED:
                lines.append(f"({len(episodes) - _VIEWED} older ones; use search)")
            if waiting:
                lines.append(f"({waiting} untrusted ones wait for a person's review)")
            return ToolOutput("\n".join(lines) or "There are no episodes.")

        run = view if session_id else view_all
        return PreparedCall(f"view {clip_line(session_id, 80)}".rstrip(), Effects(), run)

    def _prepare_stats(self, arguments: MemoryArguments) -> PreparedCall:
        async def run(_: CallScope) -> ToolOutput:
            files = await translated(self._memory.read)
            chosen = {f.target: _stats(f) for f in files if arguments.target in {None, f.target}}
            return ToolOutput(msgspec.json.format(msgspec.json.encode(chosen), indent=1).decode())

        return PreparedCall(f"stats {arguments.target or ''}".rstrip(), Effects(), run)

    async def _read(self, _: CallScope) -> ToolOutput:
        files = await translated(self._memory.read)
        parts = [f"── {facts.target}.md, {_fill(facts)} ──\n{_entries(facts)}" for facts in files]
        return ToolOutput("\n\n".join(parts))


def _found_episode(hit: "Candidate", query: str) -> str:
    """Return an episode, and what was said in its session about ``query``, the words marked."""
    from odek.memory.excerpt import marked, quotation
    from odek.trust.fence import fence

    text = hit.text if hit.passage else marked(hit.text, query)
    said = [f"> {marked(line, query)}" for line in quotation(hit.passage, query).splitlines()]
    body = "\n".join([text, *said])
    if hit.untrusted:  # approved by a setting alone: what outsiders wrote stays data
        body = fence(body, source=f"session {hit.id}")
    return f"[session {hit.id}, {hit.age_key[:10] or 'date unknown'}]\n{body}"


def _mutation(
    summary: str, preview: str, done: str, change: Callable[[CallScope], Awaitable[Change]]
) -> PreparedCall:
    """Return a call that makes one change and reports it."""

    async def run(scope: CallScope) -> ToolOutput:
        return _report(done, await translated(lambda: change(scope)), preview)

    return PreparedCall(summary, Effects(writes_memory=True), run, preview)


def _report(done: str, made: Change, diff: str) -> ToolOutput:
    """Say what a change did, and how full the file is now."""
    file = f"{made.fact.target}.md"
    if not made.changed:
        return ToolOutput(f"{file} already holds this as entry {made.fact.index}; nothing changed.")
    said = f"{done} {file}: {clip_line(made.fact.shown, 100)} ({_fill(made.facts)})"
    return ToolOutput(
        "\n".join(filter(None, [said, fill_warning(made.facts)])), changed=(f"memory {file}",), diff=diff
    )


def _unknown_origin(call_id: str, approval: str) -> "Origin":
    from odek.memory.journal import Origin

    return Origin(call_id=call_id, approval=approval)


async def translated(work: Callable[[], Awaitable[_T]]) -> _T:
    """Return the result of ``work``.

    Raises:
        ToolError: in place of what the stores raise, for the model to read; a changed target is one already.
    """
    try:
        return await work()
    except (MemoryRefusedError, StoreError) as error:
        raise ToolError(str(error)) from error


def _diff(target: Target, old: str, new: str) -> str:
    """Return the whole change as a unified diff of one entry."""
    removed = [f"-{line}" for line in old.splitlines()]
    added = [f"+{line}" for line in new.splitlines()]
    hunk = f"@@ -{_range(removed)} +{_range(added)} @@"
    return "\n".join([f"--- memory/{target}.md", f"+++ memory/{target}.md", hunk, *removed, *added, ""])


def _range(lines: list[str]) -> str:
    return f"1,{len(lines)}" if lines else "0,0"


def _whole(fact: Fact) -> str:
    """Return the entry for an approval; one that is too long to show is identified instead."""
    if fact.size_bytes <= FIELD_LIMIT_BYTES:
        return fact.text
    import hashlib

    digest = hashlib.sha256(fact.text.encode()).hexdigest()
    return (
        f"[{fact.size_bytes:,} bytes, SHA-256 {digest}; its first {_EXCERPT_BYTES} bytes:]\n"
        f"{clip_bytes(fact.text, _EXCERPT_BYTES)}\n[excerpt ends]"
    )


def _fill(facts: Facts) -> str:
    return f"{facts.used_bytes:,} of {facts.limit_bytes:,} bytes, {facts.percent}%"


def _entries(facts: Facts) -> str:
    return "\n§\n".join(fact.shown for fact in facts.entries) or "(empty)"


def _stats(facts: Facts) -> dict[str, Any]:
    return {
        "used": facts.used_bytes,
        "cap": facts.limit_bytes,
        "entries": [
            {"index": fact.index, "chars": fact.size_bytes, "preview": clip_line(fact.shown, 72)}
            for fact in facts.entries
        ],
    }
