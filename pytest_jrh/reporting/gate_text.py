"""The gate's decision as pure text: what changed, one sentence, and the cases (rule J5)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_jrh.reporting.gating.changes import comparison_sentences, undecided_sentence
from pytest_jrh.reporting.gating.coverage import coverage_sentences
from pytest_jrh.reporting.gating.thresholds import subject, threshold_text
from pytest_jrh.reporting.planner_text import prospect_sentences
from pytest_jrh.text import Styled, counted, one_line, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pytest_jrh.gate.decision import GateDecision

MOST_NAMED = 50
# pytest names each of them, too, and says why.
MOST_UNSCORED = 5
# Ten right answers of ten still leave a 95% interval that begins at 72%.
FEW_CASES = 10


def decision_sentence(decision: GateDecision) -> str:
    """Say whether the gate passed, and why: what failed, or every threshold that was met; and where
    less was compared than the baseline has, how much.
    """
    return " ".join([_verdict_sentence(decision), *coverage_sentences(decision)])


def _verdict_sentence(decision: GateDecision) -> str:
    missing = []
    if decision.never_reported:
        missing.append(f"{counted(len(decision.never_reported), 'case')} never reported")
    if decision.unscored:
        missing.append(f"{counted(len(decision.unscored), 'case')} unscored")
    if decision.nothing_ran:
        missing.append("none of its cases was run")
    if decision.passed:
        if not decision.active:
            return "No gate is set: each disagreement fails its item."
        met = _met(decision) or [threshold_text(each, decision) for each in decision.thresholds]
        return f"Gate passed: {'; '.join(met) or 'nothing was to be judged'}."
    failed = [
        threshold_text(threshold, decision)
        for threshold in decision.thresholds
        if not threshold.passed
    ]
    said = f"{'Gate failed' if decision.active else 'Not green'}: {'; '.join([*failed, *missing])}."
    met = _met(decision)
    return f"{said} Met: {'; '.join(met)}." if met else said


def _met(decision: GateDecision) -> list[str]:
    """The thresholds that were met, but for one verdict being enough."""
    return [
        threshold_text(threshold, decision)
        for threshold in decision.thresholds
        if threshold.passed and (threshold.rule != "min_cases" or threshold.limit > 1)
    ]


def gate_lines(
    decision: GateDecision,
    name: Callable[[str], str] = lambda case_id: case_id,
    most: int = MOST_NAMED,
    width: int | None = None,
) -> list[Styled]:
    """List what changed, what is missing, and the decision; `name` turns a case id into what is
    printed for it.

    Of each kind at most `most` cases are named and the rest is counted. Sentences, not names, are
    wrapped where a `width` is given. No lines where there is no gate and nothing is missing.
    """
    if decision.passed and not decision.active:
        return []
    lines = []
    for group in gate_groups(decision):
        cases = [(name(case_id), why) for case_id, why in group.cases]
        named = min(most, group.most)
        lines += [Styled(line, group.style) for line in _section(group.title, cases, named)]
    sentences = [Styled(sentence) for sentence in change_sentences(decision)]
    sentences.append(Styled(decision_sentence(decision), "green" if decision.passed else "red"))
    for sentence in sentences:
        parts = wrapped(sentence.text, width) if width else [sentence.text]
        lines += [Styled(part, sentence.style) for part in parts]
    return [*lines, *next_lines(decision, width)]


def next_lines(decision: GateDecision, width: int | None = None) -> list[Styled]:
    """What to do where nothing could be compared, and the command that does it; nothing
    elsewhere.
    """
    advice = update_sentence(decision)
    if advice is None:
        return []
    parts = wrapped(advice, width) if width else [advice]
    command = one_line(decision.update_command)
    return [
        *(Styled(part, "yellow") for part in parts),
        *([Styled(f"  {command}")] * bool(command)),
    ]


def change_sentences(decision: GateDecision) -> list[str]:
    """Say what changed since the baseline, what such a comparison can show, and what the decision
    does not rest on.
    """
    lines = [*comparison_sentences(decision)]
    if sentence := undecided_sentence(decision):
        lines.append(sentence)
    # A drop that is not decided says itself what would decide it.
    drops = [threshold.drop for threshold in decision.thresholds if threshold.drop is not None]
    advise = all(drop.verdict != "INCONCLUSIVE" for drop in drops)
    lines += prospect_sentences(
        decision.prospects, advise=advise, unknown_said=decision.is_snapshot
    )
    return [*lines, *_unjudged_sentences(decision), *_few_cases(decision)]


def update_sentence(decision: GateDecision) -> str | None:
    """What to do where nothing could be compared, before the command that does it.

    None elsewhere, and where verdicts are to be recorded first: there is one next command.
    """
    if not decision.uncompared or "unrecorded" in decision.unscored.values():
        return None
    ways = "Set gate.allow_uncompared: true if the suite is new, or update the baseline"
    return f"{ways} with:" if decision.update_command else f"{ways}."


def _unjudged_sentences(decision: GateDecision) -> Iterator[str]:
    """Name what has no verdict at all, or say once that no case has one."""
    tests = [each for each in decision.unjudged if each.kind == "test"]
    if decision.judged == 0 and tests:
        total: Counter[str] = Counter()
        for each in tests:
            total.update(dict(each.outcomes))
        yield f"No case has a verdict ({_outcomes(sorted(total.items()))})."
        return
    for each in decision.unjudged:
        name = one_line(each.name)
        yield f"No verdict on any case of {each.kind} {name} ({_outcomes(each.outcomes)})."


def _outcomes(outcomes: Sequence[tuple[str, int]]) -> str:
    cases = counted(sum(number for _, number in outcomes), "case")
    return f"{cases}: {', '.join(f'{number:,} {outcome}' for outcome, number in outcomes)}"


def _few_cases(decision: GateDecision) -> Iterator[str]:
    """A gate that hardly any case decides; a limit that was raised has been thought of, and a drop
    is not decided by a few.
    """
    if decision.holds_a_drop:
        return
    for threshold in decision.thresholds:
        if threshold.rule == "min_cases" and threshold.limit <= 1 and 0 < threshold.n < FEW_CASES:
            by = f" by {one_line(threshold.judge)}" if threshold.judge else ""
            yield (
                f"Few cases for a gate: {counted(threshold.n, 'verdict')}{by}, and with min_cases: "
                f"{threshold.limit:,.0f} one verdict is enough; set gate.min_cases to what the "
                "suite should have."
            )


@dataclass(frozen=True, slots=True)
class CaseGroup:
    """Cases that the gate has to name, by id, each with a remark beside the title; in lines of
    text at most so many.
    """

    title: str
    cases: tuple[tuple[str, str], ...]
    style: str = ""
    most: int = MOST_NAMED


def gate_groups(decision: GateDecision) -> list[CaseGroup]:
    """The cases that changed, count against a threshold, or are missing; no group is empty."""
    return [group for group in _groups(decision) if group.cases]


def _groups(decision: GateDecision) -> Iterator[CaseGroup]:
    again = set(decision.flickered)
    for title, cases, style in (
        ("regressions", decision.regressions, "red"),
        ("fixes", decision.fixes, "green"),
    ):
        yield CaseGroup(title, _bare(case for case in cases if case not in again), style)
        flickered = _bare(case for case in cases if case in again)
        yield CaseGroup(f"{title} by flicker: the judge has not changed", flickered, style)
    if decision.active:
        yield CaseGroup(_new_title(decision), _bare(decision.new_disagreements), "red")
    for threshold in decision.thresholds:
        if not threshold.passed and threshold.rule in ("min_accuracy", "lower_bound"):
            title = f"disagreements for which the {subject(threshold)} is too low"
            yield CaseGroup(title, _bare(threshold.cases), "red")
    yield CaseGroup("never reported", _bare(decision.never_reported), "red")
    yield CaseGroup("unscored", tuple(decision.unscored.items()), "red", MOST_UNSCORED)
    said = {*decision.never_reported, *decision.unscored, *decision.new_disagreements}
    rest = [
        (case_id, why) for case_id, why in decision.not_comparable.items() if case_id not in said
    ]
    yield CaseGroup("not comparable with the baseline", tuple(rest), "yellow")


def _bare(case_ids: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((case_id, "") for case_id in case_ids)


def _section(title: str, cases: list[tuple[str, str]], most: int) -> list[str]:
    named = [f"  {name} ({why})" if why else f"  {name}" for name, why in cases[:most]]
    more = [f"  and {len(cases) - most:,} more"] if len(cases) > most else []
    return [f"{title} ({len(cases):,}):", *named, *more]


def _new_title(decision: GateDecision) -> str:
    return "disagreements" if decision.comparison is None else "disagreements not in the baseline"
