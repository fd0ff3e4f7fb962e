"""``odek completion``: a script that teaches a shell odek's commands and flags."""

import argparse

SHELLS = ("bash", "zsh", "fish", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the shell's name."""
    parser.add_argument("shell", choices=SHELLS, help="the shell to write the script for")
    parser.epilog = """\
examples:
  odek completion bash > ~/.local/share/bash-completion/completions/odek
  odek completion zsh  > "${fpath[1]}/_odek"
  odek completion fish > ~/.config/fish/completions/odek.fish"""


def run(arguments: argparse.Namespace) -> int:
    """Print the completion script."""
    import shtab

    from odek.cli.main import build_parser

    print(shtab.complete(build_parser(None), arguments.shell))
    return 0
