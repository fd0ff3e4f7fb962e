"""Swaps a directory for a link to another one, and back, as fast as it can: DIRECTORY TARGET.

Ends when its standard input does.
"""

import select
import sys
import time
from pathlib import Path

MOMENT_SECONDS = 0.0003
"""Long enough that a call may find either, short enough to fall between two steps of one."""


def main() -> None:
    """Swap until nobody is there any more."""
    directory, target = map(Path, sys.argv[1:])
    aside = directory.with_name("aside")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not select.select([sys.stdin], [], [], 0)[0]:
        directory.rename(aside)
        directory.symlink_to(target)
        time.sleep(MOMENT_SECONDS)
        directory.unlink()
        aside.rename(directory)
        time.sleep(MOMENT_SECONDS)


if __name__ == "__main__":
    main()
