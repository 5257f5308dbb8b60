"""In a run of the whole suite, the cases of a plain function are one test; other cases stay tests of their own."""

import os
import re
import subprocess
import sys
from pathlib import Path

CONFTEST = """
from tests.folding import fold_cases

def pytest_collection_modifyitems(items):
    items[:] = fold_cases(items)
"""
TESTS = """
import pytest

SEEN = []

@pytest.mark.parametrize("first", (1, 2))
@pytest.mark.parametrize("second", (1, 2))
def test_plain(first, second):
    SEEN.append((first, second))

@pytest.mark.parametrize("number", (1, 2, 3))
def test_failing(number):
    assert number != 2

@pytest.mark.parametrize("number", (1, 2, 3))
def test_failing_after_a_skip(number):
    if number == 1:
        pytest.skip("not here")
    assert number != 3

@pytest.mark.parametrize("number", (1, 2))
def test_skipped(number):
    pytest.skip("not here")

@pytest.mark.parametrize("number", (1, 2, 3))
def test_expected_to_fail(number):
    pytest.xfail("as expected")

@pytest.mark.parametrize("number", (1, 2))
def test_returning(number):
    return number

@pytest.mark.parametrize("number", (1, 2, pytest.param(3, marks=pytest.mark.filterwarnings("error"))))
def test_with_warnings(number):
    import warnings
    warnings.warn("a warning")

@pytest.mark.parametrize("number", (1, 2))
def test_with_a_fixture(number, tmp_path):
    pass

@pytest.mark.parametrize("number", (1, pytest.param(2, marks=pytest.mark.xfail)))
def test_with_a_mark(number):
    assert number == 1

@pytest.fixture
def number(request):
    return request.param + 1

@pytest.mark.parametrize("number", (1, 2), indirect=True)
def test_indirect(number):
    assert number > 1

def test_all_cases_were_called():
    assert sorted(SEEN) == [(1, 1), (1, 2), (2, 1), (2, 2)]
"""


def test_plain_cases_are_one_test_whose_failure_names_the_case(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "."]
    options = "-p no:cacheprovider -p no:xdist -p no:faker"  # faker adds a fixture to every test
    environ = {**os.environ, "PYTHONPATH": str(root), "PYTEST_ADDOPTS": options}
    ran = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120)
    lines = re.findall(r"^([A-Z]+) test_it\.py::(.+?)(?: - .*)?$", ran.stdout, re.MULTILINE)
    assert {*lines} == {
        ("PASSED", "test_plain[1-1] and 3 more"),
        ("FAILED", "test_failing[1] and 2 more"),
        ("FAILED", "test_failing_after_a_skip[1] and 2 more"),
        ("FAILED", "test_expected_to_fail[1] and 2 more"),
        ("FAILED", "test_returning[1] and 1 more"),
        ("PASSED", "test_with_warnings[1] and 1 more"),
        ("FAILED", "test_with_warnings[3]"),
        ("PASSED", "test_with_a_fixture[1]"),
        ("PASSED", "test_with_a_fixture[2]"),
        ("PASSED", "test_with_a_mark[1]"),
        ("XFAIL", "test_with_a_mark[2]"),
        ("PASSED", "test_indirect[1]"),
        ("PASSED", "test_indirect[2]"),
        ("PASSED", "test_all_cases_were_called"),
    }
    assert "in the case test_it.py::test_failing[2]" in ran.stdout
    assert ran.stdout.rstrip().splitlines()[-1].startswith("5 failed, 8 passed, 1 skipped, 1 xfailed")
