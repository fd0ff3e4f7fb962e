"""The guard of the memory: a detector of injections beside odek, asked after its own rules."""

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import trio

from odek.config.guard_settings import GuardSettings
from odek.errors import ModelUnavailableError
from odek.events import Event, Notice
from odek.home import expanded

if TYPE_CHECKING:
    from odek.trust.piguard import Question

__all__ = ["Guard", "SecondOpinion", "guard_of", "in_thread"]

SecondOpinion = Callable[[Sequence[str]], Awaitable[list[str]]]
"""Returns for each text why it must not be remembered, "" if it may; never raises."""

BACKOFF_SECONDS = 30.0
"""After a failure nothing is asked for so long: remembering must not wait for a dead detector each time."""

ANSWER_BYTES = 1024 * 1024

REMEMBERED = 1024
"""Verdicts that are kept: the lines of a buffer are looked at in every turn."""


def in_thread(object_to: SecondOpinion | None) -> Callable[[str], str] | None:
    """Return what asks about one text from a thread of the event loop's, None where nobody is asked."""
    return None if object_to is None else lambda text: trio.from_thread.run(object_to, [text])[0]


def guard_of(settings: GuardSettings, emit: Callable[[Event], None]) -> "Guard | None":
    """Return the guard that ``settings`` ask for, and tell if they ask for one that cannot be."""
    if settings.provider == "local" or not settings.scan.memory:
        return None
    if settings.url or settings.socket_path:
        return Guard(settings, emit)
    text = "guard.provider is piguard without guard.url or guard.socket_path; the rules decide alone"
    emit(Notice(text, "warning"))
    return None


class Guard:
    """Asks a piguard sidecar, and decides as the settings say when it cannot be asked."""

    def __init__(self, settings: GuardSettings, emit: Callable[[Event], None]) -> None:
        self._settings = settings
        self._emit = emit
        self._socket = str(expanded(settings.socket_path)) if settings.socket_path else ""
        self._known: dict[str, str] = {}
        self._silent_until = -math.inf
        self._last_failure = ""

    async def object_to(self, texts: Sequence[str]) -> list[str]:
        """Return for each text why it must not be remembered, "" if it may."""
        unknown = [text for text in dict.fromkeys(texts) if text not in self._known]
        failure = ""
        if unknown:
            try:
                self._keep(unknown, await self._ask(unknown))
            except ModelUnavailableError as error:
                failure = self._failed(str(error))
        return [self._known.get(text, failure) for text in texts]

    async def _ask(self, texts: Sequence[str]) -> list[str]:
        if (rest := self._silent_until - trio.current_time()) > 0:
            raise ModelUnavailableError(f"{self._last_failure}; asked again in {rest:.0f} s")
        from odek.trust.piguard import questions

        verdicts = [""] * len(texts)
        for question in questions(texts, self._settings):
            for place, score in zip(question.places, await self._answer(question), strict=True):
                if score is not None:
                    verdicts[place] = f"the guard takes it for an injection (score {score:.2f})"
        return verdicts

    async def _answer(self, question: "Question") -> list[float | None]:
        from odek.llm.post import post
        from odek.trust.piguard import read_answer

        limit = self._settings.timeout_seconds
        with trio.move_on_after(limit) as scope:
            reply = await post(question.url, question.body, limit_bytes=ANSWER_BYTES, socket=self._socket)
        if scope.cancelled_caught:
            raise ModelUnavailableError(f"no answer within {limit:g} s")
        if not reply.is_success:
            raise ModelUnavailableError(f"it answered {reply.status}")
        try:
            return read_answer(question, reply.body, self._settings.threshold)
        except ValueError as error:
            raise ModelUnavailableError(str(error)) from error

    def _failed(self, reason: str) -> str:
        """Take note of a failure; return what is to be said against texts that nobody judged."""
        fallback = self._settings.fallback_to_local
        if self._silent_until <= trio.current_time():
            if not self._last_failure:
                then = "the rules decide alone" if fallback else "nothing is remembered meanwhile"
                self._emit(Notice(f"the guard of the memory cannot be asked: {reason}; {then}", "warning"))
            self._silent_until = trio.current_time() + BACKOFF_SECONDS
            self._last_failure = reason
        return "" if fallback else f"the guard cannot be asked: {self._last_failure}"

    def _keep(self, texts: Sequence[str], verdicts: Sequence[str]) -> None:
        self._last_failure = ""
        if len(self._known) + len(texts) > REMEMBERED:
            self._known.clear()
        self._known |= zip(texts, verdicts, strict=True)
