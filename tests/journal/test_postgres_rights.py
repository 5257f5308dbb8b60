"""Rights and versions of a journal's tables: the rights are checked on opening, and the version on every write."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from actors import Runtime
from actors.config import load
from actors.core.log.events import SwitchApplied
from actors.errors import ConfigError, JournalError, JournalUnavailable
from actors.journal.storage import Entry
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.postgres import format as tables
from actors.journal.storage.postgres.connection import translate_error
from actors.testing import Say, Turn
from tests.journal.postgres import Server
from tests.journal.storages import begin, to
from tests.runtime_support import openai, restarted_actors, runtime_with


@pytest.fixture
def schema(postgres: Server) -> str:
    """A schema that contains the tables."""
    schema = postgres.schema()
    storage = PostgresStorage(postgres.url(schema))
    begin(storage, "old")
    storage.close()
    return schema


@pytest.fixture
def role(postgres: Server, schema: str, direct: psycopg.Connection[Any]) -> str:
    """A user with the rights of a host on tables that it does not own."""
    role = postgres.role()
    direct.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    direct.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}")
    return role


def test_the_rights_of_a_host_are_sufficient(postgres: Server, schema: str, role: str) -> None:
    storage = PostgresStorage(postgres.url(schema, user=role))
    storage.open()
    claim = begin(storage, "one")
    assert storage.append([Entry("one", claim.fence, (to("b"),))]) == [2]
    storage.record_clock(1, 1)
    storage.delete("one")
    storage.close()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("REVOKE INSERT ON actors_record FROM {role}", "may not use actors_record"),
        (
            "REVOKE UPDATE ON actors_session, actors_host FROM {role}",
            "may not use actors_host, actors_session",
        ),
        ("REVOKE DELETE ON actors_session FROM {role}", "may not use actors_session"),
        ("REVOKE ALL ON actors_blob FROM {role}", "may not use actors_blob"),
    ],
)
def test_missing_rights_are_reported_on_entry_with_a_grant_that_fixes_them(
    postgres: Server, schema: str, role: str, direct: psycopg.Connection[Any], change: str, why: str
) -> None:
    direct.execute(change.format(role=role))
    with pytest.raises(ConfigError, match=why) as raised:
        PostgresStorage(postgres.url(schema, user=role)).open()
    grant = str(raised.value).partition("the owner must run: ")[2]
    assert grant.startswith("GRANT SELECT, INSERT, UPDATE, DELETE ON ")
    direct.execute(grant)
    storage = PostgresStorage(postgres.url(schema, user=role))
    storage.open()
    storage.close()


def test_row_security_is_reported_on_entry(
    postgres: Server, schema: str, role: str, direct: psycopg.Connection[Any]
) -> None:
    direct.execute("ALTER TABLE actors_session ENABLE ROW LEVEL SECURITY")
    with pytest.raises(ConfigError, match="row security hides rows of actors_session"):
        PostgresStorage(postgres.url(schema, user=role)).open()


@pytest.mark.anyio
async def test_a_read_only_user_is_reported_on_entry(
    postgres: Server, schema: str, role: str, direct: psycopg.Connection[Any]
) -> None:
    direct.execute(f"ALTER ROLE {role} SET default_transaction_read_only = on")
    storage = PostgresStorage(postgres.url(schema, user=role), patience=0.05)
    with pytest.raises(JournalUnavailable, match="read-only"):
        async with Runtime(load(None, {}), journal=storage):
            pass


WRITES: dict[str, Callable[[PostgresStorage], object]] = {
    "append": lambda storage: storage.append([Entry("one", 1, (to("b"),))]),
    "claim": lambda storage: storage.claim("one"),
    "claim of a new session": lambda storage: storage.claim("new"),
    "delete": lambda storage: storage.delete("one"),
    "beat": lambda storage: storage.renew_lease(),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_an_older_host_writes_nothing_to_newer_tables(
    postgres: Server,
    schema: str,
    direct: psycopg.Connection[Any],
    write: Callable[[PostgresStorage], object],
) -> None:
    def rows() -> list[Any]:
        names = ("actors_session", "actors_record", "actors_host")
        return [direct.execute(f"SELECT * FROM {name} t ORDER BY t").fetchall() for name in names]

    storage = PostgresStorage(postgres.url(schema), patience=0.2)
    begin(storage, "one")
    direct.execute("UPDATE actors_meta SET value = %s WHERE key = 'version'", (tables.VERSION + 1,))
    before = rows()
    with pytest.raises(JournalUnavailable, match="is newer than format"):
        write(storage)
    storage.release("one", 1)
    with storage.transaction(["two", "three"]):
        pass
    assert rows() == before
    direct.execute("UPDATE actors_meta SET value = %s WHERE key = 'version'", (tables.VERSION,))
    write(storage)
    storage.close()


# Unexpected errors


@pytest.mark.alternating
@pytest.mark.anyio
@pytest.mark.parametrize("code", ["22000", "P0001", "42P01", "XX000", "25P02", "0A000"])
async def test_no_unexpected_server_error_ends_a_session(
    postgres: Server, schema: str, direct: psycopg.Connection[Any], code: str
) -> None:
    storage = PostgresStorage(postgres.url(schema), patience=0.2)
    async with runtime_with(a=openai(*[Turn(Say("Done."))] * 9), storage=storage) as runtime:
        session = await runtime.open("a", id="one")
        direct.execute(
            "CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'of it' USING ERRCODE = '{code}'; END $$"
        )
        direct.execute(
            "CREATE TRIGGER t BEFORE INSERT ON actors_record FOR EACH STATEMENT EXECUTE FUNCTION fails()"
        )
        for _ in range(6):  # more often than an actor may crash
            with pytest.raises(JournalError, match=code):
                await session.ask("Hello.")
        direct.execute("DROP FUNCTION fails CASCADE")
        assert (await session.ask("Hello.")).status == "complete"
        assert restarted_actors(runtime) == []
    assert SwitchApplied("x") not in storage.read("one")
    storage.close()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (psycopg.errors.InsufficientPrivilege, JournalUnavailable),
        (psycopg.errors.InvalidSchemaName, JournalUnavailable),
        (psycopg.errors.InternalError_, JournalUnavailable),
        (psycopg.errors.UndefinedTable, JournalUnavailable),
        (psycopg.errors.InvalidSqlStatementName, JournalUnavailable),
        (psycopg.errors.StringDataRightTruncation, JournalError),
        (psycopg.errors.CheckViolation, JournalError),
        (psycopg.errors.RaiseException, JournalError),
    ],
)
def test_only_temporary_server_errors_raise_journal_unavailable(
    error: type[psycopg.Error], kind: type[JournalError]
) -> None:
    assert type(translate_error(error("words"), "there", was_open=True)) is kind
