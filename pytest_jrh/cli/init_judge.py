"""The judge that a new suite begins with, where it is no prompt.

What a clone of the repository needs to replay a suite: a log inside it, and one command that
adds it all.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import ValidationError

from pytest_jrh.core.documents import listed, printable, shown
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.model import StageModel
from pytest_jrh.core.sections import JudgeStage
from pytest_jrh.core.stages import JUDGE
from pytest_jrh.core.text import nearest_hint
from pytest_jrh.judges import JUDGES, with_own_keys
from pytest_jrh.judges.judge import JudgeSettings
from pytest_jrh.judges.own_code import OwnSource
from pytest_jrh.recording.own_code import loading_for_replay
from pytest_jrh.sources import suffixes, usual_suffix

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_jrh.core.model import Mode
    from pytest_jrh.judges.judge import JudgeKind, SuiteJudge


_ABOUT = (
    "# The judge under test. What it asks over HTTP is recorded, and on replay it runs and is",
    "# answered from there. Keys never stand in a config: they come from the environment.",
)


@dataclass(frozen=True, slots=True)
class GivenJudge:
    """A judge that is no prompt: what reports call it, its section of the config, and the file that
    a clone needs for it, relative to the project's folder; `helpers` are those that its code
    reaches.
    """

    label: str
    section: str
    file: str | None
    helpers: tuple[str, ...] = ()


def look_at_judge(text: str, folder: Path, mode: Mode) -> GivenJudge:
    """Load the judge that `KEY:TEXT` names, such as `python:judges.py:strict`; raises `InputError`
    for one that cannot be used or is not in the project's `folder`.
    """
    key, _, value = text.partition(":")
    kind = _kind(key, text)
    keys = {key: value.strip()}
    try:
        section = with_own_keys(JudgeStage).model_validate(keys)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        message = f"got {shown(text)}; {shown(value)} does not fit the key {key}: {reason}"
        raise _refused(message) from error
    files: list[Path] = []

    def locate(file: str, _names: tuple[str, ...]) -> str:
        files.append(_file(file))
        return str(files[-1])

    located = kind.with_files(section, locate)
    settings = JudgeSettings(None, StageModel(JUDGE.name, ""), kind.key, located)
    # Nothing is asked here: its code may find its keys later.
    with loading_for_replay():
        judge = kind.build(settings, mode, "")
    inside = [_inside(path, folder) for path in files]
    written = kind.with_files(section, lambda _file, _names: inside[0])
    values = written.model_dump(include=set(keys), exclude_unset=True)
    file = inside[0] if inside else None
    return GivenJudge(
        judge.label,
        _section(values, kind.notes),
        file,
        tuple(_helpers(judge, folder, file)),
    )


def _helpers(judge: SuiteJudge, folder: Path, file: str | None) -> Iterator[str]:
    """The other files in the project that a judge's own code reaches."""
    source = getattr(judge, "source", None)
    root = folder.resolve()
    for path in source.files if isinstance(source, OwnSource) else ():
        real = path.resolve()
        if real.is_relative_to(root) and real.relative_to(root).as_posix() != file:
            yield real.relative_to(root).as_posix()


def _kind(key: str, text: str) -> JudgeKind:
    kinds = {kind.key: kind for kind in JUDGES.values() if kind.keys is not None}
    if key not in kinds:
        forms = listed([f"{kind}:..." for kind in kinds])
        hint = nearest_hint(key, kinds) or ""
        raise _refused(f"got {shown(text)}; must be one of {forms}", hint)
    return kinds[key]


def _file(name: str) -> Path:
    path = Path.cwd() / name
    if not path.is_file():
        raise _refused(f"the file {shown(name)} does not exist")
    return path


def _inside(path: Path, folder: Path) -> str:
    real, root = path.resolve(), folder.resolve()
    if not real.is_relative_to(root):
        hint = f"put it into {root}, where a clone has it"
        raise _refused(f"the file {shown(str(path))} is not in the project's folder", hint)
    return real.relative_to(root).as_posix()


def _section(keys: dict[str, Any], notes: Sequence[str]) -> str:
    text = yaml.safe_dump(keys, sort_keys=False, allow_unicode=True, width=1000)
    lines = [*text.splitlines(), *(f"# {note}" for note in notes)]
    return "\n".join([*_ABOUT, "judge:", *(f"  {line}" for line in lines)])


def _refused(message: str, hint: str = "") -> InputError:
    return InputError(Problem(f"--judge: {message}", hint=hint or None))


LARGEST_LOG = 20_000_000
"""In bytes. A larger log is not copied: repositories keep every version of a file for ever."""

_FILE_STEM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
# Letters of any language can be in a file's name on every system, and these cannot.
_NOT_EVERYWHERE = re.compile(r'[\\:*?"<>|]|^ |[ .]$')
_LONGEST_STEM = 60
_DIGEST = 8
_LONGEST_PATH = 1000
_GIT_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where the suite finds its log, and the `copies` to make, relative to the project."""

    path: str
    committed: bool
    copies: Mapping[str, Path] = field(default_factory=dict)


def place_log(log: Path, folder: Path, name: str, files: Sequence[Path]) -> LogPlace:
    """Decide where the log of the suite `name` is to be, a file or a folder of `files`: under
    `inputs/`, unless it is larger than `LARGEST_LOG`.

    A log that is already under `inputs/` stays where it is. A symbolic link counts as the file it
    leads to, since git would commit the link alone. Raises `OSError` where the log cannot be looked
    at.
    """
    real, root = log.resolve(), folder.resolve()
    inside = _printable_path(real.relative_to(root)) if real.is_relative_to(root) else None
    if sum(file.stat().st_size for file in files) > LARGEST_LOG:
        return LogPlace(inside or Path(_relative(real, root)).as_posix(), committed=False)
    if inside is not None and inside.startswith("inputs/"):
        return LogPlace(inside, committed=True)
    if log.is_dir():
        path = f"inputs/data/{name}/runs"
        copies = {f"{path}/{_file_below(log, file)}": file for file in files}
        return LogPlace(path, committed=True, copies=copies)
    own = _without_up(log)
    # The result of its trial is above a trajectory, and the folders between them say whose it is.
    above = Path(os.path.commonpath([own.parent, *(_without_up(file).parent for file in files)]))
    path = f"inputs/data/{name}/{(own.parent.relative_to(above) / _file_name(log)).as_posix()}"
    copies = {path: log}
    for file in files:
        if _without_up(file) != own:
            copies[f"inputs/data/{name}/{_file_below(above, file)}"] = file
    return LogPlace(path, committed=True, copies=copies)


def _file_name(log: Path) -> str:
    suffix = log.suffix if log.suffix in suffixes() else usual_suffix(log)
    plain = _FILE_STEM.fullmatch(log.stem) and log.suffix == suffix
    return log.name if plain else f"runs{suffix}"


def _without_up(path: Path) -> Path:
    """The absolute path without `..`, which would lead a copy out of its folder."""
    return Path(os.path.normpath(path.absolute()))


def _file_below(folder: Path, file: Path) -> str:
    """The path of a copy: the folders stay, since they say which files belong to one trial."""
    inside = _without_up(file).relative_to(_without_up(folder))
    return Path(*map(_part_for_all_systems, inside.parts)).as_posix()


def _part_for_all_systems(part: str) -> str:
    if part.isprintable() and not _NOT_EVERYWHERE.search(part):
        return part
    suffix = Path(part).suffix
    suffix = suffix if suffix.lower() in suffixes() else ""
    plain = re.sub("[^A-Za-z0-9._-]+", "_", part.removesuffix(suffix)).strip(".")
    digest = hashlib.sha256(os.fsencode(part)).hexdigest()[:_DIGEST]
    return f"{plain[:_LONGEST_STEM]}-{digest}{suffix}"


def ignored_files(folder: Path, files: Sequence[str]) -> dict[str, str]:
    """Ask git which files a commit would leave out, and by which pattern (`FILE:LINE: ...`)."""
    git = shutil.which("git")
    if git is None:
        return {}
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command; the names travel on its standard input
            [git, "check-ignore", "--verbose", "-z", "--stdin"],
            cwd=folder,
            input="\0".join(files).encode("utf-8", "surrogateescape"),
            capture_output=True,
            timeout=_GIT_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    fields = done.stdout.decode("utf-8", "replace").split("\0")
    ignored = {}
    for source, line, pattern, file in zip(*(fields[at::4] for at in range(4)), strict=False):
        # The last pattern that matches decides, and one that begins with ! takes a file back in.
        if not pattern.startswith("!"):
            ignored[file] = printable(f"{source}:{line}: {pattern}")
    return ignored


def add_command(
    log: LogPlace,
    *,
    files: Sequence[str],
    folders: Sequence[str],
    left_out: Sequence[str],
    ignored: Mapping[str, str],
) -> str:
    """Write the `git add` that leaves out nothing a clone needs: all of `inputs/`, or where files
    are ignored `-f` with this suite's `files` and `folders` alone.
    """
    outside = [".gitignore", *(file for file in files if not file.startswith("inputs/"))]
    if not ignored:
        command = ["git", "add", *outside, "inputs"]
        if not log.committed and log.path.startswith("inputs/"):
            command.append(f":!{log.path}")
        return shlex.join(command)
    inside = [file for file in files if file.startswith("inputs/")]
    return shlex.join(
        ["git", "add", "-f", *outside, *inside, *folders, *(f":!{part}" for part in left_out)]
    )


def about_committing(log: LogPlace, ignored: Mapping[str, str]) -> list[str]:
    """Say what is unusual: a log that is not committed, and files that git would leave out."""
    lines = []
    if not log.committed:
        lines += [
            "",
            f"The log is larger than {LARGEST_LOG // 1_000_000} MB, so it is neither copied nor "
            "committed. A clone",
            "uses the cases as they were made instead (--jrh-frozen). To commit the log all the "
            "same, put it under",
            "inputs/, name it in the config, and leave --jrh-frozen out.",
        ]
    if ignored:
        lines += ["", "A .gitignore leaves out what a clone needs; `git add -f` below adds it:"]
        lines += [f"  {file}  ({pattern})" for file, pattern in ignored.items()]
    return lines


def _printable_path(path: Path) -> str | None:
    text = path.as_posix()
    return text if printable(text, _LONGEST_PATH) == text else None


def _relative(path: Path, folder: Path) -> str:
    try:
        return os.path.relpath(path, folder)
    except ValueError:  # Another drive of Windows.
        return str(path)
