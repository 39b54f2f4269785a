"""Label files and what they say of runs."""

from __future__ import annotations

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
from pytest_jrh.core.cases import Label, Rubric, RunSummary
from pytest_jrh.core.documents import NoLabelError, label_value, mapped
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.ids import question_digest
from pytest_jrh.core.scales import BINARY, ScoreLevel, numbered
from pytest_jrh.people.labels import JoinedLabels, Joiner, find_labels, read_rows
from pytest_jrh.sources.source import RunFields
from tests.support.made_cases import make_suite

RUNS = [RunSummary("a", 1), RunSummary("b", 1), RunSummary("many", 1), RunSummary("many", 2)]
KIND = Rubric("kind", "Be kind.")
SCALE = Rubric("kind", "Be kind.", tuple(ScoreLevel(score, "") for score in range(1, 4)))
HONEST = Rubric("honest", "Be honest.")


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
        "labels.csv: values that are no label: 5.",
        "labels.csv: cases without a label, as at most half of all who voted give one label: 2.",
    ]


def test_a_map_says_what_values_mean(path: Path) -> None:
    content = "run_id,label\na,harmful\nb,fine\nb,fine\n"
    reading: dict[str, Any] = {"map": {"harmful": 1, "fine": "satisfied", "?": None}}
    joined = join(path, content, **reading)
    assert values(joined) == {"a1": 1, "b1": 0}
    assert joined.notices == ["labels.csv: lines that repeat another: 1."]
    said = 'labels.csv:2: label: got "harmfull"; the keys of map are harmful, fine, ?'
    assert problem(path, "run_id,label\na,harmfull\n", **reading) == said


def test_labels_of_another_wording_of_a_rubric_are_not_used(path: Path) -> None:
    now, before = question_digest(KIND), question_digest(replace(KIND, instructions="Be nice."))
    head = "run_id,label,rubric_digest"
    joined = join(path, f"{head}\na,1,{now}\na,0,{before}\nb,0,\n")
    assert values(joined) == {"a1": 1, "b1": 0}
    reworded = "labels of another wording of their rubric, which are not used: 1."
    assert joined.notices == [f"labels.csv: {reworded}"]
    said = problem(path, f"{head}\na,1,{before}\n")
    assert said.startswith("labels.csv: each label is of another wording of its rubric")


def test_a_run_is_found_whatever_ends_a_line_of_its_name(path: Path) -> None:
    path.write_bytes(b'run_id,label\n"c\r\nd",1\n')
    read = read_rows(path, file="labels.csv")
    joiner = Joiner([RunSummary("c\nd", 1)], {"kind": KIND})
    assert values(joiner.join(read.rows, LabelSection(), "labels.csv")) == {"c\nd1": 1}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("aa,1", '2: run_id: got "aa", and there is no such case; the cases are a, b'),
        ("a,violates", '2: label: got "violates"; must be 0, 1, false, true, pass'),
        ("a,1\na,0", '3: label: this label (0) of the case "a" disagrees with line'),
        ("many,1", '2: epoch: is missing; the epochs of the case "many" are 1, 2'),
        ('{"id": "a", "label": 1}\n{"id": "b"', "2: is not valid JSON: expecting ',' delimiter"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(path: Path, content: str, said: str) -> None:
    head = "" if content.startswith("{") else "run_id,label\n"
    assert problem(path, head + content).startswith(f"labels.csv:{said}")


@pytest.mark.parametrize(
    ("word", "key"), [("harm", '"harm"'), ("No harm: ok", '"No harm: ok"'), ("yes", '"yes"')]
)
def test_the_map_that_is_advised_can_be_copied(path: Path, word: str, key: str) -> None:
    [of_word] = join(path, f"run_id,label\na,{word}\n").problems
    assert of_word.hint == f"say what its words mean: map: {{{key}: 1}} if that is violated, else 0"
    for number in ("4.67", "7/10", "85%"):
        assert join(path, f"run_id,label\na,{number}\n").problems[0].hint is None


def test_several_rubrics_need_a_name(path: Path) -> None:
    rubrics = [KIND, HONEST]
    assert problem(path, "run_id,label\na,1\n", rubrics=rubrics) == (
        "labels.csv:2: rubric_id: names no rubric; the suite's rubrics are kind, honest\n"
        "    add the column rubric_id, or set rubric_id beside the path of the labels"
    )
    content = "run_id,label,rubric_id\na,1,honest\na,0,kind\na,0,old\n"
    joined = join(path, content, rubrics=rubrics)
    assert {key[0]: label.value for key, label in joined.labels.items()} == {"honest": 1, "kind": 0}
    assert joined.notices == ["labels.csv: lines of rubrics that cases.rubrics leaves out: 1."]


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
        (["C", math.nan, "I"], {"a": 0, "many": 1}, "any: 1 of 3 runs have no label: no cases."),
        ([1.0, math.nan, math.nan], {}, "by `map` whether it is violated, satisfied or (null) no"),
        ([{"kind": "C", "short": "I"}], {}, "by a pointer: /m/kind, /m/short"),
        ([["C", "I"]], {}, "by a pointer: /m/0, /m/1"),
    ],
)
def test_a_score_of_a_log_is_one_that_was_given(
    tmp_path: Path, values: Sequence[Any], labels: dict[str, int], said: str
) -> None:
    given = zip(RUNS, values, strict=False)
    scored = [RunFields((run.run_id, 1), {}, {"m": value}) for run, value in given]
    section = LabelSection(scorer="m")
    suite = replace(make_suite(tmp_path), name="any", rubrics=(KIND,), tests=(), labels=[section])
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
