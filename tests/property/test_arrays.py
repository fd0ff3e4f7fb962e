"""Rows on disk against a dict, through any sequence of writes, crashes and damage."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.storage.array_format import HEADER_BYTES, record_type
from odek.storage.arrays import RowFile

DIMS = 3
RECORD_BYTES = record_type(DIMS).itemsize

keys = st.integers(0, 4) | st.sampled_from([2**63, 2**64 - 1])
numbers = st.integers(-1000, 1000)
steps = st.one_of(
    st.tuples(
        st.just("append"),
        st.lists(st.tuples(keys, numbers), min_size=1, max_size=4),
    ),
    st.tuples(st.just("remove"), st.lists(keys, max_size=3)),
    st.tuples(st.just("compact"), st.none()),
    st.tuples(st.just("reopen"), st.none()),
    st.tuples(st.just("torn"), st.binary(min_size=1, max_size=RECORD_BYTES - 1)),
    st.tuples(st.just("cut"), st.floats(0, 1)),
    st.tuples(st.just("flip"), st.floats(0, 1, exclude_max=True)),
)


class Model:
    """What the file should say: its records in order, None for one that is damaged."""

    def __init__(self) -> None:
        self.records: list[tuple[int, int | None] | None] = []
        self.flips = 0

    def rows(self) -> dict[int, int]:
        """Return the number kept under each key, in the order of their last records."""
        found: dict[int, int | None] = {}
        for key, value in filter(None, self.records):
            found.pop(key, None)
            found[key] = value
        return {key: value for key, value in found.items() if value is not None}

    def trim(self) -> None:
        """Forget what is damaged at the end: the next record is written over it."""
        while self.records and self.records[-1] is None:
            self.records.pop()


def row(value: int) -> list[float]:
    """Return the numbers that stand for ``value``."""
    return [value, value / 3, -value]


def apply(model: Model, kind: str, argument: object, writer: RowFile) -> RowFile:
    """Do a step to the file and to the model; return who writes next."""
    path = writer.path
    if kind in {"torn", "cut", "flip"} and not path.exists():
        return writer
    match kind, argument:
        case "append", list() as pairs:
            model.trim()
            model.records += pairs
            labels = [(key, value % 7) for key, value in pairs]
            writer.append([key for key, _ in pairs], labels, np.array([row(v) for _, v in pairs], np.float32))
        case "remove", list() as gone:
            known = sorted(set(gone) & set(model.rows()))
            if known:
                model.trim()
            model.records += [(key, None) for key in known]
            writer.remove(gone)
        case "compact", _:
            kept = model.rows()
            model.records = [(key, value) for key, value in kept.items()]
            writer.compact()
        case "reopen", _:
            return RowFile(path, "space")
        case "torn", bytes() as half:
            with path.open("ab") as file:
                file.write(half)
        case "cut", float() as share:
            size_bytes = int(share * path.stat().st_size)
            os.truncate(path, size_bytes)
            count = (size_bytes - HEADER_BYTES) // RECORD_BYTES if size_bytes >= HEADER_BYTES else 0
            del model.records[max(count, 0) :]
        case "flip", float() as share:
            data = bytearray(path.read_bytes())
            if not data or model.flips == 8:
                return writer
            at = int(share * len(data))
            data[at] ^= 1 << model.flips  # another bit each time: two must not undo each other
            model.flips += 1
            path.write_bytes(data)
            number = (at - HEADER_BYTES) // RECORD_BYTES
            if at < HEADER_BYTES:
                model.records.clear()
            elif number < len(model.records):
                model.records[number] = None
            return RowFile(path, "space")  # what changes under an open file is not looked for
    return writer


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=14))
def test_the_file_says_what_a_dict_would(done: list[tuple[str, object]]) -> None:
    """After every step the writer, a reader that watches and one that comes fresh see the same rows."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rows"
        writer, reader, model = RowFile(path, "space"), RowFile(path, "space"), Model()
        for kind, argument in done:
            writer = apply(model, kind, argument, writer)
            reader = RowFile(path, "space") if kind == "flip" else reader
            for seen in (writer, reader, RowFile(path, "space")):
                seen.refresh()
                check(seen, model.rows())


def check(seen: RowFile, expected: dict[int, int]) -> None:
    """Assert that a file holds these rows and no others."""
    assert seen.keys.tolist() == sorted(expected)
    assert seen.size == int(seen.alive.sum()) == len(expected)
    for key, place in zip(expected, seen.places_of(list(expected)).tolist(), strict=True):
        assert seen.alive[place]
        assert int(seen.record_keys[place]) == key
        assert seen.rows[place].tolist() == pytest.approx(row(expected[key]))
        assert seen.labels[place].tolist() == [key, expected[key] % 7]
    assert (seen.places_of([17]) == -1).all()
