"""The shape of a config file: RAND's schema and our own sections (rules A1, A6, A10).

A field's description says what may stand there, in the words of an error message. Every key may be
left out or null; what must be there in the end is decided in `suite.resolve`, which knows the
fallbacks. The text below a field says what it is for; editors show both (`suite.json_schema`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    StringConstraints,
    model_validator,
)

from pytest_jrh.kinds import TESTS
from pytest_jrh.models import Objective, RecordMode, TestName
from pytest_jrh.suite import config_values as values
from pytest_jrh.suite.suite import MAX_SAMPLE_MB


class NotUsed:
    """Marks RAND keys that are accepted and have no meaning for agentic tests (rule A2)."""


_NON_EMPTY = StringConstraints(min_length=1, strip_whitespace=True)

Text: TypeAlias = Annotated[str, _NON_EMPTY, Field(description="text")]
Flag: TypeAlias = Annotated[bool, Field(description="true or false, without quotes")]
Count: TypeAlias = Annotated[int, Field(ge=1, description="a whole number, at least 1")]
Whole: TypeAlias = Annotated[int, Field(description="a whole number")]
Runs: TypeAlias = Annotated[int, Field(ge=0, description="an integer >= 0 (0 or null: all runs)")]
Positive: TypeAlias = Annotated[float, Field(gt=0, description="a number above 0")]
PathText: TypeAlias = Annotated[str, _NON_EMPTY, Field(description="a path")]
Template: TypeAlias = Annotated[
    Literal["agent_judge", "agent_autograder"],
    Field(description="agent_judge (binary) or agent_autograder (ordinal)"),
]
Tests: TypeAlias = Annotated[
    tuple[TestName, ...], Field(strict=False, description=f"a list of tests ({' or '.join(TESTS)})")
]
Recording: TypeAlias = Annotated[RecordMode, Field(description="none, once, new_episodes or all")]
FreeMapping: TypeAlias = Annotated[dict[str, Any], Field(description="a mapping of keys to values")]
Ignored: TypeAlias = Annotated[Any, NotUsed()]


class Section(BaseModel):
    """A mapping in the config: strict, frozen, closed; a null value is the same as no key."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {
            key: value
            for key, value in data.items()
            if value is not None or key not in cls.model_fields
        }


class RateLimitSection(Section):
    """At most `calls` calls in `period` seconds."""

    calls: Count
    """How many calls may start in a period."""
    period: Positive
    """The length of a period, in seconds."""


class ModelDefaults(Section):
    """What every stage, the judges among them, takes over where it does not set it itself."""

    temperature: Annotated[float | None, Field(ge=0, description="a number, 0 or above")] = None
    """Sent where it is set. Reasoning models refuse one; it is then left out, with a notice."""
    max_tokens: Count | None = None
    """The longest answer to ask for, in tokens."""
    timeout: Annotated[float | None, Field(gt=0, description="a number of seconds above 0")] = None
    """How long to wait for one answer, in seconds. Left out: 120."""
    api_base: Annotated[
        str | None,
        Field(
            pattern=r"^https?://[^\s]+$", description="a URL that starts with http:// or https://"
        ),
    ] = None
    """An OpenAI-compatible server to ask instead of the provider's own."""
    rate_limit: RateLimitSection | None = None
    """A pace that each stage keeps to, beside what the server itself asks for."""


class Stage(Section):
    """A stage model (rule A6)."""

    model: Text | None = None
    """The model's name as litellm knows it, such as openai/gpt-4.1-mini.

    Its key comes from the environment.
    """
    prompt_path: PathText | None = None
    """A prompt file in place of the built-in one."""
    temperature: Annotated[float | None, Field(ge=0, description="a number, 0 or above")] = None
    """Sent where it is set. Reasoning models refuse one; it is then left out, with a notice."""
    system_prompt: Annotated[str | None, Field(description="text")] = None
    """The system message, sent as it stands: nothing in it is filled in."""
    max_tokens: Count | None = None
    """The longest answer to ask for, in tokens."""
    timeout: Annotated[float | None, Field(gt=0, description="a number of seconds above 0")] = None
    """How long to wait for one answer, in seconds."""
    api_base: Annotated[
        str | None,
        Field(
            pattern=r"^https?://[^\s]+$", description="a URL that starts with http:// or https://"
        ),
    ] = None
    """An OpenAI-compatible server to ask instead of the provider's own."""
    rate_limit: RateLimitSection | None = None
    """A pace that this stage keeps to, beside what the server itself asks for."""


class Verifier(Stage):
    """The verifier's stage model, or false."""

    @model_validator(mode="wrap")
    @classmethod
    def _false_is_off(cls, data: Any, handler: ModelWrapValidatorHandler[Verifier]) -> Verifier:
        return NoVerifier.model_construct() if data is False else handler(data)


class NoVerifier(Verifier):
    """`verifier: false`."""


class JudgeStage(Stage):
    """The judge's stage model."""

    show_reasoning: Flag | None = None
    """Show the judge the agent's reasoning blocks too.

    Edited turns have lost theirs, which can give a case away.
    """


class PanelJudge(JudgeStage):
    """One judge of a panel (rule E4)."""

    name: Text
    """How this judge is called in node ids, recordings and reports."""
    template: Template | None = None
    """May repeat the suite's template; every judge takes that one."""
    preprocess_columns_map: Ignored = None


def _without_nulls(value: object) -> object:
    return (
        {key: each for key, each in value.items() if each is not None}
        if isinstance(value, dict)
        else value
    )


class DatasetConfig(Section):
    """Where the module's files are."""

    dataset_name: Text | None = None
    """The log's file name in inputs/data/{module_name}, where input_log_path does not name one."""
    default_params_path: Annotated[
        dict[str, str],
        BeforeValidator(_without_nulls),
        Field(description="a mapping of names to file names (instruction, rubric)"),
    ] = {}
    """File names in inputs/data/{module_name}: rubric (where rubric_path does not name one), and
    instruction: a note to the judge."""
    default_params: FreeMapping = {}
    """Values for every rubric: instruction (a note to the judge), lowest_score and highest_score.
    """
    use_original_data_as_expected: Ignored = None


class PerturbationConfig(Section):
    """Which tests are made."""

    use_HITL_process: Flag = False  # noqa: N815 - RAND's key
    """Look at every made case in the browser before any is judged, in a recording mode on a
    terminal."""
    tests_to_run: Tests = ()
    """Which cases are made. agent_perturbation: runs edited to violate a rubric. agent_positives:
    runs that satisfy
    it."""
    preprocess_columns_map: Ignored = None


def _one_judge_is_a_panel(value: object) -> object:
    return [value] if isinstance(value, dict) else value


class EvaluationConfig(Section):
    """How the tests are judged."""

    template: Template | None = None
    """agent_judge: each rubric is violated or satisfied. agent_autograder: each rubric has a scale
    of scores."""
    autograder_model_name: Text | None = None
    """The judge under test, as litellm knows it, such as openai/gpt-4.1-mini."""
    judges: Annotated[
        tuple[PanelJudge, ...],
        BeforeValidator(_one_judge_is_a_panel),
        Field(strict=False, description="a list of judges, each a mapping with a name"),
    ] = ()
    """A panel: every case is put to each of these judges, with one item per judge."""
    max_workers: Count = 10
    """Model calls in flight at once."""
    tests_to_evaluate: Tests = ()
    """The tests that are judged; the others are only made. Empty: all of tests_to_run."""
    metric: Text = "accuracy_score"
    """The metric of RAND's report: accuracy_score, or a scikit-learn metric of labels against
    labels."""
    aggregation_method: Annotated[
        Literal["majority_vote"] | None, Field(description="majority_vote or null")
    ] = None
    """majority_vote adds the panel's vote to the report."""
    aggregation_reference_column: Ignored = None
    overwrite_results: Ignored = None
    bootstrap_size: Ignored = None
    bootstrap_repetitions: Ignored = None
    get_cost_curves: Ignored = None


class Admin(Section):
    """The suite as a whole."""

    module_name: Text | None = None
    """The module: its files are in inputs/data/{module_name}."""
    time_stamp: Text | None = None
    """Added to the name of the suite's outputs folder."""
    test_debug_mode: Ignored = None
    output_file_format: Annotated[Literal["csv", "xlsx"], Field(description="csv or xlsx")] = "csv"
    """The format of the tables; xlsx needs openpyxl."""
    dataset_config: DatasetConfig = DatasetConfig.model_construct()
    """Where the module's files are."""
    perturbation_config: PerturbationConfig = PerturbationConfig.model_construct()
    """Which tests are made."""
    evaluation_config: EvaluationConfig = EvaluationConfig.model_construct()
    """How the tests are judged."""


class SyntheticDataParams(Section):
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


class Output(Section):
    """Where the cases of the tests are kept."""

    dir: PathText | None = None
    """The folder of agent_perturbations.jsonl and of the debug files. inputs/suites/{suite} for a
    suite to be committed."""
    results_dir: PathText | None = None
    """The folder of the tables, the reports and case_results.jsonl: outputs/NAME for
    inputs/configs/NAME.yml, and for a config elsewhere a folder below outputs that mirrors where it
    is. Two configs share one only where both name it."""
    write_jsonl: Flag = True
    """Whether made cases are written to agent_perturbations.jsonl."""
    overwrite: Flag = True
    """true: the selected cases are made anew. false: cases that are there are reused, and missing
    ones are added."""


class AgentConfig(Section):
    """How cases are made."""

    input_log_path: PathText | None = None
    """The Inspect log (.eval or .json) whose runs become cases."""
    max_sample_mb: Count = MAX_SAMPLE_MB
    """How much one sample of the log may be when unpacked, in MB, as may its header and its
    summaries."""
    rubric_path: PathText | None = None
    """The rubric file, YAML or JSON."""
    target_rubric_ids: Annotated[
        tuple[str, ...], Field(strict=False, description="a list of rubric ids")
    ] = ()
    """The rubrics to use, by id. Empty: all in the file."""
    planner: Stage = Stage.model_construct()
    """Plans which turns to edit, and to what end."""
    editor: Stage = Stage.model_construct()
    """Writes each planned edit."""
    summary: Stage = Stage.model_construct()
    """Sums up long runs for the editor and the verifier. Left out: the editor's model."""
    verifier: Verifier | None = None
    """Confirms the label of every made case. Left out: the editor's model. false: labels stay
    unverified, and every output says so."""
    max_summary_messages: Count = 20
    """How many of the last turns a summary covers."""
    max_edit_rounds: Count = 3
    """At most this many turns of a run are edited."""
    transcript_preprocessors: (
        Annotated[tuple[str, ...], PlainValidator(values.names), values.NAMES_JSON] | None
    ) = None
    """Functions that change each run before it is used, in this order, such as
    pytest_jrh.suite.preprocessors.drop_reasoning_traces."""
    transcript_preprocessor: (
        Annotated[tuple[str, ...], PlainValidator(values.names), values.NAMES_JSON] | None
    ) = None
    """Another name of transcript_preprocessors."""
    autograder_template: Template | None = None
    """The same as template in admin.evaluation_config, and stronger."""
    autograder_default_params: FreeMapping = {}
    """lowest_score and highest_score, for rubrics without score_levels."""
    score_targets: Annotated[
        tuple[int, ...], PlainValidator(values.score_targets), values.SCORES_JSON
    ] = ()
    """Ordinal: the scores that cases are made for. Left out: every score of the scale."""
    objective: Annotated[Objective, Field(description="fail or pass")] = "fail"
    """What agent_perturbation aims at: fail violates the rubric, pass satisfies it."""
    pass_required: Flag = True
    """Whether a case with objective pass needs the verifier's PASS."""
    output: Output = Output.model_construct()
    """Where made cases are kept."""
    sample_num_from_orig: Runs | None = None
    """How many runs of the log to use; 0 means all."""
    sampling_seed: Whole | None = None
    """Which runs are picked: the same for the same seed."""
    trace_messages: Ignored = None


class Replay(Section):
    """Where recordings are and how they are used (rules G)."""

    cassette_dir: PathText | None = None
    """Where recordings are. Left out: inputs/cassettes/{suite}."""
    record_mode: Recording | None = None
    """none: answer from recordings alone. once: record cases that are not complete. new_episodes:
    record what is
    missing. all: everything anew."""
    judge_record_mode: Recording | None = None
    """The record mode of the judge's calls alone, so that a changed judge can be recorded over the
    same cases."""
    frozen: Annotated[str | bool, PlainValidator(values.frozen), values.FROZEN_JSON] = False
    """Take the cases from agent_perturbations.jsonl alone; the log is then not read."""


class Gate(Section):
    """When the session fails (rule J4)."""

    min_accuracy: Annotated[
        float | dict[str, float] | None, PlainValidator(values.accuracy), values.ACCURACY_JSON
    ] = None
    """The share of cases that the judge must get right, over all or per test."""
    lower_bound: Flag = False
    """Hold the lower end of the accuracy's 95% interval against min_accuracy, not the accuracy
    itself."""
    max_regressions: Annotated[int, Field(ge=0, description="a whole number, 0 or above")] = 0
    """How many cases may be judged wrong now that were right in the baseline."""
    min_cases: Annotated[int, Field(ge=0, description="a whole number, 0 or above")] = 1
    """How many cases must have a verdict."""
    allow_uncompared: Flag = False
    """Let the suite pass where no case can be compared with the baseline, as when the suite is
    new."""


class Config(Section):
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
    judge: JudgeStage = JudgeStage.model_construct()
    """The judge's model, prompt and settings."""
    gate: Gate = Gate.model_construct()
    """When the session fails."""
    replay: Replay = Replay.model_construct()
    """Where recordings are and how they are used."""
