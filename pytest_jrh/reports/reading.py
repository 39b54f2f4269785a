"""Which cases to read first."""

from __future__ import annotations

from itertools import islice

from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.text import one_line
from pytest_jrh.reports.blocks import MOST_ON_PAGE, ReadFirst, WorstCase
from pytest_jrh.reports.case_facts import asked_and_answered, label_basis, score_name
from pytest_jrh.reports.session import Session, run_title, what_was_done
from pytest_jrh.stats.verdicts import Verdicts


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
        -wrong.kinds("score", "label").each(_distance, int),
        -wrong.made.sizes,
        wrong.kinds("answers", "label").each(lambda kind: kind[0].count(kind[1]), int),
    )


def _distance(kind: tuple[int | None, int]) -> int:
    score, label = kind
    return 1 if score is None else abs(score - label)


def worst_cases(session: Session, most: int = MOST_ON_PAGE) -> ReadFirst | None:
    """The cases to read first, one of a panel once; None where no verdict is wrong."""
    worst = worst_verdicts(session)
    of_cases = worst.places("made").values()
    cases: list[WorstCase] = []
    parts: list[tuple[str, str]] = []
    for places in islice(of_cases, most):
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
    of_class = result.case_class
    if of_class is None or result.scale.is_ordered or result.repeated:
        return f"gave {result.scores_text}, right is {result.label}"
    return of_class.mistake
