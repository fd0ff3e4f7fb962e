"""Arithmetic of the shell, which runs code: a variable's text is an expression, and so on in turn.

``echo $((x))`` with ``x='a[$(id)]'`` runs ``id``. What is evaluated must therefore be text
that stands in the command, and numbers.
"""

import re
from collections.abc import Callable

from odek.trust.paths import UNRESOLVED
from odek.trust.shell.scope import Scope
from odek.trust.shell.values import Value

__all__ = ["may_run_code", "names_in"]

_NAME = re.compile(r"(?<![\w#])([A-Za-z_]\w*|(?<=\$)\d+|(?<=\$\{)\d+)")
# Names are followed through so many others; no measurement behind this.
_DEPTH_LIMIT = 9


def names_in(expression: str) -> list[str]:
    """Return the variables that an expression uses."""
    return list(dict.fromkeys(_NAME.findall(expression)))


def may_run_code(value: Value, scope: Scope, takes: Callable[[int], bool]) -> bool:
    """Whether evaluating ``value`` as an expression may run what data, or pieces put together, say.

    ``takes`` is told how much text is looked at, and says whether that is not too much.
    """
    waiting, seen = [value], set[str]()
    for _ in range(_DEPTH_LIMIT):
        names: dict[str, None] = {}
        for each in waiting:
            if each.foreign or each.hidden or not takes(each.size):
                return True
            for text in each.texts:
                if "$" in text or "`" in text or ("[" in text and UNRESOLVED in text):
                    return True
                names |= dict.fromkeys(names_in(text) if not text.isdigit() else ())
        new = [name for name in names if name not in seen and scope.is_set(name)]
        if not new:
            return False
        seen.update(new)
        waiting = [scope.value(name) for name in new]
    return True
