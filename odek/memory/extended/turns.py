"""What Extended Memory does in each turn of one conversation.

Before the answer: atoms for the message, with what a configured memory model foresees if
that is there in time. Beside the answer: statements are taken out of the message, and now
and then what is known of the person is brought up to date. Nothing here raises, and
without a model the atoms still come.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import msgspec
import trio

from odek.background import Starter
from odek.errors import LimitReachedError, ModelError, StoreError
from odek.events import Event, Notice
from odek.guard import SecondOpinion
from odek.memory.extended import foresight
from odek.memory.extended.anaphora import antecedent, resolved
from odek.memory.extended.atom_jobs import AtomJobs, Said
from odek.memory.extended.extract_atoms import spoken
from odek.memory.extended.find import Passed
from odek.memory.extended.infer_state import INFERENCE_PROMPT, inference_text, parse_inferences
from odek.memory.extended.memory_model import MemoryModel
from odek.memory.extended.scoring import Scored
from odek.memory.extended.service import ExtendedMemory, RecalledAtoms
from odek.memory.extended.tally import Tally
from odek.memory.extended.user_model import UserModel, UserModelFile

__all__ = ["AtomTurns", "AtomTurnsParts", "TurnAtoms"]

LOOK_BACK = 3
"""Messages that predictions are made from."""

_T = TypeVar("_T")


class AtomTurnsParts(msgspec.Struct, frozen=True, kw_only=True):
    """What the turns of a conversation work with.

    ``model`` is None when there is nobody to ask; ``jobs`` when nothing is to be extracted, as in
    a subagent. ``said`` returns the conversation as it is now. ``tally`` adds up what is counted.
    ``object_to`` is a second opinion on what is given, for what may have been edited since it was kept.
    """

    memory: ExtendedMemory
    user: UserModelFile
    model: MemoryModel | None
    jobs: AtomJobs | None
    said: Callable[[], Said]
    tally: Tally
    object_to: SecondOpinion | None = None
    emit: Callable[[Event], None]


class TurnAtoms(msgspec.Struct, frozen=True):
    """What a turn is given, and what it was looked up by.

    ``query`` is the message as it was understood. ``suggestions`` are what the person may ask
    next, likeliest first.
    """

    recalled: RecalledAtoms = RecalledAtoms()
    query: str = ""
    user: UserModel = UserModel()
    suggestions: tuple[str, ...] = ()


class AtomTurns:
    """The layer's part in the turns of one conversation.

    Args:
        parts: What it works with.
        starter: Begins what runs beside the answer.
    """

    def __init__(self, parts: AtomTurnsParts, starter: Starter) -> None:
        self._parts = parts
        self._starter = starter
        self._settings = parts.memory.settings
        self._counters = parts.memory.counters
        self._turns_since_inference = 0
        self._is_inferring = False
        self._user_damage = ""

    async def before(self, message: str) -> TurnAtoms:
        """Return what the message is to be answered with."""
        user = await self._user_model()
        query, recalled = message, await self._parts.memory.recall(message)
        if self._settings.anaphora_resolution_enabled:
            meant = antecedent(message, recalled.atoms, self._parts.memory.now())
            if meant is not None:
                query = resolved(message, meant)
                recalled = await self._parts.memory.recall(query)
        predicted: list[foresight.Intent] = []
        model = self._parts.model
        if model is not None and model.is_dedicated:
            with trio.move_on_after(foresight.WAIT_SECONDS) as limit:
                recalled, predicted = await self._with_foresight(model, query, recalled)
            if limit.cancelled_caught:
                self._counters["foresight_late"] += 1
        recalled = await self._looked_over(recalled)
        offered: list[str] = []
        if self._settings.follow_up_suggestions_enabled:
            offered = foresight.suggestions(predicted, self._settings.follow_up_suggestion_min_confidence)
        return TurnAtoms(recalled, query, user, tuple(offered))

    def asked(self, turn: int) -> None:
        """Begin what runs beside the answer to turn number ``turn``; returns at once."""
        if self._parts.jobs is None or self._parts.model is None:
            return
        if self._settings.auto_extract_per_turn:
            self._parts.jobs.said(turn)
        self._turns_since_inference += 1
        is_due = self._turns_since_inference >= self._settings.user_state_turn_interval
        if self._settings.infer_user_state and is_due and not self._is_inferring:
            self._turns_since_inference = 0
            self._is_inferring = True
            self._starter.start_soon(self._infer, self._parts.model)

    def finished(self) -> None:
        """Add up, after an answer, what was counted; returns at once."""
        if self._parts.tally.is_behind:
            self._starter.start_soon(self._add_up)

    async def _add_up(self) -> None:
        with suppress(StoreError):  # tried again after the next answer
            await self._in_thread(self._parts.tally.save)

    async def _looked_over(self, recalled: RecalledAtoms) -> RecalledAtoms:
        """Return the atoms without those that the guard takes exception to; what a person approved stays."""
        asked = [each for each in recalled.atoms if each.atom.source_class != "user_approved"]
        if self._parts.object_to is None or not asked:
            return recalled
        objections = [""] * len(asked)
        with trio.move_on_after(foresight.WAIT_SECONDS) as limit:
            objections = await self._parts.object_to([each.atom.text for each in asked])
        if limit.cancelled_caught:  # they passed the scan, and the guard that there was, when they were kept
            self._counters["guard_late"] += 1
        refused = [each for each, objection in zip(asked, objections, strict=True) if objection]
        self._counters["guard_refused"] += len(refused)
        gone = {each.atom.id for each in refused}
        return RecalledAtoms(
            tuple(each for each in recalled.atoms if each.atom.id not in gone),
            recalled.over_budget,
            (*recalled.passed, *(Passed(each.atom.id, "withheld", each.likeness) for each in refused)),
        )

    async def _with_foresight(
        self, model: MemoryModel, query: str, recalled: RecalledAtoms
    ) -> tuple[RecalledAtoms, list[foresight.Intent]]:
        """Return the atoms in a better order and with those for predicted questions, and these."""
        predicted: list[foresight.Intent] = []
        extra: list[Scored] = []
        ranked: list[Scored] | None = None

        async def predict() -> None:
            nonlocal predicted, extra
            predicted = await self._predict(model)
            extra = await self._for_intents(predicted)

        async def rank() -> None:
            nonlocal ranked
            ranked = await self._rank(model, query, (*recalled.atoms, *recalled.over_budget))

        async with trio.open_nursery() as nursery:
            if self._settings.predictive_intents and self._settings.follow_up_anticipation_enabled:
                nursery.start_soon(predict)
            if self._settings.semantic_search_rerank and len(recalled.atoms) > 1:
                nursery.start_soon(rank)
        if ranked is None and not extra:
            return recalled, predicted
        kept = ranked if ranked is not None else [*recalled.atoms, *recalled.over_budget]
        return self._parts.memory.cut([*kept, *extra], recalled.passed), predicted

    async def _predict(self, model: MemoryModel) -> list[foresight.Intent]:
        count = self._settings.predictive_intents
        texts = spoken(self._parts.said().messages)[-LOOK_BACK:]
        focus = (await self._user_model()).current_focus
        text = inference_text(texts, UserModel(current_focus=focus))
        answer = await self._ask(model, foresight.intents_prompt(count), text, "predict") if text else None
        return foresight.parse_intents(answer, count) if answer is not None else []

    async def _for_intents(self, intents: Sequence[foresight.Intent]) -> list[Scored]:
        found: list[Scored] = []
        for intent in intents:
            try:
                found += await self._parts.memory.search(intent.text, weight=intent.confidence)
                found += await self._parts.memory.search(
                    intent.text, types=foresight.INTENT_TYPES, weight=intent.confidence
                )
            except StoreError:
                self._counters["recall_failed"] += 1
        return found

    async def _rank(
        self, model: MemoryModel, query: str, candidates: Sequence[Scored]
    ) -> list[Scored] | None:
        text = foresight.ranking_text(query, candidates)
        answer = await self._ask(model, foresight.RANKING_PROMPT, text, "rerank")
        ranked = foresight.parse_ranking(answer, candidates) if answer is not None else None
        if answer is not None and ranked is None:
            self._counters["rerank_failed"] += 1
        return ranked

    async def _infer(self, model: MemoryModel) -> None:
        """Bring what is known of the person up to date."""
        try:
            count = self._settings.user_state_turn_interval
            texts = spoken(self._parts.said().messages)[-count:]
            text = inference_text(texts, await self._user_model())
            answer = await self._ask(model, INFERENCE_PROMPT, text, "infer") if text else None
            inferences = parse_inferences(answer) if answer is not None else []
            if inferences is None:
                self._counters["infer_failed"] += 1
            elif inferences:
                await self._in_thread(partial(self._parts.user.apply, inferences))
        except StoreError as error:
            self._counters["infer_failed"] += 1
            self._say(f"what was inferred is not kept: {error}")
        finally:
            self._is_inferring = False

    async def _ask(self, model: MemoryModel, instructions: str, text: str, step: str) -> str | None:
        """Return the answer, None when there is none; that is counted under the step's name."""
        try:
            return await model.ask(instructions, text)
        except LimitReachedError:
            self._counters[f"{step}_over_budget"] += 1
        except (ModelError, StoreError):
            self._counters[f"{step}_failed"] += 1
        return None

    async def _user_model(self) -> UserModel:
        try:
            return await self._in_thread(self._parts.user.read)
        except StoreError as error:
            self._counters["user_model_unreadable"] += 1
            if self._user_damage != str(error):
                self._user_damage = str(error)
                self._say(str(error))
            return UserModel()

    def _say(self, text: str) -> None:
        self._parts.emit(Notice(text, "warning"))

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await trio.to_thread.run_sync(work)
