"""The client of any chat-completions endpoint: limits, retries, prices."""

import random
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
import trio

from odek.errors import ModelUnavailableError
from odek.llm.answer import AnswerDecoder
from odek.llm.endpoint import Endpoint
from odek.llm.faults import Fault
from odek.llm.model import ModelRequest, ModelResponse, OnModelEvent, Retrying
from odek.llm.retry import LONGEST_WAIT_SECONDS, backoff_seconds, until
from odek.llm.usage import priced
from odek.llm.wire import RequestForm, encode_request, form_after
from odek.messages import AssistantMessage

if TYPE_CHECKING:
    from odek.llm.transport import Transport

__all__ = ["ChatModel", "Endpoint", "open_client"]


@asynccontextmanager
async def open_client(endpoint: Endpoint) -> AsyncGenerator["ChatModel"]:
    """Yield a model at ``endpoint``. Nothing is connected before the first request."""
    from odek.llm.transport import open_transport  # brings the HTTP library: a cost for this path only

    async with open_transport(endpoint) as transport:
        yield ChatModel(endpoint, transport)


class ChatModel:
    """Implements ``Model`` for an endpoint.

    One request takes at most ``request_timeout_seconds``, its tries and the waits between
    them included. A try is repeated while no text of an answer has arrived: of a call or of
    reasoning nothing has been done or told for good. Any number of requests may run at once.
    """

    def __init__(self, endpoint: Endpoint, transport: "Transport") -> None:
        self._endpoint = endpoint
        self._transport = transport
        self._form = RequestForm()  # the one that the endpoint was last seen to take
        self._lone_end = ""  # of reasoning without a beginning, as the last answer had it

    @property
    def name(self) -> str:
        """The model's name at the endpoint."""
        return self._endpoint.model

    @property
    def context_window(self) -> int | None:
        """Tokens that a request and its answer may take together; None when unknown."""
        return self._endpoint.context_window

    async def complete(self, request: ModelRequest, on_event: OnModelEvent) -> ModelResponse:
        """Ask, with retries; see ``Model.complete``.

        Errors carry in ``partial`` the text that had arrived.
        """
        limit = self._endpoint.settings.request_timeout_seconds
        answer = self._new_answer(request)
        form = self._form
        with trio.move_on_after(limit) as whole:
            attempt = 1
            while (fault := await self._try(request, form, answer, on_event)) is not None:
                other = None if answer.started else form_after(form, fault.message, request)
                if other is not None:
                    form = other
                    answer = self._new_answer(request)
                    continue
                wait = self._wait_seconds(fault, attempt)
                if answer.has_told_text or wait is None or trio.current_time() + wait >= whole.deadline:
                    raise _final(fault, attempt).as_error(answer.text)
                on_event(Retrying(attempt, wait, fault.message))
                await trio.sleep(wait)
                attempt += 1
                answer = self._new_answer(request)
            self._form, self._lone_end = form, answer.lone_end
            response = answer.response()
            return msgspec.structs.replace(response, usage=priced(response.usage, self._endpoint.price))
        raise ModelUnavailableError(
            f"{self._endpoint.host} took longer than {limit:g} s for its answer, the limit of a request",
            partial=answer.text,
        )

    async def _try(
        self, request: ModelRequest, form: RequestForm, answer: AnswerDecoder, on_event: OnModelEvent
    ) -> Fault | None:
        """Send ``request`` once in ``form``; return why there is no answer, or None."""
        settings = self._endpoint.settings
        if request.max_tokens is None:
            request = msgspec.structs.replace(request, max_tokens=settings.max_tokens)
        if request.temperature is None:
            request = msgspec.structs.replace(request, temperature=settings.temperature)
        body = encode_request(
            request, model=self._endpoint.model, profile=self._endpoint.known_profile, form=form
        )
        return await self._transport.send(body, answer, on_event)

    def _new_answer(self, request: ModelRequest) -> AnswerDecoder:
        return AnswerDecoder(
            taken_ids=[
                call.id
                for message in request.messages
                if isinstance(message, AssistantMessage)
                for call in message.tool_calls
            ],
            tool_names=[tool.name for tool in request.tools],
            lone_end=self._lone_end,
        )

    def _wait_seconds(self, fault: Fault, attempt: int) -> float | None:
        """Return the wait before the next try, or None when there shall be none."""
        asked = fault.retry_after_seconds or 0.0
        if not fault.retriable or attempt > self._endpoint.settings.max_retries:
            return None
        if asked > LONGEST_WAIT_SECONDS:
            return None
        own = backoff_seconds(attempt, random.random())  # noqa: S311  jitter is no secret
        return asked or own


def _final(fault: Fault, attempts: int) -> Fault:
    """Return ``fault`` as it is told to a person after the last try."""
    asked = fault.retry_after_seconds or 0.0
    message = fault.message
    if asked > LONGEST_WAIT_SECONDS:
        message += f"; it asks to wait, try again after {until(asked, time.time())}"
    elif attempts > 1:
        message += f" (tried {attempts} times)"
    return msgspec.structs.replace(fault, message=message)
