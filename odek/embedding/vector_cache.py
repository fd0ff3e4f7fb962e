"""Vectors that an endpoint made, kept on disk so that no text is sent twice.

A file for each text, named by a hash: nothing of the text can be read from the cache.
Everything here can be lost; what is damaged is a miss. Blocking.
"""

import hashlib
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from odek.errors import StoreError
from odek.storage.files import ensure_directory, read_file, remove_file, replace_file

if TYPE_CHECKING:
    from odek.embedding.embedder import Vector

__all__ = ["VectorCache"]

LIMIT_FILES = 4096
"""Vectors kept: eight full default stores; some 13 MB at 768 numbers each."""

_SUFFIX = ".f32"
_CHECKSUM_BYTES = 4
_FILE_LIMIT_BYTES = 65_536 * 4 + _CHECKSUM_BYTES  # as many numbers as the settings allow


class VectorCache:
    """The vectors of one space below ``directory``, which is made when there is one to keep."""

    def __init__(self, directory: Path, fingerprint: str) -> None:
        self._directory = directory
        self._fingerprint = fingerprint

    def load(self, texts: Sequence[str]) -> "list[Vector | None]":
        """Return the vector of each text, None where there is none."""
        return [self._read(self._path(text)) for text in texts]

    def store(self, texts: Sequence[str], vectors: "Sequence[Vector]") -> None:
        """Keep vectors; the oldest beyond the limit go.

        Raises:
            StoreError: they cannot be written.
        """
        ensure_directory(self._directory)
        for text, vector in zip(texts, vectors, strict=True):
            data = vector.astype("<f4").tobytes()
            checksum = zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "little")
            replace_file(self._path(text), checksum + data, durable=False)
        self._evict()

    def _path(self, text: str) -> Path:
        content = f"{self._fingerprint}\0{text}".encode("utf-8", "surrogatepass")
        return self._directory / f"{hashlib.blake2b(content, digest_size=20).hexdigest()}{_SUFFIX}"

    def _read(self, path: Path) -> "Vector | None":
        import numpy as np

        try:
            data = read_file(path, limit_bytes=_FILE_LIMIT_BYTES)
        except (FileNotFoundError, StoreError):
            return None
        checksum, numbers = data[:_CHECKSUM_BYTES], data[_CHECKSUM_BYTES:]
        if len(numbers) % 4 or zlib.crc32(numbers).to_bytes(_CHECKSUM_BYTES, "little") != checksum:
            return None
        return np.frombuffer(numbers, "<f4").astype(np.float32)

    def _evict(self) -> None:
        try:
            with os.scandir(self._directory) as entries:
                files = [entry for entry in entries if entry.name.endswith(_SUFFIX)]
            if len(files) <= LIMIT_FILES:
                return
            files.sort(key=lambda entry: entry.stat(follow_symlinks=False).st_mtime)
        except OSError:  # another process evicts at this moment
            return
        for entry in files[: len(files) - LIMIT_FILES * 9 // 10]:  # a tenth at once: rarely
            remove_file(self._directory / entry.name)
