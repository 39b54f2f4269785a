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
    from pytest_jrh.core import InputError, JrhError
    from pytest_jrh.core.calls import Completion, StageModel
    from pytest_jrh.core.cases import (
        AgentRun,
        Case,
        NoVerdictCase,
        PerturbationOutcome,
        Rubric,
        Unscored,
        Verdict,
    )
    from pytest_jrh.core.results import CaseResult
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
    "cases.pipeline": "ConversationSummarizer Goal apply_single_edit generate_single_edit "
    "make_llm_planner make_llm_verifier",
    "cli.checking": "CheckedTable check_table",
    "config.rubrics": "load_rubrics",
    "core": "InputError JrhError",
    "core.calls": "Completion StageModel",
    "core.cases": "AgentRun Case NoVerdictCase PerturbationOutcome Rubric Unscored Verdict",
    "core.results": "CaseResult",
    "core.scales": "ScoreLevel",
    "engine.library": "ConversationPerturber Pipeline generate_agent_perturbations judge_cases "
    "load_cases",
    "judges.judge": "JudgedCase",
    "llm.calls": "make_complete",
    "llm.client": "LiteLLMExchange",
    "sources": "load_inspect_eval_runs",
    "stats.figures": "Reliability reliability",
}
"""By module the names that it has, as they are imported above for type checkers."""

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
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
