"""The options as pytest knows them; what the options are is in `pytest_jrh.config.options`."""

from __future__ import annotations

import argparse
import secrets
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.config import removed
from pytest_jrh.config.options import ALONE, OPTIONS, Options, mistakes
from pytest_jrh.core.files import absolute
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
_INI_TYPES: dict[str, Any] = {"bool": "bool", "paths": "args"}
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
    """The type of an ini key: since 8.4 pytest reads numbers of TOML."""
    if option.kind in _NUMBERS:
        return option.kind if pytest.version_tuple >= (8, 4) else "string"
    return _INI_TYPES.get(option.kind, "string")


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


def may_be_case(nodeid: str) -> bool:
    """Whether a node id is of a file whose name a suite may have."""
    return nodeid.partition("::")[0].endswith(YAML_SUFFIXES)


def _value(config: pytest.Config, option: Option) -> Any:
    """The value of an option; paths are relative to the folder that pytest was started in, those of
    the ini file to its own folder.
    """
    value, folder = config.getoption(option.key), config.invocation_params.dir
    if value is None:
        value, folder = _ini_value(config, option), config.rootpath
    if value is None or option.kind not in ("path", "paths"):
        return value
    if option.kind == "path":
        return absolute(folder / value)
    return [absolute(folder / name) for name in value]


def _ini_value(config: pytest.Config, option: Option) -> Any:
    try:
        value = config.getini(option.key)
        if value in (None, "", []):
            return None
        if option.kind in _NUMBERS:
            return _NUMBERS[option.kind](value)
    except (TypeError, ValueError, pytest.UsageError) as error:
        kind = _INI_KINDS.get(option.kind, "text")
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


def refuse_options(config: pytest.Config) -> None:
    """Refuse options that were typed without a suite; those of settings are for all sessions."""
    flags = {option.flag for option in OPTIONS}
    words = [str(argument).partition("=")[0] for argument in config.invocation_params.args]
    typed = [word for word in dict.fromkeys(words) if word in flags]
    if typed:
        verb = "needs" if len(typed) == 1 else "need"
        raise pytest.UsageError(
            f"{', '.join(typed)} {verb} a suite, and none was collected. Name its config with "
            "--jrh-config=FILE."
        )
