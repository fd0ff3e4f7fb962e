"""``python -m odek`` is the command ``odek``."""

from odek.cli.main import entry

entry()
