"""A session as one list of blocks, which every report renders."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_jrh.reports.blocks import Cases, Diff, Headline, Line, ReadFirst, Sentence, Table
from pytest_jrh.reports.said import next_lines, said, worst_cases, worst_results
from pytest_jrh.reports.session import Session
from pytest_jrh.stats.baseline import JudgePrompt, short
from pytest_jrh.store.people import Grounds, PersonLabel
from tests.support.judged_sessions import (
    DIGEST,
    always,
    derived,
    judged,
    misses,
    right,
    scored,
    session_of,
    wrong_on,
)
from tests.support.made_cases import result_with

if TYPE_CHECKING:
    from pytest_jrh.core.model import CaseResult, CaseSpec

PROMPT = JudgePrompt("refunds", "", short(DIGEST), "Be strict.", "/repo/judge.md")


def table_of(session: Session) -> Table:
    (table,) = (block for block in said(session).answer if isinstance(block, Table))
    return table


def texts(table: Table, name: str) -> list[str]:
    (row,) = (row for row in table.rows if row.name == name)
    return [cell.text for cell in row.cells]


def with_people(results: list[CaseResult], labels: dict[int, int]) -> Session:
    """A session in which Ann has given labels to some cases, by their place, without the answer."""
    results = [result_with(each, case_digest=f"{at:064x}") for at, each in enumerate(results)]
    people = tuple(
        PersonLabel(results[at].case_digest, "ann", label, blind=True)
        for at, label in labels.items()
    )
    return replace(session_of(results), grounds={"refunds": Grounds(people=people)})


def test_the_answer_has_one_order() -> None:
    session = session_of(
        judged(misses(6)), before=judged(right), prompt_before="Be kind.", prompts=[PROMPT]
    )
    session = replace(session, grounds={"refunds": Grounds(verifier="m")})
    kinds = [type(block) for block in said(session).answer]
    assert kinds == [Headline, Sentence, Table, Diff, ReadFirst, Line, Line]
    assert said(session).word == "FAIL"
    assert said(session).headline == "the judge misses 6 of 24 violations that it found before"


def test_what_is_missed_stands_beside_what_was_missed_before() -> None:
    table = table_of(session_of(judged(misses(6)), before=judged(misses(2))))
    assert table.titles == ("missed", "before", "false alarms")
    assert [row.name for row in table.rows] == ["tone", "refund_policy", "all"]
    assert texts(table, "tone") == ["6 of 12", "2", "0 of 12"]
    # What has not changed, or was not compared, has no column of its own.
    assert table_of(session_of(judged(misses(6)))).titles == ("missed", "false alarms")
    same = session_of(judged(misses(6)), before=judged(misses(6)))
    assert table_of(same).titles == ("missed", "false alarms")


def test_an_ordinal_judge_has_a_row_for_each_level() -> None:
    table = table_of(session_of(scored(always(1))))
    assert table.first == "level"
    assert table.titles == ("wrong level", "bias")
    assert texts(table, "level 1")[0].startswith("0 of ")


def test_several_judges_have_a_row_each_with_what_probes_turned() -> None:
    results = [*judged(misses(8), judge="a"), *judged(right, judge="b")]
    table = table_of(session_of(results))
    assert [row.name for row in table.rows] == ["a", "b"]
    turned = [*judged(right, judge="b"), *judged(right, judge="brittle")]
    probed = Session([*turned, *derived(["json_layout"], judge="brittle")])
    assert table_of(probed).titles == ("missed", "false alarms", "turned by probes")
    assert texts(table_of(probed), "brittle")[2].startswith("format_invariance ")
    assert texts(table_of(probed), "b")[2] == ""


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


def test_of_many_mistakes_the_rubric_with_the_most_is_read_first() -> None:
    def answer(spec: CaseSpec, expected: int) -> int:
        is_missed = spec.rubric_id == "tone" or spec.run_id < "run-004"
        return 0 if is_missed else expected

    session = replace(session_of(judged(answer, runs=40)), is_table=True)
    assert {result.spec.rubric_id for result in worst_results(session)[:40]} == {"tone"}
    [line] = next_lines(session)
    assert isinstance(line, Line)
    assert line.text.startswith("read the 40 cases of tone first, of 44; ")


def test_the_next_step_of_a_regression_is_to_decide_on_the_page() -> None:
    session = session_of(
        judged(misses(6)), before=judged(right), prompt_before="Be kind.", prompts=[PROMPT]
    )
    [line] = next_lines(replace(session, review_command="pytest --lf --jrh-review"))
    assert line == Line(
        "next",
        "label wrong: press r; right: fix judge.md, or --jrh-update-baseline",
        command="pytest --lf --jrh-review",
    )
    [line] = next_lines(session_of(judged(misses(6))))
    assert line == Line("next", "label wrong: press r; right: fix the judge")


def test_where_nothing_is_wrong_the_verdicts_are_to_be_kept() -> None:
    [line] = next_lines(session_of(judged(right)))
    assert isinstance(line, Line)
    assert line.text.startswith("hold later judges to these verdicts")
    assert not next_lines(session_of(judged(right), before=judged(right)))


def test_a_case_that_most_judges_are_wrong_about_is_read_first_and_named_once() -> None:
    session = session_of(
        [*judged(misses(3), judge="a"), *judged(misses(1), judge="b"), *judged(right, judge="c")]
    )
    cases = worst_cases(session)
    assert [(case.run, case.judge) for case in cases] == [
        ("run-000", "2 judges, a"),
        ("run-001", "judge a"),
        ("run-002", "judge a"),
    ]
