"""Load a suite: a config file, its rubrics and where its log is, which model serves each stage,
and which judges there are: all checked at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pytest_jrh.config import resolve
from pytest_jrh.config import tests as targets
from pytest_jrh.config.fitting import AGENT, EVALUATION, fit
from pytest_jrh.config.places import Places
from pytest_jrh.config.probes import resolve_probes
from pytest_jrh.config.rubrics import read_head, read_rubrics, with_scales
from pytest_jrh.config.suite import SourceSettings, Suite
from pytest_jrh.core.documents import listed, read_document, received, shown
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.files import exists
from pytest_jrh.core.model import DEFAULT_SEED, RateLimit, StageModel, StageName
from pytest_jrh.core.sections import JudgeStage, ModelDefaults, NoVerifier, StageSection, first_set
from pytest_jrh.core.stages import JUDGE, MAKING
from pytest_jrh.judges import SUPPLIED, kind_of, kinds_of, stray_keys
from pytest_jrh.judges.judge import BINARY_SCORES, JudgeSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from pytest_jrh.config.schema import Config, PanelJudge
    from pytest_jrh.core.documents import Findings, KeyPath
    from pytest_jrh.core.model import Mode, Rubric
    from pytest_jrh.judges.judge import JudgeKind


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
    config's own; `frozen` is the command line's wish for a frozen suite. With an `own_judge`, a
    project's code supplies the judge. Raises InputError with every problem of config and rubrics.
    """
    config_file = cwd / path
    config, findings, places = _read(config_file, Places(cwd, rootdir, config_file.parent))
    folder = None if places.conventional else places.results(config_file)
    name = _suite_name(config_file, findings)
    module = resolve.resolve_module(config, findings)
    mode = resolve.resolve_mode(config, findings)
    stages = resolve_stages(config, targets.stages_needed(config), findings, places)
    judges = resolve_judges(config, mode, findings, places, supplied=own_judge)
    rubrics = _rubrics(config, mode, rubric_file, findings, places)
    tests = targets.resolve_tests(config, mode, rubrics.targeted, findings, places, folder)
    probes = resolve_probes(config, rubrics.targeted, mode, stages, findings, places)
    resolve.check_gate(config, mode, tests, findings)
    is_frozen, frozen_file = targets.resolve_frozen(config, findings, places, folder, forced=frozen)
    logs = _logs(config, log_path, findings, places, required=not is_frozen)
    sources = logs or ((frozen_file,) if frozen_file is not None else ())
    suite = Suite(
        name=name,
        key=places.key(config_file),
        config_file=config_file,
        module_name=module,
        dataset_name=_dataset_name(config, sources),
        mode=mode or "binary",
        rubric_file=rubrics.path or Path(),
        rubrics=rubrics.targeted,
        tests=tests,
        judges=judges,
        config=config,
        source=_source_settings(config, sources),
        stages=stages,
        cassette_dir=places.find_or_new(config.replay.cassette_dir or f"inputs/cassettes/{name}"),
        results_dir=_results_dir(config, places, config_file),
        custom_prompts_dir=places.find_or_new(f"inputs/custom_prompts/{module}"),
        frozen=frozen_file,
        table_format=resolve.resolve_format(config),
        instruction=resolve.resolve_instruction(config, findings, places),
        metric=resolve.resolve_metric(config, findings),
        untargeted=rubrics.untargeted,
        labels=targets.resolve_labels(config, rubrics.targeted, findings, places, frozen=is_frozen),
        blind_labels=targets.resolve_blind_labels(config, findings, places),
        probes=probes,
    )
    return _described(suite, [*sorted(findings.problems, key=_line), *rubrics.problems], places)


def _line(problem: Problem) -> int:
    return problem.line or 0


def _read(config_file: Path, places: Places) -> tuple[Config, Findings, Places]:
    config, findings = fit(read_document(config_file, file=places.name(config_file)))
    sources = (*resolve.log_sources(config), resolve.rubric_source(config))
    places = places.settled(source[0] for source in sources if source is not None)
    resolve.check_param_files(config, findings)
    return config, findings, places


def _described(suite: Suite, problems: list[Problem], places: Places) -> Suite:
    """Add notices and unused keys; raises InputError with the problems."""
    if problems:
        raise InputError(problems)
    config, file = suite.config, places.name(suite.config_file)
    return replace(
        suite,
        notices=resolve.notices(config, suite.mode, suite.rubrics, suite.judges, file),
        unused_keys=resolve.about_unused(config, file),
    )


def _dataset_name(config: Config, logs: tuple[Path, ...]) -> str:
    first_log = logs[0].name if logs else ""
    return config.admin.dataset_config.dataset_name or first_log


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


def _results_dir(config: Config, places: Places, config_file: Path) -> Path:
    output = config.test_agent_perturbation_config.output
    stamp = f"_{config.admin.time_stamp}" if config.admin.time_stamp else ""
    return places.find_or_new(output.results_dir or f"{places.results(config_file)}{stamp}")


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
    """Read the rubrics, keep the targeted ones, and give them scales in ordinal mode."""
    if override is not None:
        path: Path | None = places.cwd / override
    elif source := resolve.rubric_source(config):
        path = _required(source, findings, places, role="the rubric file")
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
        rubrics, scale_problems = with_scales(rubrics, scale, file=file)
        problems = [*problems, *scale_problems]
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
            logs[places.find_or_new(relative)] = None
        elif not resolve.explained_by_module(key, findings):
            logs.update(dict.fromkeys(places.require_runs(relative, findings, key)))
    return tuple(logs)


def _required(
    source: tuple[str, KeyPath], findings: Findings, places: Places, *, role: str
) -> Path | None:
    relative, key = source
    if resolve.explained_by_module(key, findings):
        return None
    return places.require(relative, findings, key, role=role)


SectionT = TypeVar("SectionT", bound=StageSection)


def resolve_stages(
    config: Config, needed: Collection[StageName], findings: Findings, places: Places
) -> dict[StageName, StageModel]:
    """Fill in the stages that make cases, but for those that are off; one without a model takes
    another's model, server and timeout, and then what `models` says.
    """
    agent, defaults = config.test_agent_perturbation_config, config.models
    stages: dict[StageName, StageModel] = {}
    for spec in MAKING:
        section: StageSection = getattr(agent, spec.name) or StageSection()
        if spec.name not in needed or isinstance(section, NoVerifier):
            continue
        model = config.synthetic_data_params.generation_model_name
        pattern = stages.get(spec.model_from)
        if pattern is not None:
            if spec.settings_from_model and section == StageSection():
                section = StageSection(
                    temperature=pattern.temperature, system_prompt=pattern.system_prompt
                )
            section, model = _beside(section, pattern), pattern.model
        section = _with_defaults(section, defaults)
        stages[spec.name] = _stage(spec.name, section, model, findings, places)
    return stages


def resolve_judges(
    config: Config,
    mode: Mode | None,
    findings: Findings,
    places: Places,
    *,
    supplied: bool = False,
) -> tuple[JudgeSettings, ...]:
    """Return the judges in order, a lone one without a name; a `supplied` one replaces them."""
    evaluation = config.admin.evaluation_config
    if supplied:
        return (_supplied(config, findings, places),)
    if not evaluation.judges:
        return (_judge(config, None, config.judge, mode, findings, places, ("judge",)),)
    judges: list[JudgeSettings] = []
    for index, entry in enumerate(evaluation.judges):
        key: KeyPath = (*EVALUATION, "judges", index)
        if entry.name in {judge.name for judge in judges}:
            findings.add(
                (*key, "name"),
                f"duplicate name {shown(entry.name)}; judge names must be unique",
            )
        _check_template(entry, mode, findings, key)
        # Both have no further meaning.
        entry = entry.model_copy(update={"template": None, "preprocess_columns_map": None})  # noqa: PLW2901
        judges.append(_judge(config, entry.name, entry, mode, findings, places, key))
    return tuple(judges)


def _judge(
    config: Config,
    name: str | None,
    entry: JudgeStage,
    mode: Mode | None,
    findings: Findings,
    places: Places,
    key: KeyPath,
) -> JudgeSettings:
    """One judge, from its section and what that leaves to others."""
    base, kind = config.judge, kind_of(entry)
    section = entry if entry is base else _over(entry, base)
    section = _with_defaults(section, config.models)
    general = base.model or config.admin.evaluation_config.autograder_model_name
    stage = _judge_stage(section, general, findings, places, key, kind)
    _check_keys(entry, findings, key, kind)
    _check_score_map(entry, section, mode, findings, key)
    section = _located(_resolved(section, stage, config, kind), findings, places, key, kind)
    return JudgeSettings(name, stage, kind.key, section, tuple(places.bases))


def _resolved(
    section: JudgeStage, stage: StageModel, config: Config, kind: JudgeKind
) -> JudgeStage:
    """Fill in what no section of a judge says; one that runs code is sent no images."""
    sends_images = kind.keys is None and section.images == "send"
    values = {
        "model": stage.model or None,
        "prompt_path": stage.prompt_path,
        "show_reasoning": first_set(section.show_reasoning, default=False),
        "images": "send" if sends_images else None,
        "repeats": first_set(section.repeats, default=config.admin.evaluation_config.repeats),
    }
    return section.model_copy(update=values)


def _check_score_map(
    entry: JudgeStage,
    section: JudgeStage,
    mode: Mode | None,
    findings: Findings,
    key: KeyPath,
) -> None:
    if section.score_map is None:
        return
    where = ("judge", "score_map") if entry.score_map is None else (*key, "score_map")
    if kind_of(entry).keys is None and section.prompt_path is None:
        message = "needs a prompt that asks for these values; the built-in one asks for scores"
        findings.add(where, message, "set prompt_path beside it")
    for value, score in section.score_map.items():
        if mode == "binary" and score not in BINARY_SCORES:
            expected = "1 (violated) or 0 (satisfied), because the suite is binary"
            findings.add((*where, value), received(score, expected))


def _supplied(config: Config, findings: Findings, places: Places) -> JudgeSettings:
    if config.admin.evaluation_config.judges:
        message = "the hook pytest_jrh_judge supplies the judge of this suite, which is a panel"
        hint = "name the functions of a panel in the config: {name: ..., python: ...}"
        findings.add((*EVALUATION, "judges"), message, hint)
    section = _with_defaults(config.judge, config.models)
    stage = _judge_stage(section, None, findings, places, ("judge",), SUPPLIED)
    section = _resolved(section, stage, config, SUPPLIED)
    return JudgeSettings(None, stage, SUPPLIED.key, section, tuple(places.bases))


def _check_template(entry: PanelJudge, mode: Mode | None, findings: Findings, key: KeyPath) -> None:
    if entry.template is None or mode is None:
        return
    needed = "agent_judge" if mode == "binary" else "agent_autograder"
    if entry.template != needed:
        message = f"got {shown(entry.template)}; must be {needed}, because the suite is {mode}"
        findings.add(
            (*key, "template"), message, "leave it out: every judge takes the suite's template"
        )


def _check_keys(section: JudgeStage, findings: Findings, key: KeyPath, kind: JudgeKind) -> None:
    """Refuse keys that have no meaning for a judge of this kind."""
    kinds = kinds_of(section)
    if len(kinds) > 1:
        message = f"{listed(kinds)} are set, but a judge is one of them"
        findings.add((*key, kinds[1]), message, "leave all but one out")
    kind_text = "is a prompt" if kind.keys is None else f"has the key {kind.key}"
    for name, kinds_with in stray_keys(section).items():
        message = f"{name} has no meaning for a judge that {kind_text}"
        findings.add((*key, name), message, f"it goes with {listed(kinds_with)}")
    if kind.keys is None:
        return
    if section.prompt_path is not None:
        message = f"prompt_path has no meaning for a judge that {kind_text}"
        findings.add((*key, "prompt_path"), message, "its code writes what it asks")
    if section.images is not None:
        message = "images has a meaning for a judge that is a prompt alone"
        hint = "its code finds the images in case.messages"
        findings.add((*key, "images"), message, hint)


def _located(
    section: JudgeStage, findings: Findings, places: Places, key: KeyPath, kind: JudgeKind
) -> JudgeStage:
    """The section of a judge with its files found."""

    def find(file: str, names: tuple[str, ...]) -> str:
        path = places.require(file, findings, (*key, *names), role="the judge's file")
        return file if path is None else str(path)

    located: JudgeStage = kind.with_files(section, find)
    return located


def _judge_stage(
    settings: StageSection,
    general: str | None,
    findings: Findings,
    places: Places,
    key: KeyPath,
    kind: JudgeKind,
) -> StageModel:
    model = (settings.model or general) if kind.asks_model else settings.model
    if model is None and kind.asks_model and not findings.explained((*key, "model")):
        message = (
            "no model for the judge; set autograder_model_name in admin.evaluation_config, or "
            "judge.model"
        )
        findings.missing((*EVALUATION, "autograder_model_name"), message)
    settings = settings.model_copy(update={"model": model})
    return _built(JUDGE.name, settings, findings, places, key)


def _stage(
    name: StageName, settings: StageSection, general: str | None, findings: Findings, places: Places
) -> StageModel:
    key: KeyPath = (AGENT, name)
    if settings.model is None and general is None and not findings.explained((*key, "model")):
        message = (
            f"no model for the {name}; set {AGENT}.{name}.model, or "
            "synthetic_data_params.generation_model_name for all stages"
        )
        findings.missing(("synthetic_data_params", "generation_model_name"), message)
    settings = settings.model_copy(update={"model": settings.model or general})
    return _built(name, settings, findings, places, key)


def _built(
    name: StageName, settings: StageSection, findings: Findings, places: Places, key: KeyPath
) -> StageModel:
    values = {name: getattr(settings, name) for name in StageSection.model_fields}
    values["model"] = settings.model or ""
    if settings.prompt_path:
        path = places.require(
            settings.prompt_path, findings, (*key, "prompt_path"), role="the prompt file"
        )
        values["prompt_path"] = None if path is None else str(path)
    if limit := settings.rate_limit:
        values["rate_limit"] = RateLimit(limit.calls, limit.period)
    return StageModel(stage=name, **values)


def _beside(settings: StageSection, pattern: StageModel) -> StageSection:
    """Return the settings of a stage that uses another's model unless it names its own."""
    if settings.model is not None:
        return settings
    return _filled(settings, pattern, ("api_base", "timeout"))


def _with_defaults(settings: SectionT, defaults: ModelDefaults) -> SectionT:
    """Fill in what a stage leaves to the section `models`."""
    return _filled(settings, defaults, ModelDefaults.model_fields)


def _over(entry: JudgeStage, base: JudgeStage) -> JudgeStage:
    """Lay a panel judge's keys over `judge`, but for a server of another model."""
    names = dict.fromkeys(JudgeStage.model_fields)
    if entry.model is not None:
        for tied in ("model", "api_base", "rate_limit"):
            del names[tied]
    if kind_of(entry) is not kind_of(base):
        del names["score_map"]
    return _filled(entry, base, names)


def _filled(settings: SectionT, defaults: object, names: Iterable[str]) -> SectionT:
    """Take what is not set of these names from another."""
    values = {
        name: first_set(getattr(settings, name), default=getattr(defaults, name)) for name in names
    }
    return settings.model_copy(update=values)
