"""The shape of a config file: RAND's schema and our own sections (semantics A1, A6, A10).

A field's description says what may stand there, in the words of an error message. Every key may be
left out or null; what must be there in the end is decided in `suite.resolve`, which knows the fallbacks.
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
from pydantic_core import PydanticCustomError

from pytest_jrh.models import TESTS, Objective, RecordMode, TestName
from pytest_jrh.suite.problems import shown

OUR_ERROR = "jrh"


class NotUsed:
    """Marks RAND keys that are accepted and have no meaning for agentic tests (semantics A2)."""


_NON_EMPTY = StringConstraints(min_length=1, strip_whitespace=True)

Text: TypeAlias = Annotated[str, _NON_EMPTY, Field(description="text")]
Flag: TypeAlias = Annotated[bool, Field(description="true or false, without quotes")]
Count: TypeAlias = Annotated[int, Field(ge=1, description="a whole number, at least 1")]
Whole: TypeAlias = Annotated[int, Field(description="a whole number")]
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


def _score_targets(value: object) -> tuple[int, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    items = parts if isinstance(parts, list) else [parts]
    scores = set()
    for item in items:
        try:
            scores.add(int(item) if isinstance(item, str) else _whole(item))
        except ValueError:
            raise PydanticCustomError(
                OUR_ERROR,
                "got {item}; must be whole numbers, as a list or as text like {example}",
                {"item": shown(item), "example": '"1,3"'},
            ) from None
    return tuple(sorted(scores))


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError


def _accuracy(value: object) -> float | dict[str, float]:
    if isinstance(value, dict):
        if unknown := [key for key in value if key not in TESTS]:
            raise PydanticCustomError(
                OUR_ERROR,
                "got a threshold for {name}; the tests are {tests}",
                {"name": shown(unknown[0]), "tests": " and ".join(TESTS)},
            )
        return {name: _fraction(each) for name, each in value.items() if each is not None}
    return _fraction(value)


def _fraction(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise PydanticCustomError(
        OUR_ERROR,
        "got {value}; must be a number from 0 to 1, or a mapping of test names to such numbers",
        {"value": shown(value)},
    )


def _names(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    names = [item.strip() for item in items if isinstance(item, str)]
    for item in items:
        if not isinstance(item, str) or not item.strip():
            raise PydanticCustomError(
                OUR_ERROR,
                "got {item}; must be the dotted name of a function, or a list of them (in the order they run)",
                {"item": shown(item)},
            )
    return tuple(names)


def _frozen(value: object) -> str | bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise PydanticCustomError(
        OUR_ERROR,
        "got {value}; must be true (the JSONL in output.dir), false, or the path of a JSONL file",
        {"value": shown(value)},
    )


class Section(BaseModel):
    """A mapping in the config: strict, frozen, closed; a null value is the same as no key."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None or key not in cls.model_fields}


class RateLimitSection(Section):
    """At most `calls` calls in `period` seconds."""

    calls: Count
    period: Positive


class Stage(Section):
    """A stage model (semantics A6)."""

    model: Text | None = None
    prompt_path: PathText | None = None
    temperature: Annotated[float | None, Field(ge=0, description="a number, 0 or above")] = None
    system_prompt: Annotated[str | None, Field(description="text")] = None
    max_tokens: Count | None = None
    timeout: Annotated[float | None, Field(gt=0, description="a number of seconds above 0")] = None
    api_base: Annotated[
        str | None, Field(pattern=r"^https?://[^\s]+$", description="a URL that starts with http:// or https://")
    ] = None
    rate_limit: RateLimitSection | None = None


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


class PanelJudge(JudgeStage):
    """One judge of a panel (semantics E4)."""

    name: Text
    template: Template | None = None
    preprocess_columns_map: Ignored = None


def _without_nulls(value: object) -> object:
    return {key: each for key, each in value.items() if each is not None} if isinstance(value, dict) else value


class DatasetConfig(Section):
    """Where the module's files are."""

    dataset_name: Text | None = None
    default_params_path: Annotated[
        dict[str, str],
        BeforeValidator(_without_nulls),
        Field(description="a mapping of names to file names (instruction, rubric)"),
    ] = {}
    default_params: FreeMapping = {}
    use_original_data_as_expected: Ignored = None


class PerturbationConfig(Section):
    """Which tests are made."""

    use_HITL_process: Flag = False  # noqa: N815 - RAND's key
    tests_to_run: Tests = ()
    preprocess_columns_map: Ignored = None


def _one_judge_is_a_panel(value: object) -> object:
    return [value] if isinstance(value, dict) else value


class EvaluationConfig(Section):
    """How the tests are judged."""

    template: Template | None = None
    autograder_model_name: Text | None = None
    judges: Annotated[
        tuple[PanelJudge, ...],
        BeforeValidator(_one_judge_is_a_panel),
        Field(strict=False, description="a list of judges, each a mapping with a name"),
    ] = ()
    max_workers: Count = 10
    tests_to_evaluate: Tests = ()
    metric: Text = "accuracy_score"
    aggregation_method: Annotated[Literal["majority_vote"] | None, Field(description="majority_vote or null")] = None
    aggregation_reference_column: Ignored = None
    overwrite_results: Ignored = None
    bootstrap_size: Ignored = None
    bootstrap_repetitions: Ignored = None
    get_cost_curves: Ignored = None


class Admin(Section):
    """The suite as a whole."""

    module_name: Text | None = None
    time_stamp: Text | None = None
    test_debug_mode: Ignored = None
    output_file_format: Annotated[Literal["csv", "xlsx"], Field(description="csv or xlsx")] = "csv"
    dataset_config: DatasetConfig = DatasetConfig()
    perturbation_config: PerturbationConfig = PerturbationConfig()
    evaluation_config: EvaluationConfig = EvaluationConfig()


class SyntheticDataParams(Section):
    """RAND's generation settings; three of them matter here."""

    generation_model_name: Text | None = None
    sample_num_from_orig: Whole | None = None
    seed: Whole | None = None
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
    write_jsonl: Flag = True
    overwrite: Flag = True


class AgentConfig(Section):
    """How cases are made."""

    input_log_path: PathText | None = None
    rubric_path: PathText | None = None
    target_rubric_ids: Annotated[tuple[str, ...], Field(strict=False, description="a list of rubric ids")] = ()
    planner: Stage = Stage()
    editor: Stage = Stage()
    summary: Stage = Stage()
    verifier: Verifier | None = None
    max_summary_messages: Count = 20
    max_edit_rounds: Count = 3
    transcript_preprocessors: Annotated[tuple[str, ...], PlainValidator(_names)] | None = None
    transcript_preprocessor: Annotated[tuple[str, ...], PlainValidator(_names)] | None = None
    autograder_template: Template | None = None
    autograder_default_params: FreeMapping = {}
    score_targets: Annotated[tuple[int, ...], PlainValidator(_score_targets)] = ()
    objective: Annotated[Objective, Field(description="fail or pass")] = "fail"
    pass_required: Flag = True
    output: Output = Output()
    sample_num_from_orig: Whole | None = None
    sampling_seed: Whole | None = None
    trace_messages: Ignored = None


class Replay(Section):
    """Where recordings are and how they are used (semantics G)."""

    cassette_dir: PathText | None = None
    record_mode: Recording | None = None
    judge_record_mode: Recording | None = None
    frozen: Annotated[str | bool, PlainValidator(_frozen)] = False


class Gate(Section):
    """When the session fails (semantics J4)."""

    min_accuracy: Annotated[float | dict[str, float] | None, PlainValidator(_accuracy)] = None
    lower_bound: Flag = False
    max_regressions: Annotated[int, Field(ge=0, description="a whole number, 0 or above")] = 0
    min_cases: Annotated[int, Field(ge=0, description="a whole number, 0 or above")] = 1


class Config(Section):
    """A whole config file."""

    admin: Admin = Admin()
    synthetic_data_params: SyntheticDataParams = SyntheticDataParams()
    test_agent_perturbation_config: AgentConfig = AgentConfig()
    test_stochastic_stability_config: Ignored = None
    judge: JudgeStage = JudgeStage()
    gate: Gate = Gate()
    replay: Replay = Replay()
