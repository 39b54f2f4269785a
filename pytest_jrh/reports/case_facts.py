"""The facts of a case as people read them, each said once: what tells whether its judge or its
label is wrong. The ledger has all that is known of a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.core.diffs import differences
from pytest_jrh.core.documents import listed
from pytest_jrh.core.model import majority
from pytest_jrh.core.stages import VERIFIER
from pytest_jrh.core.text import one_line, shortened
from pytest_jrh.core.transcript import text_to_compare
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.stats.statistics import MEANINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_jrh.core.diffs import Piece
    from pytest_jrh.core.model import Case, CaseResult, Edit, Message, ScoreLevel
    from pytest_jrh.reports.session import Session


_LONGEST_LABEL = 50
_MOST_NUMBERS = 5
_DONE = {"call": "changed", "insert": "inserted", "omit": "omitted"}
_DECIDED = {"accepted": "accepted", "edited": "edited and accepted"}


def meant(score: int, levels: Sequence[ScoreLevel]) -> str:
    """Give a score with its meaning: `1 (violated)`, or of a scale the level's label."""
    labels = {level.score: level.label for level in levels} if levels else MEANINGS
    label = shortened(one_line(labels.get(score, "")), _LONGEST_LABEL)
    return f"{score} ({label})" if label else str(score)


def score_text(result: CaseResult, score: int | None, session: Session) -> str:
    """Give a score of a case with its meaning; None is a tie of the repeats."""
    if score is None:
        return "a tie"
    return meant(score, session.levels(result))


def score_name(session: Session, result: CaseResult, score: int | None) -> str:
    """A score of a case in a word: `violated`, of an ordinal suite `2 (good)`."""
    text = score_text(result, score, session)
    return MEANINGS[score] if score in MEANINGS and text == meant(score, ()) else text


def repeats_text(numbers: Sequence[int]) -> str:
    """Which repeats: `repeat 2`, `2 repeats (1, 3)`."""
    if len(numbers) == 1:
        return f"repeat {numbers[0]}"
    return f"{len(numbers)} repeats ({listed(map(str, numbers), _MOST_NUMBERS)})"


def case_basis(case: Case) -> str:
    """Say what a label rests on."""
    if case.altered:
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


def verifier_score(case: Case) -> int | None:
    """The verifier's verdict on the scale of labels; None where it gave none."""
    verification = case.outcome.verification
    if verification is None:
        return None
    failed = int(verification.verdict == "FAIL")
    return failed if verification.score is None else verification.score


class ShownEdit(NamedTuple):
    """One edit: the turn (from 0), whose it is, and what it changed.

    `note` says what was done to a call, and is empty for an edit of words.
    """

    turn: int
    role: str
    pieces: tuple[Piece, ...]
    note: str = ""

    @property
    def title(self) -> str:
        """The turn, and what was done there."""
        return f"turn {self.turn} ({self.role}){f', {self.note}' if self.note else ''}"


def shown_edits(case: Case) -> Iterator[ShownEdit]:
    """The edits of a stored case, each compared word by word."""
    for edit in case.outcome.edits:
        pieces = differences(*compared_texts(edit))
        yield ShownEdit(edit.message_index, edited_role(case, edit), pieces, act_note(edit))


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


class Voice(NamedTuple):
    """What one of those who looked at a case says of it.

    `who` are a few words, such as `label` or `new prompt`; `word` is the score with its meaning,
    `why` the reason where one is known. `is_wrong` where it is not the label.
    """

    who: str
    score: int | None
    word: str
    why: str
    is_wrong: bool


def voices(session: Session, result: CaseResult, case: Case | None) -> list[Voice]:
    """Everybody's score of a judged case with the reason: the label, with what it rests on; the
    verifier where it is not of that opinion; people; the judge of the baseline, and on the case
    that a probe changed; the other judges of a panel, and last the judge that the result is of.
    """
    said: list[Voice] = []

    def add(who: str, score: int | None, why: str = "") -> None:
        wrong = result.label is not None and score != result.label
        said.append(Voice(who, score, score_name(session, result, score), why, wrong))

    verification = None if case is None else case.outcome.verification
    if result.label is not None:
        basis = label_basis(session, result).text
        why = "" if case is None else "; ".join(label_votes(case))
        if verification is not None:
            why = verification.rationale
        add(f"label ({basis})", result.label, why)
    if case is not None and verification is not None and verifier_score(case) != result.label:
        add(VERIFIER.name, verifier_score(case), verification.rationale)
    for label in session.blind_labels.get((result.suite, result.case_digest), ()):
        if label.label is not None:
            add(f"{_person(label.reviewer)}, blind", label.label, label.note)
    prompts = {change.now.judge for change in session.prompt_changes if change.is_reworded}
    is_new = result.judge in prompts
    pair = session.pairs.get(result.case_id)
    if pair is not None:
        before = session.earlier.get(result.case_id, pair.before)
        add("old prompt" if is_new else "before", pair.before.score, before.reasoning)
    if result.base_scores:
        add("unchanged case", result.base_score)
    for of_panel in session.panel_results.get(made_case_id(result), ()):
        if of_panel.judge != result.judge:
            add(f"judge {one_line(of_panel.judge)}", of_panel.score, of_panel.reasoning)
    judge = f"judge {one_line(result.judge)}" if result.judge else "judge"
    add("new prompt" if is_new else judge, result.score, result.reasoning)
    if result.minority is not None:
        add(f"{judge}, another repeat", result.minority.score, result.minority.reasoning)
    return said


class LabelBasis(NamedTuple):
    """What a label rests on, in a few words, and whether it can be doubted: `certainty` is 1 where
    a person confirmed it, and -1 where people found it wrong, or nobody confirmed it.
    """

    text: str
    certainty: int


def label_basis(session: Session, result: CaseResult) -> LabelBasis:
    """What the label of a case rests on."""
    by, certainty = VERIFIER.name, 0
    if result.is_accepted:
        by, certainty = "accepted by a person", 1
    elif result.extra.altered:
        by, certainty = "changed on the disk since", -1
    elif result.labelled_by == "people":
        by, certainty = "people", 1
    elif result.labelled_by == "program":
        by = "a program"
    elif not result.verified:
        by, certainty = "unverified", -1
    blind = blind_scores(session, result)
    if not blind or result.label is None:
        return LabelBasis(by, certainty)
    if majority([*blind.values()]) == result.label:
        people = next(iter(blind)) if len(blind) == 1 else f"{len(blind):,} people"
        return LabelBasis(f"{by}, {people} blind", 1)
    others = []
    for person, score in blind.items():
        others.append(f"{person} says {score_name(session, result, score)}")
    return LabelBasis(f"{by}; blind, {listed(others, _MOST_PEOPLE)}", -1)


_MOST_PEOPLE = 2
_LONGEST_PERSON = 26


def blind_scores(session: Session, result: CaseResult) -> dict[str, int]:
    """The scores of people who saw no answer, by who gave them."""
    scores: dict[str, int] = {}
    for label in session.blind_labels.get((result.suite, result.case_digest), ()):
        if label.label is not None:
            scores[_person(label.reviewer)] = label.label
    return scores


def _person(reviewer: str) -> str:
    """What somebody is called who labelled a case."""
    return shortened(one_line(reviewer), _LONGEST_PERSON) or "a person"


def decided_text(result: CaseResult, case: Case | None) -> str:
    """What a person decided about a case, with the note; empty where nobody did."""
    review = None if case is None else case.review
    word: str = result.extra.review or ("" if review is None else review.action)
    text = _DECIDED.get(word, word)
    return f"{text}: {review.note}" if word and review is not None and review.note else text
