"""The floors of the house, and the one room of each heavy library, read from the imports
(ARCHITECTURE.md)."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import pytest_jrh
from pytest_jrh.judges import JUDGES
from pytest_jrh.kinds import KINDS, TESTS
from pytest_jrh.sources import SOURCES
from pytest_jrh.stages import STAGES

PACKAGE = Path(pytest_jrh.__file__).parent
# A module imports from the floors below its own, and from its own room.
FLOORS: dict[str, int] = {
    **dict.fromkeys(
        (
            "errors",
            "models",
            "transcript",
            "templating",
            "bounds",
            "redact",
            "contents",
            "files",
            "diffs",
            "text",
            "user_code",
            "kinds",
            "probes",
            "stages",
        ),
        0,
    ),
    **dict.fromkeys(("documents", "llm", "sections"), 1),
    "judges": 2,
    "suite": 3,
    **dict.fromkeys(("sources", "recording", "pipeline", "stats"), 4),
    **dict.fromkeys(("gate", "artifacts", "labels", "options"), 5),
    **dict.fromkeys(("reporting", "review"), 6),
    **dict.fromkeys(("library", "loading", "planning", "starting"), 7),
    **dict.fromkeys(("engine", "concluding", "loaded", "provenance"), 8),
    **dict.fromkeys(("commands", "merging", "mutants", "plan_text"), 9),
    "plugin": 10,
    "__main__": 11,
    "__version__": 0,  # no module, but a name of the package itself
}
# Each may be imported in one room only, and only where it is needed: inside a function.
ROOMS: dict[str, tuple[str, ...]] = {
    "litellm": ("llm.provider",),
    "openai": ("llm.client",),
    "httpx": ("llm.failures", "judges.http"),
    "httpcore": ("llm.wire",),
    "inspect_scout": ("sources.scout", "judges.scout_scanner"),
    "inspect_ai": (
        "judges.inspect_code",
        "judges.inspect_scorer",
        "judges.scout_scanner",
        "sources.eval_logs",
        "sources.judged_logs",
        "sources.judged_samples",
        "sources.zip_logs",
    ),
    "vcr": ("recording.recorder",),
    "jinja2": ("templating.jinja", "templating.pages"),
    "openpyxl": ("artifacts.tables",),
    "sklearn": ("stats.metrics",),
    "filelock": ("llm.locks",),
    "starlette": ("review.serving.app",),
    "uvicorn": ("review.serving.server",),
}


class Import(NamedTuple):
    """One name that a module imports; `lazy` is inside a function, `typing` under TYPE_CHECKING."""

    module: str
    line: int
    name: str
    lazy: bool
    typing: bool

    def __str__(self) -> str:
        return f"{self.module} imports {self.name} in line {self.line}"


@dataclass
class Finder(ast.NodeVisitor):
    """Collects the imports of one module."""

    module: str
    found: list[Import]
    lazy: bool = False
    typing: bool = False

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.found.append(Import(self.module, node.lineno, alias.name, self.lazy, self.typing))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        assert node.level == 0, f"{self.module}, line {node.lineno}: imports are absolute"
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            self.found.append(Import(self.module, node.lineno, name, self.lazy, self.typing))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        was, self.lazy = self.lazy, True
        self.generic_visit(node)
        self.lazy = was

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_If(self, node: ast.If) -> None:
        was = self.typing
        self.typing = was or ast.unparse(node.test) == "TYPE_CHECKING"
        for child in node.body:
            self.visit(child)
        self.typing = was
        for child in node.orelse:
            self.visit(child)


@cache
def trees() -> Mapping[str, ast.Module]:
    """The files of the package, by their paths in it."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def imports() -> tuple[Import, ...]:
    found: list[Import] = []
    for path, tree in trees().items():
        name = path.removesuffix(".py").replace("/", ".")
        Finder(name.removesuffix(".__init__"), found).visit(tree)
    return tuple(found)


def room(module: str) -> str:
    return module.partition(".")[0]


def own(imported: Import) -> str:
    """The module inside the package that is imported, or nothing."""
    package, _, rest = imported.name.partition(".")
    return rest if package == "pytest_jrh" else ""


def test_every_module_has_its_floor() -> None:
    there = {room(imported.module) for imported in imports()} - {"__init__"}
    assert there <= set(FLOORS)


def test_modules_import_from_floors_below_their_own() -> None:
    # The vocabulary of floor 0 is one: its modules may import each other, and the next test keeps
    # them acyclic.
    wrong = [
        str(one)
        for one in imports()
        if one.module != "__init__" and own(one) and room(own(one)) != room(one.module)
        if FLOORS[room(own(one))] >= max(FLOORS[room(one.module)], 1)
    ]
    assert not wrong


def test_ground_floor_has_no_cycles() -> None:
    ground = {name for name, floor in FLOORS.items() if floor == 0}
    needs = {
        name: {
            room(own(one))
            for one in imports()
            if room(one.module) == name and own(one) and not one.typing
        }
        - {name}
        for name in ground
    }
    done: set[str] = set()
    while ready := {name for name in ground - done if needs[name] <= done}:
        done |= ready
    assert done == ground


def test_only_the_plugin_imports_pytest() -> None:
    assert not [
        str(one)
        for one in imports()
        if room(one.name) in {"pytest", "_pytest", "pluggy", "xdist"}
        and room(one.module) != "plugin"
    ]


@pytest.mark.parametrize("library", ROOMS)
def test_heavy_library_is_imported_in_its_room_only_and_late(library: str) -> None:
    found = [one for one in imports() if room(one.name) == library]
    assert {one.module for one in found} <= set(ROOMS[library])
    assert not [str(one) for one in found if not (one.lazy or one.typing)]


def test_nothing_but_the_known_libraries_is_imported() -> None:
    known = {
        *ROOMS,
        *sys.stdlib_module_names,
        "pytest_jrh",
        "pydantic",
        "pydantic_core",
        "yaml",
        "zipfile_zstd",
    }
    known |= {"pytest", "_pytest", "pluggy", "xdist"}
    assert not [str(one) for one in imports() if room(one.name) not in known]


class Constant(NamedTuple):
    """A text in the code of a module, and the comparisons that it is part of."""

    path: str
    text: str
    compared: tuple[str, ...]


@cache
def constants() -> tuple[Constant, ...]:
    found: list[Constant] = []
    for path, tree in trees().items():
        compared: dict[int, list[str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare | ast.MatchValue):
                for part in ast.walk(node):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        compared.setdefault(id(part), []).append(ast.unparse(node))
        found += [
            Constant(path, node.value, tuple(compared.get(id(node), ())))
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
    return tuple(found)


# A case also has a position in the review.
@pytest.mark.parametrize("name", sorted({*TESTS} - {"position"}))
def test_the_name_of_a_kind_of_test_stands_in_its_own_file_alone(name: str) -> None:
    own = "probes" if KINDS[name].derived else "kinds"
    assert {one.path for one in constants() if one.text == name} == {f"{own}/{name}.py"}


# Stages and judges whose names are other things as well, such as columns of a report, or a way to
# replay.
COLUMNS = {"http", "judge", "prompt", "summary"}


@pytest.mark.parametrize("name", sorted(STAGES.keys() - COLUMNS))
def test_the_name_of_a_stage_stands_in_its_own_file_alone(name: str) -> None:
    named = {one.path for one in constants() if one.text == name}
    # Editors of a config are also told that `verifier` may be false.
    assert named - {"suite/json_schema.py"} == {f"stages/{name}.py"}


@pytest.mark.parametrize("name", [*STAGES, *JUDGES, *TESTS])
def test_no_name_of_a_stage_judge_or_test_is_compared_with(name: str) -> None:
    meant = "stage|kind" if name in COLUMNS else ""
    assert not [
        one.path
        for one in constants()
        if one.text == name and any(re.search(meant, comparison) for comparison in one.compared)
    ]


REGISTERED = {
    "judges": {kind.build.__module__ for kind in JUDGES.values()},
    "sources": {source.__module__ for source in SOURCES},
}


@pytest.mark.parametrize("table", REGISTERED)
def test_what_is_registered_is_imported_by_its_table_alone(table: str) -> None:
    modules = {module.removeprefix("pytest_jrh.") for module in REGISTERED[table]}
    # `__init__` names what the package offers.
    importers = {
        one.module
        for one in imports()
        if own(one).rpartition(".")[0] in modules and room(one.module) not in (table, "__init__")
    }
    assert not importers


def test_modules_import_each_other_in_no_circle() -> None:
    modules = {one.module for one in imports()}
    needs: dict[str, set[str]] = {module: set() for module in modules}
    for one in imports():
        # A name of a package is a module of it, or something that its `__init__` has.
        target = own(one) if own(one) in modules else own(one).rpartition(".")[0]
        if target in modules and target != one.module:
            needs[one.module].add(target)
    # `__init__` names what the package offers, and loads it when it is asked for.
    done = {"__init__"}
    while ready := {module for module in modules - done if needs[module] <= done}:
        done |= ready
    assert done >= modules, {module: needs[module] - done for module in modules - done}


def test_functions_fit_a_screen() -> None:
    long_functions = [
        f"{path}::{node.name}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= 60
    ]
    assert long_functions == []


def test_the_architecture_fits_on_a_page() -> None:
    text = (PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
