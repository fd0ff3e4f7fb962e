"""What a stream has ready, taken at once: its cost is that of the bytes, not of the pieces they come in."""

from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Any

__all__ = ["take_in_bursts"]


async def take_in_bursts(pieces: AsyncIterator[bytes], take: Callable[[bytes], None]) -> None:
    """Iterate over ``pieces`` and give them to ``take``, joined as far as they come without a wait.

    Nothing is held back: ``take`` is called before the iteration waits for more, and at its end or
    failure. It must not raise; to leave early, it cancels a scope around this.
    """
    gathered: list[bytes] = []

    def flush() -> None:
        if gathered:
            burst = b"".join(gathered)
            gathered.clear()
            take(burst)

    try:
        while True:
            try:
                gathered.append(await _Watched(anext(pieces), flush))
            except StopAsyncIteration:
                return
    finally:
        flush()


class _Watched(Generator[Any, Any, bytes]):
    """Awaits ``work``, and calls ``before_wait`` each time that it is about to wait for something."""

    def __init__(self, work: Awaitable[bytes], before_wait: Callable[[], None]) -> None:
        self._steps = work.__await__()
        self._before_wait = before_wait

    def __await__(self) -> Generator[Any, Any, bytes]:
        return self

    def send(self, value: Any) -> Any:
        request = self._steps.send(value)  # ends in StopIteration where there was nothing to wait for
        self._before_wait()
        return request

    def throw(self, *exception: Any) -> Any:
        request = self._steps.throw(*exception)
        self._before_wait()
        return request
