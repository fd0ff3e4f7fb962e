"""What is indexed, what may be asked for, and what is found. Values alone."""

from typing import Literal, TypeAlias

import msgspec

from odek.text import without_surrogates

__all__ = ["ANY", "Document", "Filter", "Hit", "Kind", "cleaned", "key_of", "version_of"]

Kind: TypeAlias = Literal["episode", "atom", "session"]


class Document(msgspec.Struct, frozen=True, omit_defaults=True):
    """A text that can be found under its ``id``, which is unique among all kinds.

    ``transcript`` is what an episode's session said in its own words; a match there
    finds the episode. ``facet`` is a finer kind that a filter may bar, such as an atom's
    type. ``created_at`` is in seconds since 1970 and decides between equals. ``state`` is what
    the owner of the text calls its present state; it comes back with a hit.
    """

    id: str
    kind: Kind
    text: str
    transcript: str = ""
    project: str = ""
    facet: str = ""
    trusted: bool = True
    created_at: int = 0
    state: str = ""


class Filter(msgspec.Struct, frozen=True):
    """Which documents may be found. It holds inside the search: what it bars takes nobody's place.

    No ``kinds`` means all of them. With a ``project``, documents of another are barred: all of
    them, or with ``excluded_elsewhere`` only those of its facets. So ``Filter(project="/a",
    excluded_elsewhere=("file",))`` finds what is of ``/a``, and of the others all but files.
    """

    kinds: tuple[Kind, ...] = ()
    trusted_only: bool = False
    project: str | None = None
    excluded_elsewhere: tuple[str, ...] | None = None

    def admits(self, document: Document) -> bool:
        """Tell whether ``document`` may be found."""
        return (
            (not self.kinds or document.kind in self.kinds)
            and (document.trusted or not self.trusted_only)
            and (self.project in {None, document.project} or self.admits_elsewhere(document.facet))
        )

    def admits_elsewhere(self, facet: str) -> bool:
        """Tell whether a document of another project than ``project`` may be found."""
        return self.excluded_elsewhere is not None and facet not in self.excluded_elsewhere


ANY = Filter()


class Hit(msgspec.Struct, frozen=True):
    """A document that was found.

    ``score`` orders the hits of one query; ``relevance`` compares between queries and is
    what a floor is set on. ``passage`` is the part of the document that matches best, and
    ``state`` the one that the document was indexed in.
    """

    id: str
    kind: Kind
    score: float
    relevance: float
    passage: str
    created_at: int = 0
    state: str = ""


def key_of(name: str) -> int:
    """Return 64 bits that stand for a name wherever the index keeps a number."""
    return _hashed(name.encode("utf-8", "surrogatepass"))


def version_of(document: Document) -> int:
    """Return 64 bits that stand for a document as it is: they change with any part of it."""
    return _hashed(msgspec.msgpack.encode(document))


def _hashed(data: bytes) -> int:
    import hashlib

    return int.from_bytes(hashlib.blake2b(data, digest_size=8, person=b"odek-index").digest(), "little")


def cleaned(document: Document) -> Document:
    """Return ``document`` as the index takes it: whole characters and whole numbers alone."""
    return msgspec.structs.replace(
        document,
        id=without_surrogates(document.id),
        text=without_surrogates(document.text),
        transcript=without_surrogates(document.transcript),
        project=without_surrogates(document.project),
        facet=without_surrogates(document.facet),
        state=without_surrogates(document.state),
        created_at=int(document.created_at),
    )
