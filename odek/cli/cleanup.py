"""``odek cleanup``: remove what killed processes left behind. Nothing that holds anything is touched."""

import argparse
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")


def run(arguments: argparse.Namespace) -> int:
    """Sweep the home directory and all below it."""
    from odek.home import home_directory
    from odek.sessions.child_usage import stale_usage
    from odek.sessions.store import SessionStore
    from odek.storage.files import abandoned_temporaries, sweep_temporaries
    from odek.text import visible
    from odek.tools.worktree import stale_worktrees

    home = home_directory(os.environ)
    remove = not arguments.dry_run
    sweep = sweep_temporaries if remove else abandoned_temporaries
    found = chain(
        (path for place in _directories(home) for path in sweep(place)),
        SessionStore(home / "sessions").stale_locks(remove=remove),
        stale_usage(home, remove=remove),
        stale_worktrees(home, remove=remove),
    )
    is_clean = True
    for path in found:  # told at once: it may break off later
        is_clean = False
        done = "removed" if remove else "would remove"
        print(f"{done} {visible(str(path.relative_to(home)), keep_newlines=False)}")
    if is_clean:
        print(f"nothing to clean up in {home}")
    return 0


def _directories(home: Path) -> Iterator[Path]:
    """Yield ``home`` and what lies below it, without what links lead to and the trees of worktrees."""
    from odek.tools.worktree import WORKTREES

    yield home
    for place, names, _ in os.walk(home):
        names[:] = sorted(name for name in names if not Path(place, name).is_symlink())
        yield from (Path(place, name) for name in names)
        if Path(place) == home / WORKTREES:  # each is somebody's, who holds it, or goes as a whole
            names.clear()
