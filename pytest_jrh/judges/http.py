"""The judge that is a service: one request for each verdict, JSON from a jinja template."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field

from pytest_jrh.core.documents import MISSING, DamagedError, at, check_depth, parsed
from pytest_jrh.core.errors import InputError, Problem, Unscored
from pytest_jrh.core.model import ScoreLevel
from pytest_jrh.core.sections import ConfigSection, PathText, Takes
from pytest_jrh.core.stages import JUDGE, ONE_CALL
from pytest_jrh.core.templates import parse_template
from pytest_jrh.core.text import shortened
from pytest_jrh.core.user_code import error_text
from pytest_jrh.judges.judge import JudgedCase, JudgedRubric, JudgeKind, JudgeStart, judged_case
from pytest_jrh.judges.own_code import DEFAULT_TIMEOUT, OwnCodeJudge, OwnCodeKeys
from pytest_jrh.llm.prompts import score_levels_table
from pytest_jrh.llm.transport import (
    RetryPolicy,
    UnusableAnswer,
    is_retried,
    kept_to_origin,
    seconds_asked_for,
)

if TYPE_CHECKING:
    import httpx

    from pytest_jrh.core.model import Case, Mode, Verdict
    from pytest_jrh.core.stages import CallRange
    from pytest_jrh.core.templates import Template
    from pytest_jrh.judges.judge import JudgeCalls, JudgeSettings


_VARIABLES = (
    "rubric_id",
    "rubric",
    "transcript",
    "score_levels_table",
    "input",
    "messages",
    "levels",
    "metadata",
)
_DEFAULT_BODY = "".join(
    [
        '{"rubric": {"id": {{ rubric_id | tojson }}, "text": {{ rubric | tojson }}}, ',
        '"levels": {{ levels }}, "messages": {{ messages }}, ',
        '"transcript": {{ transcript | tojson }}, "metadata": {{ metadata }}}',
    ]
)


def load_body(path: str | None) -> Template:
    """The template in a file, or the built-in one; raises `InputError` where it gives no JSON."""
    source, origin = (_DEFAULT_BODY, "built-in body") if path is None else (_text(path), path)
    template = parse_template(source, origin, allowed=_VARIABLES)
    # A mistake in it shows before anything is asked.
    levels = (ScoreLevel(0, 'a "level"'), ScoreLevel(1, "another"))
    message = {"role": "user", "content": 'a "text"'}
    rubric = JudgedRubric("a-rubric", 'a "rubric"')
    rendered(template, JudgedCase(rubric, (message,), levels, 'an "input"', {"a": 1}))
    return template


def rendered(template: Template, case: JudgedCase) -> str:
    """The request's body; raises `InputError` where it does not render, or is no JSON."""
    levels = [asdict(level) for level in case.levels]
    body = template.render(
        {
            "rubric_id": case.rubric.id,
            "rubric": case.rubric.text,
            "transcript": case.transcript,
            "score_levels_table": score_levels_table(case.levels) if case.levels else "",
            "input": case.input,
            "messages": json.dumps(case.messages),
            "levels": json.dumps(levels),
            "metadata": json.dumps(dict(case.metadata), default=str),
        }
    )
    try:
        json.loads(body)
    except ValueError as error:
        hint = "write texts as {{ rubric | tojson }}, and messages, levels and metadata without"
        raise InputError(
            Problem(f"the request's body is no JSON: {error}", template.origin, hint=hint)
        ) from error
    return body


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(Problem(f"this body cannot be read: {error}", file=path)) from error


_KEY = "http"
# No name of a variable is longer.
_VARIABLE = re.compile(r"\$\{([^}]{0,200})\}")
_SECRET_WORDS = ("auth", "key", "token", "secret", "cookie", "credential", "password")
_FIRST_ERROR = 300
_LONGEST = 300
_POINTER = r"^(/.*)?$"
_Pointer = Annotated[
    str, Field(pattern=_POINTER), Takes("a JSON pointer into the answer, such as /score")
]


class HttpSection(ConfigSection):
    """A service that judges: what it is asked, and where its answer says what."""

    url: Annotated[
        str,
        Field(pattern=r"^https?://[^\s]+$"),
        Takes("a URL that starts with http:// or https://"),
    ]
    """Where the service is; it gets a POST with JSON for each verdict."""
    headers: Annotated[
        dict[str, str] | None, Takes("a mapping of names to values, with keys as ${NAME}")
    ] = None
    """Headers of the request. ${NAME} stands for an environment variable; nothing of them is kept.
    """
    body: PathText | None = None
    """A file with the request's JSON as a jinja template. Left out: rubric, levels, messages,
    transcript and metadata."""
    score: _Pointer = "/score"
    """Where the answer has the score, or a value of score_map."""
    reasoning: _Pointer | None = None
    """Where the answer has the reasoning, as text."""
    timeout: Annotated[float | None, Field(gt=0), Takes("a number of seconds above 0")] = None
    """How long one whole answer may take, in seconds. Left out: the judge's timeout, which bounds a
    verdict with all its attempts."""


class HttpKeys(OwnCodeKeys):
    """The keys of a judge that is a service."""

    http: HttpSection | None = None
    """A service that judges."""


@dataclass(frozen=True, slots=True)
class HttpJudge(OwnCodeJudge):
    """A judge that is a service, asked with `template` rendered for each case."""

    service: HttpSection
    template: Template

    @property
    def label(self) -> str:
        """Where the service is, without the scheme and what may be a key."""
        parts = urlsplit(self.service.url)
        return f"{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"

    @property
    def fingerprint(self) -> str:
        """SHA-256 over where it is asked, with what, and what is read of its answer."""
        service = self.service
        parts = {
            "url": self.label,
            "body": self.template.source,
            "score": service.score,
            "reasoning": service.reasoning,
        }
        return self.fingerprint_of(_KEY, parts)

    @property
    def calls(self) -> CallRange:
        """One request a verdict; those that fail come on top."""
        return ONE_CALL

    @property
    def lacks(self) -> str:
        """The environment variables that its headers name and that are not set."""
        _, missing = with_environment(self.service.headers or {}, os.environ)
        if not missing:
            return ""
        names = ", ".join(dict.fromkeys(missing))
        return f"the headers need {names}, which the environment does not have"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values of the environment variables that its headers name, whatever their names."""
        values = (os.environ.get(name, "") for name in self._variables())
        return tuple(value for value in values if value)

    def _variables(self) -> list[str]:
        headers = (self.service.headers or {}).values()
        return [name for value in headers for name in _VARIABLE.findall(value)]

    async def __call__(self, case: Case, repeat: int, calls: JudgeCalls) -> Verdict:
        """Ask the service about a case; raises `Unscored` where no score on offer comes back."""
        del repeat  # `calls` records each repeat by itself
        judged = judged_case(case, show_reasoning=self.settings.show_reasoning)
        body = self._body(judged)
        code = self.own_code(
            judged, lambda _submit: self._answer(body), lambda answer: self._read(answer, judged)
        )
        return await calls.run(code)

    @property
    def timeout(self) -> float:
        """How long one verdict may take with all its attempts, in seconds."""
        return self.settings.stage.timeout or max(DEFAULT_TIMEOUT, self.service.timeout or 0)

    def _body(self, case: JudgedCase) -> str:
        try:
            return rendered(self.template, case)
        except InputError as error:
            raise Unscored("input_error", stage=JUDGE.name, cause=str(error)) from error

    async def _answer(self, body: str) -> object:
        """The JSON that the service answers with, asked again where it has no answer yet; raises
        `Unscored` where it answers none.
        """
        import httpx

        headers, _ = with_environment(self.service.headers or {}, os.environ)
        headers = {"content-type": "application/json", **headers}
        retry = RetryPolicy()
        # Whoever waits for the verdict stops waiting then.
        ends = time.monotonic() + self.timeout
        longest = self.service.timeout or self.timeout
        # A name in another script is written as it is asked for: xn--...
        url = httpx.URL(self.service.url)
        async with httpx.AsyncClient(timeout=longest, follow_redirects=True) as client:
            late = 0
            for attempt in range(1, retry.attempts + 1):
                try:
                    # httpx's own limit begins anew with every byte that comes.
                    async with asyncio.timeout(longest):
                        with kept_to_origin(str(url)):
                            response = await client.post(url, content=body, headers=headers)
                except UnusableAnswer as error:
                    raise self._failed(str(error), attempt) from error
                except (httpx.HTTPError, TimeoutError) as error:
                    late += isinstance(error, httpx.TimeoutException | TimeoutError)
                    if retry.gives_up(attempt, late):
                        raise self._failed(error_text(error), attempt) from error
                    await asyncio.sleep(retry.wait(attempt, None))
                    continue
                status = response.status_code
                if is_retried(status) and not retry.gives_up(attempt, late):
                    await asyncio.sleep(
                        retry.wait(attempt, self._asked_for(response, attempt, ends))
                    )
                    continue
                if status >= _FIRST_ERROR:
                    raise self._refused(response, attempt)
                return self._json(response)
        raise AssertionError("unreachable")

    def _asked_for(self, response: httpx.Response, attempt: int, ends: float) -> float | None:
        """Seconds that a refusal asks to wait; raises `Unscored` for more than the verdict has
        left.
        """
        retry_after = response.headers.get("retry-after")
        asked_for = seconds_asked_for(retry_after)
        if asked_for is not None and time.monotonic() + asked_for > ends:
            raise self._failed(
                f"it answered with HTTP status {response.status_code} and `Retry-After: "
                f"{shortened(retry_after, _LONGEST)}`, which is later than the judge's `timeout` "
                f"of {self.timeout:g} s",
                attempt,
            )
        return asked_for

    def _json(self, response: httpx.Response) -> object:
        try:
            answer = parsed(response.content)
            check_depth(answer)
        except DamagedError as error:
            answer_text = shortened(response.text, _LONGEST)
            raise self.scale().invalid(
                f"gave an answer that {error}; it answered {answer_text!r}"
            ) from error
        return answer

    def _refused(self, response: httpx.Response, attempts: int) -> Unscored:
        answer_text = shortened(" ".join(response.text.split()), _LONGEST)
        cause = f"it answered with HTTP status {response.status_code}: {answer_text or '(nothing)'}"
        return self._failed(cause, attempts)

    def _failed(self, cause: str, attempts: int) -> Unscored:
        times = "" if attempts == 1 else f" ({attempts} attempts)"
        return Unscored(
            "model_error",
            stage=JUDGE.name,
            cause=f"{self.scale().who}: {cause}{times}.",
            advice="Run again once it answers: recorded requests are kept.",
            happened="the judge gave no verdict",
        )

    def _read(self, answer: object, case: JudgedCase) -> Verdict:
        value, reasoning = self._at(answer, "score"), ""
        if self.service.reasoning:
            reasoning = self._at(answer, "reasoning")
        return self.scale().verdict(value, reasoning, case)

    def _at(self, answer: object, key: str) -> Any:
        pointer = getattr(self.service, key)
        value = at(answer, pointer)
        if value is not MISSING:
            return value
        raise self.scale().invalid(
            f"has nothing at {pointer}, its `{key}`; it answered "
            f"{shortened(json.dumps(answer, ensure_ascii=False), _LONGEST)}"
        )


def with_environment(
    headers: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """The headers with each `${NAME}` replaced, and the names that are not set.

    A header that needs one of these is left out.
    """
    filled: dict[str, str] = {}
    missing: list[str] = []
    for header, value in headers.items():
        text, *parts = value.split("${")
        unset: list[str] = []
        for part in parts:
            name, closed, after = part.partition("}")
            if not closed:
                text += f"${{{part}"
                continue
            if name not in environ:
                unset.append(name)
            text += environ.get(name, "").strip() + after
        if unset:
            missing += unset
        else:
            filled[header] = text
    return filled, missing


def _build(settings: JudgeSettings, mode: Mode, instruction: str) -> HttpJudge:
    del mode, instruction  # the body says what the service gets
    section = settings.section
    assert isinstance(section, HttpKeys)
    service = section.http
    assert service is not None
    for name, value in (service.headers or {}).items():
        if "${" not in value and any(word in name.lower() for word in _SECRET_WORDS):
            raise InputError(
                Problem(
                    f"the header {name} is written out; a config never holds a key",
                    key="judge.http.headers",
                    hint=f"write {name}: ${{NAME}}, and set the environment variable NAME",
                )
            )
    template = load_body(service.body)
    return HttpJudge(settings, service, template)


def _with_files(section: Any, relocated: Callable[[str, tuple[str, ...]], str]) -> Any:
    service = section.http
    if service is None or service.body is None:
        return section
    body = relocated(service.body, (_KEY, "body"))
    return section.model_copy(update={_KEY: service.model_copy(update={"body": body})})


HTTP = JudgeKind(
    key=_KEY,
    build=_build,
    keys=HttpKeys,
    asks_model=False,
    with_files=_with_files,
    start=JudgeStart(
        # `http://...` stands for `http:http://...`.
        keys=lambda url, _mode: {
            _KEY: {"url": url if "://" in url else f"{_KEY}:{url}", "score": "/score"}
        },
        notes=(
            "in `http`: reasoning: /reasoning, where its answer has one; body: request.json.j2, a",
            'template; headers: {Authorization: "Bearer ${JUDGE_TOKEN}"}, from the environment',
        ),
    ),
)
