"""The results of a session in one value, from which all reports show."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core import (
    columns,
    counted,
    cut_in_the_middle,
    dollars,
    frozen,
    one_line,
    shortened,
)
from pytest_jrh.core.calls import Progress, Spending
from pytest_jrh.core.cases import Case, Message, Rubric
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.results import CaseResult, JudgeLine, total_spending
from pytest_jrh.core.scales import Scale, coded
from pytest_jrh.people import Grounds
from pytest_jrh.people.labels import PersonLabel
from pytest_jrh.stats.decision import Decision, Word
from pytest_jrh.stats.figures import Section, sections, slice_sections
from pytest_jrh.stats.limits import ProbeTable, probe_tables
from pytest_jrh.stats.people import People, people_beside
from pytest_jrh.stats.probabilities import ERROR, Probabilities, probabilities_of
from pytest_jrh.stats.statistics import Panel, panels
from pytest_jrh.stats.verdicts import PromptChange, Verdicts
from pytest_jrh.store.made_cases import RecordIndex, SuiteCases

if TYPE_CHECKING:
    from pytest_jrh.config.suite import Suite

TITLE_WIDTH = 72
# What a title keeps of a rubric's id or a run's with its judge, and of what was done.
_NAME_ROOM = 30
_NOTE_ROOM = 24
_ESTIMATED_FROM = 0.1
_MINUTE = 60


def spending_text(spending: Spending) -> str:
    """Calls and cost in a few words; a call without a known price is named, never counted as free.

    What is replayed costs nothing, whatever its price was.
    """
    calls = counted(spending.calls, "call")
    if spending.lost:
        calls += f" ({spending.lost:,} without an answer, which may be billed)"
    has_unpriced = spending.calls > 0 and spending.unpriced > 0
    costs = []
    if spending.paid or not has_unpriced:
        costs.append(dollars(spending.paid))
    if has_unpriced:
        costs.append(f"{spending.unpriced:,} unpriced")
    return f"{calls}, {spending.replayed:,} replayed, {' and '.join(costs)}"


def spending_line(spending: Spending, wall_seconds: float = 0.0) -> str:
    """Calls, cost, what was recorded behind a replay, tokens, and the duration of a session.

    Without a duration where it is 0: that of merged results is not known, and the terminal's last
    line has pytest's own.
    """
    text = spending_text(spending)
    if spending.replayed and not spending.calls:
        recorded = dollars(spending.cost)
        if spending.unpriced:
            recorded += f" and {spending.unpriced:,} unpriced"
        text += f" ({recorded} recorded)"
    text += f", {counted(spending.usage.total, 'token')}"
    if wall_seconds >= _MINUTE:
        text += f", {_time(wall_seconds)}"
    elif wall_seconds:
        text += f", {wall_seconds:.1f} s"
    return text


def progress_line(progress: Progress, seconds: float, width: int) -> str:
    """How far a session is, what it has spent, and how long it may take, in at most `width`
    columns: `jrh 11/32 | $0.04, 62 calls | 1:56 left`.
    """
    done, total, spending = progress.done, progress.total, progress.spending
    parts = [f"jrh {done:,}/{total:,}"]
    # What cases at work have spent is not known: without one that is done, nothing is said of it.
    if done:
        paid = dollars(spending.paid)
        if spending.unpriced:
            paid += " and unpriced calls"
        parts.append(f"{paid}, {counted(spending.calls, 'call')}")
    # Before, the cases that are done are too few to judge the others by.
    if done < total and done >= total * _ESTIMATED_FROM:
        parts.append(f"{_time(seconds / done * (total - done))} left")
    else:
        parts.append(_time(seconds))
    return shortened(" | ".join(parts), width)


def _time(seconds: float) -> str:
    """A duration as `1:56`, or `2:01:56`."""
    return str(timedelta(seconds=round(seconds))).removeprefix("0:").removeprefix("0")


@frozen
class Extent:
    """How many of a suite's cases have a result, and whether the session was interrupted."""

    cases: int
    of: int
    interrupted: bool


WORST_FIRST: Sequence[Word] = ("FAIL", "UNCLEAR", "PASS", "")


@frozen
class SuiteRun:
    """What a session ran of one suite.

    `results` hold what came of each of its `cases` that ran, in their order. `selected` are the ids
    of those that were to run, and `left_out` those that something else skipped. `nodes` and
    `commands` give by case id what pytest calls it and what runs it again; `grounds` are what the
    labels of its cases rest on. `judges` are its judges, and `origin` says where its figures come
    from. `spools` are the files with the cases that were made, and `frozen` is the index of a
    frozen suite's file where it has been read.
    """

    suite: Suite
    results: Sequence[CaseResult]
    cases: SuiteCases
    selected: Set[str]
    nodes: Mapping[str, str]
    grounds: Grounds
    judges: Sequence[JudgeLine]
    origin: Mapping[str, str]
    commands: Mapping[str, str] = field(default_factory=dict)
    left_out: Set[str] = frozenset()
    spools: Sequence[Path] = ()
    frozen: RecordIndex | None = None

    @property
    def name(self) -> str:
        """The suite's name."""
        return self.suite.name


@dataclass(frozen=True)
class Session:
    """The last result of every case that ran, once each, and all that reports are made of.

    `decisions` are by suite name; `nodes` and `commands` give by case id the pytest node id and the
    command that runs the case again; `rubrics` are by suite name and rubric id. `record_command`
    records what is missing, of all cases together; empty where nothing is. `command` gives the one
    that runs all suites again with more options. `earlier` gives by case id what was said when the
    baseline was written, as far as it was kept, and `prompt_changes` are the judges that are others
    since. `origin` says where all of it comes from. `unreported` are cases
    that took calls and whose items did not run, and `tolerated` those whose disagreement does not
    fail their item.

    `records` says where the made cases lie, and rubric files are named relative to `folder`.
    Reports hold none of the `redactor`'s secrets. `is_table` says that verdicts are from a table:
    no case was made and no call, so that nothing is said of what they cost. `is_merge` says that
    results are from shards. `columns` are those of the results, where they are known. `page` is the
    HTML report of the session. `error` is how much may be wrong of what a judge decides alone.
    `about` says how a table or a log and its labels were read, and `texts` gives what a table has
    of the case of a result, by its place.
    """

    results: Sequence[CaseResult]
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    wall_seconds: float = 0.0
    nodes: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    rubrics: Mapping[tuple[str, str], Rubric] = field(default_factory=dict)
    record_command: str = ""
    command: Callable[[Sequence[str]], str] = lambda _: ""
    judges: Sequence[JudgeLine] = ()
    extents: Mapping[str, Extent] = field(default_factory=dict)
    grounds: Mapping[str, Grounds] = field(default_factory=dict)
    earlier: Callable[[str], CaseResult | None] = lambda _: None
    prompt_changes: Sequence[PromptChange] = ()
    origin: Sequence[str] = ()
    unreported: Sequence[CaseResult] = ()
    model_changes: Sequence[str] = ()
    tolerated: frozenset[str] = frozenset()
    records: RecordIndex = field(default_factory=RecordIndex)
    redactor: Redactor = field(default_factory=Redactor)
    folder: Path = Path()
    is_table: bool = False
    is_merge: bool = False
    columns: Verdicts | None = None
    page: Path | None = None
    error: float = ERROR
    about: Sequence[str] = ()
    texts: Callable[[int], Sequence[Message]] = lambda _: ()

    @cached_property
    def suites(self) -> list[str]:
        """The suites, those without a result among them."""
        return [*dict.fromkeys([*self.decisions, *self.verdicts.suite.present(), *self.grounds])]

    def prefix(self, suite: str) -> str:
        """What stands before a sentence about a suite: its name, where there are several."""
        return f"{one_line(suite)}: " if len(self.suites) > 1 else ""

    @cached_property
    def verdicts(self) -> Verdicts:
        """The results in columns, of which all figures are."""
        if self.columns is not None:
            return self.columns
        return Verdicts.of(
            self.results, {key: rubric.scale for key, rubric in self.rubrics.items()}
        )

    def results_in(self, verdicts: Verdicts) -> list[CaseResult]:
        """The results of some rows."""
        return [self.results[row] for row in verdicts.row]

    def of_suite(self, suite: str) -> Verdicts:
        """The verdicts of a suite's judges."""
        return self.verdicts.where(self.verdicts.suite.equals(suite))

    @cached_property
    def sections(self) -> list[Section]:
        """The figures of each suite's judges, judge by judge."""
        return sections(self.verdicts)

    def sections_of(self, suite: str) -> list[Section]:
        """The figures of one suite's judges."""
        return [section for section in self.sections if section.suite == suite]

    @cached_property
    def slices(self) -> Mapping[tuple[str, str], Mapping[str, Section]]:
        """The figures of each suite's judges by each field that tells figures apart."""
        return {(of.suite, of.judge): slice_sections(of) for of in self.sections}

    @property
    def is_judged(self) -> bool:
        """Whether there is any figure."""
        return any(section.total.counts.n for section in self.sections)

    @cached_property
    def by_judge(self) -> Mapping[tuple[str, str], Verdicts]:
        """The verdicts of each suite's judges, but for those of probes, which say nothing of labels
        and figures.
        """
        return self.verdicts.where(~self.verdicts.derived).grouped("suite", "judge")

    @cached_property
    def probabilities(self) -> Mapping[tuple[str, str], Probabilities]:
        """What the probabilities of each suite's judges come to, of those that give some."""
        figures = {}
        for judge, verdicts in self.by_judge.items():
            if (of_judge := probabilities_of(verdicts, self.error)) is not None:
                figures[judge] = of_judge
        return figures

    @cached_property
    def people(self) -> Mapping[str, People]:
        """How far people agree who labelled runs or rows, and judges with them, by suite."""
        people = {}
        for suite, grounds in self.grounds.items():
            if len(grounds.votes.person.names) > 1:
                judges = {judge: of for (name, judge), of in self.by_judge.items() if name == suite}
                people[suite] = people_beside(grounds.votes, judges)
        return people

    @property
    def is_part(self) -> bool:
        """Whether not all cases of all suites have a result."""
        return any(extent.cases < extent.of for extent in self.extents.values())

    @cached_property
    def panels(self) -> Sequence[Panel]:
        """How the judges of suites with several agree."""
        return tuple(panels(self.verdicts))

    @cached_property
    def probes(self) -> Sequence[ProbeTable]:
        """What probes have turned, the worst first."""
        tables = probe_tables(self.verdicts)
        return tuple(sorted(tables, key=lambda table: -table.total.turned))

    @property
    def made_results(self) -> Sequence[CaseResult]:
        """The results but those of a table, of whose cases nothing is known beside their rows."""
        return () if self.is_table else self.results

    @cached_property
    def cases(self) -> Sequence[CaseResult]:
        """The last of these results of each case, but for those of probes."""
        by_case = {}
        for result in self.made_results:
            if not result.spec.derived:
                by_case[result.made_id] = result
        return list(by_case.values())

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """The places of results by their case ids."""
        return {case_id: row for row, case_id in enumerate(self.verdicts.ids)}

    def result(self, case_id: str) -> CaseResult:
        """The result of a case by its id."""
        return self.results[self.rows[case_id]]

    @cached_property
    def spending(self) -> Spending:
        """What all cases together took, those whose items did not run among them."""
        return total_spending((*self.results, *self.unreported))

    @property
    def passed(self) -> bool:
        """Whether every suite passed."""
        return all(decision.passed for decision in self.decisions.values())

    @property
    def decision(self) -> Decision | None:
        """The worst decision about any suite; what is UNCLEAR and does not pass is worse than what
        does.
        """
        return min(
            self.decisions.values(),
            key=lambda decision: (WORST_FIRST.index(decision.word), decision.passed),
            default=None,
        )

    @property
    def word(self) -> Word:
        """The worst that is decided about any suite."""
        return "" if self.decision is None else self.decision.word

    def messages(self, result: CaseResult) -> Sequence[Message]:
        """What was judged, without secrets; empty where it is not kept."""
        case = self.case(result)
        messages = self.texts(self.rows[result.case_id]) if case is None else case.messages
        clean: Sequence[Message] = self.redactor.value(messages)
        return clean

    def case(self, result: CaseResult) -> Case | None:
        """The case as it was made, if it is kept."""
        # Of a frozen suite the cases of a review are gone when the reports are written.
        with contextlib.suppress(OSError):
            return self.records.read(result.made_id)
        return None

    def scale(self, result: CaseResult) -> Scale:
        """The scale of a case, with the levels that its rubric has."""
        rubric = self.rubrics.get((result.suite, result.rubric_id))
        return result.scale if rubric is None else rubric.scale

    def node(self, case_id: str) -> str:
        """What pytest calls the case; its id where that is not known."""
        return self.nodes.get(case_id, case_id)

    def title(self, result: CaseResult) -> str:
        """Name a case by what was done, and one of a table that has no rubrics by its run alone:
        what is called the rubric there is a column of labels.
        """
        if self.has_rubrics:
            return case_title(result)
        return shortened(run_title(result), TITLE_WIDTH)

    def grounds_of(self, suite: str) -> Grounds:
        """What the labels of a suite rest on, as far as it is known."""
        return self.grounds.get(suite, Grounds())

    def blind_labels(self, result: CaseResult) -> Iterable[PersonLabel]:
        """The last label of a case by each person who saw no answer."""
        grounds = self.grounds_of(result.suite)
        return grounds.blind_labels.get(result.case_digest, {}).values()

    @cached_property
    def has_rubrics(self) -> bool:
        """Whether cases have rubrics: those of a table may have a column of labels alone."""
        return not self.is_table or len(self.verdicts.rubric.present()) > 1


def case_title(result: CaseResult) -> str:
    """Name a case by what was done: `refund_within_policy: A promise of £15.00 more
    (damaged-kettle)`, of an ordinal one with `→ level 2` behind it; where runs are judged as they
    are: `refund_within_policy (damaged-kettle)`.

    One line of at most 72 columns, or of about 90 where ids are long. Titles may be the same
    for cases with different ids.
    """
    spec = result.spec
    level = ""
    if spec.target_score is not None:
        level = f" → level {spec.target_score}"
        if not result.scale.is_ordered:
            level = f" → {one_line(result.scale.word(coded(spec.target_score)))}"
    rubric = shortened(one_line(spec.rubric_id), _NAME_ROOM)
    behind = f"{level} ({cut_in_the_middle(run_title(result), _NAME_ROOM)})"
    if done := what_was_done(result):
        room = max(TITLE_WIDTH - columns(f"{rubric}: {behind}"), _NOTE_ROOM)
        rubric += f": {shortened(done, room)}"
    return f"{rubric}{behind}"


def run_title(result: CaseResult, *, with_judge: bool = True) -> str:
    """Name the run of a case, with its judge where there are several: `damaged-kettle, strict`."""
    of_run = [one_line(result.spec.run_id)]
    if result.spec.epoch != 1:
        of_run.append(f"epoch {result.spec.epoch}")
    if result.judge and with_judge:
        of_run.append(one_line(result.judge))
    return ", ".join(of_run)


def what_was_done(result: CaseResult) -> str:
    """What was done to the run, as far as it is known; a title has it in its middle. Nothing was to
    a case that was labelled as it is.
    """
    spec = result.spec
    if spec.derived:
        return one_line(f"{spec.test} {spec.variant}")
    if KINDS[spec.test].is_labelled:
        return ""
    # Editors say behind it what they have kept.
    note, _, _ = one_line(result.extra.edit).partition("; ")
    return note.rstrip(".") or KINDS[spec.test].noun
