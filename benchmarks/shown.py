"""Whether it is said right what a judge was shown: judges that send a part of real and generated
transcripts, in many layouts, with one edit in each.

Reads `../shared/data`, and takes generated transcripts alone where that is absent.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from pathlib import Path

from benchmarks.measure import Line
from pytest_jrh.core.cases import Message
from pytest_jrh.core.sections import InputFormat
from pytest_jrh.recording.shown import shown_turns
from pytest_jrh.sources import open_source
from tests.support.shown import (
    LAYOUTS,
    SENDS,
    EditedCase,
    Judge,
    cut,
    edited_case,
    generated_runs,
    without_results,
)

_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
_FORMAT = InputFormat.model_validate({"messages": "/traj", "id": "/task_id", "epoch": "/trial"})
_RUNS = ("tau-bench/gpt-4o-airline.json", "agentrx/tau_retail_runs.json")

_CASES = 100
_AT_LEAST = 98


_JUDGES = {"that cuts": cut, "without tool results": without_results}


def lines() -> list[Line]:
    """Of each judge how often the state of an edit is told right, and how often wrong."""
    sets: dict[str, Iterable[Sequence[Message]]] = {"generated": generated_runs(_CASES)}
    if _DATA.is_dir():
        runs = list(_real_runs())
        random.Random(8234).shuffle(runs)
        sets["real"] = islice(runs, _CASES)
    return [line for name, runs in sets.items() for line in _lines(name, runs)]


def _lines(name: str, runs: Iterable[Sequence[Message]]) -> Iterator[Line]:
    cases = []
    for seed, messages in enumerate(runs):
        cases.append(edited_case(messages, seed))
    for judge, asked in _JUDGES.items():
        told = _told(cases, asked)
        total = told.total()
        share = 100 * told["right"] / total
        figure = f"{share:.1f}%: {told['right']:,} of {total:,}, {told['wrong']:,} wrong"
        what = f"shown: a judge {judge}, {len(cases)} {name} cases"
        yield Line(what, figure, f"at least {_AT_LEAST}%", _AT_LEAST / (share or 1), 1)


def _told(cases: Iterable[EditedCase], judge: Judge) -> Counter[str]:
    told: Counter[str] = Counter()
    for edited, layout, send in product(cases, LAYOUTS, SENDS):
        sending = judge(edited, layout, send)
        turns = shown_turns(edited.case, sending.sent)
        if turns.unknown:
            told["unknown"] += 1
        else:
            told["right" if sending.holds_edit == (not turns.missing) else "wrong"] += 1
    return told


def _real_runs() -> Iterator[tuple[Message, ...]]:
    """The transcripts of the shared data, in turn from each of its files."""
    for name in _RUNS:
        source = open_source(_DATA / name, input_format=_FORMAT)
        for summary in source.summaries():
            if summary.skip is None:
                yield source.read(*summary.key)[0].messages
