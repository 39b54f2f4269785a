"""The door for RAND's tests of answers: its free-response half in words of our own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_jrh.config.converted import (
    AGENT,
    COLUMNS,
    DEBUG,
    JUDGED,
    PARAMS,
    RUN,
    TEMPLATE,
    Converted,
    key_path,
)
from pytest_jrh.config.rand_tests import (
    FLIP,
    NAMES,
    ORDINAL,
    REPEATED,
    UNCHANGED,
    instruction,
)
from pytest_jrh.core.documents import (
    Document,
    Json,
    KeyPath,
    dotted,
    listed,
    pointer_to,
    read_document,
    read_json,
    read_text,
    received,
)
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.sections import ROW_NUMBER
from pytest_jrh.core.text import nearest_hint

_SELF_LABELLED = key_path("admin.dataset_config.use_original_data_as_expected")
_REFERENCE = key_path("admin.evaluation_config.aggregation_reference_column")
_VERIFIER = key_path("synthetic_data_params.validation_model_name")
_ROWS = key_path("synthetic_data_params.target_num_per_bucket")
_ROWS_OF_ORDINAL = key_path("synthetic_data_params.sample_num_from_orig")
_EXAMPLES = key_path("synthetic_data_params.num_seed_examples_per_generation")
_SEED = key_path("synthetic_data_params.seed")
_STABILITY = key_path("test_stochastic_stability_config")
_USED = (COLUMNS, DEBUG, _SELF_LABELLED, _REFERENCE, _VERIFIER, _ROWS, _EXAMPLES, _STABILITY)

TEMPLATES: Mapping[str, Json] = {
    "single_judge": {"1": "true", "0": "false"},
    "single_judge_str": {"1": "Y", "0": "N"},
    "single_autograder": {},
}
"""By the template of a judge what its answers 1 and 0 are called; nothing where it gives scores."""
_CLASSES = "multiclass_judge"
# What RAND takes for 1, and what for 0.
_MEANINGS = {"1": 1, "true": 1, "yes": 1, "y": 1, "0": 0, "false": 0, "no": 0, "n": 0}
_PARTS = {"request": "messages", "response": "answer", "original_idx": "id"}
_LABEL = "expected"
_OF_STABILITY = ("sample_num_from_orig", "number_of_seeds", "repetitions", "seed")
_OWN_TESTS = Path("prompts/synthetic_generation_prompts/basic_perturbation_instructions.json")
_FLIPPING = "discriminative_tests"
_ALL = 1_000_000


def is_of_answers(template: Any, tests: Any) -> bool:
    """Whether a file is about answers: by the template of its judge, or by a test."""
    names = tests if isinstance(tests, list) else []
    return template in (*TEMPLATES, _CLASSES) or any(name in NAMES for name in names)


def question(note: str) -> Callable[[Path, str], Document]:
    """Reads a rubric that is plain text, behind the note to the judge: editor and verifier are then
    asked the judge's own question.
    """

    def read(path: Path, file: str) -> Document:
        parts = [note.strip(), read_text(path, file).strip()]
        text = "\n\n".join(filter(None, parts))
        return read_json(json.dumps([{"id": path.stem, "instructions": text}]), file)

    return read


def convert_answers(converted: Converted, values: dict[KeyPath, Any]) -> None:
    """Place the keys of a file about answers that mean something else in one about agents, whose
    section is left out.
    """
    given = dict(values)
    of_agents = [path for path in values if path[0] == AGENT]
    for path in (RUN, JUDGED, _ROWS_OF_ORDINAL, _SEED, *of_agents):
        values[path] = None
    unused = [path for path in converted.unused if path not in (*_USED, *of_agents)]
    if given[_SEED] is not None:
        unused.append(_SEED)
    if any(given[path] is not None for path in of_agents):
        unused.append((AGENT,))
    converted.unused = unused
    if given[TEMPLATE] not in TEMPLATES:
        values[TEMPLATE] = None
    _place_scale(converted, given)
    _refuse(converted, given)
    _place_columns(converted, given)
    _place_tests(converted, given)
    if given[_VERIFIER] is not None:
        converted.put(_VERIFIER, ("editor", "verifier"), {"model": given[_VERIFIER]})


def _place_scale(converted: Converted, given: Mapping[KeyPath, Any]) -> None:
    """Place what the judge answers: by its template, and for scores by their ends."""
    template = given[TEMPLATE]
    if template not in TEMPLATES:
        message = received(template, " or ".join(TEMPLATES))
        if template is None:
            message = f"is missing; must be {' or '.join(TEMPLATES)}"
        elif template == _CLASSES:
            message = f"got {_CLASSES}; a judge of classes without an order cannot be tested yet"
        converted.mistakes.add(TEMPLATE, message)
        return
    converted.put(TEMPLATE, ("suite", "of"), "answers")
    params = given[PARAMS] if isinstance(given[PARAMS], dict) else {}
    known = {"instruction"}
    answers = TEMPLATES[template]
    if answers:
        converted.put(TEMPLATE, ("suite", "answers"), answers)
        judge = converted.data.get("judge")
        if isinstance(judge, dict) and judge.get("prompt_path"):
            # A prompt of RAND's asks for these words, and models write them in capitals or not.
            words: dict[str, int] = {}
            for score, word in answers.items():
                words |= {word: int(score), word.capitalize(): int(score)}
            converted.put(TEMPLATE, ("judge", "score_map"), words, is_fallback=True)
    else:
        known |= {"lowest_score", "highest_score"}
        for name in sorted(known - params.keys() - {"instruction"}):
            converted.mistakes.add((*PARAMS, name), "is missing; must be an end of the scale")
    for name in params:
        if name == "rubric":
            message = "the rubric is a file: name it in default_params_path"
            converted.mistakes.add((*PARAMS, name), message)
        elif name not in known:
            converted.unused.append((*PARAMS, name))


def _refuse(converted: Converted, given: Mapping[KeyPath, Any]) -> None:
    """Refuse what would test no judge."""
    if given[_SELF_LABELLED] is True:
        message = "got true; the judge would label its own cases, and always be right"
        hint = f"name the column of the labels in {dotted((*COLUMNS, _LABEL))}"
        converted.mistakes.add(_SELF_LABELLED, message, hint)
    if given[DEBUG] is True:
        message = "got true; every answer would be 0, without a call"
        converted.mistakes.add(DEBUG, message, "pytest --jrh-plan says which calls there would be")


def _place_columns(converted: Converted, given: Mapping[KeyPath, Any]) -> None:
    """Place which columns of the table are what; a row without an id is named by its number."""
    columns = given[COLUMNS] or {}
    parts = (*_PARTS, _LABEL)
    if not isinstance(columns, dict):
        converted.mistakes.add(COLUMNS, received(columns, f"a mapping of {listed(parts)}"))
        return
    for role, column in columns.items():
        place = (*COLUMNS, role)
        if role not in parts:
            message = f"unknown key; the keys of {dotted(COLUMNS)} are {listed(parts)}"
            converted.mistakes.add(place, message, nearest_hint(str(role), parts, "key"))
        elif not isinstance(column, str | None):
            converted.mistakes.add(place, received(column, "the name of a column"))
        elif column and role in _PARTS:
            converted.put(place, ("suite", "format", _PARTS[role]), pointer_to(column))
    converted.put(COLUMNS, ("suite", "format", "id"), ROW_NUMBER, is_fallback=True)
    label = columns.get(_LABEL) or _LABEL
    labels: Json = {"metadata": label}
    if TEMPLATES.get(given[TEMPLATE]):
        labels["map"] = dict(_MEANINGS)
    converted.put((*COLUMNS, _LABEL), ("labels",), labels, is_fallback=True)
    if given[_REFERENCE] not in (None, label):
        message = received(given[_REFERENCE], f"{label}, the labels of all judges and of the panel")
        converted.mistakes.add(_REFERENCE, message)


def _place_tests(converted: Converted, given: Mapping[KeyPath, Any]) -> None:
    """Place the tests by RAND's names, each with the rows that RAND draws for it, and those of the
    user's own as probes by text.
    """
    own: dict[str, Json] = {}
    names = _names(converted, RUN, given[RUN], own)
    judged = _names(converted, JUDGED, given[JUDGED], own)
    for index, name in enumerate(judged):
        if name not in names:
            message = f"got {name}, which is not in {dotted(RUN)} ({listed(names)})"
            converted.mistakes.add((*JUDGED, index), message, f"add {name} there")
    rows = given[_ROWS]
    of_ordinal = {"rows": given[_ROWS_OF_ORDINAL], "again": True}
    stability = _stability(converted, given[_STABILITY])
    sections: dict[str, Json] = {
        UNCHANGED: {"rows": rows},
        FLIP: {"rows": rows},
        ORDINAL: of_ordinal,
        REPEATED[0]: stability,
        REPEATED[1]: {**stability, "rows": rows},
    }
    sources = {ORDINAL: _ROWS_OF_ORDINAL, REPEATED[0]: (*_STABILITY, _OF_STABILITY[0])}
    tests: dict[str, Json] = {}
    texts: dict[str, Json] = {}
    for name in names:
        is_judged = not judged or name in judged
        if name in sections:
            tests[name] = {**sections[name], "judged": is_judged}
            converted.written["rand", "tests", name, "rows"] = sources.get(name, _ROWS)
            continue
        if not is_judged:
            message = f"leaves out {name}, whose cases are made to be judged"
            converted.mistakes.add(JUDGED, message, f"add it, or leave it out of {dotted(RUN)}")
        # What a probe changes are the rows as they are.
        tests.setdefault(UNCHANGED, sections[UNCHANGED])
        section = own.get(name) or {"instruction": instruction(name)}
        texts[name] = {**section, "of": [UNCHANGED], "max_cases": rows or _ALL}
        converted.written["cases", "probes", name, "max_cases"] = _ROWS
    converted.put(RUN, ("rand", "tests"), tests or None)
    converted.put(RUN, ("cases", "probes"), texts or None)
    if ORDINAL in names:
        converted.put(_EXAMPLES, ("cases", "examples"), given[_EXAMPLES])


def _stability(converted: Converted, section: Any) -> Json:
    """How many rows are judged how often: by each of the seeds, which nobody is sent, so often."""
    if section is None:
        return {}
    if not isinstance(section, dict):
        expected = f"a mapping with the keys {listed(_OF_STABILITY)}"
        converted.mistakes.add(_STABILITY, received(section, expected))
        return {}
    for name in section:
        if name not in _OF_STABILITY:
            message = f"unknown key; the keys of {dotted(_STABILITY)} are {listed(_OF_STABILITY)}"
            converted.mistakes.add((*_STABILITY, name), message)
    repeats = 1
    for name in ("number_of_seeds", "repetitions"):
        number = section.get(name, 1)
        if isinstance(number, int) and number > 0:
            repeats *= number
        else:
            converted.mistakes.add((*_STABILITY, name), received(number, "an integer >= 1"))
    return {"rows": section.get(_OF_STABILITY[0]), "repeats": repeats}


def _names(converted: Converted, path: KeyPath, written: Any, own: dict[str, Json]) -> list[str]:
    """The tests of a list; of the user's own, which are taken to be `own`, what the editor is to
    do.
    """
    known = (*NAMES, UNCHANGED)
    if written is None:
        return []
    if not isinstance(written, list):
        converted.mistakes.add(path, received(written, f"a list of tests ({listed(known, 20)})"))
        return []
    if any(name not in known for name in written):
        own.update(_own_tests(converted, path))
    names = []
    for index, name in enumerate(written):
        if name in (*known, *own):
            names.append(name)
            continue
        message = received(name, " or ".join((*known, *own)))
        hint = nearest_hint(str(name), (*known, *own)) or f"name it in {_OWN_TESTS.as_posix()}"
        converted.mistakes.add((*path, index), message, hint)
    return list(dict.fromkeys(names))


def _own_tests(converted: Converted, path: KeyPath) -> dict[str, Json]:
    """The tests that the file of a clone has beside RAND's; that of the folder one works in."""
    if not _OWN_TESTS.is_file():
        return {}
    try:
        groups = read_document(_OWN_TESTS, _OWN_TESTS.as_posix()).data
    except InputError as error:
        converted.mistakes.add(path, str(error))
        return {}
    tests: dict[str, Json] = {}
    for group, texts in groups.items() if isinstance(groups, dict) else ():
        for name, text in texts.items() if isinstance(texts, dict) else ():
            if name not in NAMES:
                changes = "flip" if group == _FLIPPING else "none"
                tests[name] = {"instruction": text, "changes": changes}
    return tests
