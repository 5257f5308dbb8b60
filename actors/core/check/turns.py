"""The judge of protocols in which a user and an assistant take turns, with results among the user's blocks."""

from typing import ClassVar

from actors.core.check.state import Fold, kind_of, shown
from actors.core.jsonio import JsonValue


class Turns(Fold):
    """A fold over messages of the user and the assistant. What a block means is the family's."""

    opens: ClassVar[str | None] = "content"

    def message(self, value: JsonValue) -> None:
        if type(value) is not dict:
            self.count += 1
            return self.fault("ALL-02", self.here, f"a message is an object, not {kind_of(value)}")
        role = value.get("role")
        if role not in ("user", "assistant"):
            self.count += 1
            return self.fault("ALL-02", self.here, f"role {shown(role)} is neither user nor assistant")
        self._open("user" if role == "user" else "assistant")
        return self._read(value)

    def resume(self, value: JsonValue) -> None:
        self._read(value if type(value) is dict else {})

    def _open(self, role: str) -> None:
        """Judge the message that ends here, and begin one of `role`."""
        raise NotImplementedError

    def _read(self, message: dict[str, JsonValue]) -> None:
        """Judge what a message holds, or what follows in one that was left open."""
        raise NotImplementedError
