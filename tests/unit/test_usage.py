"""Usage in the spellings of the providers, and what it costs."""

from typing import Any

import pytest

from odek.config.settings import PriceSettings
from odek.events import Usage
from odek.llm.usage import merged, priced, read_usage


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 4}, Usage(9, 4)),
        (
            {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 8}},
            Usage(9, 4, 8),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 4, "prompt_cache_hit_tokens": 8}, Usage(9, 4, 8)),
        ({"prompt_tokens": 9, "completion_tokens": 4, "cache_read_input_tokens": 8}, Usage(9, 4, 8)),
        ({"input_tokens": 9, "output_tokens": 4}, Usage(9, 4)),
        (
            {"input_tokens": 9, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 8}},
            Usage(9, 4, 8),
        ),
        (
            {
                "input_tokens": 1,
                "output_tokens": 4,
                "cache_read_input_tokens": 6,
                "cache_creation_input_tokens": 2,
            },
            Usage(9, 4, 6),
        ),
        (
            {"prompt_token_count": 9, "candidates_token_count": 4, "cached_content_token_count": 8},
            Usage(9, 4, 8),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 4, "cost": 0.25}, Usage(9, 4, None, 0.25)),
        ({"prompt_tokens": 9, "cost": {"total_cost": 0.25}}, Usage(9, None, None, 0.25)),
        ({"prompt_tokens": 9.0, "prompt_tokens_details": None}, Usage(9)),
    ],
)
def test_spellings(report: dict[str, Any], expected: Usage) -> None:
    """Each provider's names for the same figures."""
    assert read_usage(report) == expected


@pytest.mark.parametrize("damage", [-1, "7", None, True, 1.5, float("nan"), float("inf"), 10**30, [], {}])
def test_a_figure_that_is_no_count_is_unknown(damage: Any) -> None:
    """Negative, textual and absurd figures are left out; the sound ones beside them stay."""
    report = {"prompt_tokens": damage, "completion_tokens": 4, "cost": damage if damage != 1.5 else -1}
    assert read_usage(report) == Usage(None, 4)


@pytest.mark.parametrize("report", [None, 7, "x", [], {}])
def test_no_report_is_unknown(report: Any) -> None:
    """What is no usage object says nothing."""
    assert read_usage(report) == Usage()


def test_later_reports_replace_earlier_ones() -> None:
    """Field by field, and silence changes nothing."""
    assert merged(Usage(9, 1, 8), Usage(9, 4)) == Usage(9, 4, 8)


def test_cost_from_prices_per_million() -> None:
    """Cached tokens have their own price, or that of the others."""
    usage = Usage(prompt_tokens=1_000_000, completion_tokens=500_000, cached_tokens=400_000)
    assert priced(usage, PriceSettings(input=1.0, output=4.0, cached=0.1)).cost_usd == pytest.approx(2.64)
    assert priced(usage, PriceSettings(input=1.0, output=4.0)).cost_usd == pytest.approx(3.0)


def test_a_reported_cost_is_not_worked_out_again() -> None:
    """The provider knows better; without figures or prices there is no cost."""
    price = PriceSettings(input=1.0, output=1.0)
    assert priced(Usage(9, 4, None, 0.25), price).cost_usd == 0.25
    assert priced(Usage(9), price).cost_usd is None
    assert priced(Usage(9, 4), None).cost_usd is None
