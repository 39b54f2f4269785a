"""Where a session's figures come from, as values; `pytest_jrh.provenance` finds them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

BUILT_IN = "built-in"
Change: TypeAlias = Literal["", "same", "prompt", "judge", "code"]
"""How a judge differs from the baseline's: no baseline, in nothing, in its prompt alone, in its
model, its parameters or its code, or maybe in code: the baseline is of an earlier version of this
package, which looked at the judge's function alone."""


@dataclass(frozen=True, slots=True)
class JudgeOrigin:
    """One judge: `label` is its model, or what it is where it has none.

    `prompt` is its prompt's file, `built-in` for that of this package, and empty where it has none;
    digests are the first hex digits of a SHA-256. `name` is empty for a suite's only judge.
    """

    name: str
    label: str
    kind: str
    prompt: str = ""
    prompt_digest: str = ""
    fingerprint: str = ""
    change: Change = ""


@dataclass(frozen=True, slots=True)
class SuiteOrigin:
    """One suite: paths are relative to the folder that the session was started in.

    `makers` are the models that made its cases, `verifier` the one that confirmed them; empty where
    no model did. `frozen` is the file with the cases of a frozen suite. `recorded` is the day of
    the last commit of its recordings, empty where that is not known.
    """

    suite: str
    config: str
    config_digest: str
    judges: tuple[JudgeOrigin, ...]
    makers: tuple[str, ...] = ()
    verifier: str = ""
    frozen: str = ""
    recorded: str = ""
    baseline: str = ""
    baseline_digest: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SessionOrigin:
    """A session: `date` is the minute in UTC in which it ended, and `commit` the first digits of
    the one that is checked out, empty where there is none.
    """

    suites: tuple[SuiteOrigin, ...] = ()
    date: str = ""
    commit: str = ""


NO_ORIGIN = SessionOrigin()
"""That of a session of which nobody has looked where it comes from."""


def origin_data(origin: SuiteOrigin, judge: str) -> dict[str, Any]:
    """The origin of one judge's figures as JSON values: without what a run of the same files
    elsewhere or later would say otherwise (rule H3).
    """
    own = next((each for each in origin.judges if each.name == judge), None)
    return {
        "judge": None
        if own is None
        else {
            "model": own.label,
            "kind": own.kind,
            "prompt": own.prompt or None,
            "prompt_digest": own.prompt_digest or None,
            "fingerprint": own.fingerprint,
            "since_baseline": own.change or None,
        },
        "cases": {
            "made_by": list(origin.makers),
            "verified_by": origin.verifier or None,
            "frozen": origin.frozen or None,
        },
        "config": {"file": origin.config, "digest": origin.config_digest},
        "baseline": None
        if not origin.baseline
        else {"file": origin.baseline, "digest": origin.baseline_digest},
        "versions": dict(origin.versions),
    }


def whole_data(origin: SessionOrigin) -> dict[str, Any]:
    """All of it as JSON values, for files that no other is compared with."""
    return asdict(origin)
