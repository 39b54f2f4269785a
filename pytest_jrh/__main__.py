"""Commands beside pytest: `python -m pytest_jrh init`, `merge` and `schema`."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn


class _Parser(argparse.ArgumentParser):
    """Leaves with pytest's exit code for a user's mistake."""

    def error(self, message: str) -> NoReturn:
        self.exit(4, f"{self.format_usage()}{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns 0 where all is well, 1 where the merged suite is not green, 4 for a user's mistake."""
    parser = _Parser(prog="python -m pytest_jrh", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    merge = commands.add_parser("merge", help="put the shards of a suite together")
    merge.add_argument("--jrh-config", type=Path, required=True, metavar="FILE", help="the suite that was sharded")
    merge.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="a shard's outputs folder")
    _declare_init(commands.add_parser("init", help="write the files of a new suite"))
    schema = commands.add_parser("schema", help="write the JSON schemas of configs and rubric files for editors")
    schema.add_argument(
        "--folder", type=Path, default=Path("inputs/configs"), metavar="DIR", help="default: %(default)s"
    )
    schema.add_argument("--prefix", default=".jrh-", help="what the files' names begin with (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.command == "init":
        return _init(options)
    if options.command == "schema":
        return _schema(options.folder, options.prefix)
    return _merge(options.jrh_config, options.folders)


def _declare_init(init: argparse.ArgumentParser) -> None:
    init.add_argument("name", metavar="NAME", help="the suite's name: its config is inputs/configs/NAME.yml")
    init.add_argument("--log", type=Path, required=True, metavar="FILE", help="the Inspect log with the agent's runs")
    init.add_argument(
        "--rubric-id", action="append", default=[], metavar="ID", help="a rubric to fill in; may be given several times"
    )
    init.add_argument(
        "--ordinal", action="store_true", help="rubrics with a scale of scores, not violated or satisfied"
    )
    init.add_argument("--folder", type=Path, default=Path(), metavar="DIR", help="the project's folder (default: here)")
    init.add_argument("--force", action="store_true", help="overwrite files that are there already")


def _init(options: argparse.Namespace) -> int:
    from pytest_jrh.errors import InputError
    from pytest_jrh.starting import start_suite

    try:
        started = start_suite(
            options.name,
            options.log,
            folder=options.folder,
            rubric_ids=options.rubric_id,
            ordinal=options.ordinal,
            force=options.force,
        )
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 4
    sys.stdout.write("\n".join(started.lines) + "\n")
    return 0


def _schema(folder: Path, prefix: str) -> int:
    from pytest_jrh.errors import InputError
    from pytest_jrh.starting import write_schemas

    try:
        written = write_schemas(folder, prefix=prefix)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 4
    sys.stdout.write("".join(f"{path}\n" for path in written))
    return 0


def _merge(config: Path, folders: Sequence[Path]) -> int:
    from pytest_jrh.errors import InputError
    from pytest_jrh.loading import make_ready
    from pytest_jrh.merging import merge

    folder = Path.cwd()
    try:
        ready = make_ready((folder / config).resolve(), cwd=folder, rootdir=folder)
        merged = merge(ready, folders, width=shutil.get_terminal_size().columns)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 4
    sys.stdout.write("\n".join(merged.lines) + "\n")
    return 0 if merged.passed else 1


if __name__ == "__main__":
    sys.exit(main())
