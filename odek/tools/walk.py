"""Walking a directory tree as git sees it: ignored files left out, links not followed."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from odek.tools.gitignore import IgnoreRules
from odek.tools.paths import shown_name
from odek.tools.regular import kind_of

__all__ = ["Entry", "Walk"]

WALKED_ENTRIES = 200_000
"""Entries that a walk looks at, some 2 s; it says when there were more."""


class Entry(msgspec.Struct, frozen=True):
    """A file or directory. ``relative`` is seen from the start of the walk, with slashes.

    A link is a link here, whatever it leads to. ``oddity`` says of what is neither a file, a
    directory nor a link what it is, such as "named pipe"; it cannot be read.
    """

    path: str
    relative: str
    is_directory: bool
    is_link: bool = False
    is_regular: bool = False
    oddity: str = ""

    @property
    def shown(self) -> str:
        """The relative path, fit for a message."""
        return shown_name(self.relative)


class Walk:
    """Iterates over a tree: a directory, the files in it, the directories in it; each kind by name.

    ``check`` is called now and then and may raise to give up. ``ignored`` and
    ``unreadable`` count what was left out; ``incomplete`` tells that the walk ended at
    its limit.
    """

    def __init__(self, start: Path, workspace: Path, check: Callable[[], None]) -> None:
        self.ignored = 0
        self.unreadable = 0
        self.incomplete = False
        self.rules = IgnoreRules.at(start, workspace)
        self._start = start
        self._check = check
        self._left = WALKED_ENTRIES

    def __iter__(self) -> Iterator[Entry]:
        waiting = [(str(self._start), "", self.rules)]
        while waiting and not self.incomplete:
            directory, prefix, rules = waiting.pop()
            if prefix:
                yield Entry(directory, prefix[:-1], is_directory=True)
                rules = rules.with_file(Path(directory), Path(directory, ".gitignore"))
            entries = self.children(directory, prefix, rules)
            yield from (entry for entry in entries if not entry.is_directory)
            below = [entry for entry in entries if entry.is_directory]
            waiting += [(entry.path, f"{entry.relative}/", rules) for entry in reversed(below)]

    def children(self, directory: str, prefix: str, rules: IgnoreRules) -> list[Entry]:
        """Return what is in one directory and not ignored, by name; ``.git`` never is."""
        entries: list[Entry] = []
        self._check()
        try:
            with os.scandir(directory) as found:
                for item in found:
                    self._left -= 1
                    if self._left < 0:
                        self.incomplete = True
                        break
                    if self._left % 1024 == 0:
                        self._check()
                    is_directory = item.is_dir(follow_symlinks=False)
                    if item.name == ".git":
                        continue
                    if rules.ignore(item.path, is_directory=is_directory):
                        self.ignored += 1
                    else:
                        entries.append(_entry(item, f"{prefix}{item.name}", is_directory=is_directory))
        except OSError:
            self.unreadable += 1
        return sorted(entries, key=lambda entry: entry.relative)


def _entry(item: os.DirEntry[str], relative: str, *, is_directory: bool) -> Entry:
    is_link, is_regular = item.is_symlink(), item.is_file(follow_symlinks=False)
    oddity = ""
    if not (is_directory or is_link or is_regular):
        with suppress(OSError):  # gone by now
            oddity = kind_of(item.stat(follow_symlinks=False).st_mode).removeprefix("a ")
    return Entry(item.path, relative, is_directory, is_link, is_regular, oddity)
