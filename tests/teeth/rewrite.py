"""Replace one AST node of a named definition, for `tests.teeth` and `tests.plants`.

An edit names a place, and gives two pieces of Python: the old node and the new one.

A place is a file and the qualified name of a definition in it: `actors/core/ledger.py:Ledger.apply`. A definition is a
function, a class, a variable of a module or class, or an imported name.

The old node is an expression or a run of statements, and occurs once in the definition. It is compared with the code
as syntax trees. So an edit survives a new format, other comments, changes next to the node, and a move of the
definition, as long as the place follows the move.

An ellipsis in the old node matches any code. In the new node, the first ellipsis of a form stands for the code that the
first of this form matched, and so on:

    ...      as an expression, any one expression
    *...     any number of neighbours in a call, a list, a tuple or a set
    **...    any number of neighbours in a call's keywords or in a dict
    ...      as a statement, any number of statements
    "..."    in a string, any characters

If both nodes are expressions, an expression is replaced; otherwise statements are, or the cases of a `match` if the old
node begins with `case`. An empty new node deletes the old one.
The definition is written anew from its tree; the rest of the file keeps its text.
"""

import ast
import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from textwrap import dedent, indent
from typing import Any, TypeAlias

Nodes: TypeAlias = list[Any]
"""Syntax nodes, or plain values in their fields."""

Captures: TypeAlias = list[tuple[type, Any]]
"""The form of each ellipsis, in order, and what it matched: a node, a list of neighbours, or characters."""

_UNCOMPARED = {"ctx", "kind", "type_comment"}
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
"""Fields of a statement that contain statements, or nodes with statements."""


class EditError(Exception):
    """An edit that does not apply: no such definition, or the old node does not occur exactly once in it."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A node of a definition, and its replacement.

    Args:
        place: `FILE:QUALIFIED_NAME`; the file's path begins at the root of the tree.
        old, new: Python source, as the module's docstring describes it. Indentation around it does not count.
    """

    place: str
    old: str
    new: str

    @property
    def file(self) -> str:
        """The path of the edited file, from the root of the tree."""
        return self.place.partition(":")[0]

    def apply(self, text: str) -> str:
        """Return the text of the file with the old node replaced.

        Raises:
            EditError: The definition does not exist, or the old node does not occur exactly once in it.
            SyntaxError: The result is not Python.
        """
        scopes = _scopes(text, self.place.partition(":")[2])
        if not scopes:
            raise EditError(f"{self.place}: no such definition")
        old, new = _patterns(self.old, self.new)
        found = [
            (scope, body, *occurrence)
            for scope in scopes
            for body in [_copy(text, scope)]
            for occurrence in _occurrences(body, old)
        ]
        if len(found) != 1:
            raise EditError(f"{self.place}: {self.old!r} occurs {len(found)} times, not once")
        scope, body, owner, field, span, captures = found[0]
        _replace(owner, field, span, _fill(new, captures) if captures else copy.deepcopy(new))
        return _splice(text, scope, body.body)


def definitions(body: Sequence[ast.stmt], path: Sequence[str]) -> list[ast.stmt]:
    """Return the statements that define a qualified name: several if it is overloaded or defined conditionally."""
    found = [statement for statement in _statements(body) if path[0] in _names(statement)]
    if len(path) == 1:
        return found
    return [
        inner
        for statement in found
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for inner in definitions(statement.body, path[1:])
    ]


def _statements(body: Sequence[ast.AST]) -> Iterator[ast.stmt]:
    """Yield the statements of one scope: those of nested blocks too, those of nested functions and classes not."""
    for node in body:
        if isinstance(node, ast.stmt):
            yield node
        if isinstance(node, ast.ExceptHandler | ast.match_case) or (
            isinstance(node, ast.stmt)
            and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ):
            for field in _BLOCKS:
                yield from _statements(getattr(node, field, ()))


def _names(statement: ast.stmt) -> list[str]:
    """Return the names that a statement binds."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return [alias.asname or alias.name for alias in aliases]
        case _:
            return []


@cache
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def _scopes(text: str, name: str) -> list[ast.stmt]:
    return definitions(_parse(text).body, name.split("."))


@cache
def _patterns(old: str, new: str) -> tuple[Nodes, Nodes]:
    """Return both as lists of statements, or as lists of one expression if both are expressions."""
    trees = [_tree(dedent(source).strip()) for source in (old, new)]
    values = [node.value for tree in trees for node in tree if isinstance(node, ast.Expr)]
    if len(trees[0]) == len(trees[1]) == 1 and len(values) == 2:
        return values[:1], values[1:]
    return trees[0], trees[1]


def _tree(source: str) -> Nodes:
    if source.startswith("case "):
        (match,) = ast.parse("match _:\n" + indent(source, " ")).body
        assert isinstance(match, ast.Match)
        return match.cases
    return ast.parse(source).body


def _occurrences(scope: ast.AST, old: Nodes) -> Iterator[tuple[ast.AST, str, slice | None, Captures]]:
    """Yield each occurrence of a pattern: the node that owns it, the field, the slice of a list, and the captures."""
    has_rest, first = any(map(_is_rest, old)), old[0]
    kind = None if _is_rest(first) or _is_ellipsis(first) else type(first)  # skip subtrees that cannot match
    for owner in ast.walk(scope):
        for field, value in ast.iter_fields(owner):
            if not isinstance(value, list):
                if kind in (None, type(value)) and (captures := _match_list(old, [value])) is not None:
                    yield owner, field, None, captures
                continue
            for start in range(len(value)):
                if kind not in (None, type(value[start])):
                    continue
                stops = range(start + 1, len(value) + 1) if has_rest else (start + len(old),)
                for stop in stops:
                    if (captures := _match_list(old, value[start:stop])) is not None:
                        yield owner, field, slice(start, stop), captures
                        break


class _Entry(ast.AST):
    """A key of a dict and its value; `ast.Dict` keeps them in two lists."""

    _fields = ("key", "value")

    def __init__(self, key: ast.expr | None, value: ast.expr) -> None:
        super().__init__()
        self.key, self.value = key, value


def _fields(node: ast.AST) -> dict[str, Any]:
    """Return the compared fields, with the entries of a dict in pairs."""
    if isinstance(node, ast.Dict):
        return {"entries": [_Entry(*entry) for entry in zip(node.keys, node.values, strict=True)]}
    return {field: value for field, value in ast.iter_fields(node) if field not in _UNCOMPARED}


def _match(pattern: Any, node: Any) -> Captures | None:
    """Return the captures of a pattern's ellipses, in order, or None if the pattern does not match."""
    if _is_ellipsis(pattern) and isinstance(node, ast.expr):
        return [(ast.Constant, node)]
    if type(pattern) is not type(node):
        return None
    if isinstance(pattern, list):
        return _match_list(pattern, node)
    if isinstance(pattern, str):
        return _match_text(pattern, node)
    if not isinstance(pattern, ast.AST):
        return [] if pattern == node else None
    captures: Captures = []
    for one, other in zip(_fields(pattern).values(), _fields(node).values(), strict=True):
        if (more := _match(one, other)) is None:
            return None
        captures += more
    return captures


def _match_list(patterns: Nodes, nodes: Nodes) -> Captures | None:
    """Return the captures of a list, or None; an ellipsis for neighbours takes as few as possible."""
    if not patterns:
        return None if nodes else []
    if _is_rest(patterns[0]):
        for length in range(len(nodes) + 1):
            if (rest := _match_list(patterns[1:], nodes[length:])) is not None:
                return [(type(patterns[0]), nodes[:length]), *rest]
        return None
    first = _match(patterns[0], nodes[0]) if nodes else None
    rest = None if first is None else _match_list(patterns[1:], nodes[1:])
    return None if first is None or rest is None else [*first, *rest]


def _match_text(pattern: str, text: str) -> Captures | None:
    """Return the characters that the dots of a string stand for, or None; the text between dots occurs once."""
    pieces = pattern.split("...")
    found = re.fullmatch("(.*?)".join(map(re.escape, pieces)), text, re.DOTALL)
    if not found or any(text.count(piece) != 1 for piece in pieces[1:-1]):
        return None
    return [(str, group) for group in found.groups()]


def _is_ellipsis(node: Any) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _is_rest(node: Any) -> bool:
    """Return True for an ellipsis that matches any number of neighbours."""
    match node:
        case ast.Expr(value=value) | ast.Starred(value=value):
            return _is_ellipsis(value)
        case ast.keyword(arg=None, value=value) | _Entry(key=None, value=value):
            return _is_ellipsis(value)
        case _:
            return False


def _copy(text: str, scope: ast.stmt) -> ast.Module:
    """Return a definition in a separate tree, parsed again, which is faster than a deep copy."""
    first, last = _lines(scope)
    source = "\n".join(text.split("\n")[first:last])
    if not scope.col_offset:
        return ast.parse(source)
    return ast.Module([ast.parse(f"if 1:\n{source}").body[0].body[0]], [])  # type: ignore[attr-defined]  # an `if`


def _lines(scope: ast.stmt) -> tuple[int, int]:
    """Return the slice of a file's lines that hold a definition, with its decorators."""
    first = min([scope.lineno, *(node.lineno for node in getattr(scope, "decorator_list", ()))])
    return first - 1, scope.end_lineno or scope.lineno


def _replace(owner: ast.AST, field: str, span: slice | None, nodes: Nodes) -> None:
    if span is None:
        setattr(owner, field, nodes[0])
        return
    items = getattr(owner, field)
    items[span] = nodes
    if not items and field in {"body", "finalbody"}:
        items.append(ast.Pass())


def _fill(nodes: Nodes, captures: Captures) -> Nodes:
    """Return a copy of the nodes in which captures stand for the ellipses. Captures are used up."""
    made: Nodes = []
    for node in nodes:
        if _is_rest(node):
            made += _next(type(node), captures)
        else:
            made.append(_fill_node(node, captures))
    return made


def _fill_node(node: Any, captures: Captures) -> Any:
    if _is_ellipsis(node):
        return _next(ast.Constant, captures)
    if isinstance(node, list):
        return _fill(node, captures)
    if isinstance(node, str):
        first, *others = node.split("...")
        return first + "".join(_next(str, captures) + piece for piece in others)
    if not isinstance(node, ast.AST):
        return node
    fields = {field: _fill_node(value, captures) for field, value in _fields(node).items()}
    if isinstance(node, ast.Dict):
        entries = fields["entries"]
        return ast.Dict([entry.key for entry in entries], [entry.value for entry in entries])
    return type(node)(**{"ctx": ast.Load(), **fields} if "ctx" in node._fields else fields)


def _next(form: type, captures: Captures) -> Any:
    """Take the next capture of a form out of the list."""
    for number, (other, value) in enumerate(captures):
        if other is form:
            del captures[number]
            return value
    raise EditError(f"the new node has more ellipses of the form {form.__name__} than the old one")


def _splice(text: str, scope: ast.stmt, body: list[ast.stmt]) -> str:
    """Return the text with a definition's lines replaced by the source of other statements."""
    depth = scope.col_offset // 4
    for _ in range(depth):  # nested, so that a docstring keeps its indentation
        body = [ast.If(ast.Constant(1), body, [])]
    source = ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))
    ast.parse(source)
    lines = text.split("\n")
    lines[slice(*_lines(scope))] = source.split("\n")[depth:]
    return "\n".join(lines)
