"""Fixtures that several journal tests use: a file, a Postgres schema, a connection to it, and a proxy."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.journal.postgres import Server
from tests.journal.postgres_proxy import Proxy, run_proxy

if TYPE_CHECKING:
    import psycopg


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a journal file that does not exist yet."""
    return tmp_path / "sessions.db"


@pytest.fixture
def schema(postgres: Server) -> str:
    """An empty Postgres schema."""
    return postgres.schema()


@pytest.fixture
def direct(postgres: Server, schema: str) -> Iterator["psycopg.Connection[tuple[Any, ...]]"]:
    """A connection to the schema that belongs to no host."""
    with postgres.connect(schema) as connection:
        yield connection


@pytest.fixture
def proxy(postgres: Server) -> Iterator[Proxy]:
    """A proxy to the Postgres server."""
    with run_proxy(postgres.folder) as proxy:
        yield proxy
