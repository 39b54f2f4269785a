"""The texts of cases that fail or have no verdict: whole, and in few lines.

Text of models and logs is wrapped, bounded, indented, and shown with control characters as escapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, takewhile
from pathlib import Path

from pytest_jrh.core import frozen
from pytest_jrh.core.cases import Case
from pytest_jrh.core.diffs import Piece, near_changes
from pytest_jrh.core.files import relative_path
from pytest_jrh.core.ids import LEDGER_FILE
from pytest_jrh.core.results import CaseResult, equal_verdicts, scores_text
from pytest_jrh.core.scales import Scale
from pytest_jrh.core.skips import UNSCORED
from pytest_jrh.core.text import (
    counted,
    escape_commands,
    one_line,
    shortened,
    visible,
    wrapped,
)
from pytest_jrh.core.transcript import render_transcript, titled_parts
from pytest_jrh.reports.case_facts import (
    INDENT,
    WIDTH,
    asked_and_answered,
    facts_of,
    label_giver,
    label_reason,
    no_verdict_lines,
    part_line,
    reason_text,
    shown_edits,
)
from pytest_jrh.reports.session import case_title
from pytest_jrh.reports.topics import not_shown_text
from pytest_jrh.stats.reasoning import REASONING_DISAGREES, stated_score

_MOST_PROSE_LINES = 24
_MOST_LINES_OF_PART = 200
_MOST_VERDICTS = 12
_MOST_EDITS = 6
# Of what an edit leaves as it was, so many characters are shown beside it.
_CONTEXT = 80
_MOST_TURNS = 3
_MOST_LINES_OF_TURN = 5
_LONGEST_TURN = 2_000
_LONGEST_FIRST = 100
_MOST_FIRST_LINES = 4
_SEE_WHOLE = f"{INDENT}(use -v to see it whole)"
_REWORDED = (
    "The label stands for an earlier text of the rubric; the judge had the text above. Review the "
    "case (--jrh-review)."
)
_NO_REASON = "(no reasoning)"


@frozen
class FailureText:
    """What is said of a case that failed or has no verdict, in lines; an empty one ends a
    paragraph. `giver` is who gave the label; of an answer, `parts` are the request and the answer.
    """

    result: CaseResult
    lines: Sequence[str]
    giver: str = ""
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
        most. The commands, which are longer than a line, are in the whole text.
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
            lines.append(_in_a_line(case_title(result, WIDTH - len(INDENT))))
            for title, text in self.parts:
                lines.append(INDENT + part_line(title, text, WIDTH - len(INDENT)))
            lines.append(_in_a_line(f"judge: {reason_text(result.reasoning) or _NO_REASON}"))
            lines.append(_in_a_line(f"label {result.label} ({self.giver})"))
            lines.append(_SEE_WHOLE)
        return escape_commands("\n".join(lines))


def unscored_text(result: CaseResult, *, command: str) -> FailureText:
    """Explain why there is no verdict, with the cassette of an unrecorded call, and the command."""
    why = result.why
    lines = [*no_verdict_lines(why), ""]
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

    Of an answer it shows all parts, and of a run without edits the last turns.
    """
    giver = label_giver(result, column).text
    lines = _first_lines(result, case.scale)
    for title, text in facts_of(result, case):
        lines += wrapped(f"{title}: {one_line(text)}.", WIDTH)
    rubric = case.rubric
    heading = f"rubric: {one_line(rubric.id)}"
    if rubric.file:
        heading += f" ({_shown(Path(rubric.file))}:{rubric.line})"
    lines += ["", heading, *_prose(rubric.instructions)]
    lines += ["", *_label(case, giver)]
    lines += _verdicts(case, result)
    lines.append("")
    spec = case.spec
    if spec.variant:
        gave = scores_text(result.base_score, result.base_scores, result.scale)
        change = f"changed by {spec.test}: {spec.variant}; the judge gave {gave} to"
        lines += wrapped(f"{change} the unchanged case, {spec.base}.", WIDTH)
    else:
        parts = titled_parts(case.messages)
        if case.outcome.edits:
            lines += _edits(case)
        elif not parts:
            lines += _turns(case)
        for title, text in parts:
            lines += [f"{title.lower()}:", *_prose(text, _MOST_LINES_OF_PART)]
    lines.append("")
    lines.append(f"{'cassette:':<14}{_shown(cassette)}")
    lines.append(f"{'run it again:':<14}{visible(command)}")
    return FailureText(result, lines, giver, asked_and_answered(case.messages))


def _in_a_line(text: str) -> str:
    """As much of an indented text as a line has room for."""
    return shortened(f"{INDENT}{one_line(text)}", WIDTH)


def _first_lines(result: CaseResult, scale: Scale) -> list[str]:
    """What the judge gave, what is right, and what it was not shown."""
    assert result.label is not None
    judge = f"The judge {one_line(result.judge)}".rstrip()
    verdict = result.scores_text
    if not result.repeated and result.score is not None:
        verdict = scale.meant(result.score)
    lines = wrapped(
        f"{judge} gave {verdict}; the right answer is {scale.meant(result.label)}.", WIDTH
    )
    if not_shown := not_shown_text(result):
        lines += wrapped(f"The judge was {not_shown}.", WIDTH)
    return lines


def _label(case: Case, giver: str) -> list[str]:
    """What is right, what that rests on, and why."""
    assert case.expected is not None
    why = label_reason(case)
    expected = f"expected: {case.scale.meant(case.expected)}, by its label ({giver})"
    lines = [f"{expected}:" if why else expected]
    if case.reworded:
        lines += wrapped(_REWORDED, WIDTH, INDENT)
    return [*lines, *_prose(why)]


def _verdicts(case: Case, result: CaseResult) -> list[str]:
    """The different verdicts of the repeats, with their reasons."""
    different = equal_verdicts(result.verdicts)
    lines = []
    for verdict, repeats in islice(different.items(), _MOST_VERDICTS):
        of = f", in {len(repeats)} of {len(result.verdicts)}" if result.repeated else ""
        lines += ["", f"given: {case.scale.meant(verdict.score)}{of}, because"]
        lines += _prose(verdict.reasoning or _NO_REASON)
        stated = stated_score(verdict.reasoning, case.scale)
        if stated not in (None, verdict.score):
            contradiction = f"{REASONING_DISAGREES}: the reasoning ends in {stated}"
            lines.append(f"{INDENT}({contradiction}; the score counts)")
    if len(different) > _MOST_VERDICTS:
        more = counted(len(different) - _MOST_VERDICTS, "more verdict")
        lines += ["", f"{more} in {LEDGER_FILE}"]
    return lines


def edit_diff(pieces: Sequence[Piece]) -> list[str]:
    """What changed in a text: what is gone as `[-old-]`, and what is new as `{+new+}`."""
    text = ""
    for piece in near_changes(pieces, _CONTEXT):
        before, after = _MARKS[piece.kind]
        text += f"{before}{piece.text}{after}"
    return _prose(text)


_MARKS = {"same": ("", ""), "gone": ("[-", "-]"), "new": ("{+", "+}")}


def _edits(case: Case) -> list[str]:
    """The turn of each edit, what it follows from, and what it changed."""
    edits = case.outcome.edits
    lines = [f"{counted(len(edits), 'edit')} made this case:"]
    for edit, shown in islice(zip(edits, shown_edits(case), strict=True), _MOST_EDITS):
        since = f", since {shortened(edit.follows, _LONGEST_FIRST)}" if edit.follows else ""
        lines += wrapped(one_line(f"{shown.title}{since}"), WIDTH, INDENT)
        lines += edit_diff(shown.pieces)
    if len(edits) > _MOST_EDITS:
        lines.append(f"{INDENT}... ({counted(len(edits) - _MOST_EDITS, 'more edit')})")
    return lines


def _turns(case: Case) -> list[str]:
    """The last turns, some lines of each."""
    messages = case.messages
    head = ["no edits: the judge saw the transcript as it was recorded"]
    head += wrapped(f"the last of {counted(len(messages), 'turn')}:", WIDTH)
    turn_lines = []
    for index in range(max(0, len(messages) - _MOST_TURNS), len(messages)):
        text = render_transcript(messages[: index + 1], start=index)
        lines = []
        for line in text[:_LONGEST_TURN].split("\n"):
            # What a turn says is indented, which tells it from the header of a turn.
            if line.startswith(" "):
                lines += wrapped(line.strip(), WIDTH, f"{INDENT}  ")
            else:
                lines.append(_in_a_line(line))
        if len(lines) > _MOST_LINES_OF_TURN or len(text) > _LONGEST_TURN:
            cut = f"{INDENT}  ... (of {len(text):,} characters)"
            lines[_MOST_LINES_OF_TURN - 1 :] = [cut]
        turn_lines += lines
    return head + turn_lines


def _shown(path: Path) -> str:
    return visible(str(relative_path(path, Path.cwd())))


def _prose(text: str, most: int = _MOST_PROSE_LINES) -> list[str]:
    lines = wrapped(text.strip(), WIDTH, INDENT) if text.strip() else []
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"{INDENT}... ({len(lines) - most + 1:,} more lines)"]
