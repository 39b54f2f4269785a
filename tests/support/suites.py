"""Small suites on disk for tests of the plugin: a config, a rubric file, and a genuine Inspect
log."""

from __future__ import annotations

import functools
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import yaml

from tests.support.logs import write_log

MODEL = "openai/gpt-4.1-mini"
BOTH_TESTS = ("agent_perturbation", "agent_positives")
_LABELS = ("Curt or rude.", "Neutral.", "Warm and clear.")
REMOVED = object()
"""As a value of `overrides`: the key is left out."""

Message: TypeAlias = Mapping[str, Any]
Overrides: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SuiteFiles:
    """Where a suite's files are; run pytest in `folder` with `option`."""

    folder: Path
    config: Path
    module: str

    @property
    def name(self) -> str:
        return self.config.stem

    @property
    def option(self) -> str:
        return f"--jrh-config={self.config.relative_to(self.folder)}"

    def configure(self, overrides: Overrides) -> None:
        """Merge these keys into the config, mapping by mapping."""
        config = yaml.safe_load(self.config.read_text(encoding="utf-8"))
        _write_yaml(self.config, merged(config, overrides))

    @property
    def data(self) -> Path:
        return self.folder / "inputs" / "data" / self.module

    @property
    def cassettes(self) -> Path:
        """Where cassettes go unless the config says otherwise."""
        return self.folder / "inputs" / "cassettes" / self.name

    @property
    def negatives(self) -> Path:
        return self.folder / "outputs" / "agent_perturbation" / self.module

    @property
    def positives(self) -> Path:
        return self.folder / "outputs" / "agent_positives"

    @property
    def results(self) -> Path:
        """Where results go unless the config says otherwise."""
        return self.folder / "outputs" / self.name


def write_suite(
    folder: Path,
    *,
    runs: int | Sequence[Mapping[str, Any]] = 2,
    rubrics: int | Sequence[Mapping[str, Any]] = 1,
    mode: Literal["binary", "ordinal"] = "binary",
    tests: Sequence[str] = BOTH_TESTS,
    overrides: Overrides | None = None,
    log: Path | None = None,
    name: str = "tiny",
    workers: int = 4,
) -> SuiteFiles:
    """Write a suite and say where it is; several may share a folder under different names. `runs`
    is how many, or what `run` returns for each; a `log` is copied instead. `rubrics` is how many,
    or the entries of the rubric file. `workers` is how many calls are in flight at once.
    `overrides` is merged into the config, mapping by mapping."""
    suite = SuiteFiles(folder, folder / "inputs" / "configs" / f"{name}.yml", name)
    suite.data.mkdir(parents=True)
    suite.config.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(runs, int):
        runs = [run(number + 1) for number in range(runs)]
    if isinstance(rubrics, int):
        rubrics = [rubric(number + 1, mode) for number in range(rubrics)]
    source = log or built_log(runs)
    log_name = f"runs{source.suffix}"
    shutil.copyfile(source, suite.data / log_name)
    _write_yaml(suite.data / "rubrics.yml", [dict(entry) for entry in rubrics])
    config = _config(name, log_name, mode, tests, workers)
    _write_yaml(suite.config, merged(config, overrides or {}))
    return suite


def run(
    number: int, *, messages: Sequence[Message] | None = None, epoch: int = 1, **sample: Any
) -> dict[str, Any]:
    """One sample of a log: order `number` is looked up with a tool and reported. `sample` sets
    further fields."""
    return {
        "id": f"run-{number}",
        "epoch": epoch,
        "input": f"Where is order {1000 + number}?",
        "target": "",
        "messages": list(_order_lookup(number) if messages is None else messages),
        **sample,
    }


def rubric(number: int, mode: str = "binary") -> dict[str, Any]:
    """One entry of a rubric file, with three levels in ordinal mode."""
    entry: dict[str, Any] = {
        "id": f"rubric-{number}",
        "instructions": f"Demand {number}: the assistant answers kindly and clearly.",
    }
    levels = [{"score": score, "label": label} for score, label in enumerate(_LABELS)]
    return {**entry, "score_levels": levels} if mode == "ordinal" else entry


def built_log(runs: Sequence[Mapping[str, Any]]) -> Path:
    """An `.eval` file with these samples, written by Inspect once per test process. Copy it, do not
    change it."""
    return _built_log(json.dumps(list(runs)))


def merged(base: Mapping[str, Any], overrides: Overrides) -> dict[str, Any]:
    """`base` with `overrides` laid over it: mappings are merged, all else is replaced, `REMOVED`
    keys go."""
    result = dict(base)
    for key, value in overrides.items():
        if value is REMOVED:
            result.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def _config(name: str, log: str, mode: str, tests: Sequence[str], workers: int) -> dict[str, Any]:
    dataset = {"dataset_name": log, "default_params_path": {"rubric": "rubrics.yml"}}
    return {
        "admin": {
            "module_name": name,
            # So RAND's files are written, in which tests read figures and cases.
            "output_file_format": "csv",
            "dataset_config": dataset,
            "perturbation_config": {"tests_to_run": list(tests)},
            "evaluation_config": {
                "template": "agent_judge" if mode == "binary" else "agent_autograder",
                "autograder_model_name": MODEL,
                "max_workers": workers,
                "tests_to_evaluate": [],
            },
        },
        "synthetic_data_params": {"generation_model_name": MODEL},
    }


LOOK_UP = {"function": "look_up_order"}


def _order_lookup(number: int) -> list[dict[str, Any]]:
    order = 1000 + number
    call = {
        "id": f"call-{number}",
        "function": "look_up_order",
        "arguments": {"order": order},
        "type": "function",
    }
    said: list[dict[str, Any]] = [
        {"role": "system", "content": "You are the support agent of a book shop."},
        {"role": "user", "content": f"Where is order {order}?"},
        {"role": "assistant", "content": "Let me look that up for you.", "tool_calls": [call]},
        {"role": "tool", "content": "shipped yesterday", "tool_call_id": call["id"], **LOOK_UP},
        {"role": "assistant", "content": f"Good news: order {order} was shipped yesterday."},
    ]
    return [{"id": f"m{number}-{index}", **message} for index, message in enumerate(said)]


@functools.cache
def _built_log(runs: str) -> Path:
    # It goes when the process ends.
    folder = Path(_session_temporary().name) / str(_built_log.cache_info().misses)
    folder.mkdir()
    return write_log(folder / "runs.eval", json.loads(runs))


@functools.cache
def _session_temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="jrh-test-logs-")


def _write_yaml(path: Path, content: object) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
