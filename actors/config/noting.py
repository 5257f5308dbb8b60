"""An environment that notes what was looked up in it, so that what was made from it can be known to hold still."""

from collections.abc import Iterator, Mapping


class Noting(Mapping[str, str]):
    """Passes on what another environment says. `seen`: each variable that was asked for, and None if it was not set."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.seen: dict[str, str | None] = {}

    def __getitem__(self, name: str) -> str:
        self.seen[name] = self._environ.get(name)
        return self._environ[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._environ)

    def __len__(self) -> int:
        return len(self._environ)
