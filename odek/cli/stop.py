"""``odek stop PID``: end a running odek process of this home with everything that it started."""

import argparse
import os
import signal
import time

from odek.cli.options import whole_number

__all__ = ["add_arguments", "run"]

GRACE_SECONDS = 8.0
"""For a process to save its session and end what it started; its wardens see to the rest after SIGKILL."""

POLL_SECONDS = 0.02


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the process."""
    parser.add_argument("pid", metavar="PID", type=whole_number(1), help="as `odek ps` shows it")


def run(arguments: argparse.Namespace) -> int:
    """Ask it to end, and kill it if it does not."""
    from odek.errors import ConfigError
    from odek.home import home_directory
    from odek.processes import is_running

    home, pid = home_directory(os.environ), arguments.pid
    if not is_running(home, pid):
        raise ConfigError(f"process {pid} is no running odek process of {home}; see `odek ps`")
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            break
        except PermissionError:
            raise ConfigError(f"process {pid} belongs to another user") from None
        deadline = time.monotonic() + GRACE_SECONDS
        while is_running(home, pid) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        if not is_running(home, pid):
            break
    print(f"stopped {pid}")
    return 0
