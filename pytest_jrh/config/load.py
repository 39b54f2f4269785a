"""Load a suite in one pass: a config file, its rubrics, and where all that it names is."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_jrh.config import tests as targets
from pytest_jrh.config.fitting import fit
from pytest_jrh.config.models import resolve_judges, resolve_stages
from pytest_jrh.config.places import Places
from pytest_jrh.config.probes import check_gate_probes, resolve_probes, unused_probes
from pytest_jrh.config.rand import AGENT
from pytest_jrh.config.rubrics import read_head, read_rubrics, with_scales
from pytest_jrh.config.suite import Suite
from pytest_jrh.core.documents import dotted, listed, read_document, read_text, shown
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.text import nearest_hint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.config.fitting import Fitted
    from pytest_jrh.config.schema import Config
    from pytest_jrh.core.documents import Findings, KeyPath
    from pytest_jrh.core.errors import Problem
    from pytest_jrh.core.model import Mode, Rubric


OUR_METRICS = ("accuracy_score", "balanced_accuracy_score", "cohen_kappa_score", "f1_score")

_SECTION = re.compile(
    rf"^[\"']?(?:cases|admin|{AGENT})[\"']?[ \t]*:"
    rf"|\A\s*\{{(?s:.*?)[\"'](?:cases|admin|{AGENT})[\"']\s*:",
    re.MULTILINE,
)


def looks_like_suite(path: Path) -> bool:
    """Whether the beginning of a file looks like a suite's config; reads 64 kB and never raises."""
    return _SECTION.search(read_head(path)) is not None


def load_suite(
    path: Path,
    *,
    cwd: Path,
    rootdir: Path,
    frozen: bool = False,
    own_judge: bool = False,
) -> Suite:
    """Read a config file and everything it names except the log's content.

    `cwd` is the folder that pytest was started in; `frozen` is the command line's wish for a frozen
    suite. With an `own_judge`, a project's code supplies the judge. Raises InputError with every
    problem of config and rubrics.
    """
    config_file = cwd / path
    file = Places(cwd, rootdir, cwd).name(config_file)
    fitted = fit(read_document(config_file, file=file))
    section = fitted.config.suite
    inputs = (*section.log, *filter(None, [section.rubrics]))
    places = Places(cwd, rootdir, config_file.parent).settled(inputs)
    return _suite_of(config_file, fitted, places, frozen=frozen, own_judge=own_judge)


def _suite_of(
    config_file: Path, fitted: Fitted, places: Places, *, frozen: bool, own_judge: bool
) -> Suite:
    """What a config that fits means; raises InputError with every problem of it and of rubrics."""
    config = fitted.config
    findings = fitted.findings
    name = config_file.stem
    rubric_problems: list[Problem] = []
    rubric_file = _rubric_file(config, findings, places)
    rubrics: tuple[Rubric, ...] = ()
    untargeted: frozenset[str] = frozenset()
    if rubric_file is not None:
        all_rubrics, rubric_problems = read_rubrics(rubric_file, file=places.name(rubric_file))
        rubrics = _targeted(config, all_rubrics, findings, complete=not rubric_problems)
        untargeted = frozenset(rubric.id for rubric in all_rubrics if rubric not in rubrics)
    mode = _mode_of(config, rubrics)
    if mode == "ordinal" and rubric_file is not None:
        ends = config.rand.scale if isinstance(config.rand.scale, tuple) else None
        scaled, problems = with_scales(rubrics, ends, file=places.name(rubric_file))
        rubrics = tuple(scaled)
        rubric_problems += problems
    module = config.rand.module or name
    # RAND's harness has a folder for each test.
    folder = None if fitted.is_rands and places.conventional else places.results(config_file)
    stages = resolve_stages(config, targets.stages_needed(config), findings, places)
    judges = resolve_judges(config, mode, findings, places, supplied=own_judge)
    tests = targets.resolve_tests(config, mode, rubrics, findings, places, folder, module)
    probes = resolve_probes(config, rubrics, mode, stages, findings, places)
    _check_gate(config, mode, findings)
    is_frozen, frozen_file = targets.resolve_frozen(
        config, findings, places, folder, module, forced=frozen
    )
    logs = _logs(config, findings, places, required=not is_frozen)
    if frozen_file is not None and not logs:
        logs = (frozen_file,)
    instruction = _instruction(config, findings, places)
    labels = targets.resolve_labels(config, rubrics, findings, places, frozen=is_frozen)
    blind_labels = targets.resolve_blind_labels(config, findings, places)
    problems = [*sorted(findings.problems, key=lambda problem: problem.line or 0), *rubric_problems]
    if problems:
        raise InputError(problems)
    stamp = f"_{config.rand.stamp}" if config.rand.stamp else ""
    results = config.rand.results or f"{places.results(config_file)}{stamp}"
    return Suite(
        name=name,
        key=places.key(config_file),
        config_file=config_file,
        module_name=module,
        dataset_name=logs[0].name if logs else "",
        mode=mode,
        rubric_file=rubric_file or Path(),
        rubrics=rubrics,
        tests=tests,
        judges=judges,
        config=config,
        logs=logs,
        stages=stages,
        cassette_dir=places.find_or_new(config.recording.dir or f"inputs/cassettes/{name}"),
        results_dir=places.find_or_new(results),
        custom_prompts_dir=places.find_or_new(f"inputs/custom_prompts/{module}"),
        frozen=frozen_file,
        table_format=_table_format(config),
        instruction=instruction,
        untargeted=untargeted,
        labels=labels,
        blind_labels=blind_labels,
        probes=probes,
        notices=_notices(config, findings, places.name(config_file)),
        unused_keys=_about_unused(fitted.unused, places.name(config_file)),
    )


def _rubric_file(config: Config, findings: Findings, places: Places) -> Path | None:
    key: KeyPath = ("suite", "rubrics")
    if config.suite.rubrics:
        return places.require(config.suite.rubrics, findings, key, role="the rubric file")
    findings.add(key, f"no rubrics are named; set {findings.name(key)}")
    return None


def _targeted(
    config: Config, rubrics: Sequence[Rubric], findings: Findings, *, complete: bool
) -> tuple[Rubric, ...]:
    """The rubrics that `cases.rubrics` names; ids are missed only if rubrics are `complete`."""
    target_ids = [name.strip() for name in config.cases.rubrics]
    ids = [rubric.id for rubric in rubrics]
    for index, rubric_id in enumerate(target_ids):
        if complete and rubric_id not in ids:
            hint = nearest_hint(rubric_id, ids, "id")
            message = f"got {shown(rubric_id)}; the ids in the rubric file are {listed(ids)}"
            findings.add(("cases", "rubrics", index), message, hint)
    return tuple(rubric for rubric in rubrics if not target_ids or rubric.id in target_ids)


def _mode_of(config: Config, rubrics: Sequence[Rubric]) -> Mode:
    """The mode that RAND's template stands for, else that of the rubrics."""
    if config.rand.scale is None:
        return "ordinal" if any(rubric.score_levels for rubric in rubrics) else "binary"
    return "binary" if config.rand.scale == "binary" else "ordinal"


def _logs(
    config: Config, findings: Findings, places: Places, *, required: bool
) -> tuple[Path, ...]:
    """Find the logs, which may be absent where the suite is frozen."""
    key: KeyPath = ("suite", "log")
    names = config.suite.log
    if not names and required:
        findings.add(key, f"no log is named; set {findings.name(key)}")
    logs: dict[Path, None] = {}
    for index, relative in enumerate(names):
        if not required:
            logs[places.find_or_new(relative)] = None
            continue
        place = (*key, index) if len(names) > 1 else key
        logs.update(dict.fromkeys(places.require_runs(relative, findings, place)))
    return tuple(logs)


def _instruction(config: Config, findings: Findings, places: Places) -> str:
    """The note to the judge."""
    if config.rand.instruction_path is None:
        return (config.rand.instruction or "").strip()
    key = ("rand", "instruction_path")
    path = places.require(config.rand.instruction_path, findings, key, role="the instruction file")
    try:
        return "" if path is None else read_text(path, places.name(path)).strip()
    except InputError as error:
        findings.problems.extend(error.problems)
        return ""


def _check_gate(config: Config, mode: Mode, findings: Findings) -> None:
    """Refuse limits without effect, such as one of recall for an ordinal judge."""
    of_mode = {
        "min_recall": "binary",
        "max_false_alarms": "binary",
        "max_error": "ordinal",
    }
    for key, needed in of_mode.items():
        if mode != needed and getattr(config.gate, key) is not None:
            hint = "set gate.max_error" if mode == "ordinal" else "set gate.min_accuracy"
            findings.add(("gate", key), f"is about {needed} judges, and this suite is {mode}", hint)
    check_gate_probes(config, findings)


def _table_format(config: Config) -> Literal["csv", "xlsx"]:
    """The tables' format: CSV where XLSX cannot be written."""
    return "csv" if find_spec("openpyxl") is None else config.rand.table


def _notices(config: Config, findings: Findings, file: str) -> tuple[str, ...]:
    """Say once what a config asks for that is not done."""
    sentences = targets.unused_labels(config, findings, file)
    sentences += unused_probes(config, findings, file)
    if _table_format(config) != config.rand.table:
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


def _about_unused(unused: Sequence[KeyPath], file: str) -> str:
    """Name the keys of RAND's without meaning for agentic tests; empty where there are none."""
    groups: dict[str, list[str]] = {}
    for path in unused:
        groups.setdefault(dotted(path[:-1]), []).append(str(path[-1]))
    names = []
    for section, keys in groups.items():
        within = keys[0] if len(keys) == 1 else f"{{{listed(keys)}}}"
        names.append(f"{section}.{within}" if section else within)
    return f"{file}: not used by agentic tests: {', '.join(names)}" if names else ""
