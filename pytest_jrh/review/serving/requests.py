"""Requests and answers of a page as values, without a web framework: what all pages share.

Whatever a page shows is named by keys that the session made; no text of a request reaches a path.
"""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_jrh.errors import InputError
from pytest_jrh.files import encoded
from pytest_jrh.templating import render_page

if TYPE_CHECKING:
    from pytest_jrh.errors import Problem

_REVIEW = Path(__file__).parents[1]
_PAGES = _REVIEW / "pages"
_STATIC = _REVIEW / "static"
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


class RequestBody(BaseModel):
    """What a request brings: its keys and their types, and nothing else."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


BodyT = TypeVar("BodyT", bound=RequestBody)


class PageApi(ABC):
    """What a page can ask for, and what the session tells it unasked."""

    def __init__(self) -> None:
        self._static: Final = {
            path.name: path for path in _STATIC.iterdir() if path.suffix in _TYPES
        }
        # A browser that was connected to an earlier session must not go on from its version.
        self.session: Final = secrets.token_hex(8)

    @abstractmethod
    def routes(self) -> tuple[tuple[str, str, Answer], ...]:
        """Every (method, address, answer)."""

    @abstractmethod
    def changes(self, since: int) -> tuple[int, str]:
        """The present version, and as JSON what is new since an earlier one."""

    @abstractmethod
    def subscribe(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call `listener` after every change; returns the way to stop that."""

    def answer(self, answer: Answer, asked: Asked) -> Reply:
        """Answer; errors become replies with the reason."""
        try:
            return answer(asked)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            return problem_reply(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"{'.'.join(map(str, first['loc']))}: {first['msg']}",
            )
        except InputError as error:
            problems = [described(problem) for problem in error.problems]
            return json_reply({"error": str(error), "problems": problems}, HTTPStatus.CONFLICT)
        except LookupError:
            return problem_reply(HTTPStatus.NOT_FOUND, "not found in this session")
        except OSError as error:
            said = f"write failed: {error.strerror or error}"
            return problem_reply(HTTPStatus.INSUFFICIENT_STORAGE, said)

    def file(self, asked: Asked) -> Reply:
        """One of the page's own files."""
        path = self._static[asked.names["name"]]
        return Reply(path.read_bytes(), _TYPES[path.suffix])


def read_body(asked: Asked, model: type[BodyT]) -> BodyT:
    """What the request brings; raises `ValidationError` where it is anything else."""
    return model.model_validate_json(asked.body)


def number_in(asked: Asked, name: str) -> int:
    """A number in the request's address; raises `LookupError` where it is none."""
    text = asked.names[name]
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise LookupError(text)
    return int(text)


def html_reply(name: str, values: Mapping[str, object]) -> Reply:
    """One of the pages, with every value escaped."""
    return Reply(encoded(render_page(_PAGES, name, values)), "text/html")


def text_reply(text: str) -> Reply:
    """Text that the page puts where it belongs."""
    return Reply(encoded(text), "text/plain")


def json_reply(value: object, status: HTTPStatus = HTTPStatus.OK) -> Reply:
    """Values of JSON."""
    return Reply(json.dumps(value).encode(), _JSON, status)


def problem_reply(status: HTTPStatus, message: str) -> Reply:
    """Why a request is refused."""
    return json_reply({"error": message, "problems": []}, status)


def described(problem: Problem) -> dict[str, Any]:
    """A problem as JSON values."""
    return {"message": problem.message, "line": problem.line, "hint": problem.hint}
