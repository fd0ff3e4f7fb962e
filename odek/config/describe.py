"""The configuration described: as a JSON schema, a reference page, and commented templates.

``python -m odek.config.describe`` writes the reference page to standard output.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from odek.config.keys import Key, bare, describe_type, section_types, sections, table
from odek.config.layers import API_KEY_VARIABLES
from odek.config.settings import REFUSED_IN_PROJECTS, UNUSED, Config

__all__ = ["reference", "schema", "template"]

_TEMPLATE_WIDTH = 88  # columns of a comment, as wide as most editors show

_PROJECT_RULES = {
    "free": "yes",
    "refused": "no",
    "lower": "only a tighter limit",
    "switch_on": "only to switch it on",
    "default": "only its default",
}


def schema() -> dict[str, Any]:
    """Return the JSON schema of both files, for editors; unused keys are marked as deprecated."""
    whole: dict[str, Any] = msgspec.json.schema(Config)
    definitions = whole["$defs"]
    definitions["Config"]["properties"]["$schema"] = {"type": "string"}
    for path in sorted(UNUSED):
        section, _, name = path.rpartition(".")
        owner = definitions[section_types()[section].__name__]
        owner["properties"][name] = {"description": "Not used by this version.", "deprecated": True}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "odek", **whole}


def template(*, project: bool) -> str:
    """Return a configuration file in which every key is explained, commented out, at its default.

    A line becomes effective by removing its ``//``. The file is valid as it is.
    """
    which = "this project" if project else "you, in every project"
    lines = [
        "{",
        f"  // Configuration of odek for {which}. Remove the // before a key to set it.",
        "  // Comments and trailing commas are allowed; ${NAME} in a text is an environment variable.",
    ]
    if not project:
        lines.append("  // Keys of an endpoint belong into secrets.env beside this file: ODEK_API_KEY=…")
    keys = [
        key
        for key in table().values()
        if not key.facets.secret and not (project and key.facets.project == "refused")
    ]
    text = "\n".join([*lines, *_template_section("", keys), "}", ""])
    return text.replace("{\n\n", "{\n")


def _template_section(section: str, keys: list[Key]) -> Iterator[str]:
    """Yield the lines of one section and of those inside it; a section without keys is left out."""
    indent = "  " * (section.count(".") + (2 if section else 1))
    for key in keys:
        owner, _, name = key.path.rpartition(".")
        if owner == section:
            yield from _commented(key, name, indent)
    for path, meaning in sections().items():
        owner, _, name = path.rpartition(".")
        if owner == section and any(key.path.startswith(f"{path}.") for key in keys):
            yield from ("", f"{indent}// {meaning}", f'{indent}"{name}": {{')
            yield from _template_section(path, keys)
            yield f"{indent}}},"


def reference() -> str:
    """Return the reference page in Markdown."""
    parts = [_INTRODUCTION, _key_table("", "Top level", "")]
    parts += [_key_table(path, f"`{path}`", meaning) for path, meaning in sections().items()]
    parts.append(_price_table())
    refused = ", ".join(f"`{name}`" for name in _refused_in_projects())
    unused = ", ".join(f"`{name}`" for name in sorted(UNUSED))
    parts.append(
        _CLOSING.format(
            refused=refused, unused=unused, keys=" → ".join(f"`{name}`" for name in API_KEY_VARIABLES)
        )
    )
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _commented(key: Key, name: str, indent: str) -> list[str]:
    import textwrap

    expected = describe_type(key.annotation)
    text = key.meaning if expected == "text" else f"{key.meaning} Expects {expected}."
    wrapped = textwrap.wrap(text, _TEMPLATE_WIDTH, break_long_words=False, break_on_hyphens=False)
    default = json.dumps(msgspec.to_builtins(key.default), ensure_ascii=False)
    return ["", *(f"{indent}// {line}" for line in wrapped), f'{indent}// "{name}": {default},']


def _key_table(section: str, title: str, meaning: str) -> str:
    keys = [key for key in table().values() if key.path.rpartition(".")[0] == section]
    rows = [_row(key) for key in keys]
    head = [f"## {title}", "", *([meaning, ""] if meaning else [])]
    return "\n".join([*head, _line(*_HEAD), _line(*["---"] * len(_HEAD)), *rows])


_HEAD = ("Key", "Expects", "Default", "Meaning", "Variable", "Flag", "In `./odek.json`")


def _row(key: Key) -> str:
    default = json.dumps(msgspec.to_builtins(key.default), ensure_ascii=False)
    return _line(
        f"`{key.path}`",
        describe_type(key.annotation),
        f"`{default}`",
        key.meaning,
        f"`{key.variable}`" if key.variable else "",
        f"`{key.facets.flag}`" if key.facets.flag else "",
        _PROJECT_RULES[key.facets.project],
    )


def _price_table() -> str:
    value_type = bare(table()["prices"].annotation).__args__[1]
    rows = [
        _line(
            f"`prices.<model>.{field.name}`",
            describe_type(field.type),
            "required" if field.required else f"`{json.dumps(field.default)}`",
            field.type.__metadata__[0].description,
        )
        for field in msgspec.structs.fields(value_type)
    ]
    head = ["## `prices.<model>`", "", value_type.__doc__.strip(), ""]
    return "\n".join([*head, _line("Key", "Expects", "Default", "Meaning"), _line(*["---"] * 4), *rows])


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _refused_in_projects() -> Iterator[str]:
    known = {key.path for key in table().values() if key.facets.project == "refused"}
    covered = {path for path in known if path.partition(".")[0] in REFUSED_IN_PROJECTS}
    yield from sorted((known - covered) | REFUSED_IN_PROJECTS)


_INTRODUCTION = """\
# Configuration

<!-- Generated by `python -m odek.config.describe`; change odek/config instead. -->

Every key has a default. Each of these layers overrides the ones before it:

1. the defaults below
2. `~/.odek/config.json`
3. `./odek.json`, within the limits of the last column
4. environment variables
5. flags

`odek config show` prints every value and the layer it came from; `odek init` writes a
commented file to start from; `odek config schema` prints a JSON schema for editors.
`ODEK_HOME` moves `~/.odek`.

Both files are JSON in which comments and trailing commas are allowed. `${NAME}` inside a
text stands for an environment variable, which must be set; any other `$` stays as it is.
An unknown key, a wrong type or a value out of range is an error that names the file and
the key, and ends the command with status 3.
"""

_CLOSING = """\
## Environment variables

A variable sets one key; one that is empty counts as not set. True is `1`, `true`, `yes`
or `on`, false is `0`, `false`, `no` or `off`, a list is separated by commas, and `null`
is written as `null`. Beside the names above, every key also listens to its general name:
`ODEK_`, then the path in capitals, with `_` for the dot.

The key of the endpoint is the first of these that is set: {keys}.
`api_key` in `~/.odek/config.json` comes after `ODEK_API_KEY` and before the other two.
With the key of `OPENAI_API_KEY` goes `OPENAI_BASE_URL`, unless `base_url` is set.
Tools and subagents inherit the environment without these variables, without any variable
that one of the keys refers to, and without any whose text holds one of them.

## `secrets.env`

`~/.odek/secrets.env` holds `NAME=VALUE` lines that are added to the environment first;
a variable that is set already keeps its value. Comments, a leading `export` and quotes
are understood, and a `$` is only a `$`. What this file brings is never handed on to tools
and subagents. Keep it at `chmod 600`; a notice says when others can read it.

## `./odek.json`

This file comes with whatever repository is checked out, so it is trusted less. Tools can
be disabled by it, but not enabled; budgets can be tightened, but not widened; the sandbox
can be switched on and made stricter, but neither off nor wider. A `${{NAME}}` in it that
may hold a secret is an error.
These are ignored in it, with a warning that names each:

{refused}

## Keys of earlier installations

These are accepted and not used by this version, which a notice says:

{unused}
"""

if __name__ == "__main__":
    sys.stdout.write(reference())
