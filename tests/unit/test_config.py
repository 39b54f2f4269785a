"""Config files: what they take where they say nothing, the files and models that they name, and
where cassettes and results are made."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.config.load import load_suite, looks_like_suite
from pytest_jrh.config.suite import Suite, argument
from pytest_jrh.core import InputError
from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.sections import RateLimitSection
from tests.support.configs import AGENT, CONFIG, ORDINAL_RUBRIC, Folder, changed, minimal, ordinal
from tests.support.suites import SuiteFiles, write_suite

TESTS = "admin.perturbation_config.tests_to_run"
EVALUATED, TARGETS = "admin.evaluation_config.tests_to_evaluate", f"{AGENT}.target_rubric_ids"
UNUSED = "admin.test_debug_mode"
ASKING = [probe.name for probe in PROBES.values() if probe.binary_only]


def test_a_minimal_config_takes_every_default(folder: Folder) -> None:
    suite = folder.load(minimal())
    root, config = folder.root, suite.config
    assert (suite.name, suite.module_name, suite.mode) == ("demo", "demo", "binary")
    assert suite.logs[0] == folder.data / "demo.eval"
    assert [rubric.id for rubric in suite.rubrics] == ["kind", "safe"]
    assert (config.cases.edits_at_most, config.cases.sample, config.cases.seed) == (3, 0, 8234)
    assert (config.rand.summary_turns, config.rand.confirmed, config.rand.renew) == (20, True, True)
    assert (config.recording.mode, config.recording.max_workers) == (None, 10)
    assert config.rand.metric == "accuracy_score"
    assert suite.cassette_dir == root / "inputs/cassettes/demo"
    assert suite.custom_prompts_dir == root / "inputs/custom_prompts/demo"
    assert suite.results_dir == root / "outputs/demo"
    assert (suite.instruction, suite.frozen, suite.notices) == ("", None, [])


@pytest.mark.parametrize(
    ("key", "value", "of_suite", "expected"),
    [
        (f"{AGENT}.objective", "pass", lambda s: [t.objective for t in s.tests], ["pass", "pass"]),
        # A test that is not to be evaluated is only generated.
        (EVALUATED, ["agent_positives"], lambda s: [t.evaluate for t in s.tests], [False, True]),
        (EVALUATED, [], lambda s: [t.evaluate for t in s.tests], [True, True]),
        (f"{AGENT}.verifier", False, lambda s: {*s.stages}, {"planner", "editor", "summary"}),
        (TARGETS, ["safe"], lambda s: [rubric.id for rubric in s.rubrics], ["safe"]),
        (UNUSED, True, lambda s: [*s.notices], [f"{CONFIG}: these keys are not used: {UNUSED}"]),
    ],
)
def test_what_a_key_changes(
    folder: Folder, key: str, value: object, of_suite: Callable[[Suite], object], expected: object
) -> None:
    assert of_suite(folder.load(changed(key, value))) == expected


def test_a_time_stamp_is_taken_as_it_is_written(folder: Folder) -> None:
    name = "module_name: demo"
    text = yaml.safe_dump(minimal()).replace(name, f"{name}\n  time_stamp: 20251103_1222")
    assert folder.load(text).results_dir == folder.root / "outputs/demo_20251103_1222"


def test_template_log_and_rubrics_of_the_agent_block_come_first(folder: Folder) -> None:
    folder.rubrics(ORDINAL_RUBRIC)
    for key in (f"{AGENT}.autograder_template", "admin.evaluation_config.template"):
        assert folder.load(changed(key, "agent_autograder")).mode == "ordinal"
    (folder.root / "other.eval").write_bytes(b"log")
    (folder.root / "other.yml").write_text("- {id: z, instructions: x}\n", encoding="utf-8")
    data = minimal()
    data[AGENT] = {"input_log_path": "./other.eval", "rubric_path": "./other.yml"}
    suite = folder.load(data)
    assert suite.logs[0] == folder.root / "other.eval"
    assert [rubric.id for rubric in suite.rubrics] == ["z"]


def test_relative_paths_are_of_start_folder_then_rootdir_then_config(tmp_path: Path) -> None:
    cwd, rootdir, beside = tmp_path / "cwd", tmp_path / "root", tmp_path / "elsewhere"
    for place in (cwd, rootdir, beside):
        place.mkdir()
    data = minimal()
    data[AGENT] = {"input_log_path": "a.eval", "rubric_path": "r.json"}
    (beside / "s.yml").write_text(yaml.safe_dump(data), encoding="utf-8")

    load = partial(load_suite, beside / "s.yml", cwd=cwd, rootdir=rootdir)
    (beside / "r.json").write_text('[{"id": "a", "instructions": "x"}]', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load()
    (problem,) = caught.value.problems
    assert problem.key == f"{AGENT}.input_log_path"
    for place in (cwd, rootdir, beside):
        assert str(place / "a.eval") in problem.message
    for place in (beside, rootdir, cwd):
        (place / "a.eval").write_bytes(b"log")
        assert load().logs[0] == place / "a.eval"
    assert load().rubrics[0].file == str(beside / "r.json")


def test_sampling_falls_back_key_by_key(folder: Folder) -> None:
    data = minimal()
    data["synthetic_data_params"] |= {"sample_num_from_orig": 5, "seed": 87}
    for agent, sampling in (
        ({"sample_num_from_orig": None}, (5, 87)),
        ({"sample_num_from_orig": 2}, (2, 87)),
        ({"sample_num_from_orig": 0, "sampling_seed": 0}, (0, 0)),
    ):
        cases = folder.load({**data, AGENT: agent}).config.cases
        assert (cases.sample, cases.seed) == sampling


def test_a_frozen_suite_needs_its_cases_and_no_log(folder: Folder) -> None:
    (folder.data / "demo.eval").unlink()
    data = changed(f"{AGENT}.output.dir", "inputs/suites/demo")
    assert "the log" in folder.problem(data).message
    data["cases"] = {"frozen": True}
    problem = folder.problem(data)
    assert problem.key == "cases.frozen"
    assert "inputs/suites/demo/agent_perturbations.jsonl" in problem.message
    cases = folder.root / "inputs/suites/demo/agent_perturbations.jsonl"
    cases.parent.mkdir(parents=True)
    cases.write_text("", encoding="utf-8")
    assert folder.load(data).frozen == cases
    del data["cases"]
    assert folder.load(data, frozen=True).frozen == cases
    del data["admin"]["dataset_config"]["dataset_name"]
    data["cases"] = {"frozen": "./inputs/suites/demo/agent_perturbations.jsonl"}
    assert folder.load(data).frozen == cases


def test_suites_are_told_from_other_files(folder: Folder, tmp_path: Path) -> None:
    suites = ["# a suite\nadmin:\n\tbroken: [\n", f'"{AGENT}": {{}}\n']
    suites.append('{"synthetic_data_params": {}, "admin": {}}')
    for text in (*suites, "- id: a\n  instructions: admin: x\n", "users:\n  admin: me\n", ""):
        (tmp_path / "x.yml").write_text(text, encoding="utf-8")
        assert looks_like_suite(tmp_path / "x.yml") is (text in suites)
    assert not looks_like_suite(tmp_path)
    assert not looks_like_suite(tmp_path / "missing.yml")


SERVER: dict[str, Any] = {"timeout": 9.0, "api_base": "http://h/v1"}
TAKEN: dict[str, Any] = {**SERVER, "temperature": 1.0, "system_prompt": "s"}
EDITOR = {"model": "e", "max_tokens": 5, **TAKEN}
RATE = RateLimitSection(calls=3, period=60)
LIMITED = {"model": "v", "rate_limit": RATE.model_dump()}


@pytest.mark.parametrize(
    ("sections", "stage"),
    [
        ({"summary": {}}, StageModel("summary", "e", **TAKEN)),
        ({"summary": None}, StageModel("summary", "e", **TAKEN)),
        ({"summary": {"model": "s"}}, StageModel("summary", "s")),
        ({}, StageModel("verifier", "e", **SERVER)),
        ({"verifier": LIMITED}, StageModel("verifier", "v", rate_limit=RATE)),
        ({}, StageModel("planner", "openai/maker")),
    ],
)
def test_what_the_editor_gives(folder: Folder, sections: dict[str, Any], stage: StageModel) -> None:
    data = {**minimal(), AGENT: {"editor": EDITOR, **sections}}
    assert folder.load(data).stages[stage.stage] == stage


def test_what_a_stage_or_judge_does_not_set_is_of_the_section_models(folder: Folder) -> None:
    data = minimal()
    common: dict[str, Any] = {"timeout": 30.0, "api_base": "http://all/v1", "temperature": 0.0}
    data["models"] = {"max_tokens": 900, **common}
    own = {"model": "v", "api_base": "http://own/v1"}
    data[AGENT] = {"editor": {"max_tokens": 5}, "verifier": own}
    suite = folder.load(data)
    stages, maker = suite.stages, "openai/maker"
    assert stages["planner"] == StageModel("planner", maker, max_tokens=900, **common)
    assert stages["editor"] == StageModel("editor", maker, max_tokens=5, **common)
    assert stages["summary"] == StageModel("summary", maker, max_tokens=900, **common)
    assert stages["verifier"] == StageModel("verifier", max_tokens=900, **{**common, **own})
    assert suite.judges[0].stage == StageModel("judge", "openai/judge", max_tokens=900, **common)
    of_judges = {"timeout": 9.0, "api_base": "http://own/v1"}
    data["judge"] = of_judges
    panel = [{"name": "a"}, {"name": "b", "model": "m", "max_tokens": 1}]
    data["admin"]["evaluation_config"]["judges"] = panel
    first, second = (judge.stage for judge in folder.load(data).judges)
    assert first == StageModel("judge", "openai/judge", max_tokens=900, **{**common, **of_judges})
    # The server is that of the model that the section names.
    assert second == StageModel("judge", "m", max_tokens=1, **{**common, "timeout": 9.0})


def test_code_of_a_panel_is_as_random_as_the_section_judge_says(folder: Folder) -> None:
    (folder.root / "judges.py").write_text("def strict(case):\n    return 0\n", encoding="utf-8")
    code = {"python": "judges.py:strict"}
    data = minimal()
    [judge] = folder.load({**data, "judge": code}).judges
    assert not judge.is_random
    data["judge"] = {"random": True}
    data["admin"]["evaluation_config"]["judges"] = [
        {"name": "asks", "model": "m"},
        {"name": "draws", **code},
        {"name": "counts", **code, "random": False},
    ]
    assert [judge.is_random for judge in folder.load(data).judges] == [False, True, False]


def test_targets_are_every_score_and_for_positives_the_highest(folder: Folder) -> None:
    folder.rubrics(ORDINAL_RUBRIC)
    negatives, positives = folder.load(ordinal()).tests
    assert negatives.targets == {"kind": [0, 1, 2, 3]}
    assert positives.targets == {"kind": [3]}
    assert folder.load(minimal()).tests[0].targets == {"kind": [None]}
    for targets in ("0, 2 ,2", [2, 0], ["2", 0]):
        data = {**ordinal(), AGENT: {"score_targets": targets}}
        assert folder.load(data).tests[0].targets == {"kind": [0, 2]}
    problem = folder.problem({**ordinal(), AGENT: {"score_targets": [1, 7]}})
    assert problem.key == f"{AGENT}.score_targets"
    assert problem.message == "got 7, but the answers are 0 (0!), 1 (1!), 2 (2!), 3 (3!)"


def test_how_far_off_is_right_is_the_configs_else_the_scales(folder: Folder) -> None:
    data = minimal()
    del data["admin"]["evaluation_config"]["template"]
    data["rand"] = {"scale": [0, 100]}
    assert [rubric.scale.within for rubric in folder.load(data).rubrics] == [2, 2]
    for within in (0, 5):
        data["suite"] = {"within": within}
        assert [rubric.scale.within for rubric in folder.load(data).rubrics] == [within, within]
    data["suite"] = {"within": 100}
    problem = folder.problems(data)[0]
    assert (problem.key, problem.line) == ("suite.within", 21)
    assert problem.message.endswith('"kind" go from 0 to 100, so every score would be right')


@pytest.mark.parametrize(
    ("own", "general"),
    [
        ({"lowest_score": "1", "highest_score": 3}, {"min_score": 0, "max_score": 9}),
        ({}, {"min_score": "1", "max_score": "3"}),
        ({"lowest_score": 1}, {"highest_score": 3, "lowest_score": 0}),
    ],
)
def test_a_rubric_without_levels_has_a_range(folder: Folder, own: object, general: object) -> None:
    data = ordinal()
    data[AGENT]["autograder_default_params"] = own
    data["admin"]["dataset_config"]["default_params"] = general
    suite = folder.load(data)
    assert [level.score for level in suite.rubrics[0].score_levels] == [1, 2, 3]
    assert suite.tests[1].targets == {"kind": [3], "safe": [3]}


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ("a", 3, 'got ["a", 3]; must be'),
        (3, 1, "got [3, 1]; must be"),
        (0, 10**6, "the lowest and the highest of 2 to 1000 scores"),
    ],
)
def test_a_broken_range_is_refused(folder: Folder, low: object, high: object, message: str) -> None:
    data = ordinal()
    data[AGENT]["autograder_default_params"] = {"lowest_score": low, "highest_score": high}
    first = folder.problems(data)[0]
    assert first.key == f"{AGENT}.autograder_default_params.lowest_score"
    assert message in first.message


def with_tests(*tests: str, **agent: Any) -> dict[str, Any]:
    return {**changed(TESTS, list(tests)), AGENT: agent}


def probe(name: str = "mine", **settings: Any) -> dict[str, Any]:
    return {**minimal(), "cases": {"probes": {name: settings}}}


JUDGES = "admin.evaluation_config.judges"
TWICE = [{"name": "a"}, {"name": "a"}]
TEMPLATES = [{"name": "a"}, {"name": "b", "template": "agent_autograder"}]


@pytest.mark.parametrize(
    ("data", "key", "said"),
    [
        (changed(JUDGES, TWICE), f"{JUDGES}[1].name", "two judges have the name"),
        (changed(JUDGES, TEMPLATES), f"{JUDGES}[1].template", "must be agent_judge as in "),
        (changed(JUDGES, [{"model": "m"}]), f"{JUDGES}[0].name", "is missing"),
        (changed(TARGETS, ["safe", "knid"]), f"{TARGETS}[1]", '"kind" is the nearest id'),
        (changed("cases.frozen", True), "cases.frozen", f"set {AGENT}.output.dir"),
        (changed(EVALUATED, ["labels"]), f"{EVALUATED}[0]", f'add "labels" to {TESTS}'),
        (changed(EVALUATED, [{"a": 1}]), f"{EVALUATED}[0]", 'must be one of "agent_perturbation"'),
        (changed(TESTS, [["agent_positives"]]), f"{TESTS}[0]", 'must be one of "agent_perturb'),
        (probe(changes="flip"), "cases.probes.mine.instruction", "is missing; must be text"),
        (probe(instruction="a", changes=1), "cases.probes.mine.changes", '"none" or "flip"'),
        (probe(instruction="a", variants=["x"]), "cases.probes.mine.variants", "unknown"),
        (probe("My one", instruction="a"), "cases.probes.My one", "letters a-z, digits and _"),
        (probe("position", instruction="a"), "cases.probes.position", "the name of a built-in"),
        (probe(instruction="a", of=["labels"]), "cases.probes.mine.of[0]", "can change"),
    ],
)
def test_a_mistake_is_placed(folder: Folder, data: dict[str, Any], key: str, said: str) -> None:
    problem = folder.problem(data)
    assert (problem.key, problem.line is not None) == (key, True)
    assert said in str(problem)


def test_a_probe_by_text_may_be_named_by_a_rule_and_by_a_rubric(folder: Folder) -> None:
    rubric = {"id": "kind", "instructions": "Be kind.", "probes": {"skip": ["mine", "position"]}}
    folder.rubrics([rubric])
    mine = {"mine": {"instruction": "a", "changes": "flip", "max_cases": 3}}
    rule = {"probes": {"mine": {"max_rate": 0.1}}}
    data = with_tests("agent_perturbation") | {"cases": {"probes": mine}, "gate": rule}
    settings = folder.load(data).probes["mine"]
    assert (settings.names, settings.instruction, settings.max_cases) == (("flip",), "a", 3)
    without = with_tests("agent_perturbation")
    assert "mine" in folder.problem(without).message
    folder.rubrics([rubric | {"probes": {}}])
    problem = folder.problem({**without, "gate": rule})
    assert problem.key == "gate.probes.mine"
    assert problem.message.startswith('got "mine", but admin.')
    folder.rubrics(ORDINAL_RUBRIC)
    data["admin"]["evaluation_config"]["template"] = "agent_autograder"
    assert "needs a binary suite, but this suite is ordinal" in folder.problem(data).message
    data["cases"]["probes"]["mine"]["changes"] = "none"
    assert folder.load(data).probes["mine"].names == ("none",)


@pytest.mark.parametrize("name", ASKING)
def test_a_probe_that_asks_changes_violations(folder: Folder, name: str) -> None:
    data = with_tests("agent_perturbation", "agent_positives", name)
    assert folder.load(data).probes[name].of == ("agent_perturbation",)
    problem = folder.problem(with_tests("agent_positives", name))
    assert (problem.key, problem.hint is not None) == (f"{TESTS}[1]", True)
    assert "rubric" in problem.message
    assert "no cases to change: there is no test" in problem.message
    folder.rubrics(ORDINAL_RUBRIC)
    data["admin"]["evaluation_config"]["template"] = "agent_autograder"
    assert f'"{name}" needs a binary suite, but this suite is' in folder.problem(data).message


def test_natural_runs_need_the_stages_that_a_probe_asks_and_no_others(folder: Folder) -> None:
    (folder.root / "labels.csv").write_text("run_id,rubric_id,label\nr,kind,1\n", encoding="utf-8")
    data = with_tests("labels", "verdict_pressure", labels={"path": "labels.csv"})
    data["synthetic_data_params"] = {}
    data[AGENT]["editor"] = {"model": "openai/e"}
    assert set(folder.load(data).stages) == {"editor", "verifier"}
    data["admin"]["perturbation_config"]["tests_to_run"] = ["labels", "position"]
    assert not folder.load(data).stages


@pytest.fixture
def files(tmp_path: Path) -> SuiteFiles:
    for name in ("sub", "tests"):
        (tmp_path / name).mkdir()
    return write_suite(tmp_path)


def load(files: SuiteFiles, cwd: str, rootdir: str, config: Path | None = None) -> Suite:
    folders: Any = {"cwd": files.folder / cwd, "rootdir": files.folder / rootdir}
    return load_suite(config or files.config, **folders)


# In the root, in a folder below, and with a config outside of rootdir.
@pytest.mark.parametrize(("cwd", "rootdir"), [(".", "."), ("sub", "."), (".", "tests")])
def test_new_places_are_where_inputs_were_found(files: SuiteFiles, cwd: str, rootdir: str) -> None:
    expected = ["inputs/cassettes/tiny", "outputs/tiny", "inputs/custom_prompts/tiny"]
    expected += ["outputs/agent_perturbation/tiny", "outputs/agent_positives"]
    suite = load(files, cwd, rootdir)
    places = [suite.cassette_dir, suite.results_dir, suite.custom_prompts_dir]
    places += [test.output_dir for test in suite.tests]
    assert places == [files.folder / name for name in expected]


def test_a_place_that_exists_is_found_as_inputs_are(files: SuiteFiles) -> None:
    below = files.folder / "sub/inputs/cassettes/tiny"
    below.mkdir(parents=True)
    assert load(files, "sub", ".").cassette_dir == below
    assert load(files, ".", ".").cassette_dir == files.folder / "inputs/cassettes/tiny"


@pytest.mark.parametrize(
    ("config", "results"),
    [
        ("inputs/configs/tiny.yml", "outputs/tiny"),
        ("examples/prompt change/tiny.yml", "outputs/examples/prompt%20change/tiny"),
        ("suites/tiny.jrh.yml", "outputs/suites/tiny.jrh"),
    ],
)
def test_results_of_one_name_are_kept_apart(files: SuiteFiles, config: str, results: str) -> None:
    path = files.folder / config
    path.parent.mkdir(parents=True, exist_ok=True)
    if path != files.config:
        shutil.copyfile(files.config, path)
    for cwd in (".", "sub"):
        suite = load(files, cwd, ".", path)
        assert suite.results_dir == files.folder / results
        if config != "inputs/configs/tiny.yml":
            assert {test.output_dir for test in suite.tests} == {files.folder / results}


def test_a_path_that_pytest_would_misread_begins_with_its_folder(tmp_path: Path) -> None:
    """pytest takes `@file` for a file of arguments, and `-x` for an option."""
    for path, said in {"@a/x.yml": "./@a/x.yml", "-x.yml": "./-x.yml", "x.yml": "x.yml"}.items():
        assert argument(tmp_path / path, tmp_path) == said
    assert argument(tmp_path / "@x.yml", tmp_path / "sub") == "../@x.yml"
