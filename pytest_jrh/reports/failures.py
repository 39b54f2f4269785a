"""The texts of cases that fail or have no verdict: whole, as JUnit and editors get them, and as the
terminal prints them in few words, where equal errors are said once.

Text of models and logs is wrapped, bounded, indented, and shown with control characters as escapes.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.core.errors import Unrecorded, Unscored
from pytest_jrh.core.files import relative_path
from pytest_jrh.core.ids import LEDGER_FILE
from pytest_jrh.core.model import UNSCORED, equal_verdicts
from pytest_jrh.core.stages import STAGES
from pytest_jrh.core.text import (
    capital,
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
    label_basis,
    label_votes,
    meant,
    score_name,
    score_text,
)
from pytest_jrh.reports.topics import not_shown_line
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.stats.statistics import REASONING_DISAGREES, stated_score

if TYPE_CHECKING:
    from pytest_jrh.core.model import Case, CaseResult, Edit, Judgment, Verdict
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.probes import ProbeTable


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
_NO_REASON = "(no reasoning)"
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
        lines += ["", f"given: {meant(verdict.score, case.levels)}{of}, because"]
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
        lines = [f"No verdict ({trouble.outcome}): {line}"]
        return escape_commands("\n".join([*lines, *_last_paragraph(_earlier(earlier))]))
    advice = trouble.advice or outcome.advice
    cause = shortened(trouble.cause, _LONGEST_CAUSE)
    head = f"No verdict ({trouble.outcome}): {happened}."
    sentences = [head, _sentence(cause), _sentence(advice)]
    lines = wrapped(" ".join(sentence for sentence in sentences if sentence), WIDTH)
    if trouble.places:
        lines += ["", "raised at:", *(f"{_INDENT}{visible(place)}" for place in trouble.places)]
    own = _earlier(earlier)
    if isinstance(trouble, Unrecorded):
        if trouble.difference:
            lines += ["", "recorded (-) and asked for now (+):"]
            difference = visible(trouble.difference).split("\n")
            lines += [f"{_INDENT}{line}".rstrip() for line in difference]
        folder = Path.cwd() if base is None else base
        own.append(f"cassette: {_shown(Path(trouble.cassette), folder)}")
    if command:
        title = "record it" if trouble.outcome == "unrecorded" else "run it again"
        own.append(f"{title}: {visible(command)}")
    return escape_commands("\n".join([*lines, *_last_paragraph(own)]))


def _last_paragraph(lines: Sequence[str]) -> list[str]:
    """What is the case's own stands in the last paragraph, so that equal errors can be told."""
    return ["", *lines] if lines else []


def _earlier(verdicts: Sequence[Verdict]) -> list[str]:
    """What the repeats gave before the one without a verdict, a reason a line."""
    lines: list[str] = []
    for verdict, repeats in equal_verdicts(verdicts).items():
        of = f"in {len(repeats)} of {len(verdicts)} before it, because"
        lines.append(f"earlier: {verdict.score}, {of}")
        lines.append(shortened(f"{_INDENT}{one_line(verdict.reasoning) or _NO_REASON}", WIDTH))
    return lines


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
    lines = [f"{counted(len(edits), 'edit')} made this case:"]
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
    head = ["no edits: the judge saw the transcript as it was recorded"]
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
        text = capital(text)
    return text if not text or text[-1] in ".!?…)`" or "\n" in text else f"{text}."


_MOST_NAMED = 3
_MOST_CHANGED = 4


class FailedCase(NamedTuple):
    """A case without a verdict: `name` is its node id, `text` all there is to say of it, and
    `printed` what its own code wrote.
    """

    name: str
    text: str
    printed: str = ""


class BriefText(NamedTuple):
    """What is printed for one case, or for several that have one text; `cases` are their places in
    what was given.
    """

    cases: tuple[int, ...]
    text: str


def explained_text(session: Session, result: CaseResult, more: int) -> str:
    """What the judge gave, why, and what was edited; of a case without edits where its label stands
    and the last turns; and the command that shows it whole. `more` cases are wrong beside it.
    """
    case = session.records.read(made_case_id(result))
    lines = wrapped(_verdict_sentence(session, result), WIDTH)
    if line := not_shown_line(result):
        lines += wrapped(line, WIDTH)
    # A score that is given as its own reason says nothing.
    reasons = [] if result.reasoning.strip().isdigit() else [f"judge: {result.reasoning}"]
    if result.minority is not None:
        reasons.append(f"another repeat gave {result.minority.score}: {result.minority.reasoning}")
    if not result.reasoning:
        del reasons[0]
    for reason in reasons:
        lines.append(shortened(f"{_INDENT}{one_line(reason)}", WIDTH))
    if case is not None and not case.outcome.edits and not result.spec.derived:
        right = score_text(result, result.label, session)
        lines.append(f"expected: {right}, {case_basis(case, altered=result.extra.altered)}")
        lines += _prose("\n".join(label_votes(case)))
        lines += _turns(case)
    elif case is not None and not result.spec.derived:
        verification = case.outcome.verification
        why = f": {verification.rationale}" if verification is not None else ""
        name = score_name(session, result, result.label)
        label = f"label: {name}, {label_basis(session, result).text}{why}"
        lines.append(shortened(f"{_INDENT}{one_line(label)}", WIDTH))
        lines += _first_changes(case.outcome.edits)
    command = session.commands.get(result.case_id, "")
    if command and len(session.results) > 1:
        # So the case is explained whole.
        lines.append(f"run it again: {visible(command).replace('pytest ', 'pytest -v ', 1)}")
    if more:
        lines.append(f"{more:,} more, whole with -v.")
    return session.redactor.text(escape_commands("\n".join(lines)))


def _first_changes(edits: Sequence[Edit]) -> Iterator[str]:
    """The first changes of a case, each with both sides, and how many more lines there are."""
    changes: list[list[str]] = []
    previous = ""
    for edit in edits:
        for line in edit_diff(edit):
            if line[:2] in ("- ", "+ "):
                if previous not in ("- ", "+ ") or (previous, line[:2]) == ("+ ", "- "):
                    changes.append([])
                changes[-1].append(f"{_INDENT}{line}")
            previous = line[:2]
        previous = ""
    shown = 0
    for number, change in enumerate(changes):
        if number and shown + len(change) > _MOST_CHANGED:
            more = sum(map(len, changes[number:]))
            yield f"{_INDENT}... ({counted(more, 'more line')})"
            return
        yield from change
        shown += len(change)


def _verdict_sentence(session: Session, result: CaseResult) -> str:
    """What the judge gave, and what is right."""
    judge = f"The judge {one_line(result.judge)}" if result.judge else "The judge"
    given = result.scores_text if result.repeated else score_text(result, result.score, session)
    right = score_text(result, result.label, session)
    return f"{judge} gave {given}; the right answer is {right}."


def turned_text(results: Sequence[CaseResult], tables: Sequence[ProbeTable] = ()) -> str:
    """The cases that probes turned, a line for each probe and judge, in the order of `tables`."""
    places = {}
    for place, table in enumerate(tables):
        places[table.suite, table.judge, table.probe] = place
    results = sorted(
        results,
        key=lambda result: places.get((result.suite, result.judge, result.test), len(places)),
    )
    numbers: Counter[str] = Counter()
    firsts: dict[str, CaseResult] = {}
    for result in results:
        judge = f", judge {one_line(result.judge)}" if result.judge else ""
        finding = f"{one_line(result.spec.test)}{judge}"
        numbers[finding] += 1
        firsts.setdefault(finding, result)
    lines = []
    for finding, number in numbers.items():
        first = firsts[finding].spec
        text = f"{finding}: {counted(number, 'case')}, first {first.run_id} {first.variant}"
        lines.append(shortened(log_line(text), WIDTH))
    return "\n".join(lines)


def error_texts(failed: Sequence[FailedCase]) -> list[BriefText]:
    """The texts of cases without a verdict; those that are equal but for what is the case's own are
    said once.
    """
    alike: dict[tuple[str, str], list[int]] = {}
    for number, case in enumerate(failed):
        alike.setdefault((common_part(case.text), case.printed), []).append(number)
    texts = []
    for (common, _), numbers in alike.items():
        text = failed[numbers[0]].text
        if len(numbers) > 1:
            lines = [common, "", f"{counted(len(numbers), 'case')}:"]
            lines += [f"  {log_line(failed[number].name)}" for number in numbers[:_MOST_NAMED]]
            if len(numbers) > _MOST_NAMED:
                lines.append(f"  and {len(numbers) - _MOST_NAMED:,} more")
            text = "\n".join(lines)
        texts.append(BriefText(tuple(numbers), text))
    return texts


def common_part(text: str) -> str:
    """A text of `unscored_text` without its last paragraph, which is the case's own."""
    common, _, _ = text.rpartition("\n\n")
    return common or text
