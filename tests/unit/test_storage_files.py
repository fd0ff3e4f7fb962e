"""Files are replaced whole, for the owner alone, and read without surprises."""

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odek.errors import StoreError
from odek.storage.files import (
    abandoned_temporaries,
    ensure_directory,
    read_end,
    read_file,
    read_start,
    remove_file,
    replace_file,
    replace_files,
    sweep_temporaries,
)


@contextmanager
def umask(value: int) -> Iterator[None]:
    """Set the umask for a block."""
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def limit(kind: int, soft: int) -> Iterator[None]:
    """Lower a resource limit for a block."""
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


def mode_of(path: Path) -> int:
    """Return the permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def names(directory: Path) -> list[str]:
    """Return the names in a directory."""
    return sorted(path.name for path in directory.iterdir())


def dead_pid() -> int:
    """Return the id of a process that has ended and been waited for."""
    child = subprocess.Popen([sys.executable, "-S", "-c", ""])
    child.wait()
    return child.pid


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_file_gets_the_mode_asked_for_whatever_the_umask(tmp_path: Path, mask: int, mode: int) -> None:
    """Neither a wide nor a narrow umask changes what a written file allows."""
    path = tmp_path / "file"
    with umask(mask):
        replace_file(path, b"one", mode=mode)
        replace_file(path, b"two", mode=mode, durable=False)

    assert (path.read_bytes(), mode_of(path), names(tmp_path)) == (b"two", mode, ["file"])


def test_a_wider_file_is_narrowed_by_the_next_write(tmp_path: Path) -> None:
    """What an earlier program left readable for all is private again."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o644)

    replace_file(path, b"new")

    assert mode_of(path) == 0o600


def test_a_link_in_the_place_of_a_file_is_replaced_and_its_target_untouched(tmp_path: Path) -> None:
    """A planted link does not lead a write elsewhere."""
    target = tmp_path / "precious"
    target.write_bytes(b"precious")
    path = tmp_path / "link"
    path.symlink_to(target)

    replace_file(path, b"new")

    assert not path.is_symlink()
    assert (path.read_bytes(), target.read_bytes()) == (b"new", b"precious")


def test_a_write_that_is_cut_short_leaves_the_old_file_and_no_temporary(tmp_path: Path) -> None:
    """A file size limit gives a short write first, then an error; the message says which file and why."""
    path = tmp_path / "file"
    replace_file(path, b"old")
    with (
        limit(resource.RLIMIT_FSIZE, 4096),
        pytest.raises(StoreError, match="larger than is allowed") as caught,
    ):
        replace_file(path, b"x" * 10_000)

    assert str(path) in str(caught.value)
    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["file"])


def test_many_files_are_replaced_together(tmp_path: Path) -> None:
    """More files than are open at a time are all replaced, for the owner alone, and nothing is left over."""
    (tmp_path / "n7").write_bytes(b"old")
    replace_files(tmp_path, [(f"n{number}", b"%d" % number) for number in range(150)])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        f"n{number}": b"%d" % number for number in range(150)
    }
    assert {mode_of(path) for path in tmp_path.iterdir()} == {0o600}


def test_of_files_that_cannot_all_be_written_none_is_replaced(tmp_path: Path) -> None:
    """One that is cut short leaves every old file as it was; one that cannot be put in its place is named."""
    for name in ("one", "two"):
        replace_file(tmp_path / name, b"old")
    with limit(resource.RLIMIT_FSIZE, 4096), pytest.raises(StoreError, match=f"{tmp_path}/two: .*larger"):
        replace_files(tmp_path, [("one", b"new"), ("two", b"x" * 10_000), ("three", b"new")])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"one": b"old", "two": b"old"}

    (tmp_path / "taken").mkdir()
    with pytest.raises(StoreError, match=f"cannot write {tmp_path}/taken: it is a directory"):
        replace_files(tmp_path, [("one", b"new"), ("taken", b"new"), ("two", b"new")])
    assert names(tmp_path) == ["one", "taken", "two"]
    assert [(tmp_path / name).read_bytes() for name in ("one", "two")] == [b"new", b"old"]


def test_no_descriptor_left_is_an_error_in_words(tmp_path: Path) -> None:
    """Out of descriptors nothing is written and nothing is left."""
    path = tmp_path / "file"
    replace_file(path, b"old")
    with limit(resource.RLIMIT_NOFILE, 3), pytest.raises(StoreError, match="too many files open"):
        replace_file(path, b"new")

    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["file"])


@pytest.mark.parametrize(("make", "reason"), [(Path.mkdir, "directory"), (None, "does not exist")])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, make: object, reason: str) -> None:
    """A directory in the file's place, or no directory around it, is one clear error."""
    path = tmp_path / "taken" if make else tmp_path / "missing" / "file"
    if callable(make):
        make(path)
    with pytest.raises(StoreError, match=f"cannot write {path}: .*{reason}"):
        replace_file(path, b"new")

    assert not [name for name in names(tmp_path) if name.endswith(".tmp")]


def test_reading_never_waits_and_never_follows_a_link(tmp_path: Path) -> None:
    """A pipe, a directory, a link, a device and a file beyond the limit are refused by name."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "big").write_bytes(b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "big")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name, reason in [
        ("pipe", "no regular file"),
        ("folder", "no regular file"),
        ("big", "more than the 4 bytes"),
        ("link", "symbolic link"),
        ("loop", "symbolic link"),
        ("zero", "symbolic link"),
    ]:
        with pytest.raises(StoreError, match=reason) as caught:
            read_file(tmp_path / name, limit_bytes=4)
        assert name in str(caught.value)

    with pytest.raises(StoreError, match="no regular file"):
        read_file(Path("/dev/zero"), limit_bytes=4)
    assert read_file(tmp_path / "link", limit_bytes=5, follow_links=True) == b"12345"
    assert read_start(tmp_path / "big", size_bytes=2) == b"12"
    assert [read_end(tmp_path / "big", size_bytes=size) for size in (2, 9)] == [b"45", b"12345"]
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "missing", limit_bytes=4)


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("mask", [0o000, 0o777])
def test_directories_are_private_whatever_the_umask(tmp_path: Path, mask: int, durable: bool) -> None:
    """Each directory that is created is the owner's alone; one that was there keeps its mode."""
    tmp_path.chmod(0o755)
    with umask(mask):
        ensure_directory(tmp_path / "a" / "b", durable=durable)
        ensure_directory(tmp_path / "a" / "b", durable=durable)

    assert [mode_of(tmp_path), mode_of(tmp_path / "a"), mode_of(tmp_path / "a/b")] == [0o755, 0o700, 0o700]


def test_a_file_in_the_place_of_a_directory_is_an_error(tmp_path: Path) -> None:
    """What is in the way is named."""
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    for path in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "dangling"):
        with pytest.raises(StoreError, match=str(tmp_path)):
            ensure_directory(path)


def test_removing_says_whether_there_was_anything(tmp_path: Path) -> None:
    """Removing twice is no error."""
    replace_file(tmp_path / "file", b"")

    assert [remove_file(tmp_path / "file"), remove_file(tmp_path / "file")] == [True, False]


def test_only_temporaries_of_dead_writers_are_swept(tmp_path: Path) -> None:
    """A writer at work keeps its file; what is no temporary of ours is never touched."""
    random = "0123456789abcdef"
    dead, alive = f".index.json.{dead_pid()}-{random}.tmp", f".index.json.{os.getpid()}-{random}.tmp"
    old = f".old.json.{os.getpid()}-{random}.tmp"
    foreign = [".notes.tmp", "x.tmp", f"index.json.1-{random}.tmp"]
    for name in (dead, alive, old, *foreign):
        (tmp_path / name).touch()
    os.utime(tmp_path / old, (0, 0))

    assert [path.name for path in abandoned_temporaries(tmp_path)] == sorted([dead, old])
    assert [path.name for path in sweep_temporaries(tmp_path)] == sorted([dead, old])
    assert names(tmp_path) == sorted([alive, *foreign])
    assert sweep_temporaries(tmp_path / "missing") == []
