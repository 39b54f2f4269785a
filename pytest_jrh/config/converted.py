"""The keys of RAND's files, and a config that is being put into words of our own.

Each row of `ROWS` says where a key of these files goes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.documents import Json, KeyPath, Mistakes, dotted
from pytest_jrh.core.stages import EDITOR


def key_path(name: str) -> KeyPath:
    """A key by its dotted name."""
    return tuple(name.split("."))


def _paths(names: dict[str, str]) -> tuple[tuple[KeyPath, KeyPath], ...]:
    return tuple((key_path(written), key_path(ours)) for written, ours in names.items())


AGENT = "test_agent_perturbation_config"
ROWS = _paths(
    {
        "admin.module_name": "rand.module",
        "admin.time_stamp": "rand.stamp",
        "admin.output_file_format": "rand.table",
        "admin.perturbation_config.use_HITL_process": "rand.review",
        "admin.perturbation_config.tests_to_run": "cases.kinds",
        "admin.perturbation_config.probes": "probes",
        "admin.evaluation_config.autograder_model_name": "rand.judge_model",
        "admin.evaluation_config.judges": "judges",
        "admin.evaluation_config.max_workers": "recording.max_workers",
        "admin.evaluation_config.tests_to_evaluate": "rand.judged",
        "admin.evaluation_config.metric": "rand.metric",
        "synthetic_data_params.generation_model_name": "rand.cases_model",
        "test_agent_perturbation_config.input_log_path": "suite.log",
        "test_agent_perturbation_config.input_format": "suite.format",
        "test_agent_perturbation_config.cluster_key": "cases.cluster",
        "test_agent_perturbation_config.rubric_path": "suite.rubrics",
        "test_agent_perturbation_config.labels": "labels",
        "test_agent_perturbation_config.target_rubric_ids": "cases.rubrics",
        "test_agent_perturbation_config.editor": EDITOR.name,
        "test_agent_perturbation_config.planner": "editor.planner",
        "test_agent_perturbation_config.summary": "editor.summary",
        "test_agent_perturbation_config.verifier": "editor.verifier",
        "test_agent_perturbation_config.max_summary_messages": "rand.summary_turns",
        "test_agent_perturbation_config.max_edit_rounds": "cases.edits_at_most",
        "test_agent_perturbation_config.score_targets": "cases.scores",
        "test_agent_perturbation_config.objective": "rand.objective",
        "test_agent_perturbation_config.edits": "cases.edits",
        "test_agent_perturbation_config.pass_required": "rand.confirmed",
        "test_agent_perturbation_config.sample_num_from_orig": "cases.sample",
        "test_agent_perturbation_config.sampling": "cases.sampling",
        "test_agent_perturbation_config.sampling_seed": "cases.seed",
        "test_agent_perturbation_config.transcript_preprocessors": "cases.preprocess",
        "test_agent_perturbation_config.output.dir": "output.dir",
        "test_agent_perturbation_config.output.results_dir": "rand.results",
        "test_agent_perturbation_config.output.write_jsonl": "rand.write_jsonl",
        "test_agent_perturbation_config.output.overwrite": "rand.renew",
        "test_agent_perturbation_config.output.rand": "output.rand",
    }
)
FALLBACKS = _paths(
    {
        "admin.evaluation_config.repeats": "judge.repeats",
        "synthetic_data_params.sample_num_from_orig": "cases.sample",
        "synthetic_data_params.seed": "cases.seed",
        "test_agent_perturbation_config.transcript_preprocessor": "cases.preprocess",
    }
)
"""They count where no other key says it."""
UNUSED: tuple[KeyPath, ...] = tuple(
    map(
        key_path,
        (
            "admin.test_debug_mode",
            "admin.dataset_config.use_original_data_as_expected",
            "admin.perturbation_config.preprocess_columns_map",
            "admin.evaluation_config.aggregation_reference_column",
            "admin.evaluation_config.overwrite_results",
            "admin.evaluation_config.bootstrap_size",
            "admin.evaluation_config.bootstrap_repetitions",
            "admin.evaluation_config.get_cost_curves",
            "synthetic_data_params.validation_model_name",
            "synthetic_data_params.max_tokens_generation",
            "synthetic_data_params.max_tokens_validation",
            "synthetic_data_params.max_workers",
            "synthetic_data_params.use_similarity_filter",
            "synthetic_data_params.target_num_per_bucket",
            "synthetic_data_params.similarity_threshold",
            "synthetic_data_params.rescore_sample_size",
            "synthetic_data_params.initial_temp",
            "synthetic_data_params.num_seed_examples_per_generation",
            "synthetic_data_params.temp_increment",
            "synthetic_data_params.max_temp_cap",
            "synthetic_data_params.max_consecutive_failures",
            "test_agent_perturbation_config.trace_messages",
            "test_stochastic_stability_config",
        ),
    )
)
"""Keys of RAND's without meaning for agentic tests: accepted, and named once."""
DEBUG = key_path("admin.test_debug_mode")
COLUMNS = key_path("admin.perturbation_config.preprocess_columns_map")
DATASET = key_path("admin.dataset_config.dataset_name")
PARAM_FILES = key_path("admin.dataset_config.default_params_path")
PARAMS = key_path("admin.dataset_config.default_params")
RUN = key_path("admin.perturbation_config.tests_to_run")
JUDGED = key_path("admin.evaluation_config.tests_to_evaluate")
PROBES = key_path("admin.perturbation_config.probes")
AGGREGATION = key_path("admin.evaluation_config.aggregation_method")
TEMPLATE = key_path("admin.evaluation_config.template")
AGENT_TEMPLATE: KeyPath = (AGENT, "autograder_template")
AGENT_PARAMS: KeyPath = (AGENT, "autograder_default_params")
# Of several keys, or of what stands in folders that are named after the module.
_MADE_OF = (
    DATASET,
    PARAM_FILES,
    PARAMS,
    AGGREGATION,
    TEMPLATE,
    AGENT_TEMPLATE,
    AGENT_PARAMS,
)
KNOWN = (*(written for written, _ in (*ROWS, *FALLBACKS)), *_MADE_OF, *UNUSED)
SECTIONS = tuple(dict.fromkeys(str(path[0]) for path in KNOWN))
"""The sections that only such files have."""
KINDS_KEY: KeyPath = ("cases", "kinds")


@dataclass
class Converted:
    """A config in our words: `data`, where each of its keys was `written`, the `unused` keys of the
    file, and the `mistakes` in it that were found so far.
    """

    data: Json
    sections: frozenset[str]
    """Those of the file."""
    written: dict[KeyPath, KeyPath] = field(default_factory=dict)
    unused: list[KeyPath] = field(default_factory=list)
    mistakes: Mistakes = field(default_factory=Mistakes)

    def put(
        self, written: KeyPath, ours: KeyPath, value: Any, *, is_fallback: bool = False
    ) -> None:
        """Place a value of the file, unless it is None; a fallback gives way to another key."""
        parent: Any = self.data
        for part in ours[:-1]:
            if parent.get(part) is None:
                parent[part] = {}
            parent = parent[part]
            if not isinstance(parent, dict):
                return
        before = parent.get(ours[-1])
        if value is None or (before is not None and is_fallback):
            return
        if isinstance(before, dict) and isinstance(value, dict):
            # A section in parts, such as the editor's and, in it, the planner's.
            value = {**value, **before}
        elif before is not None:
            other = dotted(self.written.get(ours, ours))
            self.mistakes.add(written, f"{other} says the same; keep one of them")
            return
        parent[ours[-1]] = value
        self.written[ours] = written

    @property
    def is_rands(self) -> bool:
        """Whether the file is in RAND's words."""
        return not self.sections.isdisjoint(SECTIONS)

    def name(self, ours: KeyPath) -> str:
        """What the file calls a key."""
        return dotted(self.written_key(ours))

    def kind(self, name: str) -> str:
        """What the file calls a kind of test."""
        return name if KINDS_KEY in self.written else KINDS[name].key

    def written_key(self, ours: KeyPath) -> KeyPath:
        """Where a key of ours is, or would be, in the file: of RAND's, what RAND calls it."""
        is_of_rands = ours[:1] and ours[0] not in self.sections and self.is_rands
        of_rands = {target: source for source, target in ROWS} if is_of_rands else {}
        for sources in (self.written, of_rands):
            for end in range(len(ours), 0, -1):
                if ours[:end] in sources:
                    return (*sources[ours[:end]], *ours[end:])
        return ours
