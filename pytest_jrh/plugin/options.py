"""The options as pytest knows them; what the options are is in `pytest_jrh.config.options`.

Help for a session without a suite: options that need one, and suites in folders that do not collect
them.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.config import removed
from pytest_jrh.config.options import ALONE, OPTIONS, Options, mistakes
from pytest_jrh.core.files import absolute, exists
from pytest_jrh.core.text import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_jrh.config.options import Option


OPTIONS_READ = pytest.StashKey[Options]()
SESSION_KEY = "jrh_session"
RESULT_ATTRIBUTE = "jrh_result"
_TOKEN = pytest.StashKey[str]()
YAML_SUFFIXES = (".yml", ".yaml")
# As for the other switches in an ini file.
_ALONE: dict[str, str | None] = {"true": ALONE, "false": None}
_NUMBERS: dict[str, type] = {"int": int, "float": float}
_INI_KINDS = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "paths": "names of files, as a list in TOML",
}


def session_token(config: pytest.Config) -> str:
    """The token in names of this session's files; xdist's controller tells it to its workers."""
    if hasattr(config, "workerinput"):
        return str(config.workerinput[SESSION_KEY])
    return config.stash.setdefault(_TOKEN, secrets.token_hex(16))


def add_options(parser: pytest.Parser) -> None:
    """Declare every option on the command line and as an ini key."""
    group = parser.getgroup("jrh", "judge reliability suites")
    for option in OPTIONS:
        settings: dict[str, Any] = {"dest": option.key, "default": None, "help": option.help}
        if option.kind == "bool":
            settings |= {"action": "store_true"}
        elif option.kind != "choice":
            settings |= {"metavar": option.metavar}
        if option.kind == "paths":
            settings |= {"action": "append"}
        if option.kind in _NUMBERS:
            settings |= {"type": _NUMBERS[option.kind]}
        if option.kind == "choice":
            _add_choice(group, option, settings)
        else:
            if option.choices:
                settings |= {"choices": option.choices}
            group.addoption(option.flag, **settings)
        parser.addini(option.key, option.help, type=_ini_type(option), default=None)
    for name in removed.OPTIONS:
        group.addoption(f"--jrh-{name}", **removed.REMOVED)


def _ini_type(option: Option) -> Any:
    """The type of an ini key for the installed pytest: TOML has numbers and booleans."""
    if option.kind in ("bool", "paths"):
        return "bool" if option.kind == "bool" else "args"
    if pytest.version_tuple >= (9, 2):
        if option.kind == "choice":
            return str | bool
        number = _NUMBERS.get(option.kind)
        return "string" if number is None else number | str
    has_numbers = pytest.version_tuple >= (8, 4)
    return option.kind if has_numbers and option.kind in _NUMBERS else "string"


def _add_choice(group: Any, option: Option, settings: Mapping[str, Any]) -> None:
    """Declare one flag for each spelling: an optional value would take the next argument."""
    for value in (ALONE, *option.choices):
        flag = option.flag if value == ALONE else f"{option.flag}={value}"
        group.addoption(flag, **settings, action="store_const", const=value)
        settings = {**settings, "help": argparse.SUPPRESS}


def read_options(config: pytest.Config) -> Options:
    """Read the options, the command line over the ini file; raises `pytest.UsageError`."""
    _refuse_removed_keys(config)
    values = {option.key: _value(config, option) for option in OPTIONS}
    on_command_line = {option.key for option in OPTIONS if config.getoption(option.key) is not None}
    options = Options(**{option.sets: option.value(values[option.key]) for option in OPTIONS})
    for mistake in mistakes(options, values.keys() - on_command_line):
        raise pytest.UsageError(mistake)
    return options


def _refuse_removed_keys(config: pytest.Config) -> None:
    """Refuse removed keys of the ini file, which are not declared, as `--help` would list them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        in_file = set(config.inicfg)
    overrides = config.getoption("override_ini") or ()
    keys = in_file.union(override.partition("=")[0] for override in overrides)
    for name, instead in removed.OPTIONS.items():
        key = f"jrh_{name.replace('-', '_')}"
        if key in keys:
            raise pytest.UsageError(f"{key} {removed.said(instead)}")


def typed_arguments(config: pytest.Config) -> list[str]:
    """The files, folders and node ids that the command line names, without those of `addopts`."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        return []
    typed = set(map(str, config.invocation_params.args))
    settings = set(_addopts(config))
    return [name for name in config.args if name in typed or name not in settings]


def typed_configs(config: pytest.Config) -> list[str]:
    """The suites that the command line names with `--jrh-config`, without those of `addopts`."""
    return typed_values(config, "--jrh-config")


def typed_values(config: pytest.Config, flag: str) -> list[str]:
    """The values of an option that may be repeated, without those of `addopts`."""
    in_settings = sum(name == flag or name.startswith(f"{flag}=") for name in _addopts(config))
    values: list[str] = config.getoption(flag) or []
    # pytest puts its settings' arguments before those that were typed.
    return values[in_settings:]


def may_be_case(nodeid: str) -> bool:
    """Whether a node id is of a file whose name a suite may have."""
    return nodeid.partition("::")[0].endswith(YAML_SUFFIXES)


def _addopts(config: pytest.Config) -> list[str]:
    """The arguments of a project's or a person's settings: the ini file's and the environment's."""
    return [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *config.getini("addopts")]


def _value(config: pytest.Config, option: Option) -> Any:
    value, new = config.getoption(option.key), config.invocation_params.dir
    if option.sets == "configs":
        value = typed_configs(config) or value
    if value is None:
        # What the ini file names belongs to its folder, whichever folder pytest was started in.
        value, new = _ini_value(config, option), config.rootpath
    if value is None or option.kind not in ("path", "paths"):
        return value
    if option.kind == "path":
        return _place(config, value, new)
    return [_place(config, name, new) for name in value]


def _ini_value(config: pytest.Config, option: Option) -> Any:
    try:
        value = config.getini(option.key)
        if value in (None, "", []):
            return None
        if option.kind in _NUMBERS:
            return _NUMBERS[option.kind](value)
    except (TypeError, ValueError, pytest.UsageError) as error:
        kind = _INI_KINDS.get(option.kind, "a string")
        raise pytest.UsageError(f"{option.key}: must be {kind} ({error})") from None
    if option.kind == "choice" and str(value).lower() in _ALONE:
        return _ALONE[str(value).lower()]
    if option.choices and value not in option.choices:
        close = nearest(value, option.choices)
        hint = f"; did you mean {close}?" if close else ""
        raise pytest.UsageError(
            f"{option.key} = {value}: must be one of {', '.join(option.choices)}{hint}"
        )
    return value


def _place(config: pytest.Config, name: str, new: Path) -> Path:
    """Where a path is: from the folder pytest was started in, from its rootdir, else in `new`."""
    for folder in (config.invocation_params.dir, config.rootpath):
        path = absolute(folder / name)
        if exists(path):
            return path
    return absolute(new / name)


_MOST_NAMED = 3


def refuse_options(config: pytest.Config) -> None:
    """Refuse options that were typed without a suite; those of settings are for all sessions."""
    flags = {option.flag for option in OPTIONS}
    words = [str(argument).partition("=")[0] for argument in config.invocation_params.args]
    typed = [word for word in dict.fromkeys(words) if word in flags]
    if typed:
        verb = "needs" if len(typed) == 1 else "need"
        sentence = (
            f"{', '.join(typed)} {verb} a suite, and none was collected. Name its config with "
            "--jrh-config=FILE."
        )
        raise pytest.UsageError("\n".join([sentence, *suites_nearby(config)]))


def suites_nearby(config: pytest.Config) -> list[str]:
    """Lines that name suites in pytest's folders, from which they are not collected."""
    folder = config.invocation_params.dir
    folders = [absolute(folder / argument.partition("::")[0]) for argument in config.args]
    names = [os.path.relpath(path, folder) for path in _suites(folders)]
    if not names:
        return []
    more_text = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return [
        "jrh: not collected, because in a folder only *.jrh.yml is collected: "
        f"{', '.join(names[:_MOST_NAMED])}{more_text}",
        f"jrh: name the file: pytest --jrh-config={names[0]}",
    ]


def _suites(folders: Iterable[Path]) -> Iterator[Path]:
    # Reading configs imports pydantic, of which a session without a suite is spared.
    from pytest_jrh.config.load import looks_like_suite

    for folder in filter(Path.is_dir, folders):
        yield from filter(looks_like_suite, _files(folder))


def _is_left_out(folder: Path) -> bool:
    is_hidden = folder.name.startswith((".", "_")) or folder.name == "node_modules"
    return is_hidden or (folder / "pyvenv.cfg").exists()


def _files(top: Path) -> Iterator[Path]:
    """The files below a folder, its own first, without hidden ones and virtual environments."""
    for parent, folders, files in os.walk(top):
        folders[:] = sorted(name for name in folders if not _is_left_out(Path(parent, name)))
        yield from (Path(parent, name) for name in sorted(files) if name.endswith(YAML_SUFFIXES))
