"""Tables that cannot be understood end in exit code 4 with their line, never in a traceback."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_jrh.__main__ import main

HEAD = "case,label,verdict\n"
ESCAPES = "\x1b[31mred\x1b]0title\x07\x1b[2J\x9b31m\u202e"

# What is in the file, the options, and what the message says; a line of `{` begins JSON lines.
BROKEN: dict[str, tuple[str | bytes, list[str], str]] = {
    "empty": ("", [], ":1: is empty"),
    "header_only": (HEAD, [], ":1: has no row"),
    "no_label": ("case,lable,verdict\na,x,1\n", [], ":1: no column of labels; its"),
    "no_verdict": ("case,label\na,1\n", [], ":1: no column of verdicts; its columns are"),
    "two_verdicts": ("label,verdict,score\n1,1,1\n", [], "--verdict verdict or --verdict score"),
    "crossed_clusters": (
        "label,verdict,run,task\n1,1,a,x\n1,1,a,y\n0,0,b,x\n0,0,b,y\n",
        [],
        "--cluster run or --cluster task",
    ),
    "off_the_scale": (HEAD + "a,1,9\nb,5,2\n", ["--scale=1-5"], ":2: verdict: got"),
    "nan": (HEAD + "a,1,NaN\n", [], "--map NaN= counts it as missing"),
    "quote_inside": (HEAD + 'a,1,"1"x\n', [], ":2: is not valid CSV"),
    "nul": (HEAD + "a,1,1\nb,\x000,0\n", [], ":3: has a NUL character"),
    "binary": (bytes(range(256)) * 20, [], "is not UTF-8 text"),
    "latin_1": (HEAD.encode() + b"\xe9,1,1\n", [], ":2: is not UTF-8"),
    "two_columns_of_a_name": ("case,label,verdict,label\na,1,1,0\n", [], ":1: duplicate column"),
    "case_twice": (HEAD + "a,1,1\na,1,0\n", [], ":3: case: the case"),
    "too_many_cells": (HEAD + "a,1,1,1\n", [], ":2: has 4 cells"),
    "huge_cell": (HEAD + f"{'x' * 10_000_000},1,1\n", [], ":2: is not valid CSV: field larger"),
    "json_array_cell": ('{"label": 1, "verdict": [1]}', [], ':1: verdict: got "[1]"'),
    "json_broken_line": ('{"label": 1, "verdict": 1}\n{"label": 1,\n', [], ":2: is not valid JSON"),
    "no_label_where_a_verdict_is": (HEAD + "a,,1\nb,1,\n", [], "no row has both a label and a"),
    "label_as_verdict": (
        "case,label\na,fail\n",
        ["--verdict=label"],
        "cannot be label and verdict at once",
    ),
    "verdict_as_its_baseline": (
        HEAD + "a,1,0\n",
        ["--baseline=verdict", "--verdict=verdict"],
        "verdict is held against itself",
    ),
    "labels_by_another_name": (
        "case,human_says,verdict\na,1,0\n",
        [],
        "no column of labels; human_says looks like one\n    --label human_says",
    ),
    "several_judges": (
        "label,judge_a,judge b\n1,0,1\n",
        [],
        "--verdict judge_a --verdict 'judge b'",
    ),
    "no_such_column": (HEAD + "a,1,1\n", ["--verdict=verdikt"], "; its columns are case"),
    "no_such_baseline": (HEAD + "a,1,1\n", ["--baseline=verdit"], "is no column, and no such"),
    "no_mapping": (HEAD + "a,1,1\n", ["--map=good"], "must be WORD=VALUE"),
    "report_of_no_kind": (HEAD + "a,1,1\n", ["--report=r.pdf"], "must end in .html"),
}


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    try:
        code = main(["check", "--one=violated", *arguments])
    except SystemExit as end:
        code = int(end.code or 0)
    captured = capsys.readouterr()
    return code, captured.err + captured.out


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


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_table_is_refused_with_its_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, options, message = BROKEN[name]
    table = tmp_path / "table.csv"
    table.write_bytes(content if isinstance(content, bytes) else content.encode())
    code, text = checked(capsys, str(table), *options)
    assert code == 4
    assert message in text
    assert len(text) < 10_000
    assert_is_plain(text)


def test_what_is_no_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(capsys, str(tmp_path))[0] == 4
    assert "no such file" in checked(capsys, str(tmp_path / "none.csv"))[1]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "is not a file" in checked(capsys, str(pipe))[1]
    table = tmp_path / "verdicts.json"
    table.write_text('{"label": 1, "verdict": 1}')
    assert "is the table itself" in checked(capsys, str(table), f"--report={table}")[1]
    assert table.read_text() == '{"label": 1, "verdict": 1}'


@pytest.mark.parametrize("content", [b"PK\x03\x04 no table", b"id,label\n"])
def test_a_log_is_no_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    log = tmp_path / "runs.eval"
    log.write_bytes(content)
    code, text = checked(capsys, str(log))
    assert code == 4
    assert "runs.eval: is a log; must be CSV or JSON lines" in text
    assert "inspect_ai.analysis.samples_df makes a table of it" in " ".join(text.split())


@pytest.mark.parametrize(
    ("table", "labels", "expected"),
    [
        ("id,verdict\na,0\n", "id,target\na,0\na,1\n", "labels.csv:3: target: the label of"),
        ("id,verdict\na,0\n", "id,target\nb,0\n", "has no label of a case"),
        ("name,verdict\na,0\n", "id,target\na,0\n", "name the column of their ids: --case COL"),
        ("id,rubric,verdict\na,x,0\na,y,0\n", "id,target\na,0\n", "with its rubric"),
    ],
)
def test_labels_that_do_not_fit_the_table_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str, labels: str, expected: str
) -> None:
    for name, text in (("table.csv", table), ("labels.csv", labels)):
        (tmp_path / name).write_text(text, "utf-8")
    options = [str(tmp_path / "table.csv"), f"--labels={tmp_path / 'labels.csv'}"]
    code, text = checked(capsys, *options)
    assert code == 4
    assert expected in text


@pytest.mark.parametrize("words", ["::error::x", f"lo ng ::error::x ##[error]x {ESCAPES} " * 9])
@pytest.mark.parametrize("verbosity", [(), ("-v",)])
def test_no_name_is_more_than_text_or_begins_a_line_as_a_command_of_github_does(
    words: str, verbosity: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a rubric, a judge, a case, a column, a baseline, a reason: wherever lines are wrapped."""
    table = tmp_path / "table.csv"
    rows = []
    for number in range(40):
        label, is_other = number % 3 % 2, number % 2
        rows.append(f"{words}{number},{label},{label ^ is_other},{label},{words}{is_other},{words}")
    head = f"case,label,::error::j {words},{words},rubric,reasoning\n"
    table.write_text(head + "\n".join(rows) + "\n", "utf-8")
    options = [f"--verdict=::error::j {words}".rstrip(), f"--baseline={words}".rstrip()]
    code, text = checked(capsys, str(table), *options, *verbosity)
    assert code == 1
    assert_is_plain(text)
    assert "error" in text


_ROLES = ("case", "id", "label", "gold", "verdict", "score", "judge", "run", "task", "rubric")
_OTHERS = ("epoch", "repeat", "reasoning", "x", "")
_NAMES = st.sampled_from((*_ROLES, *_OTHERS))
_WORDS = ("pass", "fail", "yes", "", " ", "a", "b", "nan", '"', "\x1b[1m", "=1")
_CELLS = st.sampled_from(("0", "1", "2", "5", "1.0", *_WORDS))


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    head=st.lists(_NAMES, min_size=1, max_size=6),
    rows=st.lists(st.lists(_CELLS, min_size=1, max_size=6), max_size=8),
    separator=st.sampled_from([",", ";", "\t"]),
)
def test_no_table_ends_in_a_traceback(
    head: list[str],
    rows: list[list[str]],
    separator: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = tmp_path / "table.csv"
    table.write_text("\n".join(separator.join(row) for row in [head, *rows]) + "\n", "utf-8")
    code, text = checked(capsys, str(table), f"--report={tmp_path / 'r.json'}")
    assert code in (0, 4)
    assert_is_plain(text)
