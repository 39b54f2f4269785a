"""The door for RAND's tests of answers: its free-response half in words of our own.

Under RAND's names the tests are kinds and probes of ours, which importing this makes known. RAND
has models change the layout of an answer; here code does, which cannot change more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from pytest_jrh.cases import probes, tests
from pytest_jrh.cases.probes.format_invariance import FORMAT_INVARIANCE
from pytest_jrh.cases.probes.probe import Base, Derived, Variant, shipped
from pytest_jrh.cases.tests import LABELS, PERTURBATION
from pytest_jrh.config.rand import (
    AGENT,
    COLUMNS,
    DEBUG,
    JUDGED,
    RUN,
    TEMPLATE,
    Converted,
    key_path,
    known_names,
)
from pytest_jrh.core.documents import (
    Document,
    Json,
    KeyPath,
    dotted,
    pointer_to,
    read_document,
    read_json,
    read_text,
    received,
)
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.sections import ROW_NUMBER, ConfigSection, Count, Flag, Runs, Takes

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
RandTestName: TypeAlias = Annotated[str, Field(pattern=f"^({_KINDS})$"), Takes(_KINDS)]


def _in_layout(layout: str, base: Base, _variant: Variant, random: Random) -> Derived:
    assert FORMAT_INVARIANCE.derive is not None
    return FORMAT_INVARIANCE.derive(base, Variant(layout), random)


for _name, (_probe, _layout) in _PROBES.items():
    if _probe == FORMAT_INVARIANCE.name:
        # As one by text, whose only variant is that nothing changes.
        probes.OTHER_NAMES[_name] = replace(
            FORMAT_INVARIANCE,
            variants=lambda: (Variant("none"),),
            derive=partial(_in_layout, _layout),
        )


class RandTest(ConfigSection):
    """A test of answers by RAND's name."""

    rows: Runs = 0
    """How many rows of the table are drawn, as RAND draws them; 0 means all."""
    again: Flag = False
    """Whether a row may be drawn again."""
    judged: Flag = True
    """Whether its cases are judged, not only made."""
    seeds: Count = 1
    """How often each of its cases is judged at least, as RAND's harness has seeds for it."""
    repetitions: Count = 1
    """How often for each of the seeds, which no model is sent."""


def instruction(name: str) -> str:
    """What the editor is told to do in a probe of RAND's; in one of layouts it is not asked."""
    probe, variant = _PROBES[name]
    text: str = shipped("rewriting.yml").get(probe, {}).get(variant, variant)
    return text


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
    (*COLUMNS, "request"): ("suite", "format", "messages"),
    (*COLUMNS, "response"): ("suite", "format", "answer"),
    _ID: ("suite", "format", "id"),
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


def convert_answers(converted: Converted, values: dict[KeyPath, Any]) -> bool:
    """Whether a file is about answers, by its judge's template or a test: then the keys that mean
    something else in one about agents are placed, and taken out of the values.
    """
    mistakes, template, names = converted.mistakes, values[TEMPLATE], str(values[RUN])
    if template not in (*TEMPLATES, _CLASSES) and not any(name in names for name in NAMES):
        return False
    if template in [*TEMPLATES]:
        converted.put(TEMPLATE, ("suite", "of"), "answers")
        converted.put(TEMPLATE, ("suite", "answers"), TEMPLATES[template] or None)
    else:
        message, hint = received(template, " or ".join(TEMPLATES)), None
        if template == _CLASSES:
            message = f"got {_CLASSES}, and no file of RAND's says which classes its judge may give"
            hint = "write a config of this plugin's own, whose rubric has classes"
        mistakes.add(TEMPLATE, message, hint)
        values[TEMPLATE] = None
    if values[_SELF_LABELLED] is True:
        message = "got true; the judge would label its own cases, and always be right"
        mistakes.add(_SELF_LABELLED, message, f"name a column of labels in {dotted(_LABEL)}")
    if values[DEBUG] is True:
        message = "got true; every answer would be 0, without a call"
        mistakes.add(DEBUG, message, "pytest --jrh-plan says which calls there would be")

    # Which columns of the table are what; a row without an id is named by its number.
    for written, ours in _PARTS.items():
        if values[written] is not None:
            converted.put(written, ours, pointer_to(str(values[written])))
    converted.put(_ID, _PARTS[_ID], ROW_NUMBER, is_fallback=True)
    column = values[_LABEL] or _LABEL[-1]
    converted.put(_LABEL, ("labels",), {"metadata": column}, is_fallback=True)
    if values[_REFERENCE] not in (None, column):
        expected = f"{column}: its labels are what judges and their majority are held against"
        mistakes.add(_REFERENCE, received(values[_REFERENCE], expected))

    _place_tests(converted, values)
    converted.put(_VERIFIER, ("editor", "verifier", "model"), values[_VERIFIER])
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
        converted.mistakes.add(RUN, f"no test is to be run; must be a list of {', '.join(known)}")
    tests = {}
    texts = {}
    for name in (*names, UNCHANGED):
        if name not in _ROWS_OF:
            texts[name] = {"of": [UNCHANGED], "max_cases": values[_ROWS] or _MOST_CASES}
            texts[name] |= own.get(name) or {"instruction": instruction(name)}
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
        message = f"{name} has to be in {dotted(RUN)} and here, as its cases are made to be judged"
        converted.mistakes.add(JUDGED, message)
    converted.put(RUN, ("rand", "tests"), tests or None)
    converted.put(RUN, ("cases", "probes"), texts or None)
    if ORDINAL in names:
        converted.put(_EXAMPLES, ("cases", "examples"), values[_EXAMPLES])


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
            raise InputError("must be groups of tests, each with its text", file) from None
    return tests
