"""Suites whose judge is code of one's own, in `judges.py` beside the config."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.plugin.recorded import Done
from tests.support.suites import SuiteFiles

RECORD = "--jrh-judge-record-mode=once"
ONE = ("-k", "perturbation and run-1")


@dataclass(frozen=True, slots=True)
class Judged:
    """A recorded suite with a judge of own code, beside the config in `judges.py`."""

    suite: SuiteFiles

    def write(self, source: str) -> None:
        (self.suite.config.parent / "judges.py").write_text(source, encoding="utf-8")

    def panel(self, judges: Iterable[dict[str, Any]]) -> None:
        self.suite.configure({"admin": {"evaluation_config": {"judges": list(judges)}}})


MakeJudged: TypeAlias = Callable[[str], Judged]


def judged_suite(suite: SuiteFiles, source: str) -> Judged:
    """The suite without its recorded verdicts, judged by the function `judge` of a source."""
    made = Judged(suite)
    for path in suite.cassettes.rglob("*.judge-default.yaml"):
        path.unlink()
    suite.configure({"judge": {"python": "judges.py:judge"}})
    made.write(source)
    return made


def words(done: Done) -> str:
    return " ".join(done.stdout.split())


def summary(done: Done) -> str:
    return done.lines[-1].strip("= ").partition(" in ")[0] if done.lines else done.stderr
