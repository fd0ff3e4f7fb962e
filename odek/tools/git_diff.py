"""What ``git diff-index`` writes: a list of files, and their diffs. Pure."""

import os
import re
from collections.abc import Iterator
from itertools import islice

import msgspec

from odek.text import visible

__all__ = ["Entry", "FileChange", "parse_changes", "parse_entries"]


class FileChange(msgspec.Struct, frozen=True):
    """One changed file.

    ``paths`` are relative to the workspace, two for one that was moved. ``diff`` is its part of
    ``git diff --binary``, None if that was too long to be read. It is ``exact`` unless it has
    bytes that are no UTF-8, which are replaced.
    """

    paths: tuple[str, ...]
    diff: str | None = None
    exact: bool = True


class Entry(msgspec.Struct, frozen=True):
    """A line of git's list: the status letter, the objects before and after, one path or two."""

    status: str
    ids: frozenset[bytes]
    paths: list[bytes]

    def shown(self, prefix: str) -> tuple[str, ...]:
        """Return the paths as people write them, relative to the workspace."""
        names = (os.path.relpath(os.fsdecode(path), prefix or ".") for path in self.paths)
        return tuple(visible(name, keep_newlines=False) for name in names)


def parse_changes(output: bytes, prefix: str, *, cut: bool = False) -> tuple[FileChange, ...]:
    """Return the changes that ``git diff-index --patch-with-raw -z`` tells.

    Args:
        output: First a list, then the diffs in its order.
        prefix: The workspace below the top, to which paths become relative.
        cut: The output breaks off, maybe within a diff.
    """
    listing, _, patch = output.partition(b"\0\0")
    sections = [section for section in re.split(rb"(?m)^(?=diff --git )", patch) if section]
    if cut:
        del sections[-1:]
    return tuple(_changes(parse_entries(listing), sections, prefix))


def parse_entries(listing: bytes) -> list[Entry]:
    """Return the entries that ``git diff-index --raw -z`` lists."""
    words = iter(listing.split(b"\0"))
    entries: list[Entry] = []
    for header in words:
        if header.startswith(b":"):
            _, _, old, new, status = header.split()
            count = 2 if status[:1] in b"RC" else 1
            paths = list(islice(words, count))
            entries.append(Entry(status[:1].decode(), frozenset({old, new}) - {b"0" * len(old)}, paths))
    return entries


def _changes(entries: list[Entry], sections: list[bytes], prefix: str) -> Iterator[FileChange]:
    at = 0
    for entry in entries:
        # What became a link, or was one, is removed and added.
        count = 2 if entry.status == "T" else 1
        whole = b"".join(sections[at : at + count]) if at + count <= len(sections) else None
        at += count
        if whole is None:
            yield FileChange(entry.shown(prefix))
        else:
            text = whole.decode("utf-8", "replace")
            yield FileChange(entry.shown(prefix), text, exact=text.encode() == whole)
