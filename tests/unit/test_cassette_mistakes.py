"""A cassette that does not fit is refused with file and place."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_jrh.core.errors import InputError
from pytest_jrh.recording.cassettes import Cassette

DEMO = Path(__file__).parents[2] / "inputs"
CASSETTE = next((DEMO / "cassettes" / "refund_agent").rglob("*.judge-default.yaml"))
RUBRICS = DEMO / "data" / "refund_agent" / "rubrics.yml"


def load(path: Path, text: str | bytes) -> str:
    """Load a text as a cassette in both ways; what was refused, or nothing."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    said = ""
    for interactions in (False, True):
        try:
            cassette = Cassette.load(path, interactions=interactions)
        except InputError as error:
            said = str(error)
            assert str(path) in said
        else:
            cassette.dump()
    return said


# As it was recorded before heads were JSON, and as it is written now.
HEAD = CASSETTE.read_text(encoding="utf-8")
JSON_HEAD = Cassette.load(CASSETTE, interactions=True).dump()


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (
            '"complete": true',
            '"complete": "false"',
            "metadata.jrh.complete: this is not a cassette",
        ),
        ('"complete": true', '"complete": 2001-99-99', "it has an invalid value"),
        ('"finish_reason": "stop"', '"finish_reason": 5', "metadata.jrh.calls[0].finish_reason"),
        ('"sequence": 1', '"sequence": -1', "metadata.jrh.calls[0].sequence"),
        ('"cost": ', '"cost": NaN, "was": ', "metadata.jrh.calls[0].cost"),
        ('"cost": ', '"cost": -1.0, "was": ', "metadata.jrh.calls[0].cost"),
        ('"format": 1', '"format": 2', "metadata.jrh.format: this is not a cassette that can be"),
        ("metadata:\n  {", "metadata:\n  [", "c.yaml"),
        ("- request:", "- other:", "interactions[0].request"),
        ("    body:", "    other:", "interactions[0].request.body"),
        # What the earlier form alone can hold.
        ("complete: true", "complete: 'false'", "metadata.jrh.complete: this is not"),
        ("cost: ", "cost: .nan # ", "metadata.jrh.calls[0].cost"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(
    tmp_path: Path, old: str, new: str, wanted: str
) -> None:
    [head, *_] = [head for head in (JSON_HEAD, HEAD) if old in head]
    assert wanted in load(tmp_path / "c.yaml", head.replace(old, new, 1))
