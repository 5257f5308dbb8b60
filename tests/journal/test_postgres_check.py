"""`actors sessions fsck` of a Postgres journal checks everything, names damage, and writes nothing."""

import json

import pytest

from actors.core.data.jsonio import Json
from actors.core.log.call_events import Returned
from actors.core.values.identity import CallId
from actors.journal.storage import Entry
from actors.journal.storage.postgres import PostgresStorage
from tests.cli.command import actors_now
from tests.journal.postgres import PASSWORD, Server
from tests.journal.storages import begin, to

LARGE = Returned(CallId("c"), Json(b'"' + b"x" * 20_000 + b'"'))


@pytest.fixture
def schema(postgres: Server) -> str:
    """A journal with two sessions, one of which was deleted and one of which has a large value."""
    schema = postgres.schema()
    storage = PostgresStorage(postgres.url(schema))
    for name in ("one", "gone"):
        storage.append([Entry(name, begin(storage, name).fence, (LARGE, to("b")))])
    storage.delete("gone")
    storage.close()
    return schema


def tables(postgres: Server, schema: str) -> list[object]:
    with postgres.connect(schema) as connection:
        return [
            connection.execute(f"SELECT * FROM {table} t ORDER BY t").fetchall()
            for table in ("actors_meta", "actors_session", "actors_record", "actors_blob", "actors_blob_use")
        ]


def test_fsck_reports_a_sound_postgres_journal_as_intact(postgres: Server, schema: str) -> None:
    before = tables(postgres, schema)
    done = actors_now("sessions", "fsck", postgres.url(schema), "--json")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == {"damage": [], "intact": {"sessions": 1, "records": 3, "blobs": 1}}
    told = actors_now("sessions", "fsck", postgres.url(schema))
    assert told.out.endswith("intact: 1 sessions, 3 records, 1 blobs\n")
    assert tables(postgres, schema) == before


@pytest.mark.parametrize(
    ("damage", "what", "place"),
    [
        ("UPDATE actors_record SET bytes = 'x' WHERE number = 2", "record 2 is corrupt", ("one", 2)),
        ("DELETE FROM actors_record WHERE number = 3", "record 3 is missing", ("one", 3)),
        (
            "UPDATE actors_session SET last = 2 WHERE name = 'one'",
            "the entry in the directory is corrupt",
            ("one", 0),
        ),
        ("UPDATE actors_blob SET bytes = 'x'", "is corrupt", ("", 0)),
        ("DELETE FROM actors_blob_use", "no session uses blob", ("", 0)),
        (
            "INSERT INTO actors_record VALUES (7, 1, 1, '')",
            "1 rows of actors_record belong to no session",
            ("", 0),
        ),
    ],
)
def test_fsck_names_the_damage_and_no_password(
    postgres: Server, schema: str, damage: str, what: str, place: tuple[str, int]
) -> None:
    with postgres.connect(schema) as connection:
        connection.execute(damage)
    done = actors_now("sessions", "fsck", postgres.url(schema), "--json")
    found = {(each["session"], each["number"]): each["what"] for each in json.loads(done.out)["damage"]}
    assert done.code == 1
    assert what in found[place]
    assert PASSWORD not in done.out + done.err


def test_fsck_refuses_an_unreachable_or_foreign_database(postgres: Server) -> None:
    none = actors_now("sessions", "fsck", postgres.url(postgres.schema()))
    assert (none.code, "not a journal" in none.complaint) == (9, True)
    nobody = actors_now("sessions", "fsck", postgres.url(host="/nowhere"))
    assert (nobody.code, "no server listens at this address" in nobody.complaint) == (9, True)
    salvage = actors_now("sessions", "fsck", postgres.url(), "--salvage", "new.db")
    assert (salvage.code, "--salvage needs a journal in a file" in salvage.complaint) == (3, True)
    for done in (none, nobody, salvage):
        assert PASSWORD not in done.out + done.err
