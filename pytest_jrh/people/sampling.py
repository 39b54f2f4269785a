"""Cases to label that are drawn evenly from what a judge said of them, with their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_jrh.core import grouped
from pytest_jrh.core.cases import Case
from pytest_jrh.core.documents import listed
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.runs import DEFAULT_SEED, LabelKey
from pytest_jrh.people.board import draw
from pytest_jrh.people.labels import LabelTable
from pytest_jrh.store.records import case_digest

_FEWEST = 2


def drawn_evenly(
    cases: Sequence[Case], words: Mapping[LabelKey, str], size: int, labels: LabelTable
) -> dict[LabelKey, str]:
    """The weights of the cases that are drawn: of how many with its word each is one. Cases without
    a word are not drawn, and of each word those first that have a label.

    Raises `InputError` where there are more words than so few cases can tell.
    """
    by_word = grouped((words[case.spec.label_key], case) for case in cases)
    by_word.pop("", None)
    if not by_word or size < _FEWEST * len(by_word):
        message = f"{size} cases cannot be drawn evenly from {len(by_word):,} different words "
        message += f"({listed(by_word, 5)})"
        hint = f"name a column with few words, or draw {_FEWEST} of each: --sample"
        raise InputError(message, key="--by", hint=hint)
    labelled = {label.case_digest for label in labels.people()}
    weights = {}
    fewest_first = sorted(by_word.values(), key=len)
    for place, of_word in enumerate(fewest_first):
        digests = {case_digest(case): case for case in of_word}
        number = min(len(digests), size // (len(fewest_first) - place))
        size -= number
        for digest in draw(digests, number, DEFAULT_SEED, labelled):
            weights[digests[digest].spec.label_key] = f"{len(digests) / number:.9g}"
    return weights
