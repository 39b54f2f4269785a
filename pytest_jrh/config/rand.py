"""The door of the config: files of RAND's harness in words of our own.

A file may be in the one or the other words, or in both; a key that says the same as another one is
refused.
"""

from __future__ import annotations

from typing import Any

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.config.converted import (
    AGENT_PARAMS,
    AGENT_TEMPLATE,
    AGGREGATION,
    COLUMNS,
    DATASET,
    DEBUG,
    FALLBACKS,
    JUDGED,
    KNOWN,
    PARAM_FILES,
    PARAMS,
    PROBES,
    ROWS,
    RUN,
    SECTIONS,
    TEMPLATE,
    UNUSED,
    Converted,
)
from pytest_jrh.config.rand_answers import TEMPLATES, convert_answers, is_of_answers
from pytest_jrh.core.documents import Json, KeyPath, Mistakes, dotted, listed, received
from pytest_jrh.core.text import nearest_hint

_SCALES = {"agent_judge": "binary", "agent_autograder": "ordinal"}
for _name, _answers in TEMPLATES.items():
    _SCALES[_name] = "binary" if _answers else "ordinal"
_FILES: dict[str, KeyPath] = {
    "instruction": ("rand", "instruction_path"),
    "rubric": ("suite", "rubrics"),
}


def convert(data: Json) -> Converted:
    """Convert what is in the words of RAND's files, which is taken out of the data."""
    converted = Converted(data, frozenset(data))
    values = {path: _taken(data, path) for path in KNOWN}
    for section in SECTIONS:
        if (rest := data.pop(section, None)) is not None:
            _refuse_unknown((section,), rest, converted.mistakes)
    converted.unused += [path for path in UNUSED if values[path] is not None]
    if is_of_answers(values[TEMPLATE], values[RUN]):
        convert_answers(converted, values)
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
    _panel(converted, values)
    _of_module(converted, values)
    _scale(converted, values)
    if values[DEBUG] is not None or ("rand", "table") in converted.written:
        converted.put(DEBUG, ("output", "rand"), value=True, is_fallback=True)
    if values[AGGREGATION] not in (None, "majority_vote"):
        converted.mistakes.add(AGGREGATION, received(values[AGGREGATION], "majority_vote or null"))
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
    known_here = [known for known in KNOWN if known[:depth] == path and len(known) > depth]
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
    template = values[AGENT_TEMPLATE] or values[TEMPLATE]
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
    names = values[PARAM_FILES] or {}
    if not isinstance(names, dict):
        converted.mistakes.add(PARAM_FILES, received(names, "a mapping of names to file names"))
        names = {}
    files: list[tuple[KeyPath, Any, KeyPath]] = [(DATASET, values[DATASET], ("suite", "log"))]
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
        elif module is None and ours not in converted.written:
            message = "is missing; must be the name of a folder in inputs/data"
            converted.mistakes.add(("admin", "module_name"), message)
    note = values[PARAMS]
    text = note.get("instruction") if isinstance(note, dict) else None
    if isinstance(text, str) and ("rand", "instruction_path") not in converted.written:
        converted.put((*PARAMS, "instruction"), ("rand", "instruction"), text)


def _scale(converted: Converted, values: dict[KeyPath, Any]) -> None:
    """Make the scale of the template and of the range that RAND's files give."""
    written = TEMPLATE if values[AGENT_TEMPLATE] is None else AGENT_TEMPLATE
    template = values[written]
    if template is None:
        return
    if not isinstance(template, str) or template not in _SCALES:
        expected = " or ".join(f"{name} ({scale})" for name, scale in _SCALES.items())
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
    for path in (AGENT_PARAMS, PARAMS):
        params = values[path]
        for name in names:
            if isinstance(params, dict) and params.get(name) is not None:
                return params[name], (*path, name)
    return None
