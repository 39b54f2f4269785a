"""Labelling a file without a suite: what is shown, what is kept, and who takes it."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.cli.checking import check_table
from pytest_jrh.config.schema import LabelSection
from pytest_jrh.core.model import Case, Rubric, RunSummary
from pytest_jrh.core.transcript import message_text
from pytest_jrh.sources.labels import Joiner, read_rows
from tests.support.fork_server import python
from tests.support.label_command import label_here, label_process
from tests.support.label_session import let_in
from tests.support.tool_results import Said, deepeval, langfuse, mlflow, promptfoo

POLITE = ("--rubric", "polite: The answer is polite.")
SAID: Sequence[Said] = [(True, None), (False, None), (None, None)]
SHOWN = "user: Hello? assistant: Yes."
TURNS = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Yes."}]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(values: Sequence[object]) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


def table(number: int) -> str:
    """A table of cases, each with a verdict."""
    with Path("cases.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "question", "answer", "verdict"])
        for one in range(number):
            verdict = "violated" if one % 2 else "satisfied"
            writer.writerow([f"c{one}", f"question {one}", f"answer {one}", verdict])
    return "cases.csv"


def kept(path: str = "labels.csv") -> list[dict[str, str]]:
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def number_of(case: Case) -> int:
    return int(message_text(case.messages[-1]).split()[-1])


@pytest.mark.parametrize(
    ("name", "text", "arguments", "shown"),
    [
        ("t.csv", "id,question,answer,label\na,Why?,So.,1\n", POLITE, "question: Why? answer: So."),
        ("t.csv", "id;said\na;So.\n", (*POLITE, "--text=said"), "said: So."),
        ("t.csv", "nr,text\na,So.\n", (*POLITE, "--case=nr"), "text: So."),
        ("t.jsonl", lines([{"id": "a", "output": "So.", "verdict": 1}]), POLITE, "output: So."),
        (
            "t.jsonl",
            lines([{"id": "a", "messages": TURNS}]),
            POLITE,
            SHOWN,
        ),
        ("t.jsonl", lines([{"id": "a", "said": TURNS}]), POLITE, SHOWN),
        ("t.json", json.dumps([{"id": "a", "answer": "So."}]), POLITE, "answer: So."),
        ("t.json", json.dumps(deepeval(SAID[:1])), (), "input: question 0 output: answer 0"),
        (
            "t.json",
            json.dumps(promptfoo(SAID[:1])),
            ("--rubric", "polite"),
            "input: Answer: question 0 output: answer 0",
        ),
    ],
)
def test_the_text_of_each_form_is_shown_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    text: str,
    arguments: tuple[str, ...],
    shown: str,
) -> None:
    Path(name).write_text(text, encoding="utf-8")
    [case] = label_here(monkeypatch, name, *arguments)
    turns = [f"{turn['role']}: {message_text(turn)}" for turn in case.messages]
    assert " ".join(turns) == shown
    [row] = kept()
    assert (row["label"], row["annotator"], row["split"]) == ("violated", "ann", "")


RUBRICS = "- {id: polite, instructions: It is polite.}\n- {id: short, instructions: It is short.}\n"


@pytest.mark.parametrize(
    ("rubric", "asked"),
    [
        ("It is polite.", {"": "It is polite."}),
        ("polite: It is polite.", {"polite": "It is polite."}),
        ("rubric.txt", {"polite": "It is polite.\nAlways."}),
        ("rubrics.yml", {"polite": "It is polite.", "short": "It is short."}),
    ],
)
def test_a_rubric_is_a_text_or_a_file(
    monkeypatch: pytest.MonkeyPatch, rubric: str, asked: dict[str, str]
) -> None:
    Path("rubric.txt").write_text("polite: It is polite.\nAlways.\n", encoding="utf-8")
    Path("rubrics.yml").write_text(RUBRICS, encoding="utf-8")
    cases = label_here(monkeypatch, table(1), "--rubric", rubric)
    assert {case.spec.rubric_id: case.rubric.instructions for case in cases} == asked
    assert {row["rubric_id"] for row in kept()} == {*asked}


@pytest.mark.parametrize(
    ("rubric", "asked"),
    [
        ((), {"polite": "polite", "short": "short"}),
        (("--rubric", "short"), {"short": "short"}),
        (("--rubric", "short: In a line."), {"short": "In a line."}),
    ],
)
def test_rubrics_of_a_table_are_those_of_its_rows(
    monkeypatch: pytest.MonkeyPatch, rubric: tuple[str, ...], asked: dict[str, str]
) -> None:
    rows = [f"{case},{name},text {case}\n" for case in "ab" for name in ("polite", "short")]
    Path("t.csv").write_text("id,rubric,text\n" + "".join(rows), encoding="utf-8")
    cases = label_here(monkeypatch, "t.csv", *rubric)
    assert {case.spec.rubric_id: case.rubric.instructions for case in cases} == asked
    assert len(kept()) == 2 * len(asked)


@pytest.mark.parametrize(
    ("name", "text", "arguments", "said"),
    [
        ("t.csv", "id,said\na,b\n", POLITE, '--text: got ""; its columns are id, said'),
        ("t.csv", "nr,text\na,b\n", POLITE, '--case: got ""; its columns are nr, text'),
        ("t.csv", "id,text\na,b\na,c\n", POLITE, 'the case "a" has two texts'),
        ("t.csv", "id,text\na,b\n", (), "holds no text for a rubric; the rubrics in it: none"),
        ("t.csv", "id,rubric,text\na,x,b\n", POLITE, "the rubrics in it: x"),
        ("t.csv", "id,text\na,\n", POLITE, "holds no text for a rubric"),
        ("t.csv", "id,text\na,b\n", (*POLITE, "--sample=0"), "--sample: got 0; must be 1 or more"),
        ("t.csv", "", POLITE, "is empty; must be CSV or JSON lines"),
        ("t.json", json.dumps(langfuse(SAID)), (), '--text: got ""; its columns are case_id'),
        ("t.jsonl", '{"id": "a", "messages": [\n', POLITE, "t.jsonl"),
        ("t.jsonl", lines([{"id": "a", "messages": 3}]), POLITE, "its columns are id, messages"),
        ("other.csv", "", POLITE, "t.csv: no such file"),
        ("t.csv", "id,text\na,b\n", ("--rubric", "no.yml"), "no.yml: no such file"),
        ("t.csv", "id,text\na,b\n", (*POLITE, "--out=t.csv"), "t.csv:1: has no column label"),
    ],
)
def test_what_cannot_be_labelled_is_said(
    capsys: pytest.CaptureFixture[str],
    name: str,
    text: str,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    Path(name).write_text(text, encoding="utf-8")
    file = "t.csv" if name == "other.csv" else name
    assert main(["label", file, *arguments]) == 4
    assert said in capsys.readouterr().err


def test_a_file_of_others_is_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    text = "run_id,label,mood\nc0,1,good\n"
    Path("labels.csv").write_text(text, encoding="utf-8")
    assert main(["label", table(1), *POLITE]) == 4
    assert "labels.csv:1: has columns that are not of labels: mood" in capsys.readouterr().err
    assert Path("labels.csv").read_text("utf-8") == text


def test_what_cannot_be_read_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.csv").write_text("id,text\na,b\nb,\nc,d\n", encoding="utf-8")
    assert len(label_here(monkeypatch, "t.csv", *POLITE)) == 2
    said = capsys.readouterr().out
    assert "t.csv: 2 to label of 2; left out, as they have no text: 1\n" in said
    assert "2 labels: for a suite, or `check t.csv --labels labels.csv`" in said


def test_a_sample_is_the_same_again_and_says_that_it_was_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = {case.spec.run_id for case in label_here(monkeypatch, table(40), *POLITE, "--sample=8")}
    assert len(drawn) == 8
    assert {row["split"] for row in kept()} == {"drawn"}
    assert {row["case_id"] for row in kept()} == drawn
    # The second person has the same, also when cases have come to the table.
    arguments = (table(50), *POLITE, "--sample=8")
    again = label_here(monkeypatch, *arguments, name="ben")
    assert {case.spec.run_id for case in again} == drawn
    assert Counter(row["annotator"] for row in kept()) == {"ann": 8, "ben": 8}


def test_cases_of_the_same_words_are_several_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("t.csv").write_text("id,text\na,same\nb,same\n", encoding="utf-8")
    assert len(label_here(monkeypatch, "t.csv", *POLITE)) == 2
    assert [row["case_id"] for row in sorted(kept(), key=str)] == ["a", "b"]


def test_a_name_that_begins_like_a_formula_finds_its_case(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("t.csv").write_text("id,text,verdict\n=1+1,b,violated\n@x,c,violated\n", encoding="utf-8")
    label_here(monkeypatch, "t.csv", *POLITE)
    # A spreadsheet takes it for text.
    assert {row["case_id"] for row in kept()} == {"'=1+1", "'@x"}
    assert len(check_table("t.csv", labels="labels.csv").results) == 2
    label_here(monkeypatch, "t.csv", *POLITE)
    assert len(kept()) == 2


def joined(path: str, number: int) -> Any:
    """What a suite makes of the labels of its runs."""
    runs = [RunSummary(f"c{one}", 1) for one in range(number)]
    joiner = Joiner(runs, [Rubric("polite", "It is polite.")])
    return joiner.join(read_rows(Path(path), path).rows, LabelSection(path=path), path)


def test_check_and_a_suite_take_the_labels_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 6 cases both call 0 to 3 by their number, differ on 4, and ben alone cannot tell 5."""
    file = table(6)
    label_here(monkeypatch, file, *POLITE, say=lambda case: int(number_of(case) < 2))

    def of_ben(case: Case) -> int | None:
        number = number_of(case)
        return None if number == 5 else int(number in (0, 1, 4))

    label_here(monkeypatch, file, *POLITE, say=of_ben, name="ben")
    assert [row["label"] for row in kept()].count("cannot tell") == 1
    checked = check_table(file, labels="labels.csv")
    found = {result.run_id: (result.label, result.score) for result in checked.results}
    agreed = {"c0": (1, 0), "c1": (1, 1), "c2": (0, 0), "c3": (0, 1), "c5": (0, 1)}
    assert found == {**agreed, "c4": (None, 0)}
    of_suite = joined("labels.csv", 6)
    assert of_suite.problems == []
    votes = {key[1]: label.votes for key, label in of_suite.labels.items()}
    assert votes["c0"] == (1, 1)
    assert sorted(votes["c4"]) == [0, 1]
    assert votes["c5"] == (0,)
    assert of_suite.notices == ["labels.csv: values that are no label: 1."]


def test_a_killed_command_loses_nothing_and_the_next_goes_on(folder: Path, forks: None) -> None:
    arguments = (table(5), *POLITE)
    with (
        label_process(folder, *arguments, python=tuple(python())) as (process, url),
        let_in(url) as ann,
    ):
        keys = [row["key"] for row in ann.rows]
        for key, label in zip(keys, (1, 0, None), strict=False):
            assert ann.give(key, label, note="a note").status_code == 200
        process.kill()
        process.wait()
    assert sorted(row["label"] for row in kept()) == ["cannot tell", "satisfied", "violated"]
    assert {row["note"] for row in kept()} == {"a note"}
    with (
        label_process(folder, *arguments, python=tuple(python())) as (process, url),
        let_in(url) as ann,
        let_in(url, "ben") as ben,
    ):
        assert sorted(row["value"] for row in ann.rows) == ["", "", "0", "1", "none"]
        assert [row["value"] for row in ben.rows] == [""] * 5
        # What is taken back is in the file no more.
        row = next(row for row in ann.rows if row["value"] == "1")
        assert ann.client.post(f"{ann.base}/{row['key']}/withdraw", json={}).status_code == 200
        assert "violated" not in {row["label"] for row in kept()}
        assert ben.give(ben.rows[0]["key"], 1).status_code == 200
        # Nobody else's row is lost where another session writes the same file.
        with (
            label_process(folder, *arguments, python=tuple(python())) as (_, other),
            let_in(other, "cay") as cay,
        ):
            assert cay.give(cay.rows[0]["key"], 0).status_code == 200
        assert ben.give(ben.rows[1]["key"], 1).status_code == 200
    assert Counter(row["annotator"] for row in kept()) == {"ann": 2, "ben": 2, "cay": 1}


def test_mlflow_has_its_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("t.jsonl").write_text(lines(mlflow(SAID)), encoding="utf-8")
    assert len(label_here(monkeypatch, "t.jsonl")) == 3
    checked = check_table("t.jsonl", labels="labels.csv", one="passed")
    assert Counter(result.label for result in checked.results) == {1: 3}
