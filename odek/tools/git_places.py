"""Where git keeps a person's and a repository's own rules of what is ignored, found without running it."""

import os
from collections.abc import Iterator
from pathlib import Path

from odek.errors import ToolError
from odek.home import person_home
from odek.patterns import late_pattern
from odek.tools.regular import open_regular

__all__ = ["PLACES", "read_text", "rules_besides"]

FILE_BYTES = 1024 * 1024
"""Read of one file of rules or settings; more is neither but an accident."""

PLACES = ("HOME", "XDG_CONFIG_HOME")
"""Variables that say where a person's own rules lie."""

_SYSTEM_CONFIG = Path("/etc/gitconfig")
_SETTING = late_pattern(
    r"""(?mi)^[ \t]*(?:\[[ \t]*(?P<section>[^\]\n]*?)[ \t]*\]|excludesfile[ \t]*=[ \t]*(?P<file>.*))"""
)


def rules_besides(root: Path) -> Iterator[Path]:
    """Yield the files of rules beside those of ``.gitignore`` that hold below ``root``, the weakest first.

    These are the one that ``core.excludesFile`` names and ``info/exclude``, which all worktrees of a
    repository share. They need not be there. Configuration that other configuration includes is
    left aside.
    """
    common = _common_directory(root)
    yield _excludes_file(common / "config")
    yield common / "info" / "exclude"


def read_text(file: Path) -> str:
    """Return the text of ``file``, "" where there is none or nothing that could be read."""
    try:
        with open_regular(file, file.name) as opened:
            return opened.read(FILE_BYTES).decode("utf-8", "surrogateescape")
    except (ToolError, OSError):
        return ""


def _common_directory(root: Path) -> Path:
    """Return where the repository around ``root`` is kept: for a linked worktree, in that of the main one."""
    own = Path(os.path.realpath(root / ".git"))
    pointer = read_text(own)
    if pointer.startswith("gitdir: "):  # of a linked worktree, or a submodule
        own = _pointed(root, pointer.removeprefix("gitdir: "))
    shared = read_text(own / "commondir")
    return _pointed(own, shared) if shared.strip() else own


def _pointed(directory: Path, text: str) -> Path:
    """Return the path that ``text`` names, seen from ``directory``."""
    name = text.strip("\r\n")
    return Path(os.path.realpath(directory / name)) if "\0" not in name else directory


def _excludes_file(repository_config: Path) -> Path:
    """Return the file of rules that a person has for all repositories, or for this one."""
    home = person_home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config", "git")
    named = ""
    for file in (_SYSTEM_CONFIG, config / "config", home / ".gitconfig", repository_config):
        section = ""
        for match in _SETTING.finditer(read_text(file)):
            section = section if match["section"] is None else match["section"].lower()
            if match["file"] is not None and section == "core":
                named = match["file"].partition(" #")[0].partition(" ;")[0].strip(' \t\r"')
    if named.startswith("~/"):
        return home / named[2:]
    return Path(named) if named.startswith("/") else config / "ignore"
