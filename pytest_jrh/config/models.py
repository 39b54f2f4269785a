"""Which model serves each stage, and which judges there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pytest_jrh.core.documents import listed, received, shown
from pytest_jrh.core.model import RateLimit, StageModel
from pytest_jrh.core.sections import JudgeStage, ModelDefaults, NoVerifier, StageSection, first_set
from pytest_jrh.core.stages import EDITOR, JUDGE, MAKING, PLANNER
from pytest_jrh.judges import PYTHON, kind_of, kinds_of, stray_keys
from pytest_jrh.judges.judge import BINARY_SCORES, JudgeSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pytest_jrh.config.places import Places
    from pytest_jrh.config.schema import Config, EditorSection
    from pytest_jrh.core.documents import Findings, KeyPath
    from pytest_jrh.core.model import Mode
    from pytest_jrh.judges.judge import JudgeKind


SectionT = TypeVar("SectionT", bound=StageSection)


def resolve_stages(
    config: Config, needed: Collection[str], findings: Findings, places: Places
) -> dict[str, StageModel]:
    """Fill in the stages that make cases, but for those that are off; one without a model takes
    another's model, server and timeout, and then what `models` says.
    """
    editor = config.editor
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
        if section.model is None:
            section = section.model_copy(update={"model": model})
        section = _with_defaults(section, config.models)
        key: KeyPath = (EDITOR.name,) if spec is EDITOR else (EDITOR.name, spec.name)
        of_all: KeyPath = (EDITOR.name, "model")
        stages[spec.name] = _stage(spec.name, section, of_all, findings, places, key)
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
    if section.model is None and kind.asks_model:
        section = section.model_copy(update={"model": config.rand.judge_model})
    stage = _judge_stage(section, findings, places, key, kind)
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
    stage = _judge_stage(section, findings, places, ("judge",), PYTHON)
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
    section: JudgeStage, findings: Findings, places: Places, key: KeyPath, kind: JudgeKind
) -> StageModel:
    of_all: KeyPath = ("judge", "model")
    asks = kind.asks_model
    return _stage(JUDGE.name, section, of_all, findings, places, key, asks_model=asks)


def _stage(
    name: str,
    section: StageSection,
    of_all: KeyPath,
    findings: Findings,
    places: Places,
    key: KeyPath,
    *,
    asks_model: bool = True,
) -> StageModel:
    """A stage, or a judge, from its section; `of_all` is the key of the model of all of them."""
    if section.model is None and asks_model:
        findings.once(of_all, f"no model for the {name}; set {findings.name(of_all)}")
    values = {field: getattr(section, field) for field in StageSection.model_fields}
    values["model"] = section.model or ""
    if section.prompt_path:
        place = (*key, "prompt_path")
        path = places.require(section.prompt_path, findings, place, role="the prompt file")
        values["prompt_path"] = None if path is None else str(path)
    if limit := section.rate_limit:
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
