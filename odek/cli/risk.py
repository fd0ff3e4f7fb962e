"""``odek risk``: what a command would be taken for, part by part, and what the policy would do."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from odek.config.settings import DangerousSettings
    from odek.trust.policy import Decision
    from odek.trust.risk import Verdict

_COLUMNS: Final = 80
_STDIN_LIMIT_BYTES: Final = 1024 * 1024  # four for each character of the longest command that is looked into
_WORDS: Final = {"allow": "would run unasked", "prompt": "you would be asked", "deny": "would not run"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command to judge."""
    parser.add_argument("command_line", metavar="COMMAND", help="a shell command, quoted; - reads stdin")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    parser.add_argument(
        "--no-color", action="store_true", default=None, help="no colour; so does the variable NO_COLOR"
    )
    parser.epilog = """\
Nothing is run. Paths count by what they resolve to from the current directory,
which is taken as the workspace. A verdict is no error: the exit status is 0.

examples:
  odek risk 'git status && rm -rf build'
  odek risk --json - < script.sh | jq -r .class"""


def run(arguments: argparse.Namespace) -> int:
    """Judge the command and print the verdict."""
    from odek.cli.last_words import say
    from odek.config.files import load
    from odek.home import home_directory, person_home, working_directory
    from odek.trust.paths import Where
    from odek.trust.policy import explain
    from odek.trust.shell import classify

    home = home_directory(os.environ)
    given = arguments.command_line
    command = _from_stdin() if given == "-" else given
    resolved = load(home, Path(), os.environ, {})
    for notice in resolved.notices:
        say(notice)
    here = working_directory()
    verdict = classify(command, Where(here, here, person_home(), home))
    settings = resolved.config.dangerous
    decision = explain(verdict, settings, command)
    if arguments.json:
        print(json.dumps(_as_json(command, verdict, decision, settings), indent=2, ensure_ascii=True))
    else:
        _print(command, verdict, decision, settings, no_color=arguments.no_color)
    return 0


def _from_stdin() -> str:
    from odek.errors import ConfigError

    data = sys.stdin.buffer.read(_STDIN_LIMIT_BYTES + 1)
    if len(data) > _STDIN_LIMIT_BYTES:
        raise ConfigError(
            f"the command on stdin is longer than {_STDIN_LIMIT_BYTES:,} bytes; judge a part of it"
        )
    return data.decode("utf-8", "replace")


def _print(
    command: str,
    verdict: "Verdict",
    decision: "Decision",
    settings: "DangerousSettings",
    *,
    no_color: bool | None,
) -> None:
    from odek.cli.approval_text import exact_block
    from odek.cli.style import detect_style
    from odek.cli.verdict_text import command_lines, paint_risk, wrapped

    style = detect_style(sys.stdout, os.environ, no_color=bool(no_color))
    lines = [*exact_block(command, style, _COLUMNS), ""]
    lines += [*command_lines(verdict.parts, style, _COLUMNS), ""] if verdict.parts else []
    lines.append(f"class   {paint_risk(verdict.risk, style)}")
    policy = f"{_WORDS[decision.action]}: {decision.why}"
    lines += _titled("policy", wrapped(policy, _COLUMNS, indent=" " * 8))
    alone = _without_terminal(decision, settings)
    if decision.action == "prompt":
        without = f"without a terminal: {_WORDS[alone]} (dangerous.non_interactive)"
        lines += wrapped(without, _COLUMNS, indent=" " * 8)
        if _is_trustable(verdict, settings):
            offered = f"the question offers to trust {verdict.risk.label} for the session"
            lines += wrapped(offered, _COLUMNS, indent=" " * 8)
    print("\n".join(lines))


def _titled(title: str, lines: list[str]) -> list[str]:
    """Return lines whose indentation begins with a title."""
    return [title + lines[0][len(title) :], *lines[1:]]


def _without_terminal(decision: "Decision", settings: "DangerousSettings") -> str:
    return settings.non_interactive if decision.action == "prompt" else decision.action


def _is_trustable(verdict: "Verdict", settings: "DangerousSettings") -> bool:
    from odek.trust.approval import is_trustable

    return is_trustable(verdict, settings)


def _as_json(
    command: str, verdict: "Verdict", decision: "Decision", settings: "DangerousSettings"
) -> dict[str, Any]:
    return {
        "command": command,
        "class": verdict.risk.label,
        "action": decision.action,
        "why": decision.why,
        "without_terminal": _without_terminal(decision, settings),
        "trustable": decision.action == "prompt" and _is_trustable(verdict, settings),
        "parts": [
            {
                "command": part.command,
                "text": part.text,
                "program": part.program or None,
                "class": part.risk.label,
                "reason": part.reason,
                "path": part.path or None,
                "reads_outside": part.reads_outside,
            }
            for part in verdict.parts
        ],
    }
