"""The walk over a command line: every node that can run something is visited."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from odek.trust.paths import Where
from odek.trust.risk import Part, Risk
from odek.trust.shell import assignments, commands
from odek.trust.shell.call import Context
from odek.trust.shell.evaluator import NODES_PER_STEP, unknown
from odek.trust.shell.flow import Flow
from odek.trust.shell.grammar import DECEIVING, readings, text_of
from odek.trust.shell.journey import Journey
from odek.trust.shell.marks import SPACE
from odek.trust.shell.scope import Scope
from odek.trust.shell.tree import descendants, evaluates
from odek.trust.shell.values import Value
from odek.trust.shell.variables import holds_secret, judge_assignment
from odek.trust.shell.words import Word

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Walker"]

_NESTED_SHELLS_LIMIT = 8
_WRAPPERS_LIMIT = 20
# Judging a command costs about as much as visiting so many nodes; no measurement behind it.
_COMMAND_STEPS = 8


class Walker(Flow):
    """Visits the nodes of one command line in the order in which the shell would."""

    def __init__(
        self,
        where: Where,
        scope: Scope,
        journey: Journey,
        *,
        outer: int = 0,
        depth: int = 0,
    ) -> None:
        super().__init__(where, scope, journey, outer)
        self._depth = depth
        self._wrappers = 0
        self._visits: dict[str, Callable[[Node], object]] = {
            "command": self._command,
            "redirected_statement": self._redirected,
            "pipeline": self._pipeline,
            "list": self._list,
            "subshell": self._subshell,
            "variable_assignment": self._statement(self._assign),
            "declaration_command": self._statement(self._declaration),
            "unset_command": self._statement(self._declaration),
            "function_definition": self._statement(self._function),
            "for_statement": self._for,
            "if_statement": self._branches,
            "case_statement": self._branches,
            "while_statement": self._loop,
            "c_style_for_statement": self._counting_loop,
            "test_command": self._statement(self._test),
            "compound_statement": self._evaluated_statement,
            "arithmetic_expansion": self.evaluate,
            "command_substitution": self.substitution,
            "process_substitution": self.substitution,
            "file_redirect": self._redirect,
            "herestring_redirect": self._redirect,
            "heredoc_redirect": self._redirect,
            "expansion": self._expansion,
            "simple_expansion": self._expansion,
        }

    def code(self, text: str) -> list[Part]:
        """Judge shell code."""
        if self._depth > _NESTED_SHELLS_LIMIT:
            return [unknown(text, "nests too many shells")]
        root, certain = self._journey.parse(text)
        if root is None:
            return [unknown(text, "takes too long to be read")]
        if not certain:
            self._add([unknown(text, "the grammar cannot read it with certainty")])
        self._visit(root)
        self._uncalled_functions()
        if "@P}" in text:
            reason = "expands a variable as a prompt, which runs commands"
            self._add([Part(text[:200], Risk.CODE_EXECUTION, reason)])
        if self._journey.is_over:
            self._add([unknown(text, "takes too many steps to be followed")])
        return self._parts

    def _statement(self, visit: "Callable[[Node], object]") -> "Callable[[Node], object]":
        """Return a visit whose parts have a number of their own, as those of a command have."""

        def visit_numbered(node: "Node") -> None:
            self._number = self._journey.number(self._outer, node.start_byte)
            visit(node)

        return visit_numbered

    def _visit_type(self, node: "Node") -> None:
        self._visits.get(node.type, self._children)(node)

    # -- arithmetic ------------------------------------------------------------------------------------------

    def _counting_loop(self, node: "Node") -> None:
        self._expressions(node)
        self._loop(node)
        self._expressions(node)

    def _expressions(self, node: "Node") -> None:
        """Judge the three expressions of ``for ((…; …; …))``."""
        for field in ("initializer", "condition", "update"):
            for child in node.children_by_field_name(field):
                self.evaluate(child)

    def _evaluated_statement(self, node: "Node") -> None:
        """``(( ))`` is arithmetic; braces are only a group."""
        if evaluates(node):
            self.evaluate(node)
        self._children(node)

    def _test(self, node: "Node") -> None:
        """Judge ``[[ ]]`` and ``[ ]``: comparing numbers evaluates both sides."""
        evaluates = text_of(node).startswith("[[")
        if not self._journey.step(node.descendant_count // NODES_PER_STEP):
            return
        for child in descendants(node):
            operator = child.child_by_field_name("operator")
            name = text_of(operator) if operator is not None else ""
            if name == "-v" or (evaluates and name in {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}):
                for side in child.named_children:
                    if side != operator:
                        self._evaluate_side(child, side, subscripts_only=name == "-v")
        self._children(node)

    def _evaluate_side(self, node: "Node", side: "Node", *, subscripts_only: bool) -> None:
        self.evaluate(side)
        for word in self._words(side):
            self._evaluate_word(node, word, subscripts_only=subscripts_only)

    def _evaluate_word(self, node: "Node", word: Word, *, subscripts_only: bool = False) -> None:
        value = Value((word.marked(),), word.foreign, word.hidden)
        if subscripts_only and not (word.foreign or word.hidden or "[" in word.text):
            return
        self._evaluate_value(node, value)

    # -- commands --------------------------------------------------------------------------------------------

    def _command(self, node: "Node", extra: Sequence[Word] = ()) -> None:
        if not self._journey.step(_COMMAND_STEPS):
            return
        self._number = self._journey.number(self._outer, node.start_byte)
        stdin = list(self._stdin)
        nodes: list[Node] = []
        behind: list[Word] = []
        assigned_to = -1
        for child in node.named_children:
            match child.type:
                case "variable_assignment":
                    self._assign(child, temporary=True, splits=_is_read(node))
                    assigned_to = child.end_byte
                case "herestring_redirect" | "file_redirect" | "heredoc_redirect":
                    behind += self._redirect(child)
                case "comment":
                    pass
                case _:
                    nodes.append(child)
        if nodes and nodes[0].start_byte == assigned_to:
            self._add([unknown(text_of(node), "the grammar breaks an assignment apart")])
        words = [*self._words(*nodes), *behind, *extra]
        if words and words[0].text in {"{", "}"}:
            # The braces around the body of a coprocess, which the grammar takes for words.
            words = words[1:]
        self._number = self._journey.number(self._outer, node.start_byte)
        if not self._journey.is_over:
            self._run(node, words)
        self._stdin = stdin

    def _run(self, node: "Node", words: list[Word]) -> None:
        """Judge a command, and what it changes for the commands behind it."""
        self._add(commands.judge_command(words, self._context()))
        effective = assignments.without_wrappers(words)
        if effective and effective[0].text in self._journey.functions:
            number = self._number
            self._call_function(effective[0].text, effective[1:])
            self._number = number
        before = self._scope.snapshot()
        if effective and effective[0].text == "shift":
            self.takes(self._scope.value("@").size)
        evaluated = assignments.run(effective, self._stdin[-1] if self._stdin else None, self._scope)
        for value in evaluated:
            self._evaluate_value(node, value)
        for name in self._scope.changed_since(before):
            self._judge_setting(node, name)
        self._scope.run_builtin([word.text for word in effective])

    def _context(self) -> Context:
        return Context(
            where=self._where,
            scope=self._scope,
            functions=self._journey.functions.keys(),
            stdin=self._stdin,
            shell=self._nested_shell,
            command=self._inner_command,
        )

    def _inner_command(self, words: Sequence[Word]) -> list[Part]:
        """Judge the command inside a wrapper."""
        if self._wrappers >= _WRAPPERS_LIMIT or not self._journey.step(_COMMAND_STEPS):
            return [unknown(" ".join(word.raw for word in words[:8]), "is wrapped too many times")]
        self._wrappers += 1
        found = commands.judge_command(words, self._context())
        self._wrappers -= 1
        return found

    def _nested_shell(self, text: str, arguments: Sequence[Word] = ()) -> list[Part]:
        found: list[Part] = []
        if DECEIVING.search(text):
            found.append(unknown(text, "holds control or invisible characters"))
            text = DECEIVING.sub("", text)  # what is left may be worse than unknown
        scope = self._scope.copy()
        if arguments:
            scope.assign("0", self._word_value(arguments[0]))
            scope.assign_positional([self._word_value(word) for word in arguments[1:]])
        for reading in readings(text):
            inner = Walker(
                self._where, scope.copy(), self._journey, outer=self._number, depth=self._depth + 1
            )
            found += inner.code(reading)
        return found

    def _assign(self, node: "Node", *, temporary: bool = False, splits: bool = False) -> None:
        name_node, value_node = node.child_by_field_name("name"), node.child_by_field_name("value")
        name = text_of(name_node).partition("[")[0] if name_node is not None else ""
        if name_node is not None:
            self._children(name_node)
            if name_node.type == "subscript" and name not in self._scope.keyed:
                self.evaluate(name_node)
        value = Value.of("")
        if value_node is not None:
            self._note_variables(value_node)
            value = self._expander.value(value_node)
        # `IFS=, read -r a b` splits one line, and nothing else.
        judged = None if splits and name == "IFS" else judge_assignment(name, value.texts[0])
        self._note(node, *(judged or (Risk.SAFE, "sets a variable")))
        if name in self._scope.integers:
            self._evaluate_value(node, value)
            value = value if self._may_run_code(value) else Value.of("0")
        if not temporary:
            appended = any(child.type == "+=" for child in node.children)
            if appended or (name_node is not None and name_node.type == "subscript"):
                is_array = value_node is None or value_node.type == "array" or not appended
                value = _appended(self._scope.value(name), value, SPACE if is_array else "")
            self._scope.assign(name, value)

    def _declaration(self, node: "Node") -> None:
        program = text_of(node.children[0])
        words = [Word(program, raw=program)]
        flags = "".join(text_of(child) for child in node.named_children if text_of(child)[:1] == "-")
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._scope.declare([_target(child)], integer="i" in flags, keyed="A" in flags)
                self._assign(child)
                if "n" in flags:
                    self._refer(child)
                words.append(Word(text_of(child).replace("\x00", ""), raw=text_of(child)))
            elif child.type.endswith("_redirect"):
                self._redirect(child)
            else:
                found = self._words(child)
                words += found
                self._scope.declare([w.text for w in found], integer="i" in flags, keyed="A" in flags)
        if node.type == "unset_command":
            for word in words[1:]:
                self._scope.assign(word.text, Value.of(""))
        self._run(node, words)

    def _refer(self, node: "Node") -> None:
        """Make a variable another name of the one that its value names."""
        name = _target(node)
        for target in self._scope.value(name).texts:
            if holds_secret(target):
                self._note(node, Risk.SYSTEM_WRITE, f"uses {target}, a credential by its name")
            self._scope.assign(name, self._scope.value(target))

    def _redirected(self, node: "Node") -> None:
        """Visit redirections first, then the statement that they belong to."""
        stdin = list(self._stdin)
        body = node.child_by_field_name("body")
        extra: list[Word] = []
        self._number = self._journey.number(self._outer, node.start_byte)
        first = len(self._parts)
        for child in node.named_children:
            if child != body:
                extra += self._redirect(child)
        behind = len(self._parts)
        if body is not None:
            if body.type == "command":
                self._command(body, extra)
            else:
                # The grammar hangs the redirection of the last command on the whole list.
                self._visit(body)
                self._parts[first:behind] = [
                    msgspec.structs.replace(part, command=self._number) for part in self._parts[first:behind]
                ]
                for child in node.named_children:
                    if child != body:
                        self._redirect(child)
                if extra:
                    self._note(node, Risk.UNKNOWN, "words behind a redirection that belong to no command")
        for child in node.named_children:
            if child.type == "heredoc_redirect":
                self._rest_of_heredoc(child)
        self._stdin = stdin

    def _rest_of_heredoc(self, node: "Node") -> None:
        """Visit what follows on the line that opens a here-document: ``cat <<X | sh``."""
        for index, child in enumerate(node.named_children):
            if child.type in {
                "heredoc_start",
                "heredoc_body",
                "heredoc_end",
                "file_redirect",
                "herestring_redirect",
                "file_descriptor",
            }:
                continue
            if node.field_name_for_named_child(index) != "argument":
                self._visit(child)


def _is_read(node: "Node") -> bool:
    name = node.child_by_field_name("name")
    return name is not None and text_of(name) in {"read", "mapfile", "readarray"}


def _target(node: "Node") -> str:
    name = node.child_by_field_name("name")
    return text_of(name).partition("[")[0] if name is not None else ""


def _appended(before: Value, added: Value, separator: str) -> Value:
    """Return a value with something behind it, or an array with an element more."""
    texts = [first + separator + second for first in before.texts for second in added.texts]
    return Value(
        tuple(dict.fromkeys(texts[:32])),
        before.foreign or added.foreign or len(texts) > 32,
        before.hidden or added.hidden,
    )
