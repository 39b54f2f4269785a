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
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh.cases.ids import case_title, short_digest
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.files import encoded, file_name_part, replacing
from pytest_jrh.core.model import JUDGED, UNSCORED, Message, Usage
from pytest_jrh.core.transcript import ROLES, render_transcript, storable
from pytest_jrh.reports.grounds import label_figures, label_sentences
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.session import scales
from pytest_jrh.reports.topics import extent_sentences
from pytest_jrh.stats.diagnosis import named_figures, section_warnings
from pytest_jrh.stats.figures import sections
from pytest_jrh.stats.formulas import Estimate
from pytest_jrh.stats.intervals import LEVEL
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.stats.statistics import describe
from pytest_jrh.store.records import perturbation_data

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample, EvalScore
    from inspect_ai.model import ModelUsage
    from pydantic import BaseModel

    from pytest_jrh.core.model import Case, CaseResult, Edit
    from pytest_jrh.core.redact import Redactor
    from pytest_jrh.reports.session import Session
    from pytest_jrh.store.spools import ReadCase


class InspectLog(Report):
    """The cases with their verdicts as scores, to be opened in Inspect View."""

    name = "Inspect log"
    option = "eval_log"

    def write(self, path: Path, session: Session) -> None:
        suites = list(dict.fromkeys(result.spec.suite for result in session.results))
        with session.records.reading() as read:
            write_judged_log(
                path,
                judged_cases(session.results, read),
                task="_".join(suites) if len(suites) == 1 else "judge_reliability",
                model=session.model,
                times=_times(session.wall_seconds),
                metadata=_session_metadata(suites, session),
                figures=judges_figures(session),
                redactor=session.redactor,
            )


def _session_metadata(suites: list[str], session: Session) -> dict[str, Any]:
    """What the log says of the session as a whole; no warnings where there are none."""
    metadata: dict[str, Any] = {
        "suites": suites,
        "remarks": extent_sentences(session),
        "labels": label_sentences(session),
    }
    if session.origin.suites:
        metadata["provenance"] = asdict(session.origin)
    warnings = {}
    for section in sections(session.table):
        if sentences := section_warnings(section):
            warnings[section.label] = sentences
    if warnings:
        metadata["warnings"] = warnings
    return metadata


def judges_figures(session: Session) -> dict[str, dict[str, Estimate]]:
    """By judge, its figures over all suites of the log, as the tables have them; in a log of one
    suite also those against people, and of natural beside synthetic cases.

    A judge of suites in both modes has the accuracy alone: the other figures are of one mode.
    Inspect's metrics are a scorer's, so that those of a panel's verifier are in the sentences of
    the log's metadata alone.
    """
    by_judge: dict[str, list[CaseResult]] = {}
    for result in session.results:
        by_judge.setdefault(result.judge, []).append(result)
    figures: dict[str, dict[str, Estimate]] = {}
    for judge, results in by_judge.items():
        statistics = describe(results, scales(session.rubrics))
        named = named_figures(statistics, statistics.mode)
        if len(statistics.matrices) > 1:
            named = named_figures(statistics, "binary")[:1]
        figures[judge] = {
            _METRIC if figure.name == "exact" else figure.name: figure for figure in named
        }
    if len(session.grounds) == 1:
        [grounds] = session.grounds.values()
        for judge, rubric, figure in label_figures(session.results, grounds):
            if not rubric and judge in figures:
                figures[judge][figure.name] = figure
    return figures


def judged_cases(
    results: Iterable[CaseResult], read: ReadCase
) -> Iterator[tuple[CaseResult, Case | None]]:
    """Every case that was to be judged, with its record where there is one, read one at a time:
    neither those that were made only, nor those of probes, which have no record.
    """
    for result in results:
        if not result.spec.derived and result.outcome in (*JUDGED, *UNSCORED, "no_case"):
            yield result, read(made_case_id(result))


def _times(seconds: float) -> tuple[str, str]:
    """When a session that ends now, or at `SOURCE_DATE_EPOCH`, began and ended, in ISO 8601."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.now(UTC)
    if epoch.isdecimal():
        now = datetime.fromtimestamp(int(epoch), UTC)
    began = now - timedelta(seconds=seconds)
    return began.isoformat(timespec="seconds"), now.isoformat(timespec="seconds")


def _case_metadata(result: CaseResult, case: Case | None) -> dict[str, Any]:
    """What is shown beside a case: rubric, test, run, edits."""
    spec = result.spec
    metadata: dict[str, Any] = {
        "case": result.case_id,
        "title": case_title(result),
        "suite": spec.suite,
        "test": spec.test,
        "rubric": spec.rubric_id,
        "run": spec.run_id,
        "run_epoch": spec.epoch,
        "target_score": spec.target_score,
        "label_verified": result.verified,
    }
    if result.repeated:
        metadata["scores"] = list(result.scores)
        metadata["flickers"] = result.flickers
    if result.minority is not None:
        metadata["minority_score"] = result.minority.score
        metadata["minority_reasoning"] = result.minority.reasoning
    if case is not None:
        metadata["rubric_instructions"] = case.rubric.instructions
        metadata["plan"] = perturbation_data(case)["plan"]
        metadata["edits"] = list(map(_edit, case.outcome.edits))
    metadata["outcome"] = result.outcome
    return {name: value for name, value in metadata.items() if value is not None}


def _edit(edit: Edit) -> dict[str, Any]:
    described = {
        "message_index": edit.message_index,
        "before": edit.original_content,
        "after": edit.edited_content,
    }
    if edit.kind != "say":
        described["kind"] = edit.kind
    if edit.follows:
        described["follows"] = edit.follows
    return described


EPOCH = 1
_TIE = "tie"
_LONGEST_PART = 64
_ID_DIGITS = 6
_ALL_MODELS = "making and judging"


def scorer_name(judge: str) -> str:
    """What the log calls a judge."""
    return str(storable(judge)[0]) or "judge"


def eval_sample(result: CaseResult, case: Case | None, name: str) -> EvalSample:
    """The sample of a case, under this id."""
    from inspect_ai.log import EvalError, EvalSample
    from inspect_ai.scorer import CORRECT, INCORRECT, Score

    is_case = result.outcome != "no_case"
    stored: dict[str, Any] = {
        "input": case.run.input if case is not None else "",
        "reasoning": result.reasoning,
        "detail": result.detail,
        "metadata": _case_metadata(result, case),
        "messages": [dict(message) for message in case.messages] if case is not None else [],
    }
    clean, _ = storable(stored)
    if not is_case:
        clean["metadata"]["reason"] = clean["detail"]
        # There is no transcript to begin with: the reason is what a list can show.
        clean["input"] = clean["input"] or clean["detail"]
    scores = None
    if result.outcome in JUDGED:
        score = Score(
            value=CORRECT if _is_right(result) else INCORRECT,
            answer=_TIE if result.score is None else str(result.score),
            explanation=clean["reasoning"],
            metadata={
                "outcome": result.outcome,
                "expected": result.expected,
                "score": result.score,
            },
        )
        scores = {scorer_name(result.judge): score}
    error = None
    if result.outcome in UNSCORED:
        message = clean["detail"] or result.outcome
        error = EvalError(message=message, traceback="", traceback_ansi="")
    return EvalSample(
        id=name,
        epoch=EPOCH,
        input=clean["input"],
        target="" if result.expected is None else str(result.expected),
        messages=_messages(clean["messages"]),
        scores=scores,
        metadata=clean["metadata"],
        model_usage=model_usage(result.spending.usage),
        error=error,
    )


def _is_right(result: CaseResult) -> bool:
    return result.score is not None and result.score == result.expected


def sample_ids(result: CaseResult, redactor: Redactor | None = None) -> Iterator[str]:
    """The id of a case, `RUBRIC/RUN/TEST` and so on, then a longer one where that is taken."""
    spec = result.spec
    parts = [spec.rubric_id, spec.run_id or "case", spec.test]
    if spec.epoch != 1:
        parts.append(f"epoch_{spec.epoch}")
    if spec.target_score is not None:
        parts.append(f"score_{spec.target_score}")
    if spec.judge is not None:
        parts.append(spec.judge)
    name = "/".join(_id_part(part, redactor) for part in parts)
    yield name
    yield f"{name}/{hashlib.sha256(encoded(result.case_id)).hexdigest()}"


def _id_part(text: str, redactor: Redactor | None) -> str:
    """A part of an id, cut to what Inspect can look up, with digits where it was changed."""
    shown = text if redactor is None else redactor.text(text)
    # Inspect names a file `ID_epoch_1.json`, and takes its id from there.
    part = file_name_part(shown)[:_LONGEST_PART].replace("_epoch_", "-epoch-")
    return part if part == text else f"{part}~{short_digest(text, _ID_DIGITS)}"


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
    """Make Inspect's messages of JSON ones, and text of what Inspect cannot read."""
    from pydantic import ValidationError

    try:
        return _read(messages)
    except ValidationError:
        if len(messages) == 1:
            return _read([_as_text(messages[0])])
    readable: list[Any] = []
    for message in messages:
        readable += _messages([message])
    return readable


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


def write_judged_log(
    path: Path,
    cases: Iterable[tuple[CaseResult, Case | None]],
    *,
    task: str = "judge_reliability",
    model: str = "none",
    times: tuple[str, str] = (_FIRST_DAY, _FIRST_DAY),
    metadata: Mapping[str, Any] | None = None,
    redactor: Redactor | None = None,
    figures: Mapping[str, Mapping[str, Estimate]] | None = None,
) -> int:
    """Write an Inspect log with one sample per result, in the order given; returns how many there
    are.

    `cases` are results with the cases that were made. They are read once, and one transcript at a
    time is in memory. The same cases give the same bytes. `figures` are those of each judge by its
    name. `times` are when the session began and ended, in ISO 8601; `model` is what Inspect lists
    the log under: the judge's. A verdict is `C` or `I` there, right or wrong, with what the judge
    gave as its answer.
    Raises `InputError` where the file cannot be written, and `ValueError` for two results with one
    id; a file that was there before is then still there.
    """
    try:
        with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            log = _Log(archive, redactor)
            for result, case in cases:
                log.add(result, case)
            header = log.header(
                str(storable(task)[0]),
                str(storable(model)[0]),
                times,
                dict(storable(dict(metadata or {}))[0]),
                {scorer_name(judge): of_judge for judge, of_judge in (figures or {}).items()},
            )
            log.finish(header)
            return len(log.ids)
    except OSError as error:
        raise InputError(
            Problem(f"this log cannot be written: {error.strerror or error}", str(path))
        ) from error


@dataclass(slots=True)
class _Judge:
    """How many cases of one judge are judged right, have a score, and have none."""

    agree: int = 0
    scored: int = 0
    unscored: int = 0


class _Log:
    """An archive in the making: samples go in as they come, summaries and header at the end."""

    def __init__(self, archive: zipfile.ZipFile, redactor: Redactor | None) -> None:
        self._archive = archive
        self._redactor = redactor
        self._hash = hashlib.sha256()
        self._summaries: list[dict[str, Any]] = []
        self._cases: set[str] = set()
        self._judges: dict[str, _Judge] = {}
        self._errors = 0
        self._usage = Usage()
        self.ids: dict[str, None] = {}

    def add(self, result: CaseResult, case: Case | None) -> None:
        """Write the sample of a case."""
        if result.case_id in self._cases:
            raise ValueError(f"two cases have the id {result.case_id!r}")
        self._cases.add(result.case_id)
        ids = sample_ids(result, self._redactor)
        name = next(sample_id for sample_id in ids if sample_id not in self.ids)
        self.ids[name] = None
        sample = eval_sample(result, case, name)
        self._usage += result.spending.usage
        self._errors += sample.error is not None
        judge = self._judges.setdefault(scorer_name(result.judge), _Judge())
        judge.scored += sample.scores is not None
        judge.unscored += sample.scores is None
        judge.agree += _is_right(result)
        self._summaries.append(_plain(sample.summary()))
        self._write(f"samples/{name}_epoch_{EPOCH}.json", _plain(sample))

    def finish(self, log: EvalLog) -> None:
        """Write what readers look at first."""
        header = _plain(log)
        start = {name: header[name] for name in ("version", "eval", "plan")}
        self._write("_journal/start.json", start)
        self._write("summaries.json", self._summaries)
        self._write("header.json", header)

    def header(
        self,
        task: str,
        model: str,
        times: tuple[str, str],
        metadata: dict[str, Any],
        figures: Mapping[str, Mapping[str, Estimate]],
    ) -> EvalLog:
        """What the log says of the session and its samples, once all are written."""
        from inspect_ai.log import (
            EvalConfig,
            EvalDataset,
            EvalLog,
            EvalResults,
            EvalSpec,
            EvalStats,
        )

        # Named after what was written so far, so that a log has an id without a random one.
        digest = self._hash.hexdigest()[:22]
        ids = list(self.ids)
        started, ended = times
        scores = []
        for name, judge in self._judges.items():
            scores.append(_eval_score(name, judge, figures.get(name, {})))
        return EvalLog(
            status="success",
            eval=EvalSpec(
                eval_id=digest,
                run_id=digest,
                task_id=hashlib.sha256(encoded(task)).hexdigest()[:22],
                created=started,
                task=task,
                dataset=EvalDataset(
                    name=task, samples=len(ids), sample_ids=list(ids), shuffled=False
                ),
                model=model,
                config=EvalConfig(epochs=1),
                metadata=metadata or None,
            ),
            results=EvalResults(
                total_samples=len(ids),
                completed_samples=len(ids) - self._errors,
                scores=scores,
            ),
            stats=EvalStats(
                started_at=started, completed_at=ended, model_usage=model_usage(self._usage)
            ),
        )

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


def _eval_score(name: str, judge: _Judge, figures: Mapping[str, Estimate]) -> EvalScore:
    from inspect_ai.log import EvalMetric, EvalScore

    share = judge.agree / judge.scored if judge.scored else None
    metrics, missing = {}, {}
    for title, figure in {_METRIC: Estimate(share), **figures}.items():
        # Inspect knows no metric without a value.
        if figure.value is None:
            missing[title] = figure.why
        else:
            metadata = _interval(figure)
            metrics[title] = EvalMetric(name=title, value=figure.value, metadata=metadata)
    return EvalScore(
        name=name,
        scorer=name,
        scored_samples=judge.scored,
        unscored_samples=judge.unscored,
        metrics=metrics,
        metadata={"missing": missing} if missing and judge.scored else None,
    )


def _interval(figure: Estimate) -> dict[str, Any] | None:
    if figure.lower is None or figure.upper is None:
        return {"interval_reason": figure.why} if figure.why else None
    return {"lower": figure.lower, "upper": figure.upper, "level": LEVEL}
