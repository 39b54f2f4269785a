"""The tests of a suite: their scores, their folders, and the file of a frozen suite (rules A7, A8,
B5, G6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.documents.problems import KeyPath, listed, shown
from pytest_jrh.kinds import KINDS, TESTS
from pytest_jrh.suite.cases import CASES_FILE
from pytest_jrh.suite.fitting import AGENT
from pytest_jrh.suite.suite import SuiteTest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_jrh.documents.findings import Findings
    from pytest_jrh.models import Mode, Rubric, TestName
    from pytest_jrh.suite.places import Places
    from pytest_jrh.suite.schema import Config

_EVALUATION: KeyPath = ("admin", "evaluation_config")


def resolve_tests(
    config: Config,
    mode: Mode | None,
    rubrics: Sequence[Rubric],
    findings: Findings,
    places: Places,
    own: str | None,
) -> tuple[SuiteTest, ...]:
    """Return the tests with their target scores and output folders (rules A7, A8, B5).

    See `output_dir`.
    """
    to_run = tuple(dict.fromkeys(config.admin.perturbation_config.tests_to_run))
    to_evaluate = config.admin.evaluation_config.tests_to_evaluate
    if not to_run:
        key: KeyPath = ("admin", "perturbation_config", "tests_to_run")
        findings.missing(key, f"no test is to be run; must be a list of {' and '.join(TESTS)}")
    for index, name in enumerate(to_evaluate):
        if name not in to_run and not findings.explained(
            ("admin", "perturbation_config", "tests_to_run")
        ):
            message = (
                f"got {shown(name)}, which is not in tests_to_run ({listed(to_run) or 'empty'})"
            )
            findings.add(
                (*_EVALUATION, "tests_to_evaluate", index), message, f"add {name} to tests_to_run"
            )
    if mode == "ordinal":
        _check_targets(config, rubrics, findings)
    return tuple(
        SuiteTest(
            name=name,
            objective=KINDS[name].objective(config.test_agent_perturbation_config.objective),
            output_dir=places.find_or_new(output_dir(config, name, own)),
            evaluate=not to_evaluate or name in to_evaluate,
            targets={rubric.id: _targets(config, mode, name, rubric) for rubric in rubrics},
        )
        for name in to_run
    )


def output_dir(config: Config, test: TestName, own: str | None) -> str:
    """Return the folder of a test's cases as the config gives it, or its default (rule A7).

    RAND's defaults hold in `inputs/configs`, where no two configs have one name; elsewhere it is
    the config's `own`.
    """
    given = config.test_agent_perturbation_config.output.dir
    if given is not None or own is not None:
        return given or own or ""
    return KINDS[test].folder(str(config.admin.module_name))


def _targets(
    config: Config, mode: Mode | None, test: TestName, rubric: Rubric
) -> tuple[int | None, ...]:
    if mode != "ordinal" or not rubric.score_levels:
        return (None,)
    scores = tuple(level.score for level in rubric.score_levels)
    return KINDS[test].targets(scores, config.test_agent_perturbation_config.score_targets)


def _check_targets(config: Config, rubrics: Sequence[Rubric], findings: Findings) -> None:
    wanted = config.test_agent_perturbation_config.score_targets
    for rubric in rubrics:
        scores = [level.score for level in rubric.score_levels]
        if scores and (outside := [score for score in wanted if score not in scores]):
            message = (
                f"got {listed([str(score) for score in outside], 8)}; the scores of the rubric "
                f"{shown(rubric.id)} go from {scores[0]} to {scores[-1]}"
            )
            findings.add((AGENT, "score_targets"), message)


def resolve_frozen(
    config: Config, findings: Findings, places: Places, own: str | None, *, forced: bool
) -> tuple[bool, Path | None]:
    """Say whether the suite is frozen, and the JSONL that its cases come from (rule G6)."""
    frozen = config.replay.frozen or forced
    if not frozen:
        return False, None
    key: KeyPath = ("replay", "frozen")
    if isinstance(frozen, str):
        return True, places.require(frozen, findings, key, what="the frozen suite")
    folders = list(
        dict.fromkeys(
            output_dir(config, test, own) for test in config.admin.perturbation_config.tests_to_run
        )
    )
    if len(folders) > 1:
        message = (
            f"the tests keep their cases in different folders ({listed(folders)}), so the "
            "frozen file is not one"
        )
        findings.add(key, message, f"set {AGENT}.output.dir, or give the path of the file")
        return True, None
    if not folders:
        return True, None
    return True, places.require(
        f"{folders[0]}/{CASES_FILE}", findings, key, what="the frozen suite"
    )
