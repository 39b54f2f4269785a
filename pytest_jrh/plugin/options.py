"""The options as pytest knows them; what the options are is in `pytest_jrh.config.options`."""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Iterable
from typing import Any

import pytest

from pytest_jrh.config.options import ALONE, NUMBERS, OPTIONS, Option, Options, mistakes

OPTIONS_READ = pytest.StashKey[Options]()
SESSION_KEY = "jrh_session"
RESULT_ATTRIBUTE = "jrh_result"
_TOKEN = pytest.StashKey[str]()
YAML_SUFFIXES = (".yml", ".yaml")
_INI_TYPES: dict[str, Any] = {"bool": "bool", "paths": "args"}


def session_token(config: pytest.Config) -> str:
    """The token in names of this session's files; xdist's controller tells it to its workers."""
    if hasattr(config, "workerinput"):
        return str(config.workerinput[SESSION_KEY])
    return config.stash.setdefault(_TOKEN, secrets.token_hex(16))


def add_options(parser: pytest.Parser) -> None:
    """Declare every option on the command line and as an ini key."""
    group = parser.getgroup("jrh", "judge reliability suites")
    for option in OPTIONS:
        ini_type = _INI_TYPES.get(option.kind, "string")
        if option.kind in NUMBERS and pytest.version_tuple >= (8, 4):
            # Since then pytest reads numbers of TOML.
            ini_type = option.kind
        parser.addini(option.key, option.help, type=ini_type, default=None)
        if option.kind != "choice":
            group.addoption(option.flag, dest=option.key, **option.argument)
            continue
        # One flag for each spelling: an optional value would take the next argument.
        for value in (ALONE, *option.choices):
            is_alone = value == ALONE
            group.addoption(
                option.flag if is_alone else f"{option.flag}={value}",
                dest=option.key,
                help=option.help if is_alone else argparse.SUPPRESS,
                action="store_const",
                const=value,
            )


def refuse_mistyped(arguments: Iterable[str]) -> None:
    """Raise `pytest.UsageError` for what is nearly an option; a project may have others alike."""
    flags = [option.flag for option in OPTIONS]
    for argument in arguments:
        flag = argument.partition("=")[0]
        if flag.startswith("--jrh") and flag not in flags:
            from pytest_jrh.core import nearest_hint

            if hint := nearest_hint(flag, flags, cutoff=0.8):
                raise pytest.UsageError(f"unrecognized argument {flag}; {hint}")


def read_options(config: pytest.Config) -> Options:
    """Read the options, the command line over the ini file; raises `pytest.UsageError`.

    Paths are relative to the folder that pytest was started in, those of the ini file to its own
    folder.
    """
    values = {}
    typed = set(map(str, config.invocation_params.args))
    added = {word.partition("=")[0] for word in set(config.getini("addopts")) - typed}
    of_ini = set()
    for option in OPTIONS:
        value, folder = config.getoption(option.key), config.invocation_params.dir
        if value is None:
            value, folder = _ini_value(config, option), config.rootpath
            of_ini.add(option.key)
        elif option.flag in added:
            of_ini.add(option.key)
        values[option.sets] = option.value(value, folder)
    options = Options(**values)
    for mistake in mistakes(options, of_ini):
        raise pytest.UsageError(mistake)
    return options


def may_be_case(nodeid: str) -> bool:
    """Whether a node id is of a file whose name a suite may have."""
    return nodeid.partition("::")[0].endswith(YAML_SUFFIXES)


def _ini_value(config: pytest.Config, option: Option) -> Any:
    try:
        value = config.getini(option.key)
        if value in (None, "", []):
            return None
        if option.kind in NUMBERS:
            return NUMBERS[option.kind](value)
    except (TypeError, ValueError, pytest.UsageError) as error:
        raise pytest.UsageError(f"{option.key}: {error}") from None
    if option.choices and value not in option.choices:
        raise pytest.UsageError(
            f"{option.key} = {value}: must be one of {', '.join(option.choices)}"
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
            f"{', '.join(typed)} {verb} a suite, but pytest collected no suite. Name the config of "
            "a suite with --jrh-config=FILE."
        )
