"""Tables of verdicts: what people said of cases and what judges said.

First columns are taken for what they are, by the names that people use or as options say; then
words become scores, and rows become cases.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.core.documents import listed, printable, shown
from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, Problem
from pytest_jrh.core.model import Label
from pytest_jrh.core.text import nearest, nearest_hint
from pytest_jrh.sources.tables import (
    KNOWN,
    NoLabelError,
    Table,
    as_text,
    first_problems,
    label_value,
    mapped,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator


ROLES: Mapping[str, str] = {
    "label": "label human gold target expected human_label gold_label true_label ground_truth",
    "verdict": "verdict judge score prediction predicted pred judgment judgement grade "
    "judge_verdict judge_score judge_label model_label",
    "judge": "",
    "case": "case case_id id sample_id transcript_id example_id example",
    "rubric": "rubric rubric_id criterion criteria",
    "cluster": "cluster run run_id task task_id item item_id",
    "epoch": "epoch",
    "repeat": "repeat replicate",
    "reasoning": "reasoning rationale explanation reason",
    "annotator": "annotator rater labeler labeller",
    "split": "split drawn",
}
"""What columns are taken for, and the names that they may have, whatever their case."""
_OTHERS = ("case", "rubric", "epoch", "repeat", "reasoning", "annotator", "split")
OPTIONS = ("label", "verdict", "case", "rubric", "cluster", "repeat", "judge")
"""The roles that an option of the command names a column for."""
MAX_TABLE_BYTES = 128 * 2**20
_MOST_LEVELS = 101
_LOOKED_AT = 50
_MOST_WAYS = 5
_BARE = {"0": 0, "1": 1, "false": 0, "true": 1, "no": 0, "yes": 1}
_WORDS = {**_BARE, **KNOWN}
_ONE: Mapping[str, tuple[str, ...]] = {
    "violated": ("violated", "violation", "failed"),
    "passed": ("passed", "correct", "success"),
}
_NEGATIONS = {"not", "no", "non", "never", "un"}
_OUR_RESULTS = {"case_digest", "judge_fingerprint", "expected", "score"}


class Columns(NamedTuple):
    """Which column is taken for what; empty where none is.

    `verdicts` are one column a judge; with `judge` there is one, and that column names the judge.
    `parts` are columns of which each is a part of `cluster`, such as runs of a task.
    """

    label: str = ""
    verdicts: tuple[str, ...] = ()
    judge: str = ""
    case: str = ""
    rubric: str = ""
    cluster: str = ""
    epoch: str = ""
    repeat: str = ""
    reasoning: str = ""
    annotator: str = ""
    split: str = ""
    parts: tuple[str, ...] = ()

    def taken(self) -> dict[str, str]:
        """Each role with its column, in the order in which they are told."""
        columns = self._asdict() | {"verdict": ", ".join(self.verdicts)}
        return {role: columns[role] for role in ROLES if columns[role]}

    def used(self) -> set[str]:
        """The columns that are taken for something."""
        single = {getattr(self, role) for role in ROLES if role != "verdict"}
        return {*self.verdicts, *self.parts, *single} - {""}


def choose_columns(
    table: Table,
    named: Mapping[str, str],
    verdicts: Sequence[str] = (),
    baseline: str = "",
    mapping: Iterable[str] = (),
    needed: Collection[str] = ("label", "verdict"),
) -> Columns:
    """Say which column of a table is what.

    `named` are columns by role, `verdicts` those of judges, `baseline` is the one of earlier
    verdicts, `mapping` are further words. Raises `InputError` where one is not there or not clear,
    and where one that is `needed` has no known name and others look like it.
    """
    named = {role: column for role, column in named.items() if column}
    for role, column in [*(("verdict", column) for column in verdicts), *named.items()]:
        if column not in table.columns:
            message = f"has no column {shown(column)}; its columns are {listed(table.columns)}"
            hint = nearest_hint(column, table.columns, "column")
            raise InputError(table.problem(message, key=f"--{role}", hint=hint))
    choice = _Choice(table, {*named.values(), *verdicts, baseline}, mapping)
    label = named.get("label") or choice.only("label")
    judge = named.get("judge", "")
    if "verdict" in needed and not verdicts:
        verdicts, judge = choice.verdicts(judge)
    chosen = {role: named.get(role) or choice.only(role) for role in _OTHERS}
    cluster = named.get("cluster", "")
    parts: tuple[str, ...] = ()
    if not cluster:
        cluster, parts = choice.cluster()
    if len(verdicts) > 1:
        # Of which judge it is, the column does not say.
        chosen["reasoning"] = ""
    columns = Columns(label, tuple(verdicts), judge, cluster=cluster, parts=parts, **chosen)
    both = {*verdicts, baseline} & ({label} if label else {*choice.named_so("label")})
    for name in both:
        message = f"the column {shown(name)} cannot be label and verdict at once"
        raise InputError(table.problem(message, 1, hint="name another one: --label COL"))
    if judge and len(verdicts) > 1:
        message = f"the column {shown(judge)} names the judge, and there are several of verdicts"
        raise InputError(table.problem(message, 1, hint="name one: --verdict COL"))
    if "label" in needed and not label:
        choice.refuse_alike("label")
    return columns


class _Choice:
    """Finds the columns of a table for their roles, each for one."""

    def __init__(self, table: Table, taken: Iterable[str], mapping: Iterable[str]) -> None:
        self._table = table
        self._taken = {*taken}
        self._words = {*_WORDS, *(as_text(word).casefold() for word in mapping)}

    def only(self, role: str) -> str:
        """The only column whose name fits; empty where none does."""
        candidates = self._unused(role)
        if len(candidates) > 1 and role in OPTIONS:
            raise self._ambiguous(role, candidates)
        self._taken.update(candidates[:1])
        return candidates[0] if len(candidates) == 1 else ""

    def named_so(self, role: str) -> list[str]:
        """The columns with a name of the role, taken or not."""
        return [name for name in self._table.columns if _plain_name(name) in ROLES[role].split()]

    def _unused(self, role: str) -> list[str]:
        return [name for name in self.named_so(role) if name not in self._taken]

    def _ambiguous(self, role: str, candidates: Sequence[str]) -> InputError:
        ways = " or ".join(f"--{role} {quoted(column)}" for column in candidates)
        message = f"several columns may be the {role}: {listed(candidates)}"
        return InputError(self._table.problem(message, 1, hint=f"say which: {ways}"))

    def verdicts(self, judge: str) -> tuple[Sequence[str], str]:
        """The column of verdicts, and the one that names judges, which may be called `judge`."""
        candidates = self._unused("verdict")
        for name in [name for name in candidates if _plain_name(name) == "judge"]:
            if len(candidates) > 1 and not self._holds_words(name):
                self._taken.add(name)
                candidates.remove(name)
                # A session with one judge writes no name of it.
                judge = judge or (name if any(self._table.texts(name)) else "")
        if len(candidates) > 1:
            raise self._ambiguous("verdict", candidates)
        if not candidates:
            self.refuse_alike("verdict")
            message = f"no column of verdicts; its columns are {listed(self._table.columns)}"
            hint = "name those of the judges: --verdict COL"
            raise InputError(self._table.problem(message, 1, hint=hint))
        self._taken.update(candidates)
        return candidates, judge

    def cluster(self) -> tuple[str, tuple[str, ...]]:
        """The column of what rows have in common, of several the widest; the others are its parts.

        Rows that are taken for independent and are not make every interval too narrow.
        """
        texts = {name: self._table.texts(name) for name in self._unused("cluster")}
        sizes = {name: len(set(values)) for name, values in texts.items()}
        several = sorted((name for name in sizes if sizes[name] > 1), key=sizes.__getitem__)
        if not several:
            return next(iter(sizes), ""), ()
        self._taken.update(several)
        widest, *parts = several
        for part in parts:
            # Rows that are equal in the narrow column have to be equal in the wide one.
            if len(set(zip(texts[part], texts[widest], strict=True))) > sizes[part]:
                raise self._ambiguous("cluster", several)
        return widest, tuple(parts)

    def refuse_alike(self, role: str) -> None:
        """Refuse a table of which nothing says that it has labels, or verdicts, where other columns
        look like that.
        """
        known = {name for role in (*_OTHERS, "cluster") for name in ROLES[role].split()}
        names = [name for name in self._table.columns if name not in self._taken]
        unused = [name for name in names if _plain_name(name) not in known]
        alike = [name for name in unused if self._holds_words(name)]
        close = nearest(role, unused)
        if close and close not in alike:
            alike.insert(0, close)
        if alike:
            look = "looks like one" if len(alike) == 1 else "look like some"
            ways = [f"--{role} {quoted(name)}" for name in alike[:_MOST_WAYS]]
            hint = (" " if role == "verdict" else " or ").join(ways)
            if role == "label":
                hint += f"; where nothing has a label, leave out {listed(alike)}"
            message = f"no column of {role}s; {listed(alike)} {look}"
            raise InputError(self._table.problem(message, 1, hint=hint))

    def _holds_words(self, column: str) -> bool:
        """Whether most of the first values of a column may be labels or verdicts."""
        texts = [text.casefold() for text in self._table.texts(column)[:_LOOKED_AT] if text]
        return 2 * sum(text in self._words for text in texts) > len(texts)


def _plain_name(column: str) -> str:
    return re.sub(r"[\s-]+", "_", column.strip().casefold())


def quoted(text: str) -> str:
    """A word as a shell takes it."""
    return shlex.quote(printable(text, 40))


class CaseKey(NamedTuple):
    """Which case a row is about; `rubric` is empty where the table has none."""

    case: str
    rubric: str = ""
    epoch: int = 1


def names_cases(table: Table, columns: Columns) -> bool:
    """Whether a column names the case of each row: its own, or that of the cluster where each row
    has one of its own.
    """
    if columns.case or not columns.cluster:
        return bool(columns.case)
    if columns.repeat or columns.annotator or columns.judge:
        return True
    by = zip(*map(table.texts, (columns.cluster, columns.rubric, columns.epoch)), strict=True)
    return len(set(by)) == len(table.lines)


def _keys(table: Table, columns: Columns) -> Iterator[CaseKey]:
    """The case of each row; where no column names it, by its line."""
    by = columns.case or columns.cluster
    names = table.texts(by if names_cases(table, columns) else "")
    of_rows = zip(
        table.lines, names, table.texts(columns.rubric), table.texts(columns.epoch), strict=True
    )
    for line, name, rubric, epoch in of_rows:
        number = whole_number(epoch) if epoch else None
        yield CaseKey(name or f"line {line}", rubric, 1 if number is None else number)


class Asked(NamedTuple):
    """A column whose values are to be read; `role` names it where two are on two scales."""

    table: Table
    column: str
    role: str


class _Value(NamedTuple):
    """What the mapping makes of a text, if it does, and the row in which the text is first met."""

    value: Any
    row: int
    is_mapped: bool = False


class Scores:
    """Reads the values of columns: words or whole numbers, after a mapping.

    `one` says what 1 means, "violated" or "passed", where the name of a column does not. `meanings`
    are the words of each score. Raises `InputError` for values that mean nothing, for two scales,
    and where nothing says what 1 means.
    """

    def __init__(
        self,
        columns: Sequence[Asked],
        mapping: Mapping[str, Any],
        scale: Sequence[int] = (),
        one: str = "",
    ) -> None:
        self._mapping = {as_text(word): value for word, value in mapping.items()}
        values = [(asked, self._values(asked)) for asked in columns]
        self._check_mapping(values)
        self.scale = tuple(scale) or _scale(values)
        self._scores: dict[tuple[int, str], dict[str, int | None]] = {}
        self.meanings: dict[int, dict[str, None]] = {0: {}, 1: {}}
        self._problems: list[Problem] = []
        unclear: dict[str, None] = {}
        for asked, of_column in values:
            if not self._settle(asked, of_column, _meaning_of_one(asked) or one):
                unclear[asked.column] = None
        if self._problems:
            raise InputError(first_problems(self._problems, columns[0].table.file))
        if unclear:
            message = f"{listed(unclear)}: the values are 0 and 1 (or no and yes), and nothing says"
            hint = "say it: --one=violated or --one=passed"
            table = columns[0].table
            raise InputError(table.problem(f"{message} what 1 means", key="--one", hint=hint))

    def of(self, table: Table, column: str) -> list[int | None]:
        """The scores of a column's values; None where one is empty, or is mapped to nothing."""
        if not column:
            return [None] * len(table.lines)
        scores = self._scores[id(table), column]
        return [scores[text] for text in table.texts(column)]

    def _values(self, asked: Asked) -> dict[str, _Value]:
        for line, raw in zip(asked.table.lines, asked.table.columns[asked.column], strict=True):
            if isinstance(raw, dict | list | tuple | set):
                message = f"got {shown(raw)}; must be one value"
                raise InputError(asked.table.problem(message, line, asked.column))
        rows: dict[str, int] = {}
        for row, text in enumerate(asked.table.texts(asked.column)):
            rows.setdefault(text, row)
        rows.pop("", None)
        values = {}
        for text, row in rows.items():
            try:
                values[text] = _Value(mapped(text, self._mapping), row, is_mapped=True)
            except NoLabelError:
                values[text] = _Value(text, row)
        return values

    def _check_mapping(self, values: Sequence[tuple[Asked, Mapping[str, _Value]]]) -> None:
        texts = {text for _, of_column in values for text in of_column}
        numbers = {whole_number(text) for text in texts} - {None}
        for word in self._mapping:
            if word not in texts and whole_number(word) not in numbers:
                hint = nearest_hint(word, texts, "value")
                message = f"got {shown(word)}, which no label and no verdict is"
                raise InputError(values[0][0].table.problem(message, key="--map", hint=hint))

    def _settle(self, asked: Asked, values: Mapping[str, _Value], one: str) -> bool:
        """Say what each value of a column means; whether it is known what 1 means there."""
        scores: dict[str, int | None] = {"": None}
        self._scores[id(asked.table), asked.column] = scores
        is_clear = True
        for text, (value, row, is_mapped) in values.items():
            bare = None if self.scale or is_mapped else _bare(text)
            word = text
            if value is None or value == "":
                scores[text] = None
                continue
            if bare is not None and one == "passed":
                score, word = 1 - bare, f"{text} ({asked.column})"
            elif bare is not None:
                is_clear = is_clear and bool(one)
                score = bare
            else:
                try:
                    score = label_value(value, self.scale, _WORDS)
                except NoLabelError as error:
                    hint = self._way(text, error) if len(self._problems) < MOST_PROBLEMS else None
                    line = asked.table.lines[row]
                    problem = asked.table.problem(str(error), line, asked.column, hint)
                    self._problems.append(problem)
                    continue
            scores[text] = score
            self.meanings.setdefault(score, {})[word] = None
        return is_clear

    def _way(self, text: str, error: NoLabelError) -> str:
        """How to say what a word means."""
        word = quoted(text)
        scores = f"--map {word}=0 (satisfied) or --map {word}=1 (violated)"
        if self.scale:
            scores = f"--map {word}={self.scale[0]}"
        way = f"say what it means: {scores}; --map {word}= counts it as missing"
        return f"{error.hint}; {way}" if error.hint else way


def _bare(text: str) -> int | None:
    """A value whose meaning the name of its column says, or else nobody but the user knows."""
    number = whole_number(text)
    return _BARE.get(text.casefold() if number is None else str(number))


def _meaning_of_one(asked: Asked) -> str:
    """What the name of a column says that 1 means; results of a session are on its scale."""
    tokens = {*re.split(r"[^a-z]+", asked.column.casefold())}
    meanings = [meaning for meaning, names in _ONE.items() if tokens & {*names}]
    if len(meanings) == 1 and not tokens & _NEGATIONS:
        return meanings[0]
    return "violated" if asked.table.columns.keys() >= _OUR_RESULTS else ""


def _scale(values: Sequence[tuple[Asked, Mapping[str, _Value]]]) -> tuple[int, ...]:
    """The scale of all values: none where they are words or 0 and 1, from the lowest to the highest
    where they are whole numbers.
    """
    by_role: dict[str, set[int]] = {}
    for asked, texts in values:
        for value, *_ in texts.values():
            number = whole_number(value)
            if number is not None:
                by_role.setdefault(asked.role, set()).add(number)
            elif value is not None and value != "":
                return ()
    numbers = set().union(*by_role.values())
    if numbers <= {0, 1}:
        return ()
    table, low, high = values[0][0].table, min(numbers), max(numbers)
    if high - low >= _MOST_LEVELS:
        message = f"has scores from {low} to {high}; a scale has at most {_MOST_LEVELS} levels"
        raise InputError(table.problem(printable(message, 200), hint="map them: --map WORD=VALUE"))
    # A judge that always says 1 may say it on a scale from 1 to 5.
    binary = [role for role in by_role if by_role[role] == {0, 1}]
    if binary:
        others = " and ".join(role for role in by_role if role not in binary)
        message = f"{' and '.join(binary)} are 0 and 1, and {others} up to {high}: two scales"
        hint = f"map one (--map WORD=VALUE), or say that both are on one: --scale {low}-{high}"
        raise InputError(table.problem(message, 1, hint=hint))
    return tuple(range(low, high + 1))


@dataclass
class TableCase:
    """A case of a table: its labels by annotator, and the verdicts by judge and repeat.

    A verdict is None where its cell is empty. `line` is that of its first row.
    """

    key: CaseKey
    line: int
    cluster: str | None = None
    split: str = ""
    labels: dict[str, int] = field(default_factory=dict)
    verdicts: dict[str, dict[str, int | None]] = field(default_factory=dict)
    reasonings: dict[str, str] = field(default_factory=dict)

    @cached_property
    def label(self) -> Label | None:
        """What people said, together."""
        return Label(tuple(self.labels.values()), "people", self.split) if self.labels else None

    def scores(self, judge: str) -> tuple[int, ...]:
        """The verdicts of a judge that there are, one a repeat."""
        return tuple(score for score in self.verdicts.get(judge, {}).values() if score is not None)


@dataclass(frozen=True, slots=True)
class VerdictTable:
    """The cases of a table in its order; `scale` are the scores of an ordinal one, else empty.

    `meanings` says for each score which words stand for it in this table.
    """

    file: str
    columns: Columns
    unused: tuple[str, ...]
    cases: Mapping[CaseKey, TableCase]
    scale: tuple[int, ...]
    meanings: Mapping[int, tuple[str, ...]]

    @property
    def judges(self) -> tuple[str, ...]:
        """The judges, each once, in the order of the table."""
        if not self.columns.judge:
            return self.columns.verdicts
        judges: dict[str, None] = {}
        for case in self.cases.values():
            judges.update(dict.fromkeys(case.verdicts))
        return tuple(judges)


def cases_of(table: Table, columns: Columns, scores: Scores, baseline: str = "") -> VerdictTable:
    """Put the rows of a table together as cases.

    The verdicts of the column `baseline` are those of a judge of that name, beside the others.
    Raises `InputError` where rows contradict each other, or one case is there twice.
    """
    cases: dict[CaseKey, TableCase] = {}
    problems: list[Problem] = []
    labels = scores.of(table, columns.label)
    of_columns = {name: scores.of(table, name) for name in (*columns.verdicts, baseline) if name}
    judges, repeats = table.texts(columns.judge), table.texts(columns.repeat)
    annotators, reasonings = table.texts(columns.annotator), table.texts(columns.reasoning)
    clusters, splits = table.texts(columns.cluster), table.texts(columns.split)
    for row, key in enumerate(_keys(table, columns)):
        line = table.lines[row]
        case = cases.get(key)
        if case is None:
            case = cases[key] = TableCase(key, line, clusters[row] or None, splits[row])
        label, annotator = labels[row], annotators[row]
        is_vote = bool(columns.annotator) and label is not None and annotator not in case.labels
        # Without a column of annotators all rows are of one.
        if label is not None and case.labels.setdefault(annotator, label) != label:
            problems.append(_differs("label", case, table, line, columns.label))
        for column, of_rows in of_columns.items():
            is_of_row = columns.judge and column in columns.verdicts
            judge = judges[row] if is_of_row else column
            verdicts = case.verdicts.setdefault(judge, {})
            if repeats[row] not in verdicts:
                verdicts[repeats[row]] = of_rows[row]
            elif not is_vote:
                message = f"the case {shown(key.case)} is in line {case.line} too"
                name = columns.case or columns.cluster
                problems.append(table.problem(message, line, name, _TELL_APART))
            elif verdicts[repeats[row]] != of_rows[row]:
                problems.append(_differs("verdict", case, table, line, column))
            if reasonings[row] and column in columns.verdicts:
                case.reasonings.setdefault(judge, reasonings[row])
    if problems:
        raise InputError(first_problems(problems, table.file))
    used = {*columns.used(), baseline}
    unused = tuple(column for column in table.columns if column not in used)
    meanings = {score: tuple(words) for score, words in sorted(scores.meanings.items())}
    return VerdictTable(table.file, columns, unused, cases, scores.scale, meanings)


def add_labels(table: VerdictTable, labels: VerdictTable) -> VerdictTable:
    """The table with the labels of another one, each of the case that it names there.

    A label of another case counts for nothing; raises `InputError` where all are.
    """
    is_there = False
    for key, case in table.cases.items():
        if key in labels.cases:
            labelled = labels.cases[key]
            case.labels, case.split = labelled.labels, labelled.split or case.split
            is_there = True
    if not is_there:
        here, there = _some_cases(labels), _some_cases(table)
        message = f"has no label of a case of {table.file}: here they are {here}, there {there}"
        hint = "name the column that both have: --case COL"
        raise InputError(Problem(message, labels.file, hint=hint))
    return replace(table, columns=table.columns._replace(label=labels.columns.label))


def _some_cases(table: VerdictTable) -> str:
    return listed((" ".join(map(str, key)) for key in table.cases), 3)


_TELL_APART = "name the column that tells its rows apart: --repeat, --rubric, --judge or --case"


def _differs(what: str, case: TableCase, table: Table, line: int, column: str) -> Problem:
    message = f"the {what} of the case {shown(case.key.case)} is another one in line {case.line}"
    return table.problem(message, line, column, f"the rows of a case must have one {what}")
