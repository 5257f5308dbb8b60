"""A Postgres server for tests: one for all processes of a run, in a temporary folder, as an unprivileged user.

`python -m tests.journal.postgres FOLDER` serves until the last holder of the folder's lock has ended, however it ended.
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
"""Every test connects with this password, so it must not appear in any log or message."""
REQUIRED = "ACTORS_TESTS_WITH_POSTGRES"
"""If this variable is set, a missing server is a failure."""
SECONDS = 60.0
"""The longest wait for a server, in seconds. A server starts within five."""


def binaries() -> Path | None:
    """Return the folder of the newest installed server."""
    found = shutil.which("initdb")
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    places = [Path(os.path.realpath(found)), *installed] if found else installed
    return places[-1].parent if places else None


MISSING = "no PostgreSQL server is installed (initdb is neither in PATH nor under /usr/lib/postgresql)"


class Server:
    """A server in a folder of its own.

    Args:
        folder: Its folder, created by `temporary_server`.
        synced: Whether the server syncs. A test that kills it needs no sync, because the system keeps running.
    """

    def __init__(self, folder: Path, *, synced: bool = False) -> None:
        self.folder, self._synced = folder, synced
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Return the id of the server's first process."""
        assert self._process is not None
        return self._process.pid

    def url(self, schema: str = "public", *, user: str = USER, **more: str) -> str:
        """Return a URL with the password; tables are created in `schema`."""
        options = {
            "host": str(self.folder),
            "options": f"-csearch_path%3D{schema}",
            "password": PASSWORD,
            **more,
        }
        query = "&".join(f"{key}={value}" for key, value in options.items())
        return f"postgresql://{user}@/postgres?{query}"

    def connect(self, schema: str = "public") -> "psycopg.Connection[tuple[Any, ...]]":
        """Return a new connection for a test."""
        import psycopg

        return psycopg.connect(self.url(schema), autocommit=True)

    def schema(self) -> str:
        """Create a schema for one test."""
        name = f"s{secrets.token_hex(6)}"
        with self.connect() as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return name

    def start(self, *options: str) -> None:
        """Start the server, also again after it was killed."""
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
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **_unprivileged_user(),
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
        """Create a user with a schema of the same name, the only one that it may use."""
        name = f"r{secrets.token_hex(6)}"
        with self.connect() as connection:
            connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}' {options}")
            connection.execute(f"CREATE SCHEMA {name} AUTHORIZATION {name}")
        return name

    def freeze(self) -> None:
        """Suspend all processes of the server."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume all processes of the server."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        for pid in (self.pid, *map(int, children)):
            with suppress(ProcessLookupError):  # the process may have ended in the meantime
                os.kill(pid, number)

    def kill(self) -> None:
        """Kill the server, as a crash does."""
        self.stop(signal.SIGQUIT)

    def kill_machine(self) -> None:
        """Kill all processes of the server at once, as the loss of its machine does, without a last message."""
        if self._process is not None:
            segment = (self.folder / "data" / "postmaster.pid").read_text().splitlines()[6].split()[-1]
            self.freeze()
            self._signal(signal.SIGKILL)
            self._process.wait(SECONDS)
            self._process = None
            subprocess.run(
                ["ipcrm", "-m", segment], capture_output=True, check=False
            )  # otherwise the shared memory segment remains

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server and wait until it has ended."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(how)
            self._process.wait(SECONDS)
            self._process = None


def _unprivileged_user() -> dict[str, Any]:  # Any: arguments of `Popen`
    """Return the `Popen` arguments that run a program as an unprivileged user; root may not run a server."""
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
def temporary_server(*, synced: bool = False) -> Iterator[Server]:
    """Yield a new server that is not started, and remove it at the end."""
    with empty_server(synced=synced) as server:
        subprocess.run(["cp", "-a", _unused_data(), server.folder / "data"], check=True)
        yield server


@cache
def _unused_data() -> Path:
    """Return the data of a server that has never run. Copying it takes a tenth of the time of creating it."""
    kept = Path(tempfile.mkdtemp(prefix="pg-data"))
    atexit.register(shutil.rmtree, kept, ignore_errors=True)
    with empty_server() as server:
        (server.folder / "password").write_text(PASSWORD)
        if not os.getuid():
            os.chown(server.folder / "password", _user().pw_uid, _user().pw_gid)
        options = [f"--pwfile={server.folder / 'password'}", "--no-sync", "--encoding=UTF8", "--locale=C"]
        run(server.folder, "initdb", "-D", "data", "-U", USER, "-A", "scram-sha-256", *options)
        subprocess.run(["cp", "-a", server.folder / "data", kept], check=True)
    return kept / "data"


@contextmanager
def empty_server(*, synced: bool = False) -> Iterator[Server]:
    """Yield a server without data; stop it and remove the folder at the end."""
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
    """Run a program of Postgres in the folder of a server, as an unprivileged user."""
    programs = binaries()
    assert programs is not None, MISSING
    done = subprocess.run(
        [str(programs / program), *arguments],
        capture_output=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PGPASSWORD": PASSWORD},
        timeout=SECONDS,
        **_unprivileged_user(),
    )
    assert done.returncode == 0, done.stderr.decode()


# One server for a whole run


@contextmanager
def shared_server(run: str) -> Iterator[Server]:
    """Yield the server that all processes of a test run share. The first process that needs it starts it."""
    meeting = Path(tempfile.gettempdir()) / f"actors-tests-{os.getuid()}-{run}"
    with _user_of(meeting), (meeting / "first").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        where = meeting / "where"
        if not where.exists():
            command = [sys.executable, "-m", "tests.journal.postgres", str(meeting)]
            os.posix_spawn(command[0], command, os.environ)  # the server outlives the process that started it
            until = monotonic() + SECONDS
            while not where.exists() and monotonic() < until:
                sleep(0.02)
        fcntl.flock(first, fcntl.LOCK_UN)
        yield Server(Path(where.read_text()))


def _user_of(meeting: Path) -> TextIO:
    """Return the lock that a user of the server holds; the file is created if no process has started the server yet."""
    while True:
        meeting.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):  # the server is just ending
            users = (meeting / "users").open("w")
            fcntl.flock(users, fcntl.LOCK_SH)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(users.fileno()), (meeting / "users").stat()):
                    return users
            users.close()


def serve(meeting: Path) -> None:
    """Serve until no process holds the lock of the users."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # the test process handles the interrupt and then releases the lock
    over = meeting.with_name(f"{meeting.name}-over-{os.getpid()}")
    try:
        with temporary_server() as server, (meeting / "users").open("w") as users:
            server.start()
            (meeting / "where.new").write_text(str(server.folder))
            (meeting / "where.new").rename(meeting / "where")
            fcntl.flock(users, fcntl.LOCK_EX)
            meeting.rename(over)  # a process that arrives now starts another server
    finally:
        shutil.rmtree(over, ignore_errors=True)


def require() -> None:
    """Skip the test if no server is installed, or fail it if a server is required."""
    if binaries() is None:
        if os.environ.get(REQUIRED):
            pytest.fail(MISSING)
        pytest.skip(MISSING)


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The server of this test run."""
    require()
    with shared_server(os.environ.get("PYTEST_XDIST_TESTRUNUID", f"alone-{os.getpid()}")) as server:
        yield server


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
