"""Answers from streams and bodies as servers really send them."""

from collections.abc import Iterable

import msgspec
import pytest

from odek.errors import ContextOverflowError
from odek.events import Usage
from odek.llm.answer import AnswerDecoder
from odek.llm.faults import fault_in_stream
from odek.llm.model import ModelEvent, ModelResponse, ReasoningText, TextPiece
from odek.llm.sse import EventTooLongError
from tests.support.model_server import DONE, call_delta, chunk, event, usage_chunk


def decoded(*pieces: bytes) -> tuple[AnswerDecoder, list[ModelEvent]]:
    """Feed the pieces, close, and return the decoder and what it reported."""
    decoder = AnswerDecoder()
    events: list[ModelEvent] = []
    for piece in pieces:
        events += decoder.feed(piece)
    events += decoder.close()
    return decoder, events


def answer(*pieces: bytes) -> ModelResponse:
    """Return the response that the pieces make; it must be whole."""
    decoder, events = decoded(*pieces)
    assert decoder.finished
    assert decoder.error is None
    response = decoder.response()
    assert _joined(events, TextPiece) == response.message.content
    assert _joined(events, ReasoningText) == (response.message.reasoning_content or "")
    return response


def _joined(events: Iterable[ModelEvent], kind: type[TextPiece] | type[ReasoningText]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


TEXT = (chunk({"role": "assistant", "content": ""}), chunk({"content": "Hel"}), chunk({"content": "lo"}))
STOP = chunk(finish_reason="stop")


@pytest.mark.parametrize(
    "ending",
    [
        (STOP, usage_chunk(), DONE),
        (STOP, usage_chunk()),
        (STOP, event({"usage": {"prompt_tokens": 7, "completion_tokens": 3}}), DONE),
        (chunk(finish_reason="stop", usage={"prompt_tokens": 7, "completion_tokens": 3}), DONE),
        (STOP, event({"choices": [], "x_groq": {"usage": {"prompt_tokens": 7, "completion_tokens": 3}}})),
        (usage_chunk(), chunk(finish_reason="stop", usage=None), DONE),
    ],
    ids=["usual", "no DONE", "usage without choices", "usage in the last", "groq", "usage first, then null"],
)
def test_a_text_answer_with_usage(ending: tuple[bytes, ...]) -> None:
    """Text and usage are found wherever the usage comes, with or without [DONE]."""
    response = answer(*TEXT, *ending)
    assert response.message.content == "Hello"
    assert response.finish_reason == "stop"
    assert response.usage == Usage(prompt_tokens=7, completion_tokens=3)


def test_done_without_a_finish_reason_is_an_end() -> None:
    """[DONE] says that the answer is whole even if no chunk did."""
    assert answer(*TEXT, DONE).message.content == "Hello"


def test_an_end_without_a_word_of_it_is_a_cut() -> None:
    """Neither finish reason nor [DONE]: the answer is not whole, what came is kept."""
    decoder, _ = decoded(*TEXT)
    assert decoder.started
    assert not decoder.finished
    assert decoder.text == "Hello"


@pytest.mark.parametrize("body", [b"", b"\n\n", b": keep-alive\n\n", DONE, chunk({"role": "assistant"})])
def test_nothing_is_no_answer(body: bytes) -> None:
    """An empty body, comments and a bare [DONE] have neither begun nor finished an answer."""
    decoder, events = decoded(body)
    assert not decoder.started
    assert not decoder.finished
    assert decoder.page is None
    assert events == []


def test_what_follows_done_is_not_read() -> None:
    """[DONE] ends the answer whatever the server sends on."""
    assert answer(*TEXT, STOP, DONE, chunk({"content": " again"})).message.content == "Hello"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("stop", "stop"),
        ("eos", "stop"),
        ("end_turn", "stop"),
        ("function_call", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("model_context_window_exceeded", "length"),
        ("content_filter", "content_filter"),
        ("SAFETY", "content_filter"),
        ("sensitive", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
    ],
)
def test_finish_reasons_of_many_providers(reason: str, expected: str) -> None:
    """Each spelling means one of the four; an unknown one is a proper end."""
    assert answer(*TEXT, chunk(finish_reason=reason)).finish_reason == expected


def test_tool_calls_decide_over_the_finish_reason() -> None:
    """A server that says ``stop`` after tool calls means tool calls, and the other way round."""
    call = chunk({"tool_calls": [call_delta(0, "shell", '{"command":"ls"}', "a")]})
    assert answer(call, STOP).finish_reason == "tool_calls"
    assert answer(*TEXT, chunk(finish_reason="tool_calls")).finish_reason == "stop"


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_call_cut_in_the_middle_is_dropped(reason: str) -> None:
    """The half call of a cut answer never reaches a tool, and the cut is told."""
    response = answer(
        *TEXT,
        chunk({"tool_calls": [call_delta(0, "shell", '{"command":"rm -rf build', "a")]}),
        chunk(finish_reason=reason),
    )
    assert response.message.tool_calls == ()
    assert response.finish_reason == reason


def test_the_old_function_call_is_a_tool_call() -> None:
    """``function_call`` deltas of older servers make one call."""
    response = answer(
        chunk({"function_call": {"name": "shell", "arguments": ""}}),
        chunk({"function_call": {"arguments": '{"command":"ls"}'}}),
        chunk(finish_reason="function_call"),
    )
    (call,) = response.message.tool_calls
    assert (call.name, call.arguments) == ("shell", '{"command":"ls"}')


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart(field: str) -> None:
    """Reasoning in either field is reported as such and stays out of the text."""
    response = answer(chunk({field: "hm, "}), chunk({field: "yes", "content": None}), *TEXT, STOP)
    assert response.message.reasoning_content == "hm, yes"
    assert response.message.content == "Hello"


def test_reasoning_in_both_fields_counts_once() -> None:
    """Routers that send both mean one text."""
    assert (
        answer(chunk({"reasoning_content": "hm", "reasoning": "hm"}), STOP).message.reasoning_content == "hm"
    )


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(
    ("text", "reasoning", "content"),
    [
        ("<think>hm, yes</think>Hello", "hm, yes", "Hello"),
        ("\n<think>\nhm\n</think>\n\nHello\n", "\nhm\n", "Hello\n"),
        ("<think>\n\n</think>\n\nHello", "\n\n", "Hello"),
        ("<think></think>Hello", None, "Hello"),
        ("<thinking>a < b </ c</thinking> Hello", "a < b </ c", "Hello"),
        ("[THINK]hm[/THINK]Hello", "hm", "Hello"),
        ("<think>one</think>Hello <think>two</think>", "one", "Hello <think>two</think>"),
        ("The tag <think>hm</think> is", None, "The tag <think>hm</think> is"),
        ("`<think>hm</think>` is", None, "`<think>hm</think>` is"),
        ("<thin", None, "<thin"),
        ("<thinner> air", None, "<thinner> air"),
        (" \n ", None, " \n "),
        ("  indented", None, "  indented"),
    ],
)
def test_tagged_reasoning_at_the_head_of_the_text_is_kept_apart(
    text: str, reasoning: str | None, content: str, size: int
) -> None:
    """However it is cut; tags anywhere else are what the answer says."""
    pieces = [chunk({"content": text[at : at + size]}) for at in range(0, len(text), size)]
    message = answer(*pieces, STOP).message
    assert message.reasoning_content == reasoning
    assert message.content == content


def test_reasoning_without_its_closing_tag_is_not_the_loss_of_an_answer() -> None:
    """A model that never closes the tag has its words shown; those of a cut answer stay reasoning."""
    pieces = (chunk({"content": "<think>so it "}), chunk({"content": "is 4</"}))
    assert answer(*pieces, STOP).message.content == "so it is 4</"
    cut = answer(*pieces, chunk(finish_reason="length")).message
    assert (cut.content, cut.reasoning_content) == ("", "so it is 4</")


def test_content_as_a_list_of_parts() -> None:
    """Text parts are text, thinking parts are reasoning, others are left out."""
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "Hel"},
        {"type": "image_url", "image_url": {"url": "x"}},
        "lo",
    ]
    message = answer(chunk({"content": parts}), STOP).message
    assert (message.content, message.reasoning_content) == ("Hello", "hm")


def test_a_refusal_is_shown() -> None:
    """The text of a refusal is the answer."""
    assert answer(chunk({"refusal": "I will not."}), STOP).message.content == "I will not."


def test_only_the_first_of_several_choices_counts() -> None:
    """Chunks that carry more than one choice, in any order."""
    two = [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "yes"}}]
    assert answer(event({"choices": two}), STOP).message.content == "yes"


@pytest.mark.parametrize(
    "noise",
    [
        b": comment\n\n",
        b"data: not json\n\n",
        b"data:\n\n",
        b"data: 7\n\n",
        b"data: [1]\n\n",
        b"event: ping\ndata: {}\n\n",
        b"id: 1\nretry: 10\n\n",
        event({"choices": None}),
        event({"choices": [None, 7, {"index": 0}, {"index": 0, "delta": None}]}),
        event({"choices": [{"delta": {"content": 7, "tool_calls": "x"}, "finish_reason": 7}]}),
    ],
)
def test_noise_between_chunks_does_no_harm(noise: bytes) -> None:
    """What is no chunk is passed over."""
    assert answer(TEXT[1], noise, TEXT[2], noise, STOP).message.content == "Hello"


def test_characters_split_over_escapes_and_bytes() -> None:
    """An emoji arrives whole: its bytes split over pieces, its escapes over deltas."""
    stream = chunk({"content": "grüße 👋"}) + STOP
    assert answer(*(stream[at : at + 1] for at in range(len(stream)))).message.content == "grüße 👋"
    halves = (
        rb'{"choices":[{"delta":{"content":"a\ud83d"}}]}',
        rb'{"choices":[{"delta":{"content":"\ude00b"}}]}',
    )
    assert answer(*(b"data: " + half + b"\n\n" for half in halves), STOP).message.content == "a😀b"


def test_damaged_text_is_replaced() -> None:
    """Lone surrogates and invalid UTF-8 become the replacement character."""
    lone = rb'data: {"choices":[{"delta":{"content":"a\ud83d"}}]}' + b"\n\n"
    assert answer(lone, STOP).message.content == "a�"
    invalid = b'data: {"choices":[{"delta":{"content":"a\xff"}}]}\n\n'
    assert answer(invalid, STOP).message.content == "a�"


@pytest.mark.parametrize("head", [b"", b"\xef\xbb\xbf", b"\r\n \n"])
def test_one_json_body_is_an_answer(head: bytes) -> None:
    """A server that ignores ``stream`` is understood."""
    call = {"id": "a", "function": {"name": "shell", "arguments": '{"command":"ls"}'}}
    message = {"role": "assistant", "content": "Hello", "tool_calls": [call]}
    body = {
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }
    encoded = head + msgspec.json.encode(body)
    response = answer(encoded[:20], encoded[20:])
    assert response.message.content == "Hello"
    assert [made.name for made in response.message.tool_calls] == ["shell"]
    assert response.usage == Usage(prompt_tokens=7, completion_tokens=3)


ERROR = {"message": "the engine is overloaded", "type": "server_error"}


@pytest.mark.parametrize(
    "body",
    [
        event({"error": ERROR}),
        b"event: error\ndata: " + msgspec.json.encode(ERROR) + b"\n\n",
        b"event: error\ndata: the engine is overloaded\n\n",
        msgspec.json.encode({"error": ERROR}),
        msgspec.json.encode([{"error": ERROR}]),
        msgspec.json.encode({"object": "error", "message": "the engine is overloaded"}),
        event({"error": ERROR, "choices": [{"delta": {"content": ""}, "finish_reason": "error"}]}),
    ],
)
def test_an_error_in_place_of_an_answer_is_found(body: bytes) -> None:
    """An error object in a stream or as the body, with status 200."""
    decoder, _ = decoded(body)
    assert decoder.error is not None
    assert b"overloaded" in decoder.error
    assert not decoder.finished


def test_an_error_after_text_leaves_the_text() -> None:
    """What had arrived stays, and the answer is not whole."""
    decoder, _ = decoded(*TEXT, event({"error": ERROR}), DONE)
    assert decoder.error is not None
    assert decoder.text == "Hello"
    assert not decoder.finished


@pytest.mark.parametrize("reason", ["insufficient_system_resource", "network_error", "ERROR"])
def test_a_provider_that_gives_up_has_not_finished(reason: str) -> None:
    """A finish reason that stands for a failure is an error."""
    decoder, _ = decoded(*TEXT, chunk(finish_reason=reason), DONE)
    assert decoder.error is not None
    assert not decoder.finished


def test_a_window_that_is_full_before_the_first_word_is_an_overflow() -> None:
    """A finish reason that says so without an answer is an error, so that less can be sent."""
    decoder, _ = decoded(chunk({"content": ""}), chunk(finish_reason="model_context_window_exceeded"), DONE)
    assert decoder.error is not None
    assert isinstance(fault_in_stream(decoder.error, host="h").as_error(), ContextOverflowError)


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html><title>Sign in</title>",
        b"  <html><body>hello",
        b"no healthy upstream",
        b'{"models": []}',
        b'{"half": ',
        b"[]",
    ],
)
def test_a_page_is_not_an_answer(body: bytes) -> None:
    """HTML, plain text and JSON of another kind are kept for the message."""
    decoder, events = decoded(body)
    assert decoder.page == body
    assert not decoder.finished
    assert events == []


def test_an_endless_line_is_given_up() -> None:
    """A line beyond the limit is an error and not memory."""
    decoder = AnswerDecoder()
    with pytest.raises(EventTooLongError):
        for _ in range(20):
            decoder.feed(b"data: " + b"x" * 1024 * 1024)


def test_usage_that_is_reported_often_is_not_summed() -> None:
    """Running totals replace each other, and a field that is missing later stays."""
    response = answer(
        usage_chunk(7, 1, prompt_tokens_details={"cached_tokens": 5}), *TEXT, STOP, usage_chunk(7, 3)
    )
    assert response.usage == Usage(prompt_tokens=7, completion_tokens=3, cached_tokens=5)


def test_deep_nesting_is_passed_over() -> None:
    """JSON nested beyond all sense ends neither the process nor the answer."""
    deep = b'data: {"choices":' + b"[" * 100_000 + b"\n\n"
    assert answer(deep, *TEXT, STOP).message.content == "Hello"
