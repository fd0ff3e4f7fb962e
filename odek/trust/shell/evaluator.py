"""Words, substitutions and redirections of a command line, evaluated within a scope."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from odek.trust import paths
from odek.trust.paths import UNRESOLVED, Where
from odek.trust.risk import Part, Risk
from odek.trust.shell.arithmetic import may_run_code, names_in
from odek.trust.shell.call import Context, shell_text
from odek.trust.shell.grammar import text_of
from odek.trust.shell.journey import Journey
from odek.trust.shell.outputs import Names, Output, Text, Unknown, as_value, printed
from odek.trust.shell.scope import Scope
from odek.trust.shell.tree import (
    adjacent,
    backquoted,
    decodes,
    descendants,
    heredoc_text,
    outside_substitutions,
    substitutions,
)
from odek.trust.shell.values import Value
from odek.trust.shell.variables import holds_secret, judge_assignment
from odek.trust.shell.words import Expander, Word

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["NODES_PER_STEP", "Evaluator", "unknown"]

# A person nests a handful; the walk is recursive.
_DEPTH_LIMIT = 60
# What looking at so many nodes, at an output, or at a file costs beside visiting a node; rough.
NODES_PER_STEP = 16
_OUTPUT_STEPS = 4
_FILE_STEPS = 8
# Most words are judged as files; measured: 5,000 of them take 0.3 s.
_WORD_STEPS = 3
# Of the values of variables, wherever they are put: a megabyte in all.
_CHARACTERS_PER_STEP = 64


def unknown(text: str, reason: str) -> Part:
    """Return the part of a verdict that says that ``text`` cannot be judged."""
    return Part(text[:200], Risk.UNKNOWN, reason)


class Evaluator(ABC):
    """Expands words, visits the substitutions in them, and judges redirections.

    Judgements are appended to ``_parts``, inputs of the command to ``_stdin``.
    """

    def __init__(self, where: Where, scope: Scope, journey: Journey, outer: int = 0) -> None:
        self._where = where
        self._scope = scope
        self._journey = journey
        self._outer = self._number = outer
        self._parts: list[Part] = []
        self._stdin: list[Output] = []
        self._nesting = 0
        self._outputs: dict[tuple[int, int], Value] = {}
        self._expander = Expander(scope, self)

    @abstractmethod
    def _visit_type(self, node: "Node") -> None:
        """Visit a node by its type."""

    @abstractmethod
    def _nested_shell(self, text: str, arguments: Sequence[Word] = ()) -> list[Part]:
        """Judge ``text`` as shell code that runs within this one, given ``arguments``."""

    @abstractmethod
    def _context(self) -> Context:
        """Return what surrounds the command that is judged."""

    def _add(self, parts: Iterable[Part]) -> None:
        """Append parts of the verdict on the command that is judged."""
        self._parts += [
            part if part.command else msgspec.structs.replace(part, command=self._number) for part in parts
        ]

    def _note(self, node: "Node", risk: Risk, reason: str) -> None:
        self._add([Part(text_of(node).strip()[:200], risk, reason)])

    def _visit(self, node: "Node") -> None:
        self._nesting += 1
        if self._nesting > _DEPTH_LIMIT:
            self.give_up(node)
        elif self._journey.step():
            self._visit_type(node)
        self._nesting -= 1

    def _children(self, node: "Node") -> None:
        for child in node.named_children:
            self._visit(child)

    def _isolated(self, nodes: Sequence["Node"]) -> None:
        """Visit nodes that run in a process of their own: what they set is gone afterwards."""
        before = self._scope.snapshot()
        for node in nodes:
            self._visit(node)
        self._scope.restore(before)

    # -- words -----------------------------------------------------------------------------------------------

    def _words(self, *nodes: "Node") -> list[Word]:
        """Expand nodes to words; those without a gap between them are one word to the shell."""
        words: list[Word] = []
        for group in adjacent(nodes):
            for node in group:
                self._note_variables(node)
            if any(text_of(node).endswith("$") for node in group[:-1]):
                self._add([unknown("".join(map(text_of, group)), "the grammar breaks a variable apart")])
            words += self._expander.words(*group)
        self._journey.step(_WORD_STEPS * len(words))
        return words

    def _note_variables(self, node: "Node") -> None:
        if not self._journey.step(node.descendant_count // NODES_PER_STEP):
            return
        for child in (node, *descendants(node)) if node.named_child_count or node.type == "expansion" else ():
            if child.type in {"simple_expansion", "expansion"}:
                self._variable_use(child)

    def _variable_use(self, node: "Node") -> None:
        text = text_of(node).lstrip()
        match = re.match(r"\$\{?(!?)([A-Za-z_]\w*)", text)
        if match is None:
            return
        names = [match[2], *(self._scope.value(match[2]).texts if match[1] else ())]
        for name in names:
            if holds_secret(name) and not self._scope.is_set(name):
                self._note(node, Risk.SYSTEM_WRITE, f"uses {name}, a credential by its name")
        if re.match(r"\$\{\w+:?=", text):
            self._judge_setting(node, match[2])
        if "[" in text or re.match(r"\$\{[^:}]*:[^-=+?]", text):
            self._subscripts(node)

    def _judge_setting(self, node: "Node", name: str) -> None:
        """Judge setting a variable in another way than by an assignment."""
        judged = judge_assignment(name, UNRESOLVED)
        if judged is not None:
            self._note(node, *judged)

    def _subscripts(self, node: "Node") -> None:
        """Judge subscripts, and the numbers behind a colon: both are arithmetic."""
        if not self._journey.step(node.descendant_count // NODES_PER_STEP):
            return
        text = outside_substitutions(node).lstrip()
        found = re.match(r"\$\{!?(\w+)(?:\[([^\]@*]*)\])?(?::([^-=+?].*))?", text, re.DOTALL)
        if found is None:
            return
        keyed = found[1] in self._scope.keyed
        expression = f"{'' if keyed else found[2] or ''} {found[3] or ''}"
        self._evaluate_text(node, expression)

    def _expansion(self, node: "Node") -> None:
        self._variable_use(node)
        self._children(node)

    # -- arithmetic ------------------------------------------------------------------------------------------

    def evaluate(self, node: "Node") -> None:
        """Judge a node whose text is evaluated as arithmetic."""
        self._nesting += 1
        if self._nesting > _DEPTH_LIMIT:
            self.give_up(node)
        elif self._journey.step(1 + node.descendant_count // NODES_PER_STEP):
            self._evaluate(node)
        self._nesting -= 1

    def give_up(self, node: "Node") -> None:
        """Note that what stands in ``node`` is nested too deeply to be judged."""
        self._add([unknown(text_of(node), "is nested too deeply")])

    def takes(self, size: int) -> bool:
        """Take the steps that handling so many characters costs; False when there are none left."""
        return self._journey.step(size // _CHARACTERS_PER_STEP)

    def _evaluate(self, node: "Node") -> None:
        for child in substitutions(node):
            if child.type == "arithmetic_expansion":
                self.evaluate(child)
            elif self._may_run_code(self.substitution(child)):
                self._note(node, Risk.CODE_EXECUTION, _EVALUATED)
        self._evaluate_text(node, outside_substitutions(node))

    def _evaluate_text(self, node: "Node", expression: str) -> None:
        for name in names_in(expression):
            if self._scope.is_set(name) and self._may_run_code(self._scope.value(name)):
                self._note(node, Risk.CODE_EXECUTION, f"evaluates {name}: {_EVALUATED}")

    def _evaluate_value(self, node: "Node", value: Value) -> None:
        if self._may_run_code(value):
            self._note(node, Risk.CODE_EXECUTION, _EVALUATED)

    def _may_run_code(self, value: Value) -> bool:
        return may_run_code(value, self._scope, self.takes)

    # -- substitutions ---------------------------------------------------------------------------------------

    def substitution(self, node: "Node") -> Value:
        """Visit what a substitution runs; return its output as far as it is known."""
        key = node.id, self._scope.version
        known = self._outputs.get(key)
        if known is None:
            known = self._visited_substitution(node)
            self._outputs[node.id, self._scope.version] = known
        return known

    def _visited_substitution(self, node: "Node") -> Value:
        if self._nesting >= _DEPTH_LIMIT:
            self.give_up(node)
            return as_value(Unknown())
        if not self._journey.step():
            return as_value(Unknown())
        self._nesting += 1
        number, stdin = self._number, self._stdin
        self._stdin = []
        self._isolated(node.named_children)
        self._number, self._stdin = number, stdin
        self._nesting -= 1
        return as_value(self._output_of(node))

    def _output_of(self, node: "Node", stdin: Output | None = None) -> Output:
        """Return what ``node`` prints; its parts are judged where it is visited."""
        before, scope = len(self._parts), self._scope.snapshot()
        output = self._printed(node, stdin)
        self._scope.restore(scope)
        del self._parts[before:]
        return output

    def _printed(self, node: "Node", stdin: Output | None) -> Output:
        if not self._journey.step(_OUTPUT_STEPS):
            return Unknown()
        match node.type:
            case "command":
                own = [child for child in node.named_children if child.type == "herestring_redirect"]
                nodes = [
                    child
                    for child in node.named_children
                    if not child.type.endswith(("_assignment", "_redirect"))
                ]
                words = self._words(*nodes)
                output = printed(words, self._here(own) or stdin, self._scope.cwd, self._context().is_outside)
                hides = isinstance(output, Unknown) and decodes(node)
                return Unknown(hidden=True) if hides else output
            case "pipeline":
                for stage in node.named_children:
                    stdin = self._printed(stage, stdin)
                return stdin or Unknown()
            case "redirected_statement":
                body = node.child_by_field_name("body")
                if body is None:
                    return Unknown()
                redirects = [child for child in node.named_children if child != body]
                return self._printed(body, self._here(redirects) or stdin)
            case "command_substitution" | "process_substitution" | "subshell" | "compound_statement":
                inner = [child for child in node.named_children if child.type != "comment"]
                if len(inner) == 1 and not inner[0].type.endswith("_redirect"):
                    return self._printed(inner[0], stdin)
                return self._printed_by_last(inner, stdin)
            case "list":
                return self._printed_by_last(node.named_children, stdin)
        return Unknown(hidden=decodes(node))

    def _printed_by_last(self, nodes: Sequence["Node"], stdin: Output | None) -> Output:
        """Return the output of commands of which all but the last only change the directory."""
        if not nodes or nodes[-1].type.endswith("_redirect"):
            return Unknown()
        *first, last = nodes
        for node in first:
            words = self._words(*node.named_children) if node.type == "command" else []
            if not words or words[0].text != "cd":
                return Unknown(hidden=any(map(decodes, nodes)))
            self._context().command(words)
        return self._printed(last, stdin)

    def _here(self, redirects: Sequence["Node"]) -> Output | None:
        """Return what redirections feed to a command, None when they feed nothing."""
        for node in redirects:
            match node.type:
                case "heredoc_redirect":
                    return Text(heredoc_text(node))
                case "herestring_redirect":
                    return self._fed(node)
                case "file_redirect" if _operator(node).endswith("<"):
                    inner = [child for child in node.named_children if child.type == "process_substitution"]
                    return self._printed(inner[0], None) if inner else self._content(node)
        return None

    def _content(self, node: "Node") -> Output:
        """Return the content of the file that a redirection reads."""
        words = self._words(*node.children_by_field_name("destination"))
        if not self._journey.step(_FILE_STEPS * len(words)):
            return Unknown()
        context = self._context()
        files = tuple(place.text for word in words if word.known for place in context.places(word))
        return Unknown(inside=not any(map(context.is_outside, words)), files=files)

    def _fed(self, node: "Node") -> Output:
        """Return what a here-string feeds to a command."""
        words = [word for child in node.named_children for word in self._words(child)]
        if all(word.known for word in words):
            return Text(" ".join(word.text for word in words))
        if any(UNRESOLVED in word.text for word in words):
            foreign, hidden = any(word.foreign for word in words), any(word.hidden for word in words)
            return Unknown(foreign, hidden, shell_text(*words))
        return Names(tuple(words))

    # -- redirections ----------------------------------------------------------------------------------------

    def _redirect(self, node: "Node") -> list[Word]:
        """Judge a redirection; return the words behind its target, which belong to the command."""
        match node.type:
            case "herestring_redirect":
                for child in node.named_children:
                    self._words(child)
                self._stdin.append(self._fed(node))
                return []
            case "heredoc_redirect":
                return self._heredoc(node)
            case "file_redirect":
                return self._file_redirect(node)
            case _:
                self._visit(node)
                return []

    def _heredoc(self, node: "Node") -> list[Word]:
        self._stdin.append(Text(heredoc_text(node)))
        extra: list[Word] = []
        for child in node.named_children:
            if child.type in {"file_redirect", "herestring_redirect"}:
                extra += self._redirect(child)
            elif child.type == "heredoc_body":
                self._children(child)
                for code in backquoted(node):
                    self._add(self._nested_shell(code))
            elif node.field_name_for_named_child(node.named_children.index(child)) == "argument":
                extra += self._words(child)
        return extra

    def _file_redirect(self, node: "Node") -> list[Word]:
        operator = _operator(node)
        destinations = node.children_by_field_name("destination")
        targets = self._words(*destinations)
        if operator in {">&-", "<&-"} or not targets:
            return targets
        if operator in {"<", "<&"}:
            process = [child for child in destinations if child.type == "process_substitution"]
            self._stdin.append(self._output_of(process[0]) if process else self._content(node))
        if not (operator in {">&", "<&"} and re.fullmatch(r"\d+-?|-", targets[0].text)):
            for word in targets if targets[0].maybe else targets[:1]:
                self._judge_file(node, word, reads=operator in {"<", "<&"})
        return [] if targets[0].maybe else targets[1:]

    def _judge_file(self, node: "Node", word: Word, *, reads: bool) -> None:
        if not self._journey.step(_FILE_STEPS):
            return
        context = self._context()
        risk, reason, place = context.judge_read(word) if reads else context.judge_write(word)
        if reads and word.foreign and risk is Risk.SAFE:
            risk, reason = Risk.SYSTEM_WRITE, "reads a file whose name data gives"
        outside = reads and context.is_outside(word)
        self._add([Part(text_of(node), risk, reason, outside, path=paths.shown(place, self._where))])


_EVALUATED = "arithmetic runs the commands that such text may hold"


def _operator(node: "Node") -> str:
    return next((text_of(child) for child in node.children if not child.is_named), "")
