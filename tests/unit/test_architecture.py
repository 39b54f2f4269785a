"""The rooms of the package, and where heavy libraries are imported, read from the imports
(ARCHITECTURE.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import pytest_jrh

PACKAGE = Path(pytest_jrh.__file__).parent
# A module imports from the rooms before its own, and from its own.
ROOMS = (
    *("core", "llm", "cases", "judges", "config", "stats", "sources", "store", "recording"),
    *("people", "reports", "review", "engine", "cli", "plugin", "__main__"),
)
# Each is imported in these modules only, and only where it is needed: inside a function.
HEAVY: dict[str, tuple[str, ...]] = {
    "litellm": ("llm.transport",),
    "openai": ("llm.transport",),
    "httpx": ("llm.transport",),
    "httpcore": ("llm.transport",),
    "inspect_ai": ("judges.python", "sources.eval_logs"),
    "vcr": ("recording.recorder",),
    "jinja2": ("core.templates",),
    "sklearn": ("reports.rand_files",),
    "scipy": (),
    "filelock": ("llm.limits", "people.labels"),
    "starlette": ("review.serving",),
    "uvicorn": ("review.serving",),
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


def imports_below(node: ast.AST, module: str, lazy: bool, typing: bool) -> Iterator[Import]:
    """The imports of one module, from a node of it on."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        package = ""
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}, line {node.lineno}: imports are absolute"
            package = f"{node.module}."
        for alias in node.names:
            yield Import(module, node.lineno, f"{package}{alias.name}", lazy, typing)
    lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    typing = typing or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    for child in ast.iter_child_nodes(node):
        yield from imports_below(child, module, lazy, typing)


@cache
def imports() -> tuple[Import, ...]:
    found: list[Import] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix().removesuffix(".py").replace("/", ".")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += imports_below(tree, name.removesuffix(".__init__"), lazy=False, typing=False)
    return tuple(found)


def room(module: str) -> str:
    return module.partition(".")[0]


def own(imported: Import) -> str:
    """The module inside the package that is imported, or nothing."""
    package, _, rest = imported.name.partition(".")
    return rest if package == "pytest_jrh" else ""


def test_modules_import_from_rooms_before_their_own() -> None:
    place = {name: number for number, name in enumerate(ROOMS)}
    # `__init__` names what the package offers, and loads it when it is asked for.
    for one in imports():
        if one.module != "__init__" and own(one) not in ("", "__version__"):
            assert place[room(own(one))] <= place[room(one.module)], one


def test_only_the_plugin_imports_pytest() -> None:
    of_pytest = {"pytest", "_pytest", "pluggy", "xdist"}
    rooms = {room(one.module) for one in imports() if room(one.name) in of_pytest}
    assert rooms == {"plugin"}


@pytest.mark.parametrize("library", HEAVY)
def test_heavy_library_is_imported_in_its_room_only_and_late(library: str) -> None:
    found = [one for one in imports() if room(one.name) == library]
    assert {one.module for one in found} <= set(HEAVY[library])
    assert not [str(one) for one in found if not (one.lazy or one.typing)]


def test_numpy_stays_among_the_figures() -> None:
    rooms = {room(one.module) for one in imports() if room(one.name) == "numpy" and not one.lazy}
    assert rooms == {"stats"}


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
