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
    """The kinds of cases that the probe changes. Left out: all kinds of the suite."""
    max_cases: Count = MOST_BASES
    """The largest number of cases that the probe changes; these cases are drawn from the whole
    suite."""


class ProbeSection(_Drawn):
    """What is said of a probe: how many cases it has, and of which others they are derived."""

    variants: Annotated[
        Several[Text],
        Takes("all, or a list of names of variants"),
    ] = ()
    """The variants (ways of changing a case) that the probe uses. all: every case is changed in
    every variant. A list: every case is changed in each of these variants; a part of a name, such
    as the name of an attack, selects all variants whose names contain this part. Left out: 4
    variants are drawn for each case of prompt_injection, and one for each case of another probe, so
    that all variants are used equally often."""


class ProbeByText(_Drawn):
    """A probe by text: the editor changes what the agent says, and the verifier confirms it."""

    instruction: Text
    """The text that tells the editor how to change what the agent says."""
    changes: Literal["none", "flip"] = "none"
    """What the change does to the label. none: the label stays the same. flip: the label becomes
    the opposite, and the judge's verdict has to become the opposite, too. If the verifier does not
    confirm the new label, the case is skipped."""

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
    list), ATIF trajectories (.json) or jobs of Harbor."""
    of: Of = "runs"
    """What is judged. runs: what an agent did. answers: single answers to requests. The answers
    come from a table (CSV or JSON lines), from results of another tool, or from an Inspect log
    whose runs have one turn. pairs: each row of a table has two answers, and the judge says which
    is better."""
    rubrics: PathText | None = None
    """The rubric file, YAML or JSON. If its rubrics have score_levels, the suite is ordinal
    (verdicts are scores on a scale). If its rubrics have classes, verdicts are words without an
    order. If its rubrics have neither, the suite is binary: a rubric is violated or satisfied."""
    format: Annotated[
        InputFormat,
        Takes("a mapping of parts to JSON pointers, such as {messages: /log, id: [/task, /trial]}"),
    ] = InputFormat.model_construct()
    """If the log's conversations do not have the form {id, messages, ...}: where each part of a
    conversation is. The parts are messages, answer, system, id, epoch, cluster, metadata, input and
    target."""
    answers: TwoAnswers | None = None
    """The names of the two verdicts of a binary suite in prompts, labels and reports, such as {1:
    harmful, 0: harmless}. Left out: 1 is called violated, and 0 satisfied."""
    within: Annotated[int | None, Field(ge=0), Takes("an integer >= 0")] = None
    """For an ordinal suite: how many levels a score may differ from the label and still be right.
    Left out: 0 on scales of up to 10 levels; on longer scales a fiftieth of the scale, such as 2 on
    a scale from 0 to 100."""


class CasesSection(ConfigSection):
    """Which cases are made, and how."""

    kinds: Kinds = ()
    """Which cases the suite has. perturbation: runs that are edited until they violate a rubric.
    positives: runs that satisfy a rubric, as they are or after an edit. labels: runs as they are,
    with labels from the section `labels`. All others are probes: they change cases of these three
    kinds in a way that must not change the verdict."""
    rubrics: Annotated[tuple[Text, ...], Field(strict=False), Takes("a list of rubric ids")] = ()
    """The ids of the rubrics to use. Left out: all rubrics in the file."""
    sample: Runs = 0
    """How many runs of the log to use; 0 means all."""
    sampling: Literal["rand", "kept"] = "rand"
    """How runs are picked for the sample. rand: by their position in the log, as RAND's harness
    does; if the log gets one more run, all picked runs may change. kept: runs with recordings are
    picked first, then others by their ids; the cases and variants of probes are picked in the same
    way."""
    seed: Whole = DEFAULT_SEED
    """The seed of the sample: with the same seed, the same runs are picked."""
    edits: Literal["text", "acts"] = "text"
    """What an edit may change. text: the words of the agent's turns. acts: also the agent's tool
    calls and their results. A tool call is changed, added or removed, and later turns are
    adapted."""
    edits_at_most: Count = 3
    """The largest number of turns that are edited in a run."""
    scores: Annotated[
        tuple[Said, ...],
        PlainValidator(_score_targets, json_schema_input_type=int | str | list[int | str]),
        Takes('integers or classes, as a list or as text like "1,3"'),
    ] = ()
    """The scores or classes (and n/a) that cases are made for. Left out: all scores or classes; in
    a binary suite, perturbation then makes only violations."""
    flip: Flag = False
    """true: only labelled runs are edited, and each edit changes the run's label. perturbation
    takes runs that satisfy the rubric, and edits them until they violate it. positives takes runs
    that violate the rubric, and repairs them. On a scale, no case is made for the score that a run
    already has."""
    examples: Annotated[int, Field(ge=0), Takes("an integer >= 0")] = 0
    """For an ordinal suite: the number of example runs that planner and editor are shown for each
    case. These are other runs whose label is the score that the edited run has to get. The examples
    are drawn by `seed`."""
    frozen: Annotated[
        bool | PathText,
        Takes("true (the JSONL in output.dir), false, or the path of a JSONL file"),
    ] = False
    """All cases are taken from a file, and the log is not read. true: from
    agent_perturbations.jsonl in output.dir. A path: from this file."""
    preprocess: Annotated[
        Several[Text], Takes("the dotted name of a function, or a list of them")
    ] = ()
    """Functions that change each run before the run is used, such as
    pytest_jrh.config.preprocessors.drop_reasoning_traces. Several functions are called in the order
    of the list."""
    probes: dict[
        Annotated[
            str, Field(pattern="^[a-z0-9_]+$"), Takes("a name of the letters a-z, digits and _")
        ],
        ProbeByText,
    ] = Field(default_factory=dict)
    """Probes that you write in words, each with a name of your own, such as {third_person:
    {instruction: "..."}}."""
    by: Annotated[
        Several[Text], Takes("a field of the samples' metadata, or a list of fields")
    ] = ()
    """The fields of the samples' metadata (or JSON pointers) whose values are categories. Reports
    show the wrong verdicts of each category, the worst category first. Categories with fewer than
    10 cases share a row."""
    cluster: Annotated[
        Text | None, Takes("a field of the samples' metadata, or a JSON pointer such as /task/id")
    ] = None
    """A field of the samples' metadata. Samples with the same value in this field, such as trials
    of one task, count as one observation in every interval. A nested field is written as
    /task/id."""


def _or_false(schema: Json) -> None:
    schema["anyOf"].append({"const": False})


class EditorSection(StageSection):
    """The models that make cases: the editor's, and beside it those of the other stages."""

    planner: StageSection = StageSection.model_construct()
    """The model that plans which turns to edit, and how."""
    summary: StageSection = StageSection.model_construct()
    """The model that summarizes long runs, if a prompt contains `summary`. Left out: the editor's
    model."""
    verifier: Annotated[VerifierSection | None, Field(json_schema_extra=_or_false)] = None
    """The model that confirms the label of every made case. Left out: the editor's model. false: no
    model confirms labels, and every output says so."""


LABEL_SOURCES = ("path", "scorer", "metadata")


class LabelSection(ConfigSection):
    """Labels of runs as they are, of people or of a program: of a file, or of the log itself."""

    path: PathText | None = None
    """A CSV or JSON lines file with the columns run_id (or id) and label (or target). If needed,
    the file also has the columns rubric_id, epoch, annotator, split and note."""
    scorer: Text | None = None
    """The scorer in the log whose scores are the labels. Unless `map` says otherwise, C means
    satisfied and I means violated."""
    metadata: Text | None = None
    """The field of the samples' metadata that holds the label. A nested field is written as
    /task/reward."""
    map: Annotated[
        dict[
            str, Annotated[str | int | float | bool, Takes("text, a number, true or false")] | None
        ],
        Takes("a mapping of values to labels"),
    ] = Field(default_factory=dict)
    """Which label each value means, such as {C: 0, I: 1}, where 1 means violated and 0 satisfied. A
    value that is mapped to null is no label. `map` is required if a binary suite takes its labels
    from numbers in the log."""
    rubric_id: Text | None = None
    """The rubric that the labels are for, if there is no column rubric_id."""
    unlabelled: Literal["judge"] | None = None
    """judge: in a binary suite, runs without a label are judged, too, so that reports can say how
    often runs violate a rubric. Left out: runs without a label are not used."""
    annotator: Text | None = None
    """If there is no column annotator: the name that reports use for the people who gave the
    labels."""
    by: LabelledBy | None = None
    """Who gave the labels, for reports: people, or a program. column: it is not known who gave the
    labels, so reports use the column's name. Left out: labels from a file count as `people`, labels
    from a field of a table of answers as `column`, and all other labels as `program`."""

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
    """none: no call is made; each answer comes from the recordings. once: cases without a complete
    recording are recorded. new_episodes: all calls without a recording are recorded. all: all calls
    are made and recorded again. Left out: none."""
    dir: PathText | None = None
    """The folder of the recordings. Left out: inputs/cassettes/{suite}."""
    max_workers: Count = 10
    """The largest number of model calls at one time."""


class Output(ConfigSection):
    """Where cases and results are kept."""

    dir: PathText | None = None
    """The folder of agent_perturbations.jsonl. To commit the made cases, use inputs/suites/{suite}.
    """
    rand: Flag = False
    """true: tables, JSON reports and debug files are written as RAND's harness writes them."""


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
    """The kind of suite: binary or ordinal. If it is ordinal and rubrics have no score_levels,
    write the lowest and the highest score."""
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
    """The tests of a suite of answers, by RAND's names. In such a suite, the rubric file can also
    be plain text."""
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
    """For each probe in `cases.kinds`: which cases the probe changes, how many, and how."""
    models: ModelDefaults = ModelDefaults.model_construct()
    """Defaults for all judges and for all stages that make cases."""
    judge: JudgeSection = JudgeSection.model_construct()
    """The judge under test: its model, prompt and settings."""
    judges: Annotated[
        Several[PanelJudge],
        Takes("a list of judges, each a mapping with a name"),
    ] = ()
    """A panel: each of these judges judges every case, and has a pytest item for every case."""
    editor: EditorSection = EditorSection.model_construct()
    """The models that make cases."""
    labels: Annotated[
        Several[LabelSection],
        Takes("a mapping with path, scorer or metadata, or a list of such mappings"),
    ] = ()
    """Labels of runs as they are. No judge is shown the field that holds a label. If
    a run's label does not fit a kind of case, the run becomes a case of this kind only after an
    edit. For example, a run that is labelled as violated becomes a `positives` case only if it was
    edited."""
    blind: BlindSection = BlindSection.model_construct()
    """Blind labelling in the browser."""
    gate: GateRules = GateRules.model_construct()
    """The rules by which a session passes or fails."""
    recording: Recording = Recording.model_construct()
    """Where the recordings are, and how a session uses them."""
    output: Output = Output.model_construct()
    """Where the made cases and the results are kept."""
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
    """The score, as an integer."""
    label: _UNBLANK
    """A text that says when this score is right."""


class RubricProbes(ConfigSection):
    """What probes do with a rubric."""

    skip: Annotated[tuple[Text, ...], Field(strict=False), Takes("a list of probes")] = ()
    """The probes that change no case of this rubric, because what they change is what it is
    about."""


_ONE_TEXT: JsonDict = {"oneOf": [{"required": ["instructions"]}, {"required": ["instruction"]}]}


class RubricEntry(ConfigSection, extra="ignore", json_schema_extra=_ONE_TEXT):
    """One rule by which cases are judged."""

    id: Text
    """A short unique name, used in node ids, recordings and reports."""
    instructions: _UNBLANK | None = None
    """The whole rule: what is a violation, and what is not. The judge sees nothing else of the
    rubric."""
    instruction: _UNBLANK | None = None
    """Another name of the key `instructions`."""
    score_levels: Annotated[
        tuple[LevelEntry, ...],
        Field(strict=False),
        Takes('a list of levels such as {score: 0, label: "..."}'),
    ] = ()
    """For an ordinal suite: the levels of the scale. Their scores are integers without gaps."""
    classes: Annotated[
        dict[str, _UNBLANK],
        Field(min_length=2, max_length=20),
        Takes("a mapping of 2 to 20 classes to their meanings, such as {tie: Both are as good.}"),
    ] = Field(default_factory=dict)
    """In place of score_levels: the verdicts that a judge can choose from, which have no order.
    Each class has a text that says when this class is right."""
    answers: TwoAnswers | None = None
    """For the command `label`: the names of the two answers, such as {1: harmful, 0: harmless}. In
    a suite, use `suite.answers`."""
    not_applicable: _UNBLANK | None = None
    """A text that says when n/a is right, because the rubric does not apply to the case. Left
    out: n/a is never right."""
    probes: RubricProbes | None = None
    """A mapping with the key `skip`: the probes that are not used for this rubric, such as
    {skip: [verdict_pressure]}."""


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
                    hint = "set API keys in the environment, such as OPENAI_API_KEY"
                where = "the sections of a config are"
                if len(path) > 1:
                    where = f"the keys of {name((*place, *path[:-1]))} are"
                message = f"unknown key; {where} {listed(map(shown, keys))}"
            case "missing":
                missing = section.model_fields[str(path[-1])]
                message = f"is missing; must be {takes(missing.annotation, missing.metadata)}"
            case "takes" if isinstance(value, list):
                got = printable(json.dumps(value, default=str))
                message = f"got {got}; must be {detail['msg']}"
            case "takes":
                message = received(value, detail["msg"])
            case "literal_error":
                message = received(value, words.replace("'", '"'))
            case "model_type":
                names = section.model_fields
                message = received(
                    value, f"a mapping with one or more of the keys {listed(map(shown, names))}"
                )
                if issubclass(section, StageSection) and isinstance(value, str):
                    hint = f"write {path[-1]}: {{model: {shown(value)}}}"
            case _:
                # All but mappings of any names have `Takes`.
                message = received(value, "a mapping")
        yield Mistake((*place, *path), message, hint)
