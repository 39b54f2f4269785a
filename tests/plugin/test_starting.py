"""`python -m pytest_jrh init`: files that teach, collect at once, and never
replace what is there."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import jsonschema
import pytest
import yaml
from pydantic import ValidationError

from pytest_jrh.__main__ import main
from pytest_jrh.cli import init as committing
from pytest_jrh.core.calls import STAGES
from pytest_jrh.core.scales import Mode
from pytest_jrh.engine.suite import ReadySuite, make_ready
from pytest_jrh.judges.judge import PromptJudge, judge_response
from pytest_jrh.llm.calls import load_template, messages, parse
from pytest_jrh.sources import open_sources
from tests.plugin.recorded import write_files
from tests.plugin.test_graded_judge import SCORER
from tests.support.sessions import as_claude_code, as_text
from tests.support.suites import built_log, run
from tests.support.trajectories import HELLO, trajectory, write_trial
from tools.schema import config_schema, rubrics_schema

Init: TypeAlias = "Callable[..., str]"
CONFIG = "inputs/configs/first.yml"
RUBRICS = "inputs/data/first/rubrics.yml"
PROMPT = "inputs/prompts/first/judge.md"
GATE = (".github/actions/judge/action.yml", ".github/workflows/judge-gate.yml")
SUITE = (
    *GATE,
    "inputs/cassettes/first/.gitattributes",
    "inputs/configs/.jrh-config.schema.json",
    "inputs/configs/.jrh-rubrics.schema.json",
    CONFIG,
    RUBRICS,
    "inputs/data/first/runs.eval",
    PROMPT,
)


@pytest.fixture
def log() -> Path:
    return built_log([run(1), run(2), run(3), run(4, messages=[])])


@pytest.fixture
def project(pytester: pytest.Pytester) -> Path:
    """The folder that commands and pytest are run in."""
    return pytester.path


def files(folder: Path) -> list[str]:
    paths = filter(Path.is_file, folder.rglob("*"))
    return sorted(path.relative_to(folder).as_posix() for path in paths)


@pytest.fixture
def init(project: Path, capsys: pytest.CaptureFixture[str]) -> Init:
    """What `init` says where it ends with an exit code."""

    def said(*arguments: str | Path, code: int = 0) -> str:
        assert main(["init", *map(str, arguments)]) == code
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    return said


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def test_a_suite_is_written_and_can_be_used_at_once(project: Path, log: Path, init: Init) -> None:
    said = init("first", "--log", log)
    assert "The log has 4 runs, of which 3 can be used" in said
    assert f"pytest --jrh-config={CONFIG} --jrh-record-mode=once" in said
    assert files(project) == list(SUITE)
    assert (project / "inputs/data/first/runs.eval").read_bytes() == log.read_bytes()
    cases = collected(project)
    assert len(cases) == 2 * 4
    assert cases[0] == "agent_perturbation::borne_out_by_the_tools::run-1 None"


def ready(project: Path) -> ReadySuite:
    return make_ready(project / CONFIG, cwd=project, rootdir=project)


def only_judge(project: Path) -> PromptJudge:
    judge = ready(project).judges[None]
    assert isinstance(judge, PromptJudge)
    return judge


@pytest.mark.parametrize("mode", ["binary", "ordinal"])
def test_files_fit_the_schemas_that_they_point_to_and_the_judge_asks_what_the_built_in_one_asks(
    project: Path, log: Path, init: Init, mode: Mode
) -> None:
    init("first", "--log", log, *(["--ordinal"] if mode == "ordinal" else []))
    for name, schema in ((CONFIG, config_schema()), (RUBRICS, rubrics_schema())):
        path = project / name
        jsonschema.Draft7Validator(schema).validate(read_yaml(path))
        head = path.read_text("utf-8").splitlines()[0]
        pointer = head.removeprefix("# yaml-language-server: $schema=")
        assert read_yaml(path.parent / pointer) == schema
    own = only_judge(project).template
    assert own.origin == str(project / PROMPT)
    built_in = load_template("judge", mode=mode, objective="fail")
    names = STAGES["judge"].variables
    values = {name: 2 if name.endswith("_score") else f"the {name}" for name in names}
    assert messages(own, values) == messages(built_in, values)


TURNS = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]


def collected(project: Path) -> list[str]:
    """The runs and what tells their cases apart, in the order in which cases are collected."""
    specs = ready(project).specs()
    return [f"{each.test}::{each.rubric_id}::{each.run_id} {each.target_score}" for each in specs]


def test_conversations_of_another_shape(project: Path, tmp_path: Path, init: Init) -> None:
    values = []
    for task, trial in ((3, 0), (3, 1), (4, 0), (4, 1)):
        values.append({"task_id": task, "trial": trial, "reward": 0.5, "log": {"turns": TURNS}})
    path = tmp_path / "results.json"
    path.write_text(json.dumps(values), "utf-8")
    said = init("first", "--log", path)
    found = 'were found here: messages at "/log/turns", id at ["/task_id", "/trial"], cluster'
    assert f'{found} at ["/task_id"]; to change this, edit suite.format in inputs/c' in said
    runs = {case.rpartition("::")[2] for case in collected(project)}
    assert runs == {"3-0 None", "3-1 None", "4-0 None", "4-1 None"}


def test_what_was_found_is_said(project: Path, tmp_path: Path, init: Init) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    session = [*as_claude_code("one", TURNS), {"type": "tag", "sessionId": "one"}]
    (folder / "one.jsonl").write_text(as_text(session), "utf-8")
    (folder / "atif.json").write_text(json.dumps(trajectory(*HELLO)), encoding="utf-8")
    said = init("first", "--log", folder)
    assert "Format: ATIF trajectory, Claude Code session." in said
    assert "reads these copies: inputs/data/first/runs/" in " ".join(said.split())
    assert len(collected(project)) == 2 * 2


def test_a_job_with_names_of_any_language_is_copied_with_its_rewards(tmp_path: Path) -> None:
    names = ["café__ab", "naïve task__cd"]
    for reward, name in enumerate(names):
        rewards = {"rewards": {"reward": float(reward)}}
        write_trial(tmp_path / "job", name, trajectory(*HELLO), verifier_result=rewards)
    assert main(["init", "new", "--log", str(tmp_path / "job"), "--folder", str(tmp_path)]) == 0
    with open_sources((tmp_path / "inputs" / "data" / "new" / "runs",)) as source:
        assert {run.key: run.scores for run in source.fields()} == {
            (name, 1): {"reward": float(reward)} for reward, name in enumerate(names)
        }


def test_a_large_log_stays_where_it_is_and_the_suite_is_replayed_frozen(
    project: Path, log: Path, init: Init, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committing, "LARGEST_LOG", log.stat().st_size - 1)
    place = "inputs/data/first/large.eval"
    (project / place).parent.mkdir(parents=True)
    (project / place).write_bytes(log.read_bytes())
    said = init("first", "--log", project / place)
    assert "neither copied nor committed" in said
    assert read_yaml(project / CONFIG)["suite"]["log"] == place
    for job in read_yaml(project / GATE[1])["jobs"].values():
        judged = job["steps"][1]["with"]
        assert judged["suite"] == CONFIG
        assert judged["arguments"].splitlines()[-1] == "--jrh-frozen"
    (add,) = [line for line in said.splitlines() if "git add" in line]
    assert add.endswith(f" inputs ':!{place}'")


def test_runs_that_cannot_be_read_are_not_what_a_suite_begins_with(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unread = {"id": "a", "messages": [{"role": "user", "content": [{"x": 1, "y": 2}]}]}
    empty = {"id": "b", "messages": []}
    silent = {"id": "d", "messages": [{"role": "user", "content": "Hi."}]}
    read = {"id": "c", "messages": [{"role": "assistant", "content": "Hi."}]}
    file = tmp_path / "runs.jsonl"
    arguments = ["init", "some", f"--log={file}", f"--folder={project}", "--rubric=kind: Be kind."]
    for unusable, why in (
        ((unread, empty), "The case a (epoch 1) of "),
        ((silent, empty), "The case d has no turn of the assistant."),
    ):
        file.write_text("".join(json.dumps(each) + "\n" for each in unusable))
        assert main(arguments) == 4
        assert f"no case can be used. {why}" in capsys.readouterr().err
    file.write_text("".join(json.dumps(each) + "\n" for each in (unread, empty, read)))
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "The log has 3 runs, of which 1 can be used; the suite begins with 1." in said
    assert "2 runs cannot be used. The case a (epoch 1) of " in said


@pytest.mark.parametrize(
    ("answers", "targets"),
    [
        ("", {"None"}),
        ("score_levels: [{score: 3, label: a}, {score: 2, label: b}]", {"2", "3"}),
        ("classes: {warm: So., cold: Not.}", {"warm", "cold"}),
    ],
)
def test_rubrics_of_a_file_are_taken(
    project: Path, log: Path, init: Init, answers: str, targets: set[str]
) -> None:
    """With a prompt that is shown the last answer alone, which is said."""
    rubrics = f"- id: kind\n  instructions: Be kind.\n  {answers}"
    write_files(project, {"our.yml": rubrics, "own.md": "{{output}} violates JSON score reasoning"})
    said = init("first", "--log", log, "--rubric=our.yml", "--prompt=own.md")
    assert "shows only the last answer of a run; {{ transcript }} shows the whole run." in said
    assert (project / RUBRICS).read_text("utf-8") == rubrics
    assert {case.rpartition(" ")[2] for case in collected(project)} == targets


def test_existing_files_are_listed_and_left_alone(project: Path, log: Path, init: Init) -> None:
    there = [CONFIG, "inputs/data/first/runs.eval", PROMPT]
    for name in there:
        (project / name).parent.mkdir(parents=True)
        (project / name).write_text("mine")
    said = init("first", "--log", log, code=4)
    assert all(f"{project / name}: already exists" in said for name in there)
    assert "--force" in said
    assert files(project) == there
    assert {(project / name).read_text("utf-8") for name in there} == {"mine"}
    init("first", "--log", log, "--force")
    assert "prompt of the judge" in (project / there[-1]).read_text("utf-8")


@pytest.mark.parametrize("changed", [*GATE, None])
def test_two_suites_share_a_gate(project: Path, log: Path, init: Init, changed: str | None) -> None:
    init("first", "--log", log)
    written = {file: (project / file).read_text("utf-8") for file in GATE}
    if changed is not None:
        (project / changed).write_text("mine", "utf-8")
    before = {file: (project / file).read_text("utf-8") for file in GATE}
    said = init("second", "--log", log)
    assert {file: (project / file).read_text("utf-8") for file in GATE} == before
    assert "Not overwritten; add --jrh-config of the new suite to the arguments in:\n" in said
    assert said.count("  .github") == 2
    init("first", "--log", log, "--force")
    assert {file: (project / file).read_text("utf-8") for file in GATE} == written


BAD_NAMES = ("../up", "", "-x-", "a b", "x" * 65, "a\x1b[31m", "${{ x }}")
UNUSABLE: list[tuple[list[str], str]] = [
    *((["--", name], "NAME: ") for name in BAD_NAMES),
    *((["first", f"--log={name}.eval"], f"{name}.eval") for name in ("none", "text", "cut")),
    (["first", "--log=s3://b/runs.eval"], "remote files are not supported; copy the file to "),
    (["first", "--log=given.csv"], "use init --request COL, or set suite.format"),
    (["first", "--labels=given.csv"], "given.csv:1: has no column run_id or id or case_id"),
    (["first", "--rubric=a", "--rubric=a: Be kind."], "two rubrics have the id"),
    (["first", "--rubric=a b"], 'ID: got "a b"; must be at most 64 letters'),
    (["first", "--rubric=a: Be kind.", "--ordinal"], "which a TEXT does not have"),
    (["first", "--judge=pyton:judges.py:strict"], "must begin with one of model:, python:"),
    (["first", "--judge=python:"], "must begin with one of model:, python:"),
    (["first", "--rubric=rubrics.yml"], 'rubrics.yml:1: got a mapping with the keys "name"'),
    (["first", "--prompt=text.eval"], "write {{ transcript }} and {{ rubric }} where the judge"),
    (["first", "--prompt=typo.md"], 'variable {{ transcipt }}\n    "transcript" is the nearest'),
    (["first", "--prompt=own.md", "--verdict=PASS"], "a regular expression with one group"),
]


@pytest.mark.parametrize(("arguments", "message"), UNUSABLE)
def test_what_cannot_be_used_is_refused_before_anything_is_written(
    project: Path, log: Path, init: Init, arguments: list[str], message: str
) -> None:
    texts = {"given.csv": "run\n1\n", "rubrics.yml": "name: a", "text.eval": "not a log"}
    write_files(project, {**texts, "typo.md": "{{ transcipt }}", "own.md": "{{ transcript }}"})
    (project / "cut.eval").write_bytes(b"PK\x03\x04 cut off")
    before = files(project)
    is_named = any(argument.startswith("--log") for argument in arguments)
    said = init(*([] if is_named else ["--log", log]), *arguments, code=4)
    assert message in said
    assert "Traceback" not in said
    assert "\x1b" not in said
    assert files(project) == before


def test_schemas_can_be_written_anew(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert files(project) == list(SUITE[3:5])
    assert capsys.readouterr().out.split() == list(SUITE[3:5])


def test_a_suite_begins_with_a_scorer_of_inspect(project: Path, log: Path, init: Init) -> None:
    (project / "own").mkdir()
    (project / "own/judges.py").write_text(SCORER, "utf-8")
    said = init("first", "--log", log, "--judge", "inspect_scorer:own/judges.py@graded")
    assert "git add .gitignore .github own/judges.py inputs" in said
    assert not (project / "inputs/prompts").exists()
    assert read_yaml(project / CONFIG)["judge"]["inspect_scorer"] == "own/judges.py@graded"
    assert ready(project).judges


RATED = ("--label=rating", "--scale=1-5")
ANSWERS = {
    "binary": (
        "rows.csv",
        "id,question,output,human_ok,topic\n"
        'c1,"When does it come?","By Friday, I guarantee it.",0,post\n'
        'c2,"Is it waterproof?","The label says so.",1,goods\n'
        'c3,"Will it hold?","We think so.",1,goods\n'
        'c4,"Can I return it?","Within 30 days.",,post\n',
        ["--label=human_ok", "--one=passed"],
        ["question as request, output as answer, id", "(3 of 4 rows): 0 is violated, 1 is"],
        {"c1": 1, "c2": 0, "c3": 0},
    ),
    "ordinal, with a context": (
        "rows.tsv",
        "case_id\tfrage\tantwort\tquelle\trating\n"
        "a\tWer?\tDer König.\tDas Buch.\t4/5\nb\tWo?\tDort.\tDie Karte.\t2/5\n",
        ["--request=frage", "--response=antwort", "--context=quelle", *RATED],
        ['answer at "/antwort", context at "/quelle"', "rating (2 of 2 rows): scores from 1 to 5"],
        {"a": 4, "b": 2},
    ),
    "JSON lines, in words": (
        "rows.jsonl",
        '{"idx": 7, "input": "Hi.", "response": "Hello.", "verdict_of_ann": "fine"}\n'
        '{"idx": 8, "input": "Ho.", "response": "Go away.", "verdict_of_ann": "rude"}\n'
        '{"idx": 9, "input": "Hm.", "response": "Yes?", "verdict_of_ann": "n/a"}\n',
        ["--label=verdict_of_ann", "--map=fine=0", "--map=rude=1", "--map=n/a="],
        ["input as request, response as answer, idx as id", "fine is satisfied, rude is violated"],
        {"7": 0, "8": 1},
    ),
}
# What a suite of answers has nothing to do with; of GitHub a job is a run.
WORDS_OF_RUNS = re.compile(r"\b(runs?|agents?|transcripts?|planner|acts?)\b", re.IGNORECASE)


def write_table(project: Path, shape: str) -> list[str]:
    """A table, and the command that begins a suite on it."""
    name, text, options, *_ = ANSWERS[shape]
    (project / name).write_text(text, "utf-8")
    return ["first", f"--log={name}", "--rubric=kind: Be kind.", *options]


@pytest.mark.parametrize("shape", ANSWERS)
def test_a_table_of_answers_says_what_was_taken(project: Path, init: Init, shape: str) -> None:
    *_, sentences, labels = ANSWERS[shape]
    said = init(*write_table(project, shape))
    assert all(sentence in said for sentence in sentences)
    suite = ready(project)
    assert {run_id: label.value for (_, run_id, _), label in suite.labels.items()} == labels
    assert {spec.test for spec in suite.specs()} == {"labels"}
    written = [name for name in files(project) if not re.match(r"\.github|.*schema\.json", name)]
    for text in (said, *((project / name).read_text("utf-8") for name in written)):
        assert not WORDS_OF_RUNS.findall(text)
    for name, schema in ((CONFIG, config_schema()), (RUBRICS, rubrics_schema())):
        jsonschema.Draft7Validator(schema).validate(read_yaml(project / name))


def test_made_cases_of_answers_are_begun_without_labels(project: Path, init: Init) -> None:
    _, log, *_ = write_table(project, "binary")
    said = init("first", log)
    assert "The file has 4 answers; the suite begins with 4." in said
    assert not WORDS_OF_RUNS.findall(said + (project / CONFIG).read_text("utf-8"))
    assert collected(project)[0].endswith("perturbation::borne_out::c1 None")


OWN_PROMPT = "Does it keep {{criteria}}?\n\n{{ input }}\n{{vars.outputs}}\n\nEnd with FINE or RUDE."


@pytest.mark.parametrize(
    ("prompt", "written"),
    [
        (
            OWN_PROMPT,
            OWN_PROMPT.replace("{{criteria}}", "{{ rubric }}")
            .replace("input", "request")
            .replace("{{vars.outputs}}", "{{ response }}"),
        ),
        (
            '{question} {answer} as {{"a": 1}}: fine, rude',
            '{request} {response} as {{"a": 1}}: fine, rude',
        ),
    ],
    ids=["two braces", "single braces"],
)
def test_a_judge_prompt_is_taken_over(project: Path, init: Init, prompt: str, written: str) -> None:
    (project / "own.md").write_text(prompt, "utf-8")
    said = init(*write_table(project, "JSON lines, in words"), "--prompt=own.md", "--judge=model:m")
    assert (project / PROMPT).read_text("utf-8") == written
    assert ("The prompt does not show the rubric" in said) == ("rubric" not in written)
    judge = only_judge(project)
    section = judge.settings.section
    assert (judge.label, section.score_map) == ("m", {"fine": 0, "rude": 1})
    shape = judge_response((0, 1), ("fine", "rude"), section.verdict)
    for answer in ("fine", "So.\n\n**Verdict:** Fine.\n", "Final answer: `fine`"):
        assert parse(answer, shape).score == "fine"
    for answer in ("It is not fine.", "rude or fine", "Verdict: fine, I think", "fine-ish"):
        with pytest.raises(ValidationError):
            parse(answer, shape)


def test_labels_of_a_file_and_of_nested_fields_are_read(project: Path, init: Init) -> None:
    rows = [
        {"id": "a", "q": {"text": "Q?"}, "answer": "A.", "docs": ["b", "c"], "by": {"ok": 0}},
        {"id": "b", "q": {"text": "R?"}, "answer": "B.", "docs": ["d", "e"], "by": {"ok": 1}},
    ]
    (project / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (project / "own.md").write_text("{question} {answer} {passages}: pass or fail", "utf-8")
    (project / "labels.csv").write_text("id,label\na,false\nb,true\n", "utf-8")
    begin = ["first", "--log=rows.jsonl", "--request=q.text", "--context=docs"]
    begin += ["--rubric=kind: Be kind."]
    for labels in ("--label=by.ok", "--label=/by/ok", "--labels=labels.csv"):
        said = init(*begin, labels, "--one=passed", "--prompt=own.md", "--force")
        assert "/docs as context" in said
        assert "{response} {context}:" in (project / PROMPT).read_text("utf-8")
        suite = ready(project)
        assert {key[1]: label.value for key, label in suite.labels.items()} == {"a": 1, "b": 0}
        assert suite.source is not None
        assert suite.source.read("a", 1)[0].messages[0]["content"] == "b\n\nc"
    assert "name one of the values by its pointer: /by/ok" in init(*begin, "--label=by", code=4)


def test_words_that_are_known_need_no_map(project: Path, init: Init) -> None:
    """Labels that are numbers say nothing of the words of a prompt, nor these of the labels."""
    begin = [*write_table(project, "binary"), "--prompt=own.md"]
    (project / "own.md").write_text("{{ output }} End with PASS or FAIL.", "utf-8")
    init(*begin)
    assert only_judge(project).settings.section.score_map == {"pass": 0, "fail": 1}
    (project / "own.md").write_text("{{ output }} 1 if unkind; JSON: reasoning, score", "utf-8")
    init(*begin, "--verdict=score.: (0|1)", "--map=1=violated", "--map=0=satisfied", "--force")
    labels = {key[1]: label.value for key, label in ready(project).labels.items()}
    assert labels == ANSWERS["binary"][-1]


@pytest.mark.parametrize(
    ("options", "prompt", "message"),
    [
        (["--label=human_ok"], "", '1 means in "human_ok" (values: 0, 1)'),
        (["--label=human_ok", "--one=passed", "--rubric="], "", "ID: got"),
        (["--label=human_ok", "--map=1=0", "--map=0=1", "--map=yess=1"], "", '"yess" is not in'),
        (["--one=passed"], "", "name the labels: --label COL"),
        (["--map=OK=MEANING"], "{{ output }} OK or FAIL", '--map: ok: got "MEANING"; must be 0, 1'),
        (["--context=nowhere"], "", '--context: got "nowhere"; the columns'),
        (["--scale=1-5"], "{{ output }} {{ persona }}", "own.md:1: unknown variable {{ persona }}"),
        (["--scale=1-5"], "{{ input }}", "write {{ response }} where"),
        ([], "{{ output }} Answer well or badly.", "which words of the judge mean violated "),
        (["--scale=1-5"], "{{ output }} Answer in JSON.", "use --verdict"),
        ([], "{output}\n%(policy)s: FINE or BAD", "own.md:2: unknown variable %(policy)s"),
        ([], "<<input>> <<rules>>: PASS or FAIL", "own.md:1: unknown variable <<rules>>"),
        ([], "{output} by {context}: PASS or FAIL", "own.md:1: {context} shows a context, but no"),
        ([], "{{ output }} PASS, FAIL or NONE", "--map NONE=MEANING\n"),
        ([], "{{ output }} JSON: reasoning, score", "D_WORD=violated --map SATISFIED_WORD=satis"),
    ],
)
def test_what_is_not_known_of_a_table_or_a_prompt_is_asked_for(
    project: Path, init: Init, options: list[str], prompt: str, message: str
) -> None:
    name, log, asks, *_ = write_table(project, "binary")
    if prompt:
        (project / "own.md").write_text(prompt, "utf-8")
        options = [*options, "--prompt=own.md"]
    before = files(project)
    assert message in init(name, log, *([] if "--rubric=" in options else [asks]), *options, code=4)
    assert files(project) == before


FOREIGN = {
    "ours": ("{{ user question }} {{policy}} {{ bot_answer }}", "{{ %s }}"),
    "single": ("{question} {policy} {answer}", "{%s}"),
    "mixed": ("{question} <<policy>> ${bot_answer}", "{%s}"),
    "angles": ("<<user question>> <<POLICY>> <<ANSWER>>", "{{ %s }}"),
    "percent": ("%(question)s %(passage)s %(answer)s", "{{ %s }}"),
    "dollars": ("$question $policy ${answer}", "{{ %s }}"),
    "brackets": ("[QUESTION] [PASSAGE] [ANSWER]", "{{ %s }}"),
}
TABLES = {
    "English": (
        "nr,user question,policy passage,bot answer,grounded?,answer model\n"
        '1,"When, and how?",Within 30 days.,Any time you like.,made up,m 1\n'
        "2,By mail?,Only by mail.,By mail.,supported,m 2\n"
        "3,By phone?,Only by mail.,Call us.,,m 1\n",
        ["--label", "grounded?"],
        "{}\n\nReply with one word: SUPPORTED or INVENTED.",
        {"made up": "violated", "supported": "satisfied", "INVENTED": "violated"},
        {"supported": 0, "invented": 1},
    ),
    "German": (
        "nr\tuser_question\tPolicy-Passage\tBotAnswer\tUrteil\n"
        "1\tWann denn?\tBinnen 30 Tagen.\tWann Sie wollen.\terfunden\n"
        "2\tPer Post?\tNur per Post.\tPer Post.\tbelegt\n",
        ["--label=Urteil"],
        "{}\n\nAntworte mit „gedeckt“ oder „erfunden“.",
        {"erfunden": "violated", "belegt": "satisfied", "gedeckt": "satisfied"},
        {"gedeckt": 0, "erfunden": 1},
    ),
}


@pytest.mark.parametrize("style", FOREIGN)
@pytest.mark.parametrize("language", TABLES)
def test_unknowns_are_asked_at_once(project: Path, init: Init, language: str, style: str) -> None:
    """And the command works when it is filled in."""
    table, options, ending, meanings, score_map = TABLES[language]
    (project / "rows.csv").write_text(table, "utf-8")
    (project / "own.md").write_text(ending.replace("{}", FOREIGN[style][0]), "utf-8")
    rubric = ["--rubric", "grounded: It's in the policy."]
    said = init("first", "--log=rows.csv", *options, *rubric, "--prompt=own.md", code=4)
    command = said.splitlines()[-1]
    for word, meaning in meanings.items():
        assert command.count(f"{shlex.quote(word)}=MEANING") == 1
        command = command.replace(f"{shlex.quote(word)}=MEANING", f"{shlex.quote(word)}={meaning}")
    said = init(*shlex.split(command.partition(" init ")[2]))
    assert "The answers were found here: messages at" in said
    written = (project / PROMPT).read_text("utf-8").partition("\n")[0]
    names = ("request", "context", "response")
    assert written == " ".join(FOREIGN[style][1].replace("%s", name) for name in names)
    assert only_judge(project).settings.section.score_map == score_map


OFFERS = {
    "Then write one last line, either\nVERDICT: OK\nor\nVERDICT: POOR": "So.\nVERDICT: ok",
    "Write\nVERDICT: OK\nif it is right, and\nVERDICT: POOR\nif not.": "**VERDICT**: OK",
    "<verdict>OK</verdict>\n<verdict>POOR</verdict>": "<verdict>OK</verdict> It is OK",
    "<VERDICT>OK</VERDICT> or <VERDICT>POOR</VERDICT>": "So. <verdict>ok</verdict>",
    'Reply {"verdict": "OK" | "POOR", "why": "..."}': '{"verdict": "OK", "why": "good"}',
    'In JSON: {"verdict": "OK"} or {"verdict": "POOR"}': '{"why": "Poor.", "verdict":"ok"}',
    "Say:\n- OK: the reply, or the FAQ, says so\n- POOR: else": "**OK:** it is not POOR",
    "1. OK if it is\n   supported\n2. POOR if not": "Verdict: OK",
    "Answer with OK if the FAQ\nsays so or POOR if it does not.": "So.\nOK.",
    "If it is right, answer OK. If it is not, answer POOR.": "`OK`",
    "Answer OK if it keeps to it, else POOR. Then explain why.": "OK.\nIt is not POOR.",
    "OK or POOR, after explaining it in a sentence": "POOR?\nOK",
    "One word:\n\nOK\nPOOR": "<verdict>\nOK\n</verdict>",
    "End with OK or POOR.\n\nQUESTION: {{ input }}\nANSWER:": "So.\n\\boxed{OK}",
    'JSON: reasoning, {"score": "OK"} or {"score": "POOR"}': '{"why": "Poor.", "score": "ok"}',
}


@pytest.mark.parametrize("offer", OFFERS)
def test_each_class_has_a_word_of_the_prompt(project: Path, init: Init, offer: str) -> None:
    """A word of labels in the middle of a sentence is none, and is not read as a verdict."""
    rows = "question,output,label\nWho?,It is me.,fine\nWhat?,It.,misleading\n"
    prompt = f"{{{{ output }}}} A short answer is fine, if never misleading.\n\n{offer}\n"
    write_files(project, {"rows.csv": rows, "own.md": prompt})
    begin = ["first", "--log=rows.csv", "--label=label", "--rubric=kind: Be kind."]
    begin += ["--map=fine=satisfied", "--map=misleading=violated", "--prompt=own.md"]
    before = files(project)
    said = init(*begin, code=4)
    assert "nothing says what each word means\n    map each word to violated or satisfied: " in said
    assert "Then run this, with your own values in place of MEANING (what the " in said
    assert said.endswith(" --map OK=MEANING --map POOR=MEANING\n")
    assert files(project) == before
    init(*begin, "--map=OK=satisfied", "--map=POOR=violated")
    section = only_judge(project).settings.section
    assert section.score_map == {"ok": 0, "poor": 1}
    shape = judge_response((0, 1), ("ok", "poor"), section.verdict)
    assert parse(OFFERS[offer], shape).score == "ok"


@pytest.mark.parametrize(
    ("ids", "name"),
    [
        ("KB-1 KB-8 KB-3 KB-4 KB-5", "KB"),
        ("17 8 9 10 12", "KB"),
        ("KB-1 KB-1 KB-3 KB-4 KB-5", ""),
        ("0.5 0.4 0.3 0.2 0.1", ""),
        ("2026-10-01 2026-10-02 2026-10-03 2026-10-04 2026-10-05", ""),
    ],
)
def test_what_could_name_the_rows_or_be_shown_is_said(
    project: Path, init: Init, monkeypatch: pytest.MonkeyPatch, ids: str, name: str
) -> None:
    """With the command for a prompt of one's own, which asks for the nearest column."""
    rows = [f"{id_},Who is {n}?,{id_},By law.,{n % 2}\n" for n, id_ in enumerate(ids.split())]
    write_files(project, {"rows.csv": "KB,question,output,House rules,label\n" + "".join(rows)})
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    said = init("first", "--log=rows.csv", "--label=label", "--one=passed", "--rubric=kind: Be.")
    assert ('"KB" differs in every row, so it can be the id: --case KB\n' in said) == bool(name)
    assert "\nNot shown to the judge: KB, House rules (to show one: --context COL).\n" in said
    assert "OPENAI_API_KEY" not in said
    (command,) = re.findall("To use your own prompt: python -m pytest_jrh init (.*)", said)
    (project / "FILE").write_text("{{ output }} {{ rules }}: PASS or FAIL", "utf-8")
    said = init(*shlex.split(command), code=4)
    assert "for the context, name the column: --context 'House rules'\n" in said
    said = init(*shlex.split(said.splitlines()[-1].partition(" init ")[2]))
    assert "/House rules as context" in said
    assert "Not shown" not in said


def test_columns_that_may_be_meant_are_asked_for_with_all_else(project: Path, init: Init) -> None:
    rows = "user question,bot answer,old answer,gold answer,policy passage,manual passage,ok\n"
    rows += "Who is it?,It is me.,It was me.,The king.,By law.,By hand.,1\n"
    (project / "rows.csv").write_text(rows, "utf-8")
    (project / "own.md").write_text("{context} {bot_answer}: YES or MAYBE", "utf-8")
    said = init("first", "--log=rows.csv", "--label=okay", "--context=rules", code=4)
    for wrong in ("--rubric: nothing", '--label: got "okay"', '--context: got "rules"'):
        assert wrong in said
    begin = ["first", "--log=rows.csv", "--label=ok"]
    said = init(*begin, "--prompt=own.md", code=4)
    assert '"bot answer" or "old answer" may be the response' in said
    asked = "--rubric 'ID: TEXT' --context COL --response COL --one ONE --map YES=MEANING"
    assert said.endswith(f"init {' '.join(begin)} --prompt=own.md {asked} --map MAYBE=MEANING\n")
    assert " in place of ID: TEXT, COL, ONE (violated or passed), MEANING (" in said


@pytest.mark.parametrize(
    ("url", "is_written"),
    [("http://127.0.0.1:1/v1", True), ("https://me:hunter2@host/v1", False), ("", False)],
)
def test_the_server_that_is_asked_here_is_asked_in_ci(
    project: Path, init: Init, monkeypatch: pytest.MonkeyPatch, url: str, *, is_written: bool
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    said = init(*write_table(project, "binary"))
    assert "hunter2" not in said
    assert ("(api_base; no other machine reaches it)" in said) == is_written
    assert ("set it in the workflow" in said) == ("hunter2" in url)
    assert read_yaml(project / CONFIG)["judge"].get("api_base", "") == url * is_written
    init(*write_table(project, "binary"), "--judge=model:anthropic/m", "--force")
    assert "api_base" not in read_yaml(project / CONFIG)["judge"]


def test_what_a_file_holds_may_be_said(project: Path, log: Path, init: Init) -> None:
    """JSON lines of messages are runs, unless an option says that they are a table."""
    row = {"id": "a", "input": "Hi.", "output": "Hello.", "by": {"role": "user"}}
    (project / "rows.jsonl").write_text(json.dumps(row), "utf-8")
    init("first", "--log=rows.jsonl", code=4)
    assert "The file has 1 answer" in init("first", "--log=rows.jsonl", "--of=answers")
    assert "must end with an answer" in init("other", "--log", log, "--of=answers", code=4)
    options = ["--log", log, "--label=target", "--rubric=kind"]
    assert "contains runs, which have no columns" in init("other", *options, code=4)
