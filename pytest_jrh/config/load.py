"""Load a suite in one pass: a config file, the files that it names, and what comes of them.

A config is converted and fitted, and its files are found and read; then the suite is made of both,
and checked as a whole. What is wrong is gathered on the way, and raised at the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.probes.probe import ProbeSettings
from pytest_jrh.cases.probes.swap import SWAP
from pytest_jrh.cases.tests import BASES, BY_KEY, KINDS, LABELS, PERTURBATION
from pytest_jrh.config.rand import AGENT, KINDS_KEY, Converted, convert, question
from pytest_jrh.config.rubrics import suite_rubrics
from pytest_jrh.config.schema import LABEL_SOURCES, Config, LabelSection, ProbeSection, misfits
from pytest_jrh.config.suite import LOG, Places, Suite, SuiteTest, chosen
from pytest_jrh.core import (
    InputError,
    Json,
    Problem,
    collecting,
    listed,
    nearest_hint,
    received,
    relative_path,
    shown,
)
from pytest_jrh.core.calls import EDITOR, JUDGE, PLANNER, PromptsOf, StageModel
from pytest_jrh.core.cases import Rubric
from pytest_jrh.core.documents import Document, KeyPath, Mistake, dotted, read_document, read_text
from pytest_jrh.core.files import read_head
from pytest_jrh.core.ids import CASES_FILE
from pytest_jrh.core.scales import Mode, Said
from pytest_jrh.core.sections import JudgeStage, ModelDefaults, StageSection
from pytest_jrh.judges import JudgeEntry, judge_entries, kind_of, misplaced_keys
from pytest_jrh.judges.judge import PROMPT, JudgeSettings

# Text even where YAML reads a number: names and time stamps.
_AS_WRITTEN = (("admin", "time_stamp"), (AGENT, "target_rubric_ids"), ("cases", "rubrics"))
OUR_METRICS = ("accuracy_score", "balanced_accuracy_score", "cohen_kappa_score", "f1_score")

SectionT = TypeVar("SectionT", bound=StageSection)
_NOTE: KeyPath = ("rand", "instruction_path")
_RUBRICS: KeyPath = ("suite", "rubrics")
_BLIND_LABELS: KeyPath = ("blind", "labels")
_EDITORS_MODEL: KeyPath = (EDITOR.name, "model")
_JUDGES_MODEL: KeyPath = (JUDGE.name, "model")
_SECTION = (
    rf"(?m)^[\"']?(?:cases|admin|{AGENT})[\"']?[ \t]*:"
    rf"|\A\s*\{{(?s:.*?)[\"'](?:cases|admin|{AGENT})[\"']\s*:"
)


def looks_like_suite(path: Path) -> bool:
    """Whether the beginning of a file looks like a suite's config; reads 64 kB and never raises."""
    return re.search(_SECTION, read_head(path)) is not None


def fit(document: Document) -> tuple[Config, Converted]:
    """Return the config, and how it was converted; raises InputError with all that does not fit."""
    if not isinstance(document.data, dict):
        raise InputError(
            [
                *document.problems,
                Problem(
                    f"got {shown(document.data)}; must be a mapping with the section `suite`",
                    document.file,
                    1,
                ),
            ]
        )
    converted = convert(_as_written(document))
    config = None
    try:
        config = Config.model_validate(converted.data)
    except ValidationError as error:
        converted.mistakes += misfits(error, Config, (), converted.name)
    problems = [
        *document.problems,
        *document.problems_of(converted.mistakes, converted.written_key),
    ]
    if config is None or problems:
        raise InputError(sorted(problems, key=lambda problem: problem.line or 0))
    return config, converted


def _as_written(document: Document) -> Json:
    """Copy the data, so that names and time stamps are text even where YAML reads a number."""
    # Without shared parts: YAML's aliases give one object in several places.
    data: Json = json.loads(json.dumps(document.data, default=str))
    for path, text in document.texts.items():
        if path[:2] in _AS_WRITTEN:
            parent: Any = data
            for part in path[:-1]:
                parent = parent[part]
            parent[path[-1]] = text
    return data


def load_suite(
    path: Path, *, cwd: Path, rootdir: Path, frozen: bool = False, own_judge: bool = False
) -> Suite:
    """Read a config file and everything it names except the log's content.

    `cwd` is the folder that pytest was started in; `frozen` is the command line's wish for a frozen
    suite. With an `own_judge`, a project's code supplies the judge. Raises InputError with every
    problem of config and rubrics.
    """
    config_file = cwd / path
    document = read_document(config_file, str(relative_path(config_file, cwd)))
    config, converted = fit(document)
    mistakes, problems = converted.mistakes, list[Problem]()
    inputs = (*config.suite.log, *filter(None, [config.suite.rubrics]))
    places = Places(cwd, rootdir, config_file, mistakes).settled(inputs)

    # The rubrics, and the note to the judge.
    instruction = config.rand.instruction or ""
    note = places.file(_NOTE, config.rand.instruction_path, "the instruction file")
    if note is not None:
        with collecting(problems):
            instruction = read_text(note, places.name(note))
    rubric_document, of_rubrics = None, list[Problem]()
    rubric_file = places.file(_RUBRICS, config.suite.rubrics, "the rubric file")
    if rubric_file is not None:
        with collecting(of_rubrics):
            read = question(instruction) if config.rand.tests else read_document
            rubric_document = read(rubric_file, places.name(rubric_file))
    orders = 0
    if config.suite.of == "pairs":
        orders = 1 + (config.judge.orders == "both")
    mode, rubrics, rubric_ids, problems_of_rubrics = suite_rubrics(
        rubric_document,
        str(rubric_file),
        config.cases.rubrics,
        config.rand.scale,
        config.suite.within,
        config.suite.answers,
        orders,
    )
    of_rubrics += problems_of_rubrics
    probes = _probes(config, mode, converted)
    for rubric in rubrics:
        for name in {*rubric.skips}.difference(PROBES, config.cases.probes):
            message = received(name, f"a probe ({listed([*PROBES, *config.cases.probes])})")
            file = places.name(Path(rubric.file))
            of_rubrics.append(Problem(message, file, rubric.line, "probes.skip"))

    # Where its cases are.
    is_frozen = bool(config.cases.frozen) or frozen
    folders = places.case_folders(config, is_rands=converted.is_rands)
    logs, frozen_file = places.logs(config.suite.log, required=not is_frozen), None
    if is_frozen:
        frozen_file = _frozen_file(config, places, folders.values(), converted)
    if not logs and frozen_file is not None:
        logs = (frozen_file,)

    # What the config says about all of it, and what in that does not go together.
    entries = judge_entries(config.judge, config.judges, own_judge=own_judge)
    name = config_file.stem
    module = config.rand.module or name
    stamp = f"_{config.rand.stamp}" if config.rand.stamp else ""
    suite = Suite(
        name=name,
        key=places.key,
        config_file=config_file,
        module_name=module,
        mode=mode,
        rubrics=rubrics,
        tests=_tests(config, rubrics, places, folders),
        judges=_judges(config, entries, places, rubrics),
        config=config,
        logs=logs,
        stages=_stages(config, places),
        cassette_dir=places.find_or_new(config.recording.dir or f"inputs/cassettes/{name}"),
        results_dir=places.find_or_new(config.rand.results or places.results + stamp),
        custom_prompts_dir=places.find_or_new(f"inputs/custom_prompts/{module}"),
        frozen=frozen_file,
        instruction="" if config.rand.tests else instruction.strip(),
        untargeted=frozenset(rubric_ids) - {rubric.id for rubric in rubrics},
        labels=() if is_frozen else _labels(config, places),
        blind_labels=places.file(_BLIND_LABELS, config.blind.labels, "the file of blind labels"),
        probes=probes,
        notices=_notices(config, mode, rubrics, converted, document.file),
    )
    mistakes += _check_judges(suite, entries, converted, own_judge=own_judge)
    mistakes += _check_sections(suite, converted, is_frozen=is_frozen)
    mistakes += _check_labels(suite, () if of_rubrics else rubric_ids)
    problems += document.problems_of(mistakes, converted.written_key)
    problems.sort(key=lambda problem: problem.line or 0)
    problems += of_rubrics
    if problems:
        raise InputError(problems)
    return suite


def _probes(config: Config, mode: Mode, converted: Converted) -> dict[str, ProbeSettings]:
    """Return the settings of the probes that run; one without possible cases is refused."""
    all_settings = {}
    kinds, texts = config.tests, config.cases.probes
    for index, name in enumerate(dict.fromkeys(kinds)):
        if name in texts and (name in KINDS or name in BY_KEY):
            message = f"{shown(name)} is already the name of a built-in test"
            converted.mistakes.add(("cases", "probes", name), message, "choose another name")
            continue
        if not KINDS[name].derived:
            continue
        probe = PROBES[name]
        key: KeyPath = (*KINDS_KEY, index)
        place: KeyPath = ("probes", name)
        section = texts.get(name) or config.probes.get(name, ProbeSection.model_construct())
        if name in texts:
            key = place = ("cases", "probes", name)
        changeable = []
        for test in BASES:
            can_violate = KINDS[test].objective(config.rand.objective) == "fail"
            if probe.changes == "edited":
                can_violate = can_violate and KINDS[test].is_made
            if can_violate or probe.changes == "all":
                changeable.append(test)
        bases = [test for test in kinds if test in changeable]
        if not bases:
            message = f"{shown(name)} has no cases to change: there is no {_CHANGES[probe.changes]}"
            hint = f"add the test {' or '.join(shown(converted.kind(test)) for test in changeable)}"
            converted.mistakes.add(key, message, hint)
        elif mode != "binary" and (probe.binary_only or section.variants == ("flip",)):
            called = "ordinal" if mode == "ordinal" else "of classes"
            message = f"{shown(name)} needs a binary suite, but this suite is {called}"
            converted.mistakes.add(key, message, f"remove {shown(name)}")
        for number, test in enumerate(section.of):
            if test not in bases and bases:
                names_of_bases = f"{listed(shown(converted.kind(base)) for base in bases)}"
                test_name = converted.kind(test)
                message = (
                    f"got {shown(test_name)}, but {shown(name)} can change only {names_of_bases}"
                )
                hint = f"add {shown(test_name)} to {converted.name(KINDS_KEY)}"
                converted.mistakes.add((*place, "of", number), message, hint)
        names: dict[str, None] = {}
        for variant in probe.variants():
            names |= dict.fromkeys((variant.name, *variant.axes))
        parts = () if section.variants == ("all",) else section.variants
        for number, part in enumerate(parts):
            if part not in names:
                message = (
                    f"got {shown(part)}; the variants of {name} are {listed(map(shown, names), 40)}"
                )
                close = nearest_hint(part, names, "name")
                converted.mistakes.add((*place, "variants", number), message, close)
        per_case = len(chosen(probe, parts))
        all_settings[name] = ProbeSettings(
            of=section.of or tuple(bases),
            names=parts,
            max_cases=section.max_cases,
            instruction=texts[name].instruction if name in texts else "",
            per_case=per_case if section.variants else min(per_case, probe.per_case),
        )
    return all_settings


_CHANGES = {
    "all": "other test",
    "failing": "test whose cases violate a rubric",
    "edited": "test whose edits violate a rubric",
}


def _stages(config: Config, places: Places) -> dict[str, StageModel]:
    """Fill in the stages that make cases; one without a model takes the editor's model, server and
    timeout, and then what `models` says.
    """
    stages = {}
    for spec, written in config.making_sections().items():
        section = written
        # Its server and time-out belong to a model, and to a summary that says nothing all else.
        names = ["model", "api_base", "timeout"]
        if spec.settings_from_model and section == StageSection():
            names += ["temperature", "system_prompt"]
        is_rands = spec is PLANNER and config.rand.cases_model is not None
        if section.model is None and not is_rands:
            section = _filled(section, config.editor, names)
        place = (EDITOR.name,) if spec is EDITOR else (EDITOR.name, spec.name)
        prompt = places.file((*place, "prompt_path"), written.prompt_path, "the prompt file")
        section = _filled(section, config.models, ModelDefaults.model_fields)
        stages[spec.name] = _stage(spec.name, section, prompt, config.rand.cases_model)
    return stages


def _judges(
    config: Config, entries: Sequence[JudgeEntry], places: Places, rubrics: Sequence[Rubric]
) -> Sequence[JudgeSettings]:
    """Fill in the judges."""
    judges = []
    for entry in entries:
        section, kind = entry.section, entry.kind
        if section is not entry.base:
            # A server is that of a model, and a map that of the values of a kind of judge.
            tied = set() if section.model is None else {"model", "api_base", "rate_limit"}
            tied |= set() if kind is kind_of(entry.base) else {"score_map", "threshold"}
            names = JudgeStage.model_fields.keys() - tied
            if kind.keys is not None:
                names.add("random")
            section = _filled(section, entry.base, names)
        section = _filled(section, config.models, ModelDefaults.model_fields)
        model = config.rand.judge_model if kind is PROMPT else None
        key = entry.place_of("prompt_path")
        prompt_file = places.file(key, entry.prompt_path, "the prompt file")
        stage = _stage(JUDGE.name, section, prompt_file, model)
        # One that runs code is sent no images.
        values: Json = {"images": section.images if kind is PROMPT else None}
        if entry.code_file is not None:
            function = getattr(entry.section, kind.key).removeprefix(entry.code_file)
            code = places.file((*entry.place, kind.key), entry.code_file, "the judge's file")
            values[kind.key] = f"{code}{function}"
        section = section.model_copy(update=values)
        folders = tuple(places.bases)
        of: PromptsOf = "pair" if config.suite.of == "pairs" else config.prompts_of
        shared = rubrics if section.together else ()
        judges.append(JudgeSettings(entry.name, stage, kind.key, section, folders, of, shared))
    return judges


def _stage(
    name: str, section: StageSection, prompt_file: Path | None, model: str | None
) -> StageModel:
    """A stage, or a judge, from its section; it has the `model` where that names none."""
    values = {field: getattr(section, field) for field in StageSection.model_fields}
    values["model"] = section.model or model or ""
    values["prompt_path"] = None if prompt_file is None else str(prompt_file)
    return StageModel(stage=name, **values)


def _filled(settings: SectionT, defaults: object, names: Iterable[str]) -> SectionT:
    """Take what is not set of these names from another."""
    unset = [name for name in names if getattr(settings, name) is None]
    return settings.model_copy(update={name: getattr(defaults, name) for name in unset})


def _tests(
    config: Config, rubrics: Sequence[Rubric], places: Places, folders: Mapping[str, str]
) -> Sequence[SuiteTest]:
    """The tests, each with the folder of its cases."""
    tests, judged = [], config.rand.judged
    for name, folder in folders.items():
        kind, targets, of_rands = KINDS[name], {}, config.rand.tests.get(name)
        for rubric in rubrics:
            targets[rubric.id] = kind.targets(rubric.scale, config.cases.scores)
        test = SuiteTest(
            name=name,
            objective=kind.objective(config.rand.objective),
            output_dir=places.find_or_new(folder),
            evaluate=of_rands.judged if of_rands else not judged or name in judged or kind.derived,
            targets=targets,
        )
        tests.append(test)
    return tests


def _labels(config: Config, places: Places) -> Sequence[LabelSection]:
    """The sources of labels with their files located, and who gave them."""
    labels = []
    for index, section in enumerate(config.labels):
        file = places.file(("labels", index, "path"), section.path, "the label file")
        by = section.by
        if by is None and section.metadata is not None and config.suite.of != "runs":
            by = "people" if section.annotator else "column"
        labels.append(
            section.model_copy(update={"path": None if file is None else str(file), "by": by})
        )
    return labels


def _frozen_file(
    config: Config, places: Places, folders: Iterable[str], converted: Converted
) -> Path | None:
    """The JSONL that the cases of a frozen suite come from, as the config says or implies it."""
    key: KeyPath = ("cases", "frozen")
    if isinstance(config.cases.frozen, str):
        names = [config.cases.frozen]
    else:
        names = [f"{folder}/{CASES_FILE}" for folder in dict.fromkeys(folders)]
    if len(names) > 1:
        places.mistakes.add(
            key,
            f"the cases of the tests are in different files ({listed(names)})",
            f"set {converted.name(('output', 'dir'))}, or set cases.frozen to the path of one file",
        )
        return None
    return places.file(key, "".join(names) or None, "the frozen suite")


def _check_judges(
    suite: Suite, entries: Sequence[JudgeEntry], converted: Converted, *, own_judge: bool
) -> Iterator[Mistake]:
    """Refuse stages and judges without a model, and keys of judges that do not go together."""
    for name, stage in suite.stages.items():
        if not stage.model:
            message = f"the {name} has no model; set {converted.name(_EDITORS_MODEL)}"
            yield Mistake(_EDITORS_MODEL, message)
            break
    if own_judge and suite.config.judges:
        message = "the hook pytest_jrh_judge supplies one judge, but this suite has several"
        yield Mistake(("judges",), message, "name the function of each judge: {python: ...}")
    names, answers = set(), _answers(suite.rubrics)
    for entry, judge in zip(entries, suite.judges, strict=True):
        section, kind = judge.section, entry.kind
        if entry.name in names:
            message = f"two judges have the name {shown(entry.name)}; rename one of them"
            yield Mistake((*entry.place, "name"), message)
        names.add(entry.name)
        if kind is PROMPT and not judge.stage.model:
            message = f"the judge has no model; set {converted.name(_JUDGES_MODEL)}"
            yield Mistake(_JUDGES_MODEL, message)
        for key in ("score_map", "verdict"):
            is_prompt = kind.keys is None and getattr(section, key) is not None
            if is_prompt and entry.prompt_path is None:
                message = "needs your own prompt, because the built-in prompt asks for scores"
                yield Mistake(entry.place_of(key), message, "set prompt_path to your own prompt")
        of_pairs = "cannot be used for a suite of pairs" if suite.scale.orders else ""
        if section.together and (of_pairs or kind.one_rubric or section.verdict):
            message = of_pairs or kind.one_rubric
            message = message or "cannot be used with `verdict`, which finds one verdict in a text"
            yield Mistake(entry.place_of("together"), message, "remove `together`")
        for value, score in (section.score_map or {}).items():
            if answers and score not in answers:
                message = received(score, f"one of the answers {listed(answers.values())}")
                yield Mistake((*entry.place_of("score_map"), value), message)
        has_use = kind.keys is not None and suite.mode == "binary" and not section.score_map
        if section.threshold is not None and not has_use:
            message = "can be used only for a judge in Python, in a binary suite, without score_map"
            yield Mistake((*entry.place, "threshold"), message)
        for key, message, hint in () if own_judge else misplaced_keys(entry.section, kind):
            yield Mistake((*entry.place, key), message, hint)


def _answers(rubrics: Iterable[Rubric]) -> dict[Said, str]:
    """All answers of the rubrics as they are said, each with its meaning."""
    answers: dict[Said, str] = {}
    for rubric in rubrics:
        scale = rubric.scale
        answers |= {scale.said(answer): scale.meant(answer) for answer in scale.answers}
    return answers


def _check_sections(suite: Suite, converted: Converted, *, is_frozen: bool) -> Iterator[Mistake]:
    """Refuse what is missing, and keys that do not go with each other, such as a limit of recall
    for a scale.
    """
    config, mode = suite.config, suite.mode
    kinds, key_of_kinds = config.tests, converted.name(KINDS_KEY)
    if not config.suite.log and not is_frozen:
        yield Mistake(LOG, f"no log is named; set {converted.name(LOG)}")
    if not config.suite.rubrics:
        yield Mistake(_RUBRICS, f"no rubrics are named; set {converted.name(_RUBRICS)}")
    if not kinds:
        names = f"{listed(shown(converted.kind(kind)) for kind in KINDS)}"
        yield Mistake(KINDS_KEY, f"names no test; name one or more of {names}")
    within = config.suite.within
    called = "of classes" if mode == "classes" else mode
    if config.suite.answers is not None and mode != "binary":
        message = f"names the two answers of a binary suite, but this suite is {called}"
        yield Mistake(("suite", "answers"), message, "remove this key")
    if within is not None and mode != "ordinal":
        message = f"needs an ordinal suite, but this suite is {called}"
        yield Mistake(("suite", "within"), message, "remove this key")
    of_pairs = [*map(converted.kind, (LABELS.name, PERTURBATION.name, SWAP.name))]
    if config.suite.of == "pairs":
        others = [kind for kind in map(converted.kind, kinds) if kind not in of_pairs]
        if others or config.cases.flip or config.cases.examples:
            message = (
                f"{listed(map(shown, others)) or 'cases.flip and cases.examples'} cannot be used "
                f"with pairs; the tests for pairs are {listed(map(shown, of_pairs))}"
            )
            yield Mistake(KINDS_KEY, message)
    elif SWAP.name in kinds or config.judge.orders:
        message = f"{SWAP.name} and judge.orders need pairs, but this suite has no pairs"
        yield Mistake(
            KINDS_KEY,
            message,
            "for pairs, set suite.of: pairs; if not, remove swap and judge.orders",
        )
    for index, judge in enumerate(config.judges):
        if judge.orders:
            message = "is set for one judge, but all judges see the same orders"
            yield Mistake(("judges", index, "orders"), message, "set judge.orders instead")
    best = [kind for kind in kinds if KINDS[kind].answer == "best"]
    if best and mode == "classes":
        made = f"{listed(shown(converted.kind(kind)) for kind in best)}"
        message = f"{made} makes runs that satisfy a rubric, but no class means satisfied"
        yield Mistake(KINDS_KEY, message, 'use "perturbation", which makes cases of each class')
    answers = _answers(suite.rubrics)
    for rubric in suite.rubrics:
        offered = rubric.scale.scores
        if rubric.score_levels and within is not None and within >= rubric.scale.width:
            message = (
                f"got {within}; the scores of the rubric {shown(rubric.id)} go from {offered[0]} "
                f"to {offered[-1]}, so every score would be right"
            )
            yield Mistake(("suite", "within"), message)
    outside = [str(score) for score in config.cases.scores if score not in answers]
    if outside and answers and suite.prompt_mode != "binary":
        message = f"got {listed(outside, 8)}, but the answers are {listed(answers.values())}"
        yield Mistake(("cases", "scores"), message)
    if config.suite.of != "runs" and config.cases.edits == "acts":
        message = "got acts, but answers have no tool calls; must be text"
        yield Mistake(("cases", "edits"), message)
    needing = [converted.kind(kind) for kind in kinds if KINDS[kind].is_labelled]
    needing += [f"cases.{key}" for key in ("flip", "examples") if getattr(config.cases, key)]
    if needing and not is_frozen and not config.labels:
        message = (
            f"is missing, but is needed for {listed(needing)}; must be a mapping with path (a CSV "
            "or JSON lines file), scorer (in the log) or metadata (a field in the log)"
        )
        yield Mistake(("labels",), message)
    gate = config.gate
    # The gate would pass without what its rules are about.
    needed_by: dict[KeyPath, str] = {("gate", "probes", probe): probe for probe in gate.probes}
    for index, kind in enumerate(config.rand.judged):
        needed_by["rand", "judged", index] = kind
    for key, kind in needed_by.items():
        if kinds and kind not in kinds:
            name, of_suite = converted.kind(kind), map(converted.kind, kinds)
            message = (
                f"got {shown(name)}, but {key_of_kinds} has only {listed(map(shown, of_suite))}"
            )
            yield Mistake(key, message, f"add {shown(name)} to {key_of_kinds}")
    instead = f"set gate.{'max_error' if mode == 'ordinal' else 'min_accuracy'} instead"
    for limit, modes in _MODES_OF_LIMITS.items():
        # Of single classes there may be n/a on any scale.
        is_of_classes = isinstance(getattr(gate, limit), dict)
        if getattr(gate, limit) is not None and not is_of_classes and mode not in modes:
            message = f"is only for {modes[0]} verdicts, but this suite is {called}"
            yield Mistake(("gate", limit), message, instead)


_MODES_OF_LIMITS = {
    "max_error": ("ordinal",),
    "min_recall": ("binary", "classes"),
    "max_false_alarms": ("binary",),
}


def _check_labels(suite: Suite, known_ids: Sequence[str]) -> Iterator[Mistake]:
    """Refuse labels that are nowhere or in two places, and ids of rubrics that are not there:
    `known_ids` are those of the rubric file, empty where it has mistakes.
    """
    ids = [rubric.id for rubric in suite.rubrics]
    for index, rubric_id in enumerate(suite.config.cases.rubrics):
        key: KeyPath = ("cases", "rubrics", index)
        yield from _check_id(key, rubric_id, known_ids, "rubrics in the rubric file")
    for index, section in enumerate(suite.config.labels if suite.labels else ()):
        sources = [name for name in LABEL_SOURCES if getattr(section, name) is not None]
        if len(sources) != 1:
            mistake = (
                f"has {' and '.join(map(shown, sources))}"
                if sources
                else "does not say where the labels are"
            )
            yield Mistake(
                ("labels", index),
                f"{mistake}; must have exactly one of the keys {listed(map(shown, LABEL_SOURCES))}",
            )
        key = ("labels", index, "rubric_id")
        if section.rubric_id is not None:
            yield from _check_id(key, section.rubric_id, ids, "suite's rubrics")
        elif section.source != "path" and len(ids) > 1:
            yield Mistake(
                key,
                "is missing; must be the id of the rubric that these labels are about: one of "
                f"{listed(map(shown, ids))}",
            )


def _check_id(key: KeyPath, rubric_id: str, choices: Sequence[str], noun: str) -> Iterator[Mistake]:
    if choices and rubric_id not in choices:
        yield Mistake(
            key,
            f"got {shown(rubric_id)}, but the {noun} are {listed(map(shown, choices))}",
            nearest_hint(rubric_id, choices, "id"),
        )


def _notices(
    config: Config, mode: Mode, rubrics: Sequence[Rubric], converted: Converted, file: str
) -> Sequence[str]:
    """Say once what a config asks for that is not done."""
    kinds, key_of_kinds = config.tests, converted.name(KINDS_KEY)
    sentences = []
    if converted.unused:
        sentences.append(f"these keys are not used: {', '.join(map(dotted, converted.unused))}")
    for probe in config.probes:
        if probe not in kinds:
            sentences.append(
                f"probes.{probe} has no effect, because {probe} is not in {key_of_kinds}"
            )
    for key in ("scores", "examples"):
        has_targets = any(rubric.scale.levels for rubric in rubrics)
        if mode == "binary" and not has_targets and getattr(config.cases, key):
            sentences.append(f"{converted.name(('cases', key))} has no effect in a binary suite")
    if mode != "binary" and any(section.unlabelled for section in config.labels):
        suite = "an ordinal suite" if mode == "ordinal" else "a suite of classes"
        sentences.append(f"labels.unlabelled has no effect in {suite}")
    if config.rand.table == "xlsx":
        sentences.append(
            f"{converted.name(('rand', 'table'))} is xlsx, but tables are written as CSV, which "
            "spreadsheets open, too"
        )
    metric = config.rand.metric
    if metric not in OUR_METRICS and find_spec("sklearn") is None:
        sentences.append(
            f"the metric {shown(metric)} is not computed, because scikit-learn is not installed "
            "(pip install 'pytest-jrh[sklearn]')"
        )
    return [f"{file}: {sentence}" for sentence in sentences]
