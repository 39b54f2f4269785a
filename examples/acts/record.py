"""Record the cases of the example from the answers in `answers.yml`: `python -m
examples.acts.record`.

The server answers planner, editor, summary and verifier. The judges are functions and ask nobody.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from examples.acts.judges import Act, violated
from examples.scripted_model.script import NotScriptedError, flat
from examples.scripted_model.server import ScriptedModel

if TYPE_CHECKING:
    from examples.scripted_model.script import Request

PORT = 8799
HERE = Path("examples/acts")
ORDERS = {
    "KT-1042": "damaged-kettle",
    "ES-1391": "espresso-escalation",
    "LN-1302": "flaky-gateway",
    "PN-1107": "late-return",
    "TS-2207": "tea-subscription",
}
"""What each run is about, by which the server knows it."""
_SHOWN = re.compile(r"<transcript>\n(.*?)\n</transcript>", re.DOTALL)
_STILL_SAYS = re.compile(r"^Why(?: here)?: \[(\d+)\] still says", re.MULTILINE)
_TURN = re.compile(r"<original_turn>\n(.*?)\n</original_turn>", re.DOTALL)
_ACT = re.compile(r"<act>\n(?:(.*?)\n)?\w+: (\{.*?\})\n(.*?)\n</act>", re.DOTALL)
_PART = re.compile(r"^\[(\d+)\] (\w+)(?: calls (\w+)| (\w+)(?: \(error: .*\))?)?", re.MULTILINE)


class Shop:
    """The answers: what a careful model would write about the runs of the shop."""

    def __init__(self) -> None:
        self._answers = yaml.safe_load((HERE / "answers.yml").read_text(encoding="utf-8"))
        rubrics = yaml.safe_load((HERE / "rubrics.yml").read_text(encoding="utf-8"))
        self._rubrics = {flat(rubric["instructions"]): rubric["id"] for rubric in rubrics}

    def answer(self, request: Request) -> dict[str, Any]:
        """The fields of one answer.

        Raises `NotScriptedError` where none is written, or a plan names what is not shown.
        """
        order = self._order(request)
        if request.stage == "summary":
            return {
                "summary": f"A customer writes about {order}, and the agent helps.",
                "user_intent": "To have the order settled.",
                "assistant_progress": ["The order was opened."],
                "outstanding_items": [],
                "risks": [],
            }
        rubric = self._rubric(request)
        if request.stage == "verifier":
            shown = _SHOWN.search(request.text)
            assert shown
            is_violated = violated(rubric, *read(shown[1]))
            return {
                "rationale": "The calls and their results settle it.",
                "verdict": "FAIL" if is_violated else "PASS",
                "contradiction": "",
                "contradicts_itself": False,
            }
        plans = self._answers.get(ORDERS[order], {}).get(rubric, {})
        if request.stage == "planner":
            return self._plan(request, plans)
        return self._edit(request, plans)

    def _rubric(self, request: Request) -> str:
        for instructions, rubric in self._rubrics.items():
            if instructions in request.prompt:
                return str(rubric)
        raise NotScriptedError("no rubric of the example is shown", stage=request.stage)

    def _order(self, request: Request) -> str:
        """The order of the run: of what surrounds a transcript, some is about other runs."""
        shown = _SHOWN.search(request.text)
        text = shown[1] if shown else request.text
        orders = [order for order in ORDERS if order in text]
        if len(orders) != 1:
            raise NotScriptedError(
                f"the prompt is about {len(orders)} runs of the example", stage=request.stage
            )
        return orders[0]

    def _plan(self, request: Request, plans: Mapping[str, Any]) -> dict[str, Any]:
        objective = "fail" if "Objective: violate the rubric" in request.text else "pass"
        plan = plans.get(objective, {"thesis": "", "steps": []})
        fields = ("kind", "message_index", "call", "goal", "rationale")
        for step in plan["steps"]:
            header = rf"^\[{step['message_index']}\] assistant"
            if step["call"]:
                header += rf" calls \w+ \(call {step['call']}\b"
            if not re.search(header, request.text, re.MULTILINE):
                raise NotScriptedError(
                    f"the plan names {step}, which the planner is not shown", stage="planner"
                )
        steps = [{name: step[name] for name in fields} for step in plan["steps"]]
        return {"thesis": plan["thesis"], "steps": steps}

    def _edit(self, request: Request, plans: Mapping[str, Any]) -> dict[str, Any]:
        follows = _STILL_SAYS.search(request.text)
        for plan in plans.values():
            if follows and int(follows[1]) in plan.get("follows", {}):
                answer = plan["follows"][int(follows[1])]
                return _as_editor({"reason": "It agrees with the change.", **answer})
            for step in plan["steps"]:
                if not follows and flat(step["goal"]) in request.prompt:
                    return _as_editor({"reason": step["goal"], **step["answer"]})
        if follows:
            return _as_it_is(request)
        raise NotScriptedError("no such edit is written", stage="editor")


def _as_editor(answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer of the file as the editor gives it: arguments and results as text."""
    fields = {"result_is_error": False, **answer}
    for name in ("arguments", "result"):
        if isinstance(fields.get(name), dict):
            fields[name] = json.dumps(fields[name], ensure_ascii=False)
    if "new_content" in fields:
        del fields["result_is_error"]
    return fields


def _as_it_is(request: Request) -> dict[str, Any]:
    """What a careful editor answers about a turn that agrees with what was changed."""
    reason = "It agrees with the change as it stands."
    if turn := _TURN.search(request.text):
        return {"new_content": turn[1], "reason": reason}
    act = _ACT.search(request.text)
    assert act
    return _as_editor(
        {"words": act[1] or "", "arguments": act[2], "result": act[3], "reason": reason}
    )


def read(transcript: str) -> tuple[list[Act], str]:
    """What a shown transcript has the agent do, and say."""
    acts: list[Act] = []
    waiting: list[int] = []
    said: list[str] = []
    for _index, role, called, tool, failed, body in _parts(transcript):
        if called:
            waiting.append(len(acts))
            acts.append(Act(called, json.loads(body), None))
        elif role == "tool":
            position = next(at for at in waiting if acts[at].name == tool)
            waiting.remove(position)
            result = None if failed else json.loads(body)
            acts[position] = Act(tool, acts[position].arguments, result)
        elif role == "assistant":
            said.append(body)
    return acts, "\n".join(said)


def _parts(transcript: str) -> Iterator[tuple[int, str, str, str, bool, str]]:
    """Each part: its turn and role, the call or the tool of its header, whether that failed, and
    its text.
    """
    headers = list(_PART.finditer(transcript))
    ends = [header.start() for header in headers[1:]] + [len(transcript)]
    for header, end in zip(headers, ends, strict=True):
        title, _, body = transcript[header.start() : end].partition("\n")
        text = "\n".join(line[2:] for line in body.splitlines())
        index, role, called, tool = header.groups(default="")
        yield int(index), role, called, tool, "(error: " in title, text


def main() -> int:
    """Record the suite anew.

    Returns pytest's exit code. That a judge is wrong is the example's point.
    """
    shutil.rmtree(HERE / "cassettes", ignore_errors=True)
    with ScriptedModel(port=PORT, script=Shop()) as model:
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "no-key-is-needed",
        }
        command = [sys.executable, "-m", "pytest", f"--jrh-config={HERE}/acts.yml"]
        options = ["--jrh-record-mode=all", "--jrh-judge-record-mode=none", "--tb=no"]
        return subprocess.run([*command, *options], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
