"""`--jrh-subset`: a few cases of a suite, and what gate, files and recordings make of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.gated import BASELINE, FILE, LAX, TINY, Project
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


def test_the_same_cases_of_both_classes_run_and_are_compared_alone(
    pytester: pytest.Pytester, project: Project
) -> None:
    option = project.rules(TINY, "{max_drop: 0.1, unclear: fail}\nsubset: {smoke: 4}")
    before = (project.folder / FILE).read_bytes()
    first = pytester.runpytest(option, BASELINE, SMOKE, "-rA", "-v", "--jrh-report=part.md")
    assert first.ret == pytest.ExitCode.OK
    cases = selected(first)
    assert sorted(case.split("::")[0] for case in cases) == [
        *["agent_perturbation"] * 2,
        *["agent_positives"] * 2,
    ]
    assert "(subset smoke)" in (project.folder / "part.md").read_text("utf-8")
    assert "PASS  the judge is as good as before on 4 cases (subset smoke)" in first.outlines
    assert "4 of 4 cases of the baseline compared" in first.stdout.str()
    assert (project.folder / FILE).read_bytes() == before
    session = session_of(project.folder / RESULTS)
    assert (session["cases"], session["of"], session["subset"]) == (4, 8, "smoke")
    # Under another prompt and with workers they are the same.
    project.rules(LAX, "{min_recall: 0.5}\nsubset: {smoke: 4}")
    lax = pytester.runpytest(f"--jrh-config={LAX}", BASELINE, SMOKE, "-rA", "-v", "-n", "2")
    assert selected(lax) == cases
    assert lax.ret == pytest.ExitCode.TESTS_FAILED


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


def test_only_the_cases_of_the_subset_are_asked(
    pytester: pytest.Pytester, project: Project, server: ModelServer
) -> None:
    option = project.rules(
        TINY, "{min_accuracy: 0.5}\nsubset: {smoke: 2}\nreplay: {cassette_dir: others}"
    )
    plan = pytester.runpytest(option, SMOKE, "--jrh-plan", "--jrh-record-mode=once")
    plan.stdout.fnmatch_lines(["*: 2 cases, 0 calls recorded*"])
    assert not server.requests
    pytester.runpytest(option, SMOKE, "--jrh-record-mode=once")
    first = len(server.requests)
    assert first
    judged = {path.name.partition(".")[0] for path in Path("others").rglob("*.judge-*.yaml")}
    assert len(list(Path("others").rglob("*.judge-*.yaml"))) == 2, judged


def test_a_subset_of_more_cases_than_there_are_is_all_of_them(
    pytester: pytest.Pytester, project: Project
) -> None:
    option = project.rules(TINY, "{min_accuracy: 0.5}\nsubset: {night: 50}")
    night = pytester.runpytest(option, "--jrh-subset=night")
    assert night.ret == pytest.ExitCode.OK
    assert (
        "note: suite tiny: the subset night is to have 50 cases, and there are 8 to judge: all are "
        "run."
    ) in night.outlines
