"""Create the names of hosts, the storage objects that write sessions."""

import os
import secrets
import socket


def host_name() -> str:
    """Return a unique name that contains the machine's name, the process id and a random number."""
    return f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
