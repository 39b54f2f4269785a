"""`repeats: K` over HTTP: every case is judged K times, and each answer is paid for once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from pytest_jrh.core.results import Verdict
from tests.e2e.bench import MakeBench, Session, cassette_files, is_complete, read_cassette, said
from tests.e2e.test_plan import exactly, planned, to_make
from tests.plugin.recorded import run_pytest
from tests.support.exchange import Answer, Request
from tests.support.ledgers import results_in
from tests.support.model_server import ModelServer, Obedient


class Saying:
    """The obedient model, but for a judge that gives these scores in turn to each request."""

    def __init__(self, *scores: object) -> None:
        self._obedient = Obedient()
        self._scores = scores
        self._asked: Counter[str] = Counter()

    def __call__(self, request: Request) -> Answer:
        if request.stage != "judge":
            return self._obedient(request)
        asked = _asked(request)
        score = self._scores[self._asked[asked] % len(self._scores)]
        self._asked[asked] += 1
        return {"score": score, "reasoning": f"It is plainly {score}."}


def _asked(request: Request) -> str:
    """What a verdict is asked about: the same where an unusable answer is asked for again."""
    roles = [message.get("role") for message in request.messages]
    end = roles.index("assistant") if "assistant" in roles else len(roles)
    return json.dumps(request.messages[:end])


def repeating(repeats: int, **config: Any) -> dict[str, Any]:
    return {"admin": {"evaluation_config": {"repeats": repeats, **config}}}


def judge_cassettes(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.judge-*.yaml"))


def recorded_repeats(path: Path) -> list[int]:
    calls = read_cassette(path)["metadata"]["jrh"]["calls"]
    return [call["asked"].get("repeat", 1) for call in calls]


def scores(session: Session) -> list[tuple[int, ...]]:
    return [result.scores for result in session.results]


def test_each_repeat_is_asked_once_recorded_and_replayed(
    make_bench: MakeBench, server: ModelServer
) -> None:
    server.answer = Saying(1, 0, 1)
    bench = make_bench(runs=3, overrides=repeating(3))
    session = bench.run("once")
    assert server.count("judge") == 9
    assert scores(session) == [(1, 0, 1)] * 3
    assert session.outcomes == [("agree", 1)] * 3
    assert {result.reasoning for result in session.results} == {"It is plainly 1."}
    for path in judge_cassettes(bench.cassettes):
        assert recorded_repeats(path) == [1, 2, 3]
        assert is_complete(path)
    files = cassette_files(bench.cassettes)
    replayed = bench.play()
    assert replayed.calls == 0
    assert scores(replayed) == scores(session)
    assert cassette_files(bench.cassettes) == files


def test_a_raised_number_asks_what_is_missing_and_a_lowered_one_nothing(
    make_bench: MakeBench, server: ModelServer
) -> None:
    server.answer = Saying(1)
    bench = make_bench(runs=2)
    bench.run("once")
    first = judge_cassettes(bench.cassettes)[0].read_bytes()
    for repeats, new in ((3, 2), (5, 2), (1, 0), (5, 0)):
        bench.configure(repeating(repeats))
        before = server.count()
        plan = to_make(planned(bench, "new_episodes"))
        session = bench.run("new_episodes")
        assert server.count() - before == 2 * new
        assert plan == exactly({"judge": 2 * new} if new else {})
        assert scores(session) == [(1,) * repeats] * 2
    assert recorded_repeats(judge_cassettes(bench.cassettes)[0]) == [1, 2, 3, 4, 5]
    bench.configure(repeating(6))
    missed = bench.replay().results[0]
    assert missed.outcome == "unrecorded"
    assert "repeat: -1 +6" in said(missed)
    # As every recording that is complete: `once` does not add to it.
    assert bench.run("once").results[0].outcome == "unrecorded"
    # A suite without repeats writes what it wrote before there were any.
    assert b"repeat" not in first


def test_a_repeat_without_a_verdict_leaves_the_case_unscored_and_the_others_recorded(
    make_bench: MakeBench, server: ModelServer
) -> None:
    server.answer = Saying(1, 7, 7, 7, 1)
    bench = make_bench(overrides=repeating(3))
    unscored = bench.run("once").only
    assert unscored.outcome == "invalid_response"
    assert (unscored.score, unscored.complete_scores) == (None, ())
    assert unscored.verdicts == (Verdict(1, "It is plainly 1."),)
    # The second one was asked again twice, and the third one not at all.
    assert server.count("judge") == 4
    (cassette,) = judge_cassettes(bench.cassettes)
    assert recorded_repeats(cassette) == [1, 2, 2, 2]
    assert bench.replay().only.outcome == "invalid_response"

    server.answer = Saying(1)
    plan = planned(bench, "once", retry_unscored=True)
    before = server.count()
    again = bench.run("once", retry_unscored=True).only
    assert again.scores == (1, 1, 1)
    assert server.count() - before == 2
    assert to_make(plan) == exactly({"judge": 2})
    assert again.spending.all.calls == 2


def test_no_process_makes_a_repeat_beyond_the_limit(
    make_bench: MakeBench, server: ModelServer
) -> None:
    server.answer = Saying(1, 0, 1)
    files = make_bench(runs=6, overrides=repeating(3)).files
    recording = (files.option, "--jrh-record-mode=once", "-n2")
    made = run_pytest(files.folder, *recording, "--jrh-max-calls=17")
    assert "over_budget" in made.stdout
    assert server.count() == 17
    # 4 calls make a case and 3 judge it; what is there is not asked again.
    whole = run_pytest(files.folder, *recording)
    assert whole.code == 0, whole.stdout
    assert server.count() == 6 * (4 + 3)
    assert not list(files.cassettes.glob(".locks/budget-*"))
    digests = Counter(request.digest for request in server.requests if request.stage == "judge")
    assert set(digests.values()) == {3}
    recorded = results_in(files.results)
    assert [result.scores for result in recorded] == [(1, 0, 1)] * 6
    assert [len(result.reasons) for result in recorded] == [3] * 6
    frozen = run_pytest(files.folder, files.option, "--jrh-frozen")
    assert frozen.code == 0, frozen.stdout
    assert "18 replayed" in frozen.stdout
    assert [result.scores for result in results_in(files.results)] == [(1, 0, 1)] * 6
    # Results of another number of repeats are not kept.
    files.configure(repeating(1))
    one = run_pytest(files.folder, files.option, "-k", "run-1")
    assert "5 results of earlier sessions left out" in one.stdout
    assert "how often it judges has changed" in " ".join(one.stdout.split())
