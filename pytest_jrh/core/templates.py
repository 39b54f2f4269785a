"""Prompt templates and pages: the only importer of jinja2.

A template is the user's or ours; what is put into it is hostile. So a template is rendered once, no
value is ever read as a template, and no value can close a delimiter that the template opened.
Prompts are jinja2's, sandboxed and checked before they are used, or RAND's, with plain names in
single braces. Pages are ours alone, and whatever is put into them is escaped.
"""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.text import nearest
from pytest_jrh.core.transcript import neutralize

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    import jinja2


Style: TypeAlias = Literal["jinja", "braces"]
_BRACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_STARTS_LIKE_A_NAME = re.compile(r"\s*([A-Za-z_]\w*)")
_CLOSING_TAG = re.compile(r"</([A-Za-z_][\w.-]*)\s*>")
_JINJA = re.compile(r"\{[{%](.*?)[%}]\}", re.DOTALL)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Template:
    """A checked prompt template.

    `origin` is its file, or a name such as "built-in planner.binary.fail"; `style` is jinja, or
    RAND's single braces; `variables` are the names it uses, out of `allowed`; `tags` are the
    XML-like tags that it closes; `first_line` is where `source` starts in its file.
    """

    source: str
    origin: str
    style: Style
    variables: frozenset[str]
    required: frozenset[str]
    allowed: frozenset[str]
    tags: frozenset[str]
    first_line: int = 1

    def render(self, values: Mapping[str, object]) -> str:
        """Fill in `values`, each as plain text that cannot close one of `tags`.

        Names that the template does not use are ignored. Raises `InputError` where a name that it
        uses is missing, or where an expression of the template fails.
        """
        missing = self.variables - values.keys()
        if missing:
            message = f"no value was given for {_listed(missing)}; available: {_listed(values)}"
            raise InputError(Problem(message, file=self.origin))
        # A number stays one, so that a template can compare or count with it; all else is text.
        safe: dict[str, str | int] = {}
        for name in self.variables:
            value = values[name]
            safe[name] = value if isinstance(value, int) else neutralize(str(value), self.tags)
        if self.style == "braces":
            parts: list[str] = []
            for text, variable, _ in _scan_braces(self.source):
                parts.append(text if variable is None else str(safe[variable]))
            return "".join(parts)
        try:
            return _compiled(self.source).render(safe)
        except Exception as error:
            # Whatever a template's own expressions raise is a mistake in the template.
            line = None
            for frame in traceback.extract_tb(error.__traceback__):
                if frame.filename == "<template>" and frame.lineno:
                    line = self.first_line + frame.lineno - 1
            cause = str(error) or f"an expression failed with {type(error).__name__}"
            message = f"the template does not render: {cause}"
            raise InputError(Problem(message, file=self.origin, line=line)) from error


def parse_template(
    source: str, origin: str, *, allowed: Collection[str], required: Collection[str] = ()
) -> Template:
    """Check a template's text.

    Every mistake in it is reported at once as `InputError`.
    """
    style = _style(source, allowed)
    if style == "braces":
        used, problems = _check_braces(source, origin, allowed)
    else:
        used, problems = _check_jinja(source, origin, allowed)
    missing = sorted(set(required) - used)
    if missing:
        names = _listed(used) if used else "no variable at all"
        placeholder = f"{{{missing[0]}}}" if style == "braces" else f"{{{{ {missing[0]} }}}}"
        near = [f"{{{name}}}" for name in _single_braced(source) if nearest(name, missing)]
        problems.append(
            Problem(
                f"the template does not use the required {_listed(missing)}; it uses {names}; "
                f"available: {_listed(allowed)}",
                file=origin,
                hint=f"write {placeholder} where it belongs"
                + (f"; the text holds {near[0]}" if near else ""),
            )
        )
    if problems:
        raise InputError(problems)
    return _template(source, origin, style, used, allowed=allowed, required=required)


def jinja_template(
    source: str, origin: str, *, allowed: Collection[str], required: Collection[str] = ()
) -> Template:
    """Build a jinja template that is known to be valid, as `parse_template` would, without the time
    to check it.
    """
    words: set[str] = set()
    for block in _JINJA.findall(source):
        words.update(_WORD.findall(block))
    used = words & set(allowed)
    return _template(source, origin, "jinja", used, allowed=allowed, required=required)


def _template(
    source: str,
    origin: str,
    style: Style,
    variables: Collection[str],
    *,
    allowed: Collection[str],
    required: Collection[str],
) -> Template:
    return Template(
        source=source,
        origin=origin,
        style=style,
        variables=frozenset(variables),
        required=frozenset(required),
        allowed=frozenset(allowed),
        tags=frozenset(tag.lower() for tag in _CLOSING_TAG.findall(source)),
    )


def _style(source: str, allowed: Collection[str]) -> Style:
    names = "|".join(map(re.escape, sorted(allowed)))
    # One brace more in front makes RAND's doubled brace of a jinja mark: "{{{name}", "{{%".
    if re.search(rf"(?<!\{{)\{{(?:%|\{{[-+]?\s*(?:{names})\b)", source):
        return "jinja"
    return "braces" if any(name in allowed for name in _single_braced(source)) else "jinja"


def _single_braced(source: str) -> Iterator[str]:
    """Name what opens each single-brace group: `transcript` for `{transcript}` and for
    `{transcript.x}`.
    """
    for match in _BRACE.finditer(source):
        name = _STARTS_LIKE_A_NAME.match(match[1] or "")
        if name:
            yield name[1]


def _scan_braces(source: str) -> Iterator[tuple[str, str | None, int]]:
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
            continue
        if piece == "{":
            json_depth += 1
        elif piece == "}":
            json_depth = max(0, json_depth - 1)
        elif piece == "}}" and json_depth > 1:
            json_depth -= 2
        elif inner is None:
            piece = piece[0]
        yield piece, None, match.start()
    yield source[end:], None, end


def _check_braces(
    source: str, origin: str, allowed: Collection[str]
) -> tuple[set[str], list[Problem]]:
    """Give the placeholders that a template uses out of `allowed`, and what is wrong with it."""
    used: set[str] = set()
    problems: list[Problem] = []
    for text, name, offset in _scan_braces(source):
        if name is None:
            continue
        if name in allowed:
            used.add(name)
            continue
        line = 1 + source.count("\n", 0, offset)
        problem = _unknown_problem(text, name, allowed, origin, line)
        if problem.hint is None:
            problem = replace(problem, hint=f"write {{{text}}} for the text itself")
        problems.append(problem)
    return used, problems


def _check_jinja(
    source: str, origin: str, allowed: Collection[str]
) -> tuple[set[str], list[Problem]]:
    """Give the variables that a template uses out of `allowed`, and what is wrong with it.

    Raises `InputError` for what is no template at all.
    """
    from jinja2 import TemplateSyntaxError, meta, nodes

    environment = _prompt_environment()
    try:
        tree = environment.parse(source)
        variables = meta.find_undeclared_variables(tree)
    except TemplateSyntaxError as error:
        message = f"not a jinja template: {error.message}"
        raise InputError(Problem(message, file=origin, line=error.lineno)) from error
    problems: list[Problem] = []
    lines: dict[str, int] = {}
    for name in tree.find_all(nodes.Name):
        lines.setdefault(name.name, name.lineno)
    for unknown in sorted(variables - set(allowed)):
        shown = f"{{{{ {unknown} }}}}"
        problems.append(_unknown_problem(shown, unknown, allowed, origin, lines.get(unknown)))
    for line, kind, text in environment.lex(source):
        match = re.search(r"\{(\w+)\}", text) if kind == "data" else None
        if match and match[1] in allowed:
            message = f"{match[0]} is in single braces, but this is a jinja template"
            hint = f"write {{{{ {match[1]} }}}}, or {{{{ '{match[0]}' }}}} for the text itself"
            problems.append(
                Problem(message, origin, line + text.count("\n", 0, match.start()), hint=hint)
            )
    return variables & set(allowed), problems


def _unknown_problem(
    shown_name: str, name: str, allowed: Collection[str], origin: str, line: int | None
) -> Problem:
    near = nearest(name, sorted(allowed))
    return Problem(
        f"unknown variable {shown_name}; available: {_listed(allowed)}",
        file=origin,
        line=line,
        hint=f"nearest match: {near}" if near else None,
    )


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)) or "none"


@lru_cache(maxsize=1)
def _prompt_environment() -> jinja2.Environment:
    """Sandboxed, strict, and unescaped: a prompt is no page."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
    )


@lru_cache(maxsize=256)
def _compiled(source: str) -> jinja2.Template:
    return _prompt_environment().from_string(source)


def render_page(folder: Path, name: str, values: Mapping[str, object]) -> str:
    """Render one of the package's own pages, `folder/name`, with every value escaped.

    Undefined names raise.
    """
    return _page_environment(folder).get_template(name).render(values)


@lru_cache(maxsize=8)
def _page_environment(folder: Path) -> jinja2.Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
