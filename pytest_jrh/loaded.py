"""The suites of a session: each is loaded once, and none shares its places with another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_jrh.documents.problems import listed, printable, shown
from pytest_jrh.errors import InputError, Problem
from pytest_jrh.files import absolute
from pytest_jrh.labels.people import read_people
from pytest_jrh.loading import ReadySuite, make_ready
from pytest_jrh.options import ALONE
from pytest_jrh.review.decision_files import has_decisions
from pytest_jrh.text import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_jrh.models import RecordMode
    from pytest_jrh.options import Options
    from pytest_jrh.redact import Redactor
    from pytest_jrh.suite.suite import Suite


@dataclass(frozen=True, slots=True)
class Invocation:
    """How pytest was started: in `folder`, with the project's `rootdir`.

    `ini_file` is None where there is none. `names_ini` and `names_rootdir` say that the command
    line names them, so that a command for the same suites has to, too.
    """

    folder: Path
    rootdir: Path
    ini_file: Path | None = None
    names_ini: bool = False
    names_rootdir: bool = False


class LoadedSuites:
    """The suites of one process, in the order in which they were loaded.

    `rubric_file` and `log_path` are files that replace those of the suites that `--jrh-config`
    names; None where the suites' own are used. `judge_of` gives the judge that a project's code
    supplies for a suite, by the suite's name. `redactor` takes in what the suites' judges send to
    say who asks.
    """

    def __init__(
        self,
        options: Options,
        invocation: Invocation,
        judge_of: Callable[[str], Callable[..., object] | None] = lambda _name: None,
        redactor: Redactor | None = None,
    ) -> None:
        self._redactor = redactor
        self._judge_of = judge_of
        self._options = options
        self._invocation = invocation
        self._ready: dict[Path, ReadySuite] = {}
        self.rubric_file: Path | None = None
        self.log_path: Path | None = None

    def __iter__(self) -> Iterator[ReadySuite]:
        return iter(self._ready.values())

    def __len__(self) -> int:
        return len(self._ready)

    def load(self, path: Path) -> ReadySuite:
        """The suite of a config file, loaded once; raises `InputError` with every problem."""
        path = absolute(path)
        if path not in self._ready:
            named = path in self._options.configs
            ready = make_ready(
                path,
                cwd=self._invocation.folder,
                rootdir=self._invocation.rootdir,
                rubric_file=self.rubric_file if named else None,
                log_path=self.log_path if named else None,
                frozen=self._options.frozen,
                judge=self._judge_of(path.stem),
            )
            self._refuse_shared_places(ready)
            _check_decisions(ready)
            _check_split(ready, self._options.split)
            if self.labels_blind(ready.suite):
                _check_reviewer(ready, self._options.reviewer)
            self._ready[path] = ready
            if self._redactor is not None:
                self._redactor.add(ready.secrets)
        return self._ready[path]

    def named(self, name: str) -> ReadySuite:
        """The loaded suite of this name."""
        return next(ready for ready in self if ready.suite.name == name)

    def labels_blind(self, suite: Suite) -> bool:
        """Whether the page of this session is that of blind labelling for a suite (rule N3)."""
        asked = self._options.review
        return asked == "blind" if asked not in (None, ALONE) else suite.review.blind

    def read_people_again(self) -> None:
        """Take in what people said of cases meanwhile, for what is reported at the end."""
        for path, ready in self._ready.items():
            self._ready[path] = replace(ready, people=read_people(ready.suite))
            # Read now, where what cannot be used is an error of the user's and not ours.
            _ = self._ready[path].grounds

    def cassette_dir(self, ready: ReadySuite) -> Path:
        """Where a suite's cassettes are in this session."""
        return self._options.cassette_dir or ready.suite.replay.cassette_dir

    def modes(self, ready: ReadySuite) -> tuple[RecordMode, RecordMode]:
        """The record modes of a suite's generation and judging in this session (rule G1)."""
        return ready.suite.replay.record_modes(
            self._options.record_mode, self._options.judge_record_mode
        )

    def asks(self, ready: ReadySuite) -> bool:
        """Whether models may be asked about a suite's cases in this session."""
        return self._options.disable_recording or self.modes(ready) != ("none", "none")

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences of the suites that the user should read once."""
        return tuple(notice for ready in self for notice in ready.notices)

    def _refuse_shared_places(self, ready: ReadySuite) -> None:
        """Two suites need two names, for their ids, and two cassette folders, so that none spoils
        the other's.
        """
        for other in self:
            place = str(ready.suite.config_file)
            if other.suite.name == ready.suite.name:
                raise InputError(
                    Problem(
                        f"a suite is named after its file, and {other.suite.config_file} is a "
                        f"suite `{ready.suite.name}` too",
                        file=place,
                        hint="Rename one of the two files.",
                    )
                )
            own, theirs = (
                {"results": one.suite.output.dir, "cassette": self.cassette_dir(one)}
                for one in (ready, other)
            )
            for what, key in (
                ("results", "output.results_dir"),
                ("cassette", "replay.cassette_dir"),
            ):
                if own[what] == theirs[what]:
                    message = (
                        f"this suite and {other.suite.config_file} would share the {what} "
                        f"folder {own[what]}"
                    )
                    hint = f"Give each its own `{key}`, or run one of them at a time."
                    raise InputError(Problem(message, file=place, hint=hint))


def _check_reviewer(ready: ReadySuite, reviewer: str | None) -> None:
    """Refuse a reviewer who is not among those of the suite."""
    known = ready.suite.review.reviewers
    if reviewer is None or not known or reviewer.strip() in known:
        return
    close = nearest(reviewer, known)
    message = f"--jrh-reviewer={printable(reviewer)}: the reviewers are {listed(known)}"
    hint = f"{close} is the nearest" if close else None
    raise InputError(Problem(message, str(ready.suite.config_file), None, "review", hint))


def _check_split(ready: ReadySuite, split: str | None) -> None:
    """Refuse a split that none of a suite's labels belongs to."""
    if split is None or not ready.labels:
        return
    splits = dict.fromkeys(label.split for label in ready.labels.values() if label.split)
    if split not in splits:
        there = f"the splits are {listed(splits)}" if splits else "no label names a split"
        close = nearest(split, splits)
        message = f"--jrh-split={printable(split)}: got {shown(split)}; {there}"
        hint = f"{printable(close)} is the nearest" if close else None
        raise InputError(Problem(message, str(ready.suite.config_file), hint=hint))


def _check_decisions(ready: ReadySuite) -> None:
    """Raise `InputError` where a suite's decisions cannot be read, before any model is asked."""
    if has_decisions(ready.suite):
        from pytest_jrh.review.decisions import open_stores

        open_stores([ready.suite])
