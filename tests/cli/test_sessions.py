"""Stored conversations: continue, list, show, export, import, fork, delete and replay them; their storage location."""

import json
import logging
import sys
from contextlib import closing
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from time import time

import pytest

from actors.cli import main
from actors.cli.journal import default_journal_path
from actors.errors import JournalUnavailable
from actors.journal.storage.sqlite import SqliteStorage
from actors.testing import AnthropicServer, Call, OpenAIServer, Say, Turn, serve
from tests.cli.command import Done, actors, actors_now
from tests.journal.storages import begin

TOOLS = '''
from actors import tool


@tool
def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 21 C"
'''


LOOK = """
from actors import Tool

look = Tool.external("look", "Look it up, elsewhere.", {"type": "object"}, read_only=True)
"""


def server_options(server: OpenAIServer, tmp_path: Path, *more: str) -> list[str]:
    """Return the options for a server, with a tool and a journal."""
    (tmp_path / "tools.py").write_text(TOOLS)
    url = ["--base-url", server.base_url, "-m", "gpt", "--tools", str(tmp_path / "tools.py")]
    return [*url, "--journal", str(tmp_path / "kept.db"), *more]


def run_sessions(tmp_path: Path, *words: str) -> Done:
    """Run `actors sessions` on that journal."""
    return actors_now("sessions", *words, "--journal", str(tmp_path / "kept.db"))


@pytest.mark.alternating
@pytest.mark.anyio
async def test_a_conversation_can_be_continued_shown_exported_and_deleted(
    tmp_path: Path,
) -> None:
    script = [
        Turn(Call("weather", {"city": "Oslo"})),
        *[Turn(Say(text)) for text in ("21 C.", "Yes.", "No.", "Bye.")],
    ]
    server = OpenAIServer(script)
    async with serve(server):
        first = await actors("run", "Weather?", *server_options(server, tmp_path, "--id", "trip"))
        assert (first.code, first.out) == (0, "21 C.\n"), first.err
        again = await actors("run", "Warm?", *server_options(server, tmp_path, "--continue"))
        assert (again.code, again.out) == (0, "Yes.\n"), again.err
        fork = await actors("run", "Cold?", *server_options(server, tmp_path, "--fork", "--id", "other"))
        assert (fork.code, fork.out) == (0, "No.\n"), fork.err
        last = await actors("run", "So?", *server_options(server, tmp_path, "--resume", "trip"))
        assert (last.code, last.out) == (0, "Bye.\n"), last.err
    texts = [[each["content"] for each in json.loads(body.body)["messages"]] for body in server.requests]
    assert texts[4][: len(texts[2])] == texts[2]  # the fork did not change the other session
    assert "Cold?" not in json.dumps(texts[4])
    listed = [json.loads(line) for line in run_sessions(tmp_path, "list", "--json").out.splitlines()]
    assert [(each["id"], each["state"]) for each in listed] == [("trip", "idle"), ("other", "idle")]
    assert run_sessions(tmp_path, "list").out.startswith("trip ")
    shown = run_sessions(tmp_path, "show", "trip")
    assert "user: Weather?" in shown.out
    assert 'calls weather {"city": "Oslo"}' in shown.out
    assert shown.out.splitlines()[-1].endswith("Bye.")
    _export_replay_import_fork_delete(tmp_path)


def _export_replay_import_fork_delete(tmp_path: Path) -> None:
    """Export, replay, import, fork and delete a conversation."""
    out = tmp_path / "trip.jsonl"
    assert run_sessions(tmp_path, "export", "trip", "--out", str(out)).code == 0
    for to in ("anthropic", "mistral", "gemini"):
        named = actors_now("replay", "trip", "--to", to, "--json", "--journal", str(tmp_path / "kept.db"))
        assert named.out == actors_now("replay", str(out), "--to", to, "--json").out
        requests = [json.loads(line) for line in named.out.splitlines()]
        assert [(each["turn"], each["round"]) for each in requests] == [(1, 1), (1, 2), (2, 1), (3, 1)]
        assert [each["faults"] for each in requests] == [[]] * 4
        assert all(before["bytes"] < after["bytes"] for before, after in pairwise(requests))
    assert run_sessions(tmp_path, "export", "trip").out == out.read_text()
    assert run_sessions(tmp_path, "import", str(out), "--to", "copy").out == "copy\n"
    taken = run_sessions(tmp_path, "import", str(out))
    assert (taken.code, "'trip' already has a log" in taken.complaint) == (1, True)
    assert run_sessions(tmp_path, "fork", "trip", "--at", "2", "--to", "early").out == "early\n"
    assert len(run_sessions(tmp_path, "show", "early", "--json").out.splitlines()) < 10
    assert run_sessions(tmp_path, "delete", "trip").code == 0
    gone = run_sessions(tmp_path, "show", "trip")
    assert (gone.code, "No session 'trip'" in gone.complaint) == (1, True)
    names = [json.loads(line)["id"] for line in run_sessions(tmp_path, "list", "--json").out.splitlines()]
    assert set(names) == {"copy", "other", "early"}


@pytest.mark.alternating
@pytest.mark.anyio
async def test_a_chat_can_continue_the_latest_or_a_named_conversation_or_a_copy(tmp_path: Path) -> None:
    server = OpenAIServer([Turn(Say(text)) for text in ("One.", "Two.", "Three.", "Four.", "Five.")])
    async with serve(server):

        async def chat(words: str, *more: str) -> str:
            done = await actors("chat", *server_options(server, tmp_path, *more), stdin=f"{words}\n")
            assert done.code == 0, done.err
            return done.out

        assert "One." in await chat("first", "--id", "trip")
        second = await chat("second", "--continue")
        assert ("Two." in second, "trip continues after 1 turn;" in second) == (True, True)
        assert "Three." in await chat("third", "--fork", "trip", "--id", "copy")
        assert "Four." in await chat("fourth", "--resume", "trip")
        assert "Five." in await chat("fifth", "--resume", "copy", "--fork", "--id", "second")
        missing = await actors("chat", *server_options(server, tmp_path, "--resume", "nobody"))
        assert (missing.code, "'nobody'" in missing.complaint) == (1, True)
    said = [
        [each["content"] for each in json.loads(body.body)["messages"] if each["role"] == "user"]
        for body in server.requests
    ]
    trip = ["first", "second"]
    assert said == [
        ["first"],
        trip,
        [*trip, "third"],
        [*trip, "fourth"],
        [*trip, "third", "fifth"],
    ]
    assert sorted(listed_ids(tmp_path)) == ["copy", "second", "trip"]


def test_an_option_that_belongs_to_another_action_is_an_error_and_deletes_nothing(tmp_path: Path) -> None:
    begin(storage := SqliteStorage(tmp_path / "kept.db"), "trip")
    storage.close()
    for line, says in (
        (("list", "trip"), "unknown argument 'trip'"),
        (("list", "--at", "2"), "unknown argument '--at'"),
        (("show",), "required: ID"),
        (("show", "trip", "--limit", "3"), "unknown argument '--limit'"),
        (("export", "trip", "--all"), "unknown argument '--all'"),
        (("import",), "required: FILE"),
        (("fork", "trip", "--older-than", "3 days"), "unknown argument '--older-than'"),
        (("delete",), "either ids, or --tenant or --older-than"),
        (("delete", "trip", "--tenant", "acme"), "either ids, or --tenant or --older-than"),
        (("delete", "--tenant", "acme", "--limit", "1"), "unknown argument '--limit'"),
        (("delete", "--tenant", ""), "--tenant is empty"),
    ):
        done = run_sessions(tmp_path, *line)
        assert (done.code, done.out, says in done.complaint) == (2, "", True), done.complaint
    assert listed_ids(tmp_path) == ["trip"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (("--continue", "--resume", "a"), "cannot be combined; to copy a conversation"),
        (("--continue", "--fork=a"), "cannot be combined; to copy a conversation"),
        (("--resume", "a", "--fork=b"), "cannot be combined; to copy a conversation"),
        (("--continue", "--max-cost", "1"), "--max-cost is set when a conversation starts"),
        (("--resume", "a", "--max-cost", "1"), "--max-cost is set when a conversation starts"),
        (("--fork", "--max-cost", "1"), "--max-cost is set when a conversation starts"),
        (("--continue", "--id", "b"), "a continued conversation keeps its id"),
        (("--resume", "a", "--id", "b"), "a continued conversation keeps its id"),
    ],
)
def test_options_that_cannot_change_in_a_stored_conversation_are_errors(
    line: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    done = actors_now("run", "x", "--offline", "--journal", str(tmp_path / "kept.db"), *line)
    assert (done.code, done.out) == (3, "")
    assert says in done.complaint
    assert not (tmp_path / "kept.db").exists()


def test_a_prompt_mistaken_for_the_id_of_the_fork_option_is_reported(tmp_path: Path) -> None:
    done = actors_now("run", "--offline", "--journal", str(tmp_path / "kept.db"), "--fork", "Why?")
    assert (done.code, "--fork read 'Why?' as an id" in done.complaint) == (2, True)


@pytest.mark.alternating
@pytest.mark.anyio
async def test_the_run_command_refuses_a_waiting_conversation_that_the_chat_command_can_resolve(
    tmp_path: Path,
) -> None:
    server = OpenAIServer([Turn(Call("look", {"n": 1})), Turn(Say("Dry."))])
    async with serve(server):
        line = server_options(server, tmp_path)
        (tmp_path / "tools.py").write_text(LOOK)
        first = await actors("run", "Weather?", *line)
        again = await actors("run", "And now?", *line, "--continue")
        assert (first.code, again.code, first.complaint) == (8, 8, again.complaint)
        assert first.complaint == (
            "the turn waits for external input: look(n=1); enter it with `actors chat --continue`"
        )
        chat = await actors("chat", *line, "--continue", stdin="it is dry\n")
    assert (chat.code, "Dry." in chat.out) == (0, True), chat.err
    assert [b"it is dry" in each.body for each in server.requests] == [False, True]


@pytest.mark.alternating
@pytest.mark.anyio
async def test_a_chat_completes_its_turn_after_the_end_of_input(tmp_path: Path) -> None:
    server = OpenAIServer([Turn(Call("weather", {"city": "Oslo"})), Turn(Say("Dry."))])
    async with serve(server):
        line = server_options(server, tmp_path)
        (tmp_path / "tools.py").write_text(TOOLS.replace("@tool", '@tool(approval="ask")'))
        chat = await actors("chat", *line, stdin="Weather?\ny\n")
    assert (chat.code, chat.out.splitlines()[-1]) == (0, "Dry."), chat.out


@pytest.mark.alternating
@pytest.mark.anyio
async def test_the_replay_command_sends_the_asks_again_with_recorded_results(
    tmp_path: Path,
) -> None:
    def call(city: str) -> Turn:
        return Turn(Call("weather", {"city": city}))

    first = OpenAIServer([call("Oslo"), *[Turn(Say(text)) for text in ("21 C.", "Yes.")]])
    other = AnthropicServer([call("Rome"), call("Oslo"), *[Turn(Say(text)) for text in ("Warm.", "Indeed.")]])
    async with serve(first, other):
        await actors("run", "Weather?", *server_options(first, tmp_path, "--id", "trip"))
        await actors("run", "Warm?", *server_options(first, tmp_path, "--continue"))
        (tmp_path / "tools.py").unlink()  # the replay runs no tool
        whom = ["--send", "--base-url", other.endpoint, "--dialect", "anthropic", "-m", "claude-sonnet-5"]
        line = ["replay", "trip", *whom, "--journal", str(tmp_path / "kept.db")]
        done = await actors(*line, "--json")
        assert (done.code, done.err) == (0, "")
    asks = [json.loads(line) for line in done.out.splitlines()]
    assert [(each["ask"], each["status"], each["text"]) for each in asks] == [
        (1, "complete", "Warm."),
        (2, "complete", "Indeed."),
    ]
    assert (asks[0]["calls"], asks[0]["missing"]) == (1, ['weather {"city": "Rome"}'])
    bodies = [json.loads(each.body) for each in other.requests]
    assert "no call with these arguments" in json.dumps(bodies[1])
    assert "Oslo: 21 C" in json.dumps(bodies[2])
    assert other.refusals == []
    assert listed_ids(tmp_path) == ["trip"]
    both = actors_now("replay", "trip", "--send", "--to", "mistral")
    assert (both.code, both.complaint) == (
        2,
        "argument --to: not allowed with argument --send (actors replay --help)",
    )


def store_dated_sessions(tmp_path: Path) -> None:
    """Store five sessions, dated 2020 to 2024, one of another tenant, and a sixth dated now."""
    years = range(2020, 2025)
    times = iter([*(datetime(year, 6, 1, tzinfo=UTC).timestamp() for year in years), time()])
    with closing(SqliteStorage(tmp_path / "kept.db", clock=times.__next__)) as storage:
        for year in years:
            begin(storage, f"of-{year}", tenant="them" if year == 2021 else "")
        begin(storage, "now")


def listed_ids(tmp_path: Path, *more: str) -> list[str]:
    return [line.split()[0] for line in run_sessions(tmp_path, "list", *more).out.splitlines()]


def test_a_long_list_is_cut_and_can_be_continued(tmp_path: Path) -> None:
    store_dated_sessions(tmp_path)
    first = run_sessions(tmp_path, "list", "--limit", "2")
    assert [line.split()[0] for line in first.out.splitlines()] == ["now", "of-2024"]
    assert (
        first.complaint
        == "more sessions are stored: --all lists all of them, --after of-2024 continues the list"
    )
    assert listed_ids(tmp_path, "--after", "of-2022") == ["of-2021", "of-2020"]
    assert listed_ids(tmp_path, "--limit", "2", "--all") == [
        "now",
        *[f"of-{year}" for year in range(2024, 2019, -1)],
    ]
    last = run_sessions(tmp_path, "list", "--after", "of-2020")
    assert (last.code, last.out, last.complaint) == (0, "", "no session follows of-2020")
    unknown = run_sessions(tmp_path, "list", "--after", "nobody")
    assert (unknown.code, "'nobody'" in unknown.complaint) == (1, True)


def test_the_delete_command_deletes_sessions_by_tenant_and_age_after_exporting_them(tmp_path: Path) -> None:
    store_dated_sessions(tmp_path)
    folder = tmp_path / "exports"
    assert run_sessions(tmp_path, "delete", "--tenant", "them", "--export", str(folder)).out == "of-2021\n"
    assert [path.name for path in folder.iterdir()] == ["of-2021.jsonl"]
    assert run_sessions(tmp_path, "delete", "--older-than", "2022-12-31").out.split() == [
        "of-2022",
        "of-2020",
    ]
    assert run_sessions(tmp_path, "delete", "--older-than", "52 weeks").out.split() == ["of-2024", "of-2023"]
    assert listed_ids(tmp_path) == ["now"]
    assert run_sessions(tmp_path, "import", str(folder / "of-2021.jsonl")).out == "of-2021\n"
    other = SqliteStorage(tmp_path / "kept.db")
    other.claim("now")
    elsewhere = run_sessions(tmp_path, "delete", "--older-than", "3000-01-01")
    assert (elsewhere.code, "'now' belongs to host" in elsewhere.complaint) == (1, True)
    other.close()
    assert run_sessions(tmp_path, "delete", "--older-than", "3000-01-01").out == "now\n"


def test_deletion_by_age_is_rejected_if_the_clock_differs_much_from_the_clock_of_the_journal(
    tmp_path: Path,
) -> None:
    store_dated_sessions(tmp_path)
    run_sessions(tmp_path, "delete", "now")
    refused = run_sessions(tmp_path, "delete", "--older-than", "90 days")
    assert (refused.code, "pass a date instead of an age, such as 20" in refused.complaint) == (
        3,
        True,
    )
    assert len(listed_ids(tmp_path)) == 5
    odd = run_sessions(tmp_path, "delete", "--older-than", "soon")
    assert (odd.code, "takes a whole number of minutes, hours, days or weeks" in odd.complaint) == (3, True)
    for words in (("delete",), ("delete", "of-2020", "--tenant", "them"), ("export",)):
        assert run_sessions(tmp_path, *words).code == 2


def test_an_error_about_an_unwritable_export_file_names_the_file(tmp_path: Path) -> None:
    store_dated_sessions(tmp_path)
    where = str(tmp_path / "nowhere" / "file.jsonl")
    refused = run_sessions(tmp_path, "export", listed_ids(tmp_path)[0], "--out", where)
    assert (refused.code, refused.complaint) == (2, f"Cannot use {where}: no such file or directory")


def test_opening_a_file_that_is_not_a_journal_gives_exit_code_9(tmp_path: Path) -> None:
    (tmp_path / "kept.db").write_bytes(b"some words" * 1000)
    refused = run_sessions(tmp_path, "list")
    assert (refused.code, "some words" in refused.complaint) == (9, False)
    assert "it is not a journal, or its header is corrupt; pass the path of a journal" in refused.complaint


@pytest.mark.alternating
@pytest.mark.anyio
async def test_a_conversation_is_stored_in_a_file_of_the_user_by_default(
    tmp_path: Path,
) -> None:
    server, home = OpenAIServer([Turn(Say("Yes."))] * 4), {"XDG_DATA_HOME": str(tmp_path / "data")}
    own = tmp_path / "data" / "actors" / "sessions.db"
    async with serve(server):
        line = ["run", "x", "--base-url", server.base_url, "-m", "gpt"]
        assert (await actors(*line, "--no-journal", env=home)).code == 0
        assert not own.exists()
        named = {**home, "ACTORS_JOURNAL": str(tmp_path / "named.db")}
        assert (await actors(*line, env=named)).code == 0
        assert (own.exists(), (tmp_path / "named.db").exists()) == (False, True)
        assert (await actors(*line, env=home)).code == 0
        assert own.exists()
        assert len(actors_now("sessions", "list", env=home).out.splitlines()) == 1
        (tmp_path / "file").write_text("")
        unusable = await actors(*line, env={"XDG_DATA_HOME": str(tmp_path / "file")})
        assert (unusable.code, unusable.out) == (0, "Yes.\n")
        why = f"{tmp_path / 'file' / 'actors' / 'sessions.db'}: cannot create its folder: not a directory"
        other = "name another with --journal FILE"
        assert unusable.complaint == f"the conversation is not stored: {why}; {other}"
        nowhere = actors_now("sessions", "list", env={"XDG_DATA_HOME": str(tmp_path / "file")})
        assert (nowhere.code, nowhere.complaint) == (9, f"{why}; {other}")


def test_the_default_file_of_a_user_has_an_absolute_path() -> None:
    own = Path("/home/me/.local/share/actors/sessions.db")
    if sys.platform == "darwin":
        own = Path("/home/me/Library/Application Support/actors/sessions.db")
    for data in ("", "data", "./data", "~/data"):
        assert default_journal_path({"HOME": "/home/me", "XDG_DATA_HOME": data}) == own
    assert default_journal_path({"XDG_DATA_HOME": "/data"}) == Path("/data/actors/sessions.db")
    assert default_journal_path({"XDG_DATA_HOME": "data"}) is None


def test_an_unwritable_journal_is_reported_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    begin(storage := SqliteStorage(tmp_path / "kept.db"), "trip")
    storage.close()

    def full(*given: object, **options: object) -> None:
        raise JournalUnavailable("the disk is full; make room")

    for name, value in (("propagate", True), ("handlers", []), ("level", logging.NOTSET)):
        monkeypatch.setattr(logging.getLogger("actors"), name, value)
    monkeypatch.setattr(SqliteStorage, "claim", full)
    assert main(["sessions", "delete", "trip", "--journal", str(tmp_path / "kept.db")]) == 9
    assert capsys.readouterr().err == "actors: the disk is full; make room\n"
    assert caplog.messages == []


@pytest.mark.parametrize("line", [("list",), ("show", "a"), ("fork", "a"), ("delete", "a")])
def test_listing_the_sessions_of_a_mistyped_journal_path_creates_no_file(
    line: tuple[str, ...], tmp_path: Path
) -> None:
    done = run_sessions(tmp_path, *line)
    assert (done.code, done.out) == (9, "")
    assert done.complaint.endswith("kept.db: no such file; name an existing journal")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--continue", "--resume=a", "--fork=a"])
def test_continuing_in_a_mistyped_journal_creates_no_file(option: str, tmp_path: Path) -> None:
    where = str(tmp_path / "kept.db")
    done = actors_now(
        "run", "x", "--base-url", "http://127.0.0.1:1/v1", "-m", "gpt", "--journal", where, option
    )
    assert (done.code, done.out) == (9, "")
    assert done.complaint.endswith("kept.db: no such file; name an existing journal")
    assert not list(tmp_path.iterdir())


def test_a_missing_conversation_is_reported_with_a_fix(tmp_path: Path) -> None:
    made = SqliteStorage(tmp_path / "kept.db")
    made.open()
    made.close()
    journal = ["--journal", str(made.path)]
    none = actors_now("run", "x", "--continue", *journal)
    assert (none.code, "No conversation is stored" in none.complaint) == (3, True)
    unknown = actors_now("run", "x", "--resume", "nobody", *journal)
    assert (unknown.code, "'nobody'" in unknown.complaint) == (1, True)
    missing = actors_now("sessions", "show", *journal)
    assert (missing.code, "required: ID" in missing.complaint) == (2, True)
    empty = actors_now("sessions", "list", *journal)
    assert (empty.code, empty.out) == (0, "")
    assert "no session is stored" in empty.complaint
