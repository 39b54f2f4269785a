"""GitHub's workflow commands: each regression as an error at its rubric's line, and what came of a
prompt that changed at its own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.core.text import Styled, counted, one_line, shortened
from pytest_jrh.reports.grounds import label_sentences
from pytest_jrh.reports.report import Report
from pytest_jrh.stats.diagnosis import section_warnings
from pytest_jrh.stats.figures import flicker_sentence, sections

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.reports.report import Display
    from pytest_jrh.reports.session import Session
    from pytest_jrh.store.baseline import PromptChange


# GitHub shows ten annotations of a kind per step, and drops the others without a word.
MOST_ANNOTATIONS = 10
_LONGEST_REASON = 500


class Annotations(Report):
    """What GitHub shows beside the changed lines of a pull request; in its jobs alone."""

    name = "annotations"

    def last_lines(self, session: Session, display: Display) -> Iterable[Styled]:
        if os.environ.get("GITHUB_ACTIONS") != "true":
            return []
        workspace = Path(os.environ.get("GITHUB_WORKSPACE") or display.workspace)
        return map(Styled, annotation_lines(session, workspace))


def annotation_lines(session: Session, base: Path) -> list[str]:
    """Write `::error file=,line=,title=::message` for each prompt that changed and each regression,
    at most ten, and notices: how many more there are, that the judges contradict themselves, what
    to know about the figures of each judge, and what the labels rest on.

    Regressions that the gate lets through are warnings. `base` is the folder that paths are to be
    relative to: a rubric file outside it is not named. No text of a model or a file can begin or
    change a command.
    """
    results = {result.case_id: result for result in session.results}
    flickered: set[str] = set()
    regressions = []
    # Those that fail the gate first.
    for decision in sorted(session.decisions.values(), key=lambda decision: decision.passed):
        flickered.update(decision.flickered)
        kind = "warning" if decision.passed else "error"
        regressions += [(results[case], kind) for case in decision.regressions if case in results]
    prompts = [_prompt(change, session, base) for change in session.prompt_changes]
    lines = [line for line in prompts if line]
    most = MOST_ANNOTATIONS - len(lines)
    for result, kind in regressions[: max(0, most)]:
        is_flicker = result.case_id in flickered
        lines.append(_annotation(result, session, kind, base, flickered=is_flicker))
    unnamed = len(regressions) - max(0, most)
    if unnamed > 0:
        message = f"{counted(unnamed, 'more regression')}: the report names them all."
        lines.append(_notice("Judge regressions", message))
    if session.table.overall.flicker.count:
        lines.append(_notice("Judge flicker", flicker_sentence(session.table.overall)))
    for section in sections(session.table):
        if warnings := section_warnings(section):
            title = f"Judge figures: {one_line(section.label)}"
            lines.append(_notice(title, "\n".join(map(one_line, warnings))))
    # One notice: GitHub drops what is over ten of a kind.
    if labels := label_sentences(session):
        lines.append(_notice("Judge labels", "\n".join(map(one_line, labels))))
    return lines


def _prompt(change: PromptChange, session: Session, base: Path) -> str:
    """What came of a prompt that changed; nothing of one that is no file of the project."""
    decision = session.decisions.get(change.now.suite)
    file = _inside(change.now.file, base)
    if file is None or decision is None or change.before == change.now.text:
        return ""
    pairs = decision.comparison.pairs if decision.comparison is not None else ()
    compared = [pair.now.case_id for pair in pairs if pair.now.judge == change.now.judge]
    worse = len({*compared} & {*decision.regressions})
    better = len({*compared} & {*decision.fixes})
    kind = "notice"
    if worse:
        kind = "warning" if decision.passed else "error"
    fixes = "1 fix" if better == 1 else f"{better:,} fixes"
    message = (
        f"With this prompt: {counted(worse, 'regression')}, {fixes} in "
        f"{counted(len(compared), 'case')} compared with the baseline."
    )
    properties = {"file": file, "line": str(change.line), "title": "The judge's prompt changed"}
    return f"::{kind} {_listed(properties)}::{_message(message)}"


def _notice(title: str, message: str) -> str:
    return f"::notice title={_property(title)}::{_message(message)}"


def _annotation(
    result: CaseResult, session: Session, kind: str, base: Path, *, flickered: bool
) -> str:
    event = "Flicker" if flickered else "Regression"
    properties = {"title": f"{event}: {one_line(result.spec.rubric_id)}"}
    rubric = session.rubrics.get((result.spec.suite, result.spec.rubric_id))
    file = _inside(rubric.file, base) if rubric is not None else None
    if file is not None and rubric is not None:
        properties = {"file": file, "line": str(rubric.line), **properties}
    judge = f"The judge {one_line(result.judge)}" if result.judge else "The judge"
    sentence = (
        f"{judge} gave {result.scores_text}, the right answer is {result.expected}; in the "
        "baseline it was right."
    )
    if flickered:
        sentence += " The judge has not changed: asked again, it says something else."
    reasoning = shortened(one_line(result.reasoning), _LONGEST_REASON)
    message = "\n".join([sentence, reasoning, one_line(session.node(result.case_id))])
    return f"::{kind} {_listed(properties)}::{_message(message)}"


def _listed(properties: Mapping[str, str]) -> str:
    return ",".join(f"{name}={_property(value)}" for name, value in properties.items())


def _inside(file: str, base: Path) -> str | None:
    """The file relative to a folder; None where it is no file, or outside."""
    if not file:
        return None
    path = base / file
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else None


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
