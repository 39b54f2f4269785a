"""The report of a case that fails or has no verdict, as pure text (rules F).

Text of models and logs is wrapped, bounded, indented, and shown with control characters as escapes.
Each part of the text begins with a title at the start of a line (`reporting.printed.failures` tells
the parts by these).
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.errors import Unrecorded, Unscored
from pytest_jrh.files import relative_path
from pytest_jrh.models import UNSCORED
from pytest_jrh.reporting.evidence.case import basis, meant
from pytest_jrh.stages import STAGES
from pytest_jrh.stats.contradictions import REASONING_DISAGREES, stated_score
from pytest_jrh.text import counted, escape_commands, one_line, shortened, visible, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_jrh.models import Case, Edit, Judgment, Verdict

WIDTH = 80
_INDENT = "    "
_MOST_PROSE_LINES = 24
_MOST_EDITS = 6
_MOST_DIFF_LINES = 40
_MOST_DIFF_UNITS = 400
_LONGEST_UNIT = 2_000
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
    debug_bundle: Path | None,
    cassette: Path | None,
    command: str,
    width: int = WIDTH,
    base: Path | None = None,
    unchanged: str = "",
) -> str:
    """Explain a verdict that differs from the label: rubric, scores, reasoning, edits, files,
    command. Of repeats that differ, one verdict of the majority and one of the minority.

    Paths under `base` (default: the working folder) are shown relative to it. `debug_bundle` is
    None for a case without edits. `unchanged` is what the judge gave to the case that a probe
    changed.
    """
    folder = Path.cwd() if base is None else base
    expected = _score(case, case.expected)
    judge = f"The judge {one_line(case.spec.judge)}" if case.spec.judge else "The judge"
    lines = wrapped(
        f"{judge} gave {_given(case, judgment)}; the right answer is {expected}.", width
    )
    lines += ["", f"rubric: {_place(case, folder)}", *_prose(case.rubric.instructions, width)]
    lines += ["", f"expected: {expected}, {_verified(case)}"]
    if case.reworded:
        lines += wrapped(_REWORDED, width, _INDENT)
    verification = case.outcome.verification
    if verification is not None and verification.rationale:
        lines += _prose(verification.rationale, width)
    for verdict in (judgment.shown, judgment.minority):
        lines += _because(case, judgment, verdict, width) if verdict is not None else []
    lines += ["", *(_probed(case, unchanged, width) if unchanged else _edits(case, width))]
    files = {"debug bundle": debug_bundle, "cassette": cassette}
    lines += [
        "",
        *(
            f"{name + ':':<14}{_shown(path, folder)}"
            for name, path in files.items()
            if path is not None
        ),
    ]
    lines.append(f"{'run it again:':<14}{visible(command)}")
    return escape_commands("\n".join(lines))


def _given(case: Case, judgment: Judgment) -> str:
    """The score with its meaning, and of repeats how often each was given."""
    if len(judgment.verdicts) == 1 and judgment.score is not None:
        return _score(case, judgment.score)
    return judgment.given


def _because(case: Case, judgment: Judgment, verdict: Verdict, width: int) -> list[str]:
    """One verdict with its reasoning; of repeats, how many others gave that score."""
    many = f", in {judgment.scores.count(verdict.score)} of {len(judgment.scores)}"
    of = many if len(judgment.scores) > 1 else ""
    lines = ["", f"given: {_score(case, verdict.score)}{of}, because"]
    lines += _prose(verdict.reasoning or "(no reasoning)", width)
    stated = stated_score(verdict.reasoning, binary=case.mode == "binary")
    if stated not in (None, verdict.score):
        lines += [
            f"{_INDENT}({REASONING_DISAGREES}: the reasoning ends in {stated}; the score counts)"
        ]
    return lines


def unscored_text(
    trouble: Unscored, *, command: str = "", width: int = WIDTH, base: Path | None = None
) -> str:
    """Explain in a paragraph why there is no verdict: the stage, what came back, what to do.

    Where another case has met the same failure first, one line names that case. An unrecorded call
    also shows what differs from the nearest recording, and its cassette; an error of the user's
    code, where it was raised.
    """
    known = STAGES.get(trouble.stage)
    stage = known.title if known is not None else f"the {trouble.stage}"
    outcome = UNSCORED[trouble.outcome]
    what = trouble.happened or outcome.happened.format(stage=stage)
    if trouble.same_as:
        # One line: the case that it names says it all.
        first = shortened(one_line(trouble.cause), _LONGEST_FIRST)
        line = f"{stage}'s model was not asked, as case {visible(trouble.same_as)}: {first}"
        return escape_commands(f"No verdict ({trouble.outcome}): {line}")
    advice = trouble.advice or outcome.advice
    cause = shortened(trouble.cause, _LONGEST_CAUSE)
    sentences = [f"No verdict ({trouble.outcome}): {what}.", _sentence(cause), _sentence(advice)]
    lines = wrapped(" ".join(sentence for sentence in sentences if sentence), width)
    if trouble.places:
        lines += ["", "raised at:", *(f"{_INDENT}{visible(place)}" for place in trouble.places)]
    if isinstance(trouble, Unrecorded):
        if trouble.difference:
            lines += ["", "recorded (-) and asked for now (+):"]
            lines += [
                f"{_INDENT}{line}".rstrip() for line in visible(trouble.difference).split("\n")
            ]
        lines += [
            "",
            f"cassette: {_shown(Path(trouble.cassette), Path.cwd() if base is None else base)}",
        ]
    if command:
        name = "record it: " if trouble.outcome == "unrecorded" else "run it again: "
        lines += [*([] if isinstance(trouble, Unrecorded) else [""]), f"{name}{visible(command)}"]
    return escape_commands("\n".join(lines))


def edit_diff(edit: Edit, width: int = WIDTH) -> list[str]:
    """Show an edit sentence by sentence as a unified diff, wrapped to the width and bounded in
    length.
    """
    before, after = _units(edit.original_content), _units(edit.edited_content)
    # What both begin with costs time to compare and shows nothing; one sentence of it is context.
    start = max(_shared(before, after) - 1, 0)
    old = before[start : start + _MOST_DIFF_UNITS]
    new = after[start : start + _MOST_DIFF_UNITS]
    uncompared = max(len(before), len(after)) - start > _MOST_DIFF_UNITS
    lines = [_GAP] if start else []
    lines += _diff_lines(old, new, width)
    cut = len(lines) - _MOST_DIFF_LINES
    if cut <= 0 and not uncompared:
        return lines
    more = "more" if uncompared else counted(cut, "more line")
    return [*lines[:_MOST_DIFF_LINES], f"... ({more} in the debug bundle)"]


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many sentences both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next(
        (number for number, (left, right) in pairs if left != right), min(len(one), len(other))
    )


def _diff_lines(old: Sequence[str], new: Sequence[str], width: int) -> list[str]:
    lines: list[str] = []
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
    return lines


def _marked(mark: str, units: Iterable[str], width: int) -> Iterator[str]:
    for unit in units:
        for line in wrapped(unit, width - 2):
            yield f"{mark} {line}".rstrip()


def _probed(case: Case, unchanged: str, width: int) -> list[str]:
    """What a probe has changed, and what the judge says without that (rule S2)."""
    spec = case.spec
    text = (
        f"changed by {spec.test}: {spec.variant}; the judge gave {unchanged} to the unchanged case"
    )
    return wrapped(f"{text}, {spec.base}.", width)


def _edits(case: Case, width: int) -> list[str]:
    edits = case.outcome.edits
    if not edits:
        return ["no edits: the judge saw the transcript as it was recorded"]
    lines = [f"{counted(len(edits), 'edit')} made this case:"]
    for edit in edits[:_MOST_EDITS]:
        role = one_line(str(case.run.messages[edit.message_index].get("role", "unknown")))
        lines += [f"{_INDENT}turn {edit.message_index} ({role})"]
        lines += [f"{_INDENT}{line}".rstrip() for line in edit_diff(edit, width - len(_INDENT))]
    if len(edits) > _MOST_EDITS:
        lines.append(
            f"{_INDENT}... ({counted(len(edits) - _MOST_EDITS, 'more edit')} in the debug bundle)"
        )
    return lines


def _units(text: str) -> list[str]:
    units = [unit for line in visible(text).split("\n") for unit in _SENTENCE_END.split(line)]
    return [
        unit
        if len(unit) <= _LONGEST_UNIT
        else f"{unit[:_LONGEST_UNIT]}… ({len(unit) - _LONGEST_UNIT:,} more characters)"
        for unit in units
    ]


def _score(case: Case, score: int) -> str:
    return meant(score, case.levels)


def _verified(case: Case) -> str:
    label, asked = case.label, case.outcome.verification is not None
    said = basis(
        label.by if label is not None else None,
        label.votes if label is not None else (),
        case.expected,
        verified=case.verified,
        asked=asked,
        altered=case.altered,
    )
    return f"{said}:" if asked and label is None else said


def _place(case: Case, folder: Path) -> str:
    rubric = case.rubric
    name = one_line(rubric.id)
    return f"{name} ({_shown(Path(rubric.file), folder)}:{rubric.line})" if rubric.file else name


def _shown(path: Path, folder: Path) -> str:
    return visible(str(relative_path(path, folder)))


def _prose(text: str, width: int) -> list[str]:
    lines = wrapped(text.strip(), width, _INDENT)
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
