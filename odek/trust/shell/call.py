"""One simple command under judgement: its words sorted into options and operands.

``Context`` is what surrounds a command: where it runs and what the shell already did.
``Call`` is the command itself, with the verbs that the checks of single programs use:
``reads``, ``writes``, ``runs``.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from odek.trust import paths
from odek.trust.paths import UNRESOLVED, Where
from odek.trust.risk import Part, Risk
from odek.trust.shell.programs import Option, Rule
from odek.trust.shell.scope import Scope
from odek.trust.shell.words import Word

__all__ = ["Argument", "Call", "Context", "parse_arguments"]


class Context(msgspec.Struct):
    """What surrounds a command.

    ``stdin`` holds texts that are fed to it as far as they are known. ``shell`` judges
    text as shell code, ``command`` judges words as a command, both within this context.
    """

    where: Where
    scope: Scope
    functions: set[str]
    stdin: list[str]
    shell: Callable[[str], list[Part]]
    command: Callable[[Sequence[Word]], list[Part]]
    piped_from_decoder: bool = False


class Argument(msgspec.Struct, frozen=True):
    """An option as given, what the table says of it, and its value if it has one."""

    name: str
    option: Option | None
    value: Word | None = None


class Call(msgspec.Struct):
    """A command whose program has a rule.

    ``rest`` is what follows the options and leading operands of a wrapper: the command
    inside. For other programs it is empty.
    """

    name: str
    rule: Rule
    arguments: list[Argument]
    operands: list[Word]
    rest: list[Word]
    text: str
    context: Context
    words: list[Word]

    def part(self, risk: Risk, reason: str) -> Part:
        """Return a part of the verdict about this command."""
        return Part(self.text, risk, reason)

    def has(self, *names: str) -> bool:
        """Whether one of the options was given, long ones perhaps abbreviated."""
        given = {argument.name for argument in self.arguments}
        return any(
            name in given or any(len(one) > 3 and one[:2] == "--" and name.startswith(one) for one in given)
            for name in names
        )

    def value(self, *names: str) -> Word | None:
        """Return the value of the first of the options that was given."""
        return next((item.value for item in self.arguments if item.name in names and item.value), None)

    @property
    def recursive(self) -> bool:
        """Whether the options ask for whole trees, in the spelling of most programs."""
        return self.has("-r", "-R", "-a", "--recursive", "--archive", "--dereference-recursive")

    def reads(self, word: Word, *, recursive: bool = False) -> Iterator[Part]:
        """Judge reading the file that ``word`` names."""
        scope, where = self.context.scope, self.context.where
        if word.hidden:
            yield Part(
                self.text,
                Risk.SYSTEM_WRITE,
                "reads a file whose name is hidden in an encoding",
                reads_outside=True,
            )
            return
        if word.text in {"-", ""}:
            return
        candidates = [word.text]
        if word.text.startswith(UNRESOLVED + "/"):
            # The unknown may be the home directory or nothing at all.
            candidates += [scope.home + word.text[1:], word.text[1:]]
        places = [paths.place(pattern(text, glob=word.glob), scope.cwd) for text in candidates]
        risk, reason = max(
            (paths.judge_read(place, where, recursive=recursive) for place in places), key=lambda v: v[0]
        )
        outside = UNRESOLVED in word.text or paths.reads_outside(places[0], where)
        if risk > Risk.SAFE or outside:
            yield Part(
                self.text, risk, reason if risk else "reads outside the workspace", reads_outside=outside
            )

    def writes(self, word: Word) -> Iterator[Part]:
        """Judge writing the file that ``word`` names."""
        if word.text == "-":
            return
        place = paths.place(pattern(word.text, glob=word.glob), self.context.scope.cwd)
        risk, reason = paths.judge_write(place, self.context.where)
        if risk > Risk.SAFE:
            yield self.part(risk, reason)

    def runs(self, word: Word) -> Iterator[Part]:
        """Judge running ``word`` as shell text: at least the execution of code."""
        yield self.part(Risk.CODE_EXECUTION, "runs a command given to it")
        yield from self.context.shell(shell_text(word))


def pattern(text: str, *, glob: bool) -> str:
    """Return ``text`` as a path pattern: quoted pattern characters must not act as such."""
    return text if glob or not any(char in text for char in "*?[") else text.translate(_INERT)


# Characters that no path rule looks for, in place of pattern characters that were quoted.
_INERT = str.maketrans("*?[", "___")


def shell_text(*words: Word) -> str:
    """Return words as the text that a second shell would read."""
    return " ".join(word.text for word in words).replace(UNRESOLVED, "${unresolved}")


def parse_arguments(
    words: Sequence[Word], rule: Rule, *, leading: int | None = None, subcommand: bool = False
) -> tuple[list[Argument], list[Word], list[Word]]:
    """Sort ``words`` into options, operands and the rest.

    With ``leading``, everything behind that many operands is the rest, as for wrappers; the
    options right behind them still belong to the wrapper, but not those of a ``subcommand``.
    """
    arguments: list[Argument] = []
    operands: list[Word] = []
    at, only_operands = 0, False
    while at < len(words):
        word = words[at]
        text = word.text
        enough = leading is not None and len(operands) >= leading
        if enough and ((subcommand and operands) or only_operands or not _is_option(text)):
            break
        at += 1
        if only_operands or not _is_option(text):
            operands.append(word)
        elif text == "--":
            only_operands = True
        else:
            at += _take_option(word, words[at : at + 1], rule, arguments)
    return arguments, operands, list(words[at:])


def _is_option(text: str) -> bool:
    return len(text) > 1 and text[0] == "-"


def _take_option(word: Word, following: Sequence[Word], rule: Rule, arguments: list[Argument]) -> int:
    """Append the options in ``word``; return how many of the following words they use up."""
    text = word.text
    if text.startswith("--") or rule.single_dash:
        name, equals, attached = text.partition("=")
        option = rule.find(name)
        if equals:
            arguments.append(Argument(name, option, _piece(word, attached)))
        elif option is not None and option.value and following:
            arguments.append(Argument(name, option, following[0]))
            return 1
        else:
            arguments.append(Argument(name, option))
        return 0
    if (whole := rule.options.get(text)) is not None and len(text) > 2:
        takes = bool(whole.value and following)
        arguments.append(Argument(text, whole, following[0] if takes else None))
        return int(takes)
    for index, letter in enumerate(text[1:], start=2):
        option = rule.options.get("-" + letter)
        if option is not None and option.value:
            if len(text) > index:
                arguments.append(Argument("-" + letter, option, _piece(word, text[index:])))
                return 0
            arguments.append(Argument("-" + letter, option, following[0] if following else None))
            return len(following)
        arguments.append(Argument("-" + letter, option))
    return 0


def _piece(word: Word, text: str) -> Word:
    return Word(text, word.glob, word.raw, word.hidden)
