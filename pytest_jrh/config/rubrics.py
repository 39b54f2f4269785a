"""Rubric files, YAML or JSON, as `Rubric` values."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.core.documents import (
    Findings,
    KeyPath,
    listed,
    read_document,
    received,
    shown,
)
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.model import Mode, Rubric, ScoreLevel
from pytest_jrh.core.text import is_nearest, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence


LONGEST_SCALE = 1000
# How every text begins that `init` leaves for the user to write.
PLACEHOLDER = "Replace this text."
_LEFT_AS_IS = "is still the placeholder that `python -m pytest_jrh init` wrote"
_LABEL = "text that says when the score is due"
_ENTRY_KEYS = ("id", "instructions", "instruction", "score_levels", "probes")
_LEVEL_KEYS = ("score", "label")
_HEAD_BYTES = 2**16
_HEAD_JSON = re.compile(r"\s*(\[\s*\{|\{(?s:.*?)\"rubrics\"\s*:\s*\[\s*\{)")
_HEAD_YAML = re.compile(r"^(-\s+\S|rubrics[ \t]*:)", re.MULTILINE)
# What stands before a key stands in its line: a run of empty lines must not be looked through from
# each of them.
_ID = re.compile(r"(?m)^(?:[^\S\n]|[\-{\[])*+[\"']?id[\"']?\s*+:|\"id\"\s*+:")
_INSTRUCTIONS = re.compile(
    r"(?m)^(?:[^\S\n]|[\-{\[])*+[\"']?instructions?[\"']?\s*+:|\"instructions?\"\s*+:"
)


def load_rubrics(
    path: str | Path,
    *,
    mode: Mode = "binary",
    score_range: tuple[int, int] | None = None,
    file: str | None = None,
) -> tuple[Rubric, ...]:
    """Read the rubrics of a file, named `file` in messages; raises InputError with all problems."""
    rubrics, problems = read_rubrics(Path(path), file=file)
    if mode == "ordinal":
        rubrics, scale_problems = with_scales(rubrics, score_range, file=file or str(path))
        problems = [*problems, *scale_problems]
    if problems:
        raise InputError(problems)
    return tuple(rubrics)


def read_rubrics(path: Path, *, file: str | None = None) -> tuple[list[Rubric], list[Problem]]:
    """Read what can be read, and say what cannot; `Rubric.file` is the path as given."""
    try:
        document = read_document(path, file=file)
    except InputError as error:
        return [], list(error.problems)
    findings = Findings(document, list(document.problems))
    entries, prefix = _entries(findings)
    rubrics: list[Rubric] = []
    lines: dict[str, int] = {}
    for index, entry in enumerate(entries):
        rubric = _rubric(entry, (*prefix, index), str(path), findings)
        if rubric is None:
            continue
        if rubric.id in lines:
            message = (
                f"duplicate id {shown(rubric.id)}, in lines {lines[rubric.id]} and {rubric.line}"
            )
            findings.add(
                (*prefix, index, "id"),
                message,
                "ids must be unique: they name cases and recordings",
            )
            continue
        lines[rubric.id] = rubric.line
        rubrics.append(rubric)
    return rubrics, findings.problems


def with_scales(
    rubrics: Sequence[Rubric], score_range: tuple[int, int] | None, *, file: str
) -> tuple[list[Rubric], list[Problem]]:
    """Give each rubric without levels the range, and refuse what makes no scale."""
    scaled: list[Rubric] = []
    problems: list[Problem] = []
    for rubric in rubrics:
        levels = rubric.score_levels
        if not levels and score_range is not None:
            lowest, highest = score_range
            levels = tuple(ScoreLevel(score, "") for score in range(lowest, highest + 1))
        if not levels:
            message = (
                f"the rubric {shown(rubric.id)} has no score_levels, and the config gives no "
                "range of scores"
            )
            hint = (
                "give it score_levels, or set lowest_score and highest_score in "
                "autograder_default_params"
            )
            problems.append(Problem(message, file, rubric.line, "score_levels", hint))
        elif len(levels) == 1:
            message = f"the rubric {shown(rubric.id)} has a scale with a single score"
            problems.append(
                Problem(message, file, rubric.line, "score_levels", "give at least two levels")
            )
        else:
            rubric = replace(rubric, score_levels=levels)  # noqa: PLW2901
        scaled.append(rubric)
    return scaled, problems


def looks_like_rubrics(path: Path) -> bool:
    """Whether the first 64 kB of a file look like a list of rubrics; never raises."""
    head = read_head(path)
    shape = _HEAD_JSON.match(head) or _HEAD_YAML.search(head)
    return bool(shape and _ID.search(head) and _INSTRUCTIONS.search(head))


def read_head(path: Path) -> str:
    """Read the first 64 kB of a file as text, or nothing where that cannot be had."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except (OSError, ValueError):
        return ""
    return "" if b"\x00" in head else head.decode("utf-8-sig", errors="replace")


def _entries(findings: Findings) -> tuple[list[Any], KeyPath]:
    data = findings.document.data
    prefix: KeyPath = ()
    if isinstance(data, dict):
        prefix = ("rubrics",)
        if "rubrics" not in data:
            misspelled = nearest("rubrics", data)
            hint = f"rename {misspelled} to rubrics" if misspelled else None
            expected = "a list of rubrics, or a mapping with such a list under the key rubrics"
            found_keys = f" with the keys {listed(data, 8)}" if data else ""
            findings.add((), f"got a mapping of keys{found_keys}; must be {expected}", hint)
            return [], prefix
        data = data["rubrics"]
    if not isinstance(data, list):
        findings.add(prefix, received(data, "a list of rubrics, each with an id and instructions"))
        return [], prefix
    if not data:
        findings.add(prefix, "the list of rubrics is empty; there is nothing to judge by")
    return data, prefix


def _rubric(entry: Any, path: KeyPath, file: str, findings: Findings) -> Rubric | None:
    if not isinstance(entry, dict):
        findings.add(
            path,
            received(
                entry, "a mapping with the keys id, instructions and, if ordinal, score_levels"
            ),
        )
        return None
    before = len(findings.problems)
    _misspelled(entry, _ENTRY_KEYS, path, findings)
    rubric_id = findings.document.texts.get((*path, "id"), entry.get("id"))
    if not isinstance(rubric_id, str) or not rubric_id.strip():
        absent = "the rubric has no id; must be text"
        _missing(entry, "id", absent, "a short name", path, findings)
    instructions = _instructions(entry, path, findings)
    levels = _levels(entry.get("score_levels"), (*path, "score_levels"), findings)
    skips = _skips(entry.get("probes"), (*path, "probes"), findings)
    if len(findings.problems) > before or not isinstance(rubric_id, str) or instructions is None:
        return None
    return Rubric(
        rubric_id.strip(), instructions, levels, file, findings.document.line(path), skips
    )


def _instructions(entry: dict[str, Any], path: KeyPath, findings: Findings) -> str | None:
    if entry.get("instructions") is not None and entry.get("instruction") is not None:
        findings.add(
            (*path, "instruction"),
            "the rubric has both instructions and instruction",
            "keep one of them",
        )
        return None
    key = "instruction" if entry.get("instruction") is not None else "instructions"
    text = entry.get(key)
    if isinstance(text, str) and text.strip():
        if text.lstrip().startswith(PLACEHOLDER):
            findings.add((*path, key), f"{_LEFT_AS_IS}; must be the text of the criterion")
        return text
    absent = f"the rubric has no {key}; must be text"
    _missing(entry, key, absent, "the text of the criterion", path, findings)
    return None


def _missing(
    entry: dict[str, Any], key: str, absent: str, needed: str, path: KeyPath, findings: Findings
) -> None:
    """Say of a text that it is absent, empty, or no text."""
    where, value = (*path, key), entry.get(key)
    if key not in entry:
        findings.add(where, absent)
    elif value is None or isinstance(value, str):
        findings.add(where, f"is empty; must be {needed}")
    else:
        findings.add(where, received(value, "text"))


def _misspelled(
    entry: dict[str, Any], names: Sequence[str], path: KeyPath, findings: Findings
) -> None:
    """Other keys are a user's own business, unless they are meant to be ours."""
    for key in entry:
        if key not in names and (close := nearest(key, names, cutoff=0.8)):
            findings.add(
                (*path, key),
                f"unknown key; the keys here are {listed(names)}",
                f"{close} is the nearest key",
            )


def _levels(value: Any, path: KeyPath, findings: Findings) -> tuple[ScoreLevel, ...]:
    if value is None or value == []:
        return ()
    if not isinstance(value, list):
        findings.add(path, received(value, 'a list of levels such as {score: 0, label: "..."}'))
        return ()
    before = len(findings.problems)
    score_lines: dict[int, int] = {}
    levels: list[ScoreLevel] = []
    for index, entry in enumerate(value):
        level = _level(entry, (*path, index), findings)
        if level is None:
            continue
        line = findings.document.line((*path, index))
        if level.score in score_lines:
            message = (
                f"duplicate score {level.score}, in lines {score_lines[level.score]} and {line}"
            )
            findings.add((*path, index, "score"), message)
        score_lines.setdefault(level.score, line)
        levels.append(level)
    levels.sort(key=lambda level: level.score)
    if len(findings.problems) == before:
        _gaps([level.score for level in levels], path, findings)
    return tuple(levels)


def _skips(value: Any, path: KeyPath, findings: Findings) -> tuple[str, ...]:
    """The probes that a rubric opts out of: `{skip: [NAME]}`."""
    if value is None:
        return ()
    if not isinstance(value, dict) or value.keys() - {"skip"}:
        findings.add(path, received(value, "a mapping such as {skip: [NAME]}"))
        return ()
    names = value.get("skip") or []
    if not isinstance(names, list):
        findings.add((*path, "skip"), received(names, f"a list of probes ({listed(PROBES)})"))
        return ()
    for index, name in enumerate(names):
        if not isinstance(name, str) or name not in PROBES:
            close = nearest(name, PROBES) if isinstance(name, str) else None
            message = received(name, f"a probe: {listed(PROBES)}")
            findings.add((*path, "skip", index), message, is_nearest(close))
    return tuple(name for name in PROBES if name in names)


def _level(entry: Any, path: KeyPath, findings: Findings) -> ScoreLevel | None:
    if not isinstance(entry, dict):
        findings.add(path, received(entry, "a mapping with the keys score and label"))
        return None
    _misspelled(entry, _LEVEL_KEYS, path, findings)
    score, label = entry.get("score"), entry.get("label")
    good = isinstance(score, int) and not isinstance(score, bool)
    if not good and "score" in entry:
        hint = None
        if isinstance(score, str) and score.strip().isdigit():
            hint = f"write {score.strip()} without quotes"
        findings.add((*path, "score"), received(score, "an integer"), hint)
    elif not good:
        findings.add((*path, "score"), "the level has no score; must be an integer")
    if not isinstance(label, str) or not label.strip():
        _missing(
            entry, "label", "the level has no label; must be " + _LABEL, _LABEL, path, findings
        )
        return None
    if label.lstrip().startswith(PLACEHOLDER):
        findings.add((*path, "label"), f"{_LEFT_AS_IS}; must be {_LABEL}")
    return ScoreLevel(score, label) if good and isinstance(score, int) else None


def _gaps(scores: list[int], path: KeyPath, findings: Findings) -> None:
    if scores[-1] - scores[0] >= LONGEST_SCALE:
        findings.add(
            path,
            f"the scores go from {scores[0]} to {scores[-1]}; a scale has at most {LONGEST_SCALE} "
            "levels",
        )
        return
    if absent := [
        str(score) for score in range(scores[0], scores[-1] + 1) if score not in set(scores)
    ]:
        scores_text = ", ".join(map(str, scores))
        findings.add(
            path,
            f"the scores {scores_text} leave a gap: {listed(absent, 8)} missing between "
            f"{scores[0]} and {scores[-1]}",
        )
