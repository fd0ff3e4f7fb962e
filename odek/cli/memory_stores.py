"""The stores of the memory as the commands open them: with the configured limits, without an agent."""

import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odek.config.memory_settings import MemorySettings
    from odek.config.settings import Config
    from odek.memory.episodes import EpisodeLimits, EpisodeStore
    from odek.memory.facts import FactLimits, FactStore
    from odek.memory.journal import Origin
    from odek.setup import Setup

__all__ = [
    "by_person",
    "episode_limits",
    "fact_limits",
    "memory_directory",
    "memory_settings",
    "open_episodes",
    "open_facts",
    "require_person",
    "run_with_setup",
    "say",
    "shown_time",
    "tell_index",
]


def memory_directory() -> Path:
    """Return the directory of the memory; it need not exist."""
    from odek.home import home_directory

    return home_directory(os.environ) / "memory"


def memory_config() -> "Config":
    """Return the configuration that applies here."""
    from odek.config.files import load
    from odek.home import home_directory

    return load(home_directory(os.environ), Path(), os.environ, {}).config


def memory_settings() -> "MemorySettings":
    """Return the settings of the memory that apply here."""
    return memory_config().memory


def fact_limits(settings: "MemorySettings") -> "FactLimits":
    """Return the caps of the facts."""
    from odek.memory.facts import FactLimits

    return FactLimits(settings.facts_limit_user, settings.facts_limit_env)


def episode_limits(settings: "MemorySettings") -> "EpisodeLimits":
    """Return the caps of the episodes."""
    from odek.memory.episodes import EpisodeLimits

    return EpisodeLimits(settings.max_episodes, settings.episode_ttl_days)


def open_facts() -> "FactStore":
    """Return the facts."""
    from odek.memory.facts import FactStore

    config = memory_config()
    return FactStore(
        memory_directory(), fact_limits(config.memory), notify=say, object_to=_second_opinion(config)
    )


def _second_opinion(config: "Config") -> "Callable[[str], str] | None":
    """Return what asks the guard about a text, None where there is no guard."""
    if config.guard.provider == "local":
        return None
    import trio

    from odek.events import Event, Notice
    from odek.guard import guard_of

    def tell(event: Event) -> None:
        if isinstance(event, Notice):
            say(event.text)

    guard = guard_of(config.guard, tell)
    return None if guard is None else lambda text: trio.run(guard.object_to, [text])[0]


def open_episodes() -> "EpisodeStore":
    """Return the episodes."""
    from odek.memory.episodes import EpisodeStore

    return EpisodeStore(memory_directory(), episode_limits(memory_settings()), notify=say)


def run_with_setup(work: "Callable[[Setup], Awaitable[int]]") -> int:
    """Run ``work`` on what an agent here would be made from; return its exit status. Warnings are told."""
    import trio

    from odek.cli.error_groups import unwrapped_errors
    from odek.config.files import load
    from odek.events import Event, Notice
    from odek.home import home_directory, working_directory
    from odek.setup import Setup
    from odek.trust.approval import ApprovalState

    def emit(event: Event) -> None:
        if isinstance(event, Notice) and event.level == "warning":
            say(event.text)

    home, workspace = home_directory(os.environ), working_directory()
    setup = Setup(
        resolved=load(home, workspace, os.environ, {}),
        home=home,
        workspace=workspace,
        emit=emit,
        approval=ApprovalState(),
    )
    with unwrapped_errors():
        return trio.run(partial(work, setup))


def tell_index(session_ids: Iterable[str] | None = None) -> None:
    """Let the index say what the episodes say, or what these sessions say; that is no reason to fail."""
    from odek.errors import StoreError
    from odek.home import home_directory
    from odek.sessions.indexed import take_up_episodes, take_up_sessions

    home = home_directory(os.environ)
    try:
        if session_ids is None:
            take_up_episodes(home)
        else:
            take_up_sessions(home, session_ids)
    except StoreError as error:
        say(f"the index of the memory is not up to date yet: {error}")


def by_person() -> "Origin":
    """Return the origin of what a person does with these commands.

    Raises:
        MemoryRefusedError: an agent runs the command; what it may remember goes through its tool.
    """
    require_person()
    from odek.memory.journal import Origin

    return Origin(approval="person")


def require_person() -> None:
    """Make sure that no agent runs this command, whatever it was allowed to run.

    Raises:
        MemoryRefusedError: one does.
    """
    from odek.errors import MemoryRefusedError
    from odek.home import home_directory
    from odek.processes import agent_above

    if (pid := agent_above(home_directory(os.environ))) is not None:
        raise MemoryRefusedError(
            f"memory: this is for a person to do, and the command runs inside of an agent (pid {pid}); "
            "run it in a terminal of your own"
        )


def say(line: str) -> None:
    """Tell the person of something that was mended or is wrong."""
    from odek.text import visible

    print(f"odek: {visible(line, keep_newlines=False)}", file=sys.stderr)


def shown_time(time: str) -> str:
    """Return an RFC 3339 time as date and minute, in the person's time zone."""
    from datetime import datetime

    try:
        return datetime.fromisoformat(time).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return "date unknown"
