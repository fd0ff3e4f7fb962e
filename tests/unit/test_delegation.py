"""Rights, shares and findings of delegated work: pure decisions."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.budget import Budget, Limits
from odek.config.keys import credentials_in, secret_paths, with_values
from odek.config.settings import Config, DangerousSettings
from odek.delegation import DelegatedTask, TaskReport, clamped, config_for, seen_changes
from odek.errors import LimitReachedError
from odek.events import Usage
from odek.output_schema import problem_with, unsupported
from odek.trust.policy import DEFAULT_ACTIONS, action_for, decide
from odek.trust.risk import Part, Risk, Verdict

ACTIONS = st.sampled_from(["allow", "prompt", "deny"])
CLASSES = st.dictionaries(st.sampled_from([risk.label for risk in Risk if risk is not Risk.BLOCKED]), ACTIONS)


@given(
    classes=CLASSES,
    trusted=st.sets(st.sampled_from([Risk.INSTALL, Risk.NETWORK_EGRESS, Risk.CODE_EXECUTION])),
    level=st.sampled_from(["trusted", "untrusted"]),
    ceiling=st.sampled_from([None, *(risk.label for risk in Risk)]),
    nobody=st.booleans(),
)
@settings(max_examples=100)
def test_a_subagent_never_has_more_than_its_parent(
    classes: Any, trusted: set[Risk], level: Any, ceiling: Any, nobody: bool
) -> None:
    """What the parent denies is denied, what it would ask about is only allowed if it may run unasked."""
    policy = DangerousSettings(classes=classes)
    task = DelegatedTask("goal", trust_level=level, max_risk=ceiling)
    rights = clamped(task, policy, trusted, asks_nobody=nobody)

    for risk in DEFAULT_ACTIONS:
        before, after = action_for(risk, policy), action_for(risk, rights)
        assert after in {"allow", "deny"}
        if after == "allow":
            assert before == "allow" or (before == "prompt" and risk in trusted)
        if ceiling is not None and risk > Risk[ceiling.upper()]:
            assert after == "deny"
        if level == "untrusted":
            assert risk <= Risk.LOCAL_WRITE or after == "deny"


def test_a_bounded_task_loses_the_list_of_allowed_commands() -> None:
    """An exact command would otherwise get around the bound; the denylist stays for everyone."""
    policy = DangerousSettings(allowlist=("make install",), denylist=("ls",))
    verdict = Verdict.of((Part("make install", Risk.INSTALL, "installs"),))
    free = clamped(DelegatedTask("g", trust_level="trusted"), policy, (), asks_nobody=False)
    bounded = [
        clamped(task, policy, (), asks_nobody=False)
        for task in (DelegatedTask("g"), DelegatedTask("g", trust_level="trusted", max_risk="local_write"))
    ]

    assert decide(verdict, free, "make install") == "allow"
    assert {decide(verdict, rights, "make install") for rights in bounded} == {"deny"}
    assert all(rights.denylist == ("ls",) for rights in (free, *bounded))


def test_what_nobody_can_be_asked_follows_the_parent_that_has_nobody_either() -> None:
    """A run without a terminal that allows what it would ask hands that on; one with a person does not."""
    policy = DangerousSettings(non_interactive="allow")
    task = DelegatedTask("g", trust_level="trusted")

    assert action_for(Risk.INSTALL, clamped(task, policy, (), asks_nobody=True)) == "allow"
    assert action_for(Risk.INSTALL, clamped(task, policy, (), asks_nobody=False)) == "deny"


def test_no_key_is_in_the_configuration_that_travels() -> None:
    """The keys travel apart."""
    config = with_values(Config(), dict.fromkeys(secret_paths(), "secret-key"))
    task = DelegatedTask("g", model="other")
    sent = config_for(task, config, DangerousSettings(), Limits(tokens=10))

    assert len(secret_paths()) > 3
    assert credentials_in(config) == dict.fromkeys(secret_paths(), "secret-key")
    assert b"secret-key" not in msgspec.json.encode(sent)
    assert sent.model == "other"
    assert (sent.budget.tokens, sent.no_agents) == (10, True)


def test_a_budget_is_shared_out_and_an_empty_one_is_not() -> None:
    """Each gets an equal share of the rest; no limit stays none; nothing is shared when all is used."""
    budget = Budget(Limits(tokens=100), lambda: 0.0, lambda _warning: None)
    budget.spend(Usage(prompt_tokens=30, completion_tokens=10))

    assert budget.share(3) == Limits(iterations=90, tokens=20, cost_usd=0.0, seconds=0.0)
    budget.spend(Usage(prompt_tokens=60))
    with pytest.raises(LimitReachedError, match="tokens"):
        budget.share(1)


def test_changes_are_given_to_who_wrote_or_alone_ran_commands() -> None:
    """Two writers are a conflict; several that ran commands leave it open; only what changed is told."""
    reports = [
        TaskReport(writes=("a", "b", "unchanged")),
        TaskReport(writes=("b",), ran_commands=True),
        TaskReport(),
    ]
    own, conflicts, unsure = seen_changes(["a", "b", "c"], reports)

    assert own == [["a", "b"], ["b", "c"], []]
    assert (conflicts, unsure) == ({"b": [0, 1]}, {})
    reports.append(TaskReport(ran_commands=True))
    assert seen_changes(["c"], reports) == ([[], [], [], []], {}, {"c": [1, 3]})


SCHEMA = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "sizes": {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": 2},
        "kind": {"enum": ["a", "b", None]},
    },
}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ('{"name": "x", "sizes": [1, 2.0], "kind": null}', ""),
        ('```json\n{"name": "x"}\n```', ""),
        ("no JSON", "not JSON"),
        ("[]", "type object"),
        ("{}", "$.name is missing"),
        ('{"name": ""}', "minLength"),
        ('{"name": "x", "sizes": [true]}', "$.sizes[0] must be of type integer"),
        ('{"name": "x", "sizes": [-1]}', "below minimum"),
        ('{"name": "x", "sizes": [1, 2, 3]}', "above maxItems"),
        ('{"name": "x", "kind": "c"}', "one of"),
        ('{"name": "x", "more": 1}', "$.more must not be there"),
    ],
)
def test_an_answer_fits_its_schema_or_it_is_said_why(answer: str, words: str) -> None:
    """The place and the rule are named."""
    problem = problem_with(answer, SCHEMA)

    assert bool(problem) == bool(words)
    assert words in problem


@pytest.mark.parametrize(
    "schema",
    [{"oneOf": []}, {"type": "text"}, {"properties": []}, {"items": {"pattern": "x"}}, {"minimum": "1"}],
)
def test_a_schema_that_cannot_be_checked_is_refused(schema: dict[str, Any]) -> None:
    """Nothing is silently left unchecked."""
    assert unsupported(schema)
    assert not unsupported(SCHEMA)
