"""Removes secrets from every file that is written."""

from __future__ import annotations

import base64
import binascii
import json
import os.path
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus, urlsplit, urlunsplit

from pytest_jrh.core.text import ELLIPSIS

REDACTED = "[REDACTED]"
_SHORTEST = 16
_Forms = tuple[tuple[str, re.Pattern[str]], ...]
# Of a value that is known by its place: below this it is replaced only where it stands alone, and
# under three characters, which are in any text, nowhere but in its place.
_SHORTEST_ANYWHERE = 8
_SHORTEST_ALONE = 3
# A text that is cut in the middle of a secret holds at least so much of it.
_LEAST_CUT = 4
_MOST_SEEN = 500
# So that one text, such as a transcript full of passwords, leaves those that other places told of.
_MOST_LEARNED = 50
# Of a setting that is named like a secret, such as `USE_AUTH=true`; every JSON has them.
_NO_SECRETS = frozenset({"true", "false", "null", "none", "yes", "no", "on", "off"})
_LARGEST_DOTENV = 2**20
_CREDENTIAL_WORD = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASS|CREDENTIAL|AUTH|AUTHORIZATION|BEARER|COOKIE|PAT)S?\d*$",
    re.IGNORECASE,
)
_WORKING_FOLDERS = frozenset({"PWD", "OLDPWD"})
_NOT_OF_A_WORD = re.compile(r'[\s"\\]')
_SCHEME = re.compile(r"(?:Bearer|Basic|Token)\s+(?=\S)", re.IGNORECASE)
_KEY_PARAMETERS = frozenset(
    {"key", "apikey", "token", "sig", "signature", "code", "password", "passwd", "pwd", "secret"}
    | {"auth", "authorization", "credential", "credentials", "assertion", "sas", "session"}
    | {"hmac", "sign", "jwt", "bearer", "awsaccesskeyid", "key_pair_id", "googleaccessid"}
)
# As in "key: |\n  L1\n  L2", "> L1\n> L2" and "L1\\nL2"; it cannot begin with what a line of base64
# begins with.
_BETWEEN_LINES = r"(?:[\s>|]|\\+[nrt])*+"
# What escapes for HTML and XML make of a text: Python's two, markupsafe and Go, XML, mustache,
# handlebars.
_TEXT_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_TAG_ESCAPES = {**_TEXT_ESCAPES, '"': "&quot;"}
_HTML_ESCAPES: tuple[Mapping[str, str], ...] = (
    _TEXT_ESCAPES,
    {**_TAG_ESCAPES, "'": "&#x27;"},
    {**_TAG_ESCAPES, "'": "&#39;"},
    {**_TAG_ESCAPES, "'": "&apos;"},
    {**_TEXT_ESCAPES, '"': "&#34;", "'": "&#39;"},
    {**_TEXT_ESCAPES, '"': "&#34;", "'": "&#39;", "+": "&#43;"},
    {**_TAG_ESCAPES, "'": "&#39;", "/": "&#x2F;", "`": "&#x60;", "=": "&#x3D;"},
    {**_TAG_ESCAPES, "'": "&#x27;", "`": "&#x60;", "=": "&#x3D;"},
)
# The names of fields whose text is a secret whatever it is, and of those where it is one if it
# looks like one.
_SURE_FIELD = (
    r"(?:passw(?:or)?d|passphrase|pwd|secret|authorization|cookie|credentials?"
    r"|(?:access|refresh|id|auth|session|bearer|security|api|oauth)[_-]?token"
    r"|(?:api|access|private|subscription|signing|secret(?:[_-]?access)?)[_-]?key)"
)
_SECRET_NAME = re.compile(rf"{_SURE_FIELD}$", re.IGNORECASE)
_PERHAPS_SECRET_NAME = re.compile(
    r"(?:token|key|jwt|sig|signature|sid|session|assertion)$", re.IGNORECASE
)
# `"name": "`, also in JSON inside of JSON, and as Python shows it.
_FIELD = re.compile(
    r"(?P<quote>\\{0,7}[\"'])(?P<name>[\w.-]{1,60})(?P=quote)\s{0,9}[:=]\s{0,9}b?"
    r"(?P<open>\\{0,7}[\"'])"
)
_PART = re.compile(
    rf"name=\"?[\w.-]{{0,40}}?{_SURE_FIELD}\"?[^\r\n]{{0,200}}\r?\n(?:[^\r\n]{{1,200}}\r?\n){{0,9}}\r?\n"
    r"(?P<value>[^\r\n]{1,8192})",
    re.IGNORECASE,
)
_PARAMETER = re.compile(
    r"(?:\A|[?&;#]|\\u0026)(?P<name>[\w.%~\[\]-]{1,60})=(?P<value>[^\s&;#\"'<>\\)\],]{1,8192})"
)
_IN_URL = re.compile(r"://[^\s/?#:@\"'<>]{0,200}:(?P<value>[^\s/?#@\"'<>]{1,200})@")
_SCHEMED = re.compile(r"\b(?:Bearer|Basic|Token) (?P<value>(?=\S*\d)[\w.~+/=-]{8,8192})")
_TOKEN_IN_URL = re.compile(r"://(?P<value>[^\s/?#:@\"'<>]{16,200})@")
_PLACES = (_PART, _PARAMETER, _IN_URL, _TOKEN_IN_URL, _SCHEMED)
# Behind no letter or digit, unless that is the end of an escape.
_BEFORE_ALONE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4}))"
_NO_JSON_NUMBER = r"(?!\s*[,}\]])"
_BEFORE_JSON_KEY = re.compile(r"[{,](?:\s|\\{1,7}[nrt]){0,99}\\{0,7}\"\Z")
_BEHIND_JSON_KEY = re.compile(r"\\{0,7}\"\s{0,9}:")
_LONGEST_BEFORE_KEY = 120
_PLAIN_WORD = re.compile(r"[A-Za-z]{1,12}|\d{1,12}")
_WORDS = re.compile(r"(?:[A-Za-z]{0,20}\d{0,4}|\d{1,8}[A-Za-z]{0,2})")
# Made up anew for each request.
_CHANCE_HEADERS = frozenset({"idempotency-key", "sec-websocket-key"})
_KEY_ENDINGS = (
    "_key",
    "_apikey",
    "_token",
    "_secret",
    "_signature",
    "_password",
    "_credential",
    "_auth",
)


def secrets_of(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Collect the values that look like credentials, longest first.

    A variable counts by its name: one of its words ends in KEY, TOKEN, SECRET, PASSWORD, AUTH or
    the like (`OPENAI_API_KEY`, `PGPASSWORD`; not `GIT_AUTHOR_NAME`, `TOKENIZERS_PARALLELISM`), or
    it ends in `_PWD`. Values under 16 characters and absolute paths that exist (`SSH_AUTH_SOCK`,
    `GOOGLE_APPLICATION_CREDENTIALS`) do not: replacing them would spoil text without hiding
    anything. A value like `Bearer sk-...` counts with and without its scheme.
    """
    secrets: set[str] = set()
    # pytest changes its own environment all the time, from another thread.
    for name in list(environ):
        value = environ.get(name, "").strip()
        if len(value) < _SHORTEST or not _names_a_credential(name) or _is_path(value):
            continue
        secrets.add(value)
        bare = _SCHEME.sub("", value, count=1) if _SCHEME.match(value) else value
        if len(bare) >= _SHORTEST:
            secrets.add(bare)
    return _longest_first(secrets)


@dataclass(frozen=True, slots=True)
class Redactor:
    r"""Replaces each secret by `[REDACTED]`, also where it is escaped for JSON or HTML, quoted for
    a URL, or in base64.

    In base64 it is found inside of more, too, such as the `user:KEY` of a header; bits of it that
    share a letter with what stands beside it are left (at most four at each end). A secret of
    several lines (a PEM key) is found with its lines indented, quoted or joined by `\n`, too, and
    each of its lines of 16 characters or more on its own. What is not found: a secret that is cut,
    or encoded in another way.

    Beside these `secrets`, which are taken out of every text, it takes others out of what a judge's
    code exchanges, raises and prints (`of_code`): values that are secrets by their place, such as
    that of a header `Authorization`, and that are not known before the code runs.
    """

    secrets: tuple[str, ...] = field(default=(), repr=False)
    _forms: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _blocks: tuple[tuple[str, re.Pattern[str]], ...] = field(init=False, repr=False, compare=False)
    _seen: dict[str, _Forms] = field(default_factory=dict, init=False, repr=False, compare=False)
    _lock: threading.Lock = field(
        default_factory=threading.Lock, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        forms: set[str] = set()
        blocks: list[tuple[str, re.Pattern[str]]] = []
        for secret in self.secrets:
            lines = _lines_of(secret)
            if lines:
                blocks.append((lines[0], _block_of(lines)))
            # `-----BEGIN PRIVATE KEY-----` is the same in every key of its kind.
            own_lines = (line for line in lines if not line.startswith("-----"))
            for text in (secret, *(line for line in own_lines if len(line) >= _SHORTEST)):
                forms.update(_forms_of(text))
                forms.update(_enclosed_forms_of(text))
        object.__setattr__(self, "_forms", _longest_first(forms))
        object.__setattr__(self, "_blocks", tuple(blocks))

    def learn(self, environ: Mapping[str, str]) -> None:
        """Take in what the environment has come to hold, for all who use this redactor: code that
        is not ours may read a key from a file `.env`.
        """
        self._take(secrets_of(environ))

    def add(self, values: Iterable[str]) -> None:
        """Take in values that are secrets by their place, before anything is written.

        They are taken out of every text, unless that would spoil it: see `see`.
        """
        parts = _parts_of_all(values)
        self._take(part for part in parts if not _is_weak(part))
        self.see(part for part in parts if _is_weak(part))

    def see(self, values: Iterable[str]) -> None:
        """Take in values that are secrets by their place, for `of_code`.

        One of under 8 characters, or a plain word, is found where it stands alone. The 500 that
        were seen last are kept: a judge may get a token for each request.
        """
        with self._lock:
            seen = dict(self._seen)
            for part in sorted(_parts_of_all(values)):
                if part in seen:
                    seen[part] = seen.pop(part)
                elif part not in self.secrets:
                    seen[part] = _found_alone(part) if _is_weak(part) else _found_anywhere(part)
            for oldest in list(seen)[:-_MOST_SEEN]:
                del seen[oldest]
            object.__setattr__(self, "_seen", seen)

    def see_headers(self, headers: Mapping[str, Iterable[str]]) -> None:
        """Take in what the headers of a request say of who asks."""
        values: list[str] = []
        for name, texts in headers.items():
            if not _names_a_credential(name) or name.lower() in _CHANCE_HEADERS:
                continue
            for text in texts:
                values += re.findall(r"=([^;]+)", text) if name.lower() == "cookie" else [text]
        self.see(values)

    def see_fields(self, fields: Iterable[tuple[object, object]]) -> None:
        """Take in the values of those fields of a form that are named as secrets."""
        self.see(
            value
            for name, value in fields
            if isinstance(name, str) and isinstance(value, str) and _is_key(name)
        )

    def of_code(self, text: str, *, learn: bool = False) -> str:
        """A text that a judge's code sent, got, raised or printed, without secrets: also without
        what is one by its place in it (a parameter of a URL, a field of JSON or of a form).

        With `learn`, these are then found wherever they are repeated.
        """
        values: list[str] = []

        def hidden(match: re.Match[str]) -> str:
            value = match["value"]
            if REDACTED in value or (match.re is _PARAMETER and not _is_key(match["name"])):
                return match[0]
            values.append(value)
            start, end = (index - match.start() for index in match.span("value"))
            return f"{match[0][:start]}{REDACTED}{match[0][end:]}"

        text = _without_fields(text, values)
        for secret_field in _PLACES:
            text = secret_field.sub(hidden, text)
        if learn:
            self.see(values[-_MOST_LEARNED:])
        text = self.text(text)
        for forms in self._seen.values():
            for form, pattern in forms:
                if form in text:
                    text = pattern.sub(_redacted_but_keys, text)
        return self._without_cut(text) if ELLIPSIS in text else text

    def _without_cut(self, text: str) -> str:
        """The text without the beginnings of secrets that an ellipsis cuts."""
        forms = list(self._forms)
        for patterns in self._seen.values():
            forms += (form for form, _ in patterns)
        beginnings: dict[str, list[str]] = {}
        for form in forms:
            beginnings.setdefault(form[:_LEAST_CUT], []).append(form)
        longest = max(map(len, forms), default=0)
        parts = text.split(ELLIPSIS)
        for number, part in enumerate(parts[:-1]):
            start = _start_of_cut(part, beginnings, longest)
            if start is not None:
                parts[number] = part[:start] + REDACTED
        return ELLIPSIS.join(parts)

    def _take(self, values: Iterable[str]) -> None:
        new = set(values) - set(self.secrets)
        if new:
            object.__setattr__(self, "secrets", _longest_first({*self.secrets, *new}))
            self.__post_init__()

    def text(self, text: str) -> str:
        """Return the text without secrets; the very same object where there is none in it."""
        for first, block in self._blocks:
            if first in text:
                text = block.sub(REDACTED, text)
        for form in self._forms:
            if form in text:
                text = text.replace(form, REDACTED)
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON-like value, or one of the model, with every string in it (keys too) free of
        secrets.
        """
        if not self._forms and not self._blocks:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.value(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            clean = map(self.value, value)
            return list(clean) if isinstance(value, list) else tuple(clean)
        if is_dataclass(value) and not isinstance(value, type):
            names = [declared.name for declared in fields(value)]
            return replace(value, **{name: self.value(getattr(value, name)) for name in names})
        return value

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


def dotenv_secrets(values: Mapping[str, str | None]) -> list[str]:
    """What is secret of the values of a file `.env`: those of names like credentials, the
    passwords of URLs, and what looks like a key under another name.
    """
    secrets: list[str] = []
    for name, value in values.items():
        text = (value or "").strip()
        if "://" in text:
            secrets += [match["value"] for match in _IN_URL.finditer(text)]
        elif text and not _is_path(text) and (_names_a_credential(name) or _looks_random(text, 8)):
            secrets.append(text)
    return secrets


def read_dotenv(folders: Iterable[Path]) -> list[str]:
    """The secrets of the files `.env` and `.env.*` in these folders."""
    files: set[Path] = set()
    for folder in folders:
        files.update(filter(Path.is_file, folder.glob(".env*")))
    paths = sorted(files)
    if not paths or find_spec("dotenv") is None:
        return []
    dotenv_values = import_module("dotenv").dotenv_values
    secrets: list[str] = []
    for path in paths:
        try:
            if path.stat().st_size <= _LARGEST_DOTENV:
                secrets += dotenv_secrets(dotenv_values(path, interpolate=False))
        except (OSError, UnicodeDecodeError):
            continue
    return secrets


def _without_fields(text: str, values: list[str]) -> str:
    """The text without the texts of secret fields, which are added to `values`."""
    pieces: list[str] = []
    end = 0
    for field_start in _FIELD.finditer(text):
        name, start = field_start["name"], field_start.end()
        is_sure = _SECRET_NAME.search(name) is not None
        if start < end or not (is_sure or _PERHAPS_SECRET_NAME.search(name)):
            continue
        close = re.escape(field_start["open"])
        inner_text = re.compile(rf"(?:(?!{close})(?:\\.|[^\\])){{1,8192}}", re.DOTALL).match(
            text, start
        )
        if inner_text is None:
            continue
        if REDACTED in inner_text[0]:
            # Such as `Bearer [REDACTED]`, of code that was answered without the secret.
            hides = is_sure
        else:
            hides = is_sure or _looks_random(inner_text[0], _SHORTEST)
            if hides:
                values.append(inner_text[0])
        if hides:
            pieces += [text[end:start], REDACTED]
            end = inner_text.end()
    return "".join([*pieces, text[end:]])


def _looks_random(value: str, least: int) -> bool:
    """Whether a text looks like a key, not like words, names, versions and dates."""
    if len(value) < least or any(char.isspace() for char in value):
        return False
    return not all(_WORDS.fullmatch(part) for part in re.split(r"[-_.:/@,+]", value))


def _longest_first(texts: set[str]) -> tuple[str, ...]:
    return tuple(sorted(texts, key=lambda text: (-len(text), text)))


def _parts_of_all(values: Iterable[str]) -> set[str]:
    return set(chain.from_iterable(map(_parts_of, values)))


def _parts_of(value: str) -> set[str]:
    """What is to be found of a value: as it is, unquoted, and without the scheme of a header."""
    texts = {value.strip(), unquote(value).strip(), unquote_plus(value).strip()}
    bare = {_SCHEME.sub("", text, count=1) for text in texts if _SCHEME.match(text)}
    for text in bare:
        try:
            pair = base64.b64decode(text, validate=True).decode()
        except (binascii.Error, ValueError):
            continue
        bare = bare | {pair.partition(":")[2]}
    return {
        text
        for text in bare or texts
        if len(text) >= _SHORTEST_ALONE and REDACTED not in text and text.lower() not in _NO_SECRETS
    }


def _is_weak(value: str) -> bool:
    """Whether replacing a value everywhere would spoil text: it is short, or a plain word."""
    return len(value) < _SHORTEST_ANYWHERE or _PLAIN_WORD.fullmatch(value) is not None


def _found_anywhere(value: str) -> _Forms:
    forms = _longest_first({*_forms_of(value), *_enclosed_forms_of(value)})
    return tuple((form, re.compile(re.escape(form))) for form in forms)


def _found_alone(value: str) -> _Forms:
    """Each form with no letter or digit beside it; a number not where JSON has one."""
    after = _NO_JSON_NUMBER if value.isdigit() else ""
    alone = [
        (form, re.compile(rf"{_BEFORE_ALONE}{re.escape(form)}(?![A-Za-z0-9]){after}"))
        for form in _longest_first(_forms_of(value))
    ]
    enclosed = (form for form in _enclosed_forms_of(value) if form not in _forms_of(value))
    long = [form for form in enclosed if len(form) >= _SHORTEST_ANYWHERE]
    return (*alone, *((form, re.compile(re.escape(form))) for form in sorted(long)))


def _start_of_cut(text: str, beginnings: Mapping[str, Iterable[str]], longest: int) -> int | None:
    """Where the longest beginning of a form starts that the text ends with; None for none.

    `beginnings` has the forms, of at most `longest` characters, by their first four.
    """
    for start in range(max(len(text) - longest + 1, 0), len(text) - _LEAST_CUT + 1):
        for form in beginnings.get(text[start : start + _LEAST_CUT], ()):
            if len(form) > len(text) - start and form.startswith(text[start:]):
                return start
    return None


def _redacted_but_keys(match: re.Match[str]) -> str:
    """What stands for a value; the value itself where it is a plain word and a key of JSON."""
    text, word = match.string, match[0]
    if word.isalpha() and _BEHIND_JSON_KEY.match(text, match.end()):
        before = text[max(match.start() - _LONGEST_BEFORE_KEY, 0) : match.start()]
        if _BEFORE_JSON_KEY.search(before):
            return word
    return REDACTED


def _names_a_credential(name: str) -> bool:
    if name.upper() in _WORKING_FOLDERS:
        return False
    words = re.split(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])", name)
    return name.upper().endswith("_PWD") or any(_CREDENTIAL_WORD.search(word) for word in words)


def _is_path(value: str) -> bool:
    # Only a path that exists: a base64 key may begin with a slash, too.
    return os.path.isabs(value) and "\0" not in value and os.path.lexists(value)  # noqa: PTH117 - text, not a path yet


def _is_key(parameter: str) -> bool:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", unquote_plus(parameter))
    name = words.lower().replace("-", "_")
    return name in _KEY_PARAMETERS or name.endswith(_KEY_ENDINGS)


def _forms_of(secret: str) -> set[str]:
    escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    # A model's answer is JSON inside the JSON of its response.
    escaped |= {json.dumps(form)[1:-1] for form in escaped}
    storable = secret.encode("utf-8", "replace").decode("utf-8")
    quoted = {quote(storable, safe=""), quote(storable), quote_plus(storable)}
    # PHP escapes the slash, and JSON that is safe in HTML some more; base64 is what a header of
    # HTTP may hold.
    slashed = {form.replace("/", "\\/") for form in (secret, *escaped)} | {
        secret.replace("/", "\\\\/")
    }
    unicode = {_with_code_points(storable, style) for style in ("04x", "04X")}
    raw = storable.encode()
    encoded = {
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
    }
    return {secret, *escaped, *quoted, *slashed, *unicode, *encoded}


def _with_code_points(text: str, style: str) -> str:
    """The text with what is no plain character as JSON may escape it, its number in this style."""
    return "".join(
        char if char.isalnum() or char in "-_." else f"\\u{ord(char):{style}}" for char in text
    )


def _enclosed_forms_of(secret: str) -> set[str]:
    """The secret as HTML holds it, and in base64 that begins before it and ends behind it."""
    quoted = (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    escaped: set[str] = set()
    for table in _HTML_ESCAPES:
        escaped.update("".join(table.get(char, char) for char in text) for text in quoted)
    raw = secret.encode("utf-8", "replace")
    enclosed = set()
    for before in range(3):
        # Of the letters, six bits each, those which no other byte has a part in.
        first, last = -(-8 * before // 6), 8 * (before + len(raw)) // 6
        padded = bytes(before) + raw
        enclosed |= {
            encode(padded)[first:last].decode()
            for encode in (base64.b64encode, base64.urlsafe_b64encode)
        }
    return escaped | enclosed


def _lines_of(secret: str) -> tuple[str, ...]:
    """The lines of a secret of several lines; nothing for one of a single line."""
    lines = tuple(line.strip() for line in secret.split("\n") if line.strip())
    return lines if len(lines) > 1 else ()


def _block_of(lines: tuple[str, ...]) -> re.Pattern[str]:
    """Find the lines in a row, with whatever rendering, quoting or escaping puts between them."""
    patterns = []
    for line in lines:
        longest_first = sorted(_forms_of(line), key=len, reverse=True)
        patterns.append(f"(?:{'|'.join(map(re.escape, longest_first))})")
    return re.compile(_BETWEEN_LINES.join(patterns))


def covers(recorded: str, text: str) -> bool:
    """Whether the texts are equal.

    A secret that was taken out may be any word, for it may not be one here. It is no more than a
    word, so that it stands for no whole prompt.
    """
    first, *later_parts = recorded.split(REDACTED)
    if not later_parts or recorded == text:
        return recorded == text
    if not text.startswith(first):
        return False
    # Wherever the secrets were: what stands between their places holds all that no word has.
    if len(_NOT_OF_A_WORD.findall(text)) != len(
        _NOT_OF_A_WORD.findall("".join([first, *later_parts]))
    ):
        return False
    end = len(first)
    for part in later_parts[:-1]:
        # A secret is not empty, and the earliest place of what follows it leaves the most for the
        # rest.
        at = text.find(part, end + 1)
        if at < 0:
            return False
        end = at + len(part)
    return len(text) - len(later_parts[-1]) > end and text.endswith(later_parts[-1])


def without_credentials(value: Any, redactor: Redactor) -> Any:
    """The value without what its URLs say before the host, and without their
    key-like parameters.
    """
    if isinstance(value, dict):
        return {key: without_credentials(item, redactor) for key, item in value.items()}
    if isinstance(value, list):
        return [without_credentials(item, redactor) for item in value]
    is_url = isinstance(value, str) and "://" in value and len(value.split()) == 1
    return redactor.url(value) if is_url else value
