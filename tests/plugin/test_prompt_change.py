"""The worked example of a changed judge prompt, and the demo that it is held against (issue: the
pull-request path)."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from pytest_jrh.__main__ import main
from tests.plugin.recorded import Done, run_pytest

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/__snapshots__/test_sessions"
DEMO = "inputs/configs/refund_agent.yml"
CHANGED = "examples/prompt_change/refund_agent.yml"
BASELINE = "inputs/baselines/refund_agent.json"
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
    title = "FAIL  the new prompt misses 6 of 25 violations that it found before"
    assert shown.startswith(f"## ❌ {title.replace('  ', ': ')}\n")
    for text in (
        "a prompt that is neither better nor worse would lose as much in 2 of 100",
        "<code>refund\\_within\\_policy</code> | 3 of 10 | 0 | 0 of 9 |",
        "54 by the judge's model; people checked 12 (20 needed), none wrong",
        "**Read first: damaged-kettle, ",
        "<del>.</del><strong>, and next week",
        "<td>old prompt</td><td>violated</td>",
        "3 more in the report.",
        "label wrong: drop it there; right: fix judge.md, or --jrh-update-baseline",
    ):
        assert text in shown


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
    for name in ("inputs", "examples/answers"):
        shutil.copytree(ROOT / name, folder / name)
    configs = (DEMO, "inputs/configs/refund_agent_ordinal.yml", "examples/answers/answers.yml")
    options = [f"--jrh-config={config}" for config in configs]
    return folder, run_pytest(folder, *options, "-ra", env={"COLUMNS": "80"})


def test_the_first_page_shows_what_the_demo_prints(demo: tuple[Path, Done]) -> None:
    _, done = demo
    assert done.code == pytest.ExitCode.OK, done.stdout
    start = (ROOT / "docs/index.md").read_text("utf-8").split("```")[1].splitlines()[1:]
    assert without_machine(start) == without_machine(done.lines)


def test_the_readme_shows_what_the_gate_says(tmp_path: Path) -> None:
    for name in ("inputs", "examples/prompt_change"):
        shutil.copytree(ROOT / name, tmp_path / name)
    done = run_pytest(tmp_path, f"--jrh-config={CHANGED}", f"--jrh-baseline={BASELINE}", "--tb=no")
    readme = (ROOT / "examples/prompt_change/README.md").read_text("utf-8")
    shown = readme.split("```text\n")[1].split("```")[0]
    assert "FAIL  the new prompt misses 6 of 25 violations that it found before" in shown
    assert shown in "\n".join(done.lines)


def test_the_config_differs_from_the_demos_in_its_prompt_and_its_folders_alone() -> None:
    import yaml

    demo, changed = (yaml.safe_load((ROOT / name).read_text("utf-8")) for name in (DEMO, CHANGED))
    del changed["judge"]["prompt_path"]
    del changed["recording"]["dir"]
    assert changed == demo


def test_the_committed_baseline_is_what_an_update_writes(
    demo: tuple[Path, Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = demo
    committed = (folder / BASELINE).read_bytes()
    (folder / BASELINE).unlink()
    monkeypatch.chdir(folder)
    options = [f"--jrh-config={DEMO}", f"--jrh-baseline={BASELINE}", "--jrh-update-baseline"]
    assert main(["merge", *options, "outputs"]) == 0
    assert (folder / BASELINE).read_bytes() == committed
