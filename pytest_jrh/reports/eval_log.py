"""The judged cases as an Inspect log (`--jrh-eval-log`), for `inspect view` and everything else
that reads such logs.

The archive is put together here, one sample at a time, from Inspect's own models: its writer wants
every sample in memory, and stamps what it writes with random ids and the time of day.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.files import encoded, file_name_part, replacing
from pytest_jrh.core.model import JUDGED, UNSCORED, Message, Usage
from pytest_jrh.core.transcript import ROLES, render_transcript, storable
from pytest_jrh.reports.grounds import label_figures, label_sentences
from pytest_jrh.reports.provenance import whole_data
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.session import scales
from pytest_jrh.reports.topics import extent_sentences
from pytest_jrh.stats.diagnosis import named_figures, section_warnings
from pytest_jrh.stats.figures import sections
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.stats.statistics import describe
from pytest_jrh.store.records import perturbation_data

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample, EvalScore
    from inspect_ai.model import ModelUsage
    from pydantic import BaseModel

    from pytest_jrh.core.model import Case, CaseResult
    from pytest_jrh.core.redact import Redactor
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.statistics import Scales
    from pytest_jrh.store.spools import ReadCase


class InspectLog(Report):
    """The cases with their verdicts as scores, to be opened in Inspect View."""

    name = "Inspect log"
    option = "eval_log"

    def write(self, path: Path, session: Session) -> None:
        results = session.results
        suites = list(dict.fromkeys(result.spec.suite for result in results))
        with session.records.reading() as read:
            write_judged_log(
                path,
                judged_cases(results, read),
                task="_".join(suites) if len(suites) == 1 else "judge_reliability",
                model=session.model,
                times=_times(session.wall_seconds),
                metadata=_metadata(suites, session),
                figures=_with_labels(judges_figures(results, scales(session.rubrics)), session),
                redactor=session.redactor,
            )


def _metadata(suites: list[str], session: Session) -> dict[str, Any]:
    """What the log says of the session as a whole; no warnings where there are none."""
    metadata: dict[str, Any] = {
        "suites": suites,
        "remarks": extent_sentences(session),
        "labels": label_sentences(session),
    }
    if session.origin.suites:
        metadata["provenance"] = whole_data(session.origin)
    warnings = {}
    for section in sections(session.table):
        if found := section_warnings(section):
            warnings[section.label] = found
    return metadata | ({"warnings": warnings} if warnings else {})


def _with_labels(
    figures: dict[str, dict[str, JudgeFigure]], session: Session
) -> dict[str, dict[str, JudgeFigure]]:
    """The figures with those against people, and of natural beside synthetic cases, of a log of one
    suite.

    Inspect's metrics are a scorer's, so that those of a panel's verifier are in the sentences of
    the log's metadata alone.
    """
    if len(session.grounds) != 1:
        return figures
    [grounds] = session.grounds.values()
    for judge, rubric, figure in label_figures(session.results, grounds):
        if not rubric and judge in figures:
            values = (figure.value, figure.lower, figure.upper, figure.why)
            figures[judge][figure.name] = values
    return figures


def judges_figures(
    results: Iterable[CaseResult], scores: Scales
) -> dict[str, dict[str, JudgeFigure]]:
    """By judge, its figures over all suites of the log, as the tables have them.

    A judge of suites in both modes has the accuracy alone: the other figures are of one mode.
    """
    judges: dict[str, list[CaseResult]] = {}
    for result in results:
        judges.setdefault(result.judge, []).append(result)
    found: dict[str, dict[str, JudgeFigure]] = {}
    for judge, own in judges.items():
        statistics = describe(own, scores)
        figures = named_figures(statistics, statistics.mode)
        if len(statistics.matrices) > 1:
            figures = named_figures(statistics, "binary")[:1]
        found[judge] = {
            "accuracy" if figure.name == "exact" else figure.name: (
                figure.value,
                figure.lower,
                figure.upper,
                figure.why,
            )
            for figure in figures
        }
    return found


def judged_cases(results: Iterable[CaseResult], read: ReadCase) -> Iterator[JudgedSample]:
    """Yield every case that was to be judged, with its transcript where there is a record of it.

    One record at a time is read. What was made only is no part of such a log, nor is a probe's
    case, of which there is no record.
    """
    for result in results:
        if result.spec.derived:
            continue
        if result.outcome in JUDGED or result.outcome in (*UNSCORED, "no_case"):
            yield _case(result, read(made_case_id(result)))


def _case(result: CaseResult, case: Case | None) -> JudgedSample:
    return JudgedSample(
        case_id=result.case_id,
        judge=result.judge,
        input="" if case is None else case.run.input,
        messages=() if case is None else case.messages,
        outcome=result.outcome,
        expected=result.expected,
        score=result.score,
        reasoning=result.reasoning,
        detail=result.detail,
        metadata=_about(result, case),
        name=result.spec.run_id,
        usage=result.spending.usage,
    )


def _times(seconds: float) -> tuple[str, str]:
    """When a session that ends now began and ended.

    `SOURCE_DATE_EPOCH` is taken for now where it is set, as by builds that are to be repeated.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(given), UTC) if given.isdecimal() else datetime.now(UTC)
    began = now - timedelta(seconds=seconds)
    return began.isoformat(timespec="seconds"), now.isoformat(timespec="seconds")


def _about(result: CaseResult, case: Case | None) -> dict[str, Any]:
    about: dict[str, Any] = {
        "suite": result.spec.suite,
        "test": result.spec.test,
        "rubric": result.spec.rubric_id,
        "run": result.spec.run_id,
        "run_epoch": result.spec.epoch,
        "target_score": result.spec.target_score,
        "label_verified": result.verified,
    }
    if result.repeated:
        about["scores"] = list(result.scores)
        about["flickers"] = result.flickers
    if result.minority is not None:
        about["minority_score"] = result.minority.score
        about["minority_reasoning"] = result.minority.reasoning
    if case is not None:
        about["rubric_instructions"] = case.rubric.instructions
        about["plan"] = perturbation_data(case)["plan"]
        about["edits"] = [
            {
                "message_index": edit.message_index,
                "before": edit.original_content,
                "after": edit.edited_content,
            }
            for edit in case.outcome.edits
        ]
    return {name: value for name, value in about.items() if value is not None}


EPOCH = 1
_TIE = "tie"
# What Inspect View's column of ids has room for.
_ID_NAME = 13
_ID_DIGITS = 6
_ALL_MODELS = "making and judging"


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """One case as it goes into the log.

    `name` opens the sample's id, which ends in a digest of `case_id`. `judge` names the scorer.
    `expected` is the right answer and becomes the target; `score` and `reasoning` are the judge's:
    a verdict without a score is a tie of its repeats. `detail` says what went wrong where `outcome`
    is one of `model.UNSCORED`, and why there is no case where it is `no_case`. `metadata` is shown
    beside the case: rubric, test, run, edits. `usage` are the tokens of making and judging it.
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
    name: str = ""
    usage: Usage = Usage()


def scorer_name(judge: str) -> str:
    """What the log calls a judge."""
    return str(storable(judge)[0]) or "judge"


def eval_sample(case: JudgedSample, name: str) -> EvalSample:
    """The sample of a case, under this id."""
    from inspect_ai.log import EvalError, EvalSample
    from inspect_ai.scorer import CORRECT, INCORRECT, Score

    stored: dict[str, Any] = {
        # There is no transcript to begin with: the reason is what a list can show.
        "input": case.input or (case.detail if case.outcome == "no_case" else ""),
        "reasoning": case.reasoning,
        "detail": case.detail,
        "metadata": {"case": case.case_id, **case.metadata, "outcome": case.outcome},
        "messages": [dict(message) for message in case.messages],
    }
    clean, _ = storable(stored)
    if case.outcome == "no_case":
        clean["metadata"]["reason"] = clean["detail"]
    scores = None
    if case.outcome in JUDGED:
        about = {"outcome": case.outcome, "expected": case.expected, "score": case.score}
        right = case.score is not None and case.score == case.expected
        score = Score(
            value=CORRECT if right else INCORRECT,
            answer=_TIE if case.score is None else str(case.score),
            explanation=clean["reasoning"],
            metadata=about,
        )
        scores = {scorer_name(case.judge): score}
    error = None
    if case.outcome in UNSCORED:
        error = EvalError(message=clean["detail"] or case.outcome, traceback="", traceback_ansi="")
    return EvalSample(
        id=name,
        epoch=EPOCH,
        input=clean["input"],
        target="" if case.expected is None else str(case.expected),
        messages=_messages(clean["messages"]),
        scores=scores,
        metadata=clean["metadata"],
        model_usage=model_usage(case.usage),
        error=error,
    )


def sample_ids(case: JudgedSample) -> Iterator[str]:
    """Ids that tell cases apart in a narrow column; a longer one where the short one is taken."""
    digest = hashlib.sha256(encoded(case.case_id)).hexdigest()
    name = file_name_part(case.name)[:_ID_NAME] if case.name else "case"
    yield f"{name}-{digest[:_ID_DIGITS]}"
    yield f"{name}-{digest}"


def model_usage(usage: Usage) -> dict[str, ModelUsage]:
    """Tokens as Inspect shows them, of all models together."""
    from inspect_ai.model import ModelUsage

    if not usage.total:
        return {}
    counted = ModelUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total,
    )
    return {_ALL_MODELS: counted}


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

    shell = {"id": 0, "epoch": EPOCH, "input": "", "target": "", "messages": list(messages)}
    # The context of Inspect's own readers: a message without an id is not given a random one.
    return list(EvalSample.model_validate(shell, context={"deserializing": True}).messages)


def _as_text(message: Message) -> dict[str, str]:
    role = message.get("role")
    return {"role": role if role in ROLES else "user", "content": render_transcript([message])}


_FIRST_DAY = "1970-01-01T00:00:00+00:00"
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
_METRIC = "accuracy"
_LEVEL = 0.95
JudgeFigure: TypeAlias = "tuple[float | None, float | None, float | None, str]"
"""Value, lower and upper end of its 95% interval, and why one is missing."""


def write_judged_log(
    path: Path,
    cases: Iterable[JudgedSample],
    *,
    task: str = "judge_reliability",
    model: str = "none",
    times: tuple[str, str] = (_FIRST_DAY, _FIRST_DAY),
    metadata: Mapping[str, Any] | None = None,
    redactor: Redactor | None = None,
    figures: Mapping[str, Mapping[str, JudgeFigure]] | None = None,
) -> int:
    """Write an Inspect log with one sample per case, in the order given; returns how many there
    are.

    `cases` is read once, and one transcript at a time is in memory. The same cases give the same
    bytes. `figures` are those of each judge by its name. `times` are when the session began and
    ended, in ISO 8601; `model` is what Inspect lists the log under: the judge's. A verdict is `C`
    or `I` there, right or wrong, with what the judge gave as its answer.
    Raises `InputError` where the file cannot be written, and `ValueError` for two cases with one
    id; a file that was there before is then still there.
    """
    try:
        with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            log = _Log(archive, redactor)
            known = {scorer_name(judge): own for judge, own in (figures or {}).items()}
            for case in cases:
                log.add(case)
            log.finish(
                _header(
                    [_eval_score(name, judge, known) for name, judge in log.judges.items()],
                    log.ids,
                    log.digest(),
                    (task, model),
                    times,
                    metadata or {},
                    errors=sum(judge.errors for judge in log.judges.values()),
                    usage=log.usage,
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
        self._cases: set[str] = set()
        self.ids: dict[str, None] = {}
        self.judges: dict[str, _Judge] = {}
        self.usage = Usage()

    def add(self, case: JudgedSample) -> None:
        """Write the sample of a case."""
        if case.case_id in self._cases:
            raise ValueError(f"two cases have the id {case.case_id!r}")
        self._cases.add(case.case_id)
        name = next(each for each in sample_ids(case) if each not in self.ids)
        self.ids[name] = None
        sample = eval_sample(case, name)
        self.usage += case.usage
        judge = self.judges.setdefault(scorer_name(case.judge), _Judge())
        judge.scored += sample.scores is not None
        judge.unscored += sample.scores is None
        judge.errors += sample.error is not None
        judge.agree += case.score is not None and case.score == case.expected
        self._summaries.append(_plain(sample.summary()))
        self._write(f"samples/{name}_epoch_{EPOCH}.json", _plain(sample))

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


def _header(
    scores: list[EvalScore],
    ids: Iterable[str],
    digest: str,
    named: tuple[str, str],
    times: tuple[str, str],
    metadata: Mapping[str, Any],
    *,
    errors: int,
    usage: Usage,
) -> EvalLog:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalResults, EvalSpec, EvalStats

    (task, model), (started, ended) = named, times
    names = list(ids)
    spec = EvalSpec(
        eval_id=digest,
        run_id=digest,
        task_id=hashlib.sha256(encoded(task)).hexdigest()[:22],
        created=started,
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
        stats=EvalStats(started_at=started, completed_at=ended, model_usage=model_usage(usage)),
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
