"""A Postgres server that programs reach by an address, and what takes its place when it fails."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal, TypeAlias

from tests.journal.postgres import Server, made
from tests.journal.postgres_proxy import Proxy, proxied
from tests.journal.postgres_replicas import catch_up, copied, fall_behind, promote, replicate

Replication: TypeAlias = Literal["synchronous", "lagging"]
Failure: TypeAlias = Literal["kill", "silence", "restore"]
REPLICATIONS: tuple[Replication, ...] = ("synchronous", "lagging")
FAILURES: tuple[Failure, ...] = ("kill", "silence", "restore")
"""A machine that dies; one that stops and says nothing; one that dies and is restored from a base backup."""
_OPTIONS = ("dynamic_shared_memory_type=mmap",)  # in the server's folder, which is removed


class Site:
    """The server that is in use, its standby, and an address that stays the same.

    Args:
        primary: The first server in use. It runs.
        proxy: What passes connections on to the one in use.
    """

    def __init__(self, primary: Server, proxy: Proxy) -> None:
        self.primary, self._proxy = primary, proxy
        self._standby: Server | None = None
        self._copy: Server | None = None
        self._copies = ExitStack()
        self._before = ExitStack()

    def url(self, schema: str) -> str:
        """Return the address that programs use."""
        return self.primary.url(schema, host="127.0.0.1", port=str(self._proxy.port))

    def replicate(self, replication: Replication) -> None:
        """Add a standby of the server in use."""
        self._standby = self._copies.enter_context(copied(self.primary, follows=True))
        self._standby.start(*_OPTIONS)
        replicate(self.primary, self._standby, synchronous=replication == "synchronous")

    def begin_window(self, replication: Replication, failure: Failure) -> None:
        """Let all that was written be safe, and what is written from now on as safe as this replication makes it."""
        assert self._standby is not None
        catch_up(self.primary, self._standby)
        if replication == "lagging":
            fall_behind(self._standby)
        if failure == "restore":
            self._copy = self._copies.enter_context(copied(self.primary, follows=False))

    def fail(self, failure: Failure) -> None:
        """Have the server in use fail."""
        if failure == "silence":
            self.primary.freeze()
        else:
            self.primary.kill_machine()

    def take_over(self, failure: Failure) -> None:
        """Have another server take its place, at the same address."""
        after = self._copy if failure == "restore" else self._standby
        assert after is not None
        if failure == "restore":
            with (after.folder / "data" / "postgresql.auto.conf").open("a") as configuration:
                configuration.write("synchronous_standby_names = ''\n")  # the copied server's are not there
            after.start(*_OPTIONS)
        else:
            promote(after)
        self._proxy.switch(after.folder, cuts=failure != "silence")
        self.primary, self._failed = after, self.primary

    def clear(self) -> None:
        """End all servers but the one in use."""
        for server in (self._failed, self._standby):
            if server is not None and server is not self.primary:
                server.kill_machine()
        self._standby = self._copy = None

    def close(self) -> None:
        """End all servers, and remove what they have written."""
        self._copies.close()


@contextmanager
def site() -> Iterator[Site]:
    """Give a site whose first server has nothing."""
    with made() as primary:
        primary.start(*_OPTIONS)
        with proxied(primary.folder) as proxy:
            made_site = Site(primary, proxy)
            try:
                yield made_site
            finally:
                made_site.close()
