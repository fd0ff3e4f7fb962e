"""What the index does not have of the texts as they are: each kind is compared with the catalogue. Blocks."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from odek.index.document import Kind
from odek.memory.catalogue import Catalogue
from odek.memory.index_texts import Look, Texts, document_id, subject_of

__all__ = ["Comparison", "Difference", "marks_beside"]


class Difference(NamedTuple):
    """A document that is to be indexed, by its id, with its new version; None for one that is gone."""

    texts: Texts
    id: str
    version: str | None


class Comparison:
    """Compares texts with a catalogue. Every method may raise StoreError: the texts cannot be listed."""

    def __init__(self, texts: Sequence[Texts], catalogue: Catalogue) -> None:
        self._texts = texts
        self._catalogue = catalogue

    def differences(
        self, kinds: Collection[Kind], only: Collection[str] | None, look: Look
    ) -> tuple[list[Difference], dict[str, str]]:
        """Return what differs, and by kind the marks for when nothing does.

        With ``only`` these documents alone are looked at, and there are no marks.
        """
        found: list[Difference] = []
        marks: dict[str, str] = {}
        for texts in self._texts:
            if texts.kind not in kinds:
                continue
            # Before the versions: what changes in between has another.
            mark = texts.mark(look) if only is None else ""
            if self.is_marked(texts.kind, mark):
                continue
            prefix, known = document_id(texts.kind, ""), self._catalogue.read()
            subjects: Collection[str] | None
            if only is None:
                subjects = texts.changed_since(self._catalogue.marks().get(texts.kind, ""), look)
            else:
                subjects = [subject_of(name) for name in only if name.startswith(prefix)]
            if subjects is None:
                mine = {name: version for name, version in known.items() if name.startswith(prefix)}
            else:
                asked = [document_id(texts.kind, subject) for subject in subjects]
                mine = {name: known[name] for name in asked if name in known}
            wanted = texts.versions(mine, look, subjects)
            if mark and wanted.final:
                marks[texts.kind] = mark
            found += [Difference(texts, name, None) for name in mine if name not in wanted.by_id]
            found += [
                Difference(texts, name, version)
                for name, version in wanted.by_id.items()
                if mine.get(name) != version
            ]
        return found, marks

    def without_done(self, left: Iterable[Difference]) -> list[Difference]:
        """Return those of ``left`` that somebody else has not indexed meanwhile."""
        known = self._catalogue.read()
        return [each for each in left if known.get(each.id) != each.version]

    def is_marked(self, kind: Kind, mark: str) -> bool:
        """Tell whether the index was found equal to texts of this mark, or of one that begins with it."""
        marked = self._catalogue.marks().get(kind, "")
        return bool(mark) and (marked == mark or marked.startswith(f"{mark}/"))


def marks_beside(left: Iterable[Difference], marks: Mapping[str, str]) -> dict[str, str]:
    """Return those of ``marks`` whose kinds have nothing ``left``."""
    kinds = {each.texts.kind for each in left}
    return {kind: mark for kind, mark in marks.items() if kind not in kinds}
