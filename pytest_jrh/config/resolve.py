"""From a config that fits its schema to its meaning: defaults, fallbacks, files, targets.

A suite written back as a config in which nothing is left to a default, for the record.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from pytest_jrh.config.probes import check_gate_probes, unused_probes
from pytest_jrh.config.tests import unused_labels
from pytest_jrh.core.documents import KeyPath, dotted, listed, read_text, shown
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.text import nearest_hint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.config.places import Places
    from pytest_jrh.config.schema import Config
    from pytest_jrh.config.suite import SuiteTest
    from pytest_jrh.core.documents import Findings
    from pytest_jrh.core.model import Mode, Rubric
    from pytest_jrh.judges.judge import JudgeSettings


OUR_METRICS = ("accuracy_score", "balanced_accuracy_score", "cohen_kappa_score", "f1_score")

_LONGEST_NAME = 120
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f/\\]")


def check_name(name: str) -> str | None:
    """Say why a name cannot be part of a path, or None where it can."""
    if _UNSAFE.search(name):
        return "holds a path separator or a control character"
    if name in {".", ".."}:
        return "must not be `.` or `..`"
    if len(name.encode("utf-8", "surrogatepass")) > _LONGEST_NAME:
        return f"is longer than {_LONGEST_NAME} bytes"
    return None


def module_name(config: Config, findings: Findings, default: str) -> str:
    """Return the suite's name, checked because folders are named after it."""
    named: tuple[tuple[KeyPath, str | None], ...] = (
        (("rand", "module"), config.rand.module),
        (("rand", "stamp"), config.rand.stamp),
    )
    for key, value in named:
        if value is not None:
            refuse_name(key, value, findings)
    return config.rand.module or default


def refuse_name(key: KeyPath, name: str, findings: Findings) -> None:
    """Report a name that cannot be part of a path."""
    if reason := check_name(name):
        message = (
            f"got {shown(name)}, which {reason}; must be a plain name, as folders are named after "
            "it"
        )
        findings.add(key, message)


def mode_of(config: Config, rubrics: Sequence[Rubric]) -> Mode:
    """Return the mode that RAND's template stands for, else that of the rubrics."""
    if config.rand.scale is None:
        return "ordinal" if any(rubric.score_levels for rubric in rubrics) else "binary"
    return "binary" if config.rand.scale == "binary" else "ordinal"


def resolve_format(config: Config) -> Literal["csv", "xlsx"]:
    """Return the tables' format: CSV where XLSX cannot be written."""
    return "csv" if find_spec("openpyxl") is None else config.rand.table


def resolve_instruction(config: Config, findings: Findings, places: Places) -> str:
    """Return the note to the judge."""
    if config.rand.instruction_path is None:
        return (config.rand.instruction or "").strip()
    key = ("rand", "instruction_path")
    path = places.require(config.rand.instruction_path, findings, key, role="the instruction file")
    if path is None:
        return ""
    try:
        return read_text(path, places.name(path)).strip()
    except InputError as error:
        findings.problems.extend(error.problems)
        return ""


def targeted(
    config: Config, rubrics: Sequence[Rubric], findings: Findings, *, complete: bool
) -> list[Rubric]:
    """Keep the rubrics that `cases.rubrics` names; ids are missed only if rubrics are
    `complete`.
    """
    target_ids = [name.strip() for name in config.cases.rubrics]
    ids = [rubric.id for rubric in rubrics]
    if complete:
        for index, rubric_id in enumerate(target_ids):
            if rubric_id not in ids:
                hint = nearest_hint(rubric_id, ids, "id")
                message = f"got {shown(rubric_id)}; the ids in the rubric file are {listed(ids)}"
                findings.add(("cases", "rubrics", index), message, hint)
    return [rubric for rubric in rubrics if not target_ids or rubric.id in target_ids]


def check_gate(
    config: Config, mode: Mode | None, tests: Sequence[SuiteTest], findings: Findings
) -> None:
    """Refuse limits without effect, such as one of recall for an ordinal judge."""
    of_mode = {
        "min_recall": "binary",
        "max_false_alarms": "binary",
        "max_error": "ordinal",
    }
    for key, needed in of_mode.items():
        if mode not in (None, needed) and getattr(config.gate, key) is not None:
            hint = "set gate.max_error" if mode == "ordinal" else "set gate.min_accuracy"
            findings.add(("gate", key), f"is about {needed} judges, and this suite is {mode}", hint)
    check_gate_probes(config, [test.name for test in tests], findings)


def notices(
    config: Config,
    mode: Mode | None,
    rubrics: Sequence[Rubric],
    judges: Sequence[JudgeSettings],
    findings: Findings,
    file: str,
) -> tuple[str, ...]:
    """Say once what a config asks for that is not done."""
    sentences = unused_labels(config, findings, file)
    sentences += unused_probes(config, findings, file)
    if mode == "binary" and config.cases.scores:
        sentences.append(
            f"{file}: {findings.name(('cases', 'scores'))} has no effect in a binary suite"
        )
    labels = config.labels
    if mode == "ordinal" and any(section.unlabelled for section in labels):
        sentences.append(f"{file}: labels.unlabelled has no effect in an ordinal suite")
    if mode == "binary" and (scaled := [rubric.id for rubric in rubrics if rubric.score_levels]):
        sentences.append(
            f"{file}: score_levels of the rubrics {listed(scaled, 5)} have no effect: "
            f"{findings.name(('rand', 'scale'))} says that the suite is binary"
        )
    for repeats in dict.fromkeys(judge.repeats for judge in judges):
        if repeats % 2 == 0:
            sentences.append(
                f"{file}: repeats is {repeats}: an even number of verdicts ties more often, and a "
                "tie counts as wrong; an odd number is better"
            )
    if resolve_format(config) != config.rand.table:
        table = findings.name(("rand", "table"))
        sentences.append(
            f"{file}: {table} is xlsx, but openpyxl is not installed, so tables are "
            "written as CSV (pip install 'pytest-jrh[xlsx]')"
        )
    metric = config.rand.metric
    if metric not in OUR_METRICS and find_spec("sklearn") is None:
        sentences.append(
            f"{file}: metric is {metric}, but scikit-learn is not installed, so it is not computed "
            "(pip install 'pytest-jrh[sklearn]')"
        )
    return tuple(sentences)


def about_unused(unused: Sequence[KeyPath], file: str) -> str:
    """Name the keys of RAND's without meaning for agentic tests; empty where there are none."""
    groups: dict[str, list[str]] = {}
    for path in unused:
        groups.setdefault(dotted(path[:-1]), []).append(str(path[-1]))
    names = []
    for section, keys in groups.items():
        within = keys[0] if len(keys) == 1 else f"{{{listed(keys)}}}"
        names.append(f"{section}.{within}" if section else within)
    return f"{file}: not used by agentic tests: {', '.join(names)}" if names else ""
