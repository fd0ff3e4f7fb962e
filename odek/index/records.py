"""What tantivy keeps of a document: the fields, and a record for each unit. Pure."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from odek.index.document import Document, Kind, key_of, version_of
from odek.index.tokens import index_terms
from odek.index.units import Part, Unit, pack, parts_of, scope_of, units_of

if TYPE_CHECKING:
    import tantivy

__all__ = ["FORMAT", "HEAD", "LENGTH_TERM", "LENGTH_TERMS", "Stored", "key_text", "new_schema", "records_of"]

FORMAT = 4
"""Of the fields below."""

HEAD: Final = "h"
"""The trait of the first unit of a document that can be shown."""

LENGTH_TERM: Final = "."
"""Every unit has it, and no text does."""

LENGTH_TERMS = 100
"""So many terms each text counts longer than it is: among short texts, length says less than tantivy takes
it to say. A note of 15 words has about 90 terms, pairs and n-grams included. Measured against 0 to 300."""


class Stored(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a unit to be shown."""

    id: str
    kind: Kind
    created_at: int
    text: str
    state: str


def new_schema() -> "tantivy.Schema":
    """Return the fields of a record."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("key", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("traits", tokenizer_name="whitespace", index_option="basic")
    builder.add_unsigned_field("document", fast=True, indexed=True)
    for name in ("bits", "project"):
        builder.add_unsigned_field(name, fast=True)
    builder.add_bytes_field("stored", stored=True)
    return builder.build()


def key_text(name: str) -> str:
    """Return the term under which all records of a document's id are."""
    return f"{key_of(name):016x}"


def records_of(document: Document) -> Iterator["tantivy.Document"]:
    """Return what is written of a document: one record for each unit, and one of them the head."""
    units = units_of(document)
    parts = parts_of(unit.part for unit in units)
    version = version_of(document)
    head = next(at for at, unit in enumerate(units) if unit.part is not Part.WHOLE)
    for at, unit in enumerate(units):
        # In the stead of the whole its head is shown.
        shown = units[head].text if unit.part is Part.WHOLE else unit.text
        record = _record(document, unit, shown, is_head=at == head)
        record.add_unsigned("document", version)
        record.add_unsigned("bits", pack(document, unit.part, parts))
        yield record


def _record(document: Document, unit: Unit, shown: str, *, is_head: bool) -> "tantivy.Document":
    import tantivy

    scope = scope_of(document)
    terms = [*index_terms(unit.text), *[LENGTH_TERM] * LENGTH_TERMS]
    traits = [f"p{key_of(document.project):x}", f"f{key_of(document.facet):x}", *([HEAD] if is_head else [])]
    stored = Stored(document.id, document.kind, document.created_at, shown, document.state)
    record = tantivy.Document()
    record.add_text("key", key_text(document.id))
    record.add_text("terms", scope + f" {scope}".join(terms))
    record.add_text("traits", " ".join(traits))
    record.add_unsigned("project", key_of(document.project))
    record.add_bytes("stored", msgspec.msgpack.encode(stored))
    return record
