"""What was removed is refused for one release, and says what to do instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.config.options import OPTIONS, REMOVED_COMMANDS, REMOVED_KEYS, REMOVED_OPTIONS
from pytest_jrh.config.schema import Config
from tests.support.configs import Folder, changed


def test_a_removed_option_says_what_to_do_instead(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\naddopts = --jrh-max-workers=3\n")
    pytester.makepyfile("def test_own(): pass")
    result = pytester.runpytest_inprocess("-n2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*max?workers*was removed: set recording.max_workers in the suite's config"]
    )


def test_removed_options_are_none_of_the_options() -> None:
    assert not {option.name for option in OPTIONS} & REMOVED_OPTIONS.keys()


def test_a_merge_refuses_removed_options(capsys: pytest.CaptureFixture[str]) -> None:
    for name, instead in REMOVED_OPTIONS.items():
        with pytest.raises(SystemExit) as left:
            main(["merge", "--jrh-config=suite.yml", f"--jrh-{name}=1", "outputs"])
        assert left.value.code == 4
        assert f"--jrh-{name}: was removed: {instead}" in capsys.readouterr().err


def test_removed_commands_say_what_to_do_instead(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(REMOVED_COMMANDS, "juggle", "do it by hand")
    for name, instead in REMOVED_COMMANDS.items():
        with pytest.raises(SystemExit) as left:
            main([name, "--any=thing"])
        assert left.value.code == 4
        assert f"{name} was removed: {instead}" in capsys.readouterr().err


def test_a_removed_key_is_a_mistake_of_the_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(REMOVED_KEYS, "admin.juggled", "do it by hand")
    monkeypatch.setitem(REMOVED_KEYS, "judge.juggled", "do it by hand")
    folder = Folder(tmp_path)
    for key in REMOVED_KEYS:
        of_a_probe = key.replace("probes.", "probes.position.")
        problem = folder.problem(changed(of_a_probe, {"any": "thing"}))
        assert (problem.key or "").replace("[0]", "").endswith(of_a_probe)
        assert problem.message == f"was removed: {REMOVED_KEYS[key]}"
        assert problem.line is not None


def test_no_key_is_both_removed_and_there() -> None:
    assert not Config.model_fields.keys() & REMOVED_KEYS.keys()
