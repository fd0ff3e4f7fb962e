"""What is said to a piguard sidecar, and what its answers mean. Pure.

One text goes to ``/detect``, a long one to ``/long``, several to ``/raw``. An answer names
the label that the detector chose and how sure it is *of that label*: a harmless text comes
back as ``BENIGN`` with a score near one. Only the score of ``INJECTION`` says anything
about danger.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

import msgspec

from odek.config.guard_settings import GuardSettings

__all__ = ["Question", "questions", "read_answer"]

LONG_CHARACTERS = 1500
"""Beyond it a text is sent as a long one: the detector reads some 512 tokens at once."""

BATCH_TEXTS = 64
"""Of one request; no measurement behind it."""

_HOST_OF_A_SOCKET = "http://localhost"


class Question(msgspec.Struct, frozen=True):
    """One request: where to, what, and which of the texts it is about."""

    url: str
    body: bytes
    places: tuple[int, ...]
    is_batch: bool = False


class _Opinion(msgspec.Struct):
    label: str
    score: float


class _Opinions(msgspec.Struct):
    results: list[_Opinion]


def questions(texts: Sequence[str], settings: GuardSettings) -> list[Question]:
    """Return the requests that ask about ``texts``."""
    sent = [text[: settings.max_text_length or None] for text in texts]
    long = [place for place, text in enumerate(sent) if len(text) > LONG_CHARACTERS]
    short = [place for place in range(len(sent)) if place not in set(long)]
    asked = [Question(_address(settings, "long"), _json(long=sent[place]), (place,)) for place in long]
    if len(short) == 1:
        return [*asked, Question(_address(settings, "detect"), _json(text=sent[short[0]]), (short[0],))]
    for start in range(0, len(short), BATCH_TEXTS):
        places = tuple(short[start : start + BATCH_TEXTS])
        body = _json(texts=[sent[place] for place in places])
        asked.append(Question(_address(settings, "raw"), body, places, is_batch=True))
    return asked


def read_answer(question: Question, body: bytes, threshold: float) -> list[float | None]:
    """Return for each text how sure the detector is that it is an injection, None where it is not that.

    Raises:
        ValueError: the body is no such answer.
    """
    try:
        if question.is_batch:
            opinions = msgspec.json.decode(body, type=_Opinions).results
        else:
            opinions = [msgspec.json.decode(body, type=_Opinion)]
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(f"its answer is none: {error}") from error
    if len(opinions) != len(question.places):
        raise ValueError(f"it judged {len(opinions)} texts of {len(question.places)}")
    return [_injection(opinion, threshold) for opinion in opinions]


def _injection(opinion: _Opinion, threshold: float) -> float | None:
    if not 0 <= opinion.score <= 1:
        raise ValueError(f"its score {opinion.score!r} is no probability")
    match opinion.label.strip().upper():
        case "INJECTION":
            return opinion.score if opinion.score >= threshold else None
        case "BENIGN":
            return None
        case label:
            raise ValueError(f"its label {label[:40]!a} is neither INJECTION nor BENIGN")


def _json(**fields: object) -> bytes:
    return msgspec.json.encode(fields)


def _address(settings: GuardSettings, name: str) -> str:
    own = {"detect": settings.url, "long": settings.long_url, "raw": settings.batch_url}[name]
    if own:
        return own
    scheme, host, path, query, _ = urlsplit(settings.url or f"{_HOST_OF_A_SOCKET}/detect")
    return urlunsplit((scheme, host, f"{path.rpartition('/')[0]}/{name}", query, ""))
