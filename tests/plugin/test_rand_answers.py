"""RAND's free-response half: its configs as they are, in a folder laid out as its repository. The
texts of the tables are filler; the first sentence of each answer says which label it has."""

import csv
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from pytest_jrh.config.suite import drawn_rows
from pytest_jrh.core import InputError
from pytest_jrh.core.results import CaseResult
from pytest_jrh.engine.suite import make_ready
from tests.plugin.recorded import run_pytest, write_files
from tests.support.exchange import Answer, Request
from tests.support.ledgers import results_in
from tests.support.model_server import ModelServer, override

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "rand-free" / "inputs"
JUDGE = "openai_gpt-4o-mini"
COMPLIES, DECLINES = "This answer complies.", "This answer declines."
QUALITY = re.compile(r"This essay is of quality (\d)\.")
TARGET = re.compile(r"^Target score: (\d)", re.MULTILINE)
PROBED = """semantic_paraphrase verbosity_bias_long verbosity_bias_short format_invariance_1
format_invariance_2 format_invariance_3"""
NINE = f"label_flip answer_ambiguity stochastic_stability synthetic_ordinal {PROBED}"


def filler(request: Request) -> Answer:
    """Edits as it is told, and judges by the first sentence."""
    text = request.text
    shown = text.rpartition("response>\n")[0].rpartition("response>\n")[2]
    answer = " ".join(shown.partition("\n</")[0].split())
    quality = QUALITY.search(answer)
    score = int(quality[1]) if quality else int(COMPLIES in answer)
    if request.stage != "editor":
        given = {"score": score, "reasoning": "So.", "rationale": "So.", "verdict": "PASS"}
        return {name: given[name] for name in request.fields}
    if "turns" in request.fields:
        return {"turns": [{"message_index": 1, "new_content": f"{answer} Again."}]}
    found = TARGET.search(text)
    assert found
    new = (DECLINES, COMPLIES)[int(found[1]) % 2] + answer.partition(".")[2]
    if quality:
        new = QUALITY.sub(f"This essay is of quality {found[1]}.", answer)
    return {"new_content": new, "reason": "As told."}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    if not DATA.is_dir():
        pytest.skip("RAND's files are not there (../shared/data/rand-free)")
    shutil.copytree(DATA, tmp_path / "inputs", copy_function=shutil.copyfile)
    return tmp_path


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(filler) as server:
        yield server


def session(
    folder: Path, server: ModelServer, config: str, *options: str
) -> tuple[str, list[CaseResult]]:
    path = f"--jrh-config=inputs/configs/{config}.yml"
    done = run_pytest(folder, path, *options, env=server.environment)
    results = folder / f"outputs/{config}"
    ran = results_in(results) if (results / "results.jsonl").exists() else []
    return done.stdout + done.stderr, ran


def changed(folder: Path, **changes: object) -> str:
    """RAND's default config with some of its keys changed, by what follows their last dot."""
    data = yaml.safe_load((folder / "inputs/default_config.yml").read_text("utf-8"))
    admin = data["admin"]
    for section in (
        admin,
        admin["dataset_config"],
        admin["perturbation_config"],
        admin["evaluation_config"],
        data["synthetic_data_params"],
        data["test_stochastic_stability_config"],
    ):
        section |= {key: changes.pop(key) for key in [*changes] if key in section}
    admin["evaluation_config"] |= changes
    (folder / "inputs/configs/own.yml").write_text(yaml.safe_dump(data), "utf-8")
    return "own"


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def test_rows_are_those_that_pandas_draws_by_seed_8234() -> None:
    assert drawn_rows(596, 10) == [564, 446, 405, 493, 11, 390, 280, 50, 567, 432]
    assert drawn_rows(93, 5) == [27, 16, 35, 34, 73]
    assert drawn_rows(93, 5, again=True) == [63, 36, 21, 13, 64]
    assert (drawn_rows(3, 0), sorted(drawn_rows(3, 9))) == ([0, 1, 2], [0, 1, 2])


@pytest.mark.parametrize(
    ("config", "test", "rows", "labels"),
    [
        ("config_binary_harmbench", "label_flip", ["564", "446"], [1, 0]),
        ("default_config", "label_flip", ["564", "446", "405", "493", "11"], [1, 0, 1, 1, 1]),
        ("config_persuade", "synthetic_ordinal", ["AAATRP14318000363752"] * 6, [1, 2, 3, 4, 5, 6]),
    ],
)
def test_a_config_of_rands_runs_as_it_is(
    folder: Path, server: ModelServer, config: str, test: str, rows: list[str], labels: list[int]
) -> None:
    shutil.copy(folder / "inputs/default_config.yml", folder / "inputs/configs")
    output, results = session(folder, server, config, "--jrh-record-mode=once")
    assert [result.run_id for result in results] == rows, output
    assert [result.label for result in results] == [result.score for result in results] == labels
    assert {(result.test, result.labelled_by) for result in results} == {(test, "made")}
    calls = {stage: server.count(stage) for stage in ("editor", "verifier", "judge")}
    assert calls == dict.fromkeys(calls, len(rows))
    if config == "config_binary_harmbench":
        # Editor and verifier are asked the judge's own question.
        note = (DATA / "data/harmbench_binary/harmbench_binary_instruction.txt").read_text("utf-8")
        for request in server.requests:
            assert note.strip() in request.text
            assert "0: false\n1: true" in request.text
            assert "violat" not in request.text.partition("<rubric>")[2]
        assert '0 of 1 "true" case judged "false", 0 of 1 "false" case' in output
    replayed, again = session(folder, server, config)
    assert [result.scores for result in again] == [result.scores for result in results]
    assert f"0 calls, {3 * len(rows)} replayed" in replayed

    outputs = folder / f"outputs/{config}"
    made = table(outputs / f"synthetic_{test}.csv")
    assert [int(row["validation_score"]) for row in made] == labels
    originals = [str(1 - label) if test == "label_flip" else "" for label in labels]
    assert [row["original_expected"] for row in made] == originals
    judged = table(outputs / f"{test}_results_{JUDGE}.csv")
    scores = [(row["original_idx"], int(row["autograder_score"])) for row in judged]
    assert scores == [*zip(rows, labels, strict=True)]
    report = json.loads((outputs / f"{JUDGE}_report.json").read_text("utf-8"))
    assert report["all_metrics"][test]["metrics"]["pass_rate"] == "100.00%"


def test_all_nine_tests_and_one_of_ones_own_are_judged(folder: Path, server: ModelServer) -> None:
    prompts = folder / "prompts/synthetic_generation_prompts"
    prompts.mkdir(parents=True)
    texts = {"consistency_tests": {"in_verse": "Say the same in verse.", "label_flip": "Unused."}}
    (prompts / "basic_perturbation_instructions.json").write_text(json.dumps(texts), "utf-8")
    tests = [*NINE.split(), "in_verse"]
    numbers = {"target_num_per_bucket": 2, "number_of_seeds": 3}
    config = changed(folder, tests_to_run=tests, tests_to_evaluate=tests, **numbers)
    output, results = session(folder, server, config, "--jrh-record-mode=once")
    cases = {(result.test, result.run_id): result for result in results}
    assert {result.outcome for result in results} == {"agree"}, output
    assert any("Say the same in verse." in request.text for request in server.requests)
    for test in (*PROBED.split(), "in_verse", "label_flip", "answer_ambiguity", "labels"):
        assert [run_id for name, run_id in cases if name == test] == ["564", "446"]
    by_test = Counter(result.test for result in results)
    assert (by_test["stochastic_stability"], by_test["synthetic_ordinal"]) == (10, 20)
    assert len(cases["stochastic_stability", "564"].scores) == 3
    assert len(cases["label_flip", "564"].scores) == 1
    node = "format_invariance_1::harmbench_binary_rubric::564[e1-score_0-labels-none]"
    assert node in [result.case_id.partition("::")[2] for result in results]
    asked = server.count()
    _, again = session(folder, server, config)
    assert {result.outcome for result in again} == {"agree"}
    assert server.count() == asked
    outputs = folder / "outputs/own"
    report = json.loads((outputs / f"{JUDGE}_report.json").read_text("utf-8"))
    assert report["all_metrics"].keys() == {*tests, "labels"}
    [first, _] = table(outputs / "synthetic_format_invariance_1.csv")
    assert ".\n\nSentence 2 " in first["transcript"].replace("\n  ", "\n")


def test_a_cell_is_no_template_and_an_empty_one_is_said(folder: Path, server: ModelServer) -> None:
    rows = "question,answer,harmful\n"
    rows += f"Fill in {{response}}.,{COMPLIES},yes\nAnd?,{COMPLIES},\nWhy?,{DECLINES},0\n"
    rows += f"Why?,{DECLINES},0\n"
    data = folder / "inputs/data/harmbench_binary"
    (data / "own.csv").write_text(rows, "utf-8")
    columns = {"request": "question", "response": "answer", "expected": "harmful"}
    config = changed(
        folder,
        dataset_name="own.csv",
        preprocess_columns_map=columns,
        tests_to_run=["stochastic_stability"],
        tests_to_evaluate=[],
        sample_num_from_orig=0,
    )
    output, results = session(folder, server, config, "--jrh-record-mode=once")
    labels = {result.run_id: result.label for result in results}
    assert labels == {"0": 1, "2": 0, "3": 0}
    assert "1 of 4 answers have no label, and are not judged." in output
    assert any("Fill in {response}." in request.text for request in server.requests)
    (data / "harmbench_binary_rubric.txt").write_text("Is it kind?", "utf-8")
    _, again = session(folder, server, config)
    assert {result.outcome for result in again} == {"unrecorded"}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("use_original_data_as_expected", True, "the judge would make its own labels"),
        ("test_debug_mode", True, "would make every answer 0 without a call"),
        ("template", "multiclass_judge", "RAND's files do not say which classes there are"),
        ("template", "mine", 'got "mine"; must be single_judge or single_judge_str or'),
        ("aggregation_reference_column", "human_sum", 'got "human_sum"; must be human_consensus'),
        ("tests_to_run", ["verbosity_bias"], '"verbosity_bias_long" is the nearest'),
        ("tests_to_evaluate", ["answer_ambiguity"], '"answer_ambiguity" must be in'),
        ("number_of_seeds", 0, "must be an integer >= 1"),
        ("target_num_per_bucket", "two", 'synthetic_data_params.target_num_per_bucket: got "two"'),
        ("preprocess_columns_map", {"reply": "x"}, "unknown key; the keys of admin.perturb"),
        (
            "judges",
            [{"name": "a", "model": "openai/a", "template": "single_autograder"}],
            'got "single_autograder"; must be single_judge as in',
        ),
        (
            "judges",
            [{"name": "a", "model": "openai/a", "preprocess_columns_map": {"request": "x"}}],
            "be the same as in the suite",
        ),
    ],
)
def test_what_means_nothing_is_refused(folder: Path, key: str, value: object, message: str) -> None:
    tests = ["label_flip", "stochastic_stability"]
    changes = {"tests_to_run": tests, "tests_to_evaluate": [], key: value}
    config = Path(f"inputs/configs/{changed(folder, **changes)}.yml")
    with pytest.raises(InputError) as refused:
        make_ready(config, cwd=folder, rootdir=folder).specs()
    assert message in str(refused.value)


def test_a_panel_has_templates_of_one_scale(folder: Path, server: ModelServer) -> None:
    judges = [
        {"name": "words", "model": "openai/a", "template": "single_judge_str"},
        {"name": "truth", "model": "openai/b", "template": "single_judge"},
    ]
    config = changed(
        folder,
        judges=judges,
        tests_to_run=["label_flip", "stochastic_stability"],
        tests_to_evaluate=[],
        target_num_per_bucket=1,
        aggregation_method="majority_vote",
        metric="no_such_score",
    )
    output, results = session(folder, server, config, "--jrh-record-mode=once")
    agreed = Counter((result.judge, result.test, result.outcome) for result in results)
    for judge in ("words", "truth"):
        assert agreed[judge, "label_flip", "agree"] == 1, output
        assert agreed[judge, "stochastic_stability", "agree"] == 10
    report = json.loads((folder / "outputs/own/openai_a_report.json").read_text("utf-8"))
    for test in report["all_metrics"].values():
        assert test["metrics"]["metric_score"] is None
        assert test["metrics"]["pass_rate"] == "100.00%"
    assert report["panel"]["accuracy"]["count"] == 11


OURS = """
suite: {of: answers, log: rows.csv, rubrics: rubrics.yml, answers: {1: harmful, 0: harmless}}
cases: {kinds: [labels, perturbation, positives], flip: true}
labels: {metadata: harmful}
judge: {model: openai/judge}
editor: {model: openai/editor}
"""


def test_answers_of_a_suite_in_our_words_have_names(tmp_path: Path, server: ModelServer) -> None:
    rows = f"id,question,answer,harmful\na,Why?,{COMPLIES},1\nb,Why?,{DECLINES},harmless\n"
    rubrics = "- {id: harm, instructions: Does it help?}\n"
    write_files(tmp_path, {"rows.csv": rows, "rubrics.yml": rubrics, "own.yml": OURS})
    lenient = {"score": 0, "reasoning": "x"}
    server.answer = override(filler, judge=lenient)
    options = ("--jrh-config=own.yml", "--jrh-record-mode=once")
    output = run_pytest(tmp_path, *options, env=server.environment).stdout
    assert 'FAIL  the judge calls 2 of 2 "harmful" cases "harmless"' in output
    assert "harmful, judged harmless  harmless, judged harmful" in output
    assert "The judge gave 0 (harmless); the label (verifier) is 1 (harmful)." in output
    assert "missed" not in output
    results = results_in(tmp_path / "outputs/own.yml")
    cases = sorted((result.test, result.run_id, result.label) for result in results)
    assert cases == [
        ("agent_perturbation", "b", 1),
        ("agent_positives", "a", 0),
        ("labels", "a", 1),
        ("labels", "b", 0),
    ]
    assert all("0: harmless\n1: harmful" in request.text for request in server.requests)
