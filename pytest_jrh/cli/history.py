"""`python -m pytest_jrh history`: the file of `--jrh-history` as a table."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from pytest_jrh.core.errors import InputError

DEFAULT = Path("history.jsonl")


def declare_history(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        default=DEFAULT,
        metavar="FILE",
        help="what --jrh-history has written (default: %(default)s)",
    )


def show_history(options: argparse.Namespace) -> int:
    """Print the table; lines that cannot be read are named on the error stream.

    Returns 4 where there is no such file, or nothing in it can be read.
    """
    from pytest_jrh.reports.history import history_lines
    from pytest_jrh.store.history import read_history

    try:
        history = read_history(options.file, str(options.file))
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 4
    for problem in history.problems:
        sys.stderr.write(f"{problem}\n")
    if history.unread > len(history.problems):
        more = history.unread - len(history.problems)
        sys.stderr.write(f"{options.file}: {more:,} more lines cannot be read\n")
    lines = history_lines(history.runs, shutil.get_terminal_size().columns)
    sys.stdout.write("\n".join(lines or ["no run of a whole suite is in it"]) + "\n")
    return 4 if history.unread and not history.runs else 0
