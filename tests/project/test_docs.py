"""The documentation tells the truth: its programs are files that run, and print what the page says.

A block marked `python` is a whole file of docs/examples, or lines of one; those in folders there are run by command.
After a whole file comes a block marked `text` with what it prints. A block marked `toml` is a configuration that loads.
Links lead somewhere.
"""

import re
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import get_args

import pytest

from actors import errors
from actors.adapters.failure import ACTIONS, Kind
from actors.cli.exits import of_error
from actors.config import load
from actors.core.log.events import EpochReason, Gap, TurnStatus
from actors.core.values.intake import Dedupe
from tests.cli.command import script

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = {path.name: path.read_text() for path in sorted((ROOT / "docs" / "examples").glob("*.py"))}
BY_COMMAND = [path.read_text() for path in sorted((ROOT / "docs" / "examples").glob("*/*.py"))]
"""They need more than the tests have; the page says how they are run."""
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
"""Variables that the files in the docs name."""


def blocks(page: Path, *kinds: str) -> list[tuple[str, str]]:
    """Return a page's fenced blocks as (kind, content)."""
    return [(kind, text) for kind, text in BLOCK.findall(page.read_text()) if kind in kinds]


def shown_outputs() -> dict[str, str]:
    """Return what the pages say that each example prints."""
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
def test_every_example_runs_and_prints_what_the_docs_show(name: str) -> None:
    done = script(ROOT / "docs" / "examples" / name)
    said = "" if "slow_handler" in done.err else done.err  # as on a busy machine
    assert (done.code, said) == (0, "")
    assert done.out == shown_outputs().get(name, "(shown nowhere)")


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_program_in_the_docs_is_a_file_that_is_run(page: Path) -> None:
    for _, text in blocks(page, "python"):
        assert any(is_part(text, source) for source in (*EXAMPLES.values(), *BY_COMMAND)), text


def is_part(text: str, source: str) -> bool:
    """Say whether `text` is some lines of `source`, whatever its indent."""
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
def test_every_link_leads_somewhere(page: Path) -> None:
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


def test_the_readme_says_all_that_matters_within_forty_lines() -> None:
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


def test_every_room_and_every_package_of_the_core_is_in_the_design() -> None:
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
    assert told == {kind.__name__: str(int(of_error(kind("x")))) for kind in kinds}


def test_every_code_of_a_report_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text()
    for codes in (*get_args(Gap), EpochReason, TurnStatus, Dedupe, Kind):
        for code in get_args(codes):
            assert f"| `{code}` |" in page, code


@pytest.mark.parametrize("kind", ACTIONS)
def test_what_the_reference_says_is_done_about_a_failure_is_what_is_done(kind: Kind) -> None:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text()
    (said,) = re.findall(rf"^\| `{kind}` \| .+ \| (.+) \|$", page, re.MULTILINE)
    words = {
        "retry": ("Retry", "Wait"),
        "next_backend": ("The next backend",),
        "compact": ("Compact the history",),
        "our_bug": ("One conservative render",),
        "leave_out": ("Omit it",),
        "give_up": ("The ask fails",),
    }
    assert said.startswith(words[ACTIONS[kind]])


def test_every_rule_of_a_session_names_the_tests_that_show_it() -> None:
    page = (ROOT / "docs" / "reference" / "semantics.md").read_text()
    stated = re.findall(r"^- \*\*(S\d+)\*\*", page, re.MULTILINE)
    numbers = [int(rule.removeprefix("S")) for rule in stated]
    assert numbers == sorted(set(numbers))  # a number is kept for good: one may be missing, none comes twice
    rows = re.findall(r"^\| (S\d+) \| (`.+?`: .+) \|$", page, re.MULTILINE)
    assert [rule for rule, _ in rows] == stated
    for rule, cell in rows:
        for part in cell.split("; "):
            file, *tests = re.findall(r"`([\w/.]+)`", part)
            source = (ROOT / file).read_text()
            assert tests, rule
            for test in tests:
                assert f"def {test}(" in source, f"{rule}: {file} has no {test}"
