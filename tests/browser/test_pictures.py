"""The judge card, the map and the matrix in headless Chromium: whatever names and figures there
are, no text leaves the picture or lies on another one.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.reports.pictures import NARROW, WIDE, session_pictures
from pytest_jrh.reports.svg import stacked
from tests.support.judged_sessions import (
    HOSTILE,
    INJECTION,
    PLACES,
    always,
    derived,
    judged,
    misses,
    panel,
    right,
    scored,
    session_of,
    wrong_on,
)
from tests.support.made_cases import make_result, make_spec, result_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_jrh.core.model import CaseSpec
    from pytest_jrh.reports.session import Session
    from tests.support.judged_sessions import Answer

# The boxes of texts have some air above and below the letters.
FAULTS = """() => {
  const faults = [];
  const frame = document.querySelector("svg").getBoundingClientRect();
  const texts = Array.from(document.querySelectorAll("text"), (text) => ({ text: text.textContent, box: text.getBoundingClientRect() }));
  texts.forEach(({ text, box }, place) => {
    if (box.left < frame.left || box.right > frame.right || box.top < frame.top || box.bottom > frame.bottom) faults.push(`outside: ${text}`);
    for (const other of texts.slice(place + 1)) {
      const across = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
      const down = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
      if (across > 0.5 && down > 4) faults.push(`${text} lies on ${other.text}`);
    }
  });
  return faults;
}"""  # noqa: E501
LONG = "rubric_number_{:02}_of_a_long_family_of_rubrics"
# A letter that is as wide as a word, and letters of other scripts.
LETTERS = (
    "\ufdfa\ufdfd" * 10,
    "規則" * 20,
    "Überprüfung der Größe",
    "правило",
    "😀" * 12,
)


def noisy(miss: float, flag: float, seed: int) -> Answer:
    rng = random.Random(seed)

    def answer(spec: CaseSpec, expected: int) -> int:
        return int(rng.random() >= miss) if expected else int(rng.random() < flag)

    return answer


def of_many_rubrics() -> Session:
    rubrics = [LONG.format(number) for number in range(30)]
    before = judged(right, runs=9, rubrics=rubrics)
    return session_of(judged(noisy(0.2, 0.1, 5), runs=9, rubrics=rubrics), before=before)


def of_many_judges() -> Session:
    answers = {
        f"openai/gpt-{n}.1-mini-of-a-family": noisy(0.04 * n, 0.02 * n, n) for n in range(12)
    }
    return session_of(panel({**answers, "strict": always(1), "lenient": always(0)}, runs=20))


def of_other_letters() -> Session:
    results = judged(misses(2), runs=4, rubrics=LETTERS)
    return session_of([result_with(result, suite="規則" * 60) for result in results])


def of_hostile_names() -> Session:
    results = [
        result_with(result, rubric_id=f"{HOSTILE}{number % 3}", judge=HOSTILE, suite=HOSTILE)
        for number, result in enumerate(judged(wrong_on("run-000"), runs=4, judge="j"))
    ]
    return session_of(results)


def of_probes() -> Session:
    attacks = [f"{attack}-{place}" for attack in ("fake_verdict", "flattery") for place in PLACES]
    return session_of([*judged(right), *derived(attacks[:1], probe=INJECTION, variants=attacks)])


SESSIONS: dict[str, Callable[[], Session]] = {
    "drop": lambda: session_of(judged(misses(6)), before=judged(right)),
    "rubrics": of_many_rubrics,
    "judges": of_many_judges,
    "few judges": lambda: session_of(panel({f"judge {n}": misses(n) for n in range(4)})),
    "judges at one place": lambda: session_of(panel({f"judge {n}": right for n in range(9)})),
    "hostile judges": lambda: session_of(panel({f"{HOSTILE}{n}": misses(n) for n in range(4)})),
    "hostile names": of_hostile_names,
    "letters": of_other_letters,
    "ordinal": lambda: session_of(scored(always(1)), before=scored(right)),
    "probes": of_probes,
    "one case": lambda: session_of(judged(right, runs=1, rubrics=("tone",))[:1]),
    "no violation": lambda: session_of([case for case in judged(right) if not case.expected]),
    "no verdict": lambda: session_of([make_result(make_spec("run-9"), "refused", detail="no")]),
    "nothing": lambda: session_of([]),
}


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("name", SESSIONS)
def test_no_text_leaves_the_picture_or_lies_on_another(browser: Any, name: str, width: int) -> None:
    picture = stacked(session_pictures(SESSIONS[name](), width))
    page = browser.new_page(viewport={"width": width, "height": 600})
    page.set_content(f'<body style="margin: 0">{picture.file_text}</body>')
    assert page.evaluate(FAULTS) == []
    page.close()
