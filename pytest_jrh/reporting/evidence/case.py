"""What tells whether the judge or the label of a case is wrong, in words that the reports share
(rule I9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.diffs import differences
from pytest_jrh.models import JUDGED
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.text import one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_jrh.diffs import Piece
    from pytest_jrh.models import CaseResult, LabelledBy, ScoreLevel
    from pytest_jrh.reporting.session_results import SessionResults

MEANINGS = {0: "satisfied", 1: "violated"}
_LONGEST_LABEL = 50
_DECIDED = {"accepted": "accepted", "edited": "edited and accepted"}


class ShownEdit(NamedTuple):
    """One edit: the turn (from 0), whose it is, why it was made, and what it changed."""

    turn: int
    role: str
    reason: str
    pieces: tuple[Piece, ...]


def meant(score: int, levels: Sequence[ScoreLevel]) -> str:
    """Give a score with its meaning: `1 (violated)`, or of a scale the level's label."""
    labels = {level.score: level.label for level in levels} if levels else MEANINGS
    label = shortened(one_line(labels.get(score, "")), _LONGEST_LABEL)
    return f"{score} ({label})" if label else str(score)


def score_text(result: CaseResult, score: int | None, session: SessionResults) -> str:
    """Give a score of a case with its meaning; None is a tie of the repeats."""
    if score is None:
        return "a tie"
    rubric = session.rubrics.get((result.suite, result.rubric_id))
    grounds = session.grounds.get(result.suite)
    binary = rubric is None or (grounds is not None and not grounds.ordinal)
    return meant(score, () if binary or rubric is None else rubric.score_levels)


def basis(
    labelled_by: LabelledBy | None,
    votes: Sequence[int],
    expected: int,
    *,
    verified: bool,
    asked: bool,
    altered: bool = False,
) -> str:
    """Say what a label rests on; `asked` where a verifier was, `altered` where the case was changed
    on the disk since.
    """
    if altered:
        return "of a case that was changed on the disk since it was made"
    if labelled_by is not None:
        by = "people" if labelled_by == "people" else "a program"
        agreed = f" ({votes.count(expected)} of {len(votes)})" if len(votes) > 1 else ""
        return f"labelled by {by}{agreed}"
    if verified:
        return "confirmed by the verifier"
    return "although the verifier did not confirm it" if asked else "an unverified label"


def record_basis(record: Mapping[str, Any], *, altered: bool) -> str:
    """Say what the label of a stored case rests on; see `basis`."""
    label = record.get("label") or {}
    return basis(
        label.get("by") if label else None,
        label.get("votes", ()),
        record["expected"],
        verified=record["verified"],
        asked=record["perturbation"]["verification"] is not None,
        altered=altered,
    )


def review_text(result: CaseResult, record: Mapping[str, Any] | None) -> str:
    """Say what a person decided about the case in the review, and noted; empty where nobody did."""
    review = (record or {}).get("review") or {}
    decided = result.human_reviewed or review.get("action", "")
    note = review.get("note", "")
    if not decided:
        return ""
    return f"{_DECIDED.get(decided, decided)}: {note}" if note else _DECIDED.get(decided, decided)


def shown_edits(record: Mapping[str, Any]) -> Iterator[ShownEdit]:
    """The edits of a stored case, each compared word by word."""
    for step in record["perturbation"]["steps"]:
        turn = step["message_index"]
        role = record["gold_messages"][turn].get("role", "unknown")
        yield ShownEdit(
            turn,
            one_line(str(role)),
            step["editor_reason"] or "",
            differences(step["original_content"], step["edited_content"]),
        )


class WhoSaid:
    """Who gives which score to a case: verifier, people, the judge of the baseline, and the other
    judges of a panel.
    """

    def __init__(self, session: SessionResults) -> None:
        self._session = session
        self._before = {
            pair.now.case_id: pair
            for decision in session.decisions.values()
            if decision.comparison is not None
            for pair in decision.comparison.pairs
        }
        self._panels: dict[str, list[CaseResult]] = {}
        for result in session.results:
            if result.judge and result.outcome in JUDGED:
                self._panels.setdefault(made_case_id(result), []).append(result)

    def sentence(self, result: CaseResult, record: Mapping[str, Any] | None) -> str:
        """Name everybody's score for one case, that of the judge last; empty without a verdict."""
        if result.outcome not in JUDGED:
            return ""
        said: dict[int | None, list[str]] = {}
        for who, score in self._said(result, record):
            said.setdefault(score, []).append(who)
        parts = [
            f"{score_text(result, score, self._session)}: {', '.join(names)}"
            for score, names in said.items()
        ]
        return f"{'; '.join(parts)}."

    def _said(
        self, result: CaseResult, record: Mapping[str, Any] | None
    ) -> Iterator[tuple[str, int | None]]:
        if result.expected is not None:
            yield "the label", result.expected
        checked = (record or {}).get("perturbation", {}).get("verification")
        if checked is not None:
            failed = checked["verdict"] == "FAIL"
            yield "the verifier", int(failed) if checked["score"] is None else checked["score"]
        yield from self._people(result)
        pair = self._before.get(result.case_id)
        if pair is not None:
            who = "the same judge" if pair.same_judge else "the judge"
            yield f"{who} in the baseline", pair.before.score
        if result.base_scores:
            yield "this judge on the unchanged case", result.base_score
        others = self._panels.get(made_case_id(result), ())
        for other in others:
            if other.judge != result.judge:
                yield f"judge {one_line(other.judge)}", other.score
        yield "this judge", result.score

    def _people(self, result: CaseResult) -> Iterator[tuple[str, int | None]]:
        if result.human_reviewed in _DECIDED:
            yield "a person in the review", result.expected
        grounds = self._session.grounds.get(result.suite)
        for label in grounds.people if grounds is not None else ():
            if label.case_digest == result.case_digest and label.label is not None:
                yield f"{one_line(label.reviewer)}{', blind' if label.blind else ''}", label.label
