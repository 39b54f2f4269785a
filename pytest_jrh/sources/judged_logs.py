"""Judged cases as an Inspect log, for `inspect view` and everything else that reads such logs.

The archive is put together here, one sample at a time, from Inspect's own models: its writer wants
every sample in memory, and stamps what it writes with random ids and the time of day.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_jrh.errors import InputError, Problem
from pytest_jrh.files import encoded, replacing
from pytest_jrh.models import JUDGED, UNSCORED, Message
from pytest_jrh.transcript import ROLES, render_transcript, storable

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample, EvalScore
    from pydantic import BaseModel

    from pytest_jrh.redact import Redactor

_EPOCH = 1
_FIRST_DAY = "1970-01-01T00:00:00+00:00"
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
_METRIC = "accuracy"
_LEVEL = 0.95
JudgeFigure: TypeAlias = "tuple[float | None, float | None, float | None, str]"
"""Value, lower and upper end of its 95% interval, and why one is missing."""
_TIE = "tie"


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """One case as it goes into the log.

    `judge` names the scorer. `expected` is the right answer and becomes the target; `score` and
    `reasoning` are the judge's: a verdict without a score is a tie of its repeats. `detail` says
    what went wrong where `outcome` is one of `models.UNSCORED`. `metadata` is shown beside the
    case: rubric, test, run, edits.
    """

    case_id: str
    judge: str
    input: str
    messages: Sequence[Message]
    outcome: str
    expected: int | None = None
    score: int | None = None
    reasoning: str = ""
    detail: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


def write_judged_log(
    path: Path,
    cases: Iterable[JudgedSample],
    *,
    task: str = "judge_reliability",
    model: str = "none",
    created: str = _FIRST_DAY,
    metadata: Mapping[str, Any] | None = None,
    redactor: Redactor | None = None,
    figures: Mapping[str, Mapping[str, JudgeFigure]] | None = None,
) -> int:
    """Write an Inspect log with one sample per case, in the order given; returns how many there
    are.

    `cases` is read once, and one transcript at a time is in memory. The same cases give the same
    bytes. `figures` are those of each judge by its name. `created` is an ISO 8601 time; `model` is
    what Inspect lists the log under: the judge's.
    Raises `InputError` where the file cannot be written, and `ValueError` for two cases with one
    id; a file that was there before is then still there.
    """
    try:
        with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            log = _Log(archive, redactor)
            known = {_scorer(judge): own for judge, own in (figures or {}).items()}
            for case in cases:
                log.add(case)
            log.finish(
                _header(
                    [_eval_score(name, judge, known) for name, judge in log.judges.items()],
                    log.ids,
                    log.digest(),
                    (task, model, created),
                    metadata or {},
                    errors=sum(judge.errors for judge in log.judges.values()),
                )
            )
            return len(log.ids)
    except OSError as error:
        raise InputError(
            Problem(f"this log cannot be written: {error.strerror or error}", str(path))
        ) from error


@dataclass(slots=True)
class _Judge:
    """What the header says of one judge."""

    agree: int = 0
    scored: int = 0
    unscored: int = 0
    errors: int = 0


class _Log:
    """An archive in the making: samples go in as they come, summaries and header at the end."""

    def __init__(self, archive: zipfile.ZipFile, redactor: Redactor | None) -> None:
        self._archive = archive
        self._redactor = redactor
        self._hash = hashlib.sha256()
        self._summaries: list[dict[str, Any]] = []
        self.ids: dict[str, None] = {}
        self.judges: dict[str, _Judge] = {}

    def add(self, case: JudgedSample) -> None:
        """Write the sample of a case."""
        sample = _sample(case)
        name = str(sample.id)
        if name in self.ids:
            raise ValueError(f"two cases have the id {name!r}")
        self.ids[name] = None
        judge = self.judges.setdefault(_scorer(case.judge), _Judge())
        judge.scored += sample.scores is not None
        judge.unscored += sample.scores is None
        judge.errors += sample.error is not None
        judge.agree += case.score is not None and case.score == case.expected
        self._summaries.append(_plain(sample.summary()))
        self._write(f"samples/{name}_epoch_{_EPOCH}.json", _plain(sample))

    def digest(self) -> str:
        """Name what was written so far, so that a log has an id without a random one."""
        return self._hash.hexdigest()[:22]

    def finish(self, header: EvalLog) -> None:
        """Write what readers look at first."""
        whole = _plain(header)
        self._write(
            "_journal/start.json", {name: whole[name] for name in ("version", "eval", "plan")}
        )
        self._write("summaries.json", self._summaries)
        self._write("header.json", whole)

    def _write(self, name: str, value: Any) -> None:
        if self._redactor is not None:
            name, value = self._redactor.text(name), self._redactor.value(value)
        data = encoded(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        self._hash.update(data)
        info = zipfile.ZipInfo(name, _ZIP_DATE)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = 0o644 << 16
        self._archive.writestr(info, data)


def _plain(model: BaseModel) -> Any:
    return model.model_dump(mode="json", exclude_none=True)


def _scorer(judge: str) -> str:
    return str(storable(judge)[0]) or "judge"


def _sample(case: JudgedSample) -> EvalSample:
    from inspect_ai.log import EvalError, EvalSample
    from inspect_ai.scorer import Score

    stored: dict[str, Any] = {
        "id": case.case_id,
        "input": case.input,
        "reasoning": case.reasoning,
        "detail": case.detail,
        "metadata": {**case.metadata, "outcome": case.outcome},
        "messages": [dict(message) for message in case.messages],
    }
    clean, _ = storable(stored)
    scores = None
    if case.outcome in JUDGED:
        about = {"outcome": case.outcome, "expected": case.expected}
        # As text it is no number, and so wrong to all of Inspect's metrics, as it is here.
        value = _TIE if case.score is None else case.score
        score = Score(
            value=value, answer=str(value), explanation=clean["reasoning"], metadata=about
        )
        scores = {_scorer(case.judge): score}
    error = None
    if case.outcome in UNSCORED:
        error = EvalError(message=clean["detail"] or case.outcome, traceback="", traceback_ansi="")
    return EvalSample(
        id=clean["id"],
        epoch=_EPOCH,
        input=clean["input"],
        target="" if case.expected is None else str(case.expected),
        messages=_messages(clean["messages"]),
        scores=scores,
        metadata=clean["metadata"],
        error=error,
    )


def _messages(messages: Sequence[Message]) -> list[Any]:
    """Make Inspect's messages of JSON ones.

    What a preprocessor has made unreadable for Inspect goes in as text.
    """
    from pydantic import ValidationError

    try:
        return _read(messages)
    except ValidationError:
        return [made for message in messages for made in _read_or_render(message)]


def _read_or_render(message: Message) -> list[Any]:
    from pydantic import ValidationError

    try:
        return _read([message])
    except ValidationError:
        return _read([_as_text(message)])


def _read(messages: Sequence[Message]) -> list[Any]:
    from inspect_ai.log import EvalSample

    shell = {"id": 0, "epoch": _EPOCH, "input": "", "target": "", "messages": list(messages)}
    # The context of Inspect's own readers: a message without an id is not given a random one.
    return list(EvalSample.model_validate(shell, context={"deserializing": True}).messages)


def _as_text(message: Message) -> dict[str, str]:
    role = message.get("role")
    return {"role": role if role in ROLES else "user", "content": render_transcript([message])}


def _header(
    scores: list[EvalScore],
    ids: Iterable[str],
    digest: str,
    named: tuple[str, str, str],
    metadata: Mapping[str, Any],
    *,
    errors: int,
) -> EvalLog:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalResults, EvalSpec, EvalStats

    task, model, created = named
    names = list(ids)
    spec = EvalSpec(
        eval_id=digest,
        run_id=digest,
        task_id=hashlib.sha256(encoded(task)).hexdigest()[:22],
        created=created,
        task=str(storable(task)[0]),
        dataset=EvalDataset(
            name=str(storable(task)[0]), samples=len(names), sample_ids=names, shuffled=False
        ),
        model=str(storable(model)[0]),
        config=EvalConfig(epochs=1),
        metadata=dict(storable(dict(metadata))[0]) or None,
    )
    return EvalLog(
        status="success",
        eval=spec,
        results=EvalResults(
            total_samples=len(names),
            completed_samples=len(names) - errors,
            scores=scores,
        ),
        stats=EvalStats(started_at=created, completed_at=created),
    )


def _eval_score(
    name: str, judge: _Judge, figures: Mapping[str, Mapping[str, JudgeFigure]]
) -> EvalScore:
    from inspect_ai.log import EvalMetric, EvalScore

    share = judge.agree / judge.scored if judge.scored else None
    own = {_METRIC: (share, None, None, ""), **figures.get(name, {})}
    # Inspect knows no metric without a value.
    metrics = {
        figure: EvalMetric(name=figure, value=value, metadata=_interval(lower, upper, reason))
        for figure, (value, lower, upper, reason) in own.items()
        if value is not None
    }
    missing = {figure: reason for figure, (value, _, _, reason) in own.items() if value is None}
    return EvalScore(
        name=name,
        scorer=name,
        scored_samples=judge.scored,
        unscored_samples=judge.unscored,
        metrics=metrics,
        metadata={"missing": missing} if missing and judge.scored else None,
    )


def _interval(lower: float | None, upper: float | None, reason: str) -> dict[str, Any] | None:
    if lower is None or upper is None:
        return {"interval_reason": reason} if reason else None
    return {"lower": lower, "upper": upper, "level": _LEVEL}
