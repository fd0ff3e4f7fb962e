"""Locks between real processes: held, inherited, killed, removed, attacked."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from odek.errors import StoreBusyError, StoreError
from odek.storage.locks import exclusive, hold, note_of_holder

ROOT = Path(__file__).parents[2]


@contextmanager
def holder(path: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that holds the lock at ``path``."""
    command = [sys.executable, "-m", "tests.support.lock_holder", str(path), *options]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"held\n"
            yield process
        finally:
            process.kill()


def test_a_second_process_is_told_which_pid_holds_the_lock(tmp_path: Path) -> None:
    """The error names file, pid and how long was waited."""
    path = tmp_path / "lock"
    with holder(path) as process:
        with pytest.raises(StoreBusyError) as at_once:
            hold(path, timeout_seconds=0)
        with pytest.raises(StoreBusyError) as later:
            hold(path, timeout_seconds=0.05)

    assert str(at_once.value) == f"{path} is held by pid {process.pid}"
    assert str(later.value) == f"{path} is still held by pid {process.pid} after 0.05 s"
    assert (at_once.value.pid, later.value.pid) == (process.pid, process.pid)


def test_a_killed_holder_frees_the_lock_at_once(tmp_path: Path) -> None:
    """Nothing has to be cleaned up after SIGKILL; the pid left in the file means nothing."""
    path = tmp_path / "lock"
    with holder(path) as process:
        process.kill()
        process.wait()
        with exclusive(path, timeout_seconds=0):
            assert int(path.read_text()) == os.getpid()


def test_a_stopped_holder_keeps_the_lock_and_the_waiter_gives_up_in_time(tmp_path: Path) -> None:
    """A hung process is waited for no longer than asked."""
    path = tmp_path / "lock"
    with holder(path) as process:
        os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(StoreBusyError, match=str(process.pid)):
            hold(path, timeout_seconds=0.05)


def test_a_program_started_by_the_holder_does_not_keep_the_lock(tmp_path: Path) -> None:
    """The descriptor of the lock is not inherited by what the holder starts."""
    lock = hold(tmp_path / "lock", timeout_seconds=0)
    command = [sys.executable, "-S", "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, close_fds=False) as child:
        lock.release()
        hold(tmp_path / "lock", timeout_seconds=0).release()
        child.communicate(b"\n")


def test_a_forked_copy_of_the_holder_does_not_keep_the_lock(tmp_path: Path) -> None:
    """A lock that was given back is free, although a copy of the process still has its descriptor."""
    with holder(tmp_path / "lock", "fork"):
        hold(tmp_path / "lock", timeout_seconds=0).release()


def test_a_waiter_finds_out_that_the_lock_file_was_removed(tmp_path: Path) -> None:
    """Whoever waited on a file that its holder removed locks the new one."""
    path = tmp_path / "lock"
    with holder(path, "remove") as process:

        def let_go() -> None:
            assert process.stdin is not None
            if not process.stdin.closed:
                process.stdin.close()

        with exclusive(path, timeout_seconds=10, poll=let_go), pytest.raises(StoreBusyError):
            hold(path, timeout_seconds=0)


def test_a_lock_whose_file_was_taken_away_knows_it(tmp_path: Path) -> None:
    """A holder can find out that it excludes nobody any more."""
    lock = hold(tmp_path / "lock", timeout_seconds=0)
    assert lock.is_intact()
    lock.path.unlink()
    assert not lock.is_intact()
    other = hold(tmp_path / "lock", timeout_seconds=0)
    lock.release(remove=True)
    assert other.is_intact()
    other.release(remove=True)
    assert not other.path.exists()


def test_the_wait_can_be_given_up(tmp_path: Path) -> None:
    """What ``poll`` raises ends the wait."""

    class GiveUp(BaseException):
        pass

    def poll() -> None:
        raise GiveUp

    lock = hold(tmp_path / "lock", timeout_seconds=0)
    with pytest.raises(GiveUp):
        hold(tmp_path / "lock", timeout_seconds=60, poll=poll)
    lock.release()


def test_what_is_no_lock_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A link, a pipe, a directory or a file with a second name in the lock's place is an error."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "link").symlink_to(precious)
    (tmp_path / "dangling").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "hard").hardlink_to(precious)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "dangling", "hard", "folder", "pipe", "missing/lock"):
        with pytest.raises(StoreError, match=f"cannot lock {tmp_path / name}: "):
            hold(tmp_path / name, timeout_seconds=1)

    assert precious.read_text() == "precious"
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind the superuser")
def test_a_directory_without_permission_is_an_error(tmp_path: Path) -> None:
    """Without a lock there is no going on."""
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="permission denied"):
        hold(tmp_path / "lock", timeout_seconds=1)
    tmp_path.chmod(0o700)


@pytest.mark.parametrize("option", ["keep", "remove"])
def test_no_update_is_lost_between_processes(tmp_path: Path, option: str) -> None:
    """Six processes that read, add and write keep every entry, also when each removes the lock file."""
    writers, each = 6, 20
    (tmp_path / "entries").write_text("[]")
    command = [sys.executable, "-m", "tests.support.counter", str(tmp_path)]
    processes = [
        subprocess.Popen([*command, str(number), str(each), option], cwd=ROOT) for number in range(writers)
    ]
    assert [process.wait(60) for process in processes] == [0] * writers

    entries = json.loads((tmp_path / "entries").read_text())
    assert sorted(entries) == sorted(
        f"{writer}-{number}" for writer in range(writers) for number in range(each)
    )


def test_a_note_is_read_while_its_holder_lives(tmp_path: Path) -> None:
    """Whoever looks is told what the holder says, however many look; an older, longer note is gone."""
    path = tmp_path / "lock"
    path.write_text("what a dead process said of itself at greater length")
    with holder(path, "--note", "here I am") as process:
        with ThreadPoolExecutor(8) as threads:
            notes = set(threads.map(note_of_holder, [path] * 200))
        assert notes == {b"here I am"}
        process.kill()
        process.wait()
        with ThreadPoolExecutor(8) as threads:
            assert set(threads.map(note_of_holder, [path] * 200)) == {None}
    assert not path.exists()
