"""What `check` makes of the files in which other tools keep verdicts and labels, and of labels that
stand for several cases: drawn by what a judge said, read, and in all figures."""

import contextlib
import csv
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.cli import label
from pytest_jrh.cli.checking import CheckedTable, check_table
from pytest_jrh.core import InputError
from pytest_jrh.people.labels import read_rows
from pytest_jrh.store.ledger import table_bytes
from tests.support.sessions import as_text
from tests.support.tool_results import FAILURES, FILES, Said, deepeval, langfuse, mlflow, promptfoo

FILE = "results.json"
# By hand: 3 of 5 violations missed, 1 false alarm on 4 satisfied cases, 2 judges that failed, and 2
# verdicts without a label.
SAID: list[Said] = [*[(True, False)] * 3, *[(False, False)] * 2, (False, True), *[(True, True)] * 3]
SAID += [(None, True), (None, False), (True, None), (False, None)]
BY_HAND = {"1 disagree": 3, "1 agree": 2, "0 disagree": 1, "0 agree": 3, "None unlabelled": 2}
LABEL = {"DeepEval": "metadata.human"}
Check = Callable[..., str]


pytestmark = pytest.mark.usefixtures("in_tmp_path")


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Check:
    """What `check` prints of a file where it ends with an exit code, on one line."""

    def printed(value: Any, *options: str, code: int = 4) -> str:
        assert main(["check", written(value), *options]) == code
        printed = capsys.readouterr()
        return " ".join((printed.err if code == 4 else printed.out).split())

    return printed


def as_csv(value: Sequence[dict[str, Any]]) -> str:
    return table_bytes([*value[0]], value).decode()


WAYS: list[Callable[[Any], str]] = [json.dumps, partial(json.dumps, indent=2), as_text, as_csv]
HOW_MANY = {"Langfuse": 4, "LangSmith": 3, "MLflow": 3, "MLflow rows": 3}
NOT_READ = {
    "promptfoo": "1 part with an error or without a grade.",
    "DeepEval": "If one of them is a judge's, pass --verdict 'Exact Match'",
    "Langfuse": "with a text or a correction as the score",
    "MLflow": "13 parts with an expectation or an issue.",
    "LangSmith": "",
}


def written(value: Any, name: str = FILE) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    Path(name).write_text(text, encoding="utf-8")
    return name


def checked(tool: str, value: Any, **settings: Any) -> CheckedTable:
    settings = {"one": "passed", "label": LABEL.get(tool, ""), **settings}
    return check_table(written(value), **settings)


def counts(table: CheckedTable) -> dict[str, int]:
    """How many cases there are of each class and outcome."""
    return dict(Counter(f"{result.label} {result.outcome}" for result in table.results))


@pytest.mark.parametrize("tool", FILES)
def test_figures_are_those_of_a_count_by_hand_and_what_is_not_read_is_counted(tool: str) -> None:
    document = FILES[tool](SAID)
    texts = [way(document) for way in WAYS[: HOW_MANY.get(tool, 2)]]
    if tool == "promptfoo":
        # As its JSON lines are; and with its default judge, which has no name.
        default = with_value(..., "provider")(document)
        texts += [as_text(document["results"]["results"]), json.dumps(default)]
    if tool == "DeepEval":
        texts += [json.dumps({"testRunData": document})]
    # Langfuse keeps no word of a judge that failed.
    failed = {} if "Langfuse" in tool else {"0 invalid_response": 1, "1 invalid_response": 1}
    for text in texts:
        table = checked(tool, text)
        assert counts(table) == {**BY_HAND, **failed}
        assert {result.reasons for result in table.results if result.scores} == {("Because.",)}
        rubrics = {result.rubric_id.removesuffix(" [GEval]") for result in table.results}
        assert rubrics == {"polite"}
        notices = " ".join(table.table.notices)
        assert NOT_READ[tool.partition(" ")[0]] in notices
        assert ("2 judgements failed and gave no verdict." in notices) is bool(failed)


def everywhere(value: Any, change: Callable[[str, Any], Any]) -> Any:
    """A value with what `change` makes of each key of it, however deep; `...` removes it."""
    if isinstance(value, list):
        return [everywhere(inner, change) for inner in value]
    if not isinstance(value, dict):
        return value
    changed = {name: change(name, everywhere(inner, change)) for name, inner in value.items()}
    return {name: inner for name, inner in changed.items() if inner is not ...}


def with_value(other: object, *names: str) -> Callable[[Any], Any]:
    return lambda value: everywhere(value, lambda name, inner: other if name in names else inner)


SUBJECTS = ("vars", "name", "traceId", "subject", "trace_id", "info", "run_id", "metricsData")
VALUES = ("pass", "success", "score", "value", "stringValue", "feedback", "metricsData")
SOURCES = ("componentResults", "evaluationModel", "source", "assessments", "feedback_source")
# What stands in the place of keys; `...` is nothing.
PLACES: dict[str, tuple[tuple[str, ...], list[Any]]] = {
    "subject": (SUBJECTS, [..., 7, []]),
    "value": (VALUES, [..., [1], {"a": {}}]),
    "source": (SOURCES, [..., "SOMEBODY", 7]),
}
BROKEN_VALUES = {
    f"{place} {other}": with_value(other, *names)
    for place, (names, others) in PLACES.items()
    for other in others
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
NO_DAMAGE = ("DeepEval", "source SOMEBODY")
DAMAGES = [(tool, damage) for tool in FILES for damage in (*BROKEN_VALUES, *BROKEN_TEXTS)]


@pytest.mark.parametrize(("tool", "damage"), [pair for pair in DAMAGES if pair != NO_DAMAGE])
def test_a_damaged_file_is_refused(check: Check, tool: str, damage: str) -> None:
    document = FILES[tool](SAID)
    if damage in BROKEN_VALUES:
        text = json.dumps(BROKEN_VALUES[damage](document), indent=1)
    else:
        text = BROKEN_TEXTS[damage](json.dumps(document, indent=1))
    said = check(text, "--one=passed", f"--label={LABEL.get(tool, '')}")
    assert FILE in said
    assert len(said) < 2_000


ODD: tuple[Any, ...] = (None, 7, True, "x", "\ud800", [], [{}], {}, {"id": 1}, 1e308, ...)


@pytest.mark.parametrize("tool", FILES)
def test_no_value_of_a_file_ends_in_a_traceback(tool: str) -> None:
    document = FILES[tool]([(True, False), (None, True)])
    for name in sorted({*re.findall(r'"(\w+)": ', json.dumps(document))}):
        for odd in ODD:
            with contextlib.suppress(InputError):
                checked(tool, with_value(odd, name)(document))


def test_results_without_a_label_say_what_they_support_and_what_is_next(check: Check) -> None:
    said = check(promptfoo([(passed, None) for passed, _ in SAID]))
    assert "promptfoo's results have no output with both a verdict and a person's label" in said
    assert 'by judges: 13 of "polite", on 13 cases' in said
    for command in (
        f"label {FILE}",
        f"check {FILE} --labels labels.csv",
        f"check {FILE} --verdict ",
    ):
        assert f"python -m pytest_jrh {command}" in said
    written("id,label\ntest 1,pass\ntest 99,pass\n", "labels.csv")
    assert counts(check_table(FILE, labels="labels.csv"))["0 agree"] == 1
    said = check(Path(FILE).read_text("utf-8"), "--labels=labels.csv", code=0)
    assert "The figures ignore 1 label of cases without a verdict." in said


PROMPTFOO_CSV = "n,[bot] Answer,Status,Score,Named Scores,Grader Reason\n1,So.,PASS,1.0,,\n"
NO_V3_SUBJECT = with_value(..., "subject")(FILES["Langfuse v3"](SAID))
NUMERIC = json.dumps(langfuse(SAID)).replace("BOOLEAN", "NUMERIC").replace(": 1", ": 0.5")


@pytest.mark.parametrize(
    ("document", "options", "said"),
    [
        (
            langfuse([(None, True)]),
            ["--one=passed"],
            "name verdicts, too: python -m pytest_jrh check VERDICTS --labels ",
        ),
        (PROMPTFOO_CSV, [], "promptfoo's results have no output with both a verdict"),
        (PROMPTFOO_CSV, [], "1 part in CSV (export the results as JSON instead)"),
        (NO_V3_SUBJECT, ["--one=passed"], "23 parts without traceId (with v3 of"),
        (langfuse(SAID), [], "nothing says what 1 means"),
        (NUMERIC, ["--one=passed"], f'{FILE}: [0].verdict: got "0.5"'),
    ],
)
def test_what_to_do_is_said(check: Check, document: Any, options: list[str], said: str) -> None:
    assert said in check(document, *options)


def outputs_with(*parts: dict[str, Any], number: int = 4) -> Any:
    """Results of promptfoo, each with these assertions."""
    document = promptfoo([(True, None)] * number)
    for entry in document["results"]["results"][:-1]:
        entry["gradingResult"]["componentResults"] = parts
    return document


def assertion(kind: str, value: Any = "", *, passed: bool = True, **more: Any) -> dict[str, Any]:
    return {"assertion": {"type": kind, "value": value, **more}, "pass": passed, "score": 1}


def test_a_label_stands_in_a_variable_or_in_metadata() -> None:
    results = outputs_with(assertion("llm-rubric"), assertion("g-eval"), assertion("human"))
    # The label may be one of another file, too; a grade is not asked for.
    for labels in ("", written(results, "labels.json")):
        table = checked("", results, label="vars.human", labels=labels)
        assert counts(table) == {"1 disagree": 3 * 4}
        assert table.table.columns.label == "vars.human"


def test_each_question_of_promptfoo_is_a_rubric() -> None:
    results = outputs_with(
        assertion("llm-rubric", "is polite"),
        assertion("llm-rubric", "is polite"),
        assertion("not-llm-rubric", "is rude", metric="calm"),
        assertion("g-eval", ["a", "b"]),
        {"pass": True, "score": 1, "componentResults": [assertion("factuality", "in a set")]},
        assertion("factuality", "in a set", passed=False),
        assertion("promptfoo:redteam:harmful", metric="Harmful"),
        assertion("human", passed=False),
    )
    table = checked("promptfoo", results)
    # A grade is about the whole output, and so is what all say.
    assert counts(table) == {"1 agree": 4}
    assert {result.rubric_id for result in table.results} == {"all judgements"}
    [notice] = [notice for notice in table.table.notices if "nobody labelled" in notice]
    names = '4 of "llm-rubric: is polite", 4 of "llm-rubric: is polite (2)", 4 of "calm", '
    assert f'{names}4 of "g-eval", 4 of "factuality: in a set", 4 of "Harmful"' in notice


def test_outputs_and_repeats_of_a_test_are_cases_that_go_together() -> None:
    document = promptfoo([(True, True)] * 6)
    for number, entry in enumerate(document["results"]["results"][:-1]):
        test = "q" if number < 4 else "p"
        entry |= {"testIdx": number // 2, "promptIdx": number % 2, "vars": {"id": test}}
    table = checked("promptfoo", document)
    names = [f"q, output {output} (repeat {repeat})" for repeat in (1, 2) for output in (1, 2)]
    names += ["p, output 1", "p, output 2"]
    assert [result.spec.run_id for result in table.results] == names
    assert [result.spec.cluster for result in table.results] == [*"qqqqpp"]


@pytest.mark.parametrize("where", ["vars", "metadata"])
def test_equal_outputs_of_a_repeated_test_are_one_case(check: Check, where: str) -> None:
    """A label of the test's id is of all its repeats, or of none where they answer differently."""
    written("id,label\nc0,fail\nc1,pass\n", "labels.csv")
    document = promptfoo([(True, None), (False, None), (True, None)] * 2)
    for number, entry in enumerate(document["results"]["results"][:-1]):
        entry |= {"vars": {}, "prompt": {"raw": "?"}, "response": {"output": "So."}}
        of_test = entry if where == "vars" else entry["testCase"]
        of_test[where] = {"id": f"c{number // 3}"}
    table = checked("", document, labels="labels.csv")
    scores = {result.run_id: (result.label, result.complete_scores) for result in table.results}
    assert scores == {"c0": (1, (0, 1, 0)), "c1": (0, (0, 1, 0))}
    assert table.table.columns.taken()["repeat"] == ["repeat"]
    document["results"]["results"][1]["response"] = {"output": "Or so."}
    table = checked("", document, labels="labels.csv")
    labels = {result.run_id: result.label for result in table.results}
    assert labels == dict.fromkeys((f"c0 (repeat {n})" for n in (1, 2, 3)), None) | {"c1": 0}
    assert "Different outputs share 1 id: c0. Each" in " ".join(table.table.notices)


@pytest.mark.parametrize("kind", ["python", "javascript", "webhook"])
def test_a_judge_that_is_code_is_named(check: Check, kind: str) -> None:
    document = outputs_with(assertion(kind, "file://judge", metric="polite"), assertion("human"))
    said = check(document)
    assert f"check {FILE} --verdict NAME" in said
    table = checked("promptfoo", document, verdict="polite")
    assert counts(table) == {"0 agree": 4}
    own = with_value(..., "evaluationModel")(deepeval([(True, True), (True, False)]))
    table = checked("DeepEval", own, verdict="polite [GEval]")
    assert counts(table) == {"0 agree": 1, "1 disagree": 1}


def at_time(entries: Sequence[Any], time: str) -> list[Any]:
    """The same at another time."""
    times = ("timestamp", "created_at", "create_time")
    entries = everywhere(entries, lambda name, inner: time if name in times else inner)
    return [{**entry, "created_at": time, "id": f"{entry.get('id')} {time}"} for entry in entries]


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("tool", ["Langfuse", "LangSmith", "MLflow"])
def test_of_two_verdicts_of_a_judge_the_later_one_counts(tool: str, is_first: bool) -> None:
    """The evaluator was mended and run again: what it said before is no repeat."""
    before, after = "2026-05-01T10:00:00.500Z", "2026-05-01T12:00:00+01:00"
    earlier = at_time(FILES[tool]([(False, None)] * 4), before)
    later = at_time(FILES[tool]([(True, True)] * 4), after)
    if tool == "MLflow":
        for one, other in zip(later, earlier, strict=True):
            said = other["info"]["assessments"][0] | {"create_time": before}
            one["info"]["assessments"][0]["create_time"] = after
            one["info"]["assessments"].insert(not is_first, said)
        earlier = []
    table = checked(tool, earlier + later if is_first else later + earlier)
    assert counts(table) == {"0 agree": 4}
    assert "4 earlier verdicts not used, because the judge judged the same case again later." in (
        table.table.notices
    )


HOSTILE_PAGES = (1, "1\n::error::x", {"a": "\x1b[2J"}, None)
PAGES: list[dict[str, Any]] = [
    {"meta": {"page": 1, "limit": 50, "totalItems": 120, "totalPages": 3}},
    {"meta": {"limit": 50, "cursor": "eyJ"}},
    {"nextCursor": "eyJ"},
    {"next_page_token": "eyJ"},
    *({"meta": {"page": page, "totalPages": 3}} for page in HOSTILE_PAGES),
]


@pytest.mark.parametrize("rest", PAGES)
def test_a_page_of_several_says_so_in_one_line(rest: dict[str, Any]) -> None:
    document = {"data": langfuse([(True, True), (False, False)]), **rest}
    [notice] = [one for one in checked("Langfuse", document).table.notices if "page" in one]
    assert notice.startswith("This file is only one page of Langfuse's answer: ")
    assert notice.isprintable()
    whole = {**document, "nextCursor": None, "meta": {"page": 1, "totalPages": 1}}
    whole["next_page_token"] = ""
    assert not any("page" in one for one in checked("Langfuse", whole).table.notices)


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("tool", ["Langfuse", "Langfuse v3", "LangSmith", "MLflow", "MLflow rows"])
def test_an_entry_that_is_there_twice_is_refused_and_no_repeat(tool: str, again: bool) -> None:
    """Two exports, one behind the other; the later one may say another thing."""
    document, later = FILES[tool]([(True, True), (False, False)]), FILES[tool]([(again, again)])
    if tool == "Langfuse v3":
        document, later = document["data"], later["data"]
    with pytest.raises(InputError, match=r"entries have the id \S+\n    keep one of the"):
        checked(tool, [*document, later[0]])
    assert counts(checked(tool, document)) == {"0 agree": 1, "1 agree": 1}


def test_a_score_or_grades_that_contradict_each_other_are_none() -> None:
    for value, word in ((1, "False"), (0, "True"), (True, "false")):
        scores = langfuse([(True, True), (False, False), (True, True)])
        scores[4] |= {"value": value, "stringValue": word}
        table = checked("Langfuse", scores)
        assert counts(table) == {"0 agree": 1, "1 agree": 1}
        notice = "1 part without a value, or with two different values"
        assert notice in " ".join(table.table.notices)
    for grades in ((True, False), (False, True), (True, True, False)):
        document = promptfoo([(True, True), (False, False), (True, None)])
        parts = document["results"]["results"][2]["gradingResult"]["componentResults"]
        parts += [assertion("human", passed=grade) for grade in grades]
        table = checked("promptfoo", document)
        assert counts(table) == {"0 agree": 1, "1 agree": 1, "None unlabelled": 1}
        assert "1 part with people's grades that contradict" in " ".join(table.table.notices)


def test_a_grader_of_promptfoo_that_fails_is_no_verdict() -> None:
    def outcomes(*, passed: bool, **more: Any) -> dict[str, int]:
        graded = assertion("not-factuality", passed=passed) | more
        return counts(checked("promptfoo", outputs_with(graded, assertion("human"))))

    for failure in FAILURES:
        for passed in (True, False):
            assert outcomes(passed=passed, **failure) == {"0 invalid_response": 4}
    assert outcomes(passed=False, reason="The API error is shown.") == {"0 disagree": 4}


@pytest.mark.parametrize("tool", ["promptfoo", "DeepEval"])
def test_the_number_beside_a_verdict_is_read_at_a_threshold(check: Check, tool: str) -> None:
    results = FILES[tool](SAID)
    numbers = partial(checked, tool, results, verdict="metric_score")
    assert counts(numbers(threshold=0.6)) == counts(checked(tool, results))
    assert counts(numbers(threshold=0.2))["1 disagree"] == 5
    said = check(results, "--threshold=0.6", f"--label={LABEL.get(tool, '')}")
    assert "but no verdict is a number name a column of such numbers: --verdict" in said


def test_cases_of_one_name_are_not_one_case() -> None:
    document = deepeval([(True, True)] * 4)
    for case, name in zip(document["testCases"], ("a", "a (2)", "a", "a"), strict=True):
        case["name"] = name
    names = [result.run_id for result in checked("DeepEval", document).results]
    assert names == ["a (repeat 1)", "a (2)", "a (repeat 2)", "a (repeat 3)"]


def test_judges_of_one_metric_stand_beside_each_other_and_are_held_against_before() -> None:
    before = deepeval([(True, True), (False, False)] * 20)
    document = deepeval([(True, True), (False, False)] * 20)
    for case in document["testCases"]:
        first = case["metricsData"][0]
        case["metricsData"].append({**first, "evaluationModel": "other", "success": True})
    table = checked("DeepEval", document)
    assert {result.rubric_id for result in table.results} == {"polite [GEval]"}
    assert table.judge_names == ["judge", "other"]
    assert [panel.accuracy.n for panel in table.session.panels] == [40]
    lost = deepeval([(True, True), (True, False)] * 20)
    decided = checked("DeepEval", lost, baseline=written(before, "old.json"))
    assert decided.decision is not None
    assert not decided.passed
    # Judges of other cases are no panel.
    for number, case in enumerate(document["testCases"]):
        case["metricsData"].pop(2 * (number % 2))
    table = checked("DeepEval", document)
    assert ({*table.judge_names}, table.session.panels) == ({"judge", "other"}, ())


def scored(name: str, source: str, values: Sequence[bool]) -> list[Any]:
    """Scores of Langfuse of one name and source."""
    document = langfuse([(value, None) for value in values])[:-1]
    about = {"name": name, "source": source}
    return [{**one, "id": f"{name}-{one['id']}", **about} for one in document]


def test_what_is_the_label_of_what_is_named_where_names_differ(check: Check) -> None:
    results = scored("tone", "EVAL", [True, False, True])
    results += scored("tone-2", "API", [True, True, False])
    results += scored("reviewed", "ANNOTATION", [True, False, False])
    said = check(results, "--one=passed")
    assert 'by judges: 3 of "tone", on 3 cases scores by people: 3 of "reviewed", on' in said
    assert 'source (judge or person) is not known: 3 of "tone-2", on 3 cases' in said
    table = checked("", results, verdict=["tone", "tone-2"], label="reviewed")
    assert table.judge_names == ["tone", "tone-2"]
    assert counts(table) == {"0 agree": 2, "1 agree": 2, "1 disagree": 2}
    assert checked("", results, label="reviewed").judge_names == ["tone"]
    held = checked("", results, verdict="tone", label="reviewed", baseline="tone-2")
    assert held.judge_names == ["tone"]
    # Two judges of one metric are no repeats of one.
    of_b = [{**one, "authorUserName": "b"} for one in results if one["name"] == "tone-2"]
    results += [{**one, "id": f"b-{one['id']}"} for one in of_b]
    table = checked("", results, verdict="tone-2", label="reviewed")
    assert table.judge_names == ["tone-2, Langfuse", "tone-2, b"]
    with pytest.raises(InputError, match='is no column "tune"'):
        checked("", results, verdict="tune", label="reviewed")


def test_the_scale_and_the_subject_of_a_score_are_not_guessed() -> None:
    document = langfuse(SAID)
    assert counts(checked("", document, one="violated"))["0 disagree"] == 3
    words = json.dumps(document).replace("BOOLEAN", "CATEGORICAL").replace("True", "kind")
    table = checked("", words, map={"kind": 0, "False": 1}, one="")
    assert counts(table)["1 disagree"] == 3
    # A score of the only observation is one of the trace.
    second = {**document[0], "observationId": "another", "id": "more", "source": "EVAL"}
    table = checked("Langfuse", [*document, second])
    assert counts(table)["1 disagree"] == 2
    assert len({result.spec.cluster for result in table.results}) == len(SAID) - 2


def test_what_several_people_say_is_joined() -> None:
    document = mlflow([(True, True)] * 3)
    said = document[0]["info"]["assessments"][1]
    for number, trace in enumerate(document):
        for name, value in (("ben", number == 0), ("cy", number != 2)):
            by = {"source": {"source_type": "HUMAN", "source_id": name}, "assessment_id": name}
            trace["info"]["assessments"].append({**said, **by, "feedback": {"value": value}})
    assert [result.label for result in checked("MLflow", document).results] == [0, 0, 1]
    later = {"assessment_id": "later", "last_update_time": "2026-06-01T10:00:00.000Z"}
    document[1]["info"]["assessments"].append({**said, **later, "feedback": {"value": False}})
    assert [result.label for result in checked("MLflow", document).results] == [0, 1, 1]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("2026-05-01T10:00:00Z", "2026-05-01T10:00:00.500Z"),
        ("2026-05-01T10:00:00+02:00", "2026-05-01T09:00:00Z"),
        ("2026-05-01T10:00:00.5", "2026-05-01T10:00:00.75Z"),
        ("2026-05-01 10:00:00", "2026-05-01T09:59:59-01:00"),
        ("", "2026-05-01"),
    ],
)
def test_of_two_labels_of_a_person_the_later_one_counts(earlier: str, later: str) -> None:
    document = mlflow([(True, True)] * 2)
    for place, times in enumerate(((earlier, later), (later, earlier))):
        assessments = document[place]["info"]["assessments"]
        first = {**assessments.pop(1), "last_update_time": times[0]}
        value = {"value": place == 1}
        second = {**first, "last_update_time": times[1], "feedback": value, "assessment_id": "x"}
        first["feedback"] = {"value": place == 0}
        assessments += [first, second]
    assert [result.label for result in checked("MLflow", document).results] == [1, 1]


def test_labels_of_a_suite_come_from_results() -> None:
    read = read_rows(Path(written(promptfoo(SAID))), FILE)
    assert Counter(row.label for row in read.rows) == {"satisfied": 5, "violated": 6}
    assert (read.rows[0].run_id, read.rows[0].rubric_id) == ("test 1", "polite")
    read = read_rows(Path(written(mlflow(SAID))), FILE)
    assert Counter(row.label for row in read.rows) == {True: 5, False: 6}
    assert {row.annotator for row in read.rows} == {"human"}
    with pytest.raises(InputError, match="have no output with both a verdict"):
        read_rows(Path(written(deepeval(SAID))), FILE)


def test_metrics_that_no_label_of_another_file_is_of_are_not_read(check: Check) -> None:
    labels = written(mlflow(SAID), "labels.json")
    document = mlflow(SAID)
    for trace in document:
        judge, *_ = trace["info"]["assessments"]
        judge["valid"] = True
        tone = {**judge, "assessment_name": "tone", "feedback": {"value": 0.4}}
        trace["info"]["assessments"] = [judge, tone]
    said = check(document, "--one=passed", f"--labels={labels}", code=0)
    assert f'labelled (not checked): {len(SAID)} of "tone".' in said
    labels = written("case_id,rubric_id,label\ntr-0,polite,fail\n", "labels.csv")
    earlier = written(document, "earlier.json")
    for baseline in ("", earlier):
        table = checked("", document, labels=labels, baseline=baseline)
        assert counts(table)["1 disagree"] == 1
    # Labels that say no rubric tell no metric apart.
    written("case_id,label\ntr-0,fail\n", labels)
    with pytest.raises(InputError, match=r'got "0\.4"'):
        checked("", document, labels=labels)


KEPT = ("type", "source", "source_type", "dataType", "kind", "pass")


@pytest.mark.parametrize("tool", FILES)
def test_no_text_is_more_than_text(capsys: pytest.CaptureFixture[str], tool: str) -> None:
    evil = "\x1b]0;x\x07\n::error::x\u202e" + "long " * 200

    def worse(name: str, inner: Any) -> Any:
        return f"{inner}{evil}" if isinstance(inner, str) and name not in KEPT else inner

    main(["check", written(everywhere(FILES[tool](SAID), worse)), "--one=passed", "--report=r.md"])
    captured = capsys.readouterr()
    for line in (captured.out + captured.err).splitlines():
        assert line.isprintable()
        assert not line.lstrip().startswith("::")


RUBRIC = ("--rubric", "polite: The answer is polite.")


def write_table(rows: int = 1_000, violated: float = 0.05, wrong: float = 0.1) -> dict[str, int]:
    """A table of verdicts, and the true label of each case."""
    rng = random.Random(rows)
    truth, lines = {}, ["id,answer,verdict"]
    for number in range(rows):
        case = f"c{number}"
        truth[case] = int(rng.random() < violated)
        said = truth[case] ^ (rng.random() < wrong)
        lines.append(f"{case},answer {number},{'violated' if said else 'satisfied'}")
    write("t.csv", *lines)
    return truth


def write(name: str, *lines: str) -> None:
    Path(name).write_text("\n".join(lines), encoding="utf-8")


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


def rows_of(name: str) -> list[dict[str, str]]:
    with Path(name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_sample_by_verdict_stands_for_all_cases(capsys: pytest.CaptureFixture[str]) -> None:
    truth = write_table()
    label_here(truth, "--sample=60", "--by=verdict")
    said = {row["id"]: row["verdict"] for row in rows_of("t.csv")}
    numbers, rows = Counter(said.values()), rows_of("labels.csv")
    assert Counter(said[row["case_id"]] for row in rows) == {"violated": 30, "satisfied": 30}
    assert {row["split"] for row in rows} == {"weighted"}
    for row in rows:
        assert row["weight"] == f"{numbers[said[row['case_id']]]} of {said[row['case_id']]}"
    # The second person labels the same, and a label that is settled keeps its weight.
    disputed = rows[0]["case_id"]
    other = {**truth, disputed: 1 - truth[disputed]}
    label_here(other, "--sample=60", "--by=verdict", name="ben")
    label_here(truth, "--disagreements=labels.csv", name="cy")
    settled = [row["weight"] for row in rows_of("labels.csv") if row["split"] == "settled"]
    assert settled == [rows[0]["weight"]]
    capsys.readouterr()
    assert main(["check", "t.csv", "--labels=labels.csv", "-v"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "weighted: 60 labels stand for 1,000 of 1,000 cases" in printed
    assert "180 more labels, drawn like these, would halve the widest interval" in printed
    figures = figures_of()
    mass: dict[tuple[int, int], float] = defaultdict(float)
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
    scores = [1 + number % 5 for number in range(40)]
    write("t.csv", "id,verdict", *(f"c{n},{score}" for n, score in enumerate(scores)))
    labels = [f"c{n},{scores[n] + (n < 4)},{1 if n < 10 else 3}" for n in range(20)]
    write("labels.csv", "id,label,weight", *labels)
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
        (("c0,1,2", "c0,1,3"), 'a line above the same case has "2"'),
        (("c0,1,30", "c1,0,20"), "2 labels stand for 50 cases, but t.csv has only 40"),
    ],
)
def test_weights_that_cannot_be_are_refused(rows: tuple[str, ...], said: str) -> None:
    write_table(40)
    write("labels.csv", "id,label,weight", *rows)
    with pytest.raises(InputError, match=said):
        check_table("t.csv", labels="labels.csv", one="violated")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--sample=60 --by=answer", "60 cases are too few to draw evenly from 40 different"),
        ("--sample=3 --by=verdict", "3 cases are too few to draw evenly from 2 different values"),
        ("--by=verdict", "needs a table and --sample"),
        ("--sample=9 --by=verdict --disagreements=l.csv", "needs a table and --sample"),
        ("--sample=9 --by=mood", 'no column is called "mood"; the columns are "id", "answer", '),
    ],
)
def test_what_cannot_be_drawn_evenly_is_said(
    capsys: pytest.CaptureFixture[str], arguments: str, said: str
) -> None:
    write_table(40, 0.5)
    assert main(["label", "t.csv", *RUBRIC, *arguments.split()]) == 4
    assert f"--by: {said}" in capsys.readouterr().err


def test_labels_drawn_by_what_a_judge_said_alone_have_weights_and_compare_no_judges() -> None:
    truth = write_table(100, 0.3)
    label_here(truth, "--sample=20")
    assert "weight" not in rows_of("labels.csv")[0]
    accuracy = figures_of()["accuracy"]
    assert (accuracy.n, accuracy.value) == (20, (accuracy.count or 0) / 20)
    Path("labels.csv").unlink()
    label_here(truth, "--sample=20", "--by=verdict")
    write("t2.csv", Path("t.csv").read_text("utf-8"))
    with pytest.raises(
        InputError, match="--baseline: the labelled cases were drawn by the judge's verdicts"
    ):
        check_table("t.csv", labels="labels.csv", baseline="t2.csv")


def test_labels_stand_for_all_cases_of_their_word_however_many_there_are() -> None:
    write("t.csv", "id,verdict", *(f"c{n},{'fail' if n < 100 else 'pass'}" for n in range(1_000)))
    # Of 50 drawn of each word, 10 and 40 are labelled, and some people cannot tell.
    rows = [f"c{n},{'violated' if n < 9 else 'satisfied'},100 of fail" for n in range(10)]
    rows += [f"c{n},cannot tell,100 of fail" for n in range(10, 20)]
    rows += [f"c{n},{'violated' if n < 102 else 'satisfied'},900 of pass" for n in range(100, 140)]
    write("labels.csv", "case_id,label,weight", *rows)
    figures = figures_of()
    assert figures["accuracy"].value == pytest.approx((90 + 900 * 38 / 40) / 1_000)
    assert figures["recall"].value == pytest.approx(90 / (90 + 900 * 2 / 40))


def test_weights_of_one_leave_figures_of_a_scale_as_they_are() -> None:
    """Also where a label is n/a, or lies between two levels."""
    said = [("1,2", "1"), ("3,3", "4"), ("n/a,n/a", "2"), ("5,4", "4"), ("2,2", "n/a")] * 8
    write("t.csv", "id,verdict", *(f"c{n},{verdict}" for n, (_, verdict) in enumerate(said)))
    figures = []
    for head, weight in (("id,a,b", ""), ("id,a,b,weight", ",1")):
        write("labels.csv", head, *(f"c{n},{labels}{weight}" for n, (labels, _) in enumerate(said)))
        figures.append(figures_of(label=["a", "b"], scale=(1, 5)))
    plain, weighted = figures
    for key, figure in plain.items():
        if figure.value is not None and key != "flicker":
            assert weighted[key].value == pytest.approx(figure.value), key
