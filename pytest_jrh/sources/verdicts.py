"""Verdicts of a table beside labels of people, from top to bottom: columns are taken for what they
are, by the names that people use or as options say; words become scores, rows become cases, and
labels of another file are joined to them.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from operator import not_
from typing import Any, NamedTuple, TypeAlias

from pytest_jrh.core.documents import listed, shown
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.groups import grouped
from pytest_jrh.core.ids import question_digest, short_digest
from pytest_jrh.core.runs import Message, Rubric
from pytest_jrh.core.scales import BINARY, ONES, Scale
from pytest_jrh.core.text import counted, same_lines
from pytest_jrh.core.values import as_seen, as_text, as_word, part_of, whole_number
from pytest_jrh.sources import tables
from pytest_jrh.sources.results.scores import quoted
from pytest_jrh.sources.tables import ROLES, NoLabelError, Table

_BLANKS = re.compile(r"[\s-]+")
_NUMBER = re.compile(r"[-+]?\d*[.,]?\d+([eE][-+]?\d+)?\s*%?")
_SHARE = re.compile(r"[01](\.0*)?|0?\.\d+|\d(\.\d+)?[eE]-\d{1,3}", re.ASCII)
OPTIONS = ("label", "case", "rubric", "cluster", "repeat", "judge")
"""The roles that an option of the command names one column for."""
NONE = "none"
"""What an option names where no column has the role."""
TEXTS = "input prompt question query context output response answer completion text transcript"
"""The names of columns that hold what is judged."""
_OF_PEOPLE = {"human", "annotator", "gold", "reviewer", "expert", "people", "person"}
_CONFIDENCES = {"confidence", "confident", "certainty", "conf"}
_MORE_IDS = "idx pair"
_MORE_REPEATS = "run run_id trial attempt seed"
_FEWEST_CLUSTERS = 5
_LONGEST_WORD = 80
_NO_VALUES = ("", "nan", "null", "none")

_TELL_APART = "name the column that tells its rows apart: --repeat, --rubric, --judge or --case"
# What turns a name, and what it is no good to succeed in.
_NEGATIONS = {"not", "no", "non", "never", "un", "attack", "jailbreak", "injection", "exploit"}


class Columns(NamedTuple):
    """Which column is taken for what; empty where none is.

    `verdicts` are one column a judge; with `judge` there is one, and that column names the judge.
    `baseline` has earlier verdicts.
    """

    label: str = ""
    verdicts: tuple[str, ...] = ()
    judge: str = ""
    case: str = ""
    rubric: str = ""
    cluster: str = ""
    epoch: str = ""
    annotator: str = ""
    repeat: str = ""
    reasoning: str = ""
    baseline: str = ""

    def taken(self) -> dict[str, str]:
        """Each role with its column, in the order in which they are told."""
        columns = self._asdict() | {"verdict": ", ".join(self.verdicts)}
        return {role: columns[role] for role in ROLES if columns[role]}


def choose_columns(
    table: Table, assigned: Sequence[tuple[str, str]], needed: Collection[str]
) -> Columns:
    """Say which column of a table is what.

    `assigned` are columns behind their roles; `needed` says which of "label" and "verdict" the
    table is read for. Raises `InputError` where one of them is not there, or something is not
    clear.
    """
    _refuse_two_roles(table, assigned)
    options = dict(assigned)
    verdicts = [column for role, column in assigned if role == "verdict"]
    chosen = {role: column for role, column in assigned if role != "verdict"}
    if table.results and "judge" in table.columns:
        # Of other tables it may be the verdict.
        chosen.setdefault("judge", "judge")

    def taken() -> set[str]:
        """What is found as nothing else, as what an option names."""
        return {*chosen.values(), *verdicts}

    for role in ("label", "rubric", "epoch", "annotator", "repeat", "reasoning"):
        if role not in chosen:
            chosen[role] = only_column(table, role, taken())
    telling = [chosen.get(role, "") for role in ("rubric", "epoch", "annotator", "judge")]
    if "case" not in chosen:
        may_repeat = chosen["repeat"] or "".join(columns_named(table, _MORE_REPEATS)[:1])
        chosen["case"] = case_column(table, taken(), [*telling, may_repeat])
    if chosen["case"] and not chosen["repeat"] and "repeat" not in options:
        chosen["repeat"] = _repeats(table, [chosen["case"], *telling], taken())
    if "verdict" in needed:
        if "cluster" not in chosen:
            chosen["cluster"] = _cluster(table, taken(), chosen["case"])
        if not verdicts:
            verdicts = [only_column(table, "verdict", taken())]
    for role, column in (("verdict", "".join(verdicts)), ("label", chosen["label"])):
        if role in needed and not column:
            if table.results:
                raise table.results.without_labels(table.file)
            message = f"no column of {role}s; its columns are {listed(table.columns)}"
            hint = f"name it: --{role} COL"
            if role == "label":
                file = shlex.quote(table.file)
                hint += f", or let people label the cases: python -m pytest_jrh label {file}"
            raise InputError(table.problem(message, 1, hint=hint))
    if "label" in needed and "label" not in options and not table.results:
        guessed = [] if "verdict" in options else verdicts
        _refuse_unknown_people(table, chosen["label"], guessed, is_beside="verdict" in needed)
    if len(verdicts) > 1:
        # Of which judge it is, the column does not say.
        chosen["reasoning"] = ""
    return Columns(verdicts=tuple(verdicts), **chosen)


def _refuse_two_roles(table: Table, assigned: Sequence[tuple[str, str]]) -> None:
    """Refuse a column that options name twice; a cluster may be what names the cases."""
    for column, roles in grouped((column, role) for role, column in assigned).items():
        exclusive = [role for role in roles if role not in ("cluster", "baseline")]
        if len(exclusive) > 1 and column in table.columns:
            message = f"the column {shown(column)} cannot be {' and '.join(exclusive)} at once"
            raise InputError(table.problem(message, 1))


def by_people(table: Table, label: str, annotator: str) -> bool:
    """Whether a name says that people gave the labels: that of their column or of one beside it."""
    return bool(annotator or words_of(label) & _OF_PEOPLE or _kinds(table) == {"HUMAN"})


def _kinds(table: Table) -> set[str]:
    """Who gave the labels, by the column that says it of each row."""
    return {kind.upper() for kind in table.texts("annotator_kind")} - {""}


def _refuse_unknown_people(
    table: Table, label: str, verdicts: Sequence[str], *, is_beside: bool
) -> None:
    """Refuse a column that was found by its name, and may be the judge's own or the task's.

    `verdicts` are those that were found by their names, too; `is_beside` is False of a file that is
    named for its labels.
    """
    kinds = _kinds(table) - {"HUMAN"}
    if by_people(table, label, "") and not kinds:
        return
    hint = f"name the column that people wrote: --label {quoted(label)}, if it is this one"
    message = ""
    texts = columns_named(table, TEXTS)
    if kinds:
        message = f"{label} is not of people alone: annotator_kind is {listed(sorted(kinds))}"
    elif is_beside and texts and words_of(label) & {"target", "expected"}:
        message = f"beside {texts[0]}, {label} may be the answer that is expected, and no label"
    elif verdicts and not any(words_of(column) & _OF_A_JUDGE for column in verdicts):
        columns = [*verdicts, *columns_named(table, ROLES["reasoning"])]
        message = f"beside {listed(columns)}, {label} may be the judge's own"
    if message:
        raise InputError(table.problem(message, 1, hint=hint))


def words_of(column: str) -> set[str]:
    """The words that the name of a column is made of."""
    return {*re.split(r"[^a-z]+", column.casefold())}


# Scores and grades may be of anybody, and a label is what is asked about.
_OF_A_JUDGE = words_of(ROLES["verdict"]) - {"score", "grade", "label"}


def columns_named(table: Table, names: str) -> list[str]:
    """The columns with one of these names, in any case, with blanks or hyphens for `_`."""
    known_names = names.split()
    return [name for name in table.columns if _BLANKS.sub("_", as_word(name)) in known_names]


def only_column(table: Table, role: str, taken: Collection[str] = ()) -> str:
    """The column with a name of the role that is not `taken`; empty where there is none."""
    columns = [name for name in columns_named(table, ROLES[role]) if name not in taken]
    if len(columns) > 1 and role in (*OPTIONS, "verdict"):
        raise _ambiguous(table, role, columns)
    return columns[0] if columns else ""


def _ambiguous(table: Table, role: str, columns: Sequence[str]) -> InputError:
    ways = " or ".join(f"--{role} {quoted(column)}" for column in columns)
    message = f"several columns may be the {role}: {listed(columns)}"
    return InputError(table.problem(message, 1, hint=f"say which: {ways}"))


def _count(table: Table, *columns: str) -> int:
    """How many different rows there are of these columns alone."""
    return len({*zip(*map(table.texts, columns), strict=True)})


def _telling_apart(table: Table, names: Iterable[str], telling: Sequence[str]) -> str:
    """The only one of these columns that, with those beside it, tells all rows apart."""
    columns = [name for name in names if _count(table, name, *telling) == len(table.lines)]
    return columns[0] if len(columns) == 1 else ""


def case_column(table: Table, taken: Collection[str], telling: Sequence[str]) -> str:
    """The column that names the cases: one of the known names, else the only one that ends in `_id`
    and, with the columns `telling` it, names each row.
    """
    column = only_column(table, "case", taken)
    if column:
        return column
    role_columns = {*taken, *columns_named(table, " ".join(ROLES.values()))}
    names = [name for name in table.columns if name not in role_columns]
    usual = [name for name in columns_named(table, _MORE_IDS) if name in names]
    ids = [name for name in names if name.casefold().endswith("_id")]
    return _telling_apart(table, usual, telling) or _telling_apart(table, ids, telling)


def _repeats(table: Table, of_case: Sequence[str], taken: Collection[str]) -> str:
    """The only column that tells apart rows of one case with one text, as those of a judge that was
    asked several times; empty where there are no such rows, or no such column.
    """
    same_columns = (*of_case, *columns_named(table, TEXTS))
    if _count(table, *same_columns) == len(table.lines):
        return ""
    names = [name for name in columns_named(table, _MORE_REPEATS) if name not in taken]
    return _telling_apart(table, names, same_columns)


def _cluster(table: Table, taken: Collection[str], case: str) -> str:
    """The column of what rows have in common; of several the widest, if the others are parts of it.

    Rows that are taken for independent and are not make every interval too narrow.
    """
    count = _count(table, case) if case else len(table.lines)
    sizes = {}
    for name in columns_named(table, ROLES["cluster"]):
        # A case that lies in several is no part of any.
        is_whole = not case or _count(table, case, name) == count
        size = _count(table, name)
        if name not in taken and is_whole and size > 1:
            sizes[name] = size
    widest_first = sorted(sizes, key=sizes.__getitem__)
    for part in widest_first[1:]:
        # Rows that are equal in the narrow column have to be equal in the wide one.
        if _count(table, part, widest_first[0]) > sizes[part]:
            raise _ambiguous(table, "cluster", widest_first)
    if widest_first and sizes[widest_first[0]] < min(_FEWEST_CLUSTERS, count) and not table.results:
        widest = widest_first[0]
        ways = " or ".join(f"--cluster {quoted(name)}" for name in (*widest_first, NONE))
        message = f"{widest} has {sizes[widest]} values: do the cases of one go together?"
        raise InputError(table.problem(message, 1, hint=f"say it: {ways}"))
    return widest_first[0] if widest_first else ""


class CaseKey(NamedTuple):
    """Which case a row is about; `rubric` is empty where the table has none."""

    case: str
    rubric: str = ""
    epoch: int = 1

    @classmethod
    def of(cls, case: str, rubric: str, epoch_text: str) -> CaseKey:
        """The key of a case whose row has these texts; without an epoch it is in the first."""
        epoch = whole_number(epoch_text)
        return cls(case, rubric, 1 if epoch is None else epoch)

    def __str__(self) -> str:
        parts = [self.case, self.rubric, f"epoch {self.epoch}" if self.epoch > 1 else ""]
        return " / ".join(filter(None, parts))


class Verdict(NamedTuple):
    """What a text means, or somebody said by it: a score, or None for a word that is none.

    A verdict that is a number from 0 to 1 has the `probability` of a violation.
    """

    score: int | None
    probability: float | None = None


class Values:
    """Reads the values of columns as answers on the `scale`, after a mapping.

    `one` says of columns what 1 means, by a key of `ONES`, and under "" of all others; without it
    their names do. `meanings` are the words of each score that were met. From a `threshold` on a
    verdict that is a number is a 1; `of_numbers` are the columns that have some.
    """

    def __init__(
        self,
        mapping: Mapping[str, Any],
        scale: Scale,
        one: Mapping[str, str],
        threshold: float | None,
    ) -> None:
        self.scale = scale
        self.meanings: dict[int, dict[str, None]] = {score: {} for score in scale.scores}
        self.threshold = threshold
        self.of_numbers: dict[str, None] = {}
        self._mapping = {as_word(word): value for word, value in mapping.items()}
        self._one = one
        # What 1 means in each column that has bare ones; empty where nothing says it.
        self._ones: dict[str, str] = {}

    def read(
        self, table: Table, column: str, problems: list[Problem], *, is_verdict: bool
    ) -> list[Verdict | None]:
        """What the values of a column mean, None for an empty one. What means nothing is a problem
        with the line where it is first.
        """
        texts = table.texts(column)
        lines: dict[str, int] = {}
        for text, line in zip(texts, table.lines, strict=True):
            lines.setdefault(text, line)
        verdicts: dict[str, Verdict | None] = {}
        hints: set[str] = set()
        for text, line in lines.items():
            try:
                verdicts[text] = self._verdict(text, column, is_verdict=is_verdict)
            except NoLabelError as error:
                hint = self._way(text, lines, is_verdict=is_verdict)
                if hint in hints:
                    # One option reads all such values.
                    break
                hints.add(hint)
                problems.append(table.problem(str(error), line, column, hint))
        return [verdicts.get(text) for text in texts]

    def _verdict(self, text: str, column: str, *, is_verdict: bool) -> Verdict | None:
        """What a text means; raises `NoLabelError` where it means nothing."""
        word = as_word(text)
        value = self._mapping.get(word, text)
        if as_word(value) in ("", tables.CANNOT_TELL):
            return None if word in _NO_VALUES else Verdict(None)
        bare = number = None
        if word not in self._mapping and not self.scale.is_ordered:
            bare = tables.BARE.get(word)
            if self.threshold is not None and is_verdict and _SHARE.fullmatch(text):
                number = float(text)
                bare = int(number >= self.threshold)
        if bare is None:
            score = tables.label_value(value, self.scale)
            self.meanings[score][text] = None
            return Verdict(score)
        self._ones[column] = self.meaning_of_one(column)
        is_pass = self._ones[column] == "passed"
        score = 1 - bare if is_pass else bare
        if number is not None:
            self.of_numbers[column] = None
            number = 1 - number if is_pass else number
            text = f"{'from' if bare else 'below'} {self.threshold}"
        self.meanings[score][f"{text} ({column})" if is_pass else text] = None
        return Verdict(score, number)

    def _way(self, text: str, texts: Iterable[str], *, is_verdict: bool) -> str:
        """How to say what a word means, or what scale a number of such texts is on. Nothing that is
        said may give a wrong value where it is copied.
        """
        word = as_seen(text)
        if len(word) > _LONGEST_WORD:
            role = "verdict" if is_verdict else "label"
            return f"it is no word: name another column, --{role} COL"
        way = f"--map={shlex.quote(word)}" if word.startswith("-") else f"--map {shlex.quote(word)}"
        missing = f"{way}= counts it as missing"
        if word.casefold() in _NO_VALUES:
            return missing
        if is_verdict and self.threshold is not None and _NUMBER.fullmatch(word):
            return "--threshold reads a number from 0 to 1, with a decimal point"
        part = part_of(text)
        if part is not None:
            return f"say the scale that ends in {part[1]}: --scale LOW-{part[1]}"
        if whole_number(text) is not None:
            numbers = [number for number in map(whole_number, texts) if number is not None]
            seen = f"its numbers go from {min(numbers)} to {max(numbers)}"
            return f"say on what scale: --scale LOW-HIGH; {seen}"
        if is_verdict and not self.scale.is_ordered and _SHARE.fullmatch(word):
            return "a number from 0 to 1 needs --threshold 0.5, from which on it counts as 1"
        if _NUMBER.fullmatch(word):
            # A mean of what several people said, or of what a judge said several times.
            role = "repeat" if is_verdict else "annotator"
            return f"a score is a whole number: give each its own row, with a column {role}"
        if self.scale.is_ordered:
            return f"say its score: {way}=SCORE; {missing}"
        ways = [f"{way}={score} ({word})" for score, word in sorted(self.scale.words.items())]
        return f"say what it means: {' or '.join(ways)}; {missing}"

    def refuse_unclear(self, table: Table) -> None:
        """Refuse, once all is read, a threshold without a number, and a 1 that nothing explains."""
        if self.threshold is not None and not self.of_numbers:
            hint = "name a column of such numbers: --verdict COL; or leave it out"
            message = "no verdict is a number from 0 to 1"
            raise InputError(table.problem(message, key="--threshold", hint=hint))
        for column in self.of_numbers.keys() - self._one.keys():
            if words_of(column) & _CONFIDENCES and not _meaning_of_one(column):
                message = f"{column} may say how sure the judge is of its verdict, whichever it is"
                hint = "--threshold takes the probability of a violation: give it a column of that"
                meaning = quoted(f"{column}={BINARY.classes[0].columns[0]}")
                hint += f"; if this is one, say --one {meaning}"
                raise InputError(table.problem(message, key="--threshold", hint=hint))
        unclear = [column for column, meaning in self._ones.items() if not meaning]
        if unclear:
            values = "0 and 1 (or no and yes)" if self.threshold is None else "numbers from 0 to 1"
            message = f"{listed(unclear)}: the values are {values}, and nothing says what 1 means"
            prefixes = ["--one="]
            if any(self._ones.values()):
                # What is said of all columns would be said of those, too, whose names say it.
                prefixes = [f"--one={column}=" for column in unclear]
            ways = [shlex.join(prefix + meaning for prefix in prefixes) for meaning in ONES]
            hint = f"say it: {' or '.join(ways)}"
            raise InputError(table.problem(message, key="--one", hint=hint))

    def turning(self, columns: Iterable[str]) -> str:
        """How the meaning of a 1, or of words, in the first of these columns is turned."""
        for column in columns:
            if meaning := self._ones.get(column):
                [opposite] = ONES.keys() - {meaning}
                return f"--one={quoted(f'{column}={opposite}')} turns it"
        return "--map says what words mean"

    def meaning_of_one(self, column: str) -> str:
        """What 1 means in a column: what options say of it or of all, else what its name does."""
        return self._one.get(column) or self._one.get("") or _meaning_of_one(column)


def _meaning_of_one(column: str) -> str:
    """What the name of a column says that 1 means."""
    tokens = words_of(column)
    meanings = [meaning for meaning, names in ONES.items() if tokens & {*names}]
    return meanings[0] if len(meanings) == 1 and not tokens & _NEGATIONS else ""


Given: TypeAlias = list[tuple[int, Verdict]]
"""The verdicts of one judge on one case, each behind its row."""


@dataclass(slots=True)
class TableCase:
    """A case of a table: the `label` is what more than half of all people say, and `rows` are by
    judge the numbers of its rows, one a repeat. `line` is that of the first row.
    """

    key: CaseKey
    line: int
    cluster: str | None = None
    label: int | None = None
    rows: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class VerdictTable:
    """The cases of a `table`, in its order; which columns are `unused`, and how `values` are read.
    `verdicts` are by column what each row says, None where that is nothing. `notices` say what
    counts for nothing. `changed` are the cases, by their ids, whose labels are of another text or
    question than these verdicts.
    """

    table: Table
    columns: Columns
    unused: tuple[str, ...]
    cases: dict[CaseKey, TableCase]
    values: Values
    verdicts: Mapping[str, Sequence[Verdict | None]]
    notices: list[str]
    changed: Collection[str] = ()

    @property
    def judges(self) -> tuple[str, ...]:
        """The judges, each once, in the order of the table."""
        if not self.columns.judge:
            return self.columns.verdicts
        judges: dict[str, None] = {}
        for case in self.cases.values():
            judges.update(dict.fromkeys(case.rows))
        return tuple(judges)

    def given(self, case: TableCase, judge: str) -> Given:
        """The verdicts of a judge that there are, one a repeat, each behind its row."""
        # Where a column names the judges, one column has the verdicts of all.
        column = judge if judge in self.verdicts else self.columns.verdicts[0]
        given = []
        for row in case.rows.get(judge, ()):
            verdict = self.verdicts[column][row]
            if verdict is not None:
                given.append((row, verdict))
        return given

    def reasoning(self, row: int, judge: str) -> str:
        """Why a judge says what it says in a row; empty where no column tells."""
        column = self.columns.reasoning
        # The reasons beside a column of earlier verdicts are those of now.
        if not column or judge == self.columns.baseline:
            return ""
        return as_text(self.table.columns[column][row])


def cases_of(table: Table, columns: Columns, values: Values) -> VerdictTable:
    """Put the rows of a table together as cases.

    The verdicts of the column `baseline` are those of a judge of that name, beside the others.
    Raises `InputError` for values that mean nothing, where rows contradict each other, and where
    one case is there twice.
    """
    problems: list[Problem] = []
    labels = values.read(table, columns.label, problems, is_verdict=False)
    verdicts = {}
    for name in filter(None, (*columns.verdicts, columns.baseline)):
        of_column = values.read(table, name, problems, is_verdict=True)
        # What is no verdict is as a cell that is empty.
        verdicts[name] = [
            None if of_row is None or of_row.score is None else of_row for of_row in of_column
        ]
    cases: dict[CaseKey, TableCase] = {}
    votes: dict[CaseKey, dict[str, int | None]] = {}
    clusters, judges = table.texts(columns.cluster), table.texts(columns.judge)
    annotators, repeats = table.texts(columns.annotator), table.texts(columns.repeat)
    for row, (key, line) in enumerate(zip(_keys(table, columns), table.lines, strict=True)):
        case = cases.get(key)
        if case is None:
            case = cases[key] = TableCase(key, line, clusters[row] or None)
            votes[key] = {}
        label, of_case = labels[row], votes[key]
        is_one_more_vote = annotators[row] not in {"", *of_case}
        if label is not None and of_case.setdefault(annotators[row], label.score) != label.score:
            message = f"the label of the case {shown(key.case)} is another one above"
            hint = "give a case one label, or say in a column annotator whose each label is"
            problems.append(table.problem(message, line, columns.label, hint))
        for column, of_column in verdicts.items():
            judge, verdict = column, of_column[row]
            if columns.judge and column != columns.baseline:
                judge = judges[row]
            if columns.judge and not judges[row] and verdict is None:
                # A row of a label alone.
                continue
            rows = case.rows.get(judge, ())
            same_repeat = [other for other in rows if repeats[other] == repeats[row]]
            if same_repeat and is_one_more_vote and verdict in (None, of_column[same_repeat[0]]):
                # The verdict stands beside the label of each person.
                continue
            if same_repeat:
                message = f"the case {shown(key.case)} is in line {case.line} too"
                problems.append(table.problem(message, line, columns.case, _TELL_APART))
            case.rows[judge] = (*rows, row)
    if problems:
        raise InputError(tables.first_problems(problems, table.file))
    disputed = 0
    for key, of_case in votes.items():
        if of_case:
            [(most, count)] = Counter(of_case.values()).most_common(1)
            if 2 * count > len(of_case):
                cases[key].label = most
            else:
                disputed += 1
    notices = list(table.notices)
    if disputed:
        notices.append(f"{counted(disputed, 'case')} on which people disagree: without a label.")
    used = {*columns.taken().values(), *columns.verdicts}
    unused = tuple(column for column in table.columns if column not in used)
    return VerdictTable(table, columns, unused, cases, values, verdicts, notices)


def _keys(table: Table, columns: Columns) -> Iterator[CaseKey]:
    """Which case each row is about; where no column names it, its line does."""
    names = table.texts(columns.case)
    rubrics, epochs = table.texts(columns.rubric), table.texts(columns.epoch)
    for name, rubric, epoch, line in zip(names, rubrics, epochs, table.lines, strict=True):
        yield CaseKey.of(name or f"line {line}", rubric, epoch)


def add_labels(table: VerdictTable, labels: VerdictTable) -> None:
    """Give the cases of a table the labels of another one, each of the case that it names there.

    Those of other cases stand alone; raises `InputError` where all are.
    """
    rubrics = {key.rubric for key in table.cases}
    of_labels = {key.rubric for key in labels.cases}
    # Where one of the two names no rubric, its cases are those of the only one of the other.
    is_same = len(rubrics) == len(of_labels) == 1 and "" in rubrics | of_labels
    labelled = {}
    for key, case in labels.cases.items():
        if case.label is not None:
            labelled[key._replace(rubric=min(rubrics)) if is_same else key] = case
    refuse_strangers(table, replace(labels, cases=labelled), "label of a case")
    for key, case in table.cases.items():
        case.label = labelled.pop(key).label if key in labelled else None
    table.cases |= labelled
    table.columns = table.columns._replace(label=labels.columns.label)
    table.notices += labels.notices


def refuse_strangers(table: VerdictTable, strangers: VerdictTable, noun: str) -> None:
    """Refuse another file that has nothing of this kind of the table; say what cases each has."""
    if table.cases.keys() & strangers.cases.keys():
        return
    cases, table_cases = (listed(map(str, file.cases), 3) or "none" for file in (strangers, table))
    hint = f"its cases are {cases}, and those of {table.table.file} {table_cases}"
    hint += "; name the columns that both have: --case COL, --rubric COL"
    message = f"has no {noun} (with its rubric and epoch) of {table.table.file}"
    raise InputError(message, strangers.table.file, hint=hint)


def of_these_texts(labels: Table, table: Table, case: str) -> Table:
    """The labels without those of cases whose text in this table is not the one that was labelled;
    `case` is its column of ids. Where it has no such text, nothing is known, and all stay.

    Raises `InputError` where no label is left.
    """
    digests: dict[tuple[str, ...], Mapping[str, Sequence[str]]] = {}
    are_kept = []
    for case_id, digest in zip(labels.texts("case_id"), labels.texts("digest"), strict=True):
        columns = tuple(digest.split("|")[:-1])
        if columns not in digests:
            digests[columns] = {}
            # Beside verdicts there may be no text.
            if columns and {*columns} <= table.columns.keys():
                texts = zip(table.texts(case), text_digests(table, columns), strict=True)
                # A case has a text in each epoch.
                digests[columns] = grouped(texts)
        are_kept.append(digest in digests[columns].get(case_id, (digest,)))
    if not any(are_kept):
        message = f"every label is of another text than its case has in {table.file}"
        files = f"{shlex.quote(table.file)} --out {shlex.quote(labels.file)}"
        hint = f"label them anew: python -m pytest_jrh label {files}"
        raise InputError(message, labels.file, hint=hint)
    return _kept_rows(labels, are_kept, "of a text that has changed since: not used")


def of_one_question(labels: Table, table: Table) -> Table:
    """The labels of one wording of each rubric: of several that whose text this table has.

    Raises `InputError` where a rubric has labels of several, and nothing says which one is meant.
    """
    digests = labels.texts("rubric_digest")
    questions = [*zip(labels.texts("rubric_id"), digests, strict=True)]
    in_table = {question_digest(Rubric("", text)) for text in {*table.texts("rubric_text")}}
    kept_questions = set()
    for rubric, of_rubric in grouped(questions).items():
        wordings = {*of_rubric} - {""}
        of_table = wordings & in_table if len(wordings) > 1 else wordings
        if wordings and len(of_table) != 1:
            message = (
                f"holds labels of {len(wordings)} wordings of the rubric {shown(rubric)}, and "
                "nothing says which of them the verdicts answer"
            )
            hint = "keep those of one rubric_digest in a file of its own, and name it: --labels CSV"
            raise InputError(message, labels.file, hint=hint)
        kept_questions |= {(rubric, digest) for digest in ("", *of_table)}
    are_kept = [key in kept_questions for key in questions]
    return _kept_rows(labels, are_kept, "of another wording of the rubric: not used")


def _kept_rows(labels: Table, are_kept: Sequence[bool], why: str) -> Table:
    """The labels of the rows that are kept, and a notice of how many are left out."""
    left_out = [*compress(labels.texts("case_id"), map(not_, are_kept))]
    if not left_out:
        return labels
    columns = {name: [*compress(cells, are_kept)] for name, cells in labels.columns.items()}
    ids = listed(dict.fromkeys(left_out), 5)
    notice = f"{counted(len(left_out), 'label')} {why} ({ids})."
    lines = [*compress(labels.lines, are_kept)]
    return replace(labels, lines=lines, columns=columns, notices=(*labels.notices, notice))


class TextToLabel(NamedTuple):
    """A text to label with its digest, and what its rubric asks, where the file says it."""

    key: CaseKey
    turns: Sequence[Message]
    digest: str
    rubric_text: str = ""


def texts_to_label(table: Table, text_columns: Sequence[str], case: str) -> Iterator[TextToLabel]:
    """The rows of a table, each with a turn for every text, whose role is its column. What is not
    named is found by its name; raises `InputError` where that cannot be.
    """
    text_columns = text_columns or columns_named(table, TEXTS)
    epoch = only_column(table, "epoch", text_columns)
    # No option names this column.
    rubric_ids = columns_named(table, "rubric_id")
    rubric = rubric_ids[0] if rubric_ids else only_column(table, "rubric", text_columns)
    case = case or case_column(table, text_columns, [epoch, rubric])
    needed_columns = [("case", case, "")]
    for name in text_columns or [""]:
        needed_columns.append(("text", name, "; a file without the text holds nothing to label"))
    for role, name, more_hint in needed_columns:
        if name not in table.columns:
            column = name or "is known"
            message = f"no column {column}; its columns are {listed(table.columns)}"
            hint = f"name it: --{role} COL{more_hint}"
            raise InputError(table.problem(message, key=f"--{role}", hint=hint))
    digests = text_digests(table, text_columns)
    columns = {"case": case, "rubric": rubric, "rubric_text": "rubric_text", "epoch": epoch}
    for row, (_, cells) in enumerate(table.rows(columns)):
        turns = []
        for name in text_columns:
            if text := as_text(table.columns[name][row]):
                turns.append({"role": name, "content": text})
        key = CaseKey.of(cells["case"], cells["rubric"], cells["epoch"])
        yield TextToLabel(key, turns, digests[row], cells["rubric_text"])


def text_digests(table: Table, columns: Sequence[str]) -> list[str]:
    """For each row the names of columns and a digest of their texts, as label files keep it."""
    digests = []
    for texts in zip(*map(table.texts, columns), strict=True):
        same = json.dumps([*map(same_lines, texts)])
        digests.append("|".join([*columns, short_digest(same, 16)]))
    return digests
