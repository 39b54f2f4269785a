"""The suites and logs that the benchmarks run on: made once, kept in `benchmarks/.cache`."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.measure import pytest_command, run
from tests.support.server_process import server_process
from tests.support.suites import SuiteFiles, merged, write_suite
from tests.support.trajectories import ORDER, agent, results, trajectory, user, write_trial

CACHE = Path(__file__).resolve().parent / ".cache"
BIG_SAMPLES = 10_000
TRIALS = 500
CASES_FILE = Path("outputs", "cases", "agent_perturbations.jsonl")
# The cases of both tests in one file, as a frozen suite needs them.
_ONE_FOLDER = {"test_agent_perturbation_config": {"output": {"dir": str(CASES_FILE.parent)}}}
_BIG_TEXT = 29_000


def suite(name: str, *, overrides: Mapping[str, Any] | None = None, **settings: Any) -> SuiteFiles:
    """A suite of the test support, made once; `settings` are those of `write_suite`."""
    folder = CACHE / name
    files = SuiteFiles(folder, folder / "inputs" / "configs" / "tiny.yml", "tiny")
    if not files.config.exists():
        write_suite(folder, overrides=merged(_ONE_FOLDER, overrides or {}), **settings)
    return files


def recorded(name: str, **settings: Any) -> SuiteFiles:
    """A suite with every call recorded, from a loopback model that answers at once; recorded once,
    and kept.

    Where a prompt of ours has changed since, its replay ends unrecorded: remove the cache then.
    """
    files = suite(name, **settings)
    done = files.folder / "recorded"
    if done.exists():
        return files
    with server_process(CACHE / f"{name}.log") as server:
        run(
            pytest_command(files.option, "--jrh-record-mode=new_episodes"),
            files.folder,
            environment=server.environment,
        )
    done.touch()
    return files


def big_log() -> Path:
    """A log of 10,000 samples, about 250 MB, made by Inspect's own writer from runs of its mock
    model."""
    path = CACHE / f"big-{BIG_SAMPLES}.eval"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        _write_big_log(path)
    return path


def job_of_trials() -> Path:
    """A job of Harbor with 500 trials, each with a trajectory of about 11 KB and one reward."""
    folder = CACHE / f"job-{TRIALS}"
    if not folder.exists():
        content = "The file has five lines, and none of them names the order. " * 12
        observation = results({"source_call_id": "c1", "content": content})
        step = agent("I look.", tool_calls=[ORDER], observation=observation)
        steps = [user("Find the order."), *[step] * 11]
        for number in range(TRIALS):
            value = trajectory(*steps, session_id=f"session-{number}")
            verifier_result = {"rewards": {"reward": number % 2}}
            write_trial(
                folder, f"task-{number // 2:03}__{number}", value, verifier_result=verifier_result
            )
    return folder


def _write_big_log(path: Path) -> None:
    from inspect_ai import Task, eval  # noqa: A004 - Inspect's name
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.log import EvalLog, write_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.solver import generate

    words = random.Random(8234)
    outputs = []
    for number in range(20):
        output = ModelOutput.from_content("mockllm", _prose(words, _BIG_TEXT // 8, number))
        output.usage = ModelUsage(input_tokens=10, output_tokens=10, total_tokens=20)
        outputs.append(output)
    samples = [
        Sample(input=f"Where is order {number}?", target="", id=f"run-{number}")
        for number in range(20)
    ]
    task = Task(dataset=MemoryDataset(samples, name="orders"), solver=generate(), name="orders")
    model = get_model("mockllm/model", custom_outputs=outputs)
    log: EvalLog = eval(
        task, model=model, log_dir=str(path.parent / "mock"), display="none", log_samples=True
    )[0]
    runs = log.samples or []
    copies = []
    for number in range(BIG_SAMPLES):
        run_ = runs[number % len(runs)]
        reply = run_.messages[-1].model_copy(update={"content": _prose(words, _BIG_TEXT, number)})
        copies.append(
            run_.model_copy(
                update={
                    "id": f"run-{number}",
                    "uuid": f"u{number}",
                    "messages": [*run_.messages[:-1], reply],
                    "events": [],
                }
            )
        )
    log.eval.dataset.samples = BIG_SAMPLES
    log.eval.dataset.sample_ids = [copy.id for copy in copies]
    write_eval_log(log.model_copy(update={"samples": copies}), str(path))


def _prose(words: random.Random, length: int, number: int) -> str:
    # Random letters, since a text that repeats itself would be packed to nothing.
    alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789      "
    return f"Order {number} was shipped. " + "".join(words.choices(alphabet, k=length))


def plain_test_over(jsonl: Path, folder: Path) -> Path:
    """What a user would write instead: one parametrized test that asserts on
    each line of a JSONL.
    """
    path = folder / "test_plain_jsonl.py"
    path.write_text(
        "import json\nimport pytest\n\n"
        f"with open({str(jsonl)!r}) as file:\n"
        "    CASES = [json.loads(line) for line in file]\n\n\n"
        "@pytest.mark.parametrize('case', CASES, ids=[case['case_id'] for case in CASES])\n"
        "def test_case(case):\n"
        "    assert case['expected'] in (0, 1)\n",
        encoding="utf-8",
    )
    return path


def trivial_tests(count: int, folder: Path) -> Path:
    """As many trivial parametrized tests."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"test_trivial_{count}.py"
    path.write_text(
        f"import pytest\n\n\n@pytest.mark.parametrize('number', range({count}))\ndef "
        "test_number(number):\n"
        "    assert number >= 0\n",
        encoding="utf-8",
    )
    return path
