"""From a suite and its runs to case specs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from pytest_jrh.cases.ids import short_digest
from pytest_jrh.cases.tests import KINDS
from pytest_jrh.config.probes import with_probes
from pytest_jrh.config.suite import Suite
from pytest_jrh.core.kinds import Subject
from pytest_jrh.core.model import CaseSpec, Label, RunSummary

T = TypeVar("T")


def expand(
    suite: Suite,
    runs: Sequence[RunSummary],
    labels: Mapping[tuple[str, str, int], Label] | None = None,
) -> Iterator[CaseSpec]:
    """Yield the suite's specs in collection order: test, rubric, run, target score, variant, judge.

    `labels` are those of runs as they are, by rubric id, run id and epoch.
    """
    return with_probes(suite, _of_runs(suite, runs, labels or {}))


def _of_runs(
    suite: Suite, runs: Sequence[RunSummary], labels: Mapping[tuple[str, str, int], Label]
) -> Iterator[CaseSpec]:
    labelled = {(run_id, epoch) for _, run_id, epoch in labels}
    for test in suite.tests:
        kind = KINDS[test.name]
        eligible = [run for run in runs if not kind.natural or (run.run_id, run.epoch) in labelled]
        draw = stable_sample if suite.generation.sampling == "stable" else sample
        sampled = draw(eligible, suite.source.sample_num, suite.source.sampling_seed)
        judges = [judge.name for judge in suite.judges] if test.evaluate else [None]
        for rubric in suite.rubrics:
            for run in sampled:
                label = labels.get((rubric.id, run.run_id, run.epoch))
                for planned in kind.cases(Subject(test.targets[rubric.id], label)):
                    for judge in judges:
                        yield CaseSpec(
                            suite.name,
                            test.name,
                            rubric.id,
                            run.run_id,
                            run.epoch,
                            planned.target_score,
                            judge,
                            run.skip or planned.skip,
                            cluster=run.cluster,
                        )


def sample(runs: Sequence[T], number: int | None, seed: int) -> list[T]:
    """Pick the runs that RAND's harness picks for this number and seed, in log order."""
    if number is None or number <= 0 or number >= len(runs):
        return list(runs)
    picked = sorted(random.Random(seed).sample(range(len(runs)), number))  # noqa: S311 - reproducible, not secret
    return [runs[index] for index in picked]


def stable_sample(runs: Sequence[RunSummary], number: int | None, seed: int) -> list[RunSummary]:
    """Pick the runs whose ids have the smallest digests with this seed, in log order.

    Each run has the same chance, whatever others there are: a run that is added takes the place of
    one at most, and a greater number picks the same runs and more.
    """
    if number is None or number <= 0 or number >= len(runs):
        return list(runs)

    def digest(index: int) -> str:
        run = runs[index]
        return short_digest(repr((seed, run.run_id, run.epoch)), 64)

    return [runs[index] for index in sorted(sorted(range(len(runs)), key=digest)[:number])]
