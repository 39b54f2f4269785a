"""What the verdicts of compared cases have lost or gained since the baseline, by set of cases; and
the rule by which a set is worse, or may be, with what it says of each, in figures and in clauses.

Two questions have two tests. A changed judge, and another model, may err in other cases for good;
of the same judge asked again only its dice are thrown anew. What is exchanged between before and
now follows from the question, and where two exchanges answer it, the larger p counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist, median_high
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_jrh.core import counted, frozen, one_line, out_of
from pytest_jrh.core.cases import Slices
from pytest_jrh.core.results import JudgeLine
from pytest_jrh.core.scales import BINARY, CaseClass, Scale, off
from pytest_jrh.stats.exchange import CaseErrors, Exchange, SetTest, compare_sets
from pytest_jrh.stats.figures import slice_name, with_sets
from pytest_jrh.stats.intervals import t_quantile
from pytest_jrh.stats.statistics import GIVEN_NO_LEVEL, apart, called, mistakes_text
from pytest_jrh.stats.verdicts import Baseline, Coded, Floats, Ints, Verdicts, distinct, short

Question = Literal["again", "changed", "another"]
"""Whether a judge is the same one asked again, a changed one, or another model."""
EXCHANGES: Mapping[Question, Sequence[Exchange]] = {
    "again": ("inside",),
    "changed": ("inside", "cases"),
    "another": ("runs",),
}

SURE = 0.04
"""A session in which nothing has changed fails about this often at most."""
DOUBT = 0.1
"""Up to here a loss is not shown, and not for nothing either."""
FEWEST_RUNS = 6
"""Another model may have erred in fewer runs by chance: of these nothing is shown."""
FEWEST_LOST = 2
"""A single case is no loss."""
# Whatever p says, so much is too much to call it as good as before: cases net, and a share.
_MATERIAL = {True: (2, 0.15), False: (4, 0.20)}

Word = Literal["", "UNCLEAR", "FAIL"]


class Finding(NamedTuple):
    """What the rule says of one set: empty where it is not called worse.

    `share` is the share of sessions that would lose as much if nothing had changed, and `p_value`
    the one that decided, which counts those that lose exactly as much by half.
    """

    word: Word
    share: float
    p_value: float


NO_FINDING = Finding("", 1.0, 1.0)


ALL, CLASS, RUBRIC, SLICE = "all", "class", "rubric", "slice"
PROBE, SHIFT = "probe", "shift"


class Errors(NamedTuple):
    """The verdicts on a set: how many there are, how many are wrong, and how far off they are in
    the mean of the cases, as a share of the scale; of a shift by how much they are too high.
    """

    verdicts: int
    wrong: int
    mean: float


@frozen
class Asked:
    """What a judge's verdicts are compared as: by default those of a changed judge.

    One that `is_certain` asks no model, so that chance has no part in what it says.
    """

    question: Question = "changed"
    is_certain: bool = False


@frozen
class SetChange:
    """A set of one judge's compared cases, and what the rule says of it.

    `kind` is `ALL` cases, a class, which of two answers is called by its word, or it is of one
    rubric, slice or probe or the shift of a rubric, of that `name`; one class of a rubric or slice
    is `of_class`, too. `answers` are what newly wrong verdicts are instead, where there are
    several. `lost` are the cases, by id, that are newly wrong by their majority, on an ordered
    scale those further off than before, and `won` those of which the reverse is true; of a shift
    they moved away from the labels, or back. `right_before` counts the cases that were right, of
    `n`. Errors are distances where the set `is_ordered`; `width` is the largest there can be.
    `drop` is how much larger the mean error is now, as a share of the scale, and `allowed` how much
    may be lost. `gain` is the p of having become better. `bound` is the smallest drop that other
    runs exclude.
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
    drop: float
    lost: Sequence[str]
    won: Sequence[str]
    right_before: int
    bound: float
    answers: Mapping[str, int]
    allowed: float = 0.0
    asked: Asked = Asked()
    finding: Finding = NO_FINDING
    gain: float = 1.0

    @property
    def is_whole(self) -> bool:
        """Whether it is all cases or a class, and no part of them, shift or probe."""
        return self.kind not in (RUBRIC, SLICE, PROBE, SHIFT)

    @property
    def is_class(self) -> bool:
        """Whether it is a class of all cases; of a scale all cases are one."""
        return self.is_whole and self.of_class is not None

    @property
    def case_word(self) -> str:
        """Which cases are in it."""
        return self.kind if self.of_class is None else f'"{one_line(self.of_class.word)}"'

    @property
    def title(self) -> str:
        """What the set is called in a list."""
        if not self.name:
            return f"{self.case_word} cases"
        name = one_line(self.name)
        if self.of_class is not None:
            return f"{name} ({self.of_class.word})"
        return f"{name} (too high or too low)" if self.kind == SHIFT else name

    @property
    def net(self) -> int:
        """How many more cases have become worse than better."""
        return len(self.lost) - len(self.won)


def judge_losses(
    changes: Sequence[SetChange], tests: Mapping[Exchange, Sequence[SetTest]], *, runs: int
) -> list[Finding]:
    """Apply the rule to the sets of one judge, with their tests by each exchange of its question.

    `runs` is the number of compared runs. A judge that asks no model says nothing by chance.
    """
    shares = [0.0] * len(changes)
    p_values = [0.0] * len(changes)
    for of_sets in tests.values():
        # Classes count by their own p where any set at all is worse by more than chance.
        any_share = min(test.adjusted_share for test in of_sets)
        any_p_value = min(test.adjusted for test in of_sets)
        for number, (change, test) in enumerate(zip(changes, of_sets, strict=True)):
            share, p_value = test.adjusted_share, test.adjusted
            if change.is_whole:
                share, p_value = max(test.share, any_share), max(test.p_value, any_p_value)
            shares[number] = max(shares[number], share)
            p_values[number] = max(p_values[number], p_value)
    may_fail = "runs" not in tests or runs >= FEWEST_RUNS
    findings = []
    for change, share, p_value in zip(changes, shares, p_values, strict=True):
        is_lost = change.drop > change.allowed + _ROUNDING
        is_shown = change.asked.is_certain or (may_fail and p_value < SURE - _ROUNDING)
        fewest, least_drop = _MATERIAL[change.is_class]
        word: Word = ""
        if is_lost and change.net >= FEWEST_LOST and is_shown:
            word = "FAIL"
        elif (is_lost and p_value <= DOUBT + _ROUNDING) or (
            change.net >= fewest and change.drop >= least_drop - _ROUNDING
        ):
            word = "UNCLEAR"
        findings.append(Finding(word, share, p_value))
    return findings


def fisher_test(wrong: int, cases: int, others_wrong: int, others: int) -> float:
    """How likely so many of the wrong cases are among these, or more, if they are no more often
    wrong than the others: Fisher's exact test, one-sided, with mid-p.
    """
    all_wrong = wrong + others_wrong
    all_ways = _log_ways(cases + others, all_wrong)
    likely = []
    for number in range(wrong, min(all_wrong, cases) + 1):
        ways = _log_ways(cases, number) + _log_ways(others, all_wrong - number)
        likely.append(math.exp(ways - all_ways))
    return math.fsum(likely) - likely[0] / 2


def _log_ways(cases: int, number: int) -> float:
    """The logarithm of how many ways there are to choose so many of the cases."""
    return math.lgamma(cases + 1) - math.lgamma(number + 1) - math.lgamma(cases - number + 1)


# What is computed in another order is the same.
_ROUNDING = 1e-9
_HUNDREDTH = 0.01
_EVEN = 0.5


def largest_drop(losses: npt.ArrayLike, sizes: npt.ArrayLike) -> float:
    """The smallest drop that other runs exclude, one-sided; infinite of a single run.

    `losses` are by how much the errors of each run have risen in sum, of `sizes` cases. By
    Student's t over runs. As no loss that was seen says nothing of those that were not, a drop has
    at least the variance of one that breaks whole runs; the smallest one is as large as its
    bound. It is at least the one that breaks none of so many runs in no more than 5% (Louis 1981,
    Am Stat 35:154).
    """
    of_runs, cases = np.asarray(losses, float), np.asarray(sizes, float)
    runs, n = len(cases), cases.sum()
    if runs < 2:  # noqa: PLR2004 - one run has no variance
        return math.inf
    drop = of_runs.sum() / n
    factor = t_quantile(0.95, runs - 1) ** 2 * runs / (runs - 1) / n**2
    seen, whole = factor * ((of_runs - drop * cases) ** 2).sum(), factor * (cases**2).sum()
    # The larger root of (bound - drop)^2 = seen + bound * (1 - bound) * whole.
    middle = drop + whole / 2
    root = math.sqrt(max(0.0, middle**2 - (1 + whole) * (drop**2 - seen)))
    bound = (middle + root) / (1 + whole)
    if bound > 1:
        bound = drop + math.sqrt(seen)
    # The smallest share of broken runs that so many runs without a broken one exclude.
    unbroken = 1.0 - float(0.05 ** (1 / runs))
    return float(max(0.0, bound, drop + unbroken))


def how_asked(
    judge: JudgeLine, digests: Collection[str], baseline: Baseline, *, is_random: bool
) -> Asked:
    """What the verdicts of a judge are compared as, by the digests of the judges that gave those of
    the baseline; one of code may say that it `is_random`.
    """
    lines = [line for line in baseline.judge_lines if line.judge_digest in digests]
    question: Question = "changed"
    if any(line.models != judge.models for line in lines):
        question = "another"
    elif judge.prompt and {*digests} == {short(judge.judge_digest)}:
        # The prompt of code may stand in a file that no digest covers.
        question = "again"
    asks_model = is_random or any(line.asks_model for line in (judge, *lines))
    return Asked(question, is_certain=not asks_model)


def set_changes(
    compared: Verdicts, max_drop: float, asked: Mapping[str, Asked], *, by_slice: bool = False
) -> Sequence[SetChange]:
    """Compare what was with what is, each judge for itself: all cases, each class, each rubric and
    its classes where there are several, with `by_slice` each slice and its classes, the shift of
    each rubric on a scale, and each probe.
    """
    changes: list[SetChange] = []
    for judge, of_judge in compared.grouped("judge").items():
        of_sets = with_sets(of_judge, decides=by_slice)
        changes += _changes_of(judge, of_sets, max_drop, asked.get(judge, Asked()))
    return changes


def _changes_of(
    judge: str, verdicts: Verdicts, max_drop: float, asked: Asked
) -> Iterator[SetChange]:
    """The sets of one judge."""
    verdicts = apart(verdicts)
    kinds = verdicts.kinds("scale", "label", "before", "answers")
    if any(len({*before}) > 1 or len({*now}) > 1 for _, _, before, now in kinds.names):
        asked = replace(asked, is_certain=False)
    scales, before, now = [], [], []
    for scale, label, scores_before, scores_now in kinds.names:
        scales.append(scale)
        before.append(_off(scores_before, label, scale))
        now.append(_off(scores_now, label, scale))
    widths = [scale.width for scale in scales]
    cases = Coded([*map(CaseErrors, before, now, widths)], kinds.codes)
    sides = {}
    for is_shift in (False, True):
        of_before = _Side.of(before, scales, is_shift=is_shift)
        sides[is_shift] = of_before, _Side.of(now, scales, is_shift=is_shift)
    groups = verdicts.kinds("variant", "test", "rubric", "case_class", "scale", "slices")
    groups_of_sets = _sets(groups.names)
    changes = []
    for of_set, of_groups in groups_of_sets.items():
        rows = np.flatnonzero(np.isin(groups.codes, of_groups))
        of_kind = sides[of_set.kind == SHIFT]
        change = _change(of_set, judge, verdicts.where(rows), cases.codes[rows], of_kind)
        # What varies more may lose more: a part, or one of its classes.
        allowed = 2 * max_drop if of_set.kind in (RUBRIC, SLICE) else max_drop
        changes.append(replace(change, allowed=allowed, asked=asked))
    tests = _tests(groups_of_sets, groups, cases, verdicts.cluster, asked.question)
    runs = len(np.unique(verdicts.cluster))
    findings = judge_losses(changes, tests, runs=runs)
    for number, (change, finding) in enumerate(zip(changes, findings, strict=True)):
        better = 1 - min(of_sets[number].p_value for of_sets in tests.values())
        yield replace(change, finding=finding, gain=better)


def _tests(
    groups_of_sets: Mapping[_Set, Sequence[int]],
    groups: Coded[Any],
    cases: Coded[CaseErrors],
    clusters: Ints,
    question: Question,
) -> dict[Exchange, list[SetTest]]:
    """The test of each set by each exchange that the question has."""
    # Cases that are alike are exchanged alike, and counted together.
    runs = clusters if question == "another" else np.zeros(len(clusters), np.int64)
    alike, first = distinct(groups.codes, cases.codes, runs)
    errors = cases[first].values
    sets = []
    for of_groups in groups_of_sets.values():
        sets.append(np.flatnonzero(np.isin(groups.codes[first], of_groups)).tolist())
    shifts = [number for number, of_set in enumerate(groups_of_sets) if of_set.kind == SHIFT]
    numbers, of_runs = np.bincount(alike).tolist(), runs[first].tolist()
    tests = {}
    for exchange in EXCHANGES[question]:
        tests[exchange] = compare_sets(errors, sets, exchange, of_runs, shifts, numbers)
    return tests


class _Set(NamedTuple):
    kind: str
    name: str
    of_class: CaseClass | None
    is_ordered: bool


def _sets(groups: Sequence[Any]) -> dict[_Set, list[int]]:
    """The numbers of each set's groups; of each kind of scale it has a family."""
    sets: dict[_Set, list[int]] = {}
    classes = {}
    for number, (variant, test, rubric, of_class, scale, slices) in enumerate(groups):
        classes.update(dict.fromkeys(map(_kind_of, scale.classes)))
        probe = test if variant else ""
        for of_set in _sets_of(probe, rubric, slices, of_class, is_ordered=scale.is_ordered):
            sets.setdefault(of_set, []).append(number)
    rubrics = Counter(of.is_ordered for of in sets if of.kind == RUBRIC and of.of_class is None)
    kinds = list(dict.fromkeys((ALL, *classes, RUBRIC, SLICE, SHIFT, PROBE)))
    in_order = sorted(sets, key=lambda of: kinds.index(of.kind))
    # One rubric alone is all cases.
    shown = [of for of in in_order if of.kind != RUBRIC or rubrics[of.is_ordered] > 1]
    return {of_set: sets[of_set] for of_set in shown}


def _kind_of(of_class: CaseClass) -> str:
    """What the set of a class is called: a class of a user's may have any word."""
    return of_class.word if of_class in BINARY.classes else CLASS


def _sets_of(
    probe: str, rubric: str, slices: Slices, of_class: CaseClass | None, *, is_ordered: bool
) -> Iterator[_Set]:
    """The sets that a case is in."""
    if probe:
        yield _Set(PROBE, probe, None, is_ordered)
        return
    # Of a scale all cases are one class.
    yield _Set(ALL, "", of_class if is_ordered else None, is_ordered)
    if is_ordered:
        yield _Set(SHIFT, rubric, None, is_ordered)
    elif of_class is not None:
        yield _Set(_kind_of(of_class), "", of_class, is_ordered)
    for kind, name in ((RUBRIC, rubric), *((SLICE, slice_name(*of)) for of in slices)):
        yield _Set(kind, name, None, is_ordered)
        if of_class is not None and not is_ordered:
            yield _Set(kind, name, of_class, is_ordered)


def _off(scores: Sequence[int], label: int, scale: Scale) -> tuple[int, ...]:
    """How far off each score is; one outside of the scale is as far as can be."""
    if not scale.is_ordered:
        return tuple(int(score != label) for score in scores)
    return tuple(max(-scale.width, min(scale.width, off(score, label))) for score in scores)


class _Side(NamedTuple):
    """Of each kind of case before or now: how many verdicts there are, how many are wrong, how far
    off their majority is, in levels, and all in the mean, as a share of the scale; of a shift by
    how much they are too high. `within` says how many levels off is right, of a scale so wide.
    """

    verdicts: Floats
    wrong: Floats
    majority: Floats
    mean: Floats
    within: Floats
    width: Floats

    @classmethod
    def of(
        cls, errors: Iterable[Sequence[int]], scales: Iterable[Scale], *, is_shift: bool
    ) -> _Side:
        """The side with these errors of each kind of case."""
        rows = []
        for of_case, scale in zip(errors, scales, strict=True):
            distances = [*map(abs, of_case)]
            wrong = sum(distance > scale.within for distance in distances)
            counting = of_case if is_shift else distances
            mean = sum(counting) / len(of_case) / scale.width
            rows.append(
                (len(of_case), wrong, median_high(counting), mean, scale.within, scale.width)
            )
        return cls(*np.array(rows, float).T)

    def errors(self, codes: Ints) -> Errors:
        """What the verdicts on cases of these kinds come to."""
        verdicts, wrong = self.verdicts[codes].sum(), self.wrong[codes].sum()
        return Errors(int(verdicts), int(wrong), float(self.mean[codes].mean()))


def _change(
    of_set: _Set, judge: str, verdicts: Verdicts, codes: Ints, sides: tuple[_Side, _Side]
) -> SetChange:
    """The figures of a set, whose cases are of the kinds with these codes."""
    of_before, of_now = sides
    before, now = of_before.errors(codes), of_now.errors(codes)
    # A shift is worse where it is further from 0.
    sign = -1 if before.mean + now.mean < 0 else 1
    moved = sign * (of_now.majority - of_before.majority)
    is_lost, is_won = moved > of_now.within, moved < -of_now.within
    _, runs, sizes = np.unique(verdicts.cluster, return_inverse=True, return_counts=True)
    losses = np.bincount(runs, (sign * (of_now.mean - of_before.mean))[codes])
    return SetChange(
        judge=judge,
        **of_set._asdict(),
        width=int(of_now.width[codes].max()),
        n=len(verdicts),
        runs=len(sizes),
        before=before,
        now=now,
        drop=abs(now.mean) - abs(before.mean),
        lost=tuple(verdicts.ids[is_lost[codes]]),
        won=tuple(verdicts.ids[is_won[codes]]),
        right_before=int(verdicts.was_right.sum()),
        answers=called(verdicts.where(is_lost[codes])),
        bound=largest_drop(losses, sizes),
    )


_MOST_NAMED = 3


def chance_text(change: SetChange, noun: str) -> str:
    """How often chance does as much, of a judge or prompt, as the `noun` says."""
    if change.asked.is_certain:
        return "the judge asks no model, so chance plays no part"
    finding = change.finding
    share, p_value = finding.share, finding.p_value
    of_hundred = "fewer than 1" if share < _HUNDREDTH else f"{100 * share:.0f}"
    if change.asked.question == "again":
        text = f"if nothing had changed, {of_hundred} of 100 sessions would show such a loss"
    elif change.asked.question == "another":
        text = f"{of_hundred} of 100 equally good models would show such a loss"
        if change.runs < change.n:
            text += f" (counting {counted(change.runs, 'cluster')}, not cases)"
    else:
        text = f"{of_hundred} of 100 equally good {noun}s would show such a loss"
    level = SURE if finding.word == "FAIL" else DOUBT
    if p_value <= level < share:
        text += f" ({100 * p_value:.2g} of 100 in the gate, which counts equal losses half)"
    return text


def needed_text(change: SetChange) -> str:
    """What would decide about a set that may be worse."""
    p_value = change.finding.p_value
    if change.asked.question == "another" and change.runs < FEWEST_RUNS:
        return f"compare at least {FEWEST_RUNS} independent cases"
    noun = "case"
    if change.of_class is not None:
        noun = change.of_class.noun or noun
    more = f"more {noun}s"
    if SURE < p_value < _EVEN:
        # As if so many more cases lost as large a share: the normal quantile grows by the root.
        quantile = NormalDist().inv_cdf
        times = (quantile(1 - SURE) / quantile(1 - p_value)) ** 2
        more = counted(max(1, math.ceil(change.n * (times - 1))), f"more {noun}")
    if change.before.verdicts == change.now.verdicts == change.n:
        return f"ask the old and the new judge 3 times (`repeats: 3`), or label {more}"
    return f"label {more}"


def loss_text(sets: Sequence[SetChange]) -> str:
    """What a judge has lost in these sets: the classes, shifts and probes where they are among
    them, else all cases, else the worst rubrics; and the worst slices.
    """
    named = [of for of in sets if of.is_class or of.kind in (SHIFT, PROBE)]
    named = named or [of for of in sets if of.kind == ALL]
    clauses = [*map(_set_text, named)]
    by_name: dict[str, SetChange] = {}
    for of in sorted(sets, key=lambda of: -of.drop):
        if of.kind == SLICE or not named:
            by_name.setdefault(of.name, of)
    texts = []
    for of in [*by_name.values()][:_MOST_NAMED]:
        text = _of_verdicts(of)
        if of.lost:
            right = of.n if of.is_ordered else of.right_before
            text = f"{len(of.lost):,} of {counted(right, 'case')}"
        text += f' of "{of.title}"'
        texts.append(text)
    if len(by_name) > _MOST_NAMED:
        [*_, last] = by_name.values()
        texts.append(f"some of {counted(len(by_name) - _MOST_NAMED, f'other {last.kind}')}")
    if texts:
        clauses.append(f"is newly wrong on {', '.join(texts)}")
    return " and ".join(clauses)


def _set_text(change: SetChange) -> str:
    lost, before = len(change.lost), change.right_before
    if change.kind == PROBE:
        more = f"{change.net:,} more of {counted(change.n, 'verdict')} than before"
        return f"is misled by {one_line(change.name)} in {more}"
    if change.kind == SHIFT:
        direction, unit = "high", change.width
        if change.now.mean < 0:
            direction, unit = "low", -change.width
        was, now = unit * change.before.mean or 0.0, unit * change.now.mean
        text = f'scores "{one_line(change.name)}" {now:.2f} levels too {direction} on average'
        return f"{text} ({was:.2f} before)"
    if change.is_ordered:
        was, now = change.before.mean * change.width, change.now.mean * change.width
        return f"is off by {now:.2f} levels on average ({was:.2f} before)"
    if change.net <= 0:
        return f"is wrong in {_of_verdicts(change)} on {change.case_word} cases"
    if change.of_class is None:
        return f"is newly wrong on {out_of(lost, before, 'case')}"
    text = change.of_class.newly_wrong(lost, before)
    return mistakes_text(change.of_class, before, change.answers, text, "that it passed before")


def _of_verdicts(change: SetChange) -> str:
    now, before = change.now, change.before
    return f"{now.wrong:,} of {counted(now.verdicts, 'verdict')} ({before.wrong:,} before)"


def points(share: float) -> str:
    """A share as points."""
    number = f"{100 * share:.3g}"
    return f"{number} point{'' if number == '1' else 's'}"


def is_better(sets: Sequence[SetChange]) -> bool:
    """Whether the cases of a judge are surely better, and no class is worse."""
    classes = [of for of in sets if of.is_class]
    return all(of.drop <= 0 and of.net <= 0 for of in classes) and any(
        of.kind == ALL and of.drop < 0 and of.gain < SURE for of in sets
    )


def compared_text(is_or_are: str, sets: Sequence[SetChange]) -> str:
    """What a comparison without a loss that chance does not explain comes to, and what it does not
    exclude.
    """
    classes = [of for of in sets if of.is_class]
    n = sum(of.n for of in classes if of.of_class != GIVEN_NO_LEVEL)
    numbers = Counter[str]()
    for of in classes:
        if of.of_class is not None and of.of_class.noun:
            numbers[of.of_class.noun] += of.n
    of_both = counted(n, "case")
    if numbers:
        of_both += f" ({', '.join(counted(number, noun) for noun, number in numbers.items())})"
    if is_better(sets):
        text = f"{is_or_are} better than before on {of_both}"
    elif lost := sum(len(of.lost) for of in classes):
        text = f"{is_or_are} not shown to be worse than before: "
        text += f"{out_of(lost, n, 'case')} newly wrong"
    else:
        text = f"{is_or_are} as good as before on {of_both}"
    hidden: dict[str, SetChange] = {}
    for of in classes:
        kind = f"{of.kind} {of.case_word}"
        if of.bound > max(hidden[kind].bound if kind in hidden else 0, _ROUNDING):
            hidden[kind] = of
    if not hidden:
        return text
    # Of many classes those that may hide most.
    widest = sorted(hidden.values(), key=lambda of: -of.bound)[:_MOST_NAMED]
    if any(of.bound >= 1 for of in widest):
        return f"{text}; on other cases any loss is possible"
    bounds = []
    for of in filter(widest.__contains__, hidden.values()):
        # The smallest change for the worse that other runs exclude, rounded up.
        text_of = f"{math.ceil(10 * of.bound * of.width) / 10:.1f} levels more error"
        if of.of_class is not None and not of.is_ordered:
            rounded_up = math.ceil(round(100 * of.bound, 6))
            text_of = f"{counted(rounded_up, 'point')} {of.of_class.loss}"
        bounds.append(text_of)
    return f"{text}; other cases may have up to {' and '.join(bounds)}"


def about_sets(sets: Sequence[SetChange], noun: str) -> Iterator[str]:
    """What is said of one judge's sets below the headline."""
    classes = [of for of in sets if of.is_class]
    failed = [of for of in sets if of.finding.word == "FAIL"]
    if failed:
        yield chance_text(min(failed, key=lambda of: of.finding.p_value), noun)
    for of in sets:
        if of.kind == PROBE and of.lost and not of.finding.word:
            yield f"newly misled by {one_line(of.name)} in {out_of(len(of.lost), of.n, 'verdict')}"
    won = sum(len(of.won) for of in classes)
    lost = sum(len(of.lost) for of in classes)
    if won and lost:
        cases, net = counted(sum(of.n for of in classes), "case"), abs(lost - won)
        more = f"{net:,} {'more' if lost > won else 'fewer'} of all {cases}"
        change = more if net else "as many cases as before"
        yield f"it is newly right in {counted(won, 'case')}; in total, it is wrong in {change}"
