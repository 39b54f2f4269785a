"""A suite whose judge got worse is never exit 0, and one whose judge did not is PASS: in real
sessions, all suites of one kind in one."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.plugin.recorded import LABELLED, conversation, run_pytest, write_files
from tests.support.stories import NEVER, PASS, Story

# What judges say of a run by a rubric, which names its suite: 1 is violated.
CODE = """
SAID = {said}


def looked_up(case):
    return SAID[f"{{case.rubric.text}} {{case.run_id}}"], "Looked up."
"""
CONFTEST = """
import re
from pathlib import Path

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
"""
RUNS = 80
BASELINE = "--jrh-baseline=base.jsonl"


def name_of(story: Story) -> str:
    return story.name.replace(" ", "_")


def judge_of(story: Story, *, now: bool) -> str:
    """The judge in the config of a story."""
    model = "two" if now and story.how == "model" else "one"
    prompt = ", system_prompt: Be strict." if now and story.how == "prompt" else ""
    if story.how == "code":
        return "{python: judges.py:looked_up}"
    return f"{{model: openai/{model}{prompt}}}"


def write_suites(folder: Path, *, now: bool) -> None:
    """The suites of all stories, and what their judges say, before or now."""
    said: dict[str, int] = {}
    for story in (*NEVER, *PASS):
        name, rows = name_of(story), story.now if now else story.before
        texts = {row.rubric: f"@{name} {row.rubric}@" for row in rows}
        rubrics = [{"id": rubric, "instructions": text} for rubric, text in texts.items()]
        labels = [f"run-{row.run},{row.rubric},{row.label}\n" for row in rows]
        config = f"{LABELLED}judge: {judge_of(story, now=now)}\ngate: {{}}\n"
        for file in ("rubrics.yml", "labels.csv"):
            config = config.replace(file, f"{name}.{file}")
        files = {
            f"{name}.yml": config,
            f"{name}.rubrics.yml": json.dumps(rubrics),
            f"{name}.labels.csv": "run_id,rubric_id,label\n" + "".join(labels),
        }
        write_files(folder, files)
        said |= {f"{texts[row.rubric]} run-{row.run}": row.verdict for row in rows}
    (folder / "judges.py").write_text(CODE.format(said=said), encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All suites with their baseline, which stand as they are now."""
    folder = tmp_path_factory.mktemp("suites")
    runs = [
        conversation(f"run-{run}", f"Where is order run-{run} now?", f"Order run-{run} is late.")
        for run in range(RUNS)
    ]
    write_files(folder, {"runs.jsonl": "".join(runs), "conftest.py": CONFTEST})
    write_suites(folder, now=False)
    stories = [*NEVER, *PASS]
    options = [f"--jrh-config={name_of(story)}.yml" for story in stories]
    update = (BASELINE, "--jrh-update-baseline", "--jrh-record-mode=once")
    done = run_pytest(folder, *options, *update)
    assert f"now has {sum(len(story.before) for story in stories)} cases" in done.stdout
    write_suites(folder, now=True)
    return folder


@pytest.mark.parametrize(("stories", "code"), [(NEVER, 1), (PASS, 0)], ids=["worse", "as good"])
def test_only_what_got_worse_fails(folder: Path, stories: Sequence[Story], code: int) -> None:
    """All judges are asked again, and each suite is decided about by itself."""
    configs = [f"--jrh-config={name_of(story)}.yml" for story in stories]
    asked = ("--jrh-record-mode=once", "--jrh-judge-record-mode=all", "--jrh-report=r.json")
    done = run_pytest(folder, *configs, *asked, BASELINE)
    assert done.code == code, done.stdout
    suites = json.loads((folder / "r.json").read_text("utf-8"))["suites"]
    codes = {name: suite["gate"]["exit_code"] for name, suite in suites.items()}
    assert codes == dict.fromkeys(map(name_of, stories), code)
    assert code or {suite["gate"]["word"] for suite in suites.values()} == {"PASS"}
