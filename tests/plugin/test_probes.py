"""Probes through pytest: derived items, asked once, and counted apart."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pytest_jrh.__main__ import main
from tests.plugin.probed import PROBE, LayoutReader, write_probed
from tests.plugin.recorded import run_pytest
from tests.plugin.test_review_opening import address, press_finish
from tests.plugin.test_stopping import PATIENCE, read_until, running
from tests.support.model_server import ModelServer
from tests.support.results import results_in
from tests.support.reviews import decide
from tests.support.suites import SuiteFiles

ALL = "--jrh-record-mode=all"
NEW = "--jrh-record-mode=new_episodes"
INJECTION = "prompt_injection"
MADE = "inputs/suites/probed"


@dataclass(frozen=True, slots=True)
class Probed:
    """Three suites in one folder, recorded in one session: `probed` (binary, three runs, each a
    violation and a positive, the judge moved by the layout of run 2), `scale` (ordinal, one run),
    and `panel` (two judges, judged three times).

    `plan` and `output` are what the plan and the recording session printed, `asked` how many calls
    of the judge it made, and `calls` how many calls in all.
    """

    probed: SuiteFiles
    scale: SuiteFiles
    panel: SuiteFiles
    plan: str = ""
    output: str = ""
    asked: int = 0
    calls: int = 0

    @property
    def options(self) -> list[str]:
        return [suite.option for suite in (self.probed, self.scale, self.panel)]

    def copied(self, folder: Path) -> Probed:
        shutil.copytree(self.probed.folder, folder, dirs_exist_ok=True)
        moved = [
            replace(suite, folder=folder, config=folder / suite.config.relative_to(suite.folder))
            for suite in (self.probed, self.scale, self.panel)
        ]
        return replace(self, probed=moved[0], scale=moved[1], panel=moved[2])


VARIANTS = ["fake_verdict-tool_result", "threat-tool_result"]


@pytest.fixture(scope="session")
def probed_once(tmp_path_factory: pytest.TempPathFactory) -> Probed:
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
    )
    with ModelServer(LayoutReader(moved=(1002,))) as server:
        plan = run_pytest(folder, *made.options, NEW, "--jrh-plan", env=server.environment)
        done = run_pytest(folder, *made.options, NEW, env=server.environment)
        made = replace(
            made,
            plan=plan.stdout,
            output=done.stdout,
            asked=server.count("judge"),
            calls=server.count(),
        )
    shutil.rmtree(folder / "outputs")
    shutil.rmtree(folder / ".pytest_cache")
    return made


@pytest.fixture
def probed(probed_once: Probed, pytester: pytest.Pytester) -> Probed:
    return probed_once.copied(pytester.path)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def report(suite: SuiteFiles) -> dict[str, Any]:
    [path] = suite.results.glob("*_report.json")
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return data


def outcomes(suite: SuiteFiles) -> dict[str, str]:
    return {result.case_id: result.outcome for result in results_in(suite.results)}


def test_the_plan_is_what_is_made(probed: Probed) -> None:
    # 6 cases, 6 and 12 of probes; 3 and 3; two judges on 1 and 1, three times each.
    assert probed.asked == 24 + 6 + 12
    rows = re.findall(r"[( ](\d+)\s+judge[,)]", probed.plan)
    assert sum(map(int, rows)) == probed.asked
    assert f"{probed.calls} calls" in probed.output


def test_a_replay_asks_nothing_and_all_figures_are_apart(
    pytester: pytest.Pytester, probed: Probed
) -> None:
    done = pytester.runpytest(*probed.options, "-v", "--junitxml=j.xml")
    done.assert_outcomes(passed=24 + 6 + 4 - 1, failed=1)
    done.stdout.fnmatch_lines(
        [
            "Probes: suite probed",
            "format_invariance * 6 * 1 *16.7%*1 satisfied*",
            "prompt_injection *12 * 0 *0.0%*",
            "Probes: suite panel, judge kind one",
            "0 calls*",
        ]
    )
    data = report(probed.probed)
    assert data["statistics"]["overall"]["n"] == 6
    assert data["all_metrics"].keys() == {"agent_perturbation", "agent_positives"}
    results = results_in(probed.probed.results)
    turned = [each for each in results if each.outcome == "disagree"]
    assert [(each.spec.base, each.spec.variant, each.base_scores) for each in turned] == [
        ("agent_perturbation", "json_layout", (1,))
    ]
    made = lines(pytester.path / MADE / "agent_perturbations.jsonl")
    assert {record["test"] for record in made} == {"agent_perturbation", "agent_positives"}
    [case] = [
        each
        for each in ElementTree.parse("j.xml").iter("testcase")
        if each.get("name") == "run-2[e1-json_layout]" and list(each.iter("failure"))
    ]
    said = {each.get("name"): each.get("value") for each in case.iter("property")}
    assert (said["variant"], said["base"], said["base_score"]) == (
        "json_layout",
        "agent_perturbation",
        "1",
    )


def test_a_base_case_without_a_right_verdict_passes_on_why(
    pytester: pytest.Pytester, probed: Probed
) -> None:
    cassettes = probed.probed.cassettes
    (cassettes / "agent_perturbation" / "rubric-1" / "run-1.e1.judge-default.yaml").unlink()
    wrong = cassettes / "agent_positives" / "rubric-1" / "run-1.e1.judge-default.yaml"
    text = wrong.read_text("utf-8")
    assert '\\"score\\": 0' in text
    wrong.write_text(text.replace('\\"score\\": 0', '\\"score\\": 1'), encoding="utf-8")
    done = pytester.runpytest(probed.probed.option, "-k", "run-1 and json_layout", "-rs")
    done.assert_outcomes(errors=1, skipped=1, deselected=22)
    done.stdout.fnmatch_lines(
        [
            "No verdict (unrecorded): *",
            "*the judge is wrong on the unchanged case: 1 for 0",
        ]
    )


def test_a_baseline_and_a_gate_know_the_cases(pytester: pytest.Pytester, probed: Probed) -> None:
    gate = [probed.probed.option, "--jrh-baseline=base.json"]
    pytester.runpytest(*gate, "--jrh-update-baseline")
    assert "run-2[e1-json_layout]" in (pytester.path / "base.json").read_text("utf-8")
    config = probed.probed.config
    text = config.read_text("utf-8")
    config.write_text(f"{text}gate:\n  proof: true\n  probes: {{{PROBE}: {{}}}}\n", "utf-8")
    done = pytester.runpytest(*gate)
    done.assert_outcomes(passed=23, xfailed=1)
    assert done.ret == 0
    told = (
        f"UNCLEAR  {PROBE} turns 1 of 6 verdicts; max_rate 0% allows 0, and other runs are not "
        "proven to keep to it"
    )
    assert told.replace("  ", " ") in " ".join(done.stdout.str().split())


def test_results_of_earlier_sessions_are_kept_and_merge(
    pytester: pytest.Pytester, probed: Probed, capsys: pytest.CaptureFixture[str]
) -> None:
    pytester.runpytest(probed.probed.option)
    whole = outcomes(probed.probed)
    shutil.copytree("outputs", "shard")
    pytester.runpytest(probed.probed.option, "-k", "not json_layout")
    assert outcomes(probed.probed) == whole
    shutil.rmtree("outputs")
    capsys.readouterr()
    assert main(["merge", "-v", probed.probed.option, "shard"]) == 1
    assert "format_invariance" in capsys.readouterr().out
    assert outcomes(probed.probed) == whole


def test_what_people_decide_about_a_base_case_holds_for_its_probes(
    pytester: pytest.Pytester, probed: Probed
) -> None:
    pytester.runpytest(probed.panel.option)
    decide(probed.panel.negatives, "run-1", "rejected", note="contradicts the tool")
    done = pytester.runpytest(probed.panel.option, "-rs")
    done.assert_outcomes(skipped=4)
    done.stdout.fnmatch_lines(
        ["*rejected in review: contradicts the tool", "*Reviewed by people: 1 rejected."]
    )


def test_a_base_verdict_is_asked_once_where_all_is_recorded_anew(
    pytester: pytest.Pytester, server: ModelServer
) -> None:
    server.answer = LayoutReader(moved=(1002,))
    suite = write_probed(pytester.path)
    for calls in (1, 2):
        done = run_pytest(pytester.path, suite.option, ALL, "-n", "2", env=server.environment)
        assert "1 failed, 5 passed" in done.stdout
        assert server.count("judge") == 6 * calls
        assert server.count("editor") == 3 * calls


def test_a_probe_alone_has_its_base_cases_made_and_judged_once(
    pytester: pytest.Pytester, server: ModelServer
) -> None:
    suite = write_probed(
        pytester.path, tests=("agent_perturbation", PROBE, INJECTION), evaluation={"repeats": 3}
    )
    only = (suite.option, "-k", "e1-")
    plan = run_pytest(pytester.path, *only, NEW, "--jrh-plan", env=server.environment).stdout
    done = run_pytest(pytester.path, *only, NEW, env=server.environment)
    assert "15 passed" in done.stdout
    assert server.count("judge") == 3 * (15 + 3)
    assert re.search(r"[( ]54\s+judge[,)]", plan)
    # What the base cases took is counted too.
    assert f"{server.count()} calls" in done.stdout


def test_the_base_cases_alone_are_reviewed_and_no_probe_holds_them_up(tmp_path: Path) -> None:
    suite = write_probed(
        tmp_path, tests=(PROBE, "agent_perturbation"), evaluation={"max_workers": 1}
    )
    with (
        ModelServer(LayoutReader()) as server,
        running(suite, server, "--jrh-review") as process,
    ):
        url = address(read_until(process, "jrh: review the cases at"))
        # With one place for work, and the probe's cases before all others.
        server.wait_for(3, "verifier", answered=True, timeout=PATIENCE)
        assert server.count("judge") == 0
        press_finish(url)
        rest, _ = process.communicate(timeout=PATIENCE)
        assert server.count("judge") == 6
    assert "Reviewed by people: 3 undecided.\n" in rest
    assert "3 failed, 3 passed" in rest
