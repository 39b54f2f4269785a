"""Label files, what they say of runs, and what labels rest on."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.config.schema import LabelSection
from pytest_jrh.core import InputError
from pytest_jrh.core.cases import Label, Rubric, RunSummary
from pytest_jrh.core.documents import NoLabelError, label_value, mapped
from pytest_jrh.core.results import CaseResult, Rejection
from pytest_jrh.core.scales import BINARY, ScoreLevel, numbered
from pytest_jrh.people import Grounds, held_against_people, is_same
from pytest_jrh.people import labels as people_labels
from pytest_jrh.people.labels import JoinedLabels, Joiner, PersonLabel, find_labels, read_rows
from pytest_jrh.reports.markdown import MarkdownReport
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.topics import label_sentences, labels_line
from pytest_jrh.sources.source import RunFields
from pytest_jrh.stats.people import AgainstPeople, VerifierAgainstPeople
from tests.support.judged_sessions import printed
from tests.support.made_cases import make_result, make_spec, make_suite, result_with

RUNS = [RunSummary("a", 1), RunSummary("b", 1), RunSummary("many", 1), RunSummary("many", 2)]
KIND = Rubric("kind", "Be kind.")
SCALE = Rubric("kind", "Be kind.", tuple(ScoreLevel(score, "") for score in range(1, 4)))
DIGESTS = [f"{number:064x}" for number in range(1000)]
GOOD = {"case_digest": DIGESTS[1], "reviewer": "ann", "label": 1}


def join(
    path: Path, content: str | bytes, *, rubrics: Sequence[Rubric] = (KIND,), **reading: Any
) -> JoinedLabels:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    read = read_rows(path, file="labels.csv")
    ordinal = reading.pop("ordinal", False)
    by_id = {rubric.id: rubric for rubric in rubrics}
    joiner = Joiner(RUNS, by_id, frozenset({"old"}), {"uuid-b": ("b", 1)}, ordinal=ordinal)
    return joiner.join(read.rows, LabelSection(**reading), "labels.csv")


def problem(path: Path, content: str, **reading: Any) -> str:
    """The only problem of a file."""
    try:
        [one] = join(path, content, **reading).problems
    except InputError as error:
        [one] = error.problems
    return str(one)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labels.csv"


def values(joined: JoinedLabels) -> dict[str, int | None]:
    assert not joined.problems
    return {f"{run}{epoch}": label.value for (_, run, epoch), label in joined.labels.items()}


@pytest.mark.parametrize(
    "content",
    [
        "run_id,label\na,violated\nb,PASS\n",
        "id,target\na,true\nb,false\n",
        "\ufeffrun_id;label\r\na;1.0\r\nb;0\r\n",
        'Label\tRun_ID\tnote\n Fail \ta\t"two\nlines"\n\nSatisfied\tuuid-b\t\n',
        '{"id": "a", "target": true}\n\n{"id": "b", "target": 0.0}\n',
    ],
    ids=["commas", "other names", "Excel", "tabs, a note of two lines, a uuid", "JSONL"],
)
def test_files_as_people_and_programs_write_them(path: Path, content: str) -> None:
    assert values(join(path, content)) == {"a1": 1, "b1": 0}


def test_several_annotators_vote(path: Path) -> None:
    votes = "a,1,x,dev a,1,y,dev a,0,z,dev b,1,x,test b,0,y,test b,1,z,test b,0,w,test"
    joined = join(path, "\n".join(["run_id,label,annotator,split", *votes.split()]))
    assert joined.labels == {
        ("kind", "a", 1): Label((1, 1, 0), "people", "dev"),
        ("kind", "b", 1): Label((1, 0, 1, 0), "people", "test"),
    }
    assert joined.labels["kind", "b", 1].dispute == "2 of 4"


def test_the_config_names_who_labelled_where_no_row_does(path: Path) -> None:
    content = "run_id,epoch,label,annotator\na,,1,\nb,,0,zoe\nmany,1,1,\nmany,1,0,zoe\n"
    joined = join(path, content, annotator="authors")
    people = [tuple(vote.annotator for vote in label.sources) for label in joined.labels.values()]
    assert people == [("authors",), ("zoe",), ("authors", "zoe")]


def test_a_word_that_is_no_label_is_a_vote_for_none(path: Path) -> None:
    content = "run_id,epoch,label,annotator\na,,1,x\na,,1,y\na,,n/a,z\nb,,1,x\nb,,cannot tell,y\n"
    content += "many,1,1,x\nmany,1,n/a,y\nmany,1,n/a,z\nmany,2,n/a,x\n"
    joined = join(path, content, map={"1": 1, "n/a": None})
    assert values(joined) == {"a1": 1}
    assert joined.notices == [
        "labels.csv: values that are not labels: 5.",
        "labels.csv: cases without a label, because no label has more than half of the votes: 2.",
    ]


def test_a_map_says_what_values_mean(path: Path) -> None:
    content = "run_id,label\na,harmful\nb,fine\nb,fine\n"
    reading: dict[str, Any] = {"map": {"harmful": 1, "fine": "satisfied", "?": None}}
    joined = join(path, content, **reading)
    assert values(joined) == {"a1": 1, "b1": 0}
    assert joined.notices == ["labels.csv: lines that repeat another line: 1."]
    said = 'labels.csv:2: label: got "harmfull"; must be a key of map: "harmful", "fine", "?"'
    assert problem(path, "run_id,label\na,harmfull\n", **reading) == said


def test_labels_of_another_wording_of_a_rubric_are_not_used(path: Path) -> None:
    now, before = KIND.digest, replace(KIND, instructions="Be nice.").digest
    head = "run_id,label,rubric_digest"
    joined = join(path, f"{head}\na,1,{now}\na,0,{before}\nb,0,\n")
    assert values(joined) == {"a1": 1, "b1": 0}
    reworded = "labels for another wording of their rubric (not used): 1."
    assert joined.notices == [f"labels.csv: {reworded}"]
    said = problem(path, f"{head}\na,1,{before}\n")
    assert said.startswith("labels.csv: each label was given for another wording of its rubric")


def test_a_run_is_found_whatever_ends_a_line_of_its_name(path: Path) -> None:
    path.write_bytes(b'run_id,label\n"c\r\nd",1\n')
    read = read_rows(path, file="labels.csv")
    joiner = Joiner([RunSummary("c\nd", 1)], {"kind": KIND})
    assert values(joiner.join(read.rows, LabelSection(), "labels.csv")) == {"c\nd1": 1}


@pytest.mark.parametrize("old", ["=1", "'=1"])
def test_an_id_that_an_older_version_wrote_is_found(path: Path, old: str) -> None:
    known = {"=1": "'=1", "'=1": "=1"}[old]
    path.write_text(f"run_id,label\n{old},1\n", "utf-8")
    joiner = Joiner([RunSummary(known, 1)], {"kind": KIND})
    joined = joiner.join(read_rows(path).rows, LabelSection(), "labels.csv")
    assert values(joined) == {f"{known}1": 1}


@pytest.mark.parametrize(
    ("written", "known"),
    [("1.0", "1"), ("7", "007"), ("007", "7"), ('"1,000"', "1000"), ("1000", "1,000")],
)
def test_an_id_that_a_spreadsheet_wrote_anew_is_named(path: Path, written: str, known: str) -> None:
    path.write_text(f"run_id,label\n{written},1\n", "utf-8")
    joiner = Joiner([RunSummary(known, 1), RunSummary("10", 1)], {"kind": KIND})
    [problem] = joiner.join(read_rows(path).rows, LabelSection(), "labels.csv").problems
    assert f'a spreadsheet may have written "{known}" as ' in (problem.hint or "")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("aa,1", '2: run_id: no case has the id "aa"; the ids are "a", "b"'),
        ("a,violates", '2: label: got "violates"; must be 0, 1, false, true, pass'),
        ("a,1\na,0", '3: label: the case "a" has the label 0 here, but 1 in line 2'),
        ("many,1", '2: epoch: is missing; the epochs of the case "many" are 1, 2'),
        ('{"id": "a", "label": 1}\n{"id": "b"', "2: is not valid JSON: expecting ',' delimiter"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(path: Path, content: str, said: str) -> None:
    head = "" if content.startswith("{") else "run_id,label\n"
    assert problem(path, head + content).startswith(f"labels.csv:{said}")


@pytest.mark.parametrize(("word", "key"), [("harm", '"harm"'), ("No harm: ok", '"No harm: ok"')])
def test_the_map_that_is_advised_can_be_copied(path: Path, word: str, key: str) -> None:
    [of_word] = join(path, f"run_id,label\na,{word}\n").problems
    hint = f"map words to labels in the config: map: {{{key}: 1}} if {key} means violated, else 0"
    assert of_word.hint == hint
    for number in ("4.67", "7/10", "85%"):
        assert join(path, f"run_id,label\na,{number}\n").problems[0].hint is None


def test_several_rubrics_need_a_name(path: Path) -> None:
    rubrics = [KIND, Rubric("honest", "Be honest.")]
    assert problem(path, "run_id,label\na,1\n", rubrics=rubrics) == (
        'labels.csv:2: rubric_id: names no rubric; the suite\'s rubrics are "kind", "honest"\n'
        "    add the column rubric_id to the file, or set rubric_id of these labels in the config"
    )
    content = "run_id,label,rubric_id\na,1,honest\na,0,kind\na,0,old\n"
    joined = join(path, content, rubrics=rubrics)
    assert {key[0]: label.value for key, label in joined.labels.items()} == {"honest": 1, "kind": 0}
    assert joined.notices == ["labels.csv: lines for rubrics that cases.rubrics leaves out: 1."]


def test_columns_that_mean_nothing_are_named(path: Path) -> None:
    path.write_text("id,run_id,target,predicate,anotator\nx,a,1,eq,x\n", encoding="utf-8")
    read = read_rows(path, file="labels.csv")
    assert [row.run_id for row in read.rows] == ["a"]
    assert read.unused == ["id", "predicate", "anotator"]


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_file_is_labels_or_a_problem(
    tmp_path_factory: pytest.TempPathFactory, content: str | bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    head = b"run_id,label\n"
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    for text in (raw, head + raw):
        try:
            joined = join(path, text)
        except InputError:
            continue
        assert joined.problems or joined.labels


@pytest.mark.parametrize(
    ("values", "labels", "said"),
    [
        (
            ["C", math.nan, "I"],
            {"a": 0, "many": 1},
            "any: 1 of 3 runs have no label, and are not judged.",
        ),
        ([1.0, math.nan, math.nan], {}, "map each value to violated, satisfied or null"),
        ([{"kind": "C", "short": "I"}], {}, "by its pointer: /m/kind, /m/short"),
        ([["C", "I"]], {}, "by its pointer: /m/0, /m/1"),
    ],
)
def test_a_score_of_a_log_is_one_that_was_given(
    tmp_path: Path, values: Sequence[Any], labels: dict[str, int], said: str
) -> None:
    given = zip(RUNS, values, strict=False)
    scored = [RunFields((run.run_id, 1), {}, {"m": value}) for run, value in given]
    labelled: Any = {"tests": (), "labels": (LabelSection(scorer="m"),)}
    suite = make_suite(tmp_path, name="any", rubrics=(KIND,), **labelled)
    source: Any = SimpleNamespace(aliases=dict, unclear_names=dict, fields=lambda: scored)
    found = find_labels(suite, source, RUNS[:3], cast("Any", None))
    assert {run: label.value for (_, run, _), label in found.labels.items()} == labels
    assert said in " ".join([*map(str, found.problems), *found.notices])


def test_an_ordinal_label_is_a_score_of_the_scale(path: Path) -> None:
    joined = join(path, "run_id,label\na,3\nb,4\n", rubrics=[SCALE], ordinal=True)
    assert joined.labels["kind", "a", 1].value == 3
    said = 'labels.csv:3: label: got "4"; must be a score from 1 to 3'
    assert [*map(str, joined.problems)] == [said]


@pytest.mark.parametrize("raw", [None, "", 0.5, "nan", "1e400", "9" * 5000, -1, [1]])
def test_no_label(raw: object) -> None:
    with pytest.raises(NoLabelError):
        label_value(raw, BINARY)
    with pytest.raises(NoLabelError):
        label_value(raw, numbered(1, 3))
    # A truth value is no score.
    with pytest.raises(NoLabelError):
        label_value(True, numbered(0, 2))


def test_a_map_finds_numbers_however_they_are_written() -> None:
    mapping = {"1.0": 0, "0.0": 1, "true": 1, "null": 0}
    assert [mapped(raw, mapping) for raw in (1, "1", 1.0, 0, True)] == [0, 0, 0, 1, 1]


def result(number: int, **changes: Any) -> CaseResult:
    return make_result(make_spec(f"run-{number}"), case_digest=DIGESTS[number], **changes)


def against(
    results: list[CaseResult], grounds: Grounds
) -> tuple[AgainstPeople, VerifierAgainstPeople]:
    """The only judge and the verifier against people."""
    judges, verifier = held_against_people(results, grounds)
    assert verifier is not None
    return judges[""], verifier


def session(results: list[CaseResult], grounds: Grounds) -> Session:
    return Session(results, grounds={"refunds": grounds})


def sentences(results: list[CaseResult], grounds: Grounds) -> list[str]:
    return [*label_sentences(session(results, grounds))]


def labels(results: list[CaseResult], grounds: Grounds) -> str:
    """What the answer says of the labels."""
    [line] = labels_line(session(results, grounds))
    return line.text


def test_what_labels_rest_on_is_counted() -> None:
    results = [*map(result, range(5)), result(5, labelled_by="unconfirmed")]
    results += [result(6, review="accepted"), result(7, labelled_by="program")]
    said = "5 confirmed by openai/gpt-4.1, 1 by people, 1 by a program, 1 unverified"
    assert labels(results, Grounds(verifier="openai/gpt-4.1")) == said


def person(number: int, label: int | None, name: str = "ann", **more: Any) -> PersonLabel:
    return PersonLabel(DIGESTS[number], name, label, **{"blind": True, **more})


def rejected(number: int, **changes: Any) -> CaseResult:
    """A case that the verifier rejected: it says the other label."""
    spec = make_spec(f"run-{number}", **changes)
    return make_result(spec, "no_case", rejected=Rejection(DIGESTS[number], 1))


def test_judge_and_verifier_are_held_against_people() -> None:
    results = [result(number) for number in range(100)]
    results += [rejected(200 + number) for number in range(4)]
    people = [person(number, int(number % 5 > 0)) for number in range(50)]
    people += [person(200 + number, int(number == 0)) for number in range(4)]
    grounds = Grounds(verifier="a/b", people=tuple(people))
    assert labels(results, grounds).startswith("100 confirmed by a/b; people checked 50, ")
    found = sentences(results, grounds)
    assert found[0].startswith("Compared with people (50 blind labels): accuracy 80.0% (")
    assert "; 100.0% by the suite's labels), recall" in found[0]
    assert found[1].startswith("The verifier confirmed wrong labels in 10 of 50 cases that people")
    assert found[2].startswith("The verifier rejected right labels in 1 of 4 cases that people")
    judge, verifier = against(results, Grounds(people=tuple(people)))
    assert judge.figures["accuracy"].estimate.value == pytest.approx(0.8, abs=0.02)
    assert judge.figures["accuracy"].raw == 1
    assert verifier.false_rejections.count == 1


def test_cases_of_which_people_give_no_label_are_counted() -> None:
    results = [result(number) for number in range(100)]
    people = [person(number, 1) for number in range(45)]
    people += [person(number, None) for number in range(45, 49)]
    # Of several people one may tell, and two may disagree.
    people += [person(49, 1), person(49, 0, "bob"), person(44, None, "bob")]
    judge, _ = against(results, Grounds(people=tuple(people)))
    assert (judge.labelled, judge.unclear, judge.undecidable) == (45, 1, 4)
    nobody_tells = Grounds(people=tuple(person(number, None) for number in range(3)))
    said = "Compared with people (0 blind labels; 3 cases that nobody can decide left out): no"
    assert said in " ".join(sentences(results, nobody_tells))


def test_each_rubric_with_enough_labels_is_held_against_people_by_itself() -> None:
    results = [result(number, rubric_id="one") for number in range(40)]
    results += [result(100 + number, rubric_id="other") for number in range(10)]
    results += [result(200, rubric_id="unlabelled")]
    rejection = rejected(300, rubric_id="other")
    people = [person(number, int(number % 5 > 0)) for number in range(40)]
    people += [person(100 + number, 1) for number in range(10)]
    people += [person(300, 1)]
    grounds = Grounds(people=tuple(people), rejected=(rejection,))
    found = sentences(results, grounds)
    assert found[0].startswith("Compared with people (50 blind labels): accuracy ")
    assert found[1].startswith("The verifier confirmed wrong labels in 8 of 50 cases")
    assert found[2].startswith("The verifier rejected right labels in 1 of 1 case")
    assert found[3].startswith("one: Compared with people (40 blind labels): accuracy 80.0% (")
    assert found[4].startswith("one: The verifier confirmed wrong labels in 8 of 40 cases")
    assert len(found) == 5


def test_a_label_of_equal_cases_counts_once() -> None:
    results = [replace(result(number), case_digest=DIGESTS[0]) for number in range(14)]
    results += [result(number) for number in range(20, 40)]
    people = [person(0, 1), *(person(number, 1) for number in (20, 21, 22))]
    grounds = Grounds(verifier="a/b", people=tuple(people))
    assert labels(results, grounds).endswith("4 (20 needed), none wrong")
    assert "The verifier confirmed wrong labels in 0 of 4" in " ".join(sentences(results, grounds))
    judge, _ = against(results, Grounds(people=tuple(people)))
    assert judge.labelled == 4
    assert judge.figures["accuracy"].estimate.value is None


def test_equal_cases_with_contradicting_labels_are_a_warning() -> None:
    equal = [result(number, content="c" * 16) for number in range(3)]
    other = [result(number, content=f"{number}" * 16) for number in range(4, 6)]
    agreeing = session([*equal, *other], Grounds())
    assert "contradicting" not in MarkdownReport().text(agreeing)
    odd = result_with(equal[2], label=0, outcome="disagree")
    contradicting = session([*equal[:2], odd, *other], Grounds())
    said = "3 cases with the same rubric and text have contradicting labels (0 and 1)"
    assert said in MarkdownReport().text(contradicting)
    assert said in " ".join(printed(contradicting, 400))


def test_only_the_last_blind_label_of_each_reviewer_counts() -> None:
    results = [result(number) for number in range(100)]
    people = tuple(person(number, 1, blind=False) for number in range(50))
    [said] = sentences(results, Grounds(people=people))
    assert said.startswith("No judged case has a person's blind label")
    people = (person(1, 0), person(1, 1), person(1, 0, "bob"), person(1, 0, blind=False))
    assert Grounds(people=(*people, person(2, None))).blind_votes == {DIGESTS[1]: (1, 0)}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("azure/gpt-4.1", "openai/gpt-4.1", True),
        ("openai/gpt-4.1", "openai/gpt-4o-mini", False),
        ("gpt-4.1", "openai/GPT-4.1", True),
    ],
)
def test_one_model_has_the_names_of_those_who_serve_it(one: str, other: str, same: bool) -> None:
    assert is_same(one, other) == same
    assert is_same(other, one) == same


def read_lines(folder: Path, *lines: object) -> list[PersonLabel]:
    suite = make_suite(folder)
    path = people_labels.labels_path(suite.tests[0].output_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return [*people_labels.read_people(suite)]


def test_labels_are_read_as_a_person_may_write_them(tmp_path: Path) -> None:
    whole = {**GOOD, "blind": True, "time": "2026-01-01T00:00:00Z", "note": "clear"}
    unclear = {**GOOD, "label": None, "case_id": "who reads it"}
    read = read_lines(tmp_path, whole, {**GOOD, "label": 0}, unclear)
    assert [(each.label, each.blind) for each in read] == [(1, True), (0, False), (None, False)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({**GOOD, "label": 2}, "label: is not an answer; must be 0, 1, or null"),
        ({**GOOD, "case_digest": "abc"}, "case_digest: string should match pattern"),
        ({**GOOD, "lable": 1}, "lable: unexpected keyword argument"),
        ({"reviewer": "ann", "label": 1}, "case_digest: is missing"),
        ("[1]", "is not an object"),
        ("{", "invalid JSON"),
    ],
)
def test_a_line_that_is_no_label_is_named(tmp_path: Path, line: object, said: str) -> None:
    with pytest.raises(InputError) as raised:
        read_lines(tmp_path, GOOD, line)
    key, _, mistake = said.rpartition(": ")
    first = str(raised.value).partition("\n")[0]
    assert f"labels.jsonl:2: {key}" in first
    assert mistake in first
