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
from pytest_jrh.config.fitting import Fitted, fit
from pytest_jrh.config.places import Places
from pytest_jrh.config.probes import resolve_probes
from pytest_jrh.config.rand import AGENT
from pytest_jrh.config.rubrics import read_head, read_rubrics, with_scales
from pytest_jrh.config.suite import SourceSettings, Suite
from pytest_jrh.core.documents import listed, read_document, received, shown
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.model import DEFAULT_SEED, RateLimit, StageModel
from pytest_jrh.core.sections import JudgeStage, ModelDefaults, NoVerifier, StageSection, first_set
from pytest_jrh.core.stages import EDITOR, JUDGE, MAKING, PLANNER
from pytest_jrh.judges import PYTHON, kind_of, kinds_of, stray_keys
from pytest_jrh.judges.judge import BINARY_SCORES, JudgeSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from pytest_jrh.config.schema import Config, EditorSection
    from pytest_jrh.core.documents import Findings, KeyPath
    from pytest_jrh.core.model import Mode, Rubric
    from pytest_jrh.judges.judge import JudgeKind


_SECTION = re.compile(
    rf"^[\"']?(?:cases|admin|{AGENT})[\"']?[ \t]*:"
    rf"|\A\s*\{{(?s:.*?)[\"'](?:cases|admin|{AGENT})[\"']\s*:",
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
    frozen: bool = False,
    own_judge: bool = False,
) -> Suite:
    """Read a config file and everything it names except the log's content.

    `cwd` is the folder that pytest was started in; `frozen` is the command line's wish for a frozen
    suite. With an `own_judge`, a project's code supplies the judge. Raises InputError with every
    problem of config and rubrics.
    """
    config_file = cwd / path
    fitted = fit(read_document(config_file, file=Places(cwd, rootdir, cwd).name(config_file)))
    name = _suite_name(config_file, fitted.findings)
    module = resolve.module_name(fitted.config, fitted.findings, name)
    if fitted.findings.problems:
        raise InputError(fitted.findings.problems)
    suite_section = fitted.config.suite
    inputs = (*(suite_section.log or ()), *filter(None, [suite_section.rubrics]))
    places = Places(cwd, rootdir, config_file.parent).settled(inputs)
    rubrics = _rubrics(fitted.config, fitted.findings, places)
    suite = _resolved_suite(
        config_file, module, fitted, rubrics, places, frozen=frozen, own_judge=own_judge
    )
    problems = [*sorted(fitted.findings.problems, key=_line), *rubrics.problems]
    if problems:
        raise InputError(problems)
    return _described(suite, fitted, places.name(config_file))


def _resolved_suite(
    config_file: Path,
    module: str,
    fitted: Fitted,
    rubrics: _Rubrics,
    places: Places,
    *,
    frozen: bool,
    own_judge: bool,
) -> Suite:
    config, findings, targeted = fitted.config, fitted.findings, rubrics.targeted
    # RAND's harness has a folder for each test.
    folder = None if fitted.is_rands and places.conventional else places.results(config_file)
    name = config_file.stem
    mode = resolve.mode_of(config, targeted)
    stages = resolve_stages(config, targets.stages_needed(config), findings, places)
    judges = resolve_judges(config, mode, findings, places, supplied=own_judge)
    tests = targets.resolve_tests(config, mode, targeted, findings, places, folder, module)
    probes = resolve_probes(config, targeted, mode, stages, findings, places)
    resolve.check_gate(config, mode, tests, findings)
    is_frozen, frozen_file = targets.resolve_frozen(
        config, findings, places, folder, module, forced=frozen
    )
    logs = _logs(config, findings, places, required=not is_frozen)
    sources = logs or ((frozen_file,) if frozen_file is not None else ())
    return Suite(
        name=name,
        key=places.key(config_file),
        config_file=config_file,
        module_name=module,
        dataset_name=sources[0].name if sources else "",
        mode=mode,
        rubric_file=rubrics.path or Path(),
        rubrics=targeted,
        tests=tests,
        judges=judges,
        config=config,
        source=_source_settings(config, sources),
        stages=stages,
        cassette_dir=places.find_or_new(config.recording.dir or f"inputs/cassettes/{name}"),
        results_dir=_results_dir(config, places, config_file),
        custom_prompts_dir=places.find_or_new(f"inputs/custom_prompts/{module}"),
        frozen=frozen_file,
        table_format=resolve.resolve_format(config),
        instruction=resolve.resolve_instruction(config, findings, places),
        metric=config.rand.metric,
        untargeted=rubrics.untargeted,
        labels=targets.resolve_labels(config, targeted, findings, places, frozen=is_frozen),
        blind_labels=targets.resolve_blind_labels(config, findings, places),
        probes=probes,
    )


def _line(problem: Problem) -> int:
    return problem.line or 0


def _described(suite: Suite, fitted: Fitted, file: str) -> Suite:
    """Add notices and unused keys."""
    return replace(
        suite,
        notices=resolve.notices(
            fitted.config, suite.mode, suite.rubrics, suite.judges, fitted.findings, file
        ),
        unused_keys=resolve.about_unused(fitted.unused, file),
    )


def _source_settings(config: Config, logs: tuple[Path, ...]) -> SourceSettings:
    cases = config.cases
    return SourceSettings(
        paths=logs,
        preprocessors=cases.preprocess or (),
        sample_num=cases.sample or None,
        sampling_seed=first_set(cases.seed, default=DEFAULT_SEED),
    )


def _results_dir(config: Config, places: Places, config_file: Path) -> Path:
    stamp = f"_{config.rand.stamp}" if config.rand.stamp else ""
    return places.find_or_new(config.rand.results or f"{places.results(config_file)}{stamp}")


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


def _rubrics(config: Config, findings: Findings, places: Places) -> _Rubrics:
    """Read the rubrics, keep the targeted ones, and give them scales in ordinal mode."""
    key: KeyPath = ("suite", "rubrics")
    path: Path | None = None
    if config.suite.rubrics:
        path = places.require(config.suite.rubrics, findings, key, role="the rubric file")
    else:
        findings.add(key, f"no rubrics are named; set {findings.name(key)}")
    if path is None:
        return _Rubrics()
    file = places.name(path)
    everything, problems = read_rubrics(path, file=file)
    rubrics = resolve.targeted(config, everything, findings, complete=not problems)
    untargeted = frozenset(rubric.id for rubric in everything) - {rubric.id for rubric in rubrics}
    scale = config.rand.scale
    if resolve.mode_of(config, rubrics) == "ordinal":
        ends = scale if isinstance(scale, tuple) else None
        rubrics, scale_problems = with_scales(rubrics, ends, file=file)
        problems = [*problems, *scale_problems]
    return _Rubrics(path, tuple(rubrics), untargeted, tuple(problems))


def _logs(
    config: Config, findings: Findings, places: Places, *, required: bool
) -> tuple[Path, ...]:
    """Find the logs, which may be absent where the suite is frozen."""
    key: KeyPath = ("suite", "log")
    names = config.suite.log or ()
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


SectionT = TypeVar("SectionT", bound=StageSection)


def resolve_stages(
    config: Config, needed: Collection[str], findings: Findings, places: Places
) -> dict[str, StageModel]:
    """Fill in the stages that make cases, but for those that are off; one without a model takes
    another's model, server and timeout, and then what `models` says.
    """
    editor, defaults = config.editor, config.models
    stages: dict[str, StageModel] = {}
    for spec in MAKING:
        section = _own_section(editor) if spec is EDITOR else getattr(editor, spec.name)
        section = section or StageSection()
        if spec.name not in needed or isinstance(section, NoVerifier):
            continue
        model = config.rand.cases_model
        if spec is PLANNER and section.model is None and model is None:
            section = _filled(section, editor, ("model", "api_base", "timeout"))
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


def _own_section(editor: EditorSection) -> StageSection:
    """What the section of the editor says of the editor itself."""
    values = {name: getattr(editor, name) for name in StageSection.model_fields}
    return StageSection.model_construct(**values)


def resolve_judges(
    config: Config,
    mode: Mode,
    findings: Findings,
    places: Places,
    *,
    supplied: bool = False,
) -> tuple[JudgeSettings, ...]:
    """Return the judges in order, a lone one without a name; a `supplied` one replaces them."""
    if supplied:
        return (_supplied(config, findings, places),)
    if not config.judges:
        return (_judge(config, None, config.judge, mode, findings, places, ("judge",)),)
    judges: list[JudgeSettings] = []
    for index, entry in enumerate(config.judges):
        key: KeyPath = ("judges", index)
        if entry.name in {judge.name for judge in judges}:
            findings.add(
                (*key, "name"),
                f"duplicate name {shown(entry.name)}; judge names must be unique",
            )
        judges.append(_judge(config, entry.name, entry, mode, findings, places, key))
    return tuple(judges)


def _judge(
    config: Config,
    name: str | None,
    entry: JudgeStage,
    mode: Mode,
    findings: Findings,
    places: Places,
    key: KeyPath,
) -> JudgeSettings:
    """One judge, from its section and what that leaves to others."""
    base, kind = config.judge, kind_of(entry)
    section = entry if entry is base else _over(entry, base)
    section = _with_defaults(section, config.models)
    general = base.model or config.rand.judge_model
    stage = _judge_stage(section, general, findings, places, key, kind)
    _check_keys(entry, findings, key, kind)
    _check_score_map(entry, section, mode, findings, key)
    section = _located(_resolved(section, stage, kind), findings, places, key, kind)
    return JudgeSettings(name, stage, kind.key, section, tuple(places.bases))


def _resolved(section: JudgeStage, stage: StageModel, kind: JudgeKind) -> JudgeStage:
    """Fill in what no section of a judge says; one that runs code is sent no images."""
    sends_images = kind.keys is None and section.images == "send"
    values = {
        "model": stage.model or None,
        "prompt_path": stage.prompt_path,
        "show_reasoning": first_set(section.show_reasoning, default=False),
        "images": "send" if sends_images else None,
        "repeats": first_set(section.repeats, default=1),
    }
    return section.model_copy(update=values)


def _check_score_map(
    entry: JudgeStage,
    section: JudgeStage,
    mode: Mode,
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
    if config.judges:
        message = "the hook pytest_jrh_judge supplies the judge of this suite, which is a panel"
        hint = "name the functions of a panel in the config: {name: ..., python: ...}"
        findings.add(("judges",), message, hint)
    section = _with_defaults(config.judge, config.models)
    stage = _judge_stage(section, None, findings, places, ("judge",), PYTHON)
    section = _resolved(section, stage, PYTHON)
    return JudgeSettings(None, stage, PYTHON.key, section, tuple(places.bases))


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
    """The section of a judge with the file found that its kind's key may name."""
    if not kind.behind_file:
        return section
    file, _, name = getattr(section, kind.key).rpartition(kind.behind_file)
    if not file.endswith(".py"):
        return section
    path = places.require(file, findings, (*key, kind.key), role="the judge's file")
    located = f"{path or file}{kind.behind_file}{name}"
    return section.model_copy(update={kind.key: located})


def _judge_stage(
    settings: StageSection,
    general: str | None,
    findings: Findings,
    places: Places,
    key: KeyPath,
    kind: JudgeKind,
) -> StageModel:
    model = (settings.model or general) if kind.asks_model else settings.model
    if model is None and kind.asks_model:
        of_all: KeyPath = ("judge", "model")
        findings.once(of_all, f"no model for the judge; set {findings.name(of_all)}")
    settings = settings.model_copy(update={"model": model})
    return _built(JUDGE.name, settings, findings, places, key)


def _stage(
    name: str, settings: StageSection, general: str | None, findings: Findings, places: Places
) -> StageModel:
    key: KeyPath = (name,) if name == EDITOR.name else (EDITOR.name, name)
    if settings.model is None and general is None:
        of_all: KeyPath = (EDITOR.name, "model")
        message = f"no model for the {name}; set {findings.name(of_all)}"
        findings.once(of_all, message)
    settings = settings.model_copy(update={"model": settings.model or general})
    return _built(name, settings, findings, places, key)


def _built(
    name: str, settings: StageSection, findings: Findings, places: Places, key: KeyPath
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
