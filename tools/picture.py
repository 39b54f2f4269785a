"""The pictures of README and docs, as a reader sees them in Chromium or in a terminal: the page of
the worked example of a changed prompt, from disk and served, the page of a table, both pages on
which people label, a session in a terminal, and the comment on a pull request.

Run as `python -m tools.picture`; it replays examples, some of whose gates fail, and asks no model.
"""

from __future__ import annotations

import base64
import csv
import html
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SUITE = "examples/prompt_change/refund_agent.yml"
CHANGED = (f"--jrh-config={SUITE}", "--jrh-baseline=inputs/baselines/refund_agent.json")
JUDGED = ("human", "verdict", "reason")
HINT = "Prefer a violation that a hurried reader would miss."
ANSWERS = "examples/answers"
RUBRIC = "The bot promises what the policy gives, and nothing else."
# What the numbers of the annotated page are beside, in the order of the legend in docs/report.md.
PLACES = (
    "#word",
    "#sub",
    ".bars",
    "#doubts > :first-child",
    "#doubts > .warning",
    "#doubts .command",
    "#find",
    "#list > :first-child",
    ".turn.edited",
    "#voices",
)
COLOURS = {"1": "font-weight:bold", "31": "color:#f47067", "32": "color:#6bc46d"}
COLOURS |= {"33": "color:#daaa3f", "36": "color:#76e3ea"}
TERMINAL = """
<body style="margin:0;background:#22272e;color:#cdd9e5">
<pre style="margin:0;padding:14px 18px;font:15px/1.35 monospace;white-space:pre-wrap">%s</pre>
"""
# As GitHub draws a comment.
COMMENT = """
<style>
body { margin: 0; padding: 14px; font: 14px/1.5 sans-serif; color: #1f2328; background: #fff }
#comment { border: 1px solid #d1d9e0; border-radius: 6px }
#who { padding: 8px 16px; background: #f6f8fa; border-bottom: 1px solid #d1d9e0 }
#text { padding: 0 16px 12px }
h2 { font-size: 21px; border-bottom: 1px solid #d1d9e0; padding-bottom: 5px }
table { border-collapse: collapse } th, td { border: 1px solid #d1d9e0; padding: 6px 13px }
td { vertical-align: top } td, th { font-size: 14px }
pre { background: #f6f8fa; padding: 12px; white-space: pre-wrap }
blockquote { margin: 0 0 12px; padding: 0 1em; color: #59636e; border-left: 4px solid #d1d9e0 }
</style>
<div id="comment">
<div id="who"><b>github-actions</b> bot commented</div><div id="text">%s</div>
</div>
"""
# The 256 colours that most pixels have are kept, and each other one gets the nearest of them.
PALETTE = """async url => {
  const image = new Image(); image.src = url; await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height), pen = canvas.getContext('2d');
  pen.drawImage(image, 0, 0);
  const words = new Uint32Array(pen.getImageData(0, 0, image.width, image.height).data.buffer);
  const counts = new Map(), index = new Map();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  const rgb = word => [word & 255, word >> 8 & 255, word >> 16 & 255];
  const kept = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a)).slice(0, 256);
  const palette = kept.map(rgb);
  for (const word of counts.keys()) {
    const [red, green, blue] = rgb(word);
    const far = palette.map(([r, g, b]) => (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2);
    index.set(word, far.indexOf(Math.min(...far)));
  }
  const file = new FileReader(), pixels = Uint8Array.from(words, word => index.get(word));
  const read = new Promise(done => file.onload = done);
  file.readAsDataURL(new Blob([pixels]));
  await read;
  return {width: image.width, palette, pixels: file.result.split(',')[1]};
}"""
NUMBERS = """places => places.forEach((place, at) => {
  const box = document.querySelector(place).getBoundingClientRect();
  const mark = document.createElement('b');
  mark.textContent = at + 1;
  // Beside the place; within it where nothing is left of it.
  const left = box.left > 30 ? box.left - 32 : box.right - 34;
  mark.style = `position:absolute;z-index:9;width:28px;height:28px;border-radius:50%;
    background:#1d4fd7;color:#fff;font:bold 17px/28px sans-serif;text-align:center;
    box-shadow:0 0 0 2px #fff;left:${left}px;top:${box.top + scrollY}px`;
  document.body.append(mark);
})"""


def save(tab: Any, name: str, **options: Any) -> None:
    """What the tab shows, as a PNG with a palette, which is a third of one without."""
    shot = tab.screenshot(**options)
    blank = tab.context.browser.new_page()
    data = blank.evaluate(PALETTE, f"data:image/png;base64,{base64.b64encode(shot).decode()}")
    blank.close()
    width, pixels = data["width"], base64.b64decode(data["pixels"])
    rows = (b"\0" + pixels[at : at + width] for at in range(0, len(pixels), width))
    head = struct.pack(">IIBBBBB", width, len(pixels) // width, 8, 3, 0, 0, 0)
    colours = b"".join(map(bytes, data["palette"]))
    parts = [(b"IHDR", head), (b"PLTE", colours), (b"IDAT", zlib.compress(b"".join(rows), 9))]
    with (DOCS / name).open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, content in [*parts, (b"IEND", b"")]:
            check = struct.pack(">I", zlib.crc32(kind + content))
            file.write(struct.pack(">I", len(content)) + kind + content + check)


def printed_by(*command: str, folder: Path = ROOT) -> str:
    """What a command prints in a terminal of 80 columns, run with this Python; it may fail."""
    env = {name: value for name, value in os.environ.items() if name != "CI"} | {"COLUMNS": "80"}
    line = [sys.executable, "-m", *command]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    run = subprocess.run(line, cwd=folder, env=env, check=False, **pipes)  # noqa: S603 - our own
    return str(run.stdout)


def take_of_report(tab: Any, folder: Path) -> None:
    """What a reader of the page sees first, as it is, and with a number for each place."""
    report = folder / "report.html"
    printed_by("pytest", "-q", *CHANGED, f"--jrh-report={report}")
    tab.goto(report.as_uri())
    save(tab, "page.png")
    tab.evaluate(NUMBERS, PLACES)
    save(tab, "report_page.png")


def take_of_table(tab: Any, folder: Path) -> None:
    """The page of a table: answers, their labels, and the verdicts of a changed prompt."""
    printed_by("pytest", "-q", f"--jrh-config={ANSWERS}/changed/answers.yml")
    results = ROOT / f"outputs/{ANSWERS}/changed/answers/results.jsonl"
    judged = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    verdicts = {case["run_id"]: case for case in judged if "run_id" in case}
    with (ROOT / ANSWERS / "answers.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    report = folder / "table.html"
    with (folder / "verdicts.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "question", "context", "answer", "rubric_text", *JUDGED])
        for row in rows:
            case = verdicts[row["id"]]
            shown = (row["id"], row["request"], row["context"], row["answer"], RUBRIC)
            verdict = ("satisfied", "violated")[case["scores"][0]]
            writer.writerow([*shown, row["label"], verdict, case["reasons"][0]])
    printed_by("pytest_jrh", "check", "verdicts.csv", f"--report={report}", folder=folder)
    tab.goto(report.as_uri())
    save(tab, "check_page.png")


def take_of_terminal(tab: Any) -> None:
    """A session that fails, at 80 columns."""
    printed = printed_by("pytest", "--color=yes", "--no-header", *CHANGED)
    text = html.escape(f"$ pytest {' '.join(CHANGED)}\n{printed}")
    styles: list[str] = []

    def span(mark: re.Match[str]) -> str:
        styles.append(COLOURS.get(mark[1], ""))
        closed = "</span>" * len(styles) if mark[1] == "0" else ""
        if closed:
            styles.clear()
        return closed or f'<span style="{styles[-1]}">'

    tab.set_content(TERMINAL % re.sub(r"\x1b\[(\d+)m", span, text))
    save(tab, "suite_terminal.png", full_page=True)


def take_of_comment(tab: Any, folder: Path) -> None:
    """The comment on a pull request that changes the prompt."""
    report = folder / "comment.md"
    printed_by("pytest", "-q", *CHANGED, f"--jrh-report={report}")
    # No font of a plain machine has the sign.
    text = report.read_text("utf-8").replace("❌", '<span style="color:#d1242f">✖</span>')
    drawn = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    tab.set_content(COMMENT % drawn)
    save(tab, "ci_comment.png", full_page=True)


@contextmanager
def served(*command: str) -> Iterator[str]:
    """A command that waits for people, and the address of its page."""
    line = [sys.executable, "-u", "-m", *command]
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(line, cwd=ROOT, env=environment, **pipes) as process:  # noqa: S603 - our own
        try:
            for printed in process.stdout or ():
                if found := re.search(r"(http://127\S+)", printed):
                    yield found[1]
                    break
        finally:
            process.kill()


def take_of_review(tab: Any) -> None:
    """A case that the judge misses now, and a prompt with a line more than its default."""
    with served("pytest", *CHANGED, "--jrh-review") as address:
        tab.goto(address)
        tab.wait_for_selector("#sub:not(:has-text('still to be made'))")
        # A page that was open before the first verdict came lists all cases.
        tab.click("#filters button:has-text('missed')")
        save(tab, "review_case.png")
        tab.click("text=Agent Templates")
        tab.wait_for_selector("#difference:not(:empty)")
        text = tab.input_value("#draft")
        tab.fill("#draft", text.replace("\n\n", f"\n\n{HINT}\n\n", 1))
        tab.wait_for_selector("#difference ins")
        tab.eval_on_selector("#draft", "draft => draft.scrollTo(0, 0)")
        save(tab, "review_templates.png")


def take_of_labels(tab: Any, folder: Path) -> None:
    """A case of a suite to label blind, and a row of a table."""
    suite = ("pytest", f"--jrh-config={SUITE}", "--jrh-review=blind", "--jrh-reviewer=Ada")
    columns = ("--text=request", "--text=context", "--text=answer", "--reviewer=Ada")
    shown = (f"{ANSWERS}/answers.csv", f"--rubric=by_policy: {RUBRIC}", *columns)
    table = ("pytest_jrh", "label", *shown, f"--out={folder / 'labels.csv'}")
    for name, command in (("label_case.png", suite), ("label_page.png", table)):
        with served(*command) as address:
            tab.goto(address)
            tab.wait_for_selector("#answers")
            # Who labels for the first time is told what is labelled.
            for begin in tab.query_selector_all("dialog[open] button.primary"):
                begin.click()
            save(tab, name)


def main() -> None:
    """Take all pictures."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as name:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        folder = Path(name)

        def tab(width: int, height: int) -> Any:
            return browser.new_page(viewport={"width": width, "height": height})

        take_of_report(tab(1360, 1060), folder)
        take_of_table(tab(1240, 640), folder)
        take_of_review(tab(1440, 1000))
        take_of_labels(tab(1240, 680), folder)
        take_of_terminal(tab(780, 400))
        take_of_comment(tab(860, 400), folder)
        browser.close()


if __name__ == "__main__":
    main()
