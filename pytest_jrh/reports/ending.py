"""How a session ends, in pytest or in a merge of shards: decisions, files, reports, baseline, and
whether it is green.

Nothing here knows pytest, so that what several machines ran ends as what one ran.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.config.options import NO_PAGE
from pytest_jrh.core import (
    InputError,
    Styled,
    absolute,
    all_wrapped,
    counted,
    escape_commands,
    frozen,
    grouped,
    grouped_by,
)
from pytest_jrh.core.cases import MADE
from pytest_jrh.core.files import encoded
from pytest_jrh.core.ids import CASES_FILE, REJECTED_FILE, generation_id
from pytest_jrh.core.results import CaseResult
from pytest_jrh.people import wrongly_labelled
from pytest_jrh.reports.for_programs import JsonReport, JunitReport
from pytest_jrh.reports.markdown import MarkdownReport
from pytest_jrh.reports.page import HtmlReport
from pytest_jrh.reports.report import Display, Report
from pytest_jrh.reports.session import Extent, Session, SuiteRun
from pytest_jrh.reports.terminal import TerminalReport
from pytest_jrh.stats.changes import how_asked
from pytest_jrh.stats.decision import Decision, Held, decide
from pytest_jrh.stats.limits import proposed_limits
from pytest_jrh.stats.verdicts import Baseline, PromptChange, Scope, compare, is_active
from pytest_jrh.store.ledger import (
    BaselineFile,
    accepted_by,
    baseline_there,
    ledger_path,
    ledger_text,
)
from pytest_jrh.store.made_cases import (
    Outputs,
    RecordEntry,
    RecordIndex,
    Spooled,
    cause,
    earlier_results,
    merge,
    read_jsonl,
    read_spools,
    without_gone,
    write_jsonl,
)

if TYPE_CHECKING:
    from pytest_jrh.config.suite import Suite

PAGE = "report.html"
"""The HTML report in a results folder, of a session that was not told where to write one."""

PAGE_HEAD = (
    b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta http-equiv="'
    b"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-"
)
"""What an HTML report begins with, and no page of another tool."""

REPORTS: list[Report] = [
    HtmlReport(),
    MarkdownReport(),
    JsonReport(),
    JunitReport(),
    # Its answer is the last that is printed.
    TerminalReport(),
]

_WIDEST = 120
_NOTHING_JUDGED = "No case has a verdict, so this session is not green."
_UNWRITTEN = (
    "This session is not green, because files could not be written. Free disk space or fix the "
    "permissions, and run again: recorded calls are not made again."
)


@frozen
class EndSettings:
    """What a session is held against, and what it writes beside the suites' own files.

    `session` has what is known beside its suites: where it was started, its commands, what it took.
    `stopped` says that it was ended before its time. `update_command` gives the command that
    updates the baseline of a suite. What failed has an HTML report in its results folder, unless
    `reports` names another file, or none; what is `reviewed` again, of some cases, leaves the
    report alone that it was read in.
    """

    session: Session
    baseline: BaselineFile
    reports: Sequence[Path]
    update_command: Callable[[Suite], str]
    stopped: bool = False
    reviewed: bool = False


@frozen
class Concluded:
    """What a session came to. `written` are the reports, `updates` and `problems` sentences for the
    user.
    """

    session: Session
    passed: bool
    written: Sequence[Path]
    updates: Sequence[str] = ()
    problems: Sequence[str] = ()


def conclude(runs: Sequence[SuiteRun], settings: EndSettings) -> Concluded:
    """Decide about each suite, write all that follows from the results, and say whether the session
    is green.

    `runs` has at least one suite. What cannot be written becomes a sentence in `problems`, and the
    session is not green; all else is written.
    """
    base_branch = None
    if not settings.baseline.update:
        base_branch = baseline_there(settings.baseline.path)
    session = _session(runs, settings, base_branch)
    outputs = Outputs(session.redactor)
    problems = outputs.problems
    if isinstance(base_branch, str):
        problems.append(f"{base_branch}.")
    for run in runs:
        write_suite_outputs(run, session, outputs)
    entries = dict(outputs.records.entries)
    for made_id, entry in entries.items():
        # A suite that was written later has moved the records of others in a file of both.
        file = outputs.record_files.get(entry.place.path, RecordIndex())
        entries[made_id] = file.entries.get(made_id, entry)
    session = replace(session, records=RecordIndex(entries))
    updates, refused = _update_baseline(runs, session, settings)
    problems += refused
    is_unwritten = outputs.failed
    written: list[Path] = []
    if session.results or settings.stopped:
        page, reports = _pages(runs, session, settings)
        session = replace(session, page=page)
        _remove_old_pages(runs, session)
        written, failures = write_reports(reports, session)
        problems += failures
        is_unwritten |= bool(failures)
    outcomes = {*session.verdicts.outcome.present()}
    is_judged = not outcomes or not outcomes.isdisjoint((*MADE, "unlabelled"))
    if not is_judged:
        problems.append(_NOTHING_JUDGED)
    if is_unwritten:
        problems.append(_UNWRITTEN)
    passed = session.passed and is_judged and not refused and not is_unwritten
    return Concluded(session, passed, written, updates, problems)


def _session(
    runs: Sequence[SuiteRun], settings: EndSettings, base_branch: Baseline | str | None
) -> Session:
    """All that reports are made of, decided about; `base_branch` is the baseline there, if it could
    be read.
    """
    baseline = settings.baseline
    results: list[CaseResult] = []
    nodes: dict[str, str] = {}
    commands: dict[str, str] = {}
    rubrics = {}
    for run in runs:
        results += run.results
        nodes |= run.nodes
        commands |= run.commands
        for rubric in run.suite.rubrics:
            rubrics[run.name, rubric.id] = rubric
    session = replace(
        settings.session,
        results=results,
        nodes=nodes,
        commands=commands,
        rubrics=rubrics,
        grounds={run.name: run.grounds for run in runs},
        judges=[line for run in runs for line in run.judges],
    )
    decisions = {}
    extents = {}
    earlier = {}
    tolerated = set()
    prompt_changes: list[PromptChange] = []
    for run in runs:
        accepted_by_change = ""
        if isinstance(base_branch, Baseline) and baseline.content is not None:
            accepted_by_change = accepted_by(base_branch, baseline.content, run.name)
        decision, changes = _decide(run, session, settings, accepted_by_change)
        decisions[run.name] = decision
        prompt_changes += changes
        for result in run.results:
            if baseline.tolerated(result, run.suite.gate) is not None:
                tolerated.add(result.case_id)
        # A worker that died took its cases with it.
        interrupted = settings.stopped or bool(decision.never_reported)
        extents[run.name] = Extent(len(run.results), len(run.cases.specs), interrupted=interrupted)
        if decision.comparison is not None and baseline.content is not None:
            for compared_id in decision.comparison.compared.ids:
                earlier[compared_id] = baseline.content.cases[compared_id]
    return replace(
        session,
        columns=session.verdicts,
        decisions=decisions,
        extents=extents,
        earlier=earlier.get,
        prompt_changes=prompt_changes,
        tolerated=frozenset(tolerated),
    )


def _decide(
    run: SuiteRun, session: Session, settings: EndSettings, accepted_by_change: str
) -> tuple[Decision, Sequence[PromptChange]]:
    """Decide about one suite, with what a change of its baseline accepts; and the judges that are
    others than the baseline's.

    Where a session was stopped on purpose and nothing decides, what was not reached is nobody's
    loss.
    """
    suite, content = run.suite, settings.baseline.content
    selected = run.selected
    if settings.stopped and not is_active(suite.gate, content):
        selected &= {result.case_id for result in run.results}
    scope = Scope.of(run.cases.specs, selected)
    comparison = compare(content, session.results, session.of_suite(run.name), scope)
    changes = []
    asked = {}
    subjects = {}
    if content is not None:
        random = {judge.name or "" for judge in suite.judges if judge.is_random}
        for line in run.judges:
            of_judge = comparison.everything.judge.equals(line.judge)
            compared_ids = [*comparison.everything.ids[of_judge]]
            if not len(comparison.everything):
                # Such as before the verdicts of a new prompt are recorded.
                compared_ids += content.ids_of(line)
            digests = content.earlier_judges(compared_ids)
            asked[line.judge] = how_asked(line, digests, content, is_random=line.judge in random)
            if change := content.prompt_change(line, digests):
                changes.append(change)
                if change.is_reworded:
                    of_name = f' of judge "{line.judge}"' if line.judge else ""
                    subjects[line.judge] = f"the new prompt{of_name}"
    no_verdict = ""
    reasons = Counter(result.why.reason for result in run.results if result.why.reason)
    for reason, number in reasons.most_common(1):
        no_verdict = f"({counted(number, 'case')}: {reason})"
    decision = decide(
        comparison,
        suite.gate,
        Held(
            scope,
            asked,
            subjects,
            run.left_out,
            no_verdict=no_verdict,
            accepts=settings.baseline.update,
            wrong_labels=len(wrongly_labelled(run.results, run.grounds)),
            changed=accepted_by_change,
            turning="if so, correct `labels.map`" if suite.labels else "",
        ),
    )
    is_uncompared = any(reason.kind == "uncompared" for reason in decision.reasons)
    # Verdicts that are missing are recorded first: there is one next command.
    if is_uncompared and "unrecorded" not in decision.unscored.values():
        decision = replace(decision, update_command=settings.update_command(suite))
    return decision, changes


def _pages(
    runs: Iterable[SuiteRun], session: Session, settings: EndSettings
) -> tuple[Path | None, Sequence[Path]]:
    """The HTML report of a session, and all reports that it writes: where none is named, what is
    not green has one in its results folder, that of the first suite.
    """
    reports = settings.reports
    for path in reports:
        if path.suffix.lower() == HtmlReport.suffix:
            return path, reports
    if NO_PAGE not in [path.name for path in reports]:
        for run in runs:
            page = run.suite.results_dir / PAGE
            # What is looked at again leaves the page alone that it was read in.
            is_kept = settings.reviewed and len(run.results) < len(run.cases.specs)
            verdicts = session.of_suite(run.name)
            failed = {*verdicts.ids[verdicts.wrong | verdicts.unscored]} - session.tolerated
            is_green = not failed and session.decisions[run.name].passed
            if not (is_green or is_kept or _is_of_others(page)):
                return page, [page, *reports]
    return None, reports


def _is_of_others(path: Path) -> bool:
    """Whether something stands there that no session wrote, such as another tool's report."""
    if not path.is_file():
        return path.exists()
    with path.open("rb") as file:
        return file.read(len(PAGE_HEAD)) != PAGE_HEAD


def _remove_old_pages(runs: Iterable[SuiteRun], session: Session) -> None:
    """Remove what an earlier session left of suites that ran whole, wherever the page of this one
    is, or without one: it shows what is no longer so.
    """
    for run in runs:
        path, extent = run.suite.results_dir / PAGE, session.extents[run.name]
        is_whole = extent.cases == extent.of and not extent.interrupted
        is_new = session.page is not None and absolute(path) == absolute(session.page)
        if is_whole and not is_new and not _is_of_others(path):
            # A folder that cannot be written has been told of.
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def write_suite_outputs(run: SuiteRun, session: Session, outputs: Outputs) -> None:
    """Write the cases and the results of one suite of a session, and RAND's files.

    A file that cannot be written becomes a sentence, and the others are written; files of unchanged
    content are not written again.
    """
    suite = run.suite
    ran = {result.case_id: result for result in run.results}
    cases = _write_made_cases(run, outputs)
    earlier, notes = earlier_results(suite, run.cases, ran, RecordIndex(cases.stored))
    outputs.problems += notes
    by_case = {**earlier, **ran}
    results = [by_case[case] for case in run.cases.specs if case in by_case]
    entries = dict(outputs.records.entries)
    reused = suite.frozen is not None or not suite.config.rand.renew
    for made_id, of_case in grouped_by(results, "made_id").items():
        entry = cases.stored.get(made_id)
        is_made = any(result.outcome in MADE for result in of_case)
        # An older record of a case that this session failed to make again is not of this session.
        if entry is not None and (is_made or reused or made_id in cases.made):
            entries[made_id] = entry
        elif is_made and not of_case[0].spec.variant:
            # Its spool could not be written, and the session has said so.
            outputs.failed = True
    outputs.records = RecordIndex(entries)
    if suite.config.output.rand:
        from pytest_jrh.reports.rand_files import write_rand_files

        write_rand_files(run, session, results, outputs)
    outputs.write(ledger_path(suite), ledger_text(run.judges, results, suite, session.redactor))
    outputs.records = RecordIndex({**entries, **cases.rejected})


@frozen
class _MadeCases:
    """The made cases of a suite: `stored` has all records of its tests, `made` those of this
    session, and `rejected` those without a result because the verifier rejected them.
    """

    stored: dict[str, RecordEntry]
    made: Mapping[str, RecordEntry]
    rejected: Mapping[str, RecordEntry]


def _write_made_cases(run: SuiteRun, outputs: Outputs) -> _MadeCases:
    """Add the cases that this session has made to their files, and take out those that it found to
    be none.
    """
    spooled = Spooled(RecordIndex(), RecordIndex())
    try:
        specs = run.cases.specs.values()
        spooled = read_spools(run.spools, frozenset(map(generation_id, specs)))
    except (OSError, InputError) as error:
        outputs.problem(f"The cases made in this session cannot be read: {cause(error)}.")
    refused, settled, gone = set(), set(), set()
    for made_id, [*_, result] in grouped_by(run.results, "made_id").items():
        if result.extra.rejected is not None:
            refused.add(made_id)
        elif result.outcome in (*MADE, "no_case"):
            settled.add(made_id)
        if result.outcome in ("no_case", "unlabelled"):
            gone.add(made_id)
    stored: dict[str, RecordEntry] = {}
    all_rejected: dict[str, RecordEntry] = {}
    by_folder = grouped((test.output_dir, test.name) for test in run.suite.tests)
    for folder, tests in by_folder.items():
        new_cases = _of_tests(tests, spooled.made)
        rejected = _of_tests(tests, spooled.rejected, refused)
        if _is_written(run):
            rejected = _updated(
                folder / REJECTED_FILE, rejected, settled, run, outputs, overwrite=True
            )
        all_rejected |= _of_tests(tests, rejected, refused).entries
        target, renew = run.suite.frozen or folder / CASES_FILE, run.suite.config.rand.renew
        index = _updated(target, new_cases, gone, run, outputs, overwrite=renew)
        stored |= _of_tests(tests, index).entries
    return _MadeCases(stored, spooled.made.entries, all_rejected)


def _is_written(run: SuiteRun) -> bool:
    return run.suite.config.rand.write_jsonl and run.suite.frozen is None


def _of_tests(
    tests: Sequence[str], index: RecordIndex, picked: Set[str] | None = None
) -> RecordIndex:
    """The records of some tests, of those that are picked."""
    entries = {}
    for made_id, entry in index.entries.items():
        if entry.spec.test in tests and (picked is None or made_id in picked):
            entries[made_id] = entry
    return RecordIndex(entries)


def _updated(
    target: Path,
    new: RecordIndex,
    dropped: Set[str],
    run: SuiteRun,
    outputs: Outputs,
    *,
    overwrite: bool,
) -> RecordIndex:
    """Put new records into a file, and give where all of its records lie then; the new ones alone
    where it cannot be read.

    A session of all cases drops the records of cases that are gone. The file of a frozen suite
    stays as it is.
    """
    try:
        before = remaining = run.frozen or read_jsonl(target)
    except (OSError, InputError) as error:
        outputs.problem(
            f"{target} cannot be read, so nothing was written to this file:\n{cause(error)}"
        )
        return new
    is_whole = len(run.results) == len(run.cases.specs)
    if is_whole and run.suite.config.rand.renew and run.suite.frozen is None:
        remaining = without_gone(run.suite, run.cases, before)
    if number := len(before.entries) - len(remaining.entries):
        outputs.problems.append(
            f"Dropped from {target}: {counted(number, 'record')} of cases that are no longer in "
            "the suite."
        )
    index = merge(remaining, new, dropped=frozenset(dropped), overwrite=overwrite)
    if _is_written(run):
        try:
            index = outputs.record_files[target] = write_jsonl(target, index)
        except OSError as error:
            outputs.problem(f"{target} was not written: {cause(error)}.")
    return index


def write_reports(paths: Sequence[Path], session: Session) -> tuple[list[Path], list[str]]:
    """Write a report into each of the files, by the end of its name, and what environment variables
    ask for; gives the files and what went wrong.

    A report that cannot be written is a sentence, and the others are written all the same.
    """
    written, problems = [], []
    for report in REPORTS:
        for path in paths:
            if report.suffix and path.suffix.lower() == report.suffix:
                try:
                    report.write(path, session)
                    written.append(path)
                except (OSError, InputError) as error:
                    problems.append(f"{path} was not written: {cause(error)}.")
        if shared := os.environ.get(report.variable):
            try:
                # Appended, because the file is shared by all that runs in the step.
                with Path(shared).open("ab") as file:
                    file.write(encoded(report.text(session)))
            except OSError as error:
                problems.append(f"The step summary was not written: {cause(error)}.")
    return written, problems


def _update_baseline(
    runs: Sequence[SuiteRun], session: Session, settings: EndSettings
) -> tuple[Sequence[str], Sequence[str]]:
    """Update the baseline where that is asked for; what was done, and what went wrong."""
    baseline = settings.baseline
    case_ids = set[str]()
    selected = set[str]()
    for run in runs:
        # A line of what was left out on purpose would say for ever what nobody asks.
        case_ids |= run.cases.specs.keys() - run.left_out
        selected |= run.selected
    scope = Scope.of(case_ids, selected)
    is_first = baseline.update and baseline.content is None and not scope.deselected
    try:
        done = baseline.accept(
            session.results,
            scope,
            session.node,
            finished=not any(extent.interrupted for extent in session.extents.values()),
            judges=session.judges,
            redactor=session.redactor,
        )
    except (OSError, InputError) as error:
        return (), [f"The baseline {baseline.name} was not written: {cause(error)}."]
    if is_first and baseline.path is not None and baseline.path.exists():
        # The limits that a first baseline should have beside it: updates that each lose a little
        # may lose much together.
        for run in runs:
            limits = proposed_limits(session.of_suite(run.name))
            if limits and not run.suite.gate.has_limits:
                keys = [f"{key}: {_limit_text(value)}" for key, value in limits.items()]
                where, text = "to", f"gate: {{{', '.join(keys)}}}"
                lines = run.suite.config_file.read_text("utf-8").splitlines()
                for number, line in enumerate(lines, start=1):
                    if line.startswith("gate:"):
                        where, text = f"below `gate:` (line {number}) in", " and ".join(keys)
                config = f"{run.name}'s config" if len(runs) > 1 else "the config"
                text = f"add {where} {config}: {text}"
                done.append(f"To allow two more mistakes of each kind than today, {text}")
    return done, ()


def _limit_text(limit: float | Mapping[str, float]) -> str:
    """A limit as a config has it, of several classes those of each."""
    if not isinstance(limit, Mapping):
        return f"{limit:g}"
    of_classes = [f"{json.dumps(word)}: {share:g}" for word, share in limit.items()]
    return f"{{{', '.join(of_classes)}}}"


_PLAIN = "\x1b[0m"
_CODES = {"bold": 1, "red": 31, "green": 32, "yellow": 33}


def print_ending(
    concluded: Concluded,
    folder: Path,
    verbosity: int,
    *,
    first: Iterable[str] = (),
    notices: Iterable[str],
) -> None:
    """Print what a merge or a table comes to, on a terminal in colours; `first` lines wrapped."""
    width = shutil.get_terminal_size().columns
    display, first = Display(folder, width, verbosity), all_wrapped(first, width)
    has_colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for text, style in ending_lines(concluded, display, first=first, notices=notices):
        codes = [f"\x1b[{_CODES[name]}m" for name in style.split() if has_colours]
        sys.stdout.write(f"{''.join(codes)}{text}{_PLAIN if codes else ''}\n")


def ending_lines(
    concluded: Concluded | None,
    display: Display,
    *,
    first: Iterable[str] = (),
    notices: Iterable[str],
) -> list[Styled]:
    """What is printed of a session, a merge or a table: `first` lines, updates of the baseline,
    notices, and the lines of reports, of which the answer is the last.

    None is a session in which no case has ended. Whatever names are in a line, and wherever it was
    wrapped, GitHub's runner takes none for a command.
    """
    lines = list(first)
    answer = []
    if concluded is not None:
        width = min(display.width, _WIDEST)
        display = replace(display, width=width, written=concluded.written)
        for report in REPORTS:
            for line in report.lines(concluded.session, display):
                answer.append(Styled(escape_commands(line.text), line.style))
        lines += concluded.updates
    lines += [f"note: {notice}" for notice in notices]
    return [*(Styled(escape_commands(line)) for line in lines), *answer]
