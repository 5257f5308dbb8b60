"""The Postgres storage: table format, golden tables, blobs, leases, and secrets."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread, current_thread
from typing import Any

import psycopg
import pytest
from psycopg import sql

from actors import Runtime
from actors.config import load
from actors.core.data.jsonio import Json
from actors.core.log.call_events import Returned
from actors.core.log.codec import encode_event
from actors.core.log.events import Closed
from actors.core.values.identity import CallId
from actors.errors import ConfigError, Fenced, JournalDamaged, JournalError, SessionLeased
from actors.journal.storage import NO_PAGE, NOTHING, Entry
from actors.journal.storage.directory import SessionFilter
from actors.journal.storage.named import create_storage
from actors.journal.storage.postgres import PostgresStorage, statements
from actors.journal.storage.postgres import format as tables
from actors.journal.storage.postgres.check import JournalTables
from tests.journal.postgres import PASSWORD, Server, temporary_server
from tests.journal.storages import begin, to
from tests.journal.test_sqlite import LOG

GOLDEN = sorted((Path(__file__).parent / "golden_journals").glob("postgres_*.sql"))
LARGE = Returned(CallId("c"), Json(b'"' + b"many words " * 4000 + b'"'))


@pytest.fixture
def storage(postgres: Server, schema: str) -> Iterator[PostgresStorage]:
    made = PostgresStorage(postgres.url(schema))
    made.open()
    yield made
    made.close()


@pytest.fixture
def other(postgres: Server, schema: str) -> Iterator[PostgresStorage]:
    """Another host of the same journal."""
    made = PostgresStorage(postgres.url(schema))
    yield made
    made.close()


def _age(direct: psycopg.Connection[Any], seconds: float) -> None:
    """Expire the leases by this many seconds."""
    direct.execute("UPDATE actors_host SET until = until - make_interval(secs => %s)", (seconds,))


def write_golden(path: Path) -> None:
    """Write the tables of this version as SQL: `python -m tests.journal.test_postgres FILE`."""
    with temporary_server() as server:
        server.start()
        storage = PostgresStorage(server.url())
        for session, end in (("one", ()), ("two", (Closed(),))):
            log = (*LOG, *end)
            storage.append([Entry(session, storage.claim(session).fence, log)])
        storage.close()
        with server.connect() as connection, path.open("w") as file:
            file.write(tables.SCHEMA)
            for (table,) in connection.execute(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'actors\\_%' ORDER BY oid"
            ).fetchall():
                generated = (
                    "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attgenerated <> ''"
                )
                left_out = {name for (name,) in connection.execute(generated, (table,)).fetchall()}
                for row in connection.execute(f"SELECT * FROM {table}").fetchall():
                    known = row[: len(row) - len(left_out)]
                    values = ", ".join(sql.Literal(value).as_string(connection) for value in known)
                    file.write(f"INSERT INTO {table} VALUES ({values});\n")


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_tables_of_every_version_can_be_read_and_extended(
    golden: Path, storage: PostgresStorage, direct: psycopg.Connection[Any], schema: str
) -> None:
    storage.close()
    direct.execute(f"DROP SCHEMA {schema} CASCADE")
    direct.execute(f"CREATE SCHEMA {schema}")
    direct.execute(golden.read_text())
    assert storage.read("one") == list(LOG)
    assert storage.read("two") == [*LOG, Closed()]
    claim = storage.claim("one")
    assert claim.last == len(LOG)
    assert storage.append([Entry("one", claim.fence, (to("c"),))]) == [len(LOG) + 1]
    assert {stored.id: stored.state for stored in storage.sessions(SessionFilter("t"))} == {
        "one": "idle",
        "two": "closed",
    }


def test_golden_tables_exist_for_this_version() -> None:
    assert [path.stem for path in GOLDEN][-1] == f"postgres_v{tables.VERSION}"


def test_new_tables_match_the_golden_tables() -> None:
    """A change of the tables needs a new version."""
    assert GOLDEN[-1].read_text().startswith(tables.SCHEMA)


def test_tables_of_a_newer_version_are_refused(
    storage: PostgresStorage, direct: psycopg.Connection[Any], postgres: Server, schema: str
) -> None:
    begin(storage, "one")
    storage.close()
    newer = tables.VERSION + 1
    direct.execute("UPDATE actors_meta SET value = %s WHERE key = 'version'", (newer,))
    for use in (storage.open, lambda: JournalTables(postgres.url(schema))):
        with pytest.raises(
            JournalError, match=f"format {newer} is newer than format {newer - 1} of this program"
        ):
            use()
    direct.execute("UPDATE actors_meta SET value = %s WHERE key = 'version'", (tables.VERSION,))
    assert len(storage.read("one")) == 1


def test_a_foreign_table_of_the_same_name_is_refused_and_unchanged(
    storage: PostgresStorage, direct: psycopg.Connection[Any]
) -> None:
    storage.close()
    direct.execute("DROP TABLE actors_meta")
    direct.execute("CREATE TABLE actors_meta (theirs int)")
    with pytest.raises(JournalError, match="another program's table"):
        storage.open()
    assert direct.execute("SELECT * FROM actors_meta").fetchall() == []


def test_concurrent_hosts_create_the_tables_once(storage: PostgresStorage, other: PostgresStorage) -> None:
    other.open()
    claim = begin(other, "one")
    assert len(storage.read("one")) == claim.last + 1


def test_a_large_value_is_stored_once_and_deleted_with_its_last_log(
    storage: PostgresStorage, direct: psycopg.Connection[Any]
) -> None:
    def blob_count() -> Any:
        return direct.execute("SELECT count(*) FROM actors_blob").fetchall()[0][0]

    for session in ("one", "two"):
        storage.append([Entry(session, begin(storage, session).fence, (LARGE, LARGE))])
        assert [encode_event(each) for each in storage.read(session, 1)] == [encode_event(LARGE)] * 2
    assert blob_count() == 1
    storage.delete("one")
    assert storage.read("two", 1) == [LARGE, LARGE]
    storage.delete("two")
    assert blob_count() == 0


def test_a_large_value_that_is_used_concurrently_is_neither_lost_nor_leaked(
    storage: PostgresStorage, other: PostgresStorage, direct: psycopg.Connection[Any]
) -> None:
    def write_and_delete(host: PostgresStorage, name: str) -> list[int]:
        lengths = list[int]()
        for number in range(40):
            session = f"{name}{number}"
            host.append([Entry(session, host.claim(session).fence, (LARGE, to("b")))])
            lengths.append(len(host.read(session)))
            host.delete(session)
        return lengths

    with ThreadPoolExecutor(2) as threads:
        done = list(threads.map(write_and_delete, (storage, other), ("a", "b")))
    assert done == [[2] * 40] * 2
    for table in ("actors_blob", "actors_blob_use", "actors_record"):
        assert direct.execute(f"SELECT count(*) FROM {table}").fetchall() == [(0,)]


def test_the_later_of_two_concurrent_deletions_deletes_a_shared_value(
    postgres: Server, storage: PostgresStorage, direct: psycopg.Connection[Any]
) -> None:
    for session in ("one", "two"):
        storage.append([Entry(session, begin(storage, session).fence, (LARGE,))])
    waits = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'"
    with ThreadPoolExecutor(1) as threads, postgres.connect() as watching:
        with direct.transaction():  # as another host would hold it
            (key,) = direct.execute("SELECT key FROM actors_session WHERE name = 'two'").fetchall()[0]
            (digest,) = direct.execute(statements.LOCK_BLOBS, ([key],)).fetchall()[0]
            direct.execute(statements.DELETE_USES, ([key],))
            direct.execute(statements.DELETE_BLOBS, ([digest],))
            deleting = threads.submit(storage.delete, "one")
            while not deleting.done() and watching.execute(waits, (storage._name,)).fetchall() == [(0,)]:
                pass
        deleting.result(60)
    assert direct.execute("SELECT count(*) FROM actors_blob").fetchall() == [(0,)]


def test_a_fenced_writer_leaves_no_blob(
    storage: PostgresStorage, other: PostgresStorage, direct: psycopg.Connection[Any]
) -> None:
    stale = begin(storage, "one")
    _age(direct, 11)
    other.claim("one")
    (outcome,) = storage.append([Entry("one", stale.fence, (LARGE,))])
    assert isinstance(outcome, Fenced)
    for table in ("actors_blob", "actors_blob_use"):
        assert direct.execute(f"SELECT count(*) FROM {table}").fetchall() == [(0,)]


def test_a_writer_is_fenced_even_if_it_has_read_the_events_of_the_next_host(
    storage: PostgresStorage, other: PostgresStorage, direct: psycopg.Connection[Any]
) -> None:
    """The events are not lost, although this host has not written them."""
    stale = begin(storage, "one")
    _age(direct, 11)
    claim = other.claim("one")
    other.append([Entry("one", claim.fence, (to("b"), to("c")), 1)])
    last = len(storage.read("one"))
    first, second = storage.append(
        [Entry("one", stale.fence, (to("d"),), last), Entry("one", stale.fence, (to("e"),), last + 1)]
    )
    assert isinstance(first, Fenced)
    assert isinstance(second, Fenced)
    assert len(storage.read("one")) == last == 3


def test_consecutive_entries_of_a_batch_are_written_without_a_read(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = begin(storage, "one")
    monkeypatch.setattr(statements, "ROWS", "a statement that the server would reject")
    entries = [Entry("one", claim.fence, (to("b"), to("c")), 1), Entry("one", claim.fence, (to("d"),), 3)]
    assert storage.append(entries) == [3, 4]


def test_two_storages_of_one_database_count_as_two_hosts(
    storage: PostgresStorage, other: PostgresStorage
) -> None:
    claim = begin(storage, "one")
    for refused in (other.claim, other.delete):
        with pytest.raises(SessionLeased, match="belongs to host") as raised:
            refused("one")
        assert 0 < raised.value.seconds <= 10
    storage.append([Entry("one", claim.fence, (to("b"),))])
    assert len(other.read("one")) == 2
    storage.release("one", claim.fence)
    assert other.claim("one").fence == claim.fence + 1
    with pytest.raises(SessionLeased):
        storage.claim("one")
    other.close()
    assert storage.claim("one").last == 2


def _claim_together(storage: PostgresStorage, names: list[str]) -> dict[str, int]:
    """Claim sessions concurrently; return their fencing numbers, 0 for a session leased elsewhere."""
    fences = dict.fromkeys(names, 0)
    with storage.transaction(names):
        for name in names:
            with suppress(SessionLeased):
                fences[name] = storage.claim(name).fence
    return fences


def test_concurrent_claims_share_commits(storage: PostgresStorage, direct: psycopg.Connection[Any]) -> None:
    names = [f"s{number}" for number in range(300)]
    commits = "SELECT count(DISTINCT xmin::text) FROM actors_session"
    for fence in (1, 2):  # new sessions, then known ones
        assert _claim_together(storage, names) == dict.fromkeys(names, fence)
        assert direct.execute(commits).fetchone() == (1,)
    assert storage.append([Entry(name, 2, (to("a"),)) for name in names]) == [1] * 300
    assert storage.claim("s1").fence == 3


def test_concurrent_claims_of_existing_sessions_share_a_commit(
    storage: PostgresStorage, other: PostgresStorage, direct: psycopg.Connection[Any]
) -> None:
    """A session without a log is not claimed, even if another caller of the group creates it."""
    names = [f"s{number}" for number in range(20)]
    for name in names:
        begin(storage, name)
    storage.close()
    begin(other, "theirs")
    other.claim("empty")
    _age(direct, 11)
    with storage.transaction(["new"], [*names, "new", "unknown", "empty"]):
        assert storage.claim("new", existing=True) == NOTHING
        assert storage.claim("new").fence == 1
        assert storage.claim("unknown", existing=True) == storage.claim("empty", existing=True) == NOTHING
        claims = [storage.claim(name, existing=True) for name in names]
    assert {(claim.fence, claim.last) for claim in claims} == {(2, 1)}
    commits = "SELECT count(DISTINCT xmin::text) FROM actors_session WHERE name = ANY(%s)"
    assert direct.execute(commits, (names,)).fetchone() == (1,)
    owners = "SELECT name, owner FROM actors_session WHERE NOT name = ANY(%s)"
    found = dict(direct.execute(owners, (names,)).fetchall())
    assert found == {"new": storage.host, "theirs": other.host, "empty": other.host}


def test_a_page_without_large_values_is_one_statement(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = begin(storage, "one")
    storage.append([Entry("one", claim.fence, (to("b"), to("c"), LARGE))])
    statements, execute = list[str](), psycopg.Connection.execute

    def recording(connection: Any, query: Any, *given: Any, **more: Any) -> Any:
        statements.append(query)
        return execute(connection, query, *given, **more)

    monkeypatch.setattr(psycopg.Connection, "execute", recording)
    page = storage.page("one", 1, 2)
    assert (page.after, page.events, page.last) == (1, [to("b"), to("c")], 4)
    assert storage.page("unknown") == NO_PAGE
    assert statements == [statements[0]] * 2
    assert storage.page("one", 3).events == [LARGE]


def test_a_refused_claim_in_a_group_of_claims_affects_no_other_claim(
    storage: PostgresStorage, other: PostgresStorage, direct: psycopg.Connection[Any]
) -> None:
    theirs = begin(other, "theirs")
    fences = _claim_together(storage, ["known", "theirs", "new"])
    assert fences == {"known": 1, "theirs": 0, "new": 1}
    assert other.append([Entry("theirs", theirs.fence, (to("b"),))]) == [2]
    direct.execute("UPDATE actors_session SET tenant = 'damaged' WHERE name = 'known'")
    with pytest.raises(JournalDamaged):
        _claim_together(storage, ["known", "new"])
    assert storage.claim("new").fence == 3


def test_sessions_claimed_by_two_hosts_at_once_each_have_one_owner(
    storage: PostgresStorage, other: PostgresStorage
) -> None:
    names = [f"s{number}" for number in range(100)]
    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(_claim_together, storage, names)
        two = threads.submit(_claim_together, other, names[::-1])
    assert [one.result()[name] + two.result()[name] for name in names] == [1] * 100


def test_an_expired_host_loses_only_the_sessions_that_another_host_claimed(
    storage: PostgresStorage, other: PostgresStorage, direct: psycopg.Connection[Any]
) -> None:
    claims = {name: begin(storage, name) for name in ("one", "two")}
    _age(direct, 9)
    with pytest.raises(SessionLeased):
        other.claim("one")
    storage.renew_lease()
    _age(direct, 9)
    with pytest.raises(SessionLeased):
        other.claim("one")
    _age(direct, 2)
    assert other.claim("one").fence == 2
    refused, written = storage.append(
        [Entry(name, claim.fence, (to("b"),)) for name, claim in claims.items()]
    )
    assert (str(refused)[:31], written) == ("Session 'one' now has another w", 2)
    assert "fencing number 2 instead of 1" in str(refused)


def test_a_claim_checks_the_owner_again_if_another_claim_came_first(
    storage: PostgresStorage, other: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(storage, "one")
    storage.close()
    look, looks = other._find_row, list[int]()

    def slow(connection: Any, session: str) -> Any:
        row = look(connection, session)
        if not looks:
            looks.append(storage.claim(session).fence)
        return row

    monkeypatch.setattr(other, "_find_row", slow)
    with pytest.raises(SessionLeased):
        other.claim("one")
    with pytest.raises(SessionLeased):
        other.delete("one")
    assert looks == [2]
    assert storage.read("one") != []


@pytest.mark.parametrize("release", [PostgresStorage.release_all, PostgresStorage.close])
def test_all_pages_of_the_sessions_of_a_host_are_released(
    storage: PostgresStorage,
    other: PostgresStorage,
    release: Callable[[PostgresStorage], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("actors.journal.storage.postgres.hosts.RELEASE_LIMIT", 2)
    for session in ("a", "b", "c", "d", "e"):
        begin(storage, session)
    begin(other, "theirs")
    release(storage)
    assert [session.owner for session in other.sessions()] == [*[None] * 5, other.host][::-1]


def test_sessions_are_released_even_after_a_page_that_other_hosts_claimed(
    storage: PostgresStorage, direct: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.journal.storage.postgres.hosts.RELEASE_LIMIT", 1)
    begin(storage, "a")
    begin(storage, "b")
    # As if another host had claimed the session between the selection of the page and its release.
    direct.execute("CREATE FUNCTION skip() RETURNS trigger AS 'BEGIN RETURN NULL; END' LANGUAGE plpgsql")
    direct.execute(
        "CREATE TRIGGER skip BEFORE UPDATE ON actors_session FOR EACH ROW WHEN (OLD.name = 'a') "
        "EXECUTE FUNCTION skip()"
    )
    storage.release_all()
    owners = direct.execute("SELECT name, owner FROM actors_session ORDER BY name").fetchall()
    assert owners == [("a", storage.host), ("b", None)]


def test_a_release_of_all_sessions_stops_when_the_storage_closes(
    storage: PostgresStorage, direct: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(storage, "one")
    begin(storage, "two")
    lock, run = Lock(), storage._writer.run
    calls, has_reached_lock = list[Any](), Event()

    class ObservedLock:
        def __enter__(self) -> None:
            if current_thread() is closer:
                has_reached_lock.set()
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()

    def close() -> None:
        storage.close()
        has_reached_lock.set()

    def run_and_close(work: Any) -> Any:
        done = run(work)
        if current_thread() is not closer:
            calls.append(work)
            if len(calls) == 1:  # after the renewal of the lease, before the first page
                closer.start()
                assert has_reached_lock.wait(60)
        return done

    closer = Thread(target=close)
    monkeypatch.setattr(storage, "_releasing", ObservedLock())
    monkeypatch.setattr(storage._writer, "run", run_and_close)
    storage.release_all()
    closer.join()
    assert len(calls) == 1
    assert storage._writer._connection is None
    assert direct.execute("SELECT name FROM actors_host").fetchall() == []
    assert direct.execute("SELECT owner FROM actors_session").fetchall() == [(None,), (None,)]


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("UPDATE actors_record SET bytes = 'x' WHERE number = 2", "record 2 is corrupt"),
        ("UPDATE actors_record SET checksum = checksum + 1 WHERE number = 1", "record 1 is corrupt"),
        ("DELETE FROM actors_record WHERE number = 2", "record 2 is missing"),
        ("DELETE FROM actors_record WHERE number = 3", "record 3 is missing"),
        ("UPDATE actors_record SET number = 5 WHERE number = 3", "record 3 is missing"),
        ("UPDATE actors_session SET last = 2", "the entry in the directory is corrupt"),
        ("UPDATE actors_blob SET bytes = 'x'", "record 2 refers to a blob that is corrupt"),
        ("DELETE FROM actors_blob_use; DELETE FROM actors_blob", "record 2 refers to a blob that is missing"),
    ],
)
def test_damage_is_reported_with_its_location(
    storage: PostgresStorage, direct: psycopg.Connection[Any], damage: str, what: str
) -> None:
    claim = begin(storage, "one")
    storage.append([Entry("one", claim.fence, (LARGE, to("b")))])
    direct.execute(damage)
    with pytest.raises(JournalDamaged, match=f"session 'one'.*{what}; restore a backup") as raised:
        storage.read("one")
    assert raised.value.session == "one"


def test_the_readable_columns_of_a_session_contain_no_event_content(
    storage: PostgresStorage, direct: psycopg.Connection[Any]
) -> None:
    begin(storage, "one", tenant="t", target="m")
    rows = direct.execute("SELECT name, tenant, target, state, last, fence FROM actors_session").fetchall()
    assert rows == [("one", "t", "m", "idle", 1, 1)]


# The URL


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"path": "a.db", "url": "postgresql://h/d"}, "not both"),
        ({"path": "postgresql://h/d"}, "into url"),
        ({"url": "https://h/d"}, "must be a postgresql:// address"),
        ({"url": f"postgresql://u:{PASSWORD}@h/d"}, "without a password"),
        ({"url": f"postgresql://h/d?password={PASSWORD}"}, "without a password"),
        ({"url": "postgresql://h/d", "durability": "process"}, "does not support 'process'"),
        ({"durability": "power"}, "needs a path or a url"),
    ],
)
def test_an_invalid_journal_setting_is_refused_without_the_password(
    tmp_path: Path, given: dict[str, str], why: str
) -> None:
    lines = [f'{key} = "{value}"' for key, value in given.items()]
    (tmp_path / "actors.toml").write_text("[journal]\n" + "\n".join(lines))
    with pytest.raises(ConfigError) as raised:
        Runtime(load(tmp_path / "actors.toml", {}), environ={})
    assert why in str(raised.value)
    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://owner:{PASSWORD}/more@127.0.0.1/d",
        f"postgresql://owner:12/{PASSWORD}@127.0.0.1/d",
        f"postgresql://owner@127.0.0.1/d?{PASSWORD}",
        f"postgresql://owner:{PASSWORD}@[::1/d",
    ],
)
def test_an_unparsable_url_is_refused_and_not_quoted(url: str) -> None:
    with pytest.raises(ConfigError) as raised:
        create_storage(url)
    assert PASSWORD not in f"{raised.value!r} {raised.value.__cause__!r}"
    assert "%40" in str(raised.value)


def test_a_url_selects_the_storage(postgres: Server, schema: str) -> None:
    storage = create_storage(postgres.url(schema), lease=3.0)
    assert isinstance(storage, PostgresStorage)
    assert (storage.durability, storage.lease) == ("power", 3.0)
    assert str(postgres.folder) in storage.where


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-6")
async def test_a_runtime_keeps_its_logs_in_the_configured_database(postgres: Server, schema: str) -> None:
    environ = {"OPENAI_API_KEY": "k"}
    async with Runtime(environ=environ, journal=postgres.url(schema)) as runtime:
        await runtime.open("openai:m", id="one")
    async with Runtime(environ=environ, journal=postgres.url(schema)) as runtime:
        (stored,) = runtime._storage.sessions()
    assert (stored.id, stored.events, stored.owner) == ("one", 1, None)


if __name__ == "__main__":
    import sys

    write_golden(Path(sys.argv[1]))
