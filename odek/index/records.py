"""What tantivy keeps of a document: the fields, and a record for each unit. Pure."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from odek.index.document import Document, Kind, digest_of, key_of, version_of
from odek.index.tokens import analyse, pairs_of
from odek.index.units import KINDS, Part, Unit, pack, parts_of, units_of

if TYPE_CHECKING:
    import tantivy

__all__ = ["FORMAT", "Stored", "key_text", "new_schema", "records_of"]

FORMAT = 2
"""Of the fields below."""


class Stored(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a unit to be shown."""

    id: str
    kind: Kind
    digest: str
    created_at: int
    text: str


def new_schema() -> "tantivy.Schema":
    """Return the fields of a record."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("key", tokenizer_name="raw", index_option="basic")
    for name in ("words", "grams", "pairs"):
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("traits", tokenizer_name="whitespace", index_option="basic")
    builder.add_unsigned_field("document", fast=True, indexed=True)
    for name in ("bits", "project"):
        builder.add_unsigned_field(name, fast=True)
    builder.add_bytes_field("stored", stored=True)
    return builder.build()


def _traits(document: Document, *, is_head: bool) -> list[str]:
    return [
        f"t{document.trusted:d}",
        f"k{KINDS.index(document.kind)}",
        f"p{key_of(document.project):x}",
        f"f{key_of(document.facet):x}",
        *(["h"] if is_head else []),
    ]


def key_text(name: str) -> str:
    """Return the term under which all records of a document's id are."""
    return f"{key_of(name):016x}"


def records_of(document: Document) -> Iterator["tantivy.Document"]:
    """Return what is written of a document: one record for each unit, and one of them the head."""
    units = units_of(document)
    parts = sum(1 << part for part in parts_of(document))
    digest = digest_of(document)
    head = next((at for at, unit in enumerate(units) if unit.part is not Part.WHOLE), 0)
    for at, unit in enumerate(units):
        yield _record(document, unit, parts, digest, is_head=at == head)


def _record(document: Document, unit: Unit, parts: int, digest: str, *, is_head: bool) -> "tantivy.Document":
    import tantivy

    text = "" if unit.part is Part.WHOLE else unit.text  # its passages are shown in its stead
    stored = Stored(document.id, document.kind, digest, document.created_at, text)
    terms = analyse(unit.text)
    record = tantivy.Document()
    record.add_text("key", key_text(document.id))
    record.add_text("words", " ".join(terms.words))
    record.add_text("grams", " ".join(terms.grams))
    record.add_text("pairs", " ".join(pairs_of(terms)))
    record.add_text("traits", " ".join(_traits(document, is_head=is_head)))
    record.add_unsigned("document", version_of(digest))
    record.add_unsigned("bits", pack(document, unit.part, parts))
    record.add_unsigned("project", key_of(document.project))
    record.add_bytes("stored", msgspec.msgpack.encode(stored))
    return record
