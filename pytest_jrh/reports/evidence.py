"""What tells whether the judge or the label of a case is wrong, and what was beside what is:
accuracies, verdicts and prompts of the baseline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.core.diffs import differences, near_changes
from pytest_jrh.core.documents import listed
from pytest_jrh.core.model import JUDGED
from pytest_jrh.core.text import counted, one_line, shortened
from pytest_jrh.core.transcript import text_to_compare
from pytest_jrh.reports.blocks import Cell, Diff, Fold, Sentence
from pytest_jrh.reports.gate import signed_points
from pytest_jrh.stats.figures import NONE
from pytest_jrh.stats.panels import made_case_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_jrh.core.diffs import Piece
    from pytest_jrh.core.model import Case, CaseResult, Edit, Message, ScoreLevel
    from pytest_jrh.reports.blocks import Block, Weight
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.baseline import Pair
    from pytest_jrh.stats.statistics import Statistics


MEANINGS = {0: "satisfied", 1: "violated"}
_LONGEST_LABEL = 50
_DONE = {"call": "changed", "insert": "inserted", "omit": "omitted"}
_DECIDED = {"accepted": "accepted", "edited": "edited and accepted"}


class ShownEdit(NamedTuple):
    """One edit: the turn (from 0), whose it is, why it was made, and what it changed.

    `note` says what was done to a call, and is empty for an edit of words.
    """

    turn: int
    role: str
    reason: str
    pieces: tuple[Piece, ...]
    note: str = ""

    @property
    def title(self) -> str:
        """The turn, and what was done there."""
        return f"turn {self.turn} ({self.role}){f', {self.note}' if self.note else ''}"


def meant(score: int, levels: Sequence[ScoreLevel]) -> str:
    """Give a score with its meaning: `1 (violated)`, or of a scale the level's label."""
    labels = {level.score: level.label for level in levels} if levels else MEANINGS
    label = shortened(one_line(labels.get(score, "")), _LONGEST_LABEL)
    return f"{score} ({label})" if label else str(score)


def score_text(result: CaseResult, score: int | None, session: Session) -> str:
    """Give a score of a case with its meaning; None is a tie of the repeats."""
    if score is None:
        return "a tie"
    rubric = session.rubrics.get((result.spec.suite, result.spec.rubric_id))
    grounds = session.grounds.get(result.spec.suite)
    binary = rubric is None or (grounds is not None and not grounds.ordinal)
    return meant(score, () if binary or rubric is None else rubric.score_levels)


_MOST_NUMBERS = 5


def repeats_text(numbers: Sequence[int]) -> str:
    """Which repeats: `repeat 2`, `2 repeats (1, 3)`."""
    if len(numbers) == 1:
        return f"repeat {numbers[0]}"
    return f"{len(numbers)} repeats ({listed(map(str, numbers), _MOST_NUMBERS)})"


def case_basis(case: Case, *, altered: bool) -> str:
    """Say what a label rests on; `altered` where the case was changed on the disk since."""
    if altered:
        return "of a case that was changed on the disk since it was made"
    label = case.label
    if label is not None:
        by = "people" if label.by == "people" else "a program"
        if len(label.votes) > 1:
            by += f" ({label.votes.count(case.expected)} of {len(label.votes)})"
        return f"labelled by {by}"
    if case.verified:
        return "confirmed by the verifier"
    if case.outcome.verification is not None:
        return "although the verifier did not confirm it"
    return "an unverified label"


def label_votes(case: Case) -> list[str]:
    """The votes of a label, a line each: who gave it, where it stands, and what was noted."""
    label = case.label
    lines = []
    for vote, source in zip(label.votes, label.sources, strict=False) if label is not None else ():
        by = f" by {one_line(source.annotator)}" if source.annotator else ""
        note = f": {source.note}" if source.note else ""
        lines.append(f"{meant(vote, case.levels)}{by}, {one_line(source.place)}{note}")
    return lines


def review_text(result: CaseResult, case: Case | None) -> str:
    """Say what a person decided about the case in the review, and noted; empty where nobody did."""
    review = case.review if case is not None else None
    decided = result.extra.review or (review.action if review is not None else "")
    note = review.note if review is not None else ""
    if not decided:
        return ""
    text = _DECIDED.get(decided, decided)
    return f"{text}: {note}" if note else text


def shown_edits(case: Case) -> Iterator[ShownEdit]:
    """The edits of a stored case, each compared word by word."""
    for edit in case.outcome.edits:
        old_text, new_text = compared_texts(edit)
        reason = edit.editor_reason
        if edit.follows:
            more = f"; {reason}" if reason else ""
            reason = f"to stay consistent, {edit.follows}{more}"
        pieces = differences(old_text, new_text)
        role = edited_role(case, edit)
        yield ShownEdit(edit.message_index, role, reason, pieces, act_note(edit))


def compared_texts(edit: Edit) -> tuple[str, str]:
    """What an edit is shown by, before and after: the words of a turn, or calls with results."""
    if edit.kind == "say":
        return edit.original_content, edit.edited_content
    return text_to_compare(edit.before), text_to_compare(edit.after)


def edited_role(case: Case, edit: Edit) -> str:
    """Whose turn stands where an edit was made; of a call that was left out, the one behind it."""
    messages = case.messages if edit.is_splice else case.run.messages
    if not 0 <= edit.message_index < len(messages):
        return "the end"
    return one_line(str(messages[edit.message_index].get("role", "unknown")))


def act_note(edit: Edit) -> str:
    """What an edit did to which call, in a few words; empty for one that changed words."""
    if edit.kind == "say":
        is_same_text = edit.is_splice and edit.original_content == edit.edited_content
        return "reasoning left out" if is_same_text else ""
    earlier, later = edit.before, edit.after
    if edit.kind == "omit":
        earlier, later = later, earlier
    old_calls, old_messages = _calls(earlier), list(earlier)
    names = [str(call.get("function", "")) for call in _calls(later) if call not in old_calls]
    if not names:
        # The same call with another result.
        changed = [message for message in later if message not in old_messages]
        names = [str(message.get("function", "")) for message in changed]
    shown_names = shortened(", ".join(map(one_line, names)), _LONGEST_LABEL)
    # Where the turn stays, the call stood in it.
    place = " before it" if edit.kind == "omit" and not edit.after else ""
    return f"call of {shown_names} {_DONE[edit.kind]}{place}"


def _calls(messages: Iterable[Message]) -> list[Mapping[str, Any]]:
    calls: list[Mapping[str, Any]] = []
    for message in messages:
        calls += message.get("tool_calls") or ()
    return calls


def _compared_pairs(session: Session) -> Iterator[Pair]:
    """The cases that are compared with a baseline, before and now."""
    for decision in session.decisions.values():
        if decision.comparison is not None:
            yield from decision.comparison.pairs


class WhoSaid:
    """Who gives which score to a case: verifier, people, the baseline, the judges of a panel."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._before = {pair.now.case_id: pair for pair in _compared_pairs(session)}
        self._panels: dict[str, list[CaseResult]] = {}
        for result in session.results:
            if result.judge and result.outcome in JUDGED:
                self._panels.setdefault(made_case_id(result), []).append(result)

    def sentence(self, result: CaseResult, case: Case | None) -> str:
        """Name everybody's score for one case, that of the judge last; empty without a verdict."""
        if result.outcome not in JUDGED:
            return ""
        names_by_score: dict[int | None, list[str]] = {}
        for name, score in self._scores(result, case):
            names_by_score.setdefault(score, []).append(name)
        parts = []
        for score, names in names_by_score.items():
            parts.append(f"{score_text(result, score, self._session)}: {', '.join(names)}")
        return f"{'; '.join(parts)}."

    def _scores(self, result: CaseResult, case: Case | None) -> Iterator[tuple[str, int | None]]:
        if result.label is not None:
            yield "the label", result.label
        verification = case.outcome.verification if case is not None else None
        if verification is not None:
            failed = int(verification.verdict == "FAIL")
            yield "the verifier", failed if verification.score is None else verification.score
        yield from self._people(result)
        pair = self._before.get(result.case_id)
        if pair is not None:
            judge = "the same judge" if pair.same_judge else "the judge"
            yield f"{judge} in the baseline", pair.before.score
        if result.base_scores:
            yield "this judge on the unchanged case", result.base_score
        for of_panel in self._panels.get(made_case_id(result), ()):
            if of_panel.judge != result.judge:
                yield f"judge {one_line(of_panel.judge)}", of_panel.score
        yield "this judge", result.score

    def _people(self, result: CaseResult) -> Iterator[tuple[str, int | None]]:
        if result.extra.review in _DECIDED:
            yield "a person in the review", result.label
        grounds = self._session.grounds.get(result.spec.suite)
        for label in grounds.people if grounds is not None else ():
            if label.case_digest == result.case_digest and label.label is not None:
                yield f"{one_line(label.reviewer)}{', blind' if label.blind else ''}", label.label


CHANGE_TITLE = "since baseline"
_CONTEXT = 400
CHANGE_MEANING = (
    "How many points of accuracy were gained or lost since the baseline, over the cases that are "
    "compared with it."
)
PLACE = 3
"""Where it stands in the table: behind the number of cases, the accuracy and its interval."""


class Changes:
    """The changes of a session's figures since the baseline, for each row of its table."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._pairs: dict[tuple[str, str, str], list[Pair]] = {}
        for pair in pairs:
            spec = pair.now.spec
            for rubric in (spec.rubric_id, ""):
                row = (spec.suite, pair.now.judge, rubric)
                self._pairs.setdefault(row, []).append(pair)

    @classmethod
    def since_baseline(cls, session: Session) -> Changes:
        """The changes of all cases of a session that are compared."""
        return cls(_compared_pairs(session))

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def about(self, total: Statistics) -> Changes:
        """The changes of one judge; none where none of its cases is compared."""
        return self if self._of(total) else Changes(())

    def cell(self, statistics: Statistics) -> Cell:
        """The difference of a row in points of accuracy; of how many cases, where not of all."""
        pairs = self._of(statistics)
        if not pairs:
            return Cell(NONE, reason="no case is compared")
        number = len(pairs)
        before = sum(_right(pair.before.all_scores, pair.now) for pair in pairs) / number
        now = sum(_right(pair.now.all_scores, pair.now) for pair in pairs) / number
        weight: Weight = ""
        if now != before:
            weight = "good" if now > before else "bad"
        sentence = (
            f"accuracy {before:.1%} before, {now:.1%} now, in {number:,} of "
            f"{counted(statistics.counts.n, 'case')}"
        )
        of = "" if number == statistics.counts.n else f"n {number:,}"
        return Cell(signed_points(now - before), of, sentence, weight)

    def _of(self, statistics: Statistics) -> Sequence[Pair]:
        row = (statistics.suite, statistics.judge, statistics.rubric)
        return self._pairs.get(row, ())


def _right(scores: tuple[int, ...], result: CaseResult) -> float:
    """The share of a case's repeats that are right; of one verdict 0 or 1."""
    right = sum(score == result.label for score in scores)
    return right / len(scores) if scores else 0.0


class EarlierVerdict(NamedTuple):
    """What the judge of the baseline gave, with its meaning, and why, where that was kept."""

    given: str
    reasoning: str


def earlier_verdict(result: CaseResult, session: Session) -> EarlierVerdict | None:
    """What was said of a case when the baseline was written; None where it was not kept."""
    verdict = session.earlier.get(result.case_id)
    if verdict is None or not verdict.reasoning:
        return None
    return EarlierVerdict(score_text(result, verdict.score, session), verdict.reasoning)


def prompt_blocks(session: Session, suite: str) -> list[Block]:
    """The prompts of judges that changed since the baseline, compared word by word."""
    blocks: list[Block] = []
    for change in session.prompt_changes:
        if change.now.suite != suite:
            continue
        of = f"judge {one_line(change.now.judge)}" if change.now.judge else "the judge"
        if change.before is None:
            sentence = (
                f"The baseline's verdicts are those of another judge than {of} is now; its prompt "
                "was not kept (--jrh-update-baseline keeps it)."
            )
            blocks.append(Sentence(sentence))
        elif change.before == change.now.text:
            sentence = (
                f"The baseline's verdicts are those of another judge than {of} is now, and yet the "
                "prompt that is kept beside the baseline is the present one: the model or another "
                "setting has changed."
            )
            blocks.append(Sentence(sentence))
        else:
            pieces = near_changes(differences(change.before, change.now.text), _CONTEXT)
            blocks.append(
                Fold(f"What changed in the prompt of {of}", (Diff(tuple(pieces)),), is_open=True)
            )
    return blocks
