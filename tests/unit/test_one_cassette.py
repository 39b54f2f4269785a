"""The cassettes of a test and rubric in one file: gathered, read, taken out again and pruned; and
the repeat number of a call."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from difflib import ndiff
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml
from vcr import serialize
from vcr.serializers import yamlserializer

from pytest_jrh.core import InputError
from pytest_jrh.core.calls import StageModel
from pytest_jrh.judges.judge import judge_response
from pytest_jrh.llm.calls import Answer, CallRequest
from pytest_jrh.llm.limits import file_lock
from pytest_jrh.recording import cassettes
from pytest_jrh.recording.cassettes import (
    SHARED,
    Cassette,
    cassettes_in,
    gather,
    prune,
    unused_cassettes,
)
from pytest_jrh.recording.tapes import difference

RUBRIC = "agent_positives/polite"
# What ends a block of YAML, or looks like an end of ours.
TEXTS = ["good\n\n", "\n...\nversion: 1\n", "- request:\n- b\n<<<<<<< x", "", "plain"]
RECORDS = """
import sys
from pathlib import Path
from tests.unit.test_one_cassette import gather, recorded

folder, name = Path(sys.argv[1]), sys.argv[2]
for number in range(1000):
    recorded(folder, f"{name}-{number}", ["an answer"])
    print(number, flush=True)
    if number % 3 == 2:
        assert gather(folder) == []
"""


def path_of(folder: Path, case: str) -> Path:
    return folder / RUBRIC / f"{case}.e1.judge-default.yaml"


def cassette_of(folder: Path, case: str, texts: Sequence[str]) -> Cassette:
    """A cassette of a case, with a call for each text, of which an empty one has no exchange."""
    cassette = Cassette(path_of(folder, case), complete=True)
    for number, text in enumerate(texts, 1):
        body = json.dumps({"case": case, "text": text})
        request = {"method": "POST", "uri": "http://127.0.0.1/", "body": body, "headers": {}}
        response = {"status": {"code": 200}, "headers": {}, "body": {"string": text}}
        exchanges = ({"request": request, "response": response},) if text else ()
        fingerprint = f"{case}-{number}"
        cassette.entries[fingerprint] = cassettes.RecordedCall(
            stage="judge",
            fingerprint=fingerprint,
            asked={"model": "m"},
            sequence=number,
            exchanges=exchanges,
            **asdict(Answer(text, cost=1e-05)),
        )
    return cassette


def recorded(folder: Path, case: str, texts: Sequence[str] = TEXTS) -> Cassette:
    """The same, on the disk."""
    cassette = cassette_of(folder, case, texts)
    cassette.save()
    return cassette


def gathered(folder: Path, *cases: str) -> Path:
    """The shared file, into which such cases were taken."""
    for case in cases:
        recorded(folder, case)
    assert gather(folder) == []
    return folder / RUBRIC / SHARED


def answers(folder: Path, case: str) -> list[str]:
    """What is recorded of a case, once in its head and once in its exchanges."""
    path = path_of(folder, case)
    calls = Cassette.load(path, interactions=True).entries
    assert [*calls] == [*Cassette.load(path).entries]
    for call in calls.values():
        strings = [exchange["response"]["body"]["string"] for exchange in call.exchanges]
        assert strings == [call.text] * bool(call.text)
    return [call.text for call in calls.values()]


def test_it_holds_all_cases_in_their_order_for_every_reader_of_yaml(tmp_path: Path) -> None:
    shared = gathered(tmp_path, "b", "c", "a")
    assert [*shared.parent.iterdir()] == [shared]
    text = shared.read_text(encoding="utf-8")
    data = yaml.safe_load(text)
    names = [f"{case}.e1.judge-default" for case in "abc"]
    assert [*data["metadata"]["jrh"]["cases"]] == names
    asked = [json.loads(exchange["request"]["body"]) for exchange in data["interactions"]]
    sent = [text for text in TEXTS if text]
    assert asked == [{"case": case, "text": text} for case in "abc" for text in sent]
    requests = serialize.deserialize(text, yamlserializer)[0]
    assert len(requests) == len(asked)
    for case in "abc":
        assert answers(tmp_path, case) == TEXTS
        assert Cassette.load(path_of(tmp_path, case)).complete
    assert answers(tmp_path, "none") == []
    assert cassettes_in(tmp_path) == [path_of(tmp_path, case) for case in "abc"]


def test_a_case_recorded_anew_changes_its_own_lines_alone(tmp_path: Path) -> None:
    shared = gathered(tmp_path, *"abc")
    before = shared.read_text(encoding="utf-8")
    recorded(tmp_path, "b", ["better", *TEXTS[1:]])
    # Its own file counts: a process may have died before they were gathered.
    assert answers(tmp_path, "b")[0] == "better"
    assert gather(tmp_path) == []
    assert answers(tmp_path, "b") == ["better", *TEXTS[1:]]
    after = shared.read_text(encoding="utf-8")
    changed = [line for line in ndiff(before.splitlines(), after.splitlines()) if line[0] in "-+"]
    assert 3 <= len([line for line in changed if line[0] == "+"]) <= 5
    words = ("good", "better", "string")
    assert all(any(word in line for word in words) for line in changed if line[2:])
    status = shared.stat()
    gather(tmp_path)
    assert shared.stat() == status


def test_what_somebody_records_into_keeps_its_own_file(tmp_path: Path) -> None:
    recorded(tmp_path, "a")
    recorded(tmp_path, "b")
    with file_lock(cassettes.lock_file(tmp_path, path_of(tmp_path, "b"))):
        assert gather(tmp_path) == []
        assert not path_of(tmp_path, "a").exists()
        assert path_of(tmp_path, "b").exists()
    gather(tmp_path)
    assert not path_of(tmp_path, "b").exists()
    assert answers(tmp_path, "a") == answers(tmp_path, "b") == TEXTS


def test_processes_that_record_at_once_lose_nothing_even_if_they_are_killed(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    processes = []
    for name in ("one", "two"):
        command = [sys.executable, "-c", RECORDS, str(tmp_path), name]
        processes.append(subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True))
    saved = set()
    for name, process, enough in zip(("one", "two"), processes, (20, 35), strict=True):
        assert process.stdout is not None
        for line in process.stdout:
            saved.add(f"{name}-{int(line)}")
            if int(line) == enough:
                process.send_signal(signal.SIGKILL)
                break
        saved.update(f"{name}-{int(line)}" for line in process.stdout if line.endswith("\n"))
        process.wait()
    for _ in range(2):
        for case in saved:
            assert answers(tmp_path, case) == ["an answer"]
        gather(tmp_path)
    assert {path.suffix for path in (tmp_path / RUBRIC).iterdir()} <= {".yaml", ".tmp"}
    assert [*(tmp_path / RUBRIC).glob("*.yaml")] == [tmp_path / RUBRIC / SHARED]


@pytest.mark.parametrize("conflict", ['"complete": true', "- request:\n  method"])
def test_a_merge_conflict_is_refused(tmp_path: Path, conflict: str) -> None:
    shared = gathered(tmp_path, "a")
    text = shared.read_text(encoding="utf-8")
    before, found, rest = text.partition(conflict)
    before = before[: before.rindex("\n") + 1]
    marks = f"<<<<<<< HEAD\n{conflict}\n=======\n{conflict}\n>>>>>>> theirs\n"
    shared.write_text(before + marks + found + rest, encoding="utf-8")
    for interactions in (False, True):
        with pytest.raises(InputError, match="Restore the file from version control") as refused:
            Cassette.load(path_of(tmp_path, "a"), interactions=interactions)
        assert f"{shared}:" in str(refused.value)
    recorded(tmp_path, "b")
    [problem] = gather(tmp_path)
    assert str(shared) in problem
    assert path_of(tmp_path, "b").exists()


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda text: yaml.safe_dump(yaml.safe_load(text), width=60, allow_unicode=True),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.removesuffix("\n"),
    ],
    ids=["another layout", "ends of lines", "byte order mark", "no end of line"],
)
def test_it_is_read_as_others_leave_it(tmp_path: Path, rewrite: Callable[[str], str]) -> None:
    shared = gathered(tmp_path, *"ab")
    text = shared.read_text(encoding="utf-8")
    shared.write_bytes(rewrite(text).encode())
    for case in "ab":
        assert answers(tmp_path, case) == TEXTS
    gathered(tmp_path, "b")
    assert answers(tmp_path, "a") == TEXTS
    assert yaml.safe_load(shared.read_text(encoding="utf-8")) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ('"interactions": 1', '"interactions": 2', "the head of the file says another"),
        ('"complete": true', '"complete": 2', "metadata.jrh.complete"),
        ('"finish_reason": "stop"', '"finish_reason": 2001-01-01', "is not a valid string"),
        ('"format": 1', '"format": 2', "its format is 2, not 1"),
        ('"cases": {', '"calls": {', "cases"),
        ("method: POST", "verb: POST", "method"),
    ],
)
def test_what_is_no_cassette_is_refused(tmp_path: Path, old: str, new: str, wanted: str) -> None:
    shared = gathered(tmp_path, "a")
    shared.write_text(shared.read_text("utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=wanted) as refused:
        Cassette.load(path_of(tmp_path, "a"), interactions=True)
    assert str(shared) in str(refused.value)


def test_a_thousand_cases_are_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [cassette_of(tmp_path, str(number), ["an answer"]) for number in range(1000)]
    cassettes.update_shared(tmp_path / RUBRIC / SHARED, {each.path.stem: each for each in made})
    read = Mock(wraps=cassettes.read)
    monkeypatch.setattr(cassettes, "read", read)
    for cassette in made:
        assert Cassette.load(cassette.path).entries
    assert read.call_count == 1
    prune(tmp_path, [made[8].path])
    assert [len(Cassette.load(made[number].path).entries) for number in (8, 9)] == [0, 1]
    # With its exchanges it is read once more, to be written.
    assert read.call_count == 3


def test_pruning_takes_out_single_cases(tmp_path: Path) -> None:
    gathered(tmp_path, *"abc")
    recorded(tmp_path, "c")
    used = {path_of(tmp_path, "a")}
    unused = cassettes.unused_cassettes(cassettes_in(tmp_path), used, frozen=False)
    assert unused == [path_of(tmp_path, "b"), path_of(tmp_path, "c")]
    assert prune(tmp_path, unused) == (unused, [])
    assert cassettes_in(tmp_path) == [path_of(tmp_path, "a")]
    assert answers(tmp_path, "a") == TEXTS
    prune(tmp_path, used)
    assert [*(tmp_path / RUBRIC).iterdir()] == []


def test_what_is_not_written_stays_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    problem = f"{gathered(tmp_path, *'ab')} was not written: No space left on device."
    recorded(tmp_path, "a", ["new"])
    monkeypatch.setattr(cassettes, "atomic_write", full)
    assert gather(tmp_path) == [problem]
    assert prune(tmp_path, [path_of(tmp_path, "a")]) == ([], [problem])
    assert answers(tmp_path, "a") == ["new"]
    assert answers(tmp_path, "b") == TEXTS


def test_room_is_kept_for_what_is_taken_out_of_it(tmp_path: Path) -> None:
    """An answer that is paid for is written with the calls that the case has in the shared file."""
    size = recorded(tmp_path, "a", ["x" * 50_000]).path.stat().st_size
    gather(tmp_path)
    cassette = Cassette.load(path_of(tmp_path, "a"), interactions=True)
    assert len(cassette.dump()) == size
    with cassettes.room_for(0, len(cassette.dump()), tmp_path):
        pass
    cassette.save()
    assert cassette.path.stat().st_size == size


CASSETTES = Path(__file__).parents[2] / "inputs/cassettes/refund_agent"


def test_a_further_repeat_is_another_call_which_a_miss_names() -> None:
    cassette = Cassette.load(next(CASSETTES.glob("*/*/*.judge-default.yaml")), interactions=True)
    [entry] = cassette.entries.values()
    [interaction] = entry.exchanges
    messages = tuple(json.loads(interaction["request"]["body"])["messages"])
    model = StageModel("judge", entry.asked["model"])
    request = CallRequest(model, messages, judge_response((0, 1)))
    again = replace(request, repeat=2)
    assert again.fingerprint != request.fingerprint
    assert difference(entry, again) == "repeat:\n-1\n+2"
    assert difference(entry, request) == ""


def cassette(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}", encoding="utf-8")
    return path


def test_pruning_removes_unused_cassettes_leaves_all_else_and_names_what_it_cannot_remove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = cassette(tmp_path, "agent_positives/r/a.e1.generation.yaml")
    unused = cassette(tmp_path, "agent_positives/r/b.e1.judge-default.yaml")
    other = cassette(tmp_path, "agent_positives/r/notes.yaml")
    assert unused_cassettes(cassettes_in(tmp_path), {used}, frozen=False) == [unused]
    # What a frozen suite was made with is no rubbish: a run that gave no case is not in the frozen
    # file, and asking its models again would be paid for again.
    assert unused_cassettes(cassettes_in(tmp_path), (), frozen=True) == [unused]
    assert prune(tmp_path, [unused]) == ([unused], [])
    assert (used.exists(), other.exists(), unused.exists()) == (True, True, False)

    def refuse(path: Path, *, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    assert prune(tmp_path, [used]) == ([], [f"{used} could not be removed: Permission denied."])
