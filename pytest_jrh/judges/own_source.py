"""What a judge's own code is, so that a changed judge is told from the one that was recorded: the
files that it reaches, the values that it holds, and the installed packages that it imports.

Files are named as the code names them, never by where they lie on this machine.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import hashlib
import importlib.util
import json
import os
import re
import sys
import sysconfig
import types
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path, PurePath
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from pytest_jrh.core.user_code import source_of

_PACKAGE = Path(__file__).parents[1]
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_NOT_OF_PROJECTS = (
    _PACKAGE,
    *(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")),
)
_NO_PART = frozenset({"pytest", "_pytest", "pytest_jrh"})
"""Packages that run a judge, and are no part of it."""
_LARGEST = 10 * 2**20
"""How many bytes of a file count; of a larger one its size does, too."""
_MOST_BYTES = 200 * 2**20
"""How many bytes of all files count; of those after them only the sizes do."""
_MOST_FILES = 1_000
"""How many files a pattern or a folder may stand for, and how many folders may be in it."""
_MOST_VALUES = 10_000
_DEEPEST = 100
_LONGEST_NAME = 300
_WRITTEN = frozenset({".db", ".lock", ".log", ".pid", ".pyc", ".sqlite", ".sqlite3", ".tmp"})
_SKIPPED = frozenset({*_INSTALLED, "__pycache__", "node_modules", "outputs"})
"""Folders of installed packages, of caches, and of sessions' results."""
_CASSETTE = re.compile(r"\.(?:generation|judge-[^/]*)\.yaml$")
_WRITE_MODE = re.compile(r"[wax][bt]?")
_WRITE_CALLS = frozenset({"write_text", "write_bytes", "touch", "mkdir"})
_IMPORT_CALLS = frozenset({"import_module", "__import__"})
_RESOURCE_CALLS = frozenset({"files", "get_data", "open_text", "read_text", "PackageLoader"})
"""Calls whose first argument may be a package."""
_DEFAULT_CALLS = frozenset({"get", "getenv"})
"""As in `os.environ.get("PROMPTS", "prompts")`."""
_PATH_CALLS = frozenset(
    {"open", "rglob", "Path", "PurePath", "PosixPath", "PurePosixPath", "join", "joinpath"}
    | {"FileSystemLoader", "listdir", "scandir", "walk"}
    | _IMPORT_CALLS
    | _RESOURCE_CALLS
)
_UNKNOWN = "{}"
"""Stands in a path for what is put in when the code runs, as in a text for `format`."""
_PLACEHOLDERS = re.compile(r"(?:\{[^{}/]*\}|%(?:\(\w*\))?\d*[sdrif])+")
_WILDCARD = re.compile(r"[*?\[]")
_INCLUDED = re.compile(
    rb"\{%[-+]?\s{0,9}(?:include|extends|import|from)\s{1,9}[\"']([^\"'\n]{1,300})"
)
"""A template that one of jinja2 takes in."""
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{2,}$")
_CREDENTIAL = re.compile(
    r"(?:api_?key|access_?key|token|secret|password|passphrase|credentials?|authorization|bearer)$",
    re.IGNORECASE,
)
_Forms: TypeAlias = tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...]
_CONSTANTS = (
    float,
    complex,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    decimal.Decimal,
    fractions.Fraction,
    uuid.UUID,
)


@dataclasses.dataclass(frozen=True, slots=True)
class OwnSource:
    """A judge's own code: the digest of all that it is, and the text of its function alone, which
    is what earlier versions of this package looked at.

    `files` are those of the project that it reaches. `namesakes` are the modules that it imports
    from its folder while Python has one of that name from elsewhere: the file in its folder, and
    the one that runs.
    """

    digest: str
    function: str
    namesakes: tuple[tuple[str, str], ...] = ()
    files: tuple[Path, ...] = ()


def own_source(
    code: Callable[..., object],
    folders: Iterable[Path] = (),
    arguments: object = None,
    *,
    module_file: str | None = None,
    imports_from: Path | None = None,
) -> OwnSource:
    """Read a judge's own code; the digest is equal where two sessions run the same.

    `folders` are those in which it may name files, beside the folders of its modules; `arguments`
    are values that it is called with. `module_file` is the module that it was taken from, which may
    make it of what other modules have. `imports_from` is the folder that its modules import their
    neighbours from.
    """
    files = _Files(tuple(dict.fromkeys(folders)), imports_from)
    values = _Values(files)
    if module_file is not None:
        files.add_code(module_file)
    contents = [values.digestible(code), values.digestible(arguments)]
    files.follow()
    parts = {"values": contents, "files": sorted(files.read), "packages": sorted(files.packages)}
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    namesakes = tuple(sorted(files.namesakes))
    return OwnSource(digest, source_of(code), namesakes, tuple(sorted(files.digests)))


class _Files:
    """The files that code reaches.

    `read` has each with the name that the code has for it and its digest, `packages` the installed
    ones that its modules import, with their versions; `digests` are those of the contents.
    `namesakes` are as in `OwnSource`.
    """

    def __init__(self, folders: Sequence[Path], imports_from: Path | None = None) -> None:
        self.read: set[tuple[str, str]] = set()
        self.packages: set[str] = set()
        self.namesakes: set[tuple[str, str]] = set()
        self.folders = folders
        self._imports_from = imports_from
        self._pending: list[Path] = []
        self._followed: set[Path] = set()
        self.digests: dict[Path, str] = {}
        self._searched: set[tuple[object, ...]] = set()
        self._listings: dict[tuple[Path, bool], list[tuple[Path, str]]] = {}
        self._bytes_left = _MOST_BYTES

    def add(self, path: Path, name: str, *, follow: bool = True) -> None:
        """Count a file, and to `follow` a module, what it reaches, too."""
        if path not in self.digests:
            content = _content(path, min(_LARGEST, self._bytes_left))
            if content is None:
                return
            self._bytes_left = max(0, self._bytes_left - len(content))
            self.digests[path] = hashlib.sha256(content).hexdigest()
            if path.suffix != ".py":
                for taken_in in _INCLUDED.findall(content):
                    self.add_named(taken_in.decode(errors="replace"), self._bases(path, ()), path)
        if follow and path.suffix == ".py" and path not in self._followed:
            self._followed.add(path)
            self._pending.append(path)
        self.read.add((name, self.digests[path]))

    def add_code(self, file: str) -> bool:
        """Count the module that something was defined in; False where that is no file.

        Of an installed one its version counts.
        """
        path = Path(file)
        if path.suffix != ".py" or not path.is_file():
            return False
        if self.is_installed(path):
            self._add_package(path)
        else:
            self.add(path, path.name)
        return True

    def is_installed(self, path: Path) -> bool:
        """Whether a module is no part of the project: of Python, of an installed package, or ours.

        The project's own package may be installed as well (tox does), under one version for long.
        """
        if any(map(path.is_relative_to, _NOT_OF_PROJECTS)):
            return True
        for folder in path.parents:
            if folder.name in _INSTALLED:
                module = path.relative_to(folder).parts[0]
                return not any(map(self._is_inside, _installed_from(folder, module)))
        return False

    def follow(self) -> None:
        """Count what the modules reach, and what those reach."""
        while self._pending:
            module = self._pending.pop()
            folder = module.parent.parent if module.name == "__init__.py" else module.parent
            if (folder / "__init__.py").is_file():
                self.add(folder / "__init__.py", f"{folder.name}/__init__.py")
            # What cannot be read counts by its content alone.
            with contextlib.suppress(OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                imports, texts = _names_in(module.read_bytes())
                packages: list[Path] = []
                for name in imports:
                    packages += self._add_import(name, module)
                bases = self._bases(module, packages)
                for text, is_path in texts:
                    self.add_named(text, bases, module, is_path=is_path)
                    if module.name == "__init__.py" and text.isidentifier():
                        # Such as of `__all__`, which `import *` imports.
                        self._add_path(module.parent, f"{text}.py", is_folder=False)

    def add_named(
        self,
        text: str,
        bases: Sequence[Path],
        module: Path | None = None,
        *,
        is_path: bool = False,
    ) -> None:
        """Count the files that a text, of a module or of a value, names from one of the `bases`.

        A folder stands for the files in it, where the text is a path by what the code does with it.
        """
        if len(text) > _LONGEST_NAME or "\n" in text or "\0" in text or "://" in text:
            return
        if module is not None and _SUFFIX.fullmatch(text):
            # As in Path(__file__).with_suffix(".md").
            self.add(module.with_suffix(text), text)
            return
        # As in f"{HERE}/prompts/{name}.md" and in HERE + "/prompts".
        pattern = re.sub(r"^(?:\*?/)+", "", _PLACEHOLDERS.sub("*", text))
        pattern = "/".join(part for part in pattern.split("/") if part != ".")
        if module is not None:
            self._add_named_module(pattern, bases)
        if not pattern.strip("./*") or not (is_path or "." in pattern or "/" in pattern):
            return
        before = _WILDCARD.split(pattern, maxsplit=1)[0]
        if before == pattern:
            for base in bases:
                self._add_path(base, pattern, is_folder=is_path or pattern[-1] == "/")
            return
        folder = before.rpartition("/")[0]
        # A `*` stands for any part of a path, also for none.
        anywhere = pattern.replace("**/", "*")
        if folder:
            for base in bases:
                self._add_folder(base, folder, anywhere)
        elif module is not None and _SUFFIX.search(pattern):
            self._add_folder(module.parent, "", anywhere, deep="**" in pattern)

    def _add_named_module(self, text: str, bases: Sequence[Path]) -> None:
        """Count the module at `pkg.mod`, `pkg.mod:function` or `pkg.mod.function`."""
        module, colon, function = text.partition(":")
        parts = module.split(".")
        if not all(part.isidentifier() for part in (*parts, function or "_")):
            return
        for number in range(len(parts) if colon else 2, len(parts) + 1):
            for base in bases:
                self._add_path(base, f"{'/'.join(parts[:number])}.py", is_folder=False)

    def _bases(self, module: Path, packages: Sequence[Path]) -> list[Path]:
        """The folders that a relative path may be meant from, of which code picks one, also in
        `packages` that the module imports.
        """
        around = [
            folder
            for folder in module.parents
            if self._is_inside(folder) or not _INSTALLED.isdisjoint(folder.parent.parts)
        ]
        return list(dict.fromkeys([module.parent, *around, *self.folders, *packages]))

    def _is_inside(self, path: Path) -> bool:
        return any(path.is_relative_to(folder) for folder in self.folders)

    def _add_path(self, base: Path, name: str, *, is_folder: bool) -> None:
        if not self._is_new(base, name, is_folder):
            return
        hidden = any(part[0] == "." and part.strip(".") for part in PurePath(name).parts)
        if hidden or PurePath(name).suffix in _WRITTEN:
            return
        self.add(base / name, name)
        if is_folder:
            self._add_folder(base, name)

    def _add_folder(
        self, base: Path, name: str, pattern: str | None = None, *, deep: bool = True
    ) -> None:
        """Count the files in a folder of the project, or those of them that a pattern stands for;
        the modules among these are followed.
        """
        folder = Path(os.path.normpath(base / name))
        inside = folder.is_relative_to(base) or self._is_inside(folder)
        if not inside or folder.name in _SKIPPED or not self._is_new(base, name, pattern, deep):
            return
        prefix = "" if name in ("", ".") else f"{PurePath(name).as_posix()}/"
        for path, below in self._listing(folder, deep=deep):
            file_name = prefix + below
            if pattern is None or fnmatchcase(file_name, pattern):
                self.add(path, file_name, follow=pattern is not None)

    def _listing(self, folder: Path, *, deep: bool) -> list[tuple[Path, str]]:
        """The files below a folder, with their paths from it."""
        if (folder, deep) not in self._listings:
            self._listings[folder, deep] = [
                (path, path.relative_to(folder).as_posix())
                for path in _files_below(folder, deep=deep)
            ]
        return self._listings[folder, deep]

    def _is_new(self, *search: object) -> bool:
        """Whether this was not looked for yet: modules of a folder often name the same."""
        if search in self._searched:
            return False
        self._searched.add(search)
        return True

    def name_of(self, path: Path) -> str | None:
        """What an absolute path is called wherever the project lies; None where it names nothing.

        The project's file that is there counts, or the files in the folder that is. Elsewhere,
        such as in a cache that the judge makes itself, it is of no matter what is there.
        """
        if path in self.folders:
            return "."
        if self._is_inside(path):
            self._add_path(path.parent, path.name, is_folder=True)
            return path.name
        return path.name if _is_folder(Path(*path.parts[:2])) else None

    def _add_import(self, name: str, importer: Path) -> list[Path]:
        """Count the modules that an import runs; returns the folders of those that are packages."""
        bare = name.lstrip(".")
        dots = len(name) - len(bare)
        folders = [str(folder) for folder in importer.parents[dots - 1 : dots]]
        packages: list[Path] = []
        parts = bare.split(".")
        if parts[0] in _NO_PART and not dots:
            return packages
        for number, part in enumerate(parts, start=1):
            if number == 1 and not dots:
                spec = _top_spec(part, [importer.parent, *self.folders])
                if importer.parent == self._imports_from and spec is not None:
                    self._note_namesake(part, spec, importer.parent)
            else:
                spec = PathFinder.find_spec(part, folders)
            if spec is None:
                break
            folders = list(spec.submodule_search_locations or ())
            if spec.has_location and spec.origin:
                path = Path(spec.origin)
                if self.is_installed(path):
                    self._add_package(path)
                    break
                self.add(path, "." * dots + ".".join(parts[:number]))
                packages += map(Path, folders)
        return packages

    def _note_namesake(self, name: str, runs: ModuleSpec, folder: Path) -> None:
        if name in sys.stdlib_module_names or not runs.has_location:
            return
        beside = PathFinder.find_spec(name, [str(folder)])
        if beside is not None and beside.has_location and beside.origin != runs.origin:
            self.namesakes.add((str(beside.origin), str(runs.origin)))

    def _add_package(self, path: Path) -> None:
        """Count the version of the installed package that a module is of; Python's own has none."""
        for folder in path.parents:
            if folder.name in _INSTALLED:
                module = path.relative_to(folder).parts[0]
                self.packages.update(_versions(folder, module.removesuffix(".py")))
                return


class _Values:
    """Makes what a callable holds digestible: the same JSON values for the same content."""

    def __init__(self, files: _Files) -> None:
        self._files = files
        # The objects themselves are kept, so that no other one gets their ids.
        self._digests: dict[int, tuple[object, str]] = {}
        self._depth = 0
        self._plain: _Forms = (
            (enum.Enum, lambda value: [self._class(type(value)), self.digestible(value.value)]),
            (str, lambda value: self._text(str.__str__(value))),
            (int, lambda value: ["int", int.__format__(value, "x")]),
            (_CONSTANTS, lambda value: [type(value).__name__, repr(value)]),
            (PurePath, lambda value: self._path(Path(value), value.as_posix())),
            ((bytes, bytearray), lambda value: ["bytes", hashlib.sha256(value).hexdigest()]),
            (re.Pattern, lambda value: ["pattern", str(value.pattern), value.flags]),
        )
        self._compound: _Forms = (
            (list, lambda value: ["list", *map(self.digestible, list.__iter__(value))]),
            (tuple, lambda value: ["tuple", *map(self.digestible, tuple.__iter__(value))]),
            ((set, frozenset), self._set),
            (dict, lambda value: self._mapping(dict.items(value))),
            (types.MappingProxyType, lambda value: self._mapping(value.items())),
            (functools.partial, self._partial),
            (types.MethodType, self._method),
            ((staticmethod, classmethod), lambda value: self.digestible(value.__func__)),
            (types.FunctionType, self._function),
            (types.BuiltinFunctionType, lambda value: ["builtin", value.__qualname__]),
            (types.ModuleType, self._module),
            (type, lambda value: ["class", self._class(value)]),
            (object, self._object),
        )

    def digestible(self, value: object) -> Any:
        """The value as JSON; what holds no content of its own is named by its type alone."""
        if value is None or isinstance(value, bool):
            return value
        # Of its type, not by `isinstance`: a mock gives itself out for what it stands for.
        kind = type(value)
        for kinds, form in self._plain:
            if issubclass(kind, kinds):
                return form(value)
        if id(value) in self._digests:
            return self._digests[id(value)][1] or "an object that holds itself"
        if len(self._digests) >= _MOST_VALUES or self._depth >= _DEEPEST:
            return ["more", kind.__name__]
        self._digests[id(value)] = (value, "")
        self._depth += 1
        form = next(form for kinds, form in self._compound if issubclass(kind, kinds))
        content = json.dumps(form(value))
        self._depth -= 1
        digest = hashlib.sha256(content.encode()).hexdigest()
        self._digests[id(value)] = (value, digest)
        return digest

    def _set(self, value: Any) -> Any:
        # Its order is another in each process.
        return ["set", *sorted(map(json.dumps, map(self.digestible, list(value))))]

    def _partial(self, value: Any) -> Any:
        parts = [value.func, value.args, value.keywords, vars(value)]
        return ["partial", *map(self.digestible, parts)]

    def _method(self, value: Any) -> Any:
        return ["method", self.digestible(value.__func__), self.digestible(value.__self__)]

    def _module(self, module: types.ModuleType) -> Any:
        file = _attribute(module, "__file__")
        return ["module", isinstance(file, str) and self._files.add_code(file)]

    def _mapping(self, items: Iterable[tuple[object, object]]) -> Any:
        pairs: list[Any] = []
        for key, value in list(items):
            if not _is_credential(key, value):
                pairs.append([self.digestible(key), self.digestible(value)])
        return ["dict", sorted(pairs, key=json.dumps)]

    def _function(self, function: types.FunctionType) -> Any:
        code = function.__code__
        closure: dict[str, object] = {}
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            # A cell is empty until its variable is set.
            with contextlib.suppress(ValueError):
                closure[name] = cell.cell_contents
        in_a_file = self._files.add_code(_file_of_function(function))
        return [
            function.__qualname__,
            None if in_a_file else [source_of(function), *_constants(code)],
            self.digestible(function.__defaults__),
            self.digestible(function.__kwdefaults__),
            self.digestible(closure),
            self.digestible(function.__dict__),
        ]

    def _class(self, kind: type) -> str:
        """The name of a class, whose module counts."""
        file = _file_of(kind)
        if file is not None:
            self._files.add_code(file)
        return kind.__qualname__

    def _object(self, value: object) -> Any:
        kind = type(value)
        name = self._class(kind)
        attributes: dict[str, object] = {}
        with contextlib.suppress(AttributeError):
            attributes.update(object.__getattribute__(value, "__dict__"))
        if not _has_content(kind, self._files):
            # Such as a client, a lock or a logger: its address is all that is known of it.
            wrapped = attributes.get("__wrapped__")
            return [name, self.digestible({} if wrapped is None else {"__wrapped__": wrapped})]
        for base in kind.__mro__:
            for slot, member in vars(base).items():
                if type(member) is types.MemberDescriptorType:
                    with contextlib.suppress(AttributeError):
                        attributes[slot] = member.__get__(value, kind)
        return [name, self.digestible(attributes)]

    def _text(self, text: str) -> Any:
        if text.startswith("/") and len(text) <= _LONGEST_NAME and "\0" not in text:
            return self._path(Path(text), text)
        self._files.add_named(text, self._files.folders)
        return ["str", hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()]

    def _path(self, path: Path, text: str) -> Any:
        """A path, in words that are the same wherever the project lies, with the files it names."""
        if not path.is_absolute():
            self._files.add_named(text, self._files.folders, is_path=True)
            return ["path", text]
        return ["path", self._files.name_of(path) or text]


@functools.lru_cache(maxsize=4_000)
def _names_in(source: bytes) -> tuple[list[str], list[tuple[str, bool]]]:
    """What a module imports, and its texts that may name files.

    Judges of one suite often share their modules.
    """
    with warnings.catch_warnings():
        # Such as of an escape, which would be an error where pytest makes errors of warnings.
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    return sorted(set(_imported_modules(nodes))), sorted(set(_path_texts(tree, nodes)))


def _imported_modules(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The modules that a module imports, anywhere in it: `pkg.mod`, or `..mod` from its folder."""
    for node in nodes:
        match node:
            case ast.Import(names=aliases):
                yield from (alias.name for alias in aliases)
            case ast.ImportFrom(module=module, names=aliases, level=level):
                start = "." * level + (f"{module}." if module else "")
                yield from (f"{start}{alias.name}" for alias in aliases)
            case ast.Call(args=[ast.Constant(value=str(name)), *_]):
                if _called(node) in _IMPORT_CALLS:
                    yield name


def _path_texts(tree: ast.Module, nodes: Iterable[ast.AST]) -> Iterator[tuple[str, bool]]:
    """The texts of a module that may name a file, and whether the code makes a path of them.

    A constant of the module may be a part of one.
    """
    assigned = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    constants = {id(node.value) for node in assigned}
    for value in (node.value for node in assigned):
        if isinstance(value, ast.Call) and _called(value) in _DEFAULT_CALLS:
            constants.update(map(id, value.args))
    used: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Call):
            used.update(map(id, _written(node)))
        if id(node) in used:
            continue
        text = _path_text(node, used)
        if text is not None:
            yield text, isinstance(node, ast.Call | ast.BinOp) or id(node) in constants


def _written(node: ast.Call) -> Iterator[ast.AST]:
    """The parts of a call that name a file which it writes: what is written is no part of code."""
    if _called(node) in _WRITE_CALLS:
        yield from ast.walk(node.func)
    elif _called(node) == "open":
        # Of a path's own `open` the mode comes first.
        modes = node.args[1:] if isinstance(node.func, ast.Name) else node.args
        for mode in [*modes, *(keyword.value for keyword in node.keywords)]:
            if isinstance(mode, ast.Constant) and _WRITE_MODE.fullmatch(str(mode.value)):
                yield from ast.walk(node)


def _path_text(node: ast.AST, used: set[int]) -> str | None:
    """The text or the path that an expression makes; None where nothing of it is a text.

    The ids of its parts are added to `used`.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        used.add(id(node))
        return node.value
    if isinstance(node, ast.Attribute) and node.attr == "sep":
        return "/"
    parts, between = _path_parts(node)
    texts = [_path_text(part, used) for part in parts]
    if not any(texts):
        return None
    used.add(id(node))
    names = [_UNKNOWN if text is None else text for text in texts]
    called = _called(node)
    if called in _RESOURCE_CALLS | _IMPORT_CALLS:
        names[0] = names[0].replace(".", "/")
    if called in _IMPORT_CALLS:
        return f"{names[0]}.py"
    return f"**/{names[0]}" if called == "rglob" else between.join(names)


def _path_parts(node: ast.AST) -> tuple[Sequence[ast.expr], str]:
    """The parts of the text or path that an operation or a call makes, and what is between them;
    no parts where it makes none.
    """
    called = _called(node)
    match node:
        case ast.JoinedStr(values=parts):
            return parts, ""
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [left, right], ""
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return [left, right], "/"
        case ast.Call(func=ast.Attribute(value=folder), args=args) if called == "joinpath":
            return [folder, *args], "/"
        case ast.Call(args=args) if called in _PATH_CALLS:
            return args[:1] if called == "open" else args, "/"
    return [], ""


def _called(node: ast.AST) -> str:
    """The last name of what is called; empty where nothing is."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
            return name
    return ""


def _files_below(folder: Path, *, deep: bool) -> list[Path]:
    """The files in a folder, those directly in it first, and where it is `deep`, in its folders.

    Left out is what is hidden, installed or of sessions; links to folders are not followed.
    """
    files: list[Path] = []
    folders = [folder]
    for current in folders:
        entries: list[Path] = []
        with contextlib.suppress(OSError):
            entries = sorted(current.iterdir())
        for path in entries:
            if path.name[0] == "." or path.name in _SKIPPED or _CASSETTE.search(path.name):
                continue
            if not _is_folder(path):
                files.append(path)
            elif deep and not path.is_symlink() and len(folders) < _MOST_FILES:
                folders.append(path)
        if len(files) >= _MOST_FILES:
            break
    return [path for path in files[:_MOST_FILES] if path.suffix not in _WRITTEN]


def _content(path: Path, most: int) -> bytes | None:
    """What counts of a file: of a text whatever its line ends, of one with more than `most` bytes
    its size, too; None where it cannot be read, or is no file.
    """
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            content = file.read(most)
        size = path.stat().st_size
    except (OSError, ValueError):
        return None
    if b"\0" not in content:
        content = content.replace(b"\r\n", b"\n")
    return content if size <= most else content + str(size).encode()


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


@functools.lru_cache(maxsize=1_000)
def _installed_from(installed: Path, module: str) -> tuple[Path, ...]:
    """The folders or archives that a top-level module was installed from, where that was on this
    machine.
    """
    from urllib.request import url2pathname

    origins: list[Path] = []
    for record in sorted(installed.glob("*.dist-info/direct_url.json")):
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            url = urlsplit(json.loads(record.read_text("utf-8"))["url"])
            lines = "\n" + record.with_name("RECORD").read_text("utf-8", errors="replace")
            if url.scheme == "file" and (f"\n{module}/" in lines or f"\n{module}," in lines):
                origins.append(Path(url2pathname(url.path)))
    return tuple(origins)


@functools.lru_cache
def _versions(installed: Path, module: str) -> tuple[str, ...]:
    """Name and version of the packages, installed in a folder, that a top-level module is of; of
    several where they share the folder of a namespace.
    """
    if module in _NO_PART:
        return ()
    with contextlib.suppress(metadata.PackageNotFoundError):
        return (f"{module} {metadata.version(module)}",)
    packages: list[str] = []
    for record in sorted(installed.glob("*.dist-info/RECORD")):
        lines = "\n" + record.read_text("utf-8", errors="replace")
        if f"\n{module}/" in lines or f"\n{module}.py," in lines:
            name, _, version = record.parent.name.removesuffix(".dist-info").rpartition("-")
            packages.append(f"{name} {version}")
    return tuple(packages)


def _top_spec(name: str, folders: Iterable[Path]) -> ModuleSpec | None:
    """Where a top-level module would be imported from, now or by code that runs in `folders`."""
    spec = None
    with contextlib.suppress(ImportError, ValueError, AttributeError, OSError):
        spec = importlib.util.find_spec(name)
    return spec or PathFinder.find_spec(name, [str(folder) for folder in folders])


def _file_of(kind: type) -> str | None:
    """The file that a class is defined in."""
    module_name = vars(kind).get("__module__")
    methods = [member for member in vars(kind).values() if type(member) is types.FunctionType]
    for method in methods:
        # There may be several modules of one name, such as conftests: `sys.modules` has the last.
        file = method.__globals__.get("__file__")
        if method.__globals__.get("__name__") == module_name and isinstance(file, str):
            return file
    file = _attribute(sys.modules.get(str(module_name)), "__file__")
    if isinstance(file, str):
        return file
    return methods[0].__code__.co_filename if methods else None


def _file_of_function(function: types.FunctionType) -> str:
    """The file that a function is defined in."""
    file = function.__globals__.get("__file__")
    compiled = function.__code__.co_filename
    # pytest keeps the bytecode of a conftest with the path that it had when it was compiled.
    if isinstance(file, str) and PurePath(file).name == PurePath(compiled).name:
        return file
    return compiled


def _has_content(kind: type, files: _Files) -> bool:
    """Whether objects are told apart by their attributes: those of the project's own classes, of
    dataclasses and of pydantic's models are.
    """
    if dataclasses.is_dataclass(kind) or kind is types.SimpleNamespace:
        return True
    if any("__pydantic_fields__" in vars(base) for base in kind.__mro__):
        return True
    file = _file_of(kind)
    return file is not None and not files.is_installed(Path(file))


def _is_credential(name: object, value: object) -> bool:
    """Whether a value is a secret by its name: a replay has none, and judges the same."""
    if not isinstance(name, str) or not _CREDENTIAL.search(name):
        return False
    return value is None or isinstance(value, str | bytes)


def _constants(code: types.CodeType) -> list[Any]:
    """What is known of code that no file holds."""
    constants: list[Any] = [*code.co_names]
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            constants.append(_constants(value))
        elif isinstance(value, str | int | float):
            constants.append(repr(value))
    return constants


def _attribute(owner: object, name: str) -> Any:
    """An attribute that an object has itself, without running code of its class."""
    try:
        return object.__getattribute__(owner, "__dict__").get(name)
    except AttributeError:
        return None
