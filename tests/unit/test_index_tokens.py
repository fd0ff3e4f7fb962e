"""Terms: what is taken from a text of any script, and from the names that programs use."""

import pytest

from odek.index.tokens import matched_spans, pairs_of, read


def words_of(text: str) -> set[str]:
    """Return the terms of ``text``, each once."""
    return {word for run in read(text).runs for word in run.words}


def small_words_of(text: str) -> set[str]:
    """Return the terms of ``text`` that say little."""
    return {word for run in read(text).runs if run.stopped for word in run.words}


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("When did she buy the house?", "She bought a house."),
        ("retries", "retrying"),
        ("Häuser in der Stadt und auf dem Land", "ein Haus und die Stadt, das Land"),
        ("Quels sont les chevaux de la ferme ?", "le cheval est dans la ferme"),
        ("книги", "книгу"),
        ("المكتبات", "مكتبة"),
        ("किताबें", "किताब"),
        ("καφέδες", "καφές"),
        ("café", "cafe"),
        ("naïve", "naive"),
        ("\uff21\uff22\uff23\uff11\uff12\uff13", "abc123"),
        ("ﬁle", "file"),
    ],
)
def test_forms_of_a_word_share_a_term(asked: str, written: str) -> None:
    """Inflection, accents, width and ligatures do not hide a word."""
    assert words_of(asked) & words_of(written) - small_words_of(asked)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("retry_count", ["retry_count", "retri", "count"]),
        ("src/app/main.py", ["src/app/main.py", "main.py", "src", "app", "main", "py"]),
        ("C:\\Users\\me", ["c:\\users\\me", "user", "me"]),
        ("v1.8.19", ["v1.8.19", "1.8.19", "1.8"]),
        ("#156", ["#156", "156"]),
        ("HTTP/2", ["http/2", "http", "2"]),
        ("9f86d081884c7d659a2feaa0c55ad015", ["9f86d081884c7d659a2feaa0c55ad015", "9f86d08"]),
        ("std::vector", ["std::vector", "std", "vector"]),
        ("user@example.com", ["user@example.com", "example.com"]),
        ("@alice", ["alic"]),
        ("max-retries", ["max-retries", "max", "retri"]),
        ("C++", ["c++", "c"]),
        ("C#", ["c#", "c"]),
        ("utf8", ["utf8", "utf", "8"]),
    ],
)
def test_a_name_is_found_whole_and_by_its_parts(name: str, parts: list[str]) -> None:
    """Identifiers, paths, versions, numbers and hashes yield themselves and what they are made of."""
    assert set(parts) <= words_of(name)


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("東京", "来週は東京に行きます"),
        ("数据库", "我们更换了数据库"),
        ("서울", "서울에서 만나요"),
        ("ประชุม", "เราประชุมวันจันทร์"),
        ("東京", "version2東京"),
        ("api", "東京API設計"),
        ("猫", "黒い猫がいる"),
        ("ភាសា", "ខ្ញុំរៀនភាសាខ្មែរ"),
        ("ภาษา", "เรียนภาษาpythonทุกวัน"),
    ],
)
def test_scripts_without_blanks_are_found_in_the_middle(asked: str, written: str) -> None:
    """A word is found inside a run of its script, also where that is glued to Latin letters."""
    assert words_of(asked) <= words_of(written)


def test_small_words_are_known_in_the_language_of_the_text() -> None:
    """A German text has German stop words; a telling word is never one."""
    text = "Wann war die Besprechung mit der Geschäftsführung?"

    assert read(text).language == "german"
    assert small_words_of(text) == {"wann", "war", "die", "mit", "der"}


def test_pairs_stand_close_and_have_no_order() -> None:
    """Two telling words near each other make one pair, whichever comes first."""
    one = pairs_of(read("the database migration").runs)
    other = pairs_of(read("migration of the database").runs)
    far = pairs_of(read("database one two three four five six migration").runs)

    assert one == other != []
    assert not set(one) & set(far)


def test_matched_words_are_marked_where_they_stand() -> None:
    """Spans cover the telling words of a question in the text as it was written, in order."""
    text = "She bought a house; das 東京タワー. getUserName failed."

    spans = matched_spans(text, "what did she buy, 東京, user name?")

    assert [text[start:end] for start, end in spans] == ["bought", "東京", "getUserName"]


def test_invisible_characters_do_not_hide_a_word() -> None:
    """Soft hyphens, joiners and Arabic vowel signs are no part of a word."""
    assert words_of("data\u00adbase") == words_of("database")
    assert words_of("zero\u200bwidth") == words_of("zerowidth")
    assert words_of("مُدَرِّس") == words_of("مدرس")


@pytest.mark.parametrize(
    "text", ["", "   ", "!!! … ???", "🎉🎉", "\x00\x01", "a" * 100_000, "/" * 5_000, "a." * 9_000]
)
def test_any_text_has_terms_or_none(text: str) -> None:
    """Nothing, punctuation alone and endless runs are taken in little time."""
    assert all(len(word) <= 64 for word in words_of(text))
