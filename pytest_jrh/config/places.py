"""Where the files that a config names are looked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core import frozen
from pytest_jrh.core.documents import KeyPath, Mistakes, printable, shown
from pytest_jrh.core.files import exists, relative_path
from pytest_jrh.core.ids import node_part, short_digest
from pytest_jrh.core.text import nearest

if TYPE_CHECKING:
    from pytest_jrh.config.schema import Config

_CONFIGS = ("inputs", "configs")
_DIGEST = 8

LOG: KeyPath = ("suite", "log")


@frozen
class Places:
    """The folders in which relative paths are tried, in this order, the last one that of the config
    file; all absolute. What is not there is one of the config's `mistakes`.

    `home` is where new files and folders are made; it is known of places that are `settled`.
    """

    cwd: Path
    rootdir: Path
    config_file: Path
    mistakes: Mistakes = field(default_factory=Mistakes)
    home: Path = Path()

    @property
    def bases(self) -> list[Path]:
        """The folders themselves, without repetition."""
        return list(dict.fromkeys((self.cwd, self.rootdir, self.config_file.parent)))

    def settled(self, inputs: Iterable[str]) -> Places:
        """The same places, with new files made where the first of these inputs is found, or else in
        the folder around the config: rootdir, starting folder, or that of `inputs/configs`.
        """
        return replace(self, home=next(self._homes(inputs)))

    def _homes(self, inputs: Iterable[str]) -> Iterator[Path]:
        for relative in inputs:
            for base in (self.cwd, self.rootdir):
                if not Path(relative).is_absolute() and exists(base / relative):
                    yield base
        folder = self.config_file.parent
        for base in (self.rootdir, self.cwd):
            if folder.is_relative_to(base):
                yield base
        if folder.parts[-2:] == _CONFIGS:
            yield folder.parents[1]
        yield folder

    @property
    def key(self) -> str:
        """The config file's name in every clone of the project; empty where it is outside."""
        if not self.config_file.is_relative_to(self.home):
            return ""
        return self.config_file.relative_to(self.home).as_posix()

    def name(self, path: Path) -> str:
        """Name a file relative to the starting folder where it is inside."""
        return str(relative_path(path, self.cwd))

    @property
    def conventional(self) -> bool:
        """Whether the config is where RAND's harness has its configs."""
        return self.config_file.parent == self.home.joinpath(*_CONFIGS)

    @property
    def results(self) -> str:
        """The suite's results folder: `outputs/NAME` for `inputs/configs`, else a folder that
        mirrors the config's place, such as `outputs/examples/prompt/NAME`.
        """
        name, parts = self.config_file.stem, Path(self.key).parts[:-1]
        if not self.key:
            return f"outputs/{name}~{short_digest(self.config_file.as_posix(), _DIGEST)}"
        if self.conventional:
            return f"outputs/{name}"
        if not parts:
            return f"outputs/{self.key}"
        return "/".join(["outputs", *map(node_part, parts), name])

    def case_folders(self, config: Config, *, is_rands: bool) -> dict[str, str]:
        """The folder of each test's cases; RAND's harness has one for each test."""
        folder = None if is_rands and self.conventional else self.results
        makers = [kind for kind in config.tests if not KINDS[kind].derived] or config.tests
        folders = {}
        for kind in config.tests:
            # A probe keeps no cases, and has the folder of the first other test.
            maker = KINDS[makers[0] if KINDS[kind].derived else kind]
            default = folder or maker.folder(config.rand.module or self.config_file.stem)
            folders[kind] = config.output.dir or default
        return folders

    def find_or_new(self, relative: str) -> Path:
        """Return the first place where `relative` exists, else where it is made."""
        return self._find(relative) or self.home / relative

    def _find(self, relative: str) -> Path | None:
        return next((base / relative for base in self.bases if exists(base / relative)), None)

    def file(self, key: KeyPath, relative: str | None, role: str) -> Path | None:
        """Find the file that a key of the config names, if it names one; `role` says what it is."""
        if relative is None:
            return None
        path = self._find(relative)
        if path is None:
            self._miss(relative, key, role)
        elif path.is_dir():
            self.mistakes.add(key, f"{role} {shown(relative)} is a folder, not a file")
            return None
        return path

    def logs(self, names: Sequence[str], *, required: bool) -> tuple[Path, ...]:
        """Find the logs, which may be absent where the suite is frozen."""
        logs: dict[Path, None] = {}
        for index, relative in enumerate(names):
            place = (*LOG, index) if len(names) > 1 else LOG
            path = self._find(relative)
            if path is not None or not required:
                logs[path or self.home / relative] = None
            elif any(char in relative for char in "*?[") and not remote_hint(relative):
                try:
                    matches = (matching(base, relative) for base in self.bases)
                    paths = next(filter(None, matches), ())
                except ValueError as error:
                    reason = f"cannot be used: {printable(str(error))}"
                    self.mistakes.add(place, f"the glob {shown(relative)} {reason}")
                    continue
                logs |= dict.fromkeys(paths)
                if not paths:
                    looked = "; ".join(printable(str(base), 300) for base in self.bases)
                    self.mistakes.add(
                        place, f"the glob {shown(relative)} matches nothing in {looked}"
                    )
            else:
                self._miss(relative, place, "the log")
        return tuple(logs)

    def _miss(self, relative: str, key: KeyPath, role: str) -> None:
        """Say of a file that is nowhere where it was looked for."""
        paths, hint = [base / relative for base in self.bases], remote_hint(relative)
        looked = "; ".join(printable(str(path), 300) for path in paths)
        message = f"{role} {shown(relative)} does not exist; looked for {looked}"
        if hint:
            message = f"{role} {shown(relative)} is not a file on this machine"
            paths = []
        for path in paths:
            names = [entry.name for entry in path.parent.glob("*")]
            if close := nearest(path.name, names):
                hint = f"{printable(self.name(path.parent / close), 300)} is there"
                break
        self.mistakes.add(key, message, hint)


def matching(base: Path, pattern: str) -> tuple[Path, ...]:
    """What a glob matches below a folder, sorted; hidden files only where it names them."""
    glob = Path(pattern)
    if glob.is_absolute():
        base, pattern = Path(glob.anchor), str(glob.relative_to(glob.anchor))
    paths = base.glob(pattern)
    if not _hidden_parts(glob):
        paths = (path for path in paths if not _hidden_parts(path.relative_to(base)))
    return tuple(sorted(paths))


def _hidden_parts(path: Path) -> list[str]:
    return [part for part in path.parts if part.startswith(".") and part not in (".", "..")]


def remote_hint(name: str) -> str | None:
    """Say what to do about a URL such as s3://bucket/runs.eval; None for a path."""
    scheme, separator, _ = name.partition("://")
    if not separator or not scheme.isalnum():
        return None
    return "remote files are not supported; copy it to this machine first, and name the copy"


# A suite has one config file, and thousands of cases that are named after it.
@cache
def argument(path: Path, folder: Path) -> str:
    """Name a path for pytest, which takes `@scope/x.yml` for a file of arguments."""
    relative = os.path.relpath(path, folder)
    return os.path.join(".", relative) if relative.startswith(("@", "-")) else relative  # noqa: PTH118
