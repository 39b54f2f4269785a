"""A suite as the other packages use it: resolved, validated, frozen; where the files that its
config names are looked for; the commands that run its cases again; and from it and its runs to
these, its case specs.

Which cases a probe has: some of the suite's cases, and for each some of its variants. Both are
drawn by seed. Probes with one seed draw the same cases, so that a judge's verdict on the unchanged
case serves them all; and which are drawn depends on each case alone, so that few change when runs
are added. With `sampling: kept` those come first that were recorded, of runs too.
"""

from __future__ import annotations

import os
import random
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from pytest_jrh.cases.pipeline import Goal
from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.probes.probe import Probe, ProbeSettings, Variant
from pytest_jrh.cases.tests import KINDS, Kind
from pytest_jrh.config.options import Options
from pytest_jrh.config.schema import Config, LabelSection
from pytest_jrh.core import (
    frozen,
    grouped_by,
    nearest,
    printable,
    relative_path,
    short_digest,
    shown,
)
from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.cases import UNSCORED, CaseSpec, Labels, Rubric, RunSummary
from pytest_jrh.core.documents import KeyPath, Mistakes
from pytest_jrh.core.files import exists, remote_hint
from pytest_jrh.core.ids import Recorded, case_name, cassette_path, node_part
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.scales import BINARY, ORDINAL, Mode, Objective, Said, Scale, coded
from pytest_jrh.core.sections import GateRules
from pytest_jrh.judges.judge import JudgeSettings

_CONFIGS = ("inputs", "configs")
_DIGEST = 8

LOG: KeyPath = ("suite", "log")


@frozen
class Places:
    """The folders in which relative paths are tried, in this order, the last one that of the config
    file; all absolute. What is not there is one of the config's `mistakes`.

    `home` is where new files and folders are made; it is known of places that are `settled`.
    """

    cwd: Path
    rootdir: Path
    config_file: Path
    mistakes: Mistakes = field(default_factory=Mistakes)
    home: Path = Path()

    @property
    def bases(self) -> list[Path]:
        """The folders themselves, without repetition."""
        return list(dict.fromkeys((self.cwd, self.rootdir, self.config_file.parent)))

    def settled(self, inputs: Iterable[str]) -> Places:
        """The same places, with new files made where the first of these inputs is found, or else in
        the folder around the config: rootdir, starting folder, or that of `inputs/configs`.
        """
        return replace(self, home=next(self._homes(inputs)))

    def _homes(self, inputs: Iterable[str]) -> Iterator[Path]:
        for relative in inputs:
            for base in (self.cwd, self.rootdir):
                if not Path(relative).is_absolute() and exists(base / relative):
                    yield base
        folder = self.config_file.parent
        for base in (self.rootdir, self.cwd):
            if folder.is_relative_to(base):
                yield base
        if folder.parts[-2:] == _CONFIGS:
            yield folder.parents[1]
        yield folder

    @property
    def key(self) -> str:
        """The config file's name in every clone of the project; empty where it is outside."""
        if not self.config_file.is_relative_to(self.home):
            return ""
        return self.config_file.relative_to(self.home).as_posix()

    def name(self, path: Path) -> str:
        """Name a file relative to the starting folder where it is inside."""
        return str(relative_path(path, self.cwd))

    @property
    def conventional(self) -> bool:
        """Whether the config is where RAND's harness has its configs."""
        return self.config_file.parent == self.home.joinpath(*_CONFIGS)

    @property
    def results(self) -> str:
        """The suite's results folder: `outputs/NAME` for `inputs/configs`, else a folder that
        mirrors the config's place, such as `outputs/examples/prompt/NAME`.
        """
        name, parts = self.config_file.stem, Path(self.key).parts[:-1]
        if not self.key:
            return f"outputs/{name}~{short_digest(self.config_file.as_posix(), _DIGEST)}"
        if self.conventional:
            return f"outputs/{name}"
        if not parts:
            return f"outputs/{self.key}"
        return "/".join(["outputs", *map(node_part, parts), name])

    def case_folders(self, config: Config, *, is_rands: bool) -> dict[str, str]:
        """The folder of each test's cases; RAND's harness has one for each test."""
        folder = None if is_rands and self.conventional else self.results
        makers = [kind for kind in config.tests if not KINDS[kind].derived] or config.tests
        folders = {}
        for kind in config.tests:
            # A probe keeps no cases, and has the folder of the first other test.
            maker = KINDS[makers[0] if KINDS[kind].derived else kind]
            default = folder or maker.folder(config.rand.module or self.config_file.stem)
            folders[kind] = config.output.dir or default
        return folders

    def find_or_new(self, relative: str) -> Path:
        """Return the first place where `relative` exists, else where it is made."""
        return self._find(relative) or self.home / relative

    def _find(self, relative: str) -> Path | None:
        return next((base / relative for base in self.bases if exists(base / relative)), None)

    def file(self, key: KeyPath, relative: str | None, role: str) -> Path | None:
        """Find the file that a key of the config names, if it names one; `role` says what it is."""
        if relative is None:
            return None
        path = self._find(relative)
        if path is None:
            self._miss(relative, key, role)
        elif path.is_dir():
            self.mistakes.add(key, f"{role} {shown(relative)} is a folder, not a file")
            return None
        return path

    def logs(self, names: Sequence[str], *, required: bool) -> Sequence[Path]:
        """Find the logs, which may be absent where the suite is frozen."""
        logs: dict[Path, None] = {}
        for index, relative in enumerate(names):
            place = (*LOG, index) if len(names) > 1 else LOG
            path = self._find(relative)
            if path is not None or not required:
                logs[path or self.home / relative] = None
            elif any(char in relative for char in "*?[") and not remote_hint(relative):
                try:
                    matches = (matching(base, relative) for base in self.bases)
                    paths = next(filter(None, matches), ())
                except ValueError as error:
                    reason = f"cannot be used: {printable(error)}"
                    self.mistakes.add(place, f"the glob {shown(relative)} {reason}")
                    continue
                logs |= dict.fromkeys(paths)
                if not paths:
                    looked = "; ".join(printable(base, 300) for base in self.bases)
                    self.mistakes.add(
                        place, f"the glob {shown(relative)} matches no file in {looked}"
                    )
            else:
                self._miss(relative, place, "the log")
        return [*logs]

    def _miss(self, relative: str, key: KeyPath, role: str) -> None:
        """Say of a file that is nowhere where it was looked for."""
        paths, hint = [base / relative for base in self.bases], remote_hint(relative)
        looked = "; ".join(printable(path, 300) for path in paths)
        message = f"{role} {shown(relative)} does not exist; tried {looked}"
        if hint:
            message = f"{role} {shown(relative)} is not a file on this machine"
            paths = []
        for path in paths:
            names = [entry.name for entry in path.parent.glob("*")]
            if close := nearest(path.name, names):
                hint = f"{printable(self.name(path.parent / close), 300)} exists"
                break
        self.mistakes.add(key, message, hint)


def matching(base: Path, pattern: str) -> Sequence[Path]:
    """What a glob matches below a folder, sorted; hidden files only where it names them."""
    glob = Path(pattern)
    if glob.is_absolute():
        base, pattern = Path(glob.anchor), str(glob.relative_to(glob.anchor))
    paths = base.glob(pattern)
    if not _hidden_parts(glob):
        paths = (path for path in paths if not _hidden_parts(path.relative_to(base)))
    return sorted(paths)


def _hidden_parts(path: Path) -> list[str]:
    return [part for part in path.parts if part.startswith(".") and part not in (".", "..")]


# A suite has one config file, and thousands of cases that are named after it.
@cache
def argument(path: Path, folder: Path) -> str:
    """Name a path for pytest, which takes `@scope/x.yml` for a file of arguments."""
    relative = os.path.relpath(path, folder)
    return os.path.join(".", relative) if relative.startswith(("@", "-")) else relative  # noqa: PTH118


@frozen
class SuiteTest:
    """A test of a suite; `targets` are by rubric id what cases are made for (`Kind.targets`)."""

    name: str
    objective: Objective
    output_dir: Path
    evaluate: bool
    targets: Mapping[str, Sequence[Said | None]]

    @property
    def kind(self) -> Kind:
        """What kind of test it is."""
        return KINDS[self.name]


@frozen
class Suite:
    """What a config file means: its keys in `config`, and what comes of them where files are looked
    for or one key stands in for another.

    Paths are absolute; `logs` is where the runs come from. `key` is the config file's path as
    reports show it, which no other suite of a session has. `rubrics` are the targeted ones, in file
    order (labels of levels are empty where only a range was given).
    `untargeted` are the ids in the rubric file that `cases.rubrics` leaves out. `stages` holds
    planner, editor, summary and verifier, which is missing where it is off. Tables and reports go
    to `results_dir`, made cases to the tests' folders; `frozen` is the JSONL of a frozen suite, or
    None. `blind_labels` is the committed file of them. `probes` are the settings of those of
    `tests` that are probes, by name. `notices` are sentences to print once.
    """

    name: str
    key: str
    config_file: Path
    module_name: str
    mode: Mode
    rubrics: Sequence[Rubric]
    tests: Sequence[SuiteTest]
    judges: Sequence[JudgeSettings]
    config: Config
    logs: Sequence[Path]
    stages: Mapping[str, StageModel]
    cassette_dir: Path
    results_dir: Path
    custom_prompts_dir: Path
    frozen: Path | None = None
    instruction: str = ""
    untargeted: frozenset[str] = frozenset()
    labels: Sequence[LabelSection] = ()
    blind_labels: Path | None = None
    probes: Mapping[str, ProbeSettings] = field(default_factory=dict)
    notices: Sequence[str] = ()

    @property
    def rubric_by_id(self) -> dict[str, Rubric]:
        """Its rubrics by their ids."""
        return {rubric.id: rubric for rubric in self.rubrics}

    @property
    def test_by_name(self) -> dict[str, SuiteTest]:
        """Its tests by their names."""
        return {test.name: test for test in self.tests}

    @property
    def scale(self) -> Scale:
        """What the scales of its rubrics have in common."""
        if self.mode == ORDINAL.name:
            return ORDINAL
        return self.rubrics[0].scale.kind if self.rubrics else BINARY

    @property
    def prompt_mode(self) -> Mode:
        """Which built-in prompts it has: those of classes where any answer is a word, and those
        that show levels where its two have names.
        """
        if self.scale.orders or any(
            rubric.classes or rubric.not_applicable for rubric in self.rubrics
        ):
            return "classes"
        return ORDINAL.name if any(rubric.scale.levels for rubric in self.rubrics) else self.mode

    @property
    def gate(self) -> GateRules:
        """When a session fails."""
        return self.config.gate

    @property
    def judges_unlabelled(self) -> bool:
        """Whether natural runs without a label are judged, too."""
        is_binary = self.mode == BINARY.name
        return is_binary and any(section.unlabelled for section in self.labels)

    @property
    def one_cassette(self) -> bool:
        """Whether the calls of all cases of a test and rubric are kept in one cassette."""
        return self.config.suite.of != "runs"

    def repeats_of(self, spec: CaseSpec) -> int:
        """How often a judge judges a case; a lone judge has no name."""
        of_rands = self.config.rand.tests.get(spec.test)
        [repeats] = (entry.repeats for entry in self.judges if entry.name == (spec.judge or None))
        repeats *= self.scale.orders or 1
        return repeats if of_rands is None else max(repeats, of_rands.seeds * of_rands.repetitions)

    def verdicts_at(self, spec: CaseSpec) -> Path:
        """Where the calls of a case's judge are recorded."""
        together = any(judge.rubrics for judge in self.judges if judge.name == spec.judge)
        return cassette_path(self.cassette_dir, spec, judging=True, together=together)


@frozen
class Commands:
    """The commands that run cases of suites again, from the folder that pytest was started in.

    `selection` is what selects cases, such as `-k refund`.
    """

    options: Options
    folder: Path
    suite_named: Callable[[str], Suite]
    selection: Sequence[str] = ()

    def node(self, spec: CaseSpec) -> str:
        """The case as an argument of pytest."""
        path = argument(self.suite_named(spec.suite).config_file, self.folder)
        return "::".join([path, spec.test, node_part(spec.rubric_id), case_name(spec)])

    def rerun(self, spec: CaseSpec, extra: Sequence[str] = ()) -> str:
        """The command that runs this case again, as it was run here but for `extra` options."""
        options = self._chosen([self.suite_named(spec.suite)])
        return shlex.join(["pytest", *options, *extra, self.node(spec)])

    def again(self, spec: CaseSpec, result: CaseResult) -> str:
        """The command that runs this case again, and makes the calls that it lacks."""
        outcome = UNSCORED.get(result.outcome)
        if outcome is None or not outcome.unanswered:
            return self.rerun(spec)
        # Of a case that a judge was asked about, its verdict alone.
        modes = _VERDICTS if result.judge_digest else _ALL_CALLS
        return self.rerun(spec, [*modes, *self._limits])

    def record_all(self, suites: Iterable[Suite], results: Iterable[CaseResult]) -> str:
        """One command for all that is unrecorded, which asks nothing else; empty where nothing is.

        Where the cases are there and only verdicts are missing, as after a change of the judge's
        prompt, the cases are left as they are.
        """
        # What an answer means may have changed since, and then it is asked for in another way.
        missing = [result for result in results if result.outcome in _TO_RECORD]
        if not missing:
            return ""
        names = {result.suite for result in missing}
        modes = _VERDICTS if all(result.judge_digest for result in missing) else _ALL_CALLS
        of_missing = [suite for suite in suites if suite.name in names]
        again = []
        if all(result.outcome != "unrecorded" for result in missing):
            # A mode that records makes calls that are missing, and these are there.
            again = ["--jrh-retry-unscored"]
        return self.run_all(of_missing, [*modes, *again, *self._limits, *self.selection])

    def update_baseline(self, suite: Suite) -> str:
        """The command that takes the suite's verdicts over into the baseline."""
        return self.run_all([suite], ["--jrh-update-baseline", *self.selection])

    @property
    def _limits(self) -> list[str]:
        """The user's limits, which what is run next keeps."""
        limits = []
        for name in ("max_cost", "max_calls"):
            limit = getattr(self.options, name)
            if limit is not None:
                limits.append(f"--jrh-{name.replace('_', '-')}={limit}")
        return limits

    def run_all(self, suites: Sequence[Suite], extra: Sequence[str]) -> str:
        """The command that runs suites with `extra` options."""
        command = ["pytest", *self._chosen(suites), *extra]
        baseline = self.options.baseline
        if baseline is not None and not exists(baseline):
            # This session was to write it, and did not.
            command += [
                f"--jrh-baseline={argument(baseline, self.folder)}",
                "--jrh-update-baseline",
            ]
        for suite in suites:
            # What `--jrh-config` names is among the options already.
            if suite.config_file not in self.options.configs:
                command.append(argument(suite.config_file, self.folder))
        return shlex.join(command)

    def _chosen(self, suites: Sequence[Suite]) -> list[str]:
        chosen = []
        for suite in suites:
            if suite.config_file in self.options.configs:
                chosen.append(f"--jrh-config={argument(suite.config_file, self.folder)}")
        if self.options.frozen:
            chosen.append("--jrh-frozen")
        baseline = self.options.baseline
        if baseline is not None and exists(baseline):
            chosen.append(f"--jrh-baseline={argument(baseline, self.folder)}")
        return chosen


_TO_RECORD = ("unrecorded", "invalid_response")
_ALL_CALLS = ["--jrh-record-mode=new_episodes"]
_VERDICTS = ["--jrh-record-mode=none", "--jrh-judge-record-mode=new_episodes"]


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
