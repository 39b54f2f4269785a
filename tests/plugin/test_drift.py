"""`examples/github/judge-drift.yml`, its steps run as they are written on the demo, against a
server on loopback behind whose name another judge answers in the second week."""

import json
import random
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from examples.scripted_model.script import LENIENT, load_script
from examples.scripted_model.script import Request as Scripted
from pytest_jrh.reports.for_programs import decision_data
from tests.plugin.recorded import run_pytest
from tests.plugin.workflow_scripts import RUN, Ran, Shell, needs_shell, step_named
from tests.support.exchange import AnswerFunction, Reply, envelope, reply_with
from tests.support.model_server import ModelServer, Request
from tests.unit.test_decision import FAIL, UNCLEAR, decided
from tests.unit.test_workflows import ROOT

ASKED = 54
OPENED, ADDED = ["issue", "create"], ["issue", "comment"]
NOT_DECIDED = "::error title=Judge drift is not decided::"
DRIFTED = {"drifted": "true"}
NOT_DRIFTED: dict[str, str] = {}

MARKER = "<!-- pytest-jrh: judge drift -->"

pytestmark = needs_shell


WORKFLOW = "judge-drift.yml"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return made_shell(tmp_path)


def made_shell(folder: Path) -> Shell:
    """The shell of an empty checkout; an issue is open that somebody else has written."""
    shell = Shell(folder / "checkout")
    shell.install(f"{MARKER} me first")
    return shell


def ask(shell: Shell, values: Mapping[str, str | None]) -> Ran:
    """Ask the judge again in the folder of the week before, and decide whether that is drift."""
    for file in ("judge-drift.json", "judge-summary.md"):
        (shell.folder / file).unlink(missing_ok=True)
    (shell.folder / "judge-drift.begun").touch()
    asked = shell.test_suite(step_named(WORKFLOW, "judge"), **values)
    outcome = "failure" if asked.code else "success"
    decided = shell.run(WORKFLOW, "decided", ASKED=outcome)
    return replace(decided, printed=asked.printed + decided.printed)


def report(shell: Shell) -> tuple[list[list[str]], str]:
    """Run the job that writes an issue, in a folder of its own; gives its calls of `gh`, and the
    text of the issue or comment."""
    calls = shell.tools / "calls.jsonl"
    calls.unlink(missing_ok=True)
    job = Shell(shell.folder.parent / "job")
    shutil.rmtree(job.folder, ignore_errors=True)
    (job.folder / "results").mkdir(parents=True)
    shutil.copy(shell.folder / "judge-summary.md", job.folder / "results")
    name = "Open an issue, or add to the one that is open"
    done = job.run(WORKFLOW, name, GH_REPO="o/r", RUN=RUN)
    assert done.code == 0, done.printed
    lines = [json.loads(line) for line in calls.read_text("utf-8").splitlines()]
    return [line["words"] for line in lines], lines[-1]["text"]


SCRIPT = load_script()


def flickering(request: Request) -> dict[str, Any]:
    """The demo's judge, which contradicts itself in one of twenty verdicts."""
    answer = SCRIPT.answer(Scripted.from_body(request.body))
    if random.Random(f"3 {request.text}").random() < 0.05:
        answer["score"] = 1 - answer["score"]
    return answer


def lenient(request: Request) -> dict[str, Any]:
    """The demo's judge as the prompt of `examples/prompt_change` makes it."""
    first, *others = request.body["messages"]
    head = {**first, "content": f"{first['content']}\n{LENIENT}"}
    return SCRIPT.answer(Scripted.from_body({**request.body, "messages": [head, *others]}))


def versioned(model: str, answer: AnswerFunction) -> Callable[[Request], Reply]:
    """These answers, which name the model as the one that was asked."""

    def reply(request: Request) -> Reply:
        values = json.loads(envelope(request, reply_with(answer(request)))) | {"model": model}
        return Reply(body=json.dumps(values).encode())

    return reply


@dataclass(frozen=True, slots=True)
class Weeks:
    """Two weeks in one checkout: the judge flickers in the first, and is another in the second."""

    shell: Shell
    first: Ran
    second: Ran


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> Weeks:
    shell = made_shell(tmp_path_factory.mktemp("drift"))
    shutil.copytree(ROOT / "inputs", shell.folder / "inputs")
    judges = (versioned("gpt-4.1-mini", flickering), versioned("gpt-4.1-mini-2025-09-09", lenient))
    asked = []
    for judge in judges:
        with ModelServer(judge) as server:
            asked.append(ask(shell, server.environment))
            # Nothing of the week before is replayed, in the same folder too.
            assert server.count() == server.count("judge") == ASKED
    return Weeks(shell, *asked)


def test_a_week_of_flicker_is_green(weeks: Weeks) -> None:
    assert (weeks.first.code, weeks.first.outputs) == (0, NOT_DRIFTED)
    assert "answered as" not in weeks.first.printed
    assert "PASS  the judge is not shown to be worse than before: " in weeks.first.printed


def test_a_judge_that_got_worse_opens_an_issue(weeks: Weeks) -> None:
    assert (weeks.second.code, weeks.second.outputs) == (1, DRIFTED)
    calls, text = report(weeks.shell)
    assert [call[:2] for call in calls] == [["api", "--paginate"], OPENED]
    assert text.startswith(f"{MARKER}\nhttps://github.com/o/r/actions/runs/7")
    assert "## ❌ FAIL: the judge misses 6 of 25 violations (24%) that it found before" in text
    # A later week adds to the issue that is open.
    calls, added = report(weeks.shell)
    assert [call[:2] for call in calls] == [["api", "--paginate"], ADDED]
    assert (calls[1][2], added) == ("2", text)


def test_the_page_shows_what_was_seen_and_its_commands_accept_it(weeks: Weeks) -> None:
    """The recordings that the workflow keeps replay it."""
    page = (ROOT / "docs" / "ci.md").read_text("utf-8").partition("## Drift")[2]
    shown = page.split("```text\n")[1].partition("```")[0]
    assert "judge: the model answered as gpt-4.1-mini-2025-09-09" in shown
    assert all(part in weeks.second.printed for part in shown.split("...\n"))
    [commands] = re.findall(r"    ```sh\n(.*?)    ```", page, re.DOTALL)
    download, replay, update = map(shlex.split, commands.splitlines())
    assert download[:3] == ["gh", "run", "download"]
    assert update == [*replay, "--jrh-update-baseline"]
    updated = run_pytest(weeks.shell.folder, *update[1:])
    assert updated.code == 0
    assert "0 calls, 210 replayed" in updated.stdout
    printed = " ".join(updated.stdout.split())
    assert "this update accepts 6 newly wrong cases" in printed
    assert "6 changed, 0 removed." in updated.stdout


NO_BASELINE = "nothing could be compared with the baseline"
# Where the judge was asked, and is asked again.
CASSETTE = "inputs/cassettes/refund_agent/case.judge-default.yaml"
NOTICE = "::notice title=Judge drift is UNCLEAR::"


@pytest.mark.parametrize(
    ("headline", "asked", "week", "said"),
    [
        ("the judge misses 6 of 24 violations (25%) that it found", False, (1, DRIFTED), ""),
        ("the judge misses 6 of 24 violations (25%); min_recall", False, (1, DRIFTED), ""),
        ("1 case has no verdict (1 model_error)", False, (1, NOT_DRIFTED), NOT_DECIDED),
        (NO_BASELINE, False, (1, NOT_DRIFTED), NOT_DECIDED),
        # A week that is green, in which nothing was asked.
        ("", False, (1, NOT_DRIFTED), NOT_DECIDED),
        ("the comparison has 44 of 48 cases", True, (0, NOT_DRIFTED), NOTICE),
        (NO_BASELINE, True, (1, NOT_DRIFTED), NOT_DECIDED),
    ],
)
def test_what_verdicts_say_is_drift_what_is_unclear_a_notice_and_all_else_an_error(
    shell: Shell, headline: str, asked: bool, week: tuple[int, dict[str, str]], said: str
) -> None:
    (shell.folder / CASSETTE).parent.mkdir(parents=True)
    command = "exit 0 #"
    if headline:
        row = next(row for row in (*FAIL, *UNCLEAR) if row.headline.startswith(headline))
        rules = {"min_recall": 0.5} if asked else row.rules
        gate = decision_data(decided(row.now, row.before, rules, **row.held))
        data = {"decision": gate, "suites": [{"gate": gate}]}
        (shell.folder / "decided").write_text(json.dumps(data), "utf-8")
        command = "cp decided judge-drift.json; exit 1 #"
    shell.command("pytest", f"sleep 0.01; touch {CASSETTE}; {command}" if asked else command)
    ended = ask(shell, {})
    assert (ended.code, ended.outputs) == week, ended.printed
    told = [line for line in (NOT_DECIDED, NOTICE) if line in ended.printed]
    assert told == ([said] if said else [])
