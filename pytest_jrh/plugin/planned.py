"""`--jrh-plan`: what would be asked, printed instead of running anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_jrh.llm.prices import Price, price_of
from pytest_jrh.plan_text import plan_lines
from pytest_jrh.planning import plan_of

if TYPE_CHECKING:
    from pytest_jrh.models import CaseSpec, StageModel, StageName
    from pytest_jrh.plugin.session import SuiteSession


def plan(session: SuiteSession, specs: Sequence[CaseSpec], width: int) -> list[str]:
    """The lines of the plan for these cases."""
    models: dict[tuple[str, StageName, str | None], StageModel] = {}
    for ready in session.suites:
        for stage, model in ready.suite.generation.stages.items():
            models[ready.suite.name, stage, None] = model
        for name, judge in ready.judges.items():
            for model in judge.models:
                models[ready.suite.name, model.stage, name] = model
    free = session.options.free_models

    def price(model: str) -> Price | None:
        if model in free:
            return Price(0.0, 0.0)
        return price_of(model)

    options = session.options
    disabled = ("disabled", "disabled")
    modes = {
        ready.suite.name: disabled if options.disable_recording else session.modes(ready)
        for ready in session.suites
    }
    found = plan_of(session.survey(specs), models, price)
    return plan_lines(
        found, modes, max_calls=options.max_calls, max_cost=options.max_cost, width=width
    )
