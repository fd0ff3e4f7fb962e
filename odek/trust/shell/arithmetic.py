"""Arithmetic of the shell, which runs code: a variable's text is an expression, and so on in turn.

``echo $((x))`` with ``x='a[$(id)]'`` runs ``id``. What is evaluated must therefore be text
that stands in the command, and numbers.
"""

import re

from odek.trust.paths import UNRESOLVED
from odek.trust.shell.scope import Scope
from odek.trust.shell.values import Value

__all__ = ["may_run_code", "names_in"]

_NAME = re.compile(r"(?<![\w#])([A-Za-z_]\w*|(?<=\$)\d+|(?<=\$\{)\d+)")
# Names are followed through so many others; no measurement behind this.
_DEPTH_LIMIT = 8


def names_in(expression: str) -> list[str]:
    """Return the variables that an expression uses."""
    return list(dict.fromkeys(_NAME.findall(expression)))


def may_run_code(value: Value, scope: Scope, depth: int = 0) -> bool:
    """Whether evaluating ``value`` as an expression may run what data, or pieces put together, say."""
    if value.foreign or value.hidden or depth > _DEPTH_LIMIT:
        return True
    for text in value.texts:
        if "$" in text or "`" in text or ("[" in text and UNRESOLVED in text):
            return True
        names = names_in(text) if not text.isdigit() else []
        if any(scope.is_set(name) and may_run_code(scope.value(name), scope, depth + 1) for name in names):
            return True
    return False
