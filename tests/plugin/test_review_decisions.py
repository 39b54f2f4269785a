"""Decisions on the disk count in every run, with and without the page."""

from __future__ import annotations

import pytest

from pytest_jrh.store.people import decisions_path
from tests.plugin.recorded import PERTURBATION, Recorded, outcomes, run_pytest
from tests.support.fork_server import python
from tests.support.model_server import ModelServer
from tests.support.reviews import decide, records, rows
from tests.support.suites import SuiteFiles, write_suite

TINY = "inputs/configs/tiny.yml"
NEW_TEXT = "I changed my mind, and say so kindly: ok-marker-satisfied"
RESULTS = "outputs/tiny/agent_perturbation_results_openai_gpt-4.1-mini.csv"


def node(run: str) -> str:
    return f"{TINY}::{PERTURBATION}{run}[e1]"


@pytest.fixture(scope="module")
def reviewed_once(recorded_once: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The recorded suite with a decision of each kind: run 2's judge had missed what its label
    called a violation."""
    recorded = recorded_once.copied(tmp_path_factory.mktemp("reviewed"))
    suite = recorded.tiny
    run_pytest(suite.folder, suite.option)
    decide(suite.negatives, "run-1", "rejected", note="contradicts the tool")
    decide(suite.negatives, "run-2", "edited", expected=0)
    decide(suite.positives, "run-1", "accepted")
    decide(suite.positives, "run-2", "accepted", digest="of another version")
    return recorded


@pytest.fixture
def reviewed(pytester: pytest.Pytester, reviewed_once: Recorded) -> SuiteFiles:
    return reviewed_once.copied(pytester.path).tiny


def test_decisions_are_obeyed_and_every_file_shows_who_was_reviewed(
    pytester: pytest.Pytester, reviewed: SuiteFiles
) -> None:
    """A rejected case is skipped, and an edited label is what the verdict is held against."""
    result = pytester.run(*python(), "-m", "pytest", reviewed.option, "-n2", "--jrh-review", "-rA")
    assert outcomes(result.outlines)[node("run-2")] == "PASSED"
    result.assert_outcomes(passed=4, skipped=3, errors=1)
    result.stdout.fnmatch_lines(["SKIPPED * rejected in review: contradicts the tool"])
    # Six cases were made; that of run 4 has no verdict, because its judge's recording is gone.
    result.stdout.fnmatch_lines(
        [
            "jrh: the review page is not supported under xdist; review with -n0",
            "*! 1 decision is void, because the case was made in another way since*",
            "*Reviewed by people: 1 accepted, 1 edited, 1 rejected, 2 undecided.",
        ]
    )
    negatives, positives = records(reviewed.negatives), records(reviewed.positives)
    assert "run-1" not in negatives
    assert negatives["run-2"]["review"] == {"action": "edited", "note": ""}
    assert (negatives["run-2"]["expected"], negatives["run-2"]["human_reviewed"]) == (0, True)
    assert (negatives["run-4"]["human_reviewed"], "review" in negatives["run-4"]) == (False, False)
    assert {run: record["human_reviewed"] for run, record in positives.items()} == {
        "run-1": True,
        "run-2": False,
        "run-4": False,
    }
    judged = {row["original_idx"]: row for row in rows(reviewed.folder / RESULTS)}
    assert {run: (row["human_reviewed"], row["human_decision"]) for run, row in judged.items()} == {
        "run-1": ("True", "rejected"),
        "run-2": ("True", "edited"),
        "run-3": ("False", ""),
        "run-4": ("False", "undecided"),
    }


def test_frozen_suites_obey_and_keep_their_file(
    pytester: pytest.Pytester, server: ModelServer
) -> None:
    suite = write_suite(pytester.path, runs=2, tests=["agent_perturbation"])
    recording = "--jrh-record-mode=new_episodes"
    pytester.runpytest_inprocess(suite.option, recording).assert_outcomes(passed=2)
    decide(suite.negatives, "run-1", "rejected", note="contradicts the tool")
    decide(suite.negatives, "run-2", "edited", expected=0, turns={4: NEW_TEXT})
    before = (suite.negatives / "agent_perturbations.jsonl").read_bytes()
    frozen = pytester.runpytest_inprocess(suite.option, "--jrh-frozen", recording, "-rs")
    frozen.assert_outcomes(passed=1, skipped=1)
    frozen.stdout.fnmatch_lines(
        [
            "SKIPPED * rejected in review: contradicts the tool",
            "*Reviewed by people: 1 edited, 1 rejected.",
        ]
    )
    assert (suite.negatives / "agent_perturbations.jsonl").read_bytes() == before
    judged = {row["original_idx"]: row for row in rows(suite.folder / RESULTS)}
    assert (judged["run-2"]["expected"], judged["run-2"]["outcome"]) == ("0", "agree")
    assert NEW_TEXT in judged["run-2"]["transcript"]
    # What was decided about the case as it was made also counts for the case that has the edits in
    # it.
    pytester.runpytest_inprocess(suite.option).assert_outcomes(passed=1, skipped=1)
    assert records(suite.negatives)["run-2"]["expected"] == 0


def test_the_judge_is_asked_about_the_edited_transcript(
    pytester: pytest.Pytester, server: ModelServer
) -> None:
    keep = {"test_agent_perturbation_config": {"output": {"overwrite": False}}}
    suite = write_suite(pytester.path, runs=1, tests=["agent_perturbation"], overrides=keep)
    pytester.runpytest_inprocess(suite.option, "--jrh-record-mode=once").assert_outcomes(passed=1)
    decide(suite.negatives, "run-1", "edited", expected=0, turns={4: NEW_TEXT})
    pytester.runpytest_inprocess(
        suite.option, "--jrh-judge-record-mode=new_episodes"
    ).assert_outcomes(passed=1)
    assert NEW_TEXT in server.requests[-1].text
    assert (server.count("planner"), server.count("judge")) == (1, 2)
    # The cases that are there stay as they are, but not over what a person wrote.
    [record] = records(suite.negatives).values()
    assert record["perturbed_messages"][4]["content"] == NEW_TEXT
    bundle = next((suite.negatives / "debug").glob("*_edits_audit.json")).read_text("utf-8")
    assert "edited in review" in bundle


def test_decisions_that_cannot_be_read_are_a_usage_error_with_file_and_line(
    pytester: pytest.Pytester, reviewed: SuiteFiles
) -> None:
    path = decisions_path(reviewed.negatives)
    path.write_text('{"case_id": "x"}\n' + path.read_text("utf-8"), encoding="utf-8")
    result = pytester.runpytest_inprocess(reviewed.option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"*{path.relative_to(reviewed.folder)}:1*", "*accepted, rejected or edited*"]
    )
