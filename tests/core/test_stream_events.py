"""Check the classes of stream events, their JSON and their schema."""

import json
from typing import Any, get_args

import jsonschema_rs
import pytest
from msgspec import Struct

from actors import events
from actors.core.stream_events.event_json import EVENT_TYPES
from actors.events import (
    SCHEMA,
    SessionEvent,
    SwitchAppliedEvent,
    TextEvent,
    ThinkingEvent,
    event_json,
    sse_frame,
)

KINDS = pytest.mark.parametrize("kind", EVENT_TYPES, ids=lambda kind: kind.__name__)


@KINDS
def test_the_type_of_an_event_is_its_tag_and_matches_its_class(kind: type[Struct]) -> None:
    words = kind.__struct_config__.tag
    assert getattr(kind, "type") == words  # noqa: B009  the base class of all structs has no such attribute
    assert "".join(word.title() for word in str(words).split("_")) + "Event" == kind.__name__
    assert kind.__struct_config__.frozen


@KINDS
def test_every_event_class_is_public_and_documented(kind: type[Struct]) -> None:
    assert getattr(events, kind.__name__) is kind
    assert kind.__doc__


def test_the_event_types_are_the_members_of_the_union() -> None:
    assert set(get_args(SessionEvent)) == set(EVENT_TYPES)


def data(frame: bytes) -> dict[str, Any]:  # Any: an event's fields
    value: dict[str, Any] = json.loads(frame.decode().partition("data: ")[2])  # Any: as above
    return value


@pytest.mark.parametrize("kind", [TextEvent, ThinkingEvent])
@pytest.mark.parametrize("text", ["", "a\n\nb", '"\u2028', "\ud800"])
def test_the_frame_of_a_delta_contains_the_same_json_as_event_json(
    kind: type[TextEvent | ThinkingEvent], text: str
) -> None:
    event = kind(text, 1, 2, 3)
    frame = sse_frame(event)
    assert frame.startswith(f"event: {event.type}\ndata: ".encode())
    assert frame.endswith(b"}\n\n")
    assert frame.count(b"\n") == 3
    assert data(frame) == json.loads(
        json.dumps({**event_json(event), "text": text.replace("\ud800", "\ufffd")})
    )
    assert jsonschema_rs.validator_for(SCHEMA).is_valid(data(frame))


def test_the_schema_rejects_an_unknown_field_and_another_version() -> None:
    judge, form = jsonschema_rs.validator_for(SCHEMA), event_json(SwitchAppliedEvent(3, 1, "a"))
    assert judge.is_valid(form)
    assert not judge.is_valid({**form, "detail": ""})
    assert not judge.is_valid({**form, "v": 2})
