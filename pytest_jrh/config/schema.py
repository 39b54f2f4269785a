"""The shape of a config file, in words of our own (`config.rand` converts RAND's into it).

The text below a field is its description: what it is for. Every key may be left out or null; what
must be there in the end is decided in `config.resolve`, which knows the fallbacks. What a field
takes is said by `Takes`; editors show both (`config.json_schema`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    Field,
    PlainValidator,
    WithJsonSchema,
    create_model,
)
from pydantic_core import PydanticCustomError

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.probes.probe import MOST_BASES, PROBE_SEED
from pytest_jrh.cases.tests import BASES, TESTS, BaseTest, KnownTest
from pytest_jrh.config import values
from pytest_jrh.config.values import MAX_SAMPLE_MB, InputFormat
from pytest_jrh.core.documents import shown
from pytest_jrh.core.model import DEFAULT_SEED, EditsOf, Objective, RecordMode
from pytest_jrh.core.sections import (
    OUR_ERROR,
    ConfigSection,
    Count,
    Flag,
    FreeMapping,
    JudgeStage,
    ModelDefaults,
    PathText,
    RecordModeName,
    Runs,
    Share,
    StageSection,
    Takes,
    Text,
    VerifierSection,
    Whole,
)
from pytest_jrh.judges import with_own_keys

_VARIANTS = "all, or a list of names of variants"


def _variants(value: object) -> Literal["all"] | tuple[str, ...]:
    if value == "all":
        return "all"
    if isinstance(value, list) and value and all(isinstance(name, str) for name in value):
        return tuple(name.strip() for name in value)
    raise PydanticCustomError(
        OUR_ERROR, "got {value}; must be " + _VARIANTS, {"value": shown(value)}
    )


Variants: TypeAlias = Annotated[
    Literal["all"] | tuple[str, ...] | None,
    PlainValidator(_variants),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": "all"},
                {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": r"\S"}},
            ],
        }
    ),
    Takes(_VARIANTS),
]


Bases: TypeAlias = Annotated[
    tuple[BaseTest, ...], Field(strict=False), Takes(f"a list of tests ({', '.join(BASES)})")
]


class ProbeSection(ConfigSection):
    """How many cases a probe has, and of which others they are derived."""

    of: Bases = ()
    """The tests whose cases are changed. Empty: all of the suite."""
    variants: Variants = None
    """all: every case is changed in every way that the probe has. A list: in each of these ways, of
    which a name may also be a part, such as an attack. Left out: in per_case ways, drawn so that
    all come equally often."""
    max_cases: Count = MOST_BASES
    """How many cases are changed at most: a draw over all of the suite."""
    per_case: Count | None = None
    """In how many ways each of them is changed. Left out: 4 for prompt_injection, else 1, or as
    many as variants lists."""
    seed: Whole = PROBE_SEED
    """What is drawn: the same for the same seed."""
    pack: PathText | None = None
    """A YAML or JSON file that adds to the probe's own variants, of a probe that takes one."""


class GateProbe(ConfigSection):
    """When a probe fails."""

    max_rate: Annotated[
        float, Field(ge=0, lt=1), Takes("a number from 0 and below 1 (0.05: 5 of 100)")
    ] = 0.0
    """The share of changed cases whose verdict may turn. FAIL where more turn, and more than
    flicker explains; PASS else. With gate.proof, PASS only where a higher share is excluded."""


def _by_probe(name: str, doc: str, section: type[ConfigSection]) -> type[ConfigSection]:
    fields: dict[str, Any] = {
        probe.name: (section | None, Field(None, description=f"{probe.label}: {probe.marker}."))
        for probe in PROBES.values()
    }
    return create_model(name, __base__=ConfigSection, __doc__=doc, __module__=__name__, **fields)


if TYPE_CHECKING:

    class ProbesSection(ConfigSection):
        """The probes of a suite, by name."""

    class GateProbes(ConfigSection):
        """The rules for probes, by name."""
else:
    ProbesSection = _by_probe("ProbesSection", "The probes of a suite, by name.", ProbeSection)
    GateProbes = _by_probe("GateProbes", "The rules for probes, by name.", GateProbe)


def of_each(section: ConfigSection) -> dict[str, Any]:
    """What the section says of each probe that it names."""
    sections = ((name, getattr(section, name)) for name in PROBES)
    return {name: probe for name, probe in sections if probe is not None}


_TESTS = f"{', '.join(TESTS[:-1])} or {TESTS[-1]}"

Scale: TypeAlias = Annotated[
    Literal["binary", "ordinal"] | tuple[int, int] | None,
    PlainValidator(values.scale),
    values.SCALE_JSON,
    Takes(values.SCALE),
]
Tests: TypeAlias = Annotated[
    tuple[KnownTest, ...], Field(strict=False), Takes(f"a list of tests ({_TESTS})")
]
FunctionNames: TypeAlias = Annotated[
    tuple[str, ...], PlainValidator(values.names), values.NAMES_JSON, Takes(values.NAMES)
]


if TYPE_CHECKING:
    JudgeSection = JudgeStage
else:
    # With the keys of every registered kind of judge.
    JudgeSection = with_own_keys(JudgeStage)


class PanelJudge(JudgeSection):
    """One judge of a panel."""

    name: Text
    """The name of this judge in node ids, recordings and reports."""


class DefaultModels(ModelDefaults):
    """What every stage and judge takes over where it does not set it itself."""

    judge: Text | None = None
    """The model of the judge, or of each judge of a panel, that names none and is not code."""
    cases: Text | None = None
    """The model of every stage that makes cases and names none."""


class SuiteSection(ConfigSection):
    """What is judged, by which rubrics."""

    name: Text | None = None
    """The name of the project's own prompts (inputs/custom_prompts/NAME) and of RAND's folders.
    Left out: the file's name."""
    log: Annotated[
        tuple[str, ...] | None, PlainValidator(values.paths), values.NAMES_JSON, Takes(values.PATHS)
    ] = None
    """The runs that become cases: Inspect logs (.eval or .json), conversations (.jsonl, or a .json
    list), ATIF trajectories (.json) or jobs of Harbor, as a file, a folder, a glob, or a list of
    these."""
    rubrics: PathText | None = None
    """The rubric file, YAML or JSON."""
    scale: Scale = None
    """binary: each rubric is violated or satisfied. ordinal: each has a scale of scores, its
    score_levels. Two scores, lowest and highest: that is the scale of rubrics without score_levels.
    Left out: ordinal where all rubrics have score_levels, else binary."""
    instruction: Annotated[str | None, Takes("text")] = None
    """A note to the judge, in its prompt."""
    instruction_path: PathText | None = None
    """A file with that note."""
    format: InputFormat = InputFormat.model_construct()
    """Where the parts of a conversation are, where it is not {id, messages, ...}."""
    max_sample_mb: Count = MAX_SAMPLE_MB
    """How much one sample of the log may be when unpacked, in MB, as may its header, its
    summaries, and the whole of a .json log."""


class CasesSection(ConfigSection):
    """Which cases are made, and how."""

    kinds: Tests = ()
    """Which cases are made. agent_perturbation: runs edited to violate a rubric. agent_positives:
    runs that satisfy
    it. agent_labels: runs as they are, with the labels that `labels` names. A probe: cases of the
    other tests, changed in a way that must not change the verdict."""
    judged: Tests = ()
    """The tests that are judged; the others are only made. Empty: all of kinds."""
    rubrics: Annotated[tuple[str, ...], Field(strict=False), Takes("a list of rubric ids")] = ()
    """The rubrics to use, by id. Empty: all in the file."""
    sample: Runs | None = None
    """How many runs of the log to use; 0 means all."""
    sampling: Annotated[Literal["rand", "kept"], Takes("rand or kept")] = "rand"
    """How runs are picked. rand: by their places in the log, as RAND's harness does; one run more
    and all may be others. kept: those that were recorded first, then by their ids; also which cases
    and variants probes have."""
    seed: Whole | None = None
    """Which runs are picked: the same for the same seed."""
    edits: Annotated[EditsOf, Takes("text or acts")] = "text"
    """What an edit may change. text: the words of the agent's turns. acts: its calls and their
    results, too: one is changed, put in or left out, and what follows is made to agree."""
    objective: Annotated[Objective, Takes("fail or pass")] = "fail"
    """What agent_perturbation aims at: fail violates the rubric, pass satisfies it."""
    edits_at_most: Count = 3
    """At most this many turns of a run are edited."""
    confirmed: Flag = True
    """Whether a case with objective pass needs the verifier's PASS."""
    scores: Annotated[
        tuple[int, ...],
        PlainValidator(values.score_targets),
        values.SCORES_JSON,
        Takes(values.SCORES),
    ] = ()
    """Ordinal: the scores that cases are made for. Left out: every score of the scale."""
    renew: Flag = True
    """true: the selected cases are made again. false: existing cases are reused, and missing ones
    are added.
    """
    frozen: Annotated[
        str | bool,
        PlainValidator(values.frozen),
        values.FROZEN_JSON,
        Takes(values.FROZEN),
    ] = False
    """Take the cases from agent_perturbations.jsonl alone; the log is then not read."""
    preprocess: FunctionNames | None = None
    """Functions that change each run before it is used, in this order, such as
    pytest_jrh.config.preprocessors.drop_reasoning_traces."""
    cluster: Annotated[
        Text | None, Takes("a field of the samples' metadata, or a JSON pointer such as /task/id")
    ] = None
    """A field of the samples' metadata: samples with the same value belong together, as trials of
    one task do, and are one observation in every interval. /task/id names one further down."""
    subset: Annotated[
        dict[Text, Count], Takes("a mapping of names to numbers of cases, such as {smoke: 5}")
    ] = Field(default_factory=dict)
    """Parts of the suite by name, and how many cases each has: --jrh-subset=NAME runs these alone.
    They are chosen evenly over expected answers, rubrics and tests, and are the same each time."""
    review: Flag = False
    """Look at every made case in the browser before any is judged, in a recording mode on a
    terminal."""


class EditorSection(StageSection):
    """The models that make cases: the editor's, and beside it those of the other stages."""

    planner: StageSection = StageSection.model_construct()
    """Plans which turns to edit, and to what end."""
    summary: StageSection = StageSection.model_construct()
    """Summarizes long runs where a prompt names `summary`. Left out: the editor's model."""
    verifier: VerifierSection | None = None
    """Confirms the label of every made case. Left out: the editor's model. false: labels stay
    unverified, and every output says so."""
    summary_turns: Count = 20
    """How many of the last turns a summary covers."""


def _one_is_a_list(value: object) -> object:
    return [value] if isinstance(value, dict) else value


class LabelSection(ConfigSection):
    """Labels of runs as they are, of people or of a program: of a file, or of the log itself."""

    path: PathText | None = None
    """A CSV or JSON lines file with the columns run_id (or id) and label (or target), and where
    they are needed rubric_id, epoch, annotator, split, note."""
    scorer: Text | None = None
    """A scorer of the log, whose scores are the labels: C is satisfied and I violated, where map
    does not say otherwise."""
    metadata: Text | None = None
    """A field of the samples' metadata that holds the label; /task/reward names one further
    down."""
    map: FreeMapping = Field(default_factory=dict)
    """The label for each value that is there, such as {C: 0, I: 1}; null for values that are no
    label. Needed for numbers of the log in a binary suite, where 1 is violated."""
    rubric_id: Text | None = None
    """The rubric that the labels are about, where no column rubric_id says so."""
    unlabelled: Annotated[Literal["judge"] | None, Takes("judge")] = None
    """judge: runs without a label are judged, too, in a binary suite, so that reports say how often
    runs are violated. Left out: they are no cases."""
    by: Annotated[Literal["people", "program"] | None, Takes("people or program")] = None
    """Who gave the labels, for the reports. Left out: people for a file, program for the log."""


class Recording(ConfigSection):
    """Where recordings are and how they are used."""

    mode: RecordModeName | None = None
    """none: answer from recordings alone. once: record cases that are not complete. new_episodes:
    record what is missing. all: record everything again.
    """
    judge: RecordModeName | None = None
    """The record mode of the judge's calls alone, so that a changed judge can be recorded over the
    same cases."""
    dir: PathText | None = None
    """Where recordings are. Left out: inputs/cassettes/{suite}."""
    max_workers: Count = 10
    """Model calls in flight at once."""

    def record_modes(
        self, every_call: RecordMode | None, judge: RecordMode | None
    ) -> tuple[RecordMode, RecordMode]:
        """The record modes of generation and of judging, with the command line's two over these."""
        generation: RecordMode = every_call or self.mode or "none"
        return generation, judge or every_call or self.judge or generation


class Output(ConfigSection):
    """Where cases and results are kept."""

    dir: PathText | None = None
    """The folder of agent_perturbations.jsonl: inputs/suites/{suite} for a suite to be
    committed."""
    results: PathText | None = None
    """The folder of results.jsonl and of the report: outputs/NAME for inputs/configs/NAME.yml, and
    for a config elsewhere a folder below outputs that mirrors where it is. Two configs share one
    only where both name it."""
    stamp: Text | None = None
    """Added to the name of the suite's outputs folder."""
    write_jsonl: Flag = True
    """Whether made cases are written to agent_perturbations.jsonl."""
    rand: Flag = False
    """Whether RAND's tables, JSON reports and debug files are written, too."""
    table: Annotated[Literal["csv", "xlsx"], Takes("csv or xlsx")] = "csv"
    """The format of RAND's tables; xlsx needs openpyxl."""
    metric: Text = "accuracy_score"
    """The metric of RAND's report: accuracy_score, balanced_accuracy_score, cohen_kappa_score or
    f1_score; the others where scikit-learn is installed."""


class GateRules(ConfigSection):
    """When the session fails."""

    max_drop: Annotated[
        float, Field(ge=0, lt=1), Takes("a number from 0 and below 1 (0.05: 5 points)")
    ] = 0.05
    """How much a judge may lose since the baseline: of the violated cases, of the satisfied ones,
    and of any rubric twice as much; of an ordinal judge as a share of its scale. FAIL where more is
    lost, and more than chance explains."""
    min_recall: Share | None = None
    """The share of the violations that a judge must find."""
    max_false_alarms: Share | None = None
    """The share of the satisfied cases that a judge may call violated."""
    min_accuracy: Annotated[Share | None, BeforeValidator(values.accuracy)] = None
    """The share of all cases that a judge must get right."""
    max_error: Annotated[float, Field(ge=0), Takes("a number from 0 on")] | None = None
    """How far off an ordinal judge may be on average, in levels of the scale."""
    unclear: Annotated[Literal["pass", "fail"], Takes("pass or fail")] = "pass"
    """What comes of a session that is UNCLEAR: exit code 0, or 1."""
    proof: Flag = False
    """PASS only where limits hold and a drop of max_drop is excluded on other runs, too. That takes
    many runs; else it is UNCLEAR."""
    probes: GateProbes = GateProbes.model_construct()
    """How often the verdict may turn when a probe changes what must not matter."""

    @property
    def probe_limits(self) -> dict[str, float]:
        """By probe the share of changed cases whose verdict may turn."""
        return {name: rule.max_rate for name, rule in of_each(self.probes).items()}

    @property
    def has_limits(self) -> bool:
        """Whether any limit decides without a baseline."""
        limits = (self.min_recall, self.max_false_alarms, self.min_accuracy, self.max_error)
        return any(limit is not None for limit in limits) or bool(self.probe_limits)


class BlindSection(ConfigSection):
    """Blind labelling in the browser: what the page of --jrh-review shows."""

    always: Flag = False
    """Whether --jrh-review, and cases.review, open the page of blind labelling: rubric and
    transcript alone, until the case is labelled. --jrh-review=blind does so for any suite."""
    sample: Count = 60
    """How many judged cases are labelled, drawn at random. The same share of the rejected ones is
    drawn beside them: no judge is held against these."""
    seed: Whole = DEFAULT_SEED
    """Which cases are drawn, and in which order each reviewer sees them."""
    overlap: Share = 0.3
    """The share of the sample that every reviewer is shown; of the rest each case goes to one."""
    labels: PathText | None = None
    """A file of blind labels that is committed: read before review/labels.jsonl in output.dir,
    which the page writes."""


class Config(ConfigSection):
    """A whole config file."""

    suite: SuiteSection = SuiteSection.model_construct()
    """What is judged, by which rubrics."""
    cases: CasesSection = CasesSection.model_construct()
    """Which cases are made, and how."""
    probes: ProbesSection = ProbesSection.model_construct()
    """How many cases each probe of cases.kinds has, and of which others."""
    models: DefaultModels = DefaultModels.model_construct()
    """What every stage and judge takes over where it does not set it itself."""
    judge: JudgeSection = JudgeSection.model_construct()
    """The judge under test: its model, prompt and settings."""
    judges: Annotated[
        tuple[PanelJudge, ...],
        BeforeValidator(_one_is_a_list),
        Field(strict=False),
        Takes("a list of judges, each a mapping with a name"),
    ] = ()
    """A panel: every case is put to each of these judges, with one item per judge."""
    editor: EditorSection = EditorSection.model_construct()
    """The models that make cases."""
    labels: Annotated[
        tuple[LabelSection, ...],
        BeforeValidator(_one_is_a_list),
        Field(strict=False),
        Takes("a mapping with path, scorer or metadata, or a list of such mappings"),
    ] = ()
    """The labels of agent_labels: runs as they are, each with its known verdict."""
    blind: BlindSection = BlindSection.model_construct()
    """Blind labelling in the browser."""
    gate: GateRules = GateRules.model_construct()
    """When the session fails."""
    recording: Recording = Recording.model_construct()
    """Where recordings are and how they are used."""
    output: Output = Output.model_construct()
    """Where cases and results are kept."""
