"""A prompt that asks for words: recorded, replayed, and judged anew by another map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tests.e2e.bench import Bench
from tests.support.model_server import ModelServer, Obedient, Request, override
from tests.support.obedient import VIOLATION
from tests.support.suites import BOTH_TESTS

if TYPE_CHECKING:
    from tests.e2e.conftest import MakeBench

PROMPT = "Is the rubric violated: yes, partly or no? {{ rubric }}\n\n{{ transcript }}\n"


def in_words(request: Request) -> Mapping[str, object]:
    word = "partly" if VIOLATION in request.text else "no"
    return {"reasoning": "Looked at.", "score": word}


def set_map(bench: Bench, score_map: dict[str, int]) -> None:
    bench.files.configure({"judge": {"prompt_path": "prompt.md", "score_map": score_map}})
    bench.reload()


def test_another_map_is_another_verdict_without_a_call(
    make_bench: MakeBench, server: ModelServer
) -> None:
    server.answer = override(Obedient(), judge=in_words)
    bench = make_bench(tests=BOTH_TESTS)
    (bench.files.config.parent / "prompt.md").write_text(PROMPT, encoding="utf-8")
    set_map(bench, {"yes": 1, "partly": 1, "no": 0})
    assert bench.run().outcomes == [("agree", 1), ("agree", 0)]
    sent = server.requests[-1].body["response_format"]["json_schema"]["schema"]
    assert set(sent["properties"]["score"]["enum"]) == {"yes", "partly", "no"}
    set_map(bench, {"yes": 1, "partly": 0, "no": 0})
    asked = server.count()
    assert bench.replay().outcomes == [("disagree", 0), ("agree", 0)]
    assert server.count() == asked
