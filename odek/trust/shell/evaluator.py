"""Words, substitutions and redirections of a command line, evaluated within a scope."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from odek.trust import paths
from odek.trust.paths import UNRESOLVED, Where
from odek.trust.risk import Part, Risk
from odek.trust.shell.call import pattern
from odek.trust.shell.grammar import text_of
from odek.trust.shell.outputs import output_of
from odek.trust.shell.scope import Scope
from odek.trust.shell.tree import adjacent, backquoted, decodes, descendants, heredoc_text
from odek.trust.shell.variables import holds_secret
from odek.trust.shell.words import Expander, Word

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Evaluator", "unknown"]

# A person nests a handful; the walk is recursive.
_DEPTH_LIMIT = 60


def unknown(text: str, reason: str) -> Part:
    """Return the part of a verdict that says that ``text`` cannot be judged."""
    return Part(text[:200], Risk.UNKNOWN, reason)


class Evaluator(ABC):
    """Expands words, visits the substitutions in them, and judges redirections.

    Judgements are appended to ``_parts``, known inputs of the command to ``_stdin``.
    """

    def __init__(self, where: Where, scope: Scope) -> None:
        self._where = where
        self._scope = scope
        self._parts: list[Part] = []
        self._stdin: list[str] = []
        self._nesting = 0
        self._outputs: dict[tuple[int, int], Word] = {}
        self._expander = Expander(scope, self._substitution)

    @abstractmethod
    def _visit_type(self, node: "Node") -> None:
        """Visit a node by its type."""

    @abstractmethod
    def _nested_shell(self, text: str) -> list[Part]:
        """Judge ``text`` as shell code that runs within this one."""

    def _visit(self, node: "Node") -> None:
        self._nesting += 1
        if self._nesting > _DEPTH_LIMIT:
            self._parts.append(unknown(text_of(node), "is nested too deeply"))
        else:
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

    def _words(self, *nodes: "Node") -> list[Word]:
        """Expand nodes to words; those without a gap between them are one word to the shell."""
        words: list[Word] = []
        for group in adjacent(nodes):
            for node in group:
                self._note_variables(node)
            if any(text_of(node).endswith("$") for node in group[:-1]):
                self._parts.append(
                    unknown("".join(map(text_of, group)), "the grammar breaks a variable apart")
                )
            words += self._expander.words(*group)
        return words

    def _note_variables(self, node: "Node") -> None:
        for child in (node, *descendants(node)) if node.named_child_count or node.type == "expansion" else ():
            if child.type in {"simple_expansion", "expansion"}:
                self._variable_use(child)

    def _variable_use(self, node: "Node") -> None:
        match = re.match(r"\$\{?!?([A-Za-z_]\w*)", text_of(node))
        if match and holds_secret(match[1]) and not self._scope.is_set(match[1]):
            reason = f"uses {match[1]}, a credential by its name"
            self._parts.append(Part(text_of(node), Risk.SYSTEM_WRITE, reason))

    def _expansion(self, node: "Node") -> None:
        self._variable_use(node)
        self._children(node)

    def _substitution(self, node: "Node") -> Word:
        """Visit what a substitution runs; return its output where that is fixed."""
        key = node.id, self._scope.version
        known = self._outputs.get(key)
        if known is None:
            known = self._visited_substitution(node)
            self._outputs[node.id, self._scope.version] = known
        return known

    def _visited_substitution(self, node: "Node") -> Word:
        if self._nesting >= _DEPTH_LIMIT:
            self._parts.append(unknown(text_of(node), "is nested too deeply"))
            return Word(UNRESOLVED)
        self._nesting += 1
        self._isolated(node.named_children)
        self._nesting -= 1
        inner = [child for child in node.named_children if child.type != "comment"]
        output = self._fixed_output(inner[0]) if len(inner) == 1 else None
        return Word(UNRESOLVED, hidden=decodes(node)) if output is None else Word(output)

    def _fixed_output(self, node: "Node") -> str | None:
        before = len(self._parts)
        output = output_of(node, self._words, self._scope.cwd)
        del self._parts[before:]  # its words are judged where the command itself is visited
        return output

    def _redirect(self, node: "Node") -> list[Word]:
        """Judge a redirection; return the words behind its target, which belong to the command."""
        match node.type:
            case "herestring_redirect":
                for child in node.named_children:
                    for word in self._words(child):
                        self._stdin.append(word.text.replace(UNRESOLVED, "${unresolved}"))
                        if word.text.startswith(("/", "~")):
                            self._judge_file(node, word, reads=True)
                return []
            case "heredoc_redirect":
                self._stdin.append(heredoc_text(node))
                extra: list[Word] = []
                for child in node.named_children:
                    if child.type in {"file_redirect", "herestring_redirect"}:
                        extra += self._redirect(child)
                    elif child.type == "heredoc_body":
                        self._children(child)
                        for code in backquoted(node):
                            self._parts += self._nested_shell(code)
                    elif node.field_name_for_named_child(node.named_children.index(child)) == "argument":
                        extra += self._words(child)
                return extra
            case "file_redirect":
                return self._file_redirect(node)
            case _:
                self._visit(node)
                return []

    def _file_redirect(self, node: "Node") -> list[Word]:
        operator = next((text_of(child) for child in node.children if not child.is_named), "")
        targets = self._words(*node.children_by_field_name("destination"))
        if operator in {">&-", "<&-"} or not targets:
            return targets
        if not (operator in {">&", "<&"} and re.fullmatch(r"\d+-?|-", targets[0].text)):
            self._judge_file(node, targets[0], reads=operator in {"<", "<&"})
        return targets[1:]

    def _judge_file(self, node: "Node", word: Word, *, reads: bool) -> None:
        place = paths.place(pattern(word.text, glob=word.glob), self._scope.cwd)
        risk, reason = (
            paths.judge_read(place, self._where) if reads else paths.judge_write(place, self._where)
        )
        outside = reads and (UNRESOLVED in word.text or paths.reads_outside(place, self._where))
        self._parts.append(Part(text_of(node), risk, reason, outside))
