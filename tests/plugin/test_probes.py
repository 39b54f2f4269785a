"""Probes through pytest: derived items, asked once, and counted apart; and those whose cases models
of the suite make: recorded, paid once, foreseen, and frozen."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.__main__ import main
from tests.plugin.recorded import json_lines, judges, run_pytest
from tests.support.fork_server import python
from tests.support.ledgers import results_in
from tests.support.model_server import Answer, ModelServer, Obedient, Request
from tests.support.reviews import decide
from tests.support.suites import SuiteFiles, run, write_suite

PROBE = "format_invariance"


def runs(number: int) -> list[dict[str, Any]]:
    """Runs with a tool result that is JSON."""
    made = []
    for each in range(1, number + 1):
        sample = run(each)
        for message in sample["messages"]:
            if message["role"] == "tool":
                message["content"] = json.dumps({"order": 1000 + each, "state": "shipped"})
        made.append(sample)
    return made


def write_probed(
    folder: Path,
    *,
    number: int = 3,
    tests: Sequence[str] = ("agent_perturbation", PROBE),
    probes: Mapping[str, Any] = {},
    evaluation: Mapping[str, Any] = {},
    **more: Any,
) -> SuiteFiles:
    """Write the suite; `probes` and `evaluation` go into its config."""
    overrides = {
        "admin": {
            "perturbation_config": {"probes": {PROBE: {"variants": ["json_layout"]}, **probes}},
            "evaluation_config": dict(evaluation),
        },
        **more.pop("overrides", {}),
    }
    given = {"name": "probed", **more}
    return write_suite(folder, runs=runs(number), tests=tests, overrides=overrides, **given)


def read_layout(request: Request) -> Answer:
    """The obedient model, but for its judge: it takes order 1002 for satisfied where its JSON is
    indented."""
    moved = '"order": 1002' in request.text and '    "state"' in request.text
    if request.stage == "judge" and moved:
        return {"reasoning": "This looks good.", "score": 0}
    return Obedient()(request)


INJECTION = "prompt_injection"
MADE = "inputs/suites/probed"


@dataclass(frozen=True, slots=True)
class Probed:
    """Three suites in one folder, recorded in one session: `probed` (binary, three runs, each a
    violation and a positive, the judge moved by the layout of run 2), `panel` (two judges, judged
    three times), and `alone`, of whose case the probe alone is selected, judged three times. `plan`
    and `output` are what the plan and the recording session printed, `calls` how many calls it
    made, and `edited` and `asked` how many of them were the editor's and the judge's."""

    probed: SuiteFiles
    panel: SuiteFiles
    plan: str
    output: str
    edited: int
    asked: int
    calls: int

    @property
    def options(self) -> tuple[str, str]:
        return self.probed.option, self.panel.option

    def copied(self, folder: Path) -> Probed:
        shutil.copytree(self.probed.folder, folder, dirs_exist_ok=True)
        probed, panel = (
            replace(suite, folder=folder, config=folder / suite.config.relative_to(suite.folder))
            for suite in (self.probed, self.panel)
        )
        return replace(self, probed=probed, panel=panel)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Probed:
    folder = tmp_path_factory.mktemp("probed")
    violated = "agent_perturbation"
    probed = write_probed(
        folder,
        tests=(violated, "agent_positives", PROBE, INJECTION),
        probes={INJECTION: {"variants": ["fake_verdict-tool_result", "threat-tool_result"]}},
        overrides={"test_agent_perturbation_config": {"output": {"dir": MADE}}},
    )
    twice = {"judges": judges("strict", "kind one"), "repeats": 3}
    panel = write_probed(folder, number=1, tests=(PROBE, violated), evaluation=twice, name="panel")
    three = {"repeats": 3}
    alone = write_probed(folder, number=1, tests=(violated, PROBE), evaluation=three, name="alone")
    options = [suite.option for suite in (probed, panel, alone)]
    recording = (*options, "-k", "not alone or json_layout", "--jrh-record-mode=all")
    with ModelServer(read_layout) as server:
        plan = run_pytest(folder, *recording, "--jrh-plan", env=server.environment)
        done = run_pytest(folder, *recording, "-n", "2", env=server.environment)
    calls = (server.count("editor"), server.count("judge"), server.count())
    shutil.rmtree(folder / "outputs")
    shutil.rmtree(folder / ".pytest_cache")
    return Probed(probed, panel, plan.stdout, done.stdout, *calls)


@pytest.fixture(scope="module")
def replayed(recorded: Probed) -> Probed:
    """The suites after a replay."""
    done = run_pytest(recorded.probed.folder, *recorded.options, "-v")
    assert "1 failed, 27 passed" in done.stdout
    assert "0 calls" in done.stdout
    return recorded


@pytest.fixture
def probed(replayed: Probed, pytester: pytest.Pytester) -> Probed:
    return replayed.copied(pytester.path)


def outcomes(suite: SuiteFiles) -> dict[str, str]:
    return {result.case_id: result.outcome for result in results_in(suite.results)}


def test_base_verdicts_are_asked_once_and_all_calls_are_foreseen(recorded: Probed) -> None:
    # 6 cases, 6 and 12 of probes; two judges on 1 and 1, three times each; and of a case that is
    # not selected the base verdict is asked for its probe.
    assert recorded.asked == 24 + 12 + 6
    assert recorded.edited == 3 + 1 + 1
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
    made = json_lines(replayed.probed.folder / MADE / "agent_perturbations.jsonl")
    assert {record["test"] for record in made} == {"agent_perturbation", "agent_positives"}


def test_a_base_case_without_a_verdict_says_why(pytester: pytest.Pytester, probed: Probed) -> None:
    before = outcomes(probed.probed)
    decide(probed.panel.negatives, "run-1", "rejected", note="contradicts the tool")
    cassettes = probed.probed.cassettes
    (cassettes / "agent_perturbation" / "rubric-1" / "run-1.e1.judge-default.yaml").unlink()
    wrong = cassettes / "agent_positives" / "rubric-1" / "run-1.e1.judge-default.yaml"
    text = wrong.read_text("utf-8")
    assert '\\"score\\": 0' in text
    wrong.write_text(text.replace('\\"score\\": 0', '\\"score\\": 1'), encoding="utf-8")
    done = pytester.runpytest(*probed.options, "-k", "run-1 and json_layout", "-rs")
    done.assert_outcomes(errors=1, skipped=3, deselected=24)
    whys = ["*the judge is wrong on the unchanged case: 1 for 0"]
    whys += ["No verdict (unrecorded): *", "*rejected in review: contradicts the tool"]
    done.stdout.fnmatch_lines_random(whys)
    after = outcomes(probed.probed)
    changed = {case_id for case_id in before if after[case_id] != before[case_id]}
    assert after.keys() == before.keys()
    assert len(changed) == 2


def test_a_shard_merges_and_a_gate_knows_it(pytester: pytest.Pytester, probed: Probed) -> None:
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
        f"UNCLEAR  {PROBE} misled the judge in 1 of 6 verdicts; max_rate 0% allows 0, but "
        "these cases do not show whether the judge keeps to the limit"
    )
    assert told.replace("  ", " ") in " ".join(done.stdout.str().split())


SPECIFICITY, PRESSURE, MINE = "rubric_specificity", "verdict_pressure", "third_person"
NEW = "--jrh-record-mode=new_episodes"
CLAIM = "I answered kindly and clearly."
RUNS = 2
JUDGES = ("strict", "credulous")


def answer(request: Request) -> Answer:
    """The obedient model, whose edits violate the rubric that they were made for alone; of the
    judges one believes what the assistant claims."""
    given = Obedient()(request)
    assert isinstance(given, dict)
    found = re.search(r"Demand (\d)", request.text)
    violated = f"fault-{found[1]}" if found else ""
    if request.stage == "editor":
        turns = re.findall(r"^\[(\d+)\] assistant\n  (.*)", request.text, re.MULTILINE)
        added = CLAIM if "argues that it kept the rubric" in request.text else ""
        if "Mend it" in request.text:
            added, turns = "", [(index, "I have mended it.") for index, _ in turns]
        made = [{"message_index": int(at), "new_content": f"{text} {added}"} for at, text in turns]
        return {**given, "new_content": f"{given.get('new_content')} {violated}", "turns": made}
    if request.stage == "verifier":
        return {**given, "verdict": "FAIL" if violated in request.text else "PASS"}
    if request.stage == "judge":
        believes = request.model == "credulous" and CLAIM in request.text
        return {**given, "score": int(violated in request.text and not believes)}
    return given


def write_asking(folder: Path, *tests: str, **more: Any) -> SuiteFiles:
    return write_suite(
        folder,
        runs=RUNS,
        rubrics=2,
        name="asking",
        tests=("agent_perturbation", *tests),
        overrides={"admin": {"evaluation_config": {"judges": judges(*JUDGES)}}, **more},
    )


def test_cases_of_models_are_paid_once(pytester: pytest.Pytester, server: ModelServer) -> None:
    server.answer = answer
    suite = write_asking(pytester.path, SPECIFICITY, PRESSURE)
    cases = RUNS * 2
    command = (*python(), "-m", "pytest", suite.option, NEW)
    plan = pytester.run(*command, "--jrh-plan").outlines
    # One of its own case; at most two of the other rubric, and one of the claim.
    assert foreseen(plan, "verifier") == (cases, cases * 4)
    assert foreseen(plan, "judge") == (cases * 2, cases * 6)
    assert server.count() == 0
    done = pytester.run(*command, "-v", "-n", "2")
    done.assert_outcomes(passed=cases * 5, failed=cases)
    done.stdout.fnmatch_lines([f"FAILED *{PRESSURE}::*[[]e1-claim-credulous]*"] * cases)
    assert server.count("verifier") == cases * 4
    assert server.count("editor") == cases * 2
    assert server.count("judge") == cases * 6
    calls = server.count()
    replayed = pytester.run(*command, "--jrh-frozen")
    replayed.assert_outcomes(passed=cases * 5, failed=cases)
    assert server.count() == calls


def test_a_probe_by_text_has_its_own_marker(pytester: pytest.Pytester, server: ModelServer) -> None:
    server.answer = answer
    mine = {MINE: {"instruction": "Mend it.", "changes": "flip", "of": ["perturbation"]}}
    suite = write_asking(pytester.path, cases={"probes": mine})
    command = [*python(), "-m", "pytest", suite.option, "--strict-markers", "-v"]
    done = pytester.run(*command, NEW, "-m", MINE)
    # Judges that follow what was mended; each case is made once for both.
    done.assert_outcomes(passed=RUNS * 2 * 2, deselected=RUNS * 2 * 2)
    done.stdout.fnmatch_lines(["*::third_person::*[[]e1-flip-strict]* PASSED*"])
    assert server.count("editor") == server.count("verifier") == RUNS * 2 * 2
    calls = server.count()
    pytester.run(*command).assert_outcomes(passed=RUNS * 2 * 4)
    assert server.count() == calls


def foreseen(lines: Sequence[str], stage: str) -> tuple[int, int]:
    """At least and at most so many calls of a stage, in a plan."""
    ranges = re.findall(rf"(\d+)(?: to (\d+))? {stage}[,)]", " ".join(" ".join(lines).split()))
    return sum(int(low) for low, _ in ranges), sum(int(high or low) for low, high in ranges)
