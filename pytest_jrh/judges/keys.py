"""Keys that a judge's own code does not find, as on a replay: an error says which variable to set,
whoever raised it. Nothing is sent there, so any value will do.
"""

from __future__ import annotations

import linecache
import os
import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from pytest_jrh.core.errors import is_ours_or_installed
from pytest_jrh.core.redact import names_a_credential

_NAME = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|(?<=[\"'`])[A-Z][A-Z0-9]+(?=[\"'`])")
_ABOUT_VARIABLES = re.compile(r"environ|env ?var|\.env\b", re.IGNORECASE)
_IS_MISSING = re.compile(r"\b(?:not|no|un)\s?(?:set|found)|missing|required|\bset\b", re.IGNORECASE)
_ABOUT_KEYS = re.compile(r"credential|api.?key|auth|token|profile|region", re.IGNORECASE)
# What code does with a key that it has not found.
_NOTHING = re.compile(r"\bNone(?:Type)?\b|SystemExit|Illegal header", re.IGNORECASE)
# `os.environ[NAME]` and `get` without a default, in a file's text.
_READ = re.compile(
    r"(?:getenv|environ(?:\.get|\.pop)?)\s*[\[(]\s*[\"'](\w+)[\"']\s*[\])](?!\s*=[^=])"
)
_MOST_NAMES = 2
_ANY_VALUE = "On replay nothing is sent, so any value will do"


@dataclass(frozen=True, slots=True)
class _Cloud:
    """Where the libraries of a provider look for keys, beyond the variables that errors name.

    `paths` are those of the metadata service that they ask in the end; `instead` is what helps
    where values of variables do not.
    """

    libraries: tuple[str, ...]
    paths: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    instead: str = ""


_CLOUDS = {
    "Anthropic": _Cloud(("anthropic",), variables=("ANTHROPIC_API_KEY",)),
    "AWS": _Cloud(
        ("botocore", "boto3", "aiobotocore", "aioboto3"),
        ("/latest/", "/v1/credentials", "/v2/credentials"),
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    ),
    "Google": _Cloud(
        ("google.auth",),
        ("/computeMetadata",),
        instead="Set GOOGLE_APPLICATION_CREDENTIALS to a file of the kind of credentials that it "
        "was recorded with: on replay nothing is sent, so its keys may be any. Or set `version` on "
        "the judge, which then answers from its recorded verdict",
    ),
    "Gemini": _Cloud(("google.genai",), variables=("GEMINI_API_KEY",)),
    "Azure": _Cloud(
        ("azure.identity", "msal"),
        ("/metadata/", "/msi/"),
        instead="Set AZURE_TENANT_ID and AZURE_CLIENT_ID as they were recorded, and "
        "AZURE_CLIENT_SECRET: on replay nothing is sent, so it may be any. Or set `version` on the "
        "judge, which then answers from its recorded verdict",
    ),
    "Hugging Face": _Cloud(("huggingface_hub",), variables=("HF_TOKEN",)),
}
_METADATA_HOSTS = frozenset(
    {"169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200"}
    | {"fd00:ec2::254", "fd00:ec2::23", "metadata.google.internal", "metadata.goog", "metadata"}
)
_REGION = ("AWS_DEFAULT_REGION",)
_PROFILE = (
    "Write the profile into ~/.aws/credentials, with `aws_access_key_id = replay` and "
    "`aws_secret_access_key = replay`: on replay nothing is sent, so any value will do"
)


def asks_for_credentials(url: str) -> bool:
    """Whether a URL, or `HOST:PORT`, is of a machine's metadata service, which gives a cloud's
    libraries the keys that they find nowhere else.
    """
    try:
        host = urlsplit(url if "://" in url else f"//{url}").hostname
    except ValueError:
        host = None
    # An IPv6 address may stand without brackets before the port of a socket.
    return host in _METADATA_HOSTS or url.rpartition(":")[0] in _METADATA_HOSTS


def advice_on_credentials(url: str) -> str:
    """What to set in place of what a metadata service would be asked for; empty for another URL."""
    if not asks_for_credentials(url):
        return ""
    path = urlsplit(url).path if "://" in url else ""
    for name, cloud in _CLOUDS.items():
        if cloud.paths and path.startswith(cloud.paths):
            return _advice_of(name, cloud)
    return _advice_of("A cloud's", _CLOUDS["AWS"])


def advice_on_keys(error: BaseException) -> str:
    """What to set where an error says that a key is missing; empty for any other error."""
    causes = [*_causes(error)]
    for cause in causes:
        if needed := _variable_of(cause) or _settings_of(cause):
            return f"Not set: {', '.join(needed)}. {_to_set(needed)}"
        if names := _named(cause):
            return f"{' or '.join(names)} is not set. {_to_set(names[:1])}"
    for cause in causes:
        text = str(cause)
        modules = [type(cause).__module__, *_modules(cause)]
        for name, cloud in _CLOUDS.items():
            own = [module for module in modules if f"{module}.".startswith(_dotted(cloud))]
            if own and _ABOUT_KEYS.search(text):
                if name == "AWS" and "profile" in text:
                    return f"The profile is not there. {_PROFILE}"
                if name == "AWS" and "region" in text:
                    return f"No region is set. {_to_set(_REGION)}"
                return _advice_of(name, cloud)
    unset = _read_and_unset(error) if _NOTHING.search(f"{type(error).__name__} {error}") else []
    if unset:
        return f"The code reads {', '.join(unset)}, not set here. {_to_set(unset)}"
    return ""


def _to_set(names: list[str] | tuple[str, ...]) -> str:
    """What to write for variables that a replay needs, whatever they hold."""
    lines = "".join(f"\n    {name}: replay" for name in names)
    return f"{_ANY_VALUE}; in the workflow's `env`:{lines}"


def _advice_of(name: str, cloud: _Cloud) -> str:
    what = cloud.instead or _to_set(cloud.variables)
    return f"{name} credentials are missing. {what}"


def _dotted(cloud: _Cloud) -> tuple[str, ...]:
    return tuple(f"{library}." for library in cloud.libraries)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _modules(error: BaseException) -> list[str]:
    frames = traceback.walk_tb(error.__traceback__)
    return [frame.f_globals.get("__name__", "") for frame, _ in frames]


def _variable_of(error: BaseException) -> list[str]:
    """The variable that `os.environ[NAME]` has not found."""
    is_look_up = isinstance(error, KeyError) and _modules(error)[-1:] == ["os"]
    return [str(error.args[0])] if is_look_up and isinstance(error.args[0], str) else []


def _settings_of(error: BaseException) -> list[str]:
    """The variables that settings of pydantic's have not found for their fields."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        settings = frame.f_locals.get("__pydantic_self__")
        if settings is not None and isinstance(error, ValueError) and hasattr(error, "errors"):
            prefix = type(settings).model_config.get("env_prefix", "")
            missing = [found for found in error.errors() if found["type"] == "missing"]
            return [f"{prefix}{found['loc'][0]}".upper() for found in missing]
    return []


def _named(error: BaseException) -> list[str]:
    """The variables, not set, that the text of an error asks for."""
    text = str(error)
    about_variables = _ABOUT_VARIABLES.search(text) is not None
    if not about_variables and not _IS_MISSING.search(text):
        return []
    names: list[str] = []
    for name in dict.fromkeys(_NAME.findall(text)):
        if not os.environ.get(name) and (about_variables or names_a_credential(name)):
            names.append(name)
    return names[:_MOST_NAMES]


def _read_and_unset(error: BaseException) -> list[str]:
    """The variables that the files in an error's traceback read, and that are not set."""
    names: dict[str, None] = {}
    for frame, _ in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not is_ours_or_installed(file):
            names |= dict.fromkeys(_READ.findall("".join(linecache.getlines(file))))
    return [name for name in names if not os.environ.get(name)]
