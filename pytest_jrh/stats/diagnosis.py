"""Warnings about judges whose accuracy may look fine and means nothing, over all cases and per
rubric: whether verdicts could be those of a judge that is worth something.

Also the figures of a set of results as a list, for reports that have no table to show them in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import erfc, exp, lgamma, sqrt
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_jrh.core.text import counted, one_line
from pytest_jrh.stats.figures import (
    COLUMNS,
    decimal,
    range_text,
    ranged,
    sections,
    tie_sentence,
    value_text,
)
from pytest_jrh.stats.formulas import SIGNIFICANCE, Estimate, binomial, holm
from pytest_jrh.stats.intervals import LEVEL, Tally, bias_p, effective_size, kappa_p, tallied
from pytest_jrh.stats.statistics import sums_by_cluster

if TYPE_CHECKING:
    from pytest_jrh.core.model import Mode
    from pytest_jrh.stats.figures import Column, FigureKind, Section
    from pytest_jrh.stats.formulas import ConfusionMatrix
    from pytest_jrh.stats.statistics import Statistics, StatisticsTable


# The share of right verdicts, as the mean over both labels, from which a judge is called sound.
_SOUND = 0.8
# Its shares for the two labels: from right on all of one label to equally right on both.
_SHARES = tuple((number / 20, 2 * _SOUND - number / 20) for number in range(12, 21))
_SUMS_ROUNDING = 1e-9


def unsound_p(violated: Iterable[Tally], satisfied: Iterable[Tally]) -> float:
    """The largest probability that a sound judge does as badly as this one, or worse; 1 where a
    label has no case.

    Sound is a judge that is right in 80% of the cases of either label, or on average over both. How
    badly is Youden's index (1950, Cancer 3:32-35), the sum of both shares of right verdicts. The
    tallies are clusters, and each label counts with its effective number of cases.
    """
    labels = [_effective(list(tallies)) for tallies in (violated, satisfied)]
    if not all(label.n for label in labels):
        return 1.0
    one, other = labels
    index = one.right / one.n + other.right / other.n
    return max(_at_most(index, one.n, other.n, *shares) for shares in _SHARES)


def missed_p(missed: int) -> float:
    """The probability that a sound judge is wrong on so many cases in a row, of one label."""
    return float((1 - (2 * _SOUND - 1)) ** missed)


def _effective(tallies: Sequence[Tally]) -> Tally:
    """The cases of one label, as so many independent ones."""
    n, right = sum(tally.n for tally in tallies), sum(tally.right for tally in tallies)
    size = int(effective_size(tallies) + _SUMS_ROUNDING)
    return Tally(round(right / n * size), size) if n else Tally(0, 0)


def _at_most(index: float, n: int, other: int, share: float, other_share: float) -> float:
    """The probability that the two shares of right verdicts sum to no more than `index`."""
    below = [0.0]
    for probability in binomial(other, other_share):
        below.append(below[-1] + probability)
    total = 0.0
    for right, probability in enumerate(binomial(n, share)):
        rest = index - right / n
        if rest >= -_SUMS_ROUNDING:
            most = int(rest * other + _SUMS_ROUNDING)
            total += probability * below[min(most, other) + 1]
    return min(1.0, total)


_MEANINGS = {0: "satisfied", 1: "violated"}
# Up to here kappa is "fair" at best (Landis and Koch 1977, Biometrics 33:159-174).
_FAIR = 0.4
# From here it is "substantial". Since near misses count in part, one of ten random judges has more
# than 0.4 with 8 to 12 scores.
_SUBSTANTIAL = 0.6
_FEWEST_VERDICTS = 4
# A single case has one label, whatever the suite.
_FEWEST_LABELS = 2
# So large a share of verdicts that are the same, of so many, is as good as all.
_NEARLY_ALL = 0.95
_FEWEST_NEARLY = 20
# In levels of the scale.
_LARGE_BIAS = 0.5
_MOST_NAMED = 5
# Logarithms of equally likely tables differ by rounding, and by more than this where the tables are
# not.
_ROUNDING = 1e-7
Probability: TypeAlias = Callable[[], float]


@dataclass(frozen=True, slots=True)
class _Finding:
    """What is wrong with a judge, and `p`, how likely it is of one that is worth something."""

    kind: str
    text: str
    p: Probability


def section_warnings(section: Section) -> list[str]:
    """All warnings about the figures of one judge."""
    rubrics = [row.statistics for row in section.rows if row.level == "rubric"]
    return all_warnings(section.total, rubrics, section.mode)


def all_warnings(total: Statistics, rubrics: Sequence[Statistics], mode: Mode) -> list[str]:
    """Warnings about one judge over all its cases, and about single rubrics.

    Constant, random and inverted verdicts are not reported below four verdicts, or where all labels
    are the same. What is true of all cases is not said of a rubric again. About a rubric, constant,
    random, inverted and biased verdicts are only reported where they are unlikely of a sound judge,
    by Holm's method over the rubrics.
    """
    findings = _of_total(total, mode)
    lines = [finding.text for finding in findings] + _contradictions(total)
    if ties := tie_sentence(total):
        lines.append(ties)
    reported = {finding.kind for finding in findings}
    if len(rubrics) > 1 and "constant" not in reported:
        lines += _rubric_lines(list(_of_rubrics(rubrics, mode)), reported, len(rubrics))
    return lines


def _rubric_lines(
    findings: Sequence[tuple[Statistics, _Finding]], reported: set[str], rubrics: int
) -> list[str]:
    """What is said of rubrics, beside what is reported of all cases; alike ones in one line."""
    # A bias of all cases may be that of some rubrics alone.
    if sum(finding.kind == "bias" for _, finding in findings) < rubrics:
        reported = reported - {"bias"}
    named: dict[str, list[str]] = {}
    for rubric, finding in findings:
        if finding.kind not in reported:
            named.setdefault(finding.text, []).append(one_line(rubric.counts.rubric))
    return [f"{_listed(names)}: {text[0].lower()}{text[1:]}" for text, names in named.items()]


def one_class(statistics: Statistics, mode: Mode) -> str:
    """What is said where all labels are the same; nothing where they are not."""
    matrix = statistics.matrices.get(mode)
    if matrix is None or matrix.n < _FEWEST_LABELS or sum(map(bool, matrix.rows)) > 1:
        return ""
    [label] = [score for score, row in zip(matrix.labels, matrix.rows, strict=True) if row]
    cases = f"Only cases of score {label}"
    if mode == "binary" and label in _MEANINGS:
        cases = f"Only {_MEANINGS[label]} cases"
    return f"{cases}: a judge that always says {label} would get 100%."


def _of_total(total: Statistics, mode: Mode) -> list[_Finding]:
    independence = _independence(total, mode)
    findings = [finding for finding in independence if _holds_for_all(finding, mode)][:1]
    if not findings or findings[0].kind == "chance":
        findings += [finding for finding in _bias(total, mode) if finding.p() < SIGNIFICANCE]
    if same := one_class(total, mode):
        findings.append(_Finding("one class", same, lambda: 0.0))
    return findings


def flaw_of_total(total: Statistics, mode: Mode) -> str:
    """Which flaw makes a judge's verdicts worth nothing: `constant`, `near`, `inverted` or
    `chance`; empty where there is none.
    """
    for finding in _of_total(total, mode):
        if finding.kind not in ("bias", "one class"):
            return finding.kind
    return ""


def _holds_for_all(finding: _Finding, mode: Mode) -> bool:
    """Whether to say it of a whole suite, where a constant verdict is plain to see.

    So is an inverted one, by its own test; and of scores that are random, which few sound judges
    give even on a dozen cases.
    """
    in_doubt = ("near", "chance") if mode == "binary" else ("near",)
    return finding.kind not in in_doubt or finding.p() < SIGNIFICANCE


def _of_rubrics(rubrics: Sequence[Statistics], mode: Mode) -> Iterable[tuple[Statistics, _Finding]]:
    unlikely: list[tuple[Statistics, _Finding]] = []
    for look in (_independence, _bias):
        worst: list[tuple[Statistics, _Finding]] = []
        for rubric in rubrics:
            worst += [(rubric, finding) for finding in look(rubric, mode)[:1]]
        # The other rubrics are no finding, so that they count with 1.
        p_values = [finding.p() for _, finding in worst] + [1.0] * (len(rubrics) - len(worst))
        for rubric_finding, p in zip(worst, holm(p_values), strict=False):
            if p < SIGNIFICANCE:
                unlikely.append(rubric_finding)
    worse = {id(rubric) for rubric, finding in unlikely if finding.kind not in ("bias", "chance")}
    for rubric, finding in unlikely:
        if finding.kind != "bias" or id(rubric) not in worse:
            yield rubric, finding
    for rubric in rubrics:
        if same := one_class(rubric, mode):
            yield rubric, _Finding("one class", same, lambda: 0.0)


def _independence(statistics: Statistics, mode: Mode) -> list[_Finding]:
    """What is wrong with verdicts that do not depend on the cases, the worst first."""
    matrix = statistics.matrices.get(mode)
    if (
        matrix is None
        or matrix.n < _FEWEST_VERDICTS
        or sum(map(bool, matrix.rows)) < _FEWEST_LABELS
    ):
        return []
    columns = zip(matrix.labels, matrix.columns, strict=True)
    answer, most = max(columns, key=lambda column: column[1])
    verdict = str(answer)
    if mode == "binary" and answer in _MEANINGS:
        verdict = f"{answer} ({_MEANINGS[answer]})"
    if most == matrix.n:
        text = f"Constant verdict: {verdict} for all {matrix.n:,} cases."
        return [_Finding("constant", text, _constant_p(statistics, mode, answer))]
    kappa = _kappa(statistics, mode)
    if kappa is None:
        return []
    findings = []
    if (
        matrix.n >= _FEWEST_NEARLY
        and most >= _NEARLY_ALL * matrix.n
        and kappa < (_FAIR if mode == "binary" else _SUBSTANTIAL)
    ):
        text = (
            f"Near-constant verdict: {verdict} for {most:,} of {matrix.n:,} cases (kappa "
            f"{decimal(kappa)})."
        )
        findings.append(_Finding("near", text, _unsound_p(statistics, mode)))
    return findings + _by_chance(statistics, matrix, kappa, mode)


def _by_chance(
    statistics: Statistics, matrix: ConfusionMatrix, kappa: float, mode: Mode
) -> list[_Finding]:
    if mode == "ordinal":
        chance, name, enough = mantel(matrix), "Mantel's test p", _SUBSTANTIAL
    elif matrix.labels == tuple(_MEANINGS):
        chance, name, enough = fisher_exact(matrix), "Fisher's exact p", _FAIR
    else:
        # A score that no binary judge can give: nothing is known of such a table.
        return []
    odds = f"kappa {decimal(kappa)}, {name} = {chance:.2g}"
    if kappa <= -_FAIR and chance < SIGNIFICANCE:
        return [_Finding("inverted", f"Inverted labels (kappa {kappa:.2f}).", lambda: chance)]
    if mode == "ordinal" and kappa < 0 and chance < SIGNIFICANCE:
        text = f"Scores agree with the labels less than by chance (weighted {odds})."
        return [_Finding("inverted", text, lambda: chance)]
    if kappa >= enough or chance < SIGNIFICANCE:
        return []
    text = f"Scores are indistinguishable from chance (weighted {odds})."
    if mode == "binary":
        text = f"Verdicts are indistinguishable from chance ({odds})."
    return [_Finding("chance", text, _unsound_p(statistics, mode))]


def _bias(statistics: Statistics, mode: Mode) -> list[_Finding]:
    """Scores that are too high, or too low, by half a level or more."""
    bias = statistics.figures.get("bias", Estimate())
    if mode == "binary" or bias.value is None or abs(bias.value) < _LARGE_BIAS:
        return []
    direction = "high" if bias.value > 0 else "low"
    text = (
        f"Scores are {abs(bias.value):.2f} levels too {direction} on average (bias "
        f"{decimal(bias.value)}, 95% interval {range_text(bias, 'number')})."
    )
    return [_Finding("bias", text, lambda: bias_p(sums_by_cluster(statistics.judged)))]


def _unsound_p(statistics: Statistics, mode: Mode) -> Probability:
    if mode == "ordinal":
        return lambda: kappa_p(sums_by_cluster(statistics.judged), _SUBSTANTIAL)
    return lambda: unsound_p(_tallies(statistics, 1), _tallies(statistics, 0))


def _constant_p(statistics: Statistics, mode: Mode, answer: int) -> Probability:
    if mode == "binary":
        return _unsound_p(statistics, mode)
    clusters = {result.spec.cluster_id for result in statistics.judged if result.expected != answer}
    return lambda: missed_p(len(clusters))


def _tallies(statistics: Statistics, label: int) -> list[Tally]:
    return tallied(
        (result.spec.cluster_id, result.outcome == "agree")
        for result in statistics.judged
        if result.expected == label
    )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown} and {counted(more, 'more rubric')}" if more > 0 else shown


def _contradictions(statistics: Statistics) -> list[str]:
    counts = statistics.counts
    if not counts.contradicted:
        return []
    return [
        f"Reasoning and score disagree in {counts.contradicted:,} of "
        f"{counted(counts.n, 'verdict')}: the reasoning ends in another verdict than the score. "
        "The score counts."
    ]


def mantel(matrix: ConfusionMatrix) -> float:
    """Two-sided p-value of the linear association of labels and scores under independence; 1
    without any spread.

    `(n - 1) r^2`, chi-square with one degree of freedom (Mantel 1963, J Am Stat Assoc 58:690-700).
    With both margins given, r decides how large the quadratically weighted kappa is. Like Fisher's
    test it takes verdicts to be independent of each other.
    """
    n = matrix.n
    rows = list(zip(matrix.labels, matrix.rows, strict=True))
    columns = list(zip(matrix.labels, matrix.columns, strict=True))
    label, score = (sum(value * count for value, count in margin) / n for margin in (rows, columns))
    spread = sum(count * (value - label) ** 2 for value, count in rows)
    spread *= sum(count * (value - score) ** 2 for value, count in columns)
    if not spread:
        return 1.0
    together = matrix.expectation(lambda one, other: (one - label) * (other - score))
    return erfc(abs(together) * sqrt((n - 1) / (2 * spread)))


def fisher_exact(matrix: ConfusionMatrix) -> float:
    """Two-sided exact p-value of a table of two labels and two answers under independence.

    Fisher 1935, J R Stat Soc 98:39-82: the tables with these margins that are no likelier than the
    one seen.
    """
    (both, _), (_, _) = matrix.counts
    row, other = matrix.rows
    column = matrix.columns[0]
    # In logarithms: as whole numbers of thousands of digits the counts of large suites took longer
    # than their cases.
    ways = {
        k: _log_choices(row, k) + _log_choices(other, column - k)
        for k in range(max(0, column - other), min(row, column) + 1)
    }
    every = _log_choices(row + other, column)
    return min(
        1.0, sum(exp(count - every) for count in ways.values() if count <= ways[both] + _ROUNDING)
    )


def _log_choices(n: int, k: int) -> float:
    """The logarithm of the number of ways to choose k of n."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _kappa(statistics: Statistics, mode: Mode) -> float | None:
    return statistics.figures["weighted_kappa" if mode == "ordinal" else "kappa"].value


_LISTED = ("rate", "share", "number")


@dataclass(frozen=True, slots=True)
class NamedFigure(Estimate):
    """One figure under its name in the JSON report.

    `without_interval` says why there is no interval, where that is another reason than `why`.
    """

    name: str = ""
    kind: FigureKind = "share"
    without_interval: str | None = None

    @classmethod
    def of(
        cls,
        name: str,
        estimate: Estimate,
        kind: FigureKind = "share",
        without_interval: str | None = None,
    ) -> NamedFigure:
        """Give an estimate a name."""
        return cls(**asdict(estimate), name=name, kind=kind, without_interval=without_interval)

    @property
    def text(self) -> str:
        """The figure and its interval as the tables show them."""
        return ranged(value_text(self, self.kind), self, self.kind)

    @property
    def whole_text(self) -> str:
        """The same with what is missing of it."""
        return f"{self.text} ({self.why})" if self.why else self.text

    @property
    def cells(self) -> dict[str, Any]:
        """The figure in the columns of the table of figures that are about it."""
        missing = self.interval_reason if self.without_interval is None else self.without_interval
        return {
            "figure": self.name,
            "value": self.value,
            "count": self.count if self.kind == "share" else None,
            "n": self.n,
            "lower": self.lower,
            "upper": self.upper,
            "level": LEVEL,
            "reason": self.reason or "",
            "interval_reason": missing or "",
        }


FIGURE_COLUMNS = ("judge", "rubric", "test", *NamedFigure().cells)
"""The columns of a table of `figure_rows`; judge, rubric and test are empty where all are meant."""


def named_figures(statistics: Statistics, mode: Mode) -> list[NamedFigure]:
    """Every figure of this mode with its interval, under its name in the JSON report."""
    return [
        _named(column, statistics)
        for column in COLUMNS
        if mode in column.modes and column.kind in _LISTED and column.shown(statistics)
    ]


def figure_rows(table: StatisticsTable) -> Iterator[dict[str, Any]]:
    """The figures of every level as rows of a table, each judge's total first, and the warnings."""
    for statistics in (*table.judges, *table.rubrics, *table.groups):
        counts = statistics.counts
        for figure in named_figures(statistics, statistics.mode):
            names = {"judge": counts.judge, "rubric": counts.rubric, "test": counts.test}
            yield names | figure.cells
    for section in sections(table):
        for warning in section_warnings(section):
            yield {"judge": section.judge, "figure": "warning", "reason": warning}


def properties(table: StatisticsTable) -> Iterator[tuple[str, str]]:
    """The figures over all cases and per rubric, and the warnings, as names and texts."""
    for section in sections(table):
        judge = "::".join(part for part in (section.suite, section.judge) if part)
        rubrics = [row for row in section.rows if row.level == "rubric"]
        named = [(judge, section.total)]
        named += [(f"{judge}::{row.name}", row.statistics) for row in rubrics]
        for name, statistics in named:
            for figure in named_figures(statistics, section.mode):
                yield f"jrh:{name}:{figure.name}", figure.whole_text
        for warning in section_warnings(section):
            yield f"jrh:{judge}:warning", warning


def _named(column: Column, statistics: Statistics) -> NamedFigure:
    verdicts = statistics.counts.n
    estimate = statistics.figures.get(column.key, Estimate(n=verdicts))
    missing = column.interval_reason(estimate) or ""
    if column.kind == "number":
        # Also of the ties that some of these leave out.
        estimate = replace(estimate, n=verdicts)
    return NamedFigure.of(column.key, estimate, column.kind, missing)
