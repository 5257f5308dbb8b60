"""Titles and metadata of sessions: lists show them and filter by them."""

import json
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from math import inf, nan
from pathlib import Path
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from actors import Runtime
from actors.cli import main
from actors.core.log.codec import encode_event
from actors.core.log.events import Opened, TurnEnded, TurnStarted
from actors.core.session.publishing import NO_BINDING
from actors.core.settings.labels import Metadata
from actors.errors import ConfigError, JournalDamaged
from actors.journal.storage import Entry, Storage
from actors.journal.storage.directory import SessionFilter
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.postgres import statements as sql
from actors.journal.storage.postgres.batch import Batch
from actors.journal.storage.postgres.check import JournalTables
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite.check import JournalFile
from actors.sync import BlockingRuntime
from actors.telemetry import PrometheusCollector
from actors.testing import OpenAIServer, Say, Status, Turn
from tests.journal.postgres import Server
from tests.journal.storages import STORAGES, begin, open_storage, to
from tests.runtime_support import bodies, openai, runtime_with

TITLE = "Über 100 % Regen_in Oslo"
NOTES: dict[str, str | int | float | bool] = {
    "user": "7",
    "tries": 7,
    "share": 0.5,
    "is_paid": True,
    'a "key"\u2028': "lines\nand\0ends",
}


@pytest.fixture(params=STORAGES)
def storage(request: pytest.FixtureRequest) -> Iterator[Storage]:
    with closing(open_storage(request.param, request)) as storage:
        storage.open()
        yield storage


def list_ids(storage: Storage, **conditions: Any) -> list[str]:  # Any: as for a filter
    """Return the ids of a list that is read two at a time."""
    which, ids = SessionFilter(**conditions), list[str]()
    page = storage.sessions(which, limit=2)
    while page:
        ids += [each.id for each in page]
        page = storage.sessions(which, limit=2, after=page[-1].page)
    return sorted(ids)


def test_a_list_of_sessions_can_be_filtered_by_metadata(storage: Storage) -> None:
    for number in range(9):
        user: Metadata = (("user", str(number % 2)), ("number", number))
        begin(storage, f"s{number}", tenant="ab"[number % 2], metadata=(*user, ("note", '"user":"1"')))
    begin(storage, "plain", metadata=(("number", 30),))
    assert list_ids(storage, metadata=(("user", "1"),)) == ["s1", "s3", "s5", "s7"]
    assert list_ids(storage, metadata=(("user", "0"),), tenant="b") == []
    assert list_ids(storage, metadata=(("user", "1"), ("number", 3))) == ["s3"]
    assert list_ids(storage, metadata=(("number", 2), ("user", "1"))) == []
    for other in (1, 1.0, True, "", "11", '1"\n'):
        assert list_ids(storage, metadata=(("user", other),)) == []
    for other in ("3", 3.0, True):
        assert list_ids(storage, metadata=(("number", other),)) == []
    assert list_ids(storage, metadata=(("number", 3),)) == ["s3"]
    assert len(list_ids(storage)) == 10


def test_long_metadata_is_found_by_each_entry(storage: Storage) -> None:
    """An entry of 2,750 bytes that cannot be compressed does not fit into an index of Postgres."""
    random, escaped = Random(1), [chr(number) for number in (*range(1, 8), *range(14, 32))]

    def wide() -> str:
        return chr(random.randrange(0x10000, 0x10FFFF))

    value = "".join(random.choice(escaped) if random.random() < 0.4 else wide() for _ in range(512))
    long: Metadata = (("".join(wide() for _ in range(64)), value),)
    begin(storage, "long", metadata=(*long, ("user", "7")))
    begin(storage, "other", metadata=(("user", "7"),))
    assert list_ids(storage, metadata=long) == ["long"]
    assert list_ids(storage, metadata=(*long, ("user", "7"))) == ["long"]
    assert list_ids(storage, metadata=(*long, ("user", "8"))) == []
    assert list_ids(storage, metadata=(("user", "7"),)) == ["long", "other"]


def test_a_list_of_sessions_can_be_filtered_by_title_words_in_any_case(storage: Storage) -> None:
    titles = {"a": TITLE, "b": "100 of it", "c": "regen-in", "d": "", "e": "REGEN_IN \\ BERGEN"}
    for name, title in titles.items():
        begin(storage, name, title=title, metadata=(("title", "oslo"),))
    assert {each.id: each.title for each in storage.sessions()} == titles
    assert list_ids(storage, title="OSLO") == list_ids(storage, title="ÜBER") == ["a"]
    assert list_ids(storage, title="100 %") == ["a"]
    assert list_ids(storage, title="regen_in") == ["a", "e"]
    assert list_ids(storage, title="\\") == ["e"]
    assert list_ids(storage, title="regen") == ["a", "c", "e"]
    assert list_ids(storage, title="regen", metadata=(("title", "oslo"),)) == ["a", "c", "e"]


def test_title_and_metadata_persist_until_the_log_is_deleted(
    storage: Storage,
) -> None:
    claim = begin(storage, "one", title=TITLE, metadata=tuple(NOTES.items()))
    for turn in range(1, 4):
        storage.append(
            [Entry("one", claim.fence, (TurnStarted(turn, turn, NO_BINDING), TurnEnded(turn, "complete")))]
        )
    storage.release("one", claim.fence)
    stored = storage.find("one")
    assert stored is not None
    assert (stored.title, stored.metadata) == (TITLE, NOTES)
    assert list(map(type, stored.metadata.values())) == list(map(type, NOTES.values()))
    storage.delete("one")
    begin(storage, "one")
    [stored] = storage.sessions()
    assert (stored.title, stored.metadata) == ("", {})
    assert list_ids(storage, title="oslo") == list_ids(storage, metadata=(("user", "7"),)) == []


@pytest.mark.anyio
async def test_a_session_keeps_its_title_and_metadata_when_it_is_resumed(storage: Storage) -> None:
    async with runtime_with(a=openai(Turn(Say("Hi."))), storage=storage) as runtime:
        session = await runtime.open("a", id="one", title=TITLE, metadata=NOTES)
        await session.ask("Hello.")
        same = await runtime.open("a", id="one", title="Another", metadata={"user": "8"}, resume=True)
        for each in (session, same, await runtime.journal.get("one")):
            assert (each.title, each.metadata) == (TITLE, NOTES)
        with pytest.raises(TypeError):
            session.metadata["user"] = "8"  # type: ignore[index]  # as a caller may
        await runtime.journal.fork("one", id="copy")
        file = await runtime.journal.export("one")
        await runtime.journal.import_session(file, id="imported")
        copied = await runtime.resume("copy")
        assert (copied.title, copied.metadata) == (TITLE, NOTES)
        await runtime.open("a", id="plain")
        found = await runtime.journal.list(title="oslo", metadata={"user": "7", "is_paid": True})
        assert sorted(each.id for each in found) == ["copy", "imported", "one"]
        [plain] = [each for each in await runtime.journal.list() if each not in found]
        assert (plain.id, plain.title, plain.metadata) == ("plain", "", {})
    if not isinstance(storage, MemoryStorage):
        async with runtime_with(a=openai(), storage=storage) as runtime:
            for each in (
                await runtime.resume("one"),
                await runtime.open("a", id="imported", title="Another", resume=True),
            ):
                assert (each.title, each.metadata) == (TITLE, NOTES)


REFUSED: list[tuple[dict[str, object], str]] = [
    (
        {"title": 3},
        "title= must be a string of at most 200 characters without control characters, but its type is int",
    ),
    ({"title": "x" * 201}, "title= must be a string of at most 200 characters .*, but it has 201"),
    ({"title": "one\ntwo"}, "title= must be .* without control characters, but the title contains"),
    ({"title": "\ud800"}, "title= must be"),
    ({"metadata": [("a", "b")]}, "metadata= must be a mapping of names to values, not list"),
    ({"metadata": dict.fromkeys(map(str, range(17)), 1)}, "metadata= must have at most 16 keys, not 17"),
    (
        {"metadata": {3: "b"}},
        "metadata= must have keys of 1 to 64 characters without control characters, not 3",
    ),
    ({"metadata": {"": "b"}}, "metadata= must have keys of 1 to 64"),
    ({"metadata": {"k" * 65: "b"}}, "metadata= must have keys of 1 to 64"),
    ({"metadata": {"a\nb": "b"}}, r"metadata= must have keys of 1 to 64 .*, not 'a\\nb'"),
    (
        {"metadata": {"a": "secret" * 86}},
        r"metadata\['a'\] must be a string of at most 512 .*, but it has 516",
    ),
    ({"metadata": {"a": None}}, r"metadata\['a'\] must be .*, but its type is NoneType"),
    ({"metadata": {"a": ["b"]}}, r"metadata\['a'\] must be .*, but its type is list"),
    ({"metadata": {"a": inf}}, r"metadata\['a'\] must be .* a finite float"),
    ({"metadata": {"a": nan}}, r"metadata\['a'\] must be .* a finite float"),
    ({"metadata": {"a": 2**63}}, r"metadata\['a'\] must be .* a 64-bit int"),
    ({"metadata": {"a": "\ud800"}}, r"metadata\['a'\] must be .*, but the value cannot be stored"),
]


@pytest.mark.alternating
@pytest.mark.anyio
@pytest.mark.parametrize(("given", "says"), REFUSED)
async def test_an_invalid_title_or_metadata_raises_a_config_error(
    given: Any,  # Any: any value that a caller may pass
    says: str,
) -> None:
    async with runtime_with(a=openai()) as runtime:
        for refuse in (lambda: runtime.open("a", id="one", **given), lambda: runtime.journal.list(**given)):
            with pytest.raises(ConfigError, match=f"^{says}") as refused:
                await refuse()
            assert "\n" not in str(refused.value)
            assert "secret" not in str(refused.value)
        assert await runtime.journal.list() == []
        assert len(runtime.sessions) == 0


@pytest.mark.anyio
async def test_title_and_metadata_appear_in_no_request_log_or_metric(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    server = OpenAIServer([Turn(Say("Hi."))], faults={1: Status(401)})
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", title="marked title", metadata={"marked key": "marked value"})
        await session.ask("Hello.")
        await session.ask("Hello.", check=False)
        registry = CollectorRegistry()
        registry.register(PrometheusCollector(runtime.stats))
        shown = [generate_latest(registry).decode(), repr(runtime.stats()), caplog.text]
        await session.close()
    assert caplog.records
    assert len(bodies(server)) == 2
    assert not [text for text in (*shown, caplog.text, repr(bodies(server))) if "marked" in text]


def test_a_sync_session_has_title_and_metadata() -> None:
    with BlockingRuntime(Runtime(environ={"OPENAI_BASE_URL": "http://127.0.0.1:1"})) as runtime:
        session = runtime.open("openai:gpt-5.2", title=TITLE, metadata=NOTES)
        assert (session.title, session.metadata) == (TITLE, NOTES)


COLUMNS = [("title", "'Another'"), ("folded", "'another'"), ("metadata", "'{}'"), ("title", "''")]


@pytest.mark.parametrize(("column", "value"), COLUMNS)
def test_a_changed_title_or_metadata_in_a_file_is_damage(column: str, value: str, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(SqliteStorage(path)) as storage:
        begin(storage, "one", title=TITLE, metadata=(("user", "7"),))
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(f"UPDATE session SET {column} = {value}")
    with closing(JournalFile(path)) as file:
        assert [damage.session for damage in file.damage()] == ["one"]


def test_a_changed_title_or_metadata_in_a_database_is_damage(postgres: Server) -> None:
    schema = postgres.schema()
    with closing(PostgresStorage(postgres.url(schema))) as storage:
        for column, _ in COLUMNS[:3]:
            begin(storage, column, title=TITLE, metadata=(("user", "7"),))
        with postgres.connect(schema) as connection:
            for column, value in COLUMNS[:3]:
                connection.execute(f"UPDATE actors_session SET {column} = {value} WHERE name = '{column}'")
        with pytest.raises(JournalDamaged):
            storage.sessions()
    with closing(JournalTables(postgres.url(schema))) as tables:
        assert {damage.session for damage in tables.damage()} == {"title", "folded", "metadata"}


def test_a_reverted_append_in_a_database_leaves_no_title(postgres: Server) -> None:
    schema, opened = postgres.schema(), Opened("one", "a", title=TITLE, metadata=(("user", "7"),))
    with closing(PostgresStorage(postgres.url(schema))) as storage:
        storage.claim("one")
        batch = Batch(1.0, storage.host)
        row = storage._rows.get("one")
        assert row is not None
        batch.add_events(row, (opened,), [encode_event(opened)])
        with postgres.connect(schema) as connection:
            for statement, given in (
                (sql.append(labels=True, blobs=False), batch.parameters),
                (sql.TAKE_BACK, batch.revert_parameters),
            ):
                connection.execute(statement, given)
            found = connection.execute("SELECT last, title, folded, metadata FROM actors_session").fetchall()
            assert found == [(0, "", "", "")]
        claim = storage.claim("one")
        assert storage.append([Entry("one", claim.fence, (opened, to("b")))]) == [2]
        assert [each.title for each in storage.sessions()] == [TITLE]


def test_sessions_list_filters_by_title_metadata_and_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kept.db"
    with closing(SqliteStorage(path)) as storage:
        begin(storage, "oslo", title=TITLE, metadata=(("user", "7"), ("tries", 7)))
        begin(storage, "other", title="Another", metadata=(("user", "8"),))

    def run(*more: str) -> tuple[int, str, str]:
        code = main(["sessions", "list", *more, "--journal", str(path)])
        return code, *capsys.readouterr()

    assert run("--title", "regen")[1].endswith(f"a  {TITLE}  user=7  tries=7\n")
    for found in (("--metadata", "user=7"), ("--metadata", "tries:=7", "--metadata", "user=7")):
        assert [line.split()[0] for line in run(*found, "--state", "idle")[1].splitlines()] == ["oslo"]
    [line] = run("--json", "--title", "OSLO")[1].splitlines()
    assert (json.loads(line)["title"], json.loads(line)["metadata"]) == (TITLE, {"user": "7", "tries": 7})
    for missing in (("--metadata", "tries=7"), ("--metadata", "user:=7"), ("--state", "closed")):
        assert run(*missing)[2].endswith("no stored session matches\n")
    for wrong in (("--metadata", "user"), ("--metadata", ":=7"), ("--metadata", "a:=b"), ("--state", "new")):
        with pytest.raises(SystemExit, match="2"):
            run(*wrong)
    assert run("--metadata", "user:=[7]")[0] == 3
    with pytest.raises(SystemExit, match="2"):
        main(["sessions", "show", "oslo", "--title", "x", "--journal", str(path)])
