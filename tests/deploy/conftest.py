"""Fixtures of the deployed hosts: their configuration with either journal, and a runtime that reads the journal."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from actors import Runtime
from tests.deploy.machines import KEYS, Provider, provider
from tests.deploy.manifests import configuration
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
    if request.param == "sqlite":
        where = f'path = "{tmp_path / "sessions.db"}"'
    else:
        server: Server = request.getfixturevalue("postgres")
        where = f'url = "{server.url(server.schema()).replace(f"&password={PASSWORD}", "")}"'
    secrets = {**KEYS, "PGPASSWORD": PASSWORD}
    with anyio.fail_after(SECONDS), pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", PASSWORD)
        async with provider() as running:
            config = write_configuration(tmp_path / "actors.toml", where, running.base_url)
            async with Runtime(config) as journal:
                yield Service(config, secrets, running, journal)


def write_configuration(path: Path, where: str, base_url: str) -> Path:
    """Write the manifest's configuration with another journal and another provider, and return its path."""
    text = configuration()
    for old, new in (
        ('url = "postgresql://actors@postgres/actors"', f"{where}\nlease = {LONG}"),
        ('kind = "openai"', f'kind = "openai"\nbase_url = "{base_url}"'),
    ):
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return path
