"""Help for a session without a suite: options that need one, and suites in folders that do not
collect them.

Imported only where nothing of ours was collected.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

import pytest

from pytest_jrh.config.load import looks_like_suite
from pytest_jrh.config.options import OPTIONS
from pytest_jrh.core.files import absolute
from pytest_jrh.plugin.options import YAML_SUFFIXES

# Enough for a project's own folders, and quick where a whole disk was named.
_MOST_FOLDERS = 300
_MOST_FILES = 500
_MOST_FOUND = 20
_MOST_NAMED = 3


def refuse_options(config: pytest.Config) -> None:
    """Refuse options of this plugin that were typed where no suite was collected: they would do
    nothing.

    Those of an ini file or of `addopts` are for all sessions of a project, with and without suites.
    Raises `pytest.UsageError`.
    """
    flags = {option.flag for option in OPTIONS}
    typed = [
        name
        for argument in config.invocation_params.args
        if (name := str(argument).partition("=")[0]) in flags
    ]
    if typed:
        names = ", ".join(dict.fromkeys(typed))
        verb = "needs" if len(set(typed)) == 1 else "need"
        raise pytest.UsageError(
            f"{names} {verb} a suite, and none was collected. Name its config with "
            "--jrh-config=FILE." + "".join(f"\n{line}" for line in suites_nearby(config))
        )


def suites_nearby(config: pytest.Config) -> list[str]:
    """Lines that name the suites in the folders given to pytest, which are not collected from
    there; none without.
    """
    folder = config.invocation_params.dir
    named = [absolute(folder / argument.partition("::")[0]) for argument in config.args]
    names = [os.path.relpath(path, folder) for path in islice(_suites(named), _MOST_FOUND)]
    if not names:
        return []
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return [
        "jrh: not collected, because in a folder only *.jrh.yml is collected: "
        f"{', '.join(names[:_MOST_NAMED])}{more}",
        f"jrh: name the file: pytest --jrh-config={names[0]}",
    ]


def _suites(paths: Iterable[Path]) -> Iterator[Path]:
    files = chain.from_iterable(map(_files, filter(Path.is_dir, paths)))
    for path in islice(files, _MOST_FILES):
        if path.suffix in YAML_SUFFIXES and looks_like_suite(path):
            yield path


def _files(top: Path) -> Iterator[Path]:
    """The files below a folder, its own first, without hidden folders and without virtual
    environments.
    """
    for parent, folders, files in islice(os.walk(top), _MOST_FOLDERS):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith((".", "_"))
            and name != "node_modules"
            and not Path(parent, name, "pyvenv.cfg").exists()
        )
        yield from (Path(parent, name) for name in sorted(files) if name.endswith(YAML_SUFFIXES))
