"""Writing files so that no reader ever sees half of one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write to a temporary file in the same folder, then rename it over `path`; folders are made.

    Raises `OSError` as it comes; the temporary file is then gone, and the old content still there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode("utf-8") if isinstance(content, str) else content
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        # mkstemp makes private files; what is written here is to be committed and shared.
        os.chmod(temporary, 0o666 & ~_umask())  # noqa: PTH101 - the name came as text
        os.replace(temporary, path)  # noqa: PTH105
    except BaseException:
        os.unlink(temporary)  # noqa: PTH108
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
