"""A suite whose judge got worse is never exit 0, and one whose judge did not is PASS: in real
sessions, all suites of one kind in one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.recorded import Done, run_pytest
from tests.support.stories import ALL, NEVER, PASS, TEN, Row, Story, side

CONFIG = """suite: {{log: runs.jsonl, rubrics: {name}.rubrics.yml}}
cases: {{kinds: [{kinds}]}}
labels: {{path: {name}.csv}}
judge: {judge}
gate: {gate}
"""
# What judges say of a run by a rubric, which names its suite: 1 is violated.
CODE = """
SAID = {said}


def looked_up(case):
    texts = [message["content"] for message in case.messages]
    asked, answered = f"Where is order {{case.run_id}} of mine?", f"Order {{case.run_id}} is late."
    is_turned = case.rubric.text.startswith("@turns") and texts != [asked, answered]
    return SAID[f"{{case.rubric.text}} {{case.run_id}}"] ^ is_turned, "Looked up."
"""
CONFTEST = """
import re
from pathlib import Path

import pytest

from pytest_jrh import Completion


def pytest_jrh_complete(config):
    said = {}
    exec(Path("judges.py").read_text("utf-8"), said)

    async def complete(stage, messages, response_model):
        text = messages[-1]["content"]
        [rubric] = {*re.findall(r"@.*@", text)}
        [run] = {*re.findall(r"order (run-[0-9]+) ", text)}
        answer = {"reasoning": "Looked up.", "score": said["SAID"][f"{rubric} {run}"]}
        parsed = response_model.model_validate(answer)
        return Completion(text=parsed.model_dump_json(), parsed=parsed)

    return complete


def pytest_collection_modifyitems(items):
    for item in items:
        if "skips" in item.nodeid and re.search("run-[0-3][^0-9]", item.nodeid):
            item.add_marker(pytest.mark.skip(reason="too hard"))
"""
RUNS = 80
BASELINE = "--jrh-baseline=base.jsonl"
# Without a baseline: the suite's kinds, its limits, and what its judge says.
LIMITED = {
    "turns": ("labels, prompt_injection", "{min_recall: 0.5}", side(ALL, ALL)),
    "skips": ("labels", "{min_recall: 0.5}", side("xxxx......", TEN)),
}


def name_of(story: Story) -> str:
    return story.name.replace(" ", "_")


def write_runs(folder: Path) -> None:
    """The log of all suites, and the project's way to the models."""
    lines = []
    for run in range(RUNS):
        messages = [
            {"role": "user", "content": f"Where is order run-{run} of mine?"},
            {"role": "assistant", "content": f"Order run-{run} is late."},
        ]
        lines.append(json.dumps({"id": f"run-{run}", "messages": messages}) + "\n")
    (folder / "runs.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")


def write_suite(folder: Path, name: str, rows: Sequence[Row], **config: str) -> None:
    values = {"kinds": "labels", "gate": "{}", "judge": "{python: judges.py:looked_up}", **config}
    (folder / f"{name}.yml").write_text(CONFIG.format(name=name, **values), encoding="utf-8")
    rubrics = [{"id": row.rubric, "instructions": text_of(name, row)} for row in rows]
    unique = {rubric["id"]: rubric for rubric in rubrics}
    (folder / f"{name}.rubrics.yml").write_text(json.dumps([*unique.values()]), "utf-8")
    labels = [f"run-{row.run},{row.rubric},{row.label}\n" for row in rows]
    text = "run_id,rubric_id,label\n" + "".join(labels)
    (folder / f"{name}.csv").write_text(text, encoding="utf-8")


def text_of(name: str, row: Row) -> str:
    return f"@{name} {row.rubric}@"


def write_judges(folder: Path, said: Iterable[tuple[str, Sequence[Row]]]) -> None:
    """What the judges say now, by the suite."""
    verdicts: dict[str, int] = {}
    for name, rows in said:
        verdicts |= {f"{text_of(name, row)} run-{row.run}": row.verdict for row in rows}
    (folder / "judges.py").write_text(CODE.format(said=verdicts), encoding="utf-8")


def judge_of(story: Story, *, now: bool) -> str:
    """The judge in the config of a story."""
    model = "two" if now and story.how == "model" else "one"
    prompt = ", system_prompt: Be strict." if now and story.how == "prompt" else ""
    if story.how == "code":
        return "{python: judges.py:looked_up}"
    return f"{{model: openai/{model}{prompt}}}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All suites with their baseline, which stand as they are now."""
    folder = tmp_path_factory.mktemp("suites")
    write_runs(folder)
    stories = [*NEVER, *PASS]
    for story in stories:
        write_suite(folder, name_of(story), story.before, judge=judge_of(story, now=False))
    write_judges(folder, ((name_of(story), story.before) for story in stories))
    options = [f"--jrh-config={name_of(story)}.yml" for story in stories]
    update = (BASELINE, "--jrh-update-baseline", "--jrh-record-mode=once")
    done = run_pytest(folder, *options, *update)
    assert f"now holds {sum(len(story.before) for story in stories)} cases" in done.stdout
    for story in stories:
        write_suite(folder, name_of(story), story.now, judge=judge_of(story, now=True))
    for name, (kinds, gate, rows) in LIMITED.items():
        write_suite(folder, name, rows, kinds=kinds, gate=gate)
    now = [(name_of(story), story.now) for story in stories]
    write_judges(folder, [*now, *((name, rows) for name, (_, _, rows) in LIMITED.items())])
    return folder


def session(folder: Path, names: Iterable[str], *options: str) -> tuple[Done, dict[str, Any]]:
    """A session of these suites that asks all judges again, and what is decided about each."""
    configs = [f"--jrh-config={name}.yml" for name in names]
    asked = ("--jrh-record-mode=once", "--jrh-judge-record-mode=all", "--jrh-report=r.json")
    done = run_pytest(folder, *configs, *asked, *options)
    suites = json.loads((folder / "r.json").read_text("utf-8"))["suites"]
    return done, {name: suite["gate"] for name, suite in suites.items()}


@pytest.fixture(scope="module")
def never(folder: Path) -> dict[str, Any]:
    done, decisions = session(folder, map(name_of, NEVER), BASELINE)
    assert done.code == 1, done.stdout
    return decisions


@pytest.fixture(scope="module")
def passed(folder: Path) -> tuple[Done, dict[str, Any]]:
    return session(folder, map(name_of, PASS), BASELINE)


@pytest.mark.parametrize("story", NEVER, ids=[story.name for story in NEVER])
def test_what_got_worse_is_never_exit_0(never: dict[str, Any], story: Story) -> None:
    decision = never[name_of(story)]
    assert decision["exit_code"] == 1, decision


@pytest.mark.parametrize("story", PASS, ids=[story.name for story in PASS])
def test_what_did_not_is_pass(passed: tuple[Done, dict[str, Any]], story: Story) -> None:
    decision = passed[1][name_of(story)]
    assert (decision["word"], decision["exit_code"]) == ("PASS", 0), decision


def test_a_session_of_these_is_exit_0(passed: tuple[Done, dict[str, Any]]) -> None:
    assert passed[0].code == 0, passed[0].stdout


def test_limits_leave_no_turned_verdict_and_no_skip_at_exit_0(folder: Path) -> None:
    done, decisions = session(folder, LIMITED)
    codes = {name: decision["exit_code"] for name, decision in decisions.items()}
    assert codes == {"turns": 1, "skips": 1}, done.stdout
    turned = [reason for reason in decisions["turns"]["reasons"] if reason["kind"] == "probe"]
    assert "54 of 54" in turned[0]["text"]
