"""Tool calls put together from the deltas of a stream.

The rule is: a delta belongs to the call with its id, else to the newest call with its
index, else to the newest call. Servers break each part of it: one index for all calls,
no index, an id only once, never, twice, or a fresh one in every delta, a name in pieces
or repeated whole. A delta that names a tool although the call it would belong to is
already complete begins a new call.
"""

import os
import re
from collections.abc import Collection
from typing import Any

from odek.llm.arguments import is_json_object, normalise_arguments
from odek.llm.lenient import encode_json, joined
from odek.messages import FunctionCall, ToolCall
from odek.patterns import late_pattern

__all__ = ["ToolCallAssembler"]

_ID_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_ID_LENGTH = 9  # the strictest provider wants exactly nine letters and digits; the others take them
_NAME_LENGTH = 64  # what providers accept when the call is sent back to them


# A backslash with what it escapes, or at the end of a piece without it.
_TOKEN = late_pattern(r"\\.?|[\"{}]", re.DOTALL)


_WRAPPING = late_pattern(r"^(functions?|tools?|default_api)[.:/]|(:\d+)?(<\|.*)?$", re.DOTALL)


class _OpenCall:
    def __init__(self, call_id: str, index: int | None) -> None:
        self.id = call_id
        self.index = index
        self.name = ""
        self.is_announced = False
        self._pieces: list[str] = []
        # Where in the JSON the pieces end. Some servers repeat the name in every delta, and to
        # decode all that has come for each of them takes seconds for a long file.
        self._depth = 0
        self._in_string = False
        self._in_escape = False

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def arguments(self) -> str:
        """Return the arguments; some servers send all of them so far in every delta, or again in the last."""
        text = self.text
        if is_json_object(text):
            return text
        *earlier, last = [piece for piece in self._pieces if piece.strip()] or [""]
        repeats = last.startswith("".join(earlier)) or all(map(last.startswith, earlier))
        return last if repeats and is_json_object(last) else text

    def add(self, piece: str) -> None:
        """Take the next piece of the arguments."""
        self._pieces.append(piece)
        if not piece:
            return
        mark = ""
        for match in _TOKEN.finditer(piece, int(self._in_escape)):
            mark = match[0]
            if mark == '"':
                self._in_string = not self._in_string
            elif not self._in_string:
                self._depth += {"{": 1, "}": -1}.get(mark, 0)
        self._in_escape = mark == "\\"

    def is_complete(self) -> bool:
        """Whether nothing can be added to the arguments any more."""
        return not self._depth and not self._in_string and is_json_object(self.text)


class ToolCallAssembler:
    """Sans-IO: ``feed`` deltas, then ``close``.

    ``taken_ids`` are the ids of calls in the conversation so far, which no new call may
    bear; ``tool_names`` are the tools on offer, which tell a split name from two calls.
    """

    def __init__(self, taken_ids: Collection[str] = (), tool_names: Collection[str] = ()) -> None:
        self._taken_ids = set(taken_ids)
        self._tool_names = frozenset(tool_names)
        self._calls: list[_OpenCall] = []

    @property
    def started(self) -> bool:
        """Whether any call has begun."""
        return bool(self._calls)

    def feed(self, deltas: Any, *, whole: bool = False) -> None:
        """Take a ``tool_calls`` list of one chunk; ``whole`` says that each element is a whole call.

        What is no list, and elements that are no calls, are ignored.
        """
        for position, delta in enumerate(deltas if isinstance(deltas, list) else ()):
            if isinstance(delta, dict):
                self._feed_one(delta, apart=whole or position > 0)

    def newly_named(self) -> list[str]:
        """Return the tools on offer whose calls have begun since this was asked last."""
        calls = [call for call in self._calls if not call.is_announced and call.name in self._tool_names]
        for call in calls:
            call.is_announced = True
        return [call.name for call in calls]

    def _feed_one(self, delta: dict[str, Any], *, apart: bool) -> None:
        """Take one delta; ``apart`` says that a name in it can only begin a call."""
        function = delta.get("function")
        function = function if isinstance(function, dict) else delta
        name = _text(function.get("name"))
        call_id = _text(delta.get("id"))
        index = delta.get("index")
        index = index if isinstance(index, int) else None
        arguments = _as_json(function.get("arguments"))
        call = self._continued(call_id, index, name)
        if call is None or (apart and name) or self._begins_anew(call, call_id, name, arguments):
            call = _OpenCall(call_id, index)
            self._calls.append(call)
        call.id = call.id or call_id
        call.name = self._joined_name(call.name, name)
        call.add(arguments)

    def close(self, *, cut: bool = False) -> tuple[ToolCall, ...]:
        """Return the calls in the order in which they began, each with an id of its own.

        ``cut`` says that the answer ended early: a call that may lack a part is left out.
        """
        calls = self._calls
        if cut:
            calls = [
                call
                for call in calls
                if call.is_complete() or (not call.text.strip() and call is not calls[-1])
            ]
        return tuple(self._finished(call) for call in calls)

    def _finished(self, call: _OpenCall) -> ToolCall:
        function = FunctionCall(self._own_name(call.name), normalise_arguments(call.arguments()))
        return ToolCall(self._own_id(call.id), function)

    def _continued(self, call_id: str, index: int | None, name: str) -> _OpenCall | None:
        """Return the call that such a delta belongs to by the rule, or None."""
        if not self._calls:
            return None
        if call_id:
            for call in reversed(self._calls):
                if call.id == call_id and (index is None or call.index in (None, index)):
                    return call
        if index is not None:
            for call in reversed(self._calls):
                if call.index == index:
                    return call
        begins = index is not None and (call_id or name)
        return None if begins else self._calls[-1]

    def _begins_anew(self, call: _OpenCall, call_id: str, name: str, arguments: str) -> bool:
        """Whether a delta that ``_continued`` gave to ``call`` is in truth a call of its own."""
        same_id = bool(call_id) and call_id == call.id
        if call_id and call.id and not same_id:
            # Without a name it is a server that makes a new id for every delta.
            return bool(name) or call.is_complete()
        if not name or not call.name:
            return False
        if call.is_complete():
            repeated = same_id and name == call.name and arguments.strip() in ("", call.text.strip())
            return not repeated
        both_known = name in self._tool_names and call.name in self._tool_names
        return both_known and name != call.name and call.name + name not in self._tool_names

    def _joined_name(self, name: str, piece: str) -> str:
        if piece.startswith(name) and name + piece not in self._tool_names:
            return piece  # the first piece, the whole name again, or the name so far
        return name + piece

    def _own_name(self, name: str) -> str:
        """Return the tool that ``name`` names, bare of what a model's template puts around it."""
        bare = _WRAPPING.sub("", name.strip())
        known = next((tool for tool in self._tool_names if tool.lower() == bare.lower()), None)
        return known or _clean_name(name)

    def _own_id(self, call_id: str) -> str:
        while not call_id or call_id in self._taken_ids:
            call_id = "".join(_ID_ALPHABET[byte % len(_ID_ALPHABET)] for byte in os.urandom(_ID_LENGTH))
        self._taken_ids.add(call_id)
        return call_id


def _as_json(arguments: Any) -> str:
    """Return arguments as the text of JSON; most servers send text, some the object itself."""
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return encode_json(arguments)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return joined(value)
    return "" if value is None or isinstance(value, bool) else str(value)


def _clean_name(name: str) -> str:
    """Return ``name`` as providers accept it in a history; such a tool may well not exist."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name.strip())[:_NAME_LENGTH] or "unnamed"
