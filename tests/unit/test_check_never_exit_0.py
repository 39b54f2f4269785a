"""A table of a judge that got worse is never exit 0, and one of a judge that did not is PASS."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.sources.columns import texts_to_label
from pytest_jrh.sources.tables import read_table
from tests.support.stories import NEVER, PASS, Story

pytestmark = pytest.mark.usefixtures("in_tmp_path")


def written(name: str, columns: str, rows: Iterable[Iterable[object]]) -> str:
    with Path(name).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns.split(), *rows])
    return name


def checked(story: Story) -> list[str]:
    """The files of a story, and how `check` is asked about them: of another model both have a
    column, else an earlier file has the verdicts of the judge."""
    earlier = {(row.run, row.rubric): row.verdict for row in story.before}
    sides: dict[str, list[tuple[object, ...]]] = {"old.csv": [], "new.csv": []}
    for file, rows in (("old.csv", story.before), ("new.csv", story.now)):
        for row in rows:
            before = earlier.get((row.run, row.rubric), "")
            verdicts = (row.verdict, before) if story.how == "model" else (row.verdict,)
            case = f"{row.run}-{row.rubric}"
            sides[file].append((case, row.run, row.rubric, row.label, *verdicts))
    columns = "case run rubric label verdict"
    if story.how == "model":
        written("new.csv", f"{columns} earlier", sides["new.csv"])
        return ["new.csv", "--one=violated", "--cluster=run", "--baseline=earlier"]
    for file, cells in sides.items():
        written(file, columns, cells)
    return ["new.csv", "--one=violated", "--baseline=old.csv"]


@pytest.mark.parametrize("story", NEVER, ids=[story.name for story in NEVER])
def test_what_got_worse_is_never_exit_0(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *checked(story)]) == 1, capsys.readouterr().out


@pytest.mark.parametrize("story", PASS, ids=[story.name for story in PASS])
def test_what_did_not_is_pass(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["check", *checked(story)])
    printed = capsys.readouterr().out
    assert (code, "PASS  " in printed) == (0, True), printed


def test_labels_that_are_inverted_need_no_baseline() -> None:
    rows = [(case, case % 2, 1 - case % 2) for case in range(24)]
    assert main(["check", written("t.csv", "case label verdict", rows), "--one=violated"]) == 1


@pytest.mark.parametrize("meaning", ["--one=violated", "--scale=0-1"])
@pytest.mark.parametrize("digests", [True, False], ids=["labelled texts", "other texts alone"])
def test_exchanged_texts(capsys: pytest.CaptureFixture[str], digests: bool, meaning: str) -> None:
    """The cases that the judge has lost have other texts now, and the labels of the old ones."""
    for name, lost in (("old", 0), ("new", 8)):
        rows = []
        for case in range(40):
            text = f"another answer {case}" if case < lost else f"answer {case}"
            rows.append((f"c{case}", text, case % 2 if case >= lost else 0))
        written(f"{name}.csv", "case output verdict", rows)
    texts = texts_to_label(read_table("old.csv", ("verdict",)), ["output"], "case")
    old = [text.digest for text in texts]
    columns = "case_id label digest" if digests else "case_id label"
    labels = [(f"c{case}", case % 2, old[case])[: len(columns.split())] for case in range(40)]
    written("labels.csv", columns, labels)
    options = ["--baseline=old.csv", "--labels=labels.csv", meaning]
    code = main(["check", "new.csv", *options])
    printed = " ".join(capsys.readouterr().out.split())
    assert code == 1, printed
    if digests:
        assert "Not used: 8 labels, because the text has changed since it was" in printed
        assert "comparison has 32 of 40 cases" in printed


@pytest.mark.parametrize(
    ("texts", "labels", "code", "said"),
    [
        (8, 0, 1, "the comparison has 32 of 40 cases: 8 with another label or text"),
        (0, 8, 1, "the comparison has 32 of 40 cases: 8 with another label or text"),
        (40, 0, 1, "compared with the baseline, because every case has another"),
        (0, 0, 0, "PASS"),
    ],
)
def test_another_text_or_label_under_an_id_is_another_case(
    capsys: pytest.CaptureFixture[str], texts: int, labels: int, code: int, said: str
) -> None:
    """That the judge is right on other texts says nothing of those that it was right on."""
    for name, is_new in (("old", False), ("new", True)):
        rows = []
        for case in range(40):
            text = f"{'another' if is_new and case < texts else 'an'} answer {case}"
            label = case % 2 ^ (is_new and case < labels)
            rows.append((f"c{case}", text, label, label))
        written(f"{name}.csv", "case output label verdict", rows)
    assert main(["check", "new.csv", "--baseline=old.csv", "--one=violated"]) == code
    assert said in " ".join(capsys.readouterr().out.split())
