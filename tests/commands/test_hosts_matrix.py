"""A sample of `python -m tests.commands.hosts_matrix`, and the figures that it computes."""

import anyio
import pytest

from tests.commands.hosts_matrix.figures import (
    AskRecord,
    is_even,
    movement_times,
    percentile,
    take_over_times,
)
from tests.commands.hosts_matrix.matrix import Size, run_case, temporary_journal


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_every_ask_is_answered_once_while_a_killed_host_is_replaced() -> None:
    with temporary_journal(postgres=False) as journal, anyio.fail_after(100):
        line = await run_case("replace", journal, Size(hosts=2, sessions=4))
    assert "each once, no error" in line


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_ask_copied_to_several_hosts_causes_one_turn_while_a_host_is_killed() -> None:
    with temporary_journal(postgres=False) as journal, anyio.fail_after(100):
        line = await run_case("repeat", journal, Size(hosts=2, sessions=4, asks=20))
    assert "each once, no error" in line


def test_the_duration_of_a_take_over_ends_with_the_first_answer_of_another_host() -> None:
    records = [
        AskRecord("s", 0.0, 0.5, via="b", host="a"),
        AskRecord("other", 0.0, 0.5, via="b", host="b"),
        AskRecord("s", 0.9, 1.1, via="b", host="a"),  # answered before the host ended
        AskRecord("other", 0.9, 1.2, via="b", host="b"),
        AskRecord("s", 1.2, 3.0, via="b", host="b"),
        AskRecord("s", 3.0, 4.0, via="b", host="b"),
    ]
    assert take_over_times(records, "a", 1.0) == [2.0]


def test_a_restarted_host_takes_over_its_own_sessions() -> None:
    records = [AskRecord("s", 0.0, 0.5, via="a", host="a"), AskRecord("s", 2.0, 3.0, via="a", host="a")]
    assert take_over_times(records, "a", 1.0) == [2.0]


@pytest.mark.parametrize("host", ["a", "b"])
def test_a_request_that_waited_for_the_suspended_host_itself_does_not_count_as_a_take_over(host: str) -> None:
    records = [
        AskRecord("s", 0.0, 0.5, via="b", host="a"),
        AskRecord("s", 0.6, 9.0, via="a", host=host),
        AskRecord("s", 9.0, 9.5, via="b", host=host),
    ]
    assert take_over_times(records, "a", 1.0) == []


def test_a_movement_takes_as_long_as_the_first_ask_that_the_new_host_answers() -> None:
    records = [
        AskRecord("s", 0.0, 1.0, via="a", host="a"),
        AskRecord("t", 0.0, 2.0, via="a", host="b"),
        AskRecord("s", 1.0, 1.5, via="a", host="b"),
        AskRecord("t", 2.0, 9.0, via="a", host="b"),
    ]
    assert movement_times(records) == [0.5]


def test_the_load_counts_as_even_if_it_stays_within_a_fifth_of_the_mean() -> None:
    assert is_even([8, 10, 12])
    assert not is_even([7, 11, 12])


def test_a_percentile_is_always_one_of_the_measured_values() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([1.0], 0.99) == 1.0
