"""The ledger of a suite, `results.jsonl`: one line for each case and judge, as sessions append it,
later ones and merges read it, and results travel between processes.

What is empty is left out of a line, and nothing is in it that follows from the rest. Whether a
verdict is right, the score of several repeats and what reports call the outcome are computed where
a line is read, so that no line contradicts itself.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_jrh.core.documents import misfit
from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, Problem
from pytest_jrh.core.files import encoded, lines_of
from pytest_jrh.core.ids import LEDGER_FILE
from pytest_jrh.core.model import (
    SKIPS,
    UNSCORED,
    CaseResult,
    CaseSpec,
    HumanReview,
    Judgment,
    LabelledBy,
    Outcome,
    Rejection,
    SharedCall,
    ShownTurns,
    SkipKind,
    Spending,
    Usage,
    Verdict,
    most_frequent,
)
from pytest_jrh.sources.tables import LEDGER_FORMAT
from pytest_jrh.store.records import record_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import IO

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.redact import Redactor


_AGAIN = "Run the shard again; a truncated or edited file is not used."
_NO_CASE = "no_case"


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)


class _Why(_Part):
    """Why there is no verdict, or of a wrong one the explanation, which has no kind."""

    kind: Literal["", SkipKind, Outcome] = ""
    text: str = ""


class _Spending(_Part):
    """What a case took in `all`, of that its judge, and what other cases have of it too."""

    all: Spending = Spending()
    judge: Spending | None = None
    shared: SharedCall | None = None


class _Probe(_Part):
    """Which variant changes a case of which test, and what the judge gave to that case."""

    base: str
    variant: str
    base_scores: tuple[int, ...] = ()


class _Extra(_Part):
    """What features keep of a case, each under its own name."""

    model_config = ConfigDict(extra="ignore")

    altered: bool = False
    config: str = ""
    content: str = ""
    edit: str = ""
    kept: bool = False
    probe: _Probe | None = None
    rejected: Rejection | None = None
    review: HumanReview = ""
    reworded: bool = False
    shown: ShownTurns | None = None


class _Line(_Part):
    format: Literal[2]
    case_id: str
    suite: str = ""
    test: str = ""
    rubric_id: str = ""
    run_id: str = ""
    epoch: int = 0
    cluster: str | None = None
    target: int | None = None
    label: int | None = None
    labelled_by: Literal[LabelledBy, "made", "unconfirmed"] | None = None
    case_digest: str = ""
    judge: str = ""
    judge_digest: str = ""
    scores: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()
    why: _Why = _Why.model_construct()
    spending: _Spending = _Spending.model_construct()
    extra: _Extra = Field(default_factory=_Extra)

    @property
    def outcome(self) -> Outcome:
        """What the case came to: why there is no verdict says it, else the verdicts do."""
        kind = self.why.kind
        if kind == _NO_CASE or kind in SKIPS:
            return "no_case"
        if kind in UNSCORED:
            return kind  # type: ignore[return-value]
        if not self.scores:
            return "generated"
        if self.label is None:
            return "unlabelled"
        return "agree" if most_frequent(self.scores) == self.label else "disagree"

    def result(self) -> CaseResult:
        """The result that the line is."""
        extra, probe, outcome = self.extra, self.extra.probe, self.outcome
        spec = CaseSpec(
            self.suite,
            self.test,
            self.rubric_id,
            self.run_id,
            self.epoch,
            self.target,
            judge=self.judge or None,
            cluster=self.cluster,
            base="" if probe is None else probe.base,
            variant="" if probe is None else probe.variant,
        )
        verdicts = tuple(map(Verdict, self.scores, self.reasons))
        # Of a case without a verdict they are those before the repeat that failed.
        judgment = Judgment(verdicts) if verdicts and outcome not in UNSCORED else None
        by, kind = self.labelled_by, self.why.kind
        is_verified = by != "unconfirmed" and not extra.altered
        return CaseResult(
            spec,
            self.case_id,
            outcome,
            expected=self.label,
            score=judgment.score if judgment else None,
            reasoning=judgment.shown.reasoning if judgment else "",
            verified=None if self.label is None else is_verified,
            detail=self.why.text,
            spending=self.spending.all,
            case_digest=self.case_digest,
            judge_fingerprint=self.judge_digest,
            human_reviewed=extra.review,
            judge_spending=self.spending.judge,
            shared=self.spending.shared,
            scores=judgment.scores if judgment else (),
            minority=judgment.minority if judgment else None,
            labelled_by=by if by in ("people", "program") else None,
            reworded=extra.reworded,
            altered=extra.altered,
            rejected=extra.rejected,
            base_scores=() if probe is None else probe.base_scores,
            content=extra.content,
            skip_kind=kind if kind in SKIPS else None,  # type: ignore[arg-type]
            edit_note=extra.edit,
            turns_shown=extra.shown,
            verdicts=verdicts if len(verdicts) > 1 or judgment is None else (),
        )


def line_data(result: CaseResult, *, config: str = "", kept: bool = False) -> dict[str, Any]:
    """The line of a result as plain JSON values, without what is empty.

    `config` is the suite's config file, and `kept` says that an earlier session gave the result.
    """
    spec = result.spec
    verdicts = result.verdicts
    if not verdicts and result.score is not None:
        verdicts = (Verdict(result.score, result.reasoning),)
    line = {
        "case_id": result.case_id,
        "suite": spec.suite,
        "test": spec.test,
        "rubric_id": spec.rubric_id,
        "run_id": spec.run_id,
        "epoch": spec.epoch,
        "cluster": spec.cluster,
        "target": spec.target_score,
        "label": result.expected,
        "labelled_by": _labelled_by(result),
        "case_digest": result.case_digest,
        "judge": result.judge,
        "judge_digest": result.judge_fingerprint,
        "scores": [verdict.score for verdict in verdicts],
        "reasons": [verdict.reasoning for verdict in verdicts],
        "why": _filled({"kind": _kind(result), "text": result.detail}),
        "spending": _spending(result),
        "extra": _extra(result, config, kept=kept),
    }
    return {"format": LEDGER_FORMAT, **_filled(line)}


def _labelled_by(result: CaseResult) -> str | None:
    if result.expected is None or result.labelled_by is not None:
        return result.labelled_by
    return "made" if result.verified or result.altered else "unconfirmed"


def _kind(result: CaseResult) -> str:
    if result.outcome == _NO_CASE:
        return result.skip_kind or _NO_CASE
    return result.outcome if result.outcome in UNSCORED else ""


def _spending(result: CaseResult) -> dict[str, Any]:
    parts: dict[str, Any] = {"all": _fields(result.spending)}
    if result.judge_spending is not None:
        parts["judge"] = _fields(result.judge_spending)
    if result.shared is not None:
        parts["shared"] = _fields(result.shared)
    return parts


def _extra(result: CaseResult, config: str, *, kept: bool) -> dict[str, Any]:
    spec, probe = result.spec, None
    if spec.variant:
        probe = {"base": spec.base, "variant": spec.variant, "base_scores": result.base_scores}
    return _filled(
        {
            "altered": result.altered,
            "config": config,
            "content": result.content,
            "edit": result.edit_note,
            "kept": kept,
            "probe": probe,
            "rejected": None if result.rejected is None else _fields(result.rejected),
            "review": result.human_reviewed,
            "reworded": result.reworded,
            "shown": None if result.turns_shown is None else _fields(result.turns_shown),
        }
    )


def _fields(value: Rejection | SharedCall | ShownTurns | Spending | Usage) -> dict[str, Any]:
    """The fields that are not as they are where nothing is said."""
    data = {}
    for name, declared in value.__dataclass_fields__.items():
        field_value = getattr(value, name)
        if field_value != declared.default:
            is_part = isinstance(field_value, Spending | Usage)
            data[name] = _fields(field_value) if is_part else field_value
    return data


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without those that are empty, such as no text; the number 0 says something."""
    return {name: value for name, value in values.items() if value or type(value) is int}


def ledger_line(
    result: CaseResult, redactor: Redactor, *, config: str = "", kept: bool = False
) -> bytes:
    """The line of a result in the file, newline included, without secrets."""
    clean: Mapping[str, Any] = redactor.value(line_data(result, config=config, kept=kept))
    return record_line(clean)


def result_text(result: CaseResult) -> str:
    """The result as one JSON text, which `result_from` reads.

    It travels between processes as a report's attribute: taken apart by execnet it would be a
    hundred values. A lone surrogate becomes U+FFFD, as in a file.
    """
    return encoded(json.dumps(line_data(result), ensure_ascii=False)).decode()


def result_from(text: str | bytes) -> CaseResult:
    """The result of a text that `result_text` wrote."""
    return _Line.model_validate_json(text).result()


class StoredResult(NamedTuple):
    """A result, and its line in the file that it was read from.

    `config` is the suite's config file, where the line names it; `kept` says that an earlier
    session gave the result, and the one that wrote the file left it as it was.
    """

    result: CaseResult
    line: int
    config: str = ""
    kept: bool = False


def read_ledger(path: Path) -> dict[str, StoredResult]:
    """Read the results of a ledger by case id, of several of a case the last; what a killed session
    left of its last line is none.

    Raises `InputError` with file and line for each line that holds no result.
    """
    results: dict[str, StoredResult] = {}
    problems: list[Problem] = []
    for file_line in lines_of(path, hint=_AGAIN, blank=True):
        try:
            line = _Line.model_validate_json(file_line.data)
        except ValidationError as error:
            if file_line.is_ended:
                problem = misfit(error, "not a case result", str(path), file_line.number, _AGAIN)
                problems.append(problem)
            continue
        stored = StoredResult(line.result(), file_line.number, line.extra.config, line.extra.kept)
        results[line.case_id] = stored
    if problems:
        raise InputError(problems[:MOST_PROBLEMS])
    return results


def ledger_path(suite: Suite) -> Path:
    """The ledger of a suite."""
    return suite.results_dir / LEDGER_FILE


class LedgerWriter:
    """Appends to the ledgers of suites while a session runs, so that a killed one has left what it
    knew.

    What cannot be written, as on a full disk, is missing until the session's end, which writes the
    whole file and says so.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._files: dict[Path, IO[bytes]] = {}

    def append(self, result: CaseResult, suite: Suite) -> None:
        """Add the line of a result."""
        line = ledger_line(result, self._redactor, config=suite.key)
        path = ledger_path(suite)
        with contextlib.suppress(OSError):
            file = self._files.get(path)
            if file is None:
                path.parent.mkdir(parents=True, exist_ok=True)
                file = self._files[path] = _opened(path)
            start = file.seek(0, os.SEEK_END)
            if file.write(line) != len(line):
                file.truncate(start)

    def close(self) -> None:
        """Close the files, which may then be replaced."""
        for file in self._files.values():
            file.close()
        self._files = {}


def _opened(path: Path) -> IO[bytes]:
    """The file at its end, without what a killed session left of a line."""
    file = path.open("a+b", buffering=0)
    size = file.seek(0, os.SEEK_END)
    while size:
        start = max(0, size - 2**16)
        file.seek(start)
        newline = file.read(size - start).rfind(b"\n")
        if newline >= 0:
            size = start + newline + 1
            break
        size = start
    file.truncate(size)
    return file
