"""Which server is asked for vectors, by whom, and with which key."""

from pathlib import Path

from tests.support.cli import Odek
from tests.support.delegations import delegate, is_child
from tests.support.http_request import RecordedRequest
from tests.support.model_server import (
    Answer,
    ModelServer,
    by_request,
    json_answer,
    open_model_server,
    text_answer,
    tool_call_answer,
)

FACT = "the staging database is called heron"


def vectors(request: RecordedRequest) -> Answer:
    """Answer with a vector for each text."""
    texts = request.json["input"]
    return json_answer({"data": [{"index": at, "embedding": [1.0, at]} for at in range(len(texts))]})


def act(request: RecordedRequest, *parent: Answer) -> Answer:
    """Answer a subagent so that it stores a fact, and who delegates in order."""
    done: int = sum(message["role"] == "tool" for message in request.json["messages"])
    if is_child(request):
        stored = {"action": "add", "target": "env", "content": FACT}
        return text_answer("stored") if done else tool_call_answer([("memory", stored)])
    return parent[done]


def embedded(server: ModelServer) -> list[tuple[str, str]]:
    """Return each text that was sent for its vector, and the key that came with it."""
    asked = [request for request in server.requests if request.path.endswith("/embeddings")]
    return [(text, request.headers["authorization"]) for request in asked for text in request.json["input"]]


def settings(section: str, server: ModelServer, key: str) -> dict[str, str]:
    """Return the variables that have a section ask a server."""
    start = f"ODEK_{section}_EMBEDDING_"
    given = {"PROVIDER": "http", "BASE_URL": server.base_url, "MODEL": "m", "API_KEY": key}
    return {start + name: value for name, value in given.items()}


async def test_a_subagent_compares_by_the_vectors_of_the_memory(tmp_path: Path) -> None:
    """It asks the server of memory.embedding with its key, which travels apart from the settings."""
    default = by_request(lambda request: act(request, delegate({"goal": "store it"}), text_answer("done")))
    async with (
        open_model_server(default=default) as model,
        open_model_server(default=by_request(vectors)) as own,
    ):
        odek = Odek(tmp_path, base_url=model.base_url)
        odek.environment |= settings("MEMORY", own, "key-of-vectors")
        first = await odek.run("memory", "facts", "add", "env", "the production database is called crane")
        done = await odek.run("run", "delegate it")

    assert (first.status, done.status) == (0, 0), done.stderr
    assert (FACT, "Bearer key-of-vectors") in embedded(own)


async def test_atoms_have_the_vectors_of_their_own_section(tmp_path: Path) -> None:
    """memory.extended.embedding is asked what a message means for atoms; memory.embedding is not."""
    default = by_request(lambda request: act(request, text_answer("done")))
    async with (
        open_model_server(default=default) as model,
        open_model_server(default=by_request(vectors)) as shared,
        open_model_server(default=by_request(vectors)) as own,
    ):
        odek = Odek(tmp_path, base_url=model.base_url)
        odek.environment |= settings("MEMORY", shared, "shared-key")
        odek.environment |= settings("MEMORY_EXTENDED", own, "own-key")
        odek.environment["ODEK_MEMORY_EXTENDED_ENABLED"] = "true"
        done = await odek.run("run", "what is known of herons?")

    assert done.status == 0, done.stderr
    assert embedded(own) == [("what is known of herons?", "Bearer own-key")]
    assert embedded(shared) == []
