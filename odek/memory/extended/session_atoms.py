"""Extended Memory in one session: what the model is told with each message, and what a person is offered."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import trio

from odek.background import Starter
from odek.errors import StoreError
from odek.events import Event, Notice
from odek.memory.extended.context import atoms_text, return_note, shown_ids, user_text
from odek.memory.extended.nudges import NudgeLog, nudges_for
from odek.memory.extended.scoring import Scored
from odek.memory.extended.service import ExtendedMemory
from odek.memory.extended.turns import AtomTurns, TurnAtoms
from odek.memory.extended.user_model import UserModel
from odek.memory.recall import Considered, Outcome

__all__ = ["SessionAtoms"]

OPEN_LOOPS = 3
"""Open questions and goals that are named after a break."""


class SessionAtoms:
    """Implements what a turn's context wants of Extended Memory.

    Args:
        memory: The atoms.
        turns: What happens before and beside each answer.
        nudges: Which reminders were given.
        emit: Takes what a person should see; never waits.
        starter: Begins what runs beside the answer.
        session: The id of the session.
        turn: Returns the number of the person's last message, from 1.
        last_seen: When the session was saved before it was resumed, RFC 3339; "" for a new one.
    """

    def __init__(
        self,
        memory: ExtendedMemory,
        turns: AtomTurns,
        nudges: NudgeLog,
        *,
        emit: Callable[[Event], None],
        starter: Starter,
        session: str,
        turn: Callable[[], int],
        last_seen: str,
    ) -> None:
        self._memory = memory
        self._turns = turns
        self._nudges = nudges
        self._emit = emit
        self._starter = starter
        self._session = session
        self._turn = turn
        self._last_seen = last_seen
        self._message = ""
        self._user = UserModel()
        self.follow_ups: tuple[str, ...] = ()

    async def context(
        self, message: str, earlier: Sequence[str]
    ) -> tuple[tuple[str, ...], tuple[Considered, ...]]:
        """Return texts for the model beside those of ``earlier``, and what became of each atom."""
        given = await self._turns.before(message)
        self._message, self._user, self.follow_ups = message, given.user, given.suggestions
        shown = shown_ids(earlier, given.recalled.atoms)
        new = [each for each in given.recalled.atoms if each.atom.id not in shown]
        told = user_text(given.user, style=self._memory.settings.style_mirroring_enabled)
        back = await self._return_note(told)
        about = back or told
        texts = [about if about not in earlier else "", atoms_text(new)]
        of_person = _of_person(
            {"return after break": back, "style and focus": told if not back else ""},
            is_known=about in earlier,
            is_resolved=given.query != message,
            offered=len(given.suggestions),
        )
        return tuple(filter(None, texts)), (*_considered(given, shown), *of_person)

    def asked(self) -> None:
        """Begin what runs beside the answer."""
        self._turns.asked(self._turn())

    def finished(self) -> None:
        """Remind, after an answer, of what is worth it, and add up what was counted; returns at once."""
        self._turns.finished()
        if self._memory.settings.proactive_nudges_enabled:
            self._starter.start_soon(self._nudge)

    async def _return_note(self, told: str) -> str:
        """Return where the person left off, once, when the session was resumed after a break."""
        last_seen, self._last_seen = self._last_seen, ""
        if not last_seen or not self._memory.settings.proactive_return_after_break:
            return ""
        try:
            live = await self._memory.live()
        except StoreError:
            return ""
        loops = [
            atom
            for atom in live
            if atom.session == self._session and atom.type in {"question", "goal", "intent"}
        ]
        return return_note(last_seen, told, loops[-OPEN_LOOPS:], self._memory.now())

    async def _nudge(self) -> None:
        try:
            candidates = nudges_for(
                await self._memory.live(),
                self._user.current_focus,
                self._memory.settings,
                self._memory.now(),
                message=self._message,
            )
            nudge = await trio.to_thread.run_sync(partial(self._nudges.deliver, candidates))
        except StoreError as error:
            self._memory.counters["nudge_failed"] += 1
            self._emit(Notice(f"no reminder could be chosen: {error}", "warning"))
            return
        if nudge is not None:
            self._emit(Notice(f"💡 {nudge.text}"))


def _of_person(
    told: Mapping[str, str], *, is_known: bool, is_resolved: bool, offered: int
) -> tuple[Considered, ...]:
    """Return the record of what a turn is given beside atoms."""
    outcome: Outcome = "duplicate" if is_known else "injected"
    found = [Considered("person", name, outcome) for name, text in told.items() if text]
    if is_resolved:
        reason = "the message was looked up with the recent atom that its pronoun may stand for"
        found.append(Considered("person", "anaphora", "injected", reason=reason))
    if offered:
        found.append(Considered("person", "follow-ups", "offered", reason=f"{offered} below the answer"))
    return tuple(found)


def _considered(given: TurnAtoms, shown: frozenset[str]) -> tuple[Considered, ...]:
    recalled = given.recalled

    def of(each: Scored, *, is_given: bool) -> Considered:
        outcome: Outcome = "duplicate" if each.atom.id in shown else "injected" if is_given else "budget"
        atom = each.atom
        reason = f"{atom.type} of {atom.created_at[:10]}, likeness {each.likeness:.2f}"
        return Considered("atom", atom.id, outcome, round(each.score, 4), reason=reason)

    return (
        *(of(each, is_given=True) for each in recalled.atoms),
        *(of(each, is_given=False) for each in recalled.over_budget),
        *(
            Considered(
                "atom",
                passed.atom_id,
                "score" if passed.reason == "score" else "withheld",
                round(passed.likeness, 4),
            )
            for passed in recalled.passed
        ),
    )
