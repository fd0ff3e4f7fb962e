"""A real sandbox of namespaces: what commands in it see, change and reach, and what they do not."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import trio

from odek.config.settings import Config
from odek.errors import ConfigError
from odek.sandbox.boxes import Shown
from odek.sandbox.choice import open_sandbox
from subagent.errors import ChildStartError
from tests.support.sandboxes import BUBBLEWRAP, NEEDS_BUBBLEWRAP, Done, bubblewrapped, run_in

pytestmark = NEEDS_BUBBLEWRAP


def git(folder: Path, *arguments: str) -> str:
    """Run git as its user would, and return what it says."""
    identity = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    command = ["git", *identity, *arguments]
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True
    ).stdout


def repository(folder: Path) -> Path:
    """Make a repository with a commit; returns its directory."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.txt").write_text("one\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


COMMIT = "git -c user.name=B -c user.email=b@c commit -qam second && git log --oneline | wc -l"


async def test_the_workspace_can_be_changed_and_nothing_else(tmp_path: Path) -> None:
    """What is written below the workspace is there afterwards; elsewhere writing fails or is forgotten."""
    sandbox = bubblewrapped(tmp_path)
    here = [f"{tmp_path}/work/kept", f"{tmp_path}/x"]
    places = [here[0], "/etc/x", "/usr/x", "/x", "/opt/x", "/tmp/x", here[1], "/var/tmp/x", "/run/x"]
    command = f'for file in {shlex.join(places)}; do (echo hi > "$file") 2>/dev/null && echo "$file"; done'

    done = await run_in(sandbox, tmp_path / "work", command)

    assert done.output.splitlines() == [here[0], "/tmp/x", here[1], "/var/tmp/x", "/run/x"]
    assert (tmp_path / "work" / "kept").read_text() == "hi\n"
    assert not (tmp_path / "x").exists()


async def test_home_and_what_odek_keeps_are_not_there(tmp_path: Path) -> None:
    """A home is empty but for the way to the workspace, and a system's secrets cannot be read."""
    sandbox = bubblewrapped(tmp_path)
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519").write_text("a key")
    (tmp_path / "home" / "secrets.env").write_text("KEY=1")

    done = await run_in(
        sandbox,
        tmp_path / "work",
        "ls -A ~; cat ~/.ssh/id_ed25519 ~/home/secrets.env /etc/shadow /root/.bashrc",
    )

    assert done.output.splitlines()[0] == "work"
    assert len(done.output.splitlines()) == 5
    assert "a key" not in done.output


@pytest.mark.parametrize(("network", "status"), [(False, 1), (True, 0)])
async def test_there_is_no_network_unless_it_is_allowed(tmp_path: Path, network: bool, status: int) -> None:
    """A server on this machine is reached with the network alone."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]

    done = await run_in(
        bubblewrapped(tmp_path, network=network), tmp_path / "work", f"exec 3<>/dev/tcp/127.0.0.1/{port}"
    )

    assert done.status == status
    await listeners[0].aclose()


async def test_it_is_alone_and_without_rights(tmp_path: Path) -> None:
    """Process 1 is its own, the name of the machine another, no capability is left, no terminal there."""
    command = "ls -d /proc/[0-9]* | wc -l; cat /proc/sys/kernel/hostname; grep CapEff /proc/self/status; tty"

    done = await run_in(bubblewrapped(tmp_path), tmp_path / "work", f"{command}; cat /proc/1/comm")

    count, host, capabilities, terminal, first = done.output.splitlines()
    assert int(count) <= 5
    assert (host, first, terminal) == ("sandbox", "warden", "not a tty")
    assert int(capabilities.split()[1], 16) == 0


async def test_not_even_root_changes_the_machine(tmp_path: Path) -> None:
    """The switches of the kernel cannot be written, whoever runs the sandbox."""
    switch = "/proc/sys/kernel/core_pattern"

    done = await run_in(
        bubblewrapped(tmp_path), tmp_path / "work", f'now=$(cat {switch}); echo "$now" > {switch} || echo no'
    )

    assert done.output.splitlines()[-1] == "no"


async def test_what_git_obeys_is_out_of_reach(tmp_path: Path) -> None:
    """Hooks and configuration can neither be written, removed nor replaced, yet git works."""
    work = repository(tmp_path / "work")
    before = (work / ".git" / "config").read_text()
    attacks = [
        "echo '#!/bin/sh' > .git/hooks/post-commit",
        "git config core.fsmonitor ./x",
        "rm -rf .git/hooks",
        "mv .git .git-old",
        "mv .git/hooks .git/old",
        "mv .git/config .git/old; echo '[core] fsmonitor=x' > .git/config",
        "ln -sf /tmp/x .git/config",
    ]

    for attack in attacks:
        assert (await run_in(bubblewrapped(tmp_path), work, attack)).status != 0, attack
    done = await run_in(bubblewrapped(tmp_path), work, f"echo two > a.txt && {COMMIT}")

    assert done == Done(0, "2\n")
    assert (work / ".git" / "config").read_text() == before
    assert not (work / ".git" / "hooks" / "post-commit").exists()
    assert git(work, "status", "--short") == ""


async def test_hooks_that_are_not_there_cannot_be_made(tmp_path: Path) -> None:
    """An empty place is held for them."""
    work = repository(tmp_path / "work")
    shutil.rmtree(work / ".git" / "hooks")

    done = await run_in(
        bubblewrapped(tmp_path), work, "mkdir -p .git/hooks && echo x > .git/hooks/pre-commit"
    )

    assert done.status != 0
    assert list((work / ".git" / "hooks").iterdir()) == []


async def test_a_planted_redirection_of_git_is_taken_away(tmp_path: Path) -> None:
    """A file that would have git read another configuration does not outlive its command."""
    work = repository(tmp_path / "work")
    warnings: list[str] = []

    await run_in(bubblewrapped(tmp_path, warnings=warnings), work, "mkdir x; echo ../x > .git/commondir")

    assert not (work / ".git" / "commondir").exists()
    assert [warning.partition(",")[0] for warning in warnings] == [f"removed {work}/.git/commondir"]


async def test_a_worktree_can_be_worked_in(tmp_path: Path) -> None:
    """Its repository, elsewhere, takes commits; the configuration and hooks there cannot be changed."""
    main = repository(tmp_path / "elsewhere" / "main")
    git(main, "worktree", "add", "-q", str(tmp_path / "work"))
    sandbox = bubblewrapped(tmp_path)
    there = shlex.quote(str(main))

    done = await run_in(sandbox, tmp_path / "work", f"echo two > a.txt && {COMMIT}; echo x > {there}/a.txt")
    for attack in (
        f"touch {there}/.git/hooks/x",
        "git config a.b c",
        "echo gitdir: x > .git",
        f"echo ../../../x > {there}/.git/worktrees/work/commondir",
    ):
        assert (await run_in(sandbox, tmp_path / "work", attack)).status != 0, attack

    assert done == Done(0, "2\n")
    assert (main / "a.txt").read_text() == "one\n"


async def test_a_directory_of_a_repository_sees_the_rest_to_read(tmp_path: Path) -> None:
    """In it git knows what has changed, and what lies beside it stays as it is."""
    top = repository(tmp_path / "top")
    (top / "part").mkdir()
    sandbox = bubblewrapped(tmp_path, workspace=top / "part")

    done = await run_in(
        sandbox, top / "part", "touch new ../new; git status --short; echo x > ../.git/hooks/x"
    )

    assert done.output.splitlines()[1] == "?? ./" or "?? new" in done.output
    assert (top / "part" / "new").exists()
    assert not (top / "new").exists()


@pytest.mark.parametrize("pointer", ["gitdir: {secret}/worktrees/x\n", "gitdir: x\n", "nonsense"])
async def test_a_repository_cannot_name_what_is_shown(tmp_path: Path, pointer: str) -> None:
    """A file ``.git`` that comes with the workspace shows nothing that does not name it back."""
    secret = tmp_path / "secret"
    (secret / "worktrees" / "x").mkdir(parents=True)
    (secret / "note").write_text("a secret")
    sandbox = bubblewrapped(tmp_path)
    own = tmp_path / "work" / "x"
    own.mkdir()
    (own / "commondir").write_text(str(secret))
    (tmp_path / "work" / ".git").write_text(pointer.format(secret=secret))

    done = await run_in(sandbox, tmp_path / "work", f"cat {shlex.quote(str(secret))}/note")

    assert done.status != 0
    assert "a secret" not in done.output


async def test_more_can_be_shown_and_the_workspace_only_to_read(tmp_path: Path) -> None:
    """Both are settings of the person; odek's own home stays shut below what is shown."""
    tools = tmp_path / "tools"
    (tools / "odek").mkdir(parents=True)
    (tools / "odek" / "secrets.env").write_text("KEY=1")
    (tools / "tool").write_text("#!/bin/sh\necho works\n")
    (tools / "tool").chmod(0o755)
    sandbox = bubblewrapped(tmp_path, readable=(tools,), read_only=True, odek_home=tools / "odek")

    done = await run_in(
        sandbox, tmp_path / "work", f"(cd {shlex.quote(str(tools))}; ./tool; ls odek; touch x); touch x"
    )

    assert done.output.splitlines()[0] == "works"
    assert len(done.output.splitlines()) == 3
    assert done.status != 0
    assert "secrets" not in done.output


async def test_odek_s_home_in_the_workspace_is_shut(tmp_path: Path) -> None:
    """Also where it lies in the very directory of the work."""
    own = tmp_path / "work" / ".odek"
    sandbox = bubblewrapped(tmp_path, odek_home=own)
    own.mkdir()
    (own / "secrets.env").write_text("KEY=1")

    done = await run_in(sandbox, tmp_path / "work", "ls -A .odek; touch .odek/x; mv .odek y")

    assert "secrets" not in done.output
    assert done.status != 0
    assert [path.name for path in own.iterdir()] == ["secrets.env"]


async def test_a_home_is_no_workspace(tmp_path: Path) -> None:
    """A sandbox that would show the whole home is refused, in words that say what to do."""
    with pytest.raises(ChildStartError, match="holds your home, which a sandbox keeps out; start odek in"):
        await run_in(bubblewrapped(tmp_path, workspace=tmp_path), tmp_path, "true")


async def test_what_is_run_and_where_comes_through_byte_for_byte(tmp_path: Path) -> None:
    """Quotes, line ends and other scripts, and a workspace with any name."""
    work = tmp_path / 'a "b"\n,é'
    work.mkdir()
    sandbox = bubblewrapped(tmp_path, workspace=work)
    text = 'it\'s "q" \\ $x\n\té'

    done = await run_in(
        sandbox, work, f'printf %s {shlex.quote(text)}; printf %s "$VARIABLE"; pwd', VARIABLE="v\n"
    )

    assert done == Done(0, f"{text}v\n{work}\n")


async def test_a_directory_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    """The error is that of the command, not of the sandbox."""
    with pytest.raises(ChildStartError, match=f"cannot enter '{tmp_path}/work/gone': No such file"):
        await run_in(bubblewrapped(tmp_path), tmp_path / "work" / "gone", "true")


async def refusal(tmp_path: Path, environment: dict[str, str], **settings: Any) -> str:
    """Return why there is no sandbox."""
    shown = Shown(workspace=tmp_path, home=tmp_path / "home", odek_home=tmp_path / "home" / ".odek")
    config = Config(sandbox=True, **settings)
    with pytest.raises(ConfigError) as caught:
        async with open_sandbox(config, shown, environment, lambda _text: None):
            pass
    return str(caught.value)


async def test_a_sandbox_that_is_there_but_forbidden_is_told(tmp_path: Path) -> None:
    """Something is really run in it, and what it complains about is in the refusal, on one line."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "bwrap").write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n"
    )
    (folder / "bwrap").chmod(0o755)
    (tmp_path / "work").mkdir()

    shown = Shown(workspace=tmp_path / "work", home=tmp_path / "h", odek_home=tmp_path / "h" / ".odek")
    with pytest.raises(ConfigError) as caught:
        async with open_sandbox(Config(sandbox=True), shown, {"PATH": f"{folder}:/usr/bin:/bin"}, print):
            pass

    assert "bubblewrap does not work (bwrap: No permissions to create a new namespace)" in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_program_that_the_workspace_brings_is_no_sandbox(tmp_path: Path) -> None:
    """Found on the ``PATH`` or not, it is not used: it could be anything."""
    (tmp_path / "bwrap").symlink_to(BUBBLEWRAP)

    said = await refusal(tmp_path, {"PATH": f"{tmp_path}:."})

    assert "bubblewrap is not installed; docker is not installed" in said


async def test_the_kind_of_sandbox_can_be_demanded(tmp_path: Path) -> None:
    """What was not asked for is not tried."""
    said = await refusal(tmp_path, {"PATH": str(Path(BUBBLEWRAP).parent)}, sandbox_backend="docker")

    assert "bubblewrap" not in said
    assert "docker" in said
