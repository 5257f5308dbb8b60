"""The program of a host: it stops in order although its journal fails, and it rejects invalid requests."""

import asyncio
import runpy
import signal
import sqlite3
from collections.abc import Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from actors import Runtime
from actors.errors import JournalError
from actors.journal.storage.directory import Movement
from actors.journal.storage.sqlite import SqliteStorage
from tests.deploy.conftest import Service
from tests.deploy.machines import HostProcess, ReservedPort, sessions_by_address
from tests.deploy.manifests import FOLDER, KUBERNETES, pod

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]  # uvicorn runs on asyncio


class LockedRuntime(Runtime):
    """A runtime whose journal another process locks, until `drain` has failed `failures` times."""

    failures = 1
    errors = 0
    lock: sqlite3.Connection

    async def drain(self, *, rate: float = 10.0, timeout: float = 30.0) -> Movement:
        try:
            return await super().drain(rate=rate, timeout=timeout)
        except JournalError:
            self.errors += 1
            if self.errors == self.failures:
                self.lock.rollback()
            raise


@pytest.mark.parametrize(("timeout", "moved"), [(60.0, 1), (0.0, 0)])
async def test_a_host_tries_again_to_move_its_sessions_after_a_failure_of_its_journal(
    timeout: float, moved: int, tmp_path: Path
) -> None:
    drain, path = runpy.run_path(str(FOLDER / "server.py"))["drain"], tmp_path / "sessions.db"
    environ = {"OPENAI_API_KEY": "any"}
    first = LockedRuntime(environ=environ, journal=SqliteStorage(path, patience=0.01), address="http://a")
    async with first, Runtime(environ=environ, journal=path, address="http://b") as second:
        await first.open("openai:gpt-5.2", id="one")
        with closing(sqlite3.connect(path, isolation_level=None)) as first.lock:
            first.lock.execute("BEGIN IMMEDIATE")
            with anyio.fail_after(60):
                await drain(first, 50.0, timeout)
        assert first.errors == 1
        assert await sessions_by_address(second) == {"http://a": 1 - moved, "http://b": moved}


@pytest.mark.parametrize("service", ["sqlite"], indirect=True)
async def test_a_host_that_cannot_drain_still_stops_its_server_properly(
    service: Service, tmp_path: Path
) -> None:
    spec = pod(KUBERNETES, "Deployment")
    with ReservedPort() as port:
        fields = {"status.podIP": "127.0.0.1", "metadata.name": "assistants-0"}
        environ = spec.environment(fields, PORT=port.number, CONFIG=str(service.config), RATE="0")
        host = HostProcess(spec.command, {**service.secrets, **environ}, tmp_path / "log")
        try:
            host.start()
            await host.wait_for_success(spec.readiness)
            host.send_signal(signal.SIGTERM)
            with anyio.fail_after(spec.grace):
                assert await host.wait() == 1
        finally:
            await host.kill()
    assert "rate= takes a number" in host.output
    assert "Finished server process" in host.output


@pytest.mark.parametrize("name", ["-one", "one.two", "a" * 65, "one%0A"])
async def test_a_request_with_an_invalid_session_id_is_rejected(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def close(main: Coroutine[Any, Any, None]) -> None:  # Any: nothing is sent
        main.close()

    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(asyncio, "run", close)
    app = runpy.run_path(str(FOLDER / "host.py"))["app"]
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://a") as client:
        answer = await client.post(f"/sessions/{name}/asks", json={"text": "Hello", "key": "1"})
    assert answer.status_code == 422
