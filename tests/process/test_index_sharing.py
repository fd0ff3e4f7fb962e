"""Several processes with one index."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from odek.index.document import Document
from odek.index.engine import open_index
from tests.support.index_texts import documents

ROOT = Path(__file__).parents[2]


@contextmanager
def reader(directory: Path) -> Iterator["subprocess.Popen[str]"]:
    """Yield a process that answers questions from the index in ``directory``."""
    arguments = [sys.executable, "-m", "tests.support.index_reader", str(directory)]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(process: "subprocess.Popen[str]", query: str) -> list[str]:
    """Return the ids that another process finds for ``query``."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(query + "\n")
    process.stdin.flush()
    return process.stdout.readline().split()


def test_another_process_sees_a_change_at_its_next_question(tmp_path: Path) -> None:
    """Building, adding, replacing, removing and rebuilding are seen without reopening."""
    texts = {document.id: document for document in documents(20)}
    index = open_index(tmp_path, "test", texts.values)
    with reader(tmp_path) as other:
        assert ask(other, "mark3x") == []
        index.rebuild()
        assert ask(other, "mark3x")[0] == "d3"
        texts["new"] = Document(id="new", kind="atom", text="zeppelin")
        index.add([texts["new"]])
        assert ask(other, "zeppelin")[0] == "new"
        texts["new"] = Document(id="new", kind="atom", text="submarine")
        index.add([texts["new"]])
        assert "new" not in ask(other, "zeppelin")
        assert ask(other, "submarine")[0] == "new"
        index.rebuild()
        assert ask(other, "submarine")[0] == "new"
        index.remove(["new"])
        assert "new" not in ask(other, "submarine")
