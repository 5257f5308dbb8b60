"""The Kubernetes manifests: hosts that are started, probed, terminated and killed as kubelet does."""

import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from tests.deploy.conftest import Service
from tests.deploy.machines import (
    BETWEEN,
    Clients,
    HostProcess,
    ReservedPort,
    sessions_by_address,
    times_in_logs,
)
from tests.deploy.manifests import KUBERNETES, STATEFULSET, Pod, pod

pytestmark = [pytest.mark.anyio, pytest.mark.alternating]

SESSIONS = [f"s{number}" for number in range(6)]
LAST = SESSIONS[-1]
DEPLOYMENT, STATEFUL = (KUBERNETES, "Deployment"), (STATEFULSET, "StatefulSet")


@asynccontextmanager
async def pods(spec: Pod, service: Service, folder: Path) -> AsyncIterator[tuple[HostProcess, HostProcess]]:
    """Run two pods of a manifest, which are ready."""
    async with AsyncExitStack() as stack:
        hosts = list[HostProcess]()
        for name in ("assistants-0", "assistants-1"):
            port = stack.enter_context(ReservedPort()).number
            fields = {"status.podIP": "127.0.0.1", "metadata.name": name}
            environ = spec.environment(fields, PORT=port, CONFIG=str(service.config))
            hosts.append(HostProcess(spec.command, {**service.secrets, **environ}, folder / name))
            stack.push_async_callback(hosts[-1].kill)
        for host in hosts:
            host.start()
        for host in hosts:
            await host.wait_for_success(spec.startup)
            await host.wait_for_success(spec.readiness)
        first, second = hosts
        yield first, second


async def open_sessions(first: HostProcess, second: HostProcess) -> Clients:
    """Ask one question in each session at the first host. After that, clients know both hosts."""
    clients = Clients([first.address])
    await clients.ask_all(SESSIONS)
    clients.addresses = [second.address, first.address]
    return clients


async def assert_each_ask_was_answered_once(service: Service, clients: Clients, *interrupted: str) -> None:
    """Check the clients, the logs, and the provider, which gets a second request only for an interrupted ask."""
    times = await times_in_logs(service.journal, clients)
    assert clients.answers == dict.fromkeys(times, 1)
    assert times == dict.fromkeys(times, (1, 1))
    assert service.provider.requests == {text: 1 + (text in interrupted) for text in times}


@pytest.mark.parametrize(
    ("manifest", "service"),
    [(DEPLOYMENT, "postgres"), (STATEFUL, "sqlite")],
    ids=["deployment", "statefulset"],
    indirect=["service"],
)
async def test_a_terminated_pod_moves_its_sessions_before_it_ends(
    manifest: tuple[Path, str], service: Service, tmp_path: Path
) -> None:
    spec = pod(*manifest)
    async with pods(spec, service, tmp_path) as (first, second), anyio.create_task_group() as tasks:
        clients = await open_sessions(first, second)
        assert await sessions_by_address(service.journal) == {first.address: 6, second.address: 0}
        service.provider.hold(f"Question {LAST}/2.")
        tasks.start_soon(clients.ask, LAST)
        await service.provider.is_holding.wait()
        async with anyio.create_task_group() as asking:
            stop = anyio.Event()
            for name in SESSIONS[:3]:
                asking.start_soon(ask_until, stop, clients, name)
            await terminate(spec, first)
            assert await first.first_failure(spec.readiness) == 503
            await wait_for_sessions(service, second.address, 5)
            assert (await first.status(spec.liveness), clients.asks[LAST]) == (200, 2)
            assert f"Question {LAST}/2." not in clients.answers
            service.provider.release()
            with anyio.fail_after(spec.grace - 5):
                assert await first.wait() == 0
            stop.set()
        assert await sessions_by_address(service.journal) == {second.address: 6}
        await clients.ask_all(SESSIONS)
        assert min(clients.asks[name] for name in SESSIONS[:3]) > 2
        await assert_each_ask_was_answered_once(service, clients)


async def ask_until(stop: anyio.Event, clients: Clients, name: str) -> None:
    """Ask question after question in a session, until an event is set."""
    while not stop.is_set():
        await clients.ask(name)


async def terminate(spec: Pod, host: HostProcess) -> None:
    """Run the command of `preStop`, during which the host must stay ready, and then send SIGTERM."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(anyio.run_process, [*spec.pre_stop], check=True))
        assert await host.status(spec.readiness) == 200
    host.send_signal(signal.SIGTERM)


async def wait_for_sessions(service: Service, address: str, count: int) -> None:
    """Wait until a host owns this number of sessions."""
    while (await sessions_by_address(service.journal)).get(address) != count:  # noqa: ASYNC110  in the journal
        await anyio.sleep(BETWEEN)


@pytest.mark.parametrize(
    ("failure", "service"), [("killed", "postgres"), ("stopped", "sqlite")], indirect=["service"]
)
async def test_a_failed_container_that_is_started_again_continues_its_sessions(
    failure: str, service: Service, tmp_path: Path
) -> None:
    spec = pod(*DEPLOYMENT)
    async with pods(spec, service, tmp_path) as (first, second), anyio.create_task_group() as tasks:
        clients = await open_sessions(first, second)
        interrupted = f"Question {LAST}/2."
        service.provider.hold(interrupted)
        tasks.start_soon(clients.ask, LAST)
        await service.provider.is_holding.wait()
        if failure == "killed":
            first.send_signal(signal.SIGKILL)
        else:
            first.send_signal(signal.SIGSTOP)
            await fail_liveness(spec, first)
        assert await first.wait() == -signal.SIGKILL
        service.provider.release()
        first.start()
        await first.wait_for_success(spec.startup)
        await first.wait_for_success(spec.readiness)
        await clients.ask_all(SESSIONS[:-1])
    await assert_each_ask_was_answered_once(service, clients, interrupted)


async def fail_liveness(spec: Pod, host: HostProcess) -> None:
    """Probe until the liveness probe has failed; then end the container as kubelet does, with the probe's own grace."""
    await host.wait_for_failures(spec.liveness)
    host.send_signal(signal.SIGTERM)
    assert spec.liveness.grace is not None
    with anyio.move_on_after(spec.liveness.grace):
        await host.wait()
    host.send_signal(signal.SIGKILL)
