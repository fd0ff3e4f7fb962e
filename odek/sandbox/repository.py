"""The git repository of a workspace: what git writes there, and what it obeys. Reads the disk."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

__all__ = ["Repository", "find_repository"]

POINTER_BYTES = 4096
"""Of a file that names a directory; a path is no longer."""

MODULE_DEPTH = 3
"""How deep below ``modules`` a submodule's configuration is looked for: names may hold slashes."""


class Repository(msgspec.Struct, frozen=True):
    """Where git keeps what belongs to a working tree.

    ``common`` is the directory that all worktrees share; the repository ``is_linked`` if the
    working tree ``top`` is not the main one. ``written`` are places inside of a linked one's
    common directory that git writes, ``obeyed`` those anywhere that decide which programs
    git runs; ``hooks`` is one more, which may not be there yet. ``must_stay_absent`` would
    redirect git, were they made.
    """

    top: Path
    common: Path
    is_linked: bool
    written: tuple[Path, ...]
    obeyed: tuple[Path, ...]
    hooks: Path | None
    must_stay_absent: tuple[Path, ...]


def find_repository(workspace: Path) -> Repository | None:
    """Return the repository that ``workspace``, a resolved path, is in; None if there is none to show."""
    for top in (workspace, *workspace.parents):
        mark = top / ".git"
        if mark.is_symlink():
            return None  # it may lead anywhere
        if mark.is_dir():
            return _main(top, mark)
        if mark.is_file():
            return _linked(top, mark)
    return None


def _main(top: Path, common: Path) -> Repository:
    return Repository(
        top=top,
        common=common,
        is_linked=False,
        written=(),
        obeyed=tuple(_obeyed(common)),
        hooks=_hooks(common, top),
        must_stay_absent=tuple(
            path for name in ("commondir", "config.worktree") if not (path := common / name).exists()
        ),
    )


def _linked(top: Path, mark: Path) -> Repository | None:
    """Return the repository of a worktree if that is one of its own; anyone can write such a file."""
    own = _pointed(mark, "gitdir: ")
    if own is None or own.is_relative_to(top) or own.parent.name != "worktrees":
        return None
    common = own.parent.parent
    if _pointed(own / "commondir") != common or _pointed(own / "gitdir") != mark:
        return None
    return Repository(
        top=top,
        common=common,
        is_linked=True,
        written=(*(path for name in ("objects", "refs", "logs") if (path := common / name).is_dir()), own),
        obeyed=(*_obeyed(common), *_existing(own, "commondir", "gitdir", "config.worktree"), mark),
        hooks=_hooks(common, top),
        must_stay_absent=() if (own / "config.worktree").exists() else (own / "config.worktree",),
    )


def _obeyed(common: Path) -> Iterator[Path]:
    yield from _existing(common, "config", "config.worktree", "commondir")
    modules = common / "modules"
    for depth in range(1, MODULE_DEPTH + 1):
        for name in ("config", "hooks"):
            yield from sorted(modules.glob("/".join(["*"] * depth + [name])))


def _hooks(common: Path, top: Path) -> Path | None:
    """Return the directory of hooks; None if it is a link to where no sandbox may write anyway."""
    hooks = (common / "hooks").resolve()
    return hooks if hooks.is_relative_to(common) or hooks.is_relative_to(top) else None


def _existing(folder: Path, *names: str) -> Iterator[Path]:
    return (path for name in names if (path := folder / name).exists() and not path.is_symlink())


def _pointed(file: Path, prefix: str = "") -> Path | None:
    """Return the path that ``file`` names, resolved; None if it names none."""
    try:
        with file.open("rb") as stream:
            text = stream.read(POINTER_BYTES).decode("utf-8", "surrogateescape").strip()
    except OSError:
        return None
    if not text.startswith(prefix) or "\n" in text or "\0" in text:
        return None
    return (file.parent / text.removeprefix(prefix)).resolve()
