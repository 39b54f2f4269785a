"""What a judge that is a service is asked: JSON, from a jinja template."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.errors import InputError, Problem
from pytest_jrh.judges.judged_case import JudgedCase, JudgedRubric
from pytest_jrh.llm.prompts import score_levels_table
from pytest_jrh.models import ScoreLevel
from pytest_jrh.templating import parse_template

if TYPE_CHECKING:
    from pytest_jrh.templating import Template

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
