"""The shape of a config file: RAND's schema and our own sections.

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
    Ignored,
    JudgeStage,
    ModelDefaults,
    PathText,
    RecordModeName,
    Repeats,
    Runs,
    Share,
    StageSection,
    Takes,
    TemplateName,
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

Tests: TypeAlias = Annotated[
    tuple[KnownTest, ...], Field(strict=False), Takes(f"a list of tests ({_TESTS})")
]
FunctionNames: TypeAlias = Annotated[
    tuple[str, ...], PlainValidator(values.names), values.NAMES_JSON, Takes(values.NAMES)
]


def _without_nulls(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: text for key, text in value.items() if text is not None}


if TYPE_CHECKING:
    JudgeSection = JudgeStage
else:
    # With the keys of every registered kind of judge.
    JudgeSection = with_own_keys(JudgeStage)


class PanelJudge(JudgeSection):
    """One judge of a panel."""

    name: Text
    """The name of this judge in node ids, recordings and reports."""
    template: TemplateName | None = None
    """May repeat the suite's template; every judge takes that one."""
    preprocess_columns_map: Ignored = None


class DatasetConfig(ConfigSection):
    """Where the module's files are."""

    dataset_name: Text | None = None
    """The log's file name in inputs/data/{module_name}, where input_log_path does not name one."""
    default_params_path: Annotated[
        dict[str, str],
        BeforeValidator(_without_nulls),
        Takes("a mapping of names to file names (instruction, rubric)"),
    ] = Field(default_factory=dict)
    """File names in inputs/data/{module_name}: rubric (where rubric_path does not name one), and
    instruction: a note to the judge."""
    default_params: FreeMapping = Field(default_factory=dict)
    """Values for every rubric: instruction (a note to the judge), lowest_score and highest_score.
    """
    use_original_data_as_expected: Ignored = None


class PerturbationConfig(ConfigSection):
    """Which tests are made."""

    use_HITL_process: Flag = False  # noqa: N815 - RAND's key
    """Look at every made case in the browser before any is judged, in a recording mode on a
    terminal."""
    tests_to_run: Tests = ()
    """Which cases are made. agent_perturbation: runs edited to violate a rubric. agent_positives:
    runs that satisfy
    it. agent_labels: runs as they are, with the labels that `labels` names. A probe: cases of the
    other tests, changed in a way that must not change the verdict."""
    probes: ProbesSection = ProbesSection.model_construct()
    """How many cases each probe of tests_to_run has, and of which others."""
    preprocess_columns_map: Ignored = None


def _one_is_a_list(value: object) -> object:
    return [value] if isinstance(value, dict) else value


class EvaluationConfig(ConfigSection):
    """How the tests are judged."""

    template: TemplateName | None = None
    """agent_judge: each rubric is violated or satisfied. agent_autograder: each rubric has a scale
    of scores."""
    autograder_model_name: Text | None = None
    """The judge under test, as litellm knows it, such as openai/gpt-4.1-mini."""
    judges: Annotated[
        tuple[PanelJudge, ...],
        BeforeValidator(_one_is_a_list),
        Field(strict=False),
        Takes("a list of judges, each a mapping with a name"),
    ] = ()
    """A panel: every case is put to each of these judges, with one item per judge."""
    repeats: Repeats = 1
    """How often each case is judged, each time with a recording of its own; the most frequent score
    counts. An odd number: a tie counts as wrong."""
    max_workers: Count = 10
    """Model calls in flight at once."""
    tests_to_evaluate: Tests = ()
    """The tests that are judged; the others are only made. Empty: all of tests_to_run."""
    metric: Text = "accuracy_score"
    """The metric of RAND's report: accuracy_score, balanced_accuracy_score, cohen_kappa_score or
    f1_score; the others where scikit-learn is installed."""
    aggregation_method: Annotated[
        Literal["majority_vote"] | None, Takes("majority_vote or null")
    ] = None
    """How the verdicts of a panel are joined: majority_vote is the only method, and what null means
    too. Without a panel it has no meaning."""
    aggregation_reference_column: Ignored = None
    overwrite_results: Ignored = None
    bootstrap_size: Ignored = None
    bootstrap_repetitions: Ignored = None
    get_cost_curves: Ignored = None


class Admin(ConfigSection):
    """The suite as a whole."""

    module_name: Text | None = None
    """The module: its files are in inputs/data/{module_name}."""
    time_stamp: Text | None = None
    """Added to the name of the suite's outputs folder."""
    test_debug_mode: Ignored = None
    output_file_format: Annotated[Literal["csv", "xlsx"], Takes("csv or xlsx")] = "csv"
    """The format of the tables; xlsx needs openpyxl."""
    dataset_config: DatasetConfig = DatasetConfig.model_construct()
    """Where the module's files are."""
    perturbation_config: PerturbationConfig = PerturbationConfig.model_construct()
    """Which tests are made."""
    evaluation_config: EvaluationConfig = EvaluationConfig.model_construct()
    """How the tests are judged."""


class SyntheticDataParams(ConfigSection):
    """RAND's generation settings; three of them matter here."""

    generation_model_name: Text | None = None
    """The model of every stage that makes cases and does not name its own."""
    sample_num_from_orig: Runs | None = None
    """How many runs of the log to use, where the agent section does not say; 0 means all."""
    seed: Whole | None = None
    """Which runs are picked, where sampling_seed does not say."""
    validation_model_name: Ignored = None
    max_tokens_generation: Ignored = None
    max_tokens_validation: Ignored = None
    max_workers: Ignored = None
    use_similarity_filter: Ignored = None
    target_num_per_bucket: Ignored = None
    similarity_threshold: Ignored = None
    rescore_sample_size: Ignored = None
    initial_temp: Ignored = None
    num_seed_examples_per_generation: Ignored = None
    temp_increment: Ignored = None
    max_temp_cap: Ignored = None
    max_consecutive_failures: Ignored = None


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


class Output(ConfigSection):
    """Where the cases of the tests are kept."""

    dir: PathText | None = None
    """The folder of agent_perturbations.jsonl: inputs/suites/{suite} for a suite to be
    committed."""
    results_dir: PathText | None = None
    """The folder of results.jsonl and of the report: outputs/NAME for inputs/configs/NAME.yml, and
    for a config elsewhere a folder below outputs that mirrors where it is. Two configs share one
    only where both name it."""
    write_jsonl: Flag = True
    """Whether made cases are written to agent_perturbations.jsonl."""
    overwrite: Flag = True
    """true: the selected cases are made again. false: existing cases are reused, and missing ones
    are added.
    """
    rand: Flag | None = None
    """Whether RAND's tables, JSON reports and debug files are written, too. Left out: where
    output_file_format or test_debug_mode is given, as in a config of RAND's."""


class AgentConfig(ConfigSection):
    """How cases are made."""

    input_log_path: Annotated[
        tuple[str, ...] | None, PlainValidator(values.paths), values.NAMES_JSON, Takes(values.PATHS)
    ] = None
    """The runs that become cases: Inspect logs (.eval or .json), conversations (.jsonl, or a .json
    list), ATIF trajectories (.json) or jobs of Harbor, as a file, a folder, a glob, or a list of
    these."""
    input_format: InputFormat = InputFormat.model_construct()
    """Where the parts of a conversation are, where it is not {id, messages, ...}."""
    cluster_key: Annotated[
        Text | None, Takes("a field of the samples' metadata, or a JSON pointer such as /task/id")
    ] = None
    """A field of the samples' metadata: samples with the same value belong together, as trials of
    one task do, and are one observation in every interval. /task/id names one further down."""
    max_sample_mb: Count = MAX_SAMPLE_MB
    """How much one sample of the log may be when unpacked, in MB, as may its header, its
    summaries, and the whole of a .json log."""
    rubric_path: PathText | None = None
    """The rubric file, YAML or JSON."""
    labels: Annotated[
        tuple[LabelSection, ...],
        BeforeValidator(_one_is_a_list),
        Field(strict=False),
        Takes("a mapping with path, scorer or metadata, or a list of such mappings"),
    ] = ()
    """The labels of agent_labels: runs as they are, each with its known verdict."""
    target_rubric_ids: Annotated[
        tuple[str, ...], Field(strict=False), Takes("a list of rubric ids")
    ] = ()
    """The rubrics to use, by id. Empty: all in the file."""
    planner: StageSection = StageSection.model_construct()
    """Plans which turns to edit, and to what end."""
    editor: StageSection = StageSection.model_construct()
    """Writes each planned edit."""
    summary: StageSection = StageSection.model_construct()
    """Summarizes long runs where a prompt names `summary`. Left out: the editor's model."""
    verifier: VerifierSection | None = None
    """Confirms the label of every made case. Left out: the editor's model. false: labels stay
    unverified, and every output says so."""
    max_summary_messages: Count = 20
    """How many of the last turns a summary covers."""
    max_edit_rounds: Count = 3
    """At most this many turns of a run are edited."""
    transcript_preprocessors: FunctionNames | None = None
    """Functions that change each run before it is used, in this order, such as
    pytest_jrh.config.preprocessors.drop_reasoning_traces."""
    transcript_preprocessor: FunctionNames | None = None
    """Another name of transcript_preprocessors."""
    autograder_template: TemplateName | None = None
    """The same as template in admin.evaluation_config, which it overrides."""
    autograder_default_params: FreeMapping = Field(default_factory=dict)
    """lowest_score and highest_score, for rubrics without score_levels."""
    score_targets: Annotated[
        tuple[int, ...],
        PlainValidator(values.score_targets),
        values.SCORES_JSON,
        Takes(values.SCORES),
    ] = ()
    """Ordinal: the scores that cases are made for. Left out: every score of the scale."""
    objective: Annotated[Objective, Takes("fail or pass")] = "fail"
    """What agent_perturbation aims at: fail violates the rubric, pass satisfies it."""
    edits: Annotated[EditsOf, Takes("text or acts")] = "text"
    """What an edit may change. text: the words of the agent's turns. acts: its calls and their
    results, too: one is changed, put in or left out, and what follows is made to agree."""
    pass_required: Flag = True
    """Whether a case with objective pass needs the verifier's PASS."""
    output: Output = Output.model_construct()
    """Where made cases are kept."""
    sample_num_from_orig: Runs | None = None
    """How many runs of the log to use; 0 means all."""
    sampling: Annotated[Literal["rand", "kept"], Takes("rand or kept")] = "rand"
    """How runs are picked. rand: by their places in the log, as RAND's harness does; one run more
    and all may be others. kept: those that were recorded first, then by their ids; also which cases
    and variants probes have."""
    sampling_seed: Whole | None = None
    """Which runs are picked: the same for the same seed."""
    trace_messages: Ignored = None


class Replay(ConfigSection):
    """Where recordings are and how they are used."""

    cassette_dir: PathText | None = None
    """Where recordings are. Left out: inputs/cassettes/{suite}."""
    record_mode: RecordModeName | None = None
    """none: answer from recordings alone. once: record cases that are not complete. new_episodes:
    record what is missing. all: record everything again.
    """
    judge_record_mode: RecordModeName | None = None
    """The record mode of the judge's calls alone, so that a changed judge can be recorded over the
    same cases."""
    frozen: Annotated[
        str | bool,
        PlainValidator(values.frozen),
        values.FROZEN_JSON,
        Takes(values.FROZEN),
    ] = False
    """Take the cases from agent_perturbations.jsonl alone; the log is then not read."""

    def record_modes(
        self, every_call: RecordMode | None, judge: RecordMode | None
    ) -> tuple[RecordMode, RecordMode]:
        """The record modes of generation and of judging, with the command line's two over these."""
        generation: RecordMode = every_call or self.record_mode or "none"
        return generation, judge or every_call or self.judge_record_mode or generation


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


class ReviewSection(ConfigSection):
    """Blind labelling in the browser: what the page of --jrh-review shows."""

    blind: Flag = False
    """Whether --jrh-review, and use_HITL_process, open the page of blind labelling: rubric and
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

    admin: Admin = Admin.model_construct()
    """The suite as a whole."""
    synthetic_data_params: SyntheticDataParams = SyntheticDataParams.model_construct()
    """RAND's generation settings; three of them matter here."""
    models: ModelDefaults = ModelDefaults.model_construct()
    """Defaults of every stage and judge: max_tokens, timeout, api_base, temperature, rate_limit."""
    test_agent_perturbation_config: AgentConfig = AgentConfig.model_construct()
    """How cases are made: log, rubrics, stages, sampling."""
    test_stochastic_stability_config: Ignored = None
    judge: JudgeSection = JudgeSection.model_construct()
    """The judge's model, prompt and settings."""
    gate: GateRules = GateRules.model_construct()
    """When the session fails."""
    subset: Annotated[
        dict[Text, Count], Takes("a mapping of names to numbers of cases, such as {smoke: 5}")
    ] = Field(default_factory=dict)
    """Parts of the suite by name, and how many cases each has: --jrh-subset=NAME runs these alone.
    They are chosen evenly over expected answers, rubrics and tests, and are the same each time."""
    review: ReviewSection = ReviewSection.model_construct()
    """Blind labelling in the browser."""
    replay: Replay = Replay.model_construct()
    """Where recordings are and how they are used."""
