"""A Python judge that gives probabilities, through pytest."""

import json
from operator import attrgetter
from pathlib import Path

import pytest

from tests.plugin.recorded import LABELLED, write_labelled
from tests.support.ledgers import results_in

CONFIG = f"{LABELLED}judge: {{python: judges.py:graded, threshold: 0.5}}\n"
JUDGE = """\
def graded(case):
    return float(case.messages[-1]["content"].split()[0]), "As it says."
"""
SCORER = """\
from inspect_ai.scorer import Score, Scorer, mean, scorer


@scorer(metrics=[mean()])
def graded() -> Scorer:
    async def score(state, target) -> Score:
        return Score(value=1 - float(state.output.completion.split()[0]))

    return score
"""
# What is said of each run, and its label.
RUNS = {"a": ("0.9", 1), "b": ("0.55", 1), "c": ("0.1", 0), "d": ("0.52", 0), "e": ("1.5", 0)}
OPTIONS = ("--jrh-config=desk.yml", "--jrh-baseline=base.json")


@pytest.fixture
def folder(pytester: pytest.Pytester) -> Path:
    """A suite of five labelled runs, whose judge reads the first word of the answer."""
    write_labelled(pytester.path, RUNS, JUDGE)
    (pytester.path / "desk.yml").write_text(CONFIG, encoding="utf-8")
    return pytester.path


def configure(folder: Path, old: str, new: str) -> None:
    """Write the config with another text in place of one."""
    (folder / "desk.yml").write_text(CONFIG.replace(old, new), encoding="utf-8")


BY_HALF = [(1,), (1,), (0,), (1,), ()]
BY_MORE = [(1,), (0,), (0,), (0,), ()]


def scores_below(folder: Path) -> list[tuple[int, ...]]:
    """The scores of each run, whose probabilities are those that it says."""
    [path] = folder.rglob("results.jsonl")
    results = sorted(results_in(path.parent), key=attrgetter("run_id"))
    probabilities = [round(sum(result.extra.probabilities), 9) for result in results]
    assert probabilities == [0.9, 0.55, 0.1, 0.52, 0]
    return [result.scores for result in results]


def test_its_verdicts_are_those_of_the_threshold(folder: Path, pytester: pytest.Pytester) -> None:
    configure(folder, "0.5}", '0.5, version: "1"}')
    record = ("--jrh-judge-record-mode=once", "--jrh-update-baseline", "--jrh-report=r.json")
    done = pytester.runpytest(*OPTIONS, *record)
    assert scores_below(folder) == BY_HALF
    assert "gave 1.5; `threshold` needs a number from 0 to 1" in " ".join(done.stdout.str().split())
    assert "probabilities" not in (folder / "base.json").read_text("utf-8")
    [suite] = json.loads((folder / "r.json").read_text("utf-8"))["suites"].values()
    assert suite["judges"]["default"]["probabilities"]["brier"]["n"] == 4
    # Another threshold is another judge, which needs no answer that was not recorded, and whose
    # verdicts are held against those of before.
    (folder / "judges.py").write_text("def graded(case):\n    raise ValueError\n", "utf-8")
    configure(folder, "0.5}", '0.6, version: "1"}')
    changed = pytester.runpytest(*OPTIONS, "-v")
    changed.stdout.fnmatch_lines(["*missed at 5%*threshold*Brier*decides alone, 5% wrong"])
    assert scores_below(folder) == BY_MORE


def test_a_scorer_of_inspect_gives_a_probability(folder: Path, pytester: pytest.Pytester) -> None:
    (folder / "judges.py").write_text(SCORER, encoding="utf-8")
    configure(folder, "python: judges.py:", "inspect_scorer: judges.py@")
    pytester.runpytest(OPTIONS[0])
    assert scores_below(folder) == BY_HALF
