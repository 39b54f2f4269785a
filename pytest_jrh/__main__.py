"""The commands of pytest-jrh besides pytest itself."""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NoReturn

from pytest_jrh import __version__
from pytest_jrh.cli.check import declare_check, declare_meanings, scale
from pytest_jrh.config.options import OPTIONS
from pytest_jrh.core import (
    InputError,
    escape_commands,
    nearest_hint,
    replace_what_cannot_be_shown,
    visible,
)

# Each is loaded where it runs.
_COMMANDS = {
    "check": "check:check_file",
    "demo": "demo:run_demo",
    "init": "init:start_suite",
    "label": "label:label_file",
    "merge": "merge:merge",
    "schema": "init:write_schemas",
}
_EXAMPLES = {
    "check": "verdicts.csv --label human --verdict judge --one=violated",
    "demo": "jrh-demo",
    "init": "support --log answers.csv --label human --rubric 'polite: The answer is polite.'",
    "label": "answers.csv --rubric 'polite: The answer is polite.' --sample 60",
    "merge": "--jrh-config=inputs/configs/support.yml shard-1 shard-2",
    "schema": "--folder inputs/configs",
}
_COLUMNS = ("request", "response", "context", "case")


class _Once(argparse.Action):
    """Keeps the value of an option that has one, and refuses a second one."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest, self.default) is not self.default:
            parser.error(f"argument {option_string}: given twice")
        setattr(namespace, self.dest, values)


class _Parser(argparse.ArgumentParser):
    """Leaves with pytest's exit code for a user's mistake."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register("action", None, _Once)

    def format_help(self) -> str:
        """An example comes first: the usage of a command with many options is a page."""
        name = self.prog.rpartition(" ")[2]
        if name in _EXAMPLES:
            return f"example: {self.prog} {_EXAMPLES[name]}\n\n{super().format_help()}"
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        self.exit(4, f"{self.format_usage()}{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns 0 where all is well, 1 where the merged suite is not green, 4 for a user's mistake.
    """
    parser = _Parser(
        prog="python -m pytest_jrh",
        description=__doc__,
        epilog="Documentation: the folder docs in the repository and in the installed package",
    )
    parser.add_argument("--version", action="version", version=f"pytest-jrh {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    _declare_merge(commands.add_parser("merge", help="decide about a suite that ran in shards"))
    _declare_init(commands.add_parser("init", help="write the files of a new suite"))
    declare_check(
        commands.add_parser("check", help="compare the verdicts in a table with its labels")
    )
    _declare_label(commands.add_parser("label", help="label cases in the browser"))
    demo = commands.add_parser("demo", help="write an example suite and run it, without a key")
    demo.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("jrh-demo"),
        metavar="FOLDER",
        help="a new folder (default: %(default)s)",
    )
    schema = commands.add_parser(
        "schema", help="write JSON schemas, so that editors can check configs and rubric files"
    )
    schema.add_argument(
        "--folder",
        default="inputs/configs",
        metavar="DIR",
        help="default: %(default)s",
    )
    replace_what_cannot_be_shown()
    try:
        options, unknown = parser.parse_known_args(arguments)
        if unknown:
            of_command = commands.choices[options.command]
            known = re.findall(r"--[a-z-]+", of_command.format_usage())
            hint = nearest_hint(unknown[0].partition("=")[0], known)
            message = f"unrecognized arguments: {' '.join(unknown)}"
            of_command.error(f"{message}; {hint}" if hint else message)
        options.arguments = sys.argv[1:] if arguments is None else arguments
        code: int = resolve_name(f"pytest_jrh.cli.{_COMMANDS[options.command]}")(options)
        sys.stdout.flush()
    except InputError as error:
        sys.stderr.write(escape_commands(visible(f"{error}\n")))
        return 4
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe; at exit Python would write to it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        name = error.filename or "standard output"
        sys.stderr.write(visible(f"{name}: cannot be opened: {error.strerror}\n"))
        return 4
    except KeyboardInterrupt:
        return 130
    return code


def _declare_merge(merge: argparse.ArgumentParser) -> None:
    merge.add_argument(
        "--jrh-config", type=Path, required=True, metavar="FILE", help="the suite that was sharded"
    )
    merge.add_argument(
        "folders", nargs="+", type=Path, metavar="DIR", help="the outputs folder of a shard"
    )
    merge.add_argument(
        "--judge",
        metavar="MODULE:FUNCTION",
        help="the judge, if a conftest.py supplied it to the shards",
    )
    merge.add_argument(
        "-v", "--verbose", action="count", default=0, help="also print all figures and reasons"
    )
    for option in OPTIONS:
        if option.merged:
            merge.add_argument(option.flag, dest=option.sets, **option.argument)


def _declare_init(init: argparse.ArgumentParser) -> None:
    init.add_argument(
        "name", metavar="NAME", help="the suite's name: its config is inputs/configs/NAME.yml"
    )
    init.add_argument(
        "--log",
        type=_local,
        required=True,
        metavar="FILE_OR_FOLDER",
        help="an agent's runs (an Inspect log, conversations, sessions or traces, or a folder of "
        "them), or answers (a table, or the results of another tool)",
    )
    init.add_argument(
        "--of",
        choices=("runs", "answers", "pairs"),
        default="",
        help="what is in the log (by default, recognized by the content)",
    )
    init.add_argument(
        "--rubric",
        action="append",
        default=[],
        metavar="ID[: TEXT]",
        help="a rubric (without TEXT, you write the text later), or one file of rubrics; may be "
        "given several times",
    )
    labelled = init.add_mutually_exclusive_group()
    labelled.add_argument(
        "--labels",
        type=_local,
        metavar="FILE",
        help="a file of labels (CSV or JSON lines); what has a label is judged, and not edited",
    )
    init.add_argument(
        "--judge",
        metavar="KIND:NAME",
        help="model:NAME (for a prompt), python:FILE.py:FUNCTION or inspect_scorer:FILE.py@NAME",
    )
    init.add_argument("--prompt", type=Path, metavar="FILE", help="your own prompt for the judge")
    init.add_argument(
        "--verdict",
        metavar="PATTERN",
        default="",
        help="with --prompt: how to find the verdict in an answer, such as 'Verdict: (pass|fail)'",
    )
    for name in _COLUMNS:
        init.add_argument(
            f"--{name}",
            metavar="COL",
            default="",
            help=f"the column with each row's {name}".replace("case", "id"),
        )
    labelled.add_argument(
        "--label", metavar="COL", default="", help="the column with people's labels"
    )
    declare_meanings(init)
    init.add_argument("--scale", metavar="LOW-HIGH", type=scale, help="the scale of numeric labels")
    init.add_argument(
        "--ci",
        choices=("github", "gitlab"),
        default="github",
        help="the CI service to write a workflow for (default: %(default)s)",
    )
    init.add_argument(
        "--ordinal",
        action="store_true",
        help="the judge gives scores on a scale",
    )
    init.add_argument(
        "--folder",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="the project's folder (default: the current folder)",
    )
    init.add_argument("--force", action="store_true", help="overwrite existing files")


def _declare_label(label: argparse.ArgumentParser) -> None:
    label.add_argument(
        "file", metavar="FILE", type=_local, help="a table, results of a tool, or transcripts"
    )
    label.add_argument("--rubric", metavar="TEXT_OR_FILE", default="", help="ID: TEXT, or a file")
    label.add_argument("--sample", type=int, metavar="N", help="label N cases, drawn at random")
    label.add_argument(
        "--by",
        metavar="COL",
        default="",
        help="with --sample: draw equally many cases for each value of a column, such as verdict",
    )
    label.add_argument("--reviewer", metavar="NAME", help="your name (default: the page asks)")
    label.add_argument(
        "--out",
        type=Path,
        metavar="CSV",
        help="the file for the labels (default: labels.csv)",
    )
    label.add_argument(
        "--disagreements",
        type=Path,
        metavar="CSV",
        help="settle the cases of this file on which people disagree; the page shows their votes",
    )
    label.add_argument(
        "--overlap",
        type=float,
        metavar="SHARE",
        default=1.0,
        help="the share of the cases that everybody labels; others have one annotator (default: 1)",
    )
    label.add_argument(
        "--words",
        nargs=2,
        metavar=("KEPT", "BROKEN"),
        default=(),
        help="what to show instead of 'yes, it keeps to it' and 'no, it breaks it'",
    )
    label.add_argument(
        "--label",
        metavar="COL",
        default="",
        help="skip rows that have a value in this column",
    )
    label.add_argument(
        "--labels", type=_local, metavar="FILE", help="skip the cases with a label in this file"
    )
    label.add_argument(
        "--text", metavar="COL", action="append", help="a column to show; repeatable"
    )
    label.add_argument("--case", metavar="COL", help="the column with the ids of the cases")


def _local(name: str) -> Path:
    """The path of a file.

    Raises `InputError` for a URL, of which a path would keep one slash only.
    """
    from pytest_jrh.core.files import remote_hint

    if hint := remote_hint(name):
        raise InputError("is not a file on this machine", name, hint=hint)
    return Path(name)


if __name__ == "__main__":
    # It takes a fifth of a check's time, and what is read lives until the end.
    gc.disable()
    sys.exit(main())
