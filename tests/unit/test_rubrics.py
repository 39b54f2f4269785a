"""Rubric files, the scales of their answers, and the published schemas beside the loader."""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.config.load import fit
from pytest_jrh.config.rand import convert
from pytest_jrh.config.rubrics import load_rubrics, suite_rubrics
from pytest_jrh.core import InputError, Problem, collecting
from pytest_jrh.core.cases import Rubric, Verification
from pytest_jrh.core.documents import NoLabelError, label_value, read_document
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.scales import (
    BINARY,
    NOT_APPLICABLE,
    ORDINAL,
    Scale,
    ScoreLevel,
    classed,
    code_of,
    named,
    numbered,
    scale_of,
    scale_of_line,
    with_not_applicable,
)
from pytest_jrh.stats.verdicts import Coded, Verdicts
from pytest_jrh.store.ledger import ledger_line, result_from
from tests.support.made_cases import make_result
from tests.support.sessions import ANY_JSON
from tests.support.suites import SuiteFiles, merged, write_suite
from tools import schema as json_schema


def written(folder: Path, text: str, name: str = "rubric.yml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def problems_of(
    folder: Path, text: str, name: str = "rubric.yml", *, scale: Any = "binary"
) -> Sequence[Problem]:
    path = written(folder, text, name)
    try:
        document = read_document(path, name)
    except InputError as error:
        return error.problems
    return suite_rubrics(document, str(path), (), scale)[-1]


def only_problem(folder: Path, *said: str, scale: Any = None) -> Problem:
    [problem] = problems_of(folder, *said, scale=scale)
    return problem


def test_json_and_yaml_give_the_same_rubrics_and_lines(tmp_path: Path) -> None:
    first, second = '{"id": "a", "instructions": "x"}', '{"id": "b", "instruction": "y", '
    scale = '"score_levels": [{"score": 1, "label": "one"}, {"score": 0, "label": "none"}]}'
    in_json = written(tmp_path, f"[\n{first},\n{second}\n{scale}]", "rubric.json")
    in_yaml = written(tmp_path, f"# two rubrics\n- {first}\n- {second}\n  {scale}\n")
    levels = (ScoreLevel(0, "none"), ScoreLevel(1, "one"))
    for path in (in_json, in_yaml):
        assert load_rubrics(path) == [
            Rubric("a", "x", (), str(path), 2),
            Rubric("b", "y", levels, str(path), 3),
        ]


def test_ids_are_stripped_and_kept_as_they_are_written(tmp_path: Path) -> None:
    text = "".join(f"- {{id: {name}, instructions: x}}\n" for name in ("' a '", "010", "no"))
    assert [each.id for each in load_rubrics(written(tmp_path, text))] == ["a", "010", "no"]


@pytest.mark.parametrize(
    ("entry", "key", "line", "message"),
    [
        ("- {id: a, instructions: x}\n- just text\n", "[1]", 2, "must be a mapping"),
        ("- instructions: x\n", "[0].id", 1, "is missing; must be text"),
        ("- id: a\n", "[0].instructions", 1, "is missing; must be the text of"),
        ("- id: a\n  instructions: [x]\n", "[0].instructions", 2, 'got ["x"]; must be text'),
        ("- id: a\n  instructions: x\n  instruction: y\n", "[0].instruction", 3, "both"),
        ("- {id: a, instructions: x}\n- {id: ' a', instructions: y}", "[1].id", 2, "lines 1 and 2"),
        ("[]\n", None, 1, "is empty"),
    ],
)
def test_an_unusable_entry_is_refused_with_its_line(
    tmp_path: Path, entry: str, key: str | None, line: int, message: str
) -> None:
    problem = only_problem(tmp_path, entry)
    assert (problem.key, problem.line, problem.file) == (key, line, "rubric.yml")
    assert message in problem.message


def test_the_placeholders_that_init_writes_are_refused(tmp_path: Path) -> None:
    levels = "{score: 0, label: Replace this text. Worst.}, {score: 1, label: Best.}"
    text = (
        "- id: a\n  instructions: >-\n    Replace this text. Say what it must do.\n  "
        f"score_levels: [{levels}]\n"
    )
    instructions, label = problems_of(tmp_path, text)
    assert (instructions.key, instructions.line) == ("[0].instructions", 2)
    assert "is still the placeholder that `python -m pytest_jrh init` wrote" in instructions.message
    assert (label.key, label.line) == ("[0].score_levels[0].label", 4)


@pytest.mark.parametrize(
    ("scores", "key", "message"),
    [
        ((0, 2), "score_levels", "must have no gaps or rep"),
        ((0, 0), "score_levels", "scores are 0, 0"),
        ((0.5,), "score_levels[0].score", "got 0.5; must be an integer"),
        ((0, 1_000_000_000), "score_levels", "must have no gaps"),
    ],
)
def test_broken_scales(tmp_path: Path, scores: tuple[float, ...], key: str, message: str) -> None:
    levels = ", ".join(f"{{score: {score}, label: x}}" for score in scores)
    text = f"- id: a\n  instructions: x\n  score_levels: [{levels}]\n"
    problem = only_problem(tmp_path, text)
    assert (problem.key, problem.line) == (f"[0].{key}", 3)
    assert message in problem.message


def test_an_ordinal_rubric_without_levels_or_range_is_refused(tmp_path: Path) -> None:
    problem = only_problem(tmp_path, "\n- {id: a, instructions: x}\n", scale="ordinal")
    assert problem.line == 2
    assert "has no score_levels" in problem.message
    assert "rand.scale" in (problem.hint or "")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[\n  {"id": "a"\n   "instructions": "x"}\n]', 3, "expecting ',' delimiter"),
        ('[{"id": "a",\n"id": "b"}]', 2, "duplicate key, in lines 1 and 2"),
        ('[{"a": ' + "9" * 5000 + "}]", None, "is not valid JSON"),
        ("[" * 5000, None, "nested more than 100 levels deep"),
    ],
)
def test_broken_json_is_refused(tmp_path: Path, text: str, line: int | None, message: str) -> None:
    problem = only_problem(tmp_path, text, "rubric.json")
    assert problem.line == line
    assert message in problem.message


@settings(max_examples=150, deadline=None)
@given(
    entry=st.dictionaries(
        st.sampled_from(["id", "instructions", "instruction", "score_levels", "x"]),
        ANY_JSON | st.lists(ANY_JSON) | st.dictionaries(st.text(), ANY_JSON),
    )
)
def test_any_json_holds(tmp_path_factory: pytest.TempPathFactory, entry: dict[str, object]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps([entry]), encoding="utf-8")
    rubrics: Sequence[Rubric] = ()
    problems: list[Problem] = []
    with collecting(problems):
        rubrics = load_rubrics(path)
    assert all(rubric.id and rubric.instructions for rubric in rubrics)
    assert all(problem.line and problem.message.isprintable() for problem in problems)
    assert len(rubrics) == (0 if problems else 1)


@settings(max_examples=150, deadline=None)
@given(
    raw=st.binary(max_size=60)
    | st.text(alphabet="[]{}:,-&*?!|>#\t\n 'a1\"", max_size=60).map(str.encode)
)
def test_any_bytes_are_refused(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    for name in ("any.yml", "any.json"):
        path = tmp_path_factory.getbasetemp() / name
        path.write_bytes(raw)
        with pytest.raises(InputError):
            load_rubrics(path)


LEVELS = (ScoreLevel(1, "poor"), ScoreLevel(2, ""), ScoreLevel(3, "good"))


@pytest.mark.parametrize(
    ("scale", "scores", "words", "meant", "width"),
    [
        (BINARY, (0, 1), ["satisfied", "violated"], "1 (violated)", 1),
        (scale_of(LEVELS), (1, 2, 3), ["1 (poor)", "2", "3 (good)"], "1 (poor)", 2),
        (numbered(1, 5), (1, 2, 3, 4, 5), ["1", "2", "3", "4", "5"], "1", 4),
    ],
)
def test_answers_have_scores_words_and_a_width(
    scale: Scale, scores: tuple[int, ...], words: list[str], meant: str, width: int
) -> None:
    assert scale.scores == scores
    assert [scale.word(score) for score in scores] == words
    assert (scale.meant(1), scale.width) == (meant, width)


MISSED = """missed; misses 2 of 5 violations; 2 of 5 violations missed;
misses 2 of 5 violations that it found before"""
ALARMS = """false alarm; raises 2 false alarms on 5 satisfied cases;
2 false alarms on 5 satisfied cases; raises 2 new false alarms on 5 cases that it passed before"""


@pytest.mark.parametrize(("label", "said"), [(1, MISSED), (0, ALARMS)])
def test_a_class_says_what_is_wrong(label: int, said: str) -> None:
    of_class = BINARY.class_of(label)
    assert of_class is not None
    clauses = of_class.wrong(2, 5), of_class.tally(2, 5), of_class.newly_wrong(2, 5)
    assert "; ".join((of_class.mistake, *clauses)) == " ".join(said.split())


def test_levels_are_one_class_and_two_answers_oppose_each_other() -> None:
    [of_class] = scale_of(LEVELS).classes
    assert {ORDINAL.class_of(score) for score in (1, 2, 9)} == {of_class}
    assert of_class.wrong(1, 3) == "gives 1 wrong level in 3 cases"
    assert BINARY.class_of(2) is BINARY.class_of(None) is None
    # A tie is the other one of two answers, and no level; an error is a share of the scale.
    assert [BINARY.tie(label) for label in (0, 1)] == [1, 0]
    assert scale_of(LEVELS).tie(2) is None
    assert [BINARY.error(score, 1) for score in (0, 1)] == [1, 0]
    assert [scale_of(LEVELS).error(score, 3) for score in (1, 2, 3, 9)] == [1, 0.5, 0, 1]


def test_cases_are_made_for_an_objective_or_for_levels() -> None:
    assert [BINARY.aim("fail"), BINARY.aim("pass"), BINARY.targets] == [1, 0, (None,)]
    assert scale_of(LEVELS).targets == (1, 2, 3)
    assert Verification("PASS", "", None).answer(BINARY) == 0
    assert Verification("FAIL", "", None).answer(BINARY) == 1
    assert Verification("FAIL", "", 2).answer(scale_of(LEVELS)) == 2
    # Words of labels come in pairs that oppose each other.
    assert [*BINARY.label_words.values()] == [0, 1] * (len(BINARY.label_words) // 2)
    assert not ORDINAL.label_words


@pytest.mark.parametrize(
    ("lowest", "highest", "within"),
    [(1, 5, 0), (1, 10, 0), (0, 49, 0), (0, 50, 1), (0, 100, 2), (-500, 499, 19)],
)
def test_on_a_wide_scale_a_fiftieth_off_is_right(lowest: int, highest: int, within: int) -> None:
    scale = numbered(lowest, highest)
    assert scale.within == within
    assert [scale.accepts(1 + off, 1) for off in (within, -within, within + 1)] == [1, 1, 0]
    assert [scale.accepts(None, 1), scale.accepts(1, None)] == [False, False]
    assert numbered(lowest, highest, 0).within == 0


def test_a_line_keeps_how_far_off_is_right_and_says_nothing_where_that_is_nothing() -> None:
    exact = replace(make_result(), target=60, label=60, scores=(61, 63, 63))
    assert (exact.outcome, "within" in ledger_line(exact)) == ("disagree", False)
    near = replace(exact, within=3)
    assert (near.outcome, result_from(ledger_line(near))) == ("agree", near)
    assert near.scale == replace(ORDINAL, within=3)

    # What was right before is told by the tolerance of now.
    def was_right(before: CaseResult, now: CaseResult) -> bool:
        compared = replace(Verdicts.of([now]), before=Coded.of([before.scores]))
        return bool(compared.was_right[0])

    assert was_right(exact, near)
    assert not was_right(near, exact)


CLASSES = classed((("tie", "both are as good"), ("First", "the first is better"), ("none", "")))


@pytest.mark.parametrize(
    ("scale", "target"),
    [(BINARY, None), (numbered(1, 3), 2), (named("harmful", "harmless"), None), (CLASSES, None)],
)
def test_a_line_reads_back_its_answers_with_n_a(scale: Scale, target: int | None) -> None:
    assert scale_of_line(scale.line, target).kind == scale.kind
    assert (scale_of_line("", None), scale_of_line("", 0)) == (BINARY, ORDINAL)
    more = with_not_applicable(scale, "the run has no such occasion")
    assert scale_of_line(more.line, target).classes == more.classes
    assert more.answers == (*scale.answers, NOT_APPLICABLE)
    assert more.scores == scale.scores
    assert (more.said(NOT_APPLICABLE), more.word(NOT_APPLICABLE)) == ("n/a", "n/a")
    assert label_value("N/A", more) == NOT_APPLICABLE
    assert not more.accepts(NOT_APPLICABLE, more.scores[0])


def test_classes_have_words_and_no_order() -> None:
    first = code_of("first")
    assert {CLASSES.said(score) for score in CLASSES.scores} == {"tie", "First", "none"}
    assert [of.word for of in CLASSES.classes] == ["tie", "First", "none"]
    assert (CLASSES.meant(first), CLASSES.word(first)) == ("First", "First")
    assert label_value("FIRST", CLASSES) == first
    # Named in another order, or beside others, a class is the same.
    assert classed((("First", ""), ("second", ""))).words[first] == "First"
    assert CLASSES.error(first, code_of("tie")) == 1
    assert (CLASSES.tie(first), with_not_applicable(BINARY, "").tie(1)) == (None, None)
    with pytest.raises(NoLabelError, match="must be tie, first or none"):
        label_value("second", CLASSES)


def problems(schema: dict[str, Any], data: Any) -> list[str]:
    return [error.json_path for error in jsonschema.Draft7Validator(schema).iter_errors(data)]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> SuiteFiles:
    return write_suite(tmp_path_factory.mktemp("suite"), mode="ordinal")


CONFIG_SCHEMA = json_schema.config_schema()
GOOD: dict[str, dict[str, Any]] = {
    "a section without content": {"judge": None, "gate": None},
    "null for a key": {"rand": {"stamp": None, "metric": None}},
    "verifier off": {"editor": {"verifier": False}},
    "a scale by its ends": {"rand": {"scale": [1, 5]}},
    "one preprocessor": {"cases": {"preprocess": "drop_tool_messages"}},
    "one judge for a panel": {"judges": {"name": "strict"}},
    "a panel": {"judges": [{"name": "strict", "temperature": 0.5}]},
    "a rate limit": {"judge": {"rate_limit": {"calls": 3, "period": 1.5}}},
}
BAD: dict[str, dict[str, Any]] = {
    "a misspelled key": {"judge": {"modell": "openai/gpt-4.1-mini"}},
    "a misspelled section": {"case": {"sample": 3}},
    "an unknown test": {"cases": {"kinds": ["agent_negatives"]}},
    "a percentage for a share": {"gate": {"min_accuracy": 90}},
    "a server without a scheme": {"judge": {"api_base": "localhost:8000"}},
    "a rate limit without a period": {"judge": {"rate_limit": {"calls": 3}}},
    "verifier on": {"editor": {"verifier": True}},
    "a blank path": {"judge": {"prompt_path": "  "}},
}


@pytest.mark.parametrize("name", [*GOOD, *BAD])
def test_both_agree_on_configs(name: str, suite: SuiteFiles) -> None:
    document = read_document(suite.config, str(suite.config))
    data = merged(convert(document.data).data, {**GOOD, **BAD}[name])
    path = suite.folder / "changed.yml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    assert bool(problems(CONFIG_SCHEMA, data)) is (name in BAD)
    with contextlib.nullcontext() if name in GOOD else pytest.raises(InputError):
        fit(read_document(path, str(path)))


@pytest.mark.parametrize(
    ("data", "right"),
    [
        ([{"id": "a", "instructions": "Be kind."}], True),
        ({"rubrics": [{"id": "a", "instruction": "Be kind.", "note": "ours"}]}, True),
        ([], False),
        ([{"id": "a"}], False),
        ([{"id": "a", "instructions": "  "}], False),
        ([{"id": "a", "instructions": "x", "instruction": "y"}], False),
    ],
)
def test_both_agree_on_rubric_files(data: Any, right: bool, tmp_path: Path) -> None:
    assert (not problems(json_schema.rubrics_schema(), data)) is right
    path = tmp_path / "rubrics.yml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    with contextlib.nullcontext() if right else pytest.raises(InputError):
        load_rubrics(path)
