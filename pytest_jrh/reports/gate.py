"""A decision as blocks: the word and why, how sure that is, the cases, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_jrh.core.text import counted, one_line
from pytest_jrh.reports.blocks import Cases, Command, Fold, Sentence
from pytest_jrh.stats.baseline import NOT_IN_BASELINE
from pytest_jrh.stats.changes import LEVEL
from pytest_jrh.stats.limits import limit_text

if TYPE_CHECKING:
    from pytest_jrh.reports.blocks import Block, Weight
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.changes import SetChange
    from pytest_jrh.stats.decision import Decision
    from pytest_jrh.stats.wording import Word


WEIGHTS: Mapping[Word, Weight] = {
    "PASS": "good",
    "UNCLEAR": "warning",
    "FAIL": "bad",
    "": "strong",
}
MOST_NAMED = 50
# pytest names each of them, too, and says why.
MOST_UNSCORED = 5
_MOST_SETS = 12


def signed_points(share: float) -> str:
    """A difference of shares in points, to a tenth, with its sign."""
    # Rounding makes "-0.0" of what is a little below 0.
    rounded = round(100 * share, 1) + 0.0
    return f"{rounded:+.1f}" if rounded else "0.0"


def fixes_text(number: int) -> str:
    """`1 fix`, `2 fixes`."""
    return "1 fix" if number == 1 else f"{number:,} fixes"


def headline(decision: Decision) -> str:
    """The word and why, in a line."""
    if not decision.word:
        return decision.headline
    return f"{decision.word}: {decision.headline}"


def as_sentence(clause: str) -> str:
    """A clause with a capital and a full stop."""
    return f"{clause[:1].upper()}{clause[1:]}."


def decision_blocks(decision: Decision) -> list[Block]:
    """What stands below the headline."""
    return [Sentence(as_sentence(text)) for text in decision.beside]


def certainty_sentences(decision: Decision) -> Iterator[str]:
    """The limits, the test and its level, and of each set that has lost anything p and what it
    lost; how many cases were compared.
    """
    for limit in decision.limits:
        yield as_sentence(limit_text(limit, one_line(limit.judge) or "the judge"))
    if decision.comparison is not None:
        yield (
            f"{decision.compared:,} of {counted(decision.of_baseline, 'case')} of the baseline "
            f"compared: {counted(len(decision.regressions), 'regression')}, "
            f"{fixes_text(len(decision.fixes))}."
        )
    if not decision.sets:
        return
    unit = "whole runs" if any(of.by_runs for of in decision.sets) else "verdicts of a case"
    yield (
        f"Test by exchange of {unit}: p is the chance of a loss as large as this; adjusted, "
        f"the chance of any so unlikely among the {counted(len(decision.sets), 'set')} compared. A "
        f"set that lost more than max_drop fails where the adjusted p is below {LEVEL:.3g}."
    )
    lost = [change for change in decision.sets if change.drop > 0]
    lost.sort(key=lambda change: (change.adjusted, change.p_value))
    yield from map(_set_sentence, lost[:_MOST_SETS])
    if len(lost) > _MOST_SETS:
        yield f"{len(lost) - _MOST_SETS:,} more sets are in the JSON report."
    bounds = [
        f"{_set_name(change)} {_size(change.bound, change)}"
        for change in decision.sets
        if change.is_class and change.runs > 1
    ]
    if bounds:
        yield (
            f"On other runs so much more could be lost unseen: {', '.join(bounds)} (one-sided 95%, "
            "as if a change broke whole runs)."
        )


def _set_sentence(change: SetChange) -> str:
    losses = f"{len(change.lost):,} lost and {len(change.won):,} won of {change.n:,}"
    before, now = change.before, change.now
    errors = f"wrong in {before.wrong:,} of {counted(before.verdicts, 'verdict')} before, "
    errors += f"in {now.wrong:,} of {now.verdicts:,} now"
    text = f"{_set_name(change)}: {losses}, {errors}: p = {change.p_value:.3g}"
    return as_sentence(f"{text}, {change.adjusted:.3g} adjusted")


def _set_name(change: SetChange) -> str:
    name = one_line(change.name) if change.name else f"{change.kind} cases"
    return f"{name} by {one_line(change.judge)}" if change.judge else name


def _size(drop: float, change: SetChange) -> str:
    if change.is_ordinal:
        return f"{drop * change.width:.1f} levels"
    return f"{min(1.0, drop):.0%}"


def how_sure(decision: Decision) -> list[Block]:
    """The fold with the figures behind the decision; none where there are none."""
    sentences = tuple(map(Sentence, certainty_sentences(decision)))
    return [Fold("How sure is this?", sentences)] if sentences else []


def gate_blocks(decision: Decision, session: Session) -> list[Block]:
    """The cases, the decision, the figures behind it, and what to do."""
    return [
        *gate_cases(decision, session),
        Sentence(headline(decision), WEIGHTS[decision.word]),
        *decision_blocks(decision),
        *how_sure(decision),
        *update_blocks(decision),
    ]


def update_blocks(decision: Decision) -> list[Block]:
    """The command that updates the baseline, where that is what to do."""
    if not decision.update_command:
        return []
    advice = "If the cases that the baseline does not have are new, update it with:"
    return [Command(advice, decision.update_command)]


def gate_cases(decision: Decision, session: Session) -> list[Cases]:
    """The cases that changed, count against a limit, or are missing; no list is empty."""
    lists = []
    for title, cases, weight in _groups(decision):
        if cases:
            named = tuple(session.named(case_id, why) for case_id, why in cases.items())
            most = MOST_UNSCORED if title == "unscored" else MOST_NAMED
            lists.append(Cases(title, named, weight, most))
    return lists


def _groups(decision: Decision) -> Iterator[tuple[str, Mapping[str, str], Weight]]:
    """Title, case ids with a remark on each, and weight of each list."""
    changes: tuple[tuple[str, Sequence[str], Weight], ...] = (
        ("regressions", decision.regressions, "bad"),
        ("fixes", decision.fixes, "good"),
    )
    for title, cases, weight in changes:
        yield title, _bare(case for case in cases if case not in decision.flickered), weight
        flickered = _bare(case for case in cases if case in decision.flickered)
        yield f"{title} by flicker: the judge has not changed", flickered, weight
    yield "accepted into the baseline, though wrong", _bare(decision.accepted), "warning"
    if decision.active and not decision.accepted:
        compared = "disagreements not in the baseline"
        title = "disagreements" if decision.comparison is None else compared
        yield title, _bare(decision.new_wrong), "bad"
    yield "never reported", _bare(decision.never_reported), "bad"
    yield "unscored", decision.unscored, "bad"
    not_comparable = dict(decision.comparison.not_comparable) if decision.comparison else {}
    for case in (*decision.never_reported, *decision.unscored, *decision.new_wrong):
        not_comparable.pop(case, None)
    new = [case for case, why in not_comparable.items() if why == NOT_IN_BASELINE]
    for case in new:
        del not_comparable[case]
    yield "new since the baseline", _bare(new), "muted"
    yield "not comparable with the baseline", not_comparable, "warning"


def _bare(case_ids: Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(case_ids, "")
