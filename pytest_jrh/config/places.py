"""Where the files that a config names are looked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core import frozen
from pytest_jrh.core.calls import EDITOR, StageSpec
from pytest_jrh.core.documents import KeyPath, Mistake, Mistakes, listed, printable, shown
from pytest_jrh.core.files import exists, relative_path
from pytest_jrh.core.ids import CASES_FILE, node_part, short_digest
from pytest_jrh.core.sections import StageSection
from pytest_jrh.core.text import nearest
from pytest_jrh.judges import JudgeEntry

if TYPE_CHECKING:
    from pytest_jrh.config.rand import Converted
    from pytest_jrh.config.schema import Config

_CONFIGS = ("inputs", "configs")
_DIGEST = 8
_Named: TypeAlias = "tuple[KeyPath, str | None, str]"
"""A key of a config, the file that it names, None where it names none, and what that file is."""


FROZEN: KeyPath = ("cases", "frozen")
LOG: KeyPath = ("suite", "log")
NOTE: KeyPath = ("rand", "instruction_path")
RUBRICS: KeyPath = ("suite", "rubrics")
BLIND_LABELS: KeyPath = ("blind", "labels")


@frozen
class Located:
    """Where everything of a suite is: `files` are those that its config names, by key, and `cases`
    the folders of its tests.

    `key` is the config file's name in every clone of the project; empty where it is outside.
    """

    key: str
    logs: tuple[Path, ...]
    files: Mapping[KeyPath, Path]
    cases: Mapping[str, Path]
    cassettes: Path
    results: Path
    custom_prompts: Path


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
        return replace(self, home=next(self._homes(inputs)))

    def _homes(self, inputs: Iterable[str]) -> Iterator[Path]:
        for relative in inputs:
            for base in (self.cwd, self.rootdir):
                if not Path(relative).is_absolute() and exists(base / relative):
                    yield base
        for base in (self.rootdir, self.cwd):
            if self.config_dir.is_relative_to(base):
                yield base
        if self.config_dir.parts[-2:] == _CONFIGS:
            yield self.config_dir.parents[1]
        yield self.config_dir

    def locate(
        self,
        config_file: Path,
        config: Config,
        converted: Converted,
        entries: Sequence[JudgeEntry],
        making: Mapping[StageSpec, StageSection],
        *,
        is_frozen: bool,
    ) -> Located:
        """Find all that a suite reads, and where what it writes goes; what is not there is one of
        the config's mistakes. `entries` are its judges, and `making` the stages that make cases.
        """
        name = config_file.stem
        module = config.rand.module or name
        results = self._results(config_file)
        stamp = f"_{config.rand.stamp}" if config.rand.stamp else ""
        # RAND's harness has a folder for each test.
        folder = None if converted.is_rands and self.conventional else results
        makers = [kind for kind in config.tests if not KINDS[kind].derived] or config.tests
        folders = {}
        for kind in config.tests:
            # A probe keeps no cases, and has the folder of the first other test.
            maker = KINDS[makers[0] if KINDS[kind].derived else kind]
            folders[kind] = config.output.dir or folder or maker.folder(module)
        frozen_name = _frozen_name(config, folders.values(), converted) if is_frozen else None
        named_files = _named_files(config, entries, making, frozen_name, is_frozen=is_frozen)
        files = self._files(named_files, converted.mistakes)
        logs = self._logs(config.suite.log, converted.mistakes, required=not is_frozen)
        if not logs and FROZEN in files:
            logs = (files[FROZEN],)
        is_inside = config_file.is_relative_to(self.home)
        return Located(
            key=config_file.relative_to(self.home).as_posix() if is_inside else "",
            logs=logs,
            files=files,
            cases={kind: self._find_or_new(folders[kind]) for kind in folders},
            cassettes=self._find_or_new(config.recording.dir or f"inputs/cassettes/{name}"),
            results=self._find_or_new(config.rand.results or f"{results}{stamp}"),
            custom_prompts=self._find_or_new(f"inputs/custom_prompts/{module}"),
        )

    def _find(self, relative: str) -> Path | None:
        """Return the first place where `relative` exists."""
        return next((base / relative for base in self.bases if exists(base / relative)), None)

    def _find_or_new(self, relative: str) -> Path:
        """Return the first place where `relative` exists, else where it is made."""
        return self._find(relative) or self.home / relative

    def _results(self, config_file: Path) -> str:
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

    def _files(self, named: Iterable[_Named], mistakes: Mistakes) -> dict[KeyPath, Path]:
        """Find the files that a config names, by key."""
        files = {}
        for key, relative, role in named:
            if relative is None:
                continue
            path = self._find(relative)
            if path is None:
                mistakes.append(self._missing(relative, key, role))
            elif path.is_dir():
                mistakes.add(key, f"{role} {shown(relative)} is a folder, not a file")
            else:
                files[key] = path
        return files

    def _logs(
        self, names: Sequence[str], mistakes: Mistakes, *, required: bool
    ) -> tuple[Path, ...]:
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
                    mistakes.add(place, f"the glob {shown(relative)} {reason}")
                    continue
                logs |= dict.fromkeys(paths)
                if not paths:
                    looked = "; ".join(printable(str(base), 300) for base in self.bases)
                    message = f"the glob {shown(relative)} matches nothing in {looked}"
                    mistakes.add(place, message)
            else:
                mistakes.append(self._missing(relative, place, "the log"))
        return tuple(logs)

    @property
    def bases(self) -> list[Path]:
        """The folders themselves, without repetition."""
        return list(dict.fromkeys((self.cwd, self.rootdir, self.config_dir)))

    def _missing(self, relative: str, key: KeyPath, role: str) -> Mistake:
        """The mistake of a file that is nowhere, with where it was looked for."""
        if remote := remote_hint(relative):
            message = f"{role} {shown(relative)} is not a file on this machine"
            return Mistake(key, message, remote)
        paths, hint = [base / relative for base in self.bases], None
        for path in paths:
            names = [entry.name for entry in path.parent.glob("*")]
            if close := nearest(path.name, names):
                hint = f"{printable(self.name(path.parent / close), 300)} is there"
                break
        looked = "; ".join(printable(str(path), 300) for path in paths)
        message = f"{role} {shown(relative)} does not exist; looked for {looked}"
        return Mistake(key, message, hint)


def _frozen_name(config: Config, folders: Iterable[str], converted: Converted) -> str | None:
    """The JSONL that the cases of a frozen suite come from, as the config says or implies it."""
    if isinstance(config.cases.frozen, str):
        return config.cases.frozen
    names = [f"{folder}/{CASES_FILE}" for folder in dict.fromkeys(folders)]
    if len(names) == 1:
        return names[0]
    if names:
        message = f"the tests keep their cases in different files ({listed(names)})"
        hint = f"set {converted.name(('output', 'dir'))}, or give the path of the file"
        converted.mistakes.add(FROZEN, message, hint)
    return None


def _named_files(
    config: Config,
    entries: Sequence[JudgeEntry],
    making: Mapping[StageSpec, StageSection],
    frozen_name: str | None,
    *,
    is_frozen: bool,
) -> Iterator[_Named]:
    """The files that a config names."""
    yield FROZEN, frozen_name, "the frozen suite"
    yield NOTE, config.rand.instruction_path, "the instruction file"
    yield RUBRICS, config.suite.rubrics, "the rubric file"
    for spec, section in making.items():
        yield prompt_key(spec), section.prompt_path, "the prompt file"
    for entry in entries:
        yield entry.place_of("prompt_path"), entry.prompt_path, "the prompt file"
        yield (*entry.place, entry.kind.key), entry.code_file, "the judge's file"
    if not is_frozen:
        for index, labels in enumerate(config.labels):
            yield ("labels", index, "path"), labels.path, "the label file"
    yield BLIND_LABELS, config.blind.labels, "the file of blind labels"


def prompt_key(spec: StageSpec) -> KeyPath:
    """Where a config names the prompt of a stage that makes cases."""
    place = (EDITOR.name,) if spec is EDITOR else (EDITOR.name, spec.name)
    return (*place, "prompt_path")


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
