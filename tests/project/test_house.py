"""Conventions of the source that neither types nor import contracts can express.

The tests read the source: which modules record the end of a call, and which modules name a vendor.
"""

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import Field
from functools import cache
from pathlib import Path

import pytest
from msgspec import Struct

import actors
from actors.config.providers import PROVIDERS
from actors.core.dialects.profiles import ALIASES, PROFILES
from actors.core.log.call_events import Cancelled, Denied, Failed, Refused, Returned
from actors.core.log.events import LogEvent
from tests.project.source import names_in, nodes_of, references, tree_of

ROOT = Path(actors.__file__).parent
ENDS = {f"{end.__module__}.{end.__name__}" for end in (Returned, Failed, Denied, Refused, Cancelled)}
VENDORS = {
    part
    for name in (*PROFILES, *ALIASES, *PROVIDERS, "claude", "gpt", "moonshot", "google", "aws", "amazon")
    for part in name.split("_")
    if part.isalpha()
} - {"responses", "chat", "compatible", "api", "open", "models", "together", "router", "studio", "lm", "face"}
"""Names of vendors, their models and their interfaces. `responses` and similar words are excluded."""
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
"""Private words of this project for which the field has a term (docs/reference/glossary.md lists the terms)."""
KNOW_VENDORS = (
    *(
        "transcripts.py",
        "adapters/",
        "cli/",
        "config/",
        "provider/configured_credentials.py",
        "testing/",
        "telemetry/otel.py",
        "tools/signature.py",
        "core/settings/table.py",
    ),
    "strict/",
    *("core/check/", "core/models/", "core/rulebook/"),
    *(
        "core/models/rules.py",
        "core/dialects/dialect.py",
        "core/dialects/narrow.py",
        "core/dialects/profiles.py",
        "core/transcript/transcript.py",
        "core/turn/answers.py",
    ),
)
"""Rooms and modules with differences between vendors or with users' names, and a parser of Google-style docstrings."""
NAME_EXAMPLES = (
    *(
        "runtime/runtime.py",
        "runtime/subagents.py",
        "mcp.py",
        "tools/mcp/__init__.py",
        "transport/exchange.py",
        "transport/contract.py",
    ),
)
"""Modules that name a vendor in prose only: an example of a target, or a server that was observed."""


@pytest.fixture(scope="module", autouse=True)
def read_once() -> Iterator[None]:
    """Parse each module once for all tests here, and then free the trees."""
    yield
    for each in (nodes_of, references, _names, names_in, tree_of):
        each.cache_clear()


def _created_ends(path: Path) -> set[str]:
    """Return the events for the end of a call that a module creates, under any name."""
    calls = {node.func for node in nodes_of(path) if isinstance(node, ast.Call)}
    return {name for node, name in references(path) if node in calls} & ENDS


def _references(path: Path) -> set[str]:
    """Return the dotted names of everything that a module refers to."""
    return {name for _, name in references(path)}


def _rooms(*left_out: str) -> list[tuple[str, Path]]:
    paths = ((path.relative_to(ROOT).as_posix(), path) for path in sorted(ROOT.rglob("*.py")))
    return [(name, path) for name, path in paths if not name.startswith(left_out)]


@pytest.mark.requirement("U-10", "PROMISE-2", "PROMISE-7")
def test_only_the_scheduler_records_how_a_call_ended() -> None:
    """The scheduler's batch and calls create the events, and only the scheduler sends them to the ledger.

    Other code only reads logs. A fork cannot know whether a running call completed, so it records that itself
    (`actors.core.session.open_asks`).
    """
    assert {f"{event.__module__}.{event.__name__}" for event in LogEvent.__args__} >= ENDS
    writers = {name for name, path in _rooms("testing/") if _created_ends(path)}
    assert writers == {
        "scheduler/calls.py",
        "core/turn/batch.py",
        "core/session/open_asks.py",
        "scheduler/scheduler_actor.py",
    }
    reporters = {name for name, path in _rooms() if "actors.ledger.ledger_actor.Record" in _references(path)}
    assert reporters == {"scheduler/scheduler_actor.py"}
    users = {name for name, path in _rooms() if "actors.core.turn.batch.plan" in _references(path)}
    assert users == {"scheduler/scheduler_actor.py"}


def test_a_class_name_is_defined_in_one_module() -> None:
    """This includes private classes, so that a search for a class name has one result."""
    places: dict[str, list[str]] = {}
    for module, path in _rooms():
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(module)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@cache
def _names(path: Path) -> set[str]:
    """Return every name that a module defines or uses, including keyword arguments."""
    kinds = ("name", "id", "attr", "arg", "asname")
    found = (getattr(node, kind, None) for node in nodes_of(path) for kind in kinds)
    return {name for name in found if isinstance(name, str)}


def _parts(name: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def test_no_name_contains_a_retired_word() -> None:
    """Common terms replaced the retired words; `head` is reserved for HTTP."""
    found = {
        (module, name)
        for module, path in _rooms()
        for name in (*_names(path), *module.removesuffix(".py").split("/"))
        if _parts(name) & RETIRED
    }
    heads = {
        (module, name)
        for module, path in _rooms("transport/", "strict/loopback.py")
        for name in _names(path)
        if _parts(name.replace("RequestHead", "").replace("request_head", "")) & {"head", "heads"}
    }
    assert (found, heads) == (set(), set())


def test_the_code_uses_every_word_of_the_glossary() -> None:
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
def test_only_packages_for_vendor_differences_name_a_vendor() -> None:
    """This includes prose, except examples: a provider's rules are data, and its wire format belongs to an adapter."""
    assert {"anthropic", "openai", "gemini", "bedrock", "mistral", "kimi"} <= VENDORS
    rooms = _rooms(*KNOW_VENDORS)
    assert {"session/session_actor.py", "session/steps.py", "core/turn/turn.py", "core/render/choose.py"} <= {
        name for name, _ in rooms
    }
    named = {
        module: found
        for module, path in rooms
        if (found := _vendors(_code(path) if module in NAME_EXAMPLES else path.read_text(encoding="utf-8")))
    }
    assert named == {}


def test_each_package_that_may_name_a_vendor_does_name_a_vendor() -> None:
    found = {module for module, path in _rooms() if _vendors(path.read_text(encoding="utf-8"))}
    for name in (*KNOW_VENDORS, *NAME_EXAMPLES):
        assert any(module.startswith(name) for module in found), (
            f"{name} names no vendor and can be removed from the list"
        )


def _code(path: Path) -> str:
    """Return the source of a module without comments and docstrings."""
    tree = copy.deepcopy(tree_of(path))
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [each for each in body if not _is_prose(each)] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _is_prose(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _vendors(text: str) -> set[str]:
    return {*re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower())} & VENDORS


def test_a_struct_has_no_dataclass_field_as_default() -> None:
    """The dataclass field would itself be the default value, and type checkers confuse the two kinds of `field`."""
    structs = [each for each in _subclasses(Struct) if each.__module__.startswith("actors.")]
    assert len(structs) > 50
    assert [
        each for each in structs if any(isinstance(value, Field) for value in each.__struct_defaults__)
    ] == []


def _subclasses(kind: type[Struct]) -> Iterator[type[Struct]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)
