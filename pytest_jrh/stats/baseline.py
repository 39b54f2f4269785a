"""The baseline: the accepted verdict of each judge on each case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import field, replace

from pytest_jrh.config.schema import GateRules
from pytest_jrh.core import frozen
from pytest_jrh.core.results import CaseResult, CaseSpending, Extra, JudgeLine
from pytest_jrh.core.skips import JUDGED, UNSCORED, Why

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

    def earlier_judges(self, case_ids: Iterable[str]) -> set[str]:
        """The digests of the judges that gave these verdicts."""
        return {short(self.cases[case_id].judge_digest) for case_id in case_ids}


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
