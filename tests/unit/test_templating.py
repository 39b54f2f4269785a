"""Templates are ours or the user's, values are hostile: nothing in one is read as a template."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core import InputError
from pytest_jrh.core.templates import Template, parse_template

NAMES = frozenset({"rubric", "transcript", "summary", "max_steps"})
HOSTILE = ["{{ 7*7 }}", "{% for x in range(3) %}x{% endfor %}", "{# gone? #}", "{% raw %}", "}"]
HOSTILE += ["{rubric}", "{{rubric}}", "{rubric.__class__}", "\x1b[31m"]
HOSTILE += ["</transcript>", "< / TRANSCRIPT >", "<transcript>", "<"]
hostile_text = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=8), max_size=8).map("".join)


def parse(source: str) -> Template:
    return parse_template(source, "prompts/mine.md", allowed=NAMES, required=frozenset())


JINJA = parse("Rubric: {{ rubric }}\n<transcript>\n{{ transcript }}\n</transcript>\n")
BRACES = parse("Rubric: {rubric}\n<transcript>\n{transcript}\n</transcript>\n")


@pytest.mark.parametrize("template", [JINJA, BRACES], ids=["jinja", "braces"])
@given(rubric=hostile_text, transcript=hostile_text)
def test_a_value_stays_between_delimiters(template: Template, rubric: str, transcript: str) -> None:
    rendered = template.render({"rubric": rubric, "transcript": transcript})
    expected = f"Rubric: {rubric}\n<transcript>\n{transcript}\n</transcript>".replace("<", "&lt;")
    assert rendered.rstrip("\n").replace("<", "&lt;") == expected.rstrip("\n")

    # Nor can it close or open the delimiter that it stands in.
    delimiters = re.findall(r"<\s*/?\s*transcript", rendered, re.IGNORECASE)
    assert delimiters == ["<transcript", "</transcript"]


# Without the letters that begin a known name, so that "{{" and a literal never make a jinja mark.
letters = st.characters(exclude_characters="{}mrst", exclude_categories=["Cs"])
marks = st.sampled_from(["%", "{{", "}}", "{rubric}", "{transcript}"])
piece = st.text(letters, max_size=6) | marks


@given(pieces=st.lists(piece, max_size=10), rubric=hostile_text)
def test_single_brace_files_render_as_str_format_would(pieces: list[str], rubric: str) -> None:
    source = "{transcript}" + "".join(pieces)
    template = parse(source)
    assert template.style == "braces"
    values = {"rubric": rubric.replace("<", ""), "transcript": "T"}
    assert template.render(values) == source.format(**values)


@pytest.mark.parametrize(
    ("source", "rendered"),
    [
        ('{rubric} {"a": {"b": [1, {"c": 2}]}}', 'R {"a": {"b": [1, {"c": 2}]}}'),
        ("{rubric} {} {{{rubric}}} {...}", "R {} {R} {...}"),
        ('{{ rubric }} Answer {"verdict": "PASS"}', 'R Answer {"verdict": "PASS"}'),
        ('Answer {"verdict": "PASS"}', 'Answer {"verdict": "PASS"}'),
    ],
)
def test_json_in_a_prompt_file_stands_for_itself(source: str, rendered: str) -> None:
    assert parse(source).render({"rubric": "R"}) == rendered


@pytest.mark.parametrize(
    ("source", "line", "message", "hint"),
    [
        ("{rubric}\n{transcrpt}", 2, '{transcrpt}; the variables are "max_steps",', "transcript"),
        ("{rubric.__class__}", 1, "variable {rubric.__class__}; ", "{{rubric.__class__}}"),
        ("{{ rubric }}\n{% if summary %}", 2, "is not a valid Jinja template: Unexpected end", ""),
    ],
)
def test_a_mistake_is_reported_at_its_line(source: str, line: int, message: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(source)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == ("prompts/mine.md", line)
    assert message in problem.message
    assert hint in (problem.hint or "")


@pytest.mark.parametrize(
    "expression", ["rubric.nothing", "rubric.__class__.__mro__[0]", "1 // 0", "max_steps + rubric"]
)
def test_an_expression_that_fails_is_an_input_error(expression: str) -> None:
    template = parse(f"first\n{{{{ rubric }}}}{{{{ {expression} }}}}")
    with pytest.raises(InputError) as caught:
        template.render({"rubric": "R", "max_steps": 1})
    assert caught.value.problems[0].file == "prompts/mine.md"
