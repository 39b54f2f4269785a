"""What the HTML report holds of each case: a compressed block per source run, whose turns are
stored once.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_jrh.models import JUDGED, said
from pytest_jrh.reporting.evidence.case import record_basis, review_text, shown_edits
from pytest_jrh.reporting.evidence.earlier import earlier_verdict
from pytest_jrh.reporting.session_results import case_key
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.text import visible
from pytest_jrh.transcript import render_transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pytest_jrh.artifacts.spools import ReadRecord
    from pytest_jrh.models import CaseResult
    from pytest_jrh.redact import Redactor
    from pytest_jrh.reporting.evidence.case import WhoSaid
    from pytest_jrh.reporting.session_results import SessionResults

RunKey: TypeAlias = "tuple[str, str, int]"

_HEADER = re.compile(r"\[\d+\] ")
_LONGEST_WHEN_CUT = 2_000


def run_key(result: CaseResult) -> RunKey:
    """Which source run a result is about."""
    return result.suite, result.run_id, result.epoch


def by_run(session: SessionResults) -> dict[RunKey, list[CaseResult]]:
    """The results of each source run: first the runs with a regression, then those with a
    disagreement.

    What comes first is kept where not everything fits.
    """
    groups: dict[RunKey, list[CaseResult]] = {}
    for result in session.results:
        groups.setdefault(run_key(result), []).append(result)
    worse = {case_id for decision in session.decisions.values() for case_id in decision.regressions}

    def urgency(group: Collection[CaseResult]) -> int:
        if any(each.case_id in worse for each in group):
            return 0
        return 1 if any(each.outcome == "disagree" for each in group) else 2

    return dict(sorted(groups.items(), key=lambda item: urgency(item[1])))


def packed(body: Mapping[str, Any]) -> str:
    """The body as text of letters, digits, `+`, `/` and `=`: zlib in base64, which the page
    unpacks.
    """
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("utf-8", "replace"), 6)).decode("ascii")


def run_body(
    results: Sequence[CaseResult],
    session: SessionResults,
    read: ReadRecord,
    *,
    place_of: Callable[[CaseResult], str],
    who_said: WhoSaid,
    redactor: Redactor,
    whole: bool = True,
) -> dict[str, Any]:
    """Describe the cases of one source run: `pool` holds every turn once, `cases` the made cases,
    `results` the rest.

    Without `whole`, transcripts and long texts are left out. Text is free of secrets and of
    characters that do not show.
    """
    turns = _Turns(redactor)
    cases: dict[str, Any] = {}
    data: dict[str, Any] = {}
    records: dict[str, Mapping[str, Any]] = {}
    for result in results:
        made = case_key(made_case_id(result))
        if made not in cases:
            record = read(made_case_id(result))
            if record is not None:
                records[made] = redactor.value(record)
                cases[made] = _case(records[made], turns if whole else None, altered=result.altered)
        data[case_key(result.case_id)] = {
            "made": made if made in cases else None,
            "rubric": _instructions(result, records.get(made), session),
            "place": place_of(result),
            "who_said": who_said.sentence(result, records.get(made)),
            "review": review_text(result, records.get(made)),
            **_result(result, session),
        }
    body = {"pool": turns.pool, "cases": cases, "results": redactor.value(data)}
    shown: dict[str, Any] = printable(body if whole else _shortened(body))
    return shown


def printable(value: Any) -> Any:
    """The JSON value with every text in it, but no key, made visible."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: printable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [printable(item) for item in value]
    return value


class _Turns:
    """Turns as the judge reads them, each once: most turns of a perturbed run are those of the
    original.
    """

    def __init__(self, redactor: Redactor) -> None:
        self.pool: list[dict[str, Any]] = []
        self._places: dict[str, int] = {}
        self._redactor = redactor

    def places(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        return [self._place(message) for message in messages]

    def _place(self, message: Mapping[str, Any]) -> int:
        rendered = render_transcript([message], show_reasoning=True)
        if rendered not in self._places:
            self._places[rendered] = len(self.pool)
            role = " ".join(str(message.get("role", "unknown")).splitlines())
            self.pool.append({"role": role, "parts": _parts(rendered, role)})
        return self._places[rendered]


def _parts(rendered: str, role: str) -> list[tuple[str, str]]:
    """Take a rendered turn apart again: what begins at column 0 is a header, whatever the
    transcript says.
    """
    parts: list[tuple[str, list[str]]] = []
    for line in rendered.split("\n"):
        header = _HEADER.match(line)
        if header:
            parts.append((line[header.end() + len(role) :], []))
        else:
            parts[-1][1].append(line[2:])
    return [(title, "\n".join(lines)) for title, lines in parts]


def _case(record: Mapping[str, Any], turns: _Turns | None, *, altered: bool) -> dict[str, Any]:
    perturbation = record["perturbation"]
    said = perturbation["verification"]
    return {
        "original": None if turns is None else turns.places(record["gold_messages"]),
        "judged": None if turns is None else turns.places(record["perturbed_messages"]),
        "edits": [
            {
                "turn": edit.turn,
                "role": edit.role,
                "reason": edit.reason,
                "pieces": [(piece.kind, piece.text) for piece in edit.pieces],
            }
            for edit in shown_edits(record)
        ],
        "plan": perturbation["plan"],
        "verification": said,
        "basis": record_basis(record, altered=altered),
        "summary": perturbation["final_summary"] or "",
        "levels": record["score_levels"],
        "notes": record["notes"],
    }


def _instructions(
    result: CaseResult, record: Mapping[str, Any] | None, session: SessionResults
) -> str:
    """The rubric's text as the judge had it; where it was reworded, beside that of the label."""
    rubric = session.rubrics.get((result.suite, result.rubric_id))
    if record is None:
        return rubric.instructions if rubric is not None else ""
    own = str(record["target_rubric"]["instructions"])
    if not result.reworded or rubric is None:
        return own
    return f"{rubric.instructions}\n\nThe text that the case was made and labelled for:\n{own}"


def _result(result: CaseResult, session: SessionResults) -> dict[str, Any]:
    spending = result.spending
    # A disagreement's detail repeats for the terminal what the page shows part by part.
    detail = "" if result.outcome in JUDGED else result.detail
    earlier = earlier_verdict(result, session)
    if earlier is not None and earlier.reasoning == result.reasoning:
        earlier = None
    return {
        "reasoning": result.reasoning,
        "said": said(result.scores) if result.repeated else "",
        "minority": None
        if result.minority is None
        else {"score": result.minority.score, "reasoning": result.minority.reasoning},
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


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        more = len(value) - _LONGEST_WHEN_CUT
        return f"{value[:_LONGEST_WHEN_CUT]}… ({more:,} more characters)" if more > 0 else value
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shortened(item) for item in value]
    return value
