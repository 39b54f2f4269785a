"""What a suite can show, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.core.text import counted, one_line
from pytest_jrh.stats.figures import percent
from pytest_jrh.stats.planning import CORRELATION, CORRELATIONS, SUPPOSED_FLIP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_jrh.stats.planning import ClassProspect, Prospect


_ROUNDED_FROM = 100
_CASES = {"violated": "violated case", "satisfied": "satisfied case", "all": "case"}


def prospect_sentences(prospects: Sequence[Prospect]) -> Iterator[str]:
    """Say which drop is found, and how many runs prove that there is none, with what is assumed."""
    for prospect in prospects:
        names = ", ".join(one_line(judge) for judge in prospect.judges if judge)
        for number, of_class in enumerate(prospect.classes):
            text = _found(of_class)
            yield f"{names}: {text}" if names and not number else text[0].upper() + text[1:]
        yield _proof(prospect)
        suite = prospect.classes[0].suite
        if suite.flicker is None:
            yield _supposed_flips(suite.repeats)


def _supposed_flips(repeats: int) -> str:
    """Say what is taken for the flicker that no verdicts show yet."""
    supposed = f"{SUPPOSED_FLIP:.0%} of verdicts are taken to flip by themselves"
    if repeats > 1:
        return f"{supposed}, until the {repeats} repeats of each case show how many do."
    return f"{supposed}, as each case is judged once (evaluation_config.repeats)."


def _found(of_class: ClassProspect) -> str:
    suite = of_class.suite
    cases = counted(suite.cases, _CASES[of_class.kind])
    judged = f", {suite.repeats} repeats" if suite.repeats > 1 else ""
    if suite.flicker is not None:
        judged += f", flicker {percent(suite.flicker)}"
    among = f"of {cases} from {counted(len(suite.sizes), 'run')}{judged}"
    drops = dict(zip(CORRELATIONS, of_class.drops, strict=True))
    drop = drops[CORRELATION]
    if drop is None:
        return f"{among}, no drop is found in 80% of sessions."
    assumed = ""
    if max(suite.sizes) > 1:
        low, *_, high = of_class.drops
        assumed = (
            f", if what breaks in one run correlates by {CORRELATION} ({_range(low, high)} for "
            f"{CORRELATIONS[0]:g} to {CORRELATIONS[-1]:g})"
        )
    return f"{among}, a drop of {_points(drop)} is found in 80% of sessions{assumed}."


def _range(low: float | None, high: float | None) -> str:
    upper = "none" if high is None else _points(high)
    return upper if low is None or high == low else f"{_whole(low)} to {upper}"


def _proof(prospect: Prospect) -> str:
    runs = "more than 100,000 runs"
    if prospect.runs is not None:
        runs = f"about {counted(_rounded(prospect.runs), 'run')} like these"
    return (
        f"To prove that no more than {_points(prospect.goal)} are lost (gate.proof) takes {runs}, "
        "if nothing has changed."
    )


def _rounded(number: int) -> int:
    """Two digits of a large number: more is not known."""
    return number if number < _ROUNDED_FROM else int(float(f"{number:.2g}"))


def _whole(share: float) -> int:
    return max(1, round(100 * share))


def _points(share: float) -> str:
    return counted(_whole(share), "point")
