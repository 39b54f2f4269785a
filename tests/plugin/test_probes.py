"""Probes through pytest: derived items, asked once, and counted apart."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.__main__ import main
from tests.plugin.probed import PROBE, read_layout, write_probed
from tests.plugin.recorded import run_pytest
from tests.support.ledgers import results_in
from tests.support.model_server import ModelServer
from tests.support.reviews import decide
from tests.support.suites import SuiteFiles

ANEW = "--jrh-record-mode=all"
INJECTION = "prompt_injection"
MADE = "inputs/suites/probed"


@dataclass(frozen=True, slots=True)
class Probed:
    """Four suites in one folder, recorded in one session: `probed` (binary, three runs, each a
    violation and a positive, the judge moved by the layout of run 2), `scale` (ordinal, one run),
    `panel` (two judges, judged three times), and `alone`, of whose case the probe alone is
    selected, judged three times.

    `plan` and `output` are what the plan and the recording session printed, `calls` how many calls
    it made, and `edited` and `asked` how many of them were the editor's and the judge's.
    """

    probed: SuiteFiles
    scale: SuiteFiles
    panel: SuiteFiles
    alone: SuiteFiles
    plan: str = ""
    output: str = ""
    edited: int = 0
    asked: int = 0
    calls: int = 0

    @property
    def options(self) -> list[str]:
        return [suite.option for suite in (self.probed, self.scale, self.panel)]

    def copied(self, folder: Path) -> Probed:
        shutil.copytree(self.probed.folder, folder, dirs_exist_ok=True)
        probed, panel = (
            replace(suite, folder=folder, config=folder / suite.config.relative_to(suite.folder))
            for suite in (self.probed, self.panel)
        )
        return replace(self, probed=probed, panel=panel)


VARIANTS = ["fake_verdict-tool_result", "threat-tool_result"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Probed:
    folder = tmp_path_factory.mktemp("probed")
    both = ("agent_perturbation", "agent_positives")
    injection = {INJECTION: {"variants": VARIANTS}}
    judges = [
        {"name": name, "model": f"openai/{name}", "template": "agent_judge"}
        for name in ("strict", "kind one")
    ]
    made = Probed(
        write_probed(
            folder,
            tests=(*both, PROBE, INJECTION),
            probes=injection,
            overrides={"test_agent_perturbation_config": {"output": {"dir": MADE}}},
        ),
        write_probed(folder, number=1, tests=(both[0], PROBE), mode="ordinal", name="scale"),
        write_probed(
            folder,
            number=1,
            tests=(PROBE, both[0]),
            evaluation={"judges": judges, "repeats": 3},
            name="panel",
        ),
        write_probed(
            folder, number=1, tests=(both[0], PROBE), evaluation={"repeats": 3}, name="alone"
        ),
    )
    recording = (*made.options, made.alone.option, "-k", "not alone or json_layout", ANEW)
    with ModelServer(read_layout) as server:
        plan = run_pytest(folder, *recording, "--jrh-plan", env=server.environment)
        done = run_pytest(folder, *recording, "-n", "2", env=server.environment)
        made = replace(
            made,
            plan=plan.stdout,
            output=done.stdout,
            edited=server.count("editor"),
            asked=server.count("judge"),
            calls=server.count(),
        )
    shutil.rmtree(folder / "outputs")
    shutil.rmtree(folder / ".pytest_cache")
    return made


@pytest.fixture(scope="module")
def replayed(recorded: Probed) -> Probed:
    """The suites after a replay."""
    done = run_pytest(recorded.probed.folder, *recorded.options, "-v")
    assert "1 failed, 33 passed" in done.stdout
    assert "0 calls" in done.stdout
    return recorded


@pytest.fixture
def probed(replayed: Probed, pytester: pytest.Pytester) -> Probed:
    return replayed.copied(pytester.path)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def outcomes(suite: SuiteFiles) -> dict[str, str]:
    return {result.case_id: result.outcome for result in results_in(suite.results)}


def test_base_verdicts_are_asked_once_and_all_calls_are_foreseen_and_counted(
    recorded: Probed,
) -> None:
    # 6 cases, 6 and 12 of probes; 3 and 3; two judges on 1 and 1, three times each; and of a case
    # that is not selected the base verdict is asked for its probe.
    assert recorded.asked == 24 + 6 + 12 + 6
    assert recorded.edited == 3 + 3 + 1 + 1
    rows = re.findall(r"[( ](\d+)\s+judge[,)]", recorded.plan)
    assert sum(map(int, rows)) == recorded.asked
    assert f"{recorded.calls} calls" in recorded.output


def test_all_figures_of_probes_are_apart(replayed: Probed) -> None:
    [path] = replayed.probed.results.glob("*_report.json")
    data = json.loads(path.read_text("utf-8"))
    assert data["statistics"]["overall"]["n"] == 6
    assert data["all_metrics"].keys() == {"agent_perturbation", "agent_positives"}
    results = results_in(replayed.probed.results)
    turned = [each for each in results if each.outcome == "disagree"]
    assert [(each.spec.base, each.spec.variant, each.base_scores) for each in turned] == [
        ("agent_perturbation", "json_layout", (1,))
    ]
    made = lines(replayed.probed.folder / MADE / "agent_perturbations.jsonl")
    assert {record["test"] for record in made} == {"agent_perturbation", "agent_positives"}


def test_a_base_case_without_a_right_verdict_passes_on_why_and_other_results_are_kept(
    pytester: pytest.Pytester, probed: Probed
) -> None:
    before = outcomes(probed.probed)
    decide(probed.panel.negatives, "run-1", "rejected", note="contradicts the tool")
    cassettes = probed.probed.cassettes
    (cassettes / "agent_perturbation" / "rubric-1" / "run-1.e1.judge-default.yaml").unlink()
    wrong = cassettes / "agent_positives" / "rubric-1" / "run-1.e1.judge-default.yaml"
    text = wrong.read_text("utf-8")
    assert '\\"score\\": 0' in text
    wrong.write_text(text.replace('\\"score\\": 0', '\\"score\\": 1'), encoding="utf-8")
    both = (probed.probed.option, probed.panel.option)
    done = pytester.runpytest(*both, "-k", "run-1 and json_layout", "-rs")
    done.assert_outcomes(errors=1, skipped=3, deselected=24)
    done.stdout.fnmatch_lines_random(
        [
            "No verdict (unrecorded): *",
            "*the judge is wrong on the unchanged case: 1 for 0",
            "*rejected in review: contradicts the tool",
        ]
    )
    after = outcomes(probed.probed)
    changed = {case_id for case_id in before if after[case_id] != before[case_id]}
    assert after.keys() == before.keys()
    assert len(changed) == 2


def test_a_shard_merges_and_its_baseline_and_a_gate_know_the_cases(
    pytester: pytest.Pytester, probed: Probed
) -> None:
    whole = outcomes(probed.probed)
    shutil.move("outputs", "shard")
    gate = [probed.probed.option, "--jrh-baseline=base.json"]
    assert main(["merge", *gate, "--jrh-update-baseline", "shard"]) == 0
    assert outcomes(probed.probed) == whole
    assert "run-2[e1-json_layout]" in (pytester.path / "base.json").read_text("utf-8")
    config = probed.probed.config
    text = config.read_text("utf-8")
    config.write_text(f"{text}gate:\n  proof: true\n  probes: {{{PROBE}: {{}}}}\n", "utf-8")
    done = pytester.runpytest(*gate)
    done.assert_outcomes(passed=23, xfailed=1, failed=1)
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    told = (
        f"UNCLEAR  {PROBE} turns 1 of 6 verdicts; max_rate 0% allows 0, and other cases are not "
        "proven to keep to it"
    )
    assert told.replace("  ", " ") in " ".join(done.stdout.str().split())
