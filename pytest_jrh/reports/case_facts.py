"""The facts of a case as people read them, each said once: what tells whether its judge or its
label is wrong. The ledger has all that is known of a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pytest_jrh.core.cases import Case, Edit
from pytest_jrh.core.diffs import Piece, differences
from pytest_jrh.core.documents import listed
from pytest_jrh.core.results import CaseResult, Verdict, equal_verdicts
from pytest_jrh.core.runs import majority
from pytest_jrh.core.skips import SKIPS, UNSCORED, Why
from pytest_jrh.core.stages import STAGES, VERIFIER
from pytest_jrh.core.text import capital, escape_commands, one_line, shortened, visible, wrapped
from pytest_jrh.core.transcript import text_to_compare
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


def repeats_text(numbers: Sequence[int]) -> str:
    """Which repeats: `repeat 2`, `2 repeats (1, 3)`."""
    if len(numbers) == 1:
        return f"repeat {numbers[0]}"
    return f"{len(numbers)} repeats ({listed(map(str, numbers), _MOST_NUMBERS)})"


def label_reason(case: Case) -> str:
    """Why a label is right: in the words of a verifier that confirms it, else the votes of people,
    or what the edit was planned for.
    """
    verification, plan = case.outcome.verification, case.outcome.plan
    if verification is not None and verifier_score(case) == case.expected:
        return verification.rationale
    return "\n".join(label_votes(case)) or (plan.thesis if plan is not None else "")


def label_votes(case: Case) -> list[str]:
    """The votes of a label, a line each: who gave it, where it stands, and what was noted."""
    label = case.label
    lines = []
    for vote, source in zip(label.votes, label.sources, strict=False) if label is not None else ():
        by = f" by {one_line(source.annotator)}" if source.annotator else ""
        note = f": {source.note}" if source.note else ""
        lines.append(f"{case.scale.meant(vote)}{by}, {one_line(source.place)}{note}")
    return lines


def verifier_score(case: Case) -> int | None:
    """The verifier's verdict on the scale of labels; None where it gave none."""
    verification = case.outcome.verification
    if verification is None:
        return None
    return case.scale.verified(verification.verdict, verification.score)


class ShownEdit(NamedTuple):
    """One edit: the turn (from 0) and what was done to a call there, and what changed."""

    title: str
    pieces: tuple[Piece, ...]


def shown_edits(case: Case) -> Iterator[ShownEdit]:
    """The edits of a stored case, each compared word by word."""
    for edit in case.outcome.edits:
        title = f"turn {edit.message_index} ({edited_role(case, edit)})"
        if note := act_note(edit):
            title += f", {note}"
        yield ShownEdit(title, differences(*compared_texts(edit)))


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
    known = list(earlier)
    changed = [message for message in later if message not in known]
    # A call whose result is the same is named by the turn that makes it.
    names = [str(message["function"]) for message in changed if message.get("function")]
    for message in changed if not names else ():
        names += (str(call.get("function", "")) for call in message.get("tool_calls") or ())
    shown_names = shortened(", ".join(map(one_line, names)), _LONGEST_LABEL)
    # Where the turn stays, the call stood in it.
    place = " before it" if edit.kind == "omit" and not edit.after else ""
    return f"call of {shown_names} {_DONE[edit.kind]}{place}"


class Voice(NamedTuple):
    """What somebody says of a case.

    `who` are a few words, such as `label` or `new prompt`; `word` is the score with its meaning,
    `why` the reason where one is known, and `by` says what stands behind it. `wrong` where it is
    not the label.
    """

    who: str
    word: str
    why: str = ""
    by: str = ""
    wrong: bool = False


def voices(session: Session, results: Sequence[CaseResult], case: Case | None) -> list[Voice]:
    """What everybody says of a case, of which `results` are those of its judges: the label, with
    why it is what it is; the verifier and people who say otherwise; the judges in the baseline, and
    now. Those that say the same for the same reason are one.
    """
    label = results[0].label
    heard: list[Voice] = []

    def add(who: str, score: int | None, why: str = "", by: str = "") -> None:
        word = score_name(session, results[0], score)
        heard.append(Voice(who, word, reason_text(why), by, label is not None and score != label))

    if label is not None:
        why = "" if case is None else label_reason(case)
        add("label", label, why, label_basis(session, results[0]).text)
    if case is not None and case.outcome.verification is not None:
        checked = verifier_score(case)
        if checked != label:
            add(VERIFIER.name, checked, case.outcome.verification.rationale)
    for person in session.blind_labels.get((results[0].suite, results[0].case_digest), ()):
        if person.label not in (None, label):
            add(f"{_person(person.reviewer)}, blind", person.label, person.note)
    suite = results[0].suite
    is_new = any(
        change.is_reworded for change in session.prompt_changes if change.now.suite == suite
    )
    for result in results:
        before = f"{one_line(result.judge)} before" if result.judge else "before"
        if is_new and not result.judge:
            before = "old prompt"
        earlier = session.earlier.get(result.case_id)
        for verdict, by in _different(earlier.verdicts) if earlier is not None else ():
            add(before, verdict.score, verdict.reasoning, by)
    for result in results:
        now = one_line(result.judge) or ("new prompt" if is_new else "judge")
        for verdict, by in _different(result.verdicts):
            add(now, verdict.score, verdict.reasoning, by)
        if result.outcome in UNSCORED:
            heard.append(Voice(now, "no verdict", no_verdict_text(result.why), result.outcome))
        elif result.outcome == "no_case":
            heard.append(Voice("no case", "not judged", no_verdict_text(result.why)))
    alike: dict[tuple[str, str, str], Voice] = {}
    for voice in heard:
        same = alike.get(voice[1:4])
        who = voice.who if same is None else f"{same.who}, {voice.who}"
        alike[voice[1:4]] = voice._replace(who=who)
    return list(alike.values())


def _different(verdicts: Sequence[Verdict]) -> Iterator[tuple[Verdict, str]]:
    """The verdicts of repeats that differ, and of several which repeats gave each."""
    different = equal_verdicts(verdicts)
    for verdict, repeats in different.items():
        yield verdict, repeats_text(repeats) if len(different) > 1 else ""


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
        lines += ["", "raised at:", *(f"{INDENT}{visible(place)}" for place in why.places)]
    if why.difference:
        lines += ["", "recorded (-) and asked for now (+):"]
        for line in visible(why.difference).split("\n"):
            lines.append(f"{INDENT}{line}".rstrip())
    return lines


def _sentence(text: str) -> str:
    text = visible(text).strip()
    first = text.split(maxsplit=1)[0] if text else ""
    if first.isalpha() and first.islower():
        text = capital(text)
    return text if not text or text[-1] in ".!?…)`" or "\n" in text else f"{text}."


class LabelBasis(NamedTuple):
    """What a label rests on, in a few words, and whether it can be doubted: `certainty` is 1 where
    a person confirmed it, and -1 where people found it wrong, or nobody confirmed it.
    """

    text: str
    certainty: int


def label_giver(result: CaseResult, column: str = "") -> LabelBasis:
    """Who gave the label of a case: that of a table stands in a `column`."""
    if result.is_accepted:
        return LabelBasis("accepted by a person", 1)
    if result.extra.altered:
        return LabelBasis("changed on the disk since", -1)
    if result.labelled_by == "people":
        return LabelBasis("people", 1)
    if result.labelled_by == "program":
        return LabelBasis("a program", 0)
    if result.labelled_by == "column":
        return LabelBasis(f"column {one_line(column)}", 0)
    if not result.verified:
        return LabelBasis("unverified", -1)
    return LabelBasis(VERIFIER.name, 0)


def label_basis(session: Session, result: CaseResult) -> LabelBasis:
    """What the label of a case rests on."""
    grounds = session.grounds.get(result.suite)
    by, certainty = label_giver(result, grounds.column if grounds is not None else "")
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
    if review is None:
        return ""
    word = result.extra.review or review.action
    return f"{word}: {review.note}" if review.note else word
