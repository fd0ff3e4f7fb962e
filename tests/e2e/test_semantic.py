"""Word vectors as a person asks for them."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.support.cli import Odek
from tests.support.memory_story import contexts, plant, turns
from tests.support.model_server import gated, open_model_server, text_answer
from tests.support.waiting import wait_until

RECORDS = [
    "The puppy was vaccinated.",
    "A chocolate dessert for nine guests was planned.",
    "The night express to Vienna was booked.",
    "Two violins were compared for the concert.",
    "They fixed a bug in the authentication of the web shop.",
    "An eclipse will be visible in August.",
    "The sourdough needs another day.",
    "Blue paint was chosen for the kitchen walls.",
    "The tax form is due in July.",
    "The kayak was repaired with epoxy.",
]


def test_a_run_without_the_package_ends_at_once_and_says_what_to_do(tmp_path: Path) -> None:
    """Nothing is asked of a model while the settings want what is not installed."""
    (tmp_path / "wordllama.py").write_text("")  # in the way of the package, wherever that may be
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}

    done = subprocess.run(
        [sys.executable, "-m", "odek", "run", "hi"],
        cwd=tmp_path,
        env=environ | {"ODEK_EMBEDDING_PROVIDER": "static"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == (
        "odek: embedding.provider is static, but its word vectors are not installed: "
        "pip install 'odek[semantic]'"
    )


@pytest.mark.skipif(
    importlib.util.find_spec("wordllama") is None,
    reason="the word vectors of odek[semantic] are not installed",
)
async def test_a_session_is_recalled_in_other_words(tmp_path: Path) -> None:
    """While a first run waits for its answer the vectors are made; the next recalls what it means."""
    gate = trio.Event()
    async with open_model_server(
        [gated(gate, text_answer("Hello."))], default=text_answer("Done.")
    ) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        odek.environment["ODEK_EMBEDDING_PROVIDER"] = "static"
        vectors = odek.home / "memory" / "index" / "vectors"
        for number, record in enumerate(RECORDS):
            plant(odek, f"20260304-{number}", record)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(odek.run, "run", "good morning")
            await wait_until(lambda: vectors.exists() and vectors.stat().st_size > len(RECORDS) * 1_024)
            gate.set()
        await odek.run("run", "is our dog immunised?")
        (context,) = contexts(turns(server.requests)[1])

    assert RECORDS[0] in context
    assert "dessert" not in context
