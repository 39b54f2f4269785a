"""A prompt that asks for words: recorded, replayed, and judged anew by another map."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import yaml

from tests.plugin.recorded import Recorded
from tests.support.model_server import ModelServer, Request
from tests.support.obedient import VIOLATION
from tests.support.suites import SuiteFiles

PROMPT = "Is the rubric violated: yes, partly or no? {{ rubric }}\n\n{{ transcript }}\n"
ONE = ("-k", "run-1")


def in_words(request: Request) -> Mapping[str, object]:
    word = "partly" if VIOLATION in request.text else "no"
    return {"reasoning": "Looked at.", "score": word}


def set_map(suite: SuiteFiles, score_map: dict[str, int]) -> None:
    config = yaml.safe_load(suite.config.read_text(encoding="utf-8"))
    config["judge"] = {"prompt_path": "prompt.md", "score_map": score_map}
    suite.config.write_text(yaml.safe_dump(config), encoding="utf-8")


def test_another_map_is_another_verdict_without_a_call(
    recorded: Recorded, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = recorded.tiny
    (suite.config.parent / "prompt.md").write_text(PROMPT, encoding="utf-8")
    set_map(suite, {"yes": 1, "partly": 1, "no": 0})
    with ModelServer(in_words) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        once = pytester.runpytest(suite.option, "--jrh-judge-record-mode=all", *ONE)
        once.assert_outcomes(passed=2, deselected=6)
        sent = server.requests[0].body["response_format"]["json_schema"]["schema"]
    assert set(sent["properties"]["score"]["enum"]) == {"yes", "partly", "no"}
    set_map(suite, {"yes": 1, "partly": 0, "no": 0})
    lax = pytester.runpytest(suite.option, *ONE, "-v")
    lax.assert_outcomes(passed=1, failed=1, deselected=6)
    assert any("  0 calls, " in line for line in lax.outlines)
