"""Fixtures of the deployed hosts: their configuration with either journal, and a runtime that reads the journal."""

import tomllib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from actors import Runtime
from tests.deploy.machines import KEYS, Provider, provider
from tests.deploy.manifests import KUBERNETES, document
from tests.journal.postgres import PASSWORD, Server

LONG = 3600
"""Seconds of a lease that does not expire during a test. A host or client that waits for its end fails the test."""
SECONDS = 240
"""The longest duration of a test, in seconds."""


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of a service that its hosts share.

    Args:
        config: The path of its `actors.toml`.
        secrets: The variables that a host gets from a secret.
        provider: The provider.
        journal: A runtime that reads the journal of the hosts.
    """

    config: Path
    secrets: Mapping[str, str]
    provider: Provider
    journal: Runtime


@pytest.fixture
async def service(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Service]:
    """Set up a service with the manifest's configuration and a long lease. The parameter is the kind of journal."""
    settings = tomllib.loads(document(KUBERNETES, "ConfigMap")["data"]["actors.toml"])
    if request.param == "sqlite":
        where = f'path = "{tmp_path / "sessions.db"}"'
    else:
        server: Server = request.getfixturevalue("postgres")
        where = f'url = "{server.url(server.schema()).replace(f"&password={PASSWORD}", "")}"'
    config = tmp_path / "actors.toml"
    config.write_text(
        f"[journal]\n{where}\nlease = {LONG}\n\n[limits]\nsessions = {settings['limits']['sessions']}\n"
    )
    secrets = {**KEYS, "PGPASSWORD": PASSWORD}
    with anyio.fail_after(SECONDS), pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", PASSWORD)
        async with provider() as running, Runtime(config) as journal:
            yield Service(config, {**secrets, "OPENAI_BASE_URL": running.base_url}, running, journal)
