"""A verdict in words: each command, the program that it runs, its classes and why; pure functions."""

from collections.abc import Sequence
from typing import Final

from odek.cli.layout import Span, WordWrap, clip_columns, columns_of
from odek.cli.notes import one_line
from odek.cli.style import Attr, Style
from odek.trust.risk import Part, Risk

__all__ = ["command_lines", "explained", "paint_risk", "wrapped"]

_NARROWEST_COLUMNS: Final = 16


def wrapped(text: str, columns: int, *, indent: str = "") -> list[str]:
    """Return ``text``, which has no line ends, in lines of at most ``columns`` columns."""
    wrap = WordWrap(max(columns, _NARROWEST_COLUMNS), Style())
    wrap.start(Span(indent), Span(indent))
    wrap.add([Span(text)])
    wrap.end()
    return wrap.take().splitlines()


def paint_risk(risk: Risk, style: Style) -> str:
    """Return the name of a class in its colour."""
    return style.paint(risk.label, Attr.BOLD | Attr.RED if risk >= Risk.SYSTEM_WRITE else Attr.MAGENTA)


def explained(part: Part) -> str:
    """Return why a part has its class, with the program and the place that it names in other words."""
    reason = one_line(part.reason)
    details = []
    if part.program and not _names(part.program, part.text) and not _names(part.program, reason):
        details.append(f"runs {one_line(part.program)}")
    if part.path and part.path not in part.reason and part.path not in part.text.split():
        details.append(one_line(part.path))
    return f"{reason} [{', '.join(details)}]" if details else reason


def _names(program: str, text: str) -> bool:
    """Whether ``text`` says the name of a program in clear."""
    return all(word in text.split() for word in program.replace("/", " ").split())


def command_lines(parts: Sequence[Part], style: Style, columns: int) -> list[str]:
    """Return the parts of a call under the commands that they belong to, in the order of their source."""
    labels = max((len(part.risk.label) for part in parts), default=0)
    lines: list[str] = []
    for number, group in enumerate(_by_command(parts), 1):
        head = f"{number}. "
        text = clip_columns(
            one_line(max(group, key=lambda part: (bool(part.program), len(part.text))).text),
            columns - columns_of(head),
            style.glyph("ellipsis"),
        )
        lines.append(f"{head}{style.paint(text, Attr.BOLD)}")
        for risk, reason in dict.fromkeys((part.risk, explained(part)) for part in group):
            indent = " " * (len(head) + labels + 2)
            first, *rest = wrapped(reason, columns, indent=indent)
            padding = " " * (labels - len(risk.label) + 2)
            lines += [f"{' ' * len(head)}{paint_risk(risk, style)}{padding}{first[len(indent) :]}", *rest]
    return lines


def _by_command(parts: Sequence[Part]) -> list[list[Part]]:
    """Return the parts of each simple command in their order; those of none stand alone, at the end."""
    groups: dict[tuple[int, str], list[Part]] = {}
    for part in sorted(parts, key=lambda part: part.command or len(parts)):
        groups.setdefault((part.command, "" if part.command else part.text), []).append(part)
    return list(groups.values())
