"""Rows on disk: whose they are, how they are shared, and what can go wrong with the file."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from odek.errors import StoreError
from odek.storage.arrays import RowFile


def fill(rows: RowFile, keys: range, dims: int = 4) -> None:
    """Append a row for each key, all its numbers the key."""
    values = np.repeat(np.array(keys, np.float32)[:, None], dims, axis=1)
    rows.append(list(keys), [(key, 0) for key in keys], values)


def test_a_reader_sees_what_was_written_since(tmp_path: Path) -> None:
    """Appending, replacing, removing and compacting are seen at the next refresh, and nothing costs one."""
    writer, reader = RowFile(tmp_path / "rows", "s"), RowFile(tmp_path / "rows", "s")
    assert not reader.refresh()

    fill(writer, range(10))
    assert reader.refresh()
    assert not reader.refresh()
    writer.append([3], [(9, 9)], np.full((1, 4), -1, np.float32))
    writer.remove([4, 77])
    assert reader.refresh()
    writer.compact()
    assert reader.refresh()

    assert reader.keys.tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert reader.alive.all()
    assert reader.rows[reader.places_of([3])].tolist() == [[-1, -1, -1, -1]]


def test_rows_that_a_search_holds_outlive_a_compaction(tmp_path: Path) -> None:
    """An array taken before the file was replaced keeps its numbers."""
    writer, reader = RowFile(tmp_path / "rows", "s"), RowFile(tmp_path / "rows", "s")
    fill(writer, range(5))
    reader.refresh()
    held = reader.rows

    writer.remove(range(4))
    writer.compact()
    reader.refresh()

    assert held[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert reader.rows[:, 0].tolist() == [4]


def test_another_space_is_not_read_and_is_replaced(tmp_path: Path) -> None:
    """A file belongs to one space: to others it is empty, until they write."""
    mine, other = RowFile(tmp_path / "rows", "mine"), RowFile(tmp_path / "rows", "other")
    fill(mine, range(5))

    other.refresh()
    assert (other.size, other.dims) == (0, 0)

    fill(other, range(2))
    mine.refresh()
    assert (other.size, mine.size) == (2, 0)


def test_rows_of_another_size_begin_anew(tmp_path: Path) -> None:
    """Rows of two sizes are never in one file."""
    rows = RowFile(tmp_path / "rows", "s")
    fill(rows, range(5), dims=4)
    fill(rows, range(2), dims=7)

    assert (rows.size, rows.dims) == (2, 7)


@pytest.mark.parametrize("content", [b"", b"odekrows", b"x" * 64, b"odekrows" + bytes(500), os.urandom(5000)])
def test_what_is_no_such_file_is_empty_and_replaced(tmp_path: Path, content: bytes) -> None:
    """Foreign bytes are no rows and no error; the next write begins a file."""
    (tmp_path / "rows").write_bytes(content)
    rows = RowFile(tmp_path / "rows", "s")

    rows.refresh()
    assert rows.size == 0

    fill(rows, range(3))
    assert rows.keys.tolist() == [0, 1, 2]


def test_the_file_is_the_owners_alone(tmp_path: Path) -> None:
    """Vectors tell about texts: nobody else may read them."""
    rows = RowFile(tmp_path / "deep" / "rows", "s")
    fill(rows, range(3))

    assert rows.path.stat().st_mode & 0o777 == 0o600
    assert rows.path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_cannot_be_read_is_an_error_that_names_it(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """A directory or a pipe in the place of the file is told in a line, at once."""
    path = tmp_path / "rows"
    make(path)

    with pytest.raises(StoreError, match="rows: it is") as caught:
        RowFile(path, "s").refresh()

    assert "\n" not in str(caught.value)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """Nothing outside is read or written through a link in the place of the file."""
    outside = RowFile(tmp_path / "outside", "s")
    fill(outside, range(3))
    before = outside.path.read_bytes()
    (tmp_path / "rows").symlink_to(outside.path)
    linked = RowFile(tmp_path / "rows", "s")

    with pytest.raises(StoreError, match="symbolic link"):
        linked.refresh()
    with pytest.raises(StoreError, match="symbolic link"):
        fill(linked, range(9))
    assert outside.path.read_bytes() == before


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros(3, np.float32),
        np.full((1, 3), np.nan),
        np.full((1, 3), np.inf),
        np.zeros((1, 0)),
        np.full((1, 2), 1e300),
    ],
)
def test_only_finite_rows_are_taken(
    tmp_path: Path, rows: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]"
) -> None:
    """What would spoil every product with it is refused before it is written."""
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="finite"):
        RowFile(tmp_path / "rows", "s").append([1], [(0, 0)], rows)  # type: ignore[arg-type]

    assert list(tmp_path.iterdir()) == []


def test_compaction_is_wanted_when_most_is_dead(tmp_path: Path) -> None:
    """Replaced rows and tombstones count as dead; few of them do not matter."""
    rows = RowFile(tmp_path / "rows", "s")
    fill(rows, range(400))
    fill(rows, range(400))
    few = rows.wants_compaction
    for _ in range(2):
        fill(rows, range(400))
    many = rows.wants_compaction
    size_bytes = rows.path.stat().st_size
    rows.compact()

    assert (few, many, rows.wants_compaction) == (False, True, False)
    assert rows.path.stat().st_size < size_bytes / 3
