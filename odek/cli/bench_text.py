"""A report of ``odek bench`` for a person: what was measured on what, then the figures, in 80 columns."""

import textwrap
from collections.abc import Iterator

from odek.bench.metrics import Spread
from odek.bench.report import CorpusFacts, Report
from odek.cli.table import plain_table
from odek.text import visible

__all__ = ["lines"]

WIDTH = 80
_LABEL_COLUMNS = 10

_TIMES = ("p50 cold", "p95", "p99", "p50 warm", " p95", " p99")
_QUALITIES = ("hit@1", "hit@3", "hit@10", "recall@10", "MRR", "MRR@10", "nDCG@10")


def lines(report: Report) -> Iterator[str]:
    """Yield the lines."""
    yield from _envelope(report)
    for name in dict.fromkeys(corpus.name for corpus in report.corpora):
        corpora = [corpus for corpus in report.corpora if corpus.name == name]
        yield ""
        for corpus in corpora:
            yield from _corpus(corpus)
        if corpora[0].note:
            yield from _labelled("", corpora[0].note)
        yield ""
        yield from _times(report, name)
        if any(each.quality is not None for each in report.figures if each.corpus == name):
            yield ""
            yield from _qualities(report, name)
    yield ""
    method = report.method
    text = (
        f"Times are milliseconds, of {method.hits} hits. Cold: opened anew and asked once, "
        f"{method.cold_rounds} times, with the program loaded and the files in the page cache. Warm: open, "
        f"asked {method.least_samples} times or more. Quality is judged among the first {method.depth}, "
        f"MRR among {method.depth_of_mrr}, without a floor of relevance."
    )
    yield from textwrap.wrap(text, WIDTH)


def _envelope(report: Report) -> Iterator[str]:
    machine = report.machine
    cores = f"{machine.usable_cores} of {machine.cores} cores"
    gigabytes = f"{machine.memory_bytes / 1e9:.0f} GB"
    yield from _labelled("date", machine.date)
    yield from _labelled(
        "machine", f"{machine.cpu}, {cores}, {gigabytes}, {machine.system}, load {machine.load:g}"
    )
    packages = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    yield from _labelled("versions", f"odek {machine.odek}, {machine.python}, {packages}")
    told = {each.ranker: each.parameters for each in report.figures}
    for name, parameters in told.items():
        yield from _labelled(name, "; ".join(f"{key} {value}" for key, value in parameters.items()))


def _corpus(corpus: CorpusFacts) -> Iterator[str]:
    mean = corpus.characters // max(corpus.documents, 1)
    yield from _labelled(
        "corpus",
        f"{corpus.source}: {corpus.documents:,} documents of {mean:,} characters, "
        f"sha256 {corpus.sha256[:16]}; {corpus.questions:,} questions, sha256 {corpus.questions_sha256[:16]}",
    )


def _times(report: Report, corpus: str) -> list[str]:
    rows = [
        (f"{each.documents:,}", each.ranker, *_spread(each.cold_ms), *_spread(each.warm_ms))
        for each in report.figures
        if each.corpus == corpus
    ]
    head = ("documents", "ranker", *_TIMES)
    return plain_table(head, rows, WIDTH, numbers={"documents", *_TIMES})


def _qualities(report: Report, corpus: str) -> list[str]:
    rows = []
    for each in report.figures:
        if each.corpus == corpus and (found := each.quality) is not None:
            values = (
                found.hit_at_1,
                found.hit_at_3,
                found.hit_at_10,
                found.recall_at_10,
                found.mrr,
                found.mrr_at_10,
                found.ndcg_at_10,
            )
            rows.append((f"{each.documents:,}", each.ranker, *(f"{value:.3f}" for value in values)))
    return plain_table(("documents", "ranker", *_QUALITIES), rows, WIDTH, numbers={"documents", *_QUALITIES})


def _spread(values: Spread) -> tuple[str, str, str]:
    return _milliseconds(values.p50), _milliseconds(values.p95), _milliseconds(values.p99)


def _milliseconds(value: float) -> str:
    """Return three digits that count; beyond 100 ms whole ones."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _labelled(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        visible(text, keep_newlines=False),
        WIDTH,
        initial_indent=label.ljust(_LABEL_COLUMNS),
        subsequent_indent=" " * _LABEL_COLUMNS,
    )
