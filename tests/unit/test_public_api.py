"""The package as a library: its names, what importing it costs, and the pipeline without pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import pytest_jrh

HEAVY = "litellm openai inspect_ai vcr jinja2 sklearn pydantic pytest yaml"
ROOT = str(Path(pytest_jrh.__file__).parents[1])
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


@pytest.mark.parametrize("name", pytest_jrh.__all__)
def test_public_name_is_there_under_its_own_name(name: str) -> None:
    thing = getattr(pytest_jrh, name)
    assert thing.__name__ == name
    assert thing.__doc__


def test_public_names_are_sorted_and_hold_those_of_the_guide() -> None:
    assert sorted(pytest_jrh.__all__) == pytest_jrh.__all__
    assert set(pytest_jrh.__all__) >= ISSUE


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = (
        f"import sys; sys.path.insert(0, {ROOT!r}); import pytest_jrh; "
        f"print([name for name in {HEAVY.split()!r} if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
