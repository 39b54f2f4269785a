"""Natural runs that are labelled blind in Chromium, and the file of their labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.plugin.labelled import record_labelled
from tests.plugin.recorded import run_pytest
from tests.plugin.test_stopping import PATIENCE
from tests.support.label_session import labelling_session


def test_natural_runs_that_were_labelled_are_in_a_file_that_a_later_session_reads(
    browser: Any, tmp_path: Path
) -> None:
    natural = record_labelled(tmp_path)
    asked = (natural.suite.option, "--jrh-review=blind", "--jrh-reviewer=ann")
    with labelling_session(tmp_path, *asked) as (process, url):
        page = browser.new_page()
        page.goto(url)
        # About run 3 its annotators disagree: it has no label, and is no case.
        for key in "svc":
            page.wait_for_selector("#answers")
            number = page.inner_text("#about")
            page.keyboard.press(key)
            if key != "c":
                page.wait_for_selector(f"#about:not(:text-is('{number}'))")
                page.wait_for_selector("#toast:not(:empty)")
        page.wait_for_selector("#end[open]")
        page.click("#end button:text-is('Finish')")
        process.communicate(timeout=PATIENCE)
        page.close()
    [written] = tmp_path.rglob("run_labels.jsonl")
    rows = [json.loads(line) for line in written.read_text("utf-8").splitlines()]
    assert sorted(row["label"] for row in rows) == [0, 1]
    assert {row["annotator"] for row in rows} == {"ann"}
    (natural.suite.data / "blind.jsonl").write_bytes(written.read_bytes())
    config = natural.suite.config
    config.write_text(config.read_text("utf-8").replace("labels.csv", "blind.jsonl"), "utf-8")
    done = run_pytest(tmp_path, natural.suite.option)
    # The recorded judge finds no violation: it is right about one of the two runs.
    assert "1 failed, 1 passed" in done.stdout
