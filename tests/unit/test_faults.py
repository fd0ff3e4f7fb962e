"""Errors of providers: one clear line, the right kind, and whether to try again."""

import msgspec
import pytest

from odek.errors import ContextOverflowError, ModelRejectedError, ModelUnavailableError
from odek.llm.faults import Fault, error_text, fault_in_stream, fault_of_page, fault_of_status, without_secret


def status_fault(status: int, body: bytes | dict[str, object] = b"", **headers: str) -> Fault:
    """Return the fault of a status with a body and headers."""
    encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return fault_of_status(status, named, encoded, host="api.example.com", now=1_000_000_000)


def error(message: str, code: str | int | None = None, kind: str | None = None) -> dict[str, object]:
    """Return an error body in the usual shape."""
    return {"error": {"message": message, "code": code, "type": kind}}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error": {"message": "No such model.", "code": 404}}', "No such model"),
        (b'{"error": "No such model"}', "No such model"),
        (b'{"message": "No such model"}', "No such model"),
        (b'{"object": "error", "message": "No such model", "code": 40401}', "No such model"),
        (b'{"detail": "No such model"}', "No such model"),
        (b'{"detail": [{"loc": ["body", "model"], "msg": "No such model."}]}', "No such model (body.model)"),
        (b'[{"error": {"message": "No such model"}}]', "No such model"),
        (b'{"errors": [{"message": "No such model"}]}', "No such model"),
        (
            b'{"error": {"message": "Provider error", "metadata": {"raw": "{\\"error\\": \\"No model\\"}"}}}',
            "Provider error: No model",
        ),
        (b'{"error": {"message": "x", "metadata": {"raw": "No \\ud800"}}}', "x: No ?"),
        (b'{"fault": {"text": "No such model"}}', '{"fault": {"text": "No such model"}}'),
        (b'[{"reason":\n7}]', '[{"reason": 7}]'),
        (b"<html><title> </title><body>No such model</body></html>", "No such model"),
        (b"\n  No such model\nand more", "No such model"),
        (b"<html><head><title>502 Bad\n Gateway</title></head><body>x</body></html>", "502 Bad Gateway"),
        (b"<!-- x --><h1 class='y'>Not &amp; found</h1>", "Not & found"),
        (b"<html><body><p>No such model</p></body></html>", "No such model"),
        (b'{"error": {"message": "No\\nsuch\\u001b[2J model"}}', r"No such\x1b[2J model"),
        (b'{"half', '{"half'),
        (b"\xff\xfe", "��"),
        (b"{}", ""),
        (b"", ""),
    ],
)
def test_the_message_of_an_error_body(body: bytes, text: str) -> None:
    """JSON of any shape, text and HTML become one clean line."""
    assert error_text(body) == text


def test_a_long_message_is_clipped() -> None:
    """A page of an error stays a line or two."""
    assert len(error_text(b"x" * 100_000)) <= 400


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 529])
def test_passing_faults_are_tried_again(status: int) -> None:
    """Busy and broken servers may be well a little later."""
    fault = status_fault(status, error("busy"))
    assert fault.retriable
    assert isinstance(fault.as_error(), ModelUnavailableError)
    assert str(fault.as_error()) == f"api.example.com answered {status}: busy"


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 422])
def test_refusals_are_final(status: int) -> None:
    """What the provider refuses it refuses again."""
    fault = status_fault(status, error("no"))
    assert not fault.retriable
    assert isinstance(fault.as_error(), ModelRejectedError)


@pytest.mark.parametrize(
    "status", [302, 400, 401, 402, 403, 404, 409, 413, 422, 429, 451, 500, 501, 503, 599]
)
def test_every_status_comes_with_the_words_of_the_endpoint(status: int) -> None:
    """Clipped, on one line, and with nothing that a terminal obeys."""
    fault = status_fault(status, error("No: \x1b[2J\nsent " + "much " * 200))
    shown = f"api.example.com answered {status}: No: \\x1b[2J sent much much "
    assert fault.message.startswith(shown)
    assert len(fault.message) < 500


def test_an_empty_error_names_the_status() -> None:
    """Without a body the status speaks in words."""
    assert "503: Service Unavailable" in status_fault(503).message
    assert "599: no reason given" in status_fault(599).message


def test_hints_say_what_to_do() -> None:
    """The usual refusals come with what to check."""
    assert status_fault(401).message.endswith("check the API key")
    assert status_fault(404).message.endswith("check the model's name and the base URL (most end in /v1)")


def test_a_spent_quota_is_not_waited_for() -> None:
    """429 for want of money is final, 429 for haste is not."""
    spent = status_fault(429, error("You exceeded your current quota", "insufficient_quota"))
    assert isinstance(spent.as_error(), ModelRejectedError)
    assert not spent.retriable
    assert status_fault(429, error("Rate limit reached", "rate_limit_exceeded")).retriable


@pytest.mark.parametrize(
    "body",
    [
        error("too long", "context_length_exceeded"),
        error("the request exceeds the available context size", 400, "exceed_context_size_error"),
        error("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"),
        error("prompt is too long: 210000 tokens > 200000 maximum"),
        error("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        error("This model's maximum prompt length is 131072 but the request contains 140000 tokens"),
        error("Your request exceeded model token limit: 8192"),
        error("Input is too long for requested model."),
        error("the input exceeds the context window of this model"),
        error("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        error("Prompt exceeds max length", "1261"),
        error("prompt token count of 200000 exceeds the limit of 128000", "model_max_prompt_tokens_exceeded"),
        error("prompt tokens (1200008) exceed model maximum (1050000)", "validation_error"),
        error("the input token count is 32825 but model only supports up to 32768."),
        error("`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 `inputs` tokens"),
        error("Input validation error: `inputs` must have less than 4096 tokens. Given: 5000"),
        error("Total tokens of image and text exceed max message tokens"),
        error("tokens in request more than max tokens allowed"),
        {"detail": "Please reduce the length of the messages or completion."},
    ],
)
@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_an_overflow_is_recognised(status: int, body: dict[str, object]) -> None:
    """The providers' many ways to say that the request is too long."""
    fault = status_fault(status, body)
    assert isinstance(fault.as_error(), ContextOverflowError)
    assert not fault.retriable


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
        "Invalid value for 'messages[3].content': string too long",
        "Unsupported parameter: 'max_tokens'",
        "tool_calls must be followed by tool messages",
        "Too many tokens per day, please wait before trying again.",
        "This request exceeds the limit of 30000 input tokens per minute",
        "ThrottlingException: Too many tokens, please wait",
    ],
)
def test_other_refusals_are_no_overflow(message: str) -> None:
    """Trimming the conversation would not help these."""
    assert not isinstance(status_fault(400, error(message)).as_error(), ContextOverflowError)


def test_haste_is_no_overflow() -> None:
    """A limit of tokens a minute passes by itself."""
    assert status_fault(429, error("Too many tokens per minute")).retriable


def test_the_provider_may_decide_about_retries() -> None:
    """``x-should-retry`` wins over the status."""
    assert not status_fault(500, x_should_retry="false").retriable
    assert status_fault(400, x_should_retry="true").retriable


def test_retry_after_is_read() -> None:
    """The wait that the provider asks for travels with the fault."""
    assert status_fault(429, retry_after="7").retry_after_seconds == 7
    hint = error("Rate limit reached. " + "x " * 400 + "Please try again in 20s.")
    assert status_fault(429, hint).retry_after_seconds == 20
    assert status_fault(429, hint, retry_after="7").retry_after_seconds == 7
    assert fault_in_stream(msgspec.json.encode(hint), host="h").retry_after_seconds == 20


@pytest.mark.parametrize(
    ("body", "retriable"),
    [
        (error("overloaded", 503), True),
        (error("overloaded", "503"), True),
        (error("The engine is overloaded", None, "overloaded_error"), True),
        (error("Rate limit reached", "rate_limit_exceeded"), True),
        (error("something odd"), True),
        ({"error": "something odd"}, True),
        (error("no such model", 404), False),
        (error("bad tool schema", None, "invalid_request_error"), False),
        (error("out of money", "insufficient_quota"), False),
        (error("prompt is too long"), False),
    ],
)
def test_errors_inside_a_stream(body: dict[str, object], *, retriable: bool) -> None:
    """The code decides, else the words; what tells nothing is taken for passing."""
    fault = fault_in_stream(msgspec.json.encode(body), host="api.example.com")
    assert fault.retriable is retriable


def test_a_page_names_the_address() -> None:
    """A web page at the base URL says so, and is not asked twice."""
    fault = fault_of_page(b"<title>Sign in</title>", url="http://example.com/chat/completions")
    assert '"Sign in"' in fault.message
    assert "check the base URL" in fault.message
    assert not fault.retriable


def test_the_key_is_masked() -> None:
    """A key that a provider quotes back goes no further; a placeholder is no key."""
    assert without_secret(b"wrong key sk-12345 here", "sk-12345") == b"wrong key *** here"
    assert without_secret(b"x marks the spot", "x") == b"x marks the spot"
