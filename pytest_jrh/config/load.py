"""Load a suite in one pass: a config file, the files that it names, and what comes of them.

A config is converted and fitted, and its files are found; then each part of the suite is made of
the values that it takes. What is wrong is gathered on the way, and raised at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.tests import KINDS
from pytest_jrh.config.fitting import fit
from pytest_jrh.config.places import Places
from pytest_jrh.config.probes import resolve_probes
from pytest_jrh.config.rand import AGENT
from pytest_jrh.config.rubrics import read_head, suite_rubrics
from pytest_jrh.config.schema import LABEL_SOURCES, CasesSection, Config, LabelSection, PanelJudge
from pytest_jrh.config.suite import Suite, SuiteTest
from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.documents import (
    Findings,
    KeyPath,
    dotted,
    listed,
    read_document,
    read_text,
    received,
    shown,
)
from pytest_jrh.core.errors import InputError, collecting
from pytest_jrh.core.ids import CASES_FILE
from pytest_jrh.core.runs import Rubric
from pytest_jrh.core.scales import BINARY, Mode
from pytest_jrh.core.sections import JudgeStage, ModelDefaults, NoVerifier, StageSection
from pytest_jrh.core.stages import EDITOR, JUDGE, MAKING, PLANNER
from pytest_jrh.core.text import nearest_hint
from pytest_jrh.judges import code_file, kind_of, misplaced_keys
from pytest_jrh.judges.judge import JudgeKind, JudgeSettings
from pytest_jrh.judges.python import PYTHON

OUR_METRICS = ("accuracy_score", "balanced_accuracy_score", "cohen_kappa_score", "f1_score")

SectionT = TypeVar("SectionT", bound=StageSection)
_KINDS: KeyPath = ("cases", "kinds")
_EDITORS_MODEL: KeyPath = (EDITOR.name, "model")
_JUDGES_MODEL: KeyPath = (JUDGE.name, "model")
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
    config, converted = fit(read_document(config_file, file=file))
    findings = converted.findings
    inputs = (*config.suite.log, *filter(None, [config.suite.rubrics]))
    places = Places(cwd, rootdir, config_file.parent).settled(inputs)
    name = config_file.stem
    module = config.rand.module or name
    kinds = tuple(dict.fromkeys(config.cases.kinds))
    results = places.results(config_file)
    # RAND's harness has a folder for each test.
    folder = None if converted.is_rands and places.conventional else results
    folders = _case_folders(kinds, config.output.dir or folder, module)
    is_frozen = bool(config.cases.frozen) or frozen
    is_labelled = not is_frozen and any(KINDS[kind].natural for kind in kinds)
    frozen_name = _frozen_name(config.cases, folders, findings) if is_frozen else None
    frozen_file = places.require(frozen_name, findings, ("cases", "frozen"), "the frozen suite")
    logs = places.logs(config.suite.log, findings, required=not is_frozen)
    if frozen_file is not None and not logs:
        logs = (frozen_file,)
    instruction, key = config.rand.instruction or "", ("rand", "instruction_path")
    note = places.require(config.rand.instruction_path, findings, key, "the instruction file")
    if note is not None:
        with collecting(findings.problems):
            instruction = read_text(note, places.name(note))
    key = ("suite", "rubrics")
    rubric_file = places.require(config.suite.rubrics, findings, key, "the rubric file")
    mode, rubrics, rubric_ids, of_rubrics = suite_rubrics(
        rubric_file,
        places.name(rubric_file or Path()),
        config.cases.rubrics,
        config.rand.scale,
    )
    stages = _stages(config, kinds, places, findings)
    judges = _judges(config, mode, places, findings, own_judge=own_judge)
    probes = resolve_probes(config, kinds, mode, findings)
    tests, judged = [], config.rand.judged
    for kind in kinds:
        test = SuiteTest(
            name=kind,
            objective=KINDS[kind].objective(config.rand.objective),
            output_dir=places.find_or_new(folders[kind]),
            evaluate=not judged or kind in judged or KINDS[kind].derived,
            targets=_targets(kind, config.cases.scores, rubrics),
        )
        tests.append(test)
    labels = () if is_frozen else _labels(config.labels, places, findings)
    key, role = ("blind", "labels"), "the file of blind labels"
    blind_labels = places.require(config.blind.labels, findings, key, role)
    _check(config, mode, rubrics, findings, is_labelled=is_labelled, own_judge=own_judge)
    known_ids = () if of_rubrics else rubric_ids
    _check_ids(labels, config.cases.rubrics, rubrics, known_ids, findings)
    found = [*sorted(findings.problems, key=lambda problem: problem.line or 0), *of_rubrics]
    if found:
        raise InputError(found)
    stamp = f"_{config.rand.stamp}" if config.rand.stamp else ""
    return Suite(
        name=name,
        key=places.key(config_file),
        config_file=config_file,
        module_name=module,
        mode=mode,
        rubrics=rubrics,
        tests=tuple(tests),
        judges=judges,
        config=config,
        logs=logs,
        stages=stages,
        cassette_dir=places.find_or_new(config.recording.dir or f"inputs/cassettes/{name}"),
        results_dir=places.find_or_new(config.rand.results or f"{results}{stamp}"),
        custom_prompts_dir=places.find_or_new(f"inputs/custom_prompts/{module}"),
        frozen=frozen_file,
        instruction=instruction.strip(),
        untargeted=frozenset(rubric_ids) - {rubric.id for rubric in rubrics},
        labels=labels,
        blind_labels=blind_labels,
        probes=probes,
        notices=_notices(config, mode, findings, converted.unused),
    )


def _case_folders(kinds: Sequence[str], folder: str | None, module: str) -> dict[str, str]:
    """The folder of each test's cases: `folder`, else RAND's default of the test.

    A probe has none of its own, and keeps no cases: it has that of the first other test.
    """
    makers = [kind for kind in kinds if not KINDS[kind].derived]
    folders = {}
    for kind in kinds:
        maker = makers[0] if makers and KINDS[kind].derived else kind
        folders[kind] = folder or KINDS[maker].folder(module)
    return folders


def _stages_needed(kinds: Sequence[str]) -> frozenset[str]:
    """The stages that make cases: none for natural runs, of a probe those that it asks."""
    if not kinds or any(KINDS[name].is_made for name in kinds):
        return frozenset(stage.name for stage in MAKING)
    stages: set[str] = set()
    for name in kinds:
        if name in PROBES:
            stages.update(PROBES[name].calls)
    return frozenset(stages)


def _frozen_name(cases: CasesSection, folders: Mapping[str, str], findings: Findings) -> str | None:
    """The JSONL that the cases of a frozen suite come from, as the config says or implies it."""
    if isinstance(cases.frozen, str):
        return cases.frozen
    makers = dict.fromkeys(folders[kind] for kind in cases.kinds if not KINDS[kind].derived)
    if len(makers) > 1:
        message = (
            f"the tests keep their cases in different folders ({listed(makers)}), so the "
            "frozen file is not one"
        )
        hint = f"set {findings.name(('output', 'dir'))}, or give the path of the file"
        findings.add(("cases", "frozen"), message, hint)
        return None
    return next((f"{folder}/{CASES_FILE}" for folder in makers), None)


def _stages(
    config: Config, kinds: Sequence[str], places: Places, findings: Findings
) -> dict[str, StageModel]:
    """Fill in the stages that make cases, but for those that are off; one without a model takes
    another's model, server and timeout, and then what `models` says.
    """
    editor, needed = config.editor, _stages_needed(kinds)
    stages: dict[str, StageModel] = {}
    for spec in MAKING:
        section = editor.stage(spec.name) or StageSection()
        if spec.name not in needed or isinstance(section, NoVerifier):
            continue
        # Its server and time-out belong to a model, and to a summary that says nothing all else.
        names = ["model", "api_base", "timeout"]
        if spec.settings_from_model and section == StageSection():
            names += ["temperature", "system_prompt"]
        source: object = stages.get(spec.model_from)
        if spec is PLANNER and config.rand.cases_model is None:
            source = editor
        if source is not None and section.model is None:
            section = _filled(section, source, names)
        if section.model is None:
            section = section.model_copy(update={"model": config.rand.cases_model})
        section = _filled(section, config.models, ModelDefaults.model_fields)
        if section.model is None:
            message = f"no model for the {spec.name}; set {findings.name(_EDITORS_MODEL)}"
            findings.once(_EDITORS_MODEL, message)
        place: KeyPath = (EDITOR.name,) if spec is EDITOR else (EDITOR.name, spec.name)
        stages[spec.name] = _stage(spec.name, section, place, places, findings)
    return stages


def _judges(
    config: Config, mode: Mode, places: Places, findings: Findings, *, own_judge: bool
) -> tuple[JudgeSettings, ...]:
    """The judges in order, a lone one without a name; those of a panel take over from `judge` what
    they do not set.
    """
    base = config.judge
    base_place: KeyPath = (JUDGE.name,)
    base_kind = PYTHON if own_judge else kind_of(base)
    sections: dict[KeyPath, JudgeStage] = {}
    for index, panel_judge in enumerate(config.judges):
        sections["judges", index] = panel_judge
    judges: dict[str | None, JudgeSettings] = {}
    for place, entry in (sections or {base_place: base}).items():
        name = entry.name if isinstance(entry, PanelJudge) else None
        if name in judges:
            message = f"duplicate name {shown(name)}; judge names must be unique"
            findings.add((*place, "name"), message)
        kind, section = PYTHON if own_judge else kind_of(entry), entry
        if entry is not base:
            # A server is that of a model, and a map that of the values of a kind of judge.
            tied = set() if entry.model is None else {"model", "api_base", "rate_limit"}
            tied |= set() if kind is base_kind else {"score_map", "threshold"}
            section = _filled(entry, base, JudgeStage.model_fields.keys() - tied)
        section = _filled(section, config.models, ModelDefaults.model_fields)
        if section.model is None and kind.asks_model:
            section = section.model_copy(update={"model": config.rand.judge_model})
            if section.model is None:
                message = f"no model for the judge; set {findings.name(_JUDGES_MODEL)}"
                findings.once(_JUDGES_MODEL, message)
        if section.score_map is not None:
            owner = base_place if entry.score_map is None else place
            _check_score_map(section, kind, mode, (*owner, "score_map"), findings)
        has_use = kind.keys is not None and mode == "binary" and not section.score_map
        if section.threshold is not None and not has_use:
            message = "is for code that judges a binary suite, without score_map"
            findings.add((*place, "threshold"), message)
        owner = base_place if entry.prompt_path is None else place
        stage = _stage(JUDGE.name, section, owner, places, findings)
        values: dict[str, Any] = {
            "prompt_path": stage.prompt_path,
            # One that runs code is sent no images.
            "images": section.images if kind.keys is None else None,
        }
        if not own_judge:
            for key, message, hint in misplaced_keys(entry, kind):
                findings.add((*place, key), message, hint)
            if (code := code_file(entry, kind)) is not None:
                path = places.require(code, findings, (*place, kind.key), "the judge's file")
                values[kind.key] = f"{path}{getattr(entry, kind.key).removeprefix(code)}"
        section = section.model_copy(update=values)
        judges[name] = JudgeSettings(name, stage, kind.key, section, tuple(places.bases))
    return tuple(judges.values())


def _stage(
    name: str, section: StageSection, place: KeyPath, places: Places, findings: Findings
) -> StageModel:
    """A stage, or a judge, from its section at a place."""
    values = {field: getattr(section, field) for field in StageSection.model_fields}
    values["model"] = section.model or ""
    key = (*place, "prompt_path")
    path = places.require(section.prompt_path, findings, key, "the prompt file")
    values["prompt_path"] = None if path is None else str(path)
    return StageModel(stage=name, **values)


def _check_score_map(
    section: JudgeStage, kind: JudgeKind, mode: Mode, key: KeyPath, findings: Findings
) -> None:
    if kind.keys is None and section.prompt_path is None:
        message = "needs a prompt that asks for these values; the built-in one asks for scores"
        findings.add(key, message, "set prompt_path beside it")
    for value, score in (section.score_map or {}).items():
        if mode == "binary" and score not in BINARY.scores:
            expected = "1 (violated) or 0 (satisfied), because the suite is binary"
            findings.add((*key, value), received(score, expected))


def _filled(settings: SectionT, defaults: object, names: Iterable[str]) -> SectionT:
    """Take what is not set of these names from another."""
    unset = [name for name in names if getattr(settings, name) is None]
    return settings.model_copy(update={name: getattr(defaults, name) for name in unset})


def _targets(
    kind: str, scores: Sequence[int], rubrics: Sequence[Rubric]
) -> dict[str, tuple[int | None, ...]]:
    """The scores that a test's cases are made for, by rubric id."""
    return {rubric.id: KINDS[kind].targets(rubric.scale, scores) for rubric in rubrics}


def _labels(
    sections: Sequence[LabelSection], places: Places, findings: Findings
) -> tuple[LabelSection, ...]:
    """The sources of labels with their files located."""
    labels = []
    for index, section in enumerate(sections):
        key: KeyPath = ("labels", index)
        sources = [name for name in LABEL_SOURCES if getattr(section, name) is not None]
        if len(sources) != 1:
            mistake = f"has {listed(sources)}" if sources else "says not where the labels are"
            findings.add(key, f"{mistake}; must have one of {listed(LABEL_SOURCES)}")
        path = places.require(section.path, findings, (*key, "path"), "the label file")
        located = None if path is None else str(path)
        labels.append(section.model_copy(update={"path": located}))
    return tuple(labels)


def _check(
    config: Config,
    mode: Mode,
    rubrics: Sequence[Rubric],
    findings: Findings,
    *,
    is_labelled: bool,
    own_judge: bool,
) -> None:
    """Refuse what is missing, and keys that do not go with each other, such as a limit of recall
    for a scale.
    """
    kinds, key_of_kinds = config.cases.kinds, findings.name(_KINDS)
    key: KeyPath = ("suite", "rubrics")
    if not config.suite.rubrics:
        findings.add(key, f"no rubrics are named; set {findings.name(key)}")
    if not kinds:
        names = map(findings.kind, KINDS)
        findings.add(_KINDS, f"no test is to be run; must be a list of {' and '.join(names)}")
    for rubric in rubrics if mode == "ordinal" else ():
        outside = [str(score) for score in config.cases.scores if score not in rubric.scale.scores]
        if rubric.score_levels and outside:
            message = (
                f"got {listed(outside, 8)}; the scores of the rubric "
                f"{shown(rubric.id)} go from {rubric.scale.scores[0]} to {rubric.scale.scores[-1]}"
            )
            findings.add(("cases", "scores"), message)
    if is_labelled and not config.labels:
        natural = [kind for kind in kinds if KINDS[kind].natural]
        message = (
            f"is missing, and {listed(natural)} is in {key_of_kinds}; must be a mapping "
            "with path (a CSV or JSON lines file), scorer or metadata (of the log)"
        )
        findings.add(("labels",), message)
    if own_judge and config.judges:
        message = "the hook pytest_jrh_judge supplies the judge of this suite, which is a panel"
        hint = "name the functions of a panel in the config: {name: ..., python: ...}"
        findings.add(("judges",), message, hint)
    gate = config.gate
    # The gate would pass without what its rules are about.
    needed_by: dict[KeyPath, str] = {("gate", "probes", probe): probe for probe in gate.probes}
    for index, kind in enumerate(config.rand.judged):
        needed_by["rand", "judged", index] = kind
    for key, kind in needed_by.items():
        if kinds and kind not in kinds:
            name, of_suite = findings.kind(kind), listed(map(findings.kind, kinds))
            message = f"got {shown(name)}, which is not in {key_of_kinds} ({of_suite})"
            findings.add(key, message, f"add {name} to {key_of_kinds}")
    limits, needed, instead = ["max_error"], "ordinal", "set gate.min_accuracy"
    if mode == "ordinal":
        limits, needed, instead = ["min_recall", "max_false_alarms"], "binary", "set gate.max_error"
    for limit in limits:
        if getattr(gate, limit) is not None:
            message = f"is about {needed} judges, and this suite is {mode}"
            findings.add(("gate", limit), message, instead)


def _check_ids(
    labels: Sequence[LabelSection],
    targeted: Sequence[str],
    rubrics: Sequence[Rubric],
    known_ids: Sequence[str],
    findings: Findings,
) -> None:
    """Refuse ids of rubrics that are not there: `known_ids` are those of the rubric file, empty
    where it has mistakes.
    """

    def check(key: KeyPath, rubric_id: str, choices: Sequence[str], noun: str) -> None:
        if choices and rubric_id not in choices:
            message = f"got {shown(rubric_id)}; the {noun} are {listed(choices)}"
            findings.add(key, message, nearest_hint(rubric_id, choices, "id"))

    ids = [rubric.id for rubric in rubrics]
    for index, rubric_id in enumerate(targeted):
        check(("cases", "rubrics", index), rubric_id.strip(), known_ids, "ids in the rubric file")
    for index, section in enumerate(labels):
        key: KeyPath = ("labels", index, "rubric_id")
        if section.rubric_id is not None:
            check(key, section.rubric_id, ids, "suite's rubrics")
        elif section.source != "path" and len(ids) > 1:
            message = f"is missing; must be the rubric that these labels are about: {listed(ids)}"
            findings.add(key, message)


def _notices(
    config: Config, mode: Mode, findings: Findings, unused: Sequence[KeyPath]
) -> tuple[str, ...]:
    """Say once what a config asks for that is not done."""
    kinds, key_of_kinds = config.cases.kinds, findings.name(_KINDS)
    sentences = []
    if unused:
        sentences.append(f"not used by agentic tests: {', '.join(map(dotted, unused))}")
    for probe in config.probes:
        if probe not in kinds:
            sentences.append(f"probes.{probe} has no effect: {probe} is not in {key_of_kinds}")
    if mode == "binary" and config.cases.scores:
        scores = findings.name(("cases", "scores"))
        sentences.append(f"{scores} has no effect in a binary suite")
    if mode == "ordinal" and any(section.unlabelled for section in config.labels):
        sentences.append("labels.unlabelled has no effect in an ordinal suite")
    if config.rand.table == "xlsx":
        table = findings.name(("rand", "table"))
        sentences.append(f"{table} is xlsx; tables are CSV, which spreadsheets open, too")
    metric = config.rand.metric
    if metric not in OUR_METRICS and find_spec("sklearn") is None:
        sentences.append(
            f"metric is {metric}, but scikit-learn is not installed, so it is not computed "
            "(pip install 'pytest-jrh[sklearn]')"
        )
    return tuple(f"{findings.document.file}: {sentence}" for sentence in sentences)
