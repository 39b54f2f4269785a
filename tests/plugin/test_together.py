"""Judges that are asked about all rubrics in one call."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.results import CaseResult, total_spending
from tests.plugin.recorded import Done, run_pytest
from tests.support.ledgers import results_in
from tests.support.model_server import ModelServer, Request

IDS = tuple(f"r{number}" for number in range(1, 6))
RUNS = ("a", "b", "c", "d")
BROKEN = {("a", "r1"), ("b", "r2"), ("b", "r5"), ("c", "r3")}
CONFIG = """
suite: {log: runs.jsonl, rubrics: rubrics.yml}
cases: {kinds: [labels]}
labels: {path: labels.csv}
"""
PROMPT = "{model: openai/judge, together: true}"
PROMPT_3 = "{model: openai/judge, together: true, repeats: 3}"
RECORD = "--jrh-record-mode=once"


def write(folder: Path, judge: str, config: str = CONFIG) -> None:
    """A suite of four runs, which break some of five rubrics."""
    runs, labels = [], ["run_id,rubric_id,label"]
    for run in RUNS:
        said = " ".join(f"breaks-{name}" for of, name in sorted(BROKEN) if of == run)
        turns = [{"role": "user", "content": "Help me, please. " * 40}]
        turns.append({"role": "assistant", "content": f"Here you are. {said}"})
        runs.append(json.dumps({"id": run, "messages": turns}))
        labels += [f"{run},{name},{int((run, name) in BROKEN)}" for name in IDS]
    rubrics = [{"id": name, "instructions": f"The answer keeps {name}."} for name in IDS]
    (folder / "runs.jsonl").write_text("\n".join(runs), encoding="utf-8")
    (folder / "labels.csv").write_text("\n".join(labels), encoding="utf-8")
    (folder / "rubrics.yml").write_text(json.dumps(rubrics), encoding="utf-8")
    (folder / "suite.yml").write_text(f"{config}judge: {judge}\n", encoding="utf-8")


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


def test_five_rubrics_take_a_fifth_of_the_calls_and_a_replay_none(tmp_path: Path) -> None:
    calls, tokens = [], []
    for number, judge in enumerate(["{model: openai/judge, repeats: 3}", PROMPT_3]):
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder, judge)
        with ModelServer(answer) as server:
            planned = session(folder, server, RECORD, "--jrh-plan").stdout
            done = session(folder, server, RECORD, "-n2")
            asked = server.count()
            assert f"{asked} calls, " in planned
            assert ("under all rubrics in one call" in " ".join(planned.split())) == bool(number)
            assert f"{asked} calls, 0 replayed" in done.stdout, done.stdout
            assert outcomes(folder) == ALL_AGREE
            replayed = session(folder, server)
            assert f"0 calls, {asked} replayed" in replayed.stdout
            assert outcomes(folder) == ALL_AGREE
            assert server.count() == asked
        calls.append(asked)
        tokens.append(total_spending(results(folder)).usage.total)
    assert calls == [60, 12]
    assert tokens[1] < tokens[0] / 2


def test_a_case_is_judged_once_for_all_and_a_changed_rubric_asks_again(tmp_path: Path) -> None:
    write(tmp_path, PROMPT)
    rubrics = tmp_path / "rubrics.yml"
    with ModelServer(answer) as server:
        session(tmp_path, server, RECORD, "-k", "r3 and a[")
        assert server.count() == 1
        session(tmp_path, server, RECORD, "--jrh-baseline=b.json", "--jrh-update-baseline")
        assert server.count() == len(RUNS)
        rubrics.write_text(rubrics.read_text().replace("keeps r2.", "keeps r2. Always."))
        red = session(tmp_path, server, "--jrh-baseline=b.json")
        assert "20 cases have no verdict (20 unrecorded)" in red.stdout
        again = session(tmp_path, server, "--jrh-record-mode=new_episodes", "--jrh-baseline=b.json")
        assert server.count() == 2 * len(RUNS)
    # The reworded one has left the comparison.
    assert "16 of 20 cases compared: 4 with other labels or texts" in " ".join(again.stdout.split())


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
    assert causes["r4"].endswith('on "r4": it is missing.')
    with ModelServer(answer) as server:
        session(tmp_path, server, RECORD, "--jrh-retry-unscored")
        assert server.count() == 3 * len(RUNS)
    assert outcomes(tmp_path) == ALL_AGREE


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
def test_a_function_returns_a_mapping_and_its_requests_are_paid_once(
    tmp_path: Path, version: str
) -> None:
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
