"""What is searched, and what is asked: from files, or made up from a seed."""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from odek.errors import ConfigError
from odek.index.document import Document
from odek.storage.files import describe

__all__ = [
    "QUESTIONS",
    "SEED",
    "BenchInputError",
    "Corpus",
    "Question",
    "digest_of",
    "read_corpus",
    "seeded_corpus",
    "seeded_documents",
    "seeded_questions",
    "subset",
]

SEED = 1
QUESTIONS = 400
"""Enough for a 99th percentile to be more than the slowest few."""

WORDS = 75
"""Of a made-up text: a summary of a session."""

_VOCABULARY_WORDS = 40_000
_BATCH_TEXTS = 1_000
_ASKED_TEXTS = 5_000
_TELLING_WORDS, _COMMON_WORDS = 7, 3

_T = TypeVar("_T")


class BenchInputError(ConfigError):
    """What is to be measured cannot be: a file, a number or a name on the command line is wrong."""


class Question(msgspec.Struct, frozen=True):
    """A question, and the ids of the documents that answer it; none where nobody has judged."""

    text: str
    relevant: tuple[str, ...] = ()


class Corpus(msgspec.Struct, frozen=True):
    """Texts and questions. ``source`` says where they are from, ``note`` what to know of the figures."""

    name: str
    source: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]
    note: str = ""

    @property
    def is_judged(self) -> bool:
        """Whether it is known what answers the questions."""
        return any(question.relevant for question in self.questions)


class _DocumentLine(msgspec.Struct):
    id: str
    text: str


class _QuestionLine(msgspec.Struct):
    text: str
    relevant: tuple[str, ...]


def digest_of(values: Sequence[Any]) -> str:
    """Return a hash of documents or questions, their order included: 64 hexadecimal digits."""
    sums = hashlib.sha256()
    encoder = msgspec.json.Encoder()
    for value in values:
        sums.update(encoder.encode(value) + b"\n")
    return sums.hexdigest()


def subset(corpus: Corpus, size: int) -> Corpus:
    """Return the first ``size`` documents, and of judged questions those that they answer.

    Raises:
        BenchInputError: there are fewer, or they answer nothing.
    """
    if size > len(corpus.documents):
        raise BenchInputError(
            f"--sizes {size}: {corpus.source} has {len(corpus.documents):,} documents; ask for no more"
        )
    documents = corpus.documents[:size]
    if not corpus.is_judged:
        return msgspec.structs.replace(corpus, documents=documents)
    names = {document.id for document in documents}
    questions = tuple(question for question in corpus.questions if names.intersection(question.relevant))
    if not questions:
        raise BenchInputError(
            f"none of the questions is about the first {size:,} documents of {corpus.source}"
        )
    return msgspec.structs.replace(corpus, documents=documents, questions=questions)


def read_corpus(documents_path: Path, questions_path: Path | None) -> Corpus:
    """Return the corpus of files of JSON lines; without questions they are made of the documents' words.

    Raises:
        BenchInputError: a file cannot be read, or a line is not what it should be; says which.
    """
    documents: dict[str, Document] = {}
    for number, line in _lines(documents_path, _DocumentLine):
        if line.id in documents:
            raise BenchInputError(f"{documents_path}:{number}: the id {line.id[:80]!a} is there twice")
        documents[line.id] = Document(line.id, "episode", line.text)
    if not documents:
        raise BenchInputError(f'{documents_path} has no documents; a line is {{"id": "…", "text": "…"}}')
    found = tuple(documents.values())
    if questions_path is None:
        note = "Questions were made of the documents' words, so that they tell how fast alone."
        return Corpus("documents", str(documents_path), found, seeded_questions(found), note)
    questions: list[Question] = []
    for number, asked in _lines(questions_path, _QuestionLine):
        if not asked.relevant:
            raise BenchInputError(f"{questions_path}:{number}: `relevant` is empty; name what answers it")
        questions.append(Question(asked.text, tuple(dict.fromkeys(asked.relevant))))
    if not questions:
        raise BenchInputError(
            f'{questions_path} has no questions; a line is {{"text": "…", "relevant": ["…"]}}'
        )
    unknown = {name for question in questions for name in question.relevant} - documents.keys()
    if not any(documents.keys() & set(question.relevant) for question in questions):
        raise BenchInputError(f"no question of {questions_path} names a document of {documents_path}")
    note = (
        f"{len(unknown):,} ids of `relevant` are of no document, and count as not found." if unknown else ""
    )
    return Corpus("documents", f"{documents_path}, {questions_path}", found, tuple(questions), note)


def seeded_corpus(size: int) -> Corpus:
    """Return ``size`` made-up texts, and questions that nobody has judged."""
    documents = tuple(seeded_documents(size))
    note = (
        "The words are made up and as unequally frequent as those of a language. How well texts are found "
        "needs texts and questions: --docs and --queries, or --mine."
    )
    return Corpus("seeded", f"seed {SEED}", documents, seeded_questions(documents), note)


def seeded_documents(size: int, words: int = WORDS) -> Iterator[Document]:
    """Yield ``size`` made-up texts of so many ``words``; fewer texts are the first of more."""
    import numpy as np

    vocabulary = _vocabulary()
    shares = np.cumsum([1 / (rank + 3) for rank in range(len(vocabulary))])
    source = np.random.default_rng(SEED)
    for start in range(0, size, _BATCH_TEXTS):
        drawn = np.searchsorted(shares, source.random((_BATCH_TEXTS, words)) * shares[-1], side="right")
        for number, row in enumerate(drawn[: size - start].tolist(), start):
            yield Document(
                f"d{number}", "episode", " ".join([vocabulary[at] for at in row]), created_at=number
            )


def seeded_questions(documents: Sequence[Document]) -> tuple[Question, ...]:
    """Return questions of about ten words: most from one of the documents, the others frequent ones."""
    import random

    source = random.Random(SEED)  # noqa: S311 - the same for everybody is what it is for
    asked = [document.text.split() for document in islice(documents, _ASKED_TEXTS)]
    asked = [words for words in asked if words]
    if not asked:
        raise BenchInputError("the documents hold no words to ask for")
    common = _vocabulary()[:20]
    questions: list[Question] = []
    for _ in range(QUESTIONS):
        words = source.choice(asked)
        telling = source.sample(words, min(_TELLING_WORDS, len(words)))
        questions.append(Question(" ".join([*telling, *source.sample(common, _COMMON_WORDS)])))
    return tuple(questions)


def _vocabulary() -> list[str]:
    """Return made-up words, the frequent ones first."""
    import random

    source = random.Random(SEED)  # noqa: S311 - as above
    syllables = [first + second for first in "bcdfghjklmnprstvwz" for second in "aeiou"]
    made = ("".join(source.choices(syllables, k=source.randint(2, 4))) for _ in range(_VOCABULARY_WORDS))
    return list(dict.fromkeys(made))


def _lines(path: Path, kind: type[_T]) -> Iterator[tuple[int, _T]]:
    """Yield each line of a file with its number from 1; empty ones are passed over."""
    decoder = msgspec.json.Decoder(kind)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    yield number, decoder.decode(line)
                except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                    raise BenchInputError(f"{path}:{number}: {error}") from error
    except OSError as error:
        raise BenchInputError(f"cannot read {path}: {describe(error)}") from error
