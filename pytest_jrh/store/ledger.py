"""The ledger of a suite, `results.jsonl`: a line for each judge, then one for each case and judge,
as sessions append it, later ones and merges read it, and results travel between processes.

What is empty is left out of a line, and nothing is in it that follows from the rest. Whether a
verdict is right, the score of several repeats and what reports call the outcome are computed where
a line is read, so that no line contradicts itself.

The file of `--jrh-baseline` is a ledger to commit, without what cases took. The lines of judges
have their prompts, for reports to show old and new side by side. A pull request may change a judge
and, with it, the baseline that the judge is held against: its PASS then says less. So the file is
read as the base branch has it, too.

Last come tables as CSV, for people and notebooks. Their cells are hostile: what a spreadsheet would
run as a formula is prefixed with `'`, ANSI sequences and control characters are dropped.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import AfterValidator, TypeAdapter, ValidationError

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core import (
    Fields,
    InputError,
    Json,
    counted,
    one_line,
    plain,
    relative_path,
    shortened,
    storable,
)
from pytest_jrh.core.cases import NOTHING_WRONG, UNEDITED, Case, CaseSpec, LabelSource, Verdict, Why
from pytest_jrh.core.documents import misfit, parsed_lines, read_text
from pytest_jrh.core.files import atomic_write, encoded, exists, git_output
from pytest_jrh.core.ids import JUDGING, LEDGER_FILE
from pytest_jrh.core.redact import NO_SECRETS, Redactor
from pytest_jrh.core.results import CaseResult, JudgeLine, Rejection
from pytest_jrh.core.sections import GateRules
from pytest_jrh.sources.tables import guarded
from pytest_jrh.stats.verdicts import NO_BASELINE, Baseline, Scope, suite_of, tolerated, update
from pytest_jrh.store.records import case_digest, content_digest, in_words, record_line

if TYPE_CHECKING:
    from pytest_jrh.config.suite import Suite

_FORMAT = 3
_AGAIN = "Run the shard again, because a truncated or edited file cannot be used."
_LONGEST_NOTE = 160


@cache
def _lines(kind: Any) -> TypeAdapter[Any]:
    """What reads and writes lines of a kind, built where the first one is."""
    return TypeAdapter(kind)


def line_data(line: CaseResult | JudgeLine) -> Json:
    """A line as plain JSON values, without what is empty."""
    adapter = _lines(type(line))  # type: ignore[arg-type]
    values: Json = adapter.dump_python(line, mode="json", exclude_defaults=True)
    if isinstance(line, CaseResult) and line.answers:
        values = in_words(values, line.scale)
    return {"format": _FORMAT, **values}


def ledger_line(
    line: CaseResult | JudgeLine, suite: Suite | None = None, redactor: Redactor = NO_SECRETS
) -> str:
    """A line of a suite's ledger without its end and without secrets; `result_from` reads that of a
    result.

    It travels between processes as a report's attribute: taken apart by execnet it would be a
    hundred values. A lone surrogate becomes U+FFFD, as in a file.
    """
    if suite is not None and isinstance(line, CaseResult):
        line = replace(line, extra=replace(line.extra, config=suite.key))
    return record_line(redactor.value(line_data(line))).decode()


def ledger_text(
    judges: Iterable[JudgeLine], results: Sequence[CaseResult], suite: Suite, redactor: Redactor
) -> str:
    """The whole ledger of a suite, as a session leaves it."""
    lines: list[CaseResult | JudgeLine] = [*with_calls(judges, results), *results]
    return "".join(f"{ledger_line(line, suite, redactor)}\n" for line in lines)


def result_from(text: str | bytes) -> CaseResult:
    """The result of a line."""
    result: CaseResult = _lines(Annotated[CaseResult, AfterValidator(_offered)]).validate_json(text)
    return result


def _offered(result: CaseResult) -> CaseResult:
    """A result whose answers are on offer; raises `ValueError` for another word."""
    answers = [*result.scores, result.label or 0]
    if not all(map(result.scale.may_be, answers)):
        raise ValueError("a score or the label is not an answer of this case")
    return result


def _line_from(data: bytes) -> CaseResult | JudgeLine:
    if b'"case_id"' in data:
        return result_from(data)
    judge: JudgeLine = _lines(JudgeLine).validate_json(data)
    return judge


class StoredResult(NamedTuple):
    """A result, and the file and line that it was read from."""

    result: CaseResult
    path: Path
    line: int


def read_ledger(path: Path) -> dict[str, StoredResult]:
    """Read the results of a ledger by case id, of several of a case the last; what a killed session
    left of its last line is none.

    Raises `InputError` with file and line for the first line that is none of a ledger.
    """
    results = {}
    lines = parsed_lines(path, _line_from, "this line is not the result of a case", _AGAIN)
    for number, line in lines:
        if isinstance(line, CaseResult):
            results[line.case_id] = StoredResult(line, path, number)
    return results


def ledger_path(suite: Suite) -> Path:
    """The ledger of a suite."""
    return suite.results_dir / LEDGER_FILE


def case_result(
    spec: CaseSpec,
    case: Case | None,
    why: Why = NOTHING_WRONG,
    *,
    verdicts: Sequence[Verdict] = (),
    judge_digest: str = "",
    rejected: Case | None = None,
) -> CaseResult:
    """The result of one spec, without what it took; `case` is None where none was made, `why` says
    why there is no verdict, and `rejected` is the one that the verifier rejected.
    """
    result = CaseResult.of(spec)
    probabilities = [one.probability for one in verdicts if one.probability is not None]
    note, written = "", case or rejected
    if written is not None and KINDS[spec.test].is_made:
        note = UNEDITED
        if edits := written.outcome.edits:
            # What the editor says of its first edit.
            note = shortened(one_line(edits[0].editor_reason), _LONGEST_NOTE)
    extra = replace(result.extra, edit=note, probabilities=tuple(probabilities))
    if rejected is not None:
        assert rejected.expected is not None
        result = replace(result, answers=rejected.scale.line)
        extra = replace(extra, rejected=Rejection(case_digest(rejected), rejected.expected))
    if case is not None:
        extra = replace(
            extra, content=content_digest(case), altered=case.altered, reworded=case.reworded
        )
        result = replace(
            result,
            answers=case.scale.line,
            within=case.scale.within,
            label=case.expected,
            labelled_by=labelled_by(case),
            case_digest=case_digest(case),
        )
    return replace(
        result,
        judge_digest=judge_digest,
        scores=tuple(verdict.score for verdict in verdicts),
        reasons=tuple(verdict.reasoning for verdict in verdicts),
        why=why,
        extra=extra,
    )


def labelled_by(case: Case) -> LabelSource | None:
    """Who gave a case its label."""
    if case.expected is None:
        return None
    if case.label is not None:
        return case.label.by
    # The label of an altered case is unverified for that reason alone.
    return "made" if case.verified or case.altered else "unconfirmed"


LONGEST_REASONING = 2_000
LONGEST_PROMPT = 60_000
_RESTORE = "if this file is your baseline, restore the file from git; if not, name the right file"
_HOW = "to write a baseline, pass --jrh-baseline=FILE --jrh-update-baseline"
_BOTH = "keep the lines of both sides; or keep one side, and run with --jrh-update-baseline"
_NOT_ASCII = "[^ -~]"


def render(baseline: Baseline, redactor: Redactor = NO_SECRETS) -> str:
    """Render the file's text: judges, then cases, sorted, equal for equal content, no secrets."""
    lines: list[CaseResult | JudgeLine] = [*baseline.judge_lines]
    lines += [case for _, case in sorted(baseline.cases.items())]
    return "".join(f"{json_line(redactor.value(line_data(line)))}\n" for line in lines)


def json_line(value: object) -> str:
    """One line of JSON in which characters that do not print, or break or reorder a line of a diff,
    are escaped.
    """
    text = json.dumps(value, ensure_ascii=False)
    return re.sub(
        _NOT_ASCII,
        lambda match: match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1],
        text,
    )


def parsed(text: str, name: str) -> Baseline:
    """The baseline of a file's text; raises `InputError` with the first mistake and its line."""
    cases = {}
    judges = []
    for number, line in enumerate(text.rstrip().split("\n"), 1):
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            raise InputError("contains a merge conflict", name, number, hint=_BOTH)
        try:
            case = _line_from(line.encode("utf-8", "surrogatepass"))
        except ValidationError as error:
            raise misfit(
                error, "this line is not from a baseline", name, number, _RESTORE
            ) from None
        if isinstance(case, JudgeLine):
            judges.append(case)
            continue
        if case.case_id in cases:
            raise InputError(
                f"an earlier line has the same case {json.dumps(case.case_id)}",
                name,
                number,
                hint="keep one of these lines",
            )
        cases[case.case_id] = case
    return Baseline(cases, tuple(judges))


def with_calls(judges: Iterable[JudgeLine], results: Iterable[CaseResult]) -> list[JudgeLine]:
    """The judges; one of code asks a model where it has asked anything about any of its cases."""
    asking = set()
    for result in results:
        for recording, spending in result.spending.parts.items():
            if recording.startswith(JUDGING) and (spending.calls or spending.replayed):
                asking.add((result.judge, result.judge_digest))
    lines = []
    for judge in judges:
        asks_model = judge.asks_model or (judge.judge, judge.judge_digest) in asking
        lines.append(replace(judge, asks_model=asks_model))
    return lines


_MOST_BYTES = 256 * 2**20
"""Some 1,600,000 cases."""
_MOST_NAMED = 20


@dataclass
class BaselineFile:
    """The file of `--jrh-baseline`, whose `path` is None without one: each process reads it once,
    when first needed. The controller writes it, where this session is to `update` it with its
    verdicts.
    """

    path: Path | None
    folder: Path
    update: bool

    @cached_property
    def content(self) -> Baseline | None:
        """The baseline; None without one, or where this session is the first to write it.

        Raises `InputError` with the first mistake in the file, or where it is missing.
        """
        return self._read()

    def _read(self) -> Baseline | None:
        if self.path is None or (self.update and not exists(self.path)):
            return None
        return parsed(read_text(self.path, self.name, _MOST_BYTES, how=_HOW), self.name)

    @property
    def name(self) -> str:
        """The file as messages name it."""
        return str(self.path and relative_path(self.path, self.folder))

    def tolerated(self, result: CaseResult, rules: GateRules) -> str | None:
        """Why a disagreement does not fail its item, or None where it does."""
        return tolerated(result, self.content, rules, accepts=self.update)

    def accept(
        self,
        results: Iterable[CaseResult],
        scope: Scope,
        node: Callable[[str], str],
        *,
        finished: bool,
        judges: Iterable[JudgeLine] = (),
        redactor: Redactor = NO_SECRETS,
    ) -> list[str]:
        """Update the file with a session's verdicts if `--jrh-update-baseline` is given; returns
        lines about what was done.

        A session that did not finish, or lacks a verdict on a case that has one in the file, leaves
        the file unchanged: a baseline never gets worse by accident. Raises `OSError` if
        the write fails, and `InputError` where the file cannot be used any more.
        """
        if not self.update or self.path is None:
            return []
        if not finished:
            return [
                f"The baseline {self.name} was not updated, because the session did not finish."
            ]
        # As it is now: another session, or a person, may have changed it since this one began.
        before = self._read() or NO_BASELINE
        bounded = []
        for result in results:
            reasons = []
            for reason in result.reasons:
                # Cut where no secret is cut.
                reasons.append(storable(redactor.text(reason))[0][:LONGEST_REASONING])
            bounded.append(replace(result, reasons=tuple(reasons)))
        made = update(before, bounded, scope, judges)
        if lost := {case: why for case, why in made.kept.items() if case in before.cases}:
            head = (
                f"The baseline {self.name} was not updated, because this session has no verdict on"
                f" {counted(len(lost), 'case')} in the baseline:"
            )
            return [
                _named(head, lost, node),
                "Fix or deselect these cases, and update the baseline again.",
            ]
        if not made.baseline.cases:
            return [f"The baseline {self.name} was not written, because no case has a verdict."]
        atomic_write(self.path, render(made.baseline, redactor))
        done = [
            f"The baseline {self.name} now has {counted(len(made.baseline.cases), 'case')}: "
            f"{len(made.added):,} added, {len(made.changed):,} changed, "
            f"{len(made.removed):,} removed."
        ]
        if made.kept:
            head = f"Not updated, because there is no verdict on {counted(len(made.kept), 'case')}:"
            done.append(_named(head, made.kept, node))
        return done


def _named(head: str, cases: Mapping[str, str], node: Callable[[str], str]) -> str:
    lines = [f"  {one_line(node(case))} ({why})" for case, why in cases.items()]
    more = [f"  and {len(lines) - _MOST_NAMED:,} more"] if len(lines) > _MOST_NAMED else []
    return "\n".join([head, *lines[:_MOST_NAMED], *more])


_GITHUB, _GITLAB = "GITHUB_BASE_REF", "CI_MERGE_REQUEST_DIFF_BASE_SHA"
_TO_HAVE_BASE = {
    _GITHUB: "set fetch-depth: 2 for actions/checkout",
    _GITLAB: f"run git fetch --depth=1 origin ${_GITLAB} first",
}


def baseline_there(
    file: Path | None, environ: Mapping[str, str] = os.environ
) -> Baseline | str | None:
    """The baseline on the branch that a pull request is to be merged into, empty where there is
    none yet, or a sentence where that cannot be read; None outside of a pull request.
    """
    if file is None:
        return None
    variable = next((name for name in _TO_HAVE_BASE if environ.get(name)), "")
    if not variable:
        return None
    name = f"./{file.name}"
    commit = _base_commit(file.parent, variable, environ[variable])
    listed = git_output(file.parent, "ls-tree", commit, "--", name) if commit else None
    if listed == "":
        return NO_BASELINE
    text = git_output(file.parent, "cat-file", "blob", f"{commit}:{name}") if listed else None
    remedy = f"the base branch cannot be read: {_TO_HAVE_BASE[variable]}"
    if text is not None:
        try:
            return parsed(text, file.name)
        except InputError:
            remedy = f"{name} in the base branch has an older format or is damaged"
    return f"whether this pull request changes the baseline is unknown, because {remedy}"


def _base_commit(folder: Path, variable: str, base: str) -> str:
    """The commit that the pull request starts from; "" where it is not in this checkout."""
    if variable == _GITLAB:
        return _there(folder, base)
    # A shallow checkout says by `HEAD^1` that a commit has no parents; the commit itself knows.
    head = git_output(folder, "cat-file", "commit", "HEAD") or ""
    lines = head.partition("\n\n")[0].split("\n")
    parents = [line.removeprefix("parent ") for line in lines if line.startswith("parent ")]
    if len(parents) > 1:
        # What GitHub checks out for a pull request: its branch merged into the base.
        return _there(folder, parents[0])
    branch = _there(folder, f"refs/remotes/origin/{base}")
    # Of a shallow checkout it is not known where the two part.
    return (git_output(folder, "merge-base", branch, "HEAD") or branch).strip()


def _there(folder: Path, revision: str) -> str:
    found = git_output(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    return (found or "").strip()


def accepted_by(base: Baseline, now: Baseline, suite: str) -> str:
    """What the change of a baseline accepts of a suite, as a clause; "" where it changes nothing
    but reasonings.
    """
    from pytest_jrh.stats.verdicts import Verdicts, compare

    before = {case: line for case, line in base.cases.items() if suite_of(case) == suite}
    lines = {case: line for case, line in now.cases.items() if suite_of(case) == suite}
    added = [line for case, line in lines.items() if case not in before]
    results = [*lines.values()]
    comparison = compare(Baseline(before), results, Verdicts.of(results), Scope.of(lines))
    other_cases = len(lines) - len(added) - len(comparison.everything)
    repeats = comparison.everything.kinds("before", "answers").names
    is_changed = any(earlier != present for earlier, present in repeats)
    gone = len(before.keys() - lines.keys())
    if not (added or gone or other_cases or is_changed):
        return ""
    kinds = Counter[str]()
    for case_id in comparison.regressions:
        line = lines[case_id]
        if line.case_class is None or line.spec.derived:
            kinds["newly wrong"] += 1
        elif line.is_passed_over:
            kinds["newly called n/a"] += 1
        else:
            kinds[line.case_class.newly] += 1
    losses = [f"{number:,} {kind}" for kind, number in sorted(kinds.items())]
    parts = [f"it accepts {' and '.join(losses) or 'no loss'}"]
    if added:
        wrong = sum(line.outcome == "disagree" for line in added)
        parts.append(f"adds {counted(len(added), 'case')} ({wrong:,} wrong)")
    if gone:
        parts.append(f"drops {counted(gone, 'case')}")
    if other_cases:
        parts.append(f"has {counted(other_cases, 'case')} with another text or label")
    return ", ".join(parts)


def cell(value: Any) -> str | int | float | bool | None:
    """Give a value as a spreadsheet may hold it: numbers stay numbers, no text is a formula."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    text = str(value)
    if not text.isprintable():
        text = plain(text)
    return guarded(text)


def table_bytes(
    columns: Sequence[str], rows: Iterable[Fields], as_cell: Callable[[Any], object] = cell
) -> bytes:
    """A table with a header, as CSV; `as_cell` says how a value is written."""
    buffer = io.StringIO(newline="")
    lines = [[as_cell(row.get(column)) for column in columns] for row in rows]
    # The writer itself leaves a carriage return unquoted, which its reader takes for a line's end.
    has_returns = any("\r" in str(value) for line in lines for value in line)
    writer = csv.writer(
        buffer, lineterminator="\n", quoting=csv.QUOTE_ALL if has_returns else csv.QUOTE_MINIMAL
    )
    writer.writerows([columns, *lines])
    return encoded(buffer.getvalue())
