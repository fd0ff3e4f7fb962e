"""Several processes that read and write one index at the same time, and what one of them cannot write."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from odek.errors import StoreBusyError
from odek.index.document import Document
from odek.index.engine import Index, open_index
from odek.storage.locks import hold
from tests.support.index_texts import documents
from tests.support.index_writer import opened
from tests.support.scratch import scratch

ROOT = Path(__file__).parents[2]


def start(module: str, *arguments: object) -> "subprocess.Popen[str]":
    """Start a helper with its output to be read."""
    return subprocess.Popen(
        [sys.executable, "-m", f"tests.support.{module}", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def add_while_three_ask(count: int, size: int, timeout_seconds: float) -> None:
    """Let a process add documents in batches while three ask for all of them, again and again."""
    with scratch() as directory:
        opened(directory, 0).rebuild()
        started = [start("index_watcher", directory, count, size) for _ in range(3)]
        started.append(start("index_writer", directory, count, size, 0))
        try:
            ended = [process.communicate(timeout=timeout_seconds) for process in started]
        finally:
            for process in started:
                process.kill()
        assert [process.returncode for process in started] == [0] * 4, ended
        assert [error for _, error in ended] == [""] * 4
        assert all(int(output) > 1 for output, _ in ended[:3])
        assert opened(directory, count).reconcile() == 0


def test_each_question_sees_a_prefix_of_what_another_process_adds() -> None:
    """While 600 documents are added by thirties, no question sees half a batch, a gap, or fewer."""
    add_while_three_ask(600, 30, 60)


@pytest.mark.slow
def test_each_question_sees_a_prefix_of_five_thousand_documents() -> None:
    """The long form of the above."""
    add_while_three_ask(5_000, 20, 500)


@pytest.mark.parametrize("limit_bytes", [100, 1_000, 5_000, 20_000, 50_000])
def test_a_full_disk_leaves_the_index_as_it_was(limit_bytes: int) -> None:
    """A write that does not fit is an error in a line; what was there is found, here and elsewhere."""
    with scratch() as directory:
        index = opened(directory, 20)
        index.rebuild()
        reader = opened(directory, 20)
        assert len(reader.search("everywhere", 500, floor=0)) == 20
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.support.index_writer",
                str(directory),
                "400",
                "400",
                str(limit_bytes),
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")
        begin, said = done.stdout.splitlines()
        assert begin == "begin"
        assert said.startswith("failed the index in")
        for each in (reader, opened(directory, 20)):
            assert len(each.search("everywhere", 500, floor=0)) == 20
            assert not each.needs_rebuild
        index.add(documents(1))
        assert index.reconcile() == 1


def test_of_two_rebuilds_at_once_one_is_done(tmp_path: Path) -> None:
    """While a rebuild reads the texts another is refused, and a write in between is not lost."""
    late: list[bool] = []

    def source() -> list[Document]:
        if not late:
            late.append(other.rebuild())
            other.add([])
        return documents(5)

    other = open_index(tmp_path, "test", lambda: documents(5))
    index = open_index(tmp_path, "test", source)

    assert index.rebuild()
    assert late == [False]
    assert [hit.id for hit in other.search("mark3x", 1)] == ["d3"]


def wordy_documents() -> list[Document]:
    """Return so many documents of rare words that merging them takes a fifth of a second and more."""
    return [
        Document(id=f"w{number}", kind="episode", text=" ".join(f"{word % 7}w{word:x}" for word in words))
        for number in range(1_000)
        for words in [random.Random(number).choices(range(20_000), k=60)]
    ]


def found(index: Index, word: str) -> str:
    """Return the id of the document that is found first, "" if there is none."""
    return next((hit.id for hit in index.search(word, 1)), "")


def test_a_write_is_found_while_its_segments_are_merged_and_whoever_dies_then_loses_nothing() -> None:
    """The eighth small write starts a merge: others find it meanwhile, and without the writer ever after."""
    with scratch() as directory:
        reader = open_index(directory, "test", wordy_documents)
        reader.rebuild()
        writer = start("index_writer", directory, 20, 1, 0)
        try:
            while found(reader, "mark6x") != "d6" and writer.poll() is None:
                pass
        finally:
            writer.kill()
        said, failed = writer.communicate()

        assert failed == ""
        assert said.splitlines()[-1] == "added 6"
        for each in (reader, open_index(directory, "test", wordy_documents)):
            assert found(each, "mark6x") == "d6"
            assert not each.needs_rebuild
        reader.add(documents(1, start=30))
        assert found(reader, "mark30x") == "d30"


def test_a_merge_that_is_left_keeps_others_from_writing_until_it_is_finished() -> None:
    """All is found meanwhile, here and elsewhere; the next write of the one who left it finishes it first."""
    with scratch() as directory:
        writer = open_index(directory, "test", wordy_documents)
        writer.rebuild()
        count = 0
        while not writer.is_merging:
            writer.update(documents(1, start=count), leave_merge=True)
            count += 1
        other = open_index(directory, "test", wordy_documents)
        last = f"mark{count - 1}x"
        assert found(other, last) == found(writer, last) == f"d{count - 1}"
        with pytest.raises(StoreBusyError):
            hold(directory / "write.lock", timeout_seconds=0)

        writer.remove(["d0"])
        other.add(documents(1, start=90))
        assert [index.is_merging for index in (writer, other)] == [False, False]
        assert [found(writer, f"mark{number}x") for number in (1, 90)] == ["d1", "d90"]
        assert writer.count() == other.count() == 1_000 + count  # one came, one went
