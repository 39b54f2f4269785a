import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pytest_jrh
from pytest_jrh import core
from pytest_jrh.core import storable
from pytest_jrh.core.diffs import differences
from pytest_jrh.core.redact import REDACTED, Redactor, secrets_of
from pytest_jrh.core.transcript import neutralize
from pytest_jrh.llm.calls import Response, parse
from pytest_jrh.reports import markdown
from pytest_jrh.review.serving import MAX_BODY
from tests.support.cpu import cpu_seconds

ROOT = Path(pytest_jrh.__file__).parents[1]
KEY = "sk-abcdefghijklmnop0123"


SECRET = "OPENAI_API_KEY AWS_ACCESS_KEY_ID HF_TOKEN PGPASSWORD MY_SECRETS KEY2 openaiApiKey DB_PWD"
NO_SECRET = "GIT_AUTHOR_NAME KEYBOARD_LAYOUT TOKENIZERS_PARALLELISM OLDPWD PWD"
SLASHED = "sk-ab/cdef+ghij/klmn<0123=="


def test_values_of_credential_like_names_are_secrets_and_no_others(tmp_path: Path) -> None:
    values = {name: f"{KEY} {name}" for name in f"{SECRET} {NO_SECRET}".split()}
    assert {*secrets_of(values)} == {values[name] for name in SECRET.split()}
    # Paths that exist are none, but keys that look like paths are.
    socket = tmp_path / "agent-socket-of-ssh"
    socket.touch()
    key = "/no/such/file/but/base64=="
    assert secrets_of({"SSH_AUTH_SOCK": str(socket), "AWS_SECRET_ACCESS_KEY": key}) == (key,)


def test_longest_secret_comes_first_so_that_no_tail_of_it_stays_and_none_is_in_a_repr() -> None:
    secrets = secrets_of({"A_KEY": KEY, "B_KEY": KEY + "-and-more"})
    assert secrets == (KEY + "-and-more", KEY)
    assert Redactor(secrets).text(f"<{KEY}-and-more>") == f"<{REDACTED}>"
    assert KEY not in repr(Redactor(secrets))
    # A bearer's value is hidden without its scheme, too.
    assert KEY not in Redactor(secrets_of({"AUTH": f"Bearer {KEY}"})).text(f"key={KEY}")


def test_value_redacts_nested_lists_and_keys() -> None:
    redacted = Redactor((KEY,)).value({"a": [{"b": f"x{KEY}y"}, 3, None], KEY: True})
    assert redacted == {"a": [{"b": f"x{REDACTED}y"}, 3, None], REDACTED: True}


@given(
    st.text(min_size=20, max_size=40)
    .map(str.strip)
    .filter(lambda text: len(text) > 15 and REDACTED not in text)
)
def test_no_written_form_of_a_secret_survives(secret: str) -> None:
    redact = Redactor((secret,)).text
    in_json = json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]
    for form in (secret, *in_json, quote(secret, safe=""), quote_plus(secret)):
        assert redact(f"({form})") == f"({REDACTED})"


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://h/v1?key=abc&alt=sse", "https://h/v1?alt=sse"),
        ("https://h/v1?alt=sse&Api-Key=abc&access_token=d", "https://h/v1?alt=sse"),
        ("https://h/v1?api-version=2024-10-21&code=abc", "https://h/v1?api-version=2024-10-21"),
        ("https://user:pass@h:8/v1?max_tokens=5", "https://h:8/v1?max_tokens=5"),
    ],
)
def test_url_loses_its_credentials_and_nothing_else(url: str, kept: str) -> None:
    assert Redactor().url(url) == kept


def test_url_with_a_secret_in_its_path_is_searched_even_when_malformed() -> None:
    assert KEY not in Redactor((KEY,)).url(f"https://h/{KEY}/v1")
    assert KEY not in Redactor((KEY,)).url(f"http://[bad/{KEY}")


@pytest.mark.parametrize(
    "written", [quote(SLASHED), base64.urlsafe_b64encode(SLASHED.encode()).decode()]
)
def test_a_key_that_is_echoed_is_found_however_it_is_written(written: str) -> None:
    redacted = Redactor((SLASHED,)).text(f"no such key: {written}")
    assert REDACTED in redacted
    assert SLASHED[:9] not in redacted
    assert base64.b64encode(SLASHED[:9].encode()).decode() not in redacted


def test_a_secret_of_several_lines_is_found_in_json_of_json() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQb3BlbnNz\n-----END PRIVATE KEY-----"
    redacted = Redactor((key,)).text(json.dumps(json.dumps({"content": key})))
    assert redacted == '"{\\"content\\": \\"[REDACTED]\\"}"'


@given(
    st.binary(max_size=9),
    st.text("abcdefgh0123-_/+?~", min_size=16, max_size=40),
    st.binary(max_size=9),
)
def test_no_letter_of_a_secret_in_base64_is_left(before: bytes, secret: str, after: bytes) -> None:
    encoded = base64.b64encode(before + secret.encode() + after).decode()
    first, last = -(-8 * len(before) // 6), 8 * (len(before) + len(secret)) // 6
    assert encoded[first:last] not in Redactor((secret,)).text(encoded)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('{"access_token": "abc", "expires_in": 5}', '{"access_token": "*", "expires_in": 5}'),
        (r'{"a": "{\"client_secret\": \"x y\"}"}', r'{"a": "{\"client_secret\": \"*\"}"}'),
        (r'{"access_token": "a\/b\u00e9c", "n": 1}', '{"access_token": "*", "n": 1}'),
        (r'"{\"password\": \"a\\/b\", \"n\": 1}"', r'"{\"password\": \"*\", \"n\": 1}"'),
        ("{'headers': {'Authorization': 'Bearer z'}}", "{'headers': {'Authorization': '*'}}"),
        ("with url: /judge?api_key=abc (Caused by", "with url: /judge?api_key=* (Caused by"),
        ("<https://h/n?X-Amz-Signature=a&p=2>; rel", "<https://h/n?X-Amz-Signature=*&p=2>; rel"),
        ("https://me:word@h/x", "https://me:*@h/x"),
        ('{"token": " the", "logprob": -1}', '{"token": " the", "logprob": -1}'),
        ("https://h/v1?max_tokens=5", "https://h/v1?max_tokens=5"),
        ('{"assertion": "The agent asks first."}', '{"assertion": "The agent asks first."}'),
    ],
)
def test_what_is_a_secret_by_its_place_is_taken_out_of_what_code_says(text: str, kept: str) -> None:
    assert Redactor().of_code(text) == kept.replace("*", REDACTED)


@pytest.mark.parametrize("show", [json.dumps, repr, str, lambda said: json.dumps(json.dumps(said))])
def test_a_known_secret_in_a_field_is_taken_out_whole(show: Callable[[object], str]) -> None:
    secret = 'sk-Ho"nest/77+k\\ey==\u00e90123456789'
    text = Redactor((secret,)).of_code(show({"password": secret, "n": [secret]}))
    assert "nest" not in text
    assert "0123456789" not in text


def test_what_headers_say_of_who_asks_is_a_secret() -> None:
    redactor = Redactor()
    redactor.learn_header("X-Api-Key", KEY)
    redactor.learn_header("Accept", "application/json, text/plain")
    said = f"{KEY} application/json, text/plain"
    assert redactor.text(said) == f"{REDACTED} application/json, text/plain"


def test_what_security_md_says_of_secrets_and_of_the_size_of_a_request_holds() -> None:
    said = " ".join((ROOT / "SECURITY.md").read_text("utf-8").split())
    names = re.findall(r"`\.\.\.(_[A-Z]+)`", said)
    assert len(names) == 4
    length = int(re.findall(r"at least (\d+) characters", said)[0])
    for name in names:
        secret = "s" * length
        assert Redactor(secrets_of({f"MY{name}": secret})).text(f"x{secret}x") == f"x{REDACTED}x"
        assert secrets_of({f"MY{name}": secret[1:]}) == ()
    assert f"at most {MAX_BODY // 1024 // 1024} MB" in said


SIZE = 100_000
# Quadratic work takes ten times as long and more on so much text.
MOST_SECONDS = 4.0
PUMPS = [" ", "\n", "1", "\u0301", "a ", "{", '"', "\x1b[", "</", "`", "```json\n", "turns 1, "]
PUMPS += ["violated ", "score: 1 ", "the rubric is not "]


class _Answer(Response):
    score: int


def _parsed(answer: str) -> None:
    with pytest.raises(ValueError, match="validation error"):
        parse(answer, _Answer)


WORK: dict[str, Callable[[str], object]] = {
    "parse": _parsed,
    "neutralize": lambda words: neutralize(words, {"transcript"}),
    "storable": storable,
    "of_code": Redactor(("sk-0123456789abcdef",)).of_code,
    "differences": lambda words: differences(words, f"b {words[::-1]} b"),
    "plain": core.plain,
    "one_line": core.one_line,
    "wrapped": lambda words: core.wrapped(words, 80),
    "markdown": lambda words: (markdown.prose(words), markdown.preformatted(words)),
}


@pytest.mark.parametrize("name", WORK)
def test_a_long_text_is_worked_on_in_time(name: str) -> None:
    for pump in PUMPS:
        with cpu_seconds(MOST_SECONDS):
            WORK[name](pump * (SIZE // len(pump)))


def test_two_texts_with_many_short_pieces_in_common_are_compared_in_time() -> None:
    places = range(SIZE // 14)
    old = [f"w{place} x{place}" for place in places]
    new = [f"w{place} y{place}" for place in places]
    with cpu_seconds(2 * MOST_SECONDS):
        differences(" ".join(old), " ".join(new))
        differences("\n".join(old), "\n".join(new))
