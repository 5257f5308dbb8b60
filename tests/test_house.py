"""What keeps the house in order and no type or import contract can say.

Read from the source: who writes down how a call ended, and who knows a vendor.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import Field
from functools import cache
from pathlib import Path

import pytest
from msgspec import Struct

import actors
from actors.config.providers import PROVIDERS
from actors.core.events import Cancelled, Denied, Event, Failed, Refused, Returned
from actors.core.profiles import ALIASES, PROFILES

ROOT = Path(actors.__file__).parent
ENDS = {end.__name__ for end in (Returned, Failed, Denied, Refused, Cancelled)}
VENDORS = {
    part
    for name in (*PROFILES, *ALIASES, *PROVIDERS, "claude", "gpt", "moonshot", "google", "aws", "amazon")
    for part in name.split("_")
    if part.isalpha()
} - {"responses", "chat", "compatible", "api", "open", "models", "together"}
"""What a vendor, its models or its interface is called. `responses` and the like are words of their own."""
GLOSSARY = ROOT.parent / "docs" / "reference" / "glossary.md"
RETIRED = {
    *(
        "astray",
        "asleep",
        "awake",
        "calm",
        "careful",
        "conductor",
        "crew",
        "desk",
        "doom",
        "floor",
        "forgive",
    ),
    *("incarnation", "mended", "outlet", "pile", "proof", "rescued", "resting", "shown", "spent", "standing"),
    *("terms", "thaw", "workshop"),
}
"""Words of this tree's own for what the field has named (docs/reference/glossary.md has those)."""
ORCHESTRATION = (
    *(
        "session.py",
        "turns/driver.py",
        "turns/steps.py",
        "scheduler.py",
        "execution/calls.py",
        "ledger.py",
        "renderer.py",
        "hosting/activation.py",
        "hosting/session_actors.py",
    ),
    *(
        "core/turn.py",
        "core/batch.py",
        "core/ledger.py",
        "core/state.py",
        "core/phases.py",
        "core/routing.py",
    ),
)


@pytest.fixture(scope="module", autouse=True)
def read_once() -> Iterator[None]:
    """Parse each module once for all tests here, and let go of it then."""
    yield
    for each in (_nodes, _imports, _names):
        each.cache_clear()


@cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return every node of a module that says more than where it stands."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple(node for node in ast.walk(tree) if node._fields)


def _ends_made(path: Path) -> set[str]:
    """Return which ends of a call a module makes, by their own names or through the module of events."""
    plain = _imported(path, "actors.core.events")
    return {
        name
        for node in _nodes(path)
        if isinstance(node, ast.Call)
        for name in ENDS & {getattr(node.func, "attr", None), getattr(node.func, "id", None)}
        if ast.unparse(node.func) in {f"events.{name}", f"actors.core.events.{name}", *({name} & plain)}
    }


@cache
def _imports(path: Path) -> tuple[ast.ImportFrom, ...]:
    return tuple(node for node in _nodes(path) if isinstance(node, ast.ImportFrom))


def _imported(path: Path, module: str) -> set[str]:
    """Return what a module imports from another, by its own name there."""
    return {alias.name for node in _imports(path) if node.module == module for alias in node.names}


def _rooms(*left_out: str) -> list[tuple[str, Path]]:
    paths = ((path.relative_to(ROOT).as_posix(), path) for path in sorted(ROOT.rglob("*.py")))
    return [(name, path) for name, path in paths if not name.startswith(left_out)]


@pytest.mark.requirement("U-10", "PROMISE-2", "PROMISE-7")
def test_only_the_scheduler_says_how_a_call_ended() -> None:
    """Its batch and its calls make the events, and it alone sends them to the ledger; a log is read back elsewhere.

    What ran when a log was forked nobody can say any more: the fork says so of it (`actors.core.closing`).
    """
    assert {event.__name__ for event in Event.__args__} >= ENDS
    writers = {name for name, path in _rooms("testing/") if _ends_made(path)}
    assert writers == {"execution/calls.py", "core/batch.py", "core/closing.py", "scheduler.py"}
    reporters = {name for name, path in _rooms() if "Record" in _imported(path, "actors.ledger")}
    assert reporters == {"scheduler.py"}
    users = {name for name, path in _rooms() if _imported(path, "actors.core.batch") & {"plan"}}
    assert users == {"scheduler.py"}


def test_a_class_name_stands_in_one_module() -> None:
    """Private ones too: a search for a name finds one thing."""
    places: dict[str, list[str]] = {}
    for module, path in _rooms():
        for node in _nodes(path):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(module)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@cache
def _names(path: Path) -> set[str]:
    """Return every name that a module gives or uses, and those of its keyword arguments."""
    kinds = ("name", "id", "attr", "arg", "asname")
    found = (getattr(node, kind, None) for node in _nodes(path) for kind in kinds)
    return {name for name in found if isinstance(name, str)}


def _parts(name: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def test_no_name_has_a_retired_word() -> None:
    """The field's own words took their places; `head` is left to HTTP."""
    found = {
        (module, name)
        for module, path in _rooms()
        for name in (*_names(path), *module.removesuffix(".py").split("/"))
        if _parts(name) & RETIRED
    }
    heads = {
        (module, name)
        for module, path in _rooms("transport/", "testing/loopback.py")
        for name in _names(path)
        if _parts(name) & {"head", "heads"}
    }
    assert (found, heads) == (set(), set())


def test_the_glossary_is_of_words_that_the_code_uses() -> None:
    names = {name for _, path in _rooms() for name in _names(path)}
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", GLOSSARY.read_text(), re.MULTILINE)
    terms = [
        (term, set(re.findall(r"`(\w+)`", code)))
        for term, _, code in rows
        if code not in ("In the code", "---")
    ]
    assert len(terms) == len(dict(terms)) > 50
    assert [(term, code - names) for term, code in terms if not code or code - names] == []
    assert [term for term, _ in terms if {*re.findall(r"\w+", term)} & RETIRED] == []


@pytest.mark.requirement("U-04")
@pytest.mark.parametrize("name", ORCHESTRATION)
def test_what_drives_a_turn_names_no_vendor(name: str) -> None:
    """Neither in code nor in words: what a provider asks is data, and how it is said is an adapter's."""
    assert {"anthropic", "openai", "gemini", "bedrock", "mistral", "kimi"} <= VENDORS
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", (ROOT / name).read_text()).lower())
    assert set(words) & VENDORS == set()


def test_a_struct_has_no_default_that_is_made_for_a_data_class() -> None:
    """That would be the value: type checkers take the one `field` for the other."""
    structs = [each for each in _below(Struct) if each.__module__.startswith("actors.")]
    assert len(structs) > 50
    assert [
        each for each in structs if any(isinstance(value, Field) for value in each.__struct_defaults__)
    ] == []


def _below(kind: type[Struct]) -> Iterator[type[Struct]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
