"""A Postgres server behind a fixed address, and its replacement after a failure."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal, TypeAlias

from tests.journal.postgres import Server, temporary_server
from tests.journal.postgres_proxy import Proxy, run_proxy
from tests.journal.postgres_replicas import catch_up, copy_server, fall_behind, promote, replicate

Replication: TypeAlias = Literal["synchronous", "lagging"]
Failure: TypeAlias = Literal["kill", "silence", "restore"]
REPLICATIONS: tuple[Replication, ...] = ("synchronous", "lagging")
FAILURES: tuple[Failure, ...] = ("kill", "silence", "restore")
"""The ways to fail: a machine dies; a machine stops answering; a machine dies and is restored from a base backup."""
_OPTIONS = ("dynamic_shared_memory_type=mmap",)  # stored in the server's folder, which is removed


class Site:
    """The active server, its standby, and a constant address.

    Args:
        primary: The first active server, which is running.
        proxy: Forwards connections to the active server.
    """

    def __init__(self, primary: Server, proxy: Proxy) -> None:
        self.primary, self._proxy = primary, proxy
        self._standby: Server | None = None
        self._copy: Server | None = None
        self._copies = ExitStack()
        self._before = ExitStack()

    def url(self, schema: str) -> str:
        """Return the address for clients."""
        return self.primary.url(schema, host="127.0.0.1", port=str(self._proxy.port))

    def replicate(self, replication: Replication) -> None:
        """Add a standby of the active server."""
        self._standby = self._copies.enter_context(copy_server(self.primary, follows=True))
        self._standby.start(*_OPTIONS)
        replicate(self.primary, self._standby, synchronous=replication == "synchronous")

    def begin_window(self, replication: Replication, failure: Failure) -> None:
        """Make all earlier writes safe, and later writes as safe as this kind of replication makes them."""
        assert self._standby is not None
        catch_up(self.primary, self._standby)
        if replication == "lagging":
            fall_behind(self._standby)
        if failure == "restore":
            self._copy = self._copies.enter_context(copy_server(self.primary, follows=False))

    def fail(self, failure: Failure) -> None:
        """Make the active server fail."""
        if failure == "silence":
            self.primary.freeze()
        else:
            self.primary.kill_machine()

    def take_over(self, failure: Failure) -> None:
        """Replace the failed server by another at the same address."""
        after = self._copy if failure == "restore" else self._standby
        assert after is not None
        if failure == "restore":
            with (after.folder / "data" / "postgresql.auto.conf").open("a") as configuration:
                configuration.write("synchronous_standby_names = ''\n")  # its standbys do not exist here
            after.start(*_OPTIONS)
        else:
            promote(after)
        self._proxy.switch(after.folder, cuts=failure != "silence")
        self.primary, self._failed = after, self.primary

    def clear(self) -> None:
        """Stop all servers except the active one."""
        for server in (self._failed, self._standby):
            if server is not None and server is not self.primary:
                server.kill_machine()
        self._standby = self._copy = None

    def close(self) -> None:
        """Stop all servers, and remove their data."""
        self._copies.close()


@contextmanager
def site() -> Iterator[Site]:
    """Yield a site with an empty first server."""
    with temporary_server() as primary:
        primary.start(*_OPTIONS)
        with run_proxy(primary.folder) as proxy:
            made_site = Site(primary, proxy)
            try:
                yield made_site
            finally:
                made_site.close()
