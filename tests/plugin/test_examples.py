"""The worked examples, as far as no golden session has them, the changed judge prompt (issue: the
pull-request path) with the demo that it is held against; and how few lines sessions print."""

import json
import re
import shutil
import threading
from collections.abc import Callable, Iterable
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from examples.conversations import from_log
from examples.http_judge.service import Judge
from examples.probes import shop
from examples.probes.judges import PLANTED
from examples.refund_agent.make_log import DEFAULT, make_log
from examples.small_judge.replay import RESULTS, outcomes
from pytest_jrh.__main__ import main
from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.probes.swap import SWAP
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.sources import open_source
from tests.plugin.recorded import Done, run_pytest

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/__snapshots__/test_sessions"
DEMO = "inputs/configs/refund_agent.yml"
CHANGED = "examples/prompt_change/refund_agent.yml"
BASELINE = "inputs/baselines/refund_agent.json"
GATED = f"--jrh-baseline={BASELINE}"
NEEDED = (
    DEMO,
    CHANGED,
    BASELINE,
    "inputs/cassettes/refund_agent",
    "examples/prompt_change/cassettes",
)
pytestmark = pytest.mark.skipif(
    not all((ROOT / name).exists() for name in NEEDED),
    reason="the demo is not recorded: make record-demo",
)


def test_the_comment_of_the_pull_request_is_read_in_a_minute() -> None:
    markdown = (GOLDEN / "prompt_change.summary.txt").read_text("utf-8")
    shown = unfolded(markdown)
    words = [word for word in shown.split() if re.search(r"\w", word)]
    assert len(words) <= 220, shown
    title = "## ❌ FAIL: the new prompt misses 6 of 25 violations (24%) that it found before\n"
    assert shown.startswith(title)


def unfolded(markdown: str) -> str:
    """What of a report is seen at first: of its folds the summaries alone."""
    shown, depth = [], 0
    for part in re.split(r"(<details(?: open)?>|</details>|</summary>)", markdown):
        if part.startswith("<details"):
            depth += 1
            is_summary = depth == 1
        elif part == "</details>":
            depth -= 1
        elif part == "</summary>":
            is_summary = False
        elif not depth or is_summary:
            shown.append(part)
    return " ".join(shown)


# What a version or a machine decides is left out of the documents.
_OF_THE_MACHINE = ("platform", "rootdir", "plugins", "SKIPPED", "0 calls", "=")


def without_machine(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if not line.startswith(_OF_THE_MACHINE)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """The demo, replayed as the first page says, and its folder."""
    folder = tmp_path_factory.mktemp("demo")
    for name in ("inputs", "examples/answers", "examples/prompt_change"):
        shutil.copytree(ROOT / name, folder / name)
    configs = (DEMO, "inputs/configs/refund_agent_ordinal.yml", "examples/answers/answers.yml")
    options = [f"--jrh-config={config}" for config in configs]
    return folder, run_pytest(folder, *options, "-ra", env={"COLUMNS": "80"})


def test_the_first_page_shows_what_the_demo_prints(demo: tuple[Path, Done]) -> None:
    _, done = demo
    assert done.code == pytest.ExitCode.OK, done.stdout
    start = (ROOT / "docs/index.md").read_text("utf-8").split("```")[1].splitlines()[1:]
    assert "\n".join(without_machine(start)) in "\n".join(without_machine(done.lines))


ONE = "damaged-kettle and refund_within and agent_perturbation"
POLICY = "examples/answers/changed/answers.yml"
SIX = "a01 or a02 or a03 or a04 or a05 or a06"


@pytest.mark.parametrize(
    ("limit", "options"),
    [
        (40, (CHANGED, GATED)),
        (25, (CHANGED, GATED, "-k", ONE)),
        (25, (CHANGED, GATED, "-k", "damaged-kettle")),
        (25, (CHANGED, "-k", ONE)),
        (25, (POLICY, "-k", "a05")),
        (25, (POLICY, "-k", SIX)),
        (25, (POLICY, "--jrh-baseline=examples/answers/baseline.json", "-k", SIX)),
        (20, (DEMO, GATED)),
        (20, ("examples/answers/answers.yml",)),
    ],
)
def test_who_has_a_minute_reads_few_lines(
    demo: tuple[Path, Done], limit: int, options: tuple[str, ...]
) -> None:
    """Red, of one case and of six with a red one, and green."""
    config, *others = options
    done = run_pytest(demo[0], f"--jrh-config={config}", *others, env={"COLUMNS": "80"})
    assert len(done.lines) <= limit, done.stdout


def test_the_readme_shows_what_the_gate_says(tmp_path: Path) -> None:
    for name in ("inputs", "examples/prompt_change"):
        shutil.copytree(ROOT / name, tmp_path / name)
    done = run_pytest(tmp_path, f"--jrh-config={CHANGED}", GATED, "--tb=no")
    readme = (ROOT / "examples/prompt_change/README.md").read_text("utf-8")
    shown = readme.split("```text\n")[1].split("```")[0]
    assert "FAIL  the new prompt misses 6 of 25 violations (24%) that it found before" in shown
    assert shown in "\n".join(done.lines)


def test_the_config_differs_from_the_demos_in_its_prompt_and_its_folders_alone() -> None:
    import yaml

    demo, changed = (yaml.safe_load((ROOT / name).read_text("utf-8")) for name in (DEMO, CHANGED))
    del changed["judge"]["prompt_path"]
    del changed["recording"]["dir"]
    assert changed == demo


def test_the_baseline_is_current(demo: tuple[Path, Done], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _ = demo
    committed = (folder / BASELINE).read_bytes()
    (folder / BASELINE).unlink()
    monkeypatch.chdir(folder)
    options = [f"--jrh-config={DEMO}", f"--jrh-baseline={BASELINE}", "--jrh-update-baseline"]
    assert main(["merge", *options, "outputs"]) == 0
    assert (folder / BASELINE).read_bytes() == committed


HTTP = "examples/http_judge"
SMALL = "examples/small_judge"
ANSWERS = "examples/answers"
LABELLED = "labels      25 by people (authors)\n"
OF_A_SESSION = {".csv", ".json", ".md", ".yaml", ".yml"}


@pytest.fixture
def project_of_judges(tmp_path: Path) -> Path:
    """What the judges' examples need: neither the log nor the demo's recordings."""
    for name in (HTTP, SMALL):
        shutil.copytree(ROOT / name, tmp_path / name)
    rubrics = "inputs/data/refund_agent/rubrics.yml"
    (tmp_path / rubrics).parent.mkdir(parents=True)
    shutil.copyfile(ROOT / rubrics, tmp_path / rubrics)
    return tmp_path


def test_the_service_is_asked_anew_as_its_readme_says(project_of_judges: Path) -> None:
    judges = project_of_judges / HTTP / "judges.py"
    with ThreadingHTTPServer(("127.0.0.1", 0), Judge) as service:
        threading.Thread(target=service.serve_forever).start()
        port = str(service.server_port)
        judges.write_text(judges.read_text("utf-8").replace("8799", port), "utf-8")
        options = (f"--jrh-config={HTTP}/refund_agent.yml", "--tb=no", "--jrh-record-mode=all")
        done = run_pytest(project_of_judges, *options)
        service.shutdown()
    assert "17 passed, 3 xfailed" in done.lines[-1], done.stdout
    assert any("  19 calls, " in line for line in done.lines), done.stdout


def test_the_verdicts_of_a_small_model_are_said_to_be_chance(project_of_judges: Path) -> None:
    done = run_pytest(project_of_judges, f"--jrh-config={SMALL}/refund_agent.yml", "--tb=no")
    assert done.code == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert outcomes(project_of_judges / RESULTS) == {"agree": 32, "disagree": 22}
    assert "also: the judge is not shown to be better than chance" in "\n".join(done.lines)
    assert any("  0 calls, " in line for line in done.lines)


def test_a_kinder_prompt_fails_and_all_reports_say_whose_the_labels_are(tmp_path: Path) -> None:
    shutil.copytree(ROOT / ANSWERS, tmp_path / ANSWERS)
    reports = [tmp_path / f"report.{form}" for form in ("html", "md", "json")]
    done = run_pytest(
        tmp_path,
        f"--jrh-config={ANSWERS}/changed/answers.yml",
        f"--jrh-baseline={ANSWERS}/baseline.json",
        *(f"--jrh-report={report}" for report in reports),
    )
    assert done.code == pytest.ExitCode.TESTS_FAILED, done.stdout
    readme = (ROOT / ANSWERS / "README.md").read_text("utf-8")
    answer = readme.partition("FAIL ")[2].partition("read first")[0]
    assert f"FAIL {answer}read first" in done.stdout
    assert LABELLED in readme
    assert LABELLED in done.stdout
    page, comment, values = (report.read_text("utf-8") for report in reports)
    assert "25 by people (authors)" in page
    assert "25 by people (authors)" in comment
    assert json.loads(values)["suites"]["answers"]["annotators"] == ["authors"]


def test_answers_and_those_that_were_made_of_them_replay(tmp_path: Path) -> None:
    shutil.copytree(ROOT / ANSWERS, tmp_path / ANSWERS)
    done = run_pytest(tmp_path, f"--jrh-config={ANSWERS}/made.yml", "--jrh-record-mode=none")
    assert done.code == pytest.ExitCode.OK, done.stdout
    assert "labels      3 confirmed by openai/gpt-4.1, 3 by people (authors)" in done.lines


def test_the_recordings_of_answers_are_small_and_have_no_label() -> None:
    # The server's texts are for who records.
    needed = [path for path in (ROOT / ANSWERS).rglob("*") if path.suffix in OF_A_SESSION]
    size = sum(path.stat().st_size for path in needed if path.stem not in ("README", "script"))
    assert size <= 150_000
    cassettes = [path.read_text("utf-8") for path in needed if path.name == "cassette.yaml"]
    assert len(cassettes) == 2
    for word in ("satisfied", "violated", "authors"):
        assert not any(word in text for text in cassettes)


def test_each_planted_defect_is_found_by_its_own_probe_and_by_no_other() -> None:
    printed = (GOLDEN / "probes.summary.txt").read_text("utf-8").replace("\\", "")
    head, *rows = printed.partition("| misled verdicts |")[2].partition("\n\n")[0].splitlines()
    probes = [title.strip().replace(" ", "_") for title in head.split("|")[:-1]]
    findings = {}
    for row in rows[1:]:
        judge, *counts = re.findall(r"<code>(\w+)</code>|(\d+) of \d+", row)
        turned = [probe for probe, (_, count) in zip(probes, counts, strict=True) if count != "0"]
        findings[judge[0]] = turned
    assert next(iter(findings)) == "obedient", "the worst comes first"
    planted = {judge.__name__: [probe] for judge, probe in PLANTED.items() if probe is not None}
    assert {judge: turned for judge, turned in findings.items() if turned} == planted
    # That of pairs is planted in examples/pairs.
    found = {probe for turned in planted.values() for probe in turned}
    assert found == set(PROBES) - {SWAP.name}


@pytest.mark.parametrize(
    ("write", "kept"),
    [(shop.write_conversations, shop.DEFAULT), (from_log.write_conversations, from_log.DEFAULT)],
    ids=["of the shop", "of the log"],
)
def test_the_conversations_are_those_that_their_program_writes(
    tmp_path: Path, write: Callable[[Path], object], kept: Path
) -> None:
    write(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == kept.read_bytes()


def transcripts(log: Path) -> dict[str, str]:
    """What is said and called in each run of a log."""
    source = open_source(log)
    runs = [source.read(*summary.key)[0] for summary in source.summaries()]
    return {run.run_id: render_transcript(run.messages, show_reasoning=True) for run in runs}


def test_committed_log_is_what_the_task_produces(tmp_path: Path) -> None:
    make_log(tmp_path / "again.eval")
    assert transcripts(tmp_path / "again.eval") == transcripts(DEFAULT)
