"""Check that the generated reference pages match their data."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from actors.core.dialects.profiles import PROFILES
from actors.core.models.facts import ModelFacts
from actors.core.models.table import ROWS
from actors.core.rulebook import FAULTS, PREFIXES, RULES
from actors.events import SCHEMA

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


def test_the_settings_page_is_up_to_date() -> None:
    generator = runpy.run_path(str(ROOT / ".ci" / "settings.py"))
    page = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    assert page == generator["page"](), "run python .ci/settings.py"


def test_the_page_about_models_has_every_field_and_every_row_of_the_model_table() -> None:
    generator = runpy.run_path(str(ROOT / ".ci" / "models.py"))
    page = (ROOT / "docs" / "reference" / "models.md").read_text(encoding="utf-8")
    assert page == generator["page"](), "run python .ci/models.py"
    fields = re.findall(r"^\| `(\w+)` \| .+ \| .+ \|$", page.partition("## Rows")[0], re.MULTILINE)
    assert fields == [*ModelFacts.__struct_fields__]
    assert all(f"`{row.sample[0]}`" in page for row in ROWS)


def test_the_events_page_and_the_event_schema_are_up_to_date_and_the_examples_are_valid() -> None:
    generator = runpy.run_path(str(ROOT / ".ci" / "events.py"))
    pages: dict[Path, str] = generator["pages"]()
    assert {path: path.read_text(encoding="utf-8") for path in pages} == pages, "run python .ci/events.py"
    examples = [line for line in "".join(pages.values()).splitlines() if line.startswith('{"v"')]
    assert examples
    assert all(jsonschema_rs.is_valid(SCHEMA, json.loads(example)) for example in examples)


def test_every_rule_of_the_checker_has_a_known_fault_class() -> None:
    assert all(rule.fault_class in FAULTS for rule in RULES.values() if rule.is_checked)


def test_every_rule_has_a_unique_id_and_a_family() -> None:
    prefixes = {prefix for family in PREFIXES.values() for prefix in family}
    for key, rule in RULES.items():
        assert key == rule.id
        assert rule.id[:4] in prefixes
    assert {profile.family for profile in PROFILES.values()} == set(PREFIXES)
