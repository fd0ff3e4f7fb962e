"""One simple command under judgement: its words sorted into options and operands.

``Context`` is what surrounds a command: where it runs and what the shell already did.
``Call`` is the command itself, with the verbs that the checks of single programs use:
``reads``, ``writes``, ``runs``.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from odek.trust import paths
from odek.trust.paths import UNRESOLVED, Where
from odek.trust.risk import Part, Risk
from odek.trust.shell.outputs import Output, Text, Unknown
from odek.trust.shell.programs import Option, Rule
from odek.trust.shell.scope import Scope
from odek.trust.shell.words import Word

__all__ = ["Argument", "Call", "Context", "parse_arguments", "shell_text"]


Judged = tuple[Risk, str, paths.Place]


class Context(msgspec.Struct):
    """What surrounds a command.

    ``stdin`` holds what is fed to it, the last one what it reads. ``shell`` judges text as
    shell code that is given words, ``command`` judges words as a command, both within this
    context.
    """

    where: Where
    scope: Scope
    functions: Collection[str]
    stdin: Sequence[Output]
    shell: Callable[..., list[Part]]
    command: Callable[[Sequence[Word]], list[Part]]

    @property
    def texts(self) -> list[str]:
        """What is fed to the command, as far as it is text that is known."""
        return [one.text for one in self.stdin if isinstance(one, Text | Unknown) and one.text]

    def places(self, word: Word, *, follow: bool = True) -> list[paths.Place]:
        """Return what the file name ``word`` may stand for; see ``paths.place``."""
        text = pattern(word.text, glob=word.glob)
        return [paths.place(text, directory, follow=follow) for directory in self.scope.directories]

    def judge_read(self, word: Word, *, recursive: bool = False) -> Judged:
        """Return the class of reading the file ``word``, why, and the place."""
        words = [word]
        if word.text.startswith(UNRESOLVED + "/"):
            # The unknown may be the home directory or nothing at all.
            words += [word.with_text(self.scope.home + word.text[1:]), word.with_text(word.text[1:])]
        places = [place for one in words for place in self.places(one)]
        return _worst(
            [(*paths.judge_read(place, self.where, recursive=recursive), place) for place in places]
        )

    def judge_write(self, word: Word, *, whole: bool = False, content: bool = True) -> Judged:
        """Return the class of writing ``word``, or a ``whole`` directory there, why, and the place.

        Writing the ``content`` of a file changes it under all its names.
        """
        places = self.places(word)
        if content:
            places += [linked for place in places for linked in paths.linked_matches(place)]
        return _worst([self._write(place, whole=whole, content=content) for place in places])

    def _write(self, place: paths.Place, *, whole: bool, content: bool) -> Judged:
        risk, reason = paths.judge_write(place, self.where, whole=whole)
        if content and risk is Risk.LOCAL_WRITE and paths.has_other_name(place):
            shown = paths.shown(place, self.where)
            risk, reason = Risk.SYSTEM_WRITE, f"writes to {shown}, a file with another name (hard link)"
        return risk, reason, place

    def judge_delete(self, word: Word, *, recursive: bool, follow: bool = False) -> Judged:
        """Return the class of removing ``word``, why, and the place."""
        places = self.places(word, follow=follow)
        return _worst(
            [(*paths.judge_delete(place, self.where, recursive=recursive), place) for place in places]
        )

    def is_outside(self, word: Word) -> bool:
        """Whether ``word`` may name something that does not belong to the workspace."""
        return (
            word.foreign
            or UNRESOLVED in word.text
            or any(paths.reads_outside(place, self.where) for place in self.places(word))
        )


def _worst(judged: Sequence[Judged]) -> Judged:
    return max(judged, key=lambda one: one[0])


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

    def part(
        self, risk: Risk, reason: str, place: paths.Place | None = None, *, reads_outside: bool = False
    ) -> Part:
        """Return a part of the verdict about this command, and the place that it touches."""
        path = paths.shown(place, self.context.where) if place is not None else ""
        return Part(self.text, risk, reason, program=self.name, path=path, reads_outside=reads_outside)

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
        if word.text in {"-", ""}:
            return
        risk, reason, place = self.context.judge_read(word, recursive=recursive)
        if risk is Risk.SAFE and (word.hidden or word.foreign):
            origin = "is hidden in an encoding" if word.hidden else "data gives"
            risk, reason = Risk.SYSTEM_WRITE, f"reads a file whose name {origin}"
        outside = word.hidden or self.context.is_outside(word)
        if risk > Risk.SAFE or outside:
            reason = reason if risk else "reads outside the workspace"
            yield self.part(risk, reason, place, reads_outside=outside)

    def writes(self, word: Word, *, whole: bool = False, content: bool = True) -> Iterator[Part]:
        """Judge writing the file that ``word`` names; see ``Context.judge_write``."""
        if word.text == "-":
            return
        risk, reason, place = self.context.judge_write(word, whole=whole, content=content)
        if risk > Risk.SAFE:
            yield self.part(risk, reason, place)

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
            arguments.append(Argument(name, option, word.with_text(attached)))
        elif option is not None and option.value not in {"", "tail"} and following:
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
        if option is not None and option.value == "tail":
            value = word.with_text(text[index:]) if len(text) > index else None
            arguments.append(Argument("-" + letter, option, value))
            return 0
        if option is not None and option.value:
            if len(text) > index:
                arguments.append(Argument("-" + letter, option, word.with_text(text[index:])))
                return 0
            arguments.append(Argument("-" + letter, option, following[0] if following else None))
            return len(following)
        arguments.append(Argument("-" + letter, option))
    return 0
