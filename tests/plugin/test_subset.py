"""`--jrh-subset`: a few cases of a suite, and what gate, files and recordings make of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.gated import BASELINE, FILE, LAX, TINY, UPDATE, WORKERS, Project
from tests.plugin.labelled import write_labelled
from tests.plugin.recorded import Recorded
from tests.support.model_server import ModelServer

SMOKE = "--jrh-subset=smoke"
RESULTS = Path("outputs", "tiny")


def selected(result: pytest.RunResult) -> list[str]:
    """The cases that ran, as `-rA` names them."""
    words = ("PASSED ", "FAILED ", "XFAIL ")
    cases = [line.split(" ")[1] for line in result.outlines if line.startswith(words)]
    return sorted(case.partition("::")[2] for case in cases)


def session_of(folder: Path) -> dict[str, Any]:
    [path] = folder.glob("*_report.json")
    value: dict[str, Any] = json.loads(path.read_text("utf-8"))["session"]
    return value


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".locks" not in path.parts
    }


@WORKERS
def test_the_same_cases_of_both_classes_run_each_time(
    pytester: pytest.Pytester, project: Project, workers: list[str]
) -> None:
    option = project.rules(TINY, "{max_drop: 0}\nsubset: {smoke: 4}")
    project.rules(LAX, "{min_recall: 0.5}\nsubset: {smoke: 4}")
    first = pytester.runpytest(option, BASELINE, SMOKE, "-rA", "-v", *workers)
    cases = selected(first)
    assert sorted(case.split("::")[0] for case in cases) == [
        *["agent_perturbation"] * 2,
        *["agent_positives"] * 2,
    ]
    part = pytester.runpytest(option, BASELINE, SMOKE, "-rA", "-v", "-k", "perturbation", *workers)
    assert selected(part) == cases[:2]
    lax = pytester.runpytest(f"--jrh-config={LAX}", BASELINE, SMOKE, "-rA", "-v", *workers)
    assert selected(lax) == cases
    assert lax.ret == pytest.ExitCode.TESTS_FAILED


def test_a_baseline_of_all_cases_is_compared_on_these_alone(
    pytester: pytest.Pytester, project: Project
) -> None:
    option = project.rules(TINY, "{max_drop: 0.1, unclear: fail}\nsubset: {smoke: 4}")
    before = (project.folder / FILE).read_bytes()
    result = pytester.runpytest(option, BASELINE, SMOKE, "-v", "--jrh-report=part.md")
    assert result.ret == pytest.ExitCode.OK
    assert "(subset smoke)" in (project.folder / "part.md").read_text("utf-8")
    assert "PASS  the judge is as good as before on 4 cases (subset smoke)" in result.outlines
    assert "4 of 4 cases of the baseline compared" in result.stdout.str()
    assert "not comparable" not in result.stdout.str()
    assert (project.folder / FILE).read_bytes() == before


def test_a_subset_is_named_and_decided_by_the_limits(
    pytester: pytest.Pytester, project: Project
) -> None:
    option = project.rules(TINY, "{min_accuracy: 0.5}\nsubset: {smoke: 5}")
    result = pytester.runpytest(option, SMOKE)
    assert "  5 of 8 cases in this session" in result.outlines
    assert "--jrh-update-baseline" not in result.stdout.str()
    assert session_of(project.folder / RESULTS) == {
        "cases": 5,
        "kept": 0,
        "of": 8,
        "interrupted": False,
        "subset": "smoke",
    }


def test_nothing_of_the_other_cases_is_lost(pytester: pytest.Pytester, project: Project) -> None:
    option = project.rules(TINY, "{min_accuracy: 0.5}\nsubset: {smoke: 2}")
    assert pytester.runpytest(option).ret == 0
    cassettes = files_below(project.suite.cassettes)
    records = (project.suite.negatives / "agent_perturbations.jsonl").read_bytes()
    extra = project.suite.cassettes / "agent_perturbation" / "rubric-1" / "gone.e1.generation.yaml"
    extra.write_bytes(next(iter(cassettes.values())))
    done = pytester.runpytest(option, SMOKE, "--jrh-prune", "-rA", "-v")
    assert "removed cassettes: 1" in done.outlines
    assert files_below(project.suite.cassettes) == cassettes
    assert (project.suite.negatives / "agent_perturbations.jsonl").read_bytes() == records
    session = session_of(project.folder / RESULTS)
    assert (session["cases"], session["kept"]) == (2, 6)
    assert pytester.runpytest(option).ret == 0


def test_only_the_cases_of_the_subset_are_asked(
    pytester: pytest.Pytester, project: Project, server: ModelServer
) -> None:
    option = project.rules(
        TINY, "{min_accuracy: 0.5}\nsubset: {smoke: 2}\nreplay: {cassette_dir: others}"
    )
    missing = pytester.runpytest(option, SMOKE)
    command = f"pytest {option} --jrh-record-mode=new_episodes {SMOKE}"
    assert command in " ".join(missing.stdout.str().split())
    plan = pytester.runpytest(option, SMOKE, "--jrh-plan", "--jrh-record-mode=once")
    plan.stdout.fnmatch_lines(["*: 2 cases, 0 calls recorded*"])
    assert not server.requests
    pytester.runpytest(option, SMOKE, "--jrh-record-mode=once")
    first = len(server.requests)
    assert first
    judged = {path.name.partition(".")[0] for path in Path("others").rglob("*.judge-*.yaml")}
    assert len(list(Path("others").rglob("*.judge-*.yaml"))) == 2, judged
    pytester.runpytest(option, "--jrh-record-mode=once")
    others = len(server.requests) - first
    assert others > first
    pytester.runpytest(option, "--jrh-record-mode=once")
    assert len(server.requests) == first + others


def test_what_cannot_be_a_subset_is_said_before_any_call(
    pytester: pytest.Pytester, project: Project
) -> None:
    option = project.rules(TINY, "{min_accuracy: 0.5}\nsubset: {smoke: 2, night: 50}")
    unknown = pytester.runpytest(option, "--jrh-subset=smoek")
    assert unknown.ret == pytest.ExitCode.USAGE_ERROR
    unknown.stderr.fnmatch_lines(
        ["*: subset: --jrh-subset=smoek: the subsets are smoke, night", "*smoke is the nearest"]
    )
    update = pytester.runpytest(option, SMOKE, BASELINE, UPDATE)
    assert update.ret == pytest.ExitCode.USAGE_ERROR
    update.stderr.fnmatch_lines(["*--jrh-update-baseline: *run it without --jrh-subset*"])
    none = pytester.runpytest(f"--jrh-config={LAX}", SMOKE)
    assert none.ret == pytest.ExitCode.USAGE_ERROR
    none.stderr.fnmatch_lines(["*: subset: --jrh-subset=smoke: there is none"])
    night = pytester.runpytest(option, "--jrh-subset=night")
    assert night.ret == pytest.ExitCode.OK
    told = [line for line in night.outlines if "night" in line and "note" in line]
    assert told == [
        "note: suite tiny: the subset night is to have 50 cases, and there are 8 to judge: all are "
        "run."
    ]
    assert "subset" not in session_of(project.folder / RESULTS)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("5", "subset: got 5; must be a mapping of names to numbers of cases"),
        ("[smoke]", "subset: got a list; must be a mapping of names to numbers of cases"),
        ("{smoke: 0}", "subset.smoke: got 0; must be an integer >= 1"),
        ("{smoke: true}", "subset.smoke: got true; must be an integer >= 1"),
        ("{smoke: 1.5}", "subset.smoke: got 1.5; must be an integer >= 1"),
        ('{"": 5}', 'subset.: got ""; must be text'),
    ],
)
def test_a_bad_number_is_an_error_with_its_key(
    pytester: pytest.Pytester, project: Project, value: str, complaint: str
) -> None:
    option = project.rules(TINY, f"{{min_accuracy: 0.5}}\nsubset: {value}")
    result = pytester.runpytest(option, SMOKE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert complaint in result.stderr.str()
    result.stderr.fnmatch_lines([f"*{TINY}:*: subset*"])


def test_a_panel_judges_the_same_cases_and_a_scale_has_its_levels(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    for suite in (recorded.panel, recorded.scale):
        text = suite.config.read_text("utf-8")
        suite.config.write_text(f"{text}\nsubset: {{smoke: 1}}\n", encoding="utf-8")
    options = [recorded.panel.option, recorded.scale.option]
    result = pytester.runpytest(*options, SMOKE, "-rA", "-v")
    text = "2 of 4 cases of suite panel in this session"
    assert text in " ".join(result.stdout.str().split())
    [level, kind, strict] = selected(result)
    assert "score_" in level or "score_" in kind or "score_" in strict
    panel = [case for case in (level, kind, strict) if "score_" not in case]
    assert len({case.rpartition("-")[0] for case in panel}) == 1
    assert len(panel) == 2


def test_labels_are_not_drawn_from_a_subset(pytester: pytest.Pytester, project: Project) -> None:
    option = project.rules(TINY, "{min_accuracy: 0.5}\nsubset: {smoke: 2}")
    result = pytester.runpytest(option, SMOKE, "--jrh-review=blind")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*run it without --jrh-subset*"])


def test_of_labelled_runs_both_labels_are_chosen_and_no_disputed_one(
    pytester: pytest.Pytester,
) -> None:
    labelled = write_labelled(pytester.path)
    config = labelled.suite.config
    (config.parent / "judges.py").write_text("def kind(case):\n    return 0\n", encoding="utf-8")
    judge = "judge: {python: judges.py:kind}"
    text = f"{config.read_text('utf-8')}\nsubset: {{smoke: 2, more: 9}}\n{judge}\n"
    config.write_text(text, encoding="utf-8")
    result = pytester.runpytest(labelled.suite.option, SMOKE, "-rA", "-v")
    cases = [case.rpartition("::")[2] for case in selected(result)]
    assert cases in (["run-1[e1]", "run-2[e1]"], ["run-2[e1]", "run-4[e1]"])
    # One that annotators disagree about is skipped in a whole session, and counts for none.
    result = pytester.runpytest(labelled.suite.option, "--jrh-subset=more")
    result.stdout.fnmatch_lines(["note: * is to have 9 cases, and there are 3 to judge*"])
