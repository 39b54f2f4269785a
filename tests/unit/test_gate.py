"""The gate: which disagreements are let through, what the session comes to, and what is said (rules
J3 to J5)."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.config.schema import GateRules
from pytest_jrh.core.model import CaseResult, Outcome
from pytest_jrh.reports.gate import change_sentences, decision_sentence, update_sentence
from pytest_jrh.reports.html import write_html
from pytest_jrh.reports.json_values import decision_data, table_data
from pytest_jrh.reports.markdown import markdown_report
from pytest_jrh.reports.terminal import session_lines
from pytest_jrh.stats.baseline import Baseline, Scope, update
from pytest_jrh.stats.gate import GateDecision, decide, tolerated
from tests.support.judged_sessions import gate_texts, judged, right, scored, session_of
from tests.support.made_cases import make_result, make_spec, result_with
from tests.support.suites import BOTH_TESTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_jrh.reports.session import Session

DIGEST = "0123456789abcdef" * 4
OTHER = "fedcba9876543210" * 4
SHORT = {"A": "agree", "D": "disagree", "N": "no_case", "U": "unrecorded", "G": "generated"}


def case(
    run: int, outcome: Outcome = "agree", test: str = "agent_perturbation", **changes: Any
) -> CaseResult:
    judged = outcome in ("agree", "disagree")
    digests = {"case_digest": DIGEST, "judge_fingerprint": OTHER} if judged else {}
    spec = make_spec(f"run-{run:02}", test=test, judge=changes.pop("judge", None))
    return make_result(spec, outcome, **{**digests, **changes})


def cases(outcomes: str, **changes: Any) -> list[CaseResult]:
    """One case for each letter: agree, disagree, no case, unscored, generated."""
    return [case(run, SHORT[letter], **changes) for run, letter in enumerate(outcomes)]  # type: ignore[arg-type]


def id_of(run: int, test: str = "agent_perturbation") -> str:
    return case(run, test=test).case_id


def baseline_of(results: Sequence[CaseResult], judge: str = DIGEST) -> Baseline:
    """What another judge said before."""
    earlier = [
        replace(each, judge_fingerprint=judge) if each.judge_fingerprint else each
        for each in results
    ]
    return update(Baseline(), earlier, Scope.of(result.case_id for result in results)).baseline


def decided(
    results: Sequence[CaseResult],
    baseline: Baseline | None = None,
    selected: Sequence[str] = (),
    **rules: Any,
) -> GateDecision:
    ids = [*(result.case_id for result in results), *selected]
    # Most of these sessions have violated cases alone.
    allowed = GateRules(**{"allow_one_class": True, **rules})
    return decide(results, baseline, allowed, Scope.of(ids))


def limits(decision: GateDecision) -> dict[tuple[str, str, str], bool]:
    return {(each.rule, each.test, each.judge): each.passed for each in decision.thresholds}


class TestItem:
    def test_without_gate_and_baseline_each_disagreement_fails(self) -> None:
        assert tolerated(case(1, "disagree"), None, GateRules()) is None

    def test_disagreement_that_the_baseline_has_is_wrong_before(self) -> None:
        known = baseline_of([case(1, "disagree")])
        assert tolerated(case(1, "disagree"), known, GateRules()) == "wrong in the baseline too"
        (line,) = known.cases.values()
        known = Baseline({line.case_id: replace(line, reason="sarcasm, see issue 12")})
        assert (
            tolerated(case(1, "disagree"), known, GateRules())
            == "wrong in the baseline too: sarcasm, see issue 12"
        )

    def test_regression_changed_case_and_new_case_fail(self) -> None:
        assert tolerated(case(1, "disagree"), baseline_of([case(1)]), GateRules()) is None
        changed = case(1, "disagree", case_digest=OTHER)
        assert tolerated(changed, baseline_of([case(1, "disagree")]), GateRules()) is None
        assert tolerated(case(2, "disagree"), baseline_of([case(1)]), GateRules()) is None

    @pytest.mark.parametrize("outcome", ["agree", "no_case", "generated", "model_error"])
    def test_only_disagreements_are_tolerated(self, outcome: Outcome) -> None:
        assert (
            tolerated(case(1, outcome), None, GateRules(min_accuracy=0.0, max_regressions=9))
            is None
        )


ONE_CLASS = (
    "Gate failed: one class only, so that a judge that always says 1 would pass (judge cases of "
    "another label too, or set gate.allow_one_class: true)."
)
# Of each session: a case a letter now, and in the baseline (empty: none, "-": of no case), the
# rules, whether it passes, and what is said of it.
DECISIONS: list[tuple[str, str, dict[str, Any], bool, str]] = [
    ("AADN", "", {}, True, "No gate is set: each disagreement fails its item."),
    ("DDA", "DDA", {}, True, "Gate passed: 0 regressions, at most 0 allowed."),
    (
        *("DDDDDDAAAA", "A" * 10, {}, False),
        "Gate failed: misses 6 of 10 violations that it found before (recall 100.0% before, 40.0% "
        "now); 6 regressions, at most 0 allowed.",
    ),
    ("DDDAA", "AAAAA", {"max_regressions": 3}, True, "3 regressions, at most 3 allowed"),
    ("DDDAA", "AAAAA", {"max_regressions": 2}, False, "3 regressions, at most 2 allowed"),
    ("DDA", "", {"max_regressions": 2}, True, "2 disagreements (there is no baseline), at most 2 "),
    ("DDD", "", {"max_regressions": 2}, False, "3 disagreements (there is no baseline), at most "),
    ("AAAD", "", {"min_accuracy": 0.75}, True, "Gate passed: accuracy 75.0% (n 4) reaches 75.0%."),
    ("AAAD", "", {"min_accuracy": 0.76}, False, "Gate failed: accuracy 75.0% (n 4) is below 76.0"),
    ("DDDAA", "AAAAA", {"min_accuracy": 0.9}, False, "Gate failed: accuracy 40.0% (n 5) is below "),
    (
        *("D" * 251 + "A" * 2249, "", {"min_accuracy": 0.9}, False),
        "89.96% (n 2,500) is below 90.00%",
    ),
    (
        *("AADA", "AADA", {"min_accuracy": {"agent_perturbation": 0.7}}, True),
        "Gate passed: accuracy on agent_perturbation 75.0% (n 4) reaches 70.0%. What could have "
        "gone unseen: on other runs, up to 65 points less recall would look like this.",
    ),
    ("DAAAAAAAAA", "A" * 10, {"min_accuracy": 0.9}, True, "accuracy 90.0% (n 10) reaches 90.0%"),
    (
        *("DAAAAAAAAA", "A" * 10, {"min_accuracy": 0.9, "max_regressions": 0}, False),
        "1 regression, at most 0 allowed. Met: accuracy 90.0% (n 10) reaches 90.0%.",
    ),
    (
        *("A" * 20, "", {"min_accuracy": 0.9, "lower_bound": True}, False),
        "Gate failed: lower bound of the accuracy 83.9% (n 20) is below 90.0%.",
    ),
    ("AAN", "", {"min_cases": 2}, True, "2 verdicts, at least 2 needed"),
    ("AAN", "", {"min_cases": 3}, False, "2 verdicts, at least 3 needed"),
    ("NN", "NN", {}, False, "Gate failed: "),
    ("GG", "", {"min_accuracy": 0.9, "min_cases": 5}, True, "nothing was to be judged"),
    ("AU", "", {}, False, "Not green: 1 case unscored."),
    (
        *("AAAAU", "AAAAA", {"min_accuracy": 0.1, "max_regressions": 9}, False),
        "Gate failed: 1 case unscored. Met: accuracy 100.0% (n 4) reaches 10.0%; ",
    ),
    # `max_drop`: five lost and none won are more than chance.
    (
        *("D" + "A" * 11, "A" * 12, {"max_drop": 0.05}, True),
        "Gate passed: misses 1 of 12 violations that it found before (recall 100.0% before, 91.7% "
        "now): too few to tell from chance. What could have gone unseen: on other runs, up to ",
    ),
    ("DDDD" + "A" * 56, "A" * 60, {"max_drop": 0}, True, "too few to tell from chance"),
    ("DDDDD" + "A" * 55, "A" * 60, {"max_drop": 0}, False, "Gate failed: misses 5 of 60 "),
    (
        *("DDD" + "A" * 57, "A" * 60, {"max_drop": 0.5, "max_regressions": 2}, False),
        "Gate failed: misses 3 of 60 violations that it found before (recall 100.0% before, 95.0% "
        "now); 3 regressions, at most 2 allowed. Met: misses 3 of 60 violations",
    ),
    ("A" * 12, "D" * 12, {"max_drop": 0}, True, "Gate passed: found no violation before (but fin"),
    ("A" * 60, "-", {"max_drop": 0}, False, "Gate failed: nothing could be compared with the "),
    ("A" * 60, "-", {"max_drop": 0, "allow_uncompared": True}, True, "gate.allow_uncompared lets "),
    ("D" + "A" * 59, "", {"max_drop": 0.05}, False, "1 disagreement (there is no baseline)"),
    ("A" * 60, "", {"max_drop": 0.05}, True, "Gate passed: "),
    (
        *("A" * 12, "A" * 12, {"max_drop": 0.05, "proof": True}, False),
        "Gate failed: misses none of 12 violations that it found before; INCONCLUSIVE: not proven "
        "that other runs lose less than 5 points. What could have gone unseen: on other runs, up "
        "to 23 points less recall would look like this.",
    ),
    (
        *("A" * 12, "A" * 12, {"max_drop": 0.05, "proof": True, "inconclusive": "pass"}, True),
        "Gate passed: misses none of 12 violations that it found before; INCONCLUSIVE: not proven",
    ),
    ("A" * 60, "A" * 60, {"max_drop": 0.05, "proof": True}, True, "Gate passed: misses none of 60"),
    (
        *("D" * 14 + "A" * 46, "A" * 60, {"max_drop": 0.05, "proof": True}, False),
        "Gate failed: misses 14 of 60 violations that it found before (recall 100.0% before, 76.7% "
        "now).",
    ),
    # Only violated cases: a judge that always says 1 would pass, unless that is allowed.
    *(
        ("AAAAAA", "AAAAAA", {**rules, "allow_one_class": False}, False, ONE_CLASS)
        for rules in (
            {"min_accuracy": 0.9},
            {"min_accuracy": {"agent_perturbation": 0.9}},
            {"min_accuracy": 0.3, "lower_bound": True},
            {"max_drop": 0.05},
            {"max_regressions": 3},
            {"min_cases": 5},
        )
    ),
    ("AAAAAA", "AAAAAA", {"allow_one_class": False}, True, "Gate passed: 0 regressions"),
    ("A", "", {"min_accuracy": 0.9, "allow_one_class": False}, True, "accuracy 100.0% (n 1)"),
    (
        *("AAA", "-", {}, False),
        "Gate failed: nothing could be compared with the baseline.",
    ),
    ("AAA", "-", {"allow_uncompared": True}, True, "which gate.allow_uncompared lets pass."),
    ("AAA", "A", {}, True, "Gate passed: 0 regressions"),
]


@pytest.mark.parametrize(("now", "before", "rules", "passed", "said"), DECISIONS)
def test_a_session_comes_to_a_decision_and_says_why(
    now: str, before: str, rules: dict[str, Any], passed: bool, said: str
) -> None:
    baseline = None
    if before:
        baseline = Baseline() if before == "-" else baseline_of(cases(before))
    decision = decided(cases(now), baseline, **rules)
    assert decision.passed == passed
    assert said in decision_sentence(decision)


class TestDecision:
    def test_regressions_and_fixes_are_counted_with_the_exact_test(self) -> None:
        decision = decided(cases("DDDAAAAA"), baseline_of(cases("AAADAAAA")))
        assert decision.regressions == tuple(map(id_of, (0, 1, 2)))
        assert decision.fixes == (id_of(3),)
        # Three or four of four changes in this direction.
        assert decision.changes[0].p_value == 5 / 16
        assert not decision.passed
        assert limits(decision) == {("min_cases", "", ""): True, ("max_regressions", "", ""): False}

    def test_disagreements_without_a_comparison_count_with_the_regressions(self) -> None:
        now = [
            case(0, "disagree"),
            case(1, "disagree", case_digest=OTHER),
            case(2, "disagree"),
            case(3),
        ]
        decision = decided(now, baseline_of(cases("ADNA")), max_regressions=2)
        assert decision.regressions == (id_of(0),)
        assert decision.new_disagreements == (id_of(1), id_of(2))
        assert not decision.passed
        assert decided(now, baseline_of(cases("ADNA")), max_regressions=3).passed

    def test_an_accuracy_of_one_test_does_not_answer_for_regressions_of_the_other(self) -> None:
        rules: dict[str, Any] = {"min_accuracy": {"agent_positives": 0.5}}
        now = [*cases("DA"), *cases("DA", test="agent_positives")]
        before = baseline_of([*cases("AA"), *cases("AA", test="agent_positives")])
        decision = decided(now, before, **rules)
        [counted] = [each for each in decision.thresholds if each.rule == "max_regressions"]
        assert (counted.passed, counted.cases) == (False, (id_of(0),))
        assert [tolerated(each, before, GateRules(**rules)) for each in now] == [
            None,
            None,
            "left to the gate",
            None,
        ]

    def test_test_without_a_verdict_does_not_reach_an_accuracy_but_a_deselected_one_is_left_out(
        self,
    ) -> None:
        rules = {"agent_perturbation": 0.5, "agent_positives": 0.5}
        decision = decided([*cases("AA"), *cases("NN", test="agent_positives")], min_accuracy=rules)
        assert not decision.passed
        assert decision.thresholds[2].figure.reason == "no verdict was given"
        assert decided(cases("AA"), min_accuracy=rules).passed

    def test_case_that_was_never_reported_is_red_and_named_with_and_without_a_gate(self) -> None:
        for baseline in (None, baseline_of(cases("AAA"))):
            decision = decided(cases("AA"), baseline, selected=[id_of(2)])
            assert not decision.passed
            assert decision.never_reported == (id_of(2),)
            assert f"  {id_of(2)}" in gate_texts(decision)

    def test_deselected_case_is_neither_missing_nor_one_sided(self) -> None:
        scope = Scope.of(map(id_of, range(3)), [id_of(0)])
        decision = decide(cases("A"), baseline_of(cases("AAA")), GateRules(), scope)
        assert decision.passed
        assert decision.never_reported == ()
        assert decision.not_comparable == {}

    def test_baseline_of_another_suite_is_left_alone(self) -> None:
        other = make_result(
            make_spec("run-9", suite="other"), case_digest=DIGEST, judge_fingerprint=OTHER
        )
        assert decided(cases("AA"), baseline_of([*cases("AA"), other])).not_comparable == {}


class TestLooking:
    """No gate passes by not looking, and every report says what its decision does not rest on
    (rules M9).
    """

    def test_scores_of_one_level_are_one_class(self) -> None:
        highest = [result for result in scored(right) if result.spec.target_score == 2]
        scope = Scope.of(result.case_id for result in highest)
        decision = decide(highest, None, GateRules(min_accuracy=0.9), scope)
        assert "always says 2 would pass" in decision_sentence(decision)

    def test_one_class_of_a_selection_is_left_to_the_warning(self) -> None:
        ids = [each.case_id for each in cases("AAAA")]
        scope = Scope.of(ids, ids[:2])
        assert decide(cases("AA"), None, GateRules(min_accuracy=0.9), scope).passed

    def test_a_baseline_of_another_suite_says_what_to_do(self) -> None:
        other = make_result(
            make_spec("run-9", suite="other"), case_digest=DIGEST, judge_fingerprint=OTHER
        )
        decision = decided(cases("AAU"), baseline_of([other]))
        # What is unrecorded is recorded before anything is updated.
        assert (decision.uncompared, update_sentence(decision)) == (True, None)
        decision = decided(cases("AA"), baseline_of([other]))
        advice = "Set gate.allow_uncompared: true if the suite is new, or update the baseline."
        assert update_sentence(decision) == advice
        lines = " ".join(gate_texts(decision))
        assert "No case can be compared with the baseline: not in the baseline (2)." in lines
        assert "The baseline has cases of other suites alone (other): the ids of cases" in lines

    def test_no_verdict_at_all_is_said_once_and_no_result_fails(self) -> None:
        assert change_sentences(decided(cases("UUU"), Baseline())) == [
            "No case has a verdict (3 cases: 3 unrecorded)."
        ]
        nothing = decide([], baseline_of(cases("AA")), GateRules(), Scope.of([id_of(0)], []))
        assert decision_sentence(nothing) == "Gate failed: none of its cases was run."

    def test_what_a_marker_skipped_as_a_whole_is_named(self) -> None:
        skipped = [make_spec(f"run-{run}", rubric_id="later", judge="strict") for run in range(3)]
        scope = Scope.of(each.case_id for each in cases("AA"))
        decision = decide(cases("AA"), None, GateRules(min_accuracy=0.5), scope, skipped)
        assert "No verdict on any case of rubric later (3 cases: 3 skipped)." in gate_texts(
            decision
        )

    @pytest.mark.parametrize("form", ["terminal", "markdown", "page", "data"])
    def test_every_report_says_what_a_decision_does_not_rest_on(
        self, form: str, tmp_path: Path
    ) -> None:
        few = [each for each in judged(right, runs=2) if each.spec.test == "agent_perturbation"]
        missing = [
            make_result(make_spec(f"run-{run}", rubric_id="silent"), "no_case") for run in range(3)
        ]
        session = session_of([*few, *missing], min_accuracy=0.5)
        text = said_in(form, session, tmp_path)
        for said in (
            "nly violated cases: a judge that always says 1 would get 100%.",
            f"Few cases for a gate: {len(few)} verdicts, and with min_cases: 1 one verdict is",
            "No verdict on any case of rubric silent (3 cases: 3 no_case).",
        ):
            assert said in text
        whole = said_in(form, session_of(judged(right), min_accuracy=0.5), tmp_path)
        assert "would get 100%" not in whole
        assert "Few cases" not in whole


def said_in(form: str, session: Session, folder: Path) -> str:
    if form == "terminal":
        return "\n".join(line.text for line in session_lines(session, width=400))
    if form == "markdown":
        return html.unescape(markdown_report(session).replace("\\", ""))
    if form == "page":
        write_html(folder / "report.html", session)
        return html.unescape((folder / "report.html").read_text("utf-8"))
    decisions = [decision_data(decision) for decision in session.decisions.values()]
    return json.dumps([table_data(session.table), *decisions])


OUTCOMES = st.sampled_from("ADNUG")
RULES = st.builds(
    GateRules,
    min_accuracy=st.none()
    | st.floats(0, 1)
    | st.dictionaries(st.sampled_from(BOTH_TESTS), st.floats(0, 1)),
    lower_bound=st.booleans(),
    max_drop=st.none() | st.just(0.1),
    inconclusive=st.sampled_from(["fail", "pass"]),
    max_regressions=st.none() | st.integers(0, 3),
)


@given(st.data(), RULES, st.booleans())
@settings(max_examples=200, deadline=None)
def test_no_disagreement_falls_between_item_and_gate(
    data: st.DataObject, rules: GateRules, with_baseline: bool
) -> None:
    def drawn() -> list[CaseResult]:
        letters = {
            test: data.draw(st.text(OUTCOMES, min_size=1, max_size=6)) for test in BOTH_TESTS
        }
        return [each for test in BOTH_TESTS for each in cases(letters[test], test=test)]

    now = [
        replace(each, case_digest=data.draw(st.sampled_from([DIGEST, OTHER]))) for each in drawn()
    ]
    baseline = baseline_of(drawn()) if with_baseline else None
    decision = decide(now, baseline, rules, Scope.of(each.case_id for each in now))
    wrong = [each for each in now if each.outcome == "disagree"]
    let_through = [
        each for each in wrong if (tolerated(each, baseline, rules) or "").startswith("left")
    ]
    counted = {case_id for threshold in decision.thresholds for case_id in threshold.cases}
    assert {each.case_id for each in let_through} <= counted
    if decision.passed and decision.active:
        regressions = {
            each.case_id
            for each in now
            if each.case_id in decision.regressions
            and (
                rules.max_regressions is not None
                or not (rules.covers(each.spec.test) or rules.max_drop is not None)
            )
        }
        unanswered = regressions | {*decision.new_disagreements}
        assert len(unanswered) <= (rules.max_regressions or 0)
        failing = [each for each in wrong if tolerated(each, baseline, rules) is None]
        assert failing == []


class TestText:
    def test_lines_name_every_case_once_and_end_with_the_decision(self) -> None:
        before_results = cases("AADAAA")
        before = baseline_of(before_results)
        now = [*cases("DAAUN"), case(8, "disagree")]
        every = [result.case_id for result in [*before_results, *now]]
        nodes = {case_id: case_id.split("::")[-1] for case_id in every}
        lines = gate_texts(decided(now, before, selected=[id_of(5)]), nodes)
        assert lines == [
            "regressions (1):",
            "  run-00[e1]",
            "fixes (1):",
            "  run-02[e1]",
            "disagreements not in the baseline (1):",
            "  run-08[e1]",
            "never reported (1):",
            "  run-05[e1]",
            "unscored (1):",
            "  run-03[e1] (unrecorded)",
            "not comparable with the baseline (1):",
            "  run-04[e1] (no verdict now: no_case)",
            "3 cases compared with the baseline: 1 regression, 1 fix.",
            "Few cases for a gate: 4 verdicts, and with min_cases: 1 one verdict is enough; set "
            "gate.min_cases to what the suite should have.",
            "Gate failed: misses 1 of 2 violations that it found before (but finds 1 that it "
            "missed); 1 regression and 1 disagreement not in the baseline, at most 0 allowed; "
            "1 case never reported; 1 case unscored. Compared: 3 of 6 cases of the baseline; 1 "
            "verdict on cases that it does not have.",
        ]

    def test_cases_behind_a_failed_accuracy_are_named_and_long_lists_counted(self) -> None:
        lines = gate_texts(decided(cases(f"{'D' * 52}A"), min_accuracy=0.9))
        assert lines[:2] == [
            "disagreements for which the accuracy is too low (52):",
            f"  {id_of(0)}",
        ]
        assert lines[50:52] == [f"  {id_of(49)}", "  and 2 more"]
        assert lines[-1].startswith("Gate failed: accuracy 1.9% (n 53) is below 90.0%.")

    def test_judge_and_test_are_named_where_there_are_several(self) -> None:
        now = [
            *cases("AN", judge="strict", test="agent_positives"),
            *cases("ND", judge="lax", test="agent_positives"),
        ]
        rules = {"agent_positives": 0.5}
        sentence = decision_sentence(
            decided(now, min_accuracy=rules, lower_bound=True, min_cases=2)
        )
        assert "1 verdict by strict, at least 2 needed" in sentence
        assert (
            "lower bound of the accuracy on agent_positives by lax 0.0% (n 1) is below 50.0%"
            in sentence
        )


class TestCoverage:
    """Rule J9: a comparison with less than the baseline has says so in the gate's sentence."""

    @staticmethod
    def said(decision: GateDecision) -> str:
        return decision_sentence(decision)

    def test_fewer_repeats_are_said_and_more_are_not(self) -> None:
        thrice, once = cases("AAAA", scores=(1, 1, 1)), cases("AAAA", scores=(1,))
        fewer = decided(once, baseline_of(thrice), max_regressions=2)
        assert self.said(fewer).endswith(
            "Compared: 4 of 4 cases of the baseline; 4 cases with 1 repeat instead of 3."
        )
        assert "Compared:" not in self.said(decided(thrice, baseline_of(once)))

    def test_changed_cases_are_counted_and_fail_under_the_share(self) -> None:
        before = cases("A" * 20)
        now = [before[0], *(replace(each, case_digest=OTHER) for each in before[1:])]
        lenient = decided(now, baseline_of(before))
        strict = decided(now, baseline_of(before), min_compared=0.8)
        assert lenient.passed
        assert self.said(lenient).endswith("Compared: 1 of 20 cases of the baseline.")
        assert not strict.passed
        assert "1 of 20 cases compared with the baseline, at least 80.0% needed" in self.said(
            strict
        )

    def test_a_baseline_that_was_cut_is_no_whole_comparison(self) -> None:
        now = cases("A" * 20)
        decision = decided(now, baseline_of(now[:1]), min_compared=0.8, min_accuracy=0.5)
        assert not decision.passed
        assert self.said(decision).startswith(
            "Gate failed: 1 of 20 cases compared with the baseline, at least 80.0% needed."
        )
        assert "1 of 1 case of the baseline; 19 verdicts on cases that it does not have" in (
            self.said(decision)
        )
        assert decision.outgrown
        lost = decided(now[1:], baseline_of(now[:10]), min_compared=0.8)
        wrong = decided(cases("D" + "A" * 19), baseline_of(now[:1]), min_compared=0.8)
        assert not lost.outgrown
        assert not wrong.outgrown

    def test_a_judge_a_rubric_and_a_test_that_are_gone_are_named(self) -> None:
        before = [
            *cases("AA", judge="kind"),
            *cases("AA", judge="strict-2"),
            *cases("A", judge="kind", test="agent_positives"),
        ]
        other = result_with(
            before[0], rubric_id="tone", case_id=before[0].case_id.replace("refund_policy", "tone")
        )
        decision = decided(before[:2], baseline_of([*before, other]), min_compared=0.3)
        assert decision.passed
        assert self.said(decision).endswith(
            "Compared: 2 of 6 cases of the baseline; nothing of judge strict-2, rubric tone, test "
            "agent_positives."
        )

    def test_what_was_deselected_counts_as_not_compared(self) -> None:
        before = cases("A" * 10)
        ids = [each.case_id for each in before]
        for limit, passed in ((0.2, True), (0.8, False)):
            decision = decide(
                before[:2],
                baseline_of(before),
                GateRules(min_compared=limit),
                Scope.of(ids, ids[:2]),
            )
            assert decision.passed is passed
            assert "Compared: 2 of 10 cases of the baseline (8 deselected)." in self.said(decision)

    def test_rules_about_tests_without_selected_cases_are_named(self) -> None:
        before = cases("AA")
        ids = [*(each.case_id for each in before), id_of(9)]
        limits = {
            "probes": {"position": {"max_rate": 0.1}},
            "min_accuracy": {"agent_positives": 0.9},
        }
        rules = GateRules.model_validate(limits)
        decision = decide(before, None, rules, Scope.of(ids, ids[:2]))
        assert self.said(decision).endswith(
            "Not decided, as none of its cases was selected: gate.probes.position, "
            "gate.min_accuracy.agent_positives."
        )
