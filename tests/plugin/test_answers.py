"""A table of questions and answers as a suite: labels, made cases, four kinds of judges, a cassette
for each test and rubric; and nothing that is printed, written or sent of it speaks of runs."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pytest_jrh.core.results import CaseResult
from pytest_jrh.recording.cassettes import SHARED, Cassette, shared, update_shared
from tests.plugin.recorded import Done, run_module, run_pytest, write_files
from tests.support.ledgers import results_in
from tests.support.model_server import ModelServer, Obedient, Request
from tests.support.obedient import SATISFIED, VIOLATION
from tests.support.page_reader import Page, data_blocks, session_data

ROWS = """id,question,context,answer,human_ok,topic
a,Where is my order?,It left on Monday.,On its way since Monday.,yes,orders
b,May I return it?,Returns take 14 days.,No. ok-marker-violation,no,returns
c,Do you ship abroad?,Europe only.,"Yes, to Europe.",yes,orders
d,Who are you?,A shop.,,yes,other
"""
RUBRICS = "- {id: kind, instructions: The answer is kind.}\n"
JUDGES = """
from inspect_ai.scorer import Score, Scorer, accuracy, scorer

def said(text):
    return 1 if "marker-violation" in text else 0

def strict(case):
    assert case.request and case.context and "human_ok" not in case.metadata
    return said(case.response)

@scorer(metrics=[accuracy()])
def scoring() -> Scorer:
    async def score(state, target) -> Score:
        assert state.input_text and state.user_prompt.text
        return Score(value=said(state.output.completion))
    return score
"""
CONFIG = """
suite: {of: answers, log: rows.csv, rubrics: rubrics.yml}
cases: {kinds: [labels, perturbation, positives]}
labels: {metadata: human_ok, map: {"yes": satisfied, "no": violated}}
editor: {model: openai/editor}
"""
PANEL = """
judges:
  - {name: prompt, model: openai/judge}
  - {name: code, python: "judges.py:strict"}
  - {name: scorer, inspect_scorer: "judges.py@scoring", score_map: {"0": 0, "1": 1}}
"""


def write(folder: Path, config: str) -> Path:
    write_files(folder, {"rows.csv": ROWS, "rubrics.yml": RUBRICS, "judges.py": JUDGES})
    path = folder / "answers.yml"
    path.write_text(config, encoding="utf-8")
    return path


def session(folder: Path, server: ModelServer, *options: str) -> Done:
    return run_pytest(folder, "--jrh-config=answers.yml", "-v", *options, env=server.environment)


def results_of(folder: Path) -> list[CaseResult]:
    return results_in(folder / "outputs/answers.yml")


def test_three_calls_make_and_judge_a_case_and_a_replay_makes_none(tmp_path: Path) -> None:
    write(tmp_path, f"{CONFIG}judge: {{model: openai/judge}}\n")
    with ModelServer(Obedient()) as server:
        done = session(tmp_path, server, "--jrh-record-mode=once")
        results = results_of(tmp_path)
        asked = Counter(str(request.stage) for request in server.requests)
        replayed = session(tmp_path, server)
        assert server.count() == asked.total()
    counts = Counter((result.test, result.outcome) for result in results)
    # The positives of `a` and `c` stay as they are; that of `b` stays violated, and is no case.
    assert counts == {
        ("labels", "agree"): 3,
        ("agent_perturbation", "agree"): 3,
        ("agent_positives", "agree"): 2,
        ("labels", "no_case"): 1,
        ("agent_perturbation", "no_case"): 1,
        ("agent_positives", "no_case"): 2,
    }, done.stdout
    assert asked == {"editor": 6, "verifier": 6, "judge": 8}
    of_judge = [request.text for request in server.requests if request.stage == "judge"]
    shown = next(text for text in of_judge if "\nOn its way since" in text)
    for part in (
        "<context>\nIt left on Monday.\n</context>",
        "<request>\nWhere is my order?\n</request>",
        "<response>\nOn its way since Monday.\n</response>",
    ):
        assert part in shown
    assert not any("human_ok" in call.text for call in server.requests)
    outcomes = [result.outcome for result in results]
    assert [result.outcome for result in results_of(tmp_path)] == outcomes
    assert "0 calls, 20 replayed" in replayed.stdout
    assert "left out 1 row with an empty answer: line " in done.stdout


def test_an_ordinal_answer_lands_on_each_score_and_may_stay(tmp_path: Path) -> None:
    config = CONFIG.replace("[labels, perturbation, positives]", "[perturbation]")
    config = "\n".join(line for line in config.splitlines() if not line.startswith("labels"))
    path = write(tmp_path, f"{config}\njudge: {{model: openai/judge}}\n")
    levels = "[{score: 1, label: rude}, {score: 2, label: curt}, {score: 3, label: kind}]"
    rubric = f"- {{id: kind, instructions: How kind it is., score_levels: {levels}}}\n"
    path.with_name("rubrics.yml").write_text(rubric, encoding="utf-8")
    with ModelServer(Obedient()) as server:
        done = session(tmp_path, server, "--jrh-record-mode=once")
    of_a = [result for result in results_of(tmp_path) if result.run_id == "a"]
    assert [(result.label, result.score) for result in of_a] == [(1, 1), (2, 2), (3, 3)], done


WORDS = re.compile(r"\b(runs?|agents?|transcripts?|planners?|plans?|acts?|tool calls?)\b", re.I)
ALLOWED = re.compile(r"(?i)--jrh-plan|judge reliability plan|\brun it again|\brun again")
ALL_ROWS = """id,question,context,answer,human_ok,topic
kept,May I return it?,Ask us.,Within 10 days.,yes,returns
missed,May I return it after a year?,Ask us.,Of course.,no,returns
silent,Hello?,,,yes,other
broken,What does it cost?,Ask us.,Nothing.,yes,orders
"""
"""All three judges miss the second one; of the last one, that which is a prompt gives no score on
offer."""


def model(request: Request) -> Any:
    if request.stage == "judge" and "What does it cost?" in request.text:
        return {"reasoning": "It is free.", "score": 7}
    if request.stage != "editor":
        return Obedient()(request)
    wanted = VIOLATION if "so that it violates" in request.text else SATISFIED
    return {"new_content": f"Return it when you like: {wanted}", "reason": "It promises more."}


def texts_in(value: Any) -> Iterator[str]:
    """The texts of JSON, without its keys."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)
    elif isinstance(value, str):
        yield value


def said_in(file: Path) -> str:
    """What a written file says."""
    text = file.read_text("utf-8").replace("\\_", "_")
    if file.suffix == ".html":
        page = Page.of(text)
        return "\n".join(texts_in([session_data(page), data_blocks(page)]))
    if file.suffix == ".xml":
        return "\n".join(ElementTree.fromstring(text).itertext())
    if file.suffix == ".jsonl":
        return "\n".join(texts_in([json.loads(line) for line in text.splitlines()]))
    return "\n".join(texts_in(json.loads(text))) if file.suffix == ".json" else text


def check_words(name: str, text: str) -> None:
    bad = [line for line in ALLOWED.sub("", text).splitlines() if WORDS.search(line)]
    assert not bad, (name, bad)


def check_all(done: Done) -> None:
    assert done.code in (0, 1), done.stderr
    check_words("printed", done.stdout + done.stderr)


def test_no_word_of_agents_is_printed_written_or_sent(tmp_path: Path) -> None:
    folder = tmp_path
    write(folder, CONFIG + PANEL)
    (folder / "rows.csv").write_text(ALL_ROWS)
    option, record = "--jrh-config=answers.yml", "--jrh-record-mode=new_episodes"
    reports = [f"--jrh-report={name}" for name in ("page.html", "comment.md", "report.json")]
    with ModelServer(model) as server:
        env = server.environment
        for more in (["--collect-only", "-q"], ["--jrh-plan", record]):
            check_all(run_pytest(folder, option, *more, env=env))
        options = (option, record, "-v", "-rA", "--junitxml=junit.xml", *reports)
        done = run_pytest(folder, *options, env=env)
        sent = "\n".join(request.text for request in server.requests)
    check_words("sent", sent)
    check_all(done)
    verdicts = {(result.judge, result.run_id): result.score for result in results_of(folder)}
    assert [verdicts[judge, "kept"] for judge in ("prompt", "code", "scorer")] == [0, 0, 0]
    # What is looked for was there: a failure, a skip and a case without a verdict.
    for word in ("FAILED", "SKIPPED", "ERROR", "request:"):
        assert word in done.stdout
    baseline = "--jrh-baseline=base.jsonl"
    check_all(run_pytest(folder, option, baseline, "--jrh-update-baseline"))
    (folder / "rows.csv").write_text(ALL_ROWS.replace("Of course", "Yes"))
    changed = run_pytest(folder, option, baseline)
    check_all(changed)
    assert "unrecorded" in changed.stdout
    # And of a table of verdicts on them.
    rows = ["id,question,answer,human_ok,verdict", "a,Q?,A.,0,1", "b,Q?,A.,1,1", "c,Q?,A.,0,0"]
    (folder / "v.csv").write_text("\n".join(rows))
    more = ["--label=human_ok", "--one=passed", "-v", "--report=v.html", "--report=v.md"]
    check_all(run_module(folder, "pytest_jrh", "check", "v.csv", *more))
    files = [path for path in folder.rglob("*") if path.suffix in (".html", ".md", ".json")]
    files += [*folder.glob("*.xml"), *folder.rglob("*.jsonl")]
    for file in files:
        check_words(str(file), said_in(file))


TESTS = ("agent_perturbation", "agent_positives", "labels")
PLACE = "inputs/cassettes/answers/labels/kind/cassette.yaml"


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one")
    write(folder, f"{CONFIG}judge: {{model: openai/judge, repeats: 2}}\n")
    with ModelServer(Obedient()) as server:
        done = session(folder, server, "--jrh-record-mode=once", "-n2")
        assert "28 calls, 0 replayed" in done.stdout, done.stdout
    return folder


@pytest.fixture
def folder(recorded_once: Path, tmp_path: Path) -> Path:
    shutil.copytree(recorded_once, tmp_path, dirs_exist_ok=True)
    return tmp_path


def heads_in(folder: Path) -> dict[str, dict[str, Any]]:
    """What is recorded by test and case; no other file holds a recording."""
    recordings = folder / "inputs/cassettes/answers"
    files = [recordings / test / "kind" / SHARED for test in TESTS]
    assert sorted(recordings.rglob("*.yaml")) == files
    heads = {}
    for test, file in zip(TESTS, files, strict=True):
        head = file.read_text(encoding="utf-8").partition("\ninteractions:")[0]
        heads[test] = json.loads(head.removeprefix("metadata:"))["jrh"]["cases"]
    return heads


def test_workers_record_into_one_file_and_replay_what_a_killed_session_left(folder: Path) -> None:
    heads = heads_in(folder)
    assert [*heads["labels"]] == ["a.e1.judge-default", "b.e1.judge-default", "c.e1.judge-default"]
    made = ["a.e1.generation", "a.e1.judge-default", "b.e1.generation", "b.e1.judge-default"]
    assert [*heads["agent_perturbation"]][:4] == made
    own = (folder / PLACE).with_name("b.e1.judge-default.yaml")
    Cassette.load(own, interactions=True).save()
    update_shared(folder / PLACE, {own.stem: None})
    results = results_of(folder)
    with ModelServer(Obedient()) as server:
        for options in (["-n2"], ["--jrh-record-mode=once"]):
            # A replay writes nothing.
            assert own.exists()
            done = session(folder, server, *options)
            assert "0 calls, 28 replayed" in done.stdout
            again = results_of(folder)
            assert [result.case_id for result in again] == [result.case_id for result in results]
            assert [result.outcome for result in again] == [result.outcome for result in results]
        assert server.count() == 0
    assert heads_in(folder) == heads


def test_a_case_without_a_recording_names_the_file_and_unused_ones_go(folder: Path) -> None:
    file = folder / PLACE
    gone, unused = "a.e1.judge-default", "z.e1.judge-default"
    cassette = Cassette.load(file.with_name(f"{gone}.yaml"), interactions=True)
    update_shared(file, {gone: None, unused: cassette})
    with ModelServer(Obedient()) as server:
        planned = session(folder, server, "--jrh-plan", "--jrh-prune")
        assert f"unused cassettes: 1\n  {PLACE}: {unused}\n" in planned.stdout
        assert unused in shared(file)
        done = session(folder, server, "--jrh-prune", "-k", "labels")
        assert f"removed cassettes: 1\n  {PLACE}: {unused}\n" in done.stdout
        assert f"cassette: {PLACE}\n" in done.stdout
        # Those of the cases that were not selected stay.
        heads = heads_in(folder)
        assert [len(heads[test]) for test in TESTS] == [6, 5, 2]
        assert unused not in heads["labels"]
        file.write_text("<<<<<<< HEAD\n", encoding="utf-8")
        refused = session(folder, server, "--jrh-prune", "-k", "labels")
    assert refused.code == 1
    assert "Restore the file from version control" in refused.stdout
    assert "Traceback" not in refused.stdout + refused.stderr


def test_a_word_that_is_no_verdict_is_named_and_may_become_one(tmp_path: Path) -> None:
    def config(words: str) -> None:
        labels = CONFIG.replace(", perturbation, positives", "")
        score_map = ", ".join(f"{word}: {int(word != 'kind')}" for word in words.split("|"))
        judge = f"prompt_path: judge.md, verdict: '\\b({words})$', score_map: {{{score_map}}}"
        write(tmp_path, f"{labels}judge: {{model: openai/judge, repeats: 3, {judge}}}\n")

    write_files(tmp_path, {"judge.md": "{{ request }} {{ response }} End with kind or unkind."})
    config("kind|not kind")
    with ModelServer(lambda request: "unkind" if "return" in request.text else "kind") as server:
        done = session(tmp_path, server, "--jrh-record-mode=once")
        reason = '(1 case: the answer ends in "unkind", which is not a verdict)'
        assert reason in " ".join(done.stdout.split())
        # What has no verdict could turn that.
        assert "always says" not in done.stdout, done.stdout
        assert "labels      3 from the column" in done.stdout, done.stdout
        config("kind|unkind")
        done = session(tmp_path, server)
        assert "FAIL  1 case has no verdict (1 case: repeat 2 was never recorded)" in done.stdout


def test_a_prompt_that_shows_a_context_needs_one(tmp_path: Path) -> None:
    write_files(tmp_path, {"judge.md": "{{ context }} {{ response }} {{ rubric }} Reply in JSON."})
    labels = CONFIG.replace(", perturbation, positives", "")
    path = write(tmp_path, f"{labels}judge: {{model: openai/judge, prompt_path: judge.md}}\n")
    assert run_pytest(tmp_path, f"--jrh-config={path}", "--co").code == 0
    write_files(tmp_path, {"rows.csv": ROWS.replace("context", "rules")})
    refused = run_pytest(tmp_path, f"--jrh-config={path}", "--co")
    assert "judge.md: the prompt shows a context, but no answer has a context" in refused.stderr
