"""The documentation is correct: its programs are files that run and print the output on the page.

A block marked `python` is a complete file of docs/examples, or some of its lines; the files in its subfolders are run
by commands. A complete file is followed by a block marked `text` with its output. A block marked `toml` is a
configuration that loads. Links have a target.
"""

import re
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import get_args

import pytest

from actors import errors
from actors.adapters.failure import ACTIONS, Kind
from actors.cli.exits import exit_for_error
from actors.config import load
from actors.core.log.call_events import MissingReason
from actors.core.log.events import EpochReason, TurnStatus
from actors.core.values.intake import Dedupe
from tests.cli.command import script

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = {path.name: path.read_text() for path in sorted((ROOT / "docs" / "examples").glob("*.py"))}
BY_COMMAND = [path.read_text() for path in sorted((ROOT / "docs" / "examples").glob("*/*.py"))]
"""Programs that need more than the tests have; the page describes how to run them."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")

KEYS = (
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "TEAM_KEY",
    "MOONSHOT_API_KEY",
    "GATEWAY_TOKEN",
    "OPENROUTER_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "ANTHROPIC_FOUNDRY_API_KEY",
)
"""Variables that the files in the docs use."""


def blocks(page: Path, *kinds: str) -> list[tuple[str, str]]:
    """Return a page's fenced blocks as (kind, content)."""
    return [(kind, text) for kind, text in BLOCK.findall(page.read_text()) if kind in kinds]


def shown_outputs() -> dict[str, str]:
    """Return the output of each example according to the pages."""
    found: dict[str, str] = {}
    for page in PAGES:
        told = blocks(page, "python", "text")
        for (kind, text), following in pairwise([*told, ("", "")]):
            for name, source in EXAMPLES.items():
                if kind == "python" and text == source:
                    assert following[0] == "text", f"{page.name} shows {name}, but not what it prints"
                    found[name] = following[1]
    return found


def ids(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_prints_the_documented_output(name: str) -> None:
    done = script(ROOT / "docs" / "examples" / name)
    said = "" if "slow_handler" in done.err else done.err  # a busy machine logs slow handlers
    assert (done.code, said) == (0, "")
    assert done.out == shown_outputs().get(name, "(shown nowhere)")


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_program_in_the_docs_is_an_executed_file(page: Path) -> None:
    for _, text in blocks(page, "python"):
        assert any(is_part(text, source) for source in (*EXAMPLES.values(), *BY_COMMAND)), text


def is_part(text: str, source: str) -> bool:
    """Return True if `text` consists of some lines of `source`, at any indentation."""
    wanted = dedent(text).strip().splitlines()
    lines = source.splitlines()
    windows = (lines[at : at + len(wanted)] for at in range(len(lines)))
    return any(dedent("\n".join(window)).strip().splitlines() == wanted for window in windows)


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_configuration_in_the_docs_loads(page: Path, tmp_path: Path) -> None:
    for _, text in blocks(page, "toml"):
        (tmp_path / "actors.toml").write_text(text)
        config = load(tmp_path / "actors.toml", dict.fromkeys(KEYS, "k"))
        assert [config.resolve(target) for target in config.targets]


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_link_has_a_target(page: Path) -> None:
    for target, heading in LINK.findall(page.read_text()):
        if "://" in target:
            continue
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), f"{page.name}: {target}"
        if heading:
            headings = re.findall(r"^#+ (.+)$", there.read_text(), re.MULTILINE)
            assert heading in {slug(text) for text in headings}, f"{page.name}: {target}#{heading}"


def slug(heading: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def test_the_readme_has_the_essentials_within_forty_lines() -> None:
    readme = (ROOT / "README.md").read_text()
    told = BLOCK.findall(readme)
    assert told[0] == ("python", EXAMPLES["readme.py"])
    end = readme.index("```\n", readme.index(told[1][1])) + 4
    assert readme[:end].count("\n") <= 40


def test_the_readme_has_one_command_for_the_demo_and_one_for_the_tests() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    commands = [line for line in lines if line.startswith("python3 -m venv")]
    assert [command.rpartition("/")[2] for command in commands] == ["actors demo", "pytest"]
    assert all("pip install" in command for command in commands)


def test_the_design_page_names_every_package_and_every_subpackage_of_core() -> None:
    page = (ROOT / "docs" / "explanation" / "design.md").read_text()
    for folder in (ROOT / "actors", ROOT / "actors" / "core"):
        for path in sorted(folder.iterdir()):
            is_ours = path.suffix == ".py" or (path / "__init__.py").exists()
            if path.name.startswith("__") or not is_ours:
                continue
            name = f"{path.relative_to(ROOT / 'actors')}{'/' if path.is_dir() else ''}"
            assert f"`{name}`" in page, f"docs/explanation/design.md does not name {name}"


def test_every_error_is_in_the_reference_with_its_exit_code() -> None:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text()
    told = dict(re.findall(r"^\| `(\w+)` \|.*\| (\d+) \|$", page, re.MULTILINE))
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert told == {kind.__name__: str(int(exit_for_error(kind("x")))) for kind in kinds}


def test_every_code_of_a_status_or_reason_is_in_the_error_reference() -> None:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text()
    for codes in (*get_args(MissingReason), EpochReason, TurnStatus, Dedupe, Kind):
        for code in get_args(codes):
            assert f"| `{code}` |" in page, code


@pytest.mark.parametrize("kind", ACTIONS)
def test_the_documented_reaction_to_a_failure_is_the_actual_reaction(kind: Kind) -> None:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text()
    (said,) = re.findall(rf"^\| `{kind}` \| .+ \| (.+) \|$", page, re.MULTILINE)
    words = {
        "retry": ("Retry", "Wait"),
        "next_backend": ("The next backend",),
        "compact": ("Compact the history",),
        "our_bug": ("Render the transcript once in a conservative form",),
        "leave_out": ("Omit the ",),
        "give_up": ("The ask fails",),
    }
    assert said.startswith(words[ACTIONS[kind]])


def test_every_session_rule_names_its_tests() -> None:
    page = (ROOT / "docs" / "reference" / "semantics.md").read_text()
    stated = re.findall(r"^- \*\*(S\d+)\*\*", page, re.MULTILINE)
    numbers = [int(rule.removeprefix("S")) for rule in stated]
    assert numbers == sorted(
        set(numbers)
    )  # a number is never reused: some may be missing, but none occurs twice
    table = (ROOT / "tests" / "session_rules.md").read_text()
    rows = re.findall(r"^\| (S\d+) \| (`.+?`: .+) \|$", table, re.MULTILINE)
    assert [rule for rule, _ in rows] == stated
    for rule, cell in rows:
        for part in cell.split("; "):
            file, *tests = re.findall(r"`([\w/.]+)`", part)
            source = (ROOT / file).read_text()
            assert tests, rule
            for test in tests:
                assert f"def {test}(" in source, f"{rule}: {file} has no {test}"
