"""`python -m pytest_jrh compare`: one word about two judges, equal to what the gate says."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.model import Spending, Usage
from pytest_jrh.engine.checking import CheckedTable, check_table
from pytest_jrh.engine.comparing import ComparedJudges, compare_judges
from pytest_jrh.reports.blocks import Sentence, Table
from pytest_jrh.reports.terminal import block_lines
from pytest_jrh.reports.upgrade import next_sentence, upgrade_blocks
from pytest_jrh.stats.baseline import Baseline, Scope, update
from pytest_jrh.stats.exchange import CaseErrors, differing_p
from pytest_jrh.stats.gate import GateDecision
from pytest_jrh.stats.upgrade import decide_upgrade
from tools import upgrade as page

LLMBAR = page.TABLE
WORDS = {
    ("vanilla", "vanilla_norules"): "WORSE",
    ("vanilla", "cot"): "WORSE",
    ("vanilla", "metrics_reference"): "BETTER",
    ("vanilla", "swap"): "EQUIVALENT",
    ("vanilla_norules", "cot"): "BETTER",
    ("vanilla_norules", "metrics_reference"): "BETTER",
    ("vanilla_norules", "swap"): "BETTER",
    ("cot", "metrics_reference"): "BETTER",
    ("cot", "swap"): "BETTER",
    ("metrics_reference", "swap"): "WORSE",
}


def checked(old: str, new: str, drop: float, *, proof: bool = False) -> CheckedTable:
    return check_table(
        LLMBAR, verdict=new, baseline=old, rubric="subset", max_drop=drop, proof=proof
    )


def drop_verdict(decision: GateDecision | None) -> str:
    assert decision is not None
    [drop] = [threshold.drop for threshold in decision.thresholds if threshold.drop is not None]
    return drop.verdict


@pytest.mark.parametrize("pair", WORDS, ids="-".join)
def test_the_word_about_two_prompts_is_that_of_the_gate(pair: tuple[str, str]) -> None:
    old, new = pair
    upgrade = compare_judges(LLMBAR, old_judge=old, new_judge=new, rubric="subset").upgrade
    assert upgrade.word == WORDS[pair]
    plain, back = checked(old, new, 0.0).decision, checked(new, old, 0.0).decision
    proven = checked(old, new, 0.05, proof=True).decision
    both = checked(new, old, 0.05, proof=True).decision
    is_equal = drop_verdict(proven) == drop_verdict(both) == "PASS"
    assert (upgrade.word == "EQUIVALENT") == is_equal
    if not is_equal:
        assert (upgrade.word == "WORSE") == (drop_verdict(plain) == "FAIL")
    if upgrade.word == "BETTER":
        assert drop_verdict(back) == "FAIL"
    assert plain is not None
    assert upgrade.decision.changes == plain.changes
    assert upgrade.decision.regressions == plain.regressions
    assert upgrade.decision.fixes == plain.fixes
    of_classes = [of_class.only_old for of_class in upgrade.classes]
    assert sum(of_classes) == len(plain.regressions)
    assert upgrade.differing == len(plain.regressions) + len(plain.fixes)


def test_the_figures_of_the_documentation_are_those_of_today() -> None:
    """Where this fails: python -m tools.upgrade"""
    text = page.PAGE.read_text("utf-8")
    assert text == page.page()
    if page.SIMULATED.is_file():
        assert page.simulated().strip() in text


def table(tmp_path: Path, text: str, name: str = "verdicts.csv") -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def repeated(tmp_path: Path, *, repeats: int = 3) -> str:
    """60 cases of either label; each judge is wrong, in all repeats, on eight of each, on other
    ones than the other judge.
    """
    rows = ["case,run,label,judge,repeat,verdict"]
    for case in range(120):
        label = case % 2
        wrong = {"old": case < 16, "new": 16 <= case < 32}
        for judge, is_wrong in wrong.items():
            for repeat in range(repeats):
                rows.append(f"c{case},r{case},{label},{judge},{repeat},{label ^ is_wrong}")
    return table(tmp_path, "\n".join(rows) + "\n")


def test_judges_that_err_on_other_cases_are_different_where_repeats_tell(tmp_path: Path) -> None:
    upgrade = compare_judges(repeated(tmp_path)).upgrade
    assert (upgrade.old, upgrade.new) == ("old", "new")
    assert upgrade.word == "DIFFERENT"
    assert upgrade.different_p is not None
    assert upgrade.different_p < 0.001


@pytest.mark.parametrize("flips", [True, False])
def test_rates_over_repeats_that_differ_are_named_so(tmp_path: Path, flips: bool) -> None:
    rows = ["case,label,judge,repeat,verdict"]
    for case in range(8):
        for judge in ("old", "new"):
            for number in range(3):
                is_wrong = flips and judge == "new" and number == case % 4
                rows.append(f"c{case},{case % 2},{judge},{number},{case % 2 ^ is_wrong}")
    blocks = upgrade_blocks(compare_judges(table(tmp_path, "\n".join(rows) + "\n")).upgrade)
    [caption] = [
        block.caption for block in blocks if isinstance(block, Table) and block.first == "right on"
    ]
    assert ("rates are over all repeats" in caption) == flips


@pytest.mark.parametrize(("lost", "won", "word"), [(3, 1, "DIFFERENT"), (9, 1, "WORSE")])
def test_repeats_alone_make_no_judge_worse_that_is_wrong_on_other_cases(
    tmp_path: Path, lost: int, won: int, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["case,label,judge,repeat,verdict"]
    for case in range(100):
        label = case % 2
        for judge, is_wrong in (("old", 40 <= case < 40 + 2 * won), ("new", case < 2 * lost)):
            rows += [f"c{case},{label},{judge},{number},{label ^ is_wrong}" for number in range(3)]
    path = table(tmp_path, "\n".join(rows) + "\n")
    upgrade = compare_judges(path).upgrade
    assert upgrade.word == word
    assert drop_verdict(upgrade.decision) == "FAIL"
    assert main(["compare", path]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert ("On these cases more is lost than flicker explains" in printed) == (word == "DIFFERENT")


def test_without_repeats_nothing_is_said_of_flicker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = repeated(tmp_path, repeats=1)
    upgrade = compare_judges(path).upgrade
    assert upgrade.word == "UNDECIDED"
    assert upgrade.different_p is None
    assert upgrade.runs is not None
    assert main(["compare", path]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"about {upgrade.runs:,} runs like these would prove it" in printed
    # Each run has a case of one class alone.
    assert f"{upgrade.runs - upgrade.compared:,} more than the {upgrade.compared} here" in printed
    assert "flicker is not known, as no case was judged more than once" in printed


@pytest.mark.parametrize(
    ("before", "now", "p_value"),
    [
        ((1,), (0,), None),
        ((1, 1), (1, 1), 1.0),
        # Two of six ways to deal three of each to both judges are as far apart as they can be.
        ((1, 1), (0, 0), 1 / 3),
        # Of four verdicts the one that is other is as likely any of them.
        ((1,), (0, 0, 0), 1 / 4),
    ],
)
def test_a_difference_is_as_likely_as_exchanges_make_it(
    before: tuple[int, ...], now: tuple[int, ...], p_value: float | None
) -> None:
    found = differing_p([CaseErrors(before, now)])
    assert found == (None if p_value is None else pytest.approx(p_value))


def test_differences_of_cases_are_added_up_whichever_way_they_go() -> None:
    one, other = CaseErrors((1, 1), (0, 0)), CaseErrors((0, 0), (1, 1))
    assert differing_p([one, other]) == pytest.approx(1 / 9)
    assert differing_p([one, one]) == pytest.approx(1 / 9)


def test_labels_of_one_class_prove_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"c{case},1,0,1\n" for case in range(80))
    path = table(tmp_path, f"case,label,old,new\n{rows}")
    assert main(["compare", path, "--old", "old", "--new", "new"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "UNDECIDED" in printed
    assert "a judge which always gives this one would be right" in printed
    assert main(["compare", path, "--old", "new", "--new", "old"]) == 1


def test_one_class_better_and_another_worse_is_worse_and_says_both(tmp_path: Path) -> None:
    rows = "".join(f"c{case},{case % 2},0,1\n" for case in range(80))
    path = table(tmp_path, f"case,label,old,new\n{rows}")
    compared = compare_judges(path, old_judge="old", new_judge="new")
    assert compared.upgrade.word == "WORSE"
    assert [change.kind for change in compared.upgrade.better] == ["violated"]
    assert main(["compare", path, "--old=old", "--new=new", f"--report={tmp_path}/a.md"]) == 1
    text = (tmp_path / "a.md").read_text("utf-8")
    assert "new raises more false alarms than old, but finds more violations" in text


def test_two_tables_are_compared_by_the_names_of_their_cases(tmp_path: Path) -> None:
    old = table(tmp_path, "id,verdict\na,1\nb,0\nc,0\nd,1\n", "old.csv")
    new = table(tmp_path, "id,label,verdict\nd,0,0\nc,0,0\nb,1,1\na,1,1\n", "new.csv")
    upgrade = compare_judges(old, new).upgrade
    assert (upgrade.compared, upgrade.differing) == (4, 2)
    assert [(of.only_old, of.only_new) for of in upgrade.classes] == [(0, 1), (0, 1)]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, ("the old judge", "the new judge")),
        ({"old_judge": "verdict"}, ("verdict", "the new judge")),
        ({"new_judge": "verdict"}, ("the old judge", "verdict")),
        ({"old_judge": "verdict", "new_judge": "verdict"}, ("old verdict", "new verdict")),
    ],
)
def test_a_column_of_verdicts_is_no_name_of_a_judge_unless_it_is_given_as_one(
    tmp_path: Path, given: dict[str, Any], shown: tuple[str, str]
) -> None:
    paths = [
        table(tmp_path, "case,label,verdict\na,1,1\nb,0,0\n", name)
        for name in ("old.csv", "new.csv")
    ]
    upgrade = compare_judges(*paths, **given).upgrade
    assert (upgrade.old, upgrade.new) == shown


@pytest.mark.parametrize("lost", [range(0, 120, 2), range(0, 120, 9)])
def test_a_judge_without_a_verdict_on_some_cases_takes_no_place(
    lost: range, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["case,label,verdict_old,verdict_new"]
    for case in range(600):
        right = case % 2
        old = right if case % 9 else 1 - right
        rows.append(f"c{case},{right},{old},{'' if case in lost else right}")
    path = table(tmp_path, "\n".join(rows) + "\n")
    upgrade = compare_judges(path).upgrade
    assert upgrade.word not in ("EQUIVALENT", "BETTER")
    assert upgrade.passed is False
    assert main(["compare", path]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    missing = f"{len(lost)} cases have no verdict of verdict_new (invalid_response)"
    assert f"{missing}, so that the gate fails" in printed
    assert "not compared" not in printed
    assert (
        check_table(path, verdict="verdict_new", baseline="verdict_old", max_drop=0.05).passed
        is False
    )


def test_all_that_is_written_has_one_decision(tmp_path: Path) -> None:
    rows = ["case,label,judge,repeat,verdict"]
    for case in range(400):
        label = case % 2
        for judge, score in (("old", label), ("new", label ^ (case < 6))):
            rows += [f"c{case},{label},{judge},{number},{score}" for number in range(3)]
    path = table(tmp_path, "\n".join(rows) + "\n")
    compared = compare_judges(path)
    assert compared.upgrade.word == "EQUIVALENT"
    assert compared.checked is not None
    assert compared.checked.decision is compared.upgrade.decision
    assert main(["compare", path, f"--report={tmp_path / 'a.json'}"]) == 0
    data = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert data["gate"]["passed"]
    assert data["gate"] == data["compare"]["gate"]


@pytest.mark.parametrize("form", ["judges", "files"])
def test_a_judge_without_a_row_on_some_cases_takes_no_place(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = "case,label,judge,verdict\n"
    old = [f"c{case},{case % 2},a,{int(case % 9 == 0) ^ case % 2}\n" for case in range(600)]
    new = [f"c{case},{case % 2},b,{case % 2}\n" for case in range(600) if case % 9]
    paths = [table(tmp_path, header + "".join(old + new), "both.csv")]
    if form == "files":
        paths = [
            table(tmp_path, header + "".join(rows), name)
            for rows, name in ((old, "old.csv"), (new, "new.csv"))
        ]
    upgrade = compare_judges(*paths, old_judge="a", new_judge="b").upgrade
    assert (upgrade.word, upgrade.absent, upgrade.passed) == ("UNDECIDED", 67, False)
    assert main(["compare", *paths, "--old=a", "--new=b"]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "67 cases of a not compared, as b has nothing on them" in printed
    assert "67 verdicts of the baseline not compared: no row here is about it." in printed
    assert "Next: have b judge the cases that it has no verdict on." in printed


def test_a_case_with_another_label_in_the_old_table_is_not_compared(tmp_path: Path) -> None:
    rows = [(f"c{case}", case % 2, case % 2) for case in range(40)]
    new = "".join(f"{name},{label},{score}\n" for name, label, score in rows)
    other = "".join(f"{name},{1 - label},{1 - score}\n" for name, label, score in rows[:5])
    same = "".join(f"{name},{label},{score}\n" for name, label, score in rows[5:])
    paths = []
    for name, text in (("new", new), ("old", other + same), ("inverted", other)):
        paths.append(table(tmp_path, f"case,label,verdict\n{text}", f"{name}.csv"))
    upgrade = compare_judges(paths[1], paths[0]).upgrade
    assert upgrade.compared == 35
    reasons = set(upgrade.decision.not_comparable.values())
    assert reasons == {"the case has changed: another rubric text, transcript or label"}
    with pytest.raises(InputError, match="another rubric text, transcript or label"):
        compare_judges(paths[2], paths[0])


@pytest.mark.parametrize("labels", [1, 2])
def test_one_judge_with_the_same_verdicts_proves_nothing(tmp_path: Path, labels: int) -> None:
    rows = "".join(f"c{case},{case % labels},1,1\n" for case in range(20))
    path = table(tmp_path, f"case,label,verdict_old,verdict_new\n{rows}")
    results = compare_judges(path).session.results
    scope = Scope.of(result.case_id for result in results)
    before = update(Baseline(), results, scope).baseline
    upgrade = decide_upgrade(results, before, ("old", "new"))
    assert upgrade.word == ("EQUIVALENT" if labels == 2 else "UNDECIDED")
    assert upgrade.is_replayed
    sentences = [block.text for block in upgrade_blocks(upgrade) if isinstance(block, Sentence)]
    assert "excluded" not in " ".join(sentences)
    assert sentences[0].startswith("It is one judge" if labels == 2 else "All compared cases")
    expected = "change the judge" if labels == 2 else "judge cases of the other label with both"
    assert next_sentence(upgrade).startswith(f"Next: {expected}")


def test_two_tables_on_two_scales_are_not_compared(tmp_path: Path) -> None:
    binary = "".join(f"c{case},{case % 2},{case % 2}\n" for case in range(40))
    levels = "".join(f"c{case},{1 + case % 5},{1 + case % 5}\n" for case in range(40))
    new = table(tmp_path, f"case,label,verdict\n{binary}", "new.csv")
    old = table(tmp_path, f"case,label,verdict\n{levels}", "old.csv")
    for paths in ((old, new), (new, old)):
        with pytest.raises(InputError, match="two scales"):
            compare_judges(*paths)


def test_scores_may_be_written_with_a_point(tmp_path: Path) -> None:
    rows = "".join(f"c{case},{case % 2},{case % 2}.0,{case % 2}.0\n" for case in range(40))
    path = table(tmp_path, f"case,label,old,new\n{rows}")
    upgrade = compare_judges(path, old_judge="old", new_judge="new").upgrade
    assert (upgrade.compared, len(upgrade.classes)) == (40, 2)


def test_an_ordinal_judge_is_compared_in_levels(tmp_path: Path) -> None:
    rows = "".join(f"c{case},{1 + case % 5},{1 + case % 5},{5 - case % 5}\n" for case in range(60))
    path = table(tmp_path, f"case,label,old,new\n{rows}")
    upgrade = compare_judges(path, old_judge="old", new_judge="new").upgrade
    assert upgrade.word == "WORSE"
    [of_all] = upgrade.classes
    assert of_all.change.ordinal
    assert of_all.change.now == pytest.approx(2.4)
    [right_on] = [
        block
        for block in upgrade_blocks(upgrade)
        if isinstance(block, Table) and block.first == "right on"
    ]
    before, now, change, *_ = right_on.rows[0].cells
    assert (before.text, now.text, change.text) == ("0.00", "2.40", "+2.40")
    low, high = map(float, change.range.split(" to "))
    assert low <= 2.4 <= high


def test_runs_without_a_label_count_for_old_numbers_alone(tmp_path: Path) -> None:
    labelled = "".join(f"c{case},{case % 2},{case % 2},{case % 2}\n" for case in range(20))
    unlabelled = "".join(f"u{case},,0,{case % 2}\n" for case in range(20))
    path = table(tmp_path, f"case,label,old,new\n{labelled}{unlabelled}")
    upgrade = compare_judges(path, old_judge="old", new_judge="new").upgrade
    assert upgrade.compared == 20
    assert upgrade.shares is not None
    assert (upgrade.shares.old.count, upgrade.shares.new.count) == (10, 20)
    assert upgrade.shares.difference.value == pytest.approx(0.25)
    assert (upgrade.shares.raised.count, upgrade.shares.raised.n) == (10, 30)


def test_reasonings_of_both_judges_are_in_the_reports(tmp_path: Path) -> None:
    rows = ["case,label,judge,verdict,reasoning"]
    for case in range(20):
        rows.append(f"c{case},{case % 2},old,{case % 2},said by old of {case}")
        rows.append(f"c{case},{case % 2},new,1,said by new of {case}")
    path = table(tmp_path, "\n".join(rows) + "\n")
    reports = [f"--report={tmp_path}/a{suffix}" for suffix in (".html", ".md", ".json")]
    assert main(["compare", path, *reports]) == 1
    text = (tmp_path / "a.md").read_text("utf-8")
    assert "Why old gave 0 (satisfied)" in text
    assert "said by old of 4" in text
    assert "said by new of 4" in text
    assert "WORSE: new raises more false alarms than old" in (tmp_path / "a.html").read_text(
        "utf-8"
    )
    data = json.loads((tmp_path / "a.json").read_text("utf-8"))["compare"]
    assert (data["word"], data["old"], data["new"], data["differing"]) == (
        "WORSE",
        "old",
        "new",
        10,
    )
    assert data["classes"][1]["only_old"] == 10


def test_a_reasoning_of_either_of_two_columns_is_of_none(tmp_path: Path) -> None:
    rows = "".join(f"c{case},{case % 2},0,1,because of {case}\n" for case in range(4))
    path = table(tmp_path, f"case,label,old,new,reasoning\n{rows}")
    session = compare_judges(path, old_judge="old", new_judge="new").session
    assert {result.reasoning for result in session.results} == {""}
    of_one = check_table(path, verdict="new", baseline="old").session
    reasonings = {f"because of {case}" for case in range(4)}
    assert {result.reasoning for result in of_one.results} == reasonings


def test_a_pipe_is_refused_and_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "verdicts.csv"
    os.mkfifo(pipe)
    assert main(["compare", str(pipe), str(LLMBAR)]) == 4
    assert "is not a regular file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{table}"], "which two judges of it to compare is not clear: add --old NAME --new NAME"),
        (["{table}", "--old=vanila", "--new=cot"], "vanilla is the nearest judge"),
        (["{table}", "--old=vanilla", "--new=cott"], "cot is the nearest judge"),
        (["{table}", "--old=vanilla"], "add --new NAME"),
        (["{table}", "--old=cot", "--new=cot"], "--old and --new are the same judge, 'cot'"),
        (["{one_judge}"], "agent-as-a-judge.csv: has one judge, verdict"),
        (["{one_judge}", "{one_judge}"], "name two files, OLD and NEW"),
        (["nothing.csv"], "nothing.csv: no such file"),
        (["n" * 5_000], "File name too long"),
        (["{baseline}", "nothing"], "nothing: no such file"),
        (["{baseline}", "inputs/configs"], "must have one case_results.jsonl"),
        (["{table}", "{baseline}"], "is a table of verdicts, and the other file is not"),
        (["{baseline}"], "NEW has to be results"),
        (["{table}", "--old=vanilla", "--new=cot", "--max-drop=2"], "--max-drop: got"),
        (["{table}", "--old=vanilla", "--new=cot", "--report=a.pdf"], "--report: got"),
    ],
)
def test_what_cannot_be_compared_ends_with_exit_code_4(
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(page.ROOT)
    baseline = "inputs/baselines/refund_agent.json"
    one_judge = LLMBAR.with_name("agent-as-a-judge.csv")
    filled = [
        text.format(table=LLMBAR, baseline=baseline, one_judge=one_judge) for text in arguments
    ]
    assert main(["compare", *filled]) == 4
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("verdict", "jugde", "name those of the judges: --new jugde"),
        ("jugde", "verdict", "name those of the judges: --old jugde"),
        ("verdict", "score,prediction", "say which: --new score or --new prediction"),
    ],
)
def test_a_column_of_verdicts_is_named_by_an_option_that_there_is(
    old: str, new: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = []
    for name, columns in (("old.csv", old), ("new.csv", new)):
        row = ",1" * len(columns.split(","))
        paths.append(table(tmp_path, f"case,label,{columns}\na,1{row}\n", name))
    assert main(["compare", *paths]) == 4
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ("x,1,1\ny,0,0\n", "none of its cases has a verdict in"),
        ("a,0,1\nb,1,0\n", "each of its cases has another label than in"),
    ],
)
def test_two_tables_without_a_common_case_say_what_is_not_common(
    new: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = table(tmp_path, "case,label,verdict\na,1,1\nb,0,0\n", "old.csv")
    path = table(tmp_path, f"case,label,verdict\n{new}", "new.csv")
    assert main(["compare", old, path]) == 4
    assert f"new.csv: {said} {old}" in capsys.readouterr().err


def test_a_table_without_labels_of_compared_cases_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path, "case,label,old,new\na,1,,1\nb,0,,0\nc,,1,1\n")
    with pytest.raises(InputError, match="no case has a label and a verdict of both"):
        compare_judges(path, old_judge="old", new_judge="new")


def timed(tmp_path: Path, old: str, new: str, column: str = "seconds") -> str:
    """Eight cases of either label, judged right by two judges, with the seconds of each."""
    rows = [f"case,label,judge,verdict,{column}"]
    for case in range(16):
        for judge, seconds in (("old", old), ("new", new)):
            rows.append(f"c{case},{case % 2},{judge},{case % 2},{seconds}")
    return table(tmp_path, "\n".join(rows) + "\n")


def costs_rows(compared: ComparedJudges) -> dict[str, dict[str, str]]:
    """The table of what both judges took: its cells by judge and column; empty without a table."""
    rows = {}
    for block in upgrade_blocks(compared.upgrade):
        if isinstance(block, Table) and block.first == "cost":
            for row in block.rows:
                cells = (cell.text for cell in row.cells)
                rows[row.name] = dict(zip(block.titles, cells, strict=True))
    return rows


def test_what_two_sessions_took_fits_into_80_columns_with_whole_names(tmp_path: Path) -> None:
    rows = "case,label,verdict\na,1,1\nb,0,0\n"
    paths = [table(tmp_path, rows, name) for name in ("old.csv", "new.csv")]
    spent = Spending(usage=Usage(1_000_000, 200_000), cost=9.9)
    took = replace(
        compare_judges(*paths).upgrade,
        spendings=(spent, spent, False),
        seconds=((), (0.3,) * 180),
    )
    lines = [line.text for line in block_lines(upgrade_blocks(took), 80)]
    [cost] = [number for number, line in enumerate(lines) if line.startswith("cost ")]
    assert lines[cost + 1].startswith("the old judge ")
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("column", ["seconds", "Latency_S", "latency seconds"])
def test_seconds_of_a_table_are_shown_of_each_judge(tmp_path: Path, column: str) -> None:
    rows = costs_rows(compare_judges(timed(tmp_path, "0.5", "2", column)))
    title = "seconds a verdict"
    assert (rows["old"]["seconds"], rows["old"][title]) == ("8.0", "0.50 (median of 16)")
    assert (rows["new"]["seconds"], rows["new"][title]) == ("32.0", "2.00 (median of 16)")


def test_seconds_of_one_judge_alone_are_not_made_up_for_the_other(tmp_path: Path) -> None:
    rows = costs_rows(compare_judges(timed(tmp_path, "", "0.001")))
    assert rows["old"]["seconds"] == "not measured"
    assert rows["new"]["seconds a verdict"] == "below 0.01 (median of 16)"
    assert not costs_rows(compare_judges(timed(tmp_path, "", "")))
    assert not costs_rows(compare_judges(timed(tmp_path, "1", "2", "ms")))


def test_seconds_of_two_tables_are_those_of_each(tmp_path: Path) -> None:
    rows = ["case,label,verdict,seconds"] + [f"c{n},{n % 2},{n % 2},SECONDS" for n in range(8)]
    text = "\n".join(rows) + "\n"
    old = table(tmp_path, text.replace("SECONDS", "1"), "old.csv")
    new = table(tmp_path, text.replace("SECONDS", "3"), "new.csv")
    assert compare_judges(old, new).upgrade.seconds == ((1.0,) * 8, (3.0,) * 8)
    untimed = table(tmp_path, text.replace(",SECONDS", "").replace(",seconds", ""), "plain.csv")
    assert compare_judges(untimed, new).upgrade.seconds == ((), (3.0,) * 8)


def test_whose_seconds_stand_beside_two_columns_of_verdicts_is_not_known(tmp_path: Path) -> None:
    rows = ["case,label,a,b,seconds"] + [f"c{n},{n % 2},{n % 2},{n % 2},soon" for n in range(8)]
    path = table(tmp_path, "\n".join(rows) + "\n")
    upgrade = compare_judges(path, old_judge="a", new_judge="b").upgrade
    assert upgrade.seconds == ((), ())


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "1e300", "0.5 s", "true", "9" * 200])
def test_what_is_no_number_of_seconds_ends_with_exit_code_4(
    tmp_path: Path, seconds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = timed(tmp_path, "0.5", seconds)
    assert main(["compare", path]) == 4
    told = " ".join(capsys.readouterr().err.split())
    assert "verdicts.csv:3" in told
    assert "must be seconds, a number from 0 to 1,000,000,000" in told
    # Who checks one judge is not asked for its seconds.
    assert check_table(path, judge="judge").judge_names == ("old", "new")


@pytest.mark.parametrize("command", ["compare inputs/baselines/refund_agent.json"])
def test_a_file_in_a_folder_that_nobody_may_look_into_is_named(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    look = Path.stat

    def looked(path: Path, **options: bool) -> os.stat_result:
        if path.parts[0] == "closed":
            raise PermissionError(errno.EACCES, "Permission denied")
        return look(path, **options)

    monkeypatch.setattr(Path, "stat", looked)
    assert main([*command.split(), "closed/before.jsonl"]) == 4
    assert "closed/before.jsonl: " in (message := capsys.readouterr().err)
    assert "cannot be read: Permission denied" in message
