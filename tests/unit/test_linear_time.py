"""No text from outside can make us work longer than in proportion to its length (100 kB here).

Every regular expression of the package is tried with texts that are made of it, so that a careless
one backtracks. Every module that uses difflib, textwrap or fnmatch has its line below.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from re import _compiler as re_compiler  # type: ignore[attr-defined]
from re import _parser as re_parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pytest_jrh
from pytest_jrh.config.load import looks_like_suite
from pytest_jrh.config.rubrics import looks_like_rubrics, read_rubrics
from pytest_jrh.core import text
from pytest_jrh.core.citations import turns_cited
from pytest_jrh.core.diffs import differences, unified
from pytest_jrh.core.documents import DamagedError
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.model import Edit
from pytest_jrh.core.redact import REDACTED, Redactor, covers
from pytest_jrh.core.templates import parse_template
from pytest_jrh.core.transcript import neutralize, render_transcript, storable
from pytest_jrh.llm.calls import Response, _unfenced, parse
from pytest_jrh.reports import failures as explain
from pytest_jrh.reports import markdown as quoting
from pytest_jrh.review import views as turns
from pytest_jrh.sources.log_pieces import _scan_bytes
from pytest_jrh.stats.metrics import stated_score
from tests.support.cpu import TooSlow, cpu_seconds

PACKAGE = Path(pytest_jrh.__file__).parent
SIZE = 100_000
# Quadratic work takes ten times as long and more on so much text.
MOST_SECONDS = 4.0


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
# Patterns that take longer, and why no long text from outside gets to them.
BOUNDED = {
    "core.templates._JINJA": "templates of the package",
    "judges.own_source._CASSETTE": "names of files",
}
# Patterns that are put together where they are used: their functions are tried in `WORK`.
PUT_TOGETHER = {
    "core.redact._block_of",
    "core.redact._found_alone",
    "core.redact._found_anywhere",
    "core.redact._without_fields",
    "core.templates._style",
    "core.transcript._tag_pattern",
    "recording.cassettes._readable",
    "recording.cassettes.write",
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
    "turns_cited": (
        lambda words: turns_cited(
            words, {1}, [{"role": "assistant", "content": words}] * 3, numbered=True
        ),
        pumped("[1] ", "turns 1, ", "wrong [2]", '"a', "'a b c d e f' ", "[1]\n", "step 1-99 "),
    ),
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


# Those first that tell classes of characters apart.
LETTERS = ["a", "1", " ", "\n", "-", "!", *map(chr, range(1, 0x300)), "\u202e", "\ud800"]
METHODS = "match|fullmatch|search|sub|subn|split|findall|finditer"
CALL_OF_RE = re.compile(rf"re\.(?:compile|{METHODS})")


class Pattern(NamedTuple):
    """A regular expression of the package: where it stands, and the methods that it is used by."""

    place: str
    compiled: re.Pattern[Any]
    methods: frozenset[str]

    def __str__(self) -> str:
        return self.place


@cache
def sources() -> dict[str, str]:
    """The text of every module, by its name below the package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        found[name] = path.read_text(encoding="utf-8")
    return found


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    """The modules that use regular expressions."""
    return tuple(
        (name, ast.parse(source))
        for name, source in sources().items()
        if re.search(r"^import re$", source, re.MULTILINE)
    )


def patterns() -> Iterator[Pattern]:
    """Every pattern that a module has by a name, or writes where it is used."""
    for name, tree in modules():
        source = sources()[name]
        module = importlib.import_module(f"pytest_jrh.{name}".removesuffix(".__init__"))
        named: dict[re.Pattern[Any], Pattern] = {}
        for constant in constants(tree):
            methods = frozenset(re.findall(rf"\b{constant}\.({METHODS})\b", source))
            for compiled in compiled_in(getattr(module, constant)):
                first = named.get(compiled, Pattern(f"{name}.{constant}", compiled, frozenset()))
                named[compiled] = first._replace(methods=first.methods | methods)
        for pattern in named.values():
            yield pattern._replace(methods=pattern.methods or frozenset({"search"}))
        for function, call in calls_of_re(tree):
            written, method = call.args[0], called(call).removeprefix("re.")
            if isinstance(written, ast.Constant) and method != "compile":
                yield Pattern(f"{name}.{function}", re.compile(written.value), frozenset({method}))


def constants(tree: ast.Module) -> Iterator[str]:
    """The names that a module assigns where it is imported."""
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        for target in targets:
            if isinstance(target, ast.Name):
                yield target.id


def compiled_in(value: object) -> Iterator[re.Pattern[Any]]:
    """The patterns that a constant of a module is or holds."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        yield from compiled_in(tuple(value.values()))
    elif isinstance(value, tuple | list | set | frozenset):
        for part in value:
            yield from compiled_in(part)


def calls_of_re(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """The calls of `re` in a module's functions that take a pattern, with the function."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and CALL_OF_RE.fullmatch(called(node)):
                yield function.name, node


def called(call: ast.Call) -> str:
    """The dotted name of a function of a module that is called, else an empty text."""
    function = call.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return f"{function.value.id}.{function.attr}"
    return ""


def attacks(pattern: re.Pattern[Any]) -> set[str]:
    """Texts that a careless pattern backtracks on: what each of its repetitions repeats, after what
    comes before, and with what does not fit at the end.
    """
    source, flags = pattern.pattern, pattern.flags
    if isinstance(source, bytes):
        source = source.decode("latin-1")
        flags |= re.UNICODE
    texts = set(ANY)
    parsed = re_parser.parse(source, flags)
    for start, pump in repetitions(parsed, parsed.state):
        if pump:
            texts.update(pumped(pump, start=start, end="\0!"))
            texts.update(pumped(start + pump, end="\0!"))
    return set(map(str, texts))


def repetitions(parsed: Any, state: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """What a parsed pattern repeats, each with a text that fits what is before it."""
    for part in parsed:
        for inner in parts_of(*part):
            if str(part[0]).endswith("REPEAT"):
                for pump in examples(inner, state):
                    yield before, pump
            yield from repetitions(inner, state, before)
        before += examples([part], state)[0]
    yield "", before


def parts_of(kind: object, value: Any) -> list[Any]:
    """The patterns inside of a part of a parsed pattern."""
    name = str(kind)
    if name.endswith("REPEAT"):
        return [value[2]]
    if name == "BRANCH":
        return list(value[1])
    if name == "SUBPATTERN":
        return [value[3]]
    return [value] if name == "ATOMIC_GROUP" else []


def examples(parsed: Iterable[Any], state: Any) -> list[str]:
    """A few texts that a parsed pattern matches, by the letters and branches it chooses from."""
    texts = [""]
    for kind, value in parsed:
        choices: list[str] = []
        for inner in parts_of(kind, value):
            choices += examples(inner, state)
        if str(kind).endswith("REPEAT"):
            choices = [text * max(1, min(value[0], 50)) for text in choices]
        elif str(kind) in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            one = re_compiler.compile(re_parser.SubPattern(state, [(kind, value)]))
            choices = [letter for letter in LETTERS if one.fullmatch(letter)][:4]
        choices = choices or [""]
        # Not every combination.
        texts = [*(text + choices[0] for text in texts), *(texts[0] + text for text in choices[1:])]
        texts = texts[:2]
    return texts


def spend(pattern: Pattern) -> None:
    """Use a pattern on what it may backtrack on."""
    compiled = pattern.compiled
    for words in sorted(attacks(compiled)):
        is_bytes = isinstance(compiled.pattern, bytes)
        subject: Any = words.encode("utf-8", "replace") if is_bytes else words
        with cpu_seconds(MOST_SECONDS):
            for method in pattern.methods:
                if method in {"sub", "subn"}:
                    compiled.sub(subject[:0], subject)
                elif method == "finditer":
                    assert all(compiled.finditer(subject))
                else:
                    getattr(compiled, method)(subject)


@pytest.mark.parametrize("pattern", sorted(patterns(), key=str), ids=str)
def test_pattern_is_linear(pattern: Pattern) -> None:
    if pattern.place not in BOUNDED:
        spend(pattern)


@pytest.mark.parametrize("careless", [r"(a+)+$", r"\s*x", r"\{(.*?)\}", r"(?:ab|a|b)*c"])
def test_a_careless_pattern_is_found(careless: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "MOST_SECONDS", 0.5)
    with pytest.raises(TooSlow):
        spend(Pattern("careless", re.compile(careless), frozenset({"search"})))


def test_patterns_that_are_put_together_where_they_are_used_are_known() -> None:
    found = {
        f"{name}.{function}"
        for name, tree in modules()
        for function, call in calls_of_re(tree)
        if not isinstance(call.args[0], ast.Constant)
    }
    assert found == PUT_TOGETHER
    assert set(BOUNDED) <= {pattern.place for pattern in patterns()}


@pytest.mark.parametrize(
    ("library", "known"), [("difflib", COMPARING), ("textwrap", WRAPPING), ("fnmatch", MATCHING)]
)
def test_every_module_that_compares_or_wraps_texts_is_known(library: str, known: set[str]) -> None:
    imported = re.compile(rf"^ *(?:import {library}\b|from {library} import )", re.MULTILINE)
    assert {name for name, source in sources().items() if imported.search(source)} == known


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
    r"/^\d{1,4}$/": r"^\d{1,4}$",
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
