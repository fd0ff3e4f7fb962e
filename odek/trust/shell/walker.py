"""The walk over a command line: every node that can run something is visited."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from odek.trust.paths import UNRESOLVED, Where
from odek.trust.risk import Part, Risk
from odek.trust.shell import commands
from odek.trust.shell.call import Context
from odek.trust.shell.evaluator import Evaluator, unknown
from odek.trust.shell.grammar import DECEIVING, parse, text_of
from odek.trust.shell.outputs import decode_base64
from odek.trust.shell.scope import Scope
from odek.trust.shell.tree import assigned, decodes, evaluates, starts_itself
from odek.trust.shell.variables import judge_assignment
from odek.trust.shell.words import Word

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Walker"]

_NESTED_SHELLS_LIMIT = 8
# The body of a loop is judged so often at most; no measurement behind this.
_ROUNDS_LIMIT = 8


class Walker(Evaluator):
    """Visits the nodes of one command line in the order in which the shell would.

    The scope follows assignments and changes of directory. What a branch or loop may or
    may not have set counts as not known behind it.
    """

    def __init__(
        self, where: Where, scope: Scope, *, depth: int = 0, functions: set[str] | None = None
    ) -> None:
        super().__init__(where, scope)
        self._depth = depth
        self._functions = functions if functions is not None else set()
        self._decoder = False
        self._visits: dict[str, Callable[[Node], object]] = {
            "command": self._command,
            "redirected_statement": self._redirected,
            "pipeline": self._pipeline,
            "list": self._list,
            "subshell": self._subshell,
            "variable_assignment": self._assign,
            "declaration_command": self._declaration,
            "unset_command": self._declaration,
            "function_definition": self._function,
            "for_statement": self._for,
            "if_statement": self._uncertain,
            "while_statement": self._uncertain,
            "c_style_for_statement": self._uncertain,
            "case_statement": self._uncertain,
            "test_command": self._arithmetic,
            "compound_statement": self._arithmetic,
            "command_substitution": self._substitution,
            "process_substitution": self._substitution,
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
        root, certain = parse(text)
        if not certain:
            self._parts.append(unknown(text, "the grammar cannot read it with certainty"))
        self._visit(root)
        if "@P}" in text:
            self._parts.append(
                Part(text[:200], Risk.CODE_EXECUTION, "expands a variable as a prompt, which runs commands")
            )
        return self._parts

    # -- structure -------------------------------------------------------------------------------------------

    def _visit_type(self, node: "Node") -> None:
        visit = self._visits.get(node.type)
        if visit is not None and (node.type != "compound_statement" or evaluates(node)):
            visit(node)
        else:
            self._children(node)

    def _subshell(self, node: "Node") -> None:
        self._isolated(node.named_children)

    def _list(self, node: "Node") -> None:
        """Visit ``a && b || c``: behind ``||`` it is not certain what ran before."""
        if any(child.type == "||" for child in node.children):
            self._uncertain(node)
        else:
            self._children(node)

    def _uncertain(self, node: "Node") -> None:
        """Visit nodes of which some may not run, or run again with what they set before."""
        names, cwd = assigned(node), self._scope.cwd
        self._scope.forget(names)
        self._children(node)
        self._scope.forget(names)
        self._scope.forget_directory_unless(cwd)

    def _for(self, node: "Node") -> None:
        """Visit the body once for each value that the loop is known to have, else once."""
        variables = [text_of(child) for child in node.named_children if child.type == "variable_name"][:1]
        values = self._words(*node.children_by_field_name("value"))
        certain = all(UNRESOLVED not in word.text and not word.hidden for word in values)
        rounds = [word.text for word in values] if certain and 0 < len(values) <= _ROUNDS_LIMIT else [None]
        names, cwd, body = assigned(node), self._scope.cwd, node.child_by_field_name("body")
        self._scope.forget(names)
        for value in rounds:
            for name in variables:
                self._scope.assign(name, value)
            if body is not None:
                self._visit(body)
        self._scope.forget([*names, *variables])
        self._scope.forget_directory_unless(cwd)

    def _pipeline(self, node: "Node") -> None:
        """Visit the stages; what an earlier one is known to print is the input of a later one."""
        stdin, decoder = list(self._stdin), self._decoder
        for stage in node.named_children:
            self._isolated([stage])
            output = self._fixed_output(stage)
            if output is not None:
                self._stdin.append(output)
            if decodes(stage):
                self._decoder = True
                self._stdin += [
                    decoded for text in self._stdin if (decoded := decode_base64(text)) is not None
                ]
        self._stdin, self._decoder = stdin, decoder

    def _function(self, node: "Node") -> None:
        name_node, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        name = text_of(name_node) if name_node is not None else ""
        if body is None:
            return
        if starts_itself(body, name):
            self._parts.append(Part(text_of(node), Risk.BLOCKED, "a function that starts itself without end"))
        self._functions.add(name)
        names, cwd = assigned(body), self._scope.cwd
        self._scope.forget(names)
        self._visit(body)
        self._scope.forget(names)
        self._scope.forget_directory_unless(cwd)

    def _arithmetic(self, node: "Node") -> None:
        """Tests and ``(( ))`` evaluate their words: a subscript may hold a command even in quotes."""
        if re.search(r"['\"].*\[.*(\$\(|`)", text_of(node), re.DOTALL):
            self._parts.append(
                Part(text_of(node), Risk.CODE_EXECUTION, "evaluates a subscript that holds a command")
            )
        self._children(node)

    # -- commands --------------------------------------------------------------------------------------------

    def _command(self, node: "Node", extra: Sequence[Word] = ()) -> None:
        nodes: list[Node] = []
        behind: list[Word] = []
        assigned_to = -1
        for child in node.named_children:
            match child.type:
                case "variable_assignment":
                    self._assign(child, temporary=True)
                    assigned_to = child.end_byte
                case "herestring_redirect" | "file_redirect" | "heredoc_redirect":
                    behind += self._redirect(child)
                case "comment":
                    pass
                case _:
                    nodes.append(child)
        if nodes and nodes[0].start_byte == assigned_to:
            self._parts.append(unknown(text_of(node), "the grammar breaks an assignment apart"))
        words = [*self._words(*nodes), *behind, *extra]
        if words and words[0].text in {"{", "}"}:
            # The braces around the body of a coprocess, which the grammar takes for words.
            words = words[1:]
        self._parts += commands.judge_command(words, self._context())
        self._scope.run_builtin([word.text for word in words])

    def _context(self) -> Context:
        return Context(
            where=self._where,
            scope=self._scope,
            functions=self._functions,
            stdin=self._stdin,
            shell=self._nested_shell,
            command=lambda words: commands.judge_command(words, self._context()),
            piped_from_decoder=self._decoder,
        )

    def _nested_shell(self, text: str) -> list[Part]:
        if DECEIVING.search(text):
            return [unknown(text, "holds control or invisible characters")]
        return Walker(self._where, self._scope.copy(), depth=self._depth + 1, functions=self._functions).code(
            text
        )

    def _assign(self, node: "Node", *, temporary: bool = False) -> None:
        name_node, value_node = node.child_by_field_name("name"), node.child_by_field_name("value")
        name = text_of(name_node).partition("[")[0] if name_node is not None else ""
        if name_node is not None:
            self._children(name_node)
        value: str | None = ""
        if value_node is not None:
            self._note_variables(value_node)
            value = self._expander.value(value_node)
        judged = judge_assignment(name, value or "")
        if judged is not None:
            self._parts.append(Part(text_of(node), *judged))
        else:
            self._parts.append(Part(text_of(node), Risk.SAFE, "sets a variable"))
        if not temporary:
            appended = any(child.type == "+=" for child in node.children)
            subscript = name_node is not None and name_node.type == "subscript"
            self._scope.assign(name, None if appended or subscript else value)

    def _declaration(self, node: "Node") -> None:
        words = [Word(text_of(node.children[0]), raw=text_of(node.children[0]))]
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assign(child)
                raw = text_of(child)
                words.append(Word(raw.replace(UNRESOLVED, ""), raw=raw))
            elif child.type in {"file_redirect", "herestring_redirect", "heredoc_redirect"}:
                self._redirect(child)
            else:
                words += self._words(child)
        if node.type == "unset_command":
            for word in words[1:]:
                self._scope.assign(word.text, "")
        self._parts += commands.judge_command(words, self._context())

    def _redirected(self, node: "Node") -> None:
        """Visit redirections first, then the statement that they belong to."""
        stdin = list(self._stdin)
        body = node.child_by_field_name("body")
        extra: list[Word] = []
        for child in node.named_children:
            if child != body:
                extra += self._redirect(child)
        if body is not None:
            if body.type == "command":
                self._command(body, extra)
            else:
                # The grammar hangs the redirection of the last command on the whole list.
                self._visit(body)
                for child in node.named_children:
                    if child != body:
                        self._redirect(child)
                if extra:
                    self._parts.append(
                        unknown(text_of(node), "words behind a redirection that belong to no command")
                    )
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
