"""Suites whose judge is code of one's own, in `judges.py` beside the config."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from tests.plugin.recorded import Done
from tests.support.suites import SuiteFiles, merged

RECORD = "--jrh-judge-record-mode=once"
ONE = ("-k", "perturbation and run-1")


@dataclass(frozen=True, slots=True)
class Judged:
    """A recorded suite with a judge of own code, beside the config in `judges.py`."""

    suite: SuiteFiles

    def write(self, source: str) -> None:
        (self.suite.config.parent / "judges.py").write_text(source, encoding="utf-8")

    def configure(self, judge: dict[str, Any]) -> None:
        config = yaml.safe_load(self.suite.config.read_text(encoding="utf-8"))
        config["judge"] = judge
        self.suite.config.write_text(yaml.safe_dump(config), encoding="utf-8")

    def panel(self, judges: Iterable[dict[str, Any]]) -> None:
        config = yaml.safe_load(self.suite.config.read_text(encoding="utf-8"))
        config["admin"]["evaluation_config"]["judges"] = list(judges)
        self.suite.config.write_text(yaml.safe_dump(config), encoding="utf-8")


MakeJudged: TypeAlias = Callable[..., Judged]


def judged_suite(suite: SuiteFiles, source: str, **keys: Any) -> Judged:
    """The suite without its recorded verdicts, judged by the function `judge` of a source."""
    made = Judged(suite)
    for path in suite.cassettes.rglob("*.judge-default.yaml"):
        path.unlink()
    made.configure(merged({"python": "judges.py:judge"}, keys))
    made.write(source)
    return made


def asking(url: str) -> str:
    return (
        f"import requests\nURL = {url!r}\ndef judge(case):\n"
        "    a = requests.post(URL, json={'transcript': case.transcript}).json()\n"
        "    return a['score'], a['why']\n"
    )


def words(done: Done) -> str:
    return " ".join(done.stdout.split())


def summary(done: Done) -> str:
    return done.lines[-1].strip("= ").partition(" in ")[0] if done.lines else done.stderr
