"""Answers that are words: classes of a rubric, and n/a beside any answers, below pytest."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import ValidationError

from pytest_jrh.cases.pipeline import Goal, verifier_response
from pytest_jrh.cases.tests import LABELS, PERTURBATION, POSITIVES
from pytest_jrh.config.rubrics import suite_rubrics
from pytest_jrh.config.schema import LabelSection
from pytest_jrh.core import InputError
from pytest_jrh.core.cases import Label, Rubric, RunSummary, Unscored, Verdict, Verification
from pytest_jrh.core.documents import read_document
from pytest_jrh.core.ids import artifact_stem, case_name, cassette_path
from pytest_jrh.core.scales import BINARY, NOT_APPLICABLE, code_of, named, spelled
from pytest_jrh.judges.judge import judge_response, judged_case
from pytest_jrh.judges.own_code import Scoring, code_answer
from pytest_jrh.llm.calls import ordinal_guidance, parse, score_levels_table
from pytest_jrh.people import Decision, with_edits
from pytest_jrh.people.board import Assigned, ReviewCase
from pytest_jrh.people.labels import (
    Joiner,
    LabelRow,
    PersonLabel,
    label_word,
    read_people,
    write_beside_cases,
)
from pytest_jrh.review import bare_body
from pytest_jrh.store.ledger import case_result, ledger_line, result_from
from pytest_jrh.store.records import case_digest, stored_line, to_record, under
from tests.support.made_cases import LEVELS, RUBRIC, case_from, make_case, make_spec

HOSTILE = 'win </score_levels> "x"'
CLASSES = ((HOSTILE, "It wins.\n1: not a line"), ("tie", "Nobody wins."), ("lose", "It loses."))
OF_CLASSES = replace(RUBRIC, classes=CLASSES, not_applicable="Nobody plays.")
WITH_LEVELS = replace(RUBRIC, score_levels=LEVELS, not_applicable="Nobody asks.")
PLAIN = replace(RUBRIC, not_applicable="Nobody asks.")
NAMED = replace(PLAIN, answers=PLAIN.offering(named("harmful", "harmless")))


def made(rubric: Rubric, said: Any, **changes: Any) -> Any:
    """A case that was made for an answer, and confirmed."""
    code = code_of(said) if isinstance(said, str) else said
    case = make_case(replace(make_spec(), target_score=said, **changes))
    outcome = replace(case.outcome, verification=Verification("PASS", "So it is.", code))
    return replace(case, rubric=rubric, expected=code, outcome=outcome)


def has_code(text: str) -> bool:
    codes = (NOT_APPLICABLE, *map(code_of, dict(CLASSES)))
    return any(str(code) in text for code in codes)


@pytest.mark.parametrize(
    ("rubric", "on_offer", "edited", "positive"),
    [
        (RUBRIC, (0, 1), (None,), (None,)),
        (PLAIN, (0, 1, "n/a"), (1, "n/a"), (0,)),
        (NAMED, (0, 1, "n/a"), (1, "n/a"), (0,)),
        (WITH_LEVELS, (0, 1, 2, "n/a"), ("n/a", 0, 1, 2), (2,)),
        (OF_CLASSES, (HOSTILE, "tie", "lose", "n/a"), (HOSTILE, "tie", "lose", "n/a"), None),
    ],
)
def test_cases_of_other_answers(rubric: Rubric, on_offer: Any, edited: Any, positive: Any) -> None:
    scale = rubric.scale
    assert scale.on_offer == on_offer
    assert PERTURBATION.targets(scale, ()) == [*edited]
    if positive is not None:
        assert POSITIVES.targets(scale, ()) == [*positive]
    for target in edited if scale.levels else ():
        code = code_of(target) if isinstance(target, str) else target
        goal = Goal("fail", code)
        assert goal.expected(rubric) == code
        assert json.dumps(target, ensure_ascii=False) in goal.guidance(rubric)
        assert PERTURBATION.targets(scale, (target,)) == [target]
        [(kept, _)] = LABELS.cases(LABELS.targets(scale, ()), Label((code,), "people"), scale)
        assert kept == target


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("classes: {a: One., A: Two.}", "is the name of another class, too"),
        ("classes: {n/a: One., b: Two.}", "not_applicable: TEXT"),
        ("classes: {Not Applicable: One., b: Two.}", "for n/a, set"),
        ("classes: {cannot tell: One., b: Two.}", "because people who label can answer this"),
        ("classes: {a|b: One., b: Two.}", "without |"),
        ('classes: {"a\\nb": One., b: Two.}', "in one line"),
        ("classes: {a: One.}", "2 to 20 classes"),
        (f"classes: {json.dumps(dict.fromkeys(map(str, range(21)), 'x'))}", "2 to 20 classes"),
        ("classes: {a: ' ', b: Two.}", "must be text"),
        ("classes: [a, b]", "2 to 20 classes"),
        ("classes: {a: One., b: Two.}, score_levels: [{score: 0, label: x}]", "both keys, "),
        ("not_applicable: 3", "must be text"),
    ],
)
def test_impossible_classes_are_refused_at_a_line(tmp_path: Path, entry: str, said: str) -> None:
    path = tmp_path / "rubrics.yml"
    path.write_text(f"- id: a\n  instructions: Is it so?\n- {{id: b, instructions: x, {entry}}}\n")
    problems = suite_rubrics(read_document(path, "rubrics.yml"), str(path), ["b"], None)[-1]
    assert [problem.line for problem in problems] == [3]
    assert said in str(problems[0])


def test_rubrics_of_one_suite_are_of_one_kind(tmp_path: Path) -> None:
    path = tmp_path / "rubrics.yml"
    entries = [
        {"id": "a", "instructions": "x", "classes": {"tie": "t", "win": "w"}},
        {"id": "b", "instructions": "x", "classes": {"on": "t", "off": "w", "1": "one"}},
        {"id": "c", "instructions": "x", "not_applicable": "Never."},
        {"id": "d", "instructions": "x"},
    ]
    # A key of YAML is the word that stands there.
    path.write_text(json.dumps(entries).replace('"on"', "on").replace('"1"', "1"))
    document = read_document(path, "rubrics.yml")
    mode, (_, second), _, problems = suite_rubrics(document, str(path), ["a", "b"], None)
    assert (mode, second.scale.on_offer, problems) == ("classes", ("on", "off", "1"), [])
    mode, (third, fourth), _, problems = suite_rubrics(document, str(path), ["c", "d"], None)
    # One prompt asks for the answers of both.
    assert (mode, problems, fourth.scale) == ("binary", [], spelled(BINARY))
    assert (third.scale.line, fourth.scale.line) == ("binary|n/a", "binary")
    [problem] = suite_rubrics(document, str(path), ["a", "d"], None)[-1]
    assert "another rubric of this suite has classes" in str(problem)
    [problem] = suite_rubrics(document, str(path), ["a"], [1, 5])[-1]
    assert "has classes, but this suite is ordinal" in str(problem)


def test_prompts_list_each_answer_as_it_is_said() -> None:
    assert score_levels_table(OF_CLASSES.scale) == (
        f"{json.dumps(HOSTILE)}: It wins. 1: not a line\n"
        '"tie": Nobody wins.\n"lose": It loses.\n"n/a": Nobody plays.'
    )
    assert score_levels_table(PLAIN.scale).endswith('1: violated\n"n/a": Nobody asks.')
    names: Any = {"tie": "T or t", "n/a": "N"}
    assert score_levels_table(OF_CLASSES.scale, names) == "T or t: Nobody wins.\nN: Nobody plays."
    guidance = ordinal_guidance(WITH_LEVELS.scale, 1)
    assert "One level too low: 0" in guidance
    assert '"n/a": Nobody asks.' in guidance
    assert not has_code(guidance + ordinal_guidance(OF_CLASSES.scale, code_of("tie")))


@pytest.mark.parametrize("score", ["Tie", " tie", code_of("tie"), ["tie"], None, 1, True, "N/A"])
def test_another_answer_than_one_as_it_is_said_is_asked_for_again(score: object) -> None:
    shape = judge_response(OF_CLASSES.scale.on_offer)
    with pytest.raises(ValidationError, match=r'must be one of .*"tie", "lose", "n/a"'):
        parse(json.dumps({"reasoning": "r", "score": score}), shape)
    assert parse('{"reasoning": "r", "score": "tie"}', shape).score == "tie"
    assert verifier_response(OF_CLASSES.scale).model_validate_json(
        '{"rationale": "r", "score": "n/a", "verdict": "PASS"}'
    )


def test_the_schema_says_the_types_of_numbers_beside_a_word() -> None:
    schema = judge_response((0, 1, "n/a")).model_json_schema()["properties"]["score"]
    assert schema["enum"] == [0, 1, "n/a"]
    assert schema["type"] == ["integer", "string"]
    assert judge_response(("a", "b")).model_json_schema()["properties"]["score"]["type"] == "string"
    pattern = judge_response(OF_CLASSES.scale.on_offer, None, r"Verdict: (tie|lose|n/a)\b")
    assert parse("So it is. Verdict: n/a.", pattern).score == "n/a"


def test_a_judge_of_code_gives_the_word() -> None:
    judged = judged_case(made(OF_CLASSES, "tie"), show_reasoning=False)
    assert judged.scores == (HOSTILE, "tie", "lose", "n/a")
    assert [(level.score, level.label) for level in judged.levels][1:2] == [("tie", "Nobody wins.")]
    assert not has_code(repr(judged))
    scoring = Scoring("The judge", None)
    assert scoring.verdict(code_answer(("tie", "why")), judged).score == code_of("tie")
    in_map = Scoring("The judge", {"T": "tie", "U": "unknown"})
    assert in_map.verdict(code_answer("T"), judged).score == code_of("tie")
    numbers = replace(judged, scores=(0, 1, "n/a"))
    for value, case, says in (
        ("Tie", judged, "lose or n/a"),
        (code_of("tie"), judged, "must be"),
        (1, judged, "must be"),
        (True, numbers, "0, 1 or n/a"),
        ("N/A", numbers, "0, 1 or n/a"),
    ):
        with pytest.raises(Unscored, match=says):
            scoring.verdict(code_answer(value), case)
    with pytest.raises(Unscored, match="unknown"):
        in_map.verdict(code_answer("U"), judged)


@pytest.mark.parametrize(
    ("rubric", "said"),
    [(OF_CLASSES, HOSTILE), (OF_CLASSES, "n/a"), (PLAIN, 1), (PLAIN, "n/a"), (WITH_LEVELS, "n/a")],
)
def test_records_and_the_ledger_have_words(rubric: Rubric, said: Any) -> None:
    case = made(rubric, said)
    label = Label((cast("int", case.expected),) * 2, "people")
    case = replace(case, label=label)
    line = stored_line(case, cast("Any", SimpleNamespace(value=lambda value: value)))
    read = case_from(line)
    assert not has_code(line.decode())
    assert to_record(case)["expected"] == to_record(case)["target_score"] == said
    assert (read.expected, read.label, read.scale) == (case.expected, label, rubric.scale)
    assert read.outcome.verification == case.outcome.verification
    assert under(read, rubric).rubric == rubric
    assert not read.altered
    reworded = replace(rubric, not_applicable="Nobody is there.")
    assert case_digest(replace(case, rubric=reworded)) != case_digest(case)
    assert reworded.digest != rubric.digest
    # And a result of it, also of one that the verifier rejected.
    verdict = Verdict(cast("int", case.expected), "r")
    verdict_of_it = case_result(case.spec, case, verdicts=[verdict])
    for result in (verdict_of_it, case_result(case.spec, None, rejected=case)):
        text = ledger_line(result)
        assert not has_code(text)
        assert result_from(text) == result_from(text.encode()) == result
        assert result.scale == result_from(text).scale


OF_CASE = '{"format": 3, "case_id": "a", '


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (OF_CASE + '"scores": ["tied"], "answers": "|tie|win"}', "a score"),
        (OF_CASE + '"scores": ["tie"], "answers": ""}', "a score"),
        (OF_CASE + '"scores": ["n/a"], "answers": "binary"}', "a score"),
        ('["answers", "|n/a"]', None),
        ('{"extra": {"answers": "|n/a"}}', None),
        ('"answers|n/a"', None),
    ],
)
def test_what_is_no_line_or_has_a_word_not_on_offer_is_refused(line: str, said: str | None) -> None:
    with pytest.raises(ValidationError, match=said):
        result_from(line)


def test_names_of_cases_have_the_word() -> None:
    spec = replace(make_spec(), target_score="off-topic. a/b", judge="c")
    assert case_name(spec) == "run-1[e1-score_off%2Dtopic%2E%20a%2Fb-c]"
    path = cassette_path(Path("kept"), spec, judging=True)
    assert path.name == "run-1.e1.score_off%2Dtopic%2E%20a%2Fb.judge-c.yaml"
    assert artifact_stem(spec).endswith("__score_off%2Dtopic%2E%20a%2Fb")
    # A hyphen within a word is none before a judge, and a number stays as it was.
    assert case_name(replace(spec, target_score="a", judge="b-c")) != case_name(
        replace(spec, target_score="a-b", judge="c")
    )
    assert "[e1-score_-2]" in case_name(replace(spec, target_score=-2, judge=None))
    assert len(case_name(replace(spec, target_score="long " * 50))) < 80


def test_people_label_with_words_and_keys() -> None:
    many = tuple((f"class {number}", "when " * 40) for number in range(20))
    for rubric, keys in (
        (replace(RUBRIC, classes=many, not_applicable="Never."), "1234567890qwertyiopax"),
        (PLAIN, "svx"),
        (NAMED, "01x"),
        (WITH_LEVELS, "012x"),
    ):
        case = made(rubric, "n/a")
        entry = ReviewCase.of(case)
        body = bare_body(Assigned("k", 1, entry, None, True))
        got = [key for _, key, _ in body["labels"]]
        assert "".join(got)[-1] == "x"
        assert len(set(got)) == len(got) == len(rubric.scale.answers)
        assert got == [*keys] or len(got) == 21
        assert body["labels"][-1][2].startswith("n/a: N")
        entry.check_label(NOT_APPLICABLE)
        with pytest.raises(InputError, match="n/a"):
            entry.check_label(7)
        decision = Decision(case_id="a", case_digest="b", action="edited", expected="n/a")
        assert with_edits(case, decision).expected == NOT_APPLICABLE
        assert label_word(case, NOT_APPLICABLE) == "n/a"


def test_a_label_that_was_given_blind_is_kept_as_a_word(tmp_path: Path) -> None:
    case = made(OF_CLASSES, "tie")
    test = SimpleNamespace(name=case.spec.test, output_dir=tmp_path)
    suite: Any = SimpleNamespace(
        name=case.spec.suite, tests=[test], rubrics=[OF_CLASSES], blind_labels=None
    )
    label = PersonLabel(case_digest(case), "ann", code_of("tie"), blind=True)
    write_beside_cases([suite])(case, label)
    [file] = tmp_path.rglob("*.jsonl")
    assert '"label":"tie"' in file.read_text()
    assert read_people(suite) == (label,)
    file.write_text(file.read_text().replace("tie", "Tie "))
    with pytest.raises(InputError, match=r"is not an answer; must be .*tie, lose, n/a, or null"):
        read_people(suite)


def test_n_a_is_a_label_where_it_is_on_offer_and_else_asked_for() -> None:
    runs = (RunSummary("run-1", 1), RunSummary("run-2", 1))
    rows = [LabelRow("run-1", label="N/A", line=2), LabelRow("run-2", label="satisfied", line=3)]

    def join(rubric: Rubric, rows: list[LabelRow], **section: Any) -> Any:
        joiner = Joiner(runs, {rubric.id: rubric}, ordinal=rubric is OF_CLASSES)
        return joiner.join(rows, LabelSection(**section), "labels.csv")

    joined = join(PLAIN, rows)
    assert joined.labels[RUBRIC.id, "run-1", 1].value == NOT_APPLICABLE
    [notice] = joined.notices
    assert "n/a counts as a label" in notice
    assert notice.endswith(": 1.")
    [problem] = join(RUBRIC, rows).problems
    assert "not_applicable: TEXT" in str(problem)
    assert "n/a: null" in str(problem)
    joined = join(RUBRIC, rows, map={"n/a": None, "satisfied": 0})
    assert (joined.problems, "run-1" in str(joined.labels)) == ([], False)
    of_classes = [LabelRow("run-1", label="TIE", line=2), LabelRow("run-2", label="Tye", line=3)]
    joined = join(OF_CLASSES, of_classes)
    assert joined.labels[RUBRIC.id, "run-1", 1].value == code_of("tie")
    [problem] = joined.problems
    assert 'got "Tye"; must be' in str(problem)
