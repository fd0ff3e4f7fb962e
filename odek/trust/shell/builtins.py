"""Checks of the shell's builtins, of wrappers and of interpreters.

Each takes one ``Call`` and yields parts of its verdict; ``checks.py`` says when.
"""

import re
from collections.abc import Iterator

from odek.trust import paths
from odek.trust.paths import UNRESOLVED
from odek.trust.risk import Part, Risk
from odek.trust.shell.call import Call, parse_arguments, shell_text
from odek.trust.shell.programs import rule_for
from odek.trust.shell.variables import holds_secret, judge_assignment
from odek.trust.shell.words import Word

_ASSIGNMENT = re.compile(r"([A-Za-z_][\w.%]*)\+?=(.*)", re.DOTALL)
_HOST_RIGHTS = (
    "--privileged", "--pid=host", "--network=host", "--net=host", "--ipc=host", "--userns=host", "--cap-add",
    "--device", "--security-opt", "--volumes-from",
)  # fmt: skip
_PATTERN_OPTIONS = frozenset(
    {"dotglob", "extglob", "failglob", "globasciiranges", "globstar", "nocaseglob", "nocasematch", "nullglob"}
    | {"checkwinsize", "inherit_errexit", "progcomp"}
)
# What a container mounts: `PATH:…` behind `-v` or apart from it, or among the fields of `--mount`.
_MOUNTED = re.compile(
    r"(?:--mount=)?(?=.*\b(?:type|target|destination|dst)=)(?:[^=]*=[^,]*,){0,8}?(?:source|src)=(?P<field>[^,]*)"
    r"|(?:-v=?|--volume=)?(?P<path>[^:,=]*)[:,]"
)
_HIDDEN_CODE = re.compile(r"[^\[]*\[.*(\$\(|`)", re.DOTALL)


def assignment(call: Call, word: Word) -> Iterator[Part]:
    """Judge ``NAME=VALUE`` given to a wrapper."""
    match = _ASSIGNMENT.match(word.text)
    judged = judge_assignment(match[1], match[2]) if match else None
    if judged is not None:
        yield call.part(*judged)


def arithmetic(call: Call) -> Iterator[Part]:
    """Builtins that evaluate their words: a subscript may hold a command even in quotes."""
    for word in call.words:
        if _HIDDEN_CODE.match(word.text):
            yield call.part(Risk.CODE_EXECUTION, "evaluates a subscript that holds a command")


def environment(call: Call) -> Iterator[Part]:
    """Judge builtins that set variables, or that show all of them."""
    yield from arithmetic(call)
    if call.name == "printenv":
        if not call.operands or any(not word.known or holds_secret(word.text) for word in call.operands):
            yield call.part(Risk.SYSTEM_WRITE, "shows environment variables, which may hold credentials")
        return
    if call.name == "set" and any(word.known for word in call.words):
        return
    if call.name in {"declare", "typeset", "local"} and call.has("-n"):
        yield call.part(Risk.CODE_EXECUTION, "makes one variable stand for another, which is not followed")
    if call.name == "set" or (not call.operands and not call.has("-f", "-F", "-a", "-A")):
        yield call.part(Risk.SYSTEM_WRITE, "shows all variables, which may hold credentials")
    for word in call.operands:
        if match := _ASSIGNMENT.match(word.text):
            judged = judge_assignment(match[1], match[2])
            if judged is not None:
                yield call.part(*judged)
        elif call.has("-p") and holds_secret(word.text):
            yield call.part(Risk.SYSTEM_WRITE, f"shows {word.text}")


def alias(call: Call) -> Iterator[Part]:
    """Judge ``alias``: the new meaning of a word."""
    for word in call.operands:
        if "=" in word.text:
            yield call.part(Risk.CODE_EXECUTION, "gives a command another meaning")
            yield from call.context.shell(word.text.partition("=")[2].replace(UNRESOLVED, "${unresolved}"))


def trap(call: Call) -> Iterator[Part]:
    """Judge ``trap``: code that runs later."""
    action = call.operands[0] if call.operands else None
    if action is None or action.text in {"", "-"} or len(call.operands) < 2:
        yield call.part(Risk.SAFE, "resets or shows traps")
        return
    yield from call.runs(action)


def shopt(call: Call) -> Iterator[Part]:
    """Judge ``shopt``: most options only say what a pattern matches."""
    if all(word.text in _PATTERN_OPTIONS for word in call.operands):
        yield call.part(Risk.SAFE, "shows options, or says what a pattern matches")


def cd(call: Call) -> Iterator[Part]:
    """Change the directory that the rest of the command runs in."""
    scope = call.context.scope
    target = call.operands[0] if call.operands else Word(scope.home if call.name == "cd" else UNRESOLVED)
    places = call.context.places(target)
    lost = (
        call.name == "popd"
        or target.text == "-"
        or UNRESOLVED in target.text
        or any((target.hidden, target.glob, target.foreign, target.maybe))
        or any(paths.leaves_for_temporary(place, call.context.where) for place in places)
    )
    scope.enter(*(() if lost else dict.fromkeys(place.text for place in places)))
    yield from ()


def env(call: Call) -> Iterator[Part]:
    """Judge ``env`` without a command, which shows the environment."""
    inner = [word for word in call.rest if not _ASSIGNMENT.match(word.text)]
    if not inner and call.value("-S", "--split-string") is None:
        yield call.part(Risk.SYSTEM_WRITE, "shows the environment, which may hold credentials")


def arch(call: Call) -> Iterator[Part]:
    """Judge the command of ``setarch``, before which an architecture may stand."""
    inner = call.rest
    if len(inner) > 1 and inner[0].known and rule_for(inner[0].text.rpartition("/")[2]) is None:
        _, _, inner = parse_arguments(inner[1:], call.rule, leading=0)
    yield from call.context.command(inner)


def number(call: Call) -> Iterator[Part]:
    """Skip the bare priority that some spellings of ``nice`` take."""
    if call.rest and call.rest[0].text.lstrip("+-").isdigit():
        yield from call.context.command(call.rest[1:])


def container(call: Call) -> Iterator[Part]:
    """Judge what a new container is given of the machine."""
    for word in call.words:
        text = word.text
        if text.startswith(_HOST_RIGHTS):
            yield call.part(Risk.SYSTEM_WRITE, f"gives the container {text}")
        source = _MOUNTED.match(text)
        path = (source["field"] or source["path"] or "") if source else ""
        if path[:1] in {"/", "~", UNRESOLVED, "."}:
            risk, reason, place = call.context.judge_write(word.with_text(path))
            if risk > Risk.LOCAL_WRITE:
                yield call.part(risk, f"mounts a path of the machine: {reason}", place)


def module(call: Call) -> Iterator[Part]:
    """Judge ``uv run -m module``."""
    module = call.value("-m")
    if module is not None:
        yield from call.context.command(
            [Word("python", raw="python"), Word("-m", raw="-m"), module, *call.rest]
        )


def shell(call: Call) -> Iterator[Part]:
    """Judge the code that a shell is given: in its words, or on its input."""
    words = call.words
    for at, word in enumerate(words):
        text = word.text
        if text.startswith("-") and not text.startswith("--") and "c" in text:
            rest = [later for later in words[at + 1 :] if not later.text.startswith(("-", "+"))]
            # `-o pipefail -c CODE`, `-co pipefail CODE`: an option's name may stand before the code.
            for index, candidate in enumerate(rest[: 2 if "o" in text else 1]):
                yield from call.context.shell(shell_text(candidate), rest[index + 1 :])
            return
    for text in call.context.texts:
        yield from call.context.shell(text)


def python(call: Call) -> Iterator[Part]:
    """Judge the module that Python is told to run."""
    words = call.words
    for at, word in enumerate(words):
        if word.text.startswith("-m"):
            module, rest = (word.text[2:], words[at + 1 :]) if len(word.text) > 2 else (None, words[at + 1 :])
            if module is None:
                module, rest = (rest[0].text, rest[1:]) if rest else ("", [])
            yield from _python_module(call, module, rest)
            return
        if not word.text.startswith("-"):
            return


def _python_module(call: Call, module: str, rest: list[Word]) -> Iterator[Part]:
    program = {"pip": "pip", "odek": "odek", "uv": "uv", "pipx": "pipx", "poetry": "poetry"}.get(
        module.split(".", maxsplit=1)[0]
    )
    if program is not None:
        yield from call.context.command([Word(program, raw=program), *rest])
    elif module in {"http.server", "ensurepip", "smtplib", "ftplib"}:
        yield call.part(Risk.NETWORK_EGRESS, f"the module {module} uses the network")
        yield call.part(Risk.CODE_EXECUTION, "runs Python code")
    else:
        yield call.part(Risk.CODE_EXECUTION, "runs Python code")


def initializer(call: Call) -> Iterator[Part]:
    """Judge starting a project from a package, which is fetched and run."""
    if call.operands:
        yield call.part(Risk.CODE_EXECUTION, "fetches a package and runs it")
