"""RAND's templates: a plain name in single braces (rule D9)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_jrh.errors import Problem
from pytest_jrh.templating.wording import listed, unknown_problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_BRACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_STARTS_LIKE_A_NAME = re.compile(r"\s*([A-Za-z_]\w*)")


def single_braced(source: str) -> Iterator[str]:
    """Name what opens each single-brace group: `transcript` for `{transcript}` and for
    `{transcript.x}`.
    """
    for match in _BRACE.finditer(source):
        name = _STARTS_LIKE_A_NAME.match(match[1] or "")
        if name:
            yield name[1]


def scan_braces(source: str) -> Iterator[tuple[str, str | None, int]]:
    """Read a single-brace template in one pass as (text, placeholder name or None, offset).

    It agrees with `str.format` on everything that `str.format` accepts and a plain name is asked
    for; beyond that, braces that can only be JSON (`{"score": 1}`) stand for themselves.
    """
    end = json_depth = 0
    for match in _BRACE.finditer(source):
        yield source[end : match.start()], None, end
        end = match.end()
        piece, inner = match[0], match[1]
        if inner is not None and _STARTS_LIKE_A_NAME.match(inner):
            yield piece, inner, match.start()
        elif piece == "{" and _STARTS_LIKE_A_NAME.match(source[end : end + 1]):
            yield piece, "", match.start()
        elif piece == "{":
            json_depth += 1
            yield piece, None, match.start()
        elif piece == "}":
            yield piece, None if json_depth else "", match.start()
            json_depth = max(0, json_depth - 1)
        elif piece == "}}" and json_depth > 1:
            json_depth -= 2
            yield piece, None, match.start()
        else:
            yield piece if inner is not None else piece[0], None, match.start()
    yield source[end:], None, end


def check_braces(
    source: str, origin: str, allowed: Collection[str]
) -> tuple[set[str], list[Problem]]:
    """Give the placeholders that a template uses out of `allowed`, and what is wrong with it."""
    variables: set[str] = set()
    problems = []
    line, counted = 1, 0
    for text, name, offset in scan_braces(source):
        if name is None:
            continue
        if name in allowed:
            variables.add(name)
            continue
        line, counted = line + source.count("\n", counted, offset), offset
        if name.isidentifier():
            problems.append(unknown_problem(f"{{{name}}}", name, origin, line, allowed))
        elif not name:
            message = (
                f"unmatched `{text}`: a placeholder is written {{name}}, and {text * 2} is the "
                "brace itself"
            )
            problems.append(Problem(message, file=origin, line=line))
        else:
            message = (
                f"{text} is not a placeholder: only a plain name is allowed in braces, without "
                "spaces, `.`, `[`, `:` or `!`"
            )
            hint = f"write {{{text}}} for the text itself, or one of {listed(allowed)} in braces"
            problems.append(Problem(message, file=origin, line=line, hint=hint))
    return variables, problems
