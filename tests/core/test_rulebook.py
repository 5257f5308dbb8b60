"""Check that the generated reference pages match their data."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from actors.core.dialects.profiles import PROFILES
from actors.core.models.table import ROWS
from actors.core.rulebook import FAULTS, PREFIXES, RULES

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def generator() -> dict[str, Any]:  # Any: the names of a script
    return runpy.run_path(str(ROOT / ".ci" / "rulebook.py"))


def test_the_rulebook_page_is_up_to_date(generator: dict[str, Any]) -> None:  # Any: likewise
    page = (ROOT / "docs" / "reference" / "rulebook.md").read_text(encoding="utf-8")
    assert page == generator["page"](), "run python .ci/rulebook.py"


def test_the_rulebook_page_names_every_rule_and_every_profile(
    generator: dict[str, Any],
) -> None:  # Any: likewise
    page = generator["page"]()
    assert all(f"| {rule} |" in page for rule in RULES)
    assert all(name in page for name in PROFILES)


def test_the_dialects_page_is_up_to_date_and_complete() -> None:
    generator = runpy.run_path(str(ROOT / ".ci" / "dialects.py"))
    page = (ROOT / "docs" / "reference" / "dialects.md").read_text(encoding="utf-8")
    assert page == generator["page"](), "run python .ci/dialects.py"
    assert all(f"## {name}\n" in page for name in PROFILES)


def test_the_page_of_the_settings_is_up_to_date() -> None:
    generator = runpy.run_path(str(ROOT / ".ci" / "settings.py"))
    page = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    assert page == generator["page"](), "run python .ci/settings.py"


def test_the_page_of_the_models_has_every_row_of_the_table() -> None:
    generator = runpy.run_path(str(ROOT / ".ci" / "models.py"))
    page = (ROOT / "docs" / "reference" / "models.md").read_text(encoding="utf-8")
    assert page == generator["page"](), "run python .ci/models.py"
    assert all(f"`{row.sample[0]}`" in page for row in ROWS)


def test_each_rule_that_the_checker_enforces_has_a_fault_class_that_can_be_raised() -> None:
    assert all(rule.fault_class in FAULTS for rule in RULES.values() if rule.is_checked)


def test_every_rule_has_a_unique_id_and_a_family() -> None:
    prefixes = {prefix for family in PREFIXES.values() for prefix in family}
    for key, rule in RULES.items():
        assert key == rule.id
        assert rule.id[:4] in prefixes
    assert {profile.family for profile in PROFILES.values()} == set(PREFIXES)
