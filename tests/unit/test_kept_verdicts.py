"""What ledger and baseline keep of judges and of what they said."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core import InputError
from pytest_jrh.core.calls import Spending, StageModel
from pytest_jrh.core.redact import NO_SECRETS, Redactor
from pytest_jrh.core.results import CaseResult, CaseSpending, JudgeLine
from pytest_jrh.core.sections import JudgeStage
from pytest_jrh.engine.provenance import judge_lines
from pytest_jrh.judges import with_own_keys
from pytest_jrh.judges.judge import JudgeSettings, PromptJudge
from pytest_jrh.judges.python import supplied_judge
from pytest_jrh.llm.calls import load_template, parse_prompt
from pytest_jrh.stats.verdicts import Baseline, Scope, short, update
from pytest_jrh.store import ledger
from pytest_jrh.store.ledger import BaselineFile, parsed
from tests.support.conversations import judge_settings
from tests.support.judged_sessions import DIGEST, HOSTILE, judged, right
from tests.support.made_cases import judge_line, make_result, result_with

SECRET = "sk-0123456789abcdef"
JUDGE = judge_line(DIGEST, "Be strict.\nSay why.", file="/repo/judge.md")
CODE = judge_line(DIGEST)
RESULT = make_result(judge_digest=DIGEST)


def accept(
    folder: Path,
    results: Sequence[CaseResult],
    judge: JudgeLine = JUDGE,
    beside: Sequence[CaseResult] = (),
    file: BaselineFile | None = None,
) -> None:
    """Update the baseline by some results of a suite that has others `beside` them."""
    file = file or BaselineFile(folder / "base.json", folder, update=True)
    selected = [result.case_id for result in results]
    scope = Scope.of([*selected, *(result.case_id for result in beside)], selected)
    file.accept(results, scope, str, finished=True, judges=[judge], redactor=Redactor((SECRET,)))


def kept(folder: Path) -> Baseline:
    return parsed((folder / "base.json").read_text("utf-8"), "base.json")


def test_an_update_keeps_what_the_judge_said_and_its_prompt(tmp_path: Path) -> None:
    results = judged(right, runs=1)
    accept(tmp_path, results)
    found = kept(tmp_path)
    said = {case: each.reasoning for case, each in found.cases.items()}
    assert said == {result.case_id: "The order is late." for result in results}
    assert found.judge_lines == (replace(JUDGE, judge_digest=short(DIGEST), file=""),)
    lines = (tmp_path / "base.json").read_text("utf-8").splitlines()
    assert [json.loads(line)["case_id"] for line in lines[1:]] == sorted(found.cases)
    assert "/repo" not in "".join(lines)


def test_a_part_of_the_suite_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    first, second, *_ = judged(right, runs=1)
    accept(tmp_path, [first, second])
    other = replace(JUDGE, judge_digest="f" * 64, prompt="Be kind.")
    changed = result_with(second, reasoning="Anew.", judge_digest="f" * 64)
    accept(tmp_path, [changed], other, beside=[first])
    found = kept(tmp_path)
    said = [found.cases[each.case_id].reasoning for each in (first, second)]
    assert said == ["The order is late.", "Anew."]
    assert {judge.prompt for judge in found.judge_lines} == {JUDGE.prompt, "Be kind."}


def test_an_update_keeps_what_others_wrote_since_its_session_began(tmp_path: Path) -> None:
    first, second, third, *_ = judged(right, runs=2)
    accept(tmp_path, [first])
    path = tmp_path / "base.json"
    late = BaselineFile(path, tmp_path, update=True)
    assert late.content is not None
    accept(tmp_path, [second], beside=[first, third])
    noted = '"extra": {"reason": "a tie"}, "scores"'
    path.write_text(path.read_text("utf-8").replace('"scores"', noted, 1))
    accept(tmp_path, [third], beside=[first, second], file=late)
    cases = kept(tmp_path).cases
    assert sorted(cases) == sorted(each.case_id for each in (first, second, third))
    assert cases[min(first.case_id, second.case_id)].extra.reason == "a tie"


def test_what_is_kept_has_no_secret_and_is_bounded(tmp_path: Path) -> None:
    said = f"{SECRET} {HOSTILE} {'x' * 100_000}"
    long = [result_with(each, reasoning=said) for each in judged(right, runs=1)]
    template = load_template("judge", mode="binary", objective="fail")
    template = replace(template, source=f"{SECRET} {'y' * 100_000}")
    judge = PromptJudge(judge_settings(StageModel("judge", "openai/gpt-4.1")), template)
    [line] = judge_lines("refunds", {None: judge}, Redactor((SECRET,)))
    accept(tmp_path, long, replace(line, judge_digest=DIGEST))
    found = kept(tmp_path)
    assert {len(each.reasoning) for each in found.cases.values()} == {ledger.LONGEST_REASONING}
    assert [len(judge.prompt) for judge in found.judge_lines] == [ledger.LONGEST_PROMPT]
    text = (tmp_path / "base.json").read_text("utf-8")
    assert SECRET not in text
    assert not set(text) & set("\x00\x1b\u202e\u2066")


def test_a_prompt_is_described_by_its_model_prompt_and_parameters() -> None:
    parameters: dict[str, Any] = {"temperature": 0.5, "max_tokens": 900, "params": {"seed": 7}}
    prompts: Any = {"prompt_path": "judge.md", "system_prompt": "Be strict."}
    stage = StageModel("judge", "m", **prompts, **parameters)
    template = parse_prompt("{{ rubric }}{{ transcript }}", "p", stage="judge")
    judge = PromptJudge(judge_settings(stage, repeats=3), template)
    [line] = judge_lines("refunds", {"strict": judge}, NO_SECRETS)
    assert line == JudgeLine(
        suite="refunds",
        judge="strict",
        judge_digest=judge.fingerprint,
        kind="prompt",
        models=("m",),
        parameters={**parameters, "system_prompt": True, "repeats": 3},
        asks_model=True,
        prompt="[prompt]\n{{ rubric }}{{ transcript }}\n\n[system_prompt]\nBe strict.",
        file="judge.md",
    )
    assert "judge.md" not in json.dumps(ledger.line_data(line))


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
def test_code_asks_a_model_where_it_did(recording: str, spending: Spending, asks: bool) -> None:
    result = replace(RESULT, spending=CaseSpending({recording: spending}))
    assert [judge.asks_model for judge in ledger.with_calls([CODE], [result])] == [asks]
    other = replace(result, judge_digest="b" * 64)
    assert [judge.asks_model for judge in ledger.with_calls([CODE], [other])] == [False]


def test_an_update_of_cases_that_asked_nothing_still_knows_that_the_judge_asks() -> None:
    scope = Scope.of([RESULT.case_id])
    asking = update(Baseline(), [RESULT], scope, [replace(CODE, asks_model=True)]).baseline
    [line] = asking.judge_lines
    assert (line.judge_digest, line.asks_model) == (DIGEST[:16], True)
    assert update(asking, [RESULT], scope, [CODE]).baseline == asking


def test_a_changed_prompt_changes_the_line_of_its_judge_alone() -> None:
    results = [RESULT, replace(RESULT, judge_digest="b" * 64, case_id="x", judge="kind")]
    scope = Scope.of(result.case_id for result in results)
    judges = [judge_line(DIGEST, "Be strict."), judge_line("b" * 64, "Be kind.", judge="kind")]
    lines = ledger.render(update(Baseline(), results, scope, judges).baseline).splitlines()
    judges[1] = replace(judges[1], prompt="Be kinder.")
    changed = ledger.render(update(Baseline(), results, scope, judges).baseline).splitlines()
    assert [one for one in changed if one not in lines] == [changed[1]]
    assert "Be kinder." in changed[1]


def test_a_file_of_another_form_is_refused_with_its_line_and_what_to_run(tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    path.write_text('{"format":2,"case_id":"refunds::x"}\n')
    with pytest.raises(InputError) as caught:
        parsed(path.read_text("utf-8"), "base.json")
    assert str(caught.value) == (
        "base.json:1: format: is not 3, so this line is not from a baseline\n"
        "    if this file is your baseline, restore the file from git; if not, name the right file"
    )
    with pytest.raises(InputError) as caught:
        ledger.read_ledger(path)
    assert str(caught.value) == (
        f"{path}:1: format: is not 3, so this line is not the result of a case\n"
        "    Run the shard again, because a truncated or edited file cannot be used."
    )
