"""Text that is no config, or hardly one."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_jrh.config.load import load_suite
from pytest_jrh.core.documents import MAX_BYTES
from pytest_jrh.core.errors import InputError
from tests.support.configs import CONFIG, FULL, Folder, minimal


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "is empty"),
        ("- a\n- b\n", 1, "got a list"),
        ("admin:\n  a: [1,\n", 3, "is not valid YAML"),
        ("admin:\n  a: {b: 1\n  c: 2\n", 2, "bracket is not closed"),
        (
            'admin:\n  a: "b\n  c: 1\n' + "  d: 1\n" * 20,
            2,
            "quote or a bracket is not closed",
        ),
        ("admin:\n  a: 'b\n---\n  c: 1\n", 2, "quote or a bracket is not closed"),
        ("admin:\n  a: 'b'\n  c: 'it's'\n", 3, "is not valid YAML"),
        ("admin:\n\tmodule_name: x\n", 2, "cannot start any token"),
        ("admin: {}\n---\nadmin: {}\n", 2, "another document"),
        ("admin: *nothing\n", 1, "is not valid YAML"),
        (
            "admin: !!python/object/apply:os.system ['true']\n",
            1,
            "python/object/apply:os.system",
        ),
        ("admin:\n  ? [a]\n  : b\n", 2, "unhashable key"),
        ("admin: " + "9" * 5000 + "\n", None, "is not valid YAML"),
        ("admin:\n  module_name: a\n  module_name: b\n", 3, "in lines 2 and 3"),
        ("{<<: 3}\n", 1, "for merging"),
    ],
)
def test_yaml_that_cannot_be_a_config_is_refused_with_its_line(
    folder: Folder, text: str, line: int | None, message: str
) -> None:
    (problem,) = [each for each in folder.problems(text) if message in str(each)]
    assert (problem.file, problem.line) == (CONFIG, line)


def test_files_that_are_no_text_are_refused(folder: Folder) -> None:
    path = folder.root / CONFIG

    def message() -> str:
        with pytest.raises(InputError) as caught:
            load_suite(path, cwd=folder.root, rootdir=folder.root)
        return str(caught.value)

    path.write_bytes(b"admin:\n  a: \xff\n")
    assert message().startswith(f"{CONFIG}:2: is not UTF-8 text")
    path.write_bytes(b"PK\x03\x04\x00\x00")
    assert "is not valid YAML" in message()
    path.write_bytes(b"a" * (MAX_BYTES + 1))
    assert "at most" in message()
    path.unlink()
    assert "no such file" in message()
    path.mkdir()
    assert "is not a file" in message()


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(folder: Folder) -> None:
    (folder.root / CONFIG).write_bytes(
        b"\xef\xbb\xbf" + yaml.safe_dump(minimal()).replace("\n", "\r\n").encode()
    )
    assert load_suite(Path(CONFIG), cwd=folder.root, rootdir=folder.root).module_name == "demo"


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_value_anywhere_gives_a_traceback(folder: Folder, data: st.DataObject) -> None:
    config = yaml.safe_load(FULL)
    paths = list(_paths(config))
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
        ),
        max_leaves=6,
    )
    for path in data.draw(st.lists(st.sampled_from(paths), min_size=1, max_size=3)):
        here: Any = config
        for part in path[:-1]:
            here = here[part] if isinstance(here, dict) and part in here else {}
        if isinstance(here, dict):
            here[path[-1]] = data.draw(values)
    with contextlib.suppress(InputError):
        folder.load(config)


def _paths(config: dict[str, Any], prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for key, value in config.items():
        found.append((*prefix, key))
        if isinstance(value, dict):
            found.extend(_paths(value, (*prefix, key)))
    return found
