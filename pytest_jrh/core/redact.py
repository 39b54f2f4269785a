"""Removes secrets from every file that is written: the keys of the environment."""

from __future__ import annotations

import base64
import json
import os
import re
import threading
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote_plus, urlsplit, urlunsplit

from pytest_jrh.core import with_texts

REDACTED = "[REDACTED]"
_SHORTEST = 16
_CREDENTIAL_WORD = (
    r"(?i)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASS|CREDENTIAL|AUTH|AUTHORIZATION|BEARER"
    r"|COOKIE|PAT)S?\d*$"
)
_WORKING_FOLDERS = frozenset({"PWD", "OLDPWD"})
_OF_A_WORD = r'[^\s"\\]'
_SCHEME = r"(?i)(?:Bearer|Basic|Token)\s+(?=\S)"
_KEY_NAME = (
    r"(?s)key|apikey|token|sig|signature|code|password|passwd|pwd|secret|auth|authorization|credential"
    r"|credentials|assertion|sas|session|hmac|sign|jwt|bearer|awsaccesskeyid|key_pair_id"
    r"|googleaccessid|.*_(?:key|apikey|token|secret|signature|password|credential|auth)"
)
# Of JSON, also inside of JSON, and as Python shows it: such as `"access_token": "`.
_FIELD = (
    r"(?is)(?P<before>[\"'][\w.-]{0,40}?(?:passw(?:or)?d|passphrase|secret|authorization|cookie"
    r"|(?:access|refresh|id|auth|session|bearer|security|api|oauth)[_-]?token"
    r"|(?:api|access|private|secret(?:[_-]?access)?)[_-]?key)"
    r"\\{0,7}[\"']\s{0,9}:\s{0,9}\\{0,7}[\"'])(?:[^\"'\\]|\\+(?![\"'\\]).)+"
)
_PARAMETER = r"(?P<before>(?:\A|[?&])(?P<name>[\w.-]{1,60})=)[^\s&#\"'<>\\)]+"
_IN_URL = r"(?P<before>://[^\s/?#:@\"'<>]{0,200}:)[^\s/?#@\"'<>]{1,200}(?=@)"


def secrets_of(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Collect the values that look like credentials, longest first.

    A variable counts by its name: one of its words ends in KEY, TOKEN, SECRET, PASSWORD, AUTH or
    the like (`OPENAI_API_KEY`, `PGPASSWORD`; not `GIT_AUTHOR_NAME`, `TOKENIZERS_PARALLELISM`), or
    it ends in `_PWD`. Values under 16 characters and absolute paths that exist (`SSH_AUTH_SOCK`,
    `GOOGLE_APPLICATION_CREDENTIALS`) do not: replacing them would spoil text without hiding
    anything. A value like `Bearer sk-...` counts with and without its scheme.
    """
    secrets = set()
    # pytest changes its own environment all the time, from another thread.
    for name in list(environ):
        value = environ.get(name, "").strip()
        # Only a path that exists: a base64 key may begin with a slash, too.
        is_path = os.path.isabs(value) and "\0" not in value and os.path.lexists(value)  # noqa: PTH117 - text, not a path yet
        if names_a_credential(name) and not is_path:
            secrets.update({value, re.sub(_SCHEME, "", value, count=1)})
    return _longest_first(secret for secret in secrets if len(secret) >= _SHORTEST)


class Redactor:
    """Replaces each secret by `[REDACTED]`, also where it is escaped for JSON, quoted for a URL, or
    in base64.

    In base64 it is found inside of more, too, such as the `user:KEY` of a header; bits of it that
    share a letter with what stands beside it are left. What is not found: a secret that is cut, or
    encoded in another way.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.secrets: tuple[str, ...] = ()
        self._forms: tuple[str, ...] = ()
        self._lock = threading.Lock()
        self._take(secrets)

    def learn(self) -> None:
        """Take in what the environment has come to hold, for all who use this redactor: code that
        is not ours may read a key from a file `.env`.
        """
        self._take(secrets_of())

    def learn_header(self, name: str, text: str) -> None:
        """Take in what a header of a request says of who asks."""
        value = re.sub(_SCHEME, "", text, count=1)
        if names_a_credential(name) and len(value) >= _SHORTEST:
            self._take([value])

    def _take(self, values: Iterable[str]) -> None:
        with self._lock:
            secrets = {*self.secrets, *values}
            if len(secrets) == len(self.secrets):
                return
            forms = set()
            for secret in secrets:
                forms.update(_forms_of(secret))
            self.secrets = _longest_first(secrets)
            self._forms = _longest_first(forms)

    def text(self, text: str) -> str:
        """Return the text without secrets; the very same object where there is none in it."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, REDACTED)
        return text

    def of_code(self, text: str) -> str:
        """A text that a judge's code sent, got, raised or printed, without secrets: also without
        those by their place (a parameter of a URL, a field of JSON or of a form), such as a token
        that a service gave.
        """

        def parameter(match: re.Match[str]) -> str:
            return f"{match['before']}{REDACTED}" if _is_key(match["name"]) else match[0]

        hidden = rf"\g<before>{REDACTED}"
        # Those that are known first: by its place one may be cut, where a letter of it is escaped.
        text = re.sub(_FIELD, hidden, self.text(text))
        return re.sub(_PARAMETER, parameter, re.sub(_IN_URL, hidden, text))

    def value(self, value: Any) -> Any:
        """Return a JSON-like value, or one of the model, with every string in it (keys too) free of
        secrets.
        """
        return with_texts(value, self.text) if self._forms else value

    def url(self, url: str) -> str:
        """Return the URL without credentials before its host, key-like query parameters, and
        secrets.

        What stays keeps its order and its quoting; a URL that cannot be parsed is only searched.
        """
        try:
            parts = urlsplit(url)
        except ValueError:
            return self.text(url)
        pairs = [pair for pair in parts.query.split("&") if not _is_key(pair.partition("=")[0])]
        host = parts.netloc.rpartition("@")[2]
        return self.text(urlunsplit(parts._replace(netloc=host, query="&".join(pairs))))


def _longest_first(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(texts, key=lambda text: (-len(text), text)))


def names_a_credential(name: str) -> bool:
    """Whether a variable or a header holds a credential, by the words of its name."""
    if name.upper() in _WORKING_FOLDERS:
        return False
    words = re.split(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])", name)
    return name.upper().endswith("_PWD") or any(re.search(_CREDENTIAL_WORD, word) for word in words)


def _is_key(parameter: str) -> bool:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", unquote_plus(parameter))
    name = words.lower().replace("-", "_")
    return re.fullmatch(_KEY_NAME, name) is not None


def _forms_of(secret: str) -> set[str]:
    escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    escaped.add(repr(secret)[1:-1])
    # A model's answer is JSON inside the JSON of its response.
    escaped |= {json.dumps(form)[1:-1] for form in escaped}
    raw = secret.encode("utf-8", "replace")
    quoted = {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    encoded = set()
    for before in range(3):
        # Of the letters, six bits each, those which no other byte has a part in.
        first, last = -(-8 * before // 6), 8 * (before + len(raw)) // 6
        padded = bytes(before) + raw
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            encoded.add(encode(padded)[first:last].decode())
    return {secret, *escaped, *quoted, *encoded}


def covers(recorded: str, text: str) -> bool:
    """Whether the texts are equal.

    A secret that was taken out may be any word, for it may not be one here. It is no more than a
    word, so that it stands for no whole prompt.
    """
    first, *later_parts = recorded.split(REDACTED)
    if not later_parts or recorded == text:
        return recorded == text
    *middle_parts, last = map(re.escape, later_parts)
    # The earliest place of what follows a secret leaves the most for the rest, so that no other is
    # looked at: a text may hold the mark any number of times.
    middle = "".join(rf"(?>{_OF_A_WORD}+?{part})" for part in middle_parts)
    return re.fullmatch(f"{re.escape(first)}{middle}{_OF_A_WORD}+{last}", text) is not None


NO_SECRETS = Redactor()
