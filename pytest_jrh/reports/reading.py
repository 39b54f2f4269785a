"""Which cases to read first, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.text import counted, one_line
from pytest_jrh.reports.blocks import Line, WorstCase
from pytest_jrh.reports.case_facts import label_basis, score_name
from pytest_jrh.reports.grounds import labels_line, wrong_labels
from pytest_jrh.reports.session import Session, run_title, what_was_done
from pytest_jrh.stats.decision import Kind
from pytest_jrh.stats.panels import by_made_case, made_case_id

# More than a person reads at once.
_MOST_READ = 30


def worst_results(session: Session) -> list[CaseResult]:
    """The cases that are judged wrong, in the order in which to read them: first those that were
    right before, or that nothing accepts; of these the ones whose label a person confirmed, and
    last those whose label people found wrong; then by how far off the verdict is, how many judges
    are wrong, and how many repeats; of many cases those of the rubric with the most mistakes. Cases
    of probes are left out.
    """
    news: set[str] = set()
    flickered: set[str] = set()
    for decision in session.decisions.values():
        news.update(decision.regressions, decision.new_wrong)
        flickered.update(decision.flickered)
    wrong = []
    for result in session.results:
        if result.outcome == "disagree" and not result.spec.derived:
            wrong.append(result)
    judges = Counter(map(made_case_id, wrong))
    mistakes: Counter[str] = Counter()
    if len(judges) > _MOST_READ:
        mistakes.update(result.rubric_id for result in wrong)

    def order(result: CaseResult) -> tuple[bool, bool, int, int, int, int, int]:
        distance = 1
        if result.score is not None and result.label is not None:
            distance = abs(result.score - result.label)
        return (
            result.case_id not in news,
            result.case_id in flickered,
            -label_basis(session, result).certainty,
            -distance,
            -judges[made_case_id(result)],
            result.all_scores.count(result.label or 0),
            -mistakes[result.rubric_id],
        )

    return sorted(wrong, key=order)


def worst_cases(session: Session) -> Iterator[WorstCase]:
    """The cases to read first, one of a panel once."""
    for results in by_made_case(worst_results(session)).values():
        first = results[0]
        judge = f"judge {one_line(first.judge)}" if first.judge else "judge"
        if len(results) > 1:
            judge = f"{len(results):,} judges, {one_line(first.judge)}"
        yield WorstCase(
            case_id=first.case_id,
            run=run_title(first, with_judge=False),
            rubric=one_line(first.rubric_id) if session.has_rubrics else "",
            # Nothing was done to the cases of a table.
            done="" if session.is_table else what_was_done(first),
            mistake=_mistake(first),
            label=score_name(session, first, first.label),
            basis=label_basis(session, first).text,
            judge=judge,
            reason=one_line(first.reasoning),
        )


def _mistake(result: CaseResult) -> str:
    """What kind of mistake a wrong verdict is."""
    if result.spec.target_score is not None or result.repeated:
        return f"gave {result.scores_text}, right is {result.label}"
    return "missed" if result.label else "false alarm"


def next_lines(session: Session) -> Iterator[Line]:
    """The one next step, where there is one."""
    missing = sum(result.outcome == "unrecorded" for result in session.results)
    if session.record_command and missing:
        text = (
            f"with an API key this records {counted(missing, 'case')}, and only what is missing; "
            "--jrh-plan shows the cost"
        )
        yield Line("next", text, "warning", session.record_command)
        return
    for decision in session.decisions.values():
        if decision.update_command:
            text = "where the cases that the baseline does not have are new"
            yield Line("next", text, "warning", decision.update_command)
            return
    if deciding := _what_decides(session):
        yield Line("unclear", deciding)
    wrong = worst_results(session)
    if wrong and session.is_table:
        cases = counted(len(by_made_case(wrong)), "case")
        text = f"read {cases}; where a label is wrong, correct it in that row"
        yield Line("next", text)
    elif wrong:
        # What people or a program said is corrected where they said it.
        is_made = any(result.labelled_by in ("made", "unconfirmed") for result in wrong)
        correct = "press r" if is_made else "correct it where it was given"
        text = f"label wrong: {correct}; right: fix {_judge_to_fix(session, wrong[0].judge)}"
        regressed = any(decision.regressions for decision in session.decisions.values())
        # A part of a suite is not what a baseline is updated from.
        if regressed and not session.is_part:
            text += ", or --jrh-update-baseline"
        yield Line("next", text, command=session.review_command)
    elif session.record_command:
        text = "after a change of the prompt or the map; to ask the same again: "
        yield Line("next", f"{text}--jrh-retry-unscored", "warning", session.record_command)
    elif text := _nothing_wrong(session):
        yield Line("next", text)


_DECIDED_BY: Mapping[Kind, str] = {
    "drop": "`repeats: 3` on both sides, or more cases, decide it",
    "limit": "more cases decide it, or `repeats: 3`",
    "proof": "more runs decide it",
    "left": "where they were to leave, accept it with --jrh-update-baseline",
    "grown": "read the new cases; where they are right, accept it with --jrh-update-baseline",
}
"""By the kind of a reason what decides what is UNCLEAR."""


def _what_decides(session: Session) -> str:
    """What decides a change that is UNCLEAR; empty where nothing is."""
    decision = session.decision
    if decision is None or decision.word != "UNCLEAR" or decision.passed:
        return ""
    kind = decision.reasons[0].kind
    if kind == "left" and decision.comparison is None:
        return "name a config without the cases that are skipped"
    if session.is_table:
        is_few = kind in ("drop", "limit", "proof")
        return "more cases with a label, or more verdicts of each, decide it" if is_few else ""
    return _DECIDED_BY.get(kind, "")


def _judge_to_fix(session: Session, judge: str) -> str:
    """What is to be changed of a judge that is wrong: the prompt that has changed, if one has."""
    files = {change.now.file for change in session.prompt_changes if change.now.file}
    if len(files) == 1:
        return Path(files.pop()).name
    return f"judge {one_line(judge)}" if judge else "the judge"


def _nothing_wrong(session: Session) -> str:
    """What is next where no verdict is wrong: that a judge is probed again, people look at labels
    that are wrong or in doubt, or that the verdicts are kept for a gate; nothing where all is done.
    """
    is_failed = session.word == "FAIL"
    for table in session.probes:
        if table.is_finding or (is_failed and table.total.turned):
            first = session.results_by_id[table.cases[0]].spec
            case = one_line(f"{first.run_id} {first.variant}")
            fix = (
                f"change {_judge_to_fix(session, table.judge)}, and run it again: -k {table.probe}"
            )
            return f"read {case} first, {fix}"
    if session.is_table:
        return ""
    if is_failed:
        return "mend what failed; the same command then makes only what is missing"
    if not session.table.overall.counts.n:
        return ""
    if any(wrong_labels(session, suite) for suite in session.grounds):
        return "read the labels that people found wrong; in the browser r rejects one: --jrh-review"
    if any(line.weight == "warning" for line in labels_line(session)):
        return "people label cases without the answers: --jrh-review=blind"
    if not any(decision.active for decision in session.decisions.values()):
        return "hold later judges to these verdicts: --jrh-baseline=FILE --jrh-update-baseline"
    return ""
