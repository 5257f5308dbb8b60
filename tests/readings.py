"""Compare the fast and the strict parser of the judge on each fragment that a test passes to the judge."""

import pytest

from actors.core import check
from actors.core.check import CheckState
from actors.core.data.jsonio import JsonRefused

accepted = check.check_quickly


def compare_readings() -> None:
    """Read every fragment in both ways from now on, and raise AssertionError if the results differ."""
    pytest.MonkeyPatch().setattr(check, "check_quickly", _accept_if_equal)


def _accept_if_equal(state: CheckState, *pieces: bytes) -> CheckState | None:
    """Return the strict result if it has no faults, after comparing it with the quick result."""
    quick, whole = accepted(state, *pieces), _read_strictly(state, b"".join(pieces))
    if quick is not None and (whole is None or vars(quick) | {"strict": True} != vars(whole)):
        raise AssertionError(f"Two readings: {vars(quick)} and {None if whole is None else vars(whole)}")
    return None if whole is None or whole.faults else whole


def _read_strictly(state: CheckState, fragment: bytes) -> CheckState | None:
    try:
        return check.check_strictly(state, fragment)
    except JsonRefused:
        return None
