"""``python -m odek`` is the command ``odek``."""

import sys

__all__ = ["entry"]


def entry() -> None:
    """Run ``odek`` with the process's arguments; the console script. Ctrl-C ends the loading too."""
    try:
        from odek.cli.main import entry as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    entry()
