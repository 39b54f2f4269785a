"""What a reader of a session does next, and which verdicts to read first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.scales import NOT_APPLICABLE, Scale
from pytest_jrh.core.text import counted, one_line
from pytest_jrh.reports.blocks import MOST_ON_PAGE, Line, ReadFirst, WorstCase
from pytest_jrh.reports.case_facts import asked_and_answered, label_basis, score_name
from pytest_jrh.reports.grounds import labels_line, wrong_labels
from pytest_jrh.reports.session import Session, run_title, what_was_done
from pytest_jrh.stats.decision import Kind
from pytest_jrh.stats.verdicts import Verdicts


def next_lines(session: Session) -> Iterator[Line]:
    """The one next step, where there is one, behind what would decide an UNCLEAR change."""
    for line in _steps(session):
        yield line
        if line.title == "next":
            return


def _steps(session: Session) -> Iterator[Line]:
    """The steps of which the first is taken."""
    decisions = session.decisions.values()
    # What is decided without these cases may be another thing with them.
    missing = int(session.verdicts.outcome.equals("unrecorded").sum())
    if missing and session.record_command:
        text = (
            f"with an API key this records {counted(missing, 'case')}, and only what is missing; "
            "--jrh-plan shows the cost"
        )
        yield Line("next", text, "warning", session.record_command)
    for decision in decisions:
        if decision.update_command:
            text = "where the cases that the baseline does not have are new"
            yield Line("next", text, "warning", decision.update_command)
    if deciding := _what_decides(session):
        yield Line("unclear", deciding)
    if session.is_table and not session.results:
        text = "--verdict COL holds a judge against them, --settled COL ends disputes"
        yield Line("next", text)
    worst = worst_verdicts(session)
    if len(worst):
        yield _correct(session, worst)
    if session.record_command:
        # Recorded answers cannot be used.
        text = (
            "after a change of the prompt or the map; to ask the same again: --jrh-retry-unscored"
        )
        yield Line("next", text, "warning", session.record_command)
    for table in session.probes:
        # Where something failed, verdicts that chance could have turned are worth reading, too.
        if table.is_finding or (session.word == "FAIL" and table.total.turned):
            first = session.result(table.cases[0]).spec
            text = f"read {one_line(f'{first.run_id} {first.variant}')} first, change "
            text += f"{_judge_to_fix(session, table.judge)}, and run it again: -k {table.probe}"
            yield Line("next", text)
    if session.is_table:
        # The others run pytest again, which knows nothing of a table.
        return
    if session.word == "FAIL":
        yield Line("next", "mend what failed; the same command then makes only what is missing")
    if not session.is_judged:
        return
    if any(wrong_labels(session, suite) for suite in session.grounds):
        text = "read the labels that people found wrong; in the browser r rejects one: --jrh-review"
        yield Line("next", text)
    if any(line.weight == "warning" for line in labels_line(session)):
        yield Line("next", "people label cases without the answers: --jrh-review=blind")
    if not any(decision.active for decision in decisions):
        text = "hold later judges to these verdicts: --jrh-baseline=FILE --jrh-update-baseline"
        yield Line("next", text)


def _correct(session: Session, worst: Verdicts) -> Line:
    """Labels, of which those of a table are in its file, or the judge."""
    if session.is_table:
        cases = len(worst.made.present())
        text = f"read {counted(cases, 'case')}; where a label is wrong, correct it in that row"
        return Line("next", text)
    wrong = session.results_in(worst)
    # What people or a program said is corrected where they said it.
    is_made = any(result.labelled_by in ("made", "unconfirmed") for result in wrong)
    correct = "press r" if is_made else "correct it where it was given"
    text = f"label wrong: {correct}; right: fix {_judge_to_fix(session, wrong[0].judge)}"
    regressed = any(decision.regressions for decision in session.decisions.values())
    # A part of a suite is not what a baseline is updated from.
    if regressed and not session.is_part:
        text += ", or --jrh-update-baseline"
    return Line("next", text, command=session.review_command)


def _judge_to_fix(session: Session, judge: str) -> str:
    """What is to be changed of a judge that is wrong: the prompt that has changed, if one has."""
    files = {change.now.file for change in session.prompt_changes if change.now.file}
    if len(files) == 1:
        return Path(files.pop()).name
    return f"judge {one_line(judge)}" if judge else "the judge"


_DECIDED_BY: Mapping[Kind, str] = {
    "limit": "more cases decide it, or `repeats: 3`",
    "proof": "more cases decide it",
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
    if kind == "drop":
        return decision.reasons[0].needs
    if kind == "left" and decision.comparison is None:
        return "name a config without the cases that are skipped"
    if session.is_table:
        is_few = kind in ("limit", "proof")
        return "more cases with a label, or more verdicts of each, decide it" if is_few else ""
    return _DECIDED_BY.get(kind, "")


def worst_verdicts(session: Session) -> Verdicts:
    """The cases that are judged wrong, in the order in which to read them: first those that were
    right before, or that nothing accepts; of these the ones whose label a person confirmed, and
    last those whose label people found wrong; then by how far off the verdict is, how many judges
    are wrong, and how many repeats. Cases of probes are left out.
    """
    news: set[str] = set()
    flickered: set[str] = set()
    for decision in session.decisions.values():
        news.update(decision.regressions, decision.new_wrong)
        flickered.update(decision.flickered)
    verdicts = session.verdicts
    wrong = verdicts.where(verdicts.wrong & ~verdicts.derived)
    # The labels of a table all rest on the same.
    certainty = [0] * len(wrong)
    if not session.is_table:
        certainty = [
            -label_basis(session, result).certainty for result in session.results_in(wrong)
        ]
    return wrong.in_order(
        [case_id not in news for case_id in wrong.ids],
        [case_id in flickered for case_id in wrong.ids],
        certainty,
        -wrong.kinds("scale", "score", "label").each(_distance, int),
        -wrong.made.sizes,
        wrong.kinds("answers", "label").each(lambda kind: kind[0].count(kind[1]), int),
    )


def _distance(kind: tuple[Scale, int | None, int]) -> int:
    scale, score, label = kind
    if score is None or not scale.is_ordered or NOT_APPLICABLE in (score, label):
        return 1
    return abs(score - label)


def worst_cases(session: Session) -> ReadFirst | None:
    """The cases to read first, one of a panel once; None where no verdict is wrong."""
    worst = worst_verdicts(session)
    of_cases = worst.places("made").values()
    cases: list[WorstCase] = []
    parts: list[tuple[str, str]] = []
    for places in islice(of_cases, MOST_ON_PAGE):
        results = session.results_in(worst.where(places))
        parts = parts if cases else asked_and_answered(session.messages(results[0]))
        cases.append(_worst_case(session, results))
    return ReadFirst(tuple(cases), len(of_cases) - len(cases), tuple(parts)) if cases else None


def _worst_case(session: Session, results: list[CaseResult]) -> WorstCase:
    first = results[0]
    judge = f"judge {one_line(first.judge)}".rstrip()
    if len(results) > 1:
        judge = f"{len(results):,} judges, {one_line(first.judge)}"
    return WorstCase(
        case_id=first.case_id,
        run=run_title(first, with_judge=False),
        rubric=one_line(first.rubric_id) if session.has_rubrics else "",
        done=what_was_done(first),
        mistake=_mistake(first),
        label=score_name(session, first, first.label),
        basis=label_basis(session, first).text,
        judge=judge,
        reason=one_line(first.reasoning),
    )


def _mistake(result: CaseResult) -> str:
    """What kind of mistake a wrong verdict is."""
    scale = result.scale
    if not result.repeated and (scale.has_two or result.mistake != "wrong"):
        return result.mistake
    gave, right = result.scores_text, result.label_text
    if not (result.repeated or scale.is_ordered or result.score is None):
        gave, right = map(scale.word, (result.score, result.label or 0))
    return f"gave {gave}, right is {right}"
