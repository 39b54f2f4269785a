"""What commands print and write, byte for byte but for dates, seconds and versions.

A change of what they print or write is a commit of its own, made by
`pytest tests/golden --snapshot-update`."""

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation
from syrupy.types import SnapshotIndex

from tests.golden.sessions import SESSIONS, Session, run

# The fork server imports while the first session runs.
pytestmark = pytest.mark.usefixtures("forks")


class TextFile(SingleFileSnapshotExtension):
    """Each snapshot is a file of text beside the tests."""

    file_extension = "txt"
    _write_mode = WriteMode.TEXT

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
        return str(index)


# The files of the snapshots are named after the sessions alone.
@pytest.mark.filterwarnings("ignore:.*Can not relate snapshot name")
@pytest.mark.parametrize("session", SESSIONS, ids=[session.name for session in SESSIONS])
def test_what_a_session_says(session: Session, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    outcome = run(session, tmp_path)
    texts = snapshot.use_extension(TextFile)
    assert outcome.printed == texts(name=f"{session.name}.printed")
    summary = outcome.files.get("reports/summary.md")
    if summary is not None:
        assert summary.decode("utf-8") == texts(name=f"{session.name}.summary")
    # To see what differs in a file, compare `masked` of this folder with that of an older commit.
    assert outcome.digests() == texts(name=f"{session.name}.files"), tmp_path / "masked"
