"""`check` on what a log has of its runs, and with labels of another file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.reports.checking import check_table
from tests.support.suites import built_log, run

VIOLATED = (2, 5)
JUDGE = "--verdict=scorer:judge"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    runs = []
    for number in range(1, 13):
        judged = {"value": "I" if number in VIOLATED else "C"}
        scores = {"judge": judged, "number": {"value": float(number % 2)}}
        if number == 12:
            scores["number"] = {"value": float("nan")}
        human = "fail" if number in (*VIOLATED, 7) else "pass"
        metadata = {"human": human, "task": f"task {number % 4}", "a/b": number % 2}
        runs.append(run(number, scores=scores, metadata=metadata))
    return Path(shutil.copy(built_log(runs), tmp_path / "runs.eval"))


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["check", "runs.eval", "-v", *arguments])
    captured = capsys.readouterr()
    return code, " ".join(captured.out.split()), " ".join(captured.err.split())


def test_a_log_alone_is_checked(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = checked(capsys, JUDGE, "--label=metadata:human", "--cluster=metadata:task")
    assert code == 0
    assert "metadata:human 12 91.7%" in out
    assert "cluster: metadata:task" in out
    assert "pass, C = satisfied; fail, I = violated" in out
    assert "a suite with suite.log: runs.eval and labels of the log" in out
    table = check_table(log, verdict="scorer:judge", label="metadata:human")
    assert len(table.results) == 12


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "no column of verdicts; scorer:judge, metadata:human, metadata:a/b look like some"),
        ((JUDGE,), "--label metadata:human or --label metadata:a/b"),
        ((JUDGE, "--label=metadata:humen"), "scorer:number, metadata:human"),
        (("--verdict=scorer:jud",), 'has no column "scorer:jud"; its columns are'),
        (
            ("--verdict=scorer:number", "--label=metadata:human"),
            "scorer:number: the values are 0 and 1",
        ),
        ((JUDGE, "--label=metadata:task"), 'runs.eval:1: metadata:task: got "task 1"'),
        ((JUDGE, "--label=human"), "its columns are id, epoch, scorer:judge, scorer:number"),
    ],
)
def test_what_a_log_does_not_say_is_refused_with_what_it_has(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], expected: str
) -> None:
    code, out, err = checked(capsys, *arguments)
    assert (code, out) == (4, "")
    assert expected in err
    assert "Traceback" not in err


@pytest.mark.usefixtures("log")
def test_a_score_that_was_left_out_is_no_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--verdict=scorer:number", "--label=metadata:human", "--map=1=0", "--map=0=1")
    code, out, _ = checked(capsys, *arguments)
    assert code == 0
    assert "metadata:human 11" in out
    assert "1 unscored" in out


@pytest.mark.parametrize("content", [b"PK\x03\x04 no archive", b"{", b"", b"id,label\n"])
def test_a_damaged_log_is_a_mistake_without_a_traceback(
    log: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    log.write_bytes(content)
    code, _, err = checked(capsys, JUDGE)
    assert code == 4
    assert err.startswith("runs.eval")


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


def test_a_log_with_labels_of_another_file(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.dumps({"id": f"run-{number}", "label": "pass"}) for number in (1, 2, 3)]
    labels = write(tmp_path / "labels.jsonl", *lines)
    code, out, _ = checked(capsys, JUDGE, f"--labels={labels}")
    assert code == 0
    assert "label 3 66.7%" in out
    assert log.is_file()
