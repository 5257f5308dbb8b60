"""Hosts: what a storage object that writes is called, so that others can tell it is alive."""

import os
import secrets
import socket


def host_name() -> str:
    """Return a name that no other host has: of the machine, the process, and by chance."""
    return f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
