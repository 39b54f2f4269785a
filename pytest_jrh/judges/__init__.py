"""The kinds of judges, in one table, and the judges of a config by their kinds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pytest_jrh.core import listed
from pytest_jrh.core.calls import JUDGE
from pytest_jrh.core.documents import KeyPath
from pytest_jrh.core.sections import JudgeStage
from pytest_jrh.judges.judge import PROMPT, JudgeKind
from pytest_jrh.judges.own_code import file_of
from pytest_jrh.judges.python import INSPECT_SCORER, PYTHON

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
    if not kinds:
        return PROMPT
    return JUDGES[kinds[0]]


class JudgeEntry(NamedTuple):
    """A judge at its place in the config; one of a panel takes over from `base`, the section
    `judge`, what it does not set. `code_file` is the Python file that it names.
    """

    place: KeyPath
    section: JudgeStage
    base: JudgeStage
    kind: JudgeKind
    code_file: str | None

    @property
    def name(self) -> str | None:
        """Its name in the panel; a lone judge has none."""
        name: str | None = getattr(self.section, "name", None)
        return name

    @property
    def prompt_path(self) -> str | None:
        """The prompt file that it names, or takes over."""
        return self.section.prompt_path or self.base.prompt_path

    def place_of(self, key: str) -> KeyPath:
        """Where one of its keys is set."""
        return (JUDGE.name, key) if getattr(self.section, key) is None else (*self.place, key)


def judge_entries(
    base: JudgeStage, panel: Sequence[JudgeStage], *, own_judge: bool
) -> list[JudgeEntry]:
    """The judges of a config in order; with `own_judge` a project's code supplies them."""
    sections: dict[KeyPath, JudgeStage] = {}
    for index, panel_judge in enumerate(panel):
        sections["judges", index] = panel_judge
    entries = []
    for place, section in (sections or {(JUDGE.name,): base}).items():
        kind, file = PYTHON, None
        if not own_judge:
            kind = kind_of(section)
            # Of a kind that a project adds it may be anything.
            code = getattr(section, kind.key, None)
            file = file_of(code) if isinstance(code, str) else None
        entries.append(JudgeEntry(place, section, base, kind, file))
    return entries


def misplaced_keys(section: JudgeStage, kind: JudgeKind) -> Iterator[tuple[str, str, str]]:
    """The keys without meaning for a judge of this kind, each with a message and a hint."""
    kinds = _kinds_of(section)
    if len(kinds) > 1:
        message = f"a judge can have only one of the keys {listed(kinds)}"
        yield kinds[1], message, "remove all but one of these keys"
    kind_text = "is a prompt" if kind is PROMPT else f"has the key {kind.key}"
    kinds_with: dict[str, list[str]] = {}
    for other_kind in JUDGES.values():
        for name in other_kind.own_keys - kind.own_keys - JUDGES.keys():
            kinds_with.setdefault(name, []).append(other_kind.key)
    for name in sorted(kinds_with):
        if getattr(section, name, None) is not None:
            message = f"does not apply to a judge that {kind_text}"
            yield (
                name,
                message,
                f"remove {name}, which is only for a judge with {' or '.join(kinds_with[name])}",
            )
