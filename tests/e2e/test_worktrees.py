"""Tasks in git worktrees of their own, through the real command: what comes back, and what stays."""

import os
import shutil
import signal
import sys
from pathlib import Path

import msgspec
import pytest
import trio

from tests.support.cli import Odek
from tests.support.delegations import answers, delegate, is_child, said, start_delegating
from tests.support.http_request import RecordedRequest
from tests.support.model_server import (
    Answer,
    by_request,
    gated,
    open_model_server,
    stall,
    text_answer,
    tool_call_answer,
)
from tests.support.processes import Marked
from tests.support.repository import Repository
from tests.support.waiting import HANG_SECONDS, wait_until

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git does the work")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository where the command works, with a commit and an uncommitted change."""
    made = Repository(tmp_path / "work")
    made.commit({"a.txt": "one\n", "b.txt": "one\n"})
    (made.path / "b.txt").write_text("not committed\n")
    return made


def odek_in(repository: Repository, base_url: str = "") -> Odek:
    """Return the command, working in the repository."""
    odek = Odek(repository.path.parent, base_url=base_url)
    odek.environment |= {n: v for n, v in repository.environment.items() if n.startswith("GIT_")}
    return odek


def writing(*files: tuple[str, str], then: Answer | None = None) -> Answer:
    """Have a subagent write files, and then say so or do something else."""
    calls = tool_call_answer([("write_file", {"path": name, "content": text}) for name, text in files])

    def choose(request: RecordedRequest) -> Answer:
        return (then or text_answer("written")) if said(request, "tool") else calls

    return by_request(choose)


def left_in(home: Path) -> list[Path]:
    """Return what there is of worktrees."""
    return list((home / "worktrees").glob("*"))


async def test_two_tasks_change_one_file_without_conflict(repository: Repository) -> None:
    """Each diff comes back in its own result; workspace, branches and worktrees are as they were."""
    before = repository.state()
    script = answers(
        [
            delegate({"goal": "left", "worktree": True}, {"goal": "right", "worktree": True}),
            text_answer("done"),
        ],
        {
            "left": writing(("a.txt", "left\n"), ("new.txt", "new\n")),
            "right": writing(("a.txt", "right\n")),
        },
    )
    async with open_model_server(default=script) as server:
        odek = odek_in(repository, server.base_url)
        done = await odek.run("run", "go")
        result = said(server.requests[-1], "tool")
    first, second = result.split("[end of task 1]")

    assert done.status == 0, done.stderr
    assert "CONFLICT" not in result
    assert "files changed in its worktree: a.txt, new.txt" in first
    assert "+left" in first
    assert "files changed in its worktree: a.txt\n" in second
    assert "+right" in second
    assert (repository.path / "a.txt").read_text() == "one\n"
    assert repository.state() == before
    assert left_in(odek.home) == []


@pytest.mark.parametrize("way", ["warm", pytest.param("fresh", marks=pytest.mark.slow)])
async def test_an_untrusted_task_has_its_worktree_and_nothing_else(way: str, repository: Repository) -> None:
    """It reads, writes and looks at git there; the person's own checkout is outside for it."""
    seen: list[str] = []
    ready = trio.Event()
    looking = [("read_file", {"path": "b.txt"}), ("shell", {"command": "git rev-parse --git-dir && pwd"})]
    changing = [
        ("write_file", {"path": "b.txt", "content": "changed\n"}),
        ("write_file", {"path": str(repository.path / "a.txt"), "content": "x"}),
        ("write_file", {"path": ".git", "content": "gitdir: /"}),
    ]
    rounds = {0: tool_call_answer(looking), 2: tool_call_answer(changing), 5: text_answer("tried")}

    def choose(request: RecordedRequest) -> Answer:
        if not is_child(request):
            return parent.pop(0)
        seen[:] = [message["content"] for message in request.json["messages"] if message["role"] == "tool"]
        return rounds[len(seen)]

    parent = [gated(ready, delegate({"goal": "try", "worktree": True})), text_answer("ok")]
    async with open_model_server(default=by_request(choose)) as server:
        odek = odek_in(repository, server.base_url)
        # As a hook of git has it: whoever takes it for true works in the wrong place.
        odek.environment["GIT_DIR"] = str(repository.path / ".git")
        async with start_delegating(odek, way, ready) as running:
            done = await running.wait()
        result = said(server.requests[-1], "tool")

    assert done.status == 0
    assert "one" in seen[0]
    assert str(odek.home / "worktrees") in seen[1]
    assert str(repository.path / ".git/worktrees/odek-") in seen[1]
    assert [text.startswith("not run") for text in seen] == [False, False, False, True, True]
    assert "+changed" in result
    assert (repository.path / "b.txt").read_text() == "not committed\n"
    assert left_in(odek.home) == []


async def test_a_task_that_ends_badly_gives_back_what_it_changed(repository: Repository) -> None:
    """At its time limit and killed: an error with the diff so far, and no worktree."""
    before = repository.state()
    killing = tool_call_answer([("shell", {"command": "kill -9 $PPID; sleep 5"})])
    script = answers(
        [
            delegate(
                {"goal": "slow", "worktree": True, "timeout_seconds": 1.5},
                {"goal": "dies", "worktree": True, "trust_level": "trusted"},
            ),
            text_answer("noted"),
        ],
        {
            "slow": writing(("a.txt", "slow\n"), then=stall()),
            "dies": writing(("a.txt", "dies\n"), then=killing),
        },
    )
    async with open_model_server(default=script) as server:
        odek = odek_in(repository, server.base_url)
        done = await odek.run("run", "go", environment={"ODEK_DANGEROUS_NON_INTERACTIVE": "allow"})
        result = said(server.requests[-1], "tool")

    assert done.status == 0
    assert "within 1.5 s" in result
    assert "+slow" in result
    assert "+dies" in result
    assert result.count(": error") >= 2
    assert repository.state() == before
    assert left_in(odek.home) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_parent_that_ends_leaves_no_worktree(number: signal.Signals, repository: Repository) -> None:
    """At once when it can; killed, cleaning up names it and the next start removes it."""
    before = repository.state()
    marked = Marked()
    script = answers([delegate({"goal": "wait", "worktree": True}), text_answer("hello")], {"wait": stall()})
    async with open_model_server(default=script) as server:
        odek = odek_in(repository, server.base_url)
        marked.watch(odek.workspace)
        async with odek.start("run", "go") as running:
            with trio.fail_after(HANG_SECONDS):
                await server.wait_requests(2)
            (place,) = (path for path in left_in(odek.home) if "." not in path.name)
            marked.watch(place)
            assert len(marked.living()) >= 3
            in_use = await odek.run("cleanup")
            running.signal(number)
            await running.wait()
        await wait_until(lambda: not marked.living(), seconds=2)
        if number == signal.SIGKILL:
            told = await odek.run("cleanup", "--dry-run")
            assert f"would remove worktrees/{place.name}" in told.stdout
            assert place.exists()
            assert (await odek.run("run", "hello")).status == 0

    assert "worktrees" not in in_use.stdout
    assert left_in(odek.home) == []
    assert repository.state() == before


async def test_without_a_repository_nothing_starts(tmp_path: Path) -> None:
    """The model is told why, and no subagent has asked anything."""
    script = answers(
        [delegate({"goal": "fine"}, {"goal": "work", "worktree": True}), text_answer("a pity")], {}
    )
    async with open_model_server(default=script) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        odek.environment["GIT_CEILING_DIRECTORIES"] = str(tmp_path)
        done = await odek.run("run", "go")
        result = said(server.requests[-1], "tool")

    assert done.status == 0
    assert result.startswith("delegate_tasks: worktree: ")
    assert "is in no git repository" in result


async def test_by_hand_the_result_has_a_diff_that_applies(repository: Repository, tmp_path: Path) -> None:
    """The workspace is unchanged until somebody applies it."""
    before = repository.state()
    odek = odek_in(repository)
    task = tmp_path / "task.json"
    task.write_text('{"goal": "write new.txt: hi", "worktree": true}')
    done = await odek.run("subagent", "--task", str(task))
    after = repository.state()
    result = done.events[-1]
    repository.git("apply", "-", stdin=str(result["diff"]))

    assert done.status == 0, done.stdout
    assert (result["status"], result["files_changed"]) == ("success", ["new.txt"])
    assert result["base"] == repository.git("rev-parse", "HEAD").strip()
    assert after == before
    assert (repository.path / "new.txt").read_text() == "hi\n"
    assert left_in(odek.home) == []


async def test_by_hand_a_signal_ends_it_with_a_result(repository: Repository, tmp_path: Path) -> None:
    """One JSON object says what ended it; the worktree is gone."""
    task = tmp_path / "task.json"
    task.write_text('{"goal": "wait", "worktree": true}')
    async with open_model_server(default=stall()) as server:
        odek = odek_in(repository, server.base_url)
        async with odek.start("subagent", "--task", str(task)) as running:
            with trio.fail_after(HANG_SECONDS):
                await server.wait_requests(1)
            running.signal(signal.SIGTERM)
            done = await running.wait()
    result = done.events[-1]

    assert done.status == 143
    assert result["status"] == "error"
    assert "SIGTERM" in str(result["error"])
    assert left_in(odek.home) == []


async def test_by_hand_without_a_repository_is_a_setup_error(tmp_path: Path) -> None:
    """One JSON object with the reason."""
    odek = Odek(tmp_path)
    odek.environment["GIT_CEILING_DIRECTORIES"] = str(tmp_path)
    (tmp_path / "task.json").write_text('{"goal": "write a.txt: b", "worktree": true}')
    done = await odek.run("subagent", "--task", str(tmp_path / "task.json"))

    assert done.status == 3
    assert "is in no git repository" in str(done.events[-1]["error"])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every file name is UTF-8")
async def test_names_that_are_no_utf8_are_as_good_as_others(tmp_path: Path) -> None:
    """Of the home, the working directory, a worktree and a changed file; by delegation and by hand."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    repository = Repository(folder / "work")
    repository.commit({"a.txt": "one\n"})
    touching = tool_call_answer([("shell", {"command": "touch $(printf 'n\\377')"})])
    task = {"goal": "touch it", "trust_level": "trusted"}
    script = answers(
        [delegate(task, task | {"worktree": True}), text_answer("done")],
        {"touch": by_request(lambda asked: text_answer("did it") if said(asked, "tool") else touching)},
    )
    async with open_model_server(default=script) as server:
        odek = odek_in(repository, server.base_url)
        await odek.run("run", "go")
        result = said([r for r in server.requests if not is_child(r)][-1], "tool")
        (odek.workspace / "task.json").write_bytes(msgspec.json.encode(task | {"worktree": True}))
        by_hand = await odek.run("subagent", "--stream", "--task", "task.json")

    assert result.count(": success") == 2
    assert "files changed: n?" in result
    assert r"files changed in its worktree: n\u{dcff}" in result
    assert by_hand.status == 0
    assert by_hand.events[-1]["files_changed"] == [r"n\u{dcff}"]
    assert left_in(odek.home) == []
