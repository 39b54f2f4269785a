"""What happens to a suite in the weeks after: a prompt, a model or a parameter changes, and its log
grows (docs/recordings.md). Calls are counted at the server."""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from pytest_jrh.llm.calls import load_template
from pytest_jrh.reports.case_facts import no_verdict_text
from tests.e2e.bench import Bench, MakeBench, cassette_files
from tests.plugin.test_growing import AGENT, write_growing, write_runs
from tests.support.exchange import STAGES
from tests.support.fork_server import commands
from tests.support.model_server import ModelServer
from tests.support.suites import BOTH_TESTS, MODEL, run, write_suite

OLD, NEW = "Zebra crossing.", "Zebra walking."
OLD_FILE, NEW_FILE = {"prompt_path": "old.md"}, {"prompt_path": "new.md"}


@pytest.mark.parametrize(
    ("asks", "stage", "before", "after", "shown"),
    [
        *((stage, stage, OLD_FILE, NEW_FILE, [f"-{OLD}", f"+{NEW}"]) for stage in STAGES),
        # The summarizer takes the editor's model where it has none of its own, and is asked first.
        ("summary", "editor", {}, {"model": "openai/gpt-4o"}, [f"-{MODEL}", "+openai/gpt-4o"]),
        ("judge", "judge", {}, {"temperature": 0.2}, ["-{}", '+{"temperature": 0.2}']),
        ("judge", "judge", {}, {"system_prompt": "Be brief."}, ["+Be brief."]),
    ],
)
def test_a_change_makes_each_affected_case_unrecorded_and_shows_itself(
    bench: Bench,
    server: ModelServer,
    asks: str,
    stage: str,
    before: dict[str, Any],
    after: dict[str, Any],
    shown: list[str],
) -> None:
    prompt = load_template(stage, mode="binary", objective="fail").source
    for name, word in (("old.md", OLD), ("new.md", NEW)):
        (bench.files.folder / name).write_text(f"{prompt}\n{word}\n", encoding="utf-8")

    def configure(keys: dict[str, Any]) -> None:
        section = {stage: keys}
        bench.configure(section if stage == "judge" else {AGENT: section})

    configure(before)
    assert bench.run().outcomes == [("agree", 1)]
    configure(after)
    asked = server.count()
    result = bench.replay().only
    assert (result.outcome, server.count()) == ("unrecorded", asked)
    lines = [line.strip() for line in no_verdict_text(result.why).splitlines()]
    name = "summarizer" if asks == "summary" else asks
    assert f"the {name}'s call is not recorded" in " ".join(lines)
    assert set(shown) <= set(lines)
    assert OLD not in lines


def test_the_command_is_one_for_the_shell_and_holds_with_odd_ids(
    pytester: pytest.Pytester, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [run(1, id="a b::c[d]'$HOME;`")]
    suite = write_suite(pytester.path, runs=runs, tests=["agent_perturbation"])
    pytester.runpytest(suite.option, "-v", "--junitxml=junit.xml").assert_outcomes(errors=1)
    texts = ET.parse(pytester.path / "junit.xml").iter("error")
    [command] = re.findall(r"^(?:record it: )?(pytest --.*)$", next(texts).text or "", re.MULTILINE)
    monkeypatch.setenv("PATH", f"{commands(pytester.path)}:/usr/bin:/bin")
    assert shutil.which("pytest")
    done = subprocess.run(
        command, shell=True, cwd=pytester.path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert Bench(suite, suite.cassettes).replay().outcomes == [("agree", 1)]


PROMPT = "Judge {{ transcript }} by {{ rubric }}. {{ rubric_id }} Be strict.\n"


def growing(folder: Path, runs: int, **options: Any) -> tuple[Bench, Path]:
    """A suite on a file of conversations, and that file."""
    files, log = write_growing(folder, runs, **options)
    return Bench(files, files.cassettes), log


def changed_lines(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[int, int]:
    """How many lines of these files are gone, and how many are new."""
    old, new = (
        Counter((path, line) for path, text in files.items() for line in text.splitlines())
        for files in (before, after)
    )
    return (old - new).total(), (new - old).total()


def test_old_verdicts_go(make_bench: MakeBench, server: ModelServer, tmp_path: Path) -> None:
    prompt = tmp_path / "suite" / "judge.md"
    prompt.parent.mkdir()
    prompt.write_text(PROMPT, encoding="utf-8")
    bench = make_bench(runs=3, tests=BOTH_TESTS, overrides={"judge": {"prompt_path": "judge.md"}})
    bench.run()
    before = cassette_files(bench.cassettes)
    prompt.write_text(PROMPT.replace("strict", "kind"), encoding="utf-8")
    bench.reload()
    asked = server.count()
    bench.run()
    assert server.count() - asked == server.count("judge") - 6 == 6
    beside = cassette_files(bench.cassettes)
    assert changed_lines(before, beside)[0] == 0, "the old ones stay until told otherwise"
    bench.run("none", judge_record_mode="all")
    removed, inserted = changed_lines(before, cassette_files(bench.cassettes))
    # Of each of the six cases: fingerprint, digest, tokens, cost, and the prompt itself.
    assert removed == inserted <= 6 * 5
    assert server.count() - asked == 12


PROBED: dict[str, Any] = {
    "tests": ["agent_perturbation", "format_invariance", "prompt_injection"],
    "overrides": {
        "admin": {"perturbation_config": {"probes": {"prompt_injection": {"max_cases": 4}}}},
        AGENT: {"sampling": "kept"},
    },
}


def test_a_log_that_grows_asks_only_for_its_new_runs(tmp_path: Path, server: ModelServer) -> None:
    bench, log = growing(tmp_path, 3, **PROBED)
    before, first = bench.run().made, server.requests
    recorded = cassette_files(bench.cassettes)
    write_runs(log, range(1, 8))
    bench.reload()
    plan = bench.plan("new_episodes")
    assert server.requests == first
    after = bench.run().made
    asked = server.requests[len(first) :]
    assert not {request.digest for request in first} & {request.digest for request in asked}
    assert len({request.digest for request in asked}) == len(asked)
    assert asked
    unchanged = recorded.items() <= cassette_files(bench.cassettes).items()
    assert unchanged, "no old recording changes"
    assert all(after[spec] == case for spec, case in before.items()), "no old case changes"
    numbers = {int(n) for request in asked for n in re.findall(r"order 100(\d)", request.text)}
    # A probe of one run may draw another case than before.
    assert numbers - {1, 2, 3} == {4, 5, 6, 7}
    bounds = plan.to_make.values()
    assert sum(each.low for each in bounds) <= len(asked) <= sum(each.high for each in bounds)


def test_a_limit_of_runs_keeps_those_recorded(tmp_path: Path, server: ModelServer) -> None:
    overrides = {AGENT: {"sample_num_from_orig": 3, "sampling": "rand"}}
    bench, log = growing(tmp_path, 4, tests=["agent_perturbation"], overrides=overrides)
    bench.run()
    first = server.count()
    write_runs(log, range(1, 41))
    bench.configure({AGENT: {"sampling": "kept"}})
    assert bench.run().outcomes == [("agree", 1)] * 3
    assert server.count() == first
    bench.configure({AGENT: {"sample_num_from_orig": 5}})
    assert bench.run().outcomes == [("agree", 1)] * 5
    assert server.count("planner") == 5
