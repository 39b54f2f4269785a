"""What the verdicts of compared cases have lost or gained since the baseline, by set of cases, and
whether by more than chance, in figures and in clauses.

If nothing has changed, verdicts before and now can be exchanged: those of one judge inside of each
case, as only its dice are thrown again; those of two judges by whole runs, as judges that are as
good may err in other runs. p is the share of exchanges with a rise as large (Fisher 1935, The
Design of Experiments, 21), and the smallest p of all sets adjusts for looking at several (Westfall
and Young 1993, Resampling-Based Multiple Testing, 2.3).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pytest_jrh.config.schema import GateRules
from pytest_jrh.core import frozen
from pytest_jrh.core.scales import CaseClass, RubricScales, Scale
from pytest_jrh.core.text import counted, one_line
from pytest_jrh.stats.baseline import Pair
from pytest_jrh.stats.intervals import grouped, t_quantile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers: TypeAlias = npt.NDArray[np.float64]


LEVEL = 0.05
"""A session in which nothing has changed is called worse in no more than this share of all."""
DOUBT = 0.2
"""Up to here a loss is not shown, and not for nothing either."""
# Up to 2 to the power of this, each exchange is counted; else so many are drawn.
_MOST_COUNTED = 14
_DRAWS = 9_999
# What is added up in another order differs by less.
_ROUNDING = 1e-9
_DIGITS = 9
# A run is exchanged as a whole: its sums have either sign, like a case with one verdict lost.
_EITHER_SIGN = ((0.0, 1.0), 1)


class CaseErrors(NamedTuple):
    """How far off each verdict on a case was before, and is now (`Scale.error`)."""

    before: tuple[float, ...]
    now: tuple[float, ...]

    @property
    def rise(self) -> float:
        """By how much the mean error has risen."""
        return sum(self.now) / len(self.now) - sum(self.before) / len(self.before)


class SetTest(NamedTuple):
    """Whether the cases of a set have become worse.

    `p_value` is the probability of a rise as large, or larger, by exchange; `adjusted` that any of
    the sets that were tested together has a p this small. `gain` is the latter of having become
    better.
    """

    p_value: float
    adjusted: float
    gain: float = 1.0


def compare_sets(
    cases: Sequence[CaseErrors],
    sets: Sequence[Sequence[int]],
    runs: Sequence[Hashable] | None = None,
) -> list[SetTest]:
    """Test whether each set has become worse; a set gives the places of its cases in `cases`.

    With `runs`, one for each case, whole runs are exchanged, else the verdicts inside of each case.
    """
    rises = [case.rise for case in cases]
    # What a rise of one adds to each set, a row for all that is exchanged together.
    weights = [[0.0] * len(sets) for _ in cases]
    for number, members in enumerate(sets):
        for place in members:
            weights[place][number] = 1.0
    if runs is None:
        pools = [(tuple(sorted((*case.before, *case.now))), len(case.now)) for case in cases]
    else:
        of_runs: dict[Hashable, list[float]] = {}
        for run, rise, row in zip(runs, rises, weights, strict=True):
            sums_of_run = of_runs.setdefault(run, [0.0] * len(sets))
            for number, weight in enumerate(row):
                sums_of_run[number] += rise * weight
        weights = [[round(total, _DIGITS) for total in row] for row in of_runs.values()]
        pools = [_EITHER_SIGN] * len(weights)
    alike = Counter(
        (tuple(row), *pool)
        for row, pool in zip(weights, pools, strict=True)
        if any(row) and len({*pool[0]}) > 1
    )
    if not alike:
        # Every exchange is as what was seen.
        return [SetTest(1.0, 1.0)] * len(sets)
    import numpy as np

    seen = np.array([sum(rises[place] for place in members) for members in sets])
    sums, shares = _exchanged(alike, seen)
    gains = _p_values(-sums, -seen, shares)
    return [
        SetTest(p_value, adjusted, gain)
        for (p_value, adjusted), (_, gain) in zip(_p_values(sums, seen, shares), gains, strict=True)
    ]


def _p_values(sums: Numbers, seen: Numbers, shares: Numbers) -> list[tuple[float, float]]:
    """How likely a rise as large is, or larger: p of each set, and adjusted."""
    import numpy as np

    p_values = []
    smallest = np.ones(sums.shape[1])
    for of_set, rise in zip(sums, seen, strict=True):
        values, places = np.unique(np.round(of_set, _DIGITS), return_inverse=True)
        tails = np.append(np.cumsum(np.bincount(places, shares)[::-1])[::-1], 0.0)
        p_values.append(min(1.0, float(tails[np.searchsorted(values, rise - _ROUNDING)])))
        smallest = np.minimum(smallest, tails[places])
    together = [float(shares[smallest <= p_value + _ROUNDING].sum()) for p_value in p_values]
    return [
        (p_value, min(1.0, max(p_value, adjusted)))
        for p_value, adjusted in zip(p_values, together, strict=True)
    ]


def _exchanged(
    alike: Counter[tuple[tuple[float, ...], tuple[float, ...], int]], seen: Numbers
) -> tuple[Numbers, Numbers]:
    """The rise of each set, a row each, in each exchange, and how likely each exchange is.

    `alike` counts what is exchanged: its weights, the errors before and now, and how many are now.
    """
    import numpy as np

    moves = []
    for (of_sets, errors, now), number in alike.items():
        moves.append((np.array(of_sets)[:, None], *_dealt(errors, now), number))
    if sum(number * math.log2(len(values)) for _, values, _, number in moves) <= _MOST_COUNTED:
        sums, shares = np.zeros((len(seen), 1)), np.ones(1)
        for weights, values, of_values, number in moves:
            for _ in range(number):
                added = weights[:, :, None] * values
                sums = (sums[:, :, None] + added).reshape(len(seen), -1)
                shares = (shares[:, None] * of_values).ravel()
        return sums, shares
    # The same figures each time: of all of numpy's generators this one gives the same numbers with
    # every version.
    rng = np.random.RandomState(0)
    # What was seen is one of the exchanges: no p is 0 (Phipson and Smyth 2010).
    sums = np.zeros((len(seen), _DRAWS + 1))
    for weights, values, of_values, number in moves:
        sums[:, :-1] += weights * (rng.multinomial(number, of_values, _DRAWS) @ values)
    sums[:, -1] = seen
    return sums, np.full(_DRAWS + 1, 1 / (_DRAWS + 1))


@lru_cache(maxsize=4096)
def _dealt(errors: tuple[float, ...], now: int) -> tuple[Numbers, Numbers]:
    """By how much the mean error rises, over all ways to deal so many of the errors to now: the
    values, and how likely each is.
    """
    import numpy as np

    # By number of errors dealt: in how many ways they add up to each sum.
    ways: list[Counter[float]] = [Counter({0.0: 1}), *(Counter[float]() for _ in range(now))]
    for error in errors:
        for number in range(now, 0, -1):
            for total, count in ways[number - 1].items():
                ways[number][round(total + error, _DIGITS)] += count
    before, everything = len(errors) - now, sum(errors)
    rises: Counter[float] = Counter()
    for total, count in ways[now].items():
        rises[round(total / now - (everything - total) / before, _DIGITS)] += count
    values = sorted(rises)
    return np.array(values), np.array([rises[value] for value in values]) / rises.total()


def largest_drop(losses: Sequence[float], sizes: Sequence[int]) -> float:
    """The smallest drop that other runs exclude, one-sided; infinite of a single run.

    `losses` are by how much the errors of each run have risen in sum, of `sizes` cases. By
    Student's t over runs. As no loss that was seen says nothing of those that were not, a drop has
    at least the variance of one that breaks whole runs; the smallest one is as large as its
    bound. It is at least the one that breaks none of so many runs in no more than 5% (Louis 1981,
    Am Stat 35:154).
    """
    runs, n = len(sizes), sum(sizes)
    if runs < 2:  # noqa: PLR2004 - one run has no variance
        return math.inf
    drop = math.fsum(losses) / n
    squares = math.fsum((loss - drop * size) ** 2 for loss, size in zip(losses, sizes, strict=True))
    factor = t_quantile(0.95, runs - 1) ** 2 * runs / (runs - 1) / n**2
    seen, whole = factor * squares, factor * sum(size**2 for size in sizes)
    # The larger root of (bound - drop)^2 = seen + bound * (1 - bound) * whole.
    middle = drop + whole / 2
    root = math.sqrt(max(0.0, middle**2 - (1 + whole) * (drop**2 - seen)))
    bound = (middle + root) / (1 + whole)
    if bound > 1:
        bound = drop + math.sqrt(seen)
    # The smallest share of broken runs that so many runs without a broken one exclude.
    unbroken = 1.0 - float(0.05 ** (1 / runs))
    return max(0.0, bound, drop + unbroken)


RUBRIC = "rubric"
PROBE = "probe"


class Errors(NamedTuple):
    """The verdicts on a set: how many there are, how many are wrong, and how far off they are in
    the mean of the cases, as a share of the scale.
    """

    verdicts: int
    wrong: int
    mean: float


@frozen
class SetChange:
    """A set of one judge's compared cases, and whether it is judged worse than before.

    `kind` is the word of the class of its cases (`of_class`), or it is of one rubric or probe, of
    that `name`. `lost` are the cases, by id, whose majority was right and is wrong now, `won` those
    that were wrong and are right. `right_before` counts the cases that were right, of `n`. Errors
    are distances where the set `is_ordered`; `width` is the largest there can be. `p_value` and
    `adjusted` and `gain` are those of the test (`SetTest`), which exchanged `runs` whole
    where `by_runs` is set. `doubt` is the smaller adjusted p of either exchange, as fewer than five
    runs cannot show a loss. `bound` is the smallest drop that other runs exclude.
    """

    kind: str
    judge: str
    name: str
    of_class: CaseClass | None
    is_ordered: bool
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
        """Whether it is of a class, and not of a rubric or a probe."""
        return self.kind not in (RUBRIC, PROBE)


def set_changes(
    pairs: Sequence[Pair], scales: RubricScales, others: Collection[str]
) -> tuple[SetChange, ...]:
    """Compare what was with what is, of each judge: each class, each rubric where there are
    several, and each probe.

    `others` are the judges of which the baseline has the verdicts of another judge: whole runs are
    exchanged.
    """
    if not pairs:
        return ()
    sets = _sets(pairs)
    errors = [_errors(pair, scales) for pair in pairs]
    by_cases = compare_sets(errors, [*sets.values()])
    runs = [pair.now.spec.cluster_id for pair in pairs]
    by_runs = compare_sets(errors, [*sets.values()], runs) if others else by_cases
    changes = []
    for (of_set, places), of_runs, of_cases in zip(sets.items(), by_runs, by_cases, strict=True):
        is_other = of_set.judge in others
        test = of_runs if is_other else of_cases
        lost, won = [], []
        right_before = 0
        of_scales, rises = [], []
        for place in places:
            pair = pairs[place]
            of_scales.append(_scale(pair, scales))
            rises.append((runs[place], errors[place].rise))
            right_before += pair.was_right
            if pair.was_right and not pair.is_right:
                lost.append(pair.now.case_id)
            elif pair.is_right and not pair.was_right:
                won.append(pair.now.case_id)
        rises_by_run = grouped(rises).values()
        changes.append(
            SetChange(
                **of_set._asdict(),
                is_ordered=any(scale.is_ordered for scale in of_scales),
                width=max(scale.width for scale in of_scales),
                n=len(places),
                runs=len(rises_by_run),
                before=_summed([errors[place].before for place in places]),
                now=_summed([errors[place].now for place in places]),
                lost=tuple(lost),
                won=tuple(won),
                right_before=right_before,
                by_runs=is_other,
                **test._asdict(),
                doubt=min(test.adjusted, of_cases.adjusted),
                bound=largest_drop([*map(sum, rises_by_run)], [*map(len, rises_by_run)]),
            )
        )
    return tuple(changes)


class _Set(NamedTuple):
    kind: str
    judge: str
    name: str = ""
    of_class: CaseClass | None = None


def _sets(pairs: Sequence[Pair]) -> dict[_Set, list[int]]:
    """The places of each set's pairs: by judge its classes, its rubrics where there are several,
    and its probes.
    """
    sets: dict[_Set, list[int]] = {}
    classes: dict[str, None] = {}
    for place, pair in enumerate(pairs):
        result = pair.now
        if result.spec.derived:
            sets.setdefault(_Set(PROBE, result.judge, result.test), []).append(place)
            continue
        classes.update(dict.fromkeys(of_class.word for of_class in result.scale.classes))
        of_rubric = _Set(RUBRIC, result.judge, result.rubric_id)
        sets.setdefault(of_rubric, []).append(place)
        of_class = result.case_class
        if of_class is not None:
            by_class = _Set(of_class.word, result.judge, "", of_class)
            sets.setdefault(by_class, []).append(place)
    rubrics = Counter(of_set.judge for of_set in sets if of_set.kind == RUBRIC)
    judges = list(dict.fromkeys(of_set.judge for of_set in sets))
    kinds = [*classes, RUBRIC, PROBE]
    in_order = sorted(sets, key=lambda of: (judges.index(of.judge), kinds.index(of.kind)))
    shown = [of for of in in_order if of.kind != RUBRIC or rubrics[of.judge] > 1]
    return {of_set: sets[of_set] for of_set in shown}


def _scale(pair: Pair, scales: RubricScales) -> Scale:
    return scales.get((pair.now.suite, pair.now.rubric_id), pair.now.scale)


def _errors(pair: Pair, scales: RubricScales) -> CaseErrors:
    """How far off each verdict was and is; of unknown scores, by the outcome."""
    before, now, label = pair.before.complete_scores, pair.now.complete_scores, pair.now.label
    if label is None or not before or not now:
        return CaseErrors((float(not pair.was_right),), (float(not pair.is_right),))
    scale = _scale(pair, scales)
    return CaseErrors(
        tuple(scale.error(score, label) for score in before),
        tuple(scale.error(score, label) for score in now),
    )


def _summed(errors: Sequence[tuple[float, ...]]) -> Errors:
    return Errors(
        sum(map(len, errors)),
        sum(error > 0 for of_case in errors for error in of_case),
        sum(sum(of_case) / len(of_case) for of_case in errors) / len(errors),
    )


_MOST_NAMED = 3


def chance_text(p_value: float) -> str:
    """How often chance does as much."""
    of_hundred = 100 * p_value
    if of_hundred < 1:
        return "chance does as much in fewer than 1 of 100"
    return f"chance does as much in {of_hundred:.0f} of 100"


def allowed_drop(change: SetChange, rules: GateRules) -> float:
    """What a set may lose: of a rubric twice as much as of a class."""
    return 2 * rules.max_drop if change.kind == RUBRIC else rules.max_drop


def loss_text(sets: Sequence[SetChange]) -> str:
    """What a judge has lost in these sets: the classes and probes where they are among them, else
    the worst rubrics.
    """
    named = [of for of in sets if of.kind != RUBRIC]
    if named:
        return " and ".join(map(_class_text, named))
    rubrics = sorted(sets, key=lambda of: -of.drop)
    texts = []
    for of in rubrics[:_MOST_NAMED]:
        number = f"{len(of.lost):,} of {of.right_before:,}" if of.lost else _of_verdicts(of)
        texts.append(f"{number} of {one_line(of.name)}")
    if len(rubrics) > _MOST_NAMED:
        texts.append(f"more of {counted(len(rubrics) - _MOST_NAMED, 'other rubric')}")
    return f"is newly wrong on {', '.join(texts)}"


def _class_text(change: SetChange) -> str:
    lost, before = len(change.lost), change.right_before
    if change.kind == PROBE:
        turned = counted(lost - len(change.won), "more verdict")
        return f"is turned by {one_line(change.name)} in {turned} of {change.n:,} than before"
    if change.is_ordered:
        was, now = change.before.mean * change.width, change.now.mean * change.width
        return f"is off by {now:.2f} levels on average, before by {was:.2f}"
    if lost <= len(change.won):
        return f"is wrong in {_of_verdicts(change)} on {change.kind} cases"
    assert change.of_class is not None
    return change.of_class.newly_wrong(lost, before)


def _of_verdicts(change: SetChange) -> str:
    now, before = change.now, change.before
    return f"{now.wrong:,} of {counted(now.verdicts, 'verdict')} (before {before.wrong:,})"


def points(share: float) -> str:
    """A share as points."""
    number = f"{100 * share:.3g}"
    return f"{number} point{'' if number == '1' else 's'}"


def is_better(sets: Sequence[SetChange]) -> bool:
    """Whether a class is surely better, and none is worse."""
    classes = [of for of in sets if of.is_class]
    return all(of.drop <= 0 for of in classes) and any(
        of.drop < 0 and of.gain < LEVEL - _ROUNDING for of in classes
    )


def compared_text(is_or_are: str, sets: Sequence[SetChange]) -> str:
    """What a comparison without a loss that chance does not explain comes to, and what it does not
    exclude.
    """
    classes = [of for of in sets if of.is_class]
    cases = counted(sum(of.n for of in classes), "case")
    numbers: Counter[str] = Counter()
    for of in classes:
        if of.of_class is not None and of.of_class.noun:
            numbers[of.of_class.noun] += of.n
    of_both = cases
    if numbers:
        of_both += f" ({', '.join(counted(number, noun) for noun, number in numbers.items())})"
    if is_better(sets):
        text = f"{is_or_are} better than before on {of_both}"
    elif lost := sum(len(of.lost) for of in classes):
        text = f"{is_or_are} not shown to be worse than before: {lost:,} of {cases} newly wrong"
    else:
        text = f"{is_or_are} as good as before on {of_both}"
    hidden: dict[str, SetChange] = {}
    for of in classes:
        if of.bound > max(hidden[of.kind].bound if of.kind in hidden else 0, _ROUNDING):
            hidden[of.kind] = of
    if not hidden:
        return text
    return f"{text}: up to {' and '.join(map(_bound_text, hidden.values()))} could hide"


def about_sets(sets: Sequence[SetChange], rules: GateRules) -> Iterator[str]:
    """What is said of one judge's sets below the headline."""
    classes = [of for of in sets if of.is_class]
    failed = [
        of
        for of in sets
        if of.drop > allowed_drop(of, rules) + _ROUNDING and of.adjusted < LEVEL - _ROUNDING
    ]
    if failed:
        worst = min(failed, key=lambda of: of.adjusted)
        unit = f" ({counted(worst.runs, 'run')} exchanged)" if worst.by_runs else ""
        clauses = []
        for of in classes:
            if of.of_class is not None and of.drop <= 0 and not of.lost:
                clauses.append(of.of_class.none_wrong(0, of.right_before))
        yield "; ".join([*filter(None, clauses), f"{chance_text(worst.adjusted)}{unit}"])
    won = sum(len(of.won) for of in classes)
    lost = sum(len(of.lost) for of in classes)
    if won and lost:
        cases, net = counted(sum(of.n for of in classes), "case"), abs(lost - won)
        more = f"{net:,} {'more' if lost > won else 'fewer'} {'is' if net == 1 else 'are'}"
        change = more if net else "as many are"
        yield f"{won:,} the other way; of all {cases} {change} wrong"


def _bound_text(change: SetChange) -> str:
    """The smallest change for the worse that other runs exclude, rounded up."""
    if not math.isfinite(change.bound):
        return "any loss"
    if change.is_ordered or change.of_class is None:
        levels = math.ceil(10 * change.bound * change.width) / 10
        return f"{levels:.1f} levels more error"
    rounded_up = math.ceil(round(100 * change.bound, 6))
    return f"{counted(rounded_up, 'point')} {change.of_class.loss}"
