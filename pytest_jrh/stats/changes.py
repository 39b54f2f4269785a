"""What the verdicts of compared cases have lost or gained since the baseline, by set of cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

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
    `adjusted` and `gain` are those of the test (`exchange.SetTest`), which exchanged `runs` whole
    where `by_runs` is set. `doubt` is the smaller adjusted p of either exchange, as fewer than five
    runs cannot show a loss. `bound` is the smallest drop that other runs exclude.
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
    doubt: float
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
    sets = _sets(pairs)
    errors = [_errors(pair, widths) for pair in pairs]
    by_cases = compare_sets(errors, [*sets.values()])
    runs = [pair.now.spec.cluster_id for pair in pairs]
    by_runs = compare_sets(errors, [*sets.values()], runs) if others else by_cases
    changes = []
    for (of_set, places), of_runs, of_cases in zip(sets.items(), by_runs, by_cases, strict=True):
        is_other = of_set.judge in others
        test = of_runs if is_other else of_cases
        members = [pairs[place] for place in places]
        by_run = grouped((runs[place], errors[place].rise) for place in places).values()
        changes.append(
            SetChange(
                **of_set._asdict(),
                width=max(_width(pair, widths) for pair in members),
                n=len(members),
                runs=len(by_run),
                before=_summed([errors[place].before for place in places]),
                now=_summed([errors[place].now for place in places]),
                lost=tuple(p.now.case_id for p in members if p.was_right and not p.is_right),
                won=tuple(p.now.case_id for p in members if p.is_right and not p.was_right),
                right_before=sum(pair.was_right for pair in members),
                by_runs=is_other,
                **test._asdict(),
                doubt=min(test.adjusted, of_cases.adjusted),
                bound=largest_drop([*map(sum, by_run)], [*map(len, by_run)]),
            )
        )
    return tuple(changes)


class _Set(NamedTuple):
    kind: SetKind
    judge: str
    name: str = ""


def _sets(pairs: Sequence[Pair]) -> dict[_Set, list[int]]:
    """The places of each set's pairs: by judge its classes, its rubrics where there are several,
    and its probes.
    """
    sets = grouped((each, place) for place, pair in enumerate(pairs) for each in _sets_of(pair))
    rubrics = Counter(each.judge for each in sets if each.kind == "rubric")
    judges = list(dict.fromkeys(each.judge for each in sets))
    kinds = get_args(SetKind)
    ordered = sorted(sets, key=lambda each: (judges.index(each.judge), kinds.index(each.kind)))
    return {
        each: sets[each] for each in ordered if each.kind != "rubric" or rubrics[each.judge] > 1
    }


def _sets_of(pair: Pair) -> Iterator[_Set]:
    spec, judge = pair.now.spec, pair.now.judge
    if spec.derived:
        yield _Set("probe", judge, spec.test)
        return
    label: SetKind = "violated" if pair.now.label else "satisfied"
    yield _Set(label if spec.target_score is None else "all", judge)
    yield _Set("rubric", judge, spec.rubric_id)


def _width(pair: Pair, widths: Widths) -> int:
    spec = pair.now.spec
    if spec.target_score is None:
        return 1
    return max(1, widths.get((spec.suite, spec.rubric_id), 1))


def _errors(pair: Pair, widths: Widths) -> CaseErrors:
    """How far off each verdict was and is; of unknown scores, by the outcome."""
    before, now, label = pair.before.all_scores, pair.now.all_scores, pair.now.label
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
