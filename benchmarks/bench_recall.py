"""How well and how fast are texts found by their words?

By the number of documents; each has 75 words, as the summary of a conversation, or as many as
``--words`` says. Each size and engine is built by a process of its own; then the engines are asked
in turns, each turn by processes that have just begun, so that other work on the machine hits them alike.

- ``build_s`` and ``files_mb``: made from nothing;
- ``open_ms``: opened, and the first question answered, imports done (median of the turns);
- ``query_ms``: the first three for a question of ten words (p50, p95, p99);
- ``add_ms``: one more document written, and found here; ``seen_ms``: found by a reader that was open;
- ``private_mb``: memory of a reader besides the files, which all readers share;
- ``times_ours``: the median of a question against that of ``odek``.

With ``--sets DIRECTORY``, of each ``NAME.docs.jsonl`` (``id``, ``text``) how well the questions
in ``NAME.queries.jsonl`` (``text``, ``relevant``) are answered. ``chat_sessions`` are what was
said in ``chat_episodes``.

The engines: ``odek``, this index; ``semantic``, the same with the word vectors of
``odek[semantic]``; ``fts5``, SQLite's, as ``porter unicode61`` ranked by
``bm25()``; ``tantivy`` with its own English tokenizer; ``bm25s``; ``rp``, the cosine of hashed words.

    python benchmarks/bench_recall.py [--sizes 500,5000,50000,500000] [--engines odek,fts5]
                                      [--words 75] [--sets DIRECTORY] [--out FILE]

prints one JSON object; with ``--out`` it is also written there after each size.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.bench_vectors import lines, milliseconds, private_mb, set_names  # noqa: E402 - beside this
from benchmarks.recall_engines import ENGINES, Documents, missing, parameters  # noqa: E402
from odek.bench.corpus import SEED, WORDS, seeded_documents, seeded_questions  # noqa: E402
from odek.bench.machine import this_machine  # noqa: E402
from odek.bench.metrics import DEPTH, TO_THE_END, quality, ranking, spread  # noqa: E402
from odek.index.document import Document  # noqa: E402

SIZES = (500, 5_000, 50_000, 500_000)
TURNS = 3
FOUND = 3
ADDITIONS = 5
QUESTIONS_FILE = "questions.json"
ASKED_TEXTS = 5_000  # questions are about the first so many documents


def main() -> None:
    """Measure and print; with ``--child`` be a process of the measurement."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="documents (%(default)s)")
    parser.add_argument("--words", type=int, default=WORDS, help="of a document (%(default)s)")
    parser.add_argument("--engines", default=",".join(ENGINES), help="what is compared (%(default)s)")
    parser.add_argument("--sets", type=Path, help="questions and documents with known answers")
    parser.add_argument("--out", type=Path, help="a file for what there is so far")
    parser.add_argument("--child", nargs=6, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        work, engine, directory, size, words, turn = arguments.child
        figures = WORK[work](
            engine, Path(directory), partial(seeded_documents, int(size), int(words)), int(turn)
        )
        print(json.dumps(figures))
        return
    report: dict[str, Any] = {}
    for report in measured(arguments):
        if arguments.out:
            arguments.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


def measured(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the report as it grows."""
    wanted = arguments.engines.split(",")
    absent = {name: why for name in wanted if (why := missing(name))}
    for why in absent.values():
        tell(f"{why}; it is not measured")
    names = [name for name in wanted if name not in absent]
    report: dict[str, Any] = {
        "machine": msgspec.to_builtins(this_machine()),
        "corpus": f"made up, seed {SEED}, of {arguments.words} words each",
        "engines": {name: absent.get(name) or parameters(name) for name in wanted},
    }
    if arguments.sets:
        report["sets"] = {name: qualities(arguments.sets, name) for name in names}
    report["documents"] = {}
    yield report
    for size in filter(None, arguments.sizes.split(",")):
        report["documents"][size] = of_size(size, arguments.words, names)
        yield report


def of_size(size: str, words: int, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what each engine costs with so many documents."""
    figures: dict[str, dict[str, Any]] = {}
    asked: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as scratch:
        documents = list(seeded_documents(min(int(size), ASKED_TEXTS), words))
        asked_texts = [each.text for each in seeded_questions(documents)]
        (Path(scratch) / QUESTIONS_FILE).write_text(json.dumps(asked_texts))
        part = partial(child, Path(scratch), size, words)
        for name in names:
            (Path(scratch) / name).mkdir()
            figures[name] = part("build", name)
        for turn in range(TURNS):
            for name in names:
                asked[name].append(part("ask", name, turn))
        for name in names:
            figures[name] |= together(asked[name]) | part("add", name)
    ours = figures.get("odek", {}).get("query_ms", {}).get("p50")
    for each in figures.values():
        each["times_ours"] = round(each["query_ms"]["p50"] / ours, 2) if ours else None
    return figures


def together(turns: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return one figure for what was measured in turns."""
    found = spread([seconds for turn in turns for seconds in turn["query_s"]])
    return {
        "open_ms": round(statistics.median(turn["open_ms"] for turn in turns), 2),
        "query_ms": {"p50": found.p50, "p95": found.p95, "p99": found.p99},
        "private_mb": round(statistics.median(turn["private_mb"] for turn in turns), 1),
    }


def child(scratch: Path, size: str, words: int, work: str, engine: str, turn: int = 0) -> dict[str, Any]:
    """Do a part of the work in a process of its own."""
    tell(f"{size} documents, {engine}: {work}")
    given = [work, engine, str(scratch / engine), size, str(words), str(turn)]
    done = subprocess.run([sys.executable, __file__, "--child", *given], check=True, stdout=subprocess.PIPE)
    return dict(json.loads(done.stdout))


def build(engine: str, directory: Path, documents: Documents, turn: int) -> dict[str, float]:  # noqa: ARG001 - as the others
    """Make the documents and let an engine keep them."""
    made = ENGINES[engine](directory)
    started = time.perf_counter()
    made.build(documents)
    seconds = time.perf_counter() - started
    used = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    return {"build_s": round(seconds, 2), "files_mb": round(used / 1e6, 1)}


def ask(engine: str, directory: Path, documents: Documents, turn: int) -> dict[str, Any]:  # noqa: ARG001 - as the others
    """Return what it costs to ask an engine the questions of a turn."""
    asked = questions(directory)[turn::TURNS]
    warm_up(engine)
    before_mb = private_mb()
    started = time.perf_counter()
    reader = ENGINES[engine](directory)
    reader.search(asked[0], FOUND)
    opened = (time.perf_counter() - started) * 1e3
    taken: list[float] = []
    for question in asked:
        started = time.perf_counter()
        reader.search(question, FOUND)
        taken.append(time.perf_counter() - started)
    return {"open_ms": opened, "query_s": taken, "private_mb": private_mb() - before_mb}


def add(engine: str, directory: Path, documents: Documents, turn: int) -> dict[str, Any]:  # noqa: ARG001 - as the others
    """Return what it costs to add a document, and to find it where another reader is open."""
    asked = questions(directory)
    warm_up(engine)
    reader, writer = ENGINES[engine](directory), ENGINES[engine](directory)
    reader.search(asked[0], FOUND)
    writer.search(asked[0], FOUND)
    added, seen = [], []
    for number in range(ADDITIONS):
        document = Document(f"new{number}", "episode", f"zebra{number} {asked[number]}")
        try:
            added.append(milliseconds(partial(writer.add, document)))
        except NotImplementedError:
            return {"add_ms": None, "seen_ms": None}
        seen.append(milliseconds(partial(found_anew, reader, f"zebra{number}", document.id)))
    return {"add_ms": statistics.median(added), "seen_ms": statistics.median(seen)}


def found_anew(reader: Any, question: str, name: str) -> None:
    """Find what was just added."""
    reader.refresh()
    if name not in reader.search(question, FOUND):
        raise SystemExit(f"{name} was not found")


WORK = {"build": build, "ask": ask, "add": add}


def warm_up(engine: str) -> None:
    """Import what an engine imports late."""
    with tempfile.TemporaryDirectory() as other:
        made = ENGINES[engine](Path(other))
        made.build(lambda: [Document(f"warm{number}", "episode", "warm") for number in range(FOUND)])
        made.search("warm", 1)
        with suppress(NotImplementedError):
            made.add(Document("another", "episode", "warm"))


def questions(directory: Path) -> list[str]:
    """Return the questions; they were made elsewhere, so that no memory of that is left to fill."""
    return list(json.loads((directory.parent / QUESTIONS_FILE).read_text()))


def qualities(directory: Path, engine: str) -> dict[str, dict[str, float]]:
    """Return how well an engine finds the documents of each set."""
    texts = {
        name: {line["id"]: line["text"] for line in lines(directory / f"{name}.docs.jsonl")}
        for name in set_names(directory)
    }
    said = texts.pop("chat_sessions", {})
    report = {}
    for name, documents in texts.items():
        tell(f"{name}, {engine}")
        asked = lines(directory / f"{name}.queries.jsonl")
        kept = [Document(key, "episode", text) for key, text in documents.items()]
        report[name] = of_set(engine, kept, asked)
        if documents.keys() <= said.keys():
            together = [Document(key, "episode", text, said[key]) for key, text in documents.items()]
            report[f"{name} and sessions"] = of_set(engine, together, asked)
    return report


def of_set(engine: str, documents: list[Document], asked: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return how well an engine answers the questions ``asked``."""
    with tempfile.TemporaryDirectory() as directory:
        made = ENGINES[engine](Path(directory))
        made.build(lambda: documents)
        rankings = [
            ranking(made.search(line["text"], DEPTH), made.search(line["text"], TO_THE_END)) for line in asked
        ]
    found = quality(rankings, [line["relevant"] for line in asked])
    return dict(msgspec.to_builtins(found))


def tell(text: str) -> None:
    """Say on stderr what is being done."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
