"""Actors on anyio: cells without tasks of their own, bounded mailboxes, handlers that are plain functions,
supervision.

This package knows nothing about language models. `docs/reference/semantics.md` states its guarantees.
"""

from actors.kernel.actor import Actor, Context
from actors.kernel.cell import Group, Restart
from actors.kernel.mailbox import MailboxFull
from actors.kernel.message import Command, Query, Reply
from actors.kernel.receiver import Child
from actors.kernel.ref import Ref
from actors.kernel.subscription import Lost, Subscription
from actors.kernel.system import SHARED, System

__all__ = [
    "SHARED",
    "Actor",
    "Child",
    "Command",
    "Context",
    "Group",
    "Lost",
    "MailboxFull",
    "Query",
    "Ref",
    "Reply",
    "Restart",
    "Subscription",
    "System",
]
