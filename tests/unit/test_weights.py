"""Labels that stand for several cases: drawn by what a judge said, read, and in all figures."""

from __future__ import annotations

import csv
import math
import random
from collections import Counter
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
    Path("t.csv").write_text("\n".join(lines), encoding="utf-8")
    return truth


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


def kept() -> list[dict[str, str]]:
    with Path("labels.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_sample_by_verdict_is_drawn_evenly_and_all_figures_are_of_the_whole_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    truth = write_table()
    label_here(truth, "--sample=60", "--by=verdict")
    with Path("t.csv").open(encoding="utf-8") as file:
        said = {row["id"]: row["verdict"] for row in csv.DictReader(file)}
    numbers, rows = Counter(said.values()), kept()
    assert Counter(said[row["case_id"]] for row in rows) == {"violated": 30, "satisfied": 30}
    assert {row["split"] for row in rows} == {"weighted"}
    for row in rows:
        assert row["weight"] == f"{numbers[said[row['case_id']]]} of {said[row['case_id']]}"
    # The second person labels the same, and a label that is settled keeps its weight.
    other = {
        case: 1 - value if case == rows[0]["case_id"] else value for case, value in truth.items()
    }
    label_here(other, "--sample=60", "--by=verdict", name="ben")
    label_here(truth, "--disagreements=labels.csv", name="cy")
    assert [row["weight"] for row in kept() if row["split"] == "settled"] == [rows[0]["weight"]]
    capsys.readouterr()
    assert main(["check", "t.csv", "--labels=labels.csv", "-v"]) == 0
    printed = capsys.readouterr().out
    assert "weighted: 60 labels stand for 1,000 of 1,000 cases" in printed
    assert "180 more labels, drawn like these, would halve the widest: missed" in " ".join(
        printed.split()
    )
    figures = figures_of()
    mass: dict[tuple[int, int], float] = {(0, 0): 0, (0, 1): 0, (1, 0): 0, (1, 1): 0}
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
    lines, labels = ["id,verdict"], ["id,label,weight"]
    for number in range(40):
        score = 1 + number % 5
        lines.append(f"c{number},{score}")
        if number < 20:
            labels.append(f"c{number},{score + (number < 4)},{1 if number < 10 else 3}")
    Path("t.csv").write_text("\n".join(lines), encoding="utf-8")
    Path("labels.csv").write_text("\n".join(labels), encoding="utf-8")
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
    Path("labels.csv").write_text("\n".join(["id,label,weight", *rows]), encoding="utf-8")
    with pytest.raises(InputError) as error:
        check_table("t.csv", labels="labels.csv", one="violated")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--sample=60", "--by=answer"), "--by: 60 cases cannot be drawn evenly from 40 different"),
        (
            ("--sample=3", "--by=verdict"),
            "--by: 3 cases cannot be drawn evenly from 2 different words",
        ),
        (("--by=verdict",), "--by: needs a table, and says how its --sample is drawn"),
        (("--sample=9", "--by=mood"), "--by: no column mood; its columns are id, answer, verdict"),
    ],
)
def test_what_cannot_be_drawn_evenly_is_said(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    write_table(40, 0.5)
    assert main(["label", "t.csv", *RUBRIC, *arguments]) == 4
    assert said in capsys.readouterr().err


def test_nothing_compares_a_judge_with_another_on_cases_that_were_drawn_by_what_it_said() -> None:
    truth = write_table(100, 0.3)
    label_here(truth, "--sample=20", "--by=verdict")
    with pytest.raises(InputError, match="--baseline: its labels were drawn by what a judge says"):
        check_table("t.csv", labels="labels.csv", baseline="t2.csv" if write_other() else "")


def write_other() -> bool:
    return bool(Path("t2.csv").write_text(Path("t.csv").read_text("utf-8"), encoding="utf-8"))


def test_without_weights_all_is_as_before() -> None:
    truth = write_table(100, 0.3)
    label_here(truth, "--sample=20")
    assert "weight" not in kept()[0]
    figures = figures_of()
    assert figures["accuracy"].count is not None
    assert not math.isnan(figures["accuracy"].value or 0)


def test_labels_stand_for_all_cases_of_their_word_however_many_there_are() -> None:
    lines = ["id,verdict", *(f"c{n},{'fail' if n < 100 else 'pass'}" for n in range(1_000))]
    Path("t.csv").write_text("\n".join(lines), encoding="utf-8")
    rows = ["case_id,label,weight"]
    # Of 50 drawn of each word, 10 and 40 are labelled, and some people cannot tell.
    rows += [f"c{n},{'violated' if n < 9 else 'satisfied'},100 of fail" for n in range(10)]
    rows += [f"c{n},cannot tell,100 of fail" for n in range(10, 20)]
    rows += [f"c{n},{'violated' if n < 102 else 'satisfied'},900 of pass" for n in range(100, 140)]
    Path("labels.csv").write_text("\n".join(rows), encoding="utf-8")
    figures = figures_of()
    assert figures["accuracy"].value == pytest.approx((90 + 900 * 38 / 40) / 1_000)
    assert figures["recall"].value == pytest.approx(90 / (90 + 900 * 2 / 40))


def test_weights_of_one_leave_figures_of_a_scale_as_they_are() -> None:
    """Also where a label is n/a, or lies between two levels."""
    rows, labels, plain = ["id,verdict"], ["id,a,b,weight"], ["id,a,b"]
    for number, (one, other, verdict) in enumerate(
        [("1", "2", "1"), ("3", "3", "4"), ("n/a", "n/a", "2"), ("5", "4", "4"), ("2", "2", "n/a")]
        * 8
    ):
        rows.append(f"c{number},{verdict}")
        plain.append(f"c{number},{one},{other}")
        labels.append(f"{plain[-1]},1")
    Path("t.csv").write_text("\n".join(rows), encoding="utf-8")
    figures = {}
    for name, lines in (("weighted", labels), ("plain", plain)):
        Path(f"{name}.csv").write_text("\n".join(lines), encoding="utf-8")
        table = check_table("t.csv", labels=f"{name}.csv", label=["a", "b"], scale=(1, 5))
        figures[name] = table.session.sections[0].total.figures
    for key, figure in figures["plain"].items():
        if figure.value is not None and key != "flicker":
            assert figures["weighted"][key].value == pytest.approx(figure.value), key
