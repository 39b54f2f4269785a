"""The door of the config: files of RAND's harness, and ours of before, in words of our own.

Each row of `ROWS` says where a key of these files goes. A file may be in the one or the other
words, or in both; a key that says the same as another one is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.core.stages import EDITOR, PLANNER, SUMMARY, VERIFIER

if TYPE_CHECKING:
    from pytest_jrh.core.documents import KeyPath


AGENT = "test_agent_perturbation_config"
_TESTS = ("admin", "perturbation_config")
_EVALUATION = ("admin", "evaluation_config")
_DATASET = ("admin", "dataset_config")
_SYNTHETIC = "synthetic_data_params"

ROWS: tuple[tuple[KeyPath, KeyPath], ...] = (
    (("admin", "module_name"), ("suite", "name")),
    (("admin", "time_stamp"), ("output", "stamp")),
    (("admin", "output_file_format"), ("output", "table")),
    ((*_TESTS, "use_HITL_process"), ("cases", "review")),
    ((*_TESTS, "tests_to_run"), ("cases", "kinds")),
    ((*_TESTS, "probes"), ("probes",)),
    ((*_EVALUATION, "autograder_model_name"), ("models", "judge")),
    ((*_EVALUATION, "judges"), ("judges",)),
    ((*_EVALUATION, "max_workers"), ("recording", "max_workers")),
    ((*_EVALUATION, "tests_to_evaluate"), ("cases", "judged")),
    ((*_EVALUATION, "metric"), ("output", "metric")),
    ((_SYNTHETIC, "generation_model_name"), ("models", "cases")),
    ((AGENT, "input_log_path"), ("suite", "log")),
    ((AGENT, "input_format"), ("suite", "format")),
    ((AGENT, "cluster_key"), ("cases", "cluster")),
    ((AGENT, "max_sample_mb"), ("suite", "max_sample_mb")),
    ((AGENT, "rubric_path"), ("suite", "rubrics")),
    ((AGENT, "labels"), ("labels",)),
    ((AGENT, "target_rubric_ids"), ("cases", "rubrics")),
    ((AGENT, EDITOR.name), (EDITOR.name,)),
    ((AGENT, PLANNER.name), (EDITOR.name, PLANNER.name)),
    ((AGENT, SUMMARY.name), (EDITOR.name, SUMMARY.name)),
    ((AGENT, VERIFIER.name), (EDITOR.name, VERIFIER.name)),
    ((AGENT, "max_summary_messages"), (EDITOR.name, "summary_turns")),
    ((AGENT, "max_edit_rounds"), ("cases", "edits_at_most")),
    ((AGENT, "score_targets"), ("cases", "scores")),
    ((AGENT, "objective"), ("cases", "objective")),
    ((AGENT, "edits"), ("cases", "edits")),
    ((AGENT, "pass_required"), ("cases", "confirmed")),
    ((AGENT, "sample_num_from_orig"), ("cases", "sample")),
    ((AGENT, "sampling"), ("cases", "sampling")),
    ((AGENT, "sampling_seed"), ("cases", "seed")),
    ((AGENT, "transcript_preprocessors"), ("cases", "preprocess")),
    ((AGENT, "output", "dir"), ("output", "dir")),
    ((AGENT, "output", "results_dir"), ("output", "results")),
    ((AGENT, "output", "write_jsonl"), ("output", "write_jsonl")),
    ((AGENT, "output", "overwrite"), ("cases", "renew")),
    ((AGENT, "output", "rand"), ("output", "rand")),
    (("subset",), ("cases", "subset")),
    (("review", "blind"), ("blind", "always")),
    (("review", "sample"), ("blind", "sample")),
    (("review", "seed"), ("blind", "seed")),
    (("review", "overlap"), ("blind", "overlap")),
    (("review", "labels"), ("blind", "labels")),
    (("replay", "cassette_dir"), ("recording", "dir")),
    (("replay", "record_mode"), ("recording", "mode")),
    (("replay", "judge_record_mode"), ("recording", "judge")),
    (("replay", "frozen"), ("cases", "frozen")),
)
FALLBACKS: tuple[tuple[KeyPath, KeyPath], ...] = (
    ((*_EVALUATION, "repeats"), ("judge", "repeats")),
    ((_SYNTHETIC, "sample_num_from_orig"), ("cases", "sample")),
    ((_SYNTHETIC, "seed"), ("cases", "seed")),
    ((AGENT, "transcript_preprocessor"), ("cases", "preprocess")),
)
"""They count where no other key says it."""
UNUSED: tuple[KeyPath, ...] = (
    ("admin", "test_debug_mode"),
    (*_DATASET, "use_original_data_as_expected"),
    (*_TESTS, "preprocess_columns_map"),
    (*_EVALUATION, "aggregation_method"),
    (*_EVALUATION, "aggregation_reference_column"),
    (*_EVALUATION, "overwrite_results"),
    (*_EVALUATION, "bootstrap_size"),
    (*_EVALUATION, "bootstrap_repetitions"),
    (*_EVALUATION, "get_cost_curves"),
    (_SYNTHETIC, "validation_model_name"),
    (_SYNTHETIC, "max_tokens_generation"),
    (_SYNTHETIC, "max_tokens_validation"),
    (_SYNTHETIC, "max_workers"),
    (_SYNTHETIC, "use_similarity_filter"),
    (_SYNTHETIC, "target_num_per_bucket"),
    (_SYNTHETIC, "similarity_threshold"),
    (_SYNTHETIC, "rescore_sample_size"),
    (_SYNTHETIC, "initial_temp"),
    (_SYNTHETIC, "num_seed_examples_per_generation"),
    (_SYNTHETIC, "temp_increment"),
    (_SYNTHETIC, "max_temp_cap"),
    (_SYNTHETIC, "max_consecutive_failures"),
    (AGENT, "trace_messages"),
    ("test_stochastic_stability_config",),
)
"""Keys of RAND's without meaning for agentic tests: accepted, and named once."""
_PARAM_FILES: KeyPath = (*_DATASET, "default_params_path")
# Of several keys, or of what stands in folders that are named after the module.
_MADE_OF: tuple[KeyPath, ...] = (
    (*_DATASET, "dataset_name"),
    _PARAM_FILES,
    (*_DATASET, "default_params"),
    (*_EVALUATION, "template"),
    (AGENT, "autograder_template"),
    (AGENT, "autograder_default_params"),
)
_KNOWN = (*(written for written, _ in (*ROWS, *FALLBACKS)), *_MADE_OF, *UNUSED)
SECTIONS = tuple(dict.fromkeys(str(path[0]) for path in _KNOWN))
"""The sections that only such files have."""
_SCALES = {"agent_judge": "binary", "agent_autograder": "ordinal"}
# RAND's templates that are not agentic.
_OTHER_TEMPLATES = ("multiclass_judge", "single_autograder", "single_judge", "single_judge_str")
_SMALLEST_PANEL = 2


class Mistake(NamedTuple):
    """What is wrong at a path: an unknown key, beside the `names` of the known ones and the places
    where it is known; a `value` that is not what was `expected`; or what the `message` says.
    """

    path: KeyPath
    message: str = ""
    value: Any = None
    expected: str = ""
    names: tuple[str, ...] = ()
    homes: tuple[KeyPath, ...] = ()
    hint: str = ""


@dataclass
class Converted:
    """A config in our words: `data`, where each of its keys was `written`, the keys of the file
    that are `unused`, and what is in nobody's words.
    """

    data: dict[str, Any] = field(default_factory=dict)
    written: dict[KeyPath, KeyPath] = field(default_factory=dict)
    unused: list[KeyPath] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)


def convert(data: dict[str, Any]) -> Converted:
    """Convert what is in the words of RAND's files."""
    rest = _unshared(data)
    made = Converted()
    moved: list[tuple[KeyPath, KeyPath, Any]] = []
    for rows in (ROWS, FALLBACKS):
        for written, ours in rows:
            value = _taken(rest, written)
            if value is not None:
                moved.append((written, ours, value))
    odd = {path: _taken(rest, path) for path in (*_MADE_OF, *UNUSED)}
    made.unused += [path for path in UNUSED if odd[path] is not None]
    for section in SECTIONS:
        if rest.get(section) is not None:
            _look_at_rest(made, (section,), rest[section])
    made.data = {name: value for name, value in rest.items() if name not in SECTIONS}
    for written, ours, value in moved:
        is_fallback = any(written == source for source, _ in FALLBACKS)
        _put(made, written, ours, value, is_fallback=is_fallback)
    _panel(made, odd)
    _of_module(made, odd)
    _scale(made, odd)
    aggregation = odd[(*_EVALUATION, "aggregation_method")]
    if aggregation not in (None, "majority_vote"):
        path = (*_EVALUATION, "aggregation_method")
        made.mistakes.append(Mistake(path, value=aggregation, expected="majority_vote or null"))
    is_rands = odd["admin", "test_debug_mode"] is not None or ("output", "table") in made.written
    output = made.data.setdefault("output", {}) if is_rands else {}
    if isinstance(output, dict) and is_rands:
        output.setdefault("rand", True)
    return made


def _unshared(value: Any) -> Any:
    """A copy in which nothing stands twice, as what YAML's aliases name does."""
    if isinstance(value, dict):
        return {key: _unshared(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_unshared(item) for item in value]
    return value


def _taken(data: dict[str, Any], path: KeyPath) -> Any:
    """Take the value at a path out of the data; None where there is none."""
    parent: Any = data
    for part in path[:-1]:
        parent = parent.get(part) if isinstance(parent, dict) else None
    if not isinstance(parent, dict):
        return None
    return parent.pop(path[-1], None)


def _put(
    made: Converted,
    written: KeyPath,
    ours: KeyPath,
    value: Any,
    *,
    is_fallback: bool = False,
) -> None:
    parent: Any = made.data
    for part in ours[:-1]:
        if parent.get(part) is None:
            parent[part] = {}
        parent = parent[part]
        if not isinstance(parent, dict):
            return
    before = parent.get(ours[-1])
    if before is None or (isinstance(before, dict) and isinstance(value, dict)):
        # Of a section in parts, such as the editor's and, in it, the planner's.
        parent[ours[-1]] = {**value, **before} if isinstance(before, dict) else value
        made.written[ours] = written
    elif not is_fallback:
        said = ".".join(map(str, made.written.get(ours, ours)))
        made.mistakes.append(Mistake(written, f"{said} says the same; keep one of them"))


def _look_at_rest(made: Converted, path: KeyPath, value: Any) -> None:
    """Look at what is left of a section of RAND's."""
    depth = len(path)
    known_here = [known for known in _KNOWN if known[:depth] == path and len(known) > depth]
    names = tuple(dict.fromkeys(str(known[depth]) for known in known_here))
    if not isinstance(value, dict):
        expected = f"a mapping with the keys {', '.join(names)}"
        made.mistakes.append(Mistake(path, value=value, expected=expected))
        return
    for name, item in value.items():
        place = (*path, name)
        if name not in names:
            homes = tuple(known for known in _KNOWN if known[-1] == name and known != place)
            made.mistakes.append(Mistake(place, names=names, homes=homes))
        elif item is not None:
            _look_at_rest(made, place, item)


def _panel(made: Converted, odd: dict[KeyPath, Any]) -> None:
    """Leave out of a panel what says nothing more: the suite's template, which all judges take."""
    judges = made.data.get("judges")
    entries = judges if isinstance(judges, list) else [judges]
    template = odd[AGENT, "autograder_template"] or odd[(*_EVALUATION, "template")]
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            continue
        path = (*_EVALUATION, "judges", index)
        if entry.pop("preprocess_columns_map", None) is not None:
            made.unused.append((*path, "preprocess_columns_map"))
        if (of_judge := entry.pop("template", None)) not in (None, template):
            expected = f"the suite's, {template}: every judge of a panel takes that one"
            made.mistakes.append(Mistake((*path, "template"), value=of_judge, expected=expected))
    if len(entries) >= _SMALLEST_PANEL and (*_EVALUATION, "aggregation_method") in made.unused:
        made.unused.remove((*_EVALUATION, "aggregation_method"))


def _param_files(made: Converted, odd: dict[KeyPath, Any]) -> dict[str, Any]:
    """The files of `default_params_path`, which may have others of RAND's beside ours."""
    names = odd[_PARAM_FILES] or {}
    if not isinstance(names, dict):
        expected = "a mapping of names to file names"
        made.mistakes.append(Mistake(_PARAM_FILES, value=names, expected=expected))
        return {}
    params = ("instruction", "rubric")
    for name in names:
        if name not in params and get_close_matches(str(name), params, cutoff=0.8):
            made.mistakes.append(Mistake((*_PARAM_FILES, name), names=params))
        elif name not in params and names[name] is not None:
            made.unused.append((*_PARAM_FILES, name))
    return names


def _of_module(made: Converted, odd: dict[KeyPath, Any]) -> None:
    """Place what RAND's files name in the folder of their module."""
    names = _param_files(made, odd)
    files: tuple[tuple[KeyPath, Any, KeyPath], ...] = (
        ((*_DATASET, "dataset_name"), odd[(*_DATASET, "dataset_name")], ("suite", "log")),
        ((*_PARAM_FILES, "rubric"), names.get("rubric"), ("suite", "rubrics")),
        ((*_PARAM_FILES, "instruction"), names.get("instruction"), ("suite", "instruction_path")),
    )
    suite = made.data.get("suite")
    module = suite.get("name") if isinstance(suite, dict) else None
    for written, name, ours in files:
        if name is None:
            continue
        if not isinstance(name, str) or not name.strip():
            made.mistakes.append(Mistake(written, value=name, expected="text"))
        elif isinstance(module, str):
            path = f"inputs/data/{module}/{name.strip()}"
            _put(made, written, ours, path, is_fallback=True)
        elif module is None and ours not in made.written:
            message = "is missing; must be the name of a folder in inputs/data"
            missing = Mistake(("admin", "module_name"), message)
            if missing not in made.mistakes:
                made.mistakes.append(missing)
    params_path = (*_DATASET, "default_params")
    note = odd[params_path]
    if isinstance(note, dict) and isinstance(note.get("instruction"), str):
        written = (*params_path, "instruction")
        if ("suite", "instruction_path") not in made.written and note["instruction"].strip():
            ours = ("suite", "instruction")
            _put(made, written, ours, note["instruction"], is_fallback=True)


def _scale(made: Converted, odd: dict[KeyPath, Any]) -> None:
    """Make the scale of the template and of the range that RAND's files give."""
    written: KeyPath = (AGENT, "autograder_template")
    if odd[written] is None:
        written = (*_EVALUATION, "template")
    template = odd[written]
    if template is None:
        return
    if not isinstance(template, str) or template not in _SCALES:
        expected = "agent_judge (binary) or agent_autograder (ordinal)"
        hint = ""
        if template in _OTHER_TEMPLATES:
            hint = (
                f"RAND's harness has {template} for single answers; here only the agentic ones "
                "exist"
            )
        mistake = Mistake(written, value=template, expected=expected, hint=hint)
        made.mistakes.append(mistake._replace(names=() if hint else tuple(_SCALES)))
        return
    scale: Any = _SCALES[template]
    if scale == "ordinal":
        lowest, highest = (
            _bound(odd, ("lowest_score", "min_score")),
            _bound(odd, ("highest_score", "max_score")),
        )
        if lowest is not None and highest is not None:
            scale, written = [lowest[0], highest[0]], lowest[1]
            made.written["suite", "scale", 1] = highest[1]
    _put(made, written, ("suite", "scale"), scale)


def _bound(odd: dict[KeyPath, Any], names: tuple[str, ...]) -> tuple[Any, KeyPath] | None:
    for path in ((AGENT, "autograder_default_params"), (*_DATASET, "default_params")):
        params = odd[path]
        for name in names:
            if isinstance(params, dict) and params.get(name) is not None:
                return params[name], (*path, name)
    return None


def written_key(ours: KeyPath, written: dict[KeyPath, KeyPath], *, is_rands: bool) -> KeyPath:
    """Where a key of ours is, or would be, in a file; of one `is_rands` that has no such key, what
    RAND calls it.
    """
    for end in range(len(ours), 0, -1):
        if ours[:end] in written:
            return (*written[ours[:end]], *ours[end:])
    if is_rands:
        for end in range(len(ours), 0, -1):
            for source, target in ROWS:
                if target == ours[:end]:
                    return (*source, *ours[end:])
    return ours
