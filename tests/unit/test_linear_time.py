"""No text from outside can make us work longer than in proportion to its length (200 kB here).

Every regular expression of the package has a line in `PATTERNS` below, with texts that would make a
careless one backtrack; one that is added without a line fails. So has every module that uses
difflib or textwrap.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pytest_jrh
from pytest_jrh.cli.operators import mutants_of_text
from pytest_jrh.config.load import looks_like_suite
from pytest_jrh.config.rubrics import looks_like_rubrics, read_rubrics
from pytest_jrh.core import text
from pytest_jrh.core.diffs import differences, unified
from pytest_jrh.core.documents import DamagedError
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.model import Edit
from pytest_jrh.core.redact import REDACTED, Redactor, covers
from pytest_jrh.core.templates import parse_template
from pytest_jrh.core.transcript import neutralize, render_transcript, storable
from pytest_jrh.llm.calls import Response, _unfenced, parse
from pytest_jrh.reports import failures as explain
from pytest_jrh.reports import markdown_text as quoting
from pytest_jrh.review import views as turns
from pytest_jrh.sources.log_pieces import _scan_bytes
from pytest_jrh.stats.metrics import stated_score
from tests.support.cpu import cpu_seconds

PACKAGE = Path(pytest_jrh.__file__).parent
SIZE = 200_000
# Quadratic work takes minutes on so much text.
MOST_SECONDS = 8.0


class Text(NamedTuple):
    """`start`, then `pump` as often as fits, then `end`."""

    start: str
    pump: str
    end: str

    def __str__(self) -> str:
        return (
            self.start
            + self.pump * ((SIZE - len(self.start) - len(self.end)) // len(self.pump))
            + self.end
        )


def pumped(*pumps: str, start: str = "", end: str = "") -> tuple[Text, ...]:
    return tuple(Text(start, pump, end) for pump in pumps)


ANY = pumped(" ", "\n", "a", "1", "{", '"', "\x1b[", "\u0301", "a b\n") + pumped(
    " ", "a", start="x", end="!"
)

# What stands in the first column is where a pattern is: `module.NAME`, or `module.function` for one
# that is written in place. The texts are tried beside those of `ANY`; a sentence instead says why
# no text from outside gets there.
PATTERNS: dict[str, tuple[Text, ...] | str] = {
    "judges.judge._DATA": pumped("png", ";base64,", "a", start="data:image/"),
    "store.records._ESCAPED_SURROGATE": pumped("\\ud", "\\"),
    "store.records._SURROGATE": pumped("\ud800"),
    "recording.cassettes._ESCAPED_SURROGATE": pumped("\\ud", "\\"),
    "recording.cassettes._EXPONENT": pumped("1", start=" 1e+", end="x") + pumped(" 1"),
    "recording.cassettes._readable": "a class of single characters",
    "recording.cassettes.write": "a class of single characters",
    "store.labels._STEM": pumped("a", end="!"),
    "store.labels._DIGEST": pumped("a", end="!"),
    "llm.failures._CLASS_NAMES": pumped(
        "Error", "aError: ", "litellm.", "litellm.aError: ", "Exception - "
    ),
    "llm.failures._ABOUT_TEXT": pumped("content", "flag"),
    "llm.failures._BAD_KEY": pumped("api key ", "invalid "),
    "llm.failures._NO_CREDIT": pumped("insufficient ", "out of "),
    "llm.failures._NO_CREDIT_CODE": pumped("insufficient_", "billing_"),
    "llm.failures._PASSES": pumped("retry", "per", "tokens "),
    "llm.failures._REQUEST_TOO_LARGE": pumped("request ", "request too "),
    "llm.failures._TOO_LONG": pumped("context", "too many ", "maximum number of "),
    "llm.failures._WHO_ASKS": pumped("api", "access to the ", "country"),
    "llm.negotiation._NAMES_FORMAT": pumped("response", "json", "structured", "tool"),
    "llm.negotiation._ONE_BAD_ANSWER": pumped("json_validate_", "failed_"),
    "llm.prompts._SEPARATOR": pumped(
        "---user---x\n", "---user---\t", " ", start="---user---", end="x"
    ),
    "recording.recorder._SAYS_WHO": "fixed words",
    "sources.json_items._ID": pumped("_", "a_", "id_"),
    "sources.json_items._TRIAL": pumped("_", "a_", "trial_"),
    "cli.operators._BULLET": pumped(" ", "-", "1", end="x"),
    "cli.operators._DIGIT": pumped("1", "0 ", "0.", end="x"),
    "cli.operators._END": pumped(".", ". ", '."', end="x"),
    "cli.operators._GUARDED": pumped("evidenc", "instruction", end="x"),
    "cli.operators._GUARDING": pumped("nothin", "neve", end="x"),
    "cli.operators._IMPERATIVE": "fixed words",
    "cli.operators._NEGATIONS": "in `WORK`",
    "cli.operators._OPENING": pumped("{", "{a", "{{", end="x"),
    "core.redact._CREDENTIAL_WORD": "names of environment variables",
    "core.redact._block_of": "in `WORK`, as redactor",
    "core.redact._NOT_OF_A_WORD": ANY,
    "core.redact._SCHEME": pumped(" ", start="Bearer"),
    "core.redact._names_a_credential": "names of environment variables",
    "store.baseline._NOT_ASCII": pumped("\x00"),
    "stats.metrics._SENTENCE": "at most 400 characters, in `WORK`",
    "stats.metrics._CLAUSE": "at most 400 characters, in `WORK`",
    "stats.metrics._MARKUP": "at most 400 characters, in `WORK`",
    "stats.metrics._SCORE": "at most 400 characters, in `WORK`",
    "stats.metrics._OPEN": "at most 400 characters, in `WORK`",
    "stats.metrics._IS": "at most 400 characters, in `WORK`",
    "stats.metrics._DOES": "at most 400 characters, in `WORK`",
    "stats.metrics._HAS": "at most 400 characters, in `WORK`",
    "stats.metrics._NEGATION": "at most 400 characters, in `WORK`",
    "reports.failures._SENTENCE_END": pumped(". ", ".", " ", "\x1f", start=". "),
    "reports.html_cases._HEADER": pumped("1", start="["),
    "reports.markdown_text._BACKTICKS": pumped("` "),
    "reports.markdown_text._LINKS": pumped("http", "www", "https:"),
    "reports.markdown_text._PROSE_MARKS": pumped("*"),
    "reports.markdown_text._REFERENCES": pumped("@", "#", "gh-"),
    "store.results._HEX": pumped("0"),
    "store.history._DATE": "of a fixed length",
    "engine.provenance._HEX": pumped("0"),
    "engine.provenance._DAY": "of a fixed length",
    "store.tables._FORMULA": pumped("="),
    "store.tables._NUMBER": pumped("1", end="x")
    + pumped("1", start="1.", end="x")
    + pumped("1", start="1e"),
    "core.text._ANSI": pumped("0", " ", "0 ", start="\x1b[", end="\x00")
    + pumped("x", start="\x1b]"),
    "core.text._COMMAND": pumped("#", "##", "::", ": :", " ", start="\n"),
    "core.text._CONTROL": pumped("\x00"),
    "core.text._SURROGATE": pumped("\ud800"),
    "core.text._UNSAFE": pumped("\x00"),
    "core.diffs._LINE": pumped("a\n"),
    "core.diffs._WORD": pumped("a ", "! ", "!"),
    "review.views._INVISIBLE": pumped("\x00"),
    "cli.init._PLAIN": pumped("a", end="!"),
    "cli.init._name_problems": "a name on the command line",
    "cli.init._filled": "texts of the package",
    "cli.init_judge._FILE_STEM": "texts of the package, and file names on the command line",
    "cases.ids._CASSETTE_NAME": pumped(".e1", "1", "x.", start="x.e"),
    "cases.ids._RESERVED": pumped(".", "a.", start="con", end="x"),
    "cases.ids.file_part": "at most 60 characters",
    "config.load._SECTION": pumped("'admin' ", '"admin"', "admin\n", start="{", end="'")
    + pumped(" ", start="admin"),
    "core.redact._FIELD": pumped("\\", '"', "a", start='"')
    + pumped("a", start='"', end='" : ')
    + pumped(" ", start='"token"'),
    "core.redact._PART": pumped("name=", "a", "\r\n", start='name="token"\r\n')
    + pumped("a", start='name="'),
    "core.redact._PARAMETER": pumped("?a=", "&", "a", start="?a="),
    "core.redact._IN_URL": pumped("://", ":", "a", start="://a:"),
    "core.redact._TOKEN_IN_URL": pumped("://", "a", start="://"),
    "core.redact._SCHEMED": pumped("Bearer ", "Bearer", "a", start="Bearer "),
    "core.redact._SECRET_NAME": pumped("token", "secret_", end="!"),
    "core.redact._PERHAPS_SECRET_NAME": pumped("token", "key", end="!"),
    "core.redact._PLAIN_WORD": pumped("a", "1"),
    "core.redact._WORDS": pumped("a", "1"),
    "core.redact._BEFORE_JSON_KEY": "at most 120 characters",
    "core.redact._BEHIND_JSON_KEY": "at most 17 characters from each place",
    "core.redact._found_alone": "secrets of the session, each at most as long as its value",
    "core.redact._found_anywhere": "secrets of the session, each at most as long as its value",
    "core.redact._is_key": "names of at most 60 characters",
    "core.redact._looks_random": "values of at most 8,192 characters, split at single characters",
    "core.redact._without_fields": "at most 8,192 characters from each field",
    "core.redact.see_headers": "headers, split at semicolons",
    "judges.http._VARIABLE": pumped("${", "a", start="${"),
    "judges.own_source._CREDENTIAL": pumped("token", "api_", end="!"),
    "judges.own_source._PLACEHOLDERS": pumped("{", "{}", "%", "%(", "1", start="%"),
    "judges.own_source._WILDCARD": "one character",
    "judges.own_source._CASSETTE": "names of files",
    "judges.own_source._WRITE_MODE": "texts in the project's own code",
    "judges.own_source._SUFFIX": "texts in the project's own code",
    "judges.own_source.add_named": "texts in the project's own code",
    "stats.gate._JUDGE": pumped("[e1-", "]", "a", start="[e1-"),
    "core.documents._EXPONENT": pumped("1", end="x")
    + pumped("1", start="1.", end="x")
    + pumped("1", start="1e"),
    "core.documents._NOT_TEXT": pumped("\x85"),
    "config.fitting._KEY_WORDS": pumped("ke", "aut"),
    "core.documents._SPACE": pumped(" "),
    "core.documents.__init__": "one character",
    "sources.json_items._BLANK": pumped(" ", end="x"),
    "sources.json_items._BRACKET": pumped(" ", '"', '\\"', '""', "1", '"\\', end=" "),
    "sources.json_items._COMMA": pumped(" ", ",", " ,", start=" "),
    "sources.log_pieces._BLANK": pumped(" ", end="x"),
    "sources.log_pieces._COMMA": pumped(" ", end="x") + pumped(" ", start=",", end="x"),
    "sources.log_pieces._TOKEN": "in `WORK`, as scanned log",
    "config.preprocessors._BLOCK_COMMENT": pumped(" ", "'"),
    "config.preprocessors._LINE_COMMENT": pumped(" ", "-"),
    "core.documents._ANSI": pumped("0", " ", "0 ", start="\x1b[", end="\x00")
    + pumped("x", start="\x1b]"),
    "core.documents._JOINT": pumped("."),
    "config.resolve._UNSAFE": pumped("/"),
    "config.resolve._bound": "scores of the config, in `WORK`",
    "config.rubrics._HEAD_JSON": pumped('"rubrics" ', '"rubrics":[', '"rubrics" : ', start="{")
    + pumped(" ", start="["),
    "config.rubrics._HEAD_YAML": pumped("-\n", "- ", " ", "rubrics ", start="-"),
    "config.rubrics._ID": pumped("id\n", "id ", '"id" ', "- ", "-\n", " \n", "id", start="\n"),
    "config.rubrics._INSTRUCTIONS": pumped(
        "instructions\n", "instruction ", "- ", " \n", start="\n"
    ),
    "core.templates._BRACE": pumped("{a", "}", "{}", start="{"),
    "core.templates._CLOSING_TAG": pumped("</a", "</", "a.", " ", start="</a"),
    "core.templates._JINJA": "templates of the package",
    "core.templates._STARTS_LIKE_A_NAME": pumped(" ", "a"),
    "core.templates._WORD": pumped("a "),
    "core.templates._style": "in `WORK`, as parse_template",
    "core.templates.check_jinja": "in `WORK`, as parse_template",
    "core.transcript._ROLE": pumped("a", "-", start="a"),
    "cases.probes.prompt_injection._NAME": pumped("a", end="!"),
    "cases.probes.prompt_injection._OPEN": pumped("$", "{", "${"),
    "cases.probes.prompt_injection._PLACEHOLDER": pumped("${", "${a", "$"),
    "cases.probes.probe._NAME": pumped("a", "a-", "-", start="a"),
    "core.transcript._LONE_SURROGATE": pumped("\ud800"),
    "core.transcript._placeholder": "at most 80 characters",
    "core.transcript._tag_pattern": "in `WORK`, as neutralize",
}


def interleaved(separator: str) -> tuple[str, str]:
    """Two texts with many short pieces in common, each between pieces that are not."""
    places = range(SIZE // 14)
    return (
        separator.join(f"w{place}{separator}x{place}" for place in places),
        separator.join(f"w{place}{separator}y{place}" for place in places),
    )


class _Anything(Response):
    score: int


def _parsed(answer: str) -> None:
    with pytest.raises(ValueError, match="validation error"):
        parse(answer, _Anything)


def _checked_template(source: str) -> None:
    with contextlib.suppress(InputError, RecursionError):
        parse_template(source, "t.md", allowed={"transcript", "rubric"}, required={"rubric"})


def _scanned_log(words: str) -> None:
    with contextlib.suppress(DamagedError):
        _scan_bytes(words.encode("utf-8", "replace"))  # type: ignore[arg-type]


def _scored_template(words: str) -> None:
    """One secret after another was taken out of the recorded request."""
    recorded = REDACTED.join(["a"] * (len(words) // 20))
    assert not covers(f"{recorded}!", words)
    covers(recorded, words + "a")


def _blocks(words: str) -> None:
    content = [{"type": "text", "text": word} for word in words[:20_000]]
    render_transcript([{"role": "tool", "content": content * 5, "function": words}])


def _edited(old: str, new: str) -> None:
    explain.edit_diff(Edit(0, "m", 1, old, new, "why", "because", "{}", "summary", 0))


FENCES = pumped("\n", " ", "\n ", "\t\n", "{", start="```json", end="{")
FENCES += pumped("\n", "\n```", "`", "```\n", start="```json\n", end="{") + pumped(
    "\n", start="```json\n{", end="```x"
)
TAGS = pumped("< ", "</", "<\\", " ", "\u200b", "<transcript ", start="<")
BRACES = pumped(
    "{{ ",
    "{{-",
    "{{",
    " ",
    "{a",
    "{a}",
    "{transcript}\n",
    "{#",
    "{%",
    "{{a}}",
    "{{'",
    "{% raw %}",
    start="{{",
)
BRACES += pumped("{a", "{a\n", "}", "{{}", "{rubric.x}\n", start="{rubric}")
YAML = pumped("- {}\n", "? ", "- - ", "&a ", "*a ", "'", "- :1", ":1", "# ", "- !!x y\n")
JSON = pumped("[", "{", '{"id":1},', "{},", '"a",', "1", start="[")
KEYS = pumped(
    "a", "QUFB", "&amp;", "sk-0123456789abcde", "A" * 64, "-----B-----\n", " ", start="-----B-----"
)
PEM = "\n".join(["-----B-----", *["A" * 64] * 20, "-----E-----"])

# What is done with texts from outside, beside the patterns.
WORK: dict[str, tuple[Callable[[str], object], tuple[Text, ...]]] = {
    "parse": (_parsed, FENCES),
    "mutants": (
        lambda text: list(mutants_of_text(text, "prompt", most=20)),
        pumped("Do not do it. ", "{{ a b. ", "0 1 ", "- ", "is no ", " ", "evidence not it.\n"),
    ),
    "unfenced": (_unfenced, FENCES),
    "covers": (_scored_template, pumped("a", "ab", "b")),
    "scanned log": (
        _scanned_log,
        pumped("\\", '\\"', '"a" ', start='"') + pumped(" ", '" ', start='"a"'),
    ),
    "neutralize": (lambda words: neutralize(words, {"transcript"}), TAGS),
    "render_transcript": (_blocks, ()),
    "storable": (storable, pumped("\ud800", "\x00")),
    "redactor": (Redactor(("a" * 64 + "b", "sk-0123456789abcdef", PEM)).text, KEYS),
    "parse_template": (_checked_template, BRACES),
    "shortened": (
        lambda words: text.shortened(f"{words}{'b' * 99}", 80),
        pumped("\u0301", "\u3042"),
    ),
    "wrapped": (lambda words: text.wrapped(words, 80), pumped("\t", "a\t")),
    "plain": (text.plain, pumped("\x1b[0", "\x1b]")),
    "one_line": (text.one_line, ()),
    "log_line": (text.log_line, pumped(" #", "##[", " :")),
    "markdown.code": (quoting.code, pumped("`")),
    "markdown.prose": (quoting.prose, pumped("@", "http:", "www.")),
    "markdown.preformatted": (quoting.preformatted, pumped("&")),
    "markdown.quoted": (quoting.quoted, pumped("@", "\n")),
    "markdown.inert": (quoting.inert, pumped("#1", "www.")),
    "explain.prose": (lambda words: explain._prose(words, 80), ()),
    "explain.edit_diff": (lambda words: _edited(words, f"b{words[::-1]}"), pumped(". ", "a. b. ")),
    "explain.edit_diff, interleaved": (lambda _: _edited(*interleaved(". ")), pumped("a")),
    "differences": (
        lambda words: differences(words, f"b {words[::-1]} b"),
        pumped("a ", "a b ", "a\n"),
    ),
    "differences, interleaved": (lambda _: differences(*interleaved(" ")), pumped("a")),
    "differences, lines": (lambda _: differences(*interleaved("\n")), pumped("a")),
    "unified": (
        lambda words: unified(words.split(), ["b", *words.split(), "b"]),
        pumped("a ", "a b "),
    ),
    "unified, interleaved": (
        lambda _: unified(*(each.split() for each in interleaved(" "))),
        pumped("a"),
    ),
    "stated_score": (
        lambda words: stated_score(words, binary=True),
        pumped("a ", "not ", "score ", end=" no"),
    ),
    "turns.visible": (turns.visible, ()),
}
FILES: dict[str, Callable[[Path], object]] = {
    "looks_like_rubrics": looks_like_rubrics,
    "looks_like_suite": looks_like_suite,
    "read_rubrics": read_rubrics,
}
COMPARING = {"core.diffs", "reports.failures", "core.text"}
# What is matched is typed on the command line, or names of files with the project's own code.
MATCHING = {"judges.own_source", "plugin.activation"}
WRAPPING = {"core.text", "core.user_code"}


class Finder(ast.NodeVisitor):
    """Finds the regular expressions of a module, by the name or function that they stand in."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.inside = ""
        self.found: set[str] = set()

    def _within(self, node: ast.AST, name: str) -> None:
        before, self.inside = self.inside, self.inside or name
        self.generic_visit(node)
        self.inside = before

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._within(node, node.name)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Assign(self, node: ast.Assign) -> None:
        self._within(node, node.targets[0].id if isinstance(node.targets[0], ast.Name) else "")

    def visit_Call(self, node: ast.Call) -> None:
        called = ast.unparse(node.func)
        if called.startswith("re.") and called != "re.escape":
            self.found.add(f"{self.module}.{self.inside}")
        self.generic_visit(node)


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    paths = sorted(PACKAGE.rglob("*.py"))
    names = [".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in paths]
    return tuple(
        (name, ast.parse(path.read_text(encoding="utf-8")))
        for name, path in zip(names, paths, strict=True)
    )


def test_every_regular_expression_has_its_line() -> None:
    found: set[str] = set()
    for name, tree in modules():
        finder = Finder(name)
        finder.visit(tree)
        found |= finder.found
    assert not found - set(PATTERNS), (
        "give it a line in PATTERNS, with the texts that could make it backtrack"
    )
    assert not set(PATTERNS) - found, "take its line out of PATTERNS"


@pytest.mark.parametrize(
    ("library", "known"), [("difflib", COMPARING), ("textwrap", WRAPPING), ("fnmatch", MATCHING)]
)
def test_every_module_that_compares_or_wraps_texts_is_known(library: str, known: set[str]) -> None:
    found = set()
    for name, tree in modules():
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if library in names or (isinstance(node, ast.ImportFrom) and node.module == library):
                found.add(name)
    assert found == known


@pytest.mark.parametrize(
    "name", [name for name, texts in PATTERNS.items() if not isinstance(texts, str)]
)
def test_pattern_is_linear(name: str) -> None:
    texts = PATTERNS[name]
    assert not isinstance(texts, str)
    module, _, constant = name.rpartition(".")
    pattern = getattr(importlib.import_module(f"pytest_jrh.{module}"), constant)
    uses = set(re.findall(rf"\b{constant}\.(\w+)\(", ast.unparse(dict(modules())[module])))
    for each in (*ANY, *texts):
        words = str(each)
        subject = words.encode() if isinstance(pattern.pattern, bytes) else words
        with cpu_seconds(MOST_SECONDS):
            for use in uses or {"findall"}:
                if use in {"sub", "subn"}:
                    pattern.sub(subject[:0], subject)
                elif use == "finditer":
                    assert all(pattern.finditer(subject))
                else:
                    getattr(pattern, use)(subject)


@pytest.mark.parametrize("name", WORK)
def test_work_is_linear(name: str) -> None:
    work, texts = WORK[name]
    for each in texts if "interleaved" in name or "lines" in name else (*ANY, *texts):
        words = str(each)
        with cpu_seconds(MOST_SECONDS):
            work(words)


@pytest.mark.parametrize("name", FILES)
def test_reading_a_file_is_linear(name: str, tmp_path: Path) -> None:
    file = tmp_path / "rubrics.yml"
    for each in (*ANY, *YAML, *JSON):
        file.write_text(str(each), encoding="utf-8", errors="replace")
        with cpu_seconds(MOST_SECONDS):
            FILES[name](file)


def test_sixty_thousand_empty_lines_before_an_id_are_read_at_once(tmp_path: Path) -> None:
    file = tmp_path / "rubrics.yml"
    file.write_text("rubrics:\n" + "\n" * 60_000 + "- id: a\n  instructions: b\n", encoding="utf-8")
    with cpu_seconds(MOST_SECONDS):
        assert looks_like_rubrics(file)


# What the answer of a model may be wrapped in, as it was first written down; its backtracking is
# cubic.
FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", re.DOTALL)


@given(
    st.lists(
        st.sampled_from(["```", "`", "json", "\n", " ", "\t", "\u00a0", "{}", "x"]), max_size=12
    ).map("".join)
)
def test_a_fence_is_taken_off_as_the_pattern_did(answer: str) -> None:
    match = FENCED.fullmatch(answer)
    assert _unfenced(answer) == (match.group(1) if match else answer)


@given(
    st.lists(st.sampled_from(["a", "b", REDACTED]), max_size=8).map("".join),
    st.lists(st.sampled_from(["a", "b", "c", "ab"]), max_size=8).map("".join),
)
def test_a_recorded_body_covers_what_the_pattern_covered(recorded: str, wanted: str) -> None:
    pattern = ".+".join(re.escape(part) for part in recorded.split(REDACTED))
    assert covers(recorded, wanted) == (
        recorded == wanted or re.fullmatch(pattern, wanted, re.DOTALL) is not None
    )


# The pages' own patterns, as Python writes them; a browser's engine backtracks like Python's.
SCRIPTS = {
    r"/\{\{|\{%/": r"\{\{|\{%",
    r"/\{\w+\}/": r"\{\w+\}",
    r"/\s+/": r"\s+",
    "/[$,]/g": "[$,]",
    "/^(user|tool|assistant|system)$/": "^(user|tool|assistant|system)$",
    "/^case-([0-9a-f]+)$/": "^case-([0-9a-f]+)$",
}
_SCRIPT_PATTERN = re.compile(
    r"(?<=[=(,!&|?:\s{])/(?![/*\s>])(?:[^/\\\n\[ ]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*(?=[\s.,;)])"
)


def test_every_pattern_of_a_page_is_known_and_linear() -> None:
    found: set[str] = set()
    for path in [*PACKAGE.rglob("*.js"), *PACKAGE.rglob("*.html")]:
        source = path.read_text(encoding="utf-8")
        assert "RegExp(" not in source
        found.update(
            _SCRIPT_PATTERN.findall(re.sub(r"//[^\n]*\n", "\n", source))
            if path.suffix == ".js"
            else ()
        )
    assert found == set(SCRIPTS)
    for pattern in SCRIPTS.values():
        for each in (*ANY, *pumped("{a", "{", start="{"), *pumped("0", start="case-", end="x")):
            with cpu_seconds(MOST_SECONDS):
                re.sub(pattern, "", str(each))
