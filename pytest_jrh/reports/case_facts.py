"""The facts of a case as people read them, each said once: what tells whether its judge or its
label is wrong. The ledger has all that is known of a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pytest_jrh.core import grouped
from pytest_jrh.core.calls import STAGES, VERIFIER
from pytest_jrh.core.cases import Case, Edit
from pytest_jrh.core.diffs import differences
from pytest_jrh.core.documents import listed
from pytest_jrh.core.results import CaseResult, Verdict, equal_verdicts
from pytest_jrh.core.runs import Message, majority
from pytest_jrh.core.skips import SKIPS, UNSCORED, Why
from pytest_jrh.core.text import (
    ELLIPSIS,
    capital,
    columns,
    cut_in_the_middle,
    escape_commands,
    one_line,
    shortened,
    visible,
    wrapped,
)
from pytest_jrh.core.transcript import part_title, text_to_compare, titled_parts
from pytest_jrh.reports.blocks import Diff
from pytest_jrh.reports.session import Session

WIDTH = 80
INDENT = "    "
_LONGEST_LABEL = 50
_MOST_NUMBERS = 5
_DONE = {"call": "changed", "insert": "inserted", "omit": "omitted"}


def score_name(session: Session, result: CaseResult, score: int | None) -> str:
    """A score of a case in a word; None is a tie of the repeats."""
    return "a tie" if score is None else session.scale(result).word(score)


def reason_text(reasoning: str) -> str:
    """A reason as it is shown; empty where it only repeats a score."""
    return "" if reasoning.strip().isdigit() else reasoning


def label_reason(case: Case) -> str:
    """Why a label is right: in the words of a verifier that confirms it, else the votes of people,
    or what the edit was planned for.
    """
    verification, plan = case.outcome.verification, case.outcome.plan
    if verification is not None and case.verifier_answer == case.expected:
        return verification.rationale
    votes = []
    # Of a column there is nothing to say beside its name.
    if case.label is not None and case.label.by != "column":
        for vote, source in zip(case.label.votes, case.label.sources, strict=False):
            text = case.scale.meant(vote)
            if source.annotator:
                text += f" by {one_line(source.annotator)}"
            text += f", {one_line(source.place)}"
            votes.append(f"{text}: {source.note}" if source.note else text)
    if not votes and plan is not None:
        return plan.thesis
    return "\n".join(votes)


def shown_edits(case: Case) -> Iterator[Diff]:
    """The edits of a stored case, each compared word by word, under the turn (from 0) or the part
    of an answer, and what was done to a call there.
    """
    for edit in case.outcome.edits:
        title = _edited_turn(case, edit)
        if note := act_note(edit):
            title += f", {note}"
        # The words of a turn, or calls with their results.
        before, after = edit.original_content, edit.edited_content
        if edit.kind != "say":
            before, after = text_to_compare(edit.before), text_to_compare(edit.after)
        yield Diff(differences(before, after), title)


def _edited_turn(case: Case, edit: Edit) -> str:
    """The turn that stands where an edit was made; of a call that was left out, the one behind."""
    messages = case.messages if edit.is_splice else case.run.messages
    role = "the end"
    if 0 <= edit.message_index < len(messages):
        message = messages[edit.message_index]
        role = one_line(str(message.get("role", "unknown")))
        if title := part_title(message):
            return title
    return f"turn {edit.message_index} ({role})"


_BESIDE = ("System prompt", "Context")
_LONGEST_END = 2_000


def asked_and_answered(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """The first two parts of an answer, or of a table's row, that are no context, of long ones both
    ends; empty of a run.
    """
    parts = []
    for title, text in titled_parts(messages):
        ends = text
        if len(text) > 2 * _LONGEST_END:
            ends = f"{text[:_LONGEST_END]} {ELLIPSIS} {text[-_LONGEST_END:]}"
        if title not in _BESIDE:
            parts.append((title, ends))
    return parts[:2]


def part_line(title: str, text: str, width: int) -> str:
    """A part in a line, of which the end says more than the beginning."""
    head = f"{title.lower()}: "
    return head + cut_in_the_middle(one_line(text), width - columns(head))


def act_note(edit: Edit) -> str:
    """What an edit did to which call, in a few words; empty for one that changed words."""
    if edit.kind == "say":
        is_same_text = edit.is_splice and edit.original_content == edit.edited_content
        return "reasoning left out" if is_same_text else ""
    fewer, more_turns = edit.before, edit.after
    if edit.kind == "omit":
        fewer, more_turns = more_turns, fewer
    changed_turns = [message for message in more_turns if message not in fewer]
    names = [str(message["function"]) for message in changed_turns if message.get("function")]
    if not names:
        # A call whose result is the same is named by the turn that makes it.
        for message in changed_turns:
            for call in message.get("tool_calls") or ():
                names.append(str(call.get("function", "")))
    listed_names = shortened(", ".join(map(one_line, names)), _LONGEST_LABEL)
    note = f"call of {listed_names} {_DONE[edit.kind]}"
    if edit.kind == "omit" and not edit.after:
        # Where the turn stays, the call stood in it.
        note += " before it"
    return note


class Voice(NamedTuple):
    """What somebody says of a case.

    `who` are a few words, such as `label` or `new prompt`; `word` is the score with its meaning,
    `why` the reason where one is known, and `by` says what stands behind it. `wrong` where it is
    not the label.
    """

    who: str
    word: str
    why: str
    by: str
    wrong: bool


def voices(session: Session, results: Sequence[CaseResult], case: Case | None) -> list[Voice]:
    """What everybody says of a case, of which `results` are those of its judges: the label, with
    why it is what it is; the verifier and people who say otherwise; the judges in the baseline, and
    now. Those that say the same for the same reason are one.
    """
    first, label = results[0], results[0].label
    heard: list[Voice] = []

    def add(speaker: str, score: int | None, reasoning: str, by: str = "") -> None:
        wrong = label is not None and not first.scale.accepts(score, label)
        word = score_name(session, first, score)
        heard.append(Voice(speaker, word, reason_text(reasoning), by, wrong))

    if label is not None:
        reason = label_reason(case) if case is not None else ""
        add("label", label, reason, label_basis(session, first).text)
    if case is not None and case.outcome.verification is not None:
        verified = case.verifier_answer
        if verified != label:
            add(VERIFIER.name, verified, case.outcome.verification.rationale)
    for person in session.blind_labels(first):
        if person.label not in (None, label):
            add(f"{_person(person.reviewer)}, blind", person.label, person.note)
    former, present = "before", "judge"
    for change in session.prompt_changes:
        if change.now.suite == first.suite and change.is_reworded:
            former, present = "old prompt", "new prompt"
    for result in results:
        earlier = session.earlier.get(result.case_id)
        if earlier is not None:
            speaker = f"{one_line(result.judge)} before" if result.judge else former
            for verdict, by in _different(earlier.verdicts):
                add(speaker, verdict.score, verdict.reasoning, by)
    for result in results:
        speaker = one_line(result.judge) or present
        for verdict, by in _different(result.verdicts):
            add(speaker, verdict.score, verdict.reasoning, by)
        why = no_verdict_text(result.why)
        if result.outcome in UNSCORED:
            heard.append(Voice(speaker, "no verdict", why, result.outcome, wrong=False))
        elif result.outcome == "no_case":
            heard.append(Voice("no case", "not judged", why, "", wrong=False))
    speakers = grouped((voice[1:], voice.who) for voice in heard)
    return [Voice(", ".join(names), *said) for said, names in speakers.items()]


def _different(verdicts: Sequence[Verdict]) -> Iterator[tuple[Verdict, str]]:
    """The verdicts of repeats that differ, and of several which repeats gave each."""
    different = equal_verdicts(verdicts)
    for verdict, repeats in different.items():
        if len(different) == 1:
            yield verdict, ""
        elif len(repeats) == 1:
            yield verdict, f"repeat {repeats[0]}"
        else:
            numbers = listed(map(str, repeats), _MOST_NUMBERS)
            yield verdict, f"{len(repeats)} repeats ({numbers})"


def no_verdict_text(why: Why) -> str:
    """Why there is no verdict; the same for cases that have none for the same reason."""
    return escape_commands("\n".join(no_verdict_lines(why)))


def no_verdict_lines(why: Why) -> list[str]:
    """Why there is no verdict, in a paragraph: the stage, what came back, what to do. Of an error
    in the user's code also where it was raised, and of an unrecorded call what differs from the
    nearest recording.
    """
    if why.kind in SKIPS:
        return [SKIPS[why.kind].text(why.detail)]
    if why.kind not in UNSCORED:
        return [why.detail]
    outcome = UNSCORED[why.kind]
    stage = STAGES[why.stage].title if why.stage in STAGES else f"the {why.stage}"
    happened = why.happened or outcome.happened.format(stage=stage)
    sentences = [f"No verdict ({why.kind}): {happened}."]
    sentences += map(_sentence, (why.cause, why.advice or outcome.advice))
    lines = wrapped(" ".join(filter(None, sentences)), WIDTH)
    if why.places:
        lines += ["", "raised at:"]
        for code_line in why.places:
            lines.append(f"{INDENT}{visible(code_line)}")
    if why.difference:
        lines += ["", "recorded (-) and asked for now (+):"]
        for line in visible(why.difference).split("\n"):
            lines.append(f"{INDENT}{line}".rstrip())
    return lines


def _sentence(text: str) -> str:
    text = visible(text).strip()
    if not text:
        return ""
    first_word, *_ = text.split(maxsplit=1)
    if first_word.isalpha() and first_word.islower():
        text = capital(text)
    is_ended = text[-1] in ".!?…)`" or "\n" in text
    return text if is_ended else f"{text}."


class LabelBasis(NamedTuple):
    """What a label rests on, in a few words, and whether it can be doubted: `certainty` is 1 where
    a person confirmed it, and -1 where people found it wrong, or nobody confirmed it.
    """

    text: str
    certainty: int


_BASES: Mapping[str, LabelBasis] = {
    "accepted": LabelBasis("accepted by a person", 1),
    "altered": LabelBasis("changed on the disk since", -1),
    "people": LabelBasis("people", 1),
    "program": LabelBasis("a program", 0),
    "made": LabelBasis(VERIFIER.name, 0),
    "unconfirmed": LabelBasis("unverified", -1),
}


def label_giver(result: CaseResult, column: str) -> LabelBasis:
    """Who gave the label of a case: that of a table stands in a `column`."""
    if result.basis == "column":
        return LabelBasis(f"column {one_line(column)}", 0)
    return _BASES[result.basis]


def label_basis(session: Session, result: CaseResult) -> LabelBasis:
    """What the label of a case rests on."""
    basis = label_giver(result, session.grounds_of(result.suite).column)
    scores = blind_scores(session, result)
    if not scores or result.label is None:
        return basis
    if majority([*scores.values()]) == result.label:
        people = f"{len(scores):,} people"
        if len(scores) == 1:
            [people] = scores
        return LabelBasis(f"{basis.text}, {people} blind", 1)
    votes = []
    for person, score in scores.items():
        votes.append(f"{person} says {score_name(session, result, score)}")
    return LabelBasis(f"{basis.text}; blind, {listed(votes, _MOST_PEOPLE)}", -1)


_MOST_PEOPLE = 2
_LONGEST_PERSON = 26


def blind_scores(session: Session, result: CaseResult) -> dict[str, int]:
    """The scores of people who saw no answer, by who gave them."""
    scores = {}
    for label in session.blind_labels(result):
        if label.label is not None:
            scores[_person(label.reviewer)] = label.label
    return scores


def _person(reviewer: str) -> str:
    """What somebody is called who labelled a case."""
    return shortened(one_line(reviewer), _LONGEST_PERSON) or "a person"


def facts_of(result: CaseResult, case: Case | None) -> Iterator[tuple[str, str]]:
    """What the page and the failure of a case both say beside its verdicts, each with a title."""
    if case is not None and case.review is not None:
        word, note = result.extra.review or case.review.action, case.review.note
        yield "Reviewed by a person", f"{word}: {note}" if note else word
