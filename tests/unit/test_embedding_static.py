"""Word vectors from a package's files: which vector a text has, and what is said when there is none."""

import importlib.util
import json
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from odek.config.embedding_settings import EmbeddingSettings
from odek.embedding.choice import choose_embedder
from odek.embedding.embedder import cosine
from odek.embedding.static import StaticEmbedder, read_pieces
from odek.embedding.word_pieces import WordPieces
from odek.errors import ConfigError, EmbeddingError
from tests.support.fact_bands import GROUPS, band_row, published_rows

real = pytest.mark.skipif(
    importlib.util.find_spec("wordllama") is None,
    reason="the word vectors of odek[semantic] are not installed",
)

NAMES = ["<unk>", "<0x0A>", "\u2581", "a", "b", "\u2581a", "ab", "\u2581ab"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lay down a small package of word vectors, found before any other, and return where it is."""
    directory = tmp_path / "wordllama"
    for name in ("weights", "tokenizers"):
        (directory / name).mkdir(parents=True)
    (directory / "__init__.py").write_text("raise AssertionError('its code is not run')")
    write_weights(directory, np.eye(8, 4, k=-4) + 0.5)
    pieces = {"model": {"vocab": {name: number for number, name in enumerate(NAMES)}, "merges": []}}
    (directory / "tokenizers" / "l2_supercat_tokenizer_config.json").write_text(json.dumps(pieces))
    monkeypatch.syspath_prepend(str(tmp_path))
    return directory


def weights_of(package: Path) -> Path:
    """Return the file of the matrix."""
    return package / "weights" / "l2_supercat_256.safetensors"


def write_weights(package: Path, matrix: "np.ndarray[tuple[int, int], np.dtype[np.float64]]") -> None:
    """Write a matrix as the package has it."""
    described = {"dtype": "F16", "shape": matrix.shape, "data_offsets": [0, matrix.size * 2]}
    header = json.dumps({"__metadata__": {}, "embedding.weight": described}).encode()
    weights_of(package).write_bytes(struct.pack("<Q", len(header)) + header + matrix.astype("<f2").tobytes())


def test_the_smallest_number_is_joined_first() -> None:
    """Of all neighbours that are a piece together the one learned first is joined, from the left."""
    pieces = WordPieces(
        {name: number for number, name in enumerate(["a", "b", "c", "bc", "ab", "abc", "\u2581"])}
    )

    assert pieces.pieces_of("abc") == {6, 5}
    assert pieces.pieces_of("ab cab") == {6, 4, 2}
    assert pieces.pieces_of("x\n\t \ud800") == {6}


def test_long_runs_are_read_to_their_end() -> None:
    """A text without blanks is cut in time that its length decides on, and all of it counts."""
    pieces = WordPieces({"a": 0, "b": 1, "\u2581": 2})

    assert pieces.pieces_of("a" * 50_000 + "b") == {0, 1, 2}


async def test_a_text_is_the_sum_of_its_pieces(package: Path) -> None:
    """Each piece counts once, the order not at all; the length is 1, or 0 when nothing is known."""
    embedder = StaticEmbedder()
    one, twice, other, nothing = await embedder.embed(["ab b", "b ab b", "a", " \n"])

    assert embedder.fingerprint.startswith("static/v1/4/")
    assert (one == twice).all()
    assert one.dtype == np.float32
    assert np.linalg.norm(one) == pytest.approx(1)
    assert 0 < cosine(one, other) < 1
    assert nothing.tolist() == [0, 0, 0, 0]


async def test_the_company_of_a_text_does_not_matter(package: Path) -> None:
    """A text has the same vector alone, in a batch, and in a second embedder."""
    together = await StaticEmbedder().embed(["a", "ab", "b" * 5_000])
    alone = StaticEmbedder()

    for text, vector in zip(["a", "ab", "b" * 5_000], together, strict=True):
        assert ((await alone.embed([text]))[0] == vector).all()


def test_other_weights_are_another_space(package: Path) -> None:
    """The fingerprint changes with the numbers in the file."""
    before = StaticEmbedder().fingerprint
    write_weights(package, np.ones((8, 4)))

    assert StaticEmbedder().fingerprint != before


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 100,
        struct.pack("<Q", 2) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 27) + b'{"a": {"dtype": "F32"}}    ',
        struct.pack("<Q", 63) + b'{"a":{"dtype":"F16","shape":[9,9],"data_offsets":[0,162]}}     ',
    ],
)
def test_a_damaged_package_is_told(package: Path, content: bytes) -> None:
    """What is no matrix is named, with what to do, in a line."""
    weights_of(package).write_bytes(content)

    with pytest.raises(ConfigError, match=r"safetensors holds no word vectors .*odek\[semantic\]") as caught:
        StaticEmbedder()

    assert "\n" not in str(caught.value)


async def test_names_that_cannot_be_read_are_no_vectors(package: Path) -> None:
    """Whoever compares texts does without when the second file is damaged."""
    (package / "tokenizers" / "l2_supercat_tokenizer_config.json").write_text("[")

    with pytest.raises(EmbeddingError, match="wordllama"):
        await StaticEmbedder().embed(["a"])


STATIC = EmbeddingSettings(provider="static")


def test_without_the_package_the_setting_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the setting and the command that installs what is missing."""
    monkeypatch.setitem(sys.modules, "wordllama", None)  # as if it were not installed

    with pytest.raises(ConfigError, match=r"^a.provider is static, .*pip install 'odek\[semantic\]'$"):
        choose_embedder(STATIC, "a", tmp_path)


async def test_the_setting_chooses_the_word_vectors(package: Path, tmp_path: Path) -> None:
    """With the package there is nothing to say."""
    found, notice = choose_embedder(STATIC, "embedding", tmp_path)

    assert isinstance(found, StaticEmbedder)
    assert notice == ""


@real
@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Caroline bought watercolours", {26980, 18093, 4094, 1054, 2470}),
        (
            "getUserName()  retries,\nnaïve café",
            {679, 28129, 580, 3240, 2722, 29892, 1055, 30085, 345, 274, 28059},
        ),
        ("Привет, мир", {7203, 7616, 29892, 4157, 29927}),
        ("kubernetes v1.8.19", {413, 17547, 325, 29896, 29889, 29947, 29929}),
    ],
)
def test_words_are_cut_as_the_vectors_were_learned(text: str, numbers: set[int]) -> None:
    """The numbers are those of the reference implementation of the vocabulary's format."""
    package = importlib.util.find_spec("wordllama")
    assert package is not None
    assert package.origin is not None
    file = Path(package.origin).parent / "tokenizers" / "l2_supercat_tokenizer_config.json"

    assert read_pieces(file, 32_000).pieces_of(text) == numbers


@real
async def test_other_words_for_the_same_are_alike() -> None:
    """Texts that share no word are closer than strangers."""
    embedder = StaticEmbedder()
    login, auth, cake = await embedder.embed(
        ["repaired the login issue", "fixed an authentication bug", "baked a chocolate cake"]
    )

    assert embedder.fingerprint.startswith("static/v1/256/")
    assert cosine(login, auth) > 0.3 > cosine(login, cake)


@real
@pytest.mark.parametrize(
    ("text", "alike", "stranger"),
    [
        ("猫の名前はミケで、魚が好きです", "猫のミケは魚が好きです", "円周率の値を計算してください"),
        ("Анна переехала в Казань", "Казань, куда переехала Анна", "Напиши функцию сортировки"),
        ("แมวชื่อส้มชอบกินปลา", "แมวชอบกินอะไร", "อธิบายทฤษฎีบทพีทาโกรัส"),
        ("강아지 이름은 초코이고", "초코이고 강아지", "미분 방정식을 풀어줘"),
        ("القطة تحب السمك", "ماذا تحب القطة", "اكتب دالة للفرز"),
    ],
)
async def test_other_scripts_are_alike_by_shared_words(text: str, alike: str, stranger: str) -> None:
    """Texts of one script are not close for their letters."""
    one, near, far = await StaticEmbedder().embed([text, alike, stranger])

    assert np.linalg.norm(one) == pytest.approx(1)
    assert cosine(one, near) > 0.3
    assert abs(cosine(one, far)) < 0.2


@real
async def test_the_published_table_is_what_is_measured() -> None:
    """The thresholds that part facts hold for word vectors as the page says."""
    embedder = StaticEmbedder()
    rows = {}
    for name, pairs in GROUPS.items():
        lefts, rights = ([*side] for side in zip(*pairs, strict=True))
        vectors = zip(await embedder.embed(lefts), await embedder.embed(rights), strict=True)
        rows[name] = band_row(pairs, [cosine(left, right) for left, right in vectors])

    assert rows == published_rows("static: ")
