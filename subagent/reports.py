"""What a supervisor is asked to do, what it reports meanwhile, and what came of it."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import msgspec

from subagent.errors import ChildError
from subagent.limits import Limits, TreeSample
from subagent.spawner import Launch

__all__ = [
    "ChildEnded",
    "ChildProgress",
    "ChildReady",
    "ChildSampled",
    "ChildStarted",
    "ChildTask",
    "Outcome",
    "SupervisorEvent",
    "TaskFailed",
    "TaskSucceeded",
    "Usage",
]


class ChildTask(msgspec.Struct, frozen=True, kw_only=True):
    """One task for one child; ``limits`` take the place of the supervisor's.

    ``around`` is entered once the child may start, before its wall clock, and left when nothing
    of the child is left, with an exception only when all of it is cancelled. A ``ChildError`` on
    entering is the outcome.
    """

    id: str
    launch: Launch
    payload: Any = None
    limits: Limits | None = None
    around: Callable[[], AbstractAsyncContextManager[object]] = nullcontext


class Usage(msgspec.Struct, frozen=True):
    """What a child and all that it started have used, however it ended.

    ``peak_memory_bytes`` is the most that was seen of the whole tree, or the peak of its
    largest process, whichever is more. ``seconds`` run from the request to the last
    process being gone.
    """

    cpu_seconds: float
    peak_memory_bytes: int
    seconds: float


class TaskSucceeded(msgspec.Struct, frozen=True):
    """The child has sent a result."""

    id: str
    result: Any
    usage: Usage


class TaskFailed(msgspec.Struct, frozen=True):
    """There is no result; ``error`` says why.

    ``progress`` is the last that it reported, None if it did not; ``stderr`` the last
    16 KiB of what it wrote there.
    """

    id: str
    error: ChildError
    usage: Usage
    progress: Any = None
    stderr: str = ""


Outcome = TaskSucceeded | TaskFailed


class ChildStarted(msgspec.Struct, frozen=True):
    """A child runs for the task."""

    id: str
    pid: int


class ChildReady(msgspec.Struct, frozen=True):
    """The child has its task, ``seconds`` after it was asked for."""

    id: str
    seconds: float


class ChildProgress(msgspec.Struct, frozen=True):
    """The child reports something."""

    id: str
    payload: Any


class ChildSampled(msgspec.Struct, frozen=True):
    """What the child uses at this moment."""

    id: str
    sample: TreeSample


class ChildEnded(msgspec.Struct, frozen=True):
    """Nothing of the child is left."""

    id: str
    outcome: Outcome


SupervisorEvent = ChildStarted | ChildReady | ChildProgress | ChildSampled | ChildEnded
