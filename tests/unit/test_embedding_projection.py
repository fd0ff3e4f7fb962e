"""The projection: the same vector for ever, likeness by shared words, in any script."""

import subprocess
import sys
import time
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.embedding.embedder import cosine
from odek.embedding.features import words
from odek.embedding.local import ProjectionEmbedder
from odek.embedding.projection import DIMS, FINGERPRINT, project

MIXED = "User prefers tabs over spaces; see src/app/main.py v1.2.3 and getUserById, 日本語のテスト"


def likeness(left: str, right: str) -> float:
    """Return the cosine of two texts."""
    return cosine(*project([left, right]))


async def test_a_text_has_one_vector_for_ever() -> None:
    """The bytes of a vector are part of what the fingerprint promises."""
    (vector,) = await ProjectionEmbedder().embed([MIXED])

    assert FINGERPRINT == "rp/v1/1024"
    assert vector.shape == (DIMS,)
    assert zlib.crc32(vector.astype("<f4").tobytes()) == 1844608882


def test_another_process_makes_the_same_vector() -> None:
    """Nothing depends on the hash seed of the process or on what it saw before."""
    program = "import sys\nfrom odek.embedding.projection import project\n"
    program += "sys.stdout.write(project([sys.argv[1]])[0].tobytes().hex())"
    shown = subprocess.run([sys.executable, "-c", program, MIXED], capture_output=True, text=True, check=True)

    assert shown.stdout == project([MIXED])[0].tobytes().hex()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=6))
def test_the_company_of_a_text_does_not_matter(texts: list[str]) -> None:
    """A text gets the same vector alone and in any batch; it has length 1, or 0 without a word."""
    together = project(texts)

    for text, vector in zip(texts, together, strict=True):
        assert (project([text])[0] == vector).all()
        assert float(np.linalg.norm(vector)) == pytest.approx(1.0 if words(text) else 0.0, abs=1e-5)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Prefers DARK mode", "prefers dark mode!"),
        ("the deploys run", "deploy running"),
        ("\uff46\uff55\uff4c\uff4c width", "full width"),
        ("cafe\u0301 au lait", "café au lait"),
        ("ユーザーは簡潔な回答を好む", "ユーザーは簡潔な回答を好む。"),
    ],
)
def test_writing_does_not_matter(left: str, right: str) -> None:
    """Case, width, composition, endings and punctuation make hardly any difference."""
    assert likeness(left, right) > 0.85


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        ("user by id", "getUserById"),
        ("user by id", "get_user_by_id"),
        ("main.py", "src/app/main.py"),
        ("簡潔な回答", "ユーザーは簡潔な回答を好む"),
        ("ภาษาไทย", "ผู้ใช้ชอบภาษาไทยมาก"),
    ],
)
def test_a_part_is_found_in_the_whole(part: str, whole: str) -> None:
    """Identifiers and paths are found by their parts, scripts without blanks by pieces."""
    assert likeness(part, whole) > 0.4


def _seconds(texts: list[str]) -> float:
    start = time.perf_counter()
    project(texts)
    return time.perf_counter() - start
