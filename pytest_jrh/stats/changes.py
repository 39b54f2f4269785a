"""What the verdicts of compared cases have lost or gained since the baseline, by set of cases."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pytest_jrh.stats.exchange import CaseErrors, compare_sets, largest_drop
from pytest_jrh.stats.intervals import grouped

if TYPE_CHECKING:
    from pytest_jrh.stats.baseline import Pair


SetKind: TypeAlias = Literal["violated", "satisfied", "all", "rubric", "probe"]
"""Of a binary judge the cases of either label; of an ordinal one all cases; those of one rubric, or
of one probe.
"""

Widths: TypeAlias = Mapping[tuple[str, str], int]
"""The distance from the lowest score to the highest, by suite and rubric, of ordinal rubrics."""


class Errors(NamedTuple):
    """The verdicts on a set: how many there are, how many are wrong, and how far off they are in
    the mean of the cases, as a share of the scale.
    """

    verdicts: int
    wrong: int
    mean: float


@dataclass(frozen=True, slots=True)
class SetChange:
    """A set of one judge's compared cases, and whether it is judged worse than before.

    `lost` are the cases, by id, whose majority was right and is wrong now, `won` those that were
    wrong and are right. `name` is that of the rubric or the probe. `right_before` counts the cases
    that were right, of `n`. `width` is the scale's of an ordinal rubric, 1 else. `p_value` and
    `adjusted` are those of the test (`exchange.SetTest`), which exchanged `runs` whole where
    `by_runs` is set, and `gain` is the adjusted p of being better. `by_cases` is the adjusted p of
    exchange inside of cases. `bound` is the smallest drop that other runs exclude.
    """

    kind: SetKind
    judge: str
    name: str
    width: int
    n: int
    runs: int
    before: Errors
    now: Errors
    lost: tuple[str, ...]
    won: tuple[str, ...]
    right_before: int
    by_runs: bool
    p_value: float
    adjusted: float
    by_cases: float
    gain: float
    bound: float

    @property
    def drop(self) -> float:
        """How much larger the mean error is now, as a share of the scale; a gain is negative."""
        return self.now.mean - self.before.mean

    @property
    def is_class(self) -> bool:
        """Whether it is a class: the violated cases, the satisfied ones; ordinal: all."""
        return self.kind not in ("rubric", "probe")

    @property
    def is_ordinal(self) -> bool:
        """Whether errors are distances on a scale."""
        return self.width > 1 or self.kind == "all"


def set_changes(
    pairs: Sequence[Pair], widths: Widths, others: Collection[str] = ()
) -> tuple[SetChange, ...]:
    """Compare what was with what is, of each judge: both classes of a binary suite, all cases of an
    ordinal one, each rubric where there are several, and each probe.

    `others` are the judges of which the baseline has the verdicts of another judge: whole runs are
    exchanged.
    """
    sets = list(_sets(pairs))
    if not sets:
        return ()
    errors = [_errors(pair, widths) for pair in pairs]
    places = [of_set.places for of_set in sets]
    by_cases = compare_sets(errors, places)
    runs = [pair.now.spec.cluster_id for pair in pairs]
    by_runs = compare_sets(errors, places, runs) if others else by_cases
    gains = _gains(errors, sets, runs if others else None)
    changes = []
    for number, of_set in enumerate(sets):
        is_other = of_set.judge in others
        test = by_runs[number] if is_other else by_cases[number]
        members = [pairs[place] for place in of_set.places]
        lost = [pair for pair in members if pair.was_right and not pair.is_right]
        won = [pair for pair in members if pair.is_right and not pair.was_right]
        by_run = grouped((runs[place], errors[place].rise) for place in of_set.places)
        changes.append(
            SetChange(
                kind=of_set.kind,
                judge=of_set.judge,
                name=of_set.name,
                width=max(_width(pair, widths) for pair in members),
                n=len(members),
                runs=len(by_run),
                before=_summed([errors[place].before for place in of_set.places]),
                now=_summed([errors[place].now for place in of_set.places]),
                lost=tuple(pair.now.case_id for pair in lost),
                won=tuple(pair.now.case_id for pair in won),
                right_before=sum(pair.was_right for pair in members),
                by_runs=is_other,
                p_value=test.p_value,
                adjusted=test.adjusted,
                by_cases=by_cases[number].adjusted,
                gain=gains[number],
                bound=largest_drop(
                    [sum(rises) for rises in by_run.values()],
                    [len(rises) for rises in by_run.values()],
                ),
            )
        )
    return tuple(changes)


def _gains(
    errors: Sequence[CaseErrors], sets: Sequence[_Set], runs: Sequence[Hashable] | None
) -> list[float]:
    """The adjusted p of each set being better; 1 where a class is not, as nothing is said then."""
    drops = []
    for of_set in sets:
        if of_set.kind not in ("rubric", "probe"):
            drops.append(sum(errors[place].rise for place in of_set.places))
    if max(drops, default=0) > 0 or not any(drops):
        return [1.0] * len(sets)
    turned = [CaseErrors(case.now, case.before) for case in errors]
    tests = compare_sets(turned, [of_set.places for of_set in sets], runs)
    return [test.adjusted for test in tests]


class _Set(NamedTuple):
    kind: SetKind
    judge: str
    name: str
    places: list[int]


def _sets(pairs: Sequence[Pair]) -> Iterator[_Set]:
    judges = grouped((pair.now.judge, place) for place, pair in enumerate(pairs))
    for judge, all_places in judges.items():
        places = [place for place in all_places if not pairs[place].now.spec.derived]
        if not places:
            pass
        elif any(pairs[place].now.spec.target_score is not None for place in places):
            yield _Set("all", judge, "", places)
        else:
            classes = grouped((pairs[place].now.expected, place) for place in places)
            kinds: Mapping[int, SetKind] = {1: "violated", 0: "satisfied"}
            for label, kind in kinds.items():
                if label in classes:
                    yield _Set(kind, judge, "", classes[label])
        rubrics = grouped((pairs[place].now.spec.rubric_id, place) for place in places)
        if len(rubrics) > 1:
            for rubric, of_rubric in rubrics.items():
                yield _Set("rubric", judge, rubric, of_rubric)
        probes = grouped(
            (pairs[place].now.spec.test, place)
            for place in all_places
            if pairs[place].now.spec.derived
        )
        for probe, of_probe in probes.items():
            yield _Set("probe", judge, probe, of_probe)


def _width(pair: Pair, widths: Widths) -> int:
    spec = pair.now.spec
    if spec.target_score is None:
        return 1
    return max(1, widths.get((spec.suite, spec.rubric_id), 1))


def _errors(pair: Pair, widths: Widths) -> CaseErrors:
    """How far off each verdict was and is; of unknown scores, by the outcome."""
    before, now, label = pair.before.all_scores, pair.now.all_scores, pair.now.expected
    if label is None or not before or not now:
        return CaseErrors((float(not pair.was_right),), (float(not pair.is_right),))
    width = _width(pair, widths)
    return CaseErrors(
        tuple(min(1.0, abs(score - label) / width) for score in before),
        tuple(min(1.0, abs(score - label) / width) for score in now),
    )


def _summed(errors: Sequence[tuple[float, ...]]) -> Errors:
    return Errors(
        sum(map(len, errors)),
        sum(error > 0 for of_case in errors for error in of_case),
        sum(sum(of_case) / len(of_case) for of_case in errors) / len(errors),
    )
