"""A session's life as a table: in which phase it is, what may happen there, and what is to be done about it.

    phase        submit    switch    cancel     end         finished   written
    idle         begin     apply     nothing    write_end   -          -
    asking       wait      hold      stop       stop        conclude   -
                                                (ending)    (idle)
    recovering   wait      apply     wait       wait        conclude   -
                                                (ending)    (idle)
    ending       refuse    refuse    wait       wait        write_end  -
    closing      refuse    refuse    nothing    wait        -          answer
                                                                       (ended)
    ended        refuse    refuse    nothing    answer      -          -

*asking*: an ask is in flight. *recovering*: what a crash left open is being closed. *ending*: the same, and then the
session ends. *closing*: its end is being written. Where a dash stands, the event cannot come, and its coming is a
programming error. The phase behind an event stands in brackets; `begin` leads to asking, `write_end` to closing, and
all else leaves it as it was.

    begin      take up the oldest ask that waits       apply      write the switch, answer Applied
    wait       let it wait for what is under way       hold       keep the switch for the ask's end, answer Deferred
    refuse     the session is ending                   stop       cancel the ask in flight, then as `wait`
    nothing    answer that there is none               conclude   answer those who wait for the ask's end
    write_end  conclude, then write the log's end      answer     answer those who wait for the session's end
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

Phase: TypeAlias = Literal["idle", "asking", "recovering", "ending", "closing", "ended"]
Happening: TypeAlias = Literal["submit", "switch", "cancel", "end", "finished", "written"]
Action: TypeAlias = Literal[
    "begin",
    "wait",
    "refuse",
    "apply",
    "hold",
    "nothing",
    "stop",
    "conclude",
    "write_end",
    "answer",
]

TABLE: Mapping[tuple[Phase, Happening], tuple[Action, Phase]] = {
    ("idle", "submit"): ("begin", "asking"),
    ("idle", "switch"): ("apply", "idle"),
    ("idle", "cancel"): ("nothing", "idle"),
    ("idle", "end"): ("write_end", "closing"),
    ("asking", "submit"): ("wait", "asking"),
    ("asking", "switch"): ("hold", "asking"),
    ("asking", "cancel"): ("stop", "asking"),
    ("asking", "end"): ("stop", "ending"),
    ("asking", "finished"): ("conclude", "idle"),
    ("recovering", "submit"): ("wait", "recovering"),
    ("recovering", "switch"): ("apply", "recovering"),
    ("recovering", "cancel"): ("wait", "recovering"),
    ("recovering", "end"): ("wait", "ending"),
    ("recovering", "finished"): ("conclude", "idle"),
    ("ending", "submit"): ("refuse", "ending"),
    ("ending", "switch"): ("refuse", "ending"),
    ("ending", "cancel"): ("wait", "ending"),
    ("ending", "end"): ("wait", "ending"),
    ("ending", "finished"): ("write_end", "closing"),
    ("closing", "submit"): ("refuse", "closing"),
    ("closing", "switch"): ("refuse", "closing"),
    ("closing", "cancel"): ("nothing", "closing"),
    ("closing", "end"): ("wait", "closing"),
    ("closing", "written"): ("answer", "ended"),
    ("ended", "submit"): ("refuse", "ended"),
    ("ended", "switch"): ("refuse", "ended"),
    ("ended", "cancel"): ("nothing", "ended"),
    ("ended", "end"): ("answer", "ended"),
}


def first(*, is_closed: bool, is_open: bool) -> Phase:
    """Return the phase of a session that is just made, from what its log says.

    Args:
        is_closed: The session's end is in it.
        is_open: There is an ask or a turn that has not ended.
    """
    if is_closed:
        return "ended"
    return "recovering" if is_open else "idle"


def step(phase: Phase, happening: Happening) -> tuple[Action, Phase]:
    """Return what is to be done, and the phase after it."""
    if (phase, happening) not in TABLE:
        raise AssertionError(f"{happening!r} cannot come while the session is {phase!r}")
    return TABLE[phase, happening]
