"""The rubrics that a config targets, its scale, and how many runs it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.configs import AGENT, ORDINAL_RUBRIC, Folder, changed, minimal, ordinal


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_only_the_targeted_rubrics_are_kept(folder: Folder) -> None:
    suite = folder.load(changed(f"{AGENT}.target_rubric_ids", ["safe"]))
    assert [rubric.id for rubric in suite.rubrics] == ["safe"]
    problem = folder.problem(changed(f"{AGENT}.target_rubric_ids", ["safe", "knid"]))
    assert problem.key == f"{AGENT}.target_rubric_ids[1]"
    assert "kind, safe" in problem.message
    assert problem.hint == "kind is the nearest id"


def test_targets_are_every_score_and_for_positives_the_highest(folder: Folder) -> None:
    folder.rubrics(ORDINAL_RUBRIC)
    negatives, positives = folder.load(ordinal()).tests
    assert negatives.targets == {"kind": (0, 1, 2, 3)}
    assert positives.targets == {"kind": (3,)}
    assert folder.load(minimal()).tests[0].targets == {"kind": (None,)}


@pytest.mark.parametrize("targets", ["0, 2 ,2", [2, 0], ["2", 0]])
def test_score_targets_are_a_list_or_text(folder: Folder, targets: object) -> None:
    folder.rubrics(ORDINAL_RUBRIC)
    data = ordinal()
    data[AGENT] = {"score_targets": targets}
    assert folder.load(data).tests[0].targets == {"kind": (0, 2)}


def test_a_score_target_outside_the_scale_names_the_range(folder: Folder) -> None:
    folder.rubrics(ORDINAL_RUBRIC)
    data = ordinal()
    data[AGENT] = {"score_targets": [1, 7]}
    problem = folder.problem(data)
    assert problem.key == f"{AGENT}.score_targets"
    assert problem.message == 'got 7; the scores of the rubric "kind" go from 0 to 3'


@pytest.mark.parametrize(
    ("own", "general"),
    [
        ({"lowest_score": "1", "highest_score": 3}, {"min_score": 0, "max_score": 9}),
        ({}, {"min_score": "1", "max_score": "3"}),
        ({"lowest_score": 1}, {"highest_score": 3, "lowest_score": 0}),
    ],
)
def test_a_rubric_without_levels_takes_the_configured_range(
    folder: Folder, own: object, general: object
) -> None:
    data = ordinal()
    data[AGENT]["autograder_default_params"] = own
    data["admin"]["dataset_config"]["default_params"] = general
    suite = folder.load(data)
    assert [level.score for level in suite.rubrics[0].score_levels] == [1, 2, 3]
    assert suite.tests[1].targets == {"kind": (3,), "safe": (3,)}


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ("a", 3, 'got ["a", 3]; must be'),
        (3, 1, "got [3, 1]; must be"),
        (0, 10**6, "the lowest and the highest of 2 to 1000 scores"),
        (True, 3, "got [true, 3]"),
    ],
)
def test_a_range_that_is_no_range_is_refused(
    folder: Folder, low: object, high: object, message: str
) -> None:
    data = ordinal()
    data[AGENT]["autograder_default_params"] = {"lowest_score": low, "highest_score": high}
    first = folder.problems(data)[0]
    assert first.key == f"{AGENT}.autograder_default_params.lowest_score"
    assert message in first.message
