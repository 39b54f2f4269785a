"""Differences are by word, exact, bounded, and readable."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core.diffs import Piece, differences

texts = st.lists(
    st.sampled_from(["refund", "order", "17", "late", " ", "\n", ", ", "é", "<b>", "x"]),
    max_size=30,
).map("".join)


def of(kind: str, pieces: tuple[Piece, ...]) -> list[str]:
    return [piece.text for piece in pieces if piece.kind == kind]


@given(old=texts, new=texts)
def test_both_texts_can_be_read_off_the_pieces(old: str, new: str) -> None:
    pieces = differences(old, new)
    assert "".join(piece.text for piece in pieces if piece.kind != "new") == old
    assert "".join(piece.text for piece in pieces if piece.kind != "gone") == new


def test_a_number_is_one_word() -> None:
    pieces = differences("I refund £39.40 of 1,000 now.", "I refund £44.40 of 1,200 now.")
    assert (of("gone", pieces), of("new", pieces)) == (["39.40 of 1,000"], ["44.40 of 1,200"])


def test_only_the_words_that_changed_are_marked() -> None:
    pieces = differences("I cannot refund order 17, it is.", "I have refunded order 17, it is.")
    assert (of("gone", pieces), of("new", pieces)) == (["cannot refund"], ["have refunded"])
