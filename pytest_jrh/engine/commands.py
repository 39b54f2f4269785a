"""The commands that a session prints: they find the same suites and files again, from the folder it
was started in.
"""

from __future__ import annotations

import shlex
from functools import cache
from typing import TYPE_CHECKING

from pytest_jrh.cases.ids import case_name, node_part
from pytest_jrh.config.places import argument
from pytest_jrh.core.model import UNSCORED
from pytest_jrh.reports.session import recording_modes, recording_options

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pytest_jrh.config.options import Options
    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import CaseResult, CaseSpec
    from pytest_jrh.engine.loading import Invocation, LoadedSuites


class Commands:
    """Writes commands for the suites of a session."""

    def __init__(self, suites: LoadedSuites, options: Options, invocation: Invocation) -> None:
        self._suites = suites
        self._options = options
        self._invocation = invocation
        folder = invocation.folder
        # A suite has one config file, and thousands of cases that are named after it.
        self._relative = cache(lambda path: argument(path, folder))

    def node(self, spec: CaseSpec) -> str:
        """The case as an argument of pytest."""
        path = self._relative(self._suites.named(spec.suite).suite.config_file)
        return "::".join([path, spec.test, node_part(spec.rubric_id), case_name(spec)])

    def rerun(self, spec: CaseSpec) -> str:
        """The command that runs this case again, as it was run here."""
        return self._of_case(
            spec, ["--jrh-disable-recording"] if self._options.disable_recording else []
        )

    def record(self, spec: CaseSpec, judge_fingerprint: str) -> str:
        """The command that records what this case misses: with a judge's fingerprint, its verdict
        alone.
        """
        if self._options.disable_recording:
            return self.rerun(spec)
        return self._of_case(spec, recording_modes(verdicts_alone=bool(judge_fingerprint)))

    def again(self, spec: CaseSpec, result: CaseResult) -> str:
        """The command that runs this case again, and makes the calls that it lacks."""
        outcome = UNSCORED.get(result.outcome)
        if outcome is not None and outcome.unanswered:
            return self.record(spec, result.judge_fingerprint)
        return self.rerun(spec)

    def record_all(self, suites: Sequence[Suite], results: Collection[CaseResult]) -> str:
        """One command for all that is unrecorded, as a maintainer with a key runs it.

        Empty where nothing is.
        """
        missing = {result.spec.suite for result in results if result.outcome == "unrecorded"}
        if not missing:
            return ""
        incomplete = [suite for suite in suites if suite.name in missing]
        return self._of_suites(incomplete, recording_options(results))

    def update_baseline(self, suite: Suite) -> str:
        """The command that takes the suite's verdicts over into the baseline."""
        return self._of_suites([suite], ["--jrh-update-baseline"])

    def _of_suites(self, suites: Sequence[Suite], extra: Sequence[str]) -> str:
        command = ["pytest", *self._chosen(suites)]
        if self._options.baseline is not None:
            command.append(f"--jrh-baseline={self._relative(self._options.baseline)}")
        command += extra
        for suite in suites:
            # What `--jrh-config` names is among the options already.
            if suite.config_file not in self._options.configs:
                command.append(self._relative(suite.config_file))
        return shlex.join([*command, *self._stand_ins()])

    def _of_case(self, spec: CaseSpec, extra: list[str]) -> str:
        options = self._chosen([self._suites.named(spec.suite).suite])
        return shlex.join(["pytest", *options, *extra, *self._stand_ins(), self.node(spec)])

    def _chosen(self, suites: Sequence[Suite]) -> list[str]:
        invocation, options = self._invocation, self._options
        outside = any(not suite.config_file.is_relative_to(invocation.rootdir) for suite in suites)
        chosen = []
        # pytest looks for its ini file around its arguments, and a command may have other ones than
        # this session.
        if invocation.ini_file is not None and (outside or invocation.names_ini):
            chosen += ["-c", self._relative(invocation.ini_file)]
        if invocation.names_rootdir:
            chosen.append(f"--rootdir={self._relative(invocation.rootdir)}")
        named_files = [
            suite.config_file for suite in suites if suite.config_file in options.configs
        ]
        chosen += [f"--jrh-config={self._relative(path)}" for path in named_files]
        if options.cassette_dir is not None:
            chosen.append(f"--jrh-cassette-dir={self._relative(options.cassette_dir)}")
        return [*chosen, "--jrh-frozen"] if options.frozen else chosen

    def _stand_ins(self) -> list[str]:
        replacing = (self._suites.rubric_file, self._suites.log_path)
        return [self._relative(path) for path in replacing if path is not None]
