"""An answer put together from the bytes of a response, whatever form they take.

The bytes are an event stream, or one JSON body from a server that ignores
``stream``, or a page from something that is no model at all; the first character
tells. Nothing here knows HTTP or waits.
"""

from collections.abc import Callable, Collection
from itertools import groupby
from typing import Any, Final

import msgspec

from odek.events import Usage
from odek.llm.lenient import LeadingSurrogate, decode_json, encode_json
from odek.llm.model import (
    FinishReason,
    ModelEvent,
    ModelResponse,
    ReasoningText,
    TextPiece,
    TextWasReasoning,
    ToolCallBegun,
)
from odek.llm.sse import ServerSentEvent, SseDecoder
from odek.llm.think_tags import ThinkTags
from odek.llm.toolcalls import ToolCallAssembler
from odek.llm.usage import merged, read_usage
from odek.messages import AssistantMessage
from odek.patterns import late_pattern

__all__ = ["AnswerDecoder"]

_HEAD_BYTES = 16 * 1024  # kept of a body that is no answer, to say in the error what it was
_BLANK = b"\xef\xbb\xbf \t\r\n"  # a byte order mark and white space, in any order
_STREAM_LINE = late_pattern(rb":|(data|event|id|retry)\b")

_FINISH_REASONS: Final[dict[str, FinishReason]] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "max_output_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "sensitive": "content_filter",
    "recitation": "content_filter",
    "refusal": "content_filter",
    "prohibited_content": "content_filter",
    "blocklist": "content_filter",
    "spii": "content_filter",
}
# The provider gave up; what has arrived is not an answer.
_BROKEN_REASONS = {"error", "insufficient_system_resource", "abort", "cancelled", "network_error"}
_FULL_REASON = "model_context_window_exceeded"


class AnswerDecoder:
    """Sans-IO: ``feed`` bytes and report the events, ``close`` at the end, then take ``response``.

    ``taken_ids`` and ``tool_names`` are those of ``ToolCallAssembler``, ``lone_end`` is that of
    ``ThinkTags``.
    """

    def __init__(
        self, taken_ids: Collection[str] = (), tool_names: Collection[str] = (), *, lone_end: str = ""
    ) -> None:
        self.error: bytes | None = None
        """The provider's error as JSON, when it sent one instead of (the rest of) the answer."""
        self.done = False
        """Whether the stream said that it is over."""
        self.has_told_text = False
        """Whether text was reported, as which it may not have lasted."""
        self.page: bytes | None = None
        """The beginning of a body that is neither a stream nor JSON."""
        self._is_stream: bool | None = None  # unknown before the first character
        self._head = b""  # of the stream
        self._body = bytearray()  # of a response that is no stream
        self._sse = SseDecoder()
        self._calls = ToolCallAssembler(taken_ids, tool_names)
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._tags = ThinkTags(lone_end)
        self._text_end = LeadingSurrogate()
        self._reasoning_end = LeadingSurrogate()
        self._finish_reason = ""
        self._usage = Usage()

    @property
    def started(self) -> bool:
        """Whether any content has arrived: text, reasoning, or a part of a tool call."""
        return bool(self._text or self._reasoning or self._calls.started)

    @property
    def finished(self) -> bool:
        """Whether the answer is whole; more may follow, such as the usage."""
        return bool(self._finish_reason) or (self.done and self.started)

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    @property
    def lone_end(self) -> str:
        """The tag that is expected to end the reasoning of the next answer; see ``ThinkTags``."""
        return self._tags.lone_end

    def feed(self, piece: bytes) -> list[ModelEvent]:
        """Take the next bytes of the body; return what to report, pieces that follow each other as one.

        Raises:
            EventTooLongError: the stream holds an event beyond any sense.
        """
        if self._is_stream is None:
            piece = self._head + piece
            first = piece.lstrip(_BLANK)[:1]
            self._head = b"" if first else piece
            if not first:
                return []
            self._is_stream = first not in (b"{", b"[", b"<")
        if self._is_stream:
            self._head += piece[: _HEAD_BYTES - len(self._head)]
            return _together(self._take(self._sse.feed(piece)))
        self._body += piece
        return []

    def close(self) -> list[ModelEvent]:
        """Say that the body has ended; return what that completes."""
        if self._is_stream is False:
            events = self._take_whole(bytes(self._body))
        else:
            events = self._take(self._sse.close())
            if self._head.strip(_BLANK) and not _STREAM_LINE.match(self._head.lstrip(_BLANK)):
                self.page = self._head
        self._take_reasoning(self._reasoning_end.close(), events)
        rest = self._text_end.close()
        self._take_tagged(lambda: self._tags.feed(rest), events)
        self._take_tagged(self._tags.close, events)
        is_whole = self.finished and self._finish_reason not in _FINISH_REASONS
        if is_whole and not self._text and not self._calls.started:
            # A model that left the closing tag out: rather all of it than no answer.
            self._take_text(self._tags.unended, events)
        return events

    def response(self) -> ModelResponse:
        """Return the answer. Tool calls of a cut answer that may lack a part are left out.

        A spelling of the finish reason that nobody knows counts as a proper end.
        """
        reason = _FINISH_REASONS.get(self._finish_reason)
        calls = self._calls.close(cut=reason is not None)
        message = AssistantMessage(self.text, calls, "".join(self._reasoning) or None)
        return ModelResponse(message, self._usage, reason or ("tool_calls" if calls else "stop"))

    def _take(self, events: list[ServerSentEvent]) -> list[ModelEvent]:
        reported: list[ModelEvent] = []
        for event in events:
            if self.done or self.error is not None:
                break
            if event.data.strip() == "[DONE]":
                self.done = True
                break
            try:
                chunk = decode_json(event.data)
            except ValueError:
                if event.event == "error":
                    self.error = encode_json({"message": event.data}).encode()
                continue  # a line of noise; a stream that is damaged throughout ends without a finish
            if event.event == "error" and isinstance(chunk, dict | str):
                self.error = encode_json({"error": chunk}).encode()
            elif isinstance(chunk, dict):
                self._take_chunk(chunk, reported)
        return reported

    def _take_whole(self, body: bytes) -> list[ModelEvent]:
        reported: list[ModelEvent] = []
        try:
            chunk = decode_json(body.strip(_BLANK))
        except ValueError:
            self.page = body[:_HEAD_BYTES]
            return reported
        if isinstance(chunk, list) and chunk:
            chunk = chunk[0]  # one provider wraps its errors so
        if isinstance(chunk, dict):
            self._take_chunk(chunk, reported)
            self.done = self.started
        if not self.started and not self._finish_reason and self.error is None:
            self.page = body[:_HEAD_BYTES]
        return reported

    def _take_chunk(self, chunk: dict[str, Any], reported: list[ModelEvent]) -> None:
        if chunk.get("error") or chunk.get("object") == "error":
            self.error = encode_json(chunk).encode()
            return
        groq = chunk.get("x_groq")
        for report in (chunk.get("usage"), groq.get("usage") if isinstance(groq, dict) else None):
            if isinstance(report, dict):  # most chunks have none
                self._usage = merged(self._usage, read_usage(report))
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                self._take_choice(choice, reported)

    def _take_choice(self, choice: dict[str, Any], reported: list[ModelEvent]) -> None:
        for key in ("delta", "message"):
            if isinstance(delta := choice.get(key), dict):
                self._take_delta(delta, reported, whole=key == "message")
        reason = choice.get("finish_reason")
        if not isinstance(reason, str) or not reason:
            return
        reason = reason.lower()
        if reason in _BROKEN_REASONS or (reason == _FULL_REASON and not self.started):
            error = choice.get("error") or {"message": f"finish_reason {reason}", "code": reason}
            self.error = encode_json({"error": error}).encode()
        else:
            self._finish_reason = reason

    def _take_delta(self, delta: dict[str, Any], reported: list[ModelEvent], *, whole: bool) -> None:
        content, thinking = _text_and_thinking(delta.get("content"))
        for value in (delta.get("reasoning_content") or delta.get("reasoning"), thinking):
            if isinstance(value, str):
                self._take_reasoning(self._reasoning_end.feed(value), reported)
        for value in (content, delta.get("refusal")):
            if isinstance(value, str) and (piece := self._text_end.feed(value)):
                self._take_tagged(lambda: self._tags.feed(piece), reported)
        self._calls.feed(delta.get("tool_calls"), whole=whole)
        if isinstance(legacy := delta.get("function_call"), dict):
            self._calls.feed([legacy])
        reported += map(ToolCallBegun, self._calls.newly_named())

    def _take_tagged(self, split: Callable[[], tuple[str, str]], reported: list[ModelEvent]) -> None:
        """Take what ``split`` tells of text: a piece of reasoning, and one of text behind it."""
        was_lone = bool(self._tags.lone_end)
        reasoning, text = split()
        if self._tags.lone_end and not was_lone and self._text:
            self._reasoning += self._text
            self._text.clear()
            reported.append(TextWasReasoning())
        self._take_reasoning(reasoning, reported)
        self._take_text(text, reported)

    def _take_reasoning(self, piece: str, reported: list[ModelEvent]) -> None:
        if piece:
            self._reasoning.append(piece)
            reported.append(ReasoningText(piece))

    def _take_text(self, piece: str, reported: list[ModelEvent]) -> None:
        if piece:
            self.has_told_text = True
            self._text.append(piece)
            reported.append(TextPiece(piece))


def _together(events: list[ModelEvent]) -> list[ModelEvent]:
    """Return ``events`` with the texts joined that follow each other: whoever hears of them pays for each."""
    joined: list[ModelEvent] = []
    for _, group in groupby(events, type):
        alike = list(group)
        texts = [event.text for event in alike if isinstance(event, TextPiece | ReasoningText)]
        joined += [msgspec.structs.replace(alike[0], text="".join(texts))] if texts else alike
    return joined


def _text_and_thinking(content: Any) -> tuple[str, str]:
    """Split ``content`` in text and reasoning: text, null, or a list of parts."""
    if isinstance(content, str):
        return content, ""
    text, thinking = "", ""
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            text += part
        elif isinstance(part, dict):
            text += part["text"] if isinstance(part.get("text"), str) else ""
            inner = part.get("thinking")
            thinking += inner if isinstance(inner, str) else _text_and_thinking(inner)[0]
    return text, thinking
