"""Whether the question if made cases look real comes to what is known of the models that answer it:
on the demo, and simulated with models that cannot tell.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from benchmarks.checks import Check, error_of
from benchmarks.material import CACHE
from benchmarks.measure import ALONE, Line, pytest_command, run
from pytest_jrh import load_cases
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.stats.intervals import estimate_share, tallied
from tests.support.model_server import ModelServer

if TYPE_CHECKING:
    from tests.support.exchange import AnswerFunction, Request

_SESSIONS = 300
_RUNS = (5, 10, 30, 100)
_CASES = (1, 3, 10)
_SUSPICIONS = (0.1, 0.5, 0.9)


def lines() -> list[Line]:
    """The demo's cases before three scripted models, and how often chance looks like more."""
    return [*_demo(), _false_alarms().line]


def _demo() -> list[Line]:
    folder = CACHE / "realism"
    shutil.rmtree(folder, ignore_errors=True)
    root = Path(__file__).resolve().parents[1]
    shutil.copytree(root / "inputs", folder / "inputs")
    config = folder / "inputs/configs/refund_agent.yml"
    settings = yaml.safe_load(config.read_text("utf-8"))
    settings["realism"] = {"model": "openai/looker"}
    config.write_text(yaml.safe_dump(settings), "utf-8")
    _session(folder, lambda _request: _says(altered=True))
    cases = load_cases(folder / "outputs/refund_agent/agent_perturbations.jsonl")
    # With the end: an edit may only have added to the last turn.
    runs = {f"{render_transcript(case.run.messages)}\n</transcript>" for case in cases}

    def knows(request: Request) -> dict[str, Any]:
        return _says(altered=not any(run in request.text for run in runs))

    found = []
    for name, answer, share in (
        ("always says altered", lambda _request: _says(altered=True), 0.5),
        ("never says altered", lambda _request: _says(altered=False), 0.5),
        ("knows the runs", knows, 1.0),
    ):
        right, asked = _session(folder, answer)
        found.append(
            Line(
                f"the demo's made cases before a model that {name}",
                f"{right['count']} of {right['n']} right, {asked} calls",
                f"{100 * share:.0f}%",
                1 + abs(right["value"] - share),
                1,
            )
        )
    return found


def _says(*, altered: bool) -> dict[str, Any]:
    return {"reason": "Scripted.", "turns": [], "altered": altered}


def _session(folder: Path, answer: AnswerFunction) -> tuple[dict[str, Any], int]:
    """The share of right answers in a session that records nothing but these, and its calls."""
    for recorded in folder.rglob("*.realism.yaml"):
        recorded.unlink()
    shutil.rmtree(folder / "outputs", ignore_errors=True)
    with ModelServer(answer) as server:
        environment = {**ALONE, **server.environment, "PYTEST_PLUGINS": "pytest_jrh.plugin"}
        option = "--jrh-config=inputs/configs/refund_agent.yml"
        modes = ("--jrh-record-mode=once", "--jrh-judge-record-mode=none")
        command = pytest_command(option, *modes, "-o", "addopts=")
        # Some verdicts of the demo's judge are wrong.
        run(["sh", "-c", '"$@" || [ $? -eq 1 ]', "-", *command], folder, environment=environment)
        asked = server.count()
    (report,) = (folder / "outputs").rglob("*_report.json")
    rows = json.loads(report.read_text("utf-8"))["realism"]["rows"]
    return rows[0]["right"], asked


def _false_alarms() -> Check:
    """How often made cases are called told apart by a model that suspects all transcripts alike."""
    rng = np.random.default_rng(26)
    worst, where = 0.0, ""
    for runs in _RUNS:
        for cases in _CASES:
            for suspicion in _SUSPICIONS:
                alarms = 0
                for _ in range(_SESSIONS):
                    marks: list[tuple[int, bool]] = []
                    of_runs = rng.random(runs) < suspicion
                    of_cases = rng.random((runs, cases)) < suspicion
                    for number in range(runs):
                        for altered in of_cases[number]:
                            marks += [(number, bool(altered)), (number, not of_runs[number])]
                    lower = estimate_share(tallied(marks)).lower
                    alarms += lower is not None and lower > 1 / 2
                if alarms / _SESSIONS >= worst:
                    worst = alarms / _SESSIONS
                    where = f"{runs} runs with {cases} cases each, {suspicion:.0%} suspected"
    return Check(
        "made cases told apart by chance, highest cell",
        100 * worst,
        5,
        "most",
        where,
        error_of(worst, _SESSIONS),
    )
