"""``secrets.env``: lines of ``NAME=VALUE`` that feed the environment."""

import re
from collections.abc import Iterator

from odek.errors import ConfigError
from odek.patterns import late_pattern

__all__ = ["parse_secrets"]

_LINE = late_pattern(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)", re.DOTALL)
_DOUBLE_QUOTED = late_pattern(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?', re.DOTALL)
_SINGLE_QUOTED = late_pattern(r"'([^']*)'\s*(?:#.*)?", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


def parse_secrets(text: str, name: str) -> dict[str, str]:
    r"""Return the variables of ``text``; the last of equal names counts, as in a shell.

    Blank lines, comments, a leading ``export`` and quotes are understood. In double
    quotes ``\n``, ``\t``, ``\"`` and ``\\`` are escapes. A ``$`` is only a ``$``.

    Raises:
        ConfigError: names file and line, and never shows any of its text.
    """
    found: dict[str, str] = {}
    problems: list[str] = []
    for number, line in _lines(text):
        match = _LINE.fullmatch(line)
        if match is None:
            problems.append(f"{name}: line {number}: expected NAME=VALUE")
            continue
        value = _value(match[2])
        if value is None:
            problems.append(f"{name}: line {number}: the quotes around the value do not match")
        elif "\0" in value:
            problems.append(f"{name}: line {number}: the value holds a NUL byte")
        else:
            found[match[1]] = value
    if problems:
        raise ConfigError("\n".join(problems[:5]))
    return found


def _lines(text: str) -> Iterator[tuple[int, str]]:
    # Not splitlines(): a secret may hold one of the rarer line separators of Unicode.
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            yield number, stripped


def _value(text: str) -> str | None:
    """Return the value without its quotes and comment, or None if the quotes do not match."""
    stripped = text.strip()
    if stripped.startswith('"'):
        match = _DOUBLE_QUOTED.fullmatch(stripped)
        return match and re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), match[1], flags=re.DOTALL)
    if stripped.startswith("'"):
        match = _SINGLE_QUOTED.fullmatch(stripped)
        return match and match[1]
    return re.split(r"\s#", text, maxsplit=1)[0].strip()
