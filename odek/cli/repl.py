"""``odek repl``: a dialogue in one session."""

import argparse
import re
import sys
from typing import TYPE_CHECKING

from odek import __version__
from odek.cli import warmup
from odek.cli.options import add_agent_options, add_session_option
from odek.cli.session import SHORT_ID_LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable

    from odek.cli.agent import AgentRun, Stage
    from odek.cli.interrupts import Interrupts

COMMANDS = {
    "/help": "show these commands",
    "/plan": "show the plan and what is done of it",
    "/memory": "show what is remembered",
    "/cost": "show the tokens and the cost of this session",
    "/exit": "leave; so do exit and quit",
}

EPILOG = """\
keys:
  Enter                          send
  Alt-Enter, \\ at the end, ```   begin a new line
  Ctrl-C                         end the running turn; twice leaves
  Ctrl-Z                         suspend; `fg` goes on
  Ctrl-D                         leave

commands:
{commands}

exit status:
  0 left   3 setup, or another process has the session"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the session and the common flags."""
    add_session_option(parser)
    add_agent_options(parser)
    commands = "\n".join(f"  {name:<29}  {meaning}" for name, meaning in COMMANDS.items())
    parser.epilog = EPILOG.format(commands=commands)


def run(arguments: argparse.Namespace) -> int:
    """Talk until the person leaves."""
    warmup.begin()
    import msgspec

    from odek.cli.agent import run_trio, start

    run = msgspec.structs.replace(start(arguments, resume=arguments.id, task=""), watch_memory=True)
    return run_trio(lambda interrupts: _talk(run, interrupts))


async def _talk(run: "AgentRun", interrupts: "Interrupts") -> int:
    from odek.cli.agent import open_stage
    from odek.cli.repl_input import open_repl_input

    attachments = run.attachments
    async with open_stage(run, interrupts) as stage:
        history, no_color = run.home / "repl_history", run.resolved.config.no_color
        async with open_repl_input(
            history, COMMANDS, mask=stage.opened.agent.mask, no_color=no_color
        ) as lines:
            if sys.stdin.isatty():
                await _say(stage, _banner(stage))
            while True:
                await stage.display.settle()
                async with stage.display.paused():
                    text = await lines.read()
                if text is None or _leaves(text):
                    if sys.stdin.isatty() and stage.opened.session.turns:
                        await _say(stage, f"`odek repl --id {_short(stage)}` goes on")
                    return 0
                if _is_command(text):
                    await _command(text.strip(), stage)
                elif text.strip():
                    await stage.turn(_taken(text, stage), attachments)
                    attachments = []
                    if offered := _follow_ups(stage):
                        shown = "\n".join(f"  {number}  {each}" for number, each in enumerate(offered, 1))
                        await _say(stage, f"{shown}\n  (a number asks it)")


def _leaves(text: str) -> bool:
    """Tell whether the person wants to leave; behind the command, more words change nothing."""
    return text.strip() in {"exit", "quit"} or text.split(maxsplit=1)[:1] in (["/exit"], ["/quit"])


def _is_command(text: str) -> bool:
    """Tell a command from a message that begins with a path, as the errors of many programs do."""
    words = text.split(maxsplit=1)
    return bool(words) and re.fullmatch(r"/[A-Za-z]*", words[0]) is not None


def _follow_ups(stage: "Stage") -> "tuple[str, ...]":
    """Return what the person may ask next, as far as that is foreseen."""
    return stage.opened.atoms.follow_ups if stage.opened.atoms is not None else ()


def _taken(text: str, stage: "Stage") -> str:
    """Return the follow-up that ``text`` is the number of, else ``text``."""
    offered = _follow_ups(stage)
    number = text.strip()
    is_number = number.isdecimal() and len(number) == 1 and 1 <= int(number) <= len(offered)
    return offered[int(number) - 1] if is_number else text


def _banner(stage: "Stage") -> str:
    return f"odek {__version__} · {stage.opened.agent.model.name} · session {_short(stage)} · /help"


def _short(stage: "Stage") -> str:
    """Return the start of the session's id that names it: the day and eight digits."""
    return stage.opened.session.id[:SHORT_ID_LENGTH]


async def _command(text: str, stage: "Stage") -> None:
    """Carry out one command of the repl."""
    shows: dict[str, Callable[[Stage], str]] = {"/help": _help, "/plan": _plan, "/cost": _cost}
    name = text.split(maxsplit=1)[0]
    if name == "/memory":
        await _say(stage, await _memory(stage))
    elif show := shows.get(name):
        await _say(stage, show(stage))
    else:
        await _say(stage, f"there is no command {name}; /help lists them")


async def _say(stage: "Stage", text: str) -> None:
    """Print ``text`` as it is, between what the display shows."""
    import trio

    from odek.text import readable

    await stage.display.settle()
    async with stage.display.paused():
        await trio.to_thread.run_sync(print, readable(text))


def _help(stage: "Stage") -> str:  # noqa: ARG001 - as the other commands
    width = max(map(len, COMMANDS))
    return "\n".join(f"{name:<{width}}  {meaning}" for name, meaning in COMMANDS.items())


def _plan(stage: "Stage") -> str:
    return stage.opened.plan.render() or "there is no plan"


def _cost(stage: "Stage") -> str:
    usage = stage.opened.session.usage
    known = {
        "prompt tokens": usage.prompt_tokens,
        "of them cached": usage.cached_tokens,
        "answer tokens": usage.completion_tokens,
    }
    lines = [f"{name:<14}  {count:>12,}" for name, count in known.items() if count is not None]
    if usage.cost_usd is not None:
        lines.append(f"{'cost':<14}  {usage.cost_usd:>11.4f}$")
    if not stage.opened.session.turns:
        return "nothing was asked yet"
    return "\n".join(lines) or "the model reports no usage"


async def _memory(stage: "Stage") -> str:
    memory = stage.opened.memory
    if memory is None:
        return "the memory is switched off (memory.enabled)"
    lines: list[str] = []
    for facts in await memory.read():
        lines.append(f"{facts.target}.md, {facts.percent}% full")
        lines += [f"  {fact.text}" for fact in facts.entries] or ["  nothing yet"]
    return "\n".join(lines)
