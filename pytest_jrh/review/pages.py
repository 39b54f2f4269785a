"""What each page can ask for: every request answered as a value.

Cases, templates and reviewers are named by keys that the session made; no text of a request reaches
a path. On the page of blind labelling these are drawn at random, so that no address says anything
of a case.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.diffs import unified
from pytest_jrh.core.documents import DamagedError, check_depth, parsed
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.files import atomic_write, encoded
from pytest_jrh.core.stages import EDITOR, PLANNER, STAGES
from pytest_jrh.core.transcript import brief, message_text
from pytest_jrh.llm.prompts import load_template, override_path, parse_prompt
from pytest_jrh.review.blind import LabelBoard
from pytest_jrh.review.board import ReviewBoard
from pytest_jrh.review.serving import (
    Page,
    PageReply,
    PageRequest,
    RequestBody,
    Route,
    described,
    html_reply,
    json_reply,
)
from pytest_jrh.review.views import (
    bare_values,
    call_texts,
    label_row,
    part_of,
    review_row,
    review_values,
)
from pytest_jrh.store.decisions import CallEdit, holds_acts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.config.suite import Suite, SuiteTest
    from pytest_jrh.core.model import Message, StageModel
    from pytest_jrh.core.templates import Template
    from pytest_jrh.review.board import Reviewed


_PART = "/turns/{index}/parts/{number}"
# Of a turn that was left out of the made transcript, by its position in the run.
_OMITTED = "/omitted/{index}/parts/{number}"


class _Decision(RequestBody):
    digest: str
    action: Literal["accepted", "rejected", "withdrawn"]
    note: str = ""


class _CallText(RequestBody):
    call: int
    arguments: str
    result: str | None


class _TurnText(RequestBody):
    digest: str
    content: str | None
    calls: tuple[_CallText, ...] = ()


class _Expected(RequestBody):
    digest: str
    expected: int


class _Draft(RequestBody):
    text: str


class DecidePage(Page[ReviewBoard]):
    """The page on which people decide about the cases of a session."""

    html = "decide.html"

    def __init__(self, board: ReviewBoard, templates: AgentTemplates) -> None:
        super().__init__(board)
        self._templates = templates

    def case_routes(self) -> tuple[Route, ...]:
        case, template = "/cases/{key}", "/templates/{key}"
        return (
            ("GET", "/search", self._search),
            ("GET", case, self._case),
            ("GET", f"{case}/turns/{{index}}", self._turn),
            ("GET", f"{case}{_PART}", self._part),
            ("GET", f"{case}{_OMITTED}", self._omitted),
            ("POST", f"{case}/decision", self._decide),
            ("POST", f"{case}/turns/{{index}}", self._edit),
            ("POST", f"{case}/label", self._label),
            ("GET", "/templates", self._list_templates),
            ("GET", template, self._template),
            ("POST", template, self._save_template),
            ("POST", f"{template}/check", self._check_template),
            ("POST", f"{template}/revert", self._revert_template),
        )

    def news(self, since: int) -> tuple[int, dict[str, object]]:
        version, changed = self.board.changes(since)
        rows = [review_row(reviewed) for reviewed in changed]
        return version, {"all": since == 0, "rows": rows}

    def _search(self, request: PageRequest) -> PageReply:
        return json_reply({"keys": self.board.search(request.query.get("q", ""))})

    def _case(self, request: PageRequest) -> PageReply:
        reviewed = self.board.get(request.names["key"])
        return html_reply("case_decide.html", review_values(reviewed))

    def _turn(self, request: PageRequest) -> PageReply:
        reviewed, index = self.board.get(request.names["key"]), request.number("index")
        made, now = reviewed.entry.case.messages, reviewed.case.messages
        content, first_text = message_text(now[index]), message_text(made[index])
        values: dict[str, Any] = {"content": content, "made": first_text}
        if holds_acts(reviewed.case):
            values["calls"] = call_texts(now, index)
            values["calls_changed"] = values["calls"] != call_texts(made, index)
        return json_reply(values)

    def _part(self, request: PageRequest) -> PageReply:
        return _part(self.board.get(request.names["key"]).case.messages, request)

    def _omitted(self, request: PageRequest) -> PageReply:
        return _part(self.board.get(request.names["key"]).case.run.messages, request)

    def _decide(self, request: PageRequest) -> PageReply:
        body, key = request.read(_Decision), request.names["key"]
        if body.action == "withdrawn":
            return self._decided(self.board.withdraw(key, body.digest))
        return self._decided(self.board.decide(key, body.digest, body.action, note=body.note))

    def _edit(self, request: PageRequest) -> PageReply:
        body, key, index = request.read(_TurnText), request.names["key"], request.number("index")
        calls = []
        for call in body.calls:
            try:
                arguments = parsed(call.arguments)
                check_depth(arguments)
            except DamagedError as error:
                raise InputError(Problem(f"what you typed as arguments {error}")) from error
            if not isinstance(arguments, dict):
                message = f"the arguments are {brief(arguments)}, no object"
                hint = 'arguments are a JSON object, such as {"order": "A1"}'
                raise InputError(Problem(message, hint=hint))
            calls.append(CallEdit(call=call.call, arguments=arguments, result=call.result))
        return self._decided(self.board.edit_turn(key, body.digest, index, body.content, calls))

    def _label(self, request: PageRequest) -> PageReply:
        body, key = request.read(_Expected), request.names["key"]
        return self._decided(self.board.set_label(key, body.digest, body.expected))

    def _decided(self, reviewed: Reviewed) -> PageReply:
        return json_reply({"row": review_row(reviewed), "progress": self.progress()})

    def _list_templates(self, _: PageRequest) -> PageReply:
        templates = [asdict(template) for template in self._templates.listing()]
        return json_reply({"templates": templates})

    def _template(self, request: PageRequest) -> PageReply:
        return json_reply(asdict(self._templates.get(request.names["key"])))

    def _check_template(self, request: PageRequest) -> PageReply:
        body, key = request.read(_Draft), request.names["key"]
        problems = [described(problem) for problem in self._templates.problems(key, body.text)]
        difference = self._templates.difference(key, body.text)
        return json_reply({"difference": difference, "problems": problems})

    def _save_template(self, request: PageRequest) -> PageReply:
        body, key = request.read(_Draft), request.names["key"]
        return json_reply(asdict(self._templates.save(key, body.text)))

    def _revert_template(self, request: PageRequest) -> PageReply:
        return json_reply(asdict(self._templates.revert(request.names["key"])))


class _Name(RequestBody):
    name: str


class _Label(RequestBody):
    label: int | None
    note: str = ""


class LabelPage(Page[LabelBoard]):
    """The page on which people label cases blind."""

    html = "label.html"

    def case_routes(self) -> tuple[Route, ...]:
        case = "/reviewers/{reviewer}/cases/{key}"
        return (
            ("POST", "/reviewers", self._enter),
            ("GET", "/reviewers/{reviewer}/cases", self._cases),
            ("GET", case, self._case),
            ("GET", f"{case}{_PART}", self._part),
            ("POST", f"{case}/label", self._give),
            ("POST", f"{case}/withdraw", self._withdraw),
            ("POST", "/reviewers/{reviewer}/finish", self._finish),
        )

    def news(self, _since: int) -> tuple[int, dict[str, object]]:
        return self.board.version, {}

    def values(self) -> dict[str, object]:
        return {"reviewer": self.board.reviewer or ""}

    def _enter(self, request: PageRequest) -> PageReply:
        key, name = self.board.enter(request.read(_Name).name)
        return json_reply({"reviewer": key, "name": name})

    def _keys(self, request: PageRequest) -> tuple[str, str]:
        return request.names["reviewer"], request.names["key"]

    def _cases(self, request: PageRequest) -> PageReply:
        reviewer = request.names["reviewer"]
        rows = [label_row(case) for case in self.board.assigned(reviewer)]
        return json_reply({"cases": rows})

    def _finish(self, request: PageRequest) -> PageReply:
        others = self.board.finish(request.names["reviewer"])
        return json_reply({"others": others, "progress": self.progress()})

    def _case(self, request: PageRequest) -> PageReply:
        reviewer, key = self._keys(request)
        # Both keys are found first, so that neither is text of a request.
        assigned = self.board.open(reviewer, key)
        values = bare_values(assigned, f"/reviewers/{reviewer}/cases/{key}")
        return html_reply("case_label.html", values)

    def _part(self, request: PageRequest) -> PageReply:
        return _part(self.board.open(*self._keys(request)).entry.case.messages, request, bare=True)

    def _give(self, request: PageRequest) -> PageReply:
        body = request.read(_Label)
        assigned = self.board.give(*self._keys(request), body.label, body.note)
        return json_reply(label_row(assigned))

    def _withdraw(self, request: PageRequest) -> PageReply:
        return json_reply(label_row(self.board.withdraw(*self._keys(request))))


def _part(messages: Sequence[Message], request: PageRequest, *, bare: bool = False) -> PageReply:
    part = part_of(messages, request.number("index"), request.number("number"), bare=bare)
    if part.kind != "image":
        return PageReply(encoded(part.text), "text/plain")
    try:
        return PageReply(base64.b64decode(part.image, validate=True), part.title)
    except ValueError as error:
        raise LookupError(part.number) from error


ENCODING = "utf-8-sig"


@dataclass(frozen=True, slots=True)
class AgentTemplate:
    """The prompt of one stage of one test, as the page shows it. `text` is what is used now: the
    override where there is one, in `file`.

    `default` is what is used without one, out of `origin`.
    """

    key: str
    suite: str
    test: str
    stage: str
    file: str
    origin: str
    default: str
    text: str
    overridden: bool
    variables: tuple[str, ...]
    required: tuple[str, ...]


class AgentTemplates:
    """The templates that the suites of a session use. What is saved counts from the next run on."""

    def __init__(self, suites: Sequence[Suite]) -> None:
        self._prompts: dict[str, _Prompt] = {}
        for suite in suites:
            for test in suite.tests:
                if KINDS[test.name].natural or KINDS[test.name].derived:
                    continue
                for stage in (PLANNER.name, EDITOR.name):
                    prompt = _Prompt(suite, test, stage)
                    self._prompts[prompt.key] = prompt

    def listing(self) -> tuple[AgentTemplate, ...]:
        """Every template, by suite, test and stage."""
        return tuple(self.get(key) for key in self._prompts)

    def get(self, key: str) -> AgentTemplate:
        """One template as it is on the disk now; raises `LookupError` for an unknown key."""
        prompt = self._prompts[key]
        suite, test, stage = prompt.suite, prompt.test, prompt.stage
        default = prompt.default()
        text = prompt.read()
        return AgentTemplate(
            key=key,
            suite=suite.name,
            test=test.name,
            stage=stage,
            file=f"inputs/custom_prompts/{suite.module_name}/{test.name}/{stage}.md",
            origin=default.origin,
            default=default.source,
            text=default.source if text is None else text,
            overridden=text is not None,
            variables=tuple(sorted(STAGES[stage].variables)),
            required=tuple(sorted(STAGES[stage].required)),
        )

    def problems(self, key: str, text: str) -> tuple[Problem, ...]:
        """Why a draft cannot be used; raises `LookupError` for an unknown key."""
        try:
            self._prompts[key].checked(text)
        except InputError as error:
            return error.problems
        return ()

    def difference(self, key: str, text: str) -> list[str]:
        """How a draft differs from the default, as the lines of a diff."""
        return unified(self._prompts[key].default().source.splitlines(), text.splitlines())

    def save(self, key: str, text: str) -> AgentTemplate:
        """Write the override, whole or not at all.

        Raises `InputError` where the text does not check, and `OSError` as it comes; the override
        on the disk is then as it was.
        """
        prompt = self._prompts[key]
        prompt.checked(text)
        # One line ending, whatever the browser sent: the file is read, compared and committed on
        # any system.
        lines = text.replace("\r\n", "\n").replace("\r", "\n")
        atomic_write(prompt.override, lines if lines.endswith("\n") else f"{lines}\n")
        return self.get(key)

    def revert(self, key: str) -> AgentTemplate:
        """Delete the override, and the folders that this leaves empty."""
        override = self._prompts[key].override
        override.unlink(missing_ok=True)
        for folder in (override.parent, override.parent.parent):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        return self.get(key)


@dataclass(frozen=True, slots=True)
class _Prompt:
    suite: Suite
    test: SuiteTest
    stage: str

    @property
    def key(self) -> str:
        name = "\0".join([self.suite.name, self.test.name, self.stage])
        return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:20]

    @property
    def override(self) -> Path:
        return override_path(self.suite.custom_prompts_dir, self.test.name, self.stage)

    @property
    def model(self) -> StageModel:
        return self.suite.stages[self.stage]

    def default(self) -> Template:
        path = self.model.prompt_path
        return load_template(
            self.stage,
            mode=self.suite.mode,
            objective=self.test.objective,
            prompt_path=Path(path) if path else None,
            edits=self.suite.config.cases.edits,
        )

    def read(self) -> str | None:
        try:
            return self.override.read_text(encoding=ENCODING, errors="replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(
                Problem(f"the override cannot be read: {error.strerror}", str(self.override))
            ) from error

    def checked(self, text: str) -> Template:
        return parse_prompt(text, f"{self.test.name}/{self.stage}.md", stage=self.stage)
