"""Retention: which sessions expire, when the clock is trusted, and that no byte of deleted data remains."""

import random
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import time

import anyio
import anyio.lowlevel
import pytest

from actors import Runtime, ToolContext, tool
from actors.config import Config, FileSettings
from actors.config.settings import JournalSettings
from actors.core.data.jsonio import Json
from actors.core.log.call_events import Failed, Returned
from actors.core.log.events import LogEvent, Opened, TurnPaused, TurnStarted
from actors.core.settings.values import parse_duration
from actors.core.values.identity import Binding, CallId
from actors.errors import ConfigError, JournalDamaged, SessionLeased
from actors.journal.storage import Entry, Storage
from actors.journal.storage.clock import ObservedClock, observe
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.sqlite import SqliteStorage
from actors.runtime.deletion import delete_unused
from actors.runtime.retention import DeleteUnused, Retention, delete_all
from actors.testing import Call, Say, Turn
from tests.journal.storages import begin, open_storage
from tests.runtime_support import openai, runtime_with

pytestmark = pytest.mark.anyio

DAY = 86_400
KEEP = 90 * DAY
BINDING = Binding("a", "openai_chat", "http://x", "", "m")


@pytest.fixture
def storage(kind: str, request: pytest.FixtureRequest, clock: "Clock") -> Iterator[Storage]:
    storage = open_storage(kind, request, clock)
    storage.open()
    yield storage
    storage.close()


class Clock:
    """The wall clock of every storage, of its server and of retention, with a monotonic clock beside it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now, self.observed = 1_800_000_000.0, 0.0
        patch.setattr("actors.journal.storage.postgres.hosts.server_time", lambda _: int(self.now))

    def __call__(self) -> float:
        return self.now

    def steady(self) -> float:
        """Return the monotonic time."""
        return self.observed

    def advance(self, seconds: float) -> None:
        """Advance both clocks."""
        self.now += seconds
        self.observed += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr("actors.runtime.retention.PAUSE", 0)
    return Clock(monkeypatch)


def deletion_of(runtime: Runtime) -> DeleteUnused:
    """Return the deletion of unused sessions of a runtime."""
    return runtime.journal._session_removal(runtime._running_host()).delete_unused


def retention(runtime: Runtime, clock: Clock) -> Retention:
    """Return the retention of a runtime, on this clock."""
    return Retention(runtime._running_host().journal, KEEP, deletion_of(runtime), clock, clock.steady)


def stored_ids(storage: Storage) -> list[str]:
    return sorted(each.id for each in storage.sessions())


def write_closed_log(storage: Storage, session: str, *events: LogEvent, tenant: str = "") -> None:
    """Write the log of a session that is not open anywhere."""
    claim = begin(storage, session, tenant=tenant)
    if events:
        storage.append([Entry(session, claim.fence, events)])
    storage.release(session, claim.fence)


async def sweep_monthly(clock: Clock, swept: Retention, count: int) -> list[int]:
    """Let months pass, with a sweep in each; return the number of deletions per sweep."""
    counts = []
    for _ in range(count):
        clock.advance(30 * DAY)
        counts.append(await swept.sweep())
    return counts


@pytest.mark.parametrize("kind", ["sqlite-process", "postgres"])
async def test_only_sessions_unused_for_the_retention_time_are_deleted(
    storage: Storage, clock: Clock
) -> None:
    large = Returned(CallId("c"), Json(b'"' + b"x" * 20_000 + b'"'))
    write_closed_log(storage, "old", large)
    write_closed_log(storage, "waits", TurnStarted(1, 1, BINDING), TurnPaused(1, ()))
    async with runtime_with(a=openai(*[Turn(Say("Yes."))] * 2), storage=storage) as runtime:
        swept = retention(runtime, clock)
        await runtime.open("a", id="open")
        assert await sweep_monthly(clock, swept, 2) == [0, 0]
        write_closed_log(storage, "new", large)
        assert await sweep_monthly(clock, swept, 2) == [0, 2]
        assert (stored_ids(storage), list(runtime.sessions)) == (["new", "open"], ["open"])
        assert storage.read("new")[1:] == [large]
        assert storage.claim("old").last == 0


@pytest.mark.parametrize("kind", ["memory"])
async def test_subagents_are_deleted_with_their_parent_at_any_age(storage: Storage, clock: Clock) -> None:
    for name, above in (("trip-c1", "key"), ("gone-c1", "other"), ("trip-c2", "")):
        fence = storage.claim(name).fence
        storage.append([Entry(name, fence, (Opened(name, "a", parent_key=above),))])
        storage.release(name, fence)
    fence = storage.claim("trip").fence
    storage.append([Entry("trip", fence, (Opened("trip", "a", key="key"),))])
    async with runtime_with(a=openai(), storage=storage) as runtime:
        swept = retention(runtime, clock)
        await sweep_monthly(clock, swept, 2)
        storage.append([Entry("trip", fence, (Failed(CallId("c")),))])
        storage.release("trip", fence)
        assert await sweep_monthly(clock, swept, 2) == [
            0,
            2,
        ]  # the session without a parent, and the one whose name only resembles a subagent's
        assert stored_ids(storage) == ["trip", "trip-c1"]
        await sweep_monthly(clock, swept, 2)
        assert stored_ids(storage) == []


async def test_a_session_of_another_host_is_kept_until_its_release(tmp_path: Path, clock: Clock) -> None:
    mine, theirs = (SqliteStorage(tmp_path / "sessions.db", clock=clock) for _ in range(2))
    write_closed_log(mine, "mine", tenant="t")
    begin(theirs, "theirs", tenant="t")
    write_closed_log(mine, "theirs-c1", tenant="t")
    async with runtime_with(a=openai(), storage=mine) as runtime:
        with pytest.raises(SessionLeased):
            await runtime.journal.delete("theirs")
        assert stored_ids(mine) == ["mine", "theirs", "theirs-c1"]
        assert await sweep_monthly(clock, retention(runtime, clock), 5) == [0, 0, 0, 2, 0]
        with pytest.raises(SessionLeased, match="'theirs' belongs to host"):
            await runtime.journal.delete(tenant="t")
        assert stored_ids(mine) == ["theirs"]
        theirs.close()
        assert len((await runtime.journal.delete(tenant="t")).sessions) == 1


async def sweep_hourly(clock: Clock, swept: Retention, count: int) -> list[int]:
    """Let hours pass, with a sweep in each; return the number of deletions per sweep."""
    counts = []
    for _ in range(count):
        clock.advance(3600)
        counts.append(await swept.sweep())
    return counts


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.parametrize("kind", ["memory", "sqlite-process", "postgres"])
@pytest.mark.parametrize("while_it_runs", [True, False])
@pytest.mark.parametrize("jump", [1, 30, 31, 32, 400])
async def test_after_a_forward_clock_jump_nothing_is_deleted_for_a_day_of_running_time(
    jump: int, while_it_runs: bool, storage: Storage, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async with runtime_with(a=openai(), storage=storage) as runtime:
        swept = retention(runtime, clock)
        await swept.sweep()
        await sweep_monthly(clock, swept, 1)
        write_closed_log(storage, "young")
        clock.advance(max(KEEP - jump * DAY, 0) + 3600)
        assert await swept.sweep() == 0
        caplog.clear()
        clock.now += jump * DAY
        if not while_it_runs:
            swept = retention(runtime, clock)
        assert await swept.sweep() == 0
        (line,) = [line for line in caplog.messages if "retention_waits" in line]
        assert "young" in line
        assert await sweep_hourly(clock, swept, 23) == [0] * 23
        assert stored_ids(storage) == ["young"]
        assert await sweep_hourly(clock, swept, 1) == [1]


@pytest.mark.parametrize("kind", ["memory", "sqlite-process"])
async def test_a_clock_set_back_and_restored_deletes_nothing_for_a_day_of_running_time(
    storage: Storage, clock: Clock
) -> None:
    async with runtime_with(a=openai(), storage=storage) as runtime:
        swept = retention(runtime, clock)
        await swept.sweep()
        await sweep_monthly(clock, swept, 1)
        clock.now -= 400 * DAY
        assert await swept.sweep() == 0
        write_closed_log(storage, "new")
        clock.now += 400 * DAY
        assert await swept.sweep() == 0
        assert await sweep_hourly(clock, swept, 23) == [0] * 23
        assert stored_ids(storage) == ["new"]


@pytest.mark.alternating
@pytest.mark.parametrize("kind", ["memory", "sqlite-process", "postgres"])
async def test_a_clock_jump_corrected_in_time_deletes_nothing(storage: Storage, clock: Clock) -> None:
    async with runtime_with(a=openai(), storage=storage) as runtime:
        swept = retention(runtime, clock)
        await swept.sweep()
        await sweep_monthly(clock, swept, 1)
        write_closed_log(storage, "young")
        for jump in (30, 400):
            clock.now += jump * DAY
            assert await sweep_hourly(clock, swept, 23) == [0] * 23
            clock.now -= jump * DAY
            assert await sweep_hourly(clock, swept, 48) == [0] * 48
        assert stored_ids(storage) == ["young"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["memory", "sqlite-process"])
@pytest.mark.parametrize("up", [2, 16, 23])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the clock is the test's own
async def test_a_host_restarted_daily_deletes_expired_sessions(
    up: int, storage: Storage, clock: Clock
) -> None:
    async with runtime_with(a=openai(), storage=storage) as runtime:
        write_closed_log(storage, "old")
        deleted_on = list[int]()
        for day in range(140):
            swept = retention(runtime, clock)
            counts = [await swept.sweep(), *await sweep_hourly(clock, swept, up)]
            deleted_on += [day] * sum(counts)
            if deleted_on:
                break
            clock.now += (24 - up) * 3600
        (day,) = deleted_on
        assert 90 <= day <= 90 + 24 / up + 1


async def test_the_delete_command_deletes_sessions_even_if_the_clock_is_doubtful(
    clock: Clock, tmp_path: Path
) -> None:
    storage = SqliteStorage(tmp_path / "sessions.db", clock=clock)
    write_closed_log(storage, "old")
    clock.now += 400 * DAY
    async with runtime_with(a=openai(), storage=storage) as runtime:
        assert await retention(runtime, clock).sweep() == 0
        assert (
            len(
                (
                    await runtime.journal.delete(older_than=datetime.fromtimestamp(clock.now - KEEP, UTC))
                ).sessions
            )
            == 1
        )


async def test_a_postgres_sweep_uses_the_clock_of_the_server(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage("postgres", request)
    write_closed_log(storage, "young")
    ahead, steady = time() + 400 * DAY, iter(range(0, 10 * DAY, DAY))
    async with runtime_with(a=openai(), storage=storage) as runtime:
        journal, delete = runtime._running_host().journal, deletion_of(runtime)
        swept = Retention(journal, KEEP, delete, lambda: ahead, lambda: next(steady))
        assert [await swept.sweep() for _ in range(5)] == [0] * 5
        assert abs(storage.record_clock(int(ahead), 0).last - time()) < DAY
    storage.close()


async def test_a_host_clock_behind_the_server_deletes_nothing_early(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind = time() - 400 * DAY
    storage = open_storage("postgres", request, lambda: behind)
    write_closed_log(storage, "young")
    steady = iter(range(0, 10 * DAY, DAY))
    async with runtime_with(a=openai(), storage=storage) as runtime:
        storage.record_clock(int(behind), 0)
        for day in range(1, 3):  # both days were observed
            storage.record_clock(int(behind) + day * DAY, day * DAY)
        journal, delete = runtime._running_host().journal, deletion_of(runtime)
        swept = Retention(journal, KEEP, delete, lambda: behind, lambda: next(steady))
        assert [await swept.sweep() for _ in range(5)] == [0] * 5
        assert storage.record_clock(int(behind), 0).last == int(behind)
    storage.close()


def test_time_without_a_running_host_counts_only_after_a_day_of_running_time() -> None:
    first = observe(None, 10**9, 0)
    assert (first.earliest_now, first.seconds_of_doubt) == (0, DAY)
    assert observe(first, 10**9 + DAY - 1, DAY - 1).earliest_now < DAY
    known = observe(first, 10**9 + DAY, DAY)
    assert (known.earliest_now, known.seconds_of_doubt) == (known.last, 0)
    assert observe(known, known.last + 300, 0).gaps == ()
    assert observe(known, known.last + 301, 0).earliest_now == known.last
    assert observe(known, known.last - 301, 3600) == (known.last - 301, DAY, ())


def test_many_restarts_leave_few_recorded_clock_gaps_and_count_no_time_early() -> None:
    clock, down = ObservedClock(10**9, 0), 0
    for _ in range(5_000):
        clock = observe(clock, clock.last + 1000, 0)
        clock, down = observe(clock, clock.last + 60, 60), down + 1000
        assert len(clock.gaps) <= 26
        assert clock.last - clock.earliest_now >= min(down, 1439 * 1000)


async def test_a_runtime_with_a_retention_time_deletes_expired_sessions_automatically(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = SqliteStorage(tmp_path / "sessions.db", durability="process", clock=clock)
    write_closed_log(storage, "old")
    storage.record_clock(int(clock.now), 0)
    clock.now += 20 * DAY
    write_closed_log(storage, "new")
    storage.record_clock(int(clock.now), 20 * DAY)
    clock.now += 11 * DAY
    storage.record_clock(int(clock.now), 11 * DAY)
    storage.close()
    monkeypatch.setattr("actors.runtime.retention.Retention", partial(Retention, clock=clock))
    settings = FileSettings(journal=JournalSettings.model_validate({"retention": "30 days"}))
    with anyio.fail_after(60):
        async with Runtime(Config(settings, {}), journal=storage) as runtime:
            while len(await runtime.journal.list()) > 1:
                await anyio.lowlevel.checkpoint()
            assert [each.id for each in await runtime.journal.list()] == ["new"]


@tool
async def helper(context: ToolContext[None]) -> str:
    """Ask another session."""
    async with context.subagent("a") as child:
        return (await child.ask("Go.")).text


async def test_deleting_a_tenant_deletes_its_sessions_and_their_subagents(clock: Clock) -> None:
    server = openai(Turn(Call("helper", {})), Turn(Say("120.")), Turn(Say("Done.")), Turn(Say("Hi.")))
    async with runtime_with(a=server) as runtime:
        mine = await runtime.open("a", id="mine", tenant="m", tools=[helper])
        await mine.ask("Go.")
        await runtime.open("a", id="other", tenant="o")
        write_closed_log(runtime._storage, "closed", tenant="m")
        assert stored_ids(runtime._storage) == ["closed", "mine", "mine-c1", "other"]
        assert len((await runtime.journal.delete(tenant="m")).sessions) == 3
        assert stored_ids(runtime._storage) == ["other"]
        assert list(runtime.sessions) == ["other"]
        with pytest.raises(ConfigError, match=r"needs ids, tenant= or older_than="):
            await runtime.journal.delete()


async def test_an_explicit_cutoff_time_needs_no_clock(clock: Clock) -> None:
    async with runtime_with(a=openai(), storage=MemoryStorage(clock=clock)) as runtime:
        for name in ("one", "two", "three"):
            write_closed_log(runtime._storage, name, tenant=name[0])
            clock.now += DAY
        third = datetime.fromtimestamp(clock.now - DAY, UTC)
        assert len((await runtime.journal.delete(tenant="o", older_than=third)).sessions) == 1
        assert len((await runtime.journal.delete(older_than=third)).sessions) == 1
        assert stored_ids(runtime._storage) == ["three"]


@pytest.mark.parametrize("kind", ["sqlite-process"])
async def test_other_sessions_run_between_two_deletions(storage: Storage) -> None:
    async with runtime_with(a=openai(*[Turn(Say("Yes."))] * 3), storage=storage) as runtime:
        session = await runtime.open("a", id="other")
        for number in range(3):
            write_closed_log(storage, f"s{number}", tenant="t")

        async def delete(name: str, before: float | None) -> Collection[str]:
            deleted = await runtime.journal._session_removal(runtime._running_host()).delete(name, before)
            assert (await session.ask("Well?")).text == "Yes."
            return deleted

        deletion = await delete_all(runtime._running_host().journal, delete, (), "t", None)
        assert sorted(deletion.sessions) == ["s0", "s1", "s2"]
        assert stored_ids(storage) == ["other"]


@pytest.mark.parametrize("kind", ["sqlite-process"])
async def test_a_session_used_after_the_listing_is_not_deleted(storage: Storage, clock: Clock) -> None:
    async with runtime_with(a=openai(Turn(Say("Yes."))), storage=storage) as runtime:
        for name in ("old", "used"):
            write_closed_log(storage, name)
        clock.now += 2 * DAY

        async def delete(name: str, before: float | None) -> Collection[str]:
            if "used" not in runtime.sessions:
                session = await runtime.resume("used", target="a")
                assert (await session.ask("Well?")).text == "Yes."
            return await runtime.journal._session_removal(runtime._running_host()).delete(name, before)

        deletion = await delete_all(runtime._running_host().journal, delete, (), None, clock.now - DAY)
        assert deletion.sessions == ("old",)
        assert stored_ids(storage) == ["used"]
        assert "used" in runtime.sessions


async def test_a_session_with_an_active_subagent_is_not_deleted(clock: Clock) -> None:
    server = openai(Turn(Call("helper", {})), Turn(Say("120.")), Turn(Say("Done.")))
    async with runtime_with(a=server) as runtime:
        mine = await runtime.open("a", id="mine", tools=[helper])
        await mine.ask("Go.")
        await mine.close()
        journal, asked = runtime._running_host().journal, list[list[str]]()
        throttle = runtime._running_host().readers.throttle
        (entry,) = [each for each in await runtime.journal.list() if each.id == "mine"]
        unused = {"mine": entry.events}

        def reserve(names: Sequence[str]) -> bool:
            asked.append(sorted(names))
            return len(asked) > 1

        assert await delete_unused(journal, unused, reserve, throttle) == []
        assert stored_ids(runtime._storage) == ["mine", "mine-c1"]
        assert sorted(await delete_unused(journal, unused, reserve, throttle)) == ["mine", "mine-c1"]
        assert asked == [["mine", "mine-c1"]] * 2


class Stuck(MemoryStorage):
    """A storage that cannot delete one session."""

    def delete(self, *sessions: str) -> None:
        if "s1" in sessions:
            raise JournalDamaged("not now")
        super().delete(*sessions)


async def test_a_failed_deletion_does_not_block_other_deletions(clock: Clock) -> None:
    storage = Stuck()
    async with runtime_with(a=openai(), storage=storage) as runtime:
        for number in range(3):
            write_closed_log(storage, f"s{number}", tenant="t")
        with pytest.raises(JournalDamaged, match="not now"):
            await runtime.journal.delete(tenant="t")
        assert stored_ids(storage) == ["s1"]
        assert storage.sessions()[0].owner is None
        assert await sweep_monthly(clock, retention(runtime, clock), 5) == [0] * 5


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


@pytest.mark.parametrize("seed", range(3))
async def test_no_file_contains_a_byte_of_deleted_sessions(tmp_path: Path, seed: int) -> None:
    """SQLite overwrites deleted rows, but a page that it splits or merges may keep moved copies."""
    chance, storage = random.Random(seed), SqliteStorage(tmp_path / "sessions.db", durability="process")
    names = [f"s{number}" for number in range(12)]
    fences = {name: begin(storage, name, tenant=f"t{number % 2}").fence for number, name in enumerate(names)}
    for _ in range(150):
        entries = []
        for name in chance.choices(names, k=3):
            words = f"words-of-{name}-".encode() * chance.choice([1, 3, 40, 200, 2000])
            entries.append(Entry(name, fences[name], (Failed(CallId("c"), Json(b'"' + words + b'"')),)))
        storage.append(entries)
    for name in names:
        storage.release(name, fences[name])
    async with runtime_with(a=openai(), storage=storage) as runtime:
        assert len((await runtime.journal.delete(tenant="t1")).sessions) == 6
        data = contents(tmp_path)
        assert [name for name in names[1::2] if f"words-of-{name}-".encode() in data] == []
        for name in names[::2]:
            assert len(storage.read(name)) > 1
    assert "words-of-s0-" in repr(storage.read("s0"))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90 days", 90 * DAY), ("1 day", DAY), ("12h", 43_200), ("2 weeks", 14 * DAY), ("5 minutes", 300)],
)
def test_a_duration_is_written_as_a_number_and_a_unit(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "90", "0 days", "-1 days", "1.5 days", "3 months", "days", "1 d ay"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="as '90 days'"):
        parse_duration(text)
