"""From a config that fits its schema to its meaning: defaults, fallbacks, files, targets.

A suite written back as a config in which nothing is left to a default, for the record.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from pytest_jrh.config.fitting import AGENT, EVALUATION, unused_keys
from pytest_jrh.config.probes import check_gate_probes, unused_probes
from pytest_jrh.config.rubrics import LONGEST_SCALE
from pytest_jrh.config.tests import unused_labels
from pytest_jrh.core.documents import KeyPath, listed, read_text, received, shown
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.text import is_nearest, nearest, nearest_hint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.config.places import Places
    from pytest_jrh.config.schema import Config
    from pytest_jrh.config.suite import SuiteTest
    from pytest_jrh.core.documents import Findings
    from pytest_jrh.core.model import Mode, Rubric
    from pytest_jrh.judges.judge import JudgeSettings


OUR_METRICS = ("accuracy_score", "balanced_accuracy_score", "cohen_kappa_score", "f1_score")
# Of scikit-learn, where that is installed, and ours.
METRICS = (
    "accuracy_score",
    "adjusted_mutual_info_score",
    "adjusted_rand_score",
    "balanced_accuracy_score",
    "cohen_kappa_score",
    "completeness_score",
    "d2_absolute_error_score",
    "explained_variance_score",
    "f1_score",
    "fowlkes_mallows_score",
    "hamming_loss",
    "homogeneity_score",
    "jaccard_score",
    "matthews_corrcoef",
    "max_error",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_log_error",
    "median_absolute_error",
    "mutual_info_score",
    "normalized_mutual_info_score",
    "precision_score",
    "r2_score",
    "rand_score",
    "recall_score",
    "roc_auc_score",
    "root_mean_squared_error",
    "root_mean_squared_log_error",
    "v_measure_score",
    "zero_one_loss",
)

_DATASET: KeyPath = ("admin", "dataset_config")
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


def resolve_module(config: Config, findings: Findings) -> str:
    """Return the module's name, checked because folders are named after it."""
    path: KeyPath = ("admin", "module_name")
    name = config.admin.module_name
    if name is None:
        findings.missing(path, "is missing; must be the name of a folder in inputs/data")
        return ""
    for key, value in ((path, name), (("admin", "time_stamp"), config.admin.time_stamp)):
        if value is not None and (reason := check_name(value)):
            message = (
                f"got {shown(value)}, which {reason}; must be a plain name, as folders are "
                "named after it"
            )
            findings.add(key, message)
    return name


def resolve_mode(config: Config, findings: Findings) -> Mode | None:
    """Return the mode that the template stands for."""
    template = (
        config.test_agent_perturbation_config.autograder_template
        or config.admin.evaluation_config.template
    )
    if template is None:
        if not findings.explained((AGENT, "autograder_template")):
            message = "is missing; must be agent_judge (binary) or agent_autograder (ordinal)"
            findings.missing((*EVALUATION, "template"), message)
        return None
    return "binary" if template == "agent_judge" else "ordinal"


def resolve_metric(config: Config, findings: Findings) -> str:
    """Return the metric's name, one of RAND's."""
    name = config.admin.evaluation_config.metric
    if name not in METRICS:
        close = nearest(name, METRICS) or next(
            (metric for metric in METRICS if name in metric), None
        )
        expected = "accuracy_score, or a scikit-learn metric of labels against labels"
        hint = is_nearest(close) or f"the metrics are {', '.join(METRICS)}"
        findings.add((*EVALUATION, "metric"), received(name, expected), hint)
    return name


def resolve_format(config: Config) -> Literal["csv", "xlsx"]:
    """Return the tables' format: CSV where XLSX cannot be written."""
    return "csv" if find_spec("openpyxl") is None else config.admin.output_file_format


def data_path(config: Config, name: str) -> str:
    """Return the path of a module's own file, relative to one of the places."""
    return f"inputs/data/{config.admin.module_name}/{name}"


def explained_by_module(key: KeyPath, findings: Findings) -> bool:
    """Whether a file's folder is named after a module whose name is wrong."""
    return key[0] == "admin" and findings.explained(("admin", "module_name"))


def log_sources(config: Config) -> tuple[tuple[str, KeyPath], ...]:
    """Return the paths of the logs as the config gives them, and the key of each."""
    paths = config.test_agent_perturbation_config.input_log_path
    key: KeyPath = (AGENT, "input_log_path")
    if paths is not None and len(paths) == 1:
        return ((paths[0], key),)
    if paths is not None:
        return tuple((path, (*key, index)) for index, path in enumerate(paths))
    name = config.admin.dataset_config.dataset_name
    return ((data_path(config, name), (*_DATASET, "dataset_name")),) if name else ()


def rubric_source(config: Config) -> tuple[str, KeyPath] | None:
    """Return the rubric file's path as the config gives it, and the key that does."""
    if config.test_agent_perturbation_config.rubric_path:
        return config.test_agent_perturbation_config.rubric_path, (AGENT, "rubric_path")
    name = config.admin.dataset_config.default_params_path.get("rubric")
    return (data_path(config, name), (*_DATASET, "default_params_path", "rubric")) if name else None


def resolve_instruction(config: Config, findings: Findings, places: Places) -> str:
    """Return the text of the instruction file, else `default_params.instruction`, else nothing."""
    dataset = config.admin.dataset_config
    key: KeyPath = (*_DATASET, "default_params_path", "instruction")
    name = dataset.default_params_path.get("instruction")
    if not name:
        instruction = dataset.default_params.get("instruction")
        return instruction.strip() if isinstance(instruction, str) else ""
    if explained_by_module(key, findings):
        return ""
    path = places.require(data_path(config, name), findings, key, role="the instruction file")
    if path is None:
        return ""
    try:
        return read_text(path, places.name(path)).strip()
    except InputError as error:
        findings.problems.extend(error.problems)
        return ""


def check_param_files(config: Config, findings: Findings) -> None:
    """Refuse misspelled keys of `default_params_path`, which may hold others of RAND's."""
    params = ("instruction", "rubric")
    for name in config.admin.dataset_config.default_params_path:
        if name not in params and (close := nearest(name, params, cutoff=0.8)):
            message = "unknown key; the keys that matter here are instruction and rubric"
            findings.add(
                (*_DATASET, "default_params_path", name), message, f"{close} is the nearest key"
            )


def targeted(
    config: Config, rubrics: Sequence[Rubric], findings: Findings, *, complete: bool
) -> list[Rubric]:
    """Keep the rubrics that `target_rubric_ids` names; ids are missed only if rubrics are
    `complete`.
    """
    target_ids = [name.strip() for name in config.test_agent_perturbation_config.target_rubric_ids]
    ids = [rubric.id for rubric in rubrics]
    if complete:
        for index, rubric_id in enumerate(target_ids):
            if rubric_id not in ids:
                hint = nearest_hint(rubric_id, ids, "id")
                message = f"got {shown(rubric_id)}; the ids in the rubric file are {listed(ids)}"
                findings.add((AGENT, "target_rubric_ids", index), message, hint)
    return [rubric for rubric in rubrics if not target_ids or rubric.id in target_ids]


def score_range(config: Config, findings: Findings) -> tuple[int, int] | None:
    """Return the lowest and the highest score that the config gives, if it gives both."""
    lowest = _bound(config, ("lowest_score", "min_score"), findings)
    highest = _bound(config, ("highest_score", "max_score"), findings)
    if lowest is None or highest is None:
        return None
    (low, key), (high, _) = lowest, highest
    if not 0 < high - low < LONGEST_SCALE:
        message = (
            f"the scores go from {shown(low)} to {shown(high)}; must be 2 to "
            f"{LONGEST_SCALE} levels, lowest first"
        )
        findings.add(key, message)
        return None
    return low, high


def _bound(
    config: Config, names: tuple[str, ...], findings: Findings
) -> tuple[int, KeyPath] | None:
    sources: tuple[tuple[KeyPath, dict[str, Any]], ...] = (
        (
            (AGENT, "autograder_default_params"),
            config.test_agent_perturbation_config.autograder_default_params,
        ),
        ((*_DATASET, "default_params"), config.admin.dataset_config.default_params),
    )
    for path, params in sources:
        for name in names:
            value = params.get(name)
            if value is None:
                continue
            if isinstance(value, int) and not isinstance(value, bool):
                return value, (*path, name)
            if isinstance(value, str) and re.fullmatch(r"\s*[-+]?\d{1,9}\s*", value, re.ASCII):
                return int(value), (*path, name)
            findings.add((*path, name), received(value, "an integer"))
            return None
    return None


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
    file: str,
) -> tuple[str, ...]:
    """Say once what a config asks for that is not done."""
    sentences = unused_labels(config, file)
    sentences += unused_probes(config, file)
    if mode == "binary" and config.test_agent_perturbation_config.score_targets:
        sentences.append(f"{file}: score_targets has no effect in a binary suite")
    labels = config.test_agent_perturbation_config.labels
    if mode == "ordinal" and any(section.unlabelled for section in labels):
        sentences.append(f"{file}: labels.unlabelled has no effect in an ordinal suite")
    if mode == "binary" and (scaled := [rubric.id for rubric in rubrics if rubric.score_levels]):
        sentences.append(
            f"{file}: score_levels of the rubrics {listed(scaled, 5)} have no effect: the "
            "template agent_judge is binary; agent_autograder uses the scale"
        )
    for repeats in dict.fromkeys(judge.repeats for judge in judges):
        if repeats % 2 == 0:
            sentences.append(
                f"{file}: repeats is {repeats}: an even number of verdicts ties more often, and a "
                "tie counts as wrong; an odd number is better"
            )
    if resolve_format(config) != config.admin.output_file_format:
        sentences.append(
            f"{file}: output_file_format is xlsx, but openpyxl is not installed, so tables are "
            "written as CSV (pip install 'pytest-jrh[xlsx]')"
        )
    metric = config.admin.evaluation_config.metric
    if metric not in OUR_METRICS and find_spec("sklearn") is None:
        sentences.append(
            f"{file}: metric is {metric}, but scikit-learn is not installed, so it is not computed "
            "(pip install 'pytest-jrh[sklearn]')"
        )
    return tuple(sentences)


def about_unused(config: Config, file: str) -> str:
    """Name the keys of RAND's without meaning for agentic tests; empty where there are none."""
    unused = _unused_sections(config)
    return f"{file}: not used by agentic tests: {', '.join(unused)}" if unused else ""


def _unused_sections(config: Config) -> list[str]:
    groups: dict[str, list[str]] = {}
    for key in unused_keys(config):
        section, _, name = key.rpartition(".")
        groups.setdefault(section, []).append(name)
    files = config.admin.dataset_config.default_params_path
    if unused_files := [name for name in files if name not in {"instruction", "rubric"}]:
        groups["admin.dataset_config.default_params_path"] = unused_files
    return [
        (f"{section}." if section else "")
        + (names[0] if len(names) == 1 else f"{{{listed(names)}}}")
        for section, names in groups.items()
    ]
