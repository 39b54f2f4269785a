"""The words that have a fixed set of values: modes, stages, record modes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

Message: TypeAlias = Mapping[str, Any]
# `kinds.KnownTest` is what pydantic checks; the table of kinds builds on these words.
TestName: TypeAlias = str
Mode: TypeAlias = Literal["binary", "ordinal"]
StageName: TypeAlias = str
RecordMode: TypeAlias = Literal["none", "once", "new_episodes", "all"]
Replay: TypeAlias = Literal["completion", "http"]
HumanReview: TypeAlias = Literal["", "undecided", "accepted", "edited", "rejected", "void"]
# Of samples and of intervals, where a suite names none.
DEFAULT_SEED = 8234
