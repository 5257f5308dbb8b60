"""The systemd unit: instances that report their state, and that are stopped, killed and restarted as systemd does."""

import math
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Self

import anyio
import pytest
from anyio.abc import UNIXDatagramSocket

from tests.deploy.conftest import Service
from tests.deploy.machines import (
    PACE,
    Clients,
    HostProcess,
    ReservedPort,
    sessions_by_address,
    times_in_logs,
)
from tests.deploy.manifests import KUBERNETES, UNIT, Unit, pod, unit

pytestmark = [pytest.mark.anyio, pytest.mark.alternating]

SESSIONS = [f"s{number}" for number in range(4)]
CLEAN = {0, -signal.SIGHUP, -signal.SIGINT, -signal.SIGTERM, -signal.SIGPIPE}
"""The exit statuses after which `Restart=on-failure` does not start a service again (systemd.service(5))."""
READINESS = pod(KUBERNETES, "Deployment").readiness


class Instance:
    """An instance of the unit, with the socket on which systemd receives its notifications."""

    def __init__(self, settings: Unit, process: HostProcess, socket: UNIXDatagramSocket) -> None:
        self.settings, self.host, self._socket = settings, process, socket
        self._sent, self._states = anyio.create_memory_object_stream[str](math.inf)

    @classmethod
    async def create(cls, service: Service, folder: Path, port: str, stack: AsyncExitStack) -> Self:
        """Create an instance, which is not running yet."""
        settings, path = unit(UNIT, port), folder / port
        socket = await stack.enter_async_context(await anyio.create_unix_datagram_socket(local_path=path))
        interval = float(settings["WatchdogSec"]) / PACE
        environ = {**service.secrets, **settings.environ, "CONFIG": str(service.config)}
        environ |= {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": str(int(interval * 1e6))}
        host = HostProcess(settings["ExecStart"].split(), environ, folder / f"{port}.log")
        stack.push_async_callback(host.kill)
        instance = cls(settings, host, socket)
        stack.callback(instance.close)
        return instance

    def close(self) -> None:
        """Close the buffer of notifications."""
        self._sent.close()
        self._states.close()

    async def start(self) -> None:
        """Start the instance. Return when systemd would: after `READY=1`."""
        self.host.start()
        with anyio.fail_after(float(self.settings["TimeoutStartSec"])):
            await self.receive("READY=1")

    async def receive(self, state: str) -> None:
        """Wait for a notification."""
        while await self._states.receive() != state:
            pass

    async def read(self) -> None:
        """Read the notifications as they arrive, as systemd does. A full socket would block the host."""
        async for data, _ in self._socket:
            self._sent.send_nowait(data.decode())

    async def wait_for_watchdog(self) -> None:
        """Return when the instance has sent no `WATCHDOG=1` for `WatchdogSec`."""
        interval = float(self.settings["WatchdogSec"]) / PACE
        is_alive = True
        while is_alive:
            is_alive = False
            with anyio.move_on_after(interval):
                await self.receive("WATCHDOG=1")
                is_alive = True

    def restarts_after(self, status: int) -> bool:
        """Return True if systemd starts the instance again after it has ended with this status."""
        assert self.settings["Restart"] == "on-failure"
        return status not in CLEAN


@asynccontextmanager
async def instances(service: Service, folder: Path) -> AsyncIterator[tuple[Instance, Instance]]:
    """Run two instances of the unit."""
    async with AsyncExitStack() as stack, anyio.create_task_group() as reading:
        ports = [stack.enter_context(ReservedPort()).number for _ in range(2)]
        first, second = [await Instance.create(service, folder, port, stack) for port in ports]
        async with anyio.create_task_group() as tasks:
            for instance in (first, second):
                reading.start_soon(instance.read)
                tasks.start_soon(instance.start)
        yield first, second
        reading.cancel_scope.cancel()


@pytest.mark.parametrize("service", ["sqlite"], indirect=True)
async def test_a_stopped_service_reports_its_state_and_moves_its_sessions(
    service: Service, tmp_path: Path
) -> None:
    async with instances(service, tmp_path) as (first, second):
        assert [await each.host.status(READINESS) for each in (first, second)] == [200, 200]
        clients = Clients([first.host.address])
        await clients.ask_all(SESSIONS)
        for _ in range(2):
            await first.receive("WATCHDOG=1")
        assert (first.settings["Type"], first.settings["KillMode"]) == ("notify", "mixed")
        first.host.send_signal(signal.Signals[first.settings["KillSignal"]])
        with anyio.fail_after(float(first.settings["TimeoutStopSec"])):
            await first.receive("STOPPING=1")
            assert await first.host.wait() == 0
        assert not first.restarts_after(0)
        assert await sessions_by_address(service.journal) == {second.host.address: len(SESSIONS)}
        clients.addresses = [second.host.address]
        await clients.ask_all(SESSIONS)
    times = await times_in_logs(service.journal, clients)
    assert times == dict.fromkeys(clients.answers, (1, 1))
    assert len(times) == 2 * len(SESSIONS)


@pytest.mark.parametrize(
    ("failure", "service"), [("killed", "sqlite"), ("stalled", "postgres")], indirect=["service"]
)
async def test_a_failed_service_is_restarted_and_continues_its_sessions(
    failure: str, service: Service, tmp_path: Path
) -> None:
    async with instances(service, tmp_path) as (first, second), anyio.create_task_group() as tasks:
        clients = Clients([first.host.address, second.host.address])
        await clients.ask_all(SESSIONS)
        service.provider.hold("Question s0/2.")
        tasks.start_soon(clients.ask, "s0")
        await service.provider.is_holding.wait()
        await (kill if failure == "killed" else stall)(first)
        service.provider.release()
        assert first.restarts_after(await first.host.wait())
        await first.start()
        await clients.ask_all(SESSIONS[1:])
    assert await times_in_logs(service.journal, clients) == dict.fromkeys(clients.answers, (1, 1))
    assert set(clients.answers.values()) == {1}


async def kill(instance: Instance) -> None:
    """Kill the process, as a user or the kernel does."""
    instance.host.send_signal(signal.SIGKILL)
    assert await instance.host.wait() == -signal.SIGKILL


async def stall(instance: Instance) -> None:
    """Stop the process until the watchdog ends it: systemd sends SIGABRT, and SIGCONT for a stopped process."""
    instance.host.send_signal(signal.SIGSTOP)
    await instance.wait_for_watchdog()
    instance.host.send_signal(signal.SIGABRT)
    instance.host.send_signal(signal.SIGCONT)
    with anyio.fail_after(float(instance.settings["TimeoutAbortSec"])):
        assert await instance.host.wait() == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in instance.host.output
