"""The reference pages that are made from the code: commands, tools, events.

``python -m odek.cli.reference cli|tools|events`` writes one to standard output;
``make docs`` writes them all, and a test holds them to the code.
"""

import argparse
import inspect
import json
import re
import sys
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence

from odek.cli.main import COMMANDS, DESCRIPTION, EPILOG, build_parser

__all__ = ["PAGES", "cli_page", "events_page", "subparsers", "tools_page"]

GENERATED = "<!-- Made from the code by `make docs`; change the code instead. -->"

CLI_INTRODUCTION = """\
What `--help` says, on one page. A value in parentheses is the default."""

TOOLS_INTRODUCTION = """\
What the model can do, in the words that it is given. `--tool` and `--no-tool` choose among them. A
call ends after {seconds:g} s where nothing else is said."""

EFFECTS_INTRODUCTION = """\
Before a call runs, its tool declares what it would do. Approval, provenance and the fence around
outside content follow from this declaration alone: see [trust](../explanation/trust.md)."""

EVENTS_INTRODUCTION = """\
`odek run --json` prints each event as one line of JSON, its kind in `type`. Fields at their default
may be left out. What waits for a slow reader is merged: pieces of text join, and a newer state of a
call replaces an older one. `turn_finished` ends the turn, with the whole answer; what is remembered
of the session may be reported behind it."""

_SubParsers = argparse._SubParsersAction  # noqa: SLF001 - argparse has no public name for it


def cli_page() -> str:
    """Return the reference of all commands."""
    parts = ["# Commands", GENERATED, DESCRIPTION, CLI_INTRODUCTION]
    for name in COMMANDS:
        parser = subparsers(build_parser(name))[name]
        parts += _command(f"odek {name}", parser, level=2)
    parts += ["## Environment and exit status", _fenced(EPILOG)]
    return _page(parts)


def tools_page() -> str:
    """Return the reference of all tools, as the model sees them, and of what a call declares."""
    import odek.app  # noqa: F401 - loads every tool
    from odek.tools.tool import Tool, argument_schema
    from odek.trust.effects import Effects

    ours = (
        tool
        for tool in Tool.__subclasses__()
        if tool.__module__.startswith("odek.") and tool.__module__ != "odek.tools.memory_atoms"  # a variant
    )
    parts = ["# Tools", GENERATED, TOOLS_INTRODUCTION.format(seconds=Tool.timeout_seconds)]
    for tool in sorted(ours, key=lambda tool: tool.name):
        parts += [f"## `{tool.name}`", _text(tool.description)]
        rows = _argument_rows(argument_schema(tool.arguments_type))
        parts.append(_table(("argument", "type", "default", "meaning"), rows))
        if tool.timeout_seconds is None:
            parts.append("What the call does has a time limit of its own.")
        elif tool.timeout_seconds != Tool.timeout_seconds:
            parts.append(f"A call ends after {tool.timeout_seconds:g} s.")
        if tool.exclusive:
            parts.append("A call never runs beside another one.")
    meanings = _attributes(inspect.getdoc(Effects) or "")
    effects = [
        (f"`{field}`", _type_name(hint), _text(meanings[field]))
        for field, hint in typing.get_type_hints(Effects).items()
    ]
    parts += ["## What a call declares", EFFECTS_INTRODUCTION, _table(("effect", "type", "meaning"), effects)]
    return _page(parts)


def events_page() -> str:
    """Return the reference of the events that ``--json`` prints, and of the values in them."""
    from odek import events

    kinds = typing.get_args(events.Event)
    parts = ["# Events", GENERATED, EVENTS_INTRODUCTION]
    for kind in kinds:
        parts += [f"## `{kind.__struct_config__.tag}`", *_struct(kind)]
    values = dict.fromkeys(value for kind in kinds for value in _structs_in(kind))
    for value in values:
        parts += [f"## {value.__name__}", *_struct(value)]
    return _page(parts)


PAGES = {"cli": cli_page, "tools": tools_page, "events": events_page}


def subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the commands inside a parser, by name."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to list them
        if isinstance(action, _SubParsers):
            found |= action.choices
    return found


def _command(title: str, parser: argparse.ArgumentParser, *, level: int) -> Iterator[str]:
    """Yield the section of a command, and those of the commands inside it."""
    yield f"{'#' * level} `{title}`"
    if parser.description:
        summary = parser.description.removeprefix(f"{title}: ")
        yield _text(summary[:1].upper() + summary[1:])
    rows = [
        (_spelling(action), _text(action.help or ""))
        for action in parser._actions  # noqa: SLF001 - argparse has no public way to list them
        if action.help is not argparse.SUPPRESS
        and not isinstance(action, _SubParsers)
        and "--help" not in action.option_strings
    ]
    if rows:
        yield _table(("argument", "meaning"), rows)
    if parser.epilog:
        yield _fenced(parser.epilog)
    for name, child in subparsers(parser).items():
        yield from _command(f"{title} {name}", child, level=level + 1)


def _spelling(action: argparse.Action) -> str:
    """Return how an argument is written on the command line."""
    choices = "|".join(map(str, action.choices)) if action.choices else ""
    value = str(action.metavar or choices or action.dest.upper())
    if not action.option_strings:
        return f"`{value}`"
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    return names if action.nargs == 0 else f"{names} `{value}`"


def _argument_rows(schema: Mapping[str, typing.Any], prefix: str = "") -> Iterator[tuple[str, ...]]:
    """Yield a row for each argument, and for each field of the objects in a list."""
    for name, field in schema["properties"].items():
        required = name in schema.get("required", ())
        default = "required" if required else f"`{json.dumps(field.get('default'))}`"
        yield f"`{prefix}{name}`", _schema_type(field), default, _text(field.get("description", ""))
        items = field.get("items", {})
        if "properties" in items:
            yield from _argument_rows(items, f"{prefix}{name}[].")


def _schema_type(field: Mapping[str, typing.Any]) -> str:
    if "enum" in field:
        return " | ".join(f"`{value}`" for value in field["enum"] if value is not None)
    if "anyOf" in field:
        return " | ".join(_schema_type(option) for option in field["anyOf"] if option.get("type") != "null")
    if field.get("type") == "array":
        items = field.get("items", {})
        return "list of objects" if "properties" in items else f"list of {_schema_type(items)}"
    return str(field.get("type", "any"))


def _struct(kind: type) -> Iterator[str]:
    """Yield what a Struct means, and the table of its fields."""
    yield _text(inspect.getdoc(kind) or "")
    rows = [(f"`{field}`", _type_name(hint)) for field, hint in typing.get_type_hints(kind).items()]
    yield _table(("field", "type"), rows)


def _structs_in(hint: object) -> Iterator[type]:
    """Yield the Structs that the fields of a Struct, or the parts of a type, are made of."""
    import msgspec

    inner = typing.get_args(hint)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        inner = tuple(typing.get_type_hints(hint).values())
    for part in inner:
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            yield part
        yield from _structs_in(part)


def _type_name(hint: object) -> str:
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(f"`{value}`" for value in typing.get_args(hint))
    text = hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
    return f"`{re.sub(r'[a-z_]+[.](?=[a-zA-Z_])', '', text)}`"


def _attributes(docstring: str) -> dict[str, str]:
    """Return the meaning of each entry of a docstring's ``Attributes`` section."""
    _, _, section = docstring.partition("Attributes:\n")
    entries = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", section, re.MULTILINE)
    return {name: " ".join(meaning.split()) for name, meaning in entries}


def _text(text: str) -> str:
    """Return plain text as Markdown: what it would take for marks is escaped, outside of backticks."""
    pieces = re.split(r"(`[^`\n]+`)", text.replace("``", "`").replace("%%", "%"))
    return "".join(
        piece if piece.startswith("`") else re.sub(r"([*<\[])", r"\\\1", piece) for piece in pieces
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _fenced(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def _page(parts: Sequence[str]) -> str:
    return "\n\n".join(parts) + "\n"


def main(argv: Sequence[str]) -> None:
    """Write the page named on the command line."""
    sys.stdout.write(PAGES[argv[0]]())


if __name__ == "__main__":
    main(sys.argv[1:])
