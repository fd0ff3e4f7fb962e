"""All figures of a run with everything that they depend on, as one value."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from odek.bench.corpus import BenchInputError, Corpus, digest_of
from odek.bench.machine import Machine, this_machine
from odek.bench.measure import COLD_ROUNDS, LEAST_SAMPLES, Figures, measure
from odek.bench.metrics import DEPTH, TO_THE_END
from odek.bench.rankers import Ranker
from odek.errors import EmbeddingError
from odek.memory.recall import OVER_FETCH

__all__ = ["CorpusFacts", "Method", "Report", "measure_all"]


class Method(msgspec.Struct, frozen=True):
    """How it was measured.

    ``hits`` were asked for where time was taken, ``depth`` where quality was, and for
    ``mrr`` further ones; no floor of relevance was set. Questions were asked one after the other,
    in one process.
    """

    hits: int = OVER_FETCH
    depth: int = DEPTH
    depth_of_mrr: int = TO_THE_END
    cold_rounds: int = COLD_ROUNDS
    least_samples: int = LEAST_SAMPLES


class CorpusFacts(msgspec.Struct, frozen=True):
    """What was searched and asked; the hashes are of the texts with their ids, and of the questions."""

    name: str
    source: str
    documents: int
    characters: int
    sha256: str
    questions: int
    questions_sha256: str
    judged: bool
    note: str = ""


class Report(msgspec.Struct, frozen=True):
    """The figures in the order in which they were taken, and what they are of."""

    machine: Machine
    method: Method
    corpora: list[CorpusFacts]
    figures: list[Figures]


async def measure_all(
    corpora: Sequence[Corpus], rankers: Sequence[Ranker], scratch: Path, *, tell: Callable[[str], None]
) -> Report:
    """Measure every ranker on every corpus, in directories below ``scratch``.

    Args:
        corpora: What is searched and asked.
        rankers: By which.
        scratch: Where to build; what is built is removed.
        tell: Takes a line about what is being done.

    Raises:
        BenchInputError: there are no vectors for a ranker that needs some.
        StoreError: the disk does not let it.
    """
    machine = this_machine()
    figures: list[Figures] = []
    for corpus in corpora:
        for ranker in rankers:
            try:
                figures.append(await measure(corpus, ranker, scratch / f"{len(figures)}", tell))
            except EmbeddingError as error:
                raise BenchInputError(f"{ranker.name} cannot be measured: {error}") from error
    return Report(machine, Method(), [_facts(corpus) for corpus in corpora], figures)


def _facts(corpus: Corpus) -> CorpusFacts:
    return CorpusFacts(
        name=corpus.name,
        source=corpus.source,
        documents=len(corpus.documents),
        characters=sum(len(each.text) + len(each.transcript) for each in corpus.documents),
        sha256=digest_of(corpus.documents),
        questions=len(corpus.questions),
        questions_sha256=digest_of(corpus.questions),
        judged=corpus.is_judged,
        note=corpus.note,
    )
