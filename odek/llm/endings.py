"""What a person should know of how an answer ended, beside its text. Pure."""

from collections.abc import Collection

from odek.llm.model import ModelResponse
from odek.patterns import late_pattern

__all__ = ["notice_of"]

# How models write calls; a server that knows the model's template takes them out of the text.
_WRITTEN_CALL = late_pattern(
    r"""(?xm) ^[^\S\n]*
    (?: <\|?tool_calls?\b | <function[=_\s] | <invoke\b | \[TOOL_CALLS?\] | <\|python_tag\|>
      | <\uff5ctool\u2581calls?\u2581begin\uff5c>
      | (?:```(?:json)?\s*)? \{ \s* "(?:name|function|tool)" \s* : )
    (?P<call>(?s:.){0,200})"""
)


SMALLEST_WINDOW_TOKENS = 512
"""A smaller count is not that of a window but of a server that leaves out what it had cached."""

NOTICED_SHARE = 0.5
"""Read of a request at most: estimates are rarely twice too high, and Ollama halves what is too long."""


def notice_of(response: ModelResponse, tool_names: Collection[str], sent_tokens: int) -> str:
    """Return one line about an answer that is cut, to half a question, or a call as text; "" for any other.

    ``sent_tokens`` is the estimate of its request.
    """
    read_tokens = response.usage.prompt_tokens or 0
    match response.finish_reason:
        case "length":
            return "the answer was cut at the model's length limit"
        case "content_filter":
            return "the provider's content filter cut the answer"
        case _ if SMALLEST_WINDOW_TOKENS <= read_tokens < sent_tokens * NOTICED_SHARE:
            return (
                f"the server read {read_tokens:,} tokens of about {sent_tokens:,}: its window is less than "
                "the request; enlarge it (Ollama: OLLAMA_CONTEXT_LENGTH), or set llm.context_window to it"
            )
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
