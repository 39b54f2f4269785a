"""Where the files that a config names are looked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_jrh.core import frozen
from pytest_jrh.core.documents import Findings, KeyPath, printable, shown
from pytest_jrh.core.files import exists, relative_path
from pytest_jrh.core.ids import node_part, short_digest
from pytest_jrh.core.text import nearest

_CONFIGS = ("inputs", "configs")
_DIGEST = 8


@frozen
class Places:
    """The folders in which relative paths are tried, in this order; all absolute.

    `home` is where new files and folders are made; it is known of places that are `settled`.
    """

    cwd: Path
    rootdir: Path
    config_dir: Path
    home: Path = Path()

    @property
    def conventional(self) -> bool:
        """Whether the config is where RAND's harness has its configs."""
        return self.config_dir == self.home.joinpath(*_CONFIGS)

    def settled(self, inputs: Iterable[str]) -> Places:
        """The same places, with new files made where the first of these inputs is found, or else in
        the folder around the config: rootdir, starting folder, or that of `inputs/configs`.
        """
        for relative in inputs:
            if Path(relative).is_absolute():
                continue
            for base in (self.cwd, self.rootdir):
                if exists(base / relative):
                    return replace(self, home=base)
        for base in (self.rootdir, self.cwd):
            if self.config_dir.is_relative_to(base):
                return replace(self, home=base)
        if self.config_dir.parts[-2:] == _CONFIGS:
            return replace(self, home=self.config_dir.parents[1])
        return replace(self, home=self.config_dir)

    def find(self, relative: str) -> Path | None:
        """Return the first place where `relative` exists."""
        return next((base / relative for base in self.bases if exists(base / relative)), None)

    def find_or_new(self, relative: str) -> Path:
        """Return the first place where `relative` exists, else where it is made."""
        return self.find(relative) or self.home / relative

    def key(self, config_file: Path) -> str:
        """The config file's name in every clone of the project; empty where it is outside."""
        is_inside = config_file.is_relative_to(self.home)
        return config_file.relative_to(self.home).as_posix() if is_inside else ""

    def results(self, config_file: Path) -> str:
        """Name a suite's results folder: `outputs/NAME` for `inputs/configs`, else a folder that
        mirrors the config's place, such as `outputs/examples/prompt/NAME`.
        """
        name, folder = config_file.stem, config_file.parent
        if not folder.is_relative_to(self.home):
            return f"outputs/{name}~{short_digest(config_file.as_posix(), _DIGEST)}"
        parts = folder.relative_to(self.home).parts
        if self.conventional:
            return f"outputs/{name}"
        if not parts:
            return f"outputs/{config_file.name}"
        return "/".join(["outputs", *(node_part(part) for part in parts), name])

    def name(self, path: Path) -> str:
        """Name a file relative to the starting folder where it is inside."""
        return str(relative_path(path, self.cwd))

    def require(
        self, relative: str | None, findings: Findings, key: KeyPath, role: str
    ) -> Path | None:
        """Return the file at `relative`, where one is named, or report at `key` where it was looked
        for.
        """
        if relative is None:
            return None
        path = self.find(relative)
        if path is None:
            self._report_missing(relative, findings, key, role)
        elif path.is_dir():
            findings.add(key, f"{role} {shown(relative)} is a folder, not a file")
            return None
        return path

    def logs(self, names: Sequence[str], findings: Findings, *, required: bool) -> tuple[Path, ...]:
        """Find the logs, which may be absent where the suite is frozen."""
        key: KeyPath = ("suite", "log")
        if not names and required:
            findings.add(key, f"no log is named; set {findings.name(key)}")
        logs: dict[Path, None] = {}
        for index, relative in enumerate(names):
            place = (*key, index) if len(names) > 1 else key
            path = self.find(relative)
            if path is not None or not required:
                logs[path or self.find_or_new(relative)] = None
            elif is_glob(relative) and not remote_hint(relative):
                logs.update(dict.fromkeys(self._matching(relative, findings, place)))
            else:
                self._report_missing(relative, findings, place, "the log")
        return tuple(logs)

    def _matching(self, pattern: str, findings: Findings, key: KeyPath) -> tuple[Path, ...]:
        """What a glob matches in the first place where it matches anything."""
        try:
            matches = (matching(base, pattern) for base in self.bases)
            first = next((paths for paths in matches if paths), ())
        except ValueError as error:
            findings.add(key, f"the glob {shown(pattern)} cannot be used: {printable(str(error))}")
            return ()
        if not first:
            looked = "; ".join(printable(str(base), 300) for base in self.bases)
            findings.add(key, f"the glob {shown(pattern)} matches nothing in {looked}")
        return first

    @property
    def bases(self) -> list[Path]:
        """The folders themselves, without repetition."""
        return list(dict.fromkeys((self.cwd, self.rootdir, self.config_dir)))

    def _report_missing(self, relative: str, findings: Findings, key: KeyPath, role: str) -> None:
        if remote := remote_hint(relative):
            findings.add(key, f"{role} {shown(relative)} is not a file on this machine", remote)
            return
        paths, hint = [base / relative for base in self.bases], None
        for path in paths:
            try:
                names = [entry.name for entry in path.parent.iterdir()]
            except OSError:
                continue
            if close := nearest(path.name, names):
                hint = f"{printable(self.name(path.parent / close), 300)} is there"
                break
        looked = "; ".join(printable(str(path), 300) for path in paths)
        findings.add(key, f"{role} {shown(relative)} does not exist; looked for {looked}", hint)


def is_glob(name: str) -> bool:
    """Whether a path that does not exist as it is written may stand for several."""
    return any(char in name for char in "*?[")


def matching(base: Path, pattern: str) -> tuple[Path, ...]:
    """What a glob matches below a folder, sorted; hidden files only where it names them."""
    glob = Path(pattern)
    if glob.is_absolute():
        base, pattern = Path(glob.anchor), str(glob.relative_to(glob.anchor))
    paths: Iterable[Path] = base.glob(pattern)
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


def argument(path: Path, folder: Path) -> str:
    """Name a path for pytest, which takes `@scope/x.yml` for a file of arguments."""
    relative = os.path.relpath(path, folder)
    return os.path.join(".", relative) if relative.startswith(("@", "-")) else relative  # noqa: PTH118
