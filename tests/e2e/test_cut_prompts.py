"""A server that reads only a part of its prompt, in silence, is named; its window can be set."""

from __future__ import annotations

import json

import pytest

from pytest_jrh.recording.shown import is_cut
from tests.e2e.bench import Bench
from tests.plugin.recorded import run_pytest
from tests.support.model_server import Fault, ModelServer
from tests.support.suites import run, write_suite

ENGLISH = "The agent looked the order up and told the customer when it will arrive. " * 200
CHINESE = "客服查询了订单并告诉客户何时送达。" * 300
JSON = json.dumps([{"order": number, "state": "on its way"} for number in range(1_000)])


@pytest.mark.parametrize(
    ("text", "tokens", "cut"),
    [
        # What tokenizers make of these texts, and what is left of them in a smaller window.
        (ENGLISH, 3_001, False),
        (ENGLISH, 2_050, True),
        (CHINESE, 3_300, False),
        (CHINESE, 900, True),
        (JSON, 12_000, False),
        (JSON, 2_050, True),
        # Long words, and a token for each line of spaces.
        ("Donaudampfschifffahrtsgesellschaft " * 1_000, 9_000, False),
        ((" " * 80 + "x\n") * 1_000, 2_000, False),
        # A prompt that no window cuts, and servers that count nothing, or not really.
        ("Short.", 12, False),
        (ENGLISH, 0, False),
        (ENGLISH, 100, False),
    ],
)
def test_a_cut_is_known_by_words_that_no_tokenizer_joins(text: str, tokens: int, cut: bool) -> None:
    assert is_cut([{"role": "user", "content": text}], tokens) is cut


def test_a_server_that_cuts_is_named_wherever_figures_are_doubted(
    pytester: pytest.Pytester, server: ModelServer
) -> None:
    long = {"role": "user", "content": ENGLISH}
    runs = [run(number, messages=[long, *run(number)["messages"]]) for number in (1, 2)]
    suite = write_suite(pytester.path, runs=runs, tests=["agent_perturbation"])
    server.faults.add(
        fault=Fault.envelope(lambda whole: whole["usage"].update(prompt_tokens=1_024)),
        times=None,
        when=lambda request: len(request.text) > len(ENGLISH),
    )
    reports = ("--jrh-report=report.md", "--jrh-report=report.json")
    # A replay knows it of the recording.
    for mode in ("once", "none"):
        done = run_pytest(pytester.path, suite.option, f"--jrh-record-mode={mode}", *reports)
        server.stop()
        text = " ".join(done.stdout.split())
        assert "it cut the prompt of 2 cases" in text, text
        assert "was shown" not in text
        markdown = (pytester.path / "report.md").read_text("utf-8")
        assert "it cut the prompt of 2 cases" in markdown
        data = json.loads((pytester.path / "report.json").read_text("utf-8"))
        (of_suite,) = data["suites"].values()
        assert len(of_suite["judges"]["default"]["shown"][0]["cut_by_server"]) == 2
        # Other stages' prompts hold the transcript, too.
        assert "verifier: the server of openai/gpt-4.1-mini read far fewer tokens" in text


def test_parameters_are_sent_as_they_are_and_are_part_of_the_fingerprint(
    bench: Bench, server: ModelServer
) -> None:
    assert bench.run().outcomes == [("agree", 1)]
    bench.configure({"judge": {"params": {"num_ctx": 32_768, "options": {"top_k": 1}}}})
    assert bench.replay().only.outcome == "unrecorded"
    assert bench.run().outcomes == [("agree", 1)]
    last = [request for request in server.requests if request.stage == "judge"][-1]
    assert (last.body["num_ctx"], last.body["options"]) == (32_768, {"top_k": 1})
    assert bench.play().outcomes == [("agree", 1)]
