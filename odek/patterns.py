"""Regular expressions that are compiled by their first use: most runs never come to most of them."""

import re
from typing import Any, AnyStr, cast
from weakref import WeakSet

__all__ = ["compile_patterns", "late_pattern"]


class _LatePattern:
    """Has the attributes of a compiled pattern, each looked up once."""

    def __init__(self, source: str | bytes, flags: re.RegexFlag) -> None:
        self._source = source
        self._flags = flags
        _made.add(self)

    def __getattr__(self, name: str) -> Any:  # called for what is not there yet
        value = getattr(re.compile(self._source, self._flags), name)  # which remembers what it has compiled
        setattr(self, name, value)
        return value


def late_pattern(source: AnyStr, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[AnyStr]:
    """Return ``source`` as a pattern, for use by its methods: to the functions of ``re`` it is none.

    What is wrong with it is an error of its first use.
    """
    return cast("re.Pattern[AnyStr]", _LatePattern(source, flags))


def compile_patterns() -> None:
    """Compile all that there are so far: for the processes forked from this one."""
    for pattern in list(_made):
        for method in ("finditer", "fullmatch", "match", "search", "split", "sub"):
            getattr(pattern, method)


_made: WeakSet[_LatePattern] = WeakSet()
