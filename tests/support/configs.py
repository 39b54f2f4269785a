"""Small configs in a folder of their own, and what is said about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_jrh.config.load import load_suite
from pytest_jrh.config.suite import Suite
from pytest_jrh.core import InputError, Problem

AGENT = "test_agent_perturbation_config"
CONFIG = "inputs/configs/demo.yml"
ORDINAL_RUBRIC = [
    {
        "id": "kind",
        "instructions": "Is it kind?",
        "score_levels": [{"score": n, "label": f"{n}!"} for n in range(4)],
    }
]
JUDGE = {"template": "agent_judge", "autograder_model_name": "openai/judge"}


def minimal() -> dict[str, Any]:
    dataset = {"dataset_name": "demo.eval", "default_params_path": {"rubric": "rubric.json"}}
    return {
        "admin": {
            "module_name": "demo",
            "dataset_config": dataset,
            "perturbation_config": {"tests_to_run": ["agent_perturbation", "agent_positives"]},
            "evaluation_config": {**JUDGE},
        },
        "synthetic_data_params": {"generation_model_name": "openai/maker"},
        AGENT: {},
    }


class Folder:
    """A project folder in which suites are written and loaded."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data = root / "inputs/data/demo"
        self.data.mkdir(parents=True)
        (root / "inputs/configs").mkdir()
        (self.data / "demo.eval").write_bytes(b"log")
        self.rubrics(
            [
                {"id": "kind", "instructions": "Is it kind?"},
                {"id": "safe", "instructions": "Is it safe?"},
            ]
        )

    def rubrics(self, entries: object) -> None:
        (self.data / "rubric.json").write_text(json.dumps(entries), encoding="utf-8")

    def config(self, data: object) -> Path:
        return self.text(data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False))

    def text(self, text: str) -> Path:
        (self.root / CONFIG).write_text(text, encoding="utf-8")
        return Path(CONFIG)

    def load(self, data: object, **options: Any) -> Suite:
        return load_suite(self.config(data), cwd=self.root, rootdir=self.root, **options)

    def problems(self, data: object, **options: Any) -> tuple[Problem, ...]:
        with pytest.raises(InputError) as caught:
            self.load(data, **options)
        return caught.value.problems

    def problem(self, data: object, **options: Any) -> Problem:
        (problem,) = self.problems(data, **options)
        return problem


def changed(path: str, value: object) -> dict[str, Any]:
    """The minimal config with one dotted key set."""
    data = minimal()
    here = data
    *sections, key = path.split(".")
    for section in sections:
        here = here.setdefault(section, {})
    here[key] = value
    return data


def ordinal() -> dict[str, Any]:
    return changed("admin.evaluation_config.template", "agent_autograder")
