"""``odek continue``: go on with a session."""

import argparse

from odek.cli import warmup
from odek.cli.options import add_agent_options, add_session_option, add_task

EPILOG = """\
examples:
  odek continue "now fix it"
  odek continue --id 20261202-3f9c "and the tests?"

The newest session is the one that changed last; `odek session list` shows them.

exit status:
  as `odek run`; 3 also when another process has the session"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the task, the session and the common flags."""
    add_task(parser)
    add_session_option(parser)
    add_agent_options(parser)
    parser.epilog = EPILOG


def run(arguments: argparse.Namespace) -> int:
    """Run the task in the session."""
    warmup.begin()
    from odek.cli.agent import run_once

    return run_once(arguments, resume=arguments.id or "")
