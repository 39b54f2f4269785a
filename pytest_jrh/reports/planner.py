"""What a suite can show, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pytest_jrh.core.text import counted, one_line
from pytest_jrh.stats.figures import percent
from pytest_jrh.stats.planning import CORRELATION, MORE_REPEATS, SUPPOSED_FLIPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_jrh.stats.planning import Outlook, Passing, Prospect


_Outlook = TypeVar("_Outlook")
_ROUNDED_FROM = 100
_NEARLY_ALL = 0.995


def prospect_sentences(
    prospects: Sequence[Prospect], *, advise: bool = True, unknown_said: bool = False
) -> Iterator[str]:
    """Say which drop is found, what finds the drop that is asked for, and how often an unchanged
    judge passes `gate.max_drop`; where to `advise`, also what makes it pass.

    What is assumed of runs with several cases is said once. `unknown_said` is that a text says
    already that the flicker is not known.
    """
    for prospect in prospects:
        yield from _of_one(prospect, advise=advise)
    if any(size > 1 for prospect in prospects for size in prospect.suite.sizes):
        yield (
            "This assumes that a change breaks cases of one run together, with a correlation of "
            f"{CORRELATION}."
        )
    if not unknown_said and any(len(prospect.outlooks) > 1 for prospect in prospects):
        yield (
            "How many verdicts flip is not known, as no case was judged more than once "
            "(evaluation_config.repeats)."
        )


def _of_one(prospect: Prospect, *, advise: bool) -> Iterator[str]:
    outlooks = prospect.outlooks
    yield f"{_subject(prospect)}: {_by_flips(outlooks, _visible, _visible_too)}."
    runs = _by_flips(outlooks, _runs, _number)
    yield f"A drop of {_points(prospect.goal)} takes {runs}{_with_repeats(outlooks)}."
    passings = [outlook.passing for outlook in outlooks if outlook.passing is not None]
    if prospect.max_drop is not None and passings:
        shares = _by_flips(passings, _share, _share_too)
        needed = _until_passing(passings) if advise else ""
        yield (
            f"gate.proof of {_points(prospect.max_drop)}: a judge that has not changed passes "
            f"{shares}{needed}."
        )


def _subject(prospect: Prospect) -> str:
    suite = prospect.suite
    parts = [f"{counted(suite.cases, 'case')} from {counted(len(suite.sizes), 'run')}"]
    if suite.repeats > 1:
        parts.append(f"{suite.repeats} repeats")
    if suite.flicker is not None:
        parts.append(f"flicker {percent(suite.flicker)}")
    if names := [one_line(judge) for judge in prospect.judges if judge]:
        return f"{', '.join(names)} ({', '.join(parts)})"
    return ", ".join(parts)


def _by_flips(
    outlooks: Sequence[_Outlook],
    whole: Callable[[_Outlook], str],
    other: Callable[[_Outlook], str],
) -> str:
    """What holds; where the flicker is not known, what would hold with none and with some."""
    first, *others = outlooks
    if all(whole(outlook) == whole(first) for outlook in others):
        return whole(first)
    [second] = others
    return f"{whole(first)} if no verdict flips, {other(second)} if {SUPPOSED_FLIPS[1]:.0%} do"


def _visible(outlook: Outlook) -> str:
    if outlook.visible is None:
        return "no drop is found in 80% of sessions"
    return f"a drop of {_whole_points(outlook.visible)} is found in 80% of sessions"


def _visible_too(outlook: Outlook) -> str:
    return "none" if outlook.visible is None else f"one of {_whole_points(outlook.visible)}"


def _runs(outlook: Outlook) -> str:
    if outlook.runs is None:
        return "more than 100,000 runs"
    return f"about {counted(_rounded(outlook.runs), 'run')} like these"


def _number(outlook: Outlook) -> str:
    return "more than 100,000" if outlook.runs is None else f"about {_rounded(outlook.runs):,}"


def _with_repeats(outlooks: Sequence[Outlook]) -> str:
    runs = outlooks[-1].repeated_runs
    return "" if runs is None else f" ({_rounded(runs):,} with repeats: {MORE_REPEATS})"


def _share(passing: Passing) -> str:
    return f"in {_whole(passing.share)} of sessions"


def _share_too(passing: Passing) -> str:
    return f"in {_whole(passing.share)}"


def _until_passing(passings: Sequence[Passing]) -> str:
    """What would make 80% of it, where it is less."""
    if not any(passing.runs for passing in passings):
        return ""
    needed = [passing.runs for passing in passings]
    *_, last = passings
    runs = " or ".join(f"{_rounded(number):,}" for number in dict.fromkeys(needed) if number)
    repeats = f", or repeats: {last.repeats}" if last.repeats else ""
    return f"; 80% takes {runs} runs like these{repeats}"


def _rounded(number: int) -> int:
    """Two digits of a large number: simulated sessions say no more."""
    return number if number < _ROUNDED_FROM else int(float(f"{number:.2g}"))


def _whole_points(share: float) -> str:
    """Points without decimals, which simulated sessions and a guessed correlation do not give."""
    return _points(max(1, round(100 * share)) / 100)


def _points(share: float) -> str:
    number = f"{100 * share:.1f}".removesuffix(".0")
    return "1 point" if number == "1" else f"{number} points"


def _whole(share: float) -> str:
    if share >= _NEARLY_ALL:
        return "over 99%"
    return f"{share:.0%}" if share >= 1 - _NEARLY_ALL else "under 1%"
