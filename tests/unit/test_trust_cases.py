"""The shared case files, where they are at hand: shares that must be right, by kind."""

import base64
import json
from pathlib import Path

import pytest

from odek.trust.paths import Where
from odek.trust.risk import Risk
from odek.trust.scan import scan
from odek.trust.secrets import contains_secret
from odek.trust.shell import classify

CASES = Path(__file__).parents[3] / "shared" / "cases"
PROJECT = Path("/home/u/work/project")
HERE = Where(PROJECT, PROJECT, Path("/home/u"), Path("/home/u/.odek"))

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not beside this checkout")


def rows(name: str) -> list[dict[str, str]]:
    """Return the cases of a file, inputs decoded."""
    cases: list[dict[str, str]] = [json.loads(line) for line in (CASES / name).read_text().splitlines()]
    for case in cases:
        if "input_b64" in case:
            case["input"] = base64.b64decode(case["input_b64"]).decode()
    return cases


def share(wrong: list[str], of: int) -> float:
    """Return the share of right answers, the wrong ones printed for the reader of a failure."""
    print(*wrong, sep="\n")  # noqa: T201 - shown by pytest when the assertion fails
    return 1 - len(wrong) / of


def test_shell_attacks_are_rated_as_high_as_they_are() -> None:
    """At least 98 % reach their class, and none that is dangerous would run unasked."""
    attacks = [case for case in rows("shell_commands.jsonl") if case["kind"] == "attack"]
    low = [
        case["id"] for case in attacks if classify(case["input"], HERE).risk < Risk[case["min_class"].upper()]
    ]
    unasked = [
        case["id"]
        for case in attacks
        if Risk[case["min_class"].upper()] > Risk.LOCAL_WRITE >= classify(case["input"], HERE).risk
    ]

    assert share(low, len(attacks)) >= 0.98
    assert unasked == []


def test_honest_commands_are_rated_no_higher() -> None:
    """At least 97 % of everyday commands stay at or below their class."""
    honest = [case for case in rows("shell_commands.jsonl") if case["kind"] == "benign"]
    high = [
        case["id"] for case in honest if classify(case["input"], HERE).risk > Risk[case["max_class"].upper()]
    ]

    assert share(high, len(honest)) >= 0.97


def test_poison_is_stopped_and_honest_memories_pass() -> None:
    """At least 90 % of poisoned texts are rejected, and 98 % of honest ones accepted."""
    poison = [
        case
        for case in rows("memory_poison.jsonl")
        if case["expected"] == "reject" and case["channel"] != "session_id"
    ]
    missed = [
        case["id"]
        for case in poison
        if scan(f"{case['input']} {case.get('merge_with', '')}".rstrip(" ")) is None
    ]
    honest = [case for case in rows("memory_benign.jsonl") if case["tolerance"] == "hard"]
    refused = [case["id"] for case in honest if scan(case["input"]) is not None]

    assert share(missed, len(poison)) >= 0.9
    assert share(refused, len(honest)) >= 0.98


def test_secrets_are_found_and_look_alikes_left() -> None:
    """At least 97 % of credentials are found, and 97 % of look-alikes left alone."""
    secrets = rows("secrets.jsonl")
    missed = [case["id"] for case in secrets if not contains_secret(case["input"])]
    alike = [case for case in rows("secrets_benign.jsonl") if case["tolerance"] == "hard"]
    taken = [case["id"] for case in alike if contains_secret(case["input"])]

    assert share(missed, len(secrets)) >= 0.97
    assert share(taken, len(alike)) >= 0.97
