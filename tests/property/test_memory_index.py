"""The index of episodes, whatever happens to its bytes."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from odek.memory.episode import Entry, Episode, Index, Provenance, encode_index, parse_index

UNTRUSTED = Provenance(untrusted=True, sources=("network",))
INDEX = encode_index(
    Entry.of(
        Episode(session_id=f"2026010{n}-x", turns=n, created_at="2026-01-01T10:00:00Z", provenance=UNTRUSTED)
    )
    for n in (1, 2)
)

provenances = st.builds(
    Provenance,
    untrusted=st.booleans(),
    sources=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), max_size=3).map(tuple),
    user_approved=st.booleans(),
    auto_approved=st.booleans(),
).filter(
    lambda provenance: provenance.untrusted or not provenance.sources
)  # others are read as tampered with
episodes = st.builds(
    Episode,
    session_id=st.from_regex(r"[0-9]{8}-[a-z0-9]{1,9}", fullmatch=True),
    turns=st.integers(0, 999),
    created_at=st.datetimes().map(lambda time: f"{time.isoformat()}Z"),
    summary=st.text('abc é字"\\', max_size=60).map(lambda text: " ".join(text.split())),
    provenance=provenances,
)


def recallable(index: Index) -> list[str]:
    """Return the ids that may be recalled."""
    return [e.episode.session_id for e in index.entries if e.episode.provenance.is_recallable]


@settings(max_examples=60)
@given(st.lists(episodes, max_size=5, unique_by=lambda episode: episode.session_id))
def test_what_is_written_is_read(written: list[Episode]) -> None:
    """Encoding and parsing give the same episodes, without a problem, and the same bytes again."""
    data = encode_index(map(Entry.of, written))

    index = parse_index(data)

    assert [entry.episode for entry in index.entries] == written
    assert (index.problems, index.lossy) == ((), False)
    assert encode_index(index.entries) == data


@settings(max_examples=60)
@given(
    st.lists(episodes, max_size=5, unique_by=lambda episode: episode.session_id),
    st.lists(
        st.tuples(st.integers(0, 4_000), st.sampled_from([b"", b"0", b'"', b"\xff", b"u", b"}"])), max_size=3
    ),
)
def test_what_is_known_from_before_changes_nothing_but_the_time(
    written: list[Episode], changes: list[tuple[int, bytes]]
) -> None:
    """Whatever came, went or was damaged: the same is read as without it; what stayed is the same object."""
    before = parse_index(encode_index(map(Entry.of, written[:3])))
    data = encode_index(map(Entry.of, written[1:]))
    known = parse_index(data, before)
    assert known == parse_index(data)
    kept = {id(entry) for entry in known.entries}
    assert all(id(entry) in kept for entry in before.entries[1:])

    for at, other in changes:
        data = data[: at % len(data)] + other + data[at % len(data) + 1 :]
        assert parse_index(data, known) == parse_index(data)
        known = parse_index(data, known)


@settings(max_examples=100)
@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_no_bytes_make_parsing_fail(data: bytes) -> None:
    """Any bytes are an index, mostly an empty one; nothing in them is trusted."""
    assert recallable(parse_index(data)) == []


def test_no_damaged_byte_makes_an_untrusted_episode_recallable() -> None:
    """Each byte replaced by some others, left out, or doubled; and the file cut after each."""
    for at, byte in enumerate(INDEX):
        for other in (b"", b'"', b"}", b"{", b" ", b"\0", b"\xff", bytes([byte, byte]), bytes([byte ^ 1])):
            assert recallable(parse_index(INDEX[:at] + other + INDEX[at + 1 :])) == [], (at, other)
        assert recallable(parse_index(INDEX[:at])) == []


def test_a_cut_index_loses_only_what_was_cut() -> None:
    """Entries before the cut are read as they were."""
    second = INDEX.index(b'{"session_id":"20260102')

    index = parse_index(INDEX[: second + 9])

    assert [entry.episode.session_id for entry in index.entries] == ["20260101-x"]
    assert index.entries[0].episode.provenance == UNTRUSTED
    assert index.lossy
