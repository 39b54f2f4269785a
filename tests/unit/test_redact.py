from __future__ import annotations

import base64
import html
import json
import textwrap
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import markupsafe
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core.redact import (
    REDACTED,
    Redactor,
    dotenv_secrets,
    secrets_of,
    without_credentials,
)
from pytest_jrh.llm.transport import seconds_asked_for
from tests.support.cpu import cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

KEY = "sk-abcdefghijklmnop0123"
MUSTACHE = {"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;", "`": "&#x60;", "=": "&#x3D;"}


def escaped(text: str, table: Mapping[str, str]) -> str:
    return "".join(table.get(char, char) for char in text)


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "HF_TOKEN",
        "PGPASSWORD",
        "AWS_ACCESS_KEY_ID",
        "MY_SECRETS",
        "openaiApiKey",
        "KEY2",
        "DB_PWD",
    ],
)
def test_values_of_credential_like_names_are_secrets(name: str) -> None:
    assert secrets_of({name: KEY}) == (KEY,)


@pytest.mark.parametrize(
    "name",
    [
        "GIT_AUTHOR_NAME",
        "TOKENIZERS_PARALLELISM",
        "KEYBOARD_LAYOUT",
        "PWD",
        "OLDPWD",
        "HOME",
        "PATH",
    ],
)
def test_values_of_other_names_are_not(name: str) -> None:
    assert secrets_of({name: KEY}) == ()


def test_short_values_are_left_alone() -> None:
    assert secrets_of({"API_KEY": "x" * 15}) == ()


def test_paths_that_exist_are_no_secrets_but_keys_that_look_like_paths_are(tmp_path: Path) -> None:
    socket = tmp_path / "agent-socket-of-ssh"
    socket.touch()
    key = "/no/such/file/but/base64=="
    assert secrets_of({"SSH_AUTH_SOCK": str(socket), "AWS_SECRET_ACCESS_KEY": key}) == (key,)


def test_longest_secret_comes_first_so_that_no_tail_of_it_stays() -> None:
    secrets = secrets_of({"A_KEY": KEY, "B_KEY": KEY + "-and-more"})
    assert secrets == (KEY + "-and-more", KEY)
    assert Redactor(secrets).text(f"<{KEY}-and-more>") == f"<{REDACTED}>"


def test_bearer_value_is_hidden_without_its_scheme_too() -> None:
    assert KEY not in Redactor(secrets_of({"AUTH": f"Bearer {KEY}"})).text(f"key={KEY}")


def test_value_redacts_nested_lists_and_keys() -> None:
    redacted = Redactor((KEY,)).value({"a": [{"b": f"x{KEY}y"}, 3, None], KEY: True})
    assert redacted == {"a": [{"b": f"x{REDACTED}y"}, 3, None], REDACTED: True}


def test_without_secrets_everything_comes_back_as_it_is() -> None:
    value = {"a": (1, 2)}
    assert Redactor().value(value) is value
    assert Redactor().text("plain") == "plain"


@given(
    st.text(min_size=20, max_size=40)
    .map(str.strip)
    .filter(lambda text: len(text) > 15 and REDACTED not in text)
)
def test_no_written_form_of_a_secret_survives(secret: str) -> None:
    redact = Redactor((secret,)).text
    for form in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
        assert redact(f"({form})") == f"({REDACTED})"
    for form in (quote(secret, safe=""), quote_plus(secret)):
        assert redact(f"({form})") == f"({REDACTED})"


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://h/v1?key=abc&alt=sse", "https://h/v1?alt=sse"),
        ("https://h/v1?alt=sse&Api-Key=abc&access_token=d", "https://h/v1?alt=sse"),
        ("https://h/v1?api-version=2024-10-21&code=abc", "https://h/v1?api-version=2024-10-21"),
        ("https://h/v1?X-Amz-Signature=abc&x=%20y", "https://h/v1?x=%20y"),
        ("https://user:pass@h:8/v1?max_tokens=5", "https://h:8/v1?max_tokens=5"),
        ("https://h/v1", "https://h/v1"),
    ],
)
def test_url_loses_its_credentials_and_nothing_else(url: str, kept: str) -> None:
    assert Redactor().url(url) == kept


def test_url_with_a_secret_in_its_path_is_searched_even_when_malformed() -> None:
    assert KEY not in Redactor((KEY,)).url(f"https://h/{KEY}/v1")
    assert KEY not in Redactor((KEY,)).url(f"http://[bad/{KEY}")


PEM = "\n".join(
    [
        "-----BEGIN PRIVATE KEY-----",
        "MIIEvQ" * 10,
        "b3BlbnNz" * 8,
        "short/end=",
        "-----END PRIVATE KEY-----",
        "",
    ]
)


@pytest.mark.parametrize(
    "shown",
    [
        PEM,
        textwrap.indent(PEM, "    "),
        textwrap.indent(PEM, "> "),
        PEM.replace("\n", "\r\n"),
        json.dumps({"content": PEM}),
        json.dumps(json.dumps({"content": textwrap.indent(PEM, "\t")})),
        PEM.replace("\n", "\\n"),
        PEM.replace("/", "\\/"),
    ],
)
def test_a_secret_of_several_lines_is_found_however_its_lines_are_shown(shown: str) -> None:
    redacted = Redactor(secrets_of({"DEPLOY_KEY": PEM})).text(shown)
    assert redacted.count(REDACTED) == 1
    assert not [line for line in PEM.split("\n") if line and line in redacted]


def test_a_single_line_of_such_a_secret_is_found_but_not_the_words_around_it() -> None:
    redact = Redactor(secrets_of({"DEPLOY_KEY": PEM})).text
    assert redact(f"line 2: {'MIIEvQ' * 10}.") == f"line 2: {REDACTED}."
    assert redact("-----BEGIN PRIVATE KEY-----") == "-----BEGIN PRIVATE KEY-----"


def test_taking_secrets_out_before_or_after_rendering_makes_no_difference() -> None:
    redact = Redactor(secrets_of({"DEPLOY_KEY": PEM, "API_KEY": KEY})).text
    said = f"My key:\n{PEM}and {KEY}\nthat is all."
    assert redact(textwrap.indent(said, "  ")) == textwrap.indent(redact(said), "  ")


SLASHED = "sk-ab/cdef+ghij/klmn<0123=="


@pytest.mark.parametrize(
    "written",
    [
        SLASHED.replace("/", "\\/"),
        SLASHED.replace("/", "\\\\/"),
        SLASHED.replace("/", "\\u002f")
        .replace("+", "\\u002b")
        .replace("<", "\\u003c")
        .replace("=", "\\u003d"),
        SLASHED.replace("/", "\\u002F")
        .replace("+", "\\u002B")
        .replace("<", "\\u003C")
        .replace("=", "\\u003D"),
        quote(SLASHED, safe=""),
        base64.b64encode(SLASHED.encode()).decode(),
        base64.urlsafe_b64encode(SLASHED.encode()).decode(),
    ],
)
def test_a_key_that_is_echoed_in_escapes_or_base64_is_found(written: str) -> None:
    redacted = Redactor((SLASHED,)).text(f"no such key: {written}")
    assert redacted.removesuffix("==").removesuffix("=") == f"no such key: {REDACTED}"


def test_no_secret_is_in_a_repr() -> None:
    redactor = Redactor((KEY, PEM))
    assert KEY not in repr(redactor)
    assert "MIIEvQ" not in repr(redactor)


@pytest.mark.parametrize(
    "value", ["Mon, 01 Jan 999999999999999999999 00:00:00 GMT", "never", "", "1e999"]
)
def test_a_wait_that_no_clock_can_show_is_no_traceback(value: str) -> None:
    assert seconds_asked_for(value) in (None, float("inf"))


def test_a_resolved_config_keeps_no_credentials_of_a_url() -> None:
    stage = {
        "api_base": "https://me:word@h/v1?api-key=abc&version=2",
        "prompt": "see https://a:b@h/ there",
    }
    assert without_credentials({"judges": [stage]}, Redactor()) == {
        "judges": [{**stage, "api_base": "https://h/v1?version=2"}]
    }


@pytest.mark.parametrize("alphabet", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("user", ["", "u", "me", "api", "user@example.com"])
@pytest.mark.parametrize("after", ["", "\n", ":x", " and more"])
def test_a_secret_inside_of_base64_is_found_wherever_it_begins(
    alphabet: Callable[[bytes], bytes], user: str, after: str
) -> None:
    for secret in (KEY, "pass?~>?~>?word/9+", "schl\u00fcssel-\u00fc\u00df-0123456789"):
        header = f"Basic {alphabet(f'{user}:{secret}{after}'.encode()).decode()}"
        cleaned = Redactor((secret,)).text(header)
        assert REDACTED in cleaned
        # What is left are the user, what follows, and at most the bits of the secret that share a
        # letter with them.
        rest = "".join(cleaned.removeprefix("Basic ").split(REDACTED)).rstrip("=")
        assert len(rest) <= 4 * (len(f"{user}:{after}".encode()) + 2) / 3 + 2


@given(
    st.binary(max_size=9),
    st.text("abcdefgh0123-_/+?~", min_size=16, max_size=40),
    st.binary(max_size=9),
)
def test_no_letter_of_base64_that_is_the_secrets_alone_is_left(
    before: bytes, secret: str, after: bytes
) -> None:
    encoded = base64.b64encode(before + secret.encode() + after).decode()
    first, last = -(-8 * len(before) // 6), 8 * (len(before) + len(secret)) // 6
    assert encoded[first:last] not in Redactor((secret,)).text(encoded)


HTML_KEY = """sk&'"<a>/=+`b-0123456789"""
HTML_ESCAPES = {
    "Python": html.escape(HTML_KEY),
    "Python, in text": html.escape(HTML_KEY, quote=False),
    "markupsafe": str(markupsafe.escape(HTML_KEY)),
    "XML": html.escape(HTML_KEY).replace("&#x27;", "&apos;"),
    "in JSON": json.dumps(html.escape(HTML_KEY, quote=False))[1:-1],
    "of JSON": html.escape(json.dumps(HTML_KEY)[1:-1]),
    "Go": escaped(
        HTML_KEY, {"&": "&amp;", "'": "&#39;", '"': "&#34;", "<": "&lt;", ">": "&gt;", "+": "&#43;"}
    ),
    "mustache": escaped(HTML_KEY, MUSTACHE | {"'": "&#39;", "/": "&#x2F;"}),
    "handlebars": escaped(HTML_KEY, MUSTACHE | {"'": "&#x27;"}),
}


@pytest.mark.parametrize("how", HTML_ESCAPES)
def test_a_secret_that_is_escaped_for_html_is_found(how: str) -> None:
    page = f"<p>the key {HTML_ESCAPES[how]}, and so on</p>"
    assert Redactor((HTML_KEY,)).text(page) == f"<p>the key {REDACTED}, and so on</p>"


def test_a_secret_that_needs_no_escape_has_no_more_forms_for_html() -> None:
    assert not [form for form in Redactor((KEY,))._forms if "&" in form]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('{"access_token": "abc", "expires_in": 5}', '{"access_token": "*", "expires_in": 5}'),
        (r'{"a": "{\"client_secret\": \"x y\"}"}', r'{"a": "{\"client_secret\": \"*\"}"}'),
        (r'{"password": "a\"b"}', '{"password": "*"}'),
        ("{'headers': {'Authorization': 'Bearer z'}}", "{'headers': {'Authorization': '*'}}"),
        ("client_secret=abc&grant_type=x", "client_secret=*&grant_type=x"),
        ("with url: /judge?api_key=abc (Caused by", "with url: /judge?api_key=* (Caused by"),
        (
            '<https://h/n?X-Amz-Signature=a&p=2>; rel="n"',
            '<https://h/n?X-Amz-Signature=*&p=2>; rel="n"',
        ),
        ("https://me:word@h/x", "https://me:*@h/x"),
        ("https://ghp0123456789abcdef@h/x", "https://*@h/x"),
        ('name="password"\r\n\r\nabc\r\n--b', 'name="password"\r\n\r\n*\r\n--b'),
        ('{"token": "eyJhbGciOiJIUzI1NiJ9.e30.abc"}', '{"token": "*"}'),
        ('{"token": " the", "logprob": -1}', '{"token": " the", "logprob": -1}'),
        ('{"primary_key": "user_id"}', '{"primary_key": "user_id"}'),
        ("https://h/v1?max_tokens=5", "https://h/v1?max_tokens=5"),
        ("a basic understanding", "a basic understanding"),
        ('{"assertion": "The agent asks first."}', '{"assertion": "The agent asks first."}'),
        ('{"assertion": "eyJhbGciOiJIUzI1NiJ9.e30.abc"}', '{"assertion": "*"}'),
    ],
)
def test_what_is_a_secret_by_its_place_is_taken_out_of_what_code_says(text: str, kept: str) -> None:
    assert Redactor().of_code(text) == kept.replace("*", REDACTED)


@pytest.mark.parametrize(
    "secret", ["p4s", "hunter2", "production", "pass word 1", "s3cret+/Value=="]
)
def test_a_value_that_was_seen_is_found_wherever_code_repeats_it(secret: str) -> None:
    redactor = Redactor()
    redactor.of_code(json.dumps({"client_secret": secret}), learn=True)
    written = [
        secret,
        f"\n{secret}.",
        quote(f" {secret} "),
        base64.b64encode(secret.encode()).decode(),
    ]
    for form in [*written, *map(json.dumps, written)]:
        cleaned = redactor.of_code(f"It is ({form}).")
        assert REDACTED in cleaned
        assert form.strip('".= \n') not in cleaned
    # Nor is any other text spoiled by it.
    assert redactor.text(f"x {secret} y") == f"x {secret} y"


@pytest.mark.parametrize("text", ["p4sta", "up4s", '{"score": 1, "n": 12345}', "reproductions"])
def test_a_short_value_or_a_word_spoils_no_other_word(text: str) -> None:
    redactor = Redactor()
    redactor.add(["p4s", "1", "12345", "production"])
    assert redactor.of_code(text) == text


def test_what_headers_and_files_say_of_who_asks_is_a_secret() -> None:
    redactor = Redactor()
    pair = base64.b64encode(b"me:of-me-77").decode()
    redactor.see_headers({"Authorization": [f"Basic {pair}"], "Cookie": ["id=c00kie77; b=2"]})
    redactor.see(
        dotenv_secrets({"A": "Zq7-0123456789ab", "MY_PASSWORD": "hunter2", "B": "gpt-4o-mini"})
    )
    said = f"of-me-77 {pair} c00kie77 Zq7-0123456789ab hunter2 gpt-4o-mini"
    assert redactor.of_code(said) == f"{' '.join([REDACTED] * 5)} gpt-4o-mini"


def test_a_text_of_many_ellipses_is_searched_at_once() -> None:
    redactor = Redactor((KEY,))
    redactor.see(f"s3en/{number}+{KEY}" for number in range(20))
    with cpu_seconds(10):
        redactor.of_code("as they say \u2026 " * 20_000)


def test_a_secret_that_is_cut_leaves_no_beginning() -> None:
    redactor = Redactor((KEY,))
    assert redactor.of_code(f"it answered {KEY[:9]}… and") == f"it answered {REDACTED}… and"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("true", '{"violated": true, "of": "true"}'),
        ("None", "{'score': None}"),
        ("score", '{"score": 1, "n": {"score" : 2}}'),
        ("score", '"{\\"a\\": 0,\\n  \\"score\\": 1}"'),
    ],
)
def test_a_short_value_leaves_json_readable(value: str, text: str) -> None:
    redactor = Redactor()
    redactor.add([value])
    assert redactor.of_code(text) == text


def test_a_word_before_a_colon_is_found_where_it_is_no_key() -> None:
    redactor = Redactor()
    redactor.add(["sunshine"])
    for text in ('the password "sunshine": wrong', '{"a": "sunshine"}', "{sunshine: 1}"):
        assert "sunshine" not in redactor.of_code(text)


def test_a_text_full_of_passwords_makes_no_other_secret_forgotten() -> None:
    redactor = Redactor()
    redactor.see_headers({"X-Api-Key": ["of-Header/77aa"]})
    for number in range(20):
        redactor.see_headers({"X-Api-Key": ["of-Header/77aa"]})
        transcript = [{"password": f"pw-{number}-{field}"} for field in range(600)]
        redactor.of_code(json.dumps(transcript), learn=True)
    assert redactor.of_code("echo: of-Header/77aa") == f"echo: {REDACTED}"
