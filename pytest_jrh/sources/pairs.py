"""Tables of two answers to a request, and what is said of which is better: by its place in a row,
or by the name of the system that gave it; and rows that show the two the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from pytest_jrh.core.calls import PART_NAMES
from pytest_jrh.core.documents import Fields, Json, as_text, as_word, listed, shown
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.ids import short_digest
from pytest_jrh.core.scales import PLACES, code_of, other_place
from pytest_jrh.core.transcript import PAIR, in_other_order
from pytest_jrh.sources.answers import Answers
from pytest_jrh.sources.columns import Columns, Table, columns_named
from pytest_jrh.sources.source import Form
from pytest_jrh.sources.tables import read_table
from pytest_jrh.sources.verdicts import Values

_END = re.compile(r"[-_:/](?=[^-_:/]+$)")
_SYSTEMS = ("model_a system_a generator_1", "model_b system_b generator_2")
"""The names of columns that say whose answer is in which place."""
_AS_SHOWN = {"0", "false", "no", "ab", "original"}
_NUMBERS = {"0", "1", "2"}
CHOSEN = "chosen"
"""The name of a column that holds the better one of two answers, and the field that names it."""
_ANSWERS = (f"{PART_NAMES[PAIR[0]]} {CHOSEN}", f"{PART_NAMES[PAIR[1]]} rejected")
"""The names of columns that have the two answers."""


class Orders(NamedTuple):
    """Which rows show the answers the other way round, and the cases of the rows, where the same
    column names both.
    """

    swapped: Sequence[bool]
    cases: Sequence[str]


def orders_of(table: Table, column: str) -> Orders:
    """Read a column of orders: one of two values, or the end of what names a row, as `7-0`, `7-1`.

    Raises `InputError` where these are not two.
    """
    texts = table.texts(column)
    cases = []
    words = [*map(as_word, texts)]
    if len({*words}) > len(PLACES):
        parts = [_END.split(text) for text in texts]
        cases, words = [part[0] for part in parts], [as_word(part[-1]) for part in parts]
    values = [*dict.fromkeys(words)]
    if len(values) != len(PLACES):
        raise InputError(
            f"{shown(column)} has {len(values):,} values; must tell two orders of each case",
            table.file,
            key="--order",
            hint=f"they are {listed(values, 5)}",
        )
    first = next((value for value in values if value in _AS_SHOWN), values[0])
    return Orders([word != first for word in words], cases)


def placed(table: Table, columns: Columns, values: Values, orders: Orders | None) -> Columns:
    """The columns with what labels and verdicts say as places of the answers in one order, the same
    for all rows of a case; what they say otherwise, `values` read and refuse.

    Raises `InputError` for numbers of which nothing says what place they are.
    """
    scale, texts = values.scale, dict(columns.texts)
    systems = systems_of(table, None)
    names = (*columns.labels, columns.settled, *columns.verdicts, columns.baseline)
    for name in filter(None, names):
        words = {}
        for text in dict.fromkeys(texts[name]):
            words[text] = as_word(values.mapping.get(as_word(text), text))
        values.seen[name] = dict.fromkeys(words, 1)
        numbers = _NUMBERS.intersection(words.values())
        if "0" in numbers:
            message = f"{name}: the values are {listed(sorted(numbers))}, and nothing says which "
            raise InputError(
                f"{message}answer each means",
                table.file,
                key="--map",
                hint="say it: --map 0=first --map 1=second, or the other way round",
            )
        answers = []
        for row, text in enumerate(texts[name]):
            code = scale.label_words.get(words[text])
            of_row = [*map(as_word, systems[row])] if systems else []
            if words[text] in of_row:
                code = code_of(PLACES[of_row.index(words[text])])
            if code is not None and orders is not None and orders.swapped[row]:
                code = other_place(code)
            answers.append(text if code is None else scale.words[code])
        texts[name] = answers
    if orders is not None and orders.cases:
        texts[columns.case] = orders.cases
    return columns._replace(texts=texts)


def two_answers(table: Table) -> list[str]:
    """The columns of two answers to one request; none where there are not both."""
    found = [columns_named(table, names) for names in _ANSWERS]
    return [of_place[0] for of_place in found] if all(found) else []


def systems_of(table: Table, orders: Orders | None) -> Sequence[tuple[str, ...]]:
    """Of each row the systems that gave the two answers, in one order for all rows of a case; empty
    where no columns name them.
    """
    names = system_fields(table.columns)
    systems = []
    for row, of_row in enumerate(table.cells(*names) if names else ()):
        is_turned = orders is not None and orders.swapped[row]
        systems.append(of_row[::-1] if is_turned else of_row)
    return systems


def system_fields(fields: Iterable[str]) -> list[str]:
    """The two fields that name who gave the answers; none where there are not both."""
    known = {as_word(name): name for name in fields}
    found = [[known[name] for name in names.split() if name in known] for names in _SYSTEMS]
    return [of_place[0] for of_place in found] if all(found) else []


def systems_in(metadata: Fields) -> tuple[str, ...]:
    """The systems that gave the two answers, by their places; empty where nothing names them."""
    return tuple(as_text(metadata[name]) for name in system_fields(metadata))


def place_named(value: object, metadata: Fields) -> Any:
    """The place of the answer whose system a label names; any other label as it is."""
    systems = [*map(as_word, systems_in(metadata))]
    return PLACES[systems.index(as_word(value))] if as_word(value) in systems else value


class Pairs(Answers):
    """A table with two answers in each row, or with one of which pairs are made. Of answers that
    are called chosen and rejected, the order is drawn by the row's texts, so that it says nothing;
    which one is chosen is metadata.
    """

    @cached_property
    def _table(self) -> Table:
        table = read_table(self.path, ("text",))
        if self._pointers.response_a is not None or columns_named(table, _ANSWERS[0]):
            parts = dict(self.parts)
            del parts["answer"]
            self.parts, self.answers = parts | dict(zip(PAIR, _ANSWERS, strict=True)), PAIR
        return table

    def _messages(self, row: Json) -> list[Json]:
        messages = super()._messages(row)
        if self._chosen(row) == PLACES[1]:
            return [*map(dict, in_other_order(messages))]
        return messages

    def _metadata(self, row: Json) -> Json:
        chosen = self._chosen(row)
        return super()._metadata(row) | ({CHOSEN: chosen} if chosen else {})

    def _chosen(self, row: Json) -> str:
        """The place of the answer that is chosen; empty where no column is called so."""
        if self._places.get(PAIR[0]) != CHOSEN:
            return ""
        texts = [as_text(self._part(row, part)) for part in self.parts]
        # A row without an id is called by the digest of its texts alone, which must not tell.
        return PLACES[int(short_digest("\n".join(["order", *texts]), 2), 16) % 2]


PAIRS = Form("table of pairs", (), source=Pairs)
