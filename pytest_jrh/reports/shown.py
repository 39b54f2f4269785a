"""Whether judges were shown what decides, as blocks and as JSON values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.text import counted, one_line
from pytest_jrh.reports.blocks import Cases, Fold, Points, Sentence
from pytest_jrh.stats.figures import percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_jrh.core.model import CaseResult, ShownTurns
    from pytest_jrh.reports.blocks import Block
    from pytest_jrh.reports.session import Session


SHOWN_TITLE = "What the judge was shown"
_EDITED = "edited turns"
_WHOLE = "turns of runs as they are"
_MOST_TURNS = 8


@dataclass(frozen=True, slots=True)
class ShownCount:
    """How many turns were looked for and found, and the results that lack one."""

    turns: int
    shown: int
    unknown: int
    not_shown: tuple[CaseResult, ...]

    @property
    def missing(self) -> int:
        """How many turns the judge was not shown."""
        return self.turns - self.shown - self.unknown

    @property
    def known(self) -> int:
        """Of how many turns it can be told whether the judge was shown them."""
        return self.turns - self.unknown


def shown_count(results: Iterable[CaseResult], *, whole: bool) -> ShownCount:
    """Count the edited turns, or with `whole` all turns of cases without edits."""
    turns = shown = unknown = 0
    not_shown = []
    for result in results:
        looked_for = result.extra.shown
        if looked_for is None or looked_for.is_whole != whole:
            continue
        turns += looked_for.turns
        shown += looked_for.shown
        unknown += looked_for.unknown
        if looked_for.missing:
            not_shown.append(result)
    return ShownCount(turns, shown, unknown, tuple(not_shown))


def turns_text(looked_for: ShownTurns) -> str:
    """The turns that a judge was not shown, as `[9], [11]`; of cases without edits how many."""
    missing = looked_for.missing
    if looked_for.is_whole:
        return f"{len(missing):,} of {counted(looked_for.turns, 'turn')}"
    more = f" and {len(missing) - _MOST_TURNS:,} more" if len(missing) > _MOST_TURNS else ""
    return ", ".join(f"[{index}]" for index in missing[:_MOST_TURNS]) + more


def state_text(result: CaseResult) -> str:
    """Whether the judge was shown what decides; empty where nothing was looked for."""
    looked_for = result.extra.shown
    if looked_for is None:
        return ""
    if looked_for.missing:
        return f"not shown {turns_text(looked_for)}"
    return "unknown" if looked_for.unknown else "shown"


def not_shown_line(result: CaseResult) -> str:
    """What a judge was not shown of a case, and what its verdict is then; empty where it was."""
    looked_for = result.extra.shown
    if looked_for is None or not looked_for.missing:
        return ""
    luck = ""
    if result.outcome == "agree" and not looked_for.is_whole:
        luck = " Its verdict is right by luck."
    return f"The judge was not shown {turns_text(looked_for)}.{luck}"


def not_shown_blocks(session: Session) -> list[Block]:
    """What judges were not shown, a sentence each; none where they were shown all."""
    blocks: list[Block] = []
    for subject, results in _by_judge(session):
        edited = shown_count(results, whole=False)
        whole = shown_count(results, whole=True)
        parts = []
        if edited.missing:
            cases = counted(len(edited.not_shown), "case")
            lucky = sum(result.outcome == "agree" for result in edited.not_shown)
            luck = f", {lucky:,} of them right by luck" if lucky else ""
            parts.append(f"{edited.missing:,} of {edited.turns:,} {_EDITED} ({cases}{luck})")
        if whole.missing:
            parts.append(f"{whole.missing:,} of {whole.turns:,} {_WHOLE}")
        if parts:
            sentence = f"{subject} was not shown {' and '.join(parts)}."
            blocks.append(Sentence(sentence, "warning"))
    return blocks


def shown_folds(session: Session) -> list[Block]:
    """Of each judge how many turns it was shown, and the cases that it was not shown whole."""
    points: list[str] = []
    lists: list[Block] = []
    judges = list(_by_judge(session))
    for subject, results in judges:
        of = f"{subject}: " if len(judges) > 1 else ""
        for name, whole in ((_EDITED, False), (_WHOLE, True)):
            count = shown_count(results, whole=whole)
            if count.known:
                share = f" ({percent(count.shown / count.known)})" if whole else ""
                points.append(f"{of}shown: {count.shown:,} of {count.known:,} {name}{share}")
            if count.unknown:
                points.append(f"{of}unknown: {count.unknown:,} {name}; {_WHY_UNKNOWN}")
            if count.not_shown:
                named = []
                for result in count.not_shown:
                    right = "right by luck" if result.outcome == "agree" else result.outcome
                    why = state_text(result) + ("" if whole else f", {right}")
                    named.append(session.named(result.case_id, why))
                lists.append(Cases(f"{of}{name} that were not shown", tuple(named), "warning"))
    return [Fold(SHOWN_TITLE, (Points(tuple(points)), *lists))] if points else []


_WHY_UNKNOWN = "what the judge sent is not recorded, or cannot be read"


def _by_judge(session: Session) -> Iterable[tuple[str, Sequence[CaseResult]]]:
    """The results of which turns were looked for, by what their judge is called in a sentence."""
    by_judge: dict[tuple[str, str], list[CaseResult]] = {}
    for result in session.results:
        if result.extra.shown is not None:
            by_judge.setdefault((result.spec.suite, result.judge), []).append(result)
    several_suites = len({suite for suite, _ in by_judge}) > 1
    for (suite, judge), results in by_judge.items():
        subject = f"The judge {one_line(judge)}" if judge else "The judge"
        if several_suites:
            subject += f" of {one_line(suite)}"
        yield subject, results


def shown_data(results: Iterable[CaseResult]) -> dict[str, Any]:
    """What a judge was shown, as a key of the report; nothing where nothing was looked for."""
    judged = [result for result in results if result.extra.shown is not None]
    if not judged:
        return {}
    data: dict[str, Any] = {}
    for key, whole in (("edited", False), ("whole", True)):
        count = shown_count(judged, whole=whole)
        data[key] = {
            "turns": count.turns,
            "shown": count.shown,
            "missing": count.missing,
            "unknown": count.unknown,
        }
    not_shown = []
    for result in judged:
        if result.extra.shown is not None and result.extra.shown.missing:
            turns = list(result.extra.shown.missing)
            not_shown.append(
                {"case": result.case_id, "turns": turns, "right": result.outcome == "agree"}
            )
    return {"turns_shown": {**data, "not_shown": not_shown}}
