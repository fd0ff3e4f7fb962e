"""One calm line for each thing that happens; pure functions from events to text."""

from collections.abc import Sequence
from typing import Final, assert_never

from odek.cli.layout import Span, WordWrap, clip_columns, columns_of
from odek.cli.style import Attr, Style
from odek.events import (
    ApprovalResolved,
    BudgetWarning,
    ChildrenChanged,
    ChildState,
    ContextTrimmed,
    MemoryEvent,
    ModelRetrying,
    Notice,
    PlanChanged,
    ReplyLedgerMismatch,
    ToolFinished,
    ToolRecovery,
    ToolRunning,
    TurnDiverged,
    TurnFinished,
    Usage,
)
from odek.text import readable, visible

__all__ = [
    "NoteEvent",
    "child_lines",
    "child_table",
    "closing_line",
    "diff_attr",
    "diff_lines",
    "is_detail",
    "note",
    "one_line",
    "seconds_text",
    "tool_line",
]

_Worded = (
    ModelRetrying
    | ApprovalResolved
    | ContextTrimmed
    | ToolRecovery
    | BudgetWarning
    | ReplyLedgerMismatch
    | MemoryEvent
    | Notice
    | ToolRunning
    | TurnDiverged
)
NoteEvent = PlanChanged | _Worded
"""What is a note of its own, whoever shows it."""

_DIFF_LINES: Final = 40  # what fits on a screen beside the rest; no measurement behind it
_SHORTEST_SUMMARY: Final = 8
_NAMED_COLUMNS: Final = 60  # of what diverged, and of where it was named; `odek audit --json` has the rest
_OUTCOME_SIGNS: Final = {
    "ok": ("ok", Attr.GREEN),
    "error": ("fail", Attr.RED),
    "denied": ("fail", Attr.MAGENTA),
    "cancelled": ("fail", Attr.MAGENTA),
}
_TURN_WORDS: Final = {
    "cancelled": ("cancelled", Attr.MAGENTA),
    "limit": ("stopped", Attr.MAGENTA),
    "failed": ("failed", Attr.RED),
}
_PLAN_SIGNS: Final = {"done": "x", "doing": ">", "dropped": "-"}  # any other state is open


def seconds_text(seconds: float) -> str:
    """Return a duration as a person says it: ``0.4 s``, ``3 min 05 s``."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    return f"{round(seconds) // 60} min {round(seconds) % 60:02} s"


def one_line(text: str) -> str:
    """Return ``text`` on one line, safe for a terminal."""
    return readable(" ".join(text.split()), keep_newlines=False)


def tool_line(event: ToolFinished, style: Style, columns: int) -> str:
    """Return the line that stays when a call has ended, cut to ``columns``."""
    dot, ellipsis = f" {style.glyph('dot')} ", style.glyph("ellipsis")
    sign, attr = _OUTCOME_SIGNS[event.outcome]
    ran = event.outcome in {"ok", "error"}
    tail = dot + (seconds_text(event.seconds) if ran else event.outcome)
    name, summary = one_line(event.name), one_line(event.summary)
    room = columns - columns_of(f"{style.glyph(sign)} {name}  {tail}")
    if event.outcome in {"error", "denied"} and (reason := one_line(event.preview)):
        least = min(columns_of(summary), max(room // 3, _SHORTEST_SUMMARY))
        reason = clip_columns(reason, room - len(dot) - least, ellipsis)
        room -= columns_of(dot + reason)
        tail += dot + reason
    summary = clip_columns(summary, max(room, _SHORTEST_SUMMARY), ellipsis)
    head = f"{style.paint(style.glyph(sign), attr)} {style.paint(name, Attr.BOLD)}"
    return f"{head}  {summary}{style.paint(tail, Attr.DIM)}"


def is_detail(event: NoteEvent) -> bool:
    """Tell whether only a person who wants to see everything is shown ``event``."""
    return isinstance(event, ApprovalResolved | MemoryEvent)


def note(event: NoteEvent, style: Style, columns: int) -> str:
    """Return what ``event`` means to the person, wrapped at ``columns``, without the last line end."""
    if isinstance(event, PlanChanged):
        return "\n".join(_plan_line(state, title, style, columns) for state, title in event.steps)
    text, attr = _wording(event, style)
    if attr is Attr.MAGENTA:
        text = f"{style.glyph('warning')} {text}"
    wrap = WordWrap(columns, style)
    wrap.start(Span(""), Span("  "))
    wrap.add([Span(text)])
    return "\n".join(style.paint("".join(span.text for span in line), attr) for line in wrap.lines())


def _wording(event: _Worded, style: Style) -> tuple[str, Attr]:
    match event:
        case ModelRetrying(attempt, wait, reason):
            text = f"trying again in {seconds_text(wait)} (attempt {attempt}): {one_line(reason)}"
            return text, Attr.DIM
        case ContextTrimmed(groups, estimated, limit, shortened):
            gone = [f"{groups} old steps left out of the request"] if groups else []
            gone += [f"{shortened} tool result{'s' if shortened > 1 else ''} shortened"] if shortened else []
            of_all = f" of {limit:,}" if limit else ""
            return f"{', '.join(gone)}: {estimated:,}{of_all} tokens", Attr.DIM
        case ToolRecovery(name, failures):
            text = (
                f"{one_line(name)} failed the same way {failures} times; the model was told to change course"
            )
            return text, Attr.DIM
        case BudgetWarning():
            return _budget(event), Attr.MAGENTA
        case TurnDiverged():
            return _diverged(event, style)
        case ReplyLedgerMismatch(changes):
            done = ", ".join(map(one_line, changes))
            return f"the answer denies changes that were made: {done}", Attr.MAGENTA
        case MemoryEvent():
            return _memory(event, style), Attr.DIM
        case Notice(text, level):
            return one_line(text), Attr.MAGENTA if level == "warning" else Attr.DIM
        case ToolRunning(_, name, seconds):
            dot = style.glyph("dot")
            return f"{one_line(name)} {dot} still running after {seconds_text(seconds)}", Attr.DIM
        case ApprovalResolved():
            verb = "allowed" if event.approved else "denied"
            dot = style.glyph("dot")
            return (
                f"{one_line(event.name)} {dot} {event.risk} {verb} by {event.by.replace('_', ' ')}",
                Attr.DIM,
            )
        case unreachable:
            assert_never(unreachable)


def _memory(event: MemoryEvent, style: Style) -> str:
    """Return what happened to the memory, and to which part of it."""
    subject = event.target or event.session_id
    where = f"memory[{one_line(subject)}]" if subject else "memory"
    sign = f"{style.glyph('memory')} " if style.glyph("memory") else ""
    if event.kind == "fact_consolidated":
        text = f"consolidated {where} ({event.count} {style.glyph('arrow')} {event.new_count} entries)"
        return sign + text
    text = f"{sign}{where} {event.kind.split('_', 1)[1].replace('_', ' ')}"
    if event.similarity is not None:
        text += f" (likeness {event.similarity:.2f})"
    if event.kind == "episode_evicted":
        text += f" {event.count}: {', '.join(map(one_line, event.sessions))}"
    return f"{text}: {one_line(event.content)}" if event.content else text


def closing_line(event: TurnFinished, style: Style) -> str:
    """Return time, tokens and cost of a turn; what is not known is left out."""
    dot = f" {style.glyph('dot')} "
    facts = dot.join([seconds_text(event.seconds), *_usage_parts(event.usage)])
    if event.outcome == "answered":
        return style.paint(facts, Attr.DIM)
    word, attr = _TURN_WORDS[event.outcome]
    reason = f": {one_line(event.reason)}" if event.reason else ""
    return style.paint(word + reason, attr) + style.paint(dot + facts, Attr.DIM)


def diff_lines(diff: str, style: Style, columns: int) -> list[str]:
    """Return the first lines of a unified diff, cut to ``columns``, and how many there are more."""
    lines = diff.splitlines()
    shown = lines if len(lines) <= _DIFF_LINES + 1 else lines[:_DIFF_LINES]
    ellipsis = style.glyph("ellipsis")
    out = [
        "  " + style.paint(clip_columns(visible(line), columns - 2, ellipsis), diff_attr(line))
        for line in shown
    ]
    if len(shown) < len(lines):
        out.append(style.paint(f"  {ellipsis} {len(lines) - len(shown):,} more lines", Attr.DIM))
    return out


def diff_attr(line: str) -> Attr:
    """Return how a line of a unified diff is shown, by its first characters."""
    if line.startswith(("+++ ", "--- ")):
        return Attr.BOLD
    return {"+": Attr.GREEN, "-": Attr.RED, "@": Attr.CYAN}.get(line[:1], Attr.NONE)


def child_lines(children: Sequence[ChildState], style: Style, columns: int) -> list[str]:
    """Return one line for each subagent: its name, state, seconds, tokens and what it did last."""
    dot, ellipsis = f" {style.glyph('dot')} ", style.glyph("ellipsis")
    return [
        clip_columns(
            dot.join(
                [
                    f"  {one_line(child.name):<8} {child.state:<7} {seconds_text(child.seconds):>8}",
                    f"{child.tokens:,} tokens",
                    one_line(child.action),
                ]
            ).removesuffix(dot),
            columns,
            ellipsis,
        )
        for child in children
    ]


def child_table(event: ChildrenChanged, style: Style, columns: int) -> str:
    """Return what came of each subagent: result, time, tokens, CPU and peak memory."""
    head = f"  {'task':<8} {'result':<7} {'time':>12} {'tokens':>9} {'CPU':>8} {'peak':>8}"
    rows = [
        f"  {one_line(child.name):<8} {child.state:<7} {seconds_text(child.seconds):>12} {child.tokens:>9,}"
        f" {child.cpu_seconds:>6.1f} s {child.peak_memory_bytes / 2**20:>4.0f} MiB"
        + (f"  {one_line(child.action)}" if child.state == "failed" else "")
        for child in event.children
    ]
    ellipsis = style.glyph("ellipsis")
    return "\n".join(
        [style.paint(clip_columns(head, columns, ellipsis), Attr.DIM)]
        + [
            style.paint(
                clip_columns(row, columns, ellipsis), Attr.RED if child.state == "failed" else Attr.NONE
            )
            for row, child in zip(rows, event.children, strict=True)
        ]
    )


def _plan_line(state: str, title: str, style: Style, columns: int) -> str:
    sign = _PLAN_SIGNS.get(state, " ")
    attr = {"x": Attr.DIM, "-": Attr.DIM, ">": Attr.BOLD}.get(sign, Attr.NONE)
    return style.paint(clip_columns(f"  [{sign}] {one_line(title)}", columns, style.glyph("ellipsis")), attr)


def _diverged(event: TurnDiverged, style: Style) -> tuple[str, Attr]:
    """Say what was acted on, or else what was answered; the rest is counted."""
    acted = [found for found in event.divergences if found.how == "acted"]
    first = (acted or event.divergences)[0]
    who = f"{one_line(first.tool)} used" if acted else "the answer names"
    more = len(event.divergences) - 1
    # Both are in the words of outside content, and of any length.
    resource, source = (
        clip_columns(one_line(text), _NAMED_COLUMNS, style.glyph("ellipsis"))
        for text in (first.resource, first.source)
    )
    text = (
        f"{who} {first.kind} {resource}, which you did not name; {source} did"
        f"{f', and {more} more' if more else ''}: `odek audit` shows where"
    )
    return text, Attr.MAGENTA if acted else Attr.DIM


def _budget(event: BudgetWarning) -> str:
    unit = {"cost": lambda value: f"${value:.4f}", "time": seconds_text}.get(event.budget, "{:,.0f}".format)
    return f"{event.percent} % of the {event.budget} budget used: {unit(event.used)} of {unit(event.limit)}"


def _usage_parts(usage: Usage) -> list[str]:
    parts: list[str] = []
    if usage.prompt_tokens is not None:
        cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
        parts.append(f"{usage.prompt_tokens:,} in{cached}")
    if usage.completion_tokens is not None:
        parts.append(f"{usage.completion_tokens:,} out")
    if usage.cost_usd is not None:
        parts.append(f"${usage.cost_usd:.4f}")
    return parts
