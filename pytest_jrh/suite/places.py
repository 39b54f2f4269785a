"""Where the files that a config names are looked for (semantics A3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_jrh.suite.problems import nearest, printable, shown

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.suite.problems import Findings, KeyPath

_SIBLINGS = 500


@dataclass(frozen=True, slots=True)
class Places:
    """The folders in which relative paths are tried, in this order; all absolute."""

    cwd: Path
    rootdir: Path
    config_dir: Path

    def candidates(self, relative: str) -> list[Path]:
        """Every place where `relative` may be, without repetition."""
        return list(dict.fromkeys(base / relative for base in (self.cwd, self.rootdir, self.config_dir)))

    def find(self, relative: str) -> Path | None:
        """Return the first place where `relative` exists."""
        return next((path for path in self.candidates(relative) if exists(path)), None)

    def find_or_cwd(self, relative: str) -> Path:
        """Return the first place where `relative` exists, else where it would be made."""
        return self.find(relative) or self.cwd / relative

    def name(self, path: Path) -> str:
        """Name a file as briefly as is clear: relative to the starting folder where it is inside."""
        return str(path.relative_to(self.cwd)) if path.is_relative_to(self.cwd) else str(path)

    def require(self, relative: str, findings: Findings, key: KeyPath, *, what: str) -> Path | None:
        """Return the file at `relative`, or report at `key` where it was looked for."""
        found = self.find(relative)
        if found is None and (remote := remote_hint(relative)):
            findings.add(key, f"{what} {shown(relative)} is not a file on this machine", remote)
            return None
        if found is None:
            looked = "; ".join(printable(str(path), 300) for path in self.candidates(relative))
            close = self._nearest_file(relative)
            hint = f"{close} is there" if close else None
            findings.add(key, f"{what} {shown(relative)} does not exist; looked for {looked}", hint)
            return None
        if found.is_dir():
            findings.add(key, f"{what} {shown(relative)} is a folder; a file is needed")
            return None
        return found

    def _nearest_file(self, relative: str) -> str | None:
        for path in self.candidates(relative):
            try:
                names = [entry.name for entry, _ in zip(path.parent.iterdir(), range(_SIBLINGS), strict=False)]
            except (OSError, ValueError):
                continue
            if close := nearest(path.name, names):
                return printable(self.name(path.parent / close), 300)
        return None


def remote_hint(name: str) -> str | None:
    """Say what to do about a file that is named by a URL, such as s3://bucket/runs.eval; None for a path."""
    scheme, separator, _ = name.partition("://")
    if not separator or not scheme.isalnum():
        return None
    copy = f"copy it first (aws s3 cp {printable(name, 300)} .)" if scheme == "s3" else "download it first"
    return f"remote files are not supported; {copy}, and name the copy"


def exists(path: Path) -> bool:
    """Whether a path exists; a name that no file can have does not."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
