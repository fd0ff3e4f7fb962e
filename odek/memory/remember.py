"""How a fact gets in: by itself, or folded into one that says the same.

What to do is decided outside the lock, on what was read; it is applied only to an entry
that is still there as it was seen. Whatever fails on the way - vectors, the model, a
merge that may not stand - the fact is stored by itself.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec
import trio

from odek.config.memory_settings import MemorySettings
from odek.embedding.embedder import Embedder, cosine
from odek.errors import EmbeddingError, ModelError, TargetChangedError
from odek.memory.ask import Ask
from odek.memory.facts import FIELD_LIMIT_BYTES, Change, Fact, Facts, FactStore, Target
from odek.memory.merge import Bands, Decision, Match, accepts_judged, decide
from odek.trust.fence import FENCE_RULE, fence

if TYPE_CHECKING:
    from odek.memory.journal import Origin

__all__ = ["Remembered", "remember"]

_T = TypeVar("_T")

# Beyond this a merge is tried on the next addition; the entries changed twice while one was decided on.
_TRIES = 2

_INSTRUCTIONS = f"""\
You keep a list of facts free of repetition. You are given a stored fact and a new one. {FENCE_RULE}
If both are about the same thing, so that one sentence can say what is true now, answer with two lines:
MERGE
that sentence
The new fact is the later one: where they contradict each other, it counts. Use the words, numbers and \
names of the two facts and no others, and leave nothing out.
In every other case, and when in doubt, answer with one line:
ADD"""


class Remembered(msgspec.Struct, frozen=True):
    """What became of a fact.

    ``added`` as an entry of its own; ``merged`` with the entry that ``change`` now shows,
    which may have said it all already; ``duplicate`` of an equal entry. ``similarity`` is
    the cosine to the entry that it was merged with, or kept apart from. ``note`` says in a
    line why there was no comparison, "" if there was one or none was wanted.
    """

    kind: Literal["added", "merged", "duplicate"]
    change: Change
    similarity: float | None = None
    note: str = ""


async def remember(
    store: FactStore,
    target: Target,
    content: str,
    *,
    embedder: Embedder,
    ask: Ask | None,
    settings: MemorySettings,
    origin: "Origin | None" = None,
    limiter: trio.CapacityLimiter | None = None,
) -> Remembered:
    """Store ``content``, merged with an entry that says the same if ``settings`` want that.

    ``ask`` judges what likeness leaves open; without it such facts stay apart.

    Raises:
        MemoryRefusedError: the content is refused, or the file would be too large.
        StoreError: the file cannot be read or written.
    """
    run = partial(_in_thread, limiter=limiter)
    text = await run(partial(store.check_content, content))
    note = ""
    similarity: float | None = None
    for _ in range(_TRIES if settings.merge_on_write else 0):
        facts = await run(partial(store.read, target))
        if any(fact.text == text for fact in facts.entries):
            break  # the store says which
        try:
            decision = await _classify(text, facts, embedder, ask, settings)
        except EmbeddingError as error:
            note = f"memory: stored without looking for a fact that says the same: {error}"
            break
        similarity = decision.match.similarity if decision.match is not None else None
        if decision.action != "merge" or decision.match is None:
            break
        replace = partial(store.replace, decision.match.fact, decision.text, action="merge", origin=origin)
        try:
            return Remembered("merged", await run(replace), similarity)
        except TargetChangedError:
            continue
    change = await run(partial(store.add, target, text, origin=origin))
    return Remembered("added" if change.changed else "duplicate", change, similarity, note)


async def _classify(
    text: str, facts: Facts, embedder: Embedder, ask: Ask | None, settings: MemorySettings
) -> Decision:
    """Decide on ``text``; the action is never "judge"."""
    # One beyond the bound cannot be part of a merge: no approval could show the result.
    known = [fact for fact in facts.entries if not fact.rejection and fact.size_bytes <= FIELD_LIMIT_BYTES]
    if not known:
        return Decision("add")
    vector, *others = await embedder.embed([text, *(fact.text for fact in known)])
    matches = [Match(fact, cosine(vector, other)) for fact, other in zip(known, others, strict=True)]
    decision = decide(text, matches, Bands(settings.merge_threshold, settings.add_threshold))
    if decision.action != "judge" or decision.match is None:
        return decision
    merged = await _judged(decision.match.fact, text, ask) if ask is not None else None
    if merged is None:
        return Decision("add", decision.match)
    return Decision("merge", decision.match, merged)


async def _judged(old: Fact, new: str, ask: Ask) -> str | None:
    """Return the sentence that a model makes of both, None if they are two facts or it is unclear."""
    try:
        answer = await ask(
            _INSTRUCTIONS, f"{fence(old.text, source='stored fact')}\n{fence(new, source='new fact')}"
        )
    except ModelError:
        return None
    verdict, _, merged = answer.strip().partition("\n")
    if verdict.strip(" *`.:").upper() != "MERGE":
        return None
    text = merged.strip().strip("`").strip()
    return text if text and accepts_judged(text, old.text, new) else None


async def _in_thread(work: Callable[[], _T], *, limiter: trio.CapacityLimiter | None) -> _T:
    # Never abandoned: a cancel may end the wait for the lock, not split a write.
    return await trio.to_thread.run_sync(work, abandon_on_cancel=False, limiter=limiter)
