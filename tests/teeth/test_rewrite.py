"""Edits find their node by name and syntax tree, so changes around it do not matter; an ambiguous edit fails."""

import ast

import pytest

from tests.teeth.rewrite import Edit, EditError

SOURCE = '''
"""A module."""

from elsewhere import helper


class Meter:
    """A meter.

    It counts.
    """

    limit: int = 10

    def add(self, amount: int) -> int:
        """Add.

        Twice.
        """
        # a comment
        if amount < self.limit and not self.is_full:
            self.total += amount
        elif amount == self.limit:
            helper(self, amount, key="a", other="b")
        return self.total


def unit(name):
    match name:
        case "s":
            return {"seconds": 1, "long": [1, 2, 3]}
        case str():
            return f"no unit {name} is known"
'''


def apply_edit(name: str, old: str, new: str, source: str = SOURCE) -> str:
    return Edit(f"a.py:{name}", old, new).apply(source)


def assert_same(source: str, old: str, new: str) -> None:
    """Assert that the source has the syntax tree of SOURCE with one text replaced by another."""
    assert SOURCE.count(old) == 1
    assert ast.dump(ast.parse(source)) == ast.dump(ast.parse(SOURCE.replace(old, new)))


@pytest.mark.parametrize(
    ("name", "old", "new", "replacement"),
    [
        ("Meter.add", "amount < self.limit", "False", ("amount < self.limit", "False")),
        ("Meter.add", "self.total += amount", "pass", ("self.total += amount", "pass")),
        ("Meter.limit", "10", "11", ("int = 10", "int = 11")),
        ("Meter", "limit: int = ...", "limit: int = ...\nmore = 1", ("10", "10\n    more = 1")),
        ("helper", "from elsewhere import helper", "import helper", ("from elsewhere import helper", "import helper")),
        ("unit", "{**..., 'long': ...}", "{**..., 'short': ...}", ('"long"', '"short"')),
        ("unit", "[1, *...]", "[*...]", ("[1, 2, 3]", "[2, 3]")),
        ("unit", "'...is known'", "'...exists'", ("is known", "exists")),
        ("unit", "case str(): ...", "case _: ...", ("case str()", "case _")),
        ("Meter.add", "helper(*..., **..., other=...)", "helper(*..., **...)", (', other="b"', "")),
    ],
)  # fmt: skip
def test_an_edit_replaces_one_node_of_a_definition_and_nothing_else(
    name: str, old: str, new: str, replacement: tuple[str, str]
) -> None:
    assert_same(apply_edit(name, old, new), *replacement)


def test_a_block_survives_the_removal_of_its_outer_statement() -> None:
    after = apply_edit("Meter.add", "if ... and not self.is_full: ...\nelse: ...", "...")
    (function,) = ast.parse(after).body[2].body[2:]  # type: ignore[attr-defined]  # the class
    assert [ast.unparse(node) for node in function.body[1:]] == ["self.total += amount", "return self.total"]


def test_deleting_the_last_statement_of_a_block_leaves_pass() -> None:
    assert_same(apply_edit("Meter.add", "self.total += amount", ""), "self.total += amount", "pass")


def test_an_edit_applies_regardless_of_formatting_comments_and_neighbouring_code() -> None:
    other = SOURCE.replace("        # a comment\n", "        other = (\n            1\n        )\n").replace(
        "if amount < self.limit and", "if (  # here\n            amount  <  self . limit) and"
    )
    changed = apply_edit("Meter.add", "amount < self.limit", "False", "def add(): pass\n" + other)
    assert "if False and (not self.is_full)" in changed


@pytest.mark.parametrize(
    ("name", "old", "problem"),
    [
        ("Meter.subtract", "amount", "no such definition"),
        ("Meter.add", "self.other", "occurs 0 times"),
        ("Meter.add", "self.total", "occurs 2 times"),
    ],
)
def test_an_edit_without_exactly_one_occurrence_is_an_error(name: str, old: str, problem: str) -> None:
    with pytest.raises(EditError, match=problem):
        apply_edit(name, old, "other")


def test_a_replacement_with_more_ellipses_than_its_pattern_is_an_error() -> None:
    with pytest.raises(EditError, match="more ellipses"):
        apply_edit("unit", "[1, *...]", "[*..., *...]")
