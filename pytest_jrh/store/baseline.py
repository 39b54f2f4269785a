"""The file of `--jrh-baseline`: JSON to commit, sorted, one case per line.

Beside it is kept what the judges said and their prompts, for reports to show old and new side by
side. Nothing is decided by that: a baseline is compared without it, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_jrh.core.diffs import shared_ends
from pytest_jrh.core.documents import misfit, read_json, read_text, shown
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.files import atomic_write, is_missing, lines_of, relative_path
from pytest_jrh.core.model import JUDGED
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.text import counted, one_line
from pytest_jrh.core.transcript import storable
from pytest_jrh.judges import PromptJudge
from pytest_jrh.stats.baseline import DIGEST_LENGTH, Baseline, BaselineCase, short, update
from pytest_jrh.stats.decision import tolerated

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.config.schema import GateRules
    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.judges.judge import SuiteJudge
    from pytest_jrh.stats.baseline import Comparison, Scope, Update


FORMAT = 1
_RESTORE = "restore it from git"
_HOW = "a baseline is written with --jrh-baseline=FILE --jrh-update-baseline"
_NOT_ASCII = re.compile("[^ -~]")
_Digest: TypeAlias = Annotated[str, Field(pattern=f"^[0-9a-f]{{{DIGEST_LENGTH}}}$")]


class _Line(BaseModel):
    """A line of the file."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)

    id: str = Field(pattern="(?s)^.*::.*::.*::")
    outcome: Literal["agree", "disagree"]
    score: int | None
    scores: list[int] = []
    case_digest: _Digest
    judge_fingerprint: _Digest
    reference: list[int] = []
    """Of earlier versions; nothing is held against it any more."""
    reason: str = ""


class _File(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)

    format: Literal[1]
    cases: list[_Line]


_MOST_BYTES = 256 * 2**20
"""Some 1,600,000 cases."""


def render(baseline: Baseline) -> str:
    """Render the file's text: sorted by id, one case per line, equal for equal content."""
    lines = [json_line(_record(case)) for _, case in sorted(baseline.cases.items())]
    listing = "[\n" + ",\n".join(lines) + "\n]" if lines else "[]"
    return f'{{\n"format": {FORMAT},\n"cases": {listing}\n}}\n'


def save(path: Path, baseline: Baseline) -> None:
    """Write the file atomically; raises `OSError` if the write fails."""
    atomic_write(path, render(baseline))


def load(path: Path, *, file: str | None = None) -> Baseline:
    """Read a baseline; `file` is how messages name it.

    Raises `InputError` with the first mistake and its line.
    """
    name = file or str(path)
    if is_missing(path):
        raise InputError(Problem("no such file", name, hint=_HOW))
    text = read_text(path, name, _MOST_BYTES)
    _refuse_conflict(text, name)
    document = read_json(text, name)
    try:
        lines = _File.model_validate(document.data).cases
    except ValidationError as error:
        place = document.line(error.errors()[0]["loc"])
        raise InputError(misfit(error, "is no baseline", name, place, _RESTORE)) from None
    cases: dict[str, BaselineCase] = {}
    for index, line in enumerate(lines):
        if line.id in cases:
            message, place = f"duplicate case {shown(line.id)}", document.line(("cases", index))
            raise InputError(Problem(message, name, place, hint="keep one of them"))
        cases[line.id] = BaselineCase(
            case_id=line.id,
            case_digest=line.case_digest,
            judge_fingerprint=line.judge_fingerprint,
            outcome=line.outcome,
            score=line.score,
            reason=line.reason,
            scores=tuple(line.scores),
        )
    return Baseline(cases)


def _record(case: BaselineCase) -> dict[str, Any]:
    line: dict[str, Any] = {"id": case.case_id, "outcome": case.outcome, "score": case.score}
    if case.scores:
        line["scores"] = case.scores
    line["case_digest"] = case.case_digest
    line["judge_fingerprint"] = case.judge_fingerprint
    if case.reason:
        line["reason"] = case.reason
    return line


def json_line(value: object) -> str:
    """One line of JSON in which characters that do not print, or break or reorder a line of a diff,
    are escaped.
    """
    text = json.dumps(value, ensure_ascii=False)
    return _NOT_ASCII.sub(
        lambda match: match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1], text
    )


def _refuse_conflict(text: str, name: str) -> None:
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            hint = (
                "keep the lines of both sides, or take one side and run with --jrh-update-baseline"
            )
            raise InputError(Problem("contains a merge conflict", name, number, hint=hint))


KEPT_FORMAT = 1
LONGEST_REASONING = 2_000
LONGEST_PROMPT = 60_000


class _KeptLine(BaseModel):
    """A line of what is kept beside a baseline: the first says the format, the others have the
    prompt of a judge, or what it said of the case `id`.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)

    format: Literal[1] = 1
    id: str = ""
    suite: str = ""
    judge: str = ""
    judge_fingerprint: str = ""
    prompt: str | None = None
    score: int | None = None
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class KeptVerdict:
    """What a judge said of a case; the fingerprint is cut as in the baseline."""

    case_id: str
    judge_fingerprint: str
    score: int | None
    reasoning: str


@dataclass(frozen=True, slots=True)
class JudgePrompt:
    """The prompt of a judge of a suite; `judge` is empty for its only one, `file` for a built-in
    prompt, and where it is read from a baseline.
    """

    suite: str
    judge: str
    judge_fingerprint: str
    text: str
    file: str = ""


@dataclass(frozen=True, slots=True)
class PromptChange:
    """A judge whose verdicts are compared with those of another one; `before` is the prompt of that
    one, None where it was not kept.
    """

    now: JudgePrompt
    before: str | None

    @property
    def lines(self) -> tuple[int, int]:
        """The first and the last line of the prompt that are others than before, from 1."""
        if self.before is None:
            return 1, 1
        old, new = self.before.splitlines(), self.now.text.splitlines()
        same_first, same_last = shared_ends(old, new)
        first = max(1, min(same_first + 1, len(new)))
        return first, max(first, len(new) - same_last)


@dataclass(frozen=True, slots=True)
class KeptVerdicts:
    """The file's content: verdicts by case id, prompts by the fingerprint of their judge."""

    verdicts: Mapping[str, KeptVerdict] = field(default_factory=dict)
    prompts: Mapping[str, JudgePrompt] = field(default_factory=dict)

    def of(self, comparison: Comparison) -> dict[str, KeptVerdict]:
        """The verdicts that a comparison compares with, by case id."""
        verdicts = {}
        for pair in comparison.pairs:
            kept = self.verdicts.get(pair.before.case_id)
            if kept is not None and _fits(kept, pair.before):
                verdicts[pair.before.case_id] = kept
        return verdicts

    def changes(self, comparison: Comparison, prompts: Iterable[JudgePrompt]) -> list[PromptChange]:
        """Of the judges that are not those of the baseline, the prompts before and now, as far as
        they are known.
        """
        changes = []
        for prompt in prompts:
            earlier = set()
            for pair in comparison.pairs:
                is_of_judge = (pair.now.spec.suite, pair.now.judge) == (prompt.suite, prompt.judge)
                if is_of_judge and not pair.same_judge:
                    earlier.add(pair.before.judge_fingerprint)
            if not earlier:
                continue
            kept = sorted(earlier & self.prompts.keys())
            changes.append(PromptChange(prompt, self.prompts[kept[0]].text if kept else None))
        return changes


def kept_path(baseline: Path) -> Path:
    """The file beside a baseline: `support.verdicts.jsonl` beside `support.json`."""
    return baseline.with_name(f"{baseline.stem}.verdicts.jsonl")


def judge_prompts(suite: Suite, judges: Mapping[str | None, SuiteJudge]) -> tuple[JudgePrompt, ...]:
    """The prompts of a suite's judges; those without one are left out."""
    prompts = []
    for name, judge in judges.items():
        if isinstance(judge, PromptJudge):
            text, file = _joined(judge.prompts), judge.settings.stage.prompt_path or ""
            fingerprint = short(judge.fingerprint)
            prompts.append(JudgePrompt(suite.name, name or "", fingerprint, text, file))
    return tuple(prompts)


def clean_prompt(prompt: JudgePrompt, redactor: Redactor) -> JudgePrompt:
    """The prompt as it may be shown and kept: without secrets, and bounded."""
    text = storable(redactor.text(prompt.text))[0]
    return replace(prompt, text=text[:LONGEST_PROMPT])


def updated(
    before: KeptVerdicts,
    baseline: Baseline,
    results: Iterable[CaseResult],
    prompts: Iterable[JudgePrompt],
    redactor: Redactor,
) -> KeptVerdicts:
    """What is to be kept of a baseline that was just written: the new verdicts, and of the others
    those that still are in it.
    """
    all_verdicts = dict(before.verdicts)
    for result in results:
        if result.outcome in JUDGED:
            all_verdicts[result.case_id] = KeptVerdict(
                result.case_id,
                short(result.judge_digest),
                result.score,
                storable(redactor.text(result.reasoning))[0][:LONGEST_REASONING],
            )
    verdicts = {}
    for case_id, kept in all_verdicts.items():
        line = baseline.cases.get(case_id)
        if line is not None and _fits(kept, line):
            verdicts[case_id] = kept
    all_prompts = dict(before.prompts)
    all_prompts.update((prompt.judge_fingerprint, prompt) for prompt in prompts)
    used = {line.judge_fingerprint for line in baseline.cases.values()}
    return KeptVerdicts(verdicts, {key: all_prompts[key] for key in all_prompts if key in used})


def load_kept(path: Path) -> KeptVerdicts:
    """Read the file beside a baseline; empty where there is no such file.

    Raises `InputError` with the first line that cannot be used.
    """
    verdicts: dict[str, KeptVerdict] = {}
    prompts: dict[str, JudgePrompt] = {}
    for file_line in lines_of(path, hint=_RESTORE):
        try:
            line = _KeptLine.model_validate_json(file_line.data)
        except ValidationError:
            message = "is no line of what judges said"
            number = file_line.number
            raise InputError(Problem(message, str(path), number, hint=_RESTORE)) from None
        fingerprint = line.judge_fingerprint
        if line.prompt is not None:
            prompts[fingerprint] = JudgePrompt(line.suite, line.judge, fingerprint, line.prompt)
        elif line.id:
            verdicts[line.id] = KeptVerdict(line.id, fingerprint, line.score, line.reasoning)
    return KeptVerdicts(verdicts, prompts)


def save_kept(path: Path, kept: KeptVerdicts) -> None:
    """Write the file atomically, one verdict a line, sorted; raises `OSError`, which names the
    file, if that fails.
    """
    values: list[Mapping[str, Any]] = [{"format": KEPT_FORMAT}]
    for _, prompt in sorted(kept.prompts.items()):
        described = {"suite": prompt.suite, "judge": prompt.judge}
        values.append(
            {**described, "judge_fingerprint": prompt.judge_fingerprint, "prompt": prompt.text}
        )
    for _, verdict in sorted(kept.verdicts.items()):
        described = {"id": verdict.case_id, "judge_fingerprint": verdict.judge_fingerprint}
        values.append({**described, "score": verdict.score, "reasoning": verdict.reasoning})
    try:
        atomic_write(path, "".join(f"{json_line(value)}\n" for value in values))
    except OSError as error:
        raise OSError(error.errno, f"{path.name} beside it: {error.strerror}") from error


def _joined(texts: Mapping[str, str]) -> str:
    """Several texts of a judge, each under its name."""
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n\n".join(f"[{name}]\n{text}" for name, text in texts.items())


def _fits(kept: KeptVerdict, case: BaselineCase) -> bool:
    return (kept.judge_fingerprint, kept.score) == (case.judge_fingerprint, case.score)


_MOST_KEPT = 20


class BaselineFile:
    """The file of `--jrh-baseline`, whose `path` is None without one: each process reads it once,
    when first needed. The controller writes it.
    """

    def __init__(self, path: Path | None, folder: Path, *, update: bool) -> None:
        self.path = path
        self._folder = folder
        self._update = update

    @cached_property
    def content(self) -> Baseline | None:
        """The baseline; None without one, or where this session is the first to write it.

        Raises `InputError` with the first mistake in the file, or where it is missing.
        """
        return self._read()

    def _read(self) -> Baseline | None:
        if self.path is None or (self._update and is_missing(self.path)):
            return None
        return load(self.path, file=self.name)

    @cached_property
    def kept(self) -> KeptVerdicts:
        """What is kept beside the baseline; nothing without one."""
        if self.path is None or self.content is None:
            return KeptVerdicts()
        return load_kept(kept_path(self.path))

    @property
    def updating(self) -> bool:
        """Whether this session updates the file with its verdicts."""
        return self._update and self.path is not None

    @property
    def name(self) -> str:
        """The file as messages name it."""
        return str(self.path and relative_path(self.path, self._folder))

    def tolerated(self, result: CaseResult, rules: GateRules) -> str | None:
        """Why a disagreement does not fail its item, or None where it does."""
        return tolerated(result, self.content, rules, accepts=self.updating)

    def accept(
        self,
        results: Iterable[CaseResult],
        scope: Scope,
        node: Callable[[str], str],
        *,
        finished: bool,
        prompts: Iterable[JudgePrompt] = (),
        redactor: Redactor | None = None,
    ) -> list[str]:
        """Update the file with a session's verdicts if `--jrh-update-baseline` is given, and beside
        it what the judges said; returns lines about what was done.

        A session that did not finish, or lacks a verdict on a case that has one in the file, leaves
        the file unchanged: a baseline never gets worse by accident. Raises `OSError` if
        the write fails, and `InputError` where the file cannot be used any more.
        """
        if not self._update or self.path is None:
            return []
        if not finished:
            return [
                f"The baseline {self.name} was not updated, because the session did not finish."
            ]
        # As it is now: another session, or a person, may have changed it since this one began.
        is_new = is_missing(self.path)
        before = self._read() or Baseline()
        results = list(results)
        made = update(before, results, scope)
        if lost := {case: why for case, why in made.kept.items() if case in before.cases}:
            head = (
                f"The baseline {self.name} was not updated, because this session has no verdict on"
                f" {counted(len(lost), 'case')} of it:"
            )
            return [
                _named(head, lost, node),
                "Make these cases give a verdict, or deselect them, and update again.",
            ]
        if not made.baseline.cases and is_new:
            return [f"The baseline {self.name} was not written, because no case has a verdict."]
        kept_file = kept_path(self.path)
        kept = load_kept(kept_file)
        kept = updated(kept, made.baseline, results, prompts, redactor or Redactor())
        # First, so that an error leaves the baseline as it was, which is what is said of it.
        save_kept(kept_file, kept)
        save(self.path, made.baseline)
        return list(_about_cases(self.name, made, node))


def _about_cases(name: str, made: Update, node: Callable[[str], str]) -> Iterator[str]:
    changes = (
        f"{len(made.added):,} added, {len(made.changed):,} changed, {len(made.removed):,} removed"
    )
    yield f"The baseline {name} now holds {counted(len(made.baseline.cases), 'case')}: {changes}."
    if made.kept:
        head = f"Not updated, because they have no verdict ({len(made.kept):,}):"
        yield _named(head, made.kept, node)


def _named(head: str, cases: Mapping[str, str], node: Callable[[str], str]) -> str:
    lines = [f"  {one_line(node(case))} ({why})" for case, why in cases.items()]
    more = [f"  and {len(lines) - _MOST_KEPT:,} more"] if len(lines) > _MOST_KEPT else []
    return "\n".join([head, *lines[:_MOST_KEPT], *more])
