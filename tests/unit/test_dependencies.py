"""The versions that pyproject.toml allows: none that is known not to work, each with a lower bound
that is tried."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def requirements() -> dict[str, Requirement]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    return {each.name: each for each in map(Requirement, lines) if each.name != project["name"]}


@pytest.mark.parametrize(
    ("name", "version"),
    [
        # Every item ends in an error.
        ("inspect-ai", "0.3.180"),
        ("inspect-ai", "0.3.190"),
        # Its graders score what they cannot read as incorrect.
        ("inspect-ai", "0.3.244"),
        # They record nothing beside aiohttp 3.14.
        ("vcrpy", "8.0.0"),
        ("vcrpy", "8.1.1"),
    ],
)
def test_a_version_that_does_not_work_is_not_allowed(name: str, version: str) -> None:
    assert not requirements()[name].specifier.contains(version)


def test_every_dependency_has_a_lower_bound() -> None:
    for requirement in requirements().values():
        assert [each.operator for each in requirement.specifier] == [">="], str(requirement)


def test_ci_tries_the_lowest_and_the_newest_versions() -> None:
    commands = (ROOT / ".ci/run").read_text("utf-8").splitlines()
    assert {"make test-lowest", "make test-newest"} <= set(commands)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert "--resolution lowest-direct" in makefile
    assert "--upgrade-package pytest --python .venv-lowest/bin/python 'pytest==8.*'" in makefile


def test_what_new_releases_may_break_is_tried_every_week() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text("utf-8"))
    # YAML reads the key `on` as true.
    assert workflow[True]["schedule"]
    assert workflow["permissions"] == {}
    job = workflow["jobs"]["versions"]
    assert job["strategy"]["matrix"] == {"target": ["test-lowest", "test-newest"]}
    assert [step["run"] for step in job["steps"] if "run" in step] == ["make ${{ matrix.target }}"]
