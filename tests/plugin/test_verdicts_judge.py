"""A judge whose verdicts are in a table: alone and in a panel, as users run it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.plugin.gated import WORKERS
from tests.plugin.labelled import Labelled, record_labelled, write_labelled

TABLE = "inputs/data/natural/yesterday.csv"
ALL_RIGHT = ("run_id,verdict,reasoning", "run-1,pass,Kind.", "run-2,fail,Rude.", "run-4,0,Fine.")


def judged_by(labelled: Labelled, *lines: str, tests: tuple[str, ...] = (), **keys: Any) -> None:
    """Have the suite judged by a table with these lines."""
    _configure(labelled, tests=tests, judge={"verdicts": TABLE, **keys})
    _write(labelled, *lines)


def _configure(labelled: Labelled, *, tests: tuple[str, ...] = (), **sections: Any) -> None:
    config = yaml.safe_load(labelled.suite.config.read_text("utf-8"))
    for name, section in sections.items():
        if name == "judges":
            config["admin"]["evaluation_config"]["judges"] = section
        else:
            config[name] = section
    if tests:
        config["admin"]["perturbation_config"]["tests_to_run"] = list(tests)
    labelled.suite.config.write_text(yaml.safe_dump(config), encoding="utf-8")


def _write(labelled: Labelled, *lines: str) -> None:
    (labelled.folder / TABLE).write_text("\n".join([*lines, ""]), encoding="utf-8")


def results_of(labelled: Labelled) -> dict[tuple[str, str], dict[str, Any]]:
    text = (labelled.suite.results / "state" / "case_results.jsonl").read_text("utf-8")
    results = map(json.loads, text.splitlines())
    return {(result["run_id"], result["judge"]): result for result in results}


@pytest.fixture
def labelled(pytester: pytest.Pytester) -> Labelled:
    return write_labelled(pytester.path)


@WORKERS
def test_a_table_judges_without_a_call_and_without_a_model(
    pytester: pytest.Pytester, labelled: Labelled, workers: list[str]
) -> None:
    judged_by(
        labelled, "run_id,verdict,reasoning", "run-1,pass,Kind.", "run-2,0,So kind.", "run-4,0,"
    )
    config = yaml.safe_load(labelled.suite.config.read_text("utf-8"))
    del config["admin"]["evaluation_config"]["autograder_model_name"]
    labelled.suite.config.write_text(yaml.safe_dump(config), encoding="utf-8")
    done = pytester.runpytest(labelled.suite.option, *workers)
    done.assert_outcomes(passed=2, failed=1, skipped=1)
    done.stdout.fnmatch_lines(["*judge yesterday.csv*", "*So kind.*", "0 calls made, 0 replayed*"])
    assert not labelled.suite.cassettes.exists()
    assert results_of(labelled)["run-1", ""]["reasoning"] == "Kind."


def test_a_run_without_a_line_is_an_error_that_says_what_to_do(
    pytester: pytest.Pytester, labelled: Labelled
) -> None:
    judged_by(labelled, "run_id,verdict", "run-1,pass", "run-2,", "run-77,pass", "run-78,pass")
    done = pytester.runpytest(labelled.suite.option)
    done.assert_outcomes(passed=1, errors=2, skipped=1)
    text = " ".join(done.stdout.str().split())
    assert f"{TABLE} has no verdict on the run 'run-4' (epoch 1) under 'rubric-1'." in text
    assert f"{TABLE}, line 3 has no verdict on the run 'run-2' (epoch 1)" in text
    assert "Add a line with it, or have the judge judge that run." in text
    assert f"note: {TABLE}: lines of no run of this suite: 2." in text
    assert done.ret == pytest.ExitCode.TESTS_FAILED


def test_a_changed_verdict_is_a_changed_judge_and_another_line_is_none(
    pytester: pytest.Pytester, labelled: Labelled
) -> None:
    def fingerprint(*lines: str) -> str:
        judged_by(labelled, *lines)
        pytester.runpytest(labelled.suite.option)
        return str(results_of(labelled)["run-1", ""]["judge_fingerprint"])

    first = fingerprint(*ALL_RIGHT)
    assert fingerprint("sep=,", ALL_RIGHT[0], *reversed(ALL_RIGHT[1:]), "run-9,1,") == first
    assert fingerprint(*ALL_RIGHT[:3], "run-4,1,Fine.") != first
    assert fingerprint(*ALL_RIGHT[:3], "run-4,0,Other.") != first


def test_the_gate_compares_yesterdays_table_with_todays(
    pytester: pytest.Pytester, labelled: Labelled
) -> None:
    judged_by(labelled, *ALL_RIGHT)
    _configure(labelled, gate={"max_regressions": 0})
    baseline = "--jrh-baseline=baseline.json"
    update = pytester.runpytest(labelled.suite.option, baseline, "--jrh-update-baseline")
    update.assert_outcomes(passed=3, skipped=1)
    again = pytester.runpytest(labelled.suite.option, baseline)
    assert again.ret == pytest.ExitCode.OK
    _write(labelled, *ALL_RIGHT[:2], "run-2,pass,Kind.", ALL_RIGHT[3])
    worse = pytester.runpytest(labelled.suite.option, baseline)
    assert worse.ret == pytest.ExitCode.TESTS_FAILED
    worse.stdout.fnmatch_lines(["*regress*"])


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Labelled:
    return record_labelled(tmp_path_factory.mktemp("recorded"))


@WORKERS
def test_yesterdays_judge_stands_in_a_panel_beside_a_recorded_one(
    pytester: pytest.Pytester, recorded_once: Labelled, workers: list[str]
) -> None:
    labelled = recorded_once.copied(pytester.path)
    for cassette in labelled.suite.cassettes.rglob("*.judge-default.yaml"):
        cassette.rename(cassette.with_name(cassette.name.replace("judge-default", "judge-today")))
    model = {"name": "today", "model": "openai/gpt-4.1-mini"}
    yesterday = {"name": "yesterday", "verdicts": TABLE}
    _configure(labelled, judges=[model, yesterday])
    _write(labelled, *ALL_RIGHT)
    done = pytester.runpytest(labelled.suite.option, *workers)
    done.assert_outcomes(passed=5, failed=1, skipped=2)
    done.stdout.fnmatch_lines(["*0 calls made, 3 replayed*"])
    results = results_of(labelled)
    assert results["run-2", "today"]["outcome"] == "disagree"
    assert results["run-2", "yesterday"]["outcome"] == "agree"


def test_the_results_of_yesterdays_session_are_a_table(
    pytester: pytest.Pytester, recorded_once: Labelled
) -> None:
    labelled = recorded_once.copied(pytester.path)
    pytester.runpytest(labelled.suite.option).assert_outcomes(passed=2, failed=1, skipped=1)
    results = labelled.suite.results / "state" / "case_results.jsonl"
    (labelled.folder / TABLE).write_bytes(results.read_bytes())
    _configure(labelled, judge={"verdicts": TABLE})
    again = pytester.runpytest(labelled.suite.option)
    again.assert_outcomes(passed=2, failed=1, skipped=1)
    again.stdout.fnmatch_lines(["0 calls made, 0 replayed*"])
    # A config of before names it where it was before it moved.
    (labelled.folder / "outputs/old/state").mkdir(parents=True)
    (labelled.folder / "outputs/old/state/case_results.jsonl").write_bytes(results.read_bytes())
    _configure(labelled, judge={"verdicts": "outputs/old/case_results.jsonl"})
    pytester.runpytest(labelled.suite.option).assert_outcomes(passed=2, failed=1, skipped=1)
    # The rubric means something else now, so yesterday's verdicts are on nothing of today.
    rubrics = labelled.suite.data / "rubrics.yml"
    rubrics.write_text(rubrics.read_text("utf-8").replace("kindly", "rudely"), encoding="utf-8")
    other = pytester.runpytest(labelled.suite.option)
    other.assert_outcomes(errors=3, skipped=1)
    assert "for another text of the transcript or the rubric" in " ".join(
        other.stdout.str().split()
    )


@WORKERS
def test_repeats_are_lines_of_their_own(
    pytester: pytest.Pytester, labelled: Labelled, workers: list[str]
) -> None:
    lines = ["run_id,repeat,verdict", "run-2,1,1", "run-2,2,0", "run-2,3,1"]
    lines += [f"{run},{repeat},0" for run in ("run-1", "run-4") for repeat in (1, 2)]
    judged_by(labelled, *lines, repeats=3)
    done = pytester.runpytest(labelled.suite.option, *workers)
    done.assert_outcomes(passed=1, errors=2, skipped=1)
    assert results_of(labelled)["run-2", ""]["scores"] == [1, 0, 1]
    text = " ".join(done.stdout.str().split())
    assert "has no verdict of repeat 3 on the run 'run-1'" in text
    judged_by(labelled, *lines, repeats=1)
    once = pytester.runpytest(labelled.suite.option, *workers)
    once.assert_outcomes(passed=3, skipped=1)
    once.stdout.fnmatch_lines([f"*{TABLE}: verdicts of later repeats than `repeats: 1`*: 4."])


def test_made_and_changed_cases_are_skipped_and_nothing_is_made_for_them(
    pytester: pytest.Pytester, labelled: Labelled
) -> None:
    judged_by(labelled, *ALL_RIGHT, tests=("agent_labels", "agent_perturbation", "position"))
    _configure(labelled, synthetic_data_params={"generation_model_name": "openai/gpt-4.1-mini"})
    done = pytester.runpytest(labelled.suite.option, "--jrh-record-mode=once")
    outcomes = done.parseoutcomes()
    assert outcomes["passed"] == 3
    assert not {"failed", "errors"} & outcomes.keys()
    done.stdout.fnmatch_lines(["0 calls made, 0 replayed*"])
    made = [line for line in results_of(labelled).values() if line["test"] != "agent_labels"]
    assert {line["outcome"] for line in made} == {"no_case"}
    assert {line["skip_kind"] for line in made} == {"not_a_run"}


@pytest.mark.parametrize(
    "tests", [("agent_perturbation",), ("agent_positives",)], ids=lambda tests: tests[0]
)
def test_a_suite_in_which_it_can_judge_nothing_is_refused(
    pytester: pytest.Pytester, labelled: Labelled, tests: tuple[str, ...]
) -> None:
    judged_by(labelled, *ALL_RIGHT, tests=tests)
    _configure(labelled, synthetic_data_params={"generation_model_name": "openai/gpt-4.1-mini"})
    done = pytester.runpytest(labelled.suite.option)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(
        [
            f"*judge.verdicts: has verdicts on runs as they are*{tests[0]}*",
            "*add agent_labels to tests_to_run*",
        ]
    )


def test_a_frozen_suite_is_judged_and_a_case_that_was_changed_in_it_is_not(
    pytester: pytest.Pytester, labelled: Labelled
) -> None:
    judged_by(labelled, *ALL_RIGHT)
    pytester.runpytest(labelled.suite.option).assert_outcomes(passed=3, skipped=1)
    frozen = pytester.runpytest(labelled.suite.option, "--jrh-frozen")
    frozen.assert_outcomes(passed=3)
    [cases] = pytester.path.rglob("agent_perturbations.jsonl")
    text = cases.read_text("utf-8")
    assert text.count("order 1001") > 1
    cases.write_text(text.replace("order 1001", "order 4444"), encoding="utf-8")
    altered = pytester.runpytest(labelled.suite.option, "--jrh-frozen")
    altered.assert_outcomes(passed=2, errors=1)
    assert "has verdicts on runs as they are" in " ".join(altered.stdout.str().split())


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("run_id,verdict", "run-1,perhaps"), ['*yesterday.csv:2: verdict: got "perhaps"*']),
        (
            ("run_id,verdict", "run-1,0", "run-1,1"),
            ['*:3: verdict: this verdict on the run "run-1" contradicts line 2', "*column repeat*"],
        ),
        (("run_id,verdict", "run-1,0", "run-1,0"), ['*:3: *"run-1" repeats line 2']),
        (
            ("run_id,verdict,score", "run-1,0,1"),
            ['*:1: the columns "verdict" and "score" mean the same', "*`column`*"],
        ),
        (("run_id,judged", "run-1,0"), ["*:1: has no column verdict or score; *"]),
        (("run_id,verdict", "other-1,0"), ["*no verdict on a run of this suite: *other-1*"]),
        (("run_id,verdict,epoch", "run-1,0,7"), ["*no verdict on a run of this suite: *"]),
        (("run_id,verdict,repeat", "run-1,0,0"), ['*:2: repeat: got "0"; must be an integer >= 1']),
        (("",), ["*yesterday.csv: is empty; must have the columns run_id and verdict"]),
        (("run_id,verdict",), ["*yesterday.csv:1: has no verdict: *"]),
    ],
)
def test_a_table_that_cannot_be_used_is_a_usage_error_with_its_line(
    pytester: pytest.Pytester, labelled: Labelled, lines: tuple[str, ...], expected: list[str]
) -> None:
    judged_by(labelled, *lines)
    done = pytester.runpytest(labelled.suite.option)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(expected)
    assert "Traceback" not in done.stderr.str()


def test_words_are_mapped_and_a_column_is_named(
    pytester: pytest.Pytester, labelled: Labelled
) -> None:
    lines = ("id;strict;lenient", "run-1;good;good", "run-2;bad;good", "run-4;good;good")
    judged_by(labelled, *lines, column="strict", score_map={"good": 0, "bad": 1})
    done = pytester.runpytest(labelled.suite.option)
    done.assert_outcomes(passed=3, skipped=1)
    done.stdout.fnmatch_lines(["*judge yesterday.csv:strict*"])
    judged_by(labelled, *lines, column="strikt", score_map={"good": 0, "bad": 1})
    wrong = pytester.runpytest(labelled.suite.option)
    wrong.stderr.fnmatch_lines(["*:1: has no column strikt; its columns are id, strict, lenient"])


def test_the_plan_of_a_table_says_that_nothing_is_asked(
    pytester: pytest.Pytester, labelled: Labelled
) -> None:
    judged_by(labelled, *ALL_RIGHT)
    plan = pytester.runpytest(labelled.suite.option, "--jrh-plan")
    assert plan.ret == pytest.ExitCode.OK
    assert "Traceback" not in plan.stdout.str() + plan.stderr.str()


def test_secrets_in_a_table_are_not_shown(
    pytester: pytest.Pytester, labelled: Labelled, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-" + "abc123" * 8
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    judged_by(
        labelled, "run_id,verdict,reasoning", f"run-2,0,It said {secret}.", "run-1,0,", "run-4,0,"
    )
    done = pytester.runpytest(labelled.suite.option)
    done.assert_outcomes(passed=2, failed=1, skipped=1)
    assert secret not in done.stdout.str()
    for path in Path(labelled.suite.results).rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes()
