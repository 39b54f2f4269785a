"""A table column by column, and which of its columns is what: by the names that people use, or as
options say; which rows of labels are of the texts in it, and which of its texts are to be labelled.

And by what figures are told apart: the values that fields of runs, or columns of a table, have of
each case. What people or judges said of a case is no property of it, and is refused.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain, compress
from operator import itemgetter, not_
from typing import Any, NamedTuple

from pytest_jrh.core import (
    Fields,
    InputError,
    Problem,
    counted,
    first_problems,
    frozen,
    grouped,
    listed,
    nearest_hint,
    same_lines,
    short_digest,
    shown,
)
from pytest_jrh.core.cases import Message, Rubric, RunKey, Slices
from pytest_jrh.core.documents import as_text, as_word, whole_number
from pytest_jrh.core.transcript import COLUMN_ID
from pytest_jrh.sources.results.scores import Results, quoted
from pytest_jrh.sources.source import as_pointer, at, clusters_by, short_text, top_field

_BLANKS = r"[\s-]+"
_HUMP = "(?<=[a-z])(?=[A-Z])"
ROLES: Mapping[str, str] = {
    "label": "label human gold target expected human_label gold_label true_label ground_truth",
    "verdict": "verdict judge score prediction predicted pred judgment judgement grade "
    "judge_verdict judge_score judge_label model_label",
    "judge": "",
    "case": "case case_id id sample_id transcript_id example_id example",
    "rubric": "rubric rubric_id criterion criteria",
    "cluster": "cluster run run_id task task_id item item_id",
    "epoch": "epoch",
    "annotator": "annotator",
    "settled": "",
    "repeat": "repeat replicate",
    "reasoning": "reasoning rationale explanation reason",
    "baseline": "",
    "by": "",
    "order": "",
    "weight": "",
}
"""What columns are taken for, and the names that they may have, whatever their case."""
OF_PEOPLE = ("label", "annotator", "settled")
"""The columns that stand in a file of labels, where there is one."""
PLACE = "{rubric}"
"""What stands in a pattern for a rubric, and the column of the rubrics that it gives."""
NONE = "none"
"""What an option names where no column has the role."""
TEXTS = "input prompt question query context output response answer completion text transcript"
"""The names of columns that hold what is judged."""
BESIDE = "rubric_text note notes comment"
"""Of those that hold what is said about it."""
_WITHOUT_OPTION = ("epoch", "reasoning")
_MORE_IDS = "idx pair"
_MORE_REPEATS = "run run_id trial attempt seed"
_ABOUT = "name a field or column that says what a case is about, such as its category"
_FEWEST_CLUSTERS = 5
_MOST_ANSWERS = 6
# In fewer than five rows all may differ.
_SHORTS = r"(?m)(?:(?!\d+[.,]\d+$|\d{1,4}[-/.]\d\d?[-/.]\d{1,4})\S{1,40}\n){5,}"
_LOOKED_AT = 1_000
_MOST_NAMED = 3
# In a text that is judged, and not in a title or a category.
_FEWEST_BLANKS = 3


@frozen
class Table:
    """A table as it was read, column by column, with the line of each row; a cell that is not there
    is None.

    Of a JSON document `path` is the list of its rows, and `lines` are their numbers. Of another
    tool's `results` it has those rows that are needed; `notices` say what is left out. Columns that
    were `made` of others are no columns of the file. Where cells have several lines, `sheet_rows`
    are by the line of a row the one that a spreadsheet shows.
    """

    file: str
    lines: Sequence[int]
    columns: Mapping[str, Sequence[Any]]
    path: str | None = None
    results: Results | None = None
    notices: Sequence[str] = ()
    made: Collection[str] = ()
    sheet_rows: Mapping[int, int] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The columns of the file."""
        return [name for name in self.columns if name not in self.made]

    def place(self, row: int) -> str:
        """Where a row is, as somebody finds it."""
        line = self.lines[row]
        return f"row {self.sheet_rows[line]}" if self.sheet_rows else f"line {line}"

    def texts(self, column: str) -> list[str]:
        """The values of a column as texts; empty ones where there is no such column."""
        if column not in self.columns:
            return [""] * len(self.lines)
        # A table has many cells, nearly all of them texts.
        cells = self.columns[column]
        return [cell.strip() if type(cell) is str else as_text(cell) for cell in cells]

    def cells(self, *columns: str) -> Iterator[tuple[str, ...]]:
        """The texts of some columns, row by row."""
        return zip(*map(self.texts, columns), strict=True)

    def at(self, place: str) -> list[Any]:
        """What rows have in a column, or at a pointer: nothing where none of them has it."""
        name, pointer = top_field(place), as_pointer(place)
        cells = [at({name: value}, pointer) for value in self.columns.get(name, ())]
        return cells if cells.count(None) < len(cells) else []

    def error(self, message: str, hint: str | None = None, line: int = 1) -> InputError:
        """What is wrong with a line, or with the columns, whose names are in the first."""
        return InputError(message, self.file, line if self.path is None else None, hint=hint)

    def kept(self, are_kept: Iterable[bool], *notices: str) -> Table:
        """The table with the rows that are kept, and with more notices."""
        are_kept = [*are_kept]
        columns = {name: [*compress(cells, are_kept)] for name, cells in self.columns.items()}
        lines = [*compress(self.lines, are_kept)]
        return replace(self, lines=lines, columns=columns, notices=(*self.notices, *notices))

    def refuse(self, problems: Sequence[Problem]) -> None:
        """Refuse the table where there are any problems of its rows."""
        if problems:
            raise InputError(first_problems(problems, self.file, self.path))


class Columns(NamedTuple):
    """Which column is taken for what, empty where none is; the `texts` of these are by their names.

    `labels` are one column a person; with `annotator` there is one, and that column names the
    person. `settled` has labels that win over what people say. `verdicts` are one column a judge;
    with `judge` there is one, and that column names the judge. `baseline` has earlier verdicts;
    `by` tell figures apart, and `order` rows that show two answers the other way round.
    `guessed_label` is the column of labels where nobody is known to have
    given them, and `shown` hold the texts that were judged.
    """

    texts: Mapping[str, Sequence[str]]
    labels: Sequence[str] = ()
    verdicts: Sequence[str] = ()
    judge: str = ""
    case: str = ""
    rubric: str = ""
    cluster: str = ""
    epoch: str = ""
    annotator: str = ""
    settled: str = ""
    repeat: str = ""
    reasoning: str = ""
    baseline: str = ""
    by: Sequence[str] = ()
    order: str = ""
    guessed_label: str = ""
    weight: str = ""
    shown: Sequence[str] = ()

    @property
    def label(self) -> str:
        """The column of labels, or the first of several."""
        return self.labels[0] if len(self.labels) == 1 else listed(self.labels, _MOST_NAMED)

    def taken(self) -> dict[str, Sequence[str]]:
        """Each role with its columns, in the order in which they are told."""
        several = {"label": self.labels, "verdict": self.verdicts, "by": self.by}
        columns = {role: several.get(role) or [getattr(self, role, "")] for role in ROLES}
        return {role: names for role, names in columns.items() if any(names)}

    @property
    def used(self) -> set[str]:
        """The columns that are taken for something."""
        return {*self.texts, *self.by, self.order, self.weight}


def refuse_missing(
    named: Iterable[tuple[str, str]], tables: Sequence[Table], labels: Table | None
) -> None:
    """Refuse a column that is named and that none of the tables has; that of labels stands in their
    file, where there is one, and what tells figures apart in the first.
    """
    for role, column in named:
        its_tables = tables if labels is None or role not in OF_PEOPLE else [labels]
        if role == "verdict":
            its_tables = [of for of in tables if of is not labels]
        its_tables = tables[:1] if role == "by" else its_tables
        columns: dict[str, None] = {}
        made = {"", PLACE}
        for table in its_tables:
            columns |= dict.fromkeys(table.names)
            columns |= table.results.metrics if table.results else {}
            made |= {*table.made}
        if column not in {*made, *columns} and role != "baseline":
            hint = nearest_hint(column, columns, "column")
            if column in tables[0].columns:
                hint = f"because of --labels, --{role} must name a column of {its_tables[0].file}"
            raise InputError(
                f"there is no column {shown(column)}; the columns are "
                f"{listed(map(shown, columns)) or 'all without a name; give each a name'}",
                its_tables[0].file,
                key=f"--{role}",
                hint=hint,
            )


def choose_columns(
    table: Table,
    named: Iterable[tuple[str, str]],
    needed: Collection[str],
    *,
    is_alone: bool = False,
) -> Columns:
    """Say which column of a table is what.

    `named` are columns behind their roles, which other tables may have; "" for a role that none
    has. `needed` says which of "label" and "verdict" the table is read for; one that is not alone
    must name its cases. One that is alone, with labels of people whose names it has, may lack the
    verdicts where nothing asks for them. Raises `InputError` where something is missing or not
    clear.
    """
    possible = {*table.columns, ""}
    assigned = [(role, column) for role, column in named if column in possible]
    for column, roles in grouped((column, role) for role, column in assigned).items():
        # A cluster may be what names the cases.
        exclusive = [role for role in roles if role not in ("cluster", "baseline", "order")]
        if len(exclusive) > 1 and column:
            raise table.error(
                f"{' and '.join(f'--{of}' for of in exclusive)} cannot both be {shown(column)}"
            )
    options = dict(assigned)
    several = grouped(assigned)
    labels, verdicts, by = (several.pop(role, []) for role in ("label", "verdict", "by"))
    # What names a case may say the order, too.
    order = "".join(several.pop("order", [])[-1:])
    chosen = {role: columns[-1] for role, columns in several.items()}
    if table.results and "judge" in table.columns:
        # Of other tables it may be the verdict.
        chosen.setdefault("judge", "judge")

    def taken() -> set[str]:
        """What is found as nothing else, as what an option names."""
        return {*chosen.values(), *verdicts, *labels}

    if len(labels) > 1 and chosen.setdefault("annotator", ""):
        raise table.error(
            "with several --label, each names the column of one person, so leave out --annotator"
        )
    if not labels:
        labels = [only_column(table, "label", taken())]
    for role in ("rubric", "epoch", "annotator", "repeat", "reasoning"):
        if role not in chosen:
            chosen[role] = only_column(table, role, taken())
    telling = [chosen.get(role, "") for role in ("rubric", "epoch", "annotator", "judge")]
    if "case" not in chosen:
        may_repeat = chosen["repeat"] or "".join(columns_named(table, _MORE_REPEATS)[:1])
        chosen["case"] = case_column(table, taken(), [*telling, may_repeat])
    if chosen["case"] and not chosen["repeat"] and "repeat" not in options:
        # The only column that tells apart rows of one case with one text, as those of a judge that
        # was asked several times.
        same_columns = (chosen["case"], *telling, *columns_named(table, TEXTS))
        if rows_apart(table, *same_columns) != len(table.lines):
            repeats = columns_named(table, _MORE_REPEATS)
            chosen["repeat"] = _telling_apart(table, repeats, taken(), same_columns)
    if "verdict" in needed:
        if "cluster" not in chosen:
            chosen["cluster"] = _cluster(table, taken(), chosen["case"])
        if not verdicts:
            verdicts = [*filter(None, [only_column(table, "verdict", taken())])]
    asks_for_judges = verdicts or table.results or options.keys() & {"judge", "repeat", "baseline"}
    if is_alone and not asks_for_judges and (chosen["annotator"] or len(labels) > 1):
        needed = ("label",)
    answers = {"label": labels, "verdict": verdicts}
    missing = [role for role in answers if role in needed and not any(answers[role])]
    joins_rows = not is_alone or chosen["repeat"] or chosen.get("judge")
    has_nameless_cases = joins_rows and not chosen["case"]
    if missing or has_nameless_cases:
        long = judged_texts(table, taken())
        case = chosen["case"] or _telling_apart(table, table.names, long, telling)
        way_to_case = f"--case {quoted(case or 'COL')}"
    if missing:
        if table.results:
            raise table.results.without_labels()
        kinds = " or ".join(f"{role}s" for role in missing)
        ways = [*_ways_to_name(table, missing, taken())]
        if has_nameless_cases:
            ways.append(way_to_case)
        hint = f"name the columns: {' '.join(ways)}"
        if "label" in missing:
            hint += (
                " (--label once for each person); or let people label the cases: python -m "
                f"pytest_jrh label {shlex.quote(table.file)} {way_to_case}"
            )
            # Those with usual names, and pairs of answers, the command finds by itself.
            if not columns_named(table, TEXTS):
                hint += "".join(f" --text {quoted(text)}" for text in long or ["COL"])
            if not columns_named(table, ROLES["rubric"]):
                hint += " --rubric 'ID: TEXT'"
        raise table.error(
            f"no column was recognized as {kinds}; the columns are "
            f"{listed(map(shown, table.names)) or 'all without a name; give each a name'}",
            hint,
        )
    if "label" in needed and "label" not in options and table.results is None:
        found = [] if "verdict" in options else verdicts
        chosen["guessed_label"] = _guessed_label(
            table, labels[0], chosen["annotator"], found, needed
        )
    if len(verdicts) > 1:
        # Of which judge it is, the column does not say.
        chosen["reasoning"] = ""
    if has_nameless_cases:
        raise table.error(
            "no column of case ids was recognized, so the rows of a case cannot be matched",
            f"name the column of ids: {way_to_case}",
        )
    texts = {column: table.texts(column) for column in {"", *taken()}}
    return Columns(
        texts,
        [*filter(None, labels)],
        verdicts,
        by=[*filter(None, by)],
        order=order,
        shown=judged_texts(table, {*texts, *by, order}),
        **chosen,
    )


def _ways_to_name(table: Table, roles: Iterable[str], taken: Collection[str]) -> Iterator[str]:
    """The options for these columns: with those that have a few words, some of them in common."""
    answers = {name: {*map(as_word, table.texts(name))} for name in table.names}
    numbers = Counter(chain.from_iterable(answers.values()))
    columns: dict[str, list[str]] = {"label": [], "verdict": []}
    for name, words in answers.items():
        shared = [word for word in words if numbers[word] > 1 and word.strip("01[]{}")]
        if shared and len(words) <= _MOST_ANSWERS and name not in taken:
            columns["verdict" if words_of(name) & _OF_A_JUDGE else "label"].append(quoted(name))
    for role in roles:
        yield from (f"--{role} {name}" for name in columns[role] or ["COL"])


def _guessed_label(
    table: Table, label: str, annotator: str, verdicts: Sequence[str], needed: Collection[str]
) -> str:
    """The column of labels where nobody is known to have given them, neither by its name nor by a
    column beside it; refused where it may be the judge's own or the task's.

    It was found by its name, as were the `verdicts`.
    """
    # Who gave the label of each row.
    kinds = {kind.upper() for kind in table.texts("annotator_kind")} - {""}
    is_of_people = bool(words_of(label) & _OF_PEOPLE) or kinds == {"HUMAN"}
    texts = columns_named(table, TEXTS)
    message = ""
    if kinds := kinds - {"HUMAN"}:
        message = f'"annotator_kind" says that {shown(label)} has labels by {listed(sorted(kinds))}'
    elif is_of_people:
        return ""
    elif "verdict" in needed and texts and words_of(label) & {"target", "expected"}:
        message = f"{shown(label)} may have expected answers to {shown(texts[0])}, not labels"
    elif verdicts and not any(words_of(column) & _OF_A_JUDGE for column in verdicts):
        columns = [*verdicts, *columns_named(table, ROLES["reasoning"])]
        message = (
            f"the judge may have written {shown(label)}, as well as {listed(map(shown, columns))}"
        )
    if message:
        raise table.error(
            message,
            f"name the column of people's labels by --label; if {shown(label)} has them, pass "
            f"--label {quoted(label)}",
        )
    return "" if annotator else label


def known_name(column: str) -> str:
    """How known names spell a column: `ticket_id` of `Ticket-ID`, `ticket id` and `TicketId`."""
    return re.sub(_BLANKS, "_", as_word(re.sub(_HUMP, "_", column)))


def words_of(column: str) -> set[str]:
    """The words that the name of a column is made of."""
    return {*re.split(r"[^a-z]+", known_name(column))}


_OF_PEOPLE = words_of("human annotator gold reviewer expert people person")
_EXPECTED = words_of(f"{ROLES['label']} ideal correct")
_OF_ANSWERS = words_of("human annotator reviewer label judge judgment judgement verdict prediction")
# Scores and grades may be of anybody, and a label is what is asked about.
_OF_A_JUDGE = words_of(ROLES["verdict"]) - {"score", "grade", "label"}


def columns_named(table: Table, names: str) -> list[str]:
    """The columns with one of these names, however they are spelled."""
    known_names = names.split()
    return [name for name in table.columns if known_name(name) in known_names]


def columns_like(table: Table, names: str) -> list[str]:
    """The columns of texts with one of these names as a word, or as the last one, as `bot answer`
    has it, that are none of expected answers.
    """
    known = rf"(^|_)({names.replace(' ', '|')})s?(?![a-z])"
    columns = []
    for name in table.names:
        is_like = re.search(known, known_name(name)) and not words_of(name) & _EXPECTED
        if is_like and " " in "".join(table.texts(name)):
            columns.append(name)
    ends = [name for name in columns if re.search(f"{known}[^a-z]*$", known_name(name))]
    return ends or columns


def judged_texts(table: Table, used: Collection[str]) -> list[str]:
    """The columns that hold what is judged, of those that are not used: by their names, else those
    whose texts are more than a few words long.
    """
    columns = [name for name in columns_named(table, TEXTS) if name not in used]
    # What is said of a case is shown elsewhere.
    used = {*used, *columns_named(table, BESIDE)}
    for name in () if columns else table.names:
        cells = [cell for cell in table.columns[name][:_LOOKED_AT] if isinstance(cell, str)]
        if name not in used and "".join(cells).count(" ") > _FEWEST_BLANKS * len(cells):
            columns.append(name)
    return columns


def only_column(table: Table, role: str, taken: Collection[str] = ()) -> str:
    """The column with a name of the role that is not `taken`; empty where there is none."""
    columns = [name for name in columns_named(table, ROLES[role]) if name not in taken]
    if len(columns) > 1 and role not in _WITHOUT_OPTION:
        raise _ambiguous(table, role, columns)
    return columns[0] if columns else ""


def _ambiguous(table: Table, role: str, columns: Sequence[str]) -> InputError:
    return _asked(
        table, f"several columns may be the {role}: {listed(map(shown, columns))}", role, columns
    )


def _asked(table: Table, message: str, role: str, columns: Sequence[str]) -> InputError:
    ways = " or ".join(f"--{role} {quoted(column)}" for column in columns)
    return table.error(message, f"choose one: {ways}")


def rows_apart(table: Table, *columns: str) -> int:
    """How many different rows there are of these columns alone."""
    return len({*table.cells(*columns)})


def _telling_apart(
    table: Table, names: Iterable[str], taken: Collection[str], telling: Sequence[str]
) -> str:
    """The only one of these columns that, with those beside it, tells all rows apart."""
    columns = []
    for name in names:
        if name not in taken and rows_apart(table, name, *telling) == len(table.lines):
            columns.append(name)
    return columns[0] if len(columns) == 1 else ""


def case_column(table: Table, taken: Collection[str], telling: Sequence[str]) -> str:
    """The column that names the cases: one of the known names, else the only one that ends in `_id`
    and, with the columns `telling` it, names each row.
    """
    taken_or_named = {*taken, *columns_named(table, " ".join(ROLES.values()))}
    return only_column(table, "case", taken) or id_column(table, taken_or_named, telling)


def id_column(table: Table, taken: Collection[str], telling: Sequence[str]) -> str:
    """The only column with a usual name of ids, else the only one that ends in `_id`, which with
    the columns `telling` it names each row.
    """
    usual = columns_named(table, _MORE_IDS)
    ids = [name for name in table.columns if known_name(name).endswith("_id")]
    found = _telling_apart(table, usual, taken, telling)
    return found or _telling_apart(table, ids, taken, telling)


def telling_column(table: Table, places: Collection[str]) -> str:
    """What says of the first column of short values, neither dates nor shares, that they differ in
    every row.
    """
    for name in table.names:
        texts = table.texts(name)
        is_short = re.fullmatch(_SHORTS, "\n".join([*texts, ""]))
        if is_short and name not in {*map(top_field, places)} and len({*texts}) == len(texts):
            return (
                f"; {shown(name)} differs in every row, so it can be the id: --case {quoted(name)}"
            )
    return ""


def _cluster(table: Table, taken: Collection[str], case: str) -> str:
    """The column of what rows have in common; of several the widest, if the others are parts of it.

    Rows that are taken for independent and are not make every interval too narrow.
    """
    count = rows_apart(table, case) if case else len(table.lines)
    sizes = {}
    for name in columns_named(table, ROLES["cluster"]):
        # A case that lies in several is no part of any.
        is_whole = not case or rows_apart(table, case, name) == count
        size = rows_apart(table, name)
        if name not in taken and is_whole and size > 1:
            sizes[name] = size
    if not sizes:
        return ""
    widest, *parts = sorted(sizes, key=sizes.__getitem__)
    for part in parts:
        # Rows that are equal in the narrow column have to be equal in the wide one.
        if rows_apart(table, part, widest) > sizes[part]:
            raise _ambiguous(table, "cluster", [widest, *parts])
    if sizes[widest] < min(_FEWEST_CLUSTERS, count) and not table.results:
        raise _asked(
            table,
            f"are cases with the same value in {shown(widest)} related? If so, it is the cluster, "
            f"which then has only {sizes[widest]} values; if not, the cluster is none",
            "cluster",
            [widest, *parts, NONE],
        )
    return widest


class CaseKey(NamedTuple):
    """Which case a row is about; `rubric` is empty where the table has none."""

    case: str
    rubric: str
    epoch: int

    @classmethod
    def of(cls, case: str, rubric: str, epoch_text: str) -> CaseKey:
        """The key of a case whose row has these texts; without an epoch it is in the first."""
        epoch = whole_number(epoch_text) if epoch_text else None
        return cls(case, rubric, 1 if epoch is None else epoch)

    def __str__(self) -> str:
        parts = [self.case, self.rubric, f"epoch {self.epoch}" if self.epoch > 1 else ""]
        return " / ".join(filter(None, parts))


def labels_for(labels: Table, table: Table, case: str) -> tuple[Table, Collection[str]]:
    """The labels of the texts and questions of a table, and the cases that have others alone;
    `case` is the table's column of ids.
    """
    kept = _of_these_texts(_of_one_question(labels, table), table, case)
    ids, kept_ids = ({*of.texts("case_id")} for of in (labels, kept))
    return kept, ids - kept_ids


def _of_these_texts(labels: Table, table: Table, case: str) -> Table:
    """The labels without those of cases whose text in this table is not the one that was labelled;
    `case` is its column of ids. Where it has no such text, nothing is known, and all stay.

    Raises `InputError` where no label is left.
    """
    digests: dict[str, Mapping[str, Sequence[str]]] = {}
    are_kept = []
    for case_id, digest in labels.cells("case_id", "digest"):
        names, _, _ = digest.rpartition("|")
        columns = names.split("|")
        if names not in digests:
            digests[names] = {}
            # Beside verdicts there may be no text.
            if names and {*columns} <= table.columns.keys():
                # A case has a text in each epoch.
                digests[names] = grouped(
                    (case_id, _text_digest(columns, texts))
                    for case_id, *texts in table.cells(case, *columns)
                )
        are_kept.append(digest in digests[names].get(case_id, (digest,)))
    if not any(are_kept):
        raise InputError(
            f"every label is for an older text, because the texts in {table.file} have changed",
            labels.file,
            hint="label the cases again: python -m pytest_jrh label "
            f"{shlex.quote(table.file)} --out {shlex.quote(labels.file)}",
        )
    return _kept_rows(labels, are_kept, "the text has changed since it was labelled")


def _of_one_question(labels: Table, table: Table) -> Table:
    """The labels of one wording of each rubric: of several that whose text this table has.

    Raises `InputError` where a rubric has labels of several, but nothing says which one is meant.
    """
    questions = [(rubric, digest) for rubric, digest in labels.cells("rubric_id", "rubric_digest")]
    in_table = {Rubric("", text).digest for text in {*table.texts("rubric_text")}}
    kept_questions = set()
    for rubric, of_rubric in grouped(questions).items():
        wordings = {*of_rubric} - {""}
        of_table = wordings & in_table if len(wordings) > 1 else wordings
        if wordings and len(of_table) != 1:
            raise InputError(
                f"has labels for {len(wordings)} wordings of the rubric {shown(rubric)}, but "
                "nothing says which wording the verdicts are about",
                labels.file,
                hint='copy the rows with one "rubric_digest" to a new file, and name the new file: '
                "--labels CSV",
            )
        kept_questions |= {(rubric, digest) for digest in ("", *of_table)}
    return _kept_rows(
        labels,
        [key in kept_questions for key in questions],
        "the rubric had another wording",
    )


def _kept_rows(labels: Table, are_kept: Sequence[bool], why: str) -> Table:
    """The labels of the rows that are kept, and a notice of how many are left out."""
    left_out = [*compress(labels.texts("case_id"), map(not_, are_kept))]
    if not left_out:
        return labels
    return labels.kept(
        are_kept,
        f"Not used: {counted(len(left_out), 'label')}, because {why}. The cases are "
        f"{listed(dict.fromkeys(left_out), 5)}.",
    )


class TextToLabel(NamedTuple):
    """A text to label, of a table with its `columns`; what its rubric asks, where the file says it,
    and the word that it is drawn by.
    """

    key: CaseKey
    turns: Sequence[Message]
    columns: Sequence[str] = ()
    rubric_text: str = ""
    word: str = ""

    @property
    def digest(self) -> str:
        """Of the text, as label files keep it."""
        if not self.columns:
            return short_digest(json.dumps(self.turns, default=str), 16)
        texts = {turn["role"]: turn["content"] for turn in self.turns}
        return _text_digest(self.columns, map(texts.__getitem__, self.columns))


def texts_to_label(
    table: Table, text_columns: Sequence[str], case: str, by: str = "", label: str = ""
) -> Iterator[TextToLabel]:
    """The rows of a table without anything in the column `label`, each with a turn for every text,
    whose role is its column, and the word of the column `by`. What is not named is found by its
    name; raises `InputError` where that cannot be.
    """
    text_columns = text_columns or columns_named(table, TEXTS)
    epoch = only_column(table, "epoch", text_columns)
    # No option names this column.
    rubric, wording = "".join(columns_named(table, "rubric_id")[:1]), "rubric_text"
    if not rubric:
        rubric = only_column(table, "rubric", text_columns)
    elif wording not in table.columns:
        # Beside its id the rubric is its text.
        wording = "".join(columns_named(table, "rubric")[:1])
    case = case or case_column(table, text_columns, [epoch, rubric])
    needed = [("case", case), *(("text", name) for name in text_columns or [""])]
    needed += filter(itemgetter(1), [("by", by), ("label", label)])
    for role, name in needed:
        if name not in table.columns:
            found = judged_texts(table, [case]) if role == "text" else []
            ways = " ".join(f"--{role} {quoted(column)}" for column in found or ["COL"])
            raise InputError(
                f"no column {f'is called {shown(name)}' if name else f'of {role}s was recognized'}"
                f"; the columns are {listed(map(shown, table.names))}",
                table.file,
                key=f"--{role}",
                hint=f"name the column: {ways}",
            )
    columns = (case, rubric, epoch, wording, by, label)
    for row, (*of_case, rubric_text, word, said) in enumerate(table.cells(*columns)):
        if said:
            continue
        yield TextToLabel(
            CaseKey.of(*of_case),
            texts_of_row(table, text_columns, row),
            text_columns,
            rubric_text,
            word,
        )


def texts_of_row(table: Table, columns: Iterable[str], row: int) -> Sequence[Message]:
    """The texts of a row, each as a turn whose role is its column; none where all are empty."""
    texts = {name: as_text(table.columns[name][row]) for name in columns}
    turns = [{"role": name, "content": text, "id": COLUMN_ID} for name, text in texts.items()]
    return turns if any(texts.values()) else []


def _text_digest(columns: Sequence[str], texts: Iterable[str]) -> str:
    """The names of columns and a digest of their texts in a row."""
    same = json.dumps([*map(same_lines, texts)])
    return "|".join([*columns, short_digest(same, 16)])


def run_slices(
    keys: Iterable[str], runs: Sequence[tuple[RunKey, Fields]], label_fields: Collection[str]
) -> dict[RunKey, Slices]:
    """The values of each run in these fields of its metadata. Raises `InputError` for a field that
    holds labels or verdicts, and one that no run has.
    """
    slices: dict[RunKey, Slices] = {}
    for key in keys:
        _refuse_answers(key, "cases.by", is_answer=top_field(key) in label_fields)
        for run, value in clusters_by(key, runs, "cases.by").items():
            slices[run] = (*slices.get(run, ()), (key, value or ""))
    return slices


def table_slices(table: Table, columns: Columns) -> list[Slices]:
    """The values of each row in the columns `by`. Raises `InputError` for a column of labels or
    verdicts, and where rows of a case have several values.
    """
    case = (columns.case, columns.rubric, columns.epoch)
    answers = {*columns.texts, *columns.labels} - {*case, columns.cluster}
    for column in columns.by:
        _refuse_answers(column, "--by", is_answer=column in answers)
    if columns.case and rows_apart(table, *case) < rows_apart(table, *case, *columns.by):
        raise InputError(
            f"rows of one case have different values in {listed(map(shown, columns.by))}",
            table.file,
            key="--by",
            hint=_ABOUT,
        )
    if not columns.by:
        return [()] * len(table.lines)
    known: dict[tuple[str, ...], Slices] = {}
    slices = []
    for values in table.cells(*columns.by):
        if values not in known:
            known[values] = tuple(zip(columns.by, map(short_text, values), strict=True))
        slices.append(known[values])
    return slices


def _refuse_answers(name: str, key: str, *, is_answer: bool) -> None:
    if is_answer or words_of(name) & _OF_ANSWERS:
        raise InputError(
            f"{shown(name)} has labels or verdicts, so it does not say what a case is about",
            key=key,
            hint=_ABOUT,
        )
