"""How far verdicts can be trusted: whether the turns that the reasoning of a right one cites are
those of the violation, whether a model says that it is right for what was done, and whether the
judge was shown what decides.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.model import JUDGED, UNEDITED
from pytest_jrh.core.text import counted, one_line, shortened
from pytest_jrh.reports.blocks import Cases, Fold, Points, Sentence
from pytest_jrh.stats.figures import NONE, percent, range_text, ranged
from pytest_jrh.stats.intervals import estimate_share, tallied

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from pytest_jrh.core.model import CaseResult, ShownTurns
    from pytest_jrh.reports.blocks import Block
    from pytest_jrh.reports.session import Session


CITED_TITLE = "Turns that right verdicts cite"
REASON_TITLE = "Right for another reason"
# What cites another turn may still be about the violation, in about so many of a hundred.
_MISREAD = 0.05
_FEWEST_CITING = 5
_LONGEST_REASON = 300


def cited_blocks(session: Session) -> list[Block]:
    """What right verdicts on violations cite, and the cases in which that is another turn."""
    by_judge = _found_by_judge(session)
    blocks: list[Block] = []
    for of, found in by_judge.items():
        counts = Counter(result.cites for result in found)
        if not counts["cited"] and not counts["another"]:
            continue
        verdicts = counted(len(found), "right verdict")
        sentence = (
            f"{of}What {verdicts} on violations cite: a turn of the violation in "
            f"{counts['cited']:,}, another one in {counts['another']:,}, none that can be told in "
            f"{counts['none']:,}."
        )
        blocks.append(Sentence(sentence))
        if others := [result for result in found if result.cites == "another"]:
            named = tuple(session.named(result.case_id) for result in others)
            blocks.append(Cases(f"{of}right, and blames another turn", named, "warning"))
    return [Fold(CITED_TITLE, tuple(blocks))] if blocks else []


def cited_doubts(session: Session) -> Iterator[Block]:
    """The judges that blame another turn in more verdicts than can be misread."""
    for of, found in _found_by_judge(session).items():
        citing = [result for result in found if result.cites != "none"]
        marks = ((result.spec.cluster_id, result.cites == "another") for result in citing)
        share = estimate_share(tallied(marks))
        if share.n >= _FEWEST_CITING and (share.lower or 0) > _MISREAD:
            verdicts = counted(share.n, "right verdict")
            interval = ranged(percent(share.value, 0), share)
            sentence = (
                f"{of}{share.count:,} of {verdicts} that cite a turn blame another one than that "
                f"of the violation ({interval}): they may be right for another reason."
            )
            yield Sentence(sentence, "warning")


def cited_data(results: Iterable[CaseResult]) -> dict[str, Any]:
    """What one judge's right verdicts cite, as a key of the report; empty where none does."""
    found = [result for result in results if result.cites is not None]
    counts = Counter(result.cites for result in found)
    if not counts["cited"] and not counts["another"]:
        return {}
    others = [result.case_id for result in found if result.cites == "another"]
    numbers = {name: counts[name] for name in ("cited", "another", "none")}
    return {"cited_turns": {**numbers, "cases": others}}


def reason_sentences(session: Session, suite: str) -> Iterator[str]:
    """How many of the violations that were made each judge found, and how many of these for what
    was done; nothing where the suite does not ask.
    """
    answers: dict[str, list[tuple[Hashable, bool | None]]] = {}
    violations: Counter[str] = Counter()
    for result in session.results:
        if result.spec.suite == suite:
            violations[result.judge] += _is_made_violation(result)
            if result.reason_check is not None:
                answer = result.spec.cluster_id, result.reason_check.same
                answers.setdefault(result.judge, []).append(answer)
    for judge, of_judge in answers.items():
        by = f"judge {one_line(judge)}: " if judge else ""
        answered = [(cluster, same) for cluster, same in of_judge if same is not None]
        right = sum(same for _, same in answered)
        total = counted(violations[judge], "violation")
        sentence = f"{by}{len(of_judge):,} of {total} found, {right:,} of them"
        if answered:
            share = estimate_share(tallied(answered))
            interval = range_text(share, digits=0)
            between = "" if interval == NONE else f", {interval}"
            sentence += f" for what was done ({percent(share.value, 0)}{between})"
        else:
            sentence += " known to be for what was done"
        if missing := len(of_judge) - len(answered):
            sentence += f"; of {missing:,} it could not be told"
        yield f"{sentence}."


def reason_blocks(session: Session) -> list[Block]:
    """The cases that are right for another or an unknown reason, with what the model said."""
    blocks: list[Block] = []
    titles = ((False, "right for another reason"), (None, "right, and not known for what reason"))
    for same, title in titles:
        named = []
        for result in session.results:
            check = result.reason_check
            if check is not None and check.same is same:
                why = f"{check.trouble}: {check.reason}" if check.trouble else check.reason
                why = shortened(one_line(why), _LONGEST_REASON)
                named.append(session.named(result.case_id, why))
        if named:
            blocks.append(Cases(title, tuple(named), "warning"))
    return [Fold(REASON_TITLE, tuple(blocks))] if blocks else []


def reason_data(results: Iterable[CaseResult]) -> dict[str, Any]:
    """What was said of one judge's right verdicts, as a key of the report; empty if not asked."""
    checks = {}
    for result in results:
        if result.reason_check is not None:
            checks[result.case_id] = result.reason_check
    if not checks:
        return {}
    answers = Counter(check.same for check in checks.values())
    cases = {}
    for case, check in checks.items():
        cases[case] = {"same": check.same, "reason": check.reason, "trouble": check.trouble or None}
    counts = {"same": answers[True], "other": answers[False], "unanswered": answers[None]}
    return {"right_reason": {**counts, "cases": cases}}


def _is_made_violation(result: CaseResult) -> bool:
    is_made = KINDS[result.spec.test].is_made and result.edit_note != UNEDITED
    return is_made and result.outcome in JUDGED and result.expected == 1


def _found_by_judge(session: Session) -> dict[str, list[CaseResult]]:
    """The right verdicts on violations whose turns are known, by what names suite and judge."""
    of_judges: dict[tuple[str, str], list[CaseResult]] = {}
    for result in session.results:
        if result.cites is not None:
            of_judges.setdefault((result.spec.suite, result.judge), []).append(result)
    suites = {suite for suite, _ in of_judges}
    found = {}
    for (suite, judge), results in of_judges.items():
        of = f"{one_line(suite)}: " if len(suites) > 1 else ""
        of += f"judge {one_line(judge)}: " if judge else ""
        found[of] = results
    return found


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
        looked_for = result.turns_shown
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
    looked_for = result.turns_shown
    if looked_for is None:
        return ""
    if looked_for.missing:
        return f"not shown {turns_text(looked_for)}"
    return "unknown" if looked_for.unknown else "shown"


def not_shown_line(result: CaseResult) -> str:
    """What a judge was not shown of a case, and what its verdict is then; empty where it was."""
    looked_for = result.turns_shown
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
        if result.turns_shown is not None:
            by_judge.setdefault((result.spec.suite, result.judge), []).append(result)
    several_suites = len({suite for suite, _ in by_judge}) > 1
    for (suite, judge), results in by_judge.items():
        subject = f"The judge {one_line(judge)}" if judge else "The judge"
        if several_suites:
            subject += f" of {one_line(suite)}"
        yield subject, results


def shown_data(results: Iterable[CaseResult]) -> dict[str, Any]:
    """What a judge was shown, as a key of the report; nothing where nothing was looked for."""
    judged = [result for result in results if result.turns_shown is not None]
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
        if result.turns_shown is not None and result.turns_shown.missing:
            turns = list(result.turns_shown.missing)
            not_shown.append(
                {"case": result.case_id, "turns": turns, "right": result.outcome == "agree"}
            )
    return {"turns_shown": {**data, "not_shown": not_shown}}
