"""What a stream has ready is taken at once, and nothing is held back while it waits."""

from collections.abc import AsyncGenerator

import pytest
import trio
import trio.testing

from odek.llm.bursts import take_in_bursts


async def test_pieces_that_are_ready_come_joined_and_before_the_wait() -> None:
    """Pieces without a wait between them are one burst, which is there before the stream waits for more."""
    bursts: list[bytes] = []
    may_go_on = trio.Event()

    async def pieces() -> AsyncGenerator[bytes]:
        yield b"a"
        yield b"b"
        assert bursts == []
        await may_go_on.wait()
        yield b"c"
        yield b"d"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_in_bursts, pieces(), bursts.append)
        await trio.testing.wait_all_tasks_blocked()
        assert bursts == [b"ab"]
        may_go_on.set()
    assert bursts == [b"ab", b"cd"]


async def test_what_came_before_a_failure_is_taken() -> None:
    """An error of the stream comes out after the pieces that arrived before it were taken."""
    bursts: list[bytes] = []

    async def pieces() -> AsyncGenerator[bytes]:
        yield b"a"
        await trio.lowlevel.checkpoint()
        yield b"b"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await take_in_bursts(pieces(), bursts.append)
    assert bursts == [b"a", b"b"]


async def test_taking_may_end_the_stream() -> None:
    """A scope that ``take`` cancels ends the iteration where it waits next."""
    bursts: list[bytes] = []
    with trio.CancelScope() as scope:

        def take(burst: bytes) -> None:
            bursts.append(burst)
            scope.cancel()

        async def pieces() -> AsyncGenerator[bytes]:
            yield b"enough"
            await trio.sleep_forever()

        await take_in_bursts(pieces(), take)
    assert scope.cancelled_caught
    assert bursts == [b"enough"]
