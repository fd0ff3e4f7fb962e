"""Counting what a turn uses, and what it changed."""

import pytest

from odek.budget import Budget, Limits
from odek.errors import LimitReachedError
from odek.events import BudgetWarning, Usage
from odek.ledger import Ledger


def test_each_threshold_warns_once() -> None:
    """50, 75 and 90 percent are said once each, not at every step."""
    warnings: list[BudgetWarning] = []
    budget = Budget(Limits(iterations=0, tokens=1000), lambda: 0.0, warnings.append)

    for _ in range(19):
        budget.spend(Usage(prompt_tokens=40, completion_tokens=10))

    assert [warning.percent for warning in warnings] == [50, 75, 90]


def test_a_jump_over_thresholds_warns_of_the_highest() -> None:
    """One expensive request does not cause three lines."""
    warnings: list[BudgetWarning] = []
    budget = Budget(Limits(iterations=0, cost_usd=1.0), lambda: 0.0, warnings.append)

    budget.spend(Usage(cost_usd=0.95))

    assert [(warning.budget, warning.percent) for warning in warnings] == [("cost", 90)]


@pytest.mark.parametrize(
    ("limits", "usage", "seconds", "text"),
    [
        (Limits(iterations=1), Usage(), 0.0, "1 model requests"),
        (Limits(tokens=10), Usage(prompt_tokens=12), 0.0, "10 tokens"),
        (Limits(cost_usd=0.5), Usage(cost_usd=0.5), 0.0, r"\$0.50"),
        (Limits(seconds=5), Usage(), 6.0, "5 s"),
    ],
)
def test_a_spent_budget_stops_the_next_request(
    limits: Limits, usage: Usage, seconds: float, text: str
) -> None:
    """Each budget ends the turn with a sentence that names it."""
    now = [0.0]
    budget = Budget(limits, lambda: now[0], lambda _: None)
    budget.begin_iteration()
    budget.spend(usage)
    now[0] = seconds

    with pytest.raises(LimitReachedError, match=text):
        budget.begin_iteration()


def test_unknown_usage_stays_unknown() -> None:
    """What no provider reported is not counted as zero."""
    assert (Usage() + Usage(prompt_tokens=3)) == Usage(prompt_tokens=3)


@pytest.mark.parametrize(
    "answer",
    [
        "I have not made any changes.",
        "I didn't modify the file.",
        "No files were changed.",
        "Unfortunately I was unable to write config.py.",
        "Nothing has been saved.",
    ],
)
def test_an_answer_that_denies_a_completed_change_is_caught(answer: str) -> None:
    """The ledger knows better than the prose."""
    ledger = Ledger()
    ledger.record(("config.py",))

    assert ledger.denied_by(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "I changed config.py. No other files were changed.",
        "I updated config.py and did not touch anything else.",
        "Done: config.py now has the new limit.",
        "The test did not pass before; it does now.",
    ],
)
def test_an_honest_answer_passes(answer: str) -> None:
    """Denying further changes is not denying the change."""
    ledger = Ledger()
    ledger.record(("config.py",))

    assert not ledger.denied_by(answer)


def test_without_changes_a_denial_is_the_truth() -> None:
    """An empty ledger contradicts nobody."""
    assert not Ledger().denied_by("I have not made any changes.")
