"""What every section of the settings is made of."""

from typing import Any, Literal

import msgspec
from msgspec import Meta

__all__ = ["Facets", "ProjectRule", "Section", "address", "credential", "setting"]

ProjectRule = Literal["free", "refused", "lower", "switch_on", "default"]
"""What ``./odek.json`` may do with a key.

"lower": only to a tighter limit, where 0 is no limit. "default": only back to the default,
which is the strictest.
"""


class Facets(msgspec.Struct, frozen=True):
    """What there is to know of a key beside its type.

    ``env`` is a name beside the general ``ODEK_<SECTION>_<KEY>``, ``flag`` the option of
    ``odek run``. Values of an ``additive`` list add up over the layers. ``expected``
    stands in for the description of the type in an error. Blanks around what ``is_address``
    are no part of it.
    """

    project: ProjectRule = "free"
    additive: bool = False
    secret: bool = False
    env: str = ""
    flag: str = ""
    expected: str = ""
    is_address: bool = False


def setting(meaning: str, facets: Facets = Facets(), **bounds: Any) -> Meta:  # noqa: B008 - frozen
    """Return the annotation of a key: its meaning, its bounds, and its facets."""
    return Meta(description=meaning, extra={"facets": facets}, **bounds)


def address(meaning: str, example: str, **facets: Any) -> Meta:
    """Return the annotation of the address of a server; empty where there is none."""
    expected = f"an http or https URL such as {example}"
    known = Facets(expected=expected, is_address=True, **facets)
    return setting(meaning, known, pattern=r"^\s*(https?://[^\s/]\S*)?\s*$")


def credential(meaning: str, **facets: Any) -> Meta:
    """Return the annotation of a key that nobody is to see."""
    expected = "printable ASCII without spaces"
    return setting(meaning, Facets(secret=True, expected=expected, **facets), pattern=r"^[!-~]*$")


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of all sections: immutable, and a key that nobody knows is an error."""
