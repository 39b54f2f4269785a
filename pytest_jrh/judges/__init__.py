"""The kinds of judges, each in a file of its own, in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.judges.inspect_code import INSPECT_SCORER
from pytest_jrh.judges.prompt import PROMPT, PromptJudge
from pytest_jrh.judges.python import PYTHON, imported, supplied_judge

if TYPE_CHECKING:
    from pytest_jrh.core.sections import JudgeStage
    from pytest_jrh.judges.judge import JudgeKind

__all__ = ["PYTHON", "PromptJudge", "imported", "supplied_judge"]

JUDGES: dict[str, JudgeKind] = {kind.key: kind for kind in (PROMPT, PYTHON, INSPECT_SCORER)}
"""The kinds of judges by `JudgeSettings.kind`."""


def with_own_keys(base: type[JudgeStage]) -> type[JudgeStage]:
    """The section of a judge with the keys of every kind, under the same name."""
    keys = [kind.keys for kind in JUDGES.values() if kind.keys is not None]
    if not keys:
        return base
    return type(base.__name__, (*keys, base), {"__doc__": base.__doc__, "__module__": __name__})


def kinds_of(section: JudgeStage) -> list[str]:
    """The kinds whose keys a section sets; a judge is of one of them."""
    return [key for key in JUDGES if getattr(section, key, None) is not None]


def kind_of(section: JudgeStage) -> JudgeKind:
    """The kind of the judge that a section describes: of the key that is set."""
    kinds = kinds_of(section)
    return JUDGES[kinds[0]] if kinds else PROMPT


def stray_keys(section: JudgeStage) -> dict[str, list[str]]:
    """The keys that a section sets and its kind of judge has not, each with the kinds that have it.

    The keys that say of which kind a judge is are left out; see `kinds_of`.
    """
    kind = kind_of(section)
    own_keys = set() if kind.keys is None else set(kind.keys.model_fields)
    stray: dict[str, list[str]] = {}
    for kind_with in JUDGES.values():
        for name in kind_with.keys.model_fields if kind_with.keys is not None else ():
            if name not in own_keys | JUDGES.keys() and getattr(section, name, None) is not None:
                stray.setdefault(name, []).append(kind_with.key)
    return stray
