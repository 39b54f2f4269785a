"""pytest-jrh: tests for language models used as judges.

The names below are the pipeline as a library; with pytest, a config file is all that is needed.
They are imported when they are first used, because every pytest run imports this package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_jrh.errors import InputError, JrhError, NoVerdictCase, Unscored
    from pytest_jrh.judges.judged_case import JudgedCase
    from pytest_jrh.library import Reliability, judge_cases, load_cases, reliability
    from pytest_jrh.llm.calls import make_complete
    from pytest_jrh.llm.client import LiteLLMExchange
    from pytest_jrh.models import (
        AgentRun,
        Case,
        CaseResult,
        Completion,
        PerturbationOutcome,
        Rubric,
        ScoreLevel,
        StageModel,
        Verdict,
    )
    from pytest_jrh.pipeline.editor import apply_single_edit, generate_single_edit
    from pytest_jrh.pipeline.generate import Pipeline, generate_agent_perturbations
    from pytest_jrh.pipeline.goal import Goal
    from pytest_jrh.pipeline.perturber import ConversationPerturber
    from pytest_jrh.pipeline.planner import make_llm_planner
    from pytest_jrh.pipeline.summarizer import ConversationSummarizer
    from pytest_jrh.pipeline.verifier import make_llm_verifier
    from pytest_jrh.sources import load_inspect_eval_runs
    from pytest_jrh.suite.rubrics import load_rubrics

__version__ = "0.1.0"

_HOMES = {
    "AgentRun": "models",
    "Case": "models",
    "CaseResult": "models",
    "Completion": "models",
    "ConversationPerturber": "pipeline.perturber",
    "ConversationSummarizer": "pipeline.summarizer",
    "Goal": "pipeline.goal",
    "InputError": "errors",
    "JudgedCase": "judges.judged_case",
    "JrhError": "errors",
    "LiteLLMExchange": "llm.client",
    "NoVerdictCase": "errors",
    "PerturbationOutcome": "models",
    "Pipeline": "pipeline.generate",
    "Reliability": "library",
    "Rubric": "models",
    "ScoreLevel": "models",
    "StageModel": "models",
    "Unscored": "errors",
    "Verdict": "models",
    "apply_single_edit": "pipeline.editor",
    "generate_agent_perturbations": "pipeline.generate",
    "generate_single_edit": "pipeline.editor",
    "judge_cases": "library",
    "load_cases": "library",
    "load_inspect_eval_runs": "sources",
    "load_rubrics": "suite.rubrics",
    "make_complete": "llm.calls",
    "make_llm_planner": "pipeline.planner",
    "make_llm_verifier": "pipeline.verifier",
    "reliability": "library",
}

__all__ = [
    "AgentRun",
    "Case",
    "CaseResult",
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
