"""From a node of the bash grammar to the words that the shell would make of it.

Quotes, backslashes, ``$'…'``, braces, tildes and the expansions whose value is fixed are
carried out; what only the running shell knows becomes ``UNRESOLVED``. Nothing is executed
and no file is read.
"""

import re
from typing import TYPE_CHECKING, Protocol

import msgspec

from odek.trust.paths import UNRESOLVED
from odek.trust.shell import marks
from odek.trust.shell.grammar import plain, text_of
from odek.trust.shell.marks import ACTIVE_TILDE
from odek.trust.shell.parameters import Parameter, apply, parse_parameter
from odek.trust.shell.scope import Scope
from odek.trust.shell.tree import gap_before, substitutions
from odek.trust.shell.values import Value

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Expander", "Surroundings", "Word", "decode_ansi_c"]

# A person nests a handful; the expansion is recursive.
_NESTING_LIMIT = 40
# What an element of an array costs beside its characters.
_ELEMENT_CHARACTERS = 64
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class Word(msgspec.Struct, frozen=True):
    """One word of a command, quotes gone.

    Attributes:
        text: The word; ``UNRESOLVED`` stands for a part that is not known.
        glob: Unquoted pattern characters are in it.
        raw: Its source.
        hidden: A decoder produced it, so that nobody reading could tell it.
        foreign: It comes from data that the command reads: whoever wrote that chose it.
        maybe: It is one of several that this word may be.
    """

    text: str
    glob: bool = False
    raw: str = ""
    hidden: bool = False
    foreign: bool = False
    maybe: bool = False

    @property
    def known(self) -> bool:
        """Whether the whole value is fixed."""
        return UNRESOLVED not in self.text and not (self.glob or self.foreign or self.maybe)

    def with_text(self, text: str) -> "Word":
        """Return a word of the same origin with another text, such as a piece of this one."""
        return msgspec.structs.replace(self, text=text)

    def marked(self) -> str:
        """Return the word as marked text."""
        return marks.with_active_pattern(self.text) if self.glob else self.text


class Surroundings(Protocol):
    """Who evaluates what stands inside words."""

    def substitution(self, node: "Node") -> Value:
        """Judge a command or process substitution, and return its output as far as it is known."""
        ...

    def evaluate(self, node: "Node") -> None:
        """Judge text that is evaluated as arithmetic."""
        ...

    def give_up(self, node: "Node") -> None:
        """Note that what stands in ``node`` is nested too deeply to be judged."""
        ...

    def takes(self, size: int) -> bool:
        """Take note that a value of so many characters is put into a word; False when it is too much.

        A value that is made of itself doubles with every command.
        """
        ...


class Expander:
    """Turns nodes into words within a scope."""

    def __init__(self, scope: Scope, surroundings: Surroundings) -> None:
        self._scope = scope
        self._surroundings = surroundings
        self._hidden = False
        self._foreign = False
        self._assigning = False
        self._nesting = 0

    def words(self, *nodes: "Node") -> list[Word]:
        """Return the words that ``nodes`` expand to, which stand together without a gap."""
        hidden, foreign = self._begin()
        marked = "".join(self._marked(node) for node in nodes)
        raw = "".join(text_of(node) for node in nodes)
        several = marks.is_uncertain(marked)
        if not marked and not any(quote in raw for quote in "'\""):
            marked = marks.SPACE  # an expansion to nothing is no word
        found = [self._finish(field, raw, maybe=several) for field in marks.fields(marked)]
        self._hidden, self._foreign = hidden, foreign
        return found

    def value(self, node: "Node") -> Value:
        """Return the value of ``node`` where no splitting happens, as in an assignment."""
        hidden, foreign = self._begin()
        assigning, self._assigning = self._assigning, True
        marked = self._marked(node)
        if ACTIVE_TILDE in marked:
            marked = ":".join(self._tilde(part) for part in marked.split(":"))
        texts = marks.alternatives([marked.replace(ACTIVE_TILDE, "~")])
        value = Value(tuple(dict.fromkeys(texts)), self._foreign, self._hidden)
        self._assigning = assigning
        self._hidden, self._foreign = hidden, foreign
        return value

    def _begin(self) -> tuple[bool, bool]:
        """Start a word, perhaps within another one; return what is known of that."""
        outer = self._hidden, self._foreign
        self._hidden = self._foreign = False
        return outer

    def _finish(self, marked: str, raw: str, *, maybe: bool) -> Word:
        marked = self._tilde(marked)
        if (cut := marked.find("=" + ACTIVE_TILDE)) >= 0:
            marked = marked[: cut + 1] + self._tilde(marked[cut + 1 :])
        text = marks.plain_text(marked)
        return Word(text, marks.has_pattern(marked), raw, self._hidden, self._foreign, maybe)

    def _tilde(self, marked: str) -> str:
        if not marked.startswith(ACTIVE_TILDE):
            return marked
        name, slash, rest = marked[1:].partition("/")
        home = marks.any_of(self._scope.value("HOME").texts)
        if name == "":
            base = home
        elif name == "+":
            base = marks.any_of(self._scope.directories)
        elif name == "root":
            base = "/root"
        elif name == self._scope.home.rsplit("/", 1)[-1]:
            base = self._scope.home
        elif re.fullmatch(r"[\w.-]+", name):
            base = self._scope.home.rsplit("/", 1)[0] + "/" + name
        else:
            base = UNRESOLVED
        return base + slash + rest

    def _marked(self, node: "Node") -> str:
        if self._nesting >= _NESTING_LIMIT:
            self._surroundings.give_up(node)
            return UNRESOLVED
        self._nesting += 1
        marked = self._marked_by_type(node)
        self._nesting -= 1
        return marked

    def _marked_by_type(self, node: "Node") -> str:
        match node.type:
            case "word" | "number" | "file_descriptor" | "extglob_pattern" | "regex" | "variable_name":
                return self._unquoted(text_of(node))
            case "raw_string":
                return text_of(node)[1:-1]
            case "ansi_c_string":
                return decode_ansi_c(text_of(node)[2:-1])
            case "string":
                return self._string(node)
            case "translated_string":
                return "".join(self._marked(child) for child in node.named_children)
            case "concatenation" | "command_name":
                return self._joined(node)
            case "array":
                words = [word for child in node.named_children for word in self._element(child)]
                return marks.SPACE.join(word.marked() for word in words) or marks.SPACE
            case "simple_expansion" | "expansion":
                return self._split(self._expansion(node))
            case "command_substitution":
                return self._split(self._substitution(node))
            case "process_substitution":
                self._surroundings.substitution(node)
                return "/dev/fd/63"
            case "arithmetic_expansion":
                self._surroundings.evaluate(node)
                return "0"
            case "brace_expression":
                return self._unquoted(text_of(node))
            case _:
                self._visit(node)
                return UNRESOLVED

    def _element(self, node: "Node") -> list[Word]:
        """Return the words of one element of an array, the subscript before it left out."""
        hidden, foreign, assigning = self._hidden, self._foreign, self._assigning
        self._assigning = False
        words = self.words(node)
        self._surroundings.takes(_ELEMENT_CHARACTERS * len(words))
        self._assigning = assigning
        self._hidden = hidden or any(word.hidden for word in words)
        self._foreign = foreign or any(word.foreign for word in words)
        return [word.with_text(_SUBSCRIPT.sub("", word.text)) for word in words]

    def _split(self, text: str) -> str:
        return text if self._assigning else marks.split_active(text)

    def _unquoted(self, source: str) -> str:
        """Return unquoted source as marked text; in an assignment only a tilde acts."""
        activate = marks.tilde_activated if self._assigning else marks.activated
        if "\\" not in source:
            return activate(source)
        out, at = [], 0
        for match in _ESCAPE.finditer(source):
            out.append(activate(source[at : match.start()]))
            out.append("" if match[1] == "\n" else match[1])
            at = match.end()
        out.append(activate(source[at:]))
        return "".join(out)

    def _joined(self, node: "Node") -> str:
        """Concatenate children, keeping what lies between them in the source."""
        source, out, at = node.text or b"", [], node.start_byte
        for child in node.children:
            gap = plain(source[at - node.start_byte : child.start_byte - node.start_byte])
            out.append(self._unquoted(gap))
            out.append(self._unquoted(text_of(child)) if not child.is_named else self._marked(child))
            at = child.end_byte
        return "".join(out)

    def _string(self, node: "Node") -> str:
        """Return the content of a double-quoted string; white space in it is kept."""
        source, out, at = node.text or b"", [], 0
        for child in node.named_children:
            if child.type == "string_content":
                continue
            out.append(_double_quoted(source[at : child.start_byte - node.start_byte]))
            at = child.end_byte - node.start_byte
            out.append(gap_before(child))
            match child.type:
                case "command_substitution":
                    out.append(self._substitution(child))
                case "simple_expansion" | "expansion":
                    out.append(self._expansion(child))
                case _:
                    out.append(marks.plain_text(self._marked(child)))
        out.append(_double_quoted(source[at:]))
        whole = "".join(out)
        start = whole.find('"') + 1
        return whole[start : whole.rfind('"')]

    def _substitution(self, node: "Node") -> str:
        return self._used(self._surroundings.substitution(node).map(lambda text: text.rstrip("\n")))

    def _used(self, value: Value) -> str:
        """Return ``value`` as marked text; its origin is that of the word that it is in."""
        self._hidden = self._hidden or value.hidden
        self._foreign = self._foreign or value.foreign
        return marks.any_of(value.texts) if self._surroundings.takes(value.size) else UNRESOLVED

    def _expansion(self, node: "Node") -> str:
        """Return the value of ``$x`` or ``${x…}``; walk into defaults and subscripts."""
        self._visit(node)
        parameter = parse_parameter(text_of(node).lstrip(), self._scope)
        if parameter is None:
            return UNRESOLVED
        if parameter.name == "IFS" and not self._scope.is_set("IFS"):
            return " "
        if parameter.operator in {"-", "=", "+"}:
            return self._with_default(node, parameter)
        if parameter.operator and not self._surroundings.takes(parameter.value.size):
            return UNRESOLVED
        return self._used(apply(parameter, is_set=self._scope.is_set(parameter.name)))

    def _with_default(self, node: "Node", parameter: Parameter) -> str:
        """Return the value; for an unset variable, the word behind ``:-``, which an attacker would choose."""
        children = [
            child for child in node.named_children if child.type not in {"variable_name", "subscript"}
        ]
        is_set = self._scope.is_set(parameter.name) or parameter.value.text is not None
        own = [text for text in parameter.value.texts if text]
        if is_set and own and parameter.operator != "+":
            return self._used(msgspec.structs.replace(parameter.value, texts=tuple(own)))
        if not is_set and parameter.operator == "+":
            return UNRESOLVED
        return "".join(gap_before(child) + marks.plain_text(self._marked(child)) for child in children)

    def _visit(self, node: "Node") -> None:
        """Report the substitutions below ``node`` whatever the node itself means."""
        for child in substitutions(node):
            if child.type == "arithmetic_expansion":
                self._surroundings.evaluate(child)
            else:
                self._surroundings.substitution(child)


_SUBSCRIPT = re.compile(r"^\[[^\]]*\]\+?=")


def _double_quoted(source: bytes) -> str:
    return re.sub(
        r'\\([$`"\\\n])',
        lambda match: "" if match[1] == "\n" else match[1],
        plain(source),
    )


_ANSI_C = re.compile(
    r"\\(?:x\{([0-9A-Fa-f]{1,8})\}|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))",
    re.DOTALL,
)
_ANSI_C_LETTERS = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


def decode_ansi_c(body: str) -> str:
    """Decode the escapes of ``$'…'``; those without a meaning stay as they are."""

    def decode(match: re.Match[str]) -> str:
        braced, two, short, long, octal, control, letter = match.groups()
        if code := braced or two or short or long:
            value = int(code, 16)
            return chr(value) if 0 < value < 0x110000 else UNRESOLVED
        if octal:
            return chr(int(octal, 8) & 0xFF) if int(octal, 8) & 0xFF else UNRESOLVED
        if control:
            return chr(ord(control) & 0x1F) or UNRESOLVED
        return _ANSI_C_LETTERS.get(letter, letter if letter in "\\'\"?" else "\\" + letter)

    return _ANSI_C.sub(decode, body)
