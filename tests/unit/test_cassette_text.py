"""The head of a cassette is JSON inside of YAML: read with `json`, and the same to every reader of
YAML. One that does not fit is refused with file and place."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.core import InputError
from pytest_jrh.llm.calls import Answer
from pytest_jrh.recording import cassettes as cassette_text
from pytest_jrh.recording.cassettes import Cassette, RecordedCall

DEMO = Path(__file__).parents[2] / "inputs" / "cassettes" / "refund_agent"
# Recorded before heads were JSON.
OLD = next(DEMO.rglob("*.generation.yaml"))
# A head is JSON between these two lines.
BEGIN, END = "metadata:\n  {\n", "\n  }\ninteractions:\n"
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40)
KEYS = st.text("ab: #\n\x85\u2028", max_size=3)
VALUES = st.recursive(
    (st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False))
    | st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)


def calls_of(path: Path, *, interactions: bool = True) -> dict[str, RecordedCall]:
    return Cassette.load(path, interactions=interactions).entries


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """The demo's cassette in today's form."""
    path = tmp_path / "new.yaml"
    path.write_text(Cassette.load(OLD, interactions=True).dump(), encoding="utf-8")
    return path


@settings(max_examples=50)
@given(data=st.dictionaries(st.text("abc", max_size=3), VALUES))
def test_json_and_yaml_read_the_same_head(data: dict[str, Any]) -> None:
    text = cassette_text.write(data, [])
    head = text.removeprefix("metadata:\n").partition("\ninteractions:")[0]
    assert json.loads(head) == data
    for loader in (yaml.SafeLoader, yaml.CSafeLoader):
        loaded = yaml.load(text, Loader=loader)
        assert loaded == {"metadata": data, "interactions": [], "version": 1}
        assert repr(loaded["metadata"]) == repr(data)
    assert cassette_text.read(text) == yaml.safe_load(text)
    assert cassette_text.read(text, interactions=False) == {"metadata": data}


def test_an_old_head_is_read_and_written_anew_with_the_same_meaning(new: Path) -> None:
    assert [*calls_of(new).items()] == [*calls_of(OLD).items()]
    assert yaml.safe_load(new.read_text("utf-8")) == yaml.safe_load(OLD.read_text("utf-8"))
    old, _, rest = OLD.read_text("utf-8").partition("\ninteractions:")
    assert "{\n" not in old
    assert new.read_text("utf-8").endswith(f"\n  }}\ninteractions:{rest}")


def bodies_of(path: Path) -> list[str]:
    exchanges = (one for call in calls_of(path).values() for one in call.exchanges)
    return [one["response"]["body"]["string"] for one in exchanges]


def exchange(answer: str) -> dict[str, Any]:
    """A request of a judge's code, and its answer."""
    body = json.dumps({"about": answer}, ensure_ascii=False)
    request = {"method": "POST", "uri": "http://127.0.0.1/judge", "body": body, "headers": {}}
    response = {"status": {"code": 200}, "headers": {}, "body": {"string": answer}}
    return {"request": request, "response": response}


def answered(path: Path, *answers: str) -> Cassette:
    """A cassette with a call for which a judge's code had these answers."""
    cassette = Cassette(path)
    about: dict[str, Any] = {"stage": "judge", "fingerprint": "f0", "asked": {}, "sequence": 0}
    call = RecordedCall(**about, **asdict(Answer("r")), exchanges=tuple(map(exchange, answers)))
    cassette.entries["f0"] = call
    cassette.save()
    return cassette


@settings(max_examples=60)
@given(texts=st.lists(TEXT | TEXT.map(lambda text: f"{text}\r\n {text}\n"), min_size=1, max_size=3))
def test_every_text_is_kept(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    answered(path, *texts)
    assert bodies_of(path) == texts
    asked = [one["request"]["body"] for one in calls_of(path)["f0"].exchanges]
    assert [json.loads(body)["about"] for body in asked] == texts


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_lines_may_end_as_on_windows(tmp_path: Path, line_end: str) -> None:
    path = tmp_path / "c.yaml"
    answers = ["data: 0\n\n", "\n...\nversion: 1\n", "data: {}\n \n\n"]
    text = answered(path, *answers).dump()
    path.write_bytes(text.replace("\n", line_end).encode())
    assert calls_of(path)["f0"].answer.text == "r"
    assert bodies_of(path) == answers
    Cassette.load(path, interactions=True).save()
    assert path.read_text("utf-8") == text


def test_a_replay_parses_no_yaml(new: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = calls_of(new, interactions=False)

    def refuse(*_: object, **__: object) -> object:
        raise AssertionError("YAML was parsed")

    for name in ("load", "parse", "compose"):
        monkeypatch.setattr(yaml, name, refuse)
    assert calls_of(new, interactions=False) == wanted
    assert wanted


def test_vcrpy_loads_it_and_may_write_it_again(new: Path) -> None:
    from vcr.serialize import deserialize
    from vcr.serializers import yamlserializer

    text = new.read_text("utf-8")
    requests, responses, *_ = deserialize(text, yamlserializer)
    assert len(requests) == len(responses) == len(calls_of(new))
    wanted = calls_of(new)
    # vcrpy's serializer sorts the keys, so that the interactions come first.
    again = yamlserializer.serialize(yamlserializer.deserialize(text))
    assert again.startswith("interactions:")
    for comment in ("", "---\n", "# by hand\n"):
        new.write_text(comment + again, encoding="utf-8")
        assert calls_of(new) == wanted
        assert calls_of(new, interactions=False).keys() == wanted.keys()


@pytest.mark.parametrize(
    ("old", "edited"),
    [
        ('"stage": "planner"', "'stage': 'planner'"),
        ("\n  }\ninteractions:", "\n  } # the calls\ninteractions:"),
        ("\n  ", "\r\n  "),
        (BEGIN, f"# by hand\n{BEGIN}"),
        ("\ninteractions:", "\nversion: 1\ninteractions:"),
    ],
)
def test_a_head_that_was_edited_by_hand_is_read(new: Path, old: str, edited: str) -> None:
    wanted, text = calls_of(new), new.read_text("utf-8")
    assert old in text
    body = text.index("- request:")
    text = text[:body].replace(old, edited) + text[body:]
    if edited.startswith("\nversion"):
        text = text.removesuffix("version: 1\n")
    new.write_bytes(text.encode())
    assert calls_of(new) == wanted
    assert calls_of(new, interactions=False).keys() == wanted.keys()


# As it was recorded before heads were JSON, and as it is written now.
CASSETTE = next(DEMO.rglob("*.judge-default.yaml"))
HEAD = CASSETTE.read_text(encoding="utf-8")
JSON_HEAD = Cassette.load(CASSETTE, interactions=True).dump()


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ('"complete": true', '"complete": "false"', "metadata.jrh.complete: is not a valid"),
        ('"complete": true', '"complete": 2001-99-99', "readable cassette: month must be in 1..12"),
        ('"finish_reason": "stop"', '"finish_reason": 5', "metadata.jrh.calls[0].finish_reason"),
        ('"cost": ', '"cost": NaN, "was": ', "metadata.jrh.calls[0].cost"),
        ('"format": 1', '"format": 2', "format: is not 1, so this is not a readable cassette"),
        ("metadata:\n  {", "metadata:\n  [", "c.yaml"),
        ("- request:", "- other:", "interactions[0].request"),
        ("    body:", "    other:", "interactions[0].request.body"),
        # What the earlier form alone can hold.
        ("complete: true", "complete: 'false'", "metadata.jrh.complete: is not a v"),
        ("cost: ", "cost: .nan # ", "metadata.jrh.calls[0].cost"),
    ],
)
def test_what_does_not_fit_has_its_place(tmp_path: Path, old: str, new: str, wanted: str) -> None:
    path = tmp_path / "c.yaml"
    [head, *_] = [head for head in (JSON_HEAD, HEAD) if old in head]
    path.write_text(head.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as refused:
        Cassette.load(path, interactions=True)
    assert str(path) in str(refused.value)
    assert wanted in str(refused.value)
