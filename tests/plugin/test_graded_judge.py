"""A Python judge that gives probabilities, through pytest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.results import results_in

CONFIG = """\
suite: {log: runs.jsonl, rubrics: rubrics.yml}
cases: {kinds: [agent_labels]}
labels: {path: labels.csv}
judge: {python: judges.py:graded, threshold: 0.5}
"""
JUDGE = """\
def graded(case):
    return float(case.messages[-1]["content"].split()[0]), "As it says."
"""
SAID = {"a": "0.9", "b": "0.55", "c": "0.1", "d": "0.52", "e": "1.5"}
LABELS = "run_id,label\na,violated\nb,violated\nc,satisfied\nd,satisfied\ne,satisfied\n"
OPTIONS = ("--jrh-config=desk.yml", "--jrh-baseline=base.json")


@pytest.fixture
def folder(pytester: pytest.Pytester) -> Path:
    """A suite of five labelled runs, whose judge reads the first word of the answer."""
    runs = ""
    for run, said in SAID.items():
        turns = [("user", "How sure?"), ("assistant", f"{said} it is.")]
        messages = [{"role": role, "content": content} for role, content in turns]
        runs += json.dumps({"id": run, "messages": messages}) + "\n"
    rubrics = "- {id: sure, instructions: The assistant is not sure.}\n"
    files = {"runs.jsonl": runs, "rubrics.yml": rubrics, "labels.csv": LABELS}
    for name, text in {**files, "desk.yml": CONFIG, "judges.py": JUDGE}.items():
        (pytester.path / name).write_text(text, encoding="utf-8")
    return pytester.path


def results_below(folder: Path) -> dict[str, tuple[tuple[int, ...], tuple[float, ...]]]:
    """The scores and the probabilities of each run."""
    [path] = folder.rglob("results.jsonl")
    results = results_in(path.parent)
    return {result.run_id: (result.scores, result.extra.probabilities) for result in results}


def test_its_verdicts_are_those_of_the_threshold(folder: Path, pytester: pytest.Pytester) -> None:
    done = pytester.runpytest(*OPTIONS, "--jrh-update-baseline", "--jrh-report=r.json")
    assert results_below(folder) == {
        "a": ((1,), (0.9,)),
        "b": ((1,), (0.55,)),
        "c": ((0,), (0.1,)),
        "d": ((1,), (0.52,)),
        "e": ((), ()),
    }
    assert "gave 1.5; `threshold` needs a number from 0 to 1" in " ".join(done.stdout.str().split())
    assert "probabilities" not in (folder / "base.json").read_text("utf-8")
    [suite] = json.loads((folder / "r.json").read_text("utf-8"))["suites"].values()
    assert suite["judges"]["default"]["probabilities"]["brier"]["n"] == 4
    # Another threshold is another judge, whose verdicts are held against those of before.
    config = (folder / "desk.yml").read_text("utf-8")
    (folder / "desk.yml").write_text(config.replace("0.5}", "0.6}"), encoding="utf-8")
    changed = pytester.runpytest(*OPTIONS, "-v")
    changed.stdout.fnmatch_lines(["*missed at 5%*threshold*Brier*alone at 5%*"])
    assert [scores for scores, _ in results_below(folder).values()] == [
        (1,),
        (0,),
        (0,),
        (0,),
        (),
    ]


def test_a_recorded_probability_is_judged_by_another_threshold_without_the_judge(
    folder: Path, pytester: pytest.Pytester
) -> None:
    config = CONFIG.replace("0.5}", '0.5, version: "1"}')
    (folder / "desk.yml").write_text(config, encoding="utf-8")
    pytester.runpytest(OPTIONS[0], "--jrh-judge-record-mode=once")
    (folder / "judges.py").write_text("def graded(case):\n    raise ValueError\n", "utf-8")
    (folder / "desk.yml").write_text(config.replace("0.5,", "0.6,"), encoding="utf-8")
    pytester.runpytest(OPTIONS[0])
    assert results_below(folder)["b"] == ((0,), (0.55,))


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("{python: judges.py:graded, threshold: 2}", "must be a number from 0 to 1"),
        ("{model: m, threshold: 0.5}", "threshold has no meaning for a judge that is a prompt"),
        (
            "{python: judges.py:graded, threshold: 0.5, score_map: {a: 1, b: 0}}",
            "is for binary suites without score_map",
        ),
    ],
)
def test_a_threshold_without_a_meaning_is_refused(
    folder: Path, pytester: pytest.Pytester, judge: str, said: str
) -> None:
    config = CONFIG.replace("{python: judges.py:graded, threshold: 0.5}", judge)
    (folder / "desk.yml").write_text(config, encoding="utf-8")
    done = pytester.runpytest(OPTIONS[0])
    assert done.ret == 4
    assert said in " ".join(done.stderr.str().split())
