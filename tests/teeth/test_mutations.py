"""The mutations match the tree: each can be applied, and its tests exist."""

import builtins
from collections.abc import Iterator
from functools import cache
from symtable import SymbolTable, symtable

from actors.core.dialects.profiles import PROFILES
from tests import naming
from tests.teeth.__main__ import ROOT
from tests.teeth.mutations import MUTATIONS
from tests.teeth.mutations.profiles import IDS, PLACES


def test_every_mutation_can_be_applied_and_introduces_no_undefined_name() -> None:
    """With an undefined name, its tests would fail because of a `NameError`."""
    for mutation in MUTATIONS:
        with naming.case(mutation.what):
            text = _text(mutation.edit.file)
            mutated = mutation.edit.apply(text)
            assert mutated != text
            assert undefined_names(mutated) <= _undefined_names(mutation.edit.file)


def test_the_tests_of_every_mutation_exist() -> None:
    for mutation in MUTATIONS:
        with naming.case(mutation.what):
            for test in mutation.tests:
                file, _, name = test.partition("::")
                assert f"def {name.partition('[')[0]}" in _text(file)


@cache
def _undefined_names(file: str) -> frozenset[str]:
    return undefined_names(_text(file))


def undefined_names(text: str) -> frozenset[str]:
    """Return the names that a module reads, and that neither the module nor Python defines."""
    table = symtable(text, "module", "exec")
    known = {
        each.get_name()
        for each in table.get_symbols()
        if each.is_assigned() or each.is_imported() or each.is_namespace()
    }
    read = {
        each.get_name()
        for scope in _scopes(table)
        for each in scope.get_symbols()
        if each.is_global() and each.is_referenced()
    }
    return frozenset(read - known - set(dir(builtins)))


def _scopes(table: SymbolTable) -> Iterator[SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _scopes(child)


@cache
def _text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def test_every_step_from_normalization_to_the_switch_has_a_mutation() -> None:
    steps = {"normalize", "walk", "choose", "thinking", "order", "apart", "attach", "plain", "projection"}
    parts = {"ledger", "sealing", "lane", "turn", "switch", "check, openai_chat", "check, anthropic"}
    named = {mutation.what.partition(":")[0] for mutation in MUTATIONS}
    assert named >= steps | parts


def test_every_dialect_has_mutations_of_its_id_rules_and_of_its_structure_rules() -> None:
    assert set(IDS) == set(PLACES) == set(PROFILES)
