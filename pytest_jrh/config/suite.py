"""A suite as the other packages use it: resolved, validated, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.probes.probe import ProbeSettings
from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.model import Mode, Objective, Rubric, StageModel
from pytest_jrh.judges.judge import JudgeSettings

if TYPE_CHECKING:
    from pytest_jrh.cases.tests import Kind
    from pytest_jrh.config.schema import Config, GateRules, LabelSection


@dataclass(frozen=True, slots=True)
class SuiteTest:
    """A test of a suite; `targets` are ascending scores by rubric id, (None,) in binary mode."""

    name: str
    objective: Objective
    output_dir: Path
    evaluate: bool
    targets: Mapping[str, tuple[int | None, ...]]

    @property
    def kind(self) -> Kind:
        """What kind of test it is."""
        return KINDS[self.name]


@dataclass(frozen=True, slots=True)
class Suite:
    """What a config file means: its keys in `config`, and what comes of them where files are looked
    for or one key stands in for another.

    Paths are absolute; `logs` is where the runs come from. `key` is the config file's path as
    reports show it, which no other suite of a session has. `rubrics` are the targeted ones, in file
    order; in ordinal mode each has its `score_levels` (labels empty where only a range was given).
    `untargeted` are the ids in the rubric file that `cases.rubrics` leaves out. `stages` holds
    planner, editor, summary and verifier, which is missing where it is off. Tables and reports go
    to `results_dir`, made cases to the tests' folders; `frozen` is the JSONL of a frozen suite, or
    None. `blind_labels` is the committed file of them. `probes` are the settings of those of
    `tests` that are probes, by name. `notices` are sentences to print once. `unused_keys` names the
    keys of RAND's in the config that mean nothing here, in a sentence.
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
    config: Config
    logs: tuple[Path, ...]
    stages: Mapping[str, StageModel]
    cassette_dir: Path
    results_dir: Path
    custom_prompts_dir: Path
    frozen: Path | None = None
    table_format: Literal["csv", "xlsx"] = "csv"
    instruction: str = ""
    untargeted: frozenset[str] = frozenset()
    labels: tuple[LabelSection, ...] = ()
    blind_labels: Path | None = None
    probes: Mapping[str, ProbeSettings] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    unused_keys: str = ""

    @property
    def gate(self) -> GateRules:
        """When a session fails."""
        return self.config.gate

    @property
    def judges_unlabelled(self) -> bool:
        """Whether natural runs without a label are judged, too."""
        return self.mode == "binary" and any(section.unlabelled for section in self.labels)

    @property
    def made_by_stages(self) -> tuple[SuiteTest, ...]:
        """The tests whose cases stages make: of a frozen suite, those of probes that ask models."""
        tests = []
        for test in self.tests:
            probe = PROBES.get(test.name)
            frozen = self.frozen is not None
            if probe.asks if probe is not None else not (frozen or KINDS[test.name].natural):
                tests.append(test)
        return tuple(tests)

    def repeats_of(self, judge: str | None) -> int:
        """How often a judge judges each case; a lone judge has no name."""
        [repeats] = (entry.repeats for entry in self.judges if entry.name == (judge or None))
        return repeats
