"""A record of an older version is read as the same event of the present one."""

from typing import Any

import pytest
from msgspec import msgpack

from actors.core.log import events, upgrades
from actors.core.log.codec import decode_event, encode_event
from actors.core.log.events import Closed, SwitchApplied
from actors.errors import JournalError

NEW = SwitchApplied("b", held=True)


def older(name: str, *fields: Any) -> bytes:  # Any: what msgpack can say
    """Return a record of the version before the first, which had one word less, and another name for an event."""
    return msgpack.encode([events.VERSION - 1, [name, *fields]])


def renamed(event: list[Any]) -> list[Any]:  # Any: as above
    if event[0] == "switched":
        return ["switch_applied", event[1], event[2] == "held"]
    return event


@pytest.fixture(autouse=True)
def step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrades, "STEPS", dict.fromkeys(range(1, events.VERSION), renamed))


def test_an_older_record_is_read_as_the_event_that_it_is_now() -> None:
    assert decode_event(older("switched", "b", "held")) == NEW
    assert decode_event(older("closed", "over")) == Closed("over")
    assert decode_event(encode_event(NEW)) == NEW


def test_an_older_record_is_judged_as_strictly_as_a_new_one() -> None:
    with pytest.raises(JournalError, match=r"switch_applied\.target"):
        decode_event(older("switched", 7, "held"))
    with pytest.raises(JournalError, match="older version"):
        decode_event(older("switched"))


@pytest.mark.parametrize("version", [events.VERSION + 1, 0, "1", None, True])
def test_a_version_that_nobody_knows_is_refused(version: object) -> None:
    with pytest.raises(JournalError):
        decode_event(msgpack.encode([version, ["closed", ""]]))
