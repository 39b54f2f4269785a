"""What the page of blind labelling can ask for (rule N3).

Reviewers and cases are named by keys that the session drew at random: no address says anything of
a case, and no text of a request reaches a path.

A case as the page of blind labelling shows it: bare until it is labelled, with everything
afterwards (rule N3).
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.review.board import Reviewed, labels
from pytest_jrh.review.serving import (
    Answer,
    Asked,
    PageApi,
    Reply,
    RequestBody,
    html_reply,
    json_reply,
    number_in,
    read_body,
    text_reply,
)
from pytest_jrh.review.views import (
    HUGE,
    LONG,
    LONG_TOOL,
    bare_part_text,
    bare_turns,
    case_values,
    part_text,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_jrh.core.model import Case
    from pytest_jrh.review.blind import Assigned, LabelBoard


def row(one: Assigned) -> dict[str, Any]:
    """A case in a reviewer's list, as JSON values."""
    said = None if one.is_open else one.said
    return {
        "key": one.key,
        "number": one.number,
        "open": one.is_open,
        "busy": one.busy,
        "label": said.label if said else None,
    }


def bare_values(one: Assigned, base: str) -> dict[str, object]:
    """What the page of a case is rendered from before it is labelled: the rubric, and what the
    judge reads.
    """
    case = one.entry.case
    return {
        **_common(one, base),
        "levels": _levels(case),
        "turns": bare_turns(case.messages),
        "rubric_id": visible(case.rubric.id),
        "instructions": visible(case.rubric.instructions),
    }


def revealed_values(one: Assigned, base: str) -> dict[str, object]:
    """What the page of a case that the reviewer has labelled is rendered from."""
    case = one.entry.case
    values = case_values(Reviewed(one.entry, None, None), show_verdict=False)
    verdicts = case_values(Reviewed(one.entry, None, None), show_verdict=True)["judged"]
    folds = [
        replace(fold, turns=tuple(replace(turn, editable=False) for turn in fold.turns))
        for fold in values["folds"]  # type: ignore[attr-defined]
    ]
    return {
        **values,
        **_common(one, base),
        "levels": _levels(case),
        "folds": folds,
        "judged": verdicts,
        "natural": KINDS[case.spec.test].natural,
        "rejected": visible(str(case.outcome.no_case or "")),
        "votes": len(case.label.votes) if case.label else 0,
        "by": case.label.by if case.label else "",
    }


def _common(one: Assigned, base: str) -> dict[str, object]:
    said = one.said
    return {
        "key": one.key,
        "number": one.number,
        "base": base,
        "said": None if one.is_open else said,
        "binary": one.entry.case.mode == "binary",
        "seen": said is not None and said.withdrawn,
        "note": said.note if said else "",
        "long": LONG,
        "long_tool": LONG_TOOL,
        "huge": HUGE,
    }


def _levels(case: Case) -> dict[int, str]:
    return {
        score: visible(label.removeprefix("rubric ") if case.mode == "binary" else label)
        for score, label in labels(case).items()
    }


class _Name(RequestBody):
    name: str


class _Answer(RequestBody):
    label: int | None
    note: str = ""


_CASE = "/reviewers/{reviewer}/cases/{key}"
_PART = "/turns/{index}/parts/{number}"


class BlindApi(PageApi):
    """The answers to the page of one session."""

    def __init__(self, board: LabelBoard) -> None:
        super().__init__()
        self._board = board

    def routes(self) -> tuple[tuple[str, str, Answer], ...]:
        return (
            ("GET", "/", self._page),
            ("GET", "/static/{name}", self.file),
            ("POST", "/finalize", self._finalize),
            ("POST", "/reviewers", self._enter),
            ("GET", "/reviewers/{reviewer}/cases", self._cases),
            ("GET", _CASE, self._case),
            ("GET", _CASE + _PART, self._part),
            ("POST", f"{_CASE}/label", self._give),
            ("POST", f"{_CASE}/withdraw", self._withdraw),
            ("GET", f"{_CASE}/revealed", self._revealed),
            ("GET", f"{_CASE}/revealed{_PART}", self._revealed_part),
        )

    def changes(self, _since: int) -> tuple[int, str]:
        version = self._board.changes()
        progress = asdict(self._board.progress())
        return version, json.dumps({"session": self.session, "progress": progress})

    def subscribe(self, listener: Callable[[], object]) -> Callable[[], None]:
        return self._board.subscribe(listener)

    def _page(self, _: Asked) -> Reply:
        known = self._board.known_reviewers
        return html_reply("label.html", {"reviewer": self._board.reviewer or "", "known": known})

    def _finalize(self, _: Asked) -> Reply:
        self._board.finalize()
        return json_reply(asdict(self._board.progress()))

    def _enter(self, asked: Asked) -> Reply:
        key, name = self._board.enter(read_body(asked, _Name).name)
        return json_reply({"reviewer": key, "name": name})

    def _cases(self, asked: Asked) -> Reply:
        assigned = self._board.assigned(asked.names["reviewer"])
        return json_reply({"cases": [row(one) for one in assigned]})

    def _case(self, asked: Asked) -> Reply:
        one = self._board.open(*_place(asked))
        return html_reply("label_case.html", bare_values(one, _base(asked)))

    def _part(self, asked: Asked) -> Reply:
        messages = self._board.open(*_place(asked)).entry.case.messages
        return text_reply(
            bare_part_text(messages, number_in(asked, "index"), number_in(asked, "number"))
        )

    def _give(self, asked: Asked) -> Reply:
        body = read_body(asked, _Answer)
        return _row(self._board.give(*_place(asked), body.label, body.note))

    def _withdraw(self, asked: Asked) -> Reply:
        return _row(self._board.withdraw(*_place(asked)))

    def _revealed(self, asked: Asked) -> Reply:
        one = self._board.reveal(*_place(asked))
        return html_reply("label_revealed.html", revealed_values(one, f"{_base(asked)}/revealed"))

    def _revealed_part(self, asked: Asked) -> Reply:
        case = self._board.reveal(*_place(asked)).entry.case
        return text_reply(part_text(case, number_in(asked, "index"), number_in(asked, "number")))


def _place(asked: Asked) -> tuple[str, str]:
    return asked.names["reviewer"], asked.names["key"]


def _base(asked: Asked) -> str:
    # Both keys are known here, so that neither is text of a request.
    reviewer, key = _place(asked)
    return f"/reviewers/{reviewer}/cases/{key}"


def _row(one: Assigned) -> Reply:
    return json_reply(row(one))
