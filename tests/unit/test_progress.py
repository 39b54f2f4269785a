"""The line that says how far a session is."""

from __future__ import annotations

from pytest_jrh.core.model import Progress, Spending, Usage
from pytest_jrh.plugin.reviewing import INTERVAL, ProgressLine
from pytest_jrh.reports.session import progress_line


def test_the_line_says_how_far_the_session_is_and_when_it_may_be_done() -> None:
    spending = Spending(calls=30, usage=Usage(1000, 200), paid=0.5)
    line = progress_line(Progress(5, 20, spending), 10.0, 100)
    assert line == (
        "jrh: 5 of 20 cases | 10 s, about 30 s left | 30 calls | $0.5000 | 1,200 tokens"
    )
    assert len(progress_line(Progress(5, 20, spending), 10.0, 40)) <= 40


def test_the_line_names_the_stages_that_are_at_work() -> None:
    progress = Progress(5, 20, in_flight={"editor": 2, "judge": 1})
    assert " left | in flight: 2 editor, 1 judge | 0 calls | " in progress_line(progress, 75.0, 100)


def test_nothing_is_said_of_what_cases_at_work_have_spent() -> None:
    line = progress_line(Progress(0, 20, in_flight={"planner": 2}), 75.0, 100)
    assert line == "jrh: 0 of 20 cases | 1 min 15 s | in flight: 2 planner"


def test_the_rest_is_estimated_from_a_tenth_of_the_cases_on() -> None:
    before, after = (progress_line(Progress(done, 100), 75.0, 100) for done in (9, 10))
    assert before.startswith("jrh: 9 of 100 cases | 1 min 15 s | ")
    assert after.startswith("jrh: 10 of 100 cases | 1 min 15 s, about 11 min 15 s left | ")
    nothing, last = (progress_line(Progress(done, done), 75.0, 100) for done in (0, 3))
    assert "left" not in nothing + last


def test_a_line_is_written_once_an_interval_from_a_line_of_its_own() -> None:
    written: list[str] = []

    class Reporter:
        def ensure_newline(self) -> None:
            written.append("(new line)")

        def write_line(self, text: str) -> None:
            written.append(text)

        def flush(self) -> None: ...

    times = iter(INTERVAL * part for part in (0, 0.9, 1, 1.1, 2))
    now = [0.0]
    line = ProgressLine(Reporter(), 0.0, clock=lambda: now[0])  # type: ignore[arg-type]
    for now[0] in times:
        line.draw(Progress(1, 4, Spending(calls=3)))
    said = [text for text in written if text != "(new line)"]
    assert said == [
        "jrh: 1 of 4 cases | 1 min 0 s, about 3 min 0 s left | 3 calls | $0.00 | 0 tokens",
        "jrh: 1 of 4 cases | 2 min 0 s, about 6 min 0 s left | 3 calls | $0.00 | 0 tokens",
    ]
    assert written[::2] == ["(new line)"] * 2
