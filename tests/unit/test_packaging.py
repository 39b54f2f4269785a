"""What a package index shows, and the versions that pyproject.toml allows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import pytest_jrh
from pytest_jrh.__main__ import main

ROOT = Path(__file__).parents[2]
RELATIVE = re.compile(r"\]\((?!https?:|#)[^)]*\)")


@pytest.fixture(scope="module")
def project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_the_command_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"pytest-jrh {pytest_jrh.__version__}\n"


def test_the_description_on_a_package_index_has_no_link_into_the_repository(project: Any) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert RELATIVE.search(text)
    for each in project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    assert not RELATIVE.search(text)
    assert "![" not in text
    assert "`ARCHITECTURE.md`" in text


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
