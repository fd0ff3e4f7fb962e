"""What is noted of the indexed texts: each note costs itself, and whatever is lost is indexed again."""

from pathlib import Path

import pytest

from odek.errors import StoreError
from odek.memory.catalogue import Catalogue

EPISODE = ("episode",)


def lines_of(directory: Path) -> int:
    """Return how many lines the file has."""
    return (directory / "texts.jsonl").read_bytes().count(b"\n")


def test_what_one_process_notes_another_reads(tmp_path: Path) -> None:
    """New, changed and gone: whoever read before reads what was added, whoever comes later all of it."""
    mine, other = Catalogue(tmp_path), Catalogue(tmp_path)
    mine.replace({"episode/a": "1", "episode/b": "1"})
    assert other.read() == {"episode/a": "1", "episode/b": "1"}
    mine.note({"episode/a": "2", "episode/b": None, "session/c": "1"})
    assert other.is_outdated
    expected = {"episode/a": "2", "session/c": "1"}

    assert other.read() == mine.read() == Catalogue(tmp_path).read() == expected
    assert not other.is_outdated


def test_a_note_among_many_adds_its_own_bytes_alone(tmp_path: Path) -> None:
    """The file is written anew now and then, and is never much longer than what it holds."""
    catalogue = Catalogue(tmp_path)
    catalogue.replace({f"episode/{number}": "v" * 80 for number in range(500)})
    path = tmp_path / "texts.jsonl"
    inode, size = path.stat().st_ino, path.stat().st_size
    catalogue.note({"episode/7": "new"})
    assert path.stat().st_ino == inode
    assert path.stat().st_size - size < 100

    for number in range(2_000):
        catalogue.note({"episode/7": str(number)})
    assert lines_of(tmp_path) < 2 * 500 + 600
    assert Catalogue(tmp_path).read() == catalogue.read()
    assert catalogue.read()["episode/7"] == "1999"


def test_marks_say_what_the_index_was_equal_to_last(tmp_path: Path) -> None:
    """They are read from the last line alone, by those who read the rest and by those who did not."""
    writer, reader = Catalogue(tmp_path), Catalogue(tmp_path)
    writer.replace({"episode/a": "1"})
    writer.settle({"episode": "all", "session": "none"})
    assert reader.marks() == writer.marks() == {"episode": "all", "session": "none"}
    writer.note({"episode/a": "2"})
    writer.note({"session/a": "2"})
    assert Catalogue(tmp_path).marks() == {"episode": "all", "session": "none"}
    assert reader.marks() == writer.marks() == Catalogue(tmp_path).marks()
    writer.settle({"episode": "again"})
    assert reader.read() == {"episode/a": "2", "session/a": "2"}
    assert reader.marks() == {"episode": "again", "session": "none"}
    writer.replace({})
    assert reader.marks() == writer.marks() == {}


def test_a_line_that_was_cut_off_or_damaged_loses_itself_alone(tmp_path: Path) -> None:
    """The next note begins a line of its own; a mark before the damage does not count."""
    catalogue = Catalogue(tmp_path)
    catalogue.replace({"episode/a": "1"})
    catalogue.settle({"episode": "all"})
    path = tmp_path / "texts.jsonl"
    with path.open("ab") as file:
        file.write(b'["episode/b","1')
    cut = Catalogue(tmp_path)
    assert cut.marks() == {}
    assert cut.read() == {"episode/a": "1"}
    cut.note({"episode/c": "1"})
    path.write_bytes(path.read_bytes() + b"\xff\x00\n[1]\n")

    assert Catalogue(tmp_path).read() == cut.read() == {"episode/a": "1", "episode/c": "1"}
    assert Catalogue(tmp_path).marks() == {}


@pytest.mark.parametrize("content", [b"", b"\x00" * 4_096, b"[" * 100_000 + b"\n", b'"text"\n', b"[[],[]]\n"])
def test_a_file_of_nonsense_is_an_empty_one(tmp_path: Path, content: bytes) -> None:
    """Whatever is in it, everything counts as not indexed."""
    (tmp_path / "texts.jsonl").write_bytes(content)
    catalogue = Catalogue(tmp_path)
    assert catalogue.read() == {}
    assert catalogue.marks() == {}
    catalogue.note({"episode/a": "1"})
    assert Catalogue(tmp_path).read() == {"episode/a": "1"}


def test_something_else_in_the_place_of_the_file_is_told(tmp_path: Path) -> None:
    """It is read as nothing, and not written over in silence."""
    (tmp_path / "texts.jsonl").mkdir()
    catalogue = Catalogue(tmp_path)
    assert catalogue.read() == {}
    with pytest.raises(StoreError, match=r"texts\.jsonl"):
        catalogue.note({"episode/a": "1"})
