"""Events wait for the screen, the loop does not."""

import trio
import trio.testing

from odek.event_queue import EventQueue
from odek.events import AnswerDelta, Event, Notice, ReasoningDelta, ToolOutputLine
from tests.support.waiting import HANG_SECONDS


async def test_pieces_of_text_join_and_nothing_is_lost() -> None:
    """A stalled reader gets the whole text in one piece, however many it was made of."""
    queue = EventQueue()
    for number in range(300_000):
        queue.emit(AnswerDelta(f"{number} "))

    taken = await queue.take()

    assert taken == [AnswerDelta("".join(f"{number} " for number in range(300_000)))]


async def test_texts_keep_their_order_among_other_events() -> None:
    """What joins is what came without anything between; a text that was taken is not joined again."""
    queue = EventQueue()
    for event in (
        ReasoningDelta("a"),
        ReasoningDelta("b"),
        AnswerDelta("c"),
        Notice("between"),
        AnswerDelta("d"),
        AnswerDelta("e"),
    ):
        queue.emit(event)

    assert await queue.take() == [
        ReasoningDelta("ab"),
        AnswerDelta("c"),
        Notice("between"),
        AnswerDelta("de"),
    ]
    queue.emit(AnswerDelta("f"))
    assert await queue.take() == [AnswerDelta("f")]


async def test_newer_lines_of_a_call_replace_older_ones_but_not_across_other_events() -> None:
    """What a tool prints keeps its place between the events that matter."""
    queue = EventQueue()
    for event in (
        ToolOutputLine("a", "1"),
        ToolOutputLine("b", "1"),
        ToolOutputLine("a", "2"),
        Notice("between"),
        ToolOutputLine("a", "3"),
    ):
        queue.emit(event)

    assert await queue.take() == [
        ToolOutputLine("a", "2"),
        ToolOutputLine("b", "1"),
        Notice("between"),
        ToolOutputLine("a", "3"),
    ]


async def test_the_reader_ends_after_the_last_event() -> None:
    """Closing lets the reader finish what is there and then stop."""
    queue = EventQueue()
    seen: list[Event] = []

    async def read() -> None:
        while events := await queue.take():
            seen.extend(events)

    with trio.fail_after(HANG_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            queue.emit(Notice("last"))
            queue.close()

    assert seen == [Notice("last")]
