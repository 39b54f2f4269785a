"""Load a suite: a config file, its rubrics and where its log is, all checked at once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_jrh.config import resolve
from pytest_jrh.config import tests as targets
from pytest_jrh.config.fitting import AGENT, fit
from pytest_jrh.config.places import Places, exists, without_scheme
from pytest_jrh.config.probes import resolve_probes
from pytest_jrh.config.resolve import as_resolved
from pytest_jrh.config.rubrics import read_head, read_rubrics, with_scales
from pytest_jrh.config.stages import resolve_judges, resolve_stages
from pytest_jrh.config.suite import (
    LabelSettings,
    OutputSettings,
    ReplaySettings,
    SourceSettings,
    Suite,
)
from pytest_jrh.core.documents import read_document, shown
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.model import DEFAULT_SEED
from pytest_jrh.core.sections import first_set

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_jrh.cases.probes.probe import ProbeSettings
    from pytest_jrh.config.schema import Config
    from pytest_jrh.config.suite import SuiteTest
    from pytest_jrh.core.documents import Findings, KeyPath
    from pytest_jrh.core.model import Mode, Rubric, StageModel, StageName
    from pytest_jrh.judges.judge import JudgeSettings


_SECTION = re.compile(
    rf"^[\"']?(?:admin|{AGENT})[\"']?[ \t]*:|\A\s*\{{(?s:.*?)[\"'](?:admin|{AGENT})[\"']\s*:",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class _Rubrics:
    """What was read of the rubric file: the targeted rubrics, and the ids of the others."""

    path: Path | None = None
    targeted: tuple[Rubric, ...] = ()
    untargeted: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a config without a mistake comes to, before it is put together as a suite."""

    name: str
    module: str
    mode: Mode
    rubric_file: Path
    rubrics: _Rubrics
    tests: tuple[SuiteTest, ...]
    stages: Mapping[StageName, StageModel]
    judges: tuple[JudgeSettings, ...]
    frozen: Path | None
    logs: tuple[Path, ...]
    instruction: str
    metric: str
    labels: tuple[LabelSettings, ...] = ()
    blind_labels: Path | None = None
    probes: Mapping[str, ProbeSettings] = field(default_factory=dict)


def looks_like_suite(path: Path) -> bool:
    """Whether the beginning of a file looks like a suite's config; reads 64 kB and never raises."""
    return _SECTION.search(read_head(path)) is not None


def load_suite(
    path: Path,
    *,
    cwd: Path,
    rootdir: Path,
    rubric_file: Path | None = None,
    log_path: Path | None = None,
    frozen: bool = False,
    own_judge: bool = False,
) -> Suite:
    """Read a config file and everything it names except the log's content.

    `cwd` is the folder that pytest was started in. `rubric_file` and `log_path` stand in for the
    config's own; `frozen` is the command line's wish for a frozen suite. With an
    `own_judge`, a project's code supplies the judge. Raises InputError with
    every problem of the config and the rubrics.
    """
    config_file = cwd / path
    places = Places(cwd, rootdir, config_file.parent)
    config, findings = fit(read_document(config_file, file=places.name(config_file)))
    sources = (*resolve.log_sources(config), resolve.rubric_source(config))
    places = places.settled(source[0] for source in sources if source is not None)
    folder = None if places.conventional else places.results(config_file)
    name = _suite_name(config_file, findings)
    module = resolve.resolve_module(config, findings)
    resolve.check_param_files(config, findings)
    mode = resolve.resolve_mode(config, findings)
    stages = resolve_stages(config, targets.stages_needed(config), findings, places)
    judges = resolve_judges(config, mode, findings, places, supplied=own_judge)
    rubrics = _rubrics(config, mode, rubric_file, findings, places)
    tests = targets.resolve_tests(config, mode, rubrics.targeted, findings, places, folder)
    probes = resolve_probes(config, rubrics.targeted, mode, stages, findings, places)
    resolve.check_gate(config, tests, findings)
    is_frozen, frozen_file = targets.resolve_frozen(config, findings, places, folder, forced=frozen)
    logs = _logs(config, log_path, findings, places, required=not is_frozen)
    instruction = resolve.resolve_instruction(config, findings, places)
    metric = resolve.resolve_metric(config, findings)
    labels = targets.resolve_labels(config, rubrics.targeted, findings, places, frozen=is_frozen)
    blind_labels = targets.resolve_blind_labels(config, findings, places)
    problems = [*sorted(findings.problems, key=lambda fault: fault.line or 0), *rubrics.problems]
    if problems or mode is None or rubrics.path is None:
        raise InputError(problems)
    parts = _Parts(
        name=name,
        module=module,
        mode=mode,
        rubric_file=rubrics.path,
        rubrics=rubrics,
        tests=tests,
        stages=stages,
        judges=judges,
        frozen=frozen_file,
        logs=logs,
        instruction=instruction,
        metric=metric,
        labels=labels,
        blind_labels=blind_labels,
        probes=probes,
    )
    return _suite(config, config_file, places, parts)


def _suite(config: Config, config_file: Path, places: Places, parts: _Parts) -> Suite:
    named = parts.logs[0] if parts.logs else parts.frozen
    dataset = config.admin.dataset_config.dataset_name or (named.name if named else "")
    cassettes = config.replay.cassette_dir or f"inputs/cassettes/{parts.name}"
    file = places.name(config_file)
    suite = Suite(
        name=parts.name,
        key=places.key(config_file),
        config_file=config_file,
        module_name=parts.module,
        dataset_name=dataset,
        mode=parts.mode,
        rubric_file=parts.rubric_file,
        rubrics=parts.rubrics.targeted,
        tests=parts.tests,
        judges=parts.judges,
        config=config,
        source=_source_settings(config, parts.logs or ((named,) if named else ())),
        stages=parts.stages,
        replay=ReplaySettings(places.find_or_new(cassettes), parts.frozen),
        output=_output_settings(config, places, config_file, parts.metric),
        custom_prompts_dir=places.find_or_new(f"inputs/custom_prompts/{parts.module}"),
        instruction=parts.instruction,
        untargeted=parts.rubrics.untargeted,
        labels=parts.labels,
        blind_labels=parts.blind_labels,
        probes=parts.probes,
        notices=resolve.notices(config, parts.mode, parts.rubrics.targeted, parts.judges, file),
        unused_keys=resolve.about_unused(config, file),
    )
    return replace(suite, resolved=as_resolved(config, suite, places))


def _source_settings(config: Config, logs: tuple[Path, ...]) -> SourceSettings:
    agent, synthetic = config.test_agent_perturbation_config, config.synthetic_data_params
    preprocessors = first_set(
        agent.transcript_preprocessors, agent.transcript_preprocessor, default=()
    )
    number = first_set(agent.sample_num_from_orig, synthetic.sample_num_from_orig, default=0)
    return SourceSettings(
        paths=logs,
        preprocessors=preprocessors,
        sample_num=number if number > 0 else None,
        sampling_seed=first_set(agent.sampling_seed, synthetic.seed, default=DEFAULT_SEED),
    )


def _output_settings(
    config: Config, places: Places, config_file: Path, metric: str
) -> OutputSettings:
    output = config.test_agent_perturbation_config.output
    stamp = f"_{config.admin.time_stamp}" if config.admin.time_stamp else ""
    folder = output.results_dir or f"{places.results(config_file)}{stamp}"
    return OutputSettings(
        dir=places.find_or_new(folder),
        format=resolve.resolve_format(config),
        metric=metric,
    )


def _suite_name(config_file: Path, findings: Findings) -> str:
    """Return the config file's stem, which names the cassette and output folders."""
    name = config_file.stem
    if reason := resolve.check_name(name):
        findings.add(
            (),
            f"the file's name {shown(name)} {reason}; folders are named after it",
            "rename the file",
        )
    return name


def _rubrics(
    config: Config, mode: Mode | None, override: Path | None, findings: Findings, places: Places
) -> _Rubrics:
    """Find and read the rubrics, keep the targeted ones, and give them their scales in ordinal
    mode.
    """
    if override is not None:
        path: Path | None = places.cwd / override
    elif source := resolve.rubric_source(config):
        path = _required(source, findings, places, what="the rubric file")
    else:
        path = None
        message = (
            "no rubrics are named; set rubric_path, or rubric in "
            "admin.dataset_config.default_params_path"
        )
        findings.missing((AGENT, "rubric_path"), message)
    if path is None:
        return _Rubrics()
    file = places.name(path)
    everything, problems = read_rubrics(path, file=file)
    rubrics = resolve.targeted(config, everything, findings, complete=not problems)
    untargeted = frozenset(rubric.id for rubric in everything) - {rubric.id for rubric in rubrics}
    if mode == "ordinal":
        reported = len(findings.problems)
        scale = resolve.score_range(config, findings)
        if len(findings.problems) > reported:
            # The range is there and wrong: that the other rubrics have none is no mistake of its
            # own.
            rubrics = [rubric for rubric in rubrics if rubric.score_levels]
        rubrics, more = with_scales(rubrics, scale, file=file)
        problems = [*problems, *more]
    return _Rubrics(path, tuple(rubrics), untargeted, tuple(problems))


def _logs(
    config: Config, override: Path | None, findings: Findings, places: Places, *, required: bool
) -> tuple[Path, ...]:
    """Find the logs, which may be absent where the suite is frozen."""
    if override is not None:
        path = places.cwd / override
        if required and not exists(path):
            findings.problems.append(Problem("no such log file", places.name(path)))
        return (path,)
    sources = resolve.log_sources(config)
    if not sources and required:
        message = "no log is named; set input_log_path, or dataset_name in admin.dataset_config"
        findings.missing((AGENT, "input_log_path"), message)
    logs: dict[Path, None] = {}
    for relative, key in sources:
        if not required:
            logs[places.find_or_new(without_scheme(relative))] = None
        elif not resolve.explained_by_module(key, findings):
            logs.update(dict.fromkeys(places.require_runs(relative, findings, key)))
    return tuple(logs)


def _required(
    source: tuple[str, KeyPath], findings: Findings, places: Places, *, what: str
) -> Path | None:
    relative, key = source
    return (
        None
        if resolve.explained_by_module(key, findings)
        else places.require(relative, findings, key, what=what)
    )
