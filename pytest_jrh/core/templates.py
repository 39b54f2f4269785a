"""Prompt templates and pages: the only importer of jinja2.

A template is the user's or ours; what is put into it is hostile. So a template is rendered once, no
value is ever read as a template, and no value can close a delimiter that the template opened.
Prompts are jinja2's, sandboxed and checked before they are used, or RAND's, with plain names in
single braces. Pages are ours alone, and whatever is put into them is escaped.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_jrh.core import InputError, Problem, frozen, nearest_hint
from pytest_jrh.core.calls import known_name
from pytest_jrh.core.transcript import neutralize

if TYPE_CHECKING:
    import jinja2


Style = Literal["jinja", "braces"]
_Used: TypeAlias = "tuple[set[str], list[Problem]]"
"""The names that a template uses, and what is wrong with it."""
_BRACE = r"\{\{|\}\}|\{([^{}]*)\}|[{}]"
_STARTS_LIKE_A_NAME = r"\s*([A-Za-z_]\w*)"
_CLOSING_TAG = r"</([A-Za-z_][\w.-]*)\s*>"


@frozen
class Template:
    """A checked prompt template.

    `origin` is its file, or a name such as "built-in planner.binary.fail"; `style` is jinja, or
    RAND's single braces; `variables` are the names it uses; `tags` are the XML-like tags that it
    closes.
    """

    source: str
    origin: str
    style: Style
    variables: frozenset[str]
    tags: frozenset[str]

    def render(self, values: Mapping[str, object]) -> str:
        """Fill in `values`, each as plain text that cannot close one of `tags`.

        Names that the template does not use are ignored. Raises `InputError` where an expression of
        the template fails.
        """
        # A number stays one, so that a template can compare or count with it; all else is text.
        safe = {}
        for name in self.variables:
            value = values[name]
            safe[name] = value if isinstance(value, int) else neutralize(str(value), self.tags)
        if self.style == "braces":
            pieces = _scan_braces(self.source)
            return "".join(str(safe[name]) if name else text for text, name, _ in pieces)
        try:
            return _compiled(self.source).render(safe)
        except Exception as error:
            # Whatever a template's own expressions raise is a mistake in the template.
            cause = str(error) or f"an expression failed with {type(error).__name__}"
            raise InputError(f"the prompt does not render: {cause}", file=self.origin) from error


def parse_template(
    source: str, origin: str, *, allowed: Collection[str], required: Collection[str]
) -> Template:
    """Check a template's text.

    Every mistake in it is reported at once as `InputError`. Of `required` names with a bar between
    them one is.
    """
    style = _style(source, allowed)
    check = _check_braces if style == "braces" else _check_jinja
    used, problems = check(source, origin, allowed)
    missing = sorted(names for names in required if used.isdisjoint(names.split("|")))
    if missing:
        name = missing[0].partition("|")[0]
        placeholder = f"{{{name}}}" if style == "braces" else f"{{{{ {name} }}}}"
        message = (
            f"""the prompt must use {_listed(missing).replace("|", '" or "')}, and does not; the """
            f"variables are {_listed(allowed)}"
        )
        hint = f"write {placeholder} where the model should read the {name.replace('_', ' ')}"
        problems.append(Problem(message, origin, hint=hint))
    if problems:
        raise InputError(problems)
    return Template(
        source,
        origin,
        style,
        frozenset(used),
        frozenset(tag.lower() for tag in re.findall(_CLOSING_TAG, source)),
    )


def _style(source: str, allowed: Collection[str]) -> Style:
    names = "|".join(map(re.escape, sorted(allowed)))
    # One brace more in front makes RAND's doubled brace of a jinja mark: "{{{name}", "{{%".
    if re.search(rf"(?<!\{{)\{{(?:%|\{{[-+]?\s*(?:{names})\b)", source):
        return "jinja"
    for _, name, _ in _scan_braces(source):
        if name and {name, known_name(name)} & {*allowed}:
            return "braces"
    return "jinja"


def _scan_braces(source: str) -> Iterator[tuple[str, str | None, int]]:
    """Read a single-brace template in one pass as (text, the name that opens it or None, offset).

    It agrees with `str.format` on everything that `str.format` accepts and a plain name is asked
    for; beyond that, braces that can only be JSON (`{"score": 1}`) stand for themselves.
    """
    end = json_depth = 0
    for match in re.finditer(_BRACE, source):
        yield source[end : match.start()], None, end
        end = match.end()
        piece, inner = match[0], match[1]
        name = re.match(_STARTS_LIKE_A_NAME, inner or "")
        if name:
            yield piece, name[1], match.start()
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


def _check_braces(source: str, origin: str, allowed: Collection[str]) -> _Used:
    """Give the placeholders that a template uses out of `allowed`, and what is wrong with it."""
    used = set()
    problems = []
    for text, name, offset in _scan_braces(source):
        if name and name in allowed and text == f"{{{name}}}":
            used.add(name)
        elif name:
            line = 1 + source.count("\n", 0, offset)
            problems.append(
                _unknown(
                    text,
                    text[1:-1],
                    allowed,
                    origin,
                    line,
                    f"to show this text as it is, write {{{text}}}",
                )
            )
    return used, problems


def _check_jinja(source: str, origin: str, allowed: Collection[str]) -> _Used:
    """Give the variables that a template uses out of `allowed`, and what is wrong with it.

    Raises `InputError` for what is no template at all.
    """
    from jinja2 import TemplateSyntaxError, meta, nodes

    try:
        tree = _environment().parse(source)
        variables = meta.find_undeclared_variables(tree)
    except TemplateSyntaxError as error:
        raise InputError(
            f"is not a valid Jinja template: {error.message}", file=origin, line=error.lineno
        ) from error
    lines: dict[str, int] = {}
    for used in tree.find_all(nodes.Name):
        lines.setdefault(used.name, used.lineno)
    problems = [
        _unknown(f"{{{{ {name} }}}}", name, allowed, origin, lines.get(name))
        for name in sorted(variables - set(allowed))
    ]
    return variables & set(allowed), problems


def _unknown(
    shown: str,
    name: str,
    allowed: Collection[str],
    origin: str,
    line: int | None,
    hint: str | None = None,
) -> Problem:
    message = f"unknown variable {shown}; the variables are {_listed(allowed)}"
    hint = nearest_hint(name, sorted(allowed)) or hint
    if (known := known_name(name)) in allowed:
        hint = f"write {shown.replace(name, known)}"
    return Problem(message, origin, line, hint=hint)


def _listed(names: Collection[str]) -> str:
    return '"' + '", "'.join(sorted(names)) + '"'


@lru_cache(maxsize=8)
def _environment(*, is_page: bool = False) -> jinja2.Environment:
    """For prompts, or for pages, which are escaped: sandboxed and strict."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, autoescape=is_page, trim_blocks=True, lstrip_blocks=True
    )


@lru_cache(maxsize=256)
def _compiled(source: str) -> jinja2.Template:
    return _environment().from_string(source)


def render_page(source: str, values: Mapping[str, object]) -> str:
    """Render one of the package's own pages, with every value escaped.

    Undefined names raise.
    """
    return _environment(is_page=True).from_string(source).render(values)


def render_text(folder: str, file: str, values: Mapping[str, object]) -> str:
    """Fill in one of the package's own texts, in a folder of its; undefined names raise.

    Its names stand in @{ }@ and its conditions in <% %>, as most are files of tools that have
    braces of their own.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(  # noqa: S701 - no HTML
        variable_start_string="@{",
        variable_end_string="}@",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        loader=PackageLoader("pytest_jrh", folder),
    )
    # JSON is YAML.
    environment.filters["yaml"] = partial(json.dumps, ensure_ascii=False)
    environment.filters["quote"] = shlex.quote
    return environment.get_template(file).render(values)
