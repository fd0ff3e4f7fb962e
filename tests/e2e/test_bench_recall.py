"""``odek bench recall`` as a person runs it: figures with what they are of, and nothing left behind."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Finished, Odek
from tests.support.memory_story import plant

TEXTS = {
    "boiler": "The boiler in the cellar was repaired; its valve leaked.",
    "dog": "The puppy was vaccinated by the vet in March.",
    "train": "Tickets for the night train to Vienna were booked.",
    "garden": "Tomatoes and beans were planted behind the shed.",
}
QUESTIONS = {"who repaired the leaking valve?": ["boiler"], "which night train was booked?": ["train"]}


def write_lines(path: Path, rows: list[dict[str, Any]]) -> str:
    """Write a file of JSON lines and return its name."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def files(odek: Odek) -> tuple[str, str]:
    """Write documents and questions, and return the names of the files."""
    docs = [{"id": name, "text": text} for name, text in TEXTS.items()]
    queries = [{"text": text, "relevant": right} for text, right in QUESTIONS.items()]
    return (
        write_lines(odek.workspace / "d.jsonl", docs),
        write_lines(odek.workspace / "q.jsonl", queries),
    )


async def bench(odek: Odek, *arguments: str) -> Finished:
    """Run the command with a scratch directory of its own, and see that nothing stays in it."""
    scratch = odek.home.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    done = await odek.run("bench", "recall", *arguments, environment={"TMPDIR": str(scratch)})
    assert list(scratch.iterdir()) == []
    return done


def write_session(odek: Odek, name: str, question: str, answer: str) -> None:
    """Put a session of one turn on disk."""
    directory = odek.home / "sessions"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    time = "2026-03-04T05:06:07Z"
    session = {"id": name, "created_at": time, "updated_at": time, "messages": messages}
    (directory / f"{name}.json").write_text(json.dumps(session))


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return each file below ``folder`` with its content and the time of its last change."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in found}


async def test_questions_of_files_are_scored_and_said_with_all_they_depend_on(tmp_path: Path) -> None:
    """One JSON object: machine, corpora with their hashes, and for each ranker times and quality."""
    odek = Odek(tmp_path)
    docs, queries = files(odek)
    done = await bench(odek, "--docs", docs, "--queries", queries, "--ranker", "auto", "rp", "--json")
    told: dict[str, Any] = json.loads(done.stdout)

    assert done.status == 0
    assert {"cpu", "cores", "load", "python", "date", "packages", "odek"} <= told["machine"].keys()
    (corpus,) = told["corpora"]
    assert (corpus["documents"], corpus["questions"], corpus["judged"]) == (4, 2, True)
    assert len(corpus["sha256"]) == 64
    assert [each["ranker"] for each in told["figures"]] == ["auto", "rp"]
    for each in told["figures"]:
        assert each["quality"]["hit_at_1"] == 1
        assert each["warm_ms"]["count"] >= 200
        assert 0 < each["warm_ms"]["p50"] <= each["warm_ms"]["p95"] <= each["warm_ms"]["p99"]
        assert each["cold_ms"]["p50"] > 0
    words, hashed = (each["parameters"] for each in told["figures"])
    assert words["finds by"] == "words"
    assert "tantivy" in words["index"]
    assert hashed["vectors"].startswith("rp/")
    assert "4 documents, auto" in done.stderr


async def test_the_table_is_plain_and_fits_eighty_columns(tmp_path: Path) -> None:
    """Made-up texts are timed by size, and nobody is told how well nonsense is found."""
    done = await bench(Odek(tmp_path), "--sizes", "20,50", "--ranker", "words")

    assert done.status == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout
    rows = [line.split("│")[:2] for line in done.stdout.splitlines() if "│ words" in line]
    assert [(size.strip(), name.strip()) for size, name in rows] == [("20", "words"), ("50", "words")]
    assert "hit@1" not in done.stdout
    assert "seed 1: 50 documents" in done.stdout


async def test_own_episodes_are_asked_for_by_their_sessions_and_stay_as_they_are(tmp_path: Path) -> None:
    """Summaries alone and with sessions; the asked message is in neither, nor is what may not be recalled."""
    odek = Odek(tmp_path)
    for name, text in TEXTS.items():
        plant(odek, f"20260304-{name}", text, untrusted=name == "garden")
    write_session(odek, "20260304-boiler", "please look after the heating", "The heating's valve leaked.")
    write_session(odek, "20260304-train", "night train to Vienna", "Booked.")
    write_session(odek, "20260304-garden", "what grows behind the shed?", "Beans.")
    before = state(odek.home)
    done = await bench(odek, "--mine", "--ranker", "words", "--json")
    told: dict[str, Any] = json.loads(done.stdout)

    assert done.status == 0
    assert state(odek.home) == before
    assert [(each["documents"], each["questions"]) for each in told["corpora"]] == [(3, 2), (3, 2)]
    assert "1 episodes may not be recalled" in told["corpora"][0]["note"]
    summaries, sessions = (each["quality"]["hit_at_1"] for each in told["figures"])
    assert (summaries, sessions) == (0.5, 1)
    assert told["corpora"][0]["sha256"] != told["corpora"][1]["sha256"]


async def test_an_endpoint_is_asked_only_when_it_is_named(tmp_path: Path) -> None:
    """Without a name words are measured in its place; named, an endpoint that is down ends it in a line."""
    odek = Odek(tmp_path)
    docs, _ = files(odek)
    odek.home.mkdir(mode=0o700)
    nobody = {"provider": "http", "base_url": "http://127.0.0.1:9/v1", "model": "m"}
    (odek.home / "config.json").write_text(json.dumps({"embedding": nobody}))
    unnamed = await bench(odek, "--docs", docs, "--json")
    named = await bench(odek, "--docs", docs, "--ranker", "auto")

    told: dict[str, Any] = json.loads(unnamed.stdout)
    assert unnamed.status == 0
    assert told["figures"][0]["ranker"] == "words"
    assert "say --ranker auto" in unnamed.stderr
    assert (named.status, named.stdout) == (3, "")
    assert "auto cannot be measured" in named.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--docs", "none.jsonl"], "cannot read none.jsonl: it does not exist"),
        (["--docs", "broken.jsonl"], "broken.jsonl:2: "),
        (["--docs", "twice.jsonl"], "twice.jsonl:2: the id 'a' is there twice"),
        (
            ["--docs", "d.jsonl", "--queries", "foreign.jsonl"],
            "no question of foreign.jsonl names a document",
        ),
        (["--docs", "d.jsonl", "--queries", "unanswered.jsonl"], "unanswered.jsonl:1: `relevant` is empty"),
        (["--docs", "d.jsonl", "--queries", "broken.jsonl"], "broken.jsonl:1: "),
        (["--docs", "d.jsonl", "--sizes", "9"], "--sizes 9: d.jsonl has 4 documents"),
        (["--queries", "q.jsonl"], "--docs FILE"),
        (["--docs", "d.jsonl", "--mine"], "choose one"),
        (["--sizes", "many"], "--sizes 'many': numbers"),
        (["--sizes", "0"], "--sizes 0: from 1"),
        (["--ranker", "best"], "choose of auto, words, static, rp"),
        (["--mine"], "0 episodes that may be recalled"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_measured_is_said_in_a_line(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exit status 3, one line that names the thing, nothing on stdout."""
    from odek.cli.main import main

    odek = Odek(tmp_path)
    files(odek)
    write_lines(odek.workspace / "twice.jsonl", [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}])
    write_lines(odek.workspace / "foreign.jsonl", [{"text": "x", "relevant": ["elsewhere"]}])
    write_lines(odek.workspace / "unanswered.jsonl", [{"text": "x", "relevant": []}])
    (odek.workspace / "broken.jsonl").write_text('{"id": "a", "text": "x"}\n{"id": 3}\n')
    monkeypatch.chdir(odek.workspace)
    monkeypatch.setenv("ODEK_HOME", str(odek.home))
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        status = main(["bench", "recall", *arguments])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    out, err = capsys.readouterr()

    assert (status, out) == (3, "")
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
async def test_an_end_in_the_midst_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    """Ctrl-C ends a measurement while an index is built: status 130, no traceback, no scratch directory."""
    odek, scratch = Odek(tmp_path), tmp_path / "scratch"
    scratch.mkdir()
    command = ("bench", "recall", "--sizes", "20000", "--ranker", "words")
    async with odek.start(*command, environment={"TMPDIR": str(scratch)}) as running:
        await running.wait_for("20,000 documents, words")
        running.signal(number)
        done = await running.wait()

    assert (done.status, done.stdout) == (130, "")
    assert "Traceback" not in done.stderr
    assert list(scratch.iterdir()) == []
