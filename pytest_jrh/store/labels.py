"""Labels that people gave to made cases: `{output.dir}/review/labels.jsonl`.

What the labels of a suite rest on: models, people, programs.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pytest_jrh.core.documents import listed, read_text, shown
from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, Problem
from pytest_jrh.core.stages import VERIFIER
from pytest_jrh.core.text import counted, nearest_hint, one_line
from pytest_jrh.core.transcript import storable
from pytest_jrh.sources.label_files import LabelFile, NoLabelError, label_value, read_objects
from pytest_jrh.stats.panels import made_case_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import CaseResult, Label, LabelKey, Rubric
    from pytest_jrh.judges.judge import SuiteJudge


CANNOT_TELL = "cannot tell"
_KEYS = (
    "case_digest",
    "reviewer",
    "label",
    "blind",
    "time",
    "note",
    "case_id",
    "expected",
    "verification",
    "withdrawn",
)
_NEEDED = ("case_digest", "reviewer", "label")
_DIGEST = re.compile("[0-9a-f]{64}", re.ASCII)
_CHECKS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "case_digest": (
        lambda value: isinstance(value, str) and _DIGEST.fullmatch(value) is not None,
        "the 64 hexadecimal digits of a case_digest",
    ),
    "reviewer": (lambda value: isinstance(value, str) and bool(value.strip()), "a name"),
    "blind": (lambda value: isinstance(value, bool), "true or false"),
    "withdrawn": (lambda value: isinstance(value, bool), "true or false"),
    "verification": (
        lambda value: value in (None, "confirmed", "rejected"),
        "confirmed or rejected",
    ),
}


@dataclass(frozen=True, slots=True)
class PersonLabel:
    """What one person says of one made case; `label` is None where he or she cannot tell.

    `blind` says that the label was given before the case's own label, plan and edits were seen.
    `expected` and `verification` are told of a case that the verifier rejected, which no other file
    has. `withdrawn` takes back what the person said of the case before.
    """

    case_digest: str
    reviewer: str
    label: int | None
    blind: bool = False
    expected: int | None = None
    verification: Literal["confirmed", "rejected"] | None = None
    note: str = ""
    withdrawn: bool = False


def labels_path(output_dir: Path) -> Path:
    """Where the labels of people about the cases of a test's folder are kept."""
    return output_dir / "review" / "labels.jsonl"


def read_people(suite: Suite) -> tuple[PersonLabel, ...]:
    """The labels of people about a suite's cases, in the order of their files, without those that
    they took back.

    Raises `InputError` with file and line for each line that is none.
    """
    scores = _scores(suite.rubrics) if suite.mode == "ordinal" else ()
    labels: dict[int, PersonLabel] = {}
    numbers_by_person: dict[tuple[str, str], list[int]] = {}
    counter = itertools.count()
    problems: list[Problem] = []
    for path in _files(suite):
        if path.exists():
            file = LabelFile(str(path))
            text = storable(read_text(path, str(path)))[0]
            for line, value in read_objects(_without_torn_line(text), file):
                label = _label(value, file, line, scores)
                if label is None:
                    if len(file.problems) >= MOST_PROBLEMS:
                        break
                    continue
                person = (label.case_digest, label.reviewer)
                numbers = numbers_by_person.setdefault(person, [])
                while label.withdrawn and numbers:
                    del labels[numbers.pop()]
                numbers.append(next(counter))
                labels[numbers[-1]] = label
            problems += file.problems
    if problems:
        raise InputError(problems[:MOST_PROBLEMS])
    return tuple(labels.values())


def labels_elsewhere(suite: Suite, folders: Iterable[Path]) -> list[str]:
    """Say which files of labels below these folders, those of shards, have lines that the suite's
    own files have not: they are not counted.

    Raises `InputError` for a file that cannot be read.
    """
    counted_lines: set[str] = set()
    for path in _files(suite):
        if path.exists():
            counted_lines |= _lines(path)
    paths: list[Path] = []
    for folder in folders:
        paths += folder.rglob("review/labels.jsonl")
    sentences = []
    for path in sorted(paths):
        if missing := len(_lines(path) - counted_lines):
            sentences.append(
                f"{one_line(str(path))} has {counted(missing, 'label')} of people that are not "
                "counted; to count them, add its lines to "
                f"{labels_path(suite.tests[0].output_dir)} or to the file that review.labels names."
            )
    return sentences


def _files(suite: Suite) -> list[Path]:
    """Where the labels of people about the suite's cases may be, in the order of reading."""
    paths = [labels_path(test.output_dir) for test in suite.tests]
    if suite.blind_labels is not None:
        paths.insert(0, suite.blind_labels)
    return list(dict.fromkeys(paths))


def _lines(path: Path) -> set[str]:
    return {line.strip() for line in read_text(path, str(path)).splitlines()} - {""}


def blind_labels(people: Iterable[PersonLabel]) -> dict[str, tuple[int, ...]]:
    """The blind labels by case digest, one for each reviewer: the last one, where there are
    several.
    """
    blind: dict[str, tuple[int, ...]] = {}
    for digest, by_reviewer in _last_blind(people).items():
        labels = tuple(label for label in by_reviewer.values() if label is not None)
        if labels:
            blind[digest] = labels
    return blind


def untold(people: Iterable[PersonLabel]) -> frozenset[str]:
    """The digests of cases of which all who looked at them blind say that nobody can tell."""
    by_case = _last_blind(people)
    return frozenset(digest for digest, labels in by_case.items() if not _is_told(labels))


def _is_told(labels: Mapping[str, int | None]) -> bool:
    return any(label is not None for label in labels.values())


def _last_blind(people: Iterable[PersonLabel]) -> dict[str, dict[str, int | None]]:
    by_case: dict[str, dict[str, int | None]] = {}
    for person_label in people:
        if person_label.blind:
            by_reviewer = by_case.setdefault(person_label.case_digest, {})
            by_reviewer[person_label.reviewer] = person_label.label
    return by_case


def _scores(rubrics: Sequence[Rubric]) -> tuple[int, ...]:
    scores: set[int] = set()
    for rubric in rubrics:
        scores.update(rubric.scores)
    return tuple(sorted(scores))


def _label(
    value: Mapping[str, Any], file: LabelFile, line: int, scores: Sequence[int]
) -> PersonLabel | None:
    """One line; None, with the problems, where it is no label."""
    before = len(file.problems)
    for name in value:
        if name not in _KEYS:
            message = f"unknown key {shown(name)}; the keys are {listed(_KEYS)}"
            file.problem(message, line, hint=nearest_hint(name, _KEYS))
    for name in _NEEDED:
        if name not in value:
            file.problem("is missing", line, name)
    if len(file.problems) > before:
        return None
    for name, (fits, needed) in _CHECKS.items():
        if name in value and not fits(value[name]):
            file.problem(f"got {shown(value[name])}; must be {needed}", line, name)
    verification = value.get("verification")
    label = _value(value["label"], "label", file, line, scores)
    expected = _value(value.get("expected"), "expected", file, line, scores)
    if verification == "rejected" and expected is None and len(file.problems) == before:
        message = "is missing; must be the label that the rejected case was made for"
        file.problem(message, line, "expected")
    if len(file.problems) > before:
        return None
    note = value.get("note")
    return PersonLabel(
        value["case_digest"],
        value["reviewer"].strip(),
        label,
        value.get("blind", False),
        expected,
        verification,
        note if isinstance(note, str) else "",
        value.get("withdrawn", False),
    )


def _without_torn_line(text: str) -> str:
    """The text without a last line that a killed process began and did not end."""
    last = text.rpartition("\n")[2]
    is_torn = last.startswith("{") and not last.rstrip().endswith("}")
    return text.removesuffix(last) if is_torn else text


def _value(raw: Any, key: str, file: LabelFile, line: int, scores: Sequence[int]) -> int | None:
    if raw is None or raw == CANNOT_TELL:
        return None
    try:
        return label_value(raw, scores)
    except NoLabelError as error:
        file.problem(f"{error}, or {CANNOT_TELL}", line, key, error.hint)
        return None


_STEM = re.compile(r"[a-z]*", re.ASCII)


class Kinship(NamedTuple):
    """A judge whose model is the verifier's (`same`), or of its family; `judge` is empty for a
    suite's only one.
    """

    judge: str
    model: str
    verifier: str
    same: bool


@dataclass(frozen=True, slots=True)
class Grounds:
    """What the labels of a suite rest on, beside what its results say.

    `verifier` is the verifier's model, empty where it is off or none is needed; `kin` are the
    judges that may share its errors. `votes` are those of the annotators of each labelled run, and
    `people` the labels that people gave to made cases. `rejected` stand for the cases that the
    verifier rejected in earlier sessions, where people labelled any. `drawn` are the labels of runs
    that are said to be a random sample.
    """

    ordinal: bool = False
    verifier: str = ""
    kin: tuple[Kinship, ...] = ()
    votes: tuple[tuple[int, ...], ...] = ()
    people: tuple[PersonLabel, ...] = ()
    rejected: tuple[CaseResult, ...] = ()
    drawn: frozenset[LabelKey] = frozenset()

    def with_rejected(self, results: Iterable[CaseResult]) -> list[CaseResult]:
        """The results of a session, and what stands for cases that it did not run, which the
        verifier had rejected.
        """
        with_rejected = list(results)
        ran = {made_case_id(result) for result in with_rejected}
        with_rejected += [result for result in self.rejected if made_case_id(result) not in ran]
        return with_rejected


def grounds_of(
    suite: Suite,
    judges: Mapping[str | None, SuiteJudge],
    labels: Mapping[LabelKey, Label],
    people: tuple[PersonLabel, ...],
    rejected: tuple[CaseResult, ...] = (),
) -> Grounds:
    """What the labels of a suite rest on; see `Grounds`."""
    stage = suite.stages.get(VERIFIER.name)
    verifier = stage.model if stage is not None else ""
    kin = []
    for name, judge in judges.items():
        for model in judge.models:
            if verifier and are_kin(model.model, verifier):
                is_verifier = is_same(model.model, verifier)
                kin.append(Kinship(name or "", model.model, verifier, is_verifier))
    return Grounds(
        ordinal=suite.mode == "ordinal",
        verifier=verifier,
        kin=tuple(kin),
        votes=tuple(label.votes for label in labels.values()),
        people=people,
        rejected=rejected,
        drawn=drawn_labels(labels),
    )


def drawn_labels(labels: Mapping[LabelKey, Label]) -> frozenset[LabelKey]:
    """The labels of runs that are said to be a random sample."""
    return frozenset(key for key, label in labels.items() if label.is_drawn)


def is_same(model: str, verifier: str) -> bool:
    """Whether two names are of one model, whoever serves it: `azure/gpt-4.1` and
    `openai/gpt-4.1`.
    """
    return _name(model) == _name(verifier)


def are_kin(model: str, verifier: str) -> bool:
    """Whether two models are one, or of one family: the same provider, and the same letters at the
    beginning of the name, as in `openai/gpt-4.1` and `openai/gpt-4o-mini`.
    """
    if is_same(model, verifier):
        return True
    if not _stem(model) or _stem(model) != _stem(verifier):
        return False
    # A name without a provider is one that litellm knows it from.
    provider, verifier_provider = provider_of(model), provider_of(verifier)
    return not provider or not verifier_provider or provider == verifier_provider


def _name(model: str) -> str:
    return model.rpartition("/")[2].casefold()


def _stem(model: str) -> str:
    match = _STEM.match(_name(model))
    assert match is not None
    return match[0]


def provider_of(model: str) -> str:
    """Who serves a model, as its name says it; empty where it does not."""
    return model.rpartition("/")[0].casefold()
