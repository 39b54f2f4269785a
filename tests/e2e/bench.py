"""Sessions of the engine against a loopback model, in this process: one import of litellm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from pytest_jrh.config.options import Options
from pytest_jrh.core.calls import Bounds, RecordMode
from pytest_jrh.core.cases import Case, CaseSpec
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.results import CaseResult
from pytest_jrh.engine.case import EngineSettings
from pytest_jrh.engine.planning import Survey
from pytest_jrh.engine.runner import Engine
from pytest_jrh.engine.suite import LoadedSuites, ReadySuite, make_ready
from pytest_jrh.llm.limits import EarlyStop, Ledger, Pace, RetryPolicy
from pytest_jrh.reports.case_facts import no_verdict_text
from tests.support.suites import Overrides, SuiteFiles
from tests.support.whole_way import played_the_whole_way

QUICK = RetryPolicy(attempts=3, first_wait=0.002, longest_wait=0.01)


@dataclass
class Bench:
    """A suite made ready; every `run` is a session of its own."""

    files: SuiteFiles
    cassettes: Path
    ready: ReadySuite = field(init=False)

    def __post_init__(self) -> None:
        self.reload()

    def reload(self) -> None:
        """Read the suite's files again."""
        ready = make_ready(self.files.config, cwd=self.files.folder, rootdir=self.files.folder)
        self.ready = replace(ready, suite=replace(ready.suite, cassette_dir=self.cassettes))

    def configure(self, overrides: Overrides) -> None:
        """Change keys of the config, and read it."""
        self.files.configure(overrides)
        self.reload()

    def record_into(self, name: str) -> None:
        """Have the cassettes in another folder beside the one they were in."""
        self.cassettes = self.cassettes.with_name(name)
        self.reload()

    @property
    def is_complete(self) -> bool:
        """Whether every cassette says that it is."""
        files = self.cassettes.rglob("*.yaml")
        return all(read_cassette(path)["metadata"]["jrh"]["complete"] for path in files)

    @property
    def specs(self) -> list[CaseSpec]:
        return list(self.ready.specs())

    def settings(self, mode: RecordMode | None, made: list[Case], **more: Any) -> EngineSettings:
        options = Options(record_mode=mode, judge_record_mode=more.pop("judge_record_mode", None))
        defaults: dict[str, Any] = {
            "max_workers": 4,
            "redactor": Redactor(()),
            "on_case": made.append,
            "record_modes": LoadedSuites(options, Path(), Path(), lambda _: None).modes,
            "complete": None,
            "retry": QUICK,
            "retry_unscored": False,
            "pace": Pace(),
            "stops": EarlyStop(),
            "session": "",
            "prints_at_once": False,
            "ledger": Ledger(None),
            "ask": True,
            "review": None,
            "is_orphan": bool,
            "ends_session": (KeyboardInterrupt,),
        }
        return EngineSettings(**{**defaults, **more})

    def engine(self, mode: RecordMode | None, **more: Any) -> Engine:
        """An engine that has not started; `more` are further `EngineSettings`."""
        made: list[Case] = more.pop("made", [])
        return Engine({self.ready.suite.name: self.ready}, self.settings(mode, made, **more))

    def run(self, mode: RecordMode | None = "new_episodes", **more: Any) -> Session:
        """Run every case; `more` are further `EngineSettings`."""
        made: list[Case] = []
        engine = self.engine(mode, made=made, **more)
        try:
            engine.start(self.specs)
            results = [engine.result(spec) for spec in self.specs]
        finally:
            engine.stop()
        cases = {case.spec: case for case in made}
        return Session(
            results, {spec: cases[spec] for spec in self.specs if spec in cases}, engine.notices
        )

    def plan(self, mode: RecordMode | None, **more: Any) -> Plan:
        """The plan of all cases, made by an engine without any call."""
        engine = self.engine(mode, ask=False, **more)
        try:
            return Plan(engine.survey(self.specs))
        finally:
            engine.stop()

    def replay(self, **more: Any) -> Session:
        return self.run("none", **more)

    def play(self, **more: Any) -> Session:
        """Replay, and play every recorded call the whole way, too."""
        with played_the_whole_way() as differences:
            session = self.replay(**more)
        assert not differences, differences
        return session


MakeBench = Callable[..., Bench]


@dataclass(frozen=True)
class Plan:
    """What a session is foreseen to ask, case by case."""

    surveys: Sequence[Survey]

    @property
    def to_make(self) -> dict[str, Bounds]:
        """The calls to make, by stage; stages without any are left out."""
        found: dict[str, Bounds] = {}
        for survey in self.surveys:
            for model, bounds in survey.to_make.items():
                found[model.stage] = found.get(model.stage, Bounds()) + bounds
        return {stage: bounds for stage, bounds in found.items() if bounds.high}

    def foresees(self, calls: Mapping[str, int]) -> bool:
        """Whether these calls, by stage, are within its bounds."""
        return all(
            bounds.low <= calls.get(stage, 0) <= bounds.high
            for stage, bounds in {**dict.fromkeys(calls, Bounds()), **self.to_make}.items()
        )

    @property
    def unrecorded(self) -> int:
        return sum(survey.stays_unrecorded for survey in self.surveys)


@dataclass(frozen=True)
class Session:
    """What came of one session, in the order of the suite's cases."""

    results: Sequence[CaseResult]
    made: Mapping[CaseSpec, Case]
    notices: Sequence[str]

    @property
    def only(self) -> CaseResult:
        (result,) = self.results
        return result

    @property
    def outcomes(self) -> list[tuple[str, int | None]]:
        return [(result.outcome, result.score) for result in self.results]

    @property
    def outcome_names(self) -> list[str]:
        return [result.outcome for result in self.results]

    @property
    def scores(self) -> list[tuple[int, ...]]:
        return [result.scores for result in self.results]

    @property
    def transcripts(self) -> list[Any]:
        return [case.messages for case in self.made.values()]

    @property
    def calls(self) -> int:
        return sum(result.spending.all.calls for result in self.results)


def said(result: CaseResult) -> str:
    """Why a case has no verdict, in one line."""
    return " ".join(no_verdict_text(result.why).split())


def every_model(name: str) -> dict[str, Any]:
    """The keys of a config that ask this model at all stages."""
    return {
        "synthetic_data_params": {"generation_model_name": name},
        "admin": {"evaluation_config": {"autograder_model_name": name}},
    }


def exactly(calls: dict[str, int]) -> dict[str, Bounds]:
    return {stage: Bounds(number, number) for stage, number in calls.items()}


def cassette_files(folder: Path) -> dict[str, bytes]:
    """The cassettes under a folder: path and bytes; nothing else may be there but the locks."""
    files = [path for path in folder.rglob("*") if path.is_file() and ".locks" not in path.parts]
    assert [path.suffix for path in files] == [".yaml"] * len(files)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def read_cassette(path: Path) -> dict[str, Any]:
    loaded = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    assert isinstance(loaded, dict)
    return loaded
