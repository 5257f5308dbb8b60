"""Totality: every block, event, dialect, family and code is handled in each place that must handle all of them.

A place that mypy can check is typed accordingly (`match` without a default, `assert_never`, a parameter with a union
type). Every other place has a row here, under its name. `python -m tests.plants` adds one of each kind to a copy of the
tree and counts the places that report it.
"""

import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, TypeAlias, get_args

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

import actors
import actors.events
from actors import transcripts
from actors.adapters.failure import ACTIONS
from actors.adapters.failure import Kind as FailureKind
from actors.cli.demo.script import STOPS
from actors.cli.exits import EXIT_BY_KIND
from actors.config.providers import PROVIDERS
from actors.core import check
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import ALIASES, PROFILES
from actors.core.log import events
from actors.core.log.call_events import MissingReason, Reason
from actors.core.log.events import EpochReason, LogEvent
from actors.core.models.rules import Family
from actors.core.normalize.settle import BLOCK_AUTHORS
from actors.core.render.choose import SYNTHETIC
from actors.core.rulebook import PREFIXES
from actors.core.stream_events.events import SessionEvent
from actors.core.values.content import Block, MessageRole
from actors.strict.rules import DIALECTS as RULED
from tests.config.test_configured import SERVERS
from tests.generated import strategies
from tests.generated.histories import READERS, history
from tests.generated.parts import REASONS
from tests.scenarios import providers as scenarios
from tests.scenarios.shape import READERS as SHAPES
from tests.teeth.mutations import profiles as teeth

ROOT = Path(__file__).resolve().parents[2]
Names: TypeAlias = Collection[str]


def member_names(union: Any) -> set[str]:  # Any: a union of classes, of such unions, or of literals
    """Return the names of the members of a union."""
    members = get_args(union)
    return {name for member in members for name in member_names(member)} if members else {str(_name(union))}


def _name(member: object) -> object:
    return member.__name__ if isinstance(member, type) else member


def names(kinds: Iterable[type]) -> set[str]:
    return {kind.__name__ for kind in kinds}


def headings(page: str, level: str) -> set[str]:
    """Return the headings of a page of the docs."""
    text = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    return set(re.findall(rf"^{level} (\w+)$", text, re.MULTILINE))


def documented_codes() -> set[str]:
    """Return the codes that the page of errors explains."""
    text = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    return set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))


def drawn_kinds(strategy: SearchStrategy[Any]) -> set[str]:  # Any: a strategy for any type
    """Return the kinds of value that a strategy draws. Each of its branches is drawn from."""
    seen: set[str] = set()

    def collect(value: object) -> None:
        seen.add(type(value).__name__)

    for branch in strategy.branches:
        settings(max_examples=10, database=None, deadline=None, derandomize=True)(given(branch)(collect))()
    return seen


def generated_kinds() -> set[str]:
    """Return the kinds of block in generated conversations."""
    return {
        type(block).__name__
        for seed in range(300)
        for message in history(seed)[0]
        for block in message.blocks
    }


VENDORS = set(PROFILES)
MODELS_OLD = {"gemini_2"}
"""Profiles without a kind of backend, for use as `dialect` in a backend's table."""
UNKNOWN_HOST = {"openai_compatible"}
"""The dialect of an unknown server has no scenario with refusals."""
FIRST_STOPS = {"openai_chat", "anthropic", "openai_compatible"}
"""The first dialect of the demo, and the generic one."""

TABLES: dict[str, tuple[Names, Callable[[], Names]]] = {
    "actors/core/normalize/settle.py:BLOCK_AUTHORS": (member_names(Block), lambda: names(BLOCK_AUTHORS)),
    "tests/generated/strategies.py:blocks": (
        member_names(Block),
        lambda: drawn_kinds(strategies.blocks()),
    ),
    "tests/generated/histories.py:history": (member_names(Block), generated_kinds),
    "actors/__init__.py:__all__": (
        member_names(Block),
        lambda: {*actors.__all__, *transcripts.__all__} & member_names(Block),
    ),
    "docs/reference/api.md:Block": (
        member_names(Block),
        lambda: headings("api.md", "###") & member_names(Block),
    ),
    "tests/generated/strategies.py:events": (
        member_names(LogEvent),
        lambda: drawn_kinds(strategies.events()),
    ),
    "actors/core/log/events.py:__doc__": (
        member_names(LogEvent),
        lambda: set(re.findall(r"[A-Z]\w+", str(events.__doc__))) & member_names(LogEvent),
    ),
    "docs/reference/api.md:Event": (
        member_names(LogEvent),
        lambda: headings("api.md", "###") & member_names(LogEvent),
    ),
    "actors/events.py:__all__": (
        member_names(SessionEvent),
        lambda: set(actors.events.__all__) & member_names(SessionEvent),
    ),
    "docs/reference/api.md:SessionEvent": (
        member_names(SessionEvent),
        lambda: headings("api.md", "###") & member_names(SessionEvent),
    ),
    "tests/generated/histories.py:READERS": (VENDORS, READERS.keys),
    "actors/strict/rules/__init__.py:DIALECTS": (VENDORS, lambda: RULED),
    "actors/config/providers.py:PROVIDERS": (
        VENDORS,
        lambda: {provider.dialect for provider in PROVIDERS.values()} | MODELS_OLD,
    ),
    "actors/cli/demo/script.py:STOPS": (VENDORS, lambda: {stop.dialect for stop in STOPS} | FIRST_STOPS),
    "tests/teeth/mutations/profiles.py:IDS": (VENDORS, teeth.IDS.keys),
    "tests/teeth/mutations/profiles.py:PLACES": (VENDORS, teeth.PLACES.keys),
    "tests/scenarios/providers.py:IDS": (VENDORS, lambda: scenarios.IDS.keys() | UNKNOWN_HOST),
    "tests/scenarios/providers.py:NAMES": (VENDORS, lambda: scenarios.NAMES.keys() | UNKNOWN_HOST),
    "docs/reference/dialects.md:##": (VENDORS, lambda: headings("dialects.md", "##") - {"Overview"}),
    "tests/config/test_configured.py:SERVERS": (PROVIDERS.keys(), SERVERS.keys),
    "actors/core/dialects/dialect.py:Dialect": (
        member_names(Family),
        lambda: {kind.family for kind in get_args(Dialect)},
    ),
    "actors/core/dialects/profiles.py:PROFILES": (
        member_names(Family),
        lambda: {profile.family for profile in PROFILES.values()},
    ),
    "actors/adapters/codec.py:codec": (
        member_names(Family),
        lambda: {
            path.parent.name if path.stem == "__init__" else path.stem
            for path in (ROOT / "actors" / "adapters").rglob("*.py")
            if "\nCODEC = " in path.read_text()
        },
    ),
    "actors/core/check/__init__.py:_STATES": (member_names(Family), lambda: check._STATES.keys()),
    "actors/core/rulebook/__init__.py:PREFIXES": (member_names(Family), PREFIXES.keys),
    "tests/scenarios/shape.py:READERS": (member_names(Family), SHAPES.keys),
    "actors/core/render/choose.py:SYNTHETIC": (member_names(MissingReason), SYNTHETIC.keys),
    "tests/generated/parts.py:REASONS": (member_names(Reason), lambda: REASONS),
    "docs/reference/errors.md:Reason": (
        member_names(Reason),
        lambda: documented_codes() & member_names(Reason),
    ),
    "docs/reference/errors.md:EpochReason": (
        member_names(EpochReason),
        lambda: documented_codes() & member_names(EpochReason),
    ),
    "actors/adapters/failure.py:ACTIONS": (member_names(FailureKind), ACTIONS.keys),
    "actors/cli/exits.py:EXIT_BY_KIND": (member_names(FailureKind), EXIT_BY_KIND.keys),
    "docs/reference/errors.md:Kind": (
        member_names(FailureKind),
        lambda: documented_codes() & member_names(FailureKind),
    ),
}
"""For each place: the existing members, and the members that the place handles."""


@pytest.mark.parametrize("place", TABLES)
def test_each_listed_table_has_every_member_of_the_type_that_it_covers(place: str) -> None:
    wanted, known = TABLES[place]
    assert set(known()) == set(wanted)


@pytest.mark.parametrize("place", TABLES)
def test_each_listed_table_exists_under_its_name(place: str) -> None:
    file, _, name = place.partition(":")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert file.startswith("docs/") or name.startswith("__") or re.search(rf"\b{name}\b", text)


def test_an_alias_names_a_profile_and_every_block_has_a_role() -> None:
    assert set(ALIASES.values()) <= VENDORS
    assert all(roles and set(roles) <= set(get_args(MessageRole)) for roles in BLOCK_AUTHORS.values())
