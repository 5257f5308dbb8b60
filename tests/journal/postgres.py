"""A Postgres server for tests: one for all the processes of a run, in a folder of its own, as an unprivileged user.

`python -m tests.journal.postgres FOLDER` serves until nobody holds the folder's lock any more, however those who did
ended.
"""

import atexit
import fcntl
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TextIO

import pytest

if TYPE_CHECKING:  # it takes long to import, and most tests need none
    import psycopg

USER, PASSWORD = "owner", "canary-of-a-password"
"""Every test connects with it, so it may be in no log and no message."""
REQUIRED = "ACTORS_TESTS_WITH_POSTGRES"
"""Where this variable is set, a server that is missing is a failure."""
SECONDS = 60.0
"""To wait for a server at most; it is there in five."""


def binaries() -> Path | None:
    """Return the folder of the newest server that is installed."""
    found = shutil.which("initdb")
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    places = [Path(os.path.realpath(found)), *installed] if found else installed
    return places[-1].parent if places else None


MISSING = "no PostgreSQL server is installed (initdb is neither in PATH nor under /usr/lib/postgresql)"


class Server:
    """A server in a folder of its own.

    Args:
        folder: Where, made by `made`.
        synced: Whether it syncs; a test that kills it needs no sync, for the system goes on.
    """

    def __init__(self, folder: Path, *, synced: bool = False) -> None:
        self.folder, self._synced = folder, synced
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Of its first process."""
        assert self._process is not None
        return self._process.pid

    def url(self, schema: str = "public", *, user: str = USER, **more: str) -> str:
        """Return its address, with the password; tables are made in `schema`."""
        options = {
            "host": str(self.folder),
            "options": f"-csearch_path%3D{schema}",
            "password": PASSWORD,
            **more,
        }
        query = "&".join(f"{key}={value}" for key, value in options.items())
        return f"postgresql://{user}@/postgres?{query}"

    def connect(self, schema: str = "public") -> "psycopg.Connection[tuple[Any, ...]]":
        """Return a connection of the test's own."""
        import psycopg

        return psycopg.connect(self.url(schema), autocommit=True)

    def schema(self) -> str:
        """Make a schema that nobody else uses."""
        name = f"s{secrets.token_hex(6)}"
        with self.connect() as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return name

    def start(self, *options: str) -> None:
        """Start it, or start it again after it was killed."""
        folder = binaries()
        assert folder is not None, MISSING
        command = [
            str(folder / "postgres"),
            "-D",
            str(self.folder / "data"),
            "-k",
            str(self.folder),
            "-h",
            "",
        ]
        for option in (f"fsync={'on' if self._synced else 'off'}", "max_connections=60", *options):
            command += ["-c", option]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, **_unprivileged()
            )
        self._wait()

    def _wait(self) -> None:
        import psycopg

        until = monotonic() + SECONDS
        while self._process is not None:
            try:
                self.connect().close()
            except psycopg.OperationalError:
                if self._process.poll() is not None or monotonic() > until:
                    raise AssertionError((self.folder / "log").read_text()) from None
                sleep(0.02)
            else:
                return

    def role(self, options: str = "") -> str:
        """Make a user that may use one schema of its own, which has its name."""
        name = f"r{secrets.token_hex(6)}"
        with self.connect() as connection:
            connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}' {options}")
            connection.execute(f"CREATE SCHEMA {name} AUTHORIZATION {name}")
        return name

    def freeze(self) -> None:
        """Stop all its processes where they are."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        for pid in (self.pid, *map(int, children)):
            with suppress(ProcessLookupError):  # a backend may have ended since
                os.kill(pid, number)

    def kill(self) -> None:
        """End it as a crash does."""
        self.stop(signal.SIGQUIT)

    def kill_machine(self) -> None:
        """End all its processes at one moment, as the end of its machine does: none says a word to anybody."""
        if self._process is not None:
            segment = (self.folder / "data" / "postmaster.pid").read_text().splitlines()[6].split()[-1]
            self.freeze()
            self._signal(signal.SIGKILL)
            self._process.wait(SECONDS)
            self._process = None
            subprocess.run(
                ["ipcrm", "-m", segment], capture_output=True, check=False
            )  # else it stays for ever

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it, and wait until it has ended."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(how)
            self._process.wait(SECONDS)
            self._process = None


def _unprivileged() -> dict[str, Any]:  # Any: arguments of `Popen`
    """Return how to run something as who may run a server, which root may not."""
    if os.getuid():
        return {}
    user = _user()
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise AssertionError("there is neither a user postgres nor a user nobody")


@contextmanager
def made(*, synced: bool = False) -> Iterator[Server]:
    """Make a server, and remove it in the end. It is not started."""
    with empty(synced=synced) as server:
        subprocess.run(["cp", "-a", _unused_data(), server.folder / "data"], check=True)
        yield server


@cache
def _unused_data() -> Path:
    """Return the data of a server that has never run: to copy it takes a tenth of what it takes to make."""
    kept = Path(tempfile.mkdtemp(prefix="pg-data"))
    atexit.register(shutil.rmtree, kept, ignore_errors=True)
    with empty() as server:
        (server.folder / "password").write_text(PASSWORD)
        if not os.getuid():
            os.chown(server.folder / "password", _user().pw_uid, _user().pw_gid)
        options = [f"--pwfile={server.folder / 'password'}", "--no-sync", "--encoding=UTF8", "--locale=C"]
        run(server.folder, "initdb", "-D", "data", "-U", USER, "-A", "scram-sha-256", *options)
        subprocess.run(["cp", "-a", server.folder / "data", kept], check=True)
    return kept / "data"


@contextmanager
def empty(*, synced: bool = False) -> Iterator[Server]:
    """Give a server whose folder has no data yet; end it and remove the folder in the end."""
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # a socket's path must be short
    server = Server(folder, synced=synced)
    try:
        if not os.getuid():
            os.chown(folder, _user().pw_uid, _user().pw_gid)
        yield server
    finally:
        server.stop(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


def run(folder: Path, program: str, *arguments: str) -> None:
    """Run a program of Postgres in the folder of a server, as who may."""
    programs = binaries()
    assert programs is not None, MISSING
    done = subprocess.run(
        [str(programs / program), *arguments],
        capture_output=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PGPASSWORD": PASSWORD},
        timeout=SECONDS,
        **_unprivileged(),
    )
    assert done.returncode == 0, done.stderr.decode()


# One for a whole run


@contextmanager
def shared(run: str) -> Iterator[Server]:
    """Give the server that all processes of a test run share. The first one that asks starts it."""
    meeting = Path(tempfile.gettempdir()) / f"actors-tests-{os.getuid()}-{run}"
    with _user_of(meeting), (meeting / "first").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        where = meeting / "where"
        if not where.exists():
            command = [sys.executable, "-m", "tests.journal.postgres", str(meeting)]
            os.posix_spawn(command[0], command, os.environ)  # it outlives whoever started it
            until = monotonic() + SECONDS
            while not where.exists() and monotonic() < until:
                sleep(0.02)
        fcntl.flock(first, fcntl.LOCK_UN)
        yield Server(Path(where.read_text()))


def _user_of(meeting: Path) -> TextIO:
    """Return the lock of a user of a server; there is one, or nobody has started it yet."""
    while True:
        meeting.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):  # it ends just now
            users = (meeting / "users").open("w")
            fcntl.flock(users, fcntl.LOCK_SH)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(users.fileno()), (meeting / "users").stat()):
                    return users
            users.close()


def serve(meeting: Path) -> None:
    """Serve until nobody holds the lock of the users."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who ends the tests by it ends them, and they this
    over = meeting.with_name(f"{meeting.name}-over-{os.getpid()}")
    try:
        with made() as server, (meeting / "users").open("w") as users:
            server.start()
            (meeting / "where.new").write_text(str(server.folder))
            (meeting / "where.new").rename(meeting / "where")
            fcntl.flock(users, fcntl.LOCK_EX)
            meeting.rename(over)  # who comes now starts another
    finally:
        shutil.rmtree(over, ignore_errors=True)


def require() -> None:
    """Skip the test where no server is installed, or fail it where there must be one."""
    if binaries() is None:
        if os.environ.get(REQUIRED):
            pytest.fail(MISSING)
        pytest.skip(MISSING)


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Give the server of this run."""
    require()
    with shared(os.environ.get("PYTEST_XDIST_TESTRUNUID", f"alone-{os.getpid()}")) as server:
        yield server


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
