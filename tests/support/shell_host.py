"""A program that runs shell commands through the real tool, to be killed from outside.

It imports everything once and then, for each line ``WORKSPACE<TAB>COMMAND`` of its input,
forks a process that runs the command as an agent would; it prints the pid of each. Its one
argument, if it has one, is the path of bubblewrap, to run them in a sandbox.
"""

import os
import signal
import sys
from pathlib import Path

import trio

from odek.config.settings import ShellSettings
from odek.sandbox.boxes import Bubblewrap, Planted, Shown
from odek.sandbox.launcher import Here, Launcher
from odek.tools.shell import Shell
from odek.trust.secrets import Masker
from subagent.background import open_background
from tests.support.tool_calls import call

__all__: list[str] = []


def launcher(workspace: Path) -> Launcher:
    """Return where commands run."""
    if len(sys.argv) == 1:
        return Here()
    home = workspace.parent / "home"
    return Bubblewrap(sys.argv[1], Shown(workspace=workspace, home=home, odek_home=home), Planted(print))


async def run(workspace: str, command: str) -> None:
    """Run one command, then stay like an agent that waits for its next task."""
    async with open_background() as background:
        place = Path(workspace)
        shell = Shell(place, ShellSettings(), dict(os.environ), background, Masker(), launcher(place))
        await call(shell, command=command)
        await trio.sleep_forever()


def main() -> None:
    """Serve until the input ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever gets killed needs no reaping
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            workspace, _, command = line.rstrip("\n").partition("\t")
            trio.run(run, workspace, command)
            os._exit(0)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
