"""An index whose files are not what they were: the texts answer, and one line says why."""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from odek.errors import StoreError
from odek.index.document import Document
from odek.index.engine import Index, open_index
from tests.support.index_texts import documents
from tests.support.permissions import locked
from tests.support.scratch import scratch

COUNT = 12


def opened(directory: Path) -> Index:
    """Return the index in ``directory``, of twelve documents."""
    return open_index(directory, "test", lambda: documents(COUNT))


def answers(index: Index) -> list[str]:
    """Return what is found for a word that each document has alone."""
    return [hit.id for number in range(COUNT) for hit in index.search(f"mark{number}x", 1)]


RIGHT = [f"d{number}" for number in range(COUNT)]


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    """Return an index of two segments and a removal, to be copied."""
    with scratch() as directory:
        index = opened(directory / "index")
        index.rebuild()
        index.add([Document(id="late", kind="atom", text="a late one"), *documents(2)])
        index.remove(["late"])
        yield directory / "index"


def files_of(template: Path) -> list[Path]:
    """Return the files that hold something, relative to the index."""
    return sorted(
        path.relative_to(template) for path in template.rglob("*") if path.is_file() and path.stat().st_size
    )


def flip(path: Path, random_: random.Random) -> None:
    """Change one bit of a file."""
    data = bytearray(path.read_bytes())
    data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
    path.write_bytes(data)


def check_flips(template: Path, tries: int, capfd: pytest.CaptureFixture[str]) -> None:
    """Flip a bit in a copy, again and again; look at what is found, said and written to stderr."""
    random_ = random.Random(1)
    files = files_of(template)
    said = 0
    with scratch() as directory:
        for number in range(tries):
            copy = directory / str(number)
            shutil.copytree(template, copy)
            path = files[number % len(files)]
            flip(copy / path, random_)
            index = opened(copy)
            assert answers(index) == RIGHT, path
            assert "\n" not in index.damage
            said += index.damage != ""
            assert index.needs_rebuild or path.suffix == ".lock" or index.damage == ""
            shutil.rmtree(copy)
    assert said > tries // 2
    assert capfd.readouterr() == ("", "")


def test_a_flipped_bit_changes_no_answer(template: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Whatever file it is in, what is found is right, nothing panics, and a line says what is wrong."""
    check_flips(template, 2 * len(files_of(template)), capfd)


@pytest.mark.slow
def test_two_thousand_flipped_bits_change_no_answer(
    template: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The long form of the above."""
    check_flips(template, 2_000, capfd)


@pytest.mark.parametrize("left", [0.0, 0.5, 0.99])
def test_a_half_written_file_changes_no_answer(
    template: Path, tmp_path: Path, left: float, capfd: pytest.CaptureFixture[str]
) -> None:
    """Files that are cut, and such that are gone, are not read."""
    for number, path in enumerate(files_of(template)):
        copy = tmp_path / str(number)
        shutil.copytree(template, copy)
        if left:
            os.truncate(copy / path, int((copy / path).stat().st_size * left))
        else:
            (copy / path).unlink()
        index = opened(copy)
        assert answers(index) == RIGHT, path
        assert index.needs_rebuild or path.name.startswith(".") or path.suffix == ".lock"
        assert index.rebuild()
        assert (answers(index), index.damage, index.needs_rebuild) == (RIGHT, "", False)
    assert capfd.readouterr() == ("", "")


def test_a_copy_is_as_good_as_the_original(template: Path, tmp_path: Path) -> None:
    """Files whose time of change is another are compared by their checksums, and read."""
    shutil.copytree(template, tmp_path / "copy")
    index = opened(tmp_path / "copy")

    assert (answers(index), index.damage, index.needs_rebuild) == (RIGHT, "", False)
    index.add([Document(id="new", kind="atom", text="zeppelin")])
    assert [hit.id for hit in index.search("zeppelin", 1)] == ["new"]


def test_a_write_without_its_seal_is_not_read(template: Path, tmp_path: Path) -> None:
    """What a writer left that died before it was done is made anew from the texts."""
    directory = tmp_path / "copy"
    shutil.copytree(template, directory)
    (seal,) = directory.glob("g-*/seal")
    before = seal.read_bytes()
    opened(directory).add(documents(COUNT))
    seal.write_bytes(before)
    index = opened(directory)

    assert (answers(index), index.needs_rebuild) == (RIGHT, True)
    assert "is not as it was written" in index.damage
    index.add(documents(1))
    assert index.rebuild()
    assert (answers(index), index.damage) == (RIGHT, "")


def test_files_that_nobody_vouches_for_do_no_harm(template: Path, tmp_path: Path) -> None:
    """Left-over files and generations are not read, and the latter go with the next rebuild."""
    directory = tmp_path / "copy"
    shutil.copytree(template, directory)
    (generation,) = directory.glob("g-*")
    (generation / "0123456789abcdef.idx").write_bytes(b"left over")
    (directory / "g-dead").mkdir()
    index = opened(directory)

    assert (answers(index), index.damage) == (RIGHT, "")
    index.add(documents(COUNT))
    assert index.rebuild()
    assert len(list(directory.glob("g-*"))) == 1


def test_a_removed_directory_is_made_again(template: Path, tmp_path: Path) -> None:
    """An open index whose directory is gone answers from the texts, and can be rebuilt."""
    directory = tmp_path / "copy"
    shutil.copytree(template, directory)
    index = opened(directory)
    assert answers(index) == RIGHT
    shutil.rmtree(directory)

    assert (answers(index), index.needs_rebuild) == (RIGHT, True)
    with pytest.raises(StoreError):
        index.add(documents(1))
    assert index.rebuild()
    assert (answers(index), index.needs_rebuild) == (RIGHT, False)


def test_a_removed_generation_is_noticed_while_open(template: Path, tmp_path: Path) -> None:
    """Whoever has the files open finds out that they are gone, and says so."""
    directory = tmp_path / "copy"
    shutil.copytree(template, directory)
    index = opened(directory)
    assert answers(index) == RIGHT
    (generation,) = directory.glob("g-*")
    shutil.rmtree(generation)

    assert (answers(index), index.needs_rebuild) == (RIGHT, True)
    assert "seal is missing" in index.damage


def test_a_place_that_takes_no_new_files_is_no_damage(template: Path, tmp_path: Path) -> None:
    """A write there says in words why not, and the index answers on."""
    directory = tmp_path / "copy"
    shutil.copytree(template, directory)
    for path in directory.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o666)
    for path in directory.glob("g-*/.tantivy-writer.lock"):
        path.unlink()
    with locked(directory, 0o555):
        index = opened(directory)
        with pytest.raises(StoreError, match=r"cannot write .*/g-\w+: permission denied$"):
            index.add(documents(1))
        assert answers(index) == RIGHT
        assert index.damage == ""


def test_a_place_without_leave_to_write_is_read_or_scanned(template: Path, tmp_path: Path) -> None:
    """Where nothing can be written questions are answered, and a write is an error in a line."""
    directory = tmp_path / "copy"
    shutil.copytree(template, directory)
    for path in directory.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    with locked(directory, 0o555):
        index = opened(directory)
        assert answers(index) == RIGHT
        with pytest.raises(StoreError, match=r"write\.lock"):
            index.add(documents(1))
        with pytest.raises(StoreError, match=r"rebuild\.lock"):
            index.rebuild()
    assert answers(opened(directory)) == RIGHT
