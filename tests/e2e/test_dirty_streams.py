"""What real servers send, through the real command: each ends in the right answer or one clear line."""

from pathlib import Path

import pytest

from tests.support.cli import Odek
from tests.support.model_server import (
    DONE,
    Answer,
    call_delta,
    chunk,
    cut,
    drip,
    error_answer,
    event,
    event_stream,
    json_answer,
    open_model_server,
    raw_bytes,
    stall,
    status,
    text_answer,
    usage_chunk,
)

STOP = chunk(finish_reason="stop")
CALLS_END = chunk(finish_reason="tool_calls")
TEXT = chunk({"content": "the answer"})


def two_reads(*indices: object) -> Answer:
    """Answer with two calls of read_file, for a.txt and b.txt, with odd indices."""
    first_index, second_index = indices

    def delta(index: object, path: str, call_id: str | None) -> dict[str, object]:
        call = call_delta(0, "read_file", f'{{"path": "{path}"}}', call_id)
        if index == "absent":
            del call["index"]
        else:
            call["index"] = index
        return call

    return event_stream(
        chunk({"tool_calls": [delta(first_index, "a.txt", "one")]}),
        chunk({"tool_calls": [delta(second_index, "b.txt", "two")]}),
        CALLS_END,
    )


ANSWERS: dict[str, Answer] = {
    "usage-only last chunk": event_stream(TEXT, STOP, usage_chunk()),
    "usage chunk without choices": event_stream(TEXT, STOP, event({"usage": {"prompt_tokens": 1}})),
    "comments": event_stream(b": ping\n\n", TEXT, b": ping\n\n", STOP),
    "CRLF": event_stream(TEXT.replace(b"\n", b"\r\n"), STOP.replace(b"\n", b"\r\n")),
    "multi-line data": event_stream(
        b'data: {"choices": [{"index": 0,\ndata: "delta": {"content": "the answer"}}]}\n\n', STOP
    ),
    "data without a space": event_stream(TEXT.replace(b"data: ", b"data:"), STOP),
    "no DONE": event_stream(TEXT, STOP, done=False),
    "DONE, then an open connection": stall(TEXT, STOP, DONE),
    "one byte at a time": drip(TEXT + STOP + DONE, 0),
    "not a stream": json_answer(
        {"choices": [{"message": {"role": "assistant", "content": "the answer"}, "finish_reason": "stop"}]}
    ),
    "null content first": event_stream(chunk({"role": "assistant", "content": None}), TEXT, STOP),
    "several choices": event_stream(
        TEXT, event({"choices": [{"index": 1, "delta": {"content": "another"}}]}), STOP
    ),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_a_dirty_stream_is_the_answer_all_the_same(tmp_path: Path, answer: Answer) -> None:
    """The text comes out whole and alone."""
    async with open_model_server([answer]) as server:
        done = await Odek(tmp_path, base_url=server.base_url).run("run", "hi")

    assert (done.status, done.stdout) == (0, "the answer\n")


async def test_a_character_split_between_chunks_is_whole(tmp_path: Path) -> None:
    """Bytes are joined before they are decoded."""
    whole = chunk({"content": "naïve 日本 🙂"})
    parts = [whole[index : index + 1] for index in range(len(whole))]
    async with open_model_server([event_stream(*parts, STOP)]) as server:
        done = await Odek(tmp_path, base_url=server.base_url).run("run", "hi")

    assert done.stdout == "naïve 日本 🙂\n"


CALLS: dict[str, Answer] = {
    "one index for all": two_reads(0, 0),
    "no index": two_reads("absent", "absent"),
    "null index": two_reads(None, None),
    "index from 1": two_reads(1, 2),
}


@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)
async def test_calls_are_told_apart_by_what_there_is(tmp_path: Path, calls: Answer) -> None:
    """Two calls stay two calls, each with its own arguments and result."""
    async with open_model_server([calls, text_answer("both read")]) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        (odek.workspace / "a.txt").write_text("alpha")
        (odek.workspace / "b.txt").write_text("beta")
        done = await odek.run("run", "read both")
        results = [m["content"] for m in server.requests[1].json["messages"] if m["role"] == "tool"]

    assert done.stdout == "both read\n"
    assert ["alpha" in results[0], "beta" in results[1]] == [True, True]


@pytest.mark.parametrize("arguments", ["", "null", "  ", None], ids=["empty", "null", "blank", "absent"])
async def test_a_call_without_arguments_is_an_empty_object(tmp_path: Path, arguments: str | None) -> None:
    """What stands for no arguments runs, and is echoed as {}."""
    call = event_stream(chunk({"tool_calls": [call_delta(0, "tree", arguments, "c")]}), CALLS_END)
    async with open_model_server([call, text_answer("listed")]) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        (odek.workspace / "here.txt").write_text("")
        done = await odek.run("run", "list")
        *_, asked, result = server.requests[1].json["messages"]

    assert done.stdout == "listed\n"
    assert asked["tool_calls"][0]["function"]["arguments"] == "{}"
    assert "here.txt" in result["content"]


async def test_a_name_split_over_deltas_and_an_id_in_the_first_only(tmp_path: Path) -> None:
    """The pieces of a call are put together before it runs."""
    call = event_stream(
        chunk({"tool_calls": [call_delta(0, "read_", "", "c1")]}),
        chunk({"tool_calls": [call_delta(0, "file", '{"pa')]}),
        chunk({"tool_calls": [call_delta(0, None, 'th": "a.txt"}')]}),
        CALLS_END,
    )
    async with open_model_server([call, text_answer("read")]) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        (odek.workspace / "a.txt").write_text("alpha")
        await odek.run("run", "read")

    assert "alpha" in server.requests[1].json["messages"][-1]["content"]


FAULTS: dict[str, tuple[Answer, str]] = {
    "an error object inside the stream": (
        event_stream(event({"error": {"message": "the engine has crashed"}})),
        "the engine has crashed",
    ),
    "an HTML page": (
        status(200, {"Content-Type": "text/html"}, "<html><title>Sign in</title><p>wifi</html>"),
        "Sign in",
    ),
    "an HTML error page": (status(403, {"Content-Type": "text/html"}, "<h1>Forbidden</h1>"), "403"),
    "an error with status 200": (json_answer({"error": {"message": "no such model"}}), "no such model"),
    "a wrong key": (error_answer(401, "invalid key"), "invalid key"),
    "an empty 200": (status(200), "without an answer"),
    "a cut after the first words": (cut(chunk({"content": "the begin"})), "the begin"),
    "no HTTP at all": (raw_bytes(b"SSH-2.0-OpenSSH_9.2\r\n"), "127.0.0.1"),
}


@pytest.mark.parametrize(("answer", "text"), FAULTS.values(), ids=FAULTS)
async def test_a_fault_is_one_clear_line_and_exit_1(tmp_path: Path, answer: Answer, text: str) -> None:
    """No traceback, nothing on stdout that looks like an answer, and the session goes on."""
    async with open_model_server([answer] * 2) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        done = await odek.run("run", "hi", environment={"ODEK_LLM_MAX_RETRIES": "0"})
        server.replace([text_answer("now")])
        again = await odek.run("continue", "again")

    assert (done.status, done.stdout) == (1, "")
    assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert (again.status, again.stdout) == (0, "now\n")


@pytest.mark.parametrize(
    ("answer", "environment"),
    [
        (stall(chunk({"content": "x"})), {"ODEK_LLM_IDLE_TIMEOUT_SECONDS": "0.3"}),
        (stall(head=False), {"ODEK_LLM_IDLE_TIMEOUT_SECONDS": "0.3"}),
        (drip(b": ping\n\n" * 2000, 0.05), {"ODEK_LLM_REQUEST_TIMEOUT_SECONDS": "0.5"}),
    ],
    ids=["stalls after a word", "never answers", "drips for ever"],
)
async def test_silence_and_drips_end_at_their_limit(
    tmp_path: Path, answer: Answer, environment: dict[str, str]
) -> None:
    """A dead server costs its time limit, not the evening."""
    async with open_model_server(default=answer) as server:
        done = await Odek(tmp_path, base_url=server.base_url).run(
            "run", "hi", environment={"ODEK_LLM_MAX_RETRIES": "0", **environment}
        )

    assert done.status == 1


@pytest.mark.parametrize(
    ("reason", "text"), [("length", "length limit"), ("content_filter", "content filter")]
)
async def test_a_cut_answer_is_shown_and_said_to_be_cut(tmp_path: Path, reason: str, text: str) -> None:
    """The person sees what there is, and that it is not all."""
    async with open_model_server([text_answer("half an ans", finish_reason=reason)]) as server:
        done = await Odek(tmp_path, base_url=server.base_url).run("run", "hi")

    assert (done.status, done.stdout) == (0, "half an ans\n")
    assert text in done.stderr


async def test_trouble_that_passes_is_waited_out(tmp_path: Path) -> None:
    """429 with Retry-After, a 503 and a reset connection are tried again; the person is told."""
    faults = [error_answer(429, "slow down", headers={"Retry-After": "0"}), status(503), cut()]
    async with open_model_server([*faults, text_answer("at last")]) as server:
        done = await Odek(tmp_path, base_url=server.base_url).run("run", "hi")

    assert (done.status, done.stdout) == (0, "at last\n")
    assert "trying again" in done.stderr
    assert len(server.requests) == 4
