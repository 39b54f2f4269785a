"""The kinds of judges, each in a file of its own, in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_jrh.judges.prompt import PROMPT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_jrh.judges.judge import JudgeKind, JudgeSettings
    from pytest_jrh.sections import JudgeStage

JUDGES: Mapping[str, JudgeKind] = {kind.key: kind for kind in (PROMPT,)}
"""The kinds of judges by `JudgeSettings.kind`."""


def with_own_keys(base: type[JudgeStage]) -> type[JudgeStage]:
    """The section of a judge with the keys of every kind, under the same name."""
    keys = [kind.keys for kind in JUDGES.values() if kind.keys is not None]
    if not keys:
        return base
    return type(base.__name__, (*keys, base), {"__doc__": base.__doc__, "__module__": __name__})


def kind_of(section: JudgeStage) -> JudgeKind:
    """The kind of the judge that a section describes: of the key that is set."""
    found = (kind for kind in JUDGES.values() if getattr(section, kind.key, None) is not None)
    return next(found, PROMPT)


def own_keys(settings: JudgeSettings) -> dict[str, Any]:
    """The values of the keys that only this kind of judge has, as they go into a config."""
    keys = JUDGES[settings.kind].keys
    if keys is None or settings.section is None:
        return {}
    return settings.section.model_dump(include=set(keys.model_fields))
