r"""The rules of ``.gitignore`` files, as git applies them to a walk from the top.

A walk that does not enter what is ignored asks about one entry at a time, so that a rule
speaks about the entry itself, never about what is above it. That is git's own reading, by
which ``*``, ``!*/``, ``!*.py`` leaves all Python files; libraries that judge a whole path at
once, its parents included, come to other answers.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from odek.tools.git_places import read_text, rules_besides
from odek.tools.globs import PathPattern

__all__ = ["IgnoreRules", "parse_rules"]


class Rule(msgspec.Struct, frozen=True):
    """One line: what it matches, whether only directories, whether it ends being ignored."""

    pattern: PathPattern
    anchored: bool
    directories_only: bool
    negated: bool


def parse_rules(text: str) -> Iterator[Rule]:
    """Yield the rules of a file, in order."""
    for raw in text.removeprefix("\ufeff").split("\n"):
        line = _without_trailing_blanks(raw.removesuffix("\r"))
        if line.startswith("#"):
            continue
        negated = line.startswith("!")
        body = line[negated:]
        directories_only = body.endswith("/")
        body = body.removesuffix("/")
        if body:
            anchored = "/" in body
            yield Rule(PathPattern(body.removeprefix("/")), anchored, directories_only, negated)


def _without_trailing_blanks(line: str) -> str:
    kept = line.rstrip(" ")
    escapes = len(kept) - len(kept.rstrip("\\"))
    return line[: len(kept) + escapes % 2]  # a backslash keeps the blank behind it


class IgnoreRules:
    """The rules in force in one directory: those of git, from the repository's root down."""

    def __init__(self, chain: Iterable[tuple[str, tuple[Rule, ...]]] = ()) -> None:
        self._chain = tuple(chain)  # (directory with a final slash, its rules last first), innermost first

    @classmethod
    def at(cls, directory: Path, workspace: Path) -> "IgnoreRules":
        """Return the rules for the entries of ``directory``.

        They begin at the root of the repository around it, or else at the workspace. A
        directory that is itself ignored was asked for by name: outer rules do not count.
        """
        above = (directory, *directory.parents)
        root = next((path for path in above if os.access(path / ".git", os.F_OK)), None)
        if root is None:
            root = workspace if directory.is_relative_to(workspace) else directory
        rules = cls()
        for file in rules_besides(root):
            rules = rules.with_file(root, file)
        for path in reversed(above[: above.index(root)]):
            rules = rules.with_file(path.parent, path.parent / ".gitignore")
            if rules.ignore(str(path), is_directory=True):
                rules = cls()
        return rules.with_file(directory, directory / ".gitignore")

    def with_file(self, directory: Path, file: Path) -> "IgnoreRules":
        """Return these rules and those that ``file`` sets for everything below ``directory``."""
        rules = tuple(reversed(list(parse_rules(read_text(file)))))
        if not rules:
            return self
        return IgnoreRules(((f"{directory}/".replace("//", "/"), rules), *self._chain))

    def ignore(self, path: str, *, is_directory: bool) -> bool:
        """Tell whether an absolute path below is ignored, provided that its directory is not.

        The innermost file that says anything decides, in it the last line that does.
        """
        for directory, rules in self._chain:
            names = path[len(directory) :].split("/")
            for rule in rules:
                if rule.directories_only and not is_directory:
                    continue
                if rule.pattern.matches(names if rule.anchored else names[-1:]):
                    return not rule.negated
        return False
