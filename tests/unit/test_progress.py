"""The line that says how far a session is."""

from __future__ import annotations

from pytest_jrh.core.calls import Progress, Spending, Usage
from pytest_jrh.reports.session import progress_line


def test_the_line_says_how_far_the_session_is_what_it_cost_and_when_it_may_be_done() -> None:
    spending = Spending(calls=30, usage=Usage(1000, 200), paid=0.5)
    line = progress_line(Progress(5, 20, spending), 10.0, 100)
    assert line == "jrh 5/20 | $0.5000, 30 calls | 0:30 left"
    assert len(progress_line(Progress(5, 20, spending), 10.0, 20)) <= 20


def test_the_rest_is_estimated_from_a_tenth_of_the_cases_on() -> None:
    before, after = (progress_line(Progress(done, 100), 75.0, 100) for done in (9, 10))
    assert before == "jrh 9/100 | $0.00, 0 calls | 1:15"
    assert after == "jrh 10/100 | $0.00, 0 calls | 11:15 left"
    nothing, last = (progress_line(Progress(done, done), 75.0, 100) for done in (0, 3))
    assert "left" not in nothing + last
