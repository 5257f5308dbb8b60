"""Check persistent histories and tables: older versions never change and newer ones share their data."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.data.persistent import NOTHING, PersistentMap
from actors.core.history.history import History, replace_messages
from actors.core.ledger import Ledger
from actors.core.log.call_events import Scheduled
from actors.core.values.content import Message, Text, ToolCall, ToolResult
from actors.core.values.identity import CallId
from actors.core.values.packed import pack, unpack
from tests.core.session_log import examples
from tests.generated.strategies import messages

SAID = [Message("user", [Text(str(number))]) for number in range(6)]


@examples(200)
@given(messages())
def test_a_message_is_equal_after_packing_and_unpacking(message: Message) -> None:
    assert unpack(pack(message)) == message


def test_packing_a_message_replaces_lone_surrogates_in_ids_and_names() -> None:
    message = Message("assistant", [ToolCall("\ud800", "r\udc00", raw="{\ud800"), ToolResult("\ud800", "x")])
    call, result = unpack(pack(message)).blocks
    assert call == ToolCall("\ufffd", "r\ufffd", raw="{\ufffd")
    assert result == ToolResult("\ufffd", "x")


def test_appending_returns_a_new_history_and_keeps_the_old_history() -> None:
    old = History(SAID[:2])
    new = old.append(*SAID[2:4])
    fork = old.append(SAID[5])
    assert list(old) == SAID[:2]
    assert list(new) == SAID[:4]
    assert list(fork) == [*SAID[:2], SAID[5]]
    assert old.append() is old


def test_slices_and_equality_of_a_shorter_history_ignore_later_messages() -> None:
    whole = History(SAID)
    assert list(whole.upto(3)) == list(whole[:3]) == SAID[:3]
    assert whole.since(4) == SAID[4:]
    assert whole.upto(4).since(4) == []
    assert whole.upto(3) == History(SAID[:3])
    assert whole.upto(3) != whole
    assert (whole[-1], whole[0], len(whole.upto(99))) == (SAID[5], SAID[0], 6)
    assert list(whole.upto(3).append(SAID[0])) == [*SAID[:3], SAID[0]]
    with pytest.raises(IndexError):
        whole.upto(3)[3]


def test_equality_and_inequality_of_histories_agree() -> None:
    ledgers = [Ledger().apply(Scheduled(CallId("c"), "read")) for _ in range(2)]
    for one, same in (ledgers, [History(SAID), History(SAID)]):
        assert one == same
        assert not one != same  # noqa: SIM202  this is what is tested
    assert ledgers[0] != Ledger()
    assert History(SAID) != History(SAID[:2])


@pytest.mark.parametrize(("start", "stop"), [(0, 6), (0, 1), (2, 4), (6, 6)])
def test_compaction_replaces_a_range_with_its_summary(start: int, stop: int) -> None:
    summary = Message("user", [Text("summary")])
    whole = History(SAID)
    assert list(replace_messages(whole, start, stop, pack(summary))) == [*SAID[:start], summary, *SAID[stop:]]
    assert list(whole) == SAID


steps = st.lists(
    st.tuples(st.integers(0, 20), st.dictionaries(st.sampled_from("abcd"), st.integers(), max_size=3)),
    max_size=25,
)


@examples(300)
@given(steps)
def test_older_versions_of_a_persistent_table_keep_their_items(log: list[tuple[int, dict[str, int]]]) -> None:
    tables, dicts = [PersistentMap[str, int]()], [dict[str, int]()]
    for which, changes in log:
        origin = which % len(tables)
        tables.append(tables[origin].update(changes))
        dicts.append({**dicts[origin], **changes})
    for table, expected in zip(tables, dicts, strict=True):
        assert dict(table.items()) == expected
        assert {key: table.get(key) for key in "abcd"} == {key: expected.get(key) for key in "abcd"}
        assert [key in table for key in "abcd"] == [key in expected for key in "abcd"]
        assert (len(table), set(table)) == (len(expected), set(expected))


def test_persistent_tables_are_equal_if_their_items_are_equal() -> None:
    one = PersistentMap({"a": 1})
    two = one.update({"b": 2})
    assert one == PersistentMap({"a": 1})
    assert two == PersistentMap({"a": 1, "b": 2}) != one
    assert one.get("b", "absent") == "absent"
    assert two.update({}) is two


def test_building_tables_from_the_empty_persistent_table_leaves_the_empty_table_unchanged() -> None:
    one, two = NOTHING.update({"a": 1}), NOTHING.update({"b": 2})
    assert (dict(one.items()), dict(two.items()), len(NOTHING)) == ({"a": 1}, {"b": 2}, 0)
    assert one.update({"c": 3}).get("a") == 1


@pytest.mark.parametrize("kind", [PersistentMap, History])
def test_histories_and_tables_are_unhashable(kind: Callable[[], object]) -> None:
    with pytest.raises(TypeError):
        hash(kind())
