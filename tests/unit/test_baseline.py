"""The baseline and its file: what is written, what is refused, what an update touches (rules J2,
J3)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.model import CaseResult, Outcome, StageModel
from pytest_jrh.judges.prompt import PromptJudge
from pytest_jrh.llm.prompts import parse_prompt
from pytest_jrh.stats.baseline import Baseline, BaselineCase, Scope, compare, short, update
from pytest_jrh.store.baseline import load, render, save
from tests.support.conversations import judge_settings
from tests.support.made_cases import make_result, make_spec

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DIGEST = "0123456789abcdef" * 4
OTHER = "fedcba9876543210" * 4
JUDGE = "aaaaaaaaaaaaaaaa" * 4


def outcome_of(run: int, outcome: Outcome = "agree", **changes: Any) -> CaseResult:
    judged = outcome in ("agree", "disagree")
    digests = {"case_digest": DIGEST, "judge_fingerprint": JUDGE} if judged else {}
    suite = changes.pop("suite", "refunds")
    return make_result(make_spec(f"run-{run}", suite=suite), outcome, **{**digests, **changes})


def id_of(run: int, suite: str = "refunds") -> str:
    return outcome_of(run, suite=suite).case_id


def all_of(*results: CaseResult) -> Scope:
    return Scope.of(result.case_id for result in results)


def accepted(*results: CaseResult) -> Baseline:
    return update(Baseline(), results, all_of(*results)).baseline


def problems_of(path: Path) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        load(path, file="baseline.json")
    return list(caught.value.problems)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        (tmp_path / "baseline.json").write_text(text, encoding="utf-8")
        return tmp_path / "baseline.json"

    return write


def test_file_is_sorted_with_one_case_a_line(tmp_path: Path) -> None:
    path = tmp_path / "new" / "baseline.json"
    save(path, accepted(outcome_of(2, "disagree"), outcome_of(1)))
    lines = path.read_text().splitlines()
    assert lines == [
        "{",
        '"format": 1,',
        '"cases": [',
        f'{{"id": "{id_of(1)}", "outcome": "agree", "score": 1, '
        '"case_digest": "0123456789abcdef", "judge_fingerprint": "aaaaaaaaaaaaaaaa"},',
        f'{{"id": "{id_of(2)}", "outcome": "disagree", "score": 0, '
        '"case_digest": "0123456789abcdef", "judge_fingerprint": "aaaaaaaaaaaaaaaa"}',
        "]",
        "}",
    ]
    assert json.loads(path.read_bytes())["cases"][0]["score"] == 1


def test_the_order_of_results_does_not_change_a_byte() -> None:
    results = [outcome_of(run) for run in range(5)]
    assert render(accepted(*results)) == render(accepted(*reversed(results)))


@given(
    st.lists(
        st.tuples(st.integers(0, 99), st.booleans(), st.integers(-3, 9), st.text()),
        unique_by=lambda c: c[0],
    )
)
@settings(max_examples=60, deadline=None)
def test_what_is_saved_is_what_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, cases: list[tuple[Any, ...]]
) -> None:
    lines = [
        BaselineCase(
            id_of(run), short(DIGEST), short(JUDGE), "agree" if right else "disagree", score, reason
        )
        for run, right, score, reason in cases
    ]
    baseline = Baseline({line.case_id: line for line in lines})
    path = tmp_path_factory.mktemp("baseline") / "b.json"
    storable = {
        line.case_id: replace(line, reason=line.reason.replace("\x00", "")) for line in lines
    }
    save(path, baseline)
    assert load(path) == Baseline(storable)
    assert len(path.read_text(encoding="utf-8").splitlines()) == (len(lines) + 5 if lines else 4)


def test_missing_file_says_how_it_is_made(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path / "baseline.json")
    assert problem.message == "no such file"
    assert "--jrh-update-baseline" in (problem.hint or "")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "is empty"),
        ("[]", 1, "is no baseline: "),
        ('{"cases": []}', 1, "is no baseline: "),
        ('{\n"format": 2, "cases": []}', 2, "is no baseline: "),
        ('{"format": 1,\n"cases": {}}', 2, "is no baseline: "),
        ('{"format": 1,\n"cases": [\n{"id": 1}\n', 4, "is not valid JSON"),
        ('{"format": 1, "cases": [\n<<<<<<< HEAD\n', 2, "contains a merge conflict"),
    ],
)
def test_file_that_is_no_baseline_is_refused_with_its_line(
    written: Callable[[str], Path], text: str, line: int, message: str
) -> None:
    (problem,) = problems_of(written(text))
    assert (problem.file, problem.line) == ("baseline.json", line)
    assert message in problem.message


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"outcome": "agreee"}, "outcome"),
        ({"score": True}, "score"),
        ({"score": "1"}, "score"),
        ({"scores": [1, True]}, "scores[1]"),
        ({"case_digest": "123"}, "case_digest"),
        ({"judge_fingerprint": None}, "judge_fingerprint"),
        ({"id": "run-1"}, "id"),
        ({"reason": 3}, "reason"),
        ({"raeson": "x"}, "raeson"),
    ],
)
def test_a_line_that_does_not_fit_is_one_mistake_with_its_place(
    written: Callable[[str], Path], change: dict[str, Any], key: str
) -> None:
    good, bad = json.loads(render(accepted(outcome_of(1), outcome_of(2))))["cases"]
    text = f'{{"format": 1, "cases": [\n{json.dumps(good)},\n{json.dumps(bad | change)}\n]}}'
    (problem,) = problems_of(written(text))
    assert (problem.line, problem.key) == (3, f"cases[1].{key}")
    assert problem.message.startswith("is no baseline: ")
    assert problem.hint == "restore it from git"


def test_a_missing_key_and_a_case_that_is_there_twice_are_named(
    written: Callable[[str], Path],
) -> None:
    line = json.loads(render(accepted(outcome_of(1))))["cases"][0]
    short_line = {key: value for key, value in line.items() if key != "score"}
    for second, message in (
        (short_line, "is no baseline: field required"),
        (line, f'duplicate case "{line["id"]}"'),
    ):
        lines = ",\n".join(json.dumps(each) for each in (line, second))
        (problem,) = problems_of(written(f'{{"format": 1, "cases": [\n{lines}\n]}}'))
        assert (problem.line, problem.message) == (3, message)


def test_update_takes_verdicts_over_and_keeps_reasons() -> None:
    before = accepted(outcome_of(1), outcome_of(2, "disagree"), outcome_of(3))
    before = Baseline(
        {key: replace(case, reason=f"because {key}") for key, case in before.cases.items()}
    )
    results = [
        outcome_of(1),
        outcome_of(2, case_digest=OTHER),
        outcome_of(3, "disagree"),
        outcome_of(4),
    ]
    done = update(before, results, all_of(*results))
    assert (done.added, done.changed, done.removed) == ((id_of(4),), (id_of(2), id_of(3)), ())
    assert done.kept == {}
    cases = done.baseline.cases
    assert [cases[id_of(run)].outcome for run in (1, 2, 3, 4)] == [
        "agree",
        "agree",
        "disagree",
        "agree",
    ]
    assert cases[id_of(2)].case_digest == short(OTHER)
    assert [cases[id_of(run)].reason for run in (1, 2, 3)] == [
        f"because {id_of(run)}" for run in (1, 2, 3)
    ]
    assert cases[id_of(4)].reason == ""


def test_update_of_a_selection_leaves_the_rest_alone() -> None:
    before = accepted(*(outcome_of(run) for run in range(4)), outcome_of(1, suite="other"))
    scope = Scope.of(map(id_of, range(4)), [id_of(2)])
    done = update(before, [outcome_of(2, "disagree")], scope)
    assert done.changed == (id_of(2),)
    assert (done.added, done.removed) == ((), ())
    assert {
        key for key in done.baseline.cases if done.baseline.cases[key] != before.cases[key]
    } == {id_of(2)}


@pytest.mark.parametrize("outcome", ["model_error", "unrecorded", "over_budget", "refused"])
def test_unscored_case_is_not_written_over_and_is_named(outcome: Outcome) -> None:
    before = accepted(outcome_of(1), outcome_of(2))
    results = [outcome_of(1, "disagree"), outcome_of(2, outcome)]
    done = update(before, results, all_of(*results))
    assert done.baseline.cases[id_of(2)] == before.cases[id_of(2)]
    assert done.kept == {id_of(2): f"unscored: {outcome}"}


def test_case_that_was_never_reported_is_not_written_over_and_is_named() -> None:
    before = accepted(outcome_of(1), outcome_of(2))
    done = update(before, [outcome_of(1)], Scope.of([id_of(1), id_of(2), id_of(3)]))
    assert done.baseline == before
    assert done.kept == {id_of(2): "never reported", id_of(3): "never reported"}


def test_line_goes_where_the_case_has_left_the_suite_or_is_no_case_any_more() -> None:
    before = accepted(outcome_of(1), outcome_of(2), outcome_of(3), outcome_of(3, suite="other"))
    results = [outcome_of(1), outcome_of(2, "no_case")]
    done = update(before, results, all_of(*results))
    assert done.removed == (id_of(2), id_of(3))
    assert set(done.baseline.cases) == {id_of(1), id_of(3, "other")}


def test_case_that_was_not_to_be_judged_keeps_its_line() -> None:
    before = accepted(outcome_of(1))
    done = update(before, [outcome_of(1, "generated")], Scope.of([id_of(1)]))
    assert done.baseline == before
    assert done.kept == {}


def test_comparison_tells_regressions_fixes_and_known_errors_apart() -> None:
    before = accepted(
        outcome_of(1), outcome_of(2, "disagree"), outcome_of(3, "disagree"), outcome_of(4)
    )
    now = [outcome_of(1, "disagree"), outcome_of(2), outcome_of(3, "disagree"), outcome_of(4)]
    found = compare(before, now, all_of(*now))
    assert (found.regressions, found.fixes, found.still_wrong) == (
        (id_of(1),),
        (id_of(2),),
        (id_of(3),),
    )
    assert found.compared == 4
    assert found.not_comparable == {}
    assert all(pair.same_judge for pair in found.pairs)


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
    found = compare(before, now, scope)
    assert found.compared == 0
    assert found.regressions == ()
    assert found.not_comparable == {
        id_of(1): "the case has changed: another rubric text, transcript or label",
        id_of(2): "no verdict now: model_error",
        id_of(3): "no verdict now: no_case",
        id_of(4): "never reported",
        id_of(6): "no longer in the suite",
        id_of(8): "not in the baseline",
    }


def test_another_judge_is_compared_and_counted() -> None:
    now = [outcome_of(1, "disagree", judge_fingerprint=OTHER), outcome_of(2)]
    found = compare(accepted(outcome_of(1), outcome_of(2)), now, all_of(*now))
    assert found.regressions == (id_of(1),)
    assert [pair.same_judge for pair in found.pairs] == [False, True]


def test_fingerprint_is_of_model_prompt_and_parameters() -> None:
    stage = StageModel("judge", "openai/gpt-4.1-mini", temperature=0.0)
    template = parse_prompt("{{ rubric }}{{ transcript }}", "p", stage="judge")
    judge = PromptJudge(judge_settings(stage), template)
    others = [
        replace(
            judge,
            template=parse_prompt("{{ rubric }}: {{ transcript }}", "p", stage="judge"),
        ),
        PromptJudge(judge_settings(replace(stage, model="openai/gpt-4.1")), template),
        PromptJudge(judge_settings(replace(stage, temperature=None)), template),
        PromptJudge(judge_settings(stage, show_reasoning=True), template),
        replace(judge, instruction="Be kind."),
    ]
    assert len({judge.fingerprint, *(other.fingerprint for other in others)}) == 6
    same = replace(stage, api_base="http://127.0.0.1/v1", timeout=3.0, prompt_path="elsewhere.md")
    assert PromptJudge(judge_settings(same), template).fingerprint == judge.fingerprint


def test_a_baseline_of_many_megabytes_is_read(tmp_path: Path) -> None:
    path, judged = tmp_path / "base.json", outcome_of(1)
    baseline = update(Baseline(), [judged], all_of(judged)).baseline
    save(path, baseline)
    path.write_text(path.read_text("utf-8") + " " * 9 * 2**20, encoding="utf-8")
    assert load(path) == baseline
