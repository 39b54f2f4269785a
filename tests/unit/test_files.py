import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core import InputError
from pytest_jrh.core.documents import read_text
from pytest_jrh.core.files import atomic_write, file_name_part, replacing


def fail_in(path: Path) -> None:
    with replacing(path) as file:
        file.write(b"half")
        raise OSError(28, "No space left on device")


def test_whole_file_appears_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "a.txt"
    atomic_write(path, "text \ud800")
    assert path.read_text("utf-8") == "text \ufffd"
    assert path.stat().st_mode & 0o044 == 0o044


def test_failure_keeps_the_old_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(OSError, match="No space"):
        fail_in(path)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_or_device_is_refused_and_stays(tmp_path: Path) -> None:
    """As root, a report to /dev/null would else replace it for the whole machine."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        with pytest.raises(OSError, match="Is a device or a pipe, not a file"):
            atomic_write(path, "text")
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, pipe]


def test_symbolic_link_is_replaced_not_written_through(tmp_path: Path) -> None:
    outside, link = tmp_path / "outside.txt", tmp_path / "a.txt"
    outside.write_text("mine")
    link.symlink_to(outside)
    # What is the same is written all the same.
    for content in ("mine", "new"):
        atomic_write(link, content)
    assert (outside.read_text(), link.read_text(), link.is_symlink()) == ("mine", "new", False)


@given(st.text())
def test_any_name_becomes_a_safe_part(name: str) -> None:
    part = file_name_part(name)
    assert (Path("x") / part).resolve().parent == Path("x").resolve()
    assert part.isascii()
    assert len(part) <= 80


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_is_the_same_with_line_ends_of_another_system(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "judge.md"
    path.write_bytes("You judge.\r\n---user---\r\nŁódź\r\n".encode(encoding))
    assert read_text(path, "judge.md") == "You judge.\n---user---\nŁódź\n"


def test_a_wrong_folder_is_no_wrong_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logs" / "below").mkdir(parents=True)
    (tmp_path / "logs" / "a.csv").write_text("id\n", "utf-8")
    for folder, file, hint in (
        (".", "log/a.csv", '"logs" is the nearest folder'),
        (".", "logs/b.csv", '"a.csv" is the nearest file; copy it'),
        ("logs/below", "logs/a.csv", f"the file is in {tmp_path}: run"),
    ):
        monkeypatch.chdir(tmp_path / folder)
        with pytest.raises(InputError) as refused:
            read_text(Path(file), file, how="copy it")
        assert hint in str(refused.value)
