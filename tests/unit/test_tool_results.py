"""What `check` makes of the files in which other tools keep verdicts and labels."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.cli.checking import CheckedTable, check_table
from pytest_jrh.core.errors import InputError
from pytest_jrh.sources.labels import read_rows
from tests.support.tool_results import FILES, Said, deepeval, langfuse, mlflow, promptfoo

# By hand: 3 of 5 violations missed, 1 false alarm on 4 satisfied cases, 2 judges that failed, and 2
# verdicts without a label.
SAID: list[Said] = [
    *[(True, False)] * 3,
    *[(False, False)] * 2,
    (False, True),
    *[(True, True)] * 3,
    (None, True),
    (None, False),
    (True, None),
    (False, None),
]
LABEL = {"DeepEval": "metadata.human"}


def as_lines(value: Any) -> str:
    return "".join(f"{json.dumps(one)}\n" for one in value)


def as_csv(value: Sequence[dict[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(value[0]))
    writer.writeheader()
    writer.writerows(value)
    return file.getvalue()


WAYS: dict[str, Callable[[Any], str]] = {
    "one line": json.dumps,
    "pretty": lambda value: json.dumps(value, indent=2),
    "lines": as_lines,
    "csv": as_csv,
}


def written(tmp_path: Path, text: str, name: str = "results.json") -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def checked(tmp_path: Path, tool: str, text: str, **settings: Any) -> CheckedTable:
    settings = {"one": "passed", "label": LABEL.get(tool, ""), **settings}
    return check_table(written(tmp_path, text), **settings)


def counts(table: CheckedTable) -> dict[str, int]:
    """How many cases there are of each class and outcome."""
    counted = Counter(f"{result.label} {result.outcome}" for result in table.results)
    return dict(counted)


def ways_of(tool: str) -> list[str]:
    number = {"Langfuse": 4, "LangSmith": 3, "MLflow": 3, "MLflow rows": 3}.get(tool, 2)
    return [*WAYS][:number]


@pytest.mark.parametrize(("tool", "way"), [(tool, way) for tool in FILES for way in ways_of(tool)])
def test_figures_are_those_of_a_count_by_hand(tmp_path: Path, tool: str, way: str) -> None:
    table = checked(tmp_path, tool, WAYS[way](FILES[tool](SAID)))
    expected = {"1 disagree": 3, "1 agree": 2, "0 disagree": 1, "0 agree": 3}
    found = counts(table)
    assert {name: found[name] for name in expected} == expected
    assert sum(result.outcome == "unlabelled" for result in table.results) == 2
    # Langfuse keeps no word of a judge that failed.
    unscored = [result for result in table.results if result.outcome == "invalid_response"]
    assert len(unscored) == (0 if tool.startswith("Langfuse") else 2)
    reasons = {reason for result in table.results for reason in result.reasons}
    assert reasons == {"Because."}
    assert {result.rubric_id.removesuffix(" [GEval]") for result in table.results} == {"polite"}


def test_results_of_promptfoo_as_lines(tmp_path: Path) -> None:
    results = promptfoo(SAID)["results"]["results"]
    assert counts(checked(tmp_path, "promptfoo", as_lines(results)))["1 disagree"] == 3


@pytest.mark.parametrize("tool", FILES)
def test_what_is_not_read_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tool: str
) -> None:
    path = written(tmp_path, json.dumps(FILES[tool](SAID)))
    label = f"--label={LABEL[tool]}" if tool in LABEL else "-v"
    assert main(["check", path, "--one=passed", label]) == 0
    said = {
        "promptfoo": "outputs with an error or without a grade (1), assertions that no model",
        "DeepEval": "metrics that no model judges (13).",
        "Langfuse": "texts and corrections (1).",
        "Langfuse v3": "texts and corrections (1).",
        "MLflow": "expectations and issues (13).",
        "MLflow rows": "expectations and issues (13).",
        "LangSmith": "2 judgements failed: unscored, and no verdict.",
    }
    out = " ".join(capsys.readouterr().out.split())
    assert said[tool] in out
    if tool not in ("Langfuse", "Langfuse v3"):
        assert "2 judgements failed" in out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What `check` says where it ends with exit code 4, on one line."""
    assert main(["check", *arguments]) == 4
    return " ".join(capsys.readouterr().err.split())


def entries_of(document: Any) -> list[Any]:
    """The list of entries in a document."""
    if isinstance(document, list):
        return document
    for name in ("results", "testCases", "data"):
        if name in document:
            return entries_of(document[name])
    raise AssertionError(document)


def everywhere(value: Any, change: Callable[[str, Any], Any]) -> Any:
    """A value with what `change` makes of each key of it, however deep; `...` removes it."""
    if isinstance(value, list):
        return [everywhere(inner, change) for inner in value]
    if not isinstance(value, dict):
        return value
    changed = {name: change(name, everywhere(inner, change)) for name, inner in value.items()}
    return {name: inner for name, inner in changed.items() if inner is not ...}


def without(*names: str) -> Callable[[Any], Any]:
    return lambda value: everywhere(value, lambda name, inner: ... if name in names else inner)


def with_value(other: object, *names: str) -> Callable[[Any], Any]:
    return lambda value: everywhere(value, lambda name, inner: other if name in names else inner)


def emptied(value: Any) -> Any:
    entries_of(value).clear()
    return value


def nulls(value: Any) -> Any:
    entries_of(value)[:] = [None, None]
    return value


SUBJECTS = ("vars", "name", "traceId", "subject", "trace_id", "info", "run_id", "metricsData")
VALUES = ("pass", "success", "score", "value", "stringValue", "feedback", "metricsData")
SOURCES = ("componentResults", "evaluationModel", "source", "assessments", "feedback_source")
BROKEN_VALUES: dict[str, Callable[[Any], Any]] = {
    "no entries": emptied,
    "entries that are nothing": nulls,
    "no subject": without(*SUBJECTS),
    "subjects of another kind": with_value(7, *SUBJECTS),
    "subjects that are lists": with_value([], *SUBJECTS),
    "no value": without(*VALUES),
    "values that are lists": with_value([1], *VALUES),
    "values that are mappings": with_value({"a": {}}, *VALUES),
    "no source": without(*SOURCES),
    "sources of an unknown word": with_value("SOMEBODY", *SOURCES),
    "sources that are numbers": with_value(7, *SOURCES),
}
BROKEN_TEXTS: dict[str, Callable[[str], str]] = {
    "empty": lambda _: "",
    "cut": lambda text: text[: len(text) // 2],
    "cut in its last line": lambda text: text[:-2],
    "more behind it": lambda text: text + "\nand more",
    "twice": lambda text: text + text,
    "a duplicate key": lambda text: re.sub(r'("\w+"): ', r"\1: 0, \1: ", text, count=1),
    "NaN": lambda text: text.replace(": true", ": NaN", 1).replace(": 1", ": NaN", 1),
    "a NUL": lambda text: text.replace("polite", "pol\0ite", 1),
    "too deep": lambda text: text.replace('"polite', "[" * 3000 + '"polite', 1),
    "in quotes": json.dumps,
    "only numbers": lambda _: "[1, 2, 3]",
    "an empty document": lambda _: "{}",
    "an unknown document": lambda _: json.dumps({"data": {"rows": []}, "version": 9}),
    "a page": lambda _: "<!DOCTYPE html>\n<p>Sign in</p>\n",
}


# Its judges are named as their models are.
NO_DAMAGE = ("DeepEval", "sources of an unknown word")
DAMAGES = [(tool, damage) for tool in FILES for damage in (*BROKEN_VALUES, *BROKEN_TEXTS)]


@pytest.mark.parametrize(("tool", "damage"), [pair for pair in DAMAGES if pair != NO_DAMAGE])
def test_a_damaged_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tool: str, damage: str
) -> None:
    document = FILES[tool](SAID)
    if damage in BROKEN_VALUES:
        text = json.dumps(BROKEN_VALUES[damage](document), indent=1)
    else:
        text = BROKEN_TEXTS[damage](json.dumps(document, indent=1))
    label = [f"--label={LABEL[tool]}"] if tool in LABEL else []
    said = refused(capsys, written(tmp_path, text), "--one=passed", *label)
    assert "results.json" in said
    assert len(said) < 2_000


ODD: tuple[Any, ...] = (None, 7, True, "x", "\ud800", [], [{}], {}, {"id": 1}, 1e308, ...)


@pytest.mark.parametrize("tool", FILES)
def test_no_value_of_a_file_ends_in_a_traceback(tmp_path: Path, tool: str) -> None:
    document = FILES[tool]([(True, False), (None, True)])
    names = {*re.findall(r'"(\w+)": ', json.dumps(document))}
    for name in sorted(names):
        for odd in ODD:
            changed = with_value(odd, name)(document)
            with contextlib.suppress(InputError):
                checked(tmp_path, tool, json.dumps(changed))


def test_results_without_a_label_say_what_they_support_and_what_is_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, json.dumps(promptfoo([(passed, None) for passed, _ in SAID])))
    said = refused(capsys, "results.json")
    assert "promptfoo's results hold no verdict beside a label of a person" in said
    assert "of judges: polite (13), on 13 cases" in said
    assert "label cases: python -m pytest_jrh label results.json" in said
    assert "python -m pytest_jrh check results.json --labels FILE" in said
    labels = "".join(f"test {number + 1},polite,violated,ann\n" for number in range(4))
    written(tmp_path, f"case_id,rubric_id,label,annotator\n{labels}", "labels.csv")
    assert counts(check_table("results.json", labels="labels.csv"))["1 agree"] == 1
    written(tmp_path, "id,label\n" + "test 1,pass\n", "labels.csv")
    assert counts(check_table("results.json", labels="labels.csv"))["0 agree"] == 1


def test_a_label_stands_in_a_variable_or_in_metadata(tmp_path: Path) -> None:
    table = checked(tmp_path, "", json.dumps(promptfoo(SAID)), label="vars.human")
    assert counts(table)["1 disagree"] == 3 + 1
    assert table.columns.label == "vars.human"


def outputs_with(parts: list[dict[str, Any]], number: int = 4) -> str:
    """Results of promptfoo, each with these assertions."""
    document = promptfoo([(True, None)] * number)
    for entry in document["results"]["results"][:-1]:
        entry["gradingResult"]["componentResults"] = parts
    return json.dumps(document)


def assertion(kind: str, value: str = "", *, passed: bool = True, **more: Any) -> dict[str, Any]:
    return {"assertion": {"type": kind, "value": value, **more}, "pass": passed, "score": 1}


def test_each_question_of_promptfoo_is_a_rubric(tmp_path: Path) -> None:
    parts = [
        assertion("llm-rubric", "is polite"),
        assertion("llm-rubric", "is polite"),
        assertion("not-llm-rubric", "is rude", metric="calm"),
        {**assertion("g-eval"), "assertion": {"type": "g-eval", "value": ["a", "b"]}},
        {"pass": True, "score": 1, "componentResults": [assertion("factuality", "in a set")]},
        assertion("factuality", "in a set", passed=False),
        assertion("promptfoo:redteam:harmful", metric="Harmful"),
        assertion("human", passed=False),
    ]
    table = checked(tmp_path, "promptfoo", outputs_with(parts))
    # A grade is about the whole output, and so is what all say.
    assert counts(table) == {"1 agree": 4}
    assert {result.rubric_id for result in table.results} == {"all judgements"}
    [notice] = [notice for notice in table.table.notices if "No person" in notice]
    names = "llm-rubric: is polite (4), llm-rubric: is polite (2) (4), calm (4), g-eval (4), "
    assert f"{names}factuality: in a set (4), Harmful (4)" in notice


def test_outputs_and_repeats_of_a_test_are_cases_that_go_together(tmp_path: Path) -> None:
    document = promptfoo([(True, True)] * 4)
    for number, entry in enumerate(document["results"]["results"][:-1]):
        entry |= {"testIdx": number // 2, "promptIdx": number % 2, "vars": {"id": "q"}}
    table = checked(tmp_path, "promptfoo", json.dumps(document))
    names = ["q, output 1", "q, output 2", "q, output 1 (2)", "q, output 2 (2)"]
    assert [result.spec.run_id for result in table.results] == names
    assert {result.spec.cluster for result in table.results} == {"q"}


def test_older_names_of_deepeval_are_read(tmp_path: Path) -> None:
    text = json.dumps(deepeval(SAID)).replace('"metricsData"', '"metricsMetadata"')
    text = text.replace('"name": "polite', '"metric": "polite')
    assert counts(checked(tmp_path, "DeepEval", text))["1 disagree"] == 3
    wrapped = json.dumps({"testRunData": deepeval(SAID)})
    assert counts(checked(tmp_path, "DeepEval", wrapped))["1 disagree"] == 3


def test_judges_of_one_metric_stand_beside_each_other_and_are_held_against_before(
    tmp_path: Path,
) -> None:
    document = deepeval([(True, True), (False, False)] * 20)
    for case in document["testCases"]:
        other = {**case["metricsData"][0], "evaluationModel": "other", "success": True}
        case["metricsData"].append(other)
    table = checked(tmp_path, "DeepEval", json.dumps(document))
    assert sorted({result.rubric_id for result in table.results}) == ["polite [GEval]"]
    assert table.judge_names == ("judge", "other")
    before = written(
        tmp_path, json.dumps(deepeval([(True, True), (False, False)] * 20)), "old.json"
    )
    lost = json.dumps(deepeval([(True, True), (True, False)] * 20))
    decided = checked(tmp_path, "DeepEval", lost, baseline=before)
    assert decided.decision is not None
    assert not decided.passed


def scored(name: str, source: str, values: Sequence[bool]) -> list[dict[str, Any]]:
    """Scores of Langfuse of one name and source."""
    document = langfuse([(value, None) for value in values])[:-1]
    return [{**one, "id": name, "name": name, "source": source} for one in document]


def test_what_is_the_label_of_what_is_named_where_names_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = json.dumps(
        scored("tone", "EVAL", [True, False, True])
        + scored("tone-2", "API", [True, True, False])
        + scored("reviewed", "ANNOTATION", [True, False, False])
    )
    said = refused(capsys, written(tmp_path, text), "--one=passed")
    assert "of judges: tone (3), on 3 cases of people: reviewed (3), on 3 cases" in said
    assert "of unknown sources: tone-2 (3), on 3 cases" in said
    assert "--verdict tone --label reviewed" in said
    table = checked(tmp_path, "", text, verdict=["tone", "tone-2"], label="reviewed")
    assert table.judge_names == ("tone", "tone-2")
    assert counts(table) == {"0 agree": 2, "1 agree": 2, "1 disagree": 2}
    assert checked(tmp_path, "", text, label="reviewed").judge_names == ("tone",)
    held = checked(tmp_path, "", text, verdict="tone", label="reviewed", baseline="tone-2")
    assert held.judge_names == ("tone",)
    with pytest.raises(InputError, match='has no column "tune"'):
        checked(tmp_path, "", text, verdict="tune", label="reviewed")


def test_the_scale_of_a_score_is_not_guessed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, json.dumps(langfuse(SAID)))
    assert "nothing says what 1 means" in refused(capsys, path)
    assert counts(check_table(path, one="violated"))["0 disagree"] == 3
    words = json.dumps(langfuse(SAID)).replace("BOOLEAN", "CATEGORICAL").replace("True", "kind")
    table = checked(tmp_path, "", words, map={"kind": 0, "False": 1}, one="")
    assert counts(table)["1 disagree"] == 3
    text = (
        json.dumps(langfuse(SAID))
        .replace("BOOLEAN", "NUMERIC")
        .replace('"value": 1', '"value": 0.5')
    )
    said = refused(capsys, written(tmp_path, text), "--one=passed")
    assert 'results.json: [0].verdict: got "0.5"' in said


def test_a_score_of_the_only_observation_is_one_of_the_trace(tmp_path: Path) -> None:
    document = langfuse(SAID)
    second = {**document[0], "observationId": "another", "id": "more", "source": "EVAL"}
    table = checked(tmp_path, "Langfuse", json.dumps([*document, second]))
    assert counts(table)["1 disagree"] == 2
    assert len({result.spec.cluster for result in table.results}) == len(SAID) - 2


def test_what_several_people_say_is_joined(tmp_path: Path) -> None:
    document = mlflow([(True, True)] * 3)
    for number, trace in enumerate(document):
        assessments = trace["info"]["assessments"]
        for name, value in (("ben", number == 0), ("cy", number != 2)):
            source = {"source_type": "HUMAN", "source_id": name}
            said = {"assessment_id": name, "source": source, "feedback": {"value": value}}
            assessments.append({**assessments[1], **said})
    table = checked(tmp_path, "MLflow", json.dumps(document))
    assert [result.label for result in table.results] == [0, 0, 1]
    later = {**document[0]["info"]["assessments"][1], "feedback": {"value": False}}
    later |= {"assessment_id": "later", "last_update_time": "2026-06-01T10:00:00.000Z"}
    document[1]["info"]["assessments"].append(later)
    table = checked(tmp_path, "MLflow", json.dumps(document))
    assert [result.label for result in table.results] == [0, 1, 1]


def test_labels_of_a_suite_come_from_results(tmp_path: Path) -> None:
    read = read_rows(Path(written(tmp_path, json.dumps(promptfoo(SAID)))), "results.json")
    assert Counter(row.label for row in read.rows) == {"satisfied": 5, "violated": 6}
    assert (read.rows[0].run_id, read.rows[0].rubric_id) == ("test 1", "polite")
    assert not read.is_raw
    read = read_rows(Path(written(tmp_path, json.dumps(mlflow(SAID)))), "results.json")
    assert Counter(row.label for row in read.rows) == {True: 5, False: 6}
    assert read.is_raw
    assert {row.annotator for row in read.rows} == {"human"}
    no_labels = json.dumps(deepeval(SAID))
    with pytest.raises(InputError, match="hold no verdict beside a label"):
        read_rows(Path(written(tmp_path, no_labels)), "results.json")


@pytest.mark.parametrize("tool", FILES)
def test_no_text_of_a_file_reaches_the_terminal_as_more_than_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tool: str
) -> None:
    evil = "\x1b]0;x\x07\n::error::x\u202e" + "long " * 200
    text = json.dumps(
        everywhere(
            FILES[tool](SAID),
            lambda name, inner: (
                f"{inner}{evil}" if isinstance(inner, str) and name not in KEPT else inner
            ),
        )
    )
    main(["check", written(tmp_path, text), "--one=passed", f"--report={tmp_path / 'r.md'}"])
    captured = capsys.readouterr()
    for line in (captured.out + captured.err).splitlines():
        assert line.isprintable()
        assert not line.lstrip().startswith("::")


KEPT = ("type", "source", "source_type", "dataType", "kind", "pass")
