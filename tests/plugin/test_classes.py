"""A suite whose rubric has classes and n/a: made, judged, replayed, and held to a baseline; and one
on a scale of 101 levels, where what is near its label is right, in every place."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from tests.plugin.recorded import LABELLED, json_lines, run_pytest, write_files, write_labelled
from tests.support.ledgers import results_in
from tests.support.model_server import ModelServer, Request

CONFIG = """
suite: {of: answers, log: rows.csv, rubrics: rubrics.yml}
cases: {kinds: [labels, perturbation]}
labels: {metadata: gold}
editor: {model: openai/editor}
output: {rand: true}
judges:
  - {name: prompt, model: openai/judge, repeats: 3}
  - {name: code, python: "judges.py:judge"}
"""
RUBRICS = """
- id: winner
  instructions: Which team does the answer name?
  classes:
    first: It names the first team.
    "off, <b>": It names the second one.
    tie: It names neither, or both.
  not_applicable: The question is about no match.
"""
ROWS = "id,question,answer,gold\nr1,Who wins?,It is: first.,first\nr2,Hello?,It is: n/a.,N/A\n"
ANSWERS = ("first", "off, <b>", "tie", "n/a")
# Says tie where n/a is right; the other one gives nothing else than n/a.
NEVER = """
def judge(case):
    said = case.response[7:-1]
    return "tie" if said == "n/a" else said
"""
ALWAYS = """
def judge(case):
    assert case.scores[-1] == "n/a"
    return "n/a", "Not my matter."
"""
CODE = re.compile(r"-[1-5]\d{9}\b")


def model(request: Request) -> Any:
    if request.stage == "editor":
        target = json.loads(re.findall(r"^Target score: (.*)", request.text, re.MULTILINE)[0])
        return {"new_content": f"It is: {target}.", "reason": "So it is said."}
    said = re.findall(r"It is: (.*)\.$", request.text, re.MULTILINE)[-1]
    answer = {"score": said.replace("&lt;", "<")}
    if request.stage == "verifier":
        return {"rationale": "It says so.", **answer, "verdict": "PASS"}
    return {"reasoning": "The answer says so.", **answer}


def test_a_suite_of_classes_is_made_judged_replayed_and_compared(tmp_path: Path) -> None:
    files = {"rows.csv": ROWS, "rubrics.yml": RUBRICS, "qa.yml": CONFIG, "judges.py": NEVER}
    write_files(tmp_path, files)
    options = ["--jrh-config=qa.yml", "--jrh-baseline=base.jsonl", "-v"]
    reports = [f"--jrh-report={name}" for name in ("page.html", "comment.md", "report.json")]
    with ModelServer(model) as server:
        record = ["--jrh-record-mode=new_episodes", "--jrh-update-baseline"]
        done = run_pytest(tmp_path, *options, *record, "-rA", *reports, env=server.environment)
        assert done.code == 0, done.stdout + done.stderr
        sent, calls = "".join(request.text for request in server.requests), len(server.requests)
        # The first judge replays, and the other one is another now.
        (tmp_path / "judges.py").write_text(ALWAYS)
        more = ["-n", "2", "--junitxml=junit.xml"]
        again = run_pytest(tmp_path, *options, *more, env=server.environment)
        assert len(server.requests) == calls == 8 + 8 + 30
    assert '"off, &lt;b>": It names the second one.' in sent or '"off, <b>": It names' in sent
    assert again.code == 1, again.stdout + again.stderr
    assert "no longer in the suite" not in again.stdout
    assert "qa.yml::agent_perturbation::winner::r1[e1-score_off%2C%20%3Cb%3E-prompt]" in done.stdout
    assert "recall of n/a" in done.stdout

    [made] = tmp_path.rglob("agent_perturbations.jsonl")
    labels = Counter(record["expected"] for record in json_lines(made) if record["target_score"])
    assert labels == Counter(dict.fromkeys(ANSWERS, 2) | {"first": 3, "n/a": 3})
    judged = [line for line in json_lines(tmp_path / "base.jsonl") if line.get("scores")]
    verdicts = Counter((line["judge"], line["label"], *line["scores"]) for line in judged)
    assert verdicts["prompt", "n/a", "n/a", "n/a", "n/a"] == 3
    assert verdicts["code", "n/a", "tie"] == 3
    assert verdicts["code", "off, <b>", "off, <b>"] == 2
    for printed in (done.stdout, again.stdout, sent):
        assert not CODE.search(printed)
    for path in tmp_path.rglob("*"):
        if path.is_file() and "cassettes" not in path.parts:
            assert not CODE.search(path.read_text("utf-8", "replace")), path


WIDE = f"{LABELLED}rand: {{scale: [0, 100]}}\njudge: {{python: judges.py:level}}\n"
# The labels are all 50.
LEVELS = (50, 51, 48, 47, 60)
LEVEL = f"def level(case):\n    return {LEVELS}[int(case.run_id[-1])], 'Looked at it.'\n"


def test_right_is_within_a_fiftieth_of_the_scale(tmp_path: Path) -> None:
    runs = {f"run-{number}": (f"Order {number} has left.", 50) for number in range(len(LEVELS))}
    write_labelled(tmp_path, runs, LEVEL)
    (tmp_path / "wide.yml").write_text(WIDE)
    options = ("--jrh-config=wide.yml", "--jrh-baseline=base.jsonl")
    done = run_pytest(tmp_path, *options, "-v", "--jrh-update-baseline")
    assert "4 passed, 2 xfailed" in done.stdout
    assert "right means within 2 levels of the label" in done.stdout
    assert "judge gave" not in done.stdout
    line = next(line for line in done.lines if line.startswith("kind "))
    assert line.split()[:4] == ["kind", "5", "20.0%", "60.0%"]
    results = results_in(tmp_path / "outputs/wide.yml")
    assert [result.outcome for result in results] == ["agree"] * 3 + ["disagree"] * 2
    assert {result.within for result in results} == {2}
    # The baseline is read by what is right now: nothing has changed but that.
    (tmp_path / "wide.yml").write_text(WIDE.replace("rubrics.yml}", "rubrics.yml, within: 3}"))
    again = run_pytest(tmp_path, *options)
    assert again.code == 0
    assert "right means within 3 levels of the label" in again.stdout
    assert "5 passed, 1 xfailed" in again.stdout
    assert "fixes" not in again.stdout
