"""Failures of a Postgres server: each raises a typed error, and each acknowledged event is stored exactly once.

The faults are real: the server is stopped, killed and filled, or a trigger raises the error of a full disk. Every test
connects with a password that no message, log or repr may contain.
"""

import traceback
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any, TypeVar

import psycopg
import pytest

from actors.core.log.events import Opened
from actors.errors import ActorsError, ConfigError, Fenced, JournalDamaged, JournalError, JournalUnavailable
from actors.journal.storage import Appended, Entry
from actors.journal.storage.postgres import PostgresStorage, statements
from actors.journal.storage.postgres.batch import Batch
from actors.journal.storage.postgres.connection import MAX_TRIES, translate_connect_error
from tests.cli.command import actors_now
from tests.journal.postgres import PASSWORD, Server
from tests.journal.postgres_proxy import Loses, Proxy, run_proxy
from tests.journal.storages import begin, to

E = TypeVar("E", bound=ActorsError)
TIME = 1_800_000_000.123456  # more digits than a server returns that rounds floats


@pytest.fixture(autouse=True)
def _no_password_in_the_logs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(0)
    yield
    assert PASSWORD not in caplog.text


@pytest.fixture
def storage(postgres: Server, schema: str) -> Iterator[PostgresStorage]:
    made = PostgresStorage(postgres.url(schema), patience=0.2)
    made.open()
    yield made
    made.close()


def refusal(kind: type[E], raised: "pytest.ExceptionInfo[E]") -> str:
    """Return the text of an error, which must not contain the password in any form."""
    assert type(raised.value) is kind
    shown = "".join(traceback.format_exception(raised.value))
    assert PASSWORD not in f"{shown} {raised.value!r} {vars(raised.value)!r}"
    return str(raised.value)


# On opening


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"password": "wrong"}, "the user or the password is wrong"),
        ({"user": "nobody"}, "the user or the password is wrong"),
        ({"dbname": "nowhere"}, "the database, the user or a file does not exist"),
        ({"schema": "nowhere"}, "has no schema for the tables"),
        ({"sslmode": "require"}, "TLS"),
    ],
)
def test_a_wrong_connection_setting_is_a_config_error_at_once(
    postgres: Server, change: dict[str, str], why: str
) -> None:
    with run_proxy(postgres.folder) as proxy, pytest.raises(ConfigError) as raised:
        PostgresStorage(postgres.url(**{"host": "127.0.0.1", "port": str(proxy.port), **change})).open()
    assert why in refusal(ConfigError, raised)


def test_a_user_without_create_rights_gets_a_config_error(
    postgres: Server, schema: str, direct: psycopg.Connection[Any]
) -> None:
    role = postgres.role()
    direct.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    with pytest.raises(ConfigError) as raised:
        PostgresStorage(postgres.url(schema, user=role)).open()
    assert "grant the user CREATE" in refusal(ConfigError, raised)


def test_a_journal_without_a_listening_server_is_unavailable(postgres: Server, tmp_path: Path) -> None:
    storage = PostgresStorage(postgres.url(host=str(tmp_path)), patience=0.1)
    with pytest.raises(JournalUnavailable) as raised:
        storage.open()
    assert "no server listens at this address" in refusal(JournalUnavailable, raised)


def test_a_server_at_its_connection_limit_is_unavailable(postgres: Server) -> None:
    role = postgres.role("CONNECTION LIMIT 1")
    storage = PostgresStorage(postgres.url(role, user=role), patience=0.1)
    claim = begin(storage, "one")  # the only free connection
    with pytest.raises(JournalUnavailable) as raised:
        storage.read("one")
    assert "too many connections" in refusal(JournalUnavailable, raised)
    assert storage.append([Entry("one", claim.fence, (to("b"),))]) == [2]
    storage.close()


@pytest.mark.parametrize(
    ("said", "kind", "why"),
    [
        ("FATAL:  the database system is starting up", JournalUnavailable, "is starting"),
        ("FATAL:  the database system is shutting down", JournalUnavailable, "is stopping"),
        ("FATAL:  the database system is in recovery mode", JournalUnavailable, "is recovering"),
        ("FATAL:  sorry, too many clients already", JournalUnavailable, "too many connections"),
        (f"something new about {PASSWORD}", JournalUnavailable, "cannot be reached"),
    ],
)
def test_libpq_errors_without_a_code_raise_typed_errors(said: str, kind: type[ActorsError], why: str) -> None:
    error = translate_connect_error(psycopg.OperationalError(f"connection failed: {said}"), "there")
    assert type(error) is kind
    assert why in str(error)
    assert PASSWORD not in str(error)


# During use


def _fail_next_appends(direct: psycopg.Connection[Any], code: str, times: int) -> None:
    """Make the server raise an error for the next `times` appends."""
    direct.execute("CREATE SEQUENCE tries")
    direct.execute(
        f"CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF nextval('tries') <= {times} THEN "
        f"RAISE EXCEPTION 'of it' USING ERRCODE = '{code}', DETAIL = 'words of a record'; END IF; RETURN NEW; END $$"
    )
    direct.execute(
        "CREATE TRIGGER t BEFORE INSERT ON actors_record FOR EACH STATEMENT EXECUTE FUNCTION fails()"
    )


@pytest.mark.parametrize(
    ("code", "kind", "why"),
    [
        ("53100", JournalUnavailable, "disk is full"),
        ("53200", JournalUnavailable, "memory is exhausted"),
        ("58030", JournalUnavailable, "disk fails"),
        ("57014", JournalUnavailable, "took too long"),
        ("57P02", JournalUnavailable, "is stopping or starting"),
        ("XX001", JournalDamaged, "tables are damaged"),
        ("22000", JournalError, "rejected a statement"),
    ],
)
def test_a_postgres_error_raises_a_typed_error_and_the_append_writes_nothing(
    storage: PostgresStorage, direct: psycopg.Connection[Any], code: str, kind: type[JournalError], why: str
) -> None:
    claim = begin(storage, "one")
    _fail_next_appends(direct, code, times=1)
    with pytest.raises(kind) as raised:
        storage.append([Entry("one", claim.fence, (to("b"),))])
    message = refusal(kind, raised)
    assert why in message
    assert code in message
    assert "words of a record" not in message
    assert storage.append([Entry("one", claim.fence, (to("c"),))]) == [2]
    assert storage.read("one", 1) == [to("c")]


def test_an_event_that_postgres_cannot_hold_is_refused_and_not_in_doubt(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, other = storage.claim("one"), begin(storage, "two")
    with pytest.raises(JournalError, match="22021") as raised:
        storage.append([Entry("one", claim.fence, (Opened("one", "a", tenant="a\0b"),))])
    refusal(JournalError, raised)
    with pytest.raises(JournalError, match="NUL") as raised:
        storage.claim("a\0b")
    refusal(JournalError, raised)

    def fails(self: Batch) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Batch, "parameters", property(fails))
        with pytest.raises(KeyboardInterrupt):
            storage.append([Entry("two", other.fence, (to("lost"),))])
    assert storage.append([Entry("two", other.fence, (to("b"),))]) == [2]
    storage._writer.close()  # the next connection would undo an append in doubt; there is none
    assert storage.append([Entry("two", other.fence, (to("c"),))]) == [3]
    assert storage.read("two", 1) == [to("b"), to("c")]


@pytest.mark.parametrize("code", ["40001", "40P01", "23503"])
def test_the_number_of_retries_after_a_transaction_conflict_is_bounded(
    storage: PostgresStorage, direct: psycopg.Connection[Any], code: str
) -> None:
    claim = begin(storage, "one")
    _fail_next_appends(direct, code, times=3)
    assert storage.append([Entry("one", claim.fence, (to("b"),))]) == [2]
    direct.execute("SELECT setval('tries', 1)")
    direct.execute("DROP FUNCTION fails CASCADE")
    direct.execute("DROP SEQUENCE tries")
    _fail_next_appends(direct, code, times=1000)
    with pytest.raises(JournalUnavailable, match="other hosts kept"):
        storage.append([Entry("one", claim.fence, (to("c"),))])
    assert direct.execute("SELECT last_value FROM tries").fetchall() == [(MAX_TRIES,)]
    assert storage.read("one", 1) == [to("b")]


@pytest.mark.parametrize(
    ("bound", "why"), [(30.0, "another program holds a lock"), (0.3, "the statement took too long")]
)
def test_a_write_waits_for_a_lock_of_another_client_up_to_the_timeout(
    postgres: Server,
    schema: str,
    storage: PostgresStorage,
    direct: psycopg.Connection[Any],
    bound: float,
    why: str,
) -> None:
    claim = begin(storage, "one")
    bounded = PostgresStorage(
        postgres.url(schema), patience=10 * bound if bound < 1 else 0.1, statement_timeout=bound
    )
    with direct.transaction():
        direct.execute("LOCK TABLE actors_session IN SHARE MODE")
        with pytest.raises(JournalUnavailable, match=why):
            bounded.append([Entry("one", claim.fence, (to("b"),))])
    bounded.close()
    assert storage.append([Entry("one", claim.fence, (to("c"),))]) == [2]


def test_writes_are_refused_by_a_read_only_server_until_it_is_writable_again(postgres: Server) -> None:
    role = postgres.role()
    storage = PostgresStorage(postgres.url(role, user=role), patience=0.1)
    claim = begin(storage, "one")
    with postgres.connect() as owner:
        owner.execute(f"ALTER ROLE {role} SET default_transaction_read_only = on")
        _end_all(owner, role)
        for refused in (storage.renew_lease, lambda: storage.append([Entry("one", claim.fence, (to("b"),))])):
            with pytest.raises(JournalUnavailable, match="read-only"):
                refused()
        owner.execute(f"ALTER ROLE {role} RESET default_transaction_read_only")
    assert storage.append([Entry("one", claim.fence, (to("c"),))]) == [2]
    storage.close()


def _end_all(owner: psycopg.Connection[Any], role: str) -> None:
    owner.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = %s", (role,))


def test_a_password_that_changes_at_run_time_counts_as_an_outage(postgres: Server) -> None:
    role = postgres.role()
    storage = PostgresStorage(postgres.url(role, user=role), patience=0.1)
    claim = begin(storage, "one")
    with postgres.connect() as owner:
        owner.execute(f"ALTER ROLE {role} PASSWORD 'another'")
        _end_all(owner, role)
        with pytest.raises(JournalUnavailable) as raised:
            storage.append([Entry("one", claim.fence, (to("b"),))])
        assert "the user or the password is wrong" in refusal(JournalUnavailable, raised)
        owner.execute(f"ALTER ROLE {role} PASSWORD '{PASSWORD}'")
    assert storage.append([Entry("one", claim.fence, (to("c"),))]) == [2]
    storage.close()


def test_connections_closed_by_the_server_are_reopened_silently(postgres: Server) -> None:
    role = postgres.role()
    storage = PostgresStorage(postgres.url(role, user=role))
    claim = begin(storage, "one")
    for number in range(2, 5):
        with postgres.connect() as owner:
            _end_all(owner, role)
        assert storage.append([Entry("one", claim.fence, (to("b"),))]) == [number]
        assert len(storage.read("one")) == number
    storage.close()


def test_commits_are_synchronous_regardless_of_the_default_of_the_server(postgres: Server) -> None:
    role = postgres.role()
    with postgres.connect() as owner:
        owner.execute(f"ALTER ROLE {role} SET synchronous_commit = off")
    storage = PostgresStorage(postgres.url(role, user=role))
    (row,) = storage._writer.run(lambda it: it.execute("SHOW synchronous_commit").fetchall())
    assert row == ("on",)
    storage.close()


@pytest.mark.parametrize("digits", [0, -15])
def test_a_server_that_rounds_floats_by_default_does_not_make_a_journal_look_damaged(
    postgres: Server, digits: int
) -> None:
    role = postgres.role()
    with postgres.connect() as owner:
        owner.execute(f"ALTER ROLE {role} SET extra_float_digits = {digits}")
    url = postgres.url(role, user=role)
    storage = PostgresStorage(url, clock=lambda: TIME)
    begin(storage, "one")
    storage.close()
    storage = PostgresStorage(url, clock=lambda: TIME)
    claim = storage.claim("one")
    assert storage.append([Entry("one", claim.fence, (to("b"),))]) == [2]
    assert [each.used for each in storage.sessions()] == [TIME]
    storage.close()
    done = actors_now("sessions", "fsck", url)
    assert (done.code, done.err) == (0, "")


# Appends in doubt


@pytest.fixture
def far(postgres: Server, schema: str, proxy: Proxy) -> Iterator[PostgresStorage]:
    """A storage that reaches its server through the proxy."""
    made = PostgresStorage(postgres.url(schema, host="127.0.0.1", port=str(proxy.port)), patience=5)
    yield made
    proxy.is_open = True
    made.close()


@pytest.mark.parametrize("loses", ["requests", "answers"])
def test_an_append_in_doubt_after_a_lost_connection_is_written_once(
    far: PostgresStorage, proxy: Proxy, loses: Loses
) -> None:
    claim = begin(far, "one")
    proxy.lose(loses)
    assert far.append([Entry("one", claim.fence, (to("b"), to("c")))]) == [3]
    assert proxy.lost.is_set()
    proxy.let_go()
    assert far.append([Entry("one", claim.fence, (to("d"),))]) == [4]
    assert far.read("one", 1) == [to("b"), to("c"), to("d")]


@pytest.mark.parametrize("loses", ["requests", "answers"])
def test_an_append_refused_during_an_outage_is_not_in_the_log(
    postgres: Server, schema: str, proxy: Proxy, loses: Loses
) -> None:
    far = PostgresStorage(postgres.url(schema, host="127.0.0.1", port=str(proxy.port)), patience=0.3)
    claim = begin(far, "one", tenant="t")
    proxy.lose(loses, then_shut=True)
    with pytest.raises(JournalUnavailable):
        far.append([Entry("one", claim.fence, (to("b"),))])
    with pytest.raises(JournalUnavailable):
        far.read("one")  # the outcome is still unknown
    proxy.is_open = True
    proxy.let_go()
    assert far.read("one", 1) == []
    (stored,) = far.sessions()
    assert (stored.events, stored.target, stored.tenant) == (1, "a", "t")
    assert far.append([Entry("one", claim.fence, (to("c"),))]) == [2]
    assert far.read("one", 1) == [to("c")]
    far.close()


def test_an_append_in_doubt_is_not_undone_after_a_takeover(
    postgres: Server, schema: str, storage: PostgresStorage, direct: psycopg.Connection[Any], proxy: Proxy
) -> None:
    far = PostgresStorage(postgres.url(schema, host="127.0.0.1", port=str(proxy.port)), patience=0.3)
    claim = begin(far, "one")
    proxy.lose("answers", then_shut=True)
    with pytest.raises(JournalUnavailable):
        far.append([Entry("one", claim.fence, (to("b"),))])
    direct.execute("UPDATE actors_host SET until = until - interval '1 hour'")
    taken = storage.claim("one")
    assert (taken.fence, taken.last) == (2, 2)
    proxy.is_open = True
    (outcome,) = far.append([Entry("one", claim.fence, (to("c"),))])
    assert isinstance(outcome, Fenced)
    assert storage.read("one", 1) == [to("b")]
    far.close()


def test_a_storage_closes_while_its_server_is_unreachable(
    postgres: Server, schema: str, storage: PostgresStorage, proxy: Proxy
) -> None:
    far = PostgresStorage(postgres.url(schema, host="127.0.0.1", port=str(proxy.port)), patience=0.1)
    claim = begin(far, "one")
    proxy.lose("requests", then_shut=True)
    far.close()
    assert proxy.lost.is_set()
    (stored,) = storage.sessions()
    assert stored.owner is not None  # until its lease expires
    (outcome,) = storage.append([Entry("one", claim.fence, (to("b"),))])
    assert isinstance(outcome, Fenced)


def test_an_append_that_certainly_failed_is_not_undone(
    postgres: Server, schema: str, storage: PostgresStorage, direct: psycopg.Connection[Any]
) -> None:
    """An undo could mistake a later event with the same number, of this host or another storage, for the failed one."""
    claim = begin(storage, "one")
    _fail_next_appends(direct, "53100", times=1)
    with pytest.raises(JournalUnavailable):
        storage.append([Entry("one", claim.fence, (to("b"),))])
    direct.execute("UPDATE actors_session SET owner = NULL")
    same = PostgresStorage(postgres.url(schema))
    assert same.append([Entry("one", claim.fence, (to("c"),))]) == [2]
    same.close()
    direct.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name LIKE %s",
        (f"{storage._name}%",),
    )
    storage.renew_lease()  # on a new connection
    assert storage.read("one", 1) == [to("c")]


def test_a_storage_waits_for_an_old_connection_that_does_not_end(
    far: PostgresStorage, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = begin(far, "one")
    monkeypatch.setattr(statements, "END_OTHERS", "SELECT false WHERE %s > 0 AND %s <> ''")
    monkeypatch.setattr(far._writer, "_patience", 0.1)
    proxy.lose("answers")
    with pytest.raises(JournalUnavailable, match="has not ended a lost connection"):
        far.append([Entry("one", claim.fence, (to("b"),))])
    monkeypatch.undo()
    assert far.append([Entry("one", claim.fence, (to("c"),))]) == [2]
    assert far.read("one", 1) == [to("c")]


def test_a_read_does_not_wait_for_an_append_in_progress(
    postgres: Server, schema: str, direct: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = PostgresStorage(postgres.url(schema), patience=60, lease=200)
    claim, appended = begin(storage, "one"), list[Appended]()
    entries = [Entry("one", claim.fence, (to("b"),))]
    thread = Thread(target=lambda: appended.extend(storage.append(entries)))
    with direct.transaction():
        direct.execute("LOCK TABLE actors_record IN SHARE MODE")
        thread.start()
        while not direct.execute(_WAITS).fetchall() and thread.is_alive():
            sleep(0.001)
        with monkeypatch.context() as patch:
            patch.setattr(storage._writer, "run", _fail_if_used)
            assert storage.page("one").last == 1
            assert appended == []
    thread.join(60)
    assert appended == [2]
    assert storage.page("one").last == 2
    storage.close()


_WAITS = "SELECT FROM pg_locks WHERE relation = 'actors_record'::regclass AND NOT granted"


def _fail_if_used(_: object) -> None:
    raise AssertionError("the connection that writes is used")
