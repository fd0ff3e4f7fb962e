"""From a node of the bash grammar to the words that the shell would make of it.

Quotes, backslashes, ``$'…'``, braces, tildes and the expansions whose value is fixed are
carried out; what only the running shell knows becomes ``UNRESOLVED``. Nothing is executed
and no file is read.

While a word is put together, characters that act because they are not quoted are
carried as private-use characters; a command that holds such characters itself is refused
by the caller.
"""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from odek.trust.paths import UNRESOLVED
from odek.trust.shell.grammar import plain, text_of
from odek.trust.shell.scope import Scope

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["ACTIVE_CHARACTERS", "Expander", "Word", "decode_ansi_c"]

_STAR, _QUERY, _BRACKET, _OPEN, _COMMA, _CLOSE, _TILDE, _SPACE = map(chr, range(0xE000, 0xE008))
ACTIVE_CHARACTERS = re.compile("[\ue000-\ue007]")
_ACTIVATE = str.maketrans("*?[{,}~", _STAR + _QUERY + _BRACKET + _OPEN + _COMMA + _CLOSE + _TILDE)
_SPLIT = str.maketrans("*?[ \t\n", _STAR + _QUERY + _BRACKET + _SPACE * 3)
_PLAIN = str.maketrans(_STAR + _QUERY + _BRACKET + _OPEN + _COMMA + _CLOSE + _TILDE + _SPACE, "*?[{,}~ ")
_GLOB = re.compile(f"[{_STAR}{_QUERY}{_BRACKET}]")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_RANGE = re.compile(r"(-?\d{1,9}|[A-Za-z])\.\.(-?\d{1,9}|[A-Za-z])(?:\.\.-?\d{1,9})?$")
# More alternatives than a person writes; beyond them the word counts as unresolved.
_ALTERNATIVES_LIMIT = 64


class Word(msgspec.Struct, frozen=True):
    """One word of a command, quotes gone.

    ``glob`` says that unquoted pattern characters are in it. ``raw`` is its source.
    ``hidden`` marks a value that a decoder produced, so that nobody reading could tell it.
    """

    text: str
    glob: bool = False
    raw: str = ""
    hidden: bool = False

    @property
    def known(self) -> bool:
        """Whether the whole value is fixed."""
        return UNRESOLVED not in self.text and not self.glob


class Expander:
    """Turns nodes into words within a scope.

    ``on_substitution`` is asked for the output of each command or process substitution:
    its text where that is fixed, None where it is not.
    """

    def __init__(self, scope: Scope, on_substitution: "Callable[[Node], Word]") -> None:
        self._scope = scope
        self._on_substitution = on_substitution
        self._hidden = False

    def words(self, *nodes: "Node") -> list[Word]:
        """Return the words that ``nodes`` expand to, which stand together without a gap."""
        self._hidden = False
        marked = "".join(self._marked(node) for node in nodes)
        raw = "".join(text_of(node) for node in nodes)
        return [self._finish(field, raw) for item in _braces(marked) for field in _fields(item)]

    def value(self, node: "Node") -> str:
        """Return the one value of ``node`` where no splitting happens, as in an assignment."""
        self._hidden = False
        marked = self._marked(node)
        parts = [self._tilde(part) for part in marked.split(":")] if _TILDE in marked else [marked]
        return ":".join(parts).translate(_PLAIN)

    def _finish(self, marked: str, raw: str) -> Word:
        marked = self._tilde(marked)
        if (cut := marked.find("=" + _TILDE)) >= 0:
            marked = marked[: cut + 1] + self._tilde(marked[cut + 1 :])
        return Word(marked.translate(_PLAIN), bool(_GLOB.search(marked)), raw, self._hidden)

    def _tilde(self, marked: str) -> str:
        if not marked.startswith(_TILDE):
            return marked
        name, slash, rest = marked[1:].partition("/")
        home = self._scope.value("HOME")
        if name == "":
            base = home
        elif name == "+":
            base = self._scope.cwd
        elif name == "root":
            base = "/root"
        elif name == self._scope.home.rsplit("/", 1)[-1]:
            base = self._scope.home
        elif re.fullmatch(r"[\w.-]+", name):
            base = self._scope.home.rsplit("/", 1)[0] + "/" + name
        else:
            base = None
        return (UNRESOLVED if base is None else base) + slash + rest

    def _marked(self, node: "Node") -> str:
        match node.type:
            case "word" | "number" | "file_descriptor" | "extglob_pattern" | "regex" | "variable_name":
                return _unquoted(text_of(node))
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
            case "simple_expansion" | "expansion":
                return self._expansion(node).translate(_SPLIT)
            case "command_substitution":
                return self._substitution(node).translate(_SPLIT)
            case "process_substitution":
                self._on_substitution(node)
                return "/dev/fd/63"
            case "arithmetic_expansion":
                self._visit(node)
                return "0"
            case "brace_expression":
                return text_of(node).translate(_ACTIVATE)
            case _:
                self._visit(node)
                return UNRESOLVED

    def _joined(self, node: "Node") -> str:
        """Concatenate children, keeping what lies between them in the source."""
        source, out, at = node.text or b"", [], node.start_byte
        for child in node.children:
            gap = plain(source[at - node.start_byte : child.start_byte - node.start_byte])
            out.append(_unquoted(gap))
            out.append(_unquoted(text_of(child)) if not child.is_named else self._marked(child))
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
            match child.type:
                case "command_substitution":
                    out.append(self._substitution(child))
                case "simple_expansion" | "expansion":
                    out.append(self._expansion(child))
                case _:
                    out.append(self._marked(child).translate(_PLAIN))
        out.append(_double_quoted(source[at:]))
        whole = "".join(out)
        start = whole.find('"') + 1
        return whole[start : whole.rfind('"')]

    def _substitution(self, node: "Node") -> str:
        word = self._on_substitution(node)
        self._hidden = self._hidden or word.hidden
        return word.text.rstrip("\n")

    def _expansion(self, node: "Node") -> str:
        """Return the value of ``$x`` or ``${x…}``; walk into defaults and subscripts."""
        self._visit(node)
        text = text_of(node)
        match = _PARAMETER.match(text)
        if match is None:
            return UNRESOLVED
        name, rest = match[1], text[match.end() :].removesuffix("}")
        value = self._scope.value(name)
        if name == "IFS" and not self._scope.is_set("IFS"):
            return " "
        if not rest:
            return UNRESOLVED if value is None else value
        if name == "#":
            return "0"
        operator = _OPERATOR.match(rest)
        match operator[1] if operator else "":
            case "-" | "=":
                return value or self._default(node)
            case "+":
                return self._default(node) if value else UNRESOLVED
            case "?" if value is not None:
                return value
        return UNRESOLVED

    def _default(self, node: "Node") -> str:
        """Return the word behind ``:-``: what an attacker would choose for an unset variable."""
        children = [
            child for child in node.named_children if child.type not in {"variable_name", "subscript"}
        ]
        return "".join(self._marked(child) for child in children).translate(_PLAIN)

    def _visit(self, node: "Node") -> None:
        """Report the substitutions below ``node`` whatever the node itself means."""
        for child in node.named_children:
            if child.type in {"command_substitution", "process_substitution"}:
                self._on_substitution(child)
            else:
                self._visit(child)


_PARAMETER = re.compile(r"\$\{?([A-Za-z_]\w*|[@*#?$!0-9-])")
_OPERATOR = re.compile(r":?([-=+?])")


def _unquoted(source: str) -> str:
    if "\\" not in source:
        return source.translate(_ACTIVATE)
    out, at = [], 0
    for match in _ESCAPE.finditer(source):
        out.append(source[at : match.start()].translate(_ACTIVATE))
        out.append("" if match[1] == "\n" else match[1])
        at = match.end()
    out.append(source[at:].translate(_ACTIVATE))
    return "".join(out)


def _double_quoted(source: bytes) -> str:
    return re.sub(
        r'\\([$`"\\\n])',
        lambda match: "" if match[1] == "\n" else match[1],
        plain(source),
    )


def _fields(marked: str) -> Iterator[str]:
    if _SPACE not in marked:
        yield marked
    else:
        yield from (field for field in marked.split(_SPACE) if field)


def _braces(marked: str) -> list[str]:
    """Expand active braces, the leftmost group first."""
    if _OPEN not in marked:
        return [marked]
    done: list[str] = []
    todo = [marked]
    while todo:
        if len(todo) + len(done) > _ALTERNATIVES_LIMIT:
            return [UNRESOLVED]
        item = todo.pop()
        group = _first_group(item)
        if group is None:
            done.append(item)
        else:
            start, end, choices = group
            todo.extend(item[:start] + choice + item[end:] for choice in reversed(choices))
    return done


def _first_group(marked: str) -> tuple[int, int, list[str]] | None:
    start = marked.find(_OPEN)
    while start >= 0:
        depth, at, choices = 0, start + 1, []
        for index in range(start, len(marked)):
            char = marked[index]
            if char == _OPEN:
                depth += 1
            elif char == _CLOSE:
                depth -= 1
                if depth == 0:
                    choices.append(marked[at:index])
                    chosen = choices if len(choices) > 1 else _range(choices[0])
                    if chosen:
                        return start, index + 1, chosen
                    break
            elif char == _COMMA and depth == 1:
                choices.append(marked[at:index])
                at = index + 1
        start = marked.find(_OPEN, start + 1)
    return None


def _range(body: str) -> list[str]:
    match = _RANGE.match(body)
    if match is None:
        return []
    low, high = match[1], match[2]
    if low.lstrip("-").isdigit() and high.lstrip("-").isdigit():
        first, last = sorted((int(low), int(high)))
        # The ends stand for a long run of numbers: no path turns dangerous in its middle.
        values = list(range(first, last + 1)) if last - first < _ALTERNATIVES_LIMIT // 2 else [first, last]
        return [str(value) for value in values]
    if low.isalpha() and high.isalpha():
        first, last = sorted((ord(low), ord(high)))
        return [chr(code) for code in range(first, last + 1)]
    return []


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
