"""How far a right verdict on a violation can be trusted: whether the turns that its reasoning cites
are those of the violation.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.text import counted, one_line
from pytest_jrh.reports.blocks import Cases, Fold, Sentence
from pytest_jrh.stats.figures import percent, ranged
from pytest_jrh.stats.intervals import estimate_share, tallied

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.reports.blocks import Block
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.formulas import Estimate


CITED_TITLE = "Turns that right verdicts cite"
# What cites another turn may still be about the violation, in about so many of a hundred.
_MISREAD = 0.05
_FEWEST_CITING = 5


def cited_blocks(session: Session) -> list[Block]:
    """What the reasoning of right verdicts on violations cites, and the cases in which that is
    another turn; nothing where none cites any.
    """
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
    """The judges that blame another turn than that of the violation in more verdicts than can be
    misread.
    """
    for of, found in _found_by_judge(session).items():
        share = _share_of_another(found)
        if share.n >= _FEWEST_CITING and (share.lower or 0) > _MISREAD:
            verdicts = counted(share.n, "right verdict")
            interval = ranged(percent(share.value, 0), share)
            sentence = (
                f"{of}{share.count:,} of {verdicts} that cite a turn blame another one than that "
                f"of the violation ({interval}): they may be right for another reason."
            )
            yield Sentence(sentence, "warning")


def cited_data(results: Iterable[CaseResult]) -> dict[str, Any]:
    """The counts of what one judge's right verdicts cite, and the cases with another turn, as a key
    of the report; nothing where none cites any.
    """
    found = [result for result in results if result.cites is not None]
    counts = Counter(result.cites for result in found)
    if not counts["cited"] and not counts["another"]:
        return {}
    others = [result.case_id for result in found if result.cites == "another"]
    numbers = {name: counts[name] for name in ("cited", "another", "none")}
    return {"cited_turns": {**numbers, "cases": others}}


def _share_of_another(found: Sequence[CaseResult]) -> Estimate:
    """Of the verdicts that cite a turn, the share that blames another one."""
    marks = []
    for result in found:
        if result.cites != "none":
            marks.append((result.spec.cluster_id, result.cites == "another"))
    return estimate_share(tallied(marks))


def _found_by_judge(session: Session) -> dict[str, list[CaseResult]]:
    """The right verdicts on violations whose turns are known, by the words that name their suite
    and judge where there are several.
    """
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
