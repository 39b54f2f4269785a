"""pytest-jrh: tests for language models used as judges.

The names below are the pipeline as a library; with pytest, a config file is all that is needed.
They are imported when they are first used, because every pytest run imports this package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_jrh.cases.pipeline import (
        ConversationSummarizer,
        Goal,
        apply_single_edit,
        generate_single_edit,
        make_llm_planner,
        make_llm_verifier,
    )
    from pytest_jrh.cli.checking import CheckedTable, check_table
    from pytest_jrh.config.rubrics import load_rubrics
    from pytest_jrh.core.calls import Completion, StageModel
    from pytest_jrh.core.cases import AgentRun, Case, PerturbationOutcome, Rubric
    from pytest_jrh.core.errors import InputError, JrhError, NoVerdictCase, Unscored
    from pytest_jrh.core.results import CaseResult, Verdict
    from pytest_jrh.core.scales import ScoreLevel
    from pytest_jrh.engine.library import (
        ConversationPerturber,
        Pipeline,
        generate_agent_perturbations,
        judge_cases,
        load_cases,
    )
    from pytest_jrh.judges.judge import JudgedCase
    from pytest_jrh.llm.calls import make_complete
    from pytest_jrh.llm.client import LiteLLMExchange
    from pytest_jrh.sources import load_inspect_eval_runs
    from pytest_jrh.stats.figures import Reliability, reliability

__version__ = "0.1.0"

_HOMES = {
    "AgentRun": "core.cases",
    "Case": "core.cases",
    "CaseResult": "core.results",
    "CheckedTable": "cli.checking",
    "Completion": "core.calls",
    "ConversationPerturber": "engine.library",
    "ConversationSummarizer": "cases.pipeline",
    "Goal": "cases.pipeline",
    "InputError": "core.errors",
    "JudgedCase": "judges.judge",
    "JrhError": "core.errors",
    "LiteLLMExchange": "llm.client",
    "NoVerdictCase": "core.errors",
    "PerturbationOutcome": "core.cases",
    "Pipeline": "engine.library",
    "Reliability": "stats.figures",
    "Rubric": "core.cases",
    "ScoreLevel": "core.scales",
    "StageModel": "core.calls",
    "Unscored": "core.errors",
    "Verdict": "core.results",
    "apply_single_edit": "cases.pipeline",
    "check_table": "cli.checking",
    "generate_agent_perturbations": "engine.library",
    "generate_single_edit": "cases.pipeline",
    "judge_cases": "engine.library",
    "load_cases": "engine.library",
    "load_inspect_eval_runs": "sources",
    "load_rubrics": "config.rubrics",
    "make_complete": "llm.calls",
    "make_llm_planner": "cases.pipeline",
    "make_llm_verifier": "cases.pipeline",
    "reliability": "stats.figures",
}

__all__ = [
    "AgentRun",
    "Case",
    "CaseResult",
    "CheckedTable",
    "Completion",
    "ConversationPerturber",
    "ConversationSummarizer",
    "Goal",
    "InputError",
    "JrhError",
    "JudgedCase",
    "LiteLLMExchange",
    "NoVerdictCase",
    "PerturbationOutcome",
    "Pipeline",
    "Reliability",
    "Rubric",
    "ScoreLevel",
    "StageModel",
    "Unscored",
    "Verdict",
    "apply_single_edit",
    "check_table",
    "generate_agent_perturbations",
    "generate_single_edit",
    "judge_cases",
    "load_cases",
    "load_inspect_eval_runs",
    "load_rubrics",
    "make_complete",
    "make_llm_planner",
    "make_llm_verifier",
    "reliability",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
