"""Room on the disk, kept before a call is paid for, so that its answer can be
kept too (rule G5).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pytest_jrh.contents import image_sizes, text_of
from pytest_jrh.errors import Unscored
from pytest_jrh.llm.calls import CallRequest

MAKE_ROOM = "Make room or fix the permissions, then run again: every call saved before is kept."
# An answer is kept twice, as text and as the HTTP exchange; providers put about a page around it.
_ANSWER = 32_768
# Pretty-printed, indented and escaped, a request takes more than its letters.
_SPREAD = 2


def size_of(request: CallRequest) -> int:
    """The bytes of what a model is asked with."""
    return sum(
        len(text_of(message).encode("utf-8", "replace")) + sum(image_sizes(message))
        for message in request.messages
    )


@contextlib.contextmanager
def room_for(asked: int, cassette: Path, folder: Path) -> Iterator[None]:
    """Keep as much of the folder's disk as the cassette will take with a request of `asked` bytes
    and its answer, until the block ends.

    `folder` has to exist. A process that dies leaves nothing behind. Raises `OSError` where there
    is not that much.
    """
    import tempfile

    try:
        so_far = cassette.stat().st_size
    except FileNotFoundError:
        so_far = 0
    with tempfile.TemporaryFile(dir=folder) as file:
        # A file with holes would take no room.
        file.write(bytes(so_far + _SPREAD * asked + _ANSWER))
        file.flush()
        yield


@contextlib.contextmanager
def writing(stage: str, what: str) -> Iterator[None]:
    """Turn what goes wrong with a file into what the user reads in the case.

    `what` follows from it.
    """
    try:
        yield
    except OSError as error:
        raise Unscored(
            "model_error",
            stage=stage,
            cause=f"{what}: {error.strerror or error}.",
            advice=MAKE_ROOM,
        ) from error
