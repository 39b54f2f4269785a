"""The door of the config: files of RAND's harness in words of our own.

Each row of `ROWS` says where a key of these files goes. A file may be in the one or the other
words, or in both; a key that says the same as another one is refused.

RAND's tests of answers, its free-response half, are kinds and probes of ours under RAND's names,
which importing this makes known. RAND has models change the layout of an answer; here code does,
which cannot change more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from pytest_jrh.cases import probes, tests
from pytest_jrh.cases.probes.format_invariance import FORMAT_INVARIANCE
from pytest_jrh.cases.probes.probe import Variant, shipped
from pytest_jrh.cases.tests import KINDS, LABELS, PERTURBATION
from pytest_jrh.core import InputError, Json, listed, nearest_hint, received, shown
from pytest_jrh.core.documents import (
    Document,
    KeyPath,
    Mistakes,
    dotted,
    pointer_to,
    read_document,
    read_json,
    read_text,
)
from pytest_jrh.core.sections import ROW_NUMBER, ConfigSection, Count, Flag, Runs, Takes


def key_path(name: str) -> KeyPath:
    """A key by its dotted name."""
    return tuple(name.split("."))


def _rows(table: str) -> tuple[tuple[KeyPath, str], ...]:
    rows = []
    for line in table.strip().splitlines():
        written, ours = line.split()
        rows.append((key_path(written), ours))
    return tuple(rows)


AGENT = "test_agent_perturbation_config"
ROWS = _rows("""
admin.module_name                                       rand.module
admin.time_stamp                                        rand.stamp
admin.output_file_format                                rand.table
admin.perturbation_config.use_HITL_process              rand.review
admin.perturbation_config.tests_to_run                  cases.kinds
admin.perturbation_config.probes                        probes
admin.evaluation_config.autograder_model_name           rand.judge_model
admin.evaluation_config.judges                          judges
admin.evaluation_config.max_workers                     recording.max_workers
admin.evaluation_config.tests_to_evaluate               rand.judged
admin.evaluation_config.metric                          rand.metric
synthetic_data_params.generation_model_name             rand.cases_model
test_agent_perturbation_config.input_log_path           suite.log
test_agent_perturbation_config.input_format             suite.format
test_agent_perturbation_config.cluster_key              cases.cluster
test_agent_perturbation_config.rubric_path              suite.rubrics
test_agent_perturbation_config.labels                   labels
test_agent_perturbation_config.target_rubric_ids        cases.rubrics
test_agent_perturbation_config.editor                   editor
test_agent_perturbation_config.planner                  editor.planner
test_agent_perturbation_config.summary                  editor.summary
test_agent_perturbation_config.verifier                 editor.verifier
test_agent_perturbation_config.max_summary_messages     rand.summary_turns
test_agent_perturbation_config.max_edit_rounds          cases.edits_at_most
test_agent_perturbation_config.score_targets            cases.scores
test_agent_perturbation_config.objective                rand.objective
test_agent_perturbation_config.edits                    cases.edits
test_agent_perturbation_config.pass_required            rand.confirmed
test_agent_perturbation_config.sample_num_from_orig     cases.sample
test_agent_perturbation_config.sampling                 cases.sampling
test_agent_perturbation_config.sampling_seed            cases.seed
test_agent_perturbation_config.transcript_preprocessors cases.preprocess
test_agent_perturbation_config.output.dir               output.dir
test_agent_perturbation_config.output.results_dir       rand.results
test_agent_perturbation_config.output.write_jsonl       rand.write_jsonl
test_agent_perturbation_config.output.overwrite         rand.renew
test_agent_perturbation_config.output.rand              output.rand
""")
FALLBACKS = _rows("""
admin.evaluation_config.repeats                         judge.repeats
synthetic_data_params.sample_num_from_orig              cases.sample
synthetic_data_params.seed                              cases.seed
test_agent_perturbation_config.transcript_preprocessor  cases.preprocess
""")
"""They count where no other key says it."""
_UNUSED = """
admin.test_debug_mode
admin.dataset_config.use_original_data_as_expected
admin.perturbation_config.preprocess_columns_map.request
admin.perturbation_config.preprocess_columns_map.response
admin.perturbation_config.preprocess_columns_map.expected
admin.perturbation_config.preprocess_columns_map.original_idx
admin.evaluation_config.aggregation_reference_column
admin.evaluation_config.overwrite_results
admin.evaluation_config.bootstrap_size
admin.evaluation_config.bootstrap_repetitions
admin.evaluation_config.get_cost_curves
synthetic_data_params.validation_model_name
synthetic_data_params.max_tokens_generation
synthetic_data_params.max_tokens_validation
synthetic_data_params.max_workers
synthetic_data_params.use_similarity_filter
synthetic_data_params.target_num_per_bucket
synthetic_data_params.similarity_threshold
synthetic_data_params.rescore_sample_size
synthetic_data_params.initial_temp
synthetic_data_params.num_seed_examples_per_generation
synthetic_data_params.temp_increment
synthetic_data_params.max_temp_cap
synthetic_data_params.max_consecutive_failures
test_agent_perturbation_config.trace_messages
test_stochastic_stability_config.sample_num_from_orig
test_stochastic_stability_config.number_of_seeds
test_stochastic_stability_config.repetitions
test_stochastic_stability_config.seed
"""
UNUSED: tuple[KeyPath, ...] = tuple(map(key_path, _UNUSED.split()))
"""Keys of RAND's without meaning for agentic tests: accepted, and named once."""
DEBUG = key_path("admin.test_debug_mode")
COLUMNS = key_path("admin.perturbation_config.preprocess_columns_map")
DATASET = key_path("admin.dataset_config.dataset_name")
PARAM_FILES = key_path("admin.dataset_config.default_params_path")
PARAMS = key_path("admin.dataset_config.default_params")
RUN = key_path("admin.perturbation_config.tests_to_run")
JUDGED = key_path("admin.evaluation_config.tests_to_evaluate")
PROBES = key_path("admin.perturbation_config.probes")
AGGREGATION = key_path("admin.evaluation_config.aggregation_method")
TEMPLATE = key_path("admin.evaluation_config.template")
AGENT_TEMPLATE: KeyPath = (AGENT, "autograder_template")
AGENT_PARAMS: KeyPath = (AGENT, "autograder_default_params")
KNOWN = (
    *(written for written, _ in (*ROWS, *FALLBACKS)),
    # Of several keys, or of what stands in folders that are named after the module.
    DATASET,
    PARAM_FILES,
    PARAMS,
    AGGREGATION,
    TEMPLATE,
    AGENT_TEMPLATE,
    AGENT_PARAMS,
    *UNUSED,
)
SECTIONS = tuple(dict.fromkeys(str(path[0]) for path in KNOWN))
"""The sections that only such files have."""
KINDS_KEY: KeyPath = ("cases", "kinds")
_SCALES = {
    "agent_judge": "binary",
    "agent_autograder": "ordinal",
    "single_judge": "binary",
    "single_judge_str": "binary",
    "single_autograder": "ordinal",
}
_FILES = {"instruction": "rand.instruction_path", "rubric": "suite.rubrics"}


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

    def put(self, written: KeyPath, ours: str, value: Any, *, is_fallback: bool = False) -> None:
        """Place a value of the file, unless it is None; a fallback gives way to another key."""
        path = key_path(ours)
        parent: Any = self.data
        for part in path[:-1]:
            if parent.get(part) is None:
                parent[part] = {}
            parent = parent[part]
            if not isinstance(parent, dict):
                return
        before = parent.get(path[-1])
        if value is None or (before is not None and is_fallback):
            return
        if isinstance(before, dict) and isinstance(value, dict):
            # A section in parts, such as the editor's and, in it, the planner's.
            value = {**value, **before}
        elif before is not None:
            other = dotted(self.written.get(path, path))
            self.mistakes.add(written, f"{other} sets the same value; remove one of these two keys")
            return
        parent[path[-1]] = value
        self.written[path] = written

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
        """Where a key of ours is, or would be, in the file: of RAND's, what RAND calls it; of a
        list that may be one section alone, which then has no number.
        """
        if ours[1:2] == (0,) and isinstance(self.data.get(str(ours[0])), dict):
            ours = (ours[0], *ours[2:])
        is_of_rands = ours[:1] and ours[0] not in self.sections and self.is_rands
        of_rands = {key_path(target): source for source, target in ROWS} if is_of_rands else {}
        for sources in (self.written, of_rands):
            for end in range(len(ours), 0, -1):
                if ours[:end] in sources:
                    return (*sources[ours[:end]], *ours[end:])
        return ours


def convert(data: Json) -> Converted:
    """Convert what is in the words of RAND's files, which is taken out of the data."""
    converted = Converted(data, frozenset(data))
    values: dict[KeyPath, Any] = dict.fromkeys(KNOWN)
    for section in SECTIONS:
        _read((section,), data.pop(section, None), values, converted.mistakes)
    converted.unused += [path for path in UNUSED if values[path] is not None]
    is_of_answers = _convert_answers(converted, values)
    for path in (RUN, JUDGED):
        values[path] = _keys_of_kinds(path, values[path], converted)
    probes = values[PROBES]
    for name, section in probes.items() if isinstance(probes, dict) else ():
        if isinstance(section, dict):
            path = (*PROBES, name, "of")
            section["of"] = _keys_of_kinds(path, section.get("of"), converted)
    for written, ours in ROWS:
        converted.put(written, ours, values[written])
    for written, ours in FALLBACKS:
        converted.put(written, ours, values[written], is_fallback=True)
    _panel(converted, values, is_of_answers=is_of_answers)
    _of_module(converted, values)
    _scale(converted, values)
    if values[DEBUG] is not None or ("rand", "table") in converted.written:
        converted.put(DEBUG, "output.rand", value=True, is_fallback=True)
    if values[AGGREGATION] not in (None, "majority_vote"):
        converted.mistakes.add(AGGREGATION, received(values[AGGREGATION], "majority_vote or null"))
    return converted


def known_names(
    converted: Converted, path: KeyPath, written: Any, known: Iterable[str]
) -> list[str] | None:
    """The names of tests in a list; others than known ones are refused."""
    if written is None:
        return None
    # A list: what YAML has there may be one, too, which is no key of a mapping.
    known = list(known)
    if not isinstance(written, list):
        converted.mistakes.add(path, received(written, f"a list of tests ({', '.join(known)})"))
        return None
    names = []
    for index, name in enumerate(written):
        if name in known:
            names.append(name)
        else:
            hint = nearest_hint(str(name), known)
            converted.mistakes.add(
                (*path, index), received(name, f"one of {listed(map(shown, known))}"), hint
            )
    return names


def _keys_of_kinds(path: KeyPath, written: Any, converted: Converted) -> list[str] | None:
    """What we call the kinds of tests in a list of RAND's names."""
    names = known_names(converted, path, written, KINDS)
    return names and [KINDS[name].key for name in names]


def _read(path: KeyPath, value: Any, values: dict[KeyPath, Any], mistakes: Mistakes) -> None:
    """Read the known keys at a path of RAND's sections, and refuse those that nobody has."""
    if path in values or value is None:
        values[path] = value
        return
    depth = len(path)
    names = list(dict.fromkeys(str(known[depth]) for known in KNOWN if known[:depth] == path))
    if not isinstance(value, dict):
        mistakes.add(
            path,
            received(value, f"a mapping with one or more of the keys {listed(map(shown, names))}"),
        )
        return
    for name, item in value.items():
        place = (*path, name)
        if name in names:
            _read(place, item, values, mistakes)
        else:
            message = f"unknown key; the keys of {dotted(path)} are {listed(map(shown, names))}"
            mistakes.add(place, message, nearest_hint(str(name), names, "key"))


def _panel(converted: Converted, values: dict[KeyPath, Any], *, is_of_answers: bool) -> None:
    """Leave out of a panel what says nothing more: the suite's template, which all judges take."""
    judges = converted.data.get("judges")
    entries = judges if isinstance(judges, list) else [judges]
    template = values[AGENT_TEMPLATE] or values[TEMPLATE]
    of_suite = {
        place[-1]: column
        for place, column in values.items()
        if place[:-1] == COLUMNS and column is not None
    }
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            continue
        path: KeyPath = ("admin", "evaluation_config", "judges", index)
        columns = entry.pop("preprocess_columns_map", None)
        if columns is not None and not is_of_answers:
            converted.unused.append((*path, "preprocess_columns_map"))
        elif columns not in (None, of_suite):
            message = "must be left out, or be the same as in the suite"
            converted.mistakes.add((*path, "preprocess_columns_map"), message)
        of_judge = entry.pop("template", None)
        # Of answers those of one scale, which differ in its words alone.
        is_same = is_of_answers and _SCALES.get(str(of_judge)) == _SCALES.get(str(template))
        if of_judge not in (None, template) and not is_same:
            expected = f"{template} as in the suite, because all judges of a panel use one template"
            converted.mistakes.add((*path, "template"), received(of_judge, expected))


def _of_module(converted: Converted, values: dict[KeyPath, Any]) -> None:
    """Place what RAND's files name in the folder of their module."""
    names = values[PARAM_FILES] or {}
    if not isinstance(names, dict):
        converted.mistakes.add(PARAM_FILES, received(names, "a mapping of names to file names"))
        names = {}
    files: list[tuple[KeyPath, Any, str]] = [(DATASET, values[DATASET], "suite.log")]
    for name, value in names.items():
        if name in _FILES:
            files.append(((*PARAM_FILES, name), value, _FILES[name]))
        elif value is not None:
            # There may be other files of RAND's beside ours.
            converted.unused.append((*PARAM_FILES, name))
    rand = converted.data.get("rand")
    module = rand.get("module") if isinstance(rand, dict) else None
    for written, name, ours in files:
        if name is None:
            continue
        if isinstance(module, str):
            path = f"inputs/data/{module}/{name.strip()}" if isinstance(name, str) else name
            converted.put(written, ours, path, is_fallback=True)
        elif module is None and key_path(ours) not in converted.written:
            message = "is missing; must be the name of a folder in inputs/data"
            converted.mistakes.add(("admin", "module_name"), message)
    note = values[PARAMS]
    text = note.get("instruction") if isinstance(note, dict) else None
    if isinstance(text, str) and ("rand", "instruction_path") not in converted.written:
        converted.put((*PARAMS, "instruction"), "rand.instruction", text)


def _scale(converted: Converted, values: dict[KeyPath, Any]) -> None:
    """Make the scale of the template and of the range that RAND's files give."""
    written = TEMPLATE if values[AGENT_TEMPLATE] is None else AGENT_TEMPLATE
    template = values[written]
    if template is None:
        return
    if not isinstance(template, str) or template not in _SCALES:
        expected = listed(f"{name} ({scale})" for name, scale in _SCALES.items())
        converted.mistakes.add(written, received(template, f"one of {expected}"))
        return
    scale: Any = _SCALES[template]
    if scale == "ordinal":
        lowest = _bound(values, ("lowest_score", "min_score"))
        highest = _bound(values, ("highest_score", "max_score"))
        if lowest is not None and highest is not None:
            scale, written = [lowest[0], highest[0]], lowest[1]
    converted.put(written, "rand.scale", scale)


def _bound(values: dict[KeyPath, Any], names: tuple[str, ...]) -> tuple[Any, KeyPath] | None:
    for path in (AGENT_PARAMS, PARAMS):
        params = values[path]
        for name in names:
            if isinstance(params, dict) and params.get(name) is not None:
                return params[name], (*path, name)
    return None


FLIP, ORDINAL = "label_flip", "synthetic_ordinal"
STABLE, AMBIGUITY = "stochastic_stability", "answer_ambiguity"
UNCHANGED = LABELS.name
"""The test of the rows that probes change, as they are."""

for _kind in (
    replace(PERTURBATION, name=FLIP, answer="each", flips=True),
    replace(PERTURBATION, name=ORDINAL, answer="each"),
    replace(LABELS, name=STABLE),
    replace(LABELS, name=AMBIGUITY),
):
    tests.OTHER_NAMES[_kind.name] = replace(_kind, key=_kind.name)

# By name the probe of ours, and its variant.
_PROBES = {
    "semantic_paraphrase": ("paraphrase", "words"),
    "verbosity_bias_long": ("verbosity", "long"),
    "verbosity_bias_short": ("verbosity", "short"),
    "format_invariance_1": (FORMAT_INVARIANCE.name, "blank_lines"),
    "format_invariance_2": (FORMAT_INVARIANCE.name, "spaces"),
    "format_invariance_3": (FORMAT_INVARIANCE.name, "indents"),
}
NAMES = (FLIP, ORDINAL, STABLE, AMBIGUITY, *_PROBES)
_KINDS = "|".join((UNCHANGED, FLIP, ORDINAL, STABLE, AMBIGUITY))
RandTestName = Annotated[str, Field(pattern=f"^({_KINDS})$"), Takes(_KINDS)]


for _name, (_probe, _layout) in _PROBES.items():
    if _probe == FORMAT_INVARIANCE.name:
        # As one by text, whose only variant is that nothing changes.
        _variants = (Variant("none", _layout),)
        probes.OTHER_NAMES[_name] = replace(FORMAT_INVARIANCE, variants=partial(tuple, _variants))


class RandTest(ConfigSection):
    """A test of answers by RAND's name."""

    rows: Runs = 0
    """How many rows of the table are drawn, by RAND's way of drawing rows; 0 means all."""
    again: Flag = False
    """true: a row can be drawn more than once."""
    judged: Flag = True
    """true: the test's cases are judged. false: the cases are only made."""
    seeds: Count = 1
    """The number of seeds, as in RAND's harness. A case is judged `repetitions` times for each
    seed."""
    repetitions: Count = 1
    """How many times a case is judged for each seed. No seed is sent to a model."""


_SELF_LABELLED = key_path("admin.dataset_config.use_original_data_as_expected")
_REFERENCE = key_path("admin.evaluation_config.aggregation_reference_column")
_VERIFIER = key_path("synthetic_data_params.validation_model_name")
_EXAMPLES = key_path("synthetic_data_params.num_seed_examples_per_generation")
_SEED = key_path("synthetic_data_params.seed")
_ROWS = key_path("synthetic_data_params.target_num_per_bucket")
_SEEDS = key_path("test_stochastic_stability_config.number_of_seeds")
_REPETITIONS = key_path("test_stochastic_stability_config.repetitions")
_LABEL = (*COLUMNS, "expected")
_ID = (*COLUMNS, "original_idx")
_PARTS = {
    (*COLUMNS, "request"): "suite.format.messages",
    (*COLUMNS, "response"): "suite.format.answer",
    _ID: "suite.format.id",
}
_ROWS_OF = {
    UNCHANGED: _ROWS,
    FLIP: _ROWS,
    AMBIGUITY: _ROWS,
    ORDINAL: key_path("synthetic_data_params.sample_num_from_orig"),
    STABLE: key_path("test_stochastic_stability_config.sample_num_from_orig"),
}
"""By test how many rows RAND draws for it."""
_USED = {_SELF_LABELLED, _REFERENCE, _VERIFIER, _EXAMPLES, _SEEDS, _REPETITIONS, _LABEL, DEBUG}
_USED |= {*_PARTS, *_ROWS_OF.values()}
TEMPLATES: Mapping[str, Json] = {
    "single_judge": {"1": "true", "0": "false"},
    "single_judge_str": {"1": "Y", "0": "N"},
    "single_autograder": {},
}
"""By the template of a judge what its answers 1 and 0 are called; nothing where it gives scores."""
_CLASSES = "multiclass_judge"
_OWN_TESTS = Path("prompts/synthetic_generation_prompts/basic_perturbation_instructions.json")
_MOST_CASES = 1_000_000


def question(note: str) -> Callable[[Path, str], Document]:
    """Reads a rubric that is plain text, behind the note to the judge: editor and verifier are then
    asked the judge's own question.
    """

    def read(path: Path, file: str) -> Document:
        text = f"{note.strip()}\n\n{read_text(path, file)}".strip()
        return read_json(json.dumps([{"id": path.stem, "instructions": text}]), file)

    return read


def _convert_answers(converted: Converted, values: dict[KeyPath, Any]) -> bool:
    """Whether a file is about answers, by its judge's template or a test: then the keys that mean
    something else in one about agents are placed, and taken out of the values.
    """
    mistakes, template, names = converted.mistakes, values[TEMPLATE], str(values[RUN])
    if template not in (*TEMPLATES, _CLASSES) and not any(name in names for name in NAMES):
        return False
    if template in [*TEMPLATES]:
        converted.put(TEMPLATE, "suite.of", "answers")
        converted.put(TEMPLATE, "suite.answers", TEMPLATES[template] or None)
    else:
        message, hint = received(template, " or ".join(TEMPLATES)), None
        if template == _CLASSES:
            message = f"got {_CLASSES}, but RAND's files do not say which classes there are"
            hint = "write a config of pytest-jrh instead, with a rubric that has classes"
        mistakes.add(TEMPLATE, message, hint)
        values[TEMPLATE] = None
    if values[_SELF_LABELLED] is True:
        message = "got true; the judge would make its own labels, so it would always be right"
        mistakes.add(_SELF_LABELLED, message, f"name a column of labels in {dotted(_LABEL)}")
    if values[DEBUG] is True:
        message = "got true, which would make every answer 0 without a call"
        mistakes.add(DEBUG, message, "to see which calls there would be, run pytest --jrh-plan")

    # Which columns of the table are what; a row without an id is named by its number.
    for written, ours in _PARTS.items():
        if values[written] is not None:
            converted.put(written, ours, pointer_to(str(values[written])))
    converted.put(_ID, _PARTS[_ID], ROW_NUMBER, is_fallback=True)
    column = values[_LABEL] or _LABEL[-1]
    converted.put(_LABEL, "labels", {"metadata": column}, is_fallback=True)
    if values[_REFERENCE] not in (None, column):
        expected = f"{column}, because judges and their majority are compared with these labels"
        mistakes.add(_REFERENCE, received(values[_REFERENCE], expected))

    _place_tests(converted, values)
    converted.put(_VERIFIER, "editor.verifier.model", values[_VERIFIER])
    unused = [path for path in converted.unused if path not in _USED and path[0] != AGENT]
    of_agents = [path for path in values if path[0] == AGENT and values[path] is not None]
    if of_agents:
        unused.append((AGENT,))
    if values[_SEED] is not None:
        unused.append(_SEED)
    converted.unused = unused
    values |= dict.fromkeys([RUN, JUDGED, _SEED, _ROWS_OF[ORDINAL], *of_agents])
    return True


def _place_tests(converted: Converted, values: Mapping[KeyPath, Any]) -> None:
    """Place the tests by RAND's names, each with the rows that RAND draws for it, and those that
    the editor makes of the rows by a text.
    """
    own = _own_tests()
    known = (*NAMES, UNCHANGED, *own)
    names = known_names(converted, RUN, values[RUN], known) or []
    judged = known_names(converted, JUDGED, values[JUDGED], known) or names
    if not values[RUN]:
        converted.mistakes.add(RUN, f"names no test; list one or more of {', '.join(known)}")
    tests = {}
    texts = {}
    for name in (*names, UNCHANGED):
        if name not in _ROWS_OF:
            texts[name] = {"of": [UNCHANGED], "max_cases": values[_ROWS] or _MOST_CASES}
            if name in own:
                texts[name] |= own[name]
            else:
                probe, variant = _PROBES[name]
                # What the editor is told to do; in a probe of layouts it is not asked.
                told = shipped("rewriting.yml").get(probe, {})
                texts[name]["instruction"] = told.get(variant, variant)
        # What is changed in others are the rows as they are.
        elif name in names or texts:
            tests[name] = {
                "rows": values[_ROWS_OF[name]],
                "again": name == ORDINAL,
                "judged": name in (*judged, UNCHANGED),
            }
            if name in (STABLE, AMBIGUITY):
                tests[name] |= {"seeds": values[_SEEDS], "repetitions": values[_REPETITIONS]}
            converted.written["rand", "tests", name, "rows"] = _ROWS_OF[name]
    for name in sorted({*judged}.difference(names).union(texts.keys() - judged)):
        message = (
            f"{shown(name)} must be in both this list and {dotted(RUN)}, because cases "
            "are made only if they are also judged"
        )
        converted.mistakes.add(JUDGED, message)
    converted.put(RUN, "rand.tests", tests or None)
    converted.put(RUN, "cases.probes", texts or None)
    if ORDINAL in names:
        converted.put(_EXAMPLES, "cases.examples", values[_EXAMPLES])


def _own_tests() -> dict[str, Json]:
    """The tests that the file of a clone has beside RAND's; that of the folder one works in."""
    tests = {}
    if _OWN_TESTS.is_file():
        file = _OWN_TESTS.as_posix()
        groups = read_document(_OWN_TESTS, file).data
        try:
            for group, texts in groups.items():
                for name, text in texts.items():
                    changes = "flip" if group == "discriminative_tests" else "none"
                    if name not in NAMES:
                        tests[name] = {"instruction": text, "changes": changes}
        except AttributeError:
            raise InputError(
                "must have groups; each group maps names of tests to texts", file
            ) from None
    return tests
