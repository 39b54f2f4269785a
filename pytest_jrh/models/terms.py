"""The words that have a fixed set of values: modes, stages, record modes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pytest_jrh.kinds import TESTS

Message: TypeAlias = Mapping[str, Any]
if TYPE_CHECKING:
    TestName: TypeAlias = str
else:
    # What pydantic checks: the tests that are registered.
    TestName = Literal[TESTS]
Mode: TypeAlias = Literal["binary", "ordinal"]
StageName: TypeAlias = str
RecordMode: TypeAlias = Literal["none", "once", "new_episodes", "all"]
HumanReview: TypeAlias = Literal["", "undecided", "accepted", "edited", "rejected", "void"]
# Of samples and of intervals, where a suite names none.
DEFAULT_SEED = 8234
