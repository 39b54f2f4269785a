"""Verdicts of a table beside labels of people, of its columns: which answers it has, words become
scores, rows become cases, and labels of another file, which may have weights, are joined to them.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, NamedTuple

from pytest_jrh.core import (
    Fields,
    InputError,
    Problem,
    as_known,
    counted,
    listed,
    nearest,
    shown,
    spreadsheet_hint,
)
from pytest_jrh.core.cases import SETTLED, label_of
from pytest_jrh.core.documents import (
    CANNOT_TELL,
    NoLabelError,
    as_seen,
    as_word,
    label_value,
    part_of,
    whole_number,
)
from pytest_jrh.core.scales import (
    BARE,
    BETWEEN,
    BINARY,
    NO_SUCH,
    NO_SUCH_WORDS,
    ONES,
    Scale,
    classed,
    with_not_applicable,
)
from pytest_jrh.sources.columns import CaseKey, Columns, Table, columns_named, words_of
from pytest_jrh.sources.results.scores import quoted

_MOST_CLASSES = 20
"""Of more different answers the confusion table is read by nobody."""
_FEWEST_CLASSES = 2
_LONGEST_NAME = 60
_NUMBER = r"[-+]?\d*[.,]?\d+([eE][-+]?\d+)?\s*%?"
_SHARE = r"(?a)[01]([.,]0*)?|0?[.,]\d+|\d([.,]\d+)?[eE]-\d{1,3}"
_CONFIDENCES = words_of("confidence confident certainty conf")
# What is no answer: a long text, or an object or a list of JSON.
_NO_WORD = r".{81}|[{[]'|\[\{"
# What a word that is mapped to says of all: there are two answers.
_OF_TWO = {*map(str, BINARY.words), *BINARY.words.values()}
# No name of a person, as these begin with no blank.
_SETTLED = f" {SETTLED}"
_ERRORS = {"#n/a", "#ref!", "#value!", "#div/0!", "#name?", "#null!", "#num!"}
"""What a spreadsheet writes where a formula has no value."""
_NO_VALUES = {"", "nan", "null", "none", *_ERRORS}
_NO_ANSWERS = {"", CANNOT_TELL, *_ERRORS}
_TELL_APART = "name the column in which these rows differ: --repeat, --rubric, --judge or --case"
# What turns a name, and what it is no good to succeed in.
_NEGATIONS = words_of("not no non never un attack jailbreak injection exploit")


def table_scale(
    tables: Iterable[Columns], mapping: Fields, classes: Sequence[str], scale: Scale | None
) -> Scale:
    """The answers of tables: the `classes` that are named, the `scale`, or what the words of all
    are; beside them n/a, where it is among the words.
    """
    labels: dict[str, str] = {}
    verdicts: dict[str, str] = {}
    sizes = Counter[str]()
    for columns in tables:
        for words, names in (
            (labels, (*columns.labels, columns.settled)),
            (verdicts, (*columns.verdicts, columns.baseline)),
        ):
            for name in names:
                texts = dict.fromkeys(columns.texts[name])
                sizes[name] = len(texts)
                for text in texts:
                    value = mapping.get(as_word(text), text)
                    if (word := as_word(value)) not in _NO_ANSWERS:
                        words.setdefault(word, as_seen(value))
    named = {as_word(name): as_seen(name) for name in classes}
    if classes:
        scale = _named(named)
    elif scale is None and {*map(as_word, mapping.values())} & _OF_TWO:
        scale = BINARY
    elif scale is None:
        scale = _found(labels, verdicts, max(sizes, key=sizes.__getitem__))
    has_no_such = {*labels, *verdicts} & ({*NO_SUCH_WORDS} - named.keys())
    return with_not_applicable(scale, "") if has_no_such or NO_SUCH in named else scale


def _named(named: Mapping[str, str]) -> Scale:
    """The classes that an option names, by their words."""
    for word, name in named.items():
        if word in _NO_VALUES - {""} or word == CANNOT_TELL:
            raise InputError(
                f"{shown(name)} cannot be a class, as it means that there is no answer",
                key="--classes",
            )
        if not _is_name(name):
            raise InputError(
                f"got {shown(name)}; a class has 1 to {_LONGEST_NAME} characters, and no {BETWEEN}",
                key="--classes",
            )
    names = [name for word, name in named.items() if word != NO_SUCH]
    if len(named) < _FEWEST_CLASSES or len(names) > _MOST_CLASSES:
        raise InputError(
            f"got {counted(len(names), 'name')}; must be the names of {_FEWEST_CLASSES} to "
            f"{_MOST_CLASSES} classes, such as first,second,tie",
            key="--classes",
        )
    return classed(tuple((name, "") for name in names))


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and BETWEEN not in name


def _found(labels: Mapping[str, str], verdicts: Mapping[str, str], widest: str) -> Scale:
    """What words are: classes where they are others than those of two answers, and labels and
    verdicts have the same ones. What is read as two answers may yet be refused, value by value.
    Most words are in the column `widest`.
    """
    words = {**verdicts, **labels}
    known = words.keys() & {*BINARY.label_words, *BARE}
    others = words.keys() - known - {*NO_SUCH_WORDS}
    is_number = any(re.fullmatch(_NUMBER, word) or part_of(word) for word in others)
    if not others or is_number or others & _NO_VALUES:
        return BINARY
    if len(known) + len(others) > _MOST_CLASSES:
        raise InputError(
            f"labels and verdicts have {len(words):,} different values, such as "
            f"{shown(words[max(others)])}, most of them in the column {shown(widest)}; "
            f"there can be at most {_MOST_CLASSES} classes",
            key="--classes",
            hint="if other columns have the answers, name them: --label COL, --verdict COL; to "
            "count a word as one of the classes: --map WORD=CLASS",
        )
    of_labels, of_verdicts = others - verdicts.keys(), others - labels.keys()
    # A word of one side alone may be misspelled.
    is_unlike = (of_labels or of_verdicts) if known else (of_labels and of_verdicts)
    if is_unlike or not all(_is_name(words[word]) for word in others):
        return BINARY
    return classed(tuple((words[word], "") for word in sorted(known | others)))


class Verdict(NamedTuple):
    """What a text means, or somebody said by it: a score, or None for a word that is none.

    A verdict that is a number from 0 to 1 has the `probability` of a violation.
    """

    score: int | None
    probability: float | None = None


@dataclass
class Values:
    """Reads the values of columns as answers on the `scale`, after a `mapping` of words.

    `one` says of columns what 1 means, by a key of `ONES`, and under "" of all others; without it
    their names do. From a `threshold` on a verdict that is a number is a 1. While it reads it keeps
    the words of each score, `meanings`; the columns `of_numbers`; and what 1 means in each column
    that has `bare_ones`, empty where nothing says it. `seen` are the texts of each column,
    `errors` the cells that are an error of the spreadsheet, and `hints` were given.
    """

    mapping: Fields
    scale: Scale
    one: Mapping[str, str]
    threshold: float | None
    meanings: defaultdict[int, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    of_numbers: dict[str, None] = field(default_factory=dict)
    bare_ones: dict[str, str] = field(default_factory=dict)
    seen: dict[str, dict[str, int]] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    hints: set[str] = field(default_factory=set)

    def read(
        self,
        table: Table,
        column: str,
        texts: Sequence[str],
        problems: list[Problem],
        *,
        is_verdict: bool,
    ) -> list[Verdict | None]:
        """What the texts of a column mean, None for an empty one. What means nothing is a problem
        with the line where it is first.
        """
        lines: dict[str, int] = {}
        for text, line in zip(texts, table.lines, strict=True):
            lines.setdefault(text, line)
        self.seen.setdefault(column, {}).update(lines)
        verdicts = {}
        unused = self.mapping.keys() - {*map(as_word, lines)}
        for text, line in lines.items():
            if as_word(text) in _ERRORS - self.mapping.keys():
                self.errors[column] += texts.count(text)
            try:
                verdicts[text] = self._verdict(text, column, is_verdict=is_verdict)
            except NoLabelError as error:
                hint = self._way(text, lines, unused, is_verdict=is_verdict)
                if hint.casefold() in self.hints:
                    # One option reads all such values.
                    break
                self.hints.add(hint.casefold())
                problems.append(Problem(str(error), table.file, line, column, hint))
        return [verdicts.get(text) for text in texts]

    def _verdict(self, text: str, column: str, *, is_verdict: bool) -> Verdict | None:
        """What a text means; raises `NoLabelError` where it means nothing."""
        word = as_word(text)
        value = self.mapping.get(word, text)
        if as_word(value) in _NO_ANSWERS:
            # What is no verdict is as a cell that is empty.
            return None if is_verdict or word in _NO_VALUES else Verdict(None)
        bare = number = None
        if word not in self.mapping and self.scale.is_verdict:
            # German and French Excel write 1,0.
            bare = BARE.get(re.sub(",0{1,2}$", "", word))
            if self.threshold is not None and is_verdict and re.fullmatch(_SHARE, text):
                number = float(text.replace(",", "."))
                bare = int(number >= self.threshold)
        if bare is None:
            score = label_value(value, self.scale)
        else:
            meaning = self.one.get(column) or self.one.get("") or _meaning_of_one(column)
            self.bare_ones[column] = meaning
            is_pass = meaning == "passed"
            score = 1 - bare if is_pass else bare
            if number is not None:
                self.of_numbers[column] = None
                number = 1 - number if is_pass else number
                text = f"{'from' if bare else 'below'} {self.threshold}"
            if is_pass:
                text = f"{text} ({column})"
        self.meanings[score][text] = None
        return Verdict(score, number)

    def _way(
        self, text: str, texts: Iterable[str], unused: Iterable[str], *, is_verdict: bool
    ) -> str:
        """How to say what a word means, or what scale a number of such texts is on. Nothing that is
        said may give a wrong value where it is copied. An `unused` word of the mapping may mean it.
        """
        word = as_seen(text)
        if re.match(_NO_WORD, word):
            way = "--verdict" if is_verdict else "--label"
            return (
                f"name a column of short answers: {way} COL; or, in JSON, a field: {way} /COL/FIELD"
            )
        way = f"--map={shlex.quote(word)}" if word.startswith("-") else f"--map {shlex.quote(word)}"
        missing = f"to count {shown(word)} as missing, pass {way}="
        mapped = nearest(as_word(text), unused)
        if mapped is not None:
            return (
                f"no cell has the word {shown(mapped)}, which --map has; for {shown(word)}, use "
                f"{way}={self.mapping[mapped]}"
            )
        if word.casefold() in _NO_VALUES:
            return missing
        if is_verdict and self.threshold is not None and re.fullmatch(_NUMBER, word):
            return "with --threshold, a verdict must be a number from 0 to 1, such as 0.71 or 0,71"
        if part := part_of(text):
            return f"name the scale, with its lowest score for LOW: --scale LOW-{part[1]}"
        if whole_number(text) is not None:
            numbers = [number for number in map(whole_number, texts) if number is not None]
            return (
                f"if the numbers ({min(numbers)} to {max(numbers)}) are scores, name the scale: "
                "--scale LOW-HIGH; if the numbers are classes, name all classes: --classes A,B,..."
            )
        if is_verdict and self.scale.is_verdict and re.fullmatch(_SHARE, word):
            return "for probabilities, pass --threshold 0.5, so that 0.5 or more counts as 1"
        if re.fullmatch(_NUMBER, word):
            # A mean of what several people said, or of what a judge said several times.
            role = "repeat" if is_verdict else "annotator"
            return (
                "a score must be a whole number: instead of a mean, write a row for each score, "
                f"with a column {shown(role)}"
            )
        if self.scale.is_ordered:
            return f"say which score {shown(word)} is: {way}=SCORE; {missing}"
        if not self.scale.is_verdict:
            return f"say which class {shown(word)} is: {way}=CLASS; {missing}"
        ways = [f"{way}={meaning}" for meaning in self.scale.words.values()]
        return (
            f"say what {shown(word)} means: {' or '.join(ways)}; if answers are classes, name all "
            f"classes: --classes A,B,...; {missing}"
        )

    def refuse_unclear(self, table: Table) -> None:
        """Refuse, once all is read, a threshold without a number, and a 1 that nothing explains."""
        if self.threshold is not None and not self.of_numbers:
            raise InputError(
                "verdicts must be numbers from 0 to 1, but no verdict is a number",
                table.file,
                key="--threshold",
                hint="name a column of such numbers: --verdict COL; or leave out --threshold",
            )
        for column in self.of_numbers.keys() - self.one.keys():
            if words_of(column) & _CONFIDENCES and not _meaning_of_one(column):
                meaning = quoted(f"{column}={BINARY.classes[0].columns[0]}")
                raise InputError(
                    f"{shown(column)} may say how sure the judge is of any of its verdicts",
                    table.file,
                    key="--threshold",
                    hint="--threshold needs the probability of a violation: name its column, "
                    f"--verdict COL; if {shown(column)} has it, add --one {meaning}",
                )
        table.refuse(self.unclear_ones(table))

    def unclear_ones(self, table: Table) -> list[Problem]:
        """A problem where nothing says what a 1 means in some of the columns read so far."""
        unclear = [column for column, meaning in self.bare_ones.items() if not meaning]
        if not unclear:
            return []
        values = "numbers from 0 to 1"
        if self.threshold is None:
            texts = {*chain.from_iterable(map(self.seen.__getitem__, unclear))}
            values = listed(sorted(filter(None, texts)), 5)
        message = f"nothing says what 1 means in {listed(map(shown, unclear))} (values: {values})"
        prefixes = ["--one="]
        if any(self.bare_ones.values()):
            # What is said of all columns would be said of those, too, whose names say it.
            prefixes = [f"--one={column}=" for column in unclear]
        ways = [shlex.join(prefix + meaning for prefix in prefixes) for meaning in ONES]
        hint = f"use {' or '.join(ways)}"
        return [Problem(message, table.file, None, "--one", hint, "--one ONE")]

    def strangers(self) -> list[str]:
        """The words of the mapping that no column has."""
        return sorted(self.mapping.keys() - map(as_word, chain.from_iterable(self.seen.values())))


def _meaning_of_one(column: str) -> str:
    """What the name of a column says that 1 means."""
    tokens = words_of(column)
    meanings = [meaning for meaning, names in ONES.items() if tokens & {*names}]
    return meanings[0] if len(meanings) == 1 and not tokens & _NEGATIONS else ""


@dataclass(slots=True)
class TableCase:
    """A case of a table: the `label` is what the `votes` of people come to, by their names, or what
    is settled, `notes` what they wrote beside them, and `given` are by judge the verdicts that
    there are, one a repeat, each behind its row. `row` is the first one.
    """

    key: CaseKey
    row: int
    cluster: str | None
    label: int | None = None
    votes: dict[str, int | None] = field(default_factory=dict)
    notes: dict[str, str] | None = None
    weight: float = 0.0
    stratum: str = ""
    given: dict[str, list[tuple[int, Verdict]]] = field(default_factory=dict)

    def scores(self, judge: str) -> tuple[int, ...]:
        """The scores of a judge's verdicts."""
        return tuple([verdict.score or 0 for _, verdict in self.given.get(judge, ())])

    def probabilities(self, judge: str) -> tuple[float, ...]:
        """The probabilities of those that are numbers."""
        verdicts = [verdict for _, verdict in self.given[judge]]
        return tuple([of.probability for of in verdicts if of.probability is not None])


@dataclass
class VerdictTable:
    """The cases of a `table`, in its order, and how `values` are read. `notices` say what counts
    for nothing. `systems` are by row those that gave the two answers of a pair. `changed`
    are the cases, by their ids, whose labels are of another text or question than these
    verdicts.
    """

    table: Table
    columns: Columns
    cases: dict[CaseKey, TableCase]
    values: Values
    notices: list[str]
    changed: Collection[str] = ()
    systems: Sequence[tuple[str, ...]] = ()

    @property
    def judges(self) -> Sequence[str]:
        """The judges, each once, in the order of the table."""
        if not self.columns.judge:
            return self.columns.verdicts
        return [*dict.fromkeys(judge for case in self.cases.values() for judge in case.given)]

    @property
    def turning(self) -> str:
        """How the meaning of a 1, or of words, in its verdicts or labels is turned."""
        for column in (*self.columns.verdicts, *self.columns.labels):
            if meaning := self.values.bare_ones.get(column):
                [opposite] = ONES.keys() - {meaning}
                return f"--one={quoted(f'{column}={opposite}')}"
        return "--map says what words mean"


def cases_of(
    table: Table, columns: Columns, values: Values, swapped: Sequence[bool] = ()
) -> VerdictTable:
    """Put the rows of a table together as cases. Rows that show two answers the other way round are
    `swapped`: a case has as many verdicts on them as on the others, else it has none.

    The verdicts of the column `baseline` are those of a judge of that name, beside the others.
    Raises `InputError` for values that mean nothing, where rows contradict each other, and where
    one case is there twice.
    """
    problems: list[Problem] = []
    texts, count = columns.texts, len(table.lines)
    annotators = [*texts[columns.annotator]]
    repeats, sides = texts[columns.repeat], swapped or texts[""]
    for row, split in enumerate(table.texts("split")):
        if split.casefold() == SETTLED:
            annotators[row] = _SETTLED
    people: dict[str, Sequence[str]] = {name: [name] * count for name in columns.labels}
    if len(people) == 1:
        people = dict.fromkeys(people, annotators)
    if columns.settled:
        people[columns.settled] = [_SETTLED] * count
    labels = {}
    for name in people:
        labels[name] = values.read(table, name, texts[name], problems, is_verdict=False)
    verdicts = {}
    for name in filter(None, (*columns.verdicts, columns.baseline)):
        verdicts[name] = values.read(table, name, texts[name], problems, is_verdict=True)
    cases: dict[CaseKey, TableCase] = {}
    # Of each judge, repeat and side by the case.
    first_verdicts = defaultdict[Any, dict[CaseKey, Verdict | None]](dict)
    # Most cases have the votes of others, and a mapping for each takes a tenth of all memory.
    alike: dict[tuple[tuple[str, int | None], ...], dict[str, int | None]] = {}
    notes = table.texts("".join(columns_named(table, "note notes comment")[:1]))
    for row, key in enumerate(_keys(table, columns)):
        line, case = table.lines[row], cases.get(key)
        if case is None:
            case = cases[key] = TableCase(key, row, texts[columns.cluster][row] or None)
        if notes[row]:
            case.notes = {**(case.notes or {}), annotators[row]: notes[row]}
        is_one_more_vote = annotators[row] not in {"", *case.votes}
        for name, of_column in labels.items():
            label, person = of_column[row], people[name][row]
            if label is not None and person not in case.votes:
                votes = {**case.votes, person: label.score}
                case.votes = alike.setdefault((*votes.items(),), votes)
            elif label is not None and case.votes[person] != label.score:
                problems.append(
                    Problem(
                        f"the case {shown(key.case)} has a different label in a row above",
                        table.file,
                        line,
                        name,
                        'keep one label; if several people gave labels, add a column "annotator"',
                    )
                )
        of_row = texts[columns.judge][row]
        for name, of_column in verdicts.items():
            verdict = of_column[row]
            if columns.judge and not of_row and verdict is None:
                # A row of a label alone.
                continue
            judge = of_row if columns.judge and name != columns.baseline else name
            first = first_verdicts[judge, repeats[row], sides[row]]
            if key in first:
                if is_one_more_vote and verdict in (None, first[key]):
                    # The verdict stands beside the label of each person.
                    continue
                problems.append(
                    Problem(
                        f"the case {shown(key.case)} is also in {table.place(case.row)}",
                        table.file,
                        line,
                        columns.case,
                        _TELL_APART,
                    )
                )
            first.setdefault(case.key, verdict)
            given = case.given.setdefault(judge, [])
            if verdict is not None:
                given.append((row, verdict))
    unnamed = []
    for key, case in cases.items():
        named = case.votes.keys() - {"", _SETTLED}
        if "" in case.votes and named:
            unnamed.append(
                Problem(
                    f"the case {shown(key.case)} has a label without an annotator, and a label by "
                    f"{listed(map(shown, sorted(named)))}",
                    table.file,
                    table.lines[case.row],
                    columns.annotator,
                    "write into this column who gave each label",
                )
            )
    if problems:
        problems += values.unclear_ones(table)
    table.refuse(unnamed or problems)
    is_ordered = values.scale.is_ordered
    for case in cases.values():
        for given in case.given.values() if swapped else ():
            given.sort(key=lambda row_and_verdict: swapped[row_and_verdict[0]])
            if 2 * sum(swapped[row] for row, _ in given) != len(given):
                given.clear()
        if _SETTLED in case.votes:
            case.votes = {**case.votes}
            case.label = case.votes.pop(_SETTLED)
        else:
            case.label = label_of([*case.votes.values()], is_ordered=is_ordered)
    return VerdictTable(table, columns, cases, values, list(table.notices))


def _keys(table: Table, columns: Columns) -> Iterator[CaseKey]:
    """The case of each row. A row that names no rubric is of the one that all others name, if it
    does not say by a digest what was asked.
    """
    texts = columns.texts
    rubrics = texts[columns.rubric]
    rows = table.cells(columns.rubric, "rubric_digest")
    named = {rubric for rubric, digest in rows if rubric or digest}
    if len(named) == 1:
        rubrics = [*named] * len(rubrics)
    for row, name in enumerate(texts[columns.case]):
        # Where no column names the case, its place does.
        yield CaseKey.of(name or table.place(row), rubrics[row], texts[columns.epoch][row])


def add_labels(table: VerdictTable, labels: VerdictTable) -> None:
    """Give the cases of a table the labels of another one, each of the case that it names there.

    Those of other cases stand alone; raises `InputError` where all are.
    """
    rubrics = {key.rubric for key in table.cases}
    of_labels = {key.rubric for key in labels.cases}
    # Where one of the two names no rubric, its cases are those of the only one of the other.
    is_same = len(rubrics) == len(of_labels) == 1 and "" in rubrics | of_labels
    labelled, ids = {}, {key.case for key in table.cases}
    for key, case in labels.cases.items():
        if case.votes or case.label is not None:
            known = key._replace(case=as_known(key.case, ids))
            labelled[known._replace(rubric=min(rubrics)) if is_same else known] = case
    labels.cases = labelled
    refuse_strangers(table, labels, "labelled case")
    for key, of_people in labelled.items():
        if key in table.cases or of_people.label is not None:
            case = table.cases.setdefault(key, of_people)
            case.label, case.votes = of_people.label, of_people.votes
            case.notes = of_people.notes
            case.weight, case.stratum = of_people.weight, of_people.stratum
    table.columns = table.columns._replace(labels=labels.columns.labels)
    table.notices += labels.notices


def refuse_strangers(table: VerdictTable, strangers: VerdictTable, noun: str) -> None:
    """Refuse another file that has nothing of this kind of the table; say what cases each has."""
    if table.cases.keys() & strangers.cases.keys():
        return
    cases, table_cases = (
        listed(map('"{}"'.format, file.cases), 3) or "none" for file in (strangers, table)
    )
    hint = f"{strangers.table.file} has the cases {cases}, but {table.table.file} has {table_cases}"
    for stranger in islice(strangers.cases, 1):
        meant = spreadsheet_hint(stranger.case, (key.case for key in table.cases))
        hint += f"; {meant or 'name columns that both files have: --case COL, --rubric COL'}"
    raise InputError(
        f"has no {noun} with the id, rubric and epoch of a case in {table.table.file}",
        strangers.table.file,
        hint=hint,
    )


def weigh(labels: VerdictTable, table: VerdictTable) -> str:
    """Give the cases of a label file the weights of its rows, and say how many cases of a table
    they stand for; empty where no row has a weight. One that is `13 of fail` is of 13 cases, for
    which the labels stand that there are of them now: there may be fewer than were drawn.

    Raises `InputError` for weights that cannot be, are missing, or stand for more cases than there
    are.
    """
    of_file, columns, cases = labels.table, labels.columns, len(table.cases)
    if not any(of_file.texts("weight")):
        return ""
    labels.columns = columns._replace(weight="weight")
    problems = []
    weights = zip(of_file.lines, of_file.texts("weight"), _keys(of_file, columns), strict=True)
    for line, text, key in weights:
        case = labels.cases[key]
        try:
            weight = float(text.partition(" of ")[0] or 0)
        except ValueError:
            weight = 0
        message = ""
        if not 1 <= weight <= cases:
            message = f"; must be a number from 1 to {cases:,}, the number of cases in "
            message += f"{table.table.file}; write a weight into every line, or into none"
        elif case.stratum and case.stratum != text:
            message = f", but in a line above the same case has {shown(case.stratum)}"
        if message:
            problems.append(Problem(f"got {shown(text)}{message}", of_file.file, line, "weight"))
        else:
            case.stratum, case.weight = text, weight
    of_file.refuse(problems)
    labelled = [case for case in labels.cases.values() if case.label is not None]
    numbers = Counter(case.stratum for case in labelled)
    for case in labelled:
        if " of " in case.stratum:
            case.weight /= numbers[case.stratum]
    number, total = counted(len(labelled), "label"), round(sum(case.weight for case in labelled))
    if total > cases:
        raise InputError(
            f"{number} stand for {total:,} cases, but {table.table.file} has only {cases:,}",
            of_file.file,
            key="weight",
            hint=f"draw a new sample from {table.table.file}, and write its labels to a new file",
        )
    return f"weighted: {number} stand for {total:,} of {counted(cases, 'case')}"
