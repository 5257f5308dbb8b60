"""Find the types that public signatures name, by reading the source: aliases are visible there, unlike at run time.

A signature is that of a function or method, or the annotation of an attribute, with those that a class inherits from
internal bases. Names that begin with an underscore are not public, and an alias that consists of literals and types of
Python alone is no type of its own.
"""

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path

import actors

MODULES = ("actors", *sorted(f"actors.{name}" for name in (*actors._SUBMODULES, "sync")))
"""The public modules."""

NOT_CONSTRUCTED = frozenset(
    {
        "actors.Session",
        "actors.journal.JournalAdmin",
        "actors.sync.BlockingSession",
        "actors.sync.Steps",
        "actors.types.SessionEvents",
        "actors.types.TextStream",
    }
)
"""Public classes that only the package constructs: their constructors are internal."""


@dataclass(frozen=True)
class Definition:
    """The place that defines a name: a module, and the name there."""

    module: str
    name: str


@dataclass(frozen=True)
class Mention:
    """A type that a public signature names."""

    where: str
    type: Definition


@cache
def _tree(module: str) -> ast.Module:
    spec = find_spec(module)
    assert spec is not None, module
    assert spec.origin is not None, module
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body, those in branches included."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            yield from _statements(statement.body)
            yield from _statements(statement.orelse)
        elif isinstance(statement, ast.Try):
            yield from _statements(statement.body)


@cache
def _names(module: str) -> dict[str, list[ast.stmt]]:
    """Return the statements that bind each name of a module."""
    names: dict[str, list[ast.stmt]] = {}
    for statement in _statements(_tree(module).body):
        for name in _bound(statement):
            names.setdefault(name, []).append(statement)
    return names


def _bound(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [each.asname or each.name.partition(".")[0] for each in names]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Assign(targets=targets):
            return [each.id for each in targets if isinstance(each, ast.Name)]
        case _:
            return []


@cache
def definition(module: str, name: str) -> Definition | None:
    """Return the definition of a name of a module; None if it is not of this package."""
    for statement in _names(module).get(name, ()):
        match statement:
            case ast.ImportFrom(module=str(source), names=names):
                original = next(each.name for each in names if (each.asname or each.name) == name)
                return definition(source, original) if source.partition(".")[0] == "actors" else None
            case ast.Import():
                return None
            case _:
                return Definition(module, name)
    assert hasattr(builtins, name) or find_spec(f"{module}.{name}"), f"{module} does not define {name}"
    return None


@cache
def homes() -> dict[Definition, list[str]]:
    """Return the public modules that list each public definition."""
    found: dict[Definition, list[str]] = {}
    for module in MODULES:
        for name in import_module(module).__all__:
            place = definition(module, name)
            assert place is not None, f"{module}.{name} is not of this package"
            found.setdefault(place, []).append(f"{module}.{name}")
    return found


def mentions() -> Iterator[Mention]:
    """Yield every type that a public signature names."""
    for place, (home, *_) in homes().items():
        for statement in _names(place.module)[place.name]:
            yield from _of_statement(home, place.module, statement)


def _of_statement(where: str, module: str, statement: ast.stmt) -> Iterator[Mention]:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _of_function(where, module, statement)
        case ast.ClassDef():
            yield from _of_class(where, module, statement)
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias"), value=ast.expr() as value):
            yield from _of_annotation(where, module, value)
        case ast.AnnAssign(annotation=annotation):
            yield from _of_annotation(where, module, annotation)
        case ast.Assign(value=ast.Call(func=ast.Name(id="NewType"), args=[_, base])):
            yield from _of_annotation(where, module, base)
        case _:
            pass


def _of_function(
    where: str, module: str, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Mention]:
    arguments = function.args
    every = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    annotations = [each.annotation for each in every if each is not None and _is_public(each.arg)]
    for annotation in (*annotations, function.returns):
        if annotation is not None:
            yield from _of_annotation(where, module, annotation)
    for decorator in function.decorator_list:
        yield from _of_decorator(where, module, decorator)


def _of_decorator(where: str, module: str, decorator: ast.expr) -> Iterator[Mention]:
    """Yield the types that a decorator of this package returns in place of the function's own."""
    if isinstance(decorator, ast.Name) and (place := definition(module, decorator.id)) is not None:
        for statement in _names(place.module)[place.name]:
            if isinstance(statement, ast.FunctionDef) and statement.returns is not None:
                yield from _of_annotation(where, place.module, statement.returns)


def _of_class(where: str, module: str, kind: ast.ClassDef) -> Iterator[Mention]:
    for base in kind.bases:
        yield from _of_base(where, module, base)
    for statement in _statements(kind.body):
        match statement:
            case ast.FunctionDef(name="__init__"):
                if where not in NOT_CONSTRUCTED:
                    yield from _of_function(where, module, statement)
                yield from _of_attributes(where, module, statement)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if _is_public(name):
                yield from _of_function(f"{where}.{name}", module, statement)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if _is_public(name):
                yield from _of_annotation(f"{where}.{name}", module, annotation)
            case _:
                pass


def _of_base(where: str, module: str, base: ast.expr) -> Iterator[Mention]:
    """Yield the types that a class inherits: from the arguments of a base and the members of an internal base."""
    if isinstance(base, ast.Subscript):
        yield from _of_annotation(where, module, base.slice)
        base = base.value
    if isinstance(base, ast.Name):
        place = definition(module, base.id)
        if place is not None and place not in homes():
            for statement in _names(place.module)[place.name]:
                if isinstance(statement, ast.ClassDef):
                    yield from _of_class(where, place.module, statement)


def _of_attributes(where: str, module: str, function: ast.FunctionDef) -> Iterator[Mention]:
    """Yield the types of the public attributes that `__init__` annotates."""
    for statement in _statements(function.body):
        match statement:
            case ast.AnnAssign(
                target=ast.Attribute(value=ast.Name(id="self"), attr=name), annotation=annotation
            ):
                if _is_public(name):
                    yield from _of_annotation(f"{where}.{name}", module, annotation)
            case _:
                pass


def unannotated_attributes() -> Iterator[str]:
    """Yield the public attributes that `__init__` sets without a type to other values than parameters and constants."""
    for place, (home, *_) in homes().items():
        for statement in _names(place.module)[place.name]:
            if isinstance(statement, ast.ClassDef):
                for function in statement.body:
                    if isinstance(function, ast.FunctionDef) and function.name == "__init__":
                        yield from (f"{home}.{name}" for name in _untyped(function))


def _untyped(function: ast.FunctionDef) -> Iterator[str]:
    for statement in _statements(function.body):
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                for place, value in _pairs(target, statement.value):
                    match place:
                        case ast.Attribute(value=ast.Name(id="self"), attr=name) if _is_public(name):
                            if not isinstance(value, ast.Name | ast.Constant):
                                yield name
                        case _:
                            pass


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Return the single assignments of `a, b = x, y`."""
    match target, value:
        case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
            return [*zip(names, values, strict=True)]
        case _:
            return [(target, value)]


def undocumented_fields() -> Iterator[str]:
    """Yield the fields of public classes that neither a docstring nor a string after the field describes.

    The docstring is that of the class or of a base in this package. It describes the fields that it names.
    """
    for (home,) in homes().values():
        module, _, name = home.rpartition(".")
        kind = getattr(import_module(module), name)
        if isinstance(kind, type):
            bodies = [*_class_definitions(kind)]
            text = "\n".join(ast.get_docstring(body) or "" for body in bodies)
            bare = [field for body in bodies for field in _bare_fields(body)]
            yield from (f"{home}.{field}" for field in bare if not re.search(rf"\b{field}\b", text))


def _class_definitions(kind: type) -> Iterator[ast.ClassDef]:
    """Yield the definitions of a class and of its bases in this package."""
    for each in kind.__mro__:
        if each.__module__.partition(".")[0] == "actors":
            for statement in _names(each.__module__).get(each.__name__, ()):
                if isinstance(statement, ast.ClassDef):
                    yield statement


def _bare_fields(kind: ast.ClassDef) -> Iterator[str]:
    """Yield the public fields that a class declares without a string after the declaration."""
    for statement, after in zip_longest(kind.body, kind.body[1:]):
        match statement, after:
            case _, ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation), _ if _is_public(name):
                if "ClassVar" not in ast.unparse(annotation):
                    yield name
            case _:
                pass


def _is_public(name: str) -> bool:
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


_VARIABLES = ("TypeVar", "ParamSpec", "TypeVarTuple")


def _of_annotation(where: str, module: str, annotation: ast.expr) -> Iterator[Mention]:
    match annotation:
        case ast.Constant(value=str(text)):
            yield from _of_annotation(where, module, ast.parse(text, mode="eval").body)
        case ast.Subscript(value=ast.Name(id="Literal")):
            pass
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[first, *_])):
            yield from _of_annotation(where, module, first)
        case ast.Name(id=name):
            place = definition(module, name)
            if place is not None and name.startswith("_") and (value := _alias(place)) is not None:
                yield from _of_annotation(where, place.module, value)  # a private alias is an abbreviation
            elif place is not None and not _is_variable(place) and not _is_plain(place):
                yield Mention(where, place)
        case _:
            for child in ast.iter_child_nodes(annotation):
                if isinstance(child, ast.expr):
                    yield from _of_annotation(where, module, child)


def _is_variable(place: Definition) -> bool:
    match _names(place.module)[place.name][0]:
        case ast.Assign(value=ast.Call(func=ast.Name(id=maker))):
            return maker in _VARIABLES
        case _:
            return False


@cache
def _is_plain(place: Definition) -> bool:
    """Return True for an alias that consists of literals and types of Python alone: nobody needs its name."""
    if place in homes():
        return False
    value = _alias(place)
    return value is not None and not any(_of_annotation("", place.module, value))


def _alias(place: Definition) -> ast.expr | None:
    """Return the value of an alias; None for another definition."""
    match _names(place.module)[place.name][0]:
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias"), value=value):
            return value
        case ast.Assign(value=ast.Subscript() as value):
            return value
        case _:
            return None
