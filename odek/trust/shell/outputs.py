"""What commands print, found without running them: a text, file names, a number, or nobody knows."""

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from typing import Final, assert_never

import msgspec

from odek.trust.paths import UNRESOLVED, place
from odek.trust.shell import listings
from odek.trust.shell.tree import DECODERS
from odek.trust.shell.values import Value
from odek.trust.shell.words import Word, decode_ansi_c

__all__ = ["Names", "Number", "Output", "Text", "Unknown", "as_value", "decode_base64", "printed"]


class Text(msgspec.Struct, frozen=True):
    """Exactly this text."""

    text: str


class Names(msgspec.Struct, frozen=True):
    """Names of files, one a line, each of them one that a word matches."""

    words: tuple[Word, ...]


class Number(msgspec.Struct, frozen=True):
    """A number, whatever it is."""


class Unknown(msgspec.Struct, frozen=True):
    """Something that only running it would tell.

    ``foreign`` says that data decides it, ``hidden`` that a decoder produced it. ``text`` is
    what is known of it, ``${unresolved}`` in place of the rest. ``inside`` says that it is the
    content of files of the workspace, ``files`` which ones it is read from.
    """

    foreign: bool = True
    hidden: bool = False
    text: str = ""
    inside: bool = False
    files: tuple[str, ...] = ()


Output = Text | Names | Number | Unknown

# These print what they read, or some lines of it.
_PASSES: Final = frozenset(
    {"cat", "head", "tail", "sort", "uniq", "shuf", "tac", "tee", "grep", "egrep", "fgrep"}
)
_SHOWS_FILES: Final = frozenset(
    {"cat", "zcat", "gunzip", "gzip", "xzcat", "bzcat", "zstdcat", "head", "tail", "pv"}
)
_TAKES_VALUE: Final = frozenset({"-n", "-c", "-k", "-t", "-m", "-A", "-B", "-C", "-f", "-s", "-w"})
# What these print is about this machine and its clock, not text that somebody else wrote.
_PRINTS_FACTS: Final = frozenset(
    {"arch", "basename", "cd", "command", "date", "dirname", "hostname", "id", "logname", "mktemp", "pwd"}
    | {"readlink", "realpath", "tty", "type", "uname", "whereis", "which", "whoami"}
)
_GIT_FACTS: Final = frozenset({"rev-parse", "describe", "symbolic-ref", "merge-base", "branch", "write-tree"})
_PRINTS_NUMBERS: Final = frozenset({"nproc", "getconf", "tput", "pgrep", "pidof", "seq", "bc"})
_SIZE_OR_TIME: Final = re.compile(r"%[sYXZWaughibBofmn\d]+$")
_COUNTING_AWK: Final = re.compile(r"\s*END\s*\{\s*print\s+NR\s*\}\s*$")


def printed(
    words: Sequence[Word], stdin: Output | None, cwd: str, is_outside: Callable[[Word], bool]
) -> Output:
    """Return what the command ``words`` prints when it reads ``stdin``."""
    if not words or not words[0].known:
        return Unknown()
    program, arguments = words[0].text.rsplit("/", 1)[-1], words[1:]
    if program in {"command", "builtin", "env", "sudo"} and arguments[:1] and arguments[0].text[:1] != "-":
        return printed(arguments, stdin, cwd, is_outside)
    if all(word.known for word in arguments):
        fixed = _fixed_output(program, [word.text for word in arguments], cwd)
        if fixed is not None:
            return Text(fixed)
    if program in DECODERS and isinstance(stdin, Text):
        decoded = decode_base64(stdin.text)
        return Unknown(hidden=True) if decoded is None else Text(decoded)
    if _is_number(program, arguments, stdin):
        return Number()
    names = _names(program, arguments, is_outside)
    if names is not None:
        return Names(names)
    if stdin is not None and _passes(program, arguments):
        return stdin
    by_data = any(word.foreign or word.hidden for word in arguments)
    if not by_data and (program in _PRINTS_FACTS or _git_fact(program, arguments)):
        return Unknown(foreign=False)
    inside = program in _SHOWS_FILES and bool(_operands(arguments))
    if inside and not any(UNRESOLVED in word.text or is_outside(word) for word in _operands(arguments)):
        return Unknown(inside=True, files=_files(arguments, cwd))
    hidden = program in DECODERS or (isinstance(stdin, Unknown) and stdin.hidden)
    files = _files(arguments, cwd) if program in _SHOWS_FILES else ()
    return Unknown(hidden=hidden or any(word.hidden for word in arguments), files=files)


def _files(arguments: Sequence[Word], cwd: str) -> tuple[str, ...]:
    """Return the files that are named in full among the operands."""
    return tuple(place(word.text, cwd).text for word in _operands(arguments) if word.known and not word.glob)


def as_value(output: Output) -> Value:
    """Return an output as what a word may be."""
    match output:
        case Text(text):
            return Value.of(text)
        case Names(words):
            texts = tuple(dict.fromkeys(word.marked() for word in words)) or ("",)
            return Value(texts, any(word.foreign for word in words), any(word.hidden for word in words))
        case Number():
            return Value.of("0")
        case Unknown(foreign=foreign, hidden=hidden):
            return Value((UNRESOLVED,), foreign, hidden)
        case unreachable:
            assert_never(unreachable)


def decode_base64(text: str) -> str | None:
    """Return the text that ``text`` encodes, None when it is no base64 of text."""
    try:
        return base64.b64decode(text.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def _operands(arguments: Sequence[Word]) -> list[Word]:
    """Return the words that are neither options nor the values of common ones."""
    found: list[Word] = []
    before = ""
    for word in arguments:
        if not word.text.startswith("-") and before not in _TAKES_VALUE:
            found.append(word)
        before = word.text
    return found


def _is_number(program: str, arguments: Sequence[Word], stdin: Output | None) -> bool:
    texts = [word.text for word in arguments]
    match program:
        case "wc":
            return all(word.known and "[" not in word.text for word in arguments)
        case "grep" | "egrep" | "fgrep" | "rg":
            return any(text in {"-c", "--count"} for text in texts) and len(_operands(arguments)) < 3
        case "stat":
            return any(_SIZE_OR_TIME.search(text) and "%n" not in text for text in texts)
        case "expr":
            return any(text in {"+", "-", "*", "/", "%"} for text in texts)
        case "git":
            return texts[:1] == ["rev-list"] and "--count" in texts
        case "awk" if any(_COUNTING_AWK.match(text) for text in texts):
            return True
        case "tr" | "awk" | "cut" | "sed" | "xargs" if isinstance(stdin, Number):
            return program != "xargs" or not _operands(arguments)
    return program in _PRINTS_NUMBERS


def _names(
    program: str, arguments: Sequence[Word], is_outside: Callable[[Word], bool]
) -> tuple[Word, ...] | None:
    """Return the names of files that a command prints, None when it prints something else."""
    if program in {"echo", "printf"}:
        words = [word for word in arguments if "%" not in word.text and not word.text.startswith("-")]
        patterns = any(word.glob or word.maybe for word in words)
        return tuple(words) if patterns and not any(UNRESOLVED in word.text for word in words) else None
    operands = _operands(arguments)
    known = bool(operands) and not any(UNRESOLVED in word.text for word in operands)
    match program:
        case "realpath" | "readlink" if known:
            return tuple(operands)
        case "dirname" if known:
            return tuple(word.with_text(word.text.rstrip("/").rpartition("/")[0] or ".") for word in operands)
        case "basename" if known:
            return tuple(word.with_text(word.text.rstrip("/").rpartition("/")[2]) for word in operands[:1])
    return listings.listed(program, arguments, is_outside)


def _passes(program: str, arguments: Sequence[Word]) -> bool:
    """Whether a command prints what it reads from its input, or some lines of that."""
    operands = [word for word in _operands(arguments) if not word.text.isdigit()]
    texts = {word.text for word in arguments}
    match program:
        case "tee":
            return True
        case "grep" | "egrep" | "fgrep":
            return len(operands) < 2 and not texts & {"-o", "--only-matching"}
        case "tr":
            return bool(operands) and operands[0].text in {"\\n", "\n"}
        case "sed":
            return len(operands) == 1 and re.fullmatch(r"[\d,$]*[pdq]", operands[0].text) is not None
        case "xargs":
            return all(word.text == "echo" for word in operands)
    return program in _PASSES and not operands


def _git_fact(program: str, arguments: Sequence[Word]) -> bool:
    return program == "git" and bool(arguments) and arguments[0].text in _GIT_FACTS


def _fixed_output(program: str, arguments: list[str], cwd: str) -> str | None:
    """Return what a program prints, None when that depends on more than its words."""
    match program:
        case "echo":
            flags = [word for word in arguments[:2] if re.fullmatch(r"-[neE]+", word)]
            text = " ".join(arguments[len(flags) :])
            return decode_ansi_c(text) if any("e" in flag for flag in flags) else text
        case "printf" if arguments and not arguments[0].startswith("-"):
            return _printf(arguments[0], arguments[1:])
        case "pwd" if UNRESOLVED not in cwd:
            return cwd
        case "mktemp" if not any("/" in word for word in arguments):
            return "/tmp/tmp.0000000000"  # noqa: S108 - the shape of what it prints
        case "date" if not any("/" in word for word in arguments):
            return "00000000"
    return None


def _printf(form: str, arguments: list[str]) -> str | None:
    form = decode_ansi_c(form.replace("\\0", "\\"))
    pieces = re.split(r"%[-+ #0\d]*[bsdiouxX%]", form)
    kinds = re.findall(r"%[-+ #0\d]*([bsdiouxX%])", form)
    if any("%" in piece for piece in pieces) or UNRESOLVED in form:
        return None
    out: list[str] = []
    left, rounds = list(arguments), 0
    while rounds == 0 or (left and any(kind != "%" for kind in kinds)):
        rounds += 1
        out.append(pieces[0])
        for kind, piece in zip(kinds, pieces[1:], strict=True):
            if kind == "%":
                out.append("%")
            else:
                value = left.pop(0) if left else ""
                out.append(_converted(kind, value))
            out.append(piece)
    return "".join(out)


def _converted(kind: str, value: str) -> str:
    match kind:
        case "b":
            return decode_ansi_c(value)
        case "s":
            return value
        case _:
            return value if value.isdigit() else "0"
