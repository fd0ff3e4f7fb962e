"""The walk over a command line: every node that can run something is visited."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from odek.trust import paths
from odek.trust.paths import UNRESOLVED, Where
from odek.trust.risk import Part, Risk
from odek.trust.shell import commands
from odek.trust.shell.call import Context, pattern
from odek.trust.shell.grammar import DECEIVING, parse
from odek.trust.shell.outputs import decode_base64, output_of
from odek.trust.shell.scope import Scope
from odek.trust.shell.tree import assigned, decodes, descendants, evaluates, heredoc_text, starts_itself
from odek.trust.shell.variables import holds_secret, judge_assignment
from odek.trust.shell.words import Expander, Word, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Walker", "unknown"]

# A person nests a handful; the walk is recursive.
_DEPTH_LIMIT = 60
_NESTED_SHELLS_LIMIT = 8
# The body of a loop is judged so often at most; no measurement behind this.
_ROUNDS_LIMIT = 8


def unknown(text: str, reason: str) -> Part:
    """Return the part of a verdict that says that ``text`` cannot be judged."""
    return Part(text[:200], Risk.UNKNOWN, reason)


class Walker:
    """Visits the nodes of one command line in the order in which the shell would.

    The scope follows assignments and changes of directory. What a branch or loop may or
    may not have set counts as not known behind it.
    """

    def __init__(
        self, where: Where, scope: Scope, *, depth: int = 0, functions: set[str] | None = None
    ) -> None:
        self._where = where
        self._scope = scope
        self._depth = depth
        self._functions = functions if functions is not None else set()
        self._parts: list[Part] = []
        self._stdin: list[str] = []
        self._decoder = False
        self._nesting = 0
        self._outputs: dict[tuple[int, int], Word] = {}
        self._expander = Expander(scope, self._substitution)
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

    def _visit(self, node: "Node") -> None:
        self._nesting += 1
        if self._nesting > _DEPTH_LIMIT:
            self._parts.append(unknown(text_of(node), "is nested too deeply"))
        else:
            self._visit_type(node)
        self._nesting -= 1

    def _visit_type(self, node: "Node") -> None:
        visit = self._visits.get(node.type)
        if visit is not None and (node.type != "compound_statement" or evaluates(node)):
            visit(node)
        else:
            self._children(node)

    def _children(self, node: "Node") -> None:
        for child in node.named_children:
            self._visit(child)

    def _isolated(self, nodes: Sequence["Node"]) -> None:
        """Visit nodes that run in a process of their own: what they set is gone afterwards."""
        before = self._scope.snapshot()
        for node in nodes:
            self._visit(node)
        self._scope.restore(before)

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
        values = [word for child in node.children_by_field_name("value") for word in self._words(child)]
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

    # -- words -----------------------------------------------------------------------------------------------

    def _words(self, node: "Node") -> list[Word]:
        self._note_variables(node)
        return self._expander.words(node)

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

    # -- commands --------------------------------------------------------------------------------------------

    def _command(self, node: "Node", extra: Sequence[Word] = ()) -> None:
        words: list[Word] = []
        prefixed: list[Node] = []
        for child in node.named_children:
            match child.type:
                case "variable_assignment":
                    prefixed.append(child)
                    self._assign(child, temporary=True)
                case "herestring_redirect" | "file_redirect" | "heredoc_redirect":
                    words += self._redirect(child)
                case "comment":
                    pass
                case _:
                    words += self._words(child)
        words += extra
        if words and words[0].text in {"{", "}"} and len(words) > 1:
            words = words[1:]
        self._parts += commands.judge_command(words, self._context())
        self._scope.run_builtin([word.text for word in words])
        if not words and not prefixed and node.named_children:
            self._parts.append(Part(text_of(node), Risk.SAFE, "runs nothing"))

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

    # -- redirections ----------------------------------------------------------------------------------------

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
                self._visit(body)
                if extra:
                    self._parts.append(
                        unknown(text_of(node), "words behind a redirection that belong to no command")
                    )
        for child in node.named_children:
            if child.type == "heredoc_redirect":
                self._rest_of_heredoc(child)
        self._stdin = stdin

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
                    elif node.field_name_for_named_child(node.named_children.index(child)) == "argument":
                        extra += self._words(child)
                return extra
            case "file_redirect":
                return self._file_redirect(node)
            case _:
                self._visit(node)
                return []

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

    def _file_redirect(self, node: "Node") -> list[Word]:
        operator = next((text_of(child) for child in node.children if not child.is_named), "")
        targets = [
            word for child in node.children_by_field_name("destination") for word in self._words(child)
        ]
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
