"""Judges that are scanners of Inspect Scout (rule Q3)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from pytest_jrh.config.schema import JudgeSection
from pytest_jrh.core.errors import InputError, Unscored
from pytest_jrh.core.model import Mode, StageModel, Verdict
from pytest_jrh.judges import JUDGES
from pytest_jrh.judges.inspect_code import ScannerJudge
from pytest_jrh.judges.judge import JudgeSettings, OwnCode
from tests.support.made_cases import make_case
from tests.support.scout import needs_scout

SCANNERS = """
from inspect_ai.model import ChatMessage, ChatMessageAssistant
from inspect_scout import Result, Scanner, Transcript, llm_scanner, scanner


@scanner(messages="all")
def whole(value=True) -> Scanner[Transcript]:
    async def scan(transcript: Transcript) -> Result:
        said = f"{transcript.transcript_id}: {transcript.metadata['target']}"
        assert transcript.metadata["sample_metadata"] == {"n": 1}
        assert transcript.metadata["n"] == 1
        roles = ", ".join(message.role for message in transcript.messages)
        return Result(value=value, explanation=f"{said} ({roles})")

    return scan


@scanner(messages=["assistant"])
def some() -> Scanner[list[ChatMessage]]:
    async def scan(messages: list[ChatMessage]) -> Result:
        return Result(value=len(messages), answer="counted")

    return scan


@scanner(messages=["assistant"])
def single() -> Scanner[ChatMessageAssistant]:
    async def scan(message: ChatMessageAssistant) -> Result:
        return Result(value=True)

    return scan


@scanner(messages=["tool"])
def tools() -> Scanner[list[ChatMessage]]:
    async def scan(messages: list[ChatMessage]) -> Result:
        raise AssertionError("there is none")

    return scan


@scanner(messages="all")
def labelled() -> Scanner[Transcript]:
    async def scan(transcript: Transcript) -> list[Result]:
        return [
            Result(label="tone", value="rude", explanation="It shouts."),
            Result(label="policy", value="kept", explanation="It asks first."),
        ]

    return scan


@scanner(messages="all")
def text() -> Scanner[Transcript]:
    async def scan(transcript: Transcript) -> str:
        return "yes"

    return scan
"""
MAP = {"true": 1, "false": 0}
TURNS = (
    {"role": "user", "content": "Please refund order 17."},
    {"role": "assistant", "content": "Let me look."},
    {"role": "assistant", "content": "Done."},
)


def build(spec: str, *, mode: Mode = "binary", **keys: Any) -> ScannerJudge:
    section = TypeAdapter(JudgeSection).validate_python({"scout_scanner": spec, **keys})
    kind = JUDGES["scout_scanner"]
    settings = JudgeSettings(None, StageModel("judge", ""), kind.key, section)
    judge = kind.build(settings, mode, "")
    assert isinstance(judge, ScannerJudge)
    return judge


def never(work: Any) -> Any:
    raise AssertionError(work)


def judged(tmp_path: Path, name: str, **keys: Any) -> Verdict:
    """The verdict of one of the scanners on a case; nothing is recorded."""

    class Calls:
        async def run(self, code: OwnCode) -> Verdict:
            given = code.call(never)
            assert asyncio.iscoroutine(given)
            return code.read(await given)

    (tmp_path / "scanners.py").write_text(SCANNERS, encoding="utf-8")
    judge = build(f"{tmp_path / 'scanners.py'}@{name}", **keys)
    case = make_case(messages=TURNS, metadata={"n": 1})
    calls: Any = Calls()
    return asyncio.run(judge(case, 1, calls))


@needs_scout
def test_a_scanner_gets_the_transcript_of_the_case(tmp_path: Path) -> None:
    verdict = judged(tmp_path, "whole", score_map=MAP)
    assert verdict.score == 1
    assert verdict.reasoning.startswith("run-1: The agent refunds only orders")
    assert verdict.reasoning.endswith("(user, assistant, assistant)")
    assert judged(tmp_path, "whole", score_map=MAP, args={"value": False}).score == 0


@needs_scout
def test_a_scanner_of_messages_gets_those_that_it_asks_for(tmp_path: Path) -> None:
    assert judged(tmp_path, "some", score_map={"2": 0, "3": 1}) == Verdict(0, "counted")


@needs_scout
def test_the_value_that_counts_is_named_by_its_label(tmp_path: Path) -> None:
    values = {"rude": 1, "kept": 0}
    assert judged(tmp_path, "labelled", score_map=values, value_key="policy") == Verdict(
        0, "It asks first."
    )
    with pytest.raises(Unscored, match=r"several values \(tone, policy\), and `value_key` names"):
        judged(tmp_path, "labelled", score_map=values)


@needs_scout
@pytest.mark.parametrize(
    ("name", "keys", "said"),
    [
        ("single", {}, "looks at one message at a time, 2 here, and a case has one verdict"),
        ("tools", {}, "was not run: its filters leave nothing of the transcript"),
        ("text", {}, "gave str, which is no Result"),
        ("whole", {"args": {"value": None}}, "left the case unscored: run-1: The agent refunds"),
        ("whole", {"args": {"value": float("nan")}}, "left the case unscored"),
        ("whole", {"args": {"value": 7}}, "gave 7, which `score_map` does not have: true, false"),
        ("whole", {"args": {"value": [True]}}, "gave a value of the type list"),
    ],
)
def test_what_is_no_verdict_is_said(
    tmp_path: Path, name: str, keys: dict[str, Any], said: str
) -> None:
    with pytest.raises(Unscored) as caught:
        judged(tmp_path, name, score_map=MAP, **keys)
    assert caught.value.outcome == "invalid_response"
    assert said in caught.value.cause


@needs_scout
@pytest.mark.parametrize(
    ("source", "spec", "said"),
    [
        (SCANNERS, "scanners.py@hole", 'has no @scanner named "hole"\n    whole is the nearest'),
        ("", "scanners.py@whole", "it has no @scanner at all"),
        ("def (", "scanners.py@whole", "SyntaxError: invalid syntax (scanners.py, line 1)"),
        (SCANNERS, "scanners.txt@whole", "must be a scanner, as file.py@name or package/name"),
        ("", "no_such", 'no installed package has a scanner "no_such"'),
    ],
)
def test_a_scanner_that_is_not_there_is_a_mistake_of_the_config(
    tmp_path: Path, source: str, spec: str, said: str
) -> None:
    (tmp_path / "scanners.py").write_text(source, encoding="utf-8")
    spec = spec if "@" not in spec else f"{tmp_path}/{spec}"
    with pytest.raises(InputError) as caught:
        build(spec, score_map=MAP)
    assert said in str(caught.value)


@needs_scout
def test_arguments_that_a_scanner_has_not_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unexpected keyword argument 'valeu'"):
        judged(tmp_path, "whole", score_map=MAP, args={"valeu": 1})


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_scout", None)
    with pytest.raises(InputError) as caught:
        build("scanners.py@whole", score_map=MAP)
    assert "a scanner of Scout, which needs inspect_scout" in str(caught.value)
    assert "pip install 'pytest-jrh[scout]'" in str(caught.value)


def test_a_scanner_in_a_binary_suite_needs_a_map() -> None:
    with pytest.raises(InputError, match="the values of a scanner need score_map"):
        build("scanners.py@whole")
