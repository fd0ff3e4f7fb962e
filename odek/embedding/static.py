"""Word vectors that a package brings: ``pip install 'odek[semantic]'``.

The package is wordllama; only two of its files are read, its code is never run: a
matrix with a vector for each of 32,000 word pieces, and their names. A text's vector is
the sum of those of its pieces, each once. The matrix is mapped, so all processes share it.

The pieces are of words in Latin letters. Of other scripts there are letters alone, which
would make any two texts of one script alike; so their words count by a hash, as in
``projection``: alike are those that share words.
"""

import os
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from odek.embedding.features import words
from odek.embedding.word_pieces import WordPieces
from odek.errors import ConfigError, EmbeddingError

if TYPE_CHECKING:
    import numpy as np

    from odek.embedding.embedder import Vector

__all__ = ["INSTALL", "StaticEmbedder"]

INSTALL = "pip install 'odek[semantic]'"

VERSION = 1
"""Of all that decides where a text lands, but for the package's files."""

_PACKAGE = "wordllama"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_PIECES = "tokenizers/l2_supercat_tokenizer_config.json"

_NUMBER_BYTES = 2  # of half precision
_HEADER_LIMIT_BYTES = 65_536
# Read for the fingerprint: a matrix that was learned anew differs everywhere.
_SAMPLES = 64
_SAMPLE_BYTES = 512

# Of one text; a longer one is about what it begins with.
_READ_CHARACTERS = 32_768
# Letters of which the vocabulary knows no words: all from Greek on, but for Latin ones and for marks.
_FOREIGN = re.compile(
    "[\u0370-\u1dff\u1f00-\u1fff\u2c80-\ud7ff\uf900-\ufaff\ufb13-\ufdff\ufe70-\ufeff"
    "\U00010000-\U0001efff\U00020000-\U0003ffff]+"
)
# The length of a hashed word's vector. Those of pieces have from 3 to 27; no measurement behind this one.
_HASHED_LENGTH = 8.0

# So much takes well under a millisecond: less than going to a thread and back is worth.
_INLINE_CHARACTERS = 2_000


class _Tensor(msgspec.Struct):
    dtype: str = ""
    shape: tuple[int, ...] = ()
    data_offsets: tuple[int, int] = (0, 0)


class _Model(msgspec.Struct):
    vocab: dict[str, int]


class _PiecesFile(msgspec.Struct):
    model: _Model


class StaticEmbedder:
    """Implements ``Embedder`` by the files of the package.

    What takes time is done by the first text: some 15 ms, and numpy.

    Args:
        setting: What asks for word vectors, for the error.

    Raises:
        ConfigError: the package is not installed, or not what it should be.
    """

    def __init__(self, setting: str = "embedding.provider") -> None:
        directory = _package_directory()
        if directory is None:
            raise ConfigError(f"{setting} is static, but its word vectors are not installed: {INSTALL}")
        self._weights = directory / _WEIGHTS
        self._names = directory / _PIECES
        try:
            self._offset, self._shape, sample = _look_at(self._weights)
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            raise ConfigError(f"{self._weights} holds no word vectors ({error}); try {INSTALL}") from error
        self.fingerprint = f"static/v{VERSION}/{self._shape[1]}/{sample}"
        self._matrix: np.ndarray[Any, np.dtype[np.float16]] | None = None
        self._pieces = WordPieces({})

    async def embed(self, texts: Sequence[str]) -> "list[Vector]":
        """Return one vector for each text; see ``Embedder.embed``."""
        if self._matrix is not None and sum(map(len, texts)) <= _INLINE_CHARACTERS:
            return self._embed(texts)
        # Pure, so it may be abandoned.
        return await trio.to_thread.run_sync(self._embed, tuple(texts), abandon_on_cancel=True)

    def _embed(self, texts: Sequence[str]) -> "list[Vector]":
        import numpy as np

        matrix = self._matrix if self._matrix is not None else self._load()
        vectors: list[Vector] = []
        for given in texts:
            text, foreign = _by_script(given[:_READ_CHARACTERS])
            total = matrix[sorted(self._pieces.pieces_of(text))].sum(axis=0, dtype=np.float32)
            for word in sorted(foreign):
                total += _hashed(word, len(total))
            length = float(np.linalg.norm(total))
            vectors.append(total / np.float32(length) if length > 0 else total)
        return vectors

    def _load(self) -> "np.ndarray[Any, np.dtype[np.float16]]":
        import numpy as np

        try:
            self._pieces = read_pieces(self._names, self._shape[0])
            matrix = np.memmap(self._weights, "<f2", "r", self._offset, self._shape)
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            raise EmbeddingError(f"cannot read the word vectors of {_PACKAGE}: {error}") from error
        self._matrix = matrix
        return matrix


def read_pieces(file: Path, size: int) -> WordPieces:
    """Return the pieces that ``file`` names, of ``size`` vectors.

    Raises:
        OSError, ValueError, msgspec.MsgspecError: it cannot be read, or names none.
    """
    vocabulary = msgspec.json.decode(file.read_bytes(), type=_PiecesFile).model.vocab
    # The pieces of no letters, <s> or <0x0A>, say nothing; a number beyond the matrix has no vector.
    return WordPieces(
        {
            name: number
            for name, number in vocabulary.items()
            if 0 <= number < size and not name.startswith("<")
        }
    )


def _by_script(text: str) -> tuple[str, set[str]]:
    """Return the part of a text that the vocabulary is made for, and the words of the rest."""
    if text.isascii():
        return text, set()
    text = unicodedata.normalize("NFKC", text)
    return _FOREIGN.sub(" ", text), set(words(" ".join(_FOREIGN.findall(text))))


def _hashed(word: str, dims: int) -> "Vector":
    """Return a vector that is a word's own, and at right angles to nearly all others."""
    import hashlib

    import numpy as np

    digest = hashlib.shake_128(word.encode("utf-8", "surrogatepass")).digest(-(-dims // 8))
    signs = np.unpackbits(np.frombuffer(digest, np.uint8))[:dims].astype(np.float32) * 2 - 1
    return signs * np.float32(_HASHED_LENGTH / dims**0.5)


def _package_directory() -> Path | None:
    """Return where the package's files are, without running it."""
    import importlib.util

    spec = importlib.util.find_spec(_PACKAGE)
    places = spec.submodule_search_locations if spec is not None else None
    return Path(places[0]) if places else None


def _look_at(path: Path) -> tuple[int, tuple[int, int], str]:
    """Return where in a safetensors file its one matrix begins, its shape, and a short name of its content.

    Raises:
        ValueError, MsgspecError: it holds something else.
        OSError: it cannot be read.
    """
    import hashlib

    with path.open("rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        if header_bytes > _HEADER_LIMIT_BYTES:
            raise ValueError("its header is too long")
        header = file.read(header_bytes)
        described = msgspec.json.decode(header, type=dict[str, _Tensor])
        (tensor,) = (each for name, each in described.items() if name != "__metadata__")
        count, dims = tensor.shape
        start, end = tensor.data_offsets
        offset = 8 + header_bytes + start
        size_bytes = count * dims * _NUMBER_BYTES
        if (
            tensor.dtype != "F16"
            or end - start != size_bytes
            or min(start, count, dims) < 0
            or not size_bytes
        ):
            raise ValueError("it is no matrix of half-precision numbers")
        if os.fstat(file.fileno()).st_size < offset + size_bytes:
            raise ValueError("it is cut off")
        digest = hashlib.blake2b(header, digest_size=8)
        for at in range(0, size_bytes, max(size_bytes // _SAMPLES, _SAMPLE_BYTES)):
            digest.update(os.pread(file.fileno(), _SAMPLE_BYTES, offset + at))
    return offset, (count, dims), digest.hexdigest()
