"""A table of questions and answers as a suite: labels, made cases, four kinds of judges."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pytest_jrh.core.results import CaseResult
from tests.plugin.recorded import run_pytest
from tests.support.ledgers import results_in
from tests.support.model_server import ModelServer, Obedient

ROWS = """id,question,context,answer,human_ok,topic
a,Where is my order?,It left on Monday.,On its way since Monday.,yes,orders
b,May I return it?,Returns take 14 days.,No. ok-marker-violation,no,returns
c,Do you ship abroad?,Europe only.,"Yes, to Europe.",yes,orders
d,Who are you?,A shop.,,yes,other
"""
RUBRICS = "- {id: kind, instructions: The answer is kind.}\n"
JUDGES = """
from inspect_ai.scorer import Score, Scorer, accuracy, scorer

def said(text):
    return 1 if "marker-violation" in text else 0

def strict(case):
    assert case.request and case.context and "human_ok" not in case.metadata
    return said(case.response)

@scorer(metrics=[accuracy()])
def scoring() -> Scorer:
    async def score(state, target) -> Score:
        assert state.input_text and state.user_prompt.text
        return Score(value=said(state.output.completion))
    return score
"""
CONFIG = """
suite: {of: answers, log: rows.csv, rubrics: rubrics.yml}
cases: {kinds: [labels, perturbation, positives]}
labels: {metadata: human_ok, map: {"yes": satisfied, "no": violated}}
editor: {model: openai/editor}
"""
PANEL = """
judges:
  - {name: prompt, model: openai/judge}
  - {name: code, python: "judges.py:strict"}
  - {name: scorer, inspect_scorer: "judges.py@scoring", score_map: {"0": 0, "1": 1}}
"""


def write(folder: Path, config: str) -> Path:
    for name, text in {"rows.csv": ROWS, "rubrics.yml": RUBRICS, "judges.py": JUDGES}.items():
        (folder / name).write_text(text, encoding="utf-8")
    path = folder / "answers.yml"
    path.write_text(config, encoding="utf-8")
    return path


def session(folder: Path, server: ModelServer, *options: str) -> tuple[str, list[CaseResult]]:
    done = run_pytest(folder, "--jrh-config=answers.yml", *options, env=server.environment)
    return done.stdout, results_in(folder / "outputs/answers.yml")


def calls(server: ModelServer) -> Counter[str]:
    return Counter(str(request.stage) for request in server.requests)


def test_three_calls_make_and_judge_a_case_and_a_replay_makes_none(tmp_path: Path) -> None:
    write(tmp_path, f"{CONFIG}judge: {{model: openai/judge}}\n")
    with ModelServer(Obedient()) as server:
        output, results = session(tmp_path, server, "--jrh-record-mode=once")
        asked = calls(server)
        replayed, again = session(tmp_path, server)
        assert calls(server) == asked
    counts = Counter((result.test, result.outcome) for result in results)
    # The positives of `a` and `c` stay as they are; that of `b` stays violated, and is no case.
    assert counts == {
        ("labels", "agree"): 3,
        ("agent_perturbation", "agree"): 3,
        ("agent_positives", "agree"): 2,
        ("labels", "no_case"): 1,
        ("agent_perturbation", "no_case"): 1,
        ("agent_positives", "no_case"): 2,
    }, output
    assert asked == {"editor": 6, "verifier": 6, "judge": 8}
    assert [result.outcome for result in again] == [result.outcome for result in results]
    assert "0 calls, 20 replayed" in replayed
    assert "no case of 1 row with an empty answer: line " in output


def test_prompts_show_the_parts_of_an_answer_and_no_label(tmp_path: Path) -> None:
    config = CONFIG.replace("[labels, perturbation, positives]", "[labels]")
    write(tmp_path, f"{config}judge: {{model: openai/judge}}\n")
    with ModelServer(Obedient()) as server:
        session(tmp_path, server, "--jrh-record-mode=once")
        [request] = (call for call in server.requests if "left on Monday" in call.text)
    for part in (
        "<context>\nIt left on Monday.\n</context>",
        "<request>\nWhere is my order?\n</request>",
        "<response>\nOn its way since Monday.\n</response>",
    ):
        assert part in request.text
    assert "human_ok" not in request.text


def test_a_panel_of_a_prompt_code_and_a_scorer_judges_answers(tmp_path: Path) -> None:
    write(tmp_path, CONFIG.replace("[labels, perturbation, positives]", "[labels]") + PANEL)
    with ModelServer(Obedient()) as server:
        _, results = session(tmp_path, server, "--jrh-record-mode=once")
        _, again = session(tmp_path, server)
    verdicts = {(result.judge, result.run_id): result.score for result in results}
    for judge in ("prompt", "code", "scorer"):
        assert [verdicts[judge, run] for run in "abc"] == [0, 1, 0]
    assert [result.score for result in again] == [result.score for result in results]


def test_an_ordinal_answer_lands_on_each_score_and_may_stay(tmp_path: Path) -> None:
    config = CONFIG.replace("[labels, perturbation, positives]", "[perturbation]")
    config = "\n".join(line for line in config.splitlines() if not line.startswith("labels"))
    path = write(tmp_path, f"{config}\njudge: {{model: openai/judge}}\n")
    levels = "[{score: 1, label: rude}, {score: 2, label: curt}, {score: 3, label: kind}]"
    rubric = f"- {{id: kind, instructions: How kind it is., score_levels: {levels}}}\n"
    path.with_name("rubrics.yml").write_text(rubric, encoding="utf-8")

    with ModelServer(Obedient()) as server:
        output, results = session(tmp_path, server, "--jrh-record-mode=once")
    scores = [(result.label, result.score) for result in results if result.run_id == "a"]
    assert scores == [(1, 1), (2, 2), (3, 3)], output


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("cases: {kinds: [labels], edits: acts}", "got acts, and an answer has none"),
        (
            "suite: {of: answer, log: rows.csv}",
            'suite.of: got "answer"; must be runs, answers or pairs',
        ),
    ],
)
def test_what_answers_cannot_be_is_refused(tmp_path: Path, section: str, message: str) -> None:
    name = section.partition(":")[0]
    lines = [line for line in CONFIG.splitlines() if not line.startswith(name)]
    write(tmp_path, "\n".join([*lines, section, "judge: {model: openai/judge}", ""]))
    with ModelServer(Obedient()) as server:
        done = run_pytest(tmp_path, "--jrh-config=answers.yml", env=server.environment)
    assert message in done.stdout + done.stderr
