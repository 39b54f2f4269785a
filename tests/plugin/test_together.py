"""Judges that are asked about all rubrics in one call."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.results import CaseResult
from tests.plugin.recorded import LABELLED, Done, conversation, run_pytest, write_files
from tests.support.ledgers import results_in
from tests.support.model_server import ModelServer, Request

IDS = tuple(f"r{number}" for number in range(1, 6))
RUNS = ("a", "b", "c", "d")
BROKEN = {("a", "r1"), ("b", "r2"), ("b", "r5"), ("c", "r3")}
PROMPT = "{model: openai/judge, together: true}"
PROMPT_3 = "{model: openai/judge, together: true, repeats: 3}"
RECORD = "--jrh-record-mode=once"


def write(folder: Path, judge: str) -> None:
    """A suite of four runs, which break some of five rubrics."""
    runs, labels = "", "run_id,rubric_id,label\n"
    for run in RUNS:
        said = " ".join(f"breaks-{name}" for of, name in sorted(BROKEN) if of == run)
        runs += conversation(run, "Help me, please. " * 40, f"Here you are. {said}")
        labels += "".join(f"{run},{name},{int((run, name) in BROKEN)}\n" for name in IDS)
    rubrics = [{"id": name, "instructions": f"The answer keeps {name}."} for name in IDS]
    files = {"runs.jsonl": runs, "labels.csv": labels, "rubrics.yml": json.dumps(rubrics)}
    write_files(folder, {**files, "suite.yml": f"{LABELLED}judge: {judge}\n"})


def verdict(name: str, text: str) -> dict[str, Any]:
    return {"reasoning": f"About {name}.", "score": int(f"breaks-{name}" in text)}


def answer(request: Request) -> Mapping[str, Any]:
    """The right verdicts, of one rubric or of several."""
    if "score" in request.fields:
        [name] = [name for name in IDS if f"keeps {name}." in request.text]
        return verdict(name, request.text)
    return {name: verdict(name, request.text) for name in sorted(request.fields)}


def session(folder: Path, server: ModelServer, *options: str) -> Done:
    return run_pytest(folder, "--jrh-config=suite.yml", *options, env=server.environment)


def results(folder: Path) -> list[CaseResult]:
    return results_in(folder / "outputs/suite.yml")


def outcomes(folder: Path) -> Counter[tuple[str, str]]:
    return Counter((result.rubric_id, result.outcome) for result in results(folder))


ALL_AGREE = Counter({(name, "agree"): len(RUNS) for name in IDS})


def test_five_rubrics_take_the_calls_of_one_and_a_replay_none(tmp_path: Path) -> None:
    write(tmp_path, PROMPT_3)
    asked = len(RUNS) * 3
    with ModelServer(answer) as server:
        planned = session(tmp_path, server, RECORD, "--jrh-plan").stdout
        assert f"{asked} calls, " in planned
        assert "under all rubrics in one call" in " ".join(planned.split())
        done = session(tmp_path, server, RECORD, "-n2")
        assert f"{asked} calls, 0 replayed" in done.stdout, done.stdout
        assert outcomes(tmp_path) == ALL_AGREE
        replayed = session(tmp_path, server)
        assert f"0 calls, {asked} replayed" in replayed.stdout
        assert outcomes(tmp_path) == ALL_AGREE
        assert server.count() == asked


def test_a_case_is_judged_once_for_all_and_a_changed_rubric_asks_again(tmp_path: Path) -> None:
    write(tmp_path, PROMPT)
    rubrics = tmp_path / "rubrics.yml"
    with ModelServer(answer) as server:
        session(tmp_path, server, RECORD, "-k", "r3 and a[")
        assert server.count() == 1
        session(tmp_path, server, RECORD)
        assert server.count() == len(RUNS)
        rubrics.write_text(rubrics.read_text().replace("keeps r2.", "keeps r2. Always."))
        red = session(tmp_path, server)
        assert server.count() == len(RUNS)
    assert "20 cases have no verdict (20 unrecorded)" in red.stdout


def test_a_verdict_that_is_missing_is_missing_under_its_rubric_alone(tmp_path: Path) -> None:
    def forgetful(request: Request) -> Mapping[str, Any]:
        said = dict(answer(request))
        said["r1"] = "violated"
        del said["r4"]
        return {**said, "<b>r4</b>": verdict("r4", ""), **dict.fromkeys(map(str, range(999)))}

    write(tmp_path, PROMPT_3)
    with ModelServer(forgetful) as server:
        done = session(tmp_path, server, RECORD, "-v")
        assert server.count() == 3 * len(RUNS)
        session(tmp_path, server, RECORD)
        assert server.count() == 3 * len(RUNS)
    wanted = Counter(dict(ALL_AGREE))
    for name in ("r1", "r4"):
        wanted[name, "invalid_response"] = wanted.pop((name, "agree"))
    assert outcomes(tmp_path) == wanted, done.stdout
    causes = {result.rubric_id: result.why.cause for result in results(tmp_path)}
    assert causes["r1"].endswith("on \"r1\": the answer: must be an object (got 'violated').")
    assert causes["r4"].endswith('on "r4": the verdict is missing.')
    with ModelServer(answer) as server:
        session(tmp_path, server, RECORD, "--jrh-retry-unscored")
        assert server.count() == 3 * len(RUNS)
    assert outcomes(tmp_path) == ALL_AGREE


def test_less_than_half_is_sent_of_what_rubrics_one_by_one_take(tmp_path: Path) -> None:
    sent: list[int] = []
    for judge in (PROMPT, "{model: openai/judge}"):
        (folder := tmp_path / f"{len(sent)}").mkdir()
        write(folder, judge)
        with ModelServer(answer) as server:
            session(folder, server, RECORD)
            sent.append(sum(len(request.text) for request in server.requests))
        assert outcomes(folder) == ALL_AGREE
    assert sent[0] < sent[1] / 2


FUNCTION = """
import requests

def judge(case):
    assert not case.rubric.text and "human" not in case.metadata
    messages = [{"role": "user", "content": case.transcript}]
    requests.post("{url}", json={"messages": messages}).raise_for_status()
    said = {r.id: (int(f"breaks-{r.id}" in case.transcript), r.text) for r in case.rubrics}
    return {key: said[key] for key in said if key not in ("r4",)}
"""


@pytest.mark.parametrize("version", ["", ", version: '1'"])
def test_a_function_returns_a_mapping_and_is_paid_once(tmp_path: Path, version: str) -> None:
    write(tmp_path, f"{{python: judges.py:judge, together: true{version}}}")
    with ModelServer(lambda _request: "fine") as server:
        url = f"{server.base_url}/chat/completions"
        (tmp_path / "judges.py").write_text(FUNCTION.replace("{url}", url), encoding="utf-8")
        done = session(tmp_path, server, RECORD, "-n2")
        assert server.count() == len(RUNS), done.stdout
        replayed = session(tmp_path, server)
        assert server.count() == len(RUNS)
    assert "0 calls, 4 replayed" in replayed.stdout
    wanted = Counter(dict(ALL_AGREE))
    wanted["r4", "invalid_response"] = wanted.pop(("r4", "agree"))
    assert outcomes(tmp_path) == wanted, replayed.stdout
