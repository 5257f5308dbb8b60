"""The public API: the names that programs may import, and the cost of importing them."""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import actors
from actors import errors, transcripts
from actors.core.dialects.profiles import PROFILES
from tests.project.public_names import MODULES, homes, mentions, unannotated_attributes, undocumented_fields

PUBLIC = """
    ActorsError AskFailed AskResult AskSettings Binding Budget Code Compaction CompactionResult LiveTools
    Media Message Price Runtime Session SwitchOutcome Text Thinking Tool ToolCall ToolChoice ToolContext
    ToolFailure ToolResult ToolSource Usage handoff run subagent tool
"""


def test_the_public_names_are_complete_and_importable() -> None:
    assert actors.__all__ == PUBLIC.split()
    assert all(getattr(actors, name) is not None for name in actors.__all__)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_can_be_imported_from_its_home_module(module: str) -> None:
    names = import_module(module).__all__
    assert names == sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert [name for name in names if getattr(import_module(module), name, None) is None] == []


def test_every_public_name_has_one_home_module_and_one_meaning() -> None:
    assert [places for places in homes().values() if len(places) > 1] == []
    meanings = defaultdict[str, list[str]](list)
    for (home,) in homes().values():
        meanings[home.rpartition(".")[2]].append(home)
    assert [each for each in meanings.values() if len(each) > 1] == [["actors.run", "actors.sync.run"]]


def test_the_design_page_lists_each_public_name_under_its_home_module() -> None:
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "design.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(actors[.a-z_]*)` \| ([^|]*) \|", page, re.MULTILINE)
    listed = [(module, name) for module, names in rows for name in re.findall(r"`(\w+)`", names)]
    assert {module for module, _ in listed} == set(MODULES)
    assert [name for module, name in listed if name not in import_module(module).__all__] == []
    assert {name for module, name in listed if module == "actors"} == set(actors.__all__)


def test_every_type_in_a_public_signature_has_a_public_home_module() -> None:
    assert [each for each in mentions() if each.type not in homes()] == []
    assert [*unannotated_attributes()] == []


def test_every_field_of_a_public_class_is_documented() -> None:
    assert [*undocumented_fields()] == []


def test_every_method_and_property_of_a_public_class_is_documented() -> None:
    assert [*_undocumented()] == []


def _undocumented() -> Iterator[str]:
    for (home,) in homes().values():
        module, _, name = home.rpartition(".")
        kind = getattr(import_module(module), name)
        for attribute in dir(kind) if isinstance(kind, type) else ():
            owners = [each for each in kind.__mro__ if attribute in vars(each)]
            if not attribute.startswith("_") and owners[0].__module__.startswith("actors."):
                members = [vars(each)[attribute] for each in owners]
                is_code = callable(members[0]) or isinstance(
                    members[0], classmethod | property | cached_property
                )
                if is_code and not any(member.__doc__ for member in members):
                    yield f"{home}.{attribute}"


DIALECTS = """
    openai openai_chat openai_responses anthropic gemini vertex_gemini mistral kimi deepseek bedrock openrouter
    xai qwen glm minimax groq vllm llama_cpp ollama openai_compatible
"""


@pytest.mark.parametrize("name", DIALECTS.split())
def test_a_dialect_is_found_by_its_public_name(name: str) -> None:
    assert transcripts.dialect(name).name in PROFILES


def test_a_name_that_is_not_public_raises_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = actors.nonsense  # type: ignore[attr-defined]  # the case under test


def test_the_package_lists_only_its_public_names() -> None:
    names = [name for name in dir(actors) if not name.startswith("_")]
    assert names == sorted(PUBLIC.split())
    assert "__version__" in dir(actors)


def test_the_package_version_equals_the_version_of_the_distribution() -> None:
    assert actors.__version__ == version("llm-actors")


@pytest.mark.parametrize("name", ["SessionExists", "QueueFull"])
def test_the_error_about_a_name_of_another_public_module_names_that_module(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; use actors\.errors\.{name}$"):
        getattr(actors, name)


def test_the_package_runs_as_the_command_line() -> None:
    line = [sys.executable, "-m", "actors", "--help"]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: actors ")


def loaded_by(program: str, names: Sequence[str]) -> list[str]:
    """Return the modules of `names` that a new process has imported after it has run a program."""
    line = f"{program}; import sys; print(*[name for name in {[*names]!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_the_package_imports_no_heavy_library_or_vendor_sdk() -> None:
    heavy = ("pydantic", "h11", "jsonschema_rs", "structlog", "anyio", "trio", "openai", "anthropic")
    assert loaded_by("import actors", heavy) == []


def test_importing_the_runtime_class_imports_no_package_that_opens_or_runs_sessions() -> None:
    later = [
        "session",
        "provider",
        "adapters",
        "tools",
        "ledger",
        "renderer",
        "config",
        "core.render",
        "core.check",
        "core.dialects",
        "core.turn.batch",
        "core.stream_events",
        "runtime.handle",
        "runtime.opening",
    ]
    assert loaded_by("from actors import Runtime", [f"actors.{name}" for name in later]) == []


def test_creating_a_runtime_imports_no_event_loop_and_no_lazy_module() -> None:
    """The configuration, which imports pydantic, is not included."""
    later = [
        "asyncio",
        "trio",
        "ssl",
        "email",
        "sqlite3",
        "pydantic",
        "h11",
        "jsonschema_rs",
        "structlog",
        "logging",
        "pathlib",
        "queue",
        "calendar",
        "difflib",
        "urllib",
        "hashlib",
        "anyio._core._synchronization",
        "actors.session.session_actor",
        "actors.core.rulebook",
        "actors.core.check.gemini",
    ]
    program = "from actors import Runtime; import actors.runtime.hosting, actors.runtime.journal_admin"
    assert loaded_by(program, later) == []


def test_decoders_import_the_wordings_of_errors_only_for_an_answer_with_an_error() -> None:
    families = ("anthropic", "converse", "gemini", "openai_chat.decode", "responses.decode")
    later = [f"actors.adapters.{name}" for name in ("classify", "error_patterns", "refusals")]
    program = f"import {', '.join(f'actors.adapters.{name}' for name in ('codec', *families))}"
    assert loaded_by(program, later) == []


def test_the_runtime_imports_no_vendor_sdk_and_no_test_library() -> None:
    program = "import actors.runtime.runtime, actors.transcripts, actors.adapters.codec, actors.strict.server"
    assert loaded_by(program, ["openai", "anthropic", "trio", "pytest", "hypothesis"]) == []


def test_the_error_tree_in_the_module_docstring_names_every_error_class() -> None:
    drawing = errors.__doc__ or ""
    named = [value for value in vars(errors).values() if isinstance(value, type)]
    classes = [kind for kind in named if kind.__module__ == errors.__name__]
    assert [kind.__name__ for kind in classes if kind.__name__ not in drawing] == []
    assert all(issubclass(kind, errors.ActorsError) for kind in classes)


def test_every_error_and_every_public_name_is_documented() -> None:
    public = [getattr(actors, name) for name in actors.__all__]
    assert [item for item in public if not item.__doc__] == []
