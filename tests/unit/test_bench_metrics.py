"""Figures of rankings and durations, against ones worked out by hand."""

from math import log2

import msgspec
import pytest

from odek.bench.metrics import quality, ranking, spread


def test_quality_is_what_it_is_by_hand() -> None:
    """Found first, found third with another missing, and not found."""
    found = quality(
        [["a", "b"], ["x", "y", "b", "z"], ["x"]],
        [("a",), ("b", "c"), ("a",)],
    )

    second = (1 / log2(4)) / (1 + 1 / log2(3))
    assert found.questions == 3
    assert msgspec.structs.astuple(found)[1:] == pytest.approx(
        (1 / 3, 2 / 3, 2 / 3, 1.5 / 3, 1.5 / 3, (1 + 1 / 3) / 3, (1 + 1 / 3) / 3, (1 + second) / 3), abs=1e-4
    )


def test_what_stands_below_the_tenth_place_counts_in_the_mean_of_all_ranks_alone() -> None:
    """Nobody is given more than ten."""
    found = quality([[*map(str, range(10)), "right"]], [("right",)])

    assert (found.hit_at_10, found.recall_at_10, found.mrr_at_10, found.ndcg_at_10) == (0, 0, 0, 0)
    assert found.mrr == pytest.approx(1 / 11, abs=1e-4)


def test_the_first_ten_stay_in_the_order_that_they_were_asked_for() -> None:
    """Asking for more appends what is new."""
    assert ranking(["a", "b"], ["b", "c", "a", "d"]) == ["a", "b", "c", "d"]


def test_the_best_order_of_many_right_ones_is_worth_one() -> None:
    """With more right ones than are looked at, ten right ones are as good as it gets."""
    names = list(map(str, range(30)))
    found = quality([names], [names])

    assert found.ndcg_at_10 == 1
    assert found.recall_at_10 == pytest.approx(1 / 3, abs=1e-4)


def test_a_spread_is_made_of_durations_that_were_measured() -> None:
    """Nearest rank: of a hundred the fiftieth, of one itself."""
    seconds = [number / 1e3 for number in range(100, 0, -1)]

    found = spread(seconds)
    assert (found.p50, found.p95, found.p99, found.count) == (50, 95, 99, 100)
    assert spread([0.25]).p99 == 250
