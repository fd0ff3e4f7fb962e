"""The model that works for the memory: one question at a time, within a day's budget."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import trio

from odek.errors import LimitReachedError, ModelError, ModelUnavailableError, StoreError
from odek.llm.model import Model, ModelEvent, ModelRequest
from odek.messages import SystemMessage, UserMessage
from odek.storage.files import ensure_directory, read_file, replace_file
from odek.storage.locks import exclusive

__all__ = ["DailyBudget", "MemoryModel", "Spent"]

USAGE_FILE = "usage.json"

LOCK_TIMEOUT_SECONDS = 2.0
"""The lock is held for one small write."""

_FILE_LIMIT_BYTES = 4_096
_CHARACTERS_PER_TOKEN = 4  # where an endpoint reports no usage; a rule of thumb for English


class Spent(msgspec.Struct, frozen=True):
    """What was used on a day, in UTC, by all processes of this home."""

    day: str = ""
    calls: int = 0
    tokens: int = 0


class DailyBudget:
    """Counts what the memory's model calls take, in a file that all processes share. Blocking.

    Args:
        directory: Where the file is; made when needed.
        max_calls: Calls a day.
        max_tokens: Tokens a day, questions and answers together.
        now: Tells the time.
    """

    def __init__(
        self, directory: Path, *, max_calls: int, max_tokens: int, now: Callable[[], datetime]
    ) -> None:
        self.max_calls = max_calls
        self.max_tokens = max_tokens
        self._directory = directory
        self._now = now

    def spent(self) -> Spent:
        """Return what was used today; a file that cannot be read counts as nothing."""
        today = self._now().astimezone(UTC).date().isoformat()
        try:
            data = read_file(self._directory / USAGE_FILE, limit_bytes=_FILE_LIMIT_BYTES)
            found = msgspec.json.decode(data, type=Spent)
        except (FileNotFoundError, StoreError, msgspec.MsgspecError):
            found = Spent()
        return found if found.day == today else Spent(day=today)

    def take_call(self) -> None:
        """Count one call before it is made.

        Raises:
            LimitReachedError: the day's budget is used up.
            StoreError: it cannot be counted; then it must not be made.
        """
        with self._locked():
            spent = self.spent()
            if spent.calls >= self.max_calls or spent.tokens >= self.max_tokens:
                raise LimitReachedError(
                    f"the memory's budget of {spent.day} is used up: "
                    f"{spent.calls} of {self.max_calls} calls, {spent.tokens} of {self.max_tokens} tokens"
                )
            self._save(msgspec.structs.replace(spent, calls=spent.calls + 1))

    def add_tokens(self, tokens: int) -> None:
        """Count what a call took.

        Raises:
            StoreError: it cannot be counted.
        """
        with self._locked():
            spent = self.spent()
            self._save(msgspec.structs.replace(spent, tokens=spent.tokens + tokens))

    def _locked(self) -> AbstractContextManager[None]:
        ensure_directory(self._directory)
        return exclusive(self._directory / ".usage.lock", timeout_seconds=LOCK_TIMEOUT_SECONDS)

    def _save(self, spent: Spent) -> None:
        # Not durable: what a power cut takes back is one call of a budget.
        replace_file(self._directory / USAGE_FILE, msgspec.json.encode(spent), durable=False)


class MemoryModel:
    """Asks a model for the memory. What goes out is masked, and counted.

    Args:
        model: Who is asked.
        budget: What a day may take.
        mask: Hides secrets.
        is_dedicated: Whether it is a model of the memory's own; only such a one is asked while a
            person waits.
        timeout_seconds: Longest wait for an answer.
        max_tokens: Longest answer; 0 leaves it to the endpoint.
        temperature: Randomness.
    """

    def __init__(
        self,
        model: Model,
        budget: DailyBudget,
        mask: Callable[[str], str],
        *,
        is_dedicated: bool,
        timeout_seconds: float,
        max_tokens: int = 0,
        temperature: float = 0.0,
    ) -> None:
        self.name = model.name
        self.is_dedicated = is_dedicated
        self.budget = budget
        self._model = model
        self._mask = mask
        self._timeout_seconds = timeout_seconds
        self._max_tokens = max_tokens or None
        self._temperature = temperature

    async def ask(self, instructions: str, text: str) -> str:
        """Return the text of the answer.

        Raises:
            ModelError: there is none, or it was cut short.
            LimitReachedError: the day's budget is used up.
            StoreError: the call cannot be counted.
        """
        await trio.to_thread.run_sync(self.budget.take_call)
        masked = self._mask(text)
        request = ModelRequest(
            (SystemMessage(instructions), UserMessage(masked)),
            max_tokens=self._max_tokens,
            temperature=self._temperature,
        )
        with trio.move_on_after(self._timeout_seconds):
            response = await self._model.complete(request, _ignore)
            usage = response.usage
            known = [count for count in (usage.prompt_tokens, usage.completion_tokens) if count is not None]
            written = len(instructions) + len(masked) + len(response.message.content)
            await self._count(sum(known) if known else written // _CHARACTERS_PER_TOKEN)
            if response.finish_reason in {"length", "content_filter"}:
                raise ModelError(f"{self.name} did not finish its answer", partial=response.message.content)
            return response.message.content.strip()
        # Late answers are paid for too, as far as that can be told.
        await self._count((len(instructions) + len(masked)) // _CHARACTERS_PER_TOKEN)
        raise ModelUnavailableError(f"{self.name} gave no answer within {self._timeout_seconds:g} s")

    async def _count(self, tokens: int) -> None:
        await trio.to_thread.run_sync(self.budget.add_tokens, tokens)


def _ignore(event: ModelEvent) -> None:
    """Nobody watches these answers arrive."""
