"""No gate passes by not looking, and every report says what its decision does not rest on (rules
M9)."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.config.schema import GateRules
from pytest_jrh.core.model import CaseResult, Outcome
from pytest_jrh.reports.gate import change_sentences, decision_sentence, update_sentence
from pytest_jrh.reports.html import write_html
from pytest_jrh.reports.json_values import decision_data, table_data
from pytest_jrh.reports.markdown import markdown_report
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.terminal import session_lines
from pytest_jrh.stats.baseline import Baseline, Scope, update
from pytest_jrh.stats.gate import GateDecision, decide, is_active
from tests.support.judged_sessions import always, gate_texts, judged, right, scored, session_of
from tests.support.made_cases import make_result, make_spec


def terminal(session: Session, folder: Path) -> str:
    return "\n".join(line.text for line in session_lines(session, width=400))


def markdown(session: Session, folder: Path) -> str:
    return html.unescape(markdown_report(session).replace("\\", ""))


def page(session: Session, folder: Path) -> str:
    write_html(folder / "report.html", session)
    return html.unescape((folder / "report.html").read_text("utf-8"))


def data(session: Session, folder: Path) -> str:
    decisions = [decision_data(decision) for decision in session.decisions.values()]
    return json.dumps([table_data(session.table), *decisions])


MISSING: tuple[Outcome, ...] = ("no_case", "no_case", "unrecorded")
FORMS = pytest.mark.parametrize("form", [terminal, markdown, page, data])
Form = Callable[[Session, Path], str]


def of_test(test: str, results: list[CaseResult]) -> list[CaseResult]:
    return [result for result in results if result.spec.test == test]


@FORMS
@pytest.mark.parametrize(
    ("results", "said"),
    [
        (
            of_test("agent_perturbation", judged(right)),
            "Only violated cases: a judge that always says 1 would get 100%.",
        ),
        (
            of_test("agent_positives", judged(right)),
            "Only satisfied cases: a judge that always says 0 would get 100%.",
        ),
        (
            [
                *judged(right, rubrics=["tone"]),
                *of_test("agent_perturbation", judged(right, rubrics=["law"])),
            ],
            "law: only violated cases: a judge that always says 1 would get 100%.",
        ),
        (
            [result for result in scored(right) if result.spec.target_score == 2],
            "Only cases of score 2: a judge that always says 2 would get 100%.",
        ),
    ],
    ids=["violated", "satisfied", "one rubric", "one score"],
)
def test_labels_that_are_all_the_same_are_said(
    tmp_path: Path, form: Form, results: list[CaseResult], said: str
) -> None:
    assert said in form(session_of(results), tmp_path)
    assert "would get 100%" not in form(session_of(judged(right)), tmp_path)


@FORMS
def test_few_cases_for_a_gate_are_said(tmp_path: Path, form: Form) -> None:
    few = judged(right, runs=1, rubrics=["tone"])
    said = f"Few cases for a gate: {len(few)} verdicts, and with min_cases: 1 one verdict is enough"
    assert said in form(session_of(few, min_accuracy=0.5), tmp_path)
    assert "Few cases" not in form(session_of(few, min_accuracy=0.5, min_cases=2), tmp_path)
    assert "Few cases" not in form(session_of(judged(right), min_accuracy=0.5), tmp_path)


@FORMS
def test_what_no_verdict_was_given_on_is_named(tmp_path: Path, form: Form) -> None:
    without = [
        make_result(
            make_spec(f"run-{run}", rubric_id="silent", test="agent_positives", judge="mute"),
            outcome,
        )
        for run, outcome in enumerate(MISSING)
    ]
    text = form(session_of([*judged(right, judge="strict"), *without], min_accuracy=0.5), tmp_path)
    assert "No verdict on any case of rubric silent (3 cases: 2 no_case, 1 unrecorded)." in text
    assert "No verdict on any case of judge mute (3 cases: 2 no_case, 1 unrecorded)." in text
    assert "any case of test" not in text


def test_what_a_marker_skipped_as_a_whole_is_named() -> None:
    results = judged(right, judge="strict")
    skipped = [make_spec(f"run-{run}", rubric_id="later", judge="strict") for run in range(3)]
    scope = Scope.of(result.case_id for result in results)
    decision = decide(results, None, GateRules(min_accuracy=0.5), scope, skipped)
    assert decision.passed
    lines = gate_texts(decision)
    assert "No verdict on any case of rubric later (3 cases: 3 skipped)." in lines


def test_a_gate_whose_rules_are_for_other_tests_says_what_it_has_seen() -> None:
    """As with `-k agent_perturbation` where only agent_positives has a minimal accuracy."""
    everything = judged(right)
    results = of_test("agent_perturbation", everything)
    scope = Scope.of([r.case_id for r in everything], [r.case_id for r in results])
    decision = decide(results, None, GateRules(min_accuracy={"agent_positives": 0.9}), scope)
    assert (
        decision_sentence(decision)
        == f"Gate passed: {len(results)} verdicts, at least 1 needed. Not decided, as none of its "
        "cases was selected: gate.min_accuracy.agent_positives."
    )


class TestOneClass:
    """A judge that always says 1, over violated cases alone."""

    CASES = of_test("agent_perturbation", judged(always(1)))

    def decided(self, results: list[CaseResult], **rules: Any) -> GateDecision:
        scope = Scope.of(result.case_id for result in results)
        known = update(Baseline(), results, scope).baseline
        return decide(results, known, GateRules(**rules), scope)

    @pytest.mark.parametrize(
        "rules",
        [
            {"min_accuracy": 0.9},
            {"min_accuracy": {"agent_perturbation": 0.9}},
            {"min_accuracy": 0.5, "lower_bound": True},
            {"max_drop": 0.05},
            {"max_regressions": 3},
            {"min_cases": 5},
        ],
    )
    def test_no_gate_passes_unless_that_is_allowed(self, rules: dict[str, Any]) -> None:
        decision = self.decided(self.CASES, **rules)
        assert not decision.passed
        assert (
            "Gate failed: one class only, so that a judge that always says 1 would pass (judge "
            "cases of another label too, or set gate.allow_one_class: true)."
        ) in decision_sentence(decision)
        assert self.decided(self.CASES, allow_one_class=True, **rules).passed
        assert self.decided(judged(right), **rules).passed

    def test_scores_of_one_level_are_one_class(self) -> None:
        highest = [result for result in scored(right) if result.spec.target_score == 2]
        assert "always says 2 would pass" in decision_sentence(
            self.decided(highest, min_accuracy=0.9)
        )
        assert self.decided(scored(right), min_accuracy=0.9).passed

    def test_a_baseline_alone_compares_and_a_selection_is_left_to_the_warning(self) -> None:
        assert self.decided(self.CASES).passed
        scope = Scope.of(
            [result.case_id for result in judged(right)], [case.case_id for case in self.CASES]
        )
        assert decide(self.CASES, None, GateRules(min_accuracy=0.9), scope).passed

    def test_one_case_of_a_panel_is_no_class(self) -> None:
        one = [judged(right, 1, ["tone"], judge=judge)[0] for judge in ("a", "b")]
        assert self.decided(one, min_accuracy=0.9).passed


class TestUncompared:
    NEW = judged(right, runs=3)

    def decided(
        self, baseline: Baseline, results: list[CaseResult] | None = None, **rules: Any
    ) -> GateDecision:
        given = self.NEW if results is None else results
        scope = Scope.of(result.case_id for result in self.NEW)
        return decide(given, baseline, GateRules(**rules), scope)

    @pytest.mark.parametrize("baseline", [Baseline(), None], ids=["empty", "another suite's"])
    def test_a_baseline_without_the_suites_cases_fails(self, baseline: Baseline | None) -> None:
        others = judged(right, suite="other")
        scope = Scope.of(each.case_id for each in others)
        known = baseline if baseline is not None else update(Baseline(), others, scope).baseline
        decision = self.decided(known)
        assert not decision.passed
        assert (
            decision_sentence(decision)
            == "Gate failed: nothing could be compared with the baseline."
        )
        advice = "Set gate.allow_uncompared: true if the suite is new, or update the baseline."
        assert update_sentence(decision) == advice
        lines = " ".join(gate_texts(decision))
        assert "No case can be compared with the baseline: not in the baseline (12)." in lines
        renamed = "The baseline has cases of other suites alone (other): the ids of cases begin"
        assert (renamed in lines) == bool(known.cases)
        assert advice in gate_texts(decision)

    def test_what_is_unrecorded_is_recorded_before_anything_is_updated(self) -> None:
        """One next command: a session that misses verdicts could update nothing with them."""
        missing = [replace(each, outcome="unrecorded", score=None) for each in self.NEW[:1]]
        decision = self.decided(Baseline(), [*missing, *self.NEW[1:]])
        assert decision.uncompared
        assert update_sentence(decision) is None

    def test_no_verdict_at_all_is_said_once(self) -> None:
        missing = [replace(each, outcome="unrecorded", score=None) for each in self.NEW]
        assert change_sentences(self.decided(Baseline(), missing)) == [
            "No case has a verdict (12 cases: 12 unrecorded)."
        ]

    def test_a_new_suite_can_say_so(self) -> None:
        decision = self.decided(Baseline(), allow_uncompared=True)
        assert decision.passed
        assert (
            decision_sentence(decision)
            == "Gate passed: nothing could be compared with the baseline, which "
            "gate.allow_uncompared lets pass."
        )
        assert update_sentence(decision) is None
        assert not is_active(GateRules(allow_uncompared=True), None)

    def test_one_case_in_common_is_enough(self) -> None:
        known = update(Baseline(), self.NEW[:1], Scope.of([self.NEW[0].case_id])).baseline
        assert self.decided(known).passed

    def test_no_result_at_all_fails(self) -> None:
        known = update(Baseline(), self.NEW, Scope.of(each.case_id for each in self.NEW)).baseline
        decision = decide([], known, GateRules(), Scope.of([each.case_id for each in self.NEW], []))
        assert not decision.passed
        assert decision_sentence(decision) == "Gate failed: none of its cases was run."
        assert change_sentences(decision)
