"""Labelling a file without a suite: what is shown, what is kept, and who takes it."""

from __future__ import annotations

import csv
import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias
from unittest.mock import patch

import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.cli import label
from pytest_jrh.cli.checking import check_table
from pytest_jrh.core import InputError, documents
from pytest_jrh.core.cases import Case
from pytest_jrh.core.scales import code_of
from pytest_jrh.core.transcript import message_text
from pytest_jrh.people.board import LabelBoard
from pytest_jrh.people.labels import LabelRow, LabelTable, PersonLabel
from pytest_jrh.review.serving import Page
from pytest_jrh.store.records import case_digest
from tests.support.label_session import labelling_session, let_in
from tests.support.sessions import as_text
from tests.support.tool_results import Said, deepeval, langfuse, mlflow, promptfoo

Capsys: TypeAlias = pytest.CaptureFixture[str]
POLITE = ("--rubric", "polite: The answer is polite.")
SAID: Sequence[Said] = [(True, None)]
ASKED = "input: question 0 output: answer 0"
SHOWN = "user: Hello? assistant: Yes."
TURNS = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Yes."}]
RUN = as_text([{"id": "a", "messages": TURNS}])
BARE = "id,text\na,b\n"
RUBRICS = "- {id: polite, instructions: It is polite.}\n- {id: short, instructions: It is short.}\n"
NAMED = "id,rubric,text\na,polite,b\na,short,b\n"
SIGNS = [*"=+-@\uff1d'\"", "'=", "''", "''@", "'-5", "-5", "+1", "- 5", "=1+1"]
INSIDE = ["\n", "\r\n", "\r", "\t", "\x1b[31m", "\x7f", "\x85", "\u2028", ",", ";", '"', "'", "\\"]
FORMS = ["caf\u00e9", "cafe\u0301", "\u202eabc", "\u200bx", *"Aa1", "1.0", "01", "1e3", "NaN"]
NOTES = [*SIGNS, *(f"x{text}y" for text in INSIDE), *FORMS]
IDS = [*NOTES, "null", "|", "a b", "a|b"]


pytestmark = pytest.mark.usefixtures("in_tmp_path")


def write(name: str, text: str) -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def table(number: int) -> str:
    """A table of cases, each with a verdict; every second is violated."""
    rows = [f"c{at},question {at},answer {at},{at % 2}" for at in range(number)]
    return write("cases.csv", "\n".join(["id,question,answer,verdict", *rows]))


def edit(name: str, old: str, new: str) -> None:
    write(name, Path(name).read_text("utf-8").replace(old, new))


def labels_of(name: str, **columns: str) -> list[int | None]:
    """The labels that `check` takes for the verdicts of a table."""
    checked = check_table(name, labels="labels.csv", one="violated", **columns)
    return [result.label for result in checked.results]


def kept() -> list[dict[str, str]]:
    with Path("labels.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def label_here(
    *arguments: str, labels: Mapping[str, int] = {}, name: str = "ann", again: bool = True
) -> list[Case]:
    """Label all that the command shows, with 1 where `labels` do not have the run; gives the cases
    as they come. What is labelled is labelled `again`, or left out."""
    cases: list[Case] = []

    def serve(page: Page) -> Any:
        board = page.board
        assert isinstance(board, LabelBoard)
        reviewer, _ = board.enter(name)
        for assigned in board.assigned(reviewer):
            if again or assigned.is_open:
                cases.append(assigned.entry.case)
                board.give(reviewer, assigned.key, labels.get(cases[-1].spec.run_id, 1))
        board.finalize()
        return SimpleNamespace(url="http://127.0.0.1/", stop=lambda: None)

    with patch.object(label, "serve", serve):
        assert main(["label", *arguments]) == 0
    return cases


@pytest.mark.parametrize(
    ("name", "text", "arguments", "shown"),
    [
        ("t.csv", "id,question,answer,label\na,Why?,So.,1\n", POLITE, "question: Why? answer: So."),
        ("t.csv", "id;said\na;So.\n", (*POLITE, "--text=said"), "said: So."),
        ("t.csv", "nr,text\na,So.\n", (*POLITE, "--case=nr"), "text: So."),
        ("t.jsonl", RUN, POLITE, SHOWN),
        ("t.jsonl", as_text([{"id": "a", "said": TURNS}]), POLITE, SHOWN),
        ("t.json", json.dumps([{"id": "a", "answer": "So."}]), POLITE, "answer: So."),
        ("r.jsonl", as_text([{"id": "a", "output": "So.", "verdict": 1}]), POLITE, "output: So."),
        ("r.json", json.dumps(deepeval(SAID)), (), ASKED),
        ("r.json", json.dumps(promptfoo(SAID)), (), f"input: Answer: {ASKED[7:]}"),
        ("r.jsonl", as_text(mlflow(SAID)), (), "input: question output: answer"),
    ],
)
def test_the_text_of_a_form(name: str, text: str, arguments: tuple[str, ...], shown: str) -> None:
    [case] = label_here(write(name, text), *arguments)
    assert " ".join(f"{turn['role']}: {message_text(turn)}" for turn in case.messages) == shown
    [row] = kept()
    assert (row["label"], row["annotator"], row["split"]) == ("violated", "ann", "")
    if name.startswith("r."):
        [result] = check_table(name, labels="labels.csv", one="passed").results
        assert result.label == 1


@pytest.mark.parametrize(
    ("text", "rubric", "asked"),
    [
        (BARE, "It is polite.", {"": "It is polite."}),
        (BARE, "polite: It is polite.", {"polite": "It is polite."}),
        (BARE, "rubric.txt", {"polite": "It is polite.\nAlways."}),
        (BARE, "rubrics.yml", {"polite": "It is polite.", "short": "It is short."}),
        (NAMED, "", {"polite": "polite", "short": "short"}),
        (NAMED, "short", {"short": "short"}),
        (NAMED, "short: In a line.", {"short": "In a line."}),
        (NAMED.replace("short", "so short"), "so short: In a line.", {"so short": "In a line."}),
        ("id,rubric,text\na,polite,b\n", "In a line.", {"polite": "In a line."}),
        ("id,rubric_id,rubric,text\na,p,Be kind.,b\n", "", {"p": "Be kind."}),
        ("id,Rubric ID,rubric,rubric_text,text\na,p,x,Be kind.,b\n", "", {"p": "Be kind."}),
    ],
)
def test_rubric_is_a_text_a_file_or_of_rows(text: str, rubric: str, asked: dict[str, str]) -> None:
    write("rubric.txt", "polite: It is polite.\nAlways.\n")
    write("rubrics.yml", RUBRICS)
    cases = label_here(write("t.csv", text), "--rubric", rubric)
    assert {case.spec.rubric_id: case.rubric.instructions for case in cases} == asked
    assert [row["rubric_id"] for row in kept()] == [case.spec.rubric_id for case in cases]
    assert len(cases) == len(asked)


def test_a_scale_has_its_scores() -> None:
    levels = "[{score: 0, label: bad}, {score: 1, label: so}, {score: 2, label: good}]"
    write("scale.yml", f"- {{id: good, instructions: It is., score_levels: {levels}}}\n")
    label_here(table(1), "--rubric", "scale.yml", labels={"c0": 2})
    assert [row["label"] for row in kept()] == ["2"]
    write("two.yml", "- {id: harm, instructions: It does., answers: {1: harmful, 0: harmless}}\n")
    label_here(table(1), "--rubric", "two.yml", "--out=two.csv")
    assert ",harmful," in Path("two.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("id,said\na,b\n", POLITE, 'no column of texts was recognized; the columns are "id", "sa'),
        ("nr,text\na,b\n", POLITE, 'no column of cases was recognized; the columns are "nr", "te'),
        ("id,text\na,b\na,c\n", POLITE, 'the case "a" has two texts'),
        (BARE, (), "has no rubric, so there is nothing to ask about the texts"),
        (NAMED, ("--rubric", "kind: It is."), 'rubrics with texts: "polite", "short"'),
        ("id,text\na,\n", POLITE, "no text is for this rubric; rubrics with texts: none"),
        ("", POLITE, "is empty; a table must be CSV, JSON lines or"),
        (as_text(langfuse(SAID)), (), 'of texts was recognized; the columns are "case_id"'),
        (RUN[:-9], POLITE, "t.jsonl:1: is not valid JSON"),
        (as_text([{"id": "a", "messages": 3}]), POLITE, 'are "id", "messages"'),
        (BARE, (*POLITE, "--sample=0"), "--sample: got 0; must be 1 or more"),
        (BARE, ("--rubric", "no.yml"), "no.yml: no such file"),
        (BARE, (*POLITE, "--out=t.csv"), "t.csv:1: has no column label"),
        (BARE, (*POLITE, "--out=t.json"), "--out: got t.json; must end in .csv"),
        (BARE, ("--disagreements=l.csv", "--out=o.csv"), "--out: cannot be used with --disagre"),
        (BARE, (*POLITE, "--out=other.csv"), "other.csv:1: has columns that a file of labels does"),
        (BARE, (*POLITE, "--out=tool.csv"), "tool.csv:1: has columns that a file of labels does"),
    ],
)
def test_what_cannot_be_labelled_is_said_and_no_other_file_is_written(
    capsys: Capsys, text: str, arguments: tuple[str, ...], said: str
) -> None:
    other = "id,label,mood\na,1,good\n"
    write("other.csv", other)
    write("tool.csv", "traceId,source,name,dataType,value\na,ANNOTATION,polite,BOOLEAN,1\n")
    name = write("t.jsonl" if text.startswith("{") else "t.csv", text)
    assert main(["label", name, *arguments]) == 4
    assert said in capsys.readouterr().err
    assert [Path(name).read_text("utf-8"), Path("other.csv").read_text("utf-8")] == [text, other]


def test_a_name_is_no_more_than_text_on_the_terminal(capsys: Capsys) -> None:
    name = write("t\x1b[2J\u202e.jsonl", RUN)
    label_here(name, *POLITE)
    assert main(["init", "polite", f"--log={name}", "--folder=project", "--rubric=polite"]) == 0
    printed = capsys.readouterr().out
    assert "t\\x1b[2J\\u202e.jsonl" in printed
    assert all(line.isprintable() for line in printed.splitlines())


def test_what_is_left_out_and_what_is_next_is_said(capsys: Capsys) -> None:
    name = write("t.csv", f"id,text\na,{'So. ' * 40_000}\nb,\nc,d\nc,d\n")
    label_here(name, *POLITE, "--reviewer=ann")
    said = capsys.readouterr().out
    assert said.startswith(
        "left out 1 case without a text\nleft out 1 row with the case and text of an earlier row\n"
        "t.csv: you are asked to label 2 of 2 cases; 0 of these are done\n"
    )
    assert said.endswith(
        " cases. Next: python -m pytest_jrh init NAME --log t.csv --labels labels.csv --rubric "
        "'polite: The answer is polite.'\nor, to check a column of verdicts: python -m pytest_jrh "
        "check t.csv --labels labels.csv --verdict COL\n"
    )
    label_here(write("t.jsonl", RUN), *POLITE)
    command = "python -m pytest_jrh init NAME --log t.jsonl --labels labels.csv"
    said = capsys.readouterr().out
    assert "labels.csv has 1 label for these cases. Next: " in said
    assert said.endswith(f"Next: {command} --rubric 'polite: The answer is polite.'\n")
    assert main(["label", "no.csv", *POLITE]) == 4
    assert "no.csv: no such file" in capsys.readouterr().err


def test_files_and_results_that_are_left_out_are_named(capsys: Capsys) -> None:
    Path("runs").mkdir()
    for name, text in {"a.jsonl": RUN, "cut.jsonl": RUN[:-20], "bad.eval": "no archive"}.items():
        write(f"runs/{name}", text)
    label_here("runs", *POLITE)
    said = capsys.readouterr().out
    assert "left out 2 files that cannot be used: bad.eval" in said
    assert "cut.jsonl" in said
    label_here(write("p.json", json.dumps(promptfoo([(True, None), (None, None)]))))
    assert "Some of promptfoo's results are not used: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (
            "Nr;Frage;Antwort;Urteil\n7;Wo ist denn mein Paket?;Es ist noch nicht da.;gut\n"
            "8;Wo ist denn mein Paket?;Es kommt erst am Freitag.;gut\n",
            "--case Nr --text Frage --text Antwort --rubric 'ID: TEXT'",
        ),
        ("id,rubric,answer 1\na,polite,Yes this is a text.\n", "--case id --text 'answer 1'"),
        ("id,prompt,response_a,response_b\nz,b,c,d\n", "--case id --rubric 'ID: TEXT'"),
    ],
)
def test_the_command_that_check_names_runs(capsys: Capsys, text: str, options: str) -> None:
    write("my cases.csv", text)
    assert main(["check", "my cases.csv"]) == 4
    _, _, command = capsys.readouterr().err.rstrip().partition("python -m pytest_jrh label ")
    assert command == f"'my cases.csv' {options}"
    shown = label_here(*shlex.split(command), labels={"z": code_of("first")})
    assert len(shown) == text.count("\n") - 1


def test_a_sample_is_the_same_again_and_says_that_it_was_drawn() -> None:
    drawn = {case.spec.run_id for case in label_here(table(40), *POLITE, "--sample=8")}
    assert len(drawn) == 8
    # The second person has the same, also when cases have come to the table.
    again = label_here(table(50), *POLITE, "--sample=8", name="ben")
    assert {case.spec.run_id for case in again} == drawn
    # What is labelled once more without a sample stays drawn.
    label_here(table(40), *POLITE, name="ben")
    rows = Counter((row["annotator"], row["split"]) for row in kept() if row["case_id"] in drawn)
    assert rows == {("ann", "drawn"): 8, ("ben", "drawn"): 8}


def test_verdicts_that_are_no_answers_to_what_is_asked_are_said_at_once(capsys: Capsys) -> None:
    rows = [f"c{number},Text {number}.,{word}" for number, word in enumerate(["b", "a", "tie"] * 2)]
    name = write("t.csv", "\n".join(["id,text,verdict", *rows]))
    label_here(name, *POLITE, "--sample=6", "--by=verdict")
    said = 'The verdicts in "verdict" are b, a, tie, but people answer satisfied, violated: '
    assert capsys.readouterr().out.startswith(said)
    write("r.yml", "- {id: polite, instructions: Who?, classes: {a: one, b: other, tie: none}}")
    to_b = dict.fromkeys([f"c{number}" for number in range(6)], code_of("b"))
    label_here(name, "--rubric=r.yml", "--out=r.csv", labels=to_b)
    assert "The verdicts of" not in capsys.readouterr().out


def test_a_column_that_was_drawn_by_is_named_for_check(capsys: Capsys) -> None:
    rows = [f"c{at},So {at}.,{('pass', 'fail')[at % 2]},k{at % 2}" for at in range(8)]
    name = write("t.csv", "\n".join(["id,text,judge_polite,kind", *rows, "c8,So 8.,,k0"]))
    for by, more in (("judge_polite", " --verdict judge_polite"), ("kind", " --verdict COL")):
        label_here(name, *POLITE, "--sample=4", f"--by={by}", f"--out={by}.csv")
        printed = capsys.readouterr().out
        left_out = 'not drawn: 1 case without "judge_polite"\n'
        assert printed.count(left_out) == (by == "judge_polite")
        assert "t.csv: you are asked to label 4 of 9 cases; 0 of these are done" in printed
        command = printed.splitlines()[-1].partition(" pytest_jrh ")[2]
        assert command == f"check t.csv --labels {by}.csv{more}"
    assert main(["check", name, "--labels=judge_polite.csv", "--verdict=judge_polite"]) == 0


def test_labels_with_a_weight_and_without_one_are_not_in_one_file(capsys: Capsys) -> None:
    name, by = table(20), ("--sample=8", "--by=verdict")
    label_here(name, *POLITE, "--sample=8")
    assert main(["label", name, *POLITE, *by]) == 4
    said = "the labels in the file have no weights, but new labels would have weights\n"
    assert said in capsys.readouterr().err
    for person in ("ann", "ben"):
        label_here(name, *POLITE, *by, "--out=by.csv", name=person)
    assert main(["label", name, *POLITE, "--sample=8", "--out=by.csv"]) == 4
    assert "file have weights, but new labels would have no weights" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv"])
def test_each_case_is_itself_whatever_its_id_and_its_words(name: str) -> None:
    """What is written is what is read again: nothing is asked twice, or lands under another id."""
    rows = [{"id": id_, "text": "same", "verdict": "violated"} for id_ in IDS]
    write("t.jsonl", as_text(rows))
    # A quote before a sign is part of the cell, unless the file is ours.
    with Path("t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[*rows[0]], *(row.values() for row in rows)])
    labels = {id_: index % 2 for index, id_ in enumerate(IDS)}
    asked = label_here(name, *POLITE, labels=labels)
    assert len(asked) == len(kept()) == len(labels)
    assert label_here(name, *POLITE, again=False) == []
    # A spreadsheet takes none for a formula.
    assert {"'=1+1", "'@", "'\uff1d", "''=", "'''@", "-5"} <= {row["case_id"] for row in kept()}
    results = check_table(name, labels="labels.csv").results
    assert {result.run_id: result.label for result in results} == labels


def test_a_label_of_an_older_file_is_of_the_same_case() -> None:
    """There a sign had a quote before it, which nothing took away again."""
    write("t.jsonl", as_text([{"id": "=1", "text": "same", "verdict": "violated"}]))
    [case] = label_here("t.jsonl", *POLITE)
    assert LabelTable(Path("new.csv"), [case], "").case_of(LabelRow("'=1")) == case
    Path("old.csv").write_text("case_id,label\n'=1,violated\n", "utf-8")
    [result] = check_table("t.jsonl", labels="old.csv").results
    assert (result.run_id, result.label) == ("=1", 1)


def test_a_note_is_read_as_it_was_written() -> None:
    [case] = label_here(table(1), *POLITE)
    labels = LabelTable(Path("labels.csv"), [case], "")
    for number, note in enumerate(NOTES):
        said = PersonLabel(case_digest(case), f"=ann {number}", 0, blind=True, note=note)
        labels.write(case, said)
    first, *others = labels.rows()
    assert [row.note for row in others] == [documents.as_text(note) for note in NOTES]
    assert [row.annotator for row in others] == [f"=ann {number}" for number in range(len(NOTES))]
    assert {row.digest for row in others} == {first.digest}


def test_another_question_or_another_text_has_labels_of_its_own() -> None:
    """In one file and under one id: what is said of one of them is said of no other."""
    name = table(2)
    asked = (POLITE, ("--rubric", "polite: Is it kind?"), ("--rubric", "Is it short?"))
    for number, rubric in enumerate(asked, 1):
        assert len(label_here(name, *rubric, labels={"c0": 0}, again=False)) == 2
        assert len(kept()) == 2 * number
        assert label_here(name, *rubric, again=False) == []
    # Where its lines are broken makes no other question.
    write("polite.txt", "polite: The answer\n  is polite.\n")
    assert label_here(name, "--rubric", "polite.txt", again=False) == []
    edit(name, "answer", "another")
    assert len(label_here(name, *POLITE, again=False)) == 2
    for run in (RUN, RUN.replace("Yes.", "No.")):
        assert len(label_here(write("t.jsonl", run), *POLITE, again=False)) == 1
    assert len(kept()) == 10


def test_disagreements_are_settled_and_count_in_no_agreement(capsys: Capsys) -> None:
    """On 4 of 8 cases, of which one has another text since: the rest is settled, by one of the two
    as well, and both votes stay."""
    name = table(8)
    label_here(name, *POLITE)
    label_here(name, *POLITE, name="ben", labels={f"c{number}": 0 for number in range(4)})
    edit(name, "answer 3", "another")
    blind = kept()
    settle = (name, *POLITE, "--disagreements=labels.csv")
    cases = label_here(*settle, labels={"c0": 0})
    assert sorted(case.spec.run_id for case in cases) == ["c0", "c1", "c2"]
    said = capsys.readouterr().out
    assert "people disagree on 1 case (c3) whose text or rubric is different in cases.csv" in said
    assert "label 3 of 3 cases" in said
    # The table's verdicts are known by their name.
    assert said.endswith("Next: python -m pytest_jrh check cases.csv --labels labels.csv\n")
    settled = [row for row in kept() if row["split"] == "settled"]
    assert [row["case_id"] for row in settled] == [case.spec.run_id for case in cases]
    assert {row["annotator"] for row in settled} == {"ann"}
    assert [row for row in kept() if row not in settled] == blind
    # Who settles a case again settles it for all, and who comes later has nothing to settle.
    assert label_here(*settle, name="cy", again=False) == []
    label_here(*settle, labels={"c2": 0})
    assert len(kept()) == len(blind) + 3
    # Blind, it is no label of ann's.
    assert {row["label"] for row in blind if row["annotator"] == "ann"} == {"violated"}
    assert label_here(name, *POLITE, again=False)[0].spec.run_id == "c3"


def test_only_what_has_no_label_is_shown_and_all_or_a_share_to_everybody(capsys: Capsys) -> None:
    rows = [f"c{n},answer {n},{'x' * (n % 2)}" for n in range(20)]
    write("cases.csv", "\n".join(["id,answer,said", *rows]))
    write("known.csv", "case_id,annotator,label,more\nc0,ann,violated,1\n")
    shown = label_here("cases.csv", *POLITE, "--label=said", "--labels=known.csv")
    assert sorted(case.spec.run_id for case in shown) == sorted(f"c{n}" for n in range(2, 20, 2))
    Path("labels.csv").unlink()
    for name, number in (("ann", 20), ("ben", 6)):
        assert len(label_here("cases.csv", *POLITE, "--overlap=0.3", name=name)) == number
    assert "people agree on 6 of 6 cases that several people labelled\n" in capsys.readouterr().out
    assert main(["label", "cases.csv", *POLITE, "--overlap=3"]) == 4
    assert main(["label", "cases.csv", *POLITE, "--labels=labels.csv"]) == 4
    assert "a label for every text" in capsys.readouterr().err


def test_people_disagree_where_no_rubric_is_named_too() -> None:
    rows = "c0,ann,violated,\nc0,ben,satisfied,why\nc1,ann,1,\n"
    write("labels.csv", f"case_id,annotator,label,note\n{rows}")
    [case] = label_here(table(3), *POLITE, "--disagreements=labels.csv", name="cy")
    assert case.spec.run_id == "c0"
    assert [row["label"] for row in kept()] == ["violated", "satisfied", "1", "violated"]


def test_labels_of_ones_own_without_a_rubric_are_of_the_one_that_the_command_writes() -> None:
    own = "id;annotator;label\nc0;ann;1\nc0;ben;0\nc1;ann;1\nc2;ben;0\n"
    write("labels.csv", own)
    label_here(table(4), "--rubric=polite: Be polite.", "--disagreements=labels.csv", name="cy")
    assert labels_of("cases.csv") == [1, 1, 0, None]
    assert {row["rubric_id"] for row in kept()} == {"polite"}
    # Beside those of a second rubric they stay what they were.
    label_here("cases.csv", "--rubric=short: Be short.", "--out=labels.csv")
    assert [row["rubric_id"] for row in kept()].count("polite") == 5
    write("labels.csv", own)
    label_here("cases.csv", "--rubric=polite: Be polite.", "--out=labels.csv", name="dan")
    assert labels_of("cases.csv") == [1, 1, None, 1]
    # As other files have it, and beside verdicts that name the rubric, too.
    write("labels.csv", "case_id,rubric_id,label\nc0,,1\nc1,r,0\nc2,,1\n")
    assert labels_of("cases.csv") == [1, 0, 1, None]
    write("named.csv", "id,rubric,verdict\nc0,r,1\nc1,r,1\nc2,,0\n")
    assert labels_of("named.csv") == [1, 0, 1]
    # Where a digest says what was asked, it is another question.
    write("labels.csv", "case_id,rubric_id,label,rubric_digest\nc0,,1,x\nc1,r,0,y\n")
    assert labels_of("cases.csv") == [1, None, None, None]
    # A weight is of the same case; a row without an id is of none.
    write("labels.csv", "case_id,rubric_id,label,weight\nc0,,1,1\nc1,r,0,2\n,r,1,1\n")
    assert labels_of("cases.csv") == [1, 0, None, None]


@pytest.mark.parametrize(
    ("labels", "file", "said"),
    [
        ("id,annotator,label\nc0,ann,1\nc0,ben,1\n", "", "cases.csv has labels that differ"),
        ("id,annotator,label\nc9,ann,1\nc9,ben,0\n", "", "people disagree on 1 case (c9)"),
        ("id,annotator,label\nc0,ann,1\nc0,ben,0\n", "no.csv", "no such file"),
        ("id,annotator,label\nc0,ann,1\nc0,ben,0\n", "l.txt", "end in .csv"),
        ("id,annotator,label,mood\nc0,ann,1,\n", "", 'labels does not have: "mood"'),
        ("id,annotator,label\nc0,ann,Violated\nc0,ben,violated\n", "", "labels that differ"),
    ],
)
def test_what_is_not_settled_is_said(capsys: Capsys, labels: str, file: str, said: str) -> None:
    write("labels.csv", labels)
    assert main(["label", table(1), *POLITE, f"--disagreements={file or 'labels.csv'}"]) == 4
    assert said in capsys.readouterr().err
    assert Path("labels.csv").read_text("utf-8") == labels


def test_check_takes_labels_of_one_wording_alone() -> None:
    name = table(2)
    for rubric in ("polite: Is it kind?", "polite: Is it polite?"):
        label_here(name, "--rubric", rubric)
    with pytest.raises(InputError, match='2 wordings of the rubric "polite"'):
        labels_of(name)
    lines = Path("labels.csv").read_text("utf-8").splitlines(keepends=True)
    write("second.csv", "".join([lines[0], *lines[3:]]))
    checked = check_table(name, labels="second.csv", one="violated")
    assert [result.label for result in checked.results] == [1, 1]
    # A table that says what was asked chooses.
    rows = ["id,rubric_id,rubric_text,verdict", *(f"c{n},polite,Is it kind?,1" for n in range(2))]
    checked = check_table(write("t.csv", "\n".join(rows)), labels="labels.csv", one="violated")
    said = "Not used: 2 labels, because the rubric had another wording. The cases are c0, c1."
    assert [*checked.table.notices] == [said]


def test_a_run_whose_name_several_files_have_is_named_with_its_file() -> None:
    Path("runs").mkdir()
    for name in ("x", "y"):
        write(f"runs/{name}.jsonl", RUN.replace("Yes.", name))
    label_here("runs", *POLITE)
    assert sorted(row["case_id"] for row in kept()) == ["a@x", "a@y"]


def test_a_killed_command_loses_nothing_and_the_next_goes_on() -> None:
    here = partial(labelling_session, Path(), "label", table(5), *POLITE, module="pytest_jrh")
    with here() as (process, url), let_in(url) as ann:
        for row, label in zip(ann.rows, (1, 0, None), strict=False):
            assert ann.give(row["key"], label, note="a note").status_code == 200
        process.kill()
        process.wait()
    assert sorted(row["label"] for row in kept()) == ["cannot tell", "satisfied", "violated"]
    assert {row["note"] for row in kept()} == {"a note"}
    with here() as (_, url), let_in(url) as ann:
        assert sorted(row["value"] for row in ann.rows) == ["", "", "0", "1", "none"]
        # What is taken back is in the file no more.
        for left, value in enumerate(("none", "0", "1")):
            assert len(kept()) == 3 - left
            row = next(row for row in ann.rows if row["value"] == value)
            assert ann.give(row["key"], None, withdrawn=True).status_code == 200
        assert not Path("labels.csv").exists()


def test_a_command_that_is_stopped_twice_ends_without_a_traceback(capsys: Capsys) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    def serve(page: Page) -> Any:
        assert isinstance(page.board, LabelBoard)
        patch.object(page.board.finalized, "wait", stop).start()
        return SimpleNamespace(url="http://127.0.0.1/", stop=stop)

    with patch.object(label, "serve", serve):
        assert main(["label", table(5), *POLITE]) == 130
    assert "label 5 of 5 cases" in capsys.readouterr().out


def test_no_label_is_lost_where_several_commands_write() -> None:
    cases, names = label_here(table(25), *POLITE), ["ben", "cay", "dan"]

    def label_all(name: str) -> None:
        labels = LabelTable(Path("labels.csv"), cases, "")
        for case in cases:
            labels.write(case, PersonLabel(case_digest(case), name, 0, blind=True))

    with ThreadPoolExecutor() as pool:
        list(pool.map(label_all, names))
    assert Counter(row["annotator"] for row in kept()) == dict.fromkeys(["ann", *names], 25)


def test_a_label_counts_for_each_epoch_and_beside_verdicts_without_text() -> None:
    write("t.csv", "case_id,id,epoch,text,verdict\na,1,1,b,1\na,2,2,c,1\n")
    label_here("t.csv", *POLITE, "--case=case_id")
    write("v.csv", "case_id,epoch,verdict\na,1,1\na,2,1\n")
    assert labels_of("t.csv", cluster="id") == labels_of("v.csv") == [1, 1]
    write("t.csv", "case_id,epoch,text,verdict\na,1,d,1\na,2,e,1\n")
    with pytest.raises(InputError, match=r"label t\.csv --out labels\.csv"):
        labels_of("t.csv")


def test_a_label_is_of_the_text_that_was_labelled() -> None:
    """Of a judge's next run with new answers no label of the earlier ones is taken."""
    document = promptfoo([(True, None)] * 3)
    write("r.json", json.dumps(document))
    label_here("r.json")
    document["results"]["results"][0]["response"]["output"] = "Read the manual."
    write("r.json", json.dumps(document))
    checked = check_table("r.json", labels="labels.csv")
    labels = {result.run_id: result.label for result in checked.results}
    assert labels == {"test 1": None, "test 2": 1, "test 3": 1}
    assert "Not used: 1 label, because the text has changed " in str(checked.table.notices)
    [case] = label_here("r.json", labels={"test 1": 0}, again=False)
    assert case.spec.run_id == "test 1"
    of_both = [row["label"] for row in kept() if row["case_id"] == "test 1"]
    assert of_both == ["violated", "satisfied"]
    assert check_table("r.json", labels="labels.csv").results[0].label == 0


def test_labels_of_no_run_begin_no_suite(capsys: Capsys) -> None:
    runs = write("runs.jsonl", as_text([{"id": f"r{n}", "messages": TURNS} for n in range(3)]))
    write("given.csv", "run_id,label\nrun0,pass\nrun1,fail\n")
    command = ["init", "s", f"--log={runs}", "--folder=project", "--labels=given.csv"]
    command.append("--rubric=polite: Kind.")
    assert main(command) == 4
    said = capsys.readouterr().err
    assert 'given.csv:2: run_id: no case has the id "run0"; the ids are "r0"' in said
    assert '"r0" is the nearest id' in said
    assert 'given.csv:3: run_id: no case has the id "run1"' in said
    assert not Path("project").exists()
    write("given.csv", "run_id,label\nr0,pass\nr2,fail\n")
    assert main(command) == 0
