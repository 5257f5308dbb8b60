"""Check how each strict server validates output schemas and settings."""

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.strict.rules import validate
from actors.strict.rules.base import Mode
from tests.commands.at_scale import share
from tests.rules.answers import ROWS
from tests.rules.row import Row, encode_request

MODES: tuple[Mode, ...] = ("strict", "hosted")
JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, 1, "x", [], {}, True, [1], {"a": 1}, [{}], {"$ref": "#"}, {"$ref": 3}]
)


@settings(max_examples=share(2400), deadline=None)
@given(st.sampled_from(ROWS), st.data())
def test_strict_mode_rejects_every_request_that_hosted_mode_rejects(row: Row, data: st.DataObject) -> None:
    spoilt = copy.deepcopy(row.sound)
    at: Any = spoilt
    while isinstance(at, dict | list) and at:
        keys = list(at) if isinstance(at, dict) else range(len(at))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(at[key], dict | list) or not at[key] or data.draw(st.integers(0, 4)) == 0:
            at[key] = data.draw(JUNK)
            break
        at = at[key]
    strict, hosted = (validate(encode_request(spoilt), row.dialect, mode=mode) for mode in MODES)
    assert strict is not None or hosted is None
