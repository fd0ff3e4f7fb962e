"""Each setting of Extended Memory does what its description promises; here those of no other test."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from odek.config.extended_settings import ExtendedSettings
from odek.errors import StoreError
from odek.events import Event, Notice
from odek.llm.scripted import ScriptedModel, says
from odek.memory.extended.atom_jobs import AtomJobs, AtomJobsParts, Said
from odek.memory.extended.links import linked_with
from odek.memory.extended.memory_model import DailyBudget, MemoryModel
from odek.memory.extended.nudges import Nudge, NudgeLog, nudges_for
from odek.memory.extended.scoring import retention
from odek.memory.extended.session_atoms import SessionAtoms
from odek.memory.extended.tally import Tally
from odek.memory.extended.turns import AtomTurns, AtomTurnsParts
from odek.memory.extended.user_model import Focus, Inference, UserModelFile
from odek.memory.extended.write import Draft
from odek.memory.recall import Considered
from odek.messages import Message, UserMessage
from tests.support.extended import NOW, open_extended


def before(*, days: float) -> datetime:
    """Return the time so many days before now."""
    return NOW - timedelta(days=days)


@asynccontextmanager
async def open_session(
    directory: Path,
    *,
    drafts: tuple[Draft, ...] = (),
    last_seen: str = "",
    script: ScriptedModel | None = None,
    messages: tuple[Message, ...] = (),
    inferences: tuple[Inference, ...] = (),
    **settings: Any,
) -> AsyncGenerator[tuple[SessionAtoms, list[Event]]]:
    """Yield the layer's part in a session called s1."""
    chosen, events = ExtendedSettings(enabled=True, **settings), list[Event]()
    async with open_extended(directory, **settings) as memory, trio.open_nursery() as nursery:
        if drafts:
            await memory.add(drafts, session="s1", turn=1)
        user = UserModelFile(directory / "extended", chosen, lambda: NOW)
        if inferences:
            user.apply(inferences)

        def said() -> Said:
            return Said(messages, len(messages))

        model, jobs = None, None
        if script is not None:
            budget = DailyBudget(directory / "extended", max_calls=50, max_tokens=10**6, now=lambda: NOW)
            model = MemoryModel(script, budget, str, is_dedicated=False, timeout_seconds=5)
            parts = AtomJobsParts(
                memory=directory,
                own="s1",
                said=said,
                read=lambda _: None,
                ask=model.ask,
                keep=memory.add,
                counters=memory.counters,
                emit=list[Event]().append,
            )
            jobs = AtomJobs(parts, nursery)
        turns = AtomTurns(
            AtomTurnsParts(
                memory=memory,
                user=user,
                model=model,
                jobs=jobs,
                said=said,
                tally=Tally(directory / "extended", memory.counters, lambda: NOW),
                emit=events.append,
            ),
            nursery,
        )
        yield (
            SessionAtoms(
                memory,
                turns,
                NudgeLog(directory / "extended", chosen, lambda: NOW),
                emit=events.append,
                starter=nursery,
                session="s1",
                turn=lambda: len(messages),
                last_seen=last_seen,
            ),
            events,
        )


async def test_a_long_statement_is_cut_at_a_word(tmp_path: Path) -> None:
    """``atom_max_chars`` bounds the text of an atom."""
    async with open_extended(tmp_path, atom_max_chars=20) as memory:
        (written,) = await memory.add([Draft("likes to walk along the river at night")])
        assert written.atom.text == "likes to walk along"


async def test_retention_halves_with_each_half_life(tmp_path: Path) -> None:
    """``decay_half_life_days`` says how fast an atom counts less."""
    async with open_extended(tmp_path, now=lambda: NOW - timedelta(days=30)) as memory:
        (written,) = await memory.add([Draft("lives in Lyon", confidence=0.8)])
    assert retention(written.atom, NOW, 30.0) == pytest.approx(0.4)
    assert retention(written.atom, NOW, 15.0) == pytest.approx(0.2)
    scores = []
    for half_life in (10.0, 1000.0):
        async with open_extended(tmp_path, decay_half_life_days=half_life) as memory:
            scores.append((await memory.recall("who lives in Lyon?")).atoms[0].score)
    assert scores[0] < scores[1]


@pytest.mark.parametrize(("days", "left"), [(7, 1), (30, 2)])
async def test_what_waits_expires(tmp_path: Path, days: int, left: int) -> None:
    """``quarantine_ttl_days`` says how long a waiting atom may be kept when room is made."""
    for age in (10, 1):
        clock = partial(before, days=age)
        async with open_extended(tmp_path, now=clock) as memory:
            await memory.add([Draft(f"a page says so, {age}", source_class="web")])
    async with open_extended(tmp_path, quarantine_ttl_days=days) as memory:
        await memory.prune()
        assert len(await memory.quarantined()) == left


async def test_more_candidates_let_a_fresher_one_win(tmp_path: Path) -> None:
    """``semantic_search_overfetch`` says from how many the composite score chooses."""
    old = NOW - timedelta(days=300)
    async with open_extended(tmp_path, semantic_dedup_threshold=0.0, now=lambda: old) as memory:
        await memory.add(
            [Draft(f"heron {word} heron database", confidence=0.2) for word in ("one", "two", "six")]
        )
    async with open_extended(tmp_path, semantic_dedup_threshold=0.0) as memory:
        await memory.add([Draft("the heron database is what the person asks about most", confidence=1.0)])
    first = []
    for overfetch in (1, 10):
        async with open_extended(
            tmp_path, semantic_search_top_k=1, semantic_search_overfetch=overfetch
        ) as memory:
            first.append((await memory.recall("heron database")).atoms[0].atom.confidence)
    assert first == [0.2, 1.0]


async def test_links_are_made_or_not(tmp_path: Path) -> None:
    """``associations_enabled`` and ``association_semantic_top_k`` decide on the links of a new atom."""
    drafts = [
        Draft("owns a boat called Juno"),
        Draft("sails the boat Juno on sundays"),
        Draft("a boat named Juno leaks"),
    ]
    for name, settings, most in (
        ("on", {}, 2),
        ("few", {"association_semantic_top_k": 0}, 1),
        ("off", {"associations_enabled": False}, 0),
    ):
        async with open_extended(tmp_path / name, **settings) as memory:
            written = await memory.add(drafts)
            assert max(len(each.atom.related) for each in written) == most, name


async def test_what_a_session_says_in_turn_is_linked_both_ways(tmp_path: Path) -> None:
    """The next statement of a session is linked to the one before, unless that is gone by then."""
    async with open_extended(tmp_path, association_semantic_top_k=0) as memory:
        (first,) = await memory.add([Draft("is moving the billing service")], session="one", turn=1)
        (other,) = await memory.add([Draft("likes green tea")], session="two", turn=1)
        (second,) = await memory.add([Draft("must finish before the summer")], session="one", turn=2)
        live = await memory.live()
        await memory.forget(second.atom.id)
        (third,) = await memory.add([Draft("has a budget of 40 days")], session="one", turn=3)

    assert third.atom.related == ()
    assert (first.atom.related, other.atom.related) == ((), ())
    assert second.atom.related == (first.atom.id,)
    assert linked_with(first.atom, live) == [second.atom]
    assert linked_with(second.atom, live) == [first.atom]


async def test_extraction_has_its_switch(tmp_path: Path) -> None:
    """``auto_extract_per_turn`` off asks nobody about what was said."""
    for is_on, asked in ((True, 1), (False, 0)):
        script = ScriptedModel([says("[]")] * 3)
        async with open_session(
            tmp_path / str(is_on),
            script=script,
            messages=(UserMessage("I live in Lyon."),),
            auto_extract_per_turn=is_on,
        ) as (session, _):
            session.asked()
        assert len(script.requests) == asked


async def test_the_style_is_told_or_not(tmp_path: Path) -> None:
    """``style_mirroring_enabled`` decides whether the model is told how this person likes to be answered."""
    known = (Inference("style.verbosity", "short"),)
    async with open_session(tmp_path, inferences=known) as (session, _):
        texts, considered = await session.context("hello", [])
        assert texts == ("This person prefers answers like this: verbosity: short.",)
        assert considered == (Considered("person", "style and focus", "injected"),)
        again = await session.context("hello again", texts)  # it is in the conversation already
        assert again == ((), (Considered("person", "style and focus", "duplicate"),))
    async with open_session(tmp_path, style_mirroring_enabled=False) as (session, _):
        assert await session.context("hello", []) == ((), ())


async def test_atoms_are_told_once(tmp_path: Path) -> None:
    """What the conversation holds already is not repeated, and the record says why."""
    async with open_session(tmp_path, drafts=(Draft("lives in Lyon", "fact"),)) as (session, _):
        texts, considered = await session.context("who lives in Lyon?", [])
        assert "- [2026-06-01] (fact) lives in Lyon" in texts[0]
        assert [each.outcome for each in considered] == ["injected"]
        again, considered = await session.context("who lives in Lyon?", list(texts))
        assert again == ()
        assert [each.outcome for each in considered] == ["duplicate"]


@pytest.mark.parametrize(
    ("last_seen", "is_on", "is_told"),
    [
        ("2026-05-28T12:00:00Z", True, True),
        ("2026-06-01T11:30:00Z", True, False),
        ("2026-05-28T12:00:00Z", False, False),
        ("", True, False),
    ],
)
async def test_after_a_break_the_model_is_told_where_it_stopped(
    tmp_path: Path, last_seen: str, *, is_on: bool, is_told: bool
) -> None:
    """``proactive_return_after_break`` names focus and open loops once, on resuming after a break."""
    async with open_session(
        tmp_path,
        drafts=(Draft("asks who signs the invoices", "question"),),
        inferences=(Inference("current_focus.task", "the billing release"),),
        last_seen=last_seen,
        proactive_return_after_break=is_on,
    ) as (session, _):
        texts, considered = await session.context("let us go on", [])
        assert ("return after break" in [each.id for each in considered]) is is_told
        told = "\n".join(texts)
        assert ("back after 4 days" in told) is is_told
        assert ("asks who signs the invoices" in told) is is_told
        assert "back after" not in "\n".join((await session.context("and on", []))[0])


GOAL = Draft("wants to ship the billing service", "goal")
QUESTION = Draft("asks who signs the invoices", "question")


@pytest.mark.parametrize(
    ("settings", "kinds"),
    [
        ({}, ["open_question", "stale_goal"]),
        ({"nudge_open_question_min_age_hours": 1000.0}, ["stale_goal"]),
        ({"nudge_stale_goal_days": 60.0}, ["open_question"]),
    ],
)
async def test_what_is_open_long_enough_is_worth_a_reminder(
    tmp_path: Path, settings: dict[str, Any], kinds: list[str]
) -> None:
    """``nudge_open_question_min_age_hours`` and ``nudge_stale_goal_days`` say from when on."""
    async with open_extended(tmp_path, now=lambda: NOW - timedelta(days=30)) as memory:
        await memory.add([GOAL, QUESTION])
        found = nudges_for(await memory.live(), Focus(), ExtendedSettings(**settings), NOW)
    assert [nudge.kind for nudge in found] == kinds
    young = nudges_for([], Focus(blocker="waiting for access"), ExtendedSettings(), NOW)
    assert [nudge.kind for nudge in young] == ["blocker"]
    drift = nudges_for(
        [],
        Focus(task="migrate billing invoices database"),
        ExtendedSettings(),
        NOW,
        message="please bake chocolate cookies without butter tonight",
    )
    assert [nudge.kind for nudge in drift] == ["drift"]


def test_reminders_are_rationed_across_processes(tmp_path: Path) -> None:
    """``nudge_max_per_day`` and ``nudge_cooldown_hours`` hold for all processes."""
    question, goal = Nudge("open_question", "Still open: x", "a"), Nudge("stale_goal", "Stale: y", "b")

    def log(hours: float = 0.0, **settings: Any) -> NudgeLog:
        return NudgeLog(tmp_path, ExtendedSettings(**settings), lambda: NOW + timedelta(hours=hours))

    assert log(nudge_max_per_day=0).deliver([question]) is None
    assert log().deliver([question, goal]) == question
    assert log().deliver([question, goal]) is None  # one a day
    assert log(nudge_max_per_day=5).deliver([question, goal]) == goal  # the other kind has not cooled down
    assert log(nudge_max_per_day=5).deliver([question, goal]) is None
    assert log(30.0).deliver([question]) == question
    assert log(55.0, nudge_cooldown_hours=100.0).deliver([question]) is None
    (tmp_path / "nudges.json").write_text("{")
    with pytest.raises(StoreError, match=r"nudges\.json cannot be read"):
        log().deliver([question])


async def test_reminders_have_their_switch(tmp_path: Path) -> None:
    """``proactive_nudges_enabled`` is off by default; on, a person is reminded after an answer, once."""
    async with open_extended(tmp_path, now=lambda: NOW - timedelta(days=30)) as memory:
        await memory.add([QUESTION])
    told: dict[bool, list[str]] = {}
    for is_on in (False, True):
        async with open_session(tmp_path, proactive_nudges_enabled=is_on) as (session, events):
            session.finished()
            session.finished()
        told[is_on] = [event.text for event in events if isinstance(event, Notice)]
    assert told == {False: [], True: ["💡 Still open: asks who signs the invoices"]}


async def test_only_likely_follow_ups_are_offered(tmp_path: Path) -> None:
    """``follow_up_suggestion_min_confidence`` decides what a person is offered."""
    from odek.memory.extended.foresight import parse_intents, suggestions

    answer = '[{"text": "run the tests", "confidence": 0.7}, {"text": "deploy", "confidence": 0.5}]'
    intents = parse_intents(answer, 3)
    assert suggestions(intents, 0.6) == ["run the tests"]
    assert suggestions(intents, 0.4) == ["run the tests", "deploy"]
    assert [intent.text for intent in parse_intents(answer, 1)] == ["run the tests"]
