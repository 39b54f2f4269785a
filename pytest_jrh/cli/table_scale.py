"""Which answers a table has: two, classes, or n/a beside them, as its words or options say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

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
from pytest_jrh.sources.columns import Columns
from pytest_jrh.sources.verdicts import NO_VALUES, NUMBER
from pytest_jrh.stats.verdicts import Verdicts

MOST_CLASSES = 20
"""Of more different answers the confusion table is read by nobody."""
_FEWEST_CLASSES = 2
_LONGEST_NAME = 60
_NO_SUCH_WORDS = with_not_applicable(BINARY, "").label_words.keys() - BINARY.label_words.keys()


def table_scale(
    tables: Iterable[Columns], mapping: Fields, classes: Sequence[str], scale: Scale | None
) -> Scale:
    """The answers of tables: the `classes` that are named, the `scale`, or what the words of all
    are; beside them n/a, where it is among the words.
    """
    labels: dict[str, str] = {}
    verdicts: dict[str, str] = {}
    for columns in tables:
        for words, names in (
            (labels, (*columns.labels, columns.settled)),
            (verdicts, (*columns.verdicts, columns.baseline)),
        ):
            for text in dict.fromkeys(chain.from_iterable(map(columns.texts.__getitem__, names))):
                value = mapping.get(as_word(text), text)
                if (word := as_word(value)) not in ("", CANNOT_TELL):
                    words.setdefault(word, as_seen(value))
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


def _found(labels: Mapping[str, str], verdicts: Mapping[str, str]) -> Scale:
    """What words are: classes where they are others than those of two answers, and labels and
    verdicts have the same ones. What is read as two answers may yet be refused, value by value.
    """
    words = {**verdicts, **labels}
    known = words.keys() & (BINARY.label_words.keys() | BARE.keys())
    others = words.keys() - known - _NO_SUCH_WORDS
    if not others or others & {*NO_VALUES} or any(map(_is_number, others)):
        return BINARY
    if len(known) + len(others) > MOST_CLASSES:
        message = f"labels and verdicts are {len(words):,} different words, such as "
        message += f"{shown(words[max(others)])}; classes are at most {MOST_CLASSES}"
        hint = "name the columns of answers: --label COL, --verdict COL; or join words: "
        raise InputError(message, key="--classes", hint=f"{hint}--map WORD=CLASS")
    of_labels, of_verdicts = others & labels.keys(), others & verdicts.keys()
    # A word of one side alone may be misspelled.
    is_alike = (
        of_labels == of_verdicts
        if known
        else not (verdicts and of_labels - of_verdicts and of_verdicts - of_labels)
    )
    if not is_alike or not all(_is_name(words[word]) for word in others):
        return BINARY
    return classed(tuple((words[word], "") for word in sorted(known | others)))


def _is_number(word: str) -> bool:
    return bool(NUMBER.fullmatch(word)) or part_of(word) is not None


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
