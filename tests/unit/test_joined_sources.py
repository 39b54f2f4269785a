"""Several files as one source: folders, globs, lists, and ids that are in two of them."""

import gzip
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh import sources
from pytest_jrh.config.schema import LabelSection
from pytest_jrh.config.suite import matching
from pytest_jrh.core import InputError
from pytest_jrh.core.cases import Rubric
from pytest_jrh.core.documents import read_text
from pytest_jrh.core.transcript import message_text
from pytest_jrh.people.labels import Joiner, LabelRow
from pytest_jrh.sources import open_sources
from pytest_jrh.sources.eval_logs import EvalLog
from pytest_jrh.sources.source import Source, with_clusters
from tests.support.configs import AGENT, Folder, changed
from tests.support.logs import rewrite, sample, user, write_log


def opened(*paths: Path) -> Source:
    return open_sources(paths)


def names(source: Source) -> list[str]:
    return [run.run_id for run in source.summaries()]


def clusters(source: Source) -> list[str | None]:
    return [run.cluster for run in source.summaries()]


def text_of(source: Source, name: str) -> str:
    """The first message of a run."""
    return message_text(source.read(name, 1)[0].messages[0])


def write(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


def write_lines(path: Path, *ids: Any) -> Path:
    turns = [{"role": "assistant", "content": f"From {path.name}."}]
    path.parent.mkdir(parents=True, exist_ok=True)
    # What is the same in two files is one run.
    run = {"messages": turns, "metadata": {"folder": path.parent.name}}
    path.write_text("".join(json.dumps({"id": each, **run}) + "\n" for each in ids))
    return path


def test_a_folder_is_all_transcripts_below_it_in_order(tmp_path: Path) -> None:
    write_log(tmp_path / "b.eval", [sample("b")])
    write_lines(tmp_path / "a" / "runs.jsonl", "a")
    write_log(tmp_path / "c.json", [sample("c")])
    write_lines(tmp_path / ".hidden.jsonl", "x")
    write_lines(tmp_path / ".git" / "x.jsonl", "x")
    (tmp_path / "notes.txt").write_text("x")
    write(tmp_path / "rubrics.json", [{"id": "r", "instructions": "Be kind."}])
    write(tmp_path / "package.json", {"name": "x"})
    source = opened(tmp_path)
    assert names(source) == ["a", "b", "c"]
    assert text_of(source, "a") == "From runs.jsonl."
    [notice] = source.notices()
    assert notice.endswith(": left out 2 files without transcripts: package.json, rubrics.json")


def test_a_folder_has_one_conversation_a_file(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": 'Say {"messages": [.'}]
    write(tmp_path / "a.json", {"score": [1], "messages": turns})
    write(tmp_path / "b.json", {"id": "7", "messages": turns})
    write(tmp_path / "c.json", {"request": {"messages": turns}, "id": "c"})
    write(tmp_path / "list.json", {"runs": [{"messages": turns}]})
    write(tmp_path / "text.json", {"text": '"messages": [{"role": '})
    source = opened(tmp_path)
    assert (names(source), clusters(source)) == (["a", "7", "c"], [None] * 3)
    assert text_of(source, "a") == turns[0]["content"]
    assert "left out 2 files" in source.notices()[0]
    assert names(opened(tmp_path / "a.json")) == ["a"]
    with pytest.raises(InputError, match=r"a list under `messages`"):
        opened(tmp_path / "list.json").summaries()


def test_files_that_cannot_be_used_are_left_out_and_named(tmp_path: Path) -> None:
    write_lines(tmp_path / "whole.jsonl", "a")
    write_log(tmp_path / "whole.eval", [sample("b")])
    folder = tmp_path / "bad"
    folder.mkdir()
    write_log(folder / "started.json", [])
    write_log(folder / "started.eval", [])
    write_log(folder / "killed.eval", [sample("x")])
    rewrite(folder / "killed.eval", lambda members: members.__delitem__("header.json"))
    (folder / "cut.eval").write_bytes((tmp_path / "whole.eval").read_bytes()[:-40])
    (folder / "cut.json").write_text('[{"id": "c", "messages": [{"role": "user", "con')
    for name in ("empty.jsonl", "empty.json"):
        (folder / name).touch()
    source = opened(tmp_path)
    assert names(source) == ["b", "a"]
    assert [run.key for run in source.fields()] == [("b", 1), ("a", 1)]
    not_one, unusable = source.notices()
    assert not_one.endswith("1 file without transcripts: bad/empty.json")
    assert unusable.startswith("left out 6 files that cannot be used: bad/cut.eval: ")
    assert "bad/killed.eval: the evaluation has not ended, or was killed" in unusable
    assert unusable.endswith("is an Inspect log without samples (its status: success)")
    with pytest.raises(InputError) as none_usable:
        opened(folder).summaries()
    named = {Path(str(problem.file)).name for problem in none_usable.value.problems}
    assert named == {file.name for file in folder.iterdir()} - {"empty.json"}


@pytest.mark.parametrize("target", ["nowhere.jsonl", "link.jsonl", "nowhere/runs.jsonl"])
def test_a_link_that_leads_nowhere_is_a_log_that_is_missing(tmp_path: Path, target: str) -> None:
    write_lines(tmp_path / "whole.jsonl", "a")
    (tmp_path / "link.jsonl").symlink_to(target)
    (tmp_path / "link.json").symlink_to(target)
    source = opened(tmp_path)
    assert names(source) == ["a"]
    not_one, unusable = source.notices()
    assert not_one.endswith("1 file without transcripts: link.json")
    assert unusable.startswith("left out 1 file that cannot be used: link.jsonl: ")


def test_what_transcripts_do_not_show_is_counted_once_a_run(tmp_path: Path) -> None:
    audio = {"type": "audio", "audio": "QUJD", "format": "mp3"}
    write_log(tmp_path / "a.eval", [sample("1", messages=[user([audio, audio])])])
    turn = {"role": "user", "content": "Hi.", "speaker": "bob"}
    write(tmp_path / "b.json", {"id": "2", "messages": [turn]})
    source = opened(tmp_path)
    assert source.notices() == []
    for name in ("1", "2", "1"):
        source.read(name, 1)
    assert source.notices() == [
        "a.eval: parts of messages that the judge does not see: [audio] (2)",
        "b.json: parts of messages that the judge does not see: speaker (1)",
    ]


@pytest.mark.parametrize("messages", ["conversation", "history", "run/turns"])
def test_conversation_is_read_whatever_messages_are_called(messages: str, tmp_path: Path) -> None:
    turns: Any = [{"content": [{"type": "text", "text": "Hi."}], "role": "user"}]
    for name in reversed(messages.split("/")):
        turns = {name: turns}
    # Longer than what is looked at of other files.
    tools = [{"name": "f", "description": "x" * 70_000}]
    file = write(tmp_path / "one.json", {"task_id": 7, "tools": tools, **turns})
    source = open_sources([file], input_format=sources.format_of([file]))
    assert names(source) == ["7"]
    assert text_of(source, "7") == "Hi."


def test_a_link_in_a_circle_is_not_followed_and_a_file_counts_once(tmp_path: Path) -> None:
    write_lines(tmp_path / "runs.jsonl", "a", "b")
    (tmp_path / "again").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "runs.jsonl")
    assert names(opened(tmp_path, tmp_path / "runs.jsonl")) == ["a", "b"]
    assert matching(tmp_path, "**/*.jsonl") == [tmp_path / "link.jsonl", tmp_path / "runs.jsonl"]


def test_equal_ids_of_a_second_file_are_followed_by_its_name(tmp_path: Path) -> None:
    one = write_lines(tmp_path / "gpt.jsonl", 1, 2, "own")
    two = write_lines(tmp_path / "claude.jsonl", 1, 2)
    source = opened(one, two)
    assert names(source) == ["1", "2", "own", "1@claude", "2@claude"]
    assert clusters(source) == ["1", "2", None, "1", "2"]
    run, _ = source.read("1@claude", 1)
    assert (run.run_id, run.sample_id) == ("1@claude", 1)
    assert text_of(source, "1@claude") == "From claude.jsonl."
    assert text_of(source, "1") == "From gpt.jsonl."
    assert source.notices() == [
        "2 case ids found in more than one file; in each file but the first, the file's name is "
        "added to the id, as in 1@claude",
    ]


def test_files_that_are_added_rename_no_run(tmp_path: Path) -> None:
    ids = {"may/runs": (1, 2), "may/other": (2, 3), "june/other": (3,), "june/runs": (1,)}
    files = [write_lines(tmp_path / f"{name}.jsonl", *ids[name]) for name in ids]
    runs = ["1", "2", "2@other", "3", "3@june/other.jsonl", "1@june/runs.jsonl"]
    for number, of_them in ((2, 4), (3, 5), (4, 6)):
        assert names(opened(*files[:number])) == runs[:of_them]


def test_a_label_whose_run_the_order_of_file_names_alone_decides_is_refused(tmp_path: Path) -> None:
    """A file that is added before the labelled one takes its ids."""
    labelled = write_lines(tmp_path / "b.jsonl", 1, 2)
    source = opened(write_lines(tmp_path / "a.jsonl", 1), labelled)
    rubrics = {"kind": Rubric("kind", "Be kind.")}
    unclear = source.unclear_names()
    joiner = Joiner(source.summaries(), rubrics, aliases=source.aliases(), unclear=unclear)
    named = enumerate(("1", "1@a", "1@b", "2"), 2)
    rows = [LabelRow(name, label=1, line=line) for line, name in named]
    labels = joiner.join(rows, LabelSection(), "labels")
    assert list(labels.labels) == [("kind", "1", 1), ("kind", "1@b", 1), ("kind", "2", 1)]
    said = 'labels:2: run_id: got "1", which can be several cases\n    write the full id'
    assert [*map(str, labels.problems)] == [f"{said} of one case, such as 1@a, 1@b"]


@pytest.mark.parametrize(
    ("times", "first", "is_clear"),
    [
        (["2026-05-01T10:00:00", "2026-05-02T10:00:00", "2026-05-02T10:00:00"], 0, True),
        (["2026-05-01T10:00:00+00:00", "2026-06-01T00:00:00", "2026-05-01T11:30+02:00"], 2, True),
        (["2026-05-01T10:00:00", "2026-05-02T10:00:00", "yesterday"], 0, False),
        ([None, None, None], 0, False),
    ],
)
def test_the_file_that_was_begun_first_keeps_its_ids_and_else_an_id_is_unclear(
    tmp_path: Path, times: list[str | None], first: int, is_clear: bool
) -> None:
    files = []
    for number, created in enumerate(times):
        path = write_log(tmp_path / f"{number}.json", [sample(1)])
        log = json.loads(path.read_bytes())
        log["eval"] |= {"created": created}
        files.append(write(path, log))
    source = opened(*files)
    others = {f"1@{number}" for number in range(3) if number != first}
    assert {*names(source)} == {"1", *others}
    assert list(source.unclear_names()) == ([] if is_clear else ["1"])


def test_a_name_with_a_file_is_unclear_where_several_files_are_called_so(tmp_path: Path) -> None:
    paths = [f"{month}/{name}.jsonl" for name in ("other", "runs") for month in ("june", "may")]
    source = opened(*(write_lines(tmp_path / path, 1) for path in paths))
    june, may, june_runs, may_runs = (f"1@{path}" for path in paths)
    unclear = {"1": [june, may, june_runs, may_runs], "1@other": [june, may]}
    assert source.unclear_names() == {**unclear, "1@runs": [june_runs, may_runs]}


def test_an_id_that_another_run_already_has_is_refused(tmp_path: Path) -> None:
    one = write_lines(tmp_path / "a.jsonl", 1)
    two = write_lines(tmp_path / "b.jsonl", 1, "1@b")
    with pytest.raises(InputError, match=r"two cases would be called .1@b."):
        opened(one, two).summaries()


def test_too_many_files_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [write_log(tmp_path / f"{n}.eval", [sample(n)]) for n in range(3)]
    closed: list[Path] = []
    monkeypatch.setattr(sources, "_MOST_OPEN", 2)
    monkeypatch.setattr(EvalLog, "close", lambda self: closed.append(self.path))
    assert names(opened(*logs)) == ["0", "1", "2"]
    assert closed == [logs[0]]
    monkeypatch.setattr(sources, "MOST_FILES", 2)
    with pytest.raises(InputError, match="folder with more than 2 files"):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("given", "found"), [("**/*.jsonl", "a b more/c"), (["b.jsonl", "a.jsonl"], "b a")]
)
def test_the_config_names_globs_and_lists(folder: Folder, given: Any, found: str) -> None:
    for name in ("a.jsonl", "b.jsonl", "more/c.jsonl", "more/.d.jsonl"):
        write_lines(folder.root / name, name)
    suite = folder.load(changed(f"{AGENT}.input_log_path", given))
    assert suite.logs == [folder.root / f"{name}.jsonl" for name in found.split()]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [("*.eval", "matches no file in"), ([7], "got 7; must be a path"), (["no.eval"], "not exist")],
)
def test_logs_that_are_not_there_are_refused(folder: Folder, given: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        folder.load(changed(f"{AGENT}.input_log_path", given))


def test_cluster_key_holds_over_all_files_and_before_their_own_clusters(tmp_path: Path) -> None:
    turns = [{"role": "assistant", "content": "Hi."}]
    for name in ("a", "b"):
        value = {"id": 1, "messages": turns, "cluster": "own", "metadata": {"task": f"t-{name}"}}
        write(tmp_path / f"{name}.jsonl", value)
    write_log(tmp_path / "c.eval", [sample(2, metadata={"task": "t-a"})])
    source = opened(tmp_path)
    assert clusters(source) == ["own", "own", None]
    named = {run.run_id: run.cluster for run in with_clusters(source, "task")}
    assert named == {"1": "t-a", "1@b": "t-b", "2": "t-a"}


def test_scores_and_other_names_of_runs_hold_over_all_files(tmp_path: Path) -> None:
    for name, value in (("a", "C"), ("b", "I")):
        scores = {"check": {"value": value}}
        samples = [sample(1, scores=scores, uuid=f"u-{name}"), sample(name, uuid="same")]
        write_log(tmp_path / f"{name}.eval", samples)
    source = opened(tmp_path)
    found = {run.key: run.scores for run in source.fields() if run.scores}
    assert found == {("1", 1): {"check": "C"}, ("1@b", 1): {"check": "I"}}
    of_files = {"1@a": ("1", None), "1@b": ("1@b", None)}
    assert source.aliases() == {"u-a": ("1", 1), "u-b": ("1@b", 1), **of_files}


def chat(*texts: str) -> list[dict[str, str]]:
    """What a user and the assistant say in turn."""
    roles = ["user", "assistant"] * len(texts)
    return [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]


def request(*texts: str, **fields: Any) -> dict[str, Any]:
    """A line of a proxy's log, whose answer is written otherwise than the next request has it."""
    *asked, answer = chat(*texts)
    choices: Any = [{"message": {**answer, "refusal": None, "annotations": []}}]
    return {**fields, "request": {"messages": asked}, "response": {"choices": choices}}


def as_blocks(*texts: str) -> dict[str, Any]:
    """A line of a log of Anthropic's API; each request has another system prompt."""
    *asked, answer = chat(*texts)
    parts = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": answer["content"]}]
    said = {**answer, "content": parts}
    last = {"type": "text", "text": asked[-1]["content"], "cache_control": {"type": "ephemeral"}}
    turns: list[Any] = [*asked[:-1], {**asked[-1], "content": [last]}]
    return {"request": {"system": f"It is {len(asked)}.", "messages": turns}, "response": said}


def plain(*texts: str, **fields: Any) -> dict[str, Any]:
    return {**fields, "messages": chat(*texts)}


def as_lines(lines: list[Any]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


ONE, TWO, THREE, OTHER = "ab", "abcd", "abcdef", "xy"


@pytest.mark.parametrize(
    ("files", "runs", "clustered"),
    [
        ([[request(*ONE), request(*TWO), request(*THREE)]], [THREE], 0),
        ([[request(*THREE, id="z"), request(*ONE, id="x"), request(*TWO, id="y")]], [THREE], 0),
        ([[request(*ONE), request(*TWO)], [request(*THREE)]], [THREE], 0),
        ([[as_blocks(*ONE), as_blocks(*TWO)]], [TWO], 0),
        ([[request(*ONE), request(*ONE), request(*TWO), request(*TWO)]], [TWO], 0),
        # Of two conversations that begin with one question.
        ([[request(*t) for t in (ONE, "ax", "axcy", TWO)]], ["axcy", TWO], 0),
        # A question that was edited, and an answer that was made again.
        ([[request(*t) for t in (ONE, TWO, "abxy")]], [TWO, "abxy"], 2),
        ([[request(*t) for t in (ONE, TWO, "abcy")]], [TWO, "abcy"], 2),
        # What has names of its own is kept.
        ([[plain(*ONE, id=1), plain(*TWO, id=2), plain(*"ax", id=3)]], [ONE, TWO, "ax"], 2),
        ([[plain(*ONE, id=1), plain(*ONE, id=2)]], [ONE, ONE], 2),
        # A backup, older or of today.
        ([[plain(*t, id=1), plain(*OTHER, id=2)] for t in (TWO, ONE)], [TWO, OTHER], 0),
        ([[plain(*ONE)], [plain(*ONE)]], [ONE], 0),
        ([[plain(*ONE, id=1, metadata={"model": name})] for name in ("m", "n")], [ONE, ONE], 2),
    ],
)
def test_run_counts_once(tmp_path: Path, files: list[Any], runs: list[str], clustered: int) -> None:
    """Each turn is a letter."""
    for number, lines in enumerate(files):
        (tmp_path / f"{number}.jsonl").write_text(as_lines(lines))
    source = opened(tmp_path)
    found = []
    for name in names(source):
        said = source.read(name, 1)[0].messages
        found.append("".join(message_text(part) for part in said if part["role"] != "system"))
    assert found == runs
    shared = [cluster for cluster in clusters(source) if cluster]
    assert (len(shared), len(set(shared))) == (clustered, min(clustered, 1))
    is_less = sum(map(len, files)) > len(runs)
    assert any("left out" in notice for notice in source.notices()) == is_less


def test_a_label_of_a_request_that_is_no_run_names_the_run(tmp_path: Path) -> None:
    lines = as_lines([request(*ONE, id="x"), request(*TWO, id="y")])
    (tmp_path / "log.jsonl").write_text(lines)
    source = opened(tmp_path)
    assert source.unclear_names()["x"] == ("y",)
    said = "1 case left out, because another case has all of the same messages: x (log)"
    assert source.notices() == [said]


def test_a_sample_that_a_retry_or_a_converted_log_has_again_counts_once(tmp_path: Path) -> None:
    ended = [sample(number, uuid=f"u-{number}") for number in (1, 2, 3)]
    write_log(tmp_path / "a.eval", [ended[0], sample(2, uuid="u-2", error="died")])
    write_log(tmp_path / "b.eval", ended)
    write_log(tmp_path / "b.json", ended)
    write_log(tmp_path / "other.eval", [sample(1, uuid="u-4")])
    source = opened(tmp_path)
    assert names(source) == ["1", "2", "3", "1@other"]
    named = {name: key for name, key in source.aliases().items() if name.startswith("u-")}
    assert named == {f"u-{n}": (str(n), 1) for n in (1, 2, 3)} | {"u-4": ("1@other", 1)}
    assert source.notices()[0].startswith("5 cases left out, because another case has all")
    assert {run.key for run in source.fields()} == {(run.run_id, 1) for run in source.summaries()}


def _archive(*names: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return content.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.csv", b"SQLite format 3\x00\x10", "is an SQLite database"),
        ("t.csv", b"%PDF-1.7", "is a PDF"),
        ("t.xlsx", _archive("[Content_Types].xml", "xl/workbook.xml"), "is an Excel file"),
        ("by_xlsxwriter.csv", _archive("xl/worksheets/sheet1.xml"), "is an Excel file"),
        ("old.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is an office document"),
        ("t.ods", _archive("mimetype", "content.xml"), "is an office document"),
        ("runs.zip", _archive("runs.jsonl"), "is a zip archive"),
        ("runs.tar", b"runs.jsonl".ljust(257, b"\0") + b"ustar", "is an archive (tar)"),
        ("runs.jsonl", gzip.compress(b"{}", mtime=0), "is compressed (gzip)"),
        ("runs.jsonl", b"\x28\xb5\x2f\xfd\x04", "is compressed (bzip2, xz or zstd)"),
        ("t.parquet", b"PAR1\x15\x04\x15", "pandas.read_parquet(sys.argv[1])"),
        ("runs.json", b"\xef\xbb\xbf\n<!DOCTYPE html>\n<html>", "is an HTML page"),
        ("runs.jsonl", b"<html><body>Sign in, please</body>", "is an HTML page"),
        ("runs.eval", b"version https://git-lfs.github.com/spec/v1\n", "run: git lfs pull"),
    ],
)
def test_no_text_is_called_what_it_is(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for read in (lambda: opened(path).summaries(), lambda: read_text(path, name)):
        with pytest.raises(InputError, match=re.escape(said)):
            read()


def test_a_table_is_not_called_a_damaged_log(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,answer\n1,yes\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"pytest_jrh label .*rows\.csv"):
        opened(path).summaries()
    # A column may be called as the file of a tool begins.
    path.write_text("PAR1,ARROW1\n1,2\n", encoding="utf-8")
    assert read_text(path, "rows.csv") == "PAR1,ARROW1\n1,2\n"
