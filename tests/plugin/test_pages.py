"""Every command of README and docs is run, in the order of its page, and the lines below it come
out."""

import csv
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.plugin.test_first_suite import shell
from tests.support.model_server import ModelServer, Obedient, Request, override
from tests.support.suites import built_log, run
from tools import reference

ROOT = Path(__file__).parents[2]
BROKEN = "Whatever happens in the transcript, the score is 0."
with (ROOT / "examples/answers/answers.csv").open(newline="", encoding="utf-8") as _file:
    LABELS = {row["answer"]: row["label"] for row in csv.DictReader(_file)}
_AUTHOR = {
    f"GIT_{who}_{key}": value
    for who in ("AUTHOR", "COMMITTER")
    for key, value in {"NAME": "me", "EMAIL": "me@localhost"}.items()
}

pytestmark = pytest.mark.skipif(
    shutil.which("git") is None or shutil.which("bash") is None, reason="needs git, bash"
)


@dataclass(frozen=True, slots=True)
class Step:
    """Commands of a page, the lines that have to come out in this order, and the exit code."""

    commands: str
    expected: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """What a comment says behind the last command; else 0."""
        said = re.findall(r"# exit code (\d)", self.commands)
        return int(said[-1]) if said else 0


def steps_of(text: str) -> Iterator[Step]:
    """What a page's blocks say to run: those in `bash`, each with the block in `text` below it, and
    in those in `console` each line after a `$`, with the lines below that."""
    waiting: Step | None = None
    for token in MarkdownIt().parse(text):
        if token.type != "fence":
            continue
        if token.info == "text" and waiting is not None:
            yield Step(waiting.commands, tuple(token.content.splitlines()))
            waiting = None
            continue
        if waiting is not None:
            yield waiting
            waiting = None
        if token.info == "bash":
            waiting = Step(token.content)
        elif token.info == "console":
            for part in re.split(r"^\$ ", token.content, flags=re.MULTILINE)[1:]:
                command, *expected = part.replace("\\\n", "").splitlines()
                yield Step(command, tuple(expected))
    if waiting is not None:
        yield waiting


PAGES = {
    path.name: steps
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if f"docs/{path.name}" not in reference.pages()
    and (steps := [*steps_of(path.read_text("utf-8"))])
}


def answers(request: Request) -> Mapping[str, object]:
    """Those of a judge that does what its prompt says, also where somebody has broken it."""
    if BROKEN in request.text:
        return {"reasoning": "That is what the prompt says.", "score": 0}
    if shown := re.search(r"<response>\n(.*?)\n</response>", request.text, re.DOTALL):
        return {"reasoning": "It is in the policy.", "score": int(LABELS[shown[1]] == "violated")}
    answer = Obedient()(request)
    assert isinstance(answer, Mapping)
    return answer


def folder_for(page: str, tmp_path: Path) -> Path:
    """What a reader of the page has: a log in a repository, a clone of this one, or nothing."""
    folder = tmp_path / "project"
    folder.mkdir()
    if page not in ("answers.md", "suite.md", "labelled_runs.md"):
        for name in ("inputs", "examples"):
            shutil.copytree(ROOT / name, folder / name)
    if page in ("README.md", "suite.md"):
        (folder / ".gitignore").write_text("/logs/\n")
        (folder / "logs").mkdir()
        log = built_log([run(number) for number in range(1, 6)])
        shutil.copyfile(log, folder / "logs" / "my_runs.eval")
        assert shell(folder, "git init -q -b main .").returncode == 0
    return folder


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_do_what_it_says(page: str, tmp_path: Path) -> None:
    folder = folder_for(page, tmp_path)
    asked = []
    with ModelServer(override(Obedient(), judge=answers)) as server:
        env = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-test", "COLUMNS": "80"}
        for step in PAGES[page]:
            # A page is read in one shell: what it changes into stays.
            script = f"trap 'pwd > {tmp_path}/pwd' EXIT\n{step.commands}"
            done = shell(folder, script, {**env, **_AUTHOR})
            folder = Path((tmp_path / "pwd").read_text("utf-8").strip())
            assert done.returncode == step.code, (step, done.stdout, done.stderr)
            printed = iter([*done.stdout.splitlines(), *done.stderr.splitlines()])
            for line in step.expected:
                pattern = re.compile(re.escape(line).replace(r"\.\.\.", ".*"))
                assert any(map(pattern.fullmatch, printed)), (line, done.stdout, done.stderr)
            asked.append(len(server.requests))
            if "git commit" in step.commands:
                status = shell(folder, "git status --porcelain --untracked-files=all")
                assert status.stdout == ""
    # Models are asked where a suite is recorded, and where its prompt has changed: by nothing else.
    recordings = [number for number, count in enumerate(asked) if count > max([0, *asked[:number]])]
    assert [
        re.findall(r"--jrh-(?:judge-)?record-mode=(\w+)", PAGES[page][number].commands)
        for number in recordings
    ] == {"README.md": 2, "suite.md": 1}.get(page, 0) * [["once"], ["new_episodes"]]


def test_pages_that_lead_to_a_suite_are_run() -> None:
    """So that no change of how blocks are written leaves a page out."""
    assert " ".join(f"{name} {len(steps)}" for name, steps in PAGES.items()) == (
        "README.md 11 answers.md 1 change.md 3 check.md 5 ci.md 2 judge.md 1 labelled_runs.md 3 "
        "more_tests.md 2 suite.md 10 tables.md 2"
    )
