"""Keeping secrets out of every file that is written (semantics G4)."""

from __future__ import annotations

import json
import os.path
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_plus, unquote_plus, urlsplit, urlunsplit

REDACTED = "[REDACTED]"
_SHORTEST = 16
_CREDENTIAL_WORD = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASS|CREDENTIAL|AUTH|AUTHORIZATION|BEARER|COOKIE|PAT)S?\d*$",
    re.IGNORECASE,
)
_WORKING_FOLDERS = frozenset({"PWD", "OLDPWD"})
_SCHEME = re.compile(r"(?:Bearer|Basic|Token)\s+(?=\S)", re.IGNORECASE)
_KEY_PARAMETERS = frozenset(
    {"key", "apikey", "token", "sig", "signature", "code", "password", "passwd", "pwd", "secret", "auth"}
    | {"authorization", "credential", "credentials", "assertion", "sas", "session"}
)
_KEY_ENDINGS = ("_key", "_apikey", "_token", "_secret", "_signature", "_password", "_credential", "_auth")


def secrets_of(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Collect the values that look like credentials, longest first.

    A variable counts by its name: one of its words ends in KEY, TOKEN, SECRET, PASSWORD, AUTH or
    the like (`OPENAI_API_KEY`, `PGPASSWORD`; not `GIT_AUTHOR_NAME`, `TOKENIZERS_PARALLELISM`), or it
    ends in `_PWD`. Values under 16 characters and absolute paths that exist (`SSH_AUTH_SOCK`,
    `GOOGLE_APPLICATION_CREDENTIALS`) do not: replacing them would spoil text without hiding anything.
    A value like `Bearer sk-...` counts with and without its scheme.
    """
    found: set[str] = set()
    for name, raw in environ.items():
        value = raw.strip()
        if len(value) < _SHORTEST or not _names_a_credential(name) or _is_path(value):
            continue
        found.update((raw, value))
        bare = _SCHEME.sub("", value, count=1) if _SCHEME.match(value) else value
        if len(bare) >= _SHORTEST:
            found.add(bare)
    return tuple(sorted(found, key=lambda secret: (-len(secret), secret)))


@dataclass(frozen=True, slots=True)
class Redactor:
    """Replaces each secret by `[REDACTED]`, also where it stands JSON-escaped or URL-quoted."""

    secrets: tuple[str, ...] = ()
    _forms: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        forms = {form for secret in self.secrets for form in _forms_of(secret)}
        object.__setattr__(self, "_forms", tuple(sorted(forms, key=lambda form: (-len(form), form))))

    def text(self, text: str) -> str:
        """Return the text without secrets; the very same object where there is none in it."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, REDACTED)
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON-like value with every string in it (keys too) free of secrets."""
        if not self._forms:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.value(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def url(self, url: str) -> str:
        """Return the URL without credentials before its host, key-like query parameters, and secrets.

        What stays keeps its order and its quoting; a URL that cannot be parsed is only searched.
        """
        try:
            parts = urlsplit(url)
        except ValueError:
            return self.text(url)
        kept = [pair for pair in parts.query.split("&") if not _is_key(pair.partition("=")[0])]
        host = parts.netloc.rpartition("@")[2]
        return self.text(urlunsplit(parts._replace(netloc=host, query="&".join(kept))))


def _names_a_credential(name: str) -> bool:
    if name.upper() in _WORKING_FOLDERS:
        return False
    words = re.split(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])", name)
    return name.upper().endswith("_PWD") or any(_CREDENTIAL_WORD.search(word) for word in words)


def _is_path(value: str) -> bool:
    # Only a path that exists: a base64 key may begin with a slash, too.
    return os.path.isabs(value) and "\0" not in value and os.path.lexists(value)  # noqa: PTH117 - text, not a path yet


def _is_key(parameter: str) -> bool:
    name = unquote_plus(parameter).lower().replace("-", "_")
    return name in _KEY_PARAMETERS or name.endswith(_KEY_ENDINGS)


def _forms_of(secret: str) -> set[str]:
    escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    # A model's answer is JSON inside the JSON of its response.
    escaped |= {json.dumps(form)[1:-1] for form in escaped}
    storable = secret.encode("utf-8", "replace").decode("utf-8")
    quoted = {quote(storable, safe=""), quote(storable), quote_plus(storable)}
    return {secret, *escaped, *quoted}
