"""From a suite and its runs to case specs, and the probes that the suite's config names, checked.

Which cases a probe has: some of the suite's cases, and for each some of its variants.

Both are drawn by seed. Probes with one seed draw the same cases, so that a judge's verdict on the
unchanged case serves them all; and which are drawn depends on each case alone, so that few change
when runs are added. With `sampling: kept` those come first that were recorded, of runs too.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pytest_jrh.cases.pipeline import Goal
from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.probes.probe import Probe, ProbeSettings, Variant
from pytest_jrh.cases.tests import BASES, BY_KEY, KINDS
from pytest_jrh.config.rand import KINDS_KEY, Converted
from pytest_jrh.config.schema import Config, ProbeSection
from pytest_jrh.config.suite import Suite
from pytest_jrh.core import grouped_by
from pytest_jrh.core.cases import CaseSpec, Labels, RunSummary
from pytest_jrh.core.documents import KeyPath, listed, shown
from pytest_jrh.core.ids import Recorded, short_digest
from pytest_jrh.core.scales import Mode, coded
from pytest_jrh.core.text import nearest_hint


def with_probes(
    suite: Suite,
    specs: Iterable[CaseSpec],
    labels: Labels | None = None,
    recorded: Recorded | None = None,
) -> Iterator[CaseSpec]:
    """Add the cases of the suite's probes to those of its other tests, each test in its place and
    each case under all judges; with `labels`, those of natural runs, to none without one. Those
    that were `recorded` are kept.
    """
    by_test = grouped_by(specs, "test")
    for test in suite.tests:
        of_test = by_test.get(test.name, [])
        if test.kind.derived:
            settings = suite.probes[test.name]
            bases = []
            skipped = {rubric.id for rubric in suite.rubrics if test.name in rubric.skips}
            for name in settings.of:
                known_labels = labels if KINDS[name].is_labelled else None
                for spec in by_test.get(name, ()):
                    is_known = known_labels is None or spec.label_key in known_labels
                    if is_known and spec.skip is None and spec.rubric_id not in skipped:
                        bases.append(spec)
            kept = None if recorded is None else recorded.variants_by_case(test.name, bases)
            picked = drawn(bases, chosen(PROBES[test.name], settings.names), settings, kept)
            # By rubric, as those of other tests are.
            for rubric in suite.rubrics:
                for base, variants in picked.items():
                    for variant in variants if base.rubric_id == rubric.id else ():
                        spec = replace(base, test=test.name, base=base.test, variant=variant.name)
                        of_test.append(spec)
        judges = [judge.name for judge in suite.judges] if test.evaluate else [None]
        for spec in of_test:
            yield from (replace(spec, judge=judge) for judge in judges)


def chosen(probe: Probe, names: Collection[str]) -> list[Variant]:
    """The variants of these names, or with such a part, in the order of the probe's tables; without
    names all.
    """
    variants = []
    for variant in probe.variants():
        if not names or {variant.name, *variant.axes}.intersection(names):
            variants.append(variant)
    return variants


def drawn(
    bases: Sequence[CaseSpec],
    variants: Sequence[Variant],
    settings: ProbeSettings,
    kept: Mapping[CaseSpec, frozenset[str]] | None = None,
) -> dict[CaseSpec, tuple[Variant, ...]]:
    """Draw cases, and for each of them variants, of which all come equally often, give or take one.

    Cases and the variants of each are in the order in which they were given. With `kept`, the names
    of those that cases have had, these cases are drawn first and have them again; all others have
    variants that no other case decides, which come equally often on average.
    """

    def precedence(spec: CaseSpec) -> tuple[bool, str]:
        return kept is not None and spec not in kept, _rank(settings.seed, spec)

    ranked = sorted(bases, key=precedence)[: settings.max_cases]
    # One order for all, dealt in turn: that is what keeps the numbers equal.
    order = list(range(len(variants)))
    random.Random(settings.seed).shuffle(order)  # noqa: S311 - reproducible, not secret
    number = min(settings.per_case, len(order))
    picked = {}
    for rank, spec in enumerate(ranked):
        start, kept_names = rank * number, frozenset[str]()
        if kept is not None:
            kept_names = kept.get(spec, kept_names)
            start = int(_rank(settings.seed, spec)[-8:], 16)
        dealt = [order[(start + turn) % len(order)] for turn in range(len(order))]
        dealt.sort(key=lambda index: variants[index].name not in kept_names)
        picked[spec] = tuple(map(variants.__getitem__, sorted(dealt[:number])))
    return {spec: picked[spec] for spec in bases if spec in picked}


def _rank(seed: int, spec: CaseSpec) -> str:
    return short_digest(
        repr((seed, spec.test, spec.rubric_id, spec.run_id, spec.epoch, spec.target_score)), 64
    )


def resolve_probes(config: Config, mode: Mode, converted: Converted) -> dict[str, ProbeSettings]:
    """Return the settings of the probes that run; one without possible cases is refused."""
    all_settings = {}
    kinds, texts = config.tests, config.cases.probes
    for index, name in enumerate(dict.fromkeys(kinds)):
        if name in texts and (name in KINDS or name in BY_KEY):
            message = f"got {shown(name)}, which is the name of another test"
            converted.mistakes.add(("cases", "probes", name), message, "choose another name")
            continue
        if not KINDS[name].derived:
            continue
        probe = PROBES[name]
        key: KeyPath = (*KINDS_KEY, index)
        place: KeyPath = ("probes", name)
        section = texts.get(name) or config.probes.get(name, ProbeSection.model_construct())
        if name in texts:
            key = place = ("cases", "probes", name)
        changeable = []
        for test in BASES:
            can_violate = KINDS[test].objective(config.rand.objective) == "fail"
            if probe.changes == "edited":
                can_violate = can_violate and KINDS[test].is_made
            if can_violate or probe.changes == "all":
                changeable.append(test)
        bases = [test for test in kinds if test in changeable]
        if not bases:
            message = f"{name} changes the cases of {_CHANGES[probe.changes]}, but there is none"
            hint = f"add {' or '.join(map(converted.kind, changeable))}"
            converted.mistakes.add(key, message, hint)
        elif mode != "binary" and (probe.binary_only or section.variants == ("flip",)):
            where = "on a scale" if mode == "ordinal" else "of classes"
            message = f"{name} is for binary suites: {where} it would have no case"
            converted.mistakes.add(key, message, f"remove {name}")
        for number, test in enumerate(section.of):
            if test not in bases and bases:
                names_of_bases = listed(map(converted.kind, bases))
                test_name = converted.kind(test)
                message = (
                    f"got {shown(test_name)}; the tests that {name} can change are {names_of_bases}"
                )
                hint = f"add {test_name} to {converted.name(KINDS_KEY)}"
                converted.mistakes.add((*place, "of", number), message, hint)
        names: dict[str, None] = {}
        for variant in probe.variants():
            names |= dict.fromkeys((variant.name, *variant.axes))
        parts = () if section.variants == ("all",) else section.variants
        for number, part in enumerate(parts):
            if part not in names:
                message = f"got {shown(part)}; the variants of {name} are {listed(names, 40)}"
                close = nearest_hint(part, names, "name")
                converted.mistakes.add((*place, "variants", number), message, close)
        per_case = len(chosen(probe, parts))
        all_settings[name] = ProbeSettings(
            of=section.of or tuple(bases),
            names=parts,
            max_cases=section.max_cases,
            instruction=texts[name].instruction if name in texts else "",
            per_case=per_case if section.variants else min(per_case, probe.per_case),
        )
    return all_settings


_CHANGES = {
    "all": "other tests",
    "failing": "tests whose rubrics are violated",
    "edited": "tests with edits that violate a rubric",
}


T = TypeVar("T")


def expand(
    suite: Suite,
    runs: Sequence[RunSummary],
    labels: Labels,
    recorded: Recorded | None = None,
) -> Iterator[CaseSpec]:
    """Yield the suite's specs by test, rubric, run, target score, variant and judge; what was
    `recorded` is drawn first.
    """
    of_labels = {(run_id, epoch) for _, run_id, epoch in labels}
    labelled_runs = [run for run in runs if run.key in of_labels]
    unlabelled_runs = [run for run in runs if run.key not in of_labels]
    specs = []
    for test in suite.tests:
        kind, of_rands = test.kind, suite.config.rand.tests.get(test.name)
        flips = kind.flips or (suite.config.cases.flip and kind.is_made)
        of_labelled = kind.is_labelled or flips
        if of_rands is not None:
            rows = drawn_rows(len(runs), of_rands.rows, again=of_rands.again)
            sampled = [runs[row] for row in dict.fromkeys(rows)]
        else:
            sampled = _drawn_runs(suite, labelled_runs if of_labelled else runs, recorded)
        judges_unlabelled = suite.judges_unlabelled and kind.is_labelled and test.evaluate
        if judges_unlabelled:
            # Apart, so that the same labelled runs are drawn as without them.
            sampled += _drawn_runs(suite, unlabelled_runs, recorded)
        for rubric in suite.rubrics:
            for run in sampled:
                label = labels.get((rubric.id, *run.key))
                targets = test.targets[rubric.id]
                if flips:
                    value = None if label is None else label.value
                    targets = tuple(
                        target
                        for target in targets
                        if value not in (None, Goal(test.objective, coded(target)).expected(rubric))
                    )
                planned_cases = kind.cases(targets, label, rubric.scale)
                if judges_unlabelled and label is None:
                    planned_cases = [(None, None)]
                for target_score, skip in planned_cases:
                    specs.append(
                        CaseSpec(
                            suite.name,
                            test.name,
                            rubric.id,
                            run.run_id,
                            run.epoch,
                            target_score,
                            skip=run.skip or skip,
                            cluster=run.cluster,
                        )
                    )
    return with_probes(suite, specs, labels, recorded)


def _drawn_runs(
    suite: Suite, runs: Sequence[RunSummary], recorded: Recorded | None
) -> list[RunSummary]:
    number, seed = suite.config.cases.sample, suite.config.cases.seed
    if suite.config.cases.sampling == "rand":
        return sample(runs, number, seed)
    return kept_sample(runs, number, seed, recorded)


def sample(runs: Sequence[T], number: int | None, seed: int) -> list[T]:
    """Pick so many runs, in log order: those that RAND's harness picks for this number and seed."""
    if number is None or not 0 < number < len(runs):
        return list(runs)
    picked = random.Random(seed).sample(range(len(runs)), number)  # noqa: S311 - reproducible, not secret
    return [runs[index] for index in sorted(picked)]


def kept_sample(
    runs: Sequence[RunSummary], number: int, seed: int, recorded: Recorded | None = None
) -> list[RunSummary]:
    """Pick the runs with the smallest digests, those that were `recorded` first: a run that is
    added replaces one at most.
    """

    def precedence(run: RunSummary) -> tuple[bool, str]:
        is_new = recorded is not None and not recorded.has_run(*run.key)
        return is_new, short_digest(repr((seed, *run.key)), 64)

    if not number:
        return list(runs)
    picked = set(sorted(runs, key=precedence)[:number])
    return [run for run in runs if run in picked]


_RANDS_SEED = 8234


def drawn_rows(total: int, number: int, *, again: bool = False) -> list[int]:
    """So many of the numbers from 0 to `total`, in the order in which they are drawn, all for 0;
    `again` draws with replacement.

    RAND draws by pandas, which asks numpy's legacy generator, and always with one seed, whatever
    seed the config names.
    """
    # Late: only a config of RAND's draws like this.
    import numpy as np

    if number <= 0:
        return list(range(total))
    size = number if again else min(number, total)
    rows: list[int] = np.random.RandomState(_RANDS_SEED).choice(total, size, replace=again).tolist()
    return rows
