"""The cases of the HTML report: the table, whose columns are declared once and whose most urgent
row stands first; a compressed block per source run, whose turns are stored once; and the texts that
the page is searched by.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlencode

from pytest_jrh.core.diffs import turn_pairs
from pytest_jrh.core.files import relative_path
from pytest_jrh.core.model import (
    JUDGED,
    UNSCORED,
    Case,
    CaseResult,
    equal_verdicts,
    score_counts,
)
from pytest_jrh.core.text import one_line, visible
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.reports.case_facts import (
    FACTS,
    ReportedCase,
    case_basis,
    case_lines,
    earlier_verdict,
    label_votes,
    repeats_text,
    shown_edits,
)
from pytest_jrh.reports.failures import without_earlier
from pytest_jrh.reports.session import case_key
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.store.records import levels_data, perturbation_data

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_jrh.reports.case_facts import WhoSaid
    from pytest_jrh.reports.session import Session


RunKey: TypeAlias = "tuple[str, str, int]"

_HEADER = re.compile(r"\[\d+\] ")
_LONGEST_WHEN_CUT = 2_000
_TITLE_WIDTH = 160


def run_key(result: CaseResult) -> RunKey:
    """Which source run a result is about."""
    return result.spec.suite, result.spec.run_id, result.spec.epoch


def _urgency(session: Session) -> Callable[[CaseResult], int]:
    """How soon a case is to be looked at: regressions first, then other wrong verdicts, then what
    has none.
    """
    regressions: set[str] = set()
    for decision in session.decisions.values():
        regressions.update(decision.regressions)

    def urgency(result: CaseResult) -> int:
        if result.case_id in regressions:
            return 0
        if result.outcome == "disagree":
            return 1
        return 2 if result.outcome in UNSCORED else 3

    return urgency


def by_run(session: Session) -> dict[RunKey, list[CaseResult]]:
    """The results of each source run, by what is kept first: regressions, then disagreements."""
    groups: dict[RunKey, list[CaseResult]] = {}
    for result in session.results:
        groups.setdefault(run_key(result), []).append(result)
    urgency = _urgency(session)
    ranked = sorted(groups.items(), key=lambda item: min(2, *map(urgency, item[1])))
    return dict(ranked)


def most_urgent(session: Session, most: int) -> Session:
    """The session with its regressions, other wrong verdicts, cases without one, up to `most`."""
    if len(session.results) <= most:
        return session
    kept = {result.case_id for result in sorted(session.results, key=_urgency(session))[:most]}
    return replace(session, results=[one for one in session.results if one.case_id in kept])


def packed(body: Mapping[str, Any]) -> str:
    """The body compressed by zlib, in base64, which the page unpacks."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("utf-8", "replace"), 6)).decode("ascii")


def run_body(
    results: Sequence[CaseResult],
    session: Session,
    *,
    who_said: WhoSaid,
    whole: bool = True,
) -> dict[str, Any]:
    """Describe the cases of one source run: `pool` holds every turn once, `cases` the made cases,
    `results` the rest.

    Without `whole`, transcripts and long texts are left out. Text is free of secrets and of
    characters that do not show.
    """
    redactor = session.redactor
    turns = _Turns()
    cases: dict[str, Any] = {}
    data: dict[str, Any] = {}
    made_cases: dict[str, Case] = {}
    for result in results:
        made = case_key(made_case_id(result))
        if made not in cases:
            stored = session.records.read(made_case_id(result))
            if stored is not None:
                made_cases[made] = redactor.value(stored)
                cases[made] = _case(
                    made_cases[made], turns if whole else None, altered=result.extra.altered
                )
        case = made_cases.get(made)
        rubric = session.rubrics.get((result.spec.suite, result.spec.rubric_id))
        place = ""
        if rubric is not None and rubric.file:
            path = Path(rubric.file)
            file = path if session.folder is None else relative_path(path, session.folder)
            place = f"{file}:{rubric.line}"
        # As the judge had it; where it was reworded, beside that of the label.
        instructions = "" if rubric is None else rubric.instructions
        if case is not None:
            made_for = case.rubric.instructions
            if result.extra.reworded and rubric is not None:
                instructions += f"\n\nThe text that the case was made and labelled for:\n{made_for}"
            else:
                instructions = made_for
        data[case_key(result.case_id)] = {
            "title": session.title(result, _TITLE_WIDTH),
            "made": made if made in cases else None,
            "rubric": instructions,
            "place": place,
            "lines": list(case_lines(ReportedCase(result, case, who_said=who_said))),
            **_result(result, session),
        }
    body = {"pool": turns.pool, "cases": cases, "results": redactor.value(data)}
    shown: dict[str, Any] = printable(body if whole else _with_texts(body, _cut))
    return shown


def printable(value: Any) -> Any:
    """The JSON value with every text in it, but no key, made visible."""
    return _with_texts(value, visible)


def _with_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _with_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_texts(item, change) for item in value]
    return value


class _Turns:
    """Turns as the judge reads them, each once: most of a perturbed run are the original ones."""

    def __init__(self) -> None:
        self.pool: list[dict[str, Any]] = []
        self._places: dict[str, int] = {}

    def places(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        return [self._place(message) for message in messages]

    def _place(self, message: Mapping[str, Any]) -> int:
        rendered = render_transcript([message], show_reasoning=True)
        if rendered not in self._places:
            self._places[rendered] = len(self.pool)
            role = " ".join(str(message.get("role", "unknown")).splitlines())
            # What begins at column 0 is a header.
            parts: list[tuple[str, list[str]]] = []
            for line in rendered.split("\n"):
                header = _HEADER.match(line)
                if header:
                    parts.append((line[header.end() + len(role) :], []))
                else:
                    parts[-1][1].append(line[2:])
            texts = [(title, "\n".join(lines)) for title, lines in parts]
            self.pool.append({"role": role, "parts": texts})
        return self._places[rendered]


def _case(case: Case, turns: _Turns | None, *, altered: bool) -> dict[str, Any]:
    perturbation = perturbation_data(case)
    edits = []
    for edit in shown_edits(case):
        pieces = [(piece.kind, piece.text) for piece in edit.pieces]
        shown_edit = {
            "turn": edit.turn,
            "role": edit.role,
            "reason": edit.reason,
            "pieces": pieces,
        }
        if edit.note:
            shown_edit["note"] = edit.note
        edits.append(shown_edit)
    acts: dict[str, Any] = {}
    if any(edit.is_splice for edit in case.outcome.edits):
        # Which turns of the made transcript were changed or put in, and what was left out: pairs of
        # the turn that it stood before, and its place in the pool.
        acts = {"changed": [], "omitted": []}
        original, position = case.run.messages, 0
        for old, new in turn_pairs(original, case.messages, case.outcome.edits):
            if new is not None:
                position = new + 1
                if old is None or original[old] != case.messages[new]:
                    acts["changed"].append((new, "inserted" if old is None else "edited"))
            elif old is not None and turns is not None:
                acts["omitted"] += [(position, place) for place in turns.places([original[old]])]
    return {
        **acts,
        "original": None if turns is None else turns.places(case.run.messages),
        "judged": None if turns is None else turns.places(case.messages),
        "edits": edits,
        "plan": perturbation["plan"],
        "verification": perturbation["verification"],
        "basis": case_basis(case, altered=altered),
        "votes": label_votes(case),
        "summary": case.outcome.final_summary or "",
        "levels": levels_data(case.levels),
        "notes": case.run.notes,
    }


def _result(result: CaseResult, session: Session) -> dict[str, Any]:
    spending = result.spending.all
    earlier = earlier_verdict(result, session)
    if earlier is not None and earlier.reasoning == result.reasoning:
        earlier = None
    is_unscored = result.outcome in UNSCORED
    # A disagreement's detail repeats for the terminal what the page shows part by part.
    detail = "" if result.outcome in JUDGED else without_earlier(result.why.text)
    # What each repeat gave, equal verdicts once, and the error of the one that failed.
    said = []
    repeats = equal_verdicts(result.verdicts)
    if len(repeats) != 1 or is_unscored:
        for verdict, numbers in repeats.items():
            who = f"{repeats_text(numbers)} gave {verdict.score}"
            said.append({"who": who, "text": verdict.reasoning})
        if repeats and is_unscored:
            failed = repeats_text([len(result.verdicts) + 1])
            who = f"{failed} gave no verdict ({result.outcome})"
            said.append({"who": who, "text": detail})
    return {
        "reasoning": result.reasoning,
        "said": score_counts(result.all_scores) if result.repeated else "",
        "repeats": said,
        "earlier": None if earlier is None else earlier._asdict(),
        "detail": detail,
        "calls": spending.calls,
        "replayed": spending.replayed,
        "input": spending.usage.input_tokens,
        "output": spending.usage.output_tokens,
        "cost": spending.cost,
        "paid": spending.paid,
        "unpriced": spending.unpriced,
        "command": session.commands.get(result.case_id, ""),
    }


def _cut(text: str) -> str:
    more = len(text) - _LONGEST_WHEN_CUT
    return f"{text[:_LONGEST_WHEN_CUT]}… ({more:,} more characters)" if more > 0 else text


_LONGEST_NUMBER = 20
_LONGEST_IN_ROW = 200
# By what the list can be filtered, the most urgent first: each with its title, and its colour.
_STATUSES: Mapping[str, tuple[str, str]] = {
    "regression": ("regressions", "bad"),
    "failed": ("failed", "bad"),
    "xfailed": ("xfailed", "bad"),
    "flicker": ("flickering", "warn"),
    "error": ("errors", "warn"),
    "skipped": ("skipped", ""),
    "passed": ("passed", "good"),
}
# Their titles are plurals of their names.
_COUNTED = ("regression", "error")
_OF_TABLES = {"failed": "wrong", "passed": "right", "error": "without a verdict"}


def _statuses(reported: ReportedCase, session: Session) -> list[str]:
    """What pytest calls the outcome of a case, behind what else is to be looked at."""
    result = reported.result
    statuses = []
    if reported.change.startswith("regression"):
        statuses.append("regression")
    if result.flickers or "flicker" in reported.change:
        statuses.append("flicker")
    if result.outcome in UNSCORED:
        statuses.append("error")
    elif result.outcome == "no_case":
        statuses.append("skipped")
    elif result.outcome != "disagree":
        statuses.append("passed")
    else:
        statuses.append("xfailed" if result.case_id in session.tolerated else "failed")
    return statuses


class CaseList:
    """The rows and columns of a session; `blocks` name the data block of each source run."""

    def __init__(self, session: Session, blocks: Mapping[RunKey, str]) -> None:
        self._session = session
        self._blocks = blocks
        self._columns = [fact for fact in FACTS if fact.shown(session)]
        changes: dict[str, str] = {}
        for decision in session.decisions.values():
            if decision.comparison is not None:
                changes |= dict.fromkeys(decision.comparison.not_comparable, "not comparable")
                changes |= dict.fromkeys(decision.comparison.still_wrong, "still wrong")
                changes |= dict.fromkeys(decision.fixes, "fix")
                changes |= dict.fromkeys(decision.regressions, "regression")
                changes |= {case: f"{changes[case]} (flicker)" for case in decision.flickered}
        self._cases = []
        for result in session.results:
            self._cases.append(ReportedCase(result, change=changes.get(result.case_id, "")))
        self._texts = []
        for reported in self._cases:
            # The page compares them with the choices of its filters, in which white space does not
            # count.
            self._texts.append([one_line(column.text(reported)) for column in self._columns])
        self._statuses = [_statuses(reported, session) for reported in self._cases]

    def columns(self) -> list[dict[str, Any]]:
        """What heads the table, and each column's longest text, which sets its width."""
        columns = []
        for index, column in enumerate(self._columns):
            longest = max((row[index] for row in self._texts), key=len, default="")
            columns.append(
                {
                    "name": column.page_name,
                    "title": column.title,
                    "number": column.number,
                    "meaning": column.meaning,
                    "longest": longest[:_LONGEST_IN_ROW],
                    "pill": any(column.kind(reported) for reported in self._cases),
                }
            )
        return columns

    def filters(self) -> list[dict[str, Any]]:
        """What can be chosen to see a part of the table."""
        filters = []
        for index, column in enumerate(self._columns):
            if column.filtered:
                options = sorted({row[index] for row in self._texts if row[index]}, key=_in_order)
                filters.append(
                    {"name": column.page_name, "title": column.title, "options": options}
                )
        return filters

    def chips(self) -> list[dict[str, Any]]:
        """The statuses that cases have, and how many have each."""
        counts = Counter(chain.from_iterable(self._statuses))
        chips = []
        for status, (title, kind) in _STATUSES.items():
            shown = _OF_TABLES.get(status, title) if self._session.is_table else title
            if counts[status]:
                number = f"{counts[status]:,}"
                is_one = counts[status] == 1 and status in _COUNTED
                text = f"{number} {status if is_one else shown}"
                chips.append(
                    {
                        "value": status,
                        "title": shown,
                        "kind": kind,
                        "number": number,
                        "text": text,
                    }
                )
        return chips

    def link(self, **texts: str) -> str:
        """The address of the cases with these texts in these columns, of those that are shown."""
        names = {column.page_name for column in self._columns if column.filtered}
        chosen = {}
        for name, text in texts.items():
            if name in names and text:
                chosen[name] = visible(one_line(self._session.redactor.text(text)))
        return f"#{urlencode(chosen) or 'cases'}"

    def rows(self) -> list[dict[str, Any]]:
        """One row per case, the most urgent first."""
        ranks = {status: rank for rank, status in enumerate(_STATUSES)}

        def urgency(index: int) -> int:
            return min(ranks[status] for status in self._statuses[index])

        rows = []
        for index in sorted(range(len(self._cases)), key=urgency):
            reported = self._cases[index]
            result = reported.result
            cells = []
            for column, text in zip(self._columns, self._texts[index], strict=True):
                cells.append((text, column.kind(reported)))
            rows.append(
                {
                    "key": case_key(result.case_id),
                    "chunk": self._blocks[run_key(result)],
                    "node": self._session.node(result.case_id),
                    "place": index,
                    "statuses": self._statuses[index],
                    "cells": cells,
                }
            )
        return rows


def _in_order(text: str) -> tuple[bool, int, str]:
    """Numbers by their value, before other texts."""
    number = text.lstrip("-").isdecimal()
    return not number, int(text) if number and len(text) < _LONGEST_NUMBER else 0, text


BLOCK = "search"
# Of all cases together, so that a large report opens as fast, and of one.
_MOST = 4_000_000
_LONGEST = 4_000


class SearchTexts:
    """Collects what the cases of the page's data blocks say; `cases` is how many there will be."""

    def __init__(self, cases: int) -> None:
        self._longest = min(_LONGEST, _MOST // max(1, cases))
        self._rubrics: dict[str, int] = {}
        self._cases: dict[str, tuple[int, str]] = {}

    def add(self, body: Mapping[str, Any]) -> None:
        """Take in the cases of one source run, as `run_body` describes them."""
        for key, result in body["results"].items():
            made = body["cases"].get(result["made"])
            parts = [result["reasoning"], result["detail"]]
            parts += [repeat["text"] for repeat in result["repeats"]]
            for edit in made["edits"] if made is not None else ():
                parts.append(edit["reason"])
                parts += [text for kind, text in edit["pieces"] if kind != "same"]
            rubric = self._rubrics.setdefault(result["rubric"], len(self._rubrics))
            words = " ".join(part for part in parts if part).split()
            self._cases[key] = (rubric, " ".join(words)[: self._longest])

    def packed(self) -> str:
        """All of it as a data block's text; each rubric is in it once."""
        rubrics = [text[: _LONGEST * 2] for text in self._rubrics]
        return packed({"rubrics": rubrics, "cases": self._cases})
