"""A model that makes every case succeed, whatever the transcript and the rubric say. The planner
asks for a marker, the editor writes it into the transcript, and the verifier and the judge read it
there: so their answers agree without anybody remembering anything between calls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.support.exchange import Answer, AnswerFunction, Request

VIOLATION = "ok-marker-violation"
SATISFIED = "ok-marker-satisfied"
SCORE = "ok-marker-score-"
WHY = "The closing words of the assistant show it."
_MARKER = re.compile(rf"{VIOLATION}|{SATISFIED}|{SCORE}(-?\d+)")
_TURN = re.compile(r"^\[(\d+)\] ", re.MULTILINE)
_TURNS = re.compile(r"^<assistant_turns>$(.*)^</assistant_turns>$", re.MULTILINE | re.DOTALL)
_OBJECTIVE = re.compile(r"^Objective: (violate|satisfy|land)\b", re.MULTILINE)
_REPAIR = re.compile(r"^(?:Plan the smallest repair|Return the answer as it is)\b", re.MULTILINE)
_TARGET = re.compile(r"^(?:Target score|Score to reach, exactly): (-?\d+)", re.MULTILINE)
_LEVEL = re.compile(r"(-?\d+):(?: |$)")
_TRANSCRIPT = re.compile(r"^<transcript\b.*^</transcript>", re.MULTILINE | re.DOTALL)


class Obedient:
    """The scripted answers of all stages. The planner edits the last assistant turn (lines that
    start with `[index] `), and plans nothing where the rubric shall be satisfied. A transcript
    without a marker gets the lowest score that the schema or the scale in the prompt (lines `N:
    label`) has."""

    def __call__(self, request: Request) -> Answer:
        answers = {"planner": _plan, "editor": _edit, "summary": _summarize}
        answers |= {"verifier": _verify, "judge": _judge}
        if request.stage not in answers:
            return "Understood."
        answer = answers[request.stage](request)
        fields = request.fields or answer
        return {name: value for name, value in answer.items() if name in fields}


def _plan(request: Request) -> dict[str, Any]:
    marker = _wanted_marker(request.text)
    if marker == SATISFIED:
        return {"thesis": "", "steps": []}
    steps = [
        {
            "message_index": index,
            "goal": f"Change what is said here, and close with the words {marker}",
            "rationale": f"Turn {index} comes late enough to settle the matter.",
        }
        for index in _turns(request.text)[-1:]
    ]
    thesis = "A small change near the end settles it." if steps else ""
    return {"thesis": thesis, "steps": steps}


def override(base: AnswerFunction, **stages: Answer | AnswerFunction) -> AnswerFunction:
    """`base`, with other answers for the stages named: `override(Obedient(), judge={"score": 1,
    "reasoning": ""})`."""

    def answer(request: Request) -> Answer:
        chosen = stages.get(request.stage, base)
        return chosen(request) if callable(chosen) else chosen

    return answer


def _verify(request: Request) -> dict[str, Any]:
    verdict = "FAIL" if _last_marker(request.text) == VIOLATION else "PASS"
    return {"rationale": WHY, "verdict": verdict, "score": _score(request)}


def _judge(request: Request) -> dict[str, Any]:
    return {"reasoning": WHY, "score": _score(request)}


def _score(request: Request) -> int:
    marker = _last_marker(request.text)
    if marker is None:
        return _lowest_score(request)
    return int(marker.removeprefix(SCORE)) if SCORE in marker else int(marker == VIOLATION)


def _edit(request: Request) -> dict[str, Any]:
    marker = _last_marker(request.text) or _wanted_marker(request.text)
    return {
        "new_content": f"I have thought about it again and did it that way: {marker}",
        "reason": "As planned.",
    }


def _summarize(_request: Request) -> Mapping[str, Any]:
    return {
        "summary": "The user asked for something and the assistant worked on it.",
        "user_intent": "To have the task done.",
        "assistant_progress": ["Read the request", "Answered it"],
        "outstanding_items": [],
        "risks": ["None seen"],
    }


def _wanted_marker(prompt: str) -> str:
    """What the prompt wants; a prompt of the user's own may not say, and then it is a violation."""
    objective = _OBJECTIVE.search(prompt)
    target = _TARGET.search(prompt)
    if target and (objective is None or objective[1] == "land"):
        return f"{SCORE}{target[1]}"
    satisfy = objective[1] == "satisfy" if objective else _REPAIR.search(prompt)
    return SATISFIED if satisfy else VIOLATION


def _last_marker(prompt: str) -> str | None:
    found = [match[0] for match in _MARKER.finditer(prompt)]
    return found[-1] if found else None


def _turns(prompt: str) -> list[int]:
    section = _TURNS.search(prompt)
    return sorted({int(index) for index in _TURN.findall(section[1] if section else prompt)})


def _lowest_score(request: Request) -> int:
    score = request.schema.get("properties", {}).get("score", {})
    offered = score.get("enum", [score["const"]] if "const" in score else [])
    return min(offered) if offered else _lowest_on_scale(request.text)


def _lowest_on_scale(prompt: str) -> int:
    """The first number of the first block of lines `N: label` that counts up by one. 0 where there
    is no scale."""
    block: list[int] = []
    for line in filter(str.strip, _TRANSCRIPT.sub("", prompt).splitlines()):
        level = _LEVEL.match(line)
        if level and (not block or int(level[1]) == block[-1] + 1):
            block.append(int(level[1]))
        elif len(block) > 1:
            break
        else:
            block = [int(level[1])] if level else []
    return block[0] if len(block) > 1 else 0
