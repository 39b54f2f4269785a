"""Judges that are scorers of Inspect, asking models."""

from __future__ import annotations

import pytest

from pytest_jrh.core.errors import InputError
from pytest_jrh.engine.suite import make_ready
from tests.plugin.own_judges import ONE, MakeJudged, summary, words
from tests.plugin.recorded import run_pytest

SCORERS = """
from inspect_ai.scorer import INCORRECT, Score, Scorer, accuracy, scorer


@scorer(metrics=[accuracy()])
def several() -> Scorer:
    async def score(state, target) -> Score:
        return Score(value={"bad": True, "length": 7}, explanation="Read it.")

    return score


@scorer(metrics=[accuracy()])
def silent() -> Scorer:
    async def score(state, target) -> Score:
        return Score.unscored(explanation="Too long to read.")

    return score


@scorer(metrics=[accuracy()])
def older() -> Scorer:
    # As the graders of Inspect did before 0.3.245.

    async def score(state, target) -> Score:
        return Score(
            value={"grade": INCORRECT},
            explanation="Grade not found in model output: Hm, I cannot tell.",
        )

    return score
"""


NO_VERDICT = {
    "several": "gave several values (bad, length), and a judge has to give one",
    "silent": "left the case unscored: Too long to read.",
    "older": "left the case unscored: Grade not found in model output: Hm, I cannot",
}


def test_what_a_scorer_says_may_be_no_verdict(judged: MakeJudged) -> None:
    made = judged(SCORERS)
    made.panel({"name": name, "inspect_scorer": f"judges.py@{name}"} for name in NO_VERDICT)
    done = run_pytest(made.suite.folder, made.suite.option, *ONE)
    assert summary(done) == "21 deselected, 3 errors", done.stdout
    assert words(done).count("(invalid_response): the judge gave no verdict.") == 3
    for said in NO_VERDICT.values():
        assert said in words(done)


def test_a_scorer_that_is_not_there_is_refused(judged: MakeJudged) -> None:
    made = judged(SCORERS)
    made.configure({"inspect_scorer": "judges.py@no_such"})
    folder = made.suite.folder
    with pytest.raises(InputError) as refused:
        make_ready(made.suite.config, cwd=folder, rootdir=folder)
    said = " ".join(str(refused.value).split())
    assert "judge.inspect_scorer: the scorer 'judges.py@no_such' cannot be" in said
    assert "file.py@name, or package/name of an installed package" in said
