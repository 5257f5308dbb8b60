"""The SQLite storage: file format, golden journals, blobs, durability levels, and leases."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from errno import EACCES, ENOENT
from pathlib import Path
from shutil import copy

import anyio
import pytest
from msgspec.structs import replace

from actors import Runtime
from actors.config import load
from actors.core.data.jsonio import Json
from actors.core.log import events
from actors.core.log.call_events import Returned, Scheduled
from actors.core.log.codec import encode_event
from actors.core.log.events import AskStarted, Closed, LogEvent, Opened, SwitchApplied
from actors.core.values.content import Message, Text
from actors.core.values.identity import CallId
from actors.core.values.packed import pack
from actors.errors import (
    ConfigError,
    JournalDamaged,
    JournalError,
    JournalUnavailable,
    SessionLeased,
)
from actors.journal.commands import Append, ClaimSession
from actors.journal.journal_actor import JournalActor
from actors.journal.storage import Entry
from actors.journal.storage.directory import SessionFilter
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite import format as file_format
from actors.journal.storage.sqlite import storage as sqlite_storage
from actors.journal.storage.sqlite.check import JournalFile
from actors.journal.storage.sqlite.faults import translate_errors
from actors.journal.storage.sqlite.locks import WriteLock
from actors.kernel import System
from tests.core.every_event import every_event
from tests.journal.storages import begin, to

GOLDEN = sorted((Path(__file__).parent / "golden_journals").glob("*.db"))
WORDS = "many words " * 4000
LOG: tuple[LogEvent, ...] = (
    Opened("one", "a", "Be brief.", (pack(Message("user", (Text("Before."),))),), tenant="t"),
    AskStarted(1, pack(Message("user", (Text(WORDS),)))),
    Scheduled(CallId("c"), "work", Json(b'{"n":1}')),
    Returned(CallId("c"), Json(b'"' + WORDS.encode() + b'"')),
    SwitchApplied("b"),
)
"""The content of every golden journal: session `one`, and its closed copy, session `two`.

Session `every` has one event of each kind of its version.
"""
VERSION = f"v{file_format.VERSION}.{events.VERSION}"
"""The versions of the file format and of the events."""


def write_golden(path: Path) -> None:
    """Write a golden journal of this version: `python -m tests.journal.test_sqlite FILE`."""
    storage = SqliteStorage(path)
    for session, end in (("one", ()), ("two", (Closed(),))):
        log = (Opened(session, "a", "Be brief.", LOG[0].messages, tenant="t"), *LOG[1:], *end)  # type: ignore[union-attr]  # it is Opened
        storage.append([Entry(session, storage.claim(session).fence, log)])
    storage.append([Entry("every", storage.claim("every").fence, tuple(every_event()))])
    storage.close()


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_a_journal_of_every_version_can_be_read_and_extended(golden: Path, tmp_path: Path) -> None:
    copy(golden, tmp_path / "sessions.db")
    storage = SqliteStorage(tmp_path / "sessions.db")
    assert storage.read("one") == list(LOG)
    assert storage.read("two")[1:] == [*LOG[1:], Closed()]
    every = storage.read("every")
    assert every == every_event() if golden.stem == VERSION else len(every) > 20
    claim = storage.claim("one")
    assert claim.last == len(LOG)
    assert storage.append([Entry("one", claim.fence, (to("c"),))]) == [len(LOG) + 1]
    assert {stored.id: stored.state for stored in storage.sessions(SessionFilter("t"))} == {
        "one": "idle",
        "two": "closed",
    }
    storage.close()
    with closing(JournalFile(tmp_path / "sessions.db")) as file:
        damage = list(file.damage())
    assert [each for each in damage if each.session != "every"] == []
    assert all("are lost" in each.what for each in damage)  # one of its events records a loss


def test_a_golden_journal_exists_for_this_version() -> None:
    assert VERSION in [path.stem for path in GOLDEN]


def test_a_new_file_matches_the_golden_schema(tmp_path: Path) -> None:
    """A change of the tables needs a new version."""
    with closing(SqliteStorage(tmp_path / "sessions.db")) as storage:
        storage.open()
    golden = next(path for path in GOLDEN if path.stem == VERSION)
    assert tables(tmp_path / "sessions.db") == tables(golden)


def tables(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as file:
        return file.execute(
            "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"
        ).fetchall()


def test_a_file_of_a_newer_version_is_refused_and_unchanged(tmp_path: Path) -> None:
    path, newer = tmp_path / "sessions.db", file_format.VERSION + 1
    with closing(SqliteStorage(path)) as storage:
        begin(storage, "one")
    set_version(path, newer)
    before = path.read_bytes()
    for use in (SqliteStorage(path).open, lambda: JournalFile(path)):
        with pytest.raises(
            JournalError, match=f"format {newer} is newer than format {newer - 1} of this program"
        ):
            use()
    assert path.read_bytes() == before


def test_an_open_file_upgraded_by_another_process_is_refused(tmp_path: Path) -> None:
    path, newer = tmp_path / "sessions.db", file_format.VERSION + 1
    with closing(SqliteStorage(path)) as storage:
        claim = begin(storage, "one")
        assert len(storage.read("one")) == 1
        set_version(path, newer)
        for use in (
            lambda: storage.append([Entry("one", claim.fence, (to("b"),))]),
            lambda: storage.read("one"),
            lambda: storage.claim("two"),
        ):
            with pytest.raises(JournalError, match=f"format {newer} is newer than format"):
                use()
        set_version(path, file_format.VERSION)
        assert len(storage.read("one")) == 1


def set_version(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(f"PRAGMA user_version = {version}")


def test_a_relative_path_names_the_same_file_after_chdir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    storage = SqliteStorage("sessions.db")
    fence = begin(storage, "s").fence
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    storage.append([Entry("s", fence, (to("b"),))])
    storage.close()
    assert len(storage.read("s")) == 2
    storage.close()
    assert not list(Path().iterdir())
    (tmp_path / "elsewhere").rmdir()
    with pytest.raises(ConfigError, match="the current folder no longer exists"):
        SqliteStorage("sessions.db")


def test_a_symlinked_file_is_one_journal_with_one_live_writer(tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "link.db"
    link.symlink_to(tmp_path / "sessions.db")
    with closing(SqliteStorage(link)) as one, closing(SqliteStorage(tmp_path / "sessions.db")) as two:
        begin(one, "s")
        with pytest.raises(SessionLeased):
            two.claim("s")
        assert len(two.read("s")) == 1
        with closing(JournalFile(link)) as file:
            assert list(file.damage()) == []
            assert file.records == 1
    assert list((tmp_path / "links").iterdir()) == [link]


def test_a_new_file_is_private_and_an_existing_file_keeps_its_mode(
    tmp_path: Path,
) -> None:
    def modes() -> dict[str, int]:
        return {path.suffix: path.stat().st_mode & 0o777 for path in tmp_path.glob("s.db*")}

    before = os.umask(0o022)
    try:
        storage = SqliteStorage(tmp_path / "s.db")
        begin(storage, "one")
        assert set(modes().values()) == {0o600}
        storage.close()
        (tmp_path / "s.db").chmod(0o660)
        begin(storage, "two")
        assert modes()[".db"] == 0o660
        storage.close()
    finally:
        os.umask(before)


def test_a_foreign_database_is_refused_and_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(JournalError, match="not a journal, but another program's database"):
        SqliteStorage(path).open()
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT name FROM sqlite_schema").fetchall() == [("theirs",)]
    other.close()


def test_a_large_value_is_stored_once_and_deleted_with_its_last_log(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    storage = SqliteStorage(path)
    large = "x" * 1_000_000
    event = Returned(CallId("c"), Json(b'"' + large.encode() + b'"'))
    for session in ("one", "two", "three"):
        storage.append([Entry(session, begin(storage, session).fence, (event, event))])
        assert [encode_event(each) for each in storage.read(session, 1)] == [encode_event(event)] * 2
    storage.delete("one")
    assert storage.read("two", 1) == [event, event]
    storage.close()
    assert 1_000_000 < path.stat().st_size < 1_200_000
    storage.delete("two")
    assert storage.read("three", 1) == [event, event]
    storage.delete("three")
    storage.close()
    left = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert b"x" * 100 not in left


DIES = """
import os, sys
from pathlib import Path
from actors.journal.storage import Entry
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite.connection import Connections
from tests.journal.storages import begin, to

storage = SqliteStorage(Path(sys.argv[1]))
fence = begin(storage, "one").fence
storage.append([Entry("one", fence, (to("what-is-to-be-deleted"),))])
Connections._checkpoint = lambda self, connection: os._exit(9)
storage.delete("one")
"""


def test_opening_a_file_removes_deleted_data_that_remained_after_a_crash(
    tmp_path: Path,
) -> None:
    """The lease of a dead process is also released."""

    def remaining_files() -> list[str]:
        return [each.name for each in tmp_path.iterdir() if b"what-is-to-be-deleted" in each.read_bytes()]

    died = subprocess.run([sys.executable, "-c", DIES, tmp_path / "s.db"], timeout=60, check=False)
    (dead,) = tmp_path.glob("s.db-host-*")
    assert (died.returncode, remaining_files()) == (9, ["s.db-wal"])
    storage = SqliteStorage(tmp_path / "s.db")
    storage.open()
    assert remaining_files() == []
    assert (storage.claim("one").fence, storage.read("one")) == (2, [])
    assert len(list(tmp_path.glob("s.db-host-*"))) == 1
    assert not dead.exists()
    other = SqliteStorage(tmp_path / "s.db")
    assert other.claim("two").fence == 2
    with pytest.raises(SessionLeased):  # a live host keeps its leases
        other.claim("one")
    other.close()
    storage.close()


def test_a_write_waits_for_another_process_and_then_raises_a_typed_error(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "sessions.db", patience=0.01)
    claim = begin(storage, "one")
    with (
        WriteLock(tmp_path / "sessions.db-lock", 1),
        pytest.raises(JournalUnavailable, match="another process"),
    ):
        storage.append([Entry("one", claim.fence, (to("b"),))])
    assert storage.append([Entry("one", claim.fence, (to("b"),))]) == [2]
    storage.close()


def test_nothing_is_appended_to_a_log_with_an_unexpected_end(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "sessions.db")
    claim = begin(storage, "one")
    remembered = replace(storage._rows["one"])
    storage.append([Entry("one", claim.fence, (to("b"),))])
    storage._rows["one"] = remembered
    with pytest.raises(JournalDamaged, match="did not find the entries of all its sessions"):
        storage.append([Entry("one", claim.fence, (to("c"),))])
    assert storage.append([Entry("one", claim.fence, (to("d"),))]) == [3]
    assert storage.read("one", 1) == [to("b"), to("d")]
    storage.close()


def test_an_append_of_many_sessions_survives_a_cleared_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_storage, "MAX_CACHED", 1)
    storage = SqliteStorage(tmp_path / "sessions.db")
    claims = {name: begin(storage, name) for name in ("one", "two", "three")}
    twice = [Entry(name, claims[name].fence, (to("b"), to("c"))) for name in (*claims, *claims)]
    assert storage.append(twice) == [3, 3, 3, 5, 5, 5]
    for name in claims:
        assert storage.read(name, 1) == [to("b"), to("c")] * 2
    storage.close()


def test_a_log_can_be_read_from_any_number_and_deleted_alone(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    storage = SqliteStorage(path)
    claims = {name: begin(storage, name) for name in ("one", "two", "three")}
    for number in range(20):
        storage.append(
            [Entry(name, claim.fence, (to(f"{name}-{number}"),)) for name, claim in claims.items()]
        )
    whole = {name: storage.read(name) for name in claims}
    for name, log in whole.items():
        assert [storage.read(name, after) for after in range(22)] == [log[after:] for after in range(22)]
    storage.delete("two")
    assert (storage.read("one"), storage.read("three")) == (whole["one"], whole["three"])
    again = storage.claim("two")
    storage.append([Entry("two", again.fence, (to("new"),))])
    assert storage.read("two") == [to("new")]
    storage.close()
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM record").fetchone() == (43,)
    with closing(JournalFile(path)) as file:
        assert list(file.damage()) == []


def test_each_durability_level_sets_its_sqlite_sync_mode(tmp_path: Path) -> None:
    for durability, expected in (("process", 1), ("power", 2)):
        storage = SqliteStorage(tmp_path / f"{durability}.db", durability=durability)  # type: ignore[arg-type]  # it is a durability
        with storage._connections.transaction() as connection:
            assert connection.execute("PRAGMA synchronous").fetchone() == (expected,)
        storage.close()


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-6")
async def test_a_runtime_keeps_its_logs_in_the_configured_file(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    (tmp_path / "actors.toml").write_text(f'[journal]\npath = "{path}"\ndurability = "process"\n')
    environ = {"OPENAI_API_KEY": "k"}
    async with Runtime(environ=environ, journal=str(path)) as runtime:
        await runtime.open("openai:m", id="one")
    async with Runtime(load(tmp_path / "actors.toml", environ), environ=environ) as runtime:
        assert runtime._storage.durability == "process"
        (stored,) = runtime._storage.sessions()
    assert (stored.id, stored.events, stored.owner) == ("one", 1, None)
    assert sorted(os.listdir(tmp_path)) == ["actors.toml", "sessions.db", "sessions.db-lock"]


@pytest.mark.parametrize("journal", ["https://x", "redis://x"])
def test_an_unknown_journal_setting_is_refused_with_a_one_line_error(journal: str) -> None:
    with pytest.raises(ConfigError, match="is not supported; use the path of a file or a postgresql:"):
        Runtime(environ={}, journal=journal)


def test_a_platform_without_file_locks_refuses_only_file_journals(
    tmp_path: Path,
) -> None:
    """Runs in a fresh interpreter, which has not imported the locks yet."""
    program = """
import sys
sys.modules["fcntl"] = None
from actors import Runtime
from actors.errors import ConfigError
Runtime(environ={})
try:
    Runtime(environ={}, journal="sessions.db")
except ConfigError as error:
    print(error)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    (line,) = ran.stdout.splitlines()
    assert line.startswith(f"{tmp_path}/sessions.db: a journal in a file needs file locks")
    assert list(tmp_path.iterdir()) == []


class Commits(sqlite3.Connection):
    """A connection that counts its commits and can simulate a full disk."""

    count, full = 0, False

    def execute(self, sql: str, *parameters: object) -> sqlite3.Cursor:
        if sql == "COMMIT":
            Commits.count += 1
            if Commits.full:
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise error
        return super().execute(sql, *parameters)  # type: ignore[arg-type]


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> type[Commits]:
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **options: connect(*args, factory=Commits, **options)
    )
    monkeypatch.setattr(Commits, "count", 0)
    monkeypatch.setattr(Commits, "full", False)
    return Commits


@pytest.mark.anyio
async def test_concurrent_opens_share_commits(tmp_path: Path, commits: type[Commits]) -> None:
    storage, names = SqliteStorage(tmp_path / "sessions.db"), [f"s{number}" for number in range(500)]
    async with System() as system:
        journal = system.spawn(lambda: JournalActor(storage), "journal")

        async def open_session(name: str) -> None:
            claim = await journal.ask(ClaimSession(name))
            assert await journal.ask(Append(name, claim.fence, (Opened(name, "a"),))) == 1

        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(open_session, name)
    assert commits.count < 20
    assert sorted(stored.id for stored in storage.sessions(limit=1000)) == sorted(names)
    storage.close()


def test_claims_and_an_append_in_one_transaction_are_one_commit(
    tmp_path: Path, commits: type[Commits]
) -> None:
    storage, other = (SqliteStorage(tmp_path / "sessions.db") for _ in range(2))
    claim = begin(storage, "one")
    begin(other, "theirs")
    before = commits.count
    with storage.transaction():
        with pytest.raises(SessionLeased):
            storage.claim("theirs")
        two = storage.claim("two")
        assert storage.append([Entry("one", claim.fence, (to("b"),))]) == [2]
    assert commits.count == before + 1
    assert storage.append([Entry("two", two.fence, (to("b"),))]) == [1]
    assert other.read("one") == [Opened("one", "a"), to("b")]
    storage.close()
    other.close()


def _claim_and_append(storage: SqliteStorage, entry: Entry) -> None:
    with storage.transaction():
        storage.claim("two")
        storage.append([entry])


def test_a_failed_commit_undoes_the_whole_transaction(tmp_path: Path, commits: type[Commits]) -> None:
    storage = SqliteStorage(tmp_path / "sessions.db")
    claim = begin(storage, "one")
    commits.full = True
    with pytest.raises(JournalUnavailable):
        _claim_and_append(storage, Entry("one", claim.fence, (to("lost"),)))
    commits.full = False
    assert storage.append([Entry("one", claim.fence, (to("b"),))]) == [2]
    assert storage.claim("two").fence == 1
    storage.close()
    assert SqliteStorage(tmp_path / "sessions.db").read("one") == [Opened("one", "a"), to("b")]


if __name__ == "__main__":
    write_golden(Path(sys.argv[1]))


def test_an_operating_system_error_suggests_the_next_check() -> None:
    for error, asked in (
        (
            PermissionError(EACCES, "Permission denied"),
            "check that this user may write to it, to its folder, and",
        ),
        (FileNotFoundError(ENOENT, "No such file or directory"), "check that its folder exists"),
    ):
        with pytest.raises(JournalUnavailable, match=asked), translate_errors("sessions.db"):
            raise error
