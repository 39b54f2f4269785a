"""jinja2's templates: sandboxed, bounded, and checked before they are used (rule D9)."""

from __future__ import annotations

import re
import traceback
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from pytest_jrh.bounds import COUNTED, Bounded, Budget
from pytest_jrh.errors import InputError, Problem
from pytest_jrh.templating.wording import listed, unknown_problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from contextlib import AbstractContextManager

    import jinja2


def render_jinja(
    source: str, values: Mapping[str, object], *, origin: str, first_line: int = 1
) -> str:
    """Render a template within bounds of time and size.

    Raises `InputError` with the line in `origin`, of which `source` starts at `first_line`, where
    an expression of the template fails.
    """
    from jinja2 import TemplateSyntaxError

    budget = Budget(sum(len(value) for value in values.values() if isinstance(value, str)))
    try:
        with _prompt_environment().spending(budget):
            return _compiled(source).render(values)
    except TemplateSyntaxError as error:
        line = first_line + error.lineno - 1
        raise InputError(
            Problem(f"not a jinja template: {error.message}", file=origin, line=line)
        ) from error
    except Exception as error:
        # Whatever a template's own expressions raise is a mistake in the template.
        inside = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == "<template>"
        ]
        last = first_line + inside[-1] - 1 if inside and inside[-1] else None
        message = f"the template does not render: {_cause(error)}"
        raise InputError(Problem(message, file=origin, line=last)) from error


@lru_cache(maxsize=256)
def constant(source: str) -> str:
    """Render a template that holds no expression, once for all calls of a stage."""
    with _prompt_environment().spending(Budget(0)):
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
    problems = [
        Problem(
            "a prompt cannot include, import or extend another file", file=origin, line=node.lineno
        )
        for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends))
    ]
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


class _PromptEnvironment(Protocol):
    def parse(self, source: str) -> jinja2.nodes.Template: ...

    def lex(self, source: str) -> Iterator[tuple[int, str, str]]: ...

    def from_string(self, source: jinja2.nodes.Template) -> jinja2.Template: ...

    def spending(self, budget: Budget) -> AbstractContextManager[None]: ...


@lru_cache(maxsize=1)
def _prompt_environment() -> _PromptEnvironment:
    """Sandboxed, bounded, strict, unescaped (a prompt is no page), and without anything random or a
    way to files.
    """
    from jinja2 import StrictUndefined, nodes
    from jinja2.compiler import CodeGenerator, Frame
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generator(CodeGenerator):
        def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802 - jinja2's name
            self.write("environment.joined((")
            for part in node.nodes:
                self.visit(part, frame)
                self.write(", ")
            self.write("))")

    class Environment(Bounded, ImmutableSandboxedEnvironment):
        code_generator_class = Generator

    environment = Environment(
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    del environment.globals["lipsum"]
    return environment


@lru_cache(maxsize=256)
def _compiled(source: str) -> jinja2.Template:
    from jinja2 import nodes

    environment = _prompt_environment()
    tree = environment.parse(source)
    for loop in tree.find_all(nodes.For):
        loop.iter = nodes.Filter(loop.iter, COUNTED, [], [], None, None, lineno=loop.lineno)
    template = environment.from_string(tree)
    # Each rendering copies them, which a chain of mappings makes slow.
    template.globals = dict(template.globals)
    return template


def _cause(error: Exception) -> str:
    match error:
        case RecursionError() | MemoryError():
            return "it is nested too deeply, or calls itself without end"
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
