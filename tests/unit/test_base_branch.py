"""The baseline of the base branch, in the checkouts of GitHub and GitLab."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_jrh.stats.verdicts import Baseline
from pytest_jrh.store.ledger import accepted_by, baseline_there, render
from tests.support.made_cases import result_with
from tests.unit.test_decision import baseline_of, cases

SUITE = "refunds"
FILE = "inputs/baseline.json"
LINES = baseline_of(cases("." * 20, "." * 4))
LOSING = baseline_of(cases("x" * 10 + "." * 10, "." * 4))
BASE, ACCEPTS = render(LINES), render(LOSING)
GROWN = render(baseline_of(cases("." * 20 + ".x", "." * 4)))
GITHUB, BASE_OF_GITLAB = {"GITHUB_BASE_REF": "main"}, "CI_MERGE_REQUEST_DIFF_BASE_SHA"
NAME = ("-c", "user.name=a", "-c", "user.email=a@example.org")


def git(folder: Path, *words: str) -> str:
    return subprocess.check_output(["git", *NAME, *words], cwd=folder, text=True).strip()


def commit(folder: Path, baseline: str) -> str:
    """Commit the text of a baseline, or another file."""
    path = folder / (FILE if baseline else "other.txt")
    path.parent.mkdir(exist_ok=True)
    path.write_text(baseline, "utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "a change")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "-b", "main")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    return folder


def pull_request(origin: Path, before: str, now: str) -> dict[str, str]:
    """A pull request that changes the baseline, and its merge commit as GitHub makes it; gives the
    commits of its base, its branch and that merge."""
    base = commit(origin, before)
    git(origin, "checkout", "-b", "change")
    branch = commit(origin, now)
    git(origin, "checkout", "-b", "merged", "main")
    # The base has gone on.
    git(origin, "commit", "--allow-empty", "-m", "another change")
    git(origin, "merge", "--no-ff", "-m", "merge", "change")
    return {"base": base, "change": branch, "merged": git(origin, "rev-parse", "HEAD")}


def checkout(origin: Path, commit: str, *depth: str) -> Path:
    """A detached checkout of one commit, as runners make it."""
    folder = origin.parent / "checkout"
    folder.mkdir()
    git(folder, "init", "-b", "none")
    git(folder, "remote", "add", "origin", origin.as_uri())
    git(folder, "fetch", *depth, "origin", commit)
    git(folder, "checkout", commit)
    return folder


def said(folder: Path, environ: Mapping[str, str]) -> str | None:
    there = baseline_there(folder / FILE, environ)
    if not isinstance(there, Baseline):
        return there
    now = baseline_there(folder / FILE, {BASE_OF_GITLAB: "HEAD"})
    assert isinstance(now, Baseline)
    return accepted_by(there, now, SUITE)


@pytest.mark.parametrize(
    ("before", "now", "accepts"),
    [
        (BASE, ACCEPTS, "it accepts 10 newly missed"),
        (ACCEPTS, BASE, "it accepts no loss"),
        (BASE, GROWN, "it accepts no loss, adds 2 cases (1 wrong)"),
        ("", BASE, "it accepts no loss, adds 24 cases (0 wrong)"),
    ],
    ids=["accepts a loss", "accepts none", "adds cases", "is new"],
)
def test_a_changed_baseline_is_said(origin: Path, before: str, now: str, accepts: str) -> None:
    made = pull_request(origin, before, now)
    folder = checkout(origin, made["merged"], "--depth=2")
    assert said(folder, GITHUB) == accepts
    assert said(folder, {}) is None
    git(folder, "checkout", made["change"])
    git(folder, "fetch", "--depth=1", "origin", made["base"])
    assert said(folder, {BASE_OF_GITLAB: made["base"]}) == accepts


def test_a_checkout_without_the_base_says_how_to_have_it(origin: Path) -> None:
    made = pull_request(origin, BASE, ACCEPTS)
    folder = checkout(origin, made["merged"], "--depth=1")
    github, gitlab = said(folder, GITHUB), said(folder, {BASE_OF_GITLAB: made["base"]})
    assert "the base branch cannot be read: set fetch-depth: 2 for actions/checkout" in str(github)
    assert f"run git fetch --depth=1 origin ${BASE_OF_GITLAB}" in str(gitlab)
    # Not even a repository.
    assert "cannot be read" in str(baseline_there(origin.parent / "b.json", GITHUB))


def test_a_checkout_of_the_branch_itself_is_held_against_where_it_began(origin: Path) -> None:
    made = pull_request(origin, BASE, ACCEPTS)
    git(origin, "checkout", "main")
    commit(origin, GROWN)
    folder = checkout(origin, made["change"])
    git(folder, "fetch", "origin", "main:refs/remotes/origin/main")
    assert said(folder, GITHUB) == "it accepts 10 newly missed"


def test_another_reasoning_or_another_suite_is_no_change() -> None:
    reasons = {case: result_with(line, reasons=("",)) for case, line in LINES.cases.items()}
    assert accepted_by(LINES, Baseline(reasons), SUITE) == ""
    assert accepted_by(LINES, LOSING, "other") == ""
    fewer = Baseline(dict(list(LINES.cases.items())[:20]))
    assert accepted_by(LINES, fewer, SUITE) == "it accepts no loss, drops 4 cases"


def test_a_base_of_an_earlier_form_is_one_line(origin: Path) -> None:
    made = pull_request(origin, BASE.replace('"format": 3', '"format": 2'), ACCEPTS)
    found = baseline_there(checkout(origin, made["merged"], "--depth=2") / FILE, GITHUB)
    assert found == (
        "whether this pull request changes the baseline is unknown, because ./baseline.json "
        "in the base branch has an older format or is damaged"
    )
