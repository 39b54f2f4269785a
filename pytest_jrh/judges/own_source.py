"""What a judge's own code is (rule Q8): the files that it reaches, the values that it holds, and
the installed packages that it imports.

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
import itertools
import json
import os
import re
import sys
import sysconfig
import types
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from importlib.machinery import ModuleSpec
from pathlib import Path, PurePath
from typing import Any, TypeAlias

from pytest_jrh.core.user_code import source_of

_PACKAGE = Path(__file__).parents[1]
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_NOT_OF_PROJECTS = (
    _PACKAGE,
    *(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")),
)
_NO_PART = frozenset({"pytest", "pytest_jrh"})
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
_RESULTS = "outputs"
"""The folder of sessions' results, which no folder or pattern stands for."""
_CASSETTE = re.compile(r"\.(?:generation|judge-[^/]*)\.yaml$")
_WRITE_MODE = re.compile(r"[wax][bt]?")
_SKIPPED = frozenset({*_INSTALLED, "__pycache__", "node_modules"})
_WRITES = frozenset({"write_text", "write_bytes", "touch", "mkdir"})
_RESOURCES = frozenset({"files", "get_data", "open_text", "read_text", "PackageLoader"})
"""Calls whose first argument may be a package, and what they are called with a file in it."""
_PATH_CALLS = _RESOURCES | {
    "Path",
    "PurePath",
    "PosixPath",
    "PurePosixPath",
    "join",
    "joinpath",
    "FileSystemLoader",
    "listdir",
    "scandir",
    "walk",
}
_TEXTS = (ast.Constant, ast.JoinedStr, ast.BinOp, ast.Call)
_IMPORTS = frozenset({"import_module", "__import__"})
_PLACEHOLDER = re.compile(r"\{[^{}/]*\}|%(?:\(\w*\))?[-+#0 ]*\d*[sdrif]|\[[^\]/]*\]|[*?]+")
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
    """

    digest: str
    function: str


def own_source(
    code: Callable[..., object], folders: Iterable[Path] = (), arguments: object = None
) -> OwnSource:
    """Read a judge's own code; the digest is equal where two sessions run the same.

    `folders` are those in which it may name files, beside the folders of its modules; `arguments`
    are values that it is called with.
    """
    files = _Files(tuple(dict.fromkeys(folders)))
    values = _Values(files)
    held = [values.digestible(code), values.digestible(arguments)]
    files.follow()
    known = {"values": held, "files": sorted(files.read), "packages": sorted(files.packages)}
    digest = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
    return OwnSource(digest, source_of(code))


class _Files:
    """The files that code reaches.

    `read` has each with the name that the code has for it and its digest, `packages` the installed
    ones that its modules import, with their versions.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self.read: set[tuple[str, str]] = set()
        self.packages: set[str] = set()
        self._folders = folders
        self._pending: list[Path] = []
        self._followed: set[Path] = set()
        self._digests: dict[Path, str] = {}
        self._bytes_left = _MOST_BYTES
        self._listings: dict[Path, frozenset[str]] = {}

    def add(self, path: Path, name: str, *, follow: bool = True) -> None:
        """Count a file, and to `follow` a module, what it reaches, too."""
        if path not in self._digests:
            content = _content(path, min(_LARGEST, self._bytes_left))
            if content is None:
                return
            self._bytes_left = max(0, self._bytes_left - len(content))
            self._digests[path] = hashlib.sha256(content).hexdigest()
        if follow and path.suffix == ".py" and path not in self._followed:
            self._followed.add(path)
            self._pending.append(path)
        self.read.add((name, self._digests[path]))

    def add_code(self, file: str) -> bool:
        """Count the module that something was defined in; False where that is no file.

        Of an installed one its own file and its version count, and not what it imports.
        """
        path = Path(file)
        if path.suffix != ".py" or not path.is_file():
            return False
        if _is_installed(path):
            self._add_package(path)
        else:
            self.add(path, path.name)
        return True

    def follow(self) -> None:
        """Count what the modules reach, and what those reach."""
        while self._pending:
            path = self._pending.pop()
            folder = path.parent.parent if path.name == "__init__.py" else path.parent
            if (folder / "__init__.py").is_file():
                self.add(folder / "__init__.py", f"{folder.name}/__init__.py")
            try:
                nodes = list(ast.walk(ast.parse(path.read_bytes())))
                modules, names = _imported_names(nodes), set(_named_files(nodes))
            except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                # Its content counts, whatever it is.
                continue
            reached = [self._add_module(name, path) for name in sorted(modules)]
            packages = [each.parent for each in reached if each and each.name == "__init__.py"]
            for name, is_path in sorted(names):
                self.add_named(name, path, packages, is_path=is_path)

    def add_named(
        self,
        name: str,
        module: Path | None = None,
        packages: Sequence[Path] = (),
        *,
        is_path: bool = False,
    ) -> None:
        """Count the files that a text of a module names, also in `packages` that it imports.

        A folder stands for the files in it, where the text is a path by what the code does with it.
        """
        if not name or len(name) > _LONGEST_NAME or "\n" in name or "\0" in name or "://" in name:
            return
        if module is not None and _SUFFIX.fullmatch(name):
            self._add_all([(module.with_suffix(name), True)], module.parent)
            return
        if name[0] == "/" and _is_file(Path(name)):
            self.name_of(Path(name))
            return
        pattern = _PLACEHOLDER.sub(lambda part: "**" if part[0] == "**" else "*", name)
        # As in f"{HERE}/prompts/{name}.md" and in HERE + "/prompts".
        pattern = re.sub(r"^(?:\*?/)+", "", pattern)
        if not pattern.strip("./*") or not (is_path or "." in pattern or "/" in pattern):
            return
        first = pattern.partition("/")[0]
        rest = pattern.removeprefix("**/")
        if "*" in first and ("/" in rest or not _SUFFIX.search(rest)):
            return
        for base in [*self._bases(module, own_only="*" in first), *packages]:
            if first in (".", "..") or "*" in first or first.casefold() in self._listing(base):
                deep = self._is_inside(base / pattern.partition("*")[0], module)
                self._add_all(_matching(base, pattern, is_path=is_path, deep=deep), base)

    def _is_inside(self, path: Path, module: Path | None) -> bool:
        """Whether a place is inside of the project, or of a module's folder."""
        place = Path(os.path.normpath(path))
        folders = [*self._folders, *([] if module is None else [module.parent])]
        return any(place.is_relative_to(folder) for folder in folders)

    def _listing(self, folder: Path) -> frozenset[str]:
        """What is in a folder, so that not each text of a module is looked for on the disk."""
        if folder not in self._listings:
            names: list[str] = []
            with contextlib.suppress(OSError):
                names = [path.name for path in folder.iterdir()]
            self._listings[folder] = frozenset(map(str.casefold, names))
        return self._listings[folder]

    def _bases(self, module: Path | None, *, own_only: bool) -> list[Path]:
        """The folders that a relative path may be meant from, of which code picks one."""
        if module is None:
            return list(self._folders)
        if own_only:
            return [module.parent]
        around = [
            folder
            for folder in module.parents
            if any(folder.is_relative_to(base) for base in self._folders)
        ]
        return list(dict.fromkeys([module.parent, *around, *self._folders]))

    def name_of(self, path: Path) -> str | None:
        """What an absolute path is called wherever the project lies; None where it names nothing.

        The project's file that is there counts, or the files in the folder that is.
        """
        if path in self._folders:
            return "."
        base = next((base for base in self._folders if path.is_relative_to(base)), None)
        if not (_is_file(path) or _is_folder(path)):
            return None if base is None else path.relative_to(base).as_posix()
        if base is not None:
            matches = _matching(path.parent, path.name, is_path=True, deep=True)
            self._add_all(matches, path.parent)
        return path.name

    def _add_all(self, paths: Iterable[tuple[Path, bool]], base: Path) -> None:
        for path, follow in paths:
            name = path.relative_to(base) if path.is_relative_to(base) else Path(path.name)
            hidden = any(part.startswith(".") for part in name.parts if part not in (".", ".."))
            if not hidden and path.suffix not in _WRITTEN:
                self.add(path, name.as_posix(), follow=follow)

    def _add_module(self, name: str, importer: Path) -> Path | None:
        """Count an imported module; its file, where that is the project's."""
        if name.partition(".")[0] in _NO_PART:
            return None
        path = _relative_module(name, importer) if name[0] == "." else self._module(name, importer)
        if path is not None and _is_installed(path):
            self._add_package(path)
            return None
        if path is not None:
            self.add(path, name)
        return path

    def _module(self, name: str, importer: Path) -> Path | None:
        """The file of a module that is imported by this name, now or later."""
        file = _attribute(sys.modules.get(name), "__file__")
        if isinstance(file, str):
            return Path(file)
        parent, _, last = name.rpartition(".")
        if parent:
            return _module_in(self._package_folders(parent, importer), last)
        spec = _spec(name)
        if spec is None:
            return _module_in([importer.parent, *self._folders], last)
        return Path(spec.origin) if spec.has_location and spec.origin else None

    def _package_folders(self, name: str, importer: Path) -> list[Path]:
        places = _attribute(sys.modules.get(name), "__path__")
        if isinstance(places, Iterable):
            return [Path(place) for place in places if isinstance(place, str)]
        parent, _, last = name.rpartition(".")
        if parent:
            return [folder / last for folder in self._package_folders(parent, importer)]
        spec = _spec(name)
        if spec is None:
            return [folder / last for folder in (importer.parent, *self._folders)]
        return [Path(place) for place in spec.submodule_search_locations or ()]

    def _add_package(self, path: Path) -> None:
        version = _package_version(path)
        if version:
            self.packages.add(version)


class _Values:
    """Makes what a callable holds digestible: the same JSON values for the same content."""

    def __init__(self, files: _Files) -> None:
        self._files = files
        # The objects themselves are kept, so that no other one gets their ids.
        self._known: dict[int, tuple[object, str]] = {}
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
        if id(value) in self._known:
            return self._known[id(value)][1] or "an object that holds itself"
        if len(self._known) >= _MOST_VALUES or self._depth >= _DEEPEST:
            return ["more", kind.__name__]
        self._known[id(value)] = (value, "")
        self._depth += 1
        form = next(form for kinds, form in self._compound if issubclass(kind, kinds))
        content = json.dumps(form(value))
        self._depth -= 1
        digest = hashlib.sha256(content.encode()).hexdigest()
        self._known[id(value)] = (value, digest)
        return digest

    def _set(self, value: Any) -> Any:
        # Its order is another in each process.
        return ["set", *sorted(map(json.dumps, map(self.digestible, list(value))))]

    def _partial(self, value: Any) -> Any:
        parts = [value.func, value.args, value.keywords, vars(value)]
        return ["partial", *map(self.digestible, parts)]

    def _method(self, value: Any) -> Any:
        return ["method", self.digestible(value.__func__), self.digestible(value.__self__)]

    def _module(self, value: Any) -> Any:
        file = _attribute(value, "__file__")
        return ["module", isinstance(file, str) and self._files.add_code(file)]

    def _mapping(self, items: Iterable[tuple[object, object]]) -> Any:
        pairs = [
            [self.digestible(key), self.digestible(held)]
            for key, held in list(items)
            if not _is_credential(key, held)
        ]
        return ["dict", sorted(pairs, key=json.dumps)]

    def _function(self, function: types.FunctionType) -> Any:
        code = function.__code__
        held: dict[str, object] = {}
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            # A cell is empty until its variable is set.
            with contextlib.suppress(ValueError):
                held[name] = cell.cell_contents
        seen = self._files.add_code(code.co_filename)
        return [
            function.__qualname__,
            None if seen else [source_of(function), *_constants(code)],
            self.digestible(function.__defaults__),
            self.digestible(function.__kwdefaults__),
            self.digestible(held),
            self.digestible(function.__dict__),
        ]

    def _class(self, found: type) -> str:
        """The name of a class, whose module counts."""
        if (file := _file_of(found)) is not None:
            self._files.add_code(file)
        return found.__qualname__

    def _object(self, value: object) -> Any:
        kind = type(value)
        name = self._class(kind)
        held: dict[str, object] = {}
        with contextlib.suppress(AttributeError):
            held.update(object.__getattribute__(value, "__dict__"))
        if not _has_content(kind):
            # Such as a client, a lock or a logger: its address is all that is known of it.
            held = {key: each for key, each in held.items() if key == "__wrapped__"}
            return [name, self.digestible(held)]
        for base in kind.__mro__:
            for slot, member in vars(base).items():
                if type(member) is types.MemberDescriptorType:
                    with contextlib.suppress(AttributeError):
                        held[slot] = member.__get__(value, kind)
        return [name, self.digestible(held)]

    def _text(self, text: str) -> Any:
        if text.startswith("/") and len(text) <= _LONGEST_NAME and "\0" not in text:
            return self._path(Path(text), text)
        self._files.add_named(text)
        return ["str", hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()]

    def _path(self, path: Path, text: str) -> Any:
        """A path, in words that are the same wherever the project lies, with the files it names."""
        if not path.is_absolute():
            self._files.add_named(text, is_path=True)
            return ["path", text]
        return ["path", self._files.name_of(path) or text]


def _imported_names(nodes: Iterable[ast.AST]) -> set[str]:
    """The modules that a module imports, anywhere in it: `pkg.mod`, or `..mod` from its folder."""
    nodes = list(nodes)
    names = _texts_by_name(nodes)
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.update(_with_packages(alias.name))
        elif isinstance(node, ast.ImportFrom):
            dots, name = "." * node.level, node.module or ""
            found.update(dots + each for each in _with_packages(name))
            for alias in node.names:
                found.add(f"{dots}{name}{'.' if name else ''}{alias.name}")
        elif isinstance(node, ast.Call) and _called(node) in _IMPORTS and node.args:
            name = _text_of(node.args[0], set(), names) or ""
            if re.fullmatch(r"\.*\w+(\.\w+)*", name):
                dots = name[: len(name) - len(name.lstrip("."))]
                found.update(dots + each for each in _with_packages(name.lstrip(".")))
    return found


def _with_packages(name: str) -> Iterator[str]:
    """A module's name and those of the packages that it is in: importing it runs these, too."""
    parts = name.split(".") if name else []
    for end in range(1, len(parts) + 1):
        yield ".".join(parts[:end])


def _named_files(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, bool]]:
    """The texts of a module that may name a file, with `*` for what is put in when it runs, and
    whether the code makes a path of them.
    """
    nodes = list(nodes)
    names = _texts_by_name(nodes)
    inner = {id(part) for node in nodes if isinstance(node, ast.Call) for part in _written(node)}
    for node in nodes:
        if id(node) in inner:
            continue
        if isinstance(node, _TEXTS) and (text := _text_of(node, inner, names)) is not None:
            yield text, isinstance(node, ast.Call)
        texts = [_text_of(part, inner, names) for part in _path_parts(node, inner)]
        known = list(itertools.dropwhile(lambda text: text is None, texts))
        if known:
            yield "/".join(text or "*" for text in known), True
            if isinstance(node, ast.Call) and _called(node) in _RESOURCES:
                known[0] = (known[0] or "").replace(".", "/")
                yield "/".join(text or "*" for text in known), True


def _path_parts(node: ast.AST, inner: set[int]) -> Sequence[ast.expr]:
    """The parts of the path that an operation or a call makes; none where it makes no path."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return _operands(node, ast.Div, inner)
    if not isinstance(node, ast.Call):
        return ()
    called = _called(node)
    if called == "open":
        return node.args[:1]
    if called == "rglob":
        return [ast.Constant("**"), *node.args[:1]]
    if called == "joinpath" and isinstance(node.func, ast.Attribute):
        return [node.func.value, *node.args]
    return node.args if called in _PATH_CALLS else ()


def _texts_by_name(nodes: Sequence[ast.AST]) -> dict[str, str]:
    """The names that a module sets to one text, and that stand for nothing else anywhere in it."""
    bound = [node.arg for node in nodes if isinstance(node, ast.arg)]
    bound += [
        node.id for node in nodes if isinstance(node, ast.Name) and type(node.ctx) is ast.Store
    ]
    times = Counter(bound)
    texts: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, node.value
        else:
            continue
        if isinstance(target, ast.Name) and times[target.id] == 1 and _is_text(value):
            texts[target.id] = ast.literal_eval(value)
    return texts


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _written(node: ast.Call) -> Iterator[ast.AST]:
    """The parts of a call that name a file which it writes: what is written is no part of code."""
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr in _WRITES:
        yield from ast.walk(function.value)
    if _called(node) != "open":
        return
    positional = node.args[1:] if isinstance(function, ast.Name) else node.args
    modes = [*positional, *(keyword.value for keyword in node.keywords if keyword.arg == "mode")]
    texts = [mode.value for mode in modes if isinstance(mode, ast.Constant)]
    if any(isinstance(text, str) and _WRITE_MODE.fullmatch(text) for text in texts):
        yield from ast.walk(node)


def _operands(node: ast.expr, operator: type[ast.operator], inner: set[int]) -> list[ast.expr]:
    """The operands of `a / b / c`, whose inner operations are not looked at by themselves."""
    operands: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, operator):
        operands.append(node.right)
        node = node.left
        if isinstance(node, ast.BinOp):
            inner.add(id(node))
    return [node, *reversed(operands)]


def _text_of(node: ast.expr, inner: set[int], names: Mapping[str, str]) -> str | None:
    """The text that an expression is, with `*` for what is not known; None where it is none.

    `names` are those that stand for a text. That of a package's resources, or of a module whose
    name is made when the code runs, is a path.
    """
    text: str | None = None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value
    elif isinstance(node, ast.Name):
        text = names.get(node.id)
    elif isinstance(node, ast.FormattedValue):
        text = _text_of(node.value, inner, names)
    elif isinstance(node, ast.JoinedStr):
        text = "".join(_text_of(part, inner, names) or "*" for part in node.values)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        operands = _operands(node, ast.Add, inner)
        texts = [_text_of(part, inner, names) for part in operands]
        text = "".join(part or "*" for part in texts) if any(texts) else None
    elif isinstance(node, ast.Call) and node.args and _called(node) in {"files", *_IMPORTS}:
        name = _text_of(node.args[0], inner, names)
        if name is not None and _called(node) == "files":
            text = name.replace(".", "/")
        elif name is not None and "*" in name:
            text = f"{name.replace('.', '/')}.py"
    return text


def _called(node: ast.Call) -> str:
    """The last name of what is called."""
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _relative_module(name: str, importer: Path) -> Path | None:
    bare = name.lstrip(".")
    folder = importer.parent
    for _ in range(len(name) - len(bare) - 1):
        folder = folder.parent
    *packages, last = bare.split(".")
    return _module_in([folder.joinpath(*packages)], last) if last else None


def _module_in(folders: Iterable[Path], name: str) -> Path | None:
    for folder in folders:
        for path in (folder / name / "__init__.py", folder / f"{name}.py"):
            if _is_file(path):
                return path
    return None


def _spec(name: str) -> ModuleSpec | None:
    """Where a top-level module would be imported from; None where that is nowhere."""
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError, OSError):
        return None


def _matching(
    base: Path, pattern: str, *, is_path: bool, deep: bool
) -> Iterable[tuple[Path, bool]]:
    """The files that a text may name from a folder, and whether what they reach counts, too.

    A folder stands for the files in it, and where it is to be `deep`, for those in its folders.
    """
    try:
        if "**" in pattern:
            start, _, rest = pattern.partition("**")
            last = re.escape(rest.rpartition("/")[2]).replace(r"\*", ".*")
            found = _below(base / start, deep=deep)
            return [(path, near) for path, near in found if re.fullmatch(last, path.name)]
        if "*" in pattern:
            paths = sorted(base.glob(pattern))[:_MOST_FILES]
            return [(path, True) for path in paths if not _is_of_session(path, base)]
        path = base / pattern
        if _is_folder(path):
            wanted = (is_path or pattern[-1] == "/") and not _is_of_session(path, base)
            return _below(path, deep=deep) if wanted else []
    except (OSError, ValueError, NotImplementedError, IndexError):
        return []
    return [(path, True)]


def _below(folder: Path, *, deep: bool) -> list[tuple[Path, bool]]:
    """The files in a folder, those directly in it first and marked; where it is `deep`, those in
    its folders, too.

    Left out is what is hidden, installed or of sessions; links to folders are not followed.
    """
    files: list[tuple[Path, bool]] = []
    folders = [folder]
    for around in folders:
        entries: list[Path] = []
        with contextlib.suppress(OSError):
            entries = sorted(around.iterdir())
        for path in entries:
            if path.name[0] == "." or path.name in _SKIPPED or _is_of_session(path, folder):
                continue
            if not _is_folder(path):
                files.append((path, around == folder))
            elif deep and not path.is_symlink() and len(folders) < _MOST_FILES:
                folders.append(path)
        if len(files) >= _MOST_FILES:
            break
    return files[:_MOST_FILES]


def _is_of_session(path: Path, base: Path) -> bool:
    """Whether sessions write a file: a recording, or what is in the folder of results."""
    return path.relative_to(base).parts[:1] == (_RESULTS,) or bool(_CASSETTE.search(path.name))


def _content(path: Path, most: int) -> bytes | None:
    """What counts of a file: of a text whatever its line ends, of one with more than `most` bytes
    its size, too; None where it cannot be read, or is no file.
    """
    try:
        if not _is_file(path):
            return None
        with path.open("rb") as file:
            content = file.read(most)
        size = path.stat().st_size
    except OSError:
        return None
    if b"\0" not in content:
        content = content.replace(b"\r\n", b"\n")
    return content if size <= most else content + str(size).encode()


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _is_installed(path: Path) -> bool:
    """Whether a module is no part of the project: of Python, of an installed package, or ours."""
    return not _INSTALLED.isdisjoint(path.parts) or any(map(path.is_relative_to, _NOT_OF_PROJECTS))


def _package_version(path: Path) -> str:
    """Name and version of the installed package that a module is of; empty for Python's own."""
    at = next((place for place, part in enumerate(path.parts) if part in _INSTALLED), None)
    if at is None:
        return ""
    root, inside = Path(*path.parts[: at + 1]), path.parts[at + 1 :]
    top = inside[0].removesuffix(".py")
    if top in _NO_PART:
        return ""
    if not _is_file(root / top / "__init__.py") and len(inside) > 1:
        # Several packages share the folder of a namespace.
        return _version(root, "/".join(inside[:2]))
    return _version(root, top)


@functools.lru_cache
def _version(root: Path, module: str) -> str:
    name = module.removesuffix(".py")
    if "/" not in name:
        with contextlib.suppress(metadata.PackageNotFoundError):
            return f"{name} {metadata.version(name)}"
    for record in sorted(root.glob("*.dist-info/RECORD")):
        listed = "\n" + record.read_text("utf-8", errors="replace")
        if f"\n{name}/" in listed or f"\n{name}.py," in listed:
            package, _, version = record.parent.name.removesuffix(".dist-info").rpartition("-")
            return f"{package} {version}"
    return ""


def _file_of(found: type) -> str | None:
    """The file that a class is defined in."""
    file = _attribute(sys.modules.get(str(vars(found).get("__module__"))), "__file__")
    if isinstance(file, str):
        return file
    functions = (each for each in vars(found).values() if type(each) is types.FunctionType)
    return next((each.__code__.co_filename for each in functions), None)


def _has_content(kind: type) -> bool:
    """Whether objects are told apart by their attributes: those of the project's own classes, of
    dataclasses and of pydantic's models are.
    """
    if dataclasses.is_dataclass(kind) or kind is types.SimpleNamespace:
        return True
    if any("__pydantic_fields__" in vars(base) for base in kind.__mro__):
        return True
    file = _file_of(kind)
    return file is not None and not _is_installed(Path(file))


def _is_credential(name: object, value: object) -> bool:
    """Whether a value is a secret by its name: a replay has none, and judges the same."""
    if not isinstance(name, str) or not _CREDENTIAL.search(name):
        return False
    return value is None or isinstance(value, str | bytes)


def _constants(code: types.CodeType) -> list[Any]:
    """What is known of code that no file holds."""
    found: list[Any] = [*code.co_names]
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            found.append(_constants(value))
        elif isinstance(value, str | int | float):
            found.append(repr(value))
    return found


def _attribute(found: object, name: str) -> Any:
    """An attribute that an object has itself, without running code of its class."""
    try:
        return object.__getattribute__(found, "__dict__").get(name)
    except AttributeError:
        return None
