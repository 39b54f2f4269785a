"""Putting the shards of a suite together: results and made cases of several machines, as if one had run them all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_jrh.errors import InputError, Problem
from pytest_jrh.loading import ReadySuite
from pytest_jrh.models import UNSCORED, CaseResult
from pytest_jrh.redact import Redactor, secrets_of
from pytest_jrh.results.artifacts import JSONL_NAME, write_suite_outputs
from pytest_jrh.results.baseline import Scope
from pytest_jrh.results.gate import decide
from pytest_jrh.results.session import gather
from pytest_jrh.results.stored import RESULTS_NAME, read_results
from pytest_jrh.results.terminal import session_lines
from pytest_jrh.suite.cases import case_id


@dataclass(frozen=True, slots=True)
class Merged:
    """What came of a merge: lines to print, and the cases that no shard reported."""

    lines: tuple[str, ...]
    missing: tuple[str, ...]
    bad: int

    @property
    def passed(self) -> bool:
        """Whether every case of the suite was reported, and none was judged wrong or went without a verdict."""
        return not self.missing and not self.bad


def merge(ready: ReadySuite, folders: Sequence[Path], *, width: int = 80) -> Merged:
    """Merge what the shards left in these folders, and write the suite's files from it.

    Every `case_results.jsonl` and `agent_perturbations.jsonl` below a folder counts; of a case that
    several shards ran, the last one named. Raises `InputError` for a folder that holds no results.
    """
    results: dict[str, CaseResult] = {}
    records: list[Path] = []
    for folder in folders:
        found = sorted(folder.rglob(RESULTS_NAME))
        if not found:
            raise InputError(
                Problem(
                    f"no {RESULTS_NAME} is in this folder or below it",
                    str(folder),
                    hint="Name the `outputs` folder that a shard's run has written.",
                )
            )
        for path in found:
            results |= {result.case_id: result for result in read_results(path) if result.suite == ready.suite.name}
        records += sorted(folder.rglob(JSONL_NAME))
    specs = list(ready.specs())
    ordered = [results[case_id(spec)] for spec in specs if case_id(spec) in results]
    suite = ready.suite
    # What no shard reported is named once, below.
    scope = Scope.of(map(case_id, specs), (result.case_id for result in ordered))
    decision = decide(ordered, None, suite.gate, scope, suite.sampling_seed)
    told = gather(
        ordered,
        suite.sampling_seed,
        rubrics={(suite.name, rubric.id): rubric for rubric in suite.rubrics},
        decisions={suite.name: decision},
    )
    written = write_suite_outputs(
        suite, specs, ordered, records, redactor=Redactor(secrets_of(os.environ)), decision=decision
    )
    missing = tuple(case_id(spec) for spec in specs if case_id(spec) not in results)
    lines = [line.text for line in session_lines(told, width=width)]
    lines += [f"note: {problem}" for problem in written.problems]
    lines += _missing_lines(missing)
    bad = int(not decision.passed) if decision.active else _bad(ordered)
    return Merged(tuple(lines), missing, bad)


def _bad(results: Iterable[CaseResult]) -> int:
    return sum(result.outcome == "disagree" or result.outcome in UNSCORED for result in results)


def _missing_lines(missing: Sequence[str], most: int = 20) -> list[str]:
    if not missing:
        return []
    shown = [f"  {name}" for name in missing[:most]]
    more = [f"  ... and {len(missing) - most} more"] if len(missing) > most else []
    return [f"No shard reported {len(missing)} of the suite's cases:", *shown, *more]
