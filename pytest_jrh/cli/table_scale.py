"""Which answers a table has: two, classes, or n/a beside them, as its words or options say."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from pytest_jrh.core.documents import Fields, listed, shown
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.scales import (
    BARE,
    BETWEEN,
    BINARY,
    NO_SUCH,
    NOT_APPLICABLE,
    Scale,
    classed,
    with_not_applicable,
)
from pytest_jrh.core.text import one_line
from pytest_jrh.core.values import CANNOT_TELL, as_seen, as_word, part_of
from pytest_jrh.sources.columns import Columns, Table
from pytest_jrh.sources.verdicts import NO_VALUES, NUMBER
from pytest_jrh.stats.verdicts import Verdicts

MOST_CLASSES = 20
"""Of more different answers the confusion table is read by nobody."""
_FEWEST_CLASSES = 2
_LONGEST_NAME = 60
_NO_SUCH_WORDS = with_not_applicable(BINARY, "").label_words.keys() - BINARY.label_words.keys()
_MOST_NAMED = 5


class Column(NamedTuple):
    """A column of answers, by people or by a judge, of a file."""

    file: str
    name: str
    texts: Sequence[str]
    is_verdict: bool


def answer_columns(table: Table, columns: Columns) -> Iterator[Column]:
    """The columns of a table that hold answers."""
    for name in filter(None, (*columns.labels, columns.settled)):
        yield Column(table.file, name, columns.texts[name], is_verdict=False)
    for name in filter(None, (*columns.verdicts, columns.baseline)):
        yield Column(table.file, name, columns.texts[name], is_verdict=True)


class _Word(NamedTuple):
    """A word as it is first written, and the column of that."""

    text: str
    column: Column


def table_scale(
    columns: Iterable[Column], mapping: Fields, classes: Sequence[str], scale: Scale | None
) -> Scale:
    """The answers of a table: the `classes` that are named, the `scale`, or what its words are;
    beside them n/a, where it is among the words.
    """
    labels: dict[str, _Word] = {}
    verdicts: dict[str, _Word] = {}
    for column in columns:
        words = verdicts if column.is_verdict else labels
        for text in dict.fromkeys(column.texts):
            value = mapping.get(as_word(text), text)
            if (word := as_word(value)) not in ("", CANNOT_TELL):
                words.setdefault(word, _Word(as_seen(value), column))
    named = {as_word(name): as_seen(name) for name in classes}
    if classes:
        scale = _named([name for word, name in named.items() if word != NO_SUCH])
    elif scale is None:
        scale = _found(labels, verdicts)
    has_no_such = (labels.keys() | verdicts.keys()) & (_NO_SUCH_WORDS - named.keys())
    return with_not_applicable(scale, "") if has_no_such or NO_SUCH in named else scale


def _named(names: Sequence[str]) -> Scale:
    """The classes that an option names."""
    for name in names:
        if not _is_name(name):
            message = f"got {shown(name)}; a class has 1 to {_LONGEST_NAME} characters"
            raise InputError(f"{message}, none of them {BETWEEN}", key="--classes")
    if not _FEWEST_CLASSES <= len(names) <= MOST_CLASSES:
        message = f"got {len(names):,}; must be {_FEWEST_CLASSES} to {MOST_CLASSES} classes"
        raise InputError(f"{message}, such as first,second,tie", key="--classes")
    return classed(tuple((name, "") for name in names))


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and BETWEEN not in name


def _found(labels: Mapping[str, _Word], verdicts: Mapping[str, _Word]) -> Scale:
    """What words are: classes where they are others than those of two answers, and labels and
    verdicts have the same ones. What is read as two answers may yet be refused, value by value.
    """
    words = {**verdicts, **labels}
    known = words.keys() & (BINARY.label_words.keys() | BARE.keys())
    others = sorted(words.keys() - known - _NO_SUCH_WORDS)
    if not others or {*others} & {*NO_VALUES} or any(map(_is_number, others)):
        return BINARY
    if len(known) + len(others) > MOST_CLASSES:
        raise _too_many(words, words[others[-1]].column)
    if not all(_is_name(words[word].text) for word in others):
        return BINARY
    of_labels, of_verdicts = labels.keys() & {*others}, verdicts.keys() & {*others}
    if known and of_labels != of_verdicts:
        # One of two words may be misspelled.
        return BINARY
    names = [words[word].text for word in sorted({*known, *others})]
    if verdicts and of_labels - of_verdicts and of_verdicts - of_labels:
        raise _unlike(words, of_labels - of_verdicts, of_verdicts - of_labels, names)
    return classed(tuple((name, "") for name in names))


def _is_number(word: str) -> bool:
    return bool(NUMBER.fullmatch(word)) or part_of(word) is not None


def _too_many(words: Mapping[str, _Word], column: Column) -> InputError:
    message = f"labels and verdicts are {len(words):,} different words, such as "
    message += f"{shown([*words.values()][-1].text)}; classes are at most {MOST_CLASSES}"
    role = "verdict" if column.is_verdict else "label"
    hint = f"name the column of answers: --{role} COL; or join words: --map WORD=CLASS"
    return InputError(message, column.file, key=column.name, hint=hint)


def _unlike(
    words: Mapping[str, _Word],
    of_labels: Collection[str],
    of_verdicts: Collection[str],
    names: Iterable[str],
) -> InputError:
    """Labels and verdicts each have words that the other side does not have."""
    sides = []
    for side in (of_labels, of_verdicts):
        sides.append(listed([words[word].text for word in sorted(side)], _MOST_NAMED))
    message = f"{sides[0]} {_are(of_labels)} said by labels alone, and {sides[1]} by verdicts alone"
    hint = "say which are the same: --map WORD=OTHER; or, where all are classes, name them: "
    hint += f"--classes {shlex.quote(','.join(names))}"
    file = words[min(of_labels)].column.file
    return InputError(message, file, key="--classes", hint=hint)


def _are(several: Collection[str]) -> str:
    return "is" if len(several) == 1 else "are"


def scale_lines(verdicts: Verdicts, scale: Scale) -> Iterator[str]:
    """What is said of the answers that were taken: classes, and n/a."""
    classes = [of for of in scale.classes if not of.figure and of.answer != NOT_APPLICABLE]
    if classes:
        line = f"classes: {', '.join(one_line(of.word) for of in classes)}"
        if len(classes) == _FEWEST_CLASSES:
            line += "; --map WORD=violated and WORD=satisfied where one of them is the violation"
        yield line
    labels = {*verdicts.label.names}
    answers = {*chain.from_iterable(verdicts.answers.names)}
    alone = [one_line(of.word) for of in classes if of.answer in answers - labels]
    if alone and None not in labels:
        yield f"no label is {listed(alone)}; --map WORD= counts a word as no verdict"
    if NOT_APPLICABLE in labels | answers:
        yield f"{NO_SUCH} is an answer, right or wrong; --map {NO_SUCH}= counts it as missing"
