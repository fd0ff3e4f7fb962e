"""The made-up texts of the benchmarks."""

from odek.bench.corpus import digest_of, seeded_corpus, seeded_documents


def test_made_up_texts_are_the_same_everywhere() -> None:
    """Figures of two machines are of the same texts and questions."""
    corpus = seeded_corpus(50)

    assert digest_of(corpus.documents)[:16] == "ea441b40d80139e5"
    assert digest_of(corpus.questions)[:16] == "ba3db04f0a5e08cf"
    assert not corpus.is_judged


def test_a_larger_corpus_begins_with_the_smaller_one() -> None:
    """So that sizes differ by size alone."""
    assert list(seeded_documents(1_200))[:30] == list(seeded_documents(30))
