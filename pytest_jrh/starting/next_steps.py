"""What a new suite is told to do next, and what a clone of it needs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.suite.ids import CASES_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_jrh.starting.committing import LogPlace


def for_a_clone(
    values: Mapping[str, str], place: LogPlace, workflow: str
) -> tuple[list[str], dict[str, str]]:
    """List the files that a clone needs to replay, and the folders, each with a file that recording
    puts there.
    """
    files = [workflow, values["config"], values["rubrics"], values["judge_file"]]
    files += [values["baseline"], values.get("labels", "")]
    cassette = f"{values['cassettes']}/agent_perturbation/a_rubric/a_run.e1.generation.yaml"
    folders = {values["cassettes"]: cassette, values["cases"]: f"{values['cases']}/{CASES_FILE}"}
    files += [place.path] if place.committed else []
    return [file for file in files if file], folders


def next_steps(values: Mapping[str, str], folder: Path, add: str) -> list[str]:
    """List the commands that lead from the written files to a suite under its gate."""
    run = f"pytest --jrh-config={values['config']}"
    replay = run + values["frozen"]
    change = [] if folder == Path.cwd() else ["", f"  cd {shlex.quote(str(folder))}"]
    gate = f"--jrh-baseline={values['baseline']}"
    return [
        "What to do next:",
        *change,
        "",
        f"  1. Write your rubrics in {values['rubrics']}, choose the models in {values['config']},",
        "     and look at the cases:",
        f"       {run} --collect-only -q",
        "  2. See what recording would cost, and record. This calls the models, and costs money:",
        f"       {run} --jrh-record-mode=once --jrh-plan",
        "       export OPENAI_API_KEY=...",
        f"       {run} --jrh-record-mode=once {values['limit']}",
        "  3. Replay, which needs no key and costs nothing. Where a case fails, either the judge "
        "or the rubric is wrong.",
        f"       {replay}",
        "  4. Accept the present verdicts as the baseline, and commit all that a clone "
        "needs to replay:",
        f"       {replay} {gate} --jrh-update-baseline",
        "       echo /outputs/ >> .gitignore",
        f"       {add}",
        f"  5. Change {values['judge']}, record its new verdicts, and see what regressed:",
        f"       {replay} --jrh-judge-record-mode=new_episodes {gate}",
    ]
