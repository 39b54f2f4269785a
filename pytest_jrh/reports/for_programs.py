"""The reports that programs read: `--jrh-report=FILE.json`, and `FILE.xml` with the decision as a
test in JUnit's form. Figures, gate, panel and labels are the JSON values of RAND's reports, too.

A figure is `{value, reason}`, a share `{count, n, value, reason}`; `value` is null exactly where
`reason` is text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from pytest_jrh.core import Json, log_line
from pytest_jrh.core.scales import BINARY, ORDINAL, Scale
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.topics import shown_counts
from pytest_jrh.stats.decision import Decision
from pytest_jrh.stats.figures import COLUMNS, Section, all_warnings, favours, places_of, section_of
from pytest_jrh.stats.intervals import LEVEL, Estimate
from pytest_jrh.stats.people import violation_rates
from pytest_jrh.stats.probabilities import BINS, Probabilities
from pytest_jrh.stats.statistics import PASSED_OVER, Statistics, recall_key


class JsonReport(Report):
    """The figures of each judge and what the gate decides about each suite, for programs."""

    suffix = ".json"

    def text(self, session: Session) -> str:
        panels = {panel.suite: data_of(panel) for panel in session.panels}
        suites: dict[str, Json] = {}
        for suite in session.suites:
            people = session.people.get(suite)
            suites[suite] = {
                "annotators": session.grounds_of(suite).annotators,
                "judges": {},
                "panel": panels.get(suite),
                # None where it is not known who labelled what.
                "people": people
                and {
                    "people": people.votes.person.names,
                    "disputed": len(people.votes.disputed),
                    **data_of(people.agreement),
                    "pairs": [*map(data_of, people.pairs)],
                },
                "gate": decision_data(session.decisions.get(suite)),
            }
        for (suite, judge), verdicts in session.verdicts.grouped("suite", "judge").items():
            of_tests = verdicts.where(~verdicts.derived)
            counts = shown_counts(session.results_in(of_tests))
            # How often runs are violations; none where all have labels.
            rates = violation_rates(verdicts, session.grounds_of(suite).drawn)
            levels = {rubric: data_of(rate) for rubric, rate in rates}
            total = levels.pop("", None)
            figures = {
                **section_data(section_of(verdicts, suite, judge)),
                "violations": total and {**total, "rubrics": levels},
                "shown": [asdict(count) for count in counts if count.turns],
            }
            if people := session.people.get(suite):
                figures["people"] = data_of(people.judges[judge])
            for key, section in session.slices.get((suite, judge), {}).items():
                slices = [{"value": row.rubric, **statistics_data(row)} for row in section.rubrics]
                figures.setdefault("slices", {})[key] = slices
            if places := places_of(of_tests):
                figures["places"] = data_of(places)
                figures["systems"] = [*map(data_of, favours(of_tests))]
            if probabilities := session.probabilities.get((suite, judge)):
                data = probability_data(probabilities)
                figures["probabilities"] = {**data, "error": session.error}
            suites[suite]["judges"][judge or "default"] = figures
        values: Json = {"format": 2, "decision": decision_data(session.decision)}
        if session.about:
            values["about"] = session.about
        values["suites"] = suites
        report = session.redactor.value(values)
        return json.dumps(report, indent=2, allow_nan=False) + "\n"


class JunitReport(Report):
    """One test for each suite that is decided about, which fails where the exit code is 1.

    It is for a merge of shards and for `check`, which are no tests: in a session pytest's own
    `--junitxml` has the decision, beside the cases.
    """

    suffix = ".xml"

    def text(self, session: Session) -> str:
        root = ElementTree.Element("testsuites")
        tests = ElementTree.SubElement(root, "testsuite", name="pytest-jrh")
        failures = 0
        for suite, decision in session.decisions.items():
            test = ElementTree.SubElement(tests, "testcase", classname=suite, name="decision")
            if decision.passed:
                continue
            failures += 1
            sentences = [log_line(session.redactor.text(line)) for line in decision.sentences]
            failure = ElementTree.SubElement(test, "failure", message=sentences[0])
            failure.text = "\n".join(sentences)
        tests.attrib |= {"tests": str(len(session.decisions)), "failures": str(failures)}
        return ElementTree.tostring(root, encoding="unicode") + "\n"


def section_data(section: Section) -> Json:
    """The figures of one judge over all and per rubric, and `warnings`."""
    return {
        "overall": statistics_data(section.total),
        "rubrics": {level.rubric: statistics_data(level) for level in section.rubrics},
        "warnings": all_warnings(section.total, section.rubrics),
    }


def statistics_data(statistics: Statistics) -> Json:
    """Every figure of one set of results."""
    counts, flicker = statistics.counts, statistics.flicker
    return {
        **fields_of(counts, "n", "agree", "disagree", "no_case", "unscored", "ties"),
        "accuracy": _figure(statistics.accuracy),
        "interval": bounds_data(statistics.accuracy),
        "flicker": {
            **_figure(flicker),
            "cases": flicker.n,
            "flickering": flicker.count,
            "interval": bounds_data(flicker),
        },
        **dict.fromkeys((BINARY.name, ORDINAL.name)),
        **{name: _scale_data(statistics, scale) for name, scale in statistics.scales.items()},
    }


def fields_of(value: object, *names: str) -> Json:
    """The fields of a value that are called so in JSON, too; an empty text is null there."""
    fields = {}
    for name in names:
        field = getattr(value, name)
        fields[name] = None if field == "" else field
    return fields


def decision_data(decision: Decision | None) -> Json | None:
    """The decision with its figures and the cases, by id; None where nothing decides."""
    if decision is None:
        return None
    comparison = decision.comparison
    baseline = None
    if comparison is not None:
        baseline = {
            "judge_changed": int((~comparison.everything.same_judge.each(bool)).sum()),
            **fields_of(comparison, "regressions", "fixes", "not_comparable"),
            "flickered": sorted(decision.flickered),
        }
    names = ("word", "kind", "text", "judge", "cases")
    reasons = [fields_of(reason, *names) for reason in decision.reasons]
    sets, limits = [], []
    for change in decision.sets:
        sets.append(
            {
                "set": change.kind,
                "class": change.of_class.word if change.of_class else None,
                **fields_of(change, "name", "judge", "n", "runs"),
                **fields_of(change.asked, "question", "is_certain"),
                "before": change.before._asdict(),
                "now": change.now._asdict(),
                **fields_of(change, "lost", "won", "right_before", "drop", "allowed"),
                **fields_of(change.finding, "word", "share", "p_value"),
                "other_runs": change.bound if math.isfinite(change.bound) else None,
            }
        )
    for limit in decision.limits:
        limits.append(
            {
                **fields_of(limit, "rule", "limit"),
                "figure": _figure(limit.figure),
                "n": limit.figure.n,
                **fields_of(limit, "broken", "by_flicker", "unproven", "probe", "judge", "cases"),
            }
        )
    return {
        **fields_of(decision, "word", "headline", "passed", "active", "beside"),
        "exit_code": int(not decision.passed),
        "reasons": reasons,
        **fields_of(decision, "compared", "of_baseline"),
        "sets": sets,
        "limits": limits,
        **fields_of(decision, "new_wrong", "accepted", "never_reported", "unscored"),
        **fields_of(decision, "update_command"),
        "baseline": baseline,
    }


def data_of(value: Any) -> Json:
    """The fields of a data class, its figures with their intervals."""
    return asdict(value, dict_factory=_with_intervals)


def _with_intervals(items: Sequence[tuple[str, Any]]) -> Json:
    """The fields of a data class, of a figure as those of other shares."""
    values = dict(items)
    if "why" not in values:
        return values
    estimate = Estimate(**values)
    return {**share_data(estimate), "interval": bounds_data(estimate)}


def _scale_data(statistics: Statistics, scale: Scale) -> Json:
    """The figures of one kind of scale; the recalls of its classes are by their words."""
    matrix = statistics.matrices[scale.name]
    figures: Json = {}
    intervals: Json = {}
    kinds = {column.key: column.kind for column in COLUMNS if scale.name in column.scales}
    if scale.name == BINARY.name and PASSED_OVER in statistics.figures:
        kinds[PASSED_OVER] = "share"
    for key, kind in kinds.items():
        estimate = statistics.figures[key]
        figures[key] = share_data(estimate) if kind == "share" else _figure(estimate)
        intervals[key] = bounds_data(estimate)
    recalls = {of.word: statistics.figures[recall_key(of)] for of in scale.classes if not of.figure}
    if recalls:
        figures["recalls"] = {word: share_data(share) for word, share in recalls.items()}
        intervals["recalls"] = {word: bounds_data(share) for word, share in recalls.items()}
    confusion = {"labels": [*map(scale.said, matrix.labels)], "counts": matrix.counts}
    of_scale: Json = {"confusion_matrix": confusion, **figures, "intervals": intervals}
    if scale.is_ordered:
        of_scale["within"] = scale.within
    return of_scale


def bounds_data(estimate: Estimate) -> Json:
    """The 95% interval of a figure."""
    return {
        **fields_of(estimate, "lower", "upper"),
        "level": LEVEL,
        "reason": estimate.interval_reason,
    }


def _figure(estimate: Estimate) -> Json:
    return fields_of(estimate, "value", "reason")


def share_data(estimate: Estimate) -> Json:
    """A share of cases, without its interval."""
    return fields_of(estimate, "count", "n", "value", "reason")


def probability_data(figures: Probabilities) -> Json:
    """The figures of a judge that gives probabilities; a number that no case reaches is null."""
    data = data_of(figures)
    bins = {f"{tenth / BINS}": rate for tenth, rate in data["bins"].items()}
    return {**data, "bins": bins}
