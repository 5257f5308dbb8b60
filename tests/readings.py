"""Every fragment that a test has judged is read in both ways, which must come to the same."""

import pytest

from actors.core import check
from actors.core.check import CheckState
from actors.core.data.jsonio import JsonRefused

accepted = check.extend_quickly


def compare_readings() -> None:
    """From now on, read every fragment in both ways, and raise AssertionError where they disagree."""
    pytest.MonkeyPatch().setattr(check, "extend_quickly", _compared)


def _compared(state: CheckState, *pieces: bytes) -> CheckState | None:
    """Return the state after the strict reading, if it finds no fault."""
    quick, whole = accepted(state, *pieces), _strict(state, b"".join(pieces))
    if quick is not None and (whole is None or vars(quick) | {"strict": True} != vars(whole)):
        raise AssertionError(f"Two readings: {vars(quick)} and {None if whole is None else vars(whole)}")
    return None if whole is None or whole.faults else whole


def _strict(state: CheckState, fragment: bytes) -> CheckState | None:
    try:
        return check.extend_strictly(state, fragment)
    except JsonRefused:
        return None
