"""`python -m pytest_jrh check`: from a table of labels and verdicts to figures, a decision and
reports.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.config.options import REPORT_SUFFIXES
from pytest_jrh.core import InputError, Json, counted, listed, log_line, nearest, one_line, shown
from pytest_jrh.core.documents import as_word
from pytest_jrh.core.scales import NO_SUCH, NOT_APPLICABLE, ONES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_jrh.cli.checking import CheckedTable
    from pytest_jrh.sources.verdicts import VerdictTable


_COLUMNS = {
    "case": "the id of a case",
    "rubric": "the rubric that a row is about",
    "cluster": "a group of rows that depend on each other, such as a task",
    "repeat": "the number of a repeat, if a judge judged a case more than once",
    "judge": "the name of the judge, if each judge has its own rows",
    "annotator": "the name of who gave the label, if each person has their own rows",
    "order": "with --pairs: the order in which a row shows its two answers",
    "settled": "final labels, which override what people said",
}
_OF_SEVERAL = {
    "label": "people's labels; may be given once for each person",
    "verdict": "a judge's verdicts; give it once for each judge",
    "by": "a category to report on; may be given several times",
}
_OF_BASELINE = {
    "proof": "PASS only if a loss of more than --max-drop is unlikely on other cases, too",
    "common": "compare only the cases that both tables have; by default, a missing case fails",
    "same-judge": "the baseline is the same judge with another prompt, not another judge",
    "gate-by": "decide also on each category of --by, with twice --max-drop as the limit",
}


def declare_check(check: argparse.ArgumentParser) -> None:
    """Declare the options; those that are left out have the values of `CheckSettings`."""
    check.argument_default = argparse.SUPPRESS
    check.add_argument(
        "table",
        metavar="TABLE",
        help="CSV (commas, semicolons, tabs), JSON lines, or the results of another tool",
    )
    _declare_columns(check)
    check.add_argument(
        "--baseline",
        metavar="COL_OR_FILE",
        default="",
        help="earlier verdicts on the same cases, to compare with",
    )
    check.add_argument(
        "--max-drop",
        metavar="X",
        type=_share,
        help="the largest loss since the baseline that passes (default: 0.05, which is 5 points)",
    )
    for name, help_text in _OF_BASELINE.items():
        check.add_argument(f"--{name}", action="store_true", help=help_text)
    check.add_argument(
        "--unclear",
        choices=("pass", "fail"),
        help="the exit code of UNCLEAR is 0 (pass) or 1 (fail); default: 1 if a change is unclear",
    )
    check.add_argument(
        "--report",
        metavar="FILE",
        action="append",
        default=[],
        help="write a report: FILE.html, FILE.md, FILE.json, or FILE.xml for JUnit; may be given "
        "several times",
    )
    check.add_argument(
        "-v", "--verbose", action="count", default=0, help="print the figures of each rubric, too"
    )


def _declare_columns(check: argparse.ArgumentParser) -> None:
    """The options about the columns of a table, and about what values mean."""
    columns = check.add_argument_group(
        "columns", "recognized by common names, unless you name them here"
    )
    for name, help_text in _COLUMNS.items():
        columns.add_argument(f"--{name}", metavar="COL", help=help_text)
    for name, help_text in _OF_SEVERAL.items():
        columns.add_argument(f"--{name}", metavar="COL", action="append", help=help_text)
    check.add_argument(
        "--labels",
        metavar="FILE",
        default="",
        help="another file with people's labels",
    )
    declare_meanings(check)
    numbers = check.add_mutually_exclusive_group()
    numbers.add_argument(
        "--threshold",
        metavar="X",
        type=_share,
        help="verdicts are probabilities of a 1: count X or more as 1, less as 0",
    )
    check.add_argument(
        "--error",
        metavar="X",
        type=_share,
        help="with --threshold: the largest share of wrong verdicts to allow among those that "
        "no person checks (default: 0.05)",
    )
    numbers.add_argument(
        "--classes",
        metavar="A,B,...",
        type=lambda text: [name.strip() for name in text.split(",")],
        help="the possible answers, if they are words or numbers without an order, such as "
        "refund,exchange (not needed if labels and verdicts use the same words)",
    )
    numbers.add_argument(
        "--pairs",
        action="store_true",
        help="labels and verdicts say which of two answers is better: first, second or tie",
    )
    numbers.add_argument(
        "--scale",
        metavar="LOW-HIGH",
        type=scale,
        help="the scores of an ordinal scale, such as 1-5",
    )
    check.add_argument(
        "--within",
        metavar="N",
        type=int,
        help="with --scale: a verdict at most N levels from the label is right (default: 0 on up "
        "to 10 levels, otherwise a fiftieth of the scale)",
    )


def declare_meanings(command: argparse.ArgumentParser) -> None:
    """The options that say what values mean."""
    command.add_argument(
        "--map",
        metavar="WORD=VALUE",
        type=_meaning,
        action="append",
        default=[],
        help="what a word means: good=0 (satisfied), bad=1 (violated), poor=2 (a score), or NaN= "
        "(missing)",
    )
    command.add_argument(
        "--one",
        metavar="|".join(ONES),
        type=_meaning_of_one,
        action="append",
        default=[],
        help="what 1, true and yes mean; COL=violated: what they mean in the column COL",
    )


def check_file(options: argparse.Namespace) -> int:
    """Check the table and write the reports; returns 1 for a FAIL, for what is UNCLEAR about a
    change, or for no report.

    Raises `InputError` for what cannot be understood.
    """
    from pytest_jrh.cli.checking import check_table
    from pytest_jrh.reports.ending import Concluded, print_ending, write_reports

    settings = _settings(options)
    inputs = [*filter(None, (options.table, options.baseline, options.labels))]
    reports = [Path(name) for name in dict.fromkeys(options.report)]
    for path in reports:
        if path.suffix.lower() not in REPORT_SUFFIXES:
            raise InputError(
                f"got {shown(str(path))}; must end in {' or '.join(REPORT_SUFFIXES)}",
                key="--report",
            )
        if os.path.realpath(path) in map(os.path.realpath, inputs):
            raise InputError(
                f"got {shown(str(path))}, but the command also reads this file", key="--report"
            )
    checked = check_table(options.table, **settings)
    if checked.judge_names and not checked.session.is_judged:
        if checked.table.table.results:
            raise checked.table.table.results.without_labels()
        message = (
            f"no case has both a label and a verdict; {len(checked.unlabelled):,} of "
            f"{counted(len(checked.table.cases), 'case')} have no label"
        )
        raise InputError(message, options.table)
    readings = [*_readings(checked, options.baseline)]
    written, problems = write_reports(reports, replace(checked.session, about=readings))
    print_ending(
        Concluded(checked.session, checked.passed, written),
        Path.cwd(),
        options.verbose,
        first=map(log_line, readings),
        notices=problems,
    )
    return 0 if checked.passed and not problems else 1


def _settings(options: argparse.Namespace) -> Json:
    """The settings of `check_table` that the options name."""
    from pytest_jrh.cli.checking import CheckSettings

    values = vars(options)
    needs = dict.fromkeys(("max-drop", *_OF_BASELINE), "baseline")
    needs |= {"error": "threshold", "within": "scale", "order": "pairs"}
    for name, needed in needs.items():
        if name.replace("-", "_") in values and values.get(needed, "") == "":
            raise InputError(f"needs --{needed}", key=f"--{name}")
    if "within" in values:
        width = options.scale[1] - options.scale[0]
        if not 0 <= options.within < width:
            raise InputError(
                f"got {options.within}; must be >= 0 and below {width}, the width of the scale",
                key="--within",
            )
    values.update(meanings(options))
    known = CheckSettings.__annotations__
    return {name: value for name, value in values.items() if name in known}


def meanings(options: argparse.Namespace) -> Json:
    """What options say that words, and ones of columns, mean."""
    for name in ("scale", "classes"):
        if options.one and getattr(options, name, None):
            raise InputError(f"cannot be used with --{name}", key="--one")
    by_option: Json = {}
    for name in ("map", "one"):
        by_option[name] = {}
        for word, value in getattr(options, name):
            if by_option[name].setdefault(word, value) != value:
                raise InputError(
                    f"gives {shown(word) if word else '1'} two meanings", key=f"--{name}"
                )
    return by_option


def _meaning(text: str) -> tuple[str, str]:
    word, equals, value = text.rpartition("=")
    if not equals or not word.strip():
        raise argparse.ArgumentTypeError(
            f"got {shown(text)}; must be WORD=VALUE, such as good=satisfied"
        )
    return as_word(word), value.strip()


def _meaning_of_one(text: str) -> tuple[str, str]:
    column, _, said = text.rpartition("=")
    for meaning, words in ONES.items():
        if said in words:
            return column, meaning
    raise argparse.ArgumentTypeError(
        f"got {shown(text)}; must be {' or '.join(ONES)}, alone or after COL="
    )


def scale(text: str) -> tuple[int, int]:
    """The lowest and the highest score of a scale, as an option says them."""
    match = re.fullmatch(r"(-?\d{1,6})-(-?\d{1,6})", text.strip(), re.ASCII)
    low, high = map(int, match.groups()) if match else (0, 0)
    if not 0 < high - low <= 100:  # noqa: PLR2004 - levels
        raise argparse.ArgumentTypeError(
            f"got {shown(text)}; must be the lowest and the highest score, such as 1-5"
        )
    return low, high


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(
            f"got {shown(text)}; must be a number >= 0 and below 1, such as 0.05"
        )
    return share


def _readings(checked: CheckedTable, baseline: str) -> Iterator[str]:
    """What was taken for what, and what was left out."""
    table, values, scale = checked.table, checked.table.values, checked.table.values.scale
    yield _columns_line(table, baseline, has_labels=checked.labels is None)
    for second_file in (checked.labels, checked.earlier):
        if second_file is not None:
            yield _columns_line(second_file)
    meanings = []
    for score in scale.answers:
        name = as_word(scale.words[score])
        words = [word for word in values.meanings[score] if as_word(word) != name]
        if words:
            meanings.append(f"{listed(words, _MOST_WORDS)} = {scale.words[score]}")
    if scale.is_ordered:
        yield f"scores from {scale.scores[0]} to {scale.scores[-1]}"
    elif meanings:
        yield "; ".join(meanings)
    yield from _class_lines(checked)
    if strangers := values.strangers():
        yield f"--map: no label or verdict is {listed(map(shown, strangers))}"
    for column in values.of_numbers:
        event = "violation"
        if values.bare_ones[column] == "passed":
            # So a threshold that is found is not one to give.
            event = "pass; the figures below use 1 - p, the probability of a violation"
        yield f"the numbers in the column {shown(column)} are probabilities of a {event}"
    judges = checked.judge_names
    if judges:
        [grounds] = checked.session.grounds.values()
        bare = 0
        for case in checked.unlabelled:
            bare += not (case.votes or any(map(case.given.get, judges)))
        if count := len(checked.unlabelled) - len(grounds.votes.disputed) - bare:
            but = ", except in the share of violated verdicts" if scale.is_verdict else ""
            yield f"The figures below leave out {counted(count, 'case')} without a label{but}."
        if bare:
            yield f"The figures ignore {counted(bare, 'case')} with neither label nor verdict."
        if count := sum(case.label is not None and not case.given for case in table.cases.values()):
            yield f"The figures ignore {counted(count, 'label')} of cases without a verdict."
    for column, count in values.errors.items():
        yield f"! {shown(column)} has {counted(count, 'spreadsheet error')}, read as no value"
    sets = checked.decision.sets if checked.decision else ()
    if any(of.asked.question == "another" for of in sets):
        yield "the baseline counts as another judge; pass --same-judge if only the prompt is new"
    yield from table.notices


def _columns_line(table: VerdictTable, baseline: str = "", *, has_labels: bool = True) -> str:
    """Which columns of a file were taken for what, and which for nothing."""
    from pytest_jrh.sources.answers import system_fields
    from pytest_jrh.sources.columns import BESIDE, columns_named

    results, columns = table.table.results, table.columns
    parts = []
    for role, names in columns.taken().items():
        is_in_file = role != "label" or has_labels
        # Columns of results have the names of their roles.
        if is_in_file and not (results and names[0].removesuffix("_id") == role):
            parts.append(f"{listed(map(shown, names))} as {role.replace('by', 'category')}")
    if not columns.case:
        parts.append("each row as a case")
    if baseline and not columns.baseline:
        parts.append(f"{shown(baseline)} as baseline")
    systems = system_fields(table.table.columns) if table.systems else []
    if systems:
        parts.append(f"{listed(map(shown, systems))} as systems")
    contents = []
    if results:
        contents.append(f"{results.tool}'s results")
    if parts:
        contents.append(f"used: {', '.join(parts)}")
    line = f"{table.table.file}: {', '.join(contents)}"
    if shown_columns := [*columns.shown, *columns_named(table.table, BESIDE)]:
        line += f"; shown: {listed(map(shown, shown_columns))}"
    used = {*columns.used, *systems, *shown_columns}
    unused = [column for column in table.table.columns if column not in used]
    if unused:
        line += f"; not used: {listed(map(shown, unused))}"
    for column in () if columns.by else unused:
        values = len({*table.table.texts(column)})
        if 1 < values <= len(table.cases) / _FEWEST_OF_SLICE:
            return f"{line}; --by {shlex.quote(column)} shows figures for its {values:,} values"
    return line


def _class_lines(checked: CheckedTable) -> Iterator[str]:
    """What is said of the answers that were taken: classes, and n/a."""
    verdicts, scale = checked.session.verdicts, checked.table.values.scale
    classes = [of for of in scale.classes if not of.figure and of.answer != NOT_APPLICABLE]
    if classes:
        of_pairs = "pairs of answers, of which one is better" if scale.orders else "classes"
        line = f"{of_pairs}: {', '.join(one_line(of.word) for of in classes)}"
        if len(classes) == 2:  # noqa: PLR2004 - two
            line += "; if one is a violation, pass --map WORD=violated --map WORD=satisfied"
        yield line
    said: dict[str, set[int | None]] = {
        "label": {*verdicts.label.names},
        "verdict": {*chain(*verdicts.answers.names)},
    }
    is_labelled = None not in said["label"]
    for case in checked.table.cases.values() if classes else ():
        said["label"].update(case.votes.values())
    for noun, other in (("label", "verdict"), ("verdict", "label")):
        alone = [of.word for of in classes if of.answer in said[other] - said[noun]]
        known = [of.word for of in classes if of.answer in said[noun]]
        ways = []
        for word in alone:
            if match := nearest(word, known):
                ways.append(f"--map {shlex.quote(one_line(f'{word}={match}'))}")
        line = f"no {noun} is {listed(map(shown, alone))}; "
        if ways:
            yield f"{line}for a typo, pass {listed(ways)}; for no value, pass --map WORD="
        elif noun == "label" and alone and is_labelled:
            # A class that a judge never gives is in its figures.
            yield f"{line}to count a word as missing, pass --map WORD="
    if NOT_APPLICABLE in said["label"] | said["verdict"]:
        yield f"{NO_SUCH} counts as an answer; to count {NO_SUCH} as missing, pass --map {NO_SUCH}="


_MOST_WORDS = 6
_FEWEST_OF_SLICE = 20
