"""Answers to requests: the rows of a table, the outputs in another tool's results, or the samples
of an Inspect log of one turn. Each is a run of a few messages, of which the last one is the answer.

At the end tables of two answers to a request, and what is said of which is better: by its place in
a row, or by the name of the system that gave it; and rows that show the two the other way round.
"""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pytest_jrh.core import (
    Fields,
    InputError,
    Json,
    Problem,
    counted,
    listed,
    short_digest,
    shown,
    storable,
)
from pytest_jrh.core.calls import PART_NAMES
from pytest_jrh.core.cases import AgentRun, RunKey, RunSummary, Skip
from pytest_jrh.core.documents import DamagedError, as_text, as_word, pointer_to, whole_number
from pytest_jrh.core.scales import PLACES, code_of, other_place
from pytest_jrh.core.sections import ROW_NUMBER
from pytest_jrh.core.transcript import (
    PAIR,
    assistant_indices,
    in_other_order,
    message_text,
    paired,
    with_part_ids,
)
from pytest_jrh.sources.chat import is_chat, json_text, read_messages
from pytest_jrh.sources.columns import (
    Columns,
    Table,
    columns_named,
    id_column,
    telling_column,
)
from pytest_jrh.sources.eval_logs import EvalLog
from pytest_jrh.sources.source import (
    Form,
    RunFields,
    Source,
    as_pointer,
    at,
    changed_note,
)
from pytest_jrh.sources.tables import read_table, rows_of
from pytest_jrh.sources.verdicts import Values

PARTS = {
    "messages": PART_NAMES["request"],
    "answer": PART_NAMES["response"],
    "context": PART_NAMES["context"],
    "system": PART_NAMES["system"],
    "id": "id",
    "epoch": "epoch",
}
"""The keys of `suite.format`, and the names that columns may have which hold these parts."""
_NAMES = {"messages": "request"}
IMAGES = "image images image_path image_url"
_IMAGE_BYTES = {
    rb"\x89PNG\r\n\x1a\n": "png",
    rb"\xff\xd8\xff": "jpeg",
    rb"GIF8[79]a": "gif",
    rb"RIFF(?s:.{4})WEBP": "webp",
}
_SHARES = ("//", "/\\", "\\/", "\\\\")
_MOST_IMAGE_BYTES = 20_000_000
_MOST_LETTERS = 10_000_000
_DIGEST = 12


class Answers(Source):
    """A table: which column is what is named by `suite.format`, or found by its name. The other
    columns are the metadata.
    """

    parts: Mapping[str, str] = PARTS
    answers: tuple[str, ...] = ("answer",)

    def summaries(self) -> Sequence[RunSummary]:
        runs = []
        for key, row in self._rows.items():
            skip = None
            if key in self._empty:
                skip = Skip("no_answer", f"the answer is empty ({self._empty[key]})")
            runs.append(RunSummary(*key, skip, as_text(self._part(row, "cluster")) or None))
        return runs

    def fields(self) -> Iterator[RunFields]:
        for key, row in self._rows.items():
            yield RunFields(key, self._metadata(row))

    def read(self, run_id: str, epoch: int, *, with_raw: bool = False) -> tuple[AgentRun, Any]:
        row = self._rows[run_id, epoch]
        try:
            parts = (self._messages(row), self._metadata(row))
        except DamagedError as error:
            raise self._unreadable(
                (run_id, epoch), str(error), "Correct the row, or remove it."
            ) from None
        (messages, metadata), changed = storable(parts)
        asked = [message_text(turn) for turn in messages if turn["role"] == "user"]
        run = AgentRun(
            run_id,
            epoch,
            tuple(messages),
            input="\n".join(asked),
            metadata=metadata,
            sample_id=run_id,
            notes=changed_note(changed),
        )
        return run, row if with_raw else None

    def _about(self, equal: int) -> Iterator[str]:
        """What was taken for what, and what was left out."""
        names = [{place: 0, _NAMES.get(part, part): 0} for part, place in self._places.items()]
        found = f"columns read: {listed(map(' as '.join, names), 8)}"
        if "id" not in self._places and self._table.results is None:
            found += "; no column has ids, so the id of each row is a digest of its text"
            found += telling_column(self._table, self._places.values())
        yield found
        yield from self._table.notices
        if equal:
            yield f"{counted(equal, 'row')} left out, because an earlier row is the same"
        if empty := self._empty.values():
            lines = listed(empty, 8)
            yield f"left out {counted(len(empty), 'row')} with an empty answer: {lines}"
        if context := self._places.get("context"):
            cells = zip(self._table.lines, self._table.at(context), strict=True)
            if bare := [f"line {line}" for line, value in cells if not as_text(value)]:
                yield f"the context is empty in {counted(len(bare), 'row')}: {listed(bare, 8)}"

    @cached_property
    def _table(self) -> Table:
        return read_table(self.path, ("text",))

    @cached_property
    def _places(self) -> dict[str, str]:
        """By part the pointer of `suite.format`, or the column that has a name of it."""
        table = self._table
        places = {}
        problems = []
        has = f"the columns are {listed(map(shown, table.columns))}"
        for part, names in {**self.parts, "cluster": ""}.items():
            pointer = getattr(self._pointers, part)
            if pointer is not None:
                place = places[part] = pointer[0] if isinstance(pointer, tuple) else pointer
                if place != ROW_NUMBER and not table.at(place):
                    problems.append(
                        Problem(
                            f"no row has a value at {shown(place)}; {has}",
                            table.file,
                            hint=f"correct `{part}` in suite.format",
                        )
                    )
                continue
            columns = columns_named(table, names)
            if part in ("messages", *self.answers) and len(columns) != 1:
                option = "response" if part == "answer" else _NAMES.get(part, part)
                message = f"the {option} may be in the column {' or '.join(map(shown, columns))}"
                if not columns:
                    message = f"no column of {option}s was recognized; {has}"
                place = pointer_to((columns or ["COLUMN"])[0])
                hint, answer = f"set suite.format: {{{part}: {place}}}", ""
                if part not in PAIR:
                    answer = f"--{option} COL"
                    hint = f"use init {answer}, or {hint}"
                problems.append(Problem(message, table.file, hint=hint, answer=answer))
            elif columns:
                places[part] = columns[0]
        if problems:
            raise InputError(problems)
        if "id" not in places and (column := id_column(table, places.values(), ())):
            places["id"] = column
        return places

    def _part(self, row: Json, part: str) -> Any:
        place = self._places.get(part)
        return None if place is None else at(row, as_pointer(place))

    @cached_property
    def _rows(self) -> dict[RunKey, Json]:
        """The rows by the id and epoch of each; of equal rows without an id the first."""
        table, rows = self._table, dict[RunKey, Json]()
        lines: dict[RunKey, int] = {}
        self._empty: dict[RunKey, str] = {}
        equal = 0
        for number, (line, row) in enumerate(rows_of(table)):
            id_ = as_text(row.get("case_id") if table.results else self._part(row, "id"))
            if self._places.get("id") == ROW_NUMBER:
                id_ = str(number)
            is_named = bool(id_)
            if not is_named:
                texts = [as_text(self._part(row, part)) for part in self.parts]
                id_ = short_digest("\n".join(texts), _DIGEST)
            epoch_text = as_text(self._part(row, "epoch")) or "1"
            epoch = whole_number(epoch_text)
            if epoch is None:
                raise table.error(
                    f"has the epoch {shown(epoch_text)}, which must be an integer", line=line
                )
            key = (storable(id_)[0], epoch)
            # Rows of one text may be of two people.
            if key in rows and (is_named or rows[key] != row):
                what = f"the same id {shown(id_)}" if is_named else "the same text"
                message = f"has {what} as line {lines[key]}"
                hint = (
                    "name a column with a different id in each row (init --case COL, or "
                    "suite.format: {id: COLUMN}), or delete one of the rows. For rows with labels "
                    'of several people, pass --labels CSV, a file with a column "annotator"'
                )
                raise table.error(message, hint, line)
            equal += key in rows
            rows.setdefault(key, row)
            lines.setdefault(key, line)
            for part in self.answers:
                answer = self._part(row, part)
                if not (is_chat([answer]) or _text(answer).strip()):
                    self._empty.setdefault(key, f"line {line}")
        self._notices |= dict.fromkeys(self._about(equal))
        return rows

    def _metadata(self, row: Json) -> Json:
        taken = {place for part, place in self._places.items() if part not in ("id", "epoch")}
        return {
            name: value for name, value in row.items() if name not in taken and value is not None
        }

    def _messages(self, row: Json) -> list[Json]:
        """The turns of a row: system prompt, context, request and answer."""
        turns: list[Json] = []
        for part, role in (("system", "system"), ("context", "user")):
            text = _text(self._part(row, part))
            if text:
                turns.append({"role": role, "content": text, "id": part})
        request = self._part(row, "messages")
        if is_chat(request):
            turns += read_messages(request)[0]
        else:
            blocks = self._images(row)
            text = _text(request)
            content = [{"type": "text", "text": text}, *blocks] if blocks else text
            turns.append({"role": "user", "content": content})
        first, *others = [_answer(self._part(row, part)) for part in self.answers]
        turns.append(first)
        letters = sum(len(message_text(turn)) for turn in turns)
        if letters > _MOST_LETTERS:
            raise DamagedError(f"it has {letters:,} characters; at most {_MOST_LETTERS:,} are read")
        turns = with_part_ids(turns)
        return [*turns[:-1], *map(dict, paired(first, *others))] if others else turns

    def _images(self, row: Json) -> list[Json]:
        """The images that a row names: URLs as they are, files below the table's folder as data."""
        blocks = []
        for column in columns_named(self._table, IMAGES):
            values = row.get(column)
            for value in values if isinstance(values, list) else [values]:
                name = as_text(value)
                if name and not name.startswith(("http://", "https://", "data:image/")):
                    name = _image_data(self.path.parent, name)
                if name:
                    blocks.append({"type": "image", "image": name})
        return blocks


def _answer(value: Any) -> Json:
    """An answer as a message: of a conversation its last one."""
    turns = value if is_chat(value) else [value]
    if is_chat(turns) and turns[-1]["role"] == "assistant":
        return read_messages(turns[-1:])[0][-1]
    return {"role": "assistant", "content": _text(value)}


def _image_data(folder: Path, name: str) -> str:
    """The data URL of an image; raises DamagedError for what is none, or is not below the folder.

    A table of strangers must not send other files of this machine to a provider.
    """
    is_below, data = True, b""
    # Links in a circle are a RuntimeError.
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        file = folder / name
        # Windows would ask another machine for its share, and say who asks.
        is_below = not name.startswith(_SHARES) and file.resolve().is_relative_to(folder.resolve())
        if is_below and file.is_file() and file.stat().st_size <= _MOST_IMAGE_BYTES:
            data = file.read_bytes()
    if not is_below:
        raise DamagedError(f"the image {shown(name)} is outside the table's folder")
    for pattern, kind in _IMAGE_BYTES.items():
        if re.match(pattern, data):
            return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    kinds = listed(_IMAGE_BYTES.values())
    raise DamagedError(f"{shown(name)} is missing, larger than 20 MB, or no image ({kinds})")


def _text(value: Any) -> str:
    """A value as text: of a list of texts, such as the passages of a context, each by itself; what
    else is JSON as JSON.
    """
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return "\n\n".join(value)
    return json_text(value)


class OneTurnLog(EvalLog):
    """An Inspect log whose samples are answers; one with calls of tools, or with several answers of
    the model, is a run of an agent.
    """

    def read(self, run_id: str, epoch: int, *, with_raw: bool = False) -> tuple[AgentRun, Any]:
        run, raw = super().read(run_id, epoch, with_raw=with_raw)
        answers = assistant_indices(run.messages)
        called = any(turn.get("tool_calls") for turn in run.messages)
        if called or (answers and answers[-1] != len(run.messages) - 1):
            raise self._unreadable(
                (run_id, epoch),
                "in a suite of answers, a sample must end with an answer, and have no tool calls",
                "To judge what an agent does, set `suite: {of: runs}`.",
            )
        return replace(run, messages=tuple(with_part_ids(run.messages))), raw


ANSWERS = Form("table of answers", (), source=Answers)
ONE_TURN = Form("Inspect log of answers", (), source=OneTurnLog)


_END = r"[-_:/](?=[^-_:/]+$)"
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
        parts = [re.split(_END, text) for text in texts]
        cases, words = [part[0] for part in parts], [as_word(part[-1]) for part in parts]
    values = [*dict.fromkeys(words)]
    if len(values) != len(PLACES):
        raise InputError(
            f"{shown(column)} has {len(values):,} values; a column of orders must have two, one "
            "for each order of the answers",
            table.file,
            key="--order",
            hint=f"the values are {listed(map(shown, values), 5)}; name another: --order COL",
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
            raise InputError(
                f"nothing says which answers these numbers in {shown(name)} mean: "
                f"{listed(sorted(numbers))}",
                table.file,
                key="--map",
                hint="use --map 0=first --map 1=second, or --map 0=second --map 1=first",
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
