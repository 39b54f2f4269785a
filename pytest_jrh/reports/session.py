"""The results of a session in one value: what the terminal, Markdown, HTML and annotations show
from.

What people decided about the cases of a session, and what they should look at again (rules G6,
K2).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.cases.ids import generation_id
from pytest_jrh.core.model import MADE, CaseResult, Rubric, Spending
from pytest_jrh.core.text import Styled, counted, one_line, wrapped
from pytest_jrh.reports.provenance import NO_ORIGIN, SessionOrigin
from pytest_jrh.reports.spending import total_spending
from pytest_jrh.stats.figures import NONE, percent, range_text
from pytest_jrh.stats.formulas import Estimate
from pytest_jrh.stats.gate import GateDecision
from pytest_jrh.stats.panels import Panel, panels
from pytest_jrh.stats.probes import ProbeTable, probe_tables
from pytest_jrh.stats.statistics import StatisticsTable, tabulate
from pytest_jrh.store.baseline import KeptVerdict, PromptChange
from pytest_jrh.store.labels import Grounds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_jrh.core.model import HumanReview
    from pytest_jrh.store.history import PastRun


_KEY_LENGTH = 12


@dataclass(frozen=True, slots=True)
class Extent:
    """How many of a suite's cases a session has a result of.

    `interrupted` where it did not run to its end.
    """

    cases: int
    of: int
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class SessionResults:
    """The last result of every case that ran, and what follows from them.

    `decisions` are by suite name; `nodes` and `commands` give by case id the pytest node id and the
    command that runs the case again; `rubrics` are by suite name and rubric id. `record_command`
    records what is missing, of all cases together; empty where nothing is. `earlier` is by case id
    what was said when the baseline was written, as far as it was kept, and `prompt_changes` are the
    judges that are others since. `origin` says where all of it comes from,
    and `history` are the earlier runs of its suites and this one, where a history is kept.
    `unreported` are cases that took calls and whose items did not run.
    """

    results: tuple[CaseResult, ...]
    table: StatisticsTable
    panels: tuple[Panel, ...] = ()
    decisions: Mapping[str, GateDecision] = field(default_factory=dict)
    wall_seconds: float = 0.0
    nodes: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    rubrics: Mapping[tuple[str, str], Rubric] = field(default_factory=dict)
    record_command: str = ""
    extents: Mapping[str, Extent] = field(default_factory=dict)
    grounds: Mapping[str, Grounds] = field(default_factory=dict)
    earlier: Mapping[str, KeptVerdict] = field(default_factory=dict)
    prompt_changes: Sequence[PromptChange] = ()
    probes: tuple[ProbeTable, ...] = ()
    origin: SessionOrigin = NO_ORIGIN
    history: tuple[PastRun, ...] = ()
    unreported: tuple[CaseResult, ...] = ()

    @property
    def spending(self) -> Spending:
        """What all cases together took, those whose items did not run among them."""
        return total_spending((*self.results, *self.unreported))

    @property
    def passed(self) -> bool | None:
        """Whether every gate passed; None where there is none to pass, and nothing is missing."""
        relevant = [
            decision
            for decision in self.decisions.values()
            if decision.active or not decision.passed
        ]
        return all(decision.passed for decision in relevant) if relevant else None

    def node(self, case_id: str) -> str:
        """What pytest calls the case; its id where that is not known."""
        return self.nodes.get(case_id, case_id)


def gather(
    results: Iterable[CaseResult],
    *,
    rubrics: Mapping[tuple[str, str], Rubric] | None = None,
    decisions: Mapping[str, GateDecision] | None = None,
    wall_seconds: float = 0.0,
    nodes: Mapping[str, str] | None = None,
    commands: Mapping[str, str] | None = None,
    record_command: str = "",
    extents: Mapping[str, Extent] | None = None,
    grounds: Mapping[str, Grounds] | None = None,
    earlier: Mapping[str, KeptVerdict] | None = None,
    prompt_changes: Sequence[PromptChange] = (),
    origin: SessionOrigin = NO_ORIGIN,
    unreported: Iterable[CaseResult] = (),
) -> SessionResults:
    """Compute all figures of a session once, for every report."""
    given = tuple({result.case_id: result for result in results}.values())
    return SessionResults(
        results=given,
        table=tabulate(given, scales(rubrics or {})),
        panels=tuple(panels(given)),
        probes=probe_tables(given),
        decisions=decisions or {},
        wall_seconds=wall_seconds,
        nodes=nodes or {},
        commands=commands or {},
        rubrics=rubrics or {},
        record_command=record_command,
        extents=extents or {},
        grounds=grounds or {},
        earlier=earlier or {},
        prompt_changes=tuple(prompt_changes),
        origin=origin,
        unreported=tuple(unreported),
    )


def suite_names(session: SessionResults) -> list[str]:
    """The suites of a session, each once; where no case has a result, those that were to run."""
    return list(dict.fromkeys(result.spec.suite for result in session.results) or session.extents)


def subtitle(session: SessionResults) -> str:
    """Name the suites, and count their verdicts."""
    counts = session.table.overall.counts
    suites = suite_names(session)
    named = f"{'suite' if len(suites) == 1 else 'suites'} {', '.join(suites)}"
    verdicts = counted(counts.n, "verdict")
    return f"{named}: {verdicts}, {counts.agree:,} right, {counts.disagree:,} wrong"


def recording_options(results: Iterable[CaseResult]) -> list[str]:
    """The options under which a maintainer's run records what these cases miss, and asks nothing
    else.

    Where the cases are there and only verdicts are missing, as after a change of the judge's
    prompt, the cases are left as they are. None where nothing is unrecorded.
    """
    missing = [result for result in results if result.outcome == "unrecorded"]
    if not missing:
        return []
    return recording_modes(
        verdicts_alone=all(result.judge_fingerprint for result in missing),
    )


def recording_modes(*, verdicts_alone: bool) -> list[str]:
    """The options that record what is missing: where cases are there, their verdicts alone."""
    if verdicts_alone:
        return ["--jrh-record-mode=none", "--jrh-judge-record-mode=new_episodes"]
    return ["--jrh-record-mode=new_episodes"]


def extent_sentences(session: SessionResults) -> list[str]:
    """Say for each suite whether the session was interrupted, or ran a part of it.

    Nothing of one that ran whole.
    """
    sentences = []
    for suite, extent in session.extents.items():
        cases = f"{extent.cases:,} of {counted(extent.of, 'case')}"
        of = f" of suite {suite}" if len(session.extents) > 1 else ""
        if extent.interrupted:
            sentences.append(
                f"Interrupted: this session did not run to its end; {cases}{of} have a result."
            )
        elif extent.cases < extent.of:
            sentences.append(f"{cases}{of} in this session.")
    return sentences


def recording_sentence(session: SessionResults) -> str:
    """Say how many cases are unrecorded, before the command that records them.

    Nothing where none is.
    """
    missing = sum(result.outcome == "unrecorded" for result in session.results)
    if not session.record_command or not missing:
        return ""
    return (
        f"{counted(missing, 'case')} unrecorded. With an API key, this records only what is "
        "missing:"
    )


def scales(rubrics: Mapping[tuple[str, str], Rubric]) -> dict[tuple[str, str], Sequence[int]]:
    """The scores on offer for each ordinal rubric, by suite and rubric id."""
    return {
        key: [level.score for level in rubric.score_levels]
        for key, rubric in rubrics.items()
        if rubric.score_levels
    }


def case_key(case_id: str) -> str:
    """A short name of a case that is the same in every session, for links such as
    `#case-0123456789ab`.
    """
    return hashlib.sha256(case_id.encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_LENGTH]


def majority_text(panel: Panel) -> str:
    """How often the majority of a panel is right, over all cases and over those that it decides,
    and in how many the panel has no verdict, and why.
    """
    cases = f"{panel.overall.count:,} of {counted(panel.overall.n, 'case')}"
    text = f"the majority is right in {cases} ({_with_interval(panel.overall)})"
    undecided = len(panel.without_vote)
    if undecided and panel.accuracy.n:
        text += f", in {panel.accuracy.count:,} of the {panel.accuracy.n:,} that it decides"
        text += f" ({_with_interval(panel.accuracy)})"
    if ties := panel.ties.count:
        verb = "is" if ties == 1 else "are"
        text += f"; {counted(ties, 'tie')} ({_with_interval(panel.ties)}) {verb} no verdict"
    if rest := undecided - (panel.ties.count or 0):
        text += f"; {counted(rest, 'case')} without a majority"
    return text


def _with_interval(share: Estimate) -> str:
    interval = range_text(share)
    return percent(share.value) + ("" if interval == NONE else f", 95% interval {interval}")


_WORDS: tuple[HumanReview, ...] = ("accepted", "edited", "rejected", "undecided")
_MOST_NAMED = 10


class UnsettledLabels(NamedTuple):
    """Labels that a person should look at again: why, and the cases, each once."""

    sentence: str
    cases: tuple[CaseResult, ...]


@dataclass(frozen=True, slots=True)
class RewordedRubric:
    """A rubric whose text is not the one that some of its cases were made for, and these cases."""

    suite: str
    rubric_id: str
    cases: tuple[CaseResult, ...]

    @property
    def sentence(self) -> str:
        """What the reports say of it."""
        labels = "label stands" if len(self.cases) == 1 else "labels stand"
        return (
            f"{counted(len(self.cases), 'case')} of the rubric {self.rubric_id!r} (suite "
            f"{self.suite}) had another text of the rubric when made: the {labels} for that text, "
            "the verdicts for the present one. Review them with --jrh-review."
        )


def reworded_rubrics(results: Iterable[CaseResult]) -> list[RewordedRubric]:
    """Find the rubrics with cases whose labels nobody has reviewed since the text was changed."""
    found: dict[tuple[str, str], list[CaseResult]] = {}
    for result in _each_once(results):
        if result.reworded and result.human_reviewed not in ("accepted", "edited"):
            found.setdefault((result.spec.suite, result.spec.rubric_id), []).append(result)
    return [RewordedRubric(suite, rubric, tuple(own)) for (suite, rubric), own in found.items()]


def altered_cases(results: Iterable[CaseResult]) -> tuple[CaseResult, ...]:
    """Find the cases that were changed on the disk, and that nobody has reviewed since."""
    return tuple(
        result
        for result in _each_once(results)
        if result.altered and result.human_reviewed not in ("accepted", "edited")
    )


def unsettled_labels(results: Sequence[CaseResult]) -> list[UnsettledLabels]:
    """All labels that a person should look at again."""
    found = [UnsettledLabels(one.sentence, one.cases) for one in reworded_rubrics(results)]
    if altered := altered_cases(results):
        one = len(altered) == 1
        was, its = ("was", "its label") if one else ("were", "their labels")
        sentence = (
            f"{counted(len(altered), 'case')} {was} changed on the disk after being made (the "
            f"record no longer fits its case_digest): nobody has confirmed {its}. Restore the "
            "file, or review the cases with --jrh-review."
        )
        found.append(UnsettledLabels(sentence, altered))
    for cases in contradicting_cases(results):
        labels = " and ".join(str(label) for label in sorted({one.expected or 0 for one in cases}))
        sentence = (
            f"{counted(len(cases), 'case')} with one rubric and transcript have contradicting "
            f"labels ({labels}): not all can be right. Review them with --jrh-review."
        )
        found.append(UnsettledLabels(sentence, cases))
    return found


def contradicting_cases(results: Iterable[CaseResult]) -> list[tuple[CaseResult, ...]]:
    """Find the cases with one rubric and transcript whose labels are not the same."""
    equal: dict[tuple[str, str], list[CaseResult]] = {}
    for result in _each_once(results):
        if result.outcome in MADE and result.content:
            equal.setdefault((result.spec.suite, result.content), []).append(result)
    return [tuple(cases) for cases in equal.values() if len({one.expected for one in cases}) > 1]


def unsettled_lines(session: SessionResults, width: int) -> Iterator[Styled]:
    """Say which labels a person should look at again, and name some of their cases."""
    for unsettled in unsettled_labels(session.results):
        for line in wrapped(f"! {one_line(unsettled.sentence)}", width):
            yield Styled(line, "yellow")
        for line in _named(session, unsettled.cases):
            yield Styled(line)


def review_counts(session: SessionResults) -> str:
    """Count the cases by what was decided, each once, however many judges it had.

    Nothing without a review.
    """
    counts = Counter(result.human_reviewed for result in _once(session))
    return ", ".join(f"{counts[word]:,} {word}" for word in _WORDS if counts[word])


def review_lines(session: SessionResults) -> Iterator[str]:
    """Tell of the counts, and name the cases whose decisions are void."""
    if counts := review_counts(session):
        yield f"review: {counts}"
    void = [result for result in _once(session) if result.human_reviewed == "void"]
    if void:
        decisions = "decision is" if len(void) == 1 else "decisions are"
        yield (
            f"review: {len(void):,} {decisions} void, because the case was made in another way "
            "since:"
        )
        yield from _named(session, void)


def _named(session: SessionResults, results: Sequence[CaseResult]) -> Iterator[str]:
    yield from (f"  {one_line(session.node(result.case_id))}" for result in results[:_MOST_NAMED])
    if len(results) > _MOST_NAMED:
        yield f"  and {len(results) - _MOST_NAMED:,} more"


def _once(session: SessionResults) -> Iterable[CaseResult]:
    return _each_once(result for result in session.results if result.human_reviewed)


def _each_once(results: Iterable[CaseResult]) -> Iterable[CaseResult]:
    """One result of each case, however many judges it had."""
    return {
        generation_id(result.spec): result for result in results if not result.spec.derived
    }.values()
