"""Check how fragments are assigned to calls by index, id and name."""

import pytest

from actors.adapters.calls import Slot, slot_of, without_placeholder
from actors.adapters.codec import decode
from actors.core.dialects.profiles import OPENAI_CHAT
from actors.core.values.content import Message
from actors.core.values.stream import CallStarted
from tests.adapters.wire_streams import calls, chunk, fragment, openai_stream, run


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ("call_1", "call_1"),
        (" call 1 ", " call 1 "),
        (7, "7"),
        ("nullable", "nullable"),
        *((value, "") for value in ("null", "None", "NONE", "undefined", "", " ", None, True, 1.5)),
    ],
)
def test_placeholder_and_blank_call_ids_are_ignored(value: object, word: str) -> None:
    assert without_placeholder(value) == word


@pytest.mark.parametrize(
    ("index", "slot"),
    [
        (0, 0),
        (3, 3),
        ("3", 3),
        (" 3", 3),
        ("b", "b"),
        (3.0, 3),
        (3.5, None),
        ("", None),
        (None, None),
        (True, None),
    ],
)
def test_the_index_of_a_call_may_be_a_string(index: object, slot: Slot) -> None:
    assert slot_of(index) == slot


@pytest.mark.parametrize("name", ["f", None])
def test_argument_fragments_with_different_ids_belong_to_one_call(name: str | None) -> None:
    first, second, third = '{"a":', "[1,", "2]}"
    fragments = [fragment(0, "x", "f", first), fragment(0, "y", name, second), fragment(0, "z", name, third)]
    events, message = run(
        decode(OPENAI_CHAT), [openai_stream(*map(calls, fragments), chunk({}, "tool_calls"))]
    )
    assert isinstance(message, Message)
    assert [call.arguments for call in message.calls] == [{"a": [1, 2]}]
    assert sum(isinstance(event, CallStarted) for event in events) == 1


def test_an_object_inside_a_string_is_not_parsed_as_arguments() -> None:
    for index in (0, None):
        texts = ('{"command":"before ', "{}", ' after"}')
        fragments = [fragment(index, "x", "f"), *(fragment(index, text=text) for text in texts)]
        _, message = run(
            decode(OPENAI_CHAT), [openai_stream(*map(calls, fragments), chunk({}, "tool_calls"))]
        )
        assert isinstance(message, Message)
        assert [call.arguments for call in message.calls] == [{"command": "before {} after"}]
