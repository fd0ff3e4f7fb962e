"""The seam between the loop and a tool.

A call has two steps. ``prepare`` checks the arguments and works out, without any
effect, what the call would do: its effects, a line for the status, and the whole
change for the approval. ``PreparedCall.run`` then does exactly that. What was shown
is thereby what is done; a target that changed in between is an error, not a surprise.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, ClassVar, Generic, Literal, TypeVar

import msgspec

from odek.errors import ToolError
from odek.events import Usage
from odek.llm.arguments import malformed_arguments
from odek.llm.model import ToolSpec
from odek.tools.arguments import decode_arguments
from odek.trust.effects import Effects

__all__ = ["ApprovedBy", "CallScope", "PreparedCall", "Tool", "ToolOutput", "argument_schema"]

A = TypeVar("A", bound=msgspec.Struct)


def _unaccounted(_usage: Usage) -> None:
    """Outside of a turn there is no budget."""


def _unread(_content: str) -> None:
    """Outside of a batch nobody reads what a cancelled call leaves."""


ApprovedBy = Literal["person", "policy", "session_trust"]


class CallScope(msgspec.Struct, frozen=True):
    """What a running call may use.

    ``on_line`` reports a line of live output; it never blocks. ``spend`` adds what others
    used on the turn's behalf to its budget and its session. ``approved_by`` says who let
    the call run. ``leave`` takes what there is of the content when the call is cancelled.
    """

    call_id: str
    on_line: Callable[[str], None]
    spend: Callable[[Usage], None] = _unaccounted
    approved_by: ApprovedBy = "policy"
    leave: Callable[[str], None] = _unread


class ToolOutput(msgspec.Struct, frozen=True):
    """The result of a call.

    ``content`` is what the model reads. ``is_error`` marks a result that is a failure
    in the model's terms, such as a command's exit status. ``changed`` names what the
    call changed, for the ledger and the person. ``diff`` is shown to the person only.
    """

    content: str
    is_error: bool = False
    changed: tuple[str, ...] = ()
    diff: str = ""


class PreparedCall(msgspec.Struct, frozen=True):
    """A checked call, ready to be approved and run.

    ``summary`` says what is done, without the tool's name; it is masked and cut to a line before
    it is shown. ``preview`` is what an approval shows in whole: the command, or a unified diff
    of the change. ``place`` says where it runs if not simply here.
    """

    summary: str
    effects: Effects
    run: Callable[[CallScope], Awaitable[ToolOutput]]
    preview: str = ""
    place: str = ""


class Tool(ABC, Generic[A]):
    """A tool: its schema is the Struct of its arguments.

    Subclasses set ``name``, ``description`` and ``arguments_type``; field descriptions
    come from ``msgspec.Meta``. ``timeout_seconds`` bounds a whole run, None leaves it to
    the tool. ``exclusive`` tools never run beside another call of the same batch.
    ``json_texts`` are the fields that hold the text of a file; see ``decode_arguments``.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    arguments_type: type[A]
    timeout_seconds: ClassVar[float | None] = 120.0
    exclusive: ClassVar[bool] = False
    json_texts: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    async def prepare(self, arguments: A) -> PreparedCall:
        """Work out what the call would do, without doing it.

        Raises:
            ToolError: the arguments make no sense; the text goes to the model.
        """

    def expect(self) -> None:
        """Get ready for a call that the model has begun to write, without waiting; it may never come."""

    def spec(self) -> ToolSpec:
        """Return the tool as the model sees it."""
        return ToolSpec(self.name, self.description, argument_schema(self.arguments_type))

    async def prepare_json(self, arguments: str) -> PreparedCall:
        """Decode ``arguments`` (JSON text) and prepare the call.

        Raises:
            ToolError: not the JSON that the schema describes; says which field and why.
        """
        written = malformed_arguments(arguments)
        schema = argument_schema(self.arguments_type)
        try:
            decoded = decode_arguments(
                written or arguments or "{}", self.arguments_type, schema, json_texts=self.json_texts
            )
        except msgspec.ValidationError as error:
            raise ToolError(f"{self.name}: {_sentence(str(error), schema)}") from None
        except msgspec.DecodeError as error:
            raise ToolError(f"{self.name}: the arguments are not valid JSON: {error}") from None
        except RecursionError:
            raise ToolError(f"{self.name}: the arguments are nested too deeply") from None
        if written is not None:
            raise ToolError(f"{self.name}: the arguments are not one JSON object")
        return await self.prepare(decoded)


@cache
def argument_schema(arguments_type: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of ``arguments_type`` as one object, references resolved.

    Everyone is given the same object; it is only for reading.
    """
    (schema,), definitions = msgspec.json.schema_components([arguments_type], ref_template="{name}")
    resolved: dict[str, Any] = _resolve(schema, definitions)
    resolved.pop("title", None)
    resolved.setdefault("required", [])
    return resolved


def _resolve(node: Any, definitions: dict[str, Any]) -> Any:
    """Inline every reference; argument types are trees, so this ends."""
    if isinstance(node, dict):
        if "$ref" in node:
            target = _resolve(definitions[node["$ref"]], definitions)
            return {**target, **{key: value for key, value in node.items() if key != "$ref"}}
        return {key: _resolve(value, definitions) for key, value in node.items()}
    if isinstance(node, list):
        return [_resolve(value, definitions) for value in node]
    return node


def _sentence(message: str, schema: dict[str, Any]) -> str:
    """Turn a validation message into words: ``expected `int`, got `str`, in `limit` ``."""
    text, _, path = message.partition(" - at `$.")
    text = text[:1].lower() + text[1:]
    if path:
        return f"{text}, in `{path}"
    unknown = "unknown field" in text and schema.get("properties")
    return f"{text}; the fields are: {', '.join(schema['properties'])}" if unknown else text
