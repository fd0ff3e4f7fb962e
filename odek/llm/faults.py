"""What went wrong with a request, in one line, and whether to try it again.

Providers report errors as a status with JSON of many shapes, as HTML of a proxy
between, or as an object inside a stream that began well. All become a `Fault`.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from odek.errors import ContextOverflowError, ModelError, ModelRejectedError, ModelUnavailableError
from odek.llm.lenient import decode_json
from odek.llm.retry import hinted_seconds, retry_after_seconds
from odek.text import clip_line, first_line, visible, without_surrogates

__all__ = ["Fault", "error_text", "fault_in_stream", "fault_of_page", "fault_of_status", "without_secret"]

_HINTED_BYTES = 16 * 1024  # of a body, looked through for the wait that it asks for; messages are shorter
_MESSAGE_WIDTH = 400  # a line or two on a terminal; providers put the point first

_OVERFLOW_CODES = {
    "context_length_exceeded",
    "context_window_exceeded",
    "context_exceeded",
    "exceed_context_size_error",
    "model_context_window_exceeded",
    "model_max_prompt_tokens_exceeded",
}
_OVERFLOW_TEXT = (
    r"context (length|window|size|limit)|prompt (is )?too long|input (is )?too long|maximum prompt length"
    r"|input token count .*(exceed|supports)|exceed\w* .{0,40}token limit|range of input length should be"
    r"|reduce the length of (the|your) (messages|prompt|input)|too many (input )?tokens|too large for model"
    r"|prompt exceeds (the )?max|(prompt|input) token\w* .{0,40}exceeds? |inputs\W+ tokens .*must be"
    r"|inputs\W+ must have less than|total tokens .*exceed|tokens in request more than"
)
_HASTE_TEXT = r"per (second|minute|hour|day)|rate.?limit|throttl"
_SPENT_CODES = {
    "insufficient_quota",
    "insufficient_balance",
    "billing_hard_limit_reached",
    "billing_not_active",
    "access_terminated",
}
_BUSY_WORDS = (
    r"overloaded|rate.?limit|too many requests|timeout|unavailable|server.?error|internal|try again|capacity"
)
_REFUSED_WORDS = r"invalid|not.?found|authentication|permission|unsupported|does not exist|not allowed"

_HINTS = {
    401: "; check the API key",
    402: "; check the account's balance",
    403: "; check what the API key may do",
    404: "; check the model's name and the base URL (most end in /v1)",
}


class Fault(msgspec.Struct, frozen=True):
    """Why a try failed. ``retriable``: the same request may succeed a little later."""

    message: str
    kind: Literal["unavailable", "rejected", "overflow"] = "unavailable"
    retriable: bool = True
    retry_after_seconds: float | None = None

    def as_error(self, partial: str = "") -> ModelError:
        """Return the exception that says this to the caller."""
        match self.kind:
            case "unavailable":
                return ModelUnavailableError(self.message, partial=partial)
            case "rejected":
                return ModelRejectedError(self.message, partial=partial)
            case "overflow":
                return ContextOverflowError(self.message, partial=partial)


def fault_of_status(status: int, headers: Mapping[str, str], body: bytes, *, host: str, now: float) -> Fault:
    """Return the fault that a response with an error status means."""
    text, codes = _described(body)
    message = f"{host} answered {status}: {text or _phrase(status)}"
    if status == 413 or (status not in (401, 403, 429) and _is_overflow(text, codes)):
        return Fault(message, "overflow", retriable=False)
    if status == 429 and codes & _SPENT_CODES:
        return Fault(f"{message}; check the account's quota", "rejected", retriable=False)
    retriable = status in (408, 409, 425, 429) or (status >= 500 and status != 501)
    match headers.get("x-should-retry"):
        case "true":
            retriable = True
        case "false":
            retriable = False
    if not retriable:
        kind: Literal["unavailable", "rejected"] = "unavailable" if status >= 500 else "rejected"
        return Fault(message + _HINTS.get(status, ""), kind, retriable=False)
    asked = retry_after_seconds(headers, now)
    return Fault(message, retry_after_seconds=_hinted(body) if asked is None else asked)


def fault_in_stream(error: bytes, *, host: str) -> Fault:
    """Return the fault that an error inside a response of status 200 means; ``error`` is its JSON.

    Its code may be a status; if nothing tells, it is taken for a passing one.
    """
    text, codes = _described(error)
    message = f"{host} broke off with an error: {text or 'no reason given'}"
    status = next((int(code) for code in codes if re.fullmatch(r"[45]\d\d", code)), None)
    if status != 429 and _is_overflow(text, codes):
        return Fault(message, "overflow", retriable=False)
    if codes & _SPENT_CODES:
        return Fault(message, "rejected", retriable=False)
    if status is not None:
        passing = status in (408, 409, 425, 429) or status >= 500
    else:
        words = " ".join((*sorted(codes), text))
        refused = re.search(_REFUSED_WORDS, words, re.IGNORECASE)
        passing = not refused or re.search(_BUSY_WORDS, words, re.IGNORECASE) is not None
    if not passing:
        return Fault(message, "rejected", retriable=False)
    return Fault(message, retry_after_seconds=_hinted(error))


def _hinted(body: bytes) -> float | None:
    """Return the wait that an error asks for in its body: several providers say it nowhere else."""
    return hinted_seconds(body[:_HINTED_BYTES].decode("utf-8", "replace"))


def fault_of_page(body: bytes, *, url: str) -> Fault:
    """Return the fault of a response of status 200 that is a page or other text."""
    text = error_text(body)
    return Fault(
        f"{url} answered with {_quoted(text)} and not with a completion; check the base URL",
        "rejected",
        retriable=False,
    )


def error_text(body: bytes) -> str:
    """Return the message of an error body in one clean line, or ""."""
    return _described(body)[0]


def without_secret(body: bytes, secret: str) -> bytes:
    """Return ``body`` without ``secret``, which some providers quote back."""
    if len(secret) < 4:  # no key but a placeholder, such as "x" for a local server
        return body
    return body.replace(secret.encode(), b"***")


def _described(body: bytes) -> tuple[str, set[str]]:
    """Return the message of an error body and the codes and types that it names."""
    text = body.decode("utf-8", "replace").strip().removeprefix("\ufeff")
    codes: set[str] = set()
    if text[:1] in ("{", "[", '"'):
        try:
            value = decode_json(text)
        except ValueError:
            text = first_line(text)
        else:  # in a shape that nobody has thought of, it speaks for itself
            text = _message(value, codes) or (text if value else "")
    elif re.match(r"\s*<[!?a-z]", text, re.IGNORECASE):
        text = _page_title(text)
    else:
        text = first_line(text)
    line = " ".join(text.split()).rstrip(".")
    return clip_line(visible(line[: _MESSAGE_WIDTH + 1]), _MESSAGE_WIDTH), codes


def _message(value: Any, codes: set[str]) -> str:
    """Find the message in any of the shapes of an error, outermost first."""
    match value:
        case str():
            return value
        case [first, *_]:
            return _message(first, codes)
        case dict():
            for key in ("code", "type", "status"):
                if isinstance(code := value.get(key), str | int):
                    codes.add(str(code).lower())
            for key in ("error", "message", "detail", "msg", "errors", "error_msg"):
                if value.get(key) and (found := _message(value[key], codes)):
                    return _with_cause(found, value)
    return ""


def _with_cause(message: str, error: dict[str, Any]) -> str:
    """Add what the message leaves out: the field that it is about, what the provider behind a router said."""
    place = error.get("loc")
    if isinstance(place, list) and place:
        message = f"{message.rstrip('.')} ({'.'.join(map(str, place))})"
    metadata = error.get("metadata")
    cause = metadata.get("raw") if isinstance(metadata, dict) else None
    if not isinstance(cause, str):
        return message
    return f"{message}: {_described(without_surrogates(cause).encode())[0]}"


def _is_overflow(text: str, codes: set[str]) -> bool:
    if codes & _OVERFLOW_CODES:
        return True
    too_long = re.search(_OVERFLOW_TEXT, text, re.IGNORECASE) is not None
    return too_long and re.search(_HASTE_TEXT, text, re.IGNORECASE) is None


def _page_title(page: str) -> str:
    from html import unescape

    found = re.search(r"<(title|h1)[^>]*>(?=\s*[^<\s])(.*?)</\1", page, re.IGNORECASE | re.DOTALL)
    return unescape(found[2] if found else first_line(re.sub(r"<[^>]*>", " ", page)))


def _quoted(text: str) -> str:
    return f'"{clip_line(text, 80)}"' if text else "something"


def _phrase(status: int) -> str:
    from http import HTTPStatus

    return HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "no reason given"
