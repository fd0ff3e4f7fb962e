"""Work that a cancelled caller does not reach."""

import trio

from odek.memory.drain import Drain, open_drained_jobs


async def test_a_caller_that_is_cancelled_already_is_not_held_up(autojump_clock: object) -> None:
    """The block opens, is left at once, and what was begun in it ends."""
    ended = False

    async def job() -> None:
        nonlocal ended
        await trio.sleep(1)
        ended = True

    with trio.fail_after(5), trio.CancelScope() as caller:
        caller.cancel()
        async with open_drained_jobs(Drain(2)) as jobs:
            jobs.start_soon(job)
            await trio.sleep_forever()

    assert caller.cancelled_caught
    assert ended
