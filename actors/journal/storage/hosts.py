"""Name storage objects that write, so that others can tell whether they are alive."""

import os
import secrets
import socket


def host_name() -> str:
    """Return a unique name: of the machine, the process, and a random part."""
    return f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
