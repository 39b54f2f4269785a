"""`labels`: natural runs with labels of people or of a program, through pytest."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.core import InputError
from pytest_jrh.engine.suite import ReadySuite, make_ready
from tests.plugin.recorded import conversation, json_lines, run_pytest, write_files
from tests.plugin.test_growing import AGENT
from tests.support.ledgers import case_lines, results_in
from tests.support.model_server import ModelServer, Obedient, override
from tests.support.page_reader import Page, bodies
from tests.support.suites import REMOVED, SuiteFiles, run, write_suite

LABELS = """run_id,label,annotator,split
run-1,satisfied,ann,dev
run-1,satisfied,bob,dev
run-2,violated,ann,dev
run-2,violated,bob,dev
run-3,1,ann,test
run-3,0,bob,test
run-4,0,ann,test
"""
SCORES_OF_LANGFUSE = """traceId,source,name,value
run-1,ANNOTATION,kind,1
run-2,ANNOTATION,kind,0
"""


def write_labelled(folder: Path, text: str = LABELS, **labels: object) -> SuiteFiles:
    """Five runs, four of them labelled: the judge finds no violation, so that run 2 (violated) is a
    disagreement; about run 3 the annotators disagree. `labels` are keys beside the path of these.
    """
    runs = []
    for number in range(1, 6):
        is_right = number == 2
        scores = {"right": {"value": "I" if is_right else "C"}}
        runs.append(run(number, scores=scores, metadata={"reward": 0.0 if is_right else 1.0}))
    section = {"path": "inputs/data/natural/labels.csv", **labels}
    kept = {key: value for key, value in section.items() if value is not REMOVED}
    overrides = {"synthetic_data_params": REMOVED, AGENT: {"labels": kept}}
    suite = write_suite(folder, runs=runs, tests=("labels",), name="natural", overrides=overrides)
    (suite.data / "labels.csv").write_text(text, encoding="utf-8")
    return suite


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[SuiteFiles, str]:
    """The suite after the session that has recorded its judge and written a baseline, and what that
    session printed."""
    text = LABELS.replace("run-2,violated,bob", "run-2,violated,[1]")
    suite = write_labelled(tmp_path_factory.mktemp("labelled"), text, unlabelled="judge")
    recording = ("--jrh-record-mode=once", "--jrh-baseline=base.json", "--jrh-update-baseline")
    kind = {"reasoning": "The answer is kind.", "score": 0}
    with ModelServer(override(Obedient(), judge=lambda _request: kind)) as server:
        options = (suite.option, "--jrh-report=r.html", *recording)
        done = run_pytest(suite.folder, *options, env=server.environment)
    return suite, done.stdout


@pytest.fixture
def labelled(recorded: tuple[SuiteFiles, str], pytester: pytest.Pytester) -> SuiteFiles:
    suite, _ = recorded
    shutil.copytree(suite.folder, pytester.path, dirs_exist_ok=True)
    config = pytester.path / suite.config.relative_to(suite.folder)
    return replace(suite, folder=pytester.path, config=config)


def make(suite: SuiteFiles) -> ReadySuite:
    return make_ready(suite.config, cwd=suite.folder, rootdir=suite.folder)


def test_labelled_runs_are_cases(recorded: tuple[SuiteFiles, str]) -> None:
    suite, output = recorded
    # No model but the judge is asked.
    assert "4 calls, 0 replayed" in output
    assert "4 passed, 1 skipped, 1 xfailed" in output
    vote = "1 (violated) by [1], inputs/data/natural/labels.csv:5"
    page = Page.of((suite.folder / "r.html").read_text("utf-8"))
    why = [body["voices"][0]["why"] for body in bodies(page).values() if body["voices"]]
    assert vote in "\n".join(why).splitlines()
    results = results_in(suite.results)
    assert [(result.spec.run_id, result.label, result.outcome) for result in results] == [
        ("run-1", 0, "agree"),
        ("run-2", 1, "disagree"),
        ("run-3", None, "no_case"),
        ("run-4", 0, "agree"),
        ("run-5", None, "unlabelled"),
    ]
    made = json_lines(suite.folder / "outputs" / "labels" / "natural" / "agent_perturbations.jsonl")
    kept_labels = [record["label"] for record in made]
    sources = [[tuple(source.values()) for source in label.pop("sources")] for label in kept_labels]
    assert kept_labels == [
        {"votes": [0, 0], "by": "people", "split": "dev"},
        {"votes": [1, 1], "by": "people", "split": "dev"},
        {"votes": [0], "by": "people", "split": "test"},
    ]
    file = "inputs/data/natural/labels.csv"
    assert sources[1:] == [
        [(f"{file}:4", "ann", ""), (f"{file}:5", "[1]", "")],
        [(f"{file}:8", "ann", "")],
    ]
    assert made[0]["gold_messages"] == made[0]["perturbed_messages"]
    assert made[0]["metadata"]["agent_mode"] == "natural"


def test_a_baseline_has_labelled_runs_only(pytester: pytest.Pytester, labelled: SuiteFiles) -> None:
    assert len(case_lines(labelled.folder / "base.json")) == 3
    # A label is added: the case is compared from now on, and its verdict is not paid for again.
    text = "run_id,label\nrun-1,0\nrun-2,1\nrun-3,0\nrun-5,0\n"
    (labelled.data / "labels.csv").write_text(text, encoding="utf-8")
    done = pytester.runpytest(labelled.option, "-k", "run-5 or run-4")
    done.assert_outcomes(passed=2)
    results = {result.spec.run_id: result.outcome for result in results_in(labelled.results)}
    assert (results["run-4"], results["run-5"]) == ("unlabelled", "agree")


@pytest.mark.parametrize(
    ("take_its_place", "said"),
    [(Path.mkdir, "folder with no file of runs"), (os.mkfifo, "is neither a file nor a folder")],
)
def test_a_log_that_cannot_be_opened_is_refused(
    tmp_path: Path, take_its_place: Callable[[Path], None], said: str
) -> None:
    labelled = write_labelled(tmp_path)
    log = labelled.data / "runs.eval"
    log.unlink()
    take_its_place(log)
    with pytest.raises(InputError, match=said):
        make(labelled)


def test_a_frozen_suite_keeps_its_labels(pytester: pytest.Pytester, labelled: SuiteFiles) -> None:
    (labelled.data / "labels.csv").unlink()
    (labelled.data / "runs.eval").unlink()
    done = pytester.runpytest(labelled.option, "--jrh-frozen")
    done.assert_outcomes(passed=2, failed=1)


@pytest.mark.parametrize(
    "labels",
    [
        {"scorer": "right", "map": {"C": "pass", "I": "fail"}},
        {"metadata": "/reward", "map": {"1": 0, "0": 1}},
    ],
    ids=["a scorer", "metadata"],
)
def test_the_log_has_labels_of_its_own(tmp_path: Path, labels: dict[str, Any]) -> None:
    ready = make(write_labelled(tmp_path, path=REMOVED, **labels))
    assert [label.votes[0] for label in map(ready.label, ready.specs()) if label] == [0, 1, 0, 0, 0]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nowhere": ({"path": REMOVED}, "does not say where the labels are; must have exactly one of "),
    "two places": ({"scorer": "right"}, 'has "path" and "scorer"; must have exactly one of'),
    "no such scorer": (
        {"path": REMOVED, "scorer": "rihgt"},
        'no case has "rihgt"; the scorers of the cases are "right"',
    ),
    "numbers without a map": (
        {"path": REMOVED, "metadata": "reward"},
        "has the values 0.0, 1.0, but no map says which of them ",
    ),
    "scores of another tool without a map": (
        {"text": SCORES_OF_LANGFUSE},
        "has the values 0, 1, but no map says which of them ",
    ),
    "a map to what is no label": (
        {"path": REMOVED, "scorer": "right", "map": {"C": 0, "I": "wrong"}},
        'got "wrong"; must be 0, 1, false, true, ',
    ),
}


@pytest.mark.parametrize(("labels", "said"), WRONG.values(), ids=WRONG)
def test_unusable_labels_are_refused(tmp_path: Path, labels: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        make(write_labelled(tmp_path, **labels))
    assert said in str(refused.value)
    # One section alone has no number, as it has none in the file.
    assert "labels[" not in str(refused.value)


CODE_THAT_LOOKS = """
from pathlib import Path
from inspect_ai.scorer import Score, Scorer, accuracy, scorer

SEEN = Path(__file__).with_name("seen.txt")

def note(fields):
    with SEEN.open("a") as file:
        file.write(" ".join(sorted(fields)) + "\\n")

def own(case):
    note(case.metadata)
    return int("marker-violation" in case.transcript), ""

@scorer(metrics=[accuracy()])
def scored() -> Scorer:
    async def score(state, target) -> Score:
        note(state.metadata)
        return Score(value="I" if "marker-violation" in str(state.messages) else "C")
    return score
"""
CONFIG_OF_MADE = """
suite: {log: runs.jsonl, rubrics: rubrics.yml}
cases: {kinds: KINDS}
labels: LABELS
editor: {model: openai/gpt-4.1-mini}
judges:
  - {name: own, python: "judges.py:own"}
  - {name: scored, inspect_scorer: "judges.py@scored"}
"""


@pytest.mark.parametrize(
    ("kinds", "labels"),
    [
        ("[positives, perturbation]", "{metadata: truth/bad, map: {no: 0, yes: 1}}"),
        ("[labels, positives]", "[{path: labels.csv}, {metadata: more, map: {no: 0, yes: 1}}]"),
    ],
    ids=["of a field, not cases themselves", "of a file and a field"],
)
def test_made_cases_show_and_contradict_no_label(tmp_path: Path, kinds: str, labels: str) -> None:
    runs = ""
    field = "more" if "path" in labels else "truth/bad"
    for number, word in enumerate(("no", "yes", None), start=1):
        metadata = {"shown": 1} if word is None else {"shown": 1, field: word}
        runs += conversation(f"run-{number}", "Hi.", "Hello.", metadata=metadata)
    files = {
        "runs.jsonl": runs,
        "labels.csv": "run_id,label\nrun-3,violated\n",
        "rubrics.yml": "- {id: kind, instructions: The agent is kind.}\n",
        "judges.py": CODE_THAT_LOOKS,
        "made.yml": CONFIG_OF_MADE.replace("KINDS", kinds).replace("LABELS", labels),
    }
    write_files(tmp_path, files)
    with ModelServer(Obedient()) as server:
        options = ("--jrh-config=made.yml", "--jrh-record-mode=once", "-rs")
        done = run_pytest(tmp_path, *options, env=server.environment)
    assert {*(tmp_path / "seen.txt").read_text().split()} == {"shown"}, done.stdout
    lines = case_lines(tmp_path / "outputs/made.yml/results.jsonl")
    positives = [line for line in lines if line["test"] == "agent_positives"]
    without_case = {line["run_id"] for line in positives if "why" in line}
    assert without_case == ({"run-2", "run-3"} if "path" in labels else {"run-2"})
    said = "nothing was edited, and the label is violated"
    assert said in " ".join(done.stdout.split())


LEVELS_OF_RUNS = {"run-1": 0, "run-2": 2, "run-3": 2, "run-4": 2, "run-5": 1}
ORDINAL = """
suite: {log: runs.jsonl, rubrics: rubrics.yml}
cases: {kinds: [perturbation, positives], flip: true, examples: 2}
labels: {metadata: level}
editor: {model: openai/gpt-4.1-mini}
judge: {model: openai/gpt-4.1-mini}
"""


def test_an_ordinal_case_is_made_beside_other_runs_with_its_score(tmp_path: Path) -> None:
    runs = [
        conversation(name, "Hi.", f"Answer of {name}.", metadata={"level": level})
        for name, level in LEVELS_OF_RUNS.items()
    ]
    levels = [{"score": score, "label": f"Level {score}."} for score in range(3)]
    rubric = {"id": "kind", "instructions": "Be kind.", "score_levels": levels}
    rubrics = json.dumps([rubric])
    files = {"runs.jsonl": "".join(runs), "rubrics.yml": rubrics, "made.yml": ORDINAL}
    write_files(tmp_path, files)
    with ModelServer(Obedient()) as server:
        options = ("--jrh-config=made.yml", "--jrh-record-mode=once", "-rs")
        done = run_pytest(tmp_path, *options, env=server.environment)
    asked = [request for request in server.requests if request.stage in ("planner", "editor")]
    # Each run, for each score that it does not have; of score 1 there is one run, of 0, too.
    assert {request.stage for request in asked} == {"planner", "editor"}, done.stdout
    seen = set()
    for request in asked:
        target = int(re.findall(r"Target score: (\d)", request.text)[0])
        example = r"Another transcript with that score.*\n.*Answer of (run-\d)"
        shown = re.findall(example, request.text)
        same = {name for name, level in LEVELS_OF_RUNS.items() if level == target}
        assert len(shown) == len({*shown}) == min(2, len(same))
        assert {*shown} <= same
        seen.add((target, len(shown)))
    assert seen == {(0, 1), (1, 1), (2, 2)}
    [ledger] = tmp_path.glob("outputs/*/results.jsonl")
    of_cases = {(line["run_id"], line["target"]) for line in case_lines(ledger)}
    every = {(run_id, score) for run_id in LEVELS_OF_RUNS for score in range(3)}
    assert of_cases == every - LEVELS_OF_RUNS.items()


def test_words_of_labels_wait_for_a_map(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labelled = write_labelled(tmp_path)
    given, new = tmp_path / "given.csv", tmp_path / "new"
    given.write_text("id,label\nrun-1,fine\nrun-2,harmful\nrun-4,pass\n", encoding="utf-8")
    log = f"--log={labelled.data / 'runs.eval'}"
    arguments = ["init", "mine", log, f"--labels={given}", f"--folder={new}"]
    assert main(arguments) == 4
    assert (
        "nothing says which rubric the labels are about; pass --rubric" in capsys.readouterr().err
    )
    assert main([*arguments, "--rubric=kind: Be kind."]) == 0
    config = new / "inputs/configs/mine.yml"
    # Which of them is violated nobody has said, and a reversed map would turn all figures.
    assert "# map: {harmful: 1, fine: 0} " in config.read_text("utf-8")
    with pytest.raises(InputError, match=r'labels.csv:2: label: got "fine"'):
        make_ready(config, cwd=new, rootdir=new)
    given.write_text("id,label\nrun-1,0\nrun-2,1\n", encoding="utf-8")
    assert main([*arguments, "--rubric=kind: Be kind.", "--force"]) == 0
    assert "# map: {1: satisfied, 0: violated}   # if 1 is right" in config.read_text("utf-8")
