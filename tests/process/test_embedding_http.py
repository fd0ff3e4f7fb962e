"""Vectors over HTTP from a real loopback server: batches, cache, limits, failures, secrecy."""

from pathlib import Path
from typing import Any

import pytest
import trio

from odek.config.embedding_settings import EmbeddingSettings
from odek.embedding.choice import choose_embedder
from odek.embedding.embedder import cosine
from odek.embedding.http import BACKOFF_SECONDS, HttpEmbedder
from odek.embedding.local import ProjectionEmbedder
from odek.embedding.vector_cache import LIMIT_FILES, VectorCache
from odek.errors import EmbeddingError
from tests.support.endpoints import refusing_port
from tests.support.model_server import (
    Answer,
    ModelServer,
    RecordedRequest,
    by_request,
    error_answer,
    json_answer,
    open_model_server,
    raw_bytes,
    stall,
    status,
)
from tests.support.waiting import HANG_SECONDS

KEY = "sk-embedding-0123456789abcdef"


def vector_of(text: str, dims: int = 4) -> list[float]:
    """Return numbers that tell texts apart, far from length 1."""
    return [float(len(text)), *(float(sum(text.encode()) % (7 + place)) for place in range(dims - 1))]


def vectors(dims: int = 4, *, shuffled: bool = False) -> Answer:
    """Answer with a vector for each text asked for."""

    def choose(request: RecordedRequest) -> Answer:
        items = [
            {"object": "embedding", "index": place, "embedding": vector_of(text, dims)}
            for place, text in enumerate(request.json["input"])
        ]
        return json_answer({"object": "list", "data": items[::-1] if shuffled else items})

    return by_request(choose)


def names(directory: Path) -> list[Path]:
    """Return what is in a directory."""
    return sorted(directory.iterdir())


def embedder(server: ModelServer, cache: Path, **more: Any) -> HttpEmbedder:
    """Return an embedder at ``server``."""
    given = {"timeout_seconds": 5.0, **more}
    return HttpEmbedder(
        EmbeddingSettings(provider="http", base_url=server.base_url, model="nomic", **given), cache
    )


async def test_each_text_gets_its_vector(tmp_path: Path) -> None:
    """Vectors have length 1 and belong to their texts, in whatever order the server lists them."""
    async with open_model_server(default=vectors(shuffled=True)) as server:
        one, other, again = await embedder(server, tmp_path, api_key=KEY).embed(["tabs", "spaces", "tabs"])

    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/embeddings")
    assert request.json == {"model": "nomic", "input": ["tabs", "spaces"]}
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert cosine(one, again) == pytest.approx(1.0)
    assert one[0] / one[1] == pytest.approx(vector_of("tabs")[0] / vector_of("tabs")[1])
    assert other[0] / other[1] == pytest.approx(vector_of("spaces")[0] / vector_of("spaces")[1])


@pytest.mark.parametrize(
    "refusal",
    [
        error_answer(500, "input is too large to process. increase the physical batch size"),
        error_answer(400, "This model's maximum context length is 512 tokens"),
        error_answer(413, "`inputs` must have less than 512 tokens. Given: 900"),
        error_answer(400, "the input length exceeds the context length"),
    ],
)
async def test_a_text_that_is_too_long_is_sent_in_part(refusal: Answer, tmp_path: Path) -> None:
    """It is halved until the model reads it; others keep their length, and what was learned is kept."""
    reads = vectors()

    def choose(request: RecordedRequest) -> Answer:
        return refusal if max(map(len, request.json["input"])) > 1_000 else reads

    async with open_model_server(default=by_request(choose)) as server:
        asking = embedder(server, tmp_path)
        found = await asking.embed(["x" * 3_000, "short"])
        await asking.embed(["y" * 3_000])
        sizes = [[len(text) for text in request.json["input"]] for request in server.requests]

    assert len(found) == 2
    assert sizes == [[3_000, 5], [1_500, 5], [750, 5], [750]]


async def test_a_model_that_reads_nothing_is_given_up(tmp_path: Path) -> None:
    """After some tries it is a failure like others."""
    async with open_model_server(default=error_answer(400, "input is too long")) as server:
        with pytest.raises(EmbeddingError, match="too long"):
            await embedder(server, tmp_path).embed(["x" * 5_000])

        assert len(server.requests) <= 6


async def test_texts_that_say_nothing_are_not_sent(tmp_path: Path) -> None:
    """A blank text, which servers refuse, has zeros of the right size; half characters are sent as a sign."""
    async with open_model_server(default=vectors()) as server:
        blank, word, half = await embedder(server, tmp_path).embed([" \n", "tabs", "a\ud800"])

    (request,) = server.requests
    assert request.json["input"] == ["(blank)", "tabs", "a?"]
    assert blank.tolist() == [0, 0, 0, 0]
    assert word.shape == half.shape == (4,)


async def test_a_text_is_sent_once(tmp_path: Path) -> None:
    """A second embedder on the same cache sends only what is new; the files are private and say nothing."""
    cache = tmp_path / "memory" / "embedding_cache"
    async with open_model_server(default=vectors()) as server:
        first = await embedder(server, cache).embed(["a secret plan"])
        second = await embedder(server, cache).embed(["another", "a secret plan"])

        assert [request.json["input"] for request in server.requests] == [["a secret plan"], ["another"]]
    assert (first[0] == second[1]).all()
    for path in cache.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
        assert "secret" not in path.name
        assert b"secret" not in path.read_bytes()
    assert cache.stat().st_mode & 0o777 == 0o700


async def test_a_damaged_cache_is_a_miss(tmp_path: Path) -> None:
    """Files that were cut, overwritten or replaced by a directory are fetched again."""
    async with open_model_server(default=vectors()) as server:
        whole = await embedder(server, tmp_path).embed(["one", "two", "three"])
        paths = names(tmp_path)
        paths[0].write_bytes(paths[0].read_bytes()[:7])
        paths[1].write_bytes(b"")
        paths[2].unlink()
        paths[2].mkdir()

        again = await embedder(server, tmp_path).embed(["one", "two", "three"])

    assert len(server.requests) == 2
    assert all((left == right).all() for left, right in zip(whole, again, strict=True))


async def test_many_texts_go_in_bounded_requests(tmp_path: Path) -> None:
    """No request holds more than 64 texts or a quarter of a megabyte."""
    texts = [f"text {number}" for number in range(150)] + [f"{number}" + "x" * 20_000 for number in range(20)]
    async with open_model_server(default=vectors()) as server:
        found = await embedder(server, tmp_path).embed(texts)

    assert len(found) == len(texts)
    assert all(len(request.json["input"]) <= 64 for request in server.requests)
    assert all(len(request.body) <= 300_000 for request in server.requests)


async def test_a_failure_closes_the_way_for_a_while(tmp_path: Path) -> None:
    """After a failure nothing is sent for 30 s, except that known texts still have their vectors."""
    async with open_model_server([vectors(), error_answer(503, "loading")], default=vectors()) as server:
        asking = embedder(server, tmp_path)
        await asking.embed(["known"])

        with pytest.raises(EmbeddingError, match="503"):
            await asking.embed(["new"])
        with pytest.raises(EmbeddingError, match=r"tried again in \d+ s"):
            await asking.embed(["new"])

        assert len(await asking.embed(["known"])) == 1
        assert len(server.requests) == 2
    assert BACKOFF_SECONDS == 30


def malformed(embeddings: object) -> Answer:
    """Answer with something in the place of the list of vectors."""
    return json_answer({"data": embeddings})


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (malformed([]), "0 vectors for 1 texts"),
        (malformed([{"index": 3, "embedding": [1.0]}]), "1 vectors for 1 texts"),
        (malformed([{"index": 0, "embedding": []}]), "vectors of 0 numbers"),
        (malformed([{"index": 0, "embedding": ["x"]}]), "no list of vectors"),
        (malformed([{"index": 0, "embedding": [1e308, 1e308, 1e308, 1e308]}]), "beyond all bounds"),
        (vectors(3), "vectors of 3 numbers, expected 4"),
        (json_answer(["what"]), "no list of vectors"),
        (status(200, body="<html>"), "no list of vectors"),
        (status(302, {"Location": "http://127.0.0.1:9/"}), "302"),
        (error_answer(401, f"bad key {KEY}"), "401"),
        (raw_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"), "cannot get vectors"),
        (raw_bytes(b"rubbish"), "cannot get vectors"),
    ],
)
async def test_whatever_is_wrong_is_one_kind_of_error(answer: Answer, said: str, tmp_path: Path) -> None:
    """An answer that is not what was asked for is an EmbeddingError that names the server and no key."""
    async with open_model_server([answer]) as server:
        with pytest.raises(EmbeddingError, match=said) as caught:
            await embedder(server, tmp_path, dims=4, api_key=KEY).embed(["text"])

    assert "127.0.0.1" in str(caught.value)
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert names(tmp_path) == []


async def test_a_silent_server_costs_its_time_limit(tmp_path: Path) -> None:
    """A request ends after timeout_seconds, with nothing left connected."""
    async with open_model_server([stall()]) as server:
        with trio.fail_after(HANG_SECONDS), pytest.raises(EmbeddingError, match=r"within 0\.2 s"):
            await embedder(server, tmp_path, timeout_seconds=0.2).embed(["text"])
        with trio.fail_after(HANG_SECONDS):
            await server.wait_open_connections(0)


async def test_nobody_at_the_address_is_an_error(tmp_path: Path) -> None:
    """A refused connection is told in words."""
    with refusing_port() as port:
        settings = EmbeddingSettings(provider="http", base_url=f"http://127.0.0.1:{port}/v1", model="nomic")
        with trio.fail_after(HANG_SECONDS), pytest.raises(EmbeddingError, match="refused"):
            await HttpEmbedder(settings, tmp_path).embed(["text"])


async def test_another_size_of_vectors_replaces_the_old_ones(tmp_path: Path) -> None:
    """When the server has got another model, old and new vectors are not mixed."""
    async with open_model_server([vectors(4)], default=vectors(6)) as server:
        await embedder(server, tmp_path).embed(["one"])
        found = await embedder(server, tmp_path).embed(["one", "two"])

    assert {len(vector) for vector in found} == {6}


def test_the_cache_stays_bounded(tmp_path: Path) -> None:
    """Beyond its limit the oldest vectors go."""
    import numpy as np

    cache = VectorCache(tmp_path, "space")
    for number in range(LIMIT_FILES):
        (tmp_path / f"{number:040x}.f32").touch()

    cache.store(["new"], [np.ones(4, np.float32)])

    assert len(list(tmp_path.iterdir())) == LIMIT_FILES * 9 // 10
    assert cache.load(["new"])[0] is not None


def test_http_without_an_address_is_rp_and_said(tmp_path: Path) -> None:
    """What is missing is named, with the section; texts are compared all the same."""
    settings = EmbeddingSettings(provider="http", model="nomic")

    found, notice = choose_embedder(settings, "memory.embedding", tmp_path)

    assert isinstance(found, ProjectionEmbedder)
    assert notice.startswith("memory.embedding.provider is http, but base_url not set")


def test_a_space_has_a_name_that_keeps_the_address_to_itself(tmp_path: Path) -> None:
    """Fingerprints differ by model, size and server, and show no credentials of an address."""

    def named(**more: Any) -> str:
        given = {"base_url": "http://me:pass@host/v1", "model": "nomic", **more}
        return HttpEmbedder(EmbeddingSettings(provider="http", **given), tmp_path).fingerprint

    assert named() == named(base_url="http://me:pass@host/v1/chat/completions") == named(dims=0)
    names = {named(), named(model="other"), named(dims=4), named(base_url="http://host/v2")}
    assert len(names) == 4
    assert "pass" not in "".join(names)
