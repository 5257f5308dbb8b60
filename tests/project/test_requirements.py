"""The list of requirements and the tests that cite it agree, in both directions."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.requirements import REQUIREMENTS

TESTS = Path(__file__).parents[1]


@cache
def _citing_tests() -> dict[str, list[str]]:
    """Return the tests that cite each requirement."""
    named: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        for node in _statements(ast.parse(text).body) if "requirement" in text else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for identifier in _marks(node.decorator_list):
                    named[identifier].append(f"{path.relative_to(TESTS)}::{node.name}")
            elif isinstance(node, ast.Assign) and any(_is_pytestmark(target) for target in node.targets):
                values = node.value.elts if isinstance(node.value, ast.List) else [node.value]
                for identifier in _marks(values):
                    named[identifier].append(str(path.relative_to(TESTS)))
    return named


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module and of its classes; functions contain no tests."""
    for node in body:
        yield node
        if isinstance(node, ast.ClassDef):
            yield from _statements(node.body)


def _is_pytestmark(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id == "pytestmark"


def _marks(decorators: list[ast.expr]) -> list[str]:
    return [
        argument.value
        for decorator in decorators
        if isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Attribute)
        and decorator.func.attr == "requirement"
        for argument in decorator.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def test_every_requirement_has_a_test_or_planned_work() -> None:
    named = _citing_tests()
    assert [item.id for item in REQUIREMENTS if not item.planned and item.id not in named] == []


def test_no_test_cites_an_unknown_requirement() -> None:
    owed = {item.id for item in REQUIREMENTS}
    assert {name: where for name, where in _citing_tests().items() if name not in owed} == {}


def test_every_requirement_is_implemented_and_not_only_planned() -> None:
    assert [item.id for item in REQUIREMENTS if item.planned] == []


def test_requirement_ids_are_unique_and_complete() -> None:
    ids = [item.id for item in REQUIREMENTS]
    assert len(ids) == len(set(ids))
    assert {f"REQ-915-{number:03}" for number in range(1, 51)} <= set(ids)
    assert {f"U-{number:02}" for number in range(1, 15)} <= set(ids)
    assert {f"PROMISE-{number}" for number in range(1, 12)} <= set(ids)
