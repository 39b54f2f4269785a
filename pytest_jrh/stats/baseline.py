"""The baseline: the accepted verdict of each judge on each case."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, cast

from pytest_jrh.core.model import JUDGED, UNSCORED, CaseResult

DIGEST_LENGTH = 16
NEVER_REPORTED = "never reported"
NOT_IN_BASELINE = "not in the baseline"
NOT_IN_SUITE = "no longer in the suite"
CASE_CHANGED = "the case has changed: another rubric text, transcript or label"


@dataclass(frozen=True, slots=True)
class BaselineCase:
    """One line of the baseline; `reason` is written by a person and kept by updates.

    Digest and fingerprint are the first 16 hex digits, so that a line stays readable. `score` is
    None where repeats have no majority. `scores` are those of several repeats, and empty where the
    case was judged once.
    """

    case_id: str
    case_digest: str
    judge_fingerprint: str
    outcome: Literal["agree", "disagree"]
    score: int | None
    reason: str = ""
    scores: tuple[int, ...] = ()

    @property
    def all_scores(self) -> tuple[int, ...]:
        """The scores of all repeats, also where there was one."""
        return self.scores or (() if self.score is None else (self.score,))


@dataclass(frozen=True, slots=True)
class Baseline:
    """The accepted verdicts, by case id."""

    cases: Mapping[str, BaselineCase] = field(default_factory=dict)

    def match(self, result: CaseResult) -> BaselineCase | None:
        """Look up the line of the case that was judged: same id, same digest."""
        line = self.cases.get(result.case_id)
        if line is None or line.case_digest != short(result.case_digest):
            return None
        return line

    def of_subset(self, cases: Collection[str], suites: Collection[str]) -> Baseline:
        """The baseline with these cases alone of the suites, as ids name them."""
        lines = {}
        for case_id, line in self.cases.items():
            if case_id in cases or suite_of(case_id) not in suites:
                lines[case_id] = line
        return Baseline(lines)


@dataclass(frozen=True, slots=True)
class Scope:
    """The cases that a session could have run, and those that it selected, by id.

    `known` holds every case of the suites in play, also what `-k`, `--lf` or a node id left out;
    `selected` is the rest after that. Cases of other suites are no part of either.
    """

    known: frozenset[str]
    selected: frozenset[str]

    @classmethod
    def of(cls, known: Iterable[str], selected: Iterable[str] | None = None) -> Scope:
        """Build a scope; without `selected`, all known cases are selected."""
        everything = frozenset(known)
        return cls(everything, everything if selected is None else frozenset(selected))

    @property
    def suites(self) -> frozenset[str]:
        """The suites of this session, as ids name them."""
        return frozenset(map(suite_of, self.known | self.selected))

    @property
    def deselected(self) -> frozenset[str]:
        """The cases that were deselected."""
        return self.known - self.selected


class Pair(NamedTuple):
    """A case with a verdict on both sides: its line, and what it came to now."""

    before: BaselineCase
    now: CaseResult

    @property
    def same_judge(self) -> bool:
        """Whether both verdicts are of one judge (model, prompt, parameters)."""
        return self.before.judge_fingerprint == short(self.now.judge_digest)

    @property
    def was_right(self) -> bool:
        """Whether the majority of its verdicts was right."""
        return self.before.outcome == "agree"

    @property
    def is_right(self) -> bool:
        """Whether the majority is right now."""
        return self.now.outcome == "agree"


@dataclass(frozen=True)
class Comparison:
    """A session compared with the baseline, in order of case ids.

    `all_pairs` are the cases with a verdict on both sides and the same digest; `not_comparable`
    gives for each other case the reason.
    """

    all_pairs: tuple[Pair, ...] = ()
    not_comparable: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Those that count in figures: all but those of probes."""
        return tuple(pair for pair in self.all_pairs if not pair.now.spec.derived)

    @property
    def compared(self) -> int:
        """How many cases were compared."""
        return len(self.all_pairs)

    @cached_property
    def regressions(self) -> tuple[str, ...]:
        """Right before, wrong now."""
        return self._cases(was_right=True, is_right=False)

    @cached_property
    def fixes(self) -> tuple[str, ...]:
        """Wrong before, right now."""
        return self._cases(was_right=False, is_right=True)

    @property
    def still_wrong(self) -> tuple[str, ...]:
        """Wrong before and now."""
        return self._cases(was_right=False, is_right=False)

    def _cases(self, *, was_right: bool, is_right: bool) -> tuple[str, ...]:
        sides = (was_right, is_right)
        return tuple(
            pair.now.case_id for pair in self.all_pairs if (pair.was_right, pair.is_right) == sides
        )


@dataclass(frozen=True, slots=True)
class Update:
    """An updated baseline, and what changed, in order of case ids.

    `kept` gives for each selected case without a verdict the reason, its line, if any, being
    unchanged: where it is not empty, the session did not finish cleanly.
    """

    baseline: Baseline
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)


def suite_of(case_id: str) -> str:
    """The suite's part of a case id."""
    return case_id.partition("::")[0]


def short(digest: str) -> str:
    """The hex digits of a SHA-256 that the baseline keeps."""
    return digest[:DIGEST_LENGTH]


def compare(baseline: Baseline, results: Iterable[CaseResult], scope: Scope) -> Comparison:
    """Compare the last result of each case with the baseline.

    A case that was deselected is on neither side.
    """
    by_id = {result.case_id: result for result in results}
    pairs: list[Pair] = []
    not_comparable: dict[str, str] = {}
    suites = scope.suites
    lines = {case_id for case_id in baseline.cases if suite_of(case_id) in suites}
    for case_id in sorted((lines - scope.deselected) | by_id.keys()):
        result, before = by_id.get(case_id), baseline.cases.get(case_id)
        if reason := _one_sided(case_id, result, before, scope):
            not_comparable[case_id] = reason
        elif result is not None and before is not None:
            pairs.append(Pair(before, result))
    return Comparison(tuple(pairs), not_comparable)


def update(baseline: Baseline, results: Iterable[CaseResult], scope: Scope) -> Update:
    """Update a baseline with a session's verdicts, and leave all other lines unchanged.

    Cases that were deselected, belong to other suites, are unscored or were never reported keep
    their lines. A line is removed where its case is no longer in the suite, or has no
    case or no label now.
    """
    cases = dict(baseline.cases)
    by_id = {result.case_id: result for result in results}
    kept: dict[str, str] = {}
    suites, there = scope.suites, scope.known | by_id.keys()
    removed = [case_id for case_id in cases if suite_of(case_id) in suites and case_id not in there]
    for case_id in sorted(scope.selected | by_id.keys()):
        result = by_id.get(case_id)
        if result is not None and result.outcome in JUDGED:
            cases[case_id] = _line(result, cases.get(case_id))
        elif result is not None and result.outcome in ("no_case", "unlabelled"):
            removed += [case_id] if case_id in cases else []
        elif result is None or result.outcome in UNSCORED:
            kept[case_id] = NEVER_REPORTED if result is None else f"unscored: {result.outcome}"
    for case_id in removed:
        del cases[case_id]
    before = baseline.cases
    return Update(
        Baseline(dict(sorted(cases.items()))),
        added=tuple(sorted(cases.keys() - before.keys())),
        changed=tuple(
            sorted(
                case_id
                for case_id in cases.keys() & before.keys()
                if cases[case_id] != before[case_id]
            )
        ),
        removed=tuple(sorted(removed)),
        kept=kept,
    )


def _one_sided(
    case_id: str, result: CaseResult | None, before: BaselineCase | None, scope: Scope
) -> str:
    """Why a case cannot be compared; None where it can, or has no verdict on either side."""
    judged = result is not None and result.outcome in JUDGED
    if before is None:
        return NOT_IN_BASELINE if judged else ""
    if result is None:
        return NEVER_REPORTED if case_id in scope.selected else NOT_IN_SUITE
    if not judged:
        return f"no verdict now: {result.outcome}"
    return CASE_CHANGED if before.case_digest != short(result.case_digest) else ""


def _line(result: CaseResult, before: BaselineCase | None) -> BaselineCase:
    """The line of a verdict, with what it keeps of the line before."""
    assert result.case_digest
    assert result.judge_digest
    return BaselineCase(
        result.case_id,
        short(result.case_digest),
        short(result.judge_digest),
        cast("Literal['agree', 'disagree']", result.outcome),
        result.score,
        before.reason if before is not None else "",
        result.scores if len(result.scores) > 1 else (),
    )
