"""What of a prompt is sent and read: images, parameters, and a server that reads only a part, in
silence."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.llm.transport import litellm
from pytest_jrh.recording.shown import is_cut
from tests.e2e.bench import Bench, MakeBench, said
from tests.plugin.recorded import run_pytest
from tests.support.logs import IMAGE
from tests.support.model_server import Fault, ModelServer
from tests.support.suites import run, write_suite

_HANDLING = "litellm.litellm_core_utils.prompt_templates.image_handling"
AT_A_URL = "https://example.org/a.png"


def turns(*urls: str) -> list[dict[str, Any]]:
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [
        {"role": "user", "content": [{"type": "text", "text": "What is on it?"}, *parts]},
        {"role": "assistant", "content": "A cat, I would say."},
    ]


def bench_on(make_bench: MakeBench, tmp_path: Path, *at: str, images: str | None = "send") -> Bench:
    path = tmp_path / "pictures.jsonl"
    path.write_text(json.dumps({"id": "a", "messages": turns(*at)}))
    bench: Bench = make_bench(log=path, overrides={"judge": {"images": images}})
    return bench


def sent(server: ModelServer, stage: str) -> list[Any]:
    """The images of the requests of a stage."""
    return [
        part["image_url"]["url"]
        for request in server.requests
        if request.stage == stage
        for message in request.messages
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]


def test_images_reach_the_judge(make_bench: MakeBench, server: ModelServer, tmp_path: Path) -> None:
    other = IMAGE.replace("png", "webp")
    bench = bench_on(make_bench, tmp_path, IMAGE, AT_A_URL, other)
    planning = bench.engine("once", ask=False)
    assert len(planning.survey(bench.specs)) == 1
    planning.stop()
    assert "these tokens and costs do not include the images" in " ".join(planning.notices)
    assert server.count() == 0
    session = bench.run("once")
    assert session.outcomes == [("agree", 1)]
    assert sent(server, "judge") == [IMAGE, other]
    (request,) = [each for each in server.requests if each.stage == "judge"]
    assert "  [image: image 1 (image/png)]\n  [image: a.png]\n  [image: image 2" in request.text
    assert not [url for stage in ("planner", "editor", "verifier") for url in sent(server, stage)]
    assert "and placeholders for other media, such as images" in session.notices[0]
    assert bench.is_complete
    server.stop()
    assert bench.play().outcomes == session.outcomes


def test_by_default_images_are_named_and_a_notice_says_what_sends_them(
    make_bench: MakeBench, server: ModelServer, tmp_path: Path
) -> None:
    bench = bench_on(make_bench, tmp_path, IMAGE, images=None)
    session = bench.run("once")
    assert not sent(server, "judge")
    assert "[image: image/png]" in server.requests[-1].text
    assert "`images: send` in the judge's section" in " ".join(session.notices)
    described = bench.ready.judge_fingerprints[None]
    bench.configure({"judge": {"images": "send"}})
    assert bench.ready.judge_fingerprints[None] != described
    assert bench.replay().only.outcome == "unrecorded"


def test_a_model_without_images(make_bench: MakeBench, server: ModelServer, tmp_path: Path) -> None:
    server.faults.add(stage="judge", fault=Fault.status(400), times=None)
    result = bench_on(make_bench, tmp_path, IMAGE).run("once").only
    assert result.outcome == "model_error"
    words = "The call had images, which not every model accepts. To name"
    assert words in said(result)


def test_no_provider_has_this_machine_fetch_the_image_of_a_stranger() -> None:
    # Some providers take no URLs, and litellm would download for them what a table names.
    library = litellm()
    convert = import_module(_HANDLING).convert_url_to_base64
    for url in (AT_A_URL, "http://127.0.0.1:9/a.png", "https://example.org/b.svg"):
        with pytest.raises(library.ImageFetchError, match="disabled"):
            convert(url)


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


def test_a_server_that_cuts_is_named(pytester: pytest.Pytester, server: ModelServer) -> None:
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
        assert "cut the prompt of 2 cases" in text, text
        assert "was shown" not in text
        markdown = (pytester.path / "report.md").read_text("utf-8")
        assert "cut the prompt of 2 cases" in markdown
        data = json.loads((pytester.path / "report.json").read_text("utf-8"))
        (of_suite,) = data["suites"].values()
        assert len(of_suite["judges"]["default"]["shown"][0]["cut_by_server"]) == 2
        # Other stages' prompts hold the transcript, too.
        assert "verifier: the server of openai/gpt-4.1-mini read far fewer tokens" in text


def test_parameters_are_sent_and_in_the_fingerprint(bench: Bench, server: ModelServer) -> None:
    assert bench.run().outcomes == [("agree", 1)]
    bench.configure({"judge": {"params": {"num_ctx": 32_768, "options": {"top_k": 1}}}})
    assert bench.replay().only.outcome == "unrecorded"
    assert bench.run().outcomes == [("agree", 1)]
    last = [request for request in server.requests if request.stage == "judge"][-1]
    assert (last.body["num_ctx"], last.body["options"]) == (32_768, {"top_k": 1})
    assert bench.play().outcomes == [("agree", 1)]
