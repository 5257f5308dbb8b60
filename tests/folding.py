"""Run the cases of a plain function as one test, in a run of the whole suite.

Each test costs about three milliseconds for its set-up and reports, which is more than most of these cases take. A run
of named tests has one test for each case.
"""

from collections.abc import Iterator, Sequence
from inspect import iscoroutinefunction
from itertools import groupby
from os import PathLike

import pytest

from tests import naming


class FoldedCases(pytest.Item):
    """The cases of one function. The first case that fails ends the test, and is named in its failure."""

    cases: Sequence[pytest.Function]

    def runtest(self) -> None:
        """Call the function with the parameters of each case.

        Raises:
            pytest.skip.Exception: Every case was skipped.
        """
        skips = list[BaseException]()
        for case in self.cases:
            with naming.case(case.nodeid):
                try:
                    returned = case.obj(**case.callspec.params)
                except pytest.skip.Exception as skip:
                    skips.append(skip)
                except pytest.xfail.Exception as xfail:
                    raise AssertionError(
                        "mark the case with `xfail` instead of calling `pytest.xfail`"
                    ) from xfail
                else:
                    assert returned is None, "the test returned a value"
        if len(skips) == len(self.cases):
            raise skips[0]

    def reportinfo(self) -> tuple[PathLike[str] | str, int | None, str]:
        """Return the place of the function."""
        path, line, _ = self.cases[0].reportinfo()
        return path, line, self.name


def fold_cases(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the tests, with one test instead of adjacent cases of a function that uses no fixture."""
    for key, group in groupby(items, _folding_key):
        tests = [*group]
        cases = [test for test in tests if isinstance(test, pytest.Function)]
        if key is None or len(cases) == 1:
            yield from tests
            continue
        first = cases[0]
        assert first.parent is not None
        folded = FoldedCases.from_parent(first.parent, name=f"{first.name} and {len(cases) - 1} more")
        folded.cases = cases
        folded.own_markers = _other_marks(first)
        yield folded


def _folding_key(item: pytest.Item) -> object | None:
    """Return the function and the marks of a case, or None if the case needs a test of its own."""
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec") or item.cls is not None:
        return None
    function: object = item.function
    if iscoroutinefunction(function) or getattr(function, "is_hypothesis_test", False):
        return None
    marks = _other_marks(item)
    names = {mark.name for mark in marks}
    if names & {"skipif", "skip", "xfail", "usefixtures"} or {*item.fixturenames} != _parameters(item):
        return None
    return function, marks


def _other_marks(item: pytest.Item) -> list[pytest.Mark]:
    return [mark for mark in item.own_markers if mark.name != "parametrize"]


def _parameters(item: pytest.Item) -> set[str]:
    """Return the parameters that the test's own markers set."""
    names = set[str]()
    for mark in item.iter_markers("parametrize"):
        if not mark.kwargs.get("indirect"):
            given = mark.args[0]
            names |= {name.strip() for name in given.split(",")} if isinstance(given, str) else {*given}
    return names
