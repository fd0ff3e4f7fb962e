"""The format of a fact file: what is in it, and what survives a change."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.memory.fact_file import FactFile, canonical

TRICKY = st.text(st.sampled_from("§\\\n\r \t#-ab\ufeffé")) | st.text()
ENTRIES = st.lists(TRICKY.map(canonical).filter(bool), max_size=6)


@settings(max_examples=100, deadline=None)
@given(ENTRIES, st.sampled_from([b"", b"\xef\xbb\xbf", b"a\r\n\xc2\xa7\r\nb\r\n", b"x\n"]))
def test_what_is_added_is_read_back(entries: list[str], before: bytes) -> None:
    """Any entry comes back as one entry with the same text, also one made of separator lines."""
    file = FactFile.parse(before)
    old = file.texts
    for entry in entries:
        file = file.with_added(entry)

    assert FactFile.parse(file.encode()).texts == (*old, *entries)


@settings(max_examples=100, deadline=None)
@given(
    st.binary(max_size=200)
    | st.lists(st.sampled_from([b"\xc2\xa7", b"\r\n", b"\n", b"a", b"\xff", b" "])).map(b"".join)
)
def test_any_bytes_can_be_read_and_changed(data: bytes) -> None:
    """There are no wrong bytes; adding an entry and removing it keeps every other entry's bytes."""
    file = FactFile.parse(data)

    again = FactFile.parse(file.with_added("a new fact").encode()).without("a new fact")

    assert again.segments == tuple(
        s for s, t in zip(file.segments, file.texts, strict=True) if t != "a new fact"
    )
    assert all(segment in data for segment in file.segments)


@pytest.mark.parametrize(
    "data",
    [
        b"one\n\xc2\xa7\ntwo",
        b"one\n\xc2\xa7\ntwo\n",
        b"\xef\xbb\xbfone\n\xc2\xa7\ntwo\n",
        b"one\r\n\xc2\xa7\r\ntwo\r\n",
        b"one \xff\xfe\n\xc2\xa7\ntwo",
        "# title\n- list\n---\n§\n中文 §5 of the law\n".encode(),
    ],
    ids=["no final line end", "final line end", "byte order mark", "CRLF", "no UTF-8", "markdown"],
)
def test_a_file_is_written_back_as_it_was(data: bytes) -> None:
    """Reading and encoding changes no byte of a file that somebody else wrote."""
    assert FactFile.parse(data).encode() == data
    assert len(FactFile.parse(data).texts) == 2


def test_a_change_leaves_the_bytes_of_other_entries_alone() -> None:
    """Only the entry that is meant is written anew, with the line ends that the file has."""
    data = b"\xef\xbb\xbfodd \xff bytes\r\n\xc2\xa7\r\nold\r\n\xc2\xa7\r\nlast\r\n"

    changed = FactFile.parse(data).with_replaced("old", "new\nfact")

    assert changed.encode() == data.replace(b"old", b"new\r\nfact")


def test_equal_entries_become_one_when_one_of_them_changes() -> None:
    """Replacing by a text that is there already, or removing a doubled one, leaves it once or not at all."""
    file = FactFile.parse("a\n§\nb\n§\na\n§\nc".encode())

    assert file.with_replaced("a", "c").texts == ("c", "b")
    assert file.without("a").texts == ("b", "c")


def test_the_size_counts_separators_in_utf8() -> None:
    """Two entries of n and m bytes take n + m + 4: `§` is two bytes, its line ends one each."""
    file = FactFile().with_added("é").with_added("abc")

    assert len(file.encode()) == 2 + 4 + 3
