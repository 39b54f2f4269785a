"""Tools that a user would run instead, over the same rows in the same run, each installed into
`benchmarks/.cache`: judgekeeper, holdline and promptfoo.
"""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from benchmarks.material import CACHE
from benchmarks.measure import Line, Work, against, in_turns, ours, run
from benchmarks.tables import BASELINE, CHECK, PAGE, write_table
from tests.support.model_server import ModelServer, Obedient, override
from tests.support.obedient import SATISFIED, VIOLATION

JUDGEKEEPER = "judgekeeper==0.1.3"
HOLDLINE = "holdline==0.2.1"
# The last one that runs on Node 20.
PROMPTFOO = "promptfoo@0.121.18"
ROWS = 1_098
ANSWERS = 1_000
_RUBRIC = "The answer says that the order is on its way."
_CHECK = f"check of {ROWS:,} rows"
_CHECK_OF_ALL = f"{_CHECK} with a baseline, to the HTML report"


class _Missing(Exception):
    """A tool that cannot be had here, with one word of why."""


def lines() -> list[Line]:
    """`check` beside two other commands that read a table of labels and verdicts, and a replay
    beside the second run of a tool that keeps answers in its cache.
    """
    folder = CACHE / "peers"
    folder.mkdir(exist_ok=True)
    write_table(folder / "verdicts.csv", ROWS)
    found = []
    for package, install, measured in (
        (JUDGEKEEPER, _from_pypi, _judgekeeper),
        (HOLDLINE, _from_pypi, _holdline),
        (PROMPTFOO, _from_npm, _promptfoo),
    ):
        try:
            found += measured(folder, install(package))
        except (_Missing, RuntimeError) as why:
            # A peer may also break off at its end.
            reason = str(why).partition("\n")[0]
            found.append(Line(f"beside {package}", f"skipped: {reason}", "", 0.0))
    return found


def _judgekeeper(folder: Path, command: str) -> list[Line]:
    theirs = Work(folder, (command, "check", "verdicts.csv", "--id=case", "--reason=reasoning"))
    with_all, alone, beside = in_turns(
        9, Work(folder, (*CHECK, BASELINE, PAGE)), Work(folder, CHECK), theirs
    )
    yardstick = f"{JUDGEKEEPER} check, which writes its page"
    return [
        against(_CHECK_OF_ALL, with_all, beside, yardstick, 3.0),
        against(_CHECK, alone, beside, yardstick, 1.9),
    ]


def _holdline(folder: Path, command: str) -> list[Line]:
    _write_for_holdline(folder)
    compare = Work(folder, (command, "compare", "before.csv", "after.csv", "--html=compared.html"))
    calibrate = Work(folder, (command, "calibrate", "--labels=labels.jsonl"))
    with_all, compared, alone, calibrated = in_turns(
        3, Work(folder, (*CHECK, BASELINE, PAGE)), compare, Work(folder, CHECK), calibrate
    )
    return [
        against(_CHECK_OF_ALL, with_all, compared, f"{HOLDLINE} compare, to its HTML report"),
        against(_CHECK, alone, calibrated, f"{HOLDLINE} calibrate"),
    ]


def _write_for_holdline(folder: Path) -> None:
    """The same rows as holdline reads them: of each case whether the judge was right, before and
    after, and labels beside verdicts.
    """
    with (folder / "verdicts.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for name, column in (("before", "old"), ("after", "verdict")):
        texts = ["case_id,passed"]
        for row in rows:
            texts.append(f"{row['case']},{int(row[column] == row['label'])}")
        (folder / f"{name}.csv").write_text("\n".join(texts) + "\n", encoding="utf-8")
    with (folder / "labels.jsonl").open("w", encoding="utf-8") as file:
        for row in rows:
            item = {"id": row["case"], "human": row["label"] == "0", "judge": row["verdict"] == "0"}
            file.write(json.dumps(item) + "\n")


def _promptfoo(folder: Path, command: str) -> list[Line]:
    suite = folder / "answers"
    shutil.rmtree(suite, ignore_errors=True)
    suite.mkdir()
    _write_answers(suite / "rows.csv")
    # What promptfoo asks has no stage of ours.
    graded = {"reason": "It says so.", "pass": True, "score": 1}
    with ModelServer(override(Obedient(), unknown=graded), keep=False) as server:
        _write_suite(suite)
        _write_promptfoo(suite, server.base_url)
        replayed = ours(suite, "--jrh-config=answers.yml")
        record = (*replayed.command, "--jrh-record-mode=new_episodes")
        run(record, suite, environment={**replayed.environment, **server.environment})
        options = ("--config=promptfooconfig.yaml", "--no-table", "--no-progress-bar")
        theirs = Work(suite, (command, "eval", *options), _quiet(suite))
        run(theirs.command, suite, environment=theirs.environment)
        asked = server.count()
        mine, cached = in_turns(3, replayed, theirs)
        if server.count() != asked:
            raise RuntimeError(f"{server.count() - asked} calls were made again")
    what = f"{ANSWERS:,} answers replayed"
    yardstick = f"{PROMPTFOO} eval, a second run with its cache"
    return [against(what, mine, cached, yardstick, 0.4)]


def _write_answers(path: Path) -> None:
    """Answers of which a fifth break the rule, with their labels."""
    texts = ["id,question,answer,label"]
    for number in range(ANSWERS):
        label = int(number % 5 == 0)
        marker = VIOLATION if label else SATISFIED
        texts.append(f"a{number},Where is order {number}?,Order {number}: {marker}.,{label}")
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")


def _write_suite(suite: Path) -> None:
    config = {
        "suite": {"of": "answers", "log": "rows.csv", "rubrics": "rubrics.yml"},
        "cases": {"kinds": ["labels"]},
        "labels": {"metadata": "label", "map": {"0": "satisfied", "1": "violated"}},
        "judge": {"model": "openai/gpt-4.1-mini"},
    }
    (suite / "answers.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    rubrics = [{"id": "on_its_way", "instructions": _RUBRIC}]
    (suite / "rubrics.yml").write_text(yaml.safe_dump(rubrics), encoding="utf-8")


def _write_promptfoo(suite: Path, base_url: str) -> None:
    grader = {"id": "openai:chat:gpt-4.1-mini", "config": {"apiBaseUrl": base_url, "apiKey": "no"}}
    config = {
        "prompts": ["{{answer}}"],
        # The answers are there: one is said again as it is, and graded.
        "providers": ["echo"],
        "tests": "file://rows.csv",
        "defaultTest": {
            "options": {"provider": grader},
            "assert": [{"type": "llm-rubric", "value": _RUBRIC}],
        },
    }
    (suite / "promptfooconfig.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def _quiet(suite: Path) -> Mapping[str, str]:
    """Environment variables: promptfoo calls only the grader, and writes below the suite."""
    return {
        "PROMPTFOO_CONFIG_DIR": str(suite / "promptfoo"),
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "NO_PROXY": "127.0.0.1,localhost",
    }


def _from_pypi(requirement: str) -> str:
    """The command of a package in an environment of its own; raises `_Missing`."""
    folder = CACHE / requirement
    command = str(folder / "bin" / requirement.partition("==")[0])
    if not Path(command).exists():
        _do((sys.executable, "-m", "venv", str(folder)), "venv")
        pip = (str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check")
        _do((*pip, "install", "--quiet", requirement), "pip")
    _do((command, "--version"), "unusable")
    return command


def _from_npm(package: str) -> str:
    """The command of a package in a folder of its own; raises `_Missing`."""
    folder = CACHE / package
    command = str(folder / "node_modules" / ".bin" / package.partition("@")[0])
    if not Path(command).exists():
        folder.mkdir(exist_ok=True)
        install = ("npm", "install", "--no-audit", "--no-fund", f"--prefix={folder}", package)
        _do(install, "npm")
    _do((command, "--version"), "unusable")
    return command


def _do(command: Sequence[str], why: str) -> None:
    try:
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise _Missing(why) from error
