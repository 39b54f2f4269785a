"""The history of a suite's figures: the file, the table, and the drawing (rule J8)."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.text import columns, visible
from pytest_jrh.reports.history import history_lines, runs_of
from pytest_jrh.reports.session import Extent
from pytest_jrh.stats.formulas import Estimate
from pytest_jrh.store.history import (
    PastFigure,
    PastJudge,
    PastRun,
    add_runs,
    histories,
    read_history,
    run_data,
    run_from,
)
from tests.support.judged_sessions import HOSTILE, judged, scored, session_of, wrong_on


def figure(accuracy: float | None, n: int = 50, missed: int | None = None) -> PastFigure:
    figures = {} if missed is None else {"recall": Estimate(0.5, count=25 - missed, n=25)}
    return PastFigure(n, accuracy, None, None, figures)


def run(
    day: int, accuracy: float, *, fingerprint: str = "aa", gate: bool | None = True, cases: int = 50
) -> PastRun:
    rubrics = {"tone": figure(accuracy), "policy": figure(1.0)}
    judge = PastJudge("", "openai/m", fingerprint, figure(accuracy), rubrics)
    return PastRun("refunds", f"2026-11-{day:02} 10:00 UTC", "", cases, 50, gate, (judge,))


IMPOSSIBLE: tuple[object, ...] = (
    {"value": float("nan"), "n": 3},
    {"value": 0.5, "upper": 1e300, "n": 3},
    {"value": 0.5, "count": 5, "n": 3},
    {"value": 0.5, "count": -1, "n": 3},
    {"value": 0.5, "n": 10**400},
    {"value": []},
    "recall",
)


def judge_with(recall: object) -> dict[str, object]:
    """A judge of a line, with this in the place of a figure."""
    total = {"n": 3, "accuracy": 1.0, "lower": None, "upper": None, "figures": {"recall": recall}}
    return {"judge": "", "model": "m", "fingerprint": "f", "all": total, "rubrics": {}}


RUNS = [run(1, 1.0), run(2, 0.9), run(3, 0.8, fingerprint="bb", gate=False)]


def test_a_session_gives_a_line_with_its_figures_and_the_gate() -> None:
    session = session_of(judged(wrong_on("run-003")), before=judged(wrong_on("run-001")))
    session = replace(session, extents={"refunds": Extent(48, 48)})
    [found] = runs_of(session)
    assert (found.suite, found.cases, found.of, found.gate) == ("refunds", 48, 48, False)
    [judge] = found.judges
    assert judge.total.n == 48
    assert judge.total.accuracy == pytest.approx(44 / 48, abs=1e-6)
    assert set(judge.rubrics) == {"refund_policy", "tone"}
    assert judge.total.lower is not None
    recall = judge.total.figures["recall"]
    assert (recall.count, recall.n, recall.lower is not None) == (22, 24, True)
    assert judge.total.figures["false_positive_rate"].count == 2
    assert judge.rubrics["tone"].figures["kappa"].value == pytest.approx(10 / 12, abs=1e-6)
    assert run_from(json.loads(json.dumps(run_data(found)))) == found


def test_an_ordinal_judge_keeps_exact_bias_and_weighted_kappa() -> None:
    session = session_of(scored(lambda spec, expected: min(2, expected + 1)))
    [run] = runs_of(replace(session, extents={"helpfulness": Extent(30, 30)}))
    figures = run.judges[0].total.figures
    assert (figures["exact"].count, figures["exact"].n) == (10, 30)
    assert figures["bias"].value == pytest.approx(2 / 3, abs=1e-6)
    assert "weighted_kappa" in figures
    assert history_lines([run], 80) == [
        "suite helpfulness: 1 run",
        "          exact      bias  weighted     runs",
        "judge  (before)  (before)     kappa  30-100%",
        "all       10/30      0.67      0.50        ▁",
    ]


def test_a_line_of_an_earlier_version_is_read_and_has_no_new_figures() -> None:
    line = {
        "format": 1,
        "suite": "refunds",
        "date": "2026-11-01 10:00 UTC",
        "commit": "",
        "cases": 50,
        "of": 50,
        "gate": True,
        "judges": [
            {
                "judge": "",
                "model": "openai/m",
                "fingerprint": "aa",
                "all": {"n": 50, "accuracy": 0.9, "lower": 0.8, "upper": 0.96},
                "rubrics": {"tone": {"n": 50, "accuracy": None, "lower": None, "upper": None}},
            }
        ],
    }
    past = run_from(line)
    assert json.loads(json.dumps(run_data(past))) == line
    assert history_lines([past], 80)[2:4] == [
        "judge            (before)      (before)  kappa  accuracy  90-100%",
        "openai/m                -             -      -     90.0%        ▁",
    ]
    now = replace(past, judges=(replace(past.judges[0], total=figure(0.9, missed=3)),))
    assert "3/25 (-)" in history_lines([past, now], 80)[3]


def test_lines_are_added_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "new/history.jsonl"
    for each in RUNS:
        add_runs(path, [each])
    assert read_history(path, "h").runs == tuple(RUNS)
    assert len(path.read_text("utf-8").splitlines()) == 3


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    add_runs(path, RUNS[:1])
    with path.open("a", encoding="utf-8") as file:
        file.write('{"format": 1, "suite": "ref')
    add_runs(path, RUNS[1:])
    history = read_history(path, "h.jsonl")
    assert history.runs == tuple(RUNS)
    assert [str(problem) for problem in history.problems] == [
        "h.jsonl:2: is not JSON; the line is left out"
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 2}, "is no line of a history of format 1"),
        ({"date": "yesterday"}, "a line has suite, date"),
        ({"cases": -1}, "a line has suite, date"),
        ({"gate": "yes"}, "a line has suite, date"),
        ({"judges": [{}]}, "a judge has judge, model"),
        *(({"judges": [judge_with(estimate)]}, "a figure has n") for estimate in IMPOSSIBLE),
        ({"suite": "x" * 2_000}, "a line has suite, date"),
    ],
)
def test_a_line_that_says_something_else_is_named(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(json.dumps({**run_data(RUNS[0]), **change}) + "\n", encoding="utf-8")
    history = read_history(path, "h.jsonl")
    assert history.runs == ()
    assert str(history.problems[0]).startswith(f"h.jsonl:1: {said}")


@pytest.mark.parametrize("line", ["[" * 100_000, "NaN", "1e999", "\ud800", '{"format": 1}'])
def test_no_line_ends_the_reading(tmp_path: Path, line: str) -> None:
    path = tmp_path / "h.jsonl"
    path.write_bytes(line.encode("utf-8", "surrogatepass") + b"\n")
    assert read_history(path, "h").unread == 1


def test_of_two_writers_none_writes_into_the_others_line(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    writers = [threading.Thread(target=add_runs, args=(path, RUNS)) for _ in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(read_history(path, "h").runs) == 24


def test_a_link_or_a_pipe_is_refused_and_stays(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("kept", encoding="utf-8")
    (tmp_path / "link").symlink_to(other)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError, match="not a file"):
            add_runs(tmp_path / name, RUNS)
    assert other.read_text("utf-8") == "kept"
    with pytest.raises(InputError, match="not a regular file"):
        read_history(tmp_path / "pipe", "pipe")


def test_the_table_leads_with_what_is_missed_and_has_a_bar_for_each_run() -> None:
    missed = [0, 2, 6]
    runs = []
    for past, many in zip(RUNS, missed, strict=True):
        [judge] = past.judges
        total = replace(judge.total, figures=figure(None, missed=many).figures)
        runs.append(replace(past, judges=(replace(judge, total=total),)))
    assert history_lines([*runs, run(4, 0.5, cases=10)], 80) == [
        "suite refunds: 3 runs, 2026-11-01 to 2026-11-03",
        "                      missed  false alarms                      runs",
        "judge               (before)      (before)  kappa  accuracy  80-100%",
        "openai/m         6/25 (2/25)             -      -     80.0%      █▅▁",
        "  tone                     -             -      -     80.0%      █▅▁",
        "  policy                   -             -      -    100.0%      ███",
        "gate (+ passed)                                                  ++-",
        "2026-11-03 10:00 UTC: the judge changed: its prompt, settings or code",
        "1 run of a part of the cases left out",
    ]


def test_a_panel_has_a_line_for_each_judge_and_says_which_changed_in_what() -> None:
    [judge] = RUNS[0].judges
    strict = replace(judge, judge="strict", prompt="1111")
    lenient = replace(judge, judge="lenient", prompt="2222")
    changed = replace(lenient, fingerprint="bb", model="openai/n", prompt="3333")
    runs = [
        replace(RUNS[0], judges=(strict, lenient)),
        replace(RUNS[1], judges=(strict, changed), commit="4f1c22a90b7e"),
        replace(RUNS[2], judges=(replace(strict, fingerprint="cc"),)),
    ]
    lines = history_lines(runs, 80)
    assert [line.split("  ")[0] for line in lines[3:12]] == [
        "strict",
        "lenient",
        "strict:",
        "",
        "",
        "lenient:",
        "",
        "",
        "gate (+ passed)",
    ]
    assert lines[4].endswith("██")
    assert " ".join(lines[12:]) == (
        "2026-11-02 10:00 UTC (commit 4f1c22a90b7e): judge lenient changed: model openai/n "
        "(before: openai/m), prompt 3333 (before: 2222) "
        "2026-11-03 10:00 UTC: judge strict changed: its settings"
    )


def test_many_runs_and_long_names_fit_the_width() -> None:
    judge = RUNS[0].judges[0]
    rubrics = {f"the agent keeps to the policy on {what}": figure(0.9) for what in "ab"}
    many = [replace(RUNS[0], judges=(replace(judge, rubrics=rubrics),))] * 500
    for width in (60, 80, 120):
        lines = history_lines(many, width)
        assert max(map(columns, lines)) <= width
        assert len({line for line in lines if line.startswith("  t")}) == 2
    assert lines[-1].endswith("+" * 41)


def test_a_line_that_wraps_begins_with_no_command_of_a_runner() -> None:
    [judge] = RUNS[0].judges
    named = replace(RUNS[0], suite="x" * 60, judges=(replace(judge, judge="::error::z"),))
    lines = history_lines([named], 80)
    assert any("\\x3a:error" in line for line in lines)
    assert not any(line.startswith("::") for line in lines)


def test_each_run_is_looked_at_once_however_many_judges_there_are() -> None:
    [judge] = RUNS[0].judges

    class Counted(tuple[PastJudge, ...]):
        asked = 0

        def __iter__(self) -> Iterator[PastJudge]:
            Counted.asked += 1
            return super().__iter__()

    judges = Counted(replace(judge, judge=f"j{number}") for number in range(200))
    [history] = histories([replace(RUNS[0], judges=judges)], 10)
    assert [judge.name for judge in history.judges] == [judge.judge for judge in judges]
    assert Counted.asked < 10


def test_of_very_many_judges_and_rubrics_the_first_are_shown_and_the_others_counted() -> None:
    [judge] = RUNS[0].judges
    many_rubrics = replace(judge, rubrics={f"r{number}": figure(1.0) for number in range(250)})
    lines = history_lines([replace(RUNS[0], judges=(many_rubrics,))], 80)
    assert "  and 50 more rubrics" in lines
    assert len(lines) == 206
    many_judges = tuple(replace(judge, judge=f"j{number}") for number in range(201))
    assert "and 1 more judge" in history_lines([replace(RUNS[0], judges=many_judges)], 80)


def test_a_run_without_a_figure_leaves_a_gap() -> None:
    missing = replace(RUNS[1].judges[0], rubrics={"policy": figure(1.0)})
    lines = history_lines([RUNS[0], replace(RUNS[1], judges=(missing,)), RUNS[2]], 80)
    [tone] = [line for line in lines if line.startswith("  tone")]
    assert tone.endswith("█ ▁")


def test_hostile_names_are_shown_as_text_on_one_line() -> None:
    judge = replace(RUNS[0].judges[0], judge=HOSTILE, rubrics={HOSTILE: figure(1.0)})
    runs = [replace(each, suite=HOSTILE, judges=(judge,)) for each in RUNS]
    for line in history_lines(runs, 80):
        assert line == visible(line)
        assert "\n" not in line


def test_the_command_prints_the_table_and_names_what_it_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["history"]) == 4
    assert "history.jsonl: no such file" in capsys.readouterr().err
    add_runs(tmp_path / "history.jsonl", RUNS)
    with (tmp_path / "history.jsonl").open("a", encoding="utf-8") as file:
        file.write("no JSON\n")
    assert main(["history", "history.jsonl"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("suite refunds: 3 runs")
    assert printed.err == "history.jsonl:4: is not JSON; the line is left out\n"
