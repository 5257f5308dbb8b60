"""Actors on anyio: passive cells with bounded mailboxes, served by a few runner tasks, supervised.

This package has never heard of a language model. `docs/reference/semantics.md` states what it guarantees.
"""

from actors.kernel.account import CellInfo, Counts, DeadLetter, DeadLetters, State
from actors.kernel.actor import Actor, Child, Context, Terminated
from actors.kernel.channel import Lost, Receiver, Sender, channel, subscription
from actors.kernel.mailbox import COALESCE, DROP_OLDEST, REFUSE, WAIT, Mailbox, WhenFull
from actors.kernel.message import Command, Query, Reply
from actors.kernel.ref import Ref
from actors.kernel.supervisor import Group, Restart, Strategy
from actors.kernel.system import SHARED, System, spawn

__all__ = [
    "COALESCE",
    "DROP_OLDEST",
    "REFUSE",
    "SHARED",
    "WAIT",
    "Actor",
    "CellInfo",
    "Child",
    "Command",
    "Context",
    "Counts",
    "DeadLetter",
    "DeadLetters",
    "Group",
    "Lost",
    "Mailbox",
    "Query",
    "Receiver",
    "Ref",
    "Reply",
    "Restart",
    "Sender",
    "State",
    "Strategy",
    "System",
    "Terminated",
    "WhenFull",
    "channel",
    "spawn",
    "subscription",
]
