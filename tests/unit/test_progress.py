"""The line that says how far a session is."""

from __future__ import annotations

import io
from types import SimpleNamespace

from pytest_jrh.core.model import Progress, Spending, Usage
from pytest_jrh.plugin.session import INTERVAL, ProgressLine
from pytest_jrh.reports.session import progress_line


def test_the_line_says_how_far_the_session_is_what_it_cost_and_when_it_may_be_done() -> None:
    spending = Spending(calls=30, usage=Usage(1000, 200), paid=0.5)
    line = progress_line(Progress(5, 20, spending), 10.0, 100)
    assert line == "jrh 5/20 | $0.5000, 30 calls | 0:30 left"
    assert len(progress_line(Progress(5, 20, spending), 10.0, 20)) <= 20


def test_the_line_counts_the_calls_that_are_out() -> None:
    progress = Progress(5, 20, in_flight={"editor": 2, "judge": 1})
    assert progress_line(progress, 75.0, 100).endswith(" left | 3 calls out")


def test_nothing_is_said_of_what_cases_at_work_have_spent() -> None:
    line = progress_line(Progress(0, 20, in_flight={"planner": 2}), 75.0, 100)
    assert line == "jrh 0/20 | 1:15 | 2 calls out"


def test_the_rest_is_estimated_from_a_tenth_of_the_cases_on() -> None:
    before, after = (progress_line(Progress(done, 100), 75.0, 100) for done in (9, 10))
    assert before == "jrh 9/100 | $0.00, 0 calls | 1:15"
    assert after == "jrh 10/100 | $0.00, 0 calls | 11:15 left"
    nothing, last = (progress_line(Progress(done, done), 75.0, 100) for done in (0, 3))
    assert "left" not in nothing + last


def test_on_a_terminal_the_line_is_written_below_and_taken_away() -> None:
    file = io.StringIO()
    reporter = SimpleNamespace(_tw=SimpleNamespace(_file=file))
    now = [0.0]
    line = ProgressLine(reporter, 0.0, clock=lambda: now[0], interval=1.0, is_live=True)  # type: ignore[arg-type]
    line.clear()
    assert file.getvalue() == ""
    for now[0] in (0.5, 1.0, 1.5):
        line.draw(Progress(1, 4, Spending(calls=3)))
    assert file.getvalue().count("jrh 1/4 | $0.00, 3 calls | 0:03 left") == 1
    line.clear()
    line.clear()
    # Each time the cursor goes back to where it was.
    assert file.getvalue().count("\x1b7") == file.getvalue().count("\x1b8") == 2
    assert file.getvalue().endswith("\x1b[K\x1b8")


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
        "jrh 1/4 | $0.00, 3 calls | 3:00 left",
        "jrh 1/4 | $0.00, 3 calls | 6:00 left",
    ]
    assert written[::2] == ["(new line)"] * 2
