"""`Runtime.journal` lists, finds, copies and deletes sessions; `Runtime` itself has no such methods."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest

from actors import Runtime, ToolContext, tool
from actors.errors import ConfigError, JournalUnavailable, KernelError, SessionUnknown
from actors.journal.commands import Append, CheckOwner, FindSession
from actors.journal.journal_actor import JournalActor
from actors.journal.storage import Appended, Entry, Storage
from actors.journal.storage.memory import MemoryStorage
from actors.kernel import SHARED, System
from actors.testing import Call, Say, Turn
from tests.journal.storages import STORAGES, begin, open_storage, to
from tests.runtime_support import openai, runtime_with

pytestmark = pytest.mark.anyio


@pytest.fixture(params=STORAGES)
def storage(request: pytest.FixtureRequest) -> Iterator[Storage]:
    storage = open_storage(request.param, request)
    storage.open()
    yield storage
    storage.close()


def write_closed_log(storage: Storage, session: str, tenant: str = "") -> None:
    """Write the log of a session that is not open anywhere."""
    storage.release(session, begin(storage, session, tenant=tenant).fence)


def stored_ids(storage: Storage) -> set[str]:
    return {each.id for each in storage.sessions()}


def test_the_runtime_class_does_not_duplicate_methods_of_its_journal() -> None:
    methods = {"list", "get", "export", "import_session", "fork", "backup", "delete", "vacuum"}
    runtime = Runtime()
    assert methods <= set(dir(runtime.journal))
    assert set(dir(runtime)) & (methods | {"stored", "forget", "erase", "purge"}) == set()


async def test_the_journal_requires_a_running_runtime() -> None:
    with pytest.raises(KernelError, match="not running"):
        await Runtime().journal.list()


async def test_a_session_is_found_by_its_id_and_an_unknown_id_is_an_error(storage: Storage) -> None:
    write_closed_log(storage, "one", "acme")
    async with runtime_with(a=openai(), storage=storage) as runtime:
        found = await runtime.journal.get("one")
        assert [found] == await runtime.journal.list()
        assert (found.id, found.tenant, found.events) == ("one", "acme", 1)
        await runtime.journal.delete("one")
        for unknown in ("one", "nobody"):
            with pytest.raises(SessionUnknown, match=unknown):
                await runtime.journal.get(unknown)


class Full(MemoryStorage):
    """A storage that refuses one append."""

    is_full = True

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        if self.is_full:
            self.is_full = False
            raise JournalUnavailable("the disk is full")
        return super().append(entries)


@pytest.mark.parametrize("command", [FindSession, CheckOwner])
async def test_writes_stay_blocked_after_a_refused_event_even_if_the_session_is_looked_up(
    command: type[FindSession | CheckOwner],
) -> None:
    storage = Full()
    fence = storage.claim("one").fence
    async with System() as system:
        journal = system.spawn(lambda: JournalActor(storage), "journal", depth=SHARED)
        for is_found in (False, True):
            if is_found:
                await journal.ask(command("one"))
            with pytest.raises(JournalUnavailable):
                await journal.ask(Append("one", fence, (to("b"),)))
        assert storage.read("one") == []


async def test_a_deletion_without_conditions_is_refused(storage: Storage) -> None:
    write_closed_log(storage, "one")
    async with runtime_with(a=openai(), storage=storage) as runtime:
        for dry_run in (False, True):
            with pytest.raises(ConfigError, match="without a condition, it would delete all sessions"):
                await runtime.journal.delete(dry_run=dry_run)
        assert stored_ids(storage) == {"one"}


async def test_only_sessions_that_meet_every_condition_are_deleted(storage: Storage) -> None:
    for name, tenant in (("one", "acme"), ("two", "acme"), ("three", "other"), ("four", "")):
        write_closed_log(storage, name, tenant)
    async with runtime_with(a=openai(), storage=storage) as runtime:
        journal = runtime.journal
        assert (await journal.delete("one", "three", tenant="acme")).sessions == ("one",)
        assert (await journal.delete("two", older_than=timedelta(days=1))).sessions == ()
        assert (await journal.delete(tenant="", older_than=timedelta(0))).sessions == ("four",)
        assert (await journal.delete("three", "three", "nobody")).sessions == ("three",)
        assert stored_ids(storage) == {"two"}


async def test_a_negative_age_limit_for_deletion_is_refused() -> None:
    async with runtime_with(a=openai()) as runtime:
        with pytest.raises(ConfigError, match="takes an age of 0 or more, not -1 day"):
            await runtime.journal.delete(older_than=timedelta(days=-1))


@tool
async def helper(context: ToolContext[None]) -> str:
    """Ask another session."""
    async with context.subagent("a") as child:
        return (await child.ask("Go.")).text


async def test_a_dry_run_lists_sessions_and_subagents_and_deletes_nothing() -> None:
    server = openai(Turn(Call("helper", {})), Turn(Say("120.")), Turn(Say("Done.")))
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", id="mine", tools=[helper])
        await session.ask("Go.")
        write_closed_log(runtime._storage, "other")
        planned = await runtime.journal.delete("mine", "nobody", dry_run=True)
        assert planned.sessions == ("mine", "mine-c1")
        assert stored_ids(runtime._storage) == {"mine", "mine-c1", "other"}
        assert list(runtime.sessions) == ["mine"]
        deletion = await runtime.journal.delete("mine", "nobody")
        assert set(deletion.sessions) == set(planned.sessions)
        assert stored_ids(runtime._storage) == {"other"}
