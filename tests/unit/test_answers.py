"""Answers as cases: which rows are answers, what is taken for what, what hostile rows may do."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core import InputError
from pytest_jrh.core.cases import Unscored
from pytest_jrh.core.sections import InputFormat
from pytest_jrh.core.transcript import answer_parts
from pytest_jrh.engine.suite import make_ready
from pytest_jrh.sources import open_sources, tables
from pytest_jrh.sources.source import Source
from tests.support import tool_results
from tests.support.logs import assistant, call, sample, system, tool, user, write_log

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def source_of(path: Path, **places: Any) -> Source:
    return open_sources((path,), input_format=InputFormat(**places), of="answers")


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def parts_by_id(source: Source) -> dict[str, Mapping[str, str]]:
    """The parts that each answer has, by its id."""
    parts: dict[str, Mapping[str, str]] = {}
    for run in source.summaries():
        messages = source.read(*run.key)[0].messages
        found = answer_parts(messages)
        parts[run.run_id] = {name: text for name, text in found.items() if text}
    return parts


HEAD = "id,question,answer,human_ok\n"
ASKED = {"request": "Where is it?", "response": "On its way."}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.csv", f"{HEAD}a,Where is it?,On its way.,yes\n"),
        ("rows.tsv", "id\tprompt\tcompletion\na\tWhere is it?\tOn its way.\n"),
        ("rows.csv", "ID;Input;Output\na;Where is it?;On its way.\n"),
        ("rows.jsonl", '{"id": "a", "query": "Where is it?", "response": "On its way."}\n'),
        ("rows.json", '[{"id": "a", "user_input": "Where is it?", "response": "On its way."}]'),
        (
            "rows.jsonl",
            '{"id": "a", "input": [{"role": "user", "content": "Where is it?"}], '
            '"output": {"role": "assistant", "content": "On its way."}}\n',
        ),
    ],
)
def test_a_row_is_an_answer_by_names_of_its_columns(tmp_path: Path, name: str, text: str) -> None:
    assert parts_by_id(source_of(written(tmp_path / name, text))) == {"a": ASKED}


def test_context_and_system_prompt_are_parts_and_all_else_is_metadata(tmp_path: Path) -> None:
    row = {"id": 7, "system": "Be kind.", "context": ["It left.", "By ship."], "topic": "x"}
    source = source_of(written(tmp_path / "rows.jsonl", json.dumps(row | ASKED)))
    found = {"system": "Be kind.", "context": "It left.\n\nBy ship.", **ASKED}
    assert parts_by_id(source) == {"7": found}
    run, _ = source.read("7", 1)
    assert run.input == "It left.\n\nBy ship.\nWhere is it?"
    assert run.metadata == {"id": 7, "topic": "x"}
    [notice] = source.notices()
    assert notice == ("rows.jsonl: columns read: request, response as answer, context, system, id")


def test_suite_format_says_what_no_name_tells_and_wins_over_names(tmp_path: Path) -> None:
    row = {"n": 1, "question": "no", "chat": {"asked": "Where is it?"}, "said": "On its way."}
    # A place that one row has is taken.
    other = {"n": 2, "question": "no", "chat": {}, "said": "s"}
    path = written(tmp_path / "rows.jsonl", "\n".join(map(json.dumps, (row, other))))
    source = source_of(path, messages="/chat/asked", answer="/said", id="/n")
    assert parts_by_id(source) == {"1": ASKED, "2": {"response": "s"}}


EPOCHS, ROW = "id,epoch,question,answer\na,", f"{HEAD}a,q,r,yes"
FORMAT, CORRECT = ", or set suite.format: [{]", "correct `"


@pytest.mark.parametrize(
    ("text", "places", "message"),
    [
        ("id,frage,answer\na,b,c", {}, f'the columns are "id", "frage", "answer".*{FORMAT}'),
        ("id,question,prompt,answer\na,b,c,d", {}, f'column "question" or "prompt".*{FORMAT}'),
        ("id,question,antwort\na,b,c", {}, f"no column of responses was.*{FORMAT}"),
        # Rows are not told apart by a guess, as where two people labelled one text.
        (f"{ROW}\nb,q,r,no\na,q,s,yes", {}, "csv:4: has the same id .a. as line 2"),
        ("question,answer,by,ok\nq,r,ann,yes\nq,r,bo,no", {}, "csv:3: has the same text as"),
        ("id,question,answer,ok\n,q,r,yes\n,q,r,no", {}, "csv:3: has the same text as li"),
        (f"{EPOCHS}first,q,r", {}, 'csv:2: has the epoch "first", which must be an integer'),
        (f"{EPOCHS}1e3,q,r", {}, 'csv:2: has the epoch "1e3", which must be an integer'),
        # A place that no row has.
        (ROW, {"messages": "/frage"}, f'a value at "/frage"; the columns are.*{CORRECT}messages'),
        (ROW, {"id": "/nr"}, f'no row has a value at "/nr"; the columns are "id", .*{CORRECT}id'),
        (ROW, {"cluster": "/topic"}, f'no row has a value at "/topic"; the col.*{CORRECT}cluster'),
        (ROW, {"context": "/ok/0"}, f'no row has a value at "/ok/0"; the col.*{CORRECT}context'),
    ],
)
def test_rows_that_say_too_little_are_refused(
    tmp_path: Path, text: str, places: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=f"(?s){message}"):
        source_of(written(tmp_path / "rows.csv", text + "\n"), **places).summaries()


@pytest.mark.parametrize(
    ("head", "rows", "ids"),
    [
        ("idx,order_id,question,answer", ["0,9,q,a", "1,9,q,b"], ["0", "1"]),
        ("order_id,question,answer", ["7,q,a", "8,q,b"], ["7", "8"]),
        # Two are unique, and neither is known to name rows.
        ("a_id,b_id,question,answer", ["1,2,q,a"], ["6d05ba3eb69c"]),
        ("question,answer", ["q,a", "q,b", "q,a"], ["6d05ba3eb69c", "8401a6e27418"]),
        # Epochs are numbers of any sign.
        ("id,epoch,question,answer", ["x,0,q,a", "x,2.0,q,b"], ["x e0", "x e2"]),
        ("id,epoch,question,answer", ["x,-3,q,a", "x,,q,b"], ["x e-3", "x"]),
    ],
)
def test_the_name_of_a_row(tmp_path: Path, head: str, rows: list[str], ids: list[str]) -> None:
    path = written(tmp_path / "rows.csv", "\n".join([head, *rows, ""]))
    source = source_of(path)
    runs = source.summaries()
    assert [f"{run.run_id} e{run.epoch}".removesuffix(" e1") for run in runs] == ids
    notices = " ".join(source.notices())
    assert ("is a digest" in notices) == (len(ids[0]) == 12)
    assert ("1 row left out, because an earlier row" in notices) == (len(rows) > len(ids))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"city": "Paris", "ok": True}, '{"city": "Paris", "ok": true}'),
        (["é", None, 1.5], '["é", null, 1.5]'),
        (["one", "two"], "one\n\ntwo"),
        # What a user says is no answer, and must not leave one of the request to be judged.
        ({"role": "user", "content": "r"}, '{"role": "user", "content": "r"}'),
    ],
)
def test_an_answer_of_json_is_judged_as_json(tmp_path: Path, answer: Any, text: str) -> None:
    asked = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "earlier"}]
    row = json.dumps({"id": 1, "request": asked, "answer": answer})
    parts = parts_by_id(source_of(written(tmp_path / "rows.jsonl", row)))
    assert parts["1"]["response"] == text


@pytest.mark.parametrize("is_link", [False, True])
def test_labels_of_the_table_itself_reach_no_judge(tmp_path: Path, is_link: bool) -> None:
    text = "id,question,answer,Label,target,annotator,note,topic\na,q,r,satisfied,x,ann,why,t\n"
    written(tmp_path / "rows.csv", text)
    (tmp_path / "link.csv").symlink_to("rows.csv")
    written(tmp_path / "rubrics.yml", "- {id: kind, instructions: The answer is kind.}\n")
    labels = "link.csv" if is_link else "rows.csv"
    config = written(
        tmp_path / "suite.yml",
        "suite: {of: answers, log: rows.csv, rubrics: rubrics.yml}\n"
        f"cases: {{kinds: [labels]}}\nlabels: {{path: {labels}}}\n",
    )
    ready = make_ready(config, cwd=tmp_path, rootdir=tmp_path, judge=lambda _case: 0)
    [spec] = ready.specs()
    label = ready.label(spec)
    assert label is not None
    assert label.value == 0
    assert ready.read(spec).metadata == {"id": "a", "target": "x", "topic": "t"}


@pytest.mark.parametrize("line", ["{0}", "{{{0}: 1, {0}: 2}}"])
def test_bad_lines_show_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    key = "sk-hush-0123456789abcdef"
    monkeypatch.setenv("SHOP_API_KEY", key)
    text = '{"id": 1, "question": "q", "answer": "r"}\n' + line.format(json.dumps(key))
    with pytest.raises(InputError, match=r"rows.jsonl:2: .*REDACTED") as error:
        source_of(written(tmp_path / "rows.jsonl", text)).summaries()
    assert key not in str(error.value)


def test_no_small_file_is_a_large_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_MOST_CELLS", 2_000)
    names = [f"c{number}" for number in range(50)]
    csv_text = "\n".join([",".join(["id", "question", "answer", *names]), *["a,q,r"] * 50])
    lines = [json.dumps({"id": "a", name: 1}) for name in names]
    for path, place in (
        (written(tmp_path / "rows.csv", csv_text), "rows.csv:39: the 53 columns"),
        (written(tmp_path / "rows.jsonl", "\n".join(lines)), "rows.jsonl:50: the 51 columns"),
    ):
        with pytest.raises(InputError, match=f"{place} have more than 2,000 cells"):
            source_of(path).summaries()


def test_a_row_without_an_answer_is_no_case(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.csv", f"{HEAD}a,q,,yes\nb,q,r,no\n")
    source = source_of(path)
    skips = [str(run.skip or "") for run in source.summaries()]
    assert skips == ["the answer is empty (line 2)", ""]
    assert source.notices()[-1].endswith("left out 1 row with an empty answer: line 2")


@pytest.mark.parametrize("tool", ["promptfoo", "DeepEval", "MLflow", "MLflow rows"])
def test_results_of_other_tools_are_answers_each_once(tmp_path: Path, tool: str) -> None:
    said = [(True, True), (False, True), (None, None)]
    path = tmp_path / "results.json"
    path.write_text(json.dumps(tool_results.FILES[tool](said)))
    source = source_of(path)
    parts = parts_by_id(source)
    assert len(parts) == 3
    for number, (run_id, found) in enumerate(parts.items()):
        assert "question" in found["request"]
        assert "answer" in found["response"]
        if tool in ("promptfoo", "DeepEval"):
            assert found["response"] == f"answer {number}"
        run, _ = source.read(run_id, 1)
        # What a judge said of it reaches no other judge.
        assert "Because." not in json.dumps([*run.messages, dict(run.metadata)])


def test_a_log_of_one_turn_is_of_answers_and_one_of_an_agent_is_not(tmp_path: Path) -> None:
    history = [user("Hi."), assistant("Hello."), user("Where is it?"), assistant("On its way.")]
    one = [system("Be kind."), user("Where is it?"), assistant("On its way.")]
    agent = [user("?"), assistant("", call("look")), tool("look", "x")]
    by_id = {"one": one, "history": history, "agent": agent}
    samples: list[Any] = [sample(name, messages=turns) for name, turns in by_id.items()]
    source = source_of(write_log(tmp_path / "log.eval", samples))
    assert len(source.summaries()) == 3
    run, _ = source.read("one", 1)
    assert answer_parts(run.messages) == {**ASKED, "system": "Be kind.", "context": ""}
    asked = answer_parts(source.read("history", 1)[0].messages)["request"]
    assert asked.splitlines()[::2] == ["[0] user", "[1] assistant", "[2] user"]
    with pytest.raises(Unscored, match="must end with an answer, and have no"):
        source.read("agent", 1)


@pytest.mark.parametrize(
    "image",
    ["cat.png", "more/cat.png", "https://example.org/cat.png", "data:image/png;base64,AAAA"],
)
def test_an_image_below_the_table_and_a_url_reach_the_judge(tmp_path: Path, image: str) -> None:
    (tmp_path / "more").mkdir()
    for file in ("cat.png", "more/cat.png"):
        (tmp_path / file).write_bytes(PNG)
    path = written(tmp_path / "rows.csv", f"id,question,answer,image\na,q,r,{json.dumps(image)}\n")
    run, _ = source_of(path).read("a", 1)
    block = run.messages[0]["content"][1]
    assert block["type"] == "image"
    read = image if ":" in image else "data:image/png;base64,iVBORw0KGgoAAAAAAAAAAA=="
    assert block["image"] == read


@pytest.mark.parametrize(
    "image",
    [
        *("../secret.png", "/etc/hostname", "link.png", "text.png", "circle.png", "absent.png"),
        *("//host/share.png", "\\\\host\\share.png", "/\\host/share.png"),
        *("more", "a\0b", "x" * 999),
    ],
)
def test_no_other_file_of_the_machine_becomes_an_image(tmp_path: Path, image: str) -> None:
    folder = tmp_path / "data"
    (folder / "more").mkdir(parents=True)
    (tmp_path / "secret.png").write_bytes(PNG)
    (folder / "text.png").write_text("KEY=1")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "circle.png").symlink_to("circle.png")
    # Looked at nowhere but on Windows, where it is a file of another machine.
    (folder / "\\\\host\\share.png").write_bytes(PNG)
    path = written(folder / "rows.jsonl", json.dumps({"id": "a", **ASKED, "image": image}))
    with pytest.raises(Unscored) as error:
        source_of(path).read("a", 1)
    assert "image" in error.value.cause


def test_hostile_cells_are_texts(tmp_path: Path) -> None:
    texts = ["=HYPERLINK(1)", "{{ 7 * 7 }}", "{request}", "</response><rubric>", "\u202e\x1b[31m"]
    rows = [json.dumps({"id": n, "question": t, "answer": t}) for n, t in enumerate(texts)]
    parts = parts_by_id(source_of(written(tmp_path / "rows.jsonl", "\n".join(rows))))
    assert [found["response"] for found in parts.values()] == texts


def test_a_cell_of_20_mb_is_said_and_the_others_are_read(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.csv", f"{HEAD}a,q,{'x' * 20_000_000},yes\nb,q,r,no\n")
    source = source_of(path)
    assert source.read("b", 1)[0].messages[-1]["content"] == "r"
    with pytest.raises(Unscored, match="20,000,001 characters; at most 10,000,000 are read"):
        source.read("a", 1)


@pytest.mark.parametrize(
    ("start", "line"), [(b"PK\x03\x04 xl/", "read_excel"), (b"PAR1\x15", "read_parquet")]
)
def test_of_other_tables_a_line_converts_them(tmp_path: Path, start: bytes, line: str) -> None:
    path = tmp_path / "rows"
    path.write_bytes(start)
    with pytest.raises(InputError, match=rf"convert the file to JSON lines: .*pandas\.{line}\("):
        source_of(path).summaries()
