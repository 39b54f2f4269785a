"""What the page can ask for: every request answered as a value, without a web framework.

Cases and templates are named by keys that the session made; no text of a request reaches a path.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_jrh.errors import InputError
from pytest_jrh.files import encoded
from pytest_jrh.review.turns import part_text
from pytest_jrh.review.views import case_values, row
from pytest_jrh.templating import render_page
from pytest_jrh.transcript import message_text

if TYPE_CHECKING:
    from pytest_jrh.errors import Problem
    from pytest_jrh.models import Case
    from pytest_jrh.review.agent_templates import AgentTemplate, AgentTemplates
    from pytest_jrh.review.board import ReviewBoard
    from pytest_jrh.review.entries import Reviewed

_PAGES = Path(__file__).parent / "pages"
_STATIC = Path(__file__).parent / "static"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_JSON = "application/json"
_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, with the parts of its address that a route names."""

    names: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer."""

    body: bytes
    kind: str = _JSON
    status: int = HTTPStatus.OK


Answer = Callable[[Asked], Reply]


class _RequestBody(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class _Decided(_RequestBody):
    digest: str
    action: Literal["accepted", "rejected", "withdrawn"]
    note: str = ""


class _TurnText(_RequestBody):
    digest: str
    content: str | None


class _Label(_RequestBody):
    digest: str
    expected: int


class _Draft(_RequestBody):
    text: str
    case: str = ""


BodyT = TypeVar("BodyT", bound=_RequestBody)


class Api:
    """The answers to the page of one session."""

    def __init__(self, board: ReviewBoard, templates: AgentTemplates) -> None:
        self._board = board
        self._templates = templates
        self._static: Final = {
            path.name: path for path in _STATIC.iterdir() if path.suffix in _TYPES
        }
        # A browser that was connected to an earlier session must not go on from its version.
        self.session: Final = secrets.token_hex(8)

    def routes(self) -> tuple[tuple[str, str, Answer], ...]:
        """Every (method, address, answer)."""
        return (
            ("GET", "/", self._page),
            ("GET", "/static/{name}", self._file),
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

    def answer(self, answer: Answer, asked: Asked) -> Reply:
        """Answer; errors become replies with the reason."""
        try:
            return answer(asked)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            return _problem(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"{'.'.join(map(str, first['loc']))}: {first['msg']}",
            )
        except InputError as error:
            problems = [_described(problem) for problem in error.problems]
            return _json({"error": str(error), "problems": problems}, HTTPStatus.CONFLICT)
        except LookupError:
            return _problem(HTTPStatus.NOT_FOUND, "not found in this session")
        except OSError as error:
            return _problem(HTTPStatus.INSUFFICIENT_STORAGE, f"write failed: {error.strerror}")

    def changes(self, since: int) -> tuple[int, str]:
        """The present version, and as JSON what is new since an earlier one."""
        version, changed = self._board.changes(since)
        news = {
            "session": self.session,
            "all": since == 0,
            "rows": [row(one) for one in changed],
            "progress": asdict(self._board.progress()),
        }
        return version, json.dumps(news)

    def _page(self, _: Asked) -> Reply:
        return _html("page.html", {})

    def _file(self, asked: Asked) -> Reply:
        path = self._static[asked.names["name"]]
        return Reply(path.read_bytes(), _TYPES[path.suffix])

    def _search(self, asked: Asked) -> Reply:
        return _json({"keys": self._board.search(asked.query.get("q", ""))})

    def _finalize(self, _: Asked) -> Reply:
        self._board.finalize()
        return _json(asdict(self._board.progress()))

    def _case(self, asked: Asked) -> Reply:
        one = self._board.get(asked.names["key"])
        return _html("case.html", case_values(one, show_verdict=asked.query.get("verdict") == "1"))

    def _turn(self, asked: Asked) -> Reply:
        one = self._board.get(asked.names["key"])
        index = _number(asked, "index")
        messages = one.entry.case.messages
        if index >= len(messages):
            raise LookupError(index)
        return _json(
            {
                "content": message_text(one.case.messages[index]),
                "made": message_text(messages[index]),
            }
        )

    def _part(self, asked: Asked) -> Reply:
        case = self._board.get(asked.names["key"]).case
        text = part_text(case, _number(asked, "index"), _number(asked, "number"))
        return Reply(encoded(text), "text/plain")

    def _decide(self, asked: Asked) -> Reply:
        body, key = _read(asked, _Decided), asked.names["key"]
        if body.action == "withdrawn":
            return self._decided(self._board.withdraw(key, body.digest))
        return self._decided(self._board.decide(key, body.digest, body.action, note=body.note))

    def _edit(self, asked: Asked) -> Reply:
        body, index = _read(asked, _TurnText), _number(asked, "index")
        return self._decided(
            self._board.edit_turn(asked.names["key"], body.digest, index, body.content)
        )

    def _label(self, asked: Asked) -> Reply:
        body = _read(asked, _Label)
        return self._decided(self._board.set_label(asked.names["key"], body.digest, body.expected))

    def _decided(self, one: Reviewed) -> Reply:
        return _json({"row": row(one), "progress": asdict(self._board.progress())})

    def _list_templates(self, _: Asked) -> Reply:
        return _json({"templates": [_named(one) for one in self._templates.listing()]})

    def _template(self, asked: Asked) -> Reply:
        return self._shown(self._templates.get(asked.names["key"]))

    def _preview_template(self, asked: Asked) -> Reply:
        body, key = _read(asked, _Draft), asked.names["key"]
        case = self._case_for(key, body.case)
        preview = self._templates.preview(key, body.text, case)
        return _json(
            {
                "messages": preview.messages,
                "difference": preview.difference,
                "problems": [_described(problem) for problem in preview.problems],
                "case": case.spec.run_id if case else None,
            }
        )

    def _save_template(self, asked: Asked) -> Reply:
        body, key = _read(asked, _Draft), asked.names["key"]
        return self._shown(self._templates.save(key, body.text, self._case_for(key, body.case)))

    def _revert_template(self, asked: Asked) -> Reply:
        return self._shown(self._templates.revert(asked.names["key"]))

    def _shown(self, template: AgentTemplate) -> Reply:
        return _json(
            {
                **_named(template),
                "origin": template.origin,
                "default": template.default,
                "text": template.text,
                "variables": template.variables,
                "required": template.required,
                "problems": [_described(problem) for problem in template.problems],
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


def _read(asked: Asked, model: type[BodyT]) -> BodyT:
    return model.model_validate_json(asked.body)


def _number(asked: Asked, name: str) -> int:
    text = asked.names[name]
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise LookupError(text)
    return int(text)


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


def _described(problem: Problem) -> dict[str, Any]:
    return {"message": problem.message, "line": problem.line, "hint": problem.hint}


def _html(name: str, values: Mapping[str, object]) -> Reply:
    return Reply(encoded(render_page(_PAGES, name, values)), "text/html")


def _json(value: object, status: HTTPStatus = HTTPStatus.OK) -> Reply:
    return Reply(json.dumps(value).encode(), _JSON, status)


def _problem(status: HTTPStatus, message: str) -> Reply:
    return _json({"error": message, "problems": []}, status)
