"""What of a conversation goes into the next request: estimating and fitting, pure.

A request is fitted only when it must be, and then well below the limit, so that the
requests after it share their prefix again. What was left out or shortened once stays so.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from odek.errors import ContextOverflowError
from odek.llm.model import ToolSpec
from odek.messages import (
    CONTEXT_NAME,
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
    is_context,
)
from odek.text import clip_middle

__all__ = ["Fitted", "Fitting", "estimate_tokens", "estimate_tools", "fit"]

CHARS_PER_TOKEN = 4
"""English prose and code come to about four characters a token with every current tokenizer."""

EXTRA_BYTES_PER_TOKEN = 3
"""Bytes of UTF-8 beyond the first of a character: Chinese comes to about a token a character, Cyrillic to
half of one. Tokenizers differ by a half either way; no measurement of ours behind it."""

MESSAGE_OVERHEAD_TOKENS = 4
"""Role and separators of one message, as the providers' own counting guides give it."""

LIMIT_FRACTION = 0.75
"""Share of the window that a request may fill: the rest is the answer's, and the estimate's error."""

TARGET_FRACTION = 0.60
"""What fitting aims at, so that it is not needed again at the very next request."""

SHORTENED_TOKENS = 768
"""Of a tool result at least: less says little, and the marks around outside content must stay whole."""

_GAP_TOKENS = 16  # what the mark of a gap takes

_NONE: Mapping[int, int] = MappingProxyType({})


class Fitted(msgspec.Struct, frozen=True):
    """A view of the conversation that fits.

    ``left_out`` holds the indices of the messages missing from the view, ``shortened`` the
    bytes that are kept of tool results, by index; hand both to the next call.
    ``newly_left_out`` counts the groups that this call removed, ``newly_shortened`` the results.
    """

    messages: tuple[Message, ...]
    estimated_tokens: int
    left_out: frozenset[int]
    newly_left_out: int
    shortened: Mapping[int, int] = _NONE
    newly_shortened: int = 0


class Fitting:
    """Fits one conversation, request after request; what it left out stays out from turn to turn."""

    def __init__(self) -> None:
        self._last: Fitted | None = None

    def fit(
        self, messages: Sequence[Message], *, window: int | None, reserved_tokens: int, harder: bool = False
    ) -> Fitted:
        """Return the part of ``messages`` that the next request may carry; see the function.

        ``messages`` begins with those of the call before. The first call sees what the requests of
        a resumed conversation had left out.

        Raises:
            ContextOverflowError: what must stay is already too much.
        """
        if self._last is None:
            self._last = _fitted_before(messages, window, reserved_tokens)
        self._last = fit(
            messages,
            window=window,
            reserved_tokens=reserved_tokens,
            left_out=self._last.left_out,
            shortened=self._last.shortened,
            harder=harder,
        )
        return self._last


def estimate_tokens(messages: Sequence[Message]) -> int:
    """Estimate the tokens of ``messages`` from their characters and structure."""
    return sum(map(_message_tokens, messages))


def estimate_tools(tools: Sequence[ToolSpec]) -> int:
    """Estimate the tokens that the tool schemas take in a request."""
    return sum(len(msgspec.json.encode(tool)) for tool in tools) // CHARS_PER_TOKEN


def fit(
    messages: Sequence[Message],
    *,
    window: int | None,
    reserved_tokens: int = 0,
    left_out: frozenset[int] = frozenset(),
    shortened: Mapping[int, int] = _NONE,
    harder: bool = False,
) -> Fitted:
    """Return the part of ``messages`` that a request may carry.

    Leaves out the oldest groups first: tool calls with their results, then whole
    exchanges. The system prompt, the first task, the newest user message and tool
    results that the model has not read yet always stay; if that is too much, the
    longest of these results lose their middle.

    Args:
        messages: The whole conversation, system message first.
        window: Tokens that the model takes; None leaves the size alone.
        reserved_tokens: Tokens of the request beside the messages, such as schemas.
        left_out: What earlier calls left out.
        shortened: What earlier calls shortened.
        harder: The provider has just refused the size; go down to half of it.

    Raises:
        ContextOverflowError: what must stay is already too much.
    """
    whole, messages = messages, _shorten(messages, shortened)
    kept = [message for index, message in enumerate(messages) if index not in left_out]
    total = estimate_tokens(kept) + reserved_tokens
    limit, target = _bounds(window, total, harder=harder)
    gone, removed = set(left_out), 0
    now_shortened: Mapping[int, int] = _NONE
    if limit is not None and total > limit:
        for group in _removable_groups(messages):
            if total <= target:
                break
            if group[0] not in gone:
                total -= estimate_tokens([messages[index] for index in group])
                gone.update(group)
                removed += 1
        if total > limit:
            least = SHORTENED_TOKENS if harder else 0
            now_shortened = _shortened_unread(whole, messages, int(total - target), least)
            for index, message in enumerate(_shorten(whole, now_shortened)):
                if index in now_shortened:
                    total += _message_tokens(message) - _message_tokens(messages[index])
            messages = _shorten(whole, {**shortened, **now_shortened})
        if not harder and total > limit:
            raise ContextOverflowError(
                f"the request needs about {total:,} tokens, more than the {int(limit):,} that fit"
            )
        if harder and not removed and not now_shortened:
            raise ContextOverflowError("nothing more can be left out")
    return Fitted(
        _view(messages, gone),
        total,
        frozenset(gone),
        removed,
        {**shortened, **now_shortened},
        len(now_shortened),
    )


def _bounds(window: int | None, total: int, *, harder: bool) -> tuple[float | None, float]:
    """Return (limit, target) in tokens; a limit of None means that anything goes."""
    if harder:
        # The estimate was too kind or the window unknown: what counts is to send much less.
        reference = min(total, window * LIMIT_FRACTION) if window else total
        return reference * 0.5, reference * 0.5
    if window is None:
        return None, 0
    return window * LIMIT_FRACTION, window * TARGET_FRACTION


def _removable_groups(messages: Sequence[Message]) -> list[tuple[int, ...]]:
    """Return groups of indices in the order in which they may be left out.

    First each tool batch (an assistant message with calls, and its results), oldest
    first; then each remaining exchange before the newest user message, oldest first. What the
    memory added to a question goes with it.
    """
    users = [index for index, message in enumerate(messages) if isinstance(message, UserMessage)]
    if not users:
        return []
    first_user, newest = users[0], users[-1]
    while newest > first_user and is_context(messages[newest - 1]):
        newest -= 1
    batches: list[tuple[int, ...]] = []
    exchanges: list[tuple[int, ...]] = []
    index = 0
    while index < len(messages):
        message = messages[index]
        end = index + 1
        if isinstance(message, AssistantMessage) and message.tool_calls:
            while end < len(messages) and isinstance(messages[end], ToolMessage):
                end += 1
            batches.append(tuple(range(index, end)))
        elif first_user < index < newest:
            asks = isinstance(message, UserMessage) or is_context(message)
            if (asks and not is_context(messages[index - 1])) or not exchanges:
                exchanges.append(())
            exchanges[-1] += (index,)
        index = end
    if batches and batches[-1][-1] == len(messages) - 1:
        batches.pop()  # the model has not read these results yet
    return batches + exchanges


def _shorten(messages: Sequence[Message], shortened: Mapping[int, int]) -> Sequence[Message]:
    """Return ``messages`` with the middle of the tool results in ``shortened`` left out."""
    if not shortened:
        return messages
    return [
        msgspec.structs.replace(message, content=clip_middle(message.content, shortened[index]))
        if index in shortened
        else message
        for index, message in enumerate(messages)
    ]


def _shortened_unread(
    whole: Sequence[Message], now: Sequence[Message], excess: int, least: int
) -> dict[int, int]:
    """Return the bytes to keep of the newest tool results, by index, so that ``excess`` tokens go.

    All that are longer than a common length are cut to it, ``least`` tokens if that is not 0. None
    are where a length that says something is not enough.
    """
    sizes: dict[int, int] = {}
    for index in reversed(range(len(now))):
        if not isinstance(now[index], ToolMessage):
            break
        sizes[index] = _message_tokens(now[index])
    room, left = sum(sizes.values()) - excess, len(sizes)
    for size in sorted(sizes.values()):
        if size * left > room:
            break
        room, left = room - size, left - 1
    length = max(room // left - _GAP_TOKENS if left else 0, least)
    if length < SHORTENED_TOKENS:
        return {}
    return {
        index: len(whole[index].content.encode("utf-8", "surrogatepass"))
        * length
        // _message_tokens(whole[index])
        for index, size in sizes.items()
        if size > length + _GAP_TOKENS + MESSAGE_OVERHEAD_TOKENS  # else the mark takes what was won
    }


def _fitted_before(messages: Sequence[Message], window: int | None, reserved_tokens: int) -> Fitted:
    """Return how the last request behind an answer in ``messages`` was fitted, as far as ``window`` tells."""
    fitted = Fitted((), 0, frozenset(), 0)
    if window is None:
        return fitted
    limit, total = window * LIMIT_FRACTION, reserved_tokens
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and total > limit:
            try:
                fitted = fit(
                    messages[:index],
                    window=window,
                    reserved_tokens=reserved_tokens,
                    left_out=fitted.left_out,
                    shortened=fitted.shortened,
                )
            except ContextOverflowError:  # of another window, or no answer but the end of a failed turn
                return fitted
            total = fitted.estimated_tokens
        total += _message_tokens(message)
    return fitted


def _view(messages: Sequence[Message], gone: set[int]) -> tuple[Message, ...]:
    """Return the messages that stay, with a note in the place of the first gap."""
    if not gone:
        return tuple(messages)
    note = SystemMessage(
        f"{len(gone)} earlier messages of this conversation were left out to fit the context window.",
        CONTEXT_NAME,
    )
    first_gap = min(gone)
    kept: list[Message] = []
    for index, message in enumerate(messages):
        if index == first_gap:
            kept.append(note)
        if index not in gone:
            kept.append(message)
    return tuple(kept)


def _message_tokens(message: Message) -> int:
    size = _text_size(message.content)
    if isinstance(message, AssistantMessage):
        size += _text_size(message.reasoning_content or "")
        size += sum(_text_size(call.name + call.arguments + call.id) for call in message.tool_calls)
    return int(size / CHARS_PER_TOKEN) + MESSAGE_OVERHEAD_TOKENS


def _text_size(text: str) -> float:
    """Return the characters of English that ``text`` is worth in tokens."""
    if text.isascii():
        return len(text)
    extra = len(text.encode("utf-8", "surrogatepass")) - len(text)
    return len(text) + extra * CHARS_PER_TOKEN / EXTRA_BYTES_PER_TOKEN
