"""What came of delegated tasks, as the delegating model reads it."""

from collections.abc import Sequence

import msgspec

from odek.delegation import TaskReport, TaskResult, seen_changes
from odek.events import Usage
from odek.text import clip_bytes, without_surrogates
from odek.tools.worktree_changes import WorktreeChanges
from subagent.reports import Outcome, TaskSucceeded

__all__ = ["DIFF_BYTES", "Ended", "result_of", "results_text", "tokens"]

RESULT_BYTES = 100 * 1024
"""Of one result that the model reads, its diff included."""

DIFF_BYTES = 64 * 1024
"""Of that for the diff of a worktree: some 1,500 lines, more than a task of this size should change."""


class Ended(msgspec.Struct, frozen=True):
    """A task that has ended: ``changes`` are those in its worktree, None if it had none at its end."""

    result: TaskResult
    seconds: float
    in_worktree: bool = False
    changes: WorktreeChanges | None = None


def result_of(outcome: Outcome, report: TaskReport) -> TaskResult:
    """Return what a child said came of its task, or what there is of it if it did not."""
    if isinstance(outcome, TaskSucceeded):
        try:
            return msgspec.convert(outcome.result, TaskResult)
        except msgspec.ValidationError as error:
            return TaskResult("error", report.text, report, f"its result is none: {error}")
    return TaskResult("error", report.text, report, str(outcome.error))


def results_text(ended: Sequence[Ended], changed: Sequence[str]) -> str:
    """Return all results in the order of their tasks; what needs a look comes first.

    ``changed`` are the files of the workspace that are not as they were before.
    """
    # In a worktree of its own, a task has nothing to do with the workspace.
    reports = [TaskReport() if task.in_worktree else task.result.report for task in ended]
    own, conflicts, unsure = seen_changes(changed, reports)
    parts = [
        f"CONFLICT: {path} was changed by tasks {_numbers(indexes)}; look at it before going on"
        for path, indexes in conflicts.items()
    ]
    parts += [
        f"{path} was changed by a command of one of the tasks {_numbers(indexes)}, or of several"
        for path, indexes in unsure.items()
    ]
    parts += [
        _result_text(number, task, files)
        for number, (task, files) in enumerate(zip(ended, own, strict=True), 1)
    ]
    return "\n\n".join(parts)


def _result_text(number: int, task: Ended, files: Sequence[str]) -> str:
    result = task.result
    lines = [
        f"[task {number}: {result.status} · {task.seconds:.1f} s · {tokens(result.report.usage):,} tokens]"
    ]
    if result.error:
        lines.append(f"error: {result.error}")
        lines += ["what it had said until then (partial):"] if result.summary else []
    changes = without_surrogates(task.changes.text(DIFF_BYTES)) if task.changes else ""
    text = clip_bytes(result.summary, RESULT_BYTES - len(changes.encode()))
    lines += [text] if text else []
    lines += ["[the rest is cut]"] if text != result.summary else []
    lines += [f"files changed: {', '.join(files)}"] if files else []
    lines += [changes] if changes else []
    return "\n".join([*lines, f"[end of task {number}]"])


def _numbers(indexes: Sequence[int]) -> str:
    return " and ".join(str(index + 1) for index in indexes)


def tokens(usage: Usage) -> int:
    """Return the tokens of requests and answers together."""
    return (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
