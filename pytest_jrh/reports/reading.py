"""Which cases to read first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pytest_jrh.core.ids import by_made_case, made_case_id
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.text import one_line
from pytest_jrh.reports.blocks import WorstCase
from pytest_jrh.reports.case_facts import label_basis, score_name
from pytest_jrh.reports.session import Session, run_title, what_was_done


def worst_results(session: Session) -> list[CaseResult]:
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
    wrong = []
    for result in session.results:
        if result.outcome == "disagree" and not result.spec.derived:
            wrong.append(result)
    judges = Counter(map(made_case_id, wrong))

    def order(result: CaseResult) -> tuple[bool, bool, int, int, int, int]:
        distance = 1
        if result.score is not None and result.label is not None:
            distance = abs(result.score - result.label)
        return (
            result.case_id not in news,
            result.case_id in flickered,
            -label_basis(session, result).certainty,
            -distance,
            -judges[made_case_id(result)],
            result.complete_scores.count(result.label or 0),
        )

    return sorted(wrong, key=order)


def worst_cases(session: Session) -> Iterator[WorstCase]:
    """The cases to read first, one of a panel once."""
    for results in by_made_case(worst_results(session)).values():
        first = results[0]
        judge = f"judge {one_line(first.judge)}".rstrip()
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
    of_class = result.case_class
    if of_class is None or result.scale.is_ordered or result.repeated:
        return f"gave {result.scores_text}, right is {result.label}"
    return of_class.mistake
