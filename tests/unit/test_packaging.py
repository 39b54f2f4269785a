"""What a package index shows: the version, and a description whose links work there."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import pytest_jrh
from pytest_jrh.__main__ import main

ROOT = Path(__file__).parents[2]
RELATIVE = re.compile(r"\]\((?!https?:|#)[^)]*\)")


@pytest.fixture(scope="module")
def project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_the_version_is_written_in_one_place(project: Any) -> None:
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "pytest_jrh/__init__.py"
    assert pytest_jrh.__version__ == version("pytest-jrh")


def test_the_command_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"pytest-jrh {pytest_jrh.__version__}\n"


def test_the_help_ends_with_where_the_documentation_is(
    project: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit):
        main(["--help"])
    *_, last = capsys.readouterr().out.splitlines()
    assert last == f"Documentation: {ROOT / 'docs' / 'index.md'}"
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"] == {
        "docs": "pytest_jrh/docs"
    }


def test_the_description_on_a_package_index_has_no_link_into_the_repository(project: Any) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert RELATIVE.search(text)
    for each in project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    assert not RELATIVE.search(text)
    assert "![" not in text
    assert "`ARCHITECTURE.md`" in text


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    for place in re.findall(r"\]\((?!https?:|#)([^)#]*)", (ROOT / "README.md").read_text("utf-8")):
        assert (ROOT / place).exists(), place


def test_classifiers_name_the_versions_that_are_supported(project: Any) -> None:
    minors = [
        int(found[1])
        for each in project["project"]["classifiers"]
        if (found := re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", each))
    ]
    assert f">=3.{minors[0]}" == project["project"]["requires-python"]
    assert minors == list(range(minors[0], minors[-1] + 1))
