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
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainValidator, ValidationError
from pydantic.config import JsonDict

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.probes.probe import MOST_BASES
from pytest_jrh.cases.tests import BY_KEY, KINDS
from pytest_jrh.config.rand import RandTest, RandTestName
from pytest_jrh.core import Json, listed, nearest_hint, printable, received, shown
from pytest_jrh.core.calls import EDITOR, MAKING, PromptsOf, RecordMode, StageSpec
from pytest_jrh.core.cases import DEFAULT_SEED, LabelledBy
from pytest_jrh.core.documents import KeyPath, Mistake, dotted
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


TwoAnswers = Annotated[
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
    Kinds = tuple[str, ...]
    BaseKinds = tuple[str, ...]
    ProbeName = str
    JudgeSection = JudgeStage
else:
    Kinds = _list_of(tuple(BY_KEY))
    BaseKinds = _list_of(tuple(key for key, kind in BY_KEY.items() if not kind.derived))
    # What pydantic checks: the probes that are registered.
    ProbeName = Annotated[Literal[tuple(PROBES)], Takes(f"a probe ({', '.join(PROBES)})")]
    # With the keys of every registered kind of judge.
    JudgeSection = with_own_keys(JudgeStage)


class _Drawn(ConfigSection):
    """How many cases a probe has, and of which others they are derived."""

    of: BaseKinds = ()
    """The kinds of cases that are changed. Empty: all kinds of the suite."""
    max_cases: Count = MOST_BASES
    """The largest number of cases that are changed; they are drawn from the whole suite."""


class ProbeSection(_Drawn):
    """What is said of a probe: how many cases it has, and of which others they are derived."""

    variants: Annotated[
        Several[Text],
        Takes("all, or a list of names of variants"),
    ] = ()
    """all: every case is changed in every way that the probe knows. A list: in these ways; a part
    of a name, such as an attack, stands for all variants that contain it. Left out: in 4 ways for
    prompt_injection and in one for other probes, drawn so that all are used equally often."""


class ProbeByText(_Drawn):
    """A probe by text: the editor changes what the agent says, and the verifier confirms it."""

    instruction: Text
    """Tells the editor how to change what the agent says."""
    changes: Literal["none", "flip"] = "none"
    """What the change does to the label. none: the label stays. flip: the label becomes the
    opposite, and so must the verdict. If the verifier does not confirm the new label, the case is
    skipped."""

    @property
    def variants(self) -> tuple[str, ...]:
        """Which of its variants it has."""
        return (self.changes,)


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
    list), ATIF trajectories (.json) or jobs of Harbor. A file, a folder, a glob, or a list of
    these."""
    of: Of = "runs"
    """What is judged. runs: what an agent did. answers: single answers to requests, from a table
    (CSV or JSON lines), from results of another tool, or from an Inspect log of one turn. pairs:
    which of two answers in a row of a table is better."""
    rubrics: PathText | None = None
    """The rubric file, YAML or JSON. If its rubrics have score_levels, the suite is ordinal (a
    scale of scores). If they have classes, verdicts are words without an order. Otherwise the suite
    is binary: a rubric is violated or satisfied."""
    format: Annotated[
        InputFormat,
        Takes("a mapping of parts to JSON pointers, such as {messages: /log, id: [/task, /trial]}"),
    ] = InputFormat.model_construct()
    """If a conversation does not have the form {id, messages, ...}: where its parts are (messages,
    answer, system, id, epoch, cluster, metadata, input, target)."""
    answers: TwoAnswers | None = None
    """The names of the two verdicts of a binary suite in prompts, labels and reports, such as {1:
    harmful, 0: harmless}. Left out: 1 is violated, and 0 satisfied."""
    within: Annotated[int | None, Field(ge=0), Takes("an integer >= 0")] = None
    """Ordinal suites: how far a score may be from the label and still be right, in levels. Left
    out: 0 on scales of up to 10 levels, otherwise a fiftieth of the scale (2 on a scale from 0 to
    100)."""


class CasesSection(ConfigSection):
    """Which cases are made, and how."""

    kinds: Kinds = ()
    """Which cases are made. perturbation: runs edited to violate a rubric. positives: runs that
    satisfy it. labels: runs as they are, with labels from the section `labels`. A probe: cases of
    the other kinds, changed in a way that must not change the verdict."""
    rubrics: Annotated[tuple[Text, ...], Field(strict=False), Takes("a list of rubric ids")] = ()
    """The ids of the rubrics to use. Empty: all rubrics in the file."""
    sample: Runs = 0
    """How many runs of the log to use; 0 means all."""
    sampling: Literal["rand", "kept"] = "rand"
    """How runs are picked. rand: by their position in the log, as RAND's harness does; if the log
    gets one more run, all picked runs may change. kept: recorded runs first, then others by their
    ids. The same holds for the cases and variants of probes."""
    seed: Whole = DEFAULT_SEED
    """The seed of the draw: with the same seed, the same runs are picked."""
    edits: Literal["text", "acts"] = "text"
    """What an edit may change. text: the words of the agent's turns. acts: its calls and their
    results, too. A call is changed, added or removed, and later turns are adapted."""
    edits_at_most: Count = 3
    """At most this many turns of a run are edited."""
    scores: Annotated[
        tuple[Said, ...],
        PlainValidator(_score_targets, json_schema_input_type=int | str | list[int | str]),
        Takes('integers or classes, as a list or as text like "1,3"'),
    ] = ()
    """The scores, classes and n/a that cases are made for. Left out: all of them (of two verdicts,
    not the one that positives are made for)."""
    flip: Flag = False
    """true: only labelled runs are edited, each so that its label changes. perturbation edits runs
    that satisfy the rubric to violate it; positives repairs runs that violate it. On a scale, no
    case is made for the score that a run already has."""
    examples: Annotated[int, Field(ge=0), Takes("an integer >= 0")] = 0
    """Ordinal suites: how many other runs planner and editor are shown whose label is the score to
    reach; drawn by seed."""
    frozen: Annotated[
        bool | PathText,
        Takes("true (the JSONL in output.dir), false, or the path of a JSONL file"),
    ] = False
    """Take all cases from agent_perturbations.jsonl; the log is not read."""
    preprocess: Annotated[
        Several[Text], Takes("the dotted name of a function, or a list of them")
    ] = ()
    """Functions that change each run before it is used, in this order, such as
    pytest_jrh.config.preprocessors.drop_reasoning_traces."""
    probes: dict[
        Annotated[str, Field(pattern="^[a-z0-9_]+$"), Takes("a name in a-z, 0-9 and _")],
        ProbeByText,
    ] = Field(default_factory=dict)
    """Probes that you write in words, each with a name of your own, such as {third_person:
    {instruction: "..."}}."""
    by: Annotated[
        Several[Text], Takes("a field of the samples' metadata, or a list of fields")
    ] = ()
    """Categories: fields of the samples' metadata, or JSON pointers. Reports show what is wrong for
    each value, the worst first. Values with fewer than 10 cases share a row."""
    cluster: Annotated[
        Text | None, Takes("a field of the samples' metadata, or a JSON pointer such as /task/id")
    ] = None
    """A field of the samples' metadata. Samples with the same value, such as trials of one task,
    count as one observation in every interval. A nested field is /task/id."""


def _or_false(schema: Json) -> None:
    schema["anyOf"].append({"const": False})


class EditorSection(StageSection):
    """The models that make cases: the editor's, and beside it those of the other stages."""

    planner: StageSection = StageSection.model_construct()
    """Plans which turns to edit, and how."""
    summary: StageSection = StageSection.model_construct()
    """Summarizes long runs, if a prompt contains `summary`. Left out: the editor's model."""
    verifier: Annotated[VerifierSection | None, Field(json_schema_extra=_or_false)] = None
    """Confirms the label of every made case. Left out: the editor's model. false: labels stay
    unverified, and every output says so."""


LABEL_SOURCES = ("path", "scorer", "metadata")


class LabelSection(ConfigSection):
    """Labels of runs as they are, of people or of a program: of a file, or of the log itself."""

    path: PathText | None = None
    """A CSV or JSON lines file with the columns run_id (or id) and label (or target), and if needed
    rubric_id, epoch, annotator, split and note."""
    scorer: Text | None = None
    """A scorer of the log whose scores are the labels. Unless map says otherwise, C is satisfied
    and I is violated."""
    metadata: Text | None = None
    """The field of the samples' metadata that holds the label. A nested field is /task/reward."""
    map: Annotated[
        dict[
            str, Annotated[str | int | float | bool, Takes("text, a number, true or false")] | None
        ],
        Takes("a mapping of values to labels"),
    ] = Field(default_factory=dict)
    """Which label each value means, such as {C: 0, I: 1}, where 1 is violated; null means no label.
    Required if a binary suite takes its labels from numbers in the log."""
    rubric_id: Text | None = None
    """The rubric that the labels are for, if there is no column rubric_id."""
    unlabelled: Literal["judge"] | None = None
    """judge: in a binary suite, runs without a label are judged, too, so that reports can say how
    often runs are violated. Left out: such runs are not used."""
    annotator: Text | None = None
    """Who gave the labels, as reports call them, if there is no column annotator."""
    by: LabelledBy | None = None
    """Who gave the labels, for reports: people, a program, or column if that is not known. Left
    out: people for a file, column for a field of a table of answers, otherwise program."""

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
    """none: answer only from recordings. once: record cases that are not complete. new_episodes:
    record what is missing. all: record everything again."""
    dir: PathText | None = None
    """Where recordings are. Left out: inputs/cassettes/{suite}."""
    max_workers: Count = 10
    """The largest number of model calls at one time."""


class Output(ConfigSection):
    """Where cases and results are kept."""

    dir: PathText | None = None
    """The folder of agent_perturbations.jsonl. To commit the made cases, use inputs/suites/{suite}.
    """
    rand: Flag = False
    """Whether to write tables, JSON reports and debug files like RAND's harness."""


class RandSection(ConfigSection):
    """What only files of RAND's harness say, so that they run as they are."""

    module: Text | None = None
    """The name of the folders with the project's own prompts, and with RAND's inputs and outputs.
    If it is left out, the name of the config file is used."""
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
    """binary or ordinal. If rubrics have no score_levels: the lowest and the highest score."""
    instruction: Annotated[str | None, Takes("text")] = None
    """A note to the judge, which is added to the judge's prompt."""
    instruction_path: PathText | None = None
    """A file with a note to the judge, instead of instruction."""
    judge_model: Text | None = None
    """The default model of all judges that are not code."""
    cases_model: Text | None = None
    """The default model of the stages that make cases."""
    summary_turns: Count = 20
    """How many turns a summary covers, counted from the last turn."""
    tests: dict[RandTestName, RandTest] = Field(default_factory=dict)
    """For a suite of answers: its tests, by RAND's names. A rubric may be plain text."""
    judged: Kinds = ()
    """The kinds of cases that are judged; cases of other kinds are only made. Empty: all kinds."""
    objective: Objective = "fail"
    """Whether perturbation makes cases that violate the rubric (fail) or satisfy it (pass)."""
    confirmed: Flag = True
    """Whether the verifier has to confirm cases that are made with objective pass."""
    renew: Flag = True
    """true: the selected cases are made again. false: existing cases are reused, and only missing
    cases are made."""
    write_jsonl: Flag = True
    """Whether made cases are written to agent_perturbations.jsonl."""
    review: Flag = False
    """Whether every made case is shown in the browser before it is judged. This needs a recording
    mode and a terminal."""
    results: PathText | None = None
    """The folder of results.jsonl, the report and the tables."""
    stamp: Text | None = None
    """A text that is added to the name of the suite's outputs folder."""
    table: Literal["csv", "xlsx"] = "csv"
    """Has no effect: tables are always CSV. The key exists because RAND's configs have it."""
    metric: Text = "accuracy_score"
    """The metric of the report: accuracy_score, balanced_accuracy_score, cohen_kappa_score or
    f1_score; or, if scikit-learn is installed, another of its metrics."""


class Config(ConfigSection):
    """A whole config file."""

    suite: SuiteSection = SuiteSection.model_construct()
    """What is judged, by which rubrics."""
    cases: CasesSection = CasesSection.model_construct()
    """Which cases are made, and how."""
    probes: dict[ProbeName, ProbeSection] = Field(default_factory=dict)
    """For each probe in cases.kinds: how many cases it has, and which cases it changes."""
    models: ModelDefaults = ModelDefaults.model_construct()
    """Defaults for every stage and judge."""
    judge: JudgeSection = JudgeSection.model_construct()
    """The judge under test: its model, prompt and settings."""
    judges: Annotated[
        Several[PanelJudge],
        Takes("a list of judges, each a mapping with a name"),
    ] = ()
    """A panel: every case is judged by each of these judges, and each of them has a pytest item."""
    editor: EditorSection = EditorSection.model_construct()
    """The models that make cases."""
    labels: Annotated[
        Several[LabelSection],
        Takes("a mapping with path, scorer or metadata, or a list of such mappings"),
    ] = ()
    """Labels of runs as they are. No judge is shown the field that holds a label. A run whose label
    does not fit the kind of a case is used for that kind only if it is edited."""
    blind: BlindSection = BlindSection.model_construct()
    """Blind labelling in the browser."""
    gate: GateRules = GateRules.model_construct()
    """When the session fails."""
    recording: Recording = Recording.model_construct()
    """Where recordings are and how they are used."""
    output: Output = Output.model_construct()
    """Where cases and results are kept."""
    rand: RandSection = RandSection.model_construct()
    """Settings that only RAND's files have."""

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
        asked = set[str]()
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
    """When this score is right."""


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
    """The whole rule: what is a violation, and what is not. The judge sees nothing else of the
    rubric."""
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
        Takes(
            "2 to 20 classes, each a name and when it is right, such as {tie: Both are as good.}"
        ),
    ] = Field(default_factory=dict)
    """In place of score_levels: answers without an order, each with a text that says when it is
    right."""
    answers: TwoAnswers | None = None
    """For the command `label`: the names of the two answers, such as {1: harmful, 0: harmless}. In
    a suite, use `suite.answers`."""
    not_applicable: _UNBLANK | None = None
    """When n/a is right, because the rubric is about nothing in the case. Left out: never."""
    probes: RubricProbes | None = None
    """Probes that are not used for this rubric, such as {skip: [verdict_pressure]}."""


_KEY_WORDS = r"(?i)key|token|secret|password|auth"
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
        words = detail.get("ctx", {}).get("expected", "")
        # The section at the path, or around it.
        section = root
        for part in path:
            field = section.model_fields.get(str(part))
            for kind in nested(field and field.annotation):
                if isinstance(kind, type) and issubclass(kind, ConfigSection):
                    section = kind
                    break
        hint = nearest_hint(str(value), re.findall("'(.*?)'", words))
        match detail["type"]:
            case "extra_forbidden":
                key, keys = str(path[-1]), section.model_fields
                hint = nearest_hint(key, keys, "key")
                if issubclass(section, StageSection) and re.search(_KEY_WORDS, key):
                    hint = "API keys come from the environment, such as OPENAI_API_KEY, and are "
                    hint += "never in a config"
                where = "the sections of a config are"
                if len(path) > 1:
                    where = f"the keys of {name((*place, *path[:-1]))} are"
                message = f"unknown key; {where} {listed(keys)}"
            case "missing":
                missing = section.model_fields[str(path[-1])]
                message = f"is missing; must be {takes(missing.annotation, missing.metadata)}"
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
