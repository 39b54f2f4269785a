"""The options of a session: each is declared once, as a field of `Options`, from which its place on
the command line, its ini key and its row in docs/options.md derive.
"""

from __future__ import annotations

import math
import os.path
from collections.abc import Container, Iterator
from dataclasses import field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pytest_jrh.core import absolute, frozen, name_problem, one_line

if TYPE_CHECKING:
    # A session without suites is spared pydantic.
    from pytest_jrh.core.calls import RecordMode


OptionKind = Literal["bool", "choice", "string", "int", "float", "path", "paths"]
_MODES = ("none", "once", "new_episodes", "all")
_REVIEWS = ("decide", "blind")
ALONE = "alone"
"""What a `choice` is that was given without a value."""
REPORT_SUFFIXES = (".html", ".md", ".json", ".xml")
NO_PAGE = "none"
"""What `--jrh-report` names where no page is to be written."""
NUMBERS: dict[str, type] = {"int": int, "float": float}
_UNSET = {"bool": False, "paths": ()}


@frozen
class Option:
    """One option: its flag, its ini key of the same name, and the field of `Options` that it sets.

    `paths` may be given several times, and a `choice` alone or with one of its `choices`. A merge
    of shards has those that are `merged`, too. `default` is what the field holds where neither the
    command line nor the ini file says anything.
    """

    kind: OptionKind
    help: str
    metavar: str | None
    choices: tuple[str, ...]
    name: str
    default: Any
    merged: bool
    sets: str = ""

    @property
    def flag(self) -> str:
        """The option on the command line."""
        return f"--jrh-{self.name}"

    @property
    def key(self) -> str:
        """The option in the ini file."""
        return f"jrh_{self.name.replace('-', '_')}"

    @property
    def argument(self) -> dict[str, Any]:
        """How a parser of arguments takes it, but for a `choice`; None where it is not given."""
        settings: dict[str, Any] = {"default": None, "help": self.help}
        if self.kind == "bool":
            return settings | {"action": "store_true"}
        if self.kind == "paths":
            settings["action"] = "append"
        if self.kind in NUMBERS:
            settings["type"] = NUMBERS[self.kind]
        return settings | {"metavar": self.metavar, "choices": self.choices or None}

    def value(self, setting: Any, folder: Path) -> Any:
        """What the field holds for a value, or for None; paths are relative to a folder."""
        if setting is None:
            return self.default
        if self.kind == "path":
            return absolute(folder / setting)
        if self.kind == "paths":
            return tuple(dict.fromkeys(absolute(folder / name) for name in setting))
        return setting


def _option(
    kind: OptionKind,
    text: str,
    metavar: str | None = None,
    choices: tuple[str, ...] = (),
    *,
    name: str = "",
    merged: bool = False,
) -> Any:
    """Declare an option; its name is the field's, with hyphens, unless it is given."""
    default = _UNSET.get(kind)
    declared = Option(kind, text, metavar, choices, name, default, merged)
    return field(default=default, metadata={"option": declared})


@frozen
class Options:
    """What the command line and the ini file say."""

    configs: tuple[Path, ...] = _option(
        "paths",
        "collect only this suite and the tests that you name; can be given several "
        "times. With the ini key, pytest collects the suite along with all other tests",
        "FILE",
        name="config",
    )
    record_mode: RecordMode | None = _option(
        "string",
        "none: answer only from recordings; once: record cases without a complete recording; "
        "new_episodes: record all calls that are missing; all: record all calls again (default: "
        "the config's mode, or none)",
        "MODE",
        _MODES,
    )
    judge_record_mode: RecordMode | None = _option(
        "string", "the record mode for the judge's calls only", "MODE", _MODES
    )
    plan: bool = _option(
        "bool",
        "make no calls; count recorded and missing calls, and print the cost of the missing calls",
    )
    max_cost: float | None = _option(
        "float", "spend at most this many US dollars; the remaining cases end as over_budget", "USD"
    )
    max_calls: int | None = _option(
        "int", "make at most this many model calls; the remaining cases end as over_budget", "N"
    )
    review: Literal["alone", "decide", "blind"] | None = _option(
        "choice",
        "open the cases in the browser. decide (the default): accept, reject or edit cases; the "
        "judge waits until you press Finish. blind: label a sample of the cases; the page shows "
        "only the rubric and the transcript or answer",
        "HOW",
        _REVIEWS,
    )
    reviewer: str | None = _option(
        "string",
        "the name of the person who labels with --jrh-review=blind (default: the page asks)",
        "NAME",
    )
    baseline: Path | None = _option(
        "path",
        "compare the verdicts with this baseline",
        "FILE",
        merged=True,
    )
    update_baseline: bool = _option(
        "bool",
        "write this session's verdicts to the file of --jrh-baseline",
        merged=True,
    )
    reports: tuple[Path, ...] = _option(
        "paths",
        "write a report as a page (FILE.html), Markdown (FILE.md; also appended to "
        "$GITHUB_STEP_SUMMARY), JSON or JUnit (FILE.xml); can be given several times. A suite "
        "that does not pass also writes report.html to its results folder; `none` prevents this",
        "FILE",
        name="report",
        merged=True,
    )
    frozen: bool = _option(
        "bool",
        "take the cases from the suite's agent_perturbations.jsonl; do not read the suite's log",
        merged=True,
    )
    retry_unscored: bool = _option(
        "bool",
        "in a recording mode, repeat the recorded calls whose answer was refused or invalid, and "
        "no others",
    )
    prune: bool = _option(
        "bool",
        "remove recordings that no case uses; with --jrh-plan, only list these recordings",
    )


OPTIONS = tuple(
    replace(
        field.metadata["option"],
        name=field.metadata["option"].name or field.name.replace("_", "-"),
        sets=field.name,
    )
    for field in fields(Options)
)
"""In the order in which `--help` lists them."""


_OVERWRITING = {
    ("update_baseline", True),
    ("prune", True),
    ("record_mode", "all"),
    ("judge_record_mode", "all"),
}
"""What no ini file may say."""


def mistakes(options: Options, ini: Container[str] = ()) -> Iterator[str]:
    """Say what is wrong with the options; `ini` are the keys that the ini file sets."""
    for option in OPTIONS:
        setting = f"{option.key} = " if option.key in ini else f"{option.flag}="
        value = getattr(options, option.sets)
        if option.key in ini and (option.sets, value) in _OVERWRITING:
            # Each session would accept, remove or pay for what only one was to.
            flag = option.flag if value is True else f"{option.flag}={value}"
            yield f"{setting}{value}: overwrites files, so pass {flag} on the command line instead"
        is_limit = option.sets in ("max_calls", "max_cost") and value is not None
        if is_limit and not (math.isfinite(value) and value >= 0):
            yield f"{setting}{value}: must be a number >= 0"
        for path in options.reports if option.sets == "reports" else ():
            if os.path.isdir(path):  # noqa: PTH112 - False where nobody may look
                yield f"{setting}{path}: this is a folder; name a file in it"
            elif path.suffix.lower() not in REPORT_SUFFIXES and path.name != NO_PAGE:
                expected = (
                    f"must end in {' or '.join(REPORT_SUFFIXES)}, or be {NO_PAGE} for no page"
                )
                yield f"{setting}{path.name}: {expected}"
    if options.update_baseline and options.baseline is None:
        yield "--jrh-update-baseline: name the file to update with --jrh-baseline=FILE"
    if options.reviewer is not None and (reason := name_problem(options.reviewer)):
        yield f"--jrh-reviewer={one_line(options.reviewer)}: {reason}"
