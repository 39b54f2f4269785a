"""What is said about keys and values of a config that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.configs import AGENT, CONFIG, Folder, changed, minimal


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_unknown_key_names_the_nearest_match_and_its_line(folder: Folder) -> None:
    problem = folder.problem(
        "admin:\n  modul_name: x\n" + yaml.safe_dump(minimal()).split("admin:\n", 1)[1]
    )
    assert (problem.file, problem.line, problem.key) == (CONFIG, 2, "admin.modul_name")
    assert problem.message.startswith("unknown key; the keys of admin are module_name, ")
    assert problem.hint == "module_name is the nearest key"


def test_a_key_in_the_wrong_section_is_told_where_it_belongs(folder: Folder) -> None:
    problem = folder.problem(minimal() | {"judge": {"max_workers": 5}, "recording": {}})
    assert problem.key == "judge.max_workers"
    assert problem.hint == "it belongs to recording.max_workers"


def test_a_secret_in_a_config_is_refused_and_not_repeated(folder: Folder) -> None:
    problem = folder.problem(changed(f"{AGENT}.editor.api_key", "sk-" + "a" * 40))
    assert "environment" in (problem.hint or "")
    assert "sk-" not in str(problem)


@pytest.mark.parametrize(
    ("path", "value", "message", "hint"),
    [
        (
            "admin.perturbation_config.use_HITL_process",
            "false",
            'got "false"; must be true or false',
            "without quotes",
        ),
        (f"{AGENT}.pass_required", 1, "got 1; must be true or false", None),
        ("review.overlap", 1.5, "got 1.5; must be a number from 0 to 1", None),
        ("review.labels", "no/such.jsonl", 'the file of blind labels "no/such.jsonl"', None),
        (f"{AGENT}.max_edit_rounds", 0, "got 0; must be an integer >= 1", None),
        (f"{AGENT}.max_edit_rounds", True, "got true; must be an integer", None),
        (f"{AGENT}.sampling", "stable", "stable was removed: set sampling: kept", None),
        ("realism", {"model": "m"}, "was removed: label a blind sample", None),
        (f"{AGENT}.objective", "fial", 'got "fial"; must be fail or pass', "fail is the nearest"),
        (f"{AGENT}.output.dir", 3, "got 3; must be a path", None),
        (
            f"{AGENT}.output",
            "x",
            'got "x"; must be a mapping with the keys dir, results_dir, write_jsonl, overwrite',
            None,
        ),
        (
            f"{AGENT}.planner",
            "gpt-5",
            'got "gpt-5"; must be a mapping',
            'write planner: {model: "gpt-5"}',
        ),
        (f"{AGENT}.planner.temperature", "hot", 'got "hot"; must be a number >= 0', None),
        (f"{AGENT}.planner.temperature", float("nan"), "got nan; must be a number", None),
        (f"{AGENT}.planner.timeout", 0, "got 0; must be a number of seconds above 0", None),
        (f"{AGENT}.planner.api_base", "host:80", 'got "host:80"; must be a URL', None),
        (f"{AGENT}.planner.model", 5, "got 5; must be text", 'write "5" in quotes'),
        (f"{AGENT}.planner.rate_limit.calls", 3, "is missing; must be a number above 0", None),
        (
            f"{AGENT}.target_rubric_ids",
            "kind",
            'got "kind"; must be a list of rubric ids',
            "write [kind]",
        ),
        (f"{AGENT}.score_targets", "1,x", 'got "1,x"; must be integers', None),
        (
            "admin.evaluation_config.template",
            "single_judge",
            "agent_judge (binary) or agent_autograder",
            None,
        ),
        (
            "admin.evaluation_config.aggregation_method",
            "mean",
            "must be majority_vote or null",
            None,
        ),
        (
            "admin.evaluation_config.tests_to_evaluate",
            ["x"],
            'got "x"; must be agent_perturbation or agent_positives or agent_labels',
            None,
        ),
        (
            "admin.perturbation_config.tests_to_run",
            ["agent_positive"],
            'got "agent_positive"',
            "agent_positives is",
        ),
        ("admin.perturbation_config.tests_to_run", [], "no test is to be run", None),
        (
            "admin.dataset_config",
            [],
            "got a list; must be a mapping with the keys dataset_name",
            None,
        ),
        ("replay.record_mode", "new", "must be none, once, new_episodes or all", None),
        ("replay.frozen", 1, "got 1; must be true", None),
        ("gate.min_accuracy", 90, "got 90; must be a number from 0 to 1", None),
        ("gate.lower_bound", True, "was removed: set gate.proof: true", None),
        ("gate.max_regressions", 3, "was removed: set gate.max_drop: 0", None),
        ("gate.max_drop", 5, "got 5; must be a number from 0 and below 1 (0.05: 5 points)", None),
        ("review.blind", True, "was removed: say --jrh-review=blind", None),
        ("probes.position.per_case", 3, "was removed: list the `variants`", None),
        ("probes.prompt_injection.pack", "a.yml", "was removed: register a probe", None),
        ("probes.positoin", {}, 'got "positoin"; must be a probe (', "position is the nearest"),
        ("gate.probes.position", 0.1, "got 0.1; must be a mapping with the keys max_rate", None),
        ("judge.replay", "verdict", "was removed: set `version`", None),
        ("judge.show_reasoning", "yes", 'got "yes"; must be true or false', None),
        ("judge.score_map", {"yes": 1, "no": 0}, "the built-in one asks for scores", None),
        (
            "judge",
            {"prompt_path": CONFIG, "score_map": {"no": 2}},
            "got 2; must be 1 (violated) or 0 (satisfied)",
            None,
        ),
        ("planer", {}, "unknown key; the sections of a config are suite, cases", None),
    ],
)
def test_a_bad_value_says_what_was_there_and_what_may_be_there(
    folder: Folder, path: str, value: object, message: str, hint: str | None
) -> None:
    problem = folder.problems(changed(path, value))[0]
    assert (problem.key or "").startswith(path.rpartition(".")[0])
    assert message in problem.message
    assert "nput should" not in problem.message
    if hint:
        assert hint in (problem.hint or "")


def test_a_test_to_evaluate_must_be_run(folder: Folder) -> None:
    data = changed("admin.perturbation_config.tests_to_run", ["agent_perturbation"])
    data["admin"]["evaluation_config"]["tests_to_evaluate"] = ["agent_positives"]
    problem = folder.problem(data)
    assert problem.key == "admin.evaluation_config.tests_to_evaluate[0]"
    assert problem.hint == "add agent_positives to admin.perturbation_config.tests_to_run"


def test_all_values_that_do_not_fit_are_reported_at_once_and_then_all_else(
    folder: Folder,
) -> None:
    folder.rubrics(
        [
            {"id": "a"},
            {"id": "b", "instructions": "x", "score_levels": [{"score": 0.5, "label": "x"}]},
        ]
    )
    data = minimal()
    data["admin"]["dataset_config"]["dataset_name"] = "no.eval"
    data["admin"]["evaluation_config"]["template"] = "judge"
    data[AGENT] = {"planner": {"modle": "x", "prompt_path": "no.md"}, "max_edit_rounds": "3"}
    keys = [problem.key for problem in folder.problems(data)]
    assert keys == [
        "admin.evaluation_config.template",
        f"{AGENT}.planner.modle",
        f"{AGENT}.max_edit_rounds",
    ]
    data["admin"]["evaluation_config"]["template"] = "agent_judge"
    data[AGENT] = {"planner": {"prompt_path": "no.md"}}
    keys = [problem.key for problem in folder.problems(data)]
    assert keys == [
        "admin.dataset_config.dataset_name",
        f"{AGENT}.planner.prompt_path",
        "[0].instructions",
        "[1].score_levels[0].score",
    ]


def test_a_section_that_is_missing_is_reported_once_per_thing_that_is_needed(
    folder: Folder,
) -> None:
    messages = [str(problem) for problem in folder.problems({"admin": {}})]
    needed = (
        "tests_to_run",
        "input_log_path",
        "rubric_path",
        "judge.model",
    )
    for name in (*needed, "editor.model"):
        assert sum(f"{name}: " in message for message in messages) == 1
    assert len(messages) == len(needed) + 1


def test_values_are_shortened_and_stripped_of_escapes(folder: Folder) -> None:
    problem = folder.problem(changed(f"{AGENT}.objective", "\x1b[31mred\x1b[0m\x07 " + "x" * 500))
    assert "\x1b" not in problem.message
    assert "\x07" not in problem.message
    assert '"red' in problem.message
    assert len(problem.message) < 130
