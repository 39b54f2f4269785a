"""The baseline and its file: what is written, what is refused, what an update touches."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.core import InputError
from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.cases import Outcome
from pytest_jrh.core.results import CaseResult
from pytest_jrh.judges.judge import PromptJudge
from pytest_jrh.llm.calls import parse_prompt
from pytest_jrh.stats.verdicts import Baseline, Scope, short, update
from pytest_jrh.store.ledger import parsed, render
from tests.support.conversations import judge_settings
from tests.support.figures import comparison_of
from tests.support.made_cases import judge_line, make_result, make_spec, result_with

DIGEST = "0123456789abcdef" * 4
OTHER = "fedcba9876543210" * 4
JUDGE = "aaaaaaaaaaaaaaaa" * 4


def outcome_of(run: int, outcome: Outcome = "agree", **changes: Any) -> CaseResult:
    judged = outcome in ("agree", "disagree")
    digests = {"case_digest": DIGEST, "judge_digest": JUDGE} if judged else {}
    suite = changes.pop("suite", "refunds")
    return make_result(make_spec(f"run-{run}", suite=suite), outcome, **{**digests, **changes})


def id_of(run: int, suite: str = "refunds") -> str:
    return outcome_of(run, suite=suite).case_id


def all_of(*results: CaseResult) -> Scope:
    return Scope.of(result.case_id for result in results)


def accepted(*results: CaseResult) -> Baseline:
    return update(Baseline(), results, all_of(*results)).baseline


LINE = render(accepted(outcome_of(1)))


def test_a_baseline_is_a_ledger_behind_a_line_for_each_judge() -> None:
    judge = judge_line(JUDGE, "Be strict.\nSay why.", file="/repo/judge.md")
    results = [outcome_of(2, "disagree"), outcome_of(1)]
    baseline = update(Baseline(), results, all_of(*results), [judge]).baseline
    head, first, second = map(json.loads, render(baseline).splitlines())
    assert head == {
        "format": 3,
        "suite": "refunds",
        "judge_digest": "aaaaaaaaaaaaaaaa",
        "kind": "prompt",
        "models": ["openai/gpt-4.1-mini"],
        "parameters": {"repeats": 1},
        "asks_model": True,
        "prompt": "Be strict.\nSay why.",
    }
    keys = "format case_id suite test rubric_id run_id epoch label labelled_by"
    assert [*first] == [*keys.split(), "case_digest", "judge_digest", "scores", "reasons"]
    assert (first["format"], first["case_id"], first["scores"]) == (3, id_of(1), [1])
    assert (first["case_digest"], first["judge_digest"]) == (short(DIGEST), short(JUDGE))
    assert (second["case_id"], second["scores"]) == (id_of(2), [0])


LINES = st.tuples(st.integers(0, 99), st.integers(-3, 9), st.text())


@given(st.lists(LINES, min_size=1, unique_by=lambda line: line[0]), st.text())
@settings(max_examples=60)
def test_what_is_saved_is_what_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, made: list[tuple[int, int, str]], prompt: str
) -> None:
    lines = [outcome_of(run, score=score, reasoning=text, reason=text) for run, score, text in made]
    judges = (judge_line(short(JUDGE), prompt),)
    baseline = Baseline({line.case_id: line for line in lines}, judges)
    path = tmp_path_factory.mktemp("baseline") / "b.json"
    text = render(baseline)
    path.write_text(text, encoding="utf-8", newline="")
    assert parsed(path.read_text("utf-8"), "b.json") == baseline
    assert len(text.splitlines()) == len(lines) + len(judges)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[]", 1, "is not an object, so this line is not from a baseline"),
        ('{"format": 1, "cases": []}', 1, "so this line is not from a baseline"),
        (f"{LINE}<<<<<<< HEAD\n", 2, "contains a merge conflict"),
        (f"{LINE}{LINE}", 2, "an earlier line has the same case "),
        (f"{LINE}[]\n", 2, "this line is not from a baseline"),
        (LINE + LINE.replace('"scores": [1]', '"scores": ["1"]'), 2, "line is not from a baseline"),
    ],
)
def test_what_is_no_baseline_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parsed(text, "baseline.json")
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == ("baseline.json", line)
    assert message in problem.message


def test_update_takes_verdicts_over_and_keeps_reasons() -> None:
    lines = accepted(outcome_of(1), outcome_of(2, "disagree"), outcome_of(3)).cases.items()
    before = Baseline({key: result_with(line, reason=f"because {key}") for key, line in lines})
    second = outcome_of(2, case_digest=OTHER)
    results = [outcome_of(1), second, outcome_of(3, "disagree"), outcome_of(4)]
    done = update(before, results, all_of(*results))
    assert (done.added, done.changed, done.removed) == ([id_of(4)], [id_of(2), id_of(3)], [])
    assert done.kept == {}
    cases = [done.baseline.cases[id_of(run)] for run in (1, 2, 3, 4)]
    assert [case.outcome for case in cases] == ["agree", "agree", "disagree", "agree"]
    assert cases[1].case_digest == short(OTHER)
    reasons = [f"because {case.case_id}" for case in cases[:3]]
    assert [case.extra.reason for case in cases] == [*reasons, ""]


def test_case_without_a_verdict_is_not_written_over_and_is_named() -> None:
    before = accepted(*map(outcome_of, range(6)))
    unscored: list[Outcome] = ["model_error", "unrecorded", "over_budget", "refused"]
    results = [outcome_of(0), *(outcome_of(run, name) for run, name in enumerate(unscored, 1))]
    done = update(before, results, Scope.of(map(id_of, range(7))))
    assert done.baseline == before
    kept = {id_of(run): f"unscored: {name}" for run, name in enumerate(unscored, 1)}
    assert done.kept == {**kept, id_of(5): "never reported", id_of(6): "never reported"}


def test_line_goes_where_the_case_has_left_the_suite_or_is_no_case_any_more() -> None:
    before = accepted(outcome_of(1), outcome_of(2), outcome_of(3), outcome_of(3, suite="other"))
    results = [outcome_of(1), outcome_of(2, "no_case")]
    done = update(before, results, all_of(*results))
    assert done.removed == [id_of(2), id_of(3)]
    assert set(done.baseline.cases) == {id_of(1), id_of(3, "other")}


def test_case_on_one_side_only_is_named_with_the_reason() -> None:
    before = accepted(*(outcome_of(run) for run in range(1, 7)), outcome_of(1, suite="other"))
    now = [
        outcome_of(1, "disagree", case_digest=OTHER),
        outcome_of(2, "model_error"),
        outcome_of(3, "no_case"),
        outcome_of(8, "disagree"),
        outcome_of(9, "model_error"),
    ]
    scope = Scope.of(map(id_of, (1, 2, 3, 4, 5, 8, 9)), map(id_of, (1, 2, 3, 4, 8, 9)))
    found = comparison_of(before, now, scope)
    assert len(found.everything) == 0
    assert found.regressions == ()
    assert found.not_comparable == {
        id_of(1): "the text, rubric or label of the case has changed",
        id_of(2): "no verdict now: model_error",
        id_of(3): "no verdict now: no_case",
        id_of(4): "never reported",
        id_of(6): "no longer in the suite",
        id_of(8): "not in the baseline",
    }


def test_fingerprint_is_of_model_prompt_and_parameters() -> None:
    stage = StageModel("judge", "openai/gpt-4.1-mini", temperature=0.0)
    template = parse_prompt("{{ rubric }}{{ transcript }}", "p", stage="judge")
    judge = PromptJudge(judge_settings(stage), template)
    other = parse_prompt("{{ rubric }}: {{ transcript }}", "p", stage="judge")
    others = [
        replace(judge, template=other),
        PromptJudge(judge_settings(replace(stage, model="openai/gpt-4.1")), template),
        PromptJudge(judge_settings(replace(stage, temperature=None)), template),
        PromptJudge(judge_settings(stage, show_reasoning=True), template),
        replace(judge, instruction="Be kind."),
    ]
    assert len({judge.fingerprint, *(other.fingerprint for other in others)}) == 6
    same = replace(stage, api_base="http://127.0.0.1/v1", timeout=3.0, prompt_path="elsewhere.md")
    assert PromptJudge(judge_settings(same), template).fingerprint == judge.fingerprint
