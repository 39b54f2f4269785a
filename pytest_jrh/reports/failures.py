"""The texts of cases that fail or have no verdict: whole, as JUnit and editors get them, and as the
terminal prints them in few words, where equal errors are said once.

Text of models and logs is wrapped, bounded, indented, and shown with control characters as escapes.
Each part of a text begins with a title at the start of a line, by which the terminal tells them
apart.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.core.errors import Unrecorded, Unscored
from pytest_jrh.core.files import relative_path
from pytest_jrh.core.ids import LEDGER_FILE
from pytest_jrh.core.model import UNSCORED, equal_verdicts
from pytest_jrh.core.stages import STAGES
from pytest_jrh.core.text import (
    counted,
    escape_commands,
    log_line,
    one_line,
    shortened,
    visible,
    wrapped,
)
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.reports.case_facts import (
    act_note,
    case_basis,
    compared_texts,
    edited_role,
    label_votes,
    meant,
)
from pytest_jrh.stats.reasoning import REASONING_DISAGREES, stated_score

if TYPE_CHECKING:
    from pytest_jrh.core.model import Case, Edit, Judgment, Verdict


WIDTH = 80
_INDENT = "    "
_MOST_PROSE_LINES = 24
_MOST_VERDICTS = 12
_MOST_EDITS = 6
_MOST_DIFF_LINES = 40
_MOST_DIFF_UNITS = 400
_LONGEST_UNIT = 2_000
_MOST_TURN_LINES = 12
_MOST_LINES_OF_TURN = 5
_LONGEST_TURN = 2_000
_LONGEST_FIRST = 100
_LONGEST_CAUSE = 1_000
_GAP = "  ..."
_REWORDED = (
    "The label stands for an earlier text of the rubric; the judge had the text above. Review the "
    "case (--jrh-review)."
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)")


def disagreement_text(
    case: Case,
    judgment: Judgment,
    *,
    cassette: Path | None,
    command: str,
    base: Path | None = None,
    unchanged: str = "",
    facts: Iterable[tuple[str, str]] = (),
) -> str:
    """Explain a verdict that differs from the label: rubric, scores, reasoning, edits, files,
    command. Of repeats each verdict, equal ones once: first one of the majority, and of the
    minority.

    Of a case without edits it shows where its label stands, and the turns around what decides.
    Paths under `base` (default: the working folder) are shown relative to it. `unchanged` is what
    the judge gave to the case that a probe changed; `facts` are those of `case_facts.case_lines`.
    """
    folder = Path.cwd() if base is None else base
    assert case.expected is not None
    expected = meant(case.expected, case.levels)
    judge = f"The judge {one_line(case.spec.judge)}" if case.spec.judge else "The judge"
    verdicts = judgment.verdicts
    given = judgment.scores_text
    if len(verdicts) == 1 and judgment.score is not None:
        given = meant(judgment.score, case.levels)
    first = f"{judge} gave {given}; the right answer is {expected}."
    lines = wrapped(first, WIDTH)
    for title, text in facts:
        lines += wrapped(f"{title}: {one_line(text)}", WIDTH)
    rubric = case.rubric
    place = f" ({_shown(Path(rubric.file), folder)}:{rubric.line})" if rubric.file else ""
    lines += ["", f"rubric: {one_line(rubric.id)}{place}", *_prose(rubric.instructions)]
    basis = case_basis(case, altered=case.altered)
    verification = case.outcome.verification
    if verification is not None and case.label is None:
        basis += ":"
    lines += ["", f"expected: {expected}, {basis}"]
    if case.reworded:
        lines += wrapped(_REWORDED, WIDTH, _INDENT)
    if verification is not None and verification.rationale:
        lines += _prose(verification.rationale)
    lines += _prose("\n".join(label_votes(case))) if case.label is not None else []
    # First one of the majority, and of the minority.
    repeats = equal_verdicts(verdicts)
    distinct = list(filter(None, dict.fromkeys((judgment.shown, judgment.minority, *repeats))))
    for verdict in distinct[:_MOST_VERDICTS]:
        of = f", in {len(repeats[verdict])} of {len(verdicts)}" if len(verdicts) > 1 else ""
        lines += ["", f"{_GIVEN}: {meant(verdict.score, case.levels)}{of}, because"]
        lines += _prose(verdict.reasoning or _NO_REASON)
        stated = stated_score(verdict.reasoning, binary=case.mode == "binary")
        if stated not in (None, verdict.score):
            contradiction = f"{REASONING_DISAGREES}: the reasoning ends in {stated}"
            lines.append(f"{_INDENT}({contradiction}; the score counts)")
    if len(distinct) > _MOST_VERDICTS:
        more = counted(len(distinct) - _MOST_VERDICTS, "more verdict")
        lines += ["", f"{more} in {LEDGER_FILE}"]
    lines.append("")
    if unchanged:
        spec = case.spec
        text = f"changed by {spec.test}: {spec.variant}; the judge gave {unchanged} to"
        lines += wrapped(f"{text} the unchanged case, {spec.base}.", WIDTH)
    else:
        lines += _edits(case) if case.outcome.edits else _turns(case)
    lines.append("")
    if cassette is not None:
        lines.append(f"{'cassette:':<14}{_shown(cassette, folder)}")
    lines.append(f"{'run it again:':<14}{visible(command)}")
    return escape_commands("\n".join(lines))


def unscored_text(
    trouble: Unscored,
    *,
    command: str = "",
    base: Path | None = None,
    earlier: Sequence[Verdict] = (),
) -> str:
    """Explain in a paragraph why there is no verdict: the stage, what came back, what to do; and of
    a repeat without one what the `earlier` repeats gave.

    Where another case has met the same failure first, one line names that case. An unrecorded call
    also shows what differs from the nearest recording, and its cassette; an error of the user's
    code, where it was raised.
    """
    stage = f"the {trouble.stage}"
    if trouble.stage in STAGES:
        stage = STAGES[trouble.stage].title
    outcome = UNSCORED[trouble.outcome]
    happened = trouble.happened or outcome.happened.format(stage=stage)
    if trouble.same_as:
        # One line: the case that it names says it all.
        first = shortened(one_line(trouble.cause), _LONGEST_FIRST)
        line = f"{stage}'s model was not asked, as case {visible(trouble.same_as)}: {first}"
        text = f"No verdict ({trouble.outcome}): {line}"
        return escape_commands("\n".join([text, *_earlier(earlier)]))
    advice = trouble.advice or outcome.advice
    cause = shortened(trouble.cause, _LONGEST_CAUSE)
    head = f"No verdict ({trouble.outcome}): {happened}."
    sentences = [head, _sentence(cause), _sentence(advice)]
    lines = wrapped(" ".join(sentence for sentence in sentences if sentence), WIDTH)
    lines += _earlier(earlier)
    if trouble.places:
        lines += ["", "raised at:", *(f"{_INDENT}{visible(place)}" for place in trouble.places)]
    if isinstance(trouble, Unrecorded):
        if trouble.difference:
            lines += ["", "recorded (-) and asked for now (+):"]
            difference = visible(trouble.difference).split("\n")
            lines += [f"{_INDENT}{line}".rstrip() for line in difference]
        folder = Path.cwd() if base is None else base
        lines += ["", f"cassette: {_shown(Path(trouble.cassette), folder)}"]
    elif command:
        lines.append("")
    if command:
        title = "record it" if trouble.outcome == "unrecorded" else "run it again"
        lines.append(f"{title}: {visible(command)}")
    return escape_commands("\n".join(lines))


def _earlier(verdicts: Sequence[Verdict]) -> list[str]:
    """What the repeats gave before the one without a verdict."""
    lines: list[str] = []
    for verdict, repeats in equal_verdicts(verdicts).items():
        heading = f"{_EARLIER}: {verdict.score}, in {len(repeats)} of {len(verdicts)}"
        lines += ["", f"{heading} before it, because"]
        lines += _prose(verdict.reasoning or _NO_REASON)
    return lines


def without_earlier(detail: str) -> str:
    """The text of a case without what its repeats gave before the one without a verdict."""
    return _without(detail, (_EARLIER,))


def edit_diff(edit: Edit, width: int = WIDTH - len(_INDENT)) -> list[str]:
    """Show an edit sentence by sentence as a unified diff, wrapped and bounded in length."""
    before, after = compared_texts(edit)
    if edit.kind != "say" and not (before and after):
        mark, units = ("+", _units(after)) if after else ("-", _units(before))
        return _bounded(list(_marked(mark, units[:_MOST_DIFF_UNITS], width)), len(units))
    return text_diff(before, after, width)


def text_diff(old_text: str, new_text: str, width: int) -> list[str]:
    """Compare two texts sentence by sentence, as `edit_diff` shows an edit."""
    before, after = _units(old_text), _units(new_text)
    # What both begin with costs time to compare and shows nothing; one sentence of it is context.
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    start = max(start - 1, 0)
    old = before[start : start + _MOST_DIFF_UNITS]
    new = after[start : start + _MOST_DIFF_UNITS]
    lines = [_GAP] if start else []
    end = 0
    for number, group in enumerate(difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(1)):
        if number:
            lines.append(_GAP)
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                lines += _marked(" ", old[i1:i2], width)
            else:
                lines += _marked("-", old[i1:i2], width)
                lines += _marked("+", new[j1:j2], width)
            end = i2
    if end < len(old):
        lines.append(_GAP)
    return _bounded(lines, max(len(before), len(after)) - start)


def _bounded(lines: list[str], units: int) -> list[str]:
    """The first lines of a diff, and how many more there are; of so many sentences."""
    uncompared = units > _MOST_DIFF_UNITS
    cut = len(lines) - _MOST_DIFF_LINES
    if cut <= 0 and not uncompared:
        return lines
    missing = "more lines" if uncompared else counted(cut, "more line")
    return [*lines[:_MOST_DIFF_LINES], f"... ({missing})"]


def _marked(mark: str, units: Iterable[str], width: int) -> Iterator[str]:
    for unit in units:
        for line in wrapped(unit, width - 2):
            yield f"{mark} {line}".rstrip()


def _edits(case: Case) -> list[str]:
    """The turn of each edit, what was done to a call there, what it follows from, and the words."""
    edits = case.outcome.edits
    lines = [f"{counted(len(edits), 'edit')}{_MADE}:"]
    for edit in edits[:_MOST_EDITS]:
        facts = [f"turn {edit.message_index} ({edited_role(case, edit)})"]
        if note := act_note(edit):
            facts.append(note)
        if edit.follows:
            facts.append(f"since {shortened(edit.follows, _LONGEST_FIRST)}")
        lines += wrapped(one_line(", ".join(facts)), WIDTH, _INDENT)
        lines += [f"{_INDENT}{line}".rstrip() for line in edit_diff(edit)]
    if len(edits) > _MOST_EDITS:
        lines.append(f"{_INDENT}... ({counted(len(edits) - _MOST_EDITS, 'more edit')})")
    return lines


def _turns(case: Case) -> list[str]:
    """The last turns, as many as there is room for."""
    messages = case.messages
    turn_lines: list[str] = []
    first = len(messages)
    while first > 0:
        text = render_transcript(messages[:first], start=first - 1)
        lines: list[str] = []
        for line in text[:_LONGEST_TURN].split("\n"):
            # What a turn says is indented, which tells it from the header of a turn.
            if line.startswith(" "):
                lines += wrapped(line.strip(), WIDTH, f"{_INDENT}  ")
            else:
                lines.append(f"{_INDENT}{shortened(one_line(line), WIDTH - len(_INDENT))}")
        if len(lines) > _MOST_LINES_OF_TURN or len(text) > _LONGEST_TURN:
            lines = lines[: _MOST_LINES_OF_TURN - 1]
            lines.append(f"{_INDENT}  ... (of {len(text):,} characters)")
        if turn_lines and len(turn_lines) + len(lines) > _MOST_TURN_LINES:
            break
        turn_lines = lines + turn_lines
        first -= 1
    numbers = ", ".join(f"[{index}]" for index in range(first, len(messages)))
    head = [f"{_NO_EDITS}: the judge saw the transcript as it was recorded"]
    head += wrapped(f"turns {numbers} of {len(messages):,}, the last:", WIDTH)
    return head + turn_lines


def _units(text: str) -> list[str]:
    units = []
    for line in visible(text).split("\n"):
        for sentence in _SENTENCE_END.split(line):
            more = len(sentence) - _LONGEST_UNIT
            cut = f"{sentence[:_LONGEST_UNIT]}… ({more:,} more characters)"
            units.append(cut if more > 0 else sentence)
    return units


def _shown(path: Path, folder: Path) -> str:
    return visible(str(relative_path(path, folder)))


def _prose(text: str) -> list[str]:
    lines = wrapped(text.strip(), WIDTH, _INDENT)
    if len(lines) <= _MOST_PROSE_LINES:
        return lines
    return [
        *lines[: _MOST_PROSE_LINES - 1],
        f"{_INDENT}... ({len(lines) - _MOST_PROSE_LINES + 1:,} more lines)",
    ]


def _sentence(text: str) -> str:
    text = visible(text).strip()
    first = text.split(maxsplit=1)[0] if text else ""
    if first.isalpha() and first.islower():
        text = text[0].upper() + text[1:]
    return text if not text or text[-1] in ".!?…)`" or "\n" in text else f"{text}."


_MOST_NAMED = 3
_CASSETTE = "cassette"
_NO_EDITS = "no edits"
# The session ends in one command that records all that is missing.
_RECORD = "record it"
_AGAIN = "run it again"
_MADE = " made this case"
_GIVEN = "given"
_EARLIER = "earlier"
_EXPECTED = "expected"


class FailedCase(NamedTuple):
    """A case that failed, or that has no verdict: `name` is its node id, `detail` its whole text,
    and `printed` what its own code wrote.

    `title` says what was done, and `finding` is the same for the cases of one probe under one
    judge, empty for all others.
    """

    name: str
    detail: str
    unscored: bool = False
    printed: str = ""
    title: str = ""
    finding: str = ""


@dataclass(frozen=True, slots=True)
class BriefText:
    """What is printed for one case, or for several that have one text; `cases` are their places in
    what was given, and `heading` stands above the text of several.
    """

    cases: tuple[int, ...]
    text: str
    heading: str = ""


_MOST_CHANGED = 4
# Of the only case that failed the reason is shown in so many lines, of one of several in one.
_MOST_REASON_LINES = 5
_NO_REASON = "(no reasoning)"
_TURNS = "turns ["


def brief_texts(failed: Sequence[FailedCase]) -> list[BriefText]:
    """The texts to print for failed cases: what the first case gave and what was edited, how many
    more there are, and what a probe has turned once. Errors whose texts are equal, but for the file
    and the command of the case, are said once.
    """
    findings: dict[str, list[int]] = {}
    wrong: list[int] = []
    errors: dict[str, list[int]] = {}
    for number, case in enumerate(failed):
        if case.unscored:
            common = _without(case.detail, (_CASSETTE, _EARLIER, _RECORD, _AGAIN))
            errors.setdefault(f"{common}\0{case.printed}", []).append(number)
        elif case.finding:
            findings.setdefault(case.finding, []).append(number)
        else:
            wrong.append(number)
    texts = []
    if wrong:
        first = failed[wrong[0]]
        text = _explained(first, _MOST_REASON_LINES if len(failed) == 1 else 1)
        if len(wrong) > 1:
            text += f"\n{len(wrong) - 1:,} more, whole with -v."
        else:
            # So the case is explained whole.
            text = text.replace(f"\n{_AGAIN}: pytest ", f"\n{_AGAIN}: pytest -v ")
        texts.append(BriefText((wrong[0],), text, log_line(first.title)))
    for finding, numbers in findings.items():
        first = failed[numbers[0]]
        more = f" and {len(numbers) - 1:,} more" if len(numbers) > 1 else ""
        text = f"{log_line(first.title or first.name)}{more}\n{_explained(first)}"
        heading = f"{finding}: {counted(len(numbers), 'case')}"
        texts.append(BriefText(tuple(numbers), text, heading))
    for key, numbers in errors.items():
        text = _without(without_earlier(failed[numbers[0]].detail), (_RECORD,))
        if len(numbers) > 1:
            lines = [key.partition("\0")[0], "", f"{counted(len(numbers), 'case')}:"]
            lines += [f"  {log_line(failed[number].name)}" for number in numbers[:_MOST_NAMED]]
            if len(numbers) > _MOST_NAMED:
                lines.append(f"  and {len(numbers) - _MOST_NAMED:,} more")
            text = "\n".join(lines)
        texts.append(BriefText(tuple(numbers), text))
    return texts


def _explained(case: FailedCase, most_of_reason: int = 1) -> str:
    """What the judge gave, with so many lines of its reason, what was edited, and the command; of a
    case without edits also where its label stands, and the turns that decide.
    """
    lines: list[str] = []
    # Of repeats with one score a reason is enough.
    scores: set[str] = set()
    parts = _parts(case.detail)
    whole = ["", _AGAIN]
    if any(part.title == _NO_EDITS for part in parts):
        whole.append(_EXPECTED)
    for part in parts:
        if part.title in whole or part.title.startswith(_TURNS):
            lines += filter(None, part.lines)
        elif part.title == _GIVEN:
            score = part.lines[0].partition(",")[0]
            if score not in scores:
                lines += _reason(part, most_of_reason)
            scores.add(score)
        elif part.title.endswith(_MADE):
            changed = [line for line in part.lines if line.strip()[:2] in ("- ", "+ ")]
            lines += changed[:_MOST_CHANGED]
            if len(changed) > _MOST_CHANGED:
                lines.append(f"{_INDENT}... ({counted(len(changed) - _MOST_CHANGED, 'more line')})")
    return _text(lines)


def _reason(given: _Part, most: int) -> list[str]:
    """The beginning of a judge's reason in at most so many lines; none where it gave no reason."""
    lines = list(filter(None, given.lines[1:]))
    reason = " ".join(line.strip() for line in lines)
    if reason in ("", _NO_REASON):
        return []
    if len(lines) <= most:
        return lines
    rest = " ".join(line.strip() for line in lines[most - 1 :])
    return [*lines[: most - 1], shortened(f"{_INDENT}{rest}", WIDTH)]


def _without(detail: str, titles: Collection[str]) -> str:
    lines: list[str] = []
    for part in _parts(detail):
        if part.title not in titles:
            lines += part.lines
    return _text(lines)


class _Part(NamedTuple):
    title: str
    lines: list[str]


def _parts(detail: str) -> list[_Part]:
    """The parts of a text, each under its title: what models and people wrote is indented, and so
    is never one. The first paragraph has none.
    """
    head, between, below = detail.partition("\n\n")
    parts = [_Part("", [*head.split("\n"), *([""] if between else [])])]
    for line in below.split("\n") if below else []:
        if line and not line[0].isspace():
            parts.append(_Part(line.partition(":")[0], [line]))
        else:
            parts[-1].lines.append(line)
    return parts


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines).rstrip("\n")
