"""The kinds of judges, in one table."""

from __future__ import annotations

from pytest_jrh.core.documents import listed
from pytest_jrh.core.sections import JudgeStage
from pytest_jrh.judges.inspect_code import INSPECT_SCORER
from pytest_jrh.judges.judge import PROMPT, JudgeKind
from pytest_jrh.judges.python import PYTHON

JUDGES: dict[str, JudgeKind] = {kind.key: kind for kind in (PROMPT, PYTHON, INSPECT_SCORER)}
"""The kinds of judges by `JudgeSettings.kind`."""


def with_own_keys(base: type[JudgeStage]) -> type[JudgeStage]:
    """The section of a judge with the keys of every kind, under the same name."""
    keys = [kind.keys for kind in JUDGES.values() if kind.keys is not None]
    return type(base.__name__, (*keys, base), {"__doc__": base.__doc__, "__module__": __name__})


def _kinds_of(section: JudgeStage) -> list[str]:
    """The kinds whose keys a section sets; a judge is of one of them."""
    return [key for key in JUDGES if getattr(section, key, None) is not None]


def kind_of(section: JudgeStage) -> JudgeKind:
    """The kind of the judge that a section describes: of the key that is set."""
    kinds = _kinds_of(section)
    return JUDGES[kinds[0]] if kinds else PROMPT


def code_file(section: JudgeStage, kind: JudgeKind) -> str | None:
    """The Python file that a section names, of a kind of judge that may be in one."""
    if not kind.behind_file:
        return None
    file: str = (getattr(section, kind.key) or "").rpartition(kind.behind_file)[0]
    return file if file.endswith(".py") else None


def misplaced_keys(section: JudgeStage, kind: JudgeKind) -> list[tuple[str, str, str]]:
    """The keys without meaning for a judge of this kind, each with a message and a hint."""
    misplaced: list[tuple[str, str, str]] = []
    kinds = _kinds_of(section)
    if len(kinds) > 1:
        message = f"{listed(kinds)} are set, but a judge is one of them"
        misplaced.append((kinds[1], message, "leave all but one out"))
    kind_text = "is a prompt" if kind is PROMPT else f"has the key {kind.key}"
    kinds_with: dict[str, list[str]] = {}
    for other_kind in JUDGES.values():
        for name in other_kind.own_keys - kind.own_keys - JUDGES.keys():
            kinds_with.setdefault(name, []).append(other_kind.key)
    for name in sorted(kinds_with):
        if getattr(section, name, None) is not None:
            message = f"{name} has no meaning for a judge that {kind_text}"
            misplaced.append((name, message, f"it goes with {listed(kinds_with[name])}"))
    return misplaced
