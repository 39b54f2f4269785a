"""What a judge's own code is, so that a changed judge is told from the one that was recorded: the
file that it is in, the modules of the project that this one has imported, and the files that the
config names. The judge's `version` stands for the rest.

Files are named as the code names them, never by where they lie on this machine.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_jrh.core.user_code import source_of

_INSTALLED = frozenset({"site-packages", "dist-packages"})
_NOT_OF_PROJECTS = (
    Path(__file__).parents[1],
    *(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")),
)


@dataclass(frozen=True, slots=True)
class OwnSource:
    """A judge's own code: the digest of all that it is, and the `files` that count."""

    digest: str
    files: tuple[Path, ...] = ()


def own_source(
    code: Callable[..., object],
    *,
    module_file: str | None = None,
    named: Mapping[str, Path] | None = None,
) -> OwnSource:
    """Read a judge's own code, which has been imported; the digest is equal where two sessions run
    the same.

    `module_file` is the file that the config takes it from, else it is the one that it was defined
    in; `named` are the files that the config names.
    """
    files = dict(named or {})
    start = module_file or _file_of(code)
    pending: list[tuple[str, Path]] = [] if start is None else [(Path(start).name, Path(start))]
    seen: set[Path] = set()
    while pending:
        name, path = pending.pop()
        if path not in seen and path.is_file():
            seen.add(path)
            files[name] = path
            pending += imported_modules(path)
    digests = {name: _digest(path) for name, path in files.items()}
    parts = [] if start is not None else [source_of(code)]
    content = json.dumps([*parts, *sorted(digests.items())])
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
    return OwnSource(digest, tuple(sorted(files.values())))


def imported_modules(path: Path) -> list[tuple[str, Path]]:
    """The modules of the project that a module has imported when it was loaded, each with its name
    and its file: those that it names outside of functions.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    package = next(
        (
            module.__package__ or ""
            for module in list(sys.modules.values())
            if getattr(module, "__file__", None) == str(path)
        ),
        "",
    )
    modules: list[tuple[str, Path]] = []
    for name in _imported_names(tree, package):
        file = getattr(sys.modules.get(name), "__file__", None)
        if isinstance(file, str) and file.endswith(".py") and _is_of_project(Path(file)):
            modules.append((name, Path(file)))
    return modules


def _imported_names(tree: ast.Module, package: str) -> Iterator[str]:
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        pending += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            folders = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(folders if node.level else []), *filter(None, [node.module])])
            yield from _with_parents(base)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _with_parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def _is_of_project(path: Path) -> bool:
    """Whether a module is no part of Python, of an installed package, or ours."""
    if any(map(path.is_relative_to, _NOT_OF_PROJECTS)):
        return False
    return _INSTALLED.isdisjoint(path.parts)


def _file_of(code: Callable[..., object]) -> str | None:
    while isinstance(code, functools.partial):
        code = code.func
    code = inspect.unwrap(code)
    owner = code if inspect.isroutine(code) or inspect.isclass(code) else type(code)
    try:
        return inspect.getsourcefile(owner)
    except TypeError:
        return None


def _digest(path: Path) -> str:
    """Of what a file holds, whatever its line ends."""
    return hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
