"""Differences are by word, exact, bounded, and readable."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core.diffs import Piece, differences, near_changes

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


def test_only_the_words_that_changed_are_marked() -> None:
    pieces = differences(
        "I cannot refund order 17, it is late.", "I have refunded order 17, it is late."
    )
    assert (of("gone", pieces), of("new", pieces)) == (["cannot refund"], ["have refunded"])


def test_a_short_word_between_two_changes_does_not_break_them_up() -> None:
    pieces = differences("the red and old lamp in the hall", "the blue and new lamp in the hall")
    assert of("gone", pieces) == ["red and old"]


def test_texts_with_little_in_common_are_shown_as_two_wholes() -> None:
    pieces = differences(
        "We refund nothing after a month, sorry.", "Your money is on its way: all of it, today!"
    )
    assert (len(of("gone", pieces)), len(of("new", pieces))) == (1, 1)


def test_a_first_word_in_common_does_not_split_a_rewritten_text() -> None:
    old, new = (
        "I have refunded it in full, as you asked me to.",
        "I am sorry, but nothing can be done about that.",
    )
    assert differences(old, new) == (Piece("gone", old), Piece("new", new))


@pytest.mark.timeout(20)
def test_huge_texts_are_compared_without_stalling() -> None:
    words = [f"w{random.Random(1).randrange(50)}" for _ in range(60_000)]
    other = [*words[:100], "changed", *words[101:30_000], "again", *words[30_001:]]
    pieces = differences(" ".join(words), " ".join(other))
    assert "changed" in "".join(of("new", pieces))


def test_of_what_is_the_same_the_words_beside_a_change_are_shown() -> None:
    old = f"{'before ' * 90}late{' after' * 90}"
    pieces = near_changes(differences(old, old.replace("late", "soon")), 20)
    assert [(piece.kind, piece.text.strip()) for piece in pieces] == [
        ("same", "… before before"),
        ("gone", "late"),
        ("new", "soon"),
        ("same", "after after after …"),
    ]
