"""Settings that contradict each other unless they are in order, whichever layers they come from."""

from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import msgspec

from odek.config.settings import Config
from odek.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odek.config.layers import Origin

__all__ = ["ORDERED", "Ordered", "check_order"]


class Ordered(msgspec.Struct, frozen=True):
    """The value at the path ``low`` must not be above that at ``high``, nor the same if it is ``strict``.

    ``why`` says what would be wrong otherwise. A value of None is in order with everything.
    """

    low: str
    high: str
    why: str
    strict: bool = False


ORDERED: Final = (
    Ordered(
        "memory.add_threshold",
        "memory.merge_threshold",
        "a fact would be new and the same as another at once",
    ),
    Ordered(
        "llm.max_tokens",
        "llm.context_window",
        "an answer that fills the window leaves no room for a question",
        strict=True,
    ),
)


def check_order(config: Config, origins: "Mapping[str, Origin]") -> None:
    """Do nothing if the settings are in order.

    Raises:
        ConfigError: a line for each pair that is not, with both keys, their values and where they are set.
    """

    def shown(path: str, value: Any) -> str:
        origin = origins.get(path)
        return f"{path} ({value:g}, {origin.name if origin else 'default'})"

    problems: list[str] = []
    for pair in ORDERED:
        low, high = _value(config, pair.low), _value(config, pair.high)
        if _in_order(low, high, strict=pair.strict):
            continue
        relation = "must be below" if pair.strict else "must not be above"
        problems.append(f"{shown(pair.low, low)} {relation} {shown(pair.high, high)}: {pair.why}")
    if problems:
        raise ConfigError("\n".join(problems))


def _value(config: Config, path: str) -> Any:
    return reduce(getattr, path.split("."), config)


def _in_order(low: float | None, high: float | None, *, strict: bool) -> bool:
    return low is None or high is None or low < high or (low == high and not strict)
