"""Which atoms belong together: said one after the other in a session, or alike."""

from collections.abc import Mapping, Sequence

import msgspec

from odek.memory.extended.atom import Atom

__all__ = ["linked", "linked_with"]


def linked(atoms: Sequence[Atom], alike: Mapping[str, Sequence[str]], before: str) -> list[Atom]:
    """Return new atoms with their links.

    Args:
        atoms: In the order in which they were said.
        alike: Id of one → ids of those most like it.
        before: Id of the one that was last said in the session, or "": a session is about one task.
    """
    found: list[Atom] = []
    for atom in atoms:
        names = dict.fromkeys([*atom.related, before, *alike.get(atom.id, [])])
        related = tuple(name for name in names if name not in {"", atom.id})
        found.append(msgspec.structs.replace(atom, related=related))
        before = atom.id
    return found


def linked_with(atom: Atom, atoms: Sequence[Atom]) -> list[Atom]:
    """Return those of ``atoms`` that ``atom`` is linked with, whichever of the two was there first."""
    return [other for other in atoms if other.id in atom.related or atom.id in other.related]
