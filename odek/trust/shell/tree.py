"""Questions to the nodes of the bash grammar."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from odek.trust.shell.grammar import plain, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = [
    "DECODERS",
    "adjacent",
    "backquoted",
    "decodes",
    "descendants",
    "evaluates",
    "gap_before",
    "heredoc_text",
    "leaves",
    "outside_substitutions",
    "starts_itself",
    "substitutions",
]


DECODERS = frozenset({"base64", "base32", "basenc", "xxd", "rev", "tr", "openssl", "gpg", "uudecode"})
"""Programs that turn unreadable text into readable."""

_DECODER_NAMES = tuple(name.encode() for name in sorted(DECODERS))


def adjacent(nodes: Sequence["Node"]) -> list[list["Node"]]:
    """Group nodes between which nothing stands in the source; the grammar breaks some words."""
    groups: list[list[Node]] = []
    for node in nodes:
        if groups and groups[-1][-1].end_byte == node.start_byte:
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups


def gap_before(node: "Node") -> str:
    """Return the white space before an expansion in quotes, which the grammar counts to it."""
    text = text_of(node)
    return text[: len(text) - len(text.lstrip())]


def evaluates(node: "Node") -> bool:
    """Whether a test or ``(( ))`` evaluates its words as arithmetic."""
    return node.type == "test_command" or text_of(node).startswith("((")


def descendants(node: "Node") -> Sequence["Node"]:
    """Return all nodes below ``node``, in no order."""
    found: list[Node] = []
    todo = list(node.children)
    while todo:
        child = todo.pop()
        found.append(child)
        todo.extend(child.children)
    return found


def substitutions(node: "Node") -> "list[Node]":
    """Return what runs inside ``node``: substitutions and arithmetic, the outermost ones, in order."""
    found: list[Node] = []
    todo = list(reversed(node.named_children))
    while todo:
        child = todo.pop()
        if child.type in {"command_substitution", "process_substitution", "arithmetic_expansion"}:
            found.append(child)
        else:
            todo.extend(reversed(child.named_children))
    return found


def outside_substitutions(node: "Node") -> str:
    """Return the source of a node without the commands in it, whose words are no names here."""
    source, start = bytearray(node.text or b""), node.start_byte
    for child in descendants(node):
        if child.type in {"command_substitution", "process_substitution"}:
            length = child.end_byte - child.start_byte
            source[child.start_byte - start : child.end_byte - start] = b" " * length
    return plain(bytes(source))


def decodes(node: "Node") -> bool:
    """Whether a program that turns unreadable text into readable runs somewhere below."""
    if not any(name in (node.text or b"") for name in _DECODER_NAMES):
        return False
    below = (node, *descendants(node))
    return any(child.type == "command_name" and text_of(child) in DECODERS for child in below)


def heredoc_text(node: "Node") -> str:
    """Return the body of a here-document."""
    return next((text_of(child) for child in node.named_children if child.type == "heredoc_body"), "")


def leaves(node: "Node") -> bool:
    """Whether nothing behind ``node`` runs once it has run: it ends with ``exit`` or the like."""
    while node.type in {"compound_statement", "list"} and node.named_children:
        node = node.named_children[-1]
    name = node.child_by_field_name("name")
    return name is not None and text_of(name) in {"exit", "return", "break", "continue"}


def starts_itself(body: "Node", name: str) -> bool:
    """Whether the body of the function ``name`` starts it again beside itself: a fork bomb."""
    if name not in text_of(body):
        return False
    below = descendants(body)
    again = any(child.type == "command_name" and text_of(child) == name for child in below)
    return again and any(child.type in {"pipeline", "&"} for child in below)


_BACKQUOTED = re.compile(r"(?<!\\)`((?:[^`\\]|\\.)*)`", re.DOTALL)


def backquoted(heredoc: "Node") -> list[str]:
    """Return the commands in backquotes of a here-document that expands; the grammar skips them."""
    start = next((text_of(child) for child in heredoc.named_children if child.type == "heredoc_start"), "")
    if any(mark in start for mark in "'\"\\"):
        return []
    return [match[1] for match in _BACKQUOTED.finditer(heredoc_text(heredoc))]
