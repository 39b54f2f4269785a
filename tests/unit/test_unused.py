"""Pruning removes what no case uses."""

from pathlib import Path

import pytest

from pytest_jrh.recording.cassettes import cassettes_in, prune, unused_cassettes


def cassette(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}", encoding="utf-8")
    return path


def test_pruning_removes_unused_cassettes_and_leaves_all_else(tmp_path: Path) -> None:
    used = cassette(tmp_path, "agent_positives/r/a.e1.generation.yaml")
    unused = cassette(tmp_path, "agent_positives/r/b.e1.judge-default.yaml")
    other = cassette(tmp_path, "agent_positives/r/notes.yaml")
    assert unused_cassettes(cassettes_in(tmp_path), {used}, frozen=False) == [unused]
    assert prune(tmp_path, [unused]) == ([unused], [])
    assert used.exists()
    assert other.exists()
    assert not unused.exists()


def test_what_a_frozen_suite_was_made_with_is_no_rubbish(tmp_path: Path) -> None:
    """A run that gave no case is not in the frozen file, and asking its models again would be paid
    for again."""
    cassette(tmp_path, "agent_positives/r/no-case.e1.generation.yaml")
    unused = cassette(tmp_path, "agent_positives/r/gone.e1.judge-default.yaml")
    assert unused_cassettes(cassettes_in(tmp_path), (), frozen=True) == [unused]


def test_a_cassette_that_cannot_be_removed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    path = cassette(tmp_path, "agent_positives/r/a.e1.generation.yaml")
    monkeypatch.setattr(Path, "unlink", refuse)
    assert prune(tmp_path, [path]) == ([], [f"{path} could not be removed: Permission denied."])
