"""Actors on anyio: passive cells with bounded mailboxes whose handlers are plain functions, supervised.

This package has never heard of a language model. `docs/reference/semantics.md` states what it guarantees.
"""

from actors.kernel.account import ActorState, Counts, DeadLetter, DeadLetters
from actors.kernel.actor import Actor, Child, Context, Restart, Terminated
from actors.kernel.mailbox import Mailbox
from actors.kernel.message import Command, Query, Reply
from actors.kernel.ref import Ref
from actors.kernel.subscription import Lost, Subscription
from actors.kernel.supervisor import Group
from actors.kernel.system import SHARED, System, spawn

__all__ = [
    "SHARED",
    "Actor",
    "ActorState",
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
    "Ref",
    "Reply",
    "Restart",
    "Subscription",
    "System",
    "Terminated",
    "spawn",
]
