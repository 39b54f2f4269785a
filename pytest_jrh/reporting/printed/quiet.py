"""What `-q` leaves of a session: a line for each judge of each suite, what the gate decided, and
what was paid for (rule J6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.reporting.gate_text import decision_sentence, next_lines
from pytest_jrh.reporting.session_results import extent_sentences, recording_sentence
from pytest_jrh.stats.columns import percent, ranged
from pytest_jrh.stats.diagnosis import section_warnings
from pytest_jrh.stats.figures import left_out, sections
from pytest_jrh.stats.spending import spending_lines
from pytest_jrh.text import Styled, counted, one_line, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_jrh.gate.decision import GateDecision
    from pytest_jrh.reporting.session_results import SessionResults
    from pytest_jrh.stats.figures import Section


def quiet_lines(session: SessionResults, width: int) -> Iterator[Styled]:
    """A line for each judge of each suite, its warnings, and what each gate decided, with what to
    do about it.
    """
    for section in sections(session.table):
        yield Styled(_figures(section))
        for warning in section_warnings(section):
            yield from _wrapped(f"! {warning}", width, "yellow")
    for sentence in extent_sentences(session):
        yield from _wrapped(one_line(sentence), width, "yellow")
    for suite, decision in session.decisions.items():
        if decision.passed and not decision.active:
            continue
        of = f"suite {one_line(suite)}: " if len(session.decisions) > 1 else ""
        yield from _decided(decision, of, width)
    if sentence := recording_sentence(session):
        yield from _wrapped(sentence, width, "yellow")
        yield Styled(f"  {one_line(session.record_command)}")
    spending = session.spending
    if spending.calls:
        # What was paid for is never left unsaid.
        yield from map(Styled, spending_lines(spending, width))


def _decided(decision: GateDecision, of: str, width: int) -> Iterator[Styled]:
    style = "green" if decision.passed else "red"
    yield from _wrapped(f"{of}{decision_sentence(decision)}", width, style)
    yield from next_lines(decision, width)


def _figures(section: Section) -> str:
    total = section.total
    parts = [counted(total.counts.n, "verdict")]
    if total.counts.n:
        wrong = total.counts.n - sum(each.outcome == "agree" for each in total.judged)
        parts[0] += f", accuracy {ranged(percent(total.accuracy.value), total.interval)}"
        parts.append(f"{wrong:,} wrong")
    parts += [f"{number:,} {kind}" for kind, number in left_out(total)]
    return f"{one_line(section.label)}: {', '.join(parts)}"


def _wrapped(text: str, width: int, style: str) -> Iterator[Styled]:
    return (Styled(line, style) for line in wrapped(text, width))
