"""Programs that print names of files: which names that may be."""

from collections.abc import Callable, Sequence
from typing import Final

from odek.trust.shell.words import Word

__all__ = ["found_by_find", "listed", "start_words"]

_FIND_TESTS: Final = frozenset(
    {
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-regex",
        "-mtime",
        "-newer",
        "-size",
        "-empty",
        "-mmin",
    }
)
# What lies below a directory, so deep that any guarded place below it is met.
_BELOW: Final = ("", "/*", "/*/*", "/*/*/*")
_GIT_LISTS: Final = frozenset(
    {"ls-files", "ls-tree", "diff", "diff-tree", "diff-index", "diff-files", "show", "log", "grep"}
)
_GIT_NAMES_ONLY: Final = frozenset({"--name-only", "-l", "--files-with-matches"})
_ANYTHING: Final = Word("*", glob=True)


def listed(
    program: str, arguments: Sequence[Word], is_outside: Callable[[Word], bool]
) -> tuple[Word, ...] | None:
    """Return patterns for the names that a command prints, None when it prints something else.

    What lies below a directory for which ``is_outside`` says yes is taken as data: nobody
    reading the command knows what is there.
    """
    texts = {word.text for word in arguments}
    operands = [word for word in arguments if not word.text.startswith("-")]
    match program:
        case "ls" | "dir" | "vdir":
            return _listed_by_ls(arguments, operands)
        case "find" | "gfind" if not any(
            text.startswith(("-exec", "-ok", "-printf", "-ls")) for text in texts
        ):
            return tuple(_below(found_by_find(arguments), is_outside))
        case "fd" | "fdfind" if not texts & {"-x", "-X", "--exec", "--exec-batch"}:
            return tuple(_below(operands[1:] or [Word(".")], is_outside))
        case "rg" | "grep" | "ag" | "ack" if texts & {
            "-l",
            "--files-with-matches",
            "-rl",
            "-lr",
            "--files",
            "-rlE",
        }:
            return tuple(_below(operands[1:] or [Word(".")], is_outside))
        case "git" if operands and operands[0].text in _GIT_LISTS:
            only_names = operands[0].text == "ls-files" or texts & _GIT_NAMES_ONLY
            return tuple(_below([Word(".")], is_outside)) if only_names else None
    return None


def _listed_by_ls(arguments: Sequence[Word], operands: list[Word]) -> tuple[Word, ...] | None:
    flags = "".join(word.text for word in arguments if word.text.startswith("-") and word.text[:2] != "--")
    if any(letter in flags for letter in "lgnoiRs"):
        return None  # more than names on a line
    if not operands:
        return (_ANYTHING,)
    only_themselves = "d" in flags or all(word.glob for word in operands)
    return tuple(operands) if only_themselves else (*operands, _ANYTHING)


def _below(starts: Sequence[Word], is_outside: Callable[[Word], bool]) -> list[Word]:
    """Return ``starts`` and patterns for what lies below each."""
    found: list[Word] = []
    for start in starts:
        foreign = start.foreign or is_outside(start)
        depths = ("",) if start.glob else _BELOW
        found += [
            Word(start.text + depth, start.glob or bool(depth), start.raw, start.hidden, foreign)
            for depth in depths
        ]
    return found


def start_words(words: Sequence[Word]) -> list[Word]:
    """Return the directories that ``find`` starts from: what stands before its expression."""
    starts: list[Word] = []
    for word in words:
        if word.text.startswith(("-", "(", "!", ",")) and word.text not in {"-", "-H", "-L", "-P"}:
            break
        if not word.text.startswith("-"):
            starts.append(word)
    return starts


def found_by_find(words: Sequence[Word]) -> list[Word]:
    """Return what ``{}`` may stand for: the start itself, or below it what a test lets through."""
    starts = start_words(words) or [Word(".")]
    # All but a few is as good as all.
    given = [
        word.text
        for at, word in enumerate(words)
        if word.text in _FIND_TESTS and (not at or words[at - 1].text not in {"!", "-not"})
    ]
    if not given:
        return starts
    names = [words[at + 1] for at, word in enumerate(words[:-1]) if word.text in {"-name", "-iname"}]
    if len(given) == 1 and names:
        return [
            Word(f"{start.text}/{name.text}", glob=True, raw=start.raw, hidden=start.hidden)
            for start in starts
            for name in names
        ]
    return [start.with_text(f"{start.text}/found") for start in starts]
