"""Prompt templates and pages: the only importer of jinja2.

A template is the user's or ours; what is put into it is hostile. So a template is rendered once, no
value is ever read as a template, and no value can close a delimiter that the template opened.
Prompts are jinja2's, sandboxed, limited in time and checked before they are used, or RAND's, with
plain names in single braces. Pages are ours alone, and whatever is put into them is escaped.
"""

from __future__ import annotations

import re
import time
import traceback
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.text import nearest
from pytest_jrh.core.transcript import neutralize

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    import jinja2
    import jinja2.runtime

MOST_SOURCE = 1_000_000
"""Characters of a template."""
MOST_SECONDS = 5.0
"""Processor time of one rendering, which other threads and a loaded machine do not use up."""
MOST_TEXT = 100_000_000
"""Characters of a rendering, and of what a template repeats."""
_MOST_BITS = 10_000
# Random, for pages alone, or of a cost that is not bounded by the length of a hostile value.
_UNSUPPORTED_FILTERS = ("random", "striptags", "urlize", "xmlattr", "pprint")
_TIMED = "_timed"
_DEADLINE = "the deadline"
"""No name that a template can set."""


def unknown_problem(
    shown_name: str, name: str, origin: str, line: int | None, allowed: Collection[str]
) -> Problem:
    """Describe an unknown variable of a template, with the nearest match."""
    near = nearest(name, sorted(allowed))
    return Problem(
        f"unknown variable {shown_name}; available: {listed(allowed)}",
        file=origin,
        line=line,
        hint=f"nearest match: {near}" if near else None,
    )


def listed(names: Collection[str]) -> str:
    """Join names for a sentence."""
    return ", ".join(sorted(names)) or "none"


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


def render_jinja(
    source: str, values: Mapping[str, object], *, origin: str, first_line: int = 1
) -> str:
    """Render a template in limited time.

    Raises `InputError` with the line in `origin`, of which `source` starts at `first_line`, where
    an expression of the template fails.
    """
    from jinja2 import TemplateSyntaxError

    deadline = time.thread_time() + MOST_SECONDS
    try:
        return _compiled(source).render({**values, _DEADLINE: deadline})
    except TemplateSyntaxError as error:
        line = first_line + error.lineno - 1
        raise InputError(
            Problem(f"not a jinja template: {error.message}", file=origin, line=line)
        ) from error
    except Exception as error:
        # Whatever a template's own expressions raise is a mistake in the template.
        last = None
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename == "<template>" and frame.lineno:
                last = first_line + frame.lineno - 1
        message = f"the template does not render: {_cause(error)}"
        raise InputError(Problem(message, file=origin, line=last)) from error


@lru_cache(maxsize=256)
def constant(source: str) -> str:
    """Render a template that holds no expression, once for all calls of a stage."""
    return _compiled(source).render()


def check_jinja(
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
        hint = None
        if '{{"' in re.sub(r"\s", "", source):
            hint = f"{{{{ is a brace only beside single-brace placeholders: {listed(allowed)}"
        problem = Problem(
            f"not a jinja template: {error.message}", file=origin, line=error.lineno, hint=hint
        )
        raise InputError(problem) from error
    except RecursionError as error:
        raise InputError(
            Problem("not a jinja template: it is nested too deeply", file=origin)
        ) from error
    problems = []
    for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        message = "a prompt cannot include, import or extend another file"
        problems.append(Problem(message, file=origin, line=node.lineno))
    lines: dict[str, int] = {}
    for name in tree.find_all(nodes.Name):
        lines.setdefault(name.name, name.lineno)
    for unknown in sorted(variables - set(allowed)):
        problems.append(
            unknown_problem(f"{{{{ {unknown} }}}}", unknown, origin, lines.get(unknown), allowed)
        )
    for line, kind, text in environment.lex(source):
        counted = 0
        for match in re.finditer(r"\{(\w+)\}", text) if kind == "data" else ():
            line, counted = line + text.count("\n", counted, match.start()), match.start()  # noqa: PLW2901
            if match[1] in allowed:
                problems.append(_mixed_problem(match[1], origin, line))
    return variables & set(allowed), problems


@lru_cache(maxsize=1)
def _prompt_environment() -> jinja2.Environment:
    """Sandboxed, strict, unescaped (a prompt is no page), without anything random or a way to
    files, and with an end to what a template repeats.

    Calls and iterations look at the clock, because jinja2's sandbox bounds no time.
    """
    from jinja2 import StrictUndefined, pass_context
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Environment(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset({"*", "**"})
        concat = staticmethod(_concatenated)

        def call(
            self, context: jinja2.runtime.Context, function: Any, /, *args: Any, **kwargs: Any
        ) -> Any:
            _check_time(context)
            return super().call(context, function, *args, **kwargs)

        def call_binop(
            self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any
        ) -> Any:
            _check_size(operator, left, right)
            return super().call_binop(context, operator, left, right)

    environment = Environment(
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters[_TIMED] = pass_context(_timed)
    for name in _UNSUPPORTED_FILTERS:
        del environment.filters[name]
    del environment.globals["lipsum"]
    return environment


def _timed(context: jinja2.runtime.Context, values: Iterable[Any]) -> Iterator[Any]:
    """Pass the values of a loop on as long as there is time."""
    for value in values:
        _check_time(context)
        yield value


def _check_time(context: jinja2.runtime.Context) -> None:
    if time.thread_time() > context[_DEADLINE]:
        raise ValueError(f"it takes more than {MOST_SECONDS:g} seconds")


def _check_size(operator: str, left: Any, right: Any) -> None:
    """Refuse a repetition or a number that would fill the memory, or take hours in one step."""
    if isinstance(left, int) and isinstance(right, int):
        if operator == "**":
            bits = left.bit_length() * right
        else:
            bits = left.bit_length() + right.bit_length()
        if bits > _MOST_BITS:
            raise ValueError(f"the result of {operator} is too big a number")
    elif operator == "*":
        times, value = (left, right) if isinstance(left, int) else (right, left)
        if isinstance(times, int) and hasattr(value, "__len__") and times * len(value) > MOST_TEXT:
            raise ValueError(f"a value would have more than {MOST_TEXT:,} characters or items")


def _concatenated(parts: Iterable[str]) -> str:
    size, texts = 0, []
    for part in parts:
        size += len(part)
        if size > MOST_TEXT:
            raise ValueError(f"the text would have more than {MOST_TEXT:,} characters")
        texts.append(part)
    return "".join(texts)


@lru_cache(maxsize=256)
def _compiled(source: str) -> jinja2.Template:
    from jinja2 import nodes

    environment = _prompt_environment()
    tree = environment.parse(source)
    for loop in tree.find_all(nodes.For):
        loop.iter = nodes.Filter(loop.iter, _TIMED, [], [], None, None, lineno=loop.lineno)
    template = environment.from_string(tree)
    # Each rendering copies them, which a chain of mappings makes slow.
    template.globals = dict(template.globals)
    return template


def _cause(error: Exception) -> str:
    match error:
        case RecursionError():
            return "it is nested too deeply, or calls itself without end"
        case MemoryError():
            return "it takes more memory than there is"
        case SyntaxError():
            return f"jinja compiles it to invalid Python: {error.msg}"
        case _:
            return str(error) or f"an expression failed with {type(error).__name__}"


def _mixed_problem(name: str, origin: str, line: int) -> Problem:
    return Problem(
        f"{{{name}}} is in single braces, but this is a jinja template, which would leave it "
        "unchanged",
        file=origin,
        line=line,
        hint=f"write {{{{ {name} }}}}, or {{{{ '{{{name}}}' }}}} for the text itself",
    )


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


Style: TypeAlias = Literal["jinja", "braces"]
_MOST_COMPARED = 1_000
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
        missing = sorted(self.variables - values.keys())
        if missing:
            raise InputError(
                Problem(
                    f"no value was given for {listed(missing)}; available: {listed(values)}",
                    file=self.origin,
                )
            )
        if self.style == "jinja" and "{" not in self.source:
            # Such as the system part of a built-in prompt, which every call of a stage has alike.
            return constant(self.source)
        # A number stays one, so that a template can compare or count with it; all else is text.
        safe: dict[str, str | int] = {}
        for name in self.variables & values.keys():
            value = values[name]
            safe[name] = value if isinstance(value, int) else neutralize(str(value), self.tags)
        if self.style == "braces":
            parts = []
            for text, variable, _ in scan_braces(self.source):
                parts.append(text if variable is None else str(safe[variable]))
            return "".join(parts)
        return render_jinja(self.source, safe, origin=self.origin, first_line=self.first_line)


def parse_template(
    source: str, origin: str, *, allowed: Collection[str], required: Collection[str] = ()
) -> Template:
    """Check a template's text.

    Every mistake in it is reported at once as `InputError`.
    """
    if len(source) > MOST_SOURCE:
        raise InputError(
            Problem(
                f"a prompt of {len(source):,} characters; at most {MOST_SOURCE:,} are allowed",
                origin,
            )
        )
    style = _style(source, allowed)
    if style == "braces":
        variables, problems = check_braces(source, origin, allowed)
    else:
        variables, problems = check_jinja(source, origin, allowed)
    missing = sorted(set(required) - variables)
    if missing:
        problems.append(
            _missing_problem(
                source, origin, style, missing=missing, used=variables, allowed=allowed
            )
        )
    if problems:
        raise InputError(problems)
    return _template(source, origin, style, variables, allowed=allowed, required=required)


def jinja_template(
    source: str, origin: str, *, allowed: Collection[str], required: Collection[str] = ()
) -> Template:
    """Build a jinja template that is known to be valid, as `parse_template` would, without the time
    to check it.
    """
    words: set[str] = set()
    for block in _JINJA.findall(source):
        words.update(_WORD.findall(block))
    return _template(
        source, origin, "jinja", words & set(allowed), allowed=allowed, required=required
    )


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
    return "braces" if any(name in allowed for name in single_braced(source)) else "jinja"


def _missing_problem(
    source: str,
    origin: str,
    style: Style,
    *,
    missing: list[str],
    used: Collection[str],
    allowed: Collection[str],
) -> Problem:
    message = f"the template does not use the required {listed(missing)}; "
    message += f"it uses {listed(used)}" if used else "it uses no variable at all"
    message += f"; available: {listed(allowed)}"
    braced = islice(dict.fromkeys(single_braced(source)), _MOST_COMPARED)
    near = [f"{{{name}}}" for name in braced if nearest(name, missing)]
    placeholder = f"{{{missing[0]}}}" if style == "braces" else f"{{{{ {missing[0]} }}}}"
    hint = f"write {placeholder} where it belongs" + (f"; the text holds {near[0]}" if near else "")
    return Problem(message, file=origin, hint=hint)
