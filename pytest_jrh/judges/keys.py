"""Keys that a judge's own code does not find, as on a replay: an error says which variable to set,
whoever raised it. Nothing is sent there, so any value will do.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterator
from urllib.parse import urlsplit

from pytest_jrh.core.redact import names_a_credential

_NAME = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|(?<=[\"'`])[A-Z][A-Z0-9]+(?=[\"'`])")
_ABOUT_VARIABLES = re.compile(r"environ|env ?var|\.env\b", re.IGNORECASE)
_IS_MISSING = re.compile(r"\b(?:not|no|un)\s?(?:set|found)|missing|required|\bset\b", re.IGNORECASE)
_ABOUT_KEYS = re.compile(r"credential|api.?key|auth|token", re.IGNORECASE)
_MOST_NAMES = 2
_ANY_VALUE = "On replay nothing is sent, so any value will do"
# Libraries whose errors do not name the variable that they look for.
_VARIABLES = {
    "anthropic.": "ANTHROPIC_API_KEY",
    "google.genai.": "GEMINI_API_KEY",
    "huggingface_hub.": "HF_TOKEN",
}
_OF_CLOUDS = ("botocore.", "boto3.", "aiobotocore.", "google.auth.", "azure.identity.", "msal.")
_METADATA_HOSTS = frozenset(
    {"169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200"}
    | {"fd00:ec2::254", "fd00:ec2::23", "metadata.google.internal", "metadata.goog", "metadata"}
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


def advice_on_credentials() -> str:
    """What to set in place of what a metadata service would be asked for."""
    return (
        "Credentials of a cloud are missing. "
        f"{_to_set(['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'])}\n"
        "Of Google GOOGLE_APPLICATION_CREDENTIALS has to name a file of the kind of credentials "
        "that it was recorded with, and of Azure AZURE_TENANT_ID and AZURE_CLIENT_ID have to be as "
        "they were recorded. Or set `version` on the judge, which then answers from its recorded "
        "verdict"
    )


def advice_on_keys(error: BaseException) -> str:
    """What to set where an error says that a key is missing; empty for any other error."""
    causes = [*_causes(error)]
    for cause in causes:
        if names := _variable_of(cause) or _named(cause):
            return f"{' or '.join(names)} is not set. {_to_set(names[:1])}"
    for cause in causes:
        if not _ABOUT_KEYS.search(str(cause)):
            continue
        for module in (type(cause).__module__, *_modules(cause)):
            if f"{module}.".startswith(_OF_CLOUDS):
                return advice_on_credentials()
            for library, name in _VARIABLES.items():
                if f"{module}.".startswith(library):
                    return f"{name} is not set. {_to_set([name])}"
    return ""


def _to_set(names: list[str]) -> str:
    """What to write for variables that a replay needs, whatever they hold."""
    lines = "".join(f"\n    {name}: replay" for name in names)
    return f"{_ANY_VALUE}; in the workflow's `env`:{lines}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _modules(error: BaseException) -> list[str]:
    frames = traceback.walk_tb(error.__traceback__)
    return [frame.f_globals.get("__name__", "") for frame, _ in frames]


def _variable_of(error: BaseException) -> list[str]:
    """The variable that `os.environ[NAME]` has not found."""
    if isinstance(error, KeyError) and _modules(error)[-1:] == ["os"]:
        return [error.args[0]]
    return []


def _named(error: BaseException) -> list[str]:
    """The variables, not set, that the text of an error asks for."""
    text = str(error)
    about_variables = _ABOUT_VARIABLES.search(text) is not None
    if not about_variables and not _IS_MISSING.search(text):
        return []
    names = []
    for name in dict.fromkeys(_NAME.findall(text)):
        if not os.environ.get(name) and (about_variables or names_a_credential(name)):
            names.append(name)
    return names[:_MOST_NAMES]
