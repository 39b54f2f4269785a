"""What a judge's own code is: what changes its digest, and what does not."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import subprocess
import sys
import textwrap
import threading
import types
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from pytest_jrh.config.schema import JudgeSection
from pytest_jrh.core.model import StageModel
from pytest_jrh.judges import own_source as module
from pytest_jrh.judges.judge import JudgeSettings
from pytest_jrh.judges.own_source import own_source
from pytest_jrh.judges.python import PYTHON, PythonJudge, imported

ROOT = Path(__file__).parents[2]
PROJECT = {
    "judges.py": """
        from helper import score

        PROMPT = "Is it violated?"

        def used(case):
            return PROMPT

        def judge(case):
            return score(used(case))
    """,
    "helper.py": "def score(text):\n    return 0\n",
    "unused.py": "VALUE = 1\n",
}


class Project:
    """A project in a folder, whose modules are imported anew each time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8", newline="")

    def judge(self, function: str = "judge") -> Callable[..., object]:
        self.forget()
        return imported(f"{self.folder / 'judges.py'}:{function}", key="python")

    def digest(self, function: str = "judge") -> str:
        return own_source(self.judge(function), [self.folder]).digest

    def forget(self) -> None:
        importlib.invalidate_caches()
        gone = [
            name
            for name, loaded in list(sys.modules.items())
            for place in [getattr(loaded, "__file__", None), *getattr(loaded, "__path__", ())]
            if str(place).startswith(str(self.folder))
        ]
        for name in gone:
            sys.modules.pop(name, None)


@pytest.fixture
def project(tmp_path: Path) -> Any:
    made = Project(tmp_path / "project")
    made.write(PROJECT)
    yield made
    made.forget()


def judging(body: str, head: str = "") -> str:
    return f"{head}\ndef judge(case):\n    {body}\n    return 0\n"


@pytest.mark.parametrize(
    ("files", "changed"),
    [
        ({}, {"judges.py": PROJECT["judges.py"].replace("Is it violated?", "Is it kept?")}),
        ({}, {"judges.py": PROJECT["judges.py"].replace("return PROMPT", "return PROMPT * 2")}),
        ({}, {"helper.py": "def score(text):\n    return 1\n"}),
        # What a helper imports, and one that imports it back.
        (
            {"helper.py": "import further\nscore = further.score\n"},
            {"further.py": "import helper\ndef score(text):\n    return 1\n"},
        ),
        # Imports that happen when the judge runs, if at all.
        ({"judges.py": judging("import late")}, {"late.py": "SCORE = 1\n"}),
        ({"judges.py": judging("from late import SCORE")}, {"late.py": "SCORE = 1\n"}),
        (
            {"judges.py": judging("import_module('late')", "from importlib import import_module")},
            {"late.py": "SCORE = 1\n"},
        ),
        # Packages: their own code, their modules, and imports from beside and above.
        (
            {"judges.py": "import pkg.sub.mod\n" + judging("pass"), "pkg/sub/mod.py": ""},
            {"pkg/__init__.py": "SCORE = 1\n"},
        ),
        (
            {"judges.py": "from pkg import mod\n" + judging("pass"), "pkg/__init__.py": ""},
            {"pkg/mod.py": "SCORE = 1\n"},
        ),
        (
            {
                "judges.py": "from pkg.sub import mod\n" + judging("pass"),
                "pkg/__init__.py": "",
                "pkg/sub/__init__.py": "",
                "pkg/sub/mod.py": "from . import beside\nfrom ..above import SCORE\n",
                "pkg/sub/beside.py": "",
            },
            {"pkg/above.py": "SCORE = 2\n"},
        ),
        (
            {
                "judges.py": "from pkg import mod\n" + judging("pass"),
                "pkg/__init__.py": "",
                "pkg/mod.py": "from . import beside\n",
            },
            {"pkg/beside.py": "SCORE = 1\n"},
        ),
        (
            {"judges.py": "import space.mod\n" + judging("pass")},
            {"space/mod.py": "SCORE = 1\n"},
        ),
        # Files that are named, from the module's folder and from those above it.
        ({"judges.py": judging("open('prompt.md').read()")}, {"prompt.md": "Be kind."}),
        ({"judges.py": judging("read('texts/prompt')", "def read(x): 0")}, {"texts/prompt": "A"}),
        (
            {
                "judges.py": "from pkg import mod\n" + judging("pass"),
                "pkg/mod.py": "PLACE = Path(__file__).parents[1] / 'prompts' / 'judge.md'"
                " if (Path := __import__('pathlib').Path) else 0\n",
            },
            {"prompts/judge.md": "Be kind."},
        ),
        (
            {"judges.py": judging("HERE / 'prompts' / f'{case}.md'", "HERE = 0")},
            {"prompts/first.md": "Be kind."},
        ),
        (
            {"judges.py": judging("PLACE / case", "HERE = 1.0\nPLACE = lambda: HERE / 'prompts'")},
            {"prompts/first.md": "Be kind."},
        ),
        ({"judges.py": judging("f'prompts/{case}.md'")}, {"prompts/first.md": "Be kind."}),
        ({"judges.py": judging("'prompts/%s.md' % case")}, {"prompts/first.md": "Be kind."}),
        ({"judges.py": judging("'prompts/{}.md'.format(case)")}, {"prompts/first.md": "A"}),
        ({"judges.py": judging("'prompts/' + case")}, {"prompts/first.md": "Be kind."}),
        ({"judges.py": judging("'parts/*/a.md'")}, {"parts/first/a.md": "Be kind."}),
        ({"judges.py": judging("join(case, 'prompts', 'a', case)")}, {"prompts/a/b": "Be kind."}),
        ({"judges.py": judging("FileSystemLoader('templates')")}, {"templates/a.j2": "A"}),
        ({"judges.py": judging("case.glob('*.md')")}, {"first.md": "Be kind."}),
        ({"judges.py": judging("glob('prompts/**/*.md')")}, {"prompts/a/b/c.md": "Be kind."}),
        ({"judges.py": judging("__file__ + '/prompt.md'")}, {"prompt.md": "Be kind."}),
        ({"judges.py": judging("f'{case}/prompts/{case}.md'")}, {"prompts/a.md": "Be kind."}),
        (
            {"judges.py": judging("files('pkg.texts') / 'judge.md'")},
            {"pkg/texts/judge.md": "Be kind."},
        ),
        (
            {"judges.py": judging("files('pkg').joinpath('texts', case)")},
            {"pkg/texts/judge.md": "Be kind."},
        ),
        ({"judges.py": judging("get_data('pkg.texts', 'a.md')")}, {"pkg/texts/a.md": "Be kind."}),
        (
            {
                "judges.py": judging("files(texts) / 'judge.md'", "from pkg import texts"),
                "pkg/texts/__init__.py": "",
            },
            {"pkg/texts/judge.md": "Be kind."},
        ),
        # Modules whose names are made when the judge runs.
        ({"judges.py": judging("import_module(f'rules.{case}')")}, {"rules/first.py": "A = 1"}),
        ({"judges.py": judging("import_module('.' + case)")}, {"first.py": "A = 1"}),
        ({"judges.py": judging("FILE.with_suffix('.txt')")}, {"judges.txt": "Be kind."}),
        # Constants of the module.
        (
            {"judges.py": judging("HERE / NAME / case", "HERE = 0.5\nNAME = 'prompts'")},
            {"prompts/first": "Be kind."},
        ),
        (
            {"judges.py": judging("join(HERE, NAME, case)", "NAME: str = 'prompts'")},
            {"prompts/first": "Be kind."},
        ),
        # Names that stand for other things, too.
        (
            {
                "judges.py": judging(
                    "name = 'other'",
                    "def load(name):\n    return open(f'in-{name}.md').read()\n",
                )
            },
            {"in-first.md": "Be kind."},
        ),
        (
            {"judges.py": judging("name = 'other'\n    for name in case: f'in-{name}.md'")},
            {"in-first.md": "Be kind."},
        ),
        # Folders of modules that the judge loads by their files.
        (
            {"judges.py": judging("[run(x) for x in HERE.glob('rules/*.py')]", "HERE = run = 0")},
            {"rules/first.py": "A = 1"},
        ),
        # What is in folders of a folder.
        ({"judges.py": judging("FileSystemLoader('texts')")}, {"texts/v1/a.j2": "Be kind."}),
        ({"judges.py": judging("HERE / 'prompts'", "HERE = 0.5")}, {"prompts/a/b.md": "A"}),
        ({"judges.py": judging("case.rglob('*.md')")}, {"a/b/first.md": "Be kind."}),
        ({"judges.py": judging("case.glob('**/*.md')")}, {"a/b/first.md": "Be kind."}),
        # Files without a suffix, and such as are no text.
        ({"judges.py": judging("open('prompt').read()")}, {"prompt": "Be kind."}),
        ({"judges.py": judging("open('prompt', 'r')")}, {"prompt": "Be kind."}),
        ({"judges.py": judging("open('a').read()")}, {"a": "Be kind."}),
        # The folder of the module, and the system's separator, in a pattern.
        ({"judges.py": judging("f'./prompts/{case}.md'")}, {"prompts/first.md": "Be kind."}),
        ({"judges.py": judging("case.glob('./*.md')")}, {"first.md": "Be kind."}),
        ({"judges.py": judging("'prompts' + os.sep + case + '.md'")}, {"prompts/a.md": "A"}),
        # A folder that a variable of the environment may name.
        (
            {
                "judges.py": judging(
                    "PROMPTS + '/a.md'", "import os\nPROMPTS = os.environ.get('JRH', 'prompts')"
                )
            },
            {"prompts/a.md": "Be kind."},
        ),
        # Modules that a text names.
        ({"judges.py": judging("load({'a': 'rules.first'}[case])")}, {"rules/first.py": "A = 1"}),
        ({"judges.py": judging("load('rules.first:judge')")}, {"rules/first.py": "A = 1"}),
        ({"judges.py": judging("load('rules.first.judge')")}, {"rules/first.py": "A = 1"}),
        (
            {
                "judges.py": "from pkg import *\n" + judging("0"),
                "pkg/__init__.py": "__all__ = ['first']\n",
            },
            {"pkg/first.py": "A = 1"},
        ),
        # Templates that a template takes in.
        (
            {
                "judges.py": judging("load('judge.j2')"),
                "judge.j2": "{%- extends 'base.j2' %}",
                "base.j2": '{% include "parts/first.j2" %}',
            },
            {"parts/first.j2": "Be kind."},
        ),
        # A module that is loaded by its file, and what that imports.
        (
            {"judges.py": judging("run_path('script.py')"), "script.py": "import late"},
            {"late.py": "SCORE = 1\n"},
        ),
    ],
)
def test_what_a_judge_reaches_is_part_of_it(
    project: Project, files: Mapping[str, str], changed: Mapping[str, str]
) -> None:
    project.write({name: "" for name in changed if name not in PROJECT})
    project.write(files)
    if "further.py" in changed:
        project.write({"further.py": "import helper\ndef score(text):\n    return 0\n"})
    if "pkg/above.py" in changed:
        project.write({"pkg/above.py": "SCORE = 1\n"})
    before = project.digest()
    assert project.digest() == before
    project.write(changed)
    assert project.digest() != before


@pytest.mark.parametrize(
    ("head", "before", "after"),
    [
        ("", "lambda case: 0", "lambda case: 1"),
        ("", "partial(score, text='a')", "partial(score, text='b')"),
        ("", "partial(partial(score, 'a'), 'b')", "partial(partial(score, 'c'), 'b')"),
        ("", "made('a')", "made('b')"),
        ("", "made({'parts': [1, {2, 3}]})", "made({'parts': [1, {2, 4}]})"),
        ("", "made(Path('prompt.md'))", "made(Path('other.md'))"),
        ("", "Judge('a')", "Judge('b')"),
        ("", "Judge('a').judge", "Judge('b').judge"),
        ("", "Slotted('a')", "Slotted('b')"),
        ("", "decorated(made('a'))", "decorated(made('b'))"),
        ("", "lru_cache(made('a'))", "lru_cache(made('b'))"),
        ("", "made(made('a'))", "made(made('b'))"),
        ("", "made(SimpleNamespace(a='a'))", "made(SimpleNamespace(a='b'))"),
        ("", "made(re.compile('a'))", "made(re.compile('b'))"),
        ("", "with_defaults('a')", "with_defaults('b')"),
    ],
)
def test_what_a_callable_holds_is_part_of_it(
    project: Project, head: str, before: str, after: str
) -> None:
    source = """
        import os, re
        from functools import lru_cache, partial, wraps
        from pathlib import Path
        from types import SimpleNamespace

        def score(*parts, text=''):
            return 0

        def made(text):
            def judge(case):
                return text
            return judge

        def with_defaults(text):
            def judge(case, text=text):
                return 0
            return judge

        def decorated(function):
            def wrapper(case):
                return function(case)
            return wrapper

        class Judge:
            def __init__(self, text):
                self.text = text
            def __call__(self, case):
                return 0
            judge = __call__

        class Slotted(Judge):
            __slots__ = ('text',)

        _BY_NAME = {'before': lambda: BEFORE, 'after': lambda: AFTER}
        judge = _BY_NAME[os.environ['WHICH']]()
    """.replace("BEFORE", before).replace("AFTER", after)
    project.write({"judges.py": source})
    digests = []
    for which in ("before", "after", "before"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WHICH", which)
            digests.append(own_source(project.judge(), [project.folder]).digest)
    assert digests[0] == digests[2]
    if before.startswith("lambda"):
        # Both are in the file that counts, and neither holds anything.
        assert digests[0] == digests[1]
    else:
        assert digests[0] != digests[1]


def test_the_digest_is_that_of_every_clone_and_process(project: Project, tmp_path: Path) -> None:
    project.write(
        {
            "judges.py": """
                import functools, pathlib, threading
                from helper import score
                HERE = pathlib.Path(__file__).parent
                class Judge:
                    def __init__(self, **held):
                        vars(self).update(held)
                    def __call__(self, case):
                        return score(case)
                judge = functools.partial(
                    Judge(words={'a', 'b', ('c', 'd'), frozenset('ef')}, lock=threading.Lock(),
                          place=HERE / 'prompt.md', output=str(HERE / 'none.txt'), what=object()),
                    str(HERE),
                )
            """,
            "prompt.md": "Be kind.\nBe short.\n",
        }
    )
    clone = Project(tmp_path / "elsewhere" / "clone")
    for path in project.folder.rglob("*.*"):
        if path.suffix in (".py", ".md"):
            text = path.read_text("utf-8").replace("\n", "\r\n")
            clone.write({str(path.relative_to(project.folder)): text})
    digest = project.digest()
    script = (
        "import sys; from pathlib import Path\n"
        "from pytest_jrh.judges.own_source import own_source\n"
        "from pytest_jrh.judges.python import imported\n"
        "folder = Path(sys.argv[1])\n"
        "code = imported(f'{folder}/judges.py:judge', key='')\n"
        "print(own_source(code, [folder]).digest)"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", script, str(clone.folder)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
        assert done.stdout.strip() == digest


@pytest.mark.parametrize(
    ("files", "changed"),
    [
        ({}, {"unused.py": "VALUE = 2\n"}),
        ({}, {"README.md": "Another text."}),
        ({"judges.py": judging("case.get('outputs')")}, {"outputs/results.json": "[]"}),
        ({"judges.py": judging("load('.env')")}, {".env": "TOKEN=sesame"}),
        ({"judges.py": judging("write('judge.log')")}, {"judge.log": "It was asked."}),
        ({"judges.py": judging("f'{case}/{case}' + f'{case}.{case}' + '*'")}, {"a.md": "A"}),
        ({"judges.py": judging("f'{case}/{case}', f'{case}.{case}', '*', 1 / 2")}, {"a.md": "A"}),
        ({"judges.py": judging("import pytest, pytest_jrh, json")}, {"json.md": "A"}),
        # Words that are no path, and the files beside one that is named.
        ({"judges.py": judging("case['data'], case.get('data')")}, {"data/runs.jsonl": "[]"}),
        ({"judges.py": judging("HERE / 'data' / 'a.md'", "HERE = 0.5")}, {"data/b.md": "B"}),
        ({"judges.py": judging("f'{case}.md'")}, {"docs/a.md": "B"}),
        # What the judge or a session writes.
        ({"judges.py": judging("open('trace.jsonl', 'a')")}, {"trace.jsonl": "It was asked."}),
        ({"judges.py": judging("open('a/b.txt', mode='wb')")}, {"a/b.txt": "It was asked."}),
        ({"judges.py": judging("(case / 'a.txt').write_text('')")}, {"a.txt": "It was asked."}),
        ({"judges.py": judging("Path('outputs')")}, {"outputs/suite/results.json": "[]"}),
        (
            {"judges.py": judging("Path('inputs')")},
            {"inputs/cassettes/r/a.e1.judge-default.yaml": "a: 1"},
        ),
        ({"judges.py": judging("Path('pkg')")}, {"pkg/__pycache__/a.txt": "A"}),
        ({"judges.py": judging("Path('.venv'), Path('env')")}, {"env/site-packages/a.py": "A"}),
    ],
)
def test_what_it_does_not_reach_is_no_part_of_it(
    project: Project, files: Mapping[str, str], changed: Mapping[str, str]
) -> None:
    project.write(files)
    before = project.digest()
    project.write(changed)
    assert project.digest() == before


def test_installed_packages_count_by_their_version(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "lib" / "site-packages"
    monkeypatch.syspath_prepend(str(site))
    packages = Project(site)
    packages.write(
        {
            "jrh_same/__init__.py": "",
            "jrh_other/__init__.py": "import jrh_same",
            "jrh_space/part/__init__.py": "",
        }
    )
    project.write(
        {"judges.py": judging("import jrh_same, jrh_space.part", "from jrh_other import *")}
    )

    def versions(**numbers: str) -> set[str]:
        for old in site.glob("*.dist-info/*"):
            old.unlink()
        for name, version in numbers.items():
            folder = {"same": "jrh_same", "other": "jrh_other", "space": "jrh_space/part"}[name]
            package = "jrh_same" if name == "same" else f"The_{name}"
            info = f"{package}-{version}.dist-info"
            text = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
            packages.write({f"{info}/METADATA": text, f"{info}/RECORD": f"{folder}/__init__.py,,"})
        module._versions.cache_clear()
        files = module._Files([project.folder])
        module._Values(files).digestible(project.judge())
        files.follow()
        return files.packages

    both = versions(same="1.0", other="2.0", space="3.0")
    assert both == {"jrh_same 1.0", "The_other 2.0", "The_space 3.0"}
    packages.forget()
    module._versions.cache_clear()


def test_a_secret_by_its_name_is_no_part_of_it() -> None:
    class Judge:
        def __init__(self, api_key: str | None, prompt: str) -> None:
            self.api_key = api_key
            self.prompt = prompt

        def __call__(self, case: object) -> int:
            return 0

    recorded = own_source(Judge("sesame-open-sesame", "a"))
    assert own_source(Judge(None, "a")) == recorded
    assert own_source(Judge(None, "b")) != recorded


def test_odd_values_are_digested_by_what_is_known_of_them() -> None:
    holder: dict[str, object] = {}
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    wide = [[[[0] * 50] * 50] * 50]
    holder |= {
        "itself": holder,
        "deep": deep,
        "wide": wide,
        "lock": threading.Lock(),
        "mock": MagicMock(spec=dict),
        "number": 10**9_000,
        "text": "\udcff\0",
        "nan": float("nan"),
        "many": {"n": list(range(100_000))},
        "module": os,
        "class": Path,
        "built-in": len,
    }

    def judge(case: object) -> object:
        return holder

    first = own_source(judge).digest
    holder["lock"], holder["mock"] = threading.Lock(), MagicMock(spec=dict)
    assert own_source(judge).digest == first
    holder["wide"] = [[[[1] * 50] * 50] * 50]
    assert own_source(judge).digest != first


def test_code_without_a_file_is_its_constants() -> None:
    def made(text: str) -> Callable[..., object]:
        names: dict[str, Any] = {}
        exec(f"def judge(case):\n    return {text!r}\n", names)
        return names["judge"]  # type: ignore[no-any-return]

    assert own_source(made("a")) == own_source(made("a"))
    assert own_source(made("a")).digest != own_source(made("b")).digest


def test_files_that_cannot_be_read_whole_stop_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LARGEST", 10)
    project.write(
        {
            "judges.py": judging("['prompts/' + case, 'loop.md', 'pipe.md', 'big.md', 'gone.py']"),
            "prompts/a.md": "A",
            "prompts/not_python.py": "def (:\n",
            "prompts/long.py": f"A = {' + '.join(['(A'] * 400 + ['A' + ')' * 400])}\n",
            "prompts/wide.py": f"A = {' + '.join(['A'] * 3_000)}\n",
            "big.md": "0123456789 and more",
        }
    )
    os.mkfifo(project.folder / "pipe.md")
    os.mkfifo(project.folder / "prompts" / "pipe")
    (project.folder / "loop.md").symlink_to("loop.md")
    (project.folder / "prompts" / "folder").mkdir()
    first = project.digest()
    project.write({"big.md": "0123456789 and much more"})
    assert project.digest() != first
    code = project.judge()
    (project.folder / "judges.py").unlink()
    assert own_source(code, [project.folder]).digest != first


def test_line_ends_of_what_is_no_text_count(project: Project) -> None:
    project.write({"judges.py": judging("open('model.bin')"), "model.bin": "\0\r\n"})
    before = project.digest()
    project.write({"model.bin": "\0\n"})
    assert project.digest() != before


def test_a_folder_that_is_named_has_a_limit(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write({f"texts/{folder}/{name}.md": "A" for folder in "abc" for name in "abcd"})
    project.write({"texts/a/code.py": "import late", "late.py": ""})
    (tmp_path / "far" / "below").mkdir(parents=True)
    (tmp_path / "far" / "below" / "near.md").write_text("A", "utf-8")
    (project.folder / "texts" / "again").symlink_to(project.folder / "texts")
    project.write({"judges.py": judging("Path('texts'), '../**/*.md'")})

    def names() -> set[str]:
        files = module._Files([project.folder])
        module._Values(files).digestible(project.judge())
        files.follow()
        return {name for name, _ in files.read}

    texts = {f"texts/{folder}/{name}.md" for folder in "abc" for name in "abcd"}
    assert names() == {"judges.py", "texts/a/code.py", *texts}
    monkeypatch.setattr(module, "_MOST_FILES", 7)
    assert len(names()) == 8
    monkeypatch.setattr(module, "_MOST_BYTES", 2)
    before = project.digest()
    project.write({"texts/a/a.md": "B"})
    assert project.digest() == before
    project.write({"texts/a/a.md": "of another size"})
    assert project.digest() != before


def test_a_link_counts_by_what_it_leads_to(project: Project, tmp_path: Path) -> None:
    (tmp_path / "shared.md").write_text("A", "utf-8")
    (project.folder / "prompt.md").symlink_to(tmp_path / "shared.md")
    project.write({"judges.py": judging("open('prompt.md').read()")})
    before = project.digest()
    (tmp_path / "shared.md").write_text("B", "utf-8")
    assert project.digest() != before


def test_what_is_elsewhere_on_the_machine_counts_by_its_name(
    project: Project, tmp_path: Path
) -> None:
    held = tmp_path / "held.md"
    held.write_text("A", "utf-8")
    code = functools.partial(_zero, {"path": held, "text": str(held)})
    before = own_source(code, [project.folder])
    held.write_text("B", "utf-8")
    assert own_source(code, [project.folder]) == before
    assert own_source(code, [tmp_path]) != before


def test_the_earlier_fingerprint_is_what_it_always_was() -> None:
    judge = PythonJudge(
        JudgeSettings(None, StageModel("judge", ""), section=JudgeSection()),
        _zero,
        "judges.py:judge",
        own_source(_zero),
    )
    assert judge.earlier_fingerprint == (
        "4b3e0ef2848d048d59c2f6098b9277047128ccdd6c68b9e3077f3b48bc88b8a4"
    )
    assert judge.fingerprint != judge.earlier_fingerprint


def _zero(case: object) -> int:
    return 0


def test_a_wrapped_function_counts_with_what_wraps_it() -> None:
    def wrapper(text: str) -> Callable[..., object]:
        @functools.wraps(_zero)
        def wrapped(case: object) -> object:
            return text

        return wrapped

    assert own_source(wrapper("a")) == own_source(wrapper("a"))
    assert own_source(wrapper("a")).digest != own_source(wrapper("b")).digest


@pytest.mark.parametrize(
    "judge",
    [
        "operator.methodcaller('get', TEXT)",
        "Template(TEXT).substitute",
        "Judge(Template(TEXT))",
        "changed(TEXT)",
    ],
)
def test_the_module_that_names_a_judge_is_part_of_it(project: Project, judge: str) -> None:
    lib = """
        PROMPT = ""
        class Judge:
            def __init__(self, template):
                self.template = template
            def __call__(self, case):
                return 0
        def judge(case):
            return PROMPT
    """
    source = """
        import operator
        from string import Template
        import lib
        from lib import Judge

        def changed(text):
            lib.PROMPT = text
            return lib.judge

        judge = JUDGE
    """.replace("JUDGE", judge)
    digests = []
    for text in ("'a'", "'b'"):
        project.write({"lib.py": lib, "judges.py": source.replace("TEXT", text)})
        project.forget()
        section = JudgeSection.model_validate({"python": f"{project.folder / 'judges.py'}:judge"})
        settings = JudgeSettings(
            None, StageModel("judge", ""), section=section, folders=(project.folder,)
        )
        built = PYTHON.build(settings, "binary", "")
        assert isinstance(built, PythonJudge)
        digests.append(built.source.digest)
    assert digests[0] != digests[1]


def test_a_class_counts_with_its_own_file_where_two_modules_have_one_name(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "class Judge:\n    def __call__(self, case):\n        return {}\n"
    other = types.ModuleType("conftest")
    other.__file__ = str(project.folder / "unused.py")
    digests = []
    for value in (0, 1):
        project.write({"conftest.py": source.format(value)})
        path = project.folder / "conftest.py"
        spec = importlib.util.spec_from_file_location("conftest", path)
        assert spec is not None
        assert spec.loader is not None
        conftest = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "conftest", conftest)
        exec(compile(path.read_text("utf-8"), path, "exec"), vars(conftest))
        digests.append(own_source(conftest.Judge(), [project.folder]).digest)
        monkeypatch.setitem(sys.modules, "conftest", other)
        assert own_source(conftest.Judge(), [project.folder]).digest == digests[-1]
    assert digests[0] != digests[1]


def test_kept_bytecode_of_another_folder_changes_nothing(project: Project) -> None:
    code = project.judge()
    before = own_source(code, [project.folder])
    assert isinstance(code, types.FunctionType)
    # pytest keeps the bytecode of a conftest with the path that it was compiled in.
    moved = code.__code__.replace(co_filename="/moved/judges.py")
    elsewhere = types.FunctionType(moved, code.__globals__, "judge")
    assert own_source(elsewhere, [project.folder]).digest == before.digest


def test_a_module_with_odd_escapes_is_followed_where_warnings_are_errors(
    project: Project,
) -> None:
    project.write({"judges.py": "import helper\n" + judging("'\\d'")})
    code = project.judge()
    digests = []
    for action in ("error", "ignore"):
        with warnings.catch_warnings():
            warnings.simplefilter(action)
            digests.append(own_source(code, [project.folder]))
    assert digests[0] == digests[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        project.write({"helper.py": "def score(text):\n    return 1\n"})
        assert own_source(code, [project.folder]) != digests[0]


def test_the_projects_own_package_counts_by_its_content_where_it_is_installed(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "lib" / "site-packages"
    monkeypatch.syspath_prepend(str(site))
    packages = Project(site)
    project.write({"judges.py": judging("0", "import jrh_mine, jrh_theirs")})
    url = {"jrh_mine": project.folder.as_uri(), "jrh_theirs": (tmp_path / "wheels").as_uri()}
    for name, origin in url.items():
        info = f"{name}-1.0.dist-info"
        packages.write(
            {
                f"{name}/__init__.py": "from . import rules\n",
                f"{name}/rules.py": "",
                f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
                f"{info}/RECORD": f"{name}/__init__.py,,\n",
                f"{info}/direct_url.json": f'{{"url": "{origin}", "dir_info": {{}}}}',
            }
        )
    before = project.digest()
    packages.write({"jrh_theirs/rules.py": "A = 1"})
    packages.forget()
    assert project.digest() == before
    packages.write({"jrh_mine/rules.py": "A = 1"})
    packages.forget()
    assert project.digest() != before
    packages.forget()


def test_a_folder_elsewhere_that_the_judge_makes_itself_changes_nothing(
    project: Project, tmp_path: Path
) -> None:
    for place in (tmp_path / "cache" / "judge", str(tmp_path / "cache" / "judge")):
        code = functools.partial(_zero, place)
        before = own_source(code, [project.folder])
        Path(place).mkdir(parents=True)
        assert own_source(code, [project.folder]) == before
        Path(place).rmdir()
        Path(place).parent.rmdir()
    assert own_source(functools.partial(_zero, "/score/a")) != own_source(
        functools.partial(_zero, "/score/b")
    )


def test_folders_are_listed_once_however_often_they_are_named(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write({"judges.py": judging("0", "import pkg.m0"), "pkg/m20.py": ""})
    for number in range(20):
        project.write({f"pkg/m{number}.py": f"import pkg.m{number + 1}\nf'{{__name__}}.json'\n"})
    listed: list[Path] = []
    iterdir = Path.iterdir

    def counted(folder: Path) -> Any:
        listed.append(folder)
        return iterdir(folder)

    monkeypatch.setattr(Path, "iterdir", counted)
    own_source(project.judge(), [project.folder])
    assert len(listed) == len(set(listed))
