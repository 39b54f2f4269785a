"""The rule held against judges of known error rates: whole sessions, from verdicts to findings."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.checks import Check, error_of, mean, table
from pytest_jrh.core import counted
from pytest_jrh.core.cases import CaseSpec, Outcome
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.scales import BINARY, Scale, classed, most_frequent, numbered
from pytest_jrh.stats.changes import Asked, Question, SetChange, is_better, set_changes
from pytest_jrh.stats.verdicts import Coded, Verdicts
from pytest_jrh.store.ledger import case_result

Marks: TypeAlias = npt.NDArray[np.bool_]
Scores: TypeAlias = npt.NDArray[np.int64]

SESSIONS, CLOSE_SESSIONS = 400, 1_600
_SESSIONS_TEXT = (
    f"{SESSIONS} sessions a cell, {CLOSE_SESSIONS:,} where these are less than two standard errors "
    "from a limit."
)
MAX_DROP = 0.05
WRONG = 0.1
"""The share of cases that a judge gets wrong anyhow."""
# A figure of a cell may differ so much from the one that was asked for.
_TOLERANCE = 5
# What is as good as before FAILs in no cell more often.
_MOST_FAILS = 8
# Another model that is as good is called better in no more.
_MOST_BETTER = 6
# The same judge asked again, at this flicker and with ten violations or more, is exit code 1 in no
# more.
_USUAL_FLICKER, _MOST_EXITS = 0.05, 15
_VIOLATED, _SATISFIED, _PROBE = "agent_perturbation", "agent_positives", "position"


class Suite(NamedTuple):
    """As many satisfied cases as violations, which take turns under the rubrics of a run.

    With a `width` they are judged on a scale from 0 to that. A probe has changed `probed` cases
    more. With `classes` there are so many cases of each, the second in the place of violations.
    """

    violations: int
    rubrics: int
    width: int = 0
    probed: int = 0
    classes: int = 0

    @property
    def scale(self) -> Scale:
        """The answers on offer."""
        if self.classes:
            return classed(tuple((f"class {number}", "") for number in range(self.classes)))
        return numbered(0, self.width) if self.width else BINARY

    @property
    def text(self) -> str:
        """How many cases it has, and of what."""
        cases = counted(self.violations, "violation")
        if self.width:
            cases = f"{2 * self.violations} cases on 0-{self.width}"
        if self.classes:
            cases = f"{self.classes} classes of {self.violations} cases"
        text = f"{cases}, {counted(self.rubrics, 'rubric')}"
        return f"{text}, {self.probed} of a probe" if self.probed else text


@dataclass(frozen=True, eq=False)
class Cases:
    """The cases of a suite: results without verdicts, and what is drawn by, in the order of these.

    `verdicts` is the table of the results.
    """

    suite: Suite
    results: Sequence[CaseResult]
    verdicts: Verdicts
    labels: Scores
    rubrics: Scores
    runs: Scores
    probed: Marks

    @property
    def violated(self) -> Marks:
        """The violations that no probe has changed."""
        found: Marks = (self.labels == 1) & ~self.probed
        return found


@lru_cache(maxsize=64)
def cases_of(suite: Suite) -> Cases:
    """The cases of a suite, made once for all of its sessions."""
    violations, rubrics, width, probed, classes = suite
    places = np.array([*range(violations)] * 2 + [*range(probed)])
    labels = np.repeat([1, 0, 1], [violations, violations, probed])
    tests = np.repeat([_VIOLATED, _SATISFIED, _PROBE], [violations, violations, probed])
    if classes:
        places = np.arange(classes * violations)
        labels, tests = places % classes, np.repeat([_SATISFIED], len(places))
    codes = suite.scale.answers
    if width:
        labels = np.random.default_rng(0).integers(0, width + 1, len(places))
    results = []
    for place, label, test in zip(places.tolist(), labels.tolist(), tests.tolist(), strict=True):
        spec = CaseSpec("s", test, f"rubric-{place % rubrics}", f"run-{place // rubrics:03}", 1)
        if test == _PROBE:
            spec = replace(spec, base=_VIOLATED, variant="swapped")
        if width:
            spec = replace(spec, target_score=label)
        result = case_result(spec, None, judge_digest="a" * 64)
        results.append(
            replace(
                result,
                label=codes[label] if classes else label,
                answers=suite.scale.line,
                within=suite.scale.within,
                case_digest="d" * 64,
            )
        )
    # A session has its cases in order of their ids.
    order = sorted(range(len(results)), key=lambda number: results[number].case_id)
    results = [results[number] for number in order]
    scales = {("s", result.rubric_id): suite.scale for result in results}
    places = places[order]
    return Cases(
        suite,
        results,
        Verdicts.of(results, scales),
        labels[order],
        places % rubrics,
        places // rubrics,
        tests[order] == _PROBE,
    )


@dataclass(frozen=True, eq=False)
class Session:
    """The verdicts before and now on the cases of a suite, a row of repeats for each."""

    cases: Cases
    before: Scores
    now: Scores

    @property
    def verdicts(self) -> Verdicts:
        """What a session compares, as `stats.verdicts.compare` makes it of results."""
        of_suite, scale = self.cases.verdicts, self.cases.suite.scale
        answers = [*map(tuple, self.now.tolist())]
        scores = [*map(most_frequent, answers)]
        outcomes: list[Outcome] = []
        for score, label in zip(scores, of_suite.label.values, strict=True):
            outcomes.append("agree" if scale.accepts(score, label) else "disagree")
        return replace(
            of_suite,
            answers=Coded.of(answers),
            score=Coded.of(scores),
            outcome=Coded.of(outcomes),
            before=Coded.of(map(tuple, self.before.tolist())),
        )

    def changes(self, question: Question) -> Sequence[SetChange]:
        """What the rule says of each set."""
        return set_changes(self.verdicts, MAX_DROP, {"": Asked(question)})


Draw: TypeAlias = Callable[[np.random.Generator, Cases], tuple[Scores, Scores]]
"""Draws which cases a judge gets wrong for good before and now, on a scale by how many levels."""


def unchanged(rng: np.random.Generator, cases: Cases) -> tuple[Scores, Scores]:
    """The same cases wrong on both sides; on a scale a tenth of it too high or too low."""
    wrong = (rng.random(len(cases.labels)) < WRONG).astype(int)
    if cases.suite.width:
        wrong = wrong * _step(cases) * rng.choice([-1, 1], len(wrong))
    return wrong, wrong


def neutral(rng: np.random.Generator, cases: Cases, *, share: float) -> tuple[Scores, Scores]:
    """So large a share of the cases moves either way."""
    wrong, _ = unchanged(rng, cases)
    moved = rng.random(len(wrong)) < np.where(wrong, share / WRONG, share / (1 - WRONG))
    return wrong, wrong ^ moved


def everywhere(rng: np.random.Generator, cases: Cases, *, share: float) -> tuple[Scores, Scores]:
    """So large a share of all cases is newly wrong."""
    wrong, _ = unchanged(rng, cases)
    return wrong, wrong | (rng.random(len(wrong)) < share)


def lost(
    rng: np.random.Generator,
    cases: Cases,
    *,
    share: float,
    among: Literal["violations", "rubric", "probe"] = "violations",
) -> tuple[Scores, Scores]:
    """So large a share, rounded up, of the violations is newly wrong, of those of one rubric, or of
    what the probe has changed.
    """
    wrong, _ = unchanged(rng, cases)
    members = cases.probed if among == "probe" else cases.violated
    if among == "rubric":
        members = members & (cases.rubrics == 0)
    right = np.flatnonzero(members & (wrong == 0))
    number = min(len(right), math.ceil(share * members.sum() - 1e-9))
    now = wrong.copy()
    now[rng.choice(right, number, replace=False)] = 1
    return wrong, now


def as_good(rng: np.random.Generator, cases: Cases, *, together: float) -> tuple[Scores, Scores]:
    """Other cases wrong on either side, as many; `together` is their correlation in a run."""
    return _by_runs(rng, cases, WRONG, together), _by_runs(rng, cases, WRONG, together)


def _by_runs(rng: np.random.Generator, cases: Cases, share: float, together: float) -> Scores:
    """So large a share of cases wrong, with a correlation in runs."""
    runs = int(cases.runs.max()) + 1
    of_runs = (rng.random(runs) < share).astype(float)
    if together < 1:
        both = (1 - together) / together
        of_runs = rng.beta(share * both, (1 - share) * both, runs)
    wrong: Marks = rng.random(len(cases.runs)) < of_runs[cases.runs]
    return wrong.astype(int)


def higher(rng: np.random.Generator, cases: Cases, *, share: float) -> tuple[Scores, Scores]:
    """All scores are higher by a share of the scale, by a level more or less where it is none."""
    off, _ = unchanged(rng, cases)
    levels = share * cases.suite.width
    return off, off + np.floor(levels + rng.random(len(off))).astype(int)


def _step(cases: Cases) -> int:
    """How many levels a wrong score is off."""
    return max(1, round(WRONG * cases.suite.width))


def _verdicts(
    rng: np.random.Generator, cases: Cases, wrong: Scores, flicker: float, repeats: int
) -> Scores:
    labels = cases.labels[:, None]
    turned = (rng.random((len(labels), repeats)) < flicker).astype(int)
    if cases.suite.classes:
        return _classes(rng, cases, wrong[:, None], turned)
    if not cases.suite.width:
        scores: Scores = labels ^ wrong[:, None] ^ turned
        return scores
    by = turned * _step(cases) * rng.choice([-1, 1], turned.shape)
    levels: Scores = np.clip(labels + wrong[:, None] + by, 0, cases.suite.width)
    return levels


def _classes(rng: np.random.Generator, cases: Cases, wrong: Scores, turned: Scores) -> Scores:
    """A wrong verdict is of one other class, a turned one of any."""
    most = cases.suite.classes
    other = 1 + cases.runs[:, None] % (most - 1)
    any_other = rng.integers(1, most, turned.shape)
    places = (cases.labels[:, None] + wrong * other + turned * any_other) % most
    codes: Scores = np.array(cases.suite.scale.answers)[places]
    return codes


class Cell(NamedTuple):
    """Sessions that are alike, and what is asked of them.

    Each verdict, of which there are so many `before` and `now`, is turned with the probability
    `flicker`; on a scale it is moved. `limits` are the shares that FAIL and that are exit code 1,
    in percent, which hold at most or at least; None where nothing is asked.
    """

    what: str
    suite: Suite
    question: Question
    draw: Draw
    flicker: float
    before: int
    now: int
    limits: tuple[float | None, float | None]
    side: Literal["least", "most"] = "most"
    wanted: str = ""

    @property
    def where(self) -> str:
        """Which cell it is."""
        suite = self.suite.text
        return f"{suite}, flicker {self.flicker:.0%}, {self.before}:{self.now} verdicts"


class Found(NamedTuple):
    """The shares of sessions that FAIL, are exit code 1, and are surely better."""

    fail: float
    exit: float
    better: float
    sessions: int

    @property
    def text(self) -> str:
        """The first two in percent."""
        return f"{100 * self.fail:.0f}/{100 * self.exit:.0f}"


def sessions(cell: Cell, number: int) -> Iterator[Session]:
    """Draw sessions of a cell, the same ones each time."""
    design = (cell.what, *cell.suite, cell.flicker, cell.before, cell.now)
    rng = np.random.default_rng(zlib.crc32(repr(design).encode()))
    cases = cases_of(cell.suite)
    for _ in range(number):
        before, now = cell.draw(rng, cases)
        yield Session(
            cases,
            _verdicts(rng, cases, before, cell.flicker, cell.before),
            _verdicts(rng, cases, now, cell.flicker, cell.now),
        )


def simulated(cell: Cell, number: int = SESSIONS) -> Found:
    """What comes of the sessions of a cell."""
    totals = np.zeros(3)
    for session in sessions(cell, number):
        sets = session.changes(cell.question)
        word = rank(sets)
        totals += (word == _FAIL, word > 0, is_better(sets))
    fail, exits, better = (totals / number).tolist()
    return Found(fail, exits, better, number)


_FAIL = 2


def rank(sets: Sequence[SetChange]) -> int:
    """How bad the word is: 2 for FAIL, 1 for an UNCLEAR that is exit code 1, else 0."""
    words = {of.finding.word for of in sets}
    return _FAIL if "FAIL" in words else int("UNCLEAR" in words)


# What is to be reached, FAIL/exit 1 in percent: by verdicts a case and by what has changed, the
# sizes beside each other, and for each size by flicker or by the share that moves.

_SIZES = (Suite(5, 1), Suite(10, 3), Suite(25, 3), Suite(50, 10))
_TARGETS = {
    (1, "asked again"): "0/1 0/5 1/18, 0/3 1/9 3/35, 1/3 3/9 3/20, 1/8 3/8 4/17",
    (1, "neutral"): "0/3 0/5, 0/8 3/18, 4/9 6/12, 5/10 6/12",
    (1, "lost 20 points"): "0/8 0/17, 2/82 11/62, 70/95 40/80, 97/99 82/93",
    (1, "lost 40 points"): "1/88 3/75, 70/100 43/98, 100/100 94/100, 100/100 100/100",
    (3, "asked again"): "0/1 0/6 1/11, 0/4 0/11 2/10, 0/5 1/9 2/7, 0/1 0/8 3/10",
    (3, "neutral"): "1/3 0/6, 0/7 2/12, 3/8 4/10, 5/12 4/14",
    (3, "lost 20 points"): "0/7 0/11, 12/89 13/74, 78/97 47/85, 100/100 98/100",
    (3, "lost 40 points"): "5/100 11/96, 67/100 59/100, 100/100 100/100, 100/100 100/100",
}
_CHANGES: dict[str, list[tuple[str, Question, Draw, float]]] = {
    "asked again": [("asked again", "again", unchanged, flip) for flip in (0.02, 0.05, 0.15)],
    "neutral": [
        ("neutral, 2.5% move", "changed", partial(neutral, share=0.025), 0.02),
        ("neutral, 5% move", "changed", partial(neutral, share=0.05), 0.02),
    ],
    "lost 20 points": [
        ("lost 20 points", "changed", partial(lost, share=0.2), flip) for flip in (0.02, 0.05)
    ],
    "lost 40 points": [
        ("lost 40 points", "changed", partial(lost, share=0.4), flip) for flip in (0.02, 0.05)
    ],
}


def limits_of(wanted: str, *, is_lost: bool) -> tuple[float, float]:
    """The most or least that may FAIL and be exit code 1, by what is to be reached."""
    fail, exits = map(float, wanted.split("/"))
    if is_lost:
        return fail - _TOLERANCE, exits - _TOLERANCE
    return min(_MOST_FAILS, fail + _TOLERANCE), exits + _TOLERANCE


def cell_of(
    what: str,
    suite: Suite,
    question: Question,
    draw: Draw,
    flicker: float,
    repeats: tuple[int, int],
    wanted: str,
) -> Cell:
    """A cell of which is known what it is to reach."""
    is_lost = isinstance(draw, partial) and draw.func is lost
    limits = limits_of(wanted, is_lost=is_lost)
    is_usual = flicker == _USUAL_FLICKER and suite != _SIZES[0]
    if question == "again" and is_usual and not is_lost:
        limits = limits[0], min(_MOST_EXITS, limits[1])
    side: Literal["least", "most"] = "least" if is_lost else "most"
    return Cell(what, suite, question, draw, flicker, *repeats, limits, side, wanted)


def table_cells() -> list[Cell]:
    """The cells of the table, row by row."""
    cells = []
    for (repeats, change), text in _TARGETS.items():
        by_size = [of_size.split() for of_size in text.split(", ")]
        for number, (what, question, draw, flicker) in enumerate(_CHANGES[change]):
            for suite, of_size in zip(_SIZES, by_size, strict=True):
                both = (repeats, repeats)
                cells.append(cell_of(what, suite, question, draw, flicker, both, of_size[number]))
    return cells


def other_cells() -> list[Cell]:
    """One rubric of ten, small losses everywhere, one verdict before and three now, and drift."""
    cells = []
    of_one = (
        (330, 0.2, 1, "68/86"),
        (330, 0.2, 3, "67/91"),
        (100, 0.4, 1, "28/81"),
        (100, 0.4, 3, "26/99"),
    )
    for violations, share, repeats, wanted in of_one:
        what = f"one rubric of ten lost {100 * share:.0f} points"
        suite, both = Suite(violations, 10), (repeats, repeats)
        draw = partial(lost, share=share, among="rubric")
        cells.append(cell_of(what, suite, "changed", draw, 0.02, both, wanted))
    for repeats, wanted in ((1, "3/13"), (3, "3/9")):
        what, small = "2 points lost everywhere", partial(everywhere, share=0.02)
        suite, both = Suite(200, 20), (repeats, repeats)
        cells.append(cell_of(what, suite, "changed", small, 0.02, both, wanted))
    for flicker, wanted in ((0.05, "4/10"), (0.15, "5/14")):
        for suite in (Suite(10, 1), Suite(25, 3), Suite(50, 10)):
            what = "unchanged, one verdict before and three now"
            cells.append(cell_of(what, suite, "changed", unchanged, flicker, (1, 3), wanted))
    what, drift = "drift of 20 points, asked again", partial(lost, share=0.2)
    cells.append(cell_of(what, Suite(10, 3), "again", drift, 0.02, (3, 3), "90/99"))
    return cells


def another_cells() -> list[Cell]:
    """Another model: as good, half the recall lost on two runs, and four fifths on five."""
    cells = []
    for suite in (Suite(120, 3), Suite(100, 5)):
        for together in (0.6, 1.0):
            what = f"another model, as good, correlation {together:g}"
            draw = partial(as_good, together=together)
            cells.append(Cell(what, suite, "another", draw, 0.0, 1, 1, (_MOST_FAILS, None)))
    for suite, share in ((Suite(12, 6), 0.5), (Suite(15, 3), 0.8)):
        runs = suite.violations // suite.rubrics
        what = f"another model, {100 * share:.0f} points lost on {runs} runs"
        draw_lost = partial(lost, share=share)
        # Never FAIL, of so few runs, and never exit code 0.
        cell = Cell(what, suite, "another", draw_lost, 0.02, 1, 1, (0, None))
        cells += [cell, cell._replace(limits=(None, 100), side="least")]
    return cells


_UNCHANGED: tuple[Question, ...] = ("again", "changed")


def scale_cells() -> list[Cell]:
    """Scales of three widths, a tenth of whose verdicts moves by a tenth; unchanged, or higher."""
    cells = []
    for width, repeats in product((4, 9, 100), (1, 3)):
        suite, both = Suite(25, 3, width), (repeats, repeats)
        for question in _UNCHANGED:
            what = f"on a scale, unchanged, {question}"
            limits = (_MOST_FAILS, None)
            cells.append(Cell(what, suite, question, unchanged, WRONG, *both, limits))
        what, draw = "on a scale, higher by 10%", partial(higher, share=0.1)
        cells.append(Cell(what, suite, "changed", draw, WRONG, *both, (None, 50), "least"))
    return cells


def class_cells() -> list[Cell]:
    """Classes, as good as before, and one of four that has lost 20 points."""
    cells = []
    for classes, flicker, repeats in product((3, 4, 8), (0.02, 0.05), (1, 3)):
        suite, both = Suite(50, 1, classes=classes), (repeats, repeats)
        for question in _UNCHANGED:
            what, limits = f"classes, unchanged, {question}", (6, None)
            cells.append(Cell(what, suite, question, unchanged, flicker, *both, limits))
        what, draw = "classes, neutral 2.5%", partial(neutral, share=0.025)
        cells.append(Cell(what, suite, "changed", draw, flicker, *both, (_MOST_FAILS, None)))
    what, draw = "one of four classes lost 20 points", partial(lost, share=0.2)
    suite = Suite(50, 1, classes=4)
    cells.append(Cell(what, suite, "changed", draw, 0.02, 3, 3, (None, 85), "least"))
    return cells


def probe_cells() -> list[Cell]:
    """A probe with lines in the baseline, and one that newly turns 30 of 100 verdicts."""
    cells = []
    suite = Suite(10, 3, probed=54)
    for flicker in (0.02, 0.05):
        for question in _UNCHANGED:
            what = f"probe unchanged, {question}"
            limits = (_MOST_FAILS, _MOST_EXITS)
            cells.append(Cell(what, suite, question, unchanged, flicker, 1, 1, limits))
        draw = partial(lost, share=0.3, among="probe")
        cells.append(
            Cell("probe newly turns 30%", suite, "changed", draw, flicker, 1, 1, (80, 95), "least")
        )
    return cells


def section(pool: Executor) -> tuple[str, list[Check]]:
    """All cells of the rule, and what must hold of them."""
    parts = [_table(pool), _others(pool), _monotonic(pool), _proofs(pool)]
    checks = [check for _, found in parts for check in found]
    return "\n".join(text for text, _ in parts if text), checks


def _simulated(pool: Executor, cells: Sequence[Cell]) -> list[Found]:
    """What comes of cells, of those that are close to a limit with more sessions."""
    found = list(pool.map(simulated, cells, chunksize=4))
    close = []
    for place, (cell, of_cell) in enumerate(zip(cells, found, strict=True)):
        if any(check.is_close for check in _checks_of_cell(cell, of_cell)):
            close.append(place)
    again = pool.map(simulated, [cells[place] for place in close], [CLOSE_SESSIONS] * len(close))
    for place, of_cell in zip(close, again, strict=True):
        found[place] = of_cell
    return found


def _checks_of_cell(cell: Cell, found: Found) -> Iterator[Check]:
    """What must hold of a cell: of what FAILs, and of exit code 1."""
    for place, figure in enumerate(("FAIL", "exit 1")):
        limit, share = cell.limits[place], found[place]
        # What may be as low as 0 is no limit.
        if limit is None or (cell.side == "least" and limit <= 0):
            continue
        what, error = f"{cell.what}: {figure}", error_of(share, found.sessions)
        where = f"{cell.where}, {found.sessions:,} sessions"
        yield Check(what, 100 * share, limit, cell.side, where, error)


def checks_of(cells: Sequence[Cell], found: Sequence[Found]) -> list[Check]:
    """Of cells that are alike those that are not met, else the one that is nearest to its limit;
    for what FAILs, and for exit code 1.
    """
    by_figure: dict[str, list[Check]] = {}
    for cell, of_cell in zip(cells, found, strict=True):
        for check in _checks_of_cell(cell, of_cell):
            by_figure.setdefault(check.what, []).append(check)
    checks = []
    for of_cells in by_figure.values():
        nearest = min(of_cells, key=lambda check: abs(check.figure - check.limit))
        missed = [check for check in of_cells if not check.holds]
        checks += missed or [nearest]
    return checks


def _table(pool: Executor) -> tuple[str, list[Check]]:
    cells = table_cells()
    found = _simulated(pool, cells)
    rows, checks = [], []
    for start in range(0, len(cells), len(_SIZES)):
        of_row, of_found = cells[start : start + len(_SIZES)], found[start : start + len(_SIZES)]
        cell = of_row[0]
        words = []
        for of_size, shares in zip(of_row, of_found, strict=True):
            words.append(f"{shares.text} ({of_size.wanted})")
        rows.append((cell.what, f"{cell.flicker:.0%}", str(cell.now), *words))
        for check in checks_of(of_row, of_found):
            what = f"{check.what}, {counted(cell.now, 'verdict')}, flicker {cell.flicker:.0%}"
            checks.append(replace(check, what=what))
    sizes = [size.text for size in _SIZES]
    body = (
        "## The rule\n\nFAIL / exit code 1 of 100 sessions with `max_drop: 0.05`, and in "
        "parentheses what is to be reached: at most 5 points more, and never more than "
        f"{_MOST_FAILS} FAIL, of what is not worse, at most 5 points less of what is. As many "
        f"satisfied cases as violations, {WRONG:.0%} wrong anyhow, each verdict turned with the "
        f"probability that is called flicker. {_SESSIONS_TEXT}\n\n"
    )
    return body + table(("", "flicker", "verdicts a case", *sizes), rows), checks


def _others(pool: Executor) -> tuple[str, list[Check]]:
    parts = (other_cells(), another_cells(), scale_cells(), class_cells(), probe_cells())
    cells = [cell for of_part in parts for cell in of_part]
    found = _simulated(pool, cells)
    alike: dict[tuple[str, str], list[int]] = {}
    for number, cell in enumerate(cells):
        alike.setdefault((cell.what, cell.side), []).append(number)
    checks = []
    for numbers in alike.values():
        checks += checks_of(
            [cells[place] for place in numbers], [found[place] for place in numbers]
        )
    rows: dict[tuple[str, ...], None] = {}
    for cell, of_cell in zip(cells, found, strict=True):
        better = f"{100 * of_cell.better:.1f}"
        rows[cell.what, cell.where, of_cell.text, cell.wanted, better] = None
    as_good_cells = [
        (of_cell, cell)
        for cell, of_cell in zip(cells, found, strict=True)
        if ", as good" in cell.what
    ]
    most, where = max(as_good_cells, key=lambda of: of[0].better)
    error = error_of(most.better, most.sessions)
    what = "another model, as good: better than before"
    checks.append(Check(what, 100 * most.better, _MOST_BETTER, "most", where.where, error))
    body = (
        "## Other sessions\n\nFAIL / exit code 1, and what is to be reached where the rule names "
        'it, and "better than before", of 100 sessions. On a scale a verdict turns by a tenth of '
        "it. A rubric of 33 or 10 violations, of ten, has lost some; another model is compared by "
        f"whole runs. {_SESSIONS_TEXT}\n\n"
    )
    return body + table(("", "sessions", "found", "to reach", "better"), rows), checks


# One more mistake, an untouched rubric, a rubric in two parts.

TABLES = 4_000
_TABLES_AT_ONCE = 100
_MOST_SWITCHES = {
    "one more mistake makes the word better": 0.3,
    "an untouched rubric makes the word worse": 0.1,
    "a rubric in two parts changes the word": 1.0,
}


class RandomTable(NamedTuple):
    """A table of 1 to 3 rubrics with a verdict before and now, of which the last is untouched."""

    verdicts: Verdicts
    before: Marks
    now: Marks
    untouched: Marks


def random_table(rng: np.random.Generator) -> RandomTable:
    """3 to 15 cases of a class under each rubric, before wrong in 0 to 30%, now the same in 60% of
    cases, and else wrong in 0 to 40%.
    """
    rubrics = int(rng.integers(1, 4))
    specs = []
    for rubric in range(rubrics + 1):
        for test in (_VIOLATED, _SATISFIED):
            for run in range(rng.integers(3, 16)):
                specs.append(CaseSpec("s", test, f"rubric-{rubric}", f"run-{run:03}", 1))
    results = []
    for spec in specs:
        result = case_result(spec, None, judge_digest="a" * 64)
        results.append(replace(result, label=int(spec.test == _VIOLATED)))
    n = len(specs)
    before = rng.random(n) < rng.uniform(0, 0.3)
    other = rng.random(n) < rng.uniform(0, 0.4)
    now = np.where(rng.random(n) < 0.6, before, other)
    verdicts = Verdicts.of(results)
    untouched = verdicts.rubric.equals(f"rubric-{rubrics}")
    return RandomTable(verdicts, before, np.where(untouched, before, now), untouched)


def rank_of(verdicts: Verdicts, before: Marks, now: Marks) -> int:
    """How bad the word is of so many cases that were wrong and are wrong."""
    sides = []
    for wrong in (before, now):
        labels = np.array(verdicts.label.values, int)
        sides.append([(score,) for score in (labels ^ wrong).tolist()])
    beside = replace(verdicts, before=Coded.of(sides[0]), answers=Coded.of(sides[1]))
    return rank(set_changes(beside, MAX_DROP, {}))


def switches(number: int, tables: int = _TABLES_AT_ONCE) -> list[int]:
    """In how many of some random tables the word switches, by each way to change a table: of
    mistakes one is drawn.
    """
    rng = np.random.default_rng([56, number])
    counts = [0, 0, 0]
    for _ in range(tables):
        whole = random_table(rng)
        rows = np.flatnonzero(~whole.untouched)
        verdicts, before, now = whole.verdicts.where(rows), whole.before[rows], whole.now[rows]
        word = rank_of(verdicts, before, now)
        worse = now.copy()
        worse[rng.choice(np.flatnonzero(~now))] = True
        counts[0] += rank_of(verdicts, before, worse) < word
        counts[1] += rank_of(whole.verdicts, whole.before, whole.now) > word
        names = verdicts.rubric.values
        parts = rng.integers(0, 2, len(names)).tolist()
        in_two = []
        for name, part in zip(names, parts, strict=True):
            in_two.append(f"{name}-{part}" if name == "rubric-0" else name)
        counts[2] += rank_of(replace(verdicts, rubric=Coded.of(in_two)), before, now) != word
    return counts


def _monotonic(pool: Executor) -> tuple[str, list[Check]]:
    by_part = [*pool.map(switches, range(TABLES // _TABLES_AT_ONCE))]
    checks = []
    for (what, limit), counts in zip(
        _MOST_SWITCHES.items(), zip(*by_part, strict=True), strict=True
    ):
        share = sum(counts) / TABLES
        where = f"{sum(counts)} of {TABLES:,} random tables"
        checks.append(Check(what, 100 * share, limit, "most", where, error_of(share, TABLES)))
    return "", checks


# What `proof: true` lets pass.

_PROOF_SESSIONS, _PROOF_TIMES = 200, 10
_BROKEN = {"nothing": None, "runs, 0.6": 0.6, "whole runs": 1.0}


def broken_runs(
    rng: np.random.Generator, cases: Cases, *, together: float | None
) -> tuple[Scores, Scores]:
    """As much lost as `max_drop` allows, of cases that break together in runs."""
    none = np.zeros(len(cases.labels), int)
    return none, none if together is None else _by_runs(rng, cases, MAX_DROP, together)


def proven(cell: Cell, number: int) -> float:
    """The share of sessions that pass with `proof: true`."""
    passed = 0
    for session in sessions(cell, number):
        sets = session.changes(cell.question)
        bounds = [of.bound for of in sets if of.is_class]
        passed += rank(sets) == 0 and max(bounds) < MAX_DROP
    return passed / number


def _proofs(pool: Executor) -> tuple[str, list[Check]]:
    cells: list[Cell] = []
    for flicker, repeats in ((0.0, 1), (0.05, 3)):
        for name, together in _BROKEN.items():
            for runs in (60, 100):
                draw = partial(broken_runs, together=together)
                suite, both = Suite(3 * runs, 3), (repeats, repeats)
                cells.append(Cell(name, suite, "changed", draw, flicker, *both, (None, None)))
    shares = list(pool.map(proven, cells, [_PROOF_SESSIONS] * len(cells)))
    rows = []
    for number in range(0, len(cells), 2):
        cell = cells[number]
        passed = [f"{100 * share:.1f}" for share in shares[number : number + 2]]
        rows.append((cell.what, f"{cell.flicker:.0%}", str(cell.now), *passed))
    broken = [number for number, cell in enumerate(cells) if cell.what != "nothing"]
    highest = max(broken, key=lambda number: shares[number])
    # By theory it is 0.95^60, 4.6%: so near the limit it takes more sessions than elsewhere.
    again = [
        cells[highest]._replace(what=f"{cells[highest].what}, again {number}")
        for number in range(_PROOF_TIMES)
    ]
    share = mean(pool.map(proven, again, [_PROOF_SESSIONS] * _PROOF_TIMES))
    check = Check(
        "proof: a drop of max_drop PASSes, highest cell",
        100 * share,
        6,
        "most",
        f"{cells[highest].what}, {cells[highest].where}; simulated again",
        error_of(share, _PROOF_TIMES * _PROOF_SESSIONS),
    )
    body = (
        "## Proof\n\nPASS in so many of 100 sessions with `max_drop: 0.05` and `proof: "
        "true`, six cases a run, by what a drop of 5 points breaks.\n\n"
    )
    return body + table(("broken", "flips", "repeats", "60", "100 runs"), rows), [check]
