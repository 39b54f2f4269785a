"""A suite as the other packages use it: resolved, validated, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.probes.probe import ProbeSettings
from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.model import (
    DEFAULT_SEED,
    LabelledBy,
    Mode,
    Objective,
    RecordMode,
    Rubric,
    StageModel,
    StageName,
    TestName,
)
from pytest_jrh.judges.judge import JudgeSettings

MAX_SAMPLE_MB = 256
"""How much one sample of a log may be when unpacked, in MB, where the config says nothing."""
"""How often a case may be judged at most (rule M1)."""


@dataclass(frozen=True, slots=True)
class SuiteTest:
    """One of the tests of a suite (rules A7, A8).

    `targets` lists for each rubric id the target scores in ascending order; (None,) in binary mode.
    """

    name: TestName
    objective: Objective
    output_dir: Path
    evaluate: bool
    targets: Mapping[str, tuple[int | None, ...]]


@dataclass(frozen=True, slots=True)
class GateRules:
    """When a session of the suite fails (rules J4, S8).

    `min_accuracy` is a share of the verdicts of each judge: one for all its tests, or one per test;
    with `lower_bound` the lower end of the accuracy's interval has to reach it. `max_drop` is how
    much less accurate than the baseline's reference a judge may be, and `inconclusive` what comes
    of a session that cannot tell. `max_regressions` is how many disagreements that the baseline
    does not have are let through; None is 0 where no other rule decides about them. `min_cases` is
    how many verdicts there must be at least, and `min_compared` the share of the baseline's cases,
    and of the session's, that must be compared. `allow_uncompared` lets a suite pass of which no
    case can be compared with the baseline, `allow_one_class` one whose labels are all the same.
    `probes` are by name the shares of changed cases whose verdict may turn.
    """

    min_accuracy: float | Mapping[str, float] | None = None
    lower_bound: bool = False
    max_drop: float | None = None
    inconclusive: Literal["fail", "pass"] = "fail"
    max_regressions: int | None = None
    min_cases: int = 1
    min_compared: float | None = None
    allow_uncompared: bool = False
    allow_one_class: bool = False
    probes: Mapping[str, float] = field(default_factory=dict)

    @property
    def decides(self) -> bool:
        """Whether any rule is set, beside those that only let a session pass."""
        return (
            self.min_accuracy is not None
            or self.max_drop is not None
            or self.lower_bound
            or bool(self.max_regressions)
            or self.min_cases != 1
            or bool(self.probes)
        )

    @property
    def allows_no_regression(self) -> bool:
        """Whether each regression fails: no rule says how many there may be, or how much less."""
        unruled = self.min_accuracy is None and self.max_drop is None
        return unruled if self.max_regressions is None else not self.max_regressions

    def covers(self, test: str) -> bool:
        """Whether a rule is set that the verdicts of this test count for: a minimal accuracy, or of
        a probe the share of verdicts that may turn.
        """
        if KINDS[test].derived:
            return test in self.probes
        return (
            test in self.min_accuracy
            if isinstance(self.min_accuracy, Mapping)
            else self.min_accuracy is not None
        )


@dataclass(frozen=True, slots=True)
class InputFormat:
    """Where the parts of a conversation are in its JSON, as JSON pointers (rule R2).

    None: the key of the same name. `id` and `cluster` may be put together of several values;
    several of `metadata` become its fields.
    """

    messages: str | None = None
    system: str | None = None
    id: tuple[str, ...] | None = None
    epoch: str | None = None
    cluster: tuple[str, ...] | None = None
    metadata: tuple[str, ...] | None = None
    input: str | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class LabelSettings:
    """Where labels of runs come from (rule N1): a file, or a scorer or metadata field of the log.

    One of `path`, `scorer` and `metadata` is set. `map` gives labels for the values that are there,
    and is empty where these are labels; `rubric_id` is for labels that name no rubric. `key` is
    where the config says all this.
    """

    path: Path | None = None
    scorer: str = ""
    metadata: str = ""
    map: Mapping[str, Any] = field(default_factory=dict)
    rubric_id: str = ""
    split: str = ""
    by: LabelledBy = "people"
    key: str = ""


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Where the runs come from, which of them are used, and what is done to each before.

    `paths` are files and folders. `sample_num` is None where all are used, and `sampling` how so
    many are drawn (rule A9). `max_sample_mb` is how
    much one sample may be when unpacked. `cluster_key` is the field of the metadata that says which
    samples belong together (rule L3); `format` says where the parts of a conversation are.
    """

    paths: tuple[Path, ...]
    preprocessors: tuple[str, ...] = ()
    sample_num: int | None = None
    sampling: Literal["rand", "stable"] = "rand"
    sampling_seed: int = DEFAULT_SEED
    max_sample_mb: int = MAX_SAMPLE_MB
    cluster_key: str | None = None
    format: InputFormat = InputFormat()

    @property
    def path(self) -> Path:
        """The first of the paths."""
        return self.paths[0]


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """How cases are made.

    `stages` holds planner, editor, summary and verifier; verifier is missing where it is off.
    `overwrite` makes cases anew that are there; with `use_hitl` they are reviewed before any is
    judged.
    """

    stages: Mapping[StageName, StageModel]
    max_summary_messages: int = 20
    max_edit_rounds: int = 3
    pass_required: bool = True
    overwrite: bool = True
    use_hitl: bool = False


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """Where recordings are and how they are used (rules G).

    The modes are None where the config does not set them. `frozen` is the JSONL of a frozen suite,
    or None.
    """

    cassette_dir: Path
    record_mode: RecordMode | None = None
    judge_record_mode: RecordMode | None = None
    frozen: Path | None = None

    def record_modes(
        self, own: RecordMode | None, judge: RecordMode | None
    ) -> tuple[RecordMode, RecordMode]:
        """The record modes of generation and of judging, with the command line's two over these
        (rule G1).
        """
        generation: RecordMode = own or self.record_mode or "none"
        return generation, judge or own or self.judge_record_mode or generation


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """What a suite writes: tables and reports into `dir`, made cases into the tests' folders."""

    dir: Path
    format: Literal["csv", "xlsx"] = "csv"
    metric: str = "accuracy_score"
    write_jsonl: bool = True


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """How people label the cases of a suite blind (rule N3).

    `blind`: the page of `--jrh-review` is that of blind labelling. `sample` cases are drawn with
    `seed`; `overlap` is the share of them that each reviewer gets. `reviewers` are those who may
    label, empty where anybody may. `labels` is a file with labels that people have given.
    """

    blind: bool = False
    sample: int = 60
    seed: int = DEFAULT_SEED
    overlap: float = 0.3
    reviewers: tuple[str, ...] = ()
    labels: Path | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """What a config file means, with every path found and every default filled in (rules A).

    Paths are absolute. `key` is the config file's path as reports show it, which no other suite of
    a session has. `rubrics` are the targeted ones, in file order; in ordinal mode each has its
    `score_levels` (labels empty where only a range was given). `untargeted` are the ids in the
    rubric file that `target_rubric_ids` leaves out. `probes` are the settings of those of `tests`
    that are probes, by name. `notices` are sentences to print once.
    `unused_keys` names the keys of RAND's in the config that mean nothing here, in a sentence.
    `resolved` is the config as a plain mapping with defaults, for the record.
    """

    name: str
    key: str
    config_file: Path
    module_name: str
    dataset_name: str
    mode: Mode
    rubric_file: Path
    rubrics: tuple[Rubric, ...]
    tests: tuple[SuiteTest, ...]
    judges: tuple[JudgeSettings, ...]
    source: SourceSettings
    generation: GenerationSettings
    replay: ReplaySettings
    output: OutputSettings
    custom_prompts_dir: Path
    instruction: str = ""
    max_workers: int = 10
    gate: GateRules = GateRules()
    review: ReviewSettings = ReviewSettings()
    untargeted: frozenset[str] = frozenset()
    labels: tuple[LabelSettings, ...] = ()
    probes: Mapping[str, ProbeSettings] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    unused_keys: str = ""
    resolved: Mapping[str, Any] = field(default_factory=dict)

    @property
    def made_by_stages(self) -> tuple[SuiteTest, ...]:
        """The tests whose cases stages make: of a frozen suite, those of probes that ask models."""
        made = []
        for test in self.tests:
            probe = PROBES.get(test.name)
            frozen = self.replay.frozen is not None
            if probe.asks if probe is not None else not (frozen or KINDS[test.name].natural):
                made.append(test)
        return tuple(made)

    def repeats_of(self, judge: str | None) -> int:
        """How often a judge judges each case (rule M1); a lone judge has no name."""
        [repeats] = (each.repeats for each in self.judges if each.name == (judge or None))
        return repeats
