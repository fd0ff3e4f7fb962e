"""The walk over a command line: every node that can run something is visited."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from odek.trust import paths
from odek.trust.paths import UNRESOLVED, Where
from odek.trust.risk import Part, Risk
from odek.trust.shell import commands
from odek.trust.shell.call import Context, pattern
from odek.trust.shell.outputs import decode_base64, output_of
from odek.trust.shell.tree import assigned, decodes, descendants, evaluates, heredoc_text
from odek.trust.shell.variables import holds_secret, judge_assignment
from odek.trust.shell.words import Expander, Scope, Word, text_of

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

__all__ = ["DECEIVING", "Walker", "unknown"]

DECEIVING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
"""Characters that make a command look other than it is: controls, direction changes, tags."""

# A person nests a handful; the walk is recursive.
_DEPTH_LIMIT = 60
_NESTED_SHELLS_LIMIT = 8
# A brace list that begins a word in the program's place, which the grammar does not take.
_GLUED_BRACE = re.compile(r"(?<![\w$\"'\\{}])\{(?=[^\s{}]*(?:,|\.\.)[^\s{}]*\})")


def unknown(text: str, reason: str) -> Part:
    """Return the part of a verdict that says that ``text`` cannot be judged."""
    return Part(text[:200], Risk.UNKNOWN, reason)


@lru_cache(maxsize=1)
def _parser() -> "Parser":
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


class Walker:
    """Visits the nodes of one command line in the order in which the shell would.

    The scope follows assignments and changes of directory. What a branch or loop may or
    may not have set counts as not known behind it.
    """

    def __init__(self, where: Where, scope: Scope, *, depth: int, functions: set[str] | None = None) -> None:
        self._where = where
        self._scope = scope
        self._depth = depth
        self._functions = functions if functions is not None else set()
        self._parts: list[Part] = []
        self._stdin: list[str] = []
        self._decoder = False
        self._nesting = 0
        self._outputs: dict[int, Word] = {}
        self._expander = Expander(scope, self._substitution)

    def code(self, text: str) -> list[Part]:
        """Judge shell code."""
        if self._depth > _NESTED_SHELLS_LIMIT:
            return [unknown(text, "nests too many shells")]
        source = text.encode("utf-8", "replace")
        root = _parser().parse(source).root_node
        if root.has_error:
            repaired = _GLUED_BRACE.sub("''{", text)
            second = _parser().parse(repaired.encode("utf-8", "replace")).root_node
            if second.has_error:
                self._parts.append(unknown(text, "the grammar cannot read it with certainty"))
            else:
                root = second
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
        match node.type:
            case "command":
                self._command(node, [])
            case "redirected_statement":
                self._redirected(node)
            case "pipeline":
                self._pipeline(node)
            case "variable_assignment":
                self._assign(node)
            case "declaration_command" | "unset_command":
                self._declaration(node)
            case "function_definition":
                self._function(node)
            case "for_statement":
                self._for(node)
            case "subshell":
                self._isolated(node.named_children)
            case "if_statement" | "while_statement" | "c_style_for_statement" | "case_statement" | "list":
                self._uncertain(node)
            case "test_command" | "compound_statement" if evaluates(node):
                self._arithmetic(node)
            case "command_substitution" | "process_substitution":
                self._substitution(node)
            case "file_redirect" | "herestring_redirect" | "heredoc_redirect":
                self._redirect(node)
            case "expansion" | "simple_expansion":
                self._variable_use(node)
                self._children(node)
            case _:
                self._children(node)

    def _children(self, node: "Node") -> None:
        for child in node.named_children:
            self._visit(child)

    def _isolated(self, nodes: Sequence["Node"]) -> None:
        """Visit nodes that run in a process of their own: what they set is gone afterwards."""
        cwd, variables = self._scope.cwd, dict(self._scope.variables)
        for node in nodes:
            self._visit(node)
        self._scope.cwd = cwd
        self._scope.variables.clear()
        self._scope.variables.update(variables)

    def _uncertain(self, node: "Node") -> None:
        """Visit nodes of which some may not run, or run again with what they set before."""
        if node.type != "list":
            for name in assigned(node):
                self._scope.variables[name] = None
        cwd = self._scope.cwd
        self._children(node)
        if node.type != "list":
            for name in assigned(node):
                self._scope.variables[name] = None
            self._lose_directory(cwd)

    def _lose_directory(self, before: str) -> None:
        if self._scope.cwd != before:
            self._scope.cwd = f"{self._where.workspace}/{UNRESOLVED}"

    def _for(self, node: "Node") -> None:
        variable = next((child for child in node.named_children if child.type == "variable_name"), None)
        values = [word for child in node.children_by_field_name("value") for word in self._words(child)]
        for name in assigned(node):
            self._scope.variables[name] = None
        body = node.child_by_field_name("body")
        cwd = self._scope.cwd
        fixed = (
            values
            and len(values) <= 8
            and all(UNRESOLVED not in word.text and not word.hidden for word in values)
        )
        for value in values if fixed else [None]:
            if variable is not None:
                self._scope.variables[text_of(variable)] = value.text if value is not None else None
            if body is not None:
                self._visit(body)
        if variable is not None:
            self._scope.variables[text_of(variable)] = None
        self._lose_directory(cwd)

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
        calls = [
            child for child in descendants(body) if child.type == "command_name" and text_of(child) == name
        ]
        if calls and any(child.type in {"pipeline", "&"} for child in descendants(body)):
            self._parts.append(Part(text_of(node), Risk.BLOCKED, "a function that starts itself without end"))
        self._functions.add(name)
        cwd = self._scope.cwd
        for variable in assigned(body):
            self._scope.variables[variable] = None
        self._visit(body)
        for variable in assigned(body):
            self._scope.variables[variable] = None
        self._lose_directory(cwd)

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
        if node.type in {"word", "number", "raw_string"}:
            return
        for child in (node, *descendants(node)):
            if child.type in {"simple_expansion", "expansion"}:
                self._variable_use(child)

    def _variable_use(self, node: "Node") -> None:
        match = re.match(r"\$\{?!?([A-Za-z_]\w*)", text_of(node))
        if match and holds_secret(match[1]) and match[1] not in self._scope.variables:
            self._parts.append(
                Part(text_of(node), Risk.SYSTEM_WRITE, f"uses {match[1]}, a credential by its name")
            )

    def _substitution(self, node: "Node") -> Word:
        """Visit what a substitution runs; return its output where that is fixed."""
        known = self._outputs.get(node.id)
        if known is None:
            self._nesting += 1
            if self._nesting > _DEPTH_LIMIT:
                self._parts.append(unknown(text_of(node), "is nested too deeply"))
                known = Word(UNRESOLVED)
            else:
                self._isolated(node.named_children)
                inner = [child for child in node.named_children if child.type != "comment"]
                output = self._fixed_output(inner[0]) if len(inner) == 1 else None
                known = Word(
                    UNRESOLVED if output is None else output, hidden=output is None and decodes(node)
                )
            self._nesting -= 1
            self._outputs[node.id] = known
        return known

    def _fixed_output(self, node: "Node") -> str | None:
        before = len(self._parts)
        output = output_of(node, self._words, self._scope.cwd)
        del self._parts[before:]  # its words are judged where the command itself is visited
        return output

    # -- commands --------------------------------------------------------------------------------------------

    def _command(self, node: "Node", extra: Sequence[Word]) -> None:
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
        self._after(words)
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
        scope = Scope(self._scope.cwd, self._scope.home, dict(self._scope.variables))
        return Walker(self._where, scope, depth=self._depth + 1, functions=self._functions).code(text)

    def _after(self, words: Sequence[Word]) -> None:
        """Forget what a builtin may have changed in ways that are not followed here."""
        if not words:
            return
        match words[0].text:
            case "read" | "readarray" | "mapfile" | "getopts" | "printf" | "let":
                for word in words[1:]:
                    if word.text.isidentifier():
                        self._scope.variables[word.text] = None
            case "eval" | "source" | "." | "builtin" | "command":
                for name in list(self._scope.variables):
                    self._scope.variables[name] = None
                if words[0].text != "command":
                    self._scope.cwd = f"{self._where.workspace}/{UNRESOLVED}"

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
            plain = not (appended or subscript or value is None or UNRESOLVED in value)
            self._scope.variables[name] = value if plain else None

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
                self._scope.variables[word.text] = ""
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
