"""Track hosts: the storage objects that are alive, in this process and in others of the machine.

A host has a row with the end of its lease, by the clock that all processes of a machine share (`time.monotonic`), and
a lock on a small file of its own. It is gone when its lease is over, or at once when the lock is free. A storage
becomes a host with its first claim; readers are no hosts.
"""

from pathlib import Path
from sqlite3 import Connection
from time import monotonic

from actors.journal.storage.hosts import host_name
from actors.journal.storage.sqlite.locks import HostLock, is_held


class Hosts:
    """The hosts of one file, including this storage.

    Args:
        path: The file.
        lease: Seconds.
    """

    def __init__(self, path: Path, lease: float) -> None:
        self._path, self._lease = path, lease
        self._lock: HostLock | None = None
        self.name: str = ""
        """Of this host, drawn as it becomes one: a storage may be made before its process is forked."""

    def begin(self, connection: Connection) -> None:
        """Become a host, if this is none, and remove the remains of dead processes."""
        if self._lock is None:
            self._drop_dead(connection)
            self.name = host_name()
            self._lock = HostLock(self._file(self.name))
            self.renew_lease(connection)

    def _drop_dead(self, connection: Connection) -> None:
        for (name,) in connection.execute("SELECT name FROM host").fetchall():
            if not is_held(file := self._file(name)):
                file.unlink(missing_ok=True)
                self.forget(connection, name)

    @property
    def is_begun(self) -> bool:
        """True if this is a host."""
        return self._lock is not None and self._lock.is_held

    def renew_lease(self, connection: Connection) -> None:
        """Renew the lease."""
        connection.execute(
            "INSERT OR REPLACE INTO host VALUES (?, ?)", (self.name, monotonic() + self._lease)
        )

    def lease_left(self, connection: Connection, name: str) -> float:
        """Return the remaining seconds of another host's lease; 0 if it is gone."""
        row = connection.execute("SELECT until FROM host WHERE name = ?", (name,)).fetchone()
        seconds = row[0] - monotonic() if row is not None and type(row[0]) is float else 0.0
        return seconds if seconds > 0 and is_held(self._file(name)) else 0.0

    def forget(self, connection: Connection, name: str) -> None:
        """Remove the row of a host that is gone or ending."""
        connection.execute("DELETE FROM host WHERE name = ?", (name,))

    def end(self) -> None:
        """Stop being a host."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _file(self, name: str) -> Path:
        return self._path.with_name(f"{self._path.name}-host-{name.replace(':', '-').replace('/', '-')}")
