"""Rubric files, YAML or JSON, as `Rubric` values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh.core import InputError, Problem, listed, nearest_hint, received, shown
from pytest_jrh.core.cases import Rubric
from pytest_jrh.core.documents import (
    CANNOT_TELL,
    Document,
    KeyPath,
    Mistakes,
    as_seen,
    as_word,
    read_document,
)
from pytest_jrh.core.scales import (
    BETWEEN,
    BINARY,
    NO_SUCH_WORDS,
    Mode,
    ScoreLevel,
    named,
    numbered,
    paired,
    scale_of,
    spelled,
)

# How every text begins that `init` leaves for the user to write.
PLACEHOLDER = "Replace this text."
_LEFT_AS_IS = (
    "is still the placeholder that `python -m pytest_jrh init` wrote; replace it with your own text"
)

# The schema is made of tables that a project may add to, so that it is imported after them.
if TYPE_CHECKING:
    from pytest_jrh.config.schema import RubricEntry


def load_rubrics(path: str | Path) -> Sequence[Rubric]:
    """Read the rubrics of a file; raises InputError with all problems."""
    rubrics, problems = _rubrics_of(read_document(Path(path), str(path)), str(path))
    if problems:
        raise InputError(problems)
    return rubrics


def _rubrics_of(document: Document, path: str) -> tuple[list[Rubric], list[Problem]]:
    mistakes = Mistakes()
    entries, prefix = _entries(document.data, mistakes)
    rubrics: dict[str, Rubric] = {}
    for index, entry in enumerate(entries):
        place = (*prefix, index)
        rubric = _rubric(entry, place, path, document, mistakes)
        if rubric is None:
            continue
        if rubric.id in rubrics:
            lines = f"in lines {rubrics[rubric.id].line} and {rubric.line}"
            mistakes.add(
                (*place, "id"),
                f"two rubrics have the id {shown(rubric.id)}, {lines}",
                "ids must be unique, because cases and recordings are named after them",
            )
        rubrics.setdefault(rubric.id, rubric)
    return list(rubrics.values()), [*document.problems, *document.problems_of(mistakes)]


def suite_rubrics(
    document: Document | None,
    path: str,
    target_ids: Sequence[str],
    scale: Mode | list[int] | None,
    within: int | None = None,
    answers: Mapping[Any, str] | None = None,
    orders: int = 0,
) -> tuple[Mode, Sequence[Rubric], Sequence[str], list[Problem]]:
    """The mode of a suite, its rubrics, all ids of its rubric file, and what is wrong with that;
    without `target_ids` all rubrics of the file. `Rubric.file` is the path as given.

    The mode is that of RAND's `scale`, else that of the rubrics. Scores that are at most `within`
    levels off are right. `answers` are what the two of a binary suite are called. In a suite of
    pairs, a judge is shown two answers in so many `orders`.
    """
    rubrics, problems = _rubrics_of(document, path) if document is not None else ([], [])
    targeted = [rubric for rubric in rubrics if not target_ids or rubric.id in target_ids]
    has_scale = scale is not None or any(rubric.score_levels for rubric in targeted)
    mode: Mode = "ordinal" if has_scale and scale != "binary" else "binary"
    if scale is None and any(rubric.classes for rubric in targeted):
        mode = "classes"
    if orders:
        mode = "classes"
    levels: tuple[ScoreLevel, ...] = ()
    if isinstance(scale, list):
        levels = numbered(*scale).levels
    # RAND's judge of two answers leaves the levels of its rubrics out.
    two = BINARY if answers is None else named(answers["1"], answers["0"])
    if any(rubric.not_applicable for rubric in targeted):
        # One prompt asks for the answers of all.
        two = spelled(two)
    for index, rubric in enumerate(targeted):
        offered, key, message, hint = two, "score_levels", "", "give at least two levels"
        if mode == "ordinal":
            rubric = replace(rubric, score_levels=rubric.score_levels or levels)  # noqa: PLW2901
            offered = scale_of(rubric.score_levels, within)
            if len(rubric.score_levels) == 1:
                message = "has a scale with only one score"
            elif not rubric.score_levels:
                message = "has no score_levels, but this suite is ordinal"
                hint = (
                    "add score_levels; or set rand.scale: [1, 5] for rubrics without score_levels"
                )
        if not orders and bool(rubric.classes) != (mode == "classes"):
            key, hint = (
                "classes",
                "in cases.rubrics, choose only rubrics with classes, or only rubrics without",
            )
            message = "has no classes, but another rubric of this suite has classes"
            if rubric.classes:
                message = f"has classes, but this suite is {mode}"
        if rubric.answers is not None:
            key, message = "answers", "has the key answers, which only the command `label` uses"
            hint = "to name the two answers in a suite, set suite.answers"
        if orders:
            offered = paired(orders)
            if rubric.classes or rubric.score_levels or rubric.not_applicable:
                message = "has its own answers; for pairs, the answers are first, second and tie"
                hint = "remove score_levels, classes and not_applicable from the rubric"
        targeted[index] = replace(rubric, answers=rubric.offering(offered))
        if message:
            message = f"the rubric {shown(rubric.id)} {message}"
            file = None if document is None else document.file
            problems.append(Problem(message, file, rubric.line, key, hint))
    return mode, targeted, [rubric.id for rubric in rubrics], problems


def _entries(data: Any, mistakes: Mistakes) -> tuple[list[Any], KeyPath]:
    prefix: KeyPath = ()
    if isinstance(data, dict):
        prefix = ("rubrics",)
        if "rubrics" not in data:
            expected = "a list of rubrics, or a mapping with the key 'rubrics'"
            found_keys = f" with the keys {listed(map(shown, data), 8)}" if data else ""
            mistakes.add((), f"got a mapping{found_keys}; must be {expected}")
            return [], prefix
        data = data["rubrics"]
    if not isinstance(data, list):
        mistakes.add(prefix, received(data, "a list of rubrics, each with an id and instructions"))
        return [], prefix
    if not data:
        mistakes.add(prefix, "the list of rubrics is empty, so there is nothing to judge by")
    return data, prefix


def _rubric(
    entry: Any, path: KeyPath, file: str, document: Document, mistakes: Mistakes
) -> Rubric | None:
    # Loaded here, since sessions without a suite only ask what files look like.
    from pydantic import ValidationError

    from pytest_jrh.config.schema import RubricEntry, misfits

    before = len(mistakes)
    if isinstance(entry, dict):
        # Other keys are a user's own business, unless they are meant to be ours.
        names = RubricEntry.model_fields
        for name in entry:
            close = None if name in names else nearest_hint(name, names, "key", cutoff=0.8)
            if close is not None:
                message = f"unknown key; the keys of a rubric are {listed(map(shown, names))}"
                mistakes.add((*path, name), message, close)
        if (text := document.texts.get((*path, "id"))) is not None:
            entry = {**entry, "id": text}
    try:
        section = RubricEntry.model_validate(entry)
    except ValidationError as error:
        mistakes += misfits(error, RubricEntry, path)
        return None
    instructions = section.instructions or section.instruction
    if instructions is None:
        mistakes.add((*path, "instructions"), "is missing; must be the text of the rule")
    elif section.instructions is not None and section.instruction is not None:
        message = "the rubric has both keys, instructions and instruction"
        mistakes.add((*path, "instruction"), message, "remove one of these keys")
    elif instructions.lstrip().startswith(PLACEHOLDER):
        mistakes.add((*path, "instructions"), _LEFT_AS_IS)
    levels = _levels(section, (*path, "score_levels"), mistakes)
    if section.classes and levels:
        message = "the rubric has both keys, score_levels and classes"
        mistakes.add(
            (*path, "classes"),
            message,
            "keep score_levels if the answers have an order; if not, keep classes",
        )
    taken = dict.fromkeys(NO_SUCH_WORDS, "cannot be a class; for n/a, set not_applicable: TEXT")
    taken[CANNOT_TELL] = "cannot be a class, because people who label can answer this"
    for name in section.classes:
        # No other answer may have it, and a line of a file has to hold it.
        word = as_word(name)
        message = taken.get(word, "")
        if name != as_seen(name) or BETWEEN in name:
            message = f"must be a short name in one line, with single spaces, without {BETWEEN}"
        if message:
            mistakes.add((*path, "classes", name), message)
        taken[word] = "is the name of another class, too (upper and lower case are the same)"
    if len(mistakes) > before or instructions is None:
        return None
    rubric = Rubric(
        section.id,
        instructions,
        levels,
        file,
        document.line(path),
        skips=section.probes.skip if section.probes is not None else (),
        classes=tuple(section.classes.items()),
        not_applicable=section.not_applicable or "",
    )
    if section.answers is None:
        return rubric
    return replace(
        rubric, answers=rubric.offering(named(section.answers["1"], section.answers["0"]))
    )


def _levels(section: RubricEntry, path: KeyPath, mistakes: Mistakes) -> tuple[ScoreLevel, ...]:
    """The levels of a scale, ascending, which must be without gaps."""
    for index, level in enumerate(section.score_levels):
        if level.label.lstrip().startswith(PLACEHOLDER):
            mistakes.add((*path, index, "label"), _LEFT_AS_IS)
    levels = sorted(section.score_levels, key=lambda level: level.score)
    scores = [level.score for level in levels]
    if scores and scores != [*range(scores[0], scores[0] + len(scores))]:
        mistakes.add(
            path,
            f"the scores are {listed(map(str, scores), 8)}, but must have no gaps or repetitions",
        )
    return tuple(ScoreLevel(level.score, level.label) for level in levels)
