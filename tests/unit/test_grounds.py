"""What labels rest on, in sentences and values."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.errors import InputError
from pytest_jrh.core.results import CaseResult, Rejection
from pytest_jrh.people import Grounds, held_against_people, is_same
from pytest_jrh.people.labels import PersonLabel, labels_path, read_people
from pytest_jrh.reports.grounds import label_sentences, labels_line
from pytest_jrh.reports.markdown import MarkdownReport
from pytest_jrh.reports.session import Session
from pytest_jrh.stats.people import AgainstPeople, VerifierAgainstPeople
from tests.support.judged_sessions import printed
from tests.support.made_cases import make_result, make_spec, make_suite, result_with

DIGESTS = [f"{number:064x}" for number in range(1000)]


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
    return label_sentences(session(results, grounds))


def labels(results: list[CaseResult], grounds: Grounds) -> str:
    """What the answer says of the labels."""
    [line] = labels_line(session(results, grounds))
    return line.text


def test_what_labels_rest_on_is_counted() -> None:
    results = [
        *(result(number) for number in range(5)),
        result(5, labelled_by="unconfirmed"),
        result(6, review="accepted"),
        result(7, labelled_by="program"),
    ]
    said = "5 by openai/gpt-4.1, 1 by people, 1 by a program, 1 unverified"
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
    assert labels(results, grounds).startswith("100 by a/b; people checked 50, ")
    found = sentences(results, grounds)
    assert found[0].startswith("Against people (50 blind labels): accuracy 80.0% (")
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
    said = "Against people (0 blind labels; 3 cases that nobody can tell left out): too few to"
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
    assert found[0].startswith("Against people (50 blind labels): accuracy ")
    assert found[1].startswith("The verifier confirmed wrong labels in 8 of 50 cases")
    assert found[2].startswith("The verifier rejected right labels in 1 of 1 case")
    assert found[3].startswith("one: Against people (40 blind labels): accuracy 80.0% (")
    assert found[4].startswith("one: The verifier confirmed wrong labels in 8 of 40 cases")
    assert len(found) == 5


def test_a_label_of_equal_cases_counts_once() -> None:
    results = [replace(result(number), case_digest=DIGESTS[0]) for number in range(14)]
    results += [result(number) for number in range(20, 40)]
    people = [person(0, 1), *(person(number, 1) for number in (20, 21, 22))]
    grounds = Grounds(verifier="a/b", people=tuple(people))
    assert labels(results, grounds) == "34 by a/b; people checked 4 (20 needed), none wrong"
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
    said = "3 cases with one rubric and text have contradicting labels (0 and 1)"
    assert said in MarkdownReport().text(contradicting)
    assert said in " ".join(printed(contradicting, 400))


def test_labels_that_are_not_blind_correct_nothing() -> None:
    results = [result(number) for number in range(100)]
    people = tuple(person(number, 1, blind=False) for number in range(50))
    [said] = sentences(results, Grounds(people=people))
    assert said.startswith("No judged case has a blind label of a person")


def test_the_last_blind_label_of_each_reviewer_counts() -> None:
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
    path = labels_path(suite.tests[0].output_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return [*read_people(suite)]


GOOD = {"case_digest": DIGESTS[1], "reviewer": "ann", "label": 1}


def test_labels_are_read_as_a_person_may_write_them(tmp_path: Path) -> None:
    whole = {**GOOD, "blind": True, "time": "2026-01-01T00:00:00Z", "note": "clear"}
    unclear = {**GOOD, "label": None, "case_id": "who reads it"}
    read = read_lines(tmp_path, whole, {**GOOD, "label": 0}, unclear)
    assert [(each.label, each.blind) for each in read] == [(1, True), (0, False), (None, False)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({**GOOD, "label": 2}, "label: is no answer; must be 0, 1, or null"),
        ({**GOOD, "case_digest": "abc"}, "case_digest: string should match pattern"),
        ({**GOOD, "lable": 1}, "lable: unexpected keyword argument"),
        ({"reviewer": "ann", "label": 1}, "case_digest: field required"),
        ("[1]", "input should be an object"),
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
