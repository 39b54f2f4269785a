"""Results of earlier sessions that still hold: what a run of a selection leaves as it is (rules H1,
H2).
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_jrh.artifacts.records import case_digest, from_record, reworded
from pytest_jrh.artifacts.stored import RESULTS_NAME, read_results
from pytest_jrh.errors import InputError, NoVerdictCase
from pytest_jrh.models import JUDGED, MADE, CaseResult, CaseSpec
from pytest_jrh.pipeline.deriving import Derivation, changed
from pytest_jrh.probes import PROBES
from pytest_jrh.suite.ids import CASES_FILE
from pytest_jrh.text import counted

if TYPE_CHECKING:
    from pytest_jrh.artifacts.spools import RecordEntry, RecordIndex
    from pytest_jrh.suite.suite import Suite


@dataclass(frozen=True, slots=True)
class SuiteCases:
    """All cases of a suite as it is now, by id in its order, and by judge what says which one it
    is.

    `runs` are the ids and epochs of all runs of its log, sampled or not; None where that is not
    known, as in a frozen suite or one whose log another one stands in for.
    """

    specs: Mapping[str, CaseSpec]
    fingerprints: Mapping[str | None, str]
    runs: frozenset[tuple[str, int]] | None = None


@dataclass(frozen=True, slots=True)
class Earlier:
    """The results that are kept, by case id, and sentences about those that are not."""

    results: Mapping[str, CaseResult] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def earlier_results(
    suite: Suite,
    cases: SuiteCases,
    ran: Mapping[str, CaseResult],
    record_of: Callable[[CaseSpec], Mapping[str, Any] | None],
) -> Earlier:
    """Pick the results of the file that this session has none of, and that are of the cases and
    judges of today.

    `record_of` reads the made case of a spec. Those of another version of a case, of another judge,
    or of a case that is no longer in the suite are left out, with a note where somebody may miss
    them.
    """
    path = suite.output.dir / RESULTS_NAME
    if all(case in ran for case in cases.specs) or not path.exists():
        return Earlier()
    try:
        found = read_results(path)
    except InputError as error:
        aside = path.with_name(f"{path.name}.unreadable")
        path.replace(aside)
        return Earlier(
            notes=(
                "The results of earlier sessions cannot be used; they were moved to "
                f"{aside.name}.\n{error}",
            )
        )
    kept: dict[str, CaseResult] = {}
    left: Counter[str] = Counter()
    for case, stored in found.items():
        spec = cases.specs.get(case)
        own = stored.result.suite == suite.name and stored.config in ("", suite.key)
        if spec is None or case in ran or not own:
            continue
        if reason := _outdated(suite, cases, spec, stored.result, record_of):
            left[reason] += 1
        else:
            kept[case] = stored.result
    notes = (
        f"{counted(number, 'result')} of earlier sessions left out of {path.name}: {reason}."
        for reason, number in left.items()
    )
    return Earlier(kept, tuple(notes))


def without_gone(suite: Suite, cases: SuiteCases, index: RecordIndex) -> RecordIndex:
    """The records without those of the suite's cases that can no longer exist: another run, rubric
    or score.
    """
    if cases.runs is None:
        return index
    scales: dict[str, list[int | None]] = {
        rubric.id: [*(level.score for level in rubric.score_levels)] or [None]
        for rubric in suite.rubrics
    }

    def gone(entry: RecordEntry) -> bool:
        if entry.suite != suite.name:
            return False
        known = entry.rubric in suite.untargeted or entry.target_score in scales.get(
            entry.rubric, ()
        )
        return not known or (entry.run_id, entry.epoch) not in (cases.runs or ())

    return replace(
        index, entries={case: entry for case, entry in index.entries.items() if not gone(entry)}
    )


def _outdated(
    suite: Suite,
    cases: SuiteCases,
    spec: CaseSpec,
    result: CaseResult,
    record_of: Callable[[CaseSpec], Mapping[str, Any] | None],
) -> str:
    """Say why a result is not of the case and judge of today.

    Nothing where it is, or where there is no way to tell.
    """
    if result.judge_fingerprint and result.judge_fingerprint != cases.fingerprints.get(spec.judge):
        return "the judge has changed (model, prompt or parameters)"
    if result.outcome in JUDGED and (len(result.scores) or 1) != suite.repeats_of(spec.judge):
        return "repeats has changed"
    if result.outcome not in MADE:
        return ""
    evaluated = next(test.evaluate for test in suite.tests if test.name == spec.test)
    if evaluated != (result.outcome in JUDGED):
        return "tests_to_evaluate has changed"
    if spec.variant:
        return _other_base(suite, spec, result, record_of(spec.base_case))
    return _other_case(suite, spec, result, record_of(spec))


def _other_base(
    suite: Suite, spec: CaseSpec, result: CaseResult, record: Mapping[str, Any] | None
) -> str:
    """Say whether a probe makes another case now of the one that it changes (rule S1)."""
    if record is None:
        return f"the case that is changed is not in {CASES_FILE}"
    if PROBES[spec.test].asks:
        return "what models make of a case for a probe is in no file"
    rubric = next(rubric for rubric in suite.rubrics if rubric.id == spec.rubric_id)
    made = set()
    try:
        base = from_record(record, judge=spec.judge, rubric=rubric)
    except InputError:
        return "the case cannot be used"
    derivation = Derivation.of(base, spec, suite.probes[spec.test])
    # Whether the judge reads text makes no other case: it decides whether there is one.
    for reads_text in (True, False):
        with contextlib.suppress(NoVerdictCase):
            derived = derivation.made(reads_text=reads_text)
            made.add(case_digest(changed(base, spec, derived)))
    return "" if result.case_digest in made else "the case has changed"


def _other_case(
    suite: Suite, spec: CaseSpec, result: CaseResult, record: Mapping[str, Any] | None
) -> str:
    if record is None:
        return f"the case is not in {CASES_FILE}"
    rubric = next(rubric for rubric in suite.rubrics if rubric.id == spec.rubric_id)
    try:
        case = from_record(record, judge=spec.judge, rubric=rubric)
    except InputError:
        return "the case cannot be used"
    # A frozen file keeps the case as it was made, and the verdict is about the case as it was
    # edited in review.
    edited = result.human_reviewed == "edited" and suite.replay.frozen is not None
    if suite.replay.frozen is not None and case.rubric is not rubric:
        taken = reworded(case, rubric)
        same = taken is not None and (edited or case_digest(taken) == result.case_digest)
    else:
        same = case.rubric is rubric and (edited or case_digest(case) == result.case_digest)
    return "" if same else "the case has changed (rubric, transcript or label)"
