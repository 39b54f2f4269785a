"""`python -m pytest_jrh merge`: shards are decided about as one session would have been."""

import json
import shutil
from pathlib import Path

import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.reports.ending import PAGE_HEAD
from tests.plugin.gated import BASELINE, BROKEN, FILE, LAX, LIMIT, REGRESSED, UPDATE, Project, under
from tests.plugin.recorded import LABELLED, PERTURBATION, run_pytest, write_labelled
from tests.support.ledgers import case_lines

FOLDERS = ["shard-0", "shard-1", "shard-2"]
RESULTS = "lax/tiny/results.jsonl"


def shard_of(result: dict[str, str]) -> str:
    """The folder of the machine that has judged a case: each has a share of the suite."""
    if "case_id" not in result:
        # A judge is in all of them.
        return ""
    if result["test"] == "agent_positives":
        return "shard-2"
    return "shard-0" if result["run_id"] in ("run-1", "run-2") else "shard-1"


@pytest.fixture(scope="module")
def shards_once(project_once: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The project, and what three machines have left of the laxer suite."""
    project = project_once.copied(tmp_path_factory.mktemp("shards"))
    for name in FOLDERS:
        shutil.copytree(project.left / "outputs", project.folder / name)
        path = project.folder / name / RESULTS
        lines = path.read_text("utf-8").splitlines(keepends=True)
        path.write_text("".join(line for line in lines if shard_of(json.loads(line)) in (name, "")))
    return project


@pytest.fixture
def project(shards_once: Project, pytester: pytest.Pytester) -> Project:
    return shards_once.copied(pytester.path)


class Merge:
    """Merges in this process, and keeps what came of it."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.lines: list[str] = []
        self.errors = ""

    def __call__(self, *arguments: str, config: str = LAX) -> int:
        self._capsys.readouterr()
        code = main(["merge", f"--jrh-config={config}", *arguments])
        told = self._capsys.readouterr()
        self.lines, self.errors = told.out.splitlines(), told.err
        return code


@pytest.fixture
def merge(
    capsys: pytest.CaptureFixture[str], project: Project, monkeypatch: pytest.MonkeyPatch
) -> Merge:
    monkeypatch.setenv("COLUMNS", "100")
    return Merge(capsys)


def test_shards_are_held_against_the_baseline_as_a_session(project: Project, merge: Merge) -> None:
    project.rules(LAX, LIMIT)
    assert merge(BASELINE, "-v", *FOLDERS) == 1
    assert under(merge.lines, "regressions (3):") == REGRESSED
    assert f"FAIL  {BROKEN}" in merge.lines
    reports = []
    for outputs in (project.folder / "outputs", project.left / "outputs"):
        [report] = (outputs / "lax/tiny").glob("*_report.json")
        reports.append(json.loads(report.read_text("utf-8")))
    assert reports[0] == reports[1]


def test_a_case_that_no_shard_reported_is_named_and_red(project: Project, merge: Merge) -> None:
    before = (project.folder / FILE).read_bytes()
    assert merge(BASELINE, UPDATE, *FOLDERS[1:]) == 1
    said = "no shard has results of 2 cases; run these cases, then merge all shards again"
    assert f"! {said}" in [line.strip() for line in merge.lines]
    missing = under(merge.lines, "never reported (2):")
    assert missing == [f"{LAX}::{PERTURBATION}run-{number}[e1]" for number in (1, 2)]
    said = "The baseline baseline.json was not updated, because the session did not finish."
    assert said in merge.lines
    assert (project.folder / FILE).read_bytes() == before


def test_a_suite_without_any_verdict_is_red(project: Project, merge: Merge) -> None:
    for path in project.folder.glob("shard-*/lax/tiny/results.jsonl"):
        results = [line | {"why": {"kind": "no_case"}} for line in case_lines(path)]
        path.write_text("".join(f"{json.dumps(result)}\n" for result in results), "utf-8")
    assert merge("--jrh-baseline=first.json", UPDATE, *FOLDERS) == 1
    assert "note: No case has a verdict, so this session is not green." in merge.lines
    said = "The baseline first.json was not written, because no case has a verdict."
    assert said in merge.lines
    assert not (project.folder / "first.json").exists()


def test_all_shards_together_update_a_baseline(project: Project, merge: Merge) -> None:
    assert merge(BASELINE, UPDATE, *FOLDERS) == 0
    assert "this update accepts 3 newly wrong cases" in " ".join(merge.lines)
    said = "The baseline baseline.json now has 8 cases: 0 added, 8 changed, 0 removed."
    assert said in merge.lines
    assert merge(BASELINE, *FOLDERS) == 0
    # Without a baseline nothing is decided about a drop, and each wrong verdict is red.
    assert merge(*FOLDERS) == 1
    assert project.wrong == {f"agent_perturbation::run-{number}[e1]" for number in (1, 2, 3, 4)}


def test_an_unscored_case_of_a_shard_is_red(project: Project, merge: Merge) -> None:
    before = (project.folder / FILE).read_bytes()
    why = {"kind": "unrecorded", "detail": "the judge's call is not recorded"}
    changed_line(project.folder / "shard-0" / RESULTS, 1, why=why, scores=[])
    assert merge("-v", BASELINE, UPDATE, *FOLDERS) == 1
    assert len(under(merge.lines, "unscored (1):")) == 1
    told = "because this session has no verdict on 1 case in the baseline:"
    head = f"The baseline baseline.json was not updated, {told}"
    named = [f"{LAX}::{PERTURBATION}run-1[e1] (unscored: unrecorded)"]
    assert under(merge.lines, head) == named
    assert (project.folder / FILE).read_bytes() == before


def changed_line(path: Path, number: int, **values: object) -> None:
    lines = path.read_text("utf-8").splitlines()
    # The first line is that of the judge.
    lines[number] = json.dumps(json.loads(lines[number]) | values)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def test_what_does_not_fit_is_a_usage_error(project: Project, merge: Merge) -> None:
    for mistake, told in (
        (("inputs",), "this folder and its subfolders have no results.jsonl"),
        ((UPDATE, "shard-0"), f"{UPDATE}: name the file to update with --jrh-baseline=FILE"),
        (("--jrh-baseline=none.json", "shard-0"), "none.json: no such file"),
    ):
        assert merge(*mistake) == 4
        assert told in merge.errors
    path = project.folder / "shard-0" / RESULTS
    before = path.read_bytes()
    stranger = "tiny::agent_perturbation::rubric-1::run-9[e1]"
    changed_line(path, 2, run_id="run-9", case_id=stranger)
    assert merge(BASELINE, *FOLDERS) == 4
    told = f"the suite 'tiny' has no case \"{stranger}\""
    assert f"shard-0/{RESULTS}:3: {told}" in merge.errors
    path.write_bytes(before)
    for path in project.folder.glob(f"shard-*/{RESULTS}"):
        path.write_text(path.read_text("utf-8").replace('"tiny', '"other'), "utf-8")
    assert merge(BASELINE, *FOLDERS) == 4
    assert "no results.jsonl here has results of the suite 'tiny'" in merge.errors


def test_verdicts_of_another_judge_are_refused(project: Project, merge: Merge) -> None:
    project.prompt("Overlook nothing.")
    assert merge(BASELINE, *FOLDERS) == 4
    assert f"shard-0/{RESULTS}:2: the verdict is by a judge with" in merge.errors


def test_a_baseline_of_other_cases_fails_and_says_the_way(project: Project, merge: Merge) -> None:
    path = project.folder / FILE
    path.write_text(path.read_text("utf-8").replace('"tiny::', '"another::'), encoding="utf-8")
    assert merge(BASELINE, *FOLDERS) == 1
    assert any("nothing could be compared with the baseline" in line for line in merge.lines)
    command = f"python -m pytest_jrh merge --jrh-config={LAX} {BASELINE} {UPDATE}"
    assert f"next        {command} {' '.join(FOLDERS)}" in merge.lines


def test_what_cannot_be_written_is_told_and_red(project: Project, merge: Merge) -> None:
    project.rules(LAX, "{min_accuracy: 0.1}")
    (project.folder / "outputs").write_text("a file in the way", encoding="utf-8")
    assert merge(*FOLDERS) == 1
    (project.folder / "outputs").unlink()
    assert merge(*FOLDERS) == 0
    (project.folder / "taken").write_text("a file", encoding="utf-8")
    reports = ("--jrh-report=taken/report.html", "--jrh-report=summary.md")
    assert merge(*FOLDERS, "--jrh-baseline=taken/b.json", UPDATE, *reports) == 1
    told = [line for line in merge.lines if "not written: " in line]
    assert told[0].startswith("note: The baseline taken/b.json was not written: ")
    assert "taken/report.html" in told[1]
    assert (project.folder / "summary.md").exists()


def test_what_is_not_green_leaves_a_page(project: Project, merge: Merge) -> None:
    page = project.folder / "outputs/lax/tiny/report.html"
    project.rules(LAX, LIMIT)
    assert merge(BASELINE, *FOLDERS) == 1
    assert sum(line.startswith("report      outputs/lax/tiny/report.html") for line in merge.lines)
    assert page.read_bytes().startswith(PAGE_HEAD)
    project.rules(LAX, "{min_recall: 0}")
    assert merge(*FOLDERS) == 0
    assert not page.exists()
    text, kept = "<!doctype html>\n<title>Of another tool</title>", project.folder / "kept.html"
    page.write_text(text, encoding="utf-8")
    assert merge(*FOLDERS) == 0
    assert page.read_text("utf-8") == text
    page.rename(kept)
    page.symlink_to(kept)
    project.rules(LAX, LIMIT)
    assert merge(*FOLDERS) == 1
    assert (page.is_symlink(), kept.read_text("utf-8")) == (True, text)


@pytest.fixture(scope="module")
def halves_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite of labelled runs, and what two machines have left of it."""
    folder = tmp_path_factory.mktemp("halves")
    runs = {f"r{number}": (f"ok {number}", 0) for number in range(4)}
    write_labelled(folder, runs, "def judge(case):\n    return 0, 'kind'\n")
    (folder / "labels.csv").write_text("run_id,label,annotator\nr0,0,a\nr1,0,a\nr2,0,a\nr3,0,a\n")
    (folder / "halved.yml").write_text(f"{LABELLED}judge: {{python: 'judges.py:judge'}}\n")
    for half, chosen in (("half-0", "r0 or r1"), ("half-1", "r2 or r3")):
        done = run_pytest(folder, "--jrh-config=halved.yml", "-k", chosen)
        assert done.code == 0, done.stdout
        (folder / "outputs").rename(folder / half)
    return folder


@pytest.mark.parametrize(
    ("file", "before", "after", "told"),
    [
        ("labels.csv", "r1,0", "r1,1", "half-0/halved.yml/results.jsonl:3: {}its label was 0, and"),
        ("labels.csv", "r2,0,a", "r2,0,a\nr2,1,b", "results.jsonl:2: {}the suite does not"),
        ("rubrics.yml", "Be", "Stay", "the instructions of the rubric 'kind' were"),
        ("runs.jsonl", "ok 3", "no 3", 'results.jsonl:3: {}the text of "r3" in the log'),
    ],
)
def test_shards_of_other_labels_rubrics_or_transcripts_are_refused(
    halves_once: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    file: str,
    before: str,
    after: str,
    told: str,
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(halves_once, folder)
    monkeypatch.chdir(folder)
    merge = Merge(capsys)
    assert merge("half-0", "half-1", "half-0", config="halved.yml") == 0
    assert "labels      4 by people" in merge.lines
    path = folder / file
    path.write_text(path.read_text().replace(before, after))
    assert merge("half-0", "half-1", config="halved.yml") == 4
    assert told.format("the case has changed since this shard ran: ") in merge.errors
