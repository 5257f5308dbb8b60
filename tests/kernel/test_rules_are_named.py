"""The reference page and the tests cite the same rules."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reference" / "semantics.md"


def test_the_semantics_page_and_the_kernel_tests_name_the_same_rules() -> None:
    stated = re.findall(r"^- \*\*(A\d+)\*\*", PAGE.read_text(), re.MULTILINE)
    named = {
        rule
        for path in HERE.glob("test_*.py")
        for docstring in re.findall(r'^    """(A\d+.*?)"""', path.read_text(), re.MULTILINE | re.DOTALL)
        for rule in re.findall(r"\bA\d+\b", docstring)
    }
    assert stated == [f"A{number}" for number in range(1, len(stated) + 1)]
    assert named == set(stated)
