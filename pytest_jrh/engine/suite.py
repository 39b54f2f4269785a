"""A suite made ready to run: config, rubrics, log, prompts and preprocessors, all checked before
any call; and the suites of a session, of which none shares its places with another.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

from pytest_jrh.cases.acts import Tool
from pytest_jrh.cases.tests import KINDS
from pytest_jrh.config.load import fit, load_suite
from pytest_jrh.config.options import Options
from pytest_jrh.config.suite import Places, Suite, SuiteTest, expand, with_probes
from pytest_jrh.core import (
    Fields,
    InputError,
    Problem,
    absolute,
    collecting,
    counted,
    frozen,
    grouped_by,
    listed,
    printable,
    short_digest,
)
from pytest_jrh.core.calls import RecordMode
from pytest_jrh.core.cases import (
    AgentRun,
    Case,
    CaseSpec,
    Label,
    Labels,
    Messages,
    NoVerdictCase,
    PerturbationOutcome,
    Preprocessor,
    RunKey,
    RunSummary,
    Slices,
    Unscored,
)
from pytest_jrh.core.documents import KeyPath, dotted, read_document
from pytest_jrh.core.foreign_code import loading_for_replay
from pytest_jrh.core.ids import Recorded, case_id, former_cassettes
from pytest_jrh.core.scales import coded
from pytest_jrh.core.transcript import CONTEXT_ID, answer_parts, assistant_indices
from pytest_jrh.engine.library import Pipeline, build_pipeline
from pytest_jrh.judges import JUDGES
from pytest_jrh.judges.judge import Function, PromptJudge, SuiteJudge
from pytest_jrh.judges.own_code import ADVICE_ON_CREDENTIALS, OwnCodeJudge, asks_for_credentials
from pytest_jrh.judges.python import supplied_judge
from pytest_jrh.people import DecisionStore, Grounds, grounds_of
from pytest_jrh.people.labels import PersonLabel, find_labels, label_fields, read_people
from pytest_jrh.recording.cassettes import cassettes_in
from pytest_jrh.sources.answers import systems_in
from pytest_jrh.sources.columns import run_slices
from pytest_jrh.sources.source import Source, with_clusters
from pytest_jrh.store.made_cases import (
    RecordIndex,
    SuiteCases,
    case_of,
    clustered,
    fields_of_runs,
    made_before,
    refuse_misfit,
    rejected_results,
    without_cases,
)


@dataclass(frozen=True)
class ReadySuite:
    """A suite with everything that running it needs, but the way to the models.

    A frozen suite has no source, and makes no case, so it has no pipelines either. `made` holds by
    test the cases that are taken as they are on disk; `labels` are those of runs as they are, in a
    frozen suite those of its cases.
    """

    suite: Suite
    source: Source | None
    pipelines: Mapping[str, Pipeline]
    judges: Mapping[str | None, SuiteJudge]
    preprocessors: Sequence[Preprocessor]
    made: Mapping[str, RecordIndex]
    labels: Labels = field(default_factory=dict)
    people: tuple[PersonLabel, ...] = ()
    slices: Mapping[RunKey, Slices] = field(default_factory=dict)
    systems: Mapping[RunKey, tuple[str, ...]] = field(default_factory=dict)
    recorded: Recorded | None = None
    """What had a recording when the suite was loaded, where `sampling: kept` draws it first."""

    @cached_property
    def runs(self) -> Sequence[RunSummary]:
        """The runs of the source, from its summaries."""
        key = self.suite.config.cases.cluster
        if self.source is None:
            return ()
        if key is None:
            return self.source.summaries()
        return with_clusters(self.source, key)

    @property
    def notices(self) -> Sequence[str]:
        """Sentences that the user should read once: of the config, and of the runs read so far."""
        of_source = self.source.notices() if self.source is not None else ()
        return (*self.suite.notices, *(f"{self.suite.name}: {notice}" for notice in of_source))

    def noting(self, notices: Iterable[str], **changes: Any) -> ReadySuite:
        """The same with more notices of the suite, and with other changes."""
        return replace(
            self, suite=replace(self.suite, notices=(*self.suite.notices, *notices)), **changes
        )

    @cached_property
    def judge_fingerprints(self) -> Mapping[str | None, str]:
        """By judge, what says that two sessions asked the same judge."""
        return {name: judge.fingerprint for name, judge in self.judges.items()}

    @cached_property
    def former_cassettes(self) -> Callable[[CaseSpec], list[Path]]:
        """Where a judge may have recorded a case under another name."""
        return former_cassettes(
            self.suite.verdicts_at, self.judges, partial(cassettes_in, self.suite.cassette_dir)
        )

    def specs(self) -> Iterator[CaseSpec]:
        """Every case of the suite, in collection order."""
        if self.suite.frozen is not None:
            return specs_of(self.frozen_cases, self.suite, self.recorded)
        return expand(self.suite, self.runs, self.labels, self.recorded)

    @cached_property
    def bases(self) -> frozenset[CaseSpec]:
        """The cases that probes change, with the judges that are asked about them."""
        if not self.suite.probes:
            return frozenset()
        return frozenset(spec.base_case for spec in self.specs() if spec.variant)

    def cases(self) -> SuiteCases:
        """All cases as they are now."""
        runs = None
        if self.source is not None:
            runs = frozenset(run.key for run in self.runs)
        return SuiteCases(
            {case_id(spec): spec for spec in self.specs()}, self.judge_fingerprints, runs
        )

    @property
    def frozen_cases(self) -> RecordIndex:
        """Where the cases of a frozen suite lie."""
        return next(iter(self.made.values()))

    def made_before(self, spec: CaseSpec) -> Case | None:
        """The case as it is on disk, if it is; raises `InputError` where it cannot be used."""
        index, frozen = self.made.get(spec.test), self.suite.frozen is not None
        # A labelled run is read, not made, and its label may have changed.
        if index is None or (KINDS[spec.test].is_labelled and not frozen):
            return None
        return case_of(index, spec, self.suite.rubric_by_id[spec.rubric_id], rewording=frozen)

    @cached_property
    def grounds(self) -> Grounds:
        """What the labels of its cases rest on."""
        rejected = rejected_results(self.suite) if self.people else ()
        clusters = {run.key: run.cluster for run in self.runs}
        return grounds_of(self.suite, self.judges, self.labels, self.people, rejected, clusters)

    def test(self, spec: CaseSpec) -> SuiteTest:
        """The test of a case."""
        return self.suite.test_by_name[spec.test]

    def label(self, spec: CaseSpec) -> Label | None:
        """The label of the run of a case, under its rubric; None where it has none."""
        return self.labels.get(spec.label_key)

    def examples(self, spec: CaseSpec) -> list[CaseSpec]:
        """Cases of other runs, whose label is the score that a case is made for, drawn by seed."""
        cases, found = self.suite.config.cases, []
        for key, label in self.labels.items() if cases.examples else ():
            other = replace(spec, run_id=key[1], epoch=key[2])
            has_score = other.label_key == key and label.value == coded(spec.target_score)
            if has_score and other.run_id != spec.run_id:
                found.append(other)
        found.sort(key=lambda other: short_digest(repr((cases.seed, other.label_key))))
        return found[: cases.examples]

    def is_unlabelled(self, spec: CaseSpec) -> bool:
        """Whether the case is one of a run that is judged without a label."""
        is_unmade = KINDS[spec.test].is_labelled
        return is_unmade and self.label(spec) is None and self.suite.judges_unlabelled

    def read(self, spec: CaseSpec) -> AgentRun:
        """Read a case's run and preprocess it; raises `Unscored` (input_error) where that fails."""
        assert self.source is not None
        return self.without_labels(self.source.run((spec.run_id, spec.epoch), self.preprocessors))

    def without_labels(self, run: AgentRun) -> AgentRun:
        """The run without the fields of its metadata that hold labels: a judge may be code that
        reads the metadata.
        """
        fields = label_fields(self.suite, run.metadata)
        if not fields:
            return run
        return replace(
            run,
            metadata={name: value for name, value in run.metadata.items() if name not in fields},
        )

    def labelled_case(self, spec: CaseSpec, run: AgentRun) -> Case:
        """The run as it is, with its label as the expected answer; raises `NoVerdictCase`."""
        label = self.label(spec)
        if label is not None and label.value is None:
            raise NoVerdictCase("disputed_label", label.dispute)
        if not assistant_indices(run.messages):
            raise NoVerdictCase("no_assistant_turn")
        return Case(
            spec=spec,
            rubric=self.suite.rubric_by_id[spec.rubric_id],
            run=run,
            outcome=PerturbationOutcome(run.messages, confirmed=label is not None),
            expected=None if label is None else label.value,
            verified=label is not None,
            objective=self.test(spec).objective,
            label=label,
        )

    def held_to_label(self, case: Case) -> Case:
        """The case; raises `NoVerdictCase` where it is made of a run that nothing was changed in,
        and the run has a label which says something else.
        """
        label = self.label(case.spec)
        is_changed = case.messages != case.run.messages or case.review is not None
        if KINDS[case.spec.test].is_labelled or is_changed or label is None:
            return case
        if label.value is None:
            raise NoVerdictCase("disputed_label", label.dispute)
        if label.value != case.expected:
            word = case.scale.word(label.value)
            places = listed((source.place for source in label.sources), 3)
            raise NoVerdictCase(
                "not_confirmed",
                f"not confirmed: nothing was edited, and the label is {word} ({places})",
            )
        return case

    @cached_property
    def tools(self) -> list[dict[str, Tool]]:
        """The tools of the whole log, whatever is selected, and of the log as it was before."""
        from pytest_jrh.cases.act_edits import tools_in_time

        def transcripts() -> Iterator[Messages]:
            assert self.source is not None
            for summary in self.runs:
                try:
                    run = self.source.run(summary.key, self.preprocessors)
                except Unscored:
                    continue
                yield run.messages

        return tools_in_time(transcripts())


def make_ready(
    path: Path,
    *,
    cwd: Path,
    rootdir: Path,
    frozen: bool = False,
    judge: Function | None = None,
    records: Callable[[Suite], bool] = lambda _suite: False,
) -> ReadySuite:
    """Load a config and check everything it names; `judge` is code in place of its judge.

    `records` says whether a suite's judges may be asked, and their code may reach the network.

    Raises `InputError` with every problem of config and rubrics, else of all that they name.
    """
    suite = load_suite(path, cwd=cwd, rootdir=rootdir, frozen=frozen, own_judge=judge is not None)
    places = Places(cwd, rootdir, path)
    _refuse_closed_folders(suite)
    problems: list[Problem] = []

    # What makes and judges its cases.
    judges = _judges(suite, judge, problems, records=records(suite))
    made = {}
    with collecting(problems):
        made = made_before(suite)
    pipelines = {}
    for test in suite.tests:
        is_kept = suite.frozen is not None and not test.kind.derived
        if test.kind.stages and not is_kept:
            pipelines[test.name] = build_pipeline(suite, test, problems)
    source: Source | None = None
    preprocessors = []
    if suite.frozen is None:
        # A frozen suite has no log, and is spared these imports.
        from pytest_jrh.config.preprocessors import preprocessor_named
        from pytest_jrh.sources import open_sources

        for name in suite.config.cases.preprocess:
            with collecting(problems):
                preprocessors.append(preprocessor_named(name))
        with collecting(problems):
            of = suite.config.suite
            source = open_sources(suite.logs, input_format=of.format, of=of.of)

    # What the log and people say of its cases.
    ready = ReadySuite(suite, source, pipelines, judges, preprocessors, made)
    with collecting(problems):
        ready = replace(ready, people=read_people(suite))
        _ = ready.grounds
    with collecting(problems):
        _ = ready.runs
        _refuse_absent_context(ready)
        if suite.labels and source is not None:
            run_labels = find_labels(suite, source, ready.runs, places)
            problems += run_labels.problems
            ready = ready.noting(run_labels.notices, labels=run_labels.labels)

    # Whether its cases fit together, where they could all be read.
    if suite.frozen is not None and not problems:
        with collecting(problems):
            ready = _with_frozen(ready, suite.frozen)
    if suite.config.cases.cluster and not problems:
        with collecting(problems):
            ready = _with_clusters(ready, suite.config.cases.cluster)
    with collecting(problems):
        ready = _with_slices(ready)
    if problems:
        # Each once, and with its place.
        placed = [_placed(problem, suite.config_file, places) for problem in problems]
        raise InputError(dict.fromkeys(placed))
    is_drawn = bool(suite.config.cases.sample or suite.probes)
    if is_drawn and suite.config.cases.sampling == "kept":
        # Noted once, so that what the session records does not change its draw.
        ready = replace(
            ready, recorded=Recorded.of(suite.cassette_dir, cassettes_in(suite.cassette_dir))
        )
    return ready


def _refuse_absent_context(ready: ReadySuite) -> None:
    """Refuse a prompt that shows a context, of which no answer has one: the judge would see none,
    and its verdicts cost as much. A prompt may show one only if there is one.
    """
    for judge in ready.judges.values():
        if not isinstance(judge, PromptJudge):
            continue
        template = judge.template
        is_shown = CONTEXT_ID in template.variables and "{%" not in template.source
        if is_shown and ready.source is not None and not _has_context(ready.source, ready.runs):
            message = "the prompt shows a context, but no answer has a context"
            hint = "name the column with the context (`init --context COL`; in a config "
            hint += "`suite.format: {context: /COLUMN}`), or remove the context from the prompt"
            raise InputError(message, template.origin, hint=hint)


def _has_context(source: Source, runs: Iterable[RunSummary]) -> bool:
    """Whether a run that can be read has a context; most often the first one says so."""
    for run in runs:
        with contextlib.suppress(Unscored):
            if run.skip is None and answer_parts(source.run(run.key).messages)[CONTEXT_ID]:
                return True
    return False


def _refuse_closed_folders(suite: Suite) -> None:
    """Refuse folders in which nothing can be looked at: what is recorded there would be paid for
    again.
    """
    for folder in (suite.results_dir, suite.cassette_dir):
        try:
            (folder / "any").stat()
        except PermissionError as error:
            raise InputError(f"cannot be opened: {error.strerror}", folder) from None
        except OSError:
            # It is not there yet, or whoever writes into it says what is wrong.
            continue


def _judges(
    suite: Suite, supplied: Function | None, problems: list[Problem], *, records: bool
) -> dict[str | None, SuiteJudge]:
    """Build a suite's judges, or the `supplied` one."""
    judges: dict[str | None, SuiteJudge] = {}
    for settings in suite.judges:
        if supplied is not None:
            judges[settings.name] = supplied_judge(settings, supplied)
            continue
        kind = JUDGES[settings.kind]
        build = partial(kind.build, settings, suite.prompt_mode, suite.instruction)
        with collecting(problems):
            if records or kind.keys is None:
                judge = judges[settings.name] = build()
                if isinstance(judge, PromptJudge) and len(suite.rubrics) > 1:
                    template = judge.template
                    # It would judge all of them by a rubric of its own.
                    if template.variables.isdisjoint({"rubric", "rubrics"}):
                        message = (
                            'the prompt must use "rubric", because the suite has several rubrics'
                        )
                        hint = "write {{ rubric }} where the judge should read the rubric"
                        raise InputError(message, template.origin, hint=hint)
                continue
            with loading_for_replay() as tried:
                judge = judges[settings.name] = build()
            if not tried or (isinstance(judge, OwnCodeJudge) and judge.version is not None):
                continue
            # Its verdicts may rest on what was refused.
            message = (
                f"the judge {judge.label} tried to {', '.join(tried)} when its module was "
                "imported, which a replay refuses"
            )
            hint = "send requests only while a case is judged; or, to use the recorded verdicts, "
            hint += "set `version` in the judge's section"
            if any(asks_for_credentials(reached.removeprefix("reach ")) for reached in tried):
                hint = ADVICE_ON_CREDENTIALS
            raise InputError(message, key="judge", hint=hint)
    return judges


def _with_frozen(ready: ReadySuite, path: Path) -> ReadySuite:
    """Check a frozen file against the suite; the suite's notices name what is not in it. Raises
    `InputError`.
    """
    suite, cases = ready.suite, ready.frozen_cases
    refuse_misfit(suite, cases.entries.values())
    if next(ready.specs(), None) is None:
        other_suites = sorted({entry.spec.suite for entry in cases.entries.values()})
        raise InputError(
            f"this file has no case of the suite {suite.name!r}",
            path,
            hint=f"Its cases are of the suite {listed(map(repr, other_suites))}; a suite is named "
            "after its config file.",
        )
    notices = without_cases(suite, path, cases.entries.values())
    if foreign := len(cases.foreign):
        lines = f"{counted(foreign, 'line')} without `format` and `case_id`"
        notices.append(f"{path.name}: left out {lines}, which pytest-jrh did not write.")
    return ready.noting(
        notices,
        labels={
            entry.spec.label_key: entry.label
            for entry in cases.entries.values()
            if entry.spec.suite == suite.name and entry.label is not None
        },
    )


def _with_clusters(ready: ReadySuite, cluster_key: str) -> ReadySuite:
    """Say which runs have no cluster; of a frozen suite take the clusters from its cases."""
    suite = ready.suite
    clusters = {}
    if suite.frozen is None:
        for run in ready.runs:
            clusters[run.key] = run.cluster
    else:
        cases = clustered(ready.frozen_cases, suite.name, cluster_key)
        ready = replace(ready, made=dict.fromkeys(ready.made, cases))
        for spec in ready.specs():
            clusters[spec.run_id, spec.epoch] = spec.cluster
    missing = [*clusters.values()].count(None)
    if not missing:
        return ready
    return ready.noting(
        [
            f"{suite.key or suite.config_file.name}: {missing:,} of "
            f"{counted(len(clusters), 'case')} have no {printable(cluster_key)} in the "
            "metadata (cases.cluster), so each of these cases is its own cluster, with all epochs"
        ]
    )


def specs_of(index: RecordIndex, suite: Suite, recorded: Recorded | None) -> Iterator[CaseSpec]:
    """Every case of the suite that a file holds, in the suite's order of tests and rubrics, then
    file order, and those that probes derive of them, those first that were `recorded`.
    """
    made: list[CaseSpec] = []
    specs = (entry.spec for entry in index.entries.values() if entry.spec.suite == suite.name)
    by_rubric = grouped_by(specs, "test", "rubric_id")
    for test in suite.tests:
        for rubric in suite.rubrics:
            for spec in by_rubric.get((test.name, rubric.id), ()):
                if spec.target_score in test.targets[rubric.id]:
                    made.append(spec)
    return with_probes(suite, made, recorded=recorded)


def _with_slices(ready: ReadySuite) -> ReadySuite:
    """Say in which slices the runs are, and of pairs, which systems gave the answers."""
    suite = ready.suite
    keys = suite.config.cases.by
    if suite.gate.by and not keys:
        raise InputError("can be used only if cases.by is set", key="gate.by")
    of_pairs = bool(suite.scale.orders)
    runs: list[tuple[RunKey, Fields]] = []
    if (keys or of_pairs) and ready.source is not None:
        runs += ((run.key, run.metadata) for run in ready.source.fields())
    elif (keys or of_pairs) and suite.frozen is not None:
        runs += fields_of_runs(ready.frozen_cases, suite.name)
    if not runs:
        return ready
    systems = {run: systems_in(metadata) for run, metadata in runs} if of_pairs else {}
    names = {name: None for _, metadata in runs for name in metadata}
    slices = run_slices(keys, runs, label_fields(suite, names))
    return replace(ready, slices=slices, systems=systems)


def _placed(problem: Problem, config_file: Path, places: Places) -> Problem:
    """Name a problem's file as briefly as is clear; without one it is the config's."""
    if problem.file is not None:
        return replace(problem, file=places.name(Path(problem.file)))
    document = read_document(config_file, places.name(config_file))
    parts = (problem.key or "").split(".")
    key: KeyPath = tuple(int(part) if part.isdecimal() else part for part in parts)
    key = fit(document)[1].written_key(key)
    return replace(problem, file=document.file, line=document.line(key), key=dotted(key))


@frozen
class LoadedSuites:
    """The suites of one process, in the order in which they were loaded.

    `folder` is where pytest was started. `judge_of` gives the judge that a project's code supplies
    for a suite, by the suite's name.
    """

    options: Options
    folder: Path
    rootdir: Path
    judge_of: Callable[[str], Function | None]
    _ready: dict[Path, ReadySuite] = field(default_factory=dict)

    def __iter__(self) -> Iterator[ReadySuite]:
        return iter(self._ready.values())

    def load(self, path: Path) -> ReadySuite:
        """The suite of a config file, loaded once; raises `InputError` with every problem."""
        path = absolute(path)
        if path not in self._ready:
            ready = make_ready(
                path,
                cwd=self.folder,
                rootdir=self.rootdir,
                frozen=self.options.frozen,
                judge=self.judge_of(path.stem),
                # `--jrh-plan` never calls a judge.
                records=lambda suite: not self.options.plan and self.modes(suite)[1] != "none",
            )
            self._refuse_shared_places(ready)
            # What cannot be read is said before any model is asked.
            DecisionStore([ready.suite])
            self._ready[path] = ready
        return self._ready[path]

    def named(self, name: str) -> ReadySuite:
        """The loaded suite of this name."""
        return next(ready for ready in self if ready.suite.name == name)

    def read_people_again(self) -> None:
        """Take in what people said of cases meanwhile, for what is reported at the end."""
        for path, ready in self._ready.items():
            self._ready[path] = replace(ready, people=read_people(ready.suite))
            # Read now, where what cannot be used is an error of the user's and not ours.
            _ = self._ready[path].grounds

    def modes(self, suite: Suite) -> tuple[RecordMode, RecordMode]:
        """The record modes of a suite's generation and judging in this session: the command line's
        over its own.
        """
        own_mode = suite.config.recording.mode
        generation: RecordMode = self.options.record_mode or own_mode or "none"
        return generation, self.options.judge_record_mode or generation

    def asks(self, ready: ReadySuite) -> bool:
        """Whether models may be asked about a suite's cases in this session."""
        return self.modes(ready.suite) != ("none", "none")

    @property
    def notices(self) -> Sequence[str]:
        """Sentences of the suites that the user should read once."""
        return tuple(chain.from_iterable(ready.notices for ready in self))

    def _refuse_shared_places(self, ready: ReadySuite) -> None:
        """Refuse suites that share a name, a results folder or a cassette folder."""
        suite = ready.suite
        for earlier in self:
            former = earlier.suite
            if suite.name == former.name:
                raise InputError(
                    f"the suite of {former.config_file} has the name `{suite.name}`, too, because "
                    "a suite is named after its config file",
                    suite.config_file,
                    hint="Rename one of the two config files.",
                )
            for key, folder, former_folder in (
                ("rand.results", suite.results_dir, former.results_dir),
                ("recording.dir", suite.cassette_dir, former.cassette_dir),
            ):
                if folder == former_folder:
                    raise InputError(
                        f"this suite and {former.config_file} would share the folder {folder}",
                        suite.config_file,
                        hint=f"Give each suite its own `{key}`, or run one suite at a time.",
                    )
