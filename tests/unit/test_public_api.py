"""The package as a library: its names, what importing it costs, and the pipeline without pytest."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import pytest_jrh
from tests.support.scripted import ScriptedModel
from tests.support.suites import built_log, run

HEAVY = ("litellm", "openai", "inspect_ai", "vcr", "jinja2", "openpyxl", "sklearn", "pydantic", "pytest", "yaml")
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


def test_unknown_name_is_an_ordinary_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = pytest_jrh.nothing


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = f"import sys, pytest_jrh; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-S", "-c", _with_path(code)], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_pipeline_works_without_pytest_in_a_dozen_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = built_log([run(number) for number in (1, 2, 3)])
    (tmp_path / "rubrics.yml").write_text("- id: kind\n  instructions: The assistant is kind.\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    run_readme_example(log, ScriptedModel)
    assert capsys.readouterr().out.splitlines() == ["run-1 kind The new text.", "run-3 kind The new text."]


def run_readme_example(log: Path, complete_of: Callable[[], ScriptedModel]) -> None:
    """As the README shows it, but for the log and for `complete = make_complete(LiteLLMExchange())`."""
    from pytest_jrh import Pipeline, generate_agent_perturbations, load_inspect_eval_runs, load_rubrics

    async def main() -> None:
        runs = load_inspect_eval_runs(log, sample_num=2)
        rubrics = load_rubrics("rubrics.yml")
        pipeline = Pipeline.default("openai/gpt-4.1-mini")
        complete = complete_of()
        async for made in generate_agent_perturbations(runs, rubrics, pipeline, complete):
            edits = [edit.edited_content for edit in made.outcome.edits]
            print(made.run.run_id, made.rubric.id, made.outcome.no_case or edits[-1])  # noqa: T201

    asyncio.run(main())


def test_client_of_the_readme_can_be_made_without_arguments_and_without_litellm() -> None:
    async def made() -> None:
        pytest_jrh.make_complete(pytest_jrh.LiteLLMExchange())

    asyncio.run(made())


def _with_path(code: str) -> str:
    return f"import sys; sys.path[:0] = {[str(Path(pytest_jrh.__file__).parents[1])]!r}; {code}"
