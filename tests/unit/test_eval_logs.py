import shutil
import time
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.config.suite import sample as sample_ids
from pytest_jrh.core import InputError
from pytest_jrh.core.cases import Unscored
from pytest_jrh.sources import load_inspect_eval_runs
from pytest_jrh.sources.eval_logs import EvalLog
from pytest_jrh.sources.source import Head
from tests.support.logs import (
    IMAGE,
    assistant,
    call,
    conversation,
    edit_sample,
    rewrite,
    sample,
    user,
    write_log,
)

HOSTILE_IDS = ("../../x", "a::b[c]", "n" * 300, "Case", "case", "a b/ç")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="session")
def made(folder: Path) -> Path:
    picture = user([{"type": "text", "text": "Look:"}, {"type": "image", "image": IMAGE}])
    about = {"store": {"seen": 3}, "metadata": {"tier": "gold", "tags": [1, None]}}
    samples = [
        sample("zulu"),
        sample("alpha", 1, conversation("Bo"), **about),
        sample("alpha", 2, conversation("Cy"), target=["shipped", "sent"]),
        sample(7, input=[user("first"), assistant("no"), user("second")]),
        sample("dead", messages=[], error="the sandbox did not start\nat line 3"),
        sample("late", error="failed at the end"),
        sample("picture", messages=[picture, assistant("Nice.", call("zoom", by=2))]),
        *(sample(name) for name in HOSTILE_IDS),
    ]
    return write_log(folder / "made.eval", samples)


@pytest.fixture
def log_copy(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made, tmp_path / "copy.eval"))


@pytest.fixture(scope="session")
def as_json(made: Path, folder: Path) -> Path:
    from inspect_ai.log import read_eval_log, write_eval_log

    write_eval_log(read_eval_log(made), folder / "made.json")
    return folder / "made.json"


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        EvalLog(path).summaries()
    (problem,) = caught.value.problems
    assert problem.file == str(path)
    return str(problem)


def fault(path: Path, run_id: str, epoch: int = 1) -> str:
    with pytest.raises(Unscored) as caught:
        EvalLog(path).read(run_id, epoch)
    assert (caught.value.outcome, caught.value.stage) == ("input_error", "input")
    assert str(path) in caught.value.cause
    return caught.value.cause


def test_summaries_come_in_the_logs_own_order_with_epochs_apart(made: Path) -> None:
    summaries = EvalLog(made).summaries()
    runs = [(run.run_id, run.epoch) for run in summaries]
    assert runs[:4] == [("zulu", 1), ("alpha", 1), ("alpha", 2), ("7", 1)]
    assert [run_id for run_id, _ in runs[-6:]] == list(HOSTILE_IDS)
    said = "ended in an error before its first message: the sandbox did not start at line 3"
    skips = {run.run_id: str(run.skip) for run in summaries if run.skip}
    assert skips == {"dead": f"the sample {said}"}


def test_a_run_has_its_messages_input_target_and_metadata(made: Path) -> None:
    log = EvalLog(made)
    run, _ = log.read("alpha", 1)
    assert list(run.messages) == conversation("Bo")
    assert (run.run_id, run.epoch, run.sample_id) == ("alpha", 1, "alpha")
    assert (run.input, run.target, run.notes) == ("Where is my order?", "shipped", ())
    assert run.metadata == {"tier": "gold", "tags": [1, None]}
    run, _ = log.read("alpha", 2)
    assert run.messages[1]["content"] == "I am Cy. Where is my order?"
    assert run.target == "shipped\nsent"
    run, _ = log.read("7", 1)
    assert (run.sample_id, run.input) == (7, "first\nsecond")
    assert log.read("picture", 1)[0].messages[0]["content"][1]["image"] == IMAGE
    assert [log.read(name, 1)[0].sample_id for name in HOSTILE_IDS] == list(HOSTILE_IDS)


def test_what_older_logs_keep_elsewhere_is_put_back_and_text_made_storable(log_copy: Path) -> None:
    def age(data: dict[str, Any]) -> None:
        data["attachments"] = {"abc": "the long text"}
        data["messages"][0] = {"role": "system", "content": "attachment://abc"}
        data["messages"][1]["content"] = "a\ud800b\x00c"
        data["messages"][3].pop("error")
        data["messages"][3]["tool_error"] = "old failure"
        data["metadata"] = {"k\x00": 1}

    run, _ = EvalLog(edit_sample(log_copy, "zulu", age)).read("zulu", 1)
    # No id is made up.
    assert run.messages[0] == {"role": "system", "content": "the long text"}
    assert run.messages[3]["error"] == {"type": "unknown", "message": "old failure"}
    assert (run.messages[1]["content"], run.metadata) == ("a\ufffdbc", {"k": 1})
    said = "characters that cannot be stored were replaced (lone surrogates) or dropped (NULs)"
    assert run.notes == (f"3 {said}",)


def test_a_json_log_gives_the_same_runs(made: Path, as_json: Path) -> None:
    archive, plain = EvalLog(made), EvalLog(as_json)
    assert set(plain.summaries()) == set(archive.summaries())
    for run in archive.summaries():
        assert plain.read(*run.key)[0] == archive.read(*run.key)[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is neither JSON nor a zip archive (File is not a zip file)"),
        (b"{}", "is in no other known format\n    docs/logs.md"),
        (b'{"version": 2, "eval": {}, "samples": 7}', "`samples` is 7; must be a list"),
        (b'{"version": 2, "eval": {}, "samples": []} x', "{, but is not valid JSON: Extra"),
        # Ids that differ in type alone.
        (b'{"eval": {}, "samples": [{"id": 1, "epoch": 1}, {"id": "1", "epoch": 1}]}', "1 and '1'"),
        (b"PK\x05\x06" + b"\0" * 18, "no item named 'header.json'"),
    ],
)
def test_a_file_that_is_no_log_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "log.eval").write_bytes(content)
    refused = refusal(tmp_path / "log.eval")
    assert "cannot be read as an Inspect log: " in refused
    assert said in refused


def test_a_head_that_repeats_the_first_half_of_its_mark_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    for head in ('"version":' * 6_000, '"eval":' * 8_000, '"version":"eval":' * 3_000):
        path.write_text("{" + head)
        before = time.process_time()
        assert not Head(path).is_inspect_log
        assert time.process_time() - before < 1
    path.write_text('{"status": 1, "version": 2, "version": 2, "eval" : {')
    assert Head(path).is_inspect_log


def test_a_run_that_did_not_end_well_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text('{"eval": {}, "status": "error", "samples": [{"id": 1, "epoch": 1}]}')
    log = EvalLog(path)
    assert len(log.summaries()) == 1
    assert log.notices() == ["log.json: the status of the evaluation is error"]


def test_a_path_that_is_no_file_is_refused(tmp_path: Path) -> None:
    assert "cannot be read: No such file or directory" in refusal(tmp_path / "missing.eval")
    assert "cannot be read: Is a directory" in refusal(tmp_path)


def put(path: Path, name: str, data: bytes | None, compression: int = zipfile.ZIP_DEFLATED) -> Path:
    """Let a member of an archive be something else, or nothing."""

    def change(members: dict[str, bytes]) -> None:
        del members[name]
        if data is not None:
            members[name] = data

    return rewrite(path, change, compression=compression)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("header.json", None, "has not ended, or was killed\n    copy the log when"),
        ("summaries.json", None, "no item named 'summaries.json'"),
        ("header.json", b"{", "header.json cannot be used: Expecting prop"),
        ("summaries.json", b'[{"id": true, "epoch": 1}]', "sample 1 has the id true (must be text"),
    ],
)
def test_damaged_archive_is_named(name: str, data: bytes | None, said: str, log_copy: Path) -> None:
    assert said in refusal(put(log_copy, name, data))


def test_a_sample_that_cannot_be_read_is_an_input_error_of_its_own(log_copy: Path) -> None:
    for run in (("nobody", 1), ("zulu", 3)):
        assert "the log has no such sample" in fault(log_copy, *run)
    edit_sample(log_copy, "zulu", lambda data: data.pop("input"))
    assert "input Field required" in fault(log_copy, "zulu")
    for content in (b"{", b"[]", b"[" * 100_000):
        put(log_copy, "samples/zulu_epoch_1.json", content)
        assert "The case zulu (epoch 1)" in fault(log_copy, "zulu")
    put(log_copy, "samples/zulu_epoch_1.json", None)
    assert "no item named 'samples/zulu_epoch_1.json'" in fault(log_copy, "zulu")
    assert EvalLog(log_copy).read("late", 1)[0].messages == tuple(conversation())


def test_the_raw_sample_is_whole_only_for_those_who_take_it(made: Path) -> None:
    seen: list[Any] = []
    log = EvalLog(made)
    assert log.read("alpha", 1)[1] is None
    log.run(("alpha", 1), [lambda run, raw_sample: seen.append(raw_sample.store)])
    assert seen == [{"seen": 3}]


def test_runs_are_loaded_one_by_one_with_preprocessors(made: Path) -> None:
    preprocessors: list[Any] = ["drop_tool_messages", lambda run: {"input": run["run_id"]}]
    runs = list(load_inspect_eval_runs(str(made), preprocessors))
    assert [run.input for run in runs] == [run.run_id for run in EvalLog(made).summaries()]
    assert all(message["role"] != "tool" for run in runs for message in run.messages)
    assert runs[0].metadata == {"tool_messages_removed": 2}
    drawn = load_inspect_eval_runs(made, sample_num=4, seed=87)
    assert [run.run_id for run in drawn] == sample_ids([run.run_id for run in runs], 4, 87)


def test_many_threads_read_at_once(made: Path) -> None:
    log = EvalLog(made)
    wanted = [(run.run_id, run.epoch) for run in log.summaries()] * 8
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda key: log.read(*key)[0], wanted))
    assert [(run.run_id, run.epoch) for run in found] == wanted


def spaces(megabytes: int) -> bytes:
    return b"[" + b" " * (megabytes * 10**6) + b"]"


def test_a_part_that_unpacks_to_too_much_is_refused_unread(
    made: Path, as_json: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EvalLog, "most_mb", 2)
    for name in ("summaries.json", "header.json"):
        path = put(Path(shutil.copy(made, tmp_path)), name, spaces(3))
        assert path.stat().st_size < 100_000
        assert "is larger than 2 MB (unpacked)" in refusal(path)
    path = tmp_path / "big.json"
    path.write_bytes(as_json.read_bytes() + b" " * 3_000_000)
    assert "larger than 2 MB (unpacked)" in refusal(path)


@pytest.mark.parametrize(("compression", "megabytes"), [(zipfile.ZIP_DEFLATED, 10), (93, 150)])
def test_understated_size_gives_little(log_copy: Path, compression: int, megabytes: int) -> None:
    path = put(log_copy, "samples/zulu_epoch_1.json", spaces(200), compression)
    data = path.read_bytes()
    size = len(spaces(200)).to_bytes(4, "little")
    assert data.count(size) == 2
    path.write_bytes(data.replace(size, (1000).to_bytes(4, "little")))
    log = EvalLog(path)
    log.summaries()
    tracemalloc.start()
    with pytest.raises(Unscored, match=r"samples/zulu_epoch_1\.json"):
        log.read("zulu", 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < megabytes * 10**6


def test_attachments_are_counted_each_time(log_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "a" * 32

    def attach(data: dict[str, Any]) -> None:
        data["attachments"] = {key: "x" * 100_000}
        data["messages"] += [user(f"attachment://{key}") for _ in range(100)]

    path = edit_sample(log_copy, "zulu", attach)
    monkeypatch.setattr(EvalLog, "most_mb", 2)
    with pytest.raises(Unscored, match="its attachments would be larger than 2 MB"):
        EvalLog(path).run(("zulu", 1))
    monkeypatch.setattr(EvalLog, "most_mb", 20)
    assert EvalLog(path).run(("zulu", 1)).messages[-1]["content"] == "x" * 100_000
