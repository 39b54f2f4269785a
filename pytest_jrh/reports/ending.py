"""How a session ends, in pytest or in a merge of shards: decisions, files, reports, baseline, and
whether it is green.

Nothing here knows pytest, so that what several machines ran ends as what one ran.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.config.options import NO_PAGE
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.files import absolute, encoded, relative_path
from pytest_jrh.core.ids import case_id, generation_id
from pytest_jrh.core.model import MADE, UNSCORED
from pytest_jrh.core.text import Styled, escape_commands
from pytest_jrh.reports.html import HtmlReport
from pytest_jrh.reports.json_values import JsonReport
from pytest_jrh.reports.markdown import MarkdownReport
from pytest_jrh.reports.provenance import NO_ORIGIN, SessionOrigin
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.session import Extent, Session
from pytest_jrh.reports.suite_files import Assembler, Item, outcomes_of
from pytest_jrh.reports.terminal import Annotation, TerminalReport
from pytest_jrh.stats.baseline import JudgePrompt, PromptChange, Scope, compare
from pytest_jrh.stats.decision import Held, decide, is_active
from pytest_jrh.stats.limits import proposed_limits
from pytest_jrh.store.baseline import clean_prompt
from pytest_jrh.store.ledger import ledger_line, ledger_path
from pytest_jrh.store.outputs import Outputs, cause
from pytest_jrh.store.reuse import earlier_results
from pytest_jrh.store.spools import RecordIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.core.redact import Redactor
    from pytest_jrh.reports.report import Display
    from pytest_jrh.reports.session import SuiteRun
    from pytest_jrh.stats.decision import Decision
    from pytest_jrh.store.baseline import BaselineFile
    from pytest_jrh.store.reuse import SuiteCases


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
    Annotation(),
    # Its answer is the last that is printed.
    TerminalReport(),
]

_NOTHING_JUDGED = "No case reached a verdict, so this run is not green."
_UNWRITTEN = (
    "This run is not green, because of failed writes. Free disk space or fix the permissions, and "
    "run again: recorded calls are not made again."
)


@dataclass(frozen=True, slots=True)
class EndSettings:
    """What a session is held against, what it writes beside the suites' own files, and how it
    ended.

    `folder` is where it was started: paths are named relative to it. `stopped` says that it was
    ended before its time; `unreported` are cases that took calls and whose items did not run, and
    `model_changes` sentences about models that are others than when they were recorded.
    `update_command` gives the command that updates the baseline of a suite.
    `origin` says where the figures come from. What failed has an HTML report in its results folder,
    unless `reports` names another file, or none.
    """

    baseline: BaselineFile
    reports: Sequence[Path]
    redactor: Redactor
    folder: Path
    update_command: Callable[[Suite], str]
    record_command: str = ""
    wall_seconds: float = 0.0
    stopped: bool = False
    unreported: Sequence[CaseResult] = ()
    model_changes: Sequence[str] = ()
    origin: SessionOrigin = NO_ORIGIN


@dataclass(frozen=True, slots=True)
class Concluded:
    """What a session came to. `written` are the reports, `folders` those of the suites' own files,
    `updates` and `problems` sentences for the user.
    """

    session: Session
    passed: bool
    written: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    updates: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def conclude(runs: Sequence[SuiteRun], settings: EndSettings) -> Concluded:
    """Decide about each suite, write all that follows from the results, and say whether the session
    is green.

    `runs` has at least one suite. What cannot be written becomes a sentence in `problems`, and the
    session is not green; all else is written.
    """
    decisions = {run.name: _decide(run, settings) for run in runs}
    ends = []
    problems: list[str] = []
    for run in runs:
        decision = decisions[run.name]
        interrupted = _interrupted(decision, settings)
        end = write_suite_outputs(run, settings.redactor, decision, interrupted=interrupted)
        ends.append(end)
        problems += end.problems
    # Once all suites are written: one that was written later has moved the records of others in a
    # file that both write to.
    files: dict[Path, RecordIndex] = {}
    for end in ends:
        files |= end.record_files
    entries = {}
    for made_id, entry in RecordIndex.joined([end.records for end in ends]).entries.items():
        file = files.get(entry.place.path, RecordIndex())
        entries[made_id] = file.entries.get(made_id, entry)
    session = replace(_session(runs, decisions, settings), records=RecordIndex(entries))
    unwritten = any(end.failed for end in ends)
    written: Sequence[Path] = ()
    if session.results or settings.stopped:
        page, reports = named_page(settings.reports), settings.reports
        if page is None and NO_PAGE not in [path.name for path in reports]:
            # In the folder of the first suite that is not green.
            for run in runs:
                own = run.suite.results_dir / PAGE
                if _is_red(run, session) and not _is_of_others(own):
                    page, reports = own, [own, *reports]
                    break
        _remove_old_pages(page, runs, session)
        session = replace(session, page=page)
        written, missing = write_reports(reports, session)
        if page not in written:
            session = replace(session, page=None)
        problems += missing
        unwritten = unwritten or bool(missing)
    updates, refused = _accepted(runs, session, settings)
    problems += refused
    outcomes = {result.outcome for result in session.results}
    judged = not outcomes or bool(outcomes & {*MADE, "unlabelled"})
    if not judged:
        problems.append(_NOTHING_JUDGED)
    if unwritten:
        problems.append(_UNWRITTEN)
    gates_pass = all(decision.passed for decision in decisions.values())
    return Concluded(
        session,
        passed=gates_pass and judged and not refused and not unwritten,
        written=tuple(written),
        folders=tuple(dict.fromkeys(run.suite.results_dir for run in runs)),
        updates=tuple(updates),
        problems=tuple(problems),
    )


def ending_lines(
    concluded: Concluded | None,
    display: Display,
    *,
    first: Iterable[str] = (),
    notices: Iterable[str] = (),
    more: Iterable[str] = (),
) -> list[Styled]:
    """What is printed of a session, a merge or a table: `first` lines, figures and decisions, files
    that were written, notices, `more` lines such as those about unused cassettes, and in a job of
    GitHub Actions its annotations; the answer is the last.

    None is a session in which no case has ended. Whatever names are in a line, and wherever it was
    wrapped, GitHub's runner takes none for a command but those of annotations.
    """
    lines: list[Styled] = [*map(Styled, first)]
    last: list[Styled] = []
    if concluded is not None:
        for report in REPORTS:
            lines += report.lines(concluded.session, display)
            of_report = list(report.last_lines(concluded.session, display))
            last += of_report if report.is_for_runner else map(_plain, of_report)
        lines += map(Styled, concluded.updates)
        # The answer names the page.
        named = concluded.session.page if last else None
        for path in concluded.written:
            if path != named:
                lines.append(Styled(f"report: {relative_path(path, display.folder)}"))
        folders = [str(relative_path(folder, display.folder)) for folder in concluded.folders]
        if folders and not (named is not None and concluded.folders == (named.parent,)):
            lines.append(Styled(f"results: {', '.join(folders)}"))
    lines += [Styled(f"note: {notice}") for notice in notices]
    lines += map(Styled, more)
    if not lines and last:
        # It parts the answer from what stands above it.
        last = last[1:]
    return [*map(_plain, lines), *last]


def _plain(line: Styled) -> Styled:
    return line._replace(text=escape_commands(line.text))


def write_suite_outputs(
    run: SuiteRun,
    redactor: Redactor,
    decision: Decision | None = None,
    *,
    interrupted: bool = False,
) -> Outputs:
    """Write the cases and the results of one suite, and what RAND's harness writes where that is
    asked for.

    `decision` is what the gate says of the suite. A file that cannot be written becomes a sentence,
    and the others are written; files of unchanged content are not written again.
    """
    suite, cases = run.suite, run.cases
    latest = {result.case_id: result for result in run.results}
    items = []
    for spec in run.specs:
        items.append(Item(spec, generation_id(spec), latest.get(case_id(spec))))
    outputs = Outputs(redactor)
    assembled = Assembler(suite, outputs, frozen=run.frozen, cases=cases)
    assembled.assemble(items, run.spools)
    if cases is not None:
        items = _with_earlier(suite, cases, items, assembled, outputs)
    by_case: dict[str, list[Item]] = {}
    for item in items:
        by_case.setdefault(item.made_id, []).append(item)
    entries = {}
    for made_id, case_items in by_case.items():
        entry = assembled.entry(made_id, case_items)
        if entry is not None:
            entries[made_id] = entry
        elif not case_items[0].spec.variant and outcomes_of(case_items) & set(MADE):
            # Its spool could not be written, and the session has said so.
            outputs.failed = True
    if suite.config.output.rand:
        from pytest_jrh.reports.rand_files import write_rand_files

        write_rand_files(run, items, assembled, decision, outputs, interrupted=interrupted)
    lines = []
    for item in items:
        if item.result is not None:
            lines.append(f"{ledger_line(item.result, suite, redactor, kept=item.kept)}\n")
    outputs.write(ledger_path(suite), "".join(lines))
    outputs.records = RecordIndex.joined([RecordIndex(entries), RecordIndex(assembled.rejected)])
    return outputs


def _with_earlier(
    suite: Suite,
    cases: SuiteCases,
    items: Sequence[Item],
    assembled: Assembler,
    outputs: Outputs,
) -> list[Item]:
    """Add earlier results of cases that did not run, in the suite's order."""
    by_case = {case_id(item.spec): item for item in items}
    ran = {case: item.result for case, item in by_case.items() if item.result is not None}
    try:
        earlier, notes = earlier_results(suite, cases, ran, assembled.read)
    except OSError as error:
        earlier, notes = {}, []
        outputs.problem(
            "The results of earlier sessions cannot be used, and could not be moved aside: "
            f"{cause(error)}."
        )
    outputs.problems += notes
    for case, result in earlier.items():
        spec = cases.specs[case]
        by_case[case] = Item(spec, generation_id(spec), result, kept=True)
    return [by_case[case] for case in cases.specs if case in by_case]


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


def named_page(reports: Iterable[Path]) -> Path | None:
    """The HTML report among the files that are asked for."""
    return next((path for path in reports if path.suffix.lower() == HtmlReport.suffix), None)


def _remove_old_pages(page: Path | None, runs: Iterable[SuiteRun], session: Session) -> None:
    """Remove what an earlier session left of suites that ran whole, wherever the `page` of this one
    is, or without one: it shows what is no longer so.
    """
    new = None if page is None else absolute(page)
    for run in runs:
        path, extent = run.suite.results_dir / PAGE, session.extents[run.name]
        is_whole = extent.cases == extent.of and not extent.interrupted
        if is_whole and absolute(path) != new and not _is_of_others(path):
            # A folder that cannot be written has been told of.
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def _is_of_others(path: Path) -> bool:
    """Whether something stands there that no session wrote, such as another tool's report."""
    if not path.is_file():
        return path.exists()
    with path.open("rb") as file:
        return file.read(len(PAGE_HEAD)) != PAGE_HEAD


def _is_red(run: SuiteRun, session: Session) -> bool:
    """Whether a case has failed or has no verdict, or the gate is not passed."""
    if not session.decisions[run.name].passed:
        return True
    for result in run.results:
        is_tolerated = result.case_id in session.tolerated
        if result.outcome in UNSCORED or (result.outcome == "disagree" and not is_tolerated):
            return True
    return False


def _decide(run: SuiteRun, settings: EndSettings) -> Decision:
    """Decide about one suite.

    Where a session was stopped on purpose and nothing decides, what was not reached is nobody's
    loss.
    """
    suite, baseline = run.suite, settings.baseline
    rules, content = suite.gate, baseline.content
    wanted = run.selected
    if settings.stopped and not is_active(rules, content):
        wanted &= {result.case_id for result in run.results}
    scope = Scope.of(run.known, wanted)
    if run.subset is not None and content is not None:
        content = content.of_subset(run.subset[1], scope.suites)
    changes: list[PromptChange] = []
    if content is not None:
        comparison = compare(content, run.results, scope)
        changes = content.changes(comparison, _prompts([run], settings))
    reworded = {
        change.now.judge
        for change in changes
        if change.before is not None and change.before != change.now.text
    }
    subject = "the new prompt"
    held = Held(
        content,
        scope,
        widths={(suite.name, rubric.id): rubric.width for rubric in suite.rubrics},
        # The prompt is the same: the model is another one.
        others={change.now.judge for change in changes if change.before == change.now.text},
        subjects={judge: f"{subject} of judge {judge}" if judge else subject for judge in reworded},
        left_out=run.left_out,
        accepts=baseline.updating,
        part=run.subset[0] if run.subset is not None else "",
    )
    decision = decide(run.results, rules, held)
    # Verdicts that are missing are recorded first: there is one next command.
    updates = decision.uncompared and "unrecorded" not in decision.unscored.values()
    return replace(decision, update_command=settings.update_command(suite) if updates else "")


def _session(
    runs: Sequence[SuiteRun], decisions: Mapping[str, Decision], settings: EndSettings
) -> Session:
    """All that reports are made of."""
    results: list[CaseResult] = []
    nodes: dict[str, str] = {}
    commands: dict[str, str] = {}
    rubrics = {}
    extents = {}
    earlier: dict[str, CaseResult] = {}
    content = settings.baseline.content
    tolerated: set[str] = set()
    prompt_changes: list[PromptChange] = []
    prompts = _prompts(runs, settings)
    for run in runs:
        results += run.results
        for result in run.results:
            if settings.baseline.tolerated(result, run.suite.gate) is not None:
                tolerated.add(result.case_id)
        nodes.update(run.nodes)
        commands.update(run.commands)
        for rubric in run.suite.rubrics:
            file = str(absolute(settings.folder / rubric.file))
            rubrics[run.name, rubric.id] = replace(rubric, file=file)
        decision = decisions[run.name]
        interrupted = _interrupted(decision, settings)
        extents[run.name] = Extent(len(run.results), len(run.known), interrupted=interrupted)
        comparison = decision.comparison
        if comparison is not None and content is not None:
            earlier |= {pair.now.case_id: pair.before for pair in comparison.pairs}
            prompt_changes += content.changes(comparison, prompts)
    return Session(
        tuple(results),
        decisions=decisions,
        wall_seconds=settings.wall_seconds,
        nodes=nodes,
        commands=commands,
        rubrics=rubrics,
        record_command=settings.record_command,
        extents=extents,
        grounds={run.name: run.grounds for run in runs},
        earlier=earlier,
        prompt_changes=prompt_changes,
        origin=settings.origin,
        unreported=settings.unreported,
        model_changes=settings.model_changes,
        tolerated=frozenset(tolerated),
        redactor=settings.redactor,
        probed={run.name: run.probed for run in runs},
        folder=settings.folder,
    )


def _interrupted(decision: Decision, settings: EndSettings) -> bool:
    """Whether a suite was not run to its end; a worker that died took its cases with it."""
    return settings.stopped or bool(decision.never_reported)


def _accepted(
    runs: Sequence[SuiteRun], session: Session, settings: EndSettings
) -> tuple[Sequence[str], Sequence[str]]:
    """Update the baseline where that is asked for; what was done, and what went wrong."""
    known: set[str] = set()
    selected: set[str] = set()
    for run in runs:
        known.update(run.known)
        selected.update(run.selected)
    scope = Scope.of(known, selected)
    is_whole = not any(_interrupted(decision, settings) for decision in session.decisions.values())
    is_first = settings.baseline.updating and settings.baseline.content is None
    try:
        done = settings.baseline.accept(
            session.results,
            scope,
            session.node,
            finished=is_whole,
            prompts=_prompts(runs, settings),
            redactor=settings.redactor,
        )
    except (OSError, InputError) as error:
        return (), [f"The baseline {settings.baseline.name} was not written: {cause(error)}."]
    path = settings.baseline.path
    if is_first and not scope.deselected and path is not None and path.exists():
        # The limits that a first baseline should have beside it: updates that each lose a little
        # may lose much together.
        done = list(done)
        for run in runs:
            limits = proposed_limits(run.results)
            if limits and not run.suite.gate.has_limits:
                whose = f"{run.name}'s" if len(runs) > 1 else "the"
                keys = ", ".join(f"{key}: {value:g}" for key, value in limits.items())
                text = f"Add to {whose} config, two cases below these figures: gate: {{{keys}}}"
                done.append(text)
    return done, ()


def _prompts(runs: Iterable[SuiteRun], settings: EndSettings) -> list[JudgePrompt]:
    """The prompts of all judges, as they may be shown, with their whole paths."""
    prompts = []
    for run in runs:
        for judge_prompt in run.prompts:
            prompt = clean_prompt(judge_prompt, settings.redactor)
            file = str(absolute(settings.folder / prompt.file)) if prompt.file else ""
            prompts.append(replace(prompt, file=file))
    return prompts
