"""A process that has a worktree until it is killed.

    python -m tests.support.worktree_owner REPOSITORY HOME

prints where the worktree is.
"""

import os
import sys
from pathlib import Path

import trio

from odek.tools.repository import find_repository
from odek.tools.worktree import open_worktree, plan_worktree

__all__: list[str] = []


async def main(workspace: Path, home: Path) -> None:
    """Make a worktree, say where, and wait."""
    planned = plan_worktree(home, await find_repository(workspace, os.environ))
    async with open_worktree(planned, os.environ, lambda _: None):
        sys.stdout.write(f"{planned.place}\n")
        sys.stdout.flush()
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]), Path(sys.argv[2]))
