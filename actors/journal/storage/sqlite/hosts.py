"""Track the hosts of a journal: storage objects in this process and in other processes on the same machine.

A host has a row with the end of its lease, by the clock that all processes of a machine share (`time.monotonic`). In
addition, it locks a small file that no other host uses. A host is gone when its lease has expired, or at once when its
lock is free. A storage becomes a host with its first claim; a storage that only reads is not a host.
"""

from pathlib import Path
from sqlite3 import Connection
from time import monotonic

from actors.journal.storage.directory import Host, HostStatus
from actors.journal.storage.rows import host_name
from actors.journal.storage.sqlite.locks import HostLock, is_held

_ROW = "SELECT until, address, state, 0, lag FROM host WHERE name = ?"
_COUNTED = """
SELECT until, address, state, (SELECT count(*) FROM session WHERE owner = host.name), lag FROM host WHERE name = ?
"""


class Hosts:
    """The hosts that use one journal file, including the host of this storage.

    Args:
        path: The journal file.
        lease: Duration of a lease in seconds.
    """

    def __init__(self, path: Path, lease: float) -> None:
        self._path, self._lease = path, lease
        self._lock: HostLock | None = None
        self.status: HostStatus = HostStatus()
        """The host's address, state and lag, which the row of the host contains."""
        self.name: str = ""
        """The name of this host; empty until the storage becomes a host.

        The name is chosen late because it contains the process id, and the process may fork first.
        """

    def become_host(self, connection: Connection) -> None:
        """Make this storage a host, unless it is one already, and remove the rows and lock files of dead hosts."""
        if self._lock is None:
            self._remove_dead_hosts(connection)
            self.name = host_name()
            self._lock = HostLock(self._lock_path(self.name))
            if address := self.status.address:
                # An earlier process at this address is gone, even if its lease has not expired.
                connection.execute("DELETE FROM host WHERE address = ?", (address,))
            self.renew_lease(connection)

    def _remove_dead_hosts(self, connection: Connection) -> None:
        for (name,) in connection.execute("SELECT name FROM host").fetchall():
            if not is_held(file := self._lock_path(name)):
                file.unlink(missing_ok=True)
                self.forget(connection, name)

    @property
    def is_host(self) -> bool:
        """True if this storage is a host."""
        return self._lock is not None and self._lock.is_held

    def renew_lease(self, connection: Connection) -> None:
        """Extend this host's lease so that it ends one full lease period from now."""
        status = self.status
        row = (self.name, monotonic() + self._lease, status.address, status.state, status.lag)
        connection.execute("INSERT OR REPLACE INTO host VALUES (?, ?, ?, ?, ?)", row)

    def live(self, connection: Connection, *, count_sessions: bool) -> list[Host]:
        """Return the live hosts, ordered by name."""
        names = connection.execute("SELECT name FROM host ORDER BY name").fetchall()
        found = [self.find(connection, name, _COUNTED if count_sessions else _ROW) for (name,) in names]
        return [host for host in found if host is not None]

    def is_serving(self, connection: Connection, name: str) -> bool:
        """Return True if a host is alive and accepts more sessions."""
        host = self.find(connection, name)
        return host is not None and host.state == "serving"

    def find(self, connection: Connection, name: str, query: str = _ROW) -> Host | None:
        """Return a host, or None if that host is gone.

        `query` is `_ROW`, or `_COUNTED` to include the number of the host's sessions.
        """
        row = connection.execute(query, (name,)).fetchone()
        if row is None or type(row[0]) is not float or (seconds := row[0] - monotonic()) <= 0:
            return None
        _, address, state, sessions, lag = row
        return Host(name, address, state, sessions, lag, seconds) if is_held(self._lock_path(name)) else None

    def forget(self, connection: Connection, name: str) -> None:
        """Remove the row of a host that is gone or about to close."""
        connection.execute("DELETE FROM host WHERE name = ?", (name,))

    def end(self) -> None:
        """Release this host's lock, so that other processes regard the host as gone."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        self.status = HostStatus()

    def _lock_path(self, name: str) -> Path:
        return self._path.with_name(f"{self._path.name}-host-{name.replace(':', '-').replace('/', '-')}")
