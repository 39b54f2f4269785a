"""Whether made cases look like real ones, as blocks and as JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_jrh.core.text import counted, one_line, shortened
from pytest_jrh.reports.blocks import Cases, Cell, Row, Section, Sentence, Table
from pytest_jrh.reports.grounds import sides_sentence
from pytest_jrh.reports.json_values import bounds_data, share_data
from pytest_jrh.stats.figures import percent, range_text, ranged
from pytest_jrh.stats.people import natural_beside_synthetic
from pytest_jrh.stats.realism import realism_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_jrh.core.model import CaseResult, Realism, RealismAnswer
    from pytest_jrh.reports.blocks import Block, Level
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.formulas import Estimate
    from pytest_jrh.stats.realism import RealismRow, RealismTable


_TITLES = ("cases", "told apart", "noticed", "suspected")
_NOTE = (
    "told apart: right answers to whether a transcript was altered, over each made case and its "
    "run as it was, so that 50% is chance; noticed: made cases that were called altered; "
    "suspected: untouched runs that were. 95% intervals in parentheses."
)
_LONGEST_REASON = 240
_LEVELS: dict[str, Level] = {"total": "rubric", "test": "test", "kind": "variant"}


def _sentence(table: RealismTable, tables: Sequence[RealismTable]) -> Sentence:
    of = f"suite {table.suite}: " if len(tables) > 1 else ""
    text = f"{of}{_finding(table)}{_without_answer(table)}"
    return Sentence(text, "warning" if table.tells_apart else "")


def _finding(table: RealismTable) -> str:
    right = table.total.right
    if right.value is None:
        return f"Whether made cases look real is not known: {right.why}."
    interval = f" (95% interval {range_text(right)})" if right.lower is not None else ""
    if table.tells_apart:
        meaning = "more often than by chance (50%), so that a judge may, too"
    elif right.lower is not None:
        meaning = "not shown to be more often than by chance (50%)"
    else:
        meaning = f"by chance it would be 50%; no interval: {right.why}"
    return (
        f"Made cases are told from untouched runs in {percent(right.value)} of transcripts"
        f"{interval}: {meaning}."
    )


def _without_answer(table: RealismTable) -> str:
    if not table.troubles:
        return ""
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in table.troubles.items())
    return f" {counted(sum(table.troubles.values()), 'question')} without an answer: {kinds}."


def realism_blocks(session: Session, *, brief: bool = False) -> list[Block]:
    """Whether made cases look real, and how judges do on natural runs, or a sentence a suite."""
    sections: list[Block] = []
    tables = realism_tables(session.results)
    if brief:
        return [_sentence(table, tables) for table in tables]
    for table in tables:
        rows = tuple(Row(row.name, _cells(row), _LEVELS[row.level]) for row in table.rows)
        blocks: list[Block] = [
            _sentence(table, tables),
            Table("", _TITLES, rows),
            *map(Sentence, _named_turns(table)),
            *map(Sentence, _natural_runs(session.results, table.suite)),
            Sentence(_NOTE, "muted"),
        ]
        if table.noticed:
            noticed = []
            for result in table.noticed:
                assert result.realism is not None
                noticed.append(session.named(result.case_id, _what_was_said(result.realism)))
            blocks.append(Cases("made cases that were called altered", tuple(noticed)))
        of = f" ({table.suite})" if len(tables) > 1 else ""
        sections.append(Section(f"Do made cases look real?{of}", tuple(blocks)))
    return sections


def _cells(row: RealismRow) -> tuple[Cell, ...]:
    figures = (row.right, row.noticed, row.suspected)
    return (Cell(f"{row.noticed.n:,}"), *map(_cell, figures))


def _cell(figure: Estimate) -> Cell:
    interval = "" if figure.lower is None else range_text(figure)
    return Cell(percent(figure.value), interval, figure.why)


def _named_turns(table: RealismTable) -> Iterator[str]:
    named = table.named
    if named.n:
        share = ranged(percent(named.value), named)
        yield (
            f"{named.count:,} of the {counted(named.n, 'turn')} named in made cases "
            f"{'is' if named.count == 1 else 'are'} edited ones: {share}."
        )


def _natural_runs(results: Iterable[CaseResult], suite: str) -> Iterator[str]:
    """How each judge does on natural runs, where the suite has any."""
    by_judge: dict[str, list[CaseResult]] = {}
    for result in results:
        if result.spec.suite == suite:
            by_judge.setdefault(result.judge, []).append(result)
    for judge, judged in by_judge.items():
        sides = natural_beside_synthetic(judged)
        if sides is not None:
            yield f"{f'{judge}: ' if judge else ''}{sides_sentence(sides)}"


def _what_was_said(realism: Realism) -> str:
    edited = _turns(realism.edited_turns)
    named = _turns(realism.case.turns) or "no turn"
    reason = shortened(one_line(realism.case.reason), _LONGEST_REASON) or "(no reason)"
    return f"names {named}, edited {edited}: {reason}"


def _turns(turns: Sequence[int]) -> str:
    return ", ".join(f"[{turn}]" for turn in turns)


def realism_data(results: Iterable[CaseResult]) -> dict[str, Any]:
    """All figures of one suite's made cases, and each answer; empty where none was asked."""
    asked = list(results)
    for table in realism_tables(asked):
        cases = {}
        for result in asked:
            if result.realism is not None:
                cases[result.case_id] = _case_data(result.realism)
        rows = [_row_data(row) for row in table.rows]
        return {
            "tells_apart": table.tells_apart,
            "rows": rows,
            "named_turns": _share_data(table.named),
            "troubles": dict(table.troubles),
            "cases": cases,
        }
    return {}


def _row_data(row: RealismRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "level": row.level,
        "right": _share_data(row.right),
        "noticed": _share_data(row.noticed),
        "suspected": _share_data(row.suspected),
    }


def _share_data(share: Estimate) -> dict[str, Any]:
    return {**share_data(share), "interval": bounds_data(share)}


def _case_data(realism: Realism) -> dict[str, Any]:
    return {
        "edited_turns": list(realism.edited_turns),
        "edit_kinds": list(realism.edit_kinds),
        "case": _answer_data(realism.case),
        "run": _answer_data(realism.run),
    }


def _answer_data(answer: RealismAnswer) -> dict[str, Any]:
    return {
        "altered": answer.altered,
        "turns": list(answer.turns),
        "reason": answer.reason,
        "trouble": answer.trouble or None,
    }
