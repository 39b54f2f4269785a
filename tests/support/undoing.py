"""Edits of a made case taken back, which must give its run."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_jrh.core.cases import Edit, Message


def undone(messages: Sequence[Message], edits: Sequence[Edit]) -> tuple[Message, ...]:
    """The transcript as it was before these edits: of all edits of a made case, its run.

    An edit of `edits: text` has no messages to put back, and stays.
    """
    restored = list(messages)
    for edit in reversed(edits):
        end = edit.message_index + len(edit.after)
        assert restored[edit.message_index : end] == list(edit.after)
        restored[edit.message_index : end] = edit.before
    return tuple(restored)
