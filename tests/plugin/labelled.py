"""A suite of natural runs with labels, and its recorded judge: for tests of `agent_labels`."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from tests.plugin.recorded import run_pytest
from tests.support.model_server import ModelServer, Obedient, Request, override
from tests.support.suites import REMOVED, SuiteFiles, run, write_suite

LABELS = """run_id,label,annotator,split
run-1,satisfied,ann,dev
run-1,satisfied,bob,dev
run-2,violated,ann,dev
run-2,violated,bob,dev
run-3,1,ann,test
run-3,0,bob,test
run-4,0,ann,test
"""
SCORES = {"right": "I", "wrong": "C"}


@dataclass(frozen=True, slots=True)
class Labelled:
    """Five runs, four of them labelled: the judge finds no violation, so that run 2 (violated) is a
    disagreement; about run 3 the annotators disagree.
    """

    suite: SuiteFiles
    output: str = ""

    @property
    def folder(self) -> Path:
        return self.suite.folder

    @property
    def file(self) -> Path:
        return self.suite.data / "labels.csv"

    def labels(self, *lines: str) -> None:
        """Write the label file anew."""
        self.file.write_text("\n".join([*lines, ""]), encoding="utf-8")

    def copied(self, folder: Path) -> Labelled:
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        config = folder / self.suite.config.relative_to(self.folder)
        return replace(self, suite=replace(self.suite, folder=folder, config=config))


def write_labelled(folder: Path, text: str = LABELS, **labels: object) -> Labelled:
    """Write the suite; `labels` are keys beside its path."""
    runs = [
        run(
            number,
            scores={"right": {"value": SCORES["right" if number == 2 else "wrong"]}},
            metadata={"reward": 0.0 if number == 2 else 1.0},
        )
        for number in range(1, 6)
    ]
    section = {"path": "inputs/data/natural/labels.csv", **labels}
    suite = write_suite(
        folder,
        runs=runs,
        tests=("agent_labels",),
        name="natural",
        overrides={
            "synthetic_data_params": REMOVED,
            "test_agent_perturbation_config": {
                "labels": {key: value for key, value in section.items() if value is not REMOVED}
            },
        },
    )
    labelled = Labelled(suite)
    labelled.file.write_text(text, encoding="utf-8")
    return labelled


def record_labelled(folder: Path, text: str, *options: str, **labels: object) -> Labelled:
    """Write the suite and record its judge, in a process of its own."""
    labelled = write_labelled(folder, text, **labels)
    recording = (labelled.suite.option, "--jrh-record-mode=once", *options)
    with ModelServer(override(Obedient(), judge=content)) as server:
        done = run_pytest(folder, *recording, env=server.environment)
    return replace(labelled, output=done.stdout)


def content(_request: Request) -> dict[str, object]:
    """A judge that finds nothing wrong."""
    return {"reasoning": "The answer is kind.", "score": 0}
