"""Run actors on anyio, with bounded mailboxes, synchronous handlers and supervised restarts.

Sessions are built on this package, which knows nothing about language models. An actor does not have its own task: its
handler is a plain function, often called by the sender. `docs/reference/semantics.md` states the guarantees.
"""

from actors.kernel.actor import Actor, Context
from actors.kernel.cell import Group, Restart
from actors.kernel.message import Command, MailboxFull, Query, Reply
from actors.kernel.receiver import Child
from actors.kernel.ref import Ref
from actors.kernel.subscription import LostItems, Subscription
from actors.kernel.system import SHARED, System

__all__ = [
    "SHARED",
    "Actor",
    "Child",
    "Command",
    "Context",
    "Group",
    "LostItems",
    "MailboxFull",
    "Query",
    "Ref",
    "Reply",
    "Restart",
    "Subscription",
    "System",
]
