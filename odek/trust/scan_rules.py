"""What a text may not say if it is to be remembered: the rules in ``scan_rules.txt``.

The head of that file explains its notation.
"""

import re
from functools import lru_cache
from pathlib import Path

import msgspec

__all__ = ["ScanRule", "scan_rules"]


class ScanRule(msgspec.Struct, frozen=True):
    """A rule with its name and reason.

    One of ``hints``, in lower case, must occur before the pattern is tried. A match of a rule
    that is not ``quoted`` passes where it is quoted in a text about attacks. ``encoded`` rules
    are for text that somebody went to the length of encoding: they need no further context.
    """

    name: str
    reason: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    quoted: bool = False
    encoded: bool = False


@lru_cache(maxsize=1)
def scan_rules() -> tuple[ScanRule, ...]:
    """Read and compile the rules, once."""
    source = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").replace("\n        ", "")
    pieces: dict[str, str] = {}
    rules: list[ScanRule] = []
    for block in re.split(r"\n(?=\S)", re.sub(r"(?m)^#.*\n|^\n", "", source)):
        head, *lines = block.splitlines()
        body = [line.strip() for line in lines]
        if head.endswith(" ="):
            pieces[head[:-2]] = re.sub(r"\{([A-Z]+)\}", lambda match: pieces[match[1]], "".join(body))
        else:
            rules.append(_rule(head, body, pieces))
    return tuple(rules)


def _rule(head: str, lines: list[str], pieces: dict[str, str]) -> ScanRule:
    name, _, reason = head.partition(": ")
    hints: list[str] = []
    flags: set[str] = set()
    alternatives: list[str] = []
    for line in lines:
        if line.startswith("hints "):
            hints += [hint.replace("␠", " ") for hint in line.split()[1:]]
        elif line.startswith("!"):
            flags = set(line.replace("!", "").split())
        else:
            alternatives.append(line)
    pattern = re.sub(r"\{([A-Z]+)\}", lambda match: pieces[match[1]], "|".join(alternatives))
    # A space is any white space, except inside a character class and where it is counted.
    pattern = re.sub(r"(?<!\[) (?![\]*+?{])", r"\\s+", pattern)
    case = re.NOFLAG if "cased" in flags else re.IGNORECASE
    return ScanRule(
        name,
        reason,
        tuple(hints),
        re.compile(pattern, re.DOTALL | case),
        "quoted" in flags,
        "encoded" in flags,
    )
