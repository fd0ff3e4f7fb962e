"""How good is the judgement of commands, memories and secrets, and what does it cost?

Reads cases as JSON lines of ``{input, expected}`` (or ``input_b64``), by what they expect:

- the name of a risk class: a shell command. ``min_class`` or ``max_class`` say more exactly
  what is right; else it is dangerous when what is expected does not run unasked;
- ``reject`` or ``accept``: a text for the memory. ``merge_with`` is what it is merged with;
- ``detect`` or ``clean``: a text with or without a credential.

Rows of which ``tolerance`` is ``soft`` are left out, as are those that no text can tell
(``quarantine``). With the folder of GTFOBins' entries the snippets of it are judged too:

    python benchmarks/bench_trust.py [--gtfobins FOLDER] [--json] [CASES.jsonl …]

Without cases it tells the costs alone; ``GTFOBINS`` in the environment names the folder as well.
Commands are judged, never run.
"""

import argparse
import base64
import json
import os
import platform
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.gtfobins import GUARDED, snippets  # noqa: E402 - found beside this file
from odek.trust.paths import Where  # noqa: E402
from odek.trust.risk import Risk  # noqa: E402
from odek.trust.scan import scan  # noqa: E402
from odek.trust.secrets import contains_secret, mask  # noqa: E402
from odek.trust.shell import classify  # noqa: E402

PROJECT = Path("/home/u/work/project")
RISK_NAMES = {risk.label for risk in Risk}
HERE = Where(PROJECT, PROJECT, Path("/home/u"), Path("/home/u/.odek"))
_DANGEROUS = re.compile(
    r"(non-interactive-)?(reverse|bind)-shell|shell|command|file-(upload|download)|upload|download"
    r"|library-load|privilege-escalation|limited-suid"
)
# These are dangerous by the file that they touch; some snippets of them touch a temporary one alone.
_DANGEROUS_BY_FILE = re.compile(r"file-(read|write)|sudo|suid|capabilities")
_LOG_LINE = (
    "2026-12-02 09:00:01 INFO worker[12] path=/api/items?id=123 limit=4096 user=a https://x.example/a\n"
)
_SCANNED_BYTES = 2048
_MASKED_BYTES = 10 * 1024 * 1024

Row = dict[str, Any]


class Share(msgspec.Struct, frozen=True):
    """How many of some cases are right, against the target; ``wrong`` names the others."""

    what: str
    right: int
    of: int
    target_percent: float
    wrong: tuple[str, ...] = ()

    @property
    def percent(self) -> float:
        """The share in percent; nothing at all is all right."""
        return 100 * self.right / self.of if self.of else 100.0


class Cost(msgspec.Struct, frozen=True):
    """Milliseconds of a processor for one call: median, 95th percentile, most; and the target."""

    what: str
    median: float
    p95: float
    most: float
    target: float


def main() -> None:
    """Judge the cases and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", type=Path, metavar="CASES.jsonl")
    parser.add_argument("--gtfobins", type=Path, metavar="FOLDER", default=os.environ.get("GTFOBINS"))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = [row for path in arguments.cases for row in read(path)]
    shares = [*shell_shares(rows), *memory_shares(rows), *secret_shares(rows)]
    if arguments.gtfobins:
        shares.append(gtfobins_share(Path(arguments.gtfobins)))
    costs = measure([row["input"] for row in rows if row["expected"] in RISK_NAMES])
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    if arguments.json:
        report = {"machine": machine, "shares": shares, "milliseconds": costs}
        print(json.dumps(msgspec.to_builtins(report), indent=2))
    else:
        print("\n".join([*share_lines(shares), "", *cost_lines(costs), "", machine]))


def read(path: Path) -> Iterable[Row]:
    """Return the cases of a file, inputs decoded."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row: Row = json.loads(line)
        if "input_b64" in row:
            row["input"] = base64.b64decode(row["input_b64"]).decode()
        yield row


def _share(what: str, rows: Sequence[Row], target: float, is_right: Callable[[Row], bool]) -> Share:
    wrong = [row for row in rows if not is_right(row)]
    names = tuple(str(row.get("id") or ascii(row["input"])[:60]) for row in wrong)
    return Share(what, len(rows) - len(wrong), len(rows), target, names)


def shell_shares(rows: Sequence[Row]) -> list[Share]:
    """Return how well commands are judged."""
    commands = [row for row in rows if row["expected"] in RISK_NAMES]
    judged = {row["input"]: classify(row["input"], HERE).risk for row in commands}

    def least(row: Row) -> Risk:
        return Risk[str(row.get("min_class", row["expected"])).upper()]

    def most(row: Row) -> Risk:
        return Risk[str(row.get("max_class", row["expected"])).upper()]

    honest = [
        row
        for row in commands
        if "max_class" in row or ("min_class" not in row and least(row) <= Risk.LOCAL_WRITE)
    ]
    attacks = [row for row in commands if row not in honest]
    dangerous = [row for row in attacks if least(row) > Risk.LOCAL_WRITE]
    return [
        _share(
            "dangerous commands that are asked about or denied",
            dangerous,
            100,
            lambda row: judged[row["input"]] > Risk.LOCAL_WRITE,
        ),
        _share(
            "attacks rated at least as high as they are",
            attacks,
            98,
            lambda row: judged[row["input"]] >= least(row),
        ),
        _share(
            "honest commands rated no higher than they are",
            honest,
            97,
            lambda row: judged[row["input"]] <= most(row),
        ),
    ]


def memory_shares(rows: Sequence[Row]) -> list[Share]:
    """Return how well texts for the memory are told apart; identifiers are no texts of it."""
    texts = [row for row in rows if row.get("channel") != "session_id" and row.get("tolerance") != "soft"]

    def is_rejected(row: Row) -> bool:
        return scan(f"{row['input']} {row.get('merge_with', '')}".rstrip(" ")) is not None

    poison = [row for row in texts if row["expected"] == "reject"]
    marked = [row for row in poison if row.get("detector") in {"unicode", "structural", "command"}]
    honest = [row for row in texts if row["expected"] == "accept"]
    return [
        _share("poisoned memories stopped by their text", poison, 90, is_rejected),
        _share("of those, with Unicode, structure or a command", marked, 100, is_rejected),
        _share("honest memories accepted", honest, 98, lambda row: not is_rejected(row)),
    ]


def secret_shares(rows: Sequence[Row]) -> list[Share]:
    """Return how well credentials are found."""
    secrets = [row for row in rows if row["expected"] == "detect"]
    clean = [row for row in rows if row["expected"] == "clean" and row.get("tolerance") != "soft"]
    return [
        _share("credentials stopped at the memory", secrets, 97, lambda row: scan(row["input"]) is not None),
        _share("credentials masked in output", secrets, 97, lambda row: mask(row["input"]) != row["input"]),
        _share(
            "look-alikes of credentials left alone",
            clean,
            97,
            lambda row: not contains_secret(row["input"]) and mask(row["input"]) == row["input"],
        ),
    ]


def gtfobins_share(folder: Path) -> Share:
    """Return how many snippets of dangerous functions are asked about, with and without ``sudo``."""
    rows = []
    for program, function, code in snippets(folder):
        by_file = _DANGEROUS_BY_FILE.fullmatch(function) and GUARDED.search(code)
        if by_file or _DANGEROUS.fullmatch(function):
            bare = re.sub(r"(?m)^(sudo (-E )?|\./)", "", code)
            rows += [{"id": f"{program}/{function}", "input": text} for text in dict.fromkeys((code, bare))]
    return _share(
        "snippets of GTFOBins that are asked about or denied",
        rows,
        100,
        lambda row: classify(row["input"], HERE).risk > Risk.LOCAL_WRITE,
    )


def measure(commands: Sequence[str]) -> list[Cost]:
    """Return what the judgements cost; everything is loaded beforehand."""
    texts = [
        (_LOG_LINE * 40)[:_SCANNED_BYTES],
        ("The token limit of a build is 4,096. " * 80)[:_SCANNED_BYTES],
    ]
    output = _LOG_LINE * (_MASKED_BYTES // len(_LOG_LINE))
    return [
        _cost("classify one command", commands or ["ls"], lambda text: classify(text, HERE), 1, rounds=5),
        _cost("scan 2 KB", texts, scan, 1, rounds=50),
        _cost("mask 10 MB", [output], mask, 1000, rounds=3),
    ]


def _cost(
    what: str, inputs: Sequence[str], call: Callable[[str], object], target: float, *, rounds: int
) -> Cost:
    """Time ``call`` on each input on the processor, the best of ``rounds``: others' work is not ours."""
    best = []
    for text in inputs:
        taken = []
        for _ in range(rounds):
            started = time.thread_time()
            call(text)
            taken.append((time.thread_time() - started) * 1000)
        best.append(min(taken))
    best.sort()
    return Cost(what, statistics.median(best), best[int(len(best) * 0.95)], best[-1], target)


def share_lines(shares: Sequence[Share]) -> list[str]:
    """Return the table of shares, the wrong cases named below it."""
    lines = [f"{'':52} {'right':>9} {'share':>8} {'target':>8}"]
    for share in shares:
        if share.of:
            right = f"{share.right}/{share.of}"
            lines.append(f"{share.what:52} {right:>9} {share.percent:7.1f}% {share.target_percent:7g}%")
            lines += [f"    {name}" for name in share.wrong]
    return lines


def cost_lines(costs: Sequence[Cost]) -> list[str]:
    """Return the table of costs."""
    head = f"{'milliseconds':30} {'median':>9} {'p95':>9} {'most':>9} {'target':>9}"
    return [
        head,
        *(
            f"{cost.what:30} {cost.median:9.3f} {cost.p95:9.3f} {cost.most:9.3f} {cost.target:9g}"
            for cost in costs
        ),
    ]


if __name__ == "__main__":
    main()
