"""What git does with its subcommands, its settings and its many ways to start programs."""

from collections.abc import Iterator

from odek.trust.paths import UNRESOLVED
from odek.trust.risk import Part, Risk
from odek.trust.shell import archives
from odek.trust.shell.call import Call, parse_arguments
from odek.trust.shell.git_settings import HARMLESS_SETTING
from odek.trust.shell.programs import Option, Rule, rule_for
from odek.trust.shell.words import Word

__all__ = ["judge"]

_TOP = Rule(
    Risk.UNKNOWN,
    "sub",
    {
        name: Option("text")
        for name in (
            "-C",
            "-c",
            "--git-dir",
            "--work-tree",
            "--exec-path",
            "--namespace",
            "--config-env",
            "--super-prefix",
        )
    },
)
_SUB = Rule(
    Risk.SAFE, "-", {"-o": Option("text"), "-O": Option(), "-m": Option("text"), "-F": Option("text")}
)

_STARTS_PROGRAM = (
    "--upload-pack", "--receive-pack", "--exec", "--open-files-in-pager", "--ext-diff", "--sendmail-cmd",
    "--to-cmd", "--cc-cmd", "--header-cmd",
)  # fmt: skip
_GIVES_SETTINGS = ("--template", "--config", "--separate-git-dir")


def judge(call: Call) -> Iterator[Part]:
    """Judge a call of git by its subcommand, its options and the settings given with it."""
    top, operands, rest = parse_arguments(call.words, _TOP, leading=1, subcommand=True)
    for item in top:
        yield from _top_option(call, item.name, item.value)
    if not operands:
        yield call.part(Risk.SAFE, "shows how git is used")
        return
    sub = operands[0]
    if not sub.known:
        yield call.part(Risk.UNKNOWN, "the subcommand of git is not known before it runs")
        return
    name = sub.text
    arguments, words, _ = parse_arguments(rest, _SUB)
    inner = Call(f"git {name}", _SUB, arguments, words, [], call.text, call.context, rest)
    rule = rule_for(f"git/{name}")
    if rule is None:
        yield call.part(Risk.UNKNOWN, f"git {name} is a command or alias that no rule knows")
        return
    yield call.part(rule.risk, f"git {name} {rule.risk.verb}")
    special = _SPECIAL.get(name)
    if special is not None:
        yield from special(inner)
    yield from _common_options(inner)


def _top_option(call: Call, name: str, value: Word | None) -> Iterator[Part]:
    text = value.text if value is not None else ""
    match name:
        case "-c" | "--config-env":
            key, _, setting = text.partition("=")
            harmless = key.lower() in {"core.pager", "core.editor"} and setting in {"", "cat", "true", ":"}
            if not (harmless or HARMLESS_SETTING.fullmatch(key)):
                yield call.part(Risk.CODE_EXECUTION, f"sets {key}, which may start a program")
        case "--exec-path" if value is not None:
            yield call.part(Risk.CODE_EXECUTION, "takes the programs of git from another directory")
        case "--git-dir" | "--work-tree":
            if value is not None and not _is_here(text):
                yield call.part(Risk.CODE_EXECUTION, "obeys the settings of another repository")
        case "-C":
            if value is not None:
                yield from (part for part in call.reads(value) if part.risk > Risk.SAFE or part.reads_outside)


def _is_here(text: str) -> bool:
    return text in {".", ".git", "./.git"}


def _common_options(call: Call) -> Iterator[Part]:
    for word in call.words:
        text = word.text
        if "://-" in text:
            yield call.part(Risk.CODE_EXECUTION, "an address that is taken for an option")
        if "ext::" in text or text.startswith(("fd::", UNRESOLVED + "::")):
            yield call.part(Risk.CODE_EXECUTION, "a transport that runs a command")
        name, _, value = text.partition("=")
        if name == "--output" and value:
            yield call.part(Risk.LOCAL_WRITE, "writes a file")
            yield from call.writes(word.with_text(value))
        elif name == "--output-directory" and value:
            yield from call.writes(word.with_text(value))
        elif _starts_program(name, value):
            yield call.part(Risk.CODE_EXECUTION, f"{name} starts a program")
        elif name in _GIVES_SETTINGS and call.name in {"git clone", "git init"}:
            yield call.part(
                Risk.CODE_EXECUTION, f"{name} gives the repository settings that may start a program"
            )

    for operand in call.operands:
        # Files beyond the work tree are taken by several commands.
        if operand.text.startswith("/") or ".." in operand.text.split("/"):
            yield from (part for part in call.reads(operand, recursive=True) if part.risk > Risk.SAFE)


def _starts_program(option: str, value: str) -> bool:
    if option == "--smtp-server":
        return "/" in value  # else the name of a host
    return len(option) > 4 and any(known.startswith(option) for known in _STARTS_PROGRAM)


def _apply(call: Call) -> Iterator[Part]:
    if call.has("--unsafe-paths"):
        yield call.part(Risk.SYSTEM_WRITE, "may change files outside of the work tree")
    yield from archives.patched(call, call.operands)


def _move(call: Call) -> Iterator[Part]:
    """What is moved keeps its content, and obeys what its new name means."""
    for word in call.operands[-1:]:
        yield from call.writes(word, whole=True)


def _first(call: Call) -> str:
    return call.operands[0].text if call.operands else ""


def _lists_or_changes(call: Call) -> Iterator[Part]:
    """``branch`` and ``tag``: listing is safe, the rest changes the repository."""
    if (
        call.has("-D", "--delete", "-d")
        and call.name == "git branch"
        and (call.has("-D") or call.has("-f", "--force"))
    ):
        yield call.part(Risk.DESTRUCTIVE, "removes a branch even if its commits are nowhere else")
    lists = call.has(
        "-l",
        "--list",
        "--contains",
        "--merged",
        "--no-merged",
        "--points-at",
        "-a",
        "-r",
        "-v",
        "--show-current",
    )
    if (call.operands and not lists) or call.has(
        "-d", "--delete", "-m", "-M", "-c", "-C", "-u", "--set-upstream-to", "--edit-description"
    ):
        yield call.part(Risk.LOCAL_WRITE, "changes the repository")


def _stash(call: Call) -> Iterator[Part]:
    match _first(call):
        case "list" | "show":
            return
        case "drop" | "clear":
            yield call.part(Risk.DESTRUCTIVE, "discards stashed work")
        case _:
            yield call.part(Risk.LOCAL_WRITE, "changes the work tree")


def _remote(call: Call) -> Iterator[Part]:
    match _first(call):
        case "" | "get-url":
            return
        case "update" | "show" | "prune":
            yield call.part(Risk.NETWORK_EGRESS, "asks the remote")
        case _:
            yield call.part(Risk.LOCAL_WRITE, "changes where the repository sends its commits")
            if call.has("-f", "--fetch"):
                yield call.part(Risk.NETWORK_EGRESS, "asks the remote")


def _config(call: Call) -> Iterator[Part]:
    words = [word.text for word in call.operands]
    reads = call.has(
        "--get", "--get-all", "--get-regexp", "-l", "--list", "--get-urlmatch", "--show-origin", "--name-only"
    )
    if (
        reads
        or words[:1] in (["list"], ["get"])
        or (len(words) == 1 and not call.has("--unset", "--remove-section", "-e", "--edit"))
    ):
        return
    if call.has("-e", "--edit"):
        yield call.part(Risk.CODE_EXECUTION, "starts an editor")
    if call.has("--global", "--system", "-f", "--file", "--worktree"):
        yield call.part(Risk.SYSTEM_WRITE, "changes settings beyond this repository")
    key = words[1] if words[:1] in (["set"], ["unset"]) and len(words) > 1 else (words[0] if words else "")
    if HARMLESS_SETTING.fullmatch(key):
        yield call.part(Risk.LOCAL_WRITE, "changes a setting of the repository")
    else:
        yield call.part(Risk.CODE_EXECUTION, f"sets {key or 'settings'}, which may start a program later")


def _reset(call: Call) -> Iterator[Part]:
    if call.has("--hard", "--merge", "--keep"):
        yield call.part(Risk.DESTRUCTIVE, "discards work that is not committed")


def _clean(call: Call) -> Iterator[Part]:
    if call.has("-n", "--dry-run"):
        return
    yield call.part(Risk.DESTRUCTIVE, "removes files that are nowhere else")


def _checkout(call: Call) -> Iterator[Part]:
    everything = any(word.text in {".", "./", ":/", "*"} for word in call.operands)
    spares = call.has("-b") or (call.has("--staged", "-S") and not call.has("--worktree", "-W"))
    if (everything and not spares) or call.has("--discard-changes", "-f", "--force"):
        yield call.part(Risk.DESTRUCTIVE, "discards work that is not committed")


def _push(call: Call) -> Iterator[Part]:
    forced = any(word.text.startswith("--force") and "lease" not in word.text for word in call.words)
    deletes = any(word.text.startswith((":", "+")) and len(word.text) > 1 for word in call.operands)
    if forced or deletes or call.has("-f", "--mirror", "--delete", "-d", "--prune"):
        yield call.part(Risk.DESTRUCTIVE, "overwrites or removes what the remote has")


def _transport(call: Call) -> Iterator[Part]:
    if call.has("-u") and call.name in {"git clone", "git ls-remote"}:
        yield call.part(Risk.CODE_EXECUTION, "names the program of the other side")
    if call.has("-c") and call.name == "git clone":
        yield call.part(Risk.CODE_EXECUTION, "gives the clone settings that may start a program")
    if call.name == "git clone":
        for word in call.operands[1:]:
            yield from call.writes(word)


def _rebase(call: Call) -> Iterator[Part]:
    if call.has("-x", "-i", "--interactive", "--exec", "--edit-todo"):
        yield call.part(Risk.CODE_EXECUTION, "runs an editor or a command between commits")


def _bisect(call: Call) -> Iterator[Part]:
    if _first(call) == "run":
        yield call.part(Risk.CODE_EXECUTION, "runs a command at each step")
        start = next(at for at, word in enumerate(call.words) if word.text == "run")
        yield from call.context.command(call.words[start + 1 :])
    elif _first(call) not in {"log", "view", "visualize"}:
        yield call.part(Risk.LOCAL_WRITE, "moves the work tree")


def _submodule(call: Call) -> Iterator[Part]:
    match _first(call):
        case "foreach":
            yield call.part(Risk.CODE_EXECUTION, "runs a command in each submodule")
            start = next(at for at, word in enumerate(call.words) if word.text == "foreach")
            inner = [word for word in call.words[start + 1 :] if not word.text.startswith("--")]
            yield from call.context.shell(
                " ".join(word.text for word in inner).replace(UNRESOLVED, "${unresolved}")
            )
        case "status" | "summary" | "":
            return
        case _:
            yield call.part(Risk.NETWORK_EGRESS, "fetches submodules")


def _worktree(call: Call) -> Iterator[Part]:
    if _first(call) not in {"", "list"}:
        yield call.part(Risk.LOCAL_WRITE, "changes work trees")
        for word in call.operands[1:2]:
            yield from call.writes(word)
    if _first(call) == "remove" and call.has("-f", "--force"):
        yield call.part(Risk.DESTRUCTIVE, "removes a work tree with what is not committed")


def _archive(call: Call) -> Iterator[Part]:
    if any(word.text.startswith("--remote") for word in call.words):
        yield call.part(Risk.NETWORK_EGRESS, "asks the remote")
    if (target := call.value("-o")) is not None:
        yield call.part(Risk.LOCAL_WRITE, "writes an archive")
        yield from call.writes(target)


def _grep(call: Call) -> Iterator[Part]:
    if any(word.text.startswith("-O") for word in call.words):
        yield call.part(Risk.CODE_EXECUTION, "opens the hits in a program")


def _changing(call: Call) -> Iterator[Part]:
    """Commands that only list when called bare."""
    if _first(call) not in {"", "list", "show", "status", "verify", "list-heads", "diff"}:
        yield call.part(Risk.LOCAL_WRITE, "changes the repository")
    if call.name == "git bundle" and _first(call) == "create":
        for word in call.operands[1:2]:
            yield from call.writes(word)


def _loses(call: Call) -> Iterator[Part]:
    prunes = any(
        word.text.startswith("--prune=") and word.text not in {"--prune=never", "--prune=2.weeks.ago"}
        for word in call.words
    )
    prunes = prunes or (call.name == "git prune" and not call.has("-n", "--dry-run"))
    if prunes or any(word.text in {"expire", "delete", "drop", "-d"} for word in call.words):
        yield call.part(Risk.DESTRUCTIVE, "removes history that cannot be brought back")


def _remove(call: Call) -> Iterator[Part]:
    everything = any(word.text in {".", "./", ":/", "*"} for word in call.operands)
    if everything and call.has("-r") and not call.has("--cached", "-n", "--dry-run"):
        yield call.part(Risk.DESTRUCTIVE, "removes everything from the work tree")


def _initialise(call: Call) -> Iterator[Part]:
    directory = call.value("--separate-git-dir")
    for word in call.operands if directory is None else [*call.operands, directory]:
        yield from (part for part in call.writes(word) if part.risk > Risk.LOCAL_WRITE)


def _formats(call: Call) -> Iterator[Part]:
    if (target := call.value("-o")) is not None:
        yield from call.writes(target)


def _symbolic_ref(call: Call) -> Iterator[Part]:
    if len(call.operands) > 1 or call.has("-d", "--delete"):
        yield call.part(Risk.LOCAL_WRITE, "changes a reference")


_SPECIAL = {
    "branch": _lists_or_changes,
    "tag": _lists_or_changes,
    "stash": _stash,
    "remote": _remote,
    "config": _config,
    "reset": _reset,
    "clean": _clean,
    "checkout": _checkout,
    "restore": _checkout,
    "switch": _checkout,
    "push": _push,
    "clone": _transport,
    "fetch": _transport,
    "pull": _transport,
    "ls-remote": _transport,
    "rebase": _rebase,
    "bisect": _bisect,
    "submodule": _submodule,
    "worktree": _worktree,
    "apply": _apply,
    "mv": _move,
    "am": _apply,
    "archive": _archive,
    "grep": _grep,
    "notes": _changing,
    "sparse-checkout": _changing,
    "bundle": _changing,
    "rerere": _changing,
    "reflog": _loses,
    "update-ref": _loses,
    "gc": _loses,
    "prune": _loses,
    "rm": _remove,
    "init": _initialise,
    "format-patch": _formats,
    "symbolic-ref": _symbolic_ref,
}
