"""How much worse a judge may be: losses inside of cases, PASS, FAIL and INCONCLUSIVE, and flicker
(rules M3, M4, M8)."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.config.schema import GateRules
from pytest_jrh.core.model import CaseResult, Outcome, most_frequent
from pytest_jrh.reports.gate import (
    certainty_sentences,
    change_sentences,
    decision_sentence,
    update_sentence,
)
from pytest_jrh.reports.json_values import decision_data
from pytest_jrh.stats.baseline import Baseline, Scope, update
from pytest_jrh.stats.changes import SetChange
from pytest_jrh.stats.gate import GateDecision, Threshold, decide, tolerated
from pytest_jrh.stats.intervals import false_alarm_of_snapshot
from pytest_jrh.store.baseline import load
from tests.support.judged_sessions import gate_texts
from tests.support.made_cases import make_result, make_spec

DIGEST = "0123456789abcdef" * 4
EARLIER, NOW = "a" * 64, "b" * 64
DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "trajectory-judge"


def scored(
    run: int, place: int, scores: Sequence[int], judge: str = NOW, panel: str | None = None
) -> CaseResult:
    """A case of a run whose label is 1, with the scores of its repeats; a tie has no score."""
    ones = sum(scores)
    score = None if 2 * ones == len(scores) else int(2 * ones > len(scores))
    spec = make_spec(f"run-{run:03}", rubric_id=f"rubric-{place}", judge=panel)
    outcome: Outcome = "agree" if score == 1 else "disagree"
    result = make_result(spec, outcome, case_digest=DIGEST, judge_fingerprint=judge)
    return replace(result, score=score, scores=tuple(scores))


def session(
    rng: random.Random,
    runs: int,
    size: int,
    *,
    drop: float = 0.0,
    flip: float = 0.05,
    repeats: int = 3,
) -> list[CaseResult]:
    """The verdicts of a judge that flips, and has broken a share of the cases."""
    broken = drop / (1 - 2 * flip)
    return [
        scored(
            run, place, [int(rng.random() >= (1 - flip if wrong else flip)) for _ in range(repeats)]
        )
        for run in range(runs)
        for place in range(size)
        for wrong in (rng.random() < broken,)
    ]


def earlier(results: Iterable[CaseResult]) -> list[CaseResult]:
    return [replace(result, judge_fingerprint=EARLIER) for result in results]


def baseline_of(results: Iterable[CaseResult]) -> Baseline:
    given = list(results)
    return update(Baseline(), given, scope_of(given)).baseline


def scope_of(results: Iterable[CaseResult]) -> Scope:
    return Scope.of(result.case_id for result in results)


def decided(now: Sequence[CaseResult], before: Baseline | None, **rules: Any) -> GateDecision:
    # Most of these sessions have violated cases alone.
    allowed = GateRules(**{"allow_one_class": True, **rules})
    return decide(now, before, allowed, scope_of(now))


def drop_of(decision: GateDecision) -> Threshold:
    [threshold] = [each for each in decision.thresholds if each.rule == "max_drop"]
    return threshold


def change_of(decision: GateDecision, kind: str, rubric: str = "") -> SetChange:
    [change] = [each for each in decision.changes if (each.kind, each.rubric) == (kind, rubric)]
    return change


class TestWiring:
    @given(st.integers(0, 12), st.integers(0, 12))
    @settings(max_examples=25, deadline=None)
    def test_with_one_verdict_each_p_is_that_of_mcnemars_exact_test(
        self, lost: int, won: int
    ) -> None:
        before = [scored(run, 0, [int(run < 20 + lost)]) for run in range(20 + lost + won)]
        now = [
            scored(run, 0, [int(run < 20 or run >= 20 + lost)]) for run in range(20 + lost + won)
        ]
        decision = decided(now, baseline_of(earlier(before)))
        change = change_of(decision, "violated")
        tail = sum(math.comb(lost + won, number) for number in range(lost, lost + won + 1))
        assert change.p_value == pytest.approx(tail / 2 ** (lost + won))
        assert (len(change.lost), len(change.won), change.n) == (lost, won, 20 + lost + won)
        assert change.drop == pytest.approx((lost - won) / change.n)

    def test_repeats_count_by_their_shares(self) -> None:
        rng = random.Random(3)
        before, now = session(rng, 30, 3), session(rng, 30, 3, drop=0.1)
        decision = decided(now, baseline_of(earlier(before)), max_drop=0.05)
        pairs = zip(before, now, strict=True)
        lost = sum(sum(old.scores) - sum(new.scores) for old, new in pairs) / 3
        assert change_of(decision, "violated").drop == pytest.approx(lost / 90)
        assert {change.kind for change in decision.changes} == {"violated", "rubric"}

    def test_cases_of_one_run_count_each_by_itself(self) -> None:
        before = [scored(run, place, [int(run > 1)]) for run in range(10) for place in range(6)]
        now = [scored(run, place, [int(run > 4)]) for run in range(10) for place in range(6)]
        decision = decided(now, baseline_of(earlier(before)), max_drop=0)
        assert len(decision.regressions) == 18
        assert change_of(decision, "violated").p_value == 0.5**18
        assert drop_of(decision).drop.verdict == "FAIL"  # type: ignore[union-attr]

    def test_a_rubric_is_found_among_others_that_hold(self) -> None:
        before = [scored(run, place, [1, 1, 1]) for run in range(12) for place in range(10)]
        now = [
            scored(run, place, [int(run > 5 or place > 0)] * 3)
            for run in range(12)
            for place in range(10)
        ]
        decision = decided(now, baseline_of(earlier(before)), max_drop=0.1)
        assert decision_sentence(decision) == (
            "Gate failed: misses 6 of 120 violations that it found before (6 on rubric-0; recall "
            "100.0% before, 95.0% now); worse on rubric-0 (accuracy 100.0% before, 50.0% now)."
        )
        data = decision_data(decision)
        [drop] = [each["drop"] for each in data["thresholds"] if each["rule"] == "max_drop"]
        assert drop["worse"] == [{"set": "rubric", "rubric": "rubric-0"}]
        [row] = [each for each in data["baseline"]["changes"] if each["rubric"] == "rubric-0"]
        assert row["adjusted_p_value"] >= row["p_value"] == pytest.approx(0.05**6)


class TestClasses:
    """What an edited prompt breaks most often: the judge becomes laxer, or stricter."""

    def verdicts(self, missed: int, alarms: int, runs: int = 20) -> list[CaseResult]:
        made = [scored(run, 0, [int(run >= missed)] * 3) for run in range(runs)]
        for run in range(runs):
            spec = make_spec(f"run-{run:03}", test="agent_positives", rubric_id="rubric-0")
            score = int(run < alarms)
            outcome: Outcome = "disagree" if score else "agree"
            result = make_result(
                spec, outcome, case_digest=DIGEST, judge_fingerprint=NOW, expected=0
            )
            made.append(replace(result, score=score, scores=(score,) * 3))
        return made

    def decision(self, before: tuple[int, int], now: tuple[int, int], **rules: Any) -> GateDecision:
        baseline = baseline_of(earlier(self.verdicts(*before)))
        return decided(self.verdicts(*now), baseline, **rules)

    def test_a_laxer_judge_of_the_same_accuracy_fails(self) -> None:
        decision = self.decision((0, 4), (4, 0), max_drop=0.05)
        assert not decision.passed
        assert decision_sentence(decision) == (
            "Gate failed: misses 4 of 20 violations that it found before (recall 100.0% before, "
            "80.0% now), and raises no new false alarms on 16 cases that it passed before (but "
            "passes 4 that it flagged; false positives 20.0% before, 0.0% now)."
        )

    def test_a_loss_within_what_is_allowed_passes_and_says_so(self) -> None:
        decision = self.decision((0, 0), (4, 0), max_drop=0.2)
        assert decision.passed
        assert "80.0% now), and raises no new false alarms on 20 cases that it passed before: " in (
            decision_sentence(decision)
        )
        assert ": max_drop allows 20 points. What could have gone unseen: " in (
            decision_sentence(decision)
        )

    def test_p_values_stand_in_the_fold_alone(self) -> None:
        decision = self.decision((0, 0), (4, 0), max_drop=0)
        for text in (decision_sentence(decision), *change_sentences(decision)):
            assert "p = " not in text
            assert "noise" not in text
        assert any("p = 6.25e-06" in text for text in certainty_sentences(decision))
        assert decision_data(decision)["certainty"] == list(certainty_sentences(decision))


class TestDecision:
    BEFORE = tuple(scored(run, 0, [1]) for run in range(60))

    def now(self, wrong: int, runs: int = 60) -> list[CaseResult]:
        return [scored(run, 0, [int(run >= wrong)]) for run in range(runs)]

    def test_all_cases_of_one_run_prove_nothing_of_others(self) -> None:
        one = [scored(1, place, [1]) for place in range(9)]
        decision = decided(one, baseline_of(earlier(one)), max_drop=0.05)
        assert decision_sentence(decision) == (
            "Gate passed: misses none of 9 violations that it found before. How other runs would "
            "be judged is not known: all cases come from one source run."
        )
        assert not decided(one, baseline_of(earlier(one)), max_drop=0.05, proof=True).passed

    def test_a_replay_of_what_the_baseline_was_made_of_is_proof_however_small_it_is(self) -> None:
        small = [scored(run, 0, [1, 1, int(run > 0)]) for run in range(3)]
        decision = decided(small, baseline_of(small), max_drop=0.05, proof=True)
        assert not any("Few cases" in line for line in change_sentences(decision))
        assert decision_sentence(decision) == (
            "Gate passed: judge and verdicts are those of the baseline in 3 compared cases."
        )
        rules: dict[str, Any] = {"max_drop": 0.05, "proof": True}
        for before in (earlier(small), [*small[1:], scored(0, 0, [1, 1, 1])]):
            assert not decided(small, baseline_of(before), **rules).passed

    def test_single_regressions_are_left_to_the_drop_but_new_disagreements_are_not(self) -> None:
        before = baseline_of(earlier(self.BEFORE))
        rules = GateRules(max_drop=0.5, allow_one_class=True)
        now = [*self.now(3), scored(77, 0, [0])]
        assert tolerated(now[0], before, rules) == "left to the gate"
        assert tolerated(now[-1], before, rules) is None
        decision = decide(now, before, rules, scope_of(now))
        assert drop_of(decision).passed
        assert decision_sentence(decision).startswith(
            "Gate failed: 1 disagreement not in the baseline, at most 0 allowed. Met: misses 3 of "
        )
        assert decide(now[:-1], before, rules, scope_of(now[:-1])).passed


class TestPanel:
    def panel(self, wrong: Sequence[int], runs: int = 27) -> list[CaseResult]:
        return [
            scored(run, 0, [int(run >= many)], panel=f"j{number}")
            for number, many in enumerate(wrong)
            for run in range(runs)
        ]

    def test_the_lowest_of_a_panel_may_be_below_the_accuracy_by_chance(self) -> None:
        # 24 of 27 is 88.9%.
        assert not decided(self.panel([3]), None, min_accuracy=0.9).passed
        decision = decided(self.panel([3, 1, 1, 0, 2]), None, min_accuracy=0.9)
        assert decision.passed
        assert (
            "accuracy by j0 88.9% (n 27) is below 90.0%, as the lowest of 5 judges may be by chance"
            in decision_sentence(decision)
        )
        assert decision_data(decision)["thresholds"][5]["by_chance"] == 5

    def test_what_is_below_by_more_than_chance_fails_with_all_that_are_below_beside_it(
        self,
    ) -> None:
        decision = decided(self.panel([9, 8, 0, 0]), None, min_accuracy=0.9)
        failed = [each.judge for each in decision.thresholds if not each.passed]
        assert failed == ["j0", "j1"]

    def test_a_lower_bound_has_to_be_shown_by_each_judge(self) -> None:
        decision = decided(self.panel([0, 3]), None, min_accuracy=0.8, lower_bound=True)
        assert [each.judge for each in decision.thresholds if not each.passed] == ["j1"]

    def test_the_drop_is_decided_for_each_judge_and_for_all_together(self) -> None:
        before = baseline_of(earlier(self.panel([0, 0, 0], 60)))
        decision = decided(self.panel([0, 0, 20], 60), before, max_drop=0.15)
        found = {
            each.judge: each.drop.verdict for each in decision.thresholds if each.drop is not None
        }
        assert found == {"j0": "PASS", "j1": "PASS", "j2": "FAIL"}

    def test_a_panel_that_has_not_changed_is_adjusted_for_the_number_of_its_judges(self) -> None:
        alone = decided(self.panel([6]), baseline_of(earlier(self.panel([0]))), max_drop=0)
        before = baseline_of(earlier(self.panel([0, 20, 20])))
        among = decided(self.panel([6, 26, 26]), before, max_drop=0)
        [one], [first, *_] = alone.changes, among.changes
        assert (one.p_value, one.adjusted) == (1 / 64, 1 / 64)
        assert first.p_value == 1 / 64
        assert first.adjusted == pytest.approx(1 - (63 / 64) ** 3, rel=0.1)

    def test_a_judge_that_the_baseline_has_not_is_not_decided_and_says_what_to_do(self) -> None:
        before = baseline_of(earlier(self.panel([0, 0])))
        now = self.panel([0, 0, 9])
        rules: dict[str, Any] = {"max_drop": 0, "min_accuracy": 0.5}
        decision = decided(now, before, **rules, inconclusive="pass")
        assert not decision.passed
        assert "max_drop by j2 is not decided: no case could be compared" in (
            decision_sentence(decision)
        )
        assert update_sentence(decision) == (
            "Set gate.allow_uncompared: true if the judge is new, or update the baseline."
        )
        assert decided(now, before, **rules, allow_uncompared=True).passed


class TestFlicker:
    def test_more_than_flicker_explains_is_not_called_flicker(self) -> None:
        before = [scored(run, 0, [1]) for run in range(20)]
        now = [scored(run, 0, [int(run > 9)]) for run in range(20)]
        for baseline, verdicts in ((baseline_of(before), 10), (baseline_of(earlier(before)), 0)):
            decision = decided(now, baseline, max_drop=0)
            assert (len(decision.changed_unseen), decision.flickered) == (verdicts, ())
            texts = gate_texts(decision)
            assert "regressions (10):" in texts
            assert not any("by flicker" in text or "Flicker," in text for text in texts)
            assert any("the model's name may have changed" in text for text in texts) == bool(
                verdicts
            )

    def test_another_verdict_of_the_same_judge_is_named_as_flicker(self) -> None:
        before = [scored(run, 0, [int(run != 5)]) for run in range(20)]
        now = [scored(run, 0, [int(run > 1)]) for run in range(20)]
        decision = decided(now, baseline_of(before))
        assert len(decision.regressions) == 2
        assert decision.flickered == (now[0].case_id, now[1].case_id, now[5].case_id)
        lines = gate_texts(decision)
        assert "regressions by flicker: the judge has not changed (2):" in lines
        assert "fixes by flicker: the judge has not changed (1):" in lines
        assert not [line for line in lines if line.startswith(("regressions (", "fixes ("))]
        assert (
            "Flicker, not a change: 2 of 2 regressions and 1 of 1 fix by a judge that is the same "
            "as in the baseline (model, prompt, parameters) and was asked again." in lines
        )

    def test_a_snapshot_says_how_often_an_unchanged_judge_fails_it(self) -> None:
        before, now = (
            [scored(run, 0, [1, 1, int(run > 2)]) for run in range(60)] for _ in range(2)
        )
        decision = decided(now, baseline_of(earlier(before)))
        [known] = decision.flickers
        assert (known.source, known.repeats, known.cases) == ("repeats", 3, 60)
        assert known.value == pytest.approx(3 / 60 * 2 / 3)
        share = false_alarm_of_snapshot(60, known.value or 0, 3)
        assert any(
            "a judge with a flicker of 3.3% (from repeats) that has not changed, and is asked "
            f"again, fails this in {100 * share:.0f}% of sessions." in line
            for line in certainty_sentences(decision)
        )

    def test_flicker_against_the_baseline_counts_where_nothing_was_repeated(self) -> None:
        before, now = (
            [scored(run, 0, [int(run != wrong)]) for run in range(20)] for wrong in (1, 3)
        )
        [known] = decided(now, baseline_of(before)).flickers
        assert (known.source, known.value) == ("baseline", 0.1)
        [other] = decided(now, baseline_of(earlier(before))).flickers
        assert (other.source, other.value) == ("", None)
        # The recordings that the baseline was made of say nothing.
        [replayed] = decided(before, baseline_of(before)).flickers
        assert replayed.value is None


class TestWords:
    def test_where_repeats_differ_the_rate_is_said_to_be_of_all_of_them(self) -> None:
        baseline = baseline_of(earlier(scored(run, 0, [1, 1, 1]) for run in range(20)))
        decision = decided([scored(run, 0, [1, 1, 0]) for run in range(20)], baseline, max_drop=0)
        assert decision_sentence(decision) == (
            "Gate failed: misses none of 20 violations that it found before (recall over all "
            "repeats 100.0% before, 66.7% now)."
        )

    def test_a_loss_in_none_of_the_classes_by_itself_is_told_together(self) -> None:
        def verdicts(lost: int) -> list[CaseResult]:
            return TestClasses().verdicts(lost, lost)

        once = [
            replace(result, scores=result.scores[:1]) for result in [*verdicts(3), *verdicts(0)]
        ]
        decision = decided(once[:40], baseline_of(earlier(once[40:])), max_drop=0)
        assert decision_sentence(decision).endswith(
            "15.0% now); together accuracy 100.0% before, 85.0% now."
        )

    def test_classes_within_and_above_what_is_allowed_are_told_apart(self) -> None:
        many = [scored(run, 0, [int(run > 7)]) for run in range(200)]
        few = TestClasses().verdicts(0, 2, runs=10)[10:]
        before = [scored(run, 0, [1]) for run in range(200)]
        before += TestClasses().verdicts(0, 0, runs=10)[10:]
        now = [replace(result, scores=result.scores[:1]) for result in [*many, *few]]
        before = [replace(result, scores=result.scores[:1]) for result in before]
        decision = decided(now, baseline_of(earlier(before)), max_drop=0.05)
        assert decision.passed
        assert (
            "20.0% now): max_drop allows 5 points, and where more are lost, they are too few to "
            "tell from chance. What" in decision_sentence(decision)
        )


ANY_SCORES = st.lists(st.sampled_from([0, 1, 2, 3, -7, 10**30]), min_size=1, max_size=4).map(tuple)


@st.composite
def any_session(draw: st.DrawFn) -> list[CaseResult]:
    """Cases of one or three judges, binary or on a scale, with repeats of any numbers and scores of
    any scale.
    """
    ordinal = draw(st.booleans())
    results = []
    panels: list[tuple[str | None, ...]] = [(None,), ("j0", "j1", "j2")]
    for judge in draw(st.sampled_from(panels)):
        for place, scores in enumerate(draw(st.lists(ANY_SCORES, min_size=1, max_size=6))):
            label = place % 4 if ordinal else place % 2
            spec = make_spec(
                f"run-{place // 2}",
                rubric_id=f"rubric-{place % 3}",
                test="agent_perturbation" if ordinal or label else "agent_positives",
                target_score=label if ordinal else None,
                judge=judge,
            )
            score = most_frequent(scores)
            outcome: Outcome = "agree" if score == label else "disagree"
            result = make_result(
                spec, outcome, case_digest=DIGEST, judge_fingerprint=NOW, expected=label
            )
            results.append(replace(result, score=score, scores=scores if len(scores) > 1 else ()))
    return results


@given(any_session(), any_session(), st.sampled_from([0, 0.05]))
@settings(max_examples=60, deadline=None)
def test_the_same_verdicts_pass_and_any_others_come_to_a_decision(
    now: list[CaseResult], accepted: list[CaseResult], limit: float
) -> None:
    before = baseline_of(earlier(now))
    same = decided(now, before, max_drop=limit)
    assert same.passed
    assert not same.regressions
    other = decided(accepted, before, max_drop=limit)
    assert decision_sentence(other)
    assert json.dumps(decision_data(other))


@pytest.mark.skipif(not DATA.exists(), reason="the trajectory-judge data are not there")
def test_a_judge_that_always_says_faulty_fails_the_gate_after_a_good_one() -> None:
    def verdicts(judge: str) -> list[CaseResult]:
        runs = map(json.loads, (DATA / "trajectories.jsonl").read_text("utf-8").splitlines())
        clusters = {run["trajectory_id"]: run["instance_id"] for run in runs}
        lines = map(json.loads, (DATA / "verdicts.jsonl").read_text("utf-8").splitlines())
        found = []
        for line in lines:
            if line["judge_id"] == judge:
                name = line["trajectory_id"]
                test = "agent_positives" if name.endswith("-clean") else "agent_perturbation"
                spec = make_spec(name, test=test, rubric_id="faulty")
                label, score = int(test == "agent_perturbation"), int(line["faulty"])
                found.append(
                    make_result(
                        spec,
                        "agree" if label == score else "disagree",
                        score,
                        case_digest=DIGEST,
                        judge_fingerprint=judge.encode().hex().ljust(64, "0"),
                        cluster=clusters[name],
                    )
                )
        return found

    now = verdicts("step:llama3.1:8b")
    for judge in ("step:qwen2.5:14b", "programmatic"):
        decision = decided(now, baseline_of(verdicts(judge)), max_drop=0.05)
        assert not decision.passed
        said = decision_sentence(decision)
        assert re.search(
            r"and raises \d+ new false alarms on \d+ cases that it passed before", said
        )
        assert change_of(decision, "satisfied").adjusted < 0.001
        assert len(change_of(decision, "all").sizes) == 141
    same = verdicts("step:qwen2.5:14b")
    assert decided(same, baseline_of(same), max_drop=0).passed
    assert decided(same, baseline_of(earlier(same)), max_drop=0).passed


def test_a_baseline_that_an_earlier_version_wrote_still_compares() -> None:
    """The file was written by the package of commit 596c9c9, in two updates of which the second
    accepted a miss in run 1: 3 repeats, single verdicts and a panel.
    """
    baseline = load(Path(__file__).parents[1] / "support" / "baseline_of_596c9c9.json")
    digests: dict[str, Any] = {"case_digest": DIGEST, "judge_fingerprint": NOW}

    def judged(broken: int) -> list[CaseResult]:
        results = []
        for run in range(1, 6):
            missed = run <= broken
            spec = make_spec(f"run-{run}")
            result = make_result(spec, "disagree" if missed else "agree", **digests)
            scores = (int(not missed),) * 3
            results.append(replace(result, score=scores[0], scores=scores))
            right = make_spec(f"run-{run}", rubric_id="tone", test="agent_positives")
            results.append(make_result(right, "agree", **digests))
        for judge in ("kind", "strict"):
            spec = make_spec("run-1", rubric_id="tone", judge=judge)
            results.append(replace(make_result(spec, "agree", **digests), scores=(1, 1, 0)))
        return results

    for broken, verdict in ((0, "PASS"), (1, "PASS"), (4, "FAIL")):
        results = judged(broken)
        scope = Scope.of(result.case_id for result in results)
        decision = decide(results, baseline, GateRules(max_drop=0), scope)
        assert decision.comparison is not None
        assert (decision.comparison.compared, decision.not_comparable) == (12, {})
        drops = {threshold.judge: threshold.drop for threshold in decision.thresholds}
        assert (drops[""] and drops[""].verdict) == verdict
    assert {len(change.lost) for change in decision.changes if not change.judge} == {0, 3}
