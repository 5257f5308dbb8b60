"""Asks and events of sessions in Ray actors, with a stand-in for Ray."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from actors import Runtime, Session
from actors.config import Config, FileSettings, RuntimeLimits
from actors.errors import ConfigError, JournalUnavailable, KeyReused, RequestLost
from actors.events import SessionEvent
from actors.hosts import RayHosts, RouterLimits
from actors.hosts import ray_hosts as module
from actors.hosts.routing import MAX_LOST
from actors.testing import OpenAIServer, serve
from tests.hosts.fake_ray import FakeRay
from tests.hosts.support import answer, asked, open_storage
from tests.runtime_support import backend_at

pytestmark = pytest.mark.anyio

LEASE = 3600.0


@pytest.fixture(params=["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The backend of the test; Ray runs on asyncio."""
    name: str = request.param
    return name


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    """Replace Ray, and read the list of hosts more often."""
    found = FakeRay()
    monkeypatch.setattr(module, "import_module", {"ray": found}.__getitem__)
    monkeypatch.setattr("actors.hosts.directory.PERIOD", 0.02)
    return found


async def open_session(runtime: Runtime, name: str) -> Session:
    return await runtime.open("a", id=name, resume=True)


@asynccontextmanager
async def ray_hosts(
    folder: Path, *names: str, sessions: int = 1000, namespace: str = "n", waits: bool = True
) -> AsyncIterator[RayHosts]:
    """Run actors with a runtime each. `waits`: whether the block begins once all runtimes have been entered."""
    server = OpenAIServer(answer)

    def make_runtime(name: str) -> Runtime:
        limits = RuntimeLimits(sessions=sessions)
        config = Config(FileSettings(backends={"a": backend_at(server)}, limits=limits), {})
        return Runtime(config, journal=open_storage(str(folder / "sessions.db"), LEASE), seed=1, address=name)

    with anyio.fail_after(60):
        async with serve(server):
            limits, options = RouterLimits(exclusion_time=0.05), {"namespace": namespace}
            hosts = RayHosts(names, make_runtime, open_session, limits=limits, options=options)
            if waits:
                await hosts.wait_started()
            yield hosts
            await hosts.close()


def owner_of(hosts: RayHosts, session: str) -> str:
    found = hosts._table.owner(session)
    assert found is not None
    return found


async def test_sessions_are_placed_on_all_actors_and_stay_there(ray: FakeRay, tmp_path: Path) -> None:
    async with ray_hosts(tmp_path, "a", "b") as hosts:
        sessions = [f"s{number}" for number in range(12)]
        for text in ("one", "two"):
            async with anyio.create_task_group() as tasks:
                for session in sessions:
                    tasks.start_soon(partial(hosts.ask, session, text))
        counts = {host.address: host.sessions for host in await hosts.hosts()}
        assert sum(counts.values()) == len(sessions)
        assert all(counts.values())


async def test_an_ask_whose_answer_is_lost_is_repeated_with_the_same_key(
    ray: FakeRay, tmp_path: Path
) -> None:
    async with ray_hosts(tmp_path, "a", "b") as hosts:
        await hosts.ask("one", "Hello.")
        owner = ray.actors[owner_of(hosts, "one")]
        owner.lost_answers["ask"] = 1
        assert (await hosts.ask("one", "Again.")).text == "Answer to Again."
        keys = {
            arguments[1]["key"]
            for actor in ray.actors.values()
            for name, arguments in actor.calls
            if name == "ask" and arguments[1]["message"] == "Again."
        }
        assert len(keys) == 1
        runtime = await owner.instance._wait_runtime()  # type: ignore[attr-defined]  # the class of the actor
        assert asked(runtime, "one") == ["Hello.", "Again."]


@pytest.mark.parametrize("method", ["ask", "events"])
async def test_a_call_is_given_up_after_several_actors_did_not_answer(
    ray: FakeRay, tmp_path: Path, method: str
) -> None:
    """The first answer may have been lost before the actor received the call, so it does not count."""
    async with ray_hosts(tmp_path, "a", "b", "c") as hosts:
        await hosts.ask("one", "Hello.")
        for actor in ray.actors.values():
            actor.lost_answers[method] = 100
        events = hosts.events("one")
        with pytest.raises(RequestLost):
            await (hosts.ask("one", "Again.") if method == "ask" else anext(events))
        await events.aclose()
        answers = [100 - actor.lost_answers[method] for actor in ray.actors.values()]
        assert all(answers)
        assert sum(answers) == 1 + MAX_LOST
        for actor in ray.actors.values():
            actor.lost_answers.clear()
        assert (await hosts.ask("one", "Last.")).text == "Answer to Last."


async def test_an_ask_raises_its_error_unchanged(ray: FakeRay, tmp_path: Path) -> None:
    async with ray_hosts(tmp_path, "a") as hosts:
        await hosts.ask("one", "Hello.", key="k")
        with pytest.raises(KeyReused):
            await hosts.ask("one", "Another message.", key="k")


async def test_events_continue_at_the_next_owner_without_loss(ray: FakeRay, tmp_path: Path) -> None:
    async with ray_hosts(tmp_path, "a", "b") as hosts:
        await hosts.ask("one", "Hello.")
        first = owner_of(hosts, "one")
        other = next(name for name in ray.actors if name != first)
        runtime = await ray.actors[first].instance._wait_runtime()  # type: ignore[attr-defined]  # as above
        found = list[SessionEvent]()
        async with aclosing(hosts.events("one")) as events:
            async for event in events:
                found.append(event)
                if event.type == "complete":
                    if owner_of(hosts, "one") == other:
                        break
                    await runtime.hand_over("one", to=other)
                    await hosts.ask("one", "Again.")
        numbers = [event.seq for event in found if event.type in ("ask_started", "turn_ended", "complete")]
        assert numbers == sorted(numbers)
        assert [event.type for event in found].count("ask_started") == 2


async def test_an_actor_serves_more_sessions_than_may_be_open(ray: FakeRay, tmp_path: Path) -> None:
    async with ray_hosts(tmp_path, "a", sessions=2) as hosts:
        for number in range(5):
            await hosts.ask(f"s{number}", "Hello.")
        for number in range(5):
            async with aclosing(hosts.events(f"s{number}")) as events:
                assert [event.type async for event in until_complete(events)].count("ask_started") == 1
        (host,) = await hosts.hosts()
        assert host.sessions == 2


async def until_complete(events: AsyncIterator[SessionEvent]) -> AsyncIterator[SessionEvent]:
    async for event in events:
        yield event
        if event.type == "complete":
            return


async def test_an_actor_that_has_ended_is_left_out_and_an_actor_that_restarts_is_awaited(
    ray: FakeRay, tmp_path: Path
) -> None:
    async with ray_hosts(tmp_path, "a", "b") as hosts:
        ray.actors["b"].is_restarting = True
        await hosts.wait_started()
        await ray.actors["a"].leave.remote(100.0, 1.0)
        ray.kill(ray.actors["a"])
        for number in range(6):
            await hosts.ask(f"s{number}", "Hello.")
            assert owner_of(hosts, f"s{number}") == "b"
        assert [host.address for host in await hosts.hosts()] == ["b"]


async def test_an_actor_recreated_by_another_program_is_found_by_its_name(
    ray: FakeRay, tmp_path: Path
) -> None:
    async with ray_hosts(tmp_path, "a") as hosts:
        await hosts.ask("one", "Hello.")
        await ray.actors["a"].leave.remote(100.0, 1.0)
        ray.kill(ray.actors.pop("a"))
        async with ray_hosts(tmp_path, "a"):
            assert (await hosts.ask("one", "Again.")).text == "Answer to Again."
            assert [host.address for host in await hosts.hosts()] == ["a"]


async def test_close_ends_only_the_named_actors(ray: FakeRay, tmp_path: Path) -> None:
    async with ray_hosts(tmp_path, "b") as others:
        async with ray_hosts(tmp_path, "a") as hosts:
            for number in range(12):
                await hosts.ask(f"s{number}", "Hello.")
            assert {owner_of(hosts, f"s{number}") for number in range(12)} == {"a", "b"}
        assert [name for name, actor in ray.actors.items() if actor.has_ended.is_set()] == ["a"]
        await others.ask("s0", "Again.")


async def test_an_actor_enters_its_runtime_as_soon_as_the_journal_can_be_used(
    ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_DELAY", 0.01)
    folder = tmp_path / "later"
    async with ray_hosts(folder, "a", waits=False) as hosts:
        with pytest.raises(JournalUnavailable):
            await hosts.wait_started()
        folder.mkdir()
        assert (await hosts.ask("one", "Hello.")).text == "Answer to Hello."


def test_hosts_without_names_are_rejected(ray: FakeRay) -> None:
    def nothing(*_: object) -> object:
        raise AssertionError

    with pytest.raises(ConfigError, match="at least one actor"):
        RayHosts((), nothing, nothing)  # type: ignore[arg-type]  # never called
