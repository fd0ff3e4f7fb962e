"""``odek bench``: how fast and how well recall works, on this machine and with texts of your own."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odek.bench.corpus import Corpus
    from odek.bench.rankers import Ranker
    from odek.bench.report import Report
    from odek.config.layers import Resolved
    from odek.embedding.embedder import Embedder

__all__ = ["add_arguments", "run"]

DEFAULT_SIZES = (500, 5_000)
MOST_DOCUMENTS = 2_000_000

EPILOG = """\
examples:
  odek bench recall                                    made-up texts: how fast
  odek bench recall --docs d.jsonl --queries q.jsonl   yours, and how well
  odek bench recall --mine --ranker auto rp            your memory

A line of --docs is {"id": "…", "text": "…"}, a line of --queries
{"text": "…", "relevant": ["id", …]}.

rankers:
  auto     words, and vectors where `embedding` is configured: an endpoint is
           sent the texts, and so is asked only if you name `auto`
  words    the index of words alone
  static   words and the word vectors of odek[semantic]
  rp       the cosine of hashed words
  Without --ranker it is what is there of auto, static and rp.

exit status:
  0 measured   3 what was named cannot be measured   130 Ctrl-C"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what is measured."""
    actions = parser.add_subparsers(
        title="actions", dest="bench_action", metavar="ACTION", required=True, prog=parser.prog
    )
    summary = "how long recall takes, and with questions how well it finds"
    child = actions.add_parser("recall", help=summary, description=f"odek bench recall: {summary}.")
    child.add_argument("--docs", metavar="FILE", type=Path, help="documents, as lines of JSON")
    child.add_argument("--queries", metavar="FILE", type=Path, help="questions to --docs with their answers")
    child.add_argument(
        "--mine", action="store_true", help="your episodes, asked for by their sessions' first messages"
    )
    child.add_argument(
        "--ranker", metavar="NAME", nargs="+", action="extend", help="what is compared, by name; repeatable"
    )
    child.add_argument(
        "--sizes", metavar="N,N", help="numbers of documents (500,5000; of your own texts all of them)"
    )
    child.add_argument("--json", action="store_true", help="print one JSON object")
    child.epilog = EPILOG


def run(arguments: argparse.Namespace) -> int:
    """Measure and print."""
    report = _measured(arguments)
    if arguments.json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
        return 0
    from odek.cli.bench_text import lines

    for line in lines(report):
        print(line)
    return 0


def _measured(arguments: argparse.Namespace) -> "Report":
    """Return the figures of everything that was asked for; what is made on disk for it is removed."""
    import signal
    from functools import partial
    from tempfile import TemporaryDirectory

    import trio

    from odek.bench.report import measure_all
    from odek.cli.error_groups import unwrapped_errors

    for number in (signal.SIGTERM, signal.SIGHUP):  # so that they, too, leave nothing behind
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    corpora = list(_corpora(arguments))
    with TemporaryDirectory(prefix="odek-bench-", ignore_cleanup_errors=True) as scratch, unwrapped_errors():
        rankers = _rankers(arguments.ranker, Path(scratch))
        return trio.run(partial(measure_all, corpora, rankers, Path(scratch), tell=_tell))


def _corpora(arguments: argparse.Namespace) -> "Iterator[Corpus]":
    from odek.bench.corpus import BenchInputError, read_corpus, seeded_corpus, subset

    sizes = _sizes(arguments.sizes)
    if arguments.mine and arguments.docs:
        raise BenchInputError("--mine and --docs name two things to search; choose one")
    if arguments.queries and not arguments.docs:
        raise BenchInputError("--queries: name the documents that they are about, too: --docs FILE")
    if not (arguments.mine or arguments.docs):
        yield from map(seeded_corpus, sizes or DEFAULT_SIZES)
        return
    if arguments.mine:
        from odek.bench.own_store import own_corpora
        from odek.home import home_directory

        whole = own_corpora(home_directory(os.environ))
    else:
        whole = [read_corpus(arguments.docs, arguments.queries)]
    for corpus in whole:
        yield from (subset(corpus, size) for size in sizes or (len(corpus.documents),))


def _sizes(text: str | None) -> tuple[int, ...]:
    from odek.bench.corpus import BenchInputError

    try:
        sizes = tuple(dict.fromkeys(int(part) for part in text.split(","))) if text is not None else ()
    except ValueError:
        raise BenchInputError(
            f"--sizes {text!a}: numbers with commas between them, such as 500,5000"
        ) from None
    for size in sizes:
        if not 0 < size <= MOST_DOCUMENTS:
            raise BenchInputError(f"--sizes {size}: from 1 to {MOST_DOCUMENTS:,} documents")
    return sizes


def _rankers(names: list[str] | None, scratch: Path) -> "list[Ranker]":
    from odek.bench.rankers import default_names, make_ranker
    from odek.config.files import load
    from odek.home import home_directory

    home = home_directory(os.environ)
    wanted = list(dict.fromkeys(names)) if names else default_names()
    resolved = load(home, Path(), os.environ, {}) if "auto" in wanted else None

    def configured() -> "Embedder":
        assert resolved is not None  # noqa: S101 - asked for by `auto` alone
        return _configured(resolved, scratch)

    if not names:
        meant = configured().fingerprint.partition("/")[0]
        if meant == "http":
            _tell("auto asks an endpoint here: words are measured instead, unless you say --ranker auto")
            wanted[0] = "words"
        elif meant == "static":
            wanted.remove("static")  # twice the same
    return [make_ranker(name, configured) for name in wanted]


def _configured(resolved: "Resolved", scratch: Path) -> "Embedder":
    """Return what the configuration makes vectors with; what it keeps goes into ``scratch``."""
    from odek.events import Event, Notice
    from odek.home import working_directory
    from odek.memory_wiring import embedder_of
    from odek.setup import Setup
    from odek.trust.approval import ApprovalState

    def emit(event: Event) -> None:
        if isinstance(event, Notice):
            _tell(event.text)

    return embedder_of(
        Setup(
            resolved=resolved,
            home=scratch / "home",
            workspace=working_directory(),
            emit=emit,
            approval=ApprovalState(),
        )
    )


def _tell(text: str) -> None:
    print(f"odek: {text}", file=sys.stderr, flush=True)
