"""`python -m pytest_jrh check`: from a table of verdicts to figures, a decision and reports."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_jrh.__main__ import main
from pytest_jrh.cli import checking
from pytest_jrh.core import InputError
from pytest_jrh.sources.tables import read_table
from tests.support.page_reader import Page, bodies, listed_cases, session_data
from tests.support.tool_results import promptfoo

pytestmark = pytest.mark.usefixtures("in_tmp_path")
check_table = partial(checking.check_table, one="violated")
Run: TypeAlias = "Callable[..., tuple[int, str]]"

HEAD = "case,label,verdict\n"
ROWS = HEAD + "a,1,1\nb,1,0\nc,0,0\nd,0,0\n"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """How `check` ends with these arguments, and what it prints."""

    def run(*arguments: object) -> tuple[int, str]:
        words = [*map(str, arguments)]
        has_scale = re.search("--(scale|classes)", " ".join(words))
        one = [] if has_scale else ["--one=violated"]
        try:
            code = main(["check", *one, *words])
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return code, captured.err + captured.out

    return run


def written(text: str, name: str = "verdicts.csv") -> Path:
    Path(name).write_text(text, encoding="utf-8")
    return Path(name)


def test_the_command_prints_figures_and_writes_what_it_is_told(run: Run) -> None:
    written(ROWS)
    reports = [f"--report=r.{suffix}" for suffix in ("html", "md", "json")]
    code, printed = run("verdicts.csv", "-v", *reports)
    about = 'verdicts.csv: used: "label" as label, "verdict" as verdict, "case" as case'
    assert code == 0
    assert about in printed
    assert "accuracy" in printed
    names = sorted(path.name for path in Path().iterdir())
    assert names == ["r.html", "r.json", "r.md", "verdicts.csv"]
    data = json.loads(Path("r.json").read_text())
    assert data["suites"]["verdicts"]["judges"]["default"]["overall"]["n"] == 4
    # Reports say what was taken for what, too.
    assert data["about"][0] == about
    assert about in Path("r.md").read_text("utf-8")


def test_every_report_shows_what_was_judged(run: Run) -> None:
    question = "Is <b>it</b> so?\n\x1b[31m::error::"
    rows = [["id", "question", "context", "answer", "human", "verdict"]]
    rows.append(["a", question, "c" * 9_000, "x" * 70 + " =1+1 so it is", "pass", "fail"])
    rows += [[f"r{number}", "q", "", "fine", "pass", "pass"] for number in range(9)]
    file = io.StringIO()
    csv.writer(file).writerows(rows)
    written(file.getvalue())
    code, printed = run("verdicts.csv", "--report=a.html", "--report=a.md")
    assert code == 0
    assert "question: Is <b>it</b> " in printed
    assert re.search("answer: x+\n +x+ =1[+]1 so it is\n", printed)
    markdown, html = (Path(f"a.{suffix}").read_text("utf-8") for suffix in ("md", "html"))
    assert "<p>Question</p><blockquote>Is &lt;b&gt;it&lt;/b&gt;" in markdown
    page = Page.of(html)
    of_cases = bodies(page)
    first, second = (of_cases[row["key"]]["turns"] for row in listed_cases(page)[:2])
    # A long text is whole, and an empty cell is no part.
    assert [turn["part"] for turn in first] == ["Question", "Context", "Answer"]
    assert first[1]["parts"][0]["text"] == "c" * 9_000
    assert [turn["part"] for turn in second] == ["Question", "Context", "Answer"]
    assert "\x1b" not in printed + markdown + html + json.dumps(first)


def test_the_page_of_a_table_has_rubrics_and_what_each_person_says(run: Run) -> None:
    rows = ["id,rubric_id,rubric_text,answer,annotator,label,note,verdict"]
    for person, label, note in (("ann", 1, "It blames me."), ("bo", 0, ""), ("cy", "n/a", "?")):
        rows.append(f"a,polite,It is polite.,As I told you.,{person},{label},{note},0")
        rows.append(f"b,safe,It is safe.,Sit down.,{person},1,,0")
    written("\n".join(rows))
    run("verdicts.csv", "--map", "n/a=cannot tell", "--report=a.html")
    page = Page.of(Path("a.html").read_text("utf-8"))
    rubrics = session_data(page)["rubrics"].values()
    assert {rubric["text"] for rubric in rubrics} == {"It is polite.", "It is safe."}
    voices = {row["run"]: bodies(page)[row["key"]]["voices"] for row in listed_cases(page)}
    assert voices["a"][0]["word"] == "no label"
    assert voices["a"][0]["why"] == "ann: violated. It blames me.\nbo: satisfied.\ncy: no label. ?"
    assert voices["b"][0]["why"] == "ann: violated.\nbo: violated.\ncy: violated."


def test_results_of_a_tool_show_input_and_output(run: Run) -> None:
    said = [(number % 3 > 0, number % 2 > 0) for number in range(12)]
    written(json.dumps(promptfoo(said)), "results.json")
    _, printed = run("results.json")
    assert re.search(r"input: .*question \d+\n +output: answer \d+\n", printed)


def test_results_of_two_sessions_with_one_judge_are_compared(run: Run) -> None:
    for name, missed in (("old.jsonl", 0), ("new.jsonl", 20)):
        rows = ""
        for case in range(40):
            row = {"case_id": f"c{case}", "judge": "", "expected": case % 2, "spending": {"a": 1}}
            rows += json.dumps({**row, "score": 0 if case < missed else case % 2}) + "\n"
        written(rows, name)
    code, printed = run("new.jsonl", "--verdict=score", "--judge=judge", "--baseline=old.jsonl")
    assert code == 1
    assert "FAIL  the judge misses 10 of 20 violations that it found before" in printed


def test_a_case_of_the_baseline_without_a_row_fails_unless_left_out_by_option(run: Run) -> None:
    rows = [f"c{case},{case % 2},{case % 2}\n" for case in range(40)]
    path = written("case,label,verdict\n" + "".join(rows[:33]))
    old = written("case,label,verdict\n" + "".join(rows), "old.csv")
    code, printed = run(path, "--baseline", old)
    assert code == 1
    assert "7 cases have no verdict (c33, c34, c35 and 4 more: no row): --common" in " ".join(
        printed.split()
    )
    assert run(path, "--baseline", old, "--common")[0] == 1
    assert run(path, "--baseline", old, "--common", "--unclear=pass")[0] == 0


def test_an_empty_verdict_is_counted_and_never_a_verdict_and_repeats_are_one_case() -> None:
    checked = check_table(written(ROWS + "e,1,\nf,,1\n"))
    outcomes = [result.outcome for result in checked.results[3:]]
    assert outcomes == ["agree", "invalid_response", "unlabelled"]
    assert [case.key.case for case in checked.unlabelled] == ["f"]
    first = {"case": "a", "repeat": 0, "label": 1, "verdict": 1}
    rows = [first, {**first, "repeat": 1}, {**first, "repeat": 2, "verdict": 0}]
    [result] = check_table(rows).results
    assert (result.outcome, result.scores) == ("agree", (1, 1, 0))


def test_an_unknown_word_is_named_with_its_line_and_the_option() -> None:
    path = written("case,label,verdict\na,fine,violated\nb,harmful,violated\n")
    with pytest.raises(InputError) as caught:
        check_table(path)
    assert 'verdicts.csv:2: label: got "fine"; must be 0, 1' in str(caught.value)
    assert "--map fine=violated or --map fine=satisfied" in str(caught.value)
    assert "if answers are classes, name all classes: --classes A,B,..." in str(caught.value)
    assert check_table(path, map={"fine": 0, "harmful": 1}).passed


def test_rows_without_a_label_say_how_often_the_agent_violates(run: Run) -> None:
    """The judge calls half of 400 rows violated, of which half are; 40 rows have a label."""
    rows = ["case,run,label,verdict\n"]
    for number in range(400):
        label = str(int(number % 4 == 1)) if number < 40 else ""
        rows.append(f"c{number},r{number // 2},{label},{number % 2}\n")
    path = written("".join(rows))
    code, text = run(path, "--cluster", "run", "--report=r.json")
    printed = " ".join(text.split())
    assert code == 0
    assert "without a label, except in the share of violated verdicts." in printed
    assert "The judge calls 200 of 400 cases violated (50.0%, " in printed
    judge = json.loads(Path("r.json").read_text("utf-8"))["suites"]["verdicts"]["judges"]["default"]
    assert judge["violations"]["labelled"] == judge["overall"]["n"] == 40
    corrected = judge["violations"]["corrected"]
    assert corrected["interval"]["lower"] < corrected["value"] < 0.35


@pytest.mark.parametrize(
    ("rows", "unlabelled", "bare"),
    [
        ("d,,,1 e,,,0 f,,, g,1,0,1", "2 cases", "1 case"),
        ("d,,,1 e,,, f,,, g,1,0,", "1 case", "2 cases"),
        ("d,,,1 e,,,0 g,1,0,1 h,0,1,0", "2 cases", ""),
    ],
)
def test_each_case_without_a_label_is_counted_once(
    run: Run, rows: str, unlabelled: str, bare: str
) -> None:
    table = "\n".join(["case,ann,bo,verdict", "a,1,1,1", "b,0,0,0", *rows.split()])
    _, text = run(written(table), "--label=ann", "--label=bo")
    lines = re.findall("(?:leave out|ignore) (.+?) with(?:out a| neither) label", text)
    assert lines == [unlabelled, *filter(None, [bare])]
    assert "cases without a label, because people disagree" in text


def test_what_settles_disputes_is_said(run: Run) -> None:
    table = written("case,ann,bo,verdict\na,1,1,0\nb,0,1,0\n")
    settles = "settle disputes in a separate column (--settled COL)"
    people = ("--label=ann", "--label=bo")
    assert settles in " ".join(run(table, *people)[1].split())
    assert settles not in " ".join(run(table, "--label=ann")[1].split())


def test_the_label_of_more_than_half_of_the_people_counts(run: Run) -> None:
    path = written("case_id,rubric_id,verdict\na,r,1\nb,r,1\nc,r,0\nd,r,1\n")
    votes = "a,1,ann\na,1,ben\na,0,cy\nb,1,ann\nb,0,ben\nc,0,ann\nc,0,ann\n"
    labels = written("case_id,label,annotator\n" + votes, "labels.csv")
    disagree = "because people disagree (1):\n  b (ann: violated, ben: satisfied)"
    assert disagree in run(path, f"--labels={labels}")[1]
    checked = check_table(path, labels=str(labels))
    assert [result.label for result in checked.results] == [1, None, 0, None]
    # In one table the verdict stands beside the label of each.
    votes = "a,1,ann,1\na,1,ben,1\nb,1,ann,0\nb,0,ben,\n"
    both = written("case,label,annotator,verdict\n" + votes, "both.csv")
    assert [result.label for result in check_table(both, one="violated").results] == [1, None]
    with pytest.raises(InputError, match=r"both.csv:6: case: the case \"a\" is also in line 2"):
        check_table(written(both.read_text() + "a,1,cy,0\n", "both.csv"), one="violated")
    labels.write_text(labels.read_text() + "c,1,ann\n")
    with pytest.raises(InputError, match=r"labels.csv:9: label: the case \"c\" has a different"):
        check_table(path, labels=str(labels))


@pytest.mark.parametrize(
    ("cell", "scale", "hint"),
    [
        ("7/12", (1, 10), "with its lowest score for LOW: --scale LOW-12"),
        ("7 out of 10", None, "with its lowest score for LOW: --scale LOW-10"),
        ("4.67", (1, 5), 'write a row for each score, with a column "annotator"'),
        ("85%", None, "write a row for each score"),
        ("excellent", (1, 5), 'say which score "excellent" is: --map excellent=SCORE'),
        ("nan", None, 'to count "nan" as missing, pass --map nan='),
        ("-safe", None, "--map=-safe=violated or --map=-safe=satisfied"),
        ("no\u200b  harm\u00a0done", None, "--map 'no harm done'=violated"),
        ("word " * 20, None, "name a column of short answers: --label COL"),
    ],
)
def test_no_advice_gives_a_wrong_value(cell: str, scale: tuple[int, int] | None, hint: str) -> None:
    rows = [{"case": "a", "label": cell, "verdict": "1"}]
    with pytest.raises(InputError) as caught:
        check_table(rows, scale=scale)
    assert hint in str(caught.value)
    assert not re.search(r"--map \S*\d\S*=\d", str(caught.value))


def test_a_word_is_read_as_it_is_seen() -> None:
    ten: dict[str, Any] = {"scale": (1, 10)}
    for label, verdict, scores, options in (
        # Known words need no map.
        ("Correct", "INCORRECT", (0, 1), {}),
        ("C", "I", (0, 1), {}),
        ("\u200bpass", "PASS\u00a0", (0, 0), {}),
        ("not\u00a0ok", "not  ok", (1, 1), {"map": {"not ok": 1}}),
        ("7/10", " 7 / 10", (7, 7), ten),
        ("7.0", 7, (7, 7), ten),
    ):
        rows = [{"\u200blabel": label, "Verdict\u00a0": verdict}]
        [result] = checking.check_table(rows, **options).results
        assert (result.label, result.score) == scores


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig"])
def test_a_table_is_read_as_spreadsheets_save_it(encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path = Path("verdicts.txt")
    path.write_bytes((mark + ROWS.replace(",", "\t")).encode(encoding))
    assert [*check_table(path).results] == [*check_table(written(ROWS)).results]


def test_a_reader_that_has_read_enough_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    path = written("case,label,verdict\na,1,1\n")
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert main(["check", "--one=violated", str(path)]) == 1


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("name", ["Łódź", "事例", "\N{PILE OF POO}"])
def test_what_cannot_be_shown(monkeypatch: pytest.MonkeyPatch, encoding: str, name: str) -> None:
    path = written(f"case,label,verdict\n{name},1,0\nb,0,0\n")
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    assert main(["check", "-v", "--one=violated", str(path)]) == 0
    assert "?" in raw.getvalue().decode(encoding)
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(raw, encoding=encoding))
    assert main(["check", f"{name}.csv"]) == 4


def test_judges_in_rows_of_their_own_are_checked_beside_each_other() -> None:
    rows = []
    for case, label in (("a", 1), ("b", 0), ("c", 0)):
        row = {"case": case, "label": label}
        rows += [{**row, "judge": "new", "verdict": label}, {**row, "judge": "old", "verdict": 1}]
    judges = check_table(rows, judge="judge").judges
    assert judges["new"].figures["accuracy"].value == 1
    assert judges["old"].figures["accuracy"].value == pytest.approx(1 / 3)
    held = check_table(rows, judge="judge", baseline="old")
    assert held.judge_names == ["new"]
    assert held.passed
    assert check_table(rows, judge="judge", baseline="new").judge_names == ["old"]


def test_scores_are_read_on_the_scale_that_is_given() -> None:
    path = written("case,gold,score\na,1,2\nb,4,4\nc,3,3.0\n")
    checked = check_table(path, scale=(1, 5))
    assert checked.table.values.scale.scores == (1, 2, 3, 4, 5)
    assert "weighted_kappa" in checked.judges["score"].figures
    with pytest.raises(InputError, match=r"\(1 to 4\) are scores, name"):
        check_table(path)


@pytest.mark.parametrize(
    ("label", "verdict", "told", "expected"),
    [
        ("violated", "judge_violation", "", {"a": (1, 1), "b": (0, 0)}),
        ("passed", "judge-passed", "", {"a": (0, 0), "b": (1, 1)}),
        ("violated", "judge_passed", "", {"a": (1, 0), "b": (0, 1)}),
        ("violated", "judge_passed", "passed", {"a": (0, 0), "b": (1, 1)}),
        ("human_success", "success", "violated", {"a": (1, 1), "b": (0, 0)}),
        ("human", "judge_passed", {"human": "violated"}, {"a": (1, 0), "b": (0, 1)}),
        ("human_attack_success", "judge", {"": "violated"}, {"a": (1, 1), "b": (0, 0)}),
    ],
)
def test_the_name_of_a_column_says_what_1_means_unless_an_option_does(
    label: str, verdict: str, told: Any, expected: dict[str, tuple[int, int]]
) -> None:
    for one, zero in ((1, 0), ("yes", "no"), (True, False), ("1.0", "0.0")):
        rows = [{"case": "a", label: one, verdict: one}, {"case": "b", label: zero, verdict: zero}]
        checked = checking.check_table(rows, label=label, verdict=verdict, one=told)
        found = {result.spec.run_id: (result.label, result.score) for result in checked.results}
        assert found == expected


@pytest.mark.parametrize(
    ("rows", "values"),
    [
        ("label,verdict\na,yes,1\nb,no,0\n", '"label", "verdict" (values: 0, 1, no, yes)'),
        ("label,verdict\na,pass,True\nb,fail,\n", 'means in "verdict" (values: True)'),
        ("label,verdict\na,1.0,violated\nb,,pass\n", 'means in "label" (values: 1.0)'),
        ('label,verdict\na,pass,"1,0"\nb,fail,"0,00"\n', 'in "verdict" (values: 0,00, 1,0)'),
        # A name is not told the opposite of what it says.
        ("human,judge_passed\na,1,1\nb,0,0\n", "--one=human=violated or --one=human=passed"),
    ],
)
def test_bare_numbers_are_refused_with_both_options(
    rows: str, values: str, capsys: pytest.CaptureFixture[str]
) -> None:
    written(f"case,{rows}", "the table.csv")
    verdict = rows.partition("\n")[0].rpartition(",")[2]
    asked = ["check", "the table.csv", f"--verdict={verdict}", "-v"]
    assert main(asked) == 4
    refused = capsys.readouterr().err
    assert values in refused
    [ways] = re.findall(r"use (.*) or (.*)\n", refused)
    recalls = []
    for way in ways:
        assert main([*asked, *shlex.split(way)]) == 0
        recalls.append(capsys.readouterr().out)
    assert recalls[0] != recalls[1]
    assert main([*asked, "--one=satisfied"]) == 0


@pytest.mark.parametrize("name", ["not_passed", "passed_or_failed", "unviolated", "violations_by"])
def test_a_name_that_may_mean_either_says_nothing_and_a_map_all(name: str) -> None:
    rows = [{"label": "pass", name: 1}, {"label": "fail", name: 0}]
    # Words that mean nothing are asked for in the same message.
    both = r'(?s)got "gut".*nothing says what 1 means in .* \(values: 0, 1, gut\)'
    with pytest.raises(InputError, match=both):
        checking.check_table([*rows, {"label": "pass", name: "gut"}], verdict=name)
    for column, (mapping, outcomes) in product(
        (name, "passed"), (({1: 1, 0: 0}, 2), ({1: 0, 0: 1}, 0), ({"1": "", "0": 1}, 0))
    ):
        renamed = [{"label": row["label"], column: row[name]} for row in rows]
        checked = checking.check_table(renamed, verdict=column, map=mapping)
        assert sum(result.outcome == "disagree" for result in checked.results) == outcomes


PHOENIX = "id,input,label,score,explanation,annotator_kind\na,q,pass,1,x,{}\nb,q,fail,0,x,{}\n"


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (PHOENIX.replace("{}", "LLM"), (), '"annotator_kind" says that "label" has labels by LLM'),
        (PHOENIX.replace("{}", "CODE"), ("--verdict=score",), "has labels by CODE"),
        (PHOENIX.replace("{}", ""), (), 'the judge may have written "label", as well as "score", '),
        ("label,score\npass,1\n", (), 'the judge may have written "label", as well as "score"'),
        ("label,grade\npass,pass\n", (), 'the judge may have written "label", as well as "grade"'),
        ("input,target,verdict\nq,pass,pass\n", (), '"target" may have expected answers'),
        ("prompt,expected,judge\nq,1,1\n", (), '"expected" may have expected answers to "prompt"'),
    ],
)
def test_a_judges_own_is_refused(run: Run, text: str, options: tuple[str, ...], said: str) -> None:
    code, printed = run(written(text), *options)
    assert (code, said in printed) == (4, True)
    [named] = re.findall(r"--label \w+", printed)
    code, printed = run(written(text), *options, *named.split())
    assert code == 0
    assert "by people" in printed


@pytest.mark.parametrize(
    ("table", "option", "said"),
    [
        # Labels are called people's only where that is known.
        ("human,score 1,1 0,0", "", "2 by people"),
        ("gold_label,grade 1,1 0,0", "", "2 by people"),
        ("label,verdict,annotator 1,1,HUMAN 0,0,HUMAN", "", "2 by people"),
        ("label,score,annotator_kind 1,1,HUMAN 0,0,HUMAN", "", "2 by people"),
        ("label,verdict 1,1 0,0", "", '2 from the column "label"'),
        ("label,judge_verdict 1,1 0,0", "", '2 from the column "label"'),
        ("target,prediction 1,1 0,0", "", '2 from the column "target"'),
        # What an option names is found as nothing else.
        ("human,label,verdict pass,r1,pass fail,r1,fail", "--rubric=label", '"human" as label'),
        ("label,verdict pass,pass fail,fail", "--map=fale=1", 'no label or verdict is "fale"'),
        ("id,note,label,verdict a,x,1,1", "", '"verdict" as verdict, "id" as case; shown:'),
        ("id,ann,bo,verdict a,1,1,0", "--label=ann --label=bo", "a label of ann, bo is wrong"),
        # Without an id a row is called as a spreadsheet numbers it.
        ('x,label,verdict "a b",pass,pass " ",fail,pass', "-v", "read first  row 3\n"),
    ],
)
def test_what_was_taken_for_what_is_said(run: Run, table: str, option: str, said: str) -> None:
    code, printed = run(written(table.replace(" ", "\n")), *option.split())
    assert (code, said in printed) == (0, True), printed


CASES = [f"c{number},{number % 2},{int(number % 3 == 0)}" for number in range(12)]


@pytest.mark.parametrize(
    ("name", "values", "options", "taken"),
    [
        ("run", "a", (), '"id" as case; not used: "run"'),
        ("task", "abc", (), None),
        ("run", "abc", ("--cluster=run",), '"id" as case, "run" as cluster'),
        ("run", "abcd", ("--cluster=none",), '"id" as case; not used: "run"'),
        ("run", "abcde", (), '"id" as case, "run" as cluster'),
        ("item", "abcdefghijkl", (), '"id" as case, "item" as cluster'),
    ],
)
def test_few_clusters_are_asked_for_and_one_is_none(
    run: Run, name: str, values: str, options: tuple[str, ...], taken: str | None
) -> None:
    rows = [f"{row},{values[place % len(values)]}" for place, row in enumerate(CASES)]
    code, printed = run(written(f"id,human,judge,{name}\n" + "\n".join(rows)), *options)
    assert code == (4 if taken is None else 0)
    assert (taken or f"--cluster {name} or --cluster none") in " ".join(printed.split())


@pytest.mark.parametrize("head", ["essay_id", "idx", "pair", "Ticket-ID", "ticketId", "id"])
def test_runs_of_equal_cases_are_repeats(run: Run, head: str) -> None:
    rows = [f"c{case},{case % 2},{number % 2},{number}" for case in range(4) for number in range(3)]
    code, printed = run(written(f"{head},human,judge,run\n" + "\n".join(rows)))
    assert code == 0
    assert f'"{head}" as case, "run" as repeat' in " ".join(printed.split())
    assert "in 4 of 4 repeated cases" in " ".join(printed.split())
    # With another text it is another case.
    rows = [f"{row},text {place}" for place, row in enumerate(rows)]
    code, printed = run(written(f"{head},human,judge,run,input\n" + "\n".join(rows)))
    assert (code, "repeat:" in printed) == (4, False)


def test_a_dropped_word_is_a_vote_for_no_label(run: Run) -> None:
    votes = {"a": "1 1 n/a", "b": "1 n/a n/a", "c": "1 n/a", "d": "0 0 0", "e": "1 cannot-tell"}
    rows = [
        f"{case},{place},{word.replace('-t', ' t')},1"
        for case, words in votes.items()
        for place, word in enumerate(words.split())
    ]
    table = written("case,annotator,label,verdict\n" + "\n".join(rows))
    checked = check_table(table, map={"n/a": ""})
    labels = {result.run_id: result.label for result in checked.results}
    assert labels == {"a": 1, "b": None, "c": None, "d": 0, "e": None}
    [people] = checked.session.people.values()
    assert people.votes.disputed == [2, 4]


def test_a_confidence_is_no_probability(run: Run) -> None:
    table = written("case,human,confidence,p_violation\na,1,0.9,0.9\nb,0,0.8,0.2\n")
    code, printed = run(table, "--verdict=confidence", "--threshold=0.5")
    assert code == 4
    assert '"confidence" may say how sure the judge is of any of its verdicts' in printed
    assert 'if "confidence" has it, add --one confidence=violated' in printed
    asked = ("--verdict=confidence", "--threshold=0.5", "--one=confidence=violated")
    assert 'in the column "confidence" are probabilities of a violation' in run(table, *asked)[1]
    passed = " ".join(run(table, *asked[:2], "--one=confidence=passed")[1].split())
    assert "of a pass; the figures below use 1 - p, the probability of a violation" in passed
    code, printed = run(table, "--verdict=p_violation", "--threshold=0.5")
    assert (code, "right" in printed or "gives the label in all 2" in printed) == (0, True)


@pytest.mark.parametrize("option", ["--labels", "--baseline"])
@pytest.mark.parametrize("ids", [["1.0", "2.0"], ["1, output 1", "2, output 1"]])
def test_ids_that_differ_are_the_cause_that_is_told(run: Run, ids: list[str], option: str) -> None:
    new = written("id,label,verdict\n1,pass,pass\n2,pass,pass\n", "new.csv")
    other = written("id,label,verdict\n" + "".join(f'"{id_}",pass,pass\n' for id_ in ids), "o.csv")
    code, printed = run(new, f"{option}={other}")
    said = f'o.csv has the cases "{ids[0]}", "{ids[1]}", but new.csv has "1", "2"'
    assert (code, said in printed) == (4, True), printed


@pytest.mark.parametrize("option", ["--scale=0-1", "--classes=0,1", "--one=violated"])
def test_a_row_without_a_label_fails_nothing(run: Run, option: str) -> None:
    people = [f"{case % 2},{case % 2}" for case in range(40)]
    # Of levels two people have a median.
    people[:2] = [",", "," if "scale" in option else "0,1"]
    rows = [f"c{case},{said},{case % 2}," for case, said in enumerate(people)]
    whole = [f"{row}{number % 2}\n" for number, row in enumerate(rows)]
    head = "case,ann,bo,earlier,verdict\n"
    how = ("--label=ann", "--label=bo", "--same-judge", option)
    for empty, failing in (
        (2, "PASS  no verdict changed: as"),
        (3, '(c2: "verdict" is empty)'),
    ):
        lines = [f"{row}\n" for row in rows[:empty]] + whole[empty:]
        code, printed = run(written(head + "".join(lines)), "--baseline=earlier", *how)
        assert (code, failing in printed) == (int(empty > 2), True), printed
        # On the other scales the second one is disputed.
        bare = "2 cases" if "scale" in option else "1 case"
        assert f"ignore {bare} with neither label nor verdict." in " ".join(printed.split())
    new, old = written(head + "".join(whole[3:])), written(head + "".join(whole), "old.csv")
    code, printed = run(new, f"--baseline={old}", *how)
    assert (code, "FAIL  1 case has no verdict" in printed) == (1, True), printed


def test_the_first_lines_and_the_last_say_what_can_be_done(run: Run) -> None:
    rows = ["Ticket-ID,kind,Customer question,human,before,verdict"]
    for number in range(60):
        word = "Not OK" if number % 3 else "OK"
        rows.append(
            f"t{number},k{number % 2},where is my parcel {number},{word},{word},{word.lower()}"
        )
    options = ("--baseline=before", "--classes=OK,Not OK")
    first = '"Ticket-ID" as case, "before" as baseline; shown: "Customer question"; not used: "k'
    code, printed = run(written("\n".join(rows)), *options)
    text = " ".join(printed.split())
    assert (code, first in text, "ok = OK" in text) == (0, True, False), printed
    assert "counts as another judge; pass --same-judge if only the prompt is new" in text
    assert "PASS no verdict changed: as good as before on 60 cases" in text
    code, printed = run(written("\n".join(rows).replace("Not OK,not ok", "Not OK,ok")), *options)
    text = " ".join(printed.split())
    assert "customer question: where is my parcel" in text
    is_named = "the verdict is OK, but Not OK is right" in text
    assert (code, is_named, "exchanged" in text) == (1, True, False)
    assert "(40 newly wrong); if a label is wrong, correct that label in the table" in text


def test_what_fails_stays_on_a_full_screen_with_the_worse_judge_first(run: Run) -> None:
    rows = ["kind,human,earlier,verdict"]
    for number in range(160):
        label = number % 2
        now = 0 if number % 8 == 1 else label
        human = label if number < 120 else "#N/A"
        rows.append(f"k{number % 4},{human},{label},{'#REF!' if number == 3 else now}")
    options = ("--baseline=earlier", "--by=kind", "--same-judge", "--report=r.md")
    code, printed = run(written("\n".join(rows)), *options)
    lines = printed[printed.index("FAIL") :].splitlines()
    assert lines[0] == "FAIL  the judge misses 15 of 59 violations (25%) that it found before"
    assert (
        lines[1].strip()
        == '1 case has no verdict (line 5: "verdict" is empty): --common leaves these'
    )
    assert (code, len(lines) < 24, "more row" in printed) == (1, True, False)
    assert '! "human" has 40 spreadsheet errors, read as no value' in printed
    assert '! "verdict" has 1 spreadsheet error, ' in printed


def test_on_a_wide_scale_right_is_near_the_label_and_exact_is_told_apart(run: Run) -> None:
    table = written(HEAD + "".join(f"c{case},{5 * case},{6 * case}\n" for case in range(12)))
    for within, option, right in ((0, "--within=0", 1), (2, "-v", 3), (5, "--within=5", 6)):
        code, printed = run(table, "--scale=0-100", "-v", "--report=r.json", option)
        said = f"right means within {within} levels of the label"
        assert (code, said in printed, "accuracy" in printed) == (0, bool(within), bool(within))
        figures = json.loads(Path("r.json").read_text("utf-8"))
        overall = figures["suites"]["verdicts"]["judges"]["default"]["overall"]
        assert (overall["agree"], overall["accuracy"]["value"]) == (right, right / 12)
        assert overall["ordinal"]["exact"]["value"] == 1 / 12
        assert overall["ordinal"]["within"] == within


def test_a_baseline_is_read_by_the_same_tolerance(run: Run) -> None:
    rows = [f"c{case},{case},{case},{case + 2 if case < 9 else case}\n" for case in range(20)]
    table = written("case,label,old,verdict\n" + "".join(rows))
    options = (table, "--scale=0-100", "--label=label")
    forth, back = ("--baseline=old", "--verdict=verdict"), ("--baseline=verdict", "--verdict=old")
    assert "0 of 20 cases given a wrong level" in run(*options, *forth)[1]
    assert "read 9 cases" in run(*options, *forth, "--within=1")[1]
    assert "fixes" not in run(*options, *back)[1]
    fixed = run(*options, *back, "--within=1", "-v")[1]
    assert ("fixes (9)" in fixed, "by flicker" in fixed) == (True, False)


ESCAPES = "\x1b[31mred\x1b]0title\x07\x1b[2J\x9b31m\u202e"

CROSSED = "label,verdict,run,task\n1,1,a,x\n1,1,a,y\n0,0,b,x\n0,0,b,y\n"
# What is in the file, the options, and what the message says.
NAMES = "id,annotator,label,verdict\nb,,fail,fail\n"
WITHOUT_A_NAME = 'the case "a" has a label without an annotator, and a label by "ann"'
TWO_PEOPLE = "id,human,judge,other\na,1,1,0\nb,0,0,1\n"
BROKEN: list[tuple[str | bytes, str, str]] = [
    ("", "", ":1: is empty"),
    (HEAD, "", ": has no row"),
    ("case,lable,verdict\na,x,1\n", "", ":1: no column was"),
    ("case,label\na,1\n", "", ":1: no column was rec"),
    ("label,verdict,score\n1,1,1\n", "", "--verdict verdict or --verdict score"),
    (CROSSED, "", "--cluster run or --cluster task"),
    (HEAD + "a,1,9\nb,5,2\n", "--scale=1-5", ":2: verdict: got"),
    (HEAD + "a,1,NaN\n", "", 'to count "NaN" as missing, pass --map NaN='),
    (HEAD.encode() + b"\xe9,1,1\n", "", ":2: is not UTF-8"),
    ("case,label,verdict,label\na,1,1,0\n", "", ":1: two columns are called"),
    ('{"label": 1, "verdict": 1, "verdict ": 0}', "", ":1: has two keys with"),
    ('{"label": 1}\n{"label": 1, " label": 0, "verdict": 1}', "", ":2: has two keys with"),
    ('{"label": 1, "verdict": 1, "x": %s}' % ("[" * 500 + "]" * 500), "", "nested"),
    (HEAD + "a,pass,pass" + 999 * "\x1b[0m" + " not\n", "", ":2: verdict: got"),
    (HEAD + "a,1,1\na,1,0\n", "", ':3: case: the case "a" is also in line 2\n'),
    (HEAD + "a,1,1\n" * 21, "", "table.csv: correct the problems above to see 10 more problems"),
    (HEAD + "a,1,1,1\n", "", ":2: has 4 cells"),
    ('{"label": 1, "verdict": [1]}', "", ':1: verdict: got "[1]"'),
    ('{"label": 1, "verdict": 1}\n{"label": 1,\n', "", ":2: is not valid JSON"),
    (HEAD + "a,,1\nb,1,\n", "", "no case has both a label and a"),
    ("label\nfail\n", "--verdict=label", "no column was recognized as labels"),
    ("case,human,verdict,judge\na,1,1,x\n", "--judge=judge --baseline=x", "compared with itself"),
    ("human_says,verdict\n1,0\n", "", 'the columns are "human_says"'),
    ("label,judge_a,judge b\n1,0,1\n", "", "columns: --verdict COL"),
    ("id,ann,bo,gpt judge\na,ok,ok,ok\n", "", ": --label ann --label bo --verdict 'gpt judge"),
    (HEAD + "a,no,no\nb,Not OK,no\n", "--map=no=1 --map=NotOK=1", 'has the word "notok", '),
    (HEAD + "a,1,1\n", "--verdict=verdikt", '; the columns are "case", "'),
    (HEAD + "a,1,1\n", "--baseline=verdit", 'nor a file\n    "verdict" is the nearest'),
    (HEAD + "a,1,1\n", "--baseline=tabel.csv", 'nor a file\n    "tables.csv" is the nearest'),
    (NAMES + "a,x,1,1\n", "--judge=annotator --baseline=y/x", "nor a file\n"),
    (HEAD + "a,1,1\n", "--map=good", "must be WORD=VALUE"),
    (HEAD + "a,1,85\n", "--threshold=0.5", ':2: verdict: got "85"'),
    (HEAD + 'a,1,"1,5"\n', "--threshold=0.5", "a number from 0 to 1, such as 0.71 or 0,71"),
    (HEAD + 'a,1,"0,5"\n', "", "pass --threshold 0.5, so that 0.5 or"),
    (HEAD + "a,1,nan\n", "--threshold=0.5", 'got "nan"'),
    (f"{HEAD}a,1,maybe\nb,1,0.2\n", "--threshold=0.5", "--map maybe=violated"),
    (HEAD + "a,pass,fail\n", "--threshold=0.5", "COL; or leave out --threshold"),
    (HEAD + "a,1,1\n", "--threshold=1.5", "must be a number >= 0"),
    (HEAD + "a,1,1\n", "--within=1", "needs --scale"),
    (HEAD + "a,1,1\n", "--scale=1-5 --within=4", "must be >= 0 and below 4"),
    (HEAD + "a,1,1\n", "--threshold=0.5 --scale=1-5", "not allowed"),
    (HEAD + "a,1,1\n", "--error=0.05", "needs --threshold"),
    (HEAD + "a,1,1\n", "--report=r.pdf", "must end in .html"),
    ("id,label,verdict\na,violated,viol\0ated", "", ":2: has a NUL character"),
    (f"{NAMES}a,ann,pass,fail\na,,pass,fail\n", "", f":3: annotator: {WITHOUT_A_NAME}"),
    (f"{NAMES}a,ann,1,0\na,,1,0\na,bo,1,0\n", "", f":3: annotator: {WITHOUT_A_NAME}"),
    # What options say twice, or against each other.
    (TWO_PEOPLE, "--label=human --label=human", '--label and --label cannot both be "human"'),
    (TWO_PEOPLE, "--label=human --label=other --annotator=judge", "leave out --annotator"),
    (TWO_PEOPLE, "--case=id --case=other", "argument --case: given twice"),
    (TWO_PEOPLE, "--map=Fine=0 --map=fine=1", "two meanings"),
    (TWO_PEOPLE, "--one=passed", "gives 1 two meanings"),
    (TWO_PEOPLE, "--case=id --rubric=id", '--case and --rubric cannot both be "id"'),
    (TWO_PEOPLE, "--baseline=./table.csv", "would be compared with itself"),
    (TWO_PEOPLE, "--one=humann=passed", 'is no column "humann"'),
    (TWO_PEOPLE, "--scale=0-1 --one=passed", "--one: cannot be used with --scale\n"),
]


@pytest.mark.parametrize("line", ["1", "{", "[]", '{"a": NaN}', "1,,,"])
def test_of_a_file_without_a_good_line_a_thousand_are_read(tmp_path: Path, line: str) -> None:
    path = tmp_path / "t"
    first = "a,b" if "," in line else '{"a": 1}'
    for count, last in ((30_000, "was not read to its end"), (30, "to see 20 more problems")):
        path.write_text(f"{first}\n" + f"{line}\n" * count)
        with pytest.raises(InputError) as refused:
            read_table(path, ())
        assert len(refused.value.problems) <= 12
        assert refused.value.problems[-1].message.endswith(last)


def assert_is_plain(text: str) -> None:
    odd = [char for char in text if not char.isprintable() and char not in "\n"]
    assert not odd, odd[:5]
    # What GitHub's runner takes for a command, indented or not.
    assert not re.search(r"(?m)^\s*::|##\[", text)


@pytest.fixture(autouse=True)
def _limit_of_the_csv_module() -> Iterator[None]:
    """The limit that a process has from the start; others set it, for tables of their own."""
    before = csv.field_size_limit(131_072)
    yield
    csv.field_size_limit(before)


@pytest.mark.parametrize(
    ("content", "options", "message"), BROKEN, ids=[message for _, _, message in BROKEN]
)
def test_broken_tables_are_said(run: Run, content: str | bytes, options: str, message: str) -> None:
    Path("tables.csv").touch()
    Path("table.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    code, text = run("table.csv", *options.split())
    assert (code, message in text) == (4, True), text
    assert len(text) < 10_000
    assert_is_plain(text)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.json"])
def test_keys_are_not_shown(run: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key := "sk-test-abcdefghijklmnop0123")
    # In JSON a letter of it may be escaped.
    row = f'{{"case": "{key.replace("a", chr(92) + "u0061")}", "label": 1, "verdict": 0}}'
    rows = {"t.csv": f"{HEAD}{key},1,0\n", "t.jsonl": row, "t.json": f"[{row}]"}
    reports = [f"r.{suffix}" for suffix in ("html", "md", "json")]
    code, text = run(written(rows[name], name), "-v", *(f"--report={path}" for path in reports))
    assert code == 0
    assert "[REDACTED]" in text
    # Nor where it stands in the place of a column's name.
    code, refused = run(written(f"{key},b\n1,2\n"))
    assert (code, "labels or verdicts" in refused) == (4, True)
    for shown in (text, refused, *(Path(path).read_text("utf-8") for path in reports)):
        assert key not in shown


def test_what_is_no_file_is_refused(run: Run) -> None:
    assert run(".")[0] == 4
    assert "no such file" in run("none.csv")[1]
    os.mkfifo("pipe")
    assert "not a file" in run("pipe")[1]
    row = '{"label": 1, "verdict": 1}'
    table = written(row, "verdicts.json")
    assert '"verdicts.json" is the nearest file' in run("verdict.json")[1]
    assert "but the command also reads this file" in run(table, f"--report={table}")[1]
    assert table.read_text() == row
    Path("runs.eval").write_bytes(b"PK\x03\x04 no table")
    code, text = run("runs.eval")
    assert code == 4
    assert "runs.eval: is an Inspect log, but a table is needed" in text
    assert "make a table from the log: inspect_ai.analysis.samples_df" in " ".join(text.split())


@pytest.mark.parametrize(
    ("table", "labels", "expected"),
    [
        ("id,verdict\na,0\n", "id,target\na,0\na,1\n", "labels.csv:3: target: the case"),
        ("id,verdict\na,0\n", "id,target\nb,0\n", "has no labelled case"),
        ("id,verdict\n1,0\n", "id,target\n1.0,0\n", 'written "1" as "1.0": format the ids as text'),
        (
            "id,gut,verdict\na,0,0\n",
            "id,target\na,0\n --label=gut",
            "--label must name a column of labels.csv",
        ),
        ("id,who,verdict\na,x,0\n", "id,target\na,0\n --annotator=who", "--annotator must name"),
        ("id,verdict\na,0\n", "id,target\na,0\n --label=targ", '"target" is the nearest'),
        ("name,verdict\na,0\nb,0\n", "id,target\na,0\n", "column of ids: --case name"),
        ("name,x\na,0\nb,0\n", "id,target\na,0\n", "columns: --verdict COL --case name"),
        ("id,rubric,verdict\na,x,0\na,y,0\n", "id,target\na,0\n", "rubric and epoch of"),
        ("id,verdict\na,pass\n", "id,annotator,label\na,ann,pass\na,,pass\n", WITHOUT_A_NAME),
    ],
)
def test_labels_that_do_not_fit_are_said(run: Run, table: str, labels: str, expected: str) -> None:
    labels, *options = labels.split(" --")
    options = [f"--{option}" for option in options]
    code, text = run(written(table), f"--labels={written(labels, 'labels.csv')}", *options)
    assert code == 4
    assert expected in text


@pytest.mark.parametrize("words", ["::error::x", f"lo ng ::error::x ##[error]x {ESCAPES} " * 9])
@pytest.mark.parametrize("verbosity", [(), ("-v",)])
def test_no_name_is_more_than_text(run: Run, words: str, verbosity: tuple[str, ...]) -> None:
    """Of a rubric, a judge, a case, a column, a baseline, a reason: wherever lines are wrapped."""
    rows = []
    for number in range(40):
        label, is_other = number % 3 % 2, number % 2
        rows.append(f"{words}{number},{label},{label ^ is_other},{label},{words}{is_other},{words}")
    head = f"case,label,::error::j {words},{words},rubric,reasoning\n"
    table = written(head + "\n".join(rows) + "\n")
    options = [f"--verdict=::error::j {words}".rstrip(), f"--baseline={words}".rstrip()]
    code, text = run(table, *options, *verbosity)
    assert code == 1
    assert_is_plain(text)
    assert "error" in text


COLUMNS = ["case", "id", "label", "gold", "verdict", "score", "judge", "run", "task", "rubric"]
COLUMNS += ["epoch", "repeat", "reasoning", "x", ""]
WORDS = ["0", "1", "2", "5", "1.0", "pass", "fail", "yes", " ", "a", "b", "nan", '"', "\x1b[1m"]
_NAMES, _CELLS = st.sampled_from(COLUMNS), st.sampled_from([*WORDS, "", "=1"])


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    head=st.lists(_NAMES, min_size=1, max_size=6),
    rows=st.lists(st.lists(_CELLS, min_size=1, max_size=6), max_size=8),
    separator=st.sampled_from([",", ";", "\t"]),
)
def test_no_traceback(run: Run, head: list[str], rows: list[list[str]], separator: str) -> None:
    table = written("\n".join(separator.join(row) for row in [head, *rows]) + "\n")
    code, text = run(table, "--report=r.json")
    assert code in (0, 4)
    assert_is_plain(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--lable=x"], 'unrecognized arguments: --lable=x; "--label" is the nearest'),
        (["--verdit", "verdict"], '"--verdict" is the nearest'),
        (["--zzz"], "unrecognized arguments: --zzz\n"),
        ([], "let people label the cases: python -m pytest_jrh label 'my verdicts.csv'"),
    ],
)
def test_a_mistake_is_told_what_was_meant(run: Run, arguments: list[str], said: str) -> None:
    written("id,verdict\n1,pass\n2,fail\n", "my verdicts.csv")
    code, printed = run("my verdicts.csv", *arguments)
    assert (code, said in printed) == (4, True), printed
