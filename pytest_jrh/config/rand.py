"""The door of the config: files of RAND's harness in words of our own.

Each row of `ROWS` says where a key of these files goes. A file may be in the one or the other
words, or in both; a key that says the same as another one is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.config.rand_answers import COLUMNS, TEMPLATES, convert_answers, is_of_answers
from pytest_jrh.core.documents import Json, KeyPath, Mistakes, dotted, listed, received
from pytest_jrh.core.stages import EDITOR
from pytest_jrh.core.text import nearest_hint


def _path(name: str) -> KeyPath:
    return tuple(name.split("."))


def _paths(names: dict[str, str]) -> tuple[tuple[KeyPath, KeyPath], ...]:
    return tuple((_path(written), _path(ours)) for written, ours in names.items())


AGENT = "test_agent_perturbation_config"
ROWS = _paths(
    {
        "admin.module_name": "rand.module",
        "admin.time_stamp": "rand.stamp",
        "admin.output_file_format": "rand.table",
        "admin.perturbation_config.use_HITL_process": "rand.review",
        "admin.perturbation_config.tests_to_run": "cases.kinds",
        "admin.perturbation_config.probes": "probes",
        "admin.evaluation_config.autograder_model_name": "rand.judge_model",
        "admin.evaluation_config.judges": "judges",
        "admin.evaluation_config.max_workers": "recording.max_workers",
        "admin.evaluation_config.tests_to_evaluate": "rand.judged",
        "admin.evaluation_config.metric": "rand.metric",
        "synthetic_data_params.generation_model_name": "rand.cases_model",
        "test_agent_perturbation_config.input_log_path": "suite.log",
        "test_agent_perturbation_config.input_format": "suite.format",
        "test_agent_perturbation_config.cluster_key": "cases.cluster",
        "test_agent_perturbation_config.rubric_path": "suite.rubrics",
        "test_agent_perturbation_config.labels": "labels",
        "test_agent_perturbation_config.target_rubric_ids": "cases.rubrics",
        "test_agent_perturbation_config.editor": EDITOR.name,
        "test_agent_perturbation_config.planner": "editor.planner",
        "test_agent_perturbation_config.summary": "editor.summary",
        "test_agent_perturbation_config.verifier": "editor.verifier",
        "test_agent_perturbation_config.max_summary_messages": "rand.summary_turns",
        "test_agent_perturbation_config.max_edit_rounds": "cases.edits_at_most",
        "test_agent_perturbation_config.score_targets": "cases.scores",
        "test_agent_perturbation_config.objective": "rand.objective",
        "test_agent_perturbation_config.edits": "cases.edits",
        "test_agent_perturbation_config.pass_required": "rand.confirmed",
        "test_agent_perturbation_config.sample_num_from_orig": "cases.sample",
        "test_agent_perturbation_config.sampling": "cases.sampling",
        "test_agent_perturbation_config.sampling_seed": "cases.seed",
        "test_agent_perturbation_config.transcript_preprocessors": "cases.preprocess",
        "test_agent_perturbation_config.output.dir": "output.dir",
        "test_agent_perturbation_config.output.results_dir": "rand.results",
        "test_agent_perturbation_config.output.write_jsonl": "rand.write_jsonl",
        "test_agent_perturbation_config.output.overwrite": "rand.renew",
        "test_agent_perturbation_config.output.rand": "output.rand",
    }
)
FALLBACKS = _paths(
    {
        "admin.evaluation_config.repeats": "judge.repeats",
        "synthetic_data_params.sample_num_from_orig": "cases.sample",
        "synthetic_data_params.seed": "cases.seed",
        "test_agent_perturbation_config.transcript_preprocessor": "cases.preprocess",
    }
)
"""They count where no other key says it."""
UNUSED: tuple[KeyPath, ...] = tuple(
    map(
        _path,
        (
            "admin.test_debug_mode",
            "admin.dataset_config.use_original_data_as_expected",
            "admin.perturbation_config.preprocess_columns_map",
            "admin.evaluation_config.aggregation_reference_column",
            "admin.evaluation_config.overwrite_results",
            "admin.evaluation_config.bootstrap_size",
            "admin.evaluation_config.bootstrap_repetitions",
            "admin.evaluation_config.get_cost_curves",
            "synthetic_data_params.validation_model_name",
            "synthetic_data_params.max_tokens_generation",
            "synthetic_data_params.max_tokens_validation",
            "synthetic_data_params.max_workers",
            "synthetic_data_params.use_similarity_filter",
            "synthetic_data_params.target_num_per_bucket",
            "synthetic_data_params.similarity_threshold",
            "synthetic_data_params.rescore_sample_size",
            "synthetic_data_params.initial_temp",
            "synthetic_data_params.num_seed_examples_per_generation",
            "synthetic_data_params.temp_increment",
            "synthetic_data_params.max_temp_cap",
            "synthetic_data_params.max_consecutive_failures",
            "test_agent_perturbation_config.trace_messages",
            "test_stochastic_stability_config",
        ),
    )
)
"""Keys of RAND's without meaning for agentic tests: accepted, and named once."""
_DEBUG = _path("admin.test_debug_mode")
_DATASET_NAME = _path("admin.dataset_config.dataset_name")
_PARAM_FILES = _path("admin.dataset_config.default_params_path")
_PARAMS = _path("admin.dataset_config.default_params")
_KINDS = _path("admin.perturbation_config.tests_to_run")
_JUDGED = _path("admin.evaluation_config.tests_to_evaluate")
_PROBES = _path("admin.perturbation_config.probes")
_AGGREGATION = _path("admin.evaluation_config.aggregation_method")
_TEMPLATE = _path("admin.evaluation_config.template")
_AGENT_TEMPLATE: KeyPath = (AGENT, "autograder_template")
_AGENT_PARAMS: KeyPath = (AGENT, "autograder_default_params")
# Of several keys, or of what stands in folders that are named after the module.
_MADE_OF = (
    _DATASET_NAME,
    _PARAM_FILES,
    _PARAMS,
    _AGGREGATION,
    _TEMPLATE,
    _AGENT_TEMPLATE,
    _AGENT_PARAMS,
)
_KNOWN = (*(written for written, _ in (*ROWS, *FALLBACKS)), *_MADE_OF, *UNUSED)
SECTIONS = tuple(dict.fromkeys(str(path[0]) for path in _KNOWN))
"""The sections that only such files have."""
_SCALES = {"agent_judge": "binary", "agent_autograder": "ordinal"}
for _name, _answers in TEMPLATES.items():
    _SCALES[_name] = "binary" if _answers else "ordinal"
KINDS_KEY: KeyPath = ("cases", "kinds")
_FILES: dict[str, KeyPath] = {
    "instruction": ("rand", "instruction_path"),
    "rubric": ("suite", "rubrics"),
}


@dataclass
class Converted:
    """A config in our words: `data`, where each of its keys was `written`, the `unused` keys of the
    file, and the `mistakes` in it that were found so far.
    """

    data: Json
    sections: frozenset[str]
    """Those of the file."""
    written: dict[KeyPath, KeyPath] = field(default_factory=dict)
    unused: list[KeyPath] = field(default_factory=list)
    mistakes: Mistakes = field(default_factory=Mistakes)

    def put(
        self, written: KeyPath, ours: KeyPath, value: Any, *, is_fallback: bool = False
    ) -> None:
        """Place a value of the file, unless it is None; a fallback gives way to another key."""
        parent: Any = self.data
        for part in ours[:-1]:
            if parent.get(part) is None:
                parent[part] = {}
            parent = parent[part]
            if not isinstance(parent, dict):
                return
        before = parent.get(ours[-1])
        if value is None or (before is not None and is_fallback):
            return
        if isinstance(before, dict) and isinstance(value, dict):
            # A section in parts, such as the editor's and, in it, the planner's.
            value = {**value, **before}
        elif before is not None:
            other = dotted(self.written.get(ours, ours))
            self.mistakes.add(written, f"{other} says the same; keep one of them")
            return
        parent[ours[-1]] = value
        self.written[ours] = written

    @property
    def is_rands(self) -> bool:
        """Whether the file is in RAND's words."""
        return not self.sections.isdisjoint(SECTIONS)

    def name(self, ours: KeyPath) -> str:
        """What the file calls a key."""
        return dotted(self.written_key(ours))

    def kind(self, name: str) -> str:
        """What the file calls a kind of test."""
        return name if KINDS_KEY in self.written else KINDS[name].key

    def written_key(self, ours: KeyPath) -> KeyPath:
        """Where a key of ours is, or would be, in the file: of RAND's, what RAND calls it."""
        is_of_rands = ours[:1] and ours[0] not in self.sections and self.is_rands
        of_rands = {target: source for source, target in ROWS} if is_of_rands else {}
        for sources in (self.written, of_rands):
            for end in range(len(ours), 0, -1):
                if ours[:end] in sources:
                    return (*sources[ours[:end]], *ours[end:])
        return ours


def convert(data: Json) -> Converted:
    """Convert what is in the words of RAND's files, which is taken out of the data."""
    converted = Converted(data, frozenset(data))
    values = {path: _taken(data, path) for path in _KNOWN}
    for section in SECTIONS:
        if (rest := data.pop(section, None)) is not None:
            _refuse_unknown((section,), rest, converted.mistakes)
    converted.unused += [path for path in UNUSED if values[path] is not None]
    if is_of_answers(values[_TEMPLATE], values[_KINDS]):
        convert_answers(converted, values, AGENT)
    for path in (_KINDS, _JUDGED):
        values[path] = _keys_of_kinds(path, values[path], converted)
    probes = values[_PROBES]
    for name, section in probes.items() if isinstance(probes, dict) else ():
        if isinstance(section, dict):
            path = (*_PROBES, name, "of")
            section["of"] = _keys_of_kinds(path, section.get("of"), converted)
    for written, ours in ROWS:
        converted.put(written, ours, values[written])
    for written, ours in FALLBACKS:
        converted.put(written, ours, values[written], is_fallback=True)
    _panel(converted, values)
    _of_module(converted, values)
    _scale(converted, values)
    if values[_DEBUG] is not None or ("rand", "table") in converted.written:
        converted.put(_DEBUG, ("output", "rand"), value=True, is_fallback=True)
    if values[_AGGREGATION] not in (None, "majority_vote"):
        converted.mistakes.add(
            _AGGREGATION, received(values[_AGGREGATION], "majority_vote or null")
        )
    return converted


def _keys_of_kinds(path: KeyPath, names: Any, converted: Converted) -> Any:
    """What we call the kinds of tests in a list of RAND's names; others are refused."""
    if names is None:
        return None
    if not isinstance(names, list):
        message = received(names, f"a list of tests ({', '.join(KINDS)})")
        converted.mistakes.add(path, message)
        return None
    keys = []
    for index, name in enumerate(names):
        # Equal to a name: what YAML has there may be a list, which is no key of a mapping.
        if name in list(KINDS):
            keys.append(KINDS[name].key)
        else:
            hint = nearest_hint(str(name), KINDS)
            converted.mistakes.add((*path, index), received(name, " or ".join(KINDS)), hint)
    return keys


def _taken(data: Json, path: KeyPath) -> Any:
    """Take the value at a path out of the data; None where there is none."""
    parent: Any = data
    for part in path[:-1]:
        parent = parent.get(part) if isinstance(parent, dict) else None
    if not isinstance(parent, dict):
        return None
    return parent.pop(path[-1], None)


def _refuse_unknown(path: KeyPath, value: Any, mistakes: Mistakes) -> None:
    """Refuse what is left of a section of RAND's: keys that nobody has."""
    depth = len(path)
    known_here = [known for known in _KNOWN if known[:depth] == path and len(known) > depth]
    names = tuple(dict.fromkeys(str(known[depth]) for known in known_here))
    if not isinstance(value, dict):
        mistakes.add(path, received(value, f"a mapping with the keys {', '.join(names)}"))
        return
    for name, item in value.items():
        place = (*path, name)
        if name in names and item is not None:
            _refuse_unknown(place, item, mistakes)
        elif name not in names:
            message = f"unknown key; the keys of {dotted(path)} are {listed(names)}"
            mistakes.add(place, message, nearest_hint(str(name), names, "key"))


def _panel(converted: Converted, values: dict[KeyPath, Any]) -> None:
    """Leave out of a panel what says nothing more: the suite's template, which all judges take."""
    judges = converted.data.get("judges")
    entries = judges if isinstance(judges, list) else [judges]
    template = values[_AGENT_TEMPLATE] or values[_TEMPLATE]
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            continue
        path: KeyPath = ("admin", "evaluation_config", "judges", index)
        columns = entry.pop("preprocess_columns_map", None)
        if columns is not None and template not in TEMPLATES:
            converted.unused.append((*path, "preprocess_columns_map"))
        elif columns not in (None, values[COLUMNS]):
            message = "must be the suite's, or left out: every judge of a panel sees the same"
            converted.mistakes.add((*path, "preprocess_columns_map"), message)
        of_judge = entry.pop("template", None)
        both = {template, of_judge}
        # Of answers those of one scale, which differ in its words alone.
        is_same = both <= TEMPLATES.keys() and len({_SCALES[name] for name in both}) == 1
        if of_judge not in (None, template) and not is_same:
            expected = f"the suite's, {template}: every judge of a panel takes that one"
            converted.mistakes.add((*path, "template"), received(of_judge, expected))


def _of_module(converted: Converted, values: dict[KeyPath, Any]) -> None:
    """Place what RAND's files name in the folder of their module."""
    names = values[_PARAM_FILES] or {}
    if not isinstance(names, dict):
        converted.mistakes.add(_PARAM_FILES, received(names, "a mapping of names to file names"))
        names = {}
    files: list[tuple[KeyPath, Any, KeyPath]] = [
        (_DATASET_NAME, values[_DATASET_NAME], ("suite", "log"))
    ]
    for name, value in names.items():
        if name in _FILES:
            files.append(((*_PARAM_FILES, name), value, _FILES[name]))
        elif value is not None:
            # There may be other files of RAND's beside ours.
            converted.unused.append((*_PARAM_FILES, name))
    rand = converted.data.get("rand")
    module = rand.get("module") if isinstance(rand, dict) else None
    for written, name, ours in files:
        if name is None:
            continue
        if isinstance(module, str):
            path = f"inputs/data/{module}/{name.strip()}" if isinstance(name, str) else name
            converted.put(written, ours, path, is_fallback=True)
        elif module is None and ours not in converted.written:
            message = "is missing; must be the name of a folder in inputs/data"
            converted.mistakes.add(("admin", "module_name"), message)
    note = values[_PARAMS]
    text = note.get("instruction") if isinstance(note, dict) else None
    if isinstance(text, str) and ("rand", "instruction_path") not in converted.written:
        converted.put((*_PARAMS, "instruction"), ("rand", "instruction"), text)


def _scale(converted: Converted, values: dict[KeyPath, Any]) -> None:
    """Make the scale of the template and of the range that RAND's files give."""
    written = _TEMPLATE if values[_AGENT_TEMPLATE] is None else _AGENT_TEMPLATE
    template = values[written]
    if template is None:
        return
    if not isinstance(template, str) or template not in _SCALES:
        expected = "agent_judge (binary) or agent_autograder (ordinal)"
        converted.mistakes.add(written, received(template, expected))
        return
    scale: Any = _SCALES[template]
    if scale == "ordinal":
        lowest = _bound(values, ("lowest_score", "min_score"))
        highest = _bound(values, ("highest_score", "max_score"))
        if lowest is not None and highest is not None:
            scale, written = [lowest[0], highest[0]], lowest[1]
    converted.put(written, ("rand", "scale"), scale)


def _bound(values: dict[KeyPath, Any], names: tuple[str, ...]) -> tuple[Any, KeyPath] | None:
    for path in (_AGENT_PARAMS, _PARAMS):
        params = values[path]
        for name in names:
            if isinstance(params, dict) and params.get(name) is not None:
                return params[name], (*path, name)
    return None
