"""The save of a session, killed, refused by the disk and cut from power at every step."""

import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from odek.messages import Message
from odek.sessions.reading import read_session
from odek.storage.files import sweep_temporaries
from odek.storage.locks import exclusive
from tests.support.power_cuts import Operation, disks_after_cut
from tests.support.session_saver import NAME, conversation
from tests.support.system_calls import ROOT, Call, missing_strace, record, run_module

MODULE = "tests.support.session_saver"
FILE = f"{NAME}.json"

needs_strace = pytest.mark.skipif(bool(missing_strace()), reason=missing_strace() or "strace works")


def saved_messages(directory: Path) -> list[Message]:
    """Read the file; it must be whole, as written, with nothing to repair."""
    path = directory / FILE
    if not path.exists():
        return []
    reading = read_session(path.read_bytes(), NAME, path)
    assert (reading.notices, reading.damaged) == ((), False)
    return reading.messages


def numbers(output: str, word: str) -> list[int]:
    """Return N of each line ``word N``."""
    return [int(number) for number in re.findall(rf"^{word} (\d+)", output, re.MULTILINE)]


def assert_usable(directory: Path, acknowledged: int) -> None:
    """The file holds what was acknowledged or one save more, and the next owner finds nothing in the way."""
    assert saved_messages(directory) in (conversation(acknowledged), conversation(acknowledged + 1))
    with exclusive(directory / "lock", timeout_seconds=1):
        sweep_temporaries(directory)
        assert {path.name for path in directory.iterdir()} <= {FILE, "lock"}


def kill_at_a_random_moment(directory: Path, dice: random.Random) -> int:
    """Let a process save until it is killed; return the last save that it acknowledged."""
    command = [sys.executable, "-m", MODULE, str(directory), "100000"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        output = b""
        wanted = dice.randrange(200, 2000)
        while len(output) < wanted:  # bytes of reports: at this place the process may be anywhere in a save
            output += process.stdout.read(wanted - len(output))
        process.kill()
        output += process.stdout.read()
    return max(numbers(output.decode(), "saved"), default=0)


@pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.slow)])
def test_a_process_killed_at_any_moment_loses_nothing_that_it_acknowledged(
    tmp_path: Path, kills: int
) -> None:
    """The file is always whole, holds every acknowledged message, and its lock is free."""
    dice = random.Random(20260101)
    for _ in range(kills):
        (tmp_path / FILE).unlink(missing_ok=True)
        acknowledged = kill_at_a_random_moment(tmp_path, dice)

        assert acknowledged > 0
        assert_usable(tmp_path, acknowledged)


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[Call]:
    """Return the system calls of the second save of a session."""
    if reason := missing_strace():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("record")
    (folder / "home").mkdir()
    return record(MODULE, str(folder / "home"), "3", folder=folder, begin="begin 2", end="saved 2")


def faults(calls: list[Call], *, everything: bool) -> Iterator[tuple[Call, str]]:
    """Yield which call to fault and how; the short form kills at each, and takes one error for each."""
    kinds = [f"error={name}" for name in ("EIO", "ENOSPC", "EDQUOT", "EROFS", "EMFILE", "EINTR")]
    for place, call in enumerate(calls):
        yield call, "signal=KILL"
        yield from ((call, kind) for kind in (kinds if everything else [kinds[place % 5]]))


@needs_strace
@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_fault_in_any_call_of_a_save_costs_that_save_at_most(
    calls: list[Call], tmp_path: Path, everything: bool
) -> None:
    """Killed there, the old or the new state is on disk; refused there, the next save has everything."""
    for number, (call, fault) in enumerate(faults(calls, everything=everything)):
        directory = tmp_path / str(number)
        directory.mkdir()
        inject = ["-e", f"inject={call.name}:{fault}:when={call.number}"]

        done = run_module(MODULE, str(directory), "3", strace=inject)

        where = f"{fault} in {call.name}({call.arguments[:60]}): {done.stdout}{done.stderr}"
        if fault == "signal=KILL":
            assert numbers(done.stdout, "saved")[:1] == [1], where
            assert 3 not in numbers(done.stdout, "begin"), where
            assert_usable(directory, max(numbers(done.stdout, "saved")))
            continue
        assert done.returncode == 0, where
        assert numbers(done.stdout, "saved")[-1] == 3, where
        assert numbers(done.stdout, "failed") in ([], [2]), where
        assert_usable(directory, 3)
        for line in re.findall(r"^failed.*", done.stdout, re.MULTILINE):
            assert str(directory) in line, where


@needs_strace
@pytest.mark.parametrize("name", ["fsync", "fchmod", "rename"])
def test_a_disk_that_stays_broken_keeps_the_last_good_state(
    calls: list[Call], tmp_path: Path, name: str
) -> None:
    """Every later save fails in words, the file stays, and no temporary is left."""
    first = next(call for call in calls if call.name.startswith(name))

    done = run_module(
        MODULE, str(tmp_path), "4", strace=["-e", f"inject={first.name}:error=ENOSPC:when={first.number}+"]
    )

    assert (numbers(done.stdout, "saved"), numbers(done.stdout, "failed")) == ([1], [2, 3, 4]), done.stdout
    assert f"cannot write {tmp_path / FILE}: the disk is full" in done.stdout
    assert saved_messages(tmp_path) == conversation(1)
    assert {path.name for path in tmp_path.iterdir()} == {FILE, "lock"}


def operations_of(calls: list[Call], written: dict[str, bytes]) -> list[Operation]:
    """Translate recorded calls; ``written`` has what the files in question hold at the end."""
    final: dict[str, str] = {}  # temporary name → the name it gets
    for call in calls:
        if call.name.startswith("rename"):
            source, target = re.findall(r'"([^"]*)"', call.arguments)
            final[Path(source).name] = Path(target).name
    operations: list[Operation] = []
    sizes: dict[str, int] = {}
    for call in calls:
        path = re.match(r"\d+<([^>]*)>", call.arguments)
        name = Path(path[1]).name if path else ""
        quoted = [Path(text).name for text in re.findall(r'"([^"]*)"', call.arguments)]
        if call.name == "openat" and "O_CREAT" in call.arguments:
            operations.append(Operation("create", quoted[0]))
        elif call.name == "write":
            start = sizes.get(name, 0)
            sizes[name] = start + call.result
            operations.append(
                Operation("write", name, data=written[final[name]][start : start + call.result])
            )
        elif call.name == "fsync":
            operations.append(Operation("fsync", name) if name in final else Operation("fsync_directory"))
        elif call.name.startswith("rename"):
            operations.append(Operation("rename", quoted[0], quoted[1]))
        elif call.name.startswith("unlink"):
            operations.append(Operation("unlink", quoted[0]))
    return [*operations, Operation("acknowledge")]


@needs_strace
def test_a_power_cut_leaves_the_old_or_the_new_session(calls: list[Call], tmp_path: Path) -> None:
    """In every state that a weak file system may leave; without the syncs it would not be so."""
    old, new = tmp_path / "old", tmp_path / "new"
    for directory, saves in ((old, "1"), (new, "2")):
        directory.mkdir()
        run_module(MODULE, str(directory), saves)
    base, result = (old / FILE).read_bytes(), (new / FILE).read_bytes()
    operations = operations_of(calls, {FILE: result})

    def broken(steps: list[Operation]) -> int:
        states = [(safe, dict(disk)) for safe, disk in disks_after_cut(steps, ((FILE, base),))]
        assert len(states) > 10
        return sum(files.get(FILE) not in ((result,) if safe else (base, result)) for safe, files in states)

    assert [step.kind for step in operations] == [
        *("create", "write", "fsync", "rename", "fsync_directory", "acknowledge")
    ]
    assert broken(operations) == 0
    for needed in ("fsync", "fsync_directory"):
        assert broken([step for step in operations if step.kind != needed]) > 0


@needs_strace
def test_a_power_cut_never_loses_the_damaged_original(tmp_path: Path) -> None:
    """Before the mended session takes its place, the copy of the damaged one is safe."""
    directory = tmp_path / "home"
    directory.mkdir()
    damaged = b'{"messages": [{"role": "user", "con'
    (directory / FILE).write_bytes(damaged)
    calls = record(MODULE, str(directory), "1", folder=tmp_path, begin="begin 1", end="saved 1")
    mended, aside = (directory / FILE).read_bytes(), f"{FILE}.damaged-1"
    operations = operations_of(calls, {FILE: mended, aside: damaged})

    states = [(safe, dict(disk)) for safe, disk in disks_after_cut(operations, ((FILE, damaged),))]

    assert sum(step.kind == "rename" for step in operations) == 2
    for acknowledged, files in states:
        assert damaged in (files.get(FILE), files.get(aside))
        assert files[FILE] == mended if acknowledged else files[FILE] in (damaged, mended)
