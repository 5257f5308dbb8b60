"""Resolve the names in a module's source to their definitions, under any name that the module gives them.

A reference is the dotted name of the definition, such as `actors.core.log.call_events.Returned`, even if a module
imports it under another name, through its package, or from a module that re-exports it, or assigns it to another name.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import actors

ROOT = Path(actors.__file__).parent.parent
_HOPS = 8
"""The most modules that may re-export a name in sequence."""


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return every node of a module, except pure expression contexts."""
    return tuple(node for node in ast.walk(tree_of(path)) if node._fields)


@cache
def names_in(path: Path) -> dict[str, str]:
    """Return the target of each imported or assigned name of a module, one hop away."""
    names = dict[str, str]()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                names[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{_base(node, path)}.{alias.name}" for alias in node.names}
    for node in nodes_of(path):
        if isinstance(node, ast.Assign) and (value := _dotted_name(node.value, names)):
            names |= {target.id: value for target in node.targets if isinstance(target, ast.Name)}
    return names


@cache
def references(path: Path) -> tuple[tuple[ast.AST, str], ...]:
    """Return each import, name and attribute of a module that refers to an imported name, with its definition."""
    return tuple(_references(path))


def _references(path: Path) -> Iterator[tuple[ast.AST, str]]:
    names = names_in(path)
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node, definition(f"{_base(node, path)}.{alias.name}")) for alias in node.names)
        elif isinstance(node, ast.Name | ast.Attribute) and (dotted := _dotted_name(node, names)):
            yield node, definition(dotted)


@cache
def definition(dotted: str) -> str:
    """Return the dotted name of the definition that a dotted name refers to."""
    for _ in range(_HOPS):
        module, _, name = dotted.rpartition(".")
        path = _path(module)
        further = None if path is None or _path(dotted) is not None else names_in(path).get(name)
        if further is None or further == dotted:
            return dotted
        dotted = further
    return dotted


def _base(node: ast.ImportFrom, path: Path) -> str:
    """Return the module that an import takes names from, also for a relative import."""
    if not node.level or not path.is_relative_to(ROOT):
        return node.module or ""
    package = path.relative_to(ROOT).parts[: -node.level]
    return ".".join((*package, *([node.module] if node.module else [])))


def _dotted_name(node: ast.AST, names: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and (owner := _dotted_name(node.value, names)):
        return f"{owner}.{node.attr}"
    return None


@cache
def _path(module: str) -> Path | None:
    """Return the file of a module of the package, or None."""
    if module.partition(".")[0] != "actors":
        return None
    plain = ROOT / module.replace(".", "/")
    return next((path for path in (plain.with_suffix(".py"), plain / "__init__.py") if path.exists()), None)
