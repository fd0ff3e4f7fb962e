"""``odek run``: one task."""

import argparse

from odek.cli import warmup
from odek.cli.options import add_agent_options, add_task

EPILOG = """\
examples:
  odek run "why does the build fail? @Makefile"
  make 2>&1 | odek run "why?"      what is piped in goes beside the task
  git diff | odek run -            the task itself from a pipe
  odek run -c a.py,b.py "compare these two"
  odek run --json "…" | jq .       every event as a line of JSON

`@path` in the task attaches that file. The session is kept: `odek continue`
goes on with it. Without a key and an endpoint the built-in offline model
answers, and `odek run help` says what it understands.

exit status:
  0 answered   1 failed   2 a limit was reached   3 setup   130 Ctrl-C"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the task and the common flags."""
    add_task(parser)
    parser.add_argument("--session", action="store_true", help="keep the session; it always is")
    parser.add_argument("--no-session", action="store_true", help="keep no session on disk")
    add_agent_options(parser)
    parser.epilog = EPILOG


def run(arguments: argparse.Namespace) -> int:
    """Run the task in a new session."""
    warmup.begin()
    from odek.cli.agent import run_once

    return run_once(arguments, resume=None)
