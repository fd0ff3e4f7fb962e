"""Vectors from any OpenAI-compatible ``/embeddings`` endpoint."""

import math
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
import trio

from odek.config.addresses import EMBEDDINGS, endpoint_url
from odek.config.embedding_settings import EmbeddingSettings
from odek.embedding.embedder import Vector
from odek.embedding.vector_cache import VectorCache
from odek.errors import EmbeddingError, ModelUnavailableError, StoreError
from odek.text import clip_bytes, without_surrogates

if TYPE_CHECKING:
    from odek.llm.post import Reply

__all__ = ["HttpEmbedder"]

BACKOFF_SECONDS = 30.0
"""After a failure nothing is sent for so long: a turn must not wait for a dead server each time."""

# Of one request: servers on small machines take some dozens of texts, and refuse much more.
_BATCH_TEXTS = 64
_BATCH_BYTES = 256 * 1024
# Of one text; summaries and facts have 2,048. Models read some 8,000 tokens at most.
_TEXT_BYTES = 16 * 1024
# A model that does not even read this is none for texts.
_LEAST_TEXT_BYTES = 256
# What servers say of a text that is too long, beyond what is said of a conversation that is.
_TOO_LONG = re.compile(
    r"too large to process|must have less than \d+ tokens|exceeds? .{0,20}context", re.IGNORECASE
)
# Sent for a text that says nothing, which some servers refuse: its vector tells the size of the zeros.
_BLANK = "(blank)"
# 64 vectors of 65,536 numbers would take more; no model has such.
_RESPONSE_BYTES = 32 * 1024 * 1024
# Vectors kept in memory: the query of a turn is embedded by several paths.
_KEPT = 1024


class _TooLongError(EmbeddingError):
    """A text is longer than the model reads."""


class _Item(msgspec.Struct):
    embedding: list[float]
    index: int | None = None


class _Response(msgspec.Struct):
    data: list[_Item]


class HttpEmbedder:
    """Implements ``Embedder`` at an endpoint; ``settings`` name its address and model.

    Vectors are kept in memory and below ``cache_directory``. A batch takes at most
    ``settings.timeout_seconds``; calls do not wait for one another.
    """

    def __init__(self, settings: EmbeddingSettings, cache_directory: Path) -> None:
        self._settings = settings
        self._url = endpoint_url(settings.base_url, EMBEDDINGS)
        self._host = urlsplit(self._url).hostname or "the endpoint"
        self._cache = VectorCache(cache_directory, self.fingerprint)
        self._kept: dict[str, Vector] = {}
        self._closed_until = -math.inf
        self._last_failure = ""
        self._answered_dims = 0
        self._limit_bytes = _TEXT_BYTES

    @property
    def fingerprint(self) -> str:
        """Names the space: the model and the size, and which server means them."""
        import hashlib

        server = hashlib.blake2b(self._url.encode(), digest_size=4).hexdigest()
        return f"http/v1/{self._settings.model}/{self._settings.dims or 'any'}/{server}"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector for each text; see ``Embedder.embed``."""
        import numpy as np

        wanted = [_sendable(text) for text in texts]
        kept = ((text, self._kept.get(text)) for text in wanted)
        found = {text: vector for text, vector in kept if vector is not None and self._fits(vector)}
        if missing := [text for text in dict.fromkeys(wanted) if text not in found]:
            loaded = await trio.to_thread.run_sync(self._cache.load, missing, abandon_on_cancel=True)
            found |= {
                text: vector
                for text, vector in zip(missing, loaded, strict=True)
                if vector is not None and self._fits(vector)
            }
            found |= await self._fetch([text for text in missing if text not in found])
            if _is_mixed(found):  # the server has another model by now
                found = await self._fetch(list(dict.fromkeys(wanted)))
                if _is_mixed(found):
                    raise EmbeddingError(f"{self._host} answers vectors of one size now, of another then")
            self._keep(found)
        return [
            found[sent] if text.strip() else np.zeros_like(found[sent])
            for text, sent in zip(texts, wanted, strict=True)
        ]

    def _fits(self, vector: Vector) -> bool:
        """Tell whether a vector made earlier is of the size that the server gives now, as far as is known."""
        return {self._settings.dims, self._answered_dims} <= {0, len(vector)}

    def _keep(self, found: dict[str, Vector]) -> None:
        if len(self._kept) + len(found) > _KEPT:
            self._kept.clear()
        self._kept |= found

    async def _fetch(self, texts: list[str]) -> dict[str, Vector]:
        """Ask for vectors, batch by batch, and keep on disk what came."""
        found: dict[str, Vector] = {}
        for batch in _batches(texts):
            rest = self._closed_until - trio.current_time()
            if rest > 0:
                raise EmbeddingError(f"{self._last_failure}; tried again in {rest:.0f} s")
            try:
                vectors = await self._ask_as_far_as_read(batch)
            except EmbeddingError as error:
                self._closed_until = trio.current_time() + BACKOFF_SECONDS
                self._last_failure = str(error)
                raise
            with suppress(StoreError):  # a cache: without it texts are sent again, which is all
                await trio.to_thread.run_sync(self._cache.store, batch, vectors)
            self._answered_dims = len(vectors[0])
            found |= zip(batch, vectors, strict=True)
        return found

    async def _ask_as_far_as_read(self, batch: list[str]) -> list[Vector]:
        """Ask for the vectors of texts, of their beginnings when they are too long for the model."""
        while True:
            sent = [clip_bytes(text, self._limit_bytes) for text in batch]
            try:
                return await self._ask(sent)
            except _TooLongError:
                self._limit_bytes = max(len(text.encode()) for text in sent) // 2
                if self._limit_bytes < _LEAST_TEXT_BYTES:
                    self._limit_bytes = _TEXT_BYTES
                    raise

    async def _ask(self, batch: list[str]) -> list[Vector]:
        body = msgspec.json.encode({"model": self._settings.model, "input": batch})
        with trio.move_on_after(self._settings.timeout_seconds):
            answer = await self._post(body)
            return self._vectors(answer, len(batch))
        raise EmbeddingError(f"{self._host} made no vectors within {self._settings.timeout_seconds:g} s")

    async def _post(self, body: bytes) -> bytes:
        from odek.llm.post import post

        headers = {"Authorization": f"Bearer {self._settings.api_key}"} if self._settings.api_key else {}
        try:
            reply = await post(self._url, body, limit_bytes=_RESPONSE_BYTES, headers=headers)
        except ModelUnavailableError as error:
            raise EmbeddingError(f"cannot get vectors from {error}") from error
        if not reply.is_success:
            raise self._refusal(reply)
        return reply.body

    def _refusal(self, reply: "Reply") -> EmbeddingError:
        from odek.llm.faults import fault_of_status, without_secret

        told = without_secret(reply.body, self._settings.api_key)
        fault = fault_of_status(reply.status, reply.headers, told, host=self._host, now=time.time())
        is_too_long = fault.kind == "overflow" or _TOO_LONG.search(fault.message)
        return (_TooLongError if is_too_long else EmbeddingError)(fault.message)

    def _vectors(self, answer: bytes, count: int) -> list[Vector]:
        import numpy as np

        try:
            items = msgspec.json.decode(answer, type=_Response).data
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise EmbeddingError(f"{self._host} answered something that is no list of vectors") from error
        places = [position if item.index is None else item.index for position, item in enumerate(items)]
        if sorted(places) != list(range(count)):
            raise EmbeddingError(f"{self._host} answered {len(items)} vectors for {count} texts")
        sizes = {len(item.embedding) for item in items}
        if len(sizes) != 1 or 0 in sizes or self._settings.dims not in (0, *sizes):
            shown, expected = " and ".join(map(str, sorted(sizes))), self._settings.dims or "one size"
            raise EmbeddingError(f"{self._host} answered vectors of {shown} numbers, expected {expected}")
        rows = np.empty((count, sizes.pop()), np.float64)
        for place, item in zip(places, items, strict=True):
            rows[place] = item.embedding
        with np.errstate(over="ignore"):  # the next line says it
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not np.isfinite(lengths).all():
            raise EmbeddingError(f"{self._host} answered numbers beyond all bounds")
        return list((rows / np.where(lengths > 0, lengths, 1)).astype(np.float32))


def _sendable(text: str) -> str:
    """Return what is sent for a text: whole characters, so many as a model reads."""
    text = clip_bytes(without_surrogates(text), _TEXT_BYTES)
    return text if text.strip() else _BLANK


def _is_mixed(found: dict[str, Vector]) -> bool:
    return len({len(vector) for vector in found.values()}) > 1


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts in batches that one request may hold."""
    batch: list[str] = []
    size_bytes = 0
    for text in texts:
        length = len(text.encode("utf-8", "replace"))
        if batch and (len(batch) == _BATCH_TEXTS or size_bytes + length > _BATCH_BYTES):
            yield batch
            batch, size_bytes = [], 0
        batch.append(text)
        size_bytes += length
    if batch:
        yield batch
