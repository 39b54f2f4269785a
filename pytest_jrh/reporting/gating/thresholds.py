"""One threshold of a gate as text: the rule, the figure and the limit (rule J5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.reporting.gating.probes import rate_text
from pytest_jrh.stats.columns import percent
from pytest_jrh.text import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_jrh.gate.decision import GateDecision
    from pytest_jrh.gate.thresholds import Threshold
    from pytest_jrh.stats.inference.noninferiority import DropDecision

_MOST_DIGITS = 6


def threshold_text(threshold: Threshold, decision: GateDecision) -> str:
    """Name the rule, the figure and the limit."""
    match threshold.rule:
        case "max_regressions":
            return f"{_disagreements(threshold, decision)}, at most {threshold.limit:,.0f} allowed"
        case rule if rule in _TEXTS:
            return _TEXTS[rule](threshold)
        case _:
            return _accuracy_text(threshold)


def _few_text(threshold: Threshold) -> str:
    verdicts = counted(threshold.n, "verdict")
    return f"{verdicts}{_by(threshold)}, at least {threshold.limit:,.0f} needed"


def _share_text(threshold: Threshold) -> str:
    compared = f"{threshold.n:,} of {counted(threshold.total, 'case')} compared with the baseline"
    return f"{compared}, at least {percent(threshold.limit)} needed"


def _uncompared_text(threshold: Threshold) -> str:
    allowed = ", which gate.allow_uncompared lets pass" if threshold.passed else ""
    return f"nothing could be compared with the baseline{allowed}"


def _one_class_text(threshold: Threshold) -> str:
    return (
        f"one class only, so that a judge that always says {threshold.label} would pass (judge "
        "cases of another label too, or set gate.allow_one_class: true)"
    )


def subject(threshold: Threshold) -> str:
    """Whose accuracy it is."""
    what = "lower bound of the accuracy" if threshold.rule == "lower_bound" else "accuracy"
    on = f" on {one_line(threshold.test)}" if threshold.test else ""
    return f"{what}{on}{_by(threshold)}"


def points(share: float) -> str:
    """A difference of shares in points, to a tenth; a loss below zero is a gain."""
    # Rounding makes "-0.0" of what is a little below 0.
    return f"{round(100 * share, 1) + 0.0:.1f}"


def _drop_text(threshold: Threshold) -> str:
    drop = threshold.drop
    assert drop is not None
    head = f"max_drop {100 * threshold.limit:.4g} points{_by(threshold)}: {drop.verdict}"
    if drop.drop is None or drop.lower is None or drop.upper is None:
        return f"{head}, {drop.reason}"
    found = f"{head}, a drop of {points(drop.drop)} points"
    bounds = f"95% bounds {points(drop.lower)} and {points(drop.upper)}"
    if drop.verdict != "INCONCLUSIVE":
        return f"{found} ({bounds})"
    return f"{found} ({bounds}); {_what_decides(drop, threshold.n)}"


def _what_decides(drop: DropDecision, n: int) -> str:
    """How many runs, or how many repeats, would decide it."""
    ways = []
    if drop.runs is not None and drop.clusters:
        cases = counted(round(drop.runs * n / drop.clusters), "case")
        ways.append(f"{counted(drop.runs, 'run')} ({cases}) instead of {drop.clusters:,}")
    if drop.repeats is not None:
        ways.append(f"repeats: {drop.repeats}")
    if not ways:
        return "no number of runs would decide it"
    return f"{' or '.join(ways)} would decide it at 80% power"


_TEXTS: Mapping[str, Callable[[Threshold], str]] = {
    "min_cases": _few_text,
    "min_compared": _share_text,
    "compared": _uncompared_text,
    "one_class": _one_class_text,
    "max_drop": _drop_text,
    "probe_rate": rate_text,
}


def _disagreements(threshold: Threshold, decision: GateDecision) -> str:
    counting = set(threshold.cases)
    new = len(counting & set(decision.new_disagreements))
    if decision.comparison is None:
        return f"{counted(new, 'disagreement')} (there is no baseline)"
    found = len(counting & set(decision.regressions))
    regressions = counted(found, "regression")
    if not new:
        return regressions
    others = f"{counted(new, 'disagreement')} not in the baseline"
    return f"{regressions} and {others}" if found else others


def _accuracy_text(threshold: Threshold) -> str:
    name = subject(threshold)
    value, limit = threshold.figure.value, threshold.limit
    if value is None:
        return (
            f"{name} cannot be computed ({threshold.figure.reason}), at least "
            f"{_percent(limit, 1)} asked"
        )
    # More digits where rounding would make "90.0% is below 90.0%" of it.
    digits = next(
        (few for few in range(1, _MOST_DIGITS) if _percent(value, few) != _percent(limit, few)), 1
    )
    verb = "reaches" if value >= limit else "is below"
    chance = ""
    if threshold.by_chance:
        chance = f", as the lowest of {threshold.by_chance} judges may be by chance"
    compared = f"{percent(value, digits)} (n {threshold.n:,}) {verb} {_percent(limit, digits)}"
    return f"{name} {compared}{chance}"


def _by(threshold: Threshold) -> str:
    return f" by {one_line(threshold.judge)}" if threshold.judge else ""


def _percent(value: float, digits: int) -> str:
    return f"{100 * value:.{digits}f}%"
