"""The class of one simple command, from the table of programs and the checks of single ones."""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from odek.trust import paths
from odek.trust.paths import UNRESOLVED
from odek.trust.risk import Part, Risk
from odek.trust.shell import archives, builtins, checks, unlisted
from odek.trust.shell.call import Call, Context, parse_arguments, shell_text
from odek.trust.shell.outputs import Unknown
from odek.trust.shell.programs import LOOKED_FOR, Rule, canonical, names_matching, rule_for
from odek.trust.shell.words import Word

__all__ = ["judge_command"]

# Where a system keeps its programs; a path elsewhere is a file somebody put there.
_PROGRAM_DIRECTORY = re.compile(r"(/usr(/local)?)?/s?bin|/opt/homebrew/bin|/usr/games|/snap/bin")
_VERSION = frozenset({"--version", "--help", "-V"})
_VERSION_SHORT = re.compile(
    r"node|nodejs|perl|ruby|php|lua|luajit|gcc|g\+\+|java|make|tar|git|go|rustc|cargo"
)
# A program behind a variable is not what a reader of the command sees, even if its value is known.
_INDIRECT = re.compile(r"\$[\w{(@*!]|`")
# A script is named by one of so many words; no measurement behind it.
_SCRIPT_LIMIT = 20
_ASSIGNMENT = re.compile(r"[A-Za-z_][\w.%]*=")


def judge_command(words: Sequence[Word], context: Context) -> list[Part]:
    """Return the parts of the verdict on one command; ``words`` are its words, program first."""
    if not words:
        return []
    # Words that one expansion gave share their source: it is said once.
    text = " ".join(next(group).raw for _, group in groupby(words, key=lambda word: id(word.raw)))
    program, arguments = words[0], list(words[1:])
    if not program.known:
        return _unresolved_program(program, arguments, text, context)
    if program.text in context.functions:
        return [Part(text, Risk.SAFE, "calls a function defined in this command", program=program.text)]
    name, located = _locate(program.text, text, context)
    rule = rule_for(name)
    if rule is None:
        unknown = Part(text, Risk.UNKNOWN, f"no rule knows the program {name!r}", program=name)
        return _with_code(located or [unknown], words, context)
    if _INDIRECT.search(program.raw):
        located = [*located, Part(text, Risk.CODE_EXECUTION, "names its program by a variable", program=name)]
    if _only_asks_version(name, arguments):
        return located or [Part(text, Risk.SAFE, "asks for version or help", program=name)]
    parts = [*located, *_judge_known(name, rule, arguments, text, context)]
    return _with_code(parts, words, context)


def _with_code(parts: list[Part], words: Sequence[Word], context: Context) -> list[Part]:
    """Note the files whose content a command runs.

    They are its program's, those that it is fed with or looks for by itself, and the first one that it names.
    """
    if max(part.risk for part in parts) < Risk.CODE_EXECUTION:
        return parts
    found = [place.text for place in context.places(words[0])] if "/" in words[0].text else []
    found += [file for fed in context.stdin if isinstance(fed, Unknown) for file in fed.files][:_SCRIPT_LIMIT]
    for name in LOOKED_FOR.get(words[0].text.rpartition("/")[2], ()):
        found += [place.text for place in context.places(Word(name))]
    for word in words[1:_SCRIPT_LIMIT]:
        named = word.with_text(word.text.rpartition("=")[2])
        files = [place.text for place in context.places(named) if _is_file(place)] if word.known else []
        if files:
            found += files
            break
    return [*parts[:-1], msgspec.structs.replace(parts[-1], code=tuple(found))] if found else parts


def _is_file(place: paths.Place) -> bool:
    try:
        return Path(place.text).is_file()
    except (OSError, ValueError):  # a name that no file can have, a place that may not be looked into
        return False


def _unresolved_program(program: Word, arguments: list[Word], text: str, context: Context) -> list[Part]:
    """Judge a program that only the running shell knows: unknown, or as bad as what it may be."""
    parts = [Part(text, Risk.UNKNOWN, "the program is not known before it runs")]
    may_be = [program]
    while program.maybe and arguments and arguments[0].maybe and arguments[0].raw == program.raw:
        may_be.append(arguments.pop(0))
    candidates: list[str] = []
    for word in may_be:
        base = word.text.replace(UNRESOLVED, "").rsplit("/", 1)[-1]
        candidates += names_matching(base) if word.glob else [base]
    for name in candidates[:200]:
        rule = rule_for(name)
        if rule is not None and (rule.risk is Risk.DESTRUCTIVE or rule.check in {"rm", "dd"}):
            guess = judge_command([Word(name, raw=name), *arguments], context)
            parts += [part for part in guess if part.risk > Risk.UNKNOWN]
    return parts


def _locate(program: str, text: str, context: Context) -> tuple[str, list[Part]]:
    """Return the name to look up, and what running a file by its path adds to the verdict."""
    if "/" not in program:
        return program, []
    directory, name = os.path.split(os.path.normpath(program))
    if _PROGRAM_DIRECTORY.fullmatch(directory):
        return name, []
    place = paths.place(program, context.scope.cwd)
    risk, _ = paths.judge_write(place, context.where)
    if risk is Risk.LOCAL_WRITE:
        return name, [
            Part(text, Risk.CODE_EXECUTION, "runs a file of the workspace or a temporary directory")
        ]
    if _PROGRAM_DIRECTORY.fullmatch(place.text.rpartition("/")[0]):
        return name, []
    return name, [Part(text, Risk.UNKNOWN, f"runs a file that no rule knows: {program}")]


def _only_asks_version(name: str, arguments: list[Word]) -> bool:
    if len(arguments) != 1 or not arguments[0].known:
        return False
    asked = arguments[0].text
    return asked in _VERSION or (asked == "-v" and _VERSION_SHORT.fullmatch(name) is not None)


def _judge_known(name: str, rule: Rule, words: list[Word], text: str, context: Context) -> list[Part]:
    if rule.operands == "sub":
        return _judge_subcommand(name, rule, words, text, context)
    wraps = rule.operands.startswith(("wrap", "sh"))
    leading = int(rule.operands[-1]) if wraps else None
    arguments, operands, rest = parse_arguments(words, rule, leading=leading)
    call = Call(name, rule, arguments, operands, rest, text, context, words)
    parts = list(_judge_options(call))
    if any(item.option and item.option.risk is Risk.SAFE for item in arguments):
        for word in operands:
            parts += call.reads(word)
        return [*parts, call.part(Risk.SAFE, f"{name} only shows")]
    check = checks.CHECKS.get(rule.check)
    if check is None or not check.replaces_operands:
        parts += _judge_operands(call)
    parts += unlisted.judge(call)
    own = list(check.judge(call)) if check is not None else []
    parts += own
    if check is not None and check.replaces_class and own:
        return parts
    if any(item.option and item.option.risk is Risk.SAFE for item in arguments):
        return [
            *(part for part in parts if part.risk > rule.risk),
            call.part(Risk.SAFE, f"{name} only shows"),
        ]
    return [*parts, call.part(rule.risk, f"{name} {rule.risk.verb}")]


def _judge_subcommand(name: str, rule: Rule, words: list[Word], text: str, context: Context) -> list[Part]:
    arguments, operands, rest = parse_arguments(words, rule, leading=1, subcommand=True)
    call = Call(name, rule, arguments, operands, rest, text, context, words)
    parts = list(_judge_options(call))
    if not operands:
        return [*parts, call.part(rule.risk, f"{name} without a subcommand {rule.risk.verb}")]
    if not operands[0].known:
        return [*parts, call.part(Risk.UNKNOWN, f"the subcommand of {name} is not known before it runs")]
    key, depth = canonical(name) + "/" + operands[0].text, 0
    while depth < len(rest) and rule_for(f"{key}/{rest[depth].text}") is not None:
        key, depth = f"{key}/{rest[depth].text}", depth + 1
    inner = rule_for(key)
    if inner is None:
        files = [
            part for word in rest for part in call.reads(word) if part.risk > Risk.SAFE and "/" in word.text
        ]
        return [*parts, *files, call.part(rule.risk, f"{name} {operands[0].text} {rule.risk.verb}")]
    if _only_asks_version("", rest[depth:]):
        return [*parts, call.part(Risk.SAFE, "asks for version or help")]
    return [*parts, *_judge_known(canonical(key), inner, rest[depth:], text, context)]


def _judge_options(call: Call) -> Iterator[Part]:
    for argument in call.arguments:
        option = argument.option
        if option is None:
            continue
        if option.risk is not None and option.risk > Risk.SAFE:
            yield call.part(option.risk, f"{call.name} {argument.name} {option.risk.verb}")
        if argument.value is None:
            continue
        match option.value:
            case "read":
                yield from call.reads(argument.value, recursive=call.recursive)
            case "write":
                yield from call.writes(argument.value)
            case "names":
                yield from call.reads(argument.value)
                yield from call.reads(Word(UNRESOLVED, raw=argument.value.raw, foreign=True))
            case "run":
                yield from call.runs(argument.value)
            case "upload":
                yield from _uploaded(call, argument.value, argument.value.text)
            case "form":
                yield from _uploaded(call, argument.value, argument.value.text.partition("=")[2])
            case "named":
                name, _, rest = argument.value.text.partition("@")
                if "=" not in name:
                    yield from _uploaded(call, argument.value, f"@{rest}")


def _uploaded(call: Call, word: Word, text: str) -> Iterator[Part]:
    if text[:1] in {"@", "<"}:
        yield from call.reads(word.with_text(text[1:].partition(";")[0]))


def _judge_operands(call: Call) -> Iterator[Part]:
    """Judge the words that are no options, by the kind that the table gives."""
    operands = call.operands
    match call.rule.operands:
        case "-" | "list" | "any":
            return
        case "read":
            for word in operands:
                yield from call.reads(word, recursive=call.recursive)
        case "write":
            for word in operands:
                yield from call.writes(word)
        case "dest":
            yield from judge_destination(call)
        case "pattern":
            given = call.has("-e", "-f", "--regexp", "--file", "--expression", "--from-file")
            for word in operands if given else operands[1:]:
                yield from call.reads(word, recursive=call.recursive)
        case "second":
            for word in operands[:1]:
                yield from call.reads(word)
            for word in operands[1:]:
                yield from call.writes(word)
        case kind if kind.startswith("wrap"):
            yield from _judge_inner(call)
        case kind if kind.startswith("sh"):
            if call.rest:
                yield from call.context.shell(shell_text(*call.rest))


def _judge_inner(call: Call) -> Iterator[Part]:
    """Judge the command inside a wrapper."""
    inner = call.rest
    if call.name == "coproc" and any(word.text == "{" for word in inner[:2]):
        inner = inner[[word.text for word in inner].index("{") + 1 :]
    while inner and _ASSIGNMENT.match(inner[0].text):
        yield from builtins.assignment(call, inner[0])
        inner = inner[1:]
    if inner:
        yield from call.context.command(inner)


def judge_destination(call: Call) -> Iterator[Part]:
    """Judge files that are read, and the last one, or the directory that is named, which is written."""
    directory = call.value("-t", "--target-directory")
    target = directory or (call.operands or [Word("")])[-1]
    sources = call.operands if directory is not None else call.operands[:-1]
    for word in sources:
        yield from call.reads(word, recursive=call.recursive)
    if not target.text:
        return
    whole = call.recursive or call.name in {"mv", "ln", "git mv"}
    yield from call.writes(target, whole=whole)
    yield from archives.merges(call, sources, target)
    if directory is None and not _is_directory(call, target):
        return
    for word in sources:
        # A target that is a directory receives the file under its own name.
        name = word.text.rstrip("/").rsplit("/", 1)[-1]
        if name and name not in {".", ".."}:
            named = f"{target.text.rstrip('/')}/{name}"
            landing = msgspec.structs.replace(target, text=named, glob=target.glob or word.glob)
            yield from call.writes(landing, whole=whole)


def _is_directory(call: Call, word: Word) -> bool:
    if word.text.endswith(("/", "/.", "/.git")) or word.text in {".", "..", ".git"}:
        return True
    return any(os.path.isdir(place.text) for place in call.context.places(word))  # noqa: PTH112 - never raises
