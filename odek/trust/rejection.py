"""Why a text is not remembered."""

import msgspec

__all__ = ["Rejection"]


class Rejection(msgspec.Struct, frozen=True):
    """The rule that a text breaks, where in it (in characters, from 0), and the reason in words."""

    rule: str
    position: int
    reason: str

    def __str__(self) -> str:
        return f"{self.reason} (rule {self.rule}, at character {self.position + 1})"
