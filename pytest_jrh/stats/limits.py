"""The limits that the figures of each judge and the probes are held against."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import variance
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from pytest_jrh.config.schema import GateRules
from pytest_jrh.core import frozen
from pytest_jrh.core.scales import CaseClass
from pytest_jrh.core.text import counted, one_line
from pytest_jrh.stats.baseline import Scope
from pytest_jrh.stats.intervals import NO_VERDICT, Estimate, majority_flip
from pytest_jrh.stats.probes import probe_tables
from pytest_jrh.stats.statistics import accuracy_of, flicker_of, share_of
from pytest_jrh.stats.verdicts import Bools, Coded, Verdicts

# What is computed in another order is the same.
_ROUNDING = 1e-9
# A limit that is proposed leaves so many cases, or levels.
_SLACK = 2
# One-sided, at 5%.
_FLICKER_QUANTILE = 1.645
# Both ends of it are one-sided at 95%.
_RATE_LEVEL = 0.9


Rule: TypeAlias = Literal["min_recall", "max_false_alarms", "min_accuracy", "max_error", "max_rate"]

# The figure of the class that each limit of a judge is about; empty for all cases.
_FIGURES: dict[Rule, str] = {
    "min_recall": "recall",
    "max_false_alarms": "false_positive_rate",
    "min_accuracy": "",
    "max_error": "",
}


@frozen
class Limit:
    """One limit applied to one judge, or of `max_rate` to a probe's table: `figure` must reach
    `limit`, or not exceed it. `by_flicker` says that the flicker alone may break it. `of_class` is
    the class of its cases, where it is about one.
    """

    rule: Rule
    judge: str
    limit: float
    figure: Estimate
    broken: bool
    by_flicker: bool = False
    unproven: bool = False
    probe: str = ""
    cases: tuple[str, ...] = ()
    of_class: CaseClass | None = None


def judge_limits(judged: Verdicts, rules: GateRules) -> Iterator[Limit]:
    """Hold the mean error of each judge's cases against what the limits allow."""
    for judge, of_judge in judged.grouped("judge").items():
        for rule, about in _FIGURES.items():
            limit = getattr(rules, rule)
            if limit is None:
                continue
            cases = _cases_of(rule, of_judge)
            allowed = 1 - limit if rule in ("min_recall", "min_accuracy") else limit
            errors = _errors(rule, cases)
            n, unproven = len(errors), False
            if rule == "max_error":
                figure = Estimate(float(errors.mean()), n=n) if n else Estimate(why=NO_VERDICT)
            else:
                right = accuracy_of(cases)
                figure = right.complement() if rule == "max_false_alarms" else right
                unproven = rules.proof and (right.lower is None or right.lower < 1 - allowed)
            too_many = math.ceil(errors.sum() - allowed * n - _ROUNDING)
            flicker = _levels_variance(of_judge) if rule == "max_error" else _variance(of_judge)
            by_flicker = _FLICKER_QUANTILE * math.sqrt(n * flicker) + _ROUNDING
            yield Limit(
                rule,
                judge,
                limit,
                figure,
                broken=too_many > 0,
                by_flicker=0 < too_many <= by_flicker,
                unproven=unproven,
                cases=cases.wrong_ids,
                of_class=next(iter(cases.case_class.present() if about else ()), None),
            )


def _cases_of(rule: Rule, verdicts: Verdicts) -> Verdicts:
    """The cases that a limit is about."""
    return verdicts.where(_is_about(rule, verdicts) & ~verdicts.derived)


def _is_about(rule: Rule, verdicts: Verdicts) -> Bools:
    figure = _FIGURES[rule]
    return verdicts.case_class.each(
        lambda of_class: not figure or (of_class is not None and of_class.figure == figure)
    )


def is_limited(verdicts: Verdicts, rules: GateRules) -> Bools:
    """Whether a limit decides about mistakes on cases like these."""
    limited = np.zeros(len(verdicts), bool)
    for rule in _FIGURES:
        if getattr(rules, rule) is not None:
            limited |= _is_about(rule, verdicts)
    return limited


def _errors(rule: Rule, verdicts: Verdicts) -> npt.NDArray[Any]:
    """How far off each verdict is: 0 or 1, and of `max_error` in levels."""
    if rule != "max_error":
        return verdicts.wrong.astype(float)
    _, pairs = verdicts.answered
    return np.abs(pairs[:, 1] - pairs[:, 0])


def _asked_twice(verdicts: Verdicts) -> Verdicts:
    """The verdicts, with answers that the same judge gave before beside those of now."""
    kinds = verdicts.kinds("answers", "before", "same_judge")
    answers = []
    for now, before, is_same in kinds.names:
        answers.append((*now, *before) if is_same and before else now)
    return replace(verdicts, answers=Coded(answers, kinds.codes))


def _variance(verdicts: Verdicts) -> float:
    """By how much it varies whether a majority is right when the judge is asked again; 0 where
    neither repeats nor the same judge's verdicts in the baseline tell.
    """
    flicker = flicker_of(_asked_twice(verdicts))
    most = int(verdicts.answers.each(len, int).max(initial=1))
    flip = majority_flip(flicker.value or 0.0, most)
    return flip * (1 - flip)


def _levels_variance(verdicts: Verdicts) -> float:
    """By how much the distance of a verdict from its label varies, in squares of levels."""
    variances = _asked_twice(verdicts).kinds("answers", "label").each(_levels_variance_of, float)
    known = variances[variances >= 0]
    return float(known.mean()) if len(known) else 0.0


def _levels_variance_of(kind: tuple[Sequence[int], int | None]) -> float:
    """That of one case; below 0 where nothing tells it."""
    scores, label = kind
    if label is None or len(scores) == 1:
        return -1.0
    return variance([abs(score - label) for score in scores])


def proposed_limits(verdicts: Verdicts) -> dict[str, float]:
    """The limits that each judge of a suite keeps to with two cases to spare, in hundredths: a
    limit at the figure itself would be broken by the next flicker. None that everything keeps to.
    """
    judged = verdicts.judged
    rules: tuple[Rule, ...] = ("min_recall", "max_false_alarms")
    if judged.is_ordered:
        rules = ("max_error",)
    limits: dict[str, float] = {}
    for rule in rules:
        worst = 0.0
        for of_judge in judged.grouped("judge").values():
            errors = _errors(rule, _cases_of(rule, of_judge))
            if len(errors):
                mean = (errors.sum() + _SLACK) / len(errors)
                worst = max(worst, math.ceil(100 * mean - _ROUNDING) / 100)
        if rule == "max_error" and worst:
            limits[rule] = worst
        elif 0 < worst < 1:
            limits[rule] = round(1 - worst, 2) if rule == "min_recall" else worst
    return limits


def probe_limits(received: Verdicts, rules: GateRules, scope: Scope) -> Iterator[Limit]:
    """Hold the share of verdicts that each probe turns against its limit.

    A probe without selected cases is left out, unless the session is the whole suite.
    """
    if not rules.probe_limits:
        return
    tables = {(table.probe, table.judge): table for table in probe_tables(received)}
    judges = received.judged.judge.present()
    for probe, limit in rules.probe_limits.items():
        present = [judge for name, judge in tables if name == probe]
        for judge in present or ([] if scope.deselected else judges):
            table = tables.get((probe, judge))
            if table is None or not len(table.judged):
                nothing = Estimate(why=NO_VERDICT)
                yield Limit("max_rate", judge, limit, nothing, broken=True, probe=probe)
                continue
            rate = share_of(table.judged, table.judged.wrong, _RATE_LEVEL)
            is_more = rate.value is not None and rate.value > limit + _ROUNDING
            yield Limit(
                "max_rate",
                judge,
                limit,
                rate,
                broken=is_more and table.is_finding,
                unproven=rules.proof and (rate.upper is None or rate.upper > limit),
                probe=probe,
                cases=table.cases,
            )


def limit_text(limit: Limit, subject: str) -> str:
    """What a limit comes to, as a clause about the judge or the probe."""
    n, wrong = limit.figure.n, len(limit.cases)
    if limit.rule == "max_rate":
        of = f" by {one_line(limit.judge)}" if limit.judge else ""
        if limit.figure.value is None:
            return f"{limit.probe} has no verdict{of}"
        text = f"{limit.probe} turns {wrong:,} of {counted(n, 'verdict')}{of}"
        allowed = f"max_rate {100 * limit.limit:.4g}% allows {int(limit.limit * n + _ROUNDING):,}"
    elif limit.figure.value is None:
        return f"{limit.rule} of {subject} is not known: {limit.figure.why}"
    elif limit.rule == "max_error":
        text = f"{subject} is off by {limit.figure.value:.2f} levels on average"
        allowed = f"max_error allows {limit.limit:.4g}"
    else:
        text = f"{subject} is wrong on {wrong:,} of {counted(n, 'case')}"
        if limit.of_class is not None:
            text = f"{subject} {limit.of_class.wrong(wrong, n)}"
        share = limit.limit if limit.rule == "max_false_alarms" else 1 - limit.limit
        allowed = f"{limit.rule} {100 * limit.limit:.4g}% allows {int(share * n + _ROUNDING):,}"
    text = f"{text}; {allowed}"
    if limit.by_flicker:
        return f"{text}, which its flicker alone may break"
    if limit.unproven and not limit.broken:
        return f"{text}, and other cases are not proven to keep to it"
    return text
