"""Values that are right each by itself, and not together."""

import msgspec
import pytest

from odek.config.keys import table
from odek.config.order import ORDERED
from odek.config.settings import Config
from tests.support.config_texts import HOME, PROJECT, made_of, problems_of


def test_every_ordered_pair_exists_and_is_in_order_by_default() -> None:
    """The paths are keys of numbers, and nobody is told about what they did not set."""
    for pair in ORDERED:
        assert {pair.low, pair.high} <= table().keys()
    assert made_of().config == Config()


def test_a_contradiction_is_one_line_with_both_keys_and_where_they_are_set() -> None:
    """Whichever layers the values come from, and though one of them was never set."""
    low, high = problems_of(
        home='{"memory": {"add_threshold": 0.8}, "llm": {"max_tokens": 4096}}',
        project='{"llm": {"context_window": 4096}}',
    )
    assert low == (
        f"memory.add_threshold (0.8, {HOME}) must not be above memory.merge_threshold (0.7, default): "
        "a fact would be new and the same as another at once"
    )
    assert high == (
        f"llm.max_tokens (4096, {HOME}) must be below llm.context_window (4096, {PROJECT}): "
        "an answer that fills the window leaves no room for a question"
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"memory": {"add_threshold": 0.7}}',
        '{"memory": {"add_threshold": 1, "merge_threshold": 1}}',
        '{"llm": {"max_tokens": 4095, "context_window": 4096}}',
        '{"llm": {"max_tokens": 10000000}}',
        '{"llm": {"max_tokens": null, "context_window": 1}}',
    ],
)
def test_values_in_order_are_taken(text: str) -> None:
    """Equal bounds of the merging are in order, and so is what is left to the provider."""
    given = msgspec.json.decode(text)
    config = msgspec.to_builtins(made_of(home=text).config)
    for section, values in given.items():
        assert values.items() <= config[section].items()
