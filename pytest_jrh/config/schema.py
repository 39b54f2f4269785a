"""The shape of a config file, in words of our own (`config.rand` converts RAND's into it); and what
does not fit it, pydantic's errors in our words.

The text below a field is its description: what it is for. Every key may be left out or null; what
must be there in the end is decided in `config.load`, which knows the fallbacks. What a field
takes is said by `Takes`; editors show both, by the JSON schemas in `pytest_jrh/schema/`, which
`python -m tools.reference` makes of this file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, PlainValidator, ValidationError
from pydantic.config import JsonDict

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.probes.probe import MOST_BASES
from pytest_jrh.cases.tests import BY_KEY, KINDS
from pytest_jrh.config.rand import RandTest, RandTestName
from pytest_jrh.core.calls import EDITOR, MAKING, PromptsOf, RecordMode, StageSpec
from pytest_jrh.core.cases import DEFAULT_SEED, LabelledBy
from pytest_jrh.core.documents import KeyPath, Mistake, dotted, listed, printable, received, shown
from pytest_jrh.core.scales import LONGEST_SCALE, Objective, Said
from pytest_jrh.core.sections import (
    BlindSection,
    ConfigSection,
    Count,
    Flag,
    GateRules,
    InputFormat,
    JudgeStage,
    ModelDefaults,
    NoVerifier,
    Of,
    PathText,
    Runs,
    Several,
    StageSection,
    Takes,
    Text,
    VerifierSection,
    Whole,
    nested,
    takes,
)
from pytest_jrh.core.text import nearest_hint
from pytest_jrh.judges import with_own_keys

SCALE = f"binary, ordinal, or the lowest and the highest of 2 to {LONGEST_SCALE} scores, as [1, 5]"


def _score_targets(value: object) -> tuple[Said, ...]:
    """Read a list of scores and classes, or text like "0, 2 ,3": each once."""
    parts = value.split(",") if isinstance(value, str) else value
    targets: dict[Said, None] = {}
    for item in parts if isinstance(parts, list) else [parts]:
        text = str(item).strip()
        is_class = isinstance(item, str) and not re.fullmatch(r"[+-]?\d+", text)
        # As text, so that true and 1.5 are none.
        targets[text if is_class else int(text)] = None
    return tuple(targets)


def _with_width(ends: list[int]) -> list[int]:
    """Refuse the ends of a scale that are not the lowest first, or too far apart."""
    low, high = ends
    if not 0 < high - low < LONGEST_SCALE:
        raise ValueError
    return ends


TwoAnswers: TypeAlias = Annotated[
    dict[Literal["1", "0"], Annotated[Text, Takes('text; words like "yes" in quotes')]],
    Field(min_length=2),
    Takes('two names, such as {1: harmful, 0: harmless}; words like "yes" in quotes'),
]


def _list_of(keys: tuple[str, ...]) -> Any:
    """What pydantic checks of a list of kinds of tests, which a config gives by their keys."""
    says = Takes(f"a list of tests ({', '.join(keys)})")
    names = AfterValidator(
        lambda written: tuple(dict.fromkeys(BY_KEY[key].name for key in written))
    )
    return Annotated[tuple[Literal[keys], ...], Field(strict=False), names, says]  # type: ignore[valid-type]


if TYPE_CHECKING:
    Kinds: TypeAlias = tuple[str, ...]
    BaseKinds: TypeAlias = tuple[str, ...]
else:
    Kinds = _list_of(tuple(BY_KEY))
    BaseKinds = _list_of(tuple(key for key, kind in BY_KEY.items() if not kind.derived))


class _Drawn(ConfigSection):
    """How many cases a probe has, and of which others they are derived."""

    of: BaseKinds = ()
    """The tests whose cases are changed. Empty: all of the suite."""
    max_cases: Count = MOST_BASES
    """How many cases are changed at most: a draw over all of the suite."""


class ProbeSection(_Drawn):
    """What is said of a probe: how many cases it has, and of which others they are derived."""

    variants: Annotated[
        Several[Text],
        Takes("all, or a list of names of variants"),
    ] = ()
    """all: every case is changed in every way that the probe has. A list: in each of these ways, of
    which a name may also be a part, such as an attack. Left out: in 4 ways for prompt_injection,
    else in one, drawn so that all come equally often."""


class ProbeByText(_Drawn):
    """A probe by text: the editor changes what the agent says, and the verifier confirms it."""

    instruction: Text
    """What the editor is told to do with what the agent says, in words."""
    changes: Literal["none", "flip"] = "none"
    """What that does to the label. none: it stays. flip: it becomes the other one, and so must the
    verdict. A case for which the verifier does not find so is skipped."""

    @property
    def variants(self) -> tuple[str, ...]:
        """Which of its variants it has."""
        return (self.changes,)


if TYPE_CHECKING:
    ProbeName: TypeAlias = str
else:
    # What pydantic checks: the probes that are registered.
    ProbeName = Annotated[Literal[tuple(PROBES)], Takes(f"a probe ({', '.join(PROBES)})")]


if TYPE_CHECKING:
    JudgeSection = JudgeStage
else:
    # With the keys of every registered kind of judge.
    JudgeSection = with_own_keys(JudgeStage)


class PanelJudge(JudgeSection):
    """One judge of a panel."""

    name: Text
    """The name of this judge in node ids, recordings and reports."""


class SuiteSection(ConfigSection):
    """What is judged, by which rubrics."""

    log: Annotated[
        Several[PathText],
        Takes("a file, a folder, a glob, or a list of these"),
    ] = ()
    """The runs that become cases: Inspect logs (.eval or .json), conversations (.jsonl, or a .json
    list), ATIF trajectories (.json) or jobs of Harbor, as a file, a folder, a glob, or a list of
    these."""
    of: Of = "runs"
    """What is judged. runs: what an agent did. answers: single answers to requests, of a table (CSV
    or JSON lines), of results of another tool, or of an Inspect log of one turn. pairs: which of
    two answers is better, of a table."""
    rubrics: PathText | None = None
    """The rubric file, YAML or JSON. Where rubrics have score_levels, the suite is ordinal: each
    has a scale of scores. Where they have classes, each has words without an order. Else it is
    binary: each is violated or satisfied."""
    format: Annotated[
        InputFormat,
        Takes("a mapping of parts to JSON pointers, such as {messages: /log, id: [/task, /trial]}"),
    ] = InputFormat.model_construct()
    """Where the parts of a conversation are, where it is not {id, messages, ...}: messages, answer,
    system, id, epoch, cluster, metadata, input, target."""
    answers: TwoAnswers | None = None
    """Of a binary suite what a judge may answer, such as {1: harmful, 0: harmless}: the words of
    prompts, labels and reports. Left out: 1 is violated, and 0 satisfied."""
    within: Annotated[int | None, Field(ge=0), Takes("an integer >= 0")] = None
    """Ordinal: how many levels off the label a score may be and is still right. Left out: 0 on
    scales of up to 10 levels, else a fiftieth of the scale (2 of 0 to 100)."""


class CasesSection(ConfigSection):
    """Which cases are made, and how."""

    kinds: Kinds = ()
    """Which cases are made. perturbation: runs edited to violate a rubric. positives: runs that
    satisfy it. labels: runs as they are, with the labels that the section `labels` names. A probe:
    cases of the other tests, changed in a way that must not change the verdict."""
    rubrics: Annotated[tuple[Text, ...], Field(strict=False), Takes("a list of rubric ids")] = ()
    """The rubrics to use, by id. Empty: all in the file."""
    sample: Runs = 0
    """How many runs of the log to use; 0 means all."""
    sampling: Literal["rand", "kept"] = "rand"
    """How runs are picked. rand: by their places in the log, as RAND's harness does; one run more
    and all may be others. kept: those that were recorded first, then by their ids; also which cases
    and variants probes have."""
    seed: Whole = DEFAULT_SEED
    """Which runs are picked: the same for the same seed."""
    edits: Literal["text", "acts"] = "text"
    """What an edit may change. text: the words of the agent's turns. acts: its calls and their
    results, too: one is changed, put in or left out, and what follows is made to agree."""
    edits_at_most: Count = 3
    """At most this many turns of a run are edited."""
    scores: Annotated[
        tuple[Said, ...],
        PlainValidator(_score_targets, json_schema_input_type=int | str | list[int | str]),
        Takes('integers or classes, as a list or as text like "1,3"'),
    ] = ()
    """The scores, classes and n/a that cases are made for. Left out: all; of two answers not the
    one that positives are made for."""
    flip: Flag = False
    """true: of runs with a label alone, and made to have another one. One that satisfies its rubric
    is edited to violate it (perturbation), and one that violates it is mended (positives); on a
    scale there is no case for the score that a run has."""
    examples: Annotated[int, Field(ge=0), Takes("an integer >= 0")] = 0
    """Ordinal: so many other runs that are labelled with the score to reach are shown to planner
    and editor, drawn by seed."""
    frozen: Annotated[
        bool | PathText,
        Takes("true (the JSONL in output.dir), false, or the path of a JSONL file"),
    ] = False
    """Take the cases from agent_perturbations.jsonl alone; the log is then not read."""
    preprocess: Annotated[
        Several[Text], Takes("the dotted name of a function, or a list of them")
    ] = ()
    """Functions that change each run before it is used, in this order, such as
    pytest_jrh.config.preprocessors.drop_reasoning_traces."""
    probes: dict[
        Annotated[str, Field(pattern="^[a-z0-9_]+$"), Takes("a name in a-z, 0-9 and _")],
        ProbeByText,
    ] = Field(default_factory=dict)
    """Probes by text, by a name of their own, such as {third_person: {instruction: "..."}}."""
    by: Annotated[
        Several[Text], Takes("a field of the samples' metadata, or a list of fields")
    ] = ()
    """Fields of the samples' metadata, or JSON pointers: reports show what is wrong for each value,
    the worst first; values with fewer than 10 cases together."""
    cluster: Annotated[
        Text | None, Takes("a field of the samples' metadata, or a JSON pointer such as /task/id")
    ] = None
    """A field of the samples' metadata: samples with the same value belong together, as trials of
    one task do, and are one observation in every interval. /task/id names one further down."""


def _or_false(schema: dict[str, Any]) -> None:
    schema["anyOf"].append({"const": False})


class EditorSection(StageSection):
    """The models that make cases: the editor's, and beside it those of the other stages."""

    planner: StageSection = StageSection.model_construct()
    """Plans which turns to edit, and to what end."""
    summary: StageSection = StageSection.model_construct()
    """Summarizes long runs where a prompt names `summary`. Left out: the editor's model."""
    verifier: Annotated[VerifierSection | None, Field(json_schema_extra=_or_false)] = None
    """Confirms the label of every made case. Left out: the editor's model. false: labels stay
    unverified, and every output says so."""


LABEL_SOURCES = ("path", "scorer", "metadata")


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
    map: Annotated[
        dict[
            str, Annotated[str | int | float | bool, Takes("text, a number, true or false")] | None
        ],
        Takes("a mapping of values to labels"),
    ] = Field(default_factory=dict)
    """The label for each value that is there, such as {C: 0, I: 1}; null for values that are no
    label. Needed for numbers of the log in a binary suite, where 1 is violated."""
    rubric_id: Text | None = None
    """The rubric that the labels are about, where no column rubric_id says so."""
    unlabelled: Literal["judge"] | None = None
    """judge: runs without a label are judged, too, in a binary suite, so that reports say how often
    runs are violated. Left out: they are no cases."""
    annotator: Text | None = None
    """What reports call the people who gave the labels, where no column annotator says so."""
    by: LabelledBy | None = None
    """Who gave the labels, for the reports: people, program, or column where nobody is known. Left
    out: people for a file, column for a field of answers, else program."""

    @property
    def source(self) -> str:
        """The key that says where the labels are."""
        return next((key for key in LABEL_SOURCES if getattr(self, key) is not None), "path")

    @property
    def labelled_by(self) -> LabelledBy:
        """Who gave the labels."""
        return self.by or ("people" if self.source == "path" else "program")


class Recording(ConfigSection):
    """Where recordings are and how they are used."""

    mode: RecordMode | None = None
    """none: answer from recordings alone. once: record cases that are not complete. new_episodes:
    record what is missing. all: record everything again.
    """
    dir: PathText | None = None
    """Where recordings are. Left out: inputs/cassettes/{suite}."""
    max_workers: Count = 10
    """Model calls in flight at once."""

    def record_modes(
        self, every_call: RecordMode | None, judge: RecordMode | None
    ) -> tuple[RecordMode, RecordMode]:
        """The record modes of generation and of judging, with the command line's two over these."""
        generation: RecordMode = every_call or self.mode or "none"
        return generation, judge or generation


class Output(ConfigSection):
    """Where cases and results are kept."""

    dir: PathText | None = None
    """The folder of agent_perturbations.jsonl: inputs/suites/{suite} for a suite to be
    committed."""
    rand: Flag = False
    """Whether tables, JSON reports and debug files are written as RAND's harness has them."""


class RandSection(ConfigSection):
    """What only files of RAND's harness say, so that they run as they are."""

    module: Text | None = None
    """The name of the folders of the project's own prompts and of RAND's inputs and outputs. Left
    out: the file's name."""
    scale: (
        Annotated[
            Literal["binary", "ordinal"]
            | Annotated[
                list[Annotated[int, Field(strict=False)]],
                Field(min_length=2, max_length=2),
                AfterValidator(_with_width),
            ],
            Takes(SCALE),
        ]
        | None
    ) = None
    """binary or ordinal. Two scores, lowest and highest: that is the scale of rubrics without
    score_levels."""
    instruction: Annotated[str | None, Takes("text")] = None
    """A note to the judge, in its prompt."""
    instruction_path: PathText | None = None
    """A file with that note."""
    judge_model: Text | None = None
    """The model of the judge, or of each judge of a panel, that names none and is not code."""
    cases_model: Text | None = None
    """The model of every stage that makes cases and names none."""
    summary_turns: Count = 20
    """How many of the last turns a summary covers."""
    tests: dict[RandTestName, RandTest] = Field(default_factory=dict)
    """Of a suite of answers the tests by RAND's names; a rubric of it may be plain text."""
    judged: Kinds = ()
    """The tests that are judged; the others are only made. Empty: all of cases.kinds."""
    objective: Objective = "fail"
    """What perturbation aims at: fail violates the rubric, pass satisfies it."""
    confirmed: Flag = True
    """Whether a case with objective pass needs the verifier's PASS."""
    renew: Flag = True
    """true: the selected cases are made again. false: existing cases are reused, and missing ones
    are added."""
    write_jsonl: Flag = True
    """Whether made cases are written to agent_perturbations.jsonl."""
    review: Flag = False
    """Look at every made case in the browser before any is judged, in a recording mode on a
    terminal."""
    results: PathText | None = None
    """The folder of results.jsonl, the report and the tables."""
    stamp: Text | None = None
    """Added to the name of the suite's outputs folder."""
    table: Literal["csv", "xlsx"] = "csv"
    """What a config of RAND's says; tables are CSV."""
    metric: Text = "accuracy_score"
    """The metric of the report: accuracy_score, balanced_accuracy_score, cohen_kappa_score or
    f1_score; the others where scikit-learn is installed."""


class Config(ConfigSection):
    """A whole config file."""

    suite: SuiteSection = SuiteSection.model_construct()
    """What is judged, by which rubrics."""
    cases: CasesSection = CasesSection.model_construct()
    """Which cases are made, and how."""
    probes: dict[ProbeName, ProbeSection] = Field(default_factory=dict)
    """By its name, how many cases each probe of cases.kinds has, and of which others."""
    models: ModelDefaults = ModelDefaults.model_construct()
    """What every stage and judge takes over where it does not set it itself."""
    judge: JudgeSection = JudgeSection.model_construct()
    """The judge under test: its model, prompt and settings."""
    judges: Annotated[
        Several[PanelJudge],
        Takes("a list of judges, each a mapping with a name"),
    ] = ()
    """A panel: every case is put to each of these judges, with one item per judge."""
    editor: EditorSection = EditorSection.model_construct()
    """The models that make cases."""
    labels: Annotated[
        Several[LabelSection],
        Takes("a mapping with path, scorer or metadata, or a list of such mappings"),
    ] = ()
    """The labels of runs as they are, each with its known verdict. A run with another label that no
    stage edits is no case of another kind, and no judge is given the field."""
    blind: BlindSection = BlindSection.model_construct()
    """Blind labelling in the browser."""
    gate: GateRules = GateRules.model_construct()
    """When the session fails."""
    recording: Recording = Recording.model_construct()
    """Where recordings are and how they are used."""
    output: Output = Output.model_construct()
    """Where cases and results are kept."""
    rand: RandSection = RandSection.model_construct()
    """What only RAND's files say."""

    @property
    def tests(self) -> tuple[str, ...]:
        """The names of all tests: those of RAND's, the kinds, and the probes by text."""
        return (*self.rand.tests, *self.cases.kinds, *self.cases.probes)

    @property
    def prompts_of(self) -> PromptsOf:
        """What the built-in prompts are about."""
        return self.cases.edits if self.suite.of == "runs" else "answer"

    def making_sections(self) -> dict[StageSpec, StageSection]:
        """The sections of the stages that make cases of the suite's kinds, but for those that are
        off.
        """
        asked: set[str] = set()
        for name in self.tests or KINDS:
            asked.update(KINDS[name].stages)
        sections = {}
        for spec in MAKING:
            section = self.editor if spec is EDITOR else getattr(self.editor, spec.name)
            is_asked = spec.name in asked and (spec.for_answers or self.suite.of == "runs")
            if is_asked and not isinstance(section, NoVerifier):
                sections[spec] = section or StageSection()
        return sections


_UNBLANK = Annotated[str, Field(pattern=r"\S"), Takes("text")]


class LevelEntry(ConfigSection, extra="ignore"):
    """One score of the scale."""

    score: Whole
    """An integer."""
    label: _UNBLANK
    """When this score is due."""


class RubricProbes(ConfigSection):
    """What probes do with a rubric."""

    skip: Annotated[tuple[Text, ...], Field(strict=False), Takes("a list of probes")] = ()
    """The probes that change no case of this rubric, because what they change is what it is
    about."""


_ONE_TEXT: JsonDict = {"oneOf": [{"required": ["instructions"]}, {"required": ["instruction"]}]}


class RubricEntry(ConfigSection, extra="ignore", json_schema_extra=_ONE_TEXT):
    """One criterion."""

    id: Text
    """A short unique name, used in node ids, recordings and reports."""
    instructions: _UNBLANK | None = None
    """The criterion in full; the judge sees nothing else of it: what counts, and what does not."""
    instruction: _UNBLANK | None = None
    """Another name of instructions."""
    score_levels: Annotated[
        tuple[LevelEntry, ...],
        Field(strict=False),
        Takes('a list of levels such as {score: 0, label: "..."}'),
    ] = ()
    """Ordinal suites: the scale, as integers without gaps."""
    classes: Annotated[
        dict[str, _UNBLANK],
        Field(min_length=2, max_length=20),
        Takes("2 to 20 classes, each a name with when it is due, such as {tie: Both are as good.}"),
    ] = Field(default_factory=dict)
    """In place of score_levels: the answers, words without an order, each with when it is due."""
    answers: TwoAnswers | None = None
    """For `label`: what the two answers are called, such as {1: harmful, 0: harmless}; of a suite
    `suite.answers` says so."""
    not_applicable: _UNBLANK | None = None
    """When the answer is n/a: the rubric is about nothing in the case. Left out: it never is."""
    probes: RubricProbes | None = None
    """What probes do with this rubric, such as {skip: [verdict_pressure]}."""


_KEY_WORDS = re.compile(r"key|token|secret|password|auth", re.IGNORECASE)
# How pydantic's place of a key of a mapping ends.
_OF_A_KEY = "[key]"


def misfits(
    error: ValidationError,
    root: type[ConfigSection],
    place: KeyPath,
    name: Callable[[KeyPath], str] = dotted,
) -> Iterator[Mistake]:
    """All that does not fit of a section `root` at a place; `name` is what the file calls a key."""
    for detail in error.errors(include_url=False):
        path, value = detail["loc"], detail["input"]
        if path[-1:] == (_OF_A_KEY,):
            path = path[:-1]
        section, words = _section_at(root, path), detail.get("ctx", {}).get("expected", "")
        hint = nearest_hint(str(value), re.findall("'(.*?)'", words))
        match detail["type"]:
            case "extra_forbidden":
                key, keys = str(path[-1]), section.model_fields
                hint = nearest_hint(key, keys, "key")
                if issubclass(section, StageSection) and _KEY_WORDS.search(key):
                    hint = "keys come from the environment, such as OPENAI_API_KEY; no config "
                    hint += "holds one"
                where = "the sections of a config are"
                if len(path) > 1:
                    where = f"the keys of {name((*place, *path[:-1]))} are"
                message = f"unknown key; {where} {listed(keys)}"
            case "missing":
                field = section.model_fields[str(path[-1])]
                message = f"is missing; must be {takes(field.annotation, field.metadata)}"
            case "takes" if isinstance(value, list):
                got = printable(json.dumps(value, default=str))
                message = f"got {got}; must be {detail['msg']}"
            case "takes":
                message = received(value, detail["msg"])
            case "literal_error":
                message = received(value, words.replace("'", ""))
            case "model_type":
                message = received(value, f"a mapping with the keys {listed(section.model_fields)}")
                if issubclass(section, StageSection) and isinstance(value, str):
                    hint = f"write {path[-1]}: {{model: {shown(value)}}}"
            case _:
                # All but mappings of any names have `Takes`.
                message = received(value, "a mapping")
        yield Mistake((*place, *path), message, hint)


def _section_at(root: type[ConfigSection], path: Iterable[str | int]) -> type[ConfigSection]:
    """The section class at a path, or around it."""
    section = root
    for part in path:
        field = section.model_fields.get(str(part))
        for kind in nested(field and field.annotation):
            if isinstance(kind, type) and issubclass(kind, ConfigSection):
                section = kind
                break
    return section
