"""The probes of a suite as its config has them, checked (rule S1)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_jrh.documents.problems import KeyPath, dotted, listed, shown
from pytest_jrh.documents.reading import read_document
from pytest_jrh.errors import InputError, Problem
from pytest_jrh.kinds import BASES, KINDS
from pytest_jrh.probes import PROBES
from pytest_jrh.probes.probe import PackMistake, ProbeSettings
from pytest_jrh.stages import VERIFIER
from pytest_jrh.suite.probing.drawing import chosen
from pytest_jrh.suite.probing.sections import ProbeSection, of_each

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pytest_jrh.documents.findings import Findings
    from pytest_jrh.models import Mode, Objective, Rubric, StageName, TestName
    from pytest_jrh.probes.probe import Probe
    from pytest_jrh.suite.places import Places
    from pytest_jrh.suite.schema import Config

_TESTS: KeyPath = ("admin", "perturbation_config", "tests_to_run")
_PROBES: KeyPath = ("admin", "perturbation_config", "probes")


def resolve_probes(
    config: Config,
    rubrics: Sequence[Rubric],
    mode: Mode | None,
    stages: Collection[StageName],
    findings: Findings,
    places: Places,
) -> dict[str, ProbeSettings]:
    """Return the settings of each probe that the suite runs, by name.

    A probe without possible cases is a mistake: other tests, rubrics, verdicts, or a stage that it
    asks are missing.
    """
    to_run = list(dict.fromkeys(config.admin.perturbation_config.tests_to_run))
    judged = config.admin.evaluation_config.tests_to_evaluate
    objective = config.test_agent_perturbation_config.objective
    given = of_each(config.admin.perturbation_config.probes)
    found = {}
    for index, name in enumerate(to_run):
        if not KINDS[name].derived:
            continue
        changeable = [each for each in BASES if _can_change(PROBES[name], each, objective)]
        bases = [each for each in to_run if each in changeable]
        if not bases:
            message = (
                f"{name} changes the cases of {_CHANGES[PROBES[name].changes]}, and there is none"
            )
            findings.add((*_TESTS, index), message, f"add {' or '.join(changeable)}")
        elif mode == "ordinal" and PROBES[name].binary_only:
            message = f"{name} is for binary suites: on a scale it has no case"
            findings.add((*_TESTS, index), message, f"remove {name}")
        elif VERIFIER.name in PROBES[name].calls and stages and VERIFIER.name not in stages:
            message = f"{name} has its labels from the verifier, which is off"
            findings.add((*_TESTS, index), message, f"turn the verifier on, or remove {name}")
        elif judged and name not in judged:
            message = f"{name} is about verdicts, and tests_to_evaluate does not have it"
            findings.add((*_TESTS, index), message, f"add {name} to tests_to_evaluate")
        elif rubrics and all(name in rubric.skips for rubric in rubrics):
            message = f"{name} is skipped by every rubric of the suite (probes.skip)"
            findings.add((*_TESTS, index), message, "remove it here, or the skip of a rubric")
        section = given.get(name, ProbeSection.model_construct())
        found[name] = _settings(PROBES[name], section, bases, findings, places)
    return found


_CHANGES = {
    "all": "other tests",
    "violated": "tests whose rubrics are violated",
    "edited": "tests that edit runs to violate a rubric",
}


def _can_change(probe: Probe, test: TestName, objective: Objective) -> bool:
    """Whether a probe can have a case that is derived from those of a test."""
    if probe.changes == "all":
        return True
    edited = not KINDS[test].natural
    return KINDS[test].objective(objective) == "fail" and (edited or probe.changes != "edited")


def unused_probes(config: Config, file: str) -> list[str]:
    """Say of sections of probes that do not run."""
    to_run = config.admin.perturbation_config.tests_to_run
    return [
        f"{file}: probes.{name} has no effect: {name} is not in tests_to_run"
        for name in of_each(config.admin.perturbation_config.probes)
        if name not in to_run
    ]


def check_gate_probes(config: Config, tests: Sequence[str], findings: Findings) -> None:
    """Refuse a rule for a probe that does not run: the gate would pass without it."""
    for name in of_each(config.gate.probes):
        if tests and name not in tests:
            message = f"got a rule for {name}, which is not in tests_to_run"
            findings.add(("gate", "probes", name), message, f"add {name} to tests_to_run")


def resolved_probes(
    probes: Mapping[str, ProbeSettings], places: Places
) -> dict[str, dict[str, Any]]:
    """Give the settings as a config has them, for the record."""
    return {
        name: {
            "of": list(settings.of),
            "variants": "all" if settings.whole_grid else list(settings.names) or None,
            "max_cases": settings.max_cases,
            "per_case": settings.per_case,
            "seed": settings.seed,
            "pack": places.name(settings.pack) if settings.pack else None,
        }
        for name, settings in probes.items()
    }


def _settings(
    probe: Probe, section: ProbeSection, bases: list[str], findings: Findings, places: Places
) -> ProbeSettings:
    key: KeyPath = (*_PROBES, probe.name)
    for index, name in enumerate(section.of):
        if name not in bases and bases:
            message = (
                f"got {shown(name)}; the tests that {probe.name} can change are {listed(bases)}"
            )
            findings.add((*key, "of", index), message, f"add {name} to tests_to_run")
    pack, added = None, ()
    if section.pack is not None:
        pack = places.require(section.pack, findings, (*key, "pack"), what="the pack")
    if pack is not None and probe.read_pack is None:
        takers = [each.name for each in PROBES.values() if each.read_pack is not None]
        message = f"{probe.name} takes no pack; those that do are {listed(takers) or 'none'}"
        findings.add((*key, "pack"), message)
    elif pack is not None and probe.read_pack is not None:
        document = None
        try:
            document = read_document(pack, file=places.name(pack))
            if document.problems:
                raise InputError(document.problems)
            added = probe.read_pack(document.data)
        except InputError as error:
            findings.problems.extend(error.problems)
        except PackMistake as mistake:
            assert document is not None
            line = document.line(mistake.place)
            where = dotted(mistake.place) or None
            findings.problems.append(
                Problem(str(mistake), document.file, line, where, mistake.hint or None)
            )
    names = section.variants if isinstance(section.variants, tuple) else ()
    settings = ProbeSettings(
        of=section.of or tuple(bases),
        names=names,
        whole_grid=section.variants == "all",
        max_cases=section.max_cases,
        per_case=section.per_case or 0,
        seed=section.seed,
        pack=pack,
        added=added,
    )
    return _with_number(probe, settings, (*key, "variants"), findings)


def _with_number(
    probe: Probe, settings: ProbeSettings, key: KeyPath, findings: Findings
) -> ProbeSettings:
    """Add how many variants each case gets, and refuse names that no variant has."""
    grid = probe.variants(settings)
    known = {variant.name: None for variant in grid}
    known |= {part: None for variant in grid for part in variant.axes}
    for index, name in enumerate(settings.names):
        if name not in known:
            close = findings.nearest(name, list(known))
            hint = f"{close} is the nearest name" if close else None
            message = f"got {shown(name)}; the variants of {probe.name} are {listed(known, 40)}"
            findings.add((*key, index), message, hint)
    wanted = chosen(probe, settings)
    default = len(wanted) if settings.names else probe.per_case
    number = len(wanted) if settings.whole_grid else settings.per_case or default
    return replace(settings, per_case=min(number, len(wanted)) or 1)
