"""``odek memory check`` and ``stats``: whether the memory is in order, and how full it is."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from odek.cli.memory_stores import (
    episode_limits,
    fact_limits,
    memory_directory,
    memory_settings,
    open_episodes,
    open_facts,
    shown_time,
)
from odek.cli.width import wrapped

if TYPE_CHECKING:
    from odek.memory.check import Report

__all__ = ["add_arguments", "run"]

MOST_ALIKE = 5
"""Files of the same problem that are named: after a copy of the home each may be open to others."""


def add_arguments(action: str, parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of one of the actions."""
    if action == "check":
        parser.add_argument("--repair", action="store_true", help="mend what can be mended")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Carry out the action; ``check`` returns 1 when something is wrong and stays so."""
    if arguments.memory_action == "stats":
        _stats(as_json=arguments.json)
        return 0
    from odek.memory.check import check, repair

    settings = memory_settings()
    look = repair if arguments.repair else check
    report = look(memory_directory(), fact_limits(settings), episode_limits(settings))
    if arguments.json:
        import msgspec

        fields: dict[str, Any] = msgspec.to_builtins(report)
        print(json.dumps({"ok": not report.findings} | fields, indent=2, ensure_ascii=False))
    else:
        _print_report(report)
    return 1 if report.findings else 0


def _print_report(report: "Report") -> None:
    from odek.text import visible

    for line in report.mended:
        print(wrapped(visible(line, keep_newlines=False)))
    alike: dict[tuple[str, bool], list[str]] = {}
    for finding in report.findings:
        alike.setdefault((finding.problem, finding.mendable), []).append(finding.file)
    for (problem, is_mendable), files in alike.items():
        hint = " (--repair mends this)" if is_mendable else ""
        for file in files[:MOST_ALIKE]:
            print(wrapped(visible(f"{file}: {problem}{hint}", keep_newlines=False)))
        if more := len(files[MOST_ALIKE:]):
            told = f"… and {more:,} more: {problem}{hint}; --json names them"
            print(wrapped(visible(told, keep_newlines=False)))
    counted = f"facts: {report.facts}, episodes: {report.episodes}, changes on record: {report.changes}"
    print(f"{counted}; problems: {len(report.findings)}" if report.findings else f"{counted}; all in order")


def _stats(*, as_json: bool) -> None:
    from odek.memory.facts import TARGETS
    from odek.memory.journal import Journal

    facts = [open_facts().read(target) for target in TARGETS]
    episodes = open_episodes().read_index()
    recallable = sum(episode.provenance.is_recallable for episode in episodes)
    records = Journal(memory_directory()).read().records
    last = records[-1].time if records else ""
    if as_json:
        files = {
            f.target: {
                "used": f.used_bytes,
                "cap": f.limit_bytes,
                "percent": f.percent,
                "entries": len(f.entries),
            }
            for f in facts
        }
        counted = {"total": len(episodes), "recallable": recallable, "waiting": len(episodes) - recallable}
        shown = {"facts": files, "episodes": counted, "changes": len(records), "last_change": last}
        print(json.dumps(shown, indent=2))
        return
    for file in facts:
        fill = f"{file.used_bytes:,} of {file.limit_bytes:,} bytes, {file.percent}% full"
        print(f"{file.target}.md: {fill}, entries: {len(file.entries)}")
    print(
        f"episodes: {len(episodes)}, recalled: {recallable}, waiting for review: {len(episodes) - recallable}"
    )
    print(f"changes on record: {len(records)}" + (f", the last {shown_time(last)}" if last else ""))
