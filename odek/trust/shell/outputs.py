"""What simple programs print when all their words are known: found without running them."""

import base64
import binascii
import re
from typing import TYPE_CHECKING

from odek.trust.paths import UNRESOLVED
from odek.trust.shell.grammar import text_of
from odek.trust.shell.tree import decodes, heredoc_text
from odek.trust.shell.words import Word, decode_ansi_c

if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node

__all__ = ["decode_base64", "output_of"]


def output_of(node: "Node", words_of: "Callable[[Node], list[Word]]", cwd: str) -> str | None:
    """Return what the command at ``node`` prints, None when only running it would tell.

    Known are ``echo``, ``printf``, ``pwd``, ``mktemp``, ``date``, ``cat`` of a here-document, and
    what a base64 decoder makes of these. ``words_of`` expands a node to words.
    """
    match node.type:
        case "redirected_statement":
            body = node.child_by_field_name("body")
            if body is None or text_of(body).strip() != "cat":
                return None
            documents = (child for child in node.named_children if child.type == "heredoc_redirect")
            return next((heredoc_text(child) for child in documents), None)
        case "pipeline":
            first, *stages = node.named_children
            text = output_of(first, words_of, cwd)
            for stage in stages:
                text = decode_base64(text) if text is not None and decodes(stage) else None
            return text
        case "command":
            parts = (child for child in node.named_children if child.type != "variable_assignment")
            words = [word for child in parts for word in words_of(child)]
            if not words:
                return None
            known = all(word.known for word in words)
            return _fixed_output(words[0].text, [word.text for word in words[1:]], cwd) if known else None
    return None


def decode_base64(text: str) -> str | None:
    """Return the text that ``text`` encodes, None when it is no base64 of text."""
    try:
        return base64.b64decode(text.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def _fixed_output(program: str, arguments: list[str], cwd: str) -> str | None:
    """Return what a program prints, None when that depends on more than its words."""
    match program.rsplit("/", 1)[-1]:
        case "echo":
            flags = [word for word in arguments[:2] if re.fullmatch(r"-[neE]+", word)]
            text = " ".join(arguments[len(flags) :])
            return decode_ansi_c(text) if any("e" in flag for flag in flags) else text
        case "printf" if arguments and not arguments[0].startswith("-"):
            return _printf(arguments[0], arguments[1:])
        case "pwd" if UNRESOLVED not in cwd:
            return cwd
        case "mktemp" if not any("/" in word for word in arguments):
            return "/tmp/tmp.0000000000"  # noqa: S108 - the shape of what it prints
        case "date" if not any("/" in word for word in arguments):
            return "00000000"
    return None


def _printf(form: str, arguments: list[str]) -> str | None:
    form = decode_ansi_c(form.replace("\\0", "\\"))
    pieces = re.split(r"%(?:b|s|%)", form)
    kinds = re.findall(r"%(b|s|%)", form)
    if any("%" in piece for piece in pieces) or UNRESOLVED in form:
        return None
    out, left = [pieces[0]], list(arguments)
    for kind, piece in zip(kinds, pieces[1:], strict=True):
        if kind == "%":
            out.append("%")
        else:
            value = left.pop(0) if left else ""
            out.append(decode_ansi_c(value) if kind == "b" else value)
        out.append(piece)
    if left and any(kind != "%" for kind in kinds):
        more = _printf(form, left)
        return None if more is None else "".join(out) + more
    return "".join(out)
