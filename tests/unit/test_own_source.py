"""What a judge's own code is: what changes its digest, and by what its requests are recognized."""

import contextlib
import functools
import importlib
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.redact import Redactor, secrets_of
from pytest_jrh.judges.own_code import code_digest
from pytest_jrh.judges.python import imported
from pytest_jrh.recording.exchanges import Exchanges, Halt, Halted, HttpRequest, is_request
from tests.support.whole_way import UNKEPT

PROJECT = {
    "judges.py": """
        from helper import score
        import shop.words

        def used(case):
            return "Is it violated?"

        def judge(case):
            import late
            return score(used(case))
    """,
    "helper.py": "import further\ndef score(text):\n    return further.SCORE\n",
    "further.py": "import helper\nSCORE = 0\n",
    "late.py": "VALUE = 1\n",
    "unused.py": "VALUE = 1\n",
    "rules.txt": "Be kind.\n",
    "shop/__init__.py": "",
    "shop/words.py": "from .forms import FORM\nfrom . import lists\n",
    "shop/forms.py": "FORM = 1\n",
    "shop/lists.py": "LIST = []\n",
}
COUNTS = ["judges.py", "helper.py", "further.py", *(f for f in PROJECT if f.startswith("shop/"))]


class Project:
    """A project in a folder, whose modules are imported anew each time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8", newline="")

    def source(self, **named: Path) -> str:
        self.forget()
        file = str(self.folder / "judges.py")
        judge = imported(f"{file}:judge", key="python")
        return code_digest(judge, module_file=file, config_files=named)

    def forget(self) -> None:
        importlib.invalidate_caches()
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None)).startswith(str(self.folder)):
                del sys.modules[name]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path / "project")
    made.write(PROJECT)
    yield made
    made.forget()


@pytest.mark.parametrize("name", PROJECT)
def test_a_change_of_what_is_imported_changes_the_digest(project: Project, name: str) -> None:
    before = project.source()
    changed = textwrap.dedent(PROJECT[name]).replace("Is it", "Was it") + "# changed\n"
    project.write({name: changed})
    assert (project.source() != before) is (name in COUNTS)


def test_a_file_that_the_config_names_counts(project: Project) -> None:
    rules = project.folder / "rules.txt"
    before = project.source(rules=rules)
    assert before != project.source()
    project.write({"rules.txt": "Be curt.\n"})
    assert project.source(rules=rules) != before


def test_digest_is_of_every_clone_process_and_line_end(project: Project, tmp_path: Path) -> None:
    before = project.source()
    clone = tmp_path / "clone"
    shutil.copytree(project.folder, clone, ignore=shutil.ignore_patterns("__pycache__"))
    for file in clone.rglob("*.py"):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    program = (
        "from pytest_jrh.judges.own_code import code_digest\n"
        "from pytest_jrh.judges.python import imported\n"
        "print(code_digest(imported('judges.py:judge', key=''), module_file='judges.py'))"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", program]
        printed = subprocess.check_output(command, cwd=clone, env=environment, text=True)
        assert printed.strip() == before


def test_code_of_no_config_counts_by_the_file_that_it_was_defined_in() -> None:
    class Judge:
        def __call__(self, case: object) -> int:
            return 0

    wrapping = functools.wraps(code_digest)(lambda _case: 0)
    of_this_file = code_digest(wrapping, module_file=__file__)
    for code in (Judge(), functools.partial(Judge(), 1), lambda _case: 0):
        assert code_digest(code) == of_this_file
    assert code_digest(wrapping) != of_this_file


def exchanges_of(*recorded: dict[str, Any], live: bool = False, **more: Any) -> Exchanges:
    return Exchanges(recorded, live=live, redactor=Redactor(), **{**UNKEPT, **more})


def test_a_key_that_the_code_has_set_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    exchanges = exchanges_of(live=True)
    monkeypatch.setenv("LATE_API_KEY", "plain-words-0123456789")
    asked = exchanges.request("POST", "http://h/plain-words-0123456789", "plain-words-0123456789")
    assert asked == HttpRequest("POST", "http://h/[REDACTED]", "[REDACTED]")


def test_an_environment_that_changes_meanwhile_is_read_all_the_same() -> None:
    class Changing(dict[str, str]):
        def __iter__(self) -> Iterator[str]:
            names = list(self.keys())
            self.pop("PYTEST_CURRENT_TEST", None)
            yield from names

    given = {"PYTEST_CURRENT_TEST": "x", "LATE_API_KEY": "plain-words-0123456789"}
    assert secrets_of(Changing(given)) == ("plain-words-0123456789",)


@pytest.mark.parametrize(
    ("recorded", "sent", "answers"),
    [
        ("[REDACTED]", "[REDACTED]", True),
        ("[REDACTED]", "anything", False),
        ("[REDACTED]", "rubric=r&transcript=hello+world", False),
        ('["[REDACTED]"]', '["a"]', False),
        ('{"key": "[REDACTED]", "n": 1}', '{"key": "sk-test", "n": 1}', True),
        ('{"key": "[REDACTED]", "n": 1}', '{"key": "sk-test", "m": "x", "n": 1}', False),
        ('{"text": "[REDACTED]"}', '{"text": "Is it so?\\nYes."}', False),
        ('{"text": "a [REDACTED] b"}', '{"text": "a word b"}', True),
        ("key=[REDACTED]&n=1", "key=sk-test&n=1", True),
    ],
)
def test_a_secret_taken_out_stands_for_one_word(recorded: str, sent: str, answers: bool) -> None:
    interaction = {"request": {"method": "POST", "uri": "http://h/", "body": recorded}}
    request = HttpRequest("POST", "http://h/", sent)
    assert is_request(interaction, request, Redactor()) is answers


def test_the_host_is_no_part_of_a_request_and_its_own_comes_first() -> None:
    def recorded(uri: str, answer: str) -> dict[str, Any]:
        return {"request": {"method": "POST", "uri": uri, "body": "{}"}, "answer": answer}

    one, other = recorded("http://one:1/v1/x?a=1", "one"), recorded("https://other/v1/x?a=1", "2")
    exchanges = exchanges_of(one, other)
    assert exchanges.answer(HttpRequest("POST", "https://other/v1/x?a=1", "{}")) is other
    assert exchanges.answer(HttpRequest("POST", "https://third/v1/x?a=1", "{}")) is one
    for uri in ("http://one:1/v2/x?a=1", "http://one:1/v1/x?a=2", "http://one:1/v1/x"):
        with pytest.raises(Halted):
            exchanges_of(one).answer(HttpRequest("POST", uri, "{}"))


def test_a_request_is_neither_sent_nor_counted_where_its_answer_could_not_be_kept() -> None:
    kept: list[int] = []
    counted: list[str] = []

    @contextlib.contextmanager
    def room(asked: int) -> Iterator[None]:
        if len(kept) == 2:
            raise OSError(28, "No space left on device")
        kept.append(asked)
        yield
        kept.remove(asked)

    exchanges = exchanges_of(live=True, admit=lambda: counted.append("one"), room=room)
    request = HttpRequest("POST", "http://h/", "asked")
    assert exchanges.answer(request) is None
    response = {"status": {"code": 200}, "headers": {}, "body": {"string": b"an answer"}}
    exchanges.made(request, response, "")
    assert kept == []
    # What has been answered before may not be on the disk yet.
    assert exchanges.answer(request) is None
    assert exchanges.answer(request) is None
    assert len(kept) == 2
    assert min(kept) >= 2 * len("asked") + len("an answer")
    with pytest.raises(Halted):
        exchanges.answer(request)
    assert exchanges.halt == Halt("room", "No space left on device")
    assert len(counted) == exchanges.sent == 3
    exchanges.close()
    assert kept == []
