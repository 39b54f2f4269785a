"""A session as one list of blocks, which every report renders."""

from __future__ import annotations

from dataclasses import replace

from pytest_jrh.core.model import CaseResult
from pytest_jrh.reports.blocks import Cases, Headline, Line
from pytest_jrh.reports.said import said, worst_cases, worst_results
from pytest_jrh.reports.session import Session
from pytest_jrh.store.people import Grounds, PersonLabel
from tests.support.judged_sessions import judged, misses, right, session_of, wrong_on
from tests.support.made_cases import result_with


def with_people(results: list[CaseResult], labels: dict[int, int]) -> Session:
    """A session in which Ann has given labels to some cases, by their place, without the answer."""
    results = [result_with(each, case_digest=f"{at:064x}") for at, each in enumerate(results)]
    people = tuple(
        PersonLabel(results[at].case_digest, "ann", label, blind=True)
        for at, label in labels.items()
    )
    return replace(session_of(results), grounds={"refunds": Grounds(people=people)})


def test_labels_that_people_found_wrong_come_first() -> None:
    session = with_people(judged(right), {0: 0, 1: 1, 2: 0})
    headline, wrong, *_ = said(session).answer
    assert isinstance(headline, Headline)
    assert isinstance(wrong, Cases)
    assert wrong.title == "2 labels are wrong, say people who did not see the answer."
    assert [case.why for case in wrong.cases] == [
        "violated by verifier; blind, ann says satisfied"
    ] * 2
    [labels] = [
        block
        for block in said(session).answer
        if isinstance(block, Line) and block.title == "labels"
    ]
    assert labels.text == "48 by the verifier; people checked 3 (20 needed), 2 wrong"
    assert labels.weight == "warning"


def test_a_case_whose_label_a_person_confirmed_is_read_first() -> None:
    # The first three are violations of which the judge misses all.
    session = with_people(judged(misses(9), rubrics=("tone",)), {2: 1, 0: 0})
    cases = worst_cases(session)
    assert cases[0].run == "run-002"
    assert cases[0].basis == "verifier, ann blind"
    assert cases[-1].run == "run-000"
    assert cases[-1].basis == "verifier; blind, ann says satisfied"


def test_new_mistakes_are_read_before_old_ones() -> None:
    before = judged(wrong_on("run-001"), runs=6)
    now = judged(wrong_on("run-001", "run-004"), runs=6)
    worst = worst_results(session_of(now, before=before))
    assert {result.spec.run_id for result in worst[: len(worst) // 2]} == {"run-004"}
