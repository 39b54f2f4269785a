"""A cassette on disk is hostile input: it is used, or refused with file and place, and never a
crash."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.config.rubrics import read_rubrics
from pytest_jrh.core.errors import InputError
from pytest_jrh.recording import cassettes as cassette_text
from pytest_jrh.recording.cassettes import Cassette
from tests.support.cpu import cpu_seconds

DEMO = Path(__file__).parents[2] / "inputs"
CASSETTE = next((DEMO / "cassettes" / "refund_agent").rglob("*.judge-default.yaml"))
RUBRICS = DEMO / "data" / "refund_agent" / "rubrics.yml"


def load(path: Path, text: str | bytes) -> str:
    """Load a text as a cassette in both ways; what was refused, or nothing."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    said = ""
    for interactions in (False, True):
        with cpu_seconds(20):
            try:
                cassette = Cassette.load(path, interactions=interactions)
            except InputError as error:
                said = str(error)
                assert str(path) in said
            else:
                assert type(cassette.complete) is bool
                assert all(
                    isinstance(entry.answer.text, str) for entry in cassette.entries.values()
                )
                cassette.dump()
    return said


# As it was recorded before heads were JSON, and as it is written now.
HEAD = CASSETTE.read_text(encoding="utf-8")
JSON_HEAD = Cassette.load(CASSETTE, interactions=True).dump()


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (
            "complete: true",
            "complete: 'false'",
            "metadata.jrh.complete: this is not a cassette that can be read: input",
        ),
        ("complete: true", "complete: 2001-99-99", "it has an invalid value"),
        ("complete: true", "complete: 0b", "metadata.jrh.complete"),
        ("finish_reason: stop", "finish_reason: 5", "metadata.jrh.calls[0].finish_reason"),
        ("refusal: null", "refusal: [a]", "metadata.jrh.calls[0].refusal"),
        ("sequence: 1", "sequence: -1", "metadata.jrh.calls[0].sequence"),
        ("sequence: 1", "sequence: 1.5", "metadata.jrh.calls[0].sequence"),
        ("cost: ", "cost: abc # ", "metadata.jrh.calls[0].cost"),
        ("cost: ", "cost: .nan # ", "metadata.jrh.calls[0].cost"),
        ("cost: ", "cost: -1.0 # ", "metadata.jrh.calls[0].cost"),
        (
            "  - stage: judge",
            "  - other: judge",
            "metadata.jrh.calls[0].stage: this is not a cassette",
        ),
        ("format: 1", "format: 2", "its format is 2; must be 1"),
        ("- request:", "- other:", "interactions[0].request"),
        ("    body:", "    other:", "interactions[0].request.body"),
        ("  response:", "  other:", "interactions[0].response"),
        (
            "\ninteractions:",
            "\nno_interactions:",
            "the calls have 1 interactions, but the file has 0",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(
    tmp_path: Path, old: str, new: str, wanted: str
) -> None:
    assert old in HEAD
    refused_with_its_place(tmp_path / "c.yaml", HEAD.replace(old, new, 1), wanted)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (
            '"complete": true',
            '"complete": "false"',
            "metadata.jrh.complete: this is not a cassette that can be read",
        ),
        ('"complete": true', '"complete": 2001-99-99', "it has an invalid value"),
        ('"finish_reason": "stop"', '"finish_reason": 5', "metadata.jrh.calls[0].finish_reason"),
        ('"refusal": null', '"refusal": ["a"]', "metadata.jrh.calls[0].refusal"),
        ('"sequence": 1', '"sequence": 1.5', "metadata.jrh.calls[0].sequence"),
        ('"sequence": 1', f'"sequence": {10**400}', "metadata.jrh.calls[0].sequence"),
        (
            '"input_tokens": ',
            f'"input_tokens": {10**400}, "was": ',
            "metadata.jrh.calls[0].usage.input_tokens",
        ),
        ('"finish_reason": "stop"', r'"finish_reason": "\ud800"', "invalid Unicode character"),
        ('"cost": ', '"cost": NaN, "was": ', "metadata.jrh.calls[0].cost"),
        ('"cost": ', '"cost": -Infinity, "was": ', "metadata.jrh.calls[0].cost"),
        ('"cost": ', '"cost": .nan, "was": ', "metadata.jrh.calls[0].cost"),
        ('"cost": ', '"cost": -1.0, "was": ', "metadata.jrh.calls[0].cost"),
        ('"cost": ', '"cost": 1e308, "was": ', "metadata.jrh.calls[0].cost"),
        ('"cost": ', f'"cost": {"9" * 5_000}, "was": ', "it has an invalid value"),
        (
            '"stage": "judge"',
            '"other": "judge"',
            "metadata.jrh.calls[0].stage: this is not a cassette",
        ),
        ('"format": 1', '"format": 2', "its format is 2; must be 1"),
        ("metadata:\n  {", "metadata:\n  [", "c.yaml"),
        (
            "\ninteractions:",
            "\nno_interactions:",
            "the calls have 1 interactions, but the file has 0",
        ),
        ("- request:", "- other:", "interactions[0].request"),
    ],
)
def test_a_head_in_json_that_does_not_fit_is_refused_with_its_place(
    tmp_path: Path, old: str, new: str, wanted: str
) -> None:
    assert old in JSON_HEAD
    refused_with_its_place(tmp_path / "c.yaml", JSON_HEAD.replace(old, new, 1), wanted)


def refused_with_its_place(path: Path, text: str, wanted: str) -> None:
    said = load(path, text)
    assert wanted in said
    if "[0]" in wanted:
        line = int(said.split("c.yaml:")[1].split(":")[0])
        assert 1 <= line <= text.count("\n")


def test_the_line_is_that_of_the_value(tmp_path: Path) -> None:
    for text, old, new in (
        (HEAD, "finish_reason: stop", "finish_reason: 5"),
        (JSON_HEAD, '"finish_reason": "stop"', '"finish_reason": 5'),
    ):
        number = next(number for number, line in enumerate(text.split("\n"), 1) if old in line)
        assert f"c.yaml:{number}: " in load(tmp_path / "c.yaml", text.replace(old, new))


@pytest.mark.parametrize("length", [1_000, 1_100, 5_000])
def test_a_head_in_json_with_a_long_key_is_refused_with_its_line_too(
    tmp_path: Path, length: int
) -> None:
    long_key = JSON_HEAD.replace('"asked": {', f'"asked": {{\n"{"k" * length}": 1,', 1)
    mistakes = (
        ('"finish_reason": "stop"', '"finish_reason": 5', "metadata.jrh.calls[0].finish_reason"),
        ("- request:", "- other:", "interactions[0].request"),
    )
    for old, new, key in mistakes:
        text = long_key.replace(old, new)
        number = next(number for number, line in enumerate(text.split("\n"), 1) if new in line)
        said = load(tmp_path / "c.yaml", text)
        assert f"c.yaml:{number}: " in said
        assert key in said
    not_a_number = '"cost": NaN, "was": '
    said = load(tmp_path / "c.yaml", long_key.replace('"cost": ', not_a_number, 1))
    assert "metadata.jrh.calls[0].cost" in said


SHARED = "a: &a [x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
LAUGHS = "a: &a {x: 1}\n" + "".join(
    f"{name}: &{name}\n  <<: [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefghij", "bcdefghijk", strict=True)
)


@pytest.mark.parametrize(
    "bomb",
    [
        "[" * 100_000,
        "{" * 100_000,
        "- " * 100_000,
        "? " * 100_000,
        "[" * 100_000 + "]" * 100_000,
        "metadata: " + "[" * 100_000,
        HEAD.replace("refusal: null", f"refusal: {'[' * 50_000}", 1),
        HEAD.replace("interactions:", f"more: {'{a: ' * 50_000}\ninteractions:", 1),
        JSON_HEAD.replace('"refusal": null', f'"refusal": {"[" * 50_000}', 1),
        JSON_HEAD.replace('"refusal": null', f'"refusal": {"[" * 50_000}{"]" * 50_000}', 1),
        JSON_HEAD.replace('"refusal": null', f'"refusal": {"[" * 1_400}{"]" * 1_400}', 1),
        JSON_HEAD.replace('"refusal": null', '"refusal": {"a": ' * 2_000 + "1" + "}" * 2_000, 1),
        JSON_HEAD.replace("interactions:", f"more: {'{a: ' * 50_000}\ninteractions:", 1),
        SHARED,
        LAUGHS,
        "a: " + "1:" * 100_000 + "1",
        "a: " + "9" * 200_000,
        "a: &a [*a]",
        "!!python/object/apply:os.system [id]",
        "\x00",
        "",
        "- a\n" * 50_000,
    ],
    ids=lambda bomb: bomb[:12].encode("unicode_escape").decode(),
)
def test_a_bomb_is_refused_in_seconds(tmp_path: Path, bomb: str) -> None:
    assert load(tmp_path / "c.yaml", bomb)


def test_a_number_to_the_base_of_60_is_refused_by_its_length(tmp_path: Path) -> None:
    number = "1:" * 1_000_000 + "1"
    assert "a number of 2,000,001 characters" in load(tmp_path / "c.yaml", f"a: {number}")
    assert "a number of" not in load(tmp_path / "c.yaml", "a: 12:30:00")


def test_an_answer_full_of_brackets_is_no_nesting(tmp_path: Path) -> None:
    cassette = Cassette.load(CASSETTE, interactions=True)
    data = yaml.safe_load(cassette.dump())
    data["metadata"]["jrh"]["calls"][0]["text"] = "[" * 50_000
    assert load(tmp_path / "c.yaml", yaml.safe_dump(data, sort_keys=False)) == ""
    path = tmp_path / "json.yaml"
    path.write_text(cassette_text.write(data["metadata"], data["interactions"]), encoding="utf-8")
    assert path.read_text("utf-8").startswith("metadata:\n  {")
    assert next(iter(Cassette.load(path).entries.values())).answer.text == "[" * 50_000


VALUES = [
    "null",
    "5",
    "-1",
    "'x'",
    "[]",
    "{}",
    "true",
    "2001-01-01",
    "2001-99-99",
    ".nan",
    "0b",
    "&a [*a]",
    "!!binary x",
]


@settings(max_examples=90, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 4),
    source=st.sampled_from(["cassette", "json", "rubrics"]),
)
def test_mutated_files_of_the_demo_never_crash(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int, source: str
) -> None:
    random_ = random.Random(seed)
    path = tmp_path_factory.getbasetemp() / f"mutated-{source}.yaml"
    texts = {"cassette": HEAD, "json": JSON_HEAD}
    text = texts.get(source) or RUBRICS.read_text(encoding="utf-8")
    for _ in range(count):
        text = mutated(text, random_)
    if source in texts:
        load(path, text)
    else:
        path.write_text(text, encoding="utf-8", errors="replace")
        with cpu_seconds(20):
            read_rubrics(path)


def mutated(text: str, random_: random.Random) -> str:
    lines = text.split("\n")
    place = random_.randrange(len(lines))
    match random_.randrange(7):
        case 0:
            del lines[place]
        case 1:
            lines.insert(place, lines[random_.randrange(len(lines))])
        case 2:
            lines[place] = lines[place].partition(":")[0] + ": " + random_.choice(VALUES)
        case 3:
            lines[place] = " " * random_.randrange(8) + lines[place].lstrip()
        case 4:
            at = random_.randrange(len(lines[place]) + 1)
            lines[place] = (
                lines[place][:at]
                + random_.choice("[]{}&*!|>'\"%@`#:-\t\x00\ud800é")
                + lines[place][at:]
            )
        case 5:
            return "\n".join(lines[:place])
        case _:
            lines[place] = lines[place] * random_.choice([2, 100])
    return "\n".join(lines)
