"""What a suite of answers takes over from what there is, by the options of `init`: columns of a
table, labels in one of them, and a judge prompt with placeholders of its own.
"""

from __future__ import annotations

import re
from argparse import Namespace
from typing import Any

from pytest_jrh.core.calls import JUDGE, known_name
from pytest_jrh.core.documents import (
    Fields,
    Json,
    as_text,
    as_word,
    label_value,
    listed,
    read_text,
    shown,
)
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.scales import BARE, BINARY, numbered, paired
from pytest_jrh.core.sections import InputFormat
from pytest_jrh.core.text import counted, nearest_hint
from pytest_jrh.llm.calls import parse_prompt
from pytest_jrh.sources.columns import Table
from pytest_jrh.sources.source import as_pointer, several_values
from pytest_jrh.sources.verdicts import Values

_PARTS = {"request": "messages", "response": "answer", "context": "context", "case": "id"}
"""The options that name a column, each with its key of `suite.format`."""
_IN_TWO_BRACES = re.compile(r"\{\{\s*([A-Za-z_][\w.]*)\s*\}\}")
_IN_BRACES = re.compile(r"(?<!\{)\{([A-Za-z_]\w*)\}(?!\})")


def refuse_missing(options: Namespace, table: Table | None) -> InputFormat:
    """Refuse columns that are named and not there; gives those of the parts of an answer."""
    known = () if table is None else table.columns
    pointers = {}
    for option in ("label", *_PARTS):
        column = getattr(options, option)
        if column and column not in known:
            # Of JSON it may be further down: human.ok, or /human/ok.
            place = f"/{column.removeprefix('/').replace('.', '/')}"
            if table is None or not table.at(place):
                message = "holds runs, which have no columns"
                hint = "where each line is a request with its answer, say --of answers"
                if table is not None:
                    message = f"has no column {shown(column)}; its columns are {listed(known)}"
                    hint = nearest_hint(column, known) or "name one of them"
                raise InputError(message, str(options.log), key=f"--{option}", hint=hint)
            setattr(options, option, column := place)
        if column and option in _PARTS:
            pointers[_PARTS[option]] = as_pointer(column)
    return InputFormat.model_validate(pointers)


def labels_in(table: Table, column: str, options: Namespace) -> tuple[Json, str]:
    """What the values of a column of labels mean, None for no label, and what to say of them.

    Raises `InputError` for values that mean nothing.
    """
    scale = numbered(*options.scale) if options.scale else BINARY
    values = Values(options.map, scale, options.one, None)
    problems: list[Problem] = []
    cells = table.at(column)
    texts = [*map(as_text, cells)]
    for value in cells:
        if isinstance(value, dict | list):
            raise InputError([several_values(value, column, "--label")])
    labels = values.read(table, column, texts, problems, is_verdict=False)
    # What a word of the prompt means may be said, too.
    asked = " ".join((options.verdict, *options.rubric))
    if options.prompt:
        asked += read_text(options.prompt, str(options.prompt))
    texts_seen = [*filter(None, values.seen[column])]
    for word in values.strangers():
        if word not in asked.casefold():
            message = f"{shown(word)} is no value of {column}; its values are "
            message += listed(texts_seen, 8)
            problems.append(Problem(message, key="--map", hint=nearest_hint(word, texts_seen)))
    table.refuse(problems)
    values.refuse_unclear(table)
    meanings = {}
    words: dict[Any, str] = scale.words
    for text, label in zip(texts, labels, strict=True):
        if text:
            # A level has no word but its number; what is mapped to nothing, none at all.
            score = label and label.score
            meanings[text] = words.get(score) or score
    said = [f"{text} is {'no label' if word is None else word}" for text, word in meanings.items()]
    meant = listed(said)
    if scale.is_ordered and not options.map:
        # Scores are read as they are.
        meanings = {}
        meant = f"scores from {scale.scores[0]} to {scale.scores[-1]}"
    answers = counted(len(table.lines), "row")
    return meanings, f"label in {column} ({sum(map(bool, labels)):,} of {answers}): {meant}"


def judge_prompt(options: Namespace, meanings: Fields) -> tuple[Json, list[str]]:
    """What the files say of a prompt: it, with our names for its placeholders, and how its verdict
    is read; and what to say of it. `meanings` are those of labels.

    Raises `InputError` for placeholders that are no part of an answer, and where nothing says how
    the verdict is read.
    """
    file = str(options.prompt)
    text = read_text(options.prompt, file)
    placeholder = _IN_TWO_BRACES if _IN_TWO_BRACES.search(text) else _IN_BRACES
    names = {}
    unknown = {}
    for match in placeholder.finditer(text):
        if match[1] in names:
            continue
        names[match[1]] = _variable(match[1], options)
        if not names[match[1]]:
            message = f"{match[0]} is no part of an answer"
            hint = "write request, response, context, system or rubric; one alone that is another "
            hint += "part is said by its column: --request, --response or --context COL"
            line = text.count("\n", 0, match.start()) + 1
            unknown[match[1]] = Problem(message, file, line, hint=hint)
    named = ("request", "response", "context")
    free = [part for part in named if getattr(options, part) and part not in names.values()]
    if len(unknown) == len(free) == 1:
        names[unknown.popitem()[0]] = free[0]
    if unknown:
        raise InputError([*unknown.values()])
    text = placeholder.sub(lambda match: match[0].replace(match[1], names[match[1]]), text)
    parse_prompt(text, file, stage=JUDGE.name, of="pair" if options.of == "pairs" else "answer")
    said = [f"{name} is {variable}" for name, variable in names.items()]
    about = [f"The prompt is {file}: {', '.join(said)}."]
    if "rubric" not in names.values():
        about.append("It names no rubric: it judges by its own words alone.")
    return {"own_prompt": text, **_verdict_values(text, options, meanings)}, about


def _variable(name: str, options: Namespace) -> str:
    """What a placeholder is called here; empty where it is nothing that a judge is shown."""
    word = name.rpartition(".")[2].casefold()
    for variable in ("request", "response", "context"):
        if word == getattr(options, variable).rpartition("/")[2].casefold():
            return variable
    return known_name(name) or "".join({word} & JUDGE.variables)


def _verdict_values(text: str, options: Namespace, meanings: Fields) -> Json:
    """How the verdict is found in the text of an answer; nothing where the prompt asks for our
    JSON.
    """
    scale = numbered(*options.scale) if options.scale else BINARY
    if options.of == "pairs":
        scale = paired()
    pattern = options.verdict
    words = {*re.findall(r"\w+", text.casefold())}
    if not pattern and {"score", "reasoning", "json"} <= words:
        return {}
    scores: Json = {str(score): score for score in scale.scores}
    if not scale.is_ordered:
        scores = {}
        known = {word: scale.words[score] for word, score in scale.label_words.items()}
        for word, meaning in {**known, **meanings, **options.map}.items():
            # What 1 means in labels, it need not mean in a prompt.
            is_asked_for = as_word(word) in words and as_word(word) not in BARE
            if meaning not in (None, "") and (is_asked_for or word in options.map):
                score = label_value(meaning, scale)
                scores[word] = scale.words[score] if scale.orders else score
    missing = {}
    said = words | {*re.findall(r"\w+", pattern.casefold())}
    good, bad = ("yes", "no") if {"yes", "no"} <= said else ("good", "bad")
    if not pattern and "json" in words:
        form = "Score: (\\d+)" if scale.is_ordered else f"Verdict: ({good}|{bad})"
        if scale.orders:
            form = "Verdict: (A|B|C)"
        missing["where in an answer the verdict is"] = f"--verdict '{form}'"
    if len({*scores.values()}) < len(scale.words):
        ways = "--map A=first --map B=second --map C=tie"
        if not scale.orders:
            ways = f"--map {good}=0 --map {bad}=1"
        missing[f"which words of a verdict mean {' and '.join(scale.words.values())}"] = ways
    if missing:
        hint = f"say it: {' '.join(missing.values())}"
        if scale is BINARY:
            hint += f", where {good} is {scale.words[0]}"
        message = f"nothing says {', and '.join(missing)}"
        raise InputError(message, str(options.prompt), hint=hint)
    if not pattern:
        # The last line, alone or behind a name and a colon.
        ends = "|".join(map(re.escape, scores))
        pattern = rf"(?im)^[^\w\n]*(?:\w[\w ]*[:=]\W*)?({ends})\W*\Z"
    return {"pattern": pattern, "score_map": {} if scale.is_ordered else scores}
