"""What a person should know of how an answer ended, beside its text. Pure."""

from collections.abc import Collection

from odek.llm.model import ModelResponse
from odek.patterns import late_pattern

__all__ = ["notice_of"]

# How models write calls; a server that knows the model's template takes them out of the text.
_WRITTEN_CALL = late_pattern(
    r"""(?xm) ^\s*
    (?: <\|?tool_calls?\b | <function[=_\s] | <invoke\b | \[TOOL_CALLS?\] | <\|python_tag\|>
      | <\uff5ctool\u2581calls?\u2581begin\uff5c>
      | (?:```(?:json)?\s*)? \{ \s* "(?:name|function|tool)" \s* : )
    (?P<call>(?s:.){0,200})"""
)


def notice_of(response: ModelResponse, tool_names: Collection[str]) -> str:
    """Return one line about an answer that is cut, or holds a call as text; "" for any other."""
    match response.finish_reason:
        case "length":
            return "the answer was cut at the model's length limit"
        case "content_filter":
            return "the provider's content filter cut the answer"
        case _ if _writes_call(response.message.content, tool_names):
            return (
                "the answer holds a tool call as text, which was not run: the server does not tell this "
                "model's calls from text (llama.cpp needs --jinja, vLLM --enable-auto-tool-choice and "
                "--tool-call-parser)"
            )
        case _:
            return ""


def _writes_call(text: str, tool_names: Collection[str]) -> bool:
    return any(name in match["call"] for match in _WRITTEN_CALL.finditer(text) for name in tool_names)
