"""Command line, ini keys and markers: declared once, read into one frozen value (rule I1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.files import absolute
from pytest_jrh.kinds import KINDS
from pytest_jrh.text import nearest

if TYPE_CHECKING:
    from pytest_jrh.models import RecordMode
    from pytest_jrh.recording.settings import Replay

OPTIONS_READ = pytest.StashKey["Options"]()
YAML_SUFFIXES = (".yml", ".yaml")
_MODES = ("none", "once", "new_episodes", "all")
_NUMBERS: dict[str, type] = {"int": int, "float": float}
_REPLAYS = ("completion", "http")
MARKERS = (
    "jrh: a case of a judge reliability suite",
    *(f"{kind.name}: {kind.marker}" for kind in KINDS.values()),
)


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its command line name, and the ini key of the same name."""

    name: str
    help: str
    kind: str = "string"
    choices: tuple[str, ...] = ()
    metavar: str | None = None

    @property
    def flag(self) -> str:
        return f"--jrh-{self.name}"

    @property
    def key(self) -> str:
        return f"jrh_{self.name.replace('-', '_')}"


OPTIONS = (
    Option(
        "config", "collect this suite; may be given several times", kind="paths", metavar="FILE"
    ),
    Option(
        "record-mode",
        "none: answer from cassettes alone; once: record or resume cases that are not complete; "
        "new_episodes: record what is missing; all: record everything anew (default: the suite's "
        "own, else none)",
        choices=_MODES,
        metavar="MODE",
    ),
    Option(
        "judge-record-mode",
        "the record mode of the judge's calls alone",
        choices=_MODES,
        metavar="MODE",
    ),
    Option(
        "cassette-dir",
        "where cassettes are (default: inputs/cassettes/SUITE)",
        kind="path",
        metavar="DIR",
    ),
    Option("disable-recording", "ask the models for everything, and keep nothing", kind="bool"),
    Option(
        "replay",
        "how recorded calls are answered: from the recorded completion, or the whole way through "
        "litellm and vcrpy (default: completion)",
        choices=_REPLAYS,
        metavar="HOW",
    ),
    Option("report-unused", "list the cassettes that no case of the suites uses", kind="bool"),
    Option("prune", "remove the cassettes that no case of the suites uses", kind="bool"),
    Option(
        "max-workers",
        "model calls in flight at once (default: the suite's evaluation_config.max_workers)",
        kind="int",
        metavar="N",
    ),
    Option(
        "frozen",
        "take the cases from the suite's agent_perturbations.jsonl alone, without its log",
        kind="bool",
    ),
    Option(
        "retry-unscored",
        "in a recording mode: ask again what was recorded but could not be used (refused, "
        "invalid), and nothing else",
        kind="bool",
    ),
    Option(
        "plan",
        "print what is recorded, what would be asked and what that may cost; ask nothing",
        kind="bool",
    ),
    Option(
        "max-calls",
        "make at most so many model calls; the rest is over_budget",
        kind="int",
        metavar="N",
    ),
    Option(
        "max-cost",
        "spend at most so many US dollars; the rest is over_budget",
        kind="float",
        metavar="USD",
    ),
    Option(
        "free-model",
        "count this model, whose price litellm does not know, as free of charge; may be given "
        "several times",
        kind="names",
        metavar="MODEL",
    ),
    Option(
        "review",
        "look at the cases in the browser before they are judged: accept, reject, edit; judging "
        "waits for Finalize",
        kind="bool",
    ),
    Option(
        "baseline",
        "hold the verdicts against this baseline: a regression fails",
        kind="path",
        metavar="FILE",
    ),
    Option(
        "update-baseline",
        "take this session's verdicts over into the file of --jrh-baseline",
        kind="bool",
    ),
    Option("report", "write a report as one HTML file", kind="path", metavar="FILE.html"),
    Option(
        "summary",
        "write a report in Markdown (it also goes to $GITHUB_STEP_SUMMARY where that is set)",
        kind="path",
        metavar="FILE.md",
    ),
    Option(
        "eval-log", "write the judged cases as an Inspect log", kind="path", metavar="FILE.eval"
    ),
)


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line and the ini file say; None where they say nothing."""

    configs: tuple[Path, ...]
    record_mode: RecordMode | None
    judge_record_mode: RecordMode | None
    cassette_dir: Path | None
    disable_recording: bool
    replay: Replay
    report_unused: bool
    prune: bool
    max_workers: int | None
    frozen: bool
    retry_unscored: bool
    plan: bool
    max_calls: int | None
    max_cost: float | None
    free_models: frozenset[str]
    review: bool
    baseline: Path | None
    update_baseline: bool
    report: Path | None
    summary: Path | None
    eval_log: Path | None


def add_options(parser: pytest.Parser) -> None:
    """Declare every option on the command line and as an ini key."""
    group = parser.getgroup("jrh", "judge reliability suites")
    for option in OPTIONS:
        settings: dict[str, Any] = {"dest": option.key, "default": None, "help": option.help}
        if option.kind == "bool":
            settings |= {"action": "store_true"}
        else:
            settings |= {"metavar": option.metavar}
        if option.kind in ("paths", "names"):
            settings |= {"action": "append"}
        if option.kind in _NUMBERS:
            settings |= {"type": _NUMBERS[option.kind]}
        if option.choices:
            settings |= {"choices": option.choices}
        group.addoption(option.flag, **settings)
        ini_type = {"bool": "bool", "paths": "args", "names": "args"}.get(option.kind, "string")
        parser.addini(option.key, option.help, type=ini_type, default=None)  # type: ignore[arg-type]


def read_options(config: pytest.Config) -> Options:
    """Read the options, the command line over the ini file.

    Raises `pytest.UsageError` for a bad ini value.
    """
    values = {option.key: _value(config, option) for option in OPTIONS}
    said = {option.key for option in OPTIONS if config.getoption(option.key) is not None}
    _settle(values, said)
    replay: Replay = values["jrh_replay"] or "completion"
    options = Options(
        configs=tuple(dict.fromkeys(values["jrh_config"] or ())),
        record_mode=values["jrh_record_mode"],
        judge_record_mode=values["jrh_judge_record_mode"],
        cassette_dir=values["jrh_cassette_dir"],
        disable_recording=bool(values["jrh_disable_recording"]),
        replay=replay,
        report_unused=bool(values["jrh_report_unused"]),
        prune=bool(values["jrh_prune"]),
        max_workers=values["jrh_max_workers"],
        frozen=bool(values["jrh_frozen"]),
        retry_unscored=bool(values["jrh_retry_unscored"]),
        plan=bool(values["jrh_plan"]),
        max_calls=values["jrh_max_calls"],
        max_cost=values["jrh_max_cost"],
        free_models=frozenset(values["jrh_free_model"] or ()),
        review=bool(values["jrh_review"]),
        baseline=values["jrh_baseline"],
        update_baseline=bool(values["jrh_update_baseline"]),
        report=values["jrh_report"],
        summary=values["jrh_summary"],
        eval_log=values["jrh_eval_log"],
    )
    _check(options)
    # Replaying the whole way sends nothing, whatever record mode the suite's own config asks for.
    return (
        replace(options, record_mode="none", judge_record_mode="none")
        if replay == "http"
        else options
    )


def may_be_case(nodeid: str) -> bool:
    """Whether a node id is of a file whose name a suite may have.

    What is in the file does not count.
    """
    return nodeid.partition("::")[0].endswith(YAML_SUFFIXES)


def _settle(values: dict[str, Any], said: set[str]) -> None:
    """Drop what the ini file says against the command line."""
    modes = {key for key in ("jrh_record_mode", "jrh_judge_record_mode") if values[key]}
    asking = {key for key in modes if values[key] != "none"}
    disabled = {"jrh_disable_recording"} if values["jrh_disable_recording"] else set()
    whole_way = {"jrh_replay"} if values["jrh_replay"] == "http" else set()
    for one, other in ((disabled, modes), (whole_way, asking | disabled)):
        if one and other and bool(one & said) != bool(other & said):
            values.update(dict.fromkeys(other if one & said else one))


def _check(options: Options) -> None:
    if options.max_workers is not None and options.max_workers < 1:
        raise pytest.UsageError(
            f"--jrh-max-workers={options.max_workers}: it takes a whole number from 1 on"
        )
    for flag, limit in (
        ("--jrh-max-calls", options.max_calls),
        ("--jrh-max-cost", options.max_cost),
    ):
        if limit is not None and not (math.isfinite(limit) and limit >= 0):
            raise pytest.UsageError(f"{flag}={limit}: must be a number >= 0")
    modes = [
        mode
        for mode in (options.record_mode, options.judge_record_mode)
        if mode not in (None, "none")
    ]
    if options.disable_recording and (options.record_mode or options.judge_record_mode):
        raise pytest.UsageError(
            "--jrh-disable-recording asks the models and keeps nothing, so it takes no record "
            "mode beside it"
        )
    if options.update_baseline and options.baseline is None:
        raise pytest.UsageError(
            "--jrh-update-baseline: name the file to update with --jrh-baseline=FILE"
        )
    if options.eval_log is not None and options.eval_log.suffix != ".eval":
        raise pytest.UsageError(
            f"--jrh-eval-log={options.eval_log.name}: Inspect reads a log by its suffix, .eval"
        )
    if options.replay == "http" and (modes or options.disable_recording):
        raise pytest.UsageError(
            "--jrh-replay=http answers recorded calls alone: use it with --jrh-record-mode=none"
        )


def _value(config: pytest.Config, option: Option) -> Any:
    value, new = config.getoption(option.key), config.invocation_params.dir
    if value is None:
        # What the ini file names belongs to its folder, whichever folder pytest was started in.
        value, new = _ini_value(config, option), config.rootpath
    if value is None or option.kind not in ("path", "paths"):
        return value
    return (
        _place(config, value, new)
        if option.kind == "path"
        else [_place(config, name, new) for name in value]
    )


def _ini_value(config: pytest.Config, option: Option) -> Any:
    try:
        value = config.getini(option.key)
        if value in (None, "", []):
            return None
        if option.kind in _NUMBERS:
            return _NUMBERS[option.kind](value)
    except (ValueError, pytest.UsageError) as error:
        kind = {"int": "a whole number", "float": "a number", "bool": "true or false"}.get(
            option.kind, "names of files"
        )
        raise pytest.UsageError(f"{option.key}: it takes {kind} ({error})") from None
    if option.choices and value not in option.choices:
        close = nearest(value, option.choices)
        meant = f"; did you mean {close}?" if close else ""
        raise pytest.UsageError(
            f"{option.key} = {value}: it takes one of {', '.join(option.choices)}{meant}"
        )
    return value


def _place(config: pytest.Config, name: str, new: Path) -> Path:
    """Where a path is: from the folder pytest was started in, else from its rootdir, else in `new`
    (rule A3).
    """
    places = [absolute(folder / name) for folder in (config.invocation_params.dir, config.rootpath)]
    return next((path for path in places if path.exists()), absolute(new / name))
