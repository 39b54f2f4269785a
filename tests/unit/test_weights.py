"""Labels that stand for several cases: drawn by what a judge said, read, and in all figures."""

from __future__ import annotations

import csv
import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.cli import label
from pytest_jrh.cli.checking import check_table
from pytest_jrh.core.errors import InputError

RUBRIC = ("--rubric", "polite: The answer is polite.")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write_table(rows: int = 1_000, violated: float = 0.05, wrong: float = 0.1) -> dict[str, int]:
    """A table of verdicts, and the true label of each case."""
    rng = random.Random(rows)
    truth, lines = {}, ["id,answer,verdict"]
    for number in range(rows):
        case = f"c{number}"
        truth[case] = int(rng.random() < violated)
        said = truth[case] ^ (rng.random() < wrong)
        lines.append(f"{case},answer {number},{'violated' if said else 'satisfied'}")
    write("t.csv", *lines)
    return truth


def write(name: str, *lines: str) -> None:
    Path(name).write_text("\n".join(lines), encoding="utf-8")


def label_here(truth: dict[str, int], *arguments: str, name: str = "ann") -> None:
    """Label all that the command shows."""

    def serve(page: Any) -> Any:
        board = page.board
        reviewer, _ = board.enter(name)
        for assigned in board.assigned(reviewer):
            board.give(reviewer, assigned.key, truth[assigned.entry.case.spec.run_id])
        board.finalize()
        return SimpleNamespace(url="", stop=lambda: None)

    with patch.object(label, "serve", serve):
        assert main(["label", "t.csv", *RUBRIC, *arguments]) == 0


def figures_of(**settings: Any) -> Mapping[str, Any]:
    [judge] = check_table("t.csv", labels="labels.csv", **settings).judges.values()
    return judge.figures


def rows_of(name: str) -> list[dict[str, str]]:
    with Path(name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_sample_by_verdict_is_drawn_evenly_and_all_figures_are_of_the_whole_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    truth = write_table()
    label_here(truth, "--sample=60", "--by=verdict")
    said = {row["id"]: row["verdict"] for row in rows_of("t.csv")}
    numbers, rows = Counter(said.values()), rows_of("labels.csv")
    assert Counter(said[row["case_id"]] for row in rows) == {"violated": 30, "satisfied": 30}
    assert {row["split"] for row in rows} == {"weighted"}
    for row in rows:
        assert row["weight"] == f"{numbers[said[row['case_id']]]} of {said[row['case_id']]}"
    # The second person labels the same, and a label that is settled keeps its weight.
    disputed = rows[0]["case_id"]
    other = {**truth, disputed: 1 - truth[disputed]}
    label_here(other, "--sample=60", "--by=verdict", name="ben")
    label_here(truth, "--disagreements=labels.csv", name="cy")
    settled = [row["weight"] for row in rows_of("labels.csv") if row["split"] == "settled"]
    assert settled == [rows[0]["weight"]]
    capsys.readouterr()
    assert main(["check", "t.csv", "--labels=labels.csv", "-v"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "weighted: 60 labels stand for 1,000 of 1,000 cases" in printed
    assert "180 more labels, drawn like these, would halve the widest: missed" in printed
    figures = figures_of()
    mass: dict[tuple[int, int], float] = defaultdict(float)
    for row in rows:
        verdict = said[row["case_id"]]
        mass[truth[row["case_id"]], int(verdict == "violated")] += numbers[verdict] / 30
    total = sum(mass.values())
    assert total == pytest.approx(1_000)
    hits, alarms = mass[1, 1], mass[0, 1]
    assert figures["accuracy"].value == pytest.approx((mass[0, 0] + hits) / total)
    assert figures["recall"].value == pytest.approx(hits / (hits + mass[1, 0]))
    assert figures["false_positive_rate"].value == pytest.approx(alarms / (alarms + mass[0, 0]))
    right, ones, called = figures["accuracy"].value, hits + mass[1, 0], hits + alarms
    chance = (ones * called + (total - ones) * (total - called)) / total**2
    assert figures["kappa"].value == pytest.approx((right - chance) / (1 - chance))
    for name, figure in figures.items():
        assert (figure.n, figure.count) == (60, None), name
        assert (figure.lower or 0) <= (figure.value or 0) <= (figure.upper or 0)


def test_errors_on_a_scale_are_weighted() -> None:
    scores = [1 + number % 5 for number in range(40)]
    write("t.csv", "id,verdict", *(f"c{n},{score}" for n, score in enumerate(scores)))
    labels = [f"c{n},{scores[n] + (n < 4)},{1 if n < 10 else 3}" for n in range(20)]
    write("labels.csv", "id,label,weight", *labels)
    figures = figures_of(scale=(1, 5))
    # Four of the first ten labels, each of one case, are a level above; all others are right.
    assert figures["exact"].value == pytest.approx(1 - 4 / 40)
    assert figures["mean_absolute_error"].value == pytest.approx(4 / 40)
    assert figures["bias"].value == pytest.approx(-4 / 40)
    assert figures["within_one"].value == 1
    assert 0.5 < figures["weighted_kappa"].value < 1


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (("c0,1,2", "c1,0,0"), 'labels.csv:3: weight: got "0"; must be a number from 1 to 40'),
        (("c0,1,2", "c1,0,-1"), 'got "-1"'),
        (("c0,1,2", "c1,0,nan"), 'got "nan"'),
        (("c0,1,2", "c1,0,1e300"), 'got "1e300"'),
        (("c0,1,2", "c1,0,inf"), 'got "inf"'),
        (("c0,1,2", "c1,0,x"), 'got "x"'),
        (("c0,1,2", "c1,0,"), 'labels.csv:3: weight: got ""'),
        (("c0,1,2", "c0,1,3"), "the same case has 2 above"),
        (("c0,1,30", "c1,0,20"), "2 labels stand for 50 cases, and t.csv has 40"),
    ],
)
def test_weights_that_cannot_be_are_refused_with_their_line(
    rows: tuple[str, ...], said: str
) -> None:
    write_table(40)
    write("labels.csv", "id,label,weight", *rows)
    with pytest.raises(InputError, match=said):
        check_table("t.csv", labels="labels.csv", one="violated")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--sample=60 --by=answer", "60 cases cannot be drawn evenly from 40 different"),
        ("--sample=3 --by=verdict", "3 cases cannot be drawn evenly from 2 different words"),
        ("--by=verdict", "needs a table, and says how its --sample is drawn"),
        ("--sample=9 --by=mood", "no column mood; its columns are id, answer, verdict"),
    ],
)
def test_what_cannot_be_drawn_evenly_is_said(
    capsys: pytest.CaptureFixture[str], arguments: str, said: str
) -> None:
    write_table(40, 0.5)
    assert main(["label", "t.csv", *RUBRIC, *arguments.split()]) == 4
    assert f"--by: {said}" in capsys.readouterr().err


def test_labels_drawn_by_what_a_judge_said_alone_have_weights_and_compare_no_judges() -> None:
    truth = write_table(100, 0.3)
    label_here(truth, "--sample=20")
    assert "weight" not in rows_of("labels.csv")[0]
    accuracy = figures_of()["accuracy"]
    assert (accuracy.n, accuracy.value) == (20, (accuracy.count or 0) / 20)
    Path("labels.csv").unlink()
    label_here(truth, "--sample=20", "--by=verdict")
    write("t2.csv", Path("t.csv").read_text("utf-8"))
    with pytest.raises(InputError, match="--baseline: its labels were drawn by what a judge says"):
        check_table("t.csv", labels="labels.csv", baseline="t2.csv")


def test_labels_stand_for_all_cases_of_their_word_however_many_there_are() -> None:
    write("t.csv", "id,verdict", *(f"c{n},{'fail' if n < 100 else 'pass'}" for n in range(1_000)))
    # Of 50 drawn of each word, 10 and 40 are labelled, and some people cannot tell.
    rows = [f"c{n},{'violated' if n < 9 else 'satisfied'},100 of fail" for n in range(10)]
    rows += [f"c{n},cannot tell,100 of fail" for n in range(10, 20)]
    rows += [f"c{n},{'violated' if n < 102 else 'satisfied'},900 of pass" for n in range(100, 140)]
    write("labels.csv", "case_id,label,weight", *rows)
    figures = figures_of()
    assert figures["accuracy"].value == pytest.approx((90 + 900 * 38 / 40) / 1_000)
    assert figures["recall"].value == pytest.approx(90 / (90 + 900 * 2 / 40))


def test_weights_of_one_leave_figures_of_a_scale_as_they_are() -> None:
    """Also where a label is n/a, or lies between two levels."""
    said = [("1,2", "1"), ("3,3", "4"), ("n/a,n/a", "2"), ("5,4", "4"), ("2,2", "n/a")] * 8
    write("t.csv", "id,verdict", *(f"c{n},{verdict}" for n, (_, verdict) in enumerate(said)))
    figures = []
    for head, weight in (("id,a,b", ""), ("id,a,b,weight", ",1")):
        write("labels.csv", head, *(f"c{n},{labels}{weight}" for n, (labels, _) in enumerate(said)))
        figures.append(figures_of(label=["a", "b"], scale=(1, 5)))
    plain, weighted = figures
    for key, figure in plain.items():
        if figure.value is not None and key != "flicker":
            assert weighted[key].value == pytest.approx(figure.value), key
