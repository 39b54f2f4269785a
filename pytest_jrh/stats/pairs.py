"""What the place of two answers does to a judge that says which is better: how often it takes the
first one, and whether it says the same of a pair in both orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain

import numpy as np

from pytest_jrh.core import frozen
from pytest_jrh.core.scales import PLACES, TIE, Scale, code_of, other_place
from pytest_jrh.core.text import counted, one_line
from pytest_jrh.stats.figures import percent, range_text
from pytest_jrh.stats.intervals import (
    SIGNIFICANCE,
    Estimate,
    binomial_tail,
    estimate_mean,
    estimate_share,
)
from pytest_jrh.stats.verdicts import Coded, Verdicts

_FIRST = code_of(PLACES[0])


@frozen
class Places:
    """The figures of one judge: of verdicts that name an answer, how many name the `first` one that
    was shown; and of pairs that were shown in both orders, how many have the `same` verdict, and
    how many of the others take the answer in one place both times, by the place.
    """

    first: Estimate
    same: Estimate
    taken: Sequence[int]

    @property
    def is_biased(self) -> bool:
        """Whether verdicts that change with the order take one place more often than by chance."""
        most, both = max(self.taken), sum(self.taken)
        return bool(both) and 2 * binomial_tail(most, both, 0.5) < SIGNIFICANCE


def places_of(judged: Verdicts) -> Places | None:
    """The figures of these verdicts; None where they are not of pairs."""
    kinds = judged.kinds("scale", "answers")
    if not kinds.names or not all(scale.orders for scale, _ in kinds.names):
        return None
    shares = kinds.each(lambda kind: _first_share(*kind), float)
    names_one = shares >= 0
    first = estimate_mean(shares[names_one], judged.cluster[names_one])
    is_both = kinds.each(lambda kind: kind[0].orders == len(PLACES))
    of_both, both = judged.where(is_both), kinds[is_both]
    by_order = Coded([scale.by_order(answers) for scale, answers in both.names], both.codes)
    same = by_order.each(lambda answers: len({*answers}) == 1)
    taken = []
    for code in map(code_of, PLACES):
        taken.append(int(by_order.equals((code, other_place(code))).sum()))
    return Places(first, estimate_share(same, of_both.cluster), taken)


@frozen
class Favour:
    """In what share of its pairs a system's answer is the better one, ties half: by people, and how
    much more often by the judge.
    """

    system: str
    people: Estimate
    more: Estimate

    @property
    def is_shown(self) -> bool:
        """Whether the judge is shown to favour the system, or to put it at a disadvantage."""
        lower, upper = self.more.lower, self.more.upper
        return lower is not None and upper is not None and not lower <= 0 <= upper


def favours(judged: Verdicts) -> list[Favour]:
    """Each system that gave some of the answers, those first that win most by people."""
    known, pairs = judged.answered
    codes = np.array([*map(code_of, PLACES)])
    rows = []
    for system in dict.fromkeys(chain.from_iterable(known.systems.present())):
        places = known.systems.each(partial(_place_of, system), int)
        is_in_one = places >= 0
        if not is_in_one.any():
            # Both answers of its pairs are its own.
            continue
        own = codes[places[is_in_one], None]
        wins = np.where(pairs[is_in_one] == own, 1.0, 0.5 * (pairs[is_in_one] == TIE))
        clusters = known.cluster[is_in_one]
        rows.append(
            Favour(
                system,
                estimate_mean(wins[:, 0], clusters),
                estimate_mean(wins[:, 1] - wins[:, 0], clusters, (-1.0, 1.0)),
            )
        )
    return sorted(rows, key=lambda row: -(row.people.value or 0))


def _place_of(system: str, systems: Sequence[str]) -> int:
    """The place of a system's answer; below 0 where it gave none, or both."""
    return systems.index(system) if systems.count(system) == 1 else -1


def _first_share(scale: Scale, answers: Sequence[int]) -> float:
    """The share of verdicts that name the answer that was shown first, of those that name one;
    below 0 where none does.
    """
    half = len(answers) // scale.orders
    shown = [*answers[:half], *map(other_place, answers[half:])]
    named = [answer for answer in shown if other_place(answer) != answer]
    return named.count(_FIRST) / len(named) if named else -1.0


def favour_sentence(favour: Favour) -> str:
    """How often a system wins by people, and by the judge."""
    more, by_people = favour.more.value or 0.0, favour.people.value or 0.0
    text = f"{one_line(favour.system)} wins {percent(by_people)} of its pairs by people and "
    text += f"{percent(by_people + more)} by the judge: {100 * more:+.1f} points"
    lower, upper = favour.more.lower, favour.more.upper
    if lower is not None and upper is not None:
        text += f" ({100 * lower:+.1f} to {100 * upper:+.1f})"
    return f"{text}."


def places_sentence(places: Places) -> str:
    """How often a judge takes the first answer, and what changes with the order."""
    text = f"The judge takes the first answer in {percent(places.first.value)} "
    text += f"({range_text(places.first)}) of its verdicts that name one."
    if not places.same.n:
        return text
    same, (first, second) = places.same, places.taken
    text += f" In both orders it says the same of {same.fraction} pairs ({range_text(same)}%)"
    flips = same.n - (same.count or 0)
    if flips:
        text += f"; of the {counted(flips, 'other')} it takes the first answer both times in "
        text += f"{first:,}, the second in {second:,}"
    return f"{text}."
