"""`agent_labels`: a run as it is, with the label that people or a program gave it (rule N1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_jrh.kinds.kind import Kind, Planned

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from pytest_jrh.kinds.kind import Bench, Subject


def _cases(subject: Subject) -> Iterable[Planned]:
    """One case where there is a label, and none elsewhere.

    An ordinal case is named after its label, and after the lowest one where annotators disagree.
    """
    label = subject.label
    if label is not None:
        yield Planned(None if subject.targets == (None,) else label.lowest, label.dispute)


def _make(bench: Bench) -> Awaitable[Any]:
    return bench.unedited()


AGENT_LABELS = Kind(
    name="agent_labels",
    marker="a run as it is, with the label that people or a program gave it",
    label="natural",
    figures=("recall", "false_positive_rate"),
    objective=lambda _configured: "fail",
    folder=lambda module: f"outputs/agent_labels/{module}",
    targets=lambda scale, _wanted: tuple(scale),
    cases=_cases,
    make=_make,
    natural=True,
)
