"""A fact file made denser by a model, without losing or gaining a fact.

The model works on a snapshot, outside the lock. What it answers is checked against the
snapshot and written only if the file still is what the snapshot shows.
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio

from odek.errors import MemoryRefusedError, ModelError, TargetChangedError
from odek.memory.ask import Ask
from odek.memory.fact_file import canonical
from odek.memory.facts import FIELD_LIMIT_BYTES, FactStore, Target
from odek.memory.substance import claims, is_part_of
from odek.trust.fence import FENCE_RULE, fence

if TYPE_CHECKING:
    from odek.memory.journal import Origin

__all__ = ["Consolidated", "consolidate", "objection"]

_INSTRUCTIONS = f"""\
You make a list of facts denser. Join entries that repeat or complete one another; leave every other \
entry as it is, word for word. Keep every number, name, path, version, date, condition and negation, and \
the order of words. Use only words of the entries; add, explain and conclude nothing. Never join entries \
with different numbers, or one that negates with one that does not. Answer with a JSON array of strings, \
one entry each, and nothing else.
{FENCE_RULE}"""


class Consolidated(msgspec.Struct, frozen=True):
    """The entries before and after; ``after`` is what was proposed, also if it was not ``applied``.

    ``reason`` says in a line why nothing was written, "" if it was.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    applied: bool
    reason: str = ""


async def consolidate(
    store: FactStore,
    target: Target,
    ask: Ask,
    *,
    dry_run: bool = False,
    origin: "Origin | None" = None,
    limiter: trio.CapacityLimiter | None = None,
) -> Consolidated:
    """Let a model merge related entries of ``target``; with ``dry_run`` nothing is written.

    Entries that must not reach a model are neither sent nor touched. A file that cannot be
    made smaller, an answer that fails a check, a model that fails, a file that was changed
    meanwhile: nothing is written, and ``reason`` says so.

    Raises:
        StoreError: the file cannot be read or written.
    """
    facts = await trio.to_thread.run_sync(partial(store.read, target), limiter=limiter)
    before = tuple(dict.fromkeys(fact.text for fact in facts.entries if not fact.rejection))
    if len(before) < 2:
        return Consolidated(before, before, applied=False, reason=f"{target}.md has nothing to merge")
    try:
        answer = await ask(_INSTRUCTIONS, fence(msgspec.json.encode(before).decode(), source="facts"))
    except ModelError as error:
        return Consolidated(before, before, applied=False, reason=f"the model gave no answer: {error}")
    after = _entries(answer)
    if reason := objection(before, after):
        return Consolidated(before, after, applied=False, reason=reason)
    if dry_run:
        return Consolidated(before, after, applied=False, reason="dry run")
    try:  # before the file is locked: looking at a text may take a while
        for text in set(after) - set(before):
            await trio.to_thread.run_sync(store.check_content, text, limiter=limiter)
    except MemoryRefusedError as error:
        return Consolidated(before, after, applied=False, reason=str(error))
    withheld = [fact.text for fact in facts.entries if fact.rejection]
    replace = partial(store.replace_all, target, facts.content_hash, [*withheld, *after], origin=origin)
    try:
        await trio.to_thread.run_sync(replace, abandon_on_cancel=False, limiter=limiter)
    except TargetChangedError:
        reason = f"{target}.md changed meanwhile; it is left as it is"
    except MemoryRefusedError as error:
        reason = str(error)
    return Consolidated(before, after, applied=not reason, reason=reason)


def objection(before: Sequence[str], after: Sequence[str]) -> str:
    """Return in a line why ``after`` may not take the place of ``before``, "" if it may. Pure.

    Each entry of ``before`` must be said by one of ``after``: all its numbers, names and
    paths, all its telling words in order, under the same negations and limits. No entry of
    ``after`` may say what none of ``before`` says, or put different numbers side by side.
    And it must be smaller.
    """
    if not after:
        return "the model's answer holds no entries"
    if _size(after) >= _size(before):
        return "the result is not smaller"
    for text in after:
        if problem := _unfounded(text, before):
            return problem
    for text in before:
        if not any(_says(whole, text) for whole in after):
            return f"an entry would be lost: {_quoted(text)}"
    return ""


def _says(whole: str, part: str) -> bool:
    """Tell whether the entry ``whole`` still claims all of ``part``, and under the same conditions."""
    one, other = claims(part), claims(whole)
    same = is_part_of(one, other) and one.exact <= other.exact and one.markers == other.markers
    return part == whole or same


def _unfounded(text: str, before: Sequence[str]) -> str:
    """Return what is wrong with one entry of the result, or ""."""
    from odek.trust.scan import scan

    if text in before:
        return ""
    if rejection := scan(text):
        return f"an entry {rejection}: {_quoted(text)}"
    if len(text.encode()) > FIELD_LIMIT_BYTES:
        return f"an entry is longer than {FIELD_LIMIT_BYTES:,} bytes: {_quoted(text)}"
    made = claims(text)
    parts = [claims(known) for known in before if _says(text, known)]
    said = {item for part in parts for item in (*part.content, *part.exact, *part.markers)}
    if news := {*made.content, *made.exact, *made.markers} - said:
        return f"an entry says what none said before ({', '.join(sorted(news)[:3])}): {_quoted(text)}"
    numbers = [{item for item in part.exact if any(map(str.isdigit, item))} for part in parts]
    if any(one - other and other - one for one in numbers for other in numbers):
        return f"an entry joins different numbers: {_quoted(text)}"
    return ""


def _entries(answer: str) -> tuple[str, ...]:
    """Read the answer: JSON as asked for, else entries between lines of `§`, else one a line."""
    text = re.sub(r"\A```\w*\n|\n```\Z", "", answer.strip())
    try:
        found = msgspec.json.decode(text, type=list[str])
    except (msgspec.MsgspecError, UnicodeError):
        lines = re.split(r"^§$", text, flags=re.MULTILINE)
        found = lines if len(lines) > 1 else [re.sub(r"^\s*[-*•]\s+", "", line) for line in text.splitlines()]
    return tuple(dict.fromkeys(filter(None, map(canonical, found))))


def _size(entries: Sequence[str]) -> int:
    return sum(len(text.encode()) + 4 for text in entries)  # a separator takes about as much


def _quoted(text: str) -> str:
    from odek.text import clip_line

    return repr(clip_line(text, 60))
