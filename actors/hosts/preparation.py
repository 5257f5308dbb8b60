"""Import the modules of a turn when a host starts.

Otherwise, the first ask of the process imports them. This takes 0.1 s of CPU time. Meanwhile, the event loop does not
run, and all sessions that have moved to the new host wait.
"""

from importlib import import_module

MODULES = (
    "actors.adapters.codec",
    "actors.provider.credentials.configured",
    "actors.session.session_actor",
    "actors.transport.exchange",
)
"""These modules import all modules of a turn, except for those of a wire family."""


def import_turn_modules() -> None:
    """Import the modules of a turn. Call this function before the runtime of the host is entered."""
    for name in MODULES:
        import_module(name)
