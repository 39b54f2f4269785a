"""The tests of a suite: their scores, folders and labels, and the file of a frozen suite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.tests import KINDS, TESTS
from pytest_jrh.config.schema import LABEL_SOURCES
from pytest_jrh.config.suite import SuiteTest
from pytest_jrh.core.documents import KeyPath, listed, shown
from pytest_jrh.core.ids import CASES_FILE
from pytest_jrh.core.stages import MAKING
from pytest_jrh.core.text import nearest_hint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.config.places import Places
    from pytest_jrh.config.schema import Config, LabelSection
    from pytest_jrh.core.documents import Findings
    from pytest_jrh.core.model import Mode, Rubric


_LABELS: KeyPath = ("labels",)
_KINDS: KeyPath = ("cases", "kinds")


def resolve_tests(
    config: Config,
    mode: Mode | None,
    rubrics: Sequence[Rubric],
    findings: Findings,
    places: Places,
    folder: str | None,
    module: str,
) -> tuple[SuiteTest, ...]:
    """Return the tests with their target scores and output folders (see `output_dir`)."""
    to_run = tuple(dict.fromkeys(config.cases.kinds))
    to_evaluate = config.rand.judged
    if not to_run:
        findings.add(_KINDS, f"no test is to be run; must be a list of {' and '.join(TESTS)}")
    for index, name in enumerate(to_evaluate):
        if to_run and name not in to_run:
            kinds = findings.name(_KINDS)
            message = f"got {shown(name)}, which is not in {kinds} ({listed(to_run) or 'empty'})"
            findings.add(("rand", "judged", index), message, f"add {name} to {kinds}")
    if mode == "ordinal":
        _check_targets(config, rubrics, findings)
    tests = []
    for name in to_run:
        test = SuiteTest(
            name=name,
            objective=KINDS[name].objective(config.rand.objective),
            output_dir=places.find_or_new(output_dir(config, _maker(name, to_run), folder, module)),
            evaluate=not to_evaluate or name in to_evaluate,
            targets={rubric.id: _targets(config, mode, name, rubric) for rubric in rubrics},
        )
        tests.append(test)
    return tuple(tests)


def stages_needed(config: Config) -> frozenset[str]:
    """The stages that make cases: none for natural runs, of a probe those that it asks."""
    tests = config.cases.kinds
    if not tests or any(KINDS[name].is_made for name in tests):
        return frozenset(stage.name for stage in MAKING)
    stages: set[str] = set()
    for name in tests:
        if name in PROBES:
            stages.update(PROBES[name].calls)
    return frozenset(stages)


def _maker(test: str, tests: Sequence[str]) -> str:
    """The test in whose folder cases go: a probe has none of its own, and keeps no cases."""
    makers = (name for name in tests if not KINDS[name].derived)
    return next(makers, test) if KINDS[test].derived else test


def output_dir(config: Config, test: str, folder: str | None, name: str) -> str:
    """Return the folder of a test's cases; in `inputs/configs` RAND's default, else `folder`."""
    output = config.output.dir or folder
    if output is not None:
        return output
    return KINDS[test].folder(name)


def _targets(
    config: Config, mode: Mode | None, test: str, rubric: Rubric
) -> tuple[int | None, ...]:
    if mode != "ordinal" or not rubric.score_levels:
        return (None,)
    return KINDS[test].targets(rubric.scores, config.cases.scores)


def _check_targets(config: Config, rubrics: Sequence[Rubric], findings: Findings) -> None:
    targets = config.cases.scores
    for rubric in rubrics:
        scores = rubric.scores
        if scores and (outside := [score for score in targets if score not in scores]):
            message = (
                f"got {listed([str(score) for score in outside], 8)}; the scores of the rubric "
                f"{shown(rubric.id)} go from {scores[0]} to {scores[-1]}"
            )
            findings.add(("cases", "scores"), message)


def resolve_frozen(
    config: Config,
    findings: Findings,
    places: Places,
    folder: str | None,
    module: str,
    *,
    forced: bool,
) -> tuple[bool, Path | None]:
    """Say whether the suite is frozen, and the JSONL that its cases come from."""
    frozen = config.cases.frozen or forced
    if not frozen:
        return False, None
    key: KeyPath = ("cases", "frozen")
    if isinstance(frozen, str):
        return True, places.require(frozen, findings, key, role="the frozen suite")
    tests = config.cases.kinds
    makers = [test for test in tests if not KINDS[test].derived]
    folders = list(dict.fromkeys(output_dir(config, test, folder, module) for test in makers))
    if len(folders) > 1:
        message = (
            f"the tests keep their cases in different folders ({listed(folders)}), so the "
            "frozen file is not one"
        )
        findings.add(
            key, message, f"set {findings.name(('output', 'dir'))}, or give the path of the file"
        )
        return True, None
    if not folders:
        return True, None
    return True, places.require(
        f"{folders[0]}/{CASES_FILE}", findings, key, role="the frozen suite"
    )


def resolve_labels(
    config: Config, rubrics: Sequence[Rubric], findings: Findings, places: Places, *, frozen: bool
) -> tuple[LabelSection, ...]:
    """Return the sources of labels; none in a `frozen` suite, whose cases have theirs."""
    tests = config.cases.kinds
    natural = [name for name in tests if KINDS[name].natural]
    sections = config.labels
    if not natural or frozen:
        return ()
    if not sections:
        message = (
            f"is missing, and {listed(natural)} is in {findings.name(_KINDS)}; must be a mapping "
            "with path (a CSV or JSON lines file), scorer or metadata (of the log)"
        )
        findings.add(_LABELS, message)
    return tuple(
        _located(section, (*_LABELS, index), rubrics, findings, places)
        for index, section in enumerate(sections)
    )


def resolve_blind_labels(config: Config, findings: Findings, places: Places) -> Path | None:
    """Return the committed file of blind labels, if there is one."""
    if config.blind.labels is None:
        return None
    key: KeyPath = ("blind", "labels")
    return places.require(config.blind.labels, findings, key, role="the file of blind labels")


def unused_labels(config: Config, findings: Findings, file: str) -> list[str]:
    """Say of labels that no test uses."""
    tests = config.cases.kinds
    if not config.labels or not tests:
        return []
    if any(KINDS[name].natural for name in tests):
        return []
    natural = [kind.name for kind in KINDS.values() if kind.natural]
    return [f"{file}: labels has no effect: {listed(natural)} is not in {findings.name(_KINDS)}"]


def _located(
    section: LabelSection,
    key: KeyPath,
    rubrics: Sequence[Rubric],
    findings: Findings,
    places: Places,
) -> LabelSection:
    """The section with its file found."""
    sources = [name for name in LABEL_SOURCES if getattr(section, name) is not None]
    if len(sources) != 1:
        mistake = f"has {listed(sources)}" if sources else "says not where the labels are"
        findings.add(key, f"{mistake}; must have one of {listed(LABEL_SOURCES)}")
        return section
    ids = [rubric.id for rubric in rubrics]
    if section.rubric_id is None and section.path is None and len(ids) > 1:
        message = f"is missing; must be the rubric that these labels are about: {listed(ids)}"
        findings.add((*key, "rubric_id"), message)
    if section.rubric_id is not None and ids and section.rubric_id not in ids:
        message = f"got {shown(section.rubric_id)}; the suite's rubrics are {listed(ids)}"
        hint = nearest_hint(section.rubric_id, ids, "id")
        findings.add((*key, "rubric_id"), message, hint)
    if section.path is None:
        return section
    path = places.require(section.path, findings, (*key, "path"), role="the label file")
    return section.model_copy(update={"path": str(path)})
