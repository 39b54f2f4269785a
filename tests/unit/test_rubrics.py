"""Rubric files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.config.rubrics import load_rubrics, suite_rubrics
from pytest_jrh.core.cases import Rubric
from pytest_jrh.core.documents import read_document
from pytest_jrh.core.errors import InputError, Problem, collecting
from pytest_jrh.core.scales import ScoreLevel
from tests.support.sessions import ANY_JSON


def written(folder: Path, text: str, name: str = "rubric.yml") -> Path:
    path = folder / name
    path.write_text(dedent(text), encoding="utf-8")
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
        assert load_rubrics(path) == (
            Rubric("a", "x", (), str(path), 2),
            Rubric("b", "y", levels, str(path), 3),
        )


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
        ((0, 2), "score_levels", "must be each once"),
        ((0, 0), "score_levels", "scores are 0, 0"),
        ((0.5,), "score_levels[0].score", "got 0.5; must be an integer"),
        ((0, 1_000_000_000), "score_levels", "without gaps"),
    ],
)
def test_a_broken_scale_is_refused_in_both_modes(
    tmp_path: Path, scores: tuple[float, ...], key: str, message: str
) -> None:
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
def test_whatever_json_holds_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, entry: dict[str, object]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps([entry]), encoding="utf-8")
    rubrics: tuple[Rubric, ...] = ()
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
def test_any_bytes_are_refused_without_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes
) -> None:
    for name in ("any.yml", "any.json"):
        path = tmp_path_factory.getbasetemp() / name
        path.write_bytes(raw)
        with pytest.raises(InputError):
            load_rubrics(path)
