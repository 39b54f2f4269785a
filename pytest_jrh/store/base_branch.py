"""The baseline as the base branch of a pull request has it. A pull request may change a judge and,
with it, the baseline that the judge is held against: its PASS then says less.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pytest_jrh.core.errors import InputError
from pytest_jrh.core.files import git_output
from pytest_jrh.core.text import counted
from pytest_jrh.stats.baseline import Baseline, Scope, suite_of
from pytest_jrh.stats.comparison import compare
from pytest_jrh.stats.verdicts import Verdicts
from pytest_jrh.store.ledger import parsed

_GITHUB, _GITLAB = "GITHUB_BASE_REF", "CI_MERGE_REQUEST_DIFF_BASE_SHA"
_HOW = {
    _GITHUB: "give actions/checkout fetch-depth: 2",
    _GITLAB: f"run git fetch --depth=1 origin ${_GITLAB} before it",
}


def baseline_there(
    file: Path | None, environ: Mapping[str, str] = os.environ
) -> Baseline | str | None:
    """The baseline on the branch that a pull request is to be merged into, empty where there is
    none yet, or a sentence where that cannot be read; None outside of a pull request.
    """
    if file is None:
        return None
    variable = next((name for name in _HOW if environ.get(name)), "")
    if not variable:
        return None
    name = f"./{file.name}"
    commit = _base_commit(file.parent, variable, environ[variable])
    listed = git_output(file.parent, "ls-tree", commit, "--", name) if commit else None
    if listed == "":
        return Baseline()
    text = git_output(file.parent, "cat-file", "blob", f"{commit}:{name}") if listed else None
    remedy = f"its base cannot be read: {_HOW[variable]}"
    if text is not None:
        try:
            return parsed(text, file.name)
        except InputError:
            remedy = f"{name} of its base has an earlier form, or is damaged"
    return f"whether this pull request changes the baseline is not known, as {remedy}"


def _base_commit(folder: Path, variable: str, base: str) -> str:
    """The commit that the pull request starts from; "" where it is not in this checkout."""
    if variable == _GITLAB:
        return _there(folder, base)
    # A shallow checkout says by `HEAD^1` that a commit has no parents; the commit itself knows.
    head = git_output(folder, "cat-file", "commit", "HEAD") or ""
    lines = head.partition("\n\n")[0].split("\n")
    parents = [line.removeprefix("parent ") for line in lines if line.startswith("parent ")]
    if len(parents) > 1:
        # What GitHub checks out for a pull request: its branch merged into the base.
        return _there(folder, parents[0])
    branch = _there(folder, f"refs/remotes/origin/{base}")
    # Of a shallow checkout it is not known where the two part.
    return (git_output(folder, "merge-base", branch, "HEAD") or branch).strip()


def _there(folder: Path, revision: str) -> str:
    found = git_output(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    return (found or "").strip()


def accepted_by(base: Baseline, now: Baseline, suite: str) -> str:
    """What the change of a baseline accepts of a suite, as a clause; "" where it changes nothing
    but reasonings.
    """
    before = {case: line for case, line in base.cases.items() if suite_of(case) == suite}
    lines = {case: line for case, line in now.cases.items() if suite_of(case) == suite}
    added = [line for case, line in lines.items() if case not in before]
    results = [*lines.values()]
    comparison = compare(Baseline(before), results, Verdicts.of(results), Scope.of(lines))
    other_cases = len(lines) - len(added) - len(comparison.everything)
    repeats = comparison.everything.kinds("before", "answers").names
    is_changed = any(earlier != present for earlier, present in repeats)
    gone = len(before.keys() - lines.keys())
    if not (added or gone or other_cases or is_changed):
        return ""
    kinds: Counter[str] = Counter()
    for case_id in comparison.regressions:
        line = lines[case_id]
        if line.case_class is None or line.spec.derived:
            kinds["newly wrong"] += 1
        elif line.is_passed_over:
            kinds["newly called n/a"] += 1
        else:
            kinds[line.case_class.newly] += 1
    losses = [f"{number:,} {kind}" for kind, number in sorted(kinds.items())]
    parts = [f"it accepts {' and '.join(losses) or 'no loss'}"]
    if added:
        wrong = sum(line.outcome == "disagree" for line in added)
        parts.append(f"adds {counted(len(added), 'case')} ({wrong:,} wrong)")
    if gone:
        parts.append(f"drops {counted(gone, 'case')}")
    if other_cases:
        parts.append(f"has {counted(other_cases, 'case')} with another text or label")
    return ", ".join(parts)
