"""Which model serves each stage, and which judges there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pytest_jrh.config.schema import PanelJudge
from pytest_jrh.core.documents import received, shown
from pytest_jrh.core.model import RateLimit, StageModel
from pytest_jrh.core.sections import JudgeStage, ModelDefaults, NoVerifier, StageSection
from pytest_jrh.core.stages import EDITOR, JUDGE, MAKING, PLANNER
from pytest_jrh.judges.judge import BINARY_SCORES, JudgeSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from pytest_jrh.config.schema import Config
    from pytest_jrh.core.documents import Findings, KeyPath
    from pytest_jrh.core.model import Mode
    from pytest_jrh.judges.judge import JudgeKind


SectionT = TypeVar("SectionT", bound=StageSection)

_EDITORS_MODEL: KeyPath = (EDITOR.name, "model")
_JUDGES_MODEL: KeyPath = (JUDGE.name, "model")


def resolve_stages(
    config: Config, needed: Collection[str], files: Mapping[str, Path], findings: Findings
) -> dict[str, StageModel]:
    """Fill in the stages that make cases, but for those that are off; one without a model takes
    another's model, server and timeout, and then what `models` says.
    """
    editor = config.editor
    stages: dict[str, StageModel] = {}
    for spec in MAKING:
        section = editor.stage(spec.name) or StageSection()
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
            if section.model is None:
                section = _filled(section, pattern, ("api_base", "timeout"))
            model = pattern.model
        if section.model is None:
            section = section.model_copy(update={"model": model})
        section = _filled(section, config.models, ModelDefaults.model_fields)
        if section.model is None:
            message = f"no model for the {spec.name}; set {findings.name(_EDITORS_MODEL)}"
            findings.once(_EDITORS_MODEL, message)
        stages[spec.name] = _stage(spec.name, section, files)
    return stages


def resolve_judges(
    sections: Mapping[KeyPath, JudgeStage],
    kinds: Mapping[KeyPath, JudgeKind],
    config: Config,
    mode: Mode,
    files: Mapping[str, Path],
    folders: tuple[Path, ...],
    findings: Findings,
) -> tuple[JudgeSettings, ...]:
    """Return the judges in order, a lone one without a name; `sections`, and their `kinds`, are by
    the keys of the config, that of `judge` among them.
    """
    base = config.judge
    judges: dict[str | None, JudgeSettings] = {}
    for place, entry in sections.items():
        if config.judges and entry is base:
            continue
        name = entry.name if isinstance(entry, PanelJudge) else None
        if name in judges:
            message = f"duplicate name {shown(name)}; judge names must be unique"
            findings.add((*place, "name"), message)
        kind = kinds[place]
        section = entry
        if entry is not base:
            section = _over(entry, base, is_same_kind=kind is kinds[JUDGE.name,])
        section = _filled(section, config.models, ModelDefaults.model_fields)
        if section.model is None and kind.asks_model:
            section = section.model_copy(update={"model": config.rand.judge_model})
            if section.model is None:
                message = f"no model for the judge; set {findings.name(_JUDGES_MODEL)}"
                findings.once(_JUDGES_MODEL, message)
        judges[name] = _settings(name, section, kind, files, folders)
        if section.score_map is not None:
            owner: KeyPath = ("judge",) if entry.score_map is None else place
            _check_score_map(section, kind, mode, (*owner, "score_map"), findings)
    return tuple(judges.values())


def _settings(
    name: str | None,
    section: JudgeStage,
    kind: JudgeKind,
    files: Mapping[str, Path],
    folders: tuple[Path, ...],
) -> JudgeSettings:
    """One judge, from its section and its defaults; one that runs code is sent no images."""
    stage = _stage(JUDGE.name, section, files)
    sends_images = kind.keys is None and section.images == "send"
    values = {
        "model": section.model,
        "prompt_path": stage.prompt_path,
        "show_reasoning": bool(section.show_reasoning),
        "images": "send" if sends_images else None,
        "repeats": section.repeats or 1,
    }
    if kind.behind_file:
        file, mark, function = (getattr(section, kind.key) or "").rpartition(kind.behind_file)
        if file in files:
            values[kind.key] = f"{files[file]}{mark}{function}"
    section = section.model_copy(update=values)
    return JudgeSettings(name, stage, kind.key, section, folders)


def _stage(name: str, section: StageSection, files: Mapping[str, Path]) -> StageModel:
    """A stage, or a judge, from its section."""
    values = {field: getattr(section, field) for field in StageSection.model_fields}
    values["model"] = section.model or ""
    if section.prompt_path:
        path = files.get(section.prompt_path)
        values["prompt_path"] = None if path is None else str(path)
    if limit := section.rate_limit:
        values["rate_limit"] = RateLimit(limit.calls, limit.period)
    return StageModel(stage=name, **values)


def _check_score_map(
    section: JudgeStage, kind: JudgeKind, mode: Mode, key: KeyPath, findings: Findings
) -> None:
    if kind.keys is None and section.prompt_path is None:
        message = "needs a prompt that asks for these values; the built-in one asks for scores"
        findings.add(key, message, "set prompt_path beside it")
    for value, score in (section.score_map or {}).items():
        if mode == "binary" and score not in BINARY_SCORES:
            expected = "1 (violated) or 0 (satisfied), because the suite is binary"
            findings.add((*key, value), received(score, expected))


def _over(entry: JudgeStage, base: JudgeStage, *, is_same_kind: bool) -> JudgeStage:
    """Lay a panel judge's keys over `judge`, but for a server of another model."""
    names = dict.fromkeys(JudgeStage.model_fields)
    if entry.model is not None:
        for tied in ("model", "api_base", "rate_limit"):
            del names[tied]
    if not is_same_kind:
        del names["score_map"]
    return _filled(entry, base, names)


def _filled(settings: SectionT, defaults: object, names: Iterable[str]) -> SectionT:
    """Take what is not set of these names from another."""
    unset = [name for name in names if getattr(settings, name) is None]
    return settings.model_copy(update={name: getattr(defaults, name) for name in unset})
