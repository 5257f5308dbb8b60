"""What three protocols have in common: two roles take turns, and results stand among the user's blocks.

Pairing is between two neighbours: what one message of the model calls, the next message of the user answers at its
head. The last message of a fragment may be unfinished, so what can only be said of a whole message is said when the
next one begins or at the end.
"""

from typing import ClassVar

from actors.core.check.state import CheckState
from actors.core.check.words import excerpt
from actors.core.jsonio import JsonValue


class Turns(CheckState):
    """A state machine over messages of two roles. What a block means is the family's.

    Attributes:
        model: The model's role, as the wire spells it.
        may_end_empty: Whether a message of the model that is the last may be empty.
        mixed: The last user message holds something beside results.
        split: It follows another that left calls unanswered.
    """

    opens: ClassVar[str | None] = "content"
    model: ClassVar[str] = "assistant"
    may_end_empty: ClassVar[bool] = False

    mixed = split = False

    def read(self, messages: list[JsonValue], *, resumes: bool = False) -> None:
        key = str(self.opens)
        for value in messages:
            if type(value) is not dict:
                self.count += 1
                self.wanted("a message is an object", self.here, value)
                continue
            role = value["role"] if "role" in value else None
            if resumes:
                resumes = False
            elif type(role) is str and role in ("user", self.model):
                if not self.blocks and self.role is not None:
                    self.fault("ALL-11", self.here, "the message is empty")
                self.begin(role)
                self.count += 1
                if role == self.role:
                    self.fault("CMP-01 turns", self.here, f"role {role} twice in a row")
                elif self.role is None and role not in self.dialect.turns.first_roles:
                    self.fault("ALL-09", self.here, f"a transcript cannot begin with role {role}")
                self.role, self.blocks = role, 0
            else:
                self.count += 1
                self.fault("ALL-02 role", self.here, f"role {excerpt(role)} is neither user nor {self.model}")
                continue
            if len(value) != 2 or key not in value:
                self.allow_only(self.here, value, ("role", key))
            self.content(value[key] if key in value else None)

    def begin(self, role: str) -> None:
        """Judge the message that ends where one of `role` begins, and forget what was true of it."""
        raise NotImplementedError

    def content(self, content: JsonValue) -> None:
        """Read the blocks of the current message."""
        if type(content) is list:
            for block in content:
                self.block(block)
                self.blocks += 1
        else:
            self.wanted("a list of blocks", f"{self.here}.{self.opens}", content)
            self.blocks += 1  # it is not empty, it is wrong

    def block(self, block: JsonValue) -> None:
        """Read one block of the current message."""
        raise NotImplementedError

    def finish(self, *, manual_thinking: bool) -> None:
        super().finish(manual_thinking=manual_thinking)
        if self.role and not self.blocks and (self.role == "user" or not self.may_end_empty):
            self.fault("ALL-11", self.here, "the message is empty")

    def misplaced(self, call_id: JsonValue, key: str) -> None:
        """Judge a result that has no call, or does not stand where its call wants it."""
        if type(call_id) is not str:
            self.wanted(f"{key} is a string", "", call_id)
        elif call_id in self.due:
            if self.mixed:
                what = f"the result of {excerpt(call_id)} stands after other content"
                self.fault("ANT-03 order", "", what, call_id)
            if self.split:
                what = f"the result of {excerpt(call_id)} stands in a second user message"
                self.fault("ANT-12", "", what, call_id)
            del self.due[call_id]
            self.answered.add(call_id)
        elif call_id in self.answered:
            self.fault("OAC-02 second", "", f"a second result for tool call {excerpt(call_id)}", call_id)
        else:
            what = f"a result for {excerpt(call_id)}, which the message before does not call"
            self.fault("OAC-02 stray", "", what, call_id)
