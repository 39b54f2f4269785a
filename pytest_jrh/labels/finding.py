"""The labels of a suite's runs, from all the places that its config names (rule N1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.documents.pointers import MISSING, at, pointer_to
from pytest_jrh.documents.problems import listed, printable, shown
from pytest_jrh.errors import Problem
from pytest_jrh.labels.joining import JoinedLabels, Joiner, LabelKey, Reading
from pytest_jrh.labels.rows import LabelRow, read_rows
from pytest_jrh.labels.values import as_text
from pytest_jrh.sources.clusters import top_field
from pytest_jrh.text import counted, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_jrh.models import Label, RunSummary
    from pytest_jrh.sources.source import Source
    from pytest_jrh.suite.places import Places
    from pytest_jrh.suite.suite import LabelSettings, Suite

# What Inspect's own scorers say of a right and of a wrong answer.
_SCORER_MAP: Mapping[str, int] = {"C": 0, "I": 1}


def find_labels(
    suite: Suite, source: Source, runs: Sequence[RunSummary], places: Places
) -> JoinedLabels:
    """Find the labels of the runs; `places` names files in messages.

    What is wrong with any label is in the `problems`, and so is it where there is none at all.
    """
    whole = JoinedLabels()
    origins: dict[LabelKey, str] = {}
    for settings in suite.labels:
        aliases = source.aliases() if settings.path is not None else {}
        joiner = Joiner(runs, suite.rubrics, suite.untargeted, aliases)
        if settings.path is not None:
            found = _from_file(settings, settings.path, suite, joiner, places)
        else:
            found = _from_log(settings, suite, source, runs, joiner)
        whole.problems += found.problems
        whole.notices += found.notices
        where = places.name(settings.path) if settings.path is not None else settings.key
        for key, label in found.labels.items():
            if key in origins:
                whole.problems.append(_twice(key, where, origins[key], settings))
                break
            origins[key] = where
            whole.labels[key] = label
    if not whole.labels and not whole.problems:
        message = "no run has a label"
        whole.problems.append(Problem(message, key=suite.labels[0].key))
    # In the order of the log, whatever the order of the labels.
    whole.labels = _in_order(whole.labels, suite, runs)
    return whole


def _from_file(
    settings: LabelSettings, path: Path, suite: Suite, joiner: Joiner, places: Places
) -> JoinedLabels:
    file = places.name(path)
    read = read_rows(path, file=file)
    joined = joiner.join(read.rows, _reading(settings, suite, file))
    joined.problems = [*read.problems, *joined.problems]
    if settings.split and not joined.labels and not joined.problems:
        joined.problems.append(_no_split(settings, read.rows))
    if read.unused:
        joined.notices.append(f"{file}: columns that are not used: {listed(read.unused)}.")
    return joined


def _from_log(
    settings: LabelSettings,
    suite: Suite,
    source: Source,
    runs: Sequence[RunSummary],
    joiner: Joiner,
) -> JoinedLabels:
    """Labels that the log itself has; runs without the score or the field have none."""
    name = settings.scorer or settings.metadata
    values = _values(settings, source)
    known = {(run.run_id, run.epoch) for run in runs}
    rows = [
        LabelRow(run_id, value, epoch=epoch)
        for (run_id, epoch), value in values.items()
        if (run_id, epoch) in known and value is not None
    ]
    if not rows:
        return JoinedLabels(problems=[_nothing_there(settings, source)])
    if problem := _not_a_label(settings, suite, rows):
        return JoinedLabels(problems=[problem])
    joined = joiner.join(rows, _reading(settings, suite, f"{settings.key}: {name}"))
    joined.problems = _once([_of_config(settings, problem) for problem in joined.problems])
    if without := len(known) - len(rows):
        what = "score of" if settings.scorer else "field"
        joined.notices.append(f"{counted(without, 'run')} without the {what} {name}: no label.")
    return joined


def _values(settings: LabelSettings, source: Source) -> dict[tuple[str, int], object]:
    """What the log has of each run; None where it has nothing."""
    if settings.scorer:
        name, values = settings.scorer, source.scores()
    else:
        name = settings.metadata
        values = source.metadata(top_field(name))
    pointer = name if name.startswith("/") else pointer_to(name)
    found = {key: at(given, pointer) for key, given in values}
    return {key: None if value is MISSING else value for key, value in found.items()}


def _reading(settings: LabelSettings, suite: Suite, file: str) -> Reading:
    mapping = settings.map or (_SCORER_MAP if settings.scorer and suite.mode == "binary" else {})
    return Reading(
        file=file,
        rubric_id=settings.rubric_id,
        map=mapping,
        by=settings.by,
        split=settings.split,
        ordinal=suite.mode == "ordinal",
    )


def _nothing_there(settings: LabelSettings, source: Source) -> Problem:
    """No run has the score, or the field: say what there is."""
    name = settings.scorer or settings.metadata
    if settings.scorer:
        there = dict.fromkeys(each for _, scores in source.scores() for each in scores)
        what = f"the scorers are {listed(there)}" if there else "the log has no scores"
    else:
        fields = source.metadata(top_field(settings.metadata))
        there = dict.fromkeys(each for _, metadata in fields for each in metadata)
        what = f"the fields are {listed(there)}" if there else "no run has metadata"
    close = nearest(name, there)
    hint = f"{printable(close)} is the nearest" if close else None
    return Problem(f"got {shown(name)}, which no run has; {what}", key=settings.key, hint=hint)


def _not_a_label(settings: LabelSettings, suite: Suite, rows: Sequence[LabelRow]) -> Problem | None:
    """Refuse values of the log of which nobody has said what they mean.

    1 is violated on the scale of verdicts, and right on that of most scorers and rewards.
    """
    if settings.map or suite.mode == "ordinal":
        return None
    odd = [row.label for row in rows if not isinstance(row.label, str)]
    if not odd:
        return None
    values = sorted({as_text(value) for value in odd})
    hint = (
        f"say which are which: map: {{{values[0]}: satisfied"
        + (f", {values[1]}: violated" if len(values) > 1 else "")
        + "}, or the other way round"
    )
    message = f"has the values {listed(values, 5)}, and no map says which of them is violated"
    return Problem(message, key=settings.key, hint=hint)


def _of_config(settings: LabelSettings, problem: Problem) -> Problem:
    """A problem of the log's values, at the place of the config that names them."""
    place = settings.key.rpartition(".")[0]
    return Problem(problem.message, key=f"{place}.map", hint=problem.hint)


def _once(problems: Iterable[Problem]) -> list[Problem]:
    return list(dict.fromkeys(problems))


def _twice(key: LabelKey, where: str, other: str, settings: LabelSettings) -> Problem:
    rubric_id, run_id, epoch = key
    message = (
        f"the run {shown(run_id)} (epoch {epoch}) has a label under {shown(rubric_id)} in {where} "
        f"and in {other}"
    )
    return Problem(message, key=settings.key, hint="keep one of them")


def _no_split(settings: LabelSettings, rows: Sequence[LabelRow]) -> Problem:
    splits = dict.fromkeys(row.split for row in rows if row.split)
    close = nearest(settings.split, splits)
    what = f"the splits are {listed(splits)}" if splits else "no line names a split"
    message = f"got {shown(settings.split)}; {what}"
    place = settings.key.rpartition(".")[0]
    hint = f"{printable(close)} is the nearest" if close else None
    return Problem(message, key=f"{place}.split", hint=hint)


def _in_order(
    labels: Mapping[LabelKey, Label], suite: Suite, runs: Sequence[RunSummary]
) -> dict[LabelKey, Label]:
    ordered = ((rubric.id, run.run_id, run.epoch) for rubric in suite.rubrics for run in runs)
    return {key: labels[key] for key in ordered if key in labels}
