"""The facts of a case as people read them, each said once: what tells whether its judge or its
label is wrong; and the texts of cases that fail or have no verdict, whole, and in few lines. The
ledger has all that is known of a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import NamedTuple

from pytest_jrh.cases.probes import changed_again
from pytest_jrh.core import (
    both_ends,
    capital,
    counted,
    cut_in_the_middle,
    escape_commands,
    frozen,
    grouped,
    listed,
    one_line,
    relative_path,
    shortened,
    visible,
    wrapped,
)
from pytest_jrh.core.calls import STAGES, VERIFIER
from pytest_jrh.core.cases import SKIPS, UNSCORED, Case, Edit, Message, Verdict, Why, majority
from pytest_jrh.core.diffs import Piece, decisive_turns, differences, near_changes
from pytest_jrh.core.ids import LEDGER_FILE, generation_id
from pytest_jrh.core.results import CaseResult, equal_verdicts, scores_text
from pytest_jrh.core.transcript import (
    is_pair,
    message_text,
    part_title,
    text_to_compare,
    titled_parts,
)
from pytest_jrh.reports.blocks import Diff
from pytest_jrh.reports.session import Session, what_was_done

WIDTH = 80
INDENT = "    "
_LONGEST_LABEL = 50
_MOST_NUMBERS = 5
_MOST_TURNS = 8
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


def stored_case(session: Session, result: CaseResult) -> tuple[Case | None, Case | None]:
    """The case of a result, or that which its probe changed, without secrets, and what the probe
    made of it; None for what is not stored, and where a model made the change.
    """
    spec = result.spec
    base_id = generation_id(spec.base_case) if spec.derived else result.made_id
    case = session.redactor.value(session.records.read(base_id))
    return case, changed_again(case, spec) if case and spec.derived else None


def shown_edits(case: Case) -> Iterator[Diff]:
    """The edits of a stored case, each compared word by word, under the turn (from 0) or the part
    of an answer, and what was done to a call there.
    """
    for edit in case.outcome.edits:
        # Of a call that was left out, the turn behind it.
        messages = case.messages if edit.is_splice else case.run.messages
        title = f"turn {edit.message_index} (the end)"
        if 0 <= edit.message_index < len(messages):
            message = messages[edit.message_index]
            role = one_line(str(message.get("role", "unknown")))
            title = part_title(message) or f"turn {edit.message_index} ({role})"
        if note := act_note(edit):
            title += f", {note}"
        # The words of a turn, or calls with their results.
        before, after = edit.original_content, edit.edited_content
        if edit.kind != "say":
            before, after = text_to_compare(edit.before), text_to_compare(edit.after)
        yield Diff(differences(before, after), title)


_BESIDE = ("System prompt", "Context")
_LONGEST_PART = 4_000


def asked_and_answered(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """The first two parts of an answer, or of a table's row, that are no context, or a request and
    both answers to it; of long ones both ends; empty of a run.
    """
    parts = []
    for title, text in titled_parts(messages):
        if title not in _BESIDE:
            parts.append((title, cut_in_the_middle(text, _LONGEST_PART)))
    return parts[: 2 + is_pair(messages)]


def request_and_answer(messages: Sequence[Message], edits: Sequence[Edit]) -> list[tuple[str, str]]:
    """What was asked and answered; of a run its first request, and the last turn that was edited,
    or of all.
    """
    if parts := asked_and_answered(messages):
        return parts
    turns = [turn for turn in messages if turn["role"] == "user"][:1]
    places = sorted(decisive_turns(edits, len(messages)))
    turns += [messages[place] for place in places[-1:]] or messages[-1:]
    return [(str(turn["role"]), message_text(turn)) for turn in turns]


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
    wrong: bool = False


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

    votes = "\n".join(first.extra.votes)
    if label is not None:
        reason = label_reason(case) if case is not None else votes
        add("label", label, reason, label_basis(session, first).text)
    elif votes:
        heard.append(Voice("label", "no label", votes, ""))
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
        earlier = session.earlier(result.case_id)
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
            heard.append(Voice(speaker, "no verdict", why, result.outcome))
        elif result.outcome == "no_case":
            heard.append(Voice("no case", "not judged", why, ""))
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


def not_shown_text(result: CaseResult) -> str:
    """What a judge was not shown of a case, as `not shown [9], [11]`, and of one without edits how
    many turns; empty where it was.
    """
    shown = result.extra.shown
    if shown is not None and shown.read:
        return f"not shown the whole prompt, because the server read only {shown.read:,} tokens"
    if shown is None or not shown.missing:
        return ""
    if shown.is_whole:
        return f"not shown {len(shown.missing):,} of {counted(shown.turns, 'turn')}"
    turns = listed((f"[{index}]" for index in shown.missing), _MOST_TURNS)
    luck = ", but was right by luck" if result.outcome == "agree" else ""
    return f"not shown {turns}{luck}"


def no_verdict_text(why: Why) -> str:
    """Why there is no verdict; the same for cases that have none for the same reason."""
    return escape_commands("\n".join(_no_verdict_lines(why)))


def _no_verdict_lines(why: Why) -> list[str]:
    """Why there is no verdict, in one line: the stage, what came back, what to do. Of an error
    in the user's code also where it was raised, and of an unrecorded call what differs from the
    nearest recording.
    """
    if why.kind in SKIPS:
        return [SKIPS[why.kind].text(why.detail)]
    if why.kind not in UNSCORED:
        return [why.detail]
    outcome = UNSCORED[why.kind]
    stage = STAGES[why.stage].title if why.stage in STAGES else f"the {why.stage}"
    happened = why.happened or why.reason or outcome.happened.format(stage=stage)
    sentences = [f"No verdict ({why.kind}): {visible(happened)}."]
    sentences += map(_sentence, (why.cause, why.advice or outcome.advice))
    lines = [" ".join(filter(None, sentences))]
    if why.places:
        lines += ["", "raised at:", *(f"{INDENT}{visible(place)}" for place in why.places)]
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
    "altered": LabelBasis("changed on disk after the label", -1),
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
    grounds = session.grounds_of(result.suite)
    basis = label_giver(result, grounds.column)
    if result.basis == "people" and grounds.annotators:
        basis = basis._replace(text=listed(grounds.annotators, _MOST_PEOPLE))
    scores = blind_scores(session, result)
    if not scores or result.label is None:
        return basis
    if majority([*scores.values()]) == result.label:
        return LabelBasis(f"{basis.text}; blind: {listed(scores, _MOST_PEOPLE)}", 1)
    votes = []
    for person, score in scores.items():
        votes.append(f"{person} says {score_name(session, result, score)}")
    return LabelBasis(f"{basis.text}; labelling blind, {listed(votes, _MOST_PEOPLE)}", -1)


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


# ---- The texts of cases that fail or have no verdict. Text of models and logs is wrapped, bounded,
# indented, and shown with control characters as escapes.

_MOST_PROSE_LINES = 24
_MOST_LINES_OF_PART = 200
_MOST_VERDICTS = 12
_MOST_EDITS = 6
# Of what an edit leaves as it was, so many characters are shown beside it.
_CONTEXT = 80
_LONGEST_FIRST = 100
_MOST_FIRST_LINES = 4
_SEE_WHOLE = f"{INDENT}(-v shows the whole text)"
_REWORDED = (
    "The label is about an earlier text of the rubric; the judge saw the text above. Review the "
    "case (--jrh-review)."
)
_NO_REASON = "(no reasoning)"


@frozen
class FailureText:
    """What is said of a case that failed or has no verdict, in lines; an empty one ends a
    paragraph. `parts` are the request and the answer.
    """

    result: CaseResult
    lines: Sequence[str]
    parts: Sequence[tuple[str, str]] = ()

    @property
    def whole(self) -> str:
        """All of it."""
        return escape_commands("\n".join(self.lines))

    @property
    def first(self) -> list[str]:
        """The first paragraph: what is wrong."""
        return list(takewhile(bool, self.lines))

    @property
    def short(self) -> str:
        """Eight lines of it at most.

        Of errors, and of cases that probes change, there may be very many: five lines of each at
        most. The commands, which are longer than a line, are in the whole text, which the page has.
        """
        result, lines = self.result, self.first
        if len(lines) > _MOST_FIRST_LINES:
            last_line = " ".join(lines[_MOST_FIRST_LINES - 1 :])
            lines[_MOST_FIRST_LINES - 1 :] = [shortened(last_line, WIDTH)]
        if result.why.places:
            lines.append(_in_a_line(f"raised at {result.why.places[-1]}"))
        elif result.outcome in UNSCORED:
            lines.append(_SEE_WHOLE)
        elif not result.spec.derived:
            if done := what_was_done(result):
                lines.append(_in_a_line(done))
            room = WIDTH - len(INDENT)
            for title, text in self.parts:
                line = cut_in_the_middle(one_line(f"{title.lower()}: {text}"), room)
                lines.append(f"{INDENT}{line}")
            reason = reason_text(result.reasoning) or _NO_REASON
            lines += [f"{INDENT}{line}" for line in both_ends(f"judge: {reason}", room)]
        return escape_commands("\n".join(lines))


def unscored_text(result: CaseResult, *, command: str) -> FailureText:
    """Explain why there is no verdict, with the cassette of an unrecorded call, and the command."""
    why = result.why
    sentences, *details = _no_verdict_lines(why)
    lines = [*wrapped(sentences, WIDTH), *details, ""]
    if why.cassette:
        lines.append(f"cassette: {visible(why.cassette)}")
    title = "record it" if why.kind == "unrecorded" else "run it again"
    return FailureText(result, [*lines, f"{title}: {visible(command)}"])


def disagreement_text(
    case: Case, result: CaseResult, *, cassette: Path, command: str, column: str = ""
) -> FailureText:
    """Explain a verdict that differs from the label: rubric, scores, reasoning, edits, files,
    command. Of repeats each verdict, equal ones once. `column` is that of labels which nobody is
    known to have given.

    Of an answer it shows all parts, and of a run without edits the request and the last turn.
    """
    giver = label_giver(result, column).text
    if case.label is not None:
        people = dict.fromkeys(source.annotator for source in case.label.sources)
        giver = listed(filter(None, people), _MOST_PEOPLE) or giver
    assert result.label is not None
    label = case.scale.meant(result.label)
    judge = f'The judge "{one_line(result.judge)}"' if result.judge else "The judge"
    verdict = result.scores_text
    if not result.repeated and result.score is not None:
        verdict = case.scale.meant(result.score)
    lines = wrapped(f"{judge} gave {verdict}; the label ({giver}) is {label}.", WIDTH)
    if not_shown := not_shown_text(result):
        lines += wrapped(f"The judge was {not_shown}.", WIDTH)
    rubric = case.rubric
    heading = f"rubric: {one_line(rubric.id)}"
    if rubric.file:
        heading += f" ({_shown(Path(rubric.file))}:{rubric.line})"
    lines += ["", heading, *_prose(rubric.instructions), ""]
    why = label_reason(case)
    expected = f"expected: {label}, by the label ({giver})"
    lines.append(f"{expected}:" if why else expected)
    if case.reworded:
        lines += wrapped(_REWORDED, WIDTH, INDENT)
    lines += [*_prose(why), *_verdicts(case, result), ""]
    spec = case.spec
    edits = case.outcome.edits
    parts = request_and_answer(case.messages, edits)
    if spec.variant:
        gave = scores_text(result.base_score, result.base_scores, result.scale)
        change = f"changed by {spec.test} ({spec.variant}); the judge gave {gave} to"
        lines += wrapped(f"{change} the unchanged case, {spec.base}.", WIDTH)
    else:
        every_part = titled_parts(case.messages)
        if edits:
            lines.append(f"made by {counted(len(edits), 'edit')}:")
        elif not every_part:
            every_part = parts
        for edit, shown in islice(zip(edits, shown_edits(case), strict=True), _MOST_EDITS):
            since = f", since {shortened(edit.follows, _LONGEST_FIRST)}" if edit.follows else ""
            lines += wrapped(one_line(f"{shown.title}{since}"), WIDTH, INDENT)
            lines += edit_diff(shown.pieces)
        if len(edits) > _MOST_EDITS:
            lines.append(f"{INDENT}... ({counted(len(edits) - _MOST_EDITS, 'more edit')})")
        for title, text in every_part:
            lines += [f"{title.lower()}:", *_prose(text, _MOST_LINES_OF_PART)]
    lines += ["", f"{'cassette:':<14}{_shown(cassette)}"]
    lines.append(f"{'run it again:':<14}{visible(command)}")
    return FailureText(result, lines, parts)


def _in_a_line(text: str) -> str:
    """As much of an indented text as a line has room for."""
    return shortened(f"{INDENT}{one_line(text)}", WIDTH)


def _verdicts(case: Case, result: CaseResult) -> list[str]:
    """The different verdicts of the repeats, with their reasons."""
    different = equal_verdicts(result.verdicts)
    lines = []
    for verdict, repeats in islice(different.items(), _MOST_VERDICTS):
        of = f", in {len(repeats)} of {len(result.verdicts)} repeats" if result.repeated else ""
        lines += ["", f"given: {case.scale.meant(verdict.score)}{of}, because"]
        lines += _prose(verdict.reasoning or _NO_REASON)
    if len(different) > _MOST_VERDICTS:
        more = len(different) - _MOST_VERDICTS
        lines += ["", f"{counted(more, 'more verdict')} in {LEDGER_FILE}"]
    return lines


def edit_diff(pieces: Sequence[Piece]) -> list[str]:
    """What changed in a text: what is gone as `[-old-]`, and what is new as `{+new+}`."""
    text = ""
    for piece in near_changes(pieces, _CONTEXT):
        before, after = _MARKS[piece.kind]
        text += f"{before}{piece.text}{after}"
    return _prose(text)


_MARKS = {"same": ("", ""), "gone": ("[-", "-]"), "new": ("{+", "+}")}


def _shown(path: Path) -> str:
    return visible(str(relative_path(path, Path.cwd())))


def _prose(text: str, most: int = _MOST_PROSE_LINES) -> list[str]:
    lines = wrapped(text.strip(), WIDTH, INDENT) if text.strip() else []
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"{INDENT}... ({len(lines) - most + 1:,} more lines)"]
