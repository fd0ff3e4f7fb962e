"""``odek version``."""

import argparse
import sys

from odek import __version__


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This command takes no arguments."""


def run(arguments: argparse.Namespace) -> int:  # noqa: ARG001 - the signature of every command
    """Print the versions of odek and Python."""
    python = ".".join(map(str, sys.version_info[:3]))
    print(f"odek {__version__} (Python {python}, {sys.platform})")
    return 0
