"""`python -m pytest_jrh label`: cases of a file, labelled blind in the browser, into a CSV file."""

from __future__ import annotations

import contextlib
import shlex
import sys
from argparse import Namespace
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_jrh.config.rubrics import load_rubrics
from pytest_jrh.core import InputError, counted, grouped, listed, shown, visible
from pytest_jrh.core.calls import PART_NAMES
from pytest_jrh.core.cases import (
    SETTLED,
    AgentRun,
    Case,
    CaseSpec,
    PerturbationOutcome,
    Rubric,
    Transcript,
)
from pytest_jrh.core.documents import as_word, read_text
from pytest_jrh.core.files import exists
from pytest_jrh.core.redact import Redactor, secrets_of
from pytest_jrh.core.scales import BARE, paired
from pytest_jrh.core.sections import BlindSection
from pytest_jrh.core.transcript import paired as as_pair
from pytest_jrh.people.board import LabelBoard, drawn_evenly
from pytest_jrh.people.labels import Disputes, LabelTable, PersonLabel, label_word, read_rows
from pytest_jrh.review import Labelling
from pytest_jrh.review.serving import serve
from pytest_jrh.sources import table_in, texts_of_runs
from pytest_jrh.sources.answers import CHOSEN, two_answers
from pytest_jrh.sources.columns import (
    ROLES,
    CaseKey,
    Table,
    TextToLabel,
    columns_named,
    texts_to_label,
)
from pytest_jrh.sources.tables import with_named
from pytest_jrh.store.records import case_digest

_PROGRAM = "python -m pytest_jrh"


def label_file(options: Namespace) -> int:
    """Serve the page until all who label have finished, or somebody stops the command."""
    path = options.file
    out = options.disagreements or options.out or Path("labels.csv")
    _refuse_options(options, out)
    options.out = out
    table = table_in(path, with_text=bool(options.text))
    texts: Iterable[TextToLabel]
    verdicts: Sequence[str] = ()
    is_drawn = options.sample and not options.disagreements
    if options.by and (table is None or not is_drawn):
        raise InputError(
            "needs a table and --sample",
            key="--by",
            hint="to draw 60 cases of a table, pass --sample 60 --by COL",
        )
    pair: Sequence[str] = ()
    if table is None:
        texts, notices = texts_of_runs(path)
    else:
        if not options.text and (pair := two_answers(table)):
            options.text = [*_beside(table, pair), *pair]
        named = [("case", options.case or ""), *(("text", name) for name in options.text or ())]
        table = with_named(table, named)
        verdicts = columns_named(table, ROLES["verdict"])
        if options.by == "verdict" and len(verdicts) == 1:
            options.by = verdicts[0]
        texts = texts_to_label(table, options.text, options.case, options.by, options.label)
        notices = table.notices
    items: dict[CaseKey, TextToLabel] = {}
    rows = 0
    for item in texts:
        rows += 1
        if items.setdefault(item.key, item).turns != item.turns:
            raise InputError(
                f"the case {shown(item.key.case)} has two texts",
                str(path),
                hint="with --case COL, name a column with a different id for each text",
            )
    if without_text := sum(not item.turns for item in items.values()):
        notices = (*notices, f"left out {counted(without_text, 'case')} without a text")
    if again := rows - len(items):
        notices = (
            *notices,
            f"left out {counted(again, 'row')} with the case and text of an earlier row",
        )
    rubric_ids = dict.fromkeys(key.rubric for key in items if key.rubric)
    cases = _cases(items.values(), _rubrics(options.rubric, rubric_ids), pair)
    if options.labels:
        known = LabelTable(options.labels, cases, "")
        done = {id(known.case_of(row)) for row in read_rows(options.labels).rows}
        cases = [case for case in cases if id(case) not in done]
    if not cases:
        message = (
            "no text is for this rubric; rubrics with texts: "
            f"{listed(map(shown, rubric_ids)) or 'none'}"
        )
        if options.label or options.labels:
            message = "already has a label for every text"
        elif not options.rubric:
            message = "has no rubric, so there is nothing to ask about the texts"
        raise InputError(message, str(path), hint='to ask about a rubric, pass --rubric "ID: TEXT"')
    # One case of each rubric.
    asked = [*{case.rubric.id: case for case in cases}.values()]
    if table is not None:
        notices = (*notices, *_other_words(table, verdicts, asked))
    votes: Disputes = {}
    if options.disagreements:
        options.overlap = 0
        labels = LabelTable(out, cases, SETTLED)
        votes, gone = labels.disputes(str(path))
        notices = (*notices, *gone)
        cases = [case for case in cases if case_digest(case) in votes]
        total = len(cases)
    else:
        labels = LabelTable(out, cases, "drawn" if options.sample else "")
        _refuse_other_weights(labels, out, by=options.by)
        total = len(cases)
        if options.by:
            words = {case.spec.label_key: case.run.metadata["text"].word for case in cases}
            if without_word := [*words.values()].count(""):
                left_out = f"not drawn: {counted(without_word, 'case')} without {shown(options.by)}"
                notices = (*notices, left_out)
            labelled = {label.case_digest for label in labels.people()}
            weights = drawn_evenly(cases, words, options.sample, labelled)
            cases = [case for case in cases if case.spec.label_key in weights]
            labels = LabelTable(out, cases, "weighted", weights)
    board = LabelBoard(
        {"": BlindSection(sample=options.sample or len(cases), overlap=options.overlap)},
        labels.people(),
        labels.write,
        redact=Redactor(secrets_of()).text,
        reviewer=options.reviewer or None,
    )
    for case in cases:
        board.add(case)
    # No case is made here: the sample is drawn at once.
    board.announce([""])
    board.end("")
    progress = board.progress()
    server = serve(Labelling(board, votes, words=options.words, file=out.name))
    lines = [
        *notices,
        f"{path}: you are asked to label {progress.shown:,} of {counted(total, 'case')}; "
        f"{progress.done:,} of these are done",
        f"label the cases at {server.url}",
        f"Each label is written to {out} at once. Ctrl-C stops; run the same command again to "
        "continue.\n",
    ]
    sys.stdout.write(visible("\n".join(lines)))
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        board.finalized.wait()
    server.stop()
    people = labels.people()
    text = _how_far_people_agree(people, out)
    if people:
        commands = _next_commands(options, table, verdicts, asked)
        text += f"{out} has {_how_many(people)} for these cases. Next: {commands}"
    sys.stdout.write(visible(text))
    return 0


def _how_many(people: Sequence[PersonLabel]) -> str:
    """How many labels people gave, and how often they could not tell."""
    unsure = sum(label.label is None for label in people)
    text = counted(len(people) - unsure, "label")
    return f"{text} and {counted(unsure, 'answer')} “cannot tell”" if unsure else text


def _next_commands(
    options: Namespace, table: Table | None, verdicts: Sequence[str], asked: Sequence[Case]
) -> str:
    """What the labels are for: figures of the verdicts that a table has, and else a suite."""
    files = [str(options.file), "--labels", str(options.out)]
    if table is not None and options.case:
        files += ["--case", options.case]
    check, suite, by = ["check", *files], ["init", "NAME", "--log", *files], options.by
    if asked[0].scale.orders:
        check.append("--pairs")
    is_verdict = table is not None and by and _has_answer(table, by, asked)
    if is_verdict and [by] != [*verdicts]:
        check += ["--verdict", by]
    elif len(verdicts) != 1:
        check += ["--verdict", "COL"]
    for case in asked:
        suite += ["--rubric", f"{case.rubric.id}: {case.rubric.instructions}"]
    if table is not None and (verdicts or is_verdict):
        return f"{_PROGRAM} {shlex.join(check)}\n"
    text = f"{_PROGRAM} {shlex.join(suite)}\n"
    if table is not None:
        text += f"or, to check a column of verdicts: {_PROGRAM} {shlex.join(check)}\n"
    return text


def _refuse_options(options: Namespace, out: Path) -> None:
    """Refuse values that the command cannot use, whatever the file holds."""
    if options.sample is not None and options.sample < 1:
        raise InputError(f"got {options.sample}; must be 1 or more", key="--sample")
    if not 0 <= options.overlap <= 1:
        raise InputError(f"got {options.overlap}; must be from 0 to 1", key="--overlap")
    if options.disagreements and options.out:
        message = "cannot be used with --disagreements, whose file gets the new labels"
        raise InputError(message, key="--out")
    if out.suffix.lower() != ".csv":
        key = "--disagreements" if options.disagreements else "--out"
        raise InputError(f"got {out}; must end in .csv", key=key)


def _refuse_other_weights(labels: LabelTable, out: Path, *, by: str) -> None:
    """Refuse labels that stand for several cases beside others, which are weighed otherwise."""
    for row in labels.rows():
        if bool(row.weight) != bool(by):
            raise InputError(
                f"the labels in the file have {'weights' if row.weight else 'no weights'}, but "
                f"new labels would have {'weights' if by else 'no weights'}",
                str(out),
                row.line,
                hint="use --by for all labels of a file or for none, or pass another --out",
            )


def _beside(table: Table, pair: Sequence[str]) -> list[str]:
    """The columns of the request, and of a context, that two answers are labelled with; raises
    `InputError` where there is no request, or the answers' columns say which one is better.
    """
    request = columns_named(table, PART_NAMES["request"])
    if not request or CHOSEN in map(as_word, pair):
        reason = "columns whose names reveal the label" if request else "no column with a request"
        raise table.error(
            f"has two answers ({listed(pair)}) and {reason}",
            "to label pairs, use a suite (of: pairs) and --jrh-review=blind; or pass --text ANSWER",
        )
    return [*request[:1], *columns_named(table, PART_NAMES["context"])[:1]]


def _how_far_people_agree(people: Iterable[PersonLabel], out: Path) -> str:
    """A line about the cases that several people labelled, and what settles them; empty where there
    are none.
    """
    by_case = grouped((of.case_digest, of.label) for of in people if of.label is not None)
    shared = [len({*said}) for said in by_case.values() if len(said) > 1]
    if not shared:
        return ""
    agreed = shared.count(1)
    text = (
        f"people agree on {agreed:,} of {counted(len(shared), 'case')} that several people labelled"
    )
    if agreed < len(shared):
        text += f"; to settle the others, add --disagreements {out} to the command"
    return f"{text}\n"


def _other_words(table: Table, verdicts: Iterable[str], asked: Iterable[Case]) -> Iterator[str]:
    """Say which verdicts are words of other answers than people are asked for: labels and such
    verdicts cannot be compared.
    """
    answers: dict[str, None] = {}
    for case in asked:
        for answer in case.scale.answers:
            answers[label_word(case, answer)] = None
    for column in verdicts:
        words = dict.fromkeys(filter(None, table.texts(column)))
        if words and not _has_answer(table, column, asked):
            yield (
                f"The verdicts in {shown(column)} are {listed(words, 5)}, but people answer "
                f"{listed(answers, 5)}: name a rubric file with these verdicts as classes or levels"
                " (--rubric FILE), or tell `check` what these verdicts mean (--map)."
            )


def _has_answer(table: Table, column: str, asked: Iterable[Case]) -> bool:
    """Whether a column has an answer that people are asked for, or a number: check asks what it
    means.
    """
    known = set(BARE)
    for case in asked:
        known.update(case.scale.label_words)
    words = {as_word(text) for text in {*table.texts(column)}}
    return any(word in known or word.lstrip("+-.")[:1].isdigit() for word in words)


def _cases(
    items: Iterable[TextToLabel], rubrics: Sequence[Rubric], pair: Sequence[str]
) -> list[Case]:
    """The cases of all items that have a text, one a rubric; two columns may hold a `pair`."""
    scale = paired() if pair else None
    cases = []
    asked: dict[tuple[str, str], Rubric] = {}
    for item in items:
        key = item.key
        # Equal words are several cases, which messages with ids of their own tell apart.
        messages: Transcript = tuple(
            {**turn, "id": f"{key.case} {key.epoch}"} for turn in item.turns
        )
        if messages and pair:
            texts = {turn["role"]: turn["content"] for turn in messages}
            answers = [{"role": "assistant", "content": texts.get(name, "")} for name in pair]
            others = [turn for turn in messages if turn["role"] not in pair]
            messages = (*others, *as_pair(*answers))
        for rubric in rubrics if messages else ():
            if key.rubric not in ("", rubric.id):
                continue
            text = rubric.instructions
            if item.rubric_text and text == rubric.id:
                text = item.rubric_text
            if (rubric.id, text) not in asked:
                asked[rubric.id, text] = replace(
                    rubric,
                    id=rubric.id or "the rubric",
                    instructions=text,
                    answers=scale or rubric.scale,
                )
            cases.append(
                Case(
                    CaseSpec("", "label", rubric.id, key.case, key.epoch),
                    asked[rubric.id, text],
                    AgentRun(key.case, key.epoch, messages, metadata={"text": item}),
                    PerturbationOutcome(messages),
                    expected=None,
                    verified=True,
                    objective="fail",
                )
            )
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
