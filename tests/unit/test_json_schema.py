"""The published schemas: in step with the models, and of one mind with the loader about right and
wrong."""

import contextlib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from pytest_jrh.config.load import fit
from pytest_jrh.config.rand import convert
from pytest_jrh.config.rubrics import load_rubrics
from pytest_jrh.core import InputError
from pytest_jrh.core.documents import read_document
from tests.support.suites import SuiteFiles, merged, write_suite
from tools import schema as json_schema


def problems(schema: dict[str, Any], data: Any) -> list[str]:
    return [error.json_path for error in jsonschema.Draft7Validator(schema).iter_errors(data)]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> SuiteFiles:
    return write_suite(tmp_path_factory.mktemp("suite"), mode="ordinal")


CONFIG_SCHEMA = json_schema.config_schema()
GOOD: dict[str, dict[str, Any]] = {
    "a section without content": {"judge": None, "gate": None},
    "null for a key": {"rand": {"stamp": None, "metric": None}},
    "verifier off": {"editor": {"verifier": False}},
    "a scale by its ends": {"rand": {"scale": [1, 5]}},
    "one preprocessor": {"cases": {"preprocess": "drop_tool_messages"}},
    "one judge for a panel": {"judges": {"name": "strict"}},
    "a panel": {"judges": [{"name": "strict", "temperature": 0.5}]},
    "a rate limit": {"judge": {"rate_limit": {"calls": 3, "period": 1.5}}},
}
BAD: dict[str, dict[str, Any]] = {
    "a misspelled key": {"judge": {"modell": "openai/gpt-4.1-mini"}},
    "a misspelled section": {"case": {"sample": 3}},
    "an unknown test": {"cases": {"kinds": ["agent_negatives"]}},
    "a percentage for a share": {"gate": {"min_accuracy": 90}},
    "a server without a scheme": {"judge": {"api_base": "localhost:8000"}},
    "a rate limit without a period": {"judge": {"rate_limit": {"calls": 3}}},
    "verifier on": {"editor": {"verifier": True}},
    "a blank path": {"judge": {"prompt_path": "  "}},
}


@pytest.mark.parametrize("name", [*GOOD, *BAD])
def test_both_agree_on_configs(name: str, suite: SuiteFiles) -> None:
    document = read_document(suite.config, str(suite.config))
    data = merged(convert(document.data).data, {**GOOD, **BAD}[name])
    path = suite.folder / "changed.yml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    assert bool(problems(CONFIG_SCHEMA, data)) is (name in BAD)
    with contextlib.nullcontext() if name in GOOD else pytest.raises(InputError):
        fit(read_document(path, str(path)))


@pytest.mark.parametrize(
    ("data", "right"),
    [
        ([{"id": "a", "instructions": "Be kind."}], True),
        ({"rubrics": [{"id": "a", "instruction": "Be kind.", "note": "ours"}]}, True),
        ([], False),
        ([{"id": "a"}], False),
        ([{"id": "a", "instructions": "  "}], False),
        ([{"id": "a", "instructions": "x", "instruction": "y"}], False),
    ],
)
def test_both_agree_on_rubric_files(data: Any, right: bool, tmp_path: Path) -> None:
    assert (not problems(json_schema.rubrics_schema(), data)) is right
    path = tmp_path / "rubrics.yml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    with contextlib.nullcontext() if right else pytest.raises(InputError):
        load_rubrics(path)
