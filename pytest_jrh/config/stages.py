"""Which model serves each stage, and which judges there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pytest_jrh.config.fitting import AGENT, EVALUATION
from pytest_jrh.core.documents import listed, received, shown
from pytest_jrh.core.model import RateLimit, StageModel, StageName
from pytest_jrh.core.sections import JudgeStage, ModelDefaults, NoVerifier, StageSection, first_set
from pytest_jrh.core.stages import JUDGE, MAKING
from pytest_jrh.judges import SUPPLIED, kind_of, kinds_of, stray_keys
from pytest_jrh.judges.judge import BINARY_SCORES, JudgeSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pytest_jrh.config.places import Places
    from pytest_jrh.config.schema import Config, PanelJudge
    from pytest_jrh.core.documents import Findings, KeyPath
    from pytest_jrh.core.model import Mode
    from pytest_jrh.judges.judge import JudgeKind

SectionT = TypeVar("SectionT", bound=StageSection)


def resolve_stages(
    config: Config, needed: Collection[StageName], findings: Findings, places: Places
) -> dict[StageName, StageModel]:
    """Fill in the stages that are needed to make cases; one that is off is missing.

    A stage without a model takes that of the stage which it falls back on, and with it the server
    and the timeout. What no stage sets comes from the section `models`.
    """
    agent, defaults = config.test_agent_perturbation_config, config.models
    stages: dict[StageName, StageModel] = {}
    for spec in MAKING:
        section: StageSection = getattr(agent, spec.name) or StageSection()
        if spec.name not in needed or isinstance(section, NoVerifier):
            continue
        model = config.synthetic_data_params.generation_model_name
        other = stages.get(spec.model_from)
        if other is not None:
            if spec.settings_from_model and section == StageSection():
                section = StageSection(
                    temperature=other.temperature, system_prompt=other.system_prompt
                )
            section, model = _beside(section, other), other.model
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
    """Return the judges in the order of the config; a lone judge has no name.

    A `supplied` judge, which is code, takes the place of the config's own.

    Members of a panel take from the section `judge` what they do not set themselves.
    """
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
    """Fill in what no section of a judge says.

    A judge that runs code has the messages, and is sent no images.
    """
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
    several = kinds_of(section)
    if len(several) > 1:
        message = f"{listed(several)} are set, but a judge is one of them"
        findings.add((*key, several[1]), message, "leave all but one out")
    what = "is a prompt" if kind.keys is None else f"has the key {kind.key}"
    for name, others in stray_keys(section).items():
        message = f"{name} has no meaning for a judge that {what}"
        findings.add((*key, name), message, f"it goes with {listed(others)}")
    if kind.keys is None:
        return
    if section.prompt_path is not None:
        message = f"prompt_path has no meaning for a judge that {what}"
        findings.add((*key, "prompt_path"), message, "its code writes what it asks")
    if section.images is not None:
        message = "images has a meaning for a judge that is a prompt alone"
        findings.add((*key, "images"), message, "its code finds the images in case.messages")


def _located(
    section: JudgeStage, findings: Findings, places: Places, key: KeyPath, kind: JudgeKind
) -> JudgeStage:
    """The section of a judge with its files found."""

    def find(file: str, names: tuple[str, ...]) -> str:
        path = places.require(file, findings, (*key, *names), what="the judge's file")
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
    return _built(JUDGE.name, settings, model or "", findings, places=places, key=key)


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
    return _built(name, settings, settings.model or general or "", findings, places=places, key=key)


def _built(
    name: StageName,
    settings: StageSection,
    model: str,
    findings: Findings,
    *,
    places: Places,
    key: KeyPath,
) -> StageModel:
    values = {name: getattr(settings, name) for name in StageSection.model_fields}
    if settings.prompt_path:
        path = places.require(
            settings.prompt_path, findings, (*key, "prompt_path"), what="the prompt file"
        )
        values["prompt_path"] = None if path is None else str(path)
    if limit := settings.rate_limit:
        values["rate_limit"] = RateLimit(limit.calls, limit.period)
    return StageModel(stage=name, **{**values, "model": model})


def _beside(settings: StageSection, other: StageModel) -> StageSection:
    """Return the settings of a stage that uses another's model unless it names its own."""
    if settings.model is not None:
        return settings
    return _filled(settings, other, ("api_base", "timeout"))


def _with_defaults(settings: SectionT, defaults: ModelDefaults) -> SectionT:
    """Fill in what a stage leaves to the section `models`."""
    return _filled(settings, defaults, ModelDefaults.model_fields)


def _over(entry: JudgeStage, base: JudgeStage) -> JudgeStage:
    """Lay what a panel judge sets over what the section `judge` says.

    A server belongs to its model, and a map of values to judges of its kind.
    """
    names = dict.fromkeys(JudgeStage.model_fields)
    if entry.model is not None:
        for tied in ("model", "api_base", "rate_limit"):
            del names[tied]
    if kind_of(entry) is not kind_of(base):
        del names["score_map"]
    return _filled(entry, base, names)


def _filled(settings: SectionT, other: object, names: Iterable[str]) -> SectionT:
    """Take what is not set of these names from another."""
    values = {
        name: first_set(getattr(settings, name), default=getattr(other, name)) for name in names
    }
    return settings.model_copy(update=values)
