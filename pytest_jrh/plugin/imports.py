"""Importing a lot at once: out of the garbage collector's way."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Import without garbage collections, and keep what is imported out of later ones: it stays to
    the end anyway.

    A tenth of a short session's time went into looking through modules for garbage, again and
    again.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
