"""The baseline: the accepted verdict of each judge on each case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from pytest_jrh.core import frozen
from pytest_jrh.core.diffs import shared_ends
from pytest_jrh.core.results import CaseResult, CaseSpending, Extra, JudgeLine
from pytest_jrh.core.scales import CaseClass
from pytest_jrh.core.skips import JUDGED, UNSCORED, Why
from pytest_jrh.core.text import counted

DIGEST_LENGTH = 16
NEVER_REPORTED = "never reported"
NOT_IN_BASELINE = "not in the baseline"
NOT_IN_SUITE = "no longer in the suite"
CASE_CHANGED = "the case has changed: another rubric text, transcript or label"
# What a suite is compared by where it has grown: fewer runs cannot show a loss of another judge.
_FEWEST_RUNS = 5
_KINDS = {NOT_IN_SUITE: "left the suite", CASE_CHANGED: "with other labels or texts"}


@frozen
class PromptChange:
    """A judge whose verdicts are compared with those of another one; `before` is the prompt of that
    one, None where it was not kept.
    """

    now: JudgeLine
    before: str | None

    @property
    def is_reworded(self) -> bool:
        """Whether both prompts are known, and differ."""
        return self.before is not None and self.before != self.now.prompt

    @property
    def lines(self) -> tuple[int, int]:
        """The first and the last line of the prompt that are others than before, from 1."""
        if self.before is None:
            return 1, 1
        old, new = self.before.splitlines(), self.now.prompt.splitlines()
        same_first, same_last = shared_ends(old, new)
        first = max(1, min(same_first + 1, len(new)))
        return first, max(first, len(new) - same_last)


@frozen
class Baseline:
    """The accepted verdicts, lines of a ledger by case id, and the judges that gave them.

    Digests are their first 16 hex digits, so that a line stays readable. `extra.reason` is written
    by a person and kept by updates.
    """

    cases: Mapping[str, CaseResult] = field(default_factory=dict)
    judge_lines: tuple[JudgeLine, ...] = ()

    @property
    def judges(self) -> Mapping[str, JudgeLine]:
        """The judges by their digests: those of one digest differ in their names alone."""
        return {judge.judge_digest: judge for judge in self.judge_lines}

    def match(self, result: CaseResult) -> Pair | None:
        """The case that was judged and its line: same id, same digest."""
        line = self.cases.get(result.case_id)
        if line is None or not Pair(line, result).same_case:
            return None
        return Pair(line, result)

    def changes(self, comparison: Comparison, judges: Iterable[JudgeLine]) -> list[PromptChange]:
        """Of the judges with a prompt that are not those of the baseline, the prompts before and
        now, as far as they are known.
        """
        changes = []
        for judge in judges:
            earlier = set()
            for pair in comparison.pairs:
                is_of_judge = (pair.now.suite, pair.now.judge) == (judge.suite, judge.judge)
                if is_of_judge and not pair.same_judge:
                    earlier.add(short(pair.before.judge_digest))
            if earlier and judge.prompt:
                prompts = self.prompts_of(earlier)
                changes.append(PromptChange(judge, prompts[0] if prompts else None))
        return changes

    def prompts_of(self, digests: Set[str]) -> list[str]:
        """The prompts of judges, as far as they have one that is known."""
        known = [judge for judge in self.judge_lines if judge.judge_digest in digests]
        return [judge.prompt for judge in known if judge.prompt]


@frozen
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

    before: CaseResult
    now: CaseResult

    @property
    def same_case(self) -> bool:
        """Whether both verdicts are on one case (rubric, transcript and label)."""
        return short(self.before.case_digest) == short(self.now.case_digest)

    @property
    def same_judge(self) -> bool:
        """Whether both verdicts are of one judge (model, prompt, parameters)."""
        return short(self.before.judge_digest) == short(self.now.judge_digest)

    @property
    def was_right(self) -> bool:
        """Whether the majority of its verdicts was right: the label is that of now."""
        return self.now.scale.accepts(self.before.score, self.now.label)

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
    def _groups(self) -> set[tuple[str, str | CaseClass | None]]:
        groups: set[tuple[str, str | CaseClass | None]] = set()
        for pair in self.pairs:
            groups.update(_groups_of(pair.now))
        return groups

    def has_group(self, result: CaseResult) -> bool:
        """Whether cases of its judge were compared under its rubric, and of its class."""
        return self._groups.issuperset(_groups_of(result))

    @cached_property
    def regressions(self) -> tuple[str, ...]:
        """Right before, wrong now."""
        return tuple(p.now.case_id for p in self.all_pairs if p.was_right and not p.is_right)

    @cached_property
    def fixes(self) -> tuple[str, ...]:
        """Wrong before, right now."""
        return tuple(p.now.case_id for p in self.all_pairs if p.is_right and not p.was_right)


@frozen
class Update:
    """An updated baseline, and what changed, in order of case ids.

    `kept` gives for each selected case without a verdict the reason, its line, if any, being
    unchanged: where it is not empty, the session did not finish cleanly.
    """

    baseline: Baseline
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
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


def missing_from(
    comparison: Comparison, received: Iterable[CaseResult]
) -> tuple[set[str], list[str]]:
    """The cases, by id, that left the comparison, but what was deselected and what has no verdict;
    and clauses that count them, repeats that are gone among them.

    Of new cases those are counted that are of a compared run: a suite that has grown by runs, or by
    a judge, rubric or class, has none. Where hardly a run was compared, and more cases are new than
    were, all of such a judge, rubric and class. What probes turn is decided by itself.
    """
    by_id = {result.case_id: result for result in received}
    missing: set[str] = set()
    kinds: Counter[str] = Counter()
    new = []
    for case, reason in comparison.not_comparable.items():
        result = by_id.get(case)
        if reason == NOT_IN_BASELINE and result is not None:
            if comparison.has_group(result) and not result.spec.derived:
                new.append(result)
        elif reason != NEVER_REPORTED and (result is None or result.outcome not in UNSCORED):
            missing.add(case)
            kinds[_KINDS.get(reason, "without a case or label")] += 1
    clauses = [f"{number:,} {kind}" for kind, number in kinds.most_common()]
    fewer = sum(
        len(now.complete_scores) < len(old.complete_scores) for old, now in comparison.pairs
    )
    if fewer:
        clauses.append(f"{counted(fewer, 'case')} with fewer repeats")
    runs = {(pair.now.run_id, pair.now.epoch) for pair in comparison.pairs}
    hardly_any = len(runs) < _FEWEST_RUNS and len(new) > len(comparison.pairs)
    added = set()
    for result in new:
        if hardly_any or (result.run_id, result.epoch) in runs:
            added.add(result.case_id)
    if added:
        clauses.append(f"{counted(len(added), 'case')} not in the baseline")
    return missing | added, clauses


def _groups_of(result: CaseResult) -> list[tuple[str, str | CaseClass | None]]:
    """Its rubric and its class, by judge."""
    return [(result.judge, result.rubric_id), (result.judge, result.case_class)]


def update(
    baseline: Baseline,
    results: Iterable[CaseResult],
    scope: Scope,
    judges: Iterable[JudgeLine] = (),
) -> Update:
    """Update a baseline with a session's verdicts and judges, and leave all other lines unchanged.

    Cases that were deselected, belong to other suites, are unscored or were never reported keep
    their lines. A line is removed where its case is no longer in the suite, or has no
    case or no label now.
    """
    cases = dict(baseline.cases)
    by_id = {result.case_id: result for result in results}
    kept: dict[str, str] = {}
    added, changed = [], []
    suites, there = scope.suites, scope.known | by_id.keys()
    removed = [case_id for case_id in cases if suite_of(case_id) in suites and case_id not in there]
    for case_id in sorted(scope.selected | by_id.keys()):
        result, before = by_id.get(case_id), cases.get(case_id)
        if result is None or result.outcome in UNSCORED:
            kept[case_id] = NEVER_REPORTED if result is None else f"unscored: {result.outcome}"
        elif result.outcome in JUDGED:
            line = replace(
                result,
                case_digest=short(result.case_digest),
                judge_digest=short(result.judge_digest),
                why=Why(),
                spending=CaseSpending(),
                extra=Extra(reason=before.extra.reason if before is not None else ""),
            )
            cases[case_id] = line
            if before is None:
                added.append(case_id)
                continue
            # Reasonings are others each time that a judge is asked.
            pair = Pair(before, line)
            if before.scores != line.scores or not (pair.same_case and pair.same_judge):
                changed.append(case_id)
        elif result.outcome in ("no_case", "unlabelled") and before is not None:
            removed.append(case_id)
    for case_id in removed:
        del cases[case_id]
    updated = Baseline(cases, _judges_of(cases, baseline, judges))
    return Update(updated, tuple(added), tuple(changed), tuple(sorted(removed)), kept)


def _judges_of(
    cases: Mapping[str, CaseResult], baseline: Baseline, judges: Iterable[JudgeLine]
) -> tuple[JudgeLine, ...]:
    """The judges of the cases, in order, by what is known now, else by the baseline."""
    used = {(line.suite, line.judge, line.judge_digest) for line in cases.values()}
    known: dict[tuple[str, str, str], JudgeLine] = {}
    for judge in (*baseline.judge_lines, *judges):
        key = (judge.suite, judge.judge, short(judge.judge_digest))
        # Of a session of some cases, in which code asked nothing, it is still known that it asks.
        asks_model = judge.asks_model or known.get(key, judge).asks_model
        if key in used:
            known[key] = replace(judge, judge_digest=key[2], asks_model=asks_model)
    return tuple(judge for _, judge in sorted(known.items()))


def _one_sided(
    case_id: str, result: CaseResult | None, before: CaseResult | None, scope: Scope
) -> str:
    """Why a case cannot be compared; None where it can, or has no verdict on either side."""
    judged = result is not None and result.outcome in JUDGED
    if before is None or not before.complete_scores:
        return NOT_IN_BASELINE if judged else ""
    if result is None:
        return NEVER_REPORTED if case_id in scope.selected else NOT_IN_SUITE
    if not judged:
        return f"no verdict now: {result.outcome}"
    return "" if Pair(before, result).same_case else CASE_CHANGED
