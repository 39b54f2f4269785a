"""A session in which people label cases blind: frozen, without a judge."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.plugin.recorded import run_pytest
from tests.support.label_session import labelling_session, let_in

pytest.importorskip("starlette", reason="needs starlette (the extra `review`)")
pytest.importorskip("uvicorn", reason="needs uvicorn (the extra `review`)")

ROOT = Path(__file__).parents[2]
DEMO = "--jrh-config=inputs/configs/refund_agent.yml"


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_frozen_suite_is_labelled_without_recordings_rejected_cases_included(
    tmp_path: Path,
) -> None:
    shutil.copytree(ROOT / "inputs", tmp_path / "inputs")
    assert run_pytest(tmp_path, DEMO).code == pytest.ExitCode.OK
    shutil.rmtree(tmp_path / "inputs" / "cassettes")
    (tmp_path / "inputs" / "data" / "refund_agent" / "refund_agent.eval").unlink()
    # The labels that the demo comes with.
    (tmp_path / "inputs" / "data" / "refund_agent" / "blind_labels.jsonl").write_text("", "utf-8")
    asked = (DEMO, "--jrh-frozen", "--jrh-review=blind", "-q")
    outputs = tmp_path / "outputs" / "refund_agent"
    with labelling_session(tmp_path, *asked) as (process, url), let_in(url) as ann:
        assert len(ann.rows) == 54 + 2
        for row in ann.rows[:25]:
            assert ann.give(row["key"], 1).json()["value"] == "1"
        ann.finish()
        said, _ = process.communicate(timeout=60)
    assert process.returncode == pytest.ExitCode.TESTS_FAILED
    assert "54 errors" in said
    assert "Traceback" not in said
    labels = lines(outputs / "review" / "labels.jsonl")
    # What had no label then is noted as such.
    assert [bool(label.get("withdrawn")) for label in labels] == [False] * 25 + [True] * 31
