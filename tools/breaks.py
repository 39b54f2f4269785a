"""Break the package in places drawn at random, one at a time, and see which breaks tests catch.

    python -m tools.breaks [--number 60] [--seed 41] [--list] [PYTEST_ARGUMENT ...]

A break turns one comparison, condition or number of `pytest_jrh` into another one, and is taken
back before the next. Rooms get breaks by their size. Of the tests, those files run that name the
broken function or what its module defines most often, and the golden sessions. Needs a clean tree.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_TURNED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
_MOST_FILES = 8


@dataclass(frozen=True)
class Break:
    """One place of a file, from `start` to `end` in characters, and what stands there instead."""

    path: Path
    line: int
    function: str
    start: int
    end: int
    text: str

    def __str__(self) -> str:
        source = self.path.read_text("utf-8")
        place = f"{self.path.relative_to(ROOT)}:{self.line} {self.function}"
        return f"{place}: {source[self.start : self.end]!r} -> {self.text!r}"


def breaks(path: Path) -> Iterator[Break]:
    """All breaks of a module."""
    source = path.read_text("utf-8")
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = source.split("\n")

    def place(line: int, column: int) -> int:
        # Columns of a tree count bytes.
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.expr) or node.end_lineno is None:
                continue
            start = place(node.lineno, node.col_offset)
            end = place(node.end_lineno, node.end_col_offset or 0)
            text = source[start:end]
            if isinstance(node, ast.Compare) and len(node.ops) == 1:
                left_end = place(node.left.end_lineno or 0, node.left.end_col_offset or 0)
                right = place(node.comparators[0].lineno, node.comparators[0].col_offset)
                turned = (
                    f"{source[start:left_end]} {_TURNED[type(node.ops[0])]} {source[right:end]}"
                )
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
                turned = f"bool({text.removeprefix('not ')})"
            elif isinstance(node, ast.BoolOp):
                turned = f"({ast.unparse(node.values[0])})"
            elif isinstance(node, ast.Constant) and type(node.value) is int:
                turned = str(node.value + 1)
            else:
                continue
            yield Break(path, node.lineno, function.name, start, end, turned)


def drawn(number: int, seed: int) -> list[Break]:
    """So many breaks, each room with its share."""
    chance = random.Random(seed)  # noqa: S311 - a draw, and no secret
    every_break = [one for path in sorted(ROOT.glob("pytest_jrh/**/*.py")) for one in breaks(path)]
    rooms: dict[str, list[Break]] = {}
    for one in every_break:
        rooms.setdefault(one.path.relative_to(ROOT).parts[1], []).append(one)
    picked: list[Break] = []
    for room in sorted(rooms):
        share = max(1, round(number * len(rooms[room]) / len(every_break)))
        picked += chance.sample(rooms[room], share)
    chance.shuffle(picked)
    return picked[:number]


def tests_of(one: Break) -> list[str]:
    """The test files that are likeliest to notice a break."""
    tree = ast.parse(one.path.read_text("utf-8"))
    names = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    module = ".".join(one.path.relative_to(ROOT).with_suffix("").parts)
    ranked = []
    for path in sorted(ROOT.glob("tests/*/test_*.py")):
        text = path.read_text("utf-8")
        words = re.findall(r"\w+", text)
        score = 20 * words.count(one.function) + 10 * text.count(module)
        score += sum(word in names for word in words)
        ranked.append((-score, str(path.relative_to(ROOT))))
    files = [file for score, file in sorted(ranked)[:_MOST_FILES] if score < 0]
    return [*files, "tests/golden"]


def is_caught(one: Break, arguments: list[str]) -> bool:
    """Whether a test fails with the break."""
    source = one.path.read_text("utf-8")
    one.path.write_text(source[: one.start] + one.text + source[one.end :], "utf-8")
    try:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        done = subprocess.run(  # noqa: S603 - without a shell
            [*command, *arguments, *tests_of(one)], cwd=ROOT, capture_output=True, check=False
        )
        return done.returncode != 0
    finally:
        one.path.write_text(source, "utf-8")


def main() -> None:
    """Draw, and try each of them."""
    parser = argparse.ArgumentParser(prog="tools.breaks", description=__doc__)
    parser.add_argument("--number", type=int, default=60)
    parser.add_argument("--seed", type=int, default=41)
    parser.add_argument("--list", action="store_true", help="print them, and break nothing")
    options, arguments = parser.parse_known_args()
    caught = 0
    picked = drawn(options.number, options.seed)
    for one in picked:
        told = str(one)
        if options.list:
            print(told)
            continue
        noticed = is_caught(one, arguments)
        caught += noticed
        print("caught " if noticed else "MISSED ", told, flush=True)
    if not options.list:
        print(f"{caught} of {len(picked)} caught")


if __name__ == "__main__":
    main()
