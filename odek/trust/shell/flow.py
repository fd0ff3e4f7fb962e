"""The structure of a command line: lists, pipes, branches, loops and functions."""

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from odek.trust.paths import Where
from odek.trust.risk import Part, Risk
from odek.trust.shell.evaluator import NODES_PER_STEP, Evaluator
from odek.trust.shell.grammar import text_of
from odek.trust.shell.journey import Journey
from odek.trust.shell.outputs import Text, Unknown, decode_base64
from odek.trust.shell.scope import Scope, Snapshot
from odek.trust.shell.tree import decodes, leaves, starts_itself
from odek.trust.shell.values import FOREIGN, UNKNOWN, Value, join
from odek.trust.shell.words import Word

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Flow"]

# The body of a `for` is judged for each value up to so many (by how deep the loop lies in
# others), else once for all of them together.
_VALUES_LIMITS = (8, 3)
# What a loop sets is followed through so many rounds, then given up.
_ROUNDS_LIMIT = 3


class Flow(Evaluator):
    """Visits the nodes that decide what runs, and in which order.

    What a branch sets may or may not be set behind it; what a loop sets may be set when it
    begins again. The body of a function is judged for each call of it.
    """

    def __init__(self, where: Where, scope: Scope, journey: Journey, outer: int = 0) -> None:
        super().__init__(where, scope, journey, outer)
        self._defined: list[tuple[Node, Snapshot]] = []
        self._loops = 0

    def _subshell(self, node: "Node") -> None:
        self._isolated(node.named_children)

    def _list(self, node: "Node") -> None:
        """Visit ``a && b || c``: whether all of it ran is not certain behind it."""
        before = self._scope.snapshot()
        left, *rest = node.named_children
        self._visit(left)
        if any(child.type == "&&" for child in node.children):
            for right in rest:
                self._visit(right)
            # A change of directory may have failed, and with it all that stands behind it.
            self._scope.join_directories(before)
            return
        after_left = self._scope.snapshot()
        self._scope.join(before)
        for right in rest:
            self._visit(right)
        if rest and leaves(rest[-1]):
            self._scope.restore(after_left)
        else:
            self._scope.join(after_left)

    def _branches(self, node: "Node") -> None:
        """Visit the branches of ``if`` or ``case``, each from the state before all of them."""
        parts: list[list[Node]] = [[]]
        for child in node.named_children:
            if child.type in {"elif_clause", "else_clause", "case_item"}:
                parts.append([child])
            else:
                parts[-1].append(child)
        complete = any(child.type == "else_clause" for child in node.named_children)
        # A condition may set variables for the branches behind it.
        conditions = sum(child.is_named for child in node.children_by_field_name("condition"))
        conditions = conditions or int(node.type == "case_statement")
        for child in parts[0][:conditions]:
            self._visit(child)
        parts[0] = parts[0][conditions:]
        before = self._scope.snapshot()
        ends: list[Snapshot] = [] if complete else [before]
        for branch in parts:
            self._scope.restore(before)
            for child in branch:
                self._visit(child)
            ends.append(self._scope.snapshot())
            if any(child.type == ";&" for part in branch for child in part.children):
                self._scope.join(before)
                before = self._scope.snapshot()
        for end in ends:
            self._scope.join(end)

    def _loop(self, node: "Node") -> None:
        """Visit a loop as often as what it sets makes a difference to its next round."""
        before = self._scope.snapshot()
        for round_ in range(_ROUNDS_LIMIT):
            start = self._scope.snapshot()
            self._children(node)
            self._scope.join(start)
            if self._same(start) or self._journey.is_over:
                return
            if round_ == _ROUNDS_LIMIT - 2:
                self._scope.blur(before)

    def _same(self, start: Snapshot) -> bool:
        now = self._scope.snapshot()
        return (now.directories, now.variables) == (start.directories, start.variables)

    def _for(self, node: "Node") -> None:
        """Visit the body once for each value that the loop is known to have, else once for all."""
        variables = [text_of(child) for child in node.named_children if child.type == "variable_name"][:1]
        nodes = node.children_by_field_name("value")
        words = self._words(*nodes)
        values = [self._word_value(word) for word in words]
        if not nodes:
            values = [self._scope.value("@")]
        elif len(values) > (_VALUES_LIMITS[self._loops] if self._loops < len(_VALUES_LIMITS) else 1):
            values = [reduce(join, values)]
        bodies = [child for child in node.named_children if child.type in {"do_group", "compound_statement"}]
        before = self._scope.snapshot()
        for name in variables:
            self._judge_setting(node, name)
        if node.children[0].type == "select":
            self._scope.assign("REPLY", FOREIGN)
        self._loops += 1
        for value in values:
            for name in variables:
                self._scope.assign(name, value)
            for body in bodies:
                if value.text is not None:
                    self._visit(body)
                else:
                    self._loop(body)
        self._loops -= 1
        self._scope.join(before)

    def _word_value(self, word: Word) -> Value:
        return Value((word.marked(),), word.foreign, word.hidden)

    def _pipeline(self, node: "Node") -> None:
        """Visit the stages; what an earlier one prints is the input of a later one."""
        stdin = list(self._stdin)
        for stage in node.named_children:
            self._isolated([stage])
            output = self._output_of(stage, self._stdin[-1] if self._stdin else None)
            if decodes(stage):
                texts = [one.text for one in self._stdin if isinstance(one, Text)]
                self._stdin += [Text(text) for text in map(decode_base64, texts) if text is not None]
            if isinstance(output, Unknown) or output not in self._stdin[-1:]:
                self._stdin.append(output)
        self._stdin = stdin

    def _function(self, node: "Node") -> None:
        name_node, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        name = text_of(name_node) if name_node is not None else ""
        # Looking through a body costs as much as what is in it, and functions may lie in functions.
        if body is None or not self._journey.step(body.descendant_count // NODES_PER_STEP * 4):
            return
        if starts_itself(body, name):
            self._add([Part(text_of(node), Risk.BLOCKED, "a function that starts itself without end")])
        bodies = self._journey.functions.setdefault(name, [])
        if all(body.id != known.id for known in bodies):
            bodies.append(body)
            self._defined.append((body, self._scope.snapshot()))

    def _uncalled_functions(self) -> None:
        """Visit the functions that no command calls: whoever does, and with what, is not to be seen."""
        for body, snapshot in self._defined:  # which may grow meanwhile
            if body.id in self._journey.visited:
                continue
            before = self._scope.snapshot()
            self._scope.restore(snapshot)
            self._scope.forget([*map(str, range(1, 10)), "@", "*"], UNKNOWN)
            self._body(body)
            self._scope.restore(before)

    def _call_function(self, name: str, arguments: Sequence[Word]) -> None:
        """Visit the bodies that a function may have, with the arguments that it is given."""
        marks = [*map(str, range(1, 10)), "@", "*"]
        before = {mark: self._scope.value(mark) for mark in marks}
        for body in list(self._journey.functions[name]):
            self._scope.assign_positional([self._word_value(word) for word in arguments])
            self._body(body)
        for mark, value in before.items():
            self._scope.assign(mark, value)

    def _body(self, body: "Node") -> None:
        if body.id in self._journey.running:
            return
        self._journey.visited.add(body.id)
        self._journey.running.add(body.id)
        self._visit(body)
        self._journey.running.discard(body.id)
