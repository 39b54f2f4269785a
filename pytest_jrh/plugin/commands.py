"""The commands that a session prints: they find the same suites and files again, from the folder it
was started in.
"""

from __future__ import annotations

import shlex
from functools import cache
from typing import TYPE_CHECKING

from pytest_jrh.reporting.session_results import recording_options
from pytest_jrh.suite.cases import case_name, node_part
from pytest_jrh.suite.places import argument

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pytest_jrh.models import CaseResult, CaseSpec
    from pytest_jrh.plugin.session import SuiteSession
    from pytest_jrh.suite.suite import Suite


class Commands:
    """Writes commands for the suites of a session."""

    def __init__(self, session: SuiteSession) -> None:
        self._session = session
        folder = session.config.invocation_params.dir
        # A suite has one config file, and thousands of cases that are named after it.
        self._relative = cache(lambda path: argument(path, folder))

    def node(self, spec: CaseSpec) -> str:
        """The case as an argument of pytest."""
        path = self._relative(self._session.by_name(spec.suite).suite.config_file)
        return "::".join([path, spec.test, node_part(spec.rubric_id), case_name(spec)])

    def rerun(self, spec: CaseSpec) -> str:
        """The command that runs this case again, as it was run here."""
        return self._of_case(
            spec, ["--jrh-disable-recording"] if self._session.options.disable_recording else []
        )

    def record(self, spec: CaseSpec) -> str:
        """The command that records what this case misses."""
        if self._session.options.disable_recording:
            return self.rerun(spec)
        return self._of_case(spec, ["--jrh-record-mode=new_episodes"])

    def record_all(self, suites: Sequence[Suite], results: Collection[CaseResult]) -> str:
        """One command for all that is unrecorded, as a maintainer with a key runs it.

        Empty where nothing is.
        """
        missing = {result.suite for result in results if result.outcome == "unrecorded"}
        if not missing:
            return ""
        options = self._session.options
        own = [suite for suite in suites if suite.name in missing]
        found = [
            self._relative(suite.config_file)
            for suite in own
            if suite.config_file not in options.configs
        ]
        again = self._options(own)
        if options.baseline is not None:
            again.append(f"--jrh-baseline={self._relative(options.baseline)}")
        return shlex.join(
            ["pytest", *again, *recording_options(results), *found, *self._stand_ins()]
        )

    def update_baseline(self, suite: Suite) -> str:
        """The command that takes the suite's verdicts over into the baseline."""
        path = self._relative(suite.config_file)
        found = [] if suite.config_file in self._session.options.configs else [path]
        baseline = self._session.options.baseline
        named = [f"--jrh-baseline={self._relative(baseline)}"] if baseline is not None else []
        command = [
            "pytest",
            *self._options([suite]),
            *named,
            "--jrh-update-baseline",
            *found,
            *self._stand_ins(),
        ]
        return shlex.join(command)

    def _of_case(self, spec: CaseSpec, extra: list[str]) -> str:
        options = self._options([self._session.by_name(spec.suite).suite])
        return shlex.join(["pytest", *options, *extra, *self._stand_ins(), self.node(spec)])

    def _options(self, suites: Sequence[Suite]) -> list[str]:
        config, options = self._session.config, self._session.options
        outside = any(not suite.config_file.is_relative_to(config.rootpath) for suite in suites)
        chosen = []
        # pytest looks for its ini file around its arguments, and a command may have other ones than
        # this session.
        if config.inipath is not None and (outside or config.option.inifilename):
            chosen += ["-c", self._relative(config.inipath)]
        if config.option.rootdir:
            chosen.append(f"--rootdir={self._relative(config.rootpath)}")
        named = [suite.config_file for suite in suites if suite.config_file in options.configs]
        chosen += [f"--jrh-config={self._relative(path)}" for path in named]
        if options.cassette_dir is not None:
            chosen.append(f"--jrh-cassette-dir={self._relative(options.cassette_dir)}")
        return [*chosen, "--jrh-frozen"] if options.frozen else chosen

    def _stand_ins(self) -> list[str]:
        session = self._session
        return [
            self._relative(path)
            for path in (session.rubric_file, session.log_path)
            if path is not None
        ]
