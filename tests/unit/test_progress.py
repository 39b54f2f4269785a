"""The line that says how far a session is."""

from __future__ import annotations

from pytest_jrh.core.model import Progress, Spending, Usage
from pytest_jrh.plugin.progress import INTERVAL, ProgressLine, _Reported
from pytest_jrh.reports.spending import progress_line


def test_the_line_says_how_far_the_session_is_and_when_it_may_be_done() -> None:
    spending = Spending(calls=30, usage=Usage(1000, 200), paid=0.5)
    line = progress_line(Progress(5, 20, spending), 10.0, 100)
    assert line == "jrh: 5 of 20 cases | 30 calls | 1,200 tokens | $0.5000 | about 30.0 s left"
    assert len(progress_line(Progress(5, 20, spending), 10.0, 40)) <= 40
    waiting = progress_line(Progress(5, 20, spending, in_flight=3), 10.0, 100)
    assert waiting.startswith("jrh: 5 of 20 cases | 30 calls, 3 in flight | ")


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
    assert [text.rpartition(" | ")[0] for text in said] == [
        "jrh: 1 of 4 cases | 3 calls | 0 tokens | $0.00"
    ] * 2
    assert written[::2] == ["(new line)"] * 2
    assert "about 1 min 30 s left" in said[0]


def test_a_controller_that_asks_before_its_workers_have_collected_learns_of_their_cases() -> None:
    selected: set[str] = set()
    reported = _Reported(selected, {})
    assert reported.progress().total == 0
    selected |= {f"tiny.yml::agent_positives::rubric-1::run-{number}[e1]" for number in (1, 2)}
    selected.add("test_ordinary.py::test_ordinary")
    assert not reported.is_done
    assert reported.progress().total == 2
