"""Tables of verdicts put to the runs of a suite, and the judge that gives them (rule Q9)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core.errors import InputError, Unscored
from pytest_jrh.core.model import (
    AgentRun,
    Case,
    CaseSpec,
    Label,
    Mode,
    PerturbationOutcome,
    Rubric,
    RunSummary,
    ScoreLevel,
    StageModel,
)
from pytest_jrh.core.sections import JudgeStage
from pytest_jrh.judges import JUDGES, with_own_keys
from pytest_jrh.judges.judge import JudgeSettings, SuiteJudge, judged_case
from pytest_jrh.judges.verdicts import TableJudge
from pytest_jrh.sources.label_files import LabelRow
from pytest_jrh.sources.labels import Joiner, Reading, find_verdicts

RUNS = (RunSummary("a", 1), RunSummary("b", 2), RunSummary("many", 1), RunSummary("many", 2))
KIND = Rubric("kind", "Be kind.")
HONEST = Rubric("honest", "Be honest.")
SCALE = Rubric("kind", "Be kind.", tuple(ScoreLevel(score, "") for score in range(1, 4)))
TURNS = ({"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"})


def joined(
    path: Path, text: str, *, rubrics: tuple[Rubric, ...] = (KIND,), **keys: Any
) -> SuiteJudge:
    """The judge of a table with this text, on the runs."""
    path.write_text(text, encoding="utf-8")
    section = with_own_keys(JudgeStage).model_validate({"verdicts": str(path), **keys})
    settings = JudgeSettings(None, StageModel("judge", ""), "verdicts", section)
    judge = JUDGES["verdicts"].build(settings, "binary", "")
    assert isinstance(judge, TableJudge)
    joiner = Joiner(RUNS, rubrics, frozenset(), {"uuid-b": ("b", 2)}, {"twice": ("twice@x",)})
    mode: Mode = "ordinal" if rubrics[0].score_levels else "binary"
    table, _ = find_verdicts(judge, mode, joiner, "table.csv")
    return judge.with_table(table)


def natural(run_id: str = "a", epoch: int = 1, rubric: Rubric = KIND) -> Case:
    """A run as it is, labelled as satisfied."""
    return Case(
        spec=CaseSpec("suite", "agent_labels", rubric.id, run_id, epoch),
        rubric=rubric,
        run=AgentRun(run_id, epoch, TURNS),
        outcome=PerturbationOutcome(TURNS, confirmed=True),
        expected=0,
        verified=True,
        mode="binary",
        objective="fail",
        label=Label((0,), "people"),
    )


def score(judge: SuiteJudge, case: Case, repeat: int = 1) -> int:
    async def judged() -> int:
        calls: Any = None
        return (await judge(case, repeat, calls)).score

    return asyncio.run(judged())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table.csv"


def test_a_verdict_is_given_to_its_own_run_epoch_and_rubric(path: Path) -> None:
    text = (
        "run_id,epoch,rubric_id,verdict\n"
        "a,1,kind,1\na,1,honest,0\nmany,1,kind,0\nmany,2,kind,1\nuuid-b,2,kind,1\n"
    )
    judge = joined(path, text, rubrics=(KIND, HONEST))
    assert score(judge, natural()) == 1
    assert score(judge, natural(rubric=HONEST)) == 0
    assert [score(judge, natural("many", epoch)) for epoch in (1, 2)] == [0, 1]
    assert score(judge, natural("b", 2)) == 1
    with pytest.raises(Unscored, match="no verdict on the run 'many'"):
        score(judge, natural("many", 1, HONEST))


EDITED = ({"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Go away"})


@pytest.mark.parametrize(
    "case",
    [
        replace(natural(), outcome=PerturbationOutcome(EDITED)),
        replace(natural(), altered=True),
        replace(natural(), style="json"),
        replace(natural(), spec=replace(natural().spec, test="agent_perturbation")),
        # Its planner found nothing to edit.
        replace(natural(), spec=replace(natural().spec, test="agent_positives")),
        replace(natural(), spec=replace(natural().spec, base="agent_labels", variant="up")),
    ],
    ids=["edited", "altered", "another layout", "made to violate", "made to satisfy", "a probe's"],
)
def test_what_is_no_run_as_it_is_has_no_verdict(path: Path, case: Case) -> None:
    judge = joined(path, "run_id,verdict\na,0\n")
    assert score(judge, natural()) == 0
    with pytest.raises(Unscored, match="has verdicts on runs as they are") as trouble:
        score(judge, case)
    assert trouble.value.outcome == "input_error"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run_id,verdict\nmany,0\n", 'epoch: is missing; the epochs of the run "many" are 1, 2'),
        ("run_id,verdict\nb,0\n", 'epoch: is missing; the run "b" is of epoch 2'),
        ("run_id,verdict\ntwice,0\n", "run_id: got .twice., which several files have"),
        ("run_id,verdict\na,2\n", "verdict: got .2.; must be 0, 1, "),
        ("run_id,verdict\na,nan\n", "verdict: got .nan."),
        ('{"run_id": "a", "verdict": [1]}\n', "1: verdict: got .*; must be one value"),
        ('{"run_id": "a", "verdict": NaN}\n', "1: is not a JSON object"),
        ('{"run_id": "a", "verdict": 0}\n[1]\n', "2: got .*; must be a JSON object"),
        ("run_id,epoch,verdict\nuuid-b,1,0\n", "no verdict on a run of this suite"),
        ("run_id,rubric_id,verdict\na,other,0\n", "no verdict on a run of this suite"),
        ("run_id,test,verdict\na,agent_perturbation,0\n", "no verdict on a run of this suite"),
        ("run_id,repeat,verdict\na,1,0\na,,0\n", "3: verdict: .* repeats line 2"),
        ("run_id,verdict\na,0\nuuid-b,0\nuuid-b,1\n", "4: verdict: .* contradicts line 3"),
    ],
)
def test_what_could_be_of_another_run_is_refused_with_its_line(
    path: Path, text: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        joined(path, text)


def test_a_line_without_a_rubric_is_of_a_suites_only_one(path: Path) -> None:
    assert score(joined(path, "run_id,verdict\na,1\n"), natural()) == 1
    with pytest.raises(InputError, match="names no rubric"):
        joined(path, "run_id,verdict\na,1\n", rubrics=(KIND, HONEST))


def test_a_scale_and_words(path: Path) -> None:
    case = replace(natural(rubric=SCALE), mode="ordinal", levels=SCALE.score_levels)
    assert score(joined(path, "id,score\na,3.0\n", rubrics=(SCALE,)), case) == 3
    with pytest.raises(InputError, match="must be a score from 1 to 3"):
        joined(path, "id,score\na,4\n", rubrics=(SCALE,))
    judge = joined(path, "id,score\na,good\n", score_map={"good": 0, "bad": 1})
    assert score(judge, natural()) == 0
    with pytest.raises(InputError, match="the keys of score_map are good, bad"):
        joined(path, "id,score\na,fair\n", score_map={"good": 0, "bad": 1})


def test_a_column_named_content_that_holds_text_is_no_digest(path: Path) -> None:
    text = '{"id": "a", "score": 0, "content": [{"role": "user"}], "reasoning": {"x": 1}}\n'
    assert score(joined(path, text), natural()) == 0
    with pytest.raises(Unscored, match="for another text"):
        score(joined(path, "id,score,content\na,0,0123456789abcdef\n"), natural())


def test_a_judge_learns_of_which_run_a_case_is() -> None:
    judged = judged_case(natural("b", 2), show_reasoning=False)
    assert (judged.run_id, judged.epoch) == ("b", 2)


ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "many", "uuid-b", "x"]), st.sampled_from([None, 1, 2, 3])),
    max_size=6,
)


@given(ROWS)
def test_a_verdict_is_always_of_a_line_that_can_only_mean_its_run(
    rows: list[tuple[str, int | None]],
) -> None:
    joiner = Joiner(RUNS, (KIND,), frozenset(), {"uuid-b": ("b", 2)})
    lines = [
        LabelRow(run_id, "0", epoch=epoch, line=line) for line, (run_id, epoch) in enumerate(rows)
    ]
    joined = joiner.join_verdicts(lines, Reading("table.csv"))
    for (_, run_id, epoch, _), verdict in joined.verdicts.items():
        name, named_epoch = rows[verdict.line]
        assert name == run_id or (name, run_id) == ("uuid-b", "b")
        assert named_epoch in (epoch, None)
        assert named_epoch is not None or (run_id, epoch) in {("a", 1), ("b", 2)}
        assert named_epoch is not None or name != "b"
