"""What a package index shows, the versions that pyproject.toml allows, and the names of the library
with what importing it costs.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import pytest_jrh
from pytest_jrh.__main__ import main

ROOT = Path(__file__).parents[2]
HEAVY = "litellm openai inspect_ai vcr jinja2 sklearn pydantic pytest yaml"
ISSUE = {
    "load_inspect_eval_runs",
    "ConversationPerturber",
    "ConversationSummarizer",
    "PerturbationOutcome",
    "make_llm_planner",
    "generate_single_edit",
    "apply_single_edit",
    "generate_agent_perturbations",
}
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


def test_every_dependency_has_a_lower_bound_and_reasons_for_what_is_excluded(project: Any) -> None:
    reasons = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    lines = project["project"]["dependencies"]
    for extra in project["project"]["optional-dependencies"].values():
        lines = lines + extra
    for requirement in map(Requirement, lines):
        if requirement.name != project["project"]["name"]:
            excluded = [each.version for each in requirement.specifier if each.operator == "!="]
            operators = sorted(each.operator for each in requirement.specifier)
            assert operators == [*["!="] * len(excluded), ">="], str(requirement)
            assert all(version in reasons for version in excluded), str(requirement)


def test_public_names_are_sorted_have_a_text_and_hold_those_of_the_guide() -> None:
    for name in pytest_jrh.__all__:
        thing = getattr(pytest_jrh, name)
        assert (thing.__name__, bool(thing.__doc__)) == (name, True)
    assert sorted(pytest_jrh.__all__) == pytest_jrh.__all__
    assert set(pytest_jrh.__all__) >= ISSUE


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import pytest_jrh; "
        f"print([name for name in {HEAVY.split()!r} if name in sys.modules])"
    )
    found = subprocess.check_output([sys.executable, "-S", "-c", code], text=True)
    assert found.strip() == "[]"
