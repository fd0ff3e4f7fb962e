"""Many processes on one memory."""

import subprocess
import sys
from pathlib import Path

from odek.memory.facts import FactLimits, FactStore

WRITERS, FACTS_EACH = 4, 15

WRITER = """
import sys
from pathlib import Path
from odek.memory.facts import FactLimits, FactStore

name = sys.argv[2]
store = FactStore(Path(sys.argv[1]), FactLimits(user=100_000))
sys.stdin.readline()  # all start together
for number in range(int(sys.argv[3])):
    text = f"fact {number} of {name}"
    store.add("user", text)
    if number % 3 == 0:
        store.replace(store.select(text), text := f"changed {text}")
    if number % 5 == 0:
        store.remove(store.select(text))
"""


def test_no_change_of_any_process_is_lost(tmp_path: Path) -> None:
    """Processes that add, replace and remove at the same time leave exactly what each of them meant."""
    directory = tmp_path / "memory"
    arguments = [sys.executable, "-c", WRITER, str(directory)]
    writers = [
        subprocess.Popen(
            [*arguments, f"w{n}", str(FACTS_EACH)], stdin=subprocess.PIPE, cwd=Path(__file__).parents[2]
        )
        for n in range(WRITERS)
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"go\n")
        writer.stdin.close()
    statuses = [writer.wait(timeout=60) for writer in writers]

    expected = {
        f"{'changed ' if number % 3 == 0 else ''}fact {number} of w{n}"
        for n in range(WRITERS)
        for number in range(FACTS_EACH)
        if number % 5 != 0
    }
    stored = [fact.text for fact in FactStore(directory, FactLimits()).read("user").entries]
    assert statuses == [0] * WRITERS
    assert set(stored) == expected
    assert len(stored) == len(expected)
    assert [path.name for path in directory.iterdir() if path.name.endswith(".tmp")] == []
