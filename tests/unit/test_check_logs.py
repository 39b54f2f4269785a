"""`check` with labels of another file, and on a log, which is no table."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.cli.checking import check_table


@pytest.mark.parametrize("content", [b"PK\x03\x04 no table", b"id,label\n"])
def test_a_log_is_no_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    log = tmp_path / "runs.eval"
    log.write_bytes(content)
    assert main(["check", str(log)]) == 4
    err = " ".join(capsys.readouterr().err.split())
    assert "runs.eval: is a log; must be CSV or JSON lines" in err
    assert "inspect_ai.analysis.samples_df makes a table of it (docs/check.md)" in err


def write(path: Path, *lines: str) -> str:
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return str(path)


def test_labels_stand_in_a_table_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"t{number},{'true' if number % 2 else 'false'}" for number in range(8)]
    results = write(tmp_path / "results.csv", "transcript_id,value", *rows)
    targets = [f"t{number},{'true' if number in (1, 3) else 'false'}" for number in range(6)]
    validation = write(tmp_path / "validation.csv", "id,target", *targets, "other,true")
    arguments = [results, "-v", "--verdict=value", f"--labels={validation}", "--one=violated"]
    assert main(["check", *arguments]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "target 6 83.3%" in out
    assert "2 cases without a label" in out
    checked = check_table(results, verdict="value", labels=validation, one="violated")
    assert len(checked.results) - len(checked.unlabelled) == 6


@pytest.mark.parametrize(
    ("table", "labels", "expected"),
    [
        (("id,verdict", "a,0"), ("id,target", "a,0", "a,1"), "labels.csv:3: target: the label of"),
        (("id,verdict", "a,0"), ("id,target", "b,0"), "has no label of a case"),
        (("name,verdict", "a,0"), ("id,target", "a,0"), "name the column of their ids: --case COL"),
        (
            ("id,rubric,verdict", "a,x,0", "a,y,0"),
            ("id,target", "a,0"),
            "with its rubric",
        ),
        (("id,verdict", "a,0"), ("id,people", "a,x"), "no column of labels"),
        (("id,verdict", "a,0"), ("",), "labels.csv:1: is empty"),
    ],
)
def test_labels_that_do_not_fit_the_table_are_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    table: tuple[str, ...],
    labels: tuple[str, ...],
    expected: str,
) -> None:
    arguments = [write(tmp_path / "table.csv", *table)]
    arguments.append(f"--labels={write(tmp_path / 'labels.csv', *labels)}")
    arguments.append("--one=violated")
    assert main(["check", *arguments]) == 4
    err = capsys.readouterr().err
    assert expected in err
    assert "Traceback" not in err
