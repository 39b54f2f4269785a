"""Prompt templates and pages: the only importer of jinja2 (rules D9, D10, K4).

A template is the user's or ours; what is put into it is hostile. So a template is rendered once, no
value is ever read as a template, and no value can close a delimiter that the template opened. Pages
are ours alone, and whatever is put into them is escaped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_jrh.bounds import MOST_SOURCE
from pytest_jrh.errors import InputError, Problem
from pytest_jrh.templating.braces import check_braces, scan_braces, single_braced
from pytest_jrh.templating.jinja import check_jinja, constant, render_jinja
from pytest_jrh.templating.pages import render_page as render_page
from pytest_jrh.templating.wording import listed
from pytest_jrh.text import nearest
from pytest_jrh.transcript import neutralize

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

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
        safe = {
            name: value if isinstance(value, int) else neutralize(str(value), self.tags)
            for name, value in values.items()
            if name in self.variables
        }
        if self.style == "braces":
            return "".join(
                text if name is None else str(safe[name])
                for text, name, _ in scan_braces(self.source)
            )
        return render_jinja(self.source, safe, origin=self.origin, first_line=self.first_line)


def parse_template(
    source: str, origin: str, *, allowed: Collection[str], required: Collection[str] = ()
) -> Template:
    """Check a template's text.

    Every mistake in it is reported at once as `InputError` (rule D9).
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
    words = {word for block in _JINJA.findall(source) for word in _WORD.findall(block)}
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
