"""JSON for people: comments and trailing commas are allowed, everything else is strict.

Comments become white space of the same shape, so that lines and columns in an error
are those of the file.
"""

import re
from collections.abc import Iterable
from typing import Any

from odek.errors import ConfigError
from odek.patterns import late_pattern

__all__ = ["parse_object"]

# A string that is not closed runs to the end of its line; the JSON parser then names the place.
_COMMENTS = late_pattern(r'("(?:[^"\\\n]|\\.)*"?)|//[^\n]*|/\*(?:.*?)(\*/|\Z)', re.DOTALL)
_TRAILING_COMMAS = late_pattern(r'("(?:[^"\\\n]|\\.)*"?)|,(?=\s*[}\]])')


def parse_object(text: str, name: str) -> dict[str, Any]:
    """Return the one object that ``text`` holds.

    Raises:
        ConfigError: not JSON, not an object, or a key given twice; ``name`` is the file.
    """
    import json  # only a run that has a configuration file pays for it

    if not (plain := _strict(text, name)).strip():
        raise ConfigError(f"{name}: the file is empty; expected a JSON object, at least {{}}")
    try:
        value = json.loads(plain, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:]
        raise ConfigError(f"{name}: line {error.lineno}, column {error.colno}: {reason}") from None
    except RecursionError:
        raise ConfigError(f"{name}: nested too deeply to be a configuration") from None
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{name}: expected a JSON object, such as {{}}")
    return value


def _strict(text: str, name: str) -> str:
    """Blank out comments and trailing commas; strings stay as they are."""

    def blank(match: re.Match[str]) -> str:
        if match[1] is not None:
            return match[1]
        if match[0].startswith("/*") and not match[2]:
            line = text.count("\n", 0, match.start()) + 1
            raise ConfigError(f"{name}: line {line}: the comment that begins here has no end")
        return re.sub(r"[^\n]", " ", match[0])

    without_comments = _COMMENTS.sub(blank, text)
    return _TRAILING_COMMAS.sub(lambda match: match[1] if match[1] is not None else " ", without_comments)


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f'"{key}" is given twice in one object; remove one of them')
        found[key] = value
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
