"""Labels that people gave to made cases, `{output.dir}/review/labels.jsonl`, and what all of a
suite's labels rest on: models, people, programs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from pytest_jrh.core.documents import listed, misfit
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.files import append_line, atomic_write, encoded, lines_of
from pytest_jrh.core.stages import VERIFIER
from pytest_jrh.core.transcript import storable
from pytest_jrh.sources.tables import NoLabelError, label_value
from pytest_jrh.stats.panels import made_case_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import Case, CaseResult, Label, LabelKey
    from pytest_jrh.judges.judge import SuiteJudge


CANNOT_TELL = "cannot tell"
_RESTORE = "restore the line from git, or delete it"
RUN_LABELS = "run_labels.jsonl"
"""Beside the labels: those of natural runs, in the form that `labels: {path: ...}` reads."""
_MERGED_BY_LINE = f"labels.jsonl merge=union\n{RUN_LABELS} merge=union\n"
"""So that git keeps the lines of both sides, where two people label in a clone each."""
_RUN_KEYS = ("run_id", "epoch", "rubric_id", "annotator")


class _Line(BaseModel):
    """A line of the file; `label` may be a word, as in tables of labels."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)

    case_digest: Annotated[str, StringConstraints(pattern=r"\A[0-9a-f]{64}\z")]
    reviewer: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    label: int | str | None
    blind: bool = False
    time: Any = None
    note: str | None = None
    case_id: Any = None
    withdrawn: bool = False
    # Of lines of before: what the verifier had said, and that who labelled had seen the answers.
    expected: Any = None
    verification: Any = None
    finished: Any = None


@dataclass(frozen=True, slots=True)
class PersonLabel:
    """What one person says of one made case; `label` is None where he or she cannot tell.

    `blind` says that the label was given before the case's own label, plan and edits were seen.
    `withdrawn` takes back what the person said of the case before.
    """

    case_digest: str
    reviewer: str
    label: int | None
    blind: bool = False
    note: str = ""
    withdrawn: bool = False


def labels_path(output_dir: Path) -> Path:
    """Where the labels of people about the cases of a test's folder are kept."""
    return output_dir / "review" / "labels.jsonl"


def read_people(suite: Suite) -> tuple[PersonLabel, ...]:
    """The labels of people about a suite's cases, in the order of their files, without those that
    they took back; what a killed process left of a line is none.

    Raises `InputError` with file and line for the first that is none.
    """
    paths = [labels_path(test.output_dir) for test in suite.tests]
    if suite.blind_labels is not None:
        paths.insert(0, suite.blind_labels)
    scores: set[int] = set()
    if suite.mode == "ordinal":
        for rubric in suite.rubrics:
            scores.update(rubric.scores)
    labels: list[PersonLabel] = []
    for path in dict.fromkeys(paths):
        for line in lines_of(path):
            try:
                label = _label(line.data, sorted(scores))
            except ValidationError as error:
                if not line.is_ended:
                    break
                problem = misfit(error, "no label of a person", str(path), line.number, _RESTORE)
                raise InputError(problem) from None
            except NoLabelError as error:
                message = f"{error}, or {CANNOT_TELL}"
                raise InputError(Problem(message, str(path), line.number, "label")) from None
            if label.withdrawn:
                person = (label.case_digest, label.reviewer)
                labels = [
                    earlier
                    for earlier in labels
                    if (earlier.case_digest, earlier.reviewer) != person
                ]
            labels.append(label)
    return tuple(labels)


def _label(line: bytes, scores: Sequence[int]) -> PersonLabel:
    values = _Line.model_validate_json(line)
    told = values.label not in (None, CANNOT_TELL)
    return PersonLabel(
        values.case_digest,
        values.reviewer,
        label_value(values.label, scores) if told else None,
        values.blind,
        values.note or "",
        values.withdrawn,
    )


def blind_labels(people: Iterable[PersonLabel]) -> dict[str, tuple[int, ...]]:
    """The blind labels by case digest, one for each reviewer: the last one, where there are
    several.
    """
    blind: dict[str, tuple[int, ...]] = {}
    for digest, by_reviewer in _last_blind(people).items():
        labels = tuple(last.label for last in by_reviewer.values() if last.label is not None)
        if labels:
            blind[digest] = labels
    return blind


def untold(people: Sequence[PersonLabel]) -> frozenset[str]:
    """The digests of cases of which all who looked at them blind say that nobody can tell."""
    return frozenset(_last_blind(people)) - frozenset(blind_labels(people))


def _last_blind(people: Iterable[PersonLabel]) -> dict[str, dict[str, PersonLabel]]:
    return last_labels(label for label in people if label.blind)


def last_labels(people: Iterable[PersonLabel]) -> dict[str, dict[str, PersonLabel]]:
    """What each person said last of each case, by the case's digest and the person's name."""
    by_case: dict[str, dict[str, PersonLabel]] = {}
    for label in people:
        by_case.setdefault(label.case_digest, {})[label.reviewer] = label
    return by_case


@dataclass(frozen=True, slots=True)
class KeptLabel:
    """What one reviewer says of one case.

    `blind` is the label that was given before anything was revealed, `label` the last one; None in
    either is that nobody can tell. `is_blind`: there is a blind one. `withdrawn`: both were taken
    back.
    """

    label: int | None = None
    blind: int | None = None
    is_blind: bool = False
    note: str = ""
    withdrawn: bool = False


class LabelBook:
    """The labels of the suites on a page: on the disk before they count, and read again by later
    sessions.

    `people` are those that the files hold already; `redact` is applied to what people type. Raises
    `InputError` where the labels of natural runs cannot be read. Of several threads one at a time
    may use it.
    """

    def __init__(
        self,
        suites: Iterable[Suite],
        people: Iterable[PersonLabel],
        *,
        redact: Callable[[str], str],
    ) -> None:
        self._redact = redact
        self._labels: dict[str, dict[str, KeptLabel]] = {}
        self._folders: dict[tuple[str, str], Path] = {}
        for suite in suites:
            for test in suite.tests:
                self._folders[suite.name, test.name] = test.output_dir
        for folder in dict.fromkeys(self._folders.values()):
            # What cannot be read is said before anybody labels.
            _run_rows(_run_labels_path(folder))
        for label in people:
            self._count(label)

    def of(self, digest: str, reviewer: str) -> KeptLabel | None:
        """What a reviewer says of a case; None where he or she never said anything."""
        return self._labels.get(digest, {}).get(reviewer)

    def labelled_by(self, digest: str) -> frozenset[str]:
        """Who has labelled a case."""
        labels = self._labels.get(digest, {})
        return frozenset(name for name, label in labels.items() if not label.withdrawn)

    def has_blind(self, digest: str) -> bool:
        """Whether anybody has labelled a case blind."""
        return any(label.is_blind for label in self._labels.get(digest, {}).values())

    def keep(self, case: Case, label: PersonLabel) -> None:
        """Keep what a reviewer says of a case; raises `OSError` where that fails, and nothing has
        changed then.
        """
        label = replace(label, note=self._redact(storable(label.note.strip())[0]))
        folder = self._folders[case.spec.suite, case.spec.test]
        attributes = labels_path(folder).with_name(".gitattributes")
        if not attributes.exists():
            atomic_write(attributes, _MERGED_BY_LINE)
        append_line(labels_path(folder), _line(label))
        self._count(label)
        if case.spec.natural:
            self._write_run_label(folder, case, label)

    def _count(self, label: PersonLabel) -> None:
        by_reviewer = self._labels.setdefault(label.case_digest, {})
        if label.withdrawn:
            after = KeptLabel(withdrawn=True)
        elif label.blind:
            after = KeptLabel(label.label, label.label, is_blind=True, note=label.note)
        else:
            before = by_reviewer.get(label.reviewer, KeptLabel())
            after = replace(before, label=label.label, note=label.note, withdrawn=False)
        by_reviewer[label.reviewer] = after

    def _write_run_label(self, folder: Path, case: Case, label: PersonLabel) -> None:
        """Bring the file of natural runs' labels up to date: with the blind one, or none."""
        path = _run_labels_path(folder)
        key = (case.spec.run_id, case.spec.epoch, case.spec.rubric_id, label.reviewer)
        rows = _run_rows(path)
        # With what people added to it.
        row = rows.pop(key, dict(zip(_RUN_KEYS, key, strict=True)))
        latest = self._labels[label.case_digest][label.reviewer]
        if latest.is_blind and latest.blind is not None:
            rows[key] = {**row, "label": latest.blind}
        lines = [json.dumps(rows[key], ensure_ascii=False) for key in sorted(rows, key=repr)]
        atomic_write(path, "".join(f"{line}\n" for line in lines))


def _line(label: PersonLabel) -> bytes:
    line: dict[str, Any] = {
        "case_digest": label.case_digest,
        "reviewer": label.reviewer,
        "label": label.label,
        "blind": label.blind,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if label.note:
        line["note"] = label.note
    if label.withdrawn:
        line["withdrawn"] = True
    return encoded(json.dumps(line, ensure_ascii=False))


def _run_labels_path(folder: Path) -> Path:
    return labels_path(folder).with_name(RUN_LABELS)


def _run_rows(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The lines of a file with labels of natural runs, by run, rubric and annotator.

    Raises `InputError` for the first that is none: it would be lost.
    """
    rows = {}
    for line in lines_of(path):
        try:
            row = json.loads(line.data)
            rows[tuple(row[name] for name in _RUN_KEYS)] = row
        except (ValueError, TypeError, KeyError):
            message = f"must be a JSON object with {listed(_RUN_KEYS)}"
            raise InputError(Problem(message, str(path), line.number, hint=_RESTORE)) from None
    return rows


class Kinship(NamedTuple):
    """A judge whose model is the verifier's; `judge` is empty for a suite's only one."""

    judge: str
    model: str


@dataclass(frozen=True, slots=True)
class Grounds:
    """What the labels of a suite rest on, beside what its results say.

    `verifier` is the verifier's model, empty where it is off or none is needed; `kin` are the
    judges that share its model, and its errors. `votes` are those of the annotators of each
    labelled run, and `people` the labels that people gave to made cases. `rejected` stand for the
    cases that the verifier rejected in earlier sessions, where people labelled any. `drawn` are the
    labels of runs that are said to be a random sample.
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
            if verifier and is_same(model.model, verifier):
                kin.append(Kinship(name or "", model.model))
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
    return model.casefold().rpartition("/")[2] == verifier.casefold().rpartition("/")[2]
