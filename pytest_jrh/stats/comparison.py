"""The baseline, which is the accepted verdict of each judge on each case, and the verdicts of a
session beside it: what is compared, and what is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

from pytest_jrh.core import frozen
from pytest_jrh.core.cases import JUDGED, UNSCORED, Outcome, Why
from pytest_jrh.core.results import CaseResult, CaseSpending, Extra, JudgeLine
from pytest_jrh.core.sections import GateRules
from pytest_jrh.core.text import counted
from pytest_jrh.stats.verdicts import Bools, Coded, Verdicts

DIGEST_LENGTH = 16
NEVER_REPORTED = "never reported"
WRONG_BEFORE = "wrong in the baseline too"
LEFT_TO_THE_DECISION = "left to `decision`"
ACCEPTED = "accepted into the baseline"


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


@frozen
class Baseline:
    """The accepted verdicts, lines of a ledger by case id, and the judges that gave them.

    Digests are their first 16 hex digits, so that a line stays readable. `extra.reason` is written
    by a person and kept by updates.
    """

    cases: Mapping[str, CaseResult] = field(default_factory=dict)
    judge_lines: tuple[JudgeLine, ...] = ()

    def line(self, result: CaseResult) -> CaseResult | None:
        """The line of the case that was judged: same id, same digest."""
        line = self.cases.get(result.case_id)
        return line if line is not None and same_case(line, result) else None

    def prompt_change(self, judge: JudgeLine, digests: Set[str]) -> PromptChange | None:
        """The prompts before and now of a judge with a prompt whose verdicts are compared with
        those of these judges; None where they are its own.
        """
        earlier = digests - {short(judge.judge_digest)}
        if not earlier or not judge.prompt:
            return None
        prompts = [known.prompt for known in self.judge_lines if known.judge_digest in earlier]
        return PromptChange(judge, next(filter(None, prompts), None))

    def ids_of(self, judge: JudgeLine) -> list[str]:
        """The ids of the cases of a judge, or of the one that had its name before."""
        known = self.cases.items()
        return [id_ for id_, of in known if (of.suite, of.judge) == (judge.suite, judge.judge)]

    def earlier_judges(self, case_ids: Iterable[str]) -> set[str]:
        """The digests of the judges that gave these verdicts."""
        return {short(self.cases[case_id].judge_digest) for case_id in case_ids}


NO_BASELINE = Baseline()


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


def same_case(line: CaseResult, result: CaseResult) -> bool:
    """Whether both are verdicts on one case (rubric, transcript and label)."""
    return short(line.case_digest) == short(result.case_digest)


def same_judge(line: CaseResult, result: CaseResult) -> bool:
    """Whether both are verdicts of one judge (model, prompt, parameters)."""
    return short(line.judge_digest) == short(result.judge_digest)


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
    kept: Mapping[str, str]


def suite_of(case_id: str) -> str:
    """The suite's part of a case id."""
    return case_id.partition("::")[0]


def short(digest: str) -> str:
    """The hex digits of a SHA-256 that the baseline keeps."""
    return digest[:DIGEST_LENGTH]


def is_active(rules: GateRules, baseline: Baseline | None) -> bool:
    """Whether a limit or a baseline decides."""
    return baseline is not None or rules.has_limits


def tolerated(
    result: CaseResult, baseline: Baseline | None, rules: GateRules, *, accepts: bool = False
) -> str | None:
    """Why a case's disagreement does not fail its item; None where it does, or the case agrees.

    Needs only the case's own result, so that every xdist worker can call it.
    """
    if result.outcome != "disagree":
        return None
    before = baseline.line(result) if baseline else None
    if accepts and (baseline is None or result.case_id not in baseline.cases):
        return ACCEPTED
    if before is not None and not result.scale.accepts(before.score, result.label):
        reason = before.extra.reason
        return f"{WRONG_BEFORE}: {reason}" if reason else WRONG_BEFORE
    return LEFT_TO_THE_DECISION if accepts or is_active(rules, baseline) else None


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
    kept = {}
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
            is_same = same_case(before, line) and same_judge(before, line)
            if before.scores != line.scores or not is_same:
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


NOT_IN_BASELINE = "not in the baseline"
NOT_IN_SUITE = "no longer in the suite"
NO_VERDICT = "without a verdict"
CASE_CHANGED = "the case has changed: another text of the case or its rubric, or another label"
# What a suite is compared by where it has grown: fewer runs cannot show a loss of another judge.
_FEWEST_RUNS = 5
_KINDS = {
    NOT_IN_SUITE: "left the suite",
    NO_VERDICT: NO_VERDICT,
    CASE_CHANGED: "with other labels or texts",
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """The verdicts of a session in order of case ids, with those of the baseline beside them.

    `lines` are the ids of the cases that the baseline has of these suites, None without a baseline,
    and `gone` gives for those that the session has no result of the reason.
    """

    verdicts: Verdicts
    lines: Collection[str] | None = None
    gone: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def everything(self) -> Verdicts:
        """The cases with a verdict on both sides and the same digest."""
        return self.verdicts.where(~self.verdicts.before.equals(None))

    @cached_property
    def compared(self) -> Verdicts:
        """Those that count in figures: all but those of probes."""
        return self.everything.where(~self.everything.derived)

    @cached_property
    def judged(self) -> Verdicts:
        """All verdicts, compared or not."""
        return self.verdicts.judged

    @cached_property
    def not_comparable(self) -> Mapping[str, str]:
        """Why each other case is not compared, in order of case ids."""
        reasons = dict(self.gone)
        apart = self.verdicts.where(self.verdicts.apart.each(bool))
        reasons |= dict(zip(apart.ids, apart.apart.values, strict=True))
        return dict(sorted(reasons.items()))

    @cached_property
    def new(self) -> Verdicts:
        """The verdicts on cases that the baseline does not have; those of probes count in none."""
        judged = self.judged
        return judged.where(judged.apart.equals(NOT_IN_BASELINE) & ~judged.derived)

    def has_group(self, verdicts: Verdicts) -> Bools:
        """Of which verdicts cases of the judge were compared under the rubric, and of the class."""
        rubrics = {*self.compared.kinds("judge", "rubric").names}
        classes = {*self.compared.kinds("judge", "case_class").names}
        under = verdicts.kinds("judge", "rubric").each(rubrics.__contains__)
        of_class = verdicts.kinds("judge", "case_class").each(classes.__contains__)
        both: Bools = under & of_class
        return both

    @cached_property
    def regressions(self) -> tuple[str, ...]:
        """Right before, wrong now."""
        return tuple(self.everything.ids[self.everything.was_right & ~self.everything.right])

    @cached_property
    def fixes(self) -> tuple[str, ...]:
        """Wrong before, right now."""
        return tuple(self.everything.ids[~self.everything.was_right & self.everything.right])


def compare(
    baseline: Baseline | None, results: Sequence[CaseResult], verdicts: Verdicts, scope: Scope
) -> Comparison:
    """Compare verdicts, which are of some of the results, with the baseline.

    A case that was deselected is on neither side.
    """
    verdicts = verdicts.in_order(verdicts.ids)
    if baseline is None:
        return Comparison(verdicts)
    suites = scope.suites
    lines = {case_id for case_id in baseline.cases if suite_of(case_id) in suites}
    before = []
    apart, of_same_judge = [], []
    for row in verdicts.row:
        result = results[row]
        line = baseline.cases.get(result.case_id)
        is_same = line is not None and same_case(line, result)
        reason = why_apart(result.outcome, has_line=line is not None, is_same=is_same)
        before.append(None if line is None or reason else line.complete_scores)
        apart.append(reason)
        of_same_judge.append(line is not None and same_judge(line, result))
    gone = {}
    for case_id in lines - scope.deselected - {*verdicts.ids}:
        gone[case_id] = NEVER_REPORTED if case_id in scope.selected else NOT_IN_SUITE
    return Comparison(
        replace(
            verdicts,
            before=Coded.of(before),
            apart=Coded.of(apart),
            same_judge=Coded.of(of_same_judge),
        ),
        lines,
        gone,
    )


def why_apart(outcome: Outcome, *, has_line: bool, is_same: bool) -> str:
    """Why a case is not compared; empty where it is, or has no verdict on either side."""
    if not has_line:
        return NOT_IN_BASELINE if outcome in JUDGED else ""
    if outcome not in JUDGED:
        return f"no verdict now: {outcome}"
    return "" if is_same else CASE_CHANGED


def missing_from(comparison: Comparison) -> tuple[set[str], list[str]]:
    """The cases, by id, that left the comparison, but what was deselected and what has no verdict;
    and clauses that count them, repeats that are gone among them.

    Of new cases those are counted that are of a compared run: a suite that has grown by runs, or by
    a judge, rubric or class, has none. Where hardly a run was compared, and more cases are new than
    were, all of such a judge, rubric and class. What probes turn is decided by itself.
    """
    verdicts, compared = comparison.verdicts, comparison.compared
    unscored = {*verdicts.ids[verdicts.unscored]}
    missing = set()
    kinds: Counter[str] = Counter()
    for case_id, reason in comparison.not_comparable.items():
        if reason not in (NOT_IN_BASELINE, NEVER_REPORTED) and case_id not in unscored:
            missing.add(case_id)
            kinds[_KINDS.get(reason, "without a case or label")] += 1
    clauses = [f"{number:,} {kind}" for kind, number in kinds.most_common()]
    repeats = compared.kinds("before", "answers")
    fewer = int(repeats.each(lambda kind: len(kind[1]) < len(kind[0])).sum())
    if fewer:
        clauses.append(f"{counted(fewer, 'case')} with fewer repeats")
    new = comparison.new
    new = new.where(comparison.has_group(new))
    runs = {*compared.run.present()}
    hardly_any = len(runs) < _FEWEST_RUNS and len(new) > len(compared)
    if not hardly_any:
        new = new.where(new.run.each(runs.__contains__))
    added = {*new.ids}
    if added:
        clauses.append(f"{counted(len(added), 'case')} not in the baseline")
    return missing | added, clauses
