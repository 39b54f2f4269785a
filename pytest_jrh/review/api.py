"""What the page can ask for: every request answered as a value.

Cases and templates are named by keys that the session made; no text of a request reaches a path.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from pytest_jrh.core.transcript import message_text
from pytest_jrh.review.serving import (
    Answer,
    Asked,
    PageApi,
    Reply,
    RequestBody,
    described,
    html_reply,
    json_reply,
    number_in,
    read_body,
    text_reply,
)
from pytest_jrh.review.views import case_values, part_text, row

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_jrh.core.model import Case
    from pytest_jrh.review.agent_templates import AgentTemplate, AgentTemplates
    from pytest_jrh.review.board import ReviewBoard, Reviewed


class _Decided(RequestBody):
    digest: str
    action: Literal["accepted", "rejected", "withdrawn"]
    note: str = ""


class _TurnText(RequestBody):
    digest: str
    content: str | None


class _Label(RequestBody):
    digest: str
    expected: int


class _Draft(RequestBody):
    text: str
    case: str = ""


class Api(PageApi):
    """The answers to the page of one session."""

    def __init__(self, board: ReviewBoard, templates: AgentTemplates) -> None:
        super().__init__()
        self._board = board
        self._templates = templates

    def routes(self) -> tuple[tuple[str, str, Answer], ...]:
        return (
            ("GET", "/", self._page),
            ("GET", "/static/{name}", self.file),
            ("GET", "/search", self._search),
            ("POST", "/finalize", self._finalize),
            ("GET", "/cases/{key}", self._case),
            ("GET", "/cases/{key}/turns/{index}", self._turn),
            ("GET", "/cases/{key}/turns/{index}/parts/{number}", self._part),
            ("POST", "/cases/{key}/decision", self._decide),
            ("POST", "/cases/{key}/turns/{index}", self._edit),
            ("POST", "/cases/{key}/label", self._label),
            ("GET", "/templates", self._list_templates),
            ("GET", "/templates/{key}", self._template),
            ("POST", "/templates/{key}", self._save_template),
            ("POST", "/templates/{key}/preview", self._preview_template),
            ("POST", "/templates/{key}/revert", self._revert_template),
        )

    def changes(self, since: int) -> tuple[int, str]:
        version, changed = self._board.changes(since)
        news = {
            "session": self.session,
            "all": since == 0,
            "rows": [row(one) for one in changed],
            "progress": asdict(self._board.progress()),
        }
        return version, json.dumps(news)

    def subscribe(self, listener: Callable[[], object]) -> Callable[[], None]:
        return self._board.subscribe(listener)

    def _page(self, _: Asked) -> Reply:
        return html_reply("page.html", {})

    def _search(self, asked: Asked) -> Reply:
        return json_reply({"keys": self._board.search(asked.query.get("q", ""))})

    def _finalize(self, _: Asked) -> Reply:
        self._board.finalize()
        return json_reply(asdict(self._board.progress()))

    def _case(self, asked: Asked) -> Reply:
        one = self._board.get(asked.names["key"])
        return html_reply(
            "case.html", case_values(one, show_verdict=asked.query.get("verdict") == "1")
        )

    def _turn(self, asked: Asked) -> Reply:
        one = self._board.get(asked.names["key"])
        index = number_in(asked, "index")
        messages = one.entry.case.messages
        if index >= len(messages):
            raise LookupError(index)
        return json_reply(
            {
                "content": message_text(one.case.messages[index]),
                "made": message_text(messages[index]),
            }
        )

    def _part(self, asked: Asked) -> Reply:
        case = self._board.get(asked.names["key"]).case
        text = part_text(case, number_in(asked, "index"), number_in(asked, "number"))
        return text_reply(text)

    def _decide(self, asked: Asked) -> Reply:
        body, key = read_body(asked, _Decided), asked.names["key"]
        if body.action == "withdrawn":
            return self._decided(self._board.withdraw(key, body.digest))
        return self._decided(self._board.decide(key, body.digest, body.action, note=body.note))

    def _edit(self, asked: Asked) -> Reply:
        body, index = read_body(asked, _TurnText), number_in(asked, "index")
        return self._decided(
            self._board.edit_turn(asked.names["key"], body.digest, index, body.content)
        )

    def _label(self, asked: Asked) -> Reply:
        body = read_body(asked, _Label)
        return self._decided(self._board.set_label(asked.names["key"], body.digest, body.expected))

    def _decided(self, one: Reviewed) -> Reply:
        return json_reply({"row": row(one), "progress": asdict(self._board.progress())})

    def _list_templates(self, _: Asked) -> Reply:
        return json_reply({"templates": [_named(one) for one in self._templates.listing()]})

    def _template(self, asked: Asked) -> Reply:
        return self._shown(self._templates.get(asked.names["key"]))

    def _preview_template(self, asked: Asked) -> Reply:
        body, key = read_body(asked, _Draft), asked.names["key"]
        case = self._case_for(key, body.case)
        preview = self._templates.preview(key, body.text, case)
        return json_reply(
            {
                "messages": preview.messages,
                "difference": preview.difference,
                "problems": [described(problem) for problem in preview.problems],
                "case": case.spec.run_id if case else None,
            }
        )

    def _save_template(self, asked: Asked) -> Reply:
        body, key = read_body(asked, _Draft), asked.names["key"]
        return self._shown(self._templates.save(key, body.text, self._case_for(key, body.case)))

    def _revert_template(self, asked: Asked) -> Reply:
        return self._shown(self._templates.revert(asked.names["key"]))

    def _shown(self, template: AgentTemplate) -> Reply:
        return json_reply(
            {
                **_named(template),
                "origin": template.origin,
                "default": template.default,
                "text": template.text,
                "variables": template.variables,
                "required": template.required,
                "problems": [described(problem) for problem in template.problems],
            }
        )

    def _case_for(self, template_key: str, case_key: str) -> Case | None:
        """The case to try a template on: the one that is open if it is of the same test, else any
        other of it.
        """
        template = self._templates.get(template_key)
        _, cases = self._board.changes()
        fitting = [
            one.entry
            for one in cases
            if (one.entry.case.spec.suite, one.entry.case.spec.test)
            == (template.suite, template.test)
        ]
        open_now = [entry for entry in fitting if entry.key == case_key]
        return next((entry.case for entry in [*open_now, *fitting]), None)


def _named(template: AgentTemplate) -> dict[str, Any]:
    return {
        "key": template.key,
        "suite": template.suite,
        "module": template.module,
        "test": template.test,
        "stage": template.stage,
        "file": f"inputs/custom_prompts/{template.module}/{template.test}/{template.stage}.md",
        "overridden": template.overridden,
        "shared_with": template.shared_with,
    }
