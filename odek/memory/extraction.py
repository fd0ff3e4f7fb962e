"""Asking the model for the record of a session, and for facts: in one question where that does."""

from collections.abc import Awaitable, Callable

import msgspec

from odek.memory.extract import Extracted, parse_combined, parse_facts, parse_summary
from odek.memory.extract_prompts import combined_prompt, facts_prompt, summary_prompt

__all__ = ["extract"]


async def extract(
    ask: Callable[[str, str], Awaitable[str]], transcript: str, *, day: str, episode: bool, facts: bool
) -> Extracted:
    """Return what is to be kept of a session.

    Both are asked for in one question; when its answer cannot be understood, each in one of
    its own. ``day`` is the session's date.

    Raises:
        ModelError: the model did not answer.
    """
    if episode and facts:
        both = parse_combined(await ask(combined_prompt(day), transcript))
        if both is not None:
            return both
    summary = parse_summary(await ask(summary_prompt(day), transcript)) if episode else ""
    found = parse_facts(await ask(facts_prompt(day), transcript)) if facts else Extracted()
    return msgspec.structs.replace(found, summary=summary)
