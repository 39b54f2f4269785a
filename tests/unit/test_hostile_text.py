"""Long texts of transcripts and models' answers are worked on in reasonable time."""

from collections.abc import Callable

import pytest

from pytest_jrh import core
from pytest_jrh.core import storable
from pytest_jrh.core.diffs import differences
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.transcript import neutralize
from pytest_jrh.llm.calls import Response, parse
from pytest_jrh.reports import markdown
from tests.support.cpu import cpu_seconds

SIZE = 100_000
# Quadratic work takes ten times as long and more on so much text.
MOST_SECONDS = 4.0
PUMPS = [" ", "\n", "1", "\u0301", "a ", "{", '"', "\x1b[", "</", "`", "```json\n", "turns 1, "]
PUMPS += ["violated ", "score: 1 ", "the rubric is not "]


class _Answer(Response):
    score: int


def _parsed(answer: str) -> None:
    with pytest.raises(ValueError, match="validation error"):
        parse(answer, _Answer)


WORK: dict[str, Callable[[str], object]] = {
    "parse": _parsed,
    "neutralize": lambda words: neutralize(words, {"transcript"}),
    "storable": storable,
    "of_code": Redactor(("sk-0123456789abcdef",)).of_code,
    "differences": lambda words: differences(words, f"b {words[::-1]} b"),
    "plain": core.plain,
    "one_line": core.one_line,
    "wrapped": lambda words: core.wrapped(words, 80),
    "markdown": lambda words: (markdown.prose(words), markdown.preformatted(words)),
}


@pytest.mark.parametrize("name", WORK)
def test_a_long_text_is_worked_on_in_time(name: str) -> None:
    for pump in PUMPS:
        with cpu_seconds(MOST_SECONDS):
            WORK[name](pump * (SIZE // len(pump)))


def test_two_texts_with_many_short_pieces_in_common_are_compared_in_time() -> None:
    places = range(SIZE // 14)
    old = [f"w{place} x{place}" for place in places]
    new = [f"w{place} y{place}" for place in places]
    with cpu_seconds(2 * MOST_SECONDS):
        differences(" ".join(old), " ".join(new))
        differences("\n".join(old), "\n".join(new))
