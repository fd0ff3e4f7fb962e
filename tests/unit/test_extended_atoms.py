"""Atoms as files: what is written is read, what is damaged falls to the careful side."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odek.errors import StoreError
from odek.memory.extended.atom import Atom, as_confidence, as_type, encode, new_atom_id, normalised, parse
from odek.memory.extended.atom_store import AtomStore

LINE = st.text(max_size=60).map(lambda text: " ".join(text.split()))


def atom(text: str = "likes tea", **fields: object) -> Atom:
    """Return an atom of the person."""
    known = {"source_class": "user_said", "created_at": "2026-05-01T10:00:00Z", "type": "preference"}
    return Atom(id=new_atom_id(), text=text, **{**known, **fields})  # type: ignore[arg-type]


@given(text=LINE.filter(bool), session=LINE, project=LINE, pin=st.booleans(), turn=st.integers(0, 10**8))
def test_an_atom_is_read_as_it_was_written(
    text: str, session: str, project: str, turn: int, *, pin: bool
) -> None:
    """Every field survives its file."""
    written = atom(text, session=session, project=project, pin=pin, turn=turn, related=(new_atom_id(),))
    assert parse(written.id, encode(written)) == written


@pytest.mark.parametrize(
    "data",
    [
        b"only text",
        b"---\nsource: user_sayd\n---\nonly text",
        b"---\nsource:\nconfidence: 9\npin: perhaps\nturn: -4\nrelated: ../../x\n---\nonly text",
        b"\xff---\nsource: user_said\n---\nonly text",
    ],
)
def test_what_cannot_be_read_of_a_head_is_not_trusted(data: bytes) -> None:
    """An atom whose origin is lost or misspelt is tainted, and is never pinned or linked by accident."""
    found = parse(new_atom_id(), data)
    assert not found.is_trusted
    assert found.text.endswith("only text")
    assert (found.type, found.confidence, found.pin, found.related) == ("observation", 0.7, False, ())
    assert found.created_at == "1970-01-01T00:00:00Z"


def test_types_and_confidences_of_a_model_are_taken_with_care() -> None:
    """An unknown type is an observation, and a confidence out of range is the default."""
    assert [as_type(value) for value in ("Goal ", "wish", None, 3)] == [
        "goal",
        "observation",
        "observation",
        "observation",
    ]
    assert [as_confidence(value) for value in (0.4, "0.5", 0, 1.5, "much", None, float("nan"))] == [
        0.4,
        0.5,
        0.7,
        0.7,
        0.7,
        0.7,
        0.7,
    ]


def test_equal_texts_are_equal_whatever_their_case_and_blanks() -> None:
    """Case and white space make no difference."""
    assert normalised("  Likes\n TEA ") == normalised("likes tea")


def test_a_store_keeps_moves_and_forgets(tmp_path: Path) -> None:
    """An atom is in one place at a time, in a file that its owner alone may read."""
    store = AtomStore(tmp_path / "extended")
    first, second = atom(), atom("uses vim", source_class="web", reason="tainted")
    assert store.ids() == []
    with store.change():
        store.write([first])
        store.write([second], "quarantine")
    assert list(store.all()) == [first]
    assert list(store.all("quarantine")) == [second]
    assert (tmp_path / "extended" / "chunks" / f"{first.id}.md").stat().st_mode & 0o777 == 0o600
    with store.change():
        store.move(second, "chunks")
    assert store.ids("quarantine") == []
    assert store.ids() == sorted([first.id, second.id])
    with store.change():
        assert store.remove([first.id, "0" * 32, "../../x"]) == [first.id]
    assert store.read(first.id) is None


def test_what_is_no_file_of_ours_is_left_alone(tmp_path: Path) -> None:
    """A link out of the store is refused by name, and other files are no atoms."""
    store = AtomStore(tmp_path / "extended")
    kept = atom()
    with store.change():
        store.write([kept])
    chunks = tmp_path / "extended" / "chunks"
    (tmp_path / "secret.md").write_text("not an atom")
    planted = new_atom_id()
    (chunks / f"{planted}.md").symlink_to(tmp_path / "secret.md")
    (chunks / "notes.md").write_text("mine")
    assert list(store.all()) == [kept]
    assert [planted in line for line in store.unreadable()] == [True]
    with pytest.raises(StoreError, match="symbolic link"):
        store.read(planted)
