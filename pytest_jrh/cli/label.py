"""`python -m pytest_jrh label`: cases of a file, labelled blind in the browser, into a CSV file."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pytest_jrh.cli.init import look_at
from pytest_jrh.config.rubrics import load_rubrics, read_head
from pytest_jrh.config.schema import BlindSection
from pytest_jrh.core.cases import Case, CaseSpec, PerturbationOutcome
from pytest_jrh.core.documents import listed, read_text, shown
from pytest_jrh.core.errors import InputError, Unscored
from pytest_jrh.core.files import exists
from pytest_jrh.core.ids import short_digest
from pytest_jrh.core.redact import Redactor, secrets_of
from pytest_jrh.core.runs import AgentRun, Message, Rubric
from pytest_jrh.core.text import counted
from pytest_jrh.people.board import LabelBoard
from pytest_jrh.people.labels import LabelTable
from pytest_jrh.review import Labelling
from pytest_jrh.review.serving import serve
from pytest_jrh.sources import form_of, is_conversations, open_sources, tables, verdicts
from pytest_jrh.sources.tables import Table
from pytest_jrh.sources.verdicts import CaseKey


class _Item(NamedTuple):
    """A text to label with its digest, and what its rubric asks, where the table says it."""

    key: CaseKey
    turns: Sequence[Message]
    digest: str
    rubric_text: str = ""


def label_file(path: Path, options: Namespace) -> int:
    """Serve the page until all who label have finished, or somebody stops the command."""
    if options.sample is not None and options.sample < 1:
        raise InputError(f"got {options.sample}; must be 1 or more", key="--sample")
    if options.out.suffix.lower() != ".csv":
        raise InputError(f"got {options.out}; must end in .csv", key="--out")
    table = _table(path, options)
    items: dict[CaseKey, _Item] = {}
    for item in _runs(path) if table is None else _rows(table, options):
        if items.setdefault(item.key, item).turns != item.turns:
            message = f"the case {shown(item.key.case)} has two texts"
            raise InputError(message, str(path), hint="tell them apart by --case COL")
    without_text = sum(not item.turns for item in items.values())
    cases = _cases(items.values(), options.rubric, str(path))
    labels = LabelTable(options.out, cases, "drawn" if options.sample else "")
    redact = Redactor(secrets_of(os.environ)).text
    board = LabelBoard(
        {"": BlindSection(sample=options.sample or len(cases), overlap=1.0)},
        labels.people(),
        labels.write,
        redact=redact,
        reviewer=options.reviewer or None,
    )
    for case in cases:
        board.add(case)
    # No case is made here: the sample is drawn at once.
    board.announce([""])
    board.end("")
    server = serve(Labelling(board))
    number = len(labels.people())
    of_others = ""
    if number_of_others := len(labels.rows()) - number:
        of_others = f"; it keeps {number_of_others:,} of other cases or questions"
    sys.stdout.write(
        f"{path}: {board.progress().shown:,} of {counted(len(cases), 'case')} to label; left out, "
        f"without a text: {without_text:,}\n"
        f"label them at {server.url}\n"
        f"Each label is written to {options.out} at once ({number:,} so far{of_others}). "
        "Ctrl-C stops, and the same command goes on.\n"
    )
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        board.wait_finalized()
    server.stop()
    if number := len(labels.people()):
        command = ["init", "NAME", "--log"] if table is None else ["check"]
        command += [str(path), "--labels", str(options.out)]
        if table is None:
            texts = {case.rubric.id: case.rubric.instructions for case in cases}
            for rubric_id, text in texts.items():
                command += ["--rubric", f"{rubric_id}: {text}"]
        elif options.case:
            command += ["--case", options.case]
        sys.stdout.write(
            f"{counted(number, 'label')}, for: python -m pytest_jrh {shlex.join(command)}\n"
        )
    return 0


def _table(path: Path, options: Namespace) -> Table | None:
    """A table, or the results of a tool; None for transcripts, whose source says what is wrong."""
    # Other JSON than that of messages is a table.
    is_flat = is_conversations(path) and '"role"' not in read_head(path)
    is_table = is_flat or not (path.is_dir() or form_of(path))
    try:
        table = tables.read_table(path, str(path))
    except InputError:
        if is_table:
            raise
        return None
    return table if is_table or table.results or options.text else None


def _runs(path: Path) -> Iterator[_Item]:
    """The messages of each run; of one that cannot be read there are none."""
    with open_sources((path,), input_format=look_at(path).format) as source:
        unclear = {name for names in source.unclear_names().values() for name in names}
        aliases = source.aliases().items()
        clear_names = {run_id: name for name, (run_id, _) in aliases if name in unclear}
        for run in source.summaries():
            messages: Sequence[Message] = ()
            with contextlib.suppress(Unscored):
                messages = source.read(run.run_id, run.epoch)[0].messages
            name = clear_names.get(run.run_id, run.run_id)
            digest = short_digest(json.dumps(messages, default=str), 16)
            yield _Item(CaseKey(tables.as_text(name), "", run.epoch), messages, digest)


def _rows(table: Table, options: Namespace) -> Iterator[_Item]:
    """The rows of a table, each with a turn for every text, whose role is its column."""
    table = tables.with_rows(table, (), ("verdict",))
    text_columns = options.text or table.named(verdicts.TEXTS)
    epoch = verdicts.only_column(table, "epoch", text_columns)
    # No option names this column.
    rubric_ids = table.named("rubric_id")
    rubric = rubric_ids[0] if rubric_ids else verdicts.only_column(table, "rubric", text_columns)
    case = options.case or verdicts.case_column(table, text_columns, [epoch, rubric])
    if case not in table.columns:
        raise _no_column(table, "--case", case)
    for name in text_columns or [""]:
        if name not in table.columns:
            hint = "; a file without the text holds nothing to label"
            raise _no_column(table, "--text", name, hint)
    columns = {"case": case, "rubric": rubric, "rubric_text": "rubric_text", "epoch": epoch}
    digests = verdicts.text_digests(table, text_columns)
    for row, (_, cells) in enumerate(table.rows(columns)):
        turns = []
        for name in text_columns:
            if text := tables.as_text(table.columns[name][row]):
                turns.append({"role": name, "content": text})
        yield _Item(CaseKey.of(cells["case"], cells), turns, digests[row], cells["rubric_text"])


def _no_column(table: Table, option: str, name: str, more_hint: str = "") -> InputError:
    """The error of a table without a column that an option names, or could name."""
    message = f"no column {name or 'is known'}; its columns are {listed(table.columns)}"
    hint = f"name it: {option} COL{more_hint}"
    return InputError(table.problem(message, key=option, hint=hint))


def _cases(items: Collection[_Item], rubric_text: str, file: str) -> list[Case]:
    """The cases of all items that have a text, one a rubric; raises `InputError` without any."""
    rubric_ids = dict.fromkeys(item.key.rubric for item in items if item.key.rubric)
    rubrics = _rubrics(rubric_text, rubric_ids)
    cases = []
    for item in items:
        for rubric in rubrics if item.turns else ():
            if item.key.rubric in ("", rubric.id):
                cases.append(_case(item, rubric))
    if not cases:
        message = f"holds no text for a rubric; the rubrics in it: {listed(rubric_ids) or 'none'}"
        hint = f'say what is asked: --rubric "{next(iter(rubric_ids), "ID")}: TEXT"'
        raise InputError(message, file, hint=hint)
    return cases


def _rubrics(value: str, known_ids: Collection[str]) -> Sequence[Rubric]:
    """The rubrics of a file, or that of a text, before which its id may stand; without either, or
    with an id alone, those of the `known_ids`.
    """
    if not value or value in known_ids:
        return [Rubric(id_, id_) for id_ in known_ids if value in ("", id_)]
    path, text = Path(value), value
    suffix = path.suffix.lower()
    if suffix in (".yml", ".yaml", ".json"):
        return load_rubrics(path)
    if suffix in (".txt", ".md") or exists(path):
        text = read_text(path, value).strip()
    id_, _, instructions = text.partition(":")
    if instructions[:1].isspace() and (id_ in known_ids or len(id_.split()) == 1):
        return [Rubric(id_, instructions.strip())]
    return [Rubric("".join(known_ids) if len(known_ids) == 1 else "", text)]


def _case(item: _Item, rubric: Rubric) -> Case:
    key = item.key
    # Cases of the same words are several cases, which messages with ids of their own tell apart.
    messages = tuple({**turn, "id": f"{key.case} {key.epoch}"} for turn in item.turns)
    if item.rubric_text and rubric.instructions == rubric.id:
        rubric = replace(rubric, instructions=item.rubric_text)
    return Case(
        CaseSpec("", "label", rubric.id, key.case, key.epoch),
        replace(rubric, id=rubric.id or "the rubric"),
        AgentRun(key.case, key.epoch, messages, metadata={"digest": item.digest}),
        PerturbationOutcome(messages),
        expected=None,
        verified=True,
        objective="fail",
    )
