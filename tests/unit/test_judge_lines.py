"""What the ledger and the baseline say of each judge."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_jrh.core.calls import Spending, StageModel
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.redact import NO_SECRETS
from pytest_jrh.core.results import CaseSpending, JudgeLine
from pytest_jrh.core.sections import JudgeStage
from pytest_jrh.judges import with_own_keys
from pytest_jrh.judges.judge import JudgeSettings, PromptJudge
from pytest_jrh.judges.python import supplied_judge
from pytest_jrh.llm.calls import parse_prompt
from pytest_jrh.stats.comparison import Baseline, Scope, update
from pytest_jrh.store.ledger import judge_lines, line_data, parsed, read_ledger, render, with_calls
from tests.support.conversations import judge_settings
from tests.support.made_cases import judge_line, make_result, result_with

DIGEST = "a" * 64
CODE = judge_line(DIGEST)


def test_a_prompt_is_described_by_its_model_prompt_and_parameters() -> None:
    stage = StageModel(
        "judge",
        "openai/gpt-4.1",
        prompt_path="judge.md",
        temperature=0.5,
        max_tokens=900,
        system_prompt="Be strict.",
        params={"seed": 7},
    )
    template = parse_prompt("{{ rubric }}{{ transcript }}", "p", stage="judge")
    judge = PromptJudge(judge_settings(stage, repeats=3), template)
    [line] = judge_lines("refunds", {"strict": judge}, NO_SECRETS)
    assert line == JudgeLine(
        suite="refunds",
        judge="strict",
        judge_digest=judge.fingerprint,
        kind="prompt",
        models=("openai/gpt-4.1",),
        parameters={
            "temperature": 0.5,
            "max_tokens": 900,
            "params": {"seed": 7},
            "system_prompt": True,
            "repeats": 3,
        },
        asks_model=True,
        prompt="[prompt]\n{{ rubric }}{{ transcript }}\n\n[system_prompt]\nBe strict.",
        file="judge.md",
    )
    assert "judge.md" not in json.dumps(line_data(line))


def test_code_is_of_its_own_kind_whoever_supplies_it() -> None:
    section = with_own_keys(JudgeStage).model_construct(version=None)
    settings = JudgeSettings(None, StageModel("judge", ""), section=section)
    judge = supplied_judge(settings, lambda _case: 1)
    [line] = judge_lines("refunds", {None: judge}, NO_SECRETS)
    assert (line.kind, line.models, line.parameters) == ("python", (), {"repeats": 1})
    assert (line.prompt, line.asks_model) == ("", False)


@pytest.mark.parametrize(
    ("recording", "spending", "asks"),
    [
        ("judge-default 1f47", Spending(calls=2), True),
        ("judge-default 1f47", Spending(replayed=1), True),
        ("judge-default 1f47", Spending(), False),
        ("generation 1f47", Spending(calls=2), False),
    ],
)
def test_code_asks_a_model_where_it_has_asked_now_or_when_it_was_recorded(
    recording: str, spending: Spending, *, asks: bool
) -> None:
    result = result_with(make_result(), judge_digest=DIGEST)
    result = replace(result, spending=CaseSpending({recording: spending}))
    assert [judge.asks_model for judge in with_calls([CODE], [result])] == [asks]
    other = replace(result, judge_digest="b" * 64)
    assert [judge.asks_model for judge in with_calls([CODE], [other])] == [False]


def test_an_update_of_cases_that_asked_nothing_still_knows_that_the_judge_asks() -> None:
    result = result_with(make_result(), judge_digest=DIGEST)
    scope = Scope.of([result.case_id])
    asking = update(Baseline(), [result], scope, [replace(CODE, asks_model=True)]).baseline
    [line] = asking.judge_lines
    assert (line.judge_digest, line.asks_model) == (DIGEST[:16], True)
    again = update(asking, [result], scope, [CODE]).baseline
    assert again == asking


def test_a_changed_prompt_changes_the_line_of_its_judge_alone() -> None:
    results = [
        result_with(make_result(), judge_digest=DIGEST),
        replace(result_with(make_result(), judge_digest="b" * 64), case_id="x", judge="kind"),
    ]
    scope = Scope.of(result.case_id for result in results)
    judges = [judge_line(DIGEST, "Be strict."), judge_line("b" * 64, "Be kind.", judge="kind")]
    lines = render(update(Baseline(), results, scope, judges).baseline).splitlines()
    judges[1] = replace(judges[1], prompt="Be kinder.")
    changed = render(update(Baseline(), results, scope, judges).baseline).splitlines()
    assert [one for one in changed if one not in lines] == [changed[1]]
    assert "Be kinder." in changed[1]


def test_a_file_of_another_form_is_refused_with_its_line_and_what_to_run(tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    path.write_text('{"format":2,"case_id":"refunds::x"}\n')
    with pytest.raises(InputError) as caught:
        parsed(path.read_text("utf-8"), "base.json")
    assert str(caught.value) == (
        "base.json:1: format: is no line of a baseline: input should be 3\n"
        "    restore it from git; or remove it, and run with --jrh-update-baseline"
    )
    with pytest.raises(InputError) as caught:
        read_ledger(path)
    assert str(caught.value) == (
        f"{path}:1: format: not a case result: input should be 3\n"
        "    Run the shard again; a truncated or edited file is not used."
    )
