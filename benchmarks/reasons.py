"""Whether what a reasoning cites is told right: real reasonings about failures whose step is known.

Reads `../shared/data`, and measures nothing where that is absent.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import Line
from pytest_jrh.core.citations import steps_cited, turns_cited

_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
_AT_STEP = re.compile(r"(?i)\bat step \d+")


def lines() -> list[Line]:
    """How often "blames another turn" is right, and what else was told, over all reasonings."""
    found: list[Line] = []
    if (_DATA / "trajectory-judge").is_dir():
        found += _trajectories()
    if (_DATA / "agentrx").is_dir():
        found += _failed_runs()
    return found


def _line(what: str, right: int, wrong: int, at_least: int) -> Line:
    share = 100 * right / (right + wrong or 1)
    figure = f"{share:.1f}%: {right:,} of {right + wrong:,}"
    return Line(
        f"right reason: {what}", figure, f"at least {at_least}%", at_least / (share or 1), 1
    )


def _json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _trajectories() -> Iterator[Line]:
    """400 trajectories whose faulty step is known by construction, and the verdicts of four models,
    which give the step that they mean in a field of its own, beside their reasoning.
    """
    folder = _DATA / "trajectory-judge"
    by_id = {row["trajectory_id"]: row for row in _json_lines(folder / "trajectories.jsonl")}
    told: Counter[str] = Counter()
    right_of_another = 0
    planted: Counter[tuple[bool, str]] = Counter()
    for verdict in _json_lines(folder / "verdicts.jsonl"):
        trajectory = by_id[verdict["trajectory_id"]]
        if not (verdict["faulty"] and trajectory["label"]["faulty"]):
            continue
        number, faulty_step = len(trajectory["steps"]), trajectory["label"]["failure_step"]
        meant_step = verdict["failure_step"]
        cites = steps_cited(verdict["rationale"], (faulty_step,), number)
        told[cites] += 1
        right_of_another += cites == "another" and meant_step not in (None, faulty_step)
        if meant_step == faulty_step:
            # Of a reasoning that is right, every other step is one that it does not mean.
            for step in range(number):
                found = steps_cited(verdict["rationale"], (step,), number)
                planted[step == faulty_step, found] += 1
    wrong = told["another"] - right_of_another
    yield _line("another step blamed, of trajectory-judge", right_of_another, wrong, 95)
    others, mistakes = planted[False, "another"], planted[True, "another"]
    yield _line("the same, held against each other step", others, mistakes, 95)


def _failed_runs() -> Iterator[Line]:
    """Failed runs of tau-bench with the step and the reason that people gave, which counts from 1.
    Their reasons are read as they are, and as a judge would write them that is shown our numbers.
    """
    folder = _DATA / "agentrx"
    runs = {
        run["task_id"]: run for run in json.loads((folder / "tau_retail_runs.json").read_text())
    }
    told: Counter[tuple[bool, str]] = Counter()
    for failed in json.loads((folder / "tau_retail_failures.json").read_text("utf-8")):
        if failed["trajectory_id"] not in runs:
            continue
        messages = _plain(runs[failed["trajectory_id"]]["traj"])
        steps = {failure["step_number"] for failure in failed["failures"]}
        for failure in failed["failures"]:
            step, reason = failure["step_number"], failure["step_reason"]
            if not _AT_STEP.search(reason):
                # Without a step in its words there is nothing to find.
                continue
            ours = _AT_STEP.sub(f"In [{step - 1}]", reason)
            for marked in steps:
                is_meant = marked == step
                told[is_meant, steps_cited(reason, (marked,), len(messages) + 1)] += 1
                told[is_meant, turns_cited(ours, (marked - 1,), messages, numbered=True)] += 1
    right, wrong = told[False, "another"], told[True, "another"]
    yield _line("another failure's step blamed, of agentrx", right, wrong, 95)
    cited = told[True, "cited"]
    every = sum(number for (is_meant, _), number in told.items() if is_meant)
    yield _line("people's own step cited, of agentrx", cited, every - cited, 90)


def _plain(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The roles and the texts of messages in OpenAI's form."""
    return [{"role": turn["role"], "content": turn["content"] or ""} for turn in messages]
