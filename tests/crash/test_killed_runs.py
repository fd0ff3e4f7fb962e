"""``kill -9`` at any moment: the session continues, and holds every answer that was shown."""

import random
import signal
from pathlib import Path

import pytest
import trio

from tests.support.cli import Odek
from tests.support.model_server import (
    Answer,
    ModelServer,
    RecordedRequest,
    by_request,
    open_model_server,
    text_answer,
    tool_call_answer,
)

QUESTIONS = 6


def question(number: int) -> dict[str, str]:
    """Return a question as it stands in a request."""
    return {"role": "user", "content": str(number)}


def messages_of(request: RecordedRequest) -> list[dict[str, str]]:
    """Return the conversation that a request carries; it may also be the memory's own question."""
    messages: list[dict[str, str]] = request.json["messages"]
    return messages


def answer_for(request: RecordedRequest) -> Answer:
    """Answer each question by its number, after one round of tools."""
    messages = request.json["messages"]
    number = [m["content"] for m in messages if m["role"] == "user"][-1]
    if messages[-1]["role"] != "tool":
        return tool_call_answer(
            [("write_file", {"path": f"{number}.txt", "content": number}), ("glob", {"pattern": "*"})]
        )
    return text_answer(f"This is the answer to question {number}.")


async def one_life(folder: Path, server: ModelServer, dice: random.Random) -> tuple[Odek, list[str]]:
    """Talk with odek until it is killed; return the answers that were shown."""
    odek = Odek(folder, base_url=server.base_url)
    odek.environment["ODEK_MODEL"] = "gpt-4o"  # which takes what the memory adds by itself
    with (folder / "questions").open("w+") as stdin:
        stdin.write("".join(f"{number}\n" for number in range(QUESTIONS)))
        stdin.seek(0)
        async with odek.start("repl", stdin=stdin.fileno()) as running:
            # Some way into the conversation, and then anywhere between two requests.
            with trio.move_on_after(30):
                await server.wait_requests(dice.randrange(2 * QUESTIONS))
            await trio.sleep(dice.uniform(0, 0.08))
            running.signal(signal.SIGKILL)
            finished = await running.wait()
    return odek, [line for line in finished.stdout.splitlines() if line.endswith(".")]


async def survives(folder: Path, seed: int) -> int:
    """Kill one run at a moment chosen by ``seed``; check, and return how many answers were shown."""
    folder.mkdir()  # noqa: ASYNC240 - a test may block
    async with open_model_server(default=by_request(answer_for)) as server:
        odek, shown = await one_life(folder, server, random.Random(seed))
        if not odek.sessions():
            assert shown == []
            return 0
        again = await odek.run("continue", str(QUESTIONS))
        last = next(m for m in map(messages_of, reversed(server.requests)) if question(QUESTIONS) in m)

    assert again.status == 0, again.stderr
    held = [message["content"] for message in last if message["role"] == "assistant"]
    assert [answer for answer in shown if answer not in held] == []
    return len(shown)


async def test_killed_at_random_moments(tmp_path: Path) -> None:
    """Some runs end at different places, from the first import to the last answer."""
    shown = [await survives(tmp_path / str(seed), seed) for seed in range(7)]

    assert len(set(shown)) > 2, "the moments should differ"


@pytest.mark.slow
async def test_killed_at_200_random_moments(tmp_path: Path) -> None:
    """The long form of the same."""
    for seed in range(200):
        await survives(tmp_path / str(seed), seed)
