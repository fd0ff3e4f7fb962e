"""The command ``odek``: finds the command asked for and loads that one alone.

Start-up is a cost: nothing is imported here that ``odek version`` does not need.
"""

import argparse
import codecs
import io
import os
import sys
from collections.abc import Callable, Generator, Sequence
from importlib import import_module
from typing import Any, NoReturn, Protocol, cast

from odek import __version__
from odek.errors import OdekError
from odek.home import forget_unusable_home

__all__ = [
    "COMMANDS",
    "DESCRIPTION",
    "EPILOG",
    "EXIT_FAILED",
    "EXIT_INTERRUPTED",
    "EXIT_LIMIT",
    "EXIT_SETUP",
    "build_parser",
    "entry",
    "main",
]

EXIT_FAILED = 1
EXIT_LIMIT = 2
EXIT_SETUP = 3
EXIT_INTERRUPTED = 130

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("odek.cli.run", "give the agent one task"),
    "continue": ("odek.cli.resume", "go on with the newest session, or a named one"),
    "repl": ("odek.cli.repl", "talk with the agent, many turns, one session"),
    "session": ("odek.cli.session", "list, show, delete, trim and clean up sessions"),
    "audit": ("odek.cli.audit", "what came into a session from outside, and what was decided"),
    "memory": ("odek.cli.memory", "what is remembered, for a person to read and edit"),
    "subagent": ("odek.cli.subagent", "do one task as a subagent and print its result as JSON"),
    "ps": ("odek.cli.ps", "list the running odek processes of this home"),
    "stop": ("odek.cli.stop", "end a running odek process with all that it started"),
    "risk": ("odek.cli.risk", "say what a shell command would be taken for, part by part"),
    "bench": ("odek.cli.bench", "measure recall, with your texts or your memory"),
    "config": ("odek.cli.config", "show the configuration and where each value comes from"),
    "init": ("odek.cli.init", "write a commented configuration file"),
    "cleanup": ("odek.cli.cleanup", "remove what crashed processes left behind"),
    "completion": ("odek.cli.completion", "print a completion script for your shell"),
    "version": ("odek.cli.version", "print the versions of odek and Python"),
}

DESCRIPTION = "odek: an agent runtime whose memory can be trusted."

EPILOG = """\
examples:
  odek run "why does the build fail? @Makefile"
  odek continue "now fix it"
  odek run --model llama3.2 --base-url http://localhost:11434/v1 "…"

environment:
  ODEK_API_KEY, DEEPSEEK_API_KEY, OPENAI_API_KEY
               key of the model's endpoint; none: the offline model answers
  ODEK_HOME    where odek keeps its files (~/.odek)
  ODEK_<KEY>   any setting, such as ODEK_MODEL; `odek config show` lists them
  NO_COLOR     no colour

exit status:
  0 success   1 the task failed   2 a limit was reached   3 setup   130 Ctrl-C

`odek COMMAND --help` tells more about a command."""


class CommandModule(Protocol):
    """What the module of a command offers, as plain functions."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""
        ...

    def run(self, arguments: argparse.Namespace) -> int:
        """Carry the command out and return its exit status."""
        ...


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps examples as they are written, and each name on one line with its meaning."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)

    def _format_action(self, action: argparse.Action) -> str:
        text = super()._format_action(action)
        # Commands stand under a title already; argparse would put their metavar above them too.
        return text.partition("\n")[2] if action.nargs == argparse.PARSER else text

    def _iter_indented_subactions(self, action: argparse.Action) -> Generator[argparse.Action, None, None]:
        # Argparse indents commands, and forgets that when it works out the column of their meaning.
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - no public name
            yield from action._choices_actions  # noqa: SLF001


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line and exit with 3."""

    def __init__(self, **options: Any) -> None:
        defaults: dict[str, Any] = {"formatter_class": HelpFormatter, "allow_abbrev": False}
        super().__init__(**(defaults | options))
        if self.add_help:
            self._actions[0].help = "show this help and exit"

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; a parser that cannot do without a command below it shows its help to whoever names none."""
        if not args and any(each.required and each.nargs == argparse.PARSER for each in self._actions):
            self.print_help()
            self.exit()
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:  # said by the command that does not know them, whose help tells more
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._meant(unknown)}")
        return parsed, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is none of the choices, and say which was probably meant."""
        if action.choices is not None and value not in action.choices:
            from odek.config.checking import nearest

            if meant := nearest(str(value), list(action.choices)):
                raise argparse.ArgumentError(action, f"invalid choice: {value!r}; did you mean {meant}?")
            if " " in str(value) and "run" in action.choices:
                raise argparse.ArgumentError(
                    action, f'invalid choice: {value!r}; to give a task, type `{self.prog} run "…"`'
                )
        super()._check_value(action, value)

    def _meant(self, unknown: Sequence[str]) -> str:
        """Return a hint to the flag that the first unknown one probably was, "" for none."""
        from odek.config.checking import nearest

        flag = next((word.partition("=")[0] for word in unknown if word.startswith("--")), "")
        known = [name for name in self._option_string_actions if name.startswith("--")]
        meant = nearest(flag, known) if flag else ""
        return f"; did you mean {meant}?" if meant else ""

    def error(self, message: str) -> NoReturn:
        """Print ``message`` and leave."""
        from odek.text import visible

        shown = visible(_well_formed(message), keep_newlines=False)
        self.exit(EXIT_SETUP, f"{self.prog}: {shown} (see `{self.prog} --help`)\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        # What is asked for on stdout must arrive, or be known to be lost; argparse passes over that.
        if file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)


def build_parser(command: str | None, *, alone: bool = False) -> Parser:
    """Return the parser with the arguments of ``command`` filled in, or of all for None.

    With ``alone`` it knows no other command: a parser for each takes as long as the rest.
    """
    parser = Parser(
        prog="odek",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    parser.add_argument(
        "--version", action="version", version=f"odek {__version__}", help="print the version and exit"
    )
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for name, (module_name, summary) in COMMANDS.items():
        if alone and name != command:
            continue
        child = commands.add_parser(
            name,
            help=summary,
            description=f"odek {name}: {summary}.",
        )
        if command in {None, name}:
            _load(module_name).add_arguments(child)
    return parser


def main(argv: Sequence[str]) -> int:
    """Run one command and return its exit status."""
    command = next((word for word in argv if not word.startswith("-")), "")
    parser = build_parser(command, alone=list(argv[:1]) == [command] and command in COMMANDS)
    arguments = _with_well_formed_text(parser.parse_args(argv))
    try:
        status: int = _load(COMMANDS[arguments.command][0]).run(arguments)
        sys.stdout.flush()
    except OdekError as error:
        from odek.cli.last_words import say

        say(str(error))
        return _exit_status(error)
    return status


def entry() -> NoReturn:
    """Run ``odek`` with the process's arguments."""
    _open_missing_streams()
    _take_any_text(sys.stdout)
    forget_unusable_home()
    try:
        status = _flushed(main, _asked_for_help(sys.argv[1:]))
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
    except BrokenPipeError:
        _drop_output()  # the reader, such as `head`, has what it wanted
        status = 0
    except Exception as error:  # noqa: BLE001 - whatever it is, the person is told in a line
        from odek.cli.last_words import say, say_where
        from odek.storage.files import describe

        if os.environ.get("ODEK_DEBUG"):
            say_where(error)
        elif isinstance(error, PermissionError) and error.filename:
            say(f"cannot use {error.filename}: {describe(error)}")
        else:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            say(f"internal error: {text} (ODEK_DEBUG=1 shows where)")
        status = EXIT_FAILED
    sys.exit(status)


def _open_missing_streams() -> None:
    """Give a process that was started with a closed stdin, stdout or stderr one that leads nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - until the end


def _take_any_text(stream: object) -> None:
    r"""Let a stream write what its encoding has no bytes for as JSON does, ``\u2019``, instead of failing."""
    if isinstance(stream, io.TextIOWrapper):
        codecs.register_error("json-escape", _escaped)
        stream.reconfigure(errors="json-escape")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(*[iter(units)] * 2, strict=True)), error.end


def _with_well_formed_text(arguments: argparse.Namespace) -> argparse.Namespace:
    """Make every text well-formed, apart from names of files, which are of a type of their own."""
    for name, value in vars(arguments).items():
        if type(value) is str:
            setattr(arguments, name, _well_formed(value))
        elif isinstance(value, list):
            setattr(arguments, name, [_well_formed(each) if type(each) is str else each for each in value])
    return arguments


def _well_formed(word: str) -> str:
    """Return an argument as text that can be stored and sent: bytes that are no UTF-8 are replaced.

    They reach a process as lone surrogates, whatever its locale.
    """
    if word.isascii():
        return word
    try:
        word.encode()
    except UnicodeEncodeError:
        return os.fsencode(word).decode("utf-8", "replace")
    return word


def _asked_for_help(argv: Sequence[str]) -> list[str]:
    """Take ``odek help COMMAND`` for what it means."""
    return [*argv[1:2], "--help"] if list(argv[:1]) == ["help"] else list(argv)


def _flushed(run: Callable[[Sequence[str]], int], argv: Sequence[str]) -> int:
    """Run a command until all of its output is written, that of ``--help`` too."""
    try:
        try:
            status = run(argv)
        except SystemExit as left:  # argparse has printed help, a version or an error
            status = left.code if isinstance(left.code, int) else EXIT_FAILED
        sys.stdout.flush()
    except OSError as error:
        if isinstance(error, BrokenPipeError) or error.filename is not None:
            raise
        from odek.storage.files import describe

        _drop_output()
        print(f"odek: cannot write to stdout: {describe(error)}", file=sys.stderr)
        status = EXIT_FAILED
    return status


def _drop_output() -> None:
    """Let what is left in the buffer go nowhere; Python would complain again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit_status(error: OdekError) -> int:
    from odek.errors import ConfigError, LimitReachedError, StoreBusyError

    if isinstance(error, ConfigError | StoreBusyError):
        return EXIT_SETUP
    return EXIT_LIMIT if isinstance(error, LimitReachedError) else EXIT_FAILED


def _load(module_name: str) -> CommandModule:
    return cast("CommandModule", import_module(module_name))
