"""Measuring rankers on a corpus: how long they take, and how well they find."""

import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter

import msgspec

from odek.bench.corpus import Corpus
from odek.bench.metrics import DEPTH, TO_THE_END, Quality, Spread, quality, ranking, spread
from odek.bench.rankers import Ranker, Searcher
from odek.memory.recall import OVER_FETCH

__all__ = ["COLD_ROUNDS", "LEAST_SAMPLES", "Figures", "measure"]

COLD_ROUNDS = 20
"""Openings: each some milliseconds, and fewer have no 95th percentile."""

LEAST_SAMPLES = 200
"""Questions that are timed; a few are asked again and again."""

_WARM_UP = 20
"""Questions until what is read or made once is there. No measurement behind it."""


class Figures(msgspec.Struct, frozen=True):
    """What one ranker did on so many documents.

    ``cold_ms``: opened anew and asked once, with everything imported and the files in the page cache.
    ``warm_ms``: a question while it is open. ``quality`` is None where nobody knows what is right.
    """

    corpus: str
    documents: int
    ranker: str
    parameters: dict[str, str]
    build_seconds: float
    files_bytes: int
    cold_ms: Spread
    warm_ms: Spread
    quality: Quality | None = None


async def measure(corpus: Corpus, ranker: Ranker, directory: Path, tell: Callable[[str], None]) -> Figures:
    """Build, ask, and remove what was built.

    Args:
        corpus: What is searched and asked.
        ranker: By which.
        directory: Which this makes and removes.
        tell: Takes a line about what is being done.

    Raises:
        EmbeddingError: there are no vectors.
        StoreError: the disk does not let it.
    """
    size = len(corpus.documents)
    tell(f"{corpus.name}, {size:,} documents, {ranker.name}")
    with _made(directory):
        started = perf_counter()
        await ranker.build(corpus.documents, directory)
        taken = perf_counter() - started
        questions = [question.text for question in corpus.questions]
        cold = [
            await _cold(ranker, corpus, directory, text) for text in islice(cycle(questions), COLD_ROUNDS)
        ]
        async with ranker.open(corpus.documents, directory) as searcher:
            await _asked(searcher, questions[:_WARM_UP])
            rounds = -(-LEAST_SAMPLES // len(questions))
            warm = await _asked(searcher, questions * rounds)
            found = await _quality(searcher, corpus) if corpus.is_judged else None
        return Figures(
            corpus=corpus.name,
            documents=size,
            ranker=ranker.name,
            parameters=ranker.parameters,
            build_seconds=round(taken, 3),
            files_bytes=_files_bytes(directory),
            cold_ms=spread(cold),
            warm_ms=spread(warm),
            quality=found,
        )


@contextmanager
def _made(directory: Path) -> Generator[None]:
    directory.mkdir(mode=0o700)
    try:
        yield
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _files_bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


async def _cold(ranker: Ranker, corpus: Corpus, directory: Path, question: str) -> float:
    started = perf_counter()
    async with ranker.open(corpus.documents, directory) as searcher:
        await searcher.search(question, OVER_FETCH)
        return perf_counter() - started


async def _asked(searcher: Searcher, questions: Sequence[str]) -> list[float]:
    taken: list[float] = []
    for question in questions:
        started = perf_counter()
        await searcher.search(question, OVER_FETCH)
        taken.append(perf_counter() - started)
    return taken


async def _quality(searcher: Searcher, corpus: Corpus) -> Quality:
    rankings = [
        ranking(await searcher.search(question.text, DEPTH), await searcher.search(question.text, TO_THE_END))
        for question in corpus.questions
    ]
    return quality(rankings, [question.relevant for question in corpus.questions])
