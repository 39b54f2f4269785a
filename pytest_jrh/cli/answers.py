"""What a suite of answers takes over from what there is, by the options of `init`: columns of a
table, labels in one of them, and a judge prompt with placeholders of its own.
"""

from __future__ import annotations

import json
import re
from argparse import Namespace
from typing import Any

from pytest_jrh.core.documents import Fields, Json, listed, read_text, shown
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.scales import BINARY, Scale, numbered
from pytest_jrh.core.sections import InputFormat
from pytest_jrh.core.stages import JUDGE
from pytest_jrh.core.text import counted
from pytest_jrh.core.values import BARE, as_word, label_value
from pytest_jrh.llm.calls import parse_prompt
from pytest_jrh.sources.answers import PARTS
from pytest_jrh.sources.columns import Table
from pytest_jrh.sources.source import as_pointer
from pytest_jrh.sources.verdicts import Values

_PARTS = {"request": "messages", "response": "answer", "context": "context", "case": "id"}
"""The options that name a column, each with its key of `suite.format`."""
_RUBRIC = "rubric criterion criteria"
_IN_TWO_BRACES = re.compile(r"\{\{\s*([A-Za-z_][\w.]*)\s*\}\}")
_IN_BRACES = re.compile(r"(?<!\{)\{([A-Za-z_]\w*)\}(?!\})")


def refuse_missing(options: Namespace, table: Table | None) -> InputFormat:
    """Refuse columns that are named and not there; gives those of the parts of an answer."""
    known = () if table is None else table.columns
    pointers = {}
    for option in ("label", *_PARTS):
        column = getattr(options, option)
        if column and column not in known:
            message = f"has no column {shown(column)}; its columns are {listed(known) or 'none'}"
            raise InputError(message, str(options.log), key=f"--{option}")
        if column and option in _PARTS:
            pointers[_PARTS[option]] = as_pointer(column)
    return InputFormat.model_validate(pointers)


def _scale(options: Namespace) -> Scale:
    return numbered(*options.scale) if options.scale else BINARY


def labels_in(table: Table, options: Namespace) -> tuple[Json, str]:
    """What the values of the column of labels mean, None for no label, and what to say of them.

    Raises `InputError` for values that mean nothing.
    """
    scale = _scale(options)
    values = Values(options.map, scale, options.one, None)
    problems: list[Problem] = []
    texts = table.texts(options.label)
    labels = values.read(table, options.label, texts, problems, is_verdict=False)
    table.refuse(problems)
    values.refuse_unclear(table)
    meanings: Json = {}
    words: dict[Any, str] = scale.words
    for text, label in zip(texts, labels, strict=True):
        if label is not None:
            # A level has no word but its number.
            meanings[text] = words.get(label.score) or label.score
    said = [f"{text} is {'no label' if word is None else word}" for text, word in meanings.items()]
    answers = counted(len(table.lines), "row")
    number = sum(map(bool, labels))
    return meanings, f"label in {options.label} ({number:,} of {answers}): {listed(said)}"


def judge_prompt(options: Namespace, meanings: Fields) -> tuple[dict[str, str], list[str]]:
    """What the files say of a prompt: it, with our names for its placeholders, and the lines of the
    config by which its verdict is read; and what to say of both. `meanings` are those of labels.

    Raises `InputError` for placeholders that are no part of an answer, and where nothing says how
    the verdict is read.
    """
    file = str(options.prompt)
    text = read_text(options.prompt, file)
    placeholder = _IN_TWO_BRACES if _IN_TWO_BRACES.search(text) else _IN_BRACES
    names: dict[str, str] = {}
    problems = []
    for match in placeholder.finditer(text):
        if match[1] in names:
            continue
        variable = _variable(match[1], options)
        if not variable:
            message = f"{match[0]} is no part of an answer"
            hint = "write request, response, context, system or rubric, or name the column that it "
            hint += "is: --request, --response or --context COL"
            line = text.count("\n", 0, match.start()) + 1
            problems.append(Problem(message, file, line, hint=hint))
        names[match[1]] = variable
    if problems:
        raise InputError(problems)
    text = placeholder.sub(lambda match: match[0].replace(match[1], names[match[1]]), text)
    parse_prompt(text, file, stage=JUDGE.name)
    said = [f"{name} is {variable}" for name, variable in names.items()]
    about = [f"The prompt is {file}: {', '.join(said)}."]
    if "rubric" not in names.values():
        about.append("It names no rubric: it judges by its own words alone.")
    keys = _verdict_keys(text, options, meanings)
    if keys:
        about.append(f"Its verdict is read from the text of an answer:{keys}")
    return {"own_prompt": text, "verdict": keys}, about


def _variable(name: str, options: Namespace) -> str:
    """What a placeholder is called here; empty where it is nothing that a judge is shown."""
    word = name.rpartition(".")[2].casefold()
    for variable in ("request", "response", "context"):
        column = getattr(options, variable).rpartition("/")[2].casefold()
        if {word, word.removesuffix("s")} & {column, *PARTS[_PARTS[variable]].split()}:
            return variable
    if word in _RUBRIC.split():
        return "rubric"
    return word if word in JUDGE.variables else ""


def _verdict_keys(text: str, options: Namespace, meanings: Fields) -> str:
    """The lines of the judge's section by which the verdict is found in an answer; none where the
    prompt asks for our JSON.
    """
    scale, pattern = _scale(options), options.verdict
    words = {*re.findall(r"\w+", text.casefold())}
    if not pattern and {"score", "reasoning", "json"} <= words:
        return ""
    scores = {str(score): score for score in scale.scores}
    if not scale.is_ordered:
        scores = {}
        for word, meaning in {**scale.label_words, **meanings, **options.map}.items():
            # What 1 means in labels, it need not mean in a prompt.
            is_asked_for = as_word(word) in words and as_word(word) not in BARE
            if meaning not in (None, "") and (is_asked_for or word in options.map):
                scores[word] = label_value(meaning, scale)
    if {*scores.values()} != {*scale.scores} or (not pattern and "json" in words):
        hint = "say it: --verdict 'Verdict: (good|bad)' --map good=0 (satisfied) --map bad=1"
        message = "nothing says where in an answer the verdict is, and in which words"
        raise InputError(message, str(options.prompt), hint=hint)
    if not pattern:
        # The last line, alone or behind a name and a colon.
        ends = "|".join(map(re.escape, scores))
        pattern = rf"(?im)^[^\w\n]*(?:\w[\w ]*[:=]\W*)?({ends})\W*\Z"
    quoted = pattern.replace("'", "''")
    keys = f"\n  verdict: '{quoted}'"
    if not scale.is_ordered:
        keys += f"\n  score_map: {json.dumps(scores, ensure_ascii=False)}"
    return keys
